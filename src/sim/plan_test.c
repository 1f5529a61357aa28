/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/plan.h"

#include "core/scheduling/testing.h"

enum { SECOND = 1000, MINUTE = 60000 };
/* Of five one in six outlives 50 min, with odds that halve as the age doubles; 0.079 is what the 18th of 19 cells leaves. */
#define SAFE_MS (INT64_C(50) * MINUTE * 1000 / 6 / 79)

static void ran(struct world *w, const char *name, int64_t minutes)
{
	uint32_t job = world_submit(w, (struct wish){ .name = name, .gpus = 1 });

	world_run(w);
	world_at(w, w->now_ms + minutes * MINUTE);
	world_exit(w, job, 0);
	world_run(w);
}

/* The worked example of plan.c: one GPU, like jobs took 10 to 50 min, one runs and others wait. */
static uint32_t example(struct world *w, uint32_t waiting)
{
	uint32_t first = 0;

	world_init(w, "n0:1");
	for (int i = 1; i <= 5; i++)
		ran(w, "train", 10 * i);
	world_submit(w, (struct wish){ .name = "train", .gpus = 1 });
	world_run(w);
	for (uint32_t i = 0; i < waiting; i++) {
		uint32_t job = world_submit(w, (struct wish){ .name = "train", .gpus = 1 });

		first = first ? first : job;
	}
	world_run(w);
	return first;
}

static void test_a_start_is_told_with_even_odds_and_nine_of_ten(void **state)
{
	const struct plan_limits limits = { 0 };
	struct plan_answer a;
	struct plan plan;
	struct world w;
	uint32_t job;

	(void)state;
	job = example(&w, 1);
	plan_make(&w.facts, w.now_ms, &limits, &plan);
	assert_int_equal(plan.seq, w.facts.seq);
	assert_int_equal(plan.runs, PLAN_RUNS);
	assert_int_equal(plan.until_ms, PLAY_NEVER);
	assert_true(plan_ask(&plan, job, &a));
	assert_int_equal(a.start_ms, w.now_ms + 30 * MINUTE);
	assert_in_range(a.start_by_ms - w.now_ms, SAFE_MS - SECOND, SAFE_MS + SECOND);
	assert_true(a.end_ms > a.start_ms && a.end_by_ms > a.start_by_ms);
	assert_int_equal(a.node, 1);
	assert_int_equal(a.node_cases, PLAN_RUNS);
	plan_deinit(&plan);
	world_deinit(&w);
}

static void test_one_plan_serves_the_whole_queue_and_changes_nothing(void **state)
{
	const struct plan_limits limits = { 0 };
	struct plan_answer a, before = { 0 };
	struct plan plan, again;
	struct world w;
	uint32_t first;
	uint64_t hash;

	(void)state;
	first = example(&w, 10);
	hash = facts_hash(&w.facts);
	plan_make(&w.facts, w.now_ms, &limits, &plan);
	plan_make(&w.facts, w.now_ms, &limits, &again);
	assert_int_equal(facts_hash(&w.facts), hash);
	assert_int_equal(plan.count, 10);
	for (uint32_t i = 0; i < 10; i++) {
		struct plan_answer same;

		assert_true(plan_ask(&plan, first + i, &a));
		assert_true(plan_ask(&again, first + i, &same));
		assert_memory_equal(&a, &same, sizeof(a));
		assert_true(a.start_ms > before.start_ms);
		before = a;
	}
	plan_deinit(&plan);
	plan_deinit(&again);
	world_deinit(&w);
}

/* Ten of one campaign one after the other: each run of the plan has them all short or all long. */
static void test_jobs_of_one_campaign_are_long_together(void **state)
{
	const struct plan_limits limits = { 0 };
	struct plan_answer a;
	struct plan plan;
	struct world w;
	uint32_t first;

	(void)state;
	first = example(&w, 10);
	plan_make(&w.facts, w.now_ms, &limits, &plan);
	assert_true(plan_ask(&plan, first + 9, &a));
	assert_int_equal(a.start_ms, w.now_ms + 10 * 30 * MINUTE);
	assert_in_range(a.start_by_ms - w.now_ms, 10 * (SAFE_MS - SECOND), 10 * (SAFE_MS + SECOND));
	plan_deinit(&plan);
	world_deinit(&w);
}

static void test_what_is_cut_is_said(void **state)
{
	const struct plan_limits limits = { .starts_max = 3 };
	struct plan_answer a;
	struct plan plan;
	struct world w;
	uint32_t first;

	(void)state;
	first = example(&w, 10);
	plan_make(&w.facts, w.now_ms, &limits, &plan);
	assert_true(plan_ask(&plan, first + 2, &a));
	assert_false(plan_ask(&plan, first + 3, &a));
	assert_int_equal(a.start_ms, PLAY_NEVER);
	assert_true(plan.until_ms > w.now_ms && plan.until_ms < PLAY_NEVER);
	plan_deinit(&plan);
	world_deinit(&w);
}

static void test_what_can_never_start_is_in_no_run(void **state)
{
	const struct plan_limits limits = { 0 };
	struct plan_answer a;
	struct plan plan;
	struct world w;
	uint32_t wide;

	(void)state;
	example(&w, 1);
	wide = world_submit(&w, (struct wish){ .gpus = 2 });
	plan_make(&w.facts, w.now_ms, &limits, &plan);
	assert_false(plan_ask(&plan, wide, &a));
	assert_int_equal(plan.until_ms, PLAY_NEVER);
	plan_deinit(&plan);
	world_deinit(&w);
}

/* A job of higher priority came every two hours and will again: one runs, the next comes at once and goes before it. */
static void test_jobs_come_as_they_came_the_day_before(void **state)
{
	const struct plan_limits limits = { 0 };
	struct plan_answer a;
	struct plan plan;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1");
	for (int hour = 0; hour < 26; hour += 2) {
		uint32_t id = world_submit(
			&w, (struct wish){ .name = "train", .gpus = 1, .priority = 10 });

		world_run(&w);
		world_at(&w, w.now_ms + 30 * MINUTE);
		world_exit(&w, id, 0);
		world_run(&w);
		world_at(&w, w.now_ms + 90 * MINUTE);
	}
	world_submit(&w, (struct wish){ .name = "train", .gpus = 1, .priority = 10 });
	job = world_submit(&w, (struct wish){ .name = "train", .gpus = 1 });
	world_run(&w);
	plan_make(&w.facts, w.now_ms, &limits, &plan);
	assert_true(plan_ask(&plan, job, &a));
	assert_int_equal(a.start_ms, w.now_ms + 60 * MINUTE);
	assert_int_equal(a.end_ms, w.now_ms + 90 * MINUTE);
	plan_deinit(&plan);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_start_is_told_with_even_odds_and_nine_of_ten),
		cmocka_unit_test(test_one_plan_serves_the_whole_queue_and_changes_nothing),
		cmocka_unit_test(test_jobs_of_one_campaign_are_long_together),
		cmocka_unit_test(test_what_is_cut_is_said),
		cmocka_unit_test(test_what_can_never_start_is_in_no_run),
		cmocka_unit_test(test_jobs_come_as_they_came_the_day_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
