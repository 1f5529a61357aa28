/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which candidates go, and where. evict.c has the idea, README.md a worked example.
 */
#include <string.h>

#include "core/scheduling/evict/evict.h"

enum {
	SOLUTIONS_MAX = 8,
	TRIES_MAX = 64,
	OTHER_WAY_MAX = 128,
	SWAP_VICTIMS = 16,
	SWAP_TRIES = 64,
	PAIR_VICTIMS = 8,
	PAIR_OTHERS = 12,
	PAIR_TRIES = 16
};

/* --- giving and taking back -------------------------------------------------------------------------------- */

static void tasks_move(struct hunt *hunt, const struct victim *v, bool give)
{
	struct space *space = &hunt->pass->view->space;

	for (uint32_t i = victim_first(v); i < victim_end(v); i++) {
		const struct task *task =
			table_get(&hunt->pass->facts->tasks, v->attempt->first_task + i);
		int32_t rank = space_rank(space, task->node.v);
		struct hold hold = task_hold(task, v->shape, i);

		if (rank == RANK_NONE || !victim_has(v, i, task))
			continue;
		if (give)
			space_give(space, (uint32_t)rank, &hold);
		else
			space_take(space, (uint32_t)rank, &hold);
	}
}

void hunt_promise_move(struct hunt *hunt, const struct promise_view *p, bool give)
{
	struct space *space = &hunt->pass->view->space;

	for (uint32_t i = 0; i < p->tasks; i++) {
		int32_t rank = space_rank(space, promise_node(p, i));
		struct hold hold = promise_task(p, i);

		if (rank == RANK_NONE)
			continue;
		if (give)
			space_unpromise(space, (uint32_t)rank, &hold);
		else
			space_promise(space, (uint32_t)rank, &hold);
	}
}

/* Of its own queue: a promise, or standard work that would run on. */
static int64_t own_share(const struct hunt *hunt, const struct victim *v)
{
	return v->queue == hunt->j->queue.v && !v->coming && v->tier != TIER_BEST_EFFORT ? v->share
											 : 0;
}

/* The same of processors and memory, for a job without GPUs. */
static void own_beside_count(struct hunt *hunt, const struct victim *v, int sign)
{
	struct beside beside;

	if (!hunt_is_bare(hunt) || v->queue != hunt->j->queue.v || v->coming ||
	    v->tier == TIER_BEST_EFFORT)
		return;
	beside = victim_beside(hunt->pass, v);
	hunt->own_beside.cpu_milli += sign * beside.cpu_milli;
	hunt->own_beside.ram_mib += sign * beside.ram_mib;
}

/* The promise goes, or is there again. */
static void promise_counts(struct hunt *hunt, const struct victim *v, bool goes)
{
	struct pass *pass = hunt->pass;

	standing_promise(&pass->standings, v->queue, v->tier, goes ? -v->share : v->share);
	beside_move(&pass->standings, v->queue, v->tier, victim_beside(pass, v), goes ? -1 : 1);
	pledge_promise(pass, v->promise, goes ? -1 : 1);
	spend_promise(pass, v->promise, goes ? -1 : 1);
	promise_hold(pass, v->promise, !goes);
}

static void victim_move(struct hunt *hunt, const struct victim *v, bool give)
{
	hunt->own += give ? own_share(hunt, v) : -own_share(hunt, v);
	own_beside_count(hunt, v, give ? 1 : -1);
	if (v->promise) {
		hunt_promise_move(hunt, v->promise, give);
		promise_counts(hunt, v, give);
		return;
	}
	tasks_move(hunt, v, give);
	if (v->coming)
		coming_hold(hunt->pass, v->job, give);
	else
		victim_counts(hunt->pass, v, give);
}

/*
 * Who takes the place of work of its own queue does not lift that queue above its share: others would take the more back, and what they
 * make wait would take its place again, round and round. By hand: 36 GPUs, of which default's share is 19 and red's 16.
 *
 *	default runs 8 and 8, red 8, best-effort work the rest
 *	default's job of 12 takes the place of one of its 8, and of best-effort work: 20. So red takes 8 back: 12 and 16
 *	red's job of 12 takes the place of one of its 8, and of best-effort work: 20. So default takes 8 back, and all is as it was
 *
 * So of its own queue it takes no less than it needs, or it waits until the others leave it room.
 */
