/* SPDX-License-Identifier: Apache-2.0 */
#include "store/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "store/guard.h"
#include "store/io.h"

enum statement {
	DO_BEGIN,
	DO_COMMIT,
	DO_ROLLBACK,
	ADD_RECORD,
	ADD_BLOB,
	ADD_NAME,
	LAST_BLOB,
	SCAN,
	GET,
	LAST,
	META,
	NAMES,
	FIND_NAME,
	BLOB_DATA,
	ERASE,
	STATEMENTS
};

static const char *const statement_text[STATEMENTS] = {
	[DO_BEGIN] = "BEGIN IMMEDIATE",
	[DO_COMMIT] = "COMMIT",
	[DO_ROLLBACK] = "ROLLBACK",
	[ADD_RECORD] =
		"INSERT INTO record(seq, time_ms, kind, must_understand, text, hash, guard) VALUES (?, ?, ?, ?, ?, ?, ?)",
	[ADD_BLOB] = "INSERT INTO blob(id, data) VALUES (?, ?)",
	[ADD_NAME] = "INSERT INTO blob_name(id, digest) VALUES (?, ?)",
	[LAST_BLOB] = "SELECT max(id) FROM blob_name",
	[SCAN] = ("SELECT seq, time_ms, kind, must_understand, text, hash, guard FROM record "
		  "WHERE seq >= ? AND seq <= ? ORDER BY seq"),
	[GET] = "SELECT seq, time_ms, kind, must_understand, text, hash, guard FROM record WHERE seq = ?",
	[LAST] = "SELECT max(seq) FROM record WHERE seq <= ?",
	[META] = "SELECT number, first, prev, id FROM segment",
	[NAMES] = "SELECT id, digest FROM blob_name WHERE id > ? ORDER BY id",
	[FIND_NAME] = "SELECT max(id) FROM blob_name WHERE digest = ?",
	[BLOB_DATA] = "SELECT data FROM blob WHERE id = ?",
	[ERASE] = "DELETE FROM blob WHERE id = ?",
};

/* Made without any sync, then synced once as a whole by the caller's io. */
static const char create_text[] =
	"PRAGMA page_size = 4096;"
	"PRAGMA journal_mode = MEMORY;"
	"PRAGMA synchronous = OFF;"
	"PRAGMA application_id = 1179405873;" /* "FLJ1" */
	"PRAGMA user_version = 1;"
	"BEGIN;"
	"CREATE TABLE segment(number INTEGER NOT NULL, first INTEGER NOT NULL, prev BLOB NOT NULL, id BLOB NOT NULL);"
	"CREATE TABLE record(seq INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, kind INTEGER NOT NULL,"
	" must_understand INTEGER NOT NULL, text TEXT NOT NULL, hash BLOB NOT NULL, guard INTEGER NOT NULL);"
	"CREATE TABLE blob(id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE blob_name(id INTEGER PRIMARY KEY, digest BLOB NOT NULL);"
	"COMMIT;";

static const char open_text[] =
	"PRAGMA synchronous = FULL;"
	"PRAGMA wal_autocheckpoint = 0;" /* the journal says when */
	"PRAGMA secure_delete = ON;"
	"PRAGMA cell_size_check = ON;" /* a damaged page is refused, not followed */
	"PRAGMA temp_store = MEMORY;"
	"PRAGMA cache_size = -8192;"
	"PRAGMA trusted_schema = OFF;";

struct segment {
	sqlite3 *db;
	char *path;
	int64_t next_blob; /* 0: not known yet */
	int wal_frames; /* told by SQLite at each commit */
	struct buf
		text; /* of the row of segment_get, whose statement must not stay open: it would hold the log */
	sqlite3_stmt *statements[STATEMENTS];
};

