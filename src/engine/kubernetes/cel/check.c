/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types, from the leaves up. What does not fit is refused before any device is asked about; where an attribute is in play anything may
 * fit, and evaluate.c looks again.
 */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "engine/kubernetes/cel/function.h"
#include "engine/kubernetes/cel/tree.h"

enum { CANDIDATES_MAX = 8 };

struct checker {
	struct source *source;
	const struct type *slots[SLOTS_MAX];
	bool compares, asks_whole; /* quantities */
};

static const struct type *check_node(struct checker *c, struct node *node);

static const struct type *refuse(struct checker *c, const struct node *node, const char *what)
{
	source_fail(c->source, ERR_INVALID, node->at, "%s", what);
	return &type_dynamic;
}

static bool is_named(const struct node *node, const char *name)
{
	return node->name.size == strlen(name) &&
	       memcmp(node->name.data, name, node->name.size) == 0;
}

static const struct type *literal_type(const struct node *node)
{
	if (node->literal.kind == VALUE_BOOL)
		return &type_bool;
	return node->literal.kind == VALUE_INT ? &type_int : &type_string;
}

static const struct type *device_field(struct checker *c, const struct node *node)
{
	if (is_named(node, "driver"))
		return &type_string;
	if (is_named(node, "attributes"))
		return &type_attributes;
	if (is_named(node, "capacity"))
		return &type_capacities;
	if (is_named(node, "allowMultipleAllocations"))
		return &type_bool;
	return refuse(c, node,
		      "a device has driver, attributes, capacity and allowMultipleAllocations");
}

static const struct type *check_field(struct checker *c, const struct node *node,
				      const struct type *on)
{
	if (on->kind == TYPE_DEVICE)
		return device_field(c, node);
	if (on->kind == TYPE_MAP)
		return on->of;
	if (type_is_open(on))
		return &type_dynamic;
	return refuse(c, node, "this has no fields");
}

static const struct type *check_select(struct checker *c, struct node *node)
{
	const struct type *on = check_node(c, node->on[0]), *field;
	bool maybe = node->maybe || on->kind == TYPE_OPTIONAL;

	field = check_field(c, node, on->kind == TYPE_OPTIONAL ? on->of : on);
	if (node->kind == NODE_HAS)
		return &type_bool;
	return maybe ? type_of(c->source->arena, TYPE_OPTIONAL, field) : field;
}

static const struct type *check_index(struct checker *c, struct node *node)
{
	const struct type *on = check_node(c, node->on[0]), *key = check_node(c, node->on[1]), *ret;
	bool maybe = node->maybe || on->kind == TYPE_OPTIONAL;

	if (on->kind == TYPE_OPTIONAL)
		on = on->of;
	if ((on->kind == TYPE_LIST && type_fits(key, &type_int)) ||
	    (on->kind == TYPE_MAP && type_fits(key, &type_string)))
		ret = on->of;
	else if (type_is_open(on))
		ret = &type_dynamic;
	else
		return refuse(c, node, "this has no items of that kind");
	return maybe ? type_of(c->source->arena, TYPE_OPTIONAL, ret) : ret;
}

static void check_bool(struct checker *c, struct node *node)
{
	if (!type_fits(check_node(c, node), &type_bool))
		refuse(c, node, "a yes or no (bool) is expected here");
}

static const struct type *check_choice(struct checker *c, struct node *node)
{
	const struct type *a, *b;

	check_bool(c, node->on[0]);
	a = check_node(c, node->on[1]);
	b = check_node(c, node->on[2]);
	if (!type_fits(a, b))
		return refuse(c, node, "both outcomes have to be of one type");
	return type_join(a, b);
}

static const struct type *check_pair(struct checker *c, struct node *node)
{
	const struct type *a = check_node(c, node->on[0]), *b = check_node(c, node->on[1]);

	if (node->kind != NODE_IN) {
		c->compares |= a->kind == TYPE_QUANTITY;
		if (!type_fits(a, b))
			return refuse(c, node, "values of unlike types are never equal");
	} else if (b->kind == TYPE_LIST  ? !type_fits(a, b->of)
		   : b->kind == TYPE_MAP ? !type_fits(a, &type_string)
					 : !type_is_open(b)) {
		return refuse(c, node, "`in` takes a list or map with items of that type");
	}
	return &type_bool;
}

/* What nothing is known of may become either. */
static const struct type *refuse_item(struct checker *c, const struct node *node,
				      const struct type *of, const struct type *item)
{
	if (type_is_vague(of) || type_is_vague(item))
		source_fail(c->source, ERR_UNSUPPORTED, node->at,
			    "a list with items of which no type is known is not read");
	return refuse(c, node, "the items of a list are of one type");
}

