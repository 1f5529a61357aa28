/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/topology.h"

#include <string.h>

#include "base/check.h"

const char *const engine_level_names[ENGINE_LEVELS] = { "region", "zone", "core",
							"spine",  "leaf", "island" };

enum { REGION, ZONE, CORE, SPINE, LEAF, ISLAND };

/* Of a level's labels the first that a node has counts: what was measured comes before what a cloud says of its own. */
static const struct {
	const char *key;
	unsigned char level;
} labels[] = {
	{ "topology.kubernetes.io/region", REGION },
	{ "topology.kubernetes.io/zone", ZONE },
	{ "network.topology.nvidia.com/core", CORE },
	{ "fabric.topograph.run/tier-2", CORE },
	{ "topology.k8s.aws/network-node-layer-1", CORE },
	{ "network.topology.nvidia.com/spine", SPINE },
	{ "fabric.topograph.run/tier-1", SPINE },
	{ "topology.k8s.aws/network-node-layer-2", SPINE },
	{ "cloud.google.com/gce-topology-block", SPINE },
	{ "network.topology.nvidia.com/leaf", LEAF },
	{ "fabric.topograph.run/tier-0", LEAF },
	{ "topology.k8s.aws/network-node-layer-3", LEAF },
	{ "cloud.google.com/gce-topology-subblock", LEAF },
	{ "oci.oraclecloud.com/host.rack", LEAF },
	{ "nvidia.com/gpu.clique", ISLAND },
	{ "accelerator.topograph.run/domain", ISLAND },
	{ "network.topology.nvidia.com/accelerator", ISLAND },
	{ "topology.k8s.aws/ultraserver-id", ISLAND },
};

/* Which label it is, the one that counts first from 1; 0 = none that says a place. */
static unsigned label_find(const struct engine_level_labels *own, const char *key,
			   unsigned *ret_level)
{
	for (unsigned i = 0; own && i < own->count; i++)
		if (strcmp(own->label[i].key, key) == 0) {
			*ret_level = own->label[i].level;
			return i + 1;
		}
	for (unsigned i = 0; i < ARRAY_SIZE(labels); i++)
		if (strcmp(labels[i].key, key) == 0) {
			*ret_level = labels[i].level;
			return ENGINE_LEVEL_LABELS_MAX + i + 1;
		}
	return 0;
}

void places_read(struct places *places, const struct engine_level_labels *own, const char *key,
		 const char *value)
{
	unsigned level = 0, at = label_find(own, key, &level);

	if (!at || !*value || strlen(value) > PLACE_MAX || strchr(value, ',') ||
	    (places->by[level] && places->by[level] <= at))
		return;
	memset(places->name[level], 0, sizeof(places->name[level]));
	memcpy(places->name[level], value, strlen(value));
	places->by[level] = (unsigned char)at;
}

int places_level_of(const struct engine_level_labels *own, const char *key)
{
	unsigned level = 0;

	return label_find(own, key, &level) ? (int)level : -1;
}

unsigned places_levels(const struct places *places)
{
	unsigned levels = 0;

	for (unsigned i = 0; i < ENGINE_LEVELS; i++)
		levels |= places->name[i][0] ? 1U << i : 0;
	return levels;
}
