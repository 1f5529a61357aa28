/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"
#include "cli/output/problem.h"

static void cell_expires(const json_t *row, struct buf *out)
{
	if (get_int(row, "expires_ms"))
		cell_time(out, get_int(row, "expires_ms"));
	else
		buf_adds(out, "never");
}

static const struct column columns[] = {
	{ "TOKEN", "id", CELL_TEXT },    { "USER", "user", CELL_TEXT },
	{ "STATE", "state", CELL_TEXT }, { "EXPIRES", .cell = cell_expires },
	{ "NOTE", "note", CELL_TEXT },   { 0 },
};

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	(void)in;
	return show_noun(client, output, "/api/v1/tokens", "tokens", columns, "id", err);
}

static int run_token(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

static int run_create(struct invocation *in, struct err *err)
{
	static const char *const texts[] = { "user", "note", "expires" };
	AUTO_CLIENT client = NULL;
	struct output output;
	json_t *body = json_object(), *answer = NULL;
	AUTO_BUF out = BUF_INIT;
	int rc = client_open(in, &client, err);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (arg_has(in, texts[i]))
			json_object_set_new(body, texts[i], json_string(arg_flag(in, texts[i])));
	if (rc >= 0)
		rc = client_send(client, "POST", "/api/v1/tokens", body, &answer, err);
	json_decref(body);
	if (rc < 0)
		return rc;
	output_init(&output, in);
	if (!output_value(&output, answer, "token")) {
		buf_addf(&out, "%s\n", get_text(answer, "token"));
		output_buf(&out);
		notice("token %s acts for %s; it is shown only this once. Put it into FAIRLEAD_TOKEN.",
		       get_text(answer, "id"), get_text(answer, "user"));
	}
	json_decref(answer);
	return 0;
}

static int run_revoke(struct invocation *in, struct err *err)
{
	return delete_noun(in, "/api/v1/tokens/%s", "token", err);
}

static const struct flag create_flags[] = {
	{ "user", 0, "NAME", "the account it acts for; default you", false },
	{ "expires", 0, "DURATION", "how long it is valid: 30d, or never; default 90d", false },
	{ "note", 0, "TEXT", "what it is for", false },
	{ 0 },
};

const struct command command_token = {
	.name = "token",
	.arguments = "[list]",
	.summary = "list, create and revoke tokens for access over TCP",
	.examples = "export FAIRLEAD_TOKEN=$(fairlead token create --expires 30d)",
	.route = "GET /api/v1/tokens",
	.shares = SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
	.run = run_token,
};

const struct command command_token_create = {
	.name = "token create",
	.arguments = "",
	.summary = "make a token; it is printed once and kept nowhere",
	.flags = create_flags,
	.examples = "export FAIRLEAD_TOKEN=$(fairlead token create --expires 30d --note laptop)",
	.route = "POST /api/v1/tokens",
	.shares = SHARES_OUTPUT | SHARES_DAEMON,
	.run = run_create,
};

const struct command command_token_revoke = {
	.name = "token revoke",
	.arguments = "ID",
	.summary = "end a token",
	.examples = "fairlead token revoke t-6561de8de338",
	.route = "DELETE /api/v1/tokens/{id}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_TOKEN,
	.run = run_revoke,
};
