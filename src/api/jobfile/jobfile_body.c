/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a job: what the engine needs to run it, as JSON. Written at submission, read back at
 * each attempt, possibly by another release, so unknown members are passed over. What is read has
 * been authenticated (it came out of a sealed blob), but is checked all the same.
 * docs/decisions/0004 has the form.
 */
#include <string.h>

#include "api/jobfile/jobfile_table.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/conf.h"
#include "base/json.h"
#include "core/model/facts.h"

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "HUP", 1 },   { "INT", 2 },   { "QUIT", 3 },  { "USR1", 10 },
	{ "USR2", 12 }, { "ALRM", 14 }, { "TERM", 15 },
};

const char *jobfile_signal_name(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signals[i].number == number)
			return signals[i].name;
	return "";
}

int jobfile_signal(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (strcmp(signals[i].name, name) == 0)
			return signals[i].number;
	return 0;
}

struct texts {
	const char **items;
	size_t count;
};

/* Room for one more and the NULL. */
static void texts_add(struct texts *texts, size_t room, const char *text, struct json_reader *json)
{
	if (texts->count == room) {
		pull_fail(json, "the body has too many texts");
		return;
	}
	texts->items[texts->count++] = text;
}

static const char *read_text(struct json_reader *json, struct arena *arena)
{
	struct json_slice slice = { 0 };

	pull_string(json, &slice);
	return pull_text(json, &slice, arena);
}

/*
 * A map of names and values; "NAME=value" goes into env, the name alone into names when that is
 * wanted.
 */
static void read_variables(struct json_reader *json, struct arena *arena, struct texts *env,
			   struct texts *names)
{
	struct json_slice key;

	pull_object(json);
	while (pull_member(json, &key)) {
		const char *name = pull_text(json, &key, arena), *value = read_text(json, arena);

		if (!name || !value)
			continue;
		texts_add(env, JOBFILE_ENV_MAX, arena_printf(arena, "%s=%s", name, value), json);
		if (names)
			texts_add(names, JOBFILE_ENV_MAX, name, json);
	}
}

static void read_argv(struct json_reader *json, struct arena *arena, struct texts *argv)
{
	pull_array(json);
	while (pull_element(json)) {
		const char *text = read_text(json, arena);

		if (text)
			texts_add(argv, JOBFILE_ARGUMENTS_MAX, text, json);
	}
	if (!argv->count)
		pull_fail(json, "the body's argv is empty");
}

static struct texts texts_make(struct arena *arena, size_t room)
{
	return (struct texts){ .items = arena_new_array(arena, const char *, room + 1) };
}

struct body_parts {
	struct texts env, secrets, shell_env, argv;
	const char *signal;
	struct job_role *roles;
	uint32_t role_count;
	struct job_pod *pods;
	uint32_t pod_count;
};

static void shell_add(struct texts *argv, const char *command, struct json_reader *json)
{
	texts_add(argv, JOBFILE_ARGUMENTS_MAX, "/bin/sh", json);
	texts_add(argv, JOBFILE_ARGUMENTS_MAX, "-c", json);
	texts_add(argv, JOBFILE_ARGUMENTS_MAX, command, json);
}

static void read_role(struct json_reader *json, struct arena *arena, struct job_role *role)
{
	struct texts env = texts_make(arena, JOBFILE_ENV_MAX),
		     argv = texts_make(arena, JOBFILE_ARGUMENTS_MAX);
	struct json_slice key;

	pull_object(json);
	while (pull_member(json, &key)) {
		if (pull_key_is(&key, "env"))
			read_variables(json, arena, &env, NULL);
		else if (pull_key_is(&key, "argv"))
			read_argv(json, arena, &argv);
		else if (pull_key_is(&key, "shell"))
			shell_add(&argv, read_text(json, arena), json);
		else if (pull_key_is(&key, "script"))
			role->script = read_text(json, arena);
		else if (pull_key_is(&key, "pod"))
			role->overlay = read_text(json, arena);
		else
			pull_skip(json);
	}
	role->argv = argv.count ? argv.items : NULL;
	role->env = env.items;
}

static void read_roles(struct json_reader *json, struct arena *arena, struct body_parts *parts)
{
	parts->roles = arena_new_array(arena, struct job_role, ROLES_MAX);
	pull_array(json);
	while (pull_element(json)) {
		if (parts->role_count == ROLES_MAX) {
			pull_fail(json, "the body has too many roles");
			return;
		}
		read_role(json, arena, &parts->roles[parts->role_count++]);
	}
}

static void read_pod(struct json_reader *json, struct arena *arena, struct job_pod *pod)
{
	struct json_slice key;

	pull_object(json);
	while (pull_member(json, &key)) {
		if (pull_key_is(&key, "namespace"))
			pod->namespace = read_text(json, arena);
		else if (pull_key_is(&key, "name"))
			pod->name = read_text(json, arena);
		else if (pull_key_is(&key, "uid"))
			pod->uid = read_text(json, arena);
		else
			pull_skip(json);
	}
	if (!pod->namespace || !pod->name || !pod->uid)
		pull_fail(json, "a pod of the body has no namespace, name or uid");
}

