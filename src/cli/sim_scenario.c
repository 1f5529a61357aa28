/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/sim_words.h"
#include "sim/scenario_main.h"

static int run_scenario(struct invocation *in, struct err *err)
{
	int count;
	char **words = sim_words(in, "fairlead sim scenario", &count);

	(void)err;
	return sim_scenario_main(count, words);
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
