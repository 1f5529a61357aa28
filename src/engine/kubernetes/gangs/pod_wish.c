/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read in one walk over the object. What only says what would be nicer (preferred affinity, ScheduleAnyway) is passed over; what must hold is
 * for the predicates, which read the pod once more; what can't be made to hold yet is a problem, and the first one is told.
 */
#include "engine/kubernetes/gangs/pod_wish.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/kubernetes/reading.h"

enum { PRIORITY_MOST = 1000000, PAIR_MAX = 63, LIST_MOST = 8 };

/* Names by label, and by annotation where there is no such label. */
struct conventions {
	char native[KUBE_NAME_MAX], own[KUBE_NAME_MAX], sigs[KUBE_NAME_MAX], volcano[KUBE_NAME_MAX],
		kueue[KUBE_NAME_MAX];
	char jobset[KUBE_WORD_MAX], replicated[KUBE_WORD_MAX], lws[KUBE_WORD_MAX]; /* names */
	char replicas[KUBE_WORD_MAX], lws_group[KUBE_WORD_MAX]; /* of the replicated job; index */
	char size[KUBE_WORD_MAX], kueue_size[KUBE_WORD_MAX], priority[KUBE_WORD_MAX];
	char owner[KUBE_NAME_MAX];
};

struct walk {
	struct json_reader *r;
	struct pod_wish *wish;
	struct conventions given;
	uint32_t label_count, tolerate_count;
	int64_t class_priority;
	/* Claims: those that the pod names, and what became of those from templates, by the pod's own names for them. */
	struct claim_name {
		char own[KUBE_WORD_MAX], claim[KUBE_NAME_MAX];
	} wanted[WISH_CLAIMS_MAX], made[WISH_CLAIMS_MAX];
	uint32_t wanted_count, made_count;
	struct buf rules; /* the parts of the spec that say where it may run, as they stand there */
};

static void refuse(struct pod_wish *wish, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void refuse(struct pod_wish *wish, const char *format, ...)
{
	va_list words;

	if (wish->problem[0])
		return;
	va_start(words, format);
	vsnprintf(wish->problem, sizeof(wish->problem), format, words);
	va_end(words);
}

/* --- labels and annotations ------------------------------------------------------------------------------------ */

/* The first to say it counts: labels are read before annotations. */
static void take(struct walk *w, char *out, size_t room)
{
	char text[KUBE_NAME_MAX];

	read_cut(w->r, text, sizeof(text));
	if (!out[0])
		snprintf(out, room, "%s", text);
}

static void read_mark(struct walk *w, const struct json_slice *key)
{
	struct pod_wish *wish = w->wish;
	struct conventions *given = &w->given;
	const struct {
		const char *name;
		char *out;
		size_t room;
	} marks[] = {
		{ WISH_QUEUE, wish->queue, sizeof(wish->queue) },
		{ WISH_TIER, wish->tier, sizeof(wish->tier) },
		{ WISH_PRIORITY, given->priority, sizeof(given->priority) },
		{ WISH_GANG, given->own, sizeof(given->own) },
		{ WISH_GANG_SIZE, given->size, sizeof(given->size) },
		{ WISH_REQUIRE, wish->require, sizeof(wish->require) },
		{ WISH_PREFER, wish->prefer, sizeof(wish->prefer) },
		{ "scheduling.x-k8s.io/pod-group", given->sigs, sizeof(given->sigs) },
		{ "scheduling.k8s.io/group-name", given->volcano, sizeof(given->volcano) },
		{ "kueue.x-k8s.io/pod-group-name", given->kueue, sizeof(given->kueue) },
		{ "kueue.x-k8s.io/pod-group-total-count", given->kueue_size,
		  sizeof(given->kueue_size) },
		{ "jobset.sigs.k8s.io/jobset-name", given->jobset, sizeof(given->jobset) },
		{ "jobset.sigs.k8s.io/replicatedjob-name", given->replicated,
		  sizeof(given->replicated) },
		{ "jobset.sigs.k8s.io/replicatedjob-replicas", given->replicas,
		  sizeof(given->replicas) },
		{ "leaderworkerset.sigs.k8s.io/name", given->lws, sizeof(given->lws) },
		{ "leaderworkerset.sigs.k8s.io/group-index", given->lws_group,
		  sizeof(given->lws_group) },
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (pull_key_is(key, marks[i].name)) {
			take(w, marks[i].out, marks[i].room);
			return;
		}
	pull_skip(w->r);
}

static void read_marks(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key))
		read_mark(w, &key);
}

