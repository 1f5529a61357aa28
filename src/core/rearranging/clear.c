/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which jobs move so that a waiting one fits. Node by node: the one on which room for one more task (for a job that needs one node:
 * for all of it) comes cheapest is cleared, until all tasks have room; then what turned out needless stays.
 *
 *	4 nodes of 4; a gang of two tasks with 4 GPUs each.	n0 ....	n1 a...	n2 bb..	n3 c.dd
 *	n0 has room for one task. Cleared for the other: n1, for `a` alone has to go: to n3, the tightest place that is free now.
 *
 * A moved job goes to a place that is free when the plan is made, to its own GPUs, or swaps places with a smaller one (swap.c): no plan can
 * get stuck half way. So a slot for the waiting job is kept first, and then each that leaves it must find its place among what is
 * left, the largest first, while all others still stand where they are. Nodes that are likely cleared later are barred to them.
 *
 * On a node those who go are chosen as victims are (scheduling/evict/evict_solve.c): given back from the cheapest on until the task fits, then
 * taken back, the dearest first; and the other way round, which finds the one wide job that is cheaper than many small ones. 32
 * nodes are tried, those where sums say that it comes cheapest; jobs for which nothing is free anywhere are not asked.
 *
 * Rejected: chains of more than two, where one moves to where another moved away. They find more, but all of them wait for the slowest
 * to leave, and a job that is lost on the way leaves the others without their places.
 */
#include <string.h>

#include "core/rearranging/plan.h"

enum { NODES_TRIED = 32, NODES_ASKED = 1024, DOMAINS_TRIED = 4, SWAPS_TRIED = 64 };

struct clearing {
	struct pass *pass;
	const struct movers *movers;
	const struct stuck *stuck;
	const struct shape *shape;
	uint64_t suits; /* classes of nodes that do */
	bool one_node; /* all tasks on one node */
	bool plain; /* whether it fits on a node follows from numbers of free GPUs, processors and memory */
	uint32_t domain;
	uint32_t moves_most;
	int64_t cost_most;
	/* those that move so far */
	uint32_t *moves;
	struct placement *to;
	uint32_t *after; /* as in a plan */
	uint32_t count;
	int64_t cost;
	uint32_t swaps; /* tried, in all domains */
	bool ahead; /* nobody moves to a node that is cleared later; */
	bool barred; /* that kept somebody from one */
	uint64_t *moved; /* by mover, a bit each */
	struct placement *slots; /* kept for the waiting job's tasks */
	uint32_t slot_count;
};

/* One node cleared. */
struct step {
	uint32_t rank;
	uint32_t *moves, *after;
	struct placement *to, slot;
	uint32_t count;
	int64_t cost;
	const uint64_t *barred; /* ranks to which nobody moves */
	bool needs_all; /* none of those who could go on the node can stay */
};

static const struct mover *mover_at(const struct clearing *c, uint32_t i)
{
	return &c->movers->list[i];
}

static bool is_moved(const struct clearing *c, uint32_t i)
{
	return c->moved[i / 64] >> i % 64 & 1;
}

static struct place_request request_of(const struct clearing *c, uint32_t tasks)
{
	struct place_request request = pass_request(c->pass, c->shape, tasks);

	request.domain = c->domain;
	return request;
}

/* That have to fit on one. */
static uint32_t node_tasks(const struct clearing *c)
{
	return c->one_node ? c->shape->tasks_min : 1;
}

static struct place_request node_request(const struct clearing *c, uint32_t rank)
{
	struct place_request request = request_of(c, node_tasks(c));

	request.domain = 0;
	request.rank = (int32_t)rank;
	return request;
}

static bool fits(const struct clearing *c, const struct place_request *request)
{
	c->pass->work++;
	return place_find(&c->pass->view->space, request, NULL, NULL, NULL) == 0;
}

static void all_shift(const struct clearing *c, const uint32_t *moves, uint32_t count, bool give)
{
	for (uint32_t i = 0; i < count; i++)
		if (give)
			mover_give(c->pass, mover_at(c, moves[i]));
		else
			mover_take(c->pass, mover_at(c, moves[i]));
}

