/* SPDX-License-Identifier: Apache-2.0 */
/* The runner on the real core: what it finds wrong, what it refuses, what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/check.h"
#include "sim/report.h"
#include "sim/runner.h"
#include "sim/scenario_main.h"

static struct arena arena;

#define NODE "name: x\ncluster:\n  nodes:\n    - {name: \"n[0-1]\", gpus: 2}\n"

/* Runs the only document of the text; *ret_trace gets what --trace would print. */
static int run_text(const char *text, struct scenario_result *ret, char **ret_trace,
		    struct err *err)
{
	struct scenario *s = arena_new(&arena, struct scenario);
	struct conf **documents;
	size_t count, size;
	FILE *trace = ret_trace ? open_memstream(ret_trace, &size) : NULL;
	int rc = conf_parse("t.yaml", text, strlen(text), &arena, &documents, &count, err);

	if (rc == 0)
		rc = scenario_read("t.yaml", documents[0], false, &arena, s, err);
	if (rc == 0)
		rc = scenario_run(s, trace, &arena, ret, err);
	if (trace)
		fclose(trace);
	return rc;
}

static struct scenario_result run_good(const char *text)
{
	struct scenario_result result;
	struct err err = { 0 };

	if (run_text(text, &result, NULL, &err) < 0)
		fail_msg("line %d: %s", err.line, err.text);
	if (result.problem_count)
		fail_msg("%s", result.problems[0]);
	return result;
}

static void assert_holds(const char *text)
{
	struct scenario_result result = run_good(text);

	if (result.mismatch_count)
		fail_msg("%s: expected %s, is %s", result.mismatches[0].what,
			 result.mismatches[0].expected, result.mismatches[0].actual);
}

/* It runs, and exactly this is wrong. */
static void assert_mismatch(const char *text, const char *what, const char *expected,
			    const char *actual)
{
	struct scenario_result result = run_good(text);

	assert_int_equal(result.mismatch_count, 1);
	assert_string_equal(result.mismatches[0].what, what);
	assert_string_equal(result.mismatches[0].expected, expected);
	assert_string_equal(result.mismatches[0].actual, actual);
}

