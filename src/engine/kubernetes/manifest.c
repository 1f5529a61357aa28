/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "engine/local/task_env.h"

#define SCRIPT_FOLDER "/etc/fairlead"
#define SCRIPT_KEY "script"
#define OWNER_MARK "\"@owner@\""
#define SHEPHERD_HOME "/run/fairlead" /* a folder that the containers of a pod share */
#define SHEPHERD_PROGRAM SHEPHERD_HOME "/shepherd"
#define WORLD_FILE SHEPHERD_HOME "/world"
#define TOKEN_KEY "token"
#define CODE_HOME "/fairlead" /* a volume; the snapshot is in its folder `code` */
#define CLAIM_NAME "gpus" /* the pod's own name for its claim, and that of the request in it */

enum { GRACE_USUAL_S = 30 };

/* --- JSON ------------------------------------------------------------------------------------------- */

static void add_text(struct buf *out, const char *text)
{
	buf_add_json(out, text, strlen(text));
}

/* "key":"text", with a comma in front where something stands before it. */
static void add_member(struct buf *out, const char *key, const char *text)
{
	if (out->size && out->data[out->size - 1] != '{' && out->data[out->size - 1] != '[')
		buf_addc(out, ',');
	add_text(out, key);
	buf_addc(out, ':');
	add_text(out, text);
}

/* Kubernetes replaces $(NAME) in commands and values; a doubled $ is a plain one. */
static void add_plain(struct buf *out, const char *text)
{
	AUTO_BUF plain = BUF_INIT;

	for (; *text; text++) {
		if (*text == '$')
			buf_addc(&plain, '$');
		buf_addc(&plain, *text);
	}
	buf_add_json(out, buf_text(&plain), plain.size);
}

/* --- names -------------------------------------------------------------------------------------------- */

/* So much of the instance stands in names; the label has all of it. */
#define NAME_FORM "fairlead-%.8s-%" PRIu64 "-%" PRIu64

void manifest_pod_name(const struct manifest_site *site, uint64_t job, uint64_t attempt,
		       uint64_t rank, uint32_t launch, char out[MANIFEST_NAME_MAX])
{
	char again[16] = "";

	if (launch)
		snprintf(again, sizeof(again), "-%u", launch);
	snprintf(out, MANIFEST_NAME_MAX, NAME_FORM "-%" PRIu64 "%s", site->instance, job, attempt,
		 rank, again);
}

void manifest_attempt_name(const struct manifest_site *site, uint64_t job, uint64_t attempt,
			   char out[MANIFEST_NAME_MAX])
{
	snprintf(out, MANIFEST_NAME_MAX, NAME_FORM, site->instance, job, attempt);
}

/* "-12"; false when no such thing stands there. */
static bool take_number(const char **at, uint64_t *ret)
{
	const char *from = *at + 1;

	if (**at != '-' || *from < '0' || *from > '9')
		return false;
	*ret = 0;
	for (; *from >= '0' && *from <= '9'; from++) {
		if (*ret > UINT32_MAX)
			return false;
		*ret = *ret * 10 + (uint64_t)(*from - '0');
	}
	*at = from;
	return true;
}

static bool is_instance(const char *text)
{
	return strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
}

/* "-2" behind the rank of one that was started anew, nothing behind one that was not. */
static bool take_launch(const char *at, uint64_t *ret)
{
	*ret = 0;
	return !*at || (take_number(&at, ret) && !*at && *ret && *ret < UINT32_MAX);
}

bool manifest_named(const struct manifest_site *site, const char *namespace, const char *name,
		    uint64_t *ret_job, uint64_t *ret_attempt, uint64_t *ret_rank,
		    uint64_t *ret_launch)
{
	char head[MANIFEST_NAME_MAX];

	snprintf(head, sizeof(head), "fairlead-%.8s", site->instance);
	if (strcmp(namespace, site->namespace) != 0 || strncmp(name, head, strlen(head)) != 0)
		return false;
	name += strlen(head);
	return take_number(&name, ret_job) && take_number(&name, ret_attempt) &&
	       take_number(&name, ret_rank) && take_launch(name, ret_launch) && *ret_attempt &&
	       *ret_job < UINT32_MAX && *ret_attempt < UINT32_MAX && *ret_rank < UINT32_MAX;
}

