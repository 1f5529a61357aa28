/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When the jobs that wait will start: a plan of the whole queue (sim/plan.h), made by a thread of its own and kept. Whoever asks
 * gets what the kept plan says, with the time that it is true for, or is told that one is being made; nobody waits for a plan
 * longer than he said. A plan is made again while people ask, also when nothing happened since: when it is older than five seconds, or than
 * ten times what it cost, whichever is more. Making one is cut after two seconds; then what lies beyond is not known.
 *
 * What was foretold is remembered: the first plan in which a job starts is compared with its first start. That says how far
 * estimates can be trusted. It is kept in a small file of the data folder, written at most once a minute and at the end, so that a
 * daemon that is killed loses a minute of it and nothing else; at most FORECASTS_KEPT jobs that still wait.
 *
 * Any thread may ask.
 */
#include "sim/plan.h"
#include "store/io.h"

enum { FORECASTS_KEPT = 20000 };

struct forecasts;

struct estimate {
	struct plan_answer answer;
	int64_t at_ms; /* the time that it is true for */
};

struct forecasts *forecasts_create(void);
/* From now on kept in this file; what it says of earlier times counts. One that can't be read, or is none of ours, counts nothing and is
 * written over. Once, before anybody asks. */
void forecasts_keep(struct forecasts *forecasts, struct io *io, const char *path);
/* The clock by which plans age, in ms, for tests. Once, before anybody asks. */
void forecasts_clock(struct forecasts *forecasts, int64_t (*clock_ms)(void));
void forecasts_destroy(struct forecasts *forecasts); /* NULL is fine; waits for the thread */

/* 0: it is likely to start as *ret says. FORECAST_NONE: it starts in no run of the plan. FORECAST_MAKING: no plan that knows it is at
 * hand; one is being made. wait_ms: how long to wait for that one. */
enum { FORECAST_NONE = 1, FORECAST_MAKING = 2 };
int forecast_ask(struct forecasts *forecasts, const struct facts *now, uint32_t job,
		 int64_t wait_ms, struct estimate *ret) MUST_CHECK;
/* What an answer at now_ms may say: no start before that, and none after latest_ms, by which it starts for certain (0 = nobody knows). */
void estimate_bound(struct estimate *estimate, int64_t now_ms, int64_t latest_ms);
/* Of jobs that are not submitted, in their admitted form: a plan of their own, two seconds at most, in the caller's thread. Where a job
 * starts in no run its at_ms is 0. False: none starts. */
bool forecast_new(const struct facts *facts, const struct event *submitted, uint32_t count,
		  struct estimate *ret);

/* A job that would start later than it does as things are. */
struct forecast_delay {
	uint32_t job;
	int64_t start_ms; /* at even odds, as things are */
	int64_t later_ms; /* -1 = in no run of the other plan */
};
struct forecast_change {
	struct forecast_delay *delays; /* the caller's: the first `room` by number */
	uint32_t room, count;
	uint32_t delayed; /* all of them */
	bool starts; /* the job that is asked about, in the other plan */
	struct estimate estimate;
	bool cut; /* time was over before all runs were: what lies behind is not compared */
};
/* Two plans of the whole queue, as things are and as they would be; two seconds each at most, in the caller's thread. job: of which `estimate` is. */
void forecast_change(const struct facts *now, const struct facts *other, uint32_t job,
		     struct forecast_change *ret);

/* How well starts were foretold. */
struct forecast_errors {
	int64_t waiting; /* foretold, not started yet */
	int64_t scored; /* foretold and started */
	int64_t safe_known; /* of these, with a time for 9 of 10 cases */
	int64_t in_time; /* of those, started by then */
	int64_t loss_likely_ms,
		loss_safe_ms; /* pinball losses of 0.5 and 0.9, summed over scored and safe_known */
};
void forecast_errors(struct forecasts *forecasts, const struct facts *now,
		     struct forecast_errors *ret);
