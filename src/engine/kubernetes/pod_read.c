/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod takes of its node is what the API server counts: its containers together with those that start first and stay; or, where that
 * is more, one container of its beginning with those that stay and began before it; and its overhead.
 */
#include <string.h>

#include "engine/kubernetes/reading.h"

struct status_of_container {
	bool running, ended;
	int64_t code, ended_s;
	char name[KUBE_WORD_MAX], ended_reason[KUBE_WORD_MAX], waiting_reason[KUBE_WORD_MAX],
		waiting_text[KUBE_TEXT_MAX], ended_text[KUBE_TEXT_MAX];
};

struct wishes {
	struct kube_use all, stay, begin, overhead; /* stay: sidecars so far */
};

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void use_add(struct kube_use *to, const struct kube_use *from)
{
	to->gpus += from->gpus;
	to->cpu_milli += from->cpu_milli;
	to->memory_mib += from->memory_mib;
}

static void use_most(struct kube_use *to, const struct kube_use *from)
{
	to->gpus = larger(to->gpus, from->gpus);
	to->cpu_milli = larger(to->cpu_milli, from->cpu_milli);
	to->memory_mib = larger(to->memory_mib, from->memory_mib);
}

static uint64_t read_number(struct json_reader *r)
{
	char text[KUBE_WORD_MAX];
	uint64_t number = 0;

	read_cut(r, text, sizeof(text));
	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9' || number > UINT32_MAX)
			return UINT64_MAX;
		number = number * 10 + (uint64_t)(*p - '0');
	}
	return *text ? number : UINT64_MAX;
}

static void read_labels(struct json_reader *r, struct kube_pod *pod)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, KUBE_LABEL_INSTANCE))
			read_cut(r, pod->instance, sizeof(pod->instance));
		else if (pull_key_is(&key, KUBE_LABEL_JOB))
			pod->job = read_number(r);
		else if (pull_key_is(&key, KUBE_LABEL_ATTEMPT))
			pod->attempt = read_number(r);
		else if (pull_key_is(&key, KUBE_LABEL_RANK))
			pod->rank = read_number(r);
		else
			pull_skip(r);
	}
}

static void read_notes(struct json_reader *r, struct kube_pod *pod)
{
	char ranks[KUBE_WORD_MAX] = "";
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, KUBE_NOTE_NODE))
			read_cut(r, pod->meant_for, sizeof(pod->meant_for));
		else if (pull_key_is(&key, KUBE_NOTE_STOPPED))
			read_cut(r, pod->stopped, sizeof(pod->stopped));
		else if (pull_key_is(&key, KUBE_NOTE_LEASE))
			pod->lease_ms = (int64_t)read_number(r);
		else if (pull_key_is(&key, KUBE_NOTE_RANKS))
			read_cut(r, ranks, sizeof(ranks));
		else
			pull_skip(r);
	}
	pod->changes = strcmp(ranks, KUBE_RANKS_CHANGE) == 0;
}

static void read_finalizers(struct json_reader *r, struct kube_pod *pod)
{
	struct json_slice text;

	if (!enter_array(r))
		return;
	while (pull_element(r)) {
		pull_string(r, &text);
		pod->finalizer |= pull_key_is(&text, KUBE_FINALIZER);
	}
}

static void read_metadata(struct json_reader *r, struct kube_pod *pod, int64_t *asked_s)
{
	struct json_slice key;
	int64_t deletion_s = 0, grace_s = 0;
	bool grace = false;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "uid")) {
			read_cut(r, pod->uid, sizeof(pod->uid));
		} else if (pull_key_is(&key, "name")) {
			read_cut(r, pod->name, sizeof(pod->name));
		} else if (pull_key_is(&key, "namespace")) {
			read_cut(r, pod->namespace, sizeof(pod->namespace));
		} else if (pull_key_is(&key, "labels")) {
			read_labels(r, pod);
		} else if (pull_key_is(&key, "annotations")) {
			read_notes(r, pod);
		} else if (pull_key_is(&key, "finalizers")) {
			read_finalizers(r, pod);
		} else if (pull_key_is(&key, "deletionTimestamp")) {
			pod->deleting = pull_peek(r) == PULL_STRING;
			deletion_s = read_time(r);
		} else if (pull_key_is(&key, "deletionGracePeriodSeconds")) {
			grace = pull_peek(r) == PULL_NUMBER;
			if (grace)
				pull_int(r, &grace_s);
			else
				pull_skip(r);
		} else {
			pull_skip(r);
		}
	}
	pod->forced = pod->deleting && grace && grace_s == 0;
	*asked_s = pod->deleting && deletion_s ? deletion_s - grace_s : INT64_MAX;
}

