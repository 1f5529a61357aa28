/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The two sums over a record: the chain hash, which ties it to all before it, and the guard, which
 * covers one row by itself. And the line that ends a text file of the journal's folder. All are part of the format
 * (docs/decisions/0002-journal.md).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/digest.h"
#include "store/journal.h"

/* SHA-256( prev | seq | time_ms | kind | must_understand | text ), integers as 8 bytes big-endian. */
struct digest record_hash(const struct digest *prev, const struct record *record);
/* XXH3-64 of ( seq | time_ms | kind | must_understand | size | XXH3-64(text) | hash ), as SQLite's signed integer. */
int64_t record_guard(const struct record *record, const struct digest *hash);
/* Puts a number as 8 bytes big-endian. */
void put_be64(uint8_t *out, uint64_t value);
uint64_t get_be64(const uint8_t *in);
/* Appends "check <SHA-256 of all text before>\n". */
void check_line_add(struct buf *text);
/* Returns whether the text ends with its check line, and removes that line. The text is unusable if not. */
bool check_line_take(char *text, size_t size);