/* --- a node without some of its movers ---------------------------------------------------------------------------- */

/*
 * On most nodes GPUs are held whole, and most wishes ask for no more than GPUs, processors and memory. Then the node's own numbers say
 * what place_find would, and nothing is given back in the space, where each change is counted at all levels. Else it is.
 */
struct trial {
	uint32_t rank;
	bool plain;
	uint32_t busy; /* of a plain one: what is held without those who are gone */
	int64_t cpu_free, ram_free;
	struct place_request request; /* of others */
	uint32_t mark;
};

static bool wish_is_plain(const struct shape *shape)
{
	return shape->gpus && !shape_is_part(shape) && !shape->role_count && !shape->align &&
	       !shape->apart && !shape->max_slowdown && !shape->data[0].v &&
	       shape->require != LEVEL_ISLAND;
}

static void trial_shift(const struct clearing *c, struct trial *trial, uint32_t at, bool give)
{
	const struct node_mover *m = &c->movers->at[at];

	if (!trial->plain) {
		all_shift(c, &m->mover, 1, give);
		return;
	}
	trial->busy = give ? trial->busy & ~m->mask : trial->busy | m->mask;
	trial->cpu_free += give ? m->cpu_milli : -m->cpu_milli;
	trial->ram_free += give ? m->ram_mib : -m->ram_mib;
}

static void trial_give(const struct clearing *c, struct trial *trial, uint32_t at)
{
	trial_shift(c, trial, at, true);
}

static void trial_take(const struct clearing *c, struct trial *trial, uint32_t at)
{
	trial_shift(c, trial, at, false);
}

/* Those that move so far are gone. The node is ready, and its class suits. */
static void trial_begin(const struct clearing *c, uint32_t rank, struct trial *ret)
{
	const struct place_node *node = space_at(&c->pass->view->space, rank);

	*ret = (struct trial){ .rank = rank,
			       .plain = c->plain && !node->shared && !node->sliced &&
					node->class != CLASS_MIXED,
			       .busy = node->busy,
			       .cpu_free = node->cpu_free,
			       .ram_free = node->ram_free };
	if (!ret->plain) {
		ret->request = node_request(c, rank);
		ret->mark = space_mark(&c->pass->view->space);
		all_shift(c, c->moves, c->count, true);
		return;
	}
	for (uint32_t i = c->movers->first[rank]; i < c->movers->first[rank + 1]; i++)
		if (is_moved(c, c->movers->at[i].mover))
			trial_give(c, ret, i);
}

static bool trial_fits(const struct clearing *c, const struct trial *trial)
{
	const struct place_node *node = space_at(&c->pass->view->space, trial->rank);
	int64_t tasks = node_tasks(c);

	if (!trial->plain)
		return fits(c, &trial->request);
	c->pass->work++;
	return bits_count(node->usable & ~trial->busy & ~node->promised & ~node->blocked) >=
		       tasks * c->shape->gpus &&
	       (!c->shape->cpu_milli || trial->cpu_free >= tasks * c->shape->cpu_milli) &&
	       (!c->shape->memory_mib || trial->ram_free >= tasks * c->shape->memory_mib);
}

/* The space is as it was before. */
static void trial_end(const struct clearing *c, const struct trial *trial)
{
	if (!trial->plain)
		space_rollback(&c->pass->view->space, trial->mark);
}

/* --- which nodes ------------------------------------------------------------------------------------------------ */

/* What the node lacks for the task, by sums; at most 0: nothing. */
struct lack {
	int64_t share, cpu_milli, ram_mib;
};

static struct lack lack_of(const struct clearing *c, uint32_t rank)
{
	const struct space *space = &c->pass->view->space;
	const struct place_node *node = space_at(space, rank);
	int64_t tasks = node_tasks(c);
	struct lack lack = {
		shape_share_on(c->shape, space->traits.at[node->traits].gpu_memory_mib) * tasks -
			(int64_t)bits_count(place_node_free(node)) * GPU_SHARE - node->open_share,
		(int64_t)c->shape->cpu_milli * tasks - node->cpu_free,
		(int64_t)c->shape->memory_mib * tasks - node->ram_free,
	};