bool manifest_owns(const struct manifest_site *site, struct kube_pod *pod)
{
	uint64_t job, attempt, rank, launch;

	if (strcmp(pod->scheduler, KUBE_SCHEDULER) != 0 ||
	    !manifest_named(site, pod->namespace, pod->name, &job, &attempt, &rank, &launch))
		return false;
	/* Another Fairlead whose instance begins alike. */
	if (is_instance(pod->instance) && strcmp(pod->instance, site->instance) != 0)
		return false;
	pod->job = job;
	pod->attempt = attempt;
	pod->rank = rank;
	pod->launch = launch;
	return true;
}

static void add_labels(const struct manifest_site *site, const struct engine_start *start,
		       struct buf *out)
{
	char number[32];

	buf_addc(out, '{');
	add_member(out, "app.kubernetes.io/managed-by", "fairlead");
	add_member(out, KUBE_LABEL_INSTANCE, site->instance);
	snprintf(number, sizeof(number), "%" PRIu64, start->job);
	add_member(out, KUBE_LABEL_JOB, number);
	snprintf(number, sizeof(number), "%" PRIu64, start->attempt);
	add_member(out, KUBE_LABEL_ATTEMPT, number);
}

/* --- pods ------------------------------------------------------------------------------------------------- */

bool manifest_has_shepherd(const struct manifest_site *site, const struct engine_start *start)
{
	return site->shepherd_server && start->pod_token && !start->checkpoint_offered;
}

bool manifest_has_code(const struct manifest_site *site, const struct engine_start *start)
{
	return site->shepherd_server && start->pod_token && start->snapshot;
}

static bool has_token(const struct manifest_site *site, const struct engine_start *start)
{
	return manifest_has_shepherd(site, start) || manifest_has_code(site, start);
}

bool manifest_needs_secret(const struct manifest_site *site, const struct engine_start *start)
{
	if (has_token(site, start))
		return true;
	for (uint32_t rank = 0; rank < start->place_count; rank++) {
		const char *const *env = engine_env(start, rank);

		if ((env && env[0]) || engine_script(start, rank))
			return true;
	}
	return false;
}

static uint32_t role_of(const struct engine_start *start, uint32_t rank)
{
	return start->role_count ? start->places[rank].role : 0;
}

/* A rank that was started anew is another host: the old one may still be known by its name. */
static void host_name(const struct engine_gpu_place *place, char out[32])
{
	if (place->launch)
		snprintf(out, 32, "rank-%u-%u", place->rank, place->launch);
	else
		snprintf(out, 32, "rank-%u", place->rank);
}

static bool has_hosts(const struct engine_start *start)
{
	return start->place_count > 1 || start->changes;
}

void manifest_host(const struct manifest_site *site, uint64_t job, uint64_t attempt, uint32_t rank,
		   uint32_t launch, char out[MANIFEST_HOST_MAX])
{
	const struct engine_gpu_place place = { .rank = rank, .launch = launch };
	char service[MANIFEST_NAME_MAX], host[32];

	manifest_attempt_name(site, job, attempt, service);
	host_name(&place, host);
	snprintf(out, MANIFEST_HOST_MAX, "%s.%s", host, service);
}

