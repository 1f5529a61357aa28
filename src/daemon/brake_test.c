/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/brake.h"

static struct event dropped(int64_t job)
{
	struct event e = event_make(EVENT_PROMISE_DROPPED, 1000, "fairlead");

	e.promise_dropped.job = job;
	return e;
}

/* The call after which the brake is on, each a millisecond after the one before; 0 = it never is. */
static uint32_t calls_until(struct brake *brake, int64_t now_ms, uint32_t most)
{
	const struct event e = dropped(7);

	for (uint32_t call = 1; call <= most; call++)
		if (brake_note(brake, &e, 1, now_ms + call))
			return call;
	return 0;
}

static void the_same_decision_without_end_is_braked(void **state)
{
	struct brake brake = { 0 };

	(void)state;
	assert_int_equal(calls_until(&brake, 5000, 100000), BRAKE_FREE + BRAKE_SEEN + BRAKE_CALLS);
	assert_non_null(strstr(brake.text, "\"promise-dropped\" of 7"));
	assert_int_equal(brake_left_ms(&brake, brake.until_ms - 3), 3);
	assert_int_equal(brake_left_ms(&brake, brake.until_ms), 0);
	brake_deinit(&brake);
}

static void the_pause_grows_up_to_a_limit(void **state)
{
	struct brake brake = { 0 };
	const struct event e = dropped(7);
	int64_t now_ms;

	(void)state;
	(void)calls_until(&brake, 5000, 100000);
	assert_int_equal(brake.pause_ms, BRAKE_PAUSE_FIRST_MS);
	for (int i = 0; i < 20; i++) {
		now_ms = brake.until_ms;
		assert_false(brake_note(&brake, &e, 1, now_ms)); /* it is on already */
		assert_int_equal(brake.until_ms, now_ms + brake.pause_ms);
	}
	assert_int_equal(brake.pause_ms, BRAKE_PAUSE_MOST_MS);
	brake_deinit(&brake);
}

static void what_happens_ends_it_and_counts_begin_anew(void **state)
{
	struct brake brake = { 0 };

	(void)state;
	(void)calls_until(&brake, 5000, 100000);
	assert_true(brake_release(&brake));
	assert_false(brake_release(&brake));
	assert_int_equal(brake_left_ms(&brake, 5000), 0);
	assert_string_equal(brake.text, "");
	assert_int_equal(calls_until(&brake, brake.on_ms + BRAKE_WINDOW_MS + 1, 100000),
			 BRAKE_FREE + BRAKE_SEEN + BRAKE_CALLS);
	brake_deinit(&brake);
}

/* Each 100 ms something happens, and the circle has time for so many calls between. */
static uint32_t calls_amid(struct brake *brake, int64_t now_ms, uint32_t between, bool rests)
{
	const struct event e = dropped(7);

	for (uint32_t call = 1; call <= 100000; call++) {
		if (call % between == 0 && rests)
			(void)brake_rest(brake);
		if (call % between == 0)
			(void)brake_happened(brake);
		if (brake_note(brake, &e, 1, now_ms + (int64_t)call * 100 / between))
			return call;
	}
	return 0;
}

static void a_circle_amid_much_that_happens_is_braked_as_well(void **state)
{
	struct brake brake = { 0 };
	int64_t pause_ms;

	(void)state;
	assert_int_equal(calls_amid(&brake, 5000, 100, false),
			 BRAKE_FREE + BRAKE_SEEN + BRAKE_CALLS);
	pause_ms = brake.pause_ms;
	assert_false(brake_happened(&brake)); /* it is on still, though the pause is over */
	assert_int_equal(brake_left_ms(&brake, brake.last_ms), 0);
	(void)calls_amid(&brake, brake.last_ms, 1, false);
	assert_true(brake.pause_ms > pause_ms);
	assert_true(brake_rest(&brake));
	assert_string_equal(brake.text, "");
	brake_deinit(&brake);
}

