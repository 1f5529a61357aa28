/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/jobfile/jobfile.h"
#include "base/buf.h"
#include "base/check.h"
#include "cli/client.h"
#include "cli/submission/submission.h"

static struct arena arena;

static int begin(void **state)
{
	(void)state;
	arena_init(&arena, 64 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_deinit(&arena);
	return 0;
}

static const struct flag flags[] = {
	{ "size", 's', "N", "a size", false },
	{ "env", 'e', "NAME", "a name", true },
	{ "quick", 'q', NULL, "a switch", false },
	{ "form", 0, "a|b", "a choice", false },
	{ "every", 0, "DURATION|auto", "a length, or a word", false },
	{ 0 },
};
static const struct command plain = {
	.name = "test", .arguments = "ARG", .flags = flags, .most = 2
};
static const struct command rest = { .name = "test",
				     .arguments = "COMMAND...",
				     .flags = flags,
				     .most = -1,
				     .rest = true,
				     .least = 1 };

#define WORDS(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static int parse(struct invocation *in, const struct command *command, const char *const *words,
		 struct err *err)
{
	int count = 0;

	while (words[count])
		count++;
	*in = (struct invocation){ .command = command, .arena = &arena };
	return args_parse(in, words, count, err);
}

static void flags_have_four_forms(void **state)
{
	struct invocation in;
	struct err err;

	(void)state;
	assert_int_equal(parse(&in, &plain, WORDS("--size", "1", "x"), &err), 0);
	assert_string_equal(arg_flag(&in, "size"), "1");
	assert_string_equal(in.args[0], "x");
	assert_int_equal(parse(&in, &plain, WORDS("--size=2"), &err), 0);
	assert_string_equal(arg_flag(&in, "size"), "2");
	assert_int_equal(parse(&in, &plain, WORDS("-s", "3"), &err), 0);
	assert_string_equal(arg_flag(&in, "size"), "3");
	assert_int_equal(parse(&in, &plain, WORDS("-s4", "-q"), &err), 0);
	assert_string_equal(arg_flag(&in, "size"), "4");
	assert_true(arg_has(&in, "quick"));
	assert_int_equal(parse(&in, &plain, WORDS("--size="), &err), 0);
	assert_string_equal(arg_flag(&in, "size"), "");
	assert_int_equal(parse(&in, &plain, WORDS("-s", "-5"), &err), 0);
	assert_string_equal(arg_flag(&in, "size"), "-5");
	assert_int_equal(parse(&in, &plain, WORDS("--every", "90s"), &err), 0);
	assert_string_equal(arg_flag(&in, "every"), "90s");
	assert_int_equal(parse(&in, &plain, WORDS("--every", "auto"), &err), 0);
}

static void a_repeated_flag_keeps_all_its_values(void **state)
{
	struct invocation in;
	struct err err;

	(void)state;
	assert_int_equal(parse(&in, &plain, WORDS("-e", "a", "-eb", "--env=c"), &err), 0);
	assert_string_equal(arg_flag_at(&in, "env", 0), "a");
	assert_string_equal(arg_flag_at(&in, "env", 2), "c");
	assert_null(arg_flag_at(&in, "env", 3));
}

static void two_dashes_end_the_flags(void **state)
{
	struct invocation in;
	struct err err;

	(void)state;
	assert_int_equal(parse(&in, &plain, WORDS("--", "--size", "-q"), &err), 0);
	assert_int_equal(in.arg_count, 2);
	assert_false(arg_has(&in, "size"));
	assert_int_equal(parse(&in, &plain, WORDS("-"), &err), 0);
	assert_string_equal(in.args[0], "-");
}

static void a_command_line_keeps_its_own_flags(void **state)
{
	struct invocation in;
	struct err err;

	(void)state;
	assert_int_equal(parse(&in, &rest, WORDS("-q", "ls", "-l", "--size", "--", "x"), &err), 0);
	assert_int_equal(in.arg_count, 5);
	assert_string_equal(in.args[3], "--");
	assert_int_equal(parse(&in, &rest, WORDS("-q", "--", "ls", "--", "x"), &err), 0);
	assert_int_equal(in.arg_count, 3);
}