/* Each pod is a host of its own, and its task the only one there. */
static struct engine_start as_hosts(const struct manifest_site *site,
				    const struct engine_start *start, struct arena *arena)
{
	struct engine_gpu_place *places =
		arena_new_array(arena, struct engine_gpu_place, start->place_count);
	struct engine_start copy = *start;
	char host[MANIFEST_HOST_MAX];

	for (uint32_t rank = 0; rank < start->place_count; rank++) {
		places[rank] = start->places[rank];
		places[rank].local_rank = 0;
		places[rank].local_size = 1;
		manifest_host(site, start->job, start->attempt, rank, places[rank].launch, host);
		snprintf(places[rank].node, sizeof(places[rank].node), "%.63s",
			 has_hosts(start) ? host : "localhost");
	}
	copy.places = places;
	copy.own_hosts = true;
	return copy;
}

/* The place of a variable in the job's own list; -1 = it is Fairlead's. */
static int own_index(const char *const *own, const char *word)
{
	for (int i = 0; own && own[i]; i++)
		if (strcmp(own[i], word) == 0)
			return i;
	return -1;
}

static bool is_left_out(const char *name)
{
	return strcmp(name, "CUDA_VISIBLE_DEVICES") == 0 ||
	       strcmp(name, "CUDA_DEVICE_ORDER") == 0 || strcmp(name, "FAIRLEAD_BIN") == 0 ||
	       strcmp(name, "FAIRLEAD_NODE") == 0;
}

static void add_token(const char *secret, struct buf *out)
{
	buf_addf(
		out,
		"{\"name\":\"FAIRLEAD_POD_TOKEN\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"%s\",\"key\":\"" TOKEN_KEY
		"\"}}}",
		secret);
}

static void add_env(const struct manifest_site *site, const struct engine_start *start,
		    uint32_t rank, struct arena *arena, struct buf *out)
{
	struct engine_start hosts = as_hosts(site, start, arena);
	struct task_env_nodes nodes;
	struct task_env_place place = { .nodes = &nodes,
					.port = MANIFEST_PORT,
					.world_file = start->changes ? WORLD_FILE : NULL };
	const char *const *own = engine_env(start, rank);
	const char **words;
	char secret[MANIFEST_NAME_MAX], key[MANIFEST_NAME_MAX];

	task_env_nodes(&hosts, arena, &nodes);
	words = task_env_build(&hosts, rank, &place, arena);
	manifest_attempt_name(site, start->job, start->attempt, secret);
	buf_adds(
		out,
		"\"env\":[{\"name\":\"FAIRLEAD_NODE\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"spec.nodeName\"}}}");
	for (; *words; words++) {
		const char *sign = strchr(*words, '=');
		const char *name = arena_strndup(arena, *words, (size_t)(sign - *words));
		int index = own_index(own, *words);

		if (is_left_out(name))
			continue;
		buf_adds(out, ",{");
		add_member(out, "name", name);
		if (index < 0) {
			buf_adds(out, ",\"value\":");
			add_plain(out, sign + 1);
		} else {
			snprintf(key, sizeof(key), "env.%u.%d", role_of(start, rank), index);
			buf_adds(out, ",\"valueFrom\":{\"secretKeyRef\":{");
			add_member(out, "name", secret);
			add_member(out, "key", key);
			buf_adds(out, "}}");
		}
		buf_addc(out, '}');
	}
	if (manifest_has_shepherd(site, start)) {
		buf_addc(out, ',');
		add_token(secret, out);
	}
	/* A variable, for shepherds of older images refuse options that they don't know. */
	if (manifest_has_shepherd(site, start) && start->resume_path && start->resume_number)
		buf_addf(out, ",{\"name\":\"FAIRLEAD_POD_RESUME\",\"value\":\"%u:%" PRId64 "\"}",
			 start->resume_number, start->resume_bytes);
	if (manifest_has_shepherd(site, start) && start->places[rank].launch)
		buf_addf(out, ",{\"name\":\"FAIRLEAD_POD_LAUNCH\",\"value\":\"%u\"}",
			 start->places[rank].launch);
	buf_addc(out, ']');
}

