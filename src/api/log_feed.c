/* SPDX-License-Identifier: Apache-2.0 */
#include "api/log_feed.h"

#include <stdlib.h>
#include <string.h>
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

static enum task_stream which(const struct log_wish *wish)
{
	return wish->errors ? TASK_STDERR : TASK_STDOUT;
}

/* Under the lock. True when something was sent. */
static bool reader_step(struct log_feed *feed, struct reader *r, const struct facts *f)
{
	char gap[96], data[PIECE_BYTES];
	const bool over = !r->wish.follow || log_rank_is_over(f, &r->wish);
	struct task_log_piece piece;
	struct err err = { 0 };

	if (http_stream_waiting(r->stream) + PIECE_BYTES + sizeof gap > WAITING_MAX)
		return false;
	if (task_log_read(feed->backend->logs_folder, r->wish.job, r->wish.attempt, r->wish.rank,
			  which(&r->wish), r->offset, data, sizeof data, &piece, &err) < 0)
		piece = (struct task_log_piece){ .offset = r->offset };
	if (piece.offset > r->offset) {
		snprintf(gap, sizeof gap, "\n[fairlead: %llu bytes of output were not kept]\n",
			 (unsigned long long)(piece.offset - r->offset));
		(void)http_stream_send(r->stream, gap, strlen(gap));
		r->offset = piece.offset;
	}
	if (!piece.size) {
		if (over || err.code != ERR_NONE) {
			http_stream_end(r->stream);
			r->ended = true;
		}
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
	free(r);
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
	if (offset_find(feed, wish, &r->offset, &err) < 0) {
		free(r);
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
		free(r);
		err_set(&err, ERR_UNAVAILABLE,
			"the daemon has as many log readers as it takes (%d)", LOG_FEEDS_MAX);
		http_reply_error(call->request, &err);
	}
}
