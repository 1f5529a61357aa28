/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing: which hosts of a domain that holds all tasks, and which GPUs of a host. */
#include "base/check.h"
#include "core/placement/numa.h"
#include "core/placement/search.h"
#include "core/placement/speed.h"

/* --- GPUs of one node --------------------------------------------------------------------------------- */

static uint32_t lowest_bits(uint32_t mask, uint32_t count)
{
	uint32_t lowest = 0;

	for (; count && mask; count--) {
		lowest |= mask & -mask;
		mask &= mask - 1;
	}
	return lowest;
}

uint32_t gpus_pick(const struct place_node *node, uint32_t from, uint32_t count)
{
	uint32_t picked = 0;

	while (count) {
		uint32_t best = 0, best_size = 0;

		for (uint32_t i = 0; i < node->island_count; i++) {
			uint32_t part = node->island[i] & from & ~picked, size = bits_count(part);
			bool holds = size >= count, best_holds = best_size >= count;

			if (!size)
				continue;
			if (!best_size || (holds && !best_holds) ||
			    (holds == best_holds &&
			     (holds ? size < best_size : size > best_size))) {
				best = part;
				best_size = size;
			}
		}
		CHECK(best_size > 0);
		best_size = best_size < count ? best_size : count;
		picked |= lowest_bits(best, best_size);
		count -= best_size;
	}
	return picked;
}

/* GPUs of one island that has room for so many aligned tasks, when they must lie in one; else all. */
static uint32_t island_of(const struct search *search, uint32_t rank, uint32_t tasks)
{
	const struct place_node *node = space_at(search->space, rank);

	for (uint32_t i = 0; search->shape->require == LEVEL_ISLAND && i < node->island_count; i++)
		if (numa_tasks(search, rank, node->island[i]) >= tasks)
			return node->island[i];
	return node->all;
}

/* The same for tasks that take GPUs and processors of one NUMA node each. */
static void aligned_fill(const struct search *search, uint32_t rank, uint32_t tasks,
			 struct placement *ret)
{
	const struct place_node *node = space_at(search->space, rank);
	uint32_t gpus = search->shape->gpus, open = island_of(search, rank, tasks);

	while (tasks) {
		uint32_t here = 0, room = numa_pick(search, rank, open, tasks, &here);
		uint32_t from = gpus_pick(node, place_node_free(node) & room, here * gpus);

		open &= ~room;
		tasks -= here;
		while (here--) {
			uint32_t mask = gpus_pick(node, from, gpus);

			from &= ~mask;
			ret->ranks[ret->count] = rank;
			ret->masks[ret->count++] = mask;
		}
	}
}

/* Adds `tasks` tasks on the node to the placement: together in one island where possible, then each. */
void node_fill(const struct search *search, uint32_t rank, uint32_t tasks, struct placement *ret)
{
	const struct place_node *node = space_at(search->space, rank);
	uint32_t gpus = search->shape->gpus, from;

	if (search->part) {
		part_node_fill(search, rank, tasks, ret);
		return;
	}
	if (search->shape->align && gpus) {
		aligned_fill(search, rank, tasks, ret);
		return;
	}
	from = gpus_pick(node, place_node_free(node), tasks * gpus);
	while (tasks--) {
		uint32_t mask = gpus_pick(node, from, gpus);

		from &= ~mask;
		ret->ranks[ret->count] = rank;
		ret->masks[ret->count++] = mask;
	}
}

/* --- drawing nodes ------------------------------------------------------------------------------------- */

static bool draw_add(struct draw *draw, uint32_t rank, uint32_t tasks)
{
	draw->ranks[draw->count] = rank;
	draw->tasks[draw->count++] = tasks;
	draw->rest -= tasks;
	return draw->rest > 0;
}

