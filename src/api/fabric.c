/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster tree and how fast GPUs talk to each other in it, as an administrator describes it: one body, several events.
 * First the levels, then where nodes stand and which of their GPUs NVLink joins, then the figures.
 */
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/money.h"
#include "api/order.h"
#include "base/check.h"
#include "core/fabric/describe.h"
#include "core/fabric/known.h"
#include "sim/data_file.h"
#include "sim/fabric_file.h"
#include "sim/reader.h"

/* What is asked of a node: read from the body, else as it is. */
struct node_plan {
	const char *domain[LEVELS_MAX];
	const struct conf *own; /* its `fabric` */
	uint32_t said; /* by whom it stands where it does: SAID_FILE, SAID_LABEL of each level */
	bool listed;
};

struct plan {
	struct call *call;
	struct reader reader; /* for ranges of names */
	const char *level[LEVELS_MAX];
	uint32_t level_count;
	bool levels_change;
	struct node_plan *nodes; /* by number */
	const struct conf *fabric;
	struct fabric_draft draft;
	struct err *err;
};

static int levels_read(struct plan *p, const struct conf *body)
{
	const struct facts *f = p->call->facts;
	const struct conf *levels = conf_find(body, "levels");
	struct names names;
	int rc;

	if (!levels) {
		p->level_count = f->level_count;
		for (uint32_t l = 0; l < f->level_count; l++)
			p->level[l] = facts_name(f, f->level[l]);
		return 0;
	}
	rc = reader_ranges(&p->reader, levels, "levels", &names);
	if (rc < 0)
		return rc;
	if (names.count > LEVELS_MAX)
		return conf_error(p->err, body_file, levels,
				  "there are %zu topology levels; the limit is %d", names.count,
				  LEVELS_MAX);
	p->level_count = (uint32_t)names.count;
	p->levels_change = p->level_count != f->level_count;
	for (uint32_t l = 0; l < p->level_count; l++) {
		p->level[l] = names.at[l];
		p->levels_change =
			p->levels_change || strcmp(names.at[l], facts_name(f, f->level[l])) != 0;
	}
	return 0;
}

static uint32_t level_bit(uint32_t by, uint32_t level)
{
	return UINT32_C(1) << (by + level);
}

/* As they stand now; with other levels nodes stand nowhere until they are placed anew. */
static void nodes_begin(struct plan *p)
{
	const struct facts *f = p->call->facts;

	p->nodes = arena_new_array(p->call->arena, struct node_plan, f->nodes.count + 1);
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		if (!p->levels_change)
			p->nodes[id].said = node->said & ~(level_bit(SAID_FILE, 0) - 1);
		for (uint32_t l = 0; l < LEVELS_MAX; l++)
			p->nodes[id].domain[l] = p->levels_change || l >= p->level_count
							 ? ""
							 : facts_name(f, node->domain[l]);
	}
}

static void stands_by(struct node_plan *node, uint32_t by, uint32_t level)
{
	node->said &= ~(level_bit(SAID_FILE, level) | level_bit(SAID_LABEL, level));
	node->said |= level_bit(by, level);
}

/* `labels: {zone: topology.kubernetes.io/zone}`: who has the label stands in the domain of that name. */
static int labels_read(struct plan *p, const struct conf *labels)
{
	const struct facts *f = p->call->facts;

	if (labels && labels->type != CONF_MAP)
		return conf_error(p->err, body_file, labels,
				  "labels must be a map of levels to keys of labels");
	for (size_t i = 0; labels && i < labels->count; i++) {
		const struct conf *c = labels->items[i];
		size_t size = c->type == CONF_SCALAR ? strlen(c->text) : 0;
		uint32_t l = 0;

		while (l < p->level_count && strcmp(p->level[l], c->key) != 0)
			l++;
		if (l == p->level_count || !size)
			return conf_error(
				p->err, body_file, c,
				"labels: a level and the key of a label are wanted, such as zone: topology.kubernetes.io/zone; there is no level \"%.63s\"",
				c->key);
		for (uint32_t id = 1; id <= f->nodes.count; id++) {
			const struct node *node = node_get(f, (struct node_id){ id });

			for (uint32_t k = 0; k < LABELS_MAX && node->label[k].v; k++) {
				const char *text = facts_name(f, node->label[k]);

				if (strncmp(text, c->text, size) != 0 || text[size] != '=')
					continue;
				p->nodes[id].domain[l] =
					arena_strdup(p->call->arena, text + size + 1);
				stands_by(&p->nodes[id], SAID_LABEL, l);
			}
		}
	}
	return 0;
}

