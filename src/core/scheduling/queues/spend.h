/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Budgets of queues: what was left when somebody said so (a ledger, a person), less what has ended since; and prices of GPUs per hour.
 *
 * A job costs what it is expected to: GPUs of its least width, times the price of the cheapest model it accepts, times its expected
 * run time; a part of a GPU costs its share. What runs costs each rank from when it came, at the price of its node. An elastic job is made as wide as there is money for. From what is left goes what running jobs of the queue and of those
 * below it cost since it was said, until their expected ends, and what those will cost to which a place is promised. A job that costs
 * more than is left then waits with the reason `budget`, unless the policy only warns. Nothing that runs is stopped because a budget
 * is too small; but lower work of the queue goes for a job that lacks money, as for one that lacks room under a limit. A promise that
 * was made is kept.
 *
 *	500 left; L4 costs 2 per hour. A job of 8 GPUs with a limit of 24 h is expected to cost 384 and starts.
 *	The same once more would need 384 of the 116 that are not spoken for: it waits.
 *	The first one ends after 10 h: 160 come off, 340 are left, and the second one still waits; one of 20 h (320) starts.
 *
 * What an attempt, or ranks that leave, cost since the budget was said comes off when they end, by the prices of then; it stands in
 * the event for each queue concerned. Whoever says anew what is left says it of that moment.
 *
 * Money is in millionths of the unit in which budgets and prices are said; all of them in the same one.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/scheduling/queues/standing.h"

struct pass;

#define SPEND_HOUR_MS INT64_C(3600000)

/* What so many shares (1/63000 of a GPU) cost for so long. */
int64_t spend_cost_micro(int64_t share, int64_t micro_per_hour, int64_t ms);
/* An hour of the job at its least width, on the cheapest model that it accepts. */
int64_t job_hour_micro(const struct facts *facts, const struct view *view, const struct job *job);
/* What the job is expected to cost from a start now. Models without a price cost what `any` costs, else nothing. */
int64_t job_cost_micro(const struct facts *facts, const struct view *view, const struct job *job);
/* What ended at this moment, for the event that says so: lists in the arena of the pass. */
struct charge {
	const int64_t **queues;
	uint32_t *queue_count;
	const int64_t **micro;
	uint32_t *micro_count;
};
/* Of the job's running attempt: these ranks, or (NULL) all that hold a place. */
void spend_charge(struct pass *pass, const struct job *job, const int64_t *ranks, uint32_t count,
		  const struct charge *ret);
/* What is left in the queue's own budget, nothing that runs deducted; it has one. */
int64_t queue_left_micro(const struct queue *queue);
/* The least that is left in the budgets of the queue and of those above it, nothing that runs deducted; INT64_MAX = none has one. */
int64_t budget_left_micro(const struct facts *facts, uint32_t queue);

/* The same, with what runs and what is promised deducted: what its waiting jobs may cost. INT64_MAX = any amount. */
int64_t spend_left_micro(struct standings *s, uint32_t queue, struct arena *arena);
/* What the queue's running and promised jobs, and those of the queues below it, cost since then until their expected ends. */
int64_t spend_committed_micro(const struct standings *s, uint32_t queue, int64_t since_ms);

/* Has each of the queue's budgets enough left for the job? Then pass->widest is what they allow at most; else ret_why, in
 * millionths: budget of queue `at`. */
bool spend_allows(struct pass *pass, const struct job *job, struct verdict *ret_why);
/* The job starts with so many tasks, or a place is promised to it; its promise goes. A promised job that starts is counted already. */
void spend_take(struct pass *pass, const struct job *job, uint32_t tasks);
void spend_give(struct pass *pass, const struct job *job);

/*
 * What comes free when running work goes: the cost of its GPUs from when it has left (its grace is over) to its expected end. What
 * leaves already costs no more than until then, in all figures above.
 *
 *	spend_leave	so many shares of the job begin to leave (-share: stay after all)
 *	spend_promise	a promise would go (-1), is there again (1)
 *	spend_covers	would each of the queue's budgets have enough for `cost` more, as those leave or stay?
 *	spend_is_paid	the same for a promise, whose cost is counted already
 */
void spend_leave(struct pass *pass, uint32_t job, int64_t share);
void spend_promise(struct pass *pass, const struct promise_view *p, int sign);
bool spend_covers(struct pass *pass, uint32_t queue, int64_t cost);
bool spend_is_paid(struct pass *pass, uint32_t queue);

/*
 * Jobs of a bucket differ by an eighth in what they cost, at most. There is no money for the first one (pass->unpaid_micro): one of the
 * next that costs less may start, more of them in the next pass.
 */
bool spend_try_cheaper(struct pass *pass, uint32_t bucket, uint32_t first);

/* A running job may grow: pass->widest is lowered to the ranks for which enough is left until its expected end. It grew. */
void spend_bind(struct pass *pass, uint32_t id);
void spend_widen(struct pass *pass, uint32_t id, uint32_t ranks);
