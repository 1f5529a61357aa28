/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users and teams. What keeps roles from growing: nobody grants a role above his own, nobody changes a user above
 * himself, a lead acts inside his team only, and the account on the machine (as whom jobs run) is an admin's to set.
 */
#include <pwd.h>
#include <string.h>
#include "api/call.h"
#include "api/order.h"
#include "base/check.h"
#include "base/parse.h"

void handle_user_list(struct call *call)
{
	const struct facts *f = call->facts;
	struct named *order = arena_new_array(call->arena, struct named, f->users.count + 1);
	struct buf out = BUF_INIT;
	uint32_t count = 0;

	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);

		if (user->name.v && !user->removed)
			order[count++] = (struct named){ facts_name(f, user->name), id };
	}
	named_sort(order, count);
	out_object(&out, NULL);
	out_list(&out, "users");
	for (uint32_t i = 0; i < count; i++) {
		const struct user *user = table_get(&f->users, order[i].id);

		out_object(&out, NULL);
		out_text(&out, "name", order[i].name);
		out_text(&out, "team", facts_name(f, user->team));
		out_text(&out, "role", role_name(user->role));
		out_int(&out, "uid", user->uid);
		out_int(&out, "gid", user->gid);
		out_text(&out, "default_queue", facts_name(f, user->queue));
		out_end(&out, '}');
	}
	out_end(&out, ']');
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

/* The user as he is, or a new one's first values. */
static uint32_t user_begin(const struct call *call, const char *name, struct event_user_set *e)
{
	const struct facts *f = call->facts;
	const uint32_t id = facts_user_find(f, name);
	const struct user *user;

	e->name = name;
	e->role = ROLE_RESEARCHER;
	e->uid = e->gid = -1;
	/* A lead's new user is of his team unless he says otherwise (which is then refused). */
	e->team = call->caller.role == ROLE_ADMIN ? "" : call->caller.team;
	e->user = id ? (int64_t)id : -1;
	if (!id)
		return 0;
	user = table_get(&f->users, id);
	e->team = facts_name(f, user->team);
	e->role = user->role;
	e->uid = user->uid;
	e->gid = user->gid;
	e->queue = facts_name(f, user->queue);
	return id;
}

static int role_read(const struct conf *body, int64_t *ret, struct err *err)
{
	static const char *const words[] = { "viewer", "researcher", "service", "lead", "admin" };
	const char *text = NULL, *hint;
	uint8_t role;
	bool given;

	if (body_text(body, "role", 32, &text, &given, err) < 0)
		return -(int)ERR_INVALID;
	if (!given)
		return 0;
	if (!role_find(text, &role) || role == ROLE_NONE) {
		hint = spelling_hint(text, words, ARRAY_SIZE(words));
		return conf_error(err, body_file, conf_find(body, "role"),
				  "there is no role \"%s\"%s%s%s", text,
				  hint ? "; did you mean \""
				       : ": viewer, researcher, service, lead or admin",
				  hint ? hint : "", hint ? "\"?" : "");
	}
	*ret = role;
	return 0;
}

struct user_change {
	struct event_user_set *e;
	bool account;
};

/* The first group of the account, as the machine has it; -1 = it has none with this uid. */
static int64_t account_group(int64_t uid)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	if (uid < 0 || getpwuid_r((uid_t)uid, &entry, room, sizeof(room), &found) != 0 || !found)
		return -1;
	return (int64_t)found->pw_gid;
}

static int user_read(struct call *call, struct user_change *change, struct err *err)
{
	struct event_user_set *e = change->e;
	const struct conf *body;
	bool given, uid_given, gid_given;
	int rc = call_body(call, &body, err);

	if (rc >= 0)
		rc = body_text(body, "team", NAME_MAX_BYTES, &e->team, &given, err);
	if (rc >= 0)
		rc = body_text(body, "default_queue", NAME_MAX_BYTES, &e->queue, &given, err);
	if (rc >= 0)
		rc = role_read(body, &e->role, err);
	if (rc < 0)
		return rc;
	if (body_int(body, "uid", -1, INT32_MAX, &e->uid, &uid_given, err) < 0 ||
	    body_int(body, "gid", -1, INT32_MAX, &e->gid, &gid_given, err) < 0)
		return -(int)ERR_INVALID;
	if (uid_given && !gid_given)
		e->gid = account_group(e->uid);
	change->account = uid_given || gid_given;
	return 0;
}

/* No role grants more than it holds. Exact roles are ordered; a service is not above a researcher but is below a lead. */
static int grant_check(const struct call *call, uint32_t id, const struct user_change *change,
		       struct err *err)
{
	const struct facts *f = call->facts;
	const struct event_user_set *e = change->e;
	const struct user *old = id ? table_get(&f->users, id) : NULL;

	if (call->caller.role == ROLE_ADMIN)
		return 0;
	if (e->role > call->caller.role || (old && old->role > call->caller.role))
		return err_set(
			err, ERR_FORBIDDEN,
			"user \"%s\": %s is %s and can't give or change the role %s", e->name,
			call->caller.user, role_name(call->caller.role),
			role_name(old && old->role > e->role ? old->role : (uint8_t)e->role));
	if (change->account)
		return err_set(
			err, ERR_FORBIDDEN,
			"user \"%s\": jobs run as the account that uid and gid name, so only an admin sets them",
			e->name);
	if (strcmp(e->team, call->caller.team) != 0)
		return err_set(err, ERR_FORBIDDEN,
			       "user \"%s\": only an admin moves people between teams", e->name);
	return 0;
}

