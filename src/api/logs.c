/* SPDX-License-Identifier: Apache-2.0 */
/* Logs: which rank of which attempt is meant. */
#include <string.h>
#include "api/call.h"
#include "api/jobfile/jobfile.h"
#include "api/log_feed.h"
#include "api/tally.h"
#include "base/parse.h"

/* The attempt asked for, which must be one of this job's. */
static int attempt_choose(struct call *call, uint32_t id, const struct job *job, uint32_t *ret,
			  struct err *err)
{
	const int64_t asked = call_query_int(call, "attempt", 0);
	struct attempt_id newest;

	(void)job_newest(call->facts, job, &newest);
	if (!newest.v)
		return err_set(err, ERR_NOT_FOUND,
			       "job %u has not started yet, so it has printed nothing", id);
	if (!call_query_given(call, "attempt")) {
		*ret = newest.v;
		return 0;
	}
	if (asked < 1 || asked > call->facts->attempts.count ||
	    attempt_get(call->facts, (struct attempt_id){ (uint32_t)asked })->job.v != id)
		return err_set(err, ERR_NOT_FOUND, "job %u has no attempt %lld", id,
			       (long long)asked);
	*ret = (uint32_t)asked;
	return 0;
}

static int rank_read(struct call *call, uint32_t job, uint32_t attempt, uint32_t *ret,
		     struct err *err)
{
	const char *text = call->match.param[1];
	const uint32_t tasks = attempt_get(call->facts, (struct attempt_id){ attempt })->tasks;
	int64_t rank;

	if (parse_int(text, 0, TASKS_MAX - 1, &rank, NULL) < 0)
		return err_set(err, ERR_INVALID, "rank \"%.40s\": expected a number from 0", text);
	if (rank >= tasks)
		return err_set(err, ERR_NOT_FOUND, "job %u, attempt %u has no rank %lld; it has %u",
			       job, attempt, (long long)rank, tasks);
	*ret = (uint32_t)rank;
	return 0;
}

static int wish_read(struct call *call, struct log_wish *ret, struct err *err)
{
	const char *stream = call_query(call, "stream");
	const struct job *job;
	struct job_id id;
	int rc = call_job(call, &id, &job, err);

	if (rc >= 0)
		rc = attempt_choose(call, id.v, job, &ret->attempt, err);
	if (rc >= 0)
		rc = rank_read(call, id.v, ret->attempt, &ret->rank, err);
	if (rc < 0)
		return rc;
	ret->job = id.v;
	ret->errors = stream && !strcmp(stream, "stderr");
	if (stream && !ret->errors && strcmp(stream, "stdout") != 0)
		return err_set(err, ERR_INVALID, "?stream=%.40s: expected stdout or stderr",
			       stream);
	ret->follow = call_query_int(call, "follow", 0) != 0;
	ret->offset = call_query_int(call, "offset", 0);
	return 0;
}

/* The pod of a rank: one that others made stands in the job's body, one of Fairlead's is named from its rank (engine/kubernetes/manifest.c). */
static int pod_of_rank(struct call *call, const struct log_wish *wish, const char **ret_namespace,
		       const char **ret_name, struct err *err)
{
	const struct api_backend *backend = call->api->backend;
	const struct work_site *site = &call->facts->site;
	struct buf plain = BUF_INIT;
	struct job_body body;
	int rc;

	if (!job_get(call->facts, (struct job_id){ wish->job })->external) {
		*ret_namespace = arena_strdup(call->arena, site->namespace);
		*ret_name = arena_printf(call->arena, "fairlead-%.8s-%u-%u-%u", site->instance,
					 wish->job, wish->attempt, wish->rank);
		return 0;
	}
	rc = backend->body(backend->context, call->facts, (struct job_id){ wish->job }, &plain,
			   err);
	if (rc >= 0)
		rc = job_body_parse(buf_text(&plain), plain.size, call->arena, &body, err);
	buf_deinit(&plain);
	if (rc >= 0 && wish->rank >= body.pod_count)
		rc = err_set(err, ERR_CORRUPT, "the body of job %u names %u pods", wish->job,
			     body.pod_count);
	if (rc < 0)
		return rc;
	*ret_namespace = body.pods[wish->rank].namespace;
	*ret_name = body.pods[wish->rank].name;
	return 0;
}

static int refuse_pods(struct call *call, const struct log_wish *wish, struct err *err)
{
	const char *namespace, *name;
	int rc = pod_of_rank(call, wish, &namespace, &name, err);

	if (rc < 0)
		return rc;
	return err_set(
		err, ERR_UNSUPPORTED,
		"job %u runs as pods, whose output Fairlead does not keep in this release: kubectl -n %s logs %s",
		wish->job, namespace, name);
}

void handle_job_logs(struct call *call)
{
	struct log_wish wish = { 0 };
	struct err err = { 0 };

	int rc = wish_read(call, &wish, &err);

	if (rc >= 0 && call->api->backend->pods && !wish.errors)
		rc = refuse_pods(call, &wish, &err);
	if (rc < 0)
		call_fail(call, &err);
	else
		log_feed_begin(call->api->log_feed, call, &wish);
}
