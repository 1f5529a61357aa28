/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free GPUs that come to lie together though no job asks for it at this moment: a node that is used in part is emptied into others
 * that are used as well, and a GPU of which parts are held into other shared GPUs.
 *
 *	n0 aa..  n1 b...  n2 ccc.  n3 ....	`b` goes to n2: n1 is whole again. It costs what b loses and gains the three
 *						GPUs that were free on n1 and are of use to wide work now
 *
 * No idle node is begun for it, and no free GPU: so each plan leaves fewer nodes, or GPUs, in use than before, and no two plans can
 * undo each other. The plan is taken that loses least for what it gains; equal ones by the gain, then by the order of nodes.
 */
#include "core/placement/parts.h"
#include "core/rearranging/plan.h"

enum { UNITS_TRIED = 16, WHOLE_NODE = NODE_GPUS_MAX };

/* A node to be emptied, or one of its GPUs. */
struct unit {
	uint32_t rank, gpu; /* WHOLE_NODE, or which */
	int64_t cost, gained;
};

struct gathering {
	struct pass *pass;
	const struct movers *movers;
	uint32_t moves_most;
	struct unit units[UNITS_TRIED]; /* the best first */
	uint32_t unit_count;
};

__extension__ typedef __int128 wide;

/* It loses less for each GPU that it gains. */
static bool unit_better(const struct unit *a, const struct unit *b)
{
	wide left = (wide)a->cost * b->gained, right = (wide)b->cost * a->gained;

	return left != right ? left < right : a->gained > b->gained;
}

static void unit_note(struct gathering *g, const struct unit *unit)
{
	int64_t most = share_gpu_ms(unit->gained, g->pass->facts->policy.defragment_work_ms);
	uint32_t at = g->unit_count;

	if (!unit->gained || unit->cost > most)
		return;
	if (at == UNITS_TRIED) {
		at--; /* in the place of the last one */
		if (!unit_better(unit, &g->units[at]))
			return;
	} else {
		g->unit_count++;
	}
	for (; at > 0 && unit_better(unit, &g->units[at - 1]); at--)
		g->units[at] = g->units[at - 1];
	g->units[at] = *unit;
}

static int64_t held_share(const struct space *space, uint32_t rank, uint32_t gpus)
{
	const struct place_node *node = space_at(space, rank);
	int64_t share = (int64_t)bits_count(gpus & node->busy & ~node->shared) * GPU_SHARE;

	for (uint32_t shared = gpus & node->shared; shared; shared &= shared - 1)
		share += parts_of(space, rank, (uint32_t)__builtin_ctz(shared))->held.share;
	return share;
}

/* Of this node, in the unit: what the mover holds. */
static int64_t mover_share(const struct gathering *g, const struct mover *m,
			   const struct unit *unit)
{
	uint32_t node = space_at(&g->pass->view->space, unit->rank)->node,
		 gpus = unit->gpu == WHOLE_NODE ? UINT32_MAX : UINT32_C(1) << unit->gpu;
	int64_t share = 0;

	for (uint32_t i = 0; i < m->attempt->tasks; i++) {
		const struct task *task =
			table_get(&g->pass->facts->tasks, m->attempt->first_task + i);

		if (task->node.v == node && task->gpu_mask & gpus)
			share += task->gpu_part ? task->gpu_part
						: (int64_t)bits_count(task->gpu_mask) * GPU_SHARE;
	}
	return share;
}

/* All that is held of it is held by those who may move; then the unit's cost. */
static bool unit_read(const struct gathering *g, struct unit *unit)
{
	const struct space *space = &g->pass->view->space;
	const struct place_node *node = space_at(space, unit->rank);
	uint32_t gpus = unit->gpu == WHOLE_NODE ? node->all : UINT32_C(1) << unit->gpu;
	int64_t held = held_share(space, unit->rank, gpus);

	for (uint32_t i = g->movers->first[unit->rank];
	     held && i < g->movers->first[unit->rank + 1]; i++) {
		const struct mover *m = &g->movers->list[g->movers->at[i].mover];
		int64_t share = mover_share(g, m, unit);

		held -= share;
		unit->cost += share ? m->cost : 0;
	}
	return !held && unit->cost >= 0;
}

