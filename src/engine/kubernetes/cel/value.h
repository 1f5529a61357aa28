/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Values of an expression. What they point to lives in the program's or the answer's arena, or in the device that is asked about.
 * A failure is a value too: `false && failure` is false, so it goes up the expression until somebody needs it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum value_kind {
	VALUE_REFUSED, /* `why` */
	VALUE_FAILED, /* `why` */
	VALUE_BOOL,
	VALUE_INT,
	VALUE_STRING,
	VALUE_QUANTITY,
	VALUE_VERSION,
	VALUE_LIST,
	VALUE_MAP,
	VALUE_OPTIONAL,
	VALUE_DEVICE,
};

/* UTF-8, not closed by NUL. */
struct string {
	const char *data;
	size_t size;
};

/* Billionths of one: the finest that Kubernetes keeps. */
__extension__ typedef __int128 nano128;

/* Semantic version 2.0.0; what stands behind + orders nothing and is not kept. */
struct version {
	uint64_t major, minor, patch;
	struct string before; /* rc.1 of 1.2.3-rc.1; empty = none */
};

/* Whether Kubernetes takes a quantity for a whole number hangs on how it was written: 1Gi is one, 1000m and 1.5Gi are not.
 * Not known: of a sum. */
enum wholeness { WHOLE_NOT_KNOWN, WHOLE, NOT_WHOLE };

struct value {
	enum value_kind kind;
	enum wholeness whole; /* of a quantity */
	union {
		const char *why;
		bool truth;
		int64_t number;
		struct string string;
		nano128 quantity;
		const struct version *version;
		const struct list *list;
		const struct map *map;
		const struct value *inside; /* of an optional; NULL = nothing */
		const struct cel_device *device;
	};
};

struct list {
	const struct value *items;
	uint32_t count;
};

struct entry {
	struct value key, value;
};

struct map {
	const struct entry *entries;
	uint32_t count;
	bool is_open; /* device.attributes and .capacity: a key that is not there has an empty map */
};

static inline struct value value_bool(bool truth)
{
	return (struct value){ .kind = VALUE_BOOL, .truth = truth };
}

static inline struct value value_int(int64_t number)
{
	return (struct value){ .kind = VALUE_INT, .number = number };
}

static inline struct value value_string(const char *data, size_t size)
{
	return (struct value){ .kind = VALUE_STRING, .string = { data, size } };
}

/* why: static, or of the answer's arena. */
static inline struct value value_failed(const char *why)
{
	return (struct value){ .kind = VALUE_FAILED, .why = why };
}

static inline struct value value_refused(const char *why)
{
	return (struct value){ .kind = VALUE_REFUSED, .why = why };
}

static inline bool value_is_bad(const struct value *v)
{
	return v->kind <= VALUE_FAILED;
}

/* A bool, or a failure where the language has no answer. Values of unlike kinds are not equal. */
struct value value_equal(const struct value *a, const struct value *b);
/* NULL = there is none. */
const struct value *map_find(const struct map *map, const struct value *key);

/* exact.c, version.c. 0; 1 = it is none; 2 = it is finer or larger than can be kept here (quantities), or too long. */
int quantity_read(const struct string *text, nano128 *ret, enum wholeness *ret_whole);
int version_read(struct arena *arena, const struct string *text, bool lenient, struct version *ret);
int version_compare(const struct version *a, const struct version *b); /* -1, 0, 1 */