	if (!c->shape->cpu_milli)
		lack.cpu_milli = 0;
	if (!c->shape->memory_mib)
		lack.ram_mib = 0;
	return lack;
}

static struct lack lack_less(struct lack lack, const struct node_mover *at)
{
	return (struct lack){ lack.share - at->share, lack.cpu_milli - at->cpu_milli,
			      lack.ram_mib - at->ram_mib };
}

static bool lacks_nothing(const struct lack *lack)
{
	return lack->share <= 0 && lack->cpu_milli <= 0 && lack->ram_mib <= 0;
}

/* The least that room on the node may cost, by sums; -1 = all that could go would not make it. */
static int64_t node_estimate(const struct clearing *c, uint32_t rank)
{
	const struct node_mover *first = c->movers->at + c->movers->first[rank],
				*end = c->movers->at + c->movers->first[rank + 1];
	struct lack lack, alone;
	int64_t sum = 0, single = -1;
	bool any = false;

	if (first == end)
		return -1;
	lack = lack_of(c, rank);
	for (const struct node_mover *at = first; at < end; at++)
		if (is_moved(c, at->mover))
			lack = lack_less(lack, at);
	alone = lack;
	for (const struct node_mover *at = first; at < end; at++) {
		struct lack rest = lack_less(alone, at);

		if (is_moved(c, at->mover))
			continue;
		if (single < 0 && lacks_nothing(&rest))
			single = at->cost;
		if (any && lacks_nothing(&lack))
			continue;
		any = true;
		sum += at->cost;
		lack = lack_less(lack, at);
	}
	if (!any || !lacks_nothing(&lack))
		return -1;
	return single >= 0 && single < sum ? single : sum;
}

/* When all who may move are gone: sums say nothing of parts that lie on several GPUs. The space is as before. */
static bool node_could(const struct clearing *c, uint32_t rank)
{
	struct trial trial;
	bool could;

	trial_begin(c, rank, &trial);
	for (uint32_t i = c->movers->first[rank]; i < c->movers->first[rank + 1]; i++)
		if (!is_moved(c, c->movers->at[i].mover))
			trial_give(c, &trial, i);
	could = trial_fits(c, &trial);
	trial_end(c, &trial);
	return could;
}

/* The cheapest nodes by that estimate, of equal ones the first. */
static uint32_t nodes_pick(const struct clearing *c, uint32_t ret[NODES_TRIED])
{
	const struct space *space = &c->pass->view->space;
	const struct domain *d = &space->domains.at[c->domain];
	int64_t costs[NODES_TRIED];
	uint32_t count = 0, asked = 0;

	for (uint32_t i = 0; i < c->movers->rank_count; i++) {
		uint32_t rank = c->movers->ranks[i], at = count;
		const struct place_node *node = space_at(space, rank);
		int64_t cost;

		if (rank < d->first || rank >= d->end || !node->ready ||
		    !(c->suits >> node->class & 1))
			continue;
		cost = node_estimate(c, rank);
		if (cost < 0 || c->cost + cost > c->cost_most ||
		    (count == NODES_TRIED && cost >= costs[count - 1]) || asked++ >= NODES_ASKED ||
		    !node_could(c, rank))
			continue;
		if (count < NODES_TRIED)
			count++;
		else
			at = NODES_TRIED - 1;
		for (; at > 0 && costs[at - 1] > cost; at--) {
			costs[at] = costs[at - 1];
			ret[at] = ret[at - 1];
		}
		costs[at] = cost;
		ret[at] = rank;
	}
	return count;
}

/* --- clearing one ----------------------------------------------------------------------------------------------- */

