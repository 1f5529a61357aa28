/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "base/check.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/moment.h"
#include "cli/output/nouns.h"
#include "cli/output/problem.h"

static int64_t gpus_of(const json_t *row, const char *name)
{
	return get_int(json_object_get(row, "gpus"), name);
}

static void cell_gpus(const json_t *row, struct buf *out)
{
	buf_addi(out, gpus_of(row, "total"));
}
static void cell_free(const json_t *row, struct buf *out)
{
	buf_addi(out, gpus_of(row, "free"));
}
static void cell_allocated(const json_t *row, struct buf *out)
{
	buf_addi(out, gpus_of(row, "allocated"));
}
static void cell_unusable(const json_t *row, struct buf *out)
{
	buf_addi(out, gpus_of(row, "unusable"));
}
static void cell_shared(const json_t *row, struct buf *out)
{
	buf_addi(out, gpus_of(row, "shared"));
}
static void cell_open(const json_t *row, struct buf *out)
{
	cell_number(json_object_get(json_object_get(row, "gpus"), "open"), out);
}
static void cell_fragment(const json_t *row, struct buf *out)
{
	cell_number(json_object_get(row, "fragment"), out);
}
static void cell_jobs(const json_t *row, struct buf *out)
{
	buf_addu(out, json_array_size(json_object_get(row, "jobs")));
}
static void cell_cpus(const json_t *row, struct buf *out)
{
	buf_addi(out, get_int(row, "cpu_milli") / 1000);
}

/* "0.429", "0.429 (0.286 unasked)"; nothing where no GPU is cut. */
static void cell_slices(const json_t *row, struct buf *out)
{
	if (json_number_value(json_object_get(row, "slices_idle")) <= 0)
		return;
	cell_number(json_object_get(row, "slices_idle"), out);
	if (json_number_value(json_object_get(row, "slices_unasked")) <= 0)
		return;
	buf_adds(out, " (");
	cell_number(json_object_get(row, "slices_unasked"), out);
	buf_adds(out, " unasked)");
}

/* GPUs of each of its NUMA nodes: "4+4". */
static void cell_numa(const json_t *row, struct buf *out)
{
	const json_t *numa;
	size_t index;

	json_array_foreach(json_object_get(row, "numa"), index, numa)
	{
		if (index)
			buf_addc(out, '+');
		buf_addu(out, json_array_size(json_object_get(numa, "gpus")));
	}
}

static void cell_domains(const json_t *row, struct buf *out)
{
	const json_t *domain;
	size_t index;

	json_array_foreach(json_object_get(row, "domains"), index, domain)
	{
		if (index)
			buf_addc(out, '/');
		cell_text(out, json_string_value(domain) ? json_string_value(domain) : "");
	}
}

/* "GPU 0 taken: process 4242 (python3) of alice; GPUs 2 to 7 taken: ...": those that follow each other and one has, at once. */
static void add_taken(const json_t *row, struct buf *text)
{
	const json_t *all = json_object_get(row, "taken");
	const size_t count = json_array_size(all);

	for (size_t i = 0, end; i < count; i = end) {
		const json_t *first = json_array_get(all, i);
		const long long from = get_int(first, "index");

		for (end = i + 1; end < count; end++) {
			const json_t *next = json_array_get(all, end);

			if (get_int(next, "index") != from + (long long)(end - i) ||
			    strcmp(get_text(next, "by"), get_text(first, "by")) != 0)
				break;
		}
		if (end == i + 1)
			buf_addf(text, "%sGPU %lld taken: %s", text->size ? "; " : "", from,
				 get_text(first, "by"));
		else
			buf_addf(text, "%sGPUs %lld to %lld taken: %s", text->size ? "; " : "",
				 from, from + (long long)(end - i) - 1, get_text(first, "by"));
	}
}

/* Announced maintenance, then why it is not ready, then who else has GPUs of it. */
static void cell_reason(const json_t *row, struct buf *out)
{
	const char *reason = get_text(row, "reason"), *why = get_text(row, "maintenance_reason");
	AUTO_BUF text = BUF_INIT;

	if (get_int(row, "maintenance_to_ms")) {
		buf_adds(&text, "maintenance ");
		say_time(&text, get_int(row, "maintenance_from_ms"));
		buf_adds(&text, " to ");
		say_time(&text, get_int(row, "maintenance_to_ms"));
		if (*why)
			buf_addf(&text, ": %s", why);
	}
	if (*reason && strcmp(get_text(row, "state"), "maintenance") != 0)
		buf_addf(&text, "%s%s", text.size ? "; " : "", reason);
	add_taken(row, &text);
	cell_text(out, buf_text(&text));
}

