/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_sync is the heart: it compares what the index holds of a job with what the facts say and mends the
 * difference. Following an event is job_sync for the jobs it touches; building is job_sync for all.
 */
#include "core/scheduling/view/view.h"

#include <string.h>

#include "base/check.h"
#include "core/model/roles.h"
#include "core/scheduling/queues/dominant.h"
#include "core/scheduling/queues/user_limit.h"
#include "core/scheduling/order/arrays.h"
#include "core/scheduling/queues/window.h"

/* --- running jobs ------------------------------------------------------------------------------------- */

static void holders_move(struct view *view, uint32_t rank, uint32_t mask, uint32_t job, bool take)
{
	uint32_t *holders = view->holders.at + (size_t)rank * view->space.gpus_max;

	/* GPUs that the node has no more, since it was set anew, are nobody's. */
	for (mask &= space_at(&view->space, rank)->all; mask; mask &= mask - 1) {
		uint32_t *holder = &holders[__builtin_ctz(mask)];

		if (take)
			*holder = job;
		else if (*holder == job)
			*holder = 0;
	}
}

/* One task, of rank `at` in its job, takes its place in the space, or gives it back. */
static void task_move(struct view *view, const struct task *task, uint32_t at, uint32_t job,
		      const struct shape *shape, bool take)
{
	int32_t rank = space_rank(&view->space, task->node.v);
	struct hold hold = task_hold(task, shape, at);

	if (rank == RANK_NONE)
		return;
	if (!hold.part) /* who holds parts of a GPU is not listed: several may */
		holders_move(view, (uint32_t)rank, task->gpu_mask, job, take);
	if (take)
		space_take(&view->space, (uint32_t)rank, &hold);
	else
		space_give(&view->space, (uint32_t)rank, &hold);
}

static void tasks_move(struct view *view, const struct facts *facts, const struct job *job,
		       const struct attempt *attempt, bool take)
{
	const struct shape *shape = shape_get(facts, job->shape);

	if (job->tier != TIER_BEST_EFFORT)
		dominant_hold(view, facts, job->queue.v, attempt, shape, take ? 1 : -1);
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);

		if (task_holds(task))
			task_move(view, task, i, attempt->job.v, shape, take);
	}
	space_commit(&view->space);
}

static void set_move(struct view *view, uint32_t *root, bool *in, bool wanted, uint32_t id)
{
	if (*in == wanted)
		return;
	if (wanted)
		sorted_add(&view->pool, root, id, id);
	else
		sorted_remove(&view->pool, root, id, id);
	*in = wanted;
}

static void time_move(struct view *view, uint32_t *root, int64_t *at_ms, int64_t wanted_ms,
		      uint32_t id)
{
	if (*at_ms == wanted_ms)
		return;
	if (*at_ms)
		sorted_remove(&view->pool, root, (uint64_t)*at_ms, id);
	if (wanted_ms)
		sorted_add(&view->pool, root, (uint64_t)wanted_ms, id);
	*at_ms = wanted_ms;
}

/* It counts among those of its queue that may have to go when they are old enough. */
static void aging_move(struct view *view, uint32_t id, bool wanted, int64_t since_ms)
{
	struct job_view *jv = job_view_edit(view, id);
	uint32_t *root = &view->queues.at[jv->queue].aging;

	if (jv->aging && (!wanted || jv->since_ms != since_ms))
		sorted_remove(&view->pool, root, (uint64_t)jv->since_ms, id);
	if (wanted && (!jv->aging || jv->since_ms != since_ms))
		sorted_add(&view->pool, root, (uint64_t)since_ms, id);
	jv->aging = wanted;
	jv->since_ms = since_ms;
}

/* The same of those that can do without some ranks. */
static void elastic_move(struct view *view, uint32_t id, bool wanted)
{
	struct job_view *jv = job_view_edit(view, id);
	uint32_t *root = &view->queues.at[jv->queue].elastic;

	if (jv->elastic == wanted)
		return;
	if (wanted)
		sorted_add(&view->pool, root, jv->rank, id);
	else
		sorted_remove(&view->pool, root, jv->rank, id);
	jv->elastic = wanted;
}

