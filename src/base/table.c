/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chunk counts its owners: the tables whose list names it. With one owner an edit is in place;
 * with more, the editor copies the chunk first and gives its own share of the old one back.
 *
 * Why a plain counter is enough: only a table that names a chunk can add an owner, so a count of
 * one seen by that owner can't grow behind its back. When it falls to one, the others have done
 * their last read before their release, and the acquire here comes after it.
 *
 * Records behind `count` are zero in every chunk: nobody can edit them, so adding a record touches
 * no chunk.
 */
#include "base/table.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FETCH_AHEAD = 16 };

struct table_chunk {
	_Alignas(TABLE_HEAD_BYTES) atomic_uint owners;
	unsigned char records[];
};

const unsigned char table_zeroes[TABLE_CHUNK_BYTES];

static unsigned char *chunk_records(struct table_chunk *chunk)
{
	return (unsigned char *)chunk + TABLE_HEAD_BYTES;
}

void table_init(struct table *table, uint32_t record_bytes)
{
	CHECK(record_bytes >= 1 && record_bytes <= TABLE_CHUNK_BYTES - TABLE_HEAD_BYTES);
	*table = (struct table){ .record_bytes = record_bytes };
	table->per_chunk = (TABLE_CHUNK_BYTES - TABLE_HEAD_BYTES) / record_bytes;
	table->inverse = ((UINT64_C(1) << 63) + table->per_chunk - 1) / table->per_chunk;
}

static void chunk_release(struct table_chunk *chunk)
{
	if (chunk && atomic_fetch_sub_explicit(&chunk->owners, 1, memory_order_acq_rel) == 1)
		free(chunk);
}

void table_deinit(struct table *table)
{
	for (uint32_t i = 0; i < table->chunk_count; i++)
		chunk_release(table->chunks[i]);
	free(table->chunks);
	*table = (struct table){ 0 };
}

static void chunks_grow(struct table *table)
{
	uint32_t room = table->chunk_room ? table->chunk_room * 2 : 8;
	struct table_chunk **chunks;

	CHECK(room > table->chunk_room);
	chunks = realloc(table->chunks, room * sizeof(struct table_chunk *));
	CHECK(chunks != NULL);
	table->chunks = chunks;
	table->chunk_room = room;
}

uint32_t table_add(struct table *table)
{
	CHECK(table->record_bytes > 0 && table->count < UINT32_MAX);
	if (table->count == (uint64_t)table->chunk_count * table->per_chunk) {
		if (table->chunk_count == table->chunk_room)
			chunks_grow(table);
		table->chunks[table->chunk_count++] = NULL;
	}
	return ++table->count;
}

static struct table_chunk *chunk_create(void)
{
	struct table_chunk *chunk = calloc(1, TABLE_CHUNK_BYTES);

	CHECK(chunk != NULL);
	atomic_init(&chunk->owners, 1);
	return chunk;
}

static struct table_chunk *chunk_copy(struct table_chunk *old)
{
	struct table_chunk *chunk = malloc(TABLE_CHUNK_BYTES);

	CHECK(chunk != NULL);
	atomic_init(&chunk->owners, 1);
	memcpy(chunk_records(chunk), chunk_records(old), TABLE_CHUNK_BYTES - TABLE_HEAD_BYTES);
	chunk_release(old);
	return chunk;
}

void *table_edit(struct table *table, uint32_t id)
{
	uint32_t index = id - 1, at;
	struct table_chunk *chunk;

	CHECK(index < table->count);
	at = table_chunk_of(table, index);
	chunk = table->chunks[at];
	if (!chunk)
		chunk = table->chunks[at] = chunk_create();
	else if (atomic_load_explicit(&chunk->owners, memory_order_acquire) != 1)
		chunk = table->chunks[at] = chunk_copy(chunk);
	return chunk_records(chunk) + (size_t)(index - at * table->per_chunk) * table->record_bytes;
}

void table_trim(struct table *table, uint32_t id)
{
	uint32_t at = table_chunk_of(table, id - 1);

	CHECK(id - 1 < table->count);
	if (!table->chunks[at] || memcmp(chunk_records(table->chunks[at]), table_zeroes,
					 TABLE_CHUNK_BYTES - TABLE_HEAD_BYTES) != 0)
		return;
	chunk_release(table->chunks[at]);
	table->chunks[at] = NULL;
}

void table_freeze(const struct table *table, struct table *ret)
{
	*ret = *table;
	ret->chunks = NULL;
	ret->chunk_room = table->chunk_count;
	if (!table->chunk_count)
		return;
	ret->chunks = malloc(table->chunk_count * sizeof(struct table_chunk *));
	CHECK(ret->chunks != NULL);
	memcpy(ret->chunks, table->chunks, table->chunk_count * sizeof(struct table_chunk *));
	for (uint32_t i = 0; i < table->chunk_count; i++) {
		/* The counts lie 16 KiB apart: without asking ahead each one is waited for. */
		if (table->chunk_count - i > FETCH_AHEAD)
			__builtin_prefetch(ret->chunks[i + FETCH_AHEAD], 1);
		if (ret->chunks[i])
			atomic_fetch_add_explicit(&ret->chunks[i]->owners, 1, memory_order_relaxed);
	}
}

size_t table_bytes(const struct table *table)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < table->chunk_count; i++)
		bytes += table->chunks[i] ? TABLE_CHUNK_BYTES : 0;
	return bytes;
}

void table_verify(const struct table *table)
{
	uint64_t chunks, used;

	CHECK(table->record_bytes >= 1);
	CHECK(table->per_chunk == (TABLE_CHUNK_BYTES - TABLE_HEAD_BYTES) / table->record_bytes);
	chunks = ((uint64_t)table->count + table->per_chunk - 1) / table->per_chunk;
	CHECK(table->chunk_count == chunks);
	CHECK(table->chunk_count <= table->chunk_room);
	for (uint32_t i = 0; i < table->chunk_count; i++) {
		struct table_chunk *chunk = table->chunks[i];
		unsigned int owners;

		if (!chunk)
			continue;
		owners = atomic_load_explicit(&chunk->owners, memory_order_relaxed);
		CHECK(owners >= 1 && owners < 1u << 31);
		used = (uint64_t)table->count - (uint64_t)i * table->per_chunk;
		if (used > table->per_chunk)
			used = table->per_chunk;
		used *= table->record_bytes;
		CHECK(memcmp(chunk_records(chunk) + used, table_zeroes,
			     TABLE_CHUNK_BYTES - TABLE_HEAD_BYTES - used) == 0);
	}
}
