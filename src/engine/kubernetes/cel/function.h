/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Functions and operators that take values of known types: functions.c has the table. Those of one name are told apart by the types
 * of what they are given: when an expression is compiled as far as the types are known, and again when it is asked.
 */
#include "engine/kubernetes/cel/type.h"
#include "engine/kubernetes/cel/value.h"

enum { PARAMETERS_MAX = 3 };

/* What a parameter takes, or what comes out. */
enum sort {
	SORT_NONE,
	SORT_BOOL,
	SORT_INT,
	SORT_STRING,
	SORT_QUANTITY,
	SORT_VERSION,
	SORT_LIST, /* of anything */
	SORT_STRINGS, /* a list of strings */
	SORT_MAP,
};

struct function {
	const char *name; /* operators: _+_ and so on */
	bool is_member; /* x.name(...): x is the first parameter */
	enum sort takes[PARAMETERS_MAX]; /* up to the first SORT_NONE */
	enum sort gives; /* SORT_LIST: what the first parameter is */
	struct value (*call)(struct arena *arena, const struct value *args);
};

/* All that have the name and are called so; how many, written to out (of room). */
uint32_t functions_find(const struct string *name, bool is_member, const struct function **out,
			uint32_t room);
/* How many it takes. */
uint32_t function_count(const struct function *function);
/* Does any have that name, called in either way? */
bool function_exists(const struct string *name);

/* strings.c. Places are counted in characters. */
struct value string_add(struct arena *arena, const struct value *args);
struct value string_contains(struct arena *arena, const struct value *args);
struct value string_starts(struct arena *arena, const struct value *args);
struct value string_ends(struct arena *arena, const struct value *args);
struct value string_matches(struct arena *arena, const struct value *args);
struct value string_size(struct arena *arena, const struct value *args);
struct value string_lower(struct arena *arena, const struct value *args);
struct value string_upper(struct arena *arena, const struct value *args);
struct value string_trim(struct arena *arena, const struct value *args);
struct value string_char_at(struct arena *arena, const struct value *args);
struct value string_index_of(struct arena *arena, const struct value *args);
struct value string_last_index_of(struct arena *arena, const struct value *args);
struct value string_substring(struct arena *arena, const struct value *args);
struct value string_substring_to(struct arena *arena, const struct value *args);
struct value string_replace(struct arena *arena, const struct value *args);
struct value string_split(struct arena *arena, const struct value *args);
struct value string_join(struct arena *arena, const struct value *args);
struct value string_join_with(struct arena *arena, const struct value *args);
