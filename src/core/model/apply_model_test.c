/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply against a model that is written to be obvious: arrays that never shrink, states moved by hand at each
 * event, everything about jobs, attempts, tasks, checkpoints and promises kept for ever. 10,000 random events
 * per seed; after each the two must say the same. The seed is printed when they do not; FACTS_SEED repeats one.
 */
#include "base/testing.h"

#include "base/arena.h"
#include "core/model/facts.h"
#include "core/model/random_events.h"

enum { JOBS = 8000, ATTEMPTS = 8000, RANKS = 8, PROMISED = 8, KEPT_MAX = 200, STEPS = 10000 };

struct model_task {
	int64_t node, mask, reports, step, launch;
	int state, code;
	bool leaving, bad;
};

struct model_attempt {
	bool parts; /* of GPUs: keeps its width */
	bool gone;
	uint32_t job, ranks;
	bool released, warned, stopping, over, unreachable;
	int64_t deadline, checkpoint_ms, resume;
	uint32_t for_job;
	int why, first_failed;
	uint32_t changes; /* of who belongs to it */
	bool was_ready[RANKS], was_started[RANKS];
	struct model_task task[RANKS];
};

struct model_checkpoint {
	bool is_void;
	int64_t step;
};

struct model_job {
	int state;
	int64_t since, submitted, run, used, lost, priority, retries;
	bool held, evicted, cancel;
	uint32_t attempt, last, attempts;
	uint32_t depends[3], depend_count;
	bool whole[3]; /* depends[i] stands for its array */
	uint32_t array_first, array_count;
	uint32_t made;
	struct model_checkpoint checkpoint[KEPT_MAX];
	uint32_t promised, victims;
	int64_t promise_node[PROMISED], promise_mask[PROMISED], victim[PROMISED];
	uint32_t reserved;
	int64_t reserved_ms, waits_for, reserved_node[PROMISED], reserved_mask[PROMISED];
};

struct model {
	uint32_t jobs, attempts;
	uint32_t left, again; /* how often ranks left, and were started anew */
	int64_t now;
	struct model_job job[JOBS + 1];
	struct model_attempt attempt[ATTEMPTS + 1];
};

static struct model m;

/* --- the model ------------------------------------------------------------------------------------------- */

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
	if (id < 1 || id > m.jobs || is_final(m.job[id].state))
		return NULL;
	return &m.job[id];
}

static struct model_attempt *live(int64_t id)
{
	if (id < 1 || id > m.attempts || m.attempt[id].over)
		return NULL;
	return &m.attempt[id];
}

static void move(struct model_job *job, int state)
{
	if (job->state != state)
		job->since = m.now;
	job->state = state;
}

/* The jobs that its dependency number i is about. */
static uint32_t meant_end(const struct model_job *job, uint32_t i)
{
	return job->depends[i] + (job->whole[i] ? m.job[job->depends[i]].array_count : 1);
}

