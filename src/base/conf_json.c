/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON into a tree of conf.h. YAML's flow style reads almost all of JSON, but not surrogate pairs
 * in escapes, nor keys of more than 1,024 characters, both of which programs write.
 */
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/conf_build.h"
#include "base/json.h"
#include "base/utf8.h"

bool conf_is_json(const char *text, size_t size)
{
	struct json_reader r;

	pull_init(&r, text, size);
	if (pull_peek(&r) != PULL_OBJECT && pull_peek(&r) != PULL_ARRAY)
		return false;
	pull_skip(&r);
	return pull_finish(&r, NULL) == 0;
}

struct json_walk {
	struct conf_build *build;
	struct json_reader r;
	const char *at; /* the byte of `place`; both only go forwards */
	struct conf_place place;
	struct buf text; /* of the last string with escapes */
};

static struct conf_place place_of(struct json_walk *walk, const char *byte)
{
	while (walk->at < byte) {
		size_t plain = utf8_plain(walk->at, (size_t)(byte - walk->at), false);

		walk->place.column += (int)plain;
		walk->at += plain;
		if (walk->at == byte)
			break;
		walk->place.column++;
		if (*walk->at == '\n')
			walk->place = (struct conf_place){ walk->place.line + 1, 1 };
		walk->at += utf8_size(walk->at, (size_t)(walk->r.end - walk->at));
	}
	return walk->place;
}

/* The text of a slice, valid until the next call. */
static int read_text(struct json_walk *walk, struct conf_place at, const struct json_slice *slice,
		     const char **ret, size_t *ret_size)
{
	*ret = slice->data;
	*ret_size = slice->size;
	if (!slice->escaped)
		return 0;
	buf_clear(&walk->text);
	buf_reserve(&walk->text, slice->size + 1);
	pull_copy(&walk->r, slice, walk->text.data, slice->size + 1);
	if (walk->r.problem)
		return conf_build_error(walk->build, at, ERR_INVALID,
					"a text can't have a NUL character in it");
	*ret = walk->text.data;
	*ret_size = strlen(walk->text.data);
	return 0;
}

static int read_string(struct json_walk *walk, struct conf_place at, const struct json_slice *slice,
		       bool is_key)
{
	const char *text;
	size_t size;
	int rc = read_text(walk, at, slice, &text, &size);

	if (rc < 0)
		return rc;
	if (is_key)
		return conf_build_key(walk->build, at, text, size);
	return conf_build_scalar(walk->build, at, text, size, true);
}

/* A scalar, or the start of a list or map. */
static int read_value(struct json_walk *walk)
{
	enum pull_type type = pull_peek(&walk->r);
	struct conf_place at = place_of(walk, walk->r.at);
	const char *first = walk->r.at;
	struct json_slice slice;

	switch (type) {
	case PULL_OBJECT: pull_object(&walk->r); return conf_build_begin(walk->build, at, CONF_MAP);
	case PULL_ARRAY: pull_array(&walk->r); return conf_build_begin(walk->build, at, CONF_LIST);
	case PULL_STRING:
		pull_string(&walk->r, &slice);
		return read_string(walk, at, &slice, false);
	case PULL_NUMBER:
	case PULL_BOOL:
	case PULL_NULL:
		pull_skip(&walk->r);
		return conf_build_scalar(walk->build, at, first, (size_t)(walk->r.at - first),
					 false);
	case PULL_BAD:
	case PULL_END: break;
	}
	UNREACHABLE(); /* conf_is_json has read all of it */
}

static int read_all(struct json_walk *walk)
{
	struct json_slice key;
	int rc = read_value(walk);

	while (rc >= 0 && walk->r.depth) {
		if (walk->r.kind[walk->r.depth - 1] == PULL_KIND_ARRAY) {
			rc = pull_element(&walk->r) ? read_value(walk)
						    : conf_build_end(walk->build);
		} else if (pull_member(&walk->r, &key)) {
			rc = read_string(walk, place_of(walk, key.data - 1), &key, true);
			if (rc >= 0)
				rc = read_value(walk);
		} else {
			rc = conf_build_end(walk->build);
		}
	}
	return rc;
}

int conf_read_json(struct conf_build *build, const char *text, size_t size)
{
	struct json_walk walk = { .build = build, .at = text, .place = { 1, 1 } };
	int rc;

	pull_init(&walk.r, text, size);
	rc = read_all(&walk);
	buf_deinit(&walk.text);
	return rc;
}
