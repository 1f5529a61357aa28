/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <errno.h>

#include "base/err.h"
#include "base/parse.h"

static void setting_an_error_is_the_result(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(err_set(&err, ERR_NOT_FOUND, "queue \"%s\" does not exist", "a"),
			 -(int)ERR_NOT_FOUND);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_string_equal(err.text, "queue \"a\" does not exist");
	assert_int_equal(err.line, 0);
	assert_string_equal(err.file, "");
	assert_int_equal(err_at(&err, ERR_INVALID, "job.yaml", 3, 7, "bad %d", 5),
			 -(int)ERR_INVALID);
	assert_string_equal(err.text, "bad 5");
	assert_string_equal(err.file, "job.yaml");
	assert_int_equal(err.line, 3);
	assert_int_equal(err.column, 7);
	err_set(&err, ERR_IO, "other");
	assert_int_equal(err.line, 0);
	assert_int_equal(err.column, 0);
	assert_string_equal(err.file, "");
}

static void nobody_needs_to_listen(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_QUOTA, "x"), -(int)ERR_QUOTA);
	assert_int_equal(err_at(NULL, ERR_INVALID, "f", 1, 1, "x"), -(int)ERR_INVALID);
	assert_int_equal(err_errno(NULL, ERR_IO, ENOENT, "x"), -(int)ERR_IO);
	assert_true(err_prefix(NULL, "x") < 0);
}

static void a_prefix_goes_before_and_keeps_code_and_place(void **state)
{
	struct err err;

	(void)state;
	err_at(&err, ERR_CORRUPT, "journal", 2, 1, "checksum differs");
	assert_int_equal(err_prefix(&err, "segment %d", 4), -(int)ERR_CORRUPT);
	assert_string_equal(err.text, "segment 4: checksum differs");
	assert_int_equal(err.line, 2);
	assert_string_equal(err.file, "journal");
}

static void long_texts_end_with_a_whole_character(void **state)
{
	char text[2 * ERR_TEXT_MAX];
	struct err err;

	(void)state;
	for (size_t shift = 0; shift < 3; shift++) {
		memset(text, 'a', shift);
		for (size_t i = shift; i + 3 < sizeof(text); i += 3)
			memcpy(text + i, "\xe2\x82\xac", 4);
		err_set(&err, ERR_INVALID, "%s", text);
		assert_true(text_is_utf8(err.text, strlen(err.text)));
		assert_true(strlen(err.text) >= ERR_TEXT_MAX - 4);
		err_prefix(&err, "%s", "p");
		assert_true(text_is_utf8(err.text, strlen(err.text)));
		assert_true(strlen(err.text) >= ERR_TEXT_MAX - 4);
		err_at(&err, ERR_INVALID, text, 1, 1, "x");
		assert_true(text_is_utf8(err.file, strlen(err.file)));
		assert_true(strlen(err.file) >= ERR_FILE_MAX - 4);
		err_prefix(&err, "%s", text);
		assert_true(text_is_utf8(err.text, strlen(err.text)));
		err_errno(&err, ERR_IO, EIO, "%s", text);
		assert_true(text_is_utf8(err.text, strlen(err.text)));
	}
}

static void reasons_are_words_never_numbers(void **state)
{
	struct err err;

	(void)state;
	err_errno(&err, ERR_IO, ENOSPC, "cannot write \"%s\"", "log");
	assert_string_equal(err.text, "cannot write \"log\": no space left on the disk");
	assert_true(err_is_full(&err));
	err_prefix(&err, "job 7");
	assert_true(err_is_full(&err));
	err_errno(&err, ERR_IO, EIO, "x");
	assert_false(err_is_full(&err));
	err_errno(&err, ERR_IO, EDQUOT, "x");
	assert_true(err_is_full(&err));
	err_set(&err, ERR_IO, "x");
	assert_false(err_is_full(&err));
	assert_false(err_is_full(NULL));
	for (int errnum = -1; errnum < 5000; errnum++) {
		const char *text = err_errno_text(errnum);

		assert_true(strlen(text) > 3);
		assert_null(strstr(text, "Unknown error"));
	}
}

static void every_code_is_found_by_its_name(void **state)
{
	(void)state;
	for (int code = ERR_NONE + 1; code < ERR_CODE_COUNT; code++) {
		assert_int_equal(err_code_find(err_code_name((enum err_code)code)), code);
		assert_true(err_code_http((enum err_code)code) >= 400);
		assert_true(err_code_exit((enum err_code)code) > 0);
		assert_true(strlen(err_code_text((enum err_code)code)) > 0);
	}
	assert_int_equal(err_code_find("nothing of the kind"), ERR_INTERNAL);
	assert_int_equal(err_code_exit(ERR_NONE), 0);
	assert_string_equal(err_code_name((enum err_code)999), "internal");
	assert_string_equal(err_code_name((enum err_code) - 1), "internal");
}

/* These numbers are part of the interface: the test is a second place that must be changed. */
static void codes_keep_their_numbers(void **state)
{
	(void)state;
	assert_int_equal(err_code_exit(ERR_INVALID), 2);
	assert_int_equal(err_code_exit(ERR_NOT_FOUND), 3);
	assert_int_equal(err_code_exit(ERR_FORBIDDEN), 4);
	assert_int_equal(err_code_exit(ERR_CONFLICT), 5);
	assert_int_equal(err_code_exit(ERR_UNAVAILABLE), 6);
	assert_int_equal(err_code_exit(ERR_TIMEOUT), 7);
	assert_int_equal(err_code_exit(ERR_QUOTA), 8);
	assert_int_equal(err_code_exit(ERR_INTERNAL), 70);
	assert_int_equal(err_code_http(ERR_UNAUTHENTICATED), 401);
	assert_int_equal(err_code_http(ERR_NOT_FOUND), 404);
	assert_int_equal(err_code_http(ERR_CONFLICT), 409);
	assert_int_equal(err_code_http(ERR_TOO_LARGE), 413);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(setting_an_error_is_the_result),
		cmocka_unit_test(nobody_needs_to_listen),
		cmocka_unit_test(a_prefix_goes_before_and_keeps_code_and_place),
		cmocka_unit_test(long_texts_end_with_a_whole_character),
		cmocka_unit_test(reasons_are_words_never_numbers),
		cmocka_unit_test(every_code_is_found_by_its_name),
		cmocka_unit_test(codes_keep_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
