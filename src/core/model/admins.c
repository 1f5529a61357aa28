/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/admins.h"

/* A lasting way in besides token `without`. */
static bool comes_in(const struct facts *f, const struct user *user, uint32_t without)
{
	if (user->uid >= 0)
		return true;
	for (uint32_t id = 1; id <= f->tokens.count; id++) {
		const struct token *token = table_get(&f->tokens, id);

		if (id != without && token->user.v == user->name.v && !token->revoked &&
		    !token->expires_ms)
			return true;
	}
	return false;
}

static bool is_admin(const struct user *user)
{
	return user->name.v && !user->removed && user->role == ROLE_ADMIN;
}

static bool others_come_in(const struct facts *f, uint32_t except)
{
	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);

		if (id != except && is_admin(user) && comes_in(f, user, 0))
			return true;
	}
	return false;
}

bool admins_end_with_user(const struct facts *f, uint32_t id, const struct user *after)
{
	const struct user *user = id ? table_get(&f->users, id) : NULL;
	struct user then;

	if (!user || !is_admin(user))
		return false;
	if (after && after->role == ROLE_ADMIN) {
		then = *user;
		then.uid = after->uid;
		if (comes_in(f, &then, 0) || !comes_in(f, user, 0))
			return false;
	}
	return !others_come_in(f, id);
}

bool admins_end_with_token(const struct facts *f, uint32_t token)
{
	const struct token *lost = table_get(&f->tokens, token);
	uint32_t id = facts_user_find(f, facts_name(f, lost->user));
	const struct user *user = id ? table_get(&f->users, id) : NULL;

	return user && is_admin(user) && comes_in(f, user, 0) && !comes_in(f, user, token) &&
	       !others_come_in(f, id);
}
