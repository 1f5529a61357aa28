/* SPDX-License-Identifier: Apache-2.0 */
/* An array in binary: dimensions, flags, type, length, first index; then each element with its length (32 bits, big-endian). */
#include <string.h>

#include "store/guard.h"
#include "store/postgres/postgres_inner.h"

static void add_be32(struct buf *out, uint32_t value)
{
	const uint8_t bytes[4] = { (uint8_t)(value >> 24), (uint8_t)(value >> 16),
				   (uint8_t)(value >> 8), (uint8_t)value };

	buf_add(out, bytes, sizeof bytes);
}

void parameter_number(struct parameters *p, int64_t value)
{
	put_be64(p->numbers[p->count], (uint64_t)value);
	parameter_bytes(p, p->numbers[p->count], 8);
}

void parameter_bytes(struct parameters *p, const void *data, size_t size)
{
	p->values[p->count] = data;
	p->sizes[p->count++] = (int)size;
}

void array_begin(struct buf *array, enum element type, size_t count)
{
	buf_clear(array);
	add_be32(array, count ? 1 : 0);
	add_be32(array, 0);
	add_be32(array, type);
	if (!count)
		return;
	add_be32(array, (uint32_t)count);
	add_be32(array, 1);
}

void array_number(struct buf *array, int64_t value)
{
	uint8_t bytes[8];

	put_be64(bytes, (uint64_t)value);
	array_bytes(array, bytes, sizeof bytes);
}

void array_bool(struct buf *array, bool value)
{
	array_bytes(array, value ? "\1" : "\0", 1);
}

void array_bytes(struct buf *array, const void *data, size_t size)
{
	add_be32(array, (uint32_t)size);
	buf_add(array, data, size);
}

int64_t value_number(const PGresult *result, int row, int column)
{
	uint8_t bytes[8];

	return value_bytes(result, row, column, bytes, sizeof bytes) ? (int64_t)get_be64(bytes) : 0;
}

bool value_bytes(const PGresult *result, int row, int column, void *ret, size_t size)
{
	if ((size_t)PQgetlength(result, row, column) != size)
		return false;
	memcpy(ret, PQgetvalue(result, row, column), size);
	return true;
}
