/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The facts as typed records: what the snapshot holds, what the hash covers, what a dump shows. One table of
 * fields per kind serves all three, so that a field can't be saved and forgotten in the hash.
 *
 * A record is a row, named by `id` (the row's own id, or its owner's) and `sub` (which of the owner's rows).
 * Fields that are 0 or empty are left out everywhere: a later release may add fields at the end of a table, and
 * old snapshots still load, and old states keep their hash. Free rows, links between rows and derived fields are
 * in no table.
 */
#include "core/model/facts.h"

enum record_kind {
	RECORD_HEAD = 1000, /* seq, time, levels */
	RECORD_POLICY,
	RECORD_NAME, /* come first. Not hashed: where a name is used, its text counts */
	RECORD_NODE,
	RECORD_GPU, /* id node, sub index; only those with something to say */
	RECORD_QUEUE,
	RECORD_TEAM,
	RECORD_USER,
	RECORD_TOKEN,
	RECORD_SHAPE,
	RECORD_BODY,
	RECORD_JOB,
	RECORD_DEPEND, /* id job, sub from 0; these three follow their job */
	RECORD_CHECKPOINT, /* id job, sub its number; oldest first */
	RECORD_PROMISE, /* id job, sub from 0 */
	RECORD_ATTEMPT,
	RECORD_TASK, /* id attempt, sub rank; follow their attempt */
	RECORD_LIKE, /* only those that are not empty */
	RECORD_RESERVATION, /* id job; those of lower jobs come first */
	RECORD_RESERVED, /* id job, sub from 0; follow their reservation */
	RECORD_PRICE,
	RECORD_LEVEL, /* id its number, 0 the cluster; only those with something to say */
	RECORD_MAKE,
	RECORD_BOOKING,
	RECORD_ZONE,
	RECORD_PAST,
	RECORD_DATA,
	RECORD_TRANSFER,
	RECORD_MASK,
	RECORD_POOL,
	RECORD_END
};

enum field_type {
	FIELD_U8,
	FIELD_BOOL,
	FIELD_U16,
	FIELD_U32,
	FIELD_I32,
	FIELD_I64,
	FIELD_NAME, /* name_id; hashed as text, saved as number */
	FIELD_REASON, /* text_id; hashed and saved as text */
	FIELD_BYTES, /* `count` bytes, as hex */
	FIELD_TEXT /* char[count], NUL-terminated */
};

struct field {
	const char *name; /* NULL ends the table */
	uint8_t type;
	uint16_t offset;
	uint16_t count; /* elements; above 1 a list (but for bytes and texts) */
};

struct record_row {
	uint32_t kind, id, sub;
	const struct field *fields;
	const void *row;
};

/* Largest row of all kinds but the head. */
enum { RECORD_ROW_MAX = 4096 };

const struct field *record_fields(uint32_t kind); /* NULL for an unknown kind */
const char *record_name(uint32_t kind); /* "job" */
size_t field_bytes(const struct field *field); /* of one element */
bool field_is_list(const struct field *field);
bool field_is_empty(const struct field *field, const void *row);
/* A number field's element, widened. */
int64_t field_int(const struct field *field, const void *row, uint32_t at);
/* Stores it; false when it is out of the type's range. */
bool field_set_int(const struct field *field, void *row, uint32_t at, int64_t value);

/* All records in their order; a nonzero answer of take stops and is returned. */
int facts_walk(const struct facts *f, void *context,
	       int (*take)(void *context, const struct record_row *row));
/* Appends one as JSON. readable: names as texts. */
void record_encode(const struct facts *f, const struct record_row *row, bool readable,
		   struct buf *out);
