/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/model/facts.h"
#include "sim/scenario.h"

static struct arena arena;

/* Reads the only document of the text; its "expect" is added unless the text has one. */
static int read_text(const char *text, struct scenario *ret, struct err *err)
{
	struct conf **documents;
	size_t count;
	int rc;

	if (!strstr(text, "expect:"))
		text = arena_printf(&arena, "%s\nexpect:\n  - total_running_gpus: 0\n", text);
	rc = conf_parse("t.yaml", text, strlen(text), &arena, &documents, &count, err);
	if (rc == 0)
		assert_int_equal(count, 1);
	return rc == 0 ? scenario_read("t.yaml", documents[0], false, &arena, ret, err) : rc;
}

static struct scenario read_good(const char *text)
{
	struct scenario s;
	struct err err = { 0 };

	if (read_text(text, &s, &err) < 0)
		fail_msg("refused: line %d: %s", err.line, err.text);
	return s;
}

/* The text is refused at that place, with these words. */
static void assert_refused(const char *text, int line, int column, const char *words)
{
	struct scenario s;
	struct err err = { 0 };

	assert_true(read_text(text, &s, &err) < 0);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
	assert_string_equal(err.file, "t.yaml");
	if (err.line != line || err.column != column)
		fail_msg("at %d:%d instead of %d:%d: %s", err.line, err.column, line, column,
			 err.text);
}

static void what_is_not_said_has_its_default(void **state)
{
	struct scenario s = read_good(
		"name: x\njobs:\n  - {name: a}\ncluster:\n  nodes:\n    - {name: n0, gpus: 2}\n");

	(void)state;
	assert_string_equal(s.about, "");
	assert_int_equal(s.queue_count, 1);
	assert_string_equal(s.queues[0].name, "default");
	assert_int_equal(s.queues[0].limit_share, -1);
	assert_int_equal(s.queues[0].weight, 1);
	assert_int_equal(s.policy.min_runtime_ms, 0);
	assert_int_equal(s.policy.rejoin_ms, 0);
	assert_true(s.policy.packing);
	assert_int_equal(s.nodes[0].gpu_memory_mib, 81920);
	assert_int_equal(s.jobs[0].tier, TIER_STANDARD);
	assert_int_equal(s.jobs[0].kind, KIND_BATCH);
	assert_int_equal(s.jobs[0].tasks_min, 1);
	assert_int_equal(s.jobs[0].tasks_max, 1);
	assert_int_equal(s.jobs[0].gpus, 1);
	assert_int_equal(s.jobs[0].runtime_ms, SCENARIO_FOREVER);
	assert_int_equal(s.jobs[0].grace_ms, -1);
	assert_true(s.jobs[0].preempts);
	assert_false(s.jobs[0].checkpoints);
	assert_int_equal(s.expects[0].at_ms, SCENARIO_FOREVER);
}

static void ranges_of_a_node_expand_side_by_side(void **state)
{
	struct scenario s = read_good(
		"name: x\ncluster:\n  levels: [zone, rack]\n  nodes:\n"
		"    - {name: \"n[0-2]\", gpus: 4, zone: z, rack: \"r[5-7]\", model: H100-80GB}\n");

	(void)state;
	assert_int_equal(s.node_count, 3);
	assert_string_equal(s.levels, "zone,rack");
	assert_string_equal(s.nodes[2].name, "n2");
	assert_string_equal(s.nodes[2].domains, "z,r7");
	assert_string_equal(s.nodes[0].domains, "z,r5");
}

static void the_memory_of_a_gpu_comes_from_its_model(void **state)
{
	struct scenario s = read_good(
		"name: x\ncluster:\n  nodes:\n    - {name: a, model: A100-40GB}\n    - {name: b, model: L4}\n"
		"    - {name: c, model: L4, memory: 20GiB}\n    - {name: d, model: Strange}\n");

	(void)state;
	assert_int_equal(s.nodes[0].gpu_memory_mib, 40960);
	assert_int_equal(s.nodes[1].gpu_memory_mib, 24576);
	assert_int_equal(s.nodes[2].gpu_memory_mib, 20480);
	assert_int_equal(s.nodes[3].gpu_memory_mib, 81920);
}

static void running_places_go_side_by_side_with_the_jobs(void **state)
{
	struct scenario s =
		read_good("name: x\ncluster:\n  nodes:\n    - {name: \"n[0-3]\", gpus: 4}\njobs:\n"
			  "  - {name: \"a[0-1]\", tasks: 2, running: [\"n[0-1]\", n3]}\n"
			  "  - {name: b, tasks: 3, running: [\"n[0-2]\"]}\n"
			  "  - {name: c, tasks: 3, running: {n0: 2, n1: 1}}\n"
			  "  - {name: d, running: [n2/3], age: 1h}\n");

	(void)state;
	assert_int_equal(s.job_count, 5);
	assert_int_equal(s.jobs[1].running_count, 2);
	assert_string_equal(s.jobs[1].running[0].node, "n1");
	assert_string_equal(s.jobs[1].running[1].node, "n3");
	assert_int_equal(s.jobs[2].running_count, 3);
	assert_string_equal(s.jobs[2].running[2].node, "n2");
	assert_string_equal(s.jobs[3].running[1].node, "n0");
	assert_int_equal(s.jobs[3].running[0].gpu, -1);
	assert_int_equal(s.jobs[4].running[0].gpu, 3);
	assert_int_equal(s.jobs[4].age_ms, 3600000);
}

