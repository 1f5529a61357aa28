/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree, walked for one device. Failures are values: `and`, `or`, `exists` and `all` need not know what does not matter, all
 * else passes them on.
 */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "engine/kubernetes/cel/function.h"
#include "engine/kubernetes/cel/tree.h"

/* A variable of a macro. What cel.bind names is looked at when it is needed, once. */
struct variable {
	struct value value;
	const struct node *later; /* NULL = known */
};

struct walk {
	const struct cel_device *device;
	struct arena *arena;
	struct variable variables[SLOTS_MAX];
	uint32_t steps;
};

static const char no_overload[] = "values of types that do not go together";
static const struct map nothing = { .is_open = false };

static struct value walk_node(struct walk *w, const struct node *node);

static struct value *keep(struct walk *w, struct value value)
{
	struct value *kept = arena_new(w->arena, struct value);

	*kept = value;
	return kept;
}

static struct value optional_of(struct walk *w, struct value value)
{
	return (struct value){ .kind = VALUE_OPTIONAL, .inside = keep(w, value) };
}

static struct value missing(struct walk *w, const struct string *name)
{
	return value_failed(
		arena_printf(w->arena, "there is no \"%.*s\"", (int)name->size, name->data));
}

/* -- the device as maps -- */

struct named {
	const char *domain, *id;
	struct value value;
};

static struct value text_value(const char *text)
{
	return value_string(text, strlen(text));
}

static struct value attribute_value(struct walk *w, const struct cel_attribute *attribute)
{
	struct version version, *kept;
	struct string text;

	switch (attribute->kind) {
	case CEL_BOOL: return value_bool(attribute->truth);
	case CEL_INT: return value_int(attribute->number);
	case CEL_STRING: return text_value(attribute->text);
	case CEL_VERSION: break;
	}
	text = text_value(attribute->text).string;
	if (version_read(w->arena, &text, false, &version) != 0)
		return value_refused("a version of the device can't be read");
	kept = arena_new(w->arena, struct version);
	*kept = version;
	return (struct value){ .kind = VALUE_VERSION, .version = kept };
}

static struct value capacity_value(const struct cel_capacity *capacity)
{
	struct value value = { .kind = VALUE_QUANTITY };
	struct string text = text_value(capacity->quantity).string;
	nano128 quantity;

	if (quantity_read(&text, &quantity, &value.whole) != 0)
		return value_refused("a capacity of the device can't be read");
	value.quantity = quantity;
	return value;
}

static struct value map_of_domain(struct walk *w, const struct named *named, uint32_t count,
				  const char *domain)
{
	struct entry *entries = arena_new_array(w->arena, struct entry, count);
	struct map *map = arena_new(w->arena, struct map);

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(named[i].domain, domain) == 0)
			entries[map->count++] =
				(struct entry){ text_value(named[i].id), named[i].value };
	map->entries = entries;
	return (struct value){ .kind = VALUE_MAP, .map = map };
}

static struct value map_of_named(struct walk *w, const struct named *named, uint32_t count)
{
	struct entry *entries = arena_new_array(w->arena, struct entry, count ? count : 1);
	struct map *map = arena_new(w->arena, struct map);

	map->is_open = true;
	for (uint32_t i = 0; i < count; i++) {
		struct value key = text_value(named[i].domain);

		map->entries = entries;
		if (map_find(map, &key) == NULL)
			entries[map->count++] =
				(struct entry){ key,
						map_of_domain(w, named, count, named[i].domain) };
	}
	map->entries = entries;
	return (struct value){ .kind = VALUE_MAP, .map = map };
}

static const char *domain_of(const struct walk *w, const char *domain)
{
	return domain ? domain : w->device->driver;
}

static struct value attributes_value(struct walk *w)
{
	const struct cel_device *device = w->device;
	struct named *named = arena_new_array(w->arena, struct named, device->attribute_count + 1);

	for (uint32_t i = 0; i < device->attribute_count; i++) {
		const struct cel_attribute *a = &device->attributes[i];

		named[i] = (struct named){ domain_of(w, a->domain), a->id, attribute_value(w, a) };
	}
	return map_of_named(w, named, device->attribute_count);
}

static struct value capacities_value(struct walk *w)
{
	const struct cel_device *device = w->device;
	struct named *named = arena_new_array(w->arena, struct named, device->capacity_count + 1);

