/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a fabric's description, and of what a job wants of it. */
#include "core/scheduling/admit/admit.h"

#include <string.h>

#include "core/fabric/known.h"
#include "core/model/apply.h"

static int levels_check(const struct admission *a, const struct event_fabric_set *e)
{
	uint32_t count = e->levels_count / FABRIC_LEVEL_FIELDS;

	if (e->levels_count % FABRIC_LEVEL_FIELDS || count > a->facts->level_count + 1)
		return err_set(a->err, ERR_INVALID,
			       "the fabric has figures of %u levels; the cluster has %u and itself",
			       count, a->facts->level_count);
	for (uint32_t l = 0; l < count; l++) {
		const int64_t *level = e->levels + (size_t)l * FABRIC_LEVEL_FIELDS;
		const char *name = l ? facts_name(a->facts, a->facts->level[l - 1]) : "cluster";

		if (level[0] & FABRIC_FLAG_NVLINK && (!l || l != a->facts->level_count))
			return err_set(
				a->err, ERR_INVALID,
				"level \"%s\" can't be an NVLink domain: only the narrowest level can",
				name);
		if (admit_range(a, "the flags of a level", level[0], 0, 3) < 0 ||
		    (level[1] && admit_range(a, "the oversubscription of a level in thousandths",
					     level[1], 1000, FABRIC_OVER_MAX) < 0) ||
		    admit_range(a, "the latency of a level in ns", level[2], 0,
				FABRIC_LATENCY_MAX) < 0 ||
		    admit_range(a, "the rate of one host at a level in MB/s", level[3], 0,
				RATE_MAX_MBPS) < 0)
			return err_prefix(a->err, "level \"%s\"", name);
	}
	return 0;
}

static int makes_check(const struct admission *a, const struct event_fabric_set *e)
{
	uint32_t count = e->makes_count / MAKE_FIELDS;
	int models = admit_names(a, "GPU model", e->models, MAKES_MAX, true);
	struct fabric fabric = { .host_count = count };

	if (models < 0)
		return models;
	if (e->makes_count % MAKE_FIELDS || count > MAKES_MAX || (uint32_t)models > count)
		return err_set(
			a->err, ERR_INVALID,
			"the fabric has %u numbers for makes of hosts and %d GPU models; %d numbers "
			"each are wanted, of at most %d makes",
			e->makes_count, models, MAKE_FIELDS, MAKES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const int64_t *make = e->makes + (size_t)i * MAKE_FIELDS;
		struct fabric_host *h = &fabric.host[i];
		uint64_t *rates[MAKE_RATES] = { &h->nic_mbps,    &h->memory_mbps, &h->nvlink_mbps,
						&h->reduce_mbps, &h->tree_mbps,   &h->pcie_mbps,
						&h->numa_mbps,   &h->socket_mbps };

		if (admit_range(a, "the GPUs of a host", make[0], 1, NODE_GPUS_MAX) < 0 ||
		    admit_range(a, "the network cards of a host", make[1], 0, FABRIC_NICS_MAX) < 0)
			return -(int)ERR_INVALID;
		h->gpus = (uint8_t)make[0];
		h->nics = (uint8_t)make[1];
		for (uint32_t r = 0; r < MAKE_RATES; r++) {
			if (admit_range(a, "a rate of a host in MB/s", make[2 + r], 0,
					RATE_MAX_MBPS) < 0)
				return -(int)ERR_INVALID;
			*rates[r] = (uint64_t)make[2 + r];
		}
		for (uint32_t g = 0; g < 2 * ISLANDS_MAX; g++) {
			uint32_t *groups = g < ISLANDS_MAX ? h->pcie_switch : h->numa;

			if (admit_range(a, "a mask of GPUs", make[2 + MAKE_RATES + g], 0,
					UINT32_MAX) < 0)
				return -(int)ERR_INVALID;
			groups[g % ISLANDS_MAX] = (uint32_t)make[2 + MAKE_RATES + g];
		}
	}
	return fabric_check(&fabric, a->err);
}

