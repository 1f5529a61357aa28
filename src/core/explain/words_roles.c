/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of unlike tasks in words: which role it is about, and what all of them want. */
#include <string.h>

#include "base/arena.h"
#include "core/explain/words.h"

struct words words_of_role(const struct words *w, uint32_t role, struct shape *room)
{
	struct words own = *w;

	shape_of_role(w->shape, role, room);
	own.shape = room;
	return own;
}

const char *words_role(const struct words *w, uint32_t role)
{
	return arena_printf(w->arena, "role \"%s\"", facts_name(w->facts, w->shape->role[role]));
}

/* "3 tasks (server: 1 without GPUs, worker: 2 of 1 GPU)". */
const char *words_roles(const struct words *w)
{
	const struct shape *shape = w->shape;
	const char *list = "";

	for (uint32_t i = 0; i < shape->role_count; i++)
		list = arena_printf(w->arena, "%s%s%s: %u %s%s", list, i ? ", " : "",
				    facts_name(w->facts, shape->role[i]), shape->role_min[i],
				    shape->role_gpus[i] ? "of " : "without GPUs",
				    shape->role_gpus[i] ? words_gpus(w, shape->role_gpus[i]) : "");
	return arena_printf(w->arena, "%u task%s (%s)", shape->tasks_min,
			    shape->tasks_min == 1 ? "" : "s", list);
}

/* How many and how large, and nothing else of the wish. */
struct shape shape_sizes(const struct shape *shape)
{
	struct shape sizes = { .tasks_min = shape->tasks_min,
			       .tasks_max = shape->tasks_min,
			       .gpus = shape->gpus,
			       .gpu_part = shape->gpu_part,
			       .gpu_part_mib = shape->gpu_part_mib,
			       .slice = shape->slice,
			       .role_count = shape->role_count };

	memcpy(sizes.role, shape->role, sizeof(sizes.role));
	memcpy(sizes.role_min, shape->role_min, sizeof(sizes.role_min));
	memcpy(sizes.role_max, shape->role_min, sizeof(sizes.role_max));
	memcpy(sizes.role_gpus, shape->role_gpus, sizeof(sizes.role_gpus));
	return sizes;
}

void shape_cpus_copy(struct shape *to, const struct shape *from)
{
	to->cpu_milli = from->cpu_milli;
	memcpy(to->role_cpu_milli, from->role_cpu_milli, sizeof(to->role_cpu_milli));
}

void shape_memory_copy(struct shape *to, const struct shape *from)
{
	to->memory_mib = from->memory_mib;
	memcpy(to->role_memory_mib, from->role_memory_mib, sizeof(to->role_memory_mib));
}

/* Of one role (from 1 on), or of all tasks. */
uint32_t *shape_number(struct shape *shape, enum change_kind kind, uint32_t role)
{
	if (kind == CHANGE_CPU)
		return role ? &shape->role_cpu_milli[role - 1] : &shape->cpu_milli;
	if (kind == CHANGE_RAM)
		return role ? &shape->role_memory_mib[role - 1] : &shape->memory_mib;
	if (kind == CHANGE_GPUS)
		return role ? &shape->role_gpus[role - 1] : &shape->gpus;
	return role ? &shape->role_min[role - 1] : &shape->tasks_min;
}

void shape_number_set(struct shape *shape, enum change_kind kind, uint32_t role, uint32_t value)
{
	*shape_number(shape, kind, role) = value;
	if (!shape->role_count) {
		shape->tasks_max = kind == CHANGE_TASKS ? value : shape->tasks_max;
		return;
	}
	for (uint32_t i = 0; !role && i < shape->role_count; i++)
		*shape_number(shape, kind, i + 1) = value;
	if (kind == CHANGE_TASKS)
		memcpy(shape->role_max, shape->role_min, sizeof(shape->role_max));
	shape_roles_sum(shape);
}

const char *words_share_summary(const struct words *w, const struct verdict *v)
{
	return arena_printf(
		w->arena,
		"finds room for %lld of %lld tasks%s: tasks of another role are on the other nodes that have what it asks for, and none of these has enough of it for both",
		(long long)v->have, (long long)v->need, w->never ? ", even when all is idle" : "");
}

const char *words_share_remedy(const struct words *w)
{
	return w->never
		       ? "asking for less in one of these roles, or more nodes that have it"
		       : "asking for less in one of these roles, or further nodes that have it free";
}
