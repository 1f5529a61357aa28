/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is there: members come and go with their pods, groups with their members, gangs with what became of them.
 */
#include "engine/kubernetes/gangs/gangs.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

/* --- members and groups ----------------------------------------------------------------------------------------- */

struct member *member_find(struct engine *engine, const char *uid)
{
	struct member *member = NULL;

	HASH_FIND_STR(engine->gangs.members, uid, member);
	return member;
}

struct member *member_get(struct engine *engine, const char *uid)
{
	struct member *member = member_find(engine, uid);

	if (member)
		return member;
	member = calloc(1, sizeof(*member));
	CHECK(member);
	snprintf(member->uid, sizeof(member->uid), "%s", uid);
	HASH_ADD_STR(engine->gangs.members, uid, member);
	return member;
}

static struct group *group_get(struct engine *engine, const struct member *member)
{
	AUTO_BUF key = BUF_INIT;
	struct group *group = NULL;
	const struct pod_wish *wish = member->wish;

	if (wish->kind == GANG_ALONE)
		buf_addf(&key, "%s", member->uid);
	else
		buf_addf(&key, "%s/%s/%d/%s", member->namespace, wish->owner_kind, wish->kind,
			 wish->gang);
	HASH_FIND_STR(engine->gangs.groups, buf_text(&key), group);
	if (group)
		return group;
	group = calloc(1, sizeof(*group));
	CHECK(group);
	group->key = buf_take(&key);
	group->kind = wish->kind;
	group->since_ms = clock_boot_ms();
	HASH_ADD_KEYPTR(hh, engine->gangs.groups, group->key, strlen(group->key), group);
	return group;
}

void group_touch(struct engine *engine, struct group *group)
{
	if (!group || group->dirty)
		return;
	group->dirty = true;
	group->next_dirty = engine->gangs.dirty;
	engine->gangs.dirty = group;
}

static void group_describe(struct group *group, const struct member *member)
{
	const struct pod_wish *wish = member->wish;
	struct group_maker *maker = group->maker;

	if (wish->size > 0)
		group->said = wish->size;
	if (maker || wish->kind == GANG_ALONE)
		return;
	maker = group->maker = calloc(1, sizeof(*maker));
	CHECK(maker);
	snprintf(maker->namespace, sizeof(maker->namespace), "%s", member->namespace);
	snprintf(maker->name, sizeof(maker->name), "%s", wish->asked[0] ? wish->asked : wish->gang);
	snprintf(maker->part, sizeof(maker->part), "%s", wish->part);
	maker->times = wish->times;
	snprintf(maker->api, sizeof(maker->api), "%s", wish->owner_api);
	snprintf(maker->kind, sizeof(maker->kind), "%s", wish->owner_kind);
}

static void group_join(struct engine *engine, struct member *member)
{
	struct group *group = group_get(engine, member);

	member->group = group;
	member->next = group->members;
	group->members = member;
	group->count++;
	group_describe(group, member);
	/* How many it needs may be another number by now: a Job that has done a part of its work. */
	if (group->need == NEED_KNOWN)
		group->need = NEED_ASK;
	group_touch(engine, group);
}

static void group_leave(struct engine *engine, struct member *member)
{
	struct group *group = member->group;

	if (!group)
		return;
	for (struct member **at = &group->members; *at; at = &(*at)->next)
		if (*at == member) {
			*at = member->next;
			break;
		}
	group->count--;
	member->group = NULL;
	group_touch(engine, group);
}

void group_remove(struct engine *engine, struct group *group)
{
	HASH_DEL(engine->gangs.groups, group);
	free(group->key);
	free(group->maker);
	free(group);
}

/* --- gangs ---------------------------------------------------------------------------------------------------------- */

struct gang *gang_of_job(struct engine *engine, uint64_t job)
{
	struct gang *gang = NULL;

	HASH_FIND(hh_job, engine->gangs.jobs, &job, sizeof(job), gang);
	return gang;
}

void gang_set_job(struct engine *engine, struct gang *gang, uint64_t job)
{
	if (gang->job)
		HASH_DELETE(hh_job, engine->gangs.jobs, gang);
	gang->job = job;
	if (job)
		HASH_ADD(hh_job, engine->gangs.jobs, job, sizeof(gang->job), gang);
}

struct gang *gang_create(struct engine *engine, const char *key, uint32_t count)
{
	struct gang *gang = calloc(1, sizeof(*gang));

	CHECK(gang);
	gang->members = calloc(count ? count : 1, sizeof(*gang->members));
	CHECK(gang->members);
	gang->count = count;
	snprintf(gang->key, sizeof(gang->key), "%s", key);
	HASH_ADD_STR(engine->gangs.gangs, key, gang);
	return gang;
}

bool mask_is_taken(const struct mask *mask)
{
	for (const struct gang *gang = mask->gangs; gang; gang = gang->next_of_mask)
		if (!gang->settled)
			return true;
	return false;
}

