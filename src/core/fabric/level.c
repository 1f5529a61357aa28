/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shape can get when it spans a level, without looking at any node: the packing is imagined. Fewest hosts, evenly
 * filled (the least filled host brings the fewest NICs, and the ring waits for it), two halves at the level in question.
 *
 * Worked: nine tasks of one GPU, hosts of eight with eight NICs. Two hosts; the smaller half has 9/2 = 4 GPUs and so
 * 4 NICs: 4 x 48,000 = 192,000. (Eight and one would get 48,000.)
 */
#include "core/fabric/inner.h"

static bool model_accepted(const struct fabric_host *h, const struct shape *shape)
{
	if (h->model.v == 0 || shape->models[0].v == 0)
		return true;
	for (uint32_t i = 0; i < SHAPE_MODELS_MAX && shape->models[i].v; i++)
		if (name_same(shape->models[i], h->model))
			return true;
	return false;
}

static uint32_t mask_first(uint64_t gpus)
{
	return gpus >= 32 ? UINT32_MAX : (UINT32_C(1) << gpus) - 1;
}

/* GPUs of the island that has most; 0 without NVLink. */
static uint32_t island_largest(const struct fabric_host *h, uint32_t *ret_mask)
{
	uint32_t most = 0;

	*ret_mask = 0;
	if (h->nvlink_mbps == 0)
		return 0;
	for (uint32_t i = 0; i < FABRIC_GROUPS_MAX; i++) {
		if ((uint32_t)__builtin_popcount(h->island[i]) > most) {
			most = (uint32_t)__builtin_popcount(h->island[i]);
			*ret_mask = h->island[i];
		}
	}
	if (most == 0) {
		*ret_mask = mask_first(h->gpus);
		return h->gpus;
	}
	return most;
}

/* Of a gang on one make of host. */
struct gang {
	const struct fabric *fabric;
	const struct fabric_host *host;
	uint32_t make;
	uint64_t tasks;
	uint32_t gpus; /* per task */
	uint32_t per_host; /* tasks */
};

static void inside(const struct gang *g, uint8_t level, struct fabric_estimate *ret)
{
	struct fabric_sum sum = FABRIC_SUM_EMPTY;
	struct fabric_unit unit = FABRIC_UNIT_EMPTY;
	uint64_t n = g->tasks * g->gpus;
	uint32_t mask = mask_first(n);

	if (g->tasks > g->per_host)
		return;
	if (level == LEVEL_ISLAND) {
		if (n > island_largest(g->host, &mask))
			return;
		while ((uint64_t)__builtin_popcount(mask) > n)
			mask &= mask - 1;
	}
	fabric_unit_add(&unit, g->host, mask);
	fabric_sum_add(&sum, &unit);
	fabric_sum_finish(g->fabric, &sum, level, ret);
}

/* A unit of so many of the gang's hosts, all but the last of them full or all alike: only the sizes count here. */
static struct fabric_unit unit_of(const struct gang *g, uint64_t hosts, uint64_t gpus)
{
	struct fabric_unit unit = FABRIC_UNIT_EMPTY;
	uint64_t on_one = (gpus + hosts - 1) / hosts;

	if (on_one > g->host->gpus) /* three hosts in two units: the halves are of one and a half */
		on_one = g->host->gpus;
	fabric_unit_add(&unit, g->host, mask_first(on_one));
	unit.gpus = gpus;
	unit.hosts = (uint32_t)hosts;
	return unit;
}

/* hosts > 1, joined by NVLink into units of at most per_unit hosts (1: not joined), spanning `level`. */
static void across(const struct gang *g, uint32_t level, uint64_t hosts, uint64_t per_unit,
		   struct fabric_estimate *ret)
{
	const struct fabric *f = g->fabric;
	struct fabric_sum sum = FABRIC_SUM_EMPTY;
	uint64_t units = (hosts + per_unit - 1) / per_unit, n = g->tasks * g->gpus, least, out;
	struct fabric_unit small, large;