static void read_pods(struct json_reader *json, struct arena *arena, struct body_parts *parts)
{
	uint32_t room = 0;

	pull_array(json);
	while (pull_element(json)) {
		if (parts->pod_count == TASKS_MAX) {
			pull_fail(json, "the body has too many pods");
			return;
		}
		if (parts->pod_count == room) { /* most have one pod */
			struct job_pod *pods =
				arena_new_array(arena, struct job_pod, room ? room * 4 : 4);

			if (room)
				memcpy(pods, parts->pods, room * sizeof(*pods));
			parts->pods = pods;
			room = room ? room * 4 : 4;
		}
		read_pod(json, arena, &parts->pods[parts->pod_count++]);
	}
}

/* Each task has something to run: its role's, or the job's; or it is a pod. */
static bool all_run(const struct job_body *body, const struct body_parts *parts)
{
	if (parts->pod_count)
		return !parts->argv.count && !body->script;
	if (parts->argv.count || body->script)
		return !parts->argv.count != !body->script;
	for (uint32_t i = 0; i < parts->role_count; i++)
		if (!parts->roles[i].argv && !parts->roles[i].script)
			return false;
	return parts->role_count > 0;
}

static void read_member(struct json_reader *json, const struct json_slice *key, struct arena *arena,
			struct job_body *body, struct body_parts *parts)
{
	if (pull_key_is(key, "env")) {
		read_variables(json, arena, &parts->env, NULL);
	} else if (pull_key_is(key, "secrets")) {
		read_variables(json, arena, &parts->env, &parts->secrets);
	} else if (pull_key_is(key, "shell_env")) {
		read_variables(json, arena, &parts->shell_env, NULL);
	} else if (pull_key_is(key, "argv")) {
		read_argv(json, arena, &parts->argv);
	} else if (pull_key_is(key, "shell")) {
		shell_add(&parts->argv, read_text(json, arena), json);
	} else if (pull_key_is(key, "roles")) {
		read_roles(json, arena, parts);
	} else if (pull_key_is(key, "pods")) {
		read_pods(json, arena, parts);
	} else if (pull_key_is(key, "sweep")) {
		jobfile_sweep_read(json, arena, body);
	} else if (pull_key_is(key, "script")) {
		body->script = read_text(json, arena);
	} else if (pull_key_is(key, "workdir")) {
		body->workdir = read_text(json, arena);
	} else if (pull_key_is(key, "snapshot")) {
		body->snapshot = read_text(json, arena);
	} else if (pull_key_is(key, "image")) {
		body->image = read_text(json, arena);
	} else if (pull_key_is(key, "git")) {
		job_git_read(json, arena, &body->git);
	} else if (pull_key_is(key, "pod")) {
		body->overlays[0] = read_text(json, arena);
	} else if (pull_key_is(key, "kubernetes")) {
		body->overlays[1] = read_text(json, arena);
	} else if (pull_key_is(key, "checkpoint_path")) {
		body->checkpoint_path = read_text(json, arena);
	} else if (pull_key_is(key, "checkpoint_signal")) {
		parts->signal = read_text(json, arena);
	} else {
		pull_skip(json);
	}
}

static bool is_absolute(const char *path)
{
	return !path || path[0] == '/';
}

int job_body_parse(const char *text, size_t size, struct arena *arena, struct job_body *ret,
		   struct err *err)
{
	struct body_parts parts = { 0 };
	struct job_body body = { .git = JOB_GIT_NONE };
	struct json_reader json;
	struct json_slice key;

	if (size > JOBFILE_BODY_MAX)
		return err_set(err, ERR_TOO_LARGE, "the job's body has %zu bytes; the limit is %d",
			       size, JOBFILE_BODY_MAX);
	parts.env = texts_make(arena, JOBFILE_ENV_MAX);
	parts.secrets = texts_make(arena, JOBFILE_ENV_MAX);
	parts.shell_env = texts_make(arena, JOBFILE_ENV_MAX);
	parts.argv = texts_make(arena, JOBFILE_ARGUMENTS_MAX);
	pull_init(&json, text, size);
	pull_object(&json);
	while (pull_member(&json, &key))
		read_member(&json, &key, arena, &body, &parts);
	if (parts.signal) {
		body.checkpoint_signal = jobfile_signal(parts.signal);
		if (!body.checkpoint_signal)
			pull_fail(&json, "the body names a signal that is not known");
	}
	if (!all_run(&body, &parts))
		pull_fail(&json, "the body must have a command or a script");
	if (body.snapshot &&
	    (strlen(body.snapshot) != 64 || strspn(body.snapshot, "0123456789abcdef") != 64))
		pull_fail(&json, "the body names a snapshot that can't be one");
	if (!is_absolute(body.workdir) || !is_absolute(body.checkpoint_path))
		pull_fail(&json, "a path in the body is not absolute");
	if (pull_finish(&json, err) < 0)
		return err_prefix(err, "the job's body can't be read");
	body.argv = parts.argv.count ? parts.argv.items : NULL;
	body.env = parts.env.items;
	body.secrets = parts.secrets.items;
	body.shell_env = parts.shell_env.items;
	body.roles = parts.roles;
	body.role_count = parts.role_count;
	body.pods = parts.pod_count ? parts.pods : NULL;
	body.pod_count = parts.pod_count;
	*ret = body;
	return 0;
}

