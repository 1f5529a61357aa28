/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A table of records in chunks, copy on write.
 *
 * The core's facts live in such tables. A record is named by a 32-bit id, never by a pointer, and
 * ids start at 1 (0 means none). Records of one type lie in chunks of 16 KiB, and pages name 64
 * chunks each; table_freeze copies only the list of pages, in microseconds, and both sides go on:
 * the first change to a shared page or chunk copies it. So a snapshot, a list for a client or a dry
 * run reads an old state in another thread while the core goes on.
 *
 *	pages    [ * ][ * ]             <- one small array per table or frozen copy
 *	           |    \___ [ count of owners | * | * | ... 64 chunks ]
 *	           |                             |    \___ [ count of owners | records 86..170 ]
 *
 * Costs: get about 3 ns over an array; freeze 8 bytes and one atomic per page, so for a million
 * records of 192 bytes 1.5 KB and 184 atomics; the first edit of a shared page 64 atomics and 576
 * bytes copied, of a shared chunk 16 KiB copied. Chunks of zeroed records are made on first edit;
 * reading a record never edited gives zeroes.
 *
 * Threads: a table belongs to one thread; a frozen copy may be handed to another one. The owner
 * counts are atomic; nothing else is shared. Limit: 2^32-1 records.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

enum { TABLE_CHUNK_BYTES = 16384, TABLE_PAGE_CHUNKS = 64 };

struct table_chunk;

struct table_page {
	_Alignas(64) _Atomic uint32_t owners; /* tables whose list names it */
	struct table_chunk *chunks[TABLE_PAGE_CHUNKS]; /* NULL entries read as zeroes */
};

struct table {
	struct table_page **pages; /* NULL entries read as zeroes */
	uint32_t page_count;
	uint32_t page_room; /* entries allocated in pages */
	uint32_t record_bytes;
	uint32_t per_chunk; /* records in one chunk */
	uint32_t count; /* ids 1..count have been added */
	uint64_t inverse; /* 2^63 / per_chunk rounded up: a product instead of a division */
};

/* One chunk of zeroes, for those never edited. */
extern const unsigned char table_zeroes[TABLE_CHUNK_BYTES];

enum { TABLE_HEAD_BYTES = 64 }; /* of a chunk, before its records */

void table_init(struct table *table, uint32_t record_bytes); /* 1..TABLE_CHUNK_BYTES-64 */
void table_deinit(struct table *table); /* takes a zeroed one too */
/* Adds a zeroed record; returns its id. */
uint32_t table_add(struct table *table);

/*
 * Index of the chunk of record `index` (from 0). The rounding error of inverse is below per_chunk,
 * that of the product below 2^32 * 2^14 = 2^46: too small to reach the next whole number of 2^63.
 */
static inline uint32_t table_chunk_of(const struct table *table, uint32_t index)
{
	return (uint32_t)((__extension__(unsigned __int128) index * table->inverse) >> 63);
}

/* The record, read only; id must be 1..count. The pointer is void after the next edit or add. */
static inline const void *table_get(const struct table *table, uint32_t id)
{
	uint32_t index = id - 1, chunk;
	const struct table_page *page;
	const unsigned char *from = NULL;

	CHECK(index < table->count); /* id 0 is the largest index */
	chunk = table_chunk_of(table, index);
	page = table->pages[chunk / TABLE_PAGE_CHUNKS];
	if (page)
		from = (const unsigned char *)page->chunks[chunk % TABLE_PAGE_CHUNKS];
	if (__builtin_expect(!from, 0))
		from = table_zeroes;
	return from + TABLE_HEAD_BYTES +
	       (size_t)(index - chunk * table->per_chunk) * table->record_bytes;
}

/* The record for changing; copies its page and chunk when they are shared. */
void *table_edit(struct table *table, uint32_t id);
/* Gives the record's chunk back when all its records are zero; they read as zeroes all the same. */
void table_trim(struct table *table, uint32_t id);
/* ret becomes an independent copy of what table is now; ret must not be initialised. */
void table_freeze(const struct table *table, struct table *ret);
/* Bytes of chunks this table refers to (shared ones counted in full). */
size_t table_bytes(const struct table *table);
/* Walks all of it; aborts when something is wrong. Only by the thread that owns the table. */
void table_verify(const struct table *table);
