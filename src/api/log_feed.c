/* SPDX-License-Identifier: Apache-2.0 */
#include "api/log_feed.h"

#include <stdlib.h>
#include <string.h>
#include "api/log_merge.h"
#include "api/log_tail.h"
#include "base/thread.h"
#include "base/wait.h"
#include "base/check.h"
#include "engine/task_log.h"

enum { PIECE_BYTES = 64 << 10, WAITING_MAX = 1 << 20, BUSY_MS = 5, QUIET_MS = 100 };

struct reader {
	struct reader *next;
	struct log_feed *feed;
	struct http_stream *stream; /* NULL: closed */
	struct log_wish wish;
	uint64_t offset;
	struct log_merge *merge; /* of both streams; NULL = one is read */
	bool ended;
};

struct log_feed {
	const struct api_backend *backend;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct reader *readers;
	uint32_t count;
	bool stopping;
};

static void reader_free(struct reader *r)
{
	free(r->merge);
	free(r);
}

static enum task_stream which(const struct log_wish *wish)
{
	return wish->errors ? TASK_STDERR : TASK_STDOUT;
}

static void reader_end(struct reader *r)
{
	http_stream_end(r->stream);
	r->ended = true;
}

static const char gap_text[] = "\n[fairlead: %llu bytes of output were not kept]\n";

static void piece_add(const struct reader *r, const struct log_piece *piece, struct buf *out)
{
	const char *name = piece->stream == TASK_STDERR ? "stderr" : "stdout";

	if (piece->dropped && r->wish.frames)
		buf_addf(out, "%s-gap %llu %llu\n", name, (unsigned long long)piece->offset,
			 (unsigned long long)piece->dropped);
	else if (piece->dropped)
		buf_addf(out, gap_text, (unsigned long long)piece->dropped);
	if (piece->size && r->wish.frames)
		buf_addf(out, "%s %llu %zu\n", name, (unsigned long long)piece->offset,
			 piece->size);
	buf_add(out, piece->data, piece->size);
}

/* Under the lock. True when something was sent. */
static bool merge_step(struct reader *r, bool over)
{
	struct log_piece piece;
	struct err err = { 0 };
	AUTO_BUF out = BUF_INIT;
	int rc = 1;

	while (out.size < PIECE_BYTES && rc > 0) {
		rc = log_merge_next(r->merge, &piece, &err);
		if (rc > 0)
			piece_add(r, &piece, &out);
	}
	if (out.size)
		(void)http_stream_send(r->stream, out.data, out.size);
	if (rc < 0 || (!out.size && over))
		reader_end(r);
	return out.size;
}

/* Under the lock. True when something was sent. */
static bool reader_step(struct log_feed *feed, struct reader *r, const struct facts *f)
{
	char gap[96], data[PIECE_BYTES];
	const bool over = !r->wish.follow || log_rank_is_over(f, &r->wish);
	struct task_log_piece piece;
	struct err err = { 0 };

	if (http_stream_waiting(r->stream) + 3 * PIECE_BYTES + sizeof gap > WAITING_MAX)
		return false;
	if (r->merge)
		return merge_step(r, over);
	if (task_log_read(feed->backend->logs_folder, r->wish.job, r->wish.attempt, r->wish.rank,
			  which(&r->wish), r->offset, data, sizeof data, &piece, &err) < 0)
		piece = (struct task_log_piece){ .offset = r->offset };
	if (piece.offset > r->offset) {
		snprintf(gap, sizeof gap, gap_text, (unsigned long long)(piece.offset - r->offset));
		(void)http_stream_send(r->stream, gap, strlen(gap));
		r->offset = piece.offset;
	}
	if (!piece.size) {
		if (over || err.code != ERR_NONE)
			reader_end(r);
		return false;
	}
	(void)http_stream_send(r->stream, data, piece.size);
	r->offset += piece.size;
	return true;
}

static bool readers_step(struct log_feed *feed)
{
	const struct api_backend *backend = feed->backend;
	struct frozen *frozen;
	bool busy = false;

	if (!feed->readers)
		return false;
	frozen = backend->frozen(backend->context);
	for (struct reader *r = feed->readers; r; r = r->next)
		if (r->stream && !r->ended)
			busy = reader_step(feed, r, &frozen->facts) || busy;
	backend->release(backend->context, frozen);
	return busy;
}

