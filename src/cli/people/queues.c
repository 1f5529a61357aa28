/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"
#include "cli/output/problem.h"
#include "cli/people/promised.h"

static void cell_used(const json_t *row, struct buf *out)
{
	buf_addf(out, "%lldh", (long long)get_int(row, "used_gpu_ms") / 3600000);
}

/* As it counts: the default queue owns what nobody else is promised. */
static void cell_guarantee(const json_t *row, struct buf *out)
{
	cell_number(json_object_get(row, "promised_gpus"), out);
}
static void cell_held(const json_t *row, struct buf *out)
{
	cell_number(json_object_get(row, "gpus"), out);
}
static void cell_limit(const json_t *row, struct buf *out)
{
	cell_number(json_object_get(row, "limit_gpus"), out);
}

static void cell_budget(const json_t *row, struct buf *out)
{
	if (get_text(row, "budget_left")[0])
		cell_money(get_text(row, "budget_left"), get_text(row, "currency"), out);
}

static void cell_max_priority(const json_t *row, struct buf *out)
{
	cell_number(json_object_get(row, "max_priority"), out);
}

/* "4 GPUs, 50%, 100 waiting" */
static void cell_user_limit(const json_t *row, struct buf *out)
{
	static const struct {
		const char *field, *unit;
	} parts[] = {
		{ "user_limit_gpus", " GPUs" },
		{ "user_limit_percent", "%" },
		{ "user_waiting", " waiting" },
	};
	const char *comma = "";

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const json_t *value = json_object_get(row, parts[i].field);

		if (!value)
			continue;
		buf_adds(out, comma);
		cell_number(value, out);
		buf_adds(out, parts[i].unit);
		comma = ", ";
	}
}

static const struct column columns[] = {
	{ "QUEUE", "name", CELL_TEXT },
	{ "PARENT", "parent", CELL_TEXT },
	{ "TEAM", "team", CELL_TEXT },
	{ "GUARANTEE", .cell = cell_guarantee },
	{ "LIMIT", .cell = cell_limit },
	{ "WEIGHT", "weight", CELL_INT },
	{ "GPUS", .cell = cell_held },
	{ "RUNNING", "running", CELL_INT },
	{ "WAITING", "waiting", CELL_INT },
	{ "RESERVED", "reserved", CELL_YES, true },
	{ "DEFAULT-LIMIT", "default_limit_ms", CELL_DURATION, true },
	{ "USED-GPU-TIME", .cell = cell_used, .wide = true },
	{ "LIMIT-MODELS", "limit_models", CELL_TEXT, true },
	{ "GUARANTEE-MODELS", "guarantee_models", CELL_TEXT, true },
	{ "BUDGET-LEFT", .cell = cell_budget, .wide = true },
	{ "CALENDAR", "calendar", CELL_TEXT, true },
	{ "TIERS", "tiers", CELL_TEXT, true },
	{ "MAX-PRIORITY", .cell = cell_max_priority, .wide = true },
	{ "USER-LIMIT", .cell = cell_user_limit, .wide = true },
	{ 0 },
};

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	(void)in;
	return show_noun(client, output, "/api/v1/queues", "queues", columns, "name", err);
}

