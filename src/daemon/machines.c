/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machines are found to have, put into the journal when the daemon starts: nodes, their NUMA nodes, how their GPUs are
 * joined, and from that the figures of the fabric. What people said of a node comes first: its place stays where somebody put it, and
 * a key of its fabric that a file named keeps the file's value (docs/cluster-file.md, "What comes first").
 */
#include <string.h>

#include "base/log.h"
#include "core/fabric/describe.h"
#include "core/fabric/known.h"
#include "core/model/apply.h"
#include "daemon/state.h"
#include "node/discover.h"
#include "sim/data_file.h"
#include "sim/fabric_file.h"
#include "sim/scenario.h"

enum { SAID_KEYS = (1 << FABRIC_KEYS) - 1 };

/* Which keys of its fabric a file said. Releases before this one did not write that down: what they knew of a fabric came from a file. */
static uint32_t keys_said(const struct node *node)
{
	return node->make && !node->said && !node->found.given ? SAID_KEYS : node->said;
}

/* Its islands: as a file said, else as they were found. */
static const uint32_t *islands_of(const struct node *node, const struct node_found *found)
{
	static const uint32_t none[ISLANDS_MAX];

	if (node && (keys_said(node) & UINT32_C(1) << FABRIC_KEY_ISLANDS))
		return node->island_mask;
	return found->found.given & FOUND_ISLANDS ? found->found.island : none;
}

/* One that is gone is not: declared again, it is ready. Where it is declared to stand is looked at by itself. */
static bool node_is_as_found(const struct facts *facts, const struct node_found *found)
{
	struct node_id id = facts_node_find(facts, found->name);
	if (!id.v)
		return false;
	const struct node *node = node_get(facts, id);
	return node->state != NODE_GONE && node->gpu_count == found->gpu_count &&
	       node->gpu_memory_mib == (uint64_t)found->gpu_memory_mib &&
	       node->cpu_milli == (uint64_t)found->cpu_milli &&
	       node->ram_mib == (uint64_t)found->ram_mib && node->simulated == found->simulated &&
	       node->capability == found->capability &&
	       strcmp(facts_name(facts, node->model), found->model) == 0 &&
	       strcmp(facts_name(facts, node->driver), found->driver) == 0 &&
	       strcmp(facts_name(facts, node->cuda), found->cuda) == 0 &&
	       memcmp(node->island_mask, islands_of(node, found), sizeof(node->island_mask)) == 0;
}

static bool levels_are(const struct facts *f, const char *levels)
{
	char part[NAME_MAX_BYTES + 1];
	uint32_t count = 0;

	for (; list_next(&levels, part); count++)
		if (count >= f->level_count || strcmp(facts_name(f, f->level[count]), part) != 0)
			return false;
	return count == f->level_count;
}

/* Where it stands is not found out on the machine: it stays where somebody said it does. A cluster file says it at each start; the word
 * that made a simulated node, when nobody has said anything else. */
static const char *domains_of(const struct daemon *d, const struct node_found *found,
			      char ret[EVENT_TEXT_MAX + 1])
{
	struct node_id id = facts_node_find(&d->facts, found->name);
	bool declared = *d->found->levels && levels_are(&d->facts, d->found->levels), known = false;
	size_t size = 0;

	ret[0] = '\0';
	for (uint32_t l = 0; id.v && l < d->facts.level_count; l++) {
		const char *name = facts_name(&d->facts, node_get(&d->facts, id)->domain[l]);

		known = known || *name;
		size += (size_t)snprintf(ret + size, EVENT_TEXT_MAX + 1 - size, "%s%s",
					 l ? "," : "", name);
	}
	return declared && (d->found->levels_hold || !known) ? found->domains : ret;
}

/* A cluster has the levels that people gave it; one that has none, those that were declared; and those of a cluster file in any case. */
static int start_levels(struct daemon *d, struct batch *batch, struct err *err)
{
	struct event event = event_make(EVENT_LEVELS_SET, 0, "fairlead");

	if (!d->found->levels_hold && (!*d->found->levels || d->facts.level_count))
		return 0;
	event.levels_set.levels = d->found->levels;
	return core_admit_own(d, batch, &event, err);
}

