/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Growable arrays for the index. Facts live in tables (base/table.h); what is derived from them is private to
 * one thread, never frozen, and may lie in plain memory. An array is a struct buf seen as records:
 *
 *	ARRAY(uint32_t) ranks;			zeroed = empty
 *	array_resize(&ranks.buf, 10, sizeof(*ranks.at));	new records are zero
 *	ranks.at[3] = 7;
 *	buf_deinit(&ranks.buf);
 *
 * Owned by the structure it stands in. Pointers into it are void after the next resize.
 */
#include <string.h>
#include "base/buf.h"

#define ARRAY(type)                                                                                \
	union {                                                                                    \
		struct buf buf;                                                                    \
		type *at;                                                                          \
	}

/* Makes it `count` records long; records beyond the old end are zero. */
static inline void array_resize(struct buf *buf, size_t count, size_t record_bytes)
{
	size_t size = count * record_bytes;

	if (size > buf->size) {
		buf_reserve(buf, size - buf->size);
		memset(buf->data + buf->size, 0, size - buf->size);
	}
	buf->size = size;
}

/* At least `count` records long; grows only. */
static inline void array_ensure(struct buf *buf, size_t count, size_t record_bytes)
{
	if (buf->size < count * record_bytes)
		array_resize(buf, count, record_bytes);
}
