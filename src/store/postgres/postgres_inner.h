/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files here share. */
#include <libpq-fe.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/postgres/postgres.h"

struct postgres {
	char *address;
	enum postgres_mode mode;
	PGconn *connection; /* NULL: lost, and not yet made anew */
	char name[256];
	bool unsure; /* the newest statement is committed, and perhaps not where the server's stand-by has it */
	struct buf arrays[16]; /* scratch of appends */
};

/* --- connection.c --- */
/* A connection that can be used. Tries once. */
int postgres_connect(struct postgres *postgres, struct err *err) MUST_CHECK;
void postgres_disconnect(struct postgres *postgres);
/* Is it worth asking again on a new connection? */
bool postgres_is_lost(const struct postgres *postgres, const PGresult *result);
int postgres_error(struct postgres *postgres, const PGresult *result, const char *what,
		   struct err *err);
/* One statement with values in binary, both ways; NULL: no answer, and none within half a minute. */
PGresult *postgres_exec(struct postgres *postgres, const char *text, int count,
			const char *const *values, const int *sizes);
/* One statement that must give rows or nothing; retried on a new connection once when the old one was lost. For what changes nothing. */
int postgres_ask(struct postgres *postgres, const char *text, int count, const char *const *values,
		 const int *sizes, PGresult **ret, struct err *err) MUST_CHECK;

/* --- values.c: values as PostgreSQL sends them in binary --- */
struct parameters {
	const char *values[16];
	int sizes[16];
	int count;
	uint8_t numbers[16][8];
};
void parameter_number(struct parameters *p, int64_t value);
void parameter_bytes(struct parameters *p, const void *data, size_t size);

enum element {
	ELEMENT_BOOL = 16,
	ELEMENT_BYTES = 17,
	ELEMENT_INT8 = 20
}; /* PostgreSQL's numbers of types */
void array_begin(struct buf *array, enum element type, size_t count);
void array_number(struct buf *array, int64_t value);
void array_bool(struct buf *array, bool value);
void array_bytes(struct buf *array, const void *data, size_t size);

int64_t value_number(const PGresult *result, int row, int column);
/* False: it is not so long. */
bool value_bytes(const PGresult *result, int row, int column, void *ret, size_t size);
