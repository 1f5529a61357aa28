/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests about pods. Each may be carried out twice or without an answer: a pod is made under a name that says which rank of which attempt
 * it is, so "there is one already" is looked at; binding, deletion and letting go name the pod's uid.
 *
 * A refusal that may pass is no end. What can't be looked at is looked at again; what can't be deleted is asked to be deleted again; only "not
 * found" says that something is not there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/overlay.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/refusal.h"
#include "engine/kubernetes/rights.h"

enum {
	PART_SECRET,
	PART_SERVICE,
	AGAIN_MS = 500,
	AGAIN_MAX_MS = 15000,
	ERRAND_MOST = 12,
	PARKED_MAX = 100000,
	PROBE_MS = 10000,
	PROBE_COUNT = 4
};

struct about *about_create(struct engine *engine, uint64_t attempt, uint32_t rank, const char *uid)
{
	const struct attempt_entry *entry = live_find(engine, attempt);
	struct about *about = calloc(1, sizeof(*about));

	CHECK(about);
	about->engine = engine;
	about->attempt = attempt;
	about->rank = rank;
	about->launch = entry && rank < entry->tasks ? entry->ranks[rank].launch : 0;
	snprintf(about->uid, sizeof(about->uid), "%s", uid);
	return about;
}

/* The message of a refusal, else the answer's number. */
void kube_problem(const struct kube_answer *answer, char out[256])
{
	struct kube_refusal refusal;

	refusal_read(answer, &refusal);
	memcpy(out, refusal.text, sizeof(refusal.text));
}

struct rank_state *about_find(const struct about *about, struct attempt_entry **ret)
{
	struct rank_state *state;

	*ret = live_find(about->engine, about->attempt);
	if (!*ret || about->rank >= (*ret)->tasks)
		return NULL;
	state = &(*ret)->ranks[about->rank];
	return state->launch == about->launch && strcmp(state->uid, about->uid) == 0 ? state : NULL;
}

/* The attempt while that start of the rank is its newest: of one whose pod was not seen yet there is no more to go by. */
static struct attempt_entry *about_attempt(const struct about *about)
{
	struct attempt_entry *attempt = live_find(about->engine, about->attempt);

	if (!attempt || about->rank >= attempt->tasks ||
	    attempt->ranks[about->rank].launch != about->launch)
		return NULL;
	return attempt;
}

int64_t again_ms(uint32_t refused)
{
	int64_t pause_ms = refused < 6 ? (int64_t)AGAIN_MS << refused : AGAIN_MAX_MS;

	return pause_ms < AGAIN_MAX_MS ? pause_ms : AGAIN_MAX_MS;
}

/* Whether its pods are still to be made. A server that fails for ever must not keep a job from being cancelled. */
static bool is_wanted(const struct about *about)
{
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	bool wanted;

	pthread_mutex_lock(&engine->lock);
	attempt = about_attempt(about);
	wanted = attempt && !attempt->stopping && !attempt->ranks[about->rank].failed;
	pthread_mutex_unlock(&engine->lock);
	return wanted;
}

/* Of what is made. A conflict that is none of names (with the count of a quota, say) passes. */
static enum kube_next making(void *context, const struct kube_answer *answer)
{
	struct kube_refusal refusal;

	if (answer->status == 409) {
		refusal_read(answer, &refusal);
		if (refusal_is(&refusal, "AlreadyExists"))
			return KUBE_TELL;
	} else if (!kube_is_passing(answer->status) && !right_is_lacking(answer)) {
		return KUBE_TELL;
	}
	return is_wanted(context) ? KUBE_AGAIN : KUBE_TELL;
}

static void rank_fail(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		      const char *text)
{
	struct rank_state *state = &attempt->ranks[rank];

	state->failed = state->failed_never_ran = true;
	state->failed_cause = ENGINE_CAUSE_START;
	snprintf(state->failed_text, sizeof(state->failed_text), "%.200s", text);
	rank_stop(engine, attempt, rank);
}

