/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/queues/pledge.h"

#include <string.h>

#include "base/check.h"
#include "core/scheduling/pass.h"

static bool queue_is_pledged(const struct facts *facts, uint32_t id)
{
	const struct queue *queue = queue_get(facts, (struct queue_id){ id });

	return !queue->removed && queue->guarantee_model[0].v;
}

static bool path_is_pledged(const struct pass *pass, uint32_t queue)
{
	for (; queue; queue = pass->view->queues.at[queue].parent)
		if (queue_is_pledged(pass->facts, queue))
			return true;
	return false;
}

static int model_index(const struct facts *facts, uint32_t id, struct name_id model)
{
	return models_index(facts, queue_get(facts, (struct queue_id){ id })->guarantee_model,
			    model);
}

static int64_t pledge_of(const struct facts *facts, uint32_t id, int index)
{
	return index < 0 ? 0
			 : queue_get(facts, (struct queue_id){ id })->guarantee_model_share[index];
}

/* --- sums ---------------------------------------------------------------------------------------------- */

static struct name_id node_model(const struct pass *pass, uint32_t node)
{
	return node_get(pass->facts, (struct node_id){ node })->model;
}

static void task_count(struct pass *pass, uint32_t queue, uint8_t tier, int64_t share,
		       uint32_t node)
{
	struct name_id model = node_model(pass, node);

	for (; queue && tier != TIER_BEST_EFFORT; queue = pass->view->queues.at[queue].parent) {
		int index = queue_is_pledged(pass->facts, queue)
				    ? model_index(pass->facts, queue, model)
				    : -1;

		if (index < 0)
			continue;
		pass->pledges[queue].use[index] += share;
		pass->pledges[queue].critical[index] += tier == TIER_CRITICAL ? share : 0;
	}
}

/* GPU shares of one task on that node. */
static int64_t share_there(const struct pass *pass, const struct shape *shape, uint32_t rank,
			   uint32_t node)
{
	return rank_share_on(shape, rank,
			     node_get(pass->facts, (struct node_id){ node })->gpu_memory_mib);
}

static void attempt_count(struct pass *pass, uint32_t queue, uint8_t tier,
			  const struct shape *shape, const struct attempt *attempt, int sign)
{
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&pass->facts->tasks, attempt->first_task + i);

		if (task_holds(task))
			task_count(pass, queue, tier,
				   sign * share_there(pass, shape, i, task->node.v), task->node.v);
	}
}

void pledge_promise(struct pass *pass, const struct promise_view *p, int sign)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ p->job });
	const struct shape *shape = shape_get(pass->facts, job->shape);

	for (uint32_t i = 0; pass->pledges && i < p->tasks; i++)
		task_count(pass, p->queue, p->tier,
			   sign * share_there(pass, shape, i, promise_node(p, i)),
			   promise_node(p, i));
}

void pledges_make(struct pass *pass)
{
	struct sorted_walk walk;
	bool any = false;

	for (uint32_t queue = 1; queue < pass->standings.count && !any; queue++)
		any = queue_is_pledged(pass->facts, queue);
	if (!any)
		return;
	pass->pledges = arena_new_array(pass->arena, struct pledge_use, pass->standings.count);
	for (uint32_t queue = 1; queue < pass->standings.count; queue++) {
		if (!path_is_pledged(pass, queue))
			continue;
		for (any = sorted_begin(&pass->view->pool, pass->view->queues.at[queue].running,
					&walk);
		     any; any = sorted_next(&pass->view->pool, &walk)) {
			const struct job *job = job_get(pass->facts, (struct job_id){ walk.id });

			if (!job_view_get(pass->view, walk.id)->leaving)
				attempt_count(pass, queue, job->tier,
					      shape_get(pass->facts, job->shape),
					      attempt_get(pass->facts, job->attempt), 1);
		}
	}
	for (uint32_t i = 0; i < pass->view->promise_count; i++)
		pledge_promise(pass, &pass->view->promises.at[i], 1);
}

void pledge_take(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
		 const struct placement *place)
{
	for (uint32_t i = 0; pass->pledges && i < place->count; i++) {
		uint32_t node = space_at(&pass->view->space, place->ranks[i])->node;

		task_count(pass, queue, tier,
			   share_there(pass, shape, place->which ? (uint32_t)place->which[i] : i,
				       node),
			   node);
	}
}

void pledge_attempt(struct pass *pass, const struct victim *v, int sign)
{
	for (uint32_t i = victim_first(v); pass->pledges && i < victim_end(v); i++) {
		const struct task *task =
			table_get(&pass->facts->tasks, v->attempt->first_task + i);

		if (victim_has(v, i, task))
			task_count(pass, v->queue, v->tier,
				   sign * share_there(pass, v->shape, i, task->node.v),
				   task->node.v);
	}
}

/* --- questions ------------------------------------------------------------------------------------------- */

/* With `share` more on GPUs of this model, is the queue and all above it, up to below `top`, within what is promised? A guarantee
 * of any model counts on the way up as it is. */
static bool model_is_within(const struct pass *pass, uint32_t queue, uint32_t top,
			    struct name_id model, int64_t share)
{
	bool named = false;

	for (; queue != top; queue = pass->view->queues.at[queue].parent) {
		const struct standing *at = &pass->standings.at[queue];
		int index;

		if (!queue_is_pledged(pass->facts, queue)) {
			if (named && at->use + share > at->guarantee)
				return false;
			continue;
		}
		named = true;
		index = model_index(pass->facts, queue, model);
		if (index < 0 ||
		    pass->pledges[queue].use[index] + share > pledge_of(pass->facts, queue, index))
			return false;
	}
	return named;
}

