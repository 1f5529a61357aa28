/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod has printed, asked of the API server, which asks the node's kubelet. One answer of at most `limit_bytes`, and nothing is kept
 * here. OUTPUT_MOST are asked for at a time: each is held in memory whole.
 *
 * Who follows gets such an answer first, of at most FOLLOW_FIRST bytes (where he asks for the end of it, of at most FOLLOW_TAIL times as many as that, for each line
 * comes with its time; what is more than FOLLOW_FIRST counts among the OUTPUT_MOST until it has come), and then the lines of a stream. A stream comes to an end when its container does, when its connection
 * breaks, after ten seconds of silence, and when its reader is too slow: then it is asked for anew from the newest line on (output.h), unless the rank has ended and
 * nothing new came.
 *
 * A kubelet knows the last lines, not the last bytes, and limitBytes counts from the first of these: of too many it would give the beginning. So an
 * answer that is full is thrown away, and half as many lines are asked for as came in it, until they fit.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/output.h"
#include "engine/kubernetes/refusal.h"

enum {
	OUTPUT_MOST = 8,
	FOLLOWS_MOST = 200,
	FOLLOW_FIRST = 1 << 20,
	FOLLOW_TAIL = 4,
	TAIL_LINES_MAX = 1000000,
	PAUSE_MS = 200,
	PAUSE_MAX_MS = 10000,
	FAILURES_MAX =
		6 /* in a row, of a rank that has ended: then what is left of its output is given up */
};

struct wanted {
	struct wanted *next; /* of those that are followed */
	struct engine *engine;
	struct engine_output wish;
	char *path; /* up to the query, and what it says of the container */
	int64_t lines; /* the last so many are asked for; 0 = all */
	struct output_place place;
	uint32_t failures;
	bool told,
		full; /* by the stream that is open: a new line; it was stopped, for its reader is slow */
	struct buf line, rest; /* rest: what stood behind the last newline */
	bool began; /* some answer had output, if only none yet */
	bool whole; /* the last stream was ended by the kubelet, and all of it was told */
	bool held; /* it counts in engine->outputs */
};

/* --- ends ---------------------------------------------------------------------------------------------------- */

/* Its large answer is not in memory any more. */
static void answer_is_over(struct wanted *wanted)
{
	struct engine *engine = wanted->engine;

	pthread_mutex_lock(&engine->lock);
	engine->outputs -= wanted->held;
	wanted->held = false;
	pthread_mutex_unlock(&engine->lock);
}

static void wanted_free(struct wanted *wanted)
{
	struct engine *engine = wanted->engine;

	answer_is_over(wanted);
	pthread_mutex_lock(&engine->lock);
	if (wanted->wish.follow) {
		for (struct wanted **at = &engine->follows; *at; at = &(*at)->next)
			if (*at == wanted) {
				*at = wanted->next;
				break;
			}
		engine->follow_count--;
	}
	pthread_mutex_unlock(&engine->lock);
	free(wanted->path);
	buf_deinit(&wanted->line);
	buf_deinit(&wanted->rest);
	free(wanted);
}

static void follow_ends(struct wanted *wanted, const char *problem)
{
	wanted->wish.ended(wanted->wish.context, problem);
	wanted_free(wanted);
}

void outputs_end(struct engine *engine)
{
	while (engine->follows)
		follow_ends(engine->follows, "the daemon left the cluster");
}

/* --- following ---------------------------------------------------------------------------------------------------- */

static bool line_came(void *context, const char *line, size_t size)
{
	struct wanted *wanted = context;
	const char *text;

	if (!output_is_new(&wanted->place, line, size, &text))
		return true;
	buf_clear(&wanted->line);
	buf_add(&wanted->line, text, (size_t)(line + size - text));
	buf_addc(&wanted->line, '\n');
	wanted->full =
		!wanted->wish.more(wanted->wish.context, wanted->line.data, wanted->line.size);
	if (wanted->full)
		return false;
	output_told(&wanted->place, line, size);
	wanted->told = true;
	return true;
}

static void follow(struct wanted *wanted);

static void follow_again(void *context)
{
	follow(context);
}

static void follow_later(struct wanted *wanted, int64_t pause_ms)
{
	kube_later(wanted->engine->client, pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS,
		   follow_again, wanted);
}

/* What stood behind the last newline, of one that prints no more. */
static void rest_came(struct wanted *wanted)
{
	const char *text, *rest = buf_text(&wanted->rest);

	if (wanted->rest.size && output_is_new(&wanted->place, rest, wanted->rest.size, &text))
		(void)wanted->wish.more(wanted->wish.context, text,
					(size_t)(rest + wanted->rest.size - text));
}

