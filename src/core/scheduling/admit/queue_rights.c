/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk from the queue upwards finds the team that it belongs to, and the narrowest statement on tiers and priorities.
 *
 *	research	team science	tiers standard, best-effort	max_priority 50
 *	  vision	team vision	(nothing stated)
 *	    night			tiers best-effort
 *
 * The lead of team vision leads vision and night; that of science all three. Jobs of night are best-effort. No job of vision is critical, whoever
 * submits it, since research states that. The leads may raise a priority to 50, an admin to any.
 */
#include "core/scheduling/admit/queue_rights.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/model/apply.h"
#include "core/scheduling/view/view.h"

static const struct user *user_row(const struct facts *f, uint32_t user)
{
	return user && user != RIGHTS_STRANGER ? table_get(&f->users, user) : NULL;
}

static uint8_t role_of(const struct facts *f, uint32_t user)
{
	const struct user *row = user_row(f, user);

	return row ? row->role : ROLE_NONE;
}

struct name_id rights_team(const struct facts *f, struct queue_id queue)
{
	for (; queue.v; queue = queue_get(f, queue)->parent)
		if (queue_get(f, queue)->team.v)
			return queue_get(f, queue)->team;
	return (struct name_id){ 0 };
}

bool rights_lead(const struct facts *f, uint32_t user, struct queue_id queue)
{
	const struct user *row = user_row(f, user);

	if (!row || row->removed || row->role < ROLE_LEAD)
		return false;
	if (row->role == ROLE_ADMIN)
		return true;
	for (; row->team.v && queue.v; queue = queue_get(f, queue)->parent)
		if (name_same(queue_get(f, queue)->team, row->team))
			return true;
	return false;
}

/* The first user with the role, of the team where it is a lead; NULL = there is none. */
static const struct user *first_with(const struct facts *f, uint8_t role, struct name_id team)
{
	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);

		if (user->name.v && !user->removed && user->role == role &&
		    (role == ROLE_ADMIN || name_same(user->team, team)))
			return user;
	}
	return NULL;
}

const char *rights_who_of_team(const struct facts *f, struct name_id team, struct arena *arena)
{
	const struct user *lead = team.v ? first_with(f, ROLE_LEAD, team) : NULL,
			  *admin = first_with(f, ROLE_ADMIN, team);
	const char *text = admin ? arena_printf(arena, "admin \"%s\"", facts_name(f, admin->name))
				 : "an admin";

	if (!lead)
		return text;
	return arena_printf(arena, "lead \"%s\" or %s", facts_name(f, lead->name), text);
}

const char *rights_who(const struct facts *f, struct queue_id queue, struct arena *arena)
{
	return rights_who_of_team(f, rights_team(f, queue), arena);
}

int rights_asker(const struct admission *a, int64_t by, uint32_t *ret_user)
{
	const struct user *user;

	*ret_user = 0;
	if (!by)
		return 0;
	user = by > 0 && by <= (int64_t)a->facts->users.count
		       ? table_get(&a->facts->users, (uint32_t)by)
		       : NULL;
	if (!user || user->removed)
		return err_set(a->err, ERR_FORBIDDEN,
			       "the user who asked for this was removed; ask %s",
			       rights_who_of_team(a->facts, (struct name_id){ 0 }, a->arena));
	*ret_user = (uint32_t)by;
	return 0;
}

/* --- tiers --------------------------------------------------------------------------------------------- */

/* The nearest queue upwards that states tiers without this one; 0 = none does. *ret_stated: one states tiers at all. */
static struct queue_id tier_closed_by(const struct facts *f, struct queue_id queue, int64_t tier,
				      bool *ret_stated)
{
	*ret_stated = false;
	for (; queue.v; queue = queue_get(f, queue)->parent) {
		const uint8_t tiers = queue_get(f, queue)->tiers;

		*ret_stated = *ret_stated || tiers;
		if (tiers && !(tiers >> tier & 1))
			return queue;
	}
	return queue;
}

int rights_tier(const struct admission *a, const char *what, uint32_t user, struct queue_id queue,
		int64_t tier)
{
	const struct facts *f = a->facts;
	bool stated;
	const struct queue_id closed = tier_closed_by(f, queue, tier, &stated);

	if (closed.v)
		return err_set(
			a->err, ERR_FORBIDDEN,
			"%s: queue \"%s\" does not admit tier %s: use another tier or queue; %s can change what it admits (fairlead queues change %s --tiers)",
			what, facts_name(f, queue_get(f, closed)->name), tier_name((uint8_t)tier),
			rights_who(f, closed, a->arena), facts_name(f, queue_get(f, closed)->name));
	if (stated || tier != TIER_CRITICAL || !user || rights_lead(f, user, queue))
		return 0;
	return err_set(
		a->err, ERR_FORBIDDEN,
		"%s: queue \"%s\" does not admit critical jobs unless it states that: use tier standard, or ask %s to run `fairlead queues change %s --tiers critical,standard,best-effort`",
		what, facts_name(f, queue_get(f, queue)->name), rights_who(f, queue, a->arena),
		facts_name(f, queue_get(f, queue)->name));
}

