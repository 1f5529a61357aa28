/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fabric/known.h"

#include <string.h>

#include "core/fabric/describe.h"

_Static_assert((int)FABRIC_GROUPS_MAX == (int)ISLANDS_MAX &&
		       (int)MAKES_MAX == (int)FABRIC_HOSTS_MAX,
	       "the facts hold what the fabric knows");

void fabric_of_facts(const struct facts *facts, struct fabric *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->level_count = facts->level_count;
	for (uint32_t l = 0; l <= facts->level_count; l++) {
		const struct level_speed *from = &facts->fabric.level[l];

		ret->level[l] = (struct fabric_level){
			.nvlink = from->flags & FABRIC_FLAG_NVLINK && l && l == facts->level_count,
			.reduces = (from->flags & FABRIC_FLAG_REDUCES) != 0,
			.over_milli = from->over_milli,
			.latency_ns = from->latency_ns,
			.host_mbps = from->host_mbps,
		};
	}
}

static void host_of_make(const struct make *make, struct fabric_host *ret)
{
	*ret = (struct fabric_host){
		.gpus = (uint8_t)make->gpus,
		.nics = (uint8_t)make->nics,
		.memory_mbps = make->memory_mbps,
		.nvlink_mbps = make->nvlink_mbps,
		.reduce_mbps = make->nvlink_mbps ? make->reduce_mbps : 0,
		.tree_mbps = make->tree_mbps,
		.pcie_mbps = make->pcie_mbps,
		.numa_mbps = make->numa_mbps,
		.socket_mbps = make->socket_mbps,
		.nic_mbps = make->nic_mbps,
	};
	memcpy(ret->pcie_switch, make->pcie_switch, sizeof(ret->pcie_switch));
	memcpy(ret->numa, make->numa, sizeof(ret->numa));
}

/* A node may have lost or got GPUs since its make was told: what names others is cut off. */
static void groups_cut(uint32_t *groups, uint32_t all)
{
	for (uint32_t i = 0; i < FABRIC_GROUPS_MAX; i++)
		groups[i] &= all;
}

static uint32_t gpus_all(const struct node *node)
{
	return node->gpu_count >= 32 ? UINT32_MAX : (UINT32_C(1) << node->gpu_count) - 1;
}

void fabric_host_of(const struct facts *facts, const struct node *node, struct fabric_host *ret)
{
	uint32_t all = gpus_all(node);

	if (node->make)
		host_of_make(&facts->fabric.make[node->make - 1], ret);
	else if (fabric_host_default(ret, facts_name(facts, node->model)))
		ret->nics = 0; /* neither its GPUs nor its cards are known */
	ret->model = node->model;
	ret->gpus = (uint8_t)(node->gpu_count ? node->gpu_count : 1);
	memcpy(ret->island, node->island_mask, sizeof(ret->island));
	groups_cut(ret->island, all);
	groups_cut(ret->pcie_switch, all);
	groups_cut(ret->numa, all);
}

static void numa_add(const struct node *node, struct fabric_host *host)
{
	if (!node->numa_gpus[0])
		return;
	for (uint32_t i = 0; i < FABRIC_GROUPS_MAX; i++)
		host->numa[i] = node->numa_gpus[i];
}

/* The switches of a model add up so much with all of its links; with fewer so much less. */
static void nvlink_add(const struct found *found, struct fabric_host *host)
{
	uint64_t whole = host->nvlink_mbps;

	host->nvlink_mbps = found->nvlink_mbps;
	if (!found->reduces || !whole)
		host->reduce_mbps = 0;
	else if (found->nvlink_mbps < whole)
		host->reduce_mbps = host->reduce_mbps * found->nvlink_mbps / whole;
}