/* Among what runs in its queue, or out of it. */
static void running_move(struct view *view, const struct facts *facts, uint32_t id, bool enter)
{
	const struct job_view *jv = job_view_get(view, id);
	struct queue_view *queue = &view->queues.at[jv->queue];
	void (*move)(struct sorted_pool *, uint32_t *, uint64_t, uint32_t) =
		enter ? sorted_add : sorted_remove;

	move(&view->pool, &queue->running, jv->rank, id);
	if (job_get(facts, (struct job_id){ id })->checkpoints && jv->tier != TIER_CRITICAL)
		move(&view->pool, &queue->savers, jv->rank, id);
	if (jv->tier == TIER_STANDARD &&
	    !shape_get(facts, job_get(facts, (struct job_id){ id })->shape)->gpus)
		queue->bare += enter ? 1 : UINT32_MAX;
}

static void run_leave(struct view *view, const struct facts *facts, uint32_t id)
{
	struct job_view *jv = job_view_edit(view, id);
	struct queue_view *queue = &view->queues.at[jv->queue];

	running_move(view, facts, id, false);
	if (sorted_has(&view->pool, view->marked, id, id))
		sorted_remove(&view->pool, &view->marked, id, id);
	queue->hold[jv->tier] -= jv->share;
	queue->leave[jv->tier] -= jv->leave_share;
	queue->again[jv->tier] -= jv->again_share;
	jv->leave_share = jv->again_share = 0;
	set_move(view, &view->leaving, &jv->leaving, false, id);
	set_move(view, &view->shrinking, &jv->shrinking, false, id);
	set_move(view, &view->warned, &jv->warned, false, id);
	set_move(view, &view->lacking, &jv->lacking, false, id);
	time_move(view, &view->narrow, &jv->grow_ms, 0, id);
	time_move(view, &view->deadlines, &jv->deadline_ms, 0, id);
	time_move(view, &view->ends, &jv->end_ms, 0, id);
	time_move(view, &view->declared, &jv->declared_ms, 0, id);
	turner_leave(view, facts, id);
	aging_move(view, id, false, jv->since_ms);
	elastic_move(view, id, false);
	jv->attempt = 0;
}

static void run_enter(struct view *view, const struct facts *facts, uint32_t id,
		      const struct job *job)
{
	const struct attempt *attempt = attempt_get(facts, job->attempt);
	struct job_view *jv = job_view_edit(view, id);
	struct queue_view *queue = &view->queues.at[job->queue.v];

	jv->attempt = job->attempt.v;
	jv->queue = job->queue.v;
	jv->rank = job_rank(job);
	jv->tier = job->tier;
	jv->width = attempt_width(attempt);
	jv->share = attempt_share(facts, attempt);
	running_move(view, facts, id, true);
	if (shape_is_marked(shape_get(facts, job->shape)))
		sorted_add(&view->pool, &view->marked, id, id);
	queue->hold[jv->tier] += jv->share;
}

/* Looks at every task only where some node is left: each of their words comes by here. */
static int64_t run_drain_ms(const struct view *view, const struct facts *facts,
			    const struct job *job, const struct attempt *attempt)
{
	return view->draining ? attempt_drain_ms(facts, job, attempt)
			      : attempt_window_ms(facts, job, attempt);
}

static int64_t run_deadline_ms(const struct view *view, const struct facts *facts,
			       const struct job *job, const struct attempt *attempt)
{
	int64_t limit_ms = attempt->state == ATTEMPT_ACTIVE ? job_limit_end_ms(facts, job) : 0;

	if (attempt->state == ATTEMPT_STOPPING)
		return limit_ms;
	if (!attempt->warned_ms) {
		int64_t drain_ms = run_drain_ms(view, facts, job, attempt);

		return drain_ms > DRAIN_NOW && (!limit_ms || drain_ms < limit_ms) ? drain_ms
										  : limit_ms;
	}
	return limit_ms && limit_ms < attempt->deadline_ms ? limit_ms : attempt->deadline_ms;
}

static int64_t run_end_ms(const struct facts *facts, const struct job *job,
			  const struct attempt *attempt)
{
	int64_t since_ms = attempt->released_ms ? attempt->released_ms : attempt->placed_ms;
	int64_t end_ms = attempt_is_leaving(attempt)
				 ? attempt->deadline_ms
				 : since_ms + job_stays_ms(facts, job, since_ms);

	return end_ms > 0 ? end_ms : 1;
}