static void help_is_heard_even_when_arguments_are_missing(void **state)
{
	struct invocation in;
	struct err err;

	(void)state;
	assert_int_equal(parse(&in, &rest, WORDS("--help"), &err), INVOCATION_HELP);
	assert_int_equal(parse(&in, &rest, WORDS("-h"), &err), INVOCATION_HELP);
	assert_int_equal(parse(&in, &rest, WORDS("ls", "--help"), &err), 0);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *words[4];
		const char *message;
	} cases[] = {
		{ { "--sise", "1" }, "did you mean --size?" },
		{ { "--nonsense" }, "has no flag --nonsense" },
		{ { "-z" }, "has no flag -z" },
		{ { "--size" }, "--size needs a value: N" },
		{ { "--size", "--quick" },
		  "--size needs a value: N (if it is to be \"--quick\", write --size=--quick)" },
		{ { "--size=1", "--size=2" }, "--size is given twice" },
		{ { "--quick=yes" }, "takes no value" },
		{ { "--form", "c" }, "one of a|b, not \"c\"" },
		{ { "--form", "a|b" }, "one of a|b" },
		{ { "a", "b", "c" }, "does not take \"c\"" },
	};
	struct invocation in;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(&in, &plain, cases[i].words, &err), -(int)ERR_INVALID);
		if (!strstr(err.text, cases[i].message))
			fail_msg("%s", err.text);
	}
	assert_true(parse(&in, &rest, WORDS("-q"), &err) < 0);
	assert_non_null(strstr(err.text, "needs COMMAND..."));
}

static void too_many_flags_are_refused(void **state)
{
	const char **words = arena_new_array(&arena, const char *, FLAG_VALUES_MAX + 2);
	struct invocation in;
	struct err err;

	(void)state;
	for (int i = 0; i < FLAG_VALUES_MAX; i++)
		words[i] = "-ex";
	assert_int_equal(parse(&in, &plain, words, &err), 0);
	words[FLAG_VALUES_MAX] = "-ex";
	assert_int_equal(parse(&in, &plain, words, &err), -(int)ERR_TOO_LARGE);
}

static void numbers_of_jobs_are_checked(void **state)
{
	struct err err;
	uint32_t id;

	(void)state;
	assert_int_equal(arg_job("12", &id, &err), 0);
	assert_int_equal(id, 12);
	assert_true(arg_job("0", &id, &err) < 0);
	assert_true(arg_job("4294967296", &id, &err) < 0);
	assert_true(arg_job("12/1", &id, &err) < 0);
	assert_true(arg_job("", &id, &err) < 0);
}

static void paths_are_encoded(void **state)
{
	AUTO_BUF path = BUF_INIT;

	(void)state;
	assert_string_equal(client_path(&arena, "/a/%s/b/%u", "x/../y ?&%\xc3\xbc", 7u),
			    "/a/x%2F..%2Fy%20%3F%26%25%C3%BC/b/7");
	buf_adds(&path, "/a");
	query_add(&path, "q", "1&2=3");
	query_add(&path, "r", "x");
	assert_string_equal(path.data, "/a?q=1%262%3D3&r=x");
}

/* Flags of run become a job file */

static int from_flags(const char *const *words, struct submission *submission, struct err *err)
{
	struct invocation *in = arena_new(&arena, struct invocation);
	int rc = parse(in, command_find("run"), words, err);

	if (rc >= 0)
		rc = submission_from_flags(in, submission, err);
	if (rc >= 0)
		rc = submission_check(in, submission, err);
	return rc < 0 ? rc : submission_check_folder(submission, err);
}

static void flags_of_run_become_fields(void **state)
{
	struct submission submission;
	AUTO_BUF text = BUF_INIT;
	struct err err;

	(void)state;
	if (from_flags(WORDS("-g", "2", "-t", "2..4", "-m", "A", "-m", "B", "-e", "X=1", "-e",
			     "Y=", "--checkpoint", "signal", "--checkpoint-grace", "2m", "--after",
			     "3", "--after", "4", "--hold", "--no-preempt", "-C", "/", "--", "ls",
			     "-l", "7"),
		       &submission, &err) < 0)
		fail_msg("%s", err.text);
	jobfile_write(submission.document, &text);
	assert_string_equal(
		text.data,
		"{\"tasks\": \"2..4\", \"workdir\": \"/\", \"checkpoint\": {\"how\": \"signal\", \"grace\": \"2m\"}, "
		"\"gpus\": {\"count\": 2, \"model\": [\"A\", \"B\"]}, \"depends_on\": [3, 4], \"env\": {\"X\": \"1\", \"Y\": \"\"}, "
		"\"hold\": true, \"preempts\": false, \"command\": [\"ls\", \"-l\", \"7\"]}");
}