	if (units < 2 && level <= f->net_level)
		units = 2;
	least = fabric_out_mbps(g->host, (uint32_t)(g->tasks / hosts * g->gpus));
	small = unit_of(g, hosts / units, g->tasks / units * g->gpus);
	large = unit_of(g, (hosts + units - 1) / units, (g->tasks + units - 1) / units * g->gpus);
	fabric_sum_add(&sum, &small);
	if (units > 1)
		fabric_sum_add(&sum, &large);
	sum.gpus = n;
	sum.hosts = (uint32_t)hosts;
	sum.units = (uint32_t)units;
	if (units > 1) {
		out = least * (hosts / units);
		fabric_limit_by(&sum.cut, out, FABRIC_BOUND_NIC, 0);
		out = fabric_share_mbps(f, f->net_level, least) * (hosts / units);
		fabric_limit_by(&sum.cut, out, FABRIC_BOUND_LEVEL, (uint8_t)f->net_level);
		out = fabric_share_mbps(f, level, least) * (hosts / 2);
		if (level < f->net_level)
			fabric_limit_by(&sum.cut, out, FABRIC_BOUND_LEVEL, (uint8_t)level);
	}
	fabric_sum_finish(f, &sum, (uint8_t)level, ret);
}

static void network(const struct gang *g, uint32_t level, struct fabric_estimate *ret)
{
	const struct fabric *f = g->fabric;
	uint32_t most = f->most[g->make][level], in_domain = f->most[g->make][f->level_count];
	uint64_t hosts = (g->tasks + g->per_host - 1) / g->per_host, per_unit = 1;

	if (hosts < 2)
		hosts = 2;
	if (g->tasks < 2 || (most && hosts > most))
		return;
	if (f->domains && g->host->nvlink_mbps) {
		per_unit = in_domain ? in_domain : hosts;
	} else if (f->domains && level == f->level_count) {
		level = f->net_level;
	}
	across(g, level, hosts, per_unit, ret);
}

void fabric_make_estimate(const struct fabric *fabric, uint8_t level, uint32_t make, uint64_t tasks,
			  uint32_t gpus, struct fabric_estimate *ret)
{
	struct gang g = {
		.fabric = fabric, .make = make, .tasks = tasks ? tasks : 1, .gpus = gpus
	};

	*ret = (struct fabric_estimate){ .level = level, .bound = FABRIC_BOUND_NONE };
	if (gpus == 0 || (level > fabric->level_count && level < LEVEL_NODE))
		return;
	g.host = &fabric->host[make];
	g.per_host = g.host->gpus / g.gpus;
	if (g.per_host == 0)
		return;
	if (level >= LEVEL_NODE)
		inside(&g, level, ret);
	else
		network(&g, level, ret);
}

void fabric_level_estimate(const struct fabric *fabric, uint8_t level, const struct shape *shape,
			   struct fabric_estimate *ret)
{
	*ret = (struct fabric_estimate){ .level = level, .bound = FABRIC_BOUND_NONE };
	for (uint32_t make = 0; make < fabric->host_count; make++) {
		struct fabric_estimate here;

		if (!model_accepted(&fabric->host[make], shape))
			continue;
		fabric_make_estimate(fabric, level, make, shape->tasks_min, shape->gpus, &here);
		if (here.mbps > ret->mbps)
			*ret = here;
	}
}

uint64_t fabric_level_mbps(const struct fabric *fabric, uint8_t level, const struct shape *shape)
{
	struct fabric_estimate estimate;

	fabric_level_estimate(fabric, level, shape, &estimate);
	return estimate.mbps;
}

void fabric_best(const struct fabric *fabric, const struct shape *shape,
		 struct fabric_estimate *ret)
{
	struct fabric_estimate here;

	fabric_level_estimate(fabric, LEVEL_ISLAND, shape, ret);
	fabric_level_estimate(fabric, LEVEL_NODE, shape, &here);
	if (here.mbps > ret->mbps)
		*ret = here;
	for (uint32_t l = fabric->level_count + 1; l-- > 0;) {
		fabric_level_estimate(fabric, (uint8_t)l, shape, &here);
		if (here.mbps > ret->mbps)
			*ret = here;
	}
}
