/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page counts its owners: the tables whose list names it; a chunk counts the pages that name it.
 * With one owner all the way an edit is in place. With more, the editor copies the page first,
 * which makes it one more owner of each chunk in there, then the chunk, and gives its own share of
 * the old ones back. Whoever gives back the last share of a page gives back its chunks.
 *
 * Why plain counters are enough: only a table that names a page can add an owner to it, and only
 * who has the page to a chunk of it. So a count of one seen by that owner can't grow behind its
 * back. When it falls to one, the others have done their last read before their release, and the
 * acquire here comes after it.
 *
 * Why two levels: with one, a freeze counts up every chunk, each a cache line of its own, 19,000 of
 * them for a million jobs; and the end of the frozen copy counts them down. Pages of 64 make that
 * 300, and the first edit behind a freeze pays for the 64 it touches.
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
	_Alignas(TABLE_HEAD_BYTES) _Atomic uint32_t owners; /* pages that name it */
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

static void page_release(struct table_page *page)
{
	if (!page || atomic_fetch_sub_explicit(&page->owners, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < TABLE_PAGE_CHUNKS; i++)
		chunk_release(page->chunks[i]);
	free(page);
}

void table_deinit(struct table *table)
{
	for (uint32_t i = 0; i < table->page_count; i++) {
		if (table->page_count - i > FETCH_AHEAD && table->pages[i + FETCH_AHEAD])
			__builtin_prefetch(table->pages[i + FETCH_AHEAD], 1);
		page_release(table->pages[i]);
	}
	free(table->pages);
	*table = (struct table){ 0 };
}

static void pages_grow(struct table *table)
{
	uint32_t room = table->page_room ? table->page_room * 2 : 4;
	struct table_page **pages;

	CHECK(room > table->page_room);
	pages = realloc(table->pages, room * sizeof(struct table_page *));
	CHECK(pages != NULL);
	table->pages = pages;
	table->page_room = room;
}

uint32_t table_add(struct table *table)
{
	CHECK(table->record_bytes > 0 && table->count < UINT32_MAX);
	if (table->count == (uint64_t)table->page_count * TABLE_PAGE_CHUNKS * table->per_chunk) {
		if (table->page_count == table->page_room)
			pages_grow(table);
		table->pages[table->page_count++] = NULL;
	}
	return ++table->count;
}

static struct table_page *page_create(void)
{
	struct table_page *page = aligned_alloc(64, sizeof(*page));

	CHECK(page != NULL);
	memset(page, 0, sizeof(*page));
	atomic_init(&page->owners, 1);
	return page;
}

static struct table_page *page_copy(struct table_page *old)
{
	struct table_page *page = page_create();

	memcpy(page->chunks, old->chunks, sizeof(page->chunks));
	/* The counts lie 16 KiB apart: without asking ahead each one is waited for. */
	for (uint32_t i = 0; i < TABLE_PAGE_CHUNKS; i++)
		if (page->chunks[i])
			__builtin_prefetch(page->chunks[i], 1);
	for (uint32_t i = 0; i < TABLE_PAGE_CHUNKS; i++)
		if (page->chunks[i])
			atomic_fetch_add_explicit(&page->chunks[i]->owners, 1,
						  memory_order_relaxed);
	page_release(old);
	return page;
}

/* The page of a chunk, made ours alone. */
static struct table_page *page_own(struct table *table, uint32_t chunk)
{
	struct table_page **page = &table->pages[chunk / TABLE_PAGE_CHUNKS];

	if (!*page)
		*page = page_create();
	else if (atomic_load_explicit(&(*page)->owners, memory_order_acquire) != 1)
		*page = page_copy(*page);
	return *page;
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
	struct table_chunk **chunk;

	CHECK(index < table->count);
	at = table_chunk_of(table, index);
	chunk = &page_own(table, at)->chunks[at % TABLE_PAGE_CHUNKS];
	if (!*chunk)
		*chunk = chunk_create();
	else if (atomic_load_explicit(&(*chunk)->owners, memory_order_acquire) != 1)
		*chunk = chunk_copy(*chunk);
	return chunk_records(*chunk) +
	       (size_t)(index - at * table->per_chunk) * table->record_bytes;
}

void table_trim(struct table *table, uint32_t id)
{
	uint32_t index = id - 1, at;
	struct table_chunk *chunk = NULL;
	struct table_page *page;

	CHECK(index < table->count);
	at = table_chunk_of(table, index);
	page = table->pages[at / TABLE_PAGE_CHUNKS];
	if (page)
		chunk = page->chunks[at % TABLE_PAGE_CHUNKS];
	if (!chunk ||
	    memcmp(chunk_records(chunk), table_zeroes, TABLE_CHUNK_BYTES - TABLE_HEAD_BYTES) != 0)
		return;
	page_own(table, at)->chunks[at % TABLE_PAGE_CHUNKS] = NULL;
	chunk_release(chunk);
}

void table_freeze(const struct table *table, struct table *ret)
{
	*ret = *table;
	ret->pages = NULL;
	ret->page_room = table->page_count;
	if (!table->page_count)
		return;
	ret->pages = malloc(table->page_count * sizeof(struct table_page *));
	CHECK(ret->pages != NULL);
	memcpy(ret->pages, table->pages, table->page_count * sizeof(struct table_page *));
	for (uint32_t i = 0; i < table->page_count; i++) {
		if (table->page_count - i > FETCH_AHEAD && ret->pages[i + FETCH_AHEAD])
			__builtin_prefetch(ret->pages[i + FETCH_AHEAD], 1);
		if (ret->pages[i])
			atomic_fetch_add_explicit(&ret->pages[i]->owners, 1, memory_order_relaxed);
	}
}

size_t table_bytes(const struct table *table)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < table->page_count; i++)
		for (uint32_t j = 0; table->pages[i] && j < TABLE_PAGE_CHUNKS; j++)
			bytes += table->pages[i]->chunks[j] ? TABLE_CHUNK_BYTES : 0;
	return bytes;
}

