/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"

static void cell_price(const json_t *row, struct buf *out)
{
	cell_money(get_text(row, "per_hour"), "", out);
}

static const struct column columns[] = {
	{ "MODEL", "model", CELL_TEXT },
	{ "PER-GPU-HOUR", .cell = cell_price },
	{ 0 },
};

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	(void)in;
	return show_noun(client, output, "/api/v1/prices", "prices", columns, "model", err);
}

static int run_prices(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

static int run_set(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	json_t *body = json_pack("{s:s}", "per_hour", in->args[1]);
	int rc = client_open(in, &client, err);

	if (rc >= 0)
		rc = change_noun(
			client, "PUT", client_path(in->arena, "/api/v1/prices/%s", in->args[0]),
			body, "was set", arena_printf(in->arena, "price of %s", in->args[0]), err);
	json_decref(body);
	return rc;
}

const struct command command_prices = {
	.name = "prices",
	.arguments = "[list]",
	.summary = "list what GPUs cost",
	.about =
		"What a GPU of each model costs per hour; `any` is the price of models that are not listed. With budgets of queues "
		"(`fairlead queues budget`) prices say which jobs may start. They are in the same unit as all budgets.",
	.examples = "fairlead prices\n"
		    "fairlead prices set H100-80GB 2.10",
	.route = "GET /api/v1/prices",
	.shares = SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
	.run = run_prices,
};

const struct command command_prices_set = {
	.name = "prices set",
	.arguments = "MODEL AMOUNT",
	.summary = "say what a GPU of a model costs per hour, or none",
	.about =
		"With `none` the model leaves the list, and the price of `any` counts for it. `spot:MODEL` is the price of the model on spot nodes.",
	.examples = "fairlead prices set H100-80GB 2.10\n"
		    "fairlead prices set spot:H100-80GB 0.70\n"
		    "fairlead prices set any 0.80",
	.route = "PUT /api/v1/prices/{model}",
	.shares = SHARES_DAEMON,
	.least = 2,
	.most = 2,
	.run = run_set,
};
