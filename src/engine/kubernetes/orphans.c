/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/orphans.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/moment.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/lease_read.h"
#include "engine/kubernetes/manifest.h"
#include "engine/kubernetes/refusal.h"

enum { PAGE = 500, ORPHANS_MAX = 1000000, LOOK_AGAIN_S = 12, CONTINUE_MAX = 4096, TRIES = 5 };

/* --- one request after the other ----------------------------------------------------------------------------------- */

struct line {
	struct arena arena;
	struct kube_access access;
	struct kube_client *client;
	const char *namespace;
	pthread_mutex_t lock;
	pthread_cond_t came;
	bool answered;
	int status;
	struct buf body;
	char problem[256];
};

static int line_open(const struct engine_cluster *cluster, struct line *line, struct err *err)
{
	int rc;

	*line = (struct line){ .body = BUF_INIT };
	arena_init(&line->arena, 16 << 20);
	rc = access_find(cluster->config, cluster->context, &line->arena, &line->access, err);
	if (rc == 0)
		rc = kube_client_create(&line->access, &line->client, err);
	if (rc < 0) {
		arena_deinit(&line->arena);
		return rc;
	}
	line->namespace = cluster->namespace ? cluster->namespace : line->access.namespace;
	pthread_mutex_init(&line->lock, NULL);
	pthread_cond_init(&line->came, NULL);
	return 0;
}

static void line_close(struct line *line)
{
	kube_client_destroy(line->client);
	pthread_mutex_destroy(&line->lock);
	pthread_cond_destroy(&line->came);
	buf_deinit(&line->body);
	arena_deinit(&line->arena);
}

static void answered(void *context, const struct kube_answer *answer)
{
	struct line *line = context;
	struct kube_refusal refusal;

	pthread_mutex_lock(&line->lock);
	refusal_read(answer, &refusal);
	line->status = answer->status;
	snprintf(line->problem, sizeof(line->problem), "%.255s",
		 answer->status ? refusal.text : answer->problem);
	buf_clear(&line->body);
	buf_add(&line->body, answer->body, answer->size);
	line->answered = true;
	pthread_cond_signal(&line->came);
	pthread_mutex_unlock(&line->lock);
}

/* The status of the answer, which is then in `body`; negative where none came, or the account may not. */
static int ask(struct line *line, const char *method, const char *path, const char *type,
	       struct buf *body, struct err *err)
{
	line->answered = false;
	kube_call(line->client, &(struct kube_request){ .method = method,
							.path = path,
							.type = type,
							.body = body,
							.once = true,
							.done = answered,
							.context = line });
	pthread_mutex_lock(&line->lock);
	while (!line->answered)
		pthread_cond_wait(&line->came, &line->lock);
	pthread_mutex_unlock(&line->lock);
	if (line->status == 0 || line->status == 401)
		return err_set(err, ERR_UNREACHABLE, "the Kubernetes API server at %s: %.200s",
			       line->access.server, line->problem);
	if (line->status == 403)
		return err_set(err, ERR_FORBIDDEN, "the Kubernetes API server at %s: %.200s",
			       line->access.server, line->problem);
	return line->status;
}

/* --- the list -------------------------------------------------------------------------------------------------------- */

struct listing {
	struct orphan *found;
	size_t count, room;
	char go_on[CONTINUE_MAX]; /* "" = that was all */
};

static void take_pod(struct listing *listing, const struct kube_pod *pod)
{
	struct orphan *orphan;

	if (!pod->finalizer || strcmp(pod->scheduler, KUBE_SCHEDULER) != 0)
		return;
	if (listing->count == listing->room) {
		listing->room = listing->room ? 2 * listing->room : 64;
		listing->found =
			reallocarray(listing->found, listing->room, sizeof(*listing->found));
		CHECK(listing->found);
	}
	orphan = &listing->found[listing->count++];
	*orphan = (struct orphan){ .job = pod->job,
				   .deleting = pod->deleting,
				   .over = pod_is_over(pod) || (pod->deleting && !pod->node[0]) };
	memcpy(orphan->uid, pod->uid, sizeof(orphan->uid));
	memcpy(orphan->namespace, pod->namespace, sizeof(orphan->namespace));
	memcpy(orphan->name, pod->name, sizeof(orphan->name));
	memcpy(orphan->instance, pod->instance, sizeof(orphan->instance));
	memcpy(orphan->node, pod->node, sizeof(orphan->node));
}

