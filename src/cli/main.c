/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fairlead: finds the command in the table, parses its flags, runs it, and says what went wrong,
 * once.
 *
 *	table.{h,c}	the one table of commands; commands.def has their order
 *	args.{h,c}	flags and arguments of one call
 *	client.{h,c}	the HTTP API
 *	output.{h,c}	tables, JSON, YAML
 *	help.c		help, from the table; pages.c man pages and docs; completion.c the shells
 *	NAME.c		one command or noun each
 */
#include <signal.h>
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "cli/table/args.h"
#include "cli/table/help.h"
#include "cli/output/problem.h"

static const size_t arena_cap = (size_t)1 << 30;

/*
 * Words before the command: only what chooses the daemon, and --help, --version. Returns how many,
 * negative = wrong.
 */
static int parse_global(struct invocation *in, const char *const *words, int count,
			const char **ret_command, struct err *err)
{
	int i = 0;

	while (i < count && words[i][0] == '-') {
		const char **target =
			strncmp(words[i], "--data", 6) == 0 ? &in->global_data : &in->global_server;
		size_t length = strcspn(words[i], "=");

		if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0 ||
		    strcmp(words[i], "--version") == 0) {
			*ret_command = words[i][2] == 'v' ? "version" : "help";
			return count; /* the rest does not count */
		}
		if (strncmp(words[i], "--data", length) != 0 &&
		    strncmp(words[i], "--server", length) != 0)
			return err_set(
				err, ERR_INVALID,
				"there is no flag %.60s before the command; flags of a command stand behind its name",
				words[i]);
		if (words[i][length] == '=') {
			*target = words[i++] + length + 1;
		} else if (i + 1 < count) {
			*target = words[i + 1];
			i += 2;
		} else {
			return err_set(err, ERR_INVALID, "%s needs a value", words[i]);
		}
	}
	return i;
}

