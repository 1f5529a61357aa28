/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bandwidth of a concrete set.
 *
 * One walk over the parts for the units (what is inside), then one per network level for the groups (what goes out of
 * them). At each level from the hosts up to the narrowest level that holds all, every group of hosts must send its
 * part of the ring out; it has the sum of its hosts' shares for that. A leaf of eight hosts in a ring of sixteen sends
 * out what one host would, so 4:1 oversubscription does not hurt it; a leaf of one host suffers fully. This supposes that
 * ranks follow the hosts' order, which Fairlead gives them.
 *
 * Worked: H100 hosts with 8 x 48,000 MB/s, two leaves, 4:1 between them.
 *	hosts 2+2	each leaf: 2 x 384,000 / 4 = 192,000	 -> min(370,800, 384,000, 192,000) = 192,000
 *	hosts 3+1	the lone host: 96,000			 -> 96,000
 */
#include "base/check.h"
#include "core/fabric/inner.h"

enum {
	BASE_NS = 4000, /* start of a collective: NCCL's tuning table, 3.6 to 4.4 us */
	LINKED_NS = 600, /* one step over NVLink: the same table, LL protocol, 0.5 us */
	PCIE_NS = 1000 /* the same over PCIe */
};

uint32_t fabric_groups(const uint32_t *groups, uint32_t gpu_mask)
{
	uint32_t touched = 0, named = 0;

	for (uint32_t g = 0; g < FABRIC_GROUPS_MAX; g++) {
		touched += (groups[g] & gpu_mask) != 0;
		named |= groups[g];
	}
	if (named == 0)
		return 1;
	return touched + (uint32_t)__builtin_popcount(gpu_mask & ~named);
}

/* GPUs of one host that NVLink does not join. */
static struct fabric_limit unlinked_rate(const struct fabric_host *h, uint32_t gpu_mask)
{
	struct fabric_limit limit = { h->pcie_mbps, FABRIC_BOUND_PCIE, 0 };

	if (fabric_groups(h->pcie_switch, gpu_mask) > 1)
		fabric_limit_by(&limit, h->numa_mbps, FABRIC_BOUND_NUMA, 0);
	if (fabric_groups(h->numa, gpu_mask) > 1)
		fabric_limit_by(&limit, h->socket_mbps, FABRIC_BOUND_SOCKET, 0);
	return limit;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void fabric_unit_add(struct fabric_unit *unit, const struct fabric_host *host, uint32_t gpu_mask)
{
	bool linked = host->nvlink_mbps && fabric_groups(host->island, gpu_mask) == 1;

	unit->gpus += (uint32_t)__builtin_popcount(gpu_mask);
	unit->hosts++;
	unit->linked = unit->linked && linked;
	unit->memory_mbps = smaller(unit->memory_mbps, host->memory_mbps);
	if (host->nvlink_mbps)
		unit->nvlink_mbps = smaller(unit->nvlink_mbps, host->nvlink_mbps);
	unit->reduce_mbps = smaller(unit->reduce_mbps, linked ? host->reduce_mbps : 0);
	if (host->tree_mbps)
		unit->tree_mbps = smaller(unit->tree_mbps, host->tree_mbps);
	if (!linked && (gpu_mask & (gpu_mask - 1))) {
		struct fabric_limit limit = unlinked_rate(host, gpu_mask);

		fabric_limit_by(&unit->unlinked, limit.mbps, limit.bound, 0);
	}
}

struct fabric_limit fabric_unit_ring(const struct fabric_unit *unit)
{
	struct fabric_limit limit = unit->unlinked;

	if (unit->gpus == 1)
		return (struct fabric_limit){ unit->memory_mbps, FABRIC_BOUND_MEMORY, 0 };
	if (unit->linked || unit->hosts > 1)
		fabric_limit_by(&limit, unit->nvlink_mbps, FABRIC_BOUND_NVLINK, 0);
	return limit;
}

struct fabric_limit fabric_unit_rate(const struct fabric_unit *unit)
{
	struct fabric_limit limit = fabric_unit_ring(unit);

