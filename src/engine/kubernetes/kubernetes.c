/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's commands. `start` makes the pods of all ranks, bound to no node: nothing of them runs. `release` binds them. So no command of
 * a gang runs before the API server has taken every pod of it, and no other scheduler has a say in where they go.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/wait.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/refusal.h"

enum { ADOPT_WAIT_S = 30, SITE_WAIT_S = 30, SITE_PAUSE_MS = 500, CHECK_BYTES = 64 << 20 };

/* --- begin and end --------------------------------------------------------------------------------------------- */

/* What waited for it goes on. */
static void right_came(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	errands_go_on(engine);
	pthread_mutex_unlock(&engine->lock);
}

static int kubernetes_open(const struct engine_options *options, struct engine **ret,
			   struct err *err)
{
	const struct engine_cluster *cluster = options->cluster;
	struct engine *engine = calloc(1, sizeof(*engine));
	int rc;

	CHECK(engine && cluster && options->instance);
	engine->options = *options;
	arena_init(&engine->arena, 128 << 20);
	arena_init(&engine->masks.arena, CHECK_BYTES);
	rc = access_find(cluster->config, cluster->context, &engine->arena, &engine->access, err);
	if (rc == 0)
		rc = kube_client_create(&engine->access, &engine->client, err);
	if (rc < 0) {
		arena_deinit(&engine->arena);
		arena_deinit(&engine->masks.arena);
		free(engine);
		return rc;
	}
	kube_client_fence(engine->client, options->may_write, options->may_write_context);
	kube_client_rights(engine->client, right_came, engine);
	snprintf(engine->instance, sizeof(engine->instance), "%s", options->instance);
	engine->site = (struct manifest_site){
		.instance = engine->instance,
		.namespace = cluster->namespace ? cluster->namespace : engine->access.namespace,
		.image = cluster->image,
		.shepherd_server = cluster->shepherd_server,
		.shepherd_image = cluster->shepherd_image,
		.lease_ms = cluster->lease_ms,
	};
	pthread_mutex_init(&engine->lock, NULL);
	cond_init(&engine->listed);
	*ret = engine;
	return 0;
}

static void kubernetes_close(struct engine *engine)
{
	if (!engine)
		return;
	kube_client_destroy(engine->client);
	outputs_end(engine);
	cluster_deinit(engine);
	pthread_mutex_destroy(&engine->lock);
	pthread_cond_destroy(&engine->listed);
	arena_deinit(&engine->arena);
	free(engine);
}

struct question {
	struct engine *engine;
	bool answered;
	int status;
	char uid[KUBE_WORD_MAX];
	struct kube_refusal refusal;
};

static void site_answered(void *context, const struct kube_answer *answer)
{
	struct question *question = context;
	struct kube_pod read; /* metadata is the same in all objects */

	pthread_mutex_lock(&question->engine->lock);
	question->status = answer->status;
	if (answer->status == 200 && pod_read(answer->body, answer->size, &read, NULL) == 0)
		memcpy(question->uid, read.uid, sizeof(question->uid));
	else if (answer->status)
		refusal_read(answer, &question->refusal);
	else
		snprintf(question->refusal.text, sizeof(question->refusal.text), "%.255s",
			 answer->problem);
	question->answered = true;
	pthread_cond_broadcast(&question->engine->listed);
	pthread_mutex_unlock(&question->engine->lock);
}

/* body NULL: it is looked at. */
static void ask_site(struct engine *engine, const char *path, struct buf *body,
		     struct question *ret)
{
	*ret = (struct question){ .engine = engine };
	kube_call(engine->client, &(struct kube_request){ .method = body ? "POST" : "GET",
							  .path = path,
							  .body = body,
							  .once = true,
							  .done = site_answered,
							  .context = ret });
	pthread_mutex_lock(&engine->lock);
	while (!ret->answered)
		pthread_cond_wait(&engine->listed, &engine->lock);
	pthread_mutex_unlock(&engine->lock);
}

