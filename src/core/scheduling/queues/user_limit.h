/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many GPUs the jobs of one user may hold at once in a queue and those below it: an amount, a percentage of what the queue may hold,
 * or both; then the smaller one counts. A percentage of less than one GPU counts as one GPU, so that every user can run something.
 *
 *	vision: limit 16 GPUs, 8 GPUs and 25 percent per user. Each user: 4 GPUs. ann runs 3 and asks for 2: that job waits with `quota_limit`;
 *	her next one, of 1 GPU, starts.
 *
 * Counted is what attempts hold now, leaving ones too, and what is promised. Nobody is evicted to make room under such a limit, and what
 * runs when a limit is lowered goes on. Jobs of unlike users stand in buckets of their own in such queues (view_buckets.c). The sums of a
 * queue are made in a pass when the first of its jobs has its turn: one step for each job that runs in its subtree.
 *
 * A queue wants its share for all jobs that wait, those over the limit of their user too.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/scheduling/view/view.h"

struct pass;
struct job;

bool queue_limits_users(const struct queue *queue);
/* The queue or one above it does. */
bool path_limits_users(const struct facts *facts, struct queue_id queue);
/* GPU shares that one user may hold in the queue; INT64_MAX = no limit. */
int64_t user_limit_of(const struct facts *facts, const struct view *view, struct queue_id queue);
/* GPU shares that the job's user may start more; INT64_MAX = no limit. When it is less than `need`, ret_why (may be NULL) says where. */
int64_t user_room(struct pass *pass, const struct job *job, int64_t need, struct verdict *ret_why);
/* A job of the user starts, grows, or is promised a place. */
void user_take(struct pass *pass, const struct job *job, int64_t share);