static void gpus_of_run_are_whole_ones_or_a_part(void **state)
{
	static const struct {
		const char *words[6];
		const char *gpus;
	} cases[] = {
		{ { "-g", "0.5", "ls" }, "{\"count\": 0.5}" },
		{ { "-g", "1/7", "ls" }, "{\"count\": \"1/7\"}" },
		{ { "-g", "2000MiB", "ls" }, "{\"memory\": \"2000MiB\"}" },
		{ { "--gpu-memory", "40GiB", "ls" }, "{\"count\": 1, \"memory\": \"40GiB\"}" },
		{ { "-g", "2", "--gpu-memory", "1GiB", "ls" },
		  "{\"count\": 2, \"memory\": \"1GiB\"}" },
	};
	struct submission submission;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_BUF text = BUF_INIT;

		if (from_flags(cases[i].words, &submission, &err) < 0)
			fail_msg("%s", err.text);
		jobfile_write(conf_find(submission.document, "gpus"), &text);
		assert_string_equal(text.data, cases[i].gpus);
	}
}

static void a_wrong_flag_is_named(void **state)
{
	static const struct {
		const char *words[6];
		const char *message;
	} cases[] = {
		{ { "-g", "1.5", "ls" }, "--gpus: \"1.5\" is neither a number of GPUs" },
		{ { "-g", "2GiB", "--gpu-memory", "1GiB", "ls" },
		  "--gpus 2GiB is a part of a GPU by its memory; leave out --gpu-memory" },
		{ { "-t", "x", "ls" }, "--tasks: \"x\" is not a whole number" },
		{ { "--limit", "3", "ls" }, "--limit: duration" },
		{ { "--priority", "9999", "ls" }, "--priority: " },
		{ { "-m", "a b", "ls" }, "--model: " },
		{ { "-e", "RANK=1", "ls" }, "--env: RANK is set by Fairlead" },
		{ { "-e", "NO_SUCH_VARIABLE_HERE", "ls" }, "there is no such variable here" },
		{ { "-e", "A=1", "-e", "A=2", "ls" }, "A is given twice" },
		{ { "--secret", "A", "ls" }, "--secret needs NAME=FILE" },
		{ { "--secret", "A=/no/such/file", "ls" }, "there is no such file" },
		{ { "--after", "x", "ls" }, "--after: " },
		{ { "-C", "/no/such/folder", "ls" },
		  "the working folder \"/no/such/folder\" can't be used" },
	};
	struct submission submission;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(from_flags(cases[i].words, &submission, &err) < 0);
		if (!strstr(err.text, cases[i].message))
			fail_msg("says: %s\nnot: %s", err.text, cases[i].message);
		assert_int_equal(err.line, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flags_have_four_forms, begin, end),
		cmocka_unit_test_setup_teardown(a_repeated_flag_keeps_all_its_values, begin, end),
		cmocka_unit_test_setup_teardown(two_dashes_end_the_flags, begin, end),
		cmocka_unit_test_setup_teardown(a_command_line_keeps_its_own_flags, begin, end),
		cmocka_unit_test_setup_teardown(help_is_heard_even_when_arguments_are_missing,
						begin, end),
		cmocka_unit_test_setup_teardown(what_is_wrong_is_said, begin, end),
		cmocka_unit_test_setup_teardown(too_many_flags_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(numbers_of_jobs_are_checked, begin, end),
		cmocka_unit_test_setup_teardown(paths_are_encoded, begin, end),
		cmocka_unit_test_setup_teardown(flags_of_run_become_fields, begin, end),
		cmocka_unit_test_setup_teardown(gpus_of_run_are_whole_ones_or_a_part, begin, end),
		cmocka_unit_test_setup_teardown(a_wrong_flag_is_named, begin, end),
	};

	CHECK(setenv("FAIRLEAD_GIT", "no", 1) ==
	      0); /* the folder of the build is in somebody's work tree */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