static void read_owner(struct walk *w)
{
	char api[KUBE_NAME_MAX] = "", kind[KUBE_WORD_MAX] = "", name[KUBE_NAME_MAX] = "";
	struct json_slice key;
	bool controls = false;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "apiVersion"))
			read_cut(w->r, api, sizeof(api));
		else if (pull_key_is(&key, "kind"))
			read_cut(w->r, kind, sizeof(kind));
		else if (pull_key_is(&key, "name"))
			read_cut(w->r, name, sizeof(name));
		else if (pull_key_is(&key, "controller") && pull_peek(w->r) == PULL_BOOL)
			pull_bool(w->r, &controls);
		else
			pull_skip(w->r);
	}
	if (!controls)
		return;
	memcpy(w->wish->owner_api, api, sizeof(api));
	memcpy(w->wish->owner_kind, kind, sizeof(kind));
	memcpy(w->given.owner, name, sizeof(name));
}

static void read_metadata(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "creationTimestamp")) {
			read_cut(w->r, w->wish->created, sizeof(w->wish->created));
		} else if (pull_key_is(&key, "labels") || pull_key_is(&key, "annotations")) {
			read_marks(w);
		} else if (pull_key_is(&key, "ownerReferences")) {
			if (enter_array(w->r))
				while (pull_element(w->r))
					read_owner(w);
		} else {
			pull_skip(w->r);
		}
	}
}

/* --- what must hold -------------------------------------------------------------------------------------------- */

/* "key=value" or "key", as the core has labels and taints. */
static bool pair_add(char list[KUBE_LABELS_MAX + 1], uint32_t *count, const char *key,
		     const char *value)
{
	size_t used = strlen(list), size = strlen(key) + (*value ? strlen(value) + 1 : 0);

	if (!*key || *count == LIST_MOST || size > PAIR_MAX || used + size + 1 > KUBE_LABELS_MAX ||
	    strpbrk(key, ",=") || strpbrk(value, ",="))
		return false;
	snprintf(list + used, KUBE_LABELS_MAX + 1 - used, "%s%s%s%s", used ? "," : "", key,
		 *value ? "=" : "", value);
	(*count)++;
	return true;
}

static void read_selector(struct walk *w)
{
	struct json_slice slice;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &slice)) {
		char key[KUBE_NAME_MAX] = "", value[KUBE_WORD_MAX];

		if (!slice.escaped && slice.size < sizeof(key))
			memcpy(key, slice.data, slice.size);
		read_cut(w->r, value, sizeof(value));
		if (!*value || !node_label_is_kept(key) ||
		    !pair_add(w->wish->labels, &w->label_count, key, value))
			w->wish->wants |= WANTS_NODES;
	}
}

/*
 * A toleration that is passed over only makes the pod wait where it need not: those for all keys, and those of NoExecute alone, which the API
 * server adds to each pod.
 */
static void read_toleration(struct walk *w)
{
	char name[KUBE_NAME_MAX] = "", value[KUBE_WORD_MAX] = "",
	     effect[KUBE_WORD_MAX] = "", operator[KUBE_WORD_MAX] = "";
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "key"))
			read_cut(w->r, name, sizeof(name));
		else if (pull_key_is(&key, "value"))
			read_cut(w->r, value, sizeof(value));
		else if (pull_key_is(&key, "effect"))
			read_cut(w->r, effect, sizeof(effect));
		else if (pull_key_is(&key, "operator"))
			read_cut(w->r, operator, sizeof(operator));
		else
			pull_skip(w->r);
	}
	if (!*name || (*effect && strcmp(effect, "NoSchedule") != 0) ||
	    strcmp(name, KUBE_GPU) == 0 || strncmp(name, "node.kubernetes.io/", 19) == 0)
		return;
	if (strcmp(operator, "Exists") == 0)
		value[0] = '\0';
	else if (*operator&& strcmp(operator, "Equal") != 0)
		return;
	(void)pair_add(w->wish->tolerates, &w->tolerate_count, name, value);
}

/* Whether a member of this object says what must hold. */
static bool read_required(struct walk *w)
{
	struct json_slice key;
	bool required = false;

	if (!enter_object(w->r))
		return false;
	while (pull_member(w->r, &key)) {
		bool here = pull_key_is(&key, "requiredDuringSchedulingIgnoredDuringExecution");

		if (here && pull_peek(w->r) == PULL_ARRAY) {
			pull_array(w->r);
			for (; pull_element(w->r); required = true)
				pull_skip(w->r);
		} else {
			required |= here && pull_peek(w->r) == PULL_OBJECT;
			pull_skip(w->r);
		}
	}
	return required;
}

