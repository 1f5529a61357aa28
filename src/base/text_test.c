/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/parse.h"
#include "base/utf8.h"

/* Every code point there is, written and read; and every one there is not. */
static void all_characters_are_valid_and_nothing_else(void **state)
{
	char bytes[4];
	size_t size;

	(void)state;
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		size = utf8_write(code, bytes);
		if (code >= 0xd800 && code <= 0xdfff) {
			assert_int_equal(utf8_size(bytes, size), 0);
			continue;
		}
		if (utf8_size(bytes, size) != size || utf8_code(bytes, size) != code)
			fail_msg("code point %x", code);
		if (size > 1 && utf8_size(bytes, size - 1) != 0)
			fail_msg("code point %x, one byte short", code);
	}
	for (uint32_t code = 0x110000; code < 0x200000; code += 0x111) {
		utf8_write(code, bytes);
		assert_int_equal(utf8_size(bytes, 4), 0);
	}
}

static void bad_utf8_is_seen(void **state)
{
	static const char *const good[] = {
		"", "abc", "\xc3\xa9", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"
	};
	static const char *const bad[] = {
		"\x80",
		"\xc3",
		"\xc3\x28",
		"\xc0\xaf",
		"\xc1\xbf",
		"\xe0\x9f\xbf",
		"\xe2\x82",
		"\xe2\x28\xa1",
		"\xed\xa0\x80",
		"\xf0\x8f\xbf\xbf",
		"\xf0\x9f\x98",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xff",
		"ok\xfe",
		"\xf8\x88\x80\x80\x80",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(text_is_utf8(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(text_is_utf8(bad[i], strlen(bad[i])));
}

static void misspelt_words_get_a_hint(void **state)
{
	static const char *const fields[] = { "name",     "queue",  "tasks",   "gpus",
					      "cpus",     "memory", "command", "checkpoint",
					      "priority", "env",    "tier" };
	static const struct {
		const char *word, *hint;
	} cases[] = {
		{ "taks", "tasks" },
		{ "task", "tasks" },
		{ "GPUs", "gpus" },
		{ "gpu", "gpus" },
		{ "quue", "queue" },
		{ "priorty", "priority" },
		{ "chekpiont", "checkpoint" },
		{ "evn", "env" },
		{ "memory", "memory" },
		{ "comand", "command" },
		{ "xyz", NULL },
		{ "", NULL },
		{ "na", NULL },
		{ "replicas", NULL },
		{ "mem", "memory" },
		{ "prty", "priority" },
		{ "pty", NULL },
		{ "ory", NULL },
		{ "q", NULL },
	};
	char longest[100];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *hint = spelling_hint(cases[i].word, fields, ARRAY_SIZE(fields));

		if (cases[i].hint) {
			assert_non_null(hint);
			assert_string_equal(hint, cases[i].hint);
		} else {
			assert_null(hint);
		}
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[99] = '\0';
	assert_null(spelling_hint(longest, fields, ARRAY_SIZE(fields)));
	assert_null(spelling_hint("name", fields, 0));
}

static void of_equals_the_first_is_the_hint(void **state)
{
	static const char *const words[] = { "core", "care" };

	(void)state;
	assert_string_equal(spelling_hint("cxre", words, 2), "core");
}

static void a_terminal_shows_what_it_could_obey(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *shown;
	} cases[] = {
		{ "plain \xc3\xa9 \xf0\x9f\x98\x80", 13, "plain \xc3\xa9 \xf0\x9f\x98\x80" },
		{ "a\nb\tc\r", 6, "a\\nb\\tc\\r" },
		{ "\x1b[31mred", 8, "\\x1b[31mred" },
		{ "\0\x07\x7f", 3, "\\x00\\x07\\x7f" },
		{ "\xc2\x9b"
		  "31m",
		  5, "\\u009b31m" },
		{ "\xe2\x80\xae"
		  "abc",
		  6, "\\u202eabc" },
		{ "\xe2\x80\xa8\xef\xbb\xbf", 6, "\\u2028\\ufeff" },
		{ "\xff\xc3", 2, "\\xff\\xc3" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_BUF out = BUF_INIT;

		text_for_terminal(&out, cases[i].text, cases[i].size);
		assert_string_equal(buf_text(&out), cases[i].shown);
	}
}

/* Against a look at each byte: whole eights before the first byte that is not plain. */
static void plain_bytes_are_counted_in_eights(void **state)
{
	static const char odd[] = { '"', '\\', '\n', 0x1f, 0x7f, (char)0x80, (char)0xff, '\0' };
	struct dice dice = { 11 };

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char text[40];
		size_t size = dice_below(&dice, sizeof(text) + 1);
		bool json = dice_below(&dice, 2);

		for (size_t i = 0; i < size; i++)
			text[i] = (char)(' ' + (int)dice_below(&dice, 0x5f));
		for (uint32_t i = dice_below(&dice, 3); i && size; i--)
			text[dice_below(&dice, (uint32_t)size)] =
				odd[dice_below(&dice, sizeof(odd))];
		size_t plain = 0;
		for (; plain < size; plain++)
			if (text[plain] < 0x20 || text[plain] > 0x7e ||
			    (json && (text[plain] == '"' || text[plain] == '\\')))
				break;
		assert_int_equal(utf8_plain(text, size, json), plain / 8 * 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_bytes_are_counted_in_eights),
		cmocka_unit_test(all_characters_are_valid_and_nothing_else),
		cmocka_unit_test(bad_utf8_is_seen),
		cmocka_unit_test(misspelt_words_get_a_hint),
		cmocka_unit_test(of_equals_the_first_is_the_hint),
		cmocka_unit_test(a_terminal_shows_what_it_could_obey),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
