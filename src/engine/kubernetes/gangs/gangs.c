/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From pods to gangs. A group is looked at when something of it changed:
 *
 *	- a gang of it that has not begun lost a member: it is taken back, and its other members are free again
 *	- some of its pods are bound and not over, or a gang of it has an attempt: it has begun, and each free member is a gang by itself
 *	- one of its gangs waits: further members wait with it
 *	- as many free members as it needs, the oldest first, become a gang
 *
 * A gang is named by the digest of its members' uids, so the same pods are never offered as two jobs. Members of unlike requests become roles.
 */
#include "engine/kubernetes/gangs/gangs.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "engine/kubernetes/devices/devices.h"

enum { AGAIN_MS = 10000, TICK_MS = 5000, LOOK_MS = 10, GATHER_TELL_MS = 5000, PODS_MAX = 4096 };

/* --- members and groups ----------------------------------------------------------------------------------------- */

struct member *member_find(struct engine *engine, const char *uid)
{
	struct member *member = NULL;

	HASH_FIND_STR(engine->gangs.members, uid, member);
	return member;
}

static struct member *member_get(struct engine *engine, const char *uid)
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

static void group_join(struct engine *engine, struct member *member)
{
	struct group *group = group_get(engine, member);

	member->group = group;
	member->next = group->members;
	group->members = member;
	group->count++;
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

static struct gang *gang_create(struct engine *engine, const char *key, uint32_t count)
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

static void gangs_next_of(struct engine *engine, const struct mask *mask)
{
	struct member *member, *next;

	if (!mask->serial || mask->gangs)
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
		group_touch(engine, member->group);
	}
}

static void gang_remove(struct engine *engine, struct gang *gang)
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

static void gang_withdraw(struct engine *engine, struct gang *gang)
{
	gang->withdrawn = true;
	gang->again_ms = clock_boot_ms() + AGAIN_MS;
	engine->options.gangs.withdraw(engine->options.context, gang->job,
				       gang->text[0] ? gang->text : "a pod of it is gone");
}

/* A member of a gang is gone or bound by somebody else. One that has an attempt hears of it by its rank. */
static void gang_break(struct engine *engine, struct gang *gang, const char *text)
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

static void member_leaves_gang(struct engine *engine, struct member *member, const char *what)
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
	free(member->wish);
	free(member);
}

/* --- forming ---------------------------------------------------------------------------------------------------------- */

static bool is_free(const struct member *member)
{
	return member->wish && !member->gang && !member->gated && !member->deleting &&
	       !member->bound && !member->over && !member->wish->problem[0] &&
	       !member->lacks_devices;
}

static bool has_begun(const struct group *group)
{
	for (const struct member *member = group->members; member; member = member->next)
		if (!member->deleting && !member->over &&
		    (member->bound || (member->gang && member->gang->attempt)))
			return true;
	return false;
}

static bool one_waits(const struct group *group)
{
	for (const struct member *member = group->members; member; member = member->next)
		if (member->gang && !member->gang->attempt)
			return true;
	return false;
}

/* Like ones together, so that they are the ranks of one role; then by age. */
static int compare_use(const struct kube_use *a, const struct kube_use *b)
{
	if (a->gpus != b->gpus)
		return a->gpus > b->gpus ? -1 : 1;
	if (a->cpu_milli != b->cpu_milli)
		return a->cpu_milli > b->cpu_milli ? -1 : 1;
	if (a->memory_mib != b->memory_mib)
		return a->memory_mib > b->memory_mib ? -1 : 1;
	return 0;
}

static int compare_age(const void *a, const void *b)
{
	const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;
	int order = strcmp(x->wish->created, y->wish->created);

	return order ? order : strcmp(x->name, y->name);
}

