/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts of gangs: the pods are there already. `start` looks for them, `release` binds them by uid, `stop` deletes those that are bound,
 * with their own grace, and leaves the others as they are. What a bound pod comes to is told as for pods of Fairlead's own (ranks.c).
 *
 * Each request may be carried out twice or without an answer. So a binding that was refused is looked at: the pod says itself whether it is
 * bound, and to which node.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/rights.h"

static void never_ran(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		      enum engine_cause cause, const char *text)
{
	rank_over(engine, attempt, rank, cause, 0, true, text);
}

static void rank_begin(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		       struct gang *gang)
{
	const struct member *member = member_find(engine, attempt->ranks[rank].uid);

	if (!member || member->deleting || member->over)
		never_ran(engine, attempt, rank, ENGINE_CAUSE_LOST, "its pod is gone");
	else if (!gang || member->gang != gang)
		never_ran(engine, attempt, rank, ENGINE_CAUSE_LOST,
			  "its pod is not of this job any more");
}

/* It got another place than was promised. */
static void denominate(struct engine *engine, const struct rank_state *state)
{
	struct member *member = member_find(engine, state->uid);

	if (member && member->nominated && strcmp(member->nominated, state->node) != 0)
		member_nominate(engine, member, "");
}

/* The start may come before the answer to the offer. */
static struct gang *gang_started(struct engine *engine, const struct engine_start *start)
{
	struct gang *gang = gang_of_job(engine, start->job);
	const struct member *member = member_find(engine, start->pods[0].uid);

	if (gang || !member || !member->gang || !member->gang->offered || member->gang->job ||
	    member->gang->count != start->place_count)
		return gang;
	gang_set_job(engine, member->gang, start->job);
	return member->gang;
}

void gang_start(struct engine *engine, const struct engine_start *start)
{
	struct attempt_entry *attempt = live_add(engine, start->attempt, start->place_count);
	struct gang *gang = gang_started(engine, start);

	if (attempt->described || attempt->tasks != start->place_count)
		return;
	attempt->described = attempt->gang = true;
	attempt->shield_told = attempt->least_told =
		true; /* the core takes it for open, and for whole */
	attempt->job = start->job;
	if (gang && !gang->broken)
		gang->attempt = start->attempt;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		struct rank_state *state = &attempt->ranks[rank];
		const struct engine_pod *pod = &start->pods[rank];

		snprintf(state->uid, sizeof(state->uid), "%s", pod->uid);
		snprintf(state->namespace, sizeof(state->namespace), "%s", pod->namespace);
		snprintf(state->name, sizeof(state->name), "%s", pod->name);
		snprintf(state->node, sizeof(state->node), "%s", start->places[rank].node);
		state->gpu_mask = start->places[rank].gpu_mask;
		claims_of_rank(engine, attempt, rank);
		denominate(engine, state);
		rank_begin(engine, attempt, rank, gang && !gang->broken ? gang : NULL);
	}
	gang_check(engine, attempt);
}

/* --- binding --------------------------------------------------------------------------------------------------------- */

static struct rank_state *about_what(const struct about *about, const struct kube_answer *answer,
				     struct attempt_entry **ret)
{
	struct attempt_entry *attempt =
		answer->status ? live_find(about->engine, about->attempt) : NULL;

	*ret = attempt;
	if (!attempt || about->rank >= attempt->tasks ||
	    strcmp(attempt->ranks[about->rank].uid, about->uid) != 0)
		return NULL;
	return &attempt->ranks[about->rank];
}

static void not_bound(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		      enum engine_cause cause, const char *text)
{
	attempt->ranks[rank].binding = false;
	masks_assume(engine, attempt->ranks[rank].uid, NULL);
	if (attempt->stopping)
		never_ran(engine, attempt, rank, ENGINE_CAUSE_STOPPED,
			  "it was stopped before it was started");
	else
		never_ran(engine, attempt, rank, cause, text);
}

static void is_bound(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct member *member = member_find(engine, attempt->ranks[rank].uid);

	attempt->ranks[rank].bound = true;
	attempt->ranks[rank].refused = 0;
	if (member) {
		member->bound = true;
		group_touch(engine, member->group);
	}
	budgets_touch(engine);
	if (member && member->gang)
		gang_has_places(engine, member->gang);
	if (attempt->stopping)
		gang_rank_stop(engine, attempt, rank);
}

/* A binding was refused in passing. What holds by then says whether the pod still fits. */
static void release_again(void *context)
{
	const struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;

	pthread_mutex_lock(&engine->lock);
	if (about_find(about, &attempt) && attempt->released && !attempt->stopping)
		gang_release(engine, attempt);
	pthread_mutex_unlock(&engine->lock);
}

