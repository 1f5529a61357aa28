/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "core/model/job_change.h"
#include "core/model/obvious_model.h"

struct model model;

static bool is_final(int state)
{
	return state == JOB_SUCCEEDED || state == JOB_FAILED || state == JOB_CANCELLED ||
	       state == JOB_TIMED_OUT || state == JOB_NONE;
}

static bool waits(int state)
{
	return state == JOB_QUEUED || state == JOB_HELD || state == JOB_BLOCKED ||
	       state == JOB_PREEMPTED;
}

static struct model_job *open_job(int64_t id)
{
	if (id < 1 || id > model.jobs || is_final(model.job[id].state))
		return NULL;
	return &model.job[id];
}

static struct model_attempt *live(int64_t id)
{
	if (id < 1 || id > model.attempts || model.attempt[id].over)
		return NULL;
	return &model.attempt[id];
}

static void move(struct model_job *job, int state)
{
	if (job->state != state)
		job->since = model.now;
	job->state = state;
}

/* The jobs that its dependency number i is about. */
static uint32_t meant_end(const struct model_job *job, uint32_t i)
{
	return job->depends[i] + (job->whole[i] ? model.job[job->depends[i]].array_count : 1);
}

static void wait_again(struct model_job *job)
{
	bool blocked = false;

	for (uint32_t i = 0; i < job->depend_count; i++)
		for (uint32_t id = job->depends[i]; id < meant_end(job, i); id++)
			blocked |= model.job[id].state != JOB_SUCCEEDED;
	move(job, job->held      ? JOB_HELD
		  : blocked      ? JOB_BLOCKED
		  : job->evicted ? JOB_PREEMPTED
				 : JOB_QUEUED);
}

static bool all_started(const struct model_attempt *attempt)
{
	for (uint32_t i = 0; i < attempt->ranks; i++)
		if (!attempt->was_started[i])
			return false;
	return true;
}

static void follow(const struct model_attempt *attempt)
{
	struct model_job *job = &model.job[attempt->job];

	if (attempt->unreachable)
		move(job, JOB_UNREACHABLE);
	else if (attempt->warned)
		move(job, JOB_CHECKPOINTING);
	else if (all_started(attempt) || attempt->changes)
		move(job, JOB_RUNNING);
	else
		move(job, attempt->resume ? JOB_RESUMING : JOB_STARTING);
}

/* Whether the facts took the submission is read from them: what a submission must be has its own tests. */
/* Of "u3": 3. */
static uint32_t user_number(const char *name)
{
	const uint32_t number = (uint32_t)(name[1] - '0');

	assert_true(name[0] == 'u' && number < USERS && !name[2]);
	return number;
}

static void model_user_set(const struct event_user_set *e)
{
	struct model_user *user = &model.user[user_number(e->name)];

	if (user->removed && e->user)
		user->first_job = model.jobs + 1;
	user->there = true;
	user->removed = false;
}

static void model_user_removed(const struct event_user_removed *e)
{
	struct model_user *user = &model.user[user_number(e->name)];

	if (!user->there || user->removed)
		return;
	user->removed = true;
	for (uint32_t id = 1; e->user && id <= model.jobs; id++)
		if (model.job[id].user == user_number(e->name) && id >= user->first_job &&
		    waits(model.job[id].state))
			model.job[id].cancel = true;
}

static void model_submitted(const struct event_job_submitted *e, const struct facts *f)
{
	uint32_t first = model.jobs + 1;

	while (model.jobs < f->jobs.count) {
		struct model_job *job = &model.job[++model.jobs];

		job->array_first = e->array_count > 1 ? first : 0;
		job->array_count = e->array_count > 1 ? (uint32_t)e->array_count : 0;
		job->held = e->held != 0;
		job->user = user_number(e->user);
		job->submitted = job->since = model.now;
		job->priority = e->priority > INT32_MAX   ? INT32_MAX
				: e->priority < INT32_MIN ? INT32_MIN
							  : e->priority;
		job->retries = e->retries < 0            ? 0
			       : e->retries > UINT16_MAX ? UINT16_MAX
							 : e->retries;
		job->depend_count = e->depends_count;
		for (uint32_t i = 0; i < e->depends_count; i++)
			job->depends[i] = (uint32_t)e->depends[i];
		for (uint32_t i = 0; i < e->depends_count && i < e->depends_whole_count; i++)
			job->whole[i] = e->depends_whole[i] &&
					model.job[job->depends[i]].array_first == job->depends[i];
		job->state = JOB_QUEUED;
		wait_again(job);
	}
}