static void node_note(struct gathering *g, uint32_t rank)
{
	const struct space *space = &g->pass->view->space;
	const struct place_node *node = space_at(space, rank);
	struct unit unit = { .rank = rank, .gpu = WHOLE_NODE };

	if (!node->ready || node->promised || node->sliced || !(node->busy & node->all) ||
	    g->movers->first[rank] == g->movers->first[rank + 1])
		return;
	unit.gained = (int64_t)bits_count(place_node_free(node)) * GPU_SHARE + node->open_share;
	if (unit_read(g, &unit))
		unit_note(g, &unit);
	for (uint32_t shared = node->shared & ~node->promised; shared; shared &= shared - 1) {
		unit = (struct unit){ .rank = rank, .gpu = (uint32_t)__builtin_ctz(shared) };
		unit.gained = part_open(space, rank, unit.gpu).share;
		if (unit_read(g, &unit))
			unit_note(g, &unit);
	}
}

/* --- emptying one ------------------------------------------------------------------------------------------------ */

/* Nobody goes to the node itself, nor to one that is idle. */
static uint64_t *barred_with(const struct gathering *g, uint32_t emptied)
{
	const struct space *space = &g->pass->view->space;
	uint32_t words = bits_row(space->node_count) + 1;
	uint64_t *barred = arena_new_array(g->pass->arena, uint64_t, words);

	for (uint32_t rank = 0; rank < space->node_count; rank++)
		if (rank == emptied || !(space_at(space, rank)->busy & space_at(space, rank)->all))
			barred[rank / 64] |= UINT64_C(1) << rank % 64;
	for (uint32_t i = 0; i < words && g->movers->barred; i++)
		barred[i] |= g->movers->barred[i];
	return barred;
}

/* A part goes to a GPU that is shared already. */
static bool place_is_shared(const struct gathering *g, const struct placement *to)
{
	for (uint32_t i = 0; i < to->count; i++)
		if (to->masks[i] & ~space_at(&g->pass->view->space, to->ranks[i])->shared)
			return false;
	return to->parts != NULL;
}

static bool mover_place(struct gathering *g, const struct movers *movers, uint32_t mover,
			const struct unit *unit, struct plan *ret)
{
	const struct mover *m = &movers->list[mover];

	if (ret->count == g->moves_most || m->boxed ||
	    !mover_find(g->pass, movers->barred, m, &ret->to[ret->count]) ||
	    (unit->gpu != WHOLE_NODE && !place_is_shared(g, &ret->to[ret->count])))
		return false;
	place_keep(g->pass, &ret->to[ret->count], m->shape);
	ret->moves[ret->count++] = mover;
	ret->cost += m->cost;
	return true;
}

/* Those of the unit, the largest first, the cheapest of equal ones. */
static uint32_t unit_movers(const struct gathering *g, const struct unit *unit, uint32_t *ret)
{
	uint32_t count = 0;

	for (uint32_t i = g->movers->first[unit->rank]; i < g->movers->first[unit->rank + 1]; i++) {
		uint32_t mover = g->movers->at[i].mover, at = count;

		if (!mover_share(g, &g->movers->list[mover], unit))
			continue;
		for (; at > 0 && g->movers->list[ret[at - 1]].share < g->movers->list[mover].share;
		     at--)
			ret[at] = ret[at - 1];
		ret[at] = mover;
		count++;
	}
	return count;
}

/* The space is as before. */
static bool unit_empty(struct gathering *g, const struct unit *unit, struct plan *ret)
{
	struct space *space = &g->pass->view->space;
	uint32_t mark = space_mark(space),
		 room = g->movers->first[unit->rank + 1] - g->movers->first[unit->rank] + 1,
		 *list = arena_new_array(g->pass->arena, uint32_t, room), count, i = 0;
	struct movers movers = *g->movers;

	*ret = (struct plan){ .moves = arena_new_array(g->pass->arena, uint32_t, room),
			      .to = arena_new_array(g->pass->arena, struct placement, room),
			      .gained = unit->gained };
	if (unit->gpu == WHOLE_NODE)
		movers.barred = barred_with(g, unit->rank);
	else
		space_block(space, unit->rank,
			    space_at(space, unit->rank)->blocked | UINT32_C(1) << unit->gpu,
			    space_at(space, unit->rank)->shut);
	count = unit_movers(g, unit, list);
	while (i < count && mover_place(g, &movers, list[i], unit, ret))
		i++;
	space_rollback(space, mark);
	return count && i == count;
}

bool together_find(struct pass *pass, const struct movers *movers, uint32_t moves_most,
		   struct plan *ret)
{
	struct gathering g = { .pass = pass, .movers = movers, .moves_most = moves_most };

	for (uint32_t rank = 0; rank < pass->view->space.node_count; rank++)
		node_note(&g, rank);
	for (uint32_t i = 0; i < g.unit_count; i++)
		if (unit_empty(&g, &g.units[i], ret))
			return true;
	return false;
}