static const struct column columns[] = {
	{ "NODE", "name", CELL_TEXT },
	{ "STATE", "state", CELL_TEXT },
	{ "SIMULATED", "simulated", CELL_YES },
	{ "MODEL", "model", CELL_TEXT },
	{ "GPUS", .cell = cell_gpus },
	{ "FREE", .cell = cell_free },
	{ "ALLOCATED", .cell = cell_allocated },
	{ "UNUSABLE", .cell = cell_unusable, .wide = true },
	{ "SHARED", .cell = cell_shared, .wide = true },
	{ "OPEN", .cell = cell_open, .wide = true },
	{ "FRAGMENT", .cell = cell_fragment, .wide = true },
	{ "JOBS", .cell = cell_jobs },
	{ "GPU-MEMORY", "gpu_memory_mib", CELL_MEMORY, true },
	{ "CPUS", .cell = cell_cpus, .wide = true },
	{ "MEMORY", "ram_mib", CELL_MEMORY, true },
	{ "NUMA", .cell = cell_numa, .wide = true },
	{ "DRIVER", "driver", CELL_TEXT, true },
	{ "CUDA", "cuda", CELL_TEXT, true },
	{ "CLASS", "class", CELL_TEXT, true },
	{ "PARTITIONING", "partitioning", CELL_TEXT, true },
	{ "CAPACITY", "capacity", CELL_TEXT, true },
	{ "IDLE-SLICES", .cell = cell_slices, .wide = true },
	{ "LABELS", "labels", CELL_TEXT, true },
	{ "TAINTS", "taints", CELL_TEXT, true },
	{ "DATA", "data", CELL_TEXT, true },
	{ "PLACE", .cell = cell_domains, .wide = true },
	{ "REASON", .cell = cell_reason, .cut = true },
	{ 0 },
};

/* Why the list of a cluster is empty. It is only a remark: no error where the daemon does not tell. */
static void remark_none(struct client *client)
{
	json_t *status = NULL;
	const json_t *cluster;
	struct err err;

	if (client_get(client, "/api/v1/status", &status, &err) < 0)
		return;
	cluster = json_object_get(status, "cluster");
	if (!cluster)
		notice("there are no nodes");
	else if (*get_text(cluster, "problem"))
		notice("no nodes are known: %s", get_text(cluster, "problem"));
	else if (!get_bool(cluster, "seen"))
		notice("the nodes of the cluster are being listed; ask again");
	else
		notice("the cluster has no nodes");
	json_decref(status);
}

/* Who else places work on nodes of a pool. Likewise only a remark. */
static void remark_conflict(struct client *client)
{
	json_t *status = NULL;
	const char *text;
	struct err err;

	if (client_get(client, "/api/v1/status", &status, &err) < 0)
		return;
	text = get_text(json_object_get(status, "cluster"), "conflict");
	if (*text)
		notice("%s", text);
	json_decref(status);
}

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	json_t *rows = NULL, *row;
	bool simulated = false;
	size_t index;
	int rc = fetch_list(client, "/api/v1/nodes", "nodes", &rows, err);

	(void)in;
	if (rc < 0)
		return rc;
	rc = output_list(output, columns, rows, "name", err);
	json_array_foreach(rows, index, row) simulated = simulated || get_bool(row, "simulated");
	notice_simulated(output, simulated);
	if (!json_array_size(rows))
		remark_none(client);
	else if (!simulated)
		remark_conflict(client);
	json_decref(rows);
	return rc;
}

/* --summary: a row for each model */

static void cell_nodes(const json_t *row, struct buf *out)
{
	buf_addf(out, "%lld", (long long)get_int(row, "nodes"));
	if (get_int(row, "ready") != get_int(row, "nodes"))
		buf_addf(out, ":%lld-ready", (long long)get_int(row, "ready"));
}