static bool places_exist(const int64_t *nodes, uint32_t count, const int64_t *masks,
			 uint32_t mask_count, uint32_t node_count)
{
	if (count != mask_count || !count)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (nodes[i] < 1 || nodes[i] > node_count || masks[i] < 0 || masks[i] > UINT32_MAX)
			return false;
	return true;
}

static bool parts_exist(const int64_t *parts, uint32_t count, const int64_t *mib,
			uint32_t mib_count, uint32_t tasks)
{
	for (uint32_t i = 0; i < count && i < mib_count; i++)
		if (parts[i] < 1 || parts[i] > 63000 || mib[i] < 0 || mib[i] > UINT32_MAX)
			return false;
	return count == mib_count && (count == 0 || count == tasks);
}

static void model_placed(const struct event_attempt_placed *e, const struct facts *f)
{
	struct model_job *job = open_job(e->job);
	struct model_attempt *attempt;

	if (!job || !waits(job->state) || e->attempt != model.attempts + 1 ||
	    !places_exist(e->nodes, e->nodes_count, e->masks, e->masks_count, f->nodes.count) ||
	    !parts_exist(e->parts, e->parts_count, e->parts_mib, e->parts_mib_count,
			 e->nodes_count))
		return;
	attempt = &model.attempt[++model.attempts];
	attempt->job = (uint32_t)e->job;
	attempt->ranks = e->nodes_count;
	attempt->parts = e->parts_count > 0;
	attempt->resume = e->resume_number < 0            ? 0
			  : e->resume_number > UINT32_MAX ? UINT32_MAX
							  : e->resume_number;
	attempt->first_failed = -1;
	for (uint32_t i = 0; i < e->nodes_count; i++)
		attempt->task[i] =
			(struct model_task){ .node = e->nodes[i], .mask = e->masks[i], .step = -1 };
	job->attempt = job->last = model.attempts;
	job->attempts++;
	job->evicted = false;
	job->promised = job->victims = job->reserved = 0;
	follow(attempt);
}

static void model_stopped(const struct event_attempt_stopped *e)
{
	struct model_attempt *attempt = live(e->attempt);
	int64_t grace = e->grace_ms < 0 ? 0 : e->grace_ms;
	int64_t deadline = grace > INT64_MAX - model.now ? INT64_MAX : model.now + grace;

	if (!attempt)
		return;
	if (attempt->stopping && deadline >= attempt->deadline)
		return;
	attempt->deadline = deadline;
	if (!attempt->stopping)
		attempt->why = e->why < 0 ? 0 : e->why > STOP_MOVED ? STOP_MOVED : (int)e->why;
	attempt->stopping = true;
}

static int64_t at_least_0(int64_t value)
{
	return value < 0 ? 0 : value;
}

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static void model_ended(const struct event_attempt_ended *e)
{
	struct model_attempt *attempt = live(e->attempt);
	struct model_job *job;
	int64_t run = at_least_0(e->run_ms), lost = at_least_0(e->lost_ms);

	if (!attempt)
		return;
	job = &model.job[attempt->job];
	attempt->over = true;
	attempt->unreachable = attempt->shielded = false;
	attempt->least = 0;
	attempt->why = e->why < 0 ? 0 : e->why > STOP_MOVED ? STOP_MOVED : (int)e->why;
	job->attempt = 0;
	job->used = plus(job->used, at_least_0(e->used_gpu_ms));
	job->lost = plus(job->lost, at_least_0(e->lost_gpu_ms));
	job->run = plus(job->run, run > lost ? run - lost : 0);
}

/* Refused: a word of a rank that left, or of an earlier start. */
static bool is_stale(const struct model_attempt *attempt, int64_t rank, int64_t launch)
{
	return attempt->task[rank].state == TASK_LEFT || attempt->task[rank].launch != launch;
}