bool job_waits_again(const struct facts *facts, const struct job *job,
		     const struct attempt *attempt)
{
	if (job->cancel_asked || job->held || job->promise ||
	    shape_get(facts, job->shape)->window.v)
		return false;
	return attempt->state != ATTEMPT_STOPPING || attempt->why == STOP_EVICTED ||
	       attempt->why == STOP_NODE || attempt->why == STOP_LOST;
}

static int64_t least_width_share(const struct facts *facts, const struct job_view *jv,
				 const struct job *job)
{
	const struct shape *shape = shape_get(facts, job->shape);
	int64_t least = shape_gpus(shape, shape->tasks_min) * GPU_SHARE;

	return !shape_is_part(shape) && least < jv->share ? least : jv->share;
}

static void job_run_sync(struct view *view, const struct facts *facts, uint32_t id)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	struct job_view *jv = job_view_edit(view, id);
	const struct attempt *attempt;
	int64_t leave_share, again_share;
	bool leaving;

	if (jv->attempt && jv->attempt != job->attempt.v) {
		if (!view->space_stale)
			tasks_move(view, facts, job,
				   attempt_get(facts, (struct attempt_id){ jv->attempt }), false);
		run_leave(view, facts, id);
		view_shape_count(view, job->shape.v, false);
	} else if (jv->attempt && jv->rank != job_rank(job)) {
		elastic_move(view, id, false);
		running_move(view, facts, id, false);
		jv->rank = job_rank(job);
		running_move(view, facts, id, true);
	}
	if (!job->attempt.v)
		return;
	attempt = attempt_get(facts, job->attempt);
	if (!jv->attempt) {
		run_enter(view, facts, id, job);
		view_shape_count(view, job->shape.v, true);
		if (!view->space_stale)
			tasks_move(view, facts, job, attempt, true);
	}
	leaving = attempt_is_leaving(attempt);
	aging_move(view, id, job->tier == TIER_STANDARD && !leaving,
		   attempt->released_ms ? attempt->released_ms : attempt->placed_ms);
	elastic_move(view, id,
		     job->tier == TIER_STANDARD && !leaving &&
			     attempt_has_surplus(facts, job, attempt));
	leave_share = leaving ? jv->share
		      : attempt->leaving
			      ? attempt_told_share(facts, attempt, shape_get(facts, job->shape))
			      : 0;
	view->queues.at[jv->queue].leave[jv->tier] += leave_share - jv->leave_share;
	jv->leave_share = leave_share;
	again_share = leaving && job_waits_again(facts, job, attempt)
			      ? least_width_share(facts, jv, job)
			      : 0;
	view->queues.at[jv->queue].again[jv->tier] += again_share - jv->again_share;
	jv->again_share = again_share;
	set_move(view, &view->lacking, &jv->lacking,
		 attempt->lacks_ms && attempt->state == ATTEMPT_ACTIVE, id);
	time_move(view, &view->narrow, &jv->grow_ms, attempt_grow_ms(facts, job, attempt), id);
	set_move(view, &view->leaving, &jv->leaving, leaving, id);
	set_move(view, &view->shrinking, &jv->shrinking, !leaving && attempt->leaving, id);
	set_move(view, &view->warned, &jv->warned,
		 attempt->warned_ms && attempt->state != ATTEMPT_STOPPING, id);
	time_move(view, &view->deadlines, &jv->deadline_ms,
		  run_deadline_ms(view, facts, job, attempt), id);
	time_move(view, &view->ends, &jv->end_ms, run_end_ms(facts, job, attempt), id);
	time_move(view, &view->declared, &jv->declared_ms,
		  job->limit_ms || job->estimate_ms || leaving ? jv->end_ms : 0, id);
	turner_sync(view, facts, id);
}

/* --- one job, all of it ------------------------------------------------------------------------------------ */

static bool job_needs(const struct view *view, const struct facts *facts, const struct job *job)
{
	const struct attempt *attempt;
	int64_t drain_ms;

	if (job_is_due(facts, job))
		return true;
	if (!job->attempt.v)
		return false;
	attempt = attempt_get(facts, job->attempt);
	if (attempt->state == ATTEMPT_STOPPING)
		return false;
	if (!attempt->warned_ms)
		return (view->draining || shape_get(facts, job->shape)->window.v) &&
		       attempt_drain_ms(facts, job, attempt) == DRAIN_NOW;
	if (attempt->for_job)
		return false;
	drain_ms = run_drain_ms(view, facts, job, attempt);
	return !drain_ms || drain_ms > attempt->warned_ms; /* called off, or put off */
}

