/* SPDX-License-Identifier: Apache-2.0 */
/* Zone files made by hand, and those of this machine against the C library's own clock. */
#include "base/zone.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/moment.h"
#include "base/testing.h"

static unsigned char file[65536];
static size_t size;
static struct zone_rules zone;
static struct err err;

static void put(int64_t value, size_t bytes)
{
	for (size_t i = bytes; i-- > 0;)
		file[size++] = (unsigned char)((uint64_t)value >> (8 * i));
}

static void head(int64_t times, int64_t types)
{
	memcpy(file + size, "TZif2", 5);
	memset(file + size + 5, 0, 15);
	size += 20;
	for (int i = 0; i < 3; i++)
		put(0, 4);
	put(times, 4);
	put(types, 4);
	put(4, 4); /* bytes of names */
}

static void type(int64_t ahead_s)
{
	put(ahead_s, 4);
	put(0, 2);
}

/* A file of one hour ahead, two from `at_s` on (0 = never), and the rule behind it. */
static void make(int64_t at_s, const char *rule)
{
	size = 0;
	head(0, 1);
	type(0);
	put(0, 4);
	head(at_s ? 1 : 0, 2);
	if (at_s) {
		put(at_s, 8);
		put(1, 1);
	}
	type(3600);
	type(7200);
	put(0, 4);
	file[size++] = '\n';
	memcpy(file + size, rule, strlen(rule));
	size += strlen(rule);
	file[size++] = '\n';
}

static void reads(void)
{
	if (zone_parse(file, size, &zone, &err) < 0)
		fail_msg("%s", err.text);
}

static int64_t at(const char *text)
{
	int64_t ms;

	assert_int_equal(moment_parse(text, &ms), 0);
	return ms;
}

static int64_t ahead_h(int64_t at_ms)
{
	int64_t ahead_ms = zone.before_ms;

	for (uint32_t i = 0; i < zone.count && zone.at_ms[i] <= at_ms; i++)
		ahead_ms = zone.ahead_ms[i];
	return ahead_ms / 3600000;
}

static void a_rule_is_written_out_for_the_century(void **state)
{
	(void)state;
	make(0, "CET-1CEST,M3.5.0,M10.5.0/3");
	reads();
	assert_int_equal(zone.before_ms, 3600000);
	assert_int_equal(zone.count, 200);
	assert_int_equal(zone.at_ms[52], at("2026-03-29T01:00Z"));
	assert_int_equal(zone.ahead_ms[52], 7200000);
	assert_int_equal(zone.at_ms[53], at("2026-10-25T01:00Z"));
	assert_int_equal(zone.at_ms[199], at("2099-10-25T01:00Z"));
	assert_int_equal(ahead_h(INT64_MAX / 8), 1);
	make(0, "XST3XDT,M10.3.0/0,M2.3.0/0"); /* in the south summer lasts over the new year */
	reads();
	assert_int_equal(ahead_h(at("2026-01-10T00:00Z")), -2);
	assert_int_equal(ahead_h(at("2026-07-10T00:00Z")), -3);
	assert_int_equal(ahead_h(at("2026-02-15T01:59Z")), -2);
	assert_int_equal(ahead_h(at("2026-02-15T02:00Z")), -3);
	make(0, "<+02>-2<+01>-1,J60/0,J300/0"); /* J60 is the first of March also in a leap year */
	reads();
	assert_int_equal(ahead_h(at("2028-02-29T21:59Z")), 2);
	assert_int_equal(ahead_h(at("2028-02-29T22:00Z")), 1);
	make(0, "AAA-1BBB,59/0,299/0"); /* the 60th day: in a leap year the 29th of February */
	reads();
	assert_int_equal(ahead_h(at("2028-02-28T22:59Z")), 1);
	assert_int_equal(ahead_h(at("2028-02-28T23:00Z")), 2);
	make(0, "AAA1BBB,0/0,J365/25"); /* summer all the year */
	reads();
	assert_int_equal(zone.count, 0);
	assert_int_equal(zone.before_ms, 0);
}

static void the_rule_goes_on_where_the_file_ends(void **state)
{
	(void)state;
	make(at("2026-06-01T00:00Z") / 1000, "AAA-2");
	reads();
	assert_int_equal(zone.count, 1);
	assert_int_equal(ahead_h(at("2026-05-31T23:59Z")), 1);
	assert_int_equal(ahead_h(at("2026-06-01T00:00Z")), 2);
	make(at("2026-06-01T00:00Z") / 1000, "CET-1CEST,M3.5.0,M10.5.0/3");
	reads();
	assert_int_equal(zone.at_ms[0], at("2026-06-01T00:00Z"));
	assert_int_equal(zone.at_ms[1], at("2026-10-25T01:00Z"));
	make(at("1999-06-01T00:00Z") / 1000, ""); /* no rule: as after the last change */
	reads();
	assert_int_equal(zone.count, 0);
	assert_int_equal(zone.before_ms, 7200000);
}