/* The kubelet ended it, so that was all up to now. */
static void note_rest(struct wanted *wanted, const struct kube_answer *answer)
{
	buf_clear(&wanted->rest);
	buf_add(&wanted->rest, answer->body, answer->size);
	wanted->whole = !wanted->full;
}

static void stream_ended(void *context, const struct kube_answer *answer)
{
	struct wanted *wanted = context;
	bool well = answer->status == 200 && !*answer->problem;
	enum engine_output_next next;
	struct kube_refusal refusal;

	if (kube_is_end(answer))
		return; /* outputs_end() */
	if (well)
		note_rest(wanted, answer);
	else if (answer->status != 404)
		wanted->whole = false;
	next = wanted->wish.next(wanted->wish.context);
	wanted->began = wanted->began || answer->status == 200;
	wanted->failures = answer->status == 200 ? 0 : wanted->failures + 1;
	if (next == OUTPUT_UNHEARD) {
		follow_ends(wanted, "");
	} else if ((answer->status == 404 && wanted->whole) ||
		   (next == OUTPUT_ENDS && well && !wanted->told && !wanted->full)) {
		rest_came(wanted);
		follow_ends(wanted, "");
	} else if (answer->status == 404 && (wanted->began || next == OUTPUT_ENDS)) {
		follow_ends(wanted,
			    "the pod is not there any more, and what it printed went with it");
	} else if (next == OUTPUT_ENDS && wanted->failures >= FAILURES_MAX) {
		refusal_read(answer, &refusal);
		follow_ends(wanted, answer->status ? refusal.text : answer->problem);
	} else {
		follow_later(wanted, (int64_t)PAUSE_MS << (wanted->failures % 8));
	}
}

static void follow(struct wanted *wanted)
{
	AUTO_BUF path = BUF_INIT;

	output_again(&wanted->place);
	wanted->told = wanted->full = false;
	buf_addf(&path, "%sfollow=true&timestamps=true", wanted->path);
	if (wanted->place.newest_ns) {
		buf_adds(&path, "&sinceTime=");
		kube_add_escaped(&path, wanted->place.stamp);
	}
	kube_call(wanted->engine->client, &(struct kube_request){ .method = "GET",
								  .path = buf_text(&path),
								  .line = line_came,
								  .done = stream_ended,
								  .context = wanted });
}

/* The last one may have no end yet. */
static int64_t lines_in(const struct kube_answer *answer)
{
	const char *at = answer->body, *end = answer->body + answer->size;
	int64_t count = 0;

	for (; at < end; count++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		at = newline ? newline + 1 : end;
	}
	return count;
}

/* There is more in front of the lines that were asked for, and what came of them is less than was wished. */
static bool is_cut_in_front(const struct wanted *wanted, const struct kube_answer *answer,
			    size_t size)
{
	return wanted->lines && (int64_t)size < wanted->wish.tail_bytes &&
	       lines_in(answer) >= wanted->lines;
}

/* The lines that came whole; what is behind the last newline comes again with the stream. */
static void follow_begins(struct wanted *wanted, const struct kube_answer *answer)
{
	const struct engine_output *wish = &wanted->wish;
	AUTO_BUF out = BUF_INIT;
	const char *at = answer->body, *end = answer->body + answer->size, *newline, *text;

	for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1) {
		size_t size = (size_t)(newline - at);

		if (!output_is_new(&wanted->place, at, size, &text))
			continue;
		buf_add(&out, text, (size_t)(newline + 1 - text));
		output_told(&wanted->place, at, size);
	}
	wanted->began = true;
	if (wish->cut && is_cut_in_front(wanted, answer, out.size))
		wish->cut(wish->context, true);
	wish->done(wish->context, 200, buf_text(&out), out.size);
	answer_is_over(wanted);
	follow(wanted);
}

/* --- one answer ---------------------------------------------------------------------------------------------------- */

/* By the words of kubelets and of the API server; other requests that are wrong stay so. A kubelet does not know a pod at once. */
static bool is_to_come(const struct wanted *wanted, const struct kube_answer *answer)
{
	struct kube_refusal refusal;

	if (answer->status == 404)
		return wanted->wish.comes;
	if (answer->status != 400)
		return false;
	refusal_read(answer, &refusal);
	return strstr(refusal.text, "is waiting to start") ||
	       strstr(refusal.text, "does not have a host assigned");
}

