/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/life/spot.h"

#include "base/testing.h"

enum { MINUTE = 60000, HOUR = 3600000 };

static const struct spot_pool hourly; /* nothing known: an hour there, an hour away */

/* 10 h of work in 20 h, 6 min for a restart, a third of the price. */
static struct spot_task task(void)
{
	return (struct spot_task){ .at = SPOT_WAITS,
				   .left_ms = 20 * HOUR,
				   .work_ms = 10 * HOUR,
				   .restart_ms = 6 * MINUTE,
				   .look_ms = 6 * MINUTE,
				   .spot_micro = 1000000,
				   .demand_micro = 3000000 };
}

/* The worked example of README.md. */
static void the_reserve_is_what_it_takes_to_come_and_go_twice_as_often_as_expected(void **state)
{
	const struct spot_task t = task();

	(void)state;
	assert_int_equal(spot_spare(&t), 9 * HOUR + 48 * MINUTE);
	assert_int_equal(spot_reserve(&t, &hourly), 4 * HOUR);
}

static void without_spot_it_waits_until_only_the_reserve_is_left(void **state)
{
	struct spot_task t = task();

	(void)state;
	assert_int_equal(spot_choose(&t, &hourly), SPOT_WAITS);
	t.left_ms = 13 * HOUR; /* spare 2 h 48 min, reserve 2 h 36 min */
	assert_int_equal(spot_choose(&t, &hourly), SPOT_WAITS);
	t.left_ms = 12 * HOUR + 30 * MINUTE; /* 2 h 18 min, 2 h 30 min */
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_DEMAND);
}

static void who_waits_takes_spot_and_keeps_it_until_it_is_taken_away(void **state)
{
	struct spot_task t = task();

	(void)state;
	t.there = true;
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_SPOT);
	t.at = SPOT_ON_SPOT;
	t.left_ms = 10 * HOUR + 12 * MINUTE; /* spare 0 */
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_SPOT);
	t.there = false;
	t.at = SPOT_WAITS;
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_DEMAND);
}

static void with_little_time_it_goes_on_demand_though_spot_is_there(void **state)
{
	struct spot_task t = task();

	(void)state;
	t.there = true;
	t.left_ms =
		t.work_ms + t.look_ms + 2 * t.restart_ms; /* there and back, and no moment more */
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_DEMAND);
	t.left_ms++;
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_SPOT);
	t.lose_ms = 1; /* of a pre-emption between two checkpoints */
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_DEMAND);
}

static void it_leaves_on_demand_only_for_what_pays_two_restarts(void **state)
{
	struct spot_task t = task();
	struct spot_pool brief = { 0 };

	(void)state;
	t.there = true;
	t.at = SPOT_ON_DEMAND;
	t.left_ms = 40 * HOUR;
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_SPOT);
	for (int i = 0; i < 63; i++)
		spot_pool_note(&brief, true, 8 * MINUTE);
	for (int i = 0; i < 63; i++)
		spot_pool_note(&brief, false, 10 * HOUR);
	/* 8 min and a little in mean: 4 min x 2 saved, 6 min x 4 paid. */
	assert_int_equal(spot_choose(&t, &brief), SPOT_ON_DEMAND);
	t.since_ms = 20 * MINUTE; /* 14 min x 2 */
	assert_int_equal(spot_choose(&t, &brief), SPOT_ON_SPOT);
}

static void the_scarcer_the_time_the_longer_must_spot_have_lasted(void **state)
{
	struct spot_task t = task();

	(void)state;
	t.there = true;
	t.at = SPOT_ON_DEMAND;
	t.left_ms = 11 * HOUR; /* spare 54 min, reserve 132 min: 15 min x 78 / 54 = 21 min 40 s */
	t.since_ms = 21 * MINUTE;
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_DEMAND);
	t.since_ms = 22 * MINUTE;
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_SPOT);
}

static void with_much_time_it_leaves_on_demand_even_to_wait(void **state)
{
	struct spot_task t = task();

	(void)state;
	t.at = SPOT_ON_DEMAND; /* spare 9 h 54 min, reserve 4 h, a coming and going 2 h */
	assert_int_equal(spot_choose(&t, &hourly), SPOT_WAITS);
	t.left_ms = 15 * HOUR; /* 4 h 54 min, 3 h, 2 h */
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_DEMAND);
}

