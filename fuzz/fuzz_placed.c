/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object from the API server, read as each kind that a pod's nodes depend on. What is taken has as many labels as jansson finds, and
 * can be asked about.
 */
#include "fuzz/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "engine/kubernetes/predicates/match.h"
#include "engine/kubernetes/predicates/predicates.h"

static size_t label_count(const void *block, at_t labels)
{
	size_t count = 0;

	PLACED_EACH(block, placed_label, label, labels)
	{
		CHECK(strlen(placed_text(block, label->key)) <= PLACED_MAX);
		count++;
	}
	return count;
}

/* jansson refuses more: doubled keys, numbers past its types. What it takes has as many labels. */
static void check_labels(const uint8_t *data, size_t size, size_t count)
{
	json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	const json_t *labels = json_object_get(json_object_get(json, "metadata"), "labels");

	CHECK(!json || json_object_size(labels) == count);
	json_decref(json);
}

/* A pod that asks, beside itself as one that runs, on a node that is the same object. */
static void ask(struct placed_pod *pod, const uint8_t *data, size_t size)
{
	struct predicates known = { 0 };
	struct placed_pod *other = NULL;
	struct placed_node *node = NULL;
	struct feasible feasible;
	struct arena arena;
	struct err err;

	arena_init(&arena, 64 << 20);
	if (placed_node_read((const char *)data, size, &node, &err) == 0)
		predicates_node_set(&known, node);
	if (placed_pod_read((const char *)data, size, &other, &err) == 0)
		predicates_pod_set(&known, other);
	predicates_check(&known, pod, NULL, &arena, &feasible);
	CHECK(feasible.fit <= feasible.nodes && feasible.nodes <= 1);
	predicates_deinit(&known);
	arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct placed_namespace *namespace = NULL;
	struct placed_volume *volume = NULL;
	struct placed_claim *claim = NULL;
	struct placed_budget *budget = NULL;
	struct placed_pod *pod = NULL;
	struct err err = { 0 };
	int rc = placed_pod_read(text, size, &pod, &err);

	fuzz_accepted = rc == 0;
	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
	} else {
		check_labels(data, size, label_count(pod, pod->labels));
		if (placed_budget_read(text, size, &budget, &err) == 0) {
			if (!budget->pods.given)
				CHECK(!selector_matches(budget, &budget->pods, pod, pod->labels));
			free(budget);
		}
		ask(pod, data, size);
		free(pod);
	}
	if (placed_namespace_read(text, size, &namespace, &err) == 0)
		free(namespace);
	if (placed_claim_read(text, size, &claim, &err) == 0)
		free(claim);
	if (placed_volume_read(text, size, &volume, &err) == 0)
		free(volume);
	return 0;
}
