/* SPDX-License-Identifier: Apache-2.0 */
/* Fading against figures worked out by hand, and against itself. */
#include "core/model/decay.h"
#include "core/model/edit.h"

#include "base/testing.h"
#include "core/model/facts.h"

#define HOUR INT64_C(3600000)
#define WEEK (168 * HOUR)

static void after_each_half_life_half_is_left(void **state)
{
	(void)state;
	assert_int_equal(decay_kept(1000000, 0, WEEK), 1000000);
	assert_int_equal(decay_kept(1000000, WEEK, WEEK), 500000);
	assert_int_equal(decay_kept(1000000, 3 * WEEK, WEEK), 125000);
	assert_int_equal(decay_kept(1000000, WEEK / 2, WEEK), 707106); /* the root of one half */
	assert_int_equal(decay_kept(1000000, 100 * WEEK, WEEK), 0);
	assert_int_equal(decay_kept(1000000, -WEEK, WEEK), 1000000);
	assert_int_equal(decay_kept(INT64_MAX, 0, WEEK), INT64_MAX);
}

static void without_a_half_life_nothing_fades(void **state)
{
	(void)state;
	assert_int_equal(decay_kept(77, 1000 * WEEK, 0), 77);
	assert_int_equal(decay_accrued(2 * GPU_SHARE, 1000 * WEEK, 0), 2000 * WEEK);
}

static void ten_gpus_for_a_half_life_come_to_its_tenfold_over_twice_the_logarithm(void **state)
{
	(void)state;
	assert_int_equal(decay_accrued(10 * GPU_SHARE, 100000, 100000), 721347);
	assert_int_equal(decay_kept(721347, 100000, 100000), 360673);
	/* For ever: 1.4427 half-lives of all ten. */
	assert_int_equal(decay_accrued(10 * GPU_SHARE, 1000000000, 100000), 1442695);
	/* A short time: as it is. */
	assert_in_range(decay_accrued(8 * GPU_SHARE, 1000, WEEK), 7990, 8000);
}

static void it_does_not_matter_how_often_use_is_brought_up_to_date(void **state)
{
	int64_t once = decay_accrued(3 * GPU_SHARE, 10 * HOUR, 24 * HOUR), often = 0;

	(void)state;
	for (int i = 0; i < 600; i++)
		often = decay_kept(often, HOUR / 60, 24 * HOUR) +
			decay_accrued(3 * GPU_SHARE, HOUR / 60, 24 * HOUR);
	assert_in_range(once - often, 0, 1200); /* at most 2 GPU-ms are lost each time */
}

static void large_amounts_do_not_overflow(void **state)
{
	(void)state;
	/* A million GPUs for ever, with a half-life of a year: 1.4427 million GPU-years. */
	assert_in_range(decay_accrued(INT64_C(1000000) * GPU_SHARE, INT64_MAX, 365 * 24 * HOUR) /
				(365 * 24 * HOUR),
			1442694, 1442695);
	assert_int_equal(decay_accrued(INT64_MAX, INT64_MAX, 0), INT64_MAX);
}

/* --- a queue's past ------------------------------------------------------------------------------------ */

static struct facts f;
static uint64_t seq;

static void tell(enum event_kind kind, int64_t at_ms, struct event told)
{
	struct event e = event_make(kind, at_ms, "test");

	if (kind == EVENT_QUEUE_SET) {
		e.queue_set.name = told.queue_set.name ? told.queue_set.name : "a";
		e.queue_set.limit_share = -1;
		e.queue_set.used_gpu_ms = told.queue_set.used_gpu_ms;
	} else if (kind == EVENT_POLICY_SET) {
		e.policy_set = told.policy_set;
	} else if (kind == EVENT_NODE_SET) {
		e.node_set.name = "n0";
		e.node_set.gpus = 4;
	} else if (kind == EVENT_JOB_SUBMITTED) {
		e.job_submitted.job = told.job_submitted.job;
		e.job_submitted.tier = told.job_submitted.tier;
		e.job_submitted.name = "train";
		e.job_submitted.queue = "a";
		e.job_submitted.tasks_min = 2;
		e.job_submitted.gpus = 1;
	} else {
		e = told;
		e.kind = kind;
		e.time_ms = at_ms;
		e.actor = "test";
	}
	e.seq = ++seq;
	apply(&f, &e);
	facts_verify(&f);
}

static void half_life(int64_t at_ms, int64_t half_life_ms)
{
	struct event e = event_policy_make(at_ms, "test");

	e.policy_set.half_life_ms = half_life_ms;
	tell(EVENT_POLICY_SET, at_ms, e);
}

