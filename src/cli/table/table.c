/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/table.h"

#include <string.h>

#include "base/check.h"
#include "cli/jobs/selection.h"
#include "cli/table/commands.h"
#include "cli/submission/submission.h"

/* The order of `fairlead help`. */
const struct command *const commands[] = {
#define COMMAND(id) &command_##id,
#include "cli/table/commands.def"
#undef COMMAND
};
const size_t command_count = ARRAY_SIZE(commands);

static const struct flag daemon_flags[] = {
	{ "data", 0, "DIR", "data folder of the daemon to speak to; FAIRLEAD_DATA says it too",
	  false },
	{ "server", 0, "URL",
	  "speak to a daemon over TCP, with the token in FAIRLEAD_TOKEN; FAIRLEAD_SERVER says it too",
	  false },
	{ 0 },
};
static const struct flag output_flags[] = {
	{ "output", 'o', "table|wide|json|yaml|name", "form of the answer", false },
	{ "no-headers", 0, NULL, "leave the first line of tables out", false },
	{ 0 },
};
static const struct flag list_flags[] = {
	{ "output", 'o', "table|wide|json|yaml|csv|name", "form of the answer", false },
	{ "columns", 0, "NAMES", "only these columns of the wide form, in this order: job,state",
	  false },
	{ "no-headers", 0, NULL, "leave the first line of tables out", false },
	{ 0 },
};
static const struct flag watch_flags[] = {
	{ "watch", 0, NULL, "show it again every two seconds until Ctrl-C", false },
	{ 0 },
};
static const struct flag help_flags[] = {
	{ "help", 'h', NULL, "say what this command does", false },
	{ 0 },
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < command_count; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

bool command_has_subcommands(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < command_count; i++)
		if (strncmp(commands[i]->name, name, length) == 0 &&
		    commands[i]->name[length] == ' ')
			return true;
	return false;
}

static size_t add(const struct flag *flags, const struct flag *out[FLAGS_MAX], size_t count)
{
	for (; flags && flags->name; flags++) {
		CHECK(count < FLAGS_MAX);
		out[count++] = flags;
	}
	return count;
}

size_t command_flags(const struct command *command, const struct flag *out[FLAGS_MAX])
{
	size_t count = add(command->flags, out, 0);

	if (command->shares & SHARES_JOB)
		count = add(submission_flags, out, count);
	if (command->shares & SHARES_CHANGES)
		count = add(job_change_flags, out, count);
	if (command->shares & SHARES_ENVIRONMENT)
		count = add(shell_env_flags, out, count);
	if (command->shares & SHARES_SELECTION)
		count = add(selection_flags, out, count);
	if (command->shares & SHARES_OUTPUT)
		count = add(output_flags, out, count);
	if (command->shares & SHARES_LIST)
		count = add(list_flags, out, count);
	if (command->shares & SHARES_WATCH)
		count = add(watch_flags, out, count);
	if (command->shares & SHARES_DAEMON)
		count = add(daemon_flags, out, count);
	return add(help_flags, out, count);
}
