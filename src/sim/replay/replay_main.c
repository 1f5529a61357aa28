/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/replay_main.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "sim/replay/core_run.h"
#include "sim/replay/page.h"
#include "sim/replay/plain.h"
#include "sim/replay/replay_report.h"
#include "sim/scenario_file.h"
#include "sim/scenario_main.h"

enum { POLICIES_MAX = 64, EXIT_BAD_INPUT = 2 };
#define MEMORY_CAP ((size_t)1 << 30)

static const char help[] =
	"usage: %s --cluster FILE --workload FILE [--policy fairlead|FILE|plain:NAME]... [--seed N] [--report DIR]\n"
	"\n"
	"Plays a workload on a cluster in virtual time and says what came of it, policy beside policy.\n"
	"\n"
	"      --cluster FILE   nodes, queues and policy, as in a scenario (docs/workload-format.md)\n"
	"      --workload FILE  jobs: docs/workload-format.md; `fairlead sim convert` makes them from public traces\n"
	"      --policy fairlead    queues and policy as the cluster file has them\n"
	"      --policy FILE    queues and policy in place of the cluster file's; may be given several times\n"
	"      --policy plain:NAME  a plain policy for reference: %s\n"
	"      --foretell N     asks of each N-th job that waits when it will start, and says how true that was\n"
	"      --seed N         for the policies that throw dice; default 1\n"
	"      --report DIR     replay.html, a page with plots, and replay.json: all figures, the course, every job\n"
	"  -o, --output FORM    table (default) or json\n"
	"  -h, --help           this text\n"
	"\n"
	"Without --policy: fairlead. Exit status: 0, or 2 on bad input.\n";

struct options {
	const char *cluster, *workload, *report, *policies[POLICIES_MAX];
	uint32_t policy_count;
	int64_t seed, foretell;
	bool json, help;
};

static int option_take(struct options *o, int c, struct err *err)
{
	switch (c) {
	case 'c': o->cluster = optarg; return 0;
	case 'w': o->workload = optarg; return 0;
	case 'r': o->report = optarg; return 0;
	case 'h': o->help = true; return 0;
	case 's': return parse_int(optarg, 0, INT64_MAX, &o->seed, err);
	case 'f': return parse_int(optarg, 1, 1000000, &o->foretell, err);
	case 'o':
		o->json = strcmp(optarg, "json") == 0;
		return o->json || strcmp(optarg, "table") == 0
			       ? 0
			       : err_set(err, ERR_INVALID,
					 "output form \"%s\" is not known; use table or json",
					 optarg);
	case 'p':
		if (o->policy_count == POLICIES_MAX)
			return err_set(err, ERR_INVALID, "more than %d policies", POLICIES_MAX);
		o->policies[o->policy_count++] = optarg;
		return 0;
	default: return err_set(err, ERR_INVALID, "see --help");
	}
}

