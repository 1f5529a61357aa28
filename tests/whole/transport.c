/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/http/http.h without a server: a request is handed to the API as a network thread would, and its answer is kept. What the
 * daemon had not answered when it died is never answered. A stream is what waits for a client until it reads.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "whole.h"

struct http_request {
	struct http_request *next;
	struct arena arena;
	const char *method, *path, *token, *key, *body, *last_id;
	struct http_stream *stream; /* NULL: it is answered whole */
	struct http_peer peer;
	void *user;
	bool answered;
	int status;
	struct buf answer;
	void (*done)(struct whole *w, void *context, int status, const char *text);
	void *context;
};

struct http_stream {
	struct http_request *request;
	struct buf waiting;
	size_t limit;
	void *hub;
	void (*closed)(void *context, struct http_stream *stream);
};

static struct http_request *open_requests;

static struct http_request *request_add(struct whole *w, const char *method, const char *path,
					const char *token, const char *key, const char *body)
{
	struct http_request *r = calloc(1, sizeof(*r));

	CHECK(r);
	arena_init(&r->arena, 64 << 20);
	r->method = method;
	r->path = arena_strdup(&r->arena, path);
	r->token = token ? arena_printf(&r->arena, "Bearer %s", token) : NULL;
	r->key = key ? arena_strdup(&r->arena, key) : NULL;
	r->body = arena_strdup(&r->arena, body ? body : "");
	r->peer = (struct http_peer){ .local = !token, .uid = geteuid(), .gid = getegid() };
	snprintf(r->peer.address, sizeof(r->peer.address), "127.0.0.1");
	r->next = open_requests;
	open_requests = r;
	w->requests++;
	return r;
}

static void request_hand(struct whole *w, struct http_request *r)
{
	if (api_head(w->daemon->api, r) == 0)
		api_handle(w->daemon->api, r);
}

struct http_request *transport_send(struct whole *w, const char *method, const char *path,
				    const char *token, const char *key, const char *body,
				    void (*answered)(struct whole *w, void *context, int status,
						     const char *text),
				    void *context)
{
	struct http_request *r = request_add(w, method, path, token, key, body);

	r->done = answered;
	r->context = context;
	request_hand(w, r);
	return r;
}

void transport_listen(struct whole *w, const char *token, int64_t after,
		      void (*answered)(struct whole *w, void *context, int status,
				       const char *text),
		      void *context)
{
	struct http_request *r = request_add(w, "GET", "/api/v1/events", token, NULL, NULL);

	r->done = answered;
	r->context = context;
	r->last_id = after < 0 ? "" : arena_printf(&r->arena, "%lld", (long long)after);
	request_hand(w, r);
}

static void request_free(struct http_request *r)
{
	struct http_request **at = &open_requests;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	arena_deinit(&r->arena);
	buf_deinit(&r->answer);
	if (r->stream)
		buf_deinit(&r->stream->waiting);
	free(r->stream);
	free(r);
}

/* Told from here, where nobody of the daemon uses the request any more. */
void transport_run(struct whole *w)
{
	struct http_request *r = open_requests;

	while (r && !r->answered)
		r = r->next;
	if (!r)
		return;
	if (strstr(buf_text(&r->answer), people_secret(w)))
		whole_problem(w, "a secret stands in an answer to %s %s", r->method, r->path);
	w->refused += r->status >= 400;
	whole_trace(w, "answer %d to %s %s: %.600s", r->status, r->method, r->path,
		    buf_text(&r->answer));
	if (r->done)
		r->done(w, r->context, r->status, buf_text(&r->answer));
	request_free(r);
	transport_run(w);
}

/* --- streams ---------------------------------------------------------------------------------------------------------------- */

static struct http_request *listener_find(const void *context)
{
	struct http_request *r = open_requests;

	while (r && !(r->stream && r->context == context))
		r = r->next;
	return r;
}

bool transport_listens(const void *context)
{
	return listener_find(context) != NULL;
}

char *transport_read(const void *context)
{
	struct http_request *r = listener_find(context);

	return r && r->stream->waiting.size ? buf_take(&r->stream->waiting) : NULL;
}

static void stream_close(struct http_request *r)
{
	if (r->stream->closed)
		r->stream->closed(r->stream->hub, r->stream);
	r->stream->closed = NULL;
}

void transport_leave(const void *context)
{
	struct http_request *r = listener_find(context);

	if (!r)
		return;
	stream_close(r);
	request_free(r);
}

void transport_close(void)
{
	for (struct http_request *r = open_requests; r; r = r->next)
		if (r->stream)
			stream_close(r);
}

void transport_drop(struct whole *w)
{
	while (open_requests) {
		struct http_request *r = open_requests;

		if (r->done)
			r->done(w, r->context, 0, "");
		request_free(r);
	}
}

