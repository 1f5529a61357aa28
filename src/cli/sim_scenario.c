/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/args.h"
#include "sim/scenario_main.h"

/* The simulator's own program does the work; its words are made again from what was parsed. */
static int run_scenario(struct invocation *in, struct err *err)
{
	const char *form = arg_flag(in, "output");
	char **words = arena_new_array(in->arena, char *, (size_t)in->arg_count + 6);
	int count = 0;

	(void)err;
	words[count++] = arena_strdup(in->arena, "fairlead sim scenario");
	if (form) {
		words[count++] = arena_strdup(in->arena, "-o");
		words[count++] = arena_strdup(in->arena, form);
	}
	if (arg_has(in, "trace"))
		words[count++] = arena_strdup(in->arena, "--trace");
	for (int i = 0; i < in->arg_count; i++)
		words[count++] = arena_strdup(in->arena, in->args[i]);
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
