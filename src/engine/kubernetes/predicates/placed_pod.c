/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of a pod what decides where it may run, and what others find where it runs. */
#include <stdio.h>
#include <string.h>

#include "engine/kubernetes/predicates/amounts.h"
#include "engine/kubernetes/reading.h"

struct reading {
	struct json_reader r;
	struct block block;
	struct placed_pod pod;
	struct wishes wishes;
	struct chain ports, claims, near, apart;
	struct chain own; /* names of volumes with a claim of the pod's own */
};

static void read_metadata(struct reading *from)
{
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "uid")) {
			from->pod.uid = read_text(&from->r, &from->block);
		} else if (pull_key_is(&key, "name")) {
			from->pod.name = read_text(&from->r, &from->block);
		} else if (pull_key_is(&key, "namespace")) {
			from->pod.namespace = read_text(&from->r, &from->block);
		} else if (pull_key_is(&key, "labels")) {
			from->pod.labels = read_labels_of(&from->r, &from->block);
		} else if (pull_key_is(&key, "deletionTimestamp")) {
			from->pod.deleting = pull_peek(&from->r) == PULL_STRING;
			pull_skip(&from->r);
		} else {
			pull_skip(&from->r);
		}
	}
}

/* --- containers -------------------------------------------------------------------------------------------- */

static at_t read_requests(struct json_reader *r, struct block *block)
{
	struct json_slice key;
	at_t list = 0;

	if (!enter_object(r))
		return 0;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "requests"))
			list = read_amounts(r, block);
		else
			pull_skip(r);
	}
	return list;
}

static void read_port(struct reading *from, struct chain *ports)
{
	struct placed_port port = { 0 }, *link;
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "hostPort"))
			port.port = read_int32(&from->r, 0);
		else if (pull_key_is(&key, "protocol"))
			port.protocol = read_text(&from->r, &from->block);
		else if (pull_key_is(&key, "hostIP"))
			port.ip = read_text(&from->r, &from->block);
		else
			pull_skip(&from->r);
	}
	if (port.port <= 0)
		return;
	link = chain_add(&from->block, ports, sizeof(*link));
	*link = port;
}

static void chain_join(struct block *block, struct chain *to, const struct chain *more)
{
	if (!more->first)
		return;
	if (to->last)
		memcpy(block->data + to->last, &more->first, sizeof(more->first));
	else
		to->first = more->first;
	to->last = more->last;
}

/* Ports of a container that only begins are free again when the pod runs. */
static void read_container(struct reading *from, bool begins)
{
	struct container found = { .begins = begins }, *link;
	struct block *block = &from->wishes.block;
	struct chain ports = { 0 };
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "name")) {
			found.name = read_text(&from->r, block);
		} else if (pull_key_is(&key, "resources")) {
			found.requests = read_requests(&from->r, block);
		} else if (pull_key_is(&key, "restartPolicy")) {
			found.stays = text_is(block, read_text(&from->r, block), "Always");
		} else if (pull_key_is(&key, "ports")) {
			if (enter_array(&from->r))
				while (pull_element(&from->r))
					read_port(from, &ports);
		} else {
			pull_skip(&from->r);
		}
	}
	if (!begins || found.stays)
		chain_join(&from->block, &from->ports, &ports);
	link = chain_add(block, &from->wishes.containers, sizeof(*link));
	*link = found;
}

static void read_containers(struct reading *from, bool begins)
{
	if (!enter_array(&from->r))
		return;
	while (pull_element(&from->r))
		read_container(from, begins);
}

/* --- affinity, spread, tolerations, volumes ------------------------------------------------------------------ */

static void read_pod_term(struct reading *from, struct chain *terms)
{
	struct placed_pod_term term = { 0 }, *link;
	struct block *block = &from->block;
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "topologyKey"))
			term.topology_key = read_text(&from->r, block);
		else if (pull_key_is(&key, "namespaces"))
			term.namespaces = read_words(&from->r, block);
		else if (pull_key_is(&key, "labelSelector"))
			read_selector(&from->r, block, &term.pods);
		else if (pull_key_is(&key, "namespaceSelector"))
			read_selector(&from->r, block, &term.where);
		else
			pull_skip(&from->r);
	}
	link = chain_add(block, terms, sizeof(*link));
	*link = term;
}

static void read_pod_affinity(struct reading *from, struct chain *terms)
{
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (!pull_key_is(&key, "requiredDuringSchedulingIgnoredDuringExecution")) {
			pull_skip(&from->r);
			continue;
		}
		if (enter_array(&from->r))
			while (pull_element(&from->r))
				read_pod_term(from, terms);
	}
}

static void read_node_affinity(struct reading *from)
{
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "requiredDuringSchedulingIgnoredDuringExecution"))
			from->pod.has_node_terms =
				read_node_selector(&from->r, &from->block, &from->pod.node_terms);
		else
			pull_skip(&from->r);
	}
}