static bool row_is_empty(const struct job_view *row)
{
	return memcmp(row, table_zeroes, sizeof(*row)) == 0;
}

/* The row of a job that is over, once nothing of it is in the index: memory follows the jobs that wait or run. */
static void row_drop(struct view *view, uint32_t id)
{
	struct job_view *row = job_view_edit(view, id);

	if (row->bucket || row->attempt || row->promised || row->due || row->chooses ||
	    row->array || row->array_holds)
		return;
	memset(row, 0, sizeof(*row));
	table_trim(&view->jobs, id);
}

static void job_sync(struct view *view, const struct facts *facts, uint32_t id, bool promise_again)
{
	const struct job *job;

	if (id == 0 || id > facts->jobs.count)
		return;
	job = job_get(facts, (struct job_id){ id });
	while (view->jobs.count < facts->jobs.count)
		table_add(&view->jobs);
	if (job_state_is_final(job->state) && row_is_empty(job_view_get(view, id)))
		return;
	view_promise_sync(view, facts, id, promise_again);
	array_leave(view, facts, id);
	job_run_sync(view, facts, id);
	array_enter(view, facts, id);
	view_wait_sync(view, facts, id);
	set_move(view, &view->due, &job_view_edit(view, id)->due, job_needs(view, facts, job), id);
	set_move(view, &view->chooses, &job_view_edit(view, id)->chooses,
		 job_chooses_capacity(facts, job), id);
	if (job_state_is_final(job->state))
		row_drop(view, id);
}

/* --- queues and space, when stale ---------------------------------------------------------------------------- */

/* The queues' shapes of the tree: children by name. */
static void queues_build(struct view *view, const struct facts *facts)
{
	uint32_t count = facts->queues.count, listed = 0;

	array_ensure(&view->queues.buf, (size_t)count + 1, sizeof(struct queue_view));
	array_resize(&view->queue_order.buf, 0, sizeof(uint32_t));
	for (uint32_t id = 0; id <= count; id++)
		view->queues.at[id].first_child = view->queues.at[id].next_sibling =
			view->queues.at[id].parent = 0;
	for (uint32_t id = 1; id <= count; id++) {
		const struct queue *queue = queue_get(facts, (struct queue_id){ id });
		uint32_t *link = &view->queues.at[queue->parent.v].first_child;

		view->queues.at[id].parent = queue->parent.v;
		while (*link &&
		       strcmp(facts_name(facts, queue_get(facts, (struct queue_id){ *link })->name),
			      facts_name(facts, queue->name)) < 0)
			link = &view->queues.at[*link].next_sibling;
		view->queues.at[id].next_sibling = *link;
		*link = id;
	}
	array_resize(&view->queue_order.buf, (size_t)count + 1, sizeof(uint32_t));
	view->queue_order.at[listed++] = 0;
	for (uint32_t i = 0; i < listed; i++)
		for (uint32_t id = view->queues.at[view->queue_order.at[i]].first_child; id;
		     id = view->queues.at[id].next_sibling)
			view->queue_order.at[listed++] = id;
	CHECK(listed == count + 1);
	view->queues_stale = false;
}

static void space_fill(struct view *view, const struct facts *facts)
{
	struct sorted_walk walk;

	space_build(&view->space, facts);
	dominant_models_read(view, facts);
	view->space_stale = false;
	buf_clear(&view->suits.buf);
	buf_clear(&view->holders.buf);
	array_resize(&view->holders.buf, (size_t)view->space.node_count * view->space.gpus_max + 1,
		     sizeof(uint32_t));
	for (uint32_t q = 1; q <= facts->queues.count; q++) {
		for (bool any = sorted_begin(&view->pool, view->queues.at[q].running, &walk); any;
		     any = sorted_next(&view->pool, &walk)) {
			const struct job *job = job_get(facts, (struct job_id){ walk.id });

			tasks_move(view, facts, job, attempt_get(facts, job->attempt), true);
		}
	}
	for (uint32_t i = 0; i < view->promise_count; i++)
		view_promise_move(view, &view->promises.at[i], true);
}

void view_refresh(struct view *view, const struct facts *facts)
{
	if (view->queues_stale)
		queues_build(view, facts);
	if (view->space_stale)
		space_fill(view, facts);
	/* A shape that was made only to try something out gives its number to another one. */
	if (view->suits.buf.size > ((size_t)facts->shapes.count + 1) * sizeof(uint64_t))
		array_resize(&view->suits.buf, (size_t)facts->shapes.count + 1, sizeof(uint64_t));
}

