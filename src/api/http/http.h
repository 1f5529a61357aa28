/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP/1.1 server: libmicrohttpd (epoll, one thread for each) on a Unix socket and/or a TCP address, with refusals of
 * ours for what that library accepts too freely (see README.md here: the gate): both lengths, doubled or
 * signed lengths, missing or double Host, NUL, folded headers, codings other than chunked, oversized anything; a refused
 * request closes its connection, so nothing can be smuggled behind it.
 *
 * A handler gets a whole request (body complete, limits checked) and must answer exactly once, at once or later and from
 * any thread (the connection is suspended meanwhile). A stream (server-sent events, log following) is an answer that goes on.
 *
 * Limits: HTTP_BODY_MAX, header 16 KiB, HTTP_CONNECTIONS_MAX, per-address share, deadline for a whole request.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/err.h"

enum {
	HTTP_BODY_MAX = 8 << 20,
	HTTP_BODIES_MAX_MIB = 256, /* bodies being received, all together; beyond: 503 */
	HTTP_CONNECTIONS_MAX = 6000, /* fewer where the process may not open so many files */
	/* of one local account or one address; the daemon's own account and root: no share */
	HTTP_PEER_CONNECTIONS_MAX = 5000,
	HTTP_REQUEST_MS = 30000, /* from a request's first byte to its last */
	HTTP_IDLE_MS = 120000, /* between two requests of a connection */
	HTTP_SEND_MS = 60000 /* an answer of which the client takes nothing for so long is cut */
};

struct http_server;
struct http_request; /* alive until its answer is complete */
struct http_stream;

struct http_peer {
	bool local; /* over the Unix socket: the kernel said who */
	uid_t uid;
	gid_t gid;
	pid_t pid;
	char address[64]; /* of TCP peers */
};

struct http_options {
	/* NULL = none; made mode 0666 (who may do what is decided per caller), stale one replaced */
	const char *unix_path;
	/* The caller knows that nobody else may listen there (the daemon holds its data folder's lock): what is there is left from
	 * before, even if it answers. A process that a killed daemon was just starting holds its listener until it executes. */
	bool unix_owned;
	/* "127.0.0.1:7070" or "[::1]:0"; NULL = none; only loopback is accepted (no TLS yet), unless: */
	const char *listen;
	bool listen_anywhere; /* what is answered there may be asked for by anybody */
	void *context;
	void (*handle)(void *context, struct http_request *request);
	/* Called when the head is there and the body is not; may be NULL. Nonzero: it has answered already (http_reply,
	 * http_reply_error; then `handle` is not called) and the body is read past without being kept. */
	int (*head)(void *context, struct http_request *request);
	/* Called by a network thread before (true) and after (false) each pass over all that came: what `handle` gathers in a pass
	 * can go on together. May be NULL. */
	void (*pass)(void *context, bool begins);
	/* Connections of callers whom nobody knows, all together; 0 = they are like others. Known is who has an account that `known`
	 * knows (Unix socket; any thread; NULL = none), and who was named in http_known. */
	int strangers_max;
	bool (*known)(void *context, const struct http_peer *peer);
	/* 0 = the standard above; tests take less. */
	int request_ms, idle_ms, send_ms, connections_max, peer_connections_max;
};

int http_start(const struct http_options *options, struct http_server **ret, struct err *err)
	MUST_CHECK;
/* the TCP port really bound, 0 = none */
int http_port(const struct http_server *server);
/* "127.0.0.1:7070", as it is bound; "" = none */
const char *http_address(const struct http_server *server);
/* Raises the limit of open files as far as it goes. How many connections there is room for then, beside the descriptors that
 * the rest of the daemon needs; HTTP_CONNECTIONS_MAX at most. */
int http_connections_fit(void);
/* The caller of this request has shown who he is: his connection is no stranger's any more. In `head` or `handle`. */
void http_known(struct http_request *r);
/* no new requests; waits for handlers' answers; NULL is fine */
void http_stop(struct http_server *server);

const char *http_method(const struct http_request *r);
const char *http_path(const struct http_request *r); /* decoded once; no query */
/* decoded; NULL = not given */
const char *http_query(const struct http_request *r, const char *name);
/* of those given, in order; NULL behind the last */
const char *http_query_name(const struct http_request *r, size_t index);
const char *http_header(const struct http_request *r, const char *name);
const void *http_body(const struct http_request *r, size_t *ret_size);
const struct http_peer *http_peer(const struct http_request *r);
struct arena *http_arena(struct http_request *r); /* freed with the request */
/* Whether work on it is in vain: the server stops, or nobody is there any more to take the answer. A client that has only ended its
 * sending still is. */
bool http_in_vain(const struct http_request *r);
void http_set_user(struct http_request *r, void *user); /* for the handler's own use */
void *http_user(const struct http_request *r);
/* before the answer */
void http_add_header(struct http_request *r, const char *name, const char *value);

/* `bytes` of memory that the answer takes are in *counter already; they leave it with the request, once its client has the answer or is gone. */
void http_hold(struct http_request *r, _Atomic int64_t *counter, int64_t bytes);

/* Answers; takes the bytes out of body (may be NULL = empty). */
void http_reply(struct http_request *r, int status, const char *content_type, struct buf *body);
/* Answers with {"error":{"code","message","file","line","column"}} and the code's HTTP status. */
void http_reply_error(struct http_request *r, const struct err *err);
/* ... and another HTTP status */
void http_reply_error_status(struct http_request *r, int status, const struct err *err);

/* Between the two, answers of this thread are told to the network thread in rows, not one by one. No waiting in between. */
void http_answers_hold(void);
void http_answers_release(void);

/* Begins a streamed answer. `closed` is called once, when the client went away or the server stops; then the stream is void. One that
 * the server's stop ends gets what waits and no proper end, so that its client does not take it for whole.
 * send copies; it answers false when more than `limit` bytes wait for this client (nothing was added then): the caller decides. */
struct http_stream *http_stream_begin(struct http_request *r, const char *content_type,
				      size_t limit_bytes, void *context,
				      void (*closed)(void *context, struct http_stream *stream));
bool http_stream_send(struct http_stream *stream, const void *data, size_t size);
/* A piece of data sent to many clients and kept once. Made with one reference; thread-safe. */
struct http_piece;
struct http_piece *http_piece_create(const void *data, size_t size);
void http_piece_unref(struct http_piece *piece);
/* as send, without a copy */
bool http_stream_share(struct http_stream *stream, struct http_piece *piece);
size_t http_stream_waiting(const struct http_stream *stream);
/* sends what waits, then closes; `closed` is still called */
void http_stream_end(struct http_stream *stream);
