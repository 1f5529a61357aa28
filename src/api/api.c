/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to its handler, and back: routing, authentication, permission, commands. */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/call.h"
#include "api/dear.h"
#include "api/forecast.h"
#include "api/hub.h"
#include "api/log_feed.h"
#include "api/past.h"
#include "api/planner.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/parse.h"
#include "core/scheduling/admit/queue_rights.h"

static void (*const handlers[ROUTE_COUNT])(struct call *) = {
#define ROUTE(id, method, path, summary, deed, least, flags, body, response)                       \
	[ROUTE_##id] = handle_##id,
#define QUERY(name, type, doc)
#define END
#include "api/routes.def"
#undef ROUTE
#undef QUERY
#undef END
};

struct api *api_create(const struct api_backend *backend)
{
	struct api *api = calloc(1, sizeof *api);

	CHECK(api);
	api->backend = backend;
	api->hub = event_hub_create(backend);
	api->planner = planner_create(backend);
	api->forecasts = forecasts_create();
	api->log_feed = log_feed_create(backend);
	questions_init(&api->questions);
	api->dear = dear_create();
	return api;
}

void api_keep(struct api *api, const char *folder)
{
	char path[PATH_MAX];

	snprintf(api->folder, sizeof(api->folder), "%s", folder);
	snprintf(path, sizeof(path), "%s/forecasts", folder);
	forecasts_keep(api->forecasts, io_real(), path);
}

void api_destroy(struct api *api)
{
	if (!api)
		return;
	event_hub_destroy(api->hub);
	forecasts_destroy(api->forecasts);
	planner_destroy(api->planner);
	log_feed_destroy(api->log_feed);
	questions_deinit(&api->questions);
	dear_destroy(api->dear);
	free(api);
}

struct event_hub *api_hub(struct api *api)
{
	return api->hub;
}

/* --- the head of a request ------------------------------------------------------------------------------------- */

static int query_read(struct call *call, size_t index, const char *text, struct err *err)
{
	const struct route_query *query = &call->route->query[index];
	struct err why = { 0 };

	call->given[index] = true;
	switch (query->type) {
	case QUERY_text:
		if (strlen(text) > 255)
			return err_set(err, ERR_INVALID, "?%s= is longer than 255 bytes",
				       query->name);
		return 0;
	case QUERY_integer:
		if (parse_int(text, INT64_MIN / 2, INT64_MAX / 2, &call->number[index], &why) < 0)
			return err_set(err, ERR_INVALID, "?%s=%.40s: expected a whole number",
				       query->name, text);
		return 0;
	case QUERY_flag:
	case QUERY_dear:
		if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
			return err_set(err, ERR_INVALID, "?%s=%.40s: expected 0 or 1", query->name,
				       text);
		call->number[index] = text[0] == '1';
		return 0;
	}
	UNREACHABLE();
}

struct query_walk {
	struct call *call;
	struct err *err;
	int result;
};

/* An unknown query is refused: a misspelt filter would answer with everything. */
static int queries_read(struct call *call, struct err *err)
{
	const char *names[ROUTE_QUERIES_MAX];
	const char *name;

	for (size_t i = 0; i < call->route->query_count; i++)
		names[i] = call->route->query[i].name;
	for (size_t i = 0; (name = http_query_name(call->request, i)); i++) {
		size_t index = 0;

		while (index < call->route->query_count && strcmp(names[index], name) != 0)
			index++;
		if (index == call->route->query_count) {
			const char *hint = spelling_hint(name, names, call->route->query_count);

			return err_set(err, ERR_INVALID, "%s %s knows no ?%.40s=%s%s%s",
				       call->route->method, call->route->path, name,
				       hint ? "; did you mean ?" : "", hint ? hint : "",
				       hint ? "=" : "");
		}
		if (query_read(call, index, http_query(call->request, name), err) < 0)
			return -(int)ERR_INVALID;
	}
	return 0;
}

static int route_choose(struct call *call, struct err *err)
{
	struct http_request *r = call->request;

	route_find(http_method(r), http_path(r), &call->match);
	call->route = call->match.route;
	if (call->route)
		return 0;
	if (call->match.allow[0]) {
		http_add_header(r, "Allow", call->match.allow);
		return err_set(err, ERR_UNSUPPORTED, "%s is not a method of %.120s; it has %s",
			       http_method(r), http_path(r), call->match.allow);
	}
	return err_set(err, ERR_NOT_FOUND,
		       "there is nothing at %.120s; GET /api/v1/openapi.json lists what there is",
		       http_path(r));
}

int64_t token_clock_ms(struct api *api, const struct facts *facts)
{
	int64_t latest = atomic_load(&api->token_ms), now = clock_wall_ms();

	if (now < facts->now_ms)
		now = facts->now_ms;
	while (latest < now && !atomic_compare_exchange_weak(&api->token_ms, &latest, now))
		continue;
	return latest < now ? now : latest;
}

/* Where it failed (a full disk), the next request with the token tries again. */
static void expiry_done(void *context, const struct command_reply *reply)
{
	(void)context;
	(void)reply;
}

/* A token that was seen expired stays so, also after a restart with a clock that went back. */
static void token_end(const struct api_backend *backend, const char *token)
{
	struct event event = event_make(EVENT_TOKEN_REVOKED, 0, "fairlead");
	struct command *command;

	event.token_revoked.id = token;
	command = command_create(&event, NULL, 0);
	command->done = expiry_done;
	backend->send(backend->context, command);
}

static int caller_find(struct call *call, struct err *err)
{
	const struct api_backend *backend = call->api->backend;
	struct frozen *frozen = backend->frozen(backend->context);
	const int result =
		identity_find(&frozen->facts, http_peer(call->request),
			      http_header(call->request, "Authorization"),
			      token_clock_ms(call->api, &frozen->facts), &call->caller, err);

	backend->release(backend->context, frozen);
	if (call->caller.expired[0])
		token_end(backend, call->caller.expired);
	if (result >= 0)
		http_known(call->request);
	return result;
}

bool api_known(void *context, const struct http_peer *peer)
{
	const struct api_backend *backend = ((struct api *)context)->backend;
	struct frozen *frozen = backend->frozen(backend->context);
	const bool known = identity_is_known(&frozen->facts, peer);

	backend->release(backend->context, frozen);
	return known;
}

int api_head(void *context, struct http_request *request)
{
	struct call *call = arena_new(http_arena(request), struct call);
	struct err err = { 0 };
	bool missing;

	call->api = context;
	call->request = request;
	call->arena = http_arena(request);
	http_set_user(request, call);
	missing = route_choose(call, &err) < 0;
	/* Who is nobody does not learn either which paths there are. */
	if (missing || !(call->route->flags & ROUTE_PUBLIC)) {
		struct err who = { 0 };

		if (caller_find(call, &who) < 0) {
			http_reply_error(request, &who);
			return 1;
		}
	}
	if (missing) {
		if (call->match.allow[0])
			http_reply_error_status(request, 405, &err);
		else
			http_reply_error(request, &err);
		return 1;
	}
	/* Known at the head: no body of a caller who may not is read. */
	if (!(call->route->flags & ROUTE_PUBLIC) &&
	    route_permits(call->route, call->caller.role, RELATION_GLOBAL))
		call->permitted = true;
	if (call->route->flags & ROUTE_PUBLIC)
		call->permitted = true;
	if (queries_read(call, &err) < 0) {
		http_reply_error(request, &err);
		return 1;
	}
	return 0;
}

/* --- the handler ------------------------------------------------------------------------------------------------ */

/* The least role that may use the route for anything at all; ROLE_NONE = nobody may. */
static uint8_t least_role(const struct route *route)
{
	uint8_t least = ROLE_NONE;

	for (int relation = 0; relation < RELATION_COUNT; relation++)
		for (uint8_t role = ROLE_VIEWER; role <= ROLE_ADMIN; role++)
			if (route_permits(route, role, (enum relation)relation) &&
			    (least == ROLE_NONE || role < least))
				least = role;
	return least;
}

/* Before any facts are at hand: who the admins are is looked up here. */
static int refuse_role(struct call *call, struct err *err)
{
	const struct api_backend *backend = call->api->backend;
	struct frozen *frozen = backend->frozen(backend->context);
	const uint8_t least = least_role(call->route);
	const char *who = rights_who_of_team(&frozen->facts, (struct name_id){ 0 }, call->arena);

	backend->release(backend->context, frozen);
	if (least == ROLE_ADMIN)
		return err_set(err, ERR_FORBIDDEN, "%s \"%s\" may not %s; ask %s",
			       role_name(call->caller.role), call->caller.user, call->route->deed,
			       who);
	return err_set(
		err, ERR_FORBIDDEN,
		"%s \"%s\" may not %s; ask %s for the role %s: fairlead users change %s --role %s",
		role_name(call->caller.role), call->caller.user, call->route->deed, who,
		role_name(least), call->caller.user, role_name(least));
}

/* Whether the path names a job that has left the facts. */
static bool path_past_job(const struct call *call, struct job_id *ret)
{
	int64_t id;

	if (!strstr(call->route->path, "/jobs/{id}") ||
	    parse_int(call->match.param[0], 1, UINT32_MAX, &id, NULL) < 0)
		return false;
	ret->v = (uint32_t)id;
	return job_is_past(call, *ret);
}

static void call_run(void *argument)
{
	struct call *call = argument;
	const struct api_backend *backend = call->api->backend;
	struct err err = { 0 };
	struct job_id id = { 0 };
	const struct job *job;

	if (!call->facts) {
		call->frozen = backend->frozen(backend->context);
		call->facts = &call->frozen->facts;
		if (!call->dear && path_past_job(call, &id)) { /* files are read: not here */
			dear_run(call, call_run);
			return;
		}
	}
	if (call->dear && path_past_job(call, &id) && call_revive(call, id, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	/* A job in the path: found, and permission asked, in one place for all. */
	if (strstr(call->route->path, "/jobs/{id}") &&
	    (call_job(call, &id, &job, &err) < 0 ||
	     call_permit(call, relation_of_job(call, id, job),
			 arena_printf(call->arena, "job %u", id.v), &err) < 0)) {
		call_fail(call, &err);
		return;
	}
	handlers[call->route->id](call);
}

static bool is_expensive(const struct call *call)
{
	const struct route *route = call->route;

	for (size_t i = 0; i < route->query_count; i++)
		if (route->query[i].type == QUERY_dear && call->number[i])
			return true;
	return route->flags & ROUTE_EXPENSIVE;
}

void api_handle(void *context, struct http_request *request)
{
	struct api *api = context;
	struct call *call = http_user(request);
	struct err err = { 0 };
	size_t size;

	if (!call) { /* the server was started without api_head */
		if (api_head(context, request))
			return;
		call = http_user(request);
	}
	(void)http_body(request, &size);
	if (size && !*call->route->body) {
		err_set(&err, ERR_INVALID, "%s %s takes no body", call->route->method,
			call->route->path);
		http_reply_error(request, &err);
		return;
	}
	if (!call->permitted &&
	    (least_role(call->route) == ROLE_NONE || least_role(call->route) > call->caller.role)) {
		(void)refuse_role(call, &err);
		http_reply_error(request, &err);
		return;
	}
	if (is_expensive(call))
		dear_run(call, call_run);
	else if (call->route->flags & ROUTE_WORKER)
		api->backend->work(api->backend->context, WORK_QUICK, call_run, call);
	else
		call_run(call);
}

/* --- permission --------------------------------------------------------------------------------------------------- */

/* Who has the right, for things with this relation to the caller: "its owner, lead \"lou\" or admin \"root\"". */
static const char *relation_who(const struct call *call, enum relation relation)
{
	const struct route *route = call->route;
	const struct facts *f = call->facts;
	const bool leads = route->least[RELATION_TEAM] == ROLE_LEAD;
	const struct name_id team = relation != RELATION_OTHER && leads
					    ? facts_name_find(f, call->caller.team)
					    : (struct name_id){ 0 };
	const char *owner = relation != RELATION_OWN && route->least[RELATION_OWN] != ROLE_NONE &&
					    route->least[RELATION_OWN] < ROLE_LEAD
				    ? "its owner, "
				    : "";

	return arena_printf(call->arena, "%s%s%s", owner,
			    relation == RELATION_OTHER && leads ? "a lead of its team or " : "",
			    rights_who_of_team(f, team, call->arena));
}

int call_permit(struct call *call, enum relation relation, const char *what, struct err *err)
{
	static const char *const of[RELATION_COUNT] = { "", "", " of others in the team",
							" of others" };
	const struct route *route = call->route;

	if (route_permits(route, call->caller.role, relation)) {
		call->permitted = true;
		return 0;
	}
	if (route->least[relation] == ROLE_NONE)
		return err_set(err, ERR_FORBIDDEN, "%s: nobody may do that", what);
	return err_set(err, ERR_FORBIDDEN, "%s: %s \"%s\" may not %s%s; ask %s", what,
		       role_name(call->caller.role), call->caller.user, route->deed, of[relation],
		       relation_who(call, relation));
}

bool call_may(const struct call *call, enum route_id route, enum relation relation)
{
	return route_permits(route_get(route), call->caller.role, relation);
}

enum relation relation_of_owner(const struct call *call, const char *user, const char *team)
{
	if (user && *user && !strcmp(user, call->caller.user))
		return RELATION_OWN;
	if (team && *team && !strcmp(team, call->caller.team))
		return RELATION_TEAM;
	return RELATION_OTHER;
}

/* A job from before the user or the team had the name is that of somebody else, or of another team. */
enum relation relation_of_job(const struct call *call, struct job_id id, const struct job *job)
{
	const struct user *user = table_get(&call->facts->users, call->caller.id);
	const bool own = !user->removed && (job->external || id.v >= user->first_job);
	const bool team = id.v >= call->caller.team_first_job;

	/* Priorities and limits go by queue, for leads: the core says how far. */
	if ((call->route->id == ROUTE_job_priority || call->route->id == ROUTE_job_change) &&
	    call->caller.role == ROLE_LEAD && rights_lead(call->facts, call->caller.id, job->queue))
		return RELATION_TEAM;
	return relation_of_owner(call, own ? facts_name(call->facts, job->user) : "",
				 team ? facts_name(call->facts, job->team) : "");
}

/* --- input ---------------------------------------------------------------------------------------------------------- */

const char body_file[] = "request body";

static size_t query_index(const struct call *call, const char *name)
{
	for (size_t i = 0; i < call->route->query_count; i++)
		if (!strcmp(call->route->query[i].name, name))
			return i;
	UNREACHABLE();
}

const char *call_query(const struct call *call, const char *name)
{
	return http_query(call->request, name);
}

bool call_query_given(const struct call *call, const char *name)
{
	return call->given[query_index(call, name)];
}

int64_t call_query_int(const struct call *call, const char *name, int64_t standard)
{
	const size_t index = query_index(call, name);

	return call->given[index] ? call->number[index] : standard;
}

int call_page(const struct call *call, int64_t *ret_after, uint32_t *ret_limit, struct err *err)
{
	const int64_t after = call_query_int(call, "after", 0),
		      limit = call_query_int(call, "limit", 100);

	if (after < 0)
		return err_set(err, ERR_INVALID, "?after=%lld: expected 0 or more",
			       (long long)after);
	if (limit < 1 || limit > 500)
		return err_set(err, ERR_INVALID, "?limit=%lld: expected 1 to 500",
			       (long long)limit);
	*ret_after = after;
	*ret_limit = (uint32_t)limit;
	return 0;
}

bool job_exists(const struct facts *facts, uint32_t id)
{
	return id && id <= facts->jobs.count && job_get(facts, (struct job_id){ id })->submitted_ms;
}

int call_job(struct call *call, struct job_id *ret, const struct job **ret_job, struct err *err)
{
	const char *text = call->match.param[0];
	int64_t id;

	if (parse_int(text, 1, UINT32_MAX, &id, NULL) < 0)
		return err_set(err, ERR_INVALID, "job \"%.40s\": expected its number", text);
	if (id <= call->facts->jobs.count && !job_exists(call->facts, (uint32_t)id))
		return err_set(
			err, ERR_NOT_FOUND,
			"job %lld is not remembered: it ended long ago, and then `fairlead job %lld` shows it, or its record was lost",
			(long long)id, (long long)id);
	if (!job_exists(call->facts, (uint32_t)id))
		return err_set(err, ERR_NOT_FOUND, "there is no job %lld", (long long)id);
	ret->v = (uint32_t)id;
	*ret_job = job_get(call->facts, *ret);
	return 0;
}

/* --- answers --------------------------------------------------------------------------------------------------------- */

void call_release(struct call *call)
{
	if (call->frozen)
		call->api->backend->release(call->api->backend->context, call->frozen);
	call->frozen = NULL;
	call->facts = NULL;
	if (call->past)
		facts_deinit(call->past);
	free(call->past);
	call->past = NULL;
}

/* The last lock: what nothing permitted is not answered, whatever a handler forgot. */
static bool answer_allowed(struct call *call)
{
	struct err err = { 0 };

	call_release(call);
	if (call->permitted)
		return true;
	err_set(&err, ERR_INTERNAL, "nothing permitted %s %s", call->route->method,
		call->route->path);
	http_reply_error(call->request, &err);
	return false;
}

void call_reply(struct call *call, int status, struct buf *json)
{
	if (answer_allowed(call)) {
		buf_addc(json, '\n');
		http_reply(call->request, status, "application/json", json);
	}
	buf_deinit(json);
}

void call_reply_text(struct call *call, const char *content_type, struct buf *text)
{
	if (answer_allowed(call))
		http_reply(call->request, 200, content_type, text);
	buf_deinit(text);
}

void call_fail(struct call *call, const struct err *err)
{
	call_release(call);
	buf_deinit(&call->made);
	http_reply_error(call->request, err);
}

struct event call_event(const struct call *call, enum event_kind kind)
{
	return event_make(kind, 0, call->caller.user);
}

static void command_done(void *context, const struct command_reply *reply)
{
	struct call *call = context;
	struct buf out = BUF_INIT;

	if (reply->err.code != ERR_NONE) {
		call_fail(call, &reply->err);
		return;
	}
	if (call->made.size) {
		/* A prepared answer gets its sequence number at the end. */
		out = call->made;
		call->made = BUF_INIT;
		out_int(&out, "seq", (int64_t)reply->seq);
		out_end(&out, '}');
		call_reply(call, call->made_status, &out);
		return;
	}
	out_object(&out, NULL);
	out_int(&out, "seq", (int64_t)reply->seq);
	out_bool(&out, "already", reply->already);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

void call_send(struct call *call, const struct event *event)
{
	struct command *command = command_create(event, NULL, 0);
	const struct api_backend *backend = call->api->backend;

	CHECK(call->permitted);
	/* No facts are held while the command is on its way. */
	call_release(call);
	command->context = call;
	command->done = command_done;
	backend->send(backend->context, command);
}

/* The next of several, or the answer. */
static void commands_done(void *context, const struct command_reply *reply)
{
	struct call *call = context;
	const struct api_backend *backend = call->api->backend;
	struct command *next = call->next_commands;

	if (reply->err.code == ERR_NONE && next) {
		call->next_commands = next->next;
		next->next = NULL;
		backend->send(backend->context, next);
		return;
	}
	while (next) {
		call->next_commands = next->next;
		command_destroy(next);
		next = call->next_commands;
	}
	command_done(context, reply);
}

void call_send_all(struct call *call, const struct event *events, uint32_t count)
{
	const struct api_backend *backend = call->api->backend;
	struct command **last = &call->next_commands, *first;

	CHECK(call->permitted && count > 0);
	for (uint32_t i = 0; i < count; i++) {
		struct command *command = command_create(&events[i], NULL, 0);

		command->context = call;
		command->done = commands_done;
		*last = command;
		last = &command->next;
	}
	call_release(call);
	first = call->next_commands;
	call->next_commands = first->next;
	first->next = NULL;
	backend->send(backend->context, first);
}
