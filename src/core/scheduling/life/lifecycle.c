/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of attempts: what must be decided when ranks become ready, exit or fail, when people cancel, when time
 * is over, when a node is drained or swallows one job after the other. README.md has the table of states.
 *
 * Each decision here follows from facts about one job (or node), so none waits for another; the order is that
 * of job ids.
 */
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/scheduling/pass.h"

/* Between the request to end and the kill, for those whose work is safe or lost anyhow. */
enum { STOP_GRACE_MS = 5000 };

/* Exit codes by which a shell says that there was nothing to run. */
enum { CODE_CANNOT_RUN = 126, CODE_NOT_FOUND = 127 };

/* At most this part of the nodes (and of a node's GPUs) is set aside without a person: one in ... */
enum { ASIDE_PART = 4 };

/* What is left of the job's grace: one that was warned before has had a part of it. */
static int64_t grace_left_ms(const struct facts *facts, const struct job *job,
			     const struct attempt *attempt)
{
	int64_t grace_ms = job_grace_ms(facts, job),
		left_ms = attempt->warned_ms ? attempt->deadline_ms - facts->now_ms : grace_ms;

	left_ms = left_ms > 0 ? left_ms : 0;
	return left_ms < grace_ms ? left_ms : grace_ms;
}

/* Time to save for one that is warned now: its grace, or what is left until a node under it goes. */
static int64_t time_to_save_ms(const struct facts *facts, const struct job *job,
			       const struct attempt *attempt)
{
	int64_t grace_ms = job_grace_ms(facts, job);
	int64_t goes_ms = attempt_goes_ms(facts, attempt, facts->now_ms - 1); /* or goes now */

	return goes_ms && goes_ms - facts->now_ms < grace_ms ? goes_ms - facts->now_ms : grace_ms;
}

int64_t short_grace_ms(const struct facts *facts, const struct job *job,
		       const struct attempt *attempt)
{
	int64_t grace_ms = grace_left_ms(facts, job, attempt);

	return grace_ms < STOP_GRACE_MS ? grace_ms : STOP_GRACE_MS;
}

void attempt_stop(struct pass *pass, const struct job *job, enum stop_why why, int64_t grace_ms,
		  const char *text)
{
	struct event_attempt_stopped *e = &pass_emit(pass, EVENT_ATTEMPT_STOPPED)->attempt_stopped;

	e->attempt = job->attempt.v;
	e->why = why;
	e->grace_ms = grace_ms;
	e->text = text;
}

/* --- the end of an attempt ---------------------------------------------------------------------------- */

static const struct task *failed_task(const struct facts *facts, const struct attempt *attempt)
{
	return attempt->first_failed_rank < 0
		       ? NULL
		       : table_get(&facts->tasks,
				   attempt->first_task + (uint32_t)attempt->first_failed_rank);
}

static enum stop_why failure_why(const struct task *task)
{
	if (task->cause == CAUSE_LOST)
		return STOP_LOST;
	return task->cause == CAUSE_START || task_lacked_something(task) ? STOP_START : STOP_FAILED;
}

/* But for those that were told to leave, of which there were others. */
static bool all_succeeded(const struct facts *facts, const struct attempt *attempt)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);
		bool well = task->cause == CAUSE_EXIT && task->code == 0 && !task->never_ran;

		if (task_holds(task) && !task->leaving && !well)
			return false;
		done += task_holds(task) && well;
	}
	return done > 0;
}

/* Why the attempt is over. One that was told to stop but whose ranks all ended well before has simply succeeded; so has one of which
 * those of a role that ends the job did, whatever became of the others. */
static enum stop_why attempt_why(const struct facts *facts, const struct attempt *attempt)
{
	const struct task *failed = failed_task(facts, attempt);

	const struct shape *shape = shape_get(facts, job_get(facts, attempt->job)->shape);

	if (all_succeeded(facts, attempt))
		return STOP_NONE;
	if (attempt_done_role(facts, attempt, shape) < ROLES_MAX)
		return STOP_DONE;
	if (attempt->state == ATTEMPT_STOPPING ||
	    (attempt->state == ATTEMPT_OVER && attempt->why != STOP_NONE))
		return (enum stop_why)attempt->why;
	return failed ? failure_why(failed) : STOP_LOST; /* ended, not by itself and not by us */
}