static int compare_rank(const void *a, const void *b)
{
	const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;
	int order = compare_use(&x->wish->use, &y->wish->use);

	if (order)
		return order;
	order = strlen(x->name) < strlen(y->name)   ? -1
		: strlen(x->name) > strlen(y->name) ? 1
						    : 0; /* worker-2 before worker-10 */
	return order ? order : strcmp(x->name, y->name);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void key_make(struct member *const *members, uint32_t count, char out[ENGINE_KEY_MAX])
{
	const char **uids = calloc(count, sizeof(*uids));
	AUTO_BUF all = BUF_INIT;
	struct digest digest;

	CHECK(uids);
	for (uint32_t i = 0; i < count; i++)
		uids[i] = members[i]->uid;
	qsort(uids, count, sizeof(*uids), compare_text);
	buf_adds(&all, "pods");
	for (uint32_t i = 0; i < count; i++)
		buf_addf(&all, "\n%s", uids[i]);
	digest = digest_of(all.data, all.size);
	digest_format(&digest, out);
	free(uids);
}

/* Wishes that hold for all tasks of a job must be those of all pods. */
static const char *unlike(const struct gang *gang)
{
	const struct pod_wish *first = gang->members[0]->wish;

	for (uint32_t rank = 1; rank < gang->count; rank++) {
		const struct pod_wish *wish = gang->members[rank]->wish;

		if (strcmp(first->labels, wish->labels) != 0)
			return "nodeSelectors";
		if (strcmp(first->tolerates, wish->tolerates) != 0)
			return "tolerations";
		if (strcmp(first->queue, wish->queue) != 0)
			return "queues";
		if (strcmp(first->tier, wish->tier) != 0 || first->priority != wish->priority ||
		    first->preempts != wish->preempts)
			return "tiers or priorities";
		if (strcmp(first->require, wish->require) != 0 ||
		    strcmp(first->prefer, wish->prefer) != 0)
			return "topology";
	}
	return NULL;
}

/* False: too many kinds of pods. */
static bool roles_make(const struct gang *gang, struct engine_gang *ret)
{
	for (uint32_t rank = 0; rank < gang->count; rank++) {
		const struct kube_use *use = &gang->members[rank]->wish->use;

		if (!rank || compare_use(&gang->members[rank - 1]->wish->use, use) != 0) {
			if (ret->role_count == ENGINE_GANG_ROLES)
				return false;
			ret->roles[ret->role_count++] =
				(struct engine_gang_role){ .gpus = use->gpus,
							   .cpu_milli = use->cpu_milli,
							   .memory_mib = use->memory_mib };
		}
		ret->roles[ret->role_count - 1].size++;
	}
	return true;
}

static void gang_offer(struct engine *engine, struct gang *gang)
{
	const struct member *first = gang->members[0];
	const struct pod_wish *wish = first->wish;
	char problem[ENGINE_POD_TEXT_MAX] = "";
	bool full = false;
	struct engine_pod *pods = calloc(gang->count, sizeof(*pods));
	char labels[KUBE_LABELS_MAX + 1];
	const char *of_devices;
	struct engine_gang offer = { .key = gang->key,
				     .namespace = first->namespace,
				     .name = gang->count > 1 ? wish->gang : first->name,
				     .queue = wish->queue,
				     .tier = wish->tier,
				     .priority = wish->priority,
				     .preempts = wish->preempts,
				     .labels = labels,
				     .tolerates = wish->tolerates,
				     .require = gang->require,
				     .apart = gang->apart,
				     .prefer = wish->prefer,
				     .pod_count = gang->count,
				     .pods = pods };

	CHECK(pods);
	memcpy(labels, wish->labels, sizeof(labels));
	of_devices = devices_gang_label(engine, gang, labels);
	if (of_devices)
		snprintf(problem, sizeof(problem), "%s", of_devices);
	gang->again_ms = 0;
	if (!problem[0] && gang_shape(engine, gang, gang->require, gang->apart, problem))
		(void)mask_join(engine, gang, &full);
	offer.mask = gang->mask ? gang->mask->name : "";
	for (uint32_t rank = 0; rank < gang->count; rank++)
		pods[rank] = (struct engine_pod){ .namespace = gang->members[rank]->namespace,
						  .name = gang->members[rank]->name,
						  .uid = gang->members[rank]->uid };
	if (full) {
		snprintf(
			gang->text, sizeof(gang->text),
			"pods of %d kinds with rules of their own about nodes wait already: it waits for one of them",
			PREDICATE_MARKS);
		gang_tell(engine, gang, TELL_WAITS, gang->text);
		gang->again_ms = clock_boot_ms() + AGAIN_MS;
	} else if (problem[0]) {
		snprintf(gang->text, sizeof(gang->text), "%s", problem);
		gang_tell(engine, gang, TELL_REFUSED, gang->text);
	} else if (unlike(gang)) {
		snprintf(gang->text, sizeof(gang->text), "the pods of its gang have unlike %s",
			 unlike(gang));
		gang_tell(engine, gang, TELL_REFUSED, gang->text);
	} else if (!roles_make(gang, &offer)) {
		snprintf(gang->text, sizeof(gang->text),
			 "the pods of its gang ask for more than %d different amounts",
			 ENGINE_GANG_ROLES);
		gang_tell(engine, gang, TELL_REFUSED, gang->text);
	} else {
		gang->offered = true;
		engine->options.gangs.offer(engine->options.context, &offer);
	}
	free(pods);
}

/* A pod that is in the way of others of its kind (they want to be apart, spread, want the same port) is placed when those before it are. */
static bool waits_its_turn(struct engine *engine, struct member *member)
{
	struct member *alone[1] = { member };
	struct gang probe = { .members = alone, .count = 1 };
	struct mask *mask = NULL;
	char name[MASK_NAME_MAX];
	bool serial;

	if (!member->wish->wants || !gang_mask_name(engine, &probe, name, &serial) || !serial)
		return false;
	snprintf(member->mask, sizeof(member->mask), "%s", name);
	HASH_FIND_STR(engine->masks.by_name, name, mask);
	if (!mask || !mask->gangs)
		return false;
	member_tell(
		engine, member, TELL_WAITS,
		"pods of its kind are placed one after the other, for its rules are about them");
	return true;
}

static void gang_form(struct engine *engine, struct member **members, uint32_t count)
{
	char key[ENGINE_KEY_MAX];
	struct gang *gang = NULL;

	qsort(members, count, sizeof(struct member *), compare_rank);
	key_make(members, count, key);
	HASH_FIND_STR(engine->gangs.gangs, key, gang);
	if (gang)
		return; /* of these very pods, and still on its way out */
	if (count == 1 && waits_its_turn(engine, members[0]))
		return;
	gang = gang_create(engine, key, count);
	for (uint32_t rank = 0; rank < count; rank++) {
		gang->members[rank] = members[rank];
		members[rank]->gang = gang;
		members[rank]->rank = rank;
	}
	gang_offer(engine, gang);
}

static void tell_gathering(struct engine *engine, const struct group *group, uint32_t have)
{
	char text[ENGINE_POD_TEXT_MAX];

	if (clock_boot_ms() - group->since_ms < GATHER_TELL_MS)
		return; /* most come together; tick() looks again */
	snprintf(text, sizeof(text), "%u of the %lld pods of its gang are there", have,
		 (long long)group->size);
	for (struct member *member = group->members; member; member = member->next)
		if (is_free(member))
			member_tell(engine, member, TELL_GATHERS, text);
}

/* What decides where it may run can't be read. */
static bool lacks_right(const struct engine *engine, const struct member *member,
			char text[ENGINE_POD_TEXT_MAX])
{
	static const struct {
		uint32_t wants;
		enum source_kind source;
	} needs[] = { { WANTS_CLAIMS, SOURCE_CLAIMS },
		      { WANTS_CLAIMS, SOURCE_VOLUMES },
		      { WANTS_CLAIMS, SOURCE_CLASSES },
		      { WANTS_NAMESPACES, SOURCE_NAMESPACES } };

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		const char *problem = source_problem(engine, needs[i].source);

		if (!(member->wish->wants & needs[i].wants) || !problem)
			continue;
		snprintf(text, ENGINE_POD_TEXT_MAX,
			 "where it may run is not known: %s; docs/kubernetes.md, Rights", problem);
		return true;
	}
	return false;
}