static int set_node_state(struct daemon *d, struct batch *batch, uint32_t node,
			  enum node_state state, const char *reason, struct err *err)
{
	struct event event = event_make(EVENT_NODE_STATE, 0, "fairlead");
	event.node_state.node = node;
	event.node_state.state = state;
	event.node_state.reason = reason;
	return core_admit_own(d, batch, &event, err);
}

/* The processors of its NUMA nodes, side by side; nothing where one is not known, or where the list is too long to be kept. */
static const char *numa_cpus(const struct node_found *node, struct arena *arena)
{
	const char *text = "";

	for (uint32_t i = 0; i < node->numa_count; i++) {
		if (!*node->numa[i].cpus)
			return "";
		text = arena_printf(arena, "%s%s%s", text, i ? ";" : "", node->numa[i].cpus);
	}
	return strlen(text) <= REASON_MAX_BYTES ? text : "";
}

static int start_numa(struct daemon *d, struct batch *batch, const struct node_found *node,
		      struct err *err)
{
	int64_t gpus[NODE_NUMA_MAX], cpus[NODE_NUMA_MAX], nics[NODE_NUMA_MAX];
	struct event event = event_make(EVENT_NODE_NUMA, 0, "fairlead");
	struct arena arena;
	int result;

	for (uint32_t i = 0; i < node->numa_count; i++) {
		gpus[i] = node->numa[i].gpus;
		cpus[i] = node->numa[i].cpu_milli;
		nics[i] = node->numa[i].nics;
	}
	arena_init(&arena, 1 << 20);
	event.node_numa.node = facts_node_find(&d->facts, node->name).v;
	event.node_numa.gpus = gpus;
	event.node_numa.cpu_milli = cpus;
	event.node_numa.nics = nics;
	event.node_numa.gpus_count = event.node_numa.cpu_milli_count = event.node_numa.nics_count =
		node->numa_count;
	event.node_numa.cpus = numa_cpus(node, &arena);
	result = core_admit_own(d, batch, &event, err);
	arena_deinit(&arena);
	return result;
}

static uint32_t masks_put(const uint32_t *masks, int64_t *ret)
{
	uint32_t count = 0;

	for (; count < ISLANDS_MAX && masks[count]; count++)
		ret[count] = masks[count];
	return count;
}

static int start_found(struct daemon *d, struct batch *batch, const struct node_found *node,
		       struct err *err)
{
	struct event event = event_make(EVENT_NODE_FOUND, 0, "fairlead");
	struct event_node_found *e = &event.node_found;
	int64_t islands[ISLANDS_MAX], switches[ISLANDS_MAX];

	e->node = facts_node_find(&d->facts, node->name).v;
	e->given = node->found.given;
	e->islands = islands;
	e->islands_count = masks_put(node->found.island, islands);
	e->switches = switches;
	e->switches_count = masks_put(node->found.pcie_switch, switches);
	e->nics = node->found.nics;
	e->nic_mbps = node->found.nic_mbps;
	e->nvlink_mbps = node->found.nvlink_mbps;
	e->reduces = node->found.reduces;
	e->pcie_mbps = node->found.pcie_mbps;
	e->source = node->found.source;
	return core_admit_own(d, batch, &event, err);
}

static int start_node(struct daemon *d, struct batch *batch, const struct node_found *node,
		      struct err *err)
{
	struct node_id id = facts_node_find(&d->facts, node->name);
	struct event event = event_make(EVENT_NODE_SET, 0, "fairlead");
	char domains[EVENT_TEXT_MAX + 1];
	int64_t islands[ISLANDS_MAX];

