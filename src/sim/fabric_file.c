/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/fabric_file.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/fabric/describe.h"
#include "core/fabric/known.h"

/* A scalar as it stands; the parts of a list with spaces between them. */
static int value_text(const char *file, const struct conf *c, struct arena *arena, const char **ret,
		      struct err *err)
{
	const char *text = "";

	if (c->type == CONF_SCALAR) {
		*ret = c->text;
		return 0;
	}
	if (c->type != CONF_LIST)
		return conf_error(err, file, c, "%s must be a value or a list of values", c->key);
	for (size_t i = 0; i < c->count; i++) {
		if (c->items[i]->type != CONF_SCALAR)
			return conf_error(err, file, c->items[i],
					  "%s must be a value or a list of values", c->key);
		text = arena_printf(arena, "%s%s%s", text, i ? " " : "", c->items[i]->text);
	}
	*ret = text;
	return 0;
}

/* The place of the value, and what was said without one. */
static int complain(const char *file, const struct conf *c, struct err *err)
{
	struct err why = *err;

	return conf_error(err, file, c, "%s", why.text);
}

static int host_keys_read(const char *file, const struct conf *map, struct arena *arena,
			  struct fabric_host *host, uint32_t *said, struct err *err)
{
	struct err why = { 0 };

	if (!map)
		return 0;
	if (map->type != CONF_MAP)
		return conf_error(err, file, map, "what a host has for its fabric must be a map");
	for (size_t i = 0; i < map->count; i++) {
		const struct conf *c = map->items[i];
		const char *text = "";

		if (strcmp(c->key, "gpus") == 0)
			return conf_error(
				err, file, c,
				"the number of GPUs is a key of the node, not of its fabric");
		if (value_text(file, c, arena, &text, err) < 0)
			return -(int)ERR_INVALID;
		if (fabric_host_put(host, c->key, text, &why) < 0) {
			*err = why;
			return complain(file, c, err);
		}
		*said |= UINT32_C(1) << fabric_host_key(c->key);
	}
	return 0;
}

static int fabric_keys(const char *file, const struct conf *fabric, struct err *err)
{
	static const char *const known[] = { "hosts", "levels" };

	if (fabric->type != CONF_MAP)
		return conf_error(err, file, fabric, "fabric must be a map of hosts and levels");
	return conf_only(err, file, fabric, "fabric", known, ARRAY_SIZE(known));
}

int fabric_file_host(const char *file, const struct conf *fabric, const struct conf *own,
		     struct arena *arena, struct fabric_host *host, uint32_t *ret_said,
		     struct err *err)
{
	int rc = fabric ? fabric_keys(file, fabric, err) : 0;
	const struct fabric one = { .host_count = 1 };
	struct fabric checked;
	uint32_t said = 0;

	if (rc == 0 && fabric)
		rc = host_keys_read(file, conf_find(fabric, "hosts"), arena, host, &said, err);
	if (rc == 0)
		rc = host_keys_read(file, own, arena, host, &said, err);
	checked = one;
	checked.host[0] = *host;
	if (rc == 0 && fabric_check(&checked, err) < 0)
		rc = own || fabric ? complain(file, own ? own : fabric, err) : -(int)ERR_INVALID;
	if (rc == 0 && ret_said)
		*ret_said = said;
	return rc;
}

static int level_read(const char *file, const struct conf *map, struct fabric_level *level,
		      struct err *err)
{
	struct err why = { 0 };

	if (map->type != CONF_MAP)
		return conf_error(err, file, map, "the figures of level \"%s\" must be a map",
				  map->key);
	for (size_t i = 0; i < map->count; i++) {
		const struct conf *c = map->items[i];

		if (c->type != CONF_SCALAR)
			return conf_error(err, file, c, "%s must be a value", c->key);
		if (fabric_level_put(level, c->key, c->text, &why) < 0) {
			*err = why;
			return complain(file, c, err);
		}
	}
	return 0;
}

int fabric_file_levels(const char *file, const struct conf *fabric, const char *const *names,
		       uint32_t count, struct fabric_draft *draft, struct err *err)
{
	const struct conf *levels;
	int rc = fabric_keys(file, fabric, err);

	draft->fabric.level_count = count;
	levels = rc == 0 ? conf_find(fabric, "levels") : NULL;
	if (!levels)
		return rc;
	if (levels->type != CONF_MAP)
		return conf_error(err, file, levels, "levels of the fabric must be a map by level");
	for (size_t i = 0; i < levels->count && rc == 0; i++) {
		const struct conf *c = levels->items[i];
		uint32_t at = 0;

		while (at < count && strcmp(names[at], c->key) != 0)
			at++;
		if (at == count && strcmp(c->key, "cluster") != 0)
			return conf_error(
				err, file, c,
				"there is no level \"%.63s\": figures are for the levels named in `levels`, or for `cluster`",
				c->key);
		rc = level_read(file, c, &draft->fabric.level[at == count ? 0 : at + 1], err);
		if (rc == 0 && fabric_check(&draft->fabric, err) < 0)
			rc = complain(file, c, err);
	}
	return rc;
}

int fabric_draft_make(struct fabric_draft *draft, const struct fabric_host *host, const char *model,
		      uint32_t *ret, struct err *err)
{
	struct fabric_host bare = *host;
	uint32_t first = 0;
	uint16_t row;

	memset(bare.island, 0, sizeof(bare.island));
	/* The number of the model's first make stands for its name: makes of another model are never the same. */
	while (first < draft->fabric.host_count && strcmp(draft->models[first], model) != 0)
		first++;
	bare.model.v = first + 1;
	if (fabric_host_add(&draft->fabric, &bare, &row) == FABRIC_FULL)
		return err_set(
			err, ERR_INVALID,
			"the cluster has more than %d makes of hosts: describe alike those that differ little",
			FABRIC_HOSTS_MAX);
	draft->models[row] = model;
	*ret = row + 1u;
	return 0;
}

void fabric_draft_event(const struct fabric_draft *draft, struct arena *arena,
			struct event_fabric_set *ret)
{
	uint32_t levels = draft->fabric.level_count + 1, makes = draft->fabric.host_count;
	int64_t *level = arena_new_array(arena, int64_t, (size_t)levels *FABRIC_LEVEL_FIELDS),
		*make = arena_new_array(arena, int64_t, (size_t)makes *MAKE_FIELDS + 1);
	const char *models = "";

	for (uint32_t l = 0; l < levels; l++)
		fabric_level_numbers(&draft->fabric.level[l],
				     level + (size_t)l * FABRIC_LEVEL_FIELDS);
	for (uint32_t i = 0; i < makes; i++) {
		fabric_make_numbers(&draft->fabric.host[i], make + (size_t)i * MAKE_FIELDS);
		models = arena_printf(arena, "%s%s%s", models, i ? "," : "", draft->models[i]);
	}
	ret->levels = level;
	ret->levels_count = levels * FABRIC_LEVEL_FIELDS;
	ret->models = models;
	ret->makes = make;
	ret->makes_count = makes * MAKE_FIELDS;
}
