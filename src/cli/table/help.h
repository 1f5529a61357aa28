/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Help from the table: for the terminal (help.c), as man pages and as the pages of docs/ (pages.c).
 */
#include "base/buf.h"
#include "cli/table/table.h"

/* Prints a command's help, with its sub-commands; answers the exit status 0. */
int help_command(const struct command *command);

struct topic {
	const char *name, *summary;
	void (*text)(struct buf *out); /* for the terminal */
	void (*markdown)(struct buf *out); /* NULL = no page of docs/ of its own */
};
extern const struct topic topics[];
extern const size_t topic_count;

extern const char help_generated[]; /* the first line of a page that is made */
void help_commands_markdown(struct buf *out); /* docs/commands.md */
void help_policy_markdown(struct buf *out); /* docs/policy.md */
/* One man page: a command with its sub-commands, or NULL for fairlead(1). */
void help_man(const struct command *command, struct buf *out);

/* "fairlead run [flags] -- COMMAND..." */
void help_synopsis(const struct command *command, struct buf *out);
/* "-g, --gpus N" */
void help_flag(const struct flag *flag, struct buf *out);
/* Words of text broken into lines of at most width columns, each behind indent blanks. */
void help_wrap(struct buf *out, const char *text, size_t indent, size_t width);
bool command_is_sub_of(const struct command *command, const char *noun);
/* Calls take for each example of a command: the command line, and what it does. */
void help_examples(const struct command *command,
		   void (*take)(struct buf *out, const char *line, size_t length, const char *what,
				size_t what_length),
		   struct buf *out);
