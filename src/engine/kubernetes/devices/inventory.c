/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/devices/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct slice_entry {
	UT_hash_handle hh;
	struct dra_slice *slice;
	bool seen;
};
struct class_entry {
	UT_hash_handle hh;
	struct dra_class *class;
	bool seen;
};
struct node_pools {
	UT_hash_handle hh;
	const char *node; /* of a slice */
	uint32_t *pools;
	uint32_t count, room;
};

enum { VIEW_BYTES = INT32_MAX };

/* --- what is told -------------------------------------------------------------------------------------------------- */

void dra_slice_set(struct dra_inventory *inventory, struct dra_slice *slice)
{
	struct slice_entry *entry = NULL;

	inventory->changed = true;
	HASH_FIND_STR(inventory->slices, slice->name, entry);
	if (entry) {
		HASH_DEL(inventory->slices, entry); /* its key lies in the slice */
		dra_slice_free(entry->slice);
	} else {
		entry = calloc(1, sizeof(*entry));
		CHECK(entry);
	}
	entry->slice = slice;
	entry->seen = true;
	HASH_ADD_KEYPTR(hh, inventory->slices, slice->name, strlen(slice->name), entry);
}

static void slice_drop(struct dra_inventory *inventory, struct slice_entry *entry)
{
	inventory->changed = true;
	HASH_DEL(inventory->slices, entry);
	dra_slice_free(entry->slice);
	free(entry);
}

void dra_slice_remove(struct dra_inventory *inventory, const char *name)
{
	struct slice_entry *entry = NULL;

	HASH_FIND_STR(inventory->slices, name, entry);
	if (entry)
		slice_drop(inventory, entry);
}

void dra_class_set(struct dra_inventory *inventory, struct dra_class *class)
{
	struct class_entry *entry = NULL;

	HASH_FIND_STR(inventory->classes, class->name, entry);
	if (entry) {
		HASH_DEL(inventory->classes, entry);
		dra_class_free(entry->class);
	} else {
		entry = calloc(1, sizeof(*entry));
		CHECK(entry);
	}
	entry->class = class;
	entry->seen = true;
	HASH_ADD_KEYPTR(hh, inventory->classes, class->name, strlen(class->name), entry);
}

static void class_drop(struct dra_inventory *inventory, struct class_entry *entry)
{
	HASH_DEL(inventory->classes, entry);
	dra_class_free(entry->class);
	free(entry);
}

void dra_class_remove(struct dra_inventory *inventory, const char *name)
{
	struct class_entry *entry = NULL;

	HASH_FIND_STR(inventory->classes, name, entry);
	if (entry)
		class_drop(inventory, entry);
}

const struct dra_class *dra_class_find(const struct dra_inventory *inventory, const char *name)
{
	struct class_entry *entry = NULL;

	HASH_FIND_STR(inventory->classes, name, entry);
	return entry ? entry->class : NULL;
}

void dra_slices_begin(struct dra_inventory *inventory)
{
	struct slice_entry *entry, *next;

	HASH_ITER(hh, inventory->slices, entry, next)
	{
		entry->seen = false;
	}
}

void dra_slices_end(struct dra_inventory *inventory)
{
	struct slice_entry *entry, *next;

	HASH_ITER(hh, inventory->slices, entry, next)
	{
		if (!entry->seen)
			slice_drop(inventory, entry);
	}
}

void dra_classes_begin(struct dra_inventory *inventory)
{
	struct class_entry *entry, *next;

	HASH_ITER(hh, inventory->classes, entry, next)
	{
		entry->seen = false;
	}
}

void dra_classes_end(struct dra_inventory *inventory)
{
	struct class_entry *entry, *next;

	HASH_ITER(hh, inventory->classes, entry, next)
	{
		if (!entry->seen)
			class_drop(inventory, entry);
	}
}

/* --- the view -------------------------------------------------------------------------------------------------------------- */

static void view_clear(struct dra_inventory *inventory)
{
	struct node_pools *node, *next;

	HASH_ITER(hh, inventory->by_node, node, next)
	{
		HASH_DEL(inventory->by_node, node);
		free(node->pools);
		free(node);
	}
	if (inventory->arena.cap_bytes)
		arena_deinit(&inventory->arena);
	arena_init(&inventory->arena, VIEW_BYTES);
	inventory->pools = NULL;
	inventory->pool_count = inventory->shared_count = 0;
	inventory->shared = NULL;
}

