/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An expression as a tree, made by parse.c, given types by check.c, walked by evaluate.c. It lives in the program's arena. */
#include "engine/kubernetes/cel/cel.h"
#include "engine/kubernetes/cel/type.h"
#include "engine/kubernetes/cel/value.h"

enum node_kind {
	NODE_LITERAL,
	NODE_DEVICE,
	NODE_VARIABLE, /* slot */
	NODE_SELECT, /* on[0].name; with `maybe` on[0].?name */
	NODE_HAS, /* has(on[0].name) */
	NODE_INDEX, /* on[0][on[1]]; with `maybe` on[0][?on[1]] */
	NODE_AND,
	NODE_OR,
	NODE_CHOICE, /* on[0] ? on[1] : on[2] */
	NODE_EQUAL,
	NODE_UNEQUAL,
	NODE_IN,
	NODE_LIST,
	NODE_CALL, /* name; on[0] is what it is called on when is_member. Operators too, as _+_ and the like */
	NODE_OPTIONAL_CALL, /* optional.of, none, and orValue, or, value, hasValue of an optional */
	NODE_EACH, /* over on[0], slot for each, on[1] says, on[2] is made (map) */
	NODE_BIND, /* slot = on[0] in on[1] */
};

enum each { EACH_EXISTS, EACH_ALL, EACH_EXISTS_ONE, EACH_FILTER, EACH_MAP };

struct function;

struct node {
	enum node_kind kind;
	enum each each;
	bool maybe, is_member;
	uint32_t at; /* byte of the expression, for errors */
	uint32_t slot;
	uint32_t count; /* of `on` */
	uint32_t height; /* nodes on the longest way down */
	struct node **on;
	struct string name;
	struct value literal;
	const struct type *type; /* check.c */
	const struct function *const *functions; /* that suit the types; closed by NULL. check.c */
};

enum { SLOTS_MAX = 64 }; /* variables of macros */

struct cel_program {
	const struct node *root;
};

/* What compiling needs. The first error stays. */
struct source {
	const char *text;
	size_t size;
	struct arena *arena;
	struct err *err;
	bool failed;
};

/* Records the error; returns NULL, so that `return source_fail(...)` is one statement. */
struct node *source_fail(struct source *source, enum err_code code, uint32_t at, const char *format,
			 ...) PRINTF_LIKE(4, 5);
struct node *parse(struct source *source);
void check(struct source *source, struct node *root);
struct value evaluate(const struct node *root, const struct cel_device *device,
		      struct arena *arena);