const char *failure_text(struct pass *pass, const struct attempt *attempt)
{
	const struct task *task = failed_task(pass->facts, attempt);
	const char *words = facts_text(pass->facts, attempt->reason), *node;

	if (!task)
		return words;
	node = facts_name(pass->facts, node_get(pass->facts, task->node)->name);
	switch ((enum task_cause)task->cause) {
	case CAUSE_EXIT:
		if (task->never_ran && *words)
			return arena_printf(pass->arena, "rank %d on %s: %s",
					    attempt->first_failed_rank, node, words);
		return arena_printf(pass->arena, "rank %d on %s exited with code %d",
				    attempt->first_failed_rank, node, task->code);
	case CAUSE_SIGNAL:
		return arena_printf(pass->arena, "rank %d on %s was killed by signal %u",
				    attempt->first_failed_rank, node, task->signal);
	case CAUSE_MEMORY:
		return arena_printf(pass->arena, "rank %d on %s ran out of memory%s%s",
				    attempt->first_failed_rank, node, *words ? ": " : "", words);
	case CAUSE_START:
	case CAUSE_NO_SPACE:
	case CAUSE_MACHINE:
		return arena_printf(pass->arena, "rank %d on %s could not be started: %s",
				    attempt->first_failed_rank, node, words);
	case CAUSE_LOST:
		if (task->never_ran && *words)
			return arena_printf(pass->arena, "rank %d on %s: %s",
					    attempt->first_failed_rank, node, words);
		return arena_printf(pass->arena, "rank %d was lost with %s",
				    attempt->first_failed_rank, node);
	case CAUSE_STOPPED:
	case CAUSE_LOG_LIMIT: break;
	}
	return words;
}

static bool why_loses_work(enum stop_why why)
{
	return why != STOP_NONE && why != STOP_CANCELLED && why != STOP_LIMIT && why != STOP_DONE;
}

static int64_t gpus_all(const struct node *node)
{
	return ((INT64_C(1) << node->gpu_count) - 1) & UINT32_MAX;
}

/* The program was not found, or could not be run: what a shell and the shepherd say with the exit code. */
static bool had_no_program(const struct task *task)
{
	return task->cause == CAUSE_EXIT &&
	       (task->code == CODE_NOT_FOUND || task->code == CODE_CANNOT_RUN);
}

/*
 * An early failure is the node's as likely as the program's. Out of memory is the program's; what the machine lacked is told of as
 * such. A program that is not there says nothing of GPUs: it is a person's slip, or the node has lost a mount. So it is
 * noted for the node as a whole (failure_counts).
 */
static void blame(struct pass *pass, const struct attempt *attempt, enum stop_why why,
		  struct event_attempt_ended *e)
{
	const struct task *task = failed_task(pass->facts, attempt);
	int64_t *node, *mask;

	if ((why != STOP_FAILED && why != STOP_START) || !task || task->cause == CAUSE_MEMORY ||
	    task_lacked_something(task))
		return;
	if (attempt->released_ms &&
	    pass->facts->now_ms - attempt->released_ms > pass->facts->policy.blackhole_window_ms)
		return;
	if (had_no_program(task) && node_get(pass->facts, task->node)->gpu_count == NODE_GPUS_MAX)
		return;
	node = arena_new(pass->arena, int64_t);
	mask = arena_new(pass->arena, int64_t);
	*node = task->node.v;
	if (had_no_program(task))
		*mask = NODE_ITSELF;
	else if (task->gpu_mask)
		*mask = task->gpu_mask;
	else /* without GPUs: all of them */
		*mask = gpus_all(node_get(pass->facts, task->node));
	e->blamed_nodes = node;
	e->blamed_masks = mask;
	e->blamed_nodes_count = e->blamed_masks_count = 1;
}

/* How long its ranks held their GPUs since then, together. Those that left were charged when they did. */
static int64_t attempt_held_ms(const struct facts *facts, const struct attempt *attempt,
			       const struct shape *shape, int64_t since_ms)
{
	int64_t sum_ms = 0;

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);

		if (task_holds(task))
			sum_ms += (int64_t)shape_wish(shape, i).gpus *
				  (facts->now_ms -
				   (task->from_ms > since_ms ? task->from_ms : since_ms));
	}
	return sum_ms;
}

