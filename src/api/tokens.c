/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: shown once when made, then only by id. */
#include <sodium.h>
#include <string.h>
#include "api/call.h"
#include "base/check.h"
#include "base/parse.h"

/* Whose tokens they are, to the caller: own, of the team, of others. Those of user 0, who is nobody any more, are of others. */
static enum relation token_relation(const struct call *call, uint32_t id)
{
	const struct user *user = id ? table_get(&call->facts->users, id) : NULL;

	if (!user)
		return RELATION_OTHER;
	if (id == call->caller.id)
		return RELATION_OWN;
	return relation_of_owner(call, NULL, facts_name(call->facts, user->team));
}

static void token_add(struct buf *out, const struct facts *f, const struct token *token,
		      int64_t now_ms)
{
	const bool expired = token->expires_ms && token->expires_ms <= now_ms;

	out_object(out, NULL);
	out_text(out, "id", facts_name(f, token->id));
	out_text(out, "user", facts_name(f, token->user));
	out_text(out, "note", facts_name(f, token->note));
	out_int(out, "expires_ms", token->expires_ms);
	out_text(out, "state", expired ? "expired" : token->revoked ? "revoked" : "valid");
	out_end(out, '}');
}

void handle_token_list(struct call *call)
{
	const struct facts *f = call->facts;
	struct buf out = BUF_INIT;

	out_object(&out, NULL);
	out_list(&out, "tokens");
	for (uint32_t id = 1; id <= f->tokens.count; id++) {
		const struct token *token = table_get(&f->tokens, id);

		/* Who may end a token may see that it is there. */
		if (token->id.v && call_may(call, ROUTE_token_revoke,
					    token_relation(call, facts_token_user(f, token))))
			token_add(&out, f, token, token_clock_ms(call->api, f));
	}
	out_end(&out, ']');
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

#define TOKEN_VALID_MS (INT64_C(90) * 86400 * 1000) /* where nothing is said; docs/security.md */

struct token_wish {
	const char *user, *note;
	int64_t expires_ms;
};

static int wish_read(struct call *call, struct token_wish *wish, struct err *err)
{
	const struct conf *body, *expires;
	int64_t valid_ms;
	bool given;

	wish->user = call->caller.user;
	wish->note = "";
	if (call_body(call, &body, err) < 0 ||
	    body_text(body, "user", NAME_MAX_BYTES, &wish->user, &given, err) < 0 ||
	    body_text(body, "note", NAME_MAX_BYTES, &wish->note, &given, err) < 0)
		return -(int)ERR_INVALID;
	expires = conf_find(body, "expires");
	if (expires && expires->type == CONF_SCALAR && strcmp(expires->text, "never") == 0)
		return 0;
	valid_ms = TOKEN_VALID_MS;
	if (expires && conf_duration(err, body_file, expires, "expires", &valid_ms) < 0)
		return -(int)ERR_INVALID;
	if (expires && valid_ms < 1000)
		return conf_error(err, body_file, expires,
				  "expires: a token is valid for a second at least");
	wish->expires_ms = token_clock_ms(call->api, call->facts) + valid_ms;
	return 0;
}

/* The token would be `user`, whose row is `id`: the caller's role must not be below. */
static int token_permit(struct call *call, const char *user, uint32_t id, struct err *err)
{
	const char *what = arena_printf(call->arena, "a token of \"%s\"", user);
	const uint8_t role =
		id ? ((const struct user *)table_get(&call->facts->users, id))->role : ROLE_NONE;

	if (call_permit(call, token_relation(call, id), what, err) < 0)
		return -(int)ERR_FORBIDDEN;
	if (role > call->caller.role)
		return err_set(err, ERR_FORBIDDEN, "%s: %s is %s, and the token would be %s", what,
			       call->caller.user, role_name(call->caller.role), role_name(role));
	return 0;
}

/* Jobs submitted with the token run as the user's account, which a lead does not have. */
static int token_maker_permit(const struct call *call, const char *user, uint32_t id,
			      struct err *err)
{
	if (id == call->caller.id || call->caller.role == ROLE_ADMIN)
		return 0;
	return err_set(err, ERR_FORBIDDEN,
		       "a token of \"%s\": jobs submitted with it would run as the account of %s; "
		       "ask %s or an admin to run: fairlead token create",
		       user, user, user);
}

void handle_token_create(struct call *call)
{
	struct event event = call_event(call, EVENT_TOKEN_CREATED);
	struct token_wish wish = { 0 };
	char secret[TOKEN_TEXT_MAX], hash[TOKEN_HASH_MAX];
	struct err err = { 0 };
	uint32_t user;

	if (wish_read(call, &wish, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	user = facts_user_find(call->facts, wish.user);
	if ((user && token_maker_permit(call, wish.user, user, &err) < 0) ||
	    token_permit(call, wish.user, user, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (!user) {
		err_set(&err, ERR_NOT_FOUND, "there is no user \"%s\"", wish.user);
		call_fail(call, &err);
		return;
	}
	token_make(secret, hash);
	/* The id is public and random: the first letters of the hash say nothing of the secret. */
	event.token_created.id = arena_printf(call->arena, "t-%.12s", hash);
	event.token_created.user = wish.user;
	event.token_created.owner = user;
	event.token_created.hash = hash;
	event.token_created.expires_ms = wish.expires_ms;
	event.token_created.note = wish.note;
	out_object(&call->made, NULL);
	out_text(&call->made, "id", event.token_created.id);
	out_text(&call->made, "token", secret);
	out_text(&call->made, "user", wish.user);
	out_int(&call->made, "expires_ms", wish.expires_ms);
	call->made_status = 201;
	sodium_memzero(secret, sizeof secret);
	call_send(call, &event);
}

void handle_token_revoke(struct call *call)
{
	struct event event = call_event(call, EVENT_TOKEN_REVOKED);
	const char *name = call->match.param[0];
	const uint32_t id = facts_token_find(call->facts, name);
	const struct token *token = id ? table_get(&call->facts->tokens, id) : NULL;
	const uint32_t user = token ? facts_token_user(call->facts, token) : 0;
	struct err err = { 0 };

	event.token_revoked.id = name;
	/* An id that is not there is refused as one of others would be: ids of others can't be tried out. */
	if (token_permit(call, token ? facts_name(call->facts, token->user) : "", user, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (!token) {
		err_set(&err, ERR_NOT_FOUND, "there is no token \"%s\"", name);
		call_fail(call, &err);
		return;
	}
	call_send(call, &event);
}
