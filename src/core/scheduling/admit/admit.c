/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may become a fact. A command is checked against the facts as they are; what passes is applied as it stands.
 * Facts from engines pass when they are about a live attempt; decisions never come from outside.
 */
#include "core/scheduling/admit/admit.h"

#include "base/arena.h"
#include "core/model/apply.h"
#include "core/scheduling/admit/queue_rights.h"
#include "core/scheduling/life/pause.h"

/* --- jobs --------------------------------------------------------------------------------------------------------------- */

const struct job *admit_job_open(const struct admission *a, int64_t id, const char *what)
{
	const struct job *job;

	if (id < 1 || id > (int64_t)a->facts->jobs.count) {
		err_set(a->err, ERR_NOT_FOUND, "job %lld does not exist", (long long)id);
		return NULL;
	}
	if (!job_is_there(a->facts, id)) {
		err_set(a->err, ERR_CONFLICT,
			"job %lld ended long ago, or its record was lost: it can't be %s any more",
			(long long)id, what);
		return NULL;
	}
	job = job_get(a->facts, (struct job_id){ (uint32_t)id });
	if (!job_state_is_final(job->state))
		return job;
	err_set(a->err, ERR_CONFLICT, "job %lld \"%s\" has ended as %s and can't be %s any more",
		(long long)id, facts_name(a->facts, job->name), job_state_name(job->state), what);
	return NULL;
}

int admit_job_failure(const struct admission *a)
{
	return a->err && a->err->code != ERR_NONE ? -(int)a->err->code : -(int)ERR_CONFLICT;
}

static int admit_job_held(const struct admission *a, const struct event_job_held *e)
{
	const struct job *job = admit_job_open(a, e->job, "held");

	if (!job)
		return admit_job_failure(a);
	return job->held ? CORE_ALREADY : admit_text(a, "the reason", e->reason);
}

static int admit_job_released(const struct admission *a, const struct event_job_released *e)
{
	const struct job *job = admit_job_open(a, e->job, "released");

	if (!job)
		return admit_job_failure(a);
	return job->held || job_pause_until_ms(a->facts, job) > a->facts->now_ms ? 0 : CORE_ALREADY;
}

static int admit_job_cancel_asked(const struct admission *a, const struct event_job_cancel_asked *e)
{
	const struct job *job = admit_job_open(a, e->job, "cancelled");

	if (!job)
		return admit_job_failure(a);
	return job->cancel_asked ? CORE_ALREADY : admit_text(a, "the reason", e->reason);
}

static int admit_job_priority_set(const struct admission *a, const struct event_job_priority_set *e)
{
	const struct job *job = admit_job_open(a, e->job, "given another priority");
	uint32_t user;
	int rc;

	if (!job)
		return admit_job_failure(a);
	rc = admit_range(a, "a priority", e->priority, -PRIORITY_MOST, PRIORITY_MOST);
	if (rc == 0)
		rc = rights_asker(a, e->by, &user);
	if (rc == 0)
		rc = rights_priority(a,
				     arena_printf(a->arena, "job %lld \"%s\"", (long long)e->job,
						  facts_name(a->facts, job->name)),
				     user, job->queue, job->priority, e->priority);
	if (rc < 0)
		return rc;
	return job->priority == e->priority ? CORE_ALREADY : 0;
}

/* --- reports ------------------------------------------------------------------------------------------------------------- */

/* What is said of an attempt that is over, or not its job's, is known or too late: nothing to apply. */
static int admit_report(const struct admission *a, int64_t attempt)
{
	struct attempt_id id = { (uint32_t)attempt };

	if (!attempt_is_there(a->facts, attempt))
		return err_set(a->err, ERR_NOT_FOUND, "attempt %lld does not exist",
			       (long long)attempt);
	return job_get(a->facts, attempt_get(a->facts, id)->job)->attempt.v == id.v ? 0
										    : CORE_ALREADY;
}

/* Those that the facts can't do without yet are left out. */
static int admit_jobs_forgotten(const struct admission *a, struct event_jobs_forgotten *e)
{
	int64_t *jobs = arena_new_array(a->arena, int64_t, e->jobs_count + 1);
	uint32_t count = 0;

	for (uint32_t i = 0; i < e->jobs_count; i++)
		if (job_is_there(a->facts, e->jobs[i]) &&
		    job_may_be_forgotten(a->facts, (struct job_id){ (uint32_t)e->jobs[i] }))
			jobs[count++] = e->jobs[i];
	e->jobs = jobs;
	e->jobs_count = count;
	return count ? 0 : CORE_ALREADY;
}

static int refuse_decision(const struct admission *a, const struct event *event)
{
	const struct event_info *info = event_info(event->kind);

	return err_set(a->err, ERR_INVALID, "\"%s\" is decided by the core and can't be asked for",
		       info ? info->name : "an unknown kind");
}

int core_admit(const struct facts *facts, const struct view *view, struct event *event,
	       struct arena *arena, uint32_t *ret_job, struct err *err)
{
	struct admission a = { .facts = facts, .arena = arena, .ret_job = ret_job, .err = err };