/* A failure in words; SEGMENT_FULL and SEGMENT_BUSY are outcomes. */
static int segment_fail(struct segment *segment, int rc, struct err *err, const char *doing)
{
	int system = sqlite3_system_errno(segment->db);
	switch (rc & 0xff) {
	case SQLITE_FULL: return SEGMENT_FULL;
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return SEGMENT_BUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR: /* a table is missing */
	case SQLITE_SCHEMA:
		return err_set(err, ERR_CORRUPT, "cannot %s %s: the file is damaged (%s)", doing,
			       segment->path, sqlite3_errmsg(segment->db));
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		if (system)
			return err_errno(err, ERR_IO, system, "cannot %s %s", doing, segment->path);
		break;
	default: break;
	}
	return err_set(err, ERR_IO, "cannot %s %s: %s", doing, segment->path, sqlite3_errstr(rc));
}

/* The statement, ready to bind; NULL with the code in *ret_rc. */
static sqlite3_stmt *statement_get(struct segment *segment, enum statement which, int *ret_rc)
{
	sqlite3_stmt **at = &segment->statements[which];
	*ret_rc = SQLITE_OK;
	if (!*at)
		*ret_rc = sqlite3_prepare_v3(segment->db, statement_text[which], -1,
					     SQLITE_PREPARE_PERSISTENT, at, NULL);
	return *at;
}

