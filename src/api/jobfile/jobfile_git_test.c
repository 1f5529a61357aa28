/* SPDX-License-Identifier: Apache-2.0 */
#include "api/jobfile/jobfile_testing.h"

#include "base/check.h"

static void addresses_lose_user_password_and_query(void **state)
{
	static const struct {
		const char *address, *bare; /* NULL = not told */
	} cases[] = {
		{ "https://h/p.git", "https://h/p.git" },
		{ "https://user:geheim@h/p.git", "https://h/p.git" },
		{ "https://geheim@h:8443/p.git", "https://h:8443/p.git" },
		{ "https://u:ge@heim@h/p", "https://h/p" },
		{ "https://u:ge/heim@h/p", NULL },
		{ "https://u:ge?heim@h/p", NULL },
		{ "https://u:ge#heim@h/p", NULL },
		{ "https://h/p?access_token=geheim", "https://h/p" },
		{ "https://h/p#geheim", "https://h/p" },
		{ "https://h?geheim", "https://h" },
		{ "https://h/a@b/p", "https://h/a@b/p" },
		{ "https://mirror/https://u:geheim@h/p", NULL },
		{ "https://u:x@mirror/https://u:geheim@h/p", NULL },
		{ "https://mirror/https://h/p", "https://mirror/https://h/p" },
		{ " https://u:geheim@h/p", NULL },
		{ "x://h/p?https://u:geheim@h", "x://h/p" },
		{ "https://u:geheim@[::1]:80/p", "https://[::1]:80/p" },
		{ "HTTPS://u:geheim@h/p", "HTTPS://h/p" },
		{ "ssh://git@h:22/p", "ssh://h:22/p" },
		{ "git+ssh://git@h/p", "git+ssh://h/p" },
		{ "git@h:a/p.git", "h:a/p.git" },
		{ "h:a/p.git", "h:a/p.git" },
		{ "u:geheim@h:p", NULL },
		{ "[u@::1]:p", NULL },
		{ "u@[::1]:p", "[::1]:p" },
		{ "file:///srv/p", "file:///srv/p" },
		{ "/srv/git/p", "/srv/git/p" },
		{ "../p", "../p" },
		{ "./u@h:p", "./u@h:p" },
		{ "codecommit::us-east-1://profile@p", "codecommit::us-east-1://p" },
		{ "ext::sh -c geheim", NULL },
		{ "::x", "::x" },
		{ "", NULL },
		{ "https://h/a\nb", NULL },
		{ "https://h/\xff", NULL },
		{ "https://h/\xc2\x9b", NULL }, /* U+009B, with which a terminal's orders begin */
		{ "https://h/\xc2\xa0", "https://h/\xc2\xa0" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *bare = job_git_remote(cases[i].address, &jobfile_arena);

		if (!bare != !cases[i].bare || (bare && strcmp(bare, cases[i].bare) != 0))
			fail_msg("%s is told as %s", cases[i].address, bare ? bare : "nothing");
		/* What is told can be told again. */
		if (bare && strcmp(job_git_remote(bare, &jobfile_arena), bare) != 0)
			fail_msg("%s changes", bare);
	}
}

static struct job_git git_of(const char *text)
{
	struct job_request request = good(text);
	struct job_body body;
	struct err err = { 0 };

	if (job_body_parse(request.body, request.body_size, &jobfile_arena, &body, &err) < 0)
		fail_msg("%s: %s", err.text, request.body);
	return body.git;
}

static void the_state_of_git_comes_back_as_given_and_reaches_the_tasks(void **state)
{
	struct job_git git = git_of(
		"command: x\ngit: {commit: 5f0c0a3ffd5ba4dbd23a0b57ba6d0c8a4f6a2f1e, branch: a/b, changed: 0, remote: \"h:p\"}\n");
	const char *const *env = job_git_env(&git, &jobfile_arena);

	(void)state;
	assert_true(job_git_is_known(&git));
	assert_string_equal(env[0], "FAIRLEAD_GIT_COMMIT=5f0c0a3ffd5ba4dbd23a0b57ba6d0c8a4f6a2f1e");
	assert_string_equal(env[1], "FAIRLEAD_GIT_BRANCH=a/b");
	assert_string_equal(env[2], "FAIRLEAD_GIT_CHANGED=0");
	assert_string_equal(env[3], "FAIRLEAD_GIT_REMOTE=h:p");
	assert_null(env[4]);
	git = git_of("command: x\ngit: {}\n");
	assert_false(job_git_is_known(&git));
	assert_null(job_git_env(&git, &jobfile_arena)[0]);
	git = git_of("command: x\n");
	assert_false(job_git_is_known(&git));
	/* The most that can be said of it. */
	git = git_of(
		"command: x\ngit: {commit: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, untracked: 1000000}\n");
	assert_int_equal(git.untracked, JOBFILE_CHANGED_MAX);
	assert_int_equal(git.changed, -1);
}

/* As no release writes it; the job runs all the same. */
static void a_state_of_git_that_can_not_be_leaves_the_rest_of_the_body(void **state)
{
	static const char *const texts[] = {
		"{\"branch\":\"a\\u009b31m\"}",
		"{\"branch\":\"a\\u0007\"}",
		"{\"commit\":\"5f0c\"}",
		"{\"changed\":1000001}",
		"{\"changed\":\"two\"}",
		"{\"remote\":7}",
		"\"main\"",
		"[]",
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = arena_printf(
			&jobfile_arena,
			"{\"env\":{},\"secrets\":{},\"git\":%s,\"argv\":[\"x\"],\"workdir\":\"/w\"}",
			texts[i]);
		struct job_body body;

		if (job_body_parse(text, strlen(text), &jobfile_arena, &body, &err) < 0)
			fail_msg("%s: %s", texts[i], err.text);
		if (!body.git.is_broken || job_git_is_known(&body.git))
			fail_msg("%s is taken", texts[i]);
		assert_string_equal(body.workdir, "/w");
		assert_null(job_git_env(&body.git, &jobfile_arena)[0]);
	}
	assert_true(git_of("command: x\ngit: {branch: main}\n").is_broken == false);
	err = bad("command: x\ngit: {branch: \"a\\u0085\"}\n");
	assert_non_null(strstr(err.text, "without control characters"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(addresses_lose_user_password_and_query,
						jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(
			the_state_of_git_comes_back_as_given_and_reaches_the_tasks, jobfile_begin,
			jobfile_end),
		cmocka_unit_test_setup_teardown(
			a_state_of_git_that_can_not_be_leaves_the_rest_of_the_body, jobfile_begin,
			jobfile_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
