/* SPDX-License-Identifier: Apache-2.0 */
/* What the events do by which a running attempt becomes narrower or wider, told as small stories. */
#include "core/model/apply_testing.h"

#define RANKS(field, ...)                                                                          \
	.field = (const int64_t[]){ __VA_ARGS__ },                                                 \
	.field##_count = sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)

static struct event shrunk(int64_t time_ms, int64_t rank)
{
	return EVENT_OF(ATTEMPT_SHRUNK, attempt_shrunk, time_ms, .attempt = 1, .for_job = 0,
			RANKS(ranks, rank));
}

static struct event left(int64_t time_ms, int64_t rank, int64_t used)
{
	return EVENT_OF(RANKS_LEFT, ranks_left, time_ms, .attempt = 1, RANKS(ranks, rank),
			.used_gpu_ms = used);
}

static struct event grown(int64_t time_ms, int64_t rank, int64_t node)
{
	return EVENT_OF(ATTEMPT_GROWN, attempt_grown, time_ms, .attempt = 1, RANKS(ranks, rank),
			RANKS(nodes, node), RANKS(masks, 2));
}

static const struct task *task(uint32_t rank)
{
	return task_get(&f, attempt(1), rank);
}

static void a_rank_that_is_told_to_leave_holds_its_place_until_it_has_left(void **state)
{
	(void)state;
	run_job();
	fits(shrunk(200, 1));
	assert_true(task(1)->leaving && attempt(1)->leaving == 1 && attempt_width(attempt(1)) == 2);
	exited(210, 1, 1, CAUSE_STOPPED, 0);
	assert_int_equal(attempt_width(attempt(1)), 2);
	fits(left(220, 1, 160));
	assert_int_equal(task(1)->state, TASK_LEFT);
	assert_true(attempt_width(attempt(1)) == 1 && attempt(1)->leaving == 0);
	assert_true(job(1)->used_gpu_ms == 160 && attempt(1)->generation == 1);
	is(1, JOB_RUNNING);
}

static void what_leaving_does_is_no_failure(void **state)
{
	(void)state;
	run_job();
	fits(shrunk(200, 1));
	exited(210, 1, 1, CAUSE_EXIT, 1);
	assert_int_equal(attempt(1)->first_failed_rank, -1);
}

static void a_lost_rank_that_left_is_no_failure_any_more(void **state)
{
	(void)state;
	run_job();
	exited(210, 1, 1, CAUSE_LOST, 0);
	assert_int_equal(attempt(1)->first_failed_rank, 1);
	fits(left(220, 1, 160));
	assert_int_equal(attempt(1)->first_failed_rank, -1);
	assert_int_equal(attempt(1)->lacks_ms, 220); /* of two, and two are its least */
	assert_int_equal(attempt(1)->generation, 1);
}

static void a_rank_that_left_is_started_anew_and_its_old_words_are_refused(void **state)
{
	(void)state;
	run_job();
	exited(210, 1, 1, CAUSE_LOST, 0);
	fits(left(220, 1, 160));
	does_not_fit(EVENT_OF(TASK_EXITED, task_exited, 225, .attempt = 1, .rank = 1));
	fits(grown(230, 1, 2));
	assert_true(task(1)->launch == 1 && task(1)->from_ms == 230 && task(1)->gpu_mask == 2);
	assert_true(attempt(1)->lacks_ms == 0 && attempt(1)->exited == 0);
	does_not_fit(EVENT_OF(TASK_EXITED, task_exited, 240, .attempt = 1, .rank = 1));
	does_not_fit(EVENT_OF(TASK_READY, task_ready, 240, .attempt = 1, .rank = 1));
	fits(EVENT_OF(TASK_STARTED, task_started, 250, .attempt = 1, .rank = 1, .launch = 1));
	assert_int_equal(task(1)->state, TASK_RUNNING);
}

static void new_ranks_come_behind_the_last_without_a_gap(void **state)
{
	(void)state;
	run_job();
	does_not_fit(grown(200, 3, 2));
	does_not_fit(grown(200, 1, 2)); /* holds its place */
	for (int64_t rank = 2; rank < 9; rank++)
		fits(grown(200 + rank, rank, 1));
	assert_true(attempt(1)->tasks == 9 && attempt_width(attempt(1)) == 9);
	assert_true(task(0)->state == TASK_RUNNING && task(8)->state == TASK_PREPARING);
	assert_int_equal(attempt(1)->generation, 7);
}

static void somebody_is_left_over(void **state)
{
	(void)state;
	run_job();
	does_not_fit(
		EVENT_OF(ATTEMPT_SHRUNK, attempt_shrunk, 200, .attempt = 1, RANKS(ranks, 0, 1)));
	fits(shrunk(200, 0));
	does_not_fit(shrunk(200, 1));
	does_not_fit(shrunk(200, 0));
	does_not_fit(left(200, 0, 10)); /* it still runs */
}

static void what_a_queue_has_in_use_follows(void **state)
{
	(void)state;
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 50, .job = 1, .name = "train", .user = "ann",
		      .queue = "default", .tasks_min = 2, .gpus = 1, .tier = TIER_STANDARD));
	fits(placed(60, 1, 1, 0));
	ready(70, 1, 0);
	ready(70, 1, 1);
	fits(EVENT_OF(ATTEMPT_RELEASED, attempt_released, 80, .attempt = 1));
	exited(210, 1, 1, CAUSE_LOST, 0);
	fits(left(220, 1, 160));
	assert_int_equal(queue_get(&f, job(1)->queue)->past_rate_share, GPU_SHARE);
	fits(grown(230, 1, 1));
	assert_int_equal(queue_get(&f, job(1)->queue)->past_rate_share, 2 * GPU_SHARE);
	assert_int_equal(queue_get(&f, job(1)->queue)->used_gpu_ms, 160);
}

static void one_that_is_being_stopped_changes_no_more(void **state)
{
	(void)state;
	run_job();
	fits(EVENT_OF(ATTEMPT_STOPPED, attempt_stopped, 200, .attempt = 1, .why = STOP_EVICTED));
	does_not_fit(shrunk(210, 1));
	does_not_fit(grown(210, 2, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_rank_that_is_told_to_leave_holds_its_place_until_it_has_left),
		STORY(what_leaving_does_is_no_failure),
		STORY(a_lost_rank_that_left_is_no_failure_any_more),
		STORY(a_rank_that_left_is_started_anew_and_its_old_words_are_refused),
		STORY(new_ranks_come_behind_the_last_without_a_gap),
		STORY(somebody_is_left_over),
		STORY(what_a_queue_has_in_use_follows),
		STORY(one_that_is_being_stopped_changes_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
