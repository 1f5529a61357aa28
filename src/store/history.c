/* SPDX-License-Identifier: Apache-2.0 */
#include "store/history.h"

#include <limits.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/io.h"

/* application_id "FLH1"; another user_version means another form, and the file is made anew. */
static const char pragma_text[] = "PRAGMA journal_mode = WAL;"
				  "PRAGMA synchronous = NORMAL;"
				  "PRAGMA temp_store = MEMORY;"
				  "PRAGMA cache_size = -4096;"
				  "PRAGMA trusted_schema = OFF;";

static const char create_text[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE IF NOT EXISTS applied(id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL);"
	"INSERT OR IGNORE INTO applied(id, seq) VALUES (1, 0);"
	"CREATE TABLE IF NOT EXISTS change(seq INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, kind INTEGER NOT NULL,"
	" job INTEGER NOT NULL, attempt INTEGER NOT NULL, text TEXT NOT NULL);"
	"CREATE INDEX IF NOT EXISTS change_job ON change(job, seq) WHERE job != 0;"
	"PRAGMA application_id = 1179404337;"
	"PRAGMA user_version = 1;"
	"COMMIT;";

enum statement {
	DO_BEGIN,
	DO_COMMIT,
	DO_ROLLBACK,
	ADD,
	MOVE,
	APPLIED,
	LIST_ALL,
	LIST_JOB,
	LIST_BEFORE,
	CLEAR,
	CLEAR_CURSOR,
	STATEMENTS
};

static const char *const statement_text[STATEMENTS] = {
	[DO_BEGIN] = "BEGIN IMMEDIATE",
	[DO_COMMIT] = "COMMIT",
	[DO_ROLLBACK] = "ROLLBACK",
	[ADD] = "INSERT OR IGNORE INTO change(seq, time_ms, kind, job, attempt, text) VALUES (?, ?, ?, ?, ?, ?)",
	[MOVE] = "UPDATE applied SET seq = max(seq, ?) WHERE id = 1",
	[APPLIED] = "SELECT seq FROM applied WHERE id = 1",
	[LIST_ALL] =
		"SELECT seq, time_ms, kind, job, attempt, text FROM change WHERE seq > ?1 ORDER BY seq LIMIT ?2",
	[LIST_JOB] =
		("SELECT seq, time_ms, kind, job, attempt, text FROM change WHERE job = ?3 AND job != 0 AND seq > ?1 "
		 "ORDER BY seq LIMIT ?2"),
	[LIST_BEFORE] =
		("SELECT seq, time_ms, kind, job, attempt, text FROM change WHERE job != 0 AND job <= ?1 AND kind = ?2 "
		 "ORDER BY job DESC LIMIT 1"),
	[CLEAR] = "DELETE FROM change",
	[CLEAR_CURSOR] = "UPDATE applied SET seq = 0 WHERE id = 1",
};

struct history {
	sqlite3 *db;
	char *path;
	_Atomic uint64_t applied;
	sqlite3_stmt *statements[STATEMENTS];
};

static int history_fail(const struct history *history, int rc, struct err *err, const char *doing)
{
	int error = sqlite3_system_errno(history->db);
	bool damaged = (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB ||
		       (rc & 0xff) == SQLITE_ERROR;
	if (damaged)
		return err_set(
			err, ERR_CORRUPT,
			"cannot %s %s: it is damaged; `fairlead doctor --rebuild` makes it anew",
			doing, history->path);
	if ((rc & 0xff) == SQLITE_FULL)
		return err_set(err, ERR_IO, "cannot %s %s: no space left on the disk", doing,
			       history->path);
	if (error && ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN))
		return err_errno(err, ERR_IO, error, "cannot %s %s", doing, history->path);
	return err_set(err, ERR_IO, "cannot %s %s: %s", doing, history->path, sqlite3_errstr(rc));
}

static int history_do(struct history *history, enum statement which)
{
	int rc = sqlite3_step(history->statements[which]);
	sqlite3_reset(history->statements[which]);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int read_number(sqlite3 *db, const char *text, int64_t *ret)
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_prepare_v2(db, text, -1, &statement, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW) {
		*ret = sqlite3_column_int64(statement, 0);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(statement);
	return rc;
}

/* The file as it should be. SQLITE_NOTADB also for one of another form. */
static int history_prepare(struct history *history)
{
	int64_t version = 0, applied = 0;
	int rc = sqlite3_open_v2(history->path, &history->db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
				 io_sqlite_vfs_lazy(io_real()));
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(history->db, 5000);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(history->db, pragma_text, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = read_number(history->db, "PRAGMA user_version", &version);
	if (rc == SQLITE_OK && version > 1)
		rc = SQLITE_NOTADB;
	if (rc == SQLITE_OK && version == 0)
		rc = sqlite3_exec(history->db, create_text, NULL, NULL, NULL);
	for (size_t i = 0; i < STATEMENTS && rc == SQLITE_OK; i++)
		rc = sqlite3_prepare_v3(history->db, statement_text[i], -1,
					SQLITE_PREPARE_PERSISTENT, &history->statements[i], NULL);
	if (rc == SQLITE_OK)
		rc = read_number(history->db, statement_text[APPLIED], &applied);
	atomic_store(&history->applied, (uint64_t)applied);
	return rc;
}

static void history_shut(struct history *history)
{
	for (size_t i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(history->statements[i]);
	memset(history->statements, 0, sizeof(history->statements));
	int rc = sqlite3_close(history->db);
	CHECK(rc == SQLITE_OK);
	history->db = NULL;
}

void history_close(struct history *history)
{
	if (!history)
		return;
	history_shut(history);
	free(history->path);
	free(history);
}

/* A read model that cannot be used is moved aside and made anew: all of it comes from the journal again. */
static void move_aside(const struct history *history)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char from[PATH_MAX], to[PATH_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(from, sizeof(from), "%s%s", history->path, suffixes[i]);
		snprintf(to, sizeof(to), "%s.damaged%s", history->path, suffixes[i]);
		(void)rename(from, to);
	}
}

int history_open(const char *folder, struct history **ret, struct err *err)
{
	struct history *history = calloc(1, sizeof(*history));
	CHECK(history);
	int size = asprintf(&history->path, "%s/history.sqlite", folder);
	CHECK(size > 0);
	int rc = history_prepare(history);
	if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB ||
	    (rc & 0xff) == SQLITE_ERROR) {
		history_shut(history);
		move_aside(history);
		rc = history_prepare(history);
	}
	if (rc != SQLITE_OK) {
		int result = history_fail(history, rc, err, "open");
		history_close(history);
		return result;
	}
	*ret = history;
	return 0;
}

uint64_t history_applied(const struct history *history)
{
	return atomic_load(&history->applied);
}

/* A thousand rows take some milliseconds, and nobody waits for them as for answers: now and then others go first. */
enum { YIELD_ROWS = 64 };

static int add_rows(struct history *history, const struct history_row *rows, size_t count)
{
	sqlite3_stmt *add = history->statements[ADD];
	int rc = SQLITE_OK;
	for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
		const struct history_row *row = &rows[i];
		if (i % YIELD_ROWS == YIELD_ROWS - 1)
			sched_yield();
		sqlite3_bind_int64(add, 1, (int64_t)row->seq);
		sqlite3_bind_int64(add, 2, row->time_ms);
		sqlite3_bind_int64(add, 3, row->kind);
		sqlite3_bind_int64(add, 4, (int64_t)row->job);
		sqlite3_bind_int64(add, 5, (int64_t)row->attempt);
		sqlite3_bind_text(add, 6, row->size ? row->text : "", (int)row->size,
				  SQLITE_STATIC);
		rc = history_do(history, ADD);
	}
	return rc;
}

int history_add(struct history *history, const struct history_row *rows, size_t count,
		uint64_t upto, struct err *err)
{
	uint64_t applied = history_applied(history);
	if (count && rows[count - 1].seq > upto)
		upto = rows[count - 1].seq;
	int rc = history_do(history, DO_BEGIN);
	if (rc == SQLITE_OK)
		rc = add_rows(history, rows, count);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(history->statements[MOVE], 1, (int64_t)upto);
		rc = history_do(history, MOVE);
	}
	if (rc == SQLITE_OK)
		rc = history_do(history, DO_COMMIT);
	if (rc == SQLITE_OK) {
		if (upto > applied)
			atomic_store(&history->applied, upto);
		return 0;
	}
	int result = history_fail(history, rc, err, "write to");
	if (!sqlite3_get_autocommit(history->db))
		(void)history_do(history, DO_ROLLBACK);
	return result;
}

