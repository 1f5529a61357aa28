/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/predicates/predicates.h"

#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/predicates/check.h"
#include "engine/kubernetes/predicates/match.h"

const char *predicate_name(enum predicate predicate)
{
	static const char *const names[PREDICATE_END] = {
		[PREDICATE_FITS] = "fits",
		[PREDICATE_NODE_NAME] = "named node",
		[PREDICATE_CORDONED] = "cordoned",
		[PREDICATE_TAINT] = "taint",
		[PREDICATE_NODE_AFFINITY] = "node affinity",
		[PREDICATE_PORT] = "host port",
		[PREDICATE_PODS] = "number of pods",
		[PREDICATE_RESOURCE] = "resources",
		[PREDICATE_VOLUME] = "volume",
		[PREDICATE_SPREAD] = "topology spread",
		[PREDICATE_AFFINITY] = "pod affinity",
		[PREDICATE_ANTI_AFFINITY] = "pod anti-affinity",
		[PREDICATE_DEVICES] = "a ResourceClaim",
	};

	return predicate < PREDICATE_END ? names[predicate] : "";
}

/* --- domains of a topology key ------------------------------------------------------------------------------------ */

static uint32_t text_hash(const char *text)
{
	uint32_t hash = 2166136261;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619;
	return hash;
}

struct value_slot {
	const char *value;
	uint32_t domain;
};

static uint32_t domain_of(struct value_slot *slots, uint32_t mask, const char *value,
			  uint32_t *count)
{
	uint32_t at = text_hash(value) & mask;

	while (slots[at].value && strcmp(slots[at].value, value) != 0)
		at = (at + 1) & mask;
	if (!slots[at].value)
		slots[at] = (struct value_slot){ value, ++*count };
	return slots[at].domain;
}

const struct topology *check_topology(struct check *check, const char *key)
{
	const struct predicates *p = check->p;
	struct topology *topology;
	struct value_slot *slots;
	uint32_t room = 4;

	for (topology = check->topologies; topology; topology = topology->next)
		if (strcmp(topology->key, key) == 0)
			return topology;
	while (room < 2 * p->count)
		room *= 2;
	slots = arena_new_array(check->arena, struct value_slot, room);
	topology = arena_new(check->arena, struct topology);
	topology->key = key;
	topology->domain = arena_new_array(check->arena, uint32_t, p->count + 1);
	for (uint32_t i = 0; i < p->count; i++) {
		const struct placed_node *node = p->nodes[i]->node;
		const char *value = node ? placed_label_find(node, node->labels, key) : NULL;

		if (value)
			topology->domain[i] = domain_of(slots, room - 1, value, &topology->count);
	}
	topology->next = check->topologies;
	check->topologies = topology;
	return topology;
}

const struct known_pod *check_pods(const struct check *check, const struct known_pod *from)
{
	while (from && strcmp(placed_text(from->pod, from->pod->uid),
			      placed_text(check->pod, check->pod->uid)) == 0)
		from = from->next;
	return from;
}

/* --- one node ------------------------------------------------------------------------------------------------------- */

static enum predicate node_suits(const struct check *check, const struct placed_node *node)
{
	const struct placed_pod *pod = check->pod;

	if (pod->node && strcmp(placed_text(pod, pod->node), placed_text(node, node->name)) != 0)
		return PREDICATE_NODE_NAME;
	if (node->cordoned && !tolerates(pod, "node.kubernetes.io/unschedulable", "", "NoSchedule"))
		return PREDICATE_CORDONED;
	if (untolerated(pod, node))
		return PREDICATE_TAINT;
	return pod_wants_node(pod, node) ? PREDICATE_FITS : PREDICATE_NODE_AFFINITY;
}

static enum predicate check_node(const struct check *check, const struct known_node *known)
{
	enum predicate reason;

	if (!known->node)
		return PREDICATE_END;
	reason = node_suits(check, known->node);
	if (reason != PREDICATE_FITS)
		return reason;
	if (!ports_free(check, known))
		return PREDICATE_PORT;
	reason = resources_free(check, known);
	if (reason != PREDICATE_FITS)
		return reason;
	if (!volumes_meet(check, known->node))
		return PREDICATE_VOLUME;
	if (!spread_meets(check, known))
		return PREDICATE_SPREAD;
	return relations_meet(check, known);
}

enum predicate predicates_check_one(const struct predicates *p, const struct placed_pod *pod,
				    const char *node, const char *const *counted, uint32_t times,
				    struct arena *arena, const char **problem)
{
	struct check check = {
		.p = p, .pod = pod, .counted = counted, .times = times, .arena = arena
	};
	const struct known_node *known = predicates_node(p, node);

	*problem = volumes_problem(&check);
	if (!known || !known->node)
		return PREDICATE_END;
	if (*problem)
		return PREDICATE_VOLUME;
	relations_begin(&check);
	spread_begin(&check);
	return check_node(&check, known);
}

static bool tolerates_key(const struct placed_pod *pod, const char *key)
{
	return tolerates(pod, key, "", "NoSchedule") && tolerates(pod, key, "any", "NoSchedule") &&
	       tolerates(pod, key, "any", "NoExecute");
}

bool predicates_gpu_taint_keeps(const struct predicates *p, const struct placed_pod *pod)
{
	return p->gpu_tainted > 0 && !tolerates_key(pod, KUBE_GPU);
}

void predicates_check(const struct predicates *p, const struct placed_pod *pod,
		      const char *const *counted, struct arena *arena, struct feasible *ret)
{
	struct check check = { .p = p, .pod = pod, .counted = counted, .times = 1, .arena = arena };

	*ret = (struct feasible){ .reason = arena_new_array(arena, uint8_t, p->count + 1) };
	ret->problem = volumes_problem(&check);
	if (!ret->problem) {
		relations_begin(&check);
		spread_begin(&check);
	}
	for (uint32_t i = 0; i < p->count; i++) {
		enum predicate reason = ret->problem && p->nodes[i]->node
						? PREDICATE_VOLUME
						: check_node(&check, p->nodes[i]);

		ret->reason[i] = (uint8_t)reason;
		if (reason == PREDICATE_END)
			continue;
		ret->nodes++;
		ret->failed[reason]++;
	}
	ret->fit = ret->failed[PREDICATE_FITS];
}