static void shares_are_exact(void **state)
{
	struct scenario s = read_good(
		"name: x\nqueues:\n  - {name: a, guarantee: 0.3, limit: 4}\n  - {name: b, limit: none}\n"
		"  - {name: c, guarantee: 2.125}\n");

	(void)state;
	assert_int_equal(s.queues[0].guarantee_share, 18900);
	assert_int_equal(s.queues[0].limit_share, 4 * 63000);
	assert_int_equal(s.queues[1].limit_share, -1);
	assert_int_equal(s.queues[2].guarantee_share, 2 * 63000 + 7875);
}

static void expectations_expand_names_and_keep_their_label(void **state)
{
	struct scenario s = read_good(
		"name: x\njobs:\n  - {name: \"u[0-2]\"}\nexpect:\n  - at: 5m\n    running: {\"u[0-2]\": 2}\n"
		"    evicted: 1\n  - waiting: [\"u[1-2]\"]\n    evicted: [u0]\n"
		"    started: {u0: {not_before: 1m, by: 2m}}\n    reason: {u1: [capacity, quota_limit]}\n");
	const struct expect_item *items = s.expects[0].items;

	(void)state;
	assert_int_equal(s.expects[0].at_ms, 300000);
	assert_int_equal(items[0].key, EXPECT_RUNNING);
	assert_string_equal(items[0].label, "u[0-2]");
	assert_int_equal(items[0].name_count, 3);
	assert_int_equal(items[0].number, 2);
	assert_true(items[1].counted);
	items = s.expects[1].items;
	assert_int_equal(items[0].name_count, 2);
	assert_false(items[1].counted);
	assert_int_equal(items[2].not_before_ms, 60000);
	assert_int_equal(items[2].by_ms, 120000);
	assert_int_equal(items[3].text_count, 2);
}

