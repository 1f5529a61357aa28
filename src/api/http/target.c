/* SPDX-License-Identifier: Apache-2.0 */
#include "api/http/target.h"

#include <stdbool.h>
#include <string.h>
#include "base/arena.h"
#include "base/parse.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes text[0, size) into the arena; NULL with the story in err. */
static char *decode(const char *text, size_t size, bool query, struct arena *arena, struct err *err)
{
	char *out = arena_alloc(arena, size + 1);
	size_t n = 0;

	for (size_t i = 0; i < size; i++) {
		int high, low;

		if (text[i] != '%') {
			out[n++] = query && text[i] == '+' ? ' ' : text[i];
			continue;
		}
		high = i + 2 < size ? hex_value(text[i + 1]) : -1;
		low = i + 2 < size ? hex_value(text[i + 2]) : -1;
		if (high < 0 || low < 0) {
			err_set(err, ERR_INVALID,
				"the URL holds a %% that is not followed by two hexadecimal digits");
			return NULL;
		}
		out[n] = (char)(high << 4 | low);
		if ((unsigned char)out[n] < 0x20 || out[n] == 0x7f) {
			err_set(err, ERR_INVALID, "the URL holds an escaped control character");
			return NULL;
		}
		if (!query && (out[n] == '/' || out[n] == '\\')) {
			err_set(err, ERR_INVALID,
				"the URL's path holds an escaped slash or backslash");
			return NULL;
		}
		n++;
		i += 2;
	}
	out[n] = '\0';
	if (!text_is_utf8(out, n)) {
		err_set(err, ERR_INVALID, "the URL is not UTF-8 when decoded");
		return NULL;
	}
	return out;
}

/* Segments that a file system or another server would read in a way of its own. */
static int path_check(const char *path, struct err *err)
{
	const char *segment = path + 1;

	if (!*segment)
		return 0;
	for (;;) {
		size_t size = strcspn(segment, "/");

		if (!size || (size == 1 && segment[0] == '.') ||
		    (size == 2 && !memcmp(segment, "..", 2)))
			return err_set(err, ERR_INVALID,
				       "the URL's path has an empty segment, \".\" or \"..\"");
		if (!segment[size])
			return 0;
		segment += size + 1;
	}
}

static int query_parse(const char *text, size_t size, struct arena *arena, struct target *target,
		       struct err *err)
{
	while (size) {
		const char *end = memchr(text, '&', size);
		const size_t part = end ? (size_t)(end - text) : size;
		const char *equals = memchr(text, '=', part);
		const size_t name_size = equals ? (size_t)(equals - text) : part;
		const char *name, *value;

		name = decode(text, name_size, true, arena, err);
		value = !name    ? NULL
			: equals ? decode(equals + 1, part - name_size - 1, true, arena, err)
				 : "";
		if (!value)
			return -(int)ERR_INVALID;
		if (!*name)
			return err_set(err, ERR_INVALID,
				       "the URL's query has a value without a name");
		if (target_query(target, name))
			return err_set(err, ERR_INVALID, "the URL gives \"%.60s\" twice", name);
		if (target->query_count == TARGET_QUERIES_MAX)
			return err_set(err, ERR_INVALID, "the URL's query has more than %d values",
				       TARGET_QUERIES_MAX);
		target->query[target->query_count].name = name;
		target->query[target->query_count++].value = value;
		text += part;
		size -= part;
		if (size) { /* the & */
			text++;
			size--;
		}
	}
	return 0;
}

int target_parse(const char *text, struct arena *arena, struct target *ret, struct err *err)
{
	const size_t size = strlen(text), path_size = strcspn(text, "?");

	memset(ret, 0, sizeof *ret);
	if (text[0] != '/')
		return err_set(err, ERR_INVALID, "the URL's path does not begin with /");
	ret->path = decode(text, path_size, false, arena, err);
	if (!ret->path || path_check(ret->path, err) < 0)
		return -(int)ERR_INVALID;
	if (path_size == size)
		return 0;
	return query_parse(text + path_size + 1, size - path_size - 1, arena, ret, err);
}

const char *target_query(const struct target *target, const char *name)
{
	for (size_t i = 0; i < target->query_count; i++)
		if (!strcmp(target->query[i].name, name))
			return target->query[i].value;
	return NULL;
}
