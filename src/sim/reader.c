/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "core/model/facts.h"
#include "sim/later.h"

int reader_map(struct reader *r, const struct conf *c, const char *kind, const char *const *known,
	       size_t count)
{
	int rc;

	if (c->type != CONF_MAP)
		return conf_error(r->err, r->file, c, "%s must be a map such as {name: a}", kind);
	rc = later_check(r->file, c, kind, r->err);
	if (rc < 0)
		return rc;
	return conf_only(r->err, r->file, c, kind, known, count);
}

int reader_list(struct reader *r, const struct conf *c, const char *what, size_t limit)
{
	if (c->type != CONF_LIST)
		return conf_error(r->err, r->file, c, "%s must be a list", what);
	if (c->count > limit)
		return conf_error(r->err, r->file, c, "%s has %zu entries; the limit is %zu", what,
				  c->count, limit);
	return 0;
}

int reader_int(struct reader *r, const struct conf *map, const char *key, int64_t min, int64_t max,
	       int64_t *ret)
{
	const struct conf *c = conf_find(map, key);

	return c ? conf_int(r->err, r->file, c, key, min, max, ret) : 0;
}

int reader_u32(struct reader *r, const struct conf *map, const char *key, uint32_t min,
	       uint32_t max, uint32_t *ret)
{
	int64_t value = *ret;
	int rc = reader_int(r, map, key, min, max, &value);

	if (rc == 0)
		*ret = (uint32_t)value;
	return rc;
}

int reader_bool(struct reader *r, const struct conf *map, const char *key, bool *ret)
{
	const struct conf *c = conf_find(map, key);

	return c ? conf_bool(r->err, r->file, c, key, ret) : 0;
}

int reader_text(struct reader *r, const struct conf *map, const char *key, const char **ret)
{
	const struct conf *c = conf_find(map, key);

	return c ? conf_text(r->err, r->file, c, key, EVENT_TEXT_MAX, ret) : 0;
}

int reader_size(struct reader *r, const struct conf *map, const char *key, int64_t *ret_mib)
{
	const struct conf *c = conf_find(map, key);

	return c ? conf_size_mib(r->err, r->file, c, key, ret_mib) : 0;
}

int reader_duration(struct reader *r, const struct conf *map, const char *key, const char *word,
		    int64_t value, int64_t *ret)
{
	const struct conf *c = conf_find(map, key);

	if (!c)
		return 0;
	if (word && c->type == CONF_SCALAR && strcmp(c->text, word) == 0) {
		*ret = value;
		return 0;
	}
	return conf_duration(r->err, r->file, c, key, ret);
}

int reader_range(struct reader *r, const struct conf *c, const char *what, struct names *ret)
{
	struct err why;

	if (c->type != CONF_SCALAR)
		return conf_error(r->err, r->file, c, "%s must be a name such as n0 or \"n[0-3]\"",
				  what);
	if (parse_name_range(c->text, r->arena, SCENARIO_RANGE_MAX, &ret->at, &ret->count, &why) <
	    0)
		return conf_error(r->err, r->file, c, "%s: %s", what, why.text);
	return 0;
}

int reader_ranges(struct reader *r, const struct conf *c, const char *what, struct names *ret)
{
	struct names all = { 0 }, part;
	size_t total = 0, room = 16;
	int rc;

	if (c->type != CONF_LIST)
		return reader_range(r, c, what, ret);
	all.at = arena_new_array(r->arena, const char *, room);
	for (size_t i = 0; i < c->count; i++) {
		rc = reader_range(r, c->items[i], what, &part);
		if (rc < 0)
			return rc;
		total = all.count + part.count;
		if (total > SCENARIO_RANGE_MAX)
			return conf_error(r->err, r->file, c, "%s are more than the limit of %d",
					  what, SCENARIO_RANGE_MAX);
		if (total > room) {
			const char **old = all.at;

			room = total * 2;
			all.at = arena_new_array(r->arena, const char *, room);
			memcpy(all.at, old, all.count * sizeof(*old));
		}
		memcpy(all.at + all.count, part.at, part.count * sizeof(*part.at));
		all.count = total;
	}
	*ret = all;
	return 0;
}

int reader_count(struct reader *r, const struct conf *list, const char *what, size_t limit,
		 size_t *ret)
{
	size_t total = 0;
	int rc = reader_list(r, list, what, limit);

	for (size_t i = 0; i < list->count && rc == 0; i++) {
		const struct conf *name = conf_find(list->items[i], "name");
		struct names names = { .count = 1 };

		if (name)
			rc = reader_range(r, name, "name", &names);
		total += names.count;
		if (rc == 0 && total > limit)
			return conf_error(r->err, r->file, list, "there are more than %zu %s",
					  limit, what);
	}
	*ret = total;
	return rc;
}

int reader_share(struct reader *r, const struct conf *c, const char *what, int64_t *ret)
{
	static const char digits[] = "0123456789";
	int64_t whole = 0, part = 0, scale = 1;
	const char *p;
	size_t size;

	if (c->type != CONF_SCALAR || c->quoted)
		return conf_error(r->err, r->file, c,
				  "%s must be a number of GPUs such as 4 or 0.5", what);
	p = c->text;
	size = strspn(p, digits);
	if (size < 1 || size > 7)
		goto bad;
	for (; size; size--)
		whole = whole * 10 + (*p++ - '0');
	if (*p == '.') {
		size = strspn(++p, digits);
		if (size < 1 || size > 3)
			goto bad;
		for (; size; size--) {
			part = part * 10 + (*p++ - '0');
			scale *= 10;
		}
	}
	if (*p)
		goto bad;
	*ret = whole * GPU_SHARE + part * (GPU_SHARE / scale);
	return 0;
bad:
	return conf_error(
		r->err, r->file, c,
		"%s \"%.40s\" is not a number of GPUs; write for example 4 or 0.5 (three decimals at most)",
		what, c->text);
}

int reader_unknown(struct reader *r, const struct conf *c, const char *what, const char *name,
		   const char *const *candidates, size_t count)
{
	const char *hint = spelling_hint(name, candidates, count);

	if (hint)
		return conf_error(r->err, r->file, c,
				  "there is no %s \"%.63s\"; did you mean \"%s\"?", what, name,
				  hint);
	return conf_error(r->err, r->file, c, "there is no %s \"%.63s\"", what, name);
}

static int compare_names(const void *a, const void *b)
{
	const char *const *left = a, *const *right = b;

	return strcmp(*left, *right);
}

const char *reader_twice(struct reader *r, const char *const *names, size_t count)
{
	const char **sorted = arena_new_array(r->arena, const char *, count + 1);

	memcpy(sorted, names, count * sizeof(*names));
	qsort(sorted, count, sizeof(*sorted), compare_names);
	for (size_t i = 1; i < count; i++)
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			return sorted[i];
	return NULL;
}
