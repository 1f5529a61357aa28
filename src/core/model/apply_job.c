/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs and the places promised to them.
 *
 * A job's state is never remembered by itself: while it waits it follows from `held`, what it depends on and
 * `evicted`; while it has an attempt, from the attempt. So a job that is let go, spared or reachable again
 * comes back to the right state without a memory of the one before.
 */
#include <string.h>

#include "base/check.h"
#include "core/model/apply.h"
#include "core/model/edit.h"
#include "core/model/likes.h"

uint8_t job_waiting_state(const struct facts *f, const struct job *job)
{
	if (job->held)
		return JOB_HELD;
	for (uint32_t row = job->depends; row;) {
		const struct depend *depend = table_get(&f->depends, row);

		if (depend_open(f, depend))
			return JOB_BLOCKED;
		row = depend->next;
	}
	return job->evicted ? JOB_PREEMPTED : JOB_QUEUED;
}

uint8_t job_live_state(const struct attempt *attempt)
{
	if (attempt->unreachable)
		return JOB_UNREACHABLE;
	if (attempt->warned_ms)
		return JOB_CHECKPOINTING;
	if (attempt->started == attempt->tasks || attempt->generation)
		return JOB_RUNNING;
	return attempt->resume_number ? JOB_RESUMING : JOB_STARTING;
}

bool job_state_waits(uint8_t state)
{
	return state == JOB_QUEUED || state == JOB_HELD || state == JOB_BLOCKED ||
	       state == JOB_PREEMPTED;
}

void job_set_state(struct facts *f, struct job_id id, uint8_t state)
{
	const uint8_t before = job_get(f, id)->state;
	struct job *job;

	if (before == state)
		return;
	job = job_edit(f, id);
	job->state = state;
	job->state_ms = f->now_ms;
	if (job_state_waits(before) != job_state_waits(state))
		facts_count_waiting(f, job, job_state_waits(state) ? 1 : -1);
}

void job_wait_unseen(struct facts *f, struct job_id id)
{
	if (job_state_is_final(job_get(f, id)->state))
		return;
	job_end_unseen(f, id);
	if (!job_state_waits(job_get(f, id)->state))
		job_set_state(f, id, job_waiting_state(f, job_get(f, id)));
}

static void job_wait_again(struct facts *f, struct job_id id)
{
	const struct job *job = job_get(f, id);

	if (job_state_waits(job->state))
		job_set_state(f, id, job_waiting_state(f, job));
}

/* The job when the event may still change it, else 0. */
static struct job_id job_open(const struct facts *f, int64_t id)
{
	struct job_id job = { job_is_there(f, id) ? (uint32_t)id : 0 };

	return job.v && job_state_is_final(job_get(f, job)->state) ? (struct job_id){ 0 } : job;
}

void promise_drop(struct facts *f, struct job_id id)
{
	uint32_t first = job_get(f, id)->promise;

	if (!first)
		return;
	job_edit(f, id)->promise = 0;
	facts_give_promises(f, first);
}

/* --- submission -------------------------------------------------------------------------------------- */

static uint32_t body_add(struct facts *f, const struct event_job_submitted *e)
{
	uint32_t row = f->body_ids = table_add(&f->bodies);
	struct body *body = table_edit(&f->bodies, row);
	bool keyed;

	body->jobs = e->array_count > 1 ? (uint16_t)e->array_count : 1;
	body->job = (uint32_t)e->job;
	body->deadline_ms = clamp_positive(e->deadline_ms);
	body->efficiency = clamp_u8(e->efficiency, 100);
	body->array_limit = e->array_count > 1 ? clamp_u16(e->array_limit) : 0;
	body->capacity = clamp_u8(e->capacity, CAPACITY_ANY);
	body->bytes = e->body_bytes < 0            ? 0
		      : e->body_bytes > UINT32_MAX ? UINT32_MAX
						   : (uint32_t)e->body_bytes;
	body->program = clamp_positive(e->program);
	hex_parse(e->body, body->blob);
	hex_parse(e->body_mac, body->mac);
	keyed = hex_parse(e->client_key, body->client_key);
	body->keyed = keyed;
	if (keyed)
		facts_link_body(f, row);
	return row;
}

static bool array_is_first(const struct facts *f, uint32_t job)
{
	return job_get(f, (struct job_id){ job })->array_first == job;
}

static void depends_add(struct facts *f, struct job_id id, const struct event_job_submitted *e)
{
	for (uint32_t i = e->depends_count; i-- > 0;) {
		struct depend *depend;
		struct job *job;
		uint32_t row;

		if (!job_is_there(f, e->depends[i]))
			continue;
		row = facts_take_depend(f);
		depend = table_edit(&f->depends, row);
		job = job_edit(f, id);
		depend->job = (uint32_t)e->depends[i];
		depend->whole = i < e->depends_whole_count && e->depends_whole[i] &&
				array_is_first(f, depend->job);
		depend->owner = id.v;
		depend->next = job->depends;
		job->depends = row;
		facts_link_dependent(f, row);
	}
}