static void looked_at(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct rank_state *state;
	struct kube_pod pod;
	char text[KUBE_TEXT_MAX + KUBE_NAME_MAX];

	pthread_mutex_lock(&engine->lock);
	state = about_what(about, answer, &attempt);
	if (!state || state->bound || state->over) {
		;
	} else if (answer->status != 200 || pod_read(answer->body, answer->size, &pod, NULL) < 0 ||
		   strcmp(pod.uid, state->uid) != 0) {
		not_bound(engine, attempt, about->rank, ENGINE_CAUSE_LOST,
			  "its pod was removed from Kubernetes");
	} else if (strcmp(pod.node, state->node) == 0) {
		is_bound(engine, attempt, about->rank);
	} else if (pod.node[0]) {
		snprintf(text, sizeof(text), "another scheduler bound its pod to %.200s", pod.node);
		not_bound(engine, attempt, about->rank, ENGINE_CAUSE_LOST, text);
	} else if (pod.deleting || pod.gated || attempt->stopping) {
		not_bound(engine, attempt, about->rank, ENGINE_CAUSE_LOST,
			  pod.gated ? "its pod has scheduling gates"
				    : "its pod was deleted in Kubernetes");
	} else {
		state->binding = false;
		kube_later_free(engine->client, again_ms(state->refused++), release_again, about);
		about = NULL;
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

static void look(struct engine *engine, const struct rank_state *state, struct about *about)
{
	AUTO_BUF path = BUF_INIT;

	rank_path(state, "", &path);
	kube_call(engine->client, &(struct kube_request){ .method = "GET",
							  .path = buf_text(&path),
							  .done = looked_at,
							  .context = about });
}

static void answered(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct rank_state *state;
	char text[256];

	pthread_mutex_lock(&engine->lock);
	state = about_what(about, answer, &attempt);
	if (!state || state->bound || state->over) {
		;
	} else if (answer->status >= 200 && answer->status < 300) {
		is_bound(engine, attempt, about->rank);
	} else if (answer->status == 409 || answer->status == 404 || right_is_lacking(answer)) {
		look(engine, state, about);
		about = NULL;
	} else {
		kube_problem(answer, text);
		not_bound(engine, attempt, about->rank, ENGINE_CAUSE_START, text);
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

void gang_bind(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;
	char text[KUBE_NAME_MAX + 64];

	if (state->bound || state->binding || state->over)
		return;
	/* The API server binds to any name. */
	if (!node_is_there(engine, state->node)) {
		snprintf(text, sizeof(text), "node %.200s was removed from Kubernetes",
			 state->node);
		never_ran(engine, attempt, rank, ENGINE_CAUSE_LOST, text);
		return;
	}
	state->binding = true;
	manifest_gang_binding(state->namespace, state->name, state->uid, state->node, attempt->job,
			      attempt->id, rank, &body);
	rank_path(state, "/binding", &path);
	kube_call(engine->client,
		  &(struct kube_request){
			  .method = "POST",
			  .path = buf_text(&path),
			  .body = &body,
			  .done = answered,
			  .context = about_create(engine, attempt->id, rank, state->uid) });
}

/* --- ending ------------------------------------------------------------------------------------------------------------ */

/*
 * Its provider, Karpenter or an autoscaler takes a node away on which some of it is, or was: an eviction that a budget refuses stays one when the notice
 * is taken back meanwhile (an autoscaler that gives up because of that budget does so), and when other ranks have left. It ends when a node of it is gone.
 */
static bool is_evicted(struct engine *engine, struct attempt_entry *attempt)
{
	bool goes = false, gone = false;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct node_entry *entry = node_entry_find(engine, attempt->ranks[rank].node);

		gone |= entry && !entry->node;
		goes |= entry && entry->node && entry->node->goes && !attempt->ranks[rank].over;
	}
	attempt->evicted |= goes;
	return goes || (attempt->evicted && !gone);
}

/* The same for one that leaves alone, by its own node. */
static bool rank_is_evicted(struct engine *engine, struct rank_state *state)
{
	const struct node_entry *entry = node_entry_find(engine, state->node);

	state->evicted |= entry && entry->node && entry->node->goes;
	return state->evicted && entry && entry->node;
}

void gang_resize(struct engine *engine, const struct engine_start *start)
{
	struct attempt_entry *attempt = live_find(engine, start->attempt);

	if (!attempt || !attempt->gang || attempt->tasks != start->place_count)
		return;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		if (!start->places[rank].leaves)
			continue;
		attempt->ranks[rank].leaves = true;
		gang_rank_stop(engine, attempt, rank);
	}
}

enum { NODES_PAUSE_MS = 1000 };

static void stop_later(void *context)
{
	const struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;

	pthread_mutex_lock(&engine->lock);
	if (about_find(about, &attempt))
		gang_rank_stop(engine, attempt, about->rank);
	pthread_mutex_unlock(&engine->lock);
}

/* After a restart it is not known for a while which nodes are taken away, so not whether budgets are to be asked. */
static bool awaits_nodes(struct engine *engine, const struct attempt_entry *attempt, uint32_t rank)
{
	const struct rank_state *state = &attempt->ranks[rank];

	if (engine->nodes_listed || attempt->preempted || !(state->leaves || attempt->disrupted))
		return false;
	kube_later_free(engine->client, NODES_PAUSE_MS, stop_later,
			about_create(engine, attempt->id, rank, state->uid));
	return true;
}

/* Whoever takes a node away evicts its pods, too, and asks their budgets: so it is asked for here. Twice does no harm: who is being deleted goes on so. */
void gang_rank_stop(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	if (state->over || state->deleting || state->disrupting)
		return;
	if (!state->bound && (state->binding || !engine->pods_listed))
		return; /* what comes of it is told by the answer, or by the list */
	if (!state->bound) {
		never_ran(engine, attempt, rank, ENGINE_CAUSE_STOPPED,
			  "it was stopped before it was started");
		return;
	}
	if (awaits_nodes(engine, attempt, rank))
		return;
	budgets_touch(engine);
	if (state->leaves
		    ? rank_is_evicted(engine, state)
		    : attempt->disrupted && !attempt->preempted && is_evicted(engine, attempt))
		rank_evict(engine, attempt, rank);
	else if (attempt->disrupted || state->leaves)
		member_disrupt(engine, attempt, rank);
	else
		rank_delete(engine, attempt, rank, POD_OWN_GRACE);
}
