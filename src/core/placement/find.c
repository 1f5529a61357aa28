/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search. A host's capacity for a wish is how many of its tasks fit there. For a domain the capacities give a
 * small histogram (hosts with capacity 1, 2, ... 32), from the space's counts when only GPUs are asked for, else from
 * a look at each node. From the histogram alone follow
 *
 *	fit	does it hold all tasks: sum of capacities
 *	hosts	the fewest hosts that hold them: the largest first
 *	left	GPUs that stay over on so few hosts when they are chosen well (hosts.c)
 *	top	the smallest "largest host used" that still gives the fewest hosts, so that whole hosts stay whole
 *
 *	example: 9 tasks; hosts that hold 8, 8, 5, 4, 3.  Two hosts are enough (8 + 8). 5 + 4 leave nothing over, and the
 *	smallest top with two hosts is 5: the two whole hosts stay whole.
 *
 * Domains of one level are compared by (hosts, left, top, free GPUs, first rank); then nodes are drawn: full ones, the last one
 * the tightest that holds the rest.
 */
#include "base/check.h"
#include "core/placement/search.h"
#include "core/placement/speed.h"

bool search_begin(struct search *search, const struct space *space,
		  const struct place_request *request)
{
	const struct shape *shape = request->shape;

	*search = (struct search){ .space = space,
				   .shape = shape,
				   .tasks = request->tasks,
				   .scatter = request->scatter,
				   .barred = request->barred,
				   .classes = request->suits };
	if (!search->classes && !space_classes_of(space, shape, &search->classes))
		return false;
	search->classes &= ~request->closed;
	if (request->model.v)
		*search = search_of_model(search, request->model);
	search->part = shape_is_part(shape);
	search->slice = shape->slice;
	search->wish = (struct part_wish){ shape_sharer(shape), request->share_gpus };
	search->exact = shape->gpus == 0 || search->part || shape->cpu_milli || shape->memory_mib ||
			search->classes >> CLASS_MIXED & 1 || shape->require == LEVEL_ISLAND ||
			shape->align || request->barred;
	search->talks = space_fabric(space) && speed_fabric(search);
	return true;
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

uint32_t one_node_next(const struct search *search, uint32_t class, uint32_t first, uint32_t end,
		       uint32_t free, const uint64_t *among)
{
	const struct space *space = search->space;
	const uint64_t *set = space_set(space, class, free);

	among = among ? among : set;
	for (;; first++) {
		first = bits_next_both(set, among, space->node_count, first, end);
		if (!search->exact || first >= end || node_holds(search, first))
			return first;
	}
}

static uint32_t one_node_lowest(const struct search *search, uint32_t first, uint32_t end,
				uint32_t free)
{
	for (uint64_t classes = search->classes; classes; classes &= classes - 1)
		end = one_node_next(search, (uint32_t)__builtin_ctzll(classes), first, end, free,
				    NULL);
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

int32_t one_node_find(const struct search *search, uint32_t first, uint32_t end)
{
	uint32_t max = search->space->gpus_max, need;
	int32_t best = RANK_NONE;

	if (search->tasks > CAPACITY_MAX)
		return RANK_NONE;
	if (search->part && search->tasks > 1)
		return part_nodes_find(search, first, end);
	need = search->tasks * search->shape->gpus;
	if (need > max)
		return RANK_NONE;
	if (search->part && !search->scatter)
		best = part_node_find(search, first, end);
	if (search->space->islands && need > 1)
		best = one_island_find(search, first, end);
	for (uint32_t i = need; best == RANK_NONE && i <= max; i++) {
		uint32_t rank =
			one_node_lowest(search, first, end, search->scatter ? max - (i - need) : i);

		if (rank < end)
			best = (int32_t)rank;
	}
	if (search->part && best == RANK_NONE)
		best = part_node_find(search, first, end);
	return best;
}

bool domain_allowed(const struct place_request *request, const struct space *space, uint32_t domain)
{
	const struct domain *d = &space->domains.at[domain],
			    *in = &space->domains.at[request->domain];

	return d->first >= in->first && d->end <= in->end &&
	       (d->level == 0 || d->name.v || request->domain == domain);
}

/* What is left over of a fit: reckoned when the answer hangs on it. */
static int64_t fit_left(const struct search *search, uint32_t domain, struct fit *fit)
{
	struct pick pick;

	if (fit->left == LEFT_UNKNOWN) {
		hosts_pick(search, domain, fit->hosts, &pick);
		fit->left = pick.left;
	}
	return fit->left;
}

static bool fit_better(const struct search *search, uint32_t a_domain, struct fit *a,
		       uint32_t b_domain, struct fit *b)
{
	if (a->step != b->step)
		return a->step > b->step;
	if (a->hosts != b->hosts)
		return a->hosts < b->hosts;
	if (a->parts != b->parts)
		return a->parts < b->parts;
	if (search->scatter)
		return a->free > b->free;
	if (hosts_matter(search) && fit_left(search, a_domain, a) != fit_left(search, b_domain, b))
		return a->left < b->left;
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
	if (search->part)
		return part_bound(search, domain);
	for (uint64_t classes = search->classes; classes; classes &= classes - 1) {
		const uint32_t *counts =
			space_counts(search->space, domain, (uint32_t)__builtin_ctzll(classes));

		for (uint32_t free = gpus; free <= search->space->gpus_max; free++)
			if (counts[free])
				tasks += (uint64_t)counts[free] * (free / gpus);
	}
	return tasks;
}

/* How fast the parts of the domain talk to each other. */
static void fit_measure(const struct search *search, uint32_t domain, struct fit *fit)
{
	struct split split;

	fit->step = fit->parts = 0;
	if (!search->talks || search->space->domains.at[domain].level == search->space->level_count)
		return;
	split_measure(search, domain, fit->top, &split);
	fit->step = speed_step(split_mbps(search, domain, fit->top, &split));
	fit->parts = split.count;
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
		fit.left = LEFT_UNKNOWN;
		fit.free = space_free_gpus(space, domain, search->classes);
		fit_measure(search, domain, &fit);
		if (!found || fit_better(search, domain, &fit, *ret_domain, ret)) {
			*ret = fit;
			*ret_domain = domain;
			found = true;
		}
	}
	return found;
}

static bool one_node_place(struct search *search, const struct place_request *request,
			   struct arena *arena, struct placement *ret)
{
	const struct domain *in = &search->space->domains.at[request->domain];
	uint32_t first = request->rank == RANK_NONE ? in->first : (uint32_t)request->rank;
	int32_t rank = ret && request->rank == RANK_NONE && fragment_counts(search)
			       ? fragment_find(search, in->first, in->end)
			       : one_node_find(search, first,
					       request->rank == RANK_NONE ? in->end : first + 1);

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

/* The same, with the hosts first that are built best for it, and no place that is too slow. */
static bool one_node_fast(struct search *search, const struct place_request *request,
			  struct arena *arena, struct placement *ret)
{
	uint64_t groups[SPEED_GROUPS_MAX], all = search->classes;
	uint32_t count = speed_groups(search, LEVEL_NODE, groups);
	bool found = false;

	for (uint32_t i = 0; i < count && !found; i++) {
		search->classes = groups[i];
		found = one_node_place(search, request, arena, ret) &&
			speed_suffices(search, ret, arena);
	}
	search->classes = all;
	return found;
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

bool require_is_one_node(const struct shape *shape)
{
	return shape->require == LEVEL_NODE || shape->require == LEVEL_ISLAND;
}

/* A sum over the request's domain says no before any smaller domain is looked at. */
static bool cluster_is_short(const struct search *search, const struct place_request *request)
{
	return request->rank == RANK_NONE && domain_bound(search, request->domain) < search->tasks;
}

/* At one level: on the hosts that are built best for it, then on these and the next best, ... */
static bool level_place(struct search *search, const struct place_request *request, uint32_t level,
			struct arena *arena, struct placement *ret, uint64_t *most,
			uint32_t *most_at)
{
	uint64_t groups[SPEED_GROUPS_MAX], all = search->classes;
	uint32_t count = speed_groups(search, (uint8_t)level, groups), domain;
	bool found = false;
	struct fit fit;

	for (uint32_t i = 0; i < count && !found; i++) {
		search->classes = groups[i];
		*most = 0;
		found = level_find(search, request, level, &domain, &fit, most, most_at);
		if (!found || !ret)
			continue;
		domain_fill(search, domain, &fit, arena, ret);
		found = speed_suffices(search, ret, arena);
	}
	search->classes = all;
	return found;
}

/* From the narrowest level to the widest allowed. `prefer` only matters to replicas: all others go narrow anyhow. */
static bool levels_find(struct search *search, const struct place_request *request,
			struct arena *arena, struct placement *ret, uint64_t *most,
			uint32_t *most_at)
{
	const struct shape *shape = search->shape;
	uint32_t widest = shape->require;
	bool spread = shape->spread && shape->tasks_max > 1;

	for (uint32_t level = search->space->level_count + 1; level-- > widest;) {
		if (search->space->domains.at[request->domain].level > level)
			break;
		if (spread && level != widest && level != shape->prefer)
			continue;
		if (level_place(search, request, level, arena, ret, most, most_at))
			return true;
	}
	return false;
}

static int search_run(struct search *search, const struct place_request *request,
		      struct arena *arena, struct placement *ret, struct verdict *ret_why)
{
	bool spread = request->shape->spread && request->tasks > 1 &&
		      !require_is_one_node(request->shape);
	uint32_t most_at = 0;
	uint64_t most = 0;

	if (!ret_why && cluster_is_short(search, request))
		return PLACE_NO; /* of one model, say */
	if (shape_is_apart(request->shape, request->tasks)) {
		if (spread_find(search, request, arena, ret, &most, &most_at) &&
		    speed_suffices(search, ret, arena))
			return 0;
		return place_verdict(search, request, most, most_at, request->shape->require,
				     ret_why);
	}
	if (!spread && (search->talks ? one_node_fast(search, request, arena, ret)
				      : one_node_place(search, request, arena, ret)))
		return 0;
	if (require_is_one_node(request->shape) || request->rank != RANK_NONE) {
		if (ret_why)
			one_node_most(search, request, &most, &most_at);
		return place_verdict(search, request, most, most_at, request->shape->require,
				     ret_why);
	}
	/* A task that is alone lies on one node wherever it lies, and no node has room for it. */
	if ((request->tasks > 1 || search->talks) &&
	    levels_find(search, request, arena, ret, &most, &most_at))
		return 0;
	return place_verdict(search, request, most, most_at, request->shape->require, ret_why);
}

/* Whether a place is fast enough is seen when it is drawn, so it is drawn also when nobody asked for it. */
static int search_drawn(struct search *search, const struct place_request *request,
			struct verdict *ret_why)
{
	struct placement place;
	struct arena arena;
	int rc;

	arena_init(&arena, SIZE_MAX);
	rc = search_run(search, request, &arena, &place, ret_why);
	arena_deinit(&arena);
	return rc;
}

int search_anywhere(const struct search *from, const struct place_request *request,
		    struct arena *arena, struct placement *ret, struct verdict *ret_why)
{
	struct search search = *from;

	if (!ret && search.talks && request->shape->max_slowdown)
		return search_drawn(&search, request, ret_why);
	return search_run(&search, request, arena, ret, ret_why);
}

int place_anywhere(struct space *space, const struct place_request *request, struct arena *arena,
		   struct placement *ret, struct verdict *ret_why)
{
	struct search search;

	CHECK(request->tasks > 0);
	if (request->shape->role_count)
		return roles_find(space, request, arena, ret, ret_why);
	if (!search_begin(&search, space, request))
		return class_verdict(space, request->shape, ret_why);
	if (cluster_is_short(&search, request))
		return place_verdict(&search, request, 0, 0, request->shape->require, ret_why);
	if (models_matter(&search))
		return models_find(&search, request, arena, ret, ret_why);
	return search_place(&search, request, arena, ret, ret_why);
}

int place_find(struct space *space, const struct place_request *request, struct arena *arena,
	       struct placement *ret, struct verdict *ret_why)
{
	int rc = place_anywhere(space, request, arena, ret, ret_why);

	if (rc == 0 && ret && request->shape->data[0].v && space_data_weighs(space, request->shape))
		gravity_find(space, request, arena, ret);
	return rc;
}

static int64_t request_gpus(const struct place_request *request)
{
	return request->which ? ranks_gpus(request->shape, request->which, request->tasks)
			      : shape_gpus(request->shape, request->tasks);
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
	if (search.part)
		return cluster_is_short(&search, request) && part_verdict(&search, request, ret_why)
			       ? PLACE_NO
			       : 0;
	free = request->rank == RANK_NONE
		       ? space_free_gpus(space, request->domain, search.classes)
		       : bits_count(place_node_free(space_at(space, (uint32_t)request->rank)));
	need = request_gpus(request);
	if (free < need) {
		verdict_set(ret_why, REASON_CAPACITY, 0, 0, free, need);
		return PLACE_NO;
	}
	if (request->shape->role_count || !cluster_is_short(&search, request))
		return 0;
	verdict_set(ret_why, REASON_FRAGMENTATION, 0, 0,
		    (int64_t)domain_bound(&search, request->domain), request->tasks);
	return PLACE_NO;
}

uint32_t search_width(const struct search *search, const struct place_request *request)
{
	const struct shape *shape = request->shape;
	const struct space *space = search->space;
	uint32_t at = 0;
	uint64_t most = 0;

	if (shape->gpus && !search->part &&
	    space_free_gpus(space, request->domain, search->classes) < shape->gpus)
		return 0;
	if (shape_is_apart(shape, request->tasks)) {
		most = spread_most(search, request);
	} else if (require_is_one_node(shape) || request->rank != RANK_NONE) {
		one_node_most(search, request, &most, &at);
	} else if (shape->require <= space->level_count) {
		struct fit fit;
		uint32_t domain;

		(void)level_find(search, request, shape->require, &domain, &fit, &most, &at);
	}
	return most < request->tasks ? (uint32_t)most : request->tasks;
}

uint32_t place_width(struct space *space, const struct place_request *request)
{
	struct search search;

	if (request->shape->role_count)
		return roles_width(space, request);
	if (!search_begin(&search, space, request))
		return 0;
	return models_are_one(&search) && models_matter(&search) ? models_width(&search, request)
								 : search_width(&search, request);
}

struct hold placement_hold(const struct placement *placement, uint32_t task,
			   const struct shape *shape)
{
	struct task_wish wish =
		shape_wish(shape, placement->which ? (uint32_t)placement->which[task] : task);

	return (struct hold){ .mask = placement->masks[task],
			      .part = placement->parts ? placement->parts[task] : 0,
			      .part_mib = placement->parts ? placement->parts_mib[task] : 0,
			      .sharer = shape_sharer(shape),
			      .aligned = shape->align != 0,
			      .slice = placement->slices ? placement->slices[task] : 0,
			      .cpu_milli = wish.cpu_milli,
			      .ram_mib = wish.memory_mib };
}

uint32_t placement_holds(const struct placement *placement, const struct shape *shape,
			 uint32_t first, struct hold *ret)
{
	uint32_t end = first + 1;

	*ret = placement_hold(placement, first, shape);
	for (; end < placement->count && placement->ranks[end] == placement->ranks[first]; end++) {
		struct hold more = placement_hold(placement, end, shape);

		if (!hold_join(ret, &more))
			break;
	}
	return end;
}

void placement_take(struct space *space, const struct placement *placement,
		    const struct shape *shape)
{
	struct hold hold;

	for (uint32_t i = 0, end; i < placement->count; i = end) {
		end = placement_holds(placement, shape, i, &hold);
		space_take(space, placement->ranks[i], &hold);
	}
}

void placement_give(struct space *space, const struct placement *placement,
		    const struct shape *shape)
{
	struct hold hold;

	for (uint32_t i = 0, end; i < placement->count; i = end) {
		end = placement_holds(placement, shape, i, &hold);
		space_give(space, placement->ranks[i], &hold);
	}
}

void placement_promise(struct space *space, const struct placement *placement,
		       const struct shape *shape)
{
	struct hold hold;

	for (uint32_t i = 0, end; i < placement->count; i = end) {
		end = placement_holds(placement, shape, i, &hold);
		space_promise(space, placement->ranks[i], &hold);
	}
}
