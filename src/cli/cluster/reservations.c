/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "base/check.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/moment.h"
#include "cli/output/nouns.h"

static void cell_places(const json_t *row, struct buf *out)
{
	const json_t *place, *gpu;
	size_t i, k;

	json_array_foreach(json_object_get(row, "places"), i, place)
	{
		if (i)
			buf_addc(out, ',');
		cell_text(out, get_text(place, "node"));
		if (get_bool(row, "whole_nodes"))
			continue;
		buf_addc(out, '[');
		json_array_foreach(json_object_get(place, "gpus"), k, gpu)
		{
			if (k)
				buf_addc(out, ',');
			buf_addi(out, json_integer_value(gpu));
		}
		buf_addc(out, ']');
	}
}

static void cell_moves(const json_t *row, struct buf *out)
{
	buf_addu(out, json_array_size(json_object_get(row, "moves")));
}

static const struct column columns[] = {
	{ "RESERVATION", "name", CELL_TEXT },
	{ "QUEUE", "queue", CELL_TEXT, true },
	{ "USER", "user", CELL_TEXT, true },
	{ "TEAM", "team", CELL_TEXT, true },
	{ "FROM", "from_ms", CELL_TIME },
	{ "TO", "to_ms", CELL_TIME },
	{ "GPUS", "gpus", CELL_INT },
	{ "MODEL", "model", CELL_TEXT, true },
	{ "IDLE", "idle", CELL_TEXT },
	{ "MOVES", .cell = cell_moves },
	{ "PLACES", .cell = cell_places, .cut = true },
	{ "REASON", "reason", CELL_TEXT, .cut = true },
	{ 0 },
};

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	(void)in;
	return show_noun(client, output, "/api/v1/reservations", "reservations", columns, "name",
			 err);
}

