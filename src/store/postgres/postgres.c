/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/postgres.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "store/guard.h"
#include "store/postgres/postgres_inner.h"

/* --- tables ------------------------------------------------------------------------------------------------------- */

/* Frozen: docs/decisions/0012-journal-in-postgresql.md. The lock lets one of two that begin at once make them. */
static const char tables[] =
	"BEGIN;"
	"SELECT pg_advisory_xact_lock(4201978163);"
	"CREATE SCHEMA IF NOT EXISTS fairlead;"
	"CREATE TABLE IF NOT EXISTS fairlead.head (only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), format bigint NOT NULL,"
	" id bytea NOT NULL, epoch bigint NOT NULL, last_seq bigint NOT NULL, last_time_ms bigint NOT NULL, last_hash bytea NOT NULL);"
	"CREATE TABLE IF NOT EXISTS fairlead.record (seq bigint PRIMARY KEY, time_ms bigint NOT NULL, kind bigint NOT NULL,"
	" must_understand boolean NOT NULL, text bytea NOT NULL, hash bytea NOT NULL, guard bigint NOT NULL);"
	"CREATE TABLE IF NOT EXISTS fairlead.body (digest bytea PRIMARY KEY, data bytea NOT NULL);";

enum { FORMAT = 1 };

static int tables_make(struct postgres *p, struct err *err)
{
	static const char first[] =
		"INSERT INTO fairlead.head SELECT true, $1::bigint, $2::bytea, 0, 0, 0, $3::bytea ON CONFLICT DO NOTHING";
	static const int binary[3] = { 1, 1, 1 };
	uint8_t id[JOURNAL_ID_BYTES];
	const struct digest none = { 0 };
	struct parameters with = { 0 };
	PGresult *result = PQexec(p->connection, tables);
	int rc = 0;

	if (PQresultStatus(result) == PGRES_COMMAND_OK) {
		PQclear(result);
		randombytes_buf(id, sizeof id);
		parameter_number(&with, FORMAT);
		parameter_bytes(&with, id, sizeof id);
		parameter_bytes(&with, none.bytes, sizeof none.bytes);
		result = PQexecParams(p->connection, first, with.count, NULL, with.values,
				      with.sizes, binary, 1);
	}
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		rc = postgres_error(p, result, "can't make the journal's tables", err);
	PQclear(result);
	result = PQexec(p->connection, rc < 0 ? "ROLLBACK" : "COMMIT");
	if (rc == 0 && PQresultStatus(result) != PGRES_COMMAND_OK)
		rc = postgres_error(p, result, "can't make the journal's tables", err);
	PQclear(result);
	return rc;
}

/* --- the head ------------------------------------------------------------------------------------------------------ */

#define HEAD_COLUMNS "format, id, epoch, last_seq, last_time_ms, last_hash"

static int head_of(struct postgres *p, const PGresult *result, struct postgres_head *ret,
		   struct err *err)
{
	if (PQntuples(result) != 1)
		return err_set(err, ERR_CORRUPT,
			       "%s: the journal has lost its head row: restore it from a backup",
			       p->name);
	if (value_number(result, 0, 0) != FORMAT)
		return err_set(
			err, ERR_UNSUPPORTED,
			"%s: its journal has format %lld, and this program knows %d: use the program that wrote it, or a newer one",
			p->name, (long long)value_number(result, 0, 0), FORMAT);
	ret->epoch = value_number(result, 0, 2);
	ret->last_seq = (uint64_t)value_number(result, 0, 3);
	ret->last_time_ms = value_number(result, 0, 4);
	if (!value_bytes(result, 0, 1, ret->id, sizeof ret->id) ||
	    !value_bytes(result, 0, 5, ret->last_hash.bytes, sizeof ret->last_hash.bytes))
		return err_set(err, ERR_CORRUPT,
			       "%s: the journal's head row is damaged: restore it from a backup",
			       p->name);
	return 0;
}

int postgres_head(struct postgres *p, struct postgres_head *ret, struct err *err)
{
	PGresult *result;
	int rc = postgres_ask(p, "SELECT " HEAD_COLUMNS " FROM fairlead.head", 0, NULL, NULL,
			      &result, err);

	if (rc < 0)
		return rc;
	rc = head_of(p, result, ret, err);
	PQclear(result);
	return rc;
}

