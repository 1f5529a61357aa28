/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many pods of a gang have to go on where nodes are taken away. Its group starts with `size` pods at least, which are one gang; the others are
 * placed by themselves. What runs of those stands in for members of the gang. `stay` is the size, or less where the maker says so:
 *
 *	stay 3, 5 pods run		the gang may be down to 1: pods on a node that goes leave alone
 *	stay 3, 3 pods run		none may go: the gang goes whole, and starts whole when its maker has made its pods again
 *
 * The core counts, for it knows of drains by people, too. It is told a number, whenever that changes. Others on a node of the gang are not counted:
 * they would leave with that node. Nor are those whose own node goes, and that is told before the node is: so whichever of several nodes is seen first, the core
 * does not let a rank leave alone for others that leave as well. What it hears while a rank is leaving counts for that one still.
 */
#include "base/clock.h"
#include "engine/kubernetes/gangs/gangs.h"

enum { ASKED_AGAIN_MS = 30000 }; /* while it runs: who made it may change the number */

static struct attempt_entry *attempt_of(struct engine *engine, const struct member *member)
{
	return member->gang && member->gang->attempt ? live_find(engine, member->gang->attempt)
						     : NULL;
}

/* The newest gang of it that runs; NULL = none does. */
static struct gang *gang_that_runs(struct engine *engine, const struct group *group,
				   struct attempt_entry **ret)
{
	struct gang *found = NULL;

	*ret = NULL;
	for (const struct member *member = group->members; member; member = member->next) {
		struct attempt_entry *attempt =
			member->gang && member->gang != found && member->gang->count > 1
				? attempt_of(engine, member)
				: NULL;

		if (!attempt || attempt->stopping || (*ret && (*ret)->id > attempt->id))
			continue;
		found = member->gang;
		*ret = attempt;
	}
	return found;
}

static void nodes_mark(struct engine *engine, const struct attempt_entry *attempt, bool mark)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		struct node_entry *entry = node_entry_find(engine, attempt->ranks[rank].node);

		if (entry && !attempt->ranks[rank].over)
			entry->marked = mark;
	}
}

/* It has begun, and stays when a node of the gang goes. */
static bool stands_in(struct engine *engine, const struct member *member)
{
	const struct attempt_entry *attempt = attempt_of(engine, member);
	const struct node_entry *entry;

	if (!attempt || attempt->stopping || !member->bound || member->deleting || member->over)
		return false;
	entry = node_entry_find(engine, attempt->ranks[member->rank].node);
	return attempt->ranks[member->rank].started && entry && entry->node && !entry->node->goes &&
	       !entry->marked;
}

static uint32_t others_count(struct engine *engine, const struct group *group,
			     const struct gang *gang, const struct attempt_entry *attempt)
{
	const struct member *other = group->members;
	uint32_t count = 0;

	while (other && other->gang == gang)
		other = other->next;
	if (!other)
		return 0; /* as of most of them */
	nodes_mark(engine, attempt, true);
	for (; other; other = other->next)
		count += other->gang != gang && stands_in(engine, other);
	nodes_mark(engine, attempt, false);
	return count;
}

static void least_tell(struct engine *engine, struct attempt_entry *attempt, uint32_t least)
{
	const struct engine_fact fact = { .kind = ENGINE_LEAST,
					  .attempt = attempt->id,
					  .least = least,
					  .time_ms = clock_wall_ms() };

	if (attempt->least_told && attempt->least == least)
		return;
	attempt->least = least;
	attempt->least_told = true;
	engine->options.report(engine->options.context, &fact);
}

/* Who made it may say that it goes on with fewer than start. */
static bool is_elastic(const struct group *group)
{
	return (group->kind == GANG_RAY || group->kind == GANG_KUBEFLOW) && group->said <= 0;
}

/* From now on it may stand in for others. */
void least_began(struct engine *engine, const struct rank_state *state)
{
	struct member *member = member_find(engine, state->uid);

	if (member)
		group_touch(engine, member->group);
}

/* Before these nodes are told to the core. */
void least_of_nodes(struct engine *engine)
{
	struct group *group, *next;

	if (!engine->gangs.nodes_go || !engine->nodes_listed || !engine->pods_listed)
		return;
	engine->gangs.nodes_go = false;
	HASH_ITER(hh, engine->gangs.groups, group, next)
	{
		if (group->may_shrink)
			least_look(engine, group);
	}
}

void least_look(struct engine *engine, struct group *group)
{
	struct attempt_entry *attempt;
	const struct gang *gang;
	int64_t least;
	uint32_t others;

	if (group->kind == GANG_ALONE || !engine->nodes_listed)
		return; /* of others it is not known whether their nodes are there */
	gang = gang_that_runs(engine, group, &attempt);
	if (!gang)
		return;
	others = others_count(engine, group, gang, attempt);
	group->may_shrink |= others || is_elastic(group);
	if (!others && !is_elastic(group)) {
		least_tell(engine, attempt, 0);
		return;
	}
	if (group->need == NEED_ASK &&
	    (group->size <= 0 || group->asked_ms + ASKED_AGAIN_MS <= clock_boot_ms()))
		need_find(engine, group); /* the answer has it looked at again */
	if (group->size <= 0)
		return; /* what the core knows from before holds until then */
	least = group->stay > others + INT64_C(1) ? group->stay - others : 1;
	least_tell(engine, attempt, least < gang->count ? (uint32_t)least : 0);
}
