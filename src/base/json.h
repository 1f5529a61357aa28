/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A strict pull reader for JSON, for the two streams where a tree of objects is too slow: journal
 * records and Kubernetes watches. (Everything else uses jansson, which owns the names json_...:
 * a program links both, so the calls here are named pull_...)
 *
 * It allocates nothing and checks everything: RFC 8259 grammar, UTF-8, escapes, surrogate pairs,
 * depth (PULL_DEPTH_MAX). Numbers are read as 64-bit integers; a fraction or exponent is an error
 * for pull_int and skippable otherwise. After the first error every call answers PULL_BAD or false,
 * and what calls return is zero, false or an empty slice. Doubled keys are the caller's to refuse.
 *
 *	struct json_reader r;
 *	pull_init(&r, text, size);
 *	pull_object(&r);
 *	while (pull_member(&r, &key)) {
 *		if (pull_key_is(&key, "seq")) pull_uint(&r, &seq);
 *		else pull_skip(&r);
 *	}
 *	if (pull_finish(&r, err) < 0) ...	// one check at the end serves all calls
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct arena;

enum { PULL_DEPTH_MAX = 64 };

enum pull_type {
	PULL_BAD,
	PULL_END,
	PULL_OBJECT,
	PULL_ARRAY,
	PULL_STRING,
	PULL_NUMBER,
	PULL_BOOL,
	PULL_NULL,
};

enum { PULL_KIND_OBJECT, PULL_KIND_ARRAY };

/* A piece of the input, still escaped when `escaped` says so. */
struct json_slice {
	const char *data;
	size_t size;
	bool escaped;
};

struct json_reader {
	const char *start, *at, *end;
	const char *problem; /* static text; NULL while all is well */
	uint8_t depth; /* objects and arrays entered and not left */
	uint8_t kind[PULL_DEPTH_MAX]; /* PULL_KIND_ at each depth */
	uint8_t fresh[PULL_DEPTH_MAX]; /* nothing read at this depth yet */
	bool wants; /* a value is to be read here */
};

void pull_init(struct json_reader *r, const char *text, size_t size);
/* Type of the value that comes next; PULL_END where none can: behind the last, in an empty text. */
enum pull_type pull_peek(struct json_reader *r);
/* Enters { or [. */
void pull_object(struct json_reader *r);
void pull_array(struct json_reader *r);
/* The next key, or that another element comes; false at the end (left then) and after a problem. */
bool pull_member(struct json_reader *r, struct json_slice *ret_key);
bool pull_element(struct json_reader *r);
void pull_string(struct json_reader *r, struct json_slice *ret);
void pull_int(struct json_reader *r, int64_t *ret);
void pull_uint(struct json_reader *r, uint64_t *ret);
void pull_bool(struct json_reader *r, bool *ret);
void pull_null(struct json_reader *r);
/* Any value, checked. */
void pull_skip(struct json_reader *r);
bool pull_key_is(const struct json_slice *key, const char *name);
/* Unescaped bytes, NUL at the end; a \u0000 inside is an error of the reader. */
char *pull_text(struct json_reader *r, const struct json_slice *slice, struct arena *arena);
/* Unescapes into out (room bytes with NUL); sets the reader's problem when it does not fit. */
void pull_copy(struct json_reader *r, const struct json_slice *slice, char *out, size_t room);
/* All of the input must have been read; 0, or -1 with what is wrong and its byte offset in err. */
int pull_finish(struct json_reader *r, struct err *err) MUST_CHECK;
/* The reader's user found something wrong: static text; the first problem stays. */
void pull_fail(struct json_reader *r, const char *problem);
