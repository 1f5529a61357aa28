/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods of several roles on one node. The core places them by their GPUs and by masks, so a node is enough for two roles where it has what they ask
 * for however the core fills it up: of each resource the most that may be asked for there.
 *
 *	node of 8 GPUs, 8 of rdma/hca; worker: 8 tasks of 1 GPU, 1 each; cache: 1 task without GPUs, 1 each	9 may be asked for: not enough
 *	the same with cache: 1 task of 1 GPU									8, for its GPUs are enough for no more
 *
 * GPUs are given to those first that ask for most of the resource for each GPU; of the first role that not all tasks find GPUs for, a task that a part
 * of its GPUs is left for counts too. So what comes of it is never too little.
 */
#include <string.h>

#include "engine/kubernetes/authority.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/devices/devices.h"

/* Where single ranks come, the GPUs that others of their job hold are no place for them: nor is what those have beside. */
static int64_t node_gpus(struct engine *engine, const struct mask *mask, const char *name)
{
	struct node_entry *entry = NULL;
	const struct gpu_table *table;
	int64_t gpus;

	HASH_FIND_STR(engine->nodes, name, entry);
	if (!entry || !entry->node)
		return 0;
	table = entry->node->room.gpus ? NULL : devices_gpus(engine, name);
	gpus = table ? table->count : entry->node->room.gpus;
	return gpus - (mask->own_changes ? holders_gpus(entry) : 0);
}

uint32_t own_times(struct engine *engine, const struct mask *mask, uint32_t kind, const char *node)
{
	const struct own_pods *pods = &mask->own[kind];
	int64_t times = pods->gpus ? node_gpus(engine, mask, node) / pods->gpus : pods->tasks;

	times = times > pods->tasks ? pods->tasks : times;
	return times < 1 ? 1 : (uint32_t)times;
}

/* Does a ask for more of it than b, for each GPU? No node has so many GPUs that a product were too large. */
static bool asks_more(const struct own_part *a, const struct own_part *b)
{
	return a->need * b->gpus > b->need * a->gpus;
}

int64_t own_most_asked(struct own_part *parts, uint32_t count, int64_t gpus)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = i;
		int64_t tasks, more;

		for (uint32_t k = i + 1; k < count; k++)
			if (asks_more(&parts[k], &parts[first]))
				first = k;
		const struct own_part part = parts[first];

		parts[first] = parts[i];
		tasks = !part.gpus ? part.tasks : gpus > 0 ? gpus / part.gpus : 0;
		if (tasks >= part.tasks) {
			tasks = part.tasks;
			gpus -= tasks * part.gpus;
		} else {
			tasks += gpus > 0 && gpus % part.gpus; /* as if it were whole */
			gpus = 0;
		}
		if (__builtin_mul_overflow(tasks, part.need, &more) ||
		    __builtin_add_overflow(sum, more, &sum))
			return INT64_MAX;
	}
	return sum;
}

static bool is_enough(struct engine *engine, const struct mask *mask, const char *node,
		      const char *name, const char *const *counted)
{
	struct own_part parts[MASK_KINDS_MAX];

	for (uint32_t i = 0; i < mask->own_count; i++)
		parts[i] = (struct own_part){ predicates_need(mask->own[i].pod, name),
					      mask->own[i].gpus, mask->own[i].tasks };
	return own_most_asked(parts, mask->own_count, node_gpus(engine, mask, node)) <=
	       predicates_left(&engine->known, node, name, counted);
}

bool own_fit_together(struct engine *engine, const struct mask *mask, const char *node,
		      const char *const *counted)
{
	if (!is_enough(engine, mask, node, "pods", counted))
		return false;
	for (uint32_t i = 0; i < mask->own_count; i++)
		PLACED_EACH(mask->own[i].pod, placed_amount, wish, mask->own[i].pod->requests)
		{
			if (!is_enough(engine, mask, node,
				       placed_text(mask->own[i].pod, wish->name), counted))
				return false;
		}
	return true;
}
