/* SPDX-License-Identifier: Apache-2.0 */
/* Reads nodes, and the namespaces and volumes that pods name. */
#include <string.h>

#include "engine/kubernetes/predicates/block.h"
#include "engine/kubernetes/reading.h"

/* What every object says of itself. */
struct named {
	at_t namespace, name, labels, selected;
	uint32_t size; /* of the whole block */
	bool deleting, bound; /* bound: the mark on a claim whose binding is complete */
};

static void read_marks(struct json_reader *r, struct block *block, struct named *ret)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		ret->bound |= pull_key_is(&key, "pv.kubernetes.io/bind-completed");
		if (pull_key_is(&key, "volume.kubernetes.io/selected-node"))
			ret->selected = read_text(r, block);
		else
			pull_skip(r);
	}
}

static void read_metadata(struct json_reader *r, struct block *block, struct named *ret)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "name")) {
			ret->name = read_text(r, block);
		} else if (pull_key_is(&key, "namespace")) {
			ret->namespace = read_text(r, block);
		} else if (pull_key_is(&key, "labels")) {
			ret->labels = read_labels_of(r, block);
		} else if (pull_key_is(&key, "annotations")) {
			read_marks(r, block, ret);
		} else if (pull_key_is(&key, "deletionTimestamp")) {
			ret->deleting = pull_peek(r) == PULL_STRING;
			pull_skip(r);
		} else {
			pull_skip(r);
		}
	}
}

typedef void part_reader(struct json_reader *r, struct block *block);

/* Reads an object into a new block: its metadata, and its spec and status where there are readers for them. */
static int read_object(const char *json, size_t size, size_t struct_size, part_reader *spec,
		       part_reader *status, struct named *named, void **ret, struct err *err)
{
	struct json_reader r;
	struct json_slice key;
	struct block block;
	int rc;

	(void)block_init(&block, size, struct_size);
	pull_init(&r, json, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata"))
			read_metadata(&r, &block, named);
		else if (spec && pull_key_is(&key, "spec"))
			spec(&r, &block);
		else if (status && pull_key_is(&key, "status"))
			status(&r, &block);
		else
			pull_skip(&r);
	}
	named->size = (uint32_t)block.size;
	rc = block_take(&block, &r, ret, err);
	block_deinit(&block);
	return rc;
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

static void read_taint(struct json_reader *r, struct block *block, struct chain *taints)
{
	struct placed_taint found = { 0 }, *link;
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "key"))
			found.key = read_text(r, block);
		else if (pull_key_is(&key, "value"))
			found.value = read_text(r, block);
		else if (pull_key_is(&key, "effect"))
			found.effect = read_text(r, block);
		else
			pull_skip(r);
	}
	link = chain_add(block, taints, sizeof(*link));
	*link = found;
}

static void node_spec(struct json_reader *r, struct block *block)
{
	struct chain taints = { 0 };
	struct json_slice key;
	bool cordoned = false;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "unschedulable")) {
			cordoned = read_flag(r);
		} else if (pull_key_is(&key, "taints")) {
			if (enter_array(r))
				while (pull_element(r))
					read_taint(r, block, &taints);
		} else {
			pull_skip(r);
		}
	}
	((struct placed_node *)(void *)block->data)->cordoned = cordoned;
	((struct placed_node *)(void *)block->data)->taints = taints.first;
}

static bool read_condition_ready(struct json_reader *r, struct block *block)
{
	struct json_slice key;
	bool of_ready = false, is_true = false;

	if (!enter_object(r))
		return false;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "type"))
			of_ready = text_is(block, read_text(r, block), "Ready");
		else if (pull_key_is(&key, "status"))
			is_true = text_is(block, read_text(r, block), "True");
		else
			pull_skip(r);
	}
	return of_ready && is_true;
}

static bool read_ready(struct json_reader *r, struct block *block)
{
	bool ready = false;

	if (!enter_array(r))
		return false;
	while (pull_element(r))
		ready |= read_condition_ready(r, block);
	return ready;
}

static void node_status(struct json_reader *r, struct block *block)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "allocatable"))
			((struct placed_node *)(void *)block->data)->allocatable =
				read_amounts(r, block);
		else if (pull_key_is(&key, "conditions"))
			((struct placed_node *)(void *)block->data)->ready = read_ready(r, block);
		else
			pull_skip(r);
	}
}

int placed_node_read(const char *json, size_t size, struct placed_node **ret, struct err *err)
{
	struct named named = { 0 };
	struct placed_node *node;
	void *taken;
	int rc =
		read_object(json, size, sizeof(*node), node_spec, node_status, &named, &taken, err);

	if (rc < 0)
		return rc;
	node = taken;
	node->name = named.name;
	node->labels = named.labels;
	node->deleting = named.deleting;
	node->size = named.size;
	*ret = node;
	return 0;
}

/* --- namespaces, claims, volumes ------------------------------------------------------------------------------------ */

int placed_namespace_read(const char *json, size_t size, struct placed_namespace **ret,
			  struct err *err)
{
	struct named named = { 0 };
	struct placed_namespace *namespace;
	void *taken;
	int rc = read_object(json, size, sizeof(*namespace), NULL, NULL, &named, &taken, err);

	if (rc < 0)
		return rc;
	namespace = taken;
	namespace->name = named.name;
	namespace->labels = named.labels;
	*ret = namespace;
	return 0;
}

