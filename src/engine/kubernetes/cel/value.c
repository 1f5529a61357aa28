/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/cel/value.h"

#include <string.h>

static bool strings_equal(const struct string *a, const struct string *b)
{
	return a->size == b->size && (!a->size || memcmp(a->data, b->data, a->size) == 0);
}

const struct value *map_find(const struct map *map, const struct value *key)
{
	if (key->kind != VALUE_STRING)
		return NULL;
	for (uint32_t i = 0; i < map->count; i++)
		if (strings_equal(&map->entries[i].key.string, &key->string))
			return &map->entries[i].value;
	return NULL;
}

/* Of two items of lists or maps; where the language has no answer for one, what it says of the whole is not for us to guess. */
static struct value items_equal(const struct value *a, const struct value *b)
{
	struct value same = value_equal(a, b);

	return value_is_bad(&same)
		       ? value_refused("lists and maps with items of unlike types are not compared")
		       : same;
}

static struct value lists_equal(const struct list *a, const struct list *b)
{
	if (a->count != b->count)
		return value_bool(false);
	for (uint32_t i = 0; i < a->count; i++) {
		struct value same = items_equal(&a->items[i], &b->items[i]);

		if (value_is_bad(&same) || !same.truth)
			return same;
	}
	return value_bool(true);
}

static struct value maps_equal(const struct map *a, const struct map *b)
{
	if (a->is_open || b->is_open)
		return value_refused("all attributes of a device are not compared at once");
	if (a->count != b->count)
		return value_bool(false);
	for (uint32_t i = 0; i < a->count; i++) {
		const struct value *other = map_find(b, &a->entries[i].key);
		struct value same;

		if (!other)
			return value_bool(false);
		same = items_equal(&a->entries[i].value, other);
		if (value_is_bad(&same) || !same.truth)
			return same;
	}
	return value_bool(true);
}

static struct value unlike(const struct value *a)
{
	if (a->kind == VALUE_QUANTITY || a->kind == VALUE_VERSION)
		return value_failed("values of types that do not go together");
	return value_bool(false);
}

struct value value_equal(const struct value *a, const struct value *b)
{
	if (a->kind != b->kind)
		return unlike(a);
	switch (a->kind) {
	case VALUE_REFUSED:
	case VALUE_FAILED: return *a;
	case VALUE_BOOL: return value_bool(a->truth == b->truth);
	case VALUE_INT: return value_bool(a->number == b->number);
	case VALUE_STRING: return value_bool(strings_equal(&a->string, &b->string));
	case VALUE_QUANTITY:
		/* a sum on the right is of another type to Kubernetes */
		return b->whole == WHOLE_NOT_KNOWN ? unlike(a)
						   : value_bool(a->quantity == b->quantity);
	case VALUE_VERSION: return value_bool(version_compare(a->version, b->version) == 0);
	case VALUE_LIST: return lists_equal(a->list, b->list);
	case VALUE_MAP: return maps_equal(a->map, b->map);
	case VALUE_OPTIONAL:
		if (!a->inside || !b->inside)
			return value_bool(!a->inside && !b->inside);
		return value_equal(a->inside, b->inside);
	case VALUE_DEVICE: break;
	}
	return value_refused("devices are not compared");
}