static void bad_input_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text;
		int line, column;
		const char *words;
	} cases[] = {
		{ "nam: x\n", 1, 1, "did you mean \"name\"" },
		{ "about: x\n", 1, 1, "needs a name" },
		{ "name: x\nexpect: []\n", 2, 9, "expect is empty" },
		{ "name: x\nexpect:\n  - at: 5m\n", 3, 5, "expects nothing" },
		{ "name: x\ncluster:\n  nodes:\n    - {gpus: 2}\n", 4, 7, "a node needs a name" },
		{ "name: x\ncluster:\n  nodes:\n    - {name: n0, gpsu: 2}\n", 4, 18,
		  "did you mean \"gpus\"" },
		{ "name: x\ncluster:\n  nodes:\n    - {name: n0, gpus: 33}\n", 4, 24, "32" },
		{ "name: x\ncluster:\n  nodes:\n    - {name: n0}\n    - {name: \"n[0-3]\"}\n", 4, 5,
		  "two nodes are named \"n0\"" },
		{ "name: x\ncluster:\n  levels: [rack]\n  nodes:\n    - {name: \"n[0-3]\", rack: \"r[0-1]\"}\n",
		  5, 30, "2 names for 4 nodes" },
		{ "name: x\njobs:\n  - {queue: a}\n", 3, 5, "a job needs a name" },
		{ "name: x\njobs:\n  - {name: a, queue: deflaut}\n", 3, 22,
		  "did you mean \"default\"" },
		{ "name: x\njobs:\n  - {name: a}\n  - {name: a}\n", 3, 3,
		  "two jobs are named \"a\"" },
		{ "name: x\njobs:\n  - {name: a, tier: standart}\n", 3, 21,
		  "did you mean \"standard\"" },
		{ "name: x\njobs:\n  - {name: a, tasks: {min: 3, max: 2}}\n", 3, 22,
		  "max 2 is less than min 3" },
		{ "name: x\njobs:\n  - {name: a, gpus: -1}\n", 3, 21, "gpus" },
		{ "name: x\njobs:\n  - {name: a, runtime: 5}\n", 3, 24, "lacks a unit" },
		{ "name: x\njobs:\n  - {name: a, age: 5m}\n", 3, 5,
		  "has an age but is not running" },
		{ "name: x\njobs:\n  - {name: a, depends: [b]}\n", 3, 3, "there is no job \"b\"" },
		{ "name: x\njobs:\n  - {name: a, topology: {require: rak}}\n", 3, 35,
		  "there is no topology level \"rak\"" },
		{ "name: x\ncluster:\n  nodes:\n    - {name: n0}\njobs:\n  - {name: a, running: [n1]}\n",
		  6, 25, "there is no node \"n1\"" },
		{ "name: x\ncluster:\n  nodes:\n    - {name: n0}\njobs:\n  - {name: a, tasks: 2, running: [n0]}\n",
		  6, 34, "places 1 tasks" },
		{ "name: x\nqueues:\n  - {name: a, parent: b}\n", 3, 5, "parent \"b\"" },
		{ "name: x\nqueues:\n  - {name: a, limit: 1.2345}\n", 3, 22, "three decimals" },
		{ "name: x\nevents:\n  - {at: 5m}\n", 3, 5, "not what happens" },
		{ "name: x\nevents:\n  - {at: 5m, explode: n0}\n", 3, 14, "explode" },
		{ "name: x\ncluster:\n  nodes:\n    - {name: n0}\nevents:\n  - {node_up: n0, drain: n0}\n",
		  6, 5, "write two events" },
		{ "name: x\njobs:\n  - {name: a}\nevents:\n  - {lose_task: a}\n", 5, 17,
		  "a job and a rank" },
		{ "name: x\njobs:\n  - {name: job0}\nexpect:\n  - running: {job1: 1}\n", 5, 21,
		  "did you mean \"job0\"" },
		{ "name: x\njobs:\n  - {name: a}\nexpect:\n  - reason: {a: capacitiy}\n", 5, 17,
		  "did you mean \"capacity\"" },
		{ "name: x\njobs:\n  - {name: a}\nexpect:\n  - {at: 5m, waiting: [a]}\n  - {at: 4m, waiting: [a]}\n",
		  6, 5, "earlier" },
		{ "name: x\njobs:\n  - {name: a}\nexpect:\n  - place: {a: {on: n0}}\n", 5, 17,
		  "\"on\"" },
		{ "name: x\njobs:\n  - {name: a}\nexpect:\n  - state: {a: runing}\n", 5, 16,
		  "did you mean \"running\"" },
		{ "name: x\ncluster:\n  nodes:\n    - {name: a, class: inferense}\n", 4, 24,
		  "did you mean \"inference\"" },
		{ "name: x\ncluster:\n  nodes:\n    - {name: a, labels: [b]}\n", 4, 25,
		  "must be a map" },
		{ "name: x\ncluster:\n  nodes:\n    - {name: a, taints: [b, \"c,d\"]}\n", 4, 29,
		  "a name is expected" },
		{ "name: x\njobs:\n  - {name: a, min_capability: \"9.01\"}\n", 3, 31,
		  "must be a compute capability" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_refused(cases[i].text, cases[i].line, cases[i].column, cases[i].words);
}

static void keys_of_later_releases_are_refused_by_name(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "jobs:\n  - {name: a, kind: interactive}\n", "key `kind`" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scenario s;
		struct err err = { 0 };

		assert_true(read_text(arena_printf(&arena, "name: x\n%s", cases[i].text), &s,
				      &err) < 0);
		assert_int_equal(err.code, ERR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "needs a later release"));
		if (!strstr(err.text, cases[i].words))
			fail_msg("\"%s\" is not in \"%s\"", cases[i].words, err.text);
		assert_true(err.line >= 2 && err.column > 1);
	}
}

static void values_that_change_nothing_are_taken(void **state)
{
	struct scenario s = read_good(
		"name: x\npolicy: {half_life: off, collect_after: off}\n"
		"queues:\n  - {name: default, used: 0}\ncluster:\n  nodes:\n    - {name: n0, class: any}\n");

	(void)state;
	assert_int_equal(s.policy.half_life_ms, 0);
}

/* Every value that is not named; what is named holds, before the word or behind it. */
static void defaults_are_those_of_the_daemon_where_that_is_asked_for(void **state)
{
	struct scenario s =
		read_good("name: x\npolicy: {min_runtime: 3m, defaults: daemon, patience: 2}\n"
			  "cluster:\n  nodes:\n    - {name: n0}\n");

	(void)state;
	assert_int_equal(s.policy.min_runtime_ms, 180000);
	assert_int_equal(s.policy.patience, 2);
	assert_int_equal(s.policy.grace_ms, -1); /* -1 = the core's own */
	assert_int_equal(s.policy.rejoin_ms, -1);
	assert_int_equal(s.policy.collect_after_ms, -1);
	assert_int_equal(s.policy.half_life_ms, -1);
	assert_int_equal(s.policy.take_turns, -1);
	assert_int_equal(s.policy.reserve_unsure_ms, -1);
	s = read_good("name: x\npolicy: {defaults: scenario}\n"
		      "cluster:\n  nodes:\n    - {name: n0}\n");
	assert_int_equal(s.policy.grace_ms, 0);
}

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 1 << 28);
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
		TEST(what_is_not_said_has_its_default),
		TEST(ranges_of_a_node_expand_side_by_side),
		TEST(the_memory_of_a_gpu_comes_from_its_model),
		TEST(running_places_go_side_by_side_with_the_jobs),
		TEST(shares_are_exact),
		TEST(expectations_expand_names_and_keep_their_label),
		TEST(bad_input_is_refused_with_its_place),
		TEST(keys_of_later_releases_are_refused_by_name),
		TEST(values_that_change_nothing_are_taken),
		TEST(defaults_are_those_of_the_daemon_where_that_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
