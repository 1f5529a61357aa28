/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that go on. Data waits in a list of shared pieces; the network thread takes from it when the client takes
 * from the socket, and parks (suspends) the connection when nothing waits.
 *
 *	locks	the caller's own > server->lock > stream->lock; `closed` is called with none of ours held
 */
#include "api/http/http_internal.h"

#include <string.h>
#include "base/check.h"
#include "base/clock.h"

struct http_piece {
	_Atomic int references;
	size_t size;
	char data[];
};

struct waiting {
	struct waiting *next;
	struct http_piece *piece;
};

struct http_stream {
	struct connection *connection;
	struct MHD_Connection *mhd;
	pthread_mutex_t lock;
	struct waiting *first, **last;
	size_t offset; /* taken of the first piece */
	size_t bytes; /* waiting in all */
	size_t limit;
	int64_t moved_ms; /* when the client last took something, or nothing waited */
	bool parked, ended, aborted;
	bool cut; /* by the server's stop, not by its owner: the client must not take it for whole */
	void *context;
	void (*closed)(void *context, struct http_stream *stream);
};

struct http_piece *http_piece_create(const void *data, size_t size)
{
	struct http_piece *piece = malloc(sizeof *piece + size);

	CHECK(piece);
	atomic_init(&piece->references, 1);
	piece->size = size;
	memcpy(piece->data, data, size);
	return piece;
}

void http_piece_unref(struct http_piece *piece)
{
	if (piece && atomic_fetch_sub(&piece->references, 1) == 1)
		free(piece);
}

/* Under s->lock. */
static void unpark(struct http_stream *s)
{
	if (!s->parked)
		return;
	s->parked = false;
	MHD_resume_connection(s->mhd);
	loop_wake(s->connection->listener);
}

static void first_drop(struct http_stream *s)
{
	struct waiting *w = s->first;

	s->first = w->next;
	if (!s->first)
		s->last = &s->first;
	s->offset = 0;
	http_piece_unref(w->piece);
	free(w);
}

static size_t take(struct http_stream *s, char *data, size_t size)
{
	size_t out = 0;

	while (s->first && out < size) {
		const struct http_piece *piece = s->first->piece;
		size_t part = piece->size - s->offset;

		if (part > size - out)
			part = size - out;
		memcpy(data + out, piece->data + s->offset, part);
		out += part;
		s->offset += part;
		if (s->offset == piece->size)
			first_drop(s);
	}
	s->bytes -= out;
	return out;
}

/* The library wants to send. */
static ssize_t reader(void *context, uint64_t position, char *data, size_t size)
{
	struct http_stream *s = context;
	ssize_t result = 0;

	(void)position;
	pthread_mutex_lock(&s->lock);
	s->moved_ms = clock_boot_ms();
	if (s->aborted)
		result = MHD_CONTENT_READER_END_WITH_ERROR;
	else if (s->first)
		result = (ssize_t)take(s, data, size);
	else if (s->ended)
		result = s->cut ? MHD_CONTENT_READER_END_WITH_ERROR
				: MHD_CONTENT_READER_END_OF_STREAM;
	else {
		s->parked = true;
		MHD_suspend_connection(s->mhd);
	}
	pthread_mutex_unlock(&s->lock);
	return result;
}

struct http_stream *http_stream_begin(struct http_request *r, const char *content_type,
				      size_t limit_bytes, void *context,
				      void (*closed)(void *context, struct http_stream *stream))
{
	struct http_stream *s = calloc(1, sizeof *s);
	struct http_server *server = r->connection->server;

	CHECK(s && atomic_load(&r->state) != REQUEST_ANSWERED);
	s->connection = r->connection;
	s->mhd = r->mhd;
	s->limit = limit_bytes;
	s->last = &s->first;
	s->moved_ms = clock_boot_ms();
	s->context = context;
	s->closed = closed;
	pthread_mutex_init(&s->lock, NULL);
	r->stream = s;
	r->status = 200;
	r->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, reader, s, NULL);
	r->content_type = content_type ? arena_strdup(&r->arena, content_type) : NULL;
	pthread_mutex_lock(&server->lock);
	r->connection->stream = s;
	server->stream_count++;
	s->ended = s->cut = atomic_load(&server->stopping);
	pthread_mutex_unlock(&server->lock);
	request_answered(r);
	return s;
}

bool http_stream_share(struct http_stream *s, struct http_piece *piece)
{
	struct waiting *w;
	bool room;

	if (!piece->size)
		return true;
	w = malloc(sizeof *w);
	CHECK(w);
	pthread_mutex_lock(&s->lock);
	room = s->bytes + piece->size <= s->limit;
	if (room && !s->ended) {
		atomic_fetch_add(&piece->references, 1);
		w->piece = piece;
		w->next = NULL;
		*s->last = w;
		s->last = &w->next;
		if (!s->bytes)
			s->moved_ms = clock_boot_ms();
		s->bytes += piece->size;
		w = NULL;
		unpark(s);
	}
	pthread_mutex_unlock(&s->lock);
	free(w);
	return room;
}

bool http_stream_send(struct http_stream *s, const void *data, size_t size)
{
	struct http_piece *piece = http_piece_create(data, size);
	const bool taken = http_stream_share(s, piece);

	http_piece_unref(piece);
	return taken;
}

size_t http_stream_waiting(const struct http_stream *stream)
{
	/* the lock is not part of what const promises */
	struct http_stream *s = (struct http_stream *)(uintptr_t)stream;
	size_t bytes;

	pthread_mutex_lock(&s->lock);
	bytes = s->bytes;
	pthread_mutex_unlock(&s->lock);
	return bytes;
}

void http_stream_end(struct http_stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->ended = true;
	unpark(s);
	pthread_mutex_unlock(&s->lock);
}

void stream_finish(struct http_stream *s, bool abort)
{
	pthread_mutex_lock(&s->lock);
	s->cut = s->cut || !s->ended;
	s->ended = true;
	if (abort)
		s->aborted = true;
	unpark(s);
	pthread_mutex_unlock(&s->lock);
}

bool stream_is_stuck(struct http_stream *s, int64_t now_ms, int64_t limit_ms)
{
	bool stuck;

	pthread_mutex_lock(&s->lock);
	stuck = (s->bytes || s->ended) && now_ms - s->moved_ms > limit_ms;
	pthread_mutex_unlock(&s->lock);
	return stuck;
}

bool stream_is_parked(struct http_stream *s)
{
	bool parked;

	pthread_mutex_lock(&s->lock);
	parked = s->parked;
	pthread_mutex_unlock(&s->lock);
	return parked;
}

void stream_closed(struct http_stream *s)
{
	struct http_server *server = s->connection->server;

	pthread_mutex_lock(&server->lock);
	s->connection->stream = NULL;
	server->stream_count--;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	s->closed(s->context, s);
	/* Whoever was inside one of the functions above leaves before the memory goes. */
	pthread_mutex_lock(&s->lock);
	while (s->first)
		first_drop(s);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
