/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From pods to facts. A rank is ready when its pod is there and all that it needs; it has started when its container runs; it is over when
 * something proves that nothing of it is left:
 *
 *	the kubelet says so: the pod's phase is Succeeded or Failed
 *	it was never bound and is being deleted: the API server binds no such pod
 *	a person or controller says so: its deletion by force (no grace), the annotation fairlead.dev/stopped, or the taint out-of-service of a
 *	node that is not ready
 *	its shepherd's lease has ended, and no word comes from its node (shepherds.c)
 *	its node was removed from the cluster, and the time is over that a kubelet which still hears us would have needed to stop it
 *
 * The last is the word of whoever removes a machine, and may be a mistake by hand: so the pod is deleted at once, and the attempt is
 * `unreachable` meanwhile. A pool of nodes may say another time with a label, or that it is no proof. The garbage collection of
 * Kubernetes deletes such pods by force too, only because the node is gone: where that is no proof, neither is its word.
 *
 * When a container of somebody else's keeps running beside ours, the pod is stopped once ours has ended, for it holds the GPUs.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"

static void tell(struct engine *engine, const struct engine_fact *fact)
{
	engine->options.report(engine->options.context, fact);
}

void rank_report(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		 enum engine_fact_kind kind)
{
	struct engine_fact fact = { .kind = kind,
				    .attempt = attempt->id,
				    .rank = rank,
				    .launch = attempt->ranks[rank].launch,
				    .time_ms = clock_wall_ms() };

	if (kind == ENGINE_GONE)
		snprintf(fact.text, sizeof(fact.text), "no pod of it was found in Kubernetes");
	tell(engine, &fact);
}

void rank_over(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
	       enum engine_cause cause, int code, bool never_ran, const char *text)
{
	struct engine_fact fact = { .kind = ENGINE_EXITED,
				    .attempt = attempt->id,
				    .rank = rank,
				    .launch = attempt->ranks[rank].launch,
				    .time_ms = clock_wall_ms(),
				    .cause = cause,
				    .code = code,
				    .never_ran = never_ran,
				    .memory_enforced = true };

	if (attempt->ranks[rank].over)
		return;
	/* A pod that was bound never runs again: who made it makes another one. */
	if (attempt->gang)
		fact.never_ran = !attempt->ranks[rank].bound;
	attempt->ranks[rank].over = true;
	claims_of_rank(engine, attempt, rank);
	if (attempt->ranks[rank].claims && !attempt->ranks[rank].bound)
		claims_undo(engine, &attempt->ranks[rank]);
	devices_claims_count_anew(engine, attempt->ranks[rank].node);
	snprintf(fact.text, sizeof(fact.text), "%.255s", text);
	if (!rank_end_keep(engine, attempt, rank, &fact))
		tell(engine, &fact);
}

/* Whether its end is what was asked for. */
static bool is_to_stop(const struct attempt_entry *attempt, const struct rank_state *state)
{
	return attempt->stopping || (state->leaves && !attempt->gang);
}

static bool is_oom(const struct kube_pod *pod)
{
	return strcmp(pod->ended_reason, "OOMKilled") == 0;
}

/* Its pod has ended: what does Kubernetes say of it? */
static void tell_end(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		     const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];
	char text[KUBE_TEXT_MAX + KUBE_WORD_MAX + 8] = "";
	int code = state->main_ended ? state->main_code : (int)pod->code;
	bool oom = state->main_ended ? state->main_oom : is_oom(pod);
	/* Before anybody asked for its deletion, and not because its kubelet put it out. */
	bool by_itself = pod->ended && (state->main_ended ||
					(pod->deleting ? pod->ended_first : !pod->disruption[0]));

	/* Of pods that others made it may be another container that failed. */
	if (attempt->gang && pod->phase == POD_SUCCEEDED)
		code = 0;
	else if (attempt->gang && pod->phase == POD_FAILED && !code)
		code = 1;
	if (state->failed) {
		rank_over(engine, attempt, rank, state->failed_cause, state->failed_code,
			  state->failed_never_ran, state->failed_text);
	} else if (is_to_stop(attempt, state) && !(by_itself && !code)) {
		/* What had ended well before anybody deleted it has ended well. */
		rank_over(engine, attempt, rank, ENGINE_CAUSE_STOPPED, code,
			  !state->started && !pod->ended, "");
	} else if (by_itself && shepherd_tells_end(engine, attempt, rank, pod)) {
		;
	} else if (oom) {
		rank_over(engine, attempt, rank, ENGINE_CAUSE_MEMORY, code, false,
			  "killed for memory by the kernel of its node");
	} else if (by_itself) {
		rank_over(engine, attempt, rank, ENGINE_CAUSE_EXIT, code, false, "");
	} else if (pod->disruption[0]) {
		snprintf(text, sizeof(text), "Kubernetes took its pod away: %s", pod->disruption);
		rank_over(engine, attempt, rank, ENGINE_CAUSE_LOST, 0, false, text);
	} else if (pod->deleting) {
		rank_over(engine, attempt, rank, ENGINE_CAUSE_LOST, 0, false,
			  "its pod was deleted in Kubernetes");
	} else if (strcmp(pod->reason, "Evicted") == 0 || strcmp(pod->reason, "NodeLost") == 0 ||
		   strcmp(pod->reason, "Terminated") == 0 ||
		   strcmp(pod->reason, "NodeShutdown") == 0) {
		snprintf(text, sizeof(text), "%s: %s", pod->reason, pod->text);
		rank_over(engine, attempt, rank, ENGINE_CAUSE_LOST, 0, false, text);
	} else if (pod->phase == POD_SUCCEEDED) {
		rank_over(engine, attempt, rank, ENGINE_CAUSE_EXIT, 0, false, "");
	} else {
		/* The kubelet did not take it in: no room for it there after all, say. */
		snprintf(text, sizeof(text), "%s: %s",
			 pod->reason[0] ? pod->reason : "the pod failed", pod->text);
		rank_over(engine, attempt, rank, ENGINE_CAUSE_START, 0, true, text);
	}
}

