/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests about pods. Each may be carried out twice or without an answer: a pod is made under a name that says which rank of which attempt
 * it is, so "there is one already" is looked at; binding, deletion and letting go name the pod's uid.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/gangs/gangs.h"

enum { PART_SECRET, PART_SERVICE };

struct about *about_create(struct engine *engine, uint64_t attempt, uint32_t rank, const char *uid)
{
	struct about *about = calloc(1, sizeof(*about));

	CHECK(about);
	about->engine = engine;
	about->attempt = attempt;
	about->rank = rank;
	snprintf(about->uid, sizeof(about->uid), "%s", uid);
	return about;
}

/* The message of a refusal, else the answer's number. */
void kube_problem(const struct kube_answer *answer, char out[256])
{
	struct json_slice key, text = { 0 };
	struct json_reader r;

	snprintf(out, 256, "status %d", answer->status);
	pull_init(&r, answer->body, answer->size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "message") && pull_peek(&r) == PULL_STRING)
			pull_string(&r, &text);
		else
			pull_skip(&r);
	}
	if (!r.problem && text.data && !text.escaped)
		snprintf(out, 256, "%.*s", text.size > 240 ? 240 : (int)text.size, text.data);
	else if (!r.problem && text.data && text.size < 255)
		pull_copy(&r, &text, out, 256);
}

static bool is_done(int status)
{
	return status >= 200 && status < 300;
}

/* --- what belongs to an attempt ------------------------------------------------------------------------------ */

static void ready_if_all(struct engine *engine, struct attempt_entry *attempt)
{
	if (attempt->parts_pending || attempt->parts[PART_SECRET] || attempt->parts[PART_SERVICE])
		return;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		if (attempt->ranks[rank].uid[0] && !attempt->ranks[rank].over)
			rank_report(engine, attempt, rank, ENGINE_READY);
}

