/* SPDX-License-Identifier: Apache-2.0 */
/* What the index asks of the facts: each answer depends on the facts alone, never on time passing. */
#include "core/scheduling/view/view.h"

#include "core/scheduling/queues/window.h"

/* Used when neither queue nor policy names one. */
#define RUN_DEFAULT_MS (INT64_C(24) * 3600 * 1000)

/* Failures further apart than this are not one story. */
#define FAILURE_MEMORY_MS (INT64_C(3600) * 1000)

int64_t queue_default_limit_ms(const struct facts *facts, struct queue_id queue)
{
	int64_t ms = queue_get(facts, queue)->default_limit_ms;

	if (!ms)
		ms = facts->policy.default_limit_ms;
	return ms ? ms : RUN_DEFAULT_MS;
}

int64_t job_expected_ms(const struct facts *facts, const struct job *job)
{
	int64_t ms = job->limit_ms ? job->limit_ms : job->estimate_ms;

	if (!ms)
		ms = (int64_t)job->likely_s * 1000;
	if (!ms)
		ms = queue_default_limit_ms(facts, job->queue);
	return ms > job->run_ms ? ms - job->run_ms : 1;
}

int64_t job_grace_ms(const struct facts *facts, const struct job *job)
{
	return job->grace_ms == UINT32_MAX ? facts->policy.grace_ms : (int64_t)job->grace_ms;
}

int64_t job_limit_end_ms(const struct facts *facts, const struct job *job)
{
	const struct attempt *attempt;
	int64_t left_ms = job->limit_ms - job->run_ms;

	if (!job->limit_ms || !job->attempt.v)
		return 0;
	attempt = attempt_get(facts, job->attempt);
	if (!attempt->released_ms)
		return 0;
	return attempt->released_ms + (left_ms > 0 ? left_ms : 0);
}

uint32_t job_dead_dependency(const struct facts *facts, const struct job *job)
{
	for (uint32_t row = job->depends; row;) {
		const struct depend *depend = table_get(&facts->depends, row);
		uint32_t dead = depend_dead(facts, depend);

		if (dead)
			return dead;
		row = depend->next;
	}
	return 0;
}

/* A rank that was told to leave has exited. */
static bool leaving_is_gone(const struct facts *facts, const struct attempt *attempt)
{
	for (uint32_t i = 0; attempt->leaving && i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);

		if (task->leaving && task->state == TASK_EXITED)
			return true;
	}
	return false;
}

/* Of tasks that somebody else made: while some leave with their nodes it was told that more have to go on than are left. */
static bool attempt_falls_short(const struct facts *facts, const struct job *job,
				const struct attempt *attempt)
{
	uint32_t stay = 0, least = attempt->least ? attempt->least : attempt_width(attempt);

	if (!job->external || !attempt->leaving || attempt->warned_ms ||
	    attempt->state != ATTEMPT_ACTIVE)
		return false;
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);

		stay += task_holds(task) && !task->leaving;
	}
	return stay < least;
}

static bool attempt_is_due(const struct facts *facts, const struct job *job,
			   const struct attempt *attempt)
{
	if (attempt->exited == attempt->tasks)
		return true;
	switch ((enum attempt_state)attempt->state) {
	case ATTEMPT_PREPARING:
		return job->cancel_asked || attempt->exited || attempt->ready == attempt->tasks;
	case ATTEMPT_ACTIVE:
		return job->cancel_asked || attempt->first_failed_rank >= 0 ||
		       leaving_is_gone(facts, attempt) ||
		       attempt_falls_short(facts, job, attempt) ||
		       (job->external && !attempt->parts_share &&
			attempt->exited != attempt->left) ||
		       (attempt->exited != attempt->left &&
			attempt_done_role(facts, attempt, shape_get(facts, job->shape)) <
				ROLES_MAX);
	case ATTEMPT_STOPPING:
	case ATTEMPT_FREE:
	case ATTEMPT_OVER: break;
	}
	return false;
}

static bool state_waits(uint8_t state)
{
	return state == JOB_QUEUED || state == JOB_HELD || state == JOB_BLOCKED ||
	       state == JOB_PREEMPTED;
}

bool job_is_due(const struct facts *facts, const struct job *job)
{
	if (job_state_is_final(job->state))
		return false;
	if (job->attempt.v)
		return attempt_is_due(facts, job, attempt_get(facts, job->attempt));
	if (!state_waits(job->state))
		return true; /* its attempt ended, and what follows was not decided yet */
	return job->cancel_asked || job_dead_dependency(facts, job);
}

