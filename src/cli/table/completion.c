/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion. The scripts for the shells are a few lines each: they hand the words typed so far to
 * `fairlead __words`, which knows commands, flags and their values from the table, and asks the
 * daemon for ids and names.
 */
#include <ctype.h>
#include <string.h>

#include "base/check.h"
#include "cli/client.h"
#include "cli/table/commands.h"
#include "cli/table/help.h"
#include "cli/jobs/jobs.h"
#include "cli/output/output.h"

static const char bash_script[] =
	"# bash completion for fairlead; source <(fairlead completion bash)\n"
	"_fairlead() {\n"
	"\tlocal IFS=$'\\n'\n"
	"\tCOMPREPLY=($(\"${COMP_WORDS[0]}\" __words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null))\n"
	"}\n"
	"complete -o default -F _fairlead fairlead\n";

static const char zsh_script[] =
	"#compdef fairlead\n"
	"# zsh completion for fairlead; source <(fairlead completion zsh)\n"
	"_fairlead() {\n"
	"\tlocal -a found\n"
	"\tfound=(\"${(@f)$($words[1] __words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
	"\tif [[ -n $found[1] ]]; then compadd -a found; else _files; fi\n"
	"}\n"
	"# read as a function from fpath, or sourced\n"
	"if [[ $funcstack[1] == _fairlead ]]; then _fairlead \"$@\"; else compdef _fairlead fairlead; fi\n";

static const char fish_script[] =
	"# fish completion for fairlead; fairlead completion fish | source\n"
	"function __fairlead_complete\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l found ($words[1] __words -- $words[2..-1] (commandline -ct) 2>/dev/null)\n"
	"\tif test (count $found) -gt 0\n"
	"\t\tprintf '%s\\n' $found\n"
	"\telse\n"
	"\t\t__fish_complete_path (commandline -ct)\n"
	"\tend\n"
	"end\n"
	"complete -c fairlead -f -a '(__fairlead_complete)'\n";

static int run_completion(struct invocation *in, struct err *err)
{
	static const struct {
		const char *shell, *script;
	} scripts[] = {
		{ "bash", bash_script },
		{ "zsh", zsh_script },
		{ "fish", fish_script },
	};

	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++)
		if (strcmp(in->args[0], scripts[i].shell) == 0) {
			output_write(scripts[i].script, strlen(scripts[i].script));
			return 0;
		}
	return err_set(err, ERR_UNSUPPORTED,
		       "there is completion for bash, zsh and fish, not for \"%.60s\"",
		       in->args[0]);
}

const struct command command_completion = {
	.name = "completion",
	.arguments = "bash|zsh|fish",
	.summary = "print the completion script of a shell",
	.examples = "source <(fairlead completion bash)\tfor this shell\n"
		    "fairlead completion fish > ~/.config/fish/completions/fairlead.fish",
	.least = 1,
	.most = 1,
	.run = run_completion,
};

/* __words */

struct candidates {
	struct invocation *in;
	const char *start; /* what is typed of the word */
	struct buf out;
};

static void offer(struct candidates *c, const char *word, size_t length)
{
	size_t typed = strlen(c->start);

	if (length < typed || strncmp(word, c->start, typed) != 0 || memchr(word, ' ', length))
		return;
	buf_add(&c->out, word, length);
	buf_addc(&c->out, '\n');
}

/* Words in capitals say what kind of text may stand there; they are none to offer. */
static void offer_choices(struct candidates *c, const char *choices)
{
	for (const char *at = choices; *at;) {
		size_t length = strcspn(at, "|");

		if (!isupper((unsigned char)*at))
			offer(c, at, length);
		at += length + (at[length] == '|');
	}
}

enum { JOBS_MOST = 2000 };

/* Ids or names that the daemon knows. Completion never complains. */
static void offer_known(struct candidates *c, enum argument_kind kind)
{
	static const struct {
		const char *path, *list, *name;
	} known[] = {
		[ARGUMENT_NONE] = { NULL, NULL, NULL },
		[ARGUMENT_JOB] = { "/api/v1/jobs?fold=1", "jobs", "id" },
		[ARGUMENT_QUEUE] = { "/api/v1/queues", "queues", "name" },
		[ARGUMENT_NODE] = { "/api/v1/nodes", "nodes", "name" },
		[ARGUMENT_GPU] = { "/api/v1/gpus", "gpus", "node" },
		[ARGUMENT_USER] = { "/api/v1/users", "users", "name" },
		[ARGUMENT_TEAM] = { "/api/v1/teams", "teams", "name" },
		[ARGUMENT_TOKEN] = { "/api/v1/tokens", "tokens", "id" },
		[ARGUMENT_FILE] = { NULL, NULL, NULL },
	};
	struct client *client = NULL;
	json_t *rows = NULL, *row;
	struct err err;
	size_t index;

	if (!known[kind].path || client_open(c->in, &client, &err) < 0)
		return;
	if ((kind == ARGUMENT_JOB
		     ? fetch_jobs(client, c->in->arena, known[kind].path, JOBS_MOST, &rows, NULL,
				  &err)
		     : fetch_list(client, known[kind].path, known[kind].list, &rows, &err)) >= 0)
		json_array_foreach(rows, index, row)
		{
			const char *text = get_text(row, known[kind].name);

			if (kind == ARGUMENT_JOB)
				text = arena_printf(c->in->arena, "%lld",
						    (long long)get_int(row, "id"));
			if (kind == ARGUMENT_GPU)
				text = arena_printf(c->in->arena, "%s/%lld", text,
						    (long long)get_int(row, "index"));
			offer(c, text, strlen(text));
		}
	json_decref(rows);
	client_close(client);
}