	for (uint32_t i = 0; i < device->capacity_count; i++) {
		const struct cel_capacity *c = &device->capacities[i];

		named[i] = (struct named){ domain_of(w, c->domain), c->id, capacity_value(c) };
	}
	return map_of_named(w, named, device->capacity_count);
}

static struct value device_field(struct walk *w, const struct string *name)
{
	switch (name->data[1]) {
	case 'r': return text_value(w->device->driver); /* driver */
	case 't': return attributes_value(w); /* attributes */
	case 'a': return capacities_value(w); /* capacity */
	default: return value_bool(w->device->many_allocations); /* allowMultipleAllocations */
	}
}

/* -- fields and items -- */

/* What there is under the key; NULL = nothing. A failure in *ret_bad when it can have no keys. */
static const struct value *item_find(struct walk *w, const struct value *on,
				     const struct value *key, struct value *ret_bad)
{
	if (on->kind == VALUE_MAP) {
		const struct value *found = map_find(on->map, key);

		if (!found && on->map->is_open)
			return keep(w, (struct value){ .kind = VALUE_MAP, .map = &nothing });
		return found;
	}
	if (on->kind == VALUE_LIST && key->kind == VALUE_INT) {
		if (key->number < 0 || key->number >= on->list->count)
			return NULL;
		return &on->list->items[key->number];
	}
	*ret_bad = value_failed(no_overload);
	return NULL;
}

static struct value item_get(struct walk *w, const struct node *node, struct value on,
			     struct value key)
{
	struct value bad = { .kind = VALUE_BOOL };
	const struct value *found;
	bool maybe = node->maybe;

	if (value_is_bad(&on))
		return on;
	if (value_is_bad(&key))
		return key;
	if (on.kind == VALUE_OPTIONAL) {
		if (!on.inside)
			return on;
		on = *on.inside;
		maybe = true;
	}
	found = item_find(w, &on, &key, &bad);
	if (value_is_bad(&bad))
		return bad;
	if (maybe)
		return found ? optional_of(w, *found) : (struct value){ .kind = VALUE_OPTIONAL };
	if (found)
		return *found;
	return key.kind == VALUE_STRING ? missing(w, &key.string)
					: value_failed("there is no such item");
}

static struct value walk_select(struct walk *w, const struct node *node)
{
	struct value on = walk_node(w, node->on[0]);

	if (on.kind == VALUE_DEVICE) {
		struct value field = device_field(w, &node->name);

		return node->maybe ? optional_of(w, field) : field;
	}
	return item_get(w, node, on, value_string(node->name.data, node->name.size));
}

static struct value walk_index(struct walk *w, const struct node *node)
{
	struct value on = walk_node(w, node->on[0]), key = walk_node(w, node->on[1]);

	return item_get(w, node, on, key);
}

static struct value walk_has(struct walk *w, const struct node *node)
{
	struct value on = walk_node(w, node->on[0]), bad = { .kind = VALUE_BOOL };
	struct value key = value_string(node->name.data, node->name.size);
	bool found;

	if (value_is_bad(&on))
		return on;
	if (on.kind == VALUE_DEVICE)
		return value_bool(true);
	if (on.kind == VALUE_OPTIONAL) {
		if (!on.inside)
			return value_bool(false);
		on = *on.inside;
	}
	found = item_find(w, &on, &key, &bad) != NULL;
	return value_is_bad(&bad) ? bad : value_bool(found);
}

static struct value walk_in(struct walk *w, const struct node *node)
{
	struct value item = walk_node(w, node->on[0]), on = walk_node(w, node->on[1]);

	if (node->on[1]->kind == NODE_LIST && !node->on[1]->count)
		return value_bool(false); /* known before anything is asked, even what fails */
	if (value_is_bad(&item))
		return item;
	if (value_is_bad(&on))
		return on;
	if (on.kind == VALUE_MAP)
		return value_bool(map_find(on.map, &item) != NULL);
	if (on.kind != VALUE_LIST)
		return value_failed(no_overload);
	for (uint32_t i = 0; i < on.list->count; i++) {
		struct value same = value_equal(&on.list->items[i], &item);

		if (same.kind == VALUE_BOOL && same.truth)
			return same;
	}
	return value_bool(false);
}

/* -- yes and no -- */

/* Of two of which neither decides: what is worse. A refusal may hide either answer. */
static struct value worse(const struct value *a, const struct value *b)
{
	if (a->kind == VALUE_REFUSED)
		return *a;
	if (b->kind == VALUE_REFUSED)
		return *b;
	if (a->kind == VALUE_FAILED)
		return *a;
	if (b->kind == VALUE_FAILED)
		return *b;
	return value_failed(no_overload);
}

