/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which model of GPU. Of those that a job accepts it gets the cheapest for its work that has room for it: the price of a
 * GPU-hour over how fast the model does this job's work, as it declares. What is dear stays free for jobs that accept nothing else.
 *
 *	prices H100 4.00, A100 1.50; the job runs on an A100 at 0.45 of its speed on an H100
 *	4.00 / 1 = 4.00 for an hour's work of an H100, 1.50 / 0.45 = 3.33: it takes A100s while there are enough
 *	at 0.3 of the speed: 5.00, and it takes H100s
 *
 * Of equal cost the faster model comes first; without prices that alone counts, and without speeds all models are equal.
 *
 * A gang communicates, and runs at the speed of its slowest rank: unless it allows a mixture, all its tasks get one model.
 * Where models cost the same, each is looked at, and the best place is taken as between any two places.
 *
 * The price comes before the place: a gang that fits in one rack of dear GPUs takes cheap ones in two racks, unless it requires the
 * rack. Rejected: to weigh money against bandwidth, for which nobody knows the rate; who needs the bandwidth says so.
 */
#include "base/check.h"
#include "core/placement/search.h"
#include "core/placement/speed.h"

__extension__ typedef __int128 wide;

static struct model_cost cost_of(const struct search *search, const struct traits *traits)
{
	return (struct model_cost){ search->space->priced ? traits->price_micro : 1,
				    shape_speed(search->shape, traits->model) };
}

/* Below 0: a is the cheaper, or as cheap and faster. */
static int cost_compare(struct model_cost a, struct model_cost b)
{
	wide left = (wide)a.price * b.speed, right = (wide)b.price * a.speed;

	if (left != right)
		return left < right ? -1 : 1;
	return a.speed > b.speed ? -1 : a.speed < b.speed;
}

bool model_is_open(const struct search *search, uint32_t rank)
{
	const struct traits *traits =
		&search->space->traits.at[space_at(search->space, rank)->traits];

	if (search->model.v && !name_same(search->model, traits->model))
		return false;
	return !search->costs || (cost_compare(cost_of(search, traits), search->least) >= 0 &&
				  cost_compare(cost_of(search, traits), search->most) <= 0);
}

static uint64_t class_bit(uint32_t traits)
{
	return UINT64_C(1) << (traits < CLASS_MIXED ? traits : CLASS_MIXED);
}

/* Is the kind of nodes one that the search may use at all? */
static bool traits_open(const struct search *search, uint32_t i)
{
	return search->classes & class_bit(i) &&
	       (i < CLASS_MIXED || traits_suit(&search->space->traits.at[i], search->shape));
}

/* Several models, or spot nodes and others, among the nodes that it may use. */
static bool several_models(const struct search *search)
{
	const struct space *space = search->space;
	const struct traits *first = NULL;

	for (uint32_t i = 0; i < space->traits_count; i++) {
		if (!traits_open(search, i))
			continue;
		if (first && (!name_same(first->model, space->traits.at[i].model) ||
			      first->spot != space->traits.at[i].spot))
			return true;
		first = &space->traits.at[i];
	}
	return false;
}

static bool must_be_one(const struct search *search)
{
	return search->tasks > 1 && !search->shape->mixes;
}

bool models_matter(const struct search *search)
{
	const struct shape *shape = search->shape;

	return search->space->several_models && shape->gpus && !search->model.v &&
	       (must_be_one(search) || search->space->priced || shape->throughput[0]) &&
	       several_models(search);
}

/* The next cost above *cost; with `first` the least of all. */
static bool cost_next(const struct search *search, bool first, struct model_cost *cost)
{
	const struct space *space = search->space;
	struct model_cost best = { 0, 0 };
	bool found = false;

	for (uint32_t i = 0; i < space->traits_count; i++) {
		struct model_cost here = cost_of(search, &space->traits.at[i]);

		if (!traits_open(search, i) || (!first && cost_compare(here, *cost) <= 0))
			continue;
		if (!found || cost_compare(here, best) < 0)
			best = here;
		found = true;
	}
	*cost = best;
	return found;
}

/* The search among models that cost so much; with `cheaper` also those that cost less. */
static struct search search_of_cost(const struct search *search, struct model_cost cost,
				    bool cheaper)
{
	const struct space *space = search->space;
	struct search ret = *search;

	ret.classes = 0;
	ret.costs = true;
	ret.most = cost;
	ret.least = cheaper ? (struct model_cost){ 0, UINT32_MAX } : cost;
	for (uint32_t i = 0; i < space->traits_count; i++) {
		int order = cost_compare(cost_of(search, &space->traits.at[i]), cost);

		if (traits_open(search, i) && (order == 0 || (cheaper && order < 0)))
			ret.classes |= class_bit(i);
	}
	return ret;
}

struct search search_of_model(const struct search *search, struct name_id model)
{
	const struct space *space = search->space;
	struct search ret = *search;

	ret.classes = 0;
	ret.model = model;
	for (uint32_t i = 0; i < space->traits_count; i++)
		if (traits_open(search, i) && name_same(space->traits.at[i].model, model))
			ret.classes |= class_bit(i);
	return ret;
}

/* The first kind of nodes with a model, in the order of the space; so each model has its turn once. */
static bool model_is_new(const struct search *search, uint32_t i)
{
	const struct space *space = search->space;

	if (!traits_open(search, i))
		return false;
	for (uint32_t k = 0; k < i; k++)
		if (traits_open(search, k) &&
		    name_same(space->traits.at[k].model, space->traits.at[i].model))
			return false;
	return true;
}

