/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From pods to facts. A rank is ready when its pod is there and all that it needs; it has started when its container runs; it is over when
 * the pod says so with its phase, which the kubelet sets when nothing of it is left. A pod that was never bound and is being deleted is over
 * too: the API server binds no such pod. So is everything on a node that was removed from the cluster, as whoever removes it says.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/kubernetes/cluster.h"

static void tell(struct engine *engine, const struct engine_fact *fact)
{
	engine->options.report(engine->options.context, fact);
}

void rank_report(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		 enum engine_fact_kind kind)
{
	struct engine_fact fact = {
		.kind = kind, .attempt = attempt->id, .rank = rank, .time_ms = clock_wall_ms()
	};

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
	snprintf(fact.text, sizeof(fact.text), "%.255s", text);
	tell(engine, &fact);
}

/* Its pod has ended: what does Kubernetes say of it? */
static void tell_end(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		     const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];
	char text[KUBE_TEXT_MAX + KUBE_WORD_MAX + 8] = "";

	if (state->failed) {
		rank_over(engine, attempt, rank, state->failed_cause, state->failed_code,
			  state->failed_never_ran, state->failed_text);
	} else if (attempt->stopping && !(pod->ended && !pod->code && !pod->deleting)) {
		/* What had ended well before anybody deleted it has ended well. */
		rank_over(engine, attempt, rank, ENGINE_CAUSE_STOPPED, (int)pod->code,
			  !state->started && !pod->ended, "");
	} else if (strcmp(pod->ended_reason, "OOMKilled") == 0) {
		rank_over(engine, attempt, rank, ENGINE_CAUSE_MEMORY, (int)pod->code, false,
			  "killed for memory by the kernel of its node");
	} else if (pod->disruption[0]) {
		snprintf(text, sizeof(text), "Kubernetes took its pod away: %s", pod->disruption);
		rank_over(engine, attempt, rank, ENGINE_CAUSE_LOST, 0, false, text);
	} else if (pod->deleting) {
		rank_over(engine, attempt, rank, ENGINE_CAUSE_LOST, 0, false,
			  "its pod was deleted in Kubernetes");
	} else if (pod->ended) {
		/* Of pods that others made it may be another container that failed. */
		rank_over(engine, attempt, rank, ENGINE_CAUSE_EXIT,
			  attempt->gang && pod->phase == POD_SUCCEEDED ? 0
			  : attempt->gang && pod->phase == POD_FAILED && !pod->code
				  ? 1
				  : (int)pod->code,
			  false, "");
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

static void lost_with_node(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	char text[KUBE_NAME_MAX + 64];

	attempt->ranks[rank].nowhere = true;
	snprintf(text, sizeof(text), "node %s was removed from Kubernetes",
		 attempt->ranks[rank].node);
	rank_lost_pod(engine, attempt, rank, text);
}

void rank_saw_pod(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		  const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];
	bool first = !state->uid[0];

	if (!first && strcmp(state->uid, pod->uid) != 0)
		return; /* another one of its name, from before or by somebody else's hand */
	if (!attempt->gang)
		attempt->job = pod->job;
	snprintf(state->namespace, sizeof(state->namespace), "%s", pod->namespace);
	snprintf(state->name, sizeof(state->name), "%s", pod->name);
	snprintf(state->uid, sizeof(state->uid), "%s", pod->uid);
	if (pod->node[0] || !attempt->gang)
		snprintf(state->node, sizeof(state->node), "%s",
			 pod->node[0] ? pod->node : pod->meant_for);
	state->bound |= pod->node[0] != '\0';
	if ((first || (attempt->gang && state->asked)) && !attempt->described)
		rank_report(engine, attempt, rank, ENGINE_READY);
	state->asked &= !attempt->gang;
	if (state->over)
		return;
	if (!state->started && (pod->running || pod->ended || pod->phase == POD_RUNNING)) {
		state->started = true;
		rank_report(engine, attempt, rank, ENGINE_STARTED);
	}
	if (pod_is_over(pod)) {
		tell_end(engine, attempt, rank, pod);
	} else if (pod->node[0] && !node_is_there(engine, pod->node)) {
		lost_with_node(engine, attempt, rank);
	} else if (pod->deleting && !state->bound) {
		if (state->failed)
			rank_over(engine, attempt, rank, state->failed_cause, state->failed_code,
				  true, state->failed_text);
		else
			rank_over(engine, attempt, rank,
				  attempt->stopping ? ENGINE_CAUSE_STOPPED : ENGINE_CAUSE_LOST, 0,
				  true,
				  attempt->stopping ? "it was stopped before it was started"
						    : "its pod was deleted in Kubernetes");
	} else if (!attempt->gang && will_never_run(pod)) {
		give_up(engine, attempt, rank, pod);
	} else if (attempt->stopping && !state->deleting && !pod->deleting) {
		rank_stop(engine, attempt, rank);
	} else if (attempt->released && !attempt->stopping && !state->bound && !state->binding &&
		   !pod->deleting) {
		pod_bind(engine, attempt, rank); /* released before it was seen */
	}
}

void rank_lost_pod(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		   const char *text)
{
	rank_over(engine, attempt, rank,
		  attempt->stopping ? ENGINE_CAUSE_STOPPED : ENGINE_CAUSE_LOST, 0,
		  !attempt->ranks[rank].bound, text);
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

bool node_is_there(struct engine *engine, const char *name)
{
	struct node_entry *entry = NULL;

	HASH_FIND_STR(engine->nodes, name, entry);
	return !engine->nodes_listed || (entry && entry->node);
}

static bool node_answers(struct engine *engine, const char *name)
{
	struct node_entry *entry = NULL;

	HASH_FIND_STR(engine->nodes, name, entry);
	return entry && entry->node && entry->node->ready;
}

/* Whether a rank of it may run where no word comes from, other than on the node at hand. */
static bool is_elsewhere_silent(struct engine *engine, const struct attempt_entry *attempt,
				const char *except)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct rank_state *state = &attempt->ranks[rank];

		if (state->bound && !state->over && strcmp(state->node, except) != 0 &&
		    !node_answers(engine, state->node))
			return true;
	}
	return false;
}

static void attempt_is_silent(struct engine *engine, struct attempt_entry *attempt, bool silent,
			      const char *node)
{
	struct engine_fact fact = { .kind = silent ? ENGINE_UNREACHABLE : ENGINE_REACHABLE,
				    .attempt = attempt->id,
				    .time_ms = clock_wall_ms() };

	if (attempt->unreachable == silent)
		return;
	attempt->unreachable = silent;
	snprintf(fact.text, sizeof(fact.text),
		 silent ? "node %s is not ready: nothing says whether its tasks still run"
			: "node %s is ready again",
		 node);
	tell(engine, &fact);
}

void attempt_saw_node(struct engine *engine, const char *name, bool ready, bool gone)
{
	struct attempt_entry *attempt, *next;

	HASH_ITER(hh, engine->attempts, attempt, next)
	{
		bool concerns = false;

		for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
			struct rank_state *state = &attempt->ranks[rank];

			if (!state->bound || state->over || strcmp(state->node, name) != 0)
				continue;
			concerns = true;
			if (gone)
				lost_with_node(engine, attempt, rank);
		}
		if (concerns && !gone)
			attempt_is_silent(engine, attempt,
					  !ready || is_elsewhere_silent(engine, attempt, name),
					  name);
	}
}
