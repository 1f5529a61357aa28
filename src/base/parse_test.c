/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "base/check.h"
#include "base/parse.h"

static const int64_t ten_years_ms = INT64_C(315360000000);

static void durations_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "0s", 0 },
		{ "1ms", 1 },
		{ "500ms", 500 },
		{ "90s", 90000 },
		{ "5m", 300000 },
		{ "1h30m", 5400000 },
		{ "2d", 172800000 },
		{ "7d", 604800000 },
		{ "1w", 604800000 },
		{ "1w1d1h1m1s1ms", 694861001 },
		{ "1m1ms", 60001 },
		{ "007s", 7000 },
		{ "3650d", INT64_C(315360000000) },
		{ "315360000000ms", INT64_C(315360000000) },
		{ "3649d24h", INT64_C(315360000000) },
		{ "01:00:00", 3600000 },
		{ "1:00:01", 3601000 },
		{ "100:59:59", 363599000 },
		{ "2-01:30:00", 178200000 },
		{ "00:00:00", 0 },
		{ "3650-00:00:00", INT64_C(315360000000) },
	};
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse_duration(cases[i].text, &ms, NULL), 0);
		assert_int_equal(ms, cases[i].ms);
	}
}

static void durations_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "is empty" },
		{ "5", "lacks a unit" },
		{ "0", "lacks a unit" },
		{ "1h30", "lacks a unit" },
		{ "s", "is not a number" },
		{ " 5s", "is not a number" },
		{ "5 s", "has a unit that is none" },
		{ "5s ", "has a unit that is none" },
		{ "1h 30m", "has a unit that is none" },
		{ "5S", "has a unit that is none" },
		{ "5sec", "has a unit that is none" },
		{ "5y", "has a unit that is none" },
		{ "-5s", "has a sign" },
		{ "+5s", "has a sign" },
		{ "1h-5m", "has a unit that is none" },
		{ "1.5h", "is not whole" },
		{ "30m1h", "largest first" },
		{ "1s1s", "once" },
		{ "3651d", "longer than 10 years" },
		{ "3650d1ms", "longer than 10 years" },
		{ "99999999999999999999999999s", "longer than 10 years" },
		{ "315360000001w", "longer than 10 years" },
		{ "\xd9\xa3s", "is not a number" },
		{ "01:30", "seconds are missing" },
		{ "1:60:00", "no hours:minutes:seconds" },
		{ "1:00:60", "no hours:minutes:seconds" },
		{ "1:0:00", "no hours:minutes:seconds" },
		{ "01:00:00:00", "no hours:minutes:seconds" },
		{ ":00:00", "no hours:minutes:seconds" },
		{ "-1:00:00", "days that are no number" },
		{ "3650-00:00:01", "longer than 10 years" },
		{ "99999999999:00:00", "longer than 10 years" },
	};
	int64_t ms = 42;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(parse_duration(cases[i].text, &ms, &err) < 0);
		assert_non_null(strstr(err.text, cases[i].why));
		assert_int_equal(err.code, ERR_INVALID);
	}
	assert_int_equal(ms, 42);
}

static void durations_are_written_and_read_back(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{ 0, "0s" },
		{ 1, "1ms" },
		{ 5400000, "1h30m" },
		{ 90000, "1m30s" },
		{ 604800000, "1w" },
		{ 864000000, "10d" },
		{ 1209600000, "2w" },
		{ 86400001, "1d1ms" },
		{ -1500, "-1s500ms" },
		{ INT64_MAX, "106751991167d7h12m55s807ms" },
		{ INT64_MIN, "-106751991167d7h12m55s808ms" },
	};
	char text[DURATION_TEXT_MAX];
	struct dice dice = { 9 };
	int64_t ms, back;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(format_duration(cases[i].ms, text), cases[i].text);
	for (int i = 0; i < 20000; i++) {
		ms = (int64_t)(dice_roll(&dice) >> dice_below(&dice, 60)) % (ten_years_ms + 1);
		ms = ms < 0 ? -ms : ms;
		if (i % 3 == 0)
			ms -= ms % 60000;
		assert_int_equal(parse_duration(format_duration(ms, text), &back, NULL), 0);
		assert_int_equal(back, ms);
	}
}

