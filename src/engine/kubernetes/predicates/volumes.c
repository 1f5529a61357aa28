/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that are bound: the node must be one from which the volume can be reached, by its node affinity and by its labels of zone and
 * region. A claim whose class waits for its first consumer gets a volume that is made for the node, which its class's topologies must have.
 * Any other claim that is not bound yet keeps the pod waiting.
 */
#include <stdio.h>
#include <string.h>

#include "engine/kubernetes/predicates/check.h"
#include "engine/kubernetes/predicates/match.h"

static const struct {
	const char *key, *newer;
} zone_keys[] = {
	{ "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone" },
	{ "failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region" },
	{ "topology.kubernetes.io/zone", "topology.kubernetes.io/zone" },
	{ "topology.kubernetes.io/region", "topology.kubernetes.io/region" },
};
#define NO_PROVISIONER "kubernetes.io/no-provisioner"

enum { ZONE_KEYS = sizeof(zone_keys) / sizeof(zone_keys[0]), PATH_ROOM = 512 };

static const void *thing_find(struct known_thing *things, const char *name)
{
	struct known_thing *known;

	HASH_FIND_STR(things, name, known);
	return known ? known->block : NULL;
}

static const struct placed_claim *claim_find(const struct check *check, at_t name)
{
	const struct placed_pod *pod = check->pod;
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/%s", placed_text(pod, pod->namespace),
		 placed_text(pod, name));
	return thing_find(check->p->claims, path);
}

static const struct placed_volume *volume_find(const struct check *check,
					       const struct placed_claim *claim)
{
	return thing_find(check->p->volumes, placed_text(claim, claim->volume));
}

/* Some pod on a node uses the claim. */
static bool claim_is_used(const struct check *check, const struct placed_claim *claim)
{
	for (uint32_t i = 0; i < check->p->count; i++) {
		CHECK_PODS(check, other, check->p->nodes[i])
		{
			const struct placed_pod *pod = other->pod;

			if (strcmp(placed_text(pod, pod->namespace),
				   placed_text(claim, claim->namespace)) != 0)
				continue;
			PLACED_EACH(pod, placed_word, name, pod->claims)
			{
				if (strcmp(placed_text(pod, name->text),
					   placed_text(claim, claim->name)) == 0)
					return true;
			}
		}
	}
	return false;
}

const struct placed_claim *predicates_claim(const struct predicates *p, const char *namespace,
					    const char *name)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/%s", namespace, name);
	return thing_find(p->claims, path);
}

/* Local volumes that were made beforehand have no provisioner: which of them a claim gets is not for a scheduler that chooses none. */
const struct placed_class *predicates_claim_waits(const struct predicates *p,
						  const struct placed_claim *claim)
{
	const struct placed_class *class =
		claim->bound || claim->volume || claim->lost || claim->deleting
			? NULL
			: thing_find(p->classes, placed_text(claim, claim->class));

	return class && class->waits &&
			       strcmp(placed_text(class, class->provisioner), NO_PROVISIONER) != 0
		       ? class
		       : NULL;
}

static const char *claim_problem(const struct check *check, at_t name)
{
	const struct placed_claim *claim = claim_find(check, name);

	if (!claim)
		return "is not there";
	if (claim->deleting)
		return "is being deleted";
	if (claim->lost)
		return "has lost its volume";
	if (!claim->bound && predicates_claim_waits(check->p, claim))
		return NULL;
	if (!claim->bound)
		return "is not bound yet";
	if (!volume_find(check, claim))
		return "is bound to a volume that is not there";
	if (claim->alone && claim_is_used(check, claim))
		return "is for one pod alone, and another uses it";
	return NULL;
}

const char *volumes_problem(const struct check *check)
{
	PLACED_EACH(check->pod, placed_word, name, check->pod->claims)
	{
		const char *problem = claim_problem(check, name->text);

		if (problem)
			return arena_printf(check->arena, "the volume claim \"%.80s\" %s",
					    placed_text(check->pod, name->text), problem);
	}
	return NULL;
}

/* The value of the volume's label is one zone, or several: "a__b". */
static bool zone_has(const char *zones, const char *zone)
{
	size_t size = strlen(zone);

	for (const char *at = zones; at;) {
		const char *end = strstr(at, "__");
		size_t length = end ? (size_t)(end - at) : strlen(at);

		if (length == size && memcmp(at, zone, size) == 0)
			return true;
		at = end ? end + 2 : NULL;
	}
	return false;
}

static bool node_has_zones(const struct placed_node *node)
{
	for (uint32_t i = 0; i < ZONE_KEYS; i++)
		if (placed_label_find(node, node->labels, zone_keys[i].key))
			return true;
	return false;
}

static bool zones_meet(const struct placed_volume *volume, const struct placed_node *node)
{
	for (uint32_t i = 0; i < ZONE_KEYS; i++) {
		const char *zones = placed_label_find(volume, volume->labels, zone_keys[i].key);
		const char *zone = placed_label_find(node, node->labels, zone_keys[i].key);

		if (!zone)
			zone = placed_label_find(node, node->labels, zone_keys[i].newer);
		if (zones && (!zone || !zone_has(zones, zone)))
			return false;
	}
	return true;
}

/* volumes_problem has found none: claims and volumes are there. */
bool volumes_meet(const struct check *check, const struct placed_node *node)
{
	PLACED_EACH(check->pod, placed_word, name, check->pod->claims)
	{
		const struct placed_claim *claim = claim_find(check, name->text);
		const struct placed_volume *volume = claim ? volume_find(check, claim) : NULL;

		const struct placed_class *class =
			claim && !claim->bound ? predicates_claim_waits(check->p, claim) : NULL;

		if (class && class->has_topologies &&
		    !node_terms_match(class, class->topologies, node, false))
			return false;
		if (class)
			continue; /* its volume is made for the node */
		if (!volume)
			return false;
		if (volume->has_node_terms &&
		    !node_terms_match(volume, volume->node_terms, node, false))
			return false;
		if (node_has_zones(node) && !zones_meet(volume, node))
			return false;
	}
	return true;
}
