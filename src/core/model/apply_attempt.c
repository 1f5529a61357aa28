/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts and their tasks. Whatever is told about an attempt that is not its job's live one is refused: this
 * is the fencing number's work, and the one place where it is done.
 */
#include <string.h>

#include "base/check.h"
#include "core/model/apply.h"
#include "core/model/edit.h"

static bool attempts_reach(struct facts *f, int64_t rows)
{
	bool reached = rows_reach(&f->attempts, rows, f->lost_attempts, 1);

	f->attempt_ids = f->attempts.count;
	return reached;
}

/* The attempt when it is its job's live one, else 0. A number that only a lost record can have given is never given again. */
struct attempt_id attempt_live(struct facts *f, int64_t id)
{
	struct attempt_id attempt = { 0 };

	if (id > (int64_t)f->attempts.count)
		attempts_reach(f, id);
	if (attempt_is_there(f, id))
		attempt.v = (uint32_t)id;
	if (attempt.v && job_get(f, attempt_get(f, attempt)->job)->attempt.v != attempt.v)
		attempt.v = 0;
	return attempt;
}

static void job_follow(struct facts *f, struct attempt_id id)
{
	const struct attempt *attempt = attempt_get(f, id);

	job_set_state(f, attempt->job, job_live_state(attempt));
}

/* What the queue has in use for its past: best-effort work takes spare GPUs and counts in no share. */
void attempt_counts(struct facts *f, struct attempt_id id, int64_t share)
{
	const struct job *job = job_get(f, attempt_get(f, id)->job);

	if (job->tier == TIER_BEST_EFFORT || f->reviving)
		return;
	queue_past_change(f, job->queue, share);
	user_past_change(f, job->queue, job->user, share);
}

/* --- placing and stopping ------------------------------------------------------------------------------ */

/* Whether the number is the next one, once those of lost records are passed over. */
static bool placing_is_next(struct facts *f, const struct event_attempt_placed *e)
{
	if (f->reviving)
		return id_exists(&f->attempts, e->attempt) && !attempt_is_there(f, e->attempt);
	if (e->attempt > (int64_t)f->attempts.count + 1)
		attempts_reach(f, e->attempt - 1);
	if (e->attempt != (int64_t)f->attempts.count + 1 || e->attempt >= UINT32_MAX)
		return false;
	f->lost_attempts = 0;
	return true;
}

static bool placing_fits(struct facts *f, const struct event_attempt_placed *e)
{
	struct job_id id = { (uint32_t)e->job };

	if (!job_is_there(f, e->job) || e->nodes_count != e->masks_count)
		return false;
	if (!e->nodes_count || e->nodes_count > TASKS_MAX)
		return false;
	for (uint32_t i = 0; i < e->nodes_count; i++)
		if (!nodes_reach(f, e->nodes[i]) || e->masks[i] < 0 || e->masks[i] > UINT32_MAX)
			return false;
	if (!parts_fit(e->parts, e->parts_count, e->parts_mib, e->parts_mib_count, e->nodes_count))
		return false;
	if (f->lost)
		job_wait_unseen(f, id);
	return job_state_waits(job_get(f, id)->state);
}

/* The tasks of the attempt before are dropped: their story is in the journal. */
void tasks_drop(struct facts *f, struct attempt_id id)
{
	struct attempt *attempt;

	if (!id.v || !attempt_get(f, id)->first_task)
		return;
	attempt = attempt_edit(f, id);
	facts_give_tasks(f, attempt->first_task, attempt->tasks);
	attempt->first_task = 0;
}