/* Nodes with exactly `free` GPUs free, by rank. True while more are wanted: `last` draws one node for all the rest. */
static bool draw_some(const struct search *search, struct draw *draw, uint32_t first, uint32_t end,
		      uint32_t free, uint32_t capacity, bool last)
{
	const struct space *space = search->space;
	uint32_t next[CLASSES_MAX], rank;
	uint64_t classes;

	for (classes = search->classes; classes; classes &= classes - 1) {
		uint32_t class = (uint32_t)__builtin_ctzll(classes);

		next[class] =
			bits_next(space_set(space, class, free), space->node_count, first, end);
	}
	for (;;) {
		uint32_t from = CLASSES_MAX;

		rank = end;
		for (classes = search->classes; classes; classes &= classes - 1) {
			uint32_t class = (uint32_t)__builtin_ctzll(classes);

			if (next[class] < rank) {
				rank = next[class];
				from = class;
			}
		}
		if (rank >= end)
			return true;
		next[from] =
			bits_next(space_set(space, from, free), space->node_count, rank + 1, end);
		if (search->used[rank / 64] >> rank % 64 & 1)
			continue;
		if (search->exact && (last ? node_capacity(search, rank) < draw->rest
					   : node_capacity(search, rank) != capacity))
			continue;
		search->used[rank / 64] |= UINT64_C(1) << rank % 64;
		if (!draw_add(draw, rank, last ? draw->rest : capacity) || last)
			return false;
		if (draw->rest < capacity || --draw->more == 0)
			return false;
	}
}

/* The same, with nodes that are liked before the others. */
static bool draw_free(const struct search *search, struct draw *draw, uint32_t first, uint32_t end,
		      uint32_t free, uint32_t capacity, bool last)
{
	if (search->liked) {
		struct search liked = *search;

		liked.only = search->liked;
		liked.exact = true;
		if (!draw_some(&liked, draw, first, end, free, capacity, last))
			return false;
	}
	return draw_some(search, draw, first, end, free, capacity, last);
}

/* Full hosts of this capacity, as long as the rest needs a whole one and more may be drawn. */
static void draw_full(const struct search *search, struct draw *draw, const struct domain *d,
		      uint32_t capacity)
{
	uint32_t gpus = search->part ? 0 : search->shape->gpus, max = search->space->gpus_max;
	uint32_t from = capacity * gpus, end = search->exact ? max + 1 : from + gpus;

	for (uint32_t free = from; free < end && free <= max && draw->rest >= capacity; free++)
		if (!draw_free(search, draw, d->first, d->end, free, capacity, false))
			break;
}

static void draw_last(const struct search *search, struct draw *draw, const struct domain *d)
{
	uint32_t max = search->space->gpus_max,
		 need = search->part ? 0 : draw->rest * search->shape->gpus;

	for (uint32_t i = need; i <= max; i++) {
		uint32_t free = search->scatter ? max - (i - need) : i;

		if (!draw_free(search, draw, d->first, d->end, free, 0, true))
			return;
	}
}

void draw_domain(const struct search *search, struct draw *draw, const struct domain *d,
		 uint32_t top)
{
	for (uint32_t capacity = top; capacity > 0 && draw->rest; capacity--) {
		draw->more = UINT32_MAX;
		if (draw->rest >= capacity)
			draw_full(search, draw, d, capacity);
		/* Where no single host holds the rest, smaller ones share it: 6 tasks on hosts that hold 4, 1, 1. */
		if (draw->rest && draw->rest < capacity)
			draw_last(search, draw, d);
	}
	CHECK(draw->rest == 0);
}

/* The hosts that were picked: all full, the smallest one takes the rest. */
static void draw_pick(const struct search *search, struct draw *draw, const struct domain *d,
		      const struct pick *pick)
{
	uint32_t smallest = 1;

	while (!pick->hosts[smallest])
		smallest++;
	for (uint32_t capacity = CAPACITY_MAX; capacity >= smallest; capacity--) {
		draw->more = pick->hosts[capacity] - (capacity == smallest);
		if (draw->more)
			draw_full(search, draw, d, capacity);
	}
	draw_last(search, draw, d);
	CHECK(draw->rest == 0);
}

/* Replicas: one per host while hosts last, the fullest hosts first, then a second round. */
static void draw_spread(const struct search *search, struct draw *draw, const struct domain *d,
			struct arena *arena)
{
	uint32_t max = search->space->gpus_max, span = d->end - d->first;
	uint32_t *ranks = arena_new_array(arena, uint32_t, span), count = 0;