/* --- what belongs to an attempt ------------------------------------------------------------------------------ */

static void ready_if_all(struct engine *engine, struct attempt_entry *attempt)
{
	if (attempt->parts_pending || attempt->parts[PART_SECRET] || attempt->parts[PART_SERVICE])
		return;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		struct rank_state *state = &attempt->ranks[rank];

		if (!state->uid[0] || state->over || state->ready || state->claims_busy)
			continue;
		if (state->claims && !claims_are_done(engine, state)) {
			if (!attempt->stopping && !state->failed)
				claims_want(engine, attempt, rank);
			continue;
		}
		state->ready = true;
		rank_report(engine, attempt, rank, ENGINE_READY);
	}
}

static void part_came(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct kube_refusal refusal;

	pthread_mutex_lock(&engine->lock);
	attempt = answer->status ? live_find(engine, about->attempt) : NULL;
	if (attempt && (status_is_done(answer->status) || answer->status == 409)) {
		attempt->parts_pending -= attempt->parts_pending > 0;
		ready_if_all(engine, attempt);
	} else if (attempt) {
		refusal_read(answer, &refusal);
		for (uint32_t rank = 0; rank < attempt->tasks; rank++)
			rank_fail(engine, attempt, rank, refusal.text);
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

static const char *const part_folder[] = { "secrets", "services" };

void parts_make(struct engine *engine, struct attempt_entry *attempt)
{
	const bool makes = attempt->parts[PART_SECRET] || attempt->parts[PART_SERVICE];
	char pod[MANIFEST_NAME_MAX];

	if (makes && !attempt->ranks[0].uid[0])
		return;
	manifest_pod_name(&engine->site, attempt->job, attempt->id, 0, 0, pod);
	for (int i = PART_SECRET; i <= PART_SERVICE; i++) {
		AUTO_BUF path = BUF_INIT;
		struct buf body = BUF_INIT;

		if (!attempt->parts[i])
			continue;
		manifest_owned(attempt->parts[i], pod, attempt->ranks[0].uid, &body);
		free(attempt->parts[i]);
		attempt->parts[i] = NULL;
		attempt->parts_pending++;
		buf_addf(&path, "/api/v1/namespaces/%s/%s", engine->site.namespace, part_folder[i]);
		kube_call(engine->client,
			  &(struct kube_request){
				  .method = "POST",
				  .path = buf_text(&path),
				  .body = &body,
				  .judge = making,
				  .done = part_came,
				  .context = about_create(engine, attempt->id, 0, "") });
	}
	ready_if_all(engine, attempt);
}

/* --- what nobody waits for -------------------------------------------------------------------------------------------- */

/* It names its object by uid or by a name that is never given again, so it may be asked for late and often. */
struct errand {
	struct engine *engine;
	struct errand *next; /* of those that lack a right */
	const char *method, *type; /* static */
	uint32_t refused; /* in a row */
	size_t body_at, size; /* of all; body_at 0 = none */
	char text[]; /* path, body */
};

static void errand_answered(void *context, const struct kube_answer *answer);

static void errand_send(struct errand *errand)
{
	struct buf body = BUF_INIT;

	if (errand->body_at)
		buf_adds(&body, errand->text + errand->body_at);
	kube_call(errand->engine->client,
		  &(struct kube_request){ .method = errand->method,
					  .path = errand->text,
					  .type = errand->type,
					  .body = errand->body_at ? &body : NULL,
					  .done = errand_answered,
					  .context = errand });
}

/* The timer frees its own. */
static void errand_again(void *context)
{
	const struct errand *errand = context;
	struct errand *again = malloc(errand->size);

	CHECK(again);
	memcpy(again, errand, errand->size);
	errand_send(again);
}

static struct errand *errands_take(struct engine *engine)
{
	struct errand *errand = engine->parked;

	if (!errand)
		return NULL;
	engine->parked = errand->next;
	if (!engine->parked)
		engine->parked_last = NULL;
	engine->parked_count--;
	return errand;
}

/* Some of those that lack a right: whether it has come. */
static void errands_probe(void *context)
{
	struct engine *engine = context;
	struct errand *errand;

	pthread_mutex_lock(&engine->lock);
	engine->probing = false;
	for (int i = 0; i < PROBE_COUNT && (errand = errands_take(engine)); i++)
		errand_send(errand);
	pthread_mutex_unlock(&engine->lock);
}

/* It lacks a right, and waits until somebody gives it. */
static void errand_park(struct errand *errand)
{
	struct engine *engine = errand->engine;

	pthread_mutex_lock(&engine->lock);
	if (engine->parked_count >= PARKED_MAX)
		free(errands_take(engine)); /* the oldest: a list of pods shows what is left */
	errand->next = NULL;
	if (engine->parked_last)
		engine->parked_last->next = errand;
	else
		engine->parked = errand;
	engine->parked_last = errand;
	engine->parked_count++;
	if (!engine->probing)
		kube_later(engine->client, PROBE_MS, errands_probe, engine);
	engine->probing = true;
	pthread_mutex_unlock(&engine->lock);
}

void errands_go_on(struct engine *engine)
{
	struct errand *errand;

	while ((errand = errands_take(engine)))
		errand_send(errand);
}

void errands_deinit(struct engine *engine)
{
	struct errand *errand;

	while ((errand = errands_take(engine)))
		free(errand);
}

/* 404, 422: it is gone, or another one of its name is there. What else is refused may pass: a change at the same moment (409), say. */
static void errand_answered(void *context, const struct kube_answer *answer)
{
	struct errand *errand = context;
	struct kube_refusal refusal;

	if (!answer->status || status_is_done(answer->status) || answer->status == 404 ||
	    answer->status == 422) {
		free(errand);
	} else if (right_is_lacking(answer)) {
		errand_park(errand);
	} else if (errand->refused < ERRAND_MOST) {
		kube_later_free(errand->engine->client, again_ms(errand->refused++), errand_again,
				errand);
	} else {
		/* A uid that does not fit is a conflict, too: then there is nothing left to do. The next list shows what is. */
		refusal_read(answer, &refusal);
		if (answer->status != 409)
			log_line(LOG_WARN, "Kubernetes: %s", refusal.text);
		free(errand);
	}
}

/* The body is left empty; NULL = none. */
static void errand_give(struct engine *engine, const char *method, const char *type,
			const struct buf *path, struct buf *body)
{
	size_t path_size = path->size + 1, size = path_size + (body ? body->size + 1 : 0);
	struct errand *errand = calloc(1, sizeof(*errand) + size);

	CHECK(errand);
	errand->engine = engine;
	errand->method = method;
	errand->type = type;
	errand->size = sizeof(*errand) + size;
	memcpy(errand->text, buf_text(path), path_size);
	if (body) {
		errand->body_at = path_size;
		memcpy(errand->text + path_size, buf_text(body), body->size + 1);
		buf_deinit(body);
	}
	errand_send(errand);
}

/* They belong to the pod of rank 0, which may be kept for its output: secrets are not kept with it. */
void parts_remove(struct engine *engine, const struct attempt_entry *attempt)
{
	char name[MANIFEST_NAME_MAX];

	if (!attempt->job)
		return; /* nothing of it was made or seen */
	manifest_attempt_name(&engine->site, attempt->job, attempt->id, name);
	for (int i = PART_SECRET; i <= PART_SERVICE; i++) {
		AUTO_BUF path = BUF_INIT;

		if (attempt->described && !attempt->had[i])
			continue;
		buf_addf(&path, "/api/v1/namespaces/%s/%s/%s", engine->site.namespace,
			 part_folder[i], name);
		errand_give(engine, "DELETE", NULL, &path, NULL);
	}
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static void pod_is_made(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];

	state->asked = false;
	rank_saw_pod(engine, attempt, rank, pod);
	if (attempt->stopping || state->failed || (state->leaves && !state->started)) {
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

/* The caller holds the lock, and gives `about` away. */
static void pod_look(struct engine *engine, const struct rank_state *state, struct about *about)
{
	AUTO_BUF path = BUF_INIT;

	rank_path(state, "", &path);
	kube_call(engine->client, &(struct kube_request){ .method = "GET",
							  .path = buf_text(&path),
							  .done = pod_looked_at,
							  .context = about });
}

void rank_look(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	const struct rank_state *state = &attempt->ranks[rank];

	pod_look(engine, state, about_create(engine, attempt->id, rank, state->uid));
}

static void look_again(void *context)
{
	const struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;

	pthread_mutex_lock(&engine->lock);
	attempt = about_attempt(about);
	if (attempt && !attempt->ranks[about->rank].over)
		pod_look(engine, &attempt->ranks[about->rank],
			 about_create(engine, about->attempt, about->rank, about->uid));
	pthread_mutex_unlock(&engine->lock);
}

static void bind_again(void *context)
{
	const struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct rank_state *state;

	pthread_mutex_lock(&engine->lock);
	state = about_find(about, &attempt);
	if (state && state->binding && !state->bound && !state->over && !attempt->stopping &&
	    !state->leaves)
		pod_bind(engine, attempt, about->rank);
	pthread_mutex_unlock(&engine->lock);
}

/* A binding was refused, and the pod stands there as before. */
static void bind_later(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		       const struct kube_pod *pod)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (!state->binding || state->bound || state->over || attempt->stopping || pod->deleting)
		return;
	if (pod->gated) {
		state->binding = false; /* the watch tells when its gates are gone */
		return;
	}
	kube_later_free(engine->client, again_ms(state->refused++), bind_again,
			about_create(engine, attempt->id, rank, state->uid));
}

static void pod_was_found(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			  const struct kube_pod *pod)
{
	pod_is_made(engine, attempt, rank, pod);
	bind_later(engine, attempt, rank, pod);
}

/* Of its name, and made anew by somebody. */
static bool is_another(const struct rank_state *state, const struct kube_pod *pod)
{
	return state->uid[0] && strcmp(state->uid, pod->uid) != 0;
}

static void pod_is_not_there(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];

	state->asked = false;
	if (state->uid[0])
		rank_lost_pod(engine, attempt, rank, "its pod was removed from Kubernetes");
	else if (attempt->stopping || state->failed)
		rank_stop(engine, attempt, rank);
	else
		rank_over(engine, attempt, rank, ENGINE_CAUSE_START, 0, true,
			  "its pod was removed as soon as it was made");
}

/* There was one of this name: is it the rank's own, made by a request whose answer got lost? */
static void pod_looked_at(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct kube_refusal refusal;
	struct kube_pod pod;
	bool read = answer->status == 200 &&
		    pod_read(answer->body, answer->size, &pod, NULL) == 0 && !pod.unclear;

	pthread_mutex_lock(&engine->lock);
	attempt = answer->status ? about_attempt(about) : NULL;
	if (!attempt) {
		;
	} else if (answer->status == 404) {
		pod_is_not_there(engine, attempt, about->rank);
	} else if (read && is_another(&attempt->ranks[about->rank], &pod)) {
		rank_lost_pod(engine, attempt, about->rank, "its pod was removed from Kubernetes");
	} else if (!read) {
		/* Nothing is known: an account whose rights are being changed, say. */
		refusal_read(answer, &refusal);
		log_line(LOG_WARN, "Kubernetes: pod %s can't be looked at: %s",
			 attempt->ranks[about->rank].name, refusal.text);
		kube_later_free(engine->client, again_ms(attempt->ranks[about->rank].refused++),
				look_again, about);
		about = NULL;
	} else if (manifest_owns(&engine->site, &pod) && pod.attempt == about->attempt &&
		   pod.rank == about->rank && pod.launch == about->launch) {
		pod_was_found(engine, attempt, about->rank, &pod);
	} else {
		rank_over(engine, attempt, about->rank, ENGINE_CAUSE_START, 0, true,
			  "there is a pod of its name already that is not Fairlead's");
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

static void pod_came(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct kube_refusal refusal;
	struct kube_pod pod;

	pthread_mutex_lock(&engine->lock);
	attempt = answer->status ? about_attempt(about) : NULL;
	if (attempt && status_is_done(answer->status) &&
	    pod_read(answer->body, answer->size, &pod, NULL) == 0) {
		pod_is_made(engine, attempt, about->rank, &pod);
	} else if (attempt && (status_is_done(answer->status) || answer->status == 409 ||
			       kube_is_passing(answer->status) || right_is_lacking(answer))) {
		/* It is there, or may be. */
		pod_look(engine, &attempt->ranks[about->rank], about);
		about = NULL;
	} else if (attempt) {
		attempt->ranks[about->rank].asked = false;
		refusal_read(answer, &refusal);
		rank_over(engine, attempt, about->rank, ENGINE_CAUSE_START, 0, true, refusal.text);
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

static bool attempt_claims(struct engine *engine, const struct engine_start *start, uint32_t rank)
{
	const struct attempt_entry *attempt = live_find(engine, start->attempt);

	return attempt && attempt->ranks[rank].own_claim;
}

void pod_make(struct engine *engine, const struct engine_start *start, uint32_t rank,
	      struct arena *arena)
{
	AUTO_BUF path = BUF_INIT;
	const struct engine_role *role = engine_role(start, rank);
	const char *const overlays[] = { start->overlays[0], role ? role->overlay : NULL,
					 start->overlays[1] };
	struct buf body = BUF_INIT;
	struct err err;

	manifest_pod(&engine->site, start, rank, attempt_claims(engine, start, rank), arena, &body);
	for (size_t i = 0; i < ARRAY_SIZE(overlays); i++) {
		if (!overlays[i] || overlay_merge(&body, overlays[i], arena, &err) >= 0)
			continue;
		buf_deinit(&body);
		rank_over(engine, live_find(engine, start->attempt), rank, ENGINE_CAUSE_START, 0,
			  true, err.text);
		return;
	}
	buf_addf(&path, "/api/v1/namespaces/%s/pods", engine->site.namespace);
	kube_call(engine->client,
		  &(struct kube_request){ .method = "POST",
					  .path = buf_text(&path),
					  .body = &body,
					  .judge = making,
					  .done = pod_came,
					  .context =
						  about_create(engine, start->attempt, rank, "") });
}

/* --- binding -------------------------------------------------------------------------------------------------------- */

static void pod_was_bound(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt = NULL;
	struct rank_state *state;
	struct kube_refusal refusal;

	pthread_mutex_lock(&engine->lock);
	state = answer->status ? about_find(about, &attempt) : NULL;
	if (!state) {
		;
	} else if (status_is_done(answer->status)) {
		state->bound = true;
		state->refused = 0;
		attempt_look(engine, attempt);
	} else if (!state->bound && !state->over && !attempt->stopping) {
		/* Refused: it is being deleted, or it is bound by a request whose answer got lost. The pod itself says which. */
		if (answer->status == 409 || answer->status == 404 || right_is_lacking(answer)) {
			pod_look(engine, state, about);
			about = NULL;
		} else {
			refusal_read(answer, &refusal);
			rank_fail(engine, attempt, about->rank, refusal.text);
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

	claims_of_rank(engine, attempt, rank);
	if (state->claims && !state->bound && !claims_are_done(engine, state)) {
		claims_want(engine, attempt, rank);
		return;
	}
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

void pod_delete(struct engine *engine, const char *namespace, const char *name, const char *uid,
		int64_t grace_s)
{
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	manifest_delete(uid, grace_s, &body);
	buf_addf(&path, "/api/v1/namespaces/%s/pods/%s", namespace, name);
	errand_give(engine, "DELETE", NULL, &path, &body);
}

void pod_let_go(struct engine *engine, const char *namespace, const char *name, const char *uid)
{
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	manifest_let_go(uid, &body);
	buf_addf(&path, "/api/v1/namespaces/%s/pods/%s", namespace, name);
	errand_give(engine, "PATCH", "application/strategic-merge-patch+json", &path, &body);
}

void rank_stop_due(void *context)
{
	const struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;

	pthread_mutex_lock(&engine->lock);
	if (about_find(about, &attempt))
		rank_stop(engine, attempt, about->rank);
	pthread_mutex_unlock(&engine->lock);
}

static void rank_was_deleted(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt = NULL;
	struct rank_state *state;
	struct kube_refusal refusal;

	pthread_mutex_lock(&engine->lock);
	state = answer->status ? about_find(about, &attempt) : NULL;
	if (state && (status_is_done(answer->status) || answer->status == 404)) {
		state->refused = 0; /* the watch tells the rest */
	} else if (state && !state->over) {
		/* 409: there is another one of its name, which the watch tells, or it changed at that moment, and must be asked again. */
		refusal_read(answer, &refusal);
		if (!state->refused && answer->status != 409)
			log_line(LOG_WARN,
				 "Kubernetes: pod %s can't be stopped, which is tried again: %s",
				 state->name, refusal.text);
		state->deleting = false;
		kube_later_free(engine->client, again_ms(state->refused++), rank_stop_due, about);
		about = NULL;
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

/* 0 would say that nobody need wait for the kubelet. Of a warning a pod without a shepherd hears nothing, so where it was warned all the same (its pod
 * was out of sight at that moment) its time begins with the stop. */
static int64_t grace_of(const struct attempt_entry *attempt)
{
	bool heard = attempt->ranks[0].lease_ms > 0;
	int64_t grace_s = attempt->warned_s > attempt->grace_s && !heard ? attempt->warned_s
									 : attempt->grace_s;

	if (!attempt->stopping)
		return GRACE_USUAL_S;
	return grace_s > 0 ? grace_s : 1;
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
	if (!state->uid[0] && !attempt->described && !engine->missing_told)
		return;
	if (!state->uid[0]) {
		rank_over(engine, attempt, rank,
			  state->failed ? state->failed_cause : ENGINE_CAUSE_STOPPED, 0, true,
			  state->failed ? state->failed_text
					: "it was stopped before it was started");
		return;
	}
	rank_delete(engine, attempt, rank, grace_of(attempt));
}

/* Not now (429), for a budget allows none of its pods to go; never (500), for it has two budgets. That is an answer, said and asked again. */
static enum kube_next evicting(void *context, const struct kube_answer *answer)
{
	(void)context;
	return answer->status == 429 || answer->status == 500 ? KUBE_TELL : KUBE_USUAL;
}

void rank_evict(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	state->deleting = true;
	manifest_evict(state->namespace, state->name, state->uid, &body);
	rank_path(state, "/eviction", &path);
	kube_call(engine->client,
		  &(struct kube_request){
			  .method = "POST",
			  .path = buf_text(&path),
			  .body = &body,
			  .judge = evicting,
			  .done = rank_was_deleted,
			  .context = about_create(engine, attempt->id, rank, state->uid) });
}

void rank_delete(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		 int64_t grace_s)
{
	struct rank_state *state = &attempt->ranks[rank];
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	state->deleting = true;
	manifest_delete(state->uid, grace_s, &body);
	rank_path(state, "", &path);
	kube_call(engine->client,
		  &(struct kube_request){
			  .method = "DELETE",
			  .path = buf_text(&path),
			  .body = &body,
			  .done = rank_was_deleted,
			  .context = about_create(engine, attempt->id, rank, state->uid) });
}