static bool own_is_enough(const struct hunt *hunt)
{
	return (!hunt->own || hunt->need <= hunt->own ||
		standing_within(&hunt->pass->standings, hunt->j->queue.v, 0, hunt->need)) &&
	       bare_own_is_enough(hunt);
}

static bool room_is_enough(const struct hunt *hunt)
{
	return own_is_enough(hunt) &&
	       quota_room(&hunt->pass->standings, hunt->j->queue.v, hunt->j->tier, true, hunt->need,
			  NULL) >= hunt->need &&
	       (hunt->cost < 0 || spend_covers(hunt->pass, hunt->j->queue.v, hunt->cost));
}

/* In a unit: 0 is the whole cluster, else 1 + rank of a node, or 1 + index of a domain. */
static struct place_request unit_request(const struct hunt *hunt, uint32_t unit, bool nodes)
{
	struct place_request request =
		pass_request(hunt->pass, hunt->shape, hunt->shape->tasks_min);

	request.home = pass_home(hunt->pass, hunt->job);
	if (unit && nodes)
		request.rank = (int32_t)unit - 1;
	else if (unit)
		request.domain = unit - 1;
	return request;
}

static bool fits(struct hunt *hunt, const struct place_request *request)
{
	hunt->pass->work++;
	hunt->pass->steps += 8; /* what it costs beside reading a candidate */
	return room_is_enough(hunt) && place_bound(&hunt->pass->view->space, request, NULL) == 0 &&
	       place_find(&hunt->pass->view->space, request, NULL, NULL, NULL) == 0;
}

static bool victim_touches(const struct hunt *hunt, const struct victim *v,
			   const struct place_request *request)
{
	const struct space *space = &hunt->pass->view->space;
	const struct domain *d = &space->domains.at[request->domain];

	if (v->promise || (request->domain == 0 && request->rank == RANK_NONE))
		return true;
	for (uint32_t i = victim_first(v); i < victim_end(v); i++) {
		const struct task *task =
			table_get(&hunt->pass->facts->tasks, v->attempt->first_task + i);
		int32_t rank = space_rank(space, task->node.v);

		if (rank != RANK_NONE && victim_has(v, i, task) &&
		    (request->rank == RANK_NONE
			     ? (uint32_t)rank >= d->first && (uint32_t)rank < d->end
			     : rank == request->rank))
			return true;
	}
	return false;
}

/* --- solving a unit -------------------------------------------------------------------------------------------- */

/* Nobody in the set may be entitled to come back at once at the job's expense. */
static bool set_is_final(const struct hunt *hunt, const uint32_t *chosen, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct victim *v = candidate(hunt, chosen[i]);
		uint32_t top;

		if (v->promise || v->coming || v->tier == TIER_BEST_EFFORT ||
		    v->queue == hunt->j->queue.v)
			continue;
		if (v->leaver) /* nobody is evicted for a rank beyond the least width */
			continue;
		top = queue_meet(hunt->pass->view, hunt->j->queue.v, v->queue);
		if (hunt_is_bare(hunt) || victim_is_bare(v)) {
			if (bare_comes_back(hunt, v, top))
				return false;
			continue;
		}
		if (pledge_brings_back(hunt->pass, v, top))
			return false;
		if (!hunt->pledged && !hunt->claims && hunt->j->tier != TIER_CRITICAL &&
		    standing_within(&hunt->pass->standings, v->queue, top, v->share))
			return false;
	}
	return true;
}

/* Gives candidates back in order until the job fits (or all); the stride grows so that large sets need few trials. */
static bool give_until_fit(struct hunt *hunt, const struct place_request *request, uint32_t end,
			   bool all, uint32_t *chosen, uint32_t *count)
{
	uint32_t stride = 1, since = 0;

	for (uint32_t i = 0; i < end; i++) {
		const struct victim *v = candidate(hunt, i);

		hunt->pass->steps++;
		if (!victim_touches(hunt, v, request) || !candidate_may_go(hunt, v))
			continue;
		victim_move(hunt, v, true);
		chosen[(*count)++] = i;
		if (++since < stride || all)
			continue;
		if (fits(hunt, request))
			return true;
		if (*count >= 64)
			stride = *count / 16;
		since = 0;
	}
	return since && fits(hunt, request);
}

