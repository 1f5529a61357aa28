/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"

/* One of a GPU's parts repeats the one before: another rank of the same job. */
static bool part_repeats(const json_t *parts, size_t index, const char *key)
{
	return index && json_equal(json_object_get(json_array_get(parts, index), key),
				   json_object_get(json_array_get(parts, index - 1), key));
}

/* "12", or "12,15" where it is shared. */
static void cell_job(const json_t *row, struct buf *out)
{
	const json_t *parts = json_object_get(row, "parts");

	if (!json_array_size(parts) && get_int(row, "job"))
		buf_addi(out, get_int(row, "job"));
	for (size_t i = 0; i < json_array_size(parts); i++)
		if (!part_repeats(parts, i, "job"))
			buf_addf(out, "%s%lld", i ? "," : "",
				 (long long)get_int(json_array_get(parts, i), "job"));
}

static void cell_user(const json_t *row, struct buf *out)
{
	const json_t *parts = json_object_get(row, "parts");

	if (!json_array_size(parts))
		cell_text(out, get_text(row, "user"));
	for (size_t i = 0; i < json_array_size(parts); i++)
		if (!part_repeats(parts, i, "user")) {
			buf_adds(out, i ? "," : "");
			cell_text(out, get_text(json_array_get(parts, i), "user"));
		}
}

/* What can still be had of it. */
static void cell_open(const json_t *row, struct buf *out)
{
	cell_number(json_object_get(row, "open"), out);
}

/* "1g.10gb 1g.10gb:12 3g.40gb": with the job that holds it. */
static void cell_slices(const json_t *row, struct buf *out)
{
	const json_t *slice;
	size_t index;

	json_array_foreach(json_object_get(row, "slices"), index, slice)
	{
		buf_adds(out, index ? " " : "");
		cell_text(out, get_text(slice, "slice"));
		if (get_int(slice, "job"))
			buf_addf(out, ":%lld", (long long)get_int(slice, "job"));
	}
}

static const struct column columns[] = {
	{ "NODE", "node", CELL_TEXT },
	{ "GPU", "index", CELL_INT },
	{ "MODEL", "model", CELL_TEXT },
	{ "MEMORY", "memory_mib", CELL_MEMORY, true },
	{ "SIMULATED", "simulated", CELL_YES },
	{ "STATE", "state", CELL_TEXT },
	{ "JOB", .cell = cell_job },
	{ "USER", .cell = cell_user },
	{ "OPEN", .cell = cell_open },
	{ "OPEN-MEMORY", "open_mib", CELL_MEMORY, true },
	{ "SLICES", .cell = cell_slices, .wide = true },
	{ "REASON", "reason", CELL_TEXT, .cut = true },
	{ 0 },
};

/* A GPU is named NODE/INDEX, as `gpus aside` takes it. */
static void print_names(const json_t *rows)
{
	AUTO_BUF out = BUF_INIT;
	const json_t *row;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)rows, index, row)
	{
		cell_text(&out, get_text(row, "node"));
		buf_addf(&out, "/%lld\n", (long long)get_int(row, "index"));
	}
	output_buf(&out);
}

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	AUTO_BUF path = BUF_INIT;
	json_t *rows = NULL;
	int rc;

	buf_adds(&path, "/api/v1/gpus");
	if (arg_has(in, "node"))
		query_add(&path, "node", arg_flag(in, "node"));
	if (output->form != OUTPUT_NAME)
		return show_noun(client, output, path.data, "gpus", columns, "index", err);
	rc = fetch_list(client, path.data, "gpus", &rows, err);
	if (rc >= 0)
		print_names(rows);
	json_decref(rows);
	return rc;
}

