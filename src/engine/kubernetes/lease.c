/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/lease.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/wait.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/lease_read.h"

enum { FLIGHT_MAX = 4, GIVE_BACK_MS = 2000, TICK_MAX_MS = LEASE_LOOK_MS };

struct lease {
	struct arena arena;
	struct kube_access access;
	struct kube_client *client;
	char *folder, *path; /* of requests: of all Leases of the namespace, and of this one */
	char *name, *address;

	pthread_mutex_t lock; /* for what follows */
	pthread_cond_t given_back;
	struct lease_rule rule;
	bool want, ending, done;
	int in_flight;
	char problem[256];
};

/* One request: a look, or a write. */
struct errand {
	struct lease *lease;
	bool writes;
	int64_t sent_ms;
};

/* --- what is written ---------------------------------------------------------------------------------------------- */

static void add_time(struct buf *out, const char *key)
{
	const int64_t now_ms = clock_wall_ms();
	const time_t seconds = (time_t)(now_ms / 1000);
	char text[40];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	buf_addf(out, "\"%s\":\"%s.%06dZ\"", key, text, (int)(now_ms % 1000) * 1000);
}

/* Held by `holder` from now on, where it stood as it was seen. */
static void lease_write(const struct lease *lease, const char *holder, struct buf *out)
{
	const struct lease_seen *seen = &lease->rule.seen;
	const bool mine = seen->exists && strcmp(seen->holder, lease->rule.me) == 0;

	buf_adds(out,
		 "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{");
	buf_add_json_member(out, "name", lease->name);
	if (seen->exists) {
		buf_addc(out, ',');
		buf_add_json_member(out, "resourceVersion", seen->version);
	}
	buf_adds(out, ",\"annotations\":{");
	buf_add_json_member(out, "fairlead.dev/address", lease->address);
	buf_adds(out, "}},\"spec\":{");
	buf_add_json_member(out, "holderIdentity", holder);
	buf_addf(out, ",\"leaseDurationSeconds\":%d,\"leaseTransitions\":%" PRId64 ",",
		 LEASE_LASTS_MS / 1000, seen->transitions + (seen->exists && !mine));
	if (mine && seen->acquired[0])
		buf_add_json_member(out, "acquireTime", seen->acquired);
	else
		add_time(out, "acquireTime");
	buf_addc(out, ',');
	add_time(out, "renewTime");
	buf_adds(out, "}}");
}

/* --- requests ------------------------------------------------------------------------------------------------------- */

static void note_problem(struct lease *lease, const struct kube_answer *answer)
{
	if (answer->status)
		snprintf(lease->problem, sizeof(lease->problem),
			 "the Lease %s: the API server answers with status %d%s", lease->name,
			 answer->status,
			 answer->status == 403 ? ": this account may not use Leases" : "");
	else
		snprintf(lease->problem, sizeof(lease->problem), "the Lease %s: %.180s",
			 lease->name, answer->problem);
}

static void answered(struct errand *errand, const struct kube_answer *answer)
{
	struct lease *lease = errand->lease;
	struct lease_seen seen = { 0 };
	const int64_t now_ms = clock_boot_ms();
	const bool gone = answer->status == 404 && !errand->writes;
	struct err err = { 0 };

	lease->problem[0] = '\0';
	if (answer->status == 409 || (answer->status == 404 && errand->writes))
		lease_rule_refused(&lease->rule);
	else if (!gone && answer->status != 200 && answer->status != 201)
		note_problem(lease, answer);
	else if (!gone && lease_read(answer->body, answer->size, &seen, &err) < 0)
		snprintf(lease->problem, sizeof(lease->problem), "the Lease %s: %.180s",
			 lease->name, err.text);
	else if (errand->writes)
		lease_rule_wrote(&lease->rule, &seen, errand->sent_ms, now_ms);
	else
		lease_rule_saw(&lease->rule, &seen, now_ms);
}

static void came(void *context, const struct kube_answer *answer)
{
	struct errand *errand = context;
	struct lease *lease = errand->lease;

	pthread_mutex_lock(&lease->lock);
	lease->in_flight--;
	if (lease->ending && errand->writes) {
		lease->done = true;
		pthread_cond_signal(&lease->given_back);
	}
	if (!lease->ending)
		answered(errand, answer);
	pthread_mutex_unlock(&lease->lock);
	free(errand);
}

/* With the lock. holder NULL: a look. */
static void send(struct lease *lease, const char *holder)
{
	struct errand *errand = calloc(1, sizeof(*errand));
	const bool there = lease->rule.seen.exists;
	struct buf body = BUF_INIT;

	CHECK(errand);
	*errand = (struct errand){ .lease = lease,
				   .writes = holder != NULL,
				   .sent_ms = clock_boot_ms() };
	if (holder)
		lease_write(lease, holder, &body);
	lease->in_flight++;
	lease_rule_asked(&lease->rule, errand->sent_ms);
	kube_call(lease->client,
		  &(struct kube_request){ .method = !holder ? "GET"
						    : there ? "PUT"
							    : "POST",
					  .path = holder && !there ? lease->folder : lease->path,
					  .body = holder ? &body : NULL,
					  .once = true,
					  .done = came,
					  .context = errand });
}

