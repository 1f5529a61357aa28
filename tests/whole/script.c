/* SPDX-License-Identifier: Apache-2.0 */
/* What happens in a run: people and faults over its hours, from the seed alone. */
#include <stdlib.h>

#include "base/check.h"
#include "whole.h"

const char *const item_names[ITEM_KINDS] = {
	[ITEM_SUBMIT] = "somebody submits a job",
	[ITEM_JOB] = "somebody changes his mind about a job",
	[ITEM_QUEUE] = "a queue is changed",
	[ITEM_TOKEN] = "a token is made or ended",
	[ITEM_READ] = "somebody reads",
	[ITEM_NODE] = "an administrator takes a node or GPU out of use, or back",
	[FAULT_KILL] = "the daemon dies",
	[FAULT_POWER] = "the power goes",
	[FAULT_CALL] = "a call of the file system fails",
	[FAULT_FULL] = "the disk is full for a while",
	[FAULT_NODE] = "a node dies, and comes back",
	[FAULT_NOTICE] = "a node goes at a time that is announced, and comes back",
	[FAULT_AWAY] = "a node is not heard from for a while",
	[FAULT_GPU] = "a GPU breaks, or works again",
	[FAULT_RANK] = "a task is lost or crashes",
	[FAULT_LINK] = "words of the engine are lost, late and repeated",
	[FAULT_TORN] = "a checkpoint loses its end",
	[FAULT_CLOCK] = "somebody sets the clock",
	[FAULT_STALL] = "a thread of the daemon stands still",
};

/* So many in six hours. */
static const uint32_t usual[ITEM_KINDS] = {
	[ITEM_SUBMIT] = 170, [ITEM_JOB] = 50,   [ITEM_QUEUE] = 6,  [ITEM_TOKEN] = 8,
	[ITEM_READ] = 20,    [ITEM_NODE] = 10,  [FAULT_KILL] = 6,  [FAULT_POWER] = 2,
	[FAULT_CALL] = 4,    [FAULT_FULL] = 1,  [FAULT_NODE] = 3,  [FAULT_NOTICE] = 4,
	[FAULT_AWAY] = 4,    [FAULT_GPU] = 3,   [FAULT_RANK] = 10, [FAULT_LINK] = 3,
	[FAULT_TORN] = 5,    [FAULT_CLOCK] = 2, [FAULT_STALL] = 8,
};

static int item_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	return x->seed < y->seed ? -1 : x->seed > y->seed;
}

void script_make(struct whole *w, int64_t length_ms)
{
	struct sim_random random = { w->seed };

	w->plan_count = 0;
	for (uint32_t kind = 0; kind < ITEM_KINDS; kind++) {
		uint32_t count = (uint32_t)((int64_t)usual[kind] * length_ms / (6 * HOUR_MS));

		count += below(&random, 1 + count / 3);
		if (kind == FAULT_NOTICE && spot_is(w, SPOT_NODE))
			count *= 3; /* they go and come */
		for (uint32_t i = 0; i < count; i++) {
			CHECK(w->plan_count < PLAN_MAX);
			w->plan[w->plan_count++] = (struct item){
				.at_ms = 60000 +
					 (int64_t)(sim_random_next(&random) % (uint64_t)length_ms),
				.kind = (enum item_kind)kind,
				.seed = sim_random_next(&random),
			};
		}
	}
	qsort(w->plan, w->plan_count, sizeof(w->plan[0]), item_order);
}
