/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two GPUs are joined by NVLink when a link of one ends at the other, or when links of both end at switches: the switches of
 * one machine are joined among themselves. The driver has the last word: where it says that the two do not reach each other
 * (switches not yet set up, a bridge that failed) they are not joined. What a link ends at is not always told, as inside a virtual
 * machine; then the driver's word alone decides.
 */
#include "node/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/fabric/describe.h"

enum { GPUS = NODE_GPUS_MAX };

struct links {
	struct nvml *nvml;
	uint32_t gpus;
	int up[GPUS]; /* NVLinks; -1 = not told */
	uint32_t direct[GPUS]; /* GPUs at their other ends */
	bool to_switch[GPUS], to_unknown[GPUS];
};

void links_groups(uint32_t gpus, bool (*same)(void *context, uint32_t a, uint32_t b), void *context,
		  uint32_t ret[ISLANDS_MAX])
{
	uint32_t group[GPUS], count = 0, left;

	memset(ret, 0, ISLANDS_MAX * sizeof(*ret));
	for (uint32_t i = 0; i < gpus; i++)
		group[i] = UINT32_C(1) << i;
	for (uint32_t a = 0; a < gpus; a++)
		for (uint32_t b = a + 1; b < gpus; b++) {
			uint32_t both = group[a] | group[b];

			if (group[a] == group[b] || !same(context, a, b))
				continue;
			for (uint32_t i = 0; i < gpus; i++)
				if (both >> i & 1)
					group[i] = both;
		}
	left = gpus >= 32 ? UINT32_MAX : (UINT32_C(1) << gpus) - 1;
	if (gpus > 1 && group[0] == left)
		return;
	/* Those of several come first: for those that are alone it makes no difference not to be named. */
	for (uint32_t i = 0; i < gpus && count < ISLANDS_MAX; i++)
		if (left >> i & 1 && group[i] != UINT32_C(1) << i) {
			ret[count++] = group[i];
			left &= ~group[i];
		}
	for (uint32_t i = 0; i < gpus && count < ISLANDS_MAX; i++)
		if (left >> i & 1 && group[i] == UINT32_C(1) << i) {
			ret[count++] = group[i];
			left &= ~group[i];
		}
}

/* "00000000:3B:00.0" and "0000:3b:00.0" are one address. */
static bool bus_same(const char *a, const char *b)
{
	const char *x = strchr(a, ':'), *y = strchr(b, ':');

	return x && y && strtoul(a, NULL, 16) == strtoul(b, NULL, 16) && strcasecmp(x, y) == 0;
}

static void links_read(struct links *links, const char *const *bus)
{
	struct nvml_link link[NVML_LINKS_MAX];

	for (uint32_t gpu = 0; gpu < links->gpus; gpu++) {
		links->up[gpu] = nvml_links(links->nvml, gpu, link);
		for (int i = 0; i < links->up[gpu]; i++) {
			uint32_t peer = 0;

			links->to_switch[gpu] |= link[i].peer == NVML_PEER_SWITCH;
			if (link[i].peer == NVML_PEER_SWITCH)
				continue;
			while (peer < links->gpus && !bus_same(link[i].bus, bus[peer]))
				peer++;
			if (peer < links->gpus)
				links->direct[gpu] |= UINT32_C(1) << peer;
			else
				links->to_unknown[gpu] = true;
		}
	}
}

static bool joined(void *context, uint32_t a, uint32_t b)
{
	const struct links *links = context;
	int word;

	if (links->up[a] <= 0 || links->up[b] <= 0)
		return false;
	word = nvml_joined(links->nvml, a, b);
	if (word == 0)
		return false;
	return links->direct[a] >> b & 1 || links->direct[b] >> a & 1 ||
	       (links->to_switch[a] && links->to_switch[b]) ||
	       (word == 1 && (links->to_unknown[a] || links->to_unknown[b]));
}

/* What a program gets of one NVLink and direction, by the generation of GPU: NCCL's constants, as in defaults.c. */
static uint32_t link_mbps(uint32_t capability)
{
	static const struct {
		uint32_t from, mbps;
	} rows[] = { { 100, 40100 }, { 90, 20600 }, { 86, 12000 },
		     { 80, 20000 },  { 70, 20000 }, { 60, 18000 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (capability >= rows[i].from)
			return rows[i].mbps;
	return 0;
}

static void nvlink_find(struct nvml *nvml, uint32_t gpus, const char *const *bus, struct found *ret)
{
	struct links links = { .nvml = nvml, .gpus = gpus };
	uint32_t least = UINT32_MAX;
	bool told = false, pair = false;

	links_read(&links, bus);
	for (uint32_t gpu = 0; gpu < gpus; gpu++) {
		uint32_t rate = link_mbps(nvml_capability(nvml, gpu));

		told |= links.up[gpu] >= 0;
		if (links.up[gpu] > 0 && rate && (uint32_t)links.up[gpu] * rate < least)
			least = (uint32_t)links.up[gpu] * rate;
		for (uint32_t other = 0; other < gpu; other++)
			pair |= joined(&links, gpu, other);
		ret->reduces |= links.to_switch[gpu];
	}
	/* GPUs without NVLink say so or do not answer; a driver that cannot be asked tells of none. */
	if (gpus < 2 || (!told && nvml_joined(nvml, 0, 1) < 0))
		return;
	links_groups(gpus, joined, &links, ret->island);
	ret->given |= FOUND_ISLANDS | FOUND_NVLINK;
	if (pair && least != UINT32_MAX)
		ret->nvlink_mbps = least;
	else if (pair)
		ret->given &= ~(uint32_t)FOUND_NVLINK;
	if (!pair)
		ret->reduces = false;
}

static bool below_one_switch(void *context, uint32_t a, uint32_t b)
{
	int near = nvml_near(context, a, b);

	return near >= NVML_NEAR_BOARD && near <= NVML_NEAR_SWITCHES;
}

static void switches_find(struct nvml *nvml, uint32_t gpus, struct found *ret)
{
	for (uint32_t a = 0; a < gpus; a++)
		for (uint32_t b = a + 1; b < gpus; b++)
			if (nvml_near(nvml, a, b) == NVML_NEAR_UNKNOWN)
				return;
	if (gpus < 2)
		return;
	links_groups(gpus, below_one_switch, nvml, ret->pcie_switch);
	ret->given |= FOUND_SWITCHES;
}

/* 16 lanes as the table has them; of fewer so much less. The slowest slot counts. */
static void pcie_find(struct nvml *nvml, uint32_t gpus, struct found *ret)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t gpu = 0; gpu < gpus; gpu++) {
		uint32_t generation, width, at = 0;
		char name[16];

		nvml_pcie(nvml, gpu, &generation, &width);
		snprintf(name, sizeof(name), "gen%u", generation);
		while (fabric_pcie_table[at].name && strcmp(fabric_pcie_table[at].name, name) != 0)
			at++;
		if (!fabric_pcie_table[at].name || width < 1 || width > 16)
			return;
		if (fabric_pcie_table[at].mbps * width / 16 < least)
			least = fabric_pcie_table[at].mbps * width / 16;
	}
	if (least == UINT32_MAX)
		return;
	ret->pcie_mbps = least;
	ret->given |= FOUND_PCIE;
}

void links_find(struct nvml *nvml, uint32_t gpus, const char *const *bus, struct found *ret)
{
	if (gpus > GPUS)
		return;
	nvlink_find(nvml, gpus, bus, ret);
	switches_find(nvml, gpus, ret);
	pcie_find(nvml, gpus, ret);
}
