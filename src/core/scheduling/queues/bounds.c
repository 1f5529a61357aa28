/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/queues/bounds.h"

#include <string.h>

#include "base/check.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/queues/kept.h"

struct bound_use {
	int64_t cpu_milli, ram_mib;
	int64_t model[QUEUE_MODELS_MAX]; /* GPU shares */
};

bool queue_is_bounded(const struct queue *queue)
{
	return !queue->removed &&
	       (queue->limit_cpu_milli || queue->limit_ram_mib || queue->limit_model[0].v);
}

int models_index(const struct facts *facts, const struct name_id *models, struct name_id model)
{
	int any = -1;

	for (int i = 0; i < QUEUE_MODELS_MAX && models[i].v; i++) {
		if (name_same(models[i], model))
			return i;
		if (strcmp(facts_name(facts, models[i]), "any") == 0)
			any = i;
	}
	return any;
}

static int model_index(const struct facts *facts, const struct queue *queue, struct name_id model)
{
	return models_index(facts, queue->limit_model, model);
}

/* --- sums ---------------------------------------------------------------------------------------------- */

static void task_count(struct pass *pass, uint32_t queue, const struct shape *shape, uint32_t rank,
		       uint32_t node, int sign)
{
	const struct node *n = node_get(pass->facts, (struct node_id){ node });
	struct task_wish wish = shape_wish(shape, rank);

	for (; queue; queue = pass->view->queues.at[queue].parent) {
		const struct queue *q = queue_get(pass->facts, (struct queue_id){ queue });
		struct bound_use *use = &pass->bounds[queue];
		int index;

		if (!queue_is_bounded(q))
			continue;
		use->cpu_milli += sign * (int64_t)wish.cpu_milli;
		use->ram_mib += sign * (int64_t)wish.memory_mib;
		index = model_index(pass->facts, q, n->model);
		if (index >= 0)
			use->model[index] += sign * rank_share_on(shape, rank, n->gpu_memory_mib);
	}
}

static bool path_is_bounded(const struct pass *pass, uint32_t queue)
{
	for (; queue; queue = pass->view->queues.at[queue].parent)
		if (queue_is_bounded(queue_get(pass->facts, (struct queue_id){ queue })))
			return true;
	return false;
}

static void running_count(struct pass *pass, uint32_t queue)
{
	struct sorted_walk walk;

	for (bool any =
		     sorted_begin(&pass->view->pool, pass->view->queues.at[queue].running, &walk);
	     any; any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(pass->facts, (struct job_id){ walk.id });
		const struct attempt *attempt = attempt_get(pass->facts, job->attempt);

		for (uint32_t rank = 0; rank < attempt->tasks; rank++)
			if (task_holds(task_get(pass->facts, attempt, rank)))
				task_count(pass, queue, shape_get(pass->facts, job->shape), rank,
					   task_get(pass->facts, attempt, rank)->node.v, 1);
	}
}

static void limits_promise(struct pass *pass, const struct promise_view *p, int sign)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ p->job });

	if (!pass->bounds || !path_is_bounded(pass, p->queue))
		return;
	for (uint32_t i = 0; i < p->tasks; i++)
		task_count(pass, p->queue, shape_get(pass->facts, job->shape), i, p->numbers.at[i],
			   sign);
}

void bounds_promise(struct pass *pass, const struct promise_view *p, int sign)
{
	limits_promise(pass, p, sign);
	kept_promise(pass, p, sign);
}

static void bounds_make(struct pass *pass)
{
	pass->bounds = arena_new_array(pass->arena, struct bound_use, pass->standings.count);
	for (uint32_t queue = 1; queue < pass->standings.count; queue++)
		if (path_is_bounded(pass, queue))
			running_count(pass, queue);
	for (uint32_t i = 0; i < pass->view->promise_count; i++)
		if ((!pass->promises_gone || !pass->promises_gone[i]) &&
		    !job_get(pass->facts, (struct job_id){ pass->view->promises.at[i].job })
			     ->attempt.v) /* one that moves is counted where it runs */
			limits_promise(pass, &pass->view->promises.at[i], 1);
}

void bounds_take(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
		 const struct placement *place)
{
	kept_take(pass, queue, tier, shape, place);
	if (!pass->bounds || !path_is_bounded(pass, queue))
		return;
	for (uint32_t i = 0; i < place->count; i++)
		task_count(pass, queue, shape, place->which ? (uint32_t)place->which[i] : i,
			   space_at(&pass->view->space, place->ranks[i])->node, 1);
}

/* --- the question -------------------------------------------------------------------------------------- */

int64_t bounds_limit(const struct queue *queue, uint8_t level)
{
	if (level == BOUND_CPU)
		return queue->limit_cpu_milli;
	if (level == BOUND_RAM)
		return queue->limit_ram_mib;
	return level >= BOUND_MODEL ? queue->limit_model_share[level - BOUND_MODEL]
				    : queue->limit_share;
}