static void read_affinity(struct walk *w)
{
	static const struct {
		const char *name;
		uint32_t wants;
	} kinds[] = { { "nodeAffinity", WANTS_NODES },
		      { "podAffinity", WANTS_PODS },
		      { "podAntiAffinity", WANTS_PODS } };
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		uint32_t wants = 0;

		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (pull_key_is(&key, kinds[i].name))
				wants = kinds[i].wants;
		if (!read_required(w))
			continue;
		if (!wants)
			refuse(w->wish, "affinity of a new kind that is required");
		w->wish->wants |= wants;
	}
}

static void read_spread(struct walk *w)
{
	char unmet[KUBE_WORD_MAX] = "DoNotSchedule";
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "whenUnsatisfiable"))
			read_cut(w->r, unmet, sizeof(unmet));
		else
			pull_skip(w->r);
	}
	if (strcmp(unmet, "DoNotSchedule") == 0)
		w->wish->wants |= WANTS_SPREAD;
	else if (strcmp(unmet, "ScheduleAnyway") != 0)
		refuse(w->wish, "topologySpreadConstraints with whenUnsatisfiable %.20s", unmet);
}

/* Where it lies decides on which nodes the pod can run. */
static void read_volume(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "persistentVolumeClaim") || pull_key_is(&key, "ephemeral"))
			w->wish->wants |= WANTS_CLAIMS;
		pull_skip(w->r);
	}
}

static void read_request_names(struct walk *w)
{
	static const char *const known[] = { KUBE_GPU, "cpu", "memory" };
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		bool fine = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			fine |= pull_key_is(&key, known[i]);
		if (!fine)
			w->wish->wants |= WANTS_RESOURCES;
		pull_skip(w->r);
	}
}

static void read_resource_names(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "requests")) {
			read_request_names(w);
		} else {
			pull_skip(w->r); /* "claims" names those of the pod, by container */
		}
	}
}

static void read_port(struct walk *w)
{
	struct json_slice key;
	int64_t port = 0;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "hostPort") && pull_peek(w->r) == PULL_NUMBER)
			pull_int(w->r, &port);
		else
			pull_skip(w->r);
	}
	if (port)
		w->wish->wants |= WANTS_PORTS;
}

static void read_container(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "resources")) {
			read_resource_names(w);
		} else if (pull_key_is(&key, "ports")) {
			if (enter_array(w->r))
				while (pull_element(w->r))
					read_port(w);
		} else {
			pull_skip(w->r);
		}
	}
}

static void read_each(struct walk *w, void (*read)(struct walk *w))
{
	if (!enter_array(w->r))
		return;
	while (pull_element(w->r))
		read(w);
}

static bool read_claim_name(struct walk *w, struct claim_name *ret)
{
	struct json_slice key;

	*ret = (struct claim_name){ 0 };
	if (!enter_object(w->r))
		return false;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "name"))
			read_cut(w->r, ret->own, sizeof(ret->own));
		else if (pull_key_is(&key, "resourceClaimName"))
			read_cut(w->r, ret->claim, sizeof(ret->claim));
		else
			pull_skip(w->r);
	}
	return true;
}

static void read_claim(struct walk *w)
{
	struct claim_name claim;

	if (!read_claim_name(w, &claim))
		return;
	if (w->wanted_count == WISH_CLAIMS_MAX)
		refuse(w->wish, "more than %d ResourceClaims", WISH_CLAIMS_MAX);
	else
		w->wanted[w->wanted_count++] = claim;
}

static void read_claim_made(struct walk *w)
{
	struct claim_name claim;

	if (read_claim_name(w, &claim) && w->made_count < WISH_CLAIMS_MAX)
		w->made[w->made_count++] = claim;
}

static void read_status(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "resourceClaimStatuses"))
			read_each(w, read_claim_made);
		else
			pull_skip(w->r);
	}
}

/* The claim of a template is named in the pod's status; one that is said there to be nothing is not needed. */
static const char *claim_of(struct walk *w, const struct claim_name *wanted)
{
	for (uint32_t i = 0; !wanted->claim[0] && i < w->made_count; i++)
		if (strcmp(w->made[i].own, wanted->own) == 0)
			return w->made[i].claim;
	return wanted->claim[0] ? wanted->claim : NULL;
}