static void read_affinity(struct reading *from)
{
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "nodeAffinity"))
			read_node_affinity(from);
		else if (pull_key_is(&key, "podAffinity"))
			read_pod_affinity(from, &from->near);
		else if (pull_key_is(&key, "podAntiAffinity"))
			read_pod_affinity(from, &from->apart);
		else
			pull_skip(&from->r);
	}
}

/* One that only prefers is of no concern here. */
static void read_spread(struct reading *from, struct chain *spreads)
{
	struct placed_spread spread = { .max_skew = 1, .min_domains = 1 }, *link;
	struct block *block = &from->block;
	struct json_slice key;
	bool must = true;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "topologyKey"))
			spread.topology_key = read_text(&from->r, block);
		else if (pull_key_is(&key, "maxSkew"))
			spread.max_skew = read_int32(&from->r, 1);
		else if (pull_key_is(&key, "minDomains"))
			spread.min_domains = read_int32(&from->r, 1);
		else if (pull_key_is(&key, "whenUnsatisfiable"))
			must = text_is(block, read_text(&from->r, block), "DoNotSchedule");
		else if (pull_key_is(&key, "labelSelector"))
			read_selector(&from->r, block, &spread.pods);
		else if (pull_key_is(&key, "matchLabelKeys"))
			spread.label_keys = read_words(&from->r, block);
		else if (pull_key_is(&key, "nodeAffinityPolicy"))
			spread.any_affinity = text_is(block, read_text(&from->r, block), "Ignore");
		else if (pull_key_is(&key, "nodeTaintsPolicy"))
			spread.honours_taints = text_is(block, read_text(&from->r, block), "Honor");
		else
			pull_skip(&from->r);
	}
	if (!must)
		return;
	link = chain_add(block, spreads, sizeof(*link));
	*link = spread;
}

static uint32_t toleration_op(const struct block *block, at_t text)
{
	return !text || text_is(block, text, "Equal") ? OP_EQUAL
	       : text_is(block, text, "Exists")       ? OP_EXISTS
	       : text_is(block, text, "Gt")           ? OP_GT
	       : text_is(block, text, "Lt")           ? OP_LT
						      : OP_NONE;
}

static void read_toleration(struct reading *from, struct chain *list)
{
	struct placed_toleration found = { .op = OP_EQUAL }, *link;
	struct block *block = &from->block;
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "key"))
			found.key = read_text(&from->r, block);
		else if (pull_key_is(&key, "value"))
			found.value = read_text(&from->r, block);
		else if (pull_key_is(&key, "effect"))
			found.effect = read_text(&from->r, block);
		else if (pull_key_is(&key, "operator"))
			found.op = toleration_op(block, read_text(&from->r, block));
		else
			pull_skip(&from->r);
	}
	link = chain_add(block, list, sizeof(*link));
	*link = found;
}

/* A volume that lives as long as the pod has a claim that is called after both. */
static void read_volume(struct reading *from)
{
	struct json_slice key, inner;
	struct placed_word *word;
	at_t claim = 0, name = 0;
	bool own = false;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "name")) {
			name = read_text(&from->r, &from->block);
		} else if (pull_key_is(&key, "ephemeral")) {
			own = pull_peek(&from->r) == PULL_OBJECT;
			pull_skip(&from->r);
		} else if (pull_key_is(&key, "persistentVolumeClaim") &&
			   pull_peek(&from->r) == PULL_OBJECT) {
			pull_object(&from->r);
			while (pull_member(&from->r, &inner)) {
				if (pull_key_is(&inner, "claimName"))
					claim = read_text(&from->r, &from->block);
				else
					pull_skip(&from->r);
			}
		} else {
			pull_skip(&from->r);
		}
	}
	if (!claim && !own)
		return;
	word = chain_add(&from->block, own ? &from->own : &from->claims, sizeof(*word));
	word->text = own ? name : claim;
}

static void read_list(struct reading *from, void (*one)(struct reading *, struct chain *),
		      at_t *ret)
{
	struct chain chain = { 0 };

	if (!enter_array(&from->r))
		return;
	while (pull_element(&from->r))
		one(from, &chain);
	*ret = chain.first;
}

static void read_spec(struct reading *from)
{
	struct json_reader *r = &from->r;
	struct wishes *wishes = &from->wishes;
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "nodeName"))
			from->pod.node = read_text(r, &from->block);
		else if (pull_key_is(&key, "nodeSelector"))
			from->pod.node_selector = read_labels_of(r, &from->block);
		else if (pull_key_is(&key, "affinity"))
			read_affinity(from);
		else if (pull_key_is(&key, "tolerations"))
			read_list(from, read_toleration, &from->pod.tolerations);
		else if (pull_key_is(&key, "topologySpreadConstraints"))
			read_list(from, read_spread, &from->pod.spreads);
		else if (pull_key_is(&key, "containers"))
			read_containers(from, false);
		else if (pull_key_is(&key, "initContainers"))
			read_containers(from, true);
		else if (pull_key_is(&key, "resources"))
			wishes->pod_requests = read_requests(r, &wishes->block);
		else if (pull_key_is(&key, "overhead"))
			wishes->overhead = read_amounts(r, &wishes->block);
		else if (pull_key_is(&key, "volumes") && pull_peek(r) == PULL_ARRAY)
			for (pull_array(r); pull_element(r);)
				read_volume(from);
		else
			pull_skip(r);
	}
}

