/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When will the jobs that wait start? The whole queue is played (play.h) PLAN_RUNS times from the same facts on, each time with other
 * run times out of what is likely (lifetimes.h; where too little is known, core/scheduling/reserve/estimate.h). One plan serves all
 * jobs, and is true for one sequence.
 *
 * No randomness: in run k a job takes cell p(k) of PLAN_RUNS equal cells of its spread, where p is a permutation that its user, its name
 * (but for digits), its width and the hour in which it was submitted choose. So each job takes each cell once, jobs that differ in these
 * differ, and those of one campaign are long together.
 *
 * What is cut: a run ends behind `starts_max` starts, `turns_max` turns of the core or PLAN_HORIZON_MS, or when `stop` says so. Then
 * all that is known of a job that did not start in it is that it does not before that time. Jobs that nobody has submitted yet
 * come as they came on days before (arrivals.h): some go before those that wait.
 *
 * Costs: a turn of the core each time that something ends or starts; memory: PLAN_RUNS times 20 bytes per job that starts.
 */
#include "sim/play.h"

enum { PLAN_RUNS = 19, PLAN_STARTS = 2000, PLAN_TURNS = 50000 };
#define PLAN_HORIZON_MS (INT64_C(60) * 86400 * 1000)

struct plan_limits {
	uint32_t starts_max; /* per run; 0 = PLAN_STARTS */
	uint64_t turns_max; /* per run; 0 = PLAN_TURNS */
	uint32_t target; /* a run may end when this job has ended; 0 = all count */
	void *context;
	bool (*stop)(void *context); /* asked now and then: cut here; NULL = never */
};

/* Times of one job, rising; PLAY_NEVER where it did not start (end) in a run. */
struct plan_job {
	uint32_t job;
	int64_t start_ms[PLAN_RUNS], end_ms[PLAN_RUNS];
	uint32_t node[PLAN_RUNS]; /* of rank 0 at its first start, by run */
};

struct plan {
	uint64_t seq; /* true for this one */
	int64_t now_ms; /* its time 0 */
	int64_t until_ms; /* a job that is not in it does not start before; PLAY_NEVER = nothing was cut */
	uint32_t runs; /* played; fewer than PLAN_RUNS where `stop` said so */
	uint32_t count;
	struct plan_job *jobs;
	uint32_t *rows; /* by job id: row + 1, 0 = it starts in no run */
	uint32_t row_count;
};

/* now_ms: the present (facts are as old as their last event). ret is given back with plan_deinit. */
void plan_make(const struct facts *facts, int64_t now_ms, const struct plan_limits *limits,
	       struct plan *ret);
void plan_deinit(struct plan *plan); /* takes a zeroed one too */

/* What is said of one job. Times: PLAY_NEVER = not known. */
struct plan_answer {
	int64_t start_ms, start_by_ms; /* even odds, 9 of 10 cases */
	int64_t end_ms, end_by_ms;
	uint32_t node,
		node_cases; /* where rank 0 starts most often (the lowest such number), in so many runs; 0 = not known */
};
/* false: it starts in no run. */
bool plan_ask(const struct plan *plan, uint32_t job, struct plan_answer *ret);
