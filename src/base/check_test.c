/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "base/check.h"

static void check_false(void *data)
{
	CHECK(data == NULL);
}

static void a_check_that_holds_goes_on(void **state)
{
	(void)state;
	assert_false(aborts(check_false, NULL));
}

static void a_check_that_fails_aborts(void **state)
{
	(void)state;
	assert_true(aborts(check_false, state));
}

/* The child's stderr comes through a pipe. */
static void a_failed_check_names_place_and_condition(void **state)
{
	char text[256], expected[256];
	int ends[2], status;
	ssize_t size = 0, got;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		dup2(ends[1], STDERR_FILENO);
		check_failed("src/some/file.c", 1234, "two == 3");
	}
	close(ends[1]);
	while ((got = read(ends[0], text + size, sizeof(text) - 1 - (size_t)size)) > 0)
		size += got;
	text[size] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	snprintf(expected, sizeof(expected),
		 "src/some/file.c:1234: this must be true and is not: two == 3\n");
	assert_string_equal(text, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_check_that_holds_goes_on),
		cmocka_unit_test(a_check_that_fails_aborts),
		cmocka_unit_test(a_failed_check_names_place_and_condition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