/* Takes the victim at `i` of the chosen back for good when the job fits without it. */
static void take_back_one(struct hunt *hunt, const struct place_request *request, uint32_t *chosen,
			  uint32_t i)
{
	victim_move(hunt, candidate(hunt, chosen[i]), false);
	if (fits(hunt, request))
		chosen[i] = UINT32_MAX;
	else
		victim_move(hunt, candidate(hunt, chosen[i]), true);
}

/* Each in turn, from the dearest or from the cheapest: none that is left can be missed. */
static uint32_t take_back(struct hunt *hunt, const struct place_request *request, bool cheap_first,
			  uint32_t *chosen, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		take_back_one(hunt, request, chosen, cheap_first ? i : count - 1 - i);
	for (uint32_t i = 0; i < count; i++)
		if (chosen[i] != UINT32_MAX)
			chosen[kept++] = chosen[i];
	return kept;
}

/* Promises in the set are gone, or not yet. How many there are. */
static uint32_t promises_mark(struct hunt *hunt, const uint32_t *chosen, uint32_t count, bool gone)
{
	struct pass *pass = hunt->pass;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct promise_view *p = candidate(hunt, chosen[i])->promise;

		if (p)
			pass->promises_gone[p - pass->view->promises.at] = gone;
		taken += p != NULL;
	}
	return taken;
}

/* Who takes a promise over spares its victims: that must not take room in a limit from other promises. */
static bool promises_allow(struct hunt *hunt, const uint32_t *chosen, uint32_t count)
{
	struct standings *standings = &hunt->pass->standings;
	bool allow;

	if (!promises_mark(hunt, chosen, count, true))
		return true;
	standing_promise(standings, hunt->j->queue.v, hunt->j->tier, hunt->need);
	allow = promises_have_room(hunt->pass, NULL);
	standing_promise(standings, hunt->j->queue.v, hunt->j->tier, -hunt->need);
	(void)promises_mark(hunt, chosen, count, false);
	return allow;
}

/* The chosen are given back: finds the place and the cost, and takes all back again. `good`: the job fits. */
static bool solution_close(struct hunt *hunt, const struct place_request *request, uint32_t mark,
			   uint32_t count, bool good, struct solution *ret)
{
	struct pass *pass = hunt->pass;

	ret->count = count;
	hunt->own = 0; /* all are taken back below */
	hunt->own_beside = (struct beside){ 0, 0 };
	good = good && set_is_final(hunt, ret->chosen, count) &&
	       promises_allow(hunt, ret->chosen, count) &&
	       place_find(&pass->view->space, request, pass->arena, &ret->place, NULL) == 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct victim *v = candidate(hunt, ret->chosen[i]);

		if (v->tier == TIER_BEST_EFFORT)
			ret->spare_cost += v->cost;
		else
			ret->cost += v->cost;
		ret->jobs += !v->promise && !v->coming && !v->leaver;
		ret->bare_cost += v->bare_cost;
		ret->share += !v->promise && !v->coming && !v->leaver ? v->share : 0;
		ret->gpus += hunt_is_bare(hunt) && !v->promise && !v->coming ? v->share : 0;
		if (v->promise)
			promise_counts(hunt, v, false);
		else if (v->coming)
			coming_hold(pass, v->job, false);
		else
			victim_counts(pass, v, false);
	}
	space_rollback(&pass->view->space, mark);
	return good;
}

static bool unit_solve(struct hunt *hunt, uint32_t unit, bool nodes, uint32_t end, bool cheap_first,
		       struct solution *ret)
{
	struct place_request request = unit_request(hunt, unit, nodes);
	uint32_t mark = space_mark(&hunt->pass->view->space), count = 0;
	bool good;

	*ret = (struct solution){ .chosen = hunt->scratch };
	good = give_until_fit(hunt, &request, end, cheap_first, ret->chosen, &count) &&
	       (!cheap_first || count <= OTHER_WAY_MAX);
	if (good)
		count = take_back(hunt, &request, cheap_first, ret->chosen, count);
	return solution_close(hunt, &request, mark, count, good, ret);
}

static bool may_be_added(struct hunt *hunt, const struct place_request *request, uint32_t index)
{
	return victim_touches(hunt, candidate(hunt, index), request) &&
	       candidate_may_go(hunt, candidate(hunt, index));
}