static void tell_problems(struct engine *engine, const struct group *group)
{
	for (struct member *member = group->members; member; member = member->next) {
		char text[ENGINE_POD_TEXT_MAX];

		if (!member->wish || member->bound || member->deleting)
			continue;
		if (!lacks_right(engine, member, text) && !member->wish->problem[0])
			continue;
		if (member->wish->problem[0])
			snprintf(text, sizeof(text), "Fairlead does not support this yet: %s",
				 member->wish->problem);
		member_tell(engine, member, TELL_REFUSED, text);
	}
}

static void form_alone(struct engine *engine, struct member **members, uint32_t count)
{
	qsort(members, count, sizeof(struct member *), compare_age);
	for (uint32_t i = 0; i < count; i++)
		gang_form(engine, &members[i], 1);
}

static void group_form(struct engine *engine, struct group *group, struct member **members,
		       uint32_t count)
{
	if (group->kind == GANG_ALONE || has_begun(group)) {
		form_alone(engine, members, count);
		return;
	}
	if (one_waits(group))
		return;
	if (group->need == NEED_ASK)
		need_find(engine, group);
	if (group->need == NEED_ASKED)
		return;
	if (group->need == NEED_MISSING) {
		for (uint32_t i = 0; i < count; i++)
			member_tell(engine, members[i], TELL_GATHERS, group->problem);
	} else if (group->need == NEED_UNKNOWN) {
		for (uint32_t i = 0; i < count; i++)
			member_tell(engine, members[i], TELL_ALONE, group->problem);
		form_alone(engine, members, count);
	} else if (group->size > PODS_MAX) {
		for (uint32_t i = 0; i < count; i++)
			member_tell(engine, members[i], TELL_REFUSED,
				    "a gang has more than 4096 pods");
	} else if (count < group->size) {
		tell_gathering(engine, group, count);
	} else {
		qsort(members, count, sizeof(struct member *), compare_age);
		gang_form(engine, members, group->size > 0 ? (uint32_t)group->size : 1);
	}
}

