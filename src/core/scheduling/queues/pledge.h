/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Guarantees by model: {H100-80GB: 8, any: 4}, `any` being the models not named, together.
 *
 * The share of a queue stays one figure over all models: such a guarantee counts in it as its sum. What the model adds:
 *
 *	taking back	a queue that is promised GPUs of a model and holds fewer may take them back, as far as the promise goes,
 *			from whoever holds GPUs of it that are not promised to them, whatever the shares say
 *	protection	standard work on GPUs of a model that its queue is promised is not taken back by others for their shares
 *	critical work	runs only on GPUs of models that its queue is promised, as far as the promise goes
 *
 *	8 H100, 8 A100; p {A100-80GB: 8} runs 8 on the H100s, q {H100-80GB: 8} asks for them: p is not above its share of 8, yet
 *	q gets them. p's jobs then may run on the A100s.
 *
 * A guarantee of any model protects nothing on a promised model, if there are enough GPUs of other models to hold it.
 * Figures of a queue cover its subtree; they count what standings call use: without what leaves, with what is promised.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/scheduling/view/view.h"

struct pass;
struct placement;
struct victim;

struct pledge_use {
	int64_t use[QUEUE_MODELS_MAX], critical[QUEUE_MODELS_MAX]; /* by guarantee_model */
};

/* When the pass begins; nothing when no queue has such a guarantee. Costs a step for each task of queues that have. */
void pledges_make(struct pass *pass);

/* An attempt starts; an attempt begins to leave (-1) or stays after all (1); a promise goes (-1) or is there (1). */
void pledge_take(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
		 const struct placement *place);
void pledge_attempt(struct pass *pass, const struct victim *v, int sign);
void pledge_promise(struct pass *pass, const struct promise_view *p, int sign);

/* Classes of nodes that the shape accepts and on which the first queue on the way up that has a guarantee by model holds so much
 * less than it is promised that `share` more is within it; 0 = none. Those above it count by whom the GPUs are taken from. */
uint64_t pledge_open(const struct pass *pass, uint32_t queue, const struct shape *shape,
		     int64_t share);
/*
 * `top` is where the queues of taker and victim meet: what is promised to it, and to those above it, is promised to both, so it says
 * nothing of who of them has the GPUs.
 *
 *	pledge_lets_go		may the victim's GPUs be taken back for a share?
 *	pledge_takes		may `queue`, promised their model, take them back for `share` more? The victim is an attempt.
 *	pledge_brings_back	would the victim, once gone, be entitled by model to the place it had?
 */
bool pledge_lets_go(struct pass *pass, const struct victim *v, uint32_t top);
bool pledge_takes(struct pass *pass, uint32_t queue, int64_t share, const struct victim *v,
		  uint32_t top);
bool pledge_brings_back(const struct pass *pass, const struct victim *v, uint32_t top);
/* A critical job of so many tasks: adds to pass->closed where it may not run, and lowers pass->widest. False: nowhere;
 * ret_why says which guarantee is too small. */
bool pledge_bind(struct pass *pass, uint32_t queue, const struct shape *shape, uint32_t tasks,
		 struct verdict *ret_why);
