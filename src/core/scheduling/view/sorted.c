/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/view/sorted.h"

#include "base/check.h"

static struct sorted_node *node_at(const struct sorted_pool *pool, uint32_t node)
{
	return &pool->nodes.at[node];
}

/* A fixed mix of both numbers (the finisher of a 64-bit hash): equal members have equal weight everywhere. */
static uint64_t weight(const struct sorted_node *node)
{
	uint64_t x = node->key * UINT64_C(0x9e3779b97f4a7c15) ^ node->id;

	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

static bool comes_before(uint64_t key_a, uint32_t id_a, uint64_t key_b, uint32_t id_b)
{
	return key_a < key_b || (key_a == key_b && id_a < id_b);
}

/* Heavier above; the order of the set settles equal weights, so that the form stays a function of the members. */
static bool is_above(const struct sorted_node *a, const struct sorted_node *b)
{
	uint64_t wa = weight(a), wb = weight(b);

	return wa > wb || (wa == wb && comes_before(a->key, a->id, b->key, b->id));
}

void sorted_init(struct sorted_pool *pool)
{
	memset(pool, 0, sizeof(*pool));
	array_resize(&pool->nodes.buf, 1, sizeof(struct sorted_node));
	pool->count = 1;
}

void sorted_deinit(struct sorted_pool *pool)
{
	buf_deinit(&pool->nodes.buf);
	memset(pool, 0, sizeof(*pool));
}

void sorted_clear(struct sorted_pool *pool)
{
	pool->count = 1;
	pool->free = 0;
}

static uint32_t node_new(struct sorted_pool *pool, uint64_t key, uint32_t id)
{
	uint32_t node = pool->free;
	size_t room = pool->nodes.buf.size / sizeof(struct sorted_node);

	if (node) {
		pool->free = node_at(pool, node)->left;
	} else {
		if (pool->count == room)
			array_resize(&pool->nodes.buf, room * 2, sizeof(struct sorted_node));
		node = pool->count++;
	}
	*node_at(pool, node) = (struct sorted_node){ .key = key, .id = id, .size = 1 };
	return node;
}

static void size_set(const struct sorted_pool *pool, uint32_t node)
{
	struct sorted_node *n = node_at(pool, node);

	n->size = 1 + sorted_size(pool, n->left) + sorted_size(pool, n->right);
}

/* Members before `at` into *ret_left, the others into *ret_right. */
static void split(const struct sorted_pool *pool, uint32_t root, const struct sorted_node *at,
		  uint32_t *ret_left, uint32_t *ret_right)
{
	struct sorted_node *n = node_at(pool, root);

	if (!root) {
		*ret_left = *ret_right = 0;
		return;
	}
	if (comes_before(n->key, n->id, at->key, at->id)) {
		split(pool, n->right, at, &n->right, ret_right);
		*ret_left = root;
	} else {
		split(pool, n->left, at, ret_left, &n->left);
		*ret_right = root;
	}
	size_set(pool, root);
}

static uint32_t join(const struct sorted_pool *pool, uint32_t left, uint32_t right)
{
	uint32_t root;

	if (!left || !right)
		return left ? left : right;
	if (is_above(node_at(pool, left), node_at(pool, right))) {
		root = left;
		node_at(pool, left)->right = join(pool, node_at(pool, left)->right, right);
	} else {
		root = right;
		node_at(pool, right)->left = join(pool, left, node_at(pool, right)->left);
	}
	size_set(pool, root);
	return root;
}

void sorted_add(struct sorted_pool *pool, uint32_t *root, uint64_t key, uint32_t id)
{
	uint32_t added = node_new(pool, key, id), *link = root;
	struct sorted_node *n = node_at(pool, added);

	while (*link && is_above(node_at(pool, *link), n)) {
		struct sorted_node *at = node_at(pool, *link);

		CHECK(at->key != key || at->id != id);
		at->size++;
		link = comes_before(key, id, at->key, at->id) ? &at->left : &at->right;
	}
	split(pool, *link, n, &n->left, &n->right);
	size_set(pool, added);
	*link = added;
}

void sorted_remove(struct sorted_pool *pool, uint32_t *root, uint64_t key, uint32_t id)
{
	uint32_t *link = root, node;

	for (;;) {
		struct sorted_node *at = node_at(pool, *link);

		CHECK(*link != 0);
		if (at->key == key && at->id == id)
			break;
		at->size--;
		link = comes_before(key, id, at->key, at->id) ? &at->left : &at->right;
	}
	node = *link;
	*link = join(pool, node_at(pool, node)->left, node_at(pool, node)->right);
	node_at(pool, node)->left = pool->free;
	pool->free = node;
}

bool sorted_has(const struct sorted_pool *pool, uint32_t root, uint64_t key, uint32_t id)
{
	while (root) {
		const struct sorted_node *at = node_at(pool, root);

		if (at->key == key && at->id == id)
			return true;
		root = comes_before(key, id, at->key, at->id) ? at->left : at->right;
	}
	return false;
}

uint32_t sorted_before(const struct sorted_pool *pool, uint32_t root, uint64_t key, uint32_t id)
{
	uint32_t before = 0;

	while (root) {
		const struct sorted_node *at = node_at(pool, root);

		if (comes_before(at->key, at->id, key, id)) {
			before += 1 + sorted_size(pool, at->left);
			root = at->right;
		} else {
			root = at->left;
		}
	}
	return before;
}

uint32_t sorted_at(const struct sorted_pool *pool, uint32_t root, uint32_t index)
{
	for (;;) {
		const struct sorted_node *at = node_at(pool, root);
		uint32_t before = sorted_size(pool, at->left);

		CHECK(root != 0);
		if (index == before)
			return at->id;
		if (index < before) {
			root = at->left;
		} else {
			index -= before + 1;
			root = at->right;
		}
	}
}

uint32_t sorted_count(const struct sorted_pool *pool, uint32_t root,
		      bool (*before)(const void *context, uint32_t id), const void *context)
{
	uint32_t count = 0;

	while (root) {
		const struct sorted_node *node = &pool->nodes.at[root];

		if (before(context, node->id)) {
			count += sorted_size(pool, node->left) + 1;
			root = node->right;
		} else {
			root = node->left;
		}
	}
	return count;
}

bool sorted_first(const struct sorted_pool *pool, uint32_t root, uint64_t *ret_key,
		  uint32_t *ret_id)
{
	if (!root)
		return false;
	while (node_at(pool, root)->left)
		root = node_at(pool, root)->left;
	if (ret_key)
		*ret_key = node_at(pool, root)->key;
	*ret_id = node_at(pool, root)->id;
	return true;
}

static void walk_down(const struct sorted_pool *pool, struct sorted_walk *walk, uint32_t node)
{
	for (; node; node = node_at(pool, node)->left) {
		CHECK(walk->depth < SORTED_DEPTH_MAX);
		walk->path[walk->depth++] = node;
		__builtin_prefetch(&pool->nodes.at[node_at(pool, node)->right]); /* is next */
	}
}

static bool walk_show(const struct sorted_pool *pool, struct sorted_walk *walk)
{
	const struct sorted_node *n;

	if (!walk->depth)
		return false;
	n = node_at(pool, walk->path[walk->depth - 1]);
	walk->key = n->key;
	walk->id = n->id;
	return true;
}

bool sorted_begin(const struct sorted_pool *pool, uint32_t root, struct sorted_walk *walk)
{
	walk->depth = 0;
	walk_down(pool, walk, root);
	return walk_show(pool, walk);
}

bool sorted_next(const struct sorted_pool *pool, struct sorted_walk *walk)
{
	uint32_t shown = walk->path[--walk->depth];

	walk_down(pool, walk, node_at(pool, shown)->right);
	return walk_show(pool, walk);
}