	if (!*node->domains && node_is_as_found(&d->facts, node))
		return 0; /* else it is looked at whole, and passed over when it is so */
	event.node_set.name = node->name;
	event.node_set.gpus = node->gpu_count;
	event.node_set.model = node->model;
	event.node_set.driver = node->driver;
	event.node_set.cuda = node->cuda;
	event.node_set.capability = node->capability;
	event.node_set.gpu_memory_mib = node->gpu_memory_mib;
	event.node_set.cpu_milli = node->cpu_milli;
	event.node_set.ram_mib = node->ram_mib;
	event.node_set.simulated = node->simulated;
	event.node_set.domains = domains_of(d, node, domains);
	event.node_set.nvlink_islands = islands;
	event.node_set.nvlink_islands_count =
		masks_put(islands_of(id.v ? node_get(&d->facts, id) : NULL, node), islands);
	return core_admit_own(d, batch, &event, err);
}

/* Anything that predictions can use was found out on a machine. What was only declared of simulated nodes does not begin a fabric. */
static bool links_are_found(const struct nodes_found *found)
{
	for (uint32_t i = 0; i < found->count; i++)
		if (found->nodes[i].found.given & ~(uint32_t)(FOUND_ISLANDS | FOUND_PROCESSES))
			return true;
	return false;
}

/* The figures of the fabric once more, from what was found and what people said; levels as they are. said: by number of node. */
static int start_fabric(struct daemon *d, struct batch *batch, const int64_t *said, struct err *err)
{
	struct event event = event_make(EVENT_FABRIC_SET, 0, "fairlead");
	struct event_fabric_set *e = &event.fabric_set;
	uint32_t count = d->facts.nodes.count, nodes = 0, make;
	struct fabric_draft draft = { 0 };
	struct arena *arena = &batch->arena;
	int64_t *lists = arena_new_array(arena, int64_t, (size_t)3 * count + 1);

	fabric_of_facts(&d->facts, &draft.fabric);
	for (uint32_t id = 1; id <= count; id++) {
		const struct node *node = node_get(&d->facts, (struct node_id){ id });
		const char *model = arena_strdup(arena, facts_name(&d->facts, node->model));
		struct fabric_host host;

		if (node->state == NODE_GONE || !fabric_host_is_told(node))
			continue;
		fabric_host_again(&d->facts, node, (uint32_t)said[id], &host);
		if (fabric_draft_make(&draft, &host, model, &make, err) < 0)
			return -1;
		lists[nodes] = id;
		lists[count + nodes] = make;
		lists[2 * (size_t)count + nodes++] = said[id];
	}
	fabric_draft_event(&draft, arena, e);
	e->nodes = lists;
	e->node_makes = lists + count;
	e->node_said = lists + 2 * (size_t)count;
	e->nodes_count = e->node_makes_count = e->node_said_count = nodes;
	return core_admit_own(d, batch, &event, err);
}

/* --- what a cluster file says beyond that ------------------------------------------------------------------------- */

static int start_marks(struct daemon *d, struct batch *batch, const struct scenario_node *from,
		       struct err *err)
{
	struct event event = event_make(EVENT_NODE_MARKED, 0, "fairlead");
	struct event_node_marked *e = &event.node_marked;

	if (!*from->labels && !*from->taints && !*from->data && !from->class &&
	    !from->partitioning && !from->slices_only && !from->capacity)
		return 0;
	e->node = facts_node_find(&d->facts, from->name).v;
	e->labels = from->labels;
	e->taints = from->taints;
	e->data = from->data;
	e->class = from->class;
	e->partitioning = from->partitioning;
	e->slices_only = from->slices_only;
	e->capacity = from->capacity;
	return core_admit_own(d, batch, &event, err);
}

/* Slices are cut when the node is new: later they are what people made of them. */
static int start_layouts(struct daemon *d, struct batch *batch, const struct scenario_node *from,
			 struct err *err)
{
	struct event event = event_make(EVENT_LAYOUT_SET, 0, "fairlead");
	int64_t gpus[NODE_GPUS_MAX];

	if (!from->layout_count)
		return 0;
	for (uint32_t i = 0; i < from->layout_count; i++)
		gpus[i] = i;
	event.layout_set.node = facts_node_find(&d->facts, from->name).v;
	event.layout_set.gpus = gpus;
	event.layout_set.layouts = from->layouts;
	event.layout_set.gpus_count = event.layout_set.layouts_count = from->layout_count;
	event.layout_set.reason = "as the cluster file has it";
	return core_admit_own(d, batch, &event, err);
}