static bool fabric_is_so(const struct facts *f, const struct event_fabric_set *e,
			 struct fabric_facts *fabric)
{
	const char *models = e->models;
	char part[NAME_MAX_BYTES + 1];

	for (uint32_t i = 0; i < fabric->make_count && list_next(&models, part); i++) {
		fabric->make[i].model = facts_name_find(f, part);
		if (*part && !fabric->make[i].model.v)
			return false;
	}
	if (memcmp(fabric, &f->fabric, sizeof(*fabric)) != 0)
		return false;
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		const struct node *node = node_get(f, (struct node_id){ (uint32_t)e->nodes[i] });

		if (node->make != e->node_makes[i] ||
		    node->said != (e->node_said_count ? e->node_said[i] : 0))
			return false;
	}
	return true;
}

int admit_fabric_set(const struct admission *a, const struct event_fabric_set *e)
{
	struct fabric_facts fabric;
	int rc = levels_check(a, e);

	if (rc == 0)
		rc = makes_check(a, e);
	if (rc < 0)
		return rc;
	if (!fabric_read(e, &fabric))
		return err_set(
			a->err, ERR_INVALID,
			"the fabric names %u nodes and the makes of %u; they go side by side",
			e->nodes_count, e->node_makes_count);
	for (uint32_t i = 0; i < e->node_said_count; i++)
		if (admit_range(a, "what was said of a node", e->node_said[i], 0, UINT32_MAX) < 0)
			return -(int)ERR_INVALID;
	for (uint32_t i = 0; i < e->nodes_count; i++)
		if (admit_range(a, "the number of a node", e->nodes[i], 1, a->facts->nodes.count) <
			    0 ||
		    admit_range(a, "the make of a node", e->node_makes[i], 1, fabric.make_count) <
			    0)
			return -(int)ERR_INVALID;
	return fabric_is_so(a->facts, e, &fabric) ? CORE_ALREADY : 0;
}

void admit_slowdown_default(const struct admission *a, struct event_job_submitted *e)
{
	const int64_t policy = policy_slowdown(&a->facts->policy);

	if (e->max_slowdown || e->kind != KIND_TRAINING || e->gpu_part || e->gpu_part_mib ||
	    !e->gpus || e->tasks_max < 2 || a->facts->nodes.count < 2 || *e->spread ||
	    e->role_numbers_count || policy >= POLICY_SLOWDOWN_MAX || !fabric_is_known(a->facts))
		return;
	e->max_slowdown = policy * 10;
}

int admit_slowdown(const struct admission *a, const struct event_job_submitted *e)
{
	int64_t tasks = e->tasks_max > e->tasks_min ? e->tasks_max : e->tasks_min;

	if (!e->max_slowdown)
		return 0;
	if (admit_range(a, "topology.max_slowdown in thousandths", e->max_slowdown, 1,
			FABRIC_SLOWDOWN_MAX) < 0)
		return -(int)ERR_INVALID;
	if (e->gpu_part || e->gpu_part_mib || (tasks ? tasks : 1) * e->gpus < 2)
		return err_set(
			a->err, ERR_INVALID,
			"topology.max_slowdown is about the way between GPUs: a job with less than two "
			"has none; leave it out");
	if (e->kind == KIND_INFERENCE && tasks > 1)
		return err_set(
			a->err, ERR_INVALID,
			"topology.max_slowdown is for tasks that work together; replicas of an endpoint "
			"do not, so leave it out");
	if (!fabric_is_known(a->facts))
		return err_set(
			a->err, ERR_INVALID,
			"topology.max_slowdown: nobody has described how fast this cluster's GPUs talk to "
			"each other, so no slowdown can be predicted; an administrator does with "
			"`fairlead fabric set FILE`, or leave it out");
	return 0;
}
