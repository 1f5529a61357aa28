/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"
#include "cli/output/problem.h"

enum { FILE_MAX_BYTES = 64 << 10 }; /* of a body of the API */

/* "370.8 GB/s"; nothing for 0. */
static void add_rate(struct buf *out, int64_t mbps)
{
	if (mbps)
		buf_addf(out, "%lld.%lld GB/s", (long long)(mbps / 1000),
			 (long long)(mbps % 1000 / 100));
}

static void cell_cards(const json_t *row, struct buf *out)
{
	if (!get_int(row, "nics"))
		return;
	buf_addf(out, "%lld x ", (long long)get_int(row, "nics"));
	add_rate(out, get_int(row, "nic_mbps"));
}

static void cell_nvlink(const json_t *row, struct buf *out)
{
	add_rate(out, get_int(row, "nvlink_mbps"));
}

static void cell_pcie(const json_t *row, struct buf *out)
{
	add_rate(out, get_int(row, "pcie_mbps"));
}

static void cell_numa(const json_t *row, struct buf *out)
{
	add_rate(out, get_int(row, "between_numa_mbps"));
}

static const struct column columns[] = {
	{ "NODES", "nodes", CELL_INT },
	{ "GPUS", "gpus", CELL_INT },
	{ "MODEL", "model", CELL_TEXT },
	{ "CARDS", .cell = cell_cards },
	{ "NVLINK", .cell = cell_nvlink },
	{ "PCIE", .cell = cell_pcie },
	{ "BETWEEN-NUMA", .cell = cell_numa },
	{ "FROM", "from", CELL_TEXT },
	{ 0 },
};

static void add_levels(const json_t *levels, struct buf *out)
{
	const json_t *level;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)levels, index, level)
	{
		int64_t over = get_int(level, "oversubscription_milli");

		buf_addf(out, "%-10s ", get_text(level, "level"));
		if (get_bool(level, "nvlink"))
			buf_adds(out, "joined by NVLink");
		else
			buf_addf(out, "%lld%s%.*lld:1, %lld ns", (long long)(over / 1000),
				 over % 1000 ? "." : "", over % 1000 ? 3 : 0,
				 (long long)(over % 1000), (long long)get_int(level, "latency_ns"));
		if (get_bool(level, "reduces"))
			buf_adds(out, ", its switches add up");
		if (get_int(level, "host_mbps")) {
			buf_adds(out, ", at most ");
			add_rate(out, get_int(level, "host_mbps"));
			buf_adds(out, " for one host");
		}
		buf_addc(out, '\n');
	}
}

static void add_data(const json_t *answer, struct buf *out)
{
	const json_t *row, *place;
	size_t index, at;
	char text[DURATION_TEXT_MAX];

	json_array_foreach(json_object_get(answer, "data"), index, row)
	{
		buf_adds(out, "data set ");
		say_text(out, get_text(row, "name"));
		buf_addf(out, ": %s", format_size_mib(get_int(row, "size_mib"), text));
		json_array_foreach(json_object_get(row, "at"), at, place)
		{
			buf_adds(out, at ? ", " : ", in ");
			say_text(out, json_string_value(place));
		}
		buf_addc(out, '\n');
	}
	json_array_foreach(json_object_get(answer, "transfers"), index, row)
	{
		buf_adds(out, "transfer ");
		say_text(out, get_text(row, "from"));
		buf_adds(out, " to ");
		say_text(out, get_text(row, "to"));
		buf_adds(out, ": ");
		say_money(out, get_text(row, "price"), "");
		buf_adds(out, " a GB");
		if (get_int(row, "mbps")) {
			buf_adds(out, ", ");
			add_rate(out, get_int(row, "mbps"));
		}
		buf_addc(out, '\n');
	}
}

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	json_t *answer = NULL;
	AUTO_BUF text = BUF_INIT;
	int rc = client_get(client, "/api/v1/fabric", &answer, err);

	(void)in;
	if (rc < 0)
		return rc;
	if (!output_value(output, answer, "known")) {
		if (!get_bool(answer, "known")) {
			buf_adds(
				&text,
				"Nobody has described how fast GPUs talk to each other: nothing is predicted, and packing alone decides.\n"
				"`fairlead fabric set FILE` describes it.\n");
		} else {
			add_levels(json_object_get(answer, "levels"), &text);
			buf_addc(&text, '\n');
		}
		add_data(answer, &text);
		output_buf(&text);
		if (get_bool(answer, "known"))
			rc = output_list(output, columns, json_object_get(answer, "makes"), "make",
					 err);
	}
	json_decref(answer);
	return rc < 0 ? rc : 0;
}

