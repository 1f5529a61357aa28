/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/queues/user_limit.h"

#include "core/scheduling/order/terms.h"
#include "core/scheduling/pass.h"

/* Of one queue with such a limit. */
struct user_sums {
	struct user_holds holds;
	bool made;
};

bool queue_limits_users(const struct queue *queue)
{
	return !queue->removed && (queue->user_limit_share || queue->user_part);
}

bool path_limits_users(const struct facts *facts, struct queue_id queue)
{
	for (; queue.v; queue = queue_get(facts, queue)->parent)
		if (queue_limits_users(queue_get(facts, queue)))
			return true;
	return false;
}

/* The least limit of it and the queues above, or all GPUs of the cluster. */
static int64_t queue_most(const struct facts *facts, const struct view *view, struct queue_id queue)
{
	int64_t most = (int64_t)view->usable_gpus * GPU_SHARE;

	for (; queue.v; queue = queue_get(facts, queue)->parent) {
		const int64_t limit = queue_get(facts, queue)->limit_share;

		if (limit >= 0 && limit < most)
			most = limit;
	}
	return most;
}

int64_t user_limit_of(const struct facts *facts, const struct view *view, struct queue_id queue)
{
	const struct queue *q = queue_get(facts, queue);
	int64_t limit = q->user_limit_share ? q->user_limit_share : INT64_MAX, part;

	if (!queue_limits_users(q))
		return INT64_MAX;
	if (!q->user_part)
		return limit;
	part = queue_most(facts, view, queue) * q->user_part / 100;
	part = part < GPU_SHARE ? GPU_SHARE : part;
	return part < limit ? part : limit;
}

/* Starts of this pass, those at promised places too: the view does not list them, and their promises are gone. */
static void starts_count(struct pass *pass, uint32_t queue, struct user_sums *sums)
{
	for (uint32_t i = 0; i < pass->count; i++) {
		const struct event *e = &pass->events[i];
		const struct job *job;

		if (e->kind != EVENT_ATTEMPT_PLACED)
			continue;
		job = job_get(pass->facts, (struct job_id){ (uint32_t)e->attempt_placed.job });
		if (queue_is_in(pass->view, job->queue.v, queue))
			user_holds_add(&sums->holds, job->user,
				       shape_share(&pass->view->space,
						   shape_get(pass->facts, job->shape),
						   e->attempt_placed.nodes_count),
				       pass->arena);
	}
}

static void sums_make(struct pass *pass, uint32_t queue, struct user_sums *sums)
{
	const struct view *view = pass->view;
	struct sorted_walk walk;

	for (uint32_t q = 1; q < pass->standings.count; q++)
		for (bool any = queue_is_in(view, q, queue) &&
				sorted_begin(&view->pool, view->queues.at[q].running, &walk);
		     any; any = sorted_next(&view->pool, &walk))
			user_holds_add(&sums->holds,
				       job_get(pass->facts, (struct job_id){ walk.id })->user,
				       job_view_get(view, walk.id)->share, pass->arena);
	for (uint32_t i = 0; i < view->promise_count; i++) {
		const struct promise_view *p = &view->promises.at[i];
		const struct job *job = job_get(pass->facts, (struct job_id){ p->job });

		/* One that moves is counted where it runs. */
		if ((!pass->promises_gone || !pass->promises_gone[i]) && !job->attempt.v &&
		    queue_is_in(view, p->queue, queue))
			user_holds_add(&sums->holds, job->user, p->share, pass->arena);
	}
	starts_count(pass, queue, sums);
	sums->made = true;
}

static struct user_sums *sums_of(struct pass *pass, uint32_t queue)
{
	if (!pass->user_sums)
		pass->user_sums =
			arena_new_array(pass->arena, struct user_sums, pass->standings.count);
	return &pass->user_sums[queue];
}

int64_t user_room(struct pass *pass, const struct job *job, int64_t need, struct verdict *ret_why)
{
	int64_t room = INT64_MAX;

	for (uint32_t id = job->queue.v; id; id = pass->view->queues.at[id].parent) {
		const int64_t limit =
			user_limit_of(pass->facts, pass->view, (struct queue_id){ id });
		struct user_sums *sums;
		int64_t left;

		if (limit == INT64_MAX)
			continue;
		sums = sums_of(pass, id);
		if (!sums->made)
			sums_make(pass, id, sums);
		left = limit - user_holds_get(&sums->holds, job->user);
		left = left > 0 ? left : 0;
		if (left < room && left < need && ret_why)
			*ret_why = (struct verdict){ .code = REASON_QUOTA_LIMIT,
						     .level = BOUND_USER,
						     .at = id,
						     .have = left,
						     .need = need };
		room = left < room ? left : room;
	}
	return room;
}

void user_take(struct pass *pass, const struct job *job, int64_t share)
{
	for (uint32_t id = job->queue.v; pass->user_sums && id;
	     id = pass->view->queues.at[id].parent)
		if (pass->user_sums[id].made)
			user_holds_add(&pass->user_sums[id].holds, job->user, share, pass->arena);
}
