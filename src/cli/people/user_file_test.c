/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "cli/people/user_file.h"

#include <string.h>

#include "base/check.h"

static int read_text(const char *text, struct arena *arena, struct user_row **rows, uint32_t *count,
		     struct err *err)
{
	*err = (struct err){ .code = ERR_NONE };
	return user_file_read("people.csv", text, strlen(text), arena, rows, count, err);
}

static void spreadsheets_are_read_as_they_are_written(void **state)
{
	static const char text[] = "\xef\xbb\xbf"
				   "team,name,uid,default_queue\r\n"
				   "vision,alice,,\r\n"
				   "\r\n"
				   "\"a \"\"team\"\", of two\",\"bob\",1002,night\r\n"
				   "vision,carl";
	struct user_row *rows;
	struct arena arena;
	struct err err;
	uint32_t count;

	(void)state;
	arena_init(&arena, 1 << 20);
	assert_int_equal(read_text(text, &arena, &rows, &count, &err), 0);
	assert_int_equal(count, 3);
	assert_string_equal(rows[0].value[USER_NAME], "alice");
	assert_string_equal(rows[0].value[USER_TEAM], "vision");
	assert_null(rows[0].value[USER_UID]);
	assert_null(rows[0].value[USER_ROLE]);
	assert_string_equal(rows[1].value[USER_TEAM], "a \"team\", of two");
	assert_string_equal(rows[1].value[USER_UID], "1002");
	assert_string_equal(rows[1].value[USER_QUEUE], "night");
	assert_int_equal(rows[1].line, 4);
	assert_string_equal(rows[2].value[USER_NAME], "carl");
	arena_deinit(&arena);
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "people.csv: there is no user in it" },
		{ "name\n", "people.csv: there is no user in it" },
		{ "team,role\nx,y\n", "people.csv:1:1: the first line must name the columns" },
		{ "name,tema\n",
		  "people.csv:1:6: there is no column \"tema\"; did you mean \"team\"?" },
		{ "name,\n", "people.csv:1:6: there is no column \"\"" },
		{ "name,name\n", "people.csv:1:6: column \"name\" is there twice" },
		{ "name,team\na,b,c\n", "people.csv:2:5: more values than the 2 columns" },
		{ "name,team\n,b\n", "people.csv:2:1: the user has no name" },
		{ "name\nal ice\n", "people.csv:2:1: " },
		{ "name\nann\nbob\nann\n",
		  "people.csv:4:1: user \"ann\" stands in line 2 already" },
		{ "name,team\nann,\"b\n", "people.csv:2:5: the quotation mark is not closed" },
		{ "name,team\nann,\"b\"c\n", "people.csv:2:8: expected a comma" },
		{ "name,team\nann,b\"c\n", "people.csv:2:6: a quotation mark inside a value" },
		{ "name\n\xff\n", "people.csv: it is no text in UTF-8" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct user_row *rows;
		struct arena arena;
		struct err err;
		uint32_t count;

		arena_init(&arena, 1 << 20);
		if (read_text(cases[i].text, &arena, &rows, &count, &err) >= 0 ||
		    strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("case %zu: \"%s\", not \"%s\"", i, err.text, cases[i].error);
		arena_deinit(&arena);
	}
}

static void values_and_files_have_limits(void **state)
{
	struct user_row *rows;
	struct arena arena;
	char text[700] = "name,team\nann,";
	struct err err;
	uint32_t count;

	(void)state;
	arena_init(&arena, 1 << 20);
	memset(text + strlen(text), 'x', 500);
	assert_int_equal(read_text(text, &arena, &rows, &count, &err), 0);
	text[strlen(text)] = 'x';
	assert_int_equal(read_text(text, &arena, &rows, &count, &err), -ERR_INVALID);
	assert_string_equal(err.text, "people.csv:2:5: the value is longer than 500 bytes");
	assert_int_equal(user_file_read("people.csv", text, USER_FILE_BYTES + 1, &arena, &rows,
					&count, &err),
			 -ERR_TOO_LARGE);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spreadsheets_are_read_as_they_are_written),
		cmocka_unit_test(what_is_wrong_is_said_with_its_place),
		cmocka_unit_test(values_and_files_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
