/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Example: a host of two NUMA nodes, each with 4 GPUs, 32 processors and a network card. Three tasks of 2 GPUs and 16
 * processors: GPUs would do for two tasks in each, processors for two. One task of 3 GPUs and 40 processors: the host has them,
 * but no NUMA node has 40: reason `alignment`.
 *
 * Rejected: to count the processors of tasks that are not aligned as parts of some NUMA node. Nobody pins them, so which one is
 * not known; the host's sum keeps all of them from being given twice.
 */
#include "core/placement/numa.h"

#include "base/check.h"
#include "core/placement/search.h"

static struct numa_room *rooms_of(const struct space *space, uint32_t rank)
{
	return space->numa_rooms.at + (size_t)rank * NUMA_MAX;
}

void numa_build(struct space *space, const struct facts *facts)
{
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct node *node =
			node_get(facts, (struct node_id){ space_at(space, rank)->node });

		if (!node->numa_gpus[0])
			continue;
		array_ensure(&space->numa_rooms.buf, (size_t)space->node_count * NUMA_MAX,
			     sizeof(struct numa_room));
		space->numa = true;
		for (uint32_t i = 0; i < NUMA_MAX && node->numa_gpus[i]; i++) {
			struct numa_room *room = rooms_of(space, rank) + i;

			room->gpus = node->numa_gpus[i] & space_at(space, rank)->all;
			room->nics = node->numa_nics[i];
			room->cpu_all = room->cpu_free = node->numa_cpu_milli[i]
								 ? (int64_t)node->numa_cpu_milli[i]
								 : SPACE_UNLIMITED;
		}
	}
}

static void room_log(struct space *space, size_t at)
{
	size_t room = space->numa_log.buf.size / sizeof(struct numa_undo);

	if (space->numa_log_count == room)
		array_resize(&space->numa_log.buf, room ? room * 2 : 64, sizeof(struct numa_undo));
	space->numa_log.at[space->numa_log_count++] =
		(struct numa_undo){ (uint32_t)at, space->numa_rooms.at[at].cpu_free };
}

/* The NUMA node of the first of these GPUs; NUMA_MAX = the host names none. */
static uint32_t room_of(const struct space *space, uint32_t rank, uint32_t gpus)
{
	const struct numa_room *rooms = rooms_of(space, rank);
	uint32_t i = 0;

	while (i < NUMA_MAX && !(rooms[i].gpus & gpus & -gpus))
		i++;
	return i;
}

uint8_t numa_change(struct space *space, uint32_t rank, const struct hold *hold, bool more)
{
	uint32_t i = hold->mask ? room_of(space, rank, hold->mask) : NUMA_MAX;
	size_t at = (size_t)rank * NUMA_MAX + i;

	if (i == NUMA_MAX)
		return 0;
	room_log(space, at);
	space->numa_rooms.at[at].cpu_free -= more ? hold->cpu_milli : -hold->cpu_milli;
	return 1;
}

uint8_t numa_clear(struct space *space, uint32_t rank)
{
	uint8_t entries = 0;

	for (uint32_t i = 0; i < NUMA_MAX; i++) {
		size_t at = (size_t)rank * NUMA_MAX + i;
		struct numa_room *room = &space->numa_rooms.at[at];

		if (room->cpu_free == room->cpu_all)
			continue;
		room_log(space, at);
		room->cpu_free = room->cpu_all;
		entries++;
	}
	return entries;
}

void numa_rollback(struct space *space, uint32_t entries)
{
	while (entries--) {
		const struct numa_undo *undo = &space->numa_log.at[--space->numa_log_count];

		space->numa_rooms.at[undo->at].cpu_free = undo->cpu_free;
	}
}

bool numa_is_short(const struct space *space, uint32_t rank, uint32_t gpus)
{
	uint32_t i = space->numa && gpus ? room_of(space, rank, gpus) : NUMA_MAX;

	return i < NUMA_MAX && rooms_of(space, rank)[i].cpu_free < 0;
}

bool numa_has_room(const struct space *space, uint32_t rank, uint32_t gpus,
		   const struct shape *shape)
{
	uint32_t i = space->numa ? room_of(space, rank, gpus) : NUMA_MAX;

	return i < NUMA_MAX && rooms_of(space, rank)[i].cpu_free >= (int64_t)shape->cpu_milli &&
	       (shape->align != ALIGN_NIC || rooms_of(space, rank)[i].nics);
}

static uint32_t room_tasks(const struct search *search, uint32_t rank, uint32_t i, uint32_t gpus)
{
	const struct numa_room *room = rooms_of(search->space, rank) + i;
	const struct shape *shape = search->shape;
	uint32_t free = place_node_free(space_at(search->space, rank)) & room->gpus & gpus;
	int64_t tasks = bits_count(free) / shape->gpus;

	if (!shape->gpus || (shape->align == ALIGN_NIC && !room->nics))
		return 0;
	if (shape->cpu_milli && room->cpu_free / shape->cpu_milli < tasks)
		tasks = room->cpu_free / shape->cpu_milli;
	return tasks > 0 ? (uint32_t)tasks : 0;
}

uint32_t numa_tasks(const struct search *search, uint32_t rank, uint32_t gpus)
{
	uint32_t tasks = 0;

	for (uint32_t i = 0; search->space->numa && i < NUMA_MAX; i++)
		tasks += room_tasks(search, rank, i, gpus);
	return tasks;
}

uint32_t numa_pick(const struct search *search, uint32_t rank, uint32_t gpus, uint32_t tasks,
		   uint32_t *ret_tasks)
{
	uint32_t best = NUMA_MAX, best_tasks = 0;

	for (uint32_t i = 0; i < NUMA_MAX; i++) {
		uint32_t here = room_tasks(search, rank, i, gpus);
		bool holds = here >= tasks, best_holds = best_tasks >= tasks;

		if (!here || (best < NUMA_MAX && (holds == best_holds ? (holds ? here >= best_tasks
									       : here <= best_tasks)
								      : best_holds)))
			continue;
		best = i;
		best_tasks = here;
	}
	CHECK(best < NUMA_MAX);
	*ret_tasks = best_tasks < tasks ? best_tasks : tasks;
	return rooms_of(search->space, rank)[best].gpus & gpus;
}
