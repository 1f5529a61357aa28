/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/sim_words.h"
#include "sim/replay/replay_main.h"

static int run_convert(struct invocation *in, struct err *err)
{
	int count;
	char **words = sim_words(in, "fairlead sim convert", &count);

	(void)err;
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
