/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/overlay.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/conf.h"

/* Lists whose entries are told apart by something else than their name. */
static const struct {
	const char *list, *key;
} keys[] = {
	{ "volumeMounts", "mountPath" },
	{ "ports", "containerPort" },
	{ "hostAliases", "ip" },
};

static const char *key_of(const char *list)
{
	for (size_t i = 0; list && i < ARRAY_SIZE(keys); i++)
		if (strcmp(keys[i].list, list) == 0)
			return keys[i].key;
	return "name";
}

static const char *key_text(const struct conf *entry, const char *key)
{
	const struct conf *found = entry->type == CONF_MAP ? conf_find(entry, key) : NULL;

	return found && found->type == CONF_SCALAR ? found->text : NULL;
}

/* The place in base of what is the same as this entry; base's count = nowhere. */
static size_t entry_find(const struct conf *base, const struct conf *entry, const char *key)
{
	const char *wanted = entry->type == CONF_SCALAR ? entry->text : key_text(entry, key);

	for (size_t i = 0; wanted && i < base->count; i++) {
		const struct conf *item = base->items[i];
		const char *text = item->type == CONF_SCALAR ? item->text : key_text(item, key);

		if (item->type == entry->type && text && strcmp(text, wanted) == 0)
			return i;
	}
	return base->count;
}

static size_t member_find(const struct conf *base, const char *key)
{
	for (size_t i = 0; i < base->count; i++)
		if (strcmp(base->items[i]->key, key) == 0)
			return i;
	return base->count;
}

/* As deep as CONF_DEPTH_MAX. Both stay as they were; what comes of them shares their values. */
static struct conf *merge(const struct conf *base, const struct conf *over, struct arena *arena)
{
	struct conf *ret = arena_new(arena, struct conf);
	const char *key = key_of(over->key);

	*ret = *over;
	if (base->type != over->type || over->type == CONF_SCALAR || over->type == CONF_NULL)
		return ret;
	ret->items = arena_new_array(arena, struct conf *, base->count + over->count + 1);
	ret->count = base->count;
	if (base->count)
		memcpy(ret->items, base->items, base->count * sizeof(*ret->items));
	for (size_t i = 0; i < over->count; i++) {
		struct conf *item = over->items[i];
		size_t at = over->type == CONF_MAP ? member_find(ret, item->key)
						   : entry_find(ret, item, key);

		if (at < ret->count)
			ret->items[at] = merge(ret->items[at], item, arena);
		else
			ret->items[ret->count++] = item;
	}
	return ret;
}

static void value_write(const struct conf *c, struct buf *out)
{
	if (c->type == CONF_NULL) {
		buf_adds(out, "null");
		return;
	}
	if (c->type == CONF_SCALAR) {
		if (c->quoted)
			buf_add_json(out, c->text, strlen(c->text));
		else
			buf_adds(out, c->text);
		return;
	}
	buf_addc(out, c->type == CONF_MAP ? '{' : '[');
	for (size_t i = 0; i < c->count; i++) {
		if (i)
			buf_addc(out, ',');
		if (c->type == CONF_MAP) {
			buf_add_json(out, c->items[i]->key, strlen(c->items[i]->key));
			buf_addc(out, ':');
		}
		value_write(c->items[i], out);
	}
	buf_addc(out, c->type == CONF_MAP ? '}' : ']');
}

static int read_json(const char *what, const char *text, size_t size, struct arena *arena,
		     const struct conf **ret, struct err *err)
{
	struct conf **documents;
	size_t count;
	int rc = conf_parse(what, text, size, arena, &documents, &count, err);

	if (rc < 0)
		return rc;
	if (count != 1 || documents[0]->type != CONF_MAP)
		return err_set(err, ERR_CORRUPT, "%s is no map", what);
	*ret = documents[0];
	return 0;
}

int overlay_merge(struct buf *pod, const char *overlay, struct arena *arena, struct err *err)
{
	const struct conf *base, *over;
	int rc = read_json("the job's pod", pod->data, pod->size, arena, &base, err);

	if (rc >= 0)
		rc = read_json("what the job adds to its pods", overlay, strlen(overlay), arena,
			       &over, err);
	if (rc < 0)
		return rc;
	buf_clear(pod);
	value_write(merge(base, over, arena), pod);
	return 0;
}