/* What the claims of waiting pods mean may be known only now, or otherwise than before. */
static void resolve_claims(struct engine *engine, struct group *group)
{
	char text[ENGINE_POD_TEXT_MAX];
	enum devices_answer answer;

	for (struct member *member = group->members; member; member = member->next) {
		if (!member->wish || member->gang || member->bound || member->deleting)
			continue;
		answer = devices_resolve(engine, member, text);
		member->lacks_devices = answer != DEVICES_KNOWN;
		if (answer == DEVICES_COMING && clock_boot_ms() - group->since_ms < GATHER_TELL_MS)
			continue; /* tick() looks again */
		if (member->lacks_devices && !member->gated)
			member_tell(engine, member, TELL_REFUSED, text);
	}
}

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

static void group_look(struct engine *engine, struct group *group)
{
	struct member **free_ones = calloc(group->count + 1, sizeof(*free_ones));
	char text[ENGINE_POD_TEXT_MAX];
	uint32_t count = 0;

	CHECK(free_ones);
	resolve_claims(engine, group);
	tell_problems(engine, group);
	for (struct member *member = group->members; member; member = member->next)
		if (is_free(member) && !lacks_right(engine, member, text))
			free_ones[count++] = member;
	if (count) {
		group_form(engine, group, free_ones, count);
	}
	free(free_ones);
}

static void group_remove(struct engine *engine, struct group *group)
{
	HASH_DEL(engine->gangs.groups, group);
	free(group->key);
	free(group);
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
		    group->asked_ms + AGAIN_MS > now_ms)
			continue;
		group->need = NEED_ASK;
		group_touch(engine, group);
	}
	gangs_decide(engine);
	gangs_look(engine);
	masks_flush(engine, false);
	masks_end_unused(engine);
	tick_wanted(engine);
	pthread_mutex_unlock(&engine->lock);
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
}

