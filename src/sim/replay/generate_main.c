/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/parse.h"
#include "sim/replay/generate.h"
#include "sim/replay/replay_main.h"
#include "sim/scenario_file.h"
#include "sim/scenario_main.h"

enum { EXIT_BAD_INPUT = 2 };
#define MEMORY_CAP ((size_t)1 << 30)

static const char help[] =
	"usage: %s --cluster FILE --days N [--seed N] [--load PERCENT] [--users N] [--out FILE]\n"
	"\n"
	"Makes a workload for a cluster: docs/workload-format.md, \"Generated load\".\n"
	"\n"
	"      --cluster FILE    its GPUs and queues\n"
	"      --days N          so many, the first a Monday\n"
	"      --seed N          another one is another workload; default 1\n"
	"      --load PERCENT    of the cluster's GPU time; default 90\n"
	"      --users N         default 40\n"
	"      --out FILE        where to; standard output without\n"
	"  -h, --help            this text\n"
	"\n"
	"The same words give the same bytes. Exit status: 0, or 2 on bad input; then what --out names is not there.\n";

struct generate_words {
	struct generate_options options;
	const char *cluster, *out;
	bool help;
};

static int count_read(const char *what, int64_t least, int64_t most, uint32_t *ret, struct err *err)
{
	struct err why = { 0 };
	int64_t value;

	if (parse_int(optarg, least, most, &value, &why) < 0)
		return err_set(err, ERR_INVALID, "--%s: %s", what, why.text);
	*ret = (uint32_t)value;
	return 0;
}

static int word_take(struct generate_words *w, int c, struct err *err)
{
	struct err why = { 0 };
	int64_t seed;

	switch (c) {
	case 'c': w->cluster = optarg; return 0;
	case 'o': w->out = optarg; return 0;
	case 'h': w->help = true; return 0;
	case 'd': return count_read("days", 1, GENERATE_DAYS_MAX, &w->options.days, err);
	case 'l': return count_read("load", 1, GENERATE_LOAD_MAX, &w->options.load, err);
	case 'u': return count_read("users", 1, GENERATE_USERS_MAX, &w->options.users, err);
	case 's':
		if (parse_int(optarg, 0, INT64_MAX, &seed, &why) < 0)
			return err_set(err, ERR_INVALID, "--seed: %s", why.text);
		w->options.seed = (uint64_t)seed;
		return 0;
	default: return err_set(err, ERR_INVALID, "see --help");
	}
}

static int words_read(int argc, char **argv, struct generate_words *w, struct err *err)
{
	static const struct option longs[] = {
		{ "cluster", required_argument, NULL, 'c' },
		{ "days", required_argument, NULL, 'd' },
		{ "seed", required_argument, NULL, 's' },
		{ "load", required_argument, NULL, 'l' },
		{ "users", required_argument, NULL, 'u' },
		{ "out", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*w = (struct generate_words){ .options = { .seed = 1, .load = 90, .users = 40 } };
	optind = 0; /* glibc: start anew, another command may have been parsed before */
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1)
		if (word_take(w, c, err) < 0)
			return -1;
	if (w->help)
		return 0;
	if (optind < argc)
		return err_set(err, ERR_INVALID, "\"%s\" belongs to no option", argv[optind]);
	if (!w->cluster || !w->options.days)
		return err_set(err, ERR_INVALID, "--cluster and --days are needed; see --help");
	return 0;
}

static int words_do(const struct generate_words *w, struct arena *arena, struct err *err)
{
	struct scenario cluster;
	int rc = scenario_site_file_read(w->cluster, arena, &cluster, err);
	FILE *out = stdout;
	bool good;

	if (rc < 0)
		return rc;
	if (w->out && !(out = fopen(w->out, "we")))
		return err_errno(err, ERR_IO, errno, "can't write %s", w->out);
	rc = generate(&cluster, &w->options, out, err);
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

int sim_generate_main(int argc, char **argv)
{
	struct generate_words words;
	struct err err = { 0 };
	struct arena arena;
	int rc;

	if (words_read(argc, argv, &words, &err) < 0)
		return sim_complain(argv[0], &err), EXIT_BAD_INPUT;
	if (words.help)
		return printf(help, argv[0]), 0;
	arena_init(&arena, MEMORY_CAP);
	rc = words_do(&words, &arena, &err);
	arena_deinit(&arena);
	return rc < 0 ? (sim_complain(argv[0], &err), EXIT_BAD_INPUT) : 0;
}
