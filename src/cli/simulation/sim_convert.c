/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table/args.h"
#include "cli/table/commands.h"
#include "cli/simulation/recorded_journal.h"
#include "sim/replay/replay_main.h"
#include "sim/replay/written.h"

struct recorded_part {
	const struct recorded *recorded;
	void (*put)(const struct recorded *, FILE *);
};

static int recorded_put(const void *context, FILE *out, struct err *err)
{
	const struct recorded_part *part = context;

	(void)err;
	part->put(part->recorded, out);
	return 0;
}

static int journal_convert(struct invocation *in, struct err *err)
{
	const char *cluster = arg_flag(in, "cluster-out");
	struct recorded recorded;
	int rc;

	if (arg_has(in, "rate") || arg_has(in, "overheads") || arg_has(in, "throughputs") ||
	    arg_has(in, "node"))
		return err_set(
			err, ERR_INVALID,
			"--rate, --throughputs, --overheads and --node belong to public traces");
	rc = recorded_journal_read(in->args[0], &recorded, err);
	if (rc == 0 && cluster)
		rc = written(cluster, recorded_put,
			     &(struct recorded_part){ &recorded, recorded_cluster }, err);
	if (rc == 0)
		rc = written(arg_flag(in, "out"), recorded_put,
			     &(struct recorded_part){ &recorded, recorded_workload }, err);
	recorded_deinit(&recorded);
	return rc;
}

static int rate_read(const struct invocation *in, double *ret, struct err *err)
{
	const char *text = arg_flag(in, "rate");
	char *end;

	if (!text)
		return 0;
	*ret = strtod(text, &end);
	return *end || !(*ret > 0) || *ret > 1e6
		       ? err_set(err, ERR_INVALID,
				 "--rate is \"%.40s\": wanted are jobs per hour, above 0 and up to 1,000,000",
				 text)
		       : 0;
}

static int run_convert(struct invocation *in, struct err *err)
{
	struct convert_words words = { .options = { .throughputs = arg_flag(in, "throughputs"),
						    .overheads = arg_flag(in, "overheads"),
						    .node = arg_flag(in, "node") },
				       .from = arg_flag(in, "from"),
				       .path = in->args[0],
				       .out = arg_flag(in, "out") };

	if (!words.from)
		return err_set(err, ERR_INVALID, "--from is needed: journal, %s", convert_names());
	if (strcmp(words.from, "journal") == 0)
		return journal_convert(in, err);
	if (arg_has(in, "cluster-out"))
		return err_set(
			err, ERR_INVALID,
			"--cluster-out belongs to --from journal: a public trace holds no cluster");
	if (rate_read(in, &words.options.rate, err) < 0)
		return -1;
	return sim_convert_main("fairlead sim convert", &words);
}

static const struct flag flags[] = {
	{ "from", 0, "FORMAT",
	  "journal, philly, helios, pai, muri, gavel, openb, openb-nodes, spot, spot-fleet",
	  false },
	{ "rate", 0, "JOBS", "gavel: so many jobs come in an hour", false },
	{ "throughputs", 0, "FILE", "gavel: steps per second by model; all alike without", false },
	{ "overheads", 0, "FILE", "muri: restart costs by model and GPUs; 10 s each without",
	  false },
	{ "node", 0, "NAME", "spot: its nodes are NAME-1, NAME-2 and so on; default spot", false },
	{ "out", 0, "FILE", "where to; standard output without", false },
	{ "cluster-out", 0, "FILE", "journal: where its nodes, queues and policy go", false },
	{ 0 },
};

const struct command command_sim_convert = {
	.name = "sim convert",
	.arguments = "FILE",
	.summary =
		"make a workload of a journal or of a public trace, or say when spot nodes were there",
	.about =
		"What of each trace becomes what, and where it is published, is in docs/workload-format.md. FILE - is standard input; of `journal`, "
		"FILE is a data folder, of a running daemon too. The exit status is 2 on bad input; then what --out names is not there.",
	.flags = flags,
	.examples =
		"zcat jobs.csv.gz | fairlead sim convert --from philly --out philly.csv -\n"
		"fairlead sim convert --from spot us-east-1a.json --node east --out east.csv\twhen nodes were there, for sim replay --availability\n"
		"fairlead sim convert --from openb-nodes nodes.csv --out openb.yaml\n"
		"fairlead sim convert --from journal --out jobs.csv --cluster-out site.yaml /var/lib/fairlead",
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_FILE,
	.run = run_convert,
};
