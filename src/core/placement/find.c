/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search. A host's capacity for a wish is how many of its tasks fit there. For a domain the capacities give a
 * small histogram (hosts with capacity 1, 2, ... 32), from the space's counts when only GPUs are asked for, else from
 * a look at each node. From the histogram alone follow
 *
 *	fit	does it hold all tasks: sum of capacities
 *	hosts	the fewest hosts that hold them: the largest first
 *	top	the smallest "largest host used" that still gives the fewest hosts, so that whole hosts stay whole
 *
 *	example: 9 tasks; hosts that hold 8, 8, 5, 4, 3.  Two hosts are enough (8 + 8). The smallest top with two hosts is
 *	5 (5 + 4 = 9): the two whole hosts stay whole.
 *
 * Domains of one level are compared by (hosts, top, free GPUs, first rank); then nodes are drawn: full ones from
 * top downwards, the last one the tightest that holds the rest.
 */
#include "core/placement/find.h"

#include <string.h>

#include "base/check.h"

enum { CAPACITY_MAX = 32 };

struct search {
	const struct space *space;
	const struct shape *shape;
	uint32_t tasks;
	uint64_t classes;
	bool exact; /* each node must be looked at */
	bool scatter;
	uint64_t *used; /* ranks drawn so far, one bit each; only while drawing */
};

/* Hosts of a domain by capacity; a capacity above CAPACITY_MAX counts as CAPACITY_MAX. */
struct histogram {
	uint32_t hosts[CAPACITY_MAX + 1];
};

struct fit {
	uint32_t hosts, top;
	int64_t free;
};

static bool search_begin(struct search *search, const struct space *space,
			 const struct place_request *request)
{
	const struct shape *shape = request->shape;

	*search = (struct search){
		.space = space, .shape = shape, .tasks = request->tasks, .scatter = request->scatter
	};
	if (!space_classes_of(space, shape, &search->classes))
		return false;
	search->classes &= ~request->closed;
	search->exact = shape->gpus == 0 || shape->cpu_milli || shape->memory_mib ||
			search->classes >> CLASS_MIXED & 1 || shape->require == LEVEL_ISLAND;
	return true;
}

/* --- capacity of a node ----------------------------------------------------------------------------- */

/* The mixed class holds unlike nodes: each is asked itself. */
static bool node_suits(const struct search *search, uint32_t rank)
{
	const struct place_node *node = space_at(search->space, rank);

	return node->ready && search->classes >> node->class & 1 &&
	       (node->class != CLASS_MIXED || space_node_suits(search->space, rank, search->shape));
}

static uint32_t node_gpu_tasks(const struct search *search, const struct place_node *node)
{
	uint32_t free = place_node_free(node), best = 0;

	if (search->shape->gpus == 0)
		return CAPACITY_MAX;
	if (search->shape->require != LEVEL_ISLAND)
		return bits_count(free) / search->shape->gpus;
	for (uint32_t i = 0; i < node->island_count; i++) {
		uint32_t tasks = bits_count(free & node->island[i]) / search->shape->gpus;

		best = tasks > best ? tasks : best;
	}
	return best;
}

static uint32_t node_capacity(const struct search *search, uint32_t rank)
{
	const struct place_node *node = space_at(search->space, rank);
	const struct shape *shape = search->shape;
	int64_t tasks;

	if (!node_suits(search, rank))
		return 0;
	tasks = node_gpu_tasks(search, node);
	if (shape->cpu_milli && node->cpu_free / shape->cpu_milli < tasks)
		tasks = node->cpu_free / shape->cpu_milli;
	if (shape->memory_mib && node->ram_free / shape->memory_mib < tasks)
		tasks = node->ram_free / shape->memory_mib;
	return tasks > 0 ? (uint32_t)tasks : 0;
}

/* --- what a domain holds ------------------------------------------------------------------------------ */