/* Items are all of one type, to the letter: attributes stand beside attributes only. */
static const struct type *check_list(struct checker *c, struct node *node)
{
	const struct type *of = &type_free;

	for (uint32_t i = 0; i < node->count; i++) {
		const struct type *item = check_node(c, node->on[i]);

		if (i && !type_is_same(of, item))
			return refuse_item(c, node->on[i], of, item);
		of = item;
	}
	return type_of(c->source->arena, TYPE_LIST, of);
}

static const struct type *check_each(struct checker *c, struct node *node)
{
	const struct type *range = check_node(c, node->on[0]), *item, *made;

	if (range->kind == TYPE_LIST)
		item = range->of;
	else if (range->kind == TYPE_MAP)
		item = &type_string;
	else if (range->kind == TYPE_DYNAMIC || range->kind == TYPE_FREE)
		item = &type_dynamic;
	else
		return refuse(c, node, "this goes through lists and maps");
	c->slots[node->slot] = item;
	if (node->each == EACH_MAP && node->count == 2) {
		made = check_node(c, node->on[1]);
		return type_of(c->source->arena, TYPE_LIST, made);
	}
	check_bool(c, node->on[1]);
	if (node->each == EACH_MAP)
		return type_of(c->source->arena, TYPE_LIST, check_node(c, node->on[2]));
	if (node->each == EACH_FILTER)
		return type_of(c->source->arena, TYPE_LIST, item);
	return &type_bool;
}

static const struct type *check_bind(struct checker *c, struct node *node)
{
	c->slots[node->slot] = check_node(c, node->on[0]);
	return check_node(c, node->on[1]);
}

/* -- functions -- */

static bool sort_fits(enum sort sort, const struct type *type)
{
	static const struct type strings = { .kind = TYPE_LIST, .of = &type_string };

	if (type_is_open(type))
		return true;
	switch (sort) {
	case SORT_NONE: return false;
	case SORT_BOOL: return type->kind == TYPE_BOOL;
	case SORT_INT: return type->kind == TYPE_INT;
	case SORT_STRING: return type->kind == TYPE_STRING;
	case SORT_QUANTITY: return type->kind == TYPE_QUANTITY;
	case SORT_VERSION: return type->kind == TYPE_VERSION;
	case SORT_LIST: return type->kind == TYPE_LIST;
	case SORT_STRINGS: return type_fits(type, &strings);
	case SORT_MAP: return type->kind == TYPE_MAP;
	}
	return false;
}

static const struct type *sort_type(struct checker *c, const struct function *function,
				    const struct type *const *types)
{
	switch (function->gives) {
	case SORT_BOOL: return &type_bool;
	case SORT_INT: return &type_int;
	case SORT_STRING: return &type_string;
	case SORT_QUANTITY: return &type_quantity;
	case SORT_VERSION: return &type_version;
	case SORT_LIST:
		/* two lists, added: of what fits both */
		if (types[0]->kind == TYPE_LIST && types[1]->kind == TYPE_LIST)
			return type_join(types[0], types[1]);
		return type_of(c->source->arena, TYPE_LIST, &type_dynamic);
	case SORT_STRINGS: return type_of(c->source->arena, TYPE_LIST, &type_string);
	case SORT_MAP:
	case SORT_NONE: break;
	}
	return &type_dynamic;
}

static bool suits(const struct function *function, const struct type *const *types, uint32_t count)
{
	if (function_count(function) != count)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!sort_fits(function->takes[i], types[i]))
			return false;
	return function->gives != SORT_LIST || type_fits(types[0], types[1]);
}

static const struct type *refuse_call(struct checker *c, const struct node *node)
{
	if (function_exists(&node->name))
		source_fail(c->source, ERR_INVALID, node->at, "%.*s does not take that",
			    (int)node->name.size, node->name.data);
	else
		source_fail(c->source, ERR_UNSUPPORTED, node->at,
			    "the function %.*s is not built here", (int)node->name.size,
			    node->name.data);
	return &type_dynamic;
}

/* int("ten") and x.matches("(") are wrong whoever is asked. */
static void check_literal(struct checker *c, const struct node *node)
{
	const struct node *last = node->count ? node->on[node->count - 1] : NULL;
	struct value args[2] = { value_string("", 0), value_string("", 0) }, made;

	if (!last || last->kind != NODE_LITERAL || last->literal.kind != VALUE_STRING ||
	    !(is_named(node, "matches") || is_named(node, "int")))
		return;
	args[node->count - 1] = last->literal;
	made = node->functions[0]->call(c->source->arena, args);
	if (value_is_bad(&made))
		source_fail(c->source, made.kind == VALUE_FAILED ? ERR_INVALID : ERR_UNSUPPORTED,
			    last->at, "%s", made.why);
}