const char *http_method(const struct http_request *r)
{
	return r->method;
}

const char *http_path(const struct http_request *r)
{
	return r->path;
}

const char *http_query(const struct http_request *r, const char *name)
{
	(void)r;
	(void)name;
	return NULL;
}

const char *http_query_name(const struct http_request *r, size_t index)
{
	(void)r;
	(void)index;
	return NULL;
}

const char *http_header(const struct http_request *r, const char *name)
{
	if (!strcasecmp(name, "Authorization"))
		return r->token;
	if (r->last_id && !strcasecmp(name, "Accept"))
		return "text/event-stream";
	if (r->last_id && *r->last_id && !strcasecmp(name, "Last-Event-ID"))
		return r->last_id;
	return strcasecmp(name, "Idempotency-Key") == 0 ? r->key : NULL;
}

const void *http_body(const struct http_request *r, size_t *ret_size)
{
	*ret_size = strlen(r->body);
	return r->body;
}

const struct http_peer *http_peer(const struct http_request *r)
{
	return &r->peer;
}

struct arena *http_arena(struct http_request *r)
{
	return &r->arena;
}

void http_set_user(struct http_request *r, void *user)
{
	r->user = user;
}

void *http_user(const struct http_request *r)
{
	return r->user;
}

void http_add_header(struct http_request *r, const char *name, const char *value)
{
	(void)r;
	(void)name;
	(void)value;
}

void http_reply(struct http_request *r, int status, const char *content_type, struct buf *body)
{
	(void)content_type;
	CHECK(!r->answered);
	if (body) {
		buf_add(&r->answer, body->data, body->size);
		buf_deinit(body);
	}
	r->status = status;
	r->answered = !whole->dead; /* else the connection is gone with the daemon */
}

void http_reply_error_status(struct http_request *r, int status, const struct err *err)
{
	struct buf text = BUF_INIT;

	buf_adds(&text, err->text);
	http_reply(r, status, "text/plain", &text);
}

void http_reply_error(struct http_request *r, const struct err *err)
{
	http_reply_error_status(r, err_code_http(err->code), err);
}

/* Here an answer is with its client as soon as it is made. */
void http_hold(struct http_request *r, _Atomic int64_t *counter, int64_t bytes)
{
	(void)r;
	*counter -= bytes;
}

void http_answers_hold(void)
{
}

void http_answers_release(void)
{
}

int http_start(const struct http_options *options, struct http_server **ret, struct err *err)
{
	(void)options;
	(void)ret;
	return err_set(err, ERR_UNSUPPORTED, "there are no sockets here");
}

bool http_in_vain(const struct http_request *r)
{
	(void)r;
	return false;
}

void http_known(struct http_request *r)
{
	(void)r;
}

int http_connections_fit(void)
{
	return HTTP_CONNECTIONS_MAX;
}

const char *http_address(const struct http_server *server)
{
	(void)server;
	return "";
}

int http_port(const struct http_server *server)
{
	(void)server;
	return 0;
}

void http_stop(struct http_server *server)
{
	(void)server;
}

struct http_stream *http_stream_begin(struct http_request *r, const char *content_type,
				      size_t limit_bytes, void *context,
				      void (*closed)(void *context, struct http_stream *stream))
{
	(void)content_type;
	CHECK(!r->answered && !r->stream);
	r->stream = calloc(1, sizeof(*r->stream));
	CHECK(r->stream);
	*r->stream = (struct http_stream){
		.request = r, .limit = limit_bytes, .hub = context, .closed = closed
	};
	return r->stream;
}

bool http_stream_send(struct http_stream *stream, const void *data, size_t size)
{
	if (stream->waiting.size + size > stream->limit)
		return false;
	if (!whole->dead)
		buf_add(&stream->waiting, data, size);
	return true;
}

struct http_piece {
	struct buf data;
	uint32_t users;
};

struct http_piece *http_piece_create(const void *data, size_t size)
{
	struct http_piece *piece = calloc(1, sizeof(*piece));

	CHECK(piece);
	buf_add(&piece->data, data, size);
	piece->users = 1;
	return piece;
}

void http_piece_unref(struct http_piece *piece)
{
	if (--piece->users)
		return;
	buf_deinit(&piece->data);
	free(piece);
}

bool http_stream_share(struct http_stream *stream, struct http_piece *piece)
{
	return http_stream_send(stream, piece->data.data, piece->data.size);
}

void http_stream_end(struct http_stream *stream)
{
	(void)stream;
	UNREACHABLE();
}

size_t http_stream_waiting(const struct http_stream *stream)
{
	return stream->waiting.size;
}