/* One job of a submission; `first` is like it but for its id and what it depends on. */
static void job_add(struct facts *f, struct job_id id, const struct job *first,
		    const struct event_job_submitted *e, const char *reason)
{
	if (id.v > f->jobs.count)
		f->job_ids = table_add(&f->jobs);
	memcpy(job_edit(f, id), first, sizeof(*first));
	depends_add(f, id, e);
	if (*reason)
		job_edit(f, id)->reason = facts_put_text(f, (struct text_id){ 0 }, reason);
	job_edit(f, id)->state = job_waiting_state(f, job_get(f, id));
	facts_count_waiting(f, job_get(f, id), 1);
}

/* Whether the numbers are the next ones, once those of lost records are passed over. */
static bool submission_is_next(struct facts *f, const struct event_job_submitted *e, int64_t jobs)
{
	if (jobs > ARRAY_MAX || e->job < 1 || e->job > UINT32_MAX - jobs - 1)
		return false;
	if (f->reviving)
		return !job_is_there(f, e->job) && e->job + jobs - 1 <= (int64_t)f->jobs.count;
	rows_reach(&f->jobs, e->job - 1, f->lost_jobs, ARRAY_MAX);
	f->job_ids = f->jobs.count;
	if (e->job != (int64_t)f->jobs.count + 1)
		return false;
	f->lost_jobs = 0;
	return true;
}

/* A queue whose record is lost is made anew, so that its jobs live: as queues are that nothing is said of. */
static struct queue_id submission_queue(struct facts *f, const char *name)
{
	const struct event_queue_set plain = { .name = name,
					       .parent = "",
					       .team = "",
					       .calendar = "",
					       .limit_models = "",
					       .guarantee_models = "",
					       .limit_share = -1,
					       .weight = 1 };

	if (f->lost && *name && !facts_queue_find(f, name).v)
		apply_queue_set(f, &plain);
	return facts_queue_find(f, name);
}

/* Sets the reason to hold the job when one that it depends on is lost: whether that succeeded is not known. */
static bool depends_fit(const struct facts *f, const struct event_job_submitted *e,
			const char **ret_reason)
{
	*ret_reason = "";
	if (e->depends_count > DEPENDS_MAX)
		return false;
	for (uint32_t i = 0; i < e->depends_count; i++) {
		if (job_is_there(f, e->depends[i]))
			continue;
		if (f->reviving)
			continue;
		if (!f->lost || !id_exists(&f->jobs, e->depends[i]))
			return false;
		*ret_reason = "a job that it depends on is lost; release to run it";
	}
	return true;
}

static void submission_add(struct facts *f, const struct event_job_submitted *e,
			   struct queue_id queue, const struct shape *shape, const char *reason)
{
	struct job job;

	memset(&job, 0, sizeof(job));
	submission_fill(e, &job);
	job.name = facts_intern(f, e->name);
	job.user = facts_intern(f, e->user);
	job.team = facts_intern(f, e->team);
	job.project = facts_intern(f, e->project);
	job.queue = queue;
	job.shape = facts_intern_shape(f, shape);
	job.submitted_ms = job.state_ms = f->now_ms;
	job.body = body_add(f, e);
	job.held |= *reason != '\0';
	if (e->array_count > 1) {
		job.array_first = (uint32_t)e->job;
		job.array_count = (uint32_t)e->array_count;
	}
	for (uint32_t id = (uint32_t)e->job, i = 0; i == 0 || i < job.array_count; id++, i++)
		if (!job_is_there(f, id))
			job_add(f, (struct job_id){ id }, &job, e, reason);
}

void apply_job_submitted(struct facts *f, const struct event_job_submitted *e)
{
	int64_t jobs = e->array_count > 1 ? e->array_count : 1;
	struct queue_id queue;
	struct shape shape;
	const char *reason;

	if (!submission_is_next(f, e, jobs))
		return;
	queue = submission_queue(f, e->queue);
	if (queue.v && depends_fit(f, e, &reason) && submission_shape(f, e, &shape)) {
		submission_add(f, e, queue, &shape, reason);
	} else if (f->lost && !f->reviving) { /* those behind it keep their numbers */
		while (jobs--)
			f->job_ids = table_add(&f->jobs);
	}
}

/* --- what people ask ----------------------------------------------------------------------------------- */

