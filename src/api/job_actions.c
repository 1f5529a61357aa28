/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /api/v1/job-actions: one of the verbs of jobs, for many of them at once: of a list, or those that the queries of the list of jobs mean.
 * Each job is asked for the permission of the verb's own route: what one may not do to one job one may not do to it among others.
 */
#include <string.h>

#include "api/job_filter.h"
#include "api/many.h"
#include "base/check.h"
#include "base/parse.h"

struct verb {
	const char *name;
	enum route_id route;
	enum event_kind kind;
};

static const struct verb verbs[] = {
	{ "cancel", ROUTE_job_cancel, EVENT_JOB_CANCEL_ASKED },
	{ "hold", ROUTE_job_hold, EVENT_JOB_HELD },
	{ "release", ROUTE_job_release, EVENT_JOB_RELEASED },
	{ "priority", ROUTE_job_priority, EVENT_JOB_PRIORITY_SET },
};

struct action {
	const struct verb *verb;
	const char *reason;
	int64_t priority;
	const char *jobs; /* "12,40-47"; NULL = by the queries */
	struct event event; /* but for the number of the job */
};

static int verb_read(const struct conf *body, const struct verb **ret, struct err *err)
{
	const char *words[ARRAY_SIZE(verbs)], *text = "";
	bool given;

	if (body_text(body, "action", ERR_TEXT_MAX, &text, &given, err) < 0)
		return -(int)err->code;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		words[i] = verbs[i].name;
		if (strcmp(text, verbs[i].name) == 0) {
			*ret = &verbs[i];
			return 0;
		}
	}
	return err_set(err, ERR_INVALID,
		       "action: expected cancel, hold, release or priority, not \"%.40s\"%s%s",
		       text, spelling_hint(text, words, ARRAY_SIZE(words)) ? "; did you mean " : "",
		       spelling_hint(text, words, ARRAY_SIZE(words))
			       ? spelling_hint(text, words, ARRAY_SIZE(words))
			       : "");
}

static int action_read(struct call *call, struct action *ret, struct err *err)
{
	bool reason, priority, jobs;
	const struct conf *body;

	*ret = (struct action){ .reason = "" };
	if (call_body(call, &body, err) < 0 || verb_read(body, &ret->verb, err) < 0 ||
	    body_text(body, "reason", EVENT_TEXT_MAX - 1, &ret->reason, &reason, err) < 0 ||
	    body_int(body, "priority", -1000, 1000, &ret->priority, &priority, err) < 0 ||
	    body_text(body, "jobs", 1 << 16, &ret->jobs, &jobs, err) < 0)
		return -(int)err->code;
	if (priority != (ret->verb->kind == EVENT_JOB_PRIORITY_SET))
		return err_set(err, ERR_INVALID,
			       "priority is for the action priority, which needs it");
	if (reason && ret->verb->kind != EVENT_JOB_CANCEL_ASKED &&
	    ret->verb->kind != EVENT_JOB_HELD)
		return err_set(err, ERR_INVALID, "reason is for the actions cancel and hold");
	return 0;
}

static void event_fill(struct call *call, struct action *action)
{
	action->event = call_event(call, action->verb->kind);
	if (action->verb->kind == EVENT_JOB_CANCEL_ASKED)
		action->event.job_cancel_asked.reason = action->reason;
	else if (action->verb->kind == EVENT_JOB_HELD)
		action->event.job_held.reason = action->reason;
	else if (action->verb->kind == EVENT_JOB_PRIORITY_SET)
		action->event.job_priority_set =
			(struct event_job_priority_set){ .priority = action->priority,
							 .by = call->caller.id };
}

static void event_make_for(const struct many *many, uint32_t index, struct event *ret)
{
	const struct action *action = many->context;
	const int64_t job = many->jobs[index];

	*ret = action->event;
	if (ret->kind == EVENT_JOB_CANCEL_ASKED)
		ret->job_cancel_asked.job = job;
	else if (ret->kind == EVENT_JOB_HELD)
		ret->job_held.job = job;
	else if (ret->kind == EVENT_JOB_RELEASED)
		ret->job_released.job = job;
	else
		ret->job_priority_set.job = job;
}

/* --- which --------------------------------------------------------------------------------------------------- */

