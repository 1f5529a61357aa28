/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known of a value before there is one. An attribute may be anything (TYPE_ANY), and so may what is read of it
 * (TYPE_DYNAMIC); Kubernetes takes the one and not the other as what a selector comes to.
 */
#include <stdbool.h>

struct arena;

enum type_kind {
	TYPE_BOOL,
	TYPE_INT,
	TYPE_STRING,
	TYPE_QUANTITY,
	TYPE_VERSION,
	TYPE_DEVICE,
	TYPE_ANY,
	TYPE_DYNAMIC,
	TYPE_FREE, /* of the items of [] */
	TYPE_LIST, /* of `of` */
	TYPE_MAP, /* from string to `of` */
	TYPE_OPTIONAL, /* `of` */
};

struct type {
	enum type_kind kind;
	const struct type *of;
};

extern const struct type type_bool, type_int, type_string, type_quantity, type_version, type_device,
	type_any, type_dynamic, type_free, type_attributes, type_capacities;

const struct type *type_of(struct arena *arena, enum type_kind kind, const struct type *of);
bool type_is_open(const struct type *type); /* may be anything */
/* Nothing is known of it, or of its items. */
bool type_is_vague(const struct type *type);
/* May a value of the one stand where the other is expected? */
bool type_fits(const struct type *a, const struct type *b);
bool type_is_same(const struct type *a, const struct type *b);
/* The less specific of two that fit. */
const struct type *type_join(const struct type *a, const struct type *b);
const char *type_name(const struct type *type);