void apply_job_held(struct facts *f, const struct event_job_held *e)
{
	struct job_id id = job_open(f, e->job);
	struct text_id reason;
	struct job *job;

	if (!id.v)
		return;
	reason = facts_put_text(f, job_get(f, id)->reason, e->reason);
	job = job_edit(f, id);
	job->held = true;
	job->reason = reason;
	job_wait_again(f, id);
}

void apply_job_released(struct facts *f, const struct event_job_released *e)
{
	struct job_id id = job_open(f, e->job);
	struct attempt_id last;
	struct job *job;

	if (!id.v)
		return;
	last = job_get(f, id)->last_attempt;
	if (last.v && !job_get(f, id)->attempt.v && !attempt_get(f, last)->forgiven)
		attempt_edit(f, last)->forgiven = true;
	if (!job_get(f, id)->held)
		return;
	job = job_edit(f, id);
	job->held = false;
	job->reason = facts_put_text(f, job->reason, "");
	job_wait_again(f, id);
}

void apply_job_cancel_asked(struct facts *f, const struct event_job_cancel_asked *e)
{
	struct job_id id = job_open(f, e->job);
	struct text_id reason;
	struct job *job;

	if (!id.v)
		return;
	reason = facts_put_text(f, job_get(f, id)->reason, e->reason);
	job = job_edit(f, id);
	job->cancel_asked = true;
	job->reason = reason;
}

void apply_job_priority_set(struct facts *f, const struct event_job_priority_set *e)
{
	struct job_id id = job_open(f, e->job);

	if (id.v)
		job_edit(f, id)->priority = clamp_i32(e->priority);
}

/* --- between attempts, and the end ------------------------------------------------------------------------ */

void apply_job_requeued(struct facts *f, const struct event_job_requeued *e)
{
	struct job_id id = job_open(f, e->job);
	struct text_id reason;
	struct job *job;

	if (id.v && f->lost)
		job_end_unseen(f, id);
	if (!id.v || job_is_live(job_get(f, id)) || job_state_waits(job_get(f, id)->state))
		return;
	reason = facts_put_text(f, job_get(f, id)->reason, e->text);
	job = job_edit(f, id);
	job->evicted = e->why == REQUEUE_EVICTED || e->why == REQUEUE_MOVED;
	job->retries_left = clamp_u16(e->retries_left);
	job->reason = reason;
	job_set_state(f, id, job_waiting_state(f, job_get(f, id)));
}

static void dependents_wake(struct facts *f, struct job_id id)
{
	for (uint32_t row = job_get(f, id)->dependents; row;) {
		const struct depend *depend = table_get(&f->depends, row);
		struct job_id owner = { depend->owner };

		row = depend->next_dependent;
		job_wait_again(f, owner);
	}
}

static void run_learn(struct facts *f, const struct job *job, uint8_t state)
{
	struct like_wish wish = like_wish_of(f, job);

	if (run_says_something(f, job, state, job->run_ms))
		likes_learn(f, &wish, job->run_ms);
}

void apply_job_ended(struct facts *f, const struct event_job_ended *e)
{
	struct job_id id = job_open(f, e->job);
	struct text_id reason;
	struct body *body;
	struct job *job;

	if (!id.v || e->state < JOB_SUCCEEDED || e->state > JOB_TIMED_OUT)
		return;
	if (f->lost)
		job_end_unseen(f, id);
	if (job_is_live(job_get(f, id)))
		return;
	promise_drop(f, id);
	reservation_drop(f, id);
	run_learn(f, job_get(f, id), (uint8_t)e->state);
	reason = facts_put_text(f, job_get(f, id)->reason, e->text);
	job = job_edit(f, id);
	job->exit_code = clamp_i32(e->code);
	job->signal = clamp_u8(e->signal, UINT8_MAX);
	job->cause = clamp_u8(e->cause, UINT8_MAX);
	job->failed_rank = e->rank < 0 ? -1 : clamp_i32(e->rank);
	job->reason = reason;
	job_set_state(f, id, (uint8_t)e->state);
	body = table_edit(&f->bodies, job->body);
	if (e->state != JOB_SUCCEEDED) {
		body->failed++;
		return;
	}
	body->succeeded++;
	dependents_wake(f, id);
	if (job->array_first && body->succeeded == job->array_count)
		dependents_wake(f, (struct job_id){ job->array_first });
}

/* --- checkpoints --------------------------------------------------------------------------------------------- */

/* An attempt that is still being prepared goes on from the newest one that is left. */
static void resume_from_before(struct facts *f, struct job_id id, uint32_t number)
{
	const struct job *job = job_get(f, id);
	const struct checkpoint *left;
	struct attempt *attempt;

	if (!job_is_live(job) || attempt_get(f, job->attempt)->state != ATTEMPT_PREPARING ||
	    attempt_get(f, job->attempt)->resume_number != number)
		return;
	left = number > 1 ? job_checkpoint(f, job, number - 1) : NULL;
	attempt = attempt_edit(f, job->attempt);
	attempt->resume_number = left ? left->number : 0;
	job_set_state(f, id, job_live_state(attempt));
}

