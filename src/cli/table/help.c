/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/help.h"

#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/parse.h"
#include "cli/table/args.h"
#include "cli/output/output.h"
#include "cli/output/prose.h"

enum { WIDTH = 96 };

bool command_is_sub_of(const struct command *command, const char *noun)
{
	size_t length = strlen(noun);

	return strncmp(command->name, noun, length) == 0 && command->name[length] == ' ';
}

void help_wrap(struct buf *out, const char *text, size_t indent, size_t width)
{
	size_t column = 0;

	while (*text) {
		size_t length = strcspn(text, " \n");

		if (text[0] == '\n') { /* a paragraph */
			buf_adds(out, "\n");
			column = 0;
			text++;
			continue;
		}
		if (text[0] == ' ') {
			text++;
			continue;
		}
		if (column && column + 1 + length > width) {
			buf_addc(out, '\n');
			column = 0;
		}
		if (column) {
			buf_addc(out, ' ');
			column++;
		} else {
			for (; column < indent; column++)
				buf_addc(out, ' ');
		}
		buf_add(out, text, length);
		column += length;
		text += length;
	}
	buf_addc(out, '\n');
}

void help_synopsis(const struct command *command, struct buf *out)
{
	const struct flag *flags[FLAGS_MAX];

	buf_addf(out, "fairlead %s", command->name);
	if (command_flags(command, flags) > 1)
		buf_adds(out, " [flags]");
	if (command->arguments[0])
		buf_addf(out, " %s", command->arguments);
}

void help_flag(const struct flag *flag, struct buf *out)
{
	if (flag->letter)
		buf_addf(out, "-%c, ", flag->letter);
	buf_addf(out, "--%s", flag->name);
	if (flag->value)
		buf_addf(out, " %s", flag->value);
}

void help_examples(const struct command *command,
		   void (*take)(struct buf *out, const char *line, size_t length, const char *what,
				size_t what_length),
		   struct buf *out)
{
	for (const char *at = command->examples; at && *at;) {
		size_t whole = strcspn(at, "\n"), length = strcspn(at, "\t\n");
		size_t skip = length + (at[length] == '\t');

		take(out, at, length, at + skip, whole - skip);
		at += whole + (at[whole] == '\n');
	}
}

/* Pages are as wide as is good to read, or as the window. */
static size_t page_width(void)
{
	const size_t window = terminal_width(STDOUT_FILENO);

	return window && window < WIDTH ? window : WIDTH;
}

/* A sentence at `column` of the line that began at line_start, and below itself where it is long. */
static void add_beside(struct buf *out, size_t line_start, size_t column, const char *text)
{
	AUTO_BUF wrapped = BUF_INIT;
	size_t used = out->size - line_start;

	if (used + 2 > column) {
		buf_addc(out, '\n');
		used = 0;
	}
	help_wrap(&wrapped, text, column, page_width());
	buf_adds(out, wrapped.data + used);
}

static const char *with_repeat(const char *doc, char text[256])
{
	snprintf(text, 256, "%s; may be repeated", doc);
	return text;
}

static void add_flags(const struct command *command, struct buf *out)
{
	const struct flag *flags[FLAGS_MAX];
	char text[256];
	size_t count = command_flags(command, flags), start;

	buf_adds(out, "\nFlags\n");
	for (size_t i = 0; i < count; i++) {
		start = out->size;
		buf_adds(out, flags[i]->letter ? "  " : "      ");
		help_flag(flags[i], out);
		add_beside(out, start, 32,
			   flags[i]->repeat ? with_repeat(flags[i]->doc, text) : flags[i]->doc);
	}
}

static void add_example(struct buf *out, const char *line, size_t length, const char *what,
			size_t what_length)
{
	const size_t start = out->size;
	char text[256];

	buf_addf(out, "  %.*s", (int)length, line);
	snprintf(text, sizeof(text), "%.*s", (int)what_length, what);
	if (what_length)
		add_beside(out, start, page_width() < WIDTH ? 6 : 52, text);
	else
		buf_addc(out, '\n');
}

static void add_subcommands(const struct command *command, struct buf *out)
{
	bool first = true;
	size_t start;

	for (size_t i = 0; i < command_count; i++) {
		if (!command_is_sub_of(commands[i], command->name) || commands[i]->hidden)
			continue;
		if (first)
			buf_adds(out, "\nSub-commands\n");
		first = false;
		start = out->size;
		buf_addf(out, "  %s %s", commands[i]->name, commands[i]->arguments);
		add_beside(out, start, 40, commands[i]->summary);
	}
	if (!first)
		buf_addf(out, "\n`fairlead help %s SUB-COMMAND` says more of each.\n",
			 command->name);
}

int help_command(const struct command *command)
{
	AUTO_BUF out = BUF_INIT;

	buf_addf(&out, "fairlead %s: %s\n\n  ", command->name, command->summary);
	help_synopsis(command, &out);
	buf_adds(&out, "\n");
	if (command->about) {
		buf_addc(&out, '\n');
		help_wrap(&out, command->about, 0, page_width());
	}
	add_flags(command, &out);
	if (command->examples) {
		buf_adds(&out, "\nExamples\n");
		help_examples(command, add_example, &out);
	}
	add_subcommands(command, &out);
	if (command->route)
		buf_addf(&out, "\nCalls %s\n", command->route);
	prose_wrap(&out, terminal_width(STDOUT_FILENO), 4);
	output_buf(&out);
	return 0;
}