static void durations_for_people_have_two_units_at_most(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{ 0, "0s" },
		{ 999, "999ms" },
		{ 12000, "12s" },
		{ 12999, "12s" },
		{ 60000, "1m" },
		{ 61999, "1m 1s" },
		{ 3600000, "1h" },
		{ 3601000, "1h" },
		{ 5460000, "1h 31m" },
		{ 86400000 * 3 + 4 * 3600000 + 59000, "3d 4h" },
		{ 86400000 * 8, "8d" },
		{ -61000, "-1m 1s" },
		{ INT64_MIN, "-106751991167d 7h" },
	};
	char text[DURATION_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(format_duration_short(cases[i].ms, text), cases[i].text);
}

static void sizes_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t mib;
	} cases[] = {
		{ "0MiB", 0 },
		{ "0B", 0 },
		{ "512MiB", 512 },
		{ "80GiB", 81920 },
		{ "2TiB", 2097152 },
		{ "1048576B", 1 },
		{ "2048KiB", 2 },
		{ "80GB", 76293 },
		{ "64G", 65536 },
		{ "64Gi", 65536 },
		{ "512M", 512 },
		{ "512Mi", 512 },
		{ "2048K", 2 },
		{ "2048Ki", 2 },
		{ "2T", 2097152 },
		{ "2Ti", 2097152 },
		{ "2MB", 1 },
		{ "1048576TiB", INT64_C(1) << 40 },
		{ "1099511627776MiB", INT64_C(1) << 40 },
	};
	int64_t mib;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse_size_mib(cases[i].text, &mib, NULL), 0);
		assert_int_equal(mib, cases[i].mib);
	}
}

static void sizes_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "is empty" },
		{ "80", "lacks a unit" },
		{ "80g", "has a unit that is none" },
		{ "80gi", "has a unit that is none" },
		{ "80gib", "has a unit that is none" },
		{ "80 GiB", "has a unit that is none" },
		{ "80GiBx", "has a unit that is none" },
		{ "1.5GiB", "is not whole" },
		{ "-1GiB", "is not a number" },
		{ "GiB", "is not a number" },
		{ "1KiB", "less than 1MiB" },
		{ "1MB", "less than 1MiB" },
		{ "1500KiB", "is not a whole number of MiB" },
		{ "1048577B", "is not a whole number of MiB" },
		{ "1099511627777MiB", "is too large" },
		{ "1048577TiB", "is too large" },
		{ "18446744073709551615TiB", "is too large" },
		{ "18446744073709551616B", "is too large" },
	};
	int64_t mib = 42;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(parse_size_mib(cases[i].text, &mib, &err) < 0);
		assert_non_null(strstr(err.text, cases[i].why));
	}
	assert_int_equal(mib, 42);
}

static void sizes_are_written_and_read_back(void **state)
{
	char text[DURATION_TEXT_MAX];
	struct dice dice = { 2 };
	int64_t mib, back;

	(void)state;
	assert_string_equal(format_size_mib(81920, text), "80GiB");
	assert_string_equal(format_size_mib(0, text), "0MiB");
	assert_string_equal(format_size_mib(1000, text), "1000MiB");
	assert_string_equal(format_size_mib(2097152, text), "2TiB");
	for (int i = 0; i < 20000; i++) {
		mib = (int64_t)(dice_roll(&dice) >> (24 + dice_below(&dice, 40))) << (i % 2 * 10);
		mib = mib > INT64_C(1) << 40 ? INT64_C(1) << 40 : mib;
		assert_int_equal(parse_size_mib(format_size_mib(mib, text), &back, NULL), 0);
		assert_int_equal(back, mib);
	}
}