/* With the lock. From here on it is not held, whatever becomes of the request. */
static void let_go(struct lease *lease)
{
	send(lease, "");
	lease_rule_let_go(&lease->rule);
}

static void tick(void *context)
{
	struct lease *lease = context;
	const int64_t now_ms = clock_boot_ms();
	int64_t wait_ms;

	pthread_mutex_lock(&lease->lock);
	if (lease->ending) {
		pthread_mutex_unlock(&lease->lock);
		return;
	}
	if (lease->in_flight < FLIGHT_MAX) {
		const enum lease_step step = lease_rule_step(&lease->rule, lease->want, now_ms);

		if (step == LEASE_GIVE_BACK)
			let_go(lease);
		else if (step != LEASE_WAIT)
			send(lease, step == LEASE_WRITE ? lease->rule.me : NULL);
	}
	wait_ms = lease_rule_next_ms(&lease->rule, lease->want, now_ms) - now_ms;
	pthread_mutex_unlock(&lease->lock);
	kube_later(lease->client,
		   wait_ms < 20            ? 20
		   : wait_ms > TICK_MAX_MS ? TICK_MAX_MS
					   : wait_ms,
		   tick, lease);
}

/* --- begin and end -------------------------------------------------------------------------------------------------- */

int lease_open(const struct lease_options *options, struct lease **ret, struct err *err)
{
	struct lease *lease = calloc(1, sizeof(*lease));
	const char *namespace = options->cluster->namespace;
	AUTO_BUF path = BUF_INIT;
	int rc;

	CHECK(lease);
	arena_init(&lease->arena, 128 << 20);
	rc = access_find(options->cluster->config, options->cluster->context, &lease->arena,
			 &lease->access, err);
	if (rc == 0)
		rc = kube_client_create(&lease->access, &lease->client, err);
	if (rc < 0) {
		arena_deinit(&lease->arena);
		free(lease);
		return rc;
	}
	buf_addf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases",
		 namespace ? namespace : lease->access.namespace);
	lease->folder = strdup(buf_text(&path));
	buf_addf(&path, "/%s", options->name);
	lease->path = strdup(buf_text(&path));
	lease->name = strdup(options->name);
	lease->address = strdup(options->address);
	CHECK(lease->folder && lease->path && lease->name && lease->address);
	lease_rule_init(&lease->rule, options->holder);
	pthread_mutex_init(&lease->lock, NULL);
	cond_init(&lease->given_back);
	kube_later(lease->client, 0, tick, lease);
	*ret = lease;
	return 0;
}

void lease_want(struct lease *lease, bool want)
{
	pthread_mutex_lock(&lease->lock);
	lease->want = want;
	pthread_mutex_unlock(&lease->lock);
}

void lease_look(struct lease *lease, struct lease_view *ret)
{
	const struct lease_rule *rule = &lease->rule;

	pthread_mutex_lock(&lease->lock);
	*ret = (struct lease_view){ .leads = rule->held,
				    .lost = rule->lost,
				    .may_write = lease_rule_may_write(rule, clock_boot_ms()) };
	snprintf(ret->holder, sizeof(ret->holder), "%s", rule->seen.holder);
	snprintf(ret->address, sizeof(ret->address), "%s",
		 rule->seen.holder[0] ? rule->seen.address : "");
	snprintf(ret->problem, sizeof(ret->problem), "%s", lease->problem);
	pthread_mutex_unlock(&lease->lock);
}

bool lease_may_write(void *context)
{
	struct lease *lease = context;
	bool may;

	pthread_mutex_lock(&lease->lock);
	may = lease_rule_may_write(&lease->rule, clock_boot_ms());
	pthread_mutex_unlock(&lease->lock);
	return may;
}

static void give_back(struct lease *lease)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += GIVE_BACK_MS / 1000;
	let_go(lease);
	while (!lease->done &&
	       pthread_cond_timedwait(&lease->given_back, &lease->lock, &until) == 0)
		continue;
}

void lease_close(struct lease *lease)
{
	if (!lease)
		return;
	pthread_mutex_lock(&lease->lock);
	lease->ending = true;
	if (lease_rule_may_write(&lease->rule, clock_boot_ms()))
		give_back(lease);
	pthread_mutex_unlock(&lease->lock);
	kube_client_destroy(lease->client);
	pthread_mutex_destroy(&lease->lock);
	pthread_cond_destroy(&lease->given_back);
	free(lease->folder);
	free(lease->path);
	free(lease->name);
	free(lease->address);
	arena_deinit(&lease->arena);
	free(lease);
}