/* --- priorities ---------------------------------------------------------------------------------------- */

static int64_t max_priority(const struct queue *queue)
{
	return queue->max_priority < 0 ? 0 : queue->max_priority;
}

/* What the queues state, the least of it; -1 = nothing. */
static int64_t priority_stated(const struct facts *f, struct queue_id queue)
{
	int64_t least = -1;

	for (; queue.v; queue = queue_get(f, queue)->parent) {
		const struct queue *q = queue_get(f, queue);

		if (q->max_priority && (least < 0 || max_priority(q) < least))
			least = max_priority(q);
	}
	return least;
}

int64_t rights_priority_most(const struct facts *f, uint32_t user, struct queue_id queue)
{
	const int64_t stated = priority_stated(f, queue);
	const bool leads = rights_lead(f, user, queue);

	if (role_of(f, user) == ROLE_ADMIN || (!user && stated < 0))
		return PRIORITY_MOST;
	if (stated < 0)
		return leads ? PRIORITY_LEAD_MOST : 0;
	return leads && stated > PRIORITY_LEAD_MOST ? PRIORITY_LEAD_MOST : stated;
}

/* "lead \"bob\" to 50, admin \"root\" to any". */
static const char *who_raises(const struct facts *f, struct queue_id queue, int64_t priority,
			      struct arena *arena)
{
	const struct user *lead = first_with(f, ROLE_LEAD, rights_team(f, queue));
	const uint32_t row =
		lead ? ((const struct name *)table_get(&f->names, lead->name.v))->user : 0;

	if (!rights_team(f, queue).v || !row || rights_priority_most(f, row, queue) < priority)
		return rights_who_of_team(f, (struct name_id){ 0 }, arena);
	return rights_who(f, queue, arena);
}

int rights_priority(const struct admission *a, const char *what, uint32_t user,
		    struct queue_id queue, int64_t has, int64_t priority)
{
	const struct facts *f = a->facts;
	const struct user *row = user_row(f, user);
	int64_t most = rights_priority_most(f, user, queue);

	if (priority <= 0 || priority <= has || priority <= most)
		return 0;
	return err_set(
		a->err, ERR_FORBIDDEN,
		"%s: priority %lld is more than the %lld that %s%s%s%s may use in queue \"%s\": use a lower one, or ask %s to raise it (fairlead priority)",
		what, (long long)priority, (long long)most,
		row ? role_name(row->role) : "anybody here", row ? " \"" : "",
		row ? facts_name(f, row->name) : "", row ? "\"" : "",
		facts_name(f, queue_get(f, queue)->name), who_raises(f, queue, priority, a->arena));
}

/* --- limits -------------------------------------------------------------------------------------------- */

int rights_extend(const struct admission *a, const char *what, uint32_t user, struct queue_id queue,
		  int64_t has_ms, int64_t limit_ms)
{
	const struct facts *f = a->facts;
	const int64_t most = queue_default_limit_ms(f, queue);
	const struct user *row = user_row(f, user);
	char duration[DURATION_TEXT_MAX];

	if (!user || rights_lead(f, user, queue) || limit_ms == has_ms)
		return 0;
	if (limit_ms && (!has_ms || limit_ms < has_ms || limit_ms <= most))
		return 0;
	return err_set(
		a->err, ERR_FORBIDDEN,
		"%s has started: %s%s%s%s may extend its limit to %s, the limit of queue \"%s\", and not further; ask %s (fairlead change ID --limit)",
		what, row ? role_name(row->role) : "a user", row ? " \"" : "",
		row ? facts_name(f, row->name) : "", row ? "\"" : "",
		format_duration(most, duration), facts_name(f, queue_get(f, queue)->name),
		rights_who(f, queue, a->arena));
}

/* --- queues -------------------------------------------------------------------------------------------- */