static void read_container_resources(struct json_reader *r, struct kube_use *use)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "requests"))
			read_resources(r, use, NULL);
		else
			pull_skip(r);
	}
}

static void read_container(struct json_reader *r, bool begins, struct wishes *wishes)
{
	struct kube_use use = { 0 };
	char restart[KUBE_WORD_MAX] = "";
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "resources"))
			read_container_resources(r, &use);
		else if (pull_key_is(&key, "restartPolicy"))
			read_cut(r, restart, sizeof(restart));
		else
			pull_skip(r);
	}
	if (!begins) {
		use_add(&wishes->all, &use);
		return;
	}
	use_add(&use, &wishes->stay);
	use_most(&wishes->begin, &use);
	if (strcmp(restart, "Always") == 0)
		wishes->stay = use;
}

static void read_containers(struct json_reader *r, bool begins, struct wishes *wishes)
{
	if (!enter_array(r))
		return;
	while (pull_element(r))
		read_container(r, begins, wishes);
}

static bool read_any(struct json_reader *r)
{
	bool any = false;

	if (!enter_array(r))
		return false;
	while (pull_element(r)) {
		any = true;
		pull_skip(r);
	}
	return any;
}

static void read_spec(struct json_reader *r, struct kube_pod *pod)
{
	struct wishes wishes = { 0 };
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "nodeName"))
			read_cut(r, pod->node, sizeof(pod->node));
		else if (pull_key_is(&key, "schedulerName"))
			read_cut(r, pod->scheduler, sizeof(pod->scheduler));
		else if (pull_key_is(&key, "containers"))
			read_containers(r, false, &wishes);
		else if (pull_key_is(&key, "initContainers"))
			read_containers(r, true, &wishes);
		else if (pull_key_is(&key, "overhead"))
			read_resources(r, &wishes.overhead, NULL);
		else if (pull_key_is(&key, "schedulingGates"))
			pod->gated = read_any(r);
		else
			pull_skip(r);
	}
	pod->use = wishes.all;
	use_add(&pod->use, &wishes.stay);
	use_most(&pod->use, &wishes.begin);
	use_add(&pod->use, &wishes.overhead);
}

static void read_state(struct json_reader *r, struct status_of_container *status)
{
	struct json_slice key, inner;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		bool ended = pull_key_is(&key, "terminated"),
		     waiting = pull_key_is(&key, "waiting");

		status->running |= pull_key_is(&key, "running") && pull_peek(r) == PULL_OBJECT;
		if ((!ended && !waiting) || pull_peek(r) != PULL_OBJECT) {
			pull_skip(r);
			continue;
		}
		status->ended |= ended;
		pull_object(r);
		while (pull_member(r, &inner)) {
			if (ended && pull_key_is(&inner, "exitCode"))
				pull_int(r, &status->code);
			else if (ended && pull_key_is(&inner, "finishedAt"))
				status->ended_s = read_time(r);
			else if (pull_key_is(&inner, "reason"))
				read_cut(r, ended ? status->ended_reason : status->waiting_reason,
					 KUBE_WORD_MAX);
			else if (ended && pull_key_is(&inner, "message"))
				read_cut(r, status->ended_text, KUBE_TEXT_MAX);
			else if (waiting && pull_key_is(&inner, "message"))
				read_cut(r, status->waiting_text, KUBE_TEXT_MAX);
			else
				pull_skip(r);
		}
	}
}

/* Statuses come in any order: the container `main` may be behind others, which a webhook may have put there. */
struct statuses {
	struct status_of_container ours;
	bool any; /* `ours` is filled, */
	bool named; /* and it is `main` */
	uint32_t running; /* containers */
};

static bool read_one_status(struct json_reader *r, struct status_of_container *status)
{
	struct json_slice key;

	if (!enter_object(r))
		return false;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "name"))
			read_cut(r, status->name, sizeof(status->name));
		else if (pull_key_is(&key, "state"))
			read_state(r, status);
		else
			pull_skip(r);
	}
	return true;
}

static void read_container_status(struct json_reader *r, struct statuses *all)
{
	struct status_of_container status = { 0 };

	if (!read_one_status(r, &status))
		return;
	all->running += status.running;
	if (all->named || (all->any && strcmp(status.name, KUBE_CONTAINER) != 0))
		return;
	all->ours = status;
	all->any = true;
	all->named = strcmp(status.name, KUBE_CONTAINER) == 0;
}