void gangs_lost(struct engine *engine, const char *uid)
{
	struct member *member = member_find(engine, uid);

	if (member)
		member_remove(engine, member);
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
}

struct attempt_entry *gangs_attempt(struct engine *engine, const char *uid, uint32_t *ret_rank)
{
	const struct member *member = member_find(engine, uid);

	if (!member || !member->gang || !member->gang->attempt)
		return NULL;
	*ret_rank = member->rank;
	return live_find(engine, member->gang->attempt);
}

/* --- what the daemon says ---------------------------------------------------------------------------------------------------- */

static void kubernetes_gang_answer(struct engine *engine, const char *key, uint64_t job, bool over,
				   const char *problem)
{
	struct gang *gang = NULL;

	pthread_mutex_lock(&engine->lock);
	HASH_FIND_STR(engine->gangs.gangs, key, gang);
	if (gang) {
		gang->offered = false;
		gang_set_job(engine, gang, over ? 0 : job);
		if (gang->broken && gang->job) {
			gang_withdraw(engine, gang);
		} else if (gang->broken) {
			gang_remove(engine, gang);
		} else if (!job || over) {
			snprintf(gang->text, sizeof(gang->text), "%s", problem);
			gang->again_ms = over ? 0 : clock_boot_ms() + AGAIN_MS;
			gang_tell(engine, gang, TELL_REFUSED, gang->text);
		}
	}
	gangs_look(engine);
	pthread_mutex_unlock(&engine->lock);
}

/* As in a list: what is not seen then is gone. */
static void kubernetes_gang_adopt(struct engine *engine, uint64_t job, uint64_t attempt,
				  const char *mask, const struct engine_pod *pods, uint32_t count)
{
	struct attempt_entry *live;
	struct member **members = calloc(count + 1, sizeof(*members));
	struct gang *gang = NULL;
	char key[ENGINE_KEY_MAX];

	CHECK(members);
	pthread_mutex_lock(&engine->lock);
	for (uint32_t rank = 0; rank < count; rank++) {
		members[rank] = member_get(engine, pods[rank].uid);
		snprintf(members[rank]->namespace, sizeof(members[rank]->namespace), "%s",
			 pods[rank].namespace);
		snprintf(members[rank]->name, sizeof(members[rank]->name), "%s", pods[rank].name);
	}
	key_make(members, count, key);
	HASH_FIND_STR(engine->gangs.gangs, key, gang);
	if (!gang)
		gang = gang_create(engine, key, count);
	gang_set_job(engine, gang, job);
	gang->attempt = attempt;
	if (*mask && !gang->mask)
		mask_adopt(engine, mask, gang);
	live = attempt ? live_add(engine, attempt, count) : NULL;
	for (uint32_t rank = 0; rank < count; rank++) {
		if (live && pods[rank].over)
			live->ranks[rank].over = true;
		if (members[rank]->gang && members[rank]->gang != gang) /* the older one lost it */
			member_leaves_gang(engine, members[rank], "is of a newer gang");
		gang->members[rank] = members[rank];
		members[rank]->gang = gang;
		members[rank]->rank = rank;
	}
	for (uint32_t rank = 0; live && rank < count; rank++) {
		struct rank_state *state = &live->ranks[rank];

		live->job = job;
		live->gang = true;
		snprintf(state->uid, sizeof(state->uid), "%s", pods[rank].uid);
		snprintf(state->namespace, sizeof(state->namespace), "%s", pods[rank].namespace);
		snprintf(state->name, sizeof(state->name), "%s", pods[rank].name);
		snprintf(state->node, sizeof(state->node), "%s", pods[rank].node);
		state->bound = state->started = pods[rank].started;
		state->asked = true;
	}
	pthread_mutex_unlock(&engine->lock);
	free(members);
}

