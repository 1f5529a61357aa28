/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is lost as soon as it has started is tried again after ever longer pauses. */
#include <string.h>

#include "core/scheduling/life/pause.h"
#include "core/scheduling/testing.h"

#define MINUTE INT64_C(60000)

/* The job is started, runs for so long, and is lost with its machine. */
static void lose(struct world *w, uint32_t job, int64_t after_ms)
{
	world_run(w);
	assert_int_equal(world_running(w, job), 1);
	world_at(w, w->now_ms + after_ms);
	world_exit_rank(w, job, 0, CAUSE_LOST, 0);
	world_run(w);
}

static bool runs(struct world *w, uint32_t job)
{
	world_run(w);
	return world_running(w, job) > 0;
}

static void the_pause_doubles_from_the_second_short_loss_on(void **state)
{
	(void)state;
	assert_int_equal(pause_after_ms(0), 0);
	assert_int_equal(pause_after_ms(1), 0);
	assert_int_equal(pause_after_ms(2), 1000);
	assert_int_equal(pause_after_ms(3), 2000);
	assert_int_equal(pause_after_ms(10), 256000);
	assert_int_equal(pause_after_ms(11), PAUSE_MOST_MS);
	assert_int_equal(pause_after_ms(UINT32_MAX), PAUSE_MOST_MS);
	assert_int_equal(pause_after_ms(PAUSE_COUNT_MAX), PAUSE_MOST_MS);
}

static void what_is_lost_at_once_again_and_again_waits_longer_each_time(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1");
	job = world_submit(&w, (struct wish){ .name = "job" });
	lose(&w, job, 0);
	assert_true(runs(&w, job)); /* once is chance */
	for (int64_t pause_ms = 1000; pause_ms <= 64000; pause_ms *= 2) {
		lose(&w, job, 0);
		assert_false(runs(&w, job));
		/* Another node, if there were one, would be tried sooner than its long pauses are over. */
		assert_int_equal(w.wake_ms, w.now_ms + (pause_ms < PAUSE_ELSEWHERE_MOST_MS
								? pause_ms
								: PAUSE_ELSEWHERE_MOST_MS));
		world_at(&w, w.now_ms + pause_ms - 1);
		assert_false(runs(&w, job));
		world_at(&w, w.now_ms + 1);
		assert_true(runs(&w, job));
	}
	view_verify(w.view, &w.facts);
	world_deinit(&w);
}

static void a_job_that_waits_for_ever_is_started_no_more_often_than_each_five_minutes(void **state)
{
	uint32_t starts = 0;
	struct world w;
	uint32_t job;
	int64_t end_ms;

	(void)state;
	world_init(&w, "n0:1");
	job = world_submit(&w, (struct wish){ .name = "job" });
	end_ms = w.now_ms + 24 * 60 * MINUTE;
	while (w.now_ms < end_ms) {
		world_run(&w);
		if (!world_running(&w, job)) {
			world_at(&w, w.wake_ms);
			continue;
		}
		starts++;
		world_exit_rank(&w, job, 0, CAUSE_LOST, 0);
	}
	assert_true(starts < 24 * 12 + 12);
	assert_true(starts > 24 * 12 - 12);
	world_deinit(&w);
}

static void an_attempt_that_lived_long_begins_the_count_anew(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1");
	job = world_submit(&w, (struct wish){ .name = "job" });
	lose(&w, job, 0);
	lose(&w, job, 0);
	world_at(&w, w.now_ms + 1000);
	lose(&w, job, MINUTE);
	assert_true(runs(&w, job));
	lose(&w, job, 0);
	assert_true(runs(&w, job));
	world_deinit(&w);
}

static void the_paused_job_leaves_its_place_to_others_and_owes_nobody_anything(void **state)
{
	struct world w;
	uint32_t job, other;

	(void)state;
	world_init(&w, "n0:1");
	job = world_submit(&w, (struct wish){ .name = "job" });
	lose(&w, job, 0);
	lose(&w, job, 0);
	other = world_submit(&w, (struct wish){ .name = "other" });
	assert_true(runs(&w, other));
	world_at(&w, w.now_ms + 1000);
	assert_false(runs(&w, job));
	world_exit(&w, other, 0);
	assert_true(runs(&w, job));
	world_deinit(&w);
}

static void who_was_never_lost_does_not_wait_with_one_that_is_like_him(void **state)
{
	struct world w;
	uint32_t job, like;

	(void)state;
	world_init(&w, "n0:1 n1:1");
	job = world_submit(&w, (struct wish){ .name = "job" });
	lose(&w, job, 0);
	lose(&w, job, 0);
	like = world_submit(&w, (struct wish){ .name = "job" });
	assert_true(runs(&w, like));
	assert_int_equal(world_running(&w, job), 0);
	world_deinit(&w);
}

static void a_disk_that_is_full_costs_no_retry_and_is_not_tried_without_end(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1");
	job = world_submit(&w, (struct wish){ .name = "job" });
	for (int i = 0; i < 2; i++) {
		world_decide(&w);
		world_exit_rank(&w, job, 0, CAUSE_NO_SPACE, 0);
		world_run(&w);
	}
	assert_int_equal(world_running(&w, job), 0);
	assert_int_equal(w.wake_ms, w.now_ms + 1000);
	world_deinit(&w);
}

