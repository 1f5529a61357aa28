/* SPDX-License-Identifier: Apache-2.0 */
/* Logs: which rank of which attempt is meant. */
#include <string.h>
#include "api/call.h"
#include "api/log_feed.h"
#include "api/log_tail.h"
#include "api/pod_logs.h"
#include "api/tally.h"
#include "base/parse.h"

/* Nothing more can come: asked before the files are read, so that what was written last is still found. */
bool log_rank_is_over(const struct facts *f, const struct log_wish *wish)
{
	const struct attempt *attempt;
	const struct task *task;

	if (wish->attempt > f->attempts.count)
		return true;
	attempt = attempt_get(f, (struct attempt_id){ wish->attempt });
	if (attempt->job.v != wish->job || attempt->state == ATTEMPT_OVER ||
	    attempt->state == ATTEMPT_FREE)
		return true;
	task = task_get(f, attempt, wish->rank);
	return !task || task->state >= TASK_EXITED;
}

static int attempt_by_number(struct call *call, uint32_t id, const struct job *job, uint32_t *ret,
			     struct err *err)
{
	const int64_t number = call_query_int(call, "number", 0);

	if (call_query_given(call, "attempt"))
		return err_set(
			err, ERR_INVALID,
			"?attempt= and ?number= contradict each other; leave one of them out");
	*ret = number < 1 || number > job->attempts
		       ? 0
		       : job_attempt_find(call->facts, job, (uint32_t)number);
	if (!*ret)
		return err_set(err, ERR_NOT_FOUND, "job %u has no attempt %lld; it has had %u", id,
			       (long long)number, job->attempts);
	return 0;
}

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
	if (call_query_given(call, "number"))
		return attempt_by_number(call, id, job, ret, err);
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
		return err_set(err, ERR_NOT_FOUND,
			       "job %u has no rank %lld in this attempt; it has %u ranks", job,
			       (long long)rank, tasks);
	*ret = (uint32_t)rank;
	return 0;
}

static int lines_read(const struct call *call, struct log_wish *ret, struct err *err)
{
	if (!call_query_given(call, "lines"))
		return 0;
	ret->lines = call_query_int(call, "lines", 0);
	if (ret->lines < 1 || ret->lines > LOG_LINES_MAX)
		return err_set(err, ERR_INVALID, "?lines=%lld: expected 1 to %d",
			       (long long)ret->lines, LOG_LINES_MAX);
	if (call_query_given(call, "offset"))
		return err_set(err, ERR_INVALID,
			       "?lines= and ?offset= contradict each other; leave one of them out");
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
	ret->both = stream && !strcmp(stream, "both");
	if (stream && !ret->errors && !ret->both && strcmp(stream, "stdout") != 0)
		return err_set(err, ERR_INVALID, "?stream=%.40s: expected stdout, stderr or both",
			       stream);
	ret->follow = call_query_int(call, "follow", 0) != 0;
	ret->offset = call_query_int(call, "offset", 0);
	ret->stderr_offset =
		call_query_int(call, "stderr_offset", ret->offset < 0 ? ret->offset : 0);
	ret->frames = call_query_int(call, "frames", 0) != 0;
	if (ret->frames && (!ret->both || call->api->backend->pods))
		return err_set(err, ERR_INVALID,
			       ret->both ? "?frames=1: pods print both streams as one"
					 : "?frames=1 needs ?stream=both");
	return lines_read(call, ret, err);
}

void handle_job_logs(struct call *call)
{
	struct log_wish wish = { 0 };
	struct err err = { 0 };

	if (wish_read(call, &wish, &err) < 0)
		call_fail(call, &err);
	else if (call->api->backend->pods && !wish.errors)
		pod_log_begin(call, &wish);
	else
		log_feed_begin(call->api->log_feed, call, &wish);
}