bool job_chooses_capacity(const struct facts *facts, const struct job *job)
{
	const struct body *body;

	if (job_state_is_final(job->state) || !job->body || !job->checkpoints)
		return false;
	body = table_get(&facts->bodies, job->body);
	return body->capacity == CAPACITY_ANY && body->deadline_ms;
}

int64_t attempt_saved_ms(const struct facts *facts, const struct job *job,
			 const struct attempt *attempt)
{
	const struct checkpoint *checkpoint;

	if (!attempt->checkpoint_ms)
		return 0;
	checkpoint = job_checkpoint(facts, job, 0);
	return checkpoint && checkpoint->attempt == job->last_attempt.v ? checkpoint->at_ms : 0;
}

bool attempt_is_leaving(const struct attempt *attempt)
{
	return attempt->state == ATTEMPT_STOPPING || attempt->warned_ms;
}

int64_t attempt_told_share(const struct facts *facts, const struct attempt *attempt,
			   const struct shape *shape)
{
	int64_t gpus = 0;

	if (!attempt->leaving)
		return 0;
	if (!shape->role_count)
		return (int64_t)shape->gpus * GPU_SHARE * attempt->leaving;
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);

		if (task->leaving)
			gpus += shape_wish(shape, i).gpus;
	}
	return gpus * GPU_SHARE;
}

/* Drained: so that its grace ends with the deadline, or at once. */
static int64_t drain_tell_ms(const struct node *node, int64_t grace_ms)
{
	int64_t at_ms = node->drain_ms - grace_ms;

	return at_ms > DRAIN_NOW ? at_ms : DRAIN_NOW;
}

/* Closed at from_ms: likewise, but whoever is expected to have ended before is not disturbed while he keeps to that. He was placed
 * for that reason, and would be placed so again. */
static int64_t close_tell_ms(int64_t from_ms, int64_t grace_ms, int64_t end_ms)
{
	int64_t at_ms = from_ms - grace_ms;

	if (end_ms <= from_ms && at_ms < end_ms)
		at_ms = end_ms;
	return at_ms > DRAIN_NOW ? at_ms : DRAIN_NOW;
}

bool booking_moves(const struct facts *facts, const struct booking *booking, const struct job *job)
{
	return booking->name.v && job->tier != TIER_CRITICAL &&
	       (booking->keep || job->tier != TIER_BEST_EFFORT) &&
	       !booking_is_for(facts, booking, job);
}

bool booking_holds(const struct booking *booking, const struct task *task)
{
	for (uint32_t i = 0; i < BOOKING_NODES_MAX && booking->node[i]; i++)
		if (booking->node[i] == task->node.v)
			return !booking->gpus || booking->mask[i] & task->gpu_mask;
	return false;
}

static int64_t sooner_ms(int64_t a_ms, int64_t b_ms)
{
	return a_ms && (!b_ms || a_ms < b_ms) ? a_ms : b_ms;
}

int64_t attempt_window_ms(const struct facts *facts, const struct job *job,
			  const struct attempt *attempt)
{
	int64_t closes_ms = window_closes_ms(facts, job, attempt->placed_ms);

	return closes_ms == INT64_MAX
		       ? 0
		       : close_tell_ms(closes_ms, job_grace_ms(facts, job),
				       attempt->placed_ms + job_expected_ms(facts, job));
}

int64_t attempt_goes_ms(const struct facts *facts, const struct attempt *attempt, int64_t after_ms)
{
	int64_t first_ms = 0;

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);
		const struct node *node = node_get(facts, task->node);

		if (!task_holds(task))
			continue;
		if (node->state == NODE_DRAINING && node->drain_ms > after_ms)
			first_ms = sooner_ms(node->drain_ms, first_ms);
		if (node_has_window(node) && node->window_from_ms > after_ms)
			first_ms = sooner_ms(node->window_from_ms, first_ms);
	}
	return first_ms;
}

