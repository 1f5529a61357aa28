/* SPDX-License-Identifier: Apache-2.0 */
#include "core/placement/speed.h"

#include <string.h>

#include "base/check.h"
#include "core/fabric/known.h"
#include "core/model/roles.h"

/* --- building -------------------------------------------------------------------------------------------- */

void speed_begin(struct space *space, const struct facts *facts)
{
	if (!fabric_is_known(facts))
		return;
	array_resize(&space->fabric.buf, 1, sizeof(struct fabric));
	fabric_of_facts(facts, space->fabric.at);
}

uint32_t speed_make(struct space *space, const struct facts *facts, const struct node *node)
{
	struct fabric_host host;
	uint16_t row = 0;

	if (!space_fabric(space))
		return 0;
	fabric_host_of(facts, node, &host);
	if (fabric_host_add(space->fabric.at, &host, &row) == FABRIC_FULL)
		row = FABRIC_HOSTS_MAX - 1; /* the last one stands for all others */
	return row;
}

/* Hosts of each make in the domain; the most of any domain are remembered. */
static void domain_note(struct space *space, const struct domain *d)
{
	struct fabric *fabric = space->fabric.at;
	bool alone = d->level && d->level == fabric->level_count &&
		     fabric->level[d->level].nvlink && !d->name.v;
	uint32_t hosts[FABRIC_HOSTS_MAX] = { 0 };

	for (uint32_t rank = d->first; rank < d->end; rank++)
		hosts[space_at(space, rank)->make]++;
	for (uint32_t make = 0; make < fabric->host_count; make++) {
		if (alone && hosts[make])
			hosts[make] = 1; /* who names no NVLink domain is in none */
		if (hosts[make] > fabric->most[make][d->level])
			fabric->most[make][d->level] = hosts[make];
	}
}

void speed_settle(struct space *space)
{
	if (!space_fabric(space))
		return;
	for (uint32_t i = 0; i < space->domain_count; i++)
		domain_note(space, &space->domains.at[i]);
	fabric_settle(space->fabric.at);
}

/* --- choosing -------------------------------------------------------------------------------------------- */

uint32_t speed_step(uint64_t mbps)
{
	uint32_t log;

	if (mbps < 16)
		return (uint32_t)mbps;
	log = 63 - (uint32_t)__builtin_clzll(mbps);
	return log * 8 + (uint32_t)(mbps >> (log - 3) & 7);
}

static bool wish_talks(const struct shape *shape, uint32_t tasks)
{
	return !shape_is_part(shape) && !shape->role_count && (uint64_t)tasks * shape->gpus > 1 &&
	       !(shape->spread && tasks > 1);
}

const struct fabric *speed_fabric(const struct search *search)
{
	return wish_talks(search->shape, search->tasks) ? space_fabric(search->space) : NULL;
}

static uint32_t class_make(const struct space *space, uint32_t class)
{
	return space->traits.at[class].make;
}

/* The nodes of the mixed class are built in all ways. */
static uint32_t class_step(const struct search *search, uint32_t class, uint8_t level)
{
	const struct fabric *fabric = search->space->fabric.at;
	uint32_t make = class_make(search->space, class);
	struct fabric_estimate here, inside;

	if (class == CLASS_MIXED)
		return 0;
	fabric_make_estimate(fabric, level, make, search->tasks, search->shape->gpus, &here);
	if (level == LEVEL_NODE) {
		fabric_make_estimate(fabric, LEVEL_ISLAND, make, search->tasks, search->shape->gpus,
				     &inside);
		here = inside.mbps > here.mbps ? inside : here;
	}
	return speed_step(here.mbps);
}

static bool all_alike(const struct search *search)
{
	uint32_t first = (uint32_t)__builtin_ctzll(search->classes);

	for (uint64_t rest = search->classes; rest; rest &= rest - 1)
		if (class_make(search->space, (uint32_t)__builtin_ctzll(rest)) !=
		    class_make(search->space, first))
			return false;
	return true;
}

uint32_t speed_groups(const struct search *search, uint8_t level, uint64_t ret[SPEED_GROUPS_MAX])
{
	uint32_t step[CLASSES_MAX], count = 0;
	uint64_t in = 0;

	ret[0] = search->classes;
	if (!search->talks || !search->classes || all_alike(search))
		return 1;
	for (uint64_t rest = search->classes; rest; rest &= rest - 1) {
		uint32_t class = (uint32_t)__builtin_ctzll(rest);

		step[class] = class_step(search, class, level);
	}
	while (in != search->classes) {
		uint32_t most = 0;

		for (uint64_t rest = search->classes & ~in; rest; rest &= rest - 1)
			if (step[__builtin_ctzll(rest)] > most)
				most = step[__builtin_ctzll(rest)];
		for (uint64_t rest = search->classes & ~in; rest; rest &= rest - 1)
			if (step[__builtin_ctzll(rest)] == most)
				in |= rest & -rest;
		if (count == SPEED_GROUPS_MAX - 1)
			in = search->classes;
		ret[count++] = in;
	}
	return count;
}

uint64_t speed_out_mbps(const struct search *search, uint32_t gpus)
{
	const struct fabric *fabric = search->space->fabric.at;
	uint64_t least = UINT64_MAX;

	for (uint64_t rest = search->classes; rest; rest &= rest - 1) {
		const struct fabric_host *host =
			&fabric->host[class_make(search->space, (uint32_t)__builtin_ctzll(rest))];
		uint64_t out = fabric_host_out_mbps(host, gpus < host->gpus ? gpus : host->gpus);

		least = out < least ? out : least;
	}
	return least;
}

