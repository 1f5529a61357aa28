/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Text tables: lines of fields with commas between, no quotes. What both workloads and public traces are read through.
 *
 *	struct rows rows;
 *	rc = rows_text(path, &text, err);
 *	rows_init(&rows, path, text, err);
 *	while ((line = rows_line(&rows))) ...		// or, behind rows_head, rows_next and rows_field
 *
 * The text is cut up in place and must live as long as what was read from it.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

enum { ROWS_COLUMNS_MAX = 64 };
#define ROWS_BYTES_MAX (INT64_C(2) << 30)

struct rows {
	const char *path;
	char *at; /* the next line; NULL = no more */
	uint32_t line; /* the number of the one read last */
	struct err *err;
	const char *columns[ROWS_COLUMNS_MAX];
	char *fields[ROWS_COLUMNS_MAX];
	uint32_t count; /* columns */
};

/* A whole file, or "-" for standard input; the caller frees it. ERR_NOT_FOUND, ERR_IO, ERR_TOO_LARGE, ERR_INVALID. */
int rows_text(const char *path, char **ret, struct err *err) MUST_CHECK;
void rows_init(struct rows *rows, const char *path, char *text, struct err *err);
char *rows_line(struct rows *rows); /* NULL: the end */
/* ERR_INVALID at the line read last. */
int rows_complain(const struct rows *rows, const char *format, ...) PRINTF_LIKE(2, 3);

/* The line with the names of the columns; each of `needed` must be there. */
int rows_head(struct rows *rows, const char *const *needed, uint32_t needed_count) MUST_CHECK;
int rows_next(struct rows *rows) MUST_CHECK; /* 1 a row, 0 the end, negative */
const char *rows_field(const struct rows *rows,
		       const char *column); /* NULL: there is no such column */
/* "12", "0.5", "7.25e1" is none: thousandths, further decimals are cut off; 0 to max. */
bool rows_thousandths(const char *text, int64_t max, int64_t *ret);
