/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: lists and the verbs. Submission is submit.c, the full view job_show.c. */
#include <stdio.h>
#include <string.h>
#include "api/job_show.h"
#include "api/money.h"
#include "api/planner.h"
#include "api/tally.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/model/gpu_wish.h"

enum { DAY_MS = 86400000 };

struct job_filter {
	uint32_t states; /* bit per state */
	struct name_id user, team, name;
	struct queue_id queue;
	bool nothing; /* a name was asked for that nobody bears */
	int64_t ended_after_ms;
};

static int states_read(const char *text, struct arena *arena, uint32_t *ret, struct err *err)
{
	static const char *words[JOB_STATES - JOB_QUEUED];

	for (uint8_t i = JOB_QUEUED; i < JOB_STATES; i++)
		words[i - JOB_QUEUED] = job_state_name(i);
	*ret = 0;
	while (*text) {
		const size_t size = strcspn(text, ",");
		const char *word = arena_strndup(arena, text, size), *hint;
		uint8_t state;

		if (!job_state_find(word, &state)) {
			hint = spelling_hint(word, words, ARRAY_SIZE(words));
			return err_set(err, ERR_INVALID, "there is no job state \"%.40s\"%s%s%s",
				       word, hint ? "; did you mean \"" : "", hint ? hint : "",
				       hint ? "\"" : "");
		}
		*ret |= 1u << state;
		text += size + (text[size] == ',');
	}
	return 0;
}

static struct name_id name_asked(const struct call *call, const char *query, bool *ret_nothing)
{
	const char *text = call_query(call, query);
	struct name_id id = { 0 };

	if (!text)
		return id;
	id = facts_name_find(call->facts, text);
	if (!id.v)
		*ret_nothing = true;
	return id;
}

static int filter_read(struct call *call, struct job_filter *ret, struct err *err)
{
	const char *states = call_query(call, "state"), *queue = call_query(call, "queue");

	memset(ret, 0, sizeof *ret);
	ret->states = UINT32_MAX;
	if (states && states_read(states, call->arena, &ret->states, err) < 0)
		return -(int)ERR_INVALID;
	ret->user = name_asked(call, "user", &ret->nothing);
	ret->team = name_asked(call, "team", &ret->nothing);
	ret->name = name_asked(call, "name", &ret->nothing);
	if (queue) {
		ret->queue = facts_queue_find(call->facts, queue);
		ret->nothing = ret->nothing || !ret->queue.v;
	}
	/* Whoever asks for a state wants all that are in it. */
	if (call_query_int(call, "active", states ? 0 : 1))
		ret->ended_after_ms = call->facts->now_ms - DAY_MS;
	return 0;
}

static bool filter_takes(const struct job_filter *filter, const struct job *job)
{
	return job->submitted_ms && (filter->states >> job->state & 1) &&
	       (!filter->user.v || filter->user.v == job->user.v) &&
	       (!filter->team.v || filter->team.v == job->team.v) &&
	       (!filter->name.v || filter->name.v == job->name.v) &&
	       (!filter->queue.v || filter->queue.v == job->queue.v) &&
	       (!job_state_is_final(job->state) || job->state_ms > filter->ended_after_ms);
}

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

/* The view for a list's reasons, entered with the first job that waits. */
struct reasons {
	struct view *view;
	const struct facts *facts;
	bool estimates; /* and when each is likely to start, where a plan is at hand */
};

static void reason_add(struct call *call, struct buf *out, uint32_t id, const struct job *job,
		       struct reasons *reasons)
{
	struct explanation e = { 0 };

	if (!job_wants_reason(job)) {
		out_text(out, "reason", job_last_reason(call->facts, job));
		out_text(out, "reason_code", "");
		return;
	}
	if (!reasons->view)
		reasons->view = planner_enter(call->api->planner, call->frozen, 0, &reasons->facts);
	explain_job(reasons->facts, reasons->view, (struct job_id){ id }, call->arena, &e);
	out_text(out, "reason", e.summary);
	out_text(out, "reason_code", reason_name(e.reason));
}

static void summary_add(struct call *call, struct buf *out, uint32_t id, const struct job *job,
			struct reasons *reasons)
{
	const struct facts *f = call->facts;
	struct estimate estimate;

	out_object(out, NULL);
	job_head_add(out, f, id, job);
	reason_add(call, out, id, job, reasons);
	if (reasons->estimates && job_is_waiting(job) &&
	    forecast_ask(call->api->forecasts, f, id, 0, &estimate) == 0 &&
	    estimate.answer.start_ms != PLAY_NEVER)
		out_int(out, "start_ms", estimate.answer.start_ms);
	out_bool(out, "simulated", job_simulated(f, job));
	out_end(out, '}');
}

void handle_job_list(struct call *call)
{
	struct job_filter filter;
	struct reasons reasons = { 0 };
	struct err err = { 0 };
	struct buf out = BUF_INIT;
	uint32_t limit, count = 0, last = 0;
	int64_t after;
	bool more = false;

	if (call_page(call, &after, &limit, &err) < 0 || filter_read(call, &filter, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	reasons.estimates = call_query_int(call, "estimates", 0);
	out_object(&out, NULL);
	out_list(&out, "jobs");
	for (int64_t id = after + 1; id <= call->facts->jobs.count && !filter.nothing && !more;
	     id++) {
		const struct job *job = job_get(call->facts, (struct job_id){ (uint32_t)id });

		if (!filter_takes(&filter, job))
			continue;
		more = count == limit;
		if (more)
			break;
		summary_add(call, &out, (uint32_t)id, job, &reasons);
		last = (uint32_t)id;
		count++;
	}
	if (reasons.view)
		planner_leave(call->api->planner);
	out_end(&out, ']');
	if (more)
		out_int(&out, "next", last);
	out_int(&out, "seq", (int64_t)call->facts->seq);
	out_end(&out, '}');
	call_reply(call, 200, &out);
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
