/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared inside core/fabric: what a unit (a host, or an NVLink domain) can do, and how units are put together.
 *
 * A unit is described by the worst of its parts. Two formulas follow, with n GPUs in all, in U units:
 *
 *	ring	min(ring of every unit, cut)
 *	tree	min(tree of every unit, cut x 2(n-1)/n  when U is 2 or the network adds up, else cut x (n-1)/n)
 *
 * where cut is the least that any group of hosts can send out. README.md derives them.
 */
#include "core/fabric/fabric.h"

/* The slowest of something, and what that is. */
struct fabric_limit {
	uint64_t mbps;
	uint8_t bound; /* enum fabric_bound */
	uint8_t level;
};

static inline void fabric_limit_by(struct fabric_limit *limit, uint64_t mbps, uint8_t bound,
				   uint8_t level)
{
	if (mbps < limit->mbps) {
		limit->mbps = mbps;
		limit->bound = bound;
		limit->level = level;
	}
}

#define FABRIC_UNLIMITED ((struct fabric_limit){ UINT64_MAX, FABRIC_BOUND_MEMORY, 0 })

/* Of one unit while parts are added. Start: FABRIC_UNIT_EMPTY. */
struct fabric_unit {
	uint64_t gpus;
	uint32_t hosts;
	bool linked; /* all by NVLink */
	struct fabric_limit unlinked; /* of the worst part whose GPUs NVLink does not join */
	uint64_t nvlink_mbps, memory_mbps; /* of the worst part */
	uint64_t reduce_mbps; /* of the worst part; 0 = some can't */
	uint64_t tree_mbps;
};
#define FABRIC_UNIT_EMPTY                                                                          \
	((struct fabric_unit){ .linked = true,                                                     \
			       .unlinked = FABRIC_UNLIMITED,                                       \
			       .nvlink_mbps = UINT64_MAX,                                          \
			       .memory_mbps = UINT64_MAX,                                          \
			       .reduce_mbps = UINT64_MAX,                                          \
			       .tree_mbps = UINT64_MAX })

void fabric_unit_add(struct fabric_unit *unit, const struct fabric_host *host, uint32_t gpu_mask);
/* What a ring through it gets, an all-reduce inside it, and a tree through it. */
struct fabric_limit fabric_unit_ring(const struct fabric_unit *unit);
struct fabric_limit fabric_unit_rate(const struct fabric_unit *unit);
uint64_t fabric_unit_tree(const struct fabric_unit *unit);

/* The whole while units are added. Start: FABRIC_SUM_EMPTY. */
struct fabric_sum {
	uint64_t gpus;
	uint32_t hosts, units;
	uint64_t unit_gpus; /* of the largest */
	bool linked; /* every unit by NVLink */
	bool reduce; /* every unit by its NVLink switch */
	struct fabric_limit ring; /* of the worst unit's ring */
	struct fabric_limit inside; /* of the worst unit's best way */
	struct fabric_limit tree;
	struct fabric_limit cut;
};
#define FABRIC_SUM_EMPTY                                                                           \
	((struct fabric_sum){ .linked = true,                                                      \
			      .reduce = true,                                                      \
			      .ring = FABRIC_UNLIMITED,                                            \
			      .inside = FABRIC_UNLIMITED,                                          \
			      .tree = FABRIC_UNLIMITED,                                            \
			      .cut = FABRIC_UNLIMITED })

void fabric_sum_add(struct fabric_sum *sum, const struct fabric_unit *unit);
/* level: the narrowest that holds all. */
void fabric_sum_finish(const struct fabric *fabric, const struct fabric_sum *sum, uint8_t level,
		       struct fabric_estimate *ret);

/* NICs that so many GPUs of the host use: its share of them, rounded up. */
static inline uint32_t fabric_nics(const struct fabric_host *h, uint32_t gpus)
{
	return ((uint32_t)h->nics * gpus + h->gpus - 1) / h->gpus;
}
/* What these send into the network: no NIC is faster than the PCIe slot it sits in. */
static inline uint64_t fabric_out_mbps(const struct fabric_host *h, uint32_t gpus)
{
	uint64_t nic = h->nic_mbps < h->pcie_mbps ? h->nic_mbps : h->pcie_mbps;

	return nic * fabric_nics(h, gpus);
}
/* Of that, what is left at a level when all hosts send. */
static inline uint64_t fabric_share_mbps(const struct fabric *f, uint32_t level, uint64_t out_mbps)
{
	uint64_t share = out_mbps * 1000 / f->cut_milli[level];

	return share < f->host_cut_mbps[level] ? share : f->host_cut_mbps[level];
}

/* rate x times x (n-1)/n, rounded down; n >= 1, times 1 or 2. */
static inline uint64_t fabric_part_mbps(uint64_t mbps, uint64_t times, uint64_t n)
{
	uint64_t factor = times * (n - 1);

	if (mbps < UINT64_C(1) << 32 && factor < UINT64_C(1)
							 << 32) /* the usual, ten times as fast */
		return mbps * factor / n;
	return (uint64_t)((__uint128_t)mbps * factor / n);
}
static inline uint64_t fabric_bus_mbps(uint64_t mbps, uint64_t n)
{
	return fabric_part_mbps(mbps, 2, n);
}
/* Groups of the row that the mask touches; GPUs that no group names count each. */
uint32_t fabric_groups(const uint32_t *groups, uint32_t gpu_mask);