static const struct column summary_columns[] = {
	{ "MODEL", "model", CELL_TEXT },
	{ "FREE", .cell = cell_free },
	{ "MOST-FREE", "most_free", CELL_INT },
	{ "ALLOCATED", .cell = cell_allocated },
	{ "UNUSABLE", .cell = cell_unusable },
	{ "GPUS", .cell = cell_gpus },
	{ "NODES", .cell = cell_nodes },
	{ "GPU-MEMORY", "gpu_memory_mib", CELL_MEMORY },
	{ "SHARED", .cell = cell_shared, .wide = true },
	{ "SIMULATED", "simulated", CELL_YES, true },
	{ 0 },
};

/* The row of a model, made when it is met first. Nodes without GPUs have none. */
static json_t *model_row(json_t *models, const json_t *node)
{
	json_t *row;
	size_t index;

	json_array_foreach(models, index, row)
	{
		if (strcmp(get_text(row, "model"), get_text(node, "model")) == 0)
			return row;
	}
	row = json_pack("{s:s, s:I, s:I, s:{}, s:I, s:I, s:b}", "model", get_text(node, "model"),
			"nodes", (json_int_t)0, "ready", (json_int_t)0, "gpus", "most_free",
			(json_int_t)0, "gpu_memory_mib",
			(json_int_t)get_int(node, "gpu_memory_mib"), "simulated",
			get_bool(node, "simulated"));
	json_array_append_new(models, row);
	return row;
}

static void add_to(json_t *row, const char *name, int64_t more)
{
	json_object_set_new(row, name, json_integer(get_int(row, name) + more));
}

static json_t *models_sum(const json_t *nodes)
{
	static const char *const counts[] = { "total", "free", "allocated", "unusable", "shared" };
	json_t *models = json_array(), *row, *node;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)nodes, index, node)
	{
		const int64_t free = gpus_of(node, "free");

		if (!gpus_of(node, "total"))
			continue;
		row = model_row(models, node);
		add_to(row, "nodes", 1);
		add_to(row, "ready", strcmp(get_text(node, "state"), "ready") == 0);
		for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
			add_to(json_object_get(row, "gpus"), counts[i], gpus_of(node, counts[i]));
		if (free > get_int(row, "most_free"))
			json_object_set_new(row, "most_free", json_integer(free));
	}
	return models;
}

static int show_summary(struct invocation *in, struct client *client, const struct output *output,
			struct err *err)
{
	json_t *nodes = NULL, *models;
	int rc = fetch_list(client, "/api/v1/nodes", "nodes", &nodes, err);

	(void)in;
	if (rc < 0)
		return rc;
	models = models_sum(nodes);
	rc = output_list(output, summary_columns, models, "model", err);
	notice_simulated(output, get_bool(json_array_get(models, 0), "simulated"));
	if (!json_array_size(nodes))
		remark_none(client);
	else if (!json_array_size(models))
		notice("no node has GPUs");
	json_decref(models);
	json_decref(nodes);
	return rc;
}

static int run_nodes(struct invocation *in, struct err *err)
{
	return watch(in, arg_has(in, "summary") ? show_summary : show, err);
}

static const struct flag nodes_flags[] = {
	{ "summary", 0, NULL, "a row for each GPU model: how many are free, and most on one node",
	  false },
	{ 0 },
};

static const struct column fact_columns[] = {
	{ "FACT", "fact", CELL_TEXT },
	{ "VALUE", "value", CELL_TEXT },
	{ "FROM", "from", CELL_TEXT },
	{ 0 },
};

static int show_facts(struct invocation *in, struct client *client, const struct output *output,
		      struct err *err)
{
	return show_noun(client, output,
			 client_path(in->arena, "/api/v1/nodes/%s/facts", in->args[0]), "facts",
			 fact_columns, "fact", err);
}

static int run_facts(struct invocation *in, struct err *err)
{
	return watch(in, show_facts, err);
}

static int set_state(struct invocation *in, const char *state, const char *done, struct err *err)
{
	json_t *body = json_pack("{s:s}", "state", state);
	int rc;

	if (arg_has(in, "reason"))
		json_object_set_new(body, "reason", json_string(arg_flag(in, "reason")));
	if (arg_has(in, "deadline"))
		json_object_set_new(body, "within", json_string(arg_flag(in, "deadline")));
	rc = change_each(in, "/api/v1/nodes/%s/state", body, done, "node", err);
	json_decref(body);
	return rc;
}

static int run_cordon(struct invocation *in, struct err *err)
{
	return set_state(in, "cordoned", "takes no new work", err);
}

