/* SPDX-License-Identifier: Apache-2.0 */
/* Calendars against a week on paper: Monday is 2026-01-05. */
#include "core/scheduling/queues/calendar.h"

#include <string.h>

#include "base/check.h"
#include "base/moment.h"
#include "base/testing.h"
#include "core/model/facts.h"

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

/* --- clocks that change ----------------------------------------------------------------------------------------- */

static struct facts facts;

static int64_t at(const char *text)
{
	int64_t ms;

	assert_int_equal(moment_parse(text, &ms), 0);
	return ms;
}

/* Berlin, the two changes of 2026 and the one after. */
static void zone_told(void)
{
	int64_t at_ms[] = { at("2026-03-29T01:00Z"), at("2026-10-25T01:00Z"),
			    at("2027-03-28T01:00Z") },
		then_ms[] = { 2 * HOUR, HOUR, 2 * HOUR };
	struct event e = event_make(EVENT_ZONE_SET, MONDAY, "test");

	facts_init(&facts);
	e.seq = 1;
	e.zone_set.name = "Europe/Berlin";
	e.zone_set.ahead_ms = HOUR;
	e.zone_set.at_ms = at_ms;
	e.zone_set.then_ms = then_ms;
	e.zone_set.at_ms_count = e.zone_set.then_ms_count = 3;
	apply(&facts, &e);
	facts_verify(&facts);
}

static void reads_zoned(const char *text)
{
	struct err err;

	if (calendar_read(&facts, text, &c, &err) < 0)
		fail_msg("%s: %s", text, err.text);
}

/* From then on: the first moment, and when it closes. */
static void open_from(const char *from, const char *start, const char *end)
{
	int64_t at_ms = calendar_start_ms(&c, at(from), 0);

	if (at_ms != at(start))
		fail_msg("from %s: %lld h, not %s", from, (long long)(at_ms - at(from)) / HOUR,
			 start);
	if (calendar_closes_ms(&c, at_ms) != at(end))
		fail_msg("from %s it closes %lld min after it opens, not at %s", from,
			 (long long)(calendar_closes_ms(&c, at_ms) - at_ms) / 60000, end);
}

static void a_zone_has_its_own_clock(void **state)
{
	(void)state;
	zone_told();
	reads_zoned("20:00-08:00, Europe/Berlin");
	open_from("2026-01-05T12:00Z", "2026-01-05T19:00Z", "2026-01-06T07:00Z");
	open_from("2026-07-05T12:00Z", "2026-07-05T18:00Z", "2026-07-06T06:00Z");
	open_from("2026-03-28T12:00Z", "2026-03-28T19:00Z", "2026-03-29T06:00Z"); /* 11 h */
	open_from("2026-10-24T12:00Z", "2026-10-24T18:00Z", "2026-10-25T07:00Z"); /* 13 h */
	assert_int_equal(calendar_longest_ms(&c), 12 * HOUR);
	reads_zoned("sat 20:00-08:00, Europe/Berlin");
	assert_int_equal(calendar_start_ms(&c, at("2026-03-28T12:00Z"), 11 * HOUR + 1),
			 at("2026-04-04T18:00Z"));
	assert_int_equal(calendar_start_ms(&c, at("2026-06-06T12:00Z"), 13 * HOUR), -1);
	assert_int_equal(calendar_start_ms(&c, at("2026-10-20T12:00Z"), 13 * HOUR),
			 at("2026-10-24T18:00Z"));
	reads_zoned("mon-sun, Europe/Berlin");
	assert_true(c.always);
	facts_deinit(&facts);
}