static void place(int64_t at_ms, uint32_t job, uint32_t attempt)
{
	static const int64_t nodes[] = { 1, 1 }, masks[] = { 1, 2 };

	tell(EVENT_ATTEMPT_PLACED, at_ms,
	     (struct event){ .attempt_placed = { .job = job,
						 .attempt = attempt,
						 .nodes = nodes,
						 .masks = masks,
						 .nodes_count = 2,
						 .masks_count = 2 } });
}

static void begin(int64_t half_life_ms, int64_t used_gpu_ms, enum tier tier)
{
	seq = 0;
	facts_init(&f);
	half_life(1, half_life_ms);
	tell(EVENT_NODE_SET, 1, (struct event){ 0 });
	tell(EVENT_QUEUE_SET, 10, (struct event){ .queue_set = { .used_gpu_ms = used_gpu_ms } });
	tell(EVENT_JOB_SUBMITTED, 20,
	     (struct event){ .job_submitted = { .job = 1, .tier = tier } });
}

static int64_t past(int64_t at_ms)
{
	return queue_past_gpu_ms(&f, facts_queue_find(&f, "a"), at_ms);
}

static void past_use_grows_while_attempts_hold_gpus_and_fades_when_they_are_gone(void **state)
{
	(void)state;
	begin(1000, 0, TIER_STANDARD);
	place(100, 1, 1);
	assert_int_equal(past(100), 0);
	assert_int_equal(past(1100), 1442); /* 2 GPUs for a half-life: 2 * 1000 / 0.6931 / 2 */
	tell(EVENT_ATTEMPT_ENDED, 1100,
	     (struct event){ .attempt_ended = { .attempt = 1, .used_gpu_ms = 2000 } });
	assert_int_equal(past(1100), 1442);
	assert_int_equal(past(2100), 721);
	assert_int_equal(queue_get(&f, facts_queue_find(&f, "a"))->used_gpu_ms, 2000);
	facts_deinit(&f);
}

static void what_was_used_before_a_change_of_the_half_life_faded_as_it_did_then(void **state)
{
	(void)state;
	begin(1000, 8000, TIER_STANDARD);
	assert_int_equal(past(1010), 4000);
	half_life(1010, 500);
	assert_int_equal(past(1010), 4000);
	assert_int_equal(past(2010), 1000);
	facts_deinit(&f);
}

static void best_effort_work_leaves_no_past(void **state)
{
	(void)state;
	begin(1000, 0, TIER_BEST_EFFORT);
	place(100, 1, 1);
	assert_int_equal(past(1100), 0);
	facts_deinit(&f);
}

static void a_user_s_past_is_counted_in_each_queue_for_itself(void **state)
{
	const struct queue_id a = { 1 }, b = { 2 };
	const struct name_id nobody = { 0 };
	struct name_id ann;

	(void)state;
	begin(1000, 0, TIER_STANDARD);
	tell(EVENT_QUEUE_SET, 10, (struct event){ .queue_set = { .name = "b" } });
	ann = facts_intern(&f, "ann");
	user_past_change(&f, a, ann, GPU_SHARE);
	user_past_change(&f, b, ann, 2 * GPU_SHARE);
	assert_int_equal(f.pasts.count, 2);
	assert_int_equal(user_past_gpu_ms(&f, a, ann, f.now_ms + 1000), 721);
	assert_int_equal(user_past_gpu_ms(&f, b, ann, f.now_ms + 1000), 1442);
	assert_int_equal(user_past_gpu_ms(&f, a, nobody, f.now_ms + 1000), 0);
	/* What was never counted in can't be taken out. */
	user_past_change(&f, a, ann, -3 * GPU_SHARE);
	assert_int_equal(user_past_gpu_ms(&f, a, ann, f.now_ms + 1000), 0);
	facts_verify(&f);
	facts_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_each_half_life_half_is_left),
		cmocka_unit_test(without_a_half_life_nothing_fades),
		cmocka_unit_test(
			ten_gpus_for_a_half_life_come_to_its_tenfold_over_twice_the_logarithm),
		cmocka_unit_test(it_does_not_matter_how_often_use_is_brought_up_to_date),
		cmocka_unit_test(large_amounts_do_not_overflow),
		cmocka_unit_test(
			past_use_grows_while_attempts_hold_gpus_and_fades_when_they_are_gone),
		cmocka_unit_test(
			what_was_used_before_a_change_of_the_half_life_faded_as_it_did_then),
		cmocka_unit_test(best_effort_work_leaves_no_past),
		cmocka_unit_test(a_user_s_past_is_counted_in_each_queue_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