static void histogram_fast(const struct search *search, uint32_t domain, struct histogram *ret)
{
	uint32_t gpus = search->shape->gpus;

	for (uint64_t classes = search->classes; classes; classes &= classes - 1) {
		const uint32_t *counts =
			space_counts(search->space, domain, (uint32_t)__builtin_ctzll(classes));

		for (uint32_t free = gpus; free <= search->space->gpus_max; free++)
			ret->hosts[free / gpus] += counts[free];
	}
}

static void histogram_make(const struct search *search, uint32_t domain, struct histogram *ret)
{
	const struct domain *d = &search->space->domains.at[domain];

	memset(ret, 0, sizeof(*ret));
	if (!search->exact) {
		histogram_fast(search, domain, ret);
		return;
	}
	for (uint32_t rank = d->first; rank < d->end; rank++)
		ret->hosts[node_capacity(search, rank)]++;
	ret->hosts[0] = 0;
}

static uint64_t histogram_tasks(const struct histogram *histogram)
{
	uint64_t tasks = 0;

	for (uint32_t c = 1; c <= CAPACITY_MAX; c++)
		tasks += (uint64_t)histogram->hosts[c] * c;
	return tasks;
}

/* Fewest hosts of capacity at most `top`; 0 = they do not hold all. */
static uint32_t histogram_hosts(const struct histogram *histogram, uint32_t top, uint32_t tasks)
{
	uint32_t hosts = 0;

	for (uint32_t c = top; c > 0; c--) {
		uint64_t holds = (uint64_t)histogram->hosts[c] * c;

		if (holds >= tasks)
			return hosts + (tasks + c - 1) / c;
		tasks -= (uint32_t)holds;
		hosts += histogram->hosts[c];
	}
	return 0;
}

static bool histogram_fit(const struct histogram *histogram, uint32_t tasks, struct fit *ret)
{
	uint32_t top = CAPACITY_MAX;

	ret->hosts = histogram_hosts(histogram, CAPACITY_MAX, tasks);
	if (!ret->hosts)
		return false;
	while (top > 1 && histogram_hosts(histogram, top - 1, tasks) == ret->hosts)
		top--;
	ret->top = top;
	return true;
}

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

/* `count` GPUs out of `from`: the tightest island that holds them, else the fullest islands first. */
static uint32_t gpus_pick(const struct place_node *node, uint32_t from, uint32_t count)
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

/* Adds `tasks` tasks on the node to the placement: together in one island where possible, then each. */
static void node_fill(const struct search *search, uint32_t rank, uint32_t tasks,
		      struct placement *ret)
{
	const struct place_node *node = space_at(search->space, rank);
	uint32_t gpus = search->shape->gpus,
		 from = gpus_pick(node, place_node_free(node), tasks * gpus);

	while (tasks--) {
		uint32_t mask = gpus_pick(node, from, gpus);

		from &= ~mask;
		ret->ranks[ret->count] = rank;
		ret->masks[ret->count++] = mask;
	}
}

/* --- drawing nodes ------------------------------------------------------------------------------------- */

/* What was drawn: nodes and how many tasks each; `rest` tasks are still without a node. */
struct draw {
	uint32_t *ranks, *tasks;
	uint32_t count, rest;
};

static bool draw_add(struct draw *draw, uint32_t rank, uint32_t tasks)
{
	draw->ranks[draw->count] = rank;
	draw->tasks[draw->count++] = tasks;
	draw->rest -= tasks;
	return draw->rest > 0;
}

/* Nodes with exactly `free` GPUs free, by rank. True while more are wanted: `last` draws one node for all the rest. */
static bool draw_free(const struct search *search, struct draw *draw, uint32_t first, uint32_t end,
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
		if (draw->rest < capacity)
			return false;
	}
}

/* Full hosts of this capacity, as long as the rest needs a whole one. */
static void draw_full(const struct search *search, struct draw *draw, const struct domain *d,
		      uint32_t capacity)
{
	uint32_t gpus = search->shape->gpus, max = search->space->gpus_max;
	uint32_t from = capacity * gpus, end = search->exact ? max + 1 : from + gpus;

	for (uint32_t free = from; free < end && free <= max && draw->rest >= capacity; free++)
		if (!draw_free(search, draw, d->first, d->end, free, capacity, false))
			break;
}

