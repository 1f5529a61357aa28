/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/parse.h"

static void ranges_give_their_names_in_order(void **state)
{
	static const struct {
		const char *text, *names;
	} cases[] = {
		{ "a", "a" },
		{ "n[0-3]", "n0 n1 n2 n3" },
		{ "n[7-7]", "n7" },
		{ "n[8-11]", "n8 n9 n10 n11" },
		{ "n[08-11]", "n08 n09 n10 n11" },
		{ "n[01-03]", "n01 n02 n03" },
		{ "n[0-1]-x", "n0-x n1-x" },
		{ "[3-5]", "3 4 5" },
		{ "r[0-1]x[0-1]", "r0x0 r0x1 r1x0 r1x1" },
		{ "r[0-1][2-3]", "r02 r03 r12 r13" },
		{ "n[999999998-999999999]", "n999999998 n999999999" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_BUF joined = BUF_INIT;
		struct arena arena;
		const char **names;
		size_t count;

		arena_init(&arena, 1 << 16);
		assert_int_equal(parse_name_range(cases[i].text, &arena, 4, &names, &count, NULL),
				 0);
		for (size_t n = 0; n < count; n++)
			buf_addf(&joined, "%s%s", n ? " " : "", names[n]);
		assert_string_equal(buf_text(&joined), cases[i].names);
		arena_deinit(&arena);
	}
}

static void wrong_ranges_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "is empty" },
		{ "n[", "two numbers" },
		{ "n[]", "two numbers" },
		{ "n[1]", "two numbers" },
		{ "n[1-]", "two numbers" },
		{ "n[-1]", "two numbers" },
		{ "n[1-2", "closed with ]" },
		{ "n[1-2,5]", "closed with ]" },
		{ "n[a-b]", "two numbers" },
		{ "n]", "has no [" },
		{ "n[[0-1]]", "two numbers" },
		{ "n[3-1]", "backwards" },
		{ "n[01-3]", "same number of digits" },
		{ "n[00-100]", "same number of digits" },
		{ "n[0-1000000000]", "two numbers" },
		{ "n[0-10]", "more than the limit of 10" },
		{ "n[0-999999999]", "more than the limit" },
		{ "a[0-9]b[0-9]", "more than the limit" },
		{ "[0-999999999][0-999999999][0-999999999]", "more than the limit" },
		{ "a[0-0]b[0-0]c[0-0]d[0-0]e[0-0]f[0-0]g[0-0]h[0-0]i[0-0]", "more than 7 ranges" },
		{ "-n[0-1]", "does not start with" },
		{ "n [0-1]", "may only have" },
		{ "123456789012345678901234567890123456789012345678901234567890n[1000-1001]",
		  "at most 63" },
	};
	const char **names = NULL;
	size_t count = 42;
	struct arena arena;
	struct err err;

	(void)state;
	arena_init(&arena, 1 << 16);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(parse_name_range(cases[i].text, &arena, 10, &names, &count, &err) < 0);
		assert_non_null(strstr(err.text, cases[i].why));
	}
	assert_null(names);
	assert_int_equal(count, 42);
	arena_deinit(&arena);
}

static void the_longest_text_is_safe(void **state)
{
	char text[400];
	const char **names;
	size_t count;
	struct arena arena;
	struct err err;

	(void)state;
	arena_init(&arena, 1 << 16);
	memset(text, 'a', sizeof(text));
	text[255] = '\0';
	assert_true(parse_name_range(text, &arena, 10, &names, &count, &err) < 0);
	assert_non_null(strstr(err.text, "at most 63"));
	text[255] = 'a';
	text[256] = '\0';
	assert_true(parse_name_range(text, &arena, 10, &names, &count, &err) < 0);
	assert_non_null(strstr(err.text, "more than 255"));
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_give_their_names_in_order),
		cmocka_unit_test(wrong_ranges_are_refused_with_the_reason),
		cmocka_unit_test(the_longest_text_is_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
