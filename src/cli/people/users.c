/* SPDX-License-Identifier: Apache-2.0 */
#include <pwd.h>
#include <string.h>

#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"
#include "cli/people/user_file.h"
#include "cli/submission/submission.h"

static void cell_uid(const json_t *row, struct buf *out)
{
	if (get_int(row, "uid") >= 0)
		buf_addi(out, get_int(row, "uid"));
}

static const struct column columns[] = {
	{ "USER", "name", CELL_TEXT },
	{ "TEAM", "team", CELL_TEXT },
	{ "ROLE", "role", CELL_TEXT },
	{ "UID", .cell = cell_uid },
	{ "DEFAULT-QUEUE", "default_queue", CELL_TEXT, true },
	{ 0 },
};

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	(void)in;
	return show_noun(client, output, "/api/v1/users", "users", columns, "name", err);
}

static int run_users(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

static int user_body(const struct invocation *in, json_t *body, struct err *err)
{
	static const struct {
		const char *flag, *field;
	} texts[] = { { "team", "team" },
		      { "role", "role" },
		      { "default-queue", "default_queue" } };
	int64_t uid, gid;
	int rc = arg_number(in, "uid", -1, UINT32_MAX - 1, -2, &uid, err);

	if (rc >= 0)
		rc = arg_number(in, "gid", -1, UINT32_MAX - 1, -2, &gid, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (arg_has(in, texts[i].flag))
			json_object_set_new(body, texts[i].field,
					    json_string(arg_flag(in, texts[i].flag)));
	if (uid > -2)
		json_object_set_new(body, "uid", json_integer(uid));
	if (gid > -2)
		json_object_set_new(body, "gid", json_integer(gid));
	return 0;
}

/*
 * A new user gets the account of the same name on this machine, unless --uid says another. Returns
 * what to say when it is done.
 */
static const char *add_account(const struct invocation *in, const char *name, json_t *body)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	if (json_object_get(body, "uid"))
		return "was added";
	if (arg_has(in, "no-account"))
		return arena_printf(in->arena,
				    "was added; `fairlead token create --user %s` lets them in",
				    name);
	if (getpwnam_r(name, &entry, room, sizeof(room), &found) != 0 || !found)
		return arena_printf(
			in->arena,
			"was added, but this machine has no account %s: `fairlead users change %s --uid N` says as which one their jobs "
			"run; until then they may look, with `fairlead token create --user %s`",
			name, name, name);
	json_object_set_new(body, "uid", json_integer((json_int_t)entry.pw_uid));
	if (!json_object_get(body, "gid"))
		json_object_set_new(body, "gid", json_integer((json_int_t)entry.pw_gid));
	return arena_printf(in->arena, "was added, for the account %s of this machine (uid %u)",
			    name, entry.pw_uid);
}

static int exists(struct client *client, const char *name, bool *ret, struct err *err)
{
	json_t *rows = NULL, *row;
	size_t index;
	int rc = fetch_list(client, "/api/v1/users", "users", &rows, err);

	*ret = false;
	json_array_foreach(rows, index, row) *ret =
		*ret || strcmp(get_text(row, "name"), name) == 0;
	json_decref(rows);
	return rc;
}

static int set_user(struct invocation *in, bool add, struct err *err)
{
	AUTO_CLIENT client = NULL;
	json_t *body = json_object();
	const char *done = "was changed";
	bool there = false;
	int rc = parse_name(in->args[0], "user", err);

	if (rc >= 0)
		rc = user_body(in, body, err);
	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = exists(client, in->args[0], &there, err);
	if (rc >= 0 && add && there)
		rc = err_set(err, ERR_CONFLICT,
			     "user \"%s\" is there already; `fairlead users change` changes them",
			     in->args[0]);
	if (rc >= 0 && !add && !there)
		rc = err_set(err, ERR_NOT_FOUND,
			     "there is no user \"%s\"; `fairlead users add` makes one",
			     in->args[0]);
	if (add)
		done = add_account(in, in->args[0], body);
	if (rc >= 0)
		rc = change_noun(client, "PUT",
				 client_path(in->arena, "/api/v1/users/%s", in->args[0]), body,
				 done, arena_printf(in->arena, "user %s", in->args[0]), err);
	json_decref(body);
	return rc;
}

/* --- users of a file ------------------------------------------------------------------------------------ */

static int row_body(const struct user_row *row, const char *file, json_t *body, struct err *err)
{
	for (int i = USER_TEAM; i < USER_COLUMNS; i++) {
		const char *text = row->value[i];
		struct err why;
		int64_t id;

		if (!text)
			continue;
		if (i != USER_UID && i != USER_GID) {
			json_object_set_new(body, user_column_name((enum user_column)i),
					    json_string(text));
			continue;
		}
		if (parse_int(text, -1, UINT32_MAX - 1, &id, &why) < 0)
			return err_set(err, ERR_INVALID, "%s:%u: %s: %s", file, row->line,
				       user_column_name((enum user_column)i), why.text);
		json_object_set_new(body, user_column_name((enum user_column)i), json_integer(id));
	}
	return 0;
}

/* Of all users before the first one is added: nobody is there already. */
static int rows_check(struct client *client, const char *file, const struct user_row *rows,
		      uint32_t count, struct err *err)
{
	json_t *users = NULL, *user;
	size_t index;
	int rc = fetch_list(client, "/api/v1/users", "users", &users, err);

	for (uint32_t i = 0; rc >= 0 && i < count; i++)
		json_array_foreach(users, index,
				   user) if (strcmp(get_text(user, "name"),
						    rows[i].value[USER_NAME]) == 0) rc =
			err_set(err, ERR_CONFLICT,
				"%s:%u: user \"%s\" is there already, and nobody was added; remove the line, `fairlead users change` changes them",
				file, rows[i].line, rows[i].value[USER_NAME]);
	json_decref(users);
	return rc;
}

static int row_send(struct invocation *in, struct client *client, const char *file,
		    const struct user_row *row, struct err *err)
{
	const char *name = row->value[USER_NAME], *done;
	json_t *body = json_object();
	int rc = row_body(row, file, body, err);

	done = add_account(in, name, body);
	if (rc >= 0)
		rc = change_noun(client, "PUT", client_path(in->arena, "/api/v1/users/%s", name),
				 body, done, arena_printf(in->arena, "user %s", name), err);
	json_decref(body);
	return rc;
}

static int file_users(struct invocation *in, const char *file, struct err *err)
{
	AUTO_CLIENT client = NULL;
	AUTO_BUF text = BUF_INIT;
	struct user_row *rows = NULL;
	uint32_t count = 0;
	int rc = file_read_whole(file, arena_printf(in->arena, "\"%.200s\"", file), USER_FILE_BYTES,
				 &text, err);

	if (rc >= 0)
		rc = user_file_read(file, buf_text(&text), text.size, in->arena, &rows, &count,
				    err);
	for (uint32_t i = 0; rc >= 0 && i < count; i++) {
		json_t *body = json_object();

		rc = row_body(&rows[i], file, body, err);
		json_decref(body);
	}
	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = rows_check(client, file, rows, count, err);
	for (uint32_t i = 0; rc >= 0 && i < count; i++) {
		rc = row_send(in, client, file, &rows[i], err);
		if (rc < 0)
			return err_prefix(err, "%s:%u (%u of %u users were added before)", file,
					  rows[i].line, i, count);
	}
	return rc;
}

static int run_add(struct invocation *in, struct err *err)
{
	static const char *const single[] = { "role", "team", "uid", "gid", "default-queue" };

	if (!arg_has(in, "from"))
		return in->arg_count
			       ? set_user(in, true, err)
			       : err_set(err, ERR_INVALID, "users add needs NAME, or --from FILE");
	if (in->arg_count)
		return err_set(
			err, ERR_INVALID,
			"users add takes NAME or --from FILE, not both: put \"%s\" into the file",
			in->args[0]);
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		if (arg_has(in, single[i]))
			return err_set(
				err, ERR_INVALID,
				"--%s is for one user; with --from the file has a column for it",
				single[i]);
	return file_users(in, arg_flag(in, "from"), err);
}

static int run_change(struct invocation *in, struct err *err)
{
	return set_user(in, false, err);
}

static int run_remove(struct invocation *in, struct err *err)
{
	return delete_noun(in, "/api/v1/users/%s", "user", err);
}

static const struct flag add_flags[] = {
	{ "role", 0, "viewer|researcher|service|lead|admin", "what they may do; default researcher",
	  false },
	{ "team", 0, "NAME", "their team", false },
	{ "uid", 0, "N", "account on this machine; default the one of the same name", false },
	{ "gid", 0, "N", "its group", false },
	{ "no-account", 0, NULL, "they have none on this machine and come with tokens only",
	  false },
	{ "default-queue", 0, "QUEUE",
	  "of their jobs that name none, unless their team has exactly one queue", false },
	{ "from", 0, "FILE",
	  "add the users of a CSV file: its first line names the columns, name,team,role,uid,gid,default_queue, of which only name is needed",
	  false },
	{ 0 },
};
static const struct flag change_flags[] = {
	{ "role", 0, "viewer|researcher|service|lead|admin", "what they may do", false },
	{ "team", 0, "NAME", "their team; \"\" = none", false },
	{ "uid", 0, "N", "account on this machine; -1 = none", false },
	{ "gid", 0, "N", "its group", false },
	{ "default-queue", 0, "QUEUE",
	  "of their jobs that name none, unless their team has exactly one queue; \"\" = none",
	  false },
	{ 0 },
};

const struct command command_users = {
	.name = "users",
	.arguments = "[list]",
	.summary = "list, add, change and remove users",
	.about =
		"viewer sees lists; researcher submits and manages their own jobs; service is the same for programs; lead also manages jobs, "
		"members, queues and tokens of their team; admin may do all.",
	.examples = "fairlead users add alice --team vision\n"
		    "fairlead users change alice --role lead",
	.route = "GET /api/v1/users",
	.shares = SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
	.run = run_users,
};

const struct command command_users_add = {
	.name = "users add",
	.arguments = "[NAME]",
	.summary = "add a user, or those of a file",
	.flags = add_flags,
	.examples = "fairlead users add alice --team vision\tthe account alice of this machine\n"
		    "fairlead users add ci --role service --no-account\n"
		    "fairlead users add --from people.csv",
	.route = "PUT /api/v1/users/{name}",
	.shares = SHARES_DAEMON,
	.least = 0,
	.most = 1,
	.run = run_add,
};

const struct command command_users_change = {
	.name = "users change",
	.arguments = "NAME",
	.summary = "change a user; what is not given stays",
	.flags = change_flags,
	.examples = "fairlead users change alice --role lead",
	.route = "PUT /api/v1/users/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_USER,
	.run = run_change,
};

const struct command command_users_remove = {
	.name = "users remove",
	.arguments = "NAME",
	.summary = "remove a user; their tokens end, their jobs stay",
	.examples = "fairlead users remove alice",
	.route = "DELETE /api/v1/users/{name}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_USER,
	.run = run_remove,
};
