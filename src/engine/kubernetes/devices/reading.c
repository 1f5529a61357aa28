/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/devices/reading.h"

#include <stdlib.h>
#include <string.h>

#include "engine/kubernetes/predicates/block.h"
#include "engine/kubernetes/predicates/match.h"
#include "engine/kubernetes/reading.h"

void *grow(struct json_reader *r, struct arena *arena, struct grown *list, size_t size,
	   uint32_t most)
{
	if (list->count == most) {
		pull_fail(r, "a list is longer than Fairlead reads");
		return NULL;
	}
	if (list->count == list->room) {
		uint32_t room = list->room ? list->room * 2 : 4;
		void *items = arena_array(arena, room, size);

		if (list->count)
			memcpy(items, list->items, list->count * size);
		list->items = items;
		list->room = room;
	}
	return (char *)list->items + (size_t)list->count++ * size;
}

const char *dra_text(struct json_reader *r, struct arena *arena)
{
	struct json_slice slice;

	if (pull_peek(r) != PULL_STRING) {
		pull_skip(r);
		return "";
	}
	pull_string(r, &slice);
	return r->problem ? "" : pull_text(r, &slice, arena);
}

const char *dra_raw(struct json_reader *r, struct arena *arena)
{
	struct json_slice slice = value_skip(r);

	return r->problem ? "null" : arena_strndup(arena, slice.data, slice.size);
}

const char *dra_key(struct json_reader *r, struct arena *arena, const struct json_slice *key)
{
	return r->problem ? "" : pull_text(r, key, arena);
}

void dra_texts(struct json_reader *r, struct arena *arena, const char *const **ret, uint32_t *count,
	       uint32_t most)
{
	struct grown list = { 0 };

	if (!enter_array(r))
		return;
	while (pull_element(r)) {
		const char **item = grow(r, arena, &list, sizeof(*item), most);

		if (!item)
			return;
		*item = dra_text(r, arena);
	}
	*ret = list.items;
	*count = list.count;
}

/* --- where --------------------------------------------------------------------------------------------------------- */

/* A selector that is larger than a block is kept as one that fits no node. */
void dra_node_selector(struct json_reader *r, struct arena *arena, struct dra_where *where)
{
	struct json_slice text;
	struct json_reader own;
	struct block block;
	void *taken = NULL;
	at_t terms = 0;

	if (pull_peek(r) == PULL_NULL) {
		pull_null(r);
		return;
	}
	text = value_skip(r);
	if (r->problem)
		return;
	pull_init(&own, text.data, text.size);
	block_init(&block, text.size, sizeof(uint64_t));
	(void)read_node_selector(&own, &block, &terms);
	where->terms = 0;
	where->selector = "";
	if (block_take(&block, &own, &taken, NULL) == 0) {
		void *copy = arena_alloc(arena, block.size);

		memcpy(copy, taken, block.size);
		free(taken);
		where->selector = copy;
		where->terms = terms;
	} else {
		block_deinit(&block);
	}
}

bool dra_where_key(struct json_reader *r, struct arena *arena, const struct json_slice *key,
		   struct dra_where *where)
{
	if (pull_key_is(key, "nodeName")) {
		const char *name = dra_text(r, arena);

		where->node = *name ? name : NULL;
	} else if (pull_key_is(key, "allNodes")) {
		where->all = read_flag(r);
	} else if (pull_key_is(key, "nodeSelector")) {
		dra_node_selector(r, arena, where);
	} else {
		return false;
	}
	return true;
}

bool dra_where_has(const struct dra_where *where, const char *node,
		   const struct placed_node *placed)
{
	if (where->node)
		return strcmp(where->node, node) == 0;
	if (where->all)
		return true;
	return where->selector && where->terms && placed &&
	       node_terms_match(where->selector, where->terms, placed, true);
}

/* --- expressions and the rest ---------------------------------------------------------------------------------------- */

void dra_split(struct arena *arena, const char *name, const char **ret_domain, const char **ret_id)
{
	const char *slash = strchr(name, '/');

	*ret_domain = slash ? arena_strndup(arena, name, (size_t)(slash - name)) : NULL;
	*ret_id = slash ? slash + 1 : name;
}

static void read_selector_of(struct json_reader *r, struct arena *arena, struct dra_selector *ret)
{
	struct json_slice key;
	struct err err = { 0 };

	ret->problem = "a selector that is no CEL expression";
	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		const char *text;

		if (!pull_key_is(&key, "cel") || pull_peek(r) != PULL_OBJECT) {
			pull_skip(r);
			continue;
		}
		pull_object(r);
		while (pull_member(r, &key)) {
			if (!pull_key_is(&key, "expression")) {
				pull_skip(r);
				continue;
			}
			text = dra_text(r, arena);
			if (r->problem)
				return;
			ret->problem = NULL;
			if (cel_compile(arena, text, strlen(text), &ret->program, &err) < 0)
				ret->problem = arena_printf(arena, "expression \"%.60s\": %s", text,
							    err.text);
		}
	}
}

void dra_selectors(struct json_reader *r, struct arena *arena, const struct dra_selector **ret,
		   uint32_t *count)
{
	struct grown list = { 0 };

	if (!enter_array(r))
		return;
	while (pull_element(r)) {
		struct dra_selector *item = grow(r, arena, &list, sizeof(*item), DRA_REQUESTS_MAX);

		if (!item)
			return;
		read_selector_of(r, arena, item);
	}
	*ret = list.items;
	*count = list.count;
}

void dra_configs(struct json_reader *r, struct arena *arena, const struct dra_config **ret,
		 uint32_t *count, const char **problem)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_array(r))
		return;
	while (pull_element(r)) {
		struct dra_config *item = grow(r, arena, &list, sizeof(*item), DRA_CONFIGS_MAX);

		if (!item || !enter_object(r))
			return;
		while (pull_member(r, &key)) {
			if (pull_key_is(&key, "opaque") && pull_peek(r) == PULL_OBJECT)
				item->opaque = dra_raw(r, arena);
			else if (pull_key_is(&key, "requests"))
				dra_texts(r, arena, &item->requests, &item->request_count,
					  DRA_REQUESTS_MAX * DRA_CHOICES_MAX);
			else
				pull_skip(r);
		}
		if (!item->opaque)
			*problem = "a configuration that is not opaque";
	}
	*ret = list.items;
	*count = list.count;
}

int dra_finish(struct json_reader *r, size_t size, const char *what, const char *name,
	       struct err *err)
{
	if (size > DRA_OBJECT_MAX)
		return err_set(err, ERR_INVALID, "a %s of %zu bytes; the most is %d", what, size,
			       DRA_OBJECT_MAX);
	if (pull_finish(r, err) < 0)
		return err ? -(int)err->code : -(int)ERR_INVALID;
	if (!name || !*name)
		return err_set(err, ERR_INVALID, "a %s without a name", what);
	return 0;
}
