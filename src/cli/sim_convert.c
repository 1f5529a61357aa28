/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/args.h"
#include "cli/commands.h"
#include "sim/replay/replay_main.h"

/* The simulator's own program does the work; its words are made again from what was parsed. */
static int run_convert(struct invocation *in, struct err *err)
{
	char **words = arena_new_array(in->arena, char *, in->value_count * 2 + 4);
	int count = 0;

	(void)err;
	words[count++] = arena_strdup(in->arena, "fairlead sim convert");
	for (size_t i = 0; i < in->value_count; i++) {
		words[count++] = arena_printf(in->arena, "--%s", in->values[i].flag->name);
		words[count++] = arena_strdup(in->arena, in->values[i].text);
	}
	words[count++] = arena_strdup(in->arena, "--");
	words[count++] = arena_strdup(in->arena, in->args[0]);
	return sim_convert_main(count, words);
}

static const struct flag flags[] = {
	{ "from", 0, "FORMAT", "philly, helios, pai, muri, gavel, openb, openb-nodes", false },
	{ "rate", 0, "JOBS", "gavel: so many jobs come in an hour", false },
	{ "overheads", 0, "FILE", "muri: restart costs by model and GPUs; 10 s each without",
	  false },
	{ "out", 0, "FILE", "where to; standard output without", false },
	{ 0 },
};

const struct command command_sim_convert = {
	.name = "sim convert",
	.arguments = "FILE",
	.summary = "make a workload of a public trace",
	.about =
		"What of each trace becomes what, and where it is published, is in docs/workload-format.md. FILE - is standard input. The exit "
		"status is 2 on bad input; then what --out names is not there.",
	.flags = flags,
	.examples = "zcat jobs.csv.gz | fairlead sim convert --from philly --out philly.csv -\n"
		    "fairlead sim convert --from openb-nodes nodes.csv --out openb.yaml",
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_FILE,
	.run = run_convert,
};