/* An init container that did not do it: then the pod has failed, and says no more of it itself. */
static void read_init_status(struct json_reader *r, char ret[KUBE_TEXT_MAX])
{
	struct status_of_container status = { 0 };

	if (!read_one_status(r, &status))
		return;
	if (status.ended && status.code && !ret[0])
		snprintf(ret, KUBE_TEXT_MAX, "its init container %.20s: %.110s", status.name,
			 status.ended_text[0] ? status.ended_text : status.ended_reason);
}

static void take_statuses(struct kube_pod *pod, const struct statuses *all, int64_t asked_s)
{
	const struct status_of_container *status = &all->ours;

	pod->running = status->running;
	pod->ended = status->ended;
	pod->ended_first = status->ended && status->ended_s && status->ended_s < asked_s;
	pod->others_run = all->running > status->running;
	pod->code = status->code;
	memcpy(pod->ended_reason, status->ended_reason, sizeof(pod->ended_reason));
	memcpy(pod->waiting_reason, status->waiting_reason, sizeof(pod->waiting_reason));
	memcpy(pod->waiting_text, status->waiting_text, sizeof(pod->waiting_text));
	memcpy(pod->ended_text, status->ended_text, sizeof(pod->ended_text));
}

static void read_condition(struct json_reader *r, struct kube_pod *pod)
{
	char type[KUBE_WORD_MAX] = "", status[KUBE_WORD_MAX] = "", reason[KUBE_WORD_MAX] = "";
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "type"))
			read_cut(r, type, sizeof(type));
		else if (pull_key_is(&key, "status"))
			read_cut(r, status, sizeof(status));
		else if (pull_key_is(&key, "reason"))
			read_cut(r, reason, sizeof(reason));
		else
			pull_skip(r);
	}
	if (strcmp(type, "DisruptionTarget") == 0 && strcmp(status, "True") == 0)
		memcpy(pod->disruption, reason, sizeof(pod->disruption));
}

static enum pod_phase phase_of(const char *text)
{
	if (strcmp(text, "Running") == 0)
		return POD_RUNNING;
	if (strcmp(text, "Succeeded") == 0)
		return POD_SUCCEEDED;
	return strcmp(text, "Failed") == 0 ? POD_FAILED : POD_PENDING;
}

static void read_status(struct json_reader *r, struct kube_pod *pod, int64_t asked_s)
{
	char phase[KUBE_WORD_MAX] = "", begins[KUBE_TEXT_MAX] = "";
	struct statuses statuses = { 0 };
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "phase")) {
			read_cut(r, phase, sizeof(phase));
		} else if (pull_key_is(&key, "reason")) {
			read_cut(r, pod->reason, sizeof(pod->reason));
		} else if (pull_key_is(&key, "message")) {
			read_cut(r, pod->text, sizeof(pod->text));
		} else if (pull_key_is(&key, "nominatedNodeName")) {
			read_cut(r, pod->nominated, sizeof(pod->nominated));
		} else if (pull_key_is(&key, "conditions")) {
			if (enter_array(r))
				while (pull_element(r))
					read_condition(r, pod);
		} else if (pull_key_is(&key, "initContainerStatuses")) {
			if (enter_array(r))
				while (pull_element(r))
					read_init_status(r, begins);
		} else if (pull_key_is(&key, "containerStatuses")) {
			if (enter_array(r))
				while (pull_element(r))
					read_container_status(r, &statuses);
		} else {
			pull_skip(r);
		}
	}
	if (!pod->text[0])
		memcpy(pod->text, begins, sizeof(pod->text));
	take_statuses(pod, &statuses, asked_s);
	pod->phase = phase_of(phase);
}

int pod_read(const char *json, size_t size, struct kube_pod *ret, struct err *err)
{
	struct object_parts parts;
	int64_t asked_s = INT64_MAX;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = object_parts_read(json, size, &parts, err);
	if (rc < 0)
		return rc;
	read_metadata(&parts.metadata, ret, &asked_s);
	if (pull_finish(&parts.metadata, err) < 0)
		return -(int)ERR_INVALID;
	if (!ret->uid[0] || !ret->name[0])
		return err_set(err, ERR_INVALID, "a pod has no name or uid");
	read_spec(&parts.spec, ret);
	ret->unclear = pull_finish(&parts.spec, NULL) < 0;
	read_status(&parts.status, ret, asked_s);
	ret->unclear |= pull_finish(&parts.status, NULL) < 0;
	return 0;
}
