/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jansson is the judge: what it takes we take, with the same values, and what it refuses we refuse.
 * Texts lie in memory of exactly their size, so that ASan sees a read behind their end.
 */
#include "base/testing.h"

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/json.h"

static json_t *read_value(struct json_reader *r, struct arena *arena);

static json_t *read_string(struct json_reader *r, struct arena *arena)
{
	struct json_slice slice;
	char *text;

	pull_string(r, &slice);
	text = pull_text(r, &slice, arena);
	return r->problem ? NULL : json_string_nocheck(text);
}

static json_t *read_object(struct json_reader *r, struct arena *arena)
{
	json_t *object = json_object();
	struct json_slice key;

	pull_object(r);
	while (pull_member(r, &key)) {
		char *name = pull_text(r, &key, arena);

		assert_true(r->problem || pull_key_is(&key, name));
		json_object_set_new_nocheck(object, name, read_value(r, arena));
	}
	return object;
}

static json_t *read_array(struct json_reader *r, struct arena *arena)
{
	json_t *array = json_array();

	pull_array(r);
	while (pull_element(r))
		json_array_append_new(array, read_value(r, arena));
	return array;
}

static json_t *read_number(struct json_reader *r)
{
	struct json_reader copy = *r;
	const char *first = r->at;
	char text[512];
	int64_t number;

	pull_int(&copy, &number);
	if (!copy.problem) {
		*r = copy;
		return json_integer(number);
	}
	pull_skip(r);
	snprintf(text, sizeof(text), "%.*s", (int)(r->at - first), first);
	return json_real(strtod(text, NULL));
}

static json_t *read_value(struct json_reader *r, struct arena *arena)
{
	bool flag;

	switch (pull_peek(r)) {
	case PULL_OBJECT: return read_object(r, arena);
	case PULL_ARRAY: return read_array(r, arena);
	case PULL_STRING: return read_string(r, arena);
	case PULL_NUMBER: return read_number(r);
	case PULL_BOOL: pull_bool(r, &flag); return json_boolean(flag);
	case PULL_NULL: pull_null(r); return json_null();
	case PULL_BAD:
	case PULL_END: break;
	}
	return NULL;
}

static bool is_skipped_whole(const char *text, size_t size)
{
	struct json_reader r;

	pull_init(&r, text, size);
	pull_skip(&r);
	return pull_finish(&r, NULL) == 0;
}

/*
 * Jansson also refuses numbers past its types and texts with NUL; those are no matter of
 * grammar.
 */
static bool is_judged(const json_error_t *error)
{
	return json_error_code(error) != json_error_numeric_overflow &&
	       json_error_code(error) != json_error_null_character &&
	       json_error_code(error) != json_error_null_byte_in_key;
}

/* Returns whether the text was taken. */
static bool compare(const char *given, size_t size)
{
	char *text = malloc(size ? size : 1);
	json_t *expected, *read = NULL;
	struct json_reader r;
	struct arena arena;
	json_error_t error;
	bool taken;

	assert_non_null(text);
	if (size)
		memcpy(text, given, size);
	arena_init(&arena, 64 << 20);
	expected = json_loadb(text, size, JSON_DECODE_ANY, &error);
	taken = is_skipped_whole(text, size);
	pull_init(&r, text, size);
	read = read_value(&r, &arena);
	if (memchr(text, '\0', size)) { /* jansson takes one behind the value */
		assert_false(taken || pull_finish(&r, NULL) == 0);
	} else if (expected) {
		if (pull_finish(&r, NULL) < 0 || !taken || !read || !json_equal(read, expected))
			fail_msg("differs from jansson: %.*s: %s", (int)size, given, r.problem);
	} else if (is_judged(&error)) {
		if (taken || pull_finish(&r, NULL) == 0)
			fail_msg("jansson refuses (%s): %.*s", error.text, (int)size, given);
	}
	json_decref(expected);
	json_decref(read);
	arena_deinit(&arena);
	free(text);
	return taken;
}

static const char *const taken[] = {
	"{}",
	"[]",
	"0",
	"-0",
	"1",
	"-1",
	"\"\"",
	"true",
	"false",
	"null",
	" \t\r\n[ ] ",
	"{\"a\":1}",
	"{ \"a\" : [ 1 , 2 ] , \"b\" : { } }",
	"[[[[[]]]]]",
	"[0.5,1e3,1E+3,1e-3,-0.0]",
	"9223372036854775807",
	"-9223372036854775808",
	"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
	"\"\\u00e9\\u20AC\"",
	"\"\\ud83d\\ude00\"",
	"\"\\ud800\\udc00\\udbff\\udfff\"",
	"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
	"\"\x7f\"",
	"{\"\":\"\"}",
	"[1,\"2\",true,false,null,{},[]]",
	"\"1234567\\n1234567\\\\\"",
	"[\"\xe2\x80\xa8\"]",
	"{\"a\":{\"b\":{\"c\":[{\"d\":null}]}},\"e\":\"f\"}",
};