static void write_member(struct buf *out, const char *name, const char *text)
{
	if (!text)
		return;
	if (out->data[out->size - 1] != '{')
		buf_addc(out, ',');
	buf_add_json(out, name, strlen(name));
	buf_addc(out, ':');
	buf_add_json(out, text, strlen(text));
}

static void write_list(struct buf *out, const struct conf *list)
{
	buf_adds(out, ",\"argv\":[");
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			buf_addc(out, ',');
		buf_add_json(out, list->items[i]->text, strlen(list->items[i]->text));
	}
	buf_addc(out, ']');
}

static void write_env(struct buf *out, const struct body_source *from)
{
	buf_adds(out, "{\"env\":{");
	for (size_t i = 0; from->env && i < from->env->count; i++)
		write_member(out, from->env->items[i]->key, from->env->items[i]->text);
	buf_addc(out, '}');
}

static void write_shell_env(struct buf *out, const struct body_source *from)
{
	if (!from->shell_env || !from->shell_env->count)
		return;
	buf_adds(out, ",\"shell_env\":{");
	for (size_t i = 0; i < from->shell_env->count; i++)
		write_member(out, from->shell_env->items[i]->key, from->shell_env->items[i]->text);
	buf_addc(out, '}');
}

static void write_command(struct buf *out, const struct body_source *from)
{
	if (from->script)
		write_member(out, "script", from->script->text);
	else if (from->command && from->command->type == CONF_LIST)
		write_list(out, from->command);
	else if (from->command)
		write_member(out, "shell", from->command->text);
}

void job_body_write(const struct body_source *from, struct buf *out)
{
	write_env(out, from);
	buf_adds(out, ",\"secrets\":{");
	for (size_t i = 0; from->secrets && i < from->secrets->count; i++)
		write_member(out, from->secrets->items[i]->key,
			     conf_find(from->secrets->items[i], "value")->text);
	buf_addc(out, '}');
	write_command(out, from);
	write_member(out, "workdir", from->workdir);
	write_member(out, "snapshot", from->snapshot);
	write_member(out, "image", from->image);
	write_shell_env(out, from);
	job_git_write(&from->git, out);
	write_member(out, "pod", from->pod);
	write_member(out, "kubernetes", from->overlay);
	write_member(out, "checkpoint_path", from->checkpoint_path);
	write_member(out, "checkpoint_signal", from->checkpoint_signal);
	if (from->sweep)
		jobfile_sweep_write(from->sweep, out);
	for (uint32_t i = 0; i < from->role_count; i++) {
		buf_adds(out, i ? "," : ",\"roles\":[");
		write_env(out, &from->roles[i]);
		write_command(out, &from->roles[i]);
		write_member(out, "pod", from->roles[i].pod);
		buf_addc(out, '}');
	}
	if (from->role_count)
		buf_addc(out, ']');
	buf_addc(out, '}');
}

void job_body_pods(const struct job_pod *pods, uint32_t count, struct buf *out)
{
	buf_adds(out, "{\"env\":{},\"secrets\":{},\"pods\":[");
	for (uint32_t i = 0; i < count; i++) {
		buf_adds(out, i ? ",{" : "{");
		write_member(out, "namespace", pods[i].namespace);
		write_member(out, "name", pods[i].name);
		write_member(out, "uid", pods[i].uid);
		buf_addc(out, '}');
	}
	buf_adds(out, "]}");
}

/* Digits with a sign in front and one point: what must stay without quotes to be a number. */
static bool is_plain_number(const char *text)
{
	const char *p = text + (*text == '-');
	size_t whole = strspn(p, "0123456789");

	if (!whole)
		return false;
	p += whole;
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	return !*p && p[-1] != '.';
}

static void write_scalar(const struct conf *c, struct buf *out)
{
	bool plain = !c->quoted && (is_plain_number(c->text) || strcmp(c->text, "true") == 0 ||
				    strcmp(c->text, "false") == 0);

	if (plain)
		buf_adds(out, c->text);
	else
		buf_add_json(out, c->text, strlen(c->text));
}

/* As deep as CONF_DEPTH_MAX. */
void jobfile_write(const struct conf *c, struct buf *out)
{
	if (c->type == CONF_NULL) {
		buf_adds(out, "null");
		return;
	}
	if (c->type == CONF_SCALAR) {
		write_scalar(c, out);
		return;
	}
	buf_addc(out, c->type == CONF_MAP ? '{' : '[');
	for (size_t i = 0; i < c->count; i++) {
		if (i)
			buf_adds(out, ", ");
		if (c->type == CONF_MAP) {
			buf_add_json(out, c->items[i]->key, strlen(c->items[i]->key));
			buf_adds(out, ": ");
		}
		jobfile_write(c->items[i], out);
	}
	buf_addc(out, c->type == CONF_MAP ? '}' : ']');
}