static int run_drain(struct invocation *in, struct err *err)
{
	return set_state(in, "draining", "is being drained", err);
}

static int run_ready(struct invocation *in, struct err *err)
{
	return set_state(in, "ready", "takes work again", err);
}

static int run_set(struct invocation *in, struct err *err)
{
	static const char *const names[] = { "labels", "taints",       "datasets",
					     "class",  "partitioning", "capacity" };
	static const char *const keys[] = { "labels", "taints",       "data",
					    "class",  "partitioning", "capacity" };
	const char *only = arg_has(in, "slices-only") ? arg_flag(in, "slices-only") : "";
	json_t *body = json_object();
	int rc;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (arg_has(in, names[i]))
			json_object_set_new(body, keys[i], json_string(arg_flag(in, names[i])));
	if (*only)
		json_object_set_new(body, "slices_only", json_boolean(strcmp(only, "yes") == 0));
	if (*only && strcmp(only, "yes") != 0 && strcmp(only, "no") != 0)
		rc = err_set(err, ERR_INVALID, "--slices-only takes yes or no");
	else if (json_object_size(body))
		rc = change_each(in, "/api/v1/nodes/%s/marks", body, "is set", "node", err);
	else
		rc = err_set(
			err, ERR_INVALID,
			"nothing to set: give --labels, --taints, --datasets, --class, --partitioning, --slices-only or --capacity");
	json_decref(body);
	return rc;
}

static int run_maintenance(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	json_t *body = json_object();
	bool off = arg_has(in, "off");
	int rc = moment_put(in, "from", body, err);

	if (rc == 0)
		rc = moment_put(in, "to", body, err);
	if (rc == 0 && arg_has(in, "for"))
		json_object_set_new(body, "for", json_string(arg_flag(in, "for")));
	if (rc == 0 && arg_has(in, "reason"))
		json_object_set_new(body, "reason", json_string(arg_flag(in, "reason")));
	if (rc == 0 && off && json_object_size(body))
		rc = err_set(err, ERR_INVALID, "--off calls it off: it goes with no other flag");
	if (off)
		json_object_set_new(body, "off", json_true());
	if (rc == 0 && !off && !arg_has(in, "to") && !arg_has(in, "for"))
		rc = err_set(err, ERR_INVALID,
			     "say when it ends: --to \"2026-12-01 23:00\", or --for 4h");
	if (rc == 0)
		rc = client_open(in, &client, err);
	for (int i = 0; i < in->arg_count && rc >= 0; i++)
		rc = change_noun(
			client, "PUT",
			client_path(in->arena, "/api/v1/nodes/%s/maintenance", in->args[i]), body,
			off ? "has no maintenance" : "has maintenance announced",
			arena_printf(in->arena, "node %s", in->args[i]), err);
	json_decref(body);
	return rc;
}

static const struct flag maintenance_flags[] = {
	{ "from", 0, "TIME",
	  "when it begins: \"2026-12-01 20:00\", 20:00, 2026-12-01T20:00Z, or 2h from now; default now",
	  false },
	{ "to", 0, "TIME", "when it ends, likewise", false },
	{ "for", 0, "DURATION", "or how long it lasts", false },
	{ "reason", 0, "TEXT", "shown with the node, and to those whose jobs wait", false },
	{ "off", 0, NULL, "call it off, also one that has begun", false },
	{ 0 },
};

static const struct flag drain_flags[] = {
	{ "reason", 0, "TEXT", "shown with the node", false },
	{ "deadline", 0, "DURATION",
	  "when it is to be empty: 2h from now; work goes on until its checkpoint is due; default at once",
	  false },
	{ 0 },
};

static const struct flag set_flags[] = {
	{ "labels", 0, "LIST", "all its labels: region=eu,pool=blue; \"\" for none", false },
	{ "taints", 0, "LIST",
	  "all its taints: only jobs that tolerate them run there; \"\" for none", false },
	{ "datasets", 0, "LIST",
	  "all data sets that it keeps: jobs that read them would rather be there; \"\" for none",
	  false },
	{ "class", 0, "any|training|inference",
	  "what it takes: everything, all but inference, or inference alone", false },
	{ "partitioning", 0, "fixed|auto|off",
	  "who cuts its GPUs into slices: an admin, Fairlead too from what jobs ask for, or nobody",
	  false },
	{ "slices-only", 0, "yes|no", "keep its GPUs for slices", false },
	{ "capacity", 0, "on-demand|spot",
	  "how it is paid for; spot: it may be taken away at any time, and only jobs that allow for that run there",
	  false },
	{ 0 },
};