/* What people type who come from other schedulers, containers or their own shell. */
static const char *familiar_word(const char *word)
{
	static const char *const words[][2] = {
		{ "ps", "jobs" },
		{ "ls", "jobs" },
		{ "list", "jobs" },
		{ "status", "jobs" },
		{ "squeue", "jobs" },
		{ "qstat", "jobs" },
		{ "top", "jobs" },
		{ "show", "job" },
		{ "describe", "job" },
		{ "inspect", "job" },
		{ "info", "job" },
		{ "stop", "cancel" },
		{ "kill", "cancel" },
		{ "rm", "cancel" },
		{ "delete", "cancel" },
		{ "scancel", "cancel" },
		{ "sbatch", "submit" },
		{ "apply", "submit" },
		{ "create", "submit" },
		{ "srun", "run" },
		{ "exec", "run" },
		{ "start", "up" },
		{ "serve", "up" },
		{ "daemon", "up" },
		{ "init", "up" },
		{ "shutdown", "down" },
		{ "sinfo", "nodes" },
		{ "why", "explain" },
		{ "plan", "submit --dry-run" },
		{ "estimate", "submit --dry-run" },
		{ "nvidia-smi", "gpus" },
		{ "tail", "logs" },
		{ "log", "logs" },
		{ "output", "logs" },
		{ "check", "doctor" },
		{ "backup", "journal backup" },
		{ "resume", "release" },
		{ "unhold", "release" },
		{ "login", "token" },
		{ "what-if", "plan what-if" },
		{ "whatif", "plan what-if" },
		{ "cordon", "nodes cordon" },
		{ "uncordon", "nodes ready" },
		{ "drain", "nodes drain" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(words[i][0], word) == 0)
			return words[i][1];
	return NULL;
}

static int unknown_command(const char *word, struct err *err)
{
	const char *names[128], *hint;
	size_t count = 0;

	for (size_t i = 0; i < command_count && count < ARRAY_SIZE(names); i++)
		if (!commands[i]->hidden && !strchr(commands[i]->name, ' '))
			names[count++] = commands[i]->name;
	hint = familiar_word(word);
	if (!hint)
		hint = spelling_hint(word, names, count);
	if (hint)
		return err_set(err, ERR_INVALID,
			       "there is no command \"%.60s\"; did you mean \"%s\"?", word, hint);
	return err_set(err, ERR_INVALID,
		       "there is no command \"%.60s\"; `fairlead help` lists them", word);
}

/* "queues crate": the word behind a noun that has sub-commands. */
static int unknown_subcommand(const char *noun, const char *word, struct err *err)
{
	const char *names[32], *hint;
	size_t count = 0, length = strlen(noun);

	names[count++] = "list";
	for (size_t i = 0; i < command_count && count < ARRAY_SIZE(names); i++)
		if (strncmp(commands[i]->name, noun, length) == 0 &&
		    commands[i]->name[length] == ' ')
			names[count++] = commands[i]->name + length + 1;
	hint = strcmp(noun, "nodes") == 0 &&
			       (strcmp(word, "uncordon") == 0 || strcmp(word, "undrain") == 0)
		       ? "ready"
		       : spelling_hint(word, names, count);
	if (hint)
		return err_set(err, ERR_INVALID,
			       "%s has no sub-command \"%.60s\"; did you mean \"%s\"?", noun, word,
			       hint);
	return err_set(err, ERR_INVALID,
		       "%s has no sub-command \"%.60s\"; `fairlead help %s` lists them", noun, word,
		       noun);
}

/* Finds the command of one or two words; *used counts them. */
static int find_command(const char *const *words, int count, struct arena *arena,
			const struct command **ret, int *used, struct err *err)
{
	const struct command *command = command_find(words[0]);
	bool family = command_has_subcommands(words[0]);

	*used = 1;
	if (family && count > 1 && words[1][0] != '-') {
		*ret = command_find(arena_printf(arena, "%s %s", words[0], words[1]));
		if (*ret) {
			*used = 2;
			return 0;
		}
		if (command && strcmp(words[1], "list") == 0) {
			*ret = command;
			*used = 2;
			return 0;
		}
		if (!command || command->most == 0)
			return unknown_subcommand(words[0], words[1], err);
	}
	if (!command && family)
		return err_set(err, ERR_INVALID,
			       "%s needs a sub-command; `fairlead help %s` lists them", words[0],
			       words[0]);
	if (!command)
		return unknown_command(words[0], err);
	*ret = command;
	return 0;
}

/*
 * The daemon complains of a field of the request that the command made; the reader knows the flag it
 * came from: "limit_gpus: "x" is ..." becomes "--limit: "x" is ...".
 */
static int name_flag(const struct invocation *in, struct err *err)
{
	const size_t field = strspn(err->text, "abcdefghijklmnopqrstuvwxyz_");

	if (strcmp(err->file, "request body") != 0)
		return -(int)err->code;
	err->file[0] = '\0';
	err->line = err->column = 0;
	for (size_t i = 0; i < in->value_count && field && err->text[field] == ':'; i++) {
		const char *flag = in->values[i].flag->name;
		size_t same = 0;

		while (flag[same] && (err->text[same] == '_' ? '-' : err->text[same]) == flag[same])
			same++;
		if (flag[same] || (same != field && strncmp(err->text + same, "_gpus:", 6) != 0))
			continue;
		memmove(err->text, err->text + field + 2, strlen(err->text + field + 1));
		return err_prefix(err, "--%s", flag);
	}
	return -(int)err->code;
}

static bool asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run(const char *const *words, int count, const char *self, struct arena *arena,
	       struct err *err)
{
	struct invocation in = { .arena = arena, .self = self };
	const char *shortcut = NULL;
	const struct command *command = NULL;
	int rc = parse_global(&in, words, count, &shortcut, err), used = 0;

	if (rc < 0)
		return rc;
	words += rc;
	count -= rc;
	if (!count && !shortcut)
		shortcut = "help";
	if (count == 2 && asks_for_help(words[1]) && !command_find(words[0]) &&
	    command_has_subcommands(words[0])) {
		shortcut = "help"; /* sim --help is help sim */
		count = 1;
	}
	if (shortcut)
		command = command_find(shortcut);
	else
		rc = find_command(words, count, arena, &command, &used, err);
	if (rc < 0)
		return rc;
	CHECK(command);
	in.command = command;
	rc = args_parse(&in, words + used, count - used, err);
	if (rc < 0)
		return rc;
	if (rc == INVOCATION_HELP)
		return help_command(command);
	rc = command->run(&in, err);
	return rc < 0 ? name_flag(&in, err) : rc;
}

int main(int argc, char **argv)
{
	struct arena arena;
	struct err err = { 0 };
	int rc;

	arena_init(&arena, arena_cap);
	rc = run((const char *const *)argv + 1, argc > 1 ? argc - 1 : 0,
		 argc ? argv[0] : "fairlead", &arena, &err);
	if (rc < 0) {
		problem_show(&err);
		rc = err_code_exit(err.code);
	}
	arena_deinit(&arena);
	return rc;
}
