/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes JSON into a buf. Commas come by themselves: a value is preceded by one unless it is the first of its object
 * or list. `key` is NULL for elements of lists.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

void out_object(struct buf *out, const char *key); /* { ... out_end(out, '}') */
void out_list(struct buf *out, const char *key); /* [ ... out_end(out, ']') */
void out_end(struct buf *out, char closing);
/* NULL is written as "" */
void out_text(struct buf *out, const char *key, const char *text);
void out_int(struct buf *out, const char *key, int64_t number);
void out_bool(struct buf *out, const char *key, bool value);
/* "2026-03-01T14:02:11.250Z"; "" for 0. */
void out_time(struct buf *out, const char *key, int64_t ms);
/* A share in 1/63000 of a GPU as a number of GPUs: 8, 0.5, 0.143. */
void out_share(struct buf *out, const char *key, int64_t share);
/* A piece of JSON that is complete already. */
void out_raw(struct buf *out, const char *key, const char *json, size_t size);
