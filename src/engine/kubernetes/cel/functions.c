/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/cel/function.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"

enum { NANO = 1000000000 };

#define FUNCTION(name) static struct value name(struct arena *arena, const struct value *a)

static struct value too_large(void)
{
	return value_failed("a number too large for 64 bits");
}

/* -- whole numbers -- */

FUNCTION(int_add)
{
	int64_t sum;

	(void)arena;
	return __builtin_add_overflow(a[0].number, a[1].number, &sum) ? too_large()
								      : value_int(sum);
}

FUNCTION(int_subtract)
{
	int64_t rest;

	(void)arena;
	return __builtin_sub_overflow(a[0].number, a[1].number, &rest) ? too_large()
								       : value_int(rest);
}

FUNCTION(int_multiply)
{
	int64_t product;

	(void)arena;
	return __builtin_mul_overflow(a[0].number, a[1].number, &product) ? too_large()
									  : value_int(product);
}

FUNCTION(int_divide)
{
	(void)arena;
	if (a[1].number == 0)
		return value_failed("a division by zero");
	if (a[0].number == INT64_MIN && a[1].number == -1)
		return too_large();
	return value_int(a[0].number / a[1].number);
}

FUNCTION(int_rest)
{
	(void)arena;
	if (a[1].number == 0)
		return value_failed("a division by zero");
	if (a[0].number == INT64_MIN && a[1].number == -1)
		return too_large();
	return value_int(a[0].number % a[1].number);
}

FUNCTION(int_minus)
{
	(void)arena;
	return a[0].number == INT64_MIN ? too_large() : value_int(-a[0].number);
}

FUNCTION(bool_not)
{
	(void)arena;
	return value_bool(!a[0].truth);
}

FUNCTION(same)
{
	(void)arena;
	return a[0];
}

FUNCTION(int_of_string)
{
	const struct string *s = &a[0].string;
	bool minus = s->size && s->data[0] == '-';
	size_t at = minus || (s->size && s->data[0] == '+');
	int64_t value = 0;

	(void)arena;
	if (at == s->size)
		return value_failed("a text that is no number");
	for (; at < s->size; at++) {
		int digit = s->data[at] - '0';

		if (digit < 0 || digit > 9)
			return value_failed("a text that is no number");
		if (__builtin_mul_overflow(value, INT64_C(10), &value) ||
		    __builtin_sub_overflow(value, (int64_t)digit, &value))
			return too_large();
	}
	if (!minus && value == INT64_MIN)
		return too_large();
	return value_int(minus ? value : -value);
}

FUNCTION(string_of_int)
{
	const char *text = arena_printf(arena, "%lld", (long long)a[0].number);

	return value_string(text, strlen(text));
}

FUNCTION(string_of_bool)
{
	(void)arena;
	return a[0].truth ? value_string("true", 4) : value_string("false", 5);
}

/* -- order -- */

static int string_compare(const struct string *a, const struct string *b)
{
	size_t size = a->size < b->size ? a->size : b->size;
	int order = size ? memcmp(a->data, b->data, size) : 0;

	return order ? order : (a->size > b->size) - (a->size < b->size);
}

static int compare(const struct value *a)
{
	switch (a[0].kind) {
	case VALUE_BOOL: return (int)a[0].truth - (int)a[1].truth;
	case VALUE_INT: return (a[0].number > a[1].number) - (a[0].number < a[1].number);
	case VALUE_STRING: return string_compare(&a[0].string, &a[1].string);
	case VALUE_QUANTITY:
		return (a[0].quantity > a[1].quantity) - (a[0].quantity < a[1].quantity);
	case VALUE_VERSION: return version_compare(a[0].version, a[1].version);
	case VALUE_REFUSED:
	case VALUE_FAILED:
	case VALUE_LIST:
	case VALUE_MAP:
	case VALUE_OPTIONAL:
	case VALUE_DEVICE: break;
	}
	UNREACHABLE();
}

FUNCTION(less)
{
	(void)arena;
	return value_bool(compare(a) < 0);
}

FUNCTION(less_equal)
{
	(void)arena;
	return value_bool(compare(a) <= 0);
}

FUNCTION(greater)
{
	(void)arena;
	return value_bool(compare(a) > 0);
}

FUNCTION(greater_equal)
{
	(void)arena;
	return value_bool(compare(a) >= 0);
}

FUNCTION(compare_to)
{
	(void)arena;
	return value_int(compare(a));
}

/* -- lists and maps -- */

FUNCTION(list_add)
{
	uint32_t count = a[0].list->count + a[1].list->count;
	struct value *items = arena_new_array(arena, struct value, count + 1);
	struct list *list = arena_new(arena, struct list);

	for (uint32_t i = 0; i < count; i++)
		items[i] = i < a[0].list->count ? a[0].list->items[i]
						: a[1].list->items[i - a[0].list->count];
	*list = (struct list){ .items = items, .count = count };
	return (struct value){ .kind = VALUE_LIST, .list = list };
}