/* Work that was kept is lost after all. */
static void job_charge_lost(struct facts *f, struct job_id id, int64_t gpu_ms, int64_t ms)
{
	struct job *job = job_edit(f, id);

	job->lost_gpu_ms = add_saturating(job->lost_gpu_ms, clamp_positive(gpu_ms));
	job->run_ms = clamp_positive(add_saturating(job->run_ms, -clamp_positive(ms)));
}

static const struct checkpoint *checkpoint_in(const struct facts *f, uint32_t row)
{
	return table_get(&f->checkpoints, row);
}

void apply_checkpoint_void(struct facts *f, const struct event_checkpoint_void *e)
{
	struct job_id id = { (uint32_t)e->job };
	struct checkpoint *checkpoint;
	struct text_id why;
	uint32_t row;

	if (!job_is_there(f, e->job) || e->number < 1 || e->number > UINT32_MAX ||
	    !job_get(f, id)->checkpoint)
		return;
	row = job_get(f, id)->checkpoint + (uint32_t)(e->number - 1) % CHECKPOINTS_KEPT;
	if (checkpoint_in(f, row)->number != e->number || checkpoint_in(f, row)->is_void)
		return;
	why = facts_put_text(f, checkpoint_in(f, row)->why, e->reason);
	checkpoint = table_edit(&f->checkpoints, row);
	checkpoint->is_void = true;
	checkpoint->why = why;
	job_charge_lost(f, id, e->lost_gpu_ms, e->lost_ms);
	resume_from_before(f, id, (uint32_t)e->number);
}

/* --- promised places ------------------------------------------------------------------------------------------ */

uint32_t slice_given(const int64_t *slices, uint32_t count, uint32_t task)
{
	int64_t slice = task < count ? slices[task] : 0;

	return slice > 0 && slice < SLICE_KINDS << 4 ? (uint32_t)slice : 0;
}

bool parts_fit(const int64_t *parts, uint32_t count, const int64_t *mib, uint32_t mib_count,
	       uint32_t tasks)
{
	if (count != mib_count || (count && count != tasks))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (parts[i] < 1 || parts[i] > GPU_SHARE || mib[i] < 0 || mib[i] > UINT32_MAX)
			return false;
	return true;
}

static bool promise_fits(const struct facts *f, const struct event_promise_made *e)
{
	if (!e->nodes_count || e->nodes_count > TASKS_MAX || e->masks_count != e->nodes_count)
		return false;
	for (uint32_t i = 0; i < e->nodes_count; i++)
		if (!id_exists(&f->nodes, e->nodes[i]) || e->masks[i] < 0 ||
		    e->masks[i] > UINT32_MAX)
			return false;
	for (uint32_t i = 0; i < e->victims_count; i++)
		if (!attempt_is_there(f, e->victims[i]))
			return false;
	return parts_fit(e->parts, e->parts_count, e->parts_mib, e->parts_mib_count,
			 e->nodes_count);
}

/* Rows are linked from the last to the first, so that the list reads tasks by rank, then victims as given. */
void apply_promise_made(struct facts *f, const struct event_promise_made *e)
{
	struct job_id id = job_open(f, e->job);
	uint32_t first = 0, row;

	if (!id.v || !promise_fits(f, e))
		return;
	promise_drop(f, id);
	for (uint32_t i = e->victims_count; i-- > 0; first = row) {
		row = facts_take_promise(f);
		*(struct promise *)table_edit(&f->promises, row) =
			(struct promise){ .victim = (uint32_t)e->victims[i], .next = first };
	}
	for (uint32_t i = e->nodes_count; i-- > 0; first = row) {
		row = facts_take_promise(f);
		*(struct promise *)table_edit(&f->promises, row) =
			(struct promise){ .node = (uint32_t)e->nodes[i],
					  .gpu_mask = (uint32_t)e->masks[i],
					  .next = first,
					  .gpu_part = e->parts_count ? (uint32_t)e->parts[i] : 0,
					  .gpu_part_mib =
						  e->parts_count ? (uint32_t)e->parts_mib[i] : 0,
					  .slice = slice_given(e->slices, e->slices_count, i) };
	}
	job_edit(f, id)->promise = first;
}

void apply_promise_dropped(struct facts *f, const struct event_promise_dropped *e)
{
	struct job_id id = { (uint32_t)e->job };

	if (id_exists(&f->jobs, e->job))
		promise_drop(f, id);
}
