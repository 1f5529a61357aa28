/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A strict pull reader for JSON, for the two streams where a tree of objects is too slow: journal
 * records and Kubernetes watches. (Everything else uses jansson.)
 *
 * It allocates nothing and checks everything: RFC 8259 grammar, UTF-8, escapes, surrogate pairs,
 * depth (JSON_DEPTH_MAX). Numbers are read as 64-bit integers; a fraction or exponent is an error
 * for json_int and skippable otherwise. After the first error every call answers JSON_BAD or false,
 * and what calls return is zero, false or an empty slice. Doubled keys are the caller's to refuse.
 *
 *	struct json_reader r;
 *	json_init(&r, text, size);
 *	json_object(&r);
 *	while (json_member(&r, &key)) {
 *		if (json_key_is(&key, "seq")) json_uint(&r, &seq);
 *		else json_skip(&r);
 *	}
 *	if (json_finish(&r, err) < 0) ...	// one check at the end serves all calls
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct arena;

enum { JSON_DEPTH_MAX = 64 };

enum json_type { JSON_BAD, JSON_END, JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER, JSON_BOOL, JSON_NULL };

enum { JSON_KIND_OBJECT, JSON_KIND_ARRAY };

/* A piece of the input, still escaped when `escaped` says so. */
struct json_slice {
	const char *data;
	size_t size;
	bool escaped;
};

struct json_reader {
	const char *start, *at, *end;
	const char *problem;		/* static text; NULL while all is well */
	uint8_t depth;			/* objects and arrays entered and not left */
	uint8_t kind[JSON_DEPTH_MAX];	/* JSON_KIND_ at each depth */
	uint8_t fresh[JSON_DEPTH_MAX];	/* nothing read at this depth yet */
	bool wants;			/* a value is to be read here */
};

void json_init(struct json_reader *r, const char *text, size_t size);
/* Type of the value that comes next; JSON_END where none can come: behind the last, or in an empty text. */
enum json_type json_peek(struct json_reader *r);
void json_object(struct json_reader *r);		/* enters { */
bool json_member(struct json_reader *r, struct json_slice *ret_key);	/* next key; false at } (left then) or error */
void json_array(struct json_reader *r);			/* enters [ */
bool json_element(struct json_reader *r);		/* another element comes; false at ] (left then) or error */
void json_string(struct json_reader *r, struct json_slice *ret);
void json_int(struct json_reader *r, int64_t *ret);
void json_uint(struct json_reader *r, uint64_t *ret);
void json_bool(struct json_reader *r, bool *ret);
void json_null(struct json_reader *r);
void json_skip(struct json_reader *r);			/* any value, checked */
bool json_key_is(const struct json_slice *key, const char *name);
/* Unescaped bytes, NUL at the end; a \u0000 inside is an error of the reader. */
char *json_slice_text(struct json_reader *r, const struct json_slice *slice, struct arena *arena);
/* Unescapes into out (room bytes with NUL); sets the reader's problem when it does not fit. */
void json_slice_copy(struct json_reader *r, const struct json_slice *slice, char *out, size_t room);
/* All of the input must have been read; 0, or -1 with what is wrong and its byte offset in err. */
int json_finish(struct json_reader *r, struct err *err) MUST_CHECK;
void json_fail(struct json_reader *r, const char *problem);	/* a reader's user found something wrong */
