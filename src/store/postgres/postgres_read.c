/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/guard.h"
#include "store/postgres/postgres_inner.h"

enum { PAGE_BYTES = 4 << 20 }; /* texts of one answer, which is in memory whole */

static void row_read(const PGresult *result, int i, struct segment_row *ret)
{
	const int64_t kind = value_number(result, i, 2);

	*ret = (struct segment_row){ .good = true };
	ret->record.seq = (uint64_t)value_number(result, i, 0);
	ret->record.time_ms = value_number(result, i, 1);
	ret->record.kind = (uint32_t)kind;
	ret->record.must_understand = *PQgetvalue(result, i, 3) != 0;
	ret->record.text = PQgetvalue(result, i, 4);
	ret->record.size = (size_t)PQgetlength(result, i, 4);
	if (!value_bytes(result, i, 5, ret->hash.bytes, DIGEST_BYTES))
		ret->wrong = "its hash has the wrong length";
	else if (kind < 0 || kind > UINT32_MAX || ret->record.size > RECORD_TEXT_MAX)
		ret->wrong = "a value of it is out of range";
	else if (record_guard(&ret->record, &ret->hash) != value_number(result, i, 6))
		ret->wrong = "its checksum does not hold";
	ret->good = !ret->wrong;
}

int postgres_rows(struct postgres *p, uint64_t from, uint64_t to, uint32_t most,
		  int (*take)(void *context, const struct segment_row *row), void *context,
		  struct err *err)
{
	/* The length of a text is known to the server without reading the text. The first row comes however long it is. */
	static const char text[] =
		"SELECT seq, time_ms, kind, must_understand, text, hash, guard FROM"
		" (SELECT *, sum(octet_length(text)) OVER (ORDER BY seq) - octet_length(text) AS before FROM"
		" (SELECT * FROM fairlead.record WHERE seq >= $1::bigint AND seq <= $2::bigint ORDER BY seq LIMIT $3::bigint) a) b"
		" WHERE before < $4::bigint ORDER BY seq";
	struct parameters with = { 0 };
	struct segment_row row;
	PGresult *result;
	int rc;

	parameter_number(&with, (int64_t)from);
	parameter_number(&with, to > INT64_MAX ? INT64_MAX : (int64_t)to);
	parameter_number(&with, most);
	parameter_number(&with, PAGE_BYTES);
	rc = postgres_ask(p, text, with.count, with.values, with.sizes, &result, err);
	if (rc < 0)
		return rc;
	for (int i = 0; i < PQntuples(result) && rc == 0; i++) {
		row_read(result, i, &row);
		rc = take(context, &row);
	}
	PQclear(result);
	return rc;
}

int postgres_blob(struct postgres *p, const struct digest *digest, void **ret_data,
		  size_t *ret_size, struct err *err)
{
	struct parameters with = { 0 };
	PGresult *result;
	int rc;

	parameter_bytes(&with, digest->bytes, DIGEST_BYTES);
	rc = postgres_ask(p, "SELECT data FROM fairlead.body WHERE digest = $1::bytea", with.count,
			  with.values, with.sizes, &result, err);
	if (rc < 0)
		return rc;
	if (PQntuples(result) != 1) {
		PQclear(result);
		return SEGMENT_END;
	}
	*ret_size = (size_t)PQgetlength(result, 0, 0);
	*ret_data = malloc(*ret_size + 1);
	CHECK(*ret_data);
	memcpy(*ret_data, PQgetvalue(result, 0, 0), *ret_size);
	PQclear(result);
	return 0;
}

int postgres_erase(struct postgres *p, int64_t epoch, const struct digest *digest, struct err *err)
{
	struct parameters with = { 0 };
	PGresult *result;
	int rc;

	parameter_bytes(&with, digest->bytes, DIGEST_BYTES);
	parameter_number(&with, epoch);
	rc = postgres_ask(
		p,
		"DELETE FROM fairlead.body WHERE digest = $1::bytea AND"
		" EXISTS (SELECT 1 FROM fairlead.head WHERE epoch = $2::bigint FOR UPDATE) RETURNING 1",
		with.count, with.values, with.sizes, &result, err);
	if (rc < 0)
		return rc;
	rc = PQntuples(result) ? 0 : SEGMENT_END;
	PQclear(result);
	return rc;
}
