/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/reserve/estimate.h"

#include "core/scheduling/testing.h"
#include "core/scheduling/view/view.h"

enum { MINUTE = 60000 };

/* A job of this name runs for so many minutes and ends. */
static void ran(struct world *w, const char *name, const char *user, int64_t minutes)
{
	uint32_t job = world_submit(w, (struct wish){ .name = name, .user = user, .gpus = 1 });

	world_run(w);
	world_at(w, w->now_ms + minutes * MINUTE);
	world_exit(w, job, 0);
	world_run(w);
	assert_int_equal(world_state(w, job), JOB_SUCCEEDED);
}

static int64_t rest(struct world *w, uint32_t job, int64_t age_minutes, uint32_t per_mille)
{
	return estimate_rest_ms(&w->facts, &w->facts, job_get(&w->facts, (struct job_id){ job }),
				age_minutes * MINUTE, per_mille);
}

/* The worked example of estimate.h. */
static void test_run_times_of_like_jobs_are_spread(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:8");
	for (int i = 1; i <= 5; i++)
		ran(&w, "train-7", "vera", 10 * i);
	job = world_submit(&w, (struct wish){ .name = "train-12", .user = "vera", .gpus = 1 });
	assert_int_equal(rest(&w, job, 0, 500), 30 * MINUTE);
	assert_int_equal(rest(&w, job, 0, 900), 50 * MINUTE);
	assert_int_equal(rest(&w, job, 0, 250), 15 * MINUTE);
	assert_int_equal(rest(&w, job, 0, 1), 10 * MINUTE);
	/* Those that ran no longer than it has say nothing: of 30, 40, 50 the middle one. */
	assert_int_equal(rest(&w, job, 25, 500), 15 * MINUTE);
	/* It is older than all. */
	assert_int_equal(rest(&w, job, 60, 500), 60 * MINUTE);
	world_deinit(&w);
}

static void test_what_is_expected_without_a_word_is_what_nine_of_ten_ran(void **state)
{
	struct world w;
	uint32_t silent, said;

	(void)state;
	world_init(&w, "n0:8");
	for (int i = 1; i <= 5; i++)
		ran(&w, "train", "vera", 10 * i);
	silent = world_submit(&w, (struct wish){ .name = "train", .user = "vera", .gpus = 1 });
	said = world_submit(
		&w, (struct wish){
			    .name = "train", .user = "vera", .gpus = 1, .limit_ms = 100 * MINUTE });
	world_run(&w);
	assert_int_equal(job_expected_ms(&w.facts, job_get(&w.facts, (struct job_id){ silent })),
			 50 * MINUTE);
	assert_int_equal(job_expected_ms(&w.facts, job_get(&w.facts, (struct job_id){ said })),
			 100 * MINUTE);
	world_deinit(&w);
}

static void test_a_limit_cuts_what_like_jobs_say(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:8");
	for (int i = 1; i <= 5; i++)
		ran(&w, "train", "vera", 10 * i);
	job = world_submit(
		&w, (struct wish){
			    .name = "train", .user = "vera", .gpus = 1, .limit_ms = 20 * MINUTE });
	assert_int_equal(rest(&w, job, 0, 500), 20 * MINUTE);
	assert_int_equal(rest(&w, job, 0, 1), 10 * MINUTE);
	assert_int_equal(rest(&w, job, 15, 900), 5 * MINUTE);
	world_deinit(&w);
}

static void test_nothing_known_is_an_even_spread_to_what_is_declared(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:8");
	job = world_submit(&w, (struct wish){ .gpus = 1, .limit_ms = 100 * MINUTE });
	assert_int_equal(rest(&w, job, 0, 500), 50 * MINUTE);
	assert_int_equal(rest(&w, job, 40, 500), 30 * MINUTE);
	assert_int_equal(rest(&w, job, 0, 900), 90 * MINUTE);
	world_deinit(&w);
}

static void test_other_people_say_something_only_when_nobody_closer_does(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:8");
	for (int i = 0; i < 5; i++)
		ran(&w, "a", "otto", 10);
	job = world_submit(&w, (struct wish){ .name = "b", .user = "vera", .gpus = 1 });
	assert_int_equal(rest(&w, job, 0, 500), 10 * MINUTE);
	for (int i = 0; i < 5; i++)
		ran(&w, "c", "vera", 20);
	assert_int_equal(rest(&w, job, 0, 500), 20 * MINUTE);
	for (int i = 0; i < 5; i++)
		ran(&w, "b", "vera", 30);
	assert_int_equal(rest(&w, job, 0, 500), 30 * MINUTE);
	world_deinit(&w);
}

static void test_the_forecast_is_judged_when_the_attempt_ends(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	for (int i = 1; i <= 5; i++)
		ran(&w, "train", "vera", 10 * i);
	assert_int_equal(w.facts.forecast.count, 0); /* nothing was known of these */
	ran(&w, "train", "vera", 40); /* 30 and 50 were said */
	assert_int_equal(w.facts.forecast.count, 1);
	assert_int_equal(w.facts.forecast.under_likely, 0);
	assert_int_equal(w.facts.forecast.under_safe, 1);
	assert_int_equal(w.facts.forecast.likely_loss_ms, 5 * MINUTE);
	assert_int_equal(w.facts.forecast.safe_loss_ms, 1 * MINUTE);
	world_deinit(&w);
}