/* By driver and pool, the newest generation first, then by name. */
static int compare_slices(const void *a, const void *b)
{
	const struct dra_slice *x = *(const struct dra_slice *const *)a,
			       *y = *(const struct dra_slice *const *)b;
	int order = strcmp(x->driver, y->driver);

	if (!order)
		order = strcmp(x->pool, y->pool);
	if (!order && x->generation != y->generation)
		return x->generation > y->generation ? -1 : 1;
	return order ? order : strcmp(x->name, y->name);
}

static bool same_pool(const struct dra_slice *a, const struct dra_slice *b)
{
	return strcmp(a->driver, b->driver) == 0 && strcmp(a->pool, b->pool) == 0;
}

static void sets_gather(struct dra_inventory *inventory, struct dra_pool *pool)
{
	const struct dra_counter_set **sets;
	uint32_t *first, count = 0;

	for (uint32_t i = 0; i < pool->slice_count; i++)
		count += pool->slices[i]->set_count;
	sets = arena_new_array(&inventory->arena, const struct dra_counter_set *, count + 1);
	first = arena_new_array(&inventory->arena, uint32_t, count + 1);
	for (uint32_t i = 0; i < pool->slice_count; i++)
		for (uint32_t j = 0; j < pool->slices[i]->set_count; j++) {
			const struct dra_counter_set *set = &pool->slices[i]->sets[j];

			for (uint32_t k = 0; k < pool->set_count; k++)
				if (strcmp(sets[k]->name, set->name) == 0)
					pool->invalid = "two counter sets have one name";
			sets[pool->set_count] = set;
			first[pool->set_count++] = pool->counter_count;
			pool->counter_count += set->count;
		}
	pool->sets = sets;
	pool->first = first;
}

uint32_t dra_counter_at(const struct dra_pool *pool, const char *set, const char *counter)
{
	for (uint32_t i = 0; i < pool->set_count; i++) {
		if (strcmp(pool->sets[i]->name, set) != 0)
			continue;
		for (uint32_t j = 0; j < pool->sets[i]->count; j++)
			if (strcmp(pool->sets[i]->counters[j].name, counter) == 0)
				return pool->first[i] + j;
	}
	return UINT32_MAX;
}

static bool set_is_there(const struct dra_pool *pool, const char *name)
{
	for (uint32_t i = 0; i < pool->set_count; i++)
		if (strcmp(pool->sets[i]->name, name) == 0)
			return true;
	return false;
}

static void uses_check(struct dra_pool *pool, const struct dra_device *device)
{
	for (uint32_t i = 0; i < device->use_count; i++) {
		const struct dra_counter_set *use = &device->uses[i];

		if (!set_is_there(pool, use->name))
			pool->invalid = "a device uses counters that the pool does not have";
		for (uint32_t j = 0; j < use->count; j++)
			if (dra_counter_at(pool, use->name, use->counters[j].name) == UINT32_MAX)
				pool->invalid =
					"a device uses counters that the pool does not have";
	}
}

static void pool_make(struct dra_inventory *inventory, struct dra_pool *pool,
		      const struct dra_slice *const *slices, uint32_t count)
{
	*pool = (struct dra_pool){ .driver = slices[0]->driver,
				   .name = slices[0]->pool,
				   .slices = slices,
				   .slice_count = count,
				   .incomplete = slices[0]->slice_count != (int64_t)count };
	if (pool->incomplete)
		return;
	sets_gather(inventory, pool);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < slices[i]->device_count; j++)
			uses_check(pool, &slices[i]->devices[j]);
}

static void node_add(struct dra_inventory *inventory, const char *name, uint32_t pool)
{
	struct node_pools *node = NULL;

	HASH_FIND_STR(inventory->by_node, name, node);
	if (!node) {
		node = calloc(1, sizeof(*node));
		CHECK(node);
		node->node = name;
		HASH_ADD_KEYPTR(hh, inventory->by_node, name, strlen(name), node);
	}
	if (node->count && node->pools[node->count - 1] == pool)
		return;
	if (node->count == node->room) {
		node->room = node->room ? node->room * 2 : 4;
		node->pools = realloc(node->pools, node->room * sizeof(*node->pools));
		CHECK(node->pools);
	}
	node->pools[node->count++] = pool;
}