/* Before the task's own command. */
static void add_shepherd(const struct manifest_site *site, const struct engine_start *start,
			 struct buf *out)
{
	buf_addf(out,
		 "\"" SHEPHERD_PROGRAM "\",\"run\",\"--home\",\"" SHEPHERD_HOME
		 "\",\"--server\",\"%s\",\"--ended\",\"/dev/termination-log\",",
		 site->shepherd_server);
	if (start->checkpoint_signal)
		buf_addf(out, "\"--signal\",\"%d\",", start->checkpoint_signal);
	if (start->checkpoint_every_ms)
		buf_addf(out, "\"--every-ms\",\"%" PRId64 "\",", start->checkpoint_every_ms);
	buf_adds(out, "\"--\",");
}

static void add_command(const struct manifest_site *site, const struct engine_start *start,
			uint32_t rank, struct buf *out)
{
	const char *script = engine_script(start, rank);
	const char *const *argv = engine_argv(start, rank);

	buf_adds(out, "\"command\":[");
	if (manifest_has_shepherd(site, start))
		add_shepherd(site, start, out);
	if (script && strncmp(script, "#!", 2) != 0)
		buf_adds(out, "\"/bin/sh\",");
	if (script)
		buf_adds(out, "\"" SCRIPT_FOLDER "/" SCRIPT_KEY "\"");
	for (size_t i = 0; argv && argv[i]; i++) {
		if (i)
			buf_addc(out, ',');
		add_plain(out, argv[i]);
	}
	buf_addc(out, ']');
}

static void add_resources(const struct engine_gpu_place *place, bool claim, struct buf *out)
{
	int gpus = __builtin_popcountll(place->gpu_mask);
	char amount[32];

	buf_adds(out, "\"resources\":{\"requests\":{");
	if (place->cpu_milli > 0) {
		snprintf(amount, sizeof(amount), "%" PRId64 "m", place->cpu_milli);
		add_member(out, "cpu", amount);
	}
	for (int limits = 0; limits < 2; limits++) {
		if (limits)
			buf_adds(out, "},\"limits\":{");
		if (place->memory_mib > 0) {
			snprintf(amount, sizeof(amount), "%" PRId64 "Mi", place->memory_mib);
			add_member(out, "memory", amount);
		}
		if (gpus > 0 && !claim) {
			snprintf(amount, sizeof(amount), "%d", gpus);
			add_member(out, KUBE_GPU, amount);
		}
	}
	buf_addc(out, '}');
	if (claim)
		buf_adds(out, ",\"claims\":[{\"name\":\"" CLAIM_NAME "\"}]");
	buf_addc(out, '}');
}

static bool asks_for_parts(const char *overlay)
{
	return overlay &&
	       (strstr(overlay, "\"nvidia.com/mig-") || strstr(overlay, "\"" KUBE_GPU ".shared\""));
}

/* Whether the job may stay on a node that became unreachable is Fairlead's to say, not the clock's. */
static void add_tolerations(const struct engine_start *start, uint32_t rank, struct buf *out)
{
	const struct engine_role *role = engine_role(start, rank);

	buf_adds(
		out,
		"\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"},"
		"{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}");
	if (start->places[rank].gpu_mask || asks_for_parts(start->overlays[0]) ||
	    (role && asks_for_parts(role->overlay)))
		buf_adds(out, ",{\"key\":\"" KUBE_GPU "\",\"operator\":\"Exists\"}");
	for (size_t i = 0; start->tolerates && start->tolerates[i]; i++) {
		const char *word = start->tolerates[i], *sign = strchr(word, '=');
		char key[KUBE_TEXT_MAX];

		snprintf(key, sizeof(key), "%.*s", (int)(sign ? sign - word : (long)strlen(word)),
			 word);
		buf_adds(out, ",{");
		add_member(out, "key", key);
		add_member(out, "operator", sign ? "Equal" : "Exists");
		if (sign)
			add_member(out, "value", sign + 1);
		buf_addc(out, '}');
	}
	buf_addc(out, ']');
}