static const char *const refused[] = {
	"",
	" ",
	"{",
	"}",
	"[",
	"]",
	"\"",
	",",
	":",
	"{]",
	"[}",
	"[1,]",
	"[,1]",
	"[1 2]",
	"[1,,2]",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1,}",
	"{,}",
	"{\"a\" 1}",
	"{a:1}",
	"{1:2}",
	"{\"a\":1 \"b\":2}",
	"[] []",
	"1 2",
	"[1]x",
	"tru",
	"True",
	"nul",
	"nulll",
	"falsey",
	"truefalse",
	"01",
	"-",
	"-01",
	"+1",
	"1.",
	".5",
	"1e",
	"1e+",
	"1.e3",
	"0x10",
	"1_000",
	"NaN",
	"Infinity",
	"-Infinity",
	"'a'",
	"\"a",
	"\"a\\\"",
	"\"\\\"",
	"\"\\x41\"",
	"\"\\u12\"",
	"\"\\u12g4\"",
	"\"\\ud83d\"",
	"\"\\ud83dx\"",
	"\"\\ud83d\\n\"",
	"\"\\ud83d\\u0041\"",
	"\"\\ude00\"",
	"\"\\ude00\\ud83d\"",
	"\"\\ud83d\\ud83d\"",
	"\"a\tb\"",
	"\"a\nb\"",
	"\"\x01\"",
	"\"\x1f\"",
	"\"\xff\"",
	"\"\xc3\"",
	"\"\xc0\x80\"",
	"\"\xed\xa0\x80\"",
	"\"\xf4\x90\x80\x80\"",
	"\xef\xbb\xbf{}",
	"// c\n1",
	"/**/1",
	"[1]\f",
	"\v1",
	("\xc2\xa0"
	 "1"),
	"{\"a\":1}}",
	"[[]",
	"{\"a\":[}",
	"\"1234567\n\"",
	"\"12345678\x1f\"",
};

static void known_texts_are_taken_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (!compare(taken[i], strlen(taken[i])))
			fail_msg("refused: %s", taken[i]);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (compare(refused[i], strlen(refused[i])))
			fail_msg("taken: %s", refused[i]);
	assert_false(compare("1\0", 2));
	assert_false(compare("\"a\0b\"", 5));
	assert_false(compare("\0", 1));
}

/* Random documents. */

static void add_space(struct dice *dice, struct buf *out)
{
	while (!dice_below(dice, 6))
		buf_addc(out, " \t\n\r"[dice_below(dice, 4)]);
}

static void add_string(struct dice *dice, struct buf *out)
{
	static const char *const pieces[] = {
		"a",
		"Z",
		"0",
		" ",
		"/",
		"\\\"",
		"\\\\",
		"\\/",
		"\\b",
		"\\f",
		"\\n",
		"\\r",
		"\\t",
		"\\u0041",
		"\\u00e9",
		"\\uFFFF",
		"\\ud83d\\ude00",
		"\xc3\xa9",
		"\xe2\x82\xac",
		"\xf0\x9f\x98\x80",
		"\x7f",
		"abcdefgh",
		"{",
		"]",
		",",
		":",
	};

	buf_addc(out, '"');
	for (uint32_t left = dice_below(dice, 24); left; left--)
		buf_adds(out, pieces[dice_below(dice, ARRAY_SIZE(pieces))]);
	buf_addc(out, '"');
}

static void add_number(struct dice *dice, struct buf *out)
{
	int64_t number = (int64_t)(dice_roll(dice) >> dice_below(dice, 64));

	buf_addi(out, dice_below(dice, 2) ? number : -(number >> 1));
	if (!dice_below(dice, 4))
		buf_addf(out, ".%u", dice_below(dice, 1000));
	if (!dice_below(dice, 8))
		buf_addf(out, "%s%u", dice_below(dice, 2) ? "e" : "E-", dice_below(dice, 20));
}