static void claims_find(struct walk *w)
{
	struct pod_wish *wish = w->wish;
	size_t used = 0;

	wish->own_gpus = wish->use.gpus;
	for (uint32_t i = 0; i < w->wanted_count; i++) {
		const char *name = claim_of(w, &w->wanted[i]);

		wish->claims_missing |= !name;
		if (!name || !*name)
			continue;
		if (used + strlen(name) + 2 > sizeof(wish->claims)) {
			refuse(wish, "ResourceClaims with names of more than %d characters",
			       WISH_CLAIMS_BYTES - 2);
			return;
		}
		used += (size_t)snprintf(wish->claims + used, sizeof(wish->claims) - used, "%s%s",
					 used ? "\n" : "", name);
	}
}

static void read_preemption(struct walk *w)
{
	char policy[KUBE_WORD_MAX];

	read_cut(w->r, policy, sizeof(policy));
	w->wish->preempts = strcmp(policy, "Never") != 0;
}

/* Of these the text counts: pods of one template have the same. */
static bool is_rule(const struct json_slice *key)
{
	return pull_key_is(key, "nodeSelector") || pull_key_is(key, "tolerations") ||
	       pull_key_is(key, "affinity") || pull_key_is(key, "topologySpreadConstraints");
}

static void keep_rule(struct walk *w, const struct json_slice *key, struct json_slice value)
{
	if (!is_rule(key) || w->r->problem)
		return;
	buf_addf(&w->rules, "%.*s:%.*s\n", (int)key->size, key->data, (int)value.size, value.data);
	if (pull_key_is(key, "affinity") &&
	    memmem(value.data, value.size, "\"namespaceSelector\"", 19))
		w->wish->wants |= WANTS_NAMESPACES;
}

static void read_scheduling_group(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "podGroupName"))
			read_cut(w->r, w->given.native, sizeof(w->given.native));
		else
			pull_skip(w->r);
	}
	if (!w->given.native[0])
		refuse(w->wish, "a schedulingGroup that names no PodGroup");
}

static void read_spec(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		const char *from = (pull_peek(w->r), w->r->at);
		const struct json_slice name = key;

		if (pull_key_is(&key, "nodeSelector")) {
			read_selector(w);
		} else if (pull_key_is(&key, "tolerations")) {
			read_each(w, read_toleration);
		} else if (pull_key_is(&key, "affinity")) {
			read_affinity(w);
		} else if (pull_key_is(&key, "topologySpreadConstraints")) {
			read_each(w, read_spread);
		} else if (pull_key_is(&key, "volumes")) {
			read_each(w, read_volume);
		} else if (pull_key_is(&key, "containers") || pull_key_is(&key, "initContainers")) {
			read_each(w, read_container);
		} else if (pull_key_is(&key, "resourceClaims")) {
			read_each(w, read_claim);
		} else if (pull_key_is(&key, "priority") && pull_peek(w->r) == PULL_NUMBER) {
			pull_int(w->r, &w->class_priority);
		} else if (pull_key_is(&key, "preemptionPolicy")) {
			read_preemption(w);
		} else if (pull_key_is(&key, "schedulingGroup")) {
			read_scheduling_group(w);
		} else {
			if (pull_key_is(&key, "workloadRef"))
				refuse(w->wish, "%.*s", (int)key.size, key.data);
			if (pull_key_is(&key, "resources"))
				read_resource_names(w);
			else
				pull_skip(w->r);
		}
		keep_rule(w, &name, (struct json_slice){ from, (size_t)(w->r->at - from), false });
	}
}

/* --- what follows ------------------------------------------------------------------------------------------------- */

static int64_t number_of(struct pod_wish *wish, const char *what, const char *text, int64_t least,
			 int64_t most)
{
	char *end;
	long long number;

	if (!*text)
		return 0;
	number = strtoll(text, &end, 10);
	if (*end || end == text || number < least || number > most) {
		refuse(wish, "%s \"%.40s\": it must be a number from %lld to %lld", what, text,
		       (long long)least, (long long)most);
		return 0;
	}
	return number;
}

static void kind_set(struct pod_wish *wish, enum gang_kind kind, const char *name)
{
	wish->kind = kind;
	snprintf(wish->gang, sizeof(wish->gang), "%s", name);
}

/* A JobSet makes several Jobs of one template: they belong together. Its templates may start one after the other, so they don't. */
static void job_find(struct walk *w)
{
	struct pod_wish *wish = w->wish;
	const struct conventions *given = &w->given;
	char name[2 * KUBE_WORD_MAX];

	kind_set(wish, GANG_JOB, given->owner);
	if (!given->jobset[0] || !given->replicated[0])
		return;
	wish->times = number_of(wish, "jobset.sigs.k8s.io/replicatedjob-replicas", given->replicas,
				1, ENGINE_TASKS_MAX);
	if (wish->times <= 1)
		return;
	snprintf(name, sizeof(name), "%s-%s", given->jobset, given->replicated);
	kind_set(wish, GANG_JOBSET, name);
	memcpy(wish->asked, given->jobset, sizeof(given->jobset));
	memcpy(wish->part, given->replicated, sizeof(given->replicated));
}