/* What can't become better by waiting; an image is tried again by the kubelet, and then given up by us. */
static bool will_never_run(const struct kube_pod *pod)
{
	static const char *const reasons[] = { "InvalidImageName",     "ErrImageNeverPull",
					       "ImagePullBackOff",     "CreateContainerConfigError",
					       "CreateContainerError", "RunContainerError" };

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(pod->waiting_reason, reasons[i]) == 0)
			return true;
	return false;
}

static void give_up(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		    const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (state->failed)
		return;
	state->failed = state->failed_never_ran = true;
	state->failed_cause = ENGINE_CAUSE_EXIT;
	state->failed_code = 127;
	snprintf(state->failed_text, sizeof(state->failed_text), "%.60s: %s", pod->waiting_reason,
		 pod->waiting_text);
	rank_stop(engine, attempt, rank);
}

/* --- nodes that went ---------------------------------------------------------------------------------------------- */

enum { REMOVAL_S = 60 };

static struct node_entry *node_find(struct engine *engine, const char *name)
{
	struct node_entry *entry = NULL;

	HASH_FIND_STR(engine->nodes, name, entry);
	return entry;
}

bool node_is_there(struct engine *engine, const char *name)
{
	struct node_entry *entry = node_find(engine, name);

	return !engine->nodes_listed || (entry && entry->node) || engine->nodes_unclear;
}

bool node_answers(struct engine *engine, const char *name)
{
	struct node_entry *entry = node_find(engine, name);

	return !engine->nodes_listed || (entry && entry->node && entry->node->ready);
}

/* So long after a node was removed nothing runs there any more; -1 = that is no proof. */
static int64_t removal_s(struct engine *engine, const char *name)
{
	struct node_entry *entry = node_find(engine, name);

	return entry && entry->removal_s ? entry->removal_s : REMOVAL_S;
}

static void removal_is_old(void *context)
{
	const struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct rank_state *state;
	char text[KUBE_NAME_MAX + 64];

	pthread_mutex_lock(&engine->lock);
	state = about_find(about, &attempt);
	if (state && state->nowhere && !node_is_there(engine, state->node)) {
		snprintf(text, sizeof(text), "node %s was removed from Kubernetes", state->node);
		rank_lost_pod(engine, attempt, about->rank, text);
	}
	pthread_mutex_unlock(&engine->lock);
}

/* A kubelet that still runs hears of the deletion, stops it and says so. Else the wait begins. */
static void rank_is_nowhere(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	int64_t wait_s = removal_s(engine, state->node);

	if (state->nowhere || state->over)
		return;
	state->nowhere = true;
	log_line(LOG_WARN, "Kubernetes: node %s was removed, and pod %s may still run there",
		 state->node, state->name);
	if (wait_s >= 0)
		kube_later_free(engine->client, wait_s * 1000, removal_is_old,
				about_create(engine, attempt->id, rank, state->uid));
	rank_stop(engine, attempt, rank);
}

/* --- what is seen of a pod ----------------------------------------------------------------------------------------- */

static bool is_collected(const struct kube_pod *pod)
{
	return strcmp(pod->disruption, "DeletionByPodGC") == 0;
}