/* Gives back from the cheapest on until the task fits; or all, when they are to be taken back the cheapest first. */
static bool give_until_fit(const struct clearing *c, struct trial *trial, bool all,
			   struct step *step)
{
	for (uint32_t i = c->movers->first[step->rank]; i < c->movers->first[step->rank + 1]; i++) {
		if (is_moved(c, c->movers->at[i].mover))
			continue;
		trial_give(c, trial, i);
		step->moves[step->count++] = i;
		if (!all && trial_fits(c, trial))
			return true;
	}
	return all && trial_fits(c, trial);
}

static void take_back(const struct clearing *c, struct trial *trial, bool cheap_first,
		      struct step *step)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < step->count; i++) {
		uint32_t *at = &step->moves[cheap_first ? i : step->count - 1 - i];

		trial_take(c, trial, *at);
		if (trial_fits(c, trial)) {
			*at = UINT32_MAX;
			continue;
		}
		trial_give(c, trial, *at);
	}
	for (uint32_t i = 0; i < step->count; i++)
		if (step->moves[i] != UINT32_MAX)
			step->moves[kept++] = step->moves[i];
	step->count = kept;
}

/* The largest first: a small one fits where a large one left something. */
static void moves_order(const struct clearing *c, struct step *step)
{
	for (uint32_t i = 1; i < step->count; i++) {
		uint32_t moved = step->moves[i], at = i;

		for (;
		     at > 0 && mover_at(c, step->moves[at - 1])->share < mover_at(c, moved)->share;
		     at--)
			step->moves[at] = step->moves[at - 1];
		step->moves[at] = moved;
	}
}

static bool step_has(const struct step *step, uint32_t mover)
{
	for (uint32_t i = 0; i < step->count; i++)
		if (step->moves[i] == mover)
			return true;
	return false;
}

static bool rank_is_barred(const struct step *step, uint32_t rank)
{
	return rank == step->rank || (step->barred && step->barred[rank / 64] >> rank % 64 & 1);
}

/* Smaller than the step's mover `i`, elsewhere, and not too expensive: its place and what is free next to it may be enough. */
static bool may_swap(const struct clearing *c, const struct step *step, uint32_t i, uint32_t other)
{
	const struct mover *m = mover_at(c, step->moves[i]), *o = mover_at(c, other);

	return o->hosts == 1 && o->share < m->share && name_same(o->model, m->model) &&
	       c->cost + step->cost + o->cost <= c->cost_most && !is_moved(c, other) &&
	       !step_has(step, other) && !rank_is_barred(step, o->first);
}

/* The step's mover `i` swaps places with the cheapest job that allows it, which is one more of the step. */
static bool move_swap(struct clearing *c, struct step *step, uint32_t i)
{
	const struct mover *m = mover_at(c, step->moves[i]);
	struct swap swap;

	if (m->hosts > 1 || c->count + step->count >= c->moves_most)
		return false;
	for (uint32_t other = 0; other < c->movers->count && c->swaps < SWAPS_TRIED; other++) {
		if (!may_swap(c, step, i, other))
			continue;
		c->swaps++;
		if (!swap_find(c->pass, step->barred, m, mover_at(c, other), &swap))
			continue;
		step->to[i] = swap.to;
		step->after[i] = 1 + other;
		step->to[step->count] = swap.other_to;
		step->after[step->count] = swap.other_waits ? 1 + step->moves[i] : 0;
		step->moves[step->count++] = other;
		step->cost += mover_at(c, other)->cost;
		return true;
	}
	return false;
}

/* With the slot kept and all where they are, each finds another place. These stay kept. */
static bool moves_place(struct clearing *c, struct step *step)
{
	uint32_t leave = step->count;

	place_keep(c->pass, &step->slot, c->shape);
	moves_order(c, step);
	for (uint32_t i = 0; i < leave; i++) {
		const struct mover *m = mover_at(c, step->moves[i]);

		if (!m->boxed && mover_find(c->pass, step->barred, m, &step->to[i]))
			place_keep(c->pass, &step->to[i], m->shape);
		else if (!move_swap(c, step, i))
			return false;
	}
	return true;
}

