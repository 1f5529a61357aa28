/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Requests to the API server, many at once, by one thread of the client's own (libcurl's multi interface).
 *
 * Calls may come from any thread. What comes back is told on the client's thread: `done` once for each request, `line` for each line of
 * a stream. Neither may wait for another request.
 *
 * A request that got no answer, or 408, 429, 500, 502, 503, 504 or (once the token was read again) 401, is sent again after a pause that
 * doubles up to KUBE_PAUSE_MAX_MS, with a random part, or as long as Retry-After says: so `done` comes with an answer that means
 * something. Whoever gives a request must be able to bear that it was carried out twice, or carried out without an answer.
 *
 * At most KUBE_FLIGHT_MAX requests are in flight; fewer after a 429, one more after each window without one. Streams do not count.
 *
 * Words for people (`late`) give way: they have a window of their own of KUBE_LATE_MAX, of which one at a time is sent while other requests are in
 * flight, and a 429 to one of them makes that window smaller, not the other.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "engine/kubernetes/access.h"

enum {
	KUBE_FLIGHT_MAX = 64,
	KUBE_LATE_MAX = 16,
	KUBE_PAUSE_MS = 100,
	KUBE_PAUSE_MAX_MS = 10000,
	KUBE_ANSWER_MAX = 64 << 20, /* bytes of one answer */
	KUBE_LINE_MAX = 16 << 20 /* of one line of a stream */
};

struct kube_answer {
	int status; /* HTTP; 0 = none came, and `problem` says why: only of requests with `once`, and at the client's end */
	const char *body;
	size_t size;
	const char *problem;
	bool too_large; /* it was larger than its limit: it comes to an end with status 0 all the same */
};
/* That of a request which the client's end has cut off. */
bool kube_is_end(const struct kube_answer *answer);
typedef void kube_done(void *context, const struct kube_answer *answer);
/* What is to become of a request that got this answer (its status is not 0). On the client's thread. */
enum kube_next { KUBE_USUAL, KUBE_AGAIN, KUBE_TELL };
typedef enum kube_next kube_judge(void *context, const struct kube_answer *answer);
/* One line without its newline; false ends the stream. */
typedef bool kube_line(void *context, const char *line, size_t size);

struct kube_request {
	const char *method; /* static */
	const char *path; /* with query; copied */
	const char *type; /* of the body; NULL = application/json; static */
	struct buf *body; /* taken over, left empty; NULL = none */
	bool once; /* never sent again */
	bool late; /* it gives way to others */
	bool (*wanted)(
		void *context); /* asked right before it is sent, on the client's thread; false ends it with status 0. NULL = always */
	kube_judge *
		judge; /* of what is sent again or not other than usual, or is not wanted any more; NULL = as usual */
	kube_done *done;
	kube_line *
		line; /* makes it a stream: its end is told to `done` with what was not a whole line */
	void *context;
};

struct kube_client;
/* The access stays the caller's and must outlive the client. */
int kube_client_create(const struct kube_access *access, struct kube_client **ret, struct err *err)
	MUST_CHECK;
/* Ends the thread; requests that were not answered are told with status 0. */
void kube_client_destroy(struct kube_client *client);
void kube_call(struct kube_client *client, const struct kube_request *request);
/* After so long, on the client's thread. */
void kube_later(struct kube_client *client, int64_t in_ms, void (*fn)(void *context),
		void *context);
/* The same; then, or at the client's end, the context is freed. */
void kube_later_free(struct kube_client *client, int64_t in_ms, void (*fn)(void *context),
		     void *context);
/* A value of a query. */
void kube_add_escaped(struct buf *out, const char *text);
/* Whether such an answer is usually no answer. */
bool kube_is_passing(int status);

/* From now on a request is sent only while may_send says so, which is asked right before its bytes leave; until then it waits. Streams do not
 * ask: they change nothing. Before the first request. */
void kube_client_fence(struct kube_client *client, bool (*may_send)(void *context), void *context);

/* A right which the account lacked (rights.h) has come: told on the client's thread. Before the first request. */
void kube_client_rights(struct kube_client *client, void (*granted)(void *context), void *context);

struct kube_figures {
	uint64_t sent, repeated, slowed; /* requests; those of them sent again; 429s */
};
void kube_client_figures(struct kube_client *client, struct kube_figures *ret);
/* Why the server can't be reached at present, or which right it misses; "" = neither. */
void kube_client_problem(struct kube_client *client, char out[256]);