static int start_site_fabric(struct daemon *d, struct batch *batch, struct err *err)
{
	const struct scenario *site = d->site;
	struct event event = event_make(EVENT_FABRIC_SET, 0, "fairlead");
	struct event_fabric_set *e = &event.fabric_set;
	struct arena *arena = &batch->arena;
	int64_t *lists = arena_new_array(arena, int64_t, (size_t)3 * site->node_count + 1);

	fabric_draft_event(site->draft, arena, e);
	for (uint32_t i = 0; i < site->node_count; i++) {
		lists[i] = facts_node_find(&d->facts, site->nodes[i].name).v;
		lists[site->node_count + i] = site->nodes[i].make;
		lists[2 * (size_t)site->node_count + i] = SAID_KEYS;
	}
	e->nodes = lists;
	e->node_makes = lists + site->node_count;
	e->node_said = lists + 2 * (size_t)site->node_count;
	e->nodes_count = e->node_makes_count = e->node_said_count = site->node_count;
	return core_admit_own(d, batch, &event, err);
}

static int start_site_data(struct daemon *d, struct batch *batch, struct err *err)
{
	struct event *events;
	uint32_t count;
	int rc = data_file_read(d->site->file, d->site->data, d->site->transfers, &d->facts,
				&batch->arena, &events, &count, err);

	for (uint32_t i = 0; i < count && rc >= 0; i++) {
		events[i].actor = "fairlead";
		rc = core_admit_own(d, batch, &events[i], err);
	}
	return rc;
}

static int start_site(struct daemon *d, struct batch *batch, const bool *is_new, struct err *err)
{
	for (uint32_t i = 0; i < d->site->node_count; i++)
		if (start_marks(d, batch, &d->site->nodes[i], err) < 0 ||
		    (is_new[i] && start_layouts(d, batch, &d->site->nodes[i], err) < 0))
			return -1;
	if (start_site_data(d, batch, err) < 0)
		return -1;
	return d->site->draft ? start_site_fabric(d, batch, err) : 0;
}

static int nodes_gone(struct daemon *d, struct batch *batch, struct err *err)
{
	const struct nodes_found *found = d->found;

	for (uint32_t id = 1; id <= d->facts.nodes.count; id++) {
		const struct node *node = node_get(&d->facts, (struct node_id){ id });
		bool still = node->state == NODE_GONE;

		for (uint32_t i = 0; i < found->count && !still; i++)
			still = strcmp(found->nodes[i].name, facts_name(&d->facts, node->name)) ==
				0;
		if (!still && set_node_state(d, batch, id, NODE_GONE,
					     "no longer declared when the daemon started", err) < 0)
			return -1;
	}
	return 0;
}

int start_machines(struct daemon *d, struct batch *batch, struct err *err)
{
	const struct nodes_found *found = d->found;
	int64_t *said =
		arena_new_array(&batch->arena, int64_t, d->facts.nodes.count + found->count + 1);

	for (uint32_t id = 1; id <= d->facts.nodes.count; id++)
		said[id] = keys_said(node_get(&d->facts, (struct node_id){ id }));
	bool *is_new = arena_new_array(&batch->arena, bool, found->count + 1);

	if (start_levels(d, batch, err) < 0)
		return err_prefix(err, "levels of the cluster");
	for (uint32_t i = 0; i < found->count; i++) {
		is_new[i] = !facts_node_find(&d->facts, found->nodes[i].name).v;
		if (start_node(d, batch, &found->nodes[i], err) < 0 ||
		    start_numa(d, batch, &found->nodes[i], err) < 0 ||
		    start_found(d, batch, &found->nodes[i], err) < 0)
			return -1;
	}
	if (nodes_gone(d, batch, err) < 0 || (d->site && start_site(d, batch, is_new, err) < 0))
		return -1;
	return links_are_found(found) ? start_fabric(d, batch, said, err) : 0;
}