/* --- nodes ------------------------------------------------------------------------------------------------- */

static void node_due_sync(struct view *view, const struct facts *facts, uint32_t id)
{
	const struct node *node = node_get(facts, (struct node_id){ id });
	bool due = node->state != NODE_QUARANTINED && node_failed_often(facts, id, NULL);

	if (sorted_has(&view->pool, view->nodes_due, id, id) == due)
		return;
	if (due)
		sorted_add(&view->pool, &view->nodes_due, id, id);
	else
		sorted_remove(&view->pool, &view->nodes_due, id, id);
}

static void nodes_due_sync(struct view *view, const struct facts *facts)
{
	for (uint32_t id = 1; id <= facts->nodes.count; id++)
		node_due_sync(view, facts, id);
}

static void running_sync(struct view *view, const struct facts *facts)
{
	struct sorted_walk walk;

	for (uint32_t q = 1; q <= facts->queues.count; q++)
		for (bool any = sorted_begin(&view->pool, view->queues.at[q].running, &walk); any;
		     any = sorted_next(&view->pool, &walk))
			job_sync(view, facts, walk.id, false);
}

static uint64_t bookings_personal(const struct facts *facts)
{
	uint64_t rows = 0;

	for (uint32_t row = 1; row <= facts->bookings.count; row++)
		if (booking_is_personal(booking_get(facts, row)))
			rows |= UINT64_C(1) << (row - 1);
	return rows;
}

/* Whom a reservation for people is for may have changed: those that wait stand in other buckets. */
static void booked_sync(struct view *view, const struct facts *facts)
{
	uint64_t was = view->booked;

	view->booked = bookings_personal(facts);
	for (uint32_t id = 1; (was || view->booked) && id <= view->jobs.count; id++)
		if (job_view_get(view, id)->bucket)
			view_wait_sync(view, facts, id);
}

static uint32_t queues_with_user_limits(const struct facts *facts)
{
	uint32_t count = 0;

	for (uint32_t id = 1; id <= facts->queues.count; id++)
		count += queue_limits_users(queue_get(facts, (struct queue_id){ id }));
	return count;
}

/* Where queues have limits per user, their jobs stand in buckets by user. */
static void user_limits_sync(struct view *view, const struct facts *facts)
{
	const uint32_t were = view->user_limits;

	view->user_limits = queues_with_user_limits(facts);
	for (uint32_t id = 1; (were || view->user_limits) && id <= view->jobs.count; id++)
		if (job_view_get(view, id)->bucket)
			view_wait_sync(view, facts, id);
}

static void node_follow(struct view *view, const struct facts *facts, int64_t id)
{
	uint32_t draining;

	if (id < 1 || id > (int64_t)facts->nodes.count)
		return;
	node_due_sync(view, facts, (uint32_t)id);
	if (space_rank(&view->space, (uint32_t)id) == RANK_NONE ||
	    node_get(facts, (struct node_id){ (uint32_t)id })->state == NODE_GONE)
		view->space_stale = true;
	if (!view->space_stale) {
		space_node_refresh(&view->space, facts, (struct node_id){ (uint32_t)id });
		space_commit(&view->space);
		dominant_capacity_read(view);
	}
	draining = nodes_draining(facts);
	if (draining != view->draining ||
	    node_is_left(node_get(facts, (struct node_id){ (uint32_t)id }))) {
		view->draining = draining;
		running_sync(view, facts);
	}
}

static void layout_follow(struct view *view, const struct facts *facts, int64_t id)
{
	if (id < 1 || id > (int64_t)facts->nodes.count || view->space_stale)
		return;
	if (!space_layout_refresh(&view->space, facts, (struct node_id){ (uint32_t)id }))
		view->space_stale = true;
	else
		dominant_capacity_read(view);
}

/* --- following ----------------------------------------------------------------------------------------------- */

static void dependents_sync(struct view *view, const struct facts *facts, uint32_t id)
{
	uint32_t row = id >= 1 && id <= facts->jobs.count
			       ? job_get(facts, (struct job_id){ id })->dependents
			       : 0;

	while (row) {
		const struct depend *depend = table_get(&facts->depends, row);

		job_sync(view, facts, depend->owner, false);
		row = depend->next_dependent;
	}
}

