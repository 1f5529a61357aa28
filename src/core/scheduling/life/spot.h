/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a job with a deadline runs when there are cheap machines that may be taken away at any time (spot) and dear ones that stay
 * (on demand); it makes checkpoints, and each start on either costs it a restart. The deadline is never put at risk for money.
 *
 * The spare time is what may still be lost before only on-demand to the end is in time:
 *
 *	spare = time until the deadline - time until the next look - work left - what a pre-emption loses - a restart on demand
 *
 * It can buy two things: waiting while no spot machine is there, and restarts, with which the job leaves on-demand for spot and
 * comes back. An hour of waiting buys one hour's difference of prices at most; a restart of minutes buys the difference for as long as the spot
 * machine lasts. So restarts come first: a reserve is kept for those that are to be expected,
 *
 *	reserve = 2 x (2 restarts for each time that spot comes and goes until the deadline, as the pool did so far)
 *
 *	spare used up			on demand, to the end
 *	on spot				stays until it is taken away
 *	spot there, job waits		spot
 *	spot there, job on demand	spot, when it is expected to last long enough to pay for two restarts; and while the spare is below the
 *					reserve, only when it has lasted for (mean / 4) x (reserve - spare) / spare: the scarcer, the pickier
 *	no spot, job waits		waits while the spare is above the reserve, then on demand
 *	no spot, job on demand		stays; waits when the spare is above the reserve by a whole coming and going
 *
 * How long does it last? Half of the pool's mean and of what it has lasted so far together: intervals of spot machines have a long
 * tail, so what has lasted is the likelier to last.
 *
 * Beside it in bench/spot.c: Wu et al., "Can't Be Late" (NSDI 2024), whose Uniform Progress keeps to a straight line instead and learns nothing.
 */
#include <stdbool.h>
#include <stdint.h>

enum spot_place { SPOT_WAITS, SPOT_ON_SPOT, SPOT_ON_DEMAND };

/* How long spot machines of a pool were there and away, one interval after the other. Zeroed: nothing is known, an hour each. */
struct spot_pool {
	int64_t there_ms, away_ms; /* sums */
	uint32_t there, away; /* intervals that have ended */
};

#define SPOT_TIME_MAX_MS (INT64_C(20) * 366 * 86400 * 1000)

/* Times are 0 to SPOT_TIME_MAX_MS, prices 0 to 10^12. */
struct spot_task {
	enum spot_place at; /* before the choice; a machine that was just taken away: SPOT_WAITS */
	bool there; /* is there a spot machine for it now? */
	int64_t since_ms; /* how long that has been so */
	int64_t left_ms; /* until its deadline; below 0 it is past */
	int64_t work_ms; /* what it would run without a restart */
	int64_t pending_ms; /* of the restart that it is in, where it runs; 0 = it works */
	int64_t restart_ms; /* of one on either */
	int64_t lose_ms; /* at most, when a spot machine is taken away: since its checkpoint */
	int64_t look_ms; /* until the next choice at the latest */
	int64_t spot_micro, demand_micro; /* for an hour */
};

/* An interval has ended that was `there`, or away, for so long. Older ones count for less and less. */
void spot_pool_note(struct spot_pool *pool, bool there, int64_t lasted_ms);
int64_t spot_pool_mean(const struct spot_pool *pool, bool there);
int64_t spot_spare(const struct spot_task *task); /* in ms; below 0 only on-demand is left */
int64_t spot_reserve(const struct spot_task *task, const struct spot_pool *pool);
/* Where it runs until the next look. */
enum spot_place spot_choose(const struct spot_task *task, const struct spot_pool *pool);
