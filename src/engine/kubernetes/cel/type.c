/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/cel/type.h"

#include "base/arena.h"

const struct type type_bool = { .kind = TYPE_BOOL };
const struct type type_int = { .kind = TYPE_INT };
const struct type type_string = { .kind = TYPE_STRING };
const struct type type_quantity = { .kind = TYPE_QUANTITY };
const struct type type_version = { .kind = TYPE_VERSION };
const struct type type_device = { .kind = TYPE_DEVICE };
const struct type type_any = { .kind = TYPE_ANY };
const struct type type_dynamic = { .kind = TYPE_DYNAMIC };
const struct type type_free = { .kind = TYPE_FREE };
static const struct type attributes_of_domain = { .kind = TYPE_MAP, .of = &type_any };
static const struct type capacities_of_domain = { .kind = TYPE_MAP, .of = &type_quantity };
const struct type type_attributes = { .kind = TYPE_MAP, .of = &attributes_of_domain };
const struct type type_capacities = { .kind = TYPE_MAP, .of = &capacities_of_domain };

const struct type *type_of(struct arena *arena, enum type_kind kind, const struct type *of)
{
	struct type *type = arena_new(arena, struct type);

	*type = (struct type){ .kind = kind, .of = of };
	return type;
}

bool type_is_open(const struct type *type)
{
	return type->kind == TYPE_ANY || type->kind == TYPE_DYNAMIC || type->kind == TYPE_FREE;
}

bool type_is_vague(const struct type *type)
{
	while (type->of)
		type = type->of;
	return type->kind == TYPE_FREE || type->kind == TYPE_DYNAMIC;
}

bool type_fits(const struct type *a, const struct type *b)
{
	for (; a && b; a = a->of, b = b->of) {
		if (type_is_open(a) || type_is_open(b))
			return true;
		if (a->kind != b->kind)
			return false;
	}
	return true;
}

bool type_is_same(const struct type *a, const struct type *b)
{
	for (; a && b; a = a->of, b = b->of)
		if (a->kind != b->kind)
			return false;
	return !a && !b;
}

const struct type *type_join(const struct type *a, const struct type *b)
{
	const struct type *x = a, *y = b;

	for (; x && y; x = x->of, y = y->of) {
		if (x->kind == TYPE_FREE)
			return b;
		if (y->kind == TYPE_FREE || type_is_open(x))
			return a;
		if (type_is_open(y))
			return b;
	}
	return a;
}

const char *type_name(const struct type *type)
{
	switch (type->kind) {
	case TYPE_BOOL: return "bool";
	case TYPE_INT: return "int";
	case TYPE_STRING: return "string";
	case TYPE_QUANTITY: return "quantity";
	case TYPE_VERSION: return "version";
	case TYPE_DEVICE: return "device";
	case TYPE_ANY:
	case TYPE_DYNAMIC:
	case TYPE_FREE: return "unknown";
	case TYPE_LIST: return "list";
	case TYPE_MAP: return "map";
	case TYPE_OPTIONAL: return "optional";
	}
	return "unknown";
}
