/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs scenario files against a list of what is not covered yet:
 *
 *	scenario_suite [--daemon] [--later LIST] FILE...
 *
 * LIST is a map from file name to a map from scenario name to the reason why it must wait. A
 * scenario on the list must not pass, all others must; what the list names must exist. So the
 * list can only be true. With --daemon (before the files), values of the policy that a scenario does not name
 * are the daemon's defaults. Output: TAP.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/conf.h"
#include "sim/runner.h"
#include "sim/scenario_file.h"

#define MEMORY_CAP ((size_t)4 << 30)
enum { DAEMON_STEPS_MAX = 3000 }; /* jobs that run for ever take turns for ever there */

struct suite {
	struct arena arena;
	struct conf *later; /* NULL = no list */
	uint32_t count, wrong;
	bool daemon;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void say(struct suite *suite, bool good, const char *name, const char *note,
		const char *text)
{
	printf("%sok %u - %s%s%s\n", good ? "" : "not ", ++suite->count, name, note, text);
	suite->wrong += !good;
}

/* Whether it holds; says why not. */
static bool document_holds(struct suite *suite, const struct scenario_document *d, bool loud)
{
	struct scenario scenario = d->scenario;
	struct scenario_result result;
	struct err err;

	if (d->rc < 0) {
		if (loud)
			printf("# %s:%d:%d: %s\n", d->err.file, d->err.line, d->err.column,
			       d->err.text);
		return false;
	}
	scenario.steps_max = suite->daemon ? DAEMON_STEPS_MAX : 0;
	if (scenario_run(&scenario, NULL, &suite->arena, &result, &err) < 0) {
		if (loud)
			printf("# %s:%d: %s\n", err.file, err.line, err.text);
		return false;
	}
	for (uint32_t i = 0; loud && i < result.mismatch_count; i++)
		printf("# at %s: %s: expected %s, is %s %s\n", result.mismatches[i].when,
		       result.mismatches[i].what, result.mismatches[i].expected,
		       result.mismatches[i].actual, result.mismatches[i].why);
	for (uint32_t i = 0; loud && i < result.problem_count; i++)
		printf("# must never be: %s\n", result.problems[i]);
	return result.mismatch_count == 0 && result.problem_count == 0;
}

static void run_file(struct suite *suite, const struct scenario_file *file)
{
	const struct conf *later =
		suite->later ? conf_find(suite->later, base_name(file->path)) : NULL;

	for (size_t i = 0; i < file->count; i++) {
		const struct scenario_document *d = &file->documents[i];
		const struct conf *reason = later ? conf_find(later, d->name) : NULL;
		bool holds = document_holds(suite, d, !reason);

		if (reason && holds)
			say(suite, false, d->name, ": it passes now; take it off the list", "");
		else if (reason)
			say(suite, true, d->name,
			    ", on the list: ", reason->text ? reason->text : "");
		else
			say(suite, holds, d->name, "", "");
	}
}

/* Everything on the list exists. */
static void check_list(struct suite *suite, const struct scenario_file *files, size_t count)
{
	for (size_t i = 0; suite->later && i < suite->later->count; i++) {
		const struct conf *part = suite->later->items[i];
		const struct scenario_file *file = NULL;

		for (size_t f = 0; f < count; f++)
			if (strcmp(base_name(files[f].path), part->key) == 0)
				file = &files[f];
		for (size_t k = 0; k < part->count; k++) {
			bool found = false;

			for (size_t d = 0; file && d < file->count; d++)
				found = found ||
					strcmp(file->documents[d].name, part->items[k]->key) == 0;
			if (!found)
				say(suite, false, part->items[k]->key,
				    " is on the list, but not in ", part->key);
		}
	}
}

static int read_list(struct suite *suite, const char *path, struct err *err)
{
	static char text[1 << 16];
	FILE *file = fopen(path, "re");
	struct conf **documents;
	size_t size, count;
	int rc;

	if (!file)
		return err_set(err, ERR_NOT_FOUND, "can't open %s", path);
	size = fread(text, 1, sizeof(text), file);
	fclose(file);
	rc = conf_parse(path, text, size, &suite->arena, &documents, &count, err);
	if (rc == 0 && count)
		suite->later = documents[0];
	return rc;
}

int main(int argc, char **argv)
{
	struct suite suite = { 0 };
	struct scenario_file *files;
	size_t count = 0;
	struct err err;

	arena_init(&suite.arena, MEMORY_CAP);
	files = arena_new_array(&suite.arena, struct scenario_file, (size_t)argc);
	for (int i = 1; i < argc; i++) {
		int rc = 0;

		if (strcmp(argv[i], "--daemon") == 0)
			suite.daemon = true;
		else if (strcmp(argv[i], "--later") == 0 && i + 1 < argc)
			rc = read_list(&suite, argv[++i], &err);
		else
			rc = scenario_file_read(argv[i], suite.daemon, &suite.arena,
						&files[count++], &err);
		if (rc < 0) {
			printf("Bail out! %s:%d: %s\n", err.file, err.line, err.text);
			return 2;
		}
	}
	for (size_t i = 0; i < count; i++)
		run_file(&suite, &files[i]);
	check_list(&suite, files, count);
	printf("1..%u\n", suite.count);
	arena_deinit(&suite.arena);
	return suite.wrong != 0;
}
