/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "engine/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"

#define HEAD "fairlead-tree 1\n"
#define ONE "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b" /* of "1" */

static struct arena arena;

static void a_list_comes_back_as_it_was(void **state)
{
	static const char text[] = HEAD "F 1 " ONE " a b\nX 1 " ONE " d/x\nL 5 ../ a l\n";
	AUTO_BUF again = BUF_INIT;
	struct tree tree;
	struct err err;
	char id[TREE_ID_MAX];

	(void)state;
	assert_int_equal(tree_parse(text, strlen(text), &arena, &tree, &err), 0);
	assert_int_equal(tree.count, 3);
	assert_int_equal(tree.bytes, 2);
	assert_string_equal(tree.entries[0].path, "a b");
	assert_false(tree.entries[0].executes);
	assert_true(tree.entries[1].executes);
	assert_string_equal(tree.entries[2].link, "../ a");
	tree_format(&tree, &again);
	assert_string_equal(buf_text(&again), text);
	/* What was submitted is found by it for ever. */
	tree_id(text, strlen(text), id);
	assert_string_equal(id, "cf9bcc688917afcacc35d199b5eb8d68f020c8c1187128c900501eb72e19a0b1");
}

/* Room was made for as many files as there are lines. */
static void what_stands_behind_the_last_line_is_no_file(void **state)
{
	static const char text[] = HEAD "F 1 " ONE " a\nF 1 " ONE " b";
	struct tree tree;
	struct err err;

	(void)state;
	assert_true(tree_parse(text, strlen(text), &arena, &tree, &err) < 0);
	assert_non_null(strstr(err.text, "line 3"));
}

static void no_path_leads_out(void **state)
{
	static const char *const paths[] = { "..",   "../a", "a/../b", "/a",  "a/",
					     "a//b", ".",    "./a",    "a/.", "" };
	struct tree tree;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const char *text = arena_printf(&arena, HEAD "F 1 " ONE " %s\n", paths[i]);

		if (tree_parse(text, strlen(text), &arena, &tree, &err) >= 0)
			fail_msg("taken: %s", paths[i]);
	}
}

/* So many lines, each of so many bytes. */
static int parsed(uint32_t count, int64_t bytes)
{
	AUTO_BUF text = BUF_INIT;
	struct tree tree;
	struct err err;
	int rc;

	buf_adds(&text, HEAD);
	for (uint32_t i = 0; i < count; i++)
		buf_addf(&text, "F %lld " ONE " %06u\n", (long long)bytes, i);
	rc = tree_parse(text.data, text.size, &arena, &tree, &err);
	arena_reset(&arena);
	return rc;
}

static void each_limit_is_kept_and_one_more_refused(void **state)
{
	(void)state;
	assert_int_equal(parsed(TREE_FILES_MAX, 1), 0);
	assert_true(parsed(TREE_FILES_MAX + 1, 1) < 0);
	assert_int_equal(parsed(1, TREE_FILE_MAX), 0);
	assert_true(parsed(1, TREE_FILE_MAX + 1) < 0);
	assert_int_equal(parsed((uint32_t)(TREE_BYTES_MAX / TREE_FILE_MAX), TREE_FILE_MAX), 0);
	assert_true(parsed((uint32_t)(TREE_BYTES_MAX / TREE_FILE_MAX) + 1, TREE_FILE_MAX) < 0);
	assert_true(parsed(0, 1) < 0);
}

static char folder[] = "/tmp/fairlead-test-tree-XXXXXX";

static int unpack(const char *text, int files, int parent, const char *name, struct err *err)
{
	struct tree tree;

	assert_int_equal(tree_parse(text, strlen(text), &arena, &tree, err), 0);
	return tree_unpack(&tree, files, parent, name, getuid(), getgid(), err);
}

static void what_is_unpacked_is_whole_or_not_there(void **state)
{
	int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), files, fd;
	struct stat st;
	struct err err;

	(void)state;
	assert_int_equal(mkdirat(parent, "files", 0700), 0);
	files = openat(parent, "files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(files, ONE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "1", 1), 1);
	close(fd);
	assert_int_equal(unpack(HEAD "F 1 " ONE " a\nX 1 " ONE " d/e/x\nL 1 a l\n", files, parent,
				"code", &err),
			 0);
	assert_int_equal(fstatat(parent, "code/d/e/x", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(fstatat(parent, "code/l", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	/* There already: it is the running job's. */
	assert_int_equal(unpack(HEAD "F 1 " ONE " other\n", files, parent, "code", &err), 0);
	assert_int_equal(fstatat(parent, "code/other", &st, 0), -1);
	/* Of another length than it should be. */
	assert_true(unpack(HEAD "F 2 " ONE " a\n", files, parent, "short", &err) < 0);
	assert_int_equal(fstatat(parent, "short", &st, 0), -1);
	assert_int_equal(errno, ENOENT);
	close(files);
	close(parent);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void clear(void)
{
	CHECK(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_comes_back_as_it_was),
		cmocka_unit_test(what_stands_behind_the_last_line_is_no_file),
		cmocka_unit_test(no_path_leads_out),
		cmocka_unit_test(each_limit_is_kept_and_one_more_refused),
		cmocka_unit_test(what_is_unpacked_is_whole_or_not_there),
	};
	int failed;

	CHECK(mkdtemp(folder));
	arena_init(&arena, 64 << 20);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_deinit(&arena);
	clear();
	return failed;
}