int64_t attempt_until_ms(const struct facts *facts, const struct attempt *attempt)
{
	int64_t until_ms, goes_ms;

	if (!attempt->warned_ms || attempt->state == ATTEMPT_STOPPING ||
	    attempt->state == ATTEMPT_OVER)
		return attempt->deadline_ms;
	until_ms = attempt->warned_ms + job_grace_ms(facts, job_get(facts, attempt->job));
	if (until_ms < attempt->deadline_ms)
		until_ms = attempt->deadline_ms;
	goes_ms = attempt_goes_ms(facts, attempt, attempt->warned_ms);
	return goes_ms && goes_ms < until_ms ? goes_ms : until_ms;
}

int64_t task_drain_ms(const struct facts *facts, const struct job *job,
		      const struct attempt *attempt, const struct task *task)
{
	/* Pods of others have a grace of their own, which is not known here: they are told as if it were the policy's. */
	int64_t grace_ms = job->external ? facts->policy.grace_ms : job_grace_ms(facts, job),
		end_ms = attempt->placed_ms + job_expected_ms(facts, job), first_ms = 0;
	const struct node *node = node_get(facts, task->node);

	if (!task_holds(task) || node->state == NODE_GONE || (job->external && task->leaving))
		return 0;
	if (node->state == NODE_DRAINING)
		first_ms = drain_tell_ms(node, grace_ms);
	if (node_has_window(node))
		first_ms =
			sooner_ms(close_tell_ms(node->window_from_ms, grace_ms, end_ms), first_ms);
	for (uint32_t row = 1; row <= facts->bookings.count; row++) {
		const struct booking *b = booking_get(facts, row);

		if (booking_moves(facts, b, job) && booking_holds(b, task))
			first_ms = sooner_ms(close_tell_ms(b->from_ms, grace_ms, end_ms), first_ms);
	}
	return first_ms;
}

int64_t attempt_drain_ms(const struct facts *facts, const struct job *job,
			 const struct attempt *attempt)
{
	int64_t first_ms = attempt_window_ms(facts, job, attempt);

	for (uint32_t i = 0; i < attempt->tasks; i++)
		first_ms =
			sooner_ms(task_drain_ms(facts, job, attempt,
						table_get(&facts->tasks, attempt->first_task + i)),
				  first_ms);
	return first_ms;
}

/* An attempt is left at its width for a while, so that it does not go to and fro: a tenth of the time for which the policy keeps
 * young work from eviction, and a little more. */
enum { GROW_PAUSE_LEAST_MS = 5000, GROW_PAUSE_MOST_MS = 60000 };

static int64_t grow_pause_ms(const struct facts *facts)
{
	int64_t pause_ms = GROW_PAUSE_LEAST_MS + facts->policy.min_runtime_ms / 10;

	return pause_ms < GROW_PAUSE_MOST_MS ? pause_ms : GROW_PAUSE_MOST_MS;
}

bool job_is_free(const struct facts *facts, const struct job *job)
{
	const struct shape *shape = shape_get(facts, job->shape);

	return job->resize == RESIZE_FREE && shape->tasks_max > shape->tasks_min;
}

int64_t attempt_grow_ms(const struct facts *facts, const struct job *job,
			const struct attempt *attempt)
{
	int64_t since_ms = attempt->resized_ms > attempt->released_ms ? attempt->resized_ms
								      : attempt->released_ms;

	if (attempt->state != ATTEMPT_ACTIVE || attempt->parts_share || attempt->warned_ms ||
	    attempt->unreachable || attempt->leaving || attempt->lacks_ms || job->cancel_asked ||
	    attempt->exited != attempt->left || attempt->started != attempt->tasks ||
	    !job_is_free(facts, job) ||
	    attempt_width(attempt) >= shape_get(facts, job->shape)->tasks_max)
		return 0;
	since_ms += grow_pause_ms(facts);
	return since_ms > 0 ? since_ms : 1;
}

bool attempt_may_be_evicted(const struct attempt *attempt)
{
	return !attempt->unreachable;
}

bool attempt_has_surplus(const struct facts *facts, const struct job *job,
			 const struct attempt *attempt)
{
	return job_is_free(facts, job) && !attempt->parts_share &&
	       attempt->exited == attempt->left && attempt->state == ATTEMPT_ACTIVE &&
	       attempt_width(attempt) > shape_get(facts, job->shape)->tasks_min + attempt->leaving;
}

/* The jobs of one array are one origin: ten copies of a program that does not start say nothing about a node. */
static uint32_t failure_origin(const struct facts *facts, uint32_t job)
{
	const struct job *j = job_get(facts, (struct job_id){ job });

	return j->array_first ? j->array_first : job;
}

