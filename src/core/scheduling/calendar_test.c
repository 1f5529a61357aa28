/* SPDX-License-Identifier: Apache-2.0 */
/* Calendars against a week on paper: Monday is 2026-01-05. */
#include "core/scheduling/calendar.h"

#include <string.h>

#include "base/testing.h"

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define MONDAY INT64_C(1767571200000) /* 2026-01-05 00:00 UTC */

static struct calendar c;

static void reads(const char *text)
{
	struct err err;

	if (calendar_parse(text, &c, &err) < 0)
		fail_msg("%s: %s", text, err.text);
}

static void opens(int64_t from, int64_t length, int64_t at)
{
	int64_t start = calendar_start_ms(&c, MONDAY + from, length);

	assert_int_equal(start < 0 ? -1 : start - MONDAY, at);
}

static void a_night_belongs_to_the_day_on_which_it_begins(void **state)
{
	(void)state;
	reads("mon-fri 20:00-08:00");
	opens(0, HOUR, 20 * HOUR); /* Sunday's night is none */
	opens(21 * HOUR, HOUR, 21 * HOUR);
	opens(DAY + 7 * HOUR, HOUR, DAY + 7 * HOUR);
	opens(DAY + 7 * HOUR, HOUR + 1, DAY + 20 * HOUR); /* would end after 8 */
	opens(5 * DAY + 8 * HOUR, 0, 7 * DAY + 20 * HOUR); /* Saturday at 8: until Monday */
	opens(0, 13 * HOUR, -1);
	assert_int_equal(calendar_longest_ms(&c), 12 * HOUR);
}

static void windows_that_touch_are_one(void **state)
{
	(void)state;
	reads("mon-fri 20:00-08:00, sat-sun");
	assert_int_equal(calendar_longest_ms(&c), 52 * HOUR);
	opens(0, 52 * HOUR, 4 * DAY + 20 * HOUR); /* Friday 20:00 to Monday 00:00 */
	reads("sun 22:00-03:00, mon 02:00-06:00"); /* over the end of the week */
	assert_int_equal(calendar_longest_ms(&c), 8 * HOUR);
	opens(HOUR, 5 * HOUR, HOUR);
	opens(HOUR, 5 * HOUR + 1, 6 * DAY + 22 * HOUR);
}

static void whole_days_every_day_are_always(void **state)
{
	(void)state;
	reads("mon-sun");
	assert_true(c.always);
	opens(5 * HOUR, 1000 * DAY, 5 * HOUR);
	reads("00:00-12:00, 12:00-24:00");
	assert_true(c.always);
	reads("");
	assert_true(c.always);
	reads("sat-fri 09:00-09:00");
	assert_true(c.always);
}

static void the_clock_may_be_elsewhere(void **state)
{
	(void)state;
	reads("mon 08:00-09:00, utc+1");
	opens(0, HOUR, 7 * HOUR);
	reads("mon 08:00-09:00, utc-3:30");
	opens(0, HOUR, 11 * HOUR + HOUR / 2);
	reads("mon 00:30-01:00, utc+2"); /* begins on Sunday by UTC */
	opens(0, 0, 6 * DAY + 22 * HOUR + HOUR / 2);
}

static void overrun_asks_only_for_the_start(void **state)
{
	(void)state;
	reads("mon 08:00-09:00, overrun");
	opens(8 * HOUR + HOUR / 2, 100 * DAY, 8 * HOUR + HOUR / 2);
	opens(9 * HOUR, 0, 7 * DAY + 8 * HOUR);
	assert_true(calendar_longest_ms(&c) == INT64_MAX);
	assert_true(calendar_is_open(&c, MONDAY + 8 * HOUR));
	assert_false(calendar_is_open(&c, MONDAY + 9 * HOUR));
}

static void what_is_not_understood_is_named(void **state)
{
	static const char *const bad[] = { "mo",
					   "mon-",
					   "mon 8-9",
					   "mon 08:00",
					   "08:60-09:00",
					   "25:00-01:00",
					   "24:00-01:00",
					   "mon 24:30-01:00",
					   "utc1",
					   "utc+15",
					   "utc+1:99",
					   "mon,,tue",
					   "monday",
					   "mon 08:00-09",
					   "overrun now",
					   "mon x",
					   "mon-fri08:00-9:00" };
	struct err err;
	char many[CALENDAR_TEXT_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (calendar_parse(bad[i], &c, &err) != -(int)ERR_INVALID)
			fail_msg("\"%s\" was read", bad[i]);
		assert_non_null(strstr(err.text, "calendar: \""));
	}
	memset(many, ' ', sizeof(many));
	many[CALENDAR_TEXT_MAX + 1] = '\0';
	assert_int_equal(calendar_parse(many, &c, &err), -(int)ERR_TOO_LARGE);
	assert_int_equal(calendar_parse("1:00-2:00,3:00-4:00,5:00-6:00,7:00-8:00,9:00-10:00,"
					"11:00-12:00,13:00-14:00,15:00-16:00,17:00-18:00,mon",
					&c, &err),
			 0);
	assert_int_equal(calendar_parse("1:00-2:00,3:00-4:00,5:00-6:00,7:00-8:00,9:00-10:00,"
					"11:00-12:00,13:00-14:00,15:00-16:00,17:00-18:00,mon,tue",
					&c, &err),
			 -(int)ERR_INVALID);
}

static void it_closes_when_the_window_that_is_open_does(void **state)
{
	struct err err;
	const int64_t hour_ms = 3600000; /* time 0 is a Thursday */

	(void)state;
	assert_int_equal(calendar_parse("mon-fri 20:00-08:00, sat-sun", &c, &err), 0);
	assert_int_equal(calendar_closes_ms(&c, 7 * hour_ms), 8 * hour_ms);
	assert_int_equal(calendar_closes_ms(&c, 8 * hour_ms), 8 * hour_ms);
	assert_int_equal(calendar_closes_ms(&c, 10 * hour_ms), 10 * hour_ms);
	assert_int_equal(calendar_closes_ms(&c, 20 * hour_ms), 32 * hour_ms);
	assert_int_equal(calendar_closes_ms(&c, 50 * hour_ms), 96 * hour_ms);
	assert_int_equal(calendar_parse("", &c, &err), 0);
	assert_int_equal(calendar_closes_ms(&c, 5), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_night_belongs_to_the_day_on_which_it_begins),
		cmocka_unit_test(windows_that_touch_are_one),
		cmocka_unit_test(whole_days_every_day_are_always),
		cmocka_unit_test(the_clock_may_be_elsewhere),
		cmocka_unit_test(overrun_asks_only_for_the_start),
		cmocka_unit_test(it_closes_when_the_window_that_is_open_does),
		cmocka_unit_test(what_is_not_understood_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