static void add_container(const struct manifest_site *site, const struct engine_start *start,
			  uint32_t rank, bool claim, struct arena *arena, struct buf *out)
{
	buf_adds(out, "\"containers\":[{");
	add_member(out, "name", KUBE_CONTAINER);
	add_member(out, "image", start->image ? start->image : site->image ? site->image : "");
	if (manifest_has_code(site, start))
		add_member(out, "workingDir", CODE_HOME "/code");
	else if (start->workdir)
		add_member(out, "workingDir", start->workdir);
	buf_addc(out, ',');
	add_command(site, start, rank, out);
	buf_addc(out, ',');
	add_env(site, start, rank, arena, out);
	buf_addc(out, ',');
	add_resources(&start->places[rank], claim, out);
	buf_adds(out, ",\"volumeMounts\":[{\"name\":\"shm\",\"mountPath\":\"/dev/shm\"}");
	if (manifest_has_shepherd(site, start))
		buf_adds(out, ",{\"name\":\"fairlead\",\"mountPath\":\"" SHEPHERD_HOME "\"}");
	if (manifest_has_code(site, start))
		buf_adds(out, ",{\"name\":\"fairlead-code\",\"mountPath\":\"" CODE_HOME "\"}");
	if (engine_script(start, rank))
		buf_adds(out, ",{\"name\":\"script\",\"mountPath\":\"" SCRIPT_FOLDER
			      "\",\"readOnly\":true}");
	buf_adds(out, "]}]");
}

/* The program comes from Fairlead's own image: the job's need not have it. */
static void add_shepherd_init(const struct manifest_site *site, struct buf *out)
{
	buf_adds(out, "{\"name\":\"fairlead\"");
	add_member(out, "image", site->shepherd_image);
	buf_adds(
		out,
		",\"command\":[\"fairlead-pod-shepherd\",\"install\",\"" SHEPHERD_PROGRAM "\"],"
		"\"resources\":{\"requests\":{\"cpu\":\"10m\",\"memory\":\"16Mi\"},\"limits\":{\"memory\":\"64Mi\"}},"
		"\"volumeMounts\":[{\"name\":\"fairlead\",\"mountPath\":\"" SHEPHERD_HOME "\"}]}");
}

/* The token is this container's, and not the task's. */
static void add_code_init(const struct manifest_site *site, const struct engine_start *start,
			  uint32_t rank, struct buf *out)
{
	char secret[MANIFEST_NAME_MAX];

	manifest_attempt_name(site, start->job, start->attempt, secret);
	buf_adds(out, "{\"name\":\"fairlead-code\"");
	add_member(out, "image", site->shepherd_image);
	buf_addf(out,
		 ",\"command\":[\"fairlead-pod-shepherd\",\"fetch\",\"--server\",\"%s\","
		 "\"--attempt\",\"%" PRIu64 "\",\"--rank\",\"%u\",\"--snapshot\",\"%s\","
		 "\"--into\",\"" CODE_HOME "\"",
		 site->shepherd_server, start->attempt, rank, start->snapshot);
	if (start->places[rank].launch)
		buf_addf(out, ",\"--launch\",\"%u\"", start->places[rank].launch);
	buf_adds(out, "],\"env\":[");
	add_token(secret, out);
	buf_adds(
		out,
		"],\"resources\":{\"requests\":{\"cpu\":\"10m\",\"memory\":\"32Mi\"},\"limits\":{\"memory\":\"128Mi\"}},"
		"\"volumeMounts\":[{\"name\":\"fairlead-code\",\"mountPath\":\"" CODE_HOME "\"}]}");
}

