/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/queues/kept.h"

#include "base/check.h"
#include "core/scheduling/pass.h"

struct own_use {
	int64_t at[QUEUE_MODELS_MAX]; /* by guarantee_model */
};

/* By kind of node (the space's traits): GPU shares that are usable, and that are held or promised. */
struct kept_use {
	uint32_t count;
	uint32_t *queues; /* that keep GPUs of a model */
	struct own_use *own; /* by these */
	int64_t *usable, *firm, *all; /* firm: without best-effort */
};

static bool queue_keeps(const struct facts *facts, uint32_t id)
{
	const struct queue *queue = queue_get(facts, (struct queue_id){ id });

	return !queue->removed && queue->reserved && queue->guarantee_model[0].v;
}

static bool above_keeps(const struct pass *pass, uint32_t id)
{
	while ((id = pass->view->queues.at[id].parent))
		if (queue_keeps(pass->facts, id))
			return true;
	return false;
}

bool kept_any(struct pass *pass)
{
	for (uint32_t id = 1; !pass->keeps_known && id < pass->standings.count; id++)
		pass->keeps = pass->keeps || queue_keeps(pass->facts, id);
	pass->keeps_known = pass->standings.count > 0;
	return pass->keeps;
}

static int index_of(const struct pass *pass, uint32_t queue, struct name_id model)
{
	return models_index(pass->facts,
			    queue_get(pass->facts, (struct queue_id){ queue })->guarantee_model,
			    model);
}

static struct name_id model_at(const struct pass *pass, uint32_t traits)
{
	return pass->view->space.traits.at[traits].model;
}

/* --- sums ------------------------------------------------------------------------------------------------ */

static void task_count(struct pass *pass, uint32_t queue, uint8_t tier, uint32_t rank,
		       int64_t share)
{
	struct kept_use *kept = pass->kept_models;
	uint32_t traits = space_at(&pass->view->space, rank)->traits;

	kept->all[traits] += share;
	if (tier == TIER_BEST_EFFORT)
		return;
	kept->firm[traits] += share;
	for (uint32_t i = 0; i < kept->count; i++) {
		int index = index_of(pass, kept->queues[i], model_at(pass, traits));

		if (index >= 0 && queue_is_in(pass->view, queue, kept->queues[i]))
			kept->own[i].at[index] += share;
	}
}

static void node_count(struct pass *pass, uint32_t queue, uint8_t tier, uint32_t node,
		       const struct shape *shape, uint32_t which, int sign)
{
	int32_t rank = space_rank(&pass->view->space, node);

	if (rank != RANK_NONE)
		task_count(pass, queue, tier, (uint32_t)rank,
			   sign * rank_share_on(shape, which,
						node_get(pass->facts, (struct node_id){ node })
							->gpu_memory_mib));
}

static void running_count(struct pass *pass, uint32_t queue)
{
	struct sorted_walk walk;

	for (bool any =
		     sorted_begin(&pass->view->pool, pass->view->queues.at[queue].running, &walk);
	     any; any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(pass->facts, (struct job_id){ walk.id });
		const struct attempt *attempt = attempt_get(pass->facts, job->attempt);

		for (uint32_t i = 0; i < attempt->tasks; i++) {
			const struct task *task =
				table_get(&pass->facts->tasks, attempt->first_task + i);

			if (task_holds(task))
				node_count(pass, queue, job->tier, task->node.v,
					   shape_get(pass->facts, job->shape), i, 1);
		}
	}
}

void kept_promise(struct pass *pass, const struct promise_view *p, int sign)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ p->job });

	for (uint32_t i = 0; pass->kept_models && i < p->tasks; i++)
		node_count(pass, p->queue, p->tier, promise_node(p, i),
			   shape_get(pass->facts, job->shape), i, sign);
}

void kept_take(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
	       const struct placement *place)
{
	for (uint32_t i = 0; pass->kept_models && i < place->count; i++)
		node_count(pass, queue, tier, space_at(&pass->view->space, place->ranks[i])->node,
			   shape, place->which ? (uint32_t)place->which[i] : i, 1);
}

