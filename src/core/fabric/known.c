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

void fabric_host_of(const struct facts *facts, const struct node *node, struct fabric_host *ret)
{
	uint32_t all = node->gpu_count >= 32 ? UINT32_MAX : (UINT32_C(1) << node->gpu_count) - 1;

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