/* Pools in which each slice that has devices names its node are found by that; slices of counters alone are for all. */
static void index_make(struct dra_inventory *inventory)
{
	uint32_t *shared = arena_new_array(&inventory->arena, uint32_t, inventory->pool_count + 1);

	for (uint32_t p = 0; p < inventory->pool_count; p++) {
		const struct dra_pool *pool = &inventory->pools[p];
		bool named = true;

		for (uint32_t i = 0; i < pool->slice_count; i++)
			named &= pool->slices[i]->where.node || pool->slices[i]->set_count;
		if (!named) {
			shared[inventory->shared_count++] = p;
			continue;
		}
		for (uint32_t i = 0; i < pool->slice_count; i++)
			if (pool->slices[i]->where.node)
				node_add(inventory, pool->slices[i]->where.node, p);
	}
	inventory->shared = shared;
}

static void view_make(struct dra_inventory *inventory)
{
	uint32_t count = HASH_COUNT(inventory->slices), at = 0;
	struct slice_entry *entry, *next;
	const struct dra_slice **all;

	view_clear(inventory);
	inventory->changed = false;
	all = arena_new_array(&inventory->arena, const struct dra_slice *, count + 1);
	HASH_ITER(hh, inventory->slices, entry, next)
	{
		all[at++] = entry->slice;
	}
	qsort((void *)all, count, sizeof(*all), compare_slices);
	inventory->pools = arena_new_array(&inventory->arena, struct dra_pool, count + 1);
	for (uint32_t i = 0, end, newest; i < count; i = end) {
		for (end = i; end < count && same_pool(all[i], all[end]);)
			end++;
		for (newest = i; newest < end && all[newest]->generation == all[i]->generation;)
			newest++;
		pool_make(inventory, &inventory->pools[inventory->pool_count++], &all[i],
			  newest - i);
	}
	index_make(inventory);
}

void dra_inventory_deinit(struct dra_inventory *inventory)
{
	struct slice_entry *slice, *next_slice;
	struct class_entry *class, *next_class;

	view_clear(inventory);
	arena_deinit(&inventory->arena);
	HASH_ITER(hh, inventory->slices, slice, next_slice)
	{
		slice_drop(inventory, slice);
	}
	HASH_ITER(hh, inventory->classes, class, next_class)
	{
		class_drop(inventory, class);
	}
	*inventory = (struct dra_inventory){ 0 };
}

/* --- questions -------------------------------------------------------------------------------------------------------------- */

void dra_pools_of(struct dra_inventory *inventory, const char *node, struct arena *arena,
		  const struct dra_pool *const **ret, uint32_t *count)
{
	const struct dra_pool **pools;
	struct node_pools *own = NULL;
	uint32_t i = 0, j = 0, own_count;

	if (inventory->changed || !inventory->arena.cap_bytes)
		view_make(inventory);
	HASH_FIND_STR(inventory->by_node, node, own);
	own_count = own ? own->count : 0;
	pools = arena_new_array(arena, const struct dra_pool *,
				own_count + inventory->shared_count + 1);
	*count = 0;
	/* Two rows of numbers that rise: pools lie by driver and name. */
	while (i < own_count || j < inventory->shared_count) {
		bool mine = own && (j == inventory->shared_count ||
				    (i < own_count && own->pools[i] < inventory->shared[j]));

		pools[(*count)++] = &inventory->pools[mine ? own->pools[i] : inventory->shared[j]];
		i += mine;
		j += !mine;
	}
	*ret = pools;
}

bool dra_slice_is_for(const struct dra_slice *slice, const char *node,
		      const struct placed_node *placed)
{
	if (slice->set_count)
		return false;
	if (!slice->by_device)
		return dra_where_has(&slice->where, node, placed);
	for (uint32_t i = 0; i < slice->device_count; i++)
		if (dra_where_has(&slice->devices[i].where, node, placed))
			return true;
	return false;
}

const struct cel_attribute *dra_attribute(const struct dra_device *device, const char *domain,
					  const char *id)
{
	const struct cel_attribute *found = NULL;

	for (uint32_t i = 0; i < device->cel.attribute_count; i++) {
		const struct cel_attribute *a = &device->cel.attributes[i];

		if (strcmp(a->id, id) != 0)
			continue;
		if (a->domain && domain && strcmp(a->domain, domain) == 0)
			return a;
		if (!a->domain && domain && strcmp(device->cel.driver, domain) == 0)
			found = a;
	}
	return found;
}

bool dra_is_gpu(const struct dra_slice *slice, const struct dra_device *device)
{
	const struct cel_attribute *type = dra_attribute(device, slice->driver, "type");

	if (type)
		return type->kind == CEL_STRING && strcmp(type->text, "gpu") == 0;
	return strncmp(slice->driver, "gpu.", 4) == 0;
}