FUNCTION(list_size)
{
	(void)arena;
	return value_int(a[0].list->count);
}

FUNCTION(map_size)
{
	(void)arena;
	return value_int(a[0].map->count);
}

/* -- quantities -- */

static const char too_fine[] = "a quantity that is too large or too fine";

/* Kubernetes adds to some quantities where they stand, so that an attribute is another one afterwards: those are left alone. */
static struct value quantity_value(const struct value *a, nano128 quantity)
{
	if (a->whole != WHOLE)
		return value_refused("sums with such a quantity are not built here");
	if (quantity / NANO >= INT64_MAX || quantity / NANO <= -INT64_MAX)
		return value_refused("quantities beyond 64 bits are not built here");
	return (struct value){ .kind = VALUE_QUANTITY, .quantity = quantity };
}

FUNCTION(quantity_of_string)
{
	struct value value = { .kind = VALUE_QUANTITY };
	nano128 quantity;

	(void)arena;
	switch (quantity_read(&a[0].string, &quantity, &value.whole)) {
	case 0: value.quantity = quantity; return value;
	case 1: return value_failed("a text that is no quantity");
	default: return value_refused(too_fine);
	}
}

FUNCTION(string_is_quantity)
{
	enum wholeness whole;
	nano128 quantity;
	int rc = quantity_read(&a[0].string, &quantity, &whole);

	(void)arena;
	return rc == 2 ? value_refused(too_fine) : value_bool(rc == 0);
}

static const char not_known[] = "whether a sum of quantities is whole is not built here";

FUNCTION(quantity_is_integer)
{
	(void)arena;
	if (a[0].whole == WHOLE_NOT_KNOWN)
		return value_refused(not_known);
	return value_bool(a[0].whole == WHOLE);
}

FUNCTION(quantity_as_integer)
{
	(void)arena;
	if (a[0].whole == WHOLE_NOT_KNOWN)
		return value_refused(not_known);
	if (a[0].whole != WHOLE)
		return value_failed("a quantity that is no whole number");
	return value_int((int64_t)(a[0].quantity / NANO));
}

FUNCTION(quantity_sign)
{
	(void)arena;
	return value_int((a[0].quantity > 0) - (a[0].quantity < 0));
}

FUNCTION(quantity_add)
{
	(void)arena;
	return quantity_value(a, a[0].quantity + a[1].quantity);
}

FUNCTION(quantity_subtract)
{
	(void)arena;
	return quantity_value(a, a[0].quantity - a[1].quantity);
}

FUNCTION(quantity_add_int)
{
	(void)arena;
	return quantity_value(a, a[0].quantity + (nano128)a[1].number * NANO);
}

FUNCTION(quantity_subtract_int)
{
	(void)arena;
	return quantity_value(a, a[0].quantity - (nano128)a[1].number * NANO);
}

/* -- versions -- */

static struct value version_of(struct arena *arena, const struct string *text, bool lenient)
{
	struct version *version = arena_new(arena, struct version);

	switch (version_read(arena, text, lenient, version)) {
	case 0: return (struct value){ .kind = VALUE_VERSION, .version = version };
	case 1: return value_failed("a text that is no version");
	default: return value_refused("a version that is too long");
	}
}

FUNCTION(version_of_string)
{
	return version_of(arena, &a[0].string, false);
}

FUNCTION(version_of_string_lenient)
{
	return version_of(arena, &a[0].string, a[1].truth);
}

static struct value is_version(struct arena *arena, const struct string *text, bool lenient)
{
	struct value value = version_of(arena, text, lenient);

	return value.kind == VALUE_REFUSED ? value : value_bool(value.kind == VALUE_VERSION);
}

FUNCTION(string_is_version)
{
	return is_version(arena, &a[0].string, false);
}

FUNCTION(string_is_version_lenient)
{
	return is_version(arena, &a[0].string, a[1].truth);
}

static struct value version_part(uint64_t part)
{
	return part > INT64_MAX ? value_refused("a version beyond 64 bits")
				: value_int((int64_t)part);
}

FUNCTION(version_major)
{
	(void)arena;
	return version_part(a[0].version->major);
}

FUNCTION(version_minor)
{
	(void)arena;
	return version_part(a[0].version->minor);
}

FUNCTION(version_patch)
{
	(void)arena;
	return version_part(a[0].version->patch);
}

/* -- the table -- */

#define B SORT_BOOL
#define I SORT_INT
#define S SORT_STRING
#define Q SORT_QUANTITY
#define V SORT_VERSION
#define L SORT_LIST
#define M SORT_MAP
#define SS SORT_STRINGS