static void a_time_that_is_not_there_is_when_the_clock_has_passed_it(void **state)
{
	(void)state;
	zone_told();
	reads_zoned("02:30-08:00, Europe/Berlin");
	open_from("2026-03-28T20:00Z", "2026-03-29T01:00Z", "2026-03-29T06:00Z");
	reads_zoned("02:15-02:45, Europe/Berlin"); /* not at all that night */
	open_from("2026-03-28T20:00Z", "2026-03-30T00:15Z", "2026-03-30T00:45Z");
	reads_zoned("01:00-02:00, Europe/Berlin");
	open_from("2026-03-28T20:00Z", "2026-03-29T00:00Z", "2026-03-29T01:00Z");
	reads_zoned("03:00-04:00, Europe/Berlin");
	open_from("2026-03-28T20:00Z", "2026-03-29T01:00Z", "2026-03-29T02:00Z");
	facts_deinit(&facts);
}

static void a_time_that_comes_twice_counts_the_first_time(void **state)
{
	(void)state;
	zone_told();
	reads_zoned("02:15-02:45, Europe/Berlin");
	open_from("2026-10-24T20:00Z", "2026-10-25T00:15Z", "2026-10-25T00:45Z");
	open_from("2026-10-25T00:45Z", "2026-10-26T01:15Z", "2026-10-26T01:45Z");
	reads_zoned("02:30-08:00, Europe/Berlin");
	open_from("2026-10-24T20:00Z", "2026-10-25T00:30Z", "2026-10-25T07:00Z");
	reads_zoned("00:00-02:30, Europe/Berlin");
	open_from("2026-10-24T20:00Z", "2026-10-24T22:00Z", "2026-10-25T00:30Z");
	reads_zoned("03:00-04:00, Europe/Berlin");
	open_from("2026-10-24T20:00Z", "2026-10-25T02:00Z", "2026-10-25T03:00Z");
	facts_deinit(&facts);
}

/* At every quarter of an hour of two years windows that meet on the clock are one open and one closed. */
static void windows_that_meet_on_the_clock_meet(void **state)
{
	struct calendar other;
	struct err err;

	(void)state;
	zone_told();
	reads_zoned("02:30-14:15, Europe/Berlin");
	assert_int_equal(calendar_read(&facts, "14:15-02:30, Europe/Berlin", &other, &err), 0);
	for (int64_t at_ms = at("2026-01-01T00:00Z"); at_ms < at("2027-12-31T00:00Z");
	     at_ms += HOUR / 4) {
		bool open = calendar_is_open(&c, at_ms);

		if (open == calendar_is_open(&other, at_ms))
			fail_msg("%lld: both or none", (long long)at_ms);
		assert_true(open == (calendar_closes_ms(&c, at_ms) > at_ms));
		if (!open)
			assert_int_equal(calendar_start_ms(&c, at_ms, 0),
					 calendar_closes_ms(&other, at_ms));
	}
	facts_deinit(&facts);
}

static void zones_are_named_once_and_known(void **state)
{
	struct err err;

	(void)state;
	zone_told();
	assert_int_equal(calendar_read(&facts, "mon, Mars/Olympus", &c, &err), -(int)ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "\"Mars/Olympus\" is not known"));
	assert_int_equal(calendar_read(&facts, "mon, utc+1, Europe/Berlin", &c, &err),
			 -(int)ERR_INVALID);
	assert_int_equal(calendar_read(&facts, "mon, Europe/Berlin, utc+1", &c, &err),
			 -(int)ERR_INVALID);
	assert_non_null(strstr(err.text, "two clocks"));
	assert_int_equal(calendar_read(&facts, "mon, Europe/Berlin, CET", &c, &err),
			 -(int)ERR_INVALID);
	assert_int_equal(calendar_read(&facts, "mon, Europe//Berlin", &c, &err), -(int)ERR_INVALID);
	facts_deinit(&facts);
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
		cmocka_unit_test(a_zone_has_its_own_clock),
		cmocka_unit_test(a_time_that_is_not_there_is_when_the_clock_has_passed_it),
		cmocka_unit_test(a_time_that_comes_twice_counts_the_first_time),
		cmocka_unit_test(windows_that_meet_on_the_clock_meet),
		cmocka_unit_test(zones_are_named_once_and_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
