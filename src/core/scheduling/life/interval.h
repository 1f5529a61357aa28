/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often a job should make a checkpoint when it leaves that to Fairlead (`checkpoint: {every: auto}`): Young's rule. With a
 * checkpoint that costs C and a job that is broken off once in M on average, the least time is lost when sqrt(2 * C * M) lies
 * between two checkpoints: more often costs checkpoints, less often costs work that is done again.
 *
 *	M	of one rank: (200 days + run time of ranks) / (1 + times a machine broke one off), of the newest INTERVAL_HISTORY
 *		attempts of anybody; so without history once in 200 days. Of the job: that, divided by its ranks
 *	C	what the job declares (`checkpoint: {cost: 2m}`); else what jobs of the same name and user took when they were warned,
 *		on average; else one minute
 *
 * By hand: 64 ranks, no history, C one minute: M = 200 d / 64 = 3.125 d = 4,500 min; sqrt(2 * 1 * 4,500) = 94.9 min.
 *
 * J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974). Daly's higher terms matter only
 * where C is not small against M; there the limits below hold.
 *
 * Where it may run on spot nodes, these are taken away as well. With a notice (the policy's `spot_notice`, or the job's grace where that is
 * less) that is no shorter than C it saves then, and nothing is lost; with a shorter one each of them is a break as any other. So then
 *
 *	1 / M	is the sum of 1 / M as above and 1 / (how long spot nodes stay / how many of them the job lies on); of several pools the one that
 *		they stay in for the shortest time, and each node takes as many ranks as the widest has room for
 *
 * By hand: a rank with 8 GPUs on nodes of 8 that stay for an hour, 30 s of notice, C a minute: M is an hour less 45 s, and the root of
 * 2 * 1 * 59.99 is 10.95 min. What one reclaim can lose is that and a checkpoint.
 *
 * Best-effort work is stopped at once when others need its GPUs, without a warning in which it could save. So for it
 *
 *	1 / M	has 1 / (a day + run time of best-effort attempts) * (1 + times one of them was stopped for others) beside, of the same
 *		attempts as above; so without history once a day, however many ranks it has
 *
 * By hand: a rank, no history, C one minute: 200 days and a day make 1,432.8 min, and the root of 2 * 1 * 1,432.8 is 53.5 min.
 *
 * It is worked out once, when the job is submitted, and stands in the record.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/model/facts.h"

enum { INTERVAL_HISTORY = 2000, INTERVAL_LIKE = 8, CHECKPOINT_AUTO = -1 };

struct interval {
	int64_t every_ms; /* a minute to a day, whole seconds */
	int64_t cost_ms, mean_ms; /* C and M of the job */
	bool tight; /* it may lie on spot nodes, and has less time than C to save when one is taken away: */
	int64_t notice_ms;
	bool goes_first; /* best-effort work, which others stop: */
	uint32_t stops; /* times that best-effort work was stopped for others */
	uint32_t failures,
		measured; /* what they rest on: machines that broke, checkpoints timed; 0 = assumed */
};
void interval_choose(const struct facts *facts, const struct event_job_submitted *e,
		     struct interval *ret);