static void spot_that_is_not_cheaper_is_not_used(void **state)
{
	struct spot_task t = task();

	(void)state;
	t.there = true;
	t.spot_micro = t.demand_micro;
	t.left_ms = 11 * HOUR;
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_DEMAND);
	t.at = SPOT_ON_SPOT;
	assert_int_equal(spot_choose(&t, &hourly), SPOT_ON_DEMAND);
}

static void a_pool_is_judged_by_what_it_did_of_late(void **state)
{
	struct spot_pool pool = { 0 };

	(void)state;
	assert_int_equal(spot_pool_mean(&pool, true), HOUR);
	spot_pool_note(&pool, true, 3 * HOUR);
	assert_int_equal(spot_pool_mean(&pool, true), 2 * HOUR);
	assert_int_equal(spot_pool_mean(&pool, false), HOUR);
	for (int i = 0; i < 1000; i++)
		spot_pool_note(&pool, true, 10 * HOUR);
	for (int i = 0; i < 200; i++)
		spot_pool_note(&pool, true, MINUTE);
	assert_true(spot_pool_mean(&pool, true) < HOUR);
	for (int i = 0; i < 1000; i++)
		spot_pool_note(&pool, true, INT64_MAX);
	assert_true(spot_pool_mean(&pool, true) <= SPOT_TIME_MAX_MS);
}

/* Machines that are there in wild turns, looks at uneven times: whatever comes, the deadline is met. */
static void no_deadline_is_missed_whatever_the_machines_do(void **state)
{
	uint64_t random = 88172645463325252u;

	(void)state;
	for (int run = 0; run < 3000; run++) {
		struct spot_pool pool = { 0 };
		struct spot_task t = task();
		int64_t past_ms = 0, until_ms = 0, deadline_ms;

		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		t.restart_ms = (int64_t)(random % 40) * MINUTE;
		t.look_ms = 10 * MINUTE;
		deadline_ms = t.work_ms + t.restart_ms + t.look_ms +
			      (int64_t)(random >> 20 & 1023) * MINUTE;
		while (t.work_ms > 0) {
			enum spot_place chosen;
			int64_t step_ms, done_ms;

			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			t.since_ms += 1;
			if (past_ms >= until_ms) {
				spot_pool_note(&pool, t.there, t.since_ms);
				t.there = !t.there;
				t.since_ms = 0;
				until_ms = past_ms + (int64_t)(random >> 40 & 255) * MINUTE;
			}
			if (!t.there && t.at == SPOT_ON_SPOT)
				t.at = SPOT_WAITS;
			t.left_ms = deadline_ms - past_ms;
			chosen = spot_choose(&t, &pool);
			assert_true(chosen != SPOT_ON_SPOT || t.there);
			if (chosen != t.at)
				t.pending_ms = chosen == SPOT_WAITS ? 0 : t.restart_ms;
			t.at = chosen;
			step_ms = 1 + (int64_t)(random % (10 * MINUTE));
			past_ms += step_ms;
			t.since_ms += step_ms;
			if (t.at == SPOT_WAITS)
				continue;
			done_ms = step_ms < t.pending_ms ? step_ms : t.pending_ms;
			t.pending_ms -= done_ms;
			t.work_ms -= step_ms - done_ms;
		}
		assert_true(past_ms + t.work_ms <= deadline_ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_reserve_is_what_it_takes_to_come_and_go_twice_as_often_as_expected),
		cmocka_unit_test(without_spot_it_waits_until_only_the_reserve_is_left),
		cmocka_unit_test(who_waits_takes_spot_and_keeps_it_until_it_is_taken_away),
		cmocka_unit_test(with_little_time_it_goes_on_demand_though_spot_is_there),
		cmocka_unit_test(it_leaves_on_demand_only_for_what_pays_two_restarts),
		cmocka_unit_test(the_scarcer_the_time_the_longer_must_spot_have_lasted),
		cmocka_unit_test(with_much_time_it_leaves_on_demand_even_to_wait),
		cmocka_unit_test(spot_that_is_not_cheaper_is_not_used),
		cmocka_unit_test(a_pool_is_judged_by_what_it_did_of_late),
		cmocka_unit_test(no_deadline_is_missed_whatever_the_machines_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