static void a_policy_with_a_longer_window_calls_longer_lives_short(void **state)
{
	struct event policy;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1");
	job = world_submit(&w, (struct wish){ .name = "job" });
	lose(&w, job, 2 * MINUTE);
	lose(&w, job, 2 * MINUTE);
	assert_true(runs(&w, job));
	lose(&w, job, 2 * MINUTE);
	policy = event_policy_make(w.now_ms, "test");
	policy.policy_set.blackhole_window_ms = 5 * MINUTE;
	world_apply(&w, &policy);
	view_verify(w.view, &w.facts);
	lose(&w, job, 2 * MINUTE);
	assert_false(runs(&w, job));
	assert_int_equal(job_pause(&w.facts, job_get(&w.facts, (struct job_id){ job })).losses, 4);
	world_deinit(&w);
}

/* Who has mended the cause need not wait; and what is lost then is the first loss again. */
static void who_releases_a_job_ends_its_pause(void **state)
{
	struct world w;
	struct event e;
	struct err err;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1");
	job = world_submit(&w, (struct wish){ .name = "job" });
	e = world_event(&w, EVENT_JOB_RELEASED);
	e.job_released.job = job;
	assert_int_equal(core_admit(&w.facts, w.view, &e, &w.step, NULL, &err), CORE_ALREADY);
	for (uint32_t i = 0; i < 5; i++) {
		lose(&w, job, 0);
		world_at(&w, w.now_ms + (i < 4 ? pause_after_ms(i + 1) : 0));
	}
	assert_false(runs(&w, job));
	e = world_event(&w, EVENT_JOB_RELEASED);
	e.job_released.job = job;
	assert_int_equal(core_admit(&w.facts, w.view, &e, &w.step, NULL, &err), 0);
	world_apply(&w, &e);
	assert_true(runs(&w, job));
	view_verify(w.view, &w.facts);
	e = world_event(&w, EVENT_JOB_RELEASED);
	e.job_released.job = job;
	assert_int_equal(core_admit(&w.facts, w.view, &e, &w.step, NULL, &err), CORE_ALREADY);
	lose(&w, job, 0);
	assert_true(runs(&w, job));
	lose(&w, job, 0);
	assert_false(runs(&w, job));
	assert_int_equal(job_pause(&w.facts, job_get(&w.facts, (struct job_id){ job })).losses, 2);
	world_deinit(&w);
}

static void explain_says_how_often_and_when_it_is_tried_again(void **state)
{
	struct explanation why;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1");
	job = world_submit(&w, (struct wish){ .name = "job" });
	lose(&w, job, 2000);
	lose(&w, job, 4000);
	world_at(&w, w.now_ms + 1000);
	lose(&w, job, 3000);
	explain_job(&w.facts, w.view, (struct job_id){ job }, &w.step, &why);
	assert_int_equal(why.reason, REASON_PAUSE);
	assert_string_equal(
		world_reads(&w, why.summary),
		"was lost or could not be started 3 times in a row, each time within 4s of its "
		"start (the last time: rank 0 was lost with n0); it is tried again in 2s, or now by `fairlead release 1`");
	world_deinit(&w);
}

/* A rank of a gang that is lost before it runs, wherever it is put: the others wait a while before it is started anew. */
static void ranks_that_are_lost_again_and_again_pause_too(void **state)
{
	struct event e;
	struct world w;
	uint32_t gang;

	(void)state;
	world_init(&w, "n0:2");
	e = event_policy_make(w.now_ms, "test");
	e.policy_set.rejoin_ms = 10 * MINUTE;
	world_apply(&w, &e);
	gang = world_submit(&w, (struct wish){ .name = "gang", .tasks = 2, .rejoins = true });
	world_run(&w);
	world_at(&w, w.now_ms + 10 * MINUTE);
	world_exit_rank(&w, gang, 1, CAUSE_LOST, 0);
	world_decide(&w);
	assert_int_equal(world_running(&w, gang), 2);
	for (int64_t pause_ms = 0; pause_ms <= 4000; pause_ms = pause_ms ? 2 * pause_ms : 1000) {
		e = world_event(&w, EVENT_TASK_EXITED);
		e.task_exited.attempt = job_get(&w.facts, (struct job_id){ gang })->attempt.v;
		e.task_exited.rank = 1;
		e.task_exited.launch =
			task_get(&w.facts,
				 attempt_get(&w.facts,
					     job_get(&w.facts, (struct job_id){ gang })->attempt),
				 1)
				->launch;
		e.task_exited.cause = CAUSE_LOST;
		e.task_exited.never_ran = 1;
		world_apply(&w, &e);
		world_decide(&w);
		assert_int_equal(world_running(&w, gang), pause_ms ? 1 : 2);
		if (!pause_ms)
			continue;
		assert_int_equal(w.wake_ms, w.now_ms + pause_ms);
		world_at(&w, w.now_ms + pause_ms);
		world_decide(&w);
		assert_int_equal(world_running(&w, gang), 2);
	}
	assert_int_equal(job_get(&w.facts, (struct job_id){ gang })->attempts, 1);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_pause_doubles_from_the_second_short_loss_on),
		cmocka_unit_test(what_is_lost_at_once_again_and_again_waits_longer_each_time),
		cmocka_unit_test(
			a_job_that_waits_for_ever_is_started_no_more_often_than_each_five_minutes),
		cmocka_unit_test(an_attempt_that_lived_long_begins_the_count_anew),
		cmocka_unit_test(
			the_paused_job_leaves_its_place_to_others_and_owes_nobody_anything),
		cmocka_unit_test(who_was_never_lost_does_not_wait_with_one_that_is_like_him),
		cmocka_unit_test(a_disk_that_is_full_costs_no_retry_and_is_not_tried_without_end),
		cmocka_unit_test(a_policy_with_a_longer_window_calls_longer_lives_short),
		cmocka_unit_test(who_releases_a_job_ends_its_pause),
		cmocka_unit_test(explain_says_how_often_and_when_it_is_tried_again),
		cmocka_unit_test(ranks_that_are_lost_again_and_again_pause_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
