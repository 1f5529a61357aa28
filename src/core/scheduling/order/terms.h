/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The order of jobs of one queue, tier and priority, where the policy gives weights: each term is 0 to 1000, and the job with
 * the largest sum of terms times weights is next; equal ones by submission. With no weight (the default) that is all the order.
 *
 *	deadline	how little time it has to spare: 1000 with none, 500 with an hour, 1000 h / (h + spare) for h = 1 h; 0 without
 *	efficiency	how much of its GPUs' time is of use: what it declares, and what it kept of what it used when it ran before
 *	age		how long it waits: 500 after a day, 1000 t / (t + day)
 *	user		how little its user has of this queue: 1000 / (1 + GPUs that the other jobs hold + past use over a half-life)
 *	budget		how much of its queue's budget it leaves: 1000 left / (left + its expected cost); 1000 without a budget or price
 *
 *	weights deadline 2, age 1. One job has 1 h to spare and waits for 6 h: 2 * 500 + 200 = 1200.
 *	Another has no deadline and waits for 3 days: 750. The first is next.
 *
 * Of the jobs of one bucket the first TERMS_JOBS_MAX by submission are ordered; the others follow when these have started. It costs
 * a step for each of them and for each running job of the queue, in every pass.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/scheduling/view/view.h"

enum { TERMS_JOBS_MAX = 4096, TERM_MOST = 1000 };

enum order_term { TERM_DEADLINE, TERM_EFFICIENCY, TERM_AGE, TERM_USER, TERM_BUDGET, TERM_COUNT };

/* GPU shares that users hold in one queue, sorted by name id. */
struct user_hold {
	uint32_t user;
	int64_t share;
};
struct user_holds {
	struct user_hold *at;
	uint32_t count, room;
};

struct terms {
	int64_t value[TERM_COUNT]; /* 0 to TERM_MOST */
	int64_t sum; /* of values times weights */
};

bool terms_count(const struct policy *policy); /* is there a weight at all? */
int64_t terms_weight(const struct policy *policy, enum order_term term);
const char *terms_name(enum order_term term); /* "deadline" */

void user_holds_make(const struct facts *facts, const struct view *view, uint32_t queue,
		     struct arena *arena, struct user_holds *ret);
void user_holds_add(struct user_holds *holds, struct name_id user, int64_t share,
		    struct arena *arena);
int64_t user_holds_get(const struct user_holds *holds, struct name_id user);

void terms_of(const struct facts *facts, const struct view *view, const struct user_holds *holds,
	      const struct job *job, struct terms *ret);
/* Time to spare before its deadline when it starts now and runs as long as is expected; below 0: it can't be met. INT64_MAX: it
 * has none. */
int64_t job_slack_ms(const struct facts *facts, const struct job *job);