/* `decides`: the truth of either that settles it: false of `and`, true of `or`. */
static struct value settle(const struct value *a, const struct value *b, bool decides)
{
	if ((a->kind == VALUE_BOOL && a->truth == decides) ||
	    (b->kind == VALUE_BOOL && b->truth == decides))
		return value_bool(decides);
	if (a->kind == VALUE_BOOL && b->kind == VALUE_BOOL)
		return value_bool(!decides);
	return worse(a, b);
}

static struct value walk_both(struct walk *w, const struct node *node)
{
	bool decides = node->kind == NODE_OR;
	struct value a = walk_node(w, node->on[0]), b;

	if (a.kind == VALUE_BOOL && a.truth == decides)
		return a;
	b = walk_node(w, node->on[1]);
	return settle(&a, &b, decides);
}

static struct value walk_choice(struct walk *w, const struct node *node)
{
	struct value say = walk_node(w, node->on[0]);

	if (value_is_bad(&say))
		return say;
	if (say.kind != VALUE_BOOL)
		return value_failed(no_overload);
	return walk_node(w, node->on[say.truth ? 1 : 2]);
}

static struct value walk_equal(struct walk *w, const struct node *node)
{
	struct value a = walk_node(w, node->on[0]), b = walk_node(w, node->on[1]), same;

	if (value_is_bad(&a))
		return a;
	if (value_is_bad(&b))
		return b;
	same = value_equal(&a, &b);
	if (node->kind == NODE_EQUAL || same.kind == VALUE_REFUSED)
		return same;
	/* what can't be compared is unequal, though it is not "not equal" */
	return value_bool(same.kind == VALUE_FAILED || !same.truth);
}

/* -- lists and macros -- */

static struct value list_value(struct walk *w, const struct value *items, uint32_t count)
{
	struct list *list = arena_new(w->arena, struct list);

	*list = (struct list){ .items = items, .count = count };
	return (struct value){ .kind = VALUE_LIST, .list = list };
}

static struct value walk_list(struct walk *w, const struct node *node)
{
	struct value *items = arena_new_array(w->arena, struct value, node->count + 1);

	for (uint32_t i = 0; i < node->count; i++) {
		items[i] = walk_node(w, node->on[i]);
		if (value_is_bad(&items[i]))
			return items[i];
	}
	return list_value(w, items, node->count);
}

static struct value range_item(const struct value *range, uint32_t i)
{
	return range->kind == VALUE_LIST ? range->list->items[i] : range->map->entries[i].key;
}

static struct value walk_exists(struct walk *w, const struct node *node, const struct value *range,
				uint32_t count)
{
	bool decides = node->each == EACH_EXISTS;
	struct value so_far = value_bool(!decides);

	for (uint32_t i = 0; i < count; i++) {
		struct value say;

		w->variables[node->slot] = (struct variable){ .value = range_item(range, i) };
		say = walk_node(w, node->on[1]);
		so_far = settle(&so_far, &say, decides);
		if (so_far.kind == VALUE_BOOL && so_far.truth == decides)
			break;
	}
	return so_far;
}

/* exists_one, filter and map: every item counts, and a failure of one is that of all. */
static struct value walk_all_items(struct walk *w, const struct node *node,
				   const struct value *range, uint32_t count)
{
	struct value *items = arena_new_array(w->arena, struct value, count + 1);
	bool asks = node->each != EACH_MAP || node->count == 3;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct value item = range_item(range, i), say = value_bool(true);

		w->variables[node->slot] = (struct variable){ .value = item };
		if (asks)
			say = walk_node(w, node->on[1]);
		if (value_is_bad(&say))
			return say;
		if (say.kind != VALUE_BOOL)
			return value_failed(no_overload);
		if (!say.truth)
			continue;
		if (node->each == EACH_MAP)
			item = walk_node(w, node->on[node->count - 1]);
		if (value_is_bad(&item))
			return item;
		items[kept++] = item;
	}
	return node->each == EACH_EXISTS_ONE ? value_bool(kept == 1) : list_value(w, items, kept);
}

static struct value walk_each(struct walk *w, const struct node *node)
{
	struct value range = walk_node(w, node->on[0]);
	uint32_t count;