/* Behind the last record a chunk holds zeroes, and there are no chunks behind the last one. */
static void chunk_verify(const struct table *table, struct table_chunk *chunk, uint64_t index)
{
	uint64_t used = index * table->per_chunk;
	uint32_t owners = atomic_load_explicit(&chunk->owners, memory_order_relaxed);

	CHECK(owners >= 1 && owners < 1u << 31);
	CHECK(used < table->count);
	used = table->count - used < table->per_chunk ? table->count - used : table->per_chunk;
	used *= table->record_bytes;
	CHECK(memcmp(chunk_records(chunk) + used, table_zeroes,
		     TABLE_CHUNK_BYTES - TABLE_HEAD_BYTES - used) == 0);
}

void table_verify(const struct table *table)
{
	uint64_t per_page = (uint64_t)table->per_chunk * TABLE_PAGE_CHUNKS;

	CHECK(table->record_bytes >= 1);
	CHECK(table->per_chunk == (TABLE_CHUNK_BYTES - TABLE_HEAD_BYTES) / table->record_bytes);
	CHECK(table->page_count == (table->count + per_page - 1) / per_page);
	CHECK(table->page_count <= table->page_room);
	for (uint32_t i = 0; i < table->page_count; i++) {
		struct table_page *page = table->pages[i];

		if (!page)
			continue;
		uint32_t owners = atomic_load_explicit(&page->owners, memory_order_relaxed);
		CHECK(owners >= 1 && owners < 1u << 31);
		for (uint32_t j = 0; j < TABLE_PAGE_CHUNKS; j++)
			if (page->chunks[j])
				chunk_verify(table, page->chunks[j],
					     (uint64_t)i * TABLE_PAGE_CHUNKS + j);
	}
}