/* What it used of GPUs since then; one that holds parts never changes its width. */
static int64_t attempt_gpu_ms(const struct facts *facts, const struct job *job,
			      const struct attempt *attempt, int64_t since_ms)
{
	if (attempt->parts_share)
		return share_gpu_ms(attempt->parts_share, facts->now_ms - since_ms);
	return attempt_held_ms(facts, attempt, shape_get(facts, job->shape), since_ms);
}

static void attempt_end(struct pass *pass, const struct job *job, const struct attempt *attempt,
			enum stop_why why)
{
	int64_t now_ms = pass->facts->now_ms;
	int64_t saved_ms = attempt_saved_ms(pass->facts, job, attempt);
	int64_t since_ms = saved_ms > attempt->released_ms ? saved_ms : attempt->released_ms;
	struct event_attempt_ended *e = &pass_emit(pass, EVENT_ATTEMPT_ENDED)->attempt_ended;

	e->attempt = job->attempt.v;
	e->why = why;
	e->used_gpu_ms = attempt_gpu_ms(pass->facts, job, attempt, attempt->placed_ms);
	if (attempt->released_ms) {
		e->run_ms = now_ms - attempt->released_ms;
		e->lost_ms = why_loses_work(why) ? now_ms - since_ms : 0;
		e->lost_gpu_ms =
			e->lost_ms ? attempt_gpu_ms(pass->facts, job, attempt, since_ms) : 0;
	}
	blame(pass, attempt, why, e);
	spend_charge(pass, job, NULL, 0,
		     &(struct charge){ &e->charged, &e->charged_count, &e->charged_micro,
				       &e->charged_micro_count });
}

static void job_end(struct pass *pass, uint32_t id, enum job_state state,
		    const struct attempt *attempt, const char *text)
{
	const struct task *task =
		attempt && state == JOB_FAILED ? failed_task(pass->facts, attempt) : NULL;
	struct event_job_ended *e = &pass_emit(pass, EVENT_JOB_ENDED)->job_ended;

	e->job = id;
	e->state = state;
	e->rank = -1;
	e->text = text;
	if (task) {
		e->code = task->code;
		e->signal = task->signal;
		e->cause = task->cause;
		e->rank = attempt->first_failed_rank;
	}
}

static void job_requeue(struct pass *pass, uint32_t id, const struct job *job, enum requeue_why why,
			const char *text)
{
	struct event_job_requeued *e = &pass_emit(pass, EVENT_JOB_REQUEUED)->job_requeued;

	e->job = id;
	e->attempt = job->last_attempt.v;
	e->why = why;
	e->retries_left = job->retries_left - (why == REQUEUE_FAILED);
	e->text = text;
}

static const char *cancel_text(struct pass *pass, const struct job *job)
{
	const char *words = facts_text(pass->facts, job->reason);

	return *words ? arena_printf(pass->arena, "cancelled: %s", words) : "cancelled";
}

/* A full disk, or processes that can't be made, is no failure of the job's: it waits until the machine has what it lacked. */
static bool lacked_something(const struct facts *facts, const struct attempt *attempt)
{
	const struct task *task = failed_task(facts, attempt);

	return task && task_lacked_something(task);
}

/* Something of the attempt ran, or may have. */
static bool attempt_ran(const struct facts *facts, const struct attempt *attempt)
{
	if (!attempt->released_ms)
		return false;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		if (!task_get(facts, attempt, rank)->never_ran)
			return true;
	return false;
}

/* Tasks that somebody else made do not run again: new ones are new work. Those that never began wait on as they are. */
static bool external_ends(struct pass *pass, uint32_t id, const struct job *job,
			  const struct attempt *attempt, enum stop_why why)
{
	if (!job->external || why == STOP_NONE || why == STOP_DONE || why == STOP_LIMIT ||
	    !attempt_ran(pass->facts, attempt))
		return false;
	switch (why) {
	case STOP_EVICTED:
	case STOP_MOVED:
		job_end(pass, id, JOB_CANCELLED, attempt, "made room for other work");
		return true;
	case STOP_NODE:
		job_end(pass, id, JOB_CANCELLED, attempt, attempt_leave_text(pass, attempt));
		return true;
	case STOP_WINDOW:
		job_end(pass, id, JOB_CANCELLED, attempt, "its window closed");
		return true;
	case STOP_LOST:
	case STOP_FAILED:
	case STOP_START:
		job_end(pass, id, JOB_FAILED, attempt, failure_text(pass, attempt));
		return true;
	case STOP_NONE:
	case STOP_DONE:
	case STOP_LIMIT:
	case STOP_CANCELLED: break;
	}
	return false;
}

