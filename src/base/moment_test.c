/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/moment.h"

static void a_moment_is_read_by_its_zone(void **state)
{
	/* date -ud 2028-03-01T12:30 +%s */
	static const struct {
		const char *text;
		int rc;
		int64_t ms;
	} cases[] = {
		{ "2028-03-01T12:30Z", 0, 1835526600000 },
		{ "2028-03-01 12:30:05Z", 0, 1835526605000 },
		{ "2028-03-01T12:30+01:00", 0, 1835523000000 },
		{ "2028-03-01T12:30-03:30", 0, 1835539200000 },
		{ "2028-03-01 12:30", MOMENT_OWN_CLOCK, 1835526600000 },
		{ "1970-01-01T00:00Z", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ms = -1;

		assert_int_equal(moment_parse(cases[i].text, &ms), cases[i].rc);
		assert_true(ms == cases[i].ms);
	}
}

static void what_is_no_moment_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"tomorrow",
		"2028-02-30T08:00Z",
		"2027-02-29T08:00Z",
		"2028-13-01T08:00Z",
		"2028-12-31T24:00Z",
		"2028-12-31",
		"2028-12-31T08:00ZZ",
		"2028-12-31T08:00+1",
		"1969-12-31T08:00Z",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ms;

		assert_true(moment_parse(cases[i], &ms) < 0);
	}
}

static void days_and_dates_are_two_ways_of_one_thing(void **state)
{
	int64_t year, month, day;

	(void)state;
	assert_true(moment_days(1970, 1, 1) == 0 && moment_days(2000, 3, 1) == 11017);
	for (int64_t days = -200000; days < 400000; days += 7) {
		moment_date(days, &year, &month, &day);
		assert_true(moment_days(year, month, day) == days);
		assert_true(month >= 1 && month <= 12 && day >= 1 && day <= 31);
	}
}

static void a_sentence_counts_down_to_its_moments(void **state)
{
	static const struct {
		const char *sentence, *read;
	} cases[] = {
		{ "", "" },
		{ "ends at 2028-03-01T12:30:00Z, not before", "ends in 10m, not before" },
		{ "at 2028-03-01T12:20:59Z; at 2028-03-01T12:20:00Z", "in 59s; any moment" },
		{ "at 9999-12-31T23:59:59Z", "in 354955d 11h" },
		{ "that 2028-03-01T12:30:00Z", "that 2028-03-01T12:30:00Z" },
		{ "flat 2028-03-01T12:30:00Z", "flat 2028-03-01T12:30:00Z" },
		{ "at 2028-03-01T12:30:00", "at 2028-03-01T12:30:00" },
		{ "at 2028-13-01T12:30:00Z", "at 2028-13-01T12:30:00Z" },
		{ "at 2028", "at 2028" },
	};
	int64_t now_ms;

	(void)state;
	assert_int_equal(moment_parse("2028-03-01T12:20:00Z", &now_ms), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_BUF out = BUF_INIT;

		moment_count_down(&out, cases[i].sentence, now_ms);
		assert_string_equal(buf_text(&out), cases[i].read);
	}
}

static void a_moment_is_written_as_it_is_read(void **state)
{
	char text[MOMENT_TEXT_MAX];
	int64_t ms;

	(void)state;
	assert_string_equal(moment_format(1835526605000, text), "2028-03-01T12:30:05Z");
	assert_string_equal(moment_format(1835526604001, text), "2028-03-01T12:30:05Z");
	assert_string_equal(moment_format(0, text), "1970-01-01T00:00:00Z");
	assert_string_equal(moment_format(INT64_MAX, text), "9999-12-31T23:59:59Z");
	assert_int_equal(moment_parse(moment_format(1900000000000, text), &ms), 0);
	assert_true(ms == 1900000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sentence_counts_down_to_its_moments),
		cmocka_unit_test(a_moment_is_written_as_it_is_read),
		cmocka_unit_test(a_moment_is_read_by_its_zone),
		cmocka_unit_test(what_is_no_moment_is_refused),
		cmocka_unit_test(days_and_dates_are_two_ways_of_one_thing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
