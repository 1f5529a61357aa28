/* SPDX-License-Identifier: Apache-2.0 */
/* Readers for what a job runs: its command or script, its variables, secrets and folder. */
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/check.h"

static int read_command_list(struct reading *r, const struct conf *c, const char *what)
{
	size_t total = 0;
	const char *text;
	int rc;

	if (!c->count)
		return conf_error(r->err, r->file, c, "%s is an empty list; it needs a program",
				  what);
	if (c->count > JOBFILE_ARGUMENTS_MAX)
		return conf_error(r->err, r->file, c, "%s has %zu parts; the limit is %d", what,
				  c->count, JOBFILE_ARGUMENTS_MAX);
	for (size_t i = 0; i < c->count; i++) {
		rc = conf_text(r->err, r->file, c->items[i], "an argument of command",
			       JOBFILE_COMMAND_MAX, &text);
		if (rc < 0)
			return rc;
		total += strlen(text);
	}
	if (!c->items[0]->text[0])
		return conf_error(r->err, r->file, c->items[0], "%s: the program is an empty text",
				  what);
	if (total > JOBFILE_TOTAL_MAX)
		return conf_error(r->err, r->file, c, "%s has %zu bytes; the limit is %d", what,
				  total, JOBFILE_TOTAL_MAX);
	return 0;
}

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

int read_command(struct reading *r, const struct conf *c, const char *what)
{
	const char *text;
	int rc;

	r->body.command = c;
	if (c->type == CONF_LIST)
		return read_command_list(r, c, what);
	if (c->type == CONF_MAP)
		return conf_error(r->err, r->file, c, "%s must be a text or a list, not a map",
				  what);
	rc = conf_text(r->err, r->file, c, what, JOBFILE_COMMAND_MAX, &text);
	if (rc >= 0 && is_blank(text))
		return conf_error(r->err, r->file, c, "%s is empty", what);
	return rc;
}

int read_script(struct reading *r, const struct conf *c, const char *what)
{
	const char *text;
	int rc = conf_text(r->err, r->file, c, what, JOBFILE_SCRIPT_MAX, &text);

	r->body.script = c;
	if (rc >= 0 && is_blank(text))
		return conf_error(r->err, r->file, c, "%s is empty", what);
	return rc;
}

/* What Fairlead sets itself; see docs/task-environment.md. */
static const char *const own_names[] = {
	"CUDA_VISIBLE_DEVICES",
	"RANK",
	"WORLD_SIZE",
	"LOCAL_RANK",
	"LOCAL_WORLD_SIZE",
	"NODE_RANK",
	"GROUP_RANK",
	"MASTER_ADDR",
	"MASTER_PORT",
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"OMPI_COMM_WORLD_LOCAL_RANK",
	"PMI_RANK",
	"PMI_SIZE",
};

/*
 * Names that start with FAIRLEAD_ are ours, now and later; these are for jobs that use the command
 * themselves.
 */
static const char *const commands_names[] = { "FAIRLEAD_DATA", "FAIRLEAD_SERVER",
					      "FAIRLEAD_TOKEN" };

