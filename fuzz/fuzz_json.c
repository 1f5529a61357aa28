/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pull reader, judged by jansson: what it takes we take, with the same values, and what it refuses we refuse.
 * Where their rules differ on purpose: jansson refuses numbers past its types and texts with NUL, allows deeper nesting, and
 * keeps the last of doubled keys.
 */
#include "fuzz/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/json.h"

static struct arena arena;
static bool repeated; /* a key stood twice in one object */

static json_t *read_value(struct json_reader *r);

static json_t *read_object(struct json_reader *r)
{
	json_t *object = json_object();
	struct json_slice key;

	pull_object(r);
	while (pull_member(r, &key)) {
		char *name = pull_text(r, &key, &arena);

		CHECK(r->problem || pull_key_is(&key, name));
		repeated |= json_object_get(object, name) != NULL;
		json_object_set_new_nocheck(object, name, read_value(r));
	}
	return object;
}

static json_t *read_array(struct json_reader *r)
{
	json_t *array = json_array();

	pull_array(r);
	while (pull_element(r))
		json_array_append_new(array, read_value(r));
	return array;
}

static json_t *read_text(struct json_reader *r)
{
	struct json_slice slice;
	struct json_reader copy = *r;
	char *text, out[64];

	pull_string(&copy, &slice);
	pull_copy(&copy, &slice, out, sizeof(out));
	pull_string(r, &slice);
	text = pull_text(r, &slice, &arena);
	CHECK(!!r->problem >=
	      !!(copy.problem && strlen(text) < sizeof(out))); /* both ways to unescape agree */
	CHECK(copy.problem || strcmp(out, text) == 0);
	return r->problem ? NULL : json_string_nocheck(text);
}

static json_t *read_number(struct json_reader *r)
{
	struct json_reader copy = *r;
	const char *first = r->at;
	AUTO_BUF text = BUF_INIT;
	int64_t number;

	pull_int(&copy, &number);
	if (!copy.problem) {
		*r = copy;
		return json_integer(number);
	}
	pull_skip(r);
	if (r->problem)
		return NULL;
	buf_add(&text, first, (size_t)(r->at - first));
	return json_real(strtod(text.data, NULL));
}

static json_t *read_value(struct json_reader *r)
{
	bool flag;

	switch (pull_peek(r)) {
	case PULL_OBJECT: return read_object(r);
	case PULL_ARRAY: return read_array(r);
	case PULL_STRING: return read_text(r);
	case PULL_NUMBER: return read_number(r);
	case PULL_BOOL: pull_bool(r, &flag); return json_boolean(flag);
	case PULL_NULL: pull_null(r); return json_null();
	case PULL_BAD:
	case PULL_END: break;
	}
	return NULL;
}

static bool is_judged(const json_error_t *error)
{
	return json_error_code(error) != json_error_numeric_overflow &&
	       json_error_code(error) != json_error_null_character &&
	       json_error_code(error) != json_error_null_byte_in_key &&
	       json_error_code(error) != json_error_stack_overflow;
}

static uint32_t depth_of(const uint8_t *data, size_t size)
{
	uint32_t depth = 0, most = 0;
	bool text = false;

	for (size_t i = 0; i < size; i++) {
		if (text)
			i += data[i] == '\\';
		if (i < size && data[i] == '"' && !(text && data[i - 1] == '\\'))
			text = !text;
		if (text || i >= size)
			continue;
		depth += data[i] == '[' || data[i] == '{';
		if (depth > most)
			most = depth;
		depth -= depth && (data[i] == ']' || data[i] == '}');
	}
	return most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct json_reader r, skip;
	struct err err = { 0 };
	json_error_t error;
	json_t *expected, *read;
	bool taken;
	int rc;

	if (memchr(data, '\0', size) != NULL)
		return 0; /* jansson takes one behind the value, we never do */
	arena_init(&arena, 64 << 20);
	repeated = false;
	pull_init(&skip, text, size);
	pull_skip(&skip);
	taken = pull_finish(&skip, NULL) == 0;
	pull_init(&r, text, size);
	read = read_value(&r);
	rc = pull_finish(&r, &err);
	if (rc < 0)
		fuzz_check_refusal(rc, &err);
	fuzz_accepted = rc == 0;
	expected = json_loadb(text, size, JSON_DECODE_ANY, &error);
	if (expected) {
		CHECK((taken && rc == 0) || depth_of(data, size) > PULL_DEPTH_MAX);
		CHECK(rc < 0 || repeated || json_equal(read, expected));
	} else if (is_judged(&error)) {
		CHECK(!taken && rc < 0);
	}
	json_decref(expected);
	json_decref(read);
	arena_deinit(&arena);
	return 0;
}