static void kubernetes_job_over(struct engine *engine, uint64_t job, const char *text)
{
	struct gang *gang;

	pthread_mutex_lock(&engine->lock);
	gang = gang_of_job(engine, job);
	if (gang && gang->mask) {
		const struct mask *mask = gang->mask;

		mask_leave(gang);
		gangs_next_of(engine, mask);
	}
	if (gang && !gang->broken && gang->members[0] && !gang->members[0]->bound) {
		/* A person cancelled it, say. Its pods are not placed against his word. */
		gang->attempt = 0;
		gang_set_job(engine, gang, 0);
		snprintf(gang->text, sizeof(gang->text), "%s", text);
		gang_tell(engine, gang, TELL_REFUSED, gang->text);
	} else if (gang) {
		gang_remove(engine, gang);
	}
	gangs_look(engine);
	pthread_mutex_unlock(&engine->lock);
}

void gangs_forget(struct engine *engine, const struct attempt_entry *attempt)
{
	struct gang *gang = attempt->gang ? gang_of_job(engine, attempt->job) : NULL;

	if (!gang || gang->attempt != attempt->id)
		return;
	for (uint32_t rank = 0; rank < gang->count; rank++) {
		struct member *member = gang->members[rank];

		gang->broken |= !member || member->deleting || member->bound || member->over;
		if (member && member->over) {
			gang->members[rank] = NULL;
			member->gang = NULL;
			member_remove(engine, member);
		}
	}
	gang->attempt = 0;
	gang_unassume(engine, attempt);
	/* Where its job goes on all the same, it would wait in vain. */
	if (gang->broken)
		gang_break(engine, gang, "its pods have run");
}

static void kubernetes_gang_why(struct engine *engine, uint64_t job, bool room, const char *text)
{
	struct gang *gang;

	pthread_mutex_lock(&engine->lock);
	gang = gang_of_job(engine, job);
	if (gang && !gang->attempt && !gang->broken) {
		snprintf(gang->text, sizeof(gang->text), "%s", text);
		gang_tell(engine, gang, room ? TELL_NO_ROOM : TELL_WAITS, text);
	}
	pthread_mutex_unlock(&engine->lock);
}

static void describe_member(const struct member *member, char text[ENGINE_POD_TEXT_MAX])
{
	const struct gang *gang = member->gang;

	text[0] = '\0';
	if (member->gated)
		snprintf(text, ENGINE_POD_TEXT_MAX, "it has scheduling gates");
	else if (member->deleting)
		snprintf(text, ENGINE_POD_TEXT_MAX, "it is being deleted");
	else if (member->wish && member->wish->problem[0])
		snprintf(text, ENGINE_POD_TEXT_MAX, "Fairlead does not support this yet: %s",
			 member->wish->problem);
	else if (gang && gang->text[0])
		snprintf(text, ENGINE_POD_TEXT_MAX, "%s", gang->text);
	else if (!gang && member->group && member->group->size > 1)
		snprintf(text, ENGINE_POD_TEXT_MAX, "its gang of %lld pods is not complete",
			 (long long)member->group->size);
	else
		snprintf(text, ENGINE_POD_TEXT_MAX, "Fairlead has just seen it; ask again");
}

static bool kubernetes_pod_find(struct engine *engine, const char *namespace, const char *name,
				uint64_t *ret_job, char text[ENGINE_POD_TEXT_MAX])
{
	const struct member *member, *next, *found = NULL;

	*ret_job = 0;
	pthread_mutex_lock(&engine->lock);
	for (member = engine->gangs.members; member; member = next) {
		next = member->hh.next;
		if (strcmp(member->name, name) == 0 && strcmp(member->namespace, namespace) == 0)
			found = member;
	}
	if (found && found->gang && found->gang->job)
		*ret_job = found->gang->job;
	else if (found)
		describe_member(found, text);
	pthread_mutex_unlock(&engine->lock);
	return found != NULL;
}

const struct engine_pod_ops kubernetes_pod_ops = {
	.answer = kubernetes_gang_answer,
	.adopt = kubernetes_gang_adopt,
	.job_over = kubernetes_job_over,
	.why = kubernetes_gang_why,
	.find = kubernetes_pod_find,
};

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
		free(member->wish);
		free(member);
	}
}
