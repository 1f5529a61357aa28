/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spot nodes: in half of the seeds two of the nodes may be taken away at any time, and are, mostly with a notice. The engine tells of them as one
 * with a cluster of its own does: whether they are there, and that they are spot nodes. Jobs that make checkpoints ask for them, or
 * leave it to Fairlead and say by when they must be done (docs/decisions/0018).
 */
#include "base/buf.h"
#include "base/check.h"
#include "cluster.h"

enum { OTHER_SPOT_NODE = 3 };

bool spot_is(const struct whole *w, uint32_t node)
{
	return w->seed & 2 && (node == SPOT_NODE || node == OTHER_SPOT_NODE);
}

uint32_t spot_goes(const struct whole *w, uint32_t node, uint64_t seed)
{
	struct sim_random random = { seed ^ 0x5907 };

	if (!spot_is(w, SPOT_NODE) || one_in(&random, 4))
		return node;
	return one_in(&random, 2) ? SPOT_NODE : OTHER_SPOT_NODE;
}

void cluster_tell_nodes(struct cluster *c)
{
	const struct nodes_found *found = cluster_nodes();

	for (uint32_t n = 0; n < found->count && c->engine_open && !c->w->dead; n++) {
		const struct node_found *node = &found->nodes[n];
		struct engine_node told = { .gpus = (uint32_t)node->gpu_count,
					    .product = "NVIDIA H100 80GB HBM3",
					    .gpu_memory_mib = node->gpu_memory_mib,
					    .cpu_milli = node->cpu_milli,
					    .ram_mib = node->ram_mib,
					    .gone = c->nodes[n].dead && c->nodes[n].removed,
					    .ready = !c->nodes[n].dead,
					    .reason = "Kubernetes: the node is not ready",
					    .spot = true };

		if (!spot_is(c->w, n))
			continue;
		snprintf(told.name, sizeof(told.name), "%s", node->name);
		snprintf(told.driver, sizeof(told.driver), "%s", node->driver);
		c->node(c->context, &told);
	}
}

/* Those that ask for spot nodes alone must fit on them. */
void spot_wish(const struct whole *w, struct sim_random *random, bool batch, bool small,
	       struct buf *body)
{
	if (!spot_is(w, SPOT_NODE))
		return;
	if (one_in(random, 2)) {
		buf_addf(body, ",\"deadline\":\"%um\"", 20 + below(random, 400));
		if (batch)
			buf_adds(body, ",\"capacity\":\"any\"");
	} else if (small && one_in(random, 3)) {
		buf_adds(body, ",\"capacity\":\"spot\"");
	}
}

uint64_t spot_learned(const struct facts *facts)
{
	uint64_t sum = 0;

	for (uint32_t row = 1; row <= facts->pools.count; row++) {
		const struct pool *pool = table_get(&facts->pools, row);

		sum += pool->there + pool->away;
	}
	return sum;
}