static void attempt_follow(struct view *view, const struct facts *facts, int64_t attempt)
{
	if (attempt >= 1 && attempt <= (int64_t)facts->attempts.count)
		job_sync(view, facts,
			 attempt_get(facts, (struct attempt_id){ (uint32_t)attempt })->job.v,
			 false);
}

static void job_follow(struct view *view, const struct facts *facts, int64_t job)
{
	if (job >= 1 && job <= (int64_t)facts->jobs.count)
		job_sync(view, facts, (uint32_t)job, false);
}

/* A removed user's waiting jobs are to be cancelled. */
static void user_follow(struct view *view, const struct facts *facts, const char *name)
{
	const struct name_id user = facts_name_find(facts, name);

	for (uint32_t id = 1; user.v && id <= facts->jobs.count; id++)
		if (name_same(job_get(facts, (struct job_id){ id })->user, user))
			job_sync(view, facts, id, false);
}

/* A job that names a label or taint as the first makes it count: the space tells nodes apart by it from now on. */
static void wish_follow(struct view *view, const struct facts *facts, uint32_t id)
{
	const struct job *job = job_get(facts, (struct job_id){ id });

	job_sync(view, facts, id, false);
	if (job->shape.v && !space_knows(&view->space, shape_get(facts, job->shape)))
		view->space_stale = true;
}

static void submitted_follow(struct view *view, const struct facts *facts)
{
	while (view->job_count < facts->jobs.count)
		wish_follow(view, facts, ++view->job_count);
}

/* What an array has together may have changed for all of its jobs. */
static void changed_follow(struct view *view, const struct facts *facts,
			   const struct event_job_changed *e)
{
	const struct job *job;

	if (!job_is_there(facts, e->job))
		return;
	job = job_get(facts, (struct job_id){ (uint32_t)e->job });
	wish_follow(view, facts, (uint32_t)e->job);
	for (uint32_t i = 0; e->whole && i < job->array_count; i++)
		job_follow(view, facts, job->array_first + i);
}

/* Ranks of a running attempt left, or came; nothing when the event did not fit. */
static void resized_follow(struct view *view, const struct facts *facts, int64_t number,
			   const int64_t *ranks, uint32_t count)
{
	const struct attempt *attempt;
	const struct shape *shape;
	struct job_view *jv;
	uint32_t id;
	int64_t share;

	if (number < 1 || number > (int64_t)facts->attempts.count)
		return;
	attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)number });
	id = attempt->job.v;
	jv = id ? job_view_edit(view, id) : NULL;
	if (!jv || jv->attempt != number || jv->width == attempt_width(attempt))
		return;
	shape = shape_get(facts, job_get(facts, attempt->job)->shape);
	for (uint32_t i = 0; i < count && !view->space_stale; i++) {
		const struct task *task =
			table_get(&facts->tasks, attempt->first_task + (uint32_t)ranks[i]);
		int32_t rank = space_rank(&view->space, task->node.v);

		if (rank != RANK_NONE && jv->tier != TIER_BEST_EFFORT)
			dominant_hold_task(view, jv->queue, (uint32_t)rank, shape,
					   (uint32_t)ranks[i], task_holds(task) ? 1 : -1);
		task_move(view, task, (uint32_t)ranks[i], id, shape, task_holds(task));
	}
	space_commit(&view->space);
	jv->width = attempt_width(attempt);
	share = attempt_share(facts, attempt);
	view->queues.at[jv->queue].hold[jv->tier] += share - jv->share;
	jv->share = share;
	job_sync(view, facts, id, false);
}

static void ended_follow(struct view *view, const struct facts *facts,
			 const struct event_attempt_ended *e)
{
	attempt_follow(view, facts, e->attempt);
	for (uint32_t i = 0; i < e->blamed_nodes_count; i++)
		node_follow(view, facts, e->blamed_nodes[i]);
}

