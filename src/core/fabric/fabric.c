/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description: checking it, and what is derived from it. The estimates are in set.c (a concrete set), level.c
 * (what a shape can get at a level) and slowdown.c; what they share is inner.h.
 */
#include <string.h>
#include "base/check.h"
#include "core/fabric/fabric.h"

const char *fabric_bound_name(enum fabric_bound bound)
{
	switch (bound) {
	case FABRIC_BOUND_MEMORY: return "GPU memory";
	case FABRIC_BOUND_NVLINK: return "NVLink";
	case FABRIC_BOUND_PCIE: return "PCIe";
	case FABRIC_BOUND_NUMA: return "PCIe between switches";
	case FABRIC_BOUND_SOCKET: return "link between NUMA nodes";
	case FABRIC_BOUND_NIC: return "network cards";
	case FABRIC_BOUND_LEVEL: return "network";
	case FABRIC_BOUND_NONE: return "no path";
	}
	UNREACHABLE();
}

static int rate_check(uint64_t mbps, uint32_t make, const char *what, bool needed, struct err *err)
{
	if (needed && mbps == 0)
		return err_set(err, ERR_INVALID, "fabric: host make %u: %s is missing", make, what);
	if (mbps > FABRIC_MBPS_MAX)
		return err_set(err, ERR_INVALID,
			       "fabric: host make %u: %s is %llu MB/s, at most %llu", make, what,
			       (unsigned long long)mbps, (unsigned long long)FABRIC_MBPS_MAX);
	return 0;
}

static int groups_check(const uint32_t *masks, uint32_t all, uint32_t make, const char *what,
			struct err *err)
{
	uint32_t seen = 0;

	for (uint32_t g = 0; g < FABRIC_GROUPS_MAX; g++) {
		if (masks[g] & ~all)
			return err_set(err, ERR_INVALID,
				       "fabric: host make %u: %s name GPU %d, which it has not",
				       make, what, 31 - __builtin_clz(masks[g] & ~all));
		if (masks[g] & seen)
			return err_set(err, ERR_INVALID,
				       "fabric: host make %u: GPU %d is in two %s", make,
				       __builtin_ctz(masks[g] & seen), what);
		seen |= masks[g];
	}
	return 0;
}

static uint32_t mask_all(uint32_t gpus)
{
	return gpus >= 32 ? UINT32_MAX : (UINT32_C(1) << gpus) - 1;
}

static int host_check(const struct fabric_host *h, uint32_t make, struct err *err)
{
	uint32_t all = mask_all(h->gpus);

	if (h->gpus < 1 || h->gpus > NODE_GPUS_MAX)
		return err_set(err, ERR_INVALID,
			       "fabric: host make %u: %u GPUs; 1 to %d are possible", make, h->gpus,
			       NODE_GPUS_MAX);
	if (h->nics > FABRIC_NICS_MAX)
		return err_set(err, ERR_INVALID,
			       "fabric: host make %u: %u network cards; at most %d", make, h->nics,
			       FABRIC_NICS_MAX);
	if (rate_check(h->memory_mbps, make, "the GPU memory's rate", true, err) ||
	    rate_check(h->nvlink_mbps, make, "the NVLink rate", h->reduce_mbps > 0, err) ||
	    rate_check(h->reduce_mbps, make, "the NVLink switch's rate", false, err) ||
	    rate_check(h->tree_mbps, make, "the tree's rate", false, err) ||
	    rate_check(h->pcie_mbps, make, "the PCIe rate", true, err) ||
	    rate_check(h->numa_mbps, make, "the rate between PCIe switches", true, err) ||
	    rate_check(h->socket_mbps, make, "the rate between NUMA nodes", true, err) ||
	    rate_check(h->nic_mbps, make, "the network cards' rate", h->nics > 0, err))
		return -(int)ERR_INVALID;
	if (groups_check(h->island, all, make, "NVLink islands", err) ||
	    groups_check(h->pcie_switch, all, make, "PCIe switches", err) ||
	    groups_check(h->numa, all, make, "NUMA nodes", err))
		return -(int)ERR_INVALID;
	return 0;
}

