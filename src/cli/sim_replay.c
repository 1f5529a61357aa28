/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/sim_words.h"
#include "sim/replay/replay_main.h"

static int run_replay(struct invocation *in, struct err *err)
{
	int count;
	char **words = sim_words(in, "fairlead sim replay", &count);

	(void)err;
	return sim_replay_main(count, words);
}

static const struct flag flags[] = {
	{ "cluster", 0, "FILE", "nodes, queues and policy, as in a scenario", false },
	{ "workload", 0, "FILE", "the jobs: docs/workload-format.md", false },
	{ "policy", 0, "fairlead|FILE|plain:NAME",
	  "fairlead (the default): as the cluster file has it; FILE: queues and policy in place of those; or a plain policy for reference",
	  true },
	{ "foretell", 0, "NUMBER",
	  "ask of each so many-th job that waits when it will start, and say how true that was",
	  false },
	{ "seed", 0, "NUMBER", "for policies that throw dice; default 1", false },
	{ "report", 0, "FOLDER",
	  "write replay.html, a page with plots, and replay.json: all figures, the course, every job",
	  false },
	{ "output", 'o', "table|json", "form of what is printed; default table", false },
	{ 0 },
};

const struct command command_sim_replay = {
	.name = "sim replay",
	.arguments = "",
	.summary = "play a workload on a cluster in virtual time, policy beside policy",
	.about =
		"The jobs run on the same code that schedules real ones; plain policies (fifo-strict, fifo-skip, fifo-fastest, sjf-strict, sjf-skip, ssf-skip, "
		"srtf, srsf, las, best-fit, random, fgd) stand beside it for reference. The same input gives the same figures, to the bit. The "
		"exit status is 2 on bad input.",
	.flags = flags,
	.examples =
		"fairlead sim replay --cluster c.yaml --workload w.csv\n"
		"fairlead sim replay --cluster c.yaml --workload w.csv --policy fairlead --policy plain:fifo-skip --report out",
	.run = run_replay,
};