/* Of those on the node that do not move so far. */
static uint32_t node_movers(const struct clearing *c, uint32_t rank)
{
	uint32_t count = 0;

	for (uint32_t i = c->movers->first[rank]; i < c->movers->first[rank + 1]; i++)
		count += !is_moved(c, c->movers->at[i].mover);
	return count;
}

/* Who goes, and what that costs; false: nobody would be enough, or too many. The space is as before. */
static bool node_choose(const struct clearing *c, bool cheap_first, struct step *step)
{
	struct trial trial;
	uint32_t given;
	bool good;

	trial_begin(c, step->rank, &trial);
	good = give_until_fit(c, &trial, cheap_first, step);
	given = step->count;
	if (good)
		take_back(c, &trial, cheap_first, step);
	trial_end(c, &trial);
	step->needs_all = good && step->count == given && given == node_movers(c, step->rank);
	for (uint32_t i = 0; i < step->count; i++) {
		step->cost += c->movers->at[step->moves[i]].cost;
		step->moves[i] = c->movers->at[step->moves[i]].mover;
	}
	return good && c->count + step->count <= c->moves_most;
}

/* The task's place when they are gone, and those who moved from there before. The space is as before. */
static bool slot_find(const struct clearing *c, struct step *step)
{
	struct place_request request = node_request(c, step->rank);
	uint32_t mark = space_mark(&c->pass->view->space);
	bool good;

	for (uint32_t i = c->movers->first[step->rank]; i < c->movers->first[step->rank + 1]; i++)
		if (is_moved(c, c->movers->at[i].mover))
			mover_give(c->pass, mover_at(c, c->movers->at[i].mover));
	all_shift(c, step->moves, step->count, true);
	good = place_find(&c->pass->view->space, &request, c->pass->arena, &step->slot, NULL) == 0;
	space_rollback(&c->pass->view->space, mark);
	return good;
}

static bool step_better(const struct step *a, const struct step *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	return a->count < b->count;
}

/* A way that is better than `best` (NULL = any is). Where those who go could go to is sought last: that takes longest. The space is
 * as before. */
static bool node_clear(struct clearing *c, uint32_t rank, bool cheap_first, const struct step *best,
		       struct step *ret)
{
	uint32_t mark = space_mark(&c->pass->view->space),
		 most = 2 * (c->movers->first[rank + 1] - c->movers->first[rank]) + 1;
	bool good;

	*ret = (struct step){ .rank = rank, .barred = ret->barred };
	ret->moves = arena_new_array(c->pass->arena, uint32_t, most);
	if (!node_choose(c, cheap_first, ret) || c->cost + ret->cost > c->cost_most ||
	    (best && !step_better(ret, best)) || !slot_find(c, ret))
		return false;
	ret->after = arena_new_array(c->pass->arena, uint32_t, most);
	ret->to = arena_new_array(c->pass->arena, struct placement, most);
	good = moves_place(c, ret);
	space_rollback(&c->pass->view->space, mark);
	return good && (!best || step_better(ret, best)); /* who swaps costs as well */
}

/* How many tasks have no room so far. */
static uint32_t tasks_left(const struct clearing *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->slot_count; i++)
		kept += c->slots[i].count;
	return c->shape->tasks_min > kept ? c->shape->tasks_min - kept : 0;
}

/* Of the nodes picked, those which are likely cleared after this one: nobody who leaves this one moves to them. */
static const uint64_t *later_barred(struct clearing *c, const uint32_t *ranks, uint32_t count,
				    uint32_t rank)
{
	uint32_t words = bits_row(c->pass->view->space.node_count) + 1, left = tasks_left(c);
	uint64_t *barred;

	if (!c->ahead || left < 2 || count < 2)
		return c->movers->barred;
	c->barred = true;
	barred = arena_new_array(c->pass->arena, uint64_t, words);
	for (uint32_t i = 0; i < words && c->movers->barred; i++)
		barred[i] = c->movers->barred[i];
	for (uint32_t i = 0; i < count && left > 1; i++) {
		if (ranks[i] == rank)
			continue;
		barred[ranks[i] / 64] |= UINT64_C(1) << ranks[i] % 64;
		left--;
	}
	return barred;
}

