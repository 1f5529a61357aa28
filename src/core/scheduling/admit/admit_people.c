/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of commands about teams, users and tokens. */
#include "core/scheduling/admit/admit.h"

#include "core/model/admins.h"
#include "core/model/apply.h"

int admit_team_set(const struct admission *a, struct event_team_set *e)
{
	const uint32_t id = facts_team_find(a->facts, e->name);
	int rc = admit_name(a, "team", e->name);

	e->team = id ? id : a->facts->teams.count + 1;
	return rc < 0 ? rc : admit_text(a, "the title of a team", e->title);
}

int admit_team_removed(const struct admission *a, const struct event_team_removed *e)
{
	const struct facts *f = a->facts;
	struct name_id name = facts_name_find(f, e->name);

	if (!facts_team_find(f, e->name))
		return err_set(a->err, ERR_NOT_FOUND, "team \"%s\" does not exist", e->name);
	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);

		if (!user->removed && name_same(user->team, name))
			return err_set(a->err, ERR_CONFLICT, "team \"%s\" still has user \"%s\"",
				       e->name, facts_name(f, user->name));
	}
	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *queue = queue_get(f, (struct queue_id){ id });

		if (!queue->removed && name_same(queue->team, name))
			return err_set(a->err, ERR_CONFLICT, "team \"%s\" still has queue \"%s\"",
				       e->name, facts_name(f, queue->name));
	}
	return 0;
}

static int admins_refuse(const struct admission *a, const char *what, const char *name)
{
	return err_set(a->err, ERR_CONFLICT,
		       "%s \"%s\": no admin who can come in would be left; "
		       "make another one first, with a uid or a token that does not expire",
		       what, name);
}

/* What was asked was about the user that the name meant then: `number`, 0 = not said, -1 = nobody. */
static int still_means(const struct admission *a, const char *name, int64_t number, uint32_t id)
{
	if (!number || number == (id ? (int64_t)id : -1))
		return 0;
	return err_set(a->err, ERR_CONFLICT,
		       "user \"%s\" was removed or made by somebody else at the same moment; "
		       "list the users and try again",
		       name);
}

/* Jobs run as the uid: two people with one of it would be one before the kernel. */
static int uid_is_free(const struct admission *a, const struct event_user_set *e, uint32_t id)
{
	if (e->uid < 0)
		return 0;
	for (uint32_t i = 1; i <= a->facts->users.count; i++) {
		const struct user *other = table_get(&a->facts->users, i);

		if (i != id && other->name.v && !other->removed && other->uid == e->uid)
			return err_set(
				a->err, ERR_CONFLICT,
				"user \"%s\": uid %lld belongs to user \"%s\"; give each person an account "
				"of their own, or remove user \"%s\" first",
				e->name, (long long)e->uid, facts_name(a->facts, other->name),
				facts_name(a->facts, other->name));
	}
	return 0;
}

int admit_user_set(const struct admission *a, struct event_user_set *e)
{
	const struct facts *f = a->facts;
	uint32_t id = facts_user_find(f, e->name);
	int rc = admit_name(a, "user", e->name);

	if (rc == 0)
		rc = admit_range(a, "the role of a user", e->role, ROLE_VIEWER, ROLE_ADMIN);
	if (rc == 0)
		rc = admit_range(a, "the uid of a user", e->uid, -1, INT32_MAX);
	if (rc == 0)
		rc = still_means(a, e->name, e->user, id);
	if (rc == 0)
		rc = uid_is_free(a, e, id);
	if (rc < 0)
		return rc;
	if (*e->team && !facts_team_find(f, e->team))
		return err_set(a->err, ERR_NOT_FOUND, "user \"%s\": team \"%s\" does not exist",
			       e->name, e->team);
	if (*e->queue && !admit_queue_find(a, e->queue).v)
		return err_prefix(a->err, "user \"%s\": default queue", e->name);
	if (admins_end_with_user(
		    f, id, &(struct user){ .role = (uint8_t)e->role, .uid = (int32_t)e->uid }))
		return admins_refuse(a, "user", e->name);
	e->user = id ? id : f->users.count + 1;
	return 0;
}

int admit_user_removed(const struct admission *a, struct event_user_removed *e)
{
	uint32_t id = facts_user_find(a->facts, e->name);
	int rc;

	if (!id)
		return err_set(a->err, ERR_NOT_FOUND, "user \"%s\" does not exist", e->name);
	rc = still_means(a, e->name, e->user, id);
	if (rc < 0)
		return rc;
	if (admins_end_with_user(a->facts, id, NULL))
		return admins_refuse(a, "user", e->name);
	e->user = id;
	return 0;
}

int admit_token_created(const struct admission *a, struct event_token_created *e)
{
	const uint32_t user = facts_user_find(a->facts, e->user);
	uint8_t hash[32];
	int rc = admit_name(a, "token", e->id);

	if (rc == 0)
		rc = admit_text(a, "the note of a token", e->note);
	if (rc < 0)
		return rc;
	if (facts_token_find(a->facts, e->id))
		return err_set(a->err, ERR_CONFLICT, "token \"%s\" exists already", e->id);
	if (!user)
		return err_set(a->err, ERR_NOT_FOUND, "user \"%s\" does not exist", e->user);
	rc = still_means(a, e->user, e->owner, user);
	if (rc < 0)
		return rc;
	e->owner = user;
	if (!hex_parse(e->hash, hash))
		return err_set(a->err, ERR_INVALID,
			       "the hash of token \"%s\" is not 64 hexadecimal digits", e->id);
	if (e->expires_ms && e->expires_ms <= a->facts->now_ms)
		return err_set(a->err, ERR_INVALID, "token \"%s\" would have expired already",
			       e->id);
	return 0;
}

int admit_token_revoked(const struct admission *a, const struct event_token_revoked *e)
{
	uint32_t id = facts_token_find(a->facts, e->id);

	if (!id)
		return err_set(a->err, ERR_NOT_FOUND, "token \"%s\" does not exist", e->id);
	if (((const struct token *)table_get(&a->facts->tokens, id))->revoked)
		return CORE_ALREADY;
	if (admins_end_with_token(a->facts, id))
		return admins_refuse(a, "token", e->id);
	return 0;
}