/*
 * Whether the namespace of the jobs is there, by a Secret that is not made: of objects there it may make Secrets, and
 * of namespaces it need not have the right to look at this one. Any other answer will be met again.
 */
static int namespace_check(struct engine *engine, struct err *err)
{
	struct question question;
	struct buf path = BUF_INIT, body = BUF_INIT;

	buf_addf(&path, "/api/v1/namespaces/%s/secrets?dryRun=All", engine->site.namespace);
	buf_adds(&body, "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{"
			"\"name\":\"fairlead-is-the-namespace-there\"}}");
	ask_site(engine, buf_text(&path), &body, &question);
	buf_deinit(&path);
	buf_deinit(&body);
	if (question.status != 404)
		return 0;
	return err_set(
		err, ERR_NOT_FOUND,
		"the cluster at %s has no namespace \"%s\", in which jobs would run: make it with `kubectl create namespace %s`, or name another with --namespace",
		engine->access.server, engine->site.namespace, engine->site.namespace);
}

static int kubernetes_site(struct engine *engine, struct engine_site *ret, struct err *err)
{
	int64_t until_ms = clock_boot_ms() + SITE_WAIT_S * INT64_C(1000);
	struct question question;

	for (;;) {
		ask_site(engine, "/api/v1/namespaces/kube-system", NULL, &question);
		if (question.uid[0])
			break;
		if (question.status == 403 || question.status == 404)
			return err_set(
				err, ERR_FORBIDDEN,
				"the Kubernetes API server at %s does not let this account get the namespace kube-system, whose uid tells clusters apart (docs/kubernetes.md, Rights): %.200s",
				engine->access.server, question.refusal.text);
		if (clock_boot_ms() > until_ms || !kube_is_passing(question.status))
			return err_set(err, ERR_UNREACHABLE,
				       "the Kubernetes API server at %s: %.200s",
				       engine->access.server, question.refusal.text);
		(void)usleep(SITE_PAUSE_MS * 1000);
	}
	if (namespace_check(engine, err) < 0)
		return -(int)err->code;
	snprintf(ret->cluster, sizeof(ret->cluster), "%s", question.uid);
	snprintf(ret->namespace, sizeof(ret->namespace), "%s", engine->site.namespace);
	return 0;
}

static bool all_listed(const struct engine *engine)
{
	return engine->pods_listed && engine->nodes_listed && devices_listed(engine);
}

/* One that has left is nobody's to ask about. */
static void adopt_ranks(struct attempt_entry *attempt, const uint32_t *launches)
{
	for (uint32_t rank = 0; launches && !attempt->gang && rank < attempt->tasks; rank++) {
		attempt->ranks[rank].launch = launches[rank] & ~ENGINE_LEFT;
		attempt->ranks[rank].over = attempt->ranks[rank].let_go =
			(launches[rank] & ENGINE_LEFT) != 0;
	}
}