/* What becomes of the job after its attempt ended for this reason. */
static void job_follow_up(struct pass *pass, uint32_t id, const struct job *job,
			  const struct attempt *attempt, enum stop_why why)
{
	char duration[DURATION_TEXT_MAX];

	if (why != STOP_NONE && why != STOP_DONE && job->cancel_asked) {
		job_end(pass, id, JOB_CANCELLED, attempt, cancel_text(pass, job));
		return;
	}
	if (why != STOP_NONE && why != STOP_DONE && why != STOP_LIMIT &&
	    job_owner_is_removed(pass->facts, (struct job_id){ id }, job)) {
		job_end(pass, id, JOB_CANCELLED, attempt, "its user was removed");
		return;
	}
	if (external_ends(pass, id, job, attempt, why))
		return;
	switch (why) {
	case STOP_NONE:
	case STOP_DONE: job_end(pass, id, JOB_SUCCEEDED, attempt, ""); return;
	case STOP_CANCELLED:
		job_end(pass, id, JOB_CANCELLED, attempt, cancel_text(pass, job));
		return;
	case STOP_LIMIT:
		job_end(pass, id, JOB_TIMED_OUT, attempt,
			arena_printf(pass->arena, "its run-time limit of %s is over",
				     format_duration(job->limit_ms, duration)));
		return;
	case STOP_EVICTED:
		job_requeue(pass, id, job, REQUEUE_EVICTED, "made room for other work");
		return;
	case STOP_MOVED:
		job_requeue(pass, id, job, REQUEUE_MOVED, "goes on at another place");
		return;
	case STOP_NODE:
		job_requeue(pass, id, job, REQUEUE_NODE, attempt_leave_text(pass, attempt));
		return;
	case STOP_WINDOW: job_requeue(pass, id, job, REQUEUE_WINDOW, "its window closed"); return;
	case STOP_LOST:
		job_requeue(pass, id, job, REQUEUE_LOST,
			    attempt->lacks_ms ? "a lost rank found no place in time"
					      : failure_text(pass, attempt));
		return;
	case STOP_FAILED:
	case STOP_START:
		if (lacked_something(pass->facts, attempt))
			job_requeue(pass, id, job, REQUEUE_NODE, failure_text(pass, attempt));
		else if (job->retries_left)
			job_requeue(pass, id, job, REQUEUE_FAILED, failure_text(pass, attempt));
		else
			job_end(pass, id, JOB_FAILED, attempt, failure_text(pass, attempt));
		return;
	}
}

/* --- one job that is due ----------------------------------------------------------------------------------- */

static void waiting_due(struct pass *pass, uint32_t id, const struct job *job)
{
	uint32_t dead = job_dead_dependency(pass->facts, job);
	const struct job *other;

	if (job->cancel_asked) {
		job_end(pass, id, JOB_CANCELLED, NULL, cancel_text(pass, job));
		return;
	}
	CHECK(dead != 0);
	other = job_get(pass->facts, (struct job_id){ dead });
	job_end(pass, id, JOB_CANCELLED, NULL,
		arena_printf(pass->arena, "job %u \"%s\", which it depends on, ended as %s", dead,
			     facts_name(pass->facts, other->name), job_state_name(other->state)));
}

/* A node under it is drained, or its window closes: it may save its work first. Or the drain was called off. Or too few go on beside those that leave. */
static void drain_due(struct pass *pass, const struct job *job, const struct attempt *attempt)
{
	int64_t grace_ms = time_to_save_ms(pass->facts, job, attempt);
	struct event_attempt_warned *e;

	if (attempt->warned_ms) {
		pass_emit(pass, EVENT_ATTEMPT_SPARED)->attempt_spared.attempt = job->attempt.v;
		return;
	}
	if (ranks_leave_alone(pass, job, attempt))
		return;
	if (attempt->state == ATTEMPT_PREPARING || grace_ms == 0) {
		attempt_stop(pass, job, attempt_leave_why(pass, attempt), 0,
			     attempt_leave_text(pass, attempt));
		return;
	}
	e = &pass_emit(pass, EVENT_ATTEMPT_WARNED)->attempt_warned;
	e->attempt = job->attempt.v;
	e->deadline_ms = pass->facts->now_ms + grace_ms;
}

