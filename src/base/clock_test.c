/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <time.h>

#include "base/clock.h"

static void clocks_do_not_run_backwards(void **state)
{
	int64_t boot = clock_boot_ms(), mono = clock_mono_ns(), next;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		next = clock_boot_ms();
		assert_true(next >= boot);
		boot = next;
		next = clock_mono_ns();
		assert_true(next >= mono);
		mono = next;
	}
}

static void the_units_are_those_of_the_names(void **state)
{
	int64_t before = (int64_t)time(NULL), wall = clock_wall_ms(), after = (int64_t)time(NULL);
	struct timespec boot;

	(void)state;
	/* time() may lag the precise clock by a tick, hence the second before. */
	assert_true(wall / 1000 >= before && wall / 1000 <= after + 1);
	assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &boot), 0);
	assert_true(clock_boot_ms() >= (int64_t)boot.tv_sec * 1000);
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &boot), 0);
	assert_true(clock_mono_ns() >= (int64_t)boot.tv_sec * 1000000000);
}

static void the_boot_id_stays(void **state)
{
	char first[BOOT_ID_MAX], second[BOOT_ID_MAX];

	(void)state;
	clock_boot_id(first);
	clock_boot_id(second);
	assert_string_equal(first, second);
	assert_true(strlen(first) == 36 || strlen(first) == 0);
	assert_null(strchr(first, '\n'));
}

static void local_times_follow_the_zone(void **state)
{
	static const struct {
		const char *zone, *text;
		int64_t wall_ms;
	} cases[] = {
		{ "UTC0", "1970-01-01 00:00:00", 0 },
		{ "UTC0", "1970-01-01 00:00:00", 999 },
		{ "UTC0", "1969-12-31 23:59:59", -1 },
		{ "UTC0", "1969-12-31 23:59:59", -1000 },
		{ "XYZ-2", "2026-03-01 16:02:11", INT64_C(1772373731000) },
		{ "UTC0", "2026-03-01 14:02:11", INT64_C(1772373731000) },
		{ "UTC0", "?", INT64_MAX },
	};
	char text[LOCAL_TIME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv("TZ", cases[i].zone, 1);
		tzset();
		if (cases[i].text[0] == '?')
			assert_true(strlen(clock_format_local(cases[i].wall_ms, text)) <
				    LOCAL_TIME_MAX);
		else
			assert_string_equal(clock_format_local(cases[i].wall_ms, text),
					    cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_do_not_run_backwards),
		cmocka_unit_test(the_units_are_those_of_the_names),
		cmocka_unit_test(the_boot_id_stays),
		cmocka_unit_test(local_times_follow_the_zone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