	for (uint32_t i = 0; i <= max; i++) {
		uint32_t free = search->scatter ? max - i : i;

		for (uint32_t rank = d->first; rank < d->end; rank++)
			if (bits_count(place_node_free(space_at(search->space, rank))) == free &&
			    node_capacity(search, rank))
				ranks[count++] = rank;
	}
	for (uint32_t round = 1; draw->rest; round++) {
		uint32_t before = draw->rest;

		for (uint32_t i = 0; i < count && draw->rest; i++) {
			if (node_capacity(search, ranks[i]) < round)
				continue;
			if (round == 1)
				draw->ranks[draw->count++] = ranks[i];
			draw->tasks[round == 1 ? draw->count - 1 : i]++;
			draw->rest--;
		}
		CHECK(draw->rest < before);
	}
}

void placement_begin(const struct search *search, struct arena *arena, struct placement *ret)
{
	ret->count = 0;
	ret->which = NULL;
	ret->parts = ret->parts_mib = ret->slices = NULL;
	ret->ranks = arena_new_array(arena, uint32_t, search->tasks);
	ret->masks = arena_new_array(arena, uint32_t, search->tasks);
	if (!search->part)
		return;
	ret->parts = arena_new_array(arena, uint32_t, search->tasks);
	ret->parts_mib = arena_new_array(arena, uint32_t, search->tasks);
	if (search->slice)
		ret->slices = arena_new_array(arena, uint32_t, search->tasks);
}

static void draw_sort(struct draw *draw)
{
	for (uint32_t gap = draw->count / 2; gap > 0; gap /= 2) {
		for (uint32_t i = gap; i < draw->count; i++) {
			uint32_t rank = draw->ranks[i], tasks = draw->tasks[i], j = i;

			for (; j >= gap && draw->ranks[j - gap] > rank; j -= gap) {
				draw->ranks[j] = draw->ranks[j - gap];
				draw->tasks[j] = draw->tasks[j - gap];
			}
			draw->ranks[j] = rank;
			draw->tasks[j] = tasks;
		}
	}
}

void draw_begin(struct search *search, uint32_t domain, struct arena *arena, struct draw *ret)
{
	const struct domain *d = &search->space->domains.at[domain];
	uint32_t span = d->end - d->first, room = span < search->tasks ? span : search->tasks;

	*ret = (struct draw){ .rest = search->tasks };
	ret->ranks = arena_new_array(arena, uint32_t, room);
	ret->tasks = arena_new_array(arena, uint32_t, room);
	if (!search->shape->spread)
		search->used =
			arena_new_array(arena, uint64_t, bits_row(search->space->node_count));
}

void draw_place(struct search *search, uint32_t domain, struct draw *draw, struct arena *arena,
		struct placement *ret)
{
	search->used = NULL;
	draw_sort(draw);
	placement_begin(search, arena, ret);
	for (uint32_t i = 0; i < draw->count; i++)
		node_fill(search, draw->ranks[i], draw->tasks[i], ret);
	ret->domain = domain;
	ret->level = search->space->domains.at[domain].level;
}

/* The gang drawn in one go, and by the parts of the domain: the faster of both, of equal ones that on fewer hosts. */
static void faster_fill(struct search *search, uint32_t domain, uint32_t top, struct arena *arena,
			struct placement *ret)
{
	struct fabric_estimate plain, split;
	struct placement other;

	split_fill(search, domain, top, arena, &other);
	speed_estimate(search->space, ret, arena, &plain);
	speed_estimate(search->space, &other, arena, &split);
	if (speed_step(split.mbps) > speed_step(plain.mbps) ||
	    (speed_step(split.mbps) == speed_step(plain.mbps) && split.hosts <= plain.hosts))
		*ret = other;
}

void domain_fill(struct search *search, uint32_t domain, const struct fit *fit, struct arena *arena,
		 struct placement *ret)
{
	const struct domain *d = &search->space->domains.at[domain];
	struct pick pick;
	struct draw draw;

	draw_begin(search, domain, arena, &draw);
	if (search->shape->spread) {
		draw_spread(search, &draw, d, arena);
	} else if (hosts_matter(search)) {
		hosts_pick(search, domain, fit->hosts, &pick);
		draw_pick(search, &draw, d, &pick);
	} else {
		draw_domain(search, &draw, d, fit->top);
	}
	draw_place(search, domain, &draw, arena, ret);
	if (search->talks && !search->scatter && !search->shape->spread &&
	    d->level < search->space->level_count)
		faster_fill(search, domain, fit->top, arena, ret);
}