/* A role that ends the job has ended. */
static bool role_is_done(const struct facts *facts, const struct job *job,
			 const struct attempt *attempt, uint32_t *ret_role)
{
	if (attempt->state != ATTEMPT_ACTIVE || attempt->exited == attempt->left)
		return false;
	*ret_role = attempt_done_role(facts, attempt, shape_get(facts, job->shape));
	return *ret_role < ROLES_MAX;
}

static void live_due(struct pass *pass, uint32_t id, const struct job *job)
{
	const struct facts *facts = pass->facts;
	const struct attempt *attempt = attempt_get(facts, job->attempt);
	const struct task *failed = failed_task(facts, attempt);
	uint32_t done;

	if (attempt->exited == attempt->tasks) {
		enum stop_why why = attempt_why(facts, attempt);

		attempt_end(pass, job, attempt, why);
		job_follow_up(pass, id, job, attempt, why);
	} else if (job->cancel_asked) {
		attempt_stop(pass, job, STOP_CANCELLED,
			     attempt->released_ms ? grace_left_ms(facts, job, attempt) : 0,
			     cancel_text(pass, job));
	} else if (role_is_done(facts, job, attempt, &done)) {
		attempt_stop(
			pass, job, STOP_DONE, grace_left_ms(facts, job, attempt),
			arena_printf(pass->arena, "all tasks of role \"%s\" have ended",
				     facts_name(facts, shape_get(facts, job->shape)->role[done])));
	} else if (resize_left(pass, job, attempt)) {
		return;
	} else if (failed) {
		attempt_stop(pass, job, failure_why(failed), short_grace_ms(facts, job, attempt),
			     failure_text(pass, attempt));
	} else if (attempt->state == ATTEMPT_PREPARING && attempt->exited) {
		attempt_stop(pass, job, STOP_LOST, 0, "a rank ended before the job began");
	} else if (attempt->state == ATTEMPT_PREPARING && attempt->ready == attempt->tasks) {
		pass_emit(pass, EVENT_ATTEMPT_RELEASED)->attempt_released.attempt = job->attempt.v;
	} else {
		drain_due(pass, job, attempt);
	}
}

static void job_due(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct attempt *attempt;

	if (job->attempt.v) {
		live_due(pass, id, job);
	} else if (job->state == JOB_QUEUED || job->state == JOB_HELD ||
		   job->state == JOB_BLOCKED || job->state == JOB_PREEMPTED) {
		waiting_due(pass, id, job);
	} else { /* between attempts: its end is known, what follows is not decided yet */
		attempt = attempt_get(pass->facts, job->last_attempt);
		job_follow_up(pass, id, job, attempt, attempt_why(pass->facts, attempt));
	}
}

/* The drain's deadline is so near that it must be told now. */
static bool drain_is_due(const struct pass *pass, const struct job *job,
			 const struct attempt *attempt)
{
	int64_t at_ms = attempt->warned_ms ? 0 : attempt_drain_ms(pass->facts, job, attempt);

	return at_ms > DRAIN_NOW && at_ms <= pass->facts->now_ms;
}