/* The cheapest room for one task more. The space is as before. */
static bool step_find(struct clearing *c, struct step *ret)
{
	uint32_t ranks[NODES_TRIED], count = nodes_pick(c, ranks);
	struct step step = { .needs_all = false };
	bool any = false;

	for (uint32_t i = 0; i < 2 * count; i++) {
		if (i % 2 && step.needs_all) { /* the other way comes to the same */
			c->pass->work += 1 + step.count;
			continue;
		}
		if (i % 2 == 0)
			step.barred = later_barred(c, ranks, count, ranks[i / 2]);
		if (!node_clear(c, ranks[i / 2], i % 2, any ? ret : NULL, &step))
			continue;
		*ret = step;
		any = true;
	}
	return any;
}

/* --- the whole plan --------------------------------------------------------------------------------------------- */

/* It swaps places: it gets the place of another one, or leaves its own to one. */
static bool is_swapped(const struct clearing *c, uint32_t i)
{
	bool swapped = c->after[i] != 0;

	for (uint32_t k = 0; k < c->count && !swapped; k++)
		swapped = c->after[k] == 1 + c->moves[i];
	return swapped;
}

/* From the dearest on: who can stay after all does. */
static void needless_drop(struct clearing *c, const struct place_request *request)
{
	for (uint32_t i = c->count; i-- > 0;) {
		const struct mover *m = mover_at(c, c->moves[i]);

		if (is_swapped(c, i))
			continue;
		place_free(c->pass, &c->to[i], m->shape);
		mover_take(c->pass, m);
		if (!fits(c, request)) {
			mover_give(c->pass, m);
			place_keep(c->pass, &c->to[i], m->shape);
			continue;
		}
		c->cost -= m->cost;
		memmove(&c->moves[i], &c->moves[i + 1], (c->count - i - 1) * sizeof(*c->moves));
		memmove(&c->to[i], &c->to[i + 1], (c->count - i - 1) * sizeof(*c->to));
		memmove(&c->after[i], &c->after[i + 1], (c->count - i - 1) * sizeof(*c->after));
		c->count--;
	}
}

/* Does the job fit whole, now that so many move? The slots are let go to ask; the space is as before. */
static bool plan_close(struct clearing *c, struct plan *ret)
{
	struct place_request request = request_of(c, c->shape->tasks_min);
	uint32_t mark = space_mark(&c->pass->view->space);
	bool good;

	for (uint32_t i = 0; i < c->slot_count; i++)
		place_free(c->pass, &c->slots[i], c->shape);
	all_shift(c, c->moves, c->count, true);
	good = fits(c, &request);
	if (good) {
		needless_drop(c, &request);
		good = place_find(&c->pass->view->space, &request, c->pass->arena, &ret->place,
				  NULL) == 0;
	}
	space_rollback(&c->pass->view->space, mark);
	if (!good)
		return false;
	ret->for_job = c->stuck->job;
	ret->moves = c->moves;
	ret->to = c->to;
	ret->after = c->after;
	ret->count = c->count;
	ret->cost = c->cost;
	return c->count > 0;
}

static void slot_keep(struct clearing *c, const struct placement *slot)
{
	place_keep(c->pass, slot, c->shape);
	c->slots[c->slot_count++] = *slot;
}

/* What has room already is kept, so that nobody is moved there. */
static void room_keep(struct clearing *c)
{
	struct place_request request = request_of(c, c->shape->tasks_min);
	struct placement place;

	if (c->one_node)
		return;
	request.tasks = place_width(&c->pass->view->space, &request);
	if (request.tasks &&
	    place_find(&c->pass->view->space, &request, c->pass->arena, &place, NULL) == 0)
		slot_keep(c, &place);
}

