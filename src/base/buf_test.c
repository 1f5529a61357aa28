/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "base/buf.h"

static void an_empty_buf_is_an_empty_text(void **state)
{
	struct buf buf = BUF_INIT;
	char *taken;

	(void)state;
	assert_string_equal(buf_text(&buf), "");
	buf_clear(&buf);
	buf_add(&buf, NULL, 0);
	assert_string_equal(buf_text(&buf), "");
	taken = buf_take(&buf);
	assert_string_equal(taken, "");
	free(taken);
	buf_deinit(&buf);
	buf_deinit(&buf);
}

static void pieces_follow_each_other(void **state)
{
	AUTO_BUF buf = BUF_INIT;

	(void)state;
	buf_adds(&buf, "a");
	buf_addc(&buf, 'b');
	buf_add(&buf, "cde", 2);
	buf_addf(&buf, "%s=%d", "x", 5);
	assert_string_equal(buf_text(&buf), "abcdx=5");
	assert_int_equal(buf.size, 7);
	buf_clear(&buf);
	assert_string_equal(buf_text(&buf), "");
	buf_adds(&buf, "again");
	assert_string_equal(buf_text(&buf), "again");
}

static void every_length_keeps_its_nul(void **state)
{
	char text[600], *taken;

	(void)state;
	memset(text, 'q', sizeof(text));
	for (size_t size = 0; size < sizeof(text); size++) {
		struct buf buf = BUF_INIT;

		for (size_t i = 0; i < size; i++)
			buf_addc(&buf, 'q');
		assert_int_equal(strlen(buf_text(&buf)), size);
		buf_clear(&buf);
		buf_addf(&buf, "%.*s", (int)size, text);
		assert_int_equal(strlen(buf_text(&buf)), size);
		assert_true(buf.size < buf.room || !buf.room);
		taken = buf_take(&buf);
		assert_int_equal(strlen(taken), size);
		free(taken);
	}
}

static void numbers_are_written_in_full(void **state)
{
	AUTO_BUF buf = BUF_INIT;

	(void)state;
	buf_addu(&buf, 0);
	buf_addc(&buf, ' ');
	buf_addu(&buf, UINT64_MAX);
	buf_addc(&buf, ' ');
	buf_addi(&buf, INT64_MIN);
	buf_addc(&buf, ' ');
	buf_addi(&buf, -1);
	buf_addc(&buf, ' ');
	buf_addi(&buf, INT64_MAX);
	assert_string_equal(buf_text(&buf),
			    "0 18446744073709551615 -9223372036854775808 -1 9223372036854775807");
}

static void json_texts_are_escaped(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *expected;
	} cases[] = {
		{ "", 0, "\"\"" },
		{ "plain /text", 11, "\"plain /text\"" },
		{ "a\"b\\c", 5, "\"a\\\"b\\\\c\"" },
		{ "\b\t\n\f\r", 5, "\"\\b\\t\\n\\f\\r\"" },
		{ "\0\x01\v\x1f", 4, "\"\\u0000\\u0001\\u000b\\u001f\"" },
		{ "\x7f\xc2\x80\xc2\x9f\xc2\xa0", 7, "\"\\u007f\\u0080\\u009f\xc2\xa0\"" },
		{ "\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9", 9, "\"\xe2\x80\xa7\\u2028\\u2029\"" },
		{ "\xef\xbb\xbf\xef\xbf\xbe\xef\xbf\xbf", 9, "\"\\ufeff\\ufffe\\uffff\"" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
		  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "x\xffy", 3, "\"x\xef\xbf\xbdy\"" },
		{ "\xc3", 1, "\"\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xc0\x80z", 3, "\"\xef\xbf\xbd\xef\xbf\xbdz\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_BUF buf = BUF_INIT;

		buf_add_json(&buf, cases[i].text, cases[i].size);
		assert_string_equal(buf_text(&buf), cases[i].expected);
	}
}

static void reserve(void *data)
{
	struct buf buf = BUF_INIT;

	buf_addc(&buf, 'x');
	buf_reserve(&buf, *(size_t *)data);
}

static void passing_the_limit_aborts(void **state)
{
	size_t small = 1000, past = BUF_MAX, around = SIZE_MAX;

	(void)state;
	assert_false(aborts(reserve, &small));
	assert_true(aborts(reserve, &past));
	assert_true(aborts(reserve, &around));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buf_is_an_empty_text),
		cmocka_unit_test(pieces_follow_each_other),
		cmocka_unit_test(every_length_keeps_its_nul),
		cmocka_unit_test(numbers_are_written_in_full),
		cmocka_unit_test(json_texts_are_escaped),
		cmocka_unit_test(passing_the_limit_aborts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