/* Its phase alone may be the garbage collection's, which knows no more than that the node is gone. */
static bool has_kubelets_word(const struct kube_pod *pod)
{
	return pod_is_over(pod) && (!is_collected(pod) || pod->ended);
}

/* Somebody said that nothing of it runs. */
static bool is_given_up(struct engine *engine, const struct rank_state *state,
			const struct kube_pod *pod)
{
	struct node_entry *entry = node_find(engine, state->node);

	if (!state->bound)
		return false;
	if (pod->stopped[0])
		return true;
	if (pod->forced)
		return !is_collected(pod) || removal_s(engine, state->node) >= 0;
	return entry && entry->node && entry->node->off && !entry->node->ready;
}

static void tell_given_up(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			  const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];
	char text[KUBE_NAME_MAX + 64];

	if (pod->stopped[0])
		snprintf(text, sizeof(text), "a person says that it has stopped: %s", pod->stopped);
	else if (state->nowhere || is_collected(pod))
		snprintf(text, sizeof(text), "node %s was removed from Kubernetes", state->node);
	else if (pod->forced)
		snprintf(text, sizeof(text), "its pod was deleted by force in Kubernetes");
	else
		snprintf(text, sizeof(text), "node %s is out of service", state->node);
	rank_lost_pod(engine, attempt, rank, text);
}

/* It is there as it was made, or waits, or runs. */
static void rank_goes_on(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			 const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (!attempt->gang && will_never_run(pod)) {
		give_up(engine, attempt, rank, pod);
	} else if (!attempt->gang && pod->ended && pod->others_run && !pod->deleting) {
		state->main_ended = true;
		state->main_code = (int)pod->code;
		state->main_oom = is_oom(pod);
		rank_stop(engine, attempt, rank);
	} else if (attempt->stopping && !state->deleting && !pod->deleting) {
		rank_stop(engine, attempt, rank);
	} else if (attempt->released && !is_to_stop(attempt, state) && !state->bound &&
		   !state->binding && !pod->deleting && !pod->gated) {
		/* Released before it was seen, or held back by gates. */
		if (attempt->asks_masks)
			own_release(engine, attempt);
		else
			pod_bind(engine, attempt, rank);
	}
}

static void rank_is_not_bound_any_more(struct engine *engine, struct attempt_entry *attempt,
				       uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (state->failed)
		rank_over(engine, attempt, rank, state->failed_cause, state->failed_code, true,
			  state->failed_text);
	else
		rank_over(engine, attempt, rank,
			  is_to_stop(attempt, state) ? ENGINE_CAUSE_STOPPED : ENGINE_CAUSE_LOST, 0,
			  true,
			  is_to_stop(attempt, state) ? "it was stopped before it was started"
						     : "its pod was deleted in Kubernetes");
}

/* False: it is another one of its name, from before or by somebody else's hand. */
static bool rank_takes_pod(struct attempt_entry *attempt, uint32_t rank, const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (state->uid[0] && strcmp(state->uid, pod->uid) != 0)
		return false;
	if (!attempt->gang)
		attempt->job = pod->job;
	snprintf(state->namespace, sizeof(state->namespace), "%s", pod->namespace);
	snprintf(state->name, sizeof(state->name), "%s", pod->name);
	snprintf(state->uid, sizeof(state->uid), "%s", pod->uid);
	return true;
}

void rank_saw_unclear(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		      const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (!rank_takes_pod(attempt, rank, pod) || state->over)
		return;
	if (!state->unclear)
		log_line(LOG_WARN,
			 "Kubernetes: pod %s can't be read: what became of it is not known",
			 pod->name);
	state->unclear = true;
	attempt_look(engine, attempt);
}