/* Fairlead help */

/* "queues create" stands on the page of queues; "journal verify" has no such page. */
static bool has_noun_page(const struct command *command)
{
	const char *blank = strchr(command->name, ' ');
	char noun[32];

	if (!blank)
		return false;
	snprintf(noun, sizeof(noun), "%.*s", (int)(blank - command->name), command->name);
	return command_find(noun) != NULL;
}

static void add_overview(struct buf *out)
{
	size_t start;

	buf_adds(out, "Fairlead shares GPUs between people and teams.\n\n"
		      "  fairlead COMMAND [flags] [arguments]\n\nCommands\n");
	for (size_t i = 0; i < command_count; i++) {
		if (commands[i]->hidden || has_noun_page(commands[i]))
			continue;
		start = out->size;
		buf_addf(out, "  %s", commands[i]->name);
		add_beside(out, start, 18, commands[i]->summary);
	}
	buf_adds(out, "\nTopics\n");
	for (size_t i = 0; i < topic_count; i++) {
		start = out->size;
		buf_addf(out, "  %s", topics[i].name);
		add_beside(out, start, 18, topics[i].summary);
	}
	buf_adds(
		out,
		"\nFirst steps: `fairlead up -d`, then `fairlead run -- nvidia-smi`. `fairlead help COMMAND` says more.\n");
}

static int help_topic(const char *name)
{
	AUTO_BUF out = BUF_INIT;

	for (size_t i = 0; i < topic_count; i++)
		if (strcmp(topics[i].name, name) == 0) {
			topics[i].text(&out);
			prose_wrap(&out, terminal_width(STDOUT_FILENO), 4);
			output_buf(&out);
			return 0;
		}
	return -1;
}

static int unknown(const char *word, struct err *err)
{
	const char *names[160], *hint;
	size_t count = 0;

	for (size_t i = 0; i < command_count && count < ARRAY_SIZE(names); i++)
		if (!commands[i]->hidden)
			names[count++] = commands[i]->name;
	for (size_t i = 0; i < topic_count && count < ARRAY_SIZE(names); i++)
		names[count++] = topics[i].name;
	hint = spelling_hint(word, names, count);
	if (hint)
		return err_set(err, ERR_INVALID,
			       "there is no help on \"%.60s\"; did you mean \"%s\"?", word, hint);
	return err_set(err, ERR_INVALID,
		       "there is no help on \"%.60s\"; `fairlead help` lists commands and topics",
		       word);
}

/* fairlead help --markdown PAGE and --man PAGE, from which the build makes files. */
static int help_page(const struct invocation *in, struct err *err)
{
	const char *markdown = arg_flag(in, "markdown"), *man = arg_flag(in, "man");
	const struct command *command = man ? command_find(man) : NULL;
	AUTO_BUF out = BUF_INIT;

	if (man && (command || strcmp(man, "fairlead") == 0)) {
		help_man(command, &out);
	} else if (markdown && strcmp(markdown, "commands") == 0) {
		help_commands_markdown(&out);
	} else if (markdown && strcmp(markdown, "policy") == 0) {
		help_policy_markdown(&out);
	} else if (markdown) {
		for (size_t i = 0; i < topic_count; i++)
			if (topics[i].markdown && strcmp(topics[i].name, markdown) == 0)
				topics[i].markdown(&out);
	}
	if (!out.size)
		return unknown(man ? man : markdown, err);
	output_buf(&out);
	return 0;
}

static int run_help(struct invocation *in, struct err *err)
{
	AUTO_BUF out = BUF_INIT;
	const struct command *command;
	const char *name;

	if (arg_has(in, "markdown") || arg_has(in, "man"))
		return help_page(in, err);
	if (!in->arg_count) {
		add_overview(&out);
		prose_wrap(&out, terminal_width(STDOUT_FILENO), 0);
		output_buf(&out);
		return 0;
	}
	name = in->arg_count == 1 ? in->args[0]
				  : arena_printf(in->arena, "%s %s", in->args[0], in->args[1]);
	command = command_find(name);
	if (command)
		return help_command(command);
	if (help_topic(name) == 0)
		return 0;
	for (size_t i = 0; i < command_count; i++)
		if (command_is_sub_of(commands[i], name)) { /* a noun that is no command itself */
			add_subcommands(&(struct command){ .name = name }, &out);
			output_write(out.data + 1,
				     out.size - 1); /* without its empty line in front */
			return 0;
		}
	return unknown(name, err);
}

static const struct flag flags[] = {
	{ "man", 0, "COMMAND", "print its man page; \"fairlead\" is the first one", false },
	{ "markdown", 0, "PAGE",
	  "print a page of the documentation: commands, job-file, policy or exit-codes", false },
	{ 0 },
};

const struct command command_help = {
	.name = "help",
	.arguments = "[COMMAND|TOPIC]",
	.summary = "say what commands do, what a job file has, what exit codes mean",
	.flags = flags,
	.examples = "fairlead help run\thow to run a command\n"
		    "fairlead help job-file\tall fields of a job file\n"
		    "fairlead help --man run | man -l -\tthe man page",
	.most = 2,
	.run = run_help,
};
