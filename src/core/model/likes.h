/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is remembered of jobs that ran: their run times, among their like. Each job that ended is remembered four times:
 *
 *	LIKE_NAME	jobs of the same user and name; a run of digits in the name counts as one sign
 *	LIKE_USER	jobs of the same user and as many GPUs
 *	LIKE_QUEUE	jobs of the same queue and as many GPUs
 *	LIKE_ALL	all jobs
 *
 * "train-7" and "train-12" of vera are alike, "train" and "train-12" are not. A name that is nothing but a number makes nothing alike.
 *
 * Where it is known what the jobs run (`program` of their submission), only those that run the same are alike, at each level: what
 * `python3 -c` took says nothing of `python3 train.py`. A run of such a job that failed or was cancelled before the grace of its eviction
 * was over says nothing. Jobs of older records have no program: they learn, and are compared, as these releases did.
 *
 * The memory is bounded: LIKE_SETS sets of LIKE_WAYS rows, LIKE_RUNS newest run times per row. The hash of what is alike says
 * which set; in a full set the row that learned nothing for the longest time is given up. So it is content, not a cache:
 * the same events give the same rows everywhere. 1.2 MB when full; to learn or to look up costs some hundred nanoseconds.
 */
#include "core/model/facts.h"

enum { LIKE_SETS = 512, LIKE_WAYS = 8, LIKE_LEAST = 5 /* runs that say something */ };

enum like_level { LIKE_ALL, LIKE_QUEUE, LIKE_USER, LIKE_NAME, LIKE_LEVELS };

/* What likeness is judged by. */
struct like_wish {
	const char *user, *name, *queue;
	uint32_t gpus; /* of the whole job, at its least width */
	int64_t program; /* hash of what it runs, 0 = not said */
};

/* Run times of jobs that are alike, rising. count 0: nothing is known. */
struct like_runs {
	enum like_level level;
	uint32_t count;
	int64_t ms[LIKE_RUNS];
};

/* What names a likeness; never 0. */
int64_t like_key(const struct like_wish *wish, enum like_level level);
/* The closest likeness that says something: LIKE_USER where the name is nothing but a number. */
enum like_level like_closest(const struct like_wish *wish);
struct like_wish like_wish_of(const struct facts *facts, const struct job *job);
/* Is the run time of a job that ended as `state` one by which others are expected to run? However it ended it held its GPUs so long; one that
 * broke off at once would have others expected to. */
bool run_says_something(const struct facts *facts, const struct job *job, uint8_t state,
			int64_t run_ms);
/* The closest likeness of which LIKE_LEAST runs are known. */
void likes_find(const struct facts *facts, const struct like_wish *wish, struct like_runs *ret);
/* The run time that per_cent (1 to 100) of them did not exceed: the nearest rank, rounded up. count must not be 0. */
int64_t like_runs_quantile(const struct like_runs *runs, uint32_t per_cent);
/* For apply: a job that ran so long has ended. */
void likes_learn(struct facts *facts, const struct like_wish *wish, int64_t run_ms);
