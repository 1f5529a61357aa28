/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Fairlead says of expressions about devices. Reads lines and writes lines as the bed's cel-answers does (bed/cel.go), so that
 * test_cel.py can lay the two side by side.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/check.h"
#include "engine/kubernetes/cel/cel.h"

enum { ROOM = 64 };

static const char *const words[] = {
	[CEL_NO] = "no", [CEL_YES] = "yes", [CEL_FAILED] = "failed", [CEL_REFUSED] = "refused"
};

struct device {
	struct cel_device device;
	struct cel_attribute attributes[ROOM];
	struct cel_capacity capacities[ROOM];
};

static void split(struct arena *arena, const char *name, const char **ret_domain,
		  const char **ret_id)
{
	const char *slash = strchr(name, '/');

	*ret_domain = slash ? arena_strndup(arena, name, (size_t)(slash - name)) : NULL;
	*ret_id = slash ? slash + 1 : name;
}

static void read_attribute(const json_t *from, struct cel_attribute *a)
{
	const json_t *value;

	if ((value = json_object_get(from, "bool"))) {
		a->kind = CEL_BOOL;
		a->truth = json_is_true(value);
	} else if ((value = json_object_get(from, "int"))) {
		a->kind = CEL_INT;
		a->number = json_integer_value(value);
	} else if ((value = json_object_get(from, "version"))) {
		a->kind = CEL_VERSION;
		a->text = json_string_value(value);
	} else {
		a->kind = CEL_STRING;
		a->text = json_string_value(json_object_get(from, "string"));
		CHECK(a->text);
	}
}

static struct device *read_device(struct arena *arena, json_t *from)
{
	struct device *d = arena_new(arena, struct device);
	const char *name;
	json_t *item;

	d->device.driver = json_string_value(json_object_get(from, "driver"));
	d->device.many_allocations =
		json_is_true(json_object_get(from, "allowMultipleAllocations"));
	d->device.attributes = d->attributes;
	d->device.capacities = d->capacities;
	json_object_foreach(json_object_get(from, "attributes"), name, item)
	{
		struct cel_attribute *a = &d->attributes[d->device.attribute_count++];

		CHECK(d->device.attribute_count < ROOM);
		split(arena, name, &a->domain, &a->id);
		read_attribute(item, a);
	}
	json_object_foreach(json_object_get(from, "capacity"), name, item)
	{
		struct cel_capacity *c = &d->capacities[d->device.capacity_count++];

		CHECK(d->device.capacity_count < ROOM);
		split(arena, name, &c->domain, &c->id);
		c->quantity = json_string_value(json_object_get(item, "value"));
	}
	return d;
}

static json_t *answer(struct arena *arena, json_t *question)
{
	const char *text = json_string_value(json_object_get(question, "expression")), *why = "";
	const struct cel_program *program;
	json_t *answers = json_array(), *device;
	struct err err = { 0 };
	size_t i;

	if (cel_compile(arena, text, strlen(text), &program, &err) < 0) {
		json_array_append_new(
			answers, json_string(err.code == ERR_UNSUPPORTED ? "refused" : "invalid"));
		return json_pack("{s:o,s:s}", "answers", answers, "why", err.text);
	}
	json_array_foreach(json_object_get(question, "devices"), i, device) json_array_append_new(
		answers,
		json_string(
			words[cel_ask(program, &read_device(arena, device)->device, arena, &why)]));
	return json_pack("{s:o,s:s}", "answers", answers, "why", why);
}

int main(void)
{
	struct arena arena;
	char *line = NULL;
	size_t room = 0;

	arena_init(&arena, (size_t)256 << 20);
	while (getline(&line, &room, stdin) > 0) {
		json_t *question = json_loads(line, 0, NULL), *said;

		CHECK(question);
		said = answer(&arena, question);
		CHECK(said && json_dumpf(said, stdout, JSON_COMPACT) == 0);
		putchar('\n');
		json_decref(said);
		json_decref(question);
		arena_reset(&arena);
	}
	free(line);
	arena_deinit(&arena);
	return 0;
}