void apply_attempt_placed(struct facts *f, const struct event_attempt_placed *e)
{
	struct job_id job_id = { (uint32_t)e->job };
	struct attempt_id id;
	struct attempt *attempt;
	struct job *job;
	uint32_t first;

	if (!placing_is_next(f, e))
		return;
	if (!placing_fits(f, e)) {
		if (f->lost && !f->reviving) /* those behind it keep their numbers */
			f->attempt_ids = table_add(&f->attempts);
		return;
	}
	tasks_drop(f, job_get(f, job_id)->last_attempt);
	first = facts_take_tasks(f, e->nodes_count);
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		struct task *task = table_edit(&f->tasks, first + i);

		task->node.v = (uint32_t)e->nodes[i];
		task->gpu_mask = (uint32_t)e->masks[i];
		task->gpu_part = e->parts_count ? (uint32_t)e->parts[i] : 0;
		task->gpu_part_mib = e->parts_count ? (uint32_t)e->parts_mib[i] : 0;
		task->slice = slice_given(e->slices, e->slices_count, i);
		task->step = -1;
		task->from_ms = f->now_ms;
	}
	id.v = (uint32_t)e->attempt;
	if (id.v > f->attempts.count)
		f->attempt_ids = table_add(&f->attempts);
	attempt = attempt_edit(f, id);
	attempt->job = job_id;
	attempt->previous = job_get(f, job_id)->last_attempt.v;
	attempt->tasks = e->nodes_count;
	attempt->first_task = first;
	attempt->resume_number = clamp_u32(e->resume_number);
	attempt->placed_ms = f->now_ms;
	attempt->first_failed_rank = -1;
	attempt->state = ATTEMPT_PREPARING;
	attempt->likely_ms = clamp_positive(e->likely_ms);
	attempt->safe_ms = clamp_positive(e->safe_ms);
	attempt->near_data = clamp_u32(e->near_data);
	attempt->near_home = clamp_u32(e->near_home);
	attempt->bandwidth_mbps = clamp_u32(e->bandwidth_mbps);
	attempt->slowdown_permille = clamp_u32(e->slowdown_permille);
	attempt->transfer_ms = e->transfer_ms < 0 ? -1 : e->transfer_ms;
	attempt->transfer_micro = clamp_positive(e->transfer_micro);
	for (uint32_t i = 0; i < e->parts_count; i++)
		attempt->parts_share += e->parts[i];
	job = job_edit(f, job_id);
	job->attempt = job->last_attempt = id;
	job->attempts++;
	job->evicted = false;
	if (attempt->safe_ms && !job->limit_ms && !job->estimate_ms)
		job->likely_s = clamp_u32(
			add_saturating(add_saturating(job->run_ms, attempt->safe_ms), 999) / 1000);
	first = job->promise;
	job->promise = 0;
	facts_give_promises(f, first);
	reservation_drop(f, job_id);
	attempt_counts(f, id, attempt_share(f, attempt));
	job_follow(f, id);
}

void apply_attempt_released(struct facts *f, const struct event_attempt_released *e)
{
	struct attempt_id id = attempt_live(f, e->attempt);
	struct attempt *attempt;

	if (!id.v || attempt_get(f, id)->state != ATTEMPT_PREPARING)
		return;
	attempt = attempt_edit(f, id);
	attempt->state = ATTEMPT_ACTIVE;
	attempt->released_ms = f->now_ms;
}

/* A second warning changes for whom and until when, not since when. */
void apply_attempt_warned(struct facts *f, const struct event_attempt_warned *e)
{
	struct attempt_id id = attempt_live(f, e->attempt);
	struct attempt *attempt;

	if (!id.v || attempt_get(f, id)->state == ATTEMPT_STOPPING)
		return;
	attempt = attempt_edit(f, id);
	attempt->for_job = job_is_there(f, e->for_job) ? (uint32_t)e->for_job : 0;
	attempt->deadline_ms = clamp_positive(e->deadline_ms);
	if (!attempt->warned_ms)
		attempt->warned_ms = f->now_ms > 0 ? f->now_ms : 1;
	job_follow(f, id);
}

void apply_attempt_spared(struct facts *f, const struct event_attempt_spared *e)
{
	struct attempt_id id = attempt_live(f, e->attempt);
	struct attempt *attempt;

	if (!id.v || attempt_get(f, id)->state == ATTEMPT_STOPPING ||
	    !attempt_get(f, id)->warned_ms)
		return;
	attempt = attempt_edit(f, id);
	attempt->for_job = 0;
	attempt->deadline_ms = 0;
	attempt->warned_ms = 0;
	job_follow(f, id);
}

/* The first reason stays; told again, it may only have to be quicker. */
void apply_attempt_stopped(struct facts *f, const struct event_attempt_stopped *e)
{
	struct attempt_id id = attempt_live(f, e->attempt);
	int64_t deadline_ms = add_saturating(f->now_ms, clamp_positive(e->grace_ms));
	struct attempt *attempt;

	if (!id.v)
		return;
	attempt = attempt_edit(f, id);
	if (attempt->state == ATTEMPT_STOPPING) {
		if (deadline_ms < attempt->deadline_ms)
			attempt->deadline_ms = deadline_ms;
		return;
	}
	attempt->state = ATTEMPT_STOPPING;
	attempt->why = clamp_u8(e->why, STOP_MOVED);
	attempt->stopped_ms = f->now_ms;
	attempt->deadline_ms = deadline_ms;
}