static void *run(void *context)
{
	struct log_feed *feed = context;
	struct timespec until;

	pthread_mutex_lock(&feed->lock);
	while (!feed->stopping) {
		const int64_t ms = readers_step(feed) ? BUSY_MS : QUIET_MS;

		if (!feed->readers) {
			pthread_cond_wait(&feed->changed, &feed->lock);
			continue;
		}
		until = wait_until(ms);
		(void)pthread_cond_timedwait(&feed->changed, &feed->lock, &until);
	}
	pthread_mutex_unlock(&feed->lock);
	return NULL;
}

static void closed(void *context, struct http_stream *stream)
{
	struct reader *r = context, **at;
	struct log_feed *feed = r->feed;

	(void)stream;
	pthread_mutex_lock(&feed->lock);
	for (at = &feed->readers; *at != r; at = &(*at)->next)
		;
	*at = r->next;
	feed->count--;
	reader_free(r);
	pthread_mutex_unlock(&feed->lock);
}

struct log_feed *log_feed_create(const struct api_backend *backend)
{
	struct log_feed *feed = calloc(1, sizeof *feed);

	CHECK(feed);
	feed->backend = backend;
	pthread_mutex_init(&feed->lock, NULL);
	cond_init(&feed->changed);
	thread_start(&feed->thread, run, feed);
	return feed;
}

void log_feed_destroy(struct log_feed *feed)
{
	if (!feed)
		return;
	pthread_mutex_lock(&feed->lock);
	feed->stopping = true;
	pthread_cond_broadcast(&feed->changed);
	pthread_mutex_unlock(&feed->lock);
	pthread_join(feed->thread, NULL);
	CHECK(!feed->readers);
	pthread_mutex_destroy(&feed->lock);
	pthread_cond_destroy(&feed->changed);
	free(feed);
}

/* Offsets where both begin. */
static int merge_find(struct log_feed *feed, const struct log_wish *wish, uint64_t ret[2],
		      struct err *err)
{
	const int64_t asked[2] = { wish->offset, wish->stderr_offset };
	int rc = 0;

	if (wish->lines)
		return log_merge_tail(feed->backend->logs_folder, wish, ret, err);
	for (int i = 0; i < 2 && rc >= 0; i++) {
		ret[i] = (uint64_t)asked[i];
		if (asked[i] < 0)
			rc = task_log_tail(feed->backend->logs_folder, wish->job, wish->attempt,
					   wish->rank, (enum task_stream)i, (uint64_t)-asked[i],
					   &ret[i], err);
	}
	return rc;
}

static int merge_begin(struct log_feed *feed, struct reader *r, struct err *err)
{
	uint64_t from[2];
	int rc = merge_find(feed, &r->wish, from, err);

	if (rc < 0)
		return rc;
	r->merge = calloc(1, sizeof(*r->merge));
	CHECK(r->merge);
	log_merge_init(r->merge, feed->backend->logs_folder, &r->wish, from);
	return 0;
}

/* Where to begin: an offset, or so many lines or bytes before the end. */
static int offset_find(struct log_feed *feed, const struct log_wish *wish, uint64_t *ret,
		       struct err *err)
{
	if (wish->lines)
		return log_tail_find(feed->backend->logs_folder, wish, ret, err);
	if (wish->offset >= 0) {
		*ret = (uint64_t)wish->offset;
		return 0;
	}
	return task_log_tail(feed->backend->logs_folder, wish->job, wish->attempt, wish->rank,
			     which(wish), (uint64_t)-wish->offset, ret, err);
}

void log_feed_begin(struct log_feed *feed, struct call *call, const struct log_wish *wish)
{
	struct reader *r = calloc(1, sizeof *r);
	struct err err = { 0 };
	bool full;

	CHECK(r && call->permitted);
	r->feed = feed;
	r->wish = *wish;
	if ((wish->both ? merge_begin(feed, r, &err) : offset_find(feed, wish, &r->offset, &err)) <
	    0) {
		reader_free(r);
		call_fail(call, &err);
		return;
	}
	call_release(call);
	pthread_mutex_lock(&feed->lock);
	full = feed->count >= LOG_FEEDS_MAX;
	if (!full) {
		r->next = feed->readers;
		feed->readers = r;
		feed->count++;
		http_add_header(call->request, "X-Fairlead-Attempt",
				arena_printf(call->arena, "%u", wish->attempt));
		r->stream = http_stream_begin(call->request, "text/plain; charset=utf-8",
					      2 * WAITING_MAX, r, closed);
		pthread_cond_broadcast(&feed->changed);
	}
	pthread_mutex_unlock(&feed->lock);
	if (full) {
		reader_free(r);
		err_set(&err, ERR_UNAVAILABLE,
			"the daemon has as many log readers as it takes (%d)", LOG_FEEDS_MAX);
		http_reply_error(call->request, &err);
	}
}