/* Until the lists are there: what they hold is told then. */
static int kubernetes_adopt(struct engine *engine, const uint64_t *attempts,
			    const uint32_t *task_counts, const uint32_t *const *launches,
			    size_t count, struct err *err)
{
	struct timespec until;
	char problem[256];
	int rc = 0;

	pthread_mutex_lock(&engine->lock);
	for (size_t i = 0; i < count; i++)
		adopt_ranks(live_add(engine, attempts[i], task_counts[i]),
			    launches ? launches[i] : NULL);
	pthread_mutex_unlock(&engine->lock);
	if (!engine->pod_watch)
		follow_start(engine);
	pthread_mutex_lock(&engine->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ADOPT_WAIT_S;
	while (!all_listed(engine) && rc == 0)
		rc = pthread_cond_timedwait(&engine->listed, &engine->lock, &until);
	rc = all_listed(engine) ? 0 : -1;
	pthread_mutex_unlock(&engine->lock);
	if (rc == 0)
		return 0;
	kube_client_problem(engine->client, problem);
	return err_set(err, ERR_UNREACHABLE, "the Kubernetes API server at %s: %s",
		       engine->access.server, problem[0] ? problem : "its lists have not come yet");
}

/* --- commands ------------------------------------------------------------------------------------------------------- */

static void rank_name(const struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	char name[MANIFEST_NAME_MAX];

	manifest_pod_name(&engine->site, attempt->job, attempt->id, rank, state->launch, name);
	snprintf(state->name, sizeof(state->name), "%s", name);
	snprintf(state->namespace, sizeof(state->namespace), "%s", engine->site.namespace);
}

/* Where a driver publishes the GPUs, the pod gets them by a claim of its name. */
static void rank_needs(struct engine *engine, const struct engine_start *start,
		       struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	const struct engine_gpu_place *place = &start->places[rank];
	char name[MANIFEST_NAME_MAX];

	if (!place->gpu_mask || !devices_are_published(engine, place->node))
		return;
	snprintf(state->node, sizeof(state->node), "%s", place->node);
	state->gpu_mask = place->gpu_mask;
	state->own_claim = true;
	free(state->claims);
	manifest_pod_name(&engine->site, start->job, start->attempt, rank, state->launch, name);
	state->claims = strdup(name);
	CHECK(state->claims);
}

void rank_describe(struct engine *engine, const struct engine_start *start,
		   struct attempt_entry *attempt, uint32_t rank)
{
	rank_needs(engine, start, attempt, rank);
	if (!attempt->ranks[rank].uid[0])
		rank_name(engine, attempt, rank);
}

static int kubernetes_start(struct engine *engine, const struct engine_start *start,
			    struct err *err)
{
	struct attempt_entry *attempt;
	struct arena arena;
	struct buf part = BUF_INIT;

	if (start->pods) {
		pthread_mutex_lock(&engine->lock);
		gang_start(engine, start);
		pthread_mutex_unlock(&engine->lock);
		return 0;
	}
	if (!start->image && !engine->site.image)
		return err_set(
			err, ERR_INVALID,
			"the job names no image, and the daemon was started without --image");
	arena_init(&arena, 512 << 20);
	pthread_mutex_lock(&engine->lock);
	attempt = live_add(engine, start->attempt, start->place_count);
	if (!attempt->described && attempt->tasks == start->place_count) {
		attempt->described = true;
		attempt->job = start->job;
		attempt->asks_masks = start->masked;
		attempt->changes = start->changes;
		attempt->had[0] = manifest_needs_secret(&engine->site, start);
		attempt->had[1] = start->place_count > 1 || start->changes;
		if (attempt->had[0]) {
			manifest_secret(&engine->site, start, &part);
			attempt->parts[0] = buf_take(&part);
		}
		if (attempt->had[1]) {
			manifest_service(&engine->site, start, &part);
			attempt->parts[1] = buf_take(&part);
		}
		for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
			rank_describe(engine, start, attempt, rank);
			if (attempt->ranks[rank].uid[0])
				continue; /* made before a restart */
			attempt->ranks[rank].asked = true;
			pod_make(engine, start, rank, &arena);
			arena_reset(&arena);
		}
		parts_make(engine, attempt);
	}
	pthread_mutex_unlock(&engine->lock);
	arena_deinit(&arena);
	return 0;
}

static int find(struct engine *engine, uint64_t id, struct attempt_entry **ret, struct err *err)
{
	*ret = live_find(engine, id);
	if (*ret)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "attempt %llu has no pods in Kubernetes",
		       (unsigned long long)id);
}

static int kubernetes_release(struct engine *engine, uint64_t id, struct err *err)
{
	struct attempt_entry *attempt;
	int rc;

	pthread_mutex_lock(&engine->lock);
	rc = find(engine, id, &attempt, err);
	if (rc == 0 && attempt->gang && !attempt->stopping) {
		attempt->released = true;
		gang_release(engine, attempt);
		masks_flush(engine, false);
	}
	if (rc == 0 && attempt->asks_masks && !attempt->stopping) {
		attempt->released = true;
		own_release(engine, attempt);
		masks_flush(engine, false);
	}
	for (uint32_t rank = 0;
	     rc == 0 && !attempt->gang && !attempt->asks_masks && rank < attempt->tasks; rank++) {
		struct rank_state *state = &attempt->ranks[rank];

		attempt->released = true;
		if (!state->bound && !state->binding && !state->over && !attempt->stopping &&
		    state->uid[0] && !state->unclear)
			pod_bind(engine, attempt, rank);
	}
	pthread_mutex_unlock(&engine->lock);
	return rc;
}

