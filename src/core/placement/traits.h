/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a wish can tell apart in nodes, beside what is free: model and memory of the GPUs, versions, class, labels, taints, masks.
 *
 * Nodes with equal traits are one class of the space. A label counts only when some wish names it: with a label per
 * node that nobody asks for, all nodes still are one class.
 *
 *	n0 H100, labels region=eu, host=n0	n1 H100, labels region=eu, host=n1	one class, until a job asks for host=n1
 *
 * Which nodes take what: class `inference` takes inference alone, class `training` all but inference, `any` everything. A
 * node with taints takes jobs that tolerate each of them. What a node does not say it does not have: a job that needs
 * driver 550 does not run on a node that states none. The compute capability, where not stated, follows from the model.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/model/facts.h"

enum trait {
	TRAIT_NONE,
	TRAIT_MODEL,
	TRAIT_SPEED,
	TRAIT_SLICES,
	TRAIT_MEMORY,
	TRAIT_CAPABILITY,
	TRAIT_REGION,
	TRAIT_CLASS,
	TRAIT_LABEL,
	TRAIT_MASK,
	TRAIT_TAINT,
	TRAIT_DRIVER,
	TRAIT_CUDA,
	TRAIT_CAPACITY,
	TRAIT_END
};

struct traits {
	struct name_id model;
	uint32_t gpu_memory_mib;
	uint32_t driver, cuda; /* as version_parse has it; 0 = not said */
	uint32_t capability; /* tenths; 0 = not known */
	uint32_t class; /* enum node_class */
	uint32_t make; /* how it is built: place_node.make */
	uint32_t geometry; /* how its GPUs can be cut: geometry_get; 0 = not at all */
	uint32_t slices_only;
	uint32_t spot; /* 1 = such nodes may be taken away at any time */
	struct name_id labels[LABELS_MAX]; /* those that some wish names; none behind the last */
	struct name_id taints[TAINTS_MAX];
	struct name_id taint_keys[TAINTS_MAX]; /* of these: the key, if some wish names it */
	int64_t price_micro; /* of a GPU for an hour */
	struct name_id masks[MASKS_MAX]; /* likewise, of the masks that it is in */
};

/* Names of labels, regions, taints and masks in wishes: sorted by number, each once. */
struct traits_named {
	const uint32_t *names;
	uint32_t count;
};

/* All zero before. */
void traits_read(struct traits *ret, const struct facts *facts, const struct node *node,
		 const struct traits_named *named);
/* Does a node with these traits do for the wish, in this respect; in all of them. */
bool traits_meet(const struct traits *traits, const struct shape *shape, enum trait trait);
bool traits_suit(const struct traits *traits, const struct shape *shape);
/* GPU memory that a task with this wish has there: of its part of a GPU, or of each whole one. */
uint32_t traits_memory(const struct traits *traits, const struct shape *shape);
/* The taint that is in the way; 0 = none. */
struct name_id traits_taint(const struct traits *traits, const struct shape *shape);
/* What a GPU of the model costs for an hour, in millionths; 0 = nothing is known. */
int64_t model_price(const struct facts *facts, struct name_id model);
/* The same of spot nodes with this model: the price of "spot:MODEL"; 0 = nothing is known. And of this node. */
int64_t spot_price(const struct facts *facts, struct name_id model);
int64_t node_price(const struct facts *facts, const struct node *node);
/* How fast the model does this job's work, in thousandths of the whole; 0 = it is not among those of which the job says so. */
uint32_t shape_speed(const struct shape *shape, struct name_id model);
/* Compute capability in tenths of GPUs of this model: "H100-80GB" has 90; 0 = not known. */
uint32_t model_capability(const char *model);
bool traits_in(const struct traits *traits, struct name_id mask);
bool traits_named_has(const struct traits_named *named, struct name_id name);
