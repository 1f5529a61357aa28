/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/check.h"
#include "daemon/event_clock.h"

#define HOUR ((int64_t)3600000)

static void a_step_of_the_wall_clock_moves_event_time_by_one_part_in_200_at_most(void **state)
{
	(void)state;
	struct event_clock clock;
	event_clock_start(&clock, 1000000, 500, 0, 0, 0, 0);
	assert_int_equal(event_clock_read(&clock, 1001000, 1500), 1001000);
	int64_t jumped = event_clock_read(&clock, 1002000 + 10 * HOUR, 2500);
	assert_int_equal(jumped, 1002000 + 1000 / 200);
	int64_t back = event_clock_read(&clock, 3000 - 10 * HOUR, 3500);
	assert_int_equal(back, jumped + 1000 - 1000 / 200);
}

static void event_time_never_runs_backwards(void **state)
{
	(void)state;
	struct event_clock clock;
	event_clock_start(&clock, 1000000, 500, 0, 0, 2000000, 0);
	assert_int_equal(clock.event_ms, 2000000);
	int64_t last = 0;
	for (int64_t boot = 500; boot < 5000; boot += 7) {
		int64_t now = event_clock_read(&clock, boot % 3 ? 0 : 9000000, boot);
		assert_true(now >= last);
		last = now;
	}
	assert_int_equal(event_clock_read(&clock, 0, 100), last);
}

static void a_restart_in_the_same_boot_goes_on_by_the_boot_clock(void **state)
{
	(void)state;
	struct event_clock clock;
	event_clock_start(&clock, 99999999, 60500, 1000000, 500, 1000100, 1);
	assert_int_equal(clock.event_ms, 1060000);
	event_clock_start(&clock, 99999999, 60500, 1000000, 500, 1000100, 0);
	assert_int_equal(clock.event_ms, 99999999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_step_of_the_wall_clock_moves_event_time_by_one_part_in_200_at_most),
		cmocka_unit_test(event_time_never_runs_backwards),
		cmocka_unit_test(a_restart_in_the_same_boot_goes_on_by_the_boot_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
