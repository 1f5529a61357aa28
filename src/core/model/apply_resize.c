/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running attempts that change their width. A rank leaves in two steps, and comes in one:
 *
 *	attempt-shrunk	told to leave; it still holds its place
 *	ranks-left	it has exited, after that word or because it was lost, and the attempt goes on: its place is free
 *	attempt-grown	a rank that left, or a new one behind the last, holds a place and is started
 *
 * A rank that left keeps its number and counts as ready, started and exited, so that "all are" means what it says of the
 * others. What a rank used is charged when it leaves; what the others used, when the attempt ends.
 */
#include <string.h>

#include "core/model/apply.h"
#include "core/model/edit.h"
#include "core/model/roles.h"

static const struct task *task_at(const struct facts *f, const struct attempt *attempt,
				  int64_t rank)
{
	return table_get(&f->tasks, attempt->first_task + (uint32_t)rank);
}

static struct task *task_edit(struct facts *f, struct attempt_id id, int64_t rank)
{
	return table_edit(&f->tasks, attempt_get(f, id)->first_task + (uint32_t)rank);
}

/* The attempt when it runs and its width may change, else 0: one that holds parts of GPUs keeps its width. */
static struct attempt_id attempt_running(struct facts *f, int64_t number)
{
	struct attempt_id id = attempt_live(f, number);

	if (id.v &&
	    (attempt_get(f, id)->state != ATTEMPT_ACTIVE || attempt_get(f, id)->parts_share))
		id.v = 0;
	return id;
}

/* Rising, so each once, and ranks of the attempt; some of it is left over. */
static bool ranks_fit(const struct attempt *attempt, const int64_t *ranks, uint32_t count)
{
	if (!count || count >= attempt_width(attempt))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (ranks[i] < 0 || ranks[i] >= (int64_t)attempt->tasks ||
		    (i && ranks[i] <= ranks[i - 1]))
			return false;
	return true;
}

/* Who belongs to it has changed, unless that was told when they were asked to leave. */
static void resized(struct facts *f, struct attempt_id id, bool changed)
{
	struct attempt *attempt = attempt_edit(f, id);

	attempt->generation += changed;
	attempt->resized_ms = f->now_ms;
	job_set_state(f, attempt->job, job_live_state(attempt));
}

void apply_attempt_shrunk(struct facts *f, const struct event_attempt_shrunk *e)
{
	struct attempt_id id = attempt_running(f, e->attempt);
	const struct attempt *attempt;

	if (!id.v)
		return;
	attempt = attempt_get(f, id);
	if (!ranks_fit(attempt, e->ranks, e->ranks_count) ||
	    e->ranks_count + attempt->leaving >= attempt_width(attempt))
		return;
	for (uint32_t i = 0; i < e->ranks_count; i++)
		if (task_at(f, attempt, e->ranks[i])->state == TASK_LEFT ||
		    task_at(f, attempt, e->ranks[i])->leaving)
			return;
	for (uint32_t i = 0; i < e->ranks_count; i++)
		task_edit(f, id, e->ranks[i])->leaving = true;
	attempt_edit(f, id)->leaving += e->ranks_count;
	resized(f, id, true);
}

/* --- leaving -------------------------------------------------------------------------------------------- */

static void task_leave(struct facts *f, struct attempt_id id, int64_t rank)
{
	struct attempt *attempt = attempt_edit(f, id);
	struct task *task = task_edit(f, id, rank);

	attempt->ready += !task->was_ready;
	attempt->started += !task->was_started;
	task->was_ready = task->was_started = true;
	attempt->leaving -= task->leaving;
	attempt->left++;
	task->state = TASK_LEFT;
	task->leaving = false;
}

/* The first of the others that failed, if one did. */
static int32_t failed_first(const struct facts *f, const struct attempt *attempt)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_at(f, attempt, rank);

		if (task->state == TASK_EXITED && !task->leaving && task_has_failed(task))
			return (int32_t)rank;
	}
	return -1;
}

static void charge(struct facts *f, struct job_id id, const struct event_ranks_left *e)
{
	int64_t used = clamp_positive(e->used_gpu_ms);
	struct job *job = job_edit(f, id);
	struct queue *queue = queue_edit(f, job->queue);

	job->used_gpu_ms = add_saturating(job->used_gpu_ms, used);
	job->lost_gpu_ms = add_saturating(job->lost_gpu_ms, clamp_positive(e->lost_gpu_ms));
	queue->used_gpu_ms = add_saturating(queue->used_gpu_ms, used);
	queues_charge(f, e->charged, e->charged_count, e->charged_micro, e->charged_micro_count);
}

static bool is_below_least(const struct facts *f, const struct attempt *attempt)
{
	return attempt_lacks(f, attempt, shape_get(f, job_get(f, attempt->job)->shape));
}

static int64_t ranks_share(const struct facts *f, const struct attempt *attempt,
			   const int64_t *ranks, uint32_t count)
{
	const struct shape *shape = shape_get(f, job_get(f, attempt->job)->shape);

	return ranks_gpus(shape, ranks, count) * GPU_SHARE;
}

/* Where records are missing, that of its exit may be one of them. */
static void exit_unseen(struct facts *f, struct attempt_id id, int64_t rank)
{
	struct task *task = task_edit(f, id, rank);

	task->state = TASK_EXITED;
	task->cause = CAUSE_LOST;
	attempt_edit(f, id)->exited++;
}