static void limits_due(struct pass *pass)
{
	const struct facts *facts = pass->facts;
	struct sorted_walk walk;
	char duration[DURATION_TEXT_MAX];

	for (bool any = sorted_begin(&pass->view->pool, pass->view->deadlines, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(facts, (struct job_id){ walk.id });
		const struct attempt *attempt = attempt_get(facts, job->attempt);
		int64_t limit_ms = job_limit_end_ms(facts, job);

		if ((int64_t)walk.key > facts->now_ms) {
			pass_wake(pass, (int64_t)walk.key);
			return;
		}
		if (attempt->state == ATTEMPT_STOPPING || attempt->exited == attempt->tasks)
			continue;
		if (limit_ms && limit_ms <= facts->now_ms &&
		    !job_view_get(pass->view, walk.id)->due)
			attempt_stop(pass, job, STOP_LIMIT, grace_left_ms(facts, job, attempt),
				     arena_printf(pass->arena, "its run-time limit of %s is over",
						  format_duration(job->limit_ms, duration)));
		else if (drain_is_due(pass, job, attempt) &&
			 !job_view_get(pass->view, walk.id)->due)
			drain_due(pass, job, attempt);
	}
}

void lifecycle_due(struct pass *pass)
{
	struct sorted_walk walk;

	pass_expect(pass, sorted_size(&pass->view->pool, pass->view->due));
	for (bool any = sorted_begin(&pass->view->pool, pass->view->due, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		if (pass_is_spent(pass))
			return;
		job_due(pass, walk.id);
		pass->work++;
	}
	limits_due(pass);
}

/* --- winding down ------------------------------------------------------------------------------------------- */

/* The place that is promised to a job that moves is on spot nodes. */
static bool moves_to_spot(const struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct promise *promise =
		job->promise ? table_get(&pass->facts->promises, job->promise) : NULL;

	return promise && promise->node &&
	       node_get(pass->facts, (struct node_id){ promise->node })->capacity ==
		       CAPACITY_SPOT &&
	       job_chooses_capacity(pass->facts, job);
}

/* For whom it goes; itself: for nobody in particular. */
static const char *leave_text(struct pass *pass, uint32_t id, enum stop_why why, uint32_t for_job)
{
	if (why != STOP_MOVED)
		return arena_printf(pass->arena, "makes room for job %u", for_job);
	if (for_job == id && moves_to_spot(pass, id))
		return "moves to spot nodes, which cost less";
	if (for_job == id)
		return "moves to another place, where it is faster or free GPUs come to lie together";
	return arena_printf(pass->arena, "moves to another place, so that job %u fits", for_job);
}

void lifecycle_warned(struct pass *pass)
{
	const struct facts *facts = pass->facts;
	struct sorted_walk walk;

	for (bool any = sorted_begin(&pass->view->pool, pass->view->warned, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(facts, (struct job_id){ walk.id });
		const struct attempt *attempt = attempt_get(facts, job->attempt);
		enum stop_why why = !attempt->for_job ? attempt_leave_why(pass, attempt)
				    : job->promise    ? STOP_MOVED
						      : STOP_EVICTED;
		bool saved = job->checkpoints &&
			     attempt_saved_ms(facts, job, attempt) >= attempt->warned_ms;
		int64_t end_ms = attempt_until_ms(facts, attempt), grace_ms;
		bool over = facts->now_ms >= end_ms;
		const char *text;

		if (!saved && !over && !attempt->deaf) {
			pass_wake(pass, end_ms);
			continue;
		}
		text = attempt->for_job ? leave_text(pass, walk.id, why, attempt->for_job)
					: attempt_leave_text(pass, attempt);
		grace_ms = over                      ? 0
			   : attempt->deaf && !saved ? end_ms - facts->now_ms
						     : short_grace_ms(facts, job, attempt);
		attempt_stop(pass, job, why, grace_ms, text);
	}
}

void lifecycle_shrink(struct pass *pass, uint32_t id, const int64_t *ranks, uint32_t count,
		      uint32_t for_job)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	struct event_attempt_shrunk *e = &pass_emit(pass, EVENT_ATTEMPT_SHRUNK)->attempt_shrunk;

	e->attempt = job->attempt.v;
	e->for_job = for_job;
	e->grace_ms = job_grace_ms(pass->facts, job);
	e->ranks = ranks;
	e->ranks_count = count;
}

static void leave(struct pass *pass, uint32_t id, enum stop_why why, uint32_t for_job, bool at_once)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	int64_t grace_ms =
		time_to_save_ms(pass->facts, job, attempt_get(pass->facts, job->attempt));
	struct event_attempt_warned *e;

	if (at_once || grace_ms == 0) {
		attempt_stop(pass, job, why, 0, leave_text(pass, id, why, for_job));
		return;
	}
	e = &pass_emit(pass, EVENT_ATTEMPT_WARNED)->attempt_warned;
	e->attempt = job->attempt.v;
	e->for_job = for_job;
	e->deadline_ms = pass->facts->now_ms + grace_ms;
	pass_wake(pass, e->deadline_ms);
}

/* It has no time to save. */
static bool leaves_at_once(const struct job *job, const struct attempt *attempt)
{
	return job->tier == TIER_BEST_EFFORT || attempt->state == ATTEMPT_PREPARING;
}

int64_t lifecycle_leaves_ms(const struct pass *pass, uint32_t id)
{
	const struct facts *facts = pass->facts;
	const struct job *job = job_get(facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(facts, job->attempt);

	if (attempt_is_leaving(attempt))
		return attempt_until_ms(facts, attempt);
	return facts->now_ms +
	       (leaves_at_once(job, attempt) ? 0 : time_to_save_ms(facts, job, attempt));
}

void lifecycle_evict(struct pass *pass, uint32_t id, uint32_t for_job)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);

	leave(pass, id, STOP_EVICTED, for_job, leaves_at_once(job, attempt));
}