uint64_t speed_linked_mbps(const struct search *search)
{
	const struct fabric *fabric = search->space->fabric.at;
	uint64_t least = UINT64_MAX;

	for (uint64_t rest = search->classes; rest; rest &= rest - 1) {
		const struct fabric_host *host =
			&fabric->host[class_make(search->space, (uint32_t)__builtin_ctzll(rest))];

		least = host->nvlink_mbps < least ? host->nvlink_mbps : least;
	}
	return least;
}

/* --- a place ------------------------------------------------------------------------------------------------- */

static void part_begin(const struct space *space, uint32_t rank, struct fabric_part *ret)
{
	const struct place_node *node = space_at(space, rank);
	const struct fabric *fabric = space->fabric.at;

	ret->host = (uint16_t)node->make;
	for (uint32_t l = 1; l <= fabric->level_count; l++)
		ret->domain[l] = space->domains.at[node->domain[l]].name.v ||
						 !(l == fabric->level_count && fabric->domains)
					 ? node->domain[l] + 1
					 : 0;
}

/* Tasks of one node stand together, and nodes in their order. */
void speed_estimate(const struct space *space, const struct placement *placement,
		    struct arena *arena, struct fabric_estimate *ret)
{
	struct fabric_part *parts = arena_new_array(arena, struct fabric_part, placement->count);
	uint32_t count = 0;

	for (uint32_t i = 0; i < placement->count; i++) {
		if (i == 0 || placement->ranks[i] != placement->ranks[i - 1])
			part_begin(space, placement->ranks[i], &parts[count++]);
		parts[count - 1].gpu_mask |= placement->masks[i];
	}
	fabric_set(space->fabric.at, parts, count, ret);
}

void speed_best(const struct space *space, const struct shape *shape, uint32_t tasks,
		struct fabric_estimate *ret)
{
	const struct fabric *fabric = space->fabric.at;
	uint32_t makes = 0; /* bits: those that serve the wish */
	struct fabric_estimate here;

	*ret = (struct fabric_estimate){ .bound = FABRIC_BOUND_NONE };
	for (uint32_t i = 0; i < space->traits_count; i++)
		if (traits_suit(&space->traits.at[i], shape))
			makes |= UINT32_C(1) << space->traits.at[i].make;
	for (; makes; makes &= makes - 1) {
		uint32_t make = (uint32_t)__builtin_ctz(makes);

		for (uint32_t l = 0; l <= LEVEL_ISLAND;
		     l = l == fabric->level_count ? LEVEL_NODE : l + 1) {
			fabric_make_estimate(fabric, (uint8_t)l, make, tasks, shape->gpus, &here);
			if (here.mbps > ret->mbps)
				*ret = here;
		}
	}
}

bool speed_suffices(struct search *search, const struct placement *placement, struct arena *arena)
{
	static const struct fabric_load unknown;
	const struct shape *shape = search->shape;
	struct fabric_estimate best, here;
	uint32_t slowdown;

	if (!search->talks || !shape->max_slowdown)
		return true;
	speed_best(search->space, shape, search->tasks, &best);
	speed_estimate(search->space, placement, arena, &here);
	slowdown = fabric_slowdown_milli(&best, &here, &unknown, (uint8_t)(shape->talks - 1));
	if (!search->slowdown || slowdown < search->slowdown)
		search->slowdown = slowdown;
	return slowdown <= 1000 + shape->max_slowdown;
}

uint32_t speed_widest_role(const struct shape *shape, uint32_t tasks)
{
	uint32_t best = 0;
	uint64_t most = 0;

	for (uint32_t role = 0; role < shape->role_count; role++) {
		uint64_t gpus =
			(uint64_t)shape_role_tasks(shape, tasks, role) * shape->role_gpus[role];

		if (gpus > most) {
			most = gpus;
			best = role;
		}
	}
	return best;
}

/* The tasks of one role as a wish and a place of their own, by node: a role may have tasks in front of and behind those of others. */
static void role_alone(const struct shape *shape, const struct placement *placement, uint32_t role,
		       struct arena *arena, struct shape *ret_shape, struct placement *ret)
{
	*ret_shape = *shape;
	ret_shape->role_count = 0;
	ret_shape->gpus = shape->role_gpus[role];
	*ret = *placement;
	ret->ranks = arena_new_array(arena, uint32_t, placement->count + 1);
	ret->masks = arena_new_array(arena, uint32_t, placement->count + 1);
	ret->count = 0;
	for (uint32_t i = 0; i < placement->count; i++) {
		uint32_t at = ret->count;

		if (shape_role(shape, i) != role)
			continue;
		for (; at > 0 && ret->ranks[at - 1] > placement->ranks[i]; at--) {
			ret->ranks[at] = ret->ranks[at - 1];
			ret->masks[at] = ret->masks[at - 1];
		}
		ret->ranks[at] = placement->ranks[i];
		ret->masks[at] = placement->masks[i];
		ret->count++;
	}
	ret_shape->tasks_min = ret_shape->tasks_max = ret->count;
}

bool place_speed(const struct space *space, const struct shape *shape, uint8_t kind,
		 const struct placement *placement, struct arena *arena, struct place_speed *ret)
{
	static const struct fabric_load unknown;
	struct fabric_estimate best, here;
	struct placement its;
	struct shape alone;

	*ret = (struct place_speed){ 0 };
	if (space_fabric(space) && shape->role_count) {
		role_alone(shape, placement, speed_widest_role(shape, placement->count), arena,
			   &alone, &its);
		shape = &alone;
		placement = &its;
	}
	if (!space_fabric(space) || !wish_talks(shape, placement->count))
		return false;
	speed_best(space, shape, placement->count, &best);
	speed_estimate(space, placement, arena, &here);
	if (!here.mbps)
		return false;
	ret->bandwidth_mbps = here.mbps;
	ret->slowdown_permille = fabric_slowdown_milli(&best, &here, &unknown, kind);
	return true;
}