/* Where its rules are about other pods as well, it is bound first. */
void gang_settles(struct engine *engine, struct gang *gang)
{
	if (!gang || gang->settled || gang->count != 1 || !gang->mask || gang->mask->related)
		return;
	gang->settled = true;
	gangs_next_of(engine, gang->mask);
	gangs_look(engine);
}

void gangs_next_of(struct engine *engine, const struct mask *mask)
{
	struct member *member, *next;

	if (!mask->serial || mask_is_taken(mask))
		return;
	HASH_ITER(hh, engine->gangs.members, member, next)
	{
		if (member->wish && !member->gang && strcmp(member->mask, mask->name) == 0)
			group_touch(engine, member->group);
	}
}

void gang_has_places(struct engine *engine, struct gang *gang)
{
	const struct mask *mask = gang->mask;

	for (uint32_t rank = 0; rank < gang->count; rank++)
		if (gang->members[rank] && !gang->members[rank]->bound &&
		    !gang->members[rank]->over)
			return;
	mask_leave(gang);
	if (mask)
		gangs_next_of(engine, mask);
}

/* Its members are free again. */
static void gang_dissolve(struct engine *engine, struct gang *gang)
{
	for (uint32_t rank = 0; rank < gang->count; rank++) {
		struct member *member = gang->members[rank];

		gang->members[rank] = NULL;
		if (!member || member->gang != gang)
			continue;
		member->gang = NULL;
		if (!member->bound && !member->deleting)
			member_nominate(engine, member, "");
		group_touch(engine, member->group);
	}
}

void gang_remove(struct engine *engine, struct gang *gang)
{
	struct mask *mask = gang->mask;

	mask_leave(gang);
	gang_dissolve(engine, gang);
	gang_set_job(engine, gang, 0);
	HASH_DEL(engine->gangs.gangs, gang);
	free(gang->members);
	free(gang);
	if (mask)
		gangs_next_of(engine, mask);
}

void gang_withdraw(struct engine *engine, struct gang *gang)
{
	gang->withdrawn = true;
	gang->again_ms = clock_boot_ms() + GANG_AGAIN_MS;
	engine->options.gangs.withdraw(engine->options.context, gang->job,
				       gang->text[0] ? gang->text : "a pod of it is gone");
}

/* A member of a gang is gone or bound by somebody else. One that has an attempt hears of it by its rank. */
void gang_break(struct engine *engine, struct gang *gang, const char *text)
{
	gang->broken = true;
	snprintf(gang->text, sizeof(gang->text), "%s", text);
	if (gang->attempt)
		return;
	gang_dissolve(engine, gang);
	if (gang->job)
		gang_withdraw(engine, gang);
	else if (!gang->offered)
		gang_remove(engine, gang);
}

void member_leaves_gang(struct engine *engine, struct member *member, const char *what)
{
	struct gang *gang = member->gang;
	char text[ENGINE_POD_TEXT_MAX];

	if (!gang)
		return;
	snprintf(text, sizeof(text), "pod %.60s/%.80s %s", member->namespace, member->name, what);
	gang->members[member->rank] = NULL;
	member->gang = NULL;
	gang_break(engine, gang, text);
}

static void member_remove(struct engine *engine, struct member *member)
{
	member_leaves_gang(engine, member, "was removed");
	group_leave(engine, member);
	HASH_DEL(engine->gangs.members, member);
	free(member->nominated);
	free(member->wish);
	free(member);
}

/* --- what is seen -------------------------------------------------------------------------------------------------------- */

bool pod_is_for_us(const struct engine *engine, const struct kube_pod *pod)
{
	(void)engine;
	return strcmp(pod->scheduler, KUBE_SCHEDULER) == 0 && !pod->instance[0];
}

static void member_describe(struct engine *engine, struct member *member, const char *json,
			    size_t size, const struct kube_pod *pod)
{
	struct pod_wish *wish = malloc(sizeof(*wish));
	struct err err = { 0 };

	CHECK(wish);
	if (pod_wish_read(json, size, pod, wish, &err) < 0) {
		log_line(LOG_WARN, "Kubernetes: pod %s/%s can't be read: %s", pod->namespace,
			 pod->name, err.text);
		free(wish);
		return;
	}
	/* What a gang was offered with stays, as a submitted job stays what it is. */
	if (member->gang && member->wish) {
		free(wish);
		return;
	}
	free(member->wish);
	member->wish = wish;
	/* After a restart: what was not known of a gang that was adopted. */
	if (member->gang && member->gang->mask)
		mask_learn(member->gang->mask, wish);
	if (!member->group)
		group_join(engine, member);
}

static bool is_ours_to_bind(struct engine *engine, const struct member *member,
			    const struct kube_pod *pod)
{
	const struct attempt_entry *attempt = member->gang && member->gang->attempt
						      ? live_find(engine, member->gang->attempt)
						      : NULL;

	return attempt && strcmp(attempt->ranks[member->rank].node, pod->node) == 0;
}

/* By a daemon before this one. Others may name a node as well, and are let: only what stands there when it is seen first is taken back. */
static void nominated_before(struct engine *engine, struct member *member,
			     const struct kube_pod *pod)
{
	if (!pod->nominated[0] || member->nominated)
		return;
	member->nominated = strdup(pod->nominated);
	CHECK(member->nominated);
	if (member->gang && !member->gang->promised)
		member_nominate(engine, member, "");
}