void rank_saw_pod(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		  const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];
	bool was_unclear = state->unclear, first = !state->uid[0];

	if (!rank_takes_pod(attempt, rank, pod))
		return;
	if (pod->node[0] || !attempt->gang)
		snprintf(state->node, sizeof(state->node), "%s",
			 pod->node[0] ? pod->node : pod->meant_for);
	state->bound |= pod->node[0] != '\0';
	state->unclear = false;
	attempt->changes |= pod->changes && !attempt->gang;
	if (!attempt->gang) /* of pods that others made the note says nothing: no shepherd of ours is in them */
		lease_of_pod(state, pod);
	claims_of_rank(engine, attempt, rank);
	if (attempt->gang && (first || state->asked) && !attempt->described &&
	    (state->bound || !state->claims))
		rank_report(engine, attempt, rank, ENGINE_READY);
	state->asked &= !attempt->gang;
	if (state->over) {
		/* Made by a request that was carried out late. */
		if (!attempt->gang && !pod_is_over(pod) && !pod->deleting)
			pod_delete(engine, pod->namespace, pod->name, pod->uid, GRACE_USUAL_S);
		if (state->let_go && pod->finalizer)
			pod_let_go(engine, pod->namespace, pod->name, pod->uid);
		return;
	}
	/* One that is bound had all that it needs; of others `start` says so, which comes again after a restart. */
	if (state->bound && (!attempt->described || attempt->changes) && !state->ready &&
	    !attempt->gang) {
		state->ready = true;
		rank_report(engine, attempt, rank, ENGINE_READY);
	}
	if (!state->started && (pod->running || pod->ended)) {
		state->started = true;
		rank_report(engine, attempt, rank, ENGINE_STARTED);
		if (attempt->gang)
			least_began(engine, state);
	}
	if (has_kubelets_word(pod))
		tell_end(engine, attempt, rank, pod);
	else if (is_given_up(engine, state, pod))
		tell_given_up(engine, attempt, rank, pod);
	else if (state->bound && !node_is_there(engine, state->node))
		rank_is_nowhere(engine, attempt, rank);
	else if (pod->deleting && !state->bound)
		rank_is_not_bound_any_more(engine, attempt, rank);
	else
		rank_goes_on(engine, attempt, rank, pod);
	if (was_unclear || attempt->unreachable || !attempt->reach_told || state->nowhere ||
	    (state->bound && !node_answers(engine, state->node)))
		attempt_look(engine, attempt);
}

void rank_lost_pod(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		   const char *text)
{
	const bool asked = is_to_stop(attempt, &attempt->ranks[rank]);

	rank_over(engine, attempt, rank, asked ? ENGINE_CAUSE_STOPPED : ENGINE_CAUSE_LOST, 0,
		  !attempt->ranks[rank].bound, text);
}

/* --- silence -------------------------------------------------------------------------------------------------------- */

/* A rank from which no word comes, so that nothing says whether it runs. */
bool rank_is_silent(struct engine *engine, const struct rank_state *state)
{
	if (state->over)
		return false;
	return state->unclear || (state->bound && !node_answers(engine, state->node));
}

static void silence_text(struct engine *engine, const struct rank_state *state, char out[256])
{
	if (state->unclear)
		snprintf(out, 256, "the API server's words on its pod %.100s can't be read",
			 state->name);
	else if (!node_is_there(engine, state->node))
		snprintf(
			out, 256,
			"node %.100s was removed from Kubernetes: nothing says yet that its tasks have stopped",
			state->node);
	else
		snprintf(out, 256,
			 "node %.100s is not ready: nothing says whether its tasks still run",
			 state->node);
}

void attempt_look(struct engine *engine, struct attempt_entry *attempt)
{
	struct engine_fact fact = { .kind = ENGINE_REACHABLE,
				    .attempt = attempt->id,
				    .time_ms = clock_wall_ms() };

	if (!engine->pods_listed || !engine->nodes_listed)
		return; /* looked at then */
	snprintf(fact.text, sizeof(fact.text), "the nodes of its tasks answer");
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		if (!rank_is_silent(engine, &attempt->ranks[rank]))
			continue;
		lease_watch(engine, attempt, rank);
		if (fact.kind == ENGINE_UNREACHABLE)
			continue;
		fact.kind = ENGINE_UNREACHABLE;
		silence_text(engine, &attempt->ranks[rank], fact.text);
	}
	if (attempt->reach_told && attempt->unreachable == (fact.kind == ENGINE_UNREACHABLE))
		return;
	attempt->reach_told = true;
	attempt->unreachable = fact.kind == ENGINE_UNREACHABLE;
	tell(engine, &fact);
	if (!attempt->unreachable)
		rank_ends_tell(engine, attempt);
}

void ranks_saw_node(struct engine *engine, const char *name)
{
	struct node_entry *entry = node_find(engine, name);
	struct attempt_entry *attempt, *next;
	bool there = node_is_there(engine, name);
	bool off = entry && entry->node && entry->node->off && !entry->node->ready;

	HASH_ITER(hh, engine->attempts, attempt, next)
	{
		bool concerns = false;

		for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
			struct rank_state *state = &attempt->ranks[rank];

			if (!state->bound || state->over || strcmp(state->node, name) != 0)
				continue;
			concerns = true;
			if (!there)
				rank_is_nowhere(engine, attempt, rank);
			else if (off)
				tell_given_up(engine, attempt, rank, &(struct kube_pod){ 0 });
			else
				state->nowhere = false;
		}
		if (concerns)
			attempt_look(engine, attempt);
	}
}
