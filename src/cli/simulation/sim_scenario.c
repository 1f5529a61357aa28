/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/table/args.h"
#include "cli/table/commands.h"
#include "sim/scenario_main.h"

static int run_scenario(struct invocation *in, struct err *err)
{
	const char *form = arg_flag(in, "output");
	const struct scenario_words words = {
		.paths = in->args,
		.count = (uint32_t)in->arg_count,
		.form = form && strcmp(form, "json") == 0 ? REPORT_JSON : REPORT_TAP,
		.trace = arg_has(in, "trace"),
	};

	if (in->arg_count > SCENARIO_FILES_MAX)
		return err_set(err, ERR_INVALID, "%d files are more than the limit of %d",
			       in->arg_count, SCENARIO_FILES_MAX);
	return sim_scenario_main("fairlead sim scenario", &words);
}

static const struct flag flags[] = {
	{ "output", 'o', "tap|json", "form of the report; default tap", false },
	{ "trace", 0, NULL, "print every decision with its reasons", false },
	{ 0 },
};

const struct command command_sim_scenario = {
	.name = "sim scenario",
	.arguments = "FILE...",
	.summary = "run policy tests on the scheduler, in virtual time",
	.about =
		"A scenario is a small cluster, some queues, some jobs, what happens, and what must be true at the end; it runs on the same "
		"code that schedules real jobs. The exit status is 0 when all hold, 1 when one does not, 2 on bad input.",
	.flags = flags,
	.examples = "fairlead sim scenario policy/*.yaml\n"
		    "fairlead sim scenario --trace lent-gpus.yaml\twhy it went so",
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_FILE,
	.run = run_scenario,
};
