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
static struct placed_pod *stand_in_read(const struct engine *engine, const struct engine_own *job)
{
	AUTO_BUF pod = BUF_INIT;
	struct placed_pod *read = NULL;
	struct arena arena;
	struct err err = { 0 };

	buf_adds(&pod, "{\"metadata\":{\"name\":\"own\",\"uid\":\"own\",\"namespace\":");
	buf_add_json(&pod, engine->site.namespace, strlen(engine->site.namespace));
	buf_adds(&pod, "},\"spec\":{\"tolerations\":[{\"operator\":\"Exists\"}]}}");
	arena_init(&arena, STAND_IN_BYTES + (64 << 20));
	if (overlay_merge(&pod, job->overlay, &arena, &err) < 0 ||
	    placed_pod_read(pod.data, pod.size, &read, &err) < 0)
		log_line(LOG_ERROR, "job %llu: what its pods ask for can't be read: %s",
			 (unsigned long long)job->job, err.text);
	arena_deinit(&arena);
	return read;
}

static void own_join(struct engine *engine, struct own_job *own)
{
	own->mask = mask_own(engine, own->name);
	if (!own->mask) {
		engine->masks.own_left_out = true;
		return;
	}
	own->mask->own_jobs++;
	own->mask->own_changes |= own->changes;
	if (own->mask->own) { /* that of a job like it; of an array there may be thousands */
		free(own->pod);
		own->pod = NULL;
		return;
	}
	own->mask->own = own->pod;
	own->pod = NULL;
	own->mask->own_gpus = own->gpus;
	own->mask->own_tasks = own->apart ? 1 : own->tasks;
	own->mask->related |= own->mask->own->claims != 0;
	own->mask->counts = true;
	mask_stale(own->mask);
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
		own->tasks = job->tasks;
		own->gpus = job->gpus;
		own->apart = job->apart;
		own->changes = job->changes;
		snprintf(own->name, sizeof(own->name), "%s", job->mask);
		own->pod = stand_in_read(engine, job);
		HASH_ADD(hh, engine->masks.own, job, sizeof(own->job), own);
		if (own->pod)
			own_join(engine, own);
		masks_flush(engine, true);
	}
	pthread_mutex_unlock(&engine->lock);
}

bool kubernetes_consider(struct engine *engine, const struct engine_own *job, struct arena *arena,
			 struct engine_mask *ret)
{
	struct mask mask = { .own_gpus = job->gpus, .own_tasks = job->apart ? 1 : job->tasks };
	bool known;

	snprintf(mask.name, sizeof(mask.name), "%s", job->mask);
	pthread_mutex_lock(&engine->lock);
	mask.own = stand_in_read(engine, job);
	known = mask.own && engine->known.count && sources_ready(engine);
	if (known)
		mask_consider(engine, &mask, arena, ret);
	pthread_mutex_unlock(&engine->lock);
	free(mask.own);
	ret->name = job->mask;
	return known;
}

void own_job_over(struct engine *engine, uint64_t job)
{
	struct own_job *own = own_find(engine, job);

	if (!own)
		return;
	HASH_DEL(engine->masks.own, own);
	if (own->mask)
		mask_own_leave(own->mask);
	free(own->pod);
	free(own);
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
		if (!own->mask && own->pod)
			own_join(engine, own);
	}
	masks_flush(engine, true);
}

void own_jobs_deinit(struct engine *engine)
{
	struct own_job *own, *next;

	HASH_ITER(hh, engine->masks.own, own, next)
	{
		HASH_DEL(engine->masks.own, own);
		free(own->pod);
		free(own);
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