static void add_value(struct dice *dice, struct buf *out, uint32_t depth)
{
	static const char *const words[] = { "true", "false", "null", "{}", "[]" };
	uint32_t what = dice_below(dice, depth ? 8 : 4), key = 0;

	add_space(dice, out);
	if (what == 0) {
		add_number(dice, out);
	} else if (what < 3) {
		add_string(dice, out);
	} else if (what == 3) {
		buf_adds(out, words[dice_below(dice, ARRAY_SIZE(words))]);
	} else {
		buf_addc(out, what < 6 ? '{' : '[');
		for (uint32_t left = dice_below(dice, 6); left; left--, key++) {
			add_space(dice, out);
			if (what < 6) /* each key once: of doubled ones jansson keeps the last */
				buf_addf(out, "\"%u%s", key,
					 dice_below(dice, 2) ? "\":" : "\\u00e9\\n\" :");
			add_value(dice, out, depth - 1);
			if (left > 1)
				buf_addc(out, ',');
		}
		buf_addc(out, what < 6 ? '}' : ']');
	}
	add_space(dice, out);
}

static void random_documents_are_read_as_jansson_reads_them(void **state)
{
	struct dice dice = { 11 };

	(void)state;
	for (int i = 0; i < 4000; i++) {
		AUTO_BUF text = BUF_INIT;

		add_value(&dice, &text, 7);
		if (!compare(buf_text(&text), text.size))
			fail_msg("refused: %s", buf_text(&text));
	}
}

static void damaged_documents_are_judged_as_jansson_judges_them(void **state)
{
	static const char marks[] = "{}[]\",:\\ue0-+.1tfn \t\n\x01\x80\xff";
	struct dice dice = { 12 };
	int refusals = 0;

	(void)state;
	for (int i = 0; i < 6000; i++) {
		AUTO_BUF text = BUF_INIT;
		size_t at;

		add_value(&dice, &text, 4);
		for (uint32_t times = 1 + dice_below(&dice, 3); times && text.size; times--) {
			at = dice_below(&dice, (uint32_t)text.size);
			if (dice_below(&dice, 3)) {
				text.data[at] = marks[dice_below(&dice, sizeof(marks))];
			} else {
				memmove(text.data + at, text.data + at + 1, text.size - at);
				text.size--;
			}
		}
		refusals += !compare(buf_text(&text), text.size);
	}
	assert_true(refusals > 1000 && refusals < 6000);
}

/* Strings are scanned in words: every byte at every place of some words, alone and twice. */
static void every_byte_of_a_string_is_looked_at(void **state)
{
	char text[28];

	(void)state;
	for (int byte = 1; byte < 256; byte++) {
		for (size_t at = 1; at < sizeof(text) - 1; at++) {
			memset(text, 'a', sizeof(text));
			text[0] = text[sizeof(text) - 1] = '"';
			text[at] = (char)byte;
			compare(text, sizeof(text));
			if (at > 1)
				text[at - 1] = (char)byte;
			compare(text, sizeof(text));
		}
	}
}

static void every_truncation_of_an_object_is_refused(void **state)
{
	static const char text[] =
		"{\"kind\":\"Pod\",\"n\":[1,-2.5e3,{\"\xc3\xa9\":\"\\ud83d\\ude00 "
		"\xf0\x9f\x98\x80\\n\"},true,false,null],"
		"\"long\":\"0123456789abcdef0123456789abcdef\",\"o\":{\"p\":{}}}";

	(void)state;
	assert_true(compare(text, sizeof(text) - 1));
	for (size_t size = 0; size < sizeof(text) - 1; size++)
		if (compare(text, size))
			fail_msg("taken: %.*s", (int)size, text);
}

static void nesting_has_a_limit(void **state)
{
	char text[2 * PULL_DEPTH_MAX + 8];
	struct json_reader r;
	struct err err;

	(void)state;
	memset(text, '[', PULL_DEPTH_MAX);
	memset(text + PULL_DEPTH_MAX, ']', PULL_DEPTH_MAX);
	assert_true(compare(text, 2 * PULL_DEPTH_MAX));
	memset(text, '[', PULL_DEPTH_MAX + 1);
	memset(text + PULL_DEPTH_MAX + 1, ']', PULL_DEPTH_MAX + 1);
	pull_init(&r, text, 2 * PULL_DEPTH_MAX + 2);
	pull_skip(&r);
	assert_int_equal(pull_finish(&r, &err), -1);
	assert_non_null(strstr(err.text, "nested too deep"));
	assert_non_null(strstr(err.text, "at byte 64:"));
}

/* Calls */

