/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/checkpoint.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/testing.h"

enum { PLAIN = 65534, PATIENCE_MS = 60000 };

static char folder[64];

static const char *at(const char *name)
{
	static char path[2][128];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static void put(const char *name, size_t size, mode_t mode)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int start(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/fairlead-checkpoint-XXXXXX");
	return mkdtemp(folder) && chmod(folder, 0755) == 0 ? 0 : -1;
}

static int stop(void **state)
{
	char command[128];
	pid_t pid = fork();

	(void)state;
	snprintf(command, sizeof(command), "%s", folder);
	if (pid == 0) {
		execlp("rm", "rm", "-rf", command, (char *)NULL);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static int look(const char *name, uid_t uid, int64_t patience_ms, int64_t *bytes, struct err *err)
{
	const struct checkpoint_ask ask = {
		.path = at(name), .uid = uid, .gid = uid, .patience_ms = patience_ms
	};

	*bytes = -7;
	return checkpoint_look(&ask, bytes, err);
}

static void the_bytes_of_all_files_count_and_links_are_not_followed(void **state)
{
	struct err err;
	int64_t bytes;

	(void)state;
	put("one", 5, 0644);
	assert_int_equal(look("one", geteuid(), PATIENCE_MS, &bytes, &err), 0);
	assert_int_equal(bytes, 5);
	assert_int_equal(mkdir(at("many"), 0755), 0);
	assert_int_equal(mkdir(at("many/deep"), 0755), 0);
	assert_int_equal(look("many", geteuid(), PATIENCE_MS, &bytes, &err), 0);
	assert_int_equal(bytes, 0);
	put("many/a", 10, 0644);
	put("many/deep/b", 200, 0644);
	assert_int_equal(symlink("/etc/passwd", at("many/link")), 0);
	assert_int_equal(symlink("/etc", at("many/other")), 0);
	assert_int_equal(look("many", geteuid(), PATIENCE_MS, &bytes, &err), 0);
	assert_int_equal(bytes, 210);
}

static void what_is_not_there_is_told(void **state)
{
	struct err err;
	int64_t bytes;

	(void)state;
	assert_int_equal(look("never", geteuid(), PATIENCE_MS, &bytes, &err), -ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "there is no checkpoint at"));
	assert_non_null(strstr(err.text, "/never"));
	assert_int_equal(bytes, -7);
	assert_int_equal(mkfifo(at("pipe"), 0666), 0);
	assert_int_equal(look("pipe", geteuid(), PATIENCE_MS, &bytes, &err), -ERR_INVALID);
}

static void a_checkpoint_beyond_the_limits_is_there_without_a_size(void **state)
{
	AUTO_BUF name = BUF_INIT;
	struct err err;
	int64_t bytes;

	(void)state;
	assert_int_equal(mkdir(at("slow"), 0755), 0);
	put("slow/a", 10, 0644);
	assert_int_equal(look("slow", geteuid(), -1, &bytes, &err), 1);
	assert_int_equal(bytes, 0);
	buf_adds(&name, "deep");
	for (int depth = 0; depth <= CHECKPOINT_DEPTH_MAX; depth++) {
		assert_int_equal(mkdir(at(buf_text(&name)), 0755), 0);
		assert_int_equal(look("deep", geteuid(), PATIENCE_MS, &bytes, &err), 0);
		buf_adds(&name, "/d");
	}
	assert_int_equal(mkdir(at(buf_text(&name)), 0755), 0);
	assert_int_equal(look("deep", geteuid(), PATIENCE_MS, &bytes, &err), 1);
}

static void it_is_looked_at_with_the_rights_of_the_user_and_not_of_root(void **state)
{
	struct err err;
	int64_t bytes;

	(void)state;
	if (geteuid() != 0)
		skip();
	put("secret", 77, 0600);
	assert_int_equal(mkdir(at("closed"), 0700), 0);
	put("closed/file", 77, 0644);
	assert_int_equal(mkdir(at("half"), 0755), 0);
	assert_int_equal(mkdir(at("half/closed"), 0700), 0);
	for (int i = 0; i < 3; i++) {
		const char *const names[] = { "secret", "closed/file", "half" };

		assert_int_equal(look(names[i], PLAIN, PATIENCE_MS, &bytes, &err), -ERR_FORBIDDEN);
		assert_non_null(strstr(err.text, "can't be read by the account with uid 65534"));
		assert_non_null(strstr(err.text, names[i]));
		assert_true(checkpoint_may_come_back(-ERR_FORBIDDEN));
		assert_int_equal(bytes, -7);
		/* And root's own rights are back. */
		assert_int_equal(look("closed/file", 0, PATIENCE_MS, &bytes, &err), 0);
		assert_int_equal(bytes, 77);
	}
}

/* A process of another account whose working folder is `name`. */
static pid_t stand_in(const char *name, uid_t uid)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || chdir(at(name)) < 0 ||
		    setgid(uid) < 0 || setuid(uid) < 0 || write(ready[1], "!", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* The kernel lets nobody but root see where the processes of others are, and root's eyes are not lent. */
static void it_is_not_reached_through_a_process_of_somebody_else(void **state)
{
	enum { OTHER = 65533 };
	int64_t bytes = -1;
	struct err err;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(at("private"), 0700), 0);
	assert_int_equal(mkdir(at("private/open"), 0755), 0);
	put("private/open/file", 13, 0644);
	assert_int_equal(chown(at("private"), OTHER, OTHER), 0);
	pid_t pid = stand_in("private/open", OTHER);
	static const char *const ways[] = { "cwd/file", "cwd", "root/etc/passwd" };
	const char *open_way = NULL;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		char path[64];
		const struct checkpoint_ask ask = {
			.path = path, .uid = PLAIN, .gid = PLAIN, .patience_ms = PATIENCE_MS
		};

		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, ways[i]);
		if (checkpoint_look(&ask, &bytes, &err) != -ERR_FORBIDDEN)
			open_way = ways[i];
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_null(open_way);
	/* What this thread may do otherwise is as before. */
	put("roots", 5, 0600);
	assert_int_equal(look("roots", 0, PATIENCE_MS, &bytes, &err), 0);
	assert_int_equal(bytes, 5);
	assert_int_equal(chown(at("roots"), PLAIN, PLAIN), 0);
	assert_int_equal(look("roots", PLAIN, PATIENCE_MS, &bytes, &err), 0);
}

/* However its path is written it is not its own folder: errors of both say that a file server is away. */
static void the_folder_in_which_it_lies_is_another_one(void **state)
{
	static const struct {
		const char *path, *above;
	} cases[] = { { "/a/b", "/a" },     { "/a/b/", "/a" }, { "/a/b//", "/a" },
		      { "/a//b/./", "/a" }, { "/a/.b", "/a" }, { "/a/b.", "/a" },
		      { "/a", "/" },        { "/", "/" },      { "a/b", "a" },
		      { "a", "" },          { "", "" } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t size = checkpoint_above(cases[i].path);

		assert_int_equal(size, strlen(cases[i].above));
		assert_memory_equal(cases[i].path, cases[i].above, size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_bytes_of_all_files_count_and_links_are_not_followed, start, stop),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_told, start, stop),
		cmocka_unit_test_setup_teardown(
			a_checkpoint_beyond_the_limits_is_there_without_a_size, start, stop),
		cmocka_unit_test_setup_teardown(
			it_is_looked_at_with_the_rights_of_the_user_and_not_of_root, start, stop),
		cmocka_unit_test_setup_teardown(
			it_is_not_reached_through_a_process_of_somebody_else, start, stop),
		cmocka_unit_test(the_folder_in_which_it_lies_is_another_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