static bool gpu_failed_with(const struct facts *facts, uint32_t node, uint32_t gpu, uint32_t job)
{
	const struct gpu_record *record =
		table_get(&facts->gpus, (node - 1) * NODE_GPUS_MAX + gpu + 1);

	for (uint32_t i = 0; i < FAILED_JOBS_KEPT; i++)
		if (record->failed_job[i] == job)
			return true;
	return false;
}

static bool failure_is_recent(const struct node *node, uint32_t failure)
{
	return node->failed_job[failure] &&
	       node->failed_ms[failure] + FAILURE_MEMORY_MS >= node->failed_ms[0];
}

/* Its program was not there. */
static bool failure_is_of_node(const struct facts *facts, uint32_t id, uint32_t failure)
{
	const struct node *node = node_get(facts, (struct node_id){ id });

	return node->gpu_count < NODE_GPUS_MAX && failure_is_recent(node, failure) &&
	       gpu_failed_with(facts, id, NODE_GPUS_MAX - 1, node->failed_job[failure]);
}

/* On a GPU that is not set aside already, or on a node without GPUs. */
static bool failure_is_of_gpu(const struct facts *facts, uint32_t id, uint32_t failure)
{
	const struct node *node = node_get(facts, (struct node_id){ id });

	if (!failure_is_recent(node, failure))
		return false;
	for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++)
		if (!(node->set_aside_mask >> gpu & 1) &&
		    gpu_failed_with(facts, id, gpu, node->failed_job[failure]))
			return true;
	return !node->gpu_count;
}

typedef bool failure_kind(const struct facts *facts, uint32_t id, uint32_t failure);

static bool several_users_failed(const struct facts *facts, uint32_t id, failure_kind *is_of_kind)
{
	const struct node *node = node_get(facts, (struct node_id){ id });
	struct name_id first = { 0 };

	for (uint32_t i = 0; i < FAILED_JOBS_KEPT; i++) {
		struct name_id user;

		if (!is_of_kind(facts, id, i))
			continue;
		user = job_get(facts, (struct job_id){ node->failed_job[i] })->user;
		if (!user.v) /* forgotten */
			continue;
		if (first.v && !name_same(first, user))
			return true;
		first = user;
	}
	return false;
}

bool failure_counts(const struct facts *facts, uint32_t id, uint32_t failure)
{
	if (failure_is_of_gpu(facts, id, failure))
		return several_users_failed(facts, id, failure_is_of_gpu);
	return failure_is_of_node(facts, id, failure) &&
	       several_users_failed(facts, id, failure_is_of_node);
}

bool node_failed_often(const struct facts *facts, uint32_t id, uint32_t *ret_jobs)
{
	const struct node *node = node_get(facts, (struct node_id){ id });
	uint32_t origins[FAILED_JOBS_KEPT], count = 0;

	for (uint32_t i = 0; i < FAILED_JOBS_KEPT; i++) {
		uint32_t known = 0, origin;

		if (!failure_counts(facts, id, i))
			continue;
		origin = failure_origin(facts, node->failed_job[i]);
		while (known < count && origins[known] != origin)
			known++;
		if (known == count)
			origins[count++] = origin;
	}
	if (ret_jobs)
		*ret_jobs = count;
	return facts->policy.blackhole_failures > 0 &&
	       (int64_t)count >= facts->policy.blackhole_failures;
}

bool node_is_left(const struct node *node)
{
	return node->state == NODE_DRAINING || node->state == NODE_MAINTENANCE ||
	       node_has_window(node);
}

uint32_t nodes_draining(const struct facts *facts)
{
	uint32_t count = 0;

	for (uint32_t id = 1; id <= facts->nodes.count; id++)
		count += node_is_left(node_get(facts, (struct node_id){ id }));
	for (uint32_t row = 1; row <= facts->bookings.count; row++)
		count += booking_get(facts, row)->name.v != 0;
	return count;
}

/* The end of one job of an array is that of the array when it is the last one, or no success. */
uint32_t array_ended_with(const struct facts *facts, uint32_t id)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	const struct body *body;

	if (!job->array_first)
		return 0;
	body = table_get(&facts->bodies, job->body);
	return job->state != JOB_SUCCEEDED || body->succeeded == job->array_count ? job->array_first
										  : 0;
}