static int node_keys(struct plan *p, const struct conf *item)
{
	const char *known[2 + LEVELS_MAX] = { "name", "fabric" };

	for (uint32_t l = 0; l < p->level_count; l++)
		known[2 + l] = p->level[l];
	if (item->type != CONF_MAP || !conf_find(item, "name"))
		return conf_error(p->err, body_file, item, "a node needs a name");
	return conf_only(p->err, body_file, item, "node", known, 2 + p->level_count);
}

static int node_read(struct plan *p, const struct conf *item)
{
	const struct facts *f = p->call->facts;
	struct names names, domain;
	int rc = node_keys(p, item);

	if (rc == 0)
		rc = reader_range(&p->reader, conf_find(item, "name"), "name of a node", &names);
	for (uint32_t l = 0; rc == 0 && l < p->level_count; l++) {
		const struct conf *c = conf_find(item, p->level[l]);

		if (!c)
			continue;
		rc = reader_range(&p->reader, c, p->level[l], &domain);
		if (rc == 0 && domain.count != 1 && domain.count != names.count)
			return conf_error(p->err, body_file, c,
					  "%s \"%.63s\" gives %zu names for %zu nodes", p->level[l],
					  c->text, domain.count, names.count);
		for (size_t i = 0; rc == 0 && i < names.count; i++) {
			struct node_id id = facts_node_find(f, names.at[i]);

			if (!id.v)
				continue;
			p->nodes[id.v].domain[l] = domain.at[domain.count == 1 ? 0 : i];
			stands_by(&p->nodes[id.v], SAID_FILE, l);
		}
	}
	for (size_t i = 0; rc == 0 && i < names.count; i++) {
		struct node_id id = facts_node_find(f, names.at[i]);

		if (!id.v || node_get(f, id)->state == NODE_GONE)
			return conf_error(p->err, body_file, conf_find(item, "name"),
					  "there is no node \"%.63s\": `fairlead nodes` lists them",
					  names.at[i]);
		if (p->nodes[id.v].listed)
			return conf_error(p->err, body_file, conf_find(item, "name"),
					  "node \"%.63s\" is described twice", names.at[i]);
		p->nodes[id.v].listed = true;
		p->nodes[id.v].own = conf_find(item, "fabric");
	}
	return rc;
}

static int plan_read(struct plan *p, const struct conf *body)
{
	const struct conf *nodes = conf_find(body, "nodes");
	int rc = levels_read(p, body);

	if (rc == 0)
		nodes_begin(p);
	if (rc == 0)
		rc = labels_read(p, conf_find(body, "labels"));
	if (rc == 0 && nodes && nodes->type != CONF_LIST)
		return conf_error(p->err, body_file, nodes, "nodes must be a list");
	for (size_t i = 0; rc == 0 && nodes && i < nodes->count; i++)
		rc = node_read(p, nodes->items[i]);
	p->fabric = conf_find(body, "fabric");
	p->draft.fabric.level_count = p->level_count;
	if (rc == 0 && p->fabric)
		rc = fabric_file_levels(body_file, p->fabric, p->level, p->level_count, &p->draft,
					p->err);
	return rc;
}

/* --- the events ------------------------------------------------------------------------------------------- */

static const char *domains_text(const struct plan *p, uint32_t id)
{
	const char *text = "";

	for (uint32_t l = 0; l < p->level_count; l++)
		text = arena_printf(p->call->arena, "%s%s%s", text, l ? "," : "",
				    p->nodes[id].domain[l]);
	return text;
}

/* The node as it is, in its new place; its islands as described, else as they were found. */
static struct event node_event(const struct plan *p, uint32_t id, const struct fabric_host *host)
{
	const struct facts *f = p->call->facts;
	const struct node *node = node_get(f, (struct node_id){ id });
	struct event e = call_event(p->call, EVENT_NODE_SET);
	int64_t *islands = arena_new_array(p->call->arena, int64_t, ISLANDS_MAX);
	const uint32_t *from = host->island;

