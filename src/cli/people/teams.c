/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"

static const struct column columns[] = {
	{ "TEAM", "name", CELL_TEXT },
	{ "MEMBERS", "members", CELL_INT },
	{ "TITLE", "title", CELL_TEXT },
	{ 0 },
};

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	(void)in;
	return show_noun(client, output, "/api/v1/teams", "teams", columns, "name", err);
}

static int run_teams(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

static int run_create(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	json_t *body = json_object();
	int rc = parse_name(in->args[0], "team", err);

	if (arg_has(in, "title"))
		json_object_set_new(body, "title", json_string(arg_flag(in, "title")));
	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = change_noun(client, "PUT",
				 client_path(in->arena, "/api/v1/teams/%s", in->args[0]), body,
				 "was made", arena_printf(in->arena, "team %s", in->args[0]), err);
	json_decref(body);
	return rc;
}

static int run_delete(struct invocation *in, struct err *err)
{
	return delete_noun(in, "/api/v1/teams/%s", "team", err);
}

static const struct flag flags[] = {
	{ "title", 0, "TEXT", "its name in full", false },
	{ 0 },
};

const struct command command_teams = {
	.name = "teams",
	.arguments = "[list]",
	.summary = "list, create and delete teams",
	.examples = "fairlead teams create vision --title \"Computer Vision\"",
	.route = "GET /api/v1/teams",
	.shares = SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
	.run = run_teams,
};

const struct command command_teams_create = {
	.name = "teams create",
	.arguments = "NAME",
	.summary = "make a team, or change its title",
	.flags = flags,
	.examples = "fairlead teams create vision --title \"Computer Vision\"",
	.route = "PUT /api/v1/teams/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.run = run_create,
};

const struct command command_teams_delete = {
	.name = "teams delete",
	.arguments = "NAME",
	.summary = "delete a team without members and queues",
	.examples = "fairlead teams delete vision",
	.route = "DELETE /api/v1/teams/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_TEAM,
	.run = run_delete,
};