/* --- the end, and who is to blame ------------------------------------------------------------------------- */

/* Newest first, each job once. */
static void failure_note(uint32_t jobs[FAILED_JOBS_KEPT], int64_t times[FAILED_JOBS_KEPT],
			 uint32_t job, int64_t now_ms)
{
	uint32_t at = 0;

	while (at < FAILED_JOBS_KEPT - 1 && jobs[at] != job)
		at++;
	memmove(&jobs[1], &jobs[0], at * sizeof(jobs[0]));
	memmove(&times[1], &times[0], at * sizeof(times[0]));
	jobs[0] = job;
	times[0] = now_ms;
}

static void blame(struct facts *f, int64_t node_number, int64_t mask, uint32_t job)
{
	struct node_id id = { (uint32_t)node_number };
	struct node *node;

	if (!id_exists(&f->nodes, node_number))
		return;
	node = node_edit(f, id);
	failure_note(node->failed_job, node->failed_ms, job, f->now_ms);
	for (uint32_t i = 0; i < NODE_GPUS_MAX; i++) {
		struct gpu_record *gpu;

		if (!(mask >> i & 1))
			continue;
		gpu = table_edit(&f->gpus, (id.v - 1) * NODE_GPUS_MAX + i + 1);
		failure_note(gpu->failed_job, gpu->failed_ms, job, f->now_ms);
	}
}

static void job_charge(struct facts *f, struct job_id id, const struct event_attempt_ended *e)
{
	int64_t used = clamp_positive(e->used_gpu_ms),
		kept = add_saturating(clamp_positive(e->run_ms), -clamp_positive(e->lost_ms));
	struct job *job = job_edit(f, id);
	struct queue *queue = queue_edit(f, job->queue);

	job->attempt.v = 0;
	job->used_gpu_ms = add_saturating(job->used_gpu_ms, used);
	job->lost_gpu_ms = add_saturating(job->lost_gpu_ms, clamp_positive(e->lost_gpu_ms));
	job->run_ms = add_saturating(job->run_ms, clamp_positive(kept));
	queue->used_gpu_ms = add_saturating(queue->used_gpu_ms, used);
	queues_charge(f, e->charged, e->charged_count, e->charged_micro, e->charged_micro_count);
}

void job_end_unseen(struct facts *f, struct job_id id)
{
	struct attempt_id live = job_get(f, id)->attempt;
	struct attempt *attempt;

	if (!live.v)
		return;
	attempt_counts(f, live, -attempt_share(f, attempt_get(f, live)));
	attempt = attempt_edit(f, live);
	attempt->state = ATTEMPT_OVER;
	attempt->ended_ms = f->now_ms;
	attempt->unreachable = 0;
	job_edit(f, id)->attempt.v = 0;
}

/* Of a forecast: what lies above it counts per_cent of 100, what lies below the rest. */
static int64_t pinball_ms(int64_t said_ms, int64_t was_ms, int64_t per_cent)
{
	int64_t off_ms = was_ms > said_ms ? was_ms - said_ms : said_ms - was_ms;

	return off_ms / 100 * (was_ms > said_ms ? per_cent : 100 - per_cent);
}

/* Judged is what ended by itself: who stopped another says nothing of how long it would have run. */
static void forecast_judge(struct facts *f, const struct attempt *attempt,
			   const struct event_attempt_ended *e)
{
	int64_t ran_ms = clamp_positive(e->run_ms);
	struct forecast *forecast = &f->forecast;

	if (!attempt->safe_ms || !ran_ms ||
	    (e->why != STOP_NONE && e->why != STOP_FAILED && e->why != STOP_LIMIT &&
	     e->why != STOP_DONE))
		return;
	forecast->count++;
	forecast->under_likely += ran_ms <= attempt->likely_ms;
	forecast->under_safe += ran_ms <= attempt->safe_ms;
	forecast->likely_loss_ms = add_saturating(forecast->likely_loss_ms,
						  pinball_ms(attempt->likely_ms, ran_ms, 50));
	forecast->safe_loss_ms =
		add_saturating(forecast->safe_loss_ms, pinball_ms(attempt->safe_ms, ran_ms, 90));
}

