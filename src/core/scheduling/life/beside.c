/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/life/beside.h"

#include "core/placement/numa.h"

/* The index of the domain in which all ranks lie at this level of the space (0 = cluster), or of their node; -1 = they do not
 * lie together. */
static int64_t ranks_lie_in(const struct pass *pass, const struct attempt *attempt, uint32_t level,
			    bool node)
{
	const struct space *space = &pass->view->space;
	int64_t at = -1;

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = task_at(pass, attempt, i);
		int32_t rank = task_holds(task) ? space_rank(space, task->node.v) : RANK_NONE;
		int64_t here;

		if (!task_holds(task))
			continue;
		if (rank == RANK_NONE)
			return -1;
		here = node ? (int64_t)rank
			    : (int64_t)space_at(space, (uint32_t)rank)->domain[level];
		if (at >= 0 && at != here)
			return -1;
		at = here;
	}
	return at;
}

/* Beside the ranks that it has: on their node, else in the narrowest domain that holds all of them, and so on outwards, as far as
 * its topology allows. The most that fit, up to request->tasks, at least `least`; 0 = there is no place. */
static uint32_t place_in(struct pass *pass, struct place_request request, uint32_t least,
			 struct placement *ret)
{
	uint32_t most = request.tasks;

	if (most > least)
		request.tasks = place_width(&pass->view->space, &request);
	for (; request.tasks >= least && request.tasks; request.tasks--)
		if (place_find(&pass->view->space, &request, pass->arena, ret, NULL) == 0)
			return request.tasks;
	return 0;
}

/* Ranks that must lie apart from those it has; NULL = it does not say so. */
static uint64_t *ranks_barred(const struct pass *pass, const struct shape *shape,
			      const struct attempt *attempt)
{
	const struct space *space = &pass->view->space;
	uint64_t *barred;

	if (!shape->apart)
		return NULL;
	barred = arena_new_array(pass->arena, uint64_t, space->node_count / 64 + 1);
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = task_at(pass, attempt, i);
		int32_t rank = task_holds(task) ? space_rank(space, task->node.v) : RANK_NONE;

		if (rank != RANK_NONE)
			spread_bar(space, shape->apart, (uint32_t)rank, barred);
	}
	return barred;
}

struct name_id ranks_model(const struct pass *pass, const struct shape *shape,
			   const struct attempt *attempt)
{
	for (uint32_t i = 0; !shape->mixes && i < attempt->tasks; i++) {
		const struct task *task = task_at(pass, attempt, i);

		if (task_holds(task) && (!shape->role_count || task->gpu_mask))
			return node_get(pass->facts, task->node)->model;
	}
	return (struct name_id){ 0 };
}

uint32_t place_beside(struct pass *pass, const struct job *job, const struct attempt *attempt,
		      const int64_t *ranks, uint32_t tasks, uint32_t least, struct placement *ret)
{
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct place_request request = pass_request(pass, shape, tasks);
	uint32_t outermost = shape->require && shape->require < LEVEL_NODE ? shape->require : 0,
		 found = 0;
	int64_t at = ranks_lie_in(pass, attempt, 0, true);

	request.barred = ranks_barred(pass, shape, attempt);
	request.model = ranks_model(pass, shape, attempt);
	request.which = ranks;
	if (shape->require == LEVEL_ISLAND)
		return 0; /* which GPUs are left of its island is not looked at */
	if (at >= 0) {
		request.rank = (int32_t)at;
		found = place_in(pass, request, least, ret);
	}
	if (shape->require == LEVEL_NODE)
		return found;
	request.rank = RANK_NONE;
	for (uint32_t level = pass->view->space.level_count + 1; !found && level-- > outermost;) {
		at = ranks_lie_in(pass, attempt, level, false);
		if (at < 0)
			continue;
		request.domain = (uint32_t)at;
		found = place_in(pass, request, least, ret);
	}
	return found;
}

static bool rank_suits(const struct space *space, uint32_t node, const struct shape *shape,
		       uint32_t rank)
{
	struct shape wish;

	if (!shape->role_count)
		return space_node_suits(space, node, shape);
	shape_of_role(shape, shape_role(shape, rank), &wish);
	return space_node_suits(space, node, &wish);
}

bool place_again(struct pass *pass, const struct shape *shape, const struct attempt *attempt,
		 const int64_t *ranks, uint32_t count, struct placement *ret)
{
	struct space *space = &pass->view->space;
	uint64_t *barred = ranks_barred(pass, shape, attempt);
	uint32_t mark = space_mark(space);
	bool free = true;

	ret->count = count;
	ret->which = ranks;
	ret->parts = ret->parts_mib = ret->slices = NULL;
	ret->ranks = arena_new_array(pass->arena, uint32_t, count);
	ret->masks = arena_new_array(pass->arena, uint32_t, count);
	for (uint32_t i = 0; i < count && free; i++) {
		const struct task *task = task_at(pass, attempt, (uint32_t)ranks[i]);
		int32_t rank = space_rank(space, task->node.v);
		struct hold hold = task_hold(task, shape, (uint32_t)ranks[i]);
		const struct place_node *node;

		if (rank == RANK_NONE)
			return false;
		node = space_at(space, (uint32_t)rank);
		free = !(barred && barred[rank / 64] >> rank % 64 & 1) && node->ready &&
		       !(task->gpu_mask & ~place_node_free(node)) &&
		       rank_suits(space, (uint32_t)rank, shape, (uint32_t)ranks[i]) &&
		       node->cpu_free >= hold.cpu_milli &&
		       (!shape->align ||
			numa_has_room(space, (uint32_t)rank, task->gpu_mask, shape)) &&
		       node->ram_free >= hold.ram_mib;
		if (!free)
			break;
		ret->ranks[i] = (uint32_t)rank;
		ret->masks[i] = task->gpu_mask;
		space_take(space, (uint32_t)rank, &hold);
		if (barred)
			spread_bar(space, shape->apart, (uint32_t)rank, barred);
	}
	space_rollback(space, mark);
	return free;
}
