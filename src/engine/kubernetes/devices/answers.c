/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: reads lines, each a question as bed/devices.go reads it, and says which devices the claims get on the node. test_devices.py
 * lays the two side by side.
 *
 *	{"node": {Node}, "slices": [ResourceSlice], "classes": [DeviceClass], "claims": [ResourceClaim], "taken": ["driver/pool/device"]}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/check.h"
#include "engine/kubernetes/devices/allocate.h"
#include "engine/kubernetes/predicates/placed.h"

struct taken {
	json_t *names;
};

static enum dra_state state_of(void *context, const struct dra_slice *slice,
			       const struct dra_device *device)
{
	const struct taken *taken = context;
	char key[512];
	size_t i;
	json_t *name;

	snprintf(key, sizeof(key), "%s/%s/%s", slice->driver, slice->pool, device->name);
	json_array_foreach(taken->names, i,
			   name) if (strcmp(json_string_value(name), key) == 0) return DRA_TAKEN;
	return DRA_FREE;
}

static char *text_of(const json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT);

	CHECK(text);
	return text;
}

static void inventory_fill(struct dra_inventory *inventory, const json_t *question)
{
	size_t i;
	json_t *item;
	struct err err = { 0 };

	json_array_foreach(json_object_get(question, "slices"), i, item)
	{
		char *text = text_of(item);
		struct dra_slice *slice;

		if (dra_slice_read(text, strlen(text), &slice, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
		dra_slice_set(inventory, slice);
		free(text);
	}
	json_array_foreach(json_object_get(question, "classes"), i, item)
	{
		char *text = text_of(item);
		struct dra_class *class;

		if (dra_class_read(text, strlen(text), &class, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
		dra_class_set(inventory, class);
		free(text);
	}
}

static json_t *answer_of(enum dra_verdict verdict, const struct dra_answer *answer,
			 struct dra_claim *const *claims, uint32_t count)
{
	static const char *const words[] = { "fits", "none", "bad" };
	json_t *given = json_array();

	for (uint32_t i = 0; verdict == DRA_FITS && i < count; i++)
		for (uint32_t j = 0; j < answer->allocations[i].count; j++) {
			const struct dra_choice_made *made = &answer->allocations[i].made[j];

			json_array_append_new(given,
					      json_sprintf("%s %s %s/%s/%s", claims[i]->name,
							   claims[i]
								   ->requests[made->request]
								   .choices[made->choice]
								   .name,
							   made->slice->driver, made->slice->pool,
							   made->device->name));
		}
	return json_pack("{s:s,s:o,s:s}", "answer", words[verdict], "given", given, "why",
			 answer->why);
}

static json_t *answer(json_t *question)
{
	struct dra_inventory inventory = { 0 };
	struct dra_claim *claims[DRA_CLAIMS_MAX];
	struct taken taken = { json_object_get(question, "taken") };
	char *node = text_of(json_object_get(question, "node"));
	struct placed_node *placed;
	struct dra_answer said;
	struct arena arena;
	struct err err = { 0 };
	uint32_t count = 0;
	size_t i;
	json_t *item, *out;
	enum dra_verdict verdict;

	arena_init(&arena, (size_t)256 << 20);
	inventory_fill(&inventory, question);
	CHECK(placed_node_read(node, strlen(node), &placed, &err) == 0);
	json_array_foreach(json_object_get(question, "claims"), i, item)
	{
		char *text = text_of(item);

		CHECK(count < DRA_CLAIMS_MAX);
		CHECK(dra_claim_read(text, strlen(text), &claims[count], &err) == 0);
		count++;
		free(text);
	}
	verdict = dra_allocate(
		&inventory,
		&(struct dra_question){ .node = placed_text(placed, placed->name),
					.placed = placed,
					.claims = (const struct dra_claim *const *)claims,
					.claim_count = count,
					.state = state_of,
					.context = &taken },
		&arena, &said);
	out = answer_of(verdict, &said, claims, count);
	while (count > 0)
		dra_claim_free(claims[--count]);
	dra_inventory_deinit(&inventory);
	arena_deinit(&arena);
	free(placed);
	free(node);
	return out;
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		json_t *question = json_loads(line, 0, NULL), *said;

		CHECK(question);
		said = answer(question);
		CHECK(said && json_dumpf(said, stdout, JSON_COMPACT) == 0);
		putchar('\n');
		json_decref(said);
		json_decref(question);
	}
	free(line);
	return 0;
}