/* "12" or "40-47". */
static int range_read(const char *text, size_t size, struct arena *arena, int64_t *ret_from,
		      int64_t *ret_to, struct err *err)
{
	const char *dash = memchr(text, '-', size);
	const size_t first = dash ? (size_t)(dash - text) : size;
	struct err why;

	if (parse_int(arena_strndup(arena, text, first), 1, UINT32_MAX, ret_from, &why) < 0 ||
	    (dash && parse_int(arena_strndup(arena, dash + 1, size - first - 1), 1, UINT32_MAX,
			       ret_to, &why) < 0))
		return err_set(err, ERR_INVALID, "jobs: %s; expected numbers such as 12,40-47",
			       why.text);
	if (!dash)
		*ret_to = *ret_from;
	return *ret_from <= *ret_to ? 0
				    : err_set(err, ERR_INVALID,
					      "jobs: %lld-%lld: the smaller number comes first",
					      (long long)*ret_from, (long long)*ret_to);
}

enum { JOBS_MAX = 20000 };

static int listed(const struct call *call, const char *list, uint32_t *jobs, uint32_t *ret_count,
		  struct err *err)
{
	for (; *list; list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',')) {
		int64_t from, to;

		if (range_read(list, strcspn(list, ","), call->arena, &from, &to, err) < 0)
			return -(int)err->code;
		for (; from <= to; from++) {
			if (from > call->facts->jobs.count)
				return err_set(err, ERR_NOT_FOUND, "job %lld does not exist",
					       (long long)from);
			if (*ret_count == JOBS_MAX)
				return err_set(err, ERR_TOO_LARGE,
					       "more than %d jobs are named; name fewer at once",
					       JOBS_MAX);
			jobs[(*ret_count)++] = (uint32_t)from;
		}
	}
	return 0;
}

static int meant(struct call *call, const struct action *action, uint32_t **ret_jobs,
		 uint32_t *ret_count, struct err *err)
{
	const struct facts *f = call->facts;
	struct job_filter filter;

	*ret_count = 0;
	*ret_jobs = arena_new_array(call->arena, uint32_t,
				    action->jobs ? (size_t)JOBS_MAX : (size_t)f->jobs.count + 1);
	if (action->jobs)
		return listed(call, action->jobs, *ret_jobs, ret_count, err);
	if (job_filter_read(call, &filter, err) < 0)
		return -(int)err->code;
	filter.open = true;
	for (uint32_t id = 1; !filter.nothing && id <= f->jobs.count; id++)
		if (job_filter_takes(&filter, job_get(f, (struct job_id){ id })))
			(*ret_jobs)[(*ret_count)++] = id;
	return 0;
}

/* Without any query it would be everybody's jobs. */
static bool nothing_said(const struct call *call, const struct action *action)
{
	static const char *const which[] = { "state", "user", "team", "queue", "name" };

	for (size_t i = 0; i < ARRAY_SIZE(which); i++)
		if (call_query(call, which[i]))
			return false;
	return !action->jobs && !call_query_int(call, "mine", 0) &&
	       !call_query_given(call, "array");
}

/* The jobs that the caller has permission for. The others are noted as refused. */
static struct many *permitted(struct call *call, const struct action *action, uint32_t *jobs,
			      uint32_t count)
{
	const struct route *own = call->route;
	struct many *many = many_create(call, jobs, 0);

	call->route = route_get(action->verb->route);
	for (uint32_t i = 0; i < count; i++) {
		const struct job_id id = { jobs[i] };
		struct err err = { 0 };

		if (call_permit(call, relation_of_job(call, id, job_get(call->facts, id)),
				arena_printf(call->arena, "job %u", id.v), &err) < 0)
			many_refused(many, &err);
		else
			jobs[many->count++] = id.v;
	}
	many->matched += many->count;
	call->route = own;
	call->permitted = true; /* each of those that are left was asked for */
	return many;
}

static void action_counted(struct call *call, const struct many *many)
{
	struct buf out = BUF_INIT;

	out_object(&out, NULL);
	out_int(&out, "matched", many->matched);
	out_int(&out, "done", 0);
	out_int(&out, "already", 0);
	out_int(&out, "failed", many->failed);
	out_int(&out, "seq", (int64_t)call->facts->seq);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

void handle_job_actions(struct call *call)
{
	struct action *action = arena_new(call->arena, struct action);
	struct many *many;
	uint32_t *jobs, count;
	struct err err = { 0 };

	if (action_read(call, action, &err) < 0 || meant(call, action, &jobs, &count, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (nothing_said(call, action)) {
		err_set(&err, ERR_INVALID,
			"say which jobs: the field \"jobs\", or a query such as array, mine, user or queue");
		call_fail(call, &err);
		return;
	}
	event_fill(call, action);
	many = permitted(call, action, jobs, count);
	if (call_query_int(call, "dry_run", 0)) {
		action_counted(call, many);
		return;
	}
	many->make = event_make_for;
	many->context = action;
	many_send(many);
}
