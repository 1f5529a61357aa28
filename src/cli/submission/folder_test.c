/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "cli/submission/folder.h"

#include "base/check.h"

/* As git has it. */
static void rules_fit_as_those_of_gitignore(void **state)
{
	static const struct {
		const char *rule, *path;
		bool is_folder, fits;
	} cases[] = {
		{ "a", "a", false, true },           { "a", "b/a", false, true },
		{ "a", "ab", false, false },         { "*.o", "x/y.o", false, true },
		{ "*.o", "x.o/y", false, false },    { "/a", "a", false, true },
		{ "/a", "b/a", false, false },       { "a/", "a", true, true },
		{ "a/", "a", false, false },         { "a/", "b/a", true, true },
		{ "a/b", "a/b", false, true },       { "a/b", "x/a/b", false, false },
		{ "a/*", "a/b", false, true },       { "a/*", "a/b/c", false, false },
		{ "**/b", "b", false, true },        { "**/b", "x/y/b", false, true },
		{ "a/**", "a/x/y", false, true },    { "a/**", "a", true, false },
		{ "a/**/b", "a/b", false, true },    { "a/**/b", "a/x/y/b", false, true },
		{ "a/**/b", "x/a/b", false, false }, { "?.c", "a.c", false, true },
		{ "?.c", "ab.c", false, false },     { "[a-c]x", "bx", false, true },
		{ "[!a]x", "ax", false, false },     { "*", ".hidden", false, true },
		{ "\\*", "*", false, true },         { "\\*", "a", false, false },
		{ "/", "a", true, false },           { "a**", "abc", false, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (ignore_fits(cases[i].rule, cases[i].path, cases[i].is_folder) != cases[i].fits)
			fail_msg("%s and %s", cases[i].rule, cases[i].path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_fit_as_those_of_gitignore),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