static void what_is_no_zone_file_is_refused(void **state)
{
	static const char *const rules[] = { "C-1",
					     "CET-1CEST,M3.5.0",
					     "CET-1CEST",
					     "CET-1CEST,M13.5.0,M10.5.0",
					     "CET-1CEST,M3.6.0,M10.5.0",
					     "CET-1CEST,M3.5.7,M10.5.0",
					     "CET-1CEST,J0,J5",
					     "CET-25",
					     "CET-1CEST,M3.5.0,M10.5.0x",
					     "<CET-1" };

	(void)state;
	make(at("2026-06-01T00:00Z") / 1000, "CET-1CEST,M3.5.0,M10.5.0/3");
	for (size_t i = 0, whole = size; i < whole; i++)
		assert_int_equal(zone_parse(file, i, &zone, &err), -(int)ERR_INVALID);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		make(0, rules[i]);
		if (zone_parse(file, size, &zone, &err) != -(int)ERR_INVALID)
			fail_msg("\"%s\" was read", rules[i]);
	}
	make(0, "CET-1");
	file[0] = 'X';
	assert_int_equal(zone_parse(file, size, &zone, &err), -(int)ERR_INVALID);
	make(0, "AAA-1BBB,J100,J101"); /* no clock changes twice in two days */
	assert_int_equal(zone_parse(file, size, &zone, &err), -(int)ERR_INVALID);
}

static void bytes_turned_around_never_break_it(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed < 20000; seed++) {
		uint32_t r = seed * 2654435761U;

		make(at("2026-06-01T00:00Z") / 1000, "CET-1CEST,M3.5.0,M10.5.0/3");
		for (int i = 0; i < 3; i++) {
			r = r * 1664525 + 1013904223;
			file[(r >> 8) % size] = (unsigned char)(r >> 24);
		}
		if (zone_parse(file, size, &zone, &err) == 0)
			assert_true(zone_is_sound(zone.before_ms, zone.at_ms, zone.ahead_ms,
						  zone.count));
	}
}

static void names_are_checked_and_near_ones_told(void **state)
{
	static const char *const bad[] = { "",
					   "europe/berlin",
					   "../etc/passwd",
					   "A//B",
					   "A/",
					   "Europe/Ber lin",
					   "/Europe/Berlin",
					   "A2345678901234567890123456789012345678901" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(zone_name_is_sound(bad[i]));
	assert_true(zone_name_is_sound("America/Argentina/ComodRivadavia"));
	assert_true(zone_name_is_sound("Etc/GMT+5"));
	setenv("TZDIR", "/nonexistent", 1);
	assert_int_equal(zone_read("Europe/Berlin", &zone, &err), -(int)ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "no zone files in /nonexistent"));
	unsetenv("TZDIR");
}

/* What the C library says of the same moment, for every zone that this machine has. */
static void as_the_c_library_has_it(void **state)
{
	static const char *const names[] = {
		"Europe/Berlin",     "America/New_York", "Australia/Lord_Howe", "America/Santiago",
		"Africa/Casablanca", "Europe/Dublin",    "Asia/Kolkata",        "Pacific/Apia",
		"America/Sao_Paulo", "Africa/Cairo",     "Asia/Tehran",         "UTC",
		"Antarctica/Troll",  "America/Caracas",  "Asia/Gaza",           "CET",
	};
	uint32_t compared = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (zone_read(names[i], &zone, &err) < 0)
			continue;
		setenv("TZ", names[i], 1);
		tzset();
		for (int64_t at_ms = at("2000-01-01T00:00Z"); at_ms < at("2099-12-31T00:00Z");
		     at_ms += INT64_C(3600000) * 31 + 60000) {
			const time_t t = (time_t)(at_ms / 1000);
			int64_t ahead_ms = zone.before_ms;
			struct tm tm;

			localtime_r(&t, &tm);
			for (uint32_t k = 0; k < zone.count && zone.at_ms[k] <= at_ms; k++)
				ahead_ms = zone.ahead_ms[k];
			if (ahead_ms != tm.tm_gmtoff * INT64_C(1000))
				fail_msg("%s at %lld: %lld, the C library has %ld s", names[i],
					 (long long)t, (long long)ahead_ms / 1000, tm.tm_gmtoff);
			compared++;
		}
	}
	unsetenv("TZ");
	if (!compared)
		fail_msg(
			"this machine has no zone files to compare with: scripts/install-packages --test installs them (tzdata)");
	assert_int_equal(zone_read("Europe/Berln", &zone, &err), -(int)ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "did you mean \"Europe/Berlin\"?"));
	assert_int_equal(zone_read("Tokyo", &zone, &err), -(int)ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "did you mean \"Asia/Tokyo\"?"));
	assert_int_equal(zone_read("Xyzzyqqq", &zone, &err), -(int)ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "names are like"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_is_written_out_for_the_century),
		cmocka_unit_test(the_rule_goes_on_where_the_file_ends),
		cmocka_unit_test(what_is_no_zone_file_is_refused),
		cmocka_unit_test(bytes_turned_around_never_break_it),
		cmocka_unit_test(names_are_checked_and_near_ones_told),
		cmocka_unit_test(as_the_c_library_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