static bool rank_may_leave(const struct facts *f, const struct task *task)
{
	return task->state == TASK_EXITED || (f->lost && task->state != TASK_LEFT);
}

void apply_ranks_left(struct facts *f, const struct event_ranks_left *e)
{
	struct attempt_id id = attempt_running(f, e->attempt);
	const struct attempt *old;
	struct attempt *attempt;
	bool unasked = false;

	if (!id.v)
		return;
	old = attempt_get(f, id);
	if (!ranks_fit(old, e->ranks, e->ranks_count))
		return;
	for (uint32_t i = 0; i < e->ranks_count; i++)
		if (!rank_may_leave(f, task_at(f, old, e->ranks[i])))
			return;
	for (uint32_t i = 0; i < e->ranks_count; i++)
		if (task_at(f, attempt_get(f, id), e->ranks[i])->state != TASK_EXITED)
			exit_unseen(f, id, e->ranks[i]);
	old = attempt_get(f, id);
	attempt_counts(f, id, -ranks_share(f, old, e->ranks, e->ranks_count));
	charge(f, old->job, e);
	for (uint32_t i = 0; i < e->ranks_count; i++) {
		unasked = unasked || !task_at(f, attempt_get(f, id), e->ranks[i])->leaving;
		task_leave(f, id, e->ranks[i]);
	}
	attempt = attempt_edit(f, id);
	attempt->first_failed_rank = failed_first(f, attempt);
	attempt->reason = facts_put_text(f, attempt->reason, e->text);
	if (is_below_least(f, attempt) && !attempt->lacks_ms)
		attempt->lacks_ms = f->now_ms > 0 ? f->now_ms : 1;
	resized(f, id, unasked);
}

/* --- coming --------------------------------------------------------------------------------------------- */

/* Ranks that left, then new ones behind the last, without a gap. Sets how many there are then. */
static bool ranks_come(struct facts *f, const struct attempt *attempt,
		       const struct event_attempt_grown *e, uint32_t *ret_tasks)
{
	uint32_t tasks = attempt->tasks;

	if (!e->ranks_count || e->nodes_count != e->ranks_count || e->masks_count != e->ranks_count)
		return false;
	for (uint32_t i = 0; i < e->ranks_count; i++) {
		if (i && e->ranks[i] <= e->ranks[i - 1])
			return false;
		if (e->ranks[i] > (int64_t)tasks)
			return false;
		tasks += e->ranks[i] == (int64_t)tasks;
		if (e->ranks[i] < 0 || tasks > TASKS_MAX)
			return false;
		if (e->ranks[i] < (int64_t)attempt->tasks &&
		    task_at(f, attempt, e->ranks[i])->state != TASK_LEFT)
			return false;
		if (!nodes_reach(f, e->nodes[i]) || e->masks[i] < 0 || e->masks[i] > UINT32_MAX)
			return false;
	}
	*ret_tasks = tasks;
	return true;
}

/* Room for more rows; the old ones are given back when they were too few. */
static void tasks_widen(struct facts *f, struct attempt_id id, uint32_t tasks)
{
	uint32_t old_first = attempt_get(f, id)->first_task, old_tasks = attempt_get(f, id)->tasks,
		 first = facts_take_tasks(f, tasks);

	for (uint32_t rank = 0; rank < old_tasks; rank++) {
		struct task task = *(const struct task *)table_get(&f->tasks, old_first + rank);

		memcpy(table_edit(&f->tasks, first + rank), &task, sizeof(task));
	}
	facts_give_tasks(f, old_first, old_tasks);
	attempt_edit(f, id)->first_task = first;
	attempt_edit(f, id)->tasks = tasks;
}

static void task_come(struct facts *f, struct attempt_id id, int64_t rank, int64_t node,
		      int64_t mask, bool again)
{
	struct attempt *attempt = attempt_edit(f, id);
	struct task *task = task_edit(f, id, rank);
	uint32_t launch = again ? task->launch + 1 : 0;

	if (again) {
		attempt->left--;
		attempt->ready--;
		attempt->started--;
		attempt->exited--;
	}
	memset(task, 0, sizeof(*task));
	task->node.v = (uint32_t)node;
	task->gpu_mask = (uint32_t)mask;
	task->launch = launch;
	task->step = -1;
	task->from_ms = f->now_ms;
}

void apply_attempt_grown(struct facts *f, const struct event_attempt_grown *e)
{
	struct attempt_id id = attempt_running(f, e->attempt);
	struct attempt *attempt;
	uint32_t tasks, before;

	if (!id.v || !ranks_come(f, attempt_get(f, id), e, &tasks))
		return;
	before = attempt_get(f, id)->tasks;
	if (tasks > before)
		tasks_widen(f, id, tasks);
	for (uint32_t i = 0; i < e->ranks_count; i++)
		task_come(f, id, e->ranks[i], e->nodes[i], e->masks[i],
			  e->ranks[i] < (int64_t)before);
	attempt_counts(f, id, ranks_share(f, attempt_get(f, id), e->ranks, e->ranks_count));
	resized(f, id, true);
	attempt = attempt_edit(f, id);
	if (is_below_least(f, attempt))
		return;
	attempt->lacks_ms = 0;
	if (attempt->first_failed_rank < 0)
		attempt->reason = facts_put_text(f, attempt->reason, "");
}