bool model_turn_next(const struct search *search, struct model_turn *turn)
{
	const struct space *space = search->space;
	struct model_turn next = { .begun = false };

	for (uint32_t i = 0; i < space->traits_count; i++) {
		struct model_cost cost = cost_of(search, &space->traits.at[i]);
		int after = turn->begun ? cost_compare(cost, turn->cost) : 1;

		if (!model_is_new(search, i) || after < 0 || (after == 0 && i <= turn->at))
			continue;
		if (next.begun && cost_compare(cost, next.cost) >= 0)
			continue;
		next = (struct model_turn){ .begun = true,
					    .dearer = turn->begun && after > 0,
					    .cost = cost,
					    .at = i,
					    .model = space->traits.at[i].model };
	}
	if (next.begun)
		*turn = next;
	return next.begun;
}

/* The dearest of its GPUs. */
static struct model_cost place_cost(const struct search *search, const struct placement *place)
{
	const struct space *space = search->space;
	struct model_cost most = { 0 };

	for (uint32_t i = 0; i < place->count; i++) {
		struct model_cost cost = cost_of(
			search, &space->traits.at[space_at(space, place->ranks[i])->traits]);

		if (!i || cost_compare(cost, most) > 0)
			most = cost;
	}
	return most;
}

bool place_is_dearer(const struct space *space, const struct shape *shape,
		     const struct placement *a, const struct placement *b)
{
	const struct search search = { .space = space, .shape = shape };

	return cost_compare(place_cost(&search, a), place_cost(&search, b)) > 0;
}

/* GPUs that stay free on the nodes of the place, and how many nodes: the fewer, the tighter. */
static void place_measure(const struct space *space, const struct placement *place,
			  uint32_t *ret_hosts, uint32_t *ret_free)
{
	*ret_hosts = *ret_free = 0;
	for (uint32_t i = 0; i < place->count; i++) {
		if (i && place->ranks[i] == place->ranks[i - 1])
			continue;
		++*ret_hosts;
		*ret_free += bits_count(place_node_free(space_at(space, place->ranks[i])));
	}
}

bool place_is_better(const struct space *space, const struct placement *a,
		     const struct placement *b)
{
	uint32_t hosts_a, free_a, hosts_b, free_b;

	if (a->level != b->level)
		return a->level > b->level;
	place_measure(space, a, &hosts_a, &free_a);
	place_measure(space, b, &hosts_b, &free_b);
	if (hosts_a != hosts_b)
		return hosts_a < hosts_b;
	return free_a != free_b ? free_a < free_b : a->ranks[0] < b->ranks[0];
}

/* Of one level the faster place, where that is known; else the tighter one. */
static bool place_compare(const struct search *search, struct arena *arena,
			  const struct placement *a, const struct placement *b)
{
	struct fabric_estimate of_a, of_b;

	if (!search->talks || a->level != b->level)
		return place_is_better(search->space, a, b);
	speed_estimate(search->space, a, arena, &of_a);
	speed_estimate(search->space, b, arena, &of_b);
	if (speed_step(of_a.mbps) != speed_step(of_b.mbps))
		return speed_step(of_a.mbps) > speed_step(of_b.mbps);
	return place_is_better(search->space, a, b);
}

/* The best place on one model among those of equal cost. */
static int one_model_find(const struct search *search, const struct place_request *request,
			  struct arena *arena, struct placement *ret)
{
	const struct space *space = search->space;
	bool found = false;

	for (uint32_t i = 0; i < space->traits_count; i++) {
		struct search one;
		struct placement place;

		if (!model_is_new(search, i))
			continue;
		one = search_of_model(search, space->traits.at[i].model);
		if (search_place(&one, request, arena, ret ? &place : NULL, NULL) != 0)
			continue;
		if (!ret)
			return 0;
		if (!found || place_compare(&one, arena, &place, ret))
			*ret = place;
		found = true;
	}
	return found ? 0 : PLACE_NO;
}

/* The most tasks on one model, when they would fit on several together. */
static int mixed_verdict(const struct search *search, const struct place_request *request,
			 struct verdict *ret_why)
{
	if (ret_why)
		verdict_set(ret_why, REASON_FRAGMENTATION, PLACE_ONE_MODEL, 0,
			    models_width(search, request), search->tasks);
	return PLACE_NO;
}

int models_find(const struct search *search, const struct place_request *request,
		struct arena *arena, struct placement *ret, struct verdict *ret_why)
{
	bool one = must_be_one(search), first = true;
	struct model_cost cost;

	while (cost_next(search, first, &cost)) {
		struct search some = search_of_cost(
			search, cost, search->tasks > 1 && (!one || search->space->spot));

		first = false;
		if ((one ? one_model_find(&some, request, arena, ret)
			 : search_place(&some, request, arena, ret, NULL)) == 0)
			return 0;
	}
	if (!ret_why || search_place(search, request, NULL, NULL, ret_why) != 0)
		return PLACE_NO;
	return mixed_verdict(search, request, ret_why);
}

uint32_t models_width(const struct search *search, const struct place_request *request)
{
	const struct space *space = search->space;
	uint32_t most = 0;

	for (uint32_t i = 0; i < space->traits_count; i++) {
		struct search one;
		uint32_t tasks;

		if (!model_is_new(search, i))
			continue;
		one = search_of_model(search, space->traits.at[i].model);
		tasks = search_width(&one, request);
		most = tasks > most ? tasks : most;
	}
	return most;
}

bool models_are_one(const struct search *search)
{
	return must_be_one(search);
}