static void test_the_memory_is_bounded_and_forgets_what_learned_nothing_for_longest(void **state)
{
	struct facts facts;
	struct like_wish wish = { "vera", "train", "default", 1 };
	struct like_runs runs;
	char user[32];

	(void)state;
	facts_init(&facts);
	for (int i = 0; i < LIKE_LEAST; i++)
		likes_learn(&facts, &wish, 1000);
	for (int i = 0; i < 3 * LIKE_SETS * LIKE_WAYS; i++) {
		struct like_wish other = { user, "x", "default", 1 };

		facts.seq++;
		snprintf(user, sizeof(user), "user%d", i);
		likes_learn(&facts, &other, 5000);
	}
	assert_int_equal(facts.likes.count, LIKE_SETS * LIKE_WAYS);
	likes_find(&facts, &wish, &runs);
	assert_int_equal(runs.level, LIKE_QUEUE); /* what is common to many stays */
	assert_int_equal(runs.ms[0], 5000);
	facts_deinit(&facts);
}

static void test_names_that_are_numbers_make_nothing_alike(void **state)
{
	struct like_wish wide = { "vera", "17", "default", 8 },
			 narrow = { "vera", "4711", "default", 1 };
	struct facts facts;
	struct like_runs runs;

	(void)state;
	facts_init(&facts);
	for (int i = 0; i < LIKE_LEAST; i++) {
		likes_learn(&facts, &wide, 9000);
		likes_learn(&facts, &narrow, 100);
	}
	likes_find(&facts, &wide, &runs);
	assert_int_equal(runs.level, LIKE_USER);
	assert_int_equal(runs.ms[0], 9000);
	wide.name = narrow.name = "run-17";
	for (int i = 0; i < LIKE_LEAST; i++)
		likes_learn(&facts, &narrow, 100);
	likes_find(&facts, &wide, &runs);
	assert_int_equal(runs.level, LIKE_NAME);
	facts_deinit(&facts);
}

/* Job `id` of that program ran so long and ended so. */
static void ran_and_ended(struct world *w, int64_t program, enum job_state end, int64_t run_ms)
{
	struct event e = world_event(w, EVENT_JOB_SUBMITTED);
	uint32_t id = w->facts.jobs.count + 1;

	e.job_submitted.job = id;
	e.job_submitted.name = "train";
	e.job_submitted.user = "vera";
	e.job_submitted.queue = "default";
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = e.job_submitted.gpus = 1;
	e.job_submitted.grace_ms = 60000;
	e.job_submitted.program = program;
	world_apply(w, &e);
	world_run(w);
	world_at(w, w->now_ms + run_ms);
	if (end == JOB_CANCELLED)
		world_cancel(w, id);
	else
		world_exit(w, id, end == JOB_FAILED);
	world_run(w);
	assert_int_equal(world_state(w, id), end);
}

static uint32_t runs_known(const struct world *w, int64_t program)
{
	const struct like_wish wish = { "vera", "train", "default", 1, program };
	struct like_runs runs;

	likes_find(&w->facts, &wish, &runs);
	return runs.count;
}

static void jobs_are_alike_only_where_they_run_the_same(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:1");
	for (int i = 0; i < LIKE_LEAST; i++) {
		ran_and_ended(&w, 7, JOB_SUCCEEDED, 2000);
		ran_and_ended(&w, 9, JOB_FAILED, 2000); /* within its grace */
		ran_and_ended(&w, 9, JOB_CANCELLED, 2000);
		ran_and_ended(&w, 11, JOB_CANCELLED, 90000);
	}
	assert_int_equal(runs_known(&w, 7), LIKE_LEAST);
	assert_int_equal(runs_known(&w, 8), 0);
	assert_int_equal(runs_known(&w, 9), 0);
	assert_int_equal(runs_known(&w, 11), LIKE_LEAST);
	assert_int_equal(runs_known(&w, 0), 0);
	/* Those of older records learn as they did. */
	for (int i = 0; i < LIKE_LEAST; i++)
		ran_and_ended(&w, 0, JOB_CANCELLED, 2000);
	assert_int_equal(runs_known(&w, 0), LIKE_LEAST);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_are_alike_only_where_they_run_the_same),
		cmocka_unit_test(test_run_times_of_like_jobs_are_spread),
		cmocka_unit_test(test_what_is_expected_without_a_word_is_what_nine_of_ten_ran),
		cmocka_unit_test(test_a_limit_cuts_what_like_jobs_say),
		cmocka_unit_test(test_nothing_known_is_an_even_spread_to_what_is_declared),
		cmocka_unit_test(test_other_people_say_something_only_when_nobody_closer_does),
		cmocka_unit_test(test_the_forecast_is_judged_when_the_attempt_ends),
		cmocka_unit_test(
			test_the_memory_is_bounded_and_forgets_what_learned_nothing_for_longest),
		cmocka_unit_test(test_names_that_are_numbers_make_nothing_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