/* --- opening ------------------------------------------------------------------------------------------------------- */

static int is_there(struct postgres *p, bool *ret, struct err *err)
{
	PGresult *result;
	int rc = postgres_ask(p, "SELECT 1::bigint WHERE to_regclass('fairlead.head') IS NOT NULL",
			      0, NULL, NULL, &result, err);

	if (rc < 0)
		return rc;
	*ret = PQntuples(result) == 1;
	PQclear(result);
	return 0;
}

/* Behind this nobody who wrote before can write. */
static int take_over(struct postgres *p, int64_t after, struct postgres_head *ret, struct err *err)
{
	static const char text[] =
		"UPDATE fairlead.head SET epoch = epoch + 1 WHERE $1::bigint IN (0, epoch) RETURNING " HEAD_COLUMNS;
	struct parameters with = { 0 };
	PGresult *result;
	int rc;

	parameter_number(&with, after);
	rc = postgres_ask(p, text, with.count, with.values, with.sizes, &result, err);
	if (rc < 0)
		return rc;
	if (after && PQntuples(result) == 0)
		rc = err_set(
			err, ERR_CONFLICT,
			"%s: another daemon has taken over its journal: this one writes nothing more",
			p->name);
	else
		rc = head_of(p, result, ret, err);
	PQclear(result);
	return rc;
}

static int open_all(struct postgres *p, int64_t after, struct postgres_head *ret, struct err *err)
{
	bool there = false;
	int rc = postgres_connect(p, err);

	if (rc == 0)
		rc = is_there(p, &there, err);
	if (rc == 0 && !there && p->mode != POSTGRES_CREATE)
		rc = err_set(err, ERR_NOT_FOUND, "%s has no journal of Fairlead", p->name);
	if (rc == 0 && !there)
		rc = tables_make(p, err);
	if (rc < 0)
		return rc;
	return p->mode == POSTGRES_READ || after == POSTGRES_FOLLOWS
		       ? postgres_head(p, ret, err)
		       : take_over(p, after, ret, err);
}

int postgres_take_over(struct postgres *p, struct postgres_head *ret, struct err *err)
{
	return take_over(p, 0, ret, err);
}

int postgres_open(const char *address, enum postgres_mode mode, int64_t after,
		  struct postgres **ret, struct postgres_head *ret_head, struct err *err)
{
	struct postgres *p = calloc(1, sizeof *p);
	int rc;