static void part_came(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	char text[256];

	pthread_mutex_lock(&engine->lock);
	attempt = answer->status ? live_find(engine, about->attempt) : NULL;
	if (attempt && attempt->parts_pending)
		attempt->parts_pending--;
	if (attempt && !is_done(answer->status) && answer->status != 409) {
		kube_problem(answer, text);
		for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
			struct rank_state *state = &attempt->ranks[rank];

			state->failed = state->failed_never_ran = true;
			state->failed_cause = ENGINE_CAUSE_START;
			snprintf(state->failed_text, sizeof(state->failed_text), "%.200s", text);
			rank_stop(engine, attempt, rank);
		}
	} else if (attempt) {
		ready_if_all(engine, attempt);
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

void parts_make(struct engine *engine, struct attempt_entry *attempt)
{
	static const char *const folder[] = { "secrets", "services" };
	char pod[MANIFEST_NAME_MAX];

	if (!attempt->ranks[0].uid[0])
		return;
	manifest_pod_name(attempt->job, attempt->id, 0, pod);
	for (int i = PART_SECRET; i <= PART_SERVICE; i++) {
		AUTO_BUF path = BUF_INIT;
		struct buf body = BUF_INIT;

		if (!attempt->parts[i])
			continue;
		manifest_owned(attempt->parts[i], pod, attempt->ranks[0].uid, &body);
		free(attempt->parts[i]);
		attempt->parts[i] = NULL;
		attempt->parts_pending++;
		buf_addf(&path, "/api/v1/namespaces/%s/%s", engine->site.namespace, folder[i]);
		kube_call(engine->client,
			  &(struct kube_request){
				  .method = "POST",
				  .path = buf_text(&path),
				  .body = &body,
				  .done = part_came,
				  .context = about_create(engine, attempt->id, 0, "") });
	}
	ready_if_all(engine, attempt);
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static void pod_is_made(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];

	state->asked = false;
	rank_saw_pod(engine, attempt, rank, pod);
	if (attempt->stopping || state->failed) {
		rank_stop(engine, attempt, rank);
		return;
	}
	parts_make(engine, attempt);
}

static void pod_looked_at(void *context, const struct kube_answer *answer);

void rank_path(const struct rank_state *state, const char *behind, struct buf *out)
{
	buf_addf(out, "/api/v1/namespaces/%s/pods/%s%s", state->namespace, state->name, behind);
}

static void pod_look(struct engine *engine, const struct rank_state *state, struct about *about)
{
	AUTO_BUF path = BUF_INIT;

	rank_path(state, "", &path);
	kube_call(engine->client, &(struct kube_request){ .method = "GET",
							  .path = buf_text(&path),
							  .done = pod_looked_at,
							  .context = about });
}

/* A binding was refused, and the pod stands there as before. */
static bool is_to_bind_again(const struct attempt_entry *attempt, const struct rank_state *state,
			     const struct kube_pod *pod)
{
	return state->binding && !state->bound && !state->over && !attempt->stopping &&
	       !pod->deleting;
}

static void pod_was_found(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			  const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (state->uid[0] && strcmp(state->uid, pod->uid) != 0) {
		rank_lost_pod(engine, attempt, rank, "its pod was removed from Kubernetes");
		return;
	}
	pod_is_made(engine, attempt, rank, pod);
	if (is_to_bind_again(attempt, state, pod))
		pod_bind(engine, attempt, rank);
}

/* There was one of this name: is it the rank's own, made by a request whose answer got lost? */
static void pod_looked_at(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct kube_pod pod;
	bool read = answer->status == 200 && pod_read(answer->body, answer->size, &pod, NULL) == 0;

	pthread_mutex_lock(&engine->lock);
	attempt = answer->status ? live_find(engine, about->attempt) : NULL;
	if (!attempt)
		;
	else if (read && strcmp(pod.instance, engine->instance) == 0 &&
		 pod.attempt == about->attempt && pod.rank == about->rank)
		pod_was_found(engine, attempt, about->rank, &pod);
	else
		rank_over(engine, attempt, about->rank, ENGINE_CAUSE_START, 0, true,
			  read ? "there is a pod of its name already that is not Fairlead's"
			       : "its pod was removed as soon as it was made");
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

static void pod_came(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct kube_pod pod;
	char text[256];

	pthread_mutex_lock(&engine->lock);
	attempt = answer->status ? live_find(engine, about->attempt) : NULL;
	if (attempt && answer->status == 409) {
		pod_look(engine, &attempt->ranks[about->rank], about);
		about = NULL;
	} else if (attempt && is_done(answer->status) &&
		   pod_read(answer->body, answer->size, &pod, NULL) == 0) {
		pod_is_made(engine, attempt, about->rank, &pod);
	} else if (attempt) {
		kube_problem(answer, text);
		rank_over(engine, attempt, about->rank, ENGINE_CAUSE_START, 0, true, text);
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

void pod_make(struct engine *engine, const struct engine_start *start, uint32_t rank,
	      struct arena *arena)
{
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	manifest_pod(&engine->site, start, rank, arena, &body);
	buf_addf(&path, "/api/v1/namespaces/%s/pods", engine->site.namespace);
	kube_call(engine->client,
		  &(struct kube_request){ .method = "POST",
					  .path = buf_text(&path),
					  .body = &body,
					  .done = pod_came,
					  .context =
						  about_create(engine, start->attempt, rank, "") });
}

/* --- binding -------------------------------------------------------------------------------------------------------- */

static void pod_was_bound(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct rank_state *state;
	char text[256];

	pthread_mutex_lock(&engine->lock);
	attempt = answer->status ? live_find(engine, about->attempt) : NULL;
	state = attempt ? &attempt->ranks[about->rank] : NULL;
	if (!state || strcmp(state->uid, about->uid) != 0) {
		;
	} else if (is_done(answer->status)) {
		state->bound = true;
	} else if (!state->bound && !state->over && !attempt->stopping) {
		/* Refused: it is being deleted, or it is bound by a request whose answer got lost. The pod itself says which. */
		kube_problem(answer, text);
		if (answer->status == 409 || answer->status == 404) {
			pod_look(engine, state, about);
			about = NULL;
		} else {
			state->failed = state->failed_never_ran = true;
			state->failed_cause = ENGINE_CAUSE_START;
			snprintf(state->failed_text, sizeof(state->failed_text), "%.200s", text);
			rank_stop(engine, attempt, about->rank);
		}
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

void pod_bind(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	if (attempt->gang) {
		gang_bind(engine, attempt, rank);
		return;
	}
	/* The API server binds to any name. */
	if (!node_is_there(engine, state->node)) {
		state->failed = state->failed_never_ran = true;
		state->failed_cause = ENGINE_CAUSE_LOST;
		snprintf(state->failed_text, sizeof(state->failed_text),
			 "node %.100s was removed from Kubernetes", state->node);
		rank_stop(engine, attempt, rank);
		return;
	}
	state->binding = true;
	manifest_binding(state->namespace, state->name, state->uid, state->node, &body);
	rank_path(state, "/binding", &path);
	kube_call(engine->client,
		  &(struct kube_request){
			  .method = "POST",
			  .path = buf_text(&path),
			  .body = &body,
			  .done = pod_was_bound,
			  .context = about_create(engine, attempt->id, rank, state->uid) });
}

/* --- ending ------------------------------------------------------------------------------------------------------------ */

static void noted(void *context, const struct kube_answer *answer)
{
	char text[256];

	(void)context;
	if (!answer->status || is_done(answer->status) || answer->status == 404 ||
	    answer->status == 409)
		return;
	kube_problem(answer, text);
	log_line(LOG_WARN, "Kubernetes: %s", text);
}

void pod_delete(struct engine *engine, const char *namespace, const char *name, const char *uid,
		int64_t grace_s)
{
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	manifest_delete(uid, grace_s, &body);
	buf_addf(&path, "/api/v1/namespaces/%s/pods/%s", namespace, name);
	kube_call(engine->client, &(struct kube_request){ .method = "DELETE",
							  .path = buf_text(&path),
							  .body = &body,
							  .done = noted });
}

void pod_let_go(struct engine *engine, const char *namespace, const char *name, const char *uid)
{
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	manifest_let_go(uid, &body);
	buf_addf(&path, "/api/v1/namespaces/%s/pods/%s", namespace, name);
	kube_call(engine->client,
		  &(struct kube_request){ .method = "PATCH",
					  .path = buf_text(&path),
					  .type = "application/strategic-merge-patch+json",
					  .body = &body,
					  .done = noted });
}

void rank_stop(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (attempt->gang) {
		gang_rank_stop(engine, attempt, rank);
		return;
	}
	if (state->over || state->deleting || state->asked)
		return; /* asked: its pod is deleted when the answer comes */
	/* Of before a restart, and the API server has not yet said what there is: it may run. Its pod is stopped when it is seen. */
	if (!state->uid[0] && !attempt->described && !engine->pods_listed)
		return;
	if (!state->uid[0]) {
		rank_over(engine, attempt, rank,
			  state->failed ? state->failed_cause : ENGINE_CAUSE_STOPPED, 0, true,
			  state->failed ? state->failed_text
					: "it was stopped before it was started");
		return;
	}
	state->deleting = true;
	/* 0 would say that nobody need wait for the kubelet. */
	pod_delete(engine, state->namespace, state->name, state->uid,
		   attempt->grace_s > 0 ? attempt->grace_s : 1);
}
