/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario_main.h"

#include <stdio.h>

#include "base/arena.h"
#include "sim/runner.h"
#include "sim/scenario_file.h"

enum { EXIT_HOLDS = 0, EXIT_FAILS = 1, EXIT_BAD_INPUT = 2 };
#define MEMORY_CAP ((size_t)4 << 30)

int sim_complain(const char *command, const struct err *err)
{
	if (*err->file)
		fprintf(stderr, "%s: %s:%d:%d: %s\n", command, err->file, err->line, err->column,
			err->text);
	else
		fprintf(stderr, "%s: %s\n", command, err->text);
	return -1;
}

static void run_document(const struct scenario_document *d, const struct scenario_words *words,
			 struct report *report)
{
	struct scenario_result result;
	struct arena arena;
	struct err err;

	if (d->rc < 0) {
		report_refused(report, d->name, &d->err);
		return;
	}
	if (words->trace)
		fprintf(words->form == REPORT_TAP ? stdout : stderr, "# %s\n", d->scenario.name);
	arena_init(&arena, MEMORY_CAP);
	if (scenario_run(&d->scenario,
			 !words->trace               ? NULL
			 : words->form == REPORT_TAP ? stdout
						     : stderr,
			 &arena, &result, &err) < 0)
		report_refused(report, d->name, &err);
	else
		report_result(report, &d->scenario, &result);
	arena_deinit(&arena);
}

/* All files are read before any is run, so that bad input is seen at once. */
static int run_files(const char *command, const struct scenario_words *words, struct arena *arena)
{
	struct scenario_file *files = arena_new_array(arena, struct scenario_file, words->count);
	struct report report;
	size_t planned = 0;
	bool bad = false;
	struct err err;

	for (size_t i = 0; i < words->count; i++)
		if (scenario_file_read(words->paths[i], false, arena, &files[i], &err) < 0) {
			sim_complain(command, &err);
			bad = true;
		} else {
			planned += files[i].count;
		}
	report_begin(&report, words->form, stdout, planned);
	for (size_t i = 0; i < words->count; i++)
		for (size_t k = 0; files[i].documents && k < files[i].count; k++)
			run_document(&files[i].documents[k], words, &report);
	report_end(&report);
	if (bad || report.refused)
		return EXIT_BAD_INPUT;
	return report.failed ? EXIT_FAILS : EXIT_HOLDS;
}

int sim_scenario_main(const char *command, const struct scenario_words *words)
{
	struct arena arena;
	int status;

	arena_init(&arena, MEMORY_CAP);
	status = run_files(command, words, &arena);
	arena_deinit(&arena);
	return status;
}