static void members_are_found_by_key(void **state)
{
	static const char text[] = "{\"seq\":18446744073709551615,\"k\\u0065y\":\"a\\nb\","
				   "\"other\":[{},2],\"minus\":-5,\"yes\":true,\"no\":null}";
	char copied[8] = "", *made = NULL;
	struct json_slice key, slice;
	struct json_reader r;
	struct arena arena;
	uint64_t seq = 0;
	int64_t minus = 0;
	bool yes = false;
	int others = 0;

	(void)state;
	arena_init(&arena, 1000);
	pull_init(&r, text, sizeof(text) - 1);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "seq")) {
			pull_uint(&r, &seq);
		} else if (pull_key_is(&key, "keys") || pull_key_is(&key, "ke")) {
			fail();
		} else if (pull_key_is(&key, "key")) {
			pull_string(&r, &slice);
			made = pull_text(&r, &slice, &arena);
			pull_copy(&r, &slice, copied, sizeof(copied));
		} else if (pull_key_is(&key, "minus")) {
			pull_int(&r, &minus);
		} else if (pull_key_is(&key, "yes")) {
			pull_bool(&r, &yes);
		} else if (pull_key_is(&key, "no")) {
			pull_null(&r);
		} else {
			others++;
			assert_false(pull_key_is(&key, "othe"));
			assert_false(pull_key_is(&key, "others"));
			pull_skip(&r);
		}
	}
	assert_int_equal(pull_finish(&r, NULL), 0);
	assert_true(seq == UINT64_MAX);
	assert_string_equal(made, "a\nb");
	assert_string_equal(copied, "a\nb");
	assert_int_equal(minus, -5);
	assert_true(yes);
	assert_int_equal(others, 1);
	arena_deinit(&arena);
}

enum want { INT, UINT, BOOL, STRING, OBJECT, ARRAY, NOTHING };

/* Reads text as one value; what is returned must be nothing when there is a problem. */
static const char *problem_of(const char *text, enum want want, size_t room)
{
	struct json_slice slice = { "x", 1, false };
	char out[64] = "x";
	struct json_reader r;
	uint64_t uint = 9;
	int64_t number = 9;
	bool flag = true;

	pull_init(&r, text, strlen(text));
	switch (want) {
	case INT:
		pull_int(&r, &number);
		assert_true(!r.problem || number == 0);
		break;
	case UINT:
		pull_uint(&r, &uint);
		assert_true(!r.problem || uint == 0);
		break;
	case BOOL:
		pull_bool(&r, &flag);
		assert_true(!r.problem || !flag);
		break;
	case STRING:
		pull_string(&r, &slice);
		assert_true(!r.problem || slice.size == 0);
		pull_copy(&r, &slice, out, room);
		assert_true(!r.problem || out[0] == '\0');
		break;
	case OBJECT: pull_object(&r); break;
	case ARRAY: pull_array(&r); break;
	case NOTHING: pull_null(&r); break;
	}
	if (r.problem) {
		assert_int_equal(pull_peek(&r), PULL_BAD);
		assert_false(pull_element(&r));
		assert_false(pull_member(&r, &slice));
		assert_int_equal(pull_finish(&r, NULL), -1);
	}
	return r.problem;
}

