/* SPDX-License-Identifier: Apache-2.0 */
/* The description of the fabric: how hosts are built, and what is between them. */
#include <string.h>

#include "core/model/apply.h"
#include "core/model/edit.h"

static uint32_t upto(int64_t value, uint32_t most)
{
	return value < 0 ? 0 : value > most ? most : (uint32_t)value;
}

/* Groups of GPUs that the host has; a GPU is in one of them. */
static void groups_read(const int64_t *from, uint32_t gpus, uint32_t ret[ISLANDS_MAX])
{
	uint32_t left = gpus >= 32 ? UINT32_MAX : (UINT32_C(1) << gpus) - 1;

	for (uint32_t i = 0; i < ISLANDS_MAX; i++) {
		ret[i] = upto(from[i], UINT32_MAX) & left;
		left &= ~ret[i];
	}
}

static void make_read(const int64_t *from, struct make *ret)
{
	uint32_t *const rates[MAKE_RATES] = {
		&ret->nic_mbps,  &ret->memory_mbps, &ret->nvlink_mbps, &ret->reduce_mbps,
		&ret->tree_mbps, &ret->pcie_mbps,   &ret->numa_mbps,   &ret->socket_mbps,
	};

	ret->gpus = upto(from[0], NODE_GPUS_MAX);
	ret->gpus = ret->gpus ? ret->gpus : 1;
	ret->nics = upto(from[1], 32);
	for (uint32_t i = 0; i < MAKE_RATES; i++)
		*rates[i] = upto(from[2 + i], RATE_MAX_MBPS);
	groups_read(from + 2 + MAKE_RATES, ret->gpus, ret->pcie_switch);
	groups_read(from + 2 + MAKE_RATES + ISLANDS_MAX, ret->gpus, ret->numa);
}

void apply_node_found(struct facts *f, const struct event_node_found *e)
{
	struct found found = { 0 };
	int64_t islands[ISLANDS_MAX] = { 0 }, switches[ISLANDS_MAX] = { 0 };

	if (!id_exists(&f->nodes, e->node) || e->given < 0 || e->given > FOUND_ALL ||
	    e->islands_count > ISLANDS_MAX || e->switches_count > ISLANDS_MAX)
		return;
	for (uint32_t i = 0; i < e->islands_count; i++)
		islands[i] = e->islands[i];
	for (uint32_t i = 0; i < e->switches_count; i++)
		switches[i] = e->switches[i];
	found.given = (uint32_t)e->given;
	groups_read(islands, NODE_GPUS_MAX, found.island);
	groups_read(switches, NODE_GPUS_MAX, found.pcie_switch);
	found.nics = upto(e->nics, 32);
	found.nic_mbps = upto(e->nic_mbps, RATE_MAX_MBPS);
	found.nvlink_mbps = upto(e->nvlink_mbps, RATE_MAX_MBPS);
	found.pcie_mbps = upto(e->pcie_mbps, RATE_MAX_MBPS);
	found.reduces = e->reduces != 0;
	found.source = (uint8_t)upto(e->source, SOURCE_FILE);
	node_edit(f, (struct node_id){ (uint32_t)e->node })->found = found;
}

bool fabric_read(const struct event_fabric_set *e, struct fabric_facts *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (e->makes_count % MAKE_FIELDS || e->makes_count / MAKE_FIELDS > MAKES_MAX ||
	    e->levels_count % FABRIC_LEVEL_FIELDS ||
	    e->levels_count / FABRIC_LEVEL_FIELDS > LEVELS_MAX + 1 ||
	    e->nodes_count != e->node_makes_count ||
	    (e->node_said_count && e->node_said_count != e->nodes_count))
		return false;
	for (uint32_t l = 0; l < e->levels_count / FABRIC_LEVEL_FIELDS; l++) {
		const int64_t *from = e->levels + (size_t)l * FABRIC_LEVEL_FIELDS;

		ret->level[l] = (struct level_speed){ upto(from[0], 3), upto(from[1], 1000000),
						      upto(from[2], 1000000000),
						      upto(from[3], RATE_MAX_MBPS) };
	}
	ret->make_count = e->makes_count / MAKE_FIELDS;
	for (uint32_t i = 0; i < ret->make_count; i++)
		make_read(e->makes + (size_t)i * MAKE_FIELDS, &ret->make[i]);
	return true;
}

uint32_t facts_make_of(const struct facts *f, struct name_id model, uint32_t gpus)
{
	for (uint32_t i = 0; i < f->fabric.make_count; i++) {
		const struct make *make = &f->fabric.make[i];

		if (make->gpus == gpus && (!make->model.v || name_same(make->model, model)))
			return i + 1;
	}
	return 0;
}

/* A node's own make comes first; the others are told by what they have. */
static void nodes_follow(struct facts *f, const struct event_fabric_set *e)
{
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });
		uint32_t make = facts_make_of(f, node->model, node->gpu_count);

		if (node->make != make || node->said) {
			node_edit(f, (struct node_id){ id })->make = make;
			node_edit(f, (struct node_id){ id })->said = 0;
		}
	}
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		struct node_id id = { (uint32_t)e->nodes[i] };

		if (!id_exists(&f->nodes, e->nodes[i]) || e->node_makes[i] < 1 ||
		    e->node_makes[i] > f->fabric.make_count)
			continue;
		node_edit(f, id)->make = (uint32_t)e->node_makes[i];
		if (e->node_said_count)
			node_edit(f, id)->said = upto(e->node_said[i], UINT32_MAX);
	}
}

void apply_fabric_set(struct facts *f, const struct event_fabric_set *e)
{
	const char *models = e->models;
	char part[NAME_MAX_BYTES + 1];
	struct fabric_facts fabric;

	if (!fabric_read(e, &fabric))
		return;
	for (uint32_t i = 0; i < fabric.make_count && list_next(&models, part); i++)
		fabric.make[i].model = facts_intern(f, part);
	f->fabric = fabric;
	nodes_follow(f, e);
}