	e.node_set.name = facts_name(f, node->name);
	e.node_set.gpus = node->gpu_count;
	e.node_set.model = facts_name(f, node->model);
	e.node_set.gpu_memory_mib = node->gpu_memory_mib;
	e.node_set.cpu_milli = node->cpu_milli;
	e.node_set.ram_mib = node->ram_mib;
	e.node_set.domains = domains_text(p, id);
	e.node_set.simulated = node->simulated;
	e.node_set.driver = facts_name(f, node->driver);
	e.node_set.cuda = facts_name(f, node->cuda);
	e.node_set.capability = node->capability;
	for (uint32_t i = 0; i < ISLANDS_MAX && from[i]; i++)
		islands[e.node_set.nvlink_islands_count++] = from[i];
	e.node_set.nvlink_islands = islands;
	return e;
}

/* The make of each node; *ret has room for one event more than there are nodes, and is filled with those that change. */
static int nodes_plan(struct plan *p, struct event *events, uint32_t *count,
		      struct event_fabric_set *fabric)
{
	const struct facts *f = p->call->facts;
	int64_t *lists = arena_new_array(p->call->arena, int64_t, (size_t)3 * f->nodes.count + 1);
	uint32_t nodes = 0, make, said;

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });
		const char *model = facts_name(f, node->model);
		struct fabric_host host;

		if (node->state == NODE_GONE)
			continue;
		fabric_host_begin(f, node, &host);
		if (fabric_file_host(body_file, p->fabric, p->nodes[id].own, p->call->arena, &host,
				     &said, p->err) < 0 ||
		    fabric_draft_make(&p->draft, &host, arena_strdup(p->call->arena, model), &make,
				      p->err) < 0)
			return -(int)p->err->code;
		events[(*count)++] = node_event(p, id, &host);
		lists[nodes] = id;
		lists[f->nodes.count + nodes] = make;
		lists[2 * f->nodes.count + nodes++] = said | p->nodes[id].said;
	}
	fabric_draft_event(&p->draft, p->call->arena, fabric);
	fabric->nodes = lists;
	fabric->node_makes = lists + f->nodes.count;
	fabric->node_said = lists + (size_t)2 * f->nodes.count;
	fabric->nodes_count = fabric->node_makes_count = fabric->node_said_count = nodes;
	return 0;
}

