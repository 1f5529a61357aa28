/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The typical wishes: what jobs that wait or run ask for of one node, and how often. From them follows how much of what is open
 * of a node is a fragment: of no use for what people ask for.
 *
 *	a node with one GPU free, 0.4 of another open, and 1 CPU free; asked for as often:
 *	0.3 of a GPU with 1 CPU		takes either				fragment 0
 *	a GPU with 1 CPU		cannot use the 0.4			fragment 0.4
 *	a GPU with 8 CPUs		does not fit here			fragment 1.4
 *	expected: (0 + 0.4 + 1.4) / 3 = 0.6
 *
 * A task that may go to several nodes goes to the one of which the expected fragment grows least (fragment.c). The measure is that of
 * Weng et al., "Beware of Fragmentation" (USENIX ATC 2023); there the wishes come from a trace, here from the jobs of the moment.
 *
 * At most DEMAND_WISHES wishes count, the most frequent ones, by tasks; of several that are equally frequent all or none. Gangs of unlike tasks do not count. Where all
 * ask for whole GPUs and nothing else, or all for the same, nothing is measured: the tightest fit says as much.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/model/ids.h"

struct arena;
struct facts;
struct space;

enum { DEMAND_WISHES = 64, DEMAND_WEIGHT = 4096, DEMAND_MANY = 100, DEMAND_CLASSES = 64 };

struct demand_wish {
	uint64_t classes; /* of nodes that do */
	int64_t cpu_milli, ram_mib;
	uint32_t gpus, part, part_mib; /* as in struct shape */
	uint32_t weight; /* in 1/DEMAND_WEIGHT of all that count */
};

/* What the wishes are on nodes of one class, side by side for a loop over all. */
struct demand_row {
	int32_t runs[DEMAND_WISHES]; /* -1 = on such nodes, 0 = not */
	int32_t share[DEMAND_WISHES]; /* of a GPU, 0 for whole ones */
};

/* What wishes that accept the same classes ask for together, in GPU shares times their weight. */
struct demand_group {
	uint64_t classes;
	int64_t amount;
};

/* The wishes have slots, in no order: one that counts again keeps its own, so that little is computed anew. */
struct demand {
	uint32_t count; /* 0 = nothing is measured */
	bool many; /* DEMAND_MANY tasks or more ask for them: enough to say what comes next */
	int32_t all; /* weight of all wishes */
	uint32_t shapes[DEMAND_WISHES]; /* by slot, the shape that was last in it; 0 = none yet */
	struct demand_wish wishes[DEMAND_WISHES]; /* weight 0 = does not count now */
	int32_t weight[DEMAND_WISHES], whole[DEMAND_WISHES]; /* whole: 0 for parts of GPUs */
	int32_t cpu_milli[DEMAND_WISHES], ram_mib[DEMAND_WISHES], gpus[DEMAND_WISHES];
	struct demand_row rows[DEMAND_CLASSES]; /* by class of nodes */
	struct demand_group groups[DEMAND_WISHES];
	uint32_t group_count;
	int64_t amount; /* of all sets */
};

/* The demand of the space from how many jobs of each shape there are, by shape id; `count` numbers. About 20 ns for each shape. */
void demand_set(struct space *space, const struct facts *facts, const uint32_t *jobs,
		uint32_t count, struct arena *arena);
/* The wishes on nodes of the class, with GPUs of so much memory. */
void demand_row_make(const struct demand *demand, uint32_t class, uint32_t gpu_memory_mib,
		     struct demand_row *ret);
/* Expected fragment of the node, in GPU shares; 0 when nothing is measured or the node takes no work. */
int64_t demand_fragment(const struct space *space, uint32_t rank);
/* The same of all nodes, from the facts alone: into ret[node id - 1]. For readers; it walks all jobs and builds a space, some
 * 10 ms for 100,000 GPUs. */
void demand_fragments(const struct facts *facts, struct arena *arena, int64_t *ret);
