/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens are looked for by walking all of them and comparing each hash in constant time. The walk is 32 bytes a token;
 * sites have hundreds. Nothing is kept between requests, so a revoked token or a removed user ends with the
 * very next request.
 */
#include "api/identity.h"

#include <sodium.h>
#include <string.h>
#include "base/check.h"
#include "base/digest.h"

static int account_fill(const struct facts *f, uint32_t id, struct caller *ret)
{
	const struct user *user = table_get(&f->users, id);
	uint32_t team;

	if (user->removed || user->role == ROLE_NONE)
		return -1;
	memset(ret, 0, sizeof *ret);
	snprintf(ret->user, sizeof ret->user, "%s", facts_name(f, user->name));
	snprintf(ret->team, sizeof ret->team, "%s", facts_name(f, user->team));
	team = facts_team_find(f, ret->team);
	ret->team_first_job =
		team ? ((const struct team *)table_get(&f->teams, team))->first_job : 0;
	ret->id = id;
	ret->role = user->role;
	ret->uid = user->uid;
	ret->gid = user->gid;
	return 0;
}

static int local_find(const struct facts *f, const struct http_peer *peer, struct caller *ret,
		      struct err *err)
{
	if (peer->uid != (uid_t)-1)
		for (uint32_t id = 1; id <= f->users.count; id++) {
			const struct user *user = table_get(&f->users, id);

			if (user->uid >= 0 && (uid_t)user->uid == peer->uid &&
			    !account_fill(f, id, ret))
				return 0;
		}
	return err_set(
		err, ERR_UNAUTHENTICATED,
		"the account with uid %ld is not a user of Fairlead; ask an admin to run: fairlead users add NAME --uid %ld --team TEAM",
		(long)peer->uid, (long)peer->uid);
}

bool identity_is_known(const struct facts *facts, const struct http_peer *peer)
{
	struct caller caller;
	struct err err;

	return peer->local && local_find(facts, peer, &caller, &err) >= 0;
}

static bool token_is_well_formed(const char *text)
{
	return strlen(text) == TOKEN_TEXT_MAX - 1 && !memcmp(text, "fl_", 3) &&
	       strspn(text + 3, "0123456789abcdef") == 64;
}

static int token_find(const struct facts *f, const char *text, int64_t now_ms, struct caller *ret,
		      struct err *err)
{
	/* One text for all that is wrong with a token: whoever tries tokens learns nothing. */
	static const char refused[] =
		"the token is not valid: unknown, expired, revoked, or of a removed user; make one with: fairlead token create";
	const struct token *found = NULL;
	struct digest digest;
	uint32_t user;

	if (!token_is_well_formed(text))
		return err_set(err, ERR_UNAUTHENTICATED, "%s", refused);
	digest = digest_of(text, strlen(text));
	for (uint32_t id = 1; id <= f->tokens.count; id++) {
		const struct token *token = table_get(&f->tokens, id);

		if (!sodium_memcmp(token->hash, digest.bytes, sizeof token->hash))
			found = token;
	}
	if (found && !found->revoked && found->expires_ms &&
	    (found->expires_ms <= now_ms || found->expires_ms <= f->now_ms)) {
		snprintf(ret->expired, sizeof ret->expired, "%s", facts_name(f, found->id));
		found = NULL;
	}
	if (!found || found->revoked)
		return err_set(err, ERR_UNAUTHENTICATED, "%s", refused);
	user = facts_token_user(f, found);
	if (!user || account_fill(f, user, ret) < 0)
		return err_set(err, ERR_UNAUTHENTICATED, "%s", refused);
	snprintf(ret->token, sizeof ret->token, "%s", facts_name(f, found->id));
	return 0;
}

int identity_find(const struct facts *facts, const struct http_peer *peer,
		  const char *authorization, int64_t now_ms, struct caller *ret, struct err *err)
{
	memset(ret, 0, sizeof *ret);
	if (authorization) {
		if (strncasecmp(authorization, "Bearer ", 7) != 0)
			return err_set(err, ERR_UNAUTHENTICATED,
				       "the Authorization header must be: Bearer TOKEN");
		return token_find(facts, authorization + 7, now_ms, ret, err);
	}
	if (peer->local)
		return local_find(facts, peer, ret, err);
	return err_set(
		err, ERR_UNAUTHENTICATED,
		"over TCP a token is needed: Authorization: Bearer TOKEN; make one with: fairlead token create");
}

void token_make(char ret_token[TOKEN_TEXT_MAX], char ret_hash[TOKEN_HASH_MAX])
{
	unsigned char bytes[32];
	struct digest digest;

	CHECK(sodium_init() >= 0);
	randombytes_buf(bytes, sizeof bytes);
	memcpy(ret_token, "fl_", 3);
	sodium_bin2hex(ret_token + 3, TOKEN_TEXT_MAX - 3, bytes, sizeof bytes);
	sodium_memzero(bytes, sizeof bytes);
	digest = digest_of(ret_token, strlen(ret_token));
	digest_format(&digest, ret_hash);
}
