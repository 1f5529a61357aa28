/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank printed that runs as a pod: its node has it, and the engine asks there. Standard output and error are one. */
#include "api/pod_logs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/jobfile/jobfile.h"
#include "base/check.h"
#include "engine/pods.h"

enum {
	OUTPUT_LIMIT = 16 << 20,
	WAITING_MAX = 1 << 20, /* for one who follows */
	POD_NAME_MAX = 320
};

struct pod_log {
	struct http_request *request;
	const struct api_backend *backend;
	pthread_mutex_t lock;
	struct http_stream
		*stream; /* under the lock, of one who follows; NULL = not begun, or gone */
	uint32_t users; /* likewise: the engine, and the stream that is not closed */
	struct log_wish wish;
	char pod[POD_NAME_MAX]; /* as kubectl takes it: "-n NAMESPACE logs NAME" */
	bool comes; /* as in struct engine_output */
	bool cut, in_front; /* it told that there is more */
};

/* How often the rank was started anew: the newest start has the output. */
static uint32_t newest_launch(const struct facts *facts, const struct log_wish *wish)
{
	const struct attempt *attempt;
	const struct task *task = NULL;

	if (wish->attempt && wish->attempt <= facts->attempts.count) {
		attempt = attempt_get(facts, (struct attempt_id){ wish->attempt });
		task = wish->rank < attempt->tasks ? task_get(facts, attempt, wish->rank) : NULL;
	}
	return task ? task->launch : 0;
}

/* The pod of a rank: one that others made stands in the job's body, one of Fairlead's is named from its rank (engine/kubernetes/manifest.c). */
static int pod_of_rank(struct call *call, const struct log_wish *wish, struct engine_output *ret,
		       struct err *err)
{
	const struct api_backend *backend = call->api->backend;
	const struct work_site *site = &call->facts->site;
	struct buf plain = BUF_INIT;
	struct job_body body;
	int rc;

	ret->own = !job_get(call->facts, (struct job_id){ wish->job })->external;
	if (ret->own) {
		const uint32_t launch = newest_launch(call->facts, wish);

		ret->namespace = arena_strdup(call->arena, site->namespace);
		ret->name = arena_printf(call->arena, "fairlead-%.8s-%u-%u-%u", site->instance,
					 wish->job, wish->attempt, wish->rank);
		if (launch)
			ret->name = arena_printf(call->arena, "%s-%u", ret->name, launch);
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
	ret->namespace = body.pods[wish->rank].namespace;
	ret->name = body.pods[wish->rank].name;
	return 0;
}

static void refused(const struct pod_log *log, int status, const char *text)
{
	struct err err = { 0 };

	if (status == 404 && log->comes && !strstr(text, "\" not found"))
		err_set(&err, ERR_NOT_FOUND,
			"the node of this rank has not begun it, or knows nothing of it any more: %.200s; again in a moment, or with -f",
			text);
	else if (status == 404)
		err_set(&err, ERR_NOT_FOUND,
			"the pod of this rank is not there any more, and what it printed went with it: %.200s",
			text);
	else if (status == 400)
		err_set(&err, ERR_NOT_FOUND,
			"Kubernetes shows no output of this pod: %.200s; more can be asked with kubectl %s",
			text, log->pod);
	else if (status == 403)
		err_set(&err, ERR_UNAVAILABLE,
			"Fairlead may not ask for the output of pods: %.200s; docs/kubernetes.md, Rights",
			text);
	else
		err_set(&err, ERR_UNAVAILABLE,
			"the node of this pod, which keeps its output, does not answer: %.200s; try again when it does, or use kubectl %s",
			text, log->pod);
	http_reply_error(log->request, &err);
}

static void log_leave(struct pod_log *log)
{
	bool last;

	pthread_mutex_lock(&log->lock);
	last = --log->users == 0;
	pthread_mutex_unlock(&log->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&log->lock);
	free(log);
}

/* --- one who follows ------------------------------------------------------------------------------------------ */

static void closed(void *context, struct http_stream *stream)
{
	struct pod_log *log = context;

	(void)stream;
	pthread_mutex_lock(&log->lock);
	log->stream = NULL;
	pthread_mutex_unlock(&log->lock);
	log_leave(log);
}

static void begin(struct pod_log *log, const char *text, size_t size)
{
	pthread_mutex_lock(&log->lock);
	log->users++;
	log->stream = http_stream_begin(log->request, "text/plain; charset=utf-8", OUTPUT_LIMIT,
					log, closed);
	if (log->stream && size)
		(void)http_stream_send(log->stream, text, size);
	pthread_mutex_unlock(&log->lock);
}

static bool more(void *context, const char *text, size_t size)
{
	struct pod_log *log = context;
	bool sent = false;
	size_t waits;

	pthread_mutex_lock(&log->lock);
	if (log->stream) {
		waits = http_stream_waiting(log->stream);
		sent = (!waits || waits + size <= WAITING_MAX) &&
		       http_stream_send(log->stream, text, size);
	}
	pthread_mutex_unlock(&log->lock);
	return sent;
}

static enum engine_output_next next(void *context)
{
	struct pod_log *log = context;
	struct frozen *frozen;
	bool heard, over;