#define ORDER(name, call)                                                                          \
	{ name, false, { B, B }, B, call }, { name, false, { I, I }, B, call },                    \
	{                                                                                          \
		name, false, { S, S }, B, call                                                     \
	}

static const struct function functions[] = {
	{ "_+_", false, { I, I }, I, int_add },
	{ "_+_", false, { S, S }, S, string_add },
	{ "_+_", false, { L, L }, L, list_add },
	{ "_-_", false, { I, I }, I, int_subtract },
	{ "_*_", false, { I, I }, I, int_multiply },
	{ "_/_", false, { I, I }, I, int_divide },
	{ "_%_", false, { I, I }, I, int_rest },
	{ "-_", false, { I }, I, int_minus },
	{ "!_", false, { B }, B, bool_not },
	ORDER("_<_", less),
	ORDER("_<=_", less_equal),
	ORDER("_>_", greater),
	ORDER("_>=_", greater_equal),
	{ "bool", false, { B }, B, same },
	{ "int", false, { I }, I, same },
	{ "int", false, { S }, I, int_of_string },
	{ "string", false, { S }, S, same },
	{ "string", false, { I }, S, string_of_int },
	{ "string", false, { B }, S, string_of_bool },
	{ "size", false, { S }, I, string_size },
	{ "size", false, { L }, I, list_size },
	{ "size", false, { M }, I, map_size },
	{ "size", true, { S }, I, string_size },
	{ "size", true, { L }, I, list_size },
	{ "size", true, { M }, I, map_size },
	{ "contains", true, { S, S }, B, string_contains },
	{ "startsWith", true, { S, S }, B, string_starts },
	{ "endsWith", true, { S, S }, B, string_ends },
	{ "matches", true, { S, S }, B, string_matches },
	{ "matches", false, { S, S }, B, string_matches },
	{ "lowerAscii", true, { S }, S, string_lower },
	{ "upperAscii", true, { S }, S, string_upper },
	{ "trim", true, { S }, S, string_trim },
	{ "charAt", true, { S, I }, S, string_char_at },
	{ "indexOf", true, { S, S }, I, string_index_of },
	{ "lastIndexOf", true, { S, S }, I, string_last_index_of },
	{ "substring", true, { S, I }, S, string_substring },
	{ "substring", true, { S, I, I }, S, string_substring_to },
	{ "replace", true, { S, S, S }, S, string_replace },
	{ "split", true, { S, S }, SS, string_split },
	{ "join", true, { SS }, S, string_join },
	{ "join", true, { SS, S }, S, string_join_with },
	{ "quantity", false, { S }, Q, quantity_of_string },
	{ "isQuantity", false, { S }, B, string_is_quantity },
	{ "isInteger", true, { Q }, B, quantity_is_integer },
	{ "asInteger", true, { Q }, I, quantity_as_integer },
	{ "sign", false, { Q }, I, quantity_sign },
	{ "add", true, { Q, Q }, Q, quantity_add },
	{ "add", true, { Q, I }, Q, quantity_add_int },
	{ "sub", true, { Q, Q }, Q, quantity_subtract },
	{ "sub", true, { Q, I }, Q, quantity_subtract_int },
	{ "isLessThan", true, { Q, Q }, B, less },
	{ "isLessThan", true, { V, V }, B, less },
	{ "isGreaterThan", true, { Q, Q }, B, greater },
	{ "isGreaterThan", true, { V, V }, B, greater },
	{ "compareTo", true, { Q, Q }, I, compare_to },
	{ "compareTo", true, { V, V }, I, compare_to },
	{ "semver", false, { S }, V, version_of_string },
	{ "semver", false, { S, B }, V, version_of_string_lenient },
	{ "isSemver", false, { S }, B, string_is_version },
	{ "isSemver", false, { S, B }, B, string_is_version_lenient },
	{ "major", true, { V }, I, version_major },
	{ "minor", true, { V }, I, version_minor },
	{ "patch", true, { V }, I, version_patch },
};

static bool is_named(const struct function *function, const struct string *name)
{
	return strlen(function->name) == name->size &&
	       memcmp(function->name, name->data, name->size) == 0;
}

uint32_t functions_find(const struct string *name, bool is_member, const struct function **out,
			uint32_t room)
{
	uint32_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (functions[i].is_member == is_member && is_named(&functions[i], name) &&
		    count < room)
			out[count++] = &functions[i];
	return count;
}

uint32_t function_count(const struct function *function)
{
	uint32_t count = 0;

	while (count < PARAMETERS_MAX && function->takes[count] != SORT_NONE)
		count++;
	return count;
}

bool function_exists(const struct string *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (is_named(&functions[i], name))
			return true;
	return false;
}