/* The job keeps the state it had until the decision that follows: requeued or ended. */
void apply_attempt_ended(struct facts *f, const struct event_attempt_ended *e)
{
	struct attempt_id id = attempt_live(f, e->attempt);
	struct attempt *attempt;
	struct job_id job;

	if (!id.v)
		return;
	attempt_counts(f, id, -attempt_share(f, attempt_get(f, id)));
	attempt = attempt_edit(f, id);
	job = attempt->job;
	attempt->state = ATTEMPT_OVER;
	attempt->why = clamp_u8(e->why, STOP_MOVED);
	attempt->ended_ms = f->now_ms;
	attempt->unreachable = 0;
	attempt->shielded = false;
	attempt->least = 0;
	forecast_judge(f, attempt, e);
	job_charge(f, job, e);
	for (uint32_t i = 0; i < e->blamed_nodes_count; i++)
		blame(f, e->blamed_nodes[i], i < e->blamed_masks_count ? e->blamed_masks[i] : 0,
		      job.v);
}

void apply_attempt_unreachable(struct facts *f, const struct event_attempt_unreachable *e)
{
	struct attempt_id id = attempt_live(f, e->attempt);
	struct text_id reason;
	struct job_id job;

	if (!id.v)
		return;
	job = attempt_get(f, id)->job;
	reason = facts_put_text(f, job_get(f, job)->reason, e->text);
	attempt_edit(f, id)->unreachable = e->unreachable != 0;
	job_edit(f, job)->reason = reason;
	job_follow(f, id);
}

void apply_attempt_shielded(struct facts *f, const struct event_attempt_shielded *e)
{
	struct attempt_id id = attempt_live(f, e->attempt);

	if (!id.v)
		return;
	attempt_edit(f, id)->shielded = e->shielded != 0;
	attempt_edit(f, id)->least = e->least > 0 && e->least <= TASKS_MAX ? (uint32_t)e->least : 0;
}

void apply_attempt_deaf(struct facts *f, const struct event_attempt_deaf *e)
{
	struct attempt_id id = attempt_live(f, e->attempt);

	if (id.v)
		attempt_edit(f, id)->deaf = true;
}

/* --- tasks --------------------------------------------------------------------------------------------------- */

static const struct task *task_row(const struct facts *f, uint32_t row)
{
	return table_get(&f->tasks, row);
}

/* Row of a rank of a live attempt, else 0: also for a word of an earlier start of the rank, and of one that left. */
static uint32_t task_live(struct facts *f, int64_t attempt_number, int64_t rank, int64_t launch)
{
	struct attempt_id id = attempt_live(f, attempt_number);
	const struct attempt *attempt;
	const struct task *task;
	uint32_t row;

	if (!id.v)
		return 0;
	attempt = attempt_get(f, id);
	if (rank < 0 || rank >= (int64_t)attempt->tasks)
		return 0;
	row = attempt->first_task + (uint32_t)rank;
	task = task_row(f, row);
	return task->launch == launch && task->state != TASK_LEFT ? row : 0;
}

/* Counts the steps up to `state` that this task has not taken yet: what is later implies what is earlier. */
static void task_advance(struct facts *f, struct attempt *attempt, uint32_t row, uint8_t state)
{
	struct task *task = table_edit(&f->tasks, row);

	attempt->ready += !task->was_ready;
	task->was_ready = true;
	attempt->started += state >= TASK_RUNNING && !task->was_started;
	task->was_started = task->was_started || state >= TASK_RUNNING;
	task->state = state;
}

void apply_task_ready(struct facts *f, const struct event_task_ready *e)
{
	uint32_t row = task_live(f, e->attempt, e->rank, e->launch);

	if (row && task_row(f, row)->state == TASK_PREPARING)
		task_advance(f, attempt_edit(f, attempt_live(f, e->attempt)), row, TASK_READY);
}

/* Before the release no command runs: such a word does not fit. */
void apply_task_started(struct facts *f, const struct event_task_started *e)
{
	uint32_t row = task_live(f, e->attempt, e->rank, e->launch);
	struct attempt_id id = attempt_live(f, e->attempt);

	if (!row || task_row(f, row)->state >= TASK_RUNNING || !attempt_get(f, id)->released_ms)
		return;
	task_advance(f, attempt_edit(f, id), row, TASK_RUNNING);
	((struct task *)table_edit(&f->tasks, row))->gpu_limited = e->gpu_limited != 0;
	job_follow(f, id);
}

static bool exit_is_failure(const struct event_task_exited *e)
{
	return e->cause == CAUSE_EXIT ? e->code != 0 : e->cause != CAUSE_STOPPED;
}