static const struct flag *flag_of(const struct command *command, const char *word)
{
	const struct flag *flags[FLAGS_MAX];
	size_t count = command_flags(command, flags);

	for (size_t i = 0; i < count; i++)
		if ((word[0] == '-' && word[1] == '-' && strcmp(word + 2, flags[i]->name) == 0) ||
		    (word[0] == '-' && word[1] == flags[i]->letter && word[1] && !word[2]))
			return flags[i];
	return NULL;
}

static void offer_flag_values(struct candidates *c, const struct flag *flag)
{
	static const struct {
		const char *flag;
		enum argument_kind kind;
	} kinds[] = {
		{ "queue", ARGUMENT_QUEUE }, { "parent", ARGUMENT_QUEUE },
		{ "team", ARGUMENT_TEAM },   { "user", ARGUMENT_USER },
		{ "after", ARGUMENT_JOB },   { "job", ARGUMENT_JOB },
		{ "node", ARGUMENT_NODE },
	};

	if (strchr(flag->value, '|'))
		offer_choices(c, flag->value);
	if (strcmp(flag->value, "STATES") == 0)
		offer_choices(
			c,
			"queued|held|blocked|starting|running|checkpointing|preempted|resuming|unreachable|succeeded|failed|"
			"cancelled|timed-out");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].flag, flag->name) == 0)
			offer_known(c, kinds[i].kind);
}

static void offer_flags(struct candidates *c, const struct command *command)
{
	const struct flag *flags[FLAGS_MAX];
	size_t count = command_flags(command, flags);
	char word[64];

	for (size_t i = 0; i < count; i++) {
		snprintf(word, sizeof(word), "--%s", flags[i]->name);
		offer(c, word, strlen(word));
	}
}

static void offer_commands(struct candidates *c)
{
	for (size_t i = 0; i < command_count; i++) {
		const char *name = commands[i]->name;
		size_t length = strcspn(name, " ");
		bool again = i > 0 && strncmp(commands[i - 1]->name, name, length) == 0 &&
			     strcspn(commands[i - 1]->name, " ") == length;

		if (!commands[i]->hidden && !again)
			offer(c, name, length);
	}
}

static void offer_subcommands(struct candidates *c, const char *noun)
{
	size_t length = strlen(noun);

	for (size_t i = 0; i < command_count; i++)
		if (strncmp(commands[i]->name, noun, length) == 0 &&
		    commands[i]->name[length] == ' ')
			offer(c, commands[i]->name + length + 1,
			      strlen(commands[i]->name + length + 1));
}

/* Behind `help`: commands and topics, then the second word of a command. */
static void offer_help(struct candidates *c, const char *noun)
{
	if (noun) {
		offer_subcommands(c, noun);
		return;
	}
	offer_commands(c);
	for (size_t i = 0; i < topic_count; i++)
		offer(c, topics[i].name, strlen(topics[i].name));
}

/* Behind the command's name: a flag, a flag's value, or an argument. */
static void offer_behind(struct candidates *c, const struct command *command, const char *before)
{
	const struct flag *flag = before ? flag_of(command, before) : NULL;

	if (flag && flag->value)
		offer_flag_values(c, flag);
	else if (c->start[0] == '-')
		offer_flags(c, command);
	else if (command->argument == ARGUMENT_NONE && strchr(command->arguments, '|') &&
		 !strchr(command->arguments, '[') && !strchr(command->arguments, '-'))
		offer_choices(c, command->arguments);
	else
		offer_known(c, command->argument);
}

static int run_words(struct invocation *in, struct err *err)
{
	struct candidates c = { .in = in,
				.start = in->arg_count ? in->args[in->arg_count - 1] : "" };
	int at = 0, typed = in->arg_count ? in->arg_count - 1 : 0;
	const struct command *command = NULL;

	(void)err;
	for (int i = 0; i + 1 < typed; i++)
		if (strcmp(in->args[i], "--data") == 0)
			in->global_data = in->args[i + 1];
	while (at < typed &&
	       in->args[at][0] == '-') /* flags before the command choose the daemon */
		at += strchr(in->args[at], '=') ? 1 : 2;
	/* bash makes three words of --tier=best: the middle one goes */
	if (typed > at && strcmp(c.start, "=") == 0)
		c.start = "";
	else if (typed > at && strcmp(in->args[typed - 1], "=") == 0)
		typed--;
	if (at >= typed) {
		offer_commands(&c);
	} else {
		const char *noun = in->args[at++];

		if (command_has_subcommands(noun) && at < typed)
			command =
				command_find(arena_printf(in->arena, "%s %s", noun, in->args[at]));
		if (command)
			at++;
		else
			command = command_find(noun);
		if (command_has_subcommands(noun) && at >= typed && c.start[0] != '-' &&
		    (!command || strcmp(command->name, noun) == 0))
			offer_subcommands(&c, noun);
		else if (strcmp(noun, "help") == 0)
			offer_help(&c, typed > at ? in->args[at] : NULL);
		else if (command)
			offer_behind(&c, command, typed > at ? in->args[typed - 1] : NULL);
	}
	output_buf(&c.out);
	buf_deinit(&c.out);
	return 0;
}

const struct command command_words = {
	.name = "__words",
	.arguments = "WORD...",
	.summary = "what could stand where the cursor is; asked by the completion scripts",
	.shares = SHARES_DAEMON,
	.most = -1,
	.hidden = true,
	.run = run_words,
};