/* The cheapest room for one task more; it stays kept in the space. */
static bool step_make(struct clearing *c)
{
	struct step best;

	if (!step_find(c, &best))
		return false;
	slot_keep(c, &best.slot);
	for (uint32_t i = 0; i < best.count; i++) {
		place_keep(c->pass, &best.to[i], mover_at(c, best.moves[i])->shape);
		c->moved[best.moves[i] / 64] |= UINT64_C(1) << best.moves[i] % 64;
		c->moves[c->count] = best.moves[i];
		c->after[c->count] = best.after[i];
		c->to[c->count++] = best.to[i];
	}
	c->cost += best.cost;
	return true;
}

/* In one domain. The space is as before. */
static bool domain_clear(struct clearing *c, struct plan *ret)
{
	uint32_t mark = space_mark(&c->pass->view->space);
	bool done = false;

	c->moves = arena_new_array(c->pass->arena, uint32_t, c->moves_most + 1);
	c->to = arena_new_array(c->pass->arena, struct placement, c->moves_most + 1);
	c->after = arena_new_array(c->pass->arena, uint32_t, c->moves_most + 1);
	c->slots = arena_new_array(c->pass->arena, struct placement, c->shape->tasks_min + 1);
	c->moved = arena_new_array(c->pass->arena, uint64_t, c->movers->count / 64 + 1);
	c->count = c->slot_count = 0;
	c->cost = 0;
	room_keep(c);
	while (!done && c->slot_count < c->shape->tasks_min && step_make(c))
		done = plan_close(c, ret);
	space_rollback(&c->pass->view->space, mark);
	return done;
}

/* Nodes that are cleared later are kept free of those who move. Where no plan comes of that, they may go there. */
static bool domain_try(struct clearing *c, struct plan *ret)
{
	c->ahead = true;
	c->barred = false;
	if (domain_clear(c, ret))
		return true;
	c->ahead = false;
	return c->barred && domain_clear(c, ret);
}

/* The domains of the level that the job requires in which most of its tasks have room already, of equal ones the first. */
static uint32_t domains_pick(struct clearing *c, uint32_t ret[DOMAINS_TRIED])
{
	const struct space *space = &c->pass->view->space;
	uint32_t widths[DOMAINS_TRIED] = { 0 }, count = 0;

	for (uint32_t domain = space->level_first[c->shape->require];
	     domain < space->level_first[c->shape->require + 1]; domain++) {
		struct place_request request = request_of(c, c->shape->tasks_min);
		uint32_t at = count, width;

		request.domain = domain;
		width = place_width(&c->pass->view->space, &request);
		if (count == DOMAINS_TRIED && width <= widths[count - 1])
			continue;
		if (count < DOMAINS_TRIED)
			count++;
		else
			at = DOMAINS_TRIED - 1;
		for (; at > 0 && widths[at - 1] < width; at--) {
			widths[at] = widths[at - 1];
			ret[at] = ret[at - 1];
		}
		widths[at] = width;
		ret[at] = domain;
	}
	return count;
}

bool clear_find(struct pass *pass, const struct movers *movers, const struct stuck *stuck,
		uint32_t moves_most, int64_t cost_most, struct plan *ret)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ stuck->job });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct clearing c = { .pass = pass,
			      .movers = movers,
			      .stuck = stuck,
			      .shape = shape,
			      .one_node = shape->tasks_min == 1 || shape->require == LEVEL_NODE ||
					  shape->require == LEVEL_ISLAND,
			      .moves_most = moves_most < movers->count ? moves_most : movers->count,
			      .cost_most = cost_most };
	uint32_t domains[DOMAINS_TRIED] = { 0 }, count = 1;
	struct plan plan = { 0 };
	bool any = false;

	space_classes_of(&pass->view->space, shape, &c.suits);
	c.suits &= ~pass->closed;
	c.plain = wish_is_plain(shape);
	if (!c.one_node && shape->require)
		count = domains_pick(&c, domains);
	for (uint32_t i = 0; i < count; i++) {
		c.domain = domains[i];
		if (!domain_try(&c, &plan) ||
		    (any && (plan.cost > ret->cost ||
			     (plan.cost == ret->cost && plan.count >= ret->count))))
			continue;
		*ret = plan;
		any = true;
	}
	return any;
}