/* Numbers with a point, which are not built here, could be what comes out of attributes alone. */
static bool is_vague_number(const struct node *node, const struct type *const *types)
{
	static const char *const operators[] = { "-_", "_-_", "_*_", "_/_", "_%_" };

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
		if (is_named(node, operators[i]))
			return type_is_open(types[0]) &&
			       (node->count == 1 || type_is_open(types[1]));
	return false;
}

static const struct type *check_call(struct checker *c, struct node *node)
{
	const struct function *found[CANDIDATES_MAX], **fits;
	const struct type *types[PARAMETERS_MAX + 1] = { NULL }, *ret = NULL;
	uint32_t count = functions_find(&node->name, node->is_member, found, CANDIDATES_MAX), n = 0;

	for (uint32_t i = 0; i < node->count; i++) {
		const struct type *type = check_node(c, node->on[i]);

		if (i <= PARAMETERS_MAX)
			types[i] = type;
	}
	fits = arena_new_array(c->source->arena, const struct function *, CANDIDATES_MAX + 1);
	for (uint32_t i = 0; i < count; i++) {
		const struct type *gives;

		if (!suits(found[i], types, node->count))
			continue;
		gives = sort_type(c, found[i], types);
		fits[n++] = found[i];
		if (!ret)
			ret = gives;
		else if (ret->kind != gives->kind)
			ret = &type_dynamic;
	}
	node->functions = (const struct function *const *)fits;
	if (!ret)
		return refuse_call(c, node);
	c->compares |= fits[0]->takes[0] == SORT_QUANTITY && fits[0]->takes[1] != SORT_NONE;
	c->asks_whole |= is_named(node, "isInteger") || is_named(node, "asInteger");
	check_literal(c, node);
	return is_vague_number(node, types) ? &type_dynamic : ret;
}

static const struct type *check_optional(struct checker *c, struct node *node)
{
	const struct type *on = node->count ? check_node(c, node->on[0]) : NULL, *other = NULL;

	if (is_named(node, "none") && !node->is_member && !on)
		return type_of(c->source->arena, TYPE_OPTIONAL, &type_free);
	if (is_named(node, "of") && !node->is_member && node->count == 1)
		return type_of(c->source->arena, TYPE_OPTIONAL, on);
	if (!node->is_member || !on || on->kind != TYPE_OPTIONAL)
		return refuse_call(c, node);
	if (node->count == 1 && is_named(node, "hasValue"))
		return &type_bool;
	if (node->count == 1 && is_named(node, "value"))
		return on->of;
	if (node->count == 2)
		other = check_node(c, node->on[1]);
	if (other && is_named(node, "or") && other->kind == TYPE_OPTIONAL && type_fits(on, other))
		return type_join(on, other);
	if (other && is_named(node, "orValue") && type_fits(on->of, other))
		return type_join(on->of, other);
	return refuse(c, node, "this does not go with what the optional may have");
}

static const struct type *node_type(struct checker *c, struct node *node)
{
	switch (node->kind) {
	case NODE_LITERAL: return literal_type(node);
	case NODE_DEVICE: return &type_device;
	case NODE_VARIABLE: return c->slots[node->slot];
	case NODE_SELECT:
	case NODE_HAS: return check_select(c, node);
	case NODE_INDEX: return check_index(c, node);
	case NODE_AND:
	case NODE_OR:
		check_bool(c, node->on[0]);
		check_bool(c, node->on[1]);
		return &type_bool;
	case NODE_CHOICE: return check_choice(c, node);
	case NODE_EQUAL:
	case NODE_UNEQUAL:
	case NODE_IN: return check_pair(c, node);
	case NODE_LIST: return check_list(c, node);
	case NODE_CALL: return check_call(c, node);
	case NODE_OPTIONAL_CALL: return check_optional(c, node);
	case NODE_EACH: return check_each(c, node);
	case NODE_BIND: return check_bind(c, node);
	}
	return &type_dynamic;
}

static const struct type *check_node(struct checker *c, struct node *node)
{
	node->type = c->source->failed ? &type_dynamic : node_type(c, node);
	return node->type;
}

void check(struct source *source, struct node *root)
{
	struct checker c = { .source = source };
	const struct type *type = check_node(&c, root);

	if (type->kind != TYPE_BOOL && type->kind != TYPE_ANY)
		source_fail(source, ERR_INVALID, 0,
			    "an expression says yes or no of a device, this one comes to %s %s",
			    type->kind == TYPE_INT ? "an" : "a", type_name(type));
	/* A quantity that Kubernetes compared with one of another form is not whole afterwards, whatever it was. */
	if (c.compares && c.asks_whole)
		source_fail(
			source, ERR_UNSUPPORTED, 0,
			"an expression that compares quantities and asks whether one is whole is not read");
}
