/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one table of commands. From it come dispatch, flag parsing, `fairlead help`, the man pages,
 * completion for three shells and docs/commands.md, so that none of them can know a flag that
 * another does not.
 *
 * A command lives in a file of its own that defines its `struct command`; table.c lists them in the
 * order of the help. Names of two words ("queues create") are sub-commands; the first word alone is
 * the list.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

struct invocation;

struct flag {
	const char *name; /* without dashes; NULL ends a list */
	char letter; /* short form, 0 = none */
	const char *value; /* name of its value in help ("N", "DIR"); NULL = a switch */
	const char *
		doc; /* one sentence without full stop; also "a|b" lists in value give completion */
	bool repeat; /* may be given several times */
};

/* Flags that many commands share; bits of command.shares. */
enum {
	SHARES_DAEMON = 1, /* --data, --server: which daemon is spoken to */
	SHARES_OUTPUT = 2, /* -o, --no-headers */
	SHARES_WATCH = 4, /* --watch */
	SHARES_JOB = 8, /* the flags that are fields of the job file (submission.c) */
	SHARES_LIST = 16, /* what SHARES_OUTPUT has, for a table of rows: csv and --columns too */
	SHARES_ENVIRONMENT =
		64, /* what of the shell's environment tasks get (submission/submission.c) */
	SHARES_CHANGES = 128, /* those of SHARES_JOB that a job can be changed by */
	SHARES_SELECTION = 32 /* which jobs are meant (jobs/selection.c) */
};

enum argument_kind {
	ARGUMENT_NONE,
	ARGUMENT_JOB,
	ARGUMENT_QUEUE,
	ARGUMENT_NODE,
	ARGUMENT_GPU, /* NODE/INDEX */
	ARGUMENT_USER,
	ARGUMENT_TEAM,
	ARGUMENT_TOKEN,
	ARGUMENT_FILE
};

struct command {
	const char *name;
	const char *arguments; /* as in the synopsis: "ID..."; "" = none */
	const char *summary; /* one line, no full stop */
	const char *about; /* more, paragraphs separated by empty lines; NULL = none */
	const struct flag *flags; /* its own; NULL = none */
	const char *examples; /* lines "COMMAND LINE\twhat it does" */
	const char *route; /* what it calls: "GET /api/v1/jobs"; NULL = nothing */
	unsigned int shares;
	int least, most; /* number of arguments; most -1 = any */
	enum argument_kind argument; /* for completion */
	bool rest; /* flags end at the first argument: the rest is a command line */
	bool hidden;
	/* Exit status, or negative with err filled. */
	int (*run)(struct invocation *in, struct err *err);
};

extern const struct command *const commands[];
extern const size_t command_count;

const struct command *command_find(const char *name);
/* Whether there are commands "NAME ...". */
bool command_has_subcommands(const char *name);
/*
 * All flags of a command, own and shared, in the order of help; returns how many were written to
 * out.
 */
enum { FLAGS_MAX = 64 };
size_t command_flags(const struct command *command, const struct flag *out[FLAGS_MAX]);
