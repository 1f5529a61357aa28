/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/recorded_journal.h"
#include "cli/sim_words.h"
#include "sim/replay/replay_main.h"

static int file_put(const char *path, const struct recorded *recorded,
		    void (*put)(const struct recorded *, FILE *), struct err *err)
{
	FILE *file = path ? fopen(path, "we") : stdout;
	bool good;

	if (!file)
		return err_errno(err, ERR_IO, errno, "can't write %s", path);
	put(recorded, file);
	good = fflush(file) == 0 && !ferror(file);
	if (path)
		good = fclose(file) == 0 && good;
	if (good)
		return 0;
	if (path)
		remove(path);
	return err_errno(err, ERR_IO, errno, "can't write %s", path ? path : "the workload");
}

static int journal_convert(struct invocation *in, struct err *err)
{
	const char *cluster = arg_flag(in, "cluster-out");
	struct recorded recorded;
	int rc;

	if (arg_has(in, "rate") || arg_has(in, "overheads") || arg_has(in, "throughputs"))
		return err_set(err, ERR_INVALID,
			       "--rate, --throughputs and --overheads belong to public traces");
	rc = recorded_journal_read(in->args[0], &recorded, err);
	if (rc == 0 && cluster)
		rc = file_put(cluster, &recorded, recorded_cluster, err);
	if (rc == 0)
		rc = file_put(arg_flag(in, "out"), &recorded, recorded_workload, err);
	recorded_deinit(&recorded);
	return rc;
}

static int run_convert(struct invocation *in, struct err *err)
{
	const char *from = arg_flag(in, "from");
	int count;
	char **words;

	if (from && strcmp(from, "journal") == 0)
		return journal_convert(in, err);
	if (arg_has(in, "cluster-out"))
		return err_set(
			err, ERR_INVALID,
			"--cluster-out belongs to --from journal: a public trace holds no cluster");
	words = sim_words(in, "fairlead sim convert", &count);
	return sim_convert_main(count, words);
}

static const struct flag flags[] = {
	{ "from", 0, "FORMAT", "journal, philly, helios, pai, muri, gavel, openb, openb-nodes",
	  false },
	{ "rate", 0, "JOBS", "gavel: so many jobs come in an hour", false },
	{ "throughputs", 0, "FILE", "gavel: steps per second by model; all alike without", false },
	{ "overheads", 0, "FILE", "muri: restart costs by model and GPUs; 10 s each without",
	  false },
	{ "out", 0, "FILE", "where to; standard output without", false },
	{ "cluster-out", 0, "FILE", "journal: where its nodes, queues and policy go", false },
	{ 0 },
};

const struct command command_sim_convert = {
	.name = "sim convert",
	.arguments = "FILE",
	.summary = "make a workload of a journal or of a public trace",
	.about =
		"What of each trace becomes what, and where it is published, is in docs/workload-format.md. FILE - is standard input; of `journal`, "
		"FILE is a data folder, of a running daemon too. The exit status is 2 on bad input; then what --out names is not there.",
	.flags = flags,
	.examples =
		"zcat jobs.csv.gz | fairlead sim convert --from philly --out philly.csv -\n"
		"fairlead sim convert --from openb-nodes nodes.csv --out openb.yaml\n"
		"fairlead sim convert --from journal --out jobs.csv --cluster-out site.yaml /var/lib/fairlead",
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_FILE,
	.run = run_convert,
};