static void model_exited(const struct event_task_exited *e)
{
	struct model_attempt *attempt = live(e->attempt);
	struct model_task *task;
	bool bad = e->cause == CAUSE_EXIT ? e->code != 0 : e->cause != CAUSE_STOPPED;

	if (!attempt || e->rank < 0 || e->rank >= attempt->ranks ||
	    attempt->task[e->rank].state == TASK_EXITED || is_stale(attempt, e->rank, e->launch))
		return;
	task = &attempt->task[e->rank];
	if (attempt->released && !e->never_ran)
		attempt->was_ready[e->rank] = attempt->was_started[e->rank] = true;
	task->state = TASK_EXITED;
	task->code = e->code > INT32_MAX   ? INT32_MAX
		     : e->code < INT32_MIN ? INT32_MIN
					   : (int)e->code;
	task->bad = e->cause <= CAUSE_EXIT ? task->code != 0 : e->cause != CAUSE_STOPPED;
	if (bad && !attempt->stopping && !task->leaving && attempt->first_failed < 0)
		attempt->first_failed = (int)e->rank;
	follow(attempt);
}

static void model_task(int64_t id, int64_t rank, int64_t launch, int state)
{
	struct model_attempt *attempt = live(id);

	if (!attempt || rank < 0 || rank >= attempt->ranks || attempt->task[rank].state >= state ||
	    is_stale(attempt, rank, launch))
		return;
	if (state == TASK_RUNNING && !attempt->released)
		return;
	attempt->task[rank].state = state;
	attempt->was_ready[rank] = true;
	attempt->was_started[rank] = state == TASK_RUNNING;
	follow(attempt);
}

static void model_report(struct model_attempt *attempt, int64_t rank, int64_t number, int64_t step)
{
	if (number)
		attempt->task[rank].reports = number;
	if (step >= 0)
		attempt->task[rank].step = step;
}

static void model_progress(const struct event_progress *e)
{
	struct model_attempt *attempt = live(e->attempt);

	if (attempt && e->rank >= 0 && e->rank < attempt->ranks && e->number <= UINT32_MAX &&
	    e->number > attempt->task[e->rank].reports && !is_stale(attempt, e->rank, e->launch))
		model_report(attempt, e->rank, e->number, e->step);
}

static void model_saved(const struct event_checkpoint_saved *e)
{
	struct model_attempt *attempt = live(e->attempt);
	struct model_job *job = open_job(e->job);

	if (!attempt || !job || job->attempt != e->attempt || e->rank < 0 ||
	    e->rank >= attempt->ranks || is_stale(attempt, e->rank, e->launch) ||
	    e->number != job->made + 1)
		return;
	if (e->report && (e->report <= attempt->task[e->rank].reports || e->report > UINT32_MAX))
		return;
	model_report(attempt, e->rank, e->report, e->step);
	assert_true(++job->made < KEPT_MAX);
	job->checkpoint[job->made] = (struct model_checkpoint){ .step = e->step };
	attempt->checkpoint_ms = e->at_ms > 0 && e->at_ms < model.now ? e->at_ms : model.now;
}

static void model_void(const struct event_checkpoint_void *e)
{
	struct model_attempt *attempt;
	int64_t left = e->number - 1;
	struct model_job *job;

	if (e->job < 1 || e->job > model.jobs || e->number < 1 ||
	    e->number > model.job[e->job].made)
		return;
	job = &model.job[e->job];
	if (e->number + CHECKPOINTS_KEPT <= job->made || job->checkpoint[e->number].is_void)
		return;
	job->checkpoint[e->number].is_void = true;
	job->checkpoint[e->number].why = e->reason;
	job->lost = plus(job->lost, at_least_0(e->lost_gpu_ms));
	job->run = job->run > at_least_0(e->lost_ms) ? job->run - at_least_0(e->lost_ms) : 0;
	attempt = live(job->attempt);
	if (!attempt || attempt->released || attempt->stopping || attempt->resume != e->number)
		return;
	while (left && left + CHECKPOINTS_KEPT > e->number - 1 && job->checkpoint[left].is_void)
		left--;
	attempt->resume = left + CHECKPOINTS_KEPT > job->made ? left : 0;
	follow(attempt);
}