static void add_inits(const struct manifest_site *site, const struct engine_start *start,
		      uint32_t rank, struct buf *out)
{
	const bool shepherd = manifest_has_shepherd(site, start),
		   code = manifest_has_code(site, start);

	if (!shepherd && !code)
		return;
	buf_adds(out, "\"initContainers\":[");
	if (shepherd)
		add_shepherd_init(site, out);
	if (shepherd && code)
		buf_addc(out, ',');
	if (code)
		add_code_init(site, start, rank, out);
	buf_adds(out, "],");
}

/* Memory of /dev/shm counts as the task's: it may take half of that. Without a limit: what the node has. */
static void add_volumes(const struct manifest_site *site, const struct engine_start *start,
			uint32_t rank, struct buf *out)
{
	char secret[MANIFEST_NAME_MAX];

	buf_adds(out, "\"volumes\":[{\"name\":\"shm\",\"emptyDir\":{\"medium\":\"Memory\"");
	if (start->places[rank].memory_mib > 1)
		buf_addf(out, ",\"sizeLimit\":\"%" PRId64 "Mi\"",
			 start->places[rank].memory_mib / 2);
	buf_adds(out, "}}");
	if (manifest_has_shepherd(site, start))
		buf_adds(out, ",{\"name\":\"fairlead\",\"emptyDir\":{\"sizeLimit\":\"64Mi\"}}");
	if (manifest_has_code(site, start))
		buf_adds(out, ",{\"name\":\"fairlead-code\",\"emptyDir\":{}}");
	if (engine_script(start, rank)) {
		manifest_attempt_name(site, start->job, start->attempt, secret);
		buf_addf(
			out,
			",{\"name\":\"script\",\"secret\":{\"secretName\":\"%s\",\"defaultMode\":365,"
			"\"items\":[{\"key\":\"" SCRIPT_KEY ".%u\",\"path\":\"" SCRIPT_KEY "\"}]}}",
			secret, role_of(start, rank));
	}
	buf_addc(out, ']');
}