uint64_t pledge_open(const struct pass *pass, uint32_t queue, const struct shape *shape,
		     int64_t share)
{
	uint64_t classes, open = 0;
	uint32_t first = queue;

	if (!pass->pledges || !shape->gpus || !path_is_pledged(pass, queue))
		return 0;
	while (!queue_is_pledged(pass->facts, first))
		first = pass->view->queues.at[first].parent;
	space_classes_of(&pass->view->space, shape, &classes);
	for (classes &= ~(UINT64_C(1) << CLASS_MIXED); classes; classes &= classes - 1) {
		int class = __builtin_ctzll(classes);

		if (model_is_within(pass, queue, pass->view->queues.at[first].parent,
				    pass->view->space.traits.at[class].model, share))
			open |= UINT64_C(1) << class;
	}
	return open;
}

/* GPUs that are ready, but for those of this model; in shares. */
static int64_t others_capacity(struct pass *pass, struct name_id model)
{
	int64_t share = 0;

	if (model.v && name_same(pass->others_than, model))
		return pass->others_share;
	for (uint32_t rank = 0; rank < pass->view->space.node_count; rank++) {
		const struct place_node *node = space_at(&pass->view->space, rank);

		if (!name_same(node_model(pass, node->node), model))
			share += space_rank_share(&pass->view->space, rank);
	}
	pass->others_than = model;
	pass->others_share = share;
	return pass->others_share;
}

/* Work of the queue on GPUs of this model: is some of it beyond what the queue and all above it, up to below `top`, are promised? */
static bool model_is_beyond(struct pass *pass, uint32_t queue, uint32_t top, struct name_id model,
			    bool pledged)
{
	for (; queue != top; queue = pass->view->queues.at[queue].parent) {
		const struct standing *at = &pass->standings.at[queue];
		int index;

		if (queue_is_pledged(pass->facts, queue)) {
			index = model_index(pass->facts, queue, model);
			if (index >= 0 &&
			    pass->pledges[queue].use[index] <= pledge_of(pass->facts, queue, index))
				return false;
		} else if (pledged && at->use <= at->guarantee &&
			   at->guarantee > others_capacity(pass, model)) {
			return false;
		}
	}
	return true;
}

/* A gang lies on GPUs of one model as a rule: its first task with GPUs speaks for it. */
static struct name_id victim_model(const struct pass *pass, const struct victim *v)
{
	return node_model(pass, attempt_gpu_task(pass->facts, v->attempt)->node.v);
}

bool pledge_lets_go(struct pass *pass, const struct victim *v, uint32_t top)
{
	return !pass->pledges || !v->attempt || v->tier == TIER_BEST_EFFORT ||
	       model_is_beyond(pass, v->queue, top, victim_model(pass, v), false);
}

bool pledge_takes(struct pass *pass, uint32_t queue, int64_t share, const struct victim *v,
		  uint32_t top)
{
	return model_is_within(pass, queue, top, victim_model(pass, v), share) &&
	       model_is_beyond(pass, v->queue, top, victim_model(pass, v), true);
}

bool pledge_brings_back(const struct pass *pass, const struct victim *v, uint32_t top)
{
	return pass->pledges && v->attempt &&
	       model_is_within(pass, v->queue, top, victim_model(pass, v), v->share);
}

/* Room for how many tasks of critical work on this model; ret_why as the first bound met. */
static int64_t critical_room(const struct pass *pass, uint32_t queue, struct name_id model,
			     int64_t need, struct verdict *ret_why)
{
	int64_t room = INT64_MAX;

	for (; queue; queue = pass->view->queues.at[queue].parent) {
		int64_t left = 0;
		int index;

		if (!queue_is_pledged(pass->facts, queue))
			continue;
		index = model_index(pass->facts, queue, model);
		if (index >= 0)
			left = pledge_of(pass->facts, queue, index) -
			       pass->pledges[queue].critical[index];
		left = left > 0 ? left : 0;
		if (left < need && room >= need)
			*ret_why = (struct verdict){ .code = REASON_GUARANTEE_ONLY,
						     .level = (uint8_t)(BOUND_MODEL +
									(index < 0 ? 0 : index)),
						     .at = queue,
						     .have = left,
						     .need = need };
		room = left < room ? left : room;
	}
	return room;
}

bool pledge_bind(struct pass *pass, uint32_t queue, const struct shape *shape, uint32_t tasks,
		 struct verdict *ret_why)
{
	int64_t need = shape_share(&pass->view->space, shape, tasks), widest = 0;
	uint64_t classes;

	if (!pass->pledges || !shape->gpus || pass->facts->policy.allow_critical_burst ||
	    !path_is_pledged(pass, queue))
		return true;
	space_classes_of(&pass->view->space, shape, &classes);
	for (classes &= ~pass->closed; classes; classes &= classes - 1) {
		int class = __builtin_ctzll(classes);
		int64_t room = class == CLASS_MIXED
				       ? 0
				       : critical_room(pass, queue,
						       pass->view->space.traits.at[class].model,
						       need, ret_why),
			fits = share_tasks(&pass->view->space, shape, room, UINT32_MAX);

		if (room < need)
			pass->closed |= UINT64_C(1) << class;
		else
			widest = fits > widest ? fits : widest;
	}
	if (widest < pass->widest)
		pass->widest = (uint32_t)widest;
	return widest >= tasks;
}