/* Runs a statement that answers no rows. */
static int statement_run(sqlite3_stmt *statement)
{
	int rc = sqlite3_step(statement);
	sqlite3_reset(statement);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int segment_do(struct segment *segment, enum statement which)
{
	int rc;
	sqlite3_stmt *statement = statement_get(segment, which, &rc);
	return statement ? statement_run(statement) : rc;
}

static int on_commit(void *context, sqlite3 *db, const char *name, int frames)
{
	(void)db;
	(void)name;
	struct segment *segment = context;
	segment->wal_frames = frames;
	return SQLITE_OK;
}

static void segment_free(struct segment *segment)
{
	for (size_t i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(segment->statements[i]);
	int rc = sqlite3_close(segment->db);
	CHECK(rc == SQLITE_OK);
	buf_deinit(&segment->text);
	free(segment->path);
	free(segment);
}

void segment_close(struct segment *segment, bool keep_wal)
{
	if (!segment)
		return;
	int keep = keep_wal;
	sqlite3_file_control(segment->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
	segment_free(segment);
}

void segment_drop(struct segment *segment)
{
	if (!segment)
		return;
	sqlite3_db_config(segment->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	segment_free(segment);
}

/* A connection without any statement run. Never fails to give a segment: errors of opening come with first use. */
static int segment_connect(struct io *io, const char *path, enum segment_mode mode, bool create,
			   struct segment **ret, struct err *err)
{
	struct segment *segment = calloc(1, sizeof(*segment));
	CHECK(segment);
	segment->path = strdup(path);
	CHECK(segment->path);
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	flags |= mode == SEGMENT_READ_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
	if (create)
		flags |= SQLITE_OPEN_CREATE;
	char uri[3 * PATH_MAX + 64];
	const char *name = path;
	if (mode == SEGMENT_IMMUTABLE) {
		size_t at = (size_t)snprintf(uri, sizeof(uri), "file:");
		for (const char *c = path; *c && at + 32 < sizeof(uri); c++) {
			if (*c == '?' || *c == '#' || *c == '%')
				at += (size_t)snprintf(uri + at, sizeof(uri) - at, "%%%02x",
						       (unsigned)*c);
			else
				uri[at++] = *c;
		}
		snprintf(uri + at, sizeof(uri) - at, "?immutable=1");
		flags |= SQLITE_OPEN_URI;
		name = uri;
	}
	int rc = sqlite3_open_v2(name, &segment->db, flags, io_sqlite_vfs(io));
	CHECK(segment->db);
	sqlite3_extended_result_codes(segment->db, 1);
	if (rc == SQLITE_OK)
		sqlite3_busy_timeout(segment->db, 5000);
	if (rc != SQLITE_OK) {
		int result = segment_fail(segment, rc, err, "open");
		segment_free(segment);
		return result > 0 ? err_set(err, ERR_IO, "cannot open %s: it is locked", path)
				  : result;
	}
	*ret = segment;
	return 0;
}

int segment_open(struct io *io, const char *path, enum segment_mode mode, struct segment **ret,
		 struct err *err)
{
	struct segment *segment = NULL;
	int result = segment_connect(io, path, mode, false, &segment, err);
	if (result != 0)
		return result;
	CHECK(segment);
	/* The checks that SQLite puts off to the first use come now. */
	int rc = sqlite3_exec(segment->db, open_text, NULL, NULL, NULL);
	struct segment_meta meta;
	if (rc == SQLITE_OK)
		result = segment_meta(segment, &meta, err);
	else
		result = segment_fail(segment, rc, err, "open");
	if (result != 0) {
		segment_drop(segment);
		return result > 0 ? err_set(err, ERR_IO, "cannot open %s: it is locked", path)
				  : result;
	}
	sqlite3_wal_hook(segment->db, on_commit, segment);
	*ret = segment;
	return 0;
}

/* Zeroes where the write-ahead log will grow: a sync that need not enlarge the file takes half the time. Not synced here: an empty log
 * says as much as one of zeroes, and the first commit's sync covers both. */
static int wal_fill(struct io *io, const char *path, int64_t bytes)
{
	struct io_file *file;
	static const char zeroes[65536];
	int result = io->open(io, path, O_RDWR | O_CREAT | O_TRUNC, 0600, &file);
	if (result < 0)
		return result;
	for (int64_t at = 0; at < bytes && result == 0; at += (int64_t)sizeof(zeroes)) {
		int64_t left = bytes - at;
		result = io->write(io, file, zeroes,
				   left < (int64_t)sizeof(zeroes) ? (size_t)left : sizeof(zeroes),
				   at);
	}
	io->close(io, file);
	return result;
}

static int file_sync_at(struct io *io, const char *path)
{
	struct io_file *file;
	int result = io->open(io, path, O_RDWR, 0, &file);
	if (result < 0)
		return result;
	result = io->sync(io, file);
	io->close(io, file);
	return result;
}

static int segment_fill(struct segment *segment, const struct segment_meta *meta)
{
	int rc = sqlite3_exec(segment->db, create_text, NULL, NULL, NULL);
	sqlite3_stmt *statement = NULL;
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(
			segment->db,
			"INSERT INTO segment(number, first, prev, id) VALUES (?, ?, ?, ?)", -1,
			&statement, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(statement, 1, meta->number);
		sqlite3_bind_int64(statement, 2, (int64_t)meta->first);
		sqlite3_bind_blob(statement, 3, meta->prev.bytes, DIGEST_BYTES, SQLITE_STATIC);
		sqlite3_bind_blob(statement, 4, meta->id, JOURNAL_ID_BYTES, SQLITE_STATIC);
		rc = statement_run(statement);
	}
	sqlite3_finalize(statement);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(segment->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
	return rc;
}

int segment_create(struct io *io, const char *path, const struct segment_meta *meta,
		   int64_t wal_bytes, struct err *err)
{
	char wal[PATH_MAX];
	if (snprintf(wal, sizeof(wal), "%s-wal", path) >= (int)sizeof(wal))
		return err_set(err, ERR_INVALID, "the name %s is too long", path);
	(void)io->unlink(io, path);
	(void)io->unlink(io, wal);
	struct segment *segment = NULL;
	int result = segment_connect(io, path, SEGMENT_READ_WRITE, true, &segment, err);
	if (result != 0)
		return result;
	CHECK(segment);
	int rc = segment_fill(segment, meta);
	if (rc != SQLITE_OK)
		result = segment_fail(segment, rc, err, "create");
	segment_close(segment, false);
	int error = 0;
	if (result == 0)
		error = file_sync_at(io, path);
	if (result == 0 && error == 0 && wal_bytes > 0)
		error = wal_fill(io, wal, wal_bytes);
	if (error == -ENOSPC || error == -EDQUOT)
		result = SEGMENT_FULL;
	else if (error < 0)
		result = err_errno(err, ERR_IO, -error, "cannot create %s", path);
	if (result != 0) {
		(void)io->unlink(io, path);
		(void)io->unlink(io, wal);
	}
	return result;
}

const char *segment_path(const struct segment *segment)
{
	return segment->path;
}

int segment_meta(struct segment *segment, struct segment_meta *ret, struct err *err)
{
	int rc, result = 0;
	sqlite3_stmt *statement = statement_get(segment, META, &rc);
	if (!statement)
		return segment_fail(segment, rc, err, "open");
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW && sqlite3_column_bytes(statement, 2) == DIGEST_BYTES &&
	    sqlite3_column_bytes(statement, 3) == JOURNAL_ID_BYTES) {
		ret->number = (uint32_t)sqlite3_column_int64(statement, 0);
		ret->first = (uint64_t)sqlite3_column_int64(statement, 1);
		memcpy(ret->prev.bytes, sqlite3_column_blob(statement, 2), DIGEST_BYTES);
		memcpy(ret->id, sqlite3_column_blob(statement, 3), JOURNAL_ID_BYTES);
	} else if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
		result = err_set(err, ERR_CORRUPT,
				 "%s is damaged: it does not say which segment it is",
				 segment->path);
	} else {
		result = segment_fail(segment, rc, err, "open");
	}
	sqlite3_reset(statement);
	return result;
}

static int add_records(struct segment *segment, const struct record *records,
		       const struct digest *hashes, size_t count)
{
	int rc;
	sqlite3_stmt *add = statement_get(segment, ADD_RECORD, &rc);
	for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
		const struct record *record = &records[i];
		sqlite3_bind_int64(add, 1, (int64_t)record->seq);
		sqlite3_bind_int64(add, 2, record->time_ms);
		sqlite3_bind_int64(add, 3, record->kind);
		sqlite3_bind_int64(add, 4, record->must_understand);
		sqlite3_bind_text(add, 5, record->size ? record->text : "", (int)record->size,
				  SQLITE_STATIC);
		sqlite3_bind_blob(add, 6, hashes[i].bytes, DIGEST_BYTES, SQLITE_STATIC);
		sqlite3_bind_int64(add, 7, record_guard(record, &hashes[i]));
		rc = statement_run(add);
	}
	return rc;
}

static int add_blobs(struct segment *segment, const struct blob *blobs, size_t count, int64_t first)
{
	int rc, rc_name;
	sqlite3_stmt *add = statement_get(segment, ADD_BLOB, &rc),
		     *name = statement_get(segment, ADD_NAME, &rc_name);
	rc = rc == SQLITE_OK ? rc_name : rc;
	for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
		sqlite3_bind_int64(add, 1, first + (int64_t)i);
		sqlite3_bind_blob(add, 2, blobs[i].size ? blobs[i].data : "", (int)blobs[i].size,
				  SQLITE_STATIC);
		rc = statement_run(add);
		if (rc != SQLITE_OK)
			break;
		sqlite3_bind_int64(name, 1, first + (int64_t)i);
		sqlite3_bind_blob(name, 2, blobs[i].digest.bytes, DIGEST_BYTES, SQLITE_STATIC);
		rc = statement_run(name);
	}
	return rc;
}

/* The id after the last blob. */
static int blob_next(struct segment *segment)
{
	if (segment->next_blob)
		return SQLITE_OK;
	int rc;
	sqlite3_stmt *last = statement_get(segment, LAST_BLOB, &rc);
	if (!last)
		return rc;
	rc = sqlite3_step(last);
	if (rc == SQLITE_ROW) {
		segment->next_blob = sqlite3_column_int64(last, 0) + 1;
		rc = SQLITE_OK;
	}
	sqlite3_reset(last);
	return rc;
}

int segment_append(struct segment *segment, const struct record *records,
		   const struct digest *hashes, size_t count, const struct blob *blobs,
		   size_t blob_count, int64_t *ret_blob_id, int *ret_wal_frames, struct err *err)
{
	int rc = segment_do(segment, DO_BEGIN);
	if (rc == SQLITE_OK && blob_count)
		rc = blob_next(segment);
	if (rc == SQLITE_OK)
		rc = add_records(segment, records, hashes, count);
	if (rc == SQLITE_OK && blob_count)
		rc = add_blobs(segment, blobs, blob_count, segment->next_blob);
	if (rc == SQLITE_OK)
		rc = segment_do(segment, DO_COMMIT);
	if (rc == SQLITE_OK) {
		*ret_blob_id = segment->next_blob;
		*ret_wal_frames = segment->wal_frames;
		segment->next_blob += (int64_t)blob_count;
		return 0;
	}
	int result = segment_fail(segment, rc, err, "write to");
	if (!sqlite3_get_autocommit(segment->db)) {
		rc = segment_do(segment, DO_ROLLBACK);
		if (rc != SQLITE_OK && result > 0)
			result = segment_fail(segment, rc, err, "roll back in");
	}
	return result == SEGMENT_BUSY
		       ? err_set(err, ERR_IO, "cannot write to %s: it is locked by another program",
				 segment->path)
		       : result;
}

static void row_read(sqlite3_stmt *statement, struct segment_row *ret)
{
	*ret = (struct segment_row){ 0 };
	struct record *record = &ret->record;
	record->seq = (uint64_t)sqlite3_column_int64(statement, 0);
	record->time_ms = sqlite3_column_int64(statement, 1);
	int64_t kind = sqlite3_column_int64(statement, 2),
		must = sqlite3_column_int64(statement, 3);
	record->kind = (uint32_t)kind;
	record->must_understand = must == 1;
	const void *text = sqlite3_column_blob(statement, 4);
	record->text = text ? text : "";
	record->size = (size_t)sqlite3_column_bytes(statement, 4);
	bool typed = sqlite3_column_type(statement, 1) == SQLITE_INTEGER &&
		     sqlite3_column_type(statement, 2) == SQLITE_INTEGER &&
		     sqlite3_column_type(statement, 3) == SQLITE_INTEGER &&
		     sqlite3_column_type(statement, 4) == SQLITE_TEXT &&
		     sqlite3_column_type(statement, 5) == SQLITE_BLOB &&
		     sqlite3_column_type(statement, 6) == SQLITE_INTEGER;
	if (!typed || kind < 0 || kind > UINT32_MAX || (must != 0 && must != 1) ||
	    record->size > RECORD_TEXT_MAX || sqlite3_column_bytes(statement, 5) != DIGEST_BYTES) {
		ret->wrong = "its row is not of the form it was written in";
		return;
	}
	memcpy(ret->hash.bytes, sqlite3_column_blob(statement, 5), DIGEST_BYTES);
	ret->good = sqlite3_column_int64(statement, 6) == record_guard(record, &ret->hash);
	if (!ret->good)
		ret->wrong = "its checksum does not match";
}

int segment_scan(struct segment *segment, uint64_t from, uint64_t to, struct err *err)
{
	int rc;
	sqlite3_stmt *scan = statement_get(segment, SCAN, &rc);
	if (!scan)
		return segment_fail(segment, rc, err, "read");
	sqlite3_reset(scan);
	sqlite3_bind_int64(scan, 1, from > INT64_MAX ? INT64_MAX : (int64_t)from);
	sqlite3_bind_int64(scan, 2, to > INT64_MAX ? INT64_MAX : (int64_t)to);
	return 0;
}

int segment_next(struct segment *segment, struct segment_row *ret, struct err *err)
{
	sqlite3_stmt *scan = segment->statements[SCAN];
	int rc = sqlite3_step(scan);
	if (rc == SQLITE_ROW) {
		row_read(scan, ret);
		return 0;
	}
	int result = rc == SQLITE_DONE ? SEGMENT_END : segment_fail(segment, rc, err, "read");
	sqlite3_reset(scan);
	return result;
}

void segment_scan_end(struct segment *segment)
{
	sqlite3_reset(segment->statements[SCAN]);
}

int segment_get(struct segment *segment, uint64_t seq, struct segment_row *ret, struct err *err)
{
	int rc;
	sqlite3_stmt *get = statement_get(segment, GET, &rc);
	if (!get)
		return segment_fail(segment, rc, err, "read");
	sqlite3_bind_int64(get, 1, seq > INT64_MAX ? INT64_MAX : (int64_t)seq);
	rc = sqlite3_step(get);
	int result = 0;
	if (rc == SQLITE_ROW) {
		row_read(get, ret);
		buf_clear(&segment->text);
		buf_add(&segment->text, ret->record.text, ret->record.size);
		ret->record.text = buf_text(&segment->text);
	} else {
		result = rc == SQLITE_DONE ? SEGMENT_END : segment_fail(segment, rc, err, "read");
	}
	sqlite3_reset(get);
	return result;
}

int segment_last(struct segment *segment, uint64_t limit, uint64_t *ret, struct err *err)
{
	int rc;
	sqlite3_stmt *last = statement_get(segment, LAST, &rc);
	if (!last)
		return segment_fail(segment, rc, err, "read");
	sqlite3_bind_int64(last, 1, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
	rc = sqlite3_step(last);
	int result = 0;
	if (rc != SQLITE_ROW)
		result = segment_fail(segment, rc, err, "read");
	else if (sqlite3_column_type(last, 0) == SQLITE_NULL)
		result = SEGMENT_END;
	else
		*ret = (uint64_t)sqlite3_column_int64(last, 0);
	sqlite3_reset(last);
	return result;
}

int segment_end(struct segment *segment, uint64_t *ret_good, uint64_t *ret_end, struct err *err)
{
	enum { BAD_ROWS_MAX = 64 };
	struct segment_row row;
	uint64_t seq = UINT64_MAX, bad = 0;
	int result = 0;
	for (unsigned i = 0; i <= BAD_ROWS_MAX && seq > 0; i++) {
		result = segment_last(segment, seq, &seq, err);
		if (result == 0)
			result = segment_get(segment, seq, &row, err);
		if (result != 0 || row.good)
			break;
		bad = bad ? bad : seq;
		seq--;
	}
	if (result < 0 || result == SEGMENT_BUSY || (result == SEGMENT_END && !bad))
		return result;
	/* Here seq is the good row, or the one below the lowest bad row seen. A bad row far above it has a
	 * damaged number: it was the next one. */
	*ret_good = seq;
	*ret_end = !bad ? seq : bad - seq <= BAD_ROWS_MAX ? bad : seq + 1;
	return 0;
}

int segment_names(struct segment *segment, int64_t after, void *context,
		  void (*take)(void *context, int64_t id, const struct digest *digest),
		  struct err *err)
{
	int rc;
	sqlite3_stmt *names = statement_get(segment, NAMES, &rc);
	if (!names)
		return segment_fail(segment, rc, err, "read");
	sqlite3_bind_int64(names, 1, after);
	while ((rc = sqlite3_step(names)) == SQLITE_ROW) {
		struct digest digest;
		if (sqlite3_column_bytes(names, 1) != DIGEST_BYTES)
			continue;
		memcpy(digest.bytes, sqlite3_column_blob(names, 1), DIGEST_BYTES);
		take(context, sqlite3_column_int64(names, 0), &digest);
	}
	int result = rc == SQLITE_DONE ? 0 : segment_fail(segment, rc, err, "read");
	sqlite3_reset(names);
	return result;
}

int segment_find_name(struct segment *segment, const struct digest *digest, int64_t *ret_id,
		      struct err *err)
{
	int rc;
	sqlite3_stmt *find = statement_get(segment, FIND_NAME, &rc);
	if (!find)
		return segment_fail(segment, rc, err, "read");
	sqlite3_bind_blob(find, 1, digest->bytes, DIGEST_BYTES, SQLITE_STATIC);
	rc = sqlite3_step(find);
	int result = 0;
	if (rc != SQLITE_ROW)
		result = segment_fail(segment, rc, err, "read");
	else if (sqlite3_column_type(find, 0) == SQLITE_NULL)
		result = SEGMENT_END;
	else
		*ret_id = sqlite3_column_int64(find, 0);
	sqlite3_reset(find);
	return result;
}

int segment_blob(struct segment *segment, int64_t id, void **ret_data, size_t *ret_size,
		 struct err *err)
{
	int rc;
	sqlite3_stmt *get = statement_get(segment, BLOB_DATA, &rc);
	if (!get)
		return segment_fail(segment, rc, err, "read");
	sqlite3_bind_int64(get, 1, id);
	rc = sqlite3_step(get);
	int result = 0;
	if (rc == SQLITE_DONE) {
		result = SEGMENT_END;
	} else if (rc != SQLITE_ROW) {
		result = segment_fail(segment, rc, err, "read");
	} else {
		const void *data = sqlite3_column_blob(get, 0);
		size_t size = (size_t)sqlite3_column_bytes(get, 0);
		*ret_data = malloc(size + 1);
		CHECK(*ret_data);
		if (size)
			memcpy(*ret_data, data, size);
		*ret_size = size;
	}
	sqlite3_reset(get);
	return result;
}

static int checkpoint_empty(struct segment *segment)
{
	return sqlite3_wal_checkpoint_v2(segment->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

int segment_erase(struct segment *segment, int64_t id, struct err *err)
{
	int rc;
	sqlite3_stmt *erase = statement_get(segment, ERASE, &rc);
	if (erase) {
		sqlite3_bind_int64(erase, 1, id);
		rc = statement_run(erase);
	}
	if (rc == SQLITE_OK)
		rc = checkpoint_empty(segment);
	return rc == SQLITE_OK ? 0 : segment_fail(segment, rc, err, "erase a body in");
}

int segment_checkpoint(struct segment *segment, int *ret_left, struct err *err)
{
	int frames = 0, copied = 0;
	int rc = sqlite3_wal_checkpoint_v2(segment->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames,
					   &copied);
	*ret_left = frames - copied;
	return rc == SQLITE_OK ? 0 : segment_fail(segment, rc, err, "checkpoint");
}

int segment_finish(struct segment *segment, struct err *err)
{
	int rc = sqlite3_exec(segment->db,
			      "CREATE INDEX IF NOT EXISTS blob_name_digest ON blob_name(digest)",
			      NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = checkpoint_empty(segment);
	return rc == SQLITE_OK ? 0 : segment_fail(segment, rc, err, "finish");
}

int segment_copy(struct io *io, struct segment *segment, const char *to, struct err *err)
{
	sqlite3 *copy = NULL;
	int rc = sqlite3_open_v2(to, &copy,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
				 io->real_paths ? "unix" : io_sqlite_vfs(io));
	sqlite3_backup *backup = NULL;
	if (rc == SQLITE_OK) {
		backup = sqlite3_backup_init(copy, "main", segment->db, "main");
		rc = backup ? sqlite3_backup_step(backup, -1) : sqlite3_errcode(copy);
		int end = backup ? sqlite3_backup_finish(backup) : SQLITE_OK;
		rc = rc == SQLITE_DONE ? end : rc;
	}
	sqlite3_close(copy);
	if ((rc & 0xff) == SQLITE_FULL)
		return err_set(err, ERR_IO,
			       "cannot copy %s to %s: no space left on the disk of the copy",
			       segment->path, to);
	if (rc != SQLITE_OK)
		return err_set(err, ERR_IO, "cannot copy %s to %s: %s", segment->path, to,
			       sqlite3_errstr(rc));
	return 0;
}
