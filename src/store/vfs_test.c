/* SPDX-License-Identifier: Apache-2.0 */
/* The VFS on the disk in memory: what of SQLite's writes reaches the disk, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/io.h"
#include "store/testing/io_disk.h"

static struct io_disk *disk;
static sqlite3_file *file;

static int setup(void **state)
{
	(void)state;
	disk = io_disk_create();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (file)
		file->pMethods->xClose(file);
	free(file);
	file = NULL;
	io_sqlite_vfs_drop(io_disk_io(disk));
	io_disk_destroy(disk);
	return 0;
}

static void log_open(const char *name)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(name);
	assert_non_null(vfs);
	file = calloc(1, (size_t)vfs->szOsFile);
	assert_non_null(file);
	assert_int_equal(vfs->xOpen(vfs, "/d/x-wal", file,
				    SQLITE_OPEN_WAL | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
				    NULL),
			 SQLITE_OK);
}

static uint64_t writes(void)
{
	return io_disk_calls(disk, IO_WRITE);
}

/* A header of 24 bytes and a page. */
static int frame_write(int64_t at)
{
	static const char header[24] = "header", page[4096] = "page";
	int rc = file->pMethods->xWrite(file, header, sizeof(header), at);
	return rc == SQLITE_OK ? file->pMethods->xWrite(file, page, sizeof(page), at + 24) : rc;
}

static void frames_of_a_log_are_written_as_one_when_it_is_synced(void **state)
{
	(void)state;
	log_open(io_sqlite_vfs(io_disk_io(disk)));
	for (int i = 0; i < 10; i++)
		assert_int_equal(frame_write(i * 4120), SQLITE_OK);
	assert_int_equal(writes(), 0);
	assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
	assert_int_equal(writes(), 1);
	assert_int_equal(io_disk_used(disk), (41200 + 4095) / 4096 * 4096);
	/* Nothing is left for a second time. */
	assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
	assert_int_equal(writes(), 1);
}

static void what_is_gathered_counts_for_who_reads_or_asks_for_the_size(void **state)
{
	char data[24];
	sqlite3_int64 size;
	(void)state;
	log_open(io_sqlite_vfs(io_disk_io(disk)));
	assert_int_equal(frame_write(0), SQLITE_OK);
	assert_int_equal(file->pMethods->xRead(file, data, 24, 24), SQLITE_OK);
	assert_memory_equal(data, "page", 5);
	assert_int_equal(frame_write(4120), SQLITE_OK);
	assert_int_equal(file->pMethods->xFileSize(file, &size), SQLITE_OK);
	assert_int_equal(size, 8240);
	assert_int_equal(frame_write(8240), SQLITE_OK);
	assert_int_equal(file->pMethods->xTruncate(file, 100), SQLITE_OK);
	assert_int_equal(file->pMethods->xFileSize(file, &size), SQLITE_OK);
	assert_int_equal(size, 100);
}

/* The log begins anew, or a frame is written over: in order, so that the later one stays. */
static void a_write_elsewhere_goes_behind_what_was_gathered(void **state)
{
	static const char other[24] = "other";
	char data[24];
	(void)state;
	log_open(io_sqlite_vfs(io_disk_io(disk)));
	assert_int_equal(frame_write(0), SQLITE_OK);
	assert_int_equal(file->pMethods->xWrite(file, other, sizeof(other), 0), SQLITE_OK);
	assert_int_equal(writes(), 1);
	assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
	assert_int_equal(file->pMethods->xRead(file, data, 24, 0), SQLITE_OK);
	assert_memory_equal(data, "other", 6);
}

static void a_disk_that_is_full_is_told_by_the_sync_and_forgotten_then(void **state)
{
	(void)state;
	log_open(io_sqlite_vfs(io_disk_io(disk)));
	io_disk_capacity(disk, 8192);
	for (int i = 0; i < 4; i++)
		assert_int_equal(frame_write(i * 4120), SQLITE_OK);
	assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_FULL);
	assert_int_equal(frame_write(0), SQLITE_OK);
	assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
	io_disk_fail(disk, IO_WRITE, 1, 5 /* EIO */);
	assert_int_equal(frame_write(0), SQLITE_OK);
	assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_IOERR_WRITE);
}

/* A commit that nothing syncs is published at once, so it must be in the file at once. */
static void a_log_that_is_synced_at_checkpoints_only_is_not_gathered(void **state)
{
	(void)state;
	log_open(io_sqlite_vfs_lazy(io_disk_io(disk)));
	assert_int_equal(frame_write(0), SQLITE_OK);
	assert_int_equal(writes(), 2);
}

static void a_commit_of_many_pages_is_one_write_and_what_it_wrote_is_found(void **state)
{
	sqlite3 *db;
	sqlite3_stmt *count;
	(void)state;
	assert_int_equal(sqlite3_open_v2("/d/x", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
					 io_sqlite_vfs(io_disk_io(disk))),
			 SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
				      "CREATE TABLE t(x BLOB); INSERT INTO t VALUES (1)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	const uint64_t before = writes();
	assert_int_equal(
		sqlite3_exec(db,
			     "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n"
			     " WHERE i < 40) INSERT INTO t SELECT zeroblob(3000) FROM n",
			     NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(writes() - before, 1);
	sqlite3_close(db);
	assert_int_equal(sqlite3_open_v2("/d/x", &db, SQLITE_OPEN_READWRITE,
					 io_sqlite_vfs(io_disk_io(disk))),
			 SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM t", -1, &count, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(count), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(count, 0), 41);
	sqlite3_finalize(count);
	sqlite3_close(db);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(frames_of_a_log_are_written_as_one_when_it_is_synced),
		CASE(what_is_gathered_counts_for_who_reads_or_asks_for_the_size),
		CASE(a_write_elsewhere_goes_behind_what_was_gathered),
		CASE(a_disk_that_is_full_is_told_by_the_sync_and_forgotten_then),
		CASE(a_log_that_is_synced_at_checkpoints_only_is_not_gathered),
		CASE(a_commit_of_many_pages_is_one_write_and_what_it_wrote_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