void gangs_saw(struct engine *engine, const char *json, size_t size, const struct kube_pod *pod)
{
	struct member *member = member_find(engine, pod->uid);
	bool changed;

	if (pod_is_over(pod)) {
		if (member && !(member->gang && member->gang->attempt)) {
			member_remove(engine, member);
		} else if (member) {
			member->seen = member->over = true;
			group_touch(engine, member->group);
		}
		return;
	}
	member = member_get(engine, pod->uid);
	changed = member->gated != pod->gated || member->deleting != pod->deleting ||
		  member->bound != (pod->node[0] != '\0');
	member->seen = true;
	member->gated = pod->gated;
	member->deleting = pod->deleting;
	member->bound = pod->node[0] != '\0';
	snprintf(member->namespace, sizeof(member->namespace), "%s", pod->namespace);
	snprintf(member->name, sizeof(member->name), "%s", pod->name);
	if (!member->group && !member->bound)
		nominated_before(engine, member, pod);
	if (!member->group || (!member->bound && !member->gang))
		member_describe(engine, member, json, size, pod);
	if (member->bound) {
		free(member->wish);
		member->wish = NULL;
	}
	if (member->bound && member->gang && !is_ours_to_bind(engine, member, pod))
		member_leaves_gang(engine, member, "was bound by another scheduler");
	else if (member->deleting && member->gang && !member->gang->attempt)
		member_leaves_gang(engine, member, "was deleted");
	if (member->bound && member->gang)
		gang_has_places(engine, member->gang);
	if (changed || member->lacks_devices)
		group_touch(engine, member->group);
	if (changed)
		budgets_touch(engine);
}

void gangs_lost(struct engine *engine, const char *uid)
{
	struct member *member = member_find(engine, uid);

	if (member)
		member_remove(engine, member);
	budgets_touch(engine);
}

void gangs_begin(struct engine *engine)
{
	struct member *member, *next;

	HASH_ITER(hh, engine->gangs.members, member, next)
	{
		member->seen = false;
	}
}

/* Of an attempt from before a restart: its pod was deleted, or ended and was collected, while nobody looked. */
static void tell_lost(struct engine *engine, const struct member *member)
{
	const struct gang *gang = member->gang;
	struct attempt_entry *attempt =
		gang && gang->attempt ? live_find(engine, gang->attempt) : NULL;

	if (attempt && strcmp(attempt->ranks[member->rank].uid, member->uid) == 0)
		rank_lost_pod(engine, attempt, member->rank, "its pod was removed from Kubernetes");
}

void gangs_listed(struct engine *engine)
{
	struct member *member, *next;

	HASH_ITER(hh, engine->gangs.members, member, next)
	{
		if (member->seen)
			continue;
		tell_lost(engine, member);
		member_remove(engine, member);
	}
	budgets_want(engine);
}

struct attempt_entry *gangs_attempt(struct engine *engine, const char *uid, uint32_t *ret_rank)
{
	const struct member *member = member_find(engine, uid);

	if (!member || !member->gang || !member->gang->attempt)
		return NULL;
	*ret_rank = member->rank;
	return live_find(engine, member->gang->attempt);
}

/* --- ends ---------------------------------------------------------------------------------------------------------- */

void gangs_forget(struct engine *engine, const struct attempt_entry *attempt)
{
	struct gang *gang = attempt->gang ? gang_of_job(engine, attempt->job) : NULL;

	if (!gang || gang->attempt != attempt->id)
		return;
	for (uint32_t rank = 0; rank < gang->count; rank++) {
		struct member *member = gang->members[rank];

		gang->broken |= !member || member->deleting || member->bound || member->over;
		if (member && !member->bound)
			member_nominate(engine, member, "");
		if (member && member->over) {
			gang->members[rank] = NULL;
			member->gang = NULL;
			member_remove(engine, member);
		}
	}
	gang->attempt = 0;
	gang->settled = false;
	gang_unassume(engine, attempt);
	/* Where its job goes on all the same, it would wait in vain. */
	if (gang->broken)
		gang_break(engine, gang, "its pods have run");
}

void gangs_deinit(struct engine *engine)
{
	struct member *member, *next_member;
	struct group *group, *next_group;
	struct gang *gang, *next_gang;

	engine->gangs.dirty = NULL;
	HASH_CLEAR(hh_job, engine->gangs.jobs);
	HASH_ITER(hh, engine->gangs.gangs, gang, next_gang)
	{
		HASH_DEL(engine->gangs.gangs, gang);
		free(gang->members);
		free(gang);
	}
	HASH_ITER(hh, engine->gangs.groups, group, next_group)
	{
		group_remove(engine, group);
	}
	HASH_ITER(hh, engine->gangs.members, member, next_member)
	{
		HASH_DEL(engine->gangs.members, member);
		free(member->nominated);
		free(member->wish);
		free(member);
	}
}