/* Answers what happens, however often it answers the same. */
static void who_comes_to_rest_between_is_not_braked(void **state)
{
	struct brake brake = { 0 };

	(void)state;
	assert_int_equal(calls_amid(&brake, 5000, 100, true), 0);
	brake_deinit(&brake);
}

/* The clock wakes it each time: rest alone means nothing. */
static void a_circle_that_waits_for_the_clock_is_braked_as_well(void **state)
{
	const struct event e = dropped(7);
	struct brake brake = { 0 };
	uint32_t call = 1;

	(void)state;
	for (; call < 100000 && !brake_note(&brake, &e, 1, 5000 + call); call++)
		assert_false(brake_rest(&brake));
	assert_int_equal(call, BRAKE_FREE + BRAKE_SEEN + BRAKE_CALLS);
	assert_false(brake_rest(&brake));
	assert_true(brake_happened(&brake));
	brake_deinit(&brake);
}

static void soon_after_it_takes_less(void **state)
{
	struct brake brake = { 0 };

	(void)state;
	(void)calls_until(&brake, 5000, 100000);
	for (int i = 0; i < 5; i++) {
		assert_true(brake_release(&brake));
		assert_int_equal(calls_until(&brake, brake.on_ms, 100000),
				 BRAKE_SEEN_SOON + BRAKE_CALLS_SOON);
	}
	brake_deinit(&brake);
}

/* A million jobs that start one after the other; reservations of the same few are set anew in each of these calls. */
static void as_long_as_something_is_new_nothing_is_braked(void **state)
{
	struct brake brake = { 0 };

	(void)state;
	for (uint32_t call = 0; call < 1000000; call++) {
		struct event events[2] = { dropped(3), dropped(10 + call) };

		assert_false(brake_note(&brake, events, 2, 5000 + call / 100));
	}
	brake_deinit(&brake);
}

/* A look every ten seconds, for days in which nobody comes. */
static void what_is_decided_now_and_then_is_not_braked(void **state)
{
	struct brake brake = { 0 };
	const struct event e = event_make(EVENT_RESERVATIONS_REVIEWED, 1000, "fairlead");

	(void)state;
	for (uint32_t call = 0; call < 30000; call++)
		assert_false(brake_note(&brake, &e, 1, 5000 + (int64_t)call * 10000));
	brake_deinit(&brake);
}

static void a_loop_over_many_jobs_is_found_too(void **state)
{
	struct brake brake = { 0 };
	bool on = false;

	(void)state;
	for (uint32_t call = 0; call < 2000000 && !on; call++) {
		const struct event e = dropped(1 + call % 20000);

		on = brake_note(&brake, &e, 1, 5000 + call / 100);
	}
	assert_true(on);
	brake_deinit(&brake);
}

static void it_is_over_when_nothing_was_decided_for_a_window(void **state)
{
	struct brake brake = { 0 };

	(void)state;
	assert_false(brake_is_over(&brake, INT64_MAX));
	(void)calls_until(&brake, 5000, 100000);
	assert_false(brake_is_over(&brake, brake.last_ms + BRAKE_WINDOW_MS));
	assert_true(brake_is_over(&brake, brake.last_ms + BRAKE_WINDOW_MS + 1));
	brake_deinit(&brake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_decision_without_end_is_braked),
		cmocka_unit_test(the_pause_grows_up_to_a_limit),
		cmocka_unit_test(what_happens_ends_it_and_counts_begin_anew),
		cmocka_unit_test(a_circle_amid_much_that_happens_is_braked_as_well),
		cmocka_unit_test(who_comes_to_rest_between_is_not_braked),
		cmocka_unit_test(a_circle_that_waits_for_the_clock_is_braked_as_well),
		cmocka_unit_test(soon_after_it_takes_less),
		cmocka_unit_test(as_long_as_something_is_new_nothing_is_braked),
		cmocka_unit_test(what_is_decided_now_and_then_is_not_braked),
		cmocka_unit_test(a_loop_over_many_jobs_is_found_too),
		cmocka_unit_test(it_is_over_when_nothing_was_decided_for_a_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