	if (unit->gpus > 1 && unit->reduce_mbps) {
		uint64_t reduced = fabric_bus_mbps(unit->reduce_mbps, unit->gpus);

		if (reduced > limit.mbps)
			limit.mbps = reduced;
	}
	return limit;
}

/* With an adding NVLink switch a tree is as good as anything inside; without, it needs more of the GPUs than a ring does. */
uint64_t fabric_unit_tree(const struct fabric_unit *unit)
{
	if (unit->gpus == 1 || unit->reduce_mbps)
		return fabric_unit_rate(unit).mbps;
	return smaller(unit->tree_mbps, fabric_unit_ring(unit).mbps);
}

void fabric_sum_add(struct fabric_sum *sum, const struct fabric_unit *unit)
{
	struct fabric_limit inside = fabric_unit_rate(unit), ring = fabric_unit_ring(unit);

	sum->gpus += unit->gpus;
	sum->hosts += unit->hosts;
	sum->units++;
	if (unit->gpus > sum->unit_gpus)
		sum->unit_gpus = unit->gpus;
	sum->linked = sum->linked && unit->linked;
	sum->reduce = sum->reduce && (unit->reduce_mbps || unit->gpus == 1);
	fabric_limit_by(&sum->ring, ring.mbps, ring.bound, 0);
	fabric_limit_by(&sum->inside, inside.mbps, inside.bound, 0);
	fabric_limit_by(&sum->tree, fabric_unit_tree(unit), inside.bound, 0);
}

static uint32_t log2_ceil(uint32_t n)
{
	return n <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(n - 1);
}

static void latency_fill(const struct fabric *f, const struct fabric_sum *sum, uint32_t level,
			 struct fabric_estimate *ret)
{
	uint64_t inner_ns = sum->linked ? LINKED_NS : PCIE_NS;
	uint64_t outer_ns = sum->units > 1 ? f->level[level].latency_ns : 0;
	uint64_t chain = sum->reduce ? 1 : sum->unit_gpus - 1;
	uint64_t crossings = sum->units > 1 ? sum->units - 1 : 0;

	ret->ring_ns =
		BASE_NS + 2 * ((sum->gpus - 1 - crossings) * inner_ns + crossings * outer_ns);
	ret->tree_ns = BASE_NS + 2 * (chain * inner_ns + log2_ceil(sum->units) * outer_ns);
}

void fabric_sum_finish(const struct fabric *fabric, const struct fabric_sum *sum, uint8_t level,
		       struct fabric_estimate *ret)
{
	struct fabric_limit ring = sum->ring, tree = sum->inside;
	uint64_t n = sum->gpus;

	*ret = (struct fabric_estimate){ .gpus = n,
					 .hosts = sum->hosts,
					 .units = sum->units,
					 .level = level,
					 .bound = FABRIC_BOUND_NONE };
	if (n == 0)
		return;
	if (sum->units > 1) {
		bool halves = sum->units == 2 || fabric->level[level].reduces;
		uint64_t cut = sum->cut.mbps;

		fabric_limit_by(&ring, cut, sum->cut.bound, sum->cut.level);
		tree = sum->tree;
		fabric_limit_by(&tree, fabric_part_mbps(cut, halves ? 2 : 1, n), sum->cut.bound,
				sum->cut.level);
	}
	ret->ring_mbps = ring.mbps;
	ret->tree_mbps = tree.mbps;
	if (ring.mbps < tree.mbps)
		ring = tree;
	ret->mbps = ring.mbps;
	ret->bound = ring.mbps ? ring.bound : FABRIC_BOUND_NONE;
	ret->bound_level = ring.level;
	if (n > 1)
		latency_fill(fabric, sum, level, ret);
}

uint64_t fabric_host_out_mbps(const struct fabric_host *host, uint32_t gpus)
{
	return fabric_out_mbps(host, gpus);
}

uint64_t fabric_level_share_mbps(const struct fabric *fabric, uint32_t level, uint64_t out_mbps)
{
	return fabric_share_mbps(fabric, level, out_mbps);
}

/* The narrowest level whose domains (and those of all wider ones) these two have in common. */
static uint32_t level_shared(const struct fabric *f, const struct fabric_part *a,
			     const struct fabric_part *b)
{
	uint32_t l = 0;

	while (l < f->level_count && a->domain[l + 1] == b->domain[l + 1])
		l++;
	/* An NVLink domain must be named: two hosts that name none are not joined by it. */
	if (f->domains && l == f->level_count && a->domain[l] == 0)
		l--;
	return l;
}

static bool joined(const struct fabric *f, const struct fabric_part *a, const struct fabric_part *b)
{
	return f->domains && level_shared(f, a, b) == f->level_count &&
	       f->host[a->host].nvlink_mbps && f->host[b->host].nvlink_mbps;
}

static void units_add(const struct fabric *f, const struct fabric_part *parts, uint32_t count,
		      struct fabric_sum *sum)
{
	struct fabric_unit unit = FABRIC_UNIT_EMPTY;

