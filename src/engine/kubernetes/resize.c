/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of a running attempt that leave and come (docs/decisions/0007, 0022). Each start of a rank is a pod of another name, and a host of another
 * name, so that no word of an earlier one is taken for its own. The core gives a rank a place again only when the end of the one before is
 * in the journal.
 *
 *	comes	its pod is made, and bound as soon as it is there and has what it needs: the attempt was released long ago
 *	leaves	its shepherd tells it (daemon/world_calls.c); when its time is over its pod is deleted, whatever became of that
 *	left	its pod is let go; until then nobody else has taken it away
 *
 * All of it is said anew each time, so what is known is passed over.
 *
 * A node that is lost takes several ranks with it, and their ends are proved one after the other. As long as nothing says whether another one
 * still runs, the attempt is `unreachable`, and the core would end it whole. So the ends are kept back until the last one is proved, for a
 * minute at most.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/cluster.h"

enum {
	LEAVE_MORE_MS = 10000, /* its shepherd stops it five seconds after its time */
	KEEP_MS = 60000
};

/* --- ends that are told together ------------------------------------------------------------------------------------ */

void rank_ends_tell(struct engine *engine, struct attempt_entry *attempt)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		struct engine_fact *kept = attempt->ranks[rank].kept;

		attempt->ranks[rank].kept = NULL;
		if (kept)
			engine->options.report(engine->options.context, kept);
		free(kept);
	}
}

static void kept_for_long(void *context)
{
	const struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;

	pthread_mutex_lock(&engine->lock);
	if (about_find(about, &attempt))
		rank_ends_tell(engine, attempt);
	pthread_mutex_unlock(&engine->lock);
}

/* After a restart that is known when all is listed; until then it is what the daemon before said, perhaps that it does not. */
static bool hears_all(const struct attempt_entry *attempt)
{
	return attempt->reach_told && !attempt->unreachable;
}

bool rank_end_keep(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		   const struct engine_fact *fact)
{
	struct rank_state *state;
	struct engine_fact *kept;

	if (!attempt->changes || attempt->stopping || hears_all(attempt))
		return false;
	attempt_look(engine, attempt); /* it may have been the last */
	if (hears_all(attempt) || fact->cause != ENGINE_CAUSE_LOST)
		return false;
	kept = malloc(sizeof(*kept));
	CHECK(kept);
	*kept = *fact;
	state = &attempt->ranks[rank];
	free(state->kept);
	state->kept = kept;
	kube_later_free(engine->client, KEEP_MS, kept_for_long,
			about_create(engine, attempt->id, rank, state->uid));
	return true;
}

/* Its end is in the journal. */
static void rank_has_left(struct engine *engine, struct rank_state *state)
{
	if (state->let_go)
		return;
	state->let_go = state->over = true;
	free(state->kept);
	state->kept = NULL;
	if (!state->uid[0])
		return;
	if (state->nowhere)
		pod_delete(engine, state->namespace, state->name, state->uid, 0);
	pod_let_go(engine, state->namespace, state->name, state->uid);
}

/* --- coming ---------------------------------------------------------------------------------------------------------- */

static void rank_anew(struct rank_state *state, uint32_t launch)
{
	free(state->claims);
	free(state->kept);
	*state = (struct rank_state){ .launch = launch };
}

/* Its pod was made before a restart, and perhaps bound. */
static void rank_goes_on_coming(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];

	parts_make(engine, attempt);
	if (attempt->stopping || !attempt->released || state->bound || state->binding ||
	    state->deleting || state->over || state->unclear)
		return;
	if (attempt->asks_masks)
		own_release(engine, attempt);
	else
		pod_bind(engine, attempt, rank);
}

static void rank_come(struct engine *engine, const struct engine_start *start,
		      struct attempt_entry *attempt, uint32_t rank, struct arena *arena)
{
	const struct engine_gpu_place *place = &start->places[rank];
	struct rank_state *state = &attempt->ranks[rank];

	if (place->launch > state->launch) {
		rank_has_left(engine, state); /* which may be known only now */
		rank_anew(state, place->launch);
	}
	if (place->launch < state->launch || state->over || state->asked)
		return;
	rank_describe(engine, start, attempt, rank);
	if (state->uid[0]) {
		rank_goes_on_coming(engine, attempt, rank);
	} else if (attempt->stopping) {
		rank_stop(engine, attempt, rank);
	} else if (!start->image && !engine->site.image) {
		rank_over(engine, attempt, rank, ENGINE_CAUSE_START, 0, true,
			  "the job names no image, and the daemon was started without --image");
	} else if (!start->stopping) { /* else the stop, which comes next, says that it never was */
		state->asked = true;
		pod_make(engine, start, rank, arena);
	}
}

/* --- leaving ---------------------------------------------------------------------------------------------------------- */

static void rank_leave(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		       int64_t grace_ms)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (state->leaves || state->over)
		return;
	state->leaves = true;
	if (!state->bound && !state->binding)
		rank_stop(engine, attempt, rank);
	else
		kube_later_free(engine->client, grace_ms + LEAVE_MORE_MS, rank_stop_due,
				about_create(engine, attempt->id, rank, state->uid));
}

/* --- the command -------------------------------------------------------------------------------------------------------- */

int attempt_resize(struct engine *engine, const struct engine_start *start, int64_t grace_ms,
		   struct err *err)
{
	struct attempt_entry *attempt = live_find(engine, start->attempt);
	struct arena arena;

	if (!attempt)
		return err_set(err, ERR_NOT_FOUND, "attempt %llu has no pods in Kubernetes",
			       (unsigned long long)start->attempt);
	arena_init(&arena, 512 << 20);
	attempt->job = start->job;
	attempt->changes = true;
	attempt->asks_masks = start->masked;
	if (start->place_count > attempt->tasks)
		live_widen(attempt, start->place_count);
	for (uint32_t rank = 0; rank < start->place_count; rank++) {
		const struct engine_gpu_place *place = &start->places[rank];
		struct rank_state *state = &attempt->ranks[rank];

		if (place->comes)
			rank_come(engine, start, attempt, rank, &arena);
		if (place->leaves && place->launch == state->launch)
			rank_leave(engine, attempt, rank, grace_ms);
		if (place->left && place->launch == state->launch)
			rank_has_left(engine, state);
		arena_reset(&arena);
	}
	if (attempt->unreachable)
		attempt_look(engine, attempt);
	masks_flush(engine, false);
	arena_deinit(&arena);
	return 0;
}
