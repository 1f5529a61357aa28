/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From free members to gangs. A group is looked at when something of it changed:
 *
 *	- a gang of it that has not begun lost a member: it is taken back, and its other members are free again
 *	- some of its pods are bound and not over, or a gang of it has an attempt: it has begun, and each free member is a gang by itself
 *	- one of its gangs waits: further members wait with it
 *	- as many free members as it needs, the oldest first, become a gang
 *
 * A gang is named by the digest of its members' uids, so the same pods are never offered as two jobs. Members of unlike requests become roles.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"

enum { GATHER_TELL_MS = 5000 };

static bool is_free(const struct member *member)
{
	return member->wish && !member->gang && !member->gated && !member->deleting &&
	       !member->cancelled && !member->bound && !member->over && !member->wish->problem[0] &&
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

void gang_key(struct member *const *members, uint32_t count, char out[ENGINE_KEY_MAX])
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

void gang_offer(struct engine *engine, struct gang *gang)
{
	const struct member *first = gang->members[0];
	const struct pod_wish *wish = first->wish;
	char problem[ENGINE_POD_TEXT_MAX] = "";
	enum mask_full full = MASK_ROOM;
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
	if (full != MASK_ROOM) {
		snprintf(
			gang->text, sizeof(gang->text),
			"pods of %d kinds with rules of their own about nodes wait already%s: it waits for one of them",
			full == MASK_ALL_TAKEN ? PREDICATE_MARKS : MASKS_OF_NAMESPACE,
			full == MASK_ALL_TAKEN
				? ""
				: " in this namespace, which is the most for one namespace");
		gang_tell(engine, gang, TELL_WAITS, gang->text);
		gang->again_ms = clock_boot_ms() + GANG_AGAIN_MS;
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
	if (!mask || !mask_is_taken(mask))
		return false;
	mask->serial = true; /* one from before a restart does not know it */
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
	gang_key(members, count, key);
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
	} else if (group->size > ENGINE_TASKS_MAX) {
		char problem[64];

		snprintf(problem, sizeof(problem), "a gang has more than %d pods",
			 ENGINE_TASKS_MAX);
		for (uint32_t i = 0; i < count; i++)
			member_tell(engine, members[i], TELL_REFUSED, problem);
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

void group_look(struct engine *engine, struct group *group)
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
	least_look(engine, group);
}