void manifest_pod(const struct manifest_site *site, const struct engine_start *start, uint32_t rank,
		  bool claim, struct arena *arena, struct buf *out)
{
	const uint32_t launch = start->places[rank].launch;
	char name[MANIFEST_NAME_MAX], number[32], host[32];

	buf_adds(out, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{");
	manifest_pod_name(site, start->job, start->attempt, rank, launch, name);
	add_member(out, "name", name);
	add_member(out, "namespace", site->namespace);
	buf_adds(out, ",\"labels\":");
	add_labels(site, start, out);
	snprintf(number, sizeof(number), "%u", rank);
	add_member(out, KUBE_LABEL_RANK, number);
	if (launch) {
		snprintf(number, sizeof(number), "%u", launch);
		add_member(out, KUBE_LABEL_LAUNCH, number);
	}
	buf_adds(out, "},\"annotations\":{");
	add_member(out, KUBE_NOTE_NODE, start->places[rank].node);
	add_member(out, KUBE_DOMAIN "job-name", start->job_name);
	add_member(out, KUBE_DOMAIN "user", start->user);
	add_member(out, KUBE_DOMAIN "queue", start->queue);
	if (manifest_has_shepherd(site, start)) {
		snprintf(number, sizeof(number), "%" PRId64, site->lease_ms);
		add_member(out, KUBE_NOTE_LEASE, number);
	}
	if (start->changes)
		add_member(out, KUBE_NOTE_RANKS, KUBE_RANKS_CHANGE);
	buf_adds(out, "},\"finalizers\":[\"" KUBE_FINALIZER "\"]},\"spec\":{");
	add_member(out, "schedulerName", KUBE_SCHEDULER);
	add_member(out, "restartPolicy", "Never");
	if (has_hosts(start)) {
		host_name(&start->places[rank], host);
		manifest_attempt_name(site, start->job, start->attempt, name);
		add_member(out, "hostname", host);
		add_member(out, "subdomain", name);
	}
	buf_addf(
		out,
		",\"terminationGracePeriodSeconds\":%d,\"automountServiceAccountToken\":false,\"enableServiceLinks\":false,",
		GRACE_USUAL_S);
	add_tolerations(start, rank, out);
	buf_addc(out, ',');
	if (claim) {
		manifest_pod_name(site, start->job, start->attempt, rank, launch, name);
		buf_adds(out, "\"resourceClaims\":[{\"name\":\"" CLAIM_NAME "\"");
		add_member(out, "resourceClaimName", name);
		buf_adds(out, "}],");
	}
	add_inits(site, start, rank, out);
	add_container(site, start, rank, claim, arena, out);
	buf_addc(out, ',');
	add_volumes(site, start, rank, out);
	buf_adds(out, "}}");
}

/* --- what belongs to an attempt ----------------------------------------------------------------------------- */

static void add_head(const struct manifest_site *site, const struct engine_start *start,
		     const char *kind, struct buf *out)
{
	char name[MANIFEST_NAME_MAX];

	manifest_attempt_name(site, start->job, start->attempt, name);
	buf_addf(out, "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{", kind);
	add_member(out, "name", name);
	add_member(out, "namespace", site->namespace);
	buf_adds(out, ",\"labels\":");
	add_labels(site, start, out);
	if (start->changes) /* no pod of it lives as long as they do: parting.c */
		buf_adds(out, "}}");
	else
		buf_adds(out, "},\"ownerReferences\":[" OWNER_MARK "]}");
}

/* The variables and the script of rank's role. */
static void add_secrets(const struct engine_start *start, uint32_t rank, struct buf *out)
{
	const char *const *own = engine_env(start, rank);
	const char *script = engine_script(start, rank);
	char key[MANIFEST_NAME_MAX];

	for (unsigned i = 0; own && own[i]; i++) {
		snprintf(key, sizeof(key), "env.%u.%u", role_of(start, rank), i);
		add_member(out, key, strchr(own[i], '=') + 1);
	}
	if (script) {
		snprintf(key, sizeof(key), SCRIPT_KEY ".%u", role_of(start, rank));
		add_member(out, key, script);
	}
}

void manifest_secret(const struct manifest_site *site, const struct engine_start *start,
		     struct buf *out)
{
	uint64_t done = 0; /* by role */

	add_head(site, start, "Secret", out);
	buf_adds(out, ",\"immutable\":true,\"stringData\":{");
	for (uint32_t rank = 0; rank < start->place_count; rank++) {
		uint64_t bit = UINT64_C(1) << role_of(start, rank);

		if (!(done & bit))
			add_secrets(start, rank, out);
		done |= bit;
	}
	if (has_token(site, start))
		add_member(out, TOKEN_KEY, start->pod_token);
	buf_adds(out, "}}");
}

void manifest_service(const struct manifest_site *site, const struct engine_start *start,
		      struct buf *out)
{
	add_head(site, start, "Service", out);
	buf_adds(
		out,
		",\"spec\":{\"clusterIP\":\"None\",\"publishNotReadyAddresses\":true,\"selector\":");
	add_labels(site, start, out);
	buf_adds(out, "}}}");
}

void manifest_owned(const char *body, const char *pod, const char *uid, struct buf *out)
{
	const char *mark = strstr(body, OWNER_MARK);

	if (!mark) {
		buf_adds(out, body);
		return;
	}
	buf_add(out, body, (size_t)(mark - body));
	buf_addc(out, '{');
	add_member(out, "apiVersion", "v1");
	add_member(out, "kind", "Pod");
	add_member(out, "name", pod);
	add_member(out, "uid", uid);
	buf_addc(out, '}');
	buf_adds(out, mark + strlen(OWNER_MARK));
}

void manifest_claim(const struct manifest_site *site, uint64_t job, uint64_t attempt, uint64_t rank,
		    uint32_t launch, const char *pod_uid, const char *class, uint32_t gpus,
		    struct buf *out)
{
	char name[MANIFEST_NAME_MAX], number[32];

	manifest_pod_name(site, job, attempt, rank, launch, name);
	buf_adds(
		out,
		"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\",\"metadata\":{");
	add_member(out, "name", name);
	add_member(out, "namespace", site->namespace);
	buf_adds(out, ",\"labels\":{");
	add_member(out, "app.kubernetes.io/managed-by", "fairlead");
	add_member(out, KUBE_LABEL_INSTANCE, site->instance);
	snprintf(number, sizeof(number), "%" PRIu64, job);
	add_member(out, KUBE_LABEL_JOB, number);
	snprintf(number, sizeof(number), "%" PRIu64, attempt);
	add_member(out, KUBE_LABEL_ATTEMPT, number);
	snprintf(number, sizeof(number), "%" PRIu64, rank);
	add_member(out, KUBE_LABEL_RANK, number);
	buf_adds(out, "},\"finalizers\":[\"resource.kubernetes.io/delete-protection\"],"
		      "\"ownerReferences\":[{");
	add_member(out, "apiVersion", "v1");
	add_member(out, "kind", "Pod");
	add_member(out, "name", name);
	add_member(out, "uid", pod_uid);
	buf_adds(out, "}]},\"spec\":{\"devices\":{\"requests\":[{");
	add_member(out, "name", CLAIM_NAME);
	buf_adds(out, ",\"exactly\":{");
	add_member(out, "deviceClassName", class);
	buf_addf(out, ",\"allocationMode\":\"ExactCount\",\"count\":%u}}]}}}", gpus);
}

/* --- small ones ------------------------------------------------------------------------------------------------- */

void manifest_binding(const char *namespace, const char *pod, const char *uid, const char *node,
		      struct buf *out)
{
	buf_adds(out, "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{");
	add_member(out, "name", pod);
	add_member(out, "namespace", namespace);
	add_member(out, "uid", uid);
	buf_adds(out, "},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\"");
	add_member(out, "name", node);
	buf_adds(out, "}}");
}

void manifest_gang_binding(const char *namespace, const char *pod, const char *uid,
			   const char *node, uint64_t job, uint64_t attempt, uint64_t rank,
			   struct buf *out)
{
	buf_adds(out, "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{");
	add_member(out, "name", pod);
	add_member(out, "namespace", namespace);
	add_member(out, "uid", uid);
	buf_addf(out,
		 ",\"annotations\":{\"" KUBE_LABEL_JOB "\":\"%" PRIu64 "\",\"" KUBE_LABEL_ATTEMPT
		 "\":\"%" PRIu64 "\",\"" KUBE_LABEL_RANK "\":\"%" PRIu64 "\"}",
		 job, attempt, rank);
	buf_adds(out, "},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\"");
	add_member(out, "name", node);
	buf_adds(out, "}}");
}

void manifest_delete(const char *uid, int64_t grace_s, struct buf *out)
{
	buf_adds(out, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",");
	if (grace_s >= 0)
		buf_addf(out, "\"gracePeriodSeconds\":%" PRId64 ",", grace_s);
	buf_adds(out, "\"preconditions\":{");
	add_member(out, "uid", uid);
	buf_adds(out, "}}");
}

void manifest_evict(const char *namespace, const char *name, const char *uid, struct buf *out)
{
	buf_adds(out, "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{");
	add_member(out, "name", name);
	add_member(out, "namespace", namespace);
	buf_adds(out, "},\"deleteOptions\":");
	manifest_delete(uid, -1, out); /* its own grace */
	buf_addc(out, '}');
}

void manifest_let_go(const char *uid, struct buf *out)
{
	buf_adds(out, "{\"metadata\":{");
	add_member(out, "uid", uid);
	buf_adds(out, ",\"$deleteFromPrimitiveList/finalizers\":[\"" KUBE_FINALIZER "\"]}}");
}
