/* SPDX-License-Identifier: Apache-2.0 */
/* Content of snapshots in the journal's database (store/code.h), on a connection of its own, which is made with the first question. Rows are
 * put by whichever daemon is told of them, and change nothing of the journal. Frozen: docs/decisions/0027. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/digest.h"
#include "store/code_inner.h"
#include "store/postgres/postgres_inner.h"

/* The lock: of two that begin at once one makes it. `name` is 32 bytes, `account` as it is written. */
static const char table[] =
	"BEGIN;"
	"SELECT pg_advisory_xact_lock(4201978164);"
	"CREATE TABLE IF NOT EXISTS fairlead.code (account bytea NOT NULL, kind bigint NOT NULL, name bytea NOT NULL,"
	" named_s bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (account, kind, name));"
	"COMMIT;";

struct code_database {
	struct code_store store;
	char *address;
	pthread_mutex_t lock; /* one question at a time */
	struct postgres *postgres; /* NULL until the first one */
};

static int table_make(struct postgres *p, struct err *err)
{
	PGresult *result = PQexec(p->connection, table);
	int rc = 0;

	if (PQresultStatus(result) != PGRES_COMMAND_OK) {
		rc = postgres_error(p, result, "can't make the table for snapshots", err);
		postgres_disconnect(p);
	}
	PQclear(result);
	return rc;
}

/* Takes the lock, in any case. */
static int begin(struct code_database *c, struct err *err)
{
	struct postgres_head head;
	int rc = 0;

	pthread_mutex_lock(&c->lock);
	if (c->postgres)
		return 0;
	rc = postgres_open(c->address, POSTGRES_WRITE, POSTGRES_FOLLOWS, &c->postgres, &head, err);
	if (rc == 0)
		rc = table_make(c->postgres, err);
	if (rc < 0) {
		postgres_close(c->postgres);
		c->postgres = NULL;
	}
	return rc;
}

static void of(struct parameters *with, const char *account, enum code_kind kind)
{
	parameter_bytes(with, account, strlen(account));
	parameter_number(with, kind);
}

static int name_bytes(const char *name, struct digest *ret, struct err *err)
{
	return digest_parse(name, ret) ? 0
				       : err_set(err, ERR_INVALID, "\"%.80s\" is no SHA-256", name);
}