static int run_gpus(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

/* The same for each GPU "n0/3" that is named; `path` has the place of its node. */
static int change_gpus(struct invocation *in, const char *path, json_t *body, const char *done,
		       struct err *err)
{
	AUTO_CLIENT client = NULL;
	int rc = client_open(in, &client, err);

	if (arg_has(in, "reason"))
		json_object_set_new(body, "reason", json_string(arg_flag(in, "reason")));
	for (int i = 0; i < in->arg_count && rc >= 0; i++) {
		const char *slash = strchr(in->args[i], '/'), *node;
		int64_t index;
		struct err why;

		if (!slash || parse_int(slash + 1, 0, 31, &index, &why) < 0)
			return err_set(err, ERR_INVALID,
				       "\"%.60s\" names no GPU; write NODE/INDEX, such as n0/3",
				       in->args[i]);
		node = arena_strndup(in->arena, in->args[i], (size_t)(slash - in->args[i]));
		json_object_set_new(body, "index", json_integer(index));
		rc = change_noun(client, "POST", client_path(in->arena, path, node), body, done,
				 arena_printf(in->arena, "GPU %s", in->args[i]), err);
	}
	return rc;
}

static int set_aside(struct invocation *in, bool aside, struct err *err)
{
	json_t *body = json_pack("{s:b}", "set_aside", aside);
	int rc = change_gpus(in, "/api/v1/nodes/%s/gpus", body,
			     aside ? "is set aside" : "takes work again", err);

	json_decref(body);
	return rc;
}

static int run_aside(struct invocation *in, struct err *err)
{
	return set_aside(in, true, err);
}

static int run_back(struct invocation *in, struct err *err)
{
	return set_aside(in, false, err);
}

static int run_cut(struct invocation *in, struct err *err)
{
	const char *slices = arg_has(in, "slices") ? arg_flag(in, "slices") : "";
	json_t *body;
	int rc;

	if (!arg_has(in, "slices"))
		return err_set(
			err, ERR_INVALID,
			"say into what: --slices 3g.40gb,3g.40gb, or --slices \"\" to make it whole");
	body = json_pack("{s:s}", "slices", slices);
	rc = change_gpus(in, "/api/v1/nodes/%s/slices", body, *slices ? "is cut" : "is whole", err);
	json_decref(body);
	return rc;
}

static const struct flag list_flags[] = {
	{ "node", 0, "NAME", "only of this node", false },
	{ 0 },
};
static const struct flag cut_flags[] = {
	{ "slices", 0, "LIST", "its slices: 3g.40gb,2g.20gb,1g.10gb; \"\" makes it whole", false },
	{ "reason", 0, "TEXT", "kept in the history", false },
	{ 0 },
};
static const struct flag reason_flags[] = {
	{ "reason", 0, "TEXT", "shown with the GPU", false },
	{ 0 },
};

const struct command command_gpus = {
	.name = "gpus",
	.arguments = "[list]",
	.summary = "list GPUs with the job on each, set them aside and back",
	.flags = list_flags,
	.examples = "fairlead gpus --node n0\n"
		    "fairlead gpus aside n0/3 --reason \"ECC errors\"",
	.route = "GET /api/v1/gpus",
	.shares = SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
	.run = run_gpus,
};

const struct command command_gpus_aside = {
	.name = "gpus aside",
	.arguments = "NODE/INDEX...",
	.summary = "give a GPU no new work",
	.flags = reason_flags,
	.examples = "fairlead gpus aside n0/3 --reason \"ECC errors\"",
	.route = "POST /api/v1/nodes/{name}/gpus",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_GPU,
	.run = run_aside,
};

const struct command command_gpus_cut = {
	.name = "gpus cut",
	.arguments = "NODE/INDEX...",
	.summary = "cut an idle GPU into slices (MIG), or make it whole",
	.about =
		"Slices have compute and memory of their own; jobs ask for one with `gpus: 1g.10gb`. What a model can be cut into, and "
		"what can exist together, is checked. A GPU that is in use, or promised, is refused.",
	.flags = cut_flags,
	.examples = "fairlead gpus cut n0/3 --slices 3g.40gb,2g.20gb,2g.20gb\n"
		    "fairlead gpus cut n0/3 --slices \"\"\twhole again",
	.route = "POST /api/v1/nodes/{name}/slices",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_GPU,
	.run = run_cut,
};

const struct command command_gpus_back = {
	.name = "gpus back",
	.arguments = "NODE/INDEX...",
	.summary = "take a GPU back into use, also one that was set aside after failures",
	.flags = reason_flags,
	.examples = "fairlead gpus back n0/3",
	.route = "POST /api/v1/nodes/{name}/gpus",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_GPU,
	.run = run_back,
};