void lifecycle_move(struct pass *pass, uint32_t id, uint32_t for_job)
{
	leave(pass, id, STOP_MOVED, for_job, false);
}

/* --- black holes ----------------------------------------------------------------------------------------------- */

static const struct gpu_record *gpu_get(const struct facts *facts, uint32_t node, uint32_t gpu)
{
	return table_get(&facts->gpus, (node - 1) * NODE_GPUS_MAX + gpu + 1);
}

static bool gpu_failed_with(const struct gpu_record *gpu, uint32_t job)
{
	for (uint32_t i = 0; i < FAILED_JOBS_KEPT; i++)
		if (gpu->failed_job[i] == job)
			return true;
	return false;
}

/* GPUs in use that saw every failure that counts: they, not the node, are the black hole. */
static uint32_t gpus_to_blame(const struct facts *facts, uint32_t id)
{
	const struct node *node = node_get(facts, (struct node_id){ id });
	uint32_t mask = 0;

	for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++) {
		bool all = !(node->set_aside_mask >> gpu & 1);

		for (uint32_t i = 0; i < FAILED_JOBS_KEPT && node->failed_job[i]; i++)
			all = all &&
			      (!failure_counts(facts, id, i) ||
			       gpu_failed_with(gpu_get(facts, id, gpu), node->failed_job[i]));
		mask |= all ? UINT32_C(1) << gpu : 0;
	}
	return mask;
}

static bool node_may_go(const struct facts *facts)
{
	uint32_t nodes = 0, aside = 0, ready = 0;

	for (uint32_t id = 1; id <= facts->nodes.count; id++) {
		uint8_t state = node_get(facts, (struct node_id){ id })->state;

		nodes += state != NODE_GONE;
		aside += state == NODE_QUARANTINED;
		ready += state == NODE_READY;
	}
	return ready > 1 && aside < (nodes / ASIDE_PART > 1 ? nodes / ASIDE_PART : 1);
}

static bool gpus_may_go(const struct node *node, uint32_t mask)
{
	uint32_t aside = (uint32_t)__builtin_popcount(node->set_aside_mask | mask),
		 most = node->gpu_count / ASIDE_PART;

	return aside < node->gpu_count && aside <= (most > 1 ? most : 1);
}

static void node_due(struct pass *pass, uint32_t id)
{
	const struct node *node = node_get(pass->facts, (struct node_id){ id });
	uint32_t mask = gpus_to_blame(pass->facts, id), jobs;

	if (!node_failed_often(pass->facts, id, &jobs))
		return;
	if (mask && mask != gpus_all(node) && gpus_may_go(node, mask)) {
		struct event_gpu_state *e = &pass_emit(pass, EVENT_GPU_STATE)->gpu_state;

		e->node = id;
		e->mask = mask;
		e->set_aside = 1;
		e->reason = arena_printf(pass->arena, "%u different jobs failed early on it", jobs);
	} else if (node->state == NODE_READY && node_may_go(pass->facts)) {
		struct event_node_state *e = &pass_emit(pass, EVENT_NODE_STATE)->node_state;

		e->node = id;
		e->state = NODE_QUARANTINED;
		e->reason = arena_printf(pass->arena, "%u different jobs failed early on it", jobs);
	}
}

/* One node per pass, the first by rank: how many may go is counted in the facts. */
void lifecycle_nodes(struct pass *pass)
{
	uint32_t count = pass->count;

	if (!pass->view->nodes_due)
		return;
	for (uint32_t rank = 0; rank < pass->view->space.node_count && pass->count == count;
	     rank++) {
		uint32_t node = space_at(&pass->view->space, rank)->node;

		if (sorted_has(&pass->view->pool, pass->view->nodes_due, node, node))
			node_due(pass, node);
	}
}
