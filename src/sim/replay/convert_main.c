/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/replay/convert.h"
#include "sim/replay/replay_main.h"
#include "sim/scenario_main.h"

enum { EXIT_BAD_INPUT = 2 };

static const char help[] =
	"usage: %s --from FORMAT [--rate JOBS] [--throughputs FILE] [--overheads FILE] [--out FILE] FILE\n"
	"\n"
	"Makes a workload (or, of openb-nodes, a cluster file) of a public trace: docs/workload-format.md.\n"
	"\n"
	"      --from FORMAT     %s\n"
	"      --rate JOBS       gavel: so many jobs come in an hour\n"
	"      --throughputs FILE  gavel: steps per second by model; alike without\n"
	"      --overheads FILE  muri: restart costs by model and GPUs; 10 s each without\n"
	"      --out FILE        where to; standard output without\n"
	"  -h, --help            this text\n"
	"\n"
	"FILE - is standard input: zcat jobs.csv.gz | %s --from philly -\n"
	"Exit status: 0, or 2 on bad input; then what --out names is not there.\n";

struct convert_words {
	struct convert_options options;
	const char *from, *out, *path;
	bool help;
};

static int rate_read(const char *text, double *ret, struct err *err)
{
	char *end;

	*ret = strtod(text, &end);
	return *end || !(*ret > 0) || *ret > 1e6
		       ? err_set(err, ERR_INVALID,
				 "--rate is \"%.40s\": wanted are jobs per hour, above 0 and up to 1,000,000",
				 text)
		       : 0;
}

static int words_read(int argc, char **argv, struct convert_words *w, struct err *err)
{
	static const struct option longs[] = {
		{ "from", required_argument, NULL, 'f' },
		{ "rate", required_argument, NULL, 'r' },
		{ "overheads", required_argument, NULL, 'v' },
		{ "throughputs", required_argument, NULL, 't' },
		{ "out", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*w = (struct convert_words){ 0 };
	optind = 0; /* glibc: start anew, another command may have been parsed before */
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (c == 'f')
			w->from = optarg;
		else if (c == 'v')
			w->options.overheads = optarg;
		else if (c == 't')
			w->options.throughputs = optarg;
		else if (c == 'o')
			w->out = optarg;
		else if (c == 'h')
			w->help = true;
		else if (c != 'r')
			return err_set(err, ERR_INVALID, "see --help");
		else if (rate_read(optarg, &w->options.rate, err) < 0)
			return -1;
	}
	if (w->help)
		return 0;
	if (!w->from)
		return err_set(err, ERR_INVALID, "--from is needed: %s", convert_names());
	if (optind + 1 != argc)
		return err_set(err, ERR_INVALID, "one trace file is needed; - is standard input");
	w->path = argv[optind];
	return 0;
}

static int words_do(const struct convert_words *w, struct err *err)
{
	FILE *out = w->out ? fopen(w->out, "we") : stdout;
	bool good;
	int rc;

	if (!out)
		return err_errno(err, ERR_IO, errno, "can't write %s", w->out);
	rc = convert(w->from, w->path, &w->options, out, err);
	good = fflush(out) == 0 && !ferror(out);
	if (w->out)
		good = fclose(out) == 0 && good;
	if (rc == 0 && !good)
		rc = err_errno(err, ERR_IO, errno, "can't write %s",
			       w->out ? w->out : "the workload");
	if (rc < 0 && w->out)
		remove(w->out);
	return rc;
}

int sim_convert_main(int argc, char **argv)
{
	struct convert_words words;
	struct err err = { 0 };

	if (words_read(argc, argv, &words, &err) < 0)
		return sim_complain(argv[0], &err), EXIT_BAD_INPUT;
	if (words.help)
		return printf(help, argv[0], convert_names(), argv[0]), 0;
	if (words_do(&words, &err) < 0)
		return sim_complain(argv[0], &err), EXIT_BAD_INPUT;
	return 0;
}
