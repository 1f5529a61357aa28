/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon says of gangs: its answers to offers, what it had before a restart, how jobs end and why they wait.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "engine/kubernetes/authority.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/manifest.h"

/* A person cancelled its job, say. Its pods are not placed against his word, also when some of them are gone. */
static void gang_cancel(struct engine *engine, struct gang *gang, const char *text)
{
	snprintf(gang->text, sizeof(gang->text), "%s", text);
	for (uint32_t rank = 0; rank < gang->count; rank++)
		if (gang->members[rank]) {
			gang->members[rank]->cancelled = true;
			member_nominate(engine, gang->members[rank], "");
		}
	gang_tell(engine, gang, TELL_REFUSED, gang->text);
}

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
		} else if (over) {
			gang->again_ms = 0;
			gang_cancel(engine, gang, problem);
		} else if (!job) {
			snprintf(gang->text, sizeof(gang->text), "%s", problem);
			gang->again_ms = clock_boot_ms() + GANG_AGAIN_MS;
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
	gang_key(members, count, key);
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
		state->gpu_mask = pods[rank].gpu_mask;
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
	own_job_over(engine, job);
	gang = gang_of_job(engine, job);
	if (gang && gang->mask) {
		const struct mask *mask = gang->mask;

		mask_leave(gang);
		gangs_next_of(engine, mask);
	}
	if (gang && !gang->broken && gang->members[0] && !gang->members[0]->bound) {
		gang->attempt = 0;
		gang_set_job(engine, gang, 0);
		gang_cancel(engine, gang, text);
	} else if (gang) {
		gang_remove(engine, gang);
	}
	gangs_look(engine);
	pthread_mutex_unlock(&engine->lock);
}

static void kubernetes_gang_promised(struct engine *engine, uint64_t job, const char *const *nodes,
				     uint32_t count)
{
	struct gang *gang;

	pthread_mutex_lock(&engine->lock);
	gang = gang_of_job(engine, job);
	if (gang && !gang->attempt && !gang->broken) {
		gang->promised = count > 0;
		for (uint32_t rank = 0; rank < gang->count; rank++)
			if (gang->members[rank])
				member_nominate(engine, gang->members[rank],
						rank < count ? nodes[rank] : "");
	}
	pthread_mutex_unlock(&engine->lock);
}

static void kubernetes_gang_disrupted(struct engine *engine, uint64_t id, bool preempted,
				      const char *text)
{
	struct attempt_entry *attempt;

	pthread_mutex_lock(&engine->lock);
	attempt = live_find(engine, id);
	if (attempt && attempt->gang && !attempt->disrupted) {
		attempt->disrupted = strdup(text);
		CHECK(attempt->disrupted);
		attempt->preempted = preempted;
	}
	pthread_mutex_unlock(&engine->lock);
}

static void kubernetes_gang_why(struct engine *engine, uint64_t job, bool room, const char *text)
{
	struct gang *gang;

	pthread_mutex_lock(&engine->lock);
	gang = gang_of_job(engine, job);
	if (gang && !gang->attempt && !gang->broken) {
		snprintf(gang->text, sizeof(gang->text), "%s", text);
		gang_tell(engine, gang, room ? TELL_NO_ROOM : TELL_WAITS, gang->text);
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
	else if (member->cancelled)
		snprintf(text, ENGINE_POD_TEXT_MAX,
			 "its job is over; pods that are made anew are new work");
	else if (!gang && member->group && member->group->size > 1)
		snprintf(text, ENGINE_POD_TEXT_MAX, "its gang of %lld pods is not complete",
			 (long long)member->group->size);
	else
		snprintf(text, ENGINE_POD_TEXT_MAX, "Fairlead has just seen it; ask again");
}

static bool kubernetes_pod_find(struct engine *engine, const char *namespace, const char *name,
				struct engine_pod_found *ret)
{
	const struct member *member, *next, *found = NULL;
	uint64_t launch;

	*ret = (struct engine_pod_found){ 0 };
	if (manifest_named(&engine->site, namespace, name, &ret->job, &ret->attempt, &ret->rank,
			   &launch))
		return true;
	*ret = (struct engine_pod_found){ 0 };
	pthread_mutex_lock(&engine->lock);
	for (member = engine->gangs.members; member; member = next) {
		next = member->hh.next;
		if (strcmp(member->name, name) == 0 && strcmp(member->namespace, namespace) == 0)
			found = member;
	}
	if (found && found->gang && found->gang->job) {
		ret->job = found->gang->job;
		while (ret->rank + 1 < found->gang->count &&
		       found->gang->members[ret->rank] != found)
			ret->rank++;
	} else if (found) {
		describe_member(found, ret->text);
	}
	pthread_mutex_unlock(&engine->lock);
	return found != NULL;
}

static bool is_refused(const struct member *member)
{
	const struct gang *gang = member->gang;

	return (member->wish && member->wish->problem[0]) ||
	       (gang && !gang->job && !gang->offered && gang->text[0]);
}

static void kubernetes_look(struct engine *engine, struct engine_cluster_state *ret)
{
	const struct member *member, *next;

	*ret = (struct engine_cluster_state){ 0 };
	pthread_mutex_lock(&engine->lock);
	ret->seen = engine->nodes_listed && engine->pods_listed && devices_listed(engine);
	for (member = engine->gangs.members; member; member = next) {
		next = member->hh.next;
		ret->refused += is_refused(member);
	}
	if (ret->seen)
		ret->conflicts = authority_conflicts(engine, ret->conflict);
	pthread_mutex_unlock(&engine->lock);
	kube_client_problem(engine->client, ret->problem);
}

const struct engine_pod_ops kubernetes_pod_ops = {
	.answer = kubernetes_gang_answer,
	.adopt = kubernetes_gang_adopt,
	.own = own_job_came,
	.job_over = kubernetes_job_over,
	.why = kubernetes_gang_why,
	.promised = kubernetes_gang_promised,
	.disrupted = kubernetes_gang_disrupted,
	.find = kubernetes_pod_find,
	.look = kubernetes_look,
	.output = kubernetes_pod_output,
	.consider = kubernetes_consider,
	.word = kubernetes_word,
};
