/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What http.c, http_accept.c, http_loop.c, http_answer.c, http_stream.c and http_sweep.c share; nobody else includes this.
 *
 * Threads: per listening socket one that runs the library ("network thread"), one sweeper, and whoever answers. A
 * connection is touched by its network thread; `server->lock` guards the list of connections, their closing, and
 * `stream`, so that the sweeper never meets a socket that is closed already.
 */
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include "api/http/http.h"
#include "api/http/receive.h"
#include "api/http/target.h"
#include "base/arena.h"

struct connection {
	struct receive receive;
	struct http_server *server;
	struct listener *listener;
	struct connection *next, *previous;
	struct http_peer peer;
	struct peer_count *count;
	struct http_stream *stream; /* under server->lock */
	struct MHD_Connection *mhd;
	_Atomic bool busy; /* a request of it is handled or answered */
	_Atomic bool receiving; /* ... and has not come in whole */
	_Atomic int64_t idle_ms; /* since when it is not */
	/* since when an answer that is no stream is being sent; 0 = none */
	_Atomic int64_t answered_ms;
	int64_t opened_ms;
	/* under server->lock: shut down, waits for its thread */
	bool condemned;
	bool stranger; /* under server->lock: see http_accept.c */
};

struct peer_count {
	struct peer_count *next;
	bool local;
	uid_t uid;
	char address[64];
	int connections;
};

struct listener {
	struct MHD_Daemon *mhd;
	int fd;
	bool local;
	struct http_server *server;
	pthread_t thread;
	bool running, quiet; /* quiet: takes no more connections */
	int reserve_fd; /* -1 = none */
	int64_t paused_until_ms; /* nothing is accepted before; 0 = it is */
	struct http_peer newcomer; /* whom the library is being given */
	bool newcomer_is_stranger;
	int wake_fd; /* written to: answers wait, or the end has come */
	_Atomic bool over;
	/* suspended requests that were answered, newest first; whoever finds it empty wakes the network thread */
	struct http_request *_Atomic answered;
};

struct http_server {
	struct http_options options;
	struct listener listeners[2];
	int port;
	char address[64];
	char unix_path[108];
	char strangers_text[256];
	_Atomic int telling; /* threads that have answered and will still wake a listener */
	pthread_mutex_t lock;
	/* handling or connections or streams went down, or stopping went up */
	pthread_cond_t changed;
	struct connection *connections;
	struct peer_count *peers;
	int connection_count, stream_count, stranger_count;
	int handling; /* requests given to the handler and not answered */
	_Atomic bool stopping;
	_Atomic int64_t body_bytes; /* of requests being received */
	pthread_t sweeper;
	bool sweeping;
};

enum request_state { REQUEST_NEW, REQUEST_HANDLING, REQUEST_SUSPENDED, REQUEST_ANSWERED };

struct http_request {
	struct connection *connection;
	struct MHD_Connection *mhd;
	struct arena arena;
	struct target target;
	const char *method, *raw_target;
	void *user;
	struct buf body;
	int64_t body_reserved; /* counted into server->body_bytes */
	struct header {
		struct header *next;
		const char *name, *value;
	} *headers;
	_Atomic int state;
	int status; /* of the answer; 0 = none yet */
	const char *content_type; /* NULL = none is said */
	struct buf answer; /* its body, where it is no stream */
	struct MHD_Response
		*response; /* a stream's from the start, others' made when they are sent */
	struct http_stream *stream;
	struct http_request *next_answered;
	_Atomic int64_t *held; /* counter that `held_bytes` leave at the end; NULL = none */
	int64_t held_bytes;
	bool begun, counted, close, queued;
};

/* The answer is in r->status, r->answer or r->response: tells the network thread, wherever this is called. r is void afterwards. */
void request_answered(struct http_request *r);
/* The network thread goes on with a suspended request. Any thread; r is void afterwards. */
void listener_resume(struct listener *listener, struct http_request *r);
/* The network thread of a listener whose library is started. */
int loop_start(struct listener *listener, struct err *err) MUST_CHECK;
void loop_wake(struct listener *listener);
void loop_stop(struct listener *listener); /* also of one that was not started */
/* Takes the descriptor that is kept for when there is no other, where it is not there. */
void accept_reserve(struct listener *listener);
/* Lets in what waits; for a pass of the network thread. */
void accept_pass(struct listener *listener);
int accept_pause_ms(const struct listener *listener); /* left of a pause; 0 = none */
void accept_close(struct listener *listener);
/* Under server->lock, all three. The count of all connections of this one's account or address. */
struct peer_count *peer_count_get(struct http_server *server, const struct http_peer *peer);
void peer_count_drop(struct http_server *server, struct peer_count *count);
void stranger_leaves(struct connection *c);
/* Under server->lock. Shuts it down; its network thread clears up. */
void connection_cut(struct connection *c);
/*
 * The library's form of the answer, with r's own and the standard headers. Made by the network thread at the last moment: its
 * thirty small pieces of memory are given back as soon as they were sent, and by the same thread.
 */
void answer_make(struct http_request *r);
void reply_problem(struct http_request *r, enum framing_problem problem);
/* The network thread is done with a stream's connection. Calls `closed`, frees. */
void stream_closed(struct http_stream *stream);
/* Under server->lock. Ends it: after what waits (abort false) or at once. */
void stream_finish(struct http_stream *stream, bool abort);
/* Under server->lock. Its client took nothing for so long. */
bool stream_is_stuck(struct http_stream *stream, int64_t now_ms, int64_t limit_ms);
/* under server->lock: suspended, so the library does not watch the socket */
bool stream_is_parked(struct http_stream *stream);
void sweeper_start(struct http_server *server);
void sweeper_stop(struct http_server *server);
/* Host and Origin: 0, or negative with the story. */
int request_check_host(const struct http_request *r, struct err *err) MUST_CHECK;
