/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/table/args.h"
#include "cli/table/commands.h"
#include "sim/replay/replay_main.h"

static int policies_read(const struct invocation *in, struct replay_words *ret, struct err *err)
{
	const char *policy;

	while ((policy = arg_flag_at(in, "policy", ret->policy_count))) {
		if (ret->policy_count == REPLAY_POLICIES_MAX)
			return err_set(err, ERR_INVALID, "more than %d policies",
				       REPLAY_POLICIES_MAX);
		ret->policies[ret->policy_count++] = policy;
	}
	if (!ret->policy_count)
		ret->policies[ret->policy_count++] = "fairlead";
	return 0;
}

static int run_replay(struct invocation *in, struct err *err)
{
	const char *form = arg_flag(in, "output");
	struct replay_words words = { .cluster = arg_flag(in, "cluster"),
				      .workload = arg_flag(in, "workload"),
				      .availability = arg_flag(in, "availability"),
				      .report = arg_flag(in, "report"),
				      .json = form && strcmp(form, "json") == 0 };
	int64_t seed, foretell;

	if (!words.cluster || !words.workload)
		return err_set(
			err, ERR_INVALID,
			"--cluster and --workload are needed; see `fairlead help sim replay`");
	if (policies_read(in, &words, err) < 0 ||
	    arg_number(in, "seed", 0, INT64_MAX, 1, &seed, err) < 0 ||
	    arg_number(in, "foretell", 1, 1000000, 0, &foretell, err) < 0)
		return -1;
	words.seed = (uint64_t)seed;
	words.foretell = (uint32_t)foretell;
	return sim_replay_main("fairlead sim replay", &words);
}

static const struct flag flags[] = {
	{ "cluster", 0, "FILE", "nodes, queues and policy, as in a scenario", false },
	{ "workload", 0, "FILE", "the jobs: docs/workload-format.md", false },
	{ "policy", 0, "fairlead|FILE|plain:NAME",
	  "fairlead (the default): as the cluster file has it; FILE: queues and policy in place of those; or a plain policy for reference",
	  true },
	{ "availability", 0, "FILE",
	  "nodes that come and go, as spot nodes do; `fairlead sim convert --from spot` makes one",
	  false },
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
		"srtf, srsf, las, best-fit, random, fgd, and for spot nodes under a deadline spot-greedy and uniform-progress) stand beside it for reference. The same input gives the same figures, to the bit. The "
		"exit status is 2 on bad input.",
	.flags = flags,
	.examples =
		"fairlead sim replay --cluster c.yaml --workload w.csv\n"
		"fairlead sim replay --cluster c.yaml --workload w.csv --policy fairlead --policy plain:fifo-skip --report out",
	.run = run_replay,
};
