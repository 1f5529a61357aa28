/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One request on its way through the API: who asks, which route, what it may see. Lives in the request's arena.
 *
 * The order is fixed: route, caller, (body), facts, object, permission, handler. A handler of a route with an object asks
 * call_permit itself when the object is named in the body; call_reply refuses to answer a call that nothing permitted.
 */
#include <pthread.h>
#include "api/backend.h"
#include "api/http/http.h"
#include "api/identity.h"
#include "api/json_out.h"
#include "api/questions.h"
#include "api/route.h"
#include "base/arena.h"
#include "base/conf.h"

struct api {
	const struct api_backend *backend;
	struct event_hub *hub;
	struct planner *planner;
	struct forecasts *forecasts;
	struct log_feed *log_feed;
	struct questions questions;
	_Atomic int64_t token_ms; /* latest time by which a token was judged: never earlier again */
	struct dear *dear;
	char folder[4096]; /* where what outlives the daemon is kept; "" = nowhere */
};

struct call {
	struct api *api;
	struct http_request *request;
	const struct route *route;
	struct route_match match;
	struct caller caller;
	/* taken when the handler begins, given back with the answer */
	struct frozen *frozen;
	const struct facts *facts; /* = &frozen->facts, or past */
	struct facts *past; /* facts with a job that has left them; own copy */
	struct arena *arena;
	bool permitted;
	bool dear; /* it is in its user's turn for expensive reads, or waits for it (dear.h) */
	/* of integer and flag queries, by their place in the route */
	int64_t number[ROUTE_QUERIES_MAX];
	bool given[ROUTE_QUERIES_MAX];
	struct command *next_commands; /* to be sent when the one before is durable */
	struct buf made; /* an answer to be sent when a command is durable */
	int made_status;
};

/* --- permission ---------------------------------------------------------------------------------------------- */
/* ERR_FORBIDDEN, with what would be needed. `what`: "job 12". */
int call_permit(struct call *call, enum relation relation, const char *what, struct err *err)
	MUST_CHECK;
/* Permission of another route, for parts of an answer. */
bool call_may(const struct call *call, enum route_id route, enum relation relation);
/* Wall time for the expiry of tokens: it stands still while the clock is behind what it was, or behind the facts. */
int64_t token_clock_ms(struct api *api, const struct facts *facts);
enum relation relation_of_owner(const struct call *call, const char *user, const char *team);
enum relation relation_of_job(const struct call *call, struct job_id id, const struct job *job);

/* --- input --------------------------------------------------------------------------------------------------- */
const char *call_query(const struct call *call, const char *name);
/* `standard` when it was not given. */
int64_t call_query_int(const struct call *call, const char *name, int64_t standard);
bool call_query_given(const struct call *call, const char *name);
/* after and limit of a paged list: limit 1..500. */
int call_page(const struct call *call, int64_t *ret_after, uint32_t *ret_limit, struct err *err)
	MUST_CHECK;
/* The body as a map, checked against the route's schema for unknown fields; an empty body is an empty map. */
int call_body(struct call *call, const struct conf **ret, struct err *err) MUST_CHECK;
/* Field of it; ret stays as it is when the field was not given, and false is answered. */
int body_text(const struct conf *body, const char *name, size_t max, const char **ret,
	      bool *ret_given, struct err *err) MUST_CHECK;
int body_int(const struct conf *body, const char *name, int64_t min, int64_t max, int64_t *ret,
	     bool *ret_given, struct err *err) MUST_CHECK;
int body_bool(const struct conf *body, const char *name, bool *ret, bool *ret_given,
	      struct err *err) MUST_CHECK;
/* "2h" from now on, or a moment with its zone. */
int body_moment(const struct conf *body, const char *name, int64_t now_ms, int64_t *ret,
		bool *ret_given, struct err *err) MUST_CHECK;
extern const char body_file[]; /* name of bodies in messages */
/* The job of the path. */
int call_job(struct call *call, struct job_id *ret, const struct job **ret_job, struct err *err)
	MUST_CHECK;
bool job_exists(const struct facts *facts, uint32_t id);

/* --- answers ------------------------------------------------------------------------------------------------- */
void call_reply(struct call *call, int status, struct buf *json);
void call_reply_text(struct call *call, const char *content_type, struct buf *text);
void call_fail(struct call *call, const struct err *err);
/* Gives the facts back; also for streams, which answer in their own way. */
void call_release(struct call *call);
/* Sends the event to the core and answers when it is durable: call->made if there is something in it, else Done. The event
 * is copied. */
void call_send(struct call *call, const struct event *event);
/* The same for several, one after the other; the first one that is refused ends it. All of them are copied. */
void call_send_all(struct call *call, const struct event *events, uint32_t count);
/* actor and time filled */
struct event call_event(const struct call *call, enum event_kind kind);

/* --- handlers (one per route) --------------------------------------------------------------------------------- */
#define ROUTE(id, method, path, summary, deed, least, flags, body, response)                       \
	void handle_##id(struct call *call);
#define QUERY(name, type, doc)
#define END
#include "api/routes.def"
#undef ROUTE
#undef QUERY
#undef END
