/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario_main.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "sim/report.h"
#include "sim/runner.h"
#include "sim/scenario_file.h"

enum { FILES_MAX = 4096, EXIT_HOLDS = 0, EXIT_FAILS = 1, EXIT_BAD_INPUT = 2 };
#define MEMORY_CAP ((size_t)4 << 30)

static const char help[] =
	"usage: %s [-o tap|json] [--trace] FILE...\n"
	"\n"
	"Runs the scenarios in FILE... on the production core in virtual time and says which hold.\n"
	"A scenario is a cluster, queues, jobs, what happens, and what must then be true.\n"
	"\n"
	"  -o, --output FORM  tap (default, for people and test harnesses) or json\n"
	"      --trace        print every decision with its reasons, and why each waiting job waits\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit status: 0 when all hold, 1 when one does not, 2 on bad input.\n";

int sim_complain(const char *command, const struct err *err)
{
	if (*err->file)
		fprintf(stderr, "%s: %s:%d:%d: %s\n", command, err->file, err->line, err->column,
			err->text);
	else
		fprintf(stderr, "%s: %s\n", command, err->text);
	return -1;
}

struct options {
	enum report_form form;
	bool trace, help;
};

/* Negative when the words make no sense; that has been said. */
static int read_options(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "trace", no_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*ret = (struct options){ 0 };
	optind = 0; /* glibc: start anew, another command may have been parsed before */
	while ((c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
		if (c == 'o' && strcmp(optarg, "json") == 0)
			ret->form = REPORT_JSON;
		else if (c == 'o' && strcmp(optarg, "tap") == 0)
			ret->form = REPORT_TAP;
		else if (c == 't')
			ret->trace = true;
		else if (c == 'h')
			ret->help = true;
		else if (c == 'o')
			return fprintf(stderr,
				       "%s: output form \"%s\" is not known; use tap or json\n",
				       argv[0], optarg),
			       -1;
		else
			return -1;
	}
	if (!ret->help && optind == argc)
		return fprintf(stderr, "%s: no scenario file is given; see %s --help\n", argv[0],
			       argv[0]),
		       -1;
	if (argc - optind > FILES_MAX)
		return fprintf(stderr, "%s: %d files are more than the limit of %d\n", argv[0],
			       argc - optind, FILES_MAX),
		       -1;
	return 0;
}

static void run_document(const struct scenario_document *d, const struct options *options,
			 struct report *report)
{
	struct scenario_result result;
	struct arena arena;
	struct err err;

	if (d->rc < 0) {
		report_refused(report, d->name, &d->err);
		return;
	}
	if (options->trace)
		fprintf(options->form == REPORT_TAP ? stdout : stderr, "# %s\n", d->scenario.name);
	arena_init(&arena, MEMORY_CAP);
	if (scenario_run(&d->scenario,
			 !options->trace               ? NULL
			 : options->form == REPORT_TAP ? stdout
						       : stderr,
			 &arena, &result, &err) < 0)
		report_refused(report, d->name, &err);
	else
		report_result(report, &d->scenario, &result);
	arena_deinit(&arena);
}

/* All files are read before any is run, so that bad input is seen at once. */
static int run_files(const char *command, char **paths, size_t count, const struct options *options,
		     struct arena *arena)
{
	struct scenario_file *files = arena_new_array(arena, struct scenario_file, count);
	struct report report;
	size_t planned = 0;
	bool bad = false;
	struct err err;

	for (size_t i = 0; i < count; i++)
		if (scenario_file_read(paths[i], arena, &files[i], &err) < 0) {
			sim_complain(command, &err);
			bad = true;
		} else {
			planned += files[i].count;
		}
	report_begin(&report, options->form, stdout, planned);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; files[i].documents && k < files[i].count; k++)
			run_document(&files[i].documents[k], options, &report);
	report_end(&report);
	if (bad || report.refused)
		return EXIT_BAD_INPUT;
	return report.failed ? EXIT_FAILS : EXIT_HOLDS;
}

int sim_scenario_main(int argc, char **argv)
{
	struct options options;
	struct arena arena;
	int status;

	if (read_options(argc, argv, &options) < 0)
		return EXIT_BAD_INPUT;
	if (options.help) {
		printf(help, argv[0]);
		return EXIT_HOLDS;
	}
	arena_init(&arena, MEMORY_CAP);
	status = run_files(argv[0], argv + optind, (size_t)(argc - optind), &options, &arena);
	arena_deinit(&arena);
	return status;
}
