/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many pods of a group start together. A number that the pods bear themselves counts; else the object by which they belong together is
 * asked for (owner_read.h).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/gangs/owner_read.h"

struct question {
	struct engine *engine;
	enum gang_kind kind;
	char group[]; /* key */
};

static bool is_named_by_pods(enum gang_kind kind)
{
	return kind == GANG_NATIVE || kind == GANG_SIGS || kind == GANG_VOLCANO;
}

static void answered(void *context, const struct kube_answer *answer)
{
	struct question *question = context;
	struct engine *engine = question->engine;
	struct group *group = NULL;
	struct owner_numbers numbers = { 0 };

	pthread_mutex_lock(&engine->lock);
	if (answer->status)
		HASH_FIND_STR(engine->gangs.groups, question->group, group);
	if (group && group->need == NEED_ASKED) {
		bool read = answer->status == 200 &&
			    (question->kind == GANG_JOBSET
				     ? owner_read_jobs(answer->body, answer->size,
						       group->maker->times, &numbers)
				     : owner_read(answer->body, answer->size, &numbers));

		group->size = read ? owner_gang_size(question->kind, &numbers) : -1;
		group->stay =
			group->size > 0 ? owner_gang_stay(question->kind, &numbers) : group->size;
		memcpy(group->together, numbers.together, sizeof(group->together));
		if (numbers.more) {
			group->need = NEED_MISSING;
			snprintf(
				group->problem, sizeof(group->problem),
				"its PodGroup has more than one topology constraint; one is understood");
		} else if (group->size >= 0) {
			group->need = NEED_KNOWN;
			if (numbers.single)
				group->kind = GANG_ALONE;
		} else if (is_named_by_pods(question->kind)) {
			group->need = NEED_MISSING;
			snprintf(group->problem, sizeof(group->problem),
				 "its PodGroup can't be read (status %d): it is waited for",
				 answer->status);
		} else {
			group->need = NEED_UNKNOWN;
			snprintf(
				group->problem, sizeof(group->problem),
				"how many pods start together can't be read of its owner (status %d), so each is placed by itself",
				answer->status);
		}
		group_touch(engine, group);
		gangs_look(engine);
	}
	pthread_mutex_unlock(&engine->lock);
	free(question);
}

/* "PyTorchJob" of kubeflow.org/v1 is served as pytorchjobs. */
static void path_of(const struct group *group, struct buf *out)
{
	const struct group_maker *maker = group->maker;

	switch (group->kind) {
	case GANG_NATIVE:
		buf_addf(out, "/apis/scheduling.k8s.io/v1alpha2/namespaces/%s/podgroups/%s",
			 maker->namespace, maker->name);
		return;
	case GANG_RAY:
		buf_addf(out, "/apis/%s/namespaces/%s/rayclusters/%s", maker->api, maker->namespace,
			 maker->name);
		return;
	case GANG_SIGS:
		buf_addf(out, "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/%s/podgroups/%s",
			 maker->namespace, maker->name);
		return;
	case GANG_VOLCANO:
		buf_addf(out, "/apis/scheduling.volcano.sh/v1beta1/namespaces/%s/podgroups/%s",
			 maker->namespace, maker->name);
		return;
	case GANG_LWS:
		buf_addf(out, "/apis/leaderworkerset.x-k8s.io/v1/namespaces/%s/leaderworkersets/%s",
			 maker->namespace, maker->name);
		return;
	case GANG_JOBSET:
		buf_addf(
			out,
			"/apis/batch/v1/namespaces/%s/jobs?labelSelector=jobset.sigs.k8s.io%%2Fjobset-name%%3D%s%%2Cjobset.sigs.k8s.io%%2Freplicatedjob-name%%3D%s",
			maker->namespace, maker->name, maker->part);
		return;
	case GANG_JOB:
		buf_addf(out, "/apis/batch/v1/namespaces/%s/jobs/%s", maker->namespace,
			 maker->name);
		return;
	case GANG_KUBEFLOW:
		buf_addf(out, "/apis/%s/namespaces/%s/", maker->api, maker->namespace);
		for (const char *p = maker->kind; *p; p++)
			buf_addc(out, (char)tolower((unsigned char)*p));
		buf_addf(out, "s/%s", maker->name);
		return;
	case GANG_ALONE:
	case GANG_OWN:
	case GANG_KUEUE:
	case GANG_OTHER: return;
	}
}

static void ask(struct engine *engine, struct group *group)
{
	size_t size = strlen(group->key) + 1;
	struct question *question = calloc(1, sizeof(*question) + size);
	AUTO_BUF path = BUF_INIT;

	CHECK(question);
	question->engine = engine;
	question->kind = group->kind;
	memcpy(question->group, group->key, size);
	path_of(group, &path);
	group->need = NEED_ASKED;
	group->asked_ms = clock_boot_ms();
	kube_call(engine->client, &(struct kube_request){ .method = "GET",
							  .path = buf_text(&path),
							  .done = answered,
							  .context = question });
}

/* A name that stands in a path: what people write into a label may be anything. */
static bool is_name(const char *text)
{
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-._", *p))
			return false;
	return *text != '\0';
}

/* What a pod says that waits counts before what one said that runs. */
static int64_t said_by_pods(const struct group *group)
{
	for (const struct member *member = group->members; member; member = member->next)
		if (member->wish && member->wish->size > 0)
			return member->wish->size;
	return group->said;
}

void need_find(struct engine *engine, struct group *group)
{
	const struct group_maker *maker = group->maker;
	int64_t said = said_by_pods(group);

	if (said > 0) {
		group->size = group->stay = said;
		group->need = NEED_KNOWN;
		return;
	}
	if (!maker)
		return;
	if (group->kind != GANG_OTHER && is_name(maker->name) &&
	    (!maker->part[0] || is_name(maker->part))) {
		ask(engine, group);
		return;
	}
	group->need = NEED_UNKNOWN;
	snprintf(
		group->problem, sizeof(group->problem),
		"%.30s %.40s does not say how many pods start together, so each is placed by itself; the annotation " WISH_GANG_SIZE
		" says it",
		maker->kind, maker->name);
}