/* The set with more victims, then without all that they make needless, the dearest first. */
static bool unit_swap(struct hunt *hunt, uint32_t unit, bool nodes, const struct solution *base,
		      const uint32_t *added, uint32_t added_count, struct solution *ret)
{
	struct place_request request = unit_request(hunt, unit, nodes);
	uint32_t mark = space_mark(&hunt->pass->view->space), count = base->count;
	bool good;

	/* Mostly it is elsewhere, which is known before anything is moved. */
	if (!victim_touches(hunt, candidate(hunt, added[0]), &request))
		return false;
	*ret = (struct solution){ .chosen = hunt->scratch };
	memcpy(ret->chosen, base->chosen, count * sizeof(*ret->chosen));
	for (uint32_t i = 0; i < count; i++)
		victim_move(hunt, candidate(hunt, ret->chosen[i]), true);
	good = may_be_added(hunt, &request, added[0]) &&
	       (added_count == 1 || may_be_added(hunt, &request, added[1]));
	if (good) {
		for (uint32_t i = 0; i < added_count; i++)
			victim_move(hunt, candidate(hunt, added[i]), true);
		count = take_back(hunt, &request, false, ret->chosen, count);
		for (uint32_t i = 0; i < added_count; i++)
			ret->chosen[count++] = added[i];
		count = take_back(hunt, &request, true, ret->chosen, count);
	}
	return solution_close(hunt, &request, mark, count, good, ret);
}

static bool solution_better(const struct solution *a, const struct solution *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	if (a->spare_cost != b->spare_cost)
		return a->spare_cost < b->spare_cost;
	if (a->jobs != b->jobs)
		return a->jobs < b->jobs;
	if (a->gpus != b->gpus)
		return a->gpus < b->gpus;
	if (a->bare_cost != b->bare_cost)
		return a->bare_cost < b->bare_cost;
	if (a->share != b->share)
		return a->share < b->share;
	return a->count < b->count;
}

/* --- units ---------------------------------------------------------------------------------------------------------- */

static bool units_are_nodes(const struct shape *shape)
{
	return shape->tasks_min == 1 || shape->require == LEVEL_NODE ||
	       shape->require == LEVEL_ISLAND;
}

static uint32_t unit_of(const struct hunt *hunt, uint32_t rank, bool nodes)
{
	return 1 + (nodes ? rank
			  : space_at(&hunt->pass->view->space, rank)->domain[hunt->shape->require]);
}

static int64_t unit_free(const struct hunt *hunt, uint32_t unit, bool nodes)
{
	const struct space *space = &hunt->pass->view->space;
	uint64_t classes;

	if (nodes)
		return (int64_t)bits_count(place_node_free(space_at(space, unit - 1))) * GPU_SHARE +
		       space_at(space, unit - 1)->open_share;
	space_classes_of(space, hunt->shape, &classes);
	return space_free_share(space, unit - 1, classes);
}

/* What would be free in the unit when the candidates seen so far were gone; processors and memory of nodes alone. */
struct tally {
	int64_t share;
	struct beside beside;
	uint32_t stamp;
};

static struct tally *unit_tally(struct hunt *hunt, uint32_t unit, bool nodes)
{
	struct pass *pass = hunt->pass;
	uint32_t units = pass->view->space.node_count + pass->view->space.domain_count + 1;
	struct tally *tally;

	if (!pass->tally)
		pass->tally = arena_new_array(pass->arena, struct tally, units);
	tally = &pass->tally[unit];
	if (tally->stamp != pass->stamp) {
		*tally = (struct tally){ .share = unit_free(hunt, unit, nodes),
					 .stamp = pass->stamp };
		if (nodes) {
			const struct place_node *node = space_at(&pass->view->space, unit - 1);

			tally->beside = (struct beside){ node->cpu_free, node->ram_free };
		}
	}
	return tally;
}

static bool tally_is_enough(const struct hunt *hunt, const struct tally *tally, bool nodes)
{
	return tally->share >= hunt->least &&
	       (!nodes || (tally->beside.cpu_milli >= hunt->beside.cpu_milli &&
			   tally->beside.ram_mib >= hunt->beside.ram_mib));
}

struct choice {
	struct solution best;
	uint32_t unit; /* of the best */
	uint32_t solved, tries;
	bool any;
};

static void choice_note(struct hunt *hunt, const struct solution *solution, uint32_t unit,
			struct choice *choice)
{
	uint32_t *chosen = arena_new_array(hunt->pass->arena, uint32_t, solution->count + 1);

	memcpy(chosen, solution->chosen, solution->count * sizeof(*chosen));
	choice->best = *solution;
	choice->best.chosen = chosen;
	choice->unit = unit;
}

