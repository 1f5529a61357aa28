/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks of Fairlead's own jobs: those whose pods ask for claims or for resources that the core does not count. The job names its mask from its
 * submission on, and runs nowhere before the mask is told; the engine hears of the job when its submission is durable, and again after a
 * restart. A pod that stands for those of the job is asked about, since its own are made only when it has a place.
 *
 * At its release each pod is asked about for its very node, as those of gangs are (binding.c). One that does not fit is deleted, and the
 * attempt goes back as one that was not started.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/overlay.h"

enum { STAND_IN_BYTES = 8 << 20 };

struct own_job *own_find(struct engine *engine, uint64_t job)
{
	struct own_job *own = NULL;

	HASH_FIND(hh, engine->masks.own, &job, sizeof(job), own);
	return own;
}

/* It tolerates all taints: those that the job does not are the core's to see. */
static struct placed_pod *stand_in_read(const struct engine *engine,
					const struct engine_own_pods *pods, struct err *err)
{
	AUTO_BUF pod = BUF_INIT;
	struct placed_pod *read = NULL;
	struct arena arena;
	int rc = 0;

	buf_adds(&pod, "{\"metadata\":{\"name\":\"own\",\"uid\":\"own\",\"namespace\":");
	buf_add_json(&pod, engine->site.namespace, strlen(engine->site.namespace));
	buf_adds(&pod, "},\"spec\":{\"tolerations\":[{\"operator\":\"Exists\"}]}}");
	arena_init(&arena, STAND_IN_BYTES + (64 << 20));
	for (size_t i = 0; i < ARRAY_SIZE(pods->overlays) && rc >= 0; i++)
		if (pods->overlays[i])
			rc = overlay_merge(&pod, pods->overlays[i], &arena, err);
	if (rc >= 0)
		rc = placed_pod_read(pod.data, pod.size, &read, err);
	arena_deinit(&arena);
	return rc < 0 ? NULL : read;
}

void own_pods_free(struct own_pods *pods, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(pods[i].pod);
}

/* How many were read: all, or 0. */
static uint32_t stand_ins_read(const struct engine *engine, uint64_t job,
			       const struct engine_own_mask *from, struct own_pods *ret)
{
	struct err err = { 0 };

	for (uint32_t i = 0; i < from->pod_count; i++) {
		ret[i] = (struct own_pods){ .pod = stand_in_read(engine, &from->pods[i], &err),
					    .gpus = from->pods[i].gpus,
					    .tasks = from->pods[i].tasks };
		if (ret[i].pod)
			continue;
		log_line(LOG_ERROR, "job %llu: what its pods ask for can't be read: %s",
			 (unsigned long long)job, err.text);
		own_pods_free(ret, i);
		return 0;
	}
	return from->pod_count;
}

static void use_join(struct engine *engine, struct own_use *use, bool changes)
{
	struct mask *mask = use->mask = mask_own(engine, use->name);

	if (!mask) {
		engine->masks.own_left_out = true;
		return;
	}
	mask->own_jobs++;
	mask->own_changes |= changes;
	mask->adopted =
		true; /* the daemon made it with the submission: it hears of its end, told or not */
	if (mask->own_count) { /* those of a job like it; of an array there may be thousands */
		own_pods_free(use->pods, use->count);
		use->count = 0;
		return;
	}
	memcpy(mask->own, use->pods, sizeof(mask->own));
	mask->own_count = use->count;
	use->count = 0;
	for (uint32_t i = 0; i < mask->own_count; i++)
		mask->related |= mask->own[i].pod->claims != 0;
	mask->counts = true;
	mask_stale(mask);
}

static void use_begin(struct engine *engine, const struct own_job *own,
		      const struct engine_own_mask *from, struct own_use *ret)
{
	snprintf(ret->name, sizeof(ret->name), "%s", from->name);
	ret->count = stand_ins_read(engine, own->job, from, ret->pods);
	if (ret->count)
		use_join(engine, ret, own->changes);
}