	if (value_is_bad(&range))
		return range;
	if (range.kind != VALUE_LIST && range.kind != VALUE_MAP)
		return value_failed(no_overload);
	count = range.kind == VALUE_LIST ? range.list->count : range.map->count;
	if (node->each == EACH_EXISTS || node->each == EACH_ALL)
		return walk_exists(w, node, &range, count);
	return walk_all_items(w, node, &range, count);
}

static struct value walk_bind(struct walk *w, const struct node *node)
{
	w->variables[node->slot] = (struct variable){ .later = node->on[0] };
	return walk_node(w, node->on[1]);
}

static struct value walk_variable(struct walk *w, uint32_t slot)
{
	struct variable *variable = &w->variables[slot];

	if (variable->later) {
		const struct node *later = variable->later;

		variable->value = walk_node(w, later);
		variable->later = NULL;
	}
	return variable->value;
}

/* -- calls -- */

static bool is_of(enum sort sort, const struct value *v)
{
	switch (sort) {
	case SORT_NONE: return false;
	case SORT_BOOL: return v->kind == VALUE_BOOL;
	case SORT_INT: return v->kind == VALUE_INT;
	case SORT_STRING: return v->kind == VALUE_STRING;
	case SORT_QUANTITY: return v->kind == VALUE_QUANTITY;
	case SORT_VERSION: return v->kind == VALUE_VERSION;
	case SORT_STRINGS:
	case SORT_LIST: return v->kind == VALUE_LIST;
	case SORT_MAP: return v->kind == VALUE_MAP;
	}
	return false;
}

static struct value walk_call(struct walk *w, const struct node *node)
{
	struct value args[PARAMETERS_MAX] = { { .kind = VALUE_BOOL } };

	for (uint32_t i = 0; i < node->count; i++) {
		args[i] = walk_node(w, node->on[i]);
		if (value_is_bad(&args[i]))
			return args[i];
	}
	for (uint32_t f = 0; node->functions[f]; f++) {
		const struct function *function = node->functions[f];
		bool suits = true;

		for (uint32_t i = 0; i < node->count; i++)
			suits = suits && is_of(function->takes[i], &args[i]);
		if (suits)
			return function->call(w->arena, args);
	}
	return value_failed(no_overload);
}

static bool is_named(const struct node *node, const char *name)
{
	return node->name.size == strlen(name) &&
	       memcmp(node->name.data, name, node->name.size) == 0;
}

static struct value walk_optional(struct walk *w, const struct node *node)
{
	struct value on;

	if (!node->count)
		return (struct value){ .kind = VALUE_OPTIONAL };
	on = walk_node(w, node->on[0]);
	if (value_is_bad(&on))
		return on;
	if (!node->is_member)
		return optional_of(w, on);
	if (on.kind != VALUE_OPTIONAL)
		return value_failed(no_overload);
	if (is_named(node, "hasValue"))
		return value_bool(on.inside != NULL);
	if (is_named(node, "value"))
		return on.inside ? *on.inside : value_failed("the optional has no value");
	if (is_named(node, "or"))
		return on.inside ? on : walk_node(w, node->on[1]);
	return on.inside ? *on.inside : walk_node(w, node->on[1]);
}

static struct value walk_node(struct walk *w, const struct node *node)
{
	if (w->steps == CEL_STEPS_MAX)
		return value_refused("the expression needs too many steps");
	w->steps++;
	switch (node->kind) {
	case NODE_LITERAL: return node->literal;
	case NODE_DEVICE: return (struct value){ .kind = VALUE_DEVICE, .device = w->device };
	case NODE_VARIABLE: return walk_variable(w, node->slot);
	case NODE_SELECT: return walk_select(w, node);
	case NODE_HAS: return walk_has(w, node);
	case NODE_INDEX: return walk_index(w, node);
	case NODE_AND:
	case NODE_OR: return walk_both(w, node);
	case NODE_CHOICE: return walk_choice(w, node);
	case NODE_EQUAL:
	case NODE_UNEQUAL: return walk_equal(w, node);
	case NODE_IN: return walk_in(w, node);
	case NODE_LIST: return walk_list(w, node);
	case NODE_CALL: return walk_call(w, node);
	case NODE_OPTIONAL_CALL: return walk_optional(w, node);
	case NODE_EACH: return walk_each(w, node);
	case NODE_BIND: return walk_bind(w, node);
	}
	return value_failed(no_overload);
}

struct value evaluate(const struct node *root, const struct cel_device *device, struct arena *arena)
{
	struct walk w = { .device = device, .arena = arena };

	return walk_node(&w, root);
}
