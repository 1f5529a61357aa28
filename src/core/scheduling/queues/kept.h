/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Guarantees by model that are reserved: what their queues leave idle of a model is lent to nobody.
 *
 *	8 H100, 8 A100; q {H100-80GB: 4, reserved} runs 1 H100. Others hold 4 H100: one more is free for them, for 3 are kept.
 *
 * A model where there is no room for all of a job beside what is kept is closed to it, as under a limit of its queue (bounds.h): it goes
 * to another model or waits, and nobody is evicted for that. What others hold counts until it is gone, with what is promised to them.
 * Best-effort work counts for best-effort work alone: all other work may take its place, so it keeps nobody from a model, and the queue
 * itself takes back what such work holds of its reserve. `any` keeps GPUs of the models not named, wherever they are.
 *
 * A queue that keeps models below another one that does is not looked at: what is kept for the upper one is kept for both.
 * Costs nothing where no queue has such a guarantee; else a step for each task that runs, once in a pass.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/scheduling/view/view.h"

struct pass;
struct placement;

/* Does any queue keep GPUs of a model? */
bool kept_any(struct pass *pass);
/* The sums of this pass, if they are not made yet: before a promise is taken out of them for a question. */
void kept_count(struct pass *pass);
/* Classes of `classes` that are closed to so many tasks of a job of the queue. Lowers pass->widest to what there is room for in the others;
 * when it closes one, ret_why says how little is left beside what is kept. */
uint64_t kept_close(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
		    uint32_t tasks, uint64_t classes, struct verdict *ret_why);
/* An attempt starts or a place is promised; a promise goes (-1), or is there again (1). */
void kept_take(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
	       const struct placement *place);
void kept_promise(struct pass *pass, const struct promise_view *p, int sign);