static bool waits_for(const struct model_job *job, uint32_t id)
{
	for (uint32_t i = 0; i < job->depend_count; i++)
		if (job->depends[i] == id && !job->whole[i])
			return true;
	return false;
}

static bool waits_for_all(const struct model_job *job, uint32_t id)
{
	for (uint32_t i = 0; i < job->depend_count; i++)
		if (job->whole[i] && id >= job->depends[i] && id < meant_end(job, i))
			return true;
	return false;
}

static bool can_go(uint32_t id)
{
	if (!model.job[id].state || !is_final(model.job[id].state) || model.job[id].attempt)
		return false;
	for (uint32_t other = 1; other <= model.jobs; other++)
		if (!is_final(model.job[other].state) &&
		    (waits_for_all(&model.job[other], id) ||
		     (model.job[id].state != JOB_SUCCEEDED && waits_for(&model.job[other], id))))
			return false;
	return true;
}

static void model_forgotten(const struct event_jobs_forgotten *e)
{
	for (uint32_t i = 0; i < e->jobs_count; i++) {
		if (e->jobs[i] < 1 || e->jobs[i] > model.jobs || !can_go((uint32_t)e->jobs[i]))
			continue;
		memset(&model.job[e->jobs[i]], 0, sizeof(model.job[0]));
		for (uint32_t id = 1; id <= model.attempts; id++)
			if (model.attempt[id].job == e->jobs[i])
				model.attempt[id] =
					(struct model_attempt){ .gone = true, .over = true };
		for (uint32_t id = 1; id <= model.jobs; id++) {
			struct model_job *job = &model.job[id];

			for (uint32_t k = 0; k < job->depend_count; k++)
				if (job->depends[k] == e->jobs[i]) {
					job->depends[k] = job->depends[--job->depend_count];
					job->whole[k--] = job->whole[job->depend_count];
				}
		}
	}
}

static void model_promise(const struct event_promise_made *e, const struct facts *f)
{
	struct model_job *job = open_job(e->job);

	if (!job ||
	    !places_exist(e->nodes, e->nodes_count, e->masks, e->masks_count, f->nodes.count) ||
	    !parts_exist(e->parts, e->parts_count, e->parts_mib, e->parts_mib_count,
			 e->nodes_count))
		return;
	for (uint32_t i = 0; i < e->victims_count; i++)
		if (e->victims[i] < 1 || e->victims[i] > model.attempts ||
		    model.attempt[e->victims[i]].gone)
			return;
	job->promised = e->nodes_count;
	job->victims = e->victims_count;
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		job->promise_node[i] = e->nodes[i];
		job->promise_mask[i] = e->masks[i];
	}
	for (uint32_t i = 0; i < e->victims_count; i++)
		job->victim[i] = e->victims[i];
}

static void model_reservation(const struct event_reservation_set *e, const struct facts *f)
{
	struct model_job *job = open_job(e->job);

	if (!job || !waits(job->state) ||
	    !places_exist(e->nodes, e->nodes_count, e->masks, e->masks_count, f->nodes.count))
		return;
	job->reserved = e->nodes_count;
	job->reserved_ms = e->start_ms < 0 ? 0 : e->start_ms;
	job->waits_for = job_is_there(f, e->waits_for) ? e->waits_for : 0;
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		job->reserved_node[i] = e->nodes[i];
		job->reserved_mask[i] = e->masks[i];
	}
}

static void model_job_ended(const struct event_job_ended *e)
{
	struct model_job *job = open_job(e->job);

	if (!job || job->attempt || e->state < JOB_SUCCEEDED || e->state > JOB_TIMED_OUT)
		return;
	move(job, (int)e->state);
	job->promised = job->victims = job->reserved = 0;
	for (uint32_t id = 1; id <= model.jobs; id++)
		if (waits(model.job[id].state))
			wait_again(&model.job[id]);
}

static void model_requeued(const struct event_job_requeued *e)
{
	struct model_job *job = open_job(e->job);

	if (!job || job->attempt || waits(job->state))
		return;
	job->evicted = e->why == REQUEUE_EVICTED || e->why == REQUEUE_MOVED;
	job->retries = e->retries_left < 0            ? 0
		       : e->retries_left > UINT16_MAX ? UINT16_MAX
						      : e->retries_left;
	wait_again(job);
}