void fabric_host_begin(const struct facts *facts, const struct node *node, struct fabric_host *ret)
{
	const struct found *found = &node->found;

	if (fabric_host_default(ret, facts_name(facts, node->model)) == FABRIC_UNKNOWN)
		ret->nics = 0; /* figures too low rather than too high */
	ret->gpus = (uint8_t)(node->gpu_count ? node->gpu_count : 1);
	numa_add(node, ret);
	if (found->given & FOUND_ISLANDS)
		memcpy(ret->island, found->island, sizeof(ret->island));
	if (found->given & FOUND_SWITCHES)
		memcpy(ret->pcie_switch, found->pcie_switch, sizeof(ret->pcie_switch));
	if (found->given & FOUND_NVLINK)
		nvlink_add(found, ret);
	if (found->given & FOUND_NICS) {
		ret->nics = (uint8_t)found->nics;
		ret->nic_mbps = found->nic_mbps;
	}
	if (found->given & FOUND_PCIE) {
		ret->numa_mbps =
			ret->numa_mbps < found->pcie_mbps ? ret->numa_mbps : found->pcie_mbps;
		ret->socket_mbps =
			ret->socket_mbps < found->pcie_mbps ? ret->socket_mbps : found->pcie_mbps;
		ret->pcie_mbps = found->pcie_mbps;
	}
	groups_cut(ret->island, gpus_all(node));
	groups_cut(ret->pcie_switch, gpus_all(node));
	groups_cut(ret->numa, gpus_all(node));
}

void fabric_host_again(const struct facts *facts, const struct node *node, uint32_t said,
		       struct fabric_host *ret)
{
	struct fabric_host now;

	fabric_host_of(facts, node, &now);
	if (!said && !(node->found.given & ~(uint32_t)FOUND_PROCESSES)) {
		*ret = now;
		return;
	}
	fabric_host_begin(facts, node, ret);
#define KEEP(key, member)                                                                          \
	do {                                                                                       \
		if (said & UINT32_C(1) << (SAID_KEY + (key)))                                      \
			memcpy(&ret->member, &now.member, sizeof(now.member));                     \
	} while (0)
	KEEP(FABRIC_KEY_ISLANDS, island);
	KEEP(FABRIC_KEY_SWITCHES, pcie_switch);
	KEEP(FABRIC_KEY_NUMA, numa);
	KEEP(FABRIC_KEY_NVLINK, nvlink_mbps);
	KEEP(FABRIC_KEY_NVLINK, reduce_mbps);
	KEEP(FABRIC_KEY_REDUCE, reduce_mbps);
	KEEP(FABRIC_KEY_TREE, tree_mbps);
	KEEP(FABRIC_KEY_PCIE, pcie_mbps);
	KEEP(FABRIC_KEY_BETWEEN_SWITCHES, numa_mbps);
	KEEP(FABRIC_KEY_BETWEEN_NUMA, socket_mbps);
	KEEP(FABRIC_KEY_NICS, nics);
	KEEP(FABRIC_KEY_NIC, nic_mbps);
#undef KEEP
}

void fabric_make_numbers(const struct fabric_host *host, int64_t ret[MAKE_FIELDS])
{
	const uint64_t rates[MAKE_RATES] = { host->nic_mbps,    host->memory_mbps,
					     host->nvlink_mbps, host->reduce_mbps,
					     host->tree_mbps,   host->pcie_mbps,
					     host->numa_mbps,   host->socket_mbps };
	uint32_t at = 0;

	ret[at++] = host->gpus;
	ret[at++] = host->nics;
	for (uint32_t i = 0; i < MAKE_RATES; i++)
		ret[at++] = (int64_t)rates[i];
	for (uint32_t i = 0; i < FABRIC_GROUPS_MAX; i++)
		ret[at++] = host->pcie_switch[i];
	for (uint32_t i = 0; i < FABRIC_GROUPS_MAX; i++)
		ret[at++] = host->numa[i];
}

void fabric_level_numbers(const struct fabric_level *level, int64_t ret[FABRIC_LEVEL_FIELDS])
{
	ret[0] = (level->nvlink ? FABRIC_FLAG_NVLINK : 0) |
		 (level->reduces ? FABRIC_FLAG_REDUCES : 0);
	ret[1] = level->over_milli;
	ret[2] = level->latency_ns;
	ret[3] = (int64_t)level->host_mbps;
}
