/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "engine/kubernetes/output.h"

#include <string.h>

/* Whether it was told; with its text. */
static bool tell(struct output_place *place, const char *line, const char *expected)
{
	const char *text;

	if (!output_is_new(place, line, strlen(line), &text))
		return false;
	assert_string_equal(text, expected);
	output_told(place, line, strlen(line));
	return true;
}

#define T1 "2026-11-23T07:00:00.1Z "
#define T12 "2026-11-23T07:00:00.12Z "
#define T2 "2026-11-23T07:00:00.2Z "

static void lines_are_told_once_however_often_one_asks(void **state)
{
	struct output_place place = { 0 };

	(void)state;
	assert_true(tell(&place, T1 "a", "a"));
	assert_true(tell(&place, T12 "b", "b"));
	assert_true(tell(&place, T12 "b", "b")); /* twice at the same time */
	assert_string_equal(place.stamp, "2026-11-23T07:00:00.12Z");
	output_again(&place);
	assert_false(tell(&place, T1 "a", "a"));
	assert_false(tell(&place, T12 "b", "b"));
	assert_false(tell(&place, T12 "b", "b"));
	assert_true(tell(&place, T12 "c", "c"));
	assert_true(tell(&place, T2 "d", "d"));
	output_again(&place);
	assert_false(tell(&place, T12 "c", "c"));
	assert_false(tell(&place, T2 "d", "d"));
	assert_true(tell(&place, T2 "e", "e"));
}

static void what_was_not_told_comes_again(void **state)
{
	struct output_place place = { 0 };
	const char *text;

	(void)state;
	assert_true(tell(&place, T1 "a", "a"));
	assert_true(output_is_new(&place, T2 "b", strlen(T2 "b"), &text)); /* no room */
	output_again(&place);
	assert_false(tell(&place, T1 "a", "a"));
	assert_true(tell(&place, T2 "b", "b"));
}

static void other_zones_and_lines_without_a_time_are_read(void **state)
{
	struct output_place place = { 0 };

	(void)state;
	assert_true(tell(&place, "2026-11-23T08:00:00.5+02:00 a", "a"));
	assert_false(tell(&place, "2026-11-23T06:00:00.4Z b", "b"));
	assert_true(tell(&place, "2026-11-23T06:00:01Z c", "c"));
	assert_true(tell(&place, "no time in front", "no time in front"));
	assert_true(tell(&place, "", ""));
	assert_true(tell(&place, "12 x", "12 x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_told_once_however_often_one_asks),
		cmocka_unit_test(what_was_not_told_comes_again),
		cmocka_unit_test(other_zones_and_lines_without_a_time_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