void view_follow(struct view *view, const struct facts *facts, const struct event *event)
{
	rest_follow(&view->rest, event);
	switch (event->kind) {
	case EVENT_NODE_FOUND: return; /* nothing decides by it until the fabric is described */
	case EVENT_FABRIC_SET:
	case EVENT_LEVELS_SET: view->space_stale = true; return;
	case EVENT_NODE_SET: {
		struct node_id id = facts_node_find(facts, event->node_set.name);

		/* Another count of GPUs changes what remembered failures say of the node. */
		if (id.v)
			node_due_sync(view, facts, id.v);
		view->space_stale = true;
		return;
	}
	case EVENT_BOOKING_SET:
	case EVENT_BOOKING_ENDED:
		view->draining = nodes_draining(facts);
		running_sync(view, facts);
		booked_sync(view, facts);
		return;
	case EVENT_NODE_WINDOW: node_follow(view, facts, event->node_window.node); return;
	case EVENT_NODE_STATE: node_follow(view, facts, event->node_state.node); return;
	case EVENT_PRICE_SET:
	case EVENT_DATA_SET:
	case EVENT_TRANSFER_SET:
	case EVENT_NODE_NUMA:
	case EVENT_NODE_MASK:
	case EVENT_NODE_MARKED: view->space_stale = true; return;
	case EVENT_LAYOUT_SET: layout_follow(view, facts, event->layout_set.node); return;
	case EVENT_GPU_STATE: node_follow(view, facts, event->gpu_state.node); return;
	case EVENT_POLICY_SET:
		view_order_sync(view, facts);
		running_sync(view, facts);
		nodes_due_sync(view, facts); /* how many failures are too many */
		return;
	case EVENT_QUEUE_SET:
		queues_build(view, facts);
		user_limits_sync(view, facts);
		running_sync(view, facts);
		return;
	case EVENT_ZONE_SET: running_sync(view, facts); return; /* windows close at other times */
	case EVENT_QUEUE_REMOVED:
		view->queues_stale = true;
		user_limits_sync(view, facts);
		return;
	case EVENT_RECORDS_LOST:
	case EVENT_JOB_SUBMITTED: submitted_follow(view, facts); return;
	case EVENT_USER_REMOVED: user_follow(view, facts, event->user_removed.name); return;
	case EVENT_JOB_HELD: job_follow(view, facts, event->job_held.job); return;
	case EVENT_JOB_RELEASED: job_follow(view, facts, event->job_released.job); return;
	case EVENT_JOB_CANCEL_ASKED: job_follow(view, facts, event->job_cancel_asked.job); return;
	case EVENT_JOB_PRIORITY_SET: job_follow(view, facts, event->job_priority_set.job); return;
	case EVENT_JOB_CHANGED: changed_follow(view, facts, &event->job_changed); return;
	case EVENT_CAPACITY_CHOSEN: job_follow(view, facts, event->capacity_chosen.job); return;
	case EVENT_JOB_REQUEUED: job_follow(view, facts, event->job_requeued.job); return;
	case EVENT_JOB_ENDED:
		job_follow(view, facts, event->job_ended.job);
		if (!job_is_there(facts, event->job_ended.job))
			return;
		dependents_sync(view, facts, (uint32_t)event->job_ended.job);
		dependents_sync(view, facts,
				array_ended_with(facts, (uint32_t)event->job_ended.job));
		return;
	case EVENT_ATTEMPT_PLACED: job_follow(view, facts, event->attempt_placed.job); return;
	case EVENT_ATTEMPT_RELEASED:
		attempt_follow(view, facts, event->attempt_released.attempt);
		return;
	case EVENT_ATTEMPT_WARNED:
		attempt_follow(view, facts, event->attempt_warned.attempt);
		return;
	case EVENT_ATTEMPT_SPARED:
		attempt_follow(view, facts, event->attempt_spared.attempt);
		return;
	case EVENT_ATTEMPT_STOPPED:
		attempt_follow(view, facts, event->attempt_stopped.attempt);
		return;
	case EVENT_ATTEMPT_ENDED: ended_follow(view, facts, &event->attempt_ended); return;
	case EVENT_ATTEMPT_UNREACHABLE:
		attempt_follow(view, facts, event->attempt_unreachable.attempt);
		return;
	case EVENT_ATTEMPT_SHIELDED: /* how many have to go on */
		attempt_follow(view, facts, event->attempt_shielded.attempt);
		return;
	case EVENT_ATTEMPT_SHRUNK:
		attempt_follow(view, facts, event->attempt_shrunk.attempt);
		return;
	case EVENT_ATTEMPT_GROWN:
		resized_follow(view, facts, event->attempt_grown.attempt,
			       event->attempt_grown.ranks, event->attempt_grown.ranks_count);
		return;
	case EVENT_RANKS_LEFT:
		resized_follow(view, facts, event->ranks_left.attempt, event->ranks_left.ranks,
			       event->ranks_left.ranks_count);
		return;
	case EVENT_TASK_STARTED: attempt_follow(view, facts, event->task_started.attempt); return;
	case EVENT_TASK_READY: attempt_follow(view, facts, event->task_ready.attempt); return;
	case EVENT_TASK_EXITED: attempt_follow(view, facts, event->task_exited.attempt); return;
	case EVENT_CHECKPOINT_SAVED: job_follow(view, facts, event->checkpoint_saved.job); return;
	case EVENT_CHECKPOINT_VOID: job_follow(view, facts, event->checkpoint_void.job); return;
	case EVENT_PROMISE_MADE:
		if (event->promise_made.job >= 1 && event->promise_made.job <= UINT32_MAX)
			job_sync(view, facts, (uint32_t)event->promise_made.job, true);
		return;
	case EVENT_PROMISE_DROPPED: job_follow(view, facts, event->promise_dropped.job); return;
	case EVENT_NONE:
	case EVENT_DAEMON_STARTED:
	case EVENT_DECIDED:
	case EVENT_SEARCHED:
	case EVENT_CLOCK_TICKED:
	case EVENT_BUDGET_SET:
	case EVENT_TEAM_SET:
	case EVENT_TEAM_REMOVED:
	case EVENT_USER_SET:
	case EVENT_TOKEN_CREATED:
	case EVENT_TOKEN_REVOKED:
	case EVENT_PROGRESS:
	case EVENT_JOBS_FORGOTTEN:
		nodes_due_sync(view, facts);
		return; /* whose failures are remembered there */
	case EVENT_RESERVATIONS_REVIEWED:
	case EVENT_RESERVATION_SET:
	case EVENT_RESERVATION_DROPPED:
	case EVENT_MOVES_PLANNED:
	case EVENT_DEFRAG_ASKED:
	case EVENT_ATTEMPT_DEAF:
	case EVENT_ENGINE_CLAIMED:
	case EVENT_KIND_LIMIT: return; /* nothing in the index depends on these */
	}
}