static int level_check(const struct fabric *f, uint32_t l, struct err *err)
{
	const struct fabric_level *v = &f->level[l];

	if (v->nvlink && (l == 0 || l != f->level_count))
		return err_set(
			err, ERR_INVALID,
			"fabric: level %u of %u can't be an NVLink domain: only the narrowest can",
			l, f->level_count);
	if (v->over_milli && (v->over_milli < 1000 || v->over_milli > FABRIC_OVER_MAX))
		return err_set(
			err, ERR_INVALID,
			"fabric: level %u: oversubscription %u/1000; 1:1 to 1000:1 are possible", l,
			v->over_milli);
	if (v->latency_ns > FABRIC_LATENCY_MAX)
		return err_set(err, ERR_INVALID, "fabric: level %u: latency %u ns is above 1 s", l,
			       v->latency_ns);
	if (v->host_mbps > FABRIC_MBPS_MAX)
		return err_set(
			err, ERR_INVALID, "fabric: level %u: %llu MB/s per host, at most %llu", l,
			(unsigned long long)v->host_mbps, (unsigned long long)FABRIC_MBPS_MAX);
	return 0;
}

int fabric_check(const struct fabric *fabric, struct err *err)
{
	if (fabric->level_count > LEVELS_MAX)
		return err_set(err, ERR_INVALID, "fabric: %u levels; at most %d",
			       fabric->level_count, LEVELS_MAX);
	if (fabric->host_count > FABRIC_HOSTS_MAX)
		return err_set(err, ERR_INVALID, "fabric: %u makes of hosts; at most %d",
			       fabric->host_count, FABRIC_HOSTS_MAX);
	for (uint32_t h = 0; h < fabric->host_count; h++)
		if (host_check(&fabric->host[h], h, err))
			return -(int)ERR_INVALID;
	for (uint32_t l = 0; l <= fabric->level_count; l++)
		if (level_check(fabric, l, err))
			return -(int)ERR_INVALID;
	return 0;
}

/*
 * From the hosts upwards: ratios multiply, limits per host take the smallest, a level adds up only if all below do.
 * So a wider level is never faster, whatever was written.
 */
void fabric_settle(struct fabric *fabric)
{
	uint64_t cut = 1000, limit = FABRIC_MBPS_MAX * FABRIC_NICS_MAX;
	bool reduces = true;

	CHECK(fabric->level_count <= LEVELS_MAX && fabric->host_count <= FABRIC_HOSTS_MAX);
	for (uint32_t h = 0; h < fabric->host_count; h++)
		CHECK(fabric->host[h].gpus >= 1 && fabric->host[h].gpus <= NODE_GPUS_MAX);
	fabric->domains = fabric->level_count > 0 && fabric->level[fabric->level_count].nvlink;
	fabric->net_level = fabric->level_count - fabric->domains;
	for (uint32_t l = fabric->level_count + 1; l-- > 0;) {
		struct fabric_level *v = &fabric->level[l];

		if (l <= fabric->net_level) {
			cut = cut * (v->over_milli < 1000 ? 1000 : v->over_milli) / 1000;
			if (cut > FABRIC_OVER_MAX)
				cut = FABRIC_OVER_MAX;
			if (v->host_mbps && v->host_mbps < limit)
				limit = v->host_mbps;
			reduces = reduces && v->reduces;
			v->reduces = reduces;
		}
		if (v->latency_ns == 0)
			v->latency_ns = FABRIC_LATENCY_DEFAULT;
		fabric->cut_milli[l] = (uint32_t)cut;
		fabric->host_cut_mbps[l] = limit;
	}
}

static bool host_same(const struct fabric_host *a, const struct fabric_host *b)
{
	return a->model.v == b->model.v && a->gpus == b->gpus && a->nics == b->nics &&
	       memcmp(a->island, b->island, sizeof(a->island)) == 0 &&
	       memcmp(a->pcie_switch, b->pcie_switch, sizeof(a->pcie_switch)) == 0 &&
	       memcmp(a->numa, b->numa, sizeof(a->numa)) == 0 && a->memory_mbps == b->memory_mbps &&
	       a->nvlink_mbps == b->nvlink_mbps && a->reduce_mbps == b->reduce_mbps &&
	       a->tree_mbps == b->tree_mbps && a->pcie_mbps == b->pcie_mbps &&
	       a->numa_mbps == b->numa_mbps && a->socket_mbps == b->socket_mbps &&
	       a->nic_mbps == b->nic_mbps;
}

int fabric_host_add(struct fabric *fabric, const struct fabric_host *host, uint16_t *ret)
{
	for (uint32_t h = 0; h < fabric->host_count; h++) {
		if (host_same(&fabric->host[h], host)) {
			*ret = (uint16_t)h;
			return 0;
		}
	}
	if (fabric->host_count == FABRIC_HOSTS_MAX) {
		*ret = FABRIC_HOSTS_MAX - 1;
		return FABRIC_FULL;
	}
	*ret = (uint16_t)fabric->host_count++;
	fabric->host[*ret] = *host;
	return 0;
}
