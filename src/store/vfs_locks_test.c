/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes on one database: one writes, others read, programs with SQLite's own VFS are kept out. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/check.h"
#include "store/io.h"
#include "store/testing/store_test.h"
#include "store/vfs_locks.h"

static struct store_test_folder *folder;
static char path[256];

static int setup(void **state)
{
	if (store_test_setup(state) != 0)
		return -1;
	folder = *state;
	snprintf(path, sizeof(path), "%s/x.sqlite", folder->path);
	return 0;
}

static sqlite3 *connect_with(const char *vfs, int flags)
{
	sqlite3 *db;
	CHECK(sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX, vfs) == SQLITE_OK);
	return db;
}

static sqlite3 *writer_open(void)
{
	sqlite3 *db =
		connect_with(io_sqlite_vfs(io_real()), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
	CHECK(sqlite3_exec(
		      db,
		      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
		      "PRAGMA wal_autocheckpoint = 0;"
		      "CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, v INTEGER, pad BLOB)",
		      NULL, NULL, NULL) == SQLITE_OK);
	return db;
}

static sqlite3 *reader_open(void)
{
	return connect_with(io_sqlite_vfs(io_real()), SQLITE_OPEN_READONLY);
}

static int64_t number(sqlite3 *db, const char *sql, int *ret_rc)
{
	sqlite3_stmt *statement = NULL;
	int64_t value = -1;
	int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	*ret_rc = rc;
	return value;
}

static void fill(void)
{
	sqlite3 *db = writer_open();
	CHECK(sqlite3_exec(
		      db,
		      "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 40)"
		      " INSERT INTO t SELECT i, 0, zeroblob(3500) FROM n",
		      NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
}

/* Raises all of 40 pages by one, in one commit. Every third one copies the log, and the next commit begins it again. */
static void write_on(int in)
{
	sqlite3 *db = writer_open();
	char byte;
	for (unsigned i = 0; read(in, &byte, 1) == 1 || errno == EAGAIN; i++) {
		CHECK(sqlite3_exec(db, "UPDATE t SET v = v + 1", NULL, NULL, NULL) == SQLITE_OK);
		if (i % 3 == 0)
			CHECK(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL,
							NULL) == SQLITE_OK);
		if (i % 50 == 49)
			(void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
							NULL);
		errno = 0;
	}
	sqlite3_close(db);
	_exit(0);
}

static void
a_reader_sees_whole_commits_while_another_process_writes_and_begins_the_log_again(void **state)
{
	enum { CHANGES = 200 };
	int ends[2], rc, status;
	(void)state;
	fill();
	assert_int_equal(pipe2(ends, 0), 0);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[1]);
		CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
		write_on(ends[0]);
	}
	close(ends[0]);
	sqlite3 *db = reader_open();
	int64_t last = 0;
	unsigned changes = 0;
	while (changes < CHANGES) {
		assert_int_equal(waitpid(child, &status, WNOHANG), 0);
		assert_int_equal(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
		const int64_t low = number(db, "SELECT min(v) FROM t", &rc);
		if (rc == SQLITE_BUSY) {
			assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
			continue;
		}
		assert_int_equal(rc, SQLITE_ROW);
		assert_int_equal(number(db, "SELECT max(v) FROM t", &rc), low);
		assert_int_equal(number(db, "SELECT sum(v) FROM t NOT INDEXED", &rc), 40 * low);
		assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
		assert_true(low >= last);
		changes += low > last;
		last = low;
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sqlite3_close(db);
}

static void a_reader_needs_no_writer(void **state)
{
	int rc;
	struct stat st;
	char log[300];
	(void)state;
	sqlite3 *db = writer_open();
	int keep = 1;
	assert_int_equal(sqlite3_exec(db, "INSERT INTO t VALUES (1, 7, NULL)", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
	sqlite3_close(db);
	snprintf(log, sizeof(log), "%s-wal", path);
	assert_int_equal(stat(log, &st), 0);
	assert_true(st.st_size > 4096);
	db = reader_open();
	assert_int_equal(number(db, "SELECT v FROM t", &rc), 7);
	assert_int_equal(rc, SQLITE_ROW);
	/* One that comes meanwhile writes, and the reader sees it. */
	sqlite3 *writer = writer_open();
	assert_int_equal(sqlite3_exec(writer, "UPDATE t SET v = 8", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(number(db, "SELECT v FROM t", &rc), 8);
	assert_int_equal(
		sqlite3_wal_checkpoint_v2(writer, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_exec(writer, "UPDATE t SET v = 9", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(number(db, "SELECT v FROM t", &rc), 9);
	sqlite3_close(writer);
	assert_int_equal(number(db, "SELECT v FROM t", &rc), 9);
	sqlite3_close(db);
}

/* In a child, whose connection does not count among those of this process. */
static int foreign(const char *sql)
{
	int status;
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		sqlite3 *db;
		int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "unix");
		if (rc == SQLITE_OK)
			rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
		sqlite3_close(db);
		_exit(rc);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_program_with_sqlite_of_its_own_is_kept_out_while_there_is_a_writer(void **state)
{
	char guard[300];
	int rc;
	(void)state;
	snprintf(guard, sizeof(guard), "%s-shm", path);
	sqlite3 *db = writer_open();
	assert_int_equal(sqlite3_exec(db, "INSERT INTO t VALUES (1, 7, NULL)", NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(access(guard, F_OK), 0);
	assert_int_equal(foreign("UPDATE t SET v = 0"), SQLITE_BUSY);
	assert_int_equal(foreign("SELECT v FROM t"), SQLITE_BUSY);
	assert_int_equal(number(db, "SELECT v FROM t", &rc), 7);
	sqlite3_close(db);
	assert_int_not_equal(access(guard, F_OK), 0);
	assert_int_equal(foreign("UPDATE t SET v = 6"), SQLITE_OK);
}

static void one_process_owns_the_index_and_who_dies_owns_it_no_longer(void **state)
{
	struct vfs_locks own, other;
	int ends[2], status;
	char byte;
	(void)state;
	sqlite3_close(writer_open());
	assert_int_equal(vfs_locks_open(&own, path, false), 0);
	assert_int_equal(vfs_locks_open(&other, path, false), 0);
	assert_int_equal(vfs_locks_own(&own, path), SQLITE_OK);
	assert_int_equal(vfs_locks_own(&other, path), SQLITE_BUSY);
	assert_int_equal(vfs_locks_take(&own, VFS_LOCK_BACKFILL), SQLITE_OK);
	assert_int_equal(vfs_locks_read(&other), SQLITE_BUSY);
	vfs_locks_drop(&own, VFS_LOCK_BACKFILL);
	assert_int_equal(vfs_locks_read(&other), SQLITE_OK);
	assert_int_equal(vfs_locks_take(&own, VFS_LOCK_BACKFILL), SQLITE_BUSY);
	assert_int_equal(vfs_locks_take(&own, VFS_LOCK_RESTART), SQLITE_BUSY);
	vfs_locks_read_end(&other);
	assert_int_equal(vfs_locks_take(&own, VFS_LOCK_RESTART), SQLITE_OK);
	own.restarting = true;
	vfs_locks_drop(&own, VFS_LOCK_RESTART);
	assert_int_equal(vfs_locks_read(&other), SQLITE_BUSY); /* until there is a new header */
	vfs_locks_disown(&own, io_real(), path);
	assert_int_equal(vfs_locks_read(&other), SQLITE_OK);
	vfs_locks_read_end(&other);
	vfs_locks_close(&own);
	assert_int_equal(pipe2(ends, 0), 0);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		CHECK(vfs_locks_open(&own, path, false) == 0);
		CHECK(vfs_locks_own(&own, path) == SQLITE_OK);
		CHECK(write(ends[1], "x", 1) == 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(vfs_locks_own(&other, path), SQLITE_BUSY);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(vfs_locks_own(&other, path), SQLITE_OK);
	vfs_locks_close(&other);
	close(ends[0]);
	close(ends[1]);
}

static bool disk_is_full;

static int write_if_room(struct io *io, struct io_file *file, const void *data, size_t size,
			 int64_t offset)
{
	(void)io;
	return disk_is_full ? -ENOSPC : io_real()->write(io_real(), file, data, size, offset);
}

/* The one who begins the log again decides so before the log says it; a reader would believe the old header. */
static void no_reader_comes_in_while_the_log_is_to_begin_again_and_has_its_old_header(void **state)
{
	struct io small = *io_real();
	struct vfs_locks reader;
	(void)state;
	small.write = write_if_room;
	fill();
	sqlite3 *db = connect_with(io_sqlite_vfs(&small), SQLITE_OPEN_READWRITE);
	assert_int_equal(
		sqlite3_exec(db, "PRAGMA synchronous = FULL; UPDATE t SET v = 1", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(vfs_locks_open(&reader, path, false), 0);
	assert_int_equal(vfs_locks_read(&reader), SQLITE_OK);
	vfs_locks_read_end(&reader);
	disk_is_full = true;
	assert_int_equal(sqlite3_exec(db, "UPDATE t SET v = 2", NULL, NULL, NULL), SQLITE_FULL);
	disk_is_full = false;
	assert_int_equal(vfs_locks_read(&reader), SQLITE_BUSY);
	assert_int_equal(sqlite3_exec(db, "UPDATE t SET v = 2", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(vfs_locks_read(&reader), SQLITE_OK);
	vfs_locks_close(&reader);
	sqlite3_close(db);
	io_sqlite_vfs_drop(&small);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, store_test_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_reader_sees_whole_commits_while_another_process_writes_and_begins_the_log_again),
		CASE(a_reader_needs_no_writer),
		CASE(a_program_with_sqlite_of_its_own_is_kept_out_while_there_is_a_writer),
		CASE(no_reader_comes_in_while_the_log_is_to_begin_again_and_has_its_old_header),
		CASE(one_process_owns_the_index_and_who_dies_owns_it_no_longer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