static void model_held(int64_t id, bool held)
{
	struct model_job *job = open_job(id);

	if (!job)
		return;
	job->held = held;
	if (waits(job->state))
		wait_again(job);
}

static void model_released(int64_t id)
{
	struct model_job *job = open_job(id);

	model_held(id, false);
	if (job && job->last && !job->attempt)
		model.attempt[job->last].forgiven = true;
}

static void model_warned(const struct event_attempt_warned *e)
{
	struct model_attempt *attempt = live(e->attempt);

	if (!attempt || attempt->stopping)
		return;
	attempt->warned = true;
	attempt->for_job =
		e->for_job >= 1 && e->for_job <= model.jobs && model.job[e->for_job].state
			? (uint32_t)e->for_job
			: 0;
	attempt->deadline = at_least_0(e->deadline_ms);
	follow(attempt);
}

static void model_spared(const struct event_attempt_spared *e)
{
	struct model_attempt *attempt = live(e->attempt);

	if (!attempt || attempt->stopping || !attempt->warned)
		return;
	attempt->warned = false;
	attempt->for_job = 0;
	attempt->deadline = 0;
	follow(attempt);
}

static void model_unreachable(const struct event_attempt_unreachable *e)
{
	struct model_attempt *attempt = live(e->attempt);

	if (!attempt)
		return;
	attempt->unreachable = e->unreachable != 0;
	follow(attempt);
}

static void model_shielded(const struct event_attempt_shielded *e)
{
	struct model_attempt *attempt = live(e->attempt);

	if (!attempt)
		return;
	attempt->shielded = e->shielded != 0;
	attempt->least = e->least < 1 || e->least > TASKS_MAX ? 0 : (uint32_t)e->least;
}

uint32_t model_holding(const struct model_attempt *attempt)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < attempt->ranks; i++)
		count += attempt->task[i].state != TASK_LEFT;
	return count;
}

/* The attempt when its ranks may leave: rising, known, and not all of those that hold a place. */
static struct model_attempt *running(int64_t id, const int64_t *ranks, uint32_t count)
{
	struct model_attempt *attempt = live(id);

	if (!attempt || attempt->parts || !attempt->released || attempt->stopping || !count ||
	    count >= model_holding(attempt))
		return NULL;
	for (uint32_t i = 0; i < count; i++)
		if (ranks[i] < 0 || ranks[i] >= attempt->ranks || (i && ranks[i] <= ranks[i - 1]))
			return NULL;
	return attempt;
}

static void model_shrunk(const struct event_attempt_shrunk *e)
{
	struct model_attempt *attempt = running(e->attempt, e->ranks, e->ranks_count);
	uint32_t stay = 0;

	for (uint32_t i = 0; attempt && i < attempt->ranks; i++)
		stay += attempt->task[i].state != TASK_LEFT && !attempt->task[i].leaving;
	if (!attempt || stay <= e->ranks_count)
		return;
	for (uint32_t i = 0; i < e->ranks_count; i++)
		if (attempt->task[e->ranks[i]].state == TASK_LEFT ||
		    attempt->task[e->ranks[i]].leaving)
			return;
	for (uint32_t i = 0; i < e->ranks_count; i++)
		attempt->task[e->ranks[i]].leaving = true;
	attempt->changes++;
	follow(attempt);
}

static void model_left(const struct event_ranks_left *e)
{
	struct model_attempt *attempt = running(e->attempt, e->ranks, e->ranks_count);
	struct model_job *job = attempt ? &model.job[attempt->job] : NULL;
	bool unasked = false;

	for (uint32_t i = 0; attempt && i < e->ranks_count; i++)
		if (attempt->task[e->ranks[i]].state != TASK_EXITED)
			return;
	if (!attempt)
		return;
	for (uint32_t i = 0; i < e->ranks_count; i++) {
		struct model_task *task = &attempt->task[e->ranks[i]];

		unasked |= !task->leaving;
		task->state = TASK_LEFT;
		task->leaving = false;
		attempt->was_ready[e->ranks[i]] = attempt->was_started[e->ranks[i]] = true;
	}
	model.left++;
	attempt->first_failed = -1;
	for (uint32_t i = attempt->ranks; i-- > 0;)
		if (attempt->task[i].state == TASK_EXITED && attempt->task[i].bad &&
		    !attempt->task[i].leaving)
			attempt->first_failed = (int)i;
	attempt->changes += unasked;
	follow(attempt);
	job->used = plus(job->used, at_least_0(e->used_gpu_ms));
	job->lost = plus(job->lost, at_least_0(e->lost_gpu_ms));
}