void own_job_came(struct engine *engine, const struct engine_own *job)
{
	struct own_job *own;

	pthread_mutex_lock(&engine->lock);
	own = own_find(engine, job->job);
	if (!own) {
		own = calloc(1, sizeof(*own));
		CHECK(own);
		own->job = job->job;
		own->changes = job->changes;
		own->uses = calloc(job->mask_count, sizeof(*own->uses));
		CHECK(own->uses);
		own->use_count = job->mask_count;
		HASH_ADD(hh, engine->masks.own, job, sizeof(own->job), own);
		for (uint32_t i = 0; i < job->mask_count; i++)
			use_begin(engine, own, &job->masks[i], &own->uses[i]);
		masks_flush(engine, true);
	}
	pthread_mutex_unlock(&engine->lock);
}

bool kubernetes_consider(struct engine *engine, const struct engine_own_mask *own,
			 struct arena *arena, struct engine_mask *ret)
{
	struct mask mask = { .counts = true };
	bool known;

	snprintf(mask.name, sizeof(mask.name), "%s", own->name);
	pthread_mutex_lock(&engine->lock);
	mask.own_count = stand_ins_read(engine, 0, own, mask.own);
	known = mask.own_count && engine->known.count && sources_ready(engine);
	if (known)
		mask_consider(engine, &mask, arena, ret);
	pthread_mutex_unlock(&engine->lock);
	own_pods_free(mask.own, mask.own_count);
	ret->name = own->name;
	return known;
}

void own_stale(const struct own_job *own)
{
	for (uint32_t i = 0; i < own->use_count; i++)
		if (own->uses[i].mask)
			mask_stale(own->uses[i].mask);
}

static void own_free(struct own_job *own)
{
	for (uint32_t i = 0; i < own->use_count; i++)
		own_pods_free(own->uses[i].pods, own->uses[i].count);
	free(own->uses);
	free(own);
}

void own_job_over(struct engine *engine, uint64_t job)
{
	struct own_job *own = own_find(engine, job);

	if (!own)
		return;
	HASH_DEL(engine->masks.own, own);
	for (uint32_t i = 0; i < own->use_count; i++)
		if (own->uses[i].mask)
			mask_own_leave(own->uses[i].mask);
	own_free(own);
	own_jobs_again(engine);
}

/* Those that found all masks taken. */
void own_jobs_again(struct engine *engine)
{
	struct own_job *own, *next;

	if (!engine->masks.own_left_out)
		return;
	engine->masks.own_left_out = false;
	HASH_ITER(hh, engine->masks.own, own, next)
	{
		for (uint32_t i = 0; i < own->use_count; i++)
			if (!own->uses[i].mask && own->uses[i].count)
				use_join(engine, &own->uses[i], own->changes);
	}
	masks_flush(engine, true);
}

void own_jobs_deinit(struct engine *engine)
{
	struct own_job *own, *next;

	HASH_ITER(hh, engine->masks.own, own, next)
	{
		HASH_DEL(engine->masks.own, own);
		own_free(own);
	}
}

/* Not before all its pods were seen: what is not known can't be asked about. */
void own_release(struct engine *engine, struct attempt_entry *attempt)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct rank_state *state = &attempt->ranks[rank];

		if (state->over || state->bound || state->binding)
			continue;
		if (!state->uid[0] || !predicates_pod(&engine->known, state->uid)) {
			attempt->leans = true;
			gangs_decide_later(engine, attempt);
			return;
		}
	}
	gang_release(engine, attempt);
}

void own_give_back(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		   const char *text)
{
	struct rank_state *state = &attempt->ranks[rank];

	state->failed = state->failed_never_ran = true;
	state->failed_cause = ENGINE_CAUSE_LOST;
	snprintf(state->failed_text, sizeof(state->failed_text), "%s", text);
	rank_stop(engine, attempt, rank);
}