	CHECK(p);
	p->mode = mode;
	p->address = strdup(address);
	CHECK(p->address);
	rc = open_all(p, after, ret_head, err);
	if (rc < 0) {
		postgres_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void postgres_close(struct postgres *p)
{
	if (!p)
		return;
	postgres_disconnect(p);
	for (size_t i = 0; i < ARRAY_SIZE(p->arrays); i++)
		buf_deinit(&p->arrays[i]);
	free(p->address);
	free(p);
}

const char *postgres_name(const struct postgres *p)
{
	return p->name;
}

const char *postgres_address(const struct postgres *p)
{
	return p->address;
}

/* --- appending ------------------------------------------------------------------------------------------------------ */

static const char append[] =
	"WITH h AS (UPDATE fairlead.head SET last_seq = $1::bigint, last_time_ms = $2::bigint, last_hash = $3::bytea"
	" WHERE epoch = $4::bigint AND last_seq = $5::bigint AND last_hash = $6::bytea RETURNING 1),"
	" r AS (INSERT INTO fairlead.record SELECT u.* FROM unnest($7::bigint[], $8::bigint[], $9::bigint[], $10::boolean[],"
	" $11::bytea[], $12::bytea[], $13::bigint[]) u, h),"
	" b AS (INSERT INTO fairlead.body SELECT u.* FROM unnest($14::bytea[], $15::bytea[]) u, h ON CONFLICT DO NOTHING)"
	" SELECT count(*) FROM h";

enum { SEQ, TIME, KIND, MUST, TEXT, HASH, GUARD, DIGEST, DATA, COLUMNS };
enum { APPEND_COLUMN_MAX = 512 << 20 }; /* bytes; the server refuses a value of 1 GiB */

static void rows_write(struct buf *a, const struct record *records, const struct digest *hashes,
		       size_t count, const struct blob *blobs, size_t blob_count)
{
	static const enum element types[COLUMNS] = { ELEMENT_INT8, ELEMENT_INT8,  ELEMENT_INT8,
						     ELEMENT_BOOL, ELEMENT_BYTES, ELEMENT_BYTES,
						     ELEMENT_INT8, ELEMENT_BYTES, ELEMENT_BYTES };

	for (int i = 0; i < COLUMNS; i++)
		array_begin(&a[i], types[i], i < DIGEST ? count : blob_count);
	for (size_t i = 0; i < count; i++) {
		array_number(&a[SEQ], (int64_t)records[i].seq);
		array_number(&a[TIME], records[i].time_ms);
		array_number(&a[KIND], records[i].kind);
		array_bool(&a[MUST], records[i].must_understand);
		array_bytes(&a[TEXT], records[i].text, records[i].size);
		array_bytes(&a[HASH], hashes[i].bytes, DIGEST_BYTES);
		array_number(&a[GUARD], record_guard(&records[i], &hashes[i]));
	}
	for (size_t i = 0; i < blob_count; i++) {
		array_bytes(&a[DIGEST], blobs[i].digest.bytes, DIGEST_BYTES);
		array_bytes(&a[DATA], blobs[i].data, blobs[i].size);
	}
}

enum sent { SENT_DONE, SENT_NOT, SENT_FULL, SENT_UNKNOWN, SENT_REFUSED };

/* Sends it once. SENT_NOT: the head stood elsewhere. */
static enum sent append_send(struct postgres *p, const struct postgres_head *before,
			     const struct postgres_head *after, struct err *err)
{
	struct parameters with = { 0 };
	enum sent sent = SENT_UNKNOWN;
	const char *code;
	PGresult *result;

	if (postgres_connect(p, err) < 0)
		return err->code == ERR_UNAVAILABLE ? SENT_UNKNOWN : SENT_REFUSED;
	parameter_number(&with, (int64_t)after->last_seq);
	parameter_number(&with, after->last_time_ms);
	parameter_bytes(&with, after->last_hash.bytes, DIGEST_BYTES);
	parameter_number(&with, before->epoch);
	parameter_number(&with, (int64_t)before->last_seq);
	parameter_bytes(&with, before->last_hash.bytes, DIGEST_BYTES);
	for (int i = 0; i < COLUMNS; i++)
		parameter_bytes(&with, p->arrays[i].data, p->arrays[i].size);
	result = postgres_exec(p, append, with.count, with.values, with.sizes);
	/* The count comes before the commit: only an idle connection behind it says that this was done. */
	if (PQresultStatus(result) == PGRES_TUPLES_OK && p->unsure) {
		err_set(err, ERR_UNAVAILABLE, "%s: the wait for its stand-by was called off",
			p->name);
	} else if (PQresultStatus(result) == PGRES_TUPLES_OK &&
		   PQtransactionStatus(p->connection) == PQTRANS_IDLE) {
		sent = value_number(result, 0, 0) == 1 ? SENT_DONE : SENT_NOT;
	} else {
		code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
		postgres_error(p, result, "can't write to the journal", err);
		if (code && strcmp(code, "53100") == 0)
			sent = SENT_FULL;
		else if (!postgres_is_lost(p, result) && PQresultStatus(result) != PGRES_TUPLES_OK)
			sent = SENT_REFUSED;
	}
	PQclear(result);
	if (sent == SENT_UNKNOWN)
		postgres_disconnect(p);
	return sent;
}

static int somebody_else(struct postgres *p, const struct postgres_head *now,
			 const struct postgres_head *mine, struct err *err)
{
	if (now->epoch <= mine->epoch)
		return err_set(
			err, ERR_CONFLICT,
			"%s: its journal ends at record %llu, and this daemon wrote up to %llu: was a stand-by promoted that had not everything? This daemon writes nothing more",
			p->name, (unsigned long long)now->last_seq,
			(unsigned long long)mine->last_seq);
	return err_set(
		err, ERR_CONFLICT,
		"%s: another daemon has taken over its journal (epoch %lld; this one's is %lld): this one writes nothing more",
		p->name, (long long)now->epoch, (long long)mine->epoch);
}

static bool stands_at(const struct postgres_head *now, const struct postgres_head *where)
{
	return now->last_seq == where->last_seq && digest_equal(&now->last_hash, &where->last_hash);
}

enum settled { SETTLED_DONE, SETTLED_NOT, SETTLED_LATER, SETTLED_LOST };

/* The head, written once more as it is: behind whatever of this writer is still under way, and kept wherever commits are kept. */
static int head_touch(struct postgres *p, int64_t epoch, struct postgres_head *ret, struct err *err)
{
	static const char text[] =
		"UPDATE fairlead.head SET epoch = epoch WHERE epoch = $1::bigint RETURNING " HEAD_COLUMNS;
	struct parameters with = { 0 };
	PGresult *result;
	int rc;

	parameter_number(&with, epoch);
	rc = postgres_ask(p, text, with.count, with.values, with.sizes, &result, err);
	if (rc < 0)
		return rc;
	if (p->unsure)
		rc = err_set(err, ERR_UNAVAILABLE, "%s: the wait for its stand-by was called off",
			     p->name);
	else
		rc = PQntuples(result) ? head_of(p, result, ret, err) : postgres_head(p, ret, err);
	PQclear(result);
	return rc;
}

/* What became of an append that nobody answered for: the head says it by its hash. */
static enum settled append_settle(struct postgres *p, const struct postgres_head *before,
				  const struct postgres_head *after, struct err *err)
{
	struct postgres_head now;

	if (postgres_connect(p, err) < 0 || head_touch(p, before->epoch, &now, err) < 0)
		return err->code == ERR_UNAVAILABLE ? SETTLED_LATER : SETTLED_LOST;
	if (now.epoch == before->epoch && stands_at(&now, after) && !stands_at(before, after))
		return SETTLED_DONE;
	if (now.epoch == before->epoch && stands_at(&now, before))
		return SETTLED_NOT;
	somebody_else(p, &now, before, err);
	return SETTLED_LOST;
}

static int64_t mono_ms(void)
{
	return clock_mono_ns() / 1000000;
}

static void pause_ms(int64_t ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

enum { FIRST_PAUSE_MS = 20, LONGEST_PAUSE_MS = 2000 };

/* Until it is known to be done or not to be: 0, POSTGRES_FULL, or negative. */
static int append_until(struct postgres *p, const struct postgres_head *before,
			const struct postgres_head *after, struct err *err)
{
	const int64_t end_ms = mono_ms() + POSTGRES_PATIENCE_MS;
	int64_t wait_ms = FIRST_PAUSE_MS;
	bool ask = false; /* it may have been done already */

	err_set(err, ERR_UNAVAILABLE, "%s gave no answer in time", p->name);
	for (;;) {
		enum settled settled = ask ? append_settle(p, before, after, err) : SETTLED_NOT;

		if (settled == SETTLED_DONE)
			return 0;
		if (settled == SETTLED_LOST)
			return -(int)err->code;
		if (settled == SETTLED_NOT) {
			const enum sent sent = append_send(p, before, after, err);

			if (sent == SENT_DONE)
				return 0;
			if (sent == SENT_FULL && !ask)
				return POSTGRES_FULL;
			if (sent == SENT_REFUSED)
				return -(int)err->code;
			ask = true;
			if (sent == SENT_NOT)
				continue; /* an earlier try was done meanwhile, or somebody else came: the head says which */
		}
		if (mono_ms() + wait_ms > end_ms)
			return -(int)err->code;
		pause_ms(wait_ms);
		wait_ms = wait_ms * 2 < LONGEST_PAUSE_MS ? wait_ms * 2 : LONGEST_PAUSE_MS;
	}
}

int postgres_append(struct postgres *p, struct postgres_head *before, const struct record *records,
		    const struct digest *hashes, size_t count, const struct blob *blobs,
		    size_t blob_count, struct err *err)
{
	struct postgres_head after = *before;
	int rc;

	if (count) {
		after.last_seq = records[count - 1].seq;
		after.last_time_ms = records[count - 1].time_ms;
		after.last_hash = hashes[count - 1];
	}
	rows_write(p->arrays, records, hashes, count, blobs, blob_count);
	for (int i = 0; i < COLUMNS; i++)
		if (p->arrays[i].size > APPEND_COLUMN_MAX)
			return err_set(
				err, ERR_TOO_LARGE,
				"%zu bytes in one append are more than PostgreSQL takes (%d)",
				p->arrays[i].size, APPEND_COLUMN_MAX);
	rc = append_until(p, before, &after, err);
	if (rc == 0)
		*before = after;
	return rc;
}
