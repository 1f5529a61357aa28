/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Jobs that will come, guessed from those that came: a day to come is like one of the days before, by hour, width, queue, tier and
 * priority. Of D whole days that are remembered (7 at most), day n to come in run k is like day 1 + (k + n) mod D before. So runs
 * differ, and a day's wave stays. Jobs that were cancelled before they ran do not come again, nor do held ones.
 *
 * At most ARRIVALS_MAX jobs are looked at, the newest ones; when these are not a whole day's, or nothing is remembered for a whole day,
 * nothing comes.
 */
#include "sim/play.h"

enum { ARRIVALS_MAX = 20000, ARRIVALS_DAYS = 7 };

struct arrivals {
	const struct facts *facts; /* the caller's, for as long as this is used */
	int64_t now_ms;
	uint32_t *jobs; /* rising ids */
	uint32_t count;
	uint32_t days;
	uint32_t first[ARRIVALS_DAYS +
		       1]; /* of day d before now: jobs[first[d]] to jobs[first[d - 1] - 1] */
	uint32_t run, day, at; /* where the run stands: day to come from 0, next job of it */
};

void arrivals_init(struct arrivals *arrivals, const struct facts *facts, int64_t now_ms);
void arrivals_deinit(struct arrivals *arrivals);
void arrivals_begin(struct arrivals *arrivals, uint32_t run);
int64_t arrivals_next_ms(struct arrivals *arrivals); /* PLAY_NEVER = nothing comes */
/* The next one comes, at play->now_ms. */
void arrivals_take(struct arrivals *arrivals, struct play *play);