static int take_rows(struct history *history, sqlite3_stmt *list, void *context,
		     int (*take)(void *context, const struct history_row *row), struct err *err)
{
	int rc, result = 0;
	while (result == 0 && (rc = sqlite3_step(list)) != SQLITE_DONE) {
		if (rc != SQLITE_ROW) {
			result = history_fail(history, rc, err, "read");
			break;
		}
		struct history_row row = {
			.seq = (uint64_t)sqlite3_column_int64(list, 0),
			.time_ms = sqlite3_column_int64(list, 1),
			.kind = (uint32_t)sqlite3_column_int64(list, 2),
			.job = (uint64_t)sqlite3_column_int64(list, 3),
			.attempt = (uint64_t)sqlite3_column_int64(list, 4),
		};
		row.text = (const char *)sqlite3_column_text(list, 5);
		row.size = (size_t)sqlite3_column_bytes(list, 5);
		result = take(context, &row);
	}
	sqlite3_reset(list);
	return result;
}

int history_list(struct history *history, uint64_t job, uint64_t after, size_t limit, void *context,
		 int (*take)(void *context, const struct history_row *row), struct err *err)
{
	sqlite3_stmt *list = history->statements[job ? LIST_JOB : LIST_ALL];
	sqlite3_bind_int64(list, 1, after > INT64_MAX ? INT64_MAX : (int64_t)after);
	sqlite3_bind_int64(list, 2, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
	if (job)
		sqlite3_bind_int64(list, 3, (int64_t)job);
	return take_rows(history, list, context, take, err);
}

int history_before(struct history *history, uint64_t job, uint32_t kind, void *context,
		   int (*take)(void *context, const struct history_row *row), struct err *err)
{
	sqlite3_stmt *list = history->statements[LIST_BEFORE];
	sqlite3_bind_int64(list, 1, job > INT64_MAX ? INT64_MAX : (int64_t)job);
	sqlite3_bind_int64(list, 2, kind);
	return take_rows(history, list, context, take, err);
}

int history_clear(struct history *history, struct err *err)
{
	int rc = history_do(history, DO_BEGIN);
	if (rc == SQLITE_OK)
		rc = history_do(history, CLEAR);
	if (rc == SQLITE_OK)
		rc = history_do(history, CLEAR_CURSOR);
	if (rc == SQLITE_OK)
		rc = history_do(history, DO_COMMIT);
	if (rc == SQLITE_OK) {
		atomic_store(&history->applied, 0);
		return 0;
	}
	int result = history_fail(history, rc, err, "clear");
	if (!sqlite3_get_autocommit(history->db))
		(void)history_do(history, DO_ROLLBACK);
	return result;
}