static int team_check(const struct facts *f, const struct event_user_set *e, struct err *err)
{
	if (*e->team && !facts_team_find(f, e->team))
		return err_set(err, ERR_NOT_FOUND,
			       "there is no team \"%s\"; make it with: fairlead teams create %s",
			       e->team, e->team);
	return 0;
}

/* Nobody moves the account by which the kernel knows him: so each who acts keeps a way in, the last admin too. */
static int own_account_check(const struct call *call, uint32_t id, const struct event_user_set *e,
			     struct err *err)
{
	const struct user *old = id ? table_get(&call->facts->users, id) : NULL;

	if (!old || old->removed || old->uid < 0 || old->uid == e->uid ||
	    strcmp(e->name, call->caller.user) != 0)
		return 0;
	return err_set(
		err, ERR_CONFLICT,
		"user \"%s\": uid %d is the account by which you come in, so another admin must change it",
		e->name, old->uid);
}

static enum relation user_relation(const struct call *call, uint32_t id, const char *name,
				   const char *team)
{
	const struct user *user = id ? table_get(&call->facts->users, id) : NULL;

	return relation_of_owner(call, name, user ? facts_name(call->facts, user->team) : team);
}

void handle_user_set(struct call *call)
{
	struct event event = call_event(call, EVENT_USER_SET);
	const char *name = call->match.param[0];
	struct user_change change = { .e = &event.user_set };
	const uint32_t id = user_begin(call, name, change.e);
	struct err err = { 0 };

	if (parse_name(name, "user", &err) < 0 || user_read(call, &change, &err) < 0 ||
	    call_permit(call, user_relation(call, id, name, change.e->team),
			arena_printf(call->arena, "user \"%s\"", name), &err) < 0 ||
	    grant_check(call, id, &change, &err) < 0 ||
	    team_check(call->facts, change.e, &err) < 0 ||
	    own_account_check(call, id, change.e, &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}

void handle_user_remove(struct call *call)
{
	struct event event = call_event(call, EVENT_USER_REMOVED);
	struct event as_is = event_make(EVENT_USER_SET, 0, "");
	const char *name = call->match.param[0];
	struct user_change change = { .e = &as_is.user_set };
	const uint32_t id = user_begin(call, name, change.e);
	struct err err = { 0 };

	event.user_removed.name = name;
	event.user_removed.user = id;
	if (!id)
		err_set(&err, ERR_NOT_FOUND, "there is no user \"%s\"", name);
	if (!id ||
	    call_permit(call, user_relation(call, id, name, ""),
			arena_printf(call->arena, "user \"%s\"", name), &err) < 0 ||
	    grant_check(call, id, &change, &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}

/* --- teams ------------------------------------------------------------------------------------------------------------------ */

static uint32_t members(const struct facts *f, struct name_id team)
{
	uint32_t count = 0;

	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);

		count += user->name.v && !user->removed && user->team.v == team.v;
	}
	return count;
}

void handle_team_list(struct call *call)
{
	const struct facts *f = call->facts;
	struct named *order = arena_new_array(call->arena, struct named, f->teams.count + 1);
	struct buf out = BUF_INIT;
	uint32_t count = 0;

	for (uint32_t id = 1; id <= f->teams.count; id++) {
		const struct team *team = table_get(&f->teams, id);

		if (team->name.v && !team->removed)
			order[count++] = (struct named){ facts_name(f, team->name), id };
	}
	named_sort(order, count);
	out_object(&out, NULL);
	out_list(&out, "teams");
	for (uint32_t i = 0; i < count; i++) {
		const struct team *team = table_get(&f->teams, order[i].id);

		out_object(&out, NULL);
		out_text(&out, "name", order[i].name);
		out_text(&out, "title", facts_name(f, team->title));
		out_int(&out, "members", members(f, team->name));
		out_end(&out, '}');
	}
	out_end(&out, ']');
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

void handle_team_set(struct call *call)
{
	struct event event = call_event(call, EVENT_TEAM_SET);
	const char *name = call->match.param[0];
	const uint32_t id = facts_team_find(call->facts, name);
	const struct conf *body;
	struct err err = { 0 };
	bool given;

	event.team_set.name = name;
	event.team_set.title =
		id ? facts_name(call->facts,
				((const struct team *)table_get(&call->facts->teams, id))->title)
		   : "";
	if (parse_name(name, "team", &err) < 0 || call_body(call, &body, &err) < 0 ||
	    body_text(body, "title", NAME_MAX_BYTES, &event.team_set.title, &given, &err) < 0 ||
	    call_permit(call, relation_of_owner(call, NULL, name),
			arena_printf(call->arena, "team \"%s\"", name), &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}

void handle_team_remove(struct call *call)
{
	struct event event = call_event(call, EVENT_TEAM_REMOVED);
	const char *name = call->match.param[0];
	const uint32_t id = facts_team_find(call->facts, name);
	struct err err = { 0 };

	event.team_removed.name = name;
	if (call_permit(call, relation_of_owner(call, NULL, name),
			arena_printf(call->arena, "team \"%s\"", name), &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (!id)
		err_set(&err, ERR_NOT_FOUND, "there is no team \"%s\"", name);
	else if (members(call->facts,
			 ((const struct team *)table_get(&call->facts->teams, id))->name))
		err_set(&err, ERR_CONFLICT, "team \"%s\" has members; move or remove them first",
			name);
	if (err.code != ERR_NONE)
		call_fail(call, &err);
	else
		call_send(call, &event);
}