static void claim_spec(struct json_reader *r, struct block *block)
{
	struct placed_claim *claim = (void *)block->data;
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "volumeName")) {
			claim->volume = read_text(r, block);
		} else if (pull_key_is(&key, "storageClassName")) {
			claim->class = read_text(r, block);
		} else if (pull_key_is(&key, "accessModes")) {
			if (!enter_array(r))
				continue;
			while (pull_element(r))
				claim->alone |=
					text_is(block, read_text(r, block), "ReadWriteOncePod");
		} else {
			pull_skip(r);
		}
	}
}

static void claim_status(struct json_reader *r, struct block *block)
{
	struct placed_claim *claim = (void *)block->data;
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "phase"))
			claim->lost = text_is(block, read_text(r, block), "Lost");
		else
			pull_skip(r);
	}
}

int placed_claim_read(const char *json, size_t size, struct placed_claim **ret, struct err *err)
{
	struct named named = { 0 };
	struct placed_claim *claim;
	void *taken;
	int rc = read_object(json, size, sizeof(*claim), claim_spec, claim_status, &named, &taken,
			     err);

	if (rc < 0)
		return rc;
	claim = taken;
	claim->namespace = named.namespace;
	claim->name = named.name;
	claim->deleting = named.deleting;
	claim->selected = named.selected;
	claim->bound = named.bound && claim->volume;
	*ret = claim;
	return 0;
}

static void volume_spec(struct json_reader *r, struct block *block)
{
	struct placed_volume *volume = (void *)block->data;
	struct json_slice key, inner;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (!pull_key_is(&key, "nodeAffinity") || pull_peek(r) != PULL_OBJECT) {
			pull_skip(r);
			continue;
		}
		pull_object(r);
		while (pull_member(r, &inner)) {
			if (pull_key_is(&inner, "required"))
				volume->has_node_terms =
					read_node_selector(r, block, &volume->node_terms);
			else
				pull_skip(r);
		}
	}
}

int placed_volume_read(const char *json, size_t size, struct placed_volume **ret, struct err *err)
{
	struct named named = { 0 };
	struct placed_volume *volume;
	void *taken;
	int rc = read_object(json, size, sizeof(*volume), volume_spec, NULL, &named, &taken, err);

	if (rc < 0)
		return rc;
	volume = taken;
	volume->name = named.name;
	volume->labels = named.labels;
	*ret = volume;
	return 0;
}

/* --- budgets --------------------------------------------------------------------------------------------------------- */

static void budget_spec(struct json_reader *r, struct block *block)
{
	struct placed_budget *budget = (void *)block->data;
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "selector"))
			read_selector(r, block, &budget->pods);
		else
			pull_skip(r);
	}
}

static void budget_status(struct json_reader *r, struct block *block)
{
	struct placed_budget *budget = (void *)block->data;
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "disruptionsAllowed"))
			budget->allowed = read_int32(r, 0);
		else
			pull_skip(r);
	}
}

int placed_budget_read(const char *json, size_t size, struct placed_budget **ret, struct err *err)
{
	struct named named = { 0 };
	struct placed_budget *budget;
	void *taken;
	int rc = read_object(json, size, sizeof(*budget), budget_spec, budget_status, &named,
			     &taken, err);

	if (rc < 0)
		return rc;
	budget = taken;
	budget->namespace = named.namespace;
	budget->name = named.name;
	*ret = budget;
	return 0;
}

/* --- storage classes --------------------------------------------------------------------------------------------------- */

/* allowedTopologies: terms of matchLabelExpressions, each a key and the values that it may have. */
static void read_topology(struct json_reader *r, struct block *block, struct chain *terms)
{
	struct placed_node_term term = { 0 }, *link;
	struct chain labels = { 0 };
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (!pull_key_is(&key, "matchLabelExpressions")) {
			pull_skip(r);
			continue;
		}
		if (!enter_array(r))
			continue;
		while (pull_element(r)) {
			struct placed_requirement found = { .op = OP_IN }, *one;

			if (!enter_object(r))
				continue;
			while (pull_member(r, &key)) {
				if (pull_key_is(&key, "key"))
					found.key = read_text(r, block);
				else if (pull_key_is(&key, "values"))
					found.values = read_words(r, block);
				else
					pull_skip(r);
			}
			one = chain_add(block, &labels, sizeof(*one));
			*one = found;
		}
	}
	term.labels = labels.first;
	link = chain_add(block, terms, sizeof(*link));
	*link = term;
}

int placed_class_read(const char *json, size_t size, struct placed_class **ret, struct err *err)
{
	struct placed_class found = { 0 };
	struct named named = { 0 };
	struct chain terms = { 0 };
	struct json_reader r;
	struct json_slice key;
	struct block block;
	void *taken;
	int rc;

	(void)block_init(&block, size, sizeof(found));
	pull_init(&r, json, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata")) {
			read_metadata(&r, &block, &named);
		} else if (pull_key_is(&key, "provisioner")) {
			found.provisioner = read_text(&r, &block);
		} else if (pull_key_is(&key, "volumeBindingMode")) {
			found.waits =
				text_is(&block, read_text(&r, &block), "WaitForFirstConsumer");
		} else if (pull_key_is(&key, "allowedTopologies")) {
			if (enter_array(&r))
				while (pull_element(&r))
					read_topology(&r, &block, &terms);
		} else {
			pull_skip(&r);
		}
	}
	found.name = named.name;
	found.topologies = terms.first;
	found.has_topologies = terms.first != 0;
	memcpy(block.data, &found, sizeof(found));
	rc = block_take(&block, &r, &taken, err);
	block_deinit(&block);
	if (rc < 0)
		return rc;
	*ret = taken;
	return 0;
}
