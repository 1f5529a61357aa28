/* SPDX-License-Identifier: Apache-2.0 */
#include "base/conf_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"

enum { FEW_KEYS = 32 };

void conf_build_init(struct conf_build *build, const char *file, struct arena *arena,
		     struct err *err)
{
	build->file = file;
	build->arena = arena;
	build->err = err;
	build->open = NULL;
	build->open_count = build->open_room = 0;
	build->nodes = 0;
	build->depth = 0;
}

void conf_build_deinit(struct conf_build *build)
{
	free(build->open);
	build->open = NULL;
}

int conf_build_error(struct conf_build *build, struct conf_place at, enum err_code code,
		     const char *format, ...)
{
	struct err story;
	va_list args;

	va_start(args, format);
	err_setv(&story, code, format, args);
	va_end(args);
	return err_at(build->err, code, build->file, at.line, at.column, "%s", story.text);
}

static struct conf_level *level_of(struct conf_build *build)
{
	return build->depth ? &build->levels[build->depth - 1] : NULL;
}

bool conf_build_wants_key(const struct conf_build *build)
{
	const struct conf_level *level = build->depth ? &build->levels[build->depth - 1] : NULL;

	return level && level->conf->type == CONF_MAP && !level->key;
}

static int text_check(struct conf_build *build, struct conf_place at, const char *text, size_t size)
{
	if (memchr(text, '\0', size))
		return conf_build_error(build, at, ERR_INVALID,
					"a text can't have a NUL character in it");
	return 0;
}

int conf_build_key(struct conf_build *build, struct conf_place at, const char *text, size_t size)
{
	struct conf_level *level = level_of(build);
	int rc = text_check(build, at, text, size);

	CHECK(level && level->conf->type == CONF_MAP);
	if (rc < 0)
		return rc;
	level->key = arena_strndup(build->arena, text, size);
	level->key_place = at;
	return 0;
}

static void push(struct conf_build *build, struct conf *conf)
{
	if (build->open_count == build->open_room) {
		build->open_room = build->open_room ? build->open_room * 2 : 64;
		build->open = realloc(build->open, build->open_room * sizeof(struct conf *));
		CHECK(build->open != NULL);
	}
	build->open[build->open_count++] = conf;
}

/* A new value at its place in the tree; NULL with the error set past the limit. */
static struct conf *add_value(struct conf_build *build, struct conf_place at, enum conf_type type)
{
	struct conf_level *level = level_of(build);
	struct conf *conf;

	if (build->nodes == CONF_NODES_MAX) {
		conf_build_error(build, at, ERR_TOO_LARGE,
				 "there are more than %d values in this text", CONF_NODES_MAX);
		return NULL;
	}
	build->nodes++;
	conf = arena_new(build->arena, struct conf);
	conf->type = type;
	conf->line = at.line;
	conf->column = at.column;
	if (level && level->conf->type == CONF_MAP) {
		CHECK(level->key != NULL);
		conf->key = level->key;
		conf->key_line = level->key_place.line;
		conf->key_column = level->key_place.column;
		level->key = NULL;
	}
	push(build, conf);
	return conf;
}

int conf_build_scalar(struct conf_build *build, struct conf_place at, const char *text, size_t size,
		      bool quoted)
{
	bool is_null = !quoted && (size == 0 || (size == 1 && text[0] == '~') ||
				   (size == 4 && memcmp(text, "null", 4) == 0));
	int rc = text_check(build, at, text, size);
	struct conf *conf;

	if (rc < 0)
		return rc;
	conf = add_value(build, at, is_null ? CONF_NULL : CONF_SCALAR);
	if (!conf)
		return -(int)ERR_TOO_LARGE;
	conf->quoted = quoted;
	if (!is_null)
		conf->text = arena_strndup(build->arena, text, size);
	return 0;
}

int conf_build_begin(struct conf_build *build, struct conf_place at, enum conf_type type)
{
	struct conf *conf;

	if (build->depth == CONF_DEPTH_MAX)
		return conf_build_error(build, at, ERR_TOO_LARGE,
					"lists and maps are nested more than %d deep",
					CONF_DEPTH_MAX);
	conf = add_value(build, at, type);
	if (!conf)
		return -(int)ERR_TOO_LARGE;
	build->levels[build->depth++] =
		(struct conf_level){ .conf = conf, .first = build->open_count };
	return 0;
}

/* By key, and where keys are equal as written. */
static int compare_keys(const void *a, const void *b)
{
	const struct conf *left = *(struct conf *const *)a, *right = *(struct conf *const *)b;
	int order = strcmp(left->key, right->key);

	if (order)
		return order;
	if (left->key_line != right->key_line)
		return left->key_line < right->key_line ? -1 : 1;
	return left->key_column < right->key_column ? -1 : left->key_column > right->key_column;
}

/* The first key that stands a second time, in the order written; *ret_first: where it stood before. */
static const struct conf *duplicate_sorted(struct conf **items, size_t count,
					   const struct conf **ret_first)
{
	const struct conf *again = NULL;
	struct conf **sorted = malloc(count * sizeof(struct conf *));

	CHECK(sorted != NULL);
	memcpy(sorted, items, count * sizeof(struct conf *));
	qsort(sorted, count, sizeof(struct conf *), compare_keys);
	for (size_t i = 1; i < count; i++) {
		const struct conf *next = sorted[i];

		if (strcmp(sorted[i - 1]->key, next->key) != 0)
			continue;
		if (!again || next->key_line < again->key_line ||
		    (next->key_line == again->key_line && next->key_column < again->key_column)) {
			again = next;
			*ret_first = sorted[i - 1];
		}
	}
	free(sorted);
	return again;
}

/* The same for the few keys that most maps have: most pairs differ in their first byte. */
static const struct conf *duplicate_of_few(struct conf **items, size_t count,
					   const struct conf **ret_first)
{
	for (size_t i = 1; i < count; i++)
		for (size_t j = i; j-- > 0;)
			if (items[j]->key[0] == items[i]->key[0] &&
			    strcmp(items[j]->key, items[i]->key) == 0) {
				*ret_first = items[j];
				return items[i];
			}
	return NULL;
}

static int refuse_duplicates(struct conf_build *build, struct conf **items, size_t count)
{
	const struct conf *first = NULL, *again = count > FEW_KEYS
							  ? duplicate_sorted(items, count, &first)
							  : duplicate_of_few(items, count, &first);

	if (!again)
		return 0;
	return conf_build_error(
		build, (struct conf_place){ again->key_line, again->key_column }, ERR_INVALID,
		"the key \"%.100s\" is here a second time; it stands at line %d already",
		again->key, first->key_line);
}

int conf_build_end(struct conf_build *build)
{
	struct conf_level *level = level_of(build);
	struct conf *conf;
	size_t first;

	CHECK(level && !level->key);
	conf = level->conf;
	first = level->first;
	conf->count = build->open_count - first;
	if (conf->count) {
		conf->items = arena_new_array(build->arena, struct conf *, conf->count);
		memcpy(conf->items, build->open + first, conf->count * sizeof(struct conf *));
	}
	build->open_count = first;
	build->depth--;
	return conf->type == CONF_MAP ? refuse_duplicates(build, conf->items, conf->count) : 0;
}

void conf_build_finish(struct conf_build *build, struct conf ***ret_documents, size_t *ret_count)
{
	CHECK(!build->depth);
	*ret_count = build->open_count;
	*ret_documents = arena_new_array(build->arena, struct conf *, build->open_count);
	if (build->open_count)
		memcpy(*ret_documents, build->open, build->open_count * sizeof(struct conf *));
}
