/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: what lists and the full view have in common, and the verbs. Lists are job_list.c, submission submit.c, the full view job_show.c. */
#include <stdio.h>
#include <string.h>
#include "api/job_show.h"
#include "api/money.h"
#include "api/tally.h"
#include "base/check.h"
#include "core/model/gpu_wish.h"

_Static_assert((int)SLICE_TEXT_MAX <= (int)GPU_WISH_TEXT_MAX, "either has room");
/* As it was asked for: "0.5", "1/7", "2000MiB", "1g.10gb"; "" for whole GPUs. */
static const char *gpu_part_text(const struct shape *shape, char ret[GPU_WISH_TEXT_MAX])
{
	const struct gpu_wish wish = { 1, shape->gpu_part };

	if (shape->slice)
		return slice_wish_text(shape->slice, ret);
	if (shape->gpu_part)
		return gpu_wish_text(&wish, ret);
	ret[0] = '\0';
	if (shape->gpu_part_mib)
		(void)snprintf(ret, GPU_WISH_TEXT_MAX, "%uMiB", shape->gpu_part_mib);
	return ret;
}

/* What is expected of the place it has, where that is known. */
static void speed_add(struct buf *out, const struct facts *f, const struct job *job)
{
	const struct attempt *attempt = job_is_live(job) ? attempt_get(f, job->attempt) : NULL;

	if (!attempt)
		return;
	if (attempt->slowdown_permille) {
		out_int(out, "bandwidth_mbps", attempt->bandwidth_mbps);
		out_int(out, "slowdown_permille", attempt->slowdown_permille);
	}
	transfer_add(out, f, job->queue, attempt->transfer_ms, attempt->transfer_micro);
}

void job_head_add(struct buf *out, const struct facts *f, uint32_t id, const struct job *job)
{
	const struct shape *shape = shape_get(f, job->shape);
	char part[GPU_WISH_TEXT_MAX];

	out_int(out, "id", id);
	out_text(out, "name", facts_name(f, job->name));
	out_text(out, "user", facts_name(f, job->user));
	out_text(out, "team", facts_name(f, job->team));
	out_text(out, "queue", job->queue.v ? facts_name(f, queue_get(f, job->queue)->name) : "");
	out_text(out, "project", facts_name(f, job->project));
	out_text(out, "kind", kind_name(job->kind));
	out_text(out, "tier", tier_name(job->tier));
	out_int(out, "priority", job->priority);
	out_text(out, "state", job_state_name(job->state));
	out_int(out, "state_ms", job->state_ms);
	out_int(out, "submitted_ms", job->submitted_ms);
	out_int(out, "tasks_min", shape->tasks_min);
	out_int(out, "tasks_max", shape->tasks_max);
	out_int(out, "tasks", job_is_live(job) ? attempt_width(attempt_get(f, job->attempt)) : 0);
	out_int(out, "gpus_per_task", shape->gpus);
	out_text(out, "gpu_part", gpu_part_text(shape, part));
	out_share(out, "gpus", job_share_held(f, job));
	out_int(out, "attempt_count", job->attempts);
	out_int(out, "exit_code", job->exit_code);
	speed_add(out, f, job);
	if (job->array_count > 1) {
		out_int(out, "array_first", job->array_first);
		out_int(out, "array_count", job->array_count);
		out_int(out, "array_limit",
			((const struct body *)table_get(&f->bodies, job->body))->array_limit);
	}
}

/* --- verbs ------------------------------------------------------------------------------------------------------------ */

/* Body of a verb that may say why. */
static int reason_read(struct call *call, const char **ret, struct err *err)
{
	const struct conf *body;
	bool given;

	*ret = "";
	if (call_body(call, &body, err) < 0)
		return -(int)ERR_INVALID;
	return body_text(body, "reason", EVENT_TEXT_MAX - 1, ret, &given, err);
}

static uint32_t path_job(struct call *call)
{
	struct err err = { 0 };
	struct job_id id = { 0 };
	const struct job *job;

	/* was there a moment ago, in the same facts */
	CHECK(call_job(call, &id, &job, &err) == 0);
	return id.v;
}

void handle_job_cancel(struct call *call)
{
	struct event event = call_event(call, EVENT_JOB_CANCEL_ASKED);
	struct err err = { 0 };

	event.job_cancel_asked.job = path_job(call);
	if (reason_read(call, &event.job_cancel_asked.reason, &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}

void handle_job_hold(struct call *call)
{
	struct event event = call_event(call, EVENT_JOB_HELD);
	struct err err = { 0 };

	event.job_held.job = path_job(call);
	if (reason_read(call, &event.job_held.reason, &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}

void handle_job_release(struct call *call)
{
	struct event event = call_event(call, EVENT_JOB_RELEASED);
	const struct conf *body;
	struct err err = { 0 };

	event.job_released.job = path_job(call);
	if (call_body(call, &body, &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}

void handle_job_priority(struct call *call)
{
	struct event event = call_event(call, EVENT_JOB_PRIORITY_SET);
	const struct conf *body;
	struct err err = { 0 };
	bool given;

	event.job_priority_set.job = path_job(call);
	event.job_priority_set.by = call->caller.id;
	if (call_body(call, &body, &err) < 0 ||
	    body_int(body, "priority", -1000, 1000, &event.job_priority_set.priority, &given,
		     &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (!given) {
		err_set(&err, ERR_INVALID,
			"the request body needs the field \"priority\", -1000 to 1000");
		call_fail(call, &err);
		return;
	}
	call_send(call, &event);
}