static void lws_find(struct walk *w)
{
	const struct conventions *given = &w->given;
	char name[2 * KUBE_WORD_MAX];

	snprintf(name, sizeof(name), "%s-%s", given->lws, given->lws_group);
	kind_set(w->wish, GANG_LWS, name);
	memcpy(w->wish->asked, given->lws, sizeof(given->lws));
}

/* Replicas of these come and go one by one. */
static bool owner_is_of_single_pods(const struct pod_wish *wish)
{
	static const char *const kinds[] = { "ReplicaSet", "StatefulSet",
					     "DaemonSet",  "ReplicationController",
					     "Node",       "Workflow" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(wish->owner_kind, kinds[i]) == 0)
			return true;
	return !wish->owner_kind[0];
}

static void kind_find(struct walk *w)
{
	struct pod_wish *wish = w->wish;
	const struct conventions *given = &w->given;

	wish->size = number_of(wish, WISH_GANG_SIZE, given->size, 1, ENGINE_TASKS_MAX);
	if (given->own[0]) {
		kind_set(wish, GANG_OWN, given->own);
		if (!wish->size)
			refuse(wish, WISH_GANG " without " WISH_GANG_SIZE);
	} else if (given->native[0]) {
		kind_set(wish, GANG_NATIVE, given->native);
	} else if (given->sigs[0]) {
		kind_set(wish, GANG_SIGS, given->sigs);
	} else if (given->volcano[0]) {
		kind_set(wish, GANG_VOLCANO, given->volcano);
	} else if (given->kueue[0]) {
		kind_set(wish, GANG_KUEUE, given->kueue);
		if (!wish->size)
			wish->size = number_of(wish, "kueue.x-k8s.io/pod-group-total-count",
					       given->kueue_size, 1, ENGINE_TASKS_MAX);
		if (!wish->size)
			refuse(wish, "a pod group of Kueue without its total count");
	} else if (strcmp(wish->owner_kind, "Job") == 0 &&
		   strncmp(wish->owner_api, "batch/", 6) == 0) {
		job_find(w);
	} else if (given->lws[0] && given->lws_group[0] && wish->owner_kind[0]) {
		lws_find(w);
	} else if (strncmp(wish->owner_api, "kubeflow.org/", 13) == 0) {
		kind_set(wish, GANG_KUBEFLOW, given->owner);
	} else if (strcmp(wish->owner_kind, "RayCluster") == 0 &&
		   strncmp(wish->owner_api, "ray.io/", 7) == 0) {
		kind_set(wish, GANG_RAY, given->owner);
	} else if (!owner_is_of_single_pods(wish)) {
		kind_set(wish, wish->size ? GANG_OWN : GANG_OTHER, given->owner);
	}
	if (wish->size == 1 || wish->kind == GANG_ALONE)
		kind_set(wish, GANG_ALONE, "");
}

static void priority_find(struct walk *w)
{
	int64_t value = w->class_priority;

	if (w->given.priority[0])
		value = number_of(w->wish, WISH_PRIORITY, w->given.priority, -PRIORITY_MOST,
				  PRIORITY_MOST);
	if (value > PRIORITY_MOST)
		value = PRIORITY_MOST;
	w->wish->priority = value < -PRIORITY_MOST ? -PRIORITY_MOST : value;
}

int pod_wish_read(const char *json, size_t size, const struct kube_pod *pod, struct pod_wish *ret,
		  struct err *err)
{
	struct json_reader r;
	struct walk w = { .r = &r, .wish = ret, .rules = BUF_INIT };
	struct json_slice key;
	struct digest digest;

	memset(ret, 0, sizeof(*ret));
	ret->use = pod->use;
	ret->preempts = true;
	pull_init(&r, json, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata"))
			read_metadata(&w);
		else if (pull_key_is(&key, "spec"))
			read_spec(&w);
		else if (pull_key_is(&key, "status"))
			read_status(&w);
		else
			pull_skip(&r);
	}
	digest = digest_of(w.rules.data, w.rules.size);
	digest_format(&digest, ret->rules);
	buf_deinit(&w.rules);
	if (pull_finish(&r, err) < 0)
		return err ? -(int)err->code : -(int)ERR_INVALID;
	kind_find(&w);
	priority_find(&w);
	claims_find(&w);
	return 0;
}