void handle_fabric_set(struct call *call)
{
	struct err err = { 0 };
	struct plan p = { .call = call,
			  .err = &err,
			  .reader = { .file = body_file, .arena = call->arena, .err = &err } };
	struct event *events, *data;
	struct event fabric = call_event(call, EVENT_FABRIC_SET);
	const struct conf *body;
	uint32_t count = 0, data_count;
	const char *levels = "";

	if (call_body(call, &body, &err) < 0 || plan_read(&p, body) < 0 ||
	    data_file_read(body_file, conf_find(body, "data"), conf_find(body, "transfers"),
			   call->facts, call->arena, &data, &data_count, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	events = arena_new_array(call->arena, struct event,
				 (size_t)call->facts->nodes.count + 2 + data_count);
	for (uint32_t l = 0; l < p.level_count; l++)
		levels = arena_printf(call->arena, "%s%s%s", levels, l ? "," : "", p.level[l]);
	events[count] = call_event(call, EVENT_LEVELS_SET);
	events[count].levels_set.levels = levels;
	count += p.levels_change;
	if (nodes_plan(&p, events, &count, &fabric.fabric_set) < 0) {
		call_fail(call, &err);
		return;
	}
	events[count++] = fabric;
	for (uint32_t i = 0; i < data_count; i++) {
		events[count] = call_event(call, data[i].kind);
		if (data[i].kind == EVENT_DATA_SET)
			events[count++].data_set = data[i].data_set;
		else
			events[count++].transfer_set = data[i].transfer_set;
	}
	call_send_all(call, events, count);
}

/* --- showing ---------------------------------------------------------------------------------------------------- */

static void level_add(struct buf *out, const char *name, const struct level_speed *level)
{
	out_object(out, NULL);
	out_text(out, "level", name);
	out_bool(out, "nvlink", (level->flags & FABRIC_FLAG_NVLINK) != 0);
	out_bool(out, "reduces", (level->flags & FABRIC_FLAG_REDUCES) != 0);
	out_int(out, "oversubscription_milli", level->over_milli ? level->over_milli : 1000);
	out_int(out, "latency_ns", level->latency_ns ? level->latency_ns : FABRIC_LATENCY_DEFAULT);
	out_int(out, "host_mbps", level->host_mbps);
	out_end(out, '}');
}

/* Who told of the hosts of a make, the first word first: "file, discovery"; "model" where nobody did. */
static void make_sources(struct buf *out, bool file, bool found, bool declared)
{
	AUTO_BUF text = BUF_INIT;

	if (file)
		buf_adds(&text, "file");
	if (found)
		buf_addf(&text, "%sdiscovery", text.size ? ", " : "");
	if (declared)
		buf_addf(&text, "%sdeclared", text.size ? ", " : "");
	out_text(out, "from", text.size ? buf_text(&text) : "model");
}

static void make_add(struct buf *out, const struct facts *f, uint32_t row)
{
	const struct make *make = &f->fabric.make[row - 1];
	bool file = false, found = false, declared = false;
	int64_t nodes = 0;

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		if (node->state == NODE_GONE || node->make != row)
			continue;
		nodes++;
		file = file || node->said & ((UINT32_C(1) << FABRIC_KEYS) - 1);
		if (!(node->found.given & ~(uint32_t)FOUND_PROCESSES))
			continue;
		file = file || node->found.source == SOURCE_FILE;
		found = found || node->found.source == SOURCE_DISCOVERY;
		declared = declared || node->found.source == SOURCE_DECLARED;
	}
	out_object(out, NULL);
	out_int(out, "make", row);
	out_int(out, "nodes", nodes);
	out_text(out, "model", facts_name(f, make->model));
	out_int(out, "gpus", make->gpus);
	out_int(out, "nics", make->nics);
	out_int(out, "nic_mbps", make->nics ? make->nic_mbps : 0);
	out_int(out, "nvlink_mbps", make->nvlink_mbps);
	out_int(out, "reduce_mbps", make->reduce_mbps);
	out_int(out, "tree_mbps", make->tree_mbps);
	out_int(out, "pcie_mbps", make->pcie_mbps);
	out_int(out, "between_switches_mbps", make->numa_mbps);
	out_int(out, "between_numa_mbps", make->socket_mbps);
	out_int(out, "memory_mbps", make->memory_mbps);
	make_sources(out, file, found, declared);
	out_end(out, '}');
}

static void data_add(struct buf *out, struct call *call, const struct data_set *d)
{
	if (!d->size_mib)
		return;
	out_object(out, NULL);
	out_text(out, "name", facts_name(call->facts, d->name));
	out_int(out, "size_mib", d->size_mib);
	out_list(out, "at");
	for (uint32_t i = 0; i < DATA_PLACES_MAX && d->place[i].v; i++)
		out_text(out, NULL, facts_name(call->facts, d->place[i]));
	out_end(out, ']');
	out_end(out, '}');
}

static void data_list(struct buf *out, struct call *call)
{
	const struct facts *f = call->facts;
	struct named *order = arena_new_array(call->arena, struct named, f->data_sets.count + 1);

	for (uint32_t row = 1; row <= f->data_sets.count; row++) {
		const struct data_set *d = table_get(&f->data_sets, row);

		order[row - 1] = (struct named){ facts_name(f, d->name), row };
	}
	named_sort(order, f->data_sets.count);
	out_list(out, "data");
	for (uint32_t i = 0; i < f->data_sets.count; i++)
		data_add(out, call, table_get(&f->data_sets, order[i].id));
	out_end(out, ']');
	out_list(out, "transfers");
	for (uint32_t row = 1; row <= f->transfers.count; row++) {
		const struct transfer *t = table_get(&f->transfers, row);

		if (t->micro_per_gb < 0)
			continue;
		out_object(out, NULL);
		out_text(out, "from", facts_name(f, t->from));
		out_text(out, "to", facts_name(f, t->to));
		out_text(out, "price", money_text(call->arena, t->micro_per_gb));
		out_int(out, "mbps", t->mbps);
		out_end(out, '}');
	}
	out_end(out, ']');
}

void handle_fabric_show(struct call *call)
{
	const struct facts *f = call->facts;
	struct buf out = BUF_INIT;

	out_object(&out, NULL);
	out_bool(&out, "known", fabric_is_known(f));
	out_list(&out, "levels");
	level_add(&out, "cluster", &f->fabric.level[0]);
	for (uint32_t l = 1; l <= f->level_count; l++)
		level_add(&out, facts_name(f, f->level[l - 1]), &f->fabric.level[l]);
	out_end(&out, ']');
	out_list(&out, "makes");
	for (uint32_t row = 1; row <= f->fabric.make_count; row++)
		make_add(&out, f, row);
	out_end(&out, ']');
	data_list(&out, call);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}