static void model_grown(const struct event_attempt_grown *e, const struct facts *f)
{
	struct model_attempt *attempt = live(e->attempt);
	uint32_t next = attempt ? attempt->ranks : 0;

	if (!attempt || attempt->parts || !attempt->released || attempt->stopping ||
	    e->ranks_count != e->nodes_count ||
	    !places_exist(e->nodes, e->nodes_count, e->masks, e->masks_count, f->nodes.count))
		return;
	for (uint32_t i = 0; i < e->ranks_count; i++) {
		if (e->ranks[i] < 0 || (i && e->ranks[i] <= e->ranks[i - 1]) ||
		    (e->ranks[i] < attempt->ranks && attempt->task[e->ranks[i]].state != TASK_LEFT))
			return;
		if (e->ranks[i] >= attempt->ranks && e->ranks[i] != next++)
			return;
	}
	for (uint32_t i = 0; i < e->ranks_count; i++) {
		int64_t rank = e->ranks[i];

		model.again += rank < attempt->ranks;
		attempt->task[rank] = (struct model_task){
			.node = e->nodes[i],
			.mask = e->masks[i],
			.step = -1,
			.launch = rank < attempt->ranks ? attempt->task[rank].launch + 1 : 0,
		};
		attempt->was_ready[rank] = attempt->was_started[rank] = false;
	}
	attempt->ranks = next;
	attempt->changes++;
	follow(attempt);
}