static void each_expectation_that_does_not_hold_is_a_mismatch(void **state)
{
	static const struct {
		const char *rest, *what, *expected, *actual;
	} cases[] = {
		{ "jobs:\n  - {name: a}\nexpect:\n  - running: {a: 0}\n", "running.a", "0", "1" },
		{ "jobs:\n  - {name: \"a[0-5]\"}\nexpect:\n  - running: {\"a[0-5]\": 6}\n",
		  "running.a[0-5]", "6", "4" },
		{ "jobs:\n  - {name: a}\nexpect:\n  - waiting: [a]\n", "waiting", "a", "running" },
		{ "jobs:\n  - {name: a, gpus: 3}\n  - {name: b}\nexpect:\n  - waiting: []\n",
		  "waiting", "nobody", "a" },
		{ "jobs:\n  - {name: a}\nexpect:\n  - evicted: [a]\n", "evicted", "a", "nobody" },
		{ "jobs:\n  - {name: a}\nexpect:\n  - evicted: 2\n", "evicted", "2 jobs",
		  "nobody" },
		{ "jobs:\n  - {name: a}\nexpect:\n  - moved: [a]\n", "moved", "a", "nobody" },
		{ "jobs:\n  - {name: a, runtime: 5m}\nexpect:\n  - finished: []\n", "finished",
		  "nobody", "a" },
		{ "jobs:\n  - {name: a, fails_after: 5m}\nexpect:\n  - finished: [a]\n", "finished",
		  "a", "failed" },
		{ "jobs:\n  - {name: a, fails_after: 5m, retries: 1}\nexpect:\n  - attempts: {a: 1}\n",
		  "attempts.a", "1", "2" },
		{ "jobs:\n  - {name: a, running: [n0]}\nevents:\n  - {at: 1m, node_down: n0}\nexpect:\n  - untouched: [a]\n",
		  "untouched", "a", "lost its place" },
		{ "jobs:\n  - {name: a, running: [n0]}\nexpect:\n  - place: {a: [n1]}\n", "place.a",
		  "exactly on n1", "n0" },
		{ "jobs:\n  - {name: a, running: [n0]}\nexpect:\n  - place: {a: {avoid: [n0]}}\n",
		  "place.a", "not on n0", "n0" },
		{ "jobs:\n  - {name: a, tasks: 4}\nexpect:\n  - place: {a: {within: node}}\n",
		  "place.a", "within one node", "n0, n1" },
		{ "jobs:\n  - {name: a, tasks: 4}\nexpect:\n  - place: {a: {nodes: 1}}\n",
		  "place.a", "1 nodes", "n0, n1" },
		{ "jobs:\n  - {name: a, running: [n0]}\n  - {name: b, running: [n0]}\nexpect:\n  - place: {a: {same_gpu: [b]}}\n",
		  "place.a", "on a GPU with b", "n0" },
		{ "jobs:\n  - {name: a, at: 2m}\nexpect:\n  - started: {a: {by: 1m}}\n",
		  "started.a", "by 1m", "2m" },
		{ "jobs:\n  - {name: a, at: 2m}\nexpect:\n  - started: {a: {not_before: 3m}}\n",
		  "started.a", "not before 3m", "2m" },
		{ "jobs:\n  - {name: a, gpus: 3}\nexpect:\n  - started: {a: {by: 1m}}\n",
		  "started.a", "by 1m", "never" },
		{ "jobs:\n  - {name: a, held: true}\nexpect:\n  - reason: {a: capacity}\n",
		  "reason.a", "capacity", "hold" },
		{ "jobs:\n  - {name: a}\nexpect:\n  - reason: {a: capacity}\n", "reason.a",
		  "capacity", "running" },
		{ "jobs:\n  - {name: a}\nexpect:\n  - state: {a: [queued, held]}\n", "state.a",
		  "queued or held", "running" },
		{ "jobs:\n  - {name: a}\nexpect:\n  - total_running_gpus: 4\n",
		  "total_running_gpus", "4", "1" },
		{ "jobs:\n  - {name: a}\nevents:\n  - {drain: n1}\nexpect:\n  - node_state: {n1: ready}\n",
		  "node_state.n1", "ready", "draining" },
		{ "jobs:\n  - {name: a, running: [n0], age: 1h}\nevents:\n  - {at: 0s, node_down: n0}\nexpect:\n  - work_lost: {a: 0s}\n",
		  "work_lost.a", "0s", "1h" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_mismatch(arena_printf(&arena, "%s%s", NODE, cases[i].rest), cases[i].what,
				cases[i].expected, cases[i].actual);
}

static void expectations_hold_at_their_time(void **state)
{
	(void)state;
	assert_holds(
		NODE
		"jobs:\n  - {name: a, at: 1m, runtime: 5m}\nexpect:\n  - at: 59s\n    running: {a: 0}\n"
		"  - at: 1m\n    running: {a: 1}\n  - at: 359999ms\n    running: {a: 1}\n  - at: 6m\n    running: {a: 0}\n"
		"  - finished: [a]\n");
}

static void running_since_an_hour_with_checkpoints_loses_little(void **state)
{
	(void)state;
	assert_holds(
		NODE
		"jobs:\n  - {name: a, running: [n0], age: 55m, checkpoint: {every: 10m}}\nevents:\n"
		"  - {at: 2m, lose_task: a/0}\nexpect:\n  - work_lost: {a: 7m}\n    attempts: {a: 2}\n");
}

static void a_scenario_that_cannot_be_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *rest;
		int line;
		const char *words;
	} cases[] = {
		{ "jobs:\n  - {name: a, gpus: 2, running: [n0]}\n  - {name: b, running: [n0]}\nexpect:\n  - running: {a: 1}\n",
		  7, "can't be running" },
		{ "jobs:\n  - {name: a, running: [n0/7]}\nexpect:\n  - running: {a: 1}\n", 6,
		  "can't be running" },
		{ "jobs:\n  - {name: a, gpus: 3}\nevents:\n  - {at: 1m, finish: a}\nexpect:\n  - running: {a: 1}\n",
		  8, "does not run" },
		{ "jobs:\n  - {name: a, at: 2m}\nevents:\n  - {at: 1m, fail: a}\nexpect:\n  - running: {a: 1}\n",
		  8, "is not there" },
		{ "jobs:\n  - {name: b, depends: [a]}\n  - {name: a, at: 1m}\nexpect:\n  - running: {a: 1}\n",
		  6, "not submitted before it" },
		{ "jobs:\n  - {name: a}\nevents:\n  - {at: 1m, torn_checkpoint: a}\nexpect:\n  - running: {a: 1}\n",
		  8, "no checkpoint" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scenario_result result;
		struct err err = { 0 };

		assert_true(run_text(arena_printf(&arena, "%s%s", NODE, cases[i].rest), &result,
				     NULL, &err) < 0);
		if (!strstr(err.text, cases[i].words))
			fail_msg("\"%s\" is not in \"%s\"", cases[i].words, err.text);
		assert_int_equal(err.line, cases[i].line);
	}
}

static void the_trace_tells_decisions_and_reasons(void **state)
{
	struct scenario_result result;
	struct err err;
	char *trace = NULL;

	(void)state;
	assert_int_equal(
		run_text(
			NODE
			"policy: {grace: 5m}\njobs:\n  - {name: low, tasks: 4, running: {n0: 2, n1: 2}}\n"
			"  - {name: high, priority: 1, at: 1m}\n  - {name: never, gpus: 9}\nexpect:\n  - running: {high: 1}\n",
			&result, &trace, &err),
		0);
	assert_non_null(strstr(trace, "attempt-warned    low, to make room for high, until 6m"));
	assert_non_null(strstr(trace, "promise-made      to high: n"));
	assert_non_null(strstr(trace, "attempt-stopped   low, evicted"));
	assert_non_null(strstr(trace, "waits           never: "));
	free(trace);
}

/* The command, with what it prints; the file is gone afterwards. */
static int command(const char *text, enum report_form form, char **ret_out)
{
	char path[] = "/tmp/scenario-XXXXXX", out_path[] = "/tmp/scenario-out-XXXXXX";
	const char *const paths[] = { path };
	const struct scenario_words words = { .paths = paths, .count = 1, .form = form };
	int file = mkstemp(path), out = mkstemp(out_path), saved = dup(STDOUT_FILENO), status;
	ssize_t size;

	assert_true(file >= 0 && out >= 0 && saved >= 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	status = sim_scenario_main("scenario", &words);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	*ret_out = arena_alloc(&arena, 1 << 20);
	size = pread(out, *ret_out, (1 << 20) - 1, 0);
	assert_true(size >= 0);
	close(file);
	close(out);
	close(saved);
	unlink(path);
	unlink(out_path);
	return status;
}

static void the_exit_status_tells_which(void **state)
{
	char *out;

	(void)state;
	assert_int_equal(command(NODE "jobs:\n  - {name: a}\nexpect:\n  - running: {a: 1}\n",
				 REPORT_TAP, &out),
			 0);
	assert_non_null(strstr(out, "1..1\nok 1 - x\n"));
	assert_int_equal(command(NODE "jobs:\n  - {name: a}\nexpect:\n  - running: {a: 2}\n",
				 REPORT_TAP, &out),
			 1);
	assert_non_null(strstr(out, "not ok 1 - x\n"));
	assert_int_equal(
		command(NODE
			"jobs:\n  - {name: a, kind: interactive}\nexpect:\n  - running: {a: 2}\n",
			REPORT_TAP, &out),
		2);
	assert_non_null(strstr(out, "needs a later release"));
	assert_int_equal(command("- [", REPORT_TAP, &out), 2);
}

static void a_bad_document_does_not_hide_the_others(void **state)
{
	char *out;

	(void)state;
	assert_int_equal(command("name: bad\nexpect: []\n---\n" NODE
				 "expect:\n  - total_running_gpus: 0\n",
				 REPORT_TAP, &out),
			 2);
	assert_non_null(strstr(out, "not ok 1 - bad\n"));
	assert_non_null(strstr(out, "ok 2 - x\n"));
}

static void json_has_both_sides(void **state)
{
	char *out;

	(void)state;
	assert_int_equal(command(NODE "jobs:\n  - {name: a}\nexpect:\n  - running: {a: 2}\n",
				 REPORT_JSON, &out),
			 1);
	assert_non_null(strstr(out, "\"what\":\"running.a\",\"expected\":\"2\",\"actual\":\"1\""));
	assert_non_null(strstr(out, "\"passed\":0,\"failed\":1,\"refused\":0}"));
}

static void a_name_cannot_forge_a_result(void **state)
{
	char *out;

	(void)state;
	assert_int_equal(command("name: \"x\\nok 2 # SKIP\"\nexpect:\n  - total_running_gpus: 1\n",
				 REPORT_TAP, &out),
			 1);
	assert_null(strstr(out, "\nok 2"));
	assert_null(strstr(out, "# SKIP"));
}

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 1 << 30);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_deinit(&arena);
	return 0;
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(each_expectation_that_does_not_hold_is_a_mismatch),
		TEST(expectations_hold_at_their_time),
		TEST(running_since_an_hour_with_checkpoints_loses_little),
		TEST(a_scenario_that_cannot_be_is_refused_with_its_line),
		TEST(the_trace_tells_decisions_and_reasons),
		TEST(the_exit_status_tells_which),
		TEST(a_bad_document_does_not_hide_the_others),
		TEST(json_has_both_sides),
		TEST(a_name_cannot_forge_a_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
