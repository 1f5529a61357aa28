/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When groups are looked at: those of which something changed, once in LOOK_MS; and every TICK_MS what may have got lost.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"

enum { TICK_MS = 5000, LOOK_MS = 10 };

/* Claims, slices or classes have changed. */
static void look_at_claims(struct engine *engine)
{
	struct member *member, *next;

	if (!engine->devices || !engine->devices->claims_changed)
		return;
	engine->devices->claims_changed = false;
	HASH_ITER(hh, engine->gangs.members, member, next)
	{
		if (member->lacks_devices)
			group_touch(engine, member->group);
	}
	claims_sweep(engine);
}

static void tick(void *context);

static void tick_wanted(struct engine *engine)
{
	if (engine->gangs.ticking || (!engine->gangs.members && !engine->masks.by_name))
		return;
	engine->gangs.ticking = true;
	kube_later(engine->client, TICK_MS, tick, engine);
}

static void look_late(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	engine->gangs.waits = false;
	gangs_look(engine);
	pthread_mutex_unlock(&engine->lock);
}

/* Pods come in crowds, and a gang of thousands must not be looked through for each of them: then once in LOOK_MS. */
static bool is_too_soon(struct engine *engine)
{
	int64_t now_ms = clock_boot_ms();

	if (engine->gangs.waits)
		return true;
	if (now_ms - engine->gangs.looked_ms < LOOK_MS) {
		engine->gangs.waits = true;
		kube_later(engine->client, LOOK_MS, look_late, engine);
		return true;
	}
	engine->gangs.looked_ms = now_ms;
	return false;
}

void gangs_look(struct engine *engine)
{
	struct group *list, *group;

	if (!engine->pods_listed || !devices_listed(engine) || !sources_ready(engine))
		return;
	look_at_claims(engine);
	list = engine->gangs.dirty;
	tick_wanted(engine);
	if (!list || is_too_soon(engine))
		return;
	engine->gangs.dirty = NULL; /* those that become so meanwhile are looked at next time */
	while (list) {
		group = list;
		list = group->next_dirty;
		group->dirty = false;
		if (!group->count)
			group_remove(engine, group);
		else
			group_look(engine, group);
	}
}

/* Offers that were not taken, and withdrawals that may have got lost, come again; so does the question how many a group needs. */
static void tick(void *context)
{
	struct engine *engine = context;
	struct member *member, *next_member;
	struct gang *gang, *next;
	struct group *group, *next_group;
	int64_t now_ms = clock_boot_ms();

	pthread_mutex_lock(&engine->lock);
	engine->gangs.ticking = false;
	HASH_ITER(hh, engine->gangs.gangs, gang, next)
	{
		if (!gang->again_ms || gang->again_ms > now_ms)
			continue;
		if (gang->withdrawn)
			gang_withdraw(engine, gang);
		else if (!gang->offered && !gang->job && !gang->broken)
			gang_offer(engine, gang);
	}
	HASH_ITER(hh, engine->gangs.members, member, next_member)
	{
		if (member->lacks_devices)
			group_touch(engine, member->group);
	}
	HASH_ITER(hh, engine->gangs.groups, group, next_group)
	{
		if (group->kind == GANG_ALONE || group->need == NEED_ASKED ||
		    group->asked_ms + GANG_AGAIN_MS > now_ms)
			continue;
		group->need = NEED_ASK;
		group_touch(engine, group);
	}
	gangs_decide(engine);
	gangs_tell_again(engine);
	gangs_look(engine);
	masks_flush(engine, false);
	masks_end_unused(engine);
	tick_wanted(engine);
	pthread_mutex_unlock(&engine->lock);
}
