/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of blocks, each twice as large as the one before; only the newest gives out memory.
 * Blocks come from calloc, and reset zeroes what was used of the one block it keeps, so that
 * nothing is left to do when memory is given out.
 */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
/* What is not given out must not be touched: a use after reset is then seen like one after free. */
#define HIDE(p, n) __asan_poison_memory_region((p), (n))
#define SHOW(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define HIDE(p, n) ((void)(p), (void)(n))
#define SHOW(p, n) ((void)(p), (void)(n))
#endif

/* A single request that is larger than BLOCK_BYTES_MAX has a block of its own, with room beside it, so that the same requests fit
 * into it after a reset. */
enum { ALIGN = 16, BLOCK_BYTES_MIN = 4096, BLOCK_BYTES_MAX = 1 << 20, KEPT_BYTES_MAX = 16 << 20 };

struct arena_block {
	struct arena_block *next;
	size_t size; /* of data */
	size_t used;
	size_t reserved; /* keeps data aligned */
	unsigned char data[];
};

_Static_assert(sizeof(struct arena_block) % ALIGN == 0, "what follows the head must be aligned");

void arena_init(struct arena *arena, size_t cap_bytes)
{
	*arena = (struct arena){ .cap_bytes = cap_bytes };
}

static void block_free(struct arena_block *block)
{
	SHOW(block->data, block->size);
	free(block);
}

void arena_deinit(struct arena *arena)
{
	struct arena_block *next;

	for (struct arena_block *block = arena->blocks; block; block = next) {
		next = block->next;
		block_free(block);
	}
	*arena = (struct arena){ 0 };
}

/* Keeps the largest block that is not too large to be kept. */
void arena_reset(struct arena *arena)
{
	struct arena_block *kept = NULL, *next;

	arena->used_bytes = 0;
	for (struct arena_block *block = arena->blocks; block; block = block->next)
		if (block->size <= KEPT_BYTES_MAX && (!kept || block->size > kept->size))
			kept = block;
	for (struct arena_block *block = arena->blocks; block; block = next) {
		next = block->next;
		if (block != kept)
			block_free(block);
	}
	arena->blocks = kept;
	if (!kept)
		return;
	kept->next = NULL;
	SHOW(kept->data, kept->used);
	memset(kept->data, 0, kept->used);
	kept->used = 0;
	HIDE(kept->data, kept->size);
}

static struct arena_block *block_add(struct arena *arena, size_t bytes)
{
	size_t size = arena->blocks ? arena->blocks->size * 2 : BLOCK_BYTES_MIN;
	struct arena_block *block;

	if (size > BLOCK_BYTES_MAX)
		size = BLOCK_BYTES_MAX;
	if (size < bytes)
		size = bytes + bytes / 4;
	block = calloc(1, sizeof(*block) + size);
	CHECK(block != NULL);
	block->size = size;
	block->next = arena->blocks;
	arena->blocks = block;
	HIDE(block->data, block->size);
	return block;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	struct arena_block *block = arena->blocks;
	size_t rounded = (bytes + !bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	void *memory;

	/* rounded < bytes: the sum went around. */
	CHECK(rounded >= bytes && rounded <= arena->cap_bytes - arena->used_bytes);
	if (!block || block->size - block->used < rounded)
		block = block_add(arena, rounded);
	memory = block->data + block->used;
	block->used += rounded;
	arena->used_bytes += rounded;
	SHOW(memory, bytes);
	return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t bytes)
{
	size_t total;

	CHECK(!__builtin_mul_overflow(count, bytes, &total));
	return arena_alloc(arena, total);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	char *copy;

	CHECK(length < SIZE_MAX);
	copy = arena_alloc(arena, length + 1);
	if (length)
		memcpy(copy, text, length);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return arena_strndup(arena, text, strlen(text));
}