static bool is_in(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

static bool is_variable(const char *name)
{
	bool good = name[0] && !(name[0] >= '0' && name[0] <= '9');

	for (const char *p = name; *p && good; p++)
		good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		       (*p >= '0' && *p <= '9') || *p == '_';
	return good && strlen(name) <= 255;
}

bool jobfile_shell_env_passes(const char *name, bool all)
{
	static const char *const usual[] = { "PATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
					     "PYTHONPATH" };
	static const char *const of_shells[] = { "PWD", "OLDPWD", "SHLVL", "_" };

	if (!is_variable(name) || strncmp(name, "FAIRLEAD_", 9) == 0 ||
	    is_in(name, own_names, ARRAY_SIZE(own_names)) ||
	    is_in(name, of_shells, ARRAY_SIZE(of_shells)))
		return false;
	return all || strncmp(name, "CONDA_", 6) == 0 || is_in(name, usual, ARRAY_SIZE(usual));
}

int jobfile_env_name(struct reading *r, const struct conf *c, const char *what)
{
	if (!is_variable(c->key))
		return jobfile_key_error(
			r, c,
			"%s: \"%.60s\" is no name of a variable; it has letters, digits and _, and starts with no digit",
			what, c->key);
	if (strncmp(c->key, "FAIRLEAD_", 9) == 0 &&
	    !is_in(c->key, commands_names, ARRAY_SIZE(commands_names)))
		return jobfile_key_error(
			r, c, "%s: names that start with FAIRLEAD_ are set by Fairlead (%.60s)",
			what, c->key);
	if (is_in(c->key, own_names, ARRAY_SIZE(own_names)))
		return jobfile_key_error(r, c, "%s: %s is set by Fairlead for each task", what,
					 c->key);
	return 0;
}

/* A map of names and values. */
static int read_variables(struct reading *r, const struct conf *c, const char *what)
{
	const char *text;
	int rc;

	if (c->type != CONF_MAP)
		return conf_error(r->err, r->file, c, "%s must be a map such as {DATA: /data}",
				  what);
	for (size_t i = 0; i < c->count; i++) {
		const struct conf *item = c->items[i];

		rc = jobfile_env_name(r, item, what);
		if (rc < 0)
			return rc;
		if (item->type == CONF_NULL)
			return jobfile_key_error(
				r, item, "%s: %.60s is left empty; for an empty text write \"\"",
				what, item->key);
		if (item->type != CONF_SCALAR)
			return conf_error(r->err, r->file, item,
					  "%s: %.60s must be a text, a number, true or false", what,
					  item->key);
		rc = conf_text(r->err, r->file, item, "the value of a variable",
			       JOBFILE_COMMAND_MAX - strlen(item->key) - 1, &text);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int read_env(struct reading *r, const struct conf *c, const char *what)
{
	r->body.env = c;
	return read_variables(r, c, what);
}

int read_shell_env(struct reading *r, const struct conf *c, const char *what)
{
	size_t total = 0;
	int rc = read_variables(r, c, what);

	r->body.shell_env = c;
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < c->count; i++)
		total += strlen(c->items[i]->key) + strlen(c->items[i]->text) + 2;
	if (c->count > JOBFILE_ENV_MAX || total > JOBFILE_SHELL_ENV_BYTES_MAX)
		return jobfile_key_error(
			r, c,
			"%s has %zu variables of %zu bytes; the limits are %d and %d. --env-none passes none, --env NAME one",
			what, c->count, total, JOBFILE_ENV_MAX, JOBFILE_SHELL_ENV_BYTES_MAX);
	return 0;
}

/* {NAME: {value: TEXT}}; the command has made that of {NAME: {file: PATH}}. */
int read_secrets(struct reading *r, const struct conf *c, const char *what)
{
	static const char *const known[] = { "value", "file" };
	const char *text;
	int rc;

	if (c->type != CONF_MAP)
		return conf_error(
			r->err, r->file, c,
			"%s must be a map such as {HUB_TOKEN: {file: /home/alice/.hub-token}}",
			what);
	r->body.secrets = c;
	for (size_t i = 0; i < c->count; i++) {
		const struct conf *item = c->items[i], *value = conf_find(item, "value");

		rc = jobfile_env_name(r, item, what);
		if (rc < 0)
			return rc;
		if (item->type != CONF_MAP) /* the value is not said: it may be the secret */
			return jobfile_key_error(
				r, item,
				"%s: %.60s must be a map {file: PATH}; a secret does not stand in the job file itself",
				what, item->key);
		rc = conf_only(r->err, r->file, item, "a secret", known, ARRAY_SIZE(known));
		if (rc < 0)
			return rc;
		if (!value)
			return jobfile_key_error(
				r, item,
				"%s: %.60s needs {value: TEXT} here; files are read by `fairlead submit`, where they are",
				what, item->key);
		if (value->type != CONF_SCALAR)
			return jobfile_key_error(r, item, "%s: the value of %.60s must be a text",
						 what, item->key);
		rc = conf_text(r->err, r->file, value, "the value of a secret",
			       JOBFILE_COMMAND_MAX - strlen(item->key) - 1, &text);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* What a name of an image is made of; whether there is one shows when it is pulled. */
int read_image(struct reading *r, const struct conf *c, const char *what)
{
	static const char marks[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
	const char *text;
	int rc = conf_text(r->err, r->file, c, what, JOBFILE_IMAGE_MAX, &text);

	if (rc < 0)
		return rc;
	if (!*text || strspn(text, marks) != strlen(text) || strspn(text, "._-/:@") > 0)
		return conf_error(
			r->err, r->file, c,
			"%s must be the name of a container image such as pytorch/pytorch:2.8.0",
			what);
	r->body.image = text;
	return 0;
}

/* The command has made an id of a folder. */
int read_snapshot(struct reading *r, const struct conf *c, const char *what)
{
	const char *text;
	int rc = conf_text(r->err, r->file, c, what, JOBFILE_WORKDIR_MAX, &text);

	if (rc < 0)
		return rc;
	if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
		return conf_error(
			r->err, r->file, c,
			"%s must be the id of a snapshot here: 64 hexadecimal digits; folders are read by `fairlead submit`, where they are",
			what);
	r->body.snapshot = text;
	return 0;
}

int read_workdir(struct reading *r, const struct conf *c, const char *what)
{
	return jobfile_path(r, c, what, JOBFILE_WORKDIR_MAX, &r->body.workdir);
}
