/* SPDX-License-Identifier: Apache-2.0 */
#include "base/conf.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/parse.h"

enum { KNOWN_LISTED = 12, KNOWN_TEXT_MAX = 300 };

const struct conf *conf_find(const struct conf *map, const char *key)
{
	if (!map || map->type != CONF_MAP)
		return NULL;
	for (size_t i = 0; i < map->count; i++)
		if (strcmp(map->items[i]->key, key) == 0)
			return map->items[i];
	return NULL;
}

int conf_error(struct err *err, const char *file, const struct conf *at, const char *format, ...)
{
	struct err story;
	va_list args;

	va_start(args, format);
	err_setv(&story, ERR_INVALID, format, args);
	va_end(args);
	return err_at(err, ERR_INVALID, file, at ? at->line : 0, at ? at->column : 0, "%s",
		      story.text);
}

static bool is_known(const char *key, const char *const *known, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(key, known[i]) == 0)
			return true;
	return false;
}

/* "; it has a, b and c"; of many it is said elsewhere. */
static void list_known(const char *const *known, size_t count, char out[KNOWN_TEXT_MAX])
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < count && count <= KNOWN_LISTED && used < KNOWN_TEXT_MAX; i++)
		used += (size_t)snprintf(out + used, KNOWN_TEXT_MAX - used, "%s%s",
					 !i               ? "; it has "
					 : i + 1 == count ? " and "
							  : ", ",
					 known[i]);
}

int conf_only(struct err *err, const char *file, const struct conf *map, const char *what,
	      const char *const *known, size_t count)
{
	char others[KNOWN_TEXT_MAX];
	const char *hint;

	for (size_t i = 0; i < map->count; i++) {
		const struct conf *item = map->items[i];

		if (is_known(item->key, known, count))
			continue;
		list_known(known, count, others);
		hint = spelling_hint(item->key, known, count);
		return err_at(err, ERR_INVALID, file, item->key_line, item->key_column,
			      hint ? "%s has no field \"%.100s\"; did you mean \"%s\"?"
				   : "%s has no field \"%.100s\"%s",
			      what, item->key, hint ? hint : others);
	}
	return 0;
}

/* What a value is, for messages: `a list`, `"abc"`. */
static const char *describe(const struct conf *c, char out[80])
{
	switch (c->type) {
	case CONF_NULL: return "left empty";
	case CONF_LIST: return "a list";
	case CONF_MAP: return "a map";
	case CONF_SCALAR: snprintf(out, 80, "\"%.60s\"", c->text); return out;
	}
	return "left empty";
}

/* "tasks must be a number, not a list" */
static int type_error(struct err *err, const char *file, const struct conf *c, const char *what,
		      const char *expected)
{
	char text[80];

	if (!c)
		return conf_error(err, file, NULL, "%s is missing", what);
	return conf_error(err, file, c, "%s must be %s, not %s", what, expected, describe(c, text));
}

int conf_int(struct err *err, const char *file, const struct conf *c, const char *what, int64_t min,
	     int64_t max, int64_t *ret)
{
	struct err why;

	if (!c || c->type != CONF_SCALAR)
		return type_error(err, file, c, what, "a whole number");
	if (c->quoted)
		return conf_error(
			err, file, c,
			"%s must be a whole number; \"%.60s\" is a text because of its quotes",
			what, c->text);
	if (parse_int(c->text, min, max, ret, &why) < 0)
		return conf_error(err, file, c, "%s: %s", what, why.text);
	return 0;
}

int conf_bool(struct err *err, const char *file, const struct conf *c, const char *what, bool *ret)
{
	bool yes = c && c->type == CONF_SCALAR && !c->quoted && strcmp(c->text, "true") == 0;
	bool no = c && c->type == CONF_SCALAR && !c->quoted && strcmp(c->text, "false") == 0;

	if (!yes && !no)
		return type_error(err, file, c, what, "true or false (without quotes)");
	*ret = yes;
	return 0;
}

int conf_text(struct err *err, const char *file, const struct conf *c, const char *what,
	      size_t max_bytes, const char **ret)
{
	size_t size;

	if (!c || c->type != CONF_SCALAR)
		return type_error(err, file, c, what, "a text");
	size = strlen(c->text);
	if (size > max_bytes)
		return conf_error(err, file, c, "%s has %zu bytes; the limit is %zu", what, size,
				  max_bytes);
	*ret = c->text;
	return 0;
}

int conf_duration(struct err *err, const char *file, const struct conf *c, const char *what,
		  int64_t *ret_ms)
{
	struct err why;

	if (!c || c->type != CONF_SCALAR)
		return type_error(err, file, c, what, "a duration such as 90s or 1h30m");
	if (parse_duration(c->text, ret_ms, &why) < 0)
		return conf_error(err, file, c, "%s: %s", what, why.text);
	return 0;
}

int conf_size_mib(struct err *err, const char *file, const struct conf *c, const char *what,
		  int64_t *ret_mib)
{
	struct err why;

	if (!c || c->type != CONF_SCALAR)
		return type_error(err, file, c, what, "a size such as 512MiB or 80GiB");
	if (parse_size_mib(c->text, ret_mib, &why) < 0)
		return conf_error(err, file, c, "%s: %s", what, why.text);
	return 0;
}