static bool unit_try_one(struct hunt *hunt, uint32_t unit, bool nodes, uint32_t end,
			 bool cheap_first, struct choice *choice)
{
	struct solution solution;

	if (!unit_solve(hunt, unit, nodes, end, cheap_first, &solution))
		return false;
	if (!choice->any || solution_better(&solution, &choice->best))
		choice_note(hunt, &solution, unit, choice);
	choice->any = true;
	return true;
}

/* Both ways; the other way can only be better when the first found more than one victim. */
static void unit_try(struct hunt *hunt, uint32_t unit, bool nodes, uint32_t end,
		     struct choice *choice)
{
	choice->tries++;
	if (!unit_try_one(hunt, unit, nodes, end, false, choice))
		return;
	choice->solved++;
	if (choice->best.count > 1)
		(void)unit_try_one(hunt, unit, nodes, end, true, choice);
}

/* The victim's next task lies in the same unit: the tally is not complete before that one. */
static bool same_unit_follows(const struct hunt *hunt, const struct victim *v, uint32_t task,
			      uint32_t unit, bool nodes)
{
	const struct task *next;
	int32_t rank;

	if (task + 1 >= v->attempt->tasks)
		return false;
	next = table_get(&hunt->pass->facts->tasks, v->attempt->first_task + task + 1);
	rank = space_rank(&hunt->pass->view->space, next->node.v);
	return rank != RANK_NONE && victim_has(v, task + 1, next) &&
	       unit_of(hunt, (uint32_t)rank, nodes) == unit;
}

static int64_t hold_share(struct hold hold)
{
	return hold.part ? (hold.mask ? hold.part : 0) : (int64_t)bits_count(hold.mask) * GPU_SHARE;
}

static void tally_add(struct tally *tally, struct hold hold)
{
	tally->share += hold_share(hold);
	tally->beside.cpu_milli += hold.cpu_milli;
	tally->beside.ram_mib += hold.ram_mib;
}

/* Promised GPUs that are free, or will be when their holders are gone. */
static void promise_tally(struct hunt *hunt, const struct promise_view *p, bool nodes)
{
	for (uint32_t i = 0; i < p->tasks; i++) {
		int32_t rank = space_rank(&hunt->pass->view->space, promise_node(p, i));

		if (rank != RANK_NONE)
			tally_add(unit_tally(hunt, unit_of(hunt, (uint32_t)rank, nodes), nodes),
				  promise_task(p, i));
	}
}

/* Adds one candidate to the tallies of the units it touches, and tries those that may hold enough now. */
static void candidate_tally(struct hunt *hunt, uint32_t index, bool nodes, struct choice *choice)
{
	const struct victim *v = candidate(hunt, index);

	hunt->pass->steps++;
	if (v->promise) {
		promise_tally(hunt, v->promise, nodes);
		return;
	}
	for (uint32_t i = victim_first(v);
	     i < victim_end(v) && choice->solved < SOLUTIONS_MAX && choice->tries < TRIES_MAX;
	     i++) {
		const struct task *task =
			table_get(&hunt->pass->facts->tasks, v->attempt->first_task + i);
		int32_t rank = space_rank(&hunt->pass->view->space, task->node.v);
		const struct place_node *node;
		struct hold hold;
		struct tally *tally;
		uint32_t unit;

		if (rank == RANK_NONE || !victim_has(v, i, task))
			continue;
		node = space_at(&hunt->pass->view->space, (uint32_t)rank);
		unit = unit_of(hunt, (uint32_t)rank, nodes);
		tally = unit_tally(hunt, unit, nodes);
		hold = task_hold(task, v->shape, i);
		hold.mask &= node->usable & ~node->blocked & ~(node->promised & ~node->shared);
		tally_add(tally, hold);
		if (tally_is_enough(hunt, tally, nodes) &&
		    !same_unit_follows(hunt, v, i, unit, nodes))
			unit_try(hunt, unit, nodes, index + 1, choice);
	}
}

/* Any further solution costs at least what its last candidate costs. */
static bool search_is_over(const struct hunt *hunt, uint32_t index, const struct choice *choice)
{
	const struct victim *v = candidate(hunt, index);

	if (choice->solved >= SOLUTIONS_MAX || choice->tries >= TRIES_MAX)
		return true;
	if (!choice->any || v->promise || v->coming)
		return false;
	if (v->tier == TIER_BEST_EFFORT)
		return choice->best.cost == 0 && v->cost >= choice->best.spare_cost;
	return v->cost >= choice->best.cost;
}