static int read_items(struct listing *listing, struct json_reader *r, struct err *err)
{
	int rc = 0;

	pull_array(r);
	while (rc == 0 && pull_element(r)) {
		struct kube_pod pod;
		const char *from;

		(void)pull_peek(r);
		from = r->at;
		pull_skip(r);
		if (r->problem)
			break;
		rc = pod_read(from, (size_t)(r->at - from), &pod, err);
		if (rc == 0)
			take_pod(listing, &pod);
	}
	return rc;
}

static void read_head(struct listing *listing, struct json_reader *r)
{
	struct json_slice key, text;

	pull_object(r);
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "continue")) {
			pull_string(r, &text);
			pull_copy(r, &text, listing->go_on, sizeof(listing->go_on));
		} else {
			pull_skip(r);
		}
	}
}

static int read_page(struct listing *listing, const struct buf *body, struct err *err)
{
	struct json_reader r;
	struct json_slice key;
	int rc = 0;

	listing->go_on[0] = '\0';
	pull_init(&r, body->data, body->size);
	pull_object(&r);
	while (rc == 0 && pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata"))
			read_head(listing, &r);
		else if (pull_key_is(&key, "items") && pull_peek(&r) != PULL_NULL)
			rc = read_items(listing, &r, err);
		else
			pull_skip(&r);
	}
	return rc < 0 ? rc : pull_finish(&r, err);
}

static int list_all(struct line *line, struct listing *listing, struct err *err)
{
	int rc;

	do {
		AUTO_BUF path = BUF_INIT;

		buf_addf(
			&path,
			"/api/v1/namespaces/%s/pods?labelSelector=fairlead.dev%%2Finstance&limit=%d",
			line->namespace, PAGE);
		if (listing->go_on[0]) {
			buf_adds(&path, "&continue=");
			kube_add_escaped(&path, listing->go_on);
		}
		rc = ask(line, "GET", buf_text(&path), NULL, NULL, err);
		if (rc >= 0 && rc != 200)
			rc = err_set(
				err, ERR_UNREACHABLE,
				"the Kubernetes API server at %s gives no list of pods: %.200s",
				line->access.server, line->problem);
		if (rc >= 0)
			rc = read_page(listing, &line->body, err);
	} while (rc >= 0 && listing->go_on[0] && listing->count < ORPHANS_MAX);
	return rc < 0 ? rc : 0;
}

/* --- who leads ---------------------------------------------------------------------------------------------------------- */

/* exists false: there is no such Lease. */
static int lease_get(struct line *line, const char *path, struct lease_seen *ret, struct err *err)
{
	int rc = ask(line, "GET", path, NULL, NULL, err);

	*ret = (struct lease_seen){ .exists = false };
	if (rc < 0 || rc == 404)
		return rc < 0 ? rc : 0;
	if (rc != 200)
		return err_set(err, ERR_UNREACHABLE,
			       "the Kubernetes API server at %s does not give the Lease: %.200s",
			       line->access.server, line->problem);
	return lease_read(line->body.data, line->body.size, ret, err);
}

static void lease_path(const struct line *line, const char *instance, struct buf *path)
{
	buf_addf(path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases/fairlead-%.12s",
		 line->namespace, instance);
}

/* Parts of a second are left off. */
static bool is_fresh(const char *renewed)
{
	char whole[32];
	int64_t at_ms, age_ms;

	snprintf(whole, sizeof(whole), "%.*sZ", (int)strcspn(renewed, ".Z"), renewed);
	if (moment_parse(whole, &at_ms) != 0)
		return false;
	age_ms = clock_wall_ms() - at_ms;
	return age_ms < ORPHANS_LIVE_S * 1000 && age_ms > -ORPHANS_LIVE_S * 1000;
}

