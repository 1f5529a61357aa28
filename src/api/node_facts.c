/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a node, and who says so: a file (fabric set, or the cluster file that the daemon was started with), a label of the node,
 * discovery on the machine, the word with which simulated nodes were declared, or the table of what GPU models do.
 */
#include <string.h>

#include "api/call.h"
#include "api/slices.h"
#include "core/fabric/describe.h"
#include "core/fabric/known.h"

struct told {
	struct buf *out;
	const struct facts *facts;
	const struct node *node;
};

static const char *source_name(const struct node *node)
{
	static const char *const names[] = { "discovery", "declared", "file" };

	/* Older releases did not write it down. */
	if (node->simulated && node->found.source == SOURCE_DISCOVERY)
		return "declared";
	return names[node->found.source <= SOURCE_FILE ? node->found.source : 0];
}

static void fact_add(const struct told *t, const char *name, const char *value, const char *from)
{
	if (!*value)
		return;
	out_object(t->out, NULL);
	out_text(t->out, "fact", name);
	out_text(t->out, "value", value);
	out_text(t->out, "from", from);
	out_end(t->out, '}');
}

/* A key of its fabric: a file comes first, then what was found, then what is known of its GPU model. */
static const char *key_source(const struct node *node, uint32_t key, uint32_t found)
{
	if (node->said & UINT32_C(1) << (SAID_KEY + key))
		return "file";
	if (found && node->found.given & found)
		return source_name(node);
	return "model";
}

/* "0-3 4-7"; "all" for one group of all. */
static void groups_text(const uint32_t *groups, uint32_t gpus, struct buf *out)
{
	uint32_t rest = gpus >= 32 ? UINT32_MAX : (UINT32_C(1) << gpus) - 1;

	for (uint32_t i = 0; i < FABRIC_GROUPS_MAX && groups[i]; i++) {
		uint32_t left = groups[i];

		buf_adds(out, i ? " " : "");
		for (uint32_t gpu = 0, count = 0; gpu < gpus; gpu++) {
			uint32_t first = gpu;

			if (!(left >> gpu & 1))
				continue;
			while (gpu + 1 < gpus && left >> (gpu + 1) & 1)
				gpu++;
			buf_addf(out, "%s%u", count++ ? "," : "", first);
			if (gpu > first)
				buf_addf(out, "-%u", gpu);
		}
		rest &= ~groups[i];
	}
	if (!groups[0])
		buf_adds(out, "all");
	else if (rest)
		buf_adds(out, "; others alone");
}

static void groups_add(const struct told *t, const char *name, const uint32_t *groups,
		       const char *from)
{
	AUTO_BUF text = BUF_INIT;

	groups_text(groups, t->node->gpu_count, &text);
	fact_add(t, name, buf_text(&text), from);
}

static void rate_add(const struct told *t, const char *name, uint64_t mbps, const char *from)
{
	char text[64];

	snprintf(text, sizeof(text), "%llu.%llu GB/s", (unsigned long long)(mbps / 1000),
		 (unsigned long long)(mbps % 1000 / 100));
	fact_add(t, name, mbps ? text : "none", from);
}

static void machine_add(const struct told *t)
{
	const struct node *node = t->node;
	const struct facts *f = t->facts;
	const char *from = source_name(node);
	char text[NAME_MAX_BYTES + 64];

	snprintf(text, sizeof(text), "%u x %s", node->gpu_count, facts_name(f, node->model));
	fact_add(t, "gpus", node->gpu_count ? text : "0", from);
	snprintf(text, sizeof(text), "%u MiB", node->gpu_memory_mib);
	fact_add(t, "gpu_memory", node->gpu_count ? text : "", from);
	snprintf(text, sizeof(text), "%u.%u", node->capability / 10, node->capability % 10);
	fact_add(t, "compute_capability", node->capability ? text : "", from);
	fact_add(t, "driver", facts_name(f, node->driver), from);
	fact_add(t, "cuda", facts_name(f, node->cuda), from);
	snprintf(text, sizeof(text), "%u.%03u", node->cpu_milli / 1000, node->cpu_milli % 1000);
	fact_add(t, "cpus", text, from);
	snprintf(text, sizeof(text), "%u MiB", node->ram_mib);
	fact_add(t, "memory", text, from);
	if (node->numa_gpus[0])
		groups_add(t, "numa", node->numa_gpus, from);
}

static void links_add(const struct told *t)
{
	const struct node *node = t->node;
	struct fabric_host host;
	char text[64];

	fabric_host_of(t->facts, node, &host);
	if (node->gpu_count < 2 || !fabric_host_is_told(node))
		return;
	groups_add(t, "islands", host.island, key_source(node, FABRIC_KEY_ISLANDS, FOUND_ISLANDS));
	rate_add(t, "nvlink", host.nvlink_mbps, key_source(node, FABRIC_KEY_NVLINK, FOUND_NVLINK));
	groups_add(t, "switches", host.pcie_switch,
		   key_source(node, FABRIC_KEY_SWITCHES, FOUND_SWITCHES));
	rate_add(t, "pcie", host.pcie_mbps, key_source(node, FABRIC_KEY_PCIE, FOUND_PCIE));
	if (!node->make)
		return;
	snprintf(text, sizeof(text), "%u", host.nics);
	fact_add(t, "nics", text, key_source(node, FABRIC_KEY_NICS, FOUND_NICS));
	if (host.nics)
		rate_add(t, "nic", host.nic_mbps, key_source(node, FABRIC_KEY_NIC, FOUND_NICS));
}

static void places_add(const struct told *t)
{
	const struct node *node = t->node;

	for (uint32_t l = 0; l < t->facts->level_count; l++) {
		const char *from = node->found.source == SOURCE_DECLARED ? "declared" : "file";

		if (node->said & UINT32_C(1) << (SAID_LABEL + l))
			from = "label";
		else if (node->said & UINT32_C(1) << (SAID_FILE + l))
			from = "file";
		fact_add(t, facts_name(t->facts, t->facts->level[l]),
			 facts_name(t->facts, node->domain[l]), from);
	}
}

void handle_node_facts(struct call *call)
{
	struct buf out = BUF_INIT;
	struct err err = { 0 };
	struct told t = { .out = &out, .facts = call->facts };
	struct node_id id;

	if (node_find(call, &id, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	t.node = node_get(call->facts, id);
	out_object(&out, NULL);
	out_text(&out, "node", facts_name(call->facts, t.node->name));
	out_list(&out, "facts");
	machine_add(&t);
	links_add(&t);
	places_add(&t);
	out_end(&out, ']');
	out_end(&out, '}');
	call_reply(call, 200, &out);
}