static bool choice_has(const struct choice *choice, uint32_t index)
{
	for (uint32_t i = 0; i < choice->best.count; i++)
		if (choice->best.chosen[i] == index)
			return true;
	return false;
}

/* The best set with these in exchange for those they make needless; true = that is cheaper. */
static bool choice_swap(struct hunt *hunt, bool nodes, struct choice *choice, const uint32_t *added,
			uint32_t count)
{
	struct solution solution;

	if (!unit_swap(hunt, choice->unit, nodes, &choice->best, added, count, &solution) ||
	    !solution_better(&solution, &choice->best))
		return false;
	choice_note(hunt, &solution, choice->unit, choice);
	return true;
}

/* Each of the other candidates in turn. */
static bool improve_by_one(struct hunt *hunt, bool nodes, struct choice *choice, uint32_t *tries)
{
	uint32_t end = hunt->count < OTHER_WAY_MAX ? hunt->count : OTHER_WAY_MAX;
	bool better = false;

	for (uint32_t i = 0; i < end && *tries < SWAP_TRIES; i++) {
		if (choice_has(choice, i))
			continue;
		++*tries;
		better |= choice_swap(hunt, nodes, choice, &i, 1);
	}
	return better;
}

/* A set with both costs no less than these two alone. */
static bool pair_may_pay(const struct hunt *hunt, const struct choice *choice,
			 const uint32_t pair[2])
{
	struct solution both = { .count = 2 };

	for (int i = 0; i < 2; i++) {
		const struct victim *v = candidate(hunt, pair[i]);

		if (v->tier == TIER_BEST_EFFORT)
			both.spare_cost += v->cost;
		else
			both.cost += v->cost;
	}
	return solution_better(&both, &choice->best);
}

/* Two of the others at once, the cheapest first; true = one such pair is cheaper. */
static bool improve_by_two(struct hunt *hunt, bool nodes, struct choice *choice, uint32_t *tries)
{
	struct place_request request = unit_request(hunt, choice->unit, nodes);
	uint32_t end = hunt->count < OTHER_WAY_MAX ? hunt->count : OTHER_WAY_MAX, count = 0;
	uint32_t others[PAIR_OTHERS];

	for (uint32_t i = 0; i < end && count < PAIR_OTHERS; i++)
		if (!choice_has(choice, i) && may_be_added(hunt, &request, i))
			others[count++] = i;
	for (uint32_t far = 1; far < count; far++) {
		for (uint32_t near = 0; near < far && *tries < PAIR_TRIES; near++) {
			const uint32_t pair[2] = { others[near], others[far] };

			if (!pair_may_pay(hunt, choice, pair))
				continue;
			++*tries;
			if (choice_swap(hunt, nodes, choice, pair, 2))
				return true;
		}
	}
	return false;
}

/*
 * Two orders miss sets in which a victim serves in the place of several that do not stand beside it in either. So each of
 * the other candidates is tried in exchange for those it makes needless, until no exchange is cheaper; then two of them at
 * once, which finds two for two. Small sets only: of large ones a part more or less matters little.
 */
static void choice_improve(struct hunt *hunt, bool nodes, struct choice *choice)
{
	uint32_t tries = 0, pairs = 0;
	bool better = choice->any && choice->best.count > 1;

	while (better && choice->best.count <= SWAP_VICTIMS) {
		better = improve_by_one(hunt, nodes, choice, &tries);
		if (!better && choice->best.count <= PAIR_VICTIMS)
			better = improve_by_two(hunt, nodes, choice, &pairs);
	}
}

bool hunt_solve(struct hunt *hunt, struct solution *ret)
{
	bool nodes = units_are_nodes(hunt->shape);
	struct choice choice = { .any = false };

	if (hunt->room_short || (!nodes && (!hunt->shape->require || hunt_is_bare(hunt)))) {
		unit_try(hunt, 0, false, hunt->count, &choice);
	} else {
		hunt->pass->stamp++;
		for (uint32_t i = 0; i < hunt->count && !search_is_over(hunt, i, &choice); i++)
			candidate_tally(hunt, i, nodes, &choice);
	}
	choice_improve(hunt, choice.unit ? nodes : false, &choice);
	*ret = choice.best;
	return choice.any;
}