static void model_resized(const struct event *event, const struct facts *f)
{
	if (event->kind == EVENT_ATTEMPT_SHRUNK)
		model_shrunk(&event->attempt_shrunk);
	else if (event->kind == EVENT_RANKS_LEFT)
		model_left(&event->ranks_left);
	else if (event->kind == EVENT_ATTEMPT_GROWN)
		model_grown(&event->attempt_grown, f);
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Whether the facts took it is read from them, as of a submission: then all of it is so, else nothing. */
static void model_changed(const struct event_job_changed *e, const struct facts *f)
{
	struct model_job *job = open_job(e->job);
	const struct job *is = job ? job_get(f, (struct job_id){ (uint32_t)e->job }) : NULL;
	const int64_t priority = within(e->priority, INT32_MIN, INT32_MAX),
		      retries = within(e->retries, 0, UINT16_MAX);
	uint64_t set;

	(void)job_changes_parse(e->what, &set);
	if (!job || !set || !waits(job->state) ||
	    (job->array_first && !e->whole && set & job_changes_with(JOB_CHANGE_WHOLE)) ||
	    (set & JOB_CHANGE_BIT(PRIORITY) && is->priority != priority) ||
	    (set & JOB_CHANGE_BIT(RETRIES) && is->retries_left != retries))
		return;
	if (set & ~job_changes_with(JOB_CHANGE_PLAIN)) {
		if (is->promise || facts_reservation(f, (struct job_id){ (uint32_t)e->job }))
			return;
		job->promised = job->victims = job->reserved = 0;
	}
	if (set & JOB_CHANGE_BIT(PRIORITY))
		job->priority = priority;
	if (set & JOB_CHANGE_BIT(RETRIES))
		job->retries = retries;
}

static void model_job_event(const struct event *event, const struct facts *f)
{
	struct model_job *job;

	if (event->kind == EVENT_JOB_SUBMITTED) {
		model_submitted(&event->job_submitted, f);
	} else if (event->kind == EVENT_JOB_HELD) {
		model_held(event->job_held.job, true);
	} else if (event->kind == EVENT_JOB_RELEASED) {
		model_released(event->job_released.job);
	} else if (event->kind == EVENT_JOB_REQUEUED) {
		model_requeued(&event->job_requeued);
	} else if (event->kind == EVENT_JOB_ENDED) {
		model_job_ended(&event->job_ended);
	} else if (event->kind == EVENT_JOB_CANCEL_ASKED) {
		job = open_job(event->job_cancel_asked.job);
		if (job)
			job->cancel = true;
	} else if (event->kind == EVENT_JOB_PRIORITY_SET) {
		int64_t priority = event->job_priority_set.priority;

		job = open_job(event->job_priority_set.job);
		if (job)
			job->priority = priority > INT32_MAX   ? INT32_MAX
					: priority < INT32_MIN ? INT32_MIN
							       : priority;
	} else if (event->kind == EVENT_JOB_CHANGED) {
		model_changed(&event->job_changed, f);
	} else if (event->kind == EVENT_PROMISE_MADE) {
		model_promise(&event->promise_made, f);
	} else if (event->kind == EVENT_PROMISE_DROPPED) {
		int64_t id = event->promise_dropped.job;

		if (id >= 1 && id <= model.jobs)
			model.job[id].promised = model.job[id].victims = 0;
	} else if (event->kind == EVENT_RESERVATION_SET) {
		model_reservation(&event->reservation_set, f);
	} else if (event->kind == EVENT_RESERVATION_DROPPED) {
		int64_t id = event->reservation_dropped.job;

		if (id >= 1 && id <= model.jobs)
			model.job[id].reserved = 0;
	} else if (event->kind == EVENT_JOBS_FORGOTTEN) {
		model_forgotten(&event->jobs_forgotten);
	} else if (event->kind == EVENT_CHECKPOINT_VOID) {
		model_void(&event->checkpoint_void);
	}
}

void model_apply(const struct event *event, const struct facts *f)
{
	struct model_attempt *attempt;

	if (event->time_ms > model.now)
		model.now = event->time_ms;
	if (event->kind == EVENT_USER_SET)
		model_user_set(&event->user_set);
	else if (event->kind == EVENT_USER_REMOVED)
		model_user_removed(&event->user_removed);
	model_job_event(event, f);
	model_resized(event, f);
	if (event->kind == EVENT_ATTEMPT_PLACED) {
		model_placed(&event->attempt_placed, f);
	} else if (event->kind == EVENT_ATTEMPT_RELEASED) {
		attempt = live(event->attempt_released.attempt);
		if (attempt && !attempt->stopping)
			attempt->released = true;
	} else if (event->kind == EVENT_ATTEMPT_WARNED) {
		model_warned(&event->attempt_warned);
	} else if (event->kind == EVENT_ATTEMPT_SPARED) {
		model_spared(&event->attempt_spared);
	} else if (event->kind == EVENT_ATTEMPT_STOPPED) {
		model_stopped(&event->attempt_stopped);
	} else if (event->kind == EVENT_ATTEMPT_ENDED) {
		model_ended(&event->attempt_ended);
	} else if (event->kind == EVENT_ATTEMPT_UNREACHABLE) {
		model_unreachable(&event->attempt_unreachable);
	} else if (event->kind == EVENT_ATTEMPT_SHIELDED) {
		model_shielded(&event->attempt_shielded);
	} else if (event->kind == EVENT_ATTEMPT_DEAF) {
		attempt = live(event->attempt_deaf.attempt);
		if (attempt)
			attempt->deaf = true;
	} else if (event->kind == EVENT_TASK_READY) {
		model_task(event->task_ready.attempt, event->task_ready.rank,
			   event->task_ready.launch, TASK_READY);
	} else if (event->kind == EVENT_TASK_STARTED) {
		model_task(event->task_started.attempt, event->task_started.rank,
			   event->task_started.launch, TASK_RUNNING);
	} else if (event->kind == EVENT_TASK_EXITED) {
		model_exited(&event->task_exited);
	} else if (event->kind == EVENT_PROGRESS) {
		model_progress(&event->progress);
	} else if (event->kind == EVENT_CHECKPOINT_SAVED) {
		model_saved(&event->checkpoint_saved);
	}
}