void kept_count(struct pass *pass)
{
	const struct space *space = &pass->view->space;
	struct kept_use *kept;

	if (pass->kept_models)
		return;
	kept = arena_new(pass->arena, struct kept_use);
	pass->kept_models = kept;
	kept->queues = arena_new_array(pass->arena, uint32_t, pass->standings.count);
	for (uint32_t i = 1; i < pass->standings.count; i++) {
		uint32_t id = pass->view->queue_order.at[i];

		if (queue_keeps(pass->facts, id) && !above_keeps(pass, id))
			kept->queues[kept->count++] = id;
	}
	kept->own = arena_new_array(pass->arena, struct own_use, kept->count + 1);
	kept->usable = arena_new_array(pass->arena, int64_t, space->traits_count + 1);
	kept->firm = arena_new_array(pass->arena, int64_t, space->traits_count + 1);
	kept->all = arena_new_array(pass->arena, int64_t, space->traits_count + 1);
	for (uint32_t rank = 0; rank < space->node_count; rank++)
		kept->usable[space_at(space, rank)->traits] += space_rank_share(space, rank);
	for (uint32_t queue = 1; queue < pass->standings.count; queue++)
		running_count(pass, queue);
	for (uint32_t i = 0; i < pass->view->promise_count; i++)
		if ((!pass->promises_gone || !pass->promises_gone[i]) &&
		    !job_get(pass->facts, (struct job_id){ pass->view->promises.at[i].job })
			     ->attempt.v)
			kept_promise(pass, &pass->view->promises.at[i], 1);
}

/* --- the question --------------------------------------------------------------------------------------- */

static int64_t idle_of(const struct pass *pass, uint32_t i, int index)
{
	const struct kept_use *kept = pass->kept_models;
	const struct queue *queue = queue_get(pass->facts, (struct queue_id){ kept->queues[i] });
	int64_t idle = queue->guarantee_model_share[index] - kept->own[i].at[index];

	return idle > 0 ? idle : 0;
}

/* Free of the models that the queue number i of those that keep any names with this index. */
static int64_t group_free(const struct pass *pass, uint32_t i, int index, uint8_t tier)
{
	const struct kept_use *kept = pass->kept_models;
	const int64_t *held = tier == TIER_BEST_EFFORT ? kept->all : kept->firm;
	int64_t free = 0;

	for (uint32_t t = 0; t < pass->view->space.traits_count; t++)
		if (index_of(pass, kept->queues[i], model_at(pass, t)) == index)
			free += kept->usable[t] - held[t];
	return free;
}

/* Kept by others of the models of that group: those that lie in it in part count whole, for where theirs are nobody knows. */
static int64_t group_kept(const struct pass *pass, uint32_t queue, uint32_t i, int index)
{
	const struct kept_use *kept = pass->kept_models;
	int64_t sum = 0;

	for (uint32_t k = 0; k < kept->count; k++) {
		uint32_t seen = 0;

		if (queue_is_in(pass->view, queue, kept->queues[k]))
			continue;
		for (uint32_t t = 0; t < pass->view->space.traits_count; t++) {
			int there = index_of(pass, kept->queues[k], model_at(pass, t));

			if (there < 0 || seen >> there & 1 ||
			    index_of(pass, kept->queues[i], model_at(pass, t)) != index)
				continue;
			seen |= UINT32_C(1) << there;
			sum += idle_of(pass, k, there);
		}
	}
	return sum;
}

/* Left of the model for jobs of the queue beside what others keep. */
static int64_t model_room(const struct pass *pass, uint32_t queue, uint8_t tier,
			  struct name_id model)
{
	const struct kept_use *kept = pass->kept_models;
	int64_t room = INT64_MAX;

	for (uint32_t i = 0; i < kept->count; i++) {
		int index = index_of(pass, kept->queues[i], model);
		int64_t left;

		if (index < 0 || queue_is_in(pass->view, queue, kept->queues[i]))
			continue;
		left = group_free(pass, i, index, tier) - group_kept(pass, queue, i, index);
		room = left < room ? left : room;
	}
	return room > 0 ? room : 0;
}

uint64_t kept_close(struct pass *pass, uint32_t queue, uint8_t tier, const struct shape *shape,
		    uint32_t tasks, uint64_t classes, struct verdict *ret_why)
{
	const struct space *space = &pass->view->space;
	int64_t need = shape_share(space, shape, tasks);
	uint64_t closed = 0;

	kept_count(pass);
	for (classes &= ~(UINT64_C(1) << CLASS_MIXED); classes; classes &= classes - 1) {
		int class = __builtin_ctzll(classes);
		int64_t room = model_room(pass, queue, tier, space->traits.at[class].model);
		uint32_t fits;

		if (room < need) {
			closed |= UINT64_C(1) << class;
			*ret_why = (struct verdict){ .code = REASON_QUOTA_LIMIT,
						     .have = room,
						     .need = need };
			continue;
		}
		fits = room == INT64_MAX ? pass->widest
					 : share_tasks(space, shape, room, pass->widest);
		pass->widest = fits < pass->widest ? fits : pass->widest;
	}
	return closed;
}
