/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a queue's jobs may hold at most beside GPUs of all kinds together: GPUs by model, processors, memory. The figures of a queue
 * cover its whole subtree.
 *
 * Counted is what attempts hold now, leaving ones too, and what is promised: so a bound is never passed, and a promise never waits
 * for one. Nobody is evicted to make room under a bound.
 *
 * A job that accepts several models goes where its queue has room for all of it; the other models are closed to it. The sums are
 * made in a pass when the first job of a queue with bounds has its turn: one step for each task that runs in such queues.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/scheduling/view/view.h"

struct pass;
struct placement;

/* Which bound: `level` of a verdict with REASON_QUOTA_LIMIT. From BOUND_MODEL on: index of the model in the queue. BOUND_USER: of each
 * user (user_limit.h). */
enum { BOUND_GPUS, BOUND_CPU, BOUND_RAM, BOUND_MODEL, BOUND_USER = BOUND_MODEL + QUEUE_MODELS_MAX };

/* The place of the model in such a list of QUEUE_MODELS_MAX, else that of `any`; -1 = neither is in it. */
int models_index(const struct facts *facts, const struct name_id *models, struct name_id model);
/* It has limits of models, processors or memory. */
bool queue_is_bounded(const struct queue *queue);
/* May the queue start `tasks` of the shape more, beside what others keep of a model (kept.h) too? Then pass->closed are the classes of nodes where it may not, and pass->widest
 * the most tasks for which it has room. Else ret_why says which bound it is. */
bool bounds_allow(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
		  uint32_t tasks, struct verdict *ret_why);
/* An attempt starts or a place is promised. */
void bounds_take(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
		 const struct placement *place);
/* A promise goes (-1), or is there again (1). */
void bounds_promise(struct pass *pass, const struct promise_view *p, int sign);
/* The most of the bound that `level` names; in shares, milli-CPUs, MiB. */
int64_t bounds_limit(const struct queue *queue, uint8_t level);
