/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An arena: memory with one named lifetime (a step of the core, a request), freed as a whole.
 *
 * Allocations come zeroed and aligned to 16. An arena has a cap; passing it aborts the program, so
 * sizes that come from outside are checked against a limit of their own first. Allocation never
 * returns NULL: out of memory aborts, the journal is the recovery.
 * The core uses an arena it is given; arena_alloc on the fast path is pure pointer arithmetic.
 */
#include <stddef.h>
#include <stdint.h>

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	size_t used_bytes; /* given out since the last reset */
	size_t cap_bytes; /* abort beyond */
};

void arena_init(struct arena *arena, size_t cap_bytes);
void arena_deinit(struct arena *arena); /* takes a zeroed one too */
void arena_reset(struct arena *arena); /* everything given out is void; keeps the largest block */
void *arena_alloc(struct arena *arena, size_t bytes) __attribute__((malloc, returns_nonnull));
/* count * bytes with overflow check */
void *arena_array(struct arena *arena, size_t count, size_t bytes)
	__attribute__((malloc, returns_nonnull));
char *arena_strdup(struct arena *arena, const char *text) __attribute__((malloc, returns_nonnull));
char *arena_strndup(struct arena *arena, const char *text, size_t length)
	__attribute__((malloc, returns_nonnull));
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3), malloc, returns_nonnull));

#define arena_new(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define arena_new_array(arena, type, count) ((type *)arena_array((arena), (count), sizeof(type)))