static int options_read(int argc, char **argv, struct options *o, struct err *err)
{
	static const struct option longs[] = {
		{ "cluster", required_argument, NULL, 'c' },
		{ "workload", required_argument, NULL, 'w' },
		{ "policy", required_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 's' },
		{ "foretell", required_argument, NULL, 'f' },
		{ "report", required_argument, NULL, 'r' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*o = (struct options){ .seed = 1 };
	optind = 0; /* glibc: start anew, another command may have been parsed before */
	while ((c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1)
		if (option_take(o, c, err) < 0)
			return -1;
	if (o->help)
		return 0;
	if (optind < argc)
		return err_set(err, ERR_INVALID, "\"%s\" belongs to no option", argv[optind]);
	if (!o->cluster || !o->workload)
		return err_set(err, ERR_INVALID, "--cluster and --workload are needed; see --help");
	if (!o->policy_count)
		o->policies[o->policy_count++] = "fairlead";
	return 0;
}

static void progress(void *context, uint32_t ended, uint32_t all)
{
	fprintf(stderr, "\r%s: %3d %%", (const char *)context, (int)((uint64_t)ended * 100 / all));
}

static int policy_run(const struct options *o, const char *policy, const struct scenario *site,
		      const struct workload *workload, struct arena *arena, struct outcome *ret,
		      struct err *err)
{
	const struct plain_policy *plain;
	struct scenario ruled = *site;
	const bool own = strcmp(policy, "fairlead") == 0;
	const bool watched = isatty(STDERR_FILENO);
	int rc;

	if (strncmp(policy, "plain:", 6) == 0) {
		plain = plain_find(policy + 6);
		if (!plain)
			return err_set(err, ERR_INVALID,
				       "plain policy \"%.40s\" is not known; there are %s",
				       policy + 6, plain_names());
		plain_run(plain, site, workload, (uint64_t)o->seed, ret);
		return 0;
	}
	if (!own && scenario_rules_file_read(policy, arena, &ruled, err) < 0)
		return -1;
	rc = core_run(policy, &ruled, workload, (uint32_t)o->foretell, watched ? progress : NULL,
		      (void *)(uintptr_t)policy, ret, err);
	if (watched)
		fprintf(stderr, "\r\033[K");
	return rc;
}

static int file_write(const char *folder, const char *name, const struct buf *text, struct err *err)
{
	char path[4096];
	FILE *file;
	bool good;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "we");
	if (!file)
		return err_errno(err, ERR_IO, errno, "can't write %s", path);
	good = fwrite(text->data, 1, text->size, file) == text->size;
	good = fclose(file) == 0 && good;
	return good ? 0 : err_errno(err, ERR_IO, errno, "can't write %s", path);
}

static int report_write(const struct options *o, const struct replay_result *results,
			const struct buf *json, struct err *err)
{
	AUTO_BUF page = BUF_INIT;
	int rc;

	if (mkdir(o->report, 0777) < 0 && errno != EEXIST)
		return err_errno(err, ERR_IO, errno, "can't make the folder %s", o->report);
	replay_page(&page, o->cluster, results, o->policy_count);
	rc = file_write(o->report, "replay.json", json, err);
	if (rc == 0)
		rc = file_write(o->report, "replay.html", &page, err);
	if (rc == 0 && !o->json)
		printf("\nReport: %s/replay.html\n", o->report);
	return rc;
}

static int results_tell(const struct options *o, const struct replay_result *results,
			struct err *err)
{
	AUTO_BUF json = BUF_INIT;

	if (o->json || o->report)
		replay_json(&json, o->cluster, results, o->policy_count);
	if (o->json)
		fwrite(json.data, 1, json.size, stdout);
	else
		replay_table(stdout, results, o->policy_count);
	return o->report ? report_write(o, results, &json, err) : 0;
}

static int replay(const struct options *o, struct err *err)
{
	struct replay_result *results = calloc(o->policy_count, sizeof *results);
	struct workload workload = { 0 };
	struct scenario site;
	struct arena arena;
	int rc;

	CHECK(results);
	arena_init(&arena, MEMORY_CAP);
	rc = scenario_site_file_read(o->cluster, &arena, &site, err);
	if (rc == 0)
		rc = workload_read(o->workload, &workload, err);
	for (uint32_t i = 0; rc == 0 && i < o->policy_count; i++) {
		rc = policy_run(o, o->policies[i], &site, &workload, &arena, &results[i].outcome,
				err);
		if (rc == 0)
			figures_make(&results[i].outcome, &results[i].figures);
	}
	if (rc == 0)
		rc = results_tell(o, results, err);
	for (uint32_t i = 0; i < o->policy_count; i++)
		outcome_deinit(&results[i].outcome);
	free(results);
	workload_deinit(&workload);
	arena_deinit(&arena);
	return rc;
}

int sim_replay_main(int argc, char **argv)
{
	struct options options;
	struct err err = { 0 };

	if (options_read(argc, argv, &options, &err) < 0)
		return sim_complain(argv[0], &err), EXIT_BAD_INPUT;
	if (options.help)
		return printf(help, argv[0], plain_names()), 0;
	if (replay(&options, &err) < 0)
		return sim_complain(argv[0], &err), EXIT_BAD_INPUT;
	return 0;
}
