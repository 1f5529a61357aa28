/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * NUMA nodes of a host: which of its GPUs, how many processors and network cards each has. A task that asks for it (`align`)
 * gets GPUs and processors of one of them. The space counts what aligned tasks hold of each; other tasks run anywhere on the host,
 * so the host's own sums count them.
 */
#include "core/placement/space.h"

struct search;

/* Reads the hosts. After the nodes are in the space. */
void numa_build(struct space *space, const struct facts *facts);
/* An aligned hold comes (more) or goes: entries of the log. */
uint8_t numa_change(struct space *space, uint32_t rank, const struct hold *hold, bool more);
uint8_t numa_clear(struct space *space, uint32_t rank); /* nothing is held */
void numa_rollback(struct space *space, uint32_t entries);
/* More of its processors is held and promised than it has: somebody who leaves still holds his. */
bool numa_is_short(const struct space *space, uint32_t rank, uint32_t gpus);
/* Whether an aligned task finds its processors beside these GPUs, which are those of one NUMA node. */
bool numa_has_room(const struct space *space, uint32_t rank, uint32_t gpus,
		   const struct shape *shape);

/* Tasks for which one NUMA node of the host after the other has room, all together, on these GPUs; at most as the search counts. */
uint32_t numa_tasks(const struct search *search, uint32_t rank, uint32_t gpus);
/* GPUs for the next task, and how many follow it there: those of the NUMA node that holds just all of `tasks`, else of the one that holds most. */
uint32_t numa_pick(const struct search *search, uint32_t rank, uint32_t gpus, uint32_t tasks,
		   uint32_t *ret_tasks);