static int run_reservations(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

/* Who has to make room when it begins: a person should know before it happens. */
static int moves_say(struct client *client, const char *name, struct err *err)
{
	json_t *rows = NULL, *row;
	AUTO_BUF out = BUF_INIT;
	size_t index, i;
	json_t *job;
	int rc = fetch_list(client, "/api/v1/reservations", "reservations", &rows, err);

	if (rc < 0)
		return rc;
	json_array_foreach(rows, index, row)
	{
		if (strcmp(get_text(row, "name"), name) != 0 ||
		    !json_array_size(json_object_get(row, "moves")))
			continue;
		buf_adds(&out, "runs there without a limit that ends before, and is stopped after "
			       "its checkpoint when it begins: job");
		json_array_foreach(json_object_get(row, "moves"), i, job)
			buf_addf(&out, "%s %lld", i ? "," : "", (long long)json_integer_value(job));
		buf_addc(&out, '\n');
		output_buf(&out);
	}
	json_decref(rows);
	return 0;
}

static int run_set(struct invocation *in, const char *done, struct err *err)
{
	static const char *const texts[] = { "queue", "user",  "team", "for",
					     "nodes", "model", "idle", "reason" };
	AUTO_CLIENT client = NULL;
	json_t *body = json_object();
	int64_t gpus = 0;
	int rc = moment_put(in, "from", body, err);

	if (rc == 0)
		rc = moment_put(in, "to", body, err);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (arg_has(in, texts[i]))
			json_object_set_new(body, texts[i], json_string(arg_flag(in, texts[i])));
	if (rc == 0 && arg_has(in, "gpus")) {
		rc = arg_number(in, "gpus", 1, 2048, 0, &gpus, err);
		json_object_set_new(body, "gpus", json_integer(gpus));
	}
	if (rc == 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = change_noun(client, "PUT",
				 client_path(in->arena, "/api/v1/reservations/%s", in->args[0]),
				 body, done, arena_printf(in->arena, "reservation %s", in->args[0]),
				 err);
	if (rc >= 0)
		rc = moves_say(client, in->args[0], err);
	json_decref(body);
	return rc;
}

static int run_create(struct invocation *in, struct err *err)
{
	if (!arg_has(in, "gpus") && !arg_has(in, "nodes"))
		return err_set(err, ERR_INVALID,
			       "say what to reserve: --gpus N, or --nodes n0,n1 as a whole");
	if (!arg_has(in, "to") && !arg_has(in, "for"))
		return err_set(err, ERR_INVALID,
			       "say when it ends: --to \"2026-12-01 23:00\", or --for 4h");
	return run_set(in, "is reserved", err);
}

static int run_change(struct invocation *in, struct err *err)
{
	return run_set(in, "was changed", err);
}

static int run_delete(struct invocation *in, struct err *err)
{
	return delete_noun(in, "/api/v1/reservations/%s", "reservation", err);
}

static const struct flag set_flags[] = {
	{ "gpus", 0, "N", "so many GPUs, chosen now: those that will be free by themselves first",
	  false },
	{ "nodes", 0, "LIST", "or these nodes as a whole: n0,n1", false },
	{ "from", 0, "TIME",
	  "when it begins: \"2026-12-01 20:00\", 20:00, 2026-12-01T20:00Z, or 2h from now; default now",
	  false },
	{ "to", 0, "TIME", "when it ends, likewise", false },
	{ "for", 0, "DURATION", "or how long it lasts", false },
	{ "queue", 0, "QUEUE",
	  "whose jobs may use it, and those of the queues below; default default, or any with --user or --team",
	  false },
	{ "user", 0, "USER", "whose jobs alone may use it", false },
	{ "team", 0, "TEAM", "whose members' jobs alone may use it", false },
	{ "model", 0, "MODEL", "of the GPUs; default any", false },
	{ "idle", 0, "lend|keep",
	  "what is idle: lend to best-effort work, which goes when it is needed (default), or keep",
	  false },
	{ "reason", 0, "TEXT", "shown with it, and to those whose jobs wait", false },
	{ 0 },
};

const struct command command_reservations = {
	.name = "reservations",
	.arguments = "[list]",
	.summary = "list GPUs reserved in advance",
	.about =
		"MOVES counts jobs that run there now and have to make room when the reservation begins: they are warned so that their "
		"grace ends then, save, and wait again.",
	.examples =
		"fairlead reservations\n"
		"fairlead reservations create course --queue teach --gpus 8 --from \"2026-12-01 09:00\" --for 4h",
	.route = "GET /api/v1/reservations",
	.shares = SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
	.run = run_reservations,
};

const struct command command_reservations_create = {
	.name = "reservations create",
	.arguments = "NAME",
	.summary = "reserve GPUs or nodes for a queue, a user or a team, from one time to another",
	.about =
		"Before it begins nothing starts on its GPUs that could still run then; while it lasts only jobs of its queue, user or team do, and "
		"best-effort work on what is idle. What can't be honoured is refused, with who is in the way.",
	.flags = set_flags,
	.examples =
		"fairlead reservations create course --queue teach --gpus 8 --from \"2026-12-01 09:00\" --for 4h\n"
		"fairlead reservations create paper --queue vision --nodes n3,n4 --from 20:00 --to \"2026-12-03 08:00\" --idle keep\n"
		"fairlead reservations create demo --user vera --gpus 2 --for 3h",
	.route = "PUT /api/v1/reservations/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.run = run_create,
};

const struct command command_reservations_change = {
	.name = "reservations change",
	.arguments = "NAME",
	.summary = "change a reservation; what is not given stays as it is",
	.about = "With --gpus the GPUs are chosen anew.",
	.flags = set_flags,
	.examples = "fairlead reservations change course --to \"2026-12-01 15:00\"",
	.route = "PUT /api/v1/reservations/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.run = run_change,
};

const struct command command_reservations_delete = {
	.name = "reservations delete",
	.arguments = "NAME",
	.summary = "give a reservation up",
	.examples = "fairlead reservations delete course",
	.route = "DELETE /api/v1/reservations/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.run = run_delete,
};