static void values_of_another_kind_are_problems(void **state)
{
	static const struct {
		const char *text, *problem;
		enum want want;
		size_t room;
	} cases[] = {
		{ "9223372036854775807", NULL, INT, 0 },
		{ "-9223372036854775808", NULL, INT, 0 },
		{ "9223372036854775808", "too large", INT, 0 },
		{ "-9223372036854775809", "too large", INT, 0 },
		{ "99999999999999999999", "too large", INT, 0 },
		{ "18446744073709551615", NULL, UINT, 0 },
		{ "18446744073709551616", "too large", UINT, 0 },
		{ "-1", "negative", UINT, 0 },
		{ "-0", NULL, UINT, 0 },
		{ "1.0", "whole number", INT, 0 },
		{ "1e3", "whole number", UINT, 0 },
		{ "\"1\"", "a number is expected", INT, 0 },
		{ "null", "a number is expected", INT, 0 },
		{ "", "text ends", INT, 0 },
		{ "01", "start with 0", INT, 0 },
		{ "1", "true or false", BOOL, 0 },
		{ "trux", "a value is expected", BOOL, 0 },
		{ "true", NULL, BOOL, 0 },
		{ "5", "a string is expected", STRING, 10 },
		{ "\"abc\"", NULL, STRING, 4 },
		{ "\"abc\"", "too long", STRING, 3 },
		{ "\"ab\\n\"", NULL, STRING, 4 },
		{ "\"ab\\n\"", "too long", STRING, 3 },
		{ "\"\\ud83d\\ude00\"", NULL, STRING, 5 },
		{ "\"\\ud83d\\ude00\"", "too long", STRING, 4 },
		{ "\"a\\u0000b\"", "NUL", STRING, 10 },
		{ "\"\"", NULL, STRING, 1 },
		{ "[]", "an object is expected", OBJECT, 0 },
		{ "{}", "an array is expected", ARRAY, 0 },
		{ "0", "null is expected", NOTHING, 0 },
		{ "nul", "a value is expected", NOTHING, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *problem = problem_of(cases[i].text, cases[i].want, cases[i].room);

		if (!cases[i].problem)
			assert_null(problem);
		else if (!problem || !strstr(problem, cases[i].problem))
			fail_msg("%s: %s, not %s", cases[i].text, problem, cases[i].problem);
	}
}

static void the_place_of_a_problem_is_its_byte(void **state)
{
	static const struct {
		const char *text, *place;
	} cases[] = {
		{ "", "at byte 0:" },
		{ "[1,x]", "at byte 3:" },
		{ "[1 2]", "at byte 3:" },
		{ "{\"a\" 1}", "at byte 5:" },
		{ "{\"a\":\"b\xff\"}", "at byte 7:" },
		{ "[1] 2", "at byte 4:" },
		{ "[\"\\q\"]", "at byte 2:" },
		{ "[1.x]", "at byte 3:" },
		{ "[1,2", "at byte 4:" },
	};
	struct json_reader r;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		pull_init(&r, cases[i].text, strlen(cases[i].text));
		pull_skip(&r);
		assert_int_equal(pull_finish(&r, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		if (!strstr(err.text, cases[i].place))
			fail_msg("%s: %s", cases[i].text, err.text);
	}
}

/* A caller who forgets a value or reads one too many is told so, and never loops. */
static void misuse_is_a_problem(void **state)
{
	struct json_slice key;
	struct json_reader r;
	int64_t number;
	int rounds = 0;

	(void)state;
	pull_init(&r, "[1,2]", 5);
	pull_array(&r);
	while (pull_element(&r))
		rounds++;
	assert_int_equal(rounds, 1);
	assert_int_equal(pull_finish(&r, NULL), -1);

	pull_init(&r, "[[,],1]", 7);
	pull_array(&r);
	assert_true(pull_element(&r));
	pull_array(&r);
	while (pull_element(&r))
		;
	pull_element(&r);
	pull_int(&r, &number);
	pull_element(&r);
	assert_int_equal(pull_finish(&r, NULL), -1);

	pull_init(&r, "[1 2]", 5);
	pull_array(&r);
	assert_true(pull_element(&r));
	pull_int(&r, &number);
	pull_int(&r, &number);
	assert_int_equal(number, 0);
	assert_int_equal(pull_finish(&r, NULL), -1);

	pull_init(&r, "{\"a\":1}", 7);
	pull_object(&r);
	assert_true(pull_member(&r, &key));
	assert_false(pull_member(&r, &key));
	assert_int_equal(pull_finish(&r, NULL), -1);

	pull_init(&r, "[{}]", 4);
	pull_array(&r);
	assert_false(pull_member(&r, &key));
	assert_int_equal(pull_finish(&r, NULL), -1);

	pull_init(&r, "[1,2]", 5);
	pull_array(&r);
	assert_int_equal(pull_finish(&r, NULL), -1);

	pull_init(&r, "[1,2]", 5);
	pull_skip(&r);
	assert_int_equal(pull_peek(&r), PULL_END);
	pull_skip(&r);
	assert_int_equal(pull_finish(&r, NULL), -1);

	pull_init(&r, " ", 1);
	assert_int_equal(pull_peek(&r), PULL_END);
	assert_int_equal(pull_finish(&r, NULL), -1);
}

static void the_first_problem_stays(void **state)
{
	struct json_reader r;
	struct err err;

	(void)state;
	pull_init(&r, "[1,x", 4);
	pull_array(&r);
	assert_true(pull_element(&r));
	pull_fail(&r, "this number is odd");
	pull_fail(&r, "another problem");
	pull_skip(&r);
	assert_int_equal(pull_finish(&r, &err), -1);
	assert_non_null(strstr(err.text, "this number is odd"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_texts_are_taken_or_refused),
		cmocka_unit_test(random_documents_are_read_as_jansson_reads_them),
		cmocka_unit_test(damaged_documents_are_judged_as_jansson_judges_them),
		cmocka_unit_test(every_byte_of_a_string_is_looked_at),
		cmocka_unit_test(every_truncation_of_an_object_is_refused),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(members_are_found_by_key),
		cmocka_unit_test(values_of_another_kind_are_problems),
		cmocka_unit_test(the_place_of_a_problem_is_its_byte),
		cmocka_unit_test(misuse_is_a_problem),
		cmocka_unit_test(the_first_problem_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
