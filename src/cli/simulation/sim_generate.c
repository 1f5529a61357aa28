/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/args.h"
#include "cli/table/commands.h"
#include "sim/replay/replay_main.h"

static int run_generate(struct invocation *in, struct err *err)
{
	struct generate_words words = { .cluster = arg_flag(in, "cluster"),
					.out = arg_flag(in, "out") };
	int64_t days, seed, load, users;

	if (!words.cluster || !arg_has(in, "days"))
		return err_set(err, ERR_INVALID,
			       "--cluster and --days are needed; see `fairlead help sim generate`");
	if (arg_number(in, "days", 1, GENERATE_DAYS_MAX, 0, &days, err) < 0 ||
	    arg_number(in, "seed", 0, INT64_MAX, 1, &seed, err) < 0 ||
	    arg_number(in, "load", 1, GENERATE_LOAD_MAX, 90, &load, err) < 0 ||
	    arg_number(in, "users", 1, GENERATE_USERS_MAX, 40, &users, err) < 0)
		return -1;
	words.options = (struct generate_options){ .days = (uint32_t)days,
						   .users = (uint32_t)users,
						   .load = (uint32_t)load,
						   .seed = (uint64_t)seed };
	return sim_generate_main("fairlead sim generate", &words);
}

static const struct flag flags[] = {
	{ "cluster", 0, "FILE", "its GPUs and queues", false },
	{ "days", 0, "N", "so many, the first a Monday", false },
	{ "seed", 0, "N", "another one is another workload; default 1", false },
	{ "load", 0, "PERCENT", "of the cluster's GPU time; default 90", false },
	{ "users", 0, "N", "default 40", false },
	{ "out", 0, "FILE", "where to; standard output without", false },
	{ 0 },
};

const struct command command_sim_generate = {
	.name = "sim generate",
	.arguments = "",
	.summary = "make a workload of made-up people for a cluster",
	.about =
		"Arrivals by hour and day of the week, few users with most of the jobs, gangs, run times from seconds to weeks: docs/workload-format.md "
		"has the distributions. The same words give the same bytes. The exit status is 2 on bad input; then what --out names is not there.",
	.flags = flags,
	.examples =
		"fairlead sim generate --cluster site.yaml --days 30 --seed 7 --out month.csv\n"
		"fairlead sim replay --cluster site.yaml --workload month.csv --policy plain:fifo-strict",
	.run = run_generate,
};