static void draw_last(const struct search *search, struct draw *draw, const struct domain *d)
{
	uint32_t max = search->space->gpus_max, need = draw->rest * search->shape->gpus;

	for (uint32_t i = need; i <= max; i++) {
		uint32_t free = search->scatter ? max - (i - need) : i;

		if (!draw_free(search, draw, d->first, d->end, free, 0, true))
			return;
	}
}

static void draw_domain(const struct search *search, struct draw *draw, const struct domain *d,
			uint32_t top)
{
	for (uint32_t capacity = top; capacity > 0 && draw->rest; capacity--) {
		if (draw->rest >= capacity)
			draw_full(search, draw, d, capacity);
		/* Where no single host holds the rest, smaller ones share it: 6 tasks on hosts that hold 4, 1, 1. */
		if (draw->rest && draw->rest < capacity)
			draw_last(search, draw, d);
	}
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

/* --- search --------------------------------------------------------------------------------------------- */

/* GPUs free in the tightest island of the node that holds `gpus`; UINT32_MAX = none does. */
static uint32_t island_tightest(const struct place_node *node, uint32_t gpus)
{
	uint32_t best = UINT32_MAX, free = place_node_free(node);

	for (uint32_t i = 0; i < node->island_count; i++) {
		uint32_t size = bits_count(free & node->island[i]);

		if (size >= gpus && size < best)
			best = size;
	}
	return best;
}

/* The lowest rank in [first, end) with exactly `free` GPUs free that holds all tasks; `end` = none. */
static uint32_t one_node_lowest(const struct search *search, uint32_t first, uint32_t end,
				uint32_t free)
{
	const struct space *space = search->space;

	for (uint64_t classes = search->classes; classes; classes &= classes - 1) {
		const uint64_t *set = space_set(space, (uint32_t)__builtin_ctzll(classes), free);
		uint32_t rank = bits_next(set, space->node_count, first, end);

		while (search->exact && rank < end && node_capacity(search, rank) < search->tasks)
			rank = bits_next(set, space->node_count, rank + 1, end);
		end = rank;
	}
	return end;
}

/* All tasks in one island: the tightest island, then the tightest node. Looks at each node; only for nodes with
 * more than one island. */
static int32_t one_island_find(const struct search *search, uint32_t first, uint32_t end)
{
	uint32_t need = search->tasks * search->shape->gpus, best_island = UINT32_MAX,
		 best_free = UINT32_MAX;
	int32_t best = RANK_NONE;

	for (uint32_t rank = first; rank < end; rank++) {
		const struct place_node *node = space_at(search->space, rank);
		uint32_t island, free;

		if (node_capacity(search, rank) < search->tasks)
			continue;
		island = island_tightest(node, need);
		free = bits_count(place_node_free(node));
		if (island < best_island ||
		    (island == best_island && island != UINT32_MAX && free < best_free)) {
			best = (int32_t)rank;
			best_island = island;
			best_free = free;
		}
	}
	return best;
}

/* All tasks on one node of [first, end): in one island if there is one, else on the tightest node. */
static int32_t one_node_find(const struct search *search, uint32_t first, uint32_t end)
{
	uint32_t max = search->space->gpus_max, need;
	int32_t best = RANK_NONE;

	if (search->tasks > CAPACITY_MAX || search->tasks * search->shape->gpus > max)
		return RANK_NONE;
	need = search->tasks * search->shape->gpus;
	if (search->space->islands && need > 1)
		best = one_island_find(search, first, end);
	for (uint32_t i = need; best == RANK_NONE && i <= max; i++) {
		uint32_t rank =
			one_node_lowest(search, first, end, search->scatter ? max - (i - need) : i);

		if (rank < end)
			best = (int32_t)rank;
	}
	return best;
}

static bool domain_allowed(const struct place_request *request, const struct space *space,
			   uint32_t domain)
{
	const struct domain *d = &space->domains.at[domain],
			    *in = &space->domains.at[request->domain];

	return d->first >= in->first && d->end <= in->end &&
	       (d->level == 0 || d->name.v || request->domain == domain);
}

static bool fit_better(const struct search *search, const struct fit *a, const struct fit *b)
{
	if (a->hosts != b->hosts)
		return a->hosts < b->hosts;
	if (search->scatter)
		return a->free > b->free;
	if (a->top != b->top)
		return a->top < b->top;
	return a->free < b->free;
}

/* What a domain holds at most: exact when only GPUs are asked for. */
static uint64_t domain_bound(const struct search *search, uint32_t domain)
{
	uint32_t gpus = search->shape->gpus;
	uint64_t tasks = 0;

	if (gpus == 0)
		return UINT64_MAX;
	for (uint64_t classes = search->classes; classes; classes &= classes - 1) {
		const uint32_t *counts =
			space_counts(search->space, domain, (uint32_t)__builtin_ctzll(classes));

		for (uint32_t free = gpus; free <= search->space->gpus_max; free++)
			if (counts[free])
				tasks += (uint64_t)counts[free] * (free / gpus);
	}
	return tasks;
}

/* The best domain of the level that holds all tasks; *ret_most is what the best one that does not would hold. */
static bool level_find(const struct search *search, const struct place_request *request,
		       uint32_t level, uint32_t *ret_domain, struct fit *ret, uint64_t *ret_most,
		       uint32_t *ret_most_at)
{
	const struct space *space = search->space;
	bool found = false;

	for (uint32_t domain = space->level_first[level]; domain < space->level_first[level + 1];
	     domain++) {
		struct histogram histogram;
		struct fit fit;
		uint64_t tasks;

		if (domain_bound(search, domain) <=
		    (*ret_most < search->tasks ? *ret_most : search->tasks - 1))
			continue; /* neither holds them nor is the best of those that do not */
		if (!domain_allowed(request, space, domain))
			continue;
		histogram_make(search, domain, &histogram);
		tasks = histogram_tasks(&histogram);
		if (tasks > *ret_most) {
			*ret_most = tasks;
			*ret_most_at = domain;
		}
		if (tasks < search->tasks || !histogram_fit(&histogram, search->tasks, &fit))
			continue;
		fit.free = space_free_gpus(space, domain, search->classes);
		if (!found || fit_better(search, &fit, ret)) {
			*ret = fit;
			*ret_domain = domain;
			found = true;
		}
	}
	return found;
}

static void placement_begin(const struct search *search, struct arena *arena, struct placement *ret)
{
	ret->count = 0;
	ret->ranks = arena_new_array(arena, uint32_t, search->tasks);
	ret->masks = arena_new_array(arena, uint32_t, search->tasks);
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

static void domain_fill(struct search *search, uint32_t domain, uint32_t top, struct arena *arena,
			struct placement *ret)
{
	const struct domain *d = &search->space->domains.at[domain];
	uint32_t span = d->end - d->first, room = span < search->tasks ? span : search->tasks;
	struct draw draw = { .rest = search->tasks };

	draw.ranks = arena_new_array(arena, uint32_t, room);
	draw.tasks = arena_new_array(arena, uint32_t, room);
	if (search->shape->spread) {
		draw_spread(search, &draw, d, arena);
	} else {
		search->used =
			arena_new_array(arena, uint64_t, bits_row(search->space->node_count));
		draw_domain(search, &draw, d, top);
		search->used = NULL;
	}
	draw_sort(&draw);
	placement_begin(search, arena, ret);
	for (uint32_t i = 0; i < draw.count; i++)
		node_fill(search, draw.ranks[i], draw.tasks[i], ret);
	ret->domain = domain;
	ret->level = d->level;
}

static bool one_node_place(struct search *search, const struct place_request *request,
			   struct arena *arena, struct placement *ret)
{
	const struct domain *in = &search->space->domains.at[request->domain];
	uint32_t first = request->rank == RANK_NONE ? in->first : (uint32_t)request->rank;
	int32_t rank =
		one_node_find(search, first, request->rank == RANK_NONE ? in->end : first + 1);

	if (rank == RANK_NONE)
		return false;
	if (!ret)
		return true;
	placement_begin(search, arena, ret);
	node_fill(search, (uint32_t)rank, search->tasks, ret);
	ret->domain = space_at(search->space, (uint32_t)rank)->domain[search->space->level_count];
	ret->level = LEVEL_NODE;
	return true;
}

/* --- why not ----------------------------------------------------------------------------------------------- */

static void verdict_set(struct verdict *ret, enum reason code, uint8_t level, uint32_t at,
			int64_t have, int64_t need)
{
	if (ret)
		*ret = (struct verdict){
			.code = (uint16_t)code, .level = level, .at = at, .have = have, .need = need
		};
}

static enum reason trait_reason(enum trait trait)
{
	switch (trait) {
	case TRAIT_MODEL:
	case TRAIT_CAPABILITY: return REASON_MODEL;
	case TRAIT_MEMORY: return REASON_MEMORY;
	case TRAIT_REGION: return REASON_RESIDENCY;
	case TRAIT_CLASS:
	case TRAIT_LABEL:
	case TRAIT_TAINT: return REASON_NODE_CLASS;
	case TRAIT_DRIVER:
	case TRAIT_CUDA: return REASON_DRIVER;
	case TRAIT_NONE:
	case TRAIT_END: break;
	}
	return REASON_NONE;
}

/* How much of the trait a node has, and the wish needs. */
static int64_t trait_amount(const struct traits *traits, enum trait trait)
{
	return trait == TRAIT_MEMORY       ? traits->gpu_memory_mib
	       : trait == TRAIT_CAPABILITY ? traits->capability
	       : trait == TRAIT_DRIVER     ? traits->driver
	       : trait == TRAIT_CUDA       ? traits->cuda
					   : 0;
}

static int64_t trait_need(const struct shape *shape, enum trait trait)
{
	return trait == TRAIT_MEMORY       ? shape->gpu_memory_mib
	       : trait == TRAIT_CAPABILITY ? shape->min_capability
	       : trait == TRAIT_DRIVER     ? shape->min_driver
	       : trait == TRAIT_CUDA       ? shape->min_cuda
					   : 1;
}

/* The first trait, in the order of their list, that is in the way; TRAIT_END = none. */
static enum trait trait_first(const struct traits *traits, const struct shape *shape)
{
	enum trait trait = TRAIT_MODEL;

	while (trait < TRAIT_END && traits_meet(traits, shape, trait))
		trait++;
	return trait;
}

/* The trait is in the way for these: `have` of the verdict becomes the best of them, `at` the first taint. */
static void trait_note(const struct traits *traits, const struct shape *shape, enum trait trait,
		       struct verdict *v)
{
	int64_t amount = trait_amount(traits, trait);

	if (v->code == REASON_NONE)
		verdict_set(v, trait_reason(trait), (uint8_t)trait, 0, amount,
			    trait_need(shape, trait));
	v->have = amount > v->have ? amount : v->have;
	if (trait == TRAIT_TAINT && !v->at)
		v->at = traits_taint(traits, shape).v;
}

/* The trait that the last remaining nodes lack, when nodes are sorted out trait by trait. */
static int class_verdict(const struct space *space, const struct shape *shape, struct verdict *ret)
{
	enum trait fails = TRAIT_MODEL;
	struct verdict v = { 0 };

	verdict_set(&v, REASON_MODEL, TRAIT_MODEL, 0, 0, 1); /* there is no node at all */
	for (uint32_t i = 0; i < space->traits_count; i++) {
		const struct traits *traits = &space->traits.at[i];
		enum trait trait = trait_first(traits, shape);

		CHECK(trait < TRAIT_END);
		if (trait < fails)
			continue;
		if (trait > fails)
			v = (struct verdict){ 0 };
		fails = trait;
		trait_note(traits, shape, trait, &v);
	}
	if (ret)
		*ret = v;
	return PLACE_NO;
}

uint32_t place_shut_out(const struct space *space, const struct shape *shape, enum trait trait,
			struct verdict *ret_why)
{
	uint32_t gpus = 0;

	*ret_why = (struct verdict){ 0 };
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct place_node *node = space_at(space, rank);
		const struct traits *traits = &space->traits.at[node->traits];
		uint32_t free = bits_count(place_node_free(node));

		if (!free || trait_first(traits, shape) != trait)
			continue;
		gpus += free;
		trait_note(traits, shape, trait, ret_why);
	}
	return gpus;
}

/* Most tasks in the whole request's domain with this shape, on any number of nodes. */
static uint64_t tasks_anywhere(const struct search *search, const struct shape *shape,
			       const struct place_request *request)
{
	struct search other = *search;
	struct histogram histogram;

	other.shape = shape;
	other.exact = shape->gpus == 0 || shape->cpu_milli || shape->memory_mib ||
		      other.classes >> CLASS_MIXED & 1;
	if (request->rank != RANK_NONE)
		return node_capacity(&other, (uint32_t)request->rank);
	histogram_make(&other, request->domain, &histogram);
	return histogram_tasks(&histogram);
}

/* The first that holds: too few GPUs; processors; memory of the node; split up; too narrow a level. */
static int place_verdict(const struct search *search, const struct place_request *request,
			 uint64_t most, uint32_t most_at, uint8_t level, struct verdict *ret)
{
	struct shape bare = *search->shape, one;
	int64_t free = space_free_gpus(search->space, request->domain, search->classes);
	int64_t need = (int64_t)search->tasks * search->shape->gpus;

	if (!ret)
		return PLACE_NO;
	bare.cpu_milli = bare.memory_mib = 0;
	bare.require = 0;
	if (free < need) {
		verdict_set(ret, REASON_CAPACITY, 0, 0, free, need);
	} else if (tasks_anywhere(search, &bare, request) < search->tasks) {
		verdict_set(ret, REASON_FRAGMENTATION, 0, 0,
			    (int64_t)tasks_anywhere(search, &bare, request), search->tasks);
	} else if (one = bare, one.cpu_milli = search->shape->cpu_milli,
		   tasks_anywhere(search, &one, request) < search->tasks) {
		verdict_set(ret, REASON_CPU, 0, 0, (int64_t)tasks_anywhere(search, &one, request),
			    search->tasks);
	} else if (one = *search->shape, one.require = 0,
		   tasks_anywhere(search, &one, request) < search->tasks) {
		verdict_set(ret, REASON_RAM, 0, 0, (int64_t)tasks_anywhere(search, &one, request),
			    search->tasks);
	} else {
		verdict_set(ret, REASON_TOPOLOGY, level, most_at, (int64_t)most, search->tasks);
	}
	return PLACE_NO;
}

/* --- entrances ---------------------------------------------------------------------------------------------- */

static void one_node_most(const struct search *search, const struct place_request *request,
			  uint64_t *most, uint32_t *at)
{
	const struct domain *in = &search->space->domains.at[request->domain];
	uint32_t first = request->rank == RANK_NONE ? in->first : (uint32_t)request->rank;

	for (uint32_t rank = first; rank < (request->rank == RANK_NONE ? in->end : first + 1);
	     rank++) {
		uint32_t tasks = node_capacity(search, rank);

		if (tasks > *most) {
			*most = tasks;
			*at = rank;
		}
	}
}

static bool require_is_one_node(const struct shape *shape)
{
	return shape->require == LEVEL_NODE || shape->require == LEVEL_ISLAND;
}

/* A sum over the request's domain says no before any smaller domain is looked at. */
static bool cluster_is_short(const struct search *search, const struct place_request *request)
{
	return request->rank == RANK_NONE && domain_bound(search, request->domain) < search->tasks;
}

/* From the narrowest level to the widest allowed. `prefer` only matters to replicas: all others go narrow anyhow. */
static bool levels_find(struct search *search, const struct place_request *request,
			struct arena *arena, struct placement *ret, uint64_t *most,
			uint32_t *most_at)
{
	const struct shape *shape = search->shape;
	uint32_t widest = shape->require, domain;
	bool spread = shape->spread && shape->tasks_max > 1;
	struct fit fit;

	for (uint32_t level = search->space->level_count + 1; level-- > widest;) {
		if (search->space->domains.at[request->domain].level > level)
			break;
		if (spread && level != widest && level != shape->prefer)
			continue;
		*most = 0;
		if (level_find(search, request, level, &domain, &fit, most, most_at)) {
			if (ret)
				domain_fill(search, domain, fit.top, arena, ret);
			return true;
		}
	}
	return false;
}

int place_find(const struct space *space, const struct place_request *request, struct arena *arena,
	       struct placement *ret, struct verdict *ret_why)
{
	bool spread = request->shape->spread && request->tasks > 1 &&
		      !require_is_one_node(request->shape);
	struct search search;
	uint32_t most_at = 0;
	uint64_t most = 0;

	CHECK(request->tasks > 0);
	if (!search_begin(&search, space, request))
		return class_verdict(space, request->shape, ret_why);
	if (cluster_is_short(&search, request))
		return place_verdict(&search, request, 0, 0, request->shape->require, ret_why);
	if (!spread && one_node_place(&search, request, arena, ret))
		return 0;
	if (require_is_one_node(request->shape) || request->rank != RANK_NONE) {
		if (ret_why)
			one_node_most(&search, request, &most, &most_at);
		return place_verdict(&search, request, most, most_at, request->shape->require,
				     ret_why);
	}
	if (levels_find(&search, request, arena, ret, &most, &most_at))
		return 0;
	return place_verdict(&search, request, most, most_at, request->shape->require, ret_why);
}

int place_bound(const struct space *space, const struct place_request *request,
		struct verdict *ret_why)
{
	struct search search;
	int64_t free, need;

	if (!search_begin(&search, space, request))
		return class_verdict(space, request->shape, ret_why);
	if (request->shape->gpus == 0)
		return 0;
	free = request->rank == RANK_NONE
		       ? space_free_gpus(space, request->domain, search.classes)
		       : bits_count(place_node_free(space_at(space, (uint32_t)request->rank)));
	need = (int64_t)request->tasks * request->shape->gpus;
	if (free < need) {
		verdict_set(ret_why, REASON_CAPACITY, 0, 0, free, need);
		return PLACE_NO;
	}
	if (!cluster_is_short(&search, request))
		return 0;
	verdict_set(ret_why, REASON_FRAGMENTATION, 0, 0,
		    (int64_t)domain_bound(&search, request->domain), request->tasks);
	return PLACE_NO;
}

uint32_t place_width(const struct space *space, const struct place_request *request)
{
	const struct shape *shape = request->shape;
	uint32_t at = 0;
	struct search search;
	uint64_t most = 0;

	if (!search_begin(&search, space, request))
		return 0;
	if (shape->gpus && space_free_gpus(space, request->domain, search.classes) < shape->gpus)
		return 0;
	if (require_is_one_node(shape) || request->rank != RANK_NONE) {
		one_node_most(&search, request, &most, &at);
	} else if (shape->require <= space->level_count) {
		struct fit fit;
		uint32_t domain;

		(void)level_find(&search, request, shape->require, &domain, &fit, &most, &at);
	}
	return most < request->tasks ? (uint32_t)most : request->tasks;
}

void placement_take(struct space *space, const struct placement *placement,
		    const struct shape *shape)
{
	for (uint32_t i = 0; i < placement->count; i++)
		space_take(space, placement->ranks[i], placement->masks[i], shape->cpu_milli,
			   shape->memory_mib);
}

void placement_promise(struct space *space, const struct placement *placement,
		       const struct shape *shape)
{
	for (uint32_t i = 0; i < placement->count; i++)
		space_promise(space, placement->ranks[i], placement->masks[i], shape->cpu_milli,
			      shape->memory_mib);
}
