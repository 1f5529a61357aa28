/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sorted sets of (key, id), many of them in one pool: waiting jobs by id, running jobs by rank, deadlines by
 * time. A set is one number, its root; the empty set is 0.
 *
 * Each set is a treap: a search tree by (key, id) that is also a heap by a mix of both, so that its depth is
 * that of a random tree whatever the input, and its form depends on the members alone. 32 bytes per member,
 * about 2 log2(n) steps to add, remove or find one; walking a set is one step per member.
 *
 *	sorted_add(&pool, &root, 17, 3);
 *	for (bool any = sorted_begin(&pool, root, &walk); any; any = sorted_next(&pool, &walk))
 *		use(walk.key, walk.id);
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/placement/array.h"

enum { SORTED_DEPTH_MAX = 128 };

struct sorted_node {
	uint64_t key;
	uint32_t id, left, right, size;
};

struct sorted_pool {
	ARRAY(struct sorted_node) nodes; /* [0] is the empty set */
	uint32_t count; /* in use, [0] included */
	uint32_t free; /* list of free ones, linked by left */
};

struct sorted_walk {
	uint64_t key;
	uint32_t id;
	uint32_t depth;
	uint32_t path[SORTED_DEPTH_MAX]; /* nodes still to be shown, the next one last */
};

void sorted_init(struct sorted_pool *pool);
void sorted_deinit(struct sorted_pool *pool); /* takes a zeroed one too */
void sorted_clear(struct sorted_pool *pool); /* every set is void */
void sorted_add(struct sorted_pool *pool, uint32_t *root, uint64_t key,
		uint32_t id); /* must not be in it */
void sorted_remove(struct sorted_pool *pool, uint32_t *root, uint64_t key,
		   uint32_t id); /* must be in it */
bool sorted_has(const struct sorted_pool *pool, uint32_t root, uint64_t key, uint32_t id);
static inline uint32_t sorted_size(const struct sorted_pool *pool, uint32_t root)
{
	return root ? pool->nodes.at[root].size : 0;
}
/* How many members come before (key, id). */
uint32_t sorted_before(const struct sorted_pool *pool, uint32_t root, uint64_t key, uint32_t id);
/* Member number `index`, from 0; there must be so many. */
uint32_t sorted_at(const struct sorted_pool *pool, uint32_t root, uint32_t index);
/* How many come before the first one for which `before` says no; it must say no of all behind that one too. */
uint32_t sorted_count(const struct sorted_pool *pool, uint32_t root,
		      bool (*before)(const void *context, uint32_t id), const void *context);
/* The first member; false = empty. */
bool sorted_first(const struct sorted_pool *pool, uint32_t root, uint64_t *ret_key,
		  uint32_t *ret_id);
/* Walks in rising order. The set must not change meanwhile. */
bool sorted_begin(const struct sorted_pool *pool, uint32_t root, struct sorted_walk *walk);
bool sorted_next(const struct sorted_pool *pool, struct sorted_walk *walk);
