/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One job at its turn (order.c): what its queue, its window, its money and the policy allow, its place, and where it has none whether others
 * make room for it or a place is kept. What explain is to hear of it is noted on the way (struct watch).
 *
 * Cost: what one job of a wish finds out the pass remembers for the others (struct shape_memo), so most tries are a few comparisons.
 */
#include "core/scheduling/pass.h"

enum try_result { TRY_STARTED, TRY_BLOCKED };
enum try_result job_try(struct pass *pass, uint32_t bucket, uint32_t id);
/* The same behind a job of its bucket that is blocked and has a reservation: it starts only where it ends sooner than that one, and
 * nobody makes room for it. */
enum try_result job_try_behind(struct pass *pass, uint32_t bucket, uint32_t id);
/* It has a place, or one is promised to it: what its bucket meets later says nothing of it. */
void try_started(struct pass *pass, uint32_t job);
/* Another job of its shape found no reservation in this pass. Of who has waited for longer than that one, or is a claim, it says nothing. */
bool try_reserves_none(struct pass *pass, const struct shape_memo *memo, uint32_t queue,
		       bool critical, uint32_t id);

/* Neither a calendar nor bounds, up to the root: its jobs need not be asked about them. */
static inline bool queue_is_plain(const struct pass *pass, uint32_t queue)
{
	return pass->plain && pass->plain[queue];
}