/* --- status ---------------------------------------------------------------------------------------------------- */

static void read_container_status(struct reading *from)
{
	struct block *block = &from->wishes.block;
	struct container found = { 0 }, *link;
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "name")) {
			found.name = read_text(&from->r, block);
		} else if (pull_key_is(&key, "allocatedResources")) {
			found.allocated = read_amounts(&from->r, block);
		} else if (pull_key_is(&key, "resources")) {
			found.has_status = pull_peek(&from->r) == PULL_OBJECT;
			found.actuated = read_requests(&from->r, block);
		} else {
			pull_skip(&from->r);
		}
	}
	link = chain_add(block, &from->wishes.statuses, sizeof(*link));
	*link = found;
}

static void read_condition(struct reading *from)
{
	struct block *block = &from->wishes.block;
	at_t type = 0, reason = 0;
	struct json_slice key;

	if (!enter_object(&from->r))
		return;
	while (pull_member(&from->r, &key)) {
		if (pull_key_is(&key, "type"))
			type = read_text(&from->r, block);
		else if (pull_key_is(&key, "reason"))
			reason = read_text(&from->r, block);
		else
			pull_skip(&from->r);
	}
	if (text_is(block, type, "PodResizePending"))
		from->wishes.infeasible = text_is(block, reason, "Infeasible");
}

static void read_status(struct reading *from)
{
	struct block *block = &from->wishes.block;
	struct json_reader *r = &from->r;
	struct json_slice key;
	at_t phase = 0;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "phase")) {
			phase = read_text(r, block);
		} else if (pull_key_is(&key, "resources")) {
			from->wishes.has_pod_status = pull_peek(r) == PULL_OBJECT;
			from->wishes.pod_actuated = read_requests(r, block);
		} else if (pull_key_is(&key, "allocatedResources")) {
			from->wishes.pod_allocated = read_amounts(r, block);
		} else if (pull_key_is(&key, "conditions")) {
			if (enter_array(r))
				while (pull_element(r))
					read_condition(from);
		} else if (pull_key_is(&key, "containerStatuses") ||
			   pull_key_is(&key, "initContainerStatuses")) {
			if (enter_array(r))
				while (pull_element(r))
					read_container_status(from);
		} else {
			pull_skip(r);
		}
	}
	from->pod.over = text_is(block, phase, "Succeeded") || text_is(block, phase, "Failed");
}

static void name_own_claims(struct reading *from)
{
	struct block *block = &from->block;

	PLACED_EACH(block->data, placed_word, volume, from->own.first)
	{
		char name[512];
		struct placed_word *word;
		at_t text;

		snprintf(name, sizeof(name), "%.253s-%.253s",
			 placed_text(block->data, from->pod.name),
			 placed_text(block->data, volume->text));
		text = block_text(block, name, strlen(name));
		word = chain_add(block, &from->claims, sizeof(*word));
		word->text = text;
	}
}

static void finish(struct reading *from)
{
	name_own_claims(from);
	from->pod.near = from->near.first;
	from->pod.apart = from->apart.first;
	from->pod.ports = from->ports.first;
	from->pod.claims = from->claims.first;
	from->wishes.runs = from->pod.node != 0;
	from->pod.requests =
		amounts_copy(&from->block, &from->wishes.block, wishes_sum(&from->wishes));
	from->pod.size = (uint32_t)from->block.size;
	memcpy(from->block.data, &from->pod, sizeof(from->pod));
}

int placed_pod_read(const char *json, size_t size, struct placed_pod **ret, struct err *err)
{
	struct reading from = { 0 };
	struct json_slice key;
	void *taken;
	int rc;

	(void)block_init(&from.block, size, sizeof(from.pod));
	(void)block_init(&from.wishes.block, size, sizeof(int64_t));
	pull_init(&from.r, json, size);
	pull_object(&from.r);
	while (pull_member(&from.r, &key)) {
		if (pull_key_is(&key, "metadata"))
			read_metadata(&from);
		else if (pull_key_is(&key, "spec"))
			read_spec(&from);
		else if (pull_key_is(&key, "status"))
			read_status(&from);
		else
			pull_skip(&from.r);
	}
	finish(&from);
	from.block.full |= from.wishes.block.full;
	rc = block_take(&from.block, &from.r, &taken, err);
	block_deinit(&from.block);
	block_deinit(&from.wishes.block);
	if (rc < 0)
		return rc;
	*ret = taken;
	return 0;
}