/* --- life ------------------------------------------------------------------------------------------------------ */

/* A view is one record of a buf, so that memory comes from base alone. */
struct view *view_create(const struct facts *facts)
{
	struct buf memory = BUF_INIT;
	struct view *view;

	array_resize(&memory, 1, sizeof(struct view));
	view = (struct view *)buf_take(&memory);
	space_init(&view->space);
	space_init(&view->ahead);
	space_init(&view->bare);
	sorted_init(&view->pool);
	table_init(&view->jobs, sizeof(struct job_view));
	array_resize(&view->turner_groups.buf, 1, sizeof(struct turner_group));
	queues_build(view, facts);
	view->space_stale = true; /* filled once, after the jobs */
	view->draining = nodes_draining(facts);
	view->booked = bookings_personal(facts);
	view->user_limits = queues_with_user_limits(facts);
	while (view->job_count < facts->jobs.count)
		job_sync(view, facts, ++view->job_count, false);
	nodes_due_sync(view, facts);
	view_refresh(view, facts);
	return view;
}

void view_destroy(struct view *view)
{
	struct buf memory;

	if (!view)
		return;
	for (uint32_t i = 0; i < view->promise_count; i++)
		buf_deinit(&view->promises.at[i].numbers.buf);
	space_deinit(&view->space);
	space_deinit(&view->ahead);
	space_deinit(&view->bare);
	buf_deinit(&view->suits.buf);
	sorted_deinit(&view->pool);
	table_deinit(&view->jobs);
	buf_deinit(&view->buckets.buf);
	buf_deinit(&view->bucket_slots.buf);
	buf_deinit(&view->turner_groups.buf);
	buf_deinit(&view->turner_slots.buf);
	for (uint32_t q = 0; q < view->queues.buf.size / sizeof(struct queue_view); q++)
		line_deinit(&view->queues.at[q].line);
	buf_deinit(&view->queues.buf);
	buf_deinit(&view->queue_order.buf);
	buf_deinit(&view->models.buf);
	buf_deinit(&view->promises.buf);
	buf_deinit(&view->holders.buf);
	buf_deinit(&view->arrays.buf);
	buf_deinit(&view->shape_jobs.buf);
	memory = (struct buf){ .data = (char *)view };
	buf_deinit(&memory);
}
