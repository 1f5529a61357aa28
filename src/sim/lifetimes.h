/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long jobs run, by all that ran in the last days, those that still run among them. Who counts only jobs that have ended takes work
 * for short whenever much of it began at one time: the short ones end first.
 *
 * Each job was watched from its start, or from the age that it had when the days began, to its end, or to the age that it has now. Of
 * those that were watched at an age some ended at it; so likely a job of that age ends, and the chance to outlive an age is the
 * product of the chances to outlive all before it (Kaplan and Meier's estimate, with late entries). One more counts as watched, so that of n
 * that ended a new job outlives all in one case of n + 1. Beyond the greatest age that was seen the chance halves as the age doubles.
 *
 *	five ended after 10, 20, 30, 40 and 50 min, none runs:	a new one ends within 30 min in 3 cases of 6, and outlives 50 min in 1 of 6
 *	the same, and five run since an hour:			it ends within 50 min in 5 of 11, and outlives the hour in 6 of 11
 *
 * Jobs are alike as in core/model/likes.h, by the closest likeness in which LIKE_LEAST ended; what is remembered there of a closer one goes
 * before that. A job's work before it was evicted is watched with its last, as if it had not waited between; of work that a failure lost only
 * the last attempt is known, and nothing of attempts before.
 *
 * Watched are the last seven days; fewer, where ended jobs are kept for less, or more than LIFETIMES_MAX ended in them (the last minute is
 * watched whole). Costs: two walks over all jobs and a sort of those watched; 90 bytes for each of them and each of four likenesses while
 * it is made, afterwards 24 for each age at which some ended.
 */
#include "core/model/likes.h"

enum { LIFETIMES_MAX = 20000 };

struct lifetimes {
	struct lifetimes_group *groups; /* of jobs that are alike: by key, rising */
	uint32_t group_count;
	struct lifetimes_point *points; /* of all groups, one after the other */
};

void lifetimes_make(const struct facts *facts, int64_t now_ms, struct lifetimes *ret);
void lifetimes_deinit(struct lifetimes *lifetimes);
/* Run time beyond ran_ms that is not exceeded in per_mille (1 to 999) of the cases, of jobs that are alike at least so closely. false: too
 * few of them ended. */
bool lifetimes_rest_ms(const struct lifetimes *lifetimes, const struct like_wish *wish,
		       enum like_level at_least, int64_t ran_ms, uint32_t per_mille,
		       int64_t *ret_ms);