	for (uint32_t i = 0; i < count; i++) {
		CHECK(parts[i].host < f->host_count && parts[i].gpu_mask);
		fabric_unit_add(&unit, &f->host[parts[i].host], parts[i].gpu_mask);
		if (i + 1 < count && joined(f, &parts[i], &parts[i + 1]))
			continue;
		fabric_sum_add(sum, &unit);
		unit = FABRIC_UNIT_EMPTY;
	}
}

/* What the weakest group below this level can send out of itself. */
static void cut_at(const struct fabric *f, const struct fabric_part *parts, uint32_t count,
		   uint32_t level, struct fabric_limit *cut)
{
	bool bottom = level == f->net_level;
	uint64_t out = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct fabric_host *h = &f->host[parts[i].host];
		uint64_t nics = fabric_out_mbps(h, (uint32_t)__builtin_popcount(parts[i].gpu_mask));
		uint64_t share = fabric_share_mbps(f, level, nics);
		bool whole = i + 1 == count ||
			     (bottom ? !joined(f, &parts[i], &parts[i + 1])
				     : level_shared(f, &parts[i], &parts[i + 1]) <= level);

		out += share;
		if (!whole)
			continue;
		fabric_limit_by(cut, out, FABRIC_BOUND_LEVEL, (uint8_t)level);
		out = 0;
	}
}

/* The same without any network between: names the cards when these are the limit. */
static void cut_nics(const struct fabric *f, const struct fabric_part *parts, uint32_t count,
		     struct fabric_limit *cut)
{
	uint64_t out = 0;

	for (uint32_t i = 0; i < count; i++) {
		out += fabric_out_mbps(&f->host[parts[i].host],
				       (uint32_t)__builtin_popcount(parts[i].gpu_mask));
		if (i + 1 < count && joined(f, &parts[i], &parts[i + 1]))
			continue;
		fabric_limit_by(cut, out, FABRIC_BOUND_NIC, 0);
		out = 0;
	}
}

void fabric_set(const struct fabric *fabric, const struct fabric_part *parts, uint32_t count,
		struct fabric_estimate *ret)
{
	struct fabric_sum sum = FABRIC_SUM_EMPTY;
	uint32_t level = fabric->level_count;

	units_add(fabric, parts, count, &sum);
	CHECK(sum.gpus <= FABRIC_GPUS_MAX);
	for (uint32_t i = 0; i + 1 < count; i++) {
		uint32_t shared = level_shared(fabric, &parts[i], &parts[i + 1]);

		if (shared < level)
			level = shared;
	}
	if (sum.units > 1) {
		if (level > fabric->net_level) /* one NVLink domain, but not all have NVLink */
			level = fabric->net_level;
		cut_nics(fabric, parts, count, &sum.cut);
		for (uint32_t l = fabric->net_level + 1; l-- > level;)
			cut_at(fabric, parts, count, l, &sum.cut);
	}
	if (count == 1)
		level = sum.linked || sum.gpus == 1 ? LEVEL_ISLAND : LEVEL_NODE;
	fabric_sum_finish(fabric, &sum, (uint8_t)level, ret);
}