/* How many tasks `left` is enough for, when each needs so much, or the roles do. */
static int64_t room_tasks(const struct pass *pass, uint8_t level, const struct shape *shape,
			  int64_t each, int64_t left)
{
	if (!shape->role_count)
		return left / each;
	if (level == BOUND_CPU)
		return shape_tasks_within(shape, shape_cpu_milli, left, pass->widest);
	if (level == BOUND_RAM)
		return shape_tasks_within(shape, shape_memory_mib, left, pass->widest);
	return shape_tasks_within(shape, roles_gpus, left / GPU_SHARE, pass->widest);
}

static int64_t tasks_need(uint8_t level, const struct shape *shape, int64_t each, uint32_t tasks)
{
	if (!shape->role_count)
		return each * tasks;
	return level == BOUND_CPU   ? shape_cpu_milli(shape, tasks)
	       : level == BOUND_RAM ? shape_memory_mib(shape, tasks)
				    : roles_gpus(shape, tasks) * GPU_SHARE;
}

/* Room for how many tasks, of which each needs `each` where they are alike; below `tasks` ret_why is filled. */
static bool bound_allows(struct pass *pass, uint32_t id, uint8_t level, int64_t used,
			 const struct shape *shape, int64_t each, uint32_t tasks,
			 struct verdict *ret_why)
{
	int64_t left = bounds_limit(queue_get(pass->facts, (struct queue_id){ id }), level) - used,
		room, need = tasks_need(level, shape, each, tasks);

	left = left > 0 ? left : 0;
	if (left < need) {
		*ret_why = (struct verdict){ .code = REASON_QUOTA_LIMIT,
					     .level = level,
					     .at = id,
					     .have = left,
					     .need = need };
		return false;
	}
	room = room_tasks(pass, level, shape, each, left);
	if (room < pass->widest)
		pass->widest = (uint32_t)room;
	return true;
}

/* Closes the classes of `classes` whose model has no room. What shares a class with others is closed with any of them. */
static void models_close(struct pass *pass, uint32_t id, const struct shape *shape,
			 uint64_t classes, uint32_t tasks, struct verdict *ret_why)
{
	const struct queue *queue = queue_get(pass->facts, (struct queue_id){ id });
	const struct bound_use *use = &pass->bounds[id];
	for (; classes; classes &= classes - 1) {
		int class = __builtin_ctzll(classes);
		int index = class == CLASS_MIXED
				    ? -1
				    : model_index(pass->facts, queue,
						  pass->view->space.traits.at[class].model);
		int64_t one =
			class == CLASS_MIXED
				? shape_share(&pass->view->space, shape, 1)
				: shape_share_on(shape,
						 pass->view->space.traits.at[class].gpu_memory_mib);
		bool open = true;

		for (int i = 0; i < QUEUE_MODELS_MAX && queue->limit_model[i].v; i++)
			if (i == index || class == CLASS_MIXED)
				open = bound_allows(pass, id, (uint8_t)(BOUND_MODEL + i),
						    use->model[i], shape, one, tasks, ret_why) &&
				       open;
		if (!open)
			pass->closed |= UINT64_C(1) << class;
	}
}

static bool limits_allow(struct pass *pass, uint32_t queue, const struct shape *shape,
			 uint32_t tasks, struct verdict *ret_why)
{
	uint64_t classes;

	pass->closed = 0;
	pass->widest = shape->tasks_max;
	if (!path_is_bounded(pass, queue))
		return true;
	if (!pass->bounds)
		bounds_make(pass);
	space_classes_of(&pass->view->space, shape, &classes);
	for (uint32_t id = queue; id; id = pass->view->queues.at[id].parent) {
		const struct queue *q = queue_get(pass->facts, (struct queue_id){ id });

		if (!queue_is_bounded(q))
			continue;
		if (q->limit_cpu_milli && shape->cpu_milli &&
		    !bound_allows(pass, id, BOUND_CPU, pass->bounds[id].cpu_milli, shape,
				  shape->cpu_milli, tasks, ret_why))
			return false;
		if (q->limit_ram_mib && shape->memory_mib &&
		    !bound_allows(pass, id, BOUND_RAM, pass->bounds[id].ram_mib, shape,
				  shape->memory_mib, tasks, ret_why))
			return false;
		if (shape->gpus)
			models_close(pass, id, shape, classes, tasks, ret_why);
	}
	return !shape->gpus || !classes || (classes & ~pass->closed);
}

bool bounds_allow(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
		  uint32_t tasks, struct verdict *ret_why)
{
	uint64_t classes;

	if (!limits_allow(pass, queue, shape, tasks, ret_why))
		return false;
	if (!shape->gpus || !kept_any(pass))
		return true;
	space_classes_of(&pass->view->space, shape, &classes);
	pass->closed |=
		kept_close(pass, queue, tier, shape, tasks, classes & ~pass->closed, ret_why);
	return !classes || (classes & ~pass->closed);
}