static void wait_again(struct model_job *job)
{
	bool blocked = false;

	for (uint32_t i = 0; i < job->depend_count; i++)
		for (uint32_t id = job->depends[i]; id < meant_end(job, i); id++)
			blocked |= m.job[id].state != JOB_SUCCEEDED;
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
	struct model_job *job = &m.job[attempt->job];

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
static void model_submitted(const struct event_job_submitted *e, const struct facts *f)
{
	uint32_t first = m.jobs + 1;

	while (m.jobs < f->jobs.count) {
		struct model_job *job = &m.job[++m.jobs];

		job->array_first = e->array_count > 1 ? first : 0;
		job->array_count = e->array_count > 1 ? (uint32_t)e->array_count : 0;
		job->held = e->held != 0;
		job->submitted = job->since = m.now;
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
					m.job[job->depends[i]].array_first == job->depends[i];
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

	if (!job || !waits(job->state) || e->attempt != m.attempts + 1 ||
	    !places_exist(e->nodes, e->nodes_count, e->masks, e->masks_count, f->nodes.count) ||
	    !parts_exist(e->parts, e->parts_count, e->parts_mib, e->parts_mib_count,
			 e->nodes_count))
		return;
	attempt = &m.attempt[++m.attempts];
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
	job->attempt = job->last = m.attempts;
	job->attempts++;
	job->evicted = false;
	job->promised = job->victims = job->reserved = 0;
	follow(attempt);
}

static void model_stopped(const struct event_attempt_stopped *e)
{
	struct model_attempt *attempt = live(e->attempt);
	int64_t grace = e->grace_ms < 0 ? 0 : e->grace_ms;
	int64_t deadline = grace > INT64_MAX - m.now ? INT64_MAX : m.now + grace;

	if (!attempt)
		return;
	if (attempt->stopping && deadline >= attempt->deadline)
		return;
	attempt->deadline = deadline;
	if (!attempt->stopping)
		attempt->why = e->why < 0 ? 0 : e->why > STOP_START ? STOP_START : (int)e->why;
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
	job = &m.job[attempt->job];
	attempt->over = true;
	attempt->unreachable = false;
	attempt->why = e->why < 0 ? 0 : e->why > STOP_START ? STOP_START : (int)e->why;
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
	job->checkpoint[job->made] = (struct model_checkpoint){ false, e->step };
	attempt->checkpoint_ms = e->at_ms > 0 && e->at_ms < m.now ? e->at_ms : m.now;
}

static void model_void(const struct event_checkpoint_void *e)
{
	struct model_attempt *attempt;
	int64_t left = e->number - 1;
	struct model_job *job;

	if (e->job < 1 || e->job > m.jobs || e->number < 1 || e->number > m.job[e->job].made)
		return;
	job = &m.job[e->job];
	if (e->number + CHECKPOINTS_KEPT <= job->made || job->checkpoint[e->number].is_void)
		return;
	job->checkpoint[e->number].is_void = true;
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
	if (!m.job[id].state || !is_final(m.job[id].state) || m.job[id].attempt)
		return false;
	for (uint32_t other = 1; other <= m.jobs; other++)
		if (!is_final(m.job[other].state) &&
		    (waits_for_all(&m.job[other], id) ||
		     (m.job[id].state != JOB_SUCCEEDED && waits_for(&m.job[other], id))))
			return false;
	return true;
}

static void model_forgotten(const struct event_jobs_forgotten *e)
{
	for (uint32_t i = 0; i < e->jobs_count; i++) {
		if (e->jobs[i] < 1 || e->jobs[i] > m.jobs || !can_go((uint32_t)e->jobs[i]))
			continue;
		memset(&m.job[e->jobs[i]], 0, sizeof(m.job[0]));
		for (uint32_t id = 1; id <= m.attempts; id++)
			if (m.attempt[id].job == e->jobs[i])
				m.attempt[id] =
					(struct model_attempt){ .gone = true, .over = true };
		for (uint32_t id = 1; id <= m.jobs; id++) {
			struct model_job *job = &m.job[id];

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

	if (!job || job->attempt ||
	    !places_exist(e->nodes, e->nodes_count, e->masks, e->masks_count, f->nodes.count) ||
	    !parts_exist(e->parts, e->parts_count, e->parts_mib, e->parts_mib_count,
			 e->nodes_count))
		return;
	for (uint32_t i = 0; i < e->victims_count; i++)
		if (e->victims[i] < 1 || e->victims[i] > m.attempts ||
		    m.attempt[e->victims[i]].gone)
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
	for (uint32_t id = 1; id <= m.jobs; id++)
		if (waits(m.job[id].state))
			wait_again(&m.job[id]);
}

static void model_requeued(const struct event_job_requeued *e)
{
	struct model_job *job = open_job(e->job);

	if (!job || job->attempt || waits(job->state))
		return;
	job->evicted = e->why == REQUEUE_EVICTED;
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

static void model_warned(const struct event_attempt_warned *e)
{
	struct model_attempt *attempt = live(e->attempt);

	if (!attempt || attempt->stopping)
		return;
	attempt->warned = true;
	attempt->for_job = e->for_job >= 1 && e->for_job <= m.jobs && m.job[e->for_job].state
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

static uint32_t holding(const struct model_attempt *attempt)
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
	    count >= holding(attempt))
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
	struct model_job *job = attempt ? &m.job[attempt->job] : NULL;
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
	m.left++;
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

		m.again += rank < attempt->ranks;
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

static void model_job_event(const struct event *event, const struct facts *f)
{
	struct model_job *job;

	if (event->kind == EVENT_JOB_SUBMITTED) {
		model_submitted(&event->job_submitted, f);
	} else if (event->kind == EVENT_JOB_HELD) {
		model_held(event->job_held.job, true);
	} else if (event->kind == EVENT_JOB_RELEASED) {
		model_held(event->job_released.job, false);
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
	} else if (event->kind == EVENT_PROMISE_MADE) {
		model_promise(&event->promise_made, f);
	} else if (event->kind == EVENT_PROMISE_DROPPED) {
		int64_t id = event->promise_dropped.job;

		if (id >= 1 && id <= m.jobs)
			m.job[id].promised = m.job[id].victims = 0;
	} else if (event->kind == EVENT_RESERVATION_SET) {
		model_reservation(&event->reservation_set, f);
	} else if (event->kind == EVENT_RESERVATION_DROPPED) {
		int64_t id = event->reservation_dropped.job;

		if (id >= 1 && id <= m.jobs)
			m.job[id].reserved = 0;
	} else if (event->kind == EVENT_JOBS_FORGOTTEN) {
		model_forgotten(&event->jobs_forgotten);
	} else if (event->kind == EVENT_CHECKPOINT_VOID) {
		model_void(&event->checkpoint_void);
	}
}

static void model_apply(const struct event *event, const struct facts *f)
{
	struct model_attempt *attempt;

	if (event->time_ms > m.now)
		m.now = event->time_ms;
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

/* --- the comparison -------------------------------------------------------------------------------------------- */

static uint64_t seed;
static uint64_t step;

#define SAME(a, b)                                                                                 \
	do {                                                                                       \
		if ((int64_t)(a) != (int64_t)(b))                                                  \
			fail_msg("FACTS_SEED=%llu, event %llu, %s %u: " #a " is %lld, but " #b     \
				 " is %lld",                                                       \
				 (unsigned long long)seed, (unsigned long long)step, what, id,     \
				 (long long)(a), (long long)(b));                                  \
	} while (0)

static void same_promise(const struct facts *f, uint32_t id)
{
	const char *what = "promise of job";
	uint32_t row = job_get(f, (struct job_id){ id })->promise;
	const struct model_job *job = &m.job[id];

	for (uint32_t i = 0; i < job->promised + job->victims; i++) {
		const struct promise *promise;

		SAME(row != 0, 1);
		promise = table_get(&f->promises, row);
		SAME(promise->node, i < job->promised ? job->promise_node[i] : 0);
		SAME(promise->gpu_mask, i < job->promised ? job->promise_mask[i] : 0);
		SAME(promise->victim, i < job->promised ? 0 : job->victim[i - job->promised]);
		row = promise->next;
	}
	SAME(row, 0);
}

static void same_reservation(const struct facts *f, uint32_t id)
{
	const char *what = "reservation of job";
	const struct reservation_fact *r = facts_reservation(f, (struct job_id){ id });
	const struct model_job *job = &m.job[id];
	uint32_t row = r ? r->first : 0;

	SAME(r ? r->tasks : 0, job->reserved);
	if (!r)
		return;
	SAME(r->start_ms, job->reserved_ms);
	SAME(r->waits_for, job->waits_for);
	for (uint32_t i = 0; i < job->reserved; i++) {
		const struct promise *promise = table_get(&f->promises, row);

		SAME(promise->node, job->reserved_node[i]);
		SAME(promise->gpu_mask, job->reserved_mask[i]);
		row = promise->next;
	}
	SAME(row, 0);
}

static void same_job(const struct facts *f, uint32_t id)
{
	const char *what = "job";
	const struct job *job = job_get(f, (struct job_id){ id });
	const struct model_job *want = &m.job[id];
	const struct checkpoint *checkpoint = job_checkpoint(f, job, 0);
	uint32_t newest = want->made;

	SAME(job->state, want->state);
	SAME(job->state_ms, want->since);
	SAME(job->submitted_ms, want->submitted);
	SAME(job->attempt.v, want->attempt);
	SAME(job->last_attempt.v, want->last);
	SAME(job->attempts, want->attempts);
	SAME(job->held, want->held);
	SAME(job->cancel_asked, want->cancel);
	SAME(job->priority, want->priority);
	SAME(job->retries_left, want->retries);
	SAME(job->run_ms, want->run);
	SAME(job->used_gpu_ms, want->used);
	SAME(job->lost_gpu_ms, want->lost);
	while (newest && newest + CHECKPOINTS_KEPT > want->made && want->checkpoint[newest].is_void)
		newest--;
	if (newest + CHECKPOINTS_KEPT <= want->made)
		newest = 0;
	SAME(checkpoint ? checkpoint->number : 0, newest);
	SAME(checkpoint ? checkpoint->step : 0, want->checkpoint[newest].step);
	same_promise(f, id);
	same_reservation(f, id);
}

static void same_attempt(const struct facts *f, uint32_t id)
{
	const char *what = "attempt";
	const struct attempt *attempt = attempt_get(f, (struct attempt_id){ id });
	const struct model_attempt *want = &m.attempt[id];
	uint32_t ready = 0, started = 0;

	SAME(attempt->state == ATTEMPT_FREE, want->gone);
	SAME(attempt->job.v, want->job);
	if (want->gone)
		return;
	SAME(attempt->tasks, want->ranks);
	SAME(attempt->state, want->over       ? ATTEMPT_OVER
			     : want->stopping ? ATTEMPT_STOPPING
			     : want->released ? ATTEMPT_ACTIVE
					      : ATTEMPT_PREPARING);
	SAME(attempt->why, want->why);
	SAME(attempt->unreachable, want->unreachable);
	SAME(attempt->warned_ms != 0, want->warned);
	SAME(attempt->for_job, want->for_job);
	SAME(attempt->deadline_ms, want->deadline);
	SAME(attempt->checkpoint_ms, want->checkpoint_ms);
	SAME(attempt->resume_number, want->resume);
	SAME(attempt->first_failed_rank, want->first_failed);
	SAME(task_get(f, attempt, 0) != NULL, m.job[want->job].last == id);
	for (uint32_t rank = 0; rank < want->ranks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		ready += want->was_ready[rank];
		started += want->was_started[rank];
		if (!task)
			continue;
		SAME(task->state, want->task[rank].state);
		SAME(task->node.v, want->task[rank].node);
		SAME(task->gpu_mask, want->task[rank].mask);
		SAME(task->reports, want->task[rank].reports);
		SAME(task->step, want->task[rank].step);
		SAME(task->code, want->task[rank].code);
		SAME(task->launch, want->task[rank].launch);
		SAME(task->leaving, want->task[rank].leaving);
	}
	SAME(attempt_width(attempt), holding(want));
	SAME(attempt->generation, want->changes);
	SAME(attempt->ready, ready);
	SAME(attempt->started, started);
}

static void same_facts(const struct facts *f)
{
	const char *what = "all";
	uint32_t id = 0;

	SAME(f->now_ms, m.now);
	SAME(f->jobs.count, m.jobs);
	SAME(f->attempts.count, m.attempts);
	for (id = 1; id <= m.jobs; id++)
		same_job(f, id);
	for (id = 1; id <= m.attempts; id++)
		same_attempt(f, id);
}

static void compare(uint64_t from_seed)
{
	struct random random = { from_seed };
	struct arena arena;
	struct facts facts;

	seed = from_seed;
	memset(&m, 0, sizeof(m));
	arena_init(&arena, 1 << 20);
	facts_init(&facts);
	for (step = 1; step <= STEPS; step++) {
		struct event event;

		arena_reset(&arena);
		event = random_event(&random, &facts, &arena);
		apply(&facts, &event);
		model_apply(&event, &facts);
		same_facts(&facts);
		if (step % 200 == 0)
			facts_verify(&facts);
	}
	assert_true(m.jobs > 200 && m.attempts > 100 && m.left > 0);
	facts_deinit(&facts);
	arena_deinit(&arena);
}

static void apply_does_what_the_obvious_model_does(void **state)
{
	const char *given = getenv("FACTS_SEED");
	uint32_t again = 0;

	(void)state;
	if (given) {
		compare(strtoull(given, NULL, 10));
		return;
	}
	for (uint64_t i = 1; i <= 4; i++) {
		compare(i);
		again += m.again;
	}
	assert_true(again > 0); /* a rank was started anew */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(apply_does_what_the_obvious_model_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
