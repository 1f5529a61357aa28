/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of YAML and JSON. What is taken stays inside every stated limit, and each value knows its place; what strict
 * JSON is for jansson is taken here with the same shape.
 */
#include "fuzz/fuzz.h"

#include <jansson.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/conf.h"
#include "base/parse.h"

static void check_texts(const struct conf *c)
{
	CHECK(!c->text || text_is_utf8(c->text, strlen(c->text)));
	CHECK(!c->key || text_is_utf8(c->key, strlen(c->key)));
	CHECK((c->type == CONF_SCALAR) == (c->text != NULL));
	CHECK(c->count == 0 || c->type == CONF_LIST || c->type == CONF_MAP);
}

/* Answers how many values there are. */
static size_t check_tree(const struct conf *c, int depth)
{
	size_t values = 1;

	CHECK(depth <= CONF_DEPTH_MAX);
	CHECK(c->line >= 1 && c->column >= 1);
	check_texts(c);
	for (size_t i = 0; i < c->count; i++) {
		const struct conf *item = c->items[i];

		CHECK((c->type == CONF_MAP) == (item->key != NULL));
		if (item->key) {
			CHECK(item->key_line >= 1 && item->key_column >= 1);
			CHECK(conf_find(c, item->key) == item); /* no key twice */
		}
		values += check_tree(item, depth + 1);
	}
	CHECK(values <= CONF_NODES_MAX);
	return values;
}

/* Every reader of values, on every value: each answers or says why. */
static void check_readers(const struct conf *c)
{
	struct err err = { 0 };
	const char *text;
	int64_t number;
	bool flag;
	int rc;

	if ((rc = conf_int(&err, "f", c, "x", -5, INT64_MAX, &number)) < 0)
		fuzz_check_refusal(rc, &err);
	else
		CHECK(number >= -5);
	if ((rc = conf_bool(&err, "f", c, "x", &flag)) < 0)
		fuzz_check_refusal(rc, &err);
	if ((rc = conf_text(&err, "f", c, "x", 20, &text)) < 0)
		fuzz_check_refusal(rc, &err);
	else
		CHECK(strlen(text) <= 20);
	if ((rc = conf_duration(&err, "f", c, "x", &number)) < 0)
		fuzz_check_refusal(rc, &err);
	else
		CHECK(number >= 0);
	if ((rc = conf_size_mib(&err, "f", c, "x", &number)) < 0)
		fuzz_check_refusal(rc, &err);
	else
		CHECK(number >= 0);
	for (size_t i = 0; i < c->count; i++)
		check_readers(c->items[i]);
}

static bool same_shape(const struct conf *c, const json_t *json)
{
	switch (json_typeof(json)) {
	case JSON_OBJECT:
		if (c->type != CONF_MAP || c->count != json_object_size(json))
			return false;
		for (size_t i = 0; i < c->count; i++) {
			const json_t *member = json_object_get(json, c->items[i]->key);

			if (!member || !same_shape(c->items[i], member))
				return false;
		}
		return true;
	case JSON_ARRAY:
		if (c->type != CONF_LIST || c->count != json_array_size(json))
			return false;
		for (size_t i = 0; i < c->count; i++)
			if (!same_shape(c->items[i], json_array_get(json, i)))
				return false;
		return true;
	case JSON_STRING:
		return c->type == CONF_SCALAR && c->quoted &&
		       strcmp(c->text, json_string_value(json)) == 0;
	case JSON_NULL: return c->type == CONF_NULL;
	case JSON_INTEGER:
	case JSON_REAL:
	case JSON_TRUE:
	case JSON_FALSE: return c->type == CONF_SCALAR && !c->quoted;
	}
	return false;
}

static int depth_of(const json_t *json)
{
	int most = 0, depth;
	const char *key;
	json_t *item;
	size_t i;

	json_object_foreach((json_t *)(uintptr_t)json, key,
			    item) if ((depth = depth_of(item)) > most) most = depth;
	json_array_foreach(json, i, item) if ((depth = depth_of(item)) > most) most = depth;
	return most + 1;
}

/* Jansson takes it, so it is strict JSON: an object or array of it must be taken here too, but for stated limits. */
static void check_json(const char *text, size_t size, int rc, struct conf **documents, size_t count)
{
	json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	bool control = false;

	/* DEL and the control characters of Latin 1 are refused when written out, though JSON would have them. */
	for (size_t i = 0; i < size; i++)
		control |= text[i] == 0x7f || (unsigned char)text[i] == 0xc2 ||
			   (unsigned char)text[i] == 0xef || text[i] == '\0' || text[i] == '\r' ||
			   (unsigned char)text[i] == 0xe2;
	if (json && rc < 0)
		CHECK(control || depth_of(json) > CONF_DEPTH_MAX);
	if (json && rc == 0)
		CHECK(count == 1 && same_shape(documents[0], json));
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct conf **documents = NULL;
	struct err err = { 0 };
	struct arena arena;
	size_t count = 0;
	int rc;

	arena_init(&arena, CONF_ARENA_MAX);
	rc = conf_parse("f", text, size, &arena, &documents, &count, &err);
	fuzz_accepted = rc == 0;
	if (rc < 0)
		fuzz_check_place(rc, &err, text, size);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		check_tree(documents[i], 1);
		check_readers(documents[i]);
	}
	check_json(text, size, rc, documents, count);
	arena_deinit(&arena);
	return 0;
}