static int64_t limit_of(const struct wanted *wanted)
{
	int64_t limit = wanted->wish.limit_bytes, tail = wanted->wish.tail_bytes,
		most = tail <= FOLLOW_FIRST / FOLLOW_TAIL ? FOLLOW_FIRST
		       : tail < limit / FOLLOW_TAIL       ? tail * FOLLOW_TAIL
							  : limit;

	return wanted->wish.follow && limit > most ? most : limit;
}

static void ask(struct wanted *wanted);

/* True: it was asked again. */
static bool asks_for_fewer(struct wanted *wanted, const struct kube_answer *answer)
{
	int64_t most = wanted->lines / 2, fit;

	if (most < 1 || (int64_t)answer->size < limit_of(wanted))
		return false;
	fit = lines_in(answer) / 2;
	wanted->lines = fit < 1 ? 1 : fit < most ? fit : most;
	ask(wanted);
	return true;
}

static void tell(const struct wanted *wanted, const struct kube_answer *answer)
{
	const struct engine_output *wish = &wanted->wish;
	bool full = (int64_t)answer->size >= limit_of(wanted);

	if (wish->cut && (full || is_cut_in_front(wanted, answer, answer->size)))
		wish->cut(wish->context, !full);
	wish->done(wish->context, 200, answer->body, answer->size);
}

static void came(void *context, const struct kube_answer *answer)
{
	struct wanted *wanted = context;
	struct engine_output *wish = &wanted->wish;
	struct kube_refusal refusal;

	if (answer->status == 200 && asks_for_fewer(wanted, answer))
		return;
	if (answer->status == 200 && wish->follow) {
		follow_begins(wanted, answer);
		return;
	}
	if (wish->follow && is_to_come(wanted, answer)) {
		wish->done(wish->context, 200, "", 0);
		answer_is_over(wanted);
		follow_later(wanted, PAUSE_MS);
		return;
	}
	if (answer->status == 200) {
		tell(wanted, answer);
	} else if (!answer->status) {
		wish->done(wish->context, 0, answer->problem ? answer->problem : "it ends",
			   answer->problem ? strlen(answer->problem) : 7);
	} else {
		refusal_read(answer, &refusal);
		wish->done(wish->context, answer->status, refusal.text, strlen(refusal.text));
	}
	wanted_free(wanted);
}

static void ask(struct wanted *wanted)
{
	AUTO_BUF path = BUF_INIT;

	buf_addf(&path, "%slimitBytes=%" PRId64, wanted->path, limit_of(wanted));
	if (wanted->wish.follow)
		buf_adds(&path, "&timestamps=true");
	if (wanted->lines)
		buf_addf(&path, "&tailLines=%" PRId64, wanted->lines);
	kube_call(wanted->engine->client, &(struct kube_request){ .method = "GET",
								  .path = buf_text(&path),
								  .once = true,
								  .done = came,
								  .context = wanted });
}

/* False: there are as many as may be. */
static bool has_room(struct engine *engine, struct wanted *wanted)
{
	bool large = !wanted->wish.follow || limit_of(wanted) > FOLLOW_FIRST, full;

	pthread_mutex_lock(&engine->lock);
	full = (wanted->wish.follow && engine->follow_count >= FOLLOWS_MOST) ||
	       (large && engine->outputs >= OUTPUT_MOST);
	wanted->held = large && !full;
	engine->outputs += wanted->held;
	if (!full && wanted->wish.follow) {
		wanted->next = engine->follows;
		engine->follows = wanted;
		engine->follow_count++;
	}
	pthread_mutex_unlock(&engine->lock);
	return !full;
}

bool kubernetes_pod_output(struct engine *engine, const struct engine_output *wish)
{
	struct wanted *wanted = calloc(1, sizeof(*wanted));
	AUTO_BUF path = BUF_INIT;

	CHECK(wanted);
	wanted->engine = engine;
	wanted->wish = *wish;
	if (!has_room(engine, wanted)) {
		free(wanted);
		return false;
	}
	buf_addf(&path, "/api/v1/namespaces/%s/pods/%s/log?", wish->namespace, wish->name);
	if (wish->own)
		buf_adds(&path, "container=" KUBE_CONTAINER "&");
	wanted->path = strdup(buf_text(&path));
	CHECK(wanted->path);
	wanted->wish.namespace = wanted->wish.name = NULL; /* the caller's */
	wanted->lines = wish->tail_bytes < TAIL_LINES_MAX /* no line is shorter than a byte */
				? wish->tail_bytes
				: TAIL_LINES_MAX;
	ask(wanted);
	return true;
}