static int run_fabric(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

static int file_read(struct invocation *in, const char *path, char **ret, size_t *ret_size,
		     struct err *err)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char *text = arena_alloc(in->arena, FILE_MAX_BYTES + 2);
	size_t size;
	int failed;

	if (!file)
		return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
				 "cluster file \"%.200s\" can't be opened", path);
	errno = 0;
	size = fread(text, 1, FILE_MAX_BYTES + 1, file);
	failed = ferror(file) ? errno : 0;
	if (file != stdin)
		fclose(file);
	if (failed)
		return err_errno(err, ERR_IO, failed, "cluster file \"%.200s\" can't be read",
				 path);
	if (size > FILE_MAX_BYTES)
		return err_set(
			err, ERR_TOO_LARGE,
			"cluster file \"%.200s\" is larger than its limit of %d bytes; ranges such as \"n[0-15]\" make it short",
			path, FILE_MAX_BYTES);
	*ret = text;
	*ret_size = size;
	return 0;
}

static int run_set(struct invocation *in, struct err *err)
{
	const char *file = strcmp(in->args[0], "-") == 0 ? "standard input" : in->args[0];
	AUTO_CLIENT client = NULL;
	json_t *answer = NULL;
	AUTO_BUF out = BUF_INIT;
	char *text = NULL;
	size_t size = 0;
	int rc = file_read(in, in->args[0], &text, &size, err);

	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0) {
		const struct call call = { .method = "PUT",
					   .path = "/api/v1/fabric",
					   .content_type = "application/yaml",
					   .body = text,
					   .body_size = size };

		rc = client_call(client, &call, &answer, err);
	}
	if (rc < 0) {
		if (strcmp(err->file, "request body") == 0) {
			snprintf(err->file, sizeof(err->file), "%s", file);
			problem_source(file, text, size);
		}
		return rc;
	}
	buf_addf(&out, "fabric %s\n", get_bool(answer, "already") ? "was so already" : "was set");
	output_buf(&out);
	json_decref(answer);
	return 0;
}

const struct command command_fabric = {
	.name = "fabric",
	.arguments = "[show]",
	.summary = "show how fast GPUs talk to each other",
	.about =
		"The levels of the cluster, and how its hosts are built. Where this is described, jobs with several GPUs go where the network is "
		"best for them, `fairlead job` shows the bandwidth that is expected of their place, and a job may wait for a place that is fast "
		"enough (topology.max_slowdown).",
	.examples = "fairlead fabric\n"
		    "fairlead fabric -o yaml\twith all figures",
	.route = "GET /api/v1/fabric",
	.shares = SHARES_OUTPUT | SHARES_WATCH | SHARES_DAEMON,
	.run = run_fabric,
};

const struct command command_fabric_set = {
	.name = "fabric set",
	.arguments = "FILE",
	.summary = "describe the cluster tree and its network",
	.about =
		"FILE says the levels above a node, where nodes stand, what network cards they have, and how much narrower each level is "
		"(docs/cluster-file.md). It replaces what was said before; `-` reads standard input.",
	.examples = "fairlead fabric set cluster.yaml",
	.route = "PUT /api/v1/fabric",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_FILE,
	.run = run_set,
};