static void whole_numbers_are_read_within_their_limits(void **state)
{
	static const struct {
		const char *text;
		int64_t min, max, value;
		const char *why;
	} cases[] = {
		{ "0", 0, 0, 0, NULL },
		{ "-0", 0, 0, 0, NULL },
		{ "-7", -7, 7, -7, NULL },
		{ "9223372036854775807", INT64_MIN, INT64_MAX, INT64_MAX, NULL },
		{ "-9223372036854775808", INT64_MIN, INT64_MAX, INT64_MIN, NULL },
		{ "9223372036854775808", INT64_MIN, INT64_MAX, 0, "is not between" },
		{ "-9223372036854775809", INT64_MIN, INT64_MAX, 0, "is not between" },
		{ "99999999999999999999999", INT64_MIN, INT64_MAX, 0, "is not between" },
		{ "8", -7, 7, 0, "8 is not between -7 and 7" },
		{ "-8", -7, 7, 0, "is not between" },
		{ "", 0, 9, 0, "is not a whole number" },
		{ "-", 0, 9, 0, "is not a whole number" },
		{ "+1", 0, 9, 0, "is not a whole number" },
		{ " 1", 0, 9, 0, "is not a whole number" },
		{ "1 ", 0, 9, 0, "is not a whole number" },
		{ "1.0", 0, 9, 0, "is not a whole number" },
		{ "1e2", 0, 999, 0, "is not a whole number" },
		{ "0x10", 0, 99, 0, "is not a whole number" },
		{ "010", 0, 99, 0, "starts with 0" },
	};
	struct err err;
	int64_t value;
	int rc;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		value = 42;
		rc = parse_int(cases[i].text, cases[i].min, cases[i].max, &value, &err);
		if (cases[i].why) {
			assert_true(rc < 0);
			assert_non_null(strstr(err.text, cases[i].why));
			assert_int_equal(value, 42);
		} else {
			assert_int_equal(rc, 0);
			assert_int_equal(value, cases[i].value);
		}
	}
}

static void thousandths_are_read_exactly(void **state)
{
	static const struct {
		const char *text;
		int64_t want; /* -1 = refused */
	} cases[] = {
		{ "1", 1000 },     { "0.45", 450 },
		{ "12.5", 12500 }, { "0.001", 1 },
		{ "60", 60000 },   { "60.001", -1 },
		{ "0", -1 },       { "0.0001", -1 },
		{ ".5", -1 },      { "5.", -1 },
		{ "-1", -1 },      { "", -1 },
		{ "1e3", -1 },     { "99999999999999999999", -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t milli = -1;
		struct err err;

		assert_int_equal(parse_milli(cases[i].text, 1, 60000, &milli, &err) < 0,
				 cases[i].want < 0);
		assert_int_equal(milli, cases[i].want);
	}
}

static void names_are_plain(void **state)
{
	static const char *const good[] = {
		"a",   "9",       "A.b_c-d",
		"a..", "x------", "123456789012345678901234567890123456789012345678901234567890123"
	};
	static const char *const bad[] = {
		"",
		"-a",
		".a",
		"_a",
		"a b",
		"a/b",
		"a\n",
		"a\x1b[1m",
		"\xc3\xa9",
		"a:b",
		"1234567890123456789012345678901234567890123456789012345678901234"
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(parse_name(good[i], "queue", NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(parse_name(bad[i], "queue", &err) < 0);
		assert_non_null(strstr(err.text, "queue"));
	}
}

static void money_is_written_for_people(void **state)
{
	static const struct {
		int64_t micro;
		const char *text;
	} cases[] = {
		{ 0, "0.00" },
		{ 1344, "0.001344" },
		{ 10000, "0.01" },
		{ 4204999, "4.20" },
		{ 4205000, "4.21" },
		{ 999995000, "1,000.00" },
		{ 1680000000, "1,680.00" },
		{ -2100000, "-2.10" },
		{ 12345678900000, "12,345,678.90" },
		{ INT64_MAX, "9,223,372,036,854.78" },
	};
	char text[MONEY_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(format_money(cases[i].micro, text), cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(money_is_written_for_people),
		cmocka_unit_test(durations_are_read),
		cmocka_unit_test(durations_are_refused_with_the_reason),
		cmocka_unit_test(durations_are_written_and_read_back),
		cmocka_unit_test(durations_for_people_have_two_units_at_most),
		cmocka_unit_test(sizes_are_read),
		cmocka_unit_test(sizes_are_refused_with_the_reason),
		cmocka_unit_test(sizes_are_written_and_read_back),
		cmocka_unit_test(whole_numbers_are_read_within_their_limits),
		cmocka_unit_test(thousandths_are_read_exactly),
		cmocka_unit_test(names_are_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