	pthread_mutex_lock(&log->lock);
	heard = log->stream != NULL;
	pthread_mutex_unlock(&log->lock);
	if (!heard)
		return OUTPUT_UNHEARD;
	frozen = log->backend->frozen(log->backend->context);
	over = log_rank_is_over(&frozen->facts, &log->wish);
	log->backend->release(log->backend->context, frozen);
	return over ? OUTPUT_ENDS : OUTPUT_GOES_ON;
}

static void ended(void *context, const char *problem)
{
	struct pod_log *log = context;
	AUTO_BUF text = BUF_INIT;

	pthread_mutex_lock(&log->lock);
	if (log->stream && *problem) {
		buf_addf(&text, "\n[fairlead: %.300s]\n", problem);
		(void)http_stream_send(log->stream, text.data, text.size);
	}
	if (log->stream)
		http_stream_end(log->stream);
	pthread_mutex_unlock(&log->lock);
	log_leave(log);
}

/* --- one answer ---------------------------------------------------------------------------------------------------- */

static void cut(void *context, bool in_front)
{
	struct pod_log *log = context;

	log->cut = true;
	log->in_front = in_front;
}

/* Bytes in front of the last lines of a text. */
static uint64_t lines_in_front(const char *text, size_t size, int64_t lines)
{
	size_t at = size;

	if (at && text[at - 1] == '\n')
		at--; /* ends the last line */
	while (at && lines) {
		const char *end = memrchr(text, '\n', at);

		if (--lines == 0)
			return end ? (uint64_t)(end - text) + 1 : 0;
		at = end ? (size_t)(end - text) : 0;
	}
	return 0;
}

static void came(void *context, int status, const char *text, size_t size)
{
	struct pod_log *log = context;
	struct buf body = BUF_INIT;
	uint64_t skip = log->wish.offset > 0 ? (uint64_t)log->wish.offset : 0;

	if (status != 200) {
		refused(log, status, text);
		log_leave(log);
		return;
	}
	if (log->wish.lines)
		skip = lines_in_front(text, size, log->wish.lines);
	else if (log->wish.offset < 0 && (uint64_t)-log->wish.offset < size)
		skip = size - (uint64_t)-log->wish.offset;
	if (log->wish.follow) {
		skip = skip < size ? skip : size;
		if (log->cut)
			buf_addf(
				&body,
				"[fairlead: of what was there before only the last %zu bytes are shown; more: kubectl %s --tail LINES]\n",
				size - (size_t)skip, log->pod);
		buf_add(&body, text + skip, size - (size_t)skip);
		begin(log, buf_text(&body), body.size);
		buf_deinit(&body);
		return;
	}
	if (log->cut && log->in_front)
		buf_addf(
			&body,
			"[fairlead: only the last %zu bytes are shown, for of a pod no more than %d MiB are asked for; more: kubectl %s --tail LINES]\n",
			size, OUTPUT_LIMIT >> 20, log->pod);
	if (skip < size)
		buf_add(&body, text + skip, size - (size_t)skip);
	if (log->cut && !log->in_front)
		buf_addf(&body,
			 "\n[fairlead: no more than %d MiB are shown; the rest: kubectl %s]\n",
			 OUTPUT_LIMIT >> 20, log->pod);
	http_reply(log->request, 200, "text/plain; charset=utf-8", &body);
	log_leave(log);
}

void pod_log_begin(struct call *call, const struct log_wish *wish)
{
	const struct api_backend *backend = call->api->backend;
	struct pod_log *log = calloc(1, sizeof(*log));
	struct engine_output output = { .limit_bytes = OUTPUT_LIMIT,
					.done = came,
					.cut = cut,
					.context = log,
					.comes = !log_rank_is_over(call->facts, wish),
					.follow = wish->follow,
					.more = more,
					.next = next,
					.ended = ended };
	struct err err = { 0 };
	int rc = pod_of_rank(call, wish, &output, &err);

	CHECK(log && call->permitted);
	pthread_mutex_init(&log->lock, NULL);
	log->users = 1;
	log->backend = backend;
	log->request = call->request;
	log->wish = *wish;
	log->comes = output.comes;
	if (rc >= 0)
		snprintf(log->pod, sizeof(log->pod), "-n %s logs %s", output.namespace,
			 output.name);
	if (rc < 0) {
		call_fail(call, &err);
		log_leave(log);
		return;
	}
	if (wish->lines)
		output.tail_bytes = wish->lines; /* no line is shorter than a byte */
	else if (wish->offset < 0)
		output.tail_bytes = -wish->offset;
	http_add_header(call->request, "X-Fairlead-Attempt",
			arena_printf(call->arena, "%u", wish->attempt));
	call_release(call);
	if (!backend->pod_output(backend->context, &output)) {
		err_set(&err, ERR_UNAVAILABLE,
			"the daemon asks for the output of as many pods as it does at a time; again in a moment, or kubectl %s",
			log->pod);
		http_reply_error(log->request, &err);
		log_leave(log);
	}
}