/* Of the highest queue of a team: what divides the cluster between teams, and so is an admin's. */
static const char *site_field_changed(const struct facts *f, const struct queue *q,
				      const struct event_queue_set *e, struct queue_id parent)
{
	const struct {
		const char *name;
		bool same;
	} fields[] = {
		{ "parent", q->parent.v == parent.v },
		{ "team", strcmp(facts_name(f, q->team), e->team) == 0 },
		{ "guarantee",
		  q->guarantee_share == e->guarantee_share && queue_pledges_are(f, q, e) },
		{ "limits", q->limit_share == e->limit_share && queue_limits_are(f, q, e) },
		{ "weight", q->weight == (e->weight ? e->weight : 1) },
		{ "reserved", q->reserved == (e->reserved != 0) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!fields[i].same)
			return fields[i].name;
	return NULL;
}

/* "researcher \"ann\"" */
static const char *user_text(const struct facts *f, uint32_t user, struct arena *arena)
{
	const struct user *row = user_row(f, user);

	CHECK(row);
	return arena_printf(arena, "%s \"%s\"", role_name(row->role), facts_name(f, row->name));
}

/* As it is: led by the user, and below another queue that is. */
static bool is_inside(const struct facts *f, uint32_t user, struct queue_id queue)
{
	return rights_lead(f, user, queue) && rights_lead(f, user, queue_get(f, queue)->parent);
}

static int refuse_queue(const struct admission *a, uint32_t user, const char *name,
			struct queue_id queue, const char *what)
{
	return err_set(a->err, ERR_FORBIDDEN, "queue \"%s\": %s may not %s; ask %s", name,
		       user_text(a->facts, user, a->arena), what,
		       rights_who(a->facts, queue, a->arena));
}

static int refuse_admins(const struct admission *a, uint32_t user, const char *name,
			 const char *what, const char *why)
{
	return err_set(a->err, ERR_FORBIDDEN, "queue \"%s\": %s may not %s%s; ask %s", name,
		       user_text(a->facts, user, a->arena), what, why,
		       rights_who_of_team(a->facts, (struct name_id){ 0 }, a->arena));
}

/* A queue that stays in the lead's subtree: under a queue that is led, and for the lead's team. */
static int inside_check(const struct admission *a, uint32_t user, const struct event_queue_set *e,
			struct queue_id parent)
{
	const struct facts *f = a->facts;
	const struct user *row = user_row(f, user);
	const struct queue_id id = facts_queue_find(f, e->name);

	CHECK(row);
	if (!rights_lead(f, user, parent))
		return parent.v ? refuse_queue(a, user, e->name, parent,
					       arena_printf(a->arena, "put it below queue \"%s\"",
							    e->parent))
				: refuse_admins(a, user, e->name, "put it below the root",
						", which divides the cluster between teams");
	if (strcmp(e->team, facts_name(f, row->team)) != 0 &&
	    !(id.v && strcmp(e->team, facts_name(f, queue_get(f, id)->team)) == 0))
		return refuse_admins(
			a, user, e->name,
			*e->team ? arena_printf(a->arena, "make it a queue of team \"%s\"", e->team)
				 : "make it a queue without a team",
			"");
	return 0;
}

int rights_queue_set(const struct admission *a, uint32_t user, const struct event_queue_set *e,
		     struct queue_id parent)
{
	const struct facts *f = a->facts;
	const struct queue_id id = facts_queue_find(f, e->name);
	const char *field;

	if (!user || role_of(f, user) == ROLE_ADMIN)
		return 0;
	if (id.v && !rights_lead(f, user, id))
		return refuse_queue(a, user, e->name, id, "change it");
	if (e->max_priority > PRIORITY_LEAD_MOST &&
	    (!id.v || queue_get(f, id)->max_priority != e->max_priority))
		return refuse_admins(
			a, user, e->name,
			arena_printf(a->arena, "admit priorities above %d", PRIORITY_LEAD_MOST),
			"");
	if (!id.v || is_inside(f, user, id))
		return inside_check(a, user, e, parent);
	field = site_field_changed(f, queue_get(f, id), e, parent);
	if (!field)
		return 0;
	return refuse_admins(
		a, user, e->name, arena_printf(a->arena, "change its %s", field),
		", which divides the cluster between teams (its tiers, max_priority, limits per user, default_limit and calendar, and the queues below it, a lead may change)");
}

int rights_queue(const struct admission *a, uint32_t user, struct queue_id queue, const char *what)
{
	const struct facts *f = a->facts;
	const char *name = facts_name(f, queue_get(f, queue)->name);

	if (!user || role_of(f, user) == ROLE_ADMIN || is_inside(f, user, queue))
		return 0;
	if (rights_lead(f, user, queue))
		return refuse_admins(
			a, user, name, what,
			": it is the highest queue of the team, which an admin gave it");
	return refuse_queue(a, user, name, queue, what);
}