	(void)view;
	a.now_ms = event->time_ms > facts->now_ms ? event->time_ms : facts->now_ms;
	switch (event->kind) {
	case EVENT_DAEMON_STARTED:
	case EVENT_DECIDED:
	case EVENT_RECORDS_LOST:
	case EVENT_ENGINE_CLAIMED:
	case EVENT_CLOCK_TICKED: return 0;
	case EVENT_POLICY_SET: return admit_policy_set(&a, &event->policy_set);
	case EVENT_LEVELS_SET: return admit_levels_set(&a, &event->levels_set);
	case EVENT_NODE_SET: return admit_node_set(&a, &event->node_set);
	case EVENT_NODE_STATE: return admit_node_state(&a, &event->node_state);
	case EVENT_BOOKING_SET: return admit_booking_set(&a, &event->booking_set);
	case EVENT_BOOKING_ENDED: return admit_booking_ended(&a, &event->booking_ended);
	case EVENT_NODE_WINDOW: return admit_node_window(&a, &event->node_window);
	case EVENT_NODE_MARKED: return admit_node_marked(&a, &event->node_marked);
	case EVENT_NODE_MASK: return admit_node_mask(&a, &event->node_mask);
	case EVENT_NODE_FOUND: return admit_node_found(&a, &event->node_found);
	case EVENT_NODE_NUMA: return admit_node_numa(&a, &event->node_numa);
	case EVENT_GPU_STATE: return admit_gpu_state(&a, &event->gpu_state);
	case EVENT_LAYOUT_SET: return admit_layout_set(&a, &event->layout_set);
	case EVENT_FABRIC_SET: return admit_fabric_set(&a, &event->fabric_set);
	case EVENT_QUEUE_SET: return admit_queue_set(&a, &event->queue_set);
	case EVENT_DATA_SET: return admit_data_set(&a, &event->data_set);
	case EVENT_TRANSFER_SET: return admit_transfer_set(&a, &event->transfer_set);
	case EVENT_PRICE_SET: return admit_price_set(&a, &event->price_set);
	case EVENT_ZONE_SET: return admit_zone_set(&a, &event->zone_set);
	case EVENT_BUDGET_SET: return admit_budget_set(&a, &event->budget_set);
	case EVENT_QUEUE_REMOVED: return admit_queue_removed(&a, &event->queue_removed);
	case EVENT_TEAM_SET: return admit_team_set(&a, &event->team_set);
	case EVENT_TEAM_REMOVED: return admit_team_removed(&a, &event->team_removed);
	case EVENT_USER_SET: return admit_user_set(&a, &event->user_set);
	case EVENT_USER_REMOVED: return admit_user_removed(&a, &event->user_removed);
	case EVENT_TOKEN_CREATED: return admit_token_created(&a, &event->token_created);
	case EVENT_TOKEN_REVOKED: return admit_token_revoked(&a, &event->token_revoked);
	case EVENT_JOB_SUBMITTED: return admit_job_submitted(&a, &event->job_submitted);
	case EVENT_JOB_HELD: return admit_job_held(&a, &event->job_held);
	case EVENT_JOB_RELEASED: return admit_job_released(&a, &event->job_released);
	case EVENT_JOB_CANCEL_ASKED: return admit_job_cancel_asked(&a, &event->job_cancel_asked);
	case EVENT_JOB_PRIORITY_SET: return admit_job_priority_set(&a, &event->job_priority_set);
	case EVENT_JOB_CHANGED: return admit_job_changed(&a, &event->job_changed);
	case EVENT_ATTEMPT_UNREACHABLE: return admit_report(&a, event->attempt_unreachable.attempt);
	case EVENT_ATTEMPT_SHIELDED: return admit_report(&a, event->attempt_shielded.attempt);
	case EVENT_ATTEMPT_DEAF: return admit_report(&a, event->attempt_deaf.attempt);
	case EVENT_TASK_READY: return admit_report(&a, event->task_ready.attempt);
	case EVENT_TASK_STARTED: return admit_report(&a, event->task_started.attempt);
	case EVENT_TASK_EXITED: return admit_report(&a, event->task_exited.attempt);
	case EVENT_PROGRESS: return admit_report(&a, event->progress.attempt);
	case EVENT_CHECKPOINT_SAVED: return admit_report(&a, event->checkpoint_saved.attempt);
	case EVENT_CHECKPOINT_VOID: return admit_checkpoint_void(&a, &event->checkpoint_void);
	case EVENT_JOBS_FORGOTTEN: return admit_jobs_forgotten(&a, &event->jobs_forgotten);
	case EVENT_DEFRAG_ASKED: return facts->moves.asked ? CORE_ALREADY : 0;
	case EVENT_NONE:
	case EVENT_SEARCHED:
	case EVENT_CAPACITY_CHOSEN:
	case EVENT_JOB_REQUEUED:
	case EVENT_JOB_ENDED:
	case EVENT_ATTEMPT_PLACED:
	case EVENT_ATTEMPT_RELEASED:
	case EVENT_ATTEMPT_WARNED:
	case EVENT_ATTEMPT_SPARED:
	case EVENT_ATTEMPT_STOPPED:
	case EVENT_ATTEMPT_ENDED:
	case EVENT_ATTEMPT_SHRUNK:
	case EVENT_ATTEMPT_GROWN:
	case EVENT_RANKS_LEFT:
	case EVENT_PROMISE_MADE:
	case EVENT_PROMISE_DROPPED:
	case EVENT_RESERVATIONS_REVIEWED:
	case EVENT_RESERVATION_SET:
	case EVENT_RESERVATION_DROPPED:
	case EVENT_MOVES_PLANNED:
	case EVENT_KIND_LIMIT: break;
	}
	return refuse_decision(&a, event);
}
