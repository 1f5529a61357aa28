/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <string.h>

#include "base/check.h"
#include "engine/report.h"

static int parse(const char *line, struct report *report)
{
	struct err err;

	return report_parse(line, strlen(line), report, &err);
}

static void progress_checkpoint_and_watch_are_read(void **state)
{
	struct report report;

	(void)state;
	assert_int_equal(parse("{\"step\": 1200}", &report), 0);
	assert_int_equal(report.step, 1200);
	assert_false(report.has_checkpoint || report.watch);
	assert_int_equal(parse(" { \"checkpoint\" : \"step-\\u0031\" , \"step\" : 0 } ", &report),
			 0);
	assert_true(report.has_checkpoint);
	assert_string_equal(report.checkpoint, "step-1");
	assert_int_equal(report.step, 0);
	assert_int_equal(parse("{\"watch\": true}", &report), 0);
	assert_true(report.watch);
	assert_int_equal(report.step, -1);
}

static void what_is_no_report_is_refused_with_a_reason(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"1",
		"null",
		"{\"step\":1",
		"{\"step\":1}}",
		"{\"step\":-1}",
		"{\"step\":1.0}",
		"{\"step\":1e3}",
		"{\"step\":\"1\"}",
		"{\"step\":9007199254740993}",
		"{\"step\":99999999999999999999}",
		"{\"step\":1,\"step\":1}",
		"{\"watch\":1}",
		"{\"watch\":false}",
		"{\"checkpoint\":1}",
		"{\"checkpoint\":\"\"}",
		"{\"checkpoint\":\"..\"}",
		"{\"checkpoint\":\"a/../b\"}",
		"{\"checkpoint\":\"/..\"}",
		"{\"checkpoint\":\"a\\u0000\"}",
		"{\"checkpoint\":\"a\\n\"}",
		"{\"checkpoint\":\"\\u007f\"}",
		"{\"checkpoint\":\"\xff\"}",
		"{\"other\":1}",
		"{\"step\":1,\"other\":{}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct report report = { .step = 77 };
		struct err err = { 0 };

		assert_true(report_parse(bad[i], strlen(bad[i]), &report, &err) < 0);
		assert_int_equal(report.step, 77); /* written on success only */
		assert_true(err.text[0] != '\0');
	}
}

static void names_that_only_look_like_dots_are_fine(void **state)
{
	struct report report;

	(void)state;
	assert_int_equal(parse("{\"checkpoint\":\"..a/b..\"}", &report), 0);
	assert_int_equal(parse("{\"checkpoint\":\"/a/.../.b\"}", &report), 0);
}

static void the_limits_hold_to_the_byte(void **state)
{
	char line[REPORT_LINE_MAX + 2];
	struct report report;
	struct err err;

	(void)state;
	memset(line, ' ', sizeof(line));
	memcpy(line, "{\"step\":1}", 10);
	assert_int_equal(report_parse(line, REPORT_LINE_MAX, &report, &err), 0);
	assert_true(report_parse(line, REPORT_LINE_MAX + 1, &report, &err) < 0);
	assert_int_equal(err.code, ERR_TOO_LARGE);

	for (int length = REPORT_PATH_MAX - 1; length <= REPORT_PATH_MAX; length++) {
		int n = snprintf(line, sizeof(line), "{\"checkpoint\":\"");
		memset(line + n, 'x', (size_t)length);
		snprintf(line + n + length, sizeof(line) - (size_t)(n + length), "\"}");
		assert_int_equal(parse(line, &report) == 0, length < REPORT_PATH_MAX);
	}
}

static void relative_checkpoints_lie_in_the_folder(void **state)
{
	struct report report;
	char path[REPORT_PATH_MAX], folder[REPORT_PATH_MAX];
	struct err err;

	(void)state;
	assert_int_equal(parse("{\"checkpoint\":\"s1\"}", &report), 0);
	assert_int_equal(report_path(&report, "/ck", path, &err), 0);
	assert_string_equal(path, "/ck/s1");
	assert_true(report_path(&report, NULL, path, &err) < 0);
	/* With "/s1" and the NUL behind it the path just fits, or just does not. */
	memset(folder, 'f', sizeof(folder));
	folder[REPORT_PATH_MAX - 3] = '\0';
	assert_int_equal(report_path(&report, folder, path, &err), -(int)ERR_TOO_LARGE);
	folder[REPORT_PATH_MAX - 4] = '\0';
	assert_int_equal(report_path(&report, folder, path, &err), 0);
	assert_int_equal(parse("{\"checkpoint\":\"/abs\"}", &report), 0);
	assert_int_equal(report_path(&report, "/ck", path, &err), 0);
	assert_string_equal(path, "/abs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_checkpoint_and_watch_are_read),
		cmocka_unit_test(what_is_no_report_is_refused_with_a_reason),
		cmocka_unit_test(names_that_only_look_like_dots_are_fine),
		cmocka_unit_test(the_limits_hold_to_the_byte),
		cmocka_unit_test(relative_checkpoints_lie_in_the_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