static int run_queues(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

static int exists(struct client *client, const char *name, bool *ret, struct err *err)
{
	json_t *rows = NULL, *row;
	size_t index;
	int rc = fetch_list(client, "/api/v1/queues", "queues", &rows, err);

	*ret = false;
	json_array_foreach(rows, index, row) *ret =
		*ret || strcmp(get_text(row, "name"), name) == 0;
	json_decref(rows);
	return rc;
}

/* What the flags say of the queue. */
static int queue_body(const struct invocation *in, json_t *body, struct err *err)
{
	static const struct {
		const char *flag, *field;
	} texts[] = {
		{ "parent", "parent" },
		{ "team", "team" },
		{ "guarantee", "guarantee_gpus" },
		{ "limit", "limit_gpus" },
		{ "default-limit", "default_limit" },
		{ "calendar", "calendar" },
		{ "limit-models", "limit_models" },
		{ "limit-memory", "limit_memory" },
		{ "guarantee-models", "guarantee_models" },
		{ "tiers", "tiers" },
		{ "max-priority", "max_priority" },
		{ "user-limit", "user_limit_gpus" },
		{ "user-percent", "user_limit_percent" },
		{ "user-waiting", "user_waiting" },
	};
	int64_t weight, cpus;
	int rc = arg_number(in, "weight", 1, 1000000, 0, &weight, err);

	if (rc >= 0)
		rc = arg_number(in, "limit-cpus", 0, 1000000000, 0, &cpus, err);
	if (rc >= 0 && arg_has(in, "limit-cpus"))
		json_object_set_new(body, "limit_cpus", json_integer(cpus));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (arg_has(in, texts[i].flag))
			json_object_set_new(body, texts[i].field,
					    json_string(arg_flag(in, texts[i].flag)));
	if (weight)
		json_object_set_new(body, "weight", json_integer(weight));
	if (arg_has(in, "reserved"))
		json_object_set_new(body, "reserved",
				    json_boolean(strcmp(arg_flag(in, "reserved"), "yes") == 0));
	return rc;
}

static void warn(void *context, const char *text)
{
	(void)context;
	notice("%s", text);
}

static int set_queue(struct invocation *in, bool create, struct err *err)
{
	AUTO_CLIENT client = NULL;
	json_t *body = json_object();
	bool there = false;
	int rc = parse_name(in->args[0], "queue", err);

	if (rc >= 0)
		rc = queue_body(in, body, err);
	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = exists(client, in->args[0], &there, err);
	if (rc >= 0 && create && there)
		rc = err_set(err, ERR_CONFLICT,
			     "queue \"%s\" is there already; `fairlead queues change` changes it",
			     in->args[0]);
	if (rc >= 0 && !create && !there)
		rc = err_set(err, ERR_NOT_FOUND,
			     "there is no queue \"%s\"; `fairlead queues create` makes one",
			     in->args[0]);
	if (rc >= 0)
		rc = change_noun(client, "PUT",
				 client_path(in->arena, "/api/v1/queues/%s", in->args[0]), body,
				 create ? "was made" : "was changed",
				 arena_printf(in->arena, "queue %s", in->args[0]), err);
	json_decref(body);
	if (rc >= 0 && (arg_has(in, "guarantee") || arg_has(in, "guarantee-models")))
		rc = promised_look(client, in->arena, NULL, warn, err);
	if (rc > 0)
		rc = 0;
	return rc;
}

static int run_create(struct invocation *in, struct err *err)
{
	return set_queue(in, true, err);
}

static int run_change(struct invocation *in, struct err *err)
{
	return set_queue(in, false, err);
}

static int run_delete(struct invocation *in, struct err *err)
{
	return delete_noun(in, "/api/v1/queues/%s", "queue", err);
}

static const struct flag set_flags[] = {
	{ "guarantee", 0, "GPUS", "GPUs promised to it; what it does not use is lent", false },
	{ "limit", 0, "GPUS", "GPUs it may never pass, or none", false },
	{ "weight", 0, "N", "its part of what nobody is promised; default 1", false },
	{ "parent", 0, "QUEUE", "the queue above it", false },
	{ "team", 0, "NAME", "only this team's members may submit; default everybody", false },
	{ "reserved", 0, "yes|no", "yes: its guarantee is never lent; default no", false },
	{ "default-limit", 0, "DURATION", "run time assumed for jobs that declare none", false },
	{ "limit-models", 0, "MODEL=GPUS,...",
	  "GPUs it may never pass by model: H100-80GB=8,any=4, any being those not named; or none",
	  false },
	{ "guarantee-models", 0, "MODEL=GPUS,...",
	  "GPUs promised to it by model, their sum being its guarantee: H100-80GB=8,any=4; or none",
	  false },
	{ "limit-cpus", 0, "N", "processors it may never pass; 0 = no limit", false },
	{ "limit-memory", 0, "SIZE", "memory it may never pass: 512GiB; 0 = no limit", false },
	{ "tiers", 0, "TIER,...",
	  "tiers that it admits: critical,standard,best-effort; default: standard and best-effort, critical from its leads and admins",
	  false },
	{ "max-priority", 0, "N",
	  "highest priority that it admits; none, the default: 0, 100 from its leads, any from admins",
	  false },
	{ "user-limit", 0, "GPUS", "GPUs that the jobs of one user may hold at once, or none",
	  false },
	{ "user-percent", 0, "N",
	  "the same in percent of the GPUs that the queue may hold, 1 to 100, or none", false },
	{ "user-waiting", 0, "N",
	  "jobs of one user that may wait; none, the default: 10000 in all queues together",
	  false },
	{ "calendar", 0, "WINDOWS",
	  "when its jobs may start: \"mon-fri 20:00-08:00, sat-sun, Europe/Berlin\"; default always",
	  false },
	{ 0 },
};

const struct command command_queues = {
	.name = "queues",
	.arguments = "[list]",
	.summary = "list, create, change and delete queues",
	.about =
		"A queue's share is its guarantee plus its weighted part of what nobody is promised or its owner leaves idle. Work above the "
		"share runs as long as others leave room.\n\n"
		"GUARANTEE is as it counts now: the queue default, unless it is given a guarantee of its own, owns all GPUs that no other "
		"queue is promised.",
	.examples = "fairlead queues\n"
		    "fairlead queues create vision --guarantee 8 --limit 32 --team vision",
	.route = "GET /api/v1/queues",
	.shares = SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
	.run = run_queues,
};

const struct command command_queues_create = {
	.name = "queues create",
	.arguments = "NAME",
	.summary = "make a queue",
	.flags = set_flags,
	.examples = "fairlead queues create vision --guarantee 8 --team vision",
	.route = "PUT /api/v1/queues/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.run = run_create,
};

const struct command command_queues_change = {
	.name = "queues change",
	.arguments = "NAME",
	.summary = "change a queue; what is not given stays",
	.flags = set_flags,
	.about =
		"A lead changes the queues of the own team, and those below them. What divides the cluster between teams (parent, team, "
		"guarantee, limits, weight of a team's highest queue) an admin changes.",
	.examples = "fairlead queues change vision --guarantee 16\n"
		    "fairlead queues change vision --tiers critical,standard --user-limit 8\n"
		    "fairlead queues change vision --limit none",
	.route = "PUT /api/v1/queues/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_QUEUE,
	.run = run_change,
};

const struct command command_queues_delete = {
	.name = "queues delete",
	.arguments = "NAME",
	.summary = "delete a queue without jobs and without queues below it",
	.examples = "fairlead queues delete vision",
	.route = "DELETE /api/v1/queues/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_QUEUE,
	.run = run_delete,
};

static int run_budget(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	json_t *body = json_pack("{s:s}", "left", in->args[1]);
	int rc = client_open(in, &client, err);

	if (arg_has(in, "currency"))
		json_object_set_new(body, "currency", json_string(arg_flag(in, "currency")));
	if (rc >= 0)
		rc = change_noun(client, "PUT",
				 client_path(in->arena, "/api/v1/queues/%s/budget", in->args[0]),
				 body, "was set",
				 arena_printf(in->arena, "budget of queue %s", in->args[0]), err);
	json_decref(body);
	return rc;
}

static const struct flag budget_flags[] = {
	{ "currency", 0, "NAME", "the unit, shown with amounts: EUR; default as it was", false },
	{ 0 },
};

const struct command command_queues_budget = {
	.name = "queues budget",
	.arguments = "NAME AMOUNT",
	.summary = "say what a queue has left to spend, or none",
	.about =
		"A job whose expected cost (GPUs, price of the cheapest model it accepts, expected run time) is more than what is left, "
		"less what running jobs cost until their expected ends, waits with the reason `budget`. The budgets of the queues above "
		"count too. When a job ends, what it cost is deducted "
		"from what is left.",
	.flags = budget_flags,
	.examples = "fairlead queues budget vision 1250.50 --currency EUR\n"
		    "fairlead queues budget vision none",
	.route = "PUT /api/v1/queues/{name}/budget",
	.shares = SHARES_DAEMON,
	.least = 2,
	.most = 2,
	.argument = ARGUMENT_QUEUE,
	.run = run_budget,
};