static const struct flag reason_flags[] = {
	{ "reason", 0, "TEXT", "shown with the node", false },
	{ 0 },
};

const struct command command_nodes = {
	.name = "nodes",
	.arguments = "[list]",
	.summary = "list nodes, take them out of use and back",
	.flags = nodes_flags,
	.examples = "fairlead nodes\n"
		    "fairlead nodes --summary\tfree GPUs by model\n"
		    "fairlead nodes cordon n3 --reason \"fan\"\tno new work there",
	.route = "GET /api/v1/nodes",
	.shares = SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
	.run = run_nodes,
};

const struct command command_nodes_facts = {
	.name = "nodes facts",
	.arguments = "NAME",
	.summary = "show what is known of a node, and who says so",
	.about =
		"Its GPUs, driver, processors, how its GPUs are joined, and where it stands. FROM is `file` (`fabric set`, or `up --cluster`), `label`, "
		"`discovery` (its driver and its operating system tell), `declared` (the word that made a simulated node), or `model` (what GPUs of its "
		"model do where nobody says otherwise). A file comes before discovery.",
	.examples = "fairlead nodes facts n3",
	.route = "GET /api/v1/nodes/{name}/facts",
	.shares = SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_NODE,
	.run = run_facts,
};

const struct command command_nodes_cordon = {
	.name = "nodes cordon",
	.arguments = "NAME...",
	.summary = "give a node no new work; what runs there goes on",
	.flags = reason_flags,
	.examples = "fairlead nodes cordon n3 --reason \"fan\"",
	.route = "POST /api/v1/nodes/{name}/state",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_NODE,
	.run = run_cordon,
};

const struct command command_nodes_drain = {
	.name = "nodes drain",
	.arguments = "NAME...",
	.summary = "move the work of a node away, after its checkpoints",
	.about =
		"It takes no new work from now on. It is empty when `fairlead nodes` shows 0 under JOBS.",
	.flags = drain_flags,
	.examples = "fairlead nodes drain n3\n"
		    "fairlead nodes drain n3 --deadline 2h --reason \"new fan\"",
	.route = "POST /api/v1/nodes/{name}/state",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_NODE,
	.run = run_drain,
};

const struct command command_nodes_ready = {
	.name = "nodes ready",
	.arguments = "NAME...",
	.summary = "take a node back into use, also one that was set aside after failures",
	.flags = reason_flags,
	.examples = "fairlead nodes ready n3",
	.route = "POST /api/v1/nodes/{name}/state",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_NODE,
	.run = run_ready,
};

const struct command command_nodes_maintenance = {
	.name = "nodes maintenance",
	.arguments = "NAME...",
	.summary = "announce maintenance of nodes, or call it off",
	.about =
		"Jobs that could still run when it begins start elsewhere, or wait. What runs then is warned so that its grace ends "
		"when it begins, saves, and waits again. The node is back by itself at the end; `fairlead nodes ready` ends it sooner.",
	.flags = maintenance_flags,
	.examples =
		"fairlead nodes maintenance n3 --from \"2026-12-01 20:00\" --for 4h --reason \"new fan\"\n"
		"fairlead nodes maintenance n3 n4 --from 20:00 --to 23:00\n"
		"fairlead nodes maintenance n3 --off",
	.route = "PUT /api/v1/nodes/{name}/maintenance",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_NODE,
	.run = run_maintenance,
};

const struct command command_nodes_set = {
	.name = "nodes set",
	.arguments = "NAME...",
	.summary = "say what a node is: labels, taints, data, class, slices",
	.about =
		"What is given replaces what was; the rest stays. Jobs ask for labels with `selector` and "
		"`region`, and run on a tainted node only when they tolerate its taints. What runs there goes on.",
	.flags = set_flags,
	.examples =
		"fairlead nodes set n3 --labels region=eu,pool=blue\n"
		"fairlead nodes set n3 --taints team=vision --class training\tfor one team's training",
	.route = "POST /api/v1/nodes/{name}/marks",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_NODE,
	.run = run_set,
};
