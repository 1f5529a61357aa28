/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP/1.1 server: libmicrohttpd (epoll, its own thread) on a Unix socket and/or a TCP address, with refusals of
 * ours for what that library accepts too freely (docs/http-strictness in the README here): both lengths, doubled or
 * signed lengths, missing or double Host, NUL, folded headers, codings other than chunked, oversized anything; a refused
 * request closes its connection, so nothing can be smuggled behind it.
 *
 * A handler gets a whole request (body complete, limits checked) and must answer exactly once, at once or later and from
 * any thread (the connection is suspended meanwhile). A stream (server-sent events, log following) is an answer that goes on.
 *
 * Limits: HTTP_BODY_MAX, header 32 KiB, HTTP_CONNECTIONS_MAX, per-address share, deadline for a whole request.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/err.h"

enum { HTTP_BODY_MAX = 8 << 20, HTTP_CONNECTIONS_MAX = 6000 };

struct http_server;
struct http_request;	/* alive until its answer is complete */
struct http_stream;

struct http_peer {
	bool local;		/* over the Unix socket: the kernel said who */
	uid_t uid;
	gid_t gid;
	pid_t pid;
	char address[64];	/* of TCP peers */
};

struct http_options {
	const char *unix_path;	/* NULL = none; made mode 0666 (who may do what is decided per caller), stale one replaced */
	const char *listen;	/* "127.0.0.1:7070" or "[::1]:0"; NULL = none; only loopback is accepted (no TLS yet) */
	void *context;
	void (*handle)(void *context, struct http_request *request);
};

int http_start(const struct http_options *options, struct http_server **ret, struct err *err) MUST_CHECK;
int http_port(const struct http_server *server);	/* the TCP port really bound, 0 = none */
void http_stop(struct http_server *server);		/* no new requests; waits for handlers' answers; NULL is fine */

const char *http_method(const struct http_request *r);
const char *http_path(const struct http_request *r);	/* decoded once; no query */
const char *http_query(const struct http_request *r, const char *name);	/* decoded; NULL = not given */
const char *http_header(const struct http_request *r, const char *name);
const void *http_body(const struct http_request *r, size_t *ret_size);
const struct http_peer *http_peer(const struct http_request *r);
struct arena *http_arena(struct http_request *r);	/* freed with the request */
void http_set_user(struct http_request *r, void *user);	/* for the handler's own use */
void *http_user(const struct http_request *r);
void http_add_header(struct http_request *r, const char *name, const char *value);	/* before the answer */

/* Answers; takes the bytes out of body (may be NULL = empty). */
void http_reply(struct http_request *r, int status, const char *content_type, struct buf *body);
/* Answers with {"error":{"code","message","file","line","column"}} and the code's HTTP status. */
void http_reply_error(struct http_request *r, const struct err *err);

/* Begins a streamed answer. `closed` is called once, when the client went away or the server stops; then the stream is void.
 * send copies; it answers false when more than `limit` bytes wait for this client (nothing was added then): the caller decides. */
struct http_stream *http_stream_begin(struct http_request *r, const char *content_type, size_t limit_bytes,
				      void *context, void (*closed)(void *context, struct http_stream *stream));
bool http_stream_send(struct http_stream *stream, const void *data, size_t size);
size_t http_stream_waiting(const struct http_stream *stream);
void http_stream_end(struct http_stream *stream);	/* sends what waits, then closes; `closed` is still called */
