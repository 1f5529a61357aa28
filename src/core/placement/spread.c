/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that must lie apart: `spread: rack` puts no two tasks of a job into one rack, `spread: node` none on one node. What
 * can have one task is a unit; a unit has room when one of its nodes has room for one task.
 *
 *	racks r0 [2 0] r1 [3 3] r2 [1 4]; three tasks of 2 GPUs	one in r0 (first node), r1 (first), r2 (second): tightest each
 *	the same, four tasks					three units have room: 3 of 4, reason `spread`
 *
 * The rest is as for every gang: the narrowest level that has enough units, there the one with the fewest GPUs free, in
 * it the tightest units. A node that names no rack does not say that it lies apart, and is not used.
 */
#include "base/check.h"
#include "core/placement/search.h"

static bool level_is_node(uint32_t level)
{
	return level == LEVEL_NODE;
}

/* The ranks of the unit that `rank` lies in; false: it names none. */
static bool unit_of(const struct space *space, uint32_t level, uint32_t rank, uint32_t *ret_first,
		    uint32_t *ret_end)
{
	const struct domain *d;

	*ret_first = rank;
	*ret_end = rank + 1;
	if (level_is_node(level))
		return true;
	if (level > space->level_count)
		return false;
	d = &space->domains.at[space_at(space, rank)->domain[level]];
	*ret_first = d->first;
	*ret_end = d->end;
	return d->name.v != 0;
}

static bool unit_has_room(const struct search *search, uint32_t first, uint32_t end)
{
	while (first < end && !node_capacity(search, first))
		first++;
	return first < end;
}

/* Units of the domain with room for a task, at most `most`. */
static uint32_t units_count(const struct search *search, uint32_t domain, uint32_t most)
{
	const struct domain *d = &search->space->domains.at[domain];
	uint32_t count = 0, first, end;

	for (uint32_t rank = d->first; rank < d->end && count < most; rank = end)
		count += unit_of(search->space, search->shape->apart, rank, &first, &end) &&
			 unit_has_room(search, rank, end);
	return count;
}

/* The narrowest level at which tasks of different units can lie in one domain. */
static uint32_t level_narrowest(const struct search *search)
{
	uint32_t apart = search->shape->apart, levels = search->space->level_count;

	return level_is_node(apart) || apart > levels ? levels : apart - 1;
}

/* The tightest node of each unit with room; how many. */
static uint32_t units_list(const struct search *search, const struct domain *d, uint32_t *ret)
{
	struct search one = *search;
	uint32_t count = 0, first, end;

	one.tasks = 1;
	for (uint32_t rank = d->first; rank < d->end; rank = end) {
		int32_t best = RANK_NONE;

		if (unit_of(search->space, search->shape->apart, rank, &first, &end))
			best = one_node_find(&one, rank, end);
		if (best != RANK_NONE)
			ret[count++] = (uint32_t)best;
	}
	return count;
}

/* Those with the fewest GPUs free first, equal ones by rank. */
static void units_draw(const struct search *search, uint32_t domain, struct arena *arena,
		       uint32_t *ranks)
{
	const struct domain *d = &search->space->domains.at[domain];
	uint32_t *units = arena_new_array(arena, uint32_t, d->end - d->first);
	uint32_t max = search->space->gpus_max, room = units_list(search, d, units), count = 0;

	for (uint32_t i = 0; i <= max; i++) {
		uint32_t free = search->scatter ? max - i : i;

		for (uint32_t u = 0; u < room && count < search->tasks; u++)
			if (bits_count(place_node_free(space_at(search->space, units[u]))) == free)
				ranks[count++] = units[u];
	}
	CHECK(count == search->tasks);
}

static void ranks_sort(uint32_t *ranks, uint32_t count)
{
	for (uint32_t gap = count / 2; gap > 0; gap /= 2)
		for (uint32_t i = gap; i < count; i++) {
			uint32_t rank = ranks[i], j = i;

			for (; j >= gap && ranks[j - gap] > rank; j -= gap)
				ranks[j] = ranks[j - gap];
			ranks[j] = rank;
		}
}

static void units_fill(const struct search *search, uint32_t domain, struct arena *arena,
		       struct placement *ret)
{
	uint32_t *ranks = arena_new_array(arena, uint32_t, search->tasks);

	units_draw(search, domain, arena, ranks);
	ranks_sort(ranks, search->tasks);
	placement_begin(search, arena, ret);
	for (uint32_t i = 0; i < search->tasks; i++)
		node_fill(search, ranks[i], 1, ret);
	ret->domain = domain;
	ret->level = search->space->domains.at[domain].level;
}

/* The best domain of the level; *ret_most as for spread_find. */
static bool level_units(const struct search *search, const struct place_request *request,
			uint32_t level, uint32_t *ret_domain, uint64_t *ret_most,
			uint32_t *ret_most_at)
{
	const struct space *space = search->space;
	int64_t least = 0;
	bool found = false;

	*ret_most = 0;
	for (uint32_t domain = space->level_first[level]; domain < space->level_first[level + 1];
	     domain++) {
		int64_t free;
		uint32_t units;

		if (!domain_allowed(request, space, domain))
			continue;
		units = units_count(search, domain, search->tasks);
		if (units > *ret_most) {
			*ret_most = units;
			*ret_most_at = domain;
		}
		if (units < search->tasks)
			continue;
		free = space_free_gpus(space, domain, search->classes);
		if (found && (search->scatter ? free <= least : free >= least))
			continue;
		least = free;
		*ret_domain = domain;
		found = true;
	}
	return found;
}

bool spread_find(const struct search *search, const struct place_request *request,
		 struct arena *arena, struct placement *ret, uint64_t *most, uint32_t *most_at)
{
	uint32_t widest = search->shape->require, domain;

	if (request->rank != RANK_NONE || require_is_one_node(search->shape))
		return false;
	for (uint32_t level = level_narrowest(search) + 1; level-- > widest;) {
		if (search->space->domains.at[request->domain].level > level)
			break;
		if (!level_units(search, request, level, &domain, most, most_at))
			continue;
		if (ret)
			units_fill(search, domain, arena, ret);
		return true;
	}
	return false;
}

uint32_t spread_most(const struct search *search, const struct place_request *request)
{
	uint32_t widest = search->shape->require, domain, at;
	uint64_t most = 0;

	if (request->rank != RANK_NONE || require_is_one_node(search->shape))
		return 1;
	if (widest > search->space->level_count)
		return 0;
	(void)level_units(search, request, widest, &domain, &most, &at);
	return (uint32_t)most;
}

bool spread_verdict(const struct search *search, const struct place_request *request,
		    struct verdict *ret)
{
	uint32_t units = request->rank == RANK_NONE
				 ? units_count(search, request->domain, search->tasks)
				 : 1;

	if (units >= search->tasks)
		return false;
	verdict_set(ret, REASON_SPREAD, (uint8_t)search->shape->apart, 0, units, search->tasks);
	return true;
}

void spread_bar(const struct space *space, uint32_t apart, uint32_t rank, uint64_t *barred)
{
	uint32_t first, end;

	(void)unit_of(space, apart, rank, &first, &end);
	for (; first < end; first++)
		barred[first / 64] |= UINT64_C(1) << first % 64;
}