/* Its pods were seen, and none has a shepherd. */
static bool hears_nothing(const struct attempt_entry *attempt)
{
	bool seen = false;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct rank_state *state = &attempt->ranks[rank];

		if (state->lease_ms)
			return false;
		seen = seen || (state->uid[0] && !state->over);
	}
	return seen;
}

/* A shepherd hears of it when it asks for its lease (daemon/shepherd_calls.c). Where there is none, SIGTERM is all that who is to save its work can
 * hear: the core stops it then, with the time that it has. */
static int kubernetes_warn(struct engine *engine, uint64_t id, int64_t grace_ms, struct err *err)
{
	struct attempt_entry *attempt;
	int rc;

	pthread_mutex_lock(&engine->lock);
	rc = find(engine, id, &attempt, err);
	if (rc == 0)
		attempt->warned_s = (grace_ms + 999) / 1000;
	if (rc == 0 && hears_nothing(attempt))
		rank_report(engine, attempt, 0, ENGINE_DEAF);
	pthread_mutex_unlock(&engine->lock);
	return rc;
}

static int kubernetes_stop(struct engine *engine, uint64_t id, int64_t grace_ms, struct err *err)
{
	struct attempt_entry *attempt;
	int rc;

	pthread_mutex_lock(&engine->lock);
	rc = find(engine, id, &attempt, err);
	if (rc == 0) {
		attempt->stopping = true;
		rank_ends_tell(engine, attempt);
		attempt->grace_s = (grace_ms + 999) / 1000;
		for (uint32_t rank = 0; rank < attempt->tasks; rank++)
			rank_stop(engine, attempt, rank);
	}
	pthread_mutex_unlock(&engine->lock);
	return rc;
}

static int kubernetes_resize(struct engine *engine, const struct engine_start *start,
			     int64_t grace_ms, struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&engine->lock);
	if (start->pods)
		gang_resize(engine, start); /* with the grace of each pod */
	else
		rc = attempt_resize(engine, start, grace_ms, err);
	pthread_mutex_unlock(&engine->lock);
	return rc;
}

static void kubernetes_forget(struct engine *engine, uint64_t id)
{
	struct attempt_entry *attempt;

	pthread_mutex_lock(&engine->lock);
	attempt = live_find(engine, id);
	if (attempt && attempt->changes)
		attempt_part(engine, attempt);
	for (uint32_t rank = 0; attempt && !attempt->changes && rank < attempt->tasks; rank++) {
		const struct rank_state *state = &attempt->ranks[rank];

		if (attempt->gang)
			break; /* its pods are their maker's */
		if (state->uid[0] && state->nowhere)
			pod_delete(engine, state->namespace, state->name, state->uid, 0);
		if (state->uid[0])
			pod_let_go(engine, state->namespace, state->name, state->uid);
	}
	if (attempt) {
		gangs_forget(engine, attempt);
		if (!attempt->changes)
			parts_remove(engine, attempt);
		live_remove(engine, attempt);
		gangs_look(engine);
	}
	pthread_mutex_unlock(&engine->lock);
}

const struct engine_ops engine_kubernetes = {
	.name = "kubernetes",
	.elsewhere = true,
	.open = kubernetes_open,
	.close = kubernetes_close,
	.site = kubernetes_site,
	.adopt = kubernetes_adopt,
	.start = kubernetes_start,
	.release = kubernetes_release,
	.warn = kubernetes_warn,
	.stop = kubernetes_stop,
	.resize = kubernetes_resize,
	.forget = kubernetes_forget,
	.pods = &kubernetes_pod_ops,
};