void apply_task_exited(struct facts *f, const struct event_task_exited *e)
{
	uint32_t row = task_live(f, e->attempt, e->rank, e->launch);
	struct attempt_id id = attempt_live(f, e->attempt);
	struct attempt *attempt;
	struct task *task;

	if (!row || task_row(f, row)->state == TASK_EXITED)
		return;
	attempt = attempt_edit(f, id);
	if (attempt->released_ms && !e->never_ran)
		task_advance(f, attempt, row, TASK_RUNNING);
	task = table_edit(&f->tasks, row);
	task->state = TASK_EXITED;
	task->code = clamp_i32(e->code);
	task->signal = clamp_u8(e->signal, UINT8_MAX);
	task->cause = clamp_u8(e->cause, UINT8_MAX);
	task->never_ran = e->never_ran != 0;
	task->memory_enforced = e->memory_enforced != 0;
	task->peak_memory_mib = clamp_u32(e->peak_memory_mib);
	attempt->exited++;
	if (attempt->first_failed_rank < 0 && attempt->state != ATTEMPT_STOPPING &&
	    !task->leaving && exit_is_failure(e)) {
		attempt->first_failed_rank = (int32_t)e->rank;
		attempt->reason = facts_put_text(f, attempt->reason, e->text);
	}
	job_follow(f, id);
}

void apply_progress(struct facts *f, const struct event_progress *e)
{
	uint32_t row = task_live(f, e->attempt, e->rank, e->launch);
	struct task *task;

	if (!row || e->number <= task_row(f, row)->reports || e->number > UINT32_MAX)
		return;
	task = table_edit(&f->tasks, row);
	task->reports = (uint32_t)e->number;
	if (e->step >= 0)
		task->step = e->step;
}

/* --- checkpoints ------------------------------------------------------------------------------------------------ */

static bool checkpoint_fits(const struct facts *f, const struct event_checkpoint_saved *e,
			    uint32_t row)
{
	int64_t lost = f->lost < UINT32_MAX ? (int64_t)f->lost : UINT32_MAX;
	const struct job *job;

	if (!row || !job_is_there(f, e->job))
		return false;
	job = job_get(f, (struct job_id){ (uint32_t)e->job });
	if (job->attempt.v != (uint64_t)e->attempt || e->number <= (int64_t)job->checkpoints_made ||
	    e->number - job->checkpoints_made - 1 > lost)
		return false;
	/* Report 0: made without a report, as a simulated engine does. */
	if (e->report && (e->report <= task_row(f, row)->reports || e->report > UINT32_MAX))
		return false;
	return strlen(e->path) <= PATH_MAX_BYTES && e->number < UINT32_MAX;
}

/* Row of checkpoint `number` of a job, whose run of rows is made with its first one. */
static uint32_t checkpoint_row(struct facts *f, struct job_id id, uint32_t number)
{
	struct job *job = job_edit(f, id);

	if (!job->checkpoint)
		job->checkpoint = facts_take_checkpoints(f);
	return job->checkpoint + (number - 1) % CHECKPOINTS_KEPT;
}

void apply_checkpoint_saved(struct facts *f, const struct event_checkpoint_saved *e)
{
	uint32_t row = task_live(f, e->attempt, e->rank, e->launch), number = (uint32_t)e->number;
	struct job_id id = { (uint32_t)e->job };
	int64_t at_ms = e->at_ms > 0 && e->at_ms < f->now_ms ? e->at_ms : f->now_ms;
	struct checkpoint *checkpoint;
	struct task *task;

	if (!checkpoint_fits(f, e, row))
		return;
	task = table_edit(&f->tasks, row);
	if (e->report)
		task->reports = (uint32_t)e->report;
	if (e->step >= 0)
		task->step = e->step;
	row = checkpoint_row(f, id, number);
	facts_put_text(f, ((const struct checkpoint *)table_get(&f->checkpoints, row))->why, "");
	checkpoint = table_edit(&f->checkpoints, row);
	memset(checkpoint, 0, sizeof(*checkpoint));
	checkpoint->number = number;
	checkpoint->attempt = (uint32_t)e->attempt;
	checkpoint->step = e->step;
	checkpoint->at_ms = at_ms;
	checkpoint->bytes = e->bytes;
	memcpy(checkpoint->path, e->path, strlen(e->path));
	job_edit(f, id)->checkpoints_made = number;
	attempt_edit(f, (struct attempt_id){ (uint32_t)e->attempt })->checkpoint_ms = at_ms;
}
