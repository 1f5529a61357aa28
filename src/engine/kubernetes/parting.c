/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an attempt whose ranks leave and come. Its Secret and its Service belong to no pod, for none lives as long as they do. So its last
 * pods are let go only when both are deleted: who dies in between finds those pods with Fairlead's finalizer, and does it then.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/refusal.h"

static const char *const folders[] = { "secrets", "services" };
enum { PARTS = sizeof(folders) / sizeof(folders[0]) };

struct parted_pod {
	char uid[KUBE_WORD_MAX], namespace[KUBE_WORD_MAX], name[KUBE_NAME_MAX];
	bool nowhere;
};

/* One request after the other. */
struct parting {
	struct engine *engine;
	char name[MANIFEST_NAME_MAX]; /* of both */
	uint32_t next; /* of the folders */
	uint32_t refused;
	uint32_t count;
	struct parted_pod pods[];
};

static struct parting *parting_create(struct engine *engine, uint64_t job, uint64_t attempt,
				      uint32_t count)
{
	struct parting *parting = calloc(1, sizeof(*parting) + count * sizeof(parting->pods[0]));

	CHECK(parting);
	parting->engine = engine;
	manifest_attempt_name(&engine->site, job, attempt, parting->name);
	return parting;
}

static void pod_add(struct parting *parting, const char *uid, const char *namespace,
		    const char *name, bool nowhere)
{
	struct parted_pod *pod = &parting->pods[parting->count++];

	snprintf(pod->uid, sizeof(pod->uid), "%s", uid);
	snprintf(pod->namespace, sizeof(pod->namespace), "%s", namespace);
	snprintf(pod->name, sizeof(pod->name), "%s", name);
	pod->nowhere = nowhere;
}

static void part_deleted(void *context, const struct kube_answer *answer);

static void part_delete(struct parting *parting)
{
	AUTO_BUF path = BUF_INIT;

	buf_addf(&path, "/api/v1/namespaces/%s/%s/%s", parting->engine->site.namespace,
		 folders[parting->next], parting->name);
	kube_call(parting->engine->client, &(struct kube_request){ .method = "DELETE",
								   .path = buf_text(&path),
								   .done = part_deleted,
								   .context = parting });
}

/* The timer frees its own. */
static void delete_again(void *context)
{
	const struct parting *parting = context;
	const size_t size = sizeof(*parting) + parting->count * sizeof(parting->pods[0]);
	struct parting *again = malloc(size);

	CHECK(again);
	memcpy(again, parting, size);
	part_delete(again);
}

static void let_go(struct parting *parting)
{
	struct engine *engine = parting->engine;

	pthread_mutex_lock(&engine->lock);
	for (uint32_t i = 0; i < parting->count; i++) {
		const struct parted_pod *pod = &parting->pods[i];

		if (pod->nowhere)
			pod_delete(engine, pod->namespace, pod->name, pod->uid, 0);
		pod_let_go(engine, pod->namespace, pod->name, pod->uid);
	}
	pthread_mutex_unlock(&engine->lock);
	free(parting);
}

static void part_deleted(void *context, const struct kube_answer *answer)
{
	struct parting *parting = context;

	if (!answer->status) {
		free(parting);
	} else if (!status_is_done(answer->status) && answer->status != 404) {
		kube_later_free(parting->engine->client, again_ms(parting->refused++), delete_again,
				parting);
	} else if (++parting->next < PARTS) {
		parting->refused = 0;
		part_delete(parting);
	} else {
		let_go(parting);
	}
}

void attempt_part(struct engine *engine, const struct attempt_entry *attempt)
{
	struct parting *parting;

	if (!attempt->job)
		return; /* nothing of it was made or seen */
	parting = parting_create(engine, attempt->job, attempt->id, attempt->tasks);
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct rank_state *state = &attempt->ranks[rank];

		if (state->uid[0] && !state->let_go)
			pod_add(parting, state->uid, state->namespace, state->name, state->nowhere);
	}
	part_delete(parting);
}

void pod_part(struct engine *engine, const struct kube_pod *pod)
{
	struct parting *parting = parting_create(engine, pod->job, pod->attempt, 1);

	pod_add(parting, pod->uid, pod->namespace, pod->name, false);
	part_delete(parting);
}