/* One question; *ret is the caller's to clear where it answers 0. */
static int ask(struct code_store *store, const char *text, const struct parameters *with,
	       PGresult **ret, struct err *err)
{
	struct code_database *c = (struct code_database *)store;
	int rc = begin(c, err);

	if (rc == 0)
		rc = postgres_ask(c->postgres, text, with->count, with->values, with->sizes, ret,
				  err);
	/* A commit that its server's stand-by may not have yet: asked again, it is put again. */
	if (rc == 0 && c->postgres->unsure) {
		PQclear(*ret);
		rc = err_set(err, ERR_UNAVAILABLE, "%s: the wait for its stand-by was called off",
			     c->postgres->name);
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static int do_it(struct code_store *store, const char *text, const struct parameters *with,
		 struct err *err)
{
	PGresult *result;
	int rc = ask(store, text, with, &result, err);

	if (rc == 0)
		PQclear(result);
	return rc;
}

static void hex_of(const PGresult *result, int row, char ret[DIGEST_HEX_MAX])
{
	struct digest digest = { 0 };

	(void)value_bytes(result, row, 0, digest.bytes, DIGEST_BYTES);
	digest_format(&digest, ret);
}

/* --- one of them ---------------------------------------------------------------------------------------------------- */

static int database_put(struct code_store *store, const char *account, enum code_kind kind,
			const char *name, const void *data, size_t size, struct err *err)
{
	struct parameters with = { 0 };
	struct digest digest;

	if (name_bytes(name, &digest, err) < 0)
		return -1;
	of(&with, account, kind);
	parameter_bytes(&with, digest.bytes, DIGEST_BYTES);
	parameter_number(&with, (int64_t)time(NULL));
	parameter_bytes(&with, size ? data : "", size);
	return do_it(
		store,
		"INSERT INTO fairlead.code VALUES ($1::bytea, $2::bigint, $3::bytea, $4::bigint, $5::bytea)"
		" ON CONFLICT (account, kind, name) DO UPDATE SET named_s = excluded.named_s, data = excluded.data",
		&with, err);
}

static int database_get(struct code_store *store, const char *account, enum code_kind kind,
			const char *name, struct buf *out, struct err *err)
{
	struct parameters with = { 0 };
	struct digest digest;
	PGresult *result;

	if (name_bytes(name, &digest, err) < 0)
		return -1;
	of(&with, account, kind);
	parameter_bytes(&with, digest.bytes, DIGEST_BYTES);
	if (ask(store,
		"SELECT data FROM fairlead.code WHERE account = $1::bytea AND kind = $2::bigint AND name = $3::bytea",
		&with, &result, err) < 0)
		return -1;
	if (PQntuples(result) != 1) {
		PQclear(result);
		return code_none(name, err);
	}
	buf_add(out, PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0));
	PQclear(result);
	return 0;
}

/* --- many ----------------------------------------------------------------------------------------------------------- */

struct named {
	char name[CODE_NAME_MAX];
	int64_t bytes;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static void sizes_find(const PGresult *result, const char *const *names, size_t count,
		       int64_t *ret_sizes)
{
	const size_t rows = (size_t)PQntuples(result);
	struct named *found = calloc(rows + 1, sizeof(*found)), key = { .bytes = 0 }, *at;

	CHECK(found);
	for (size_t i = 0; i < rows; i++) {
		hex_of(result, (int)i, found[i].name);
		found[i].bytes = value_number(result, (int)i, 1);
	}
	qsort(found, rows, sizeof(*found), by_name);
	for (size_t i = 0; i < count; i++) {
		snprintf(key.name, sizeof(key.name), "%.64s", names[i]);
		at = bsearch(&key, found, rows, sizeof(*found), by_name);
		ret_sizes[i] = at ? at->bytes : -1;
	}
	free(found);
}

/* In the order of names, so that two of them that are told at once don't wait for each other's rows. */
static int database_name(struct code_store *store, const char *account, enum code_kind kind,
			 const char *const *names, size_t count, int64_t *ret_sizes,
			 struct err *err)
{
	static const char text[] =
		"WITH n AS (SELECT name FROM fairlead.code WHERE account = $1::bytea AND kind = $2::bigint AND"
		" name = ANY ($4::bytea[]) ORDER BY name FOR UPDATE)"
		" UPDATE fairlead.code c SET named_s = $3::bigint FROM n WHERE c.account = $1::bytea AND c.kind = $2::bigint AND"
		" c.name = n.name RETURNING c.name, octet_length(c.data)::bigint";
	struct parameters with = { 0 };
	AUTO_BUF array = BUF_INIT;
	struct digest digest;
	PGresult *result;

	array_begin(&array, ELEMENT_BYTES, count);
	for (size_t i = 0; i < count; i++) {
		if (name_bytes(names[i], &digest, err) < 0)
			return -1;
		array_bytes(&array, digest.bytes, DIGEST_BYTES);
	}
	of(&with, account, kind);
	parameter_number(&with, (int64_t)time(NULL));
	parameter_bytes(&with, array.data, array.size);
	if (ask(store, text, &with, &result, err) < 0)
		return -1;
	sizes_find(result, names, count, ret_sizes);
	PQclear(result);
	return 0;
}

static int database_bytes(struct code_store *store, const char *account, int64_t *ret,
			  struct err *err)
{
	struct parameters with = { 0 };
	PGresult *result;

	of(&with, account, CODE_FILES);
	if (ask(store,
		"SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM fairlead.code WHERE account = $1::bytea AND kind = $2::bigint",
		&with, &result, err) < 0)
		return -1;
	*ret = value_number(result, 0, 0);
	PQclear(result);
	return 0;
}

static int database_accounts(struct code_store *store, struct code_names *ret, struct err *err)
{
	const struct parameters with = { 0 };
	char name[CODE_NAME_MAX];
	PGresult *result;

	if (ask(store, "SELECT DISTINCT account FROM fairlead.code", &with, &result, err) < 0)
		return -1;
	for (int i = 0; i < PQntuples(result); i++) {
		snprintf(name, sizeof(name), "%.*s", PQgetlength(result, i, 0),
			 PQgetvalue(result, i, 0));
		code_names_add(ret, name);
	}
	PQclear(result);
	return 0;
}

static int database_list(struct code_store *store, const char *account, enum code_kind kind,
			 struct code_names *ret, struct err *err)
{
	struct parameters with = { 0 };
	char name[DIGEST_HEX_MAX];
	PGresult *result;

	of(&with, account, kind);
	if (ask(store,
		"SELECT name FROM fairlead.code WHERE account = $1::bytea AND kind = $2::bigint",
		&with, &result, err) < 0)
		return -1;
	for (int i = 0; i < PQntuples(result); i++) {
		hex_of(result, i, name);
		code_names_add(ret, name);
	}
	PQclear(result);
	return 0;
}

static int database_remove(struct code_store *store, const char *account, enum code_kind kind,
			   int64_t before_s, const struct code_names *keep, struct err *err)
{
	struct parameters with = { 0 };
	AUTO_BUF array = BUF_INIT;
	struct digest digest;

	array_begin(&array, ELEMENT_BYTES, keep->count);
	for (size_t i = 0; i < keep->count; i++) {
		if (name_bytes(keep->list[i], &digest, err) < 0)
			return -1;
		array_bytes(&array, digest.bytes, DIGEST_BYTES);
	}
	of(&with, account, kind);
	parameter_number(&with, before_s);
	parameter_bytes(&with, array.data, array.size);
	return do_it(
		store,
		"DELETE FROM fairlead.code c WHERE account = $1::bytea AND kind = $2::bigint AND named_s < $3::bigint AND"
		" NOT EXISTS (SELECT 1 FROM unnest($4::bytea[]) k WHERE k = c.name)",
		&with, err);
}

static void database_destroy(struct code_store *store)
{
	struct code_database *c = (struct code_database *)store;

	postgres_close(c->postgres);
	pthread_mutex_destroy(&c->lock);
	explicit_bzero(c->address, strlen(c->address));
	free(c->address);
	free(c);
}

struct code_store *code_store_database(const char *address)
{
	static const struct code_ops ops = { .destroy = database_destroy,
					     .put = database_put,
					     .get = database_get,
					     .name = database_name,
					     .bytes = database_bytes,
					     .accounts = database_accounts,
					     .list = database_list,
					     .remove = database_remove };
	struct code_database *c = calloc(1, sizeof(*c));

	CHECK(c);
	c->store.ops = &ops;
	c->address = strdup(address);
	CHECK(c->address);
	pthread_mutex_init(&c->lock, NULL);
	return &c->store;
}