static int leader_find(struct line *line, const char *instance, char ret[ORPHANS_LEADER_MAX],
		       struct err *err)
{
	AUTO_BUF path = BUF_INIT;
	struct lease_seen seen;
	int rc;

	lease_path(line, instance, &path);
	rc = lease_get(line, buf_text(&path), &seen, err);
	ret[0] = '\0';
	if (rc == 0 && seen.holder[0] && is_fresh(seen.renewed))
		snprintf(ret, ORPHANS_LEADER_MAX, "%.*s", ORPHANS_LEADER_MAX - 1, seen.holder);
	if (rc >= 0 || line->status != 403)
		return rc;
	snprintf(ret, ORPHANS_LEADER_MAX, "?");
	*err = (struct err){ 0 };
	return 0;
}

/* Of each instance once. */
static int leaders_find(struct line *line, struct orphan *found, size_t count, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		size_t same = 0;

		while (strcmp(found[same].instance, found[i].instance) != 0)
			same++;
		if (same < i)
			memcpy(found[i].leader, found[same].leader, sizeof(found[i].leader));
		else
			rc = leader_find(line, found[i].instance, found[i].leader, err);
	}
	return rc;
}

int orphans_list(const struct engine_cluster *cluster, struct orphan **ret, size_t *ret_count,
		 struct err *err)
{
	struct listing listing = { .found = NULL };
	struct line line;
	int rc = line_open(cluster, &line, err);

	if (rc < 0)
		return rc;
	rc = list_all(&line, &listing, err);
	if (rc == 0)
		rc = leaders_find(&line, listing.found, listing.count, err);
	line_close(&line);
	if (rc < 0) {
		free(listing.found);
		return rc;
	}
	*ret = listing.found;
	*ret_count = listing.count;
	return 0;
}

int orphans_leader(const struct engine_cluster *cluster, const char *instance, char ret[256],
		   struct err *err)
{
	AUTO_BUF path = BUF_INIT;
	struct lease_seen first, second;
	struct line line;
	int rc = line_open(cluster, &line, err);

	if (rc < 0)
		return rc;
	ret[0] = '\0';
	lease_path(&line, instance, &path);
	rc = lease_get(&line, buf_text(&path), &first, err);
	if (rc == 0 && first.holder[0]) {
		(void)sleep(LOOK_AGAIN_S);
		rc = lease_get(&line, buf_text(&path), &second, err);
		if (rc == 0 && second.holder[0] && strcmp(first.version, second.version) != 0)
			snprintf(ret, 256, "%.100s (%.120s)", second.holder, second.address);
	}
	line_close(&line);
	return rc;
}

/* --- letting go ---------------------------------------------------------------------------------------------------------- */

int orphan_let_go(const struct engine_cluster *cluster, const struct orphan *orphan,
		  struct err *err)
{
	AUTO_BUF path = BUF_INIT;
	struct line line;
	int rc = line_open(cluster, &line, err);

	if (rc < 0)
		return rc;
	buf_addf(&path, "/api/v1/namespaces/%s/pods/%s", orphan->namespace, orphan->name);
	for (int i = 0; i < TRIES; i++) {
		struct buf body = BUF_INIT;

		manifest_let_go(orphan->uid, &body);
		rc = ask(&line, "PATCH", buf_text(&path), "application/strategic-merge-patch+json",
			 &body, err);
		if (rc < 0 || rc == 404 || (rc >= 200 && rc < 300))
			break;
		(void)sleep(1);
	}
	if (rc >= 300 && rc != 404)
		rc = err_set(err, ERR_CONFLICT, "pod %s is not let go: %.200s", orphan->name,
			     line.problem);
	line_close(&line);
	return rc < 0 ? rc : 0;
}
