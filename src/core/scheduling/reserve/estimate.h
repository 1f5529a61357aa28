/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long a job will run. What is known, in this order:
 *
 *	jobs like it (core/model/likes.h)	the spread of their run times, cut at its limit
 *	its estimate, limit, queue's default	evenly spread between nothing and that
 *
 * Of a job that runs already only those count that ran longer than it has so far. The chance p (in 1/1000) of n run times, sorted,
 * lies at place p (n + 1) / 1000, between two of them in proportion: five run times 10, 20, 30, 40, 50 min give 30 min for 500
 * and 50 min from 834 on. So a new one like them exceeds it in about so many cases as it says, not fewer.
 *
 * Reservations take no spread: job_expected_ms.
 */
#include "core/model/likes.h"

/* Run time from now on that is not exceeded in per_mille (1 to 999) of the cases; at least 1 ms. age_ms: since its release, 0 = it
 * does not run. memory: the facts in which like jobs are looked up; others than the job's own where these are made up. */
int64_t estimate_rest_ms(const struct facts *facts, const struct facts *memory,
			 const struct job *job, int64_t age_ms, uint32_t per_mille);
/* What of it the job's limit allows; at least 1 ms. ran_ms: all that it has run. */
int64_t estimate_in_limit_ms(const struct job *job, int64_t ran_ms, int64_t rest_ms);
/* What jobs like it say alone: likely (500) and safe (900) run time from a start now; false = there are not enough of them. */
bool estimate_by_likes(const struct facts *facts, const struct job *job, int64_t *ret_likely_ms,
		       int64_t *ret_safe_ms);
/* The safe run time of a job that is yet to be submitted and declares nothing; 0 = not known. */
int64_t estimate_new_ms(const struct facts *facts, const struct like_wish *wish);
