/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All devices of a cluster, as the drivers publish them, and which of them a node has.
 *
 * A driver publishes a pool of devices in one or more slices of one generation. Only the newest generation counts, and only when all of its
 * slices are there. A pool may belong to one node, or to several.
 *
 * Slices and classes are taken over. What the questions need is reckoned anew at the first question after a change, in time in proportion to
 * all slices.
 */
#include <uthash.h>

#include "engine/kubernetes/devices/device.h"

struct dra_pool {
	const char *driver, *name;
	const struct dra_slice *const *slices; /* of the newest generation, by name */
	uint32_t slice_count;
	bool incomplete;
	const char *invalid; /* NULL = it is not */
	/* All counters of its sets in one row: a set's begin at first[set]. */
	const struct dra_counter_set *const *sets;
	const uint32_t *first;
	uint32_t set_count, counter_count;
};

struct dra_inventory {
	struct slice_entry *slices;
	struct class_entry *classes;
	bool changed;
	/* The view: */
	struct arena arena;
	struct dra_pool *pools; /* by driver, name */
	uint32_t pool_count;
	struct node_pools *by_node; /* those with slices for a node of that name */
	const uint32_t *shared; /* those that say otherwise which nodes have them */
	uint32_t shared_count;
};

/* Starts zeroed. */
void dra_inventory_deinit(struct dra_inventory *inventory);
void dra_slice_set(struct dra_inventory *inventory, struct dra_slice *slice);
void dra_slice_remove(struct dra_inventory *inventory, const char *name);
void dra_class_set(struct dra_inventory *inventory, struct dra_class *class);
void dra_class_remove(struct dra_inventory *inventory, const char *name);
const struct dra_class *dra_class_find(const struct dra_inventory *inventory, const char *name);
/* In a list that is taken anew: what was not set since `begin` is removed by `end`. */
void dra_slices_begin(struct dra_inventory *inventory);
void dra_slices_end(struct dra_inventory *inventory);
void dra_classes_begin(struct dra_inventory *inventory);
void dra_classes_end(struct dra_inventory *inventory);

/* Pools of which a slice may be for the node, by driver and name; the caller asks each slice. The list is in `arena`. */
void dra_pools_of(struct dra_inventory *inventory, const char *node, struct arena *arena,
		  const struct dra_pool *const **ret, uint32_t *count);
/* Whether the slice has devices for the node (or may have, where each device says). */
bool dra_slice_is_for(const struct dra_slice *slice, const char *node,
		      const struct placed_node *placed);
/* Bit offset of a counter among the pool's; UINT32_MAX = there is none. */
uint32_t dra_counter_at(const struct dra_pool *pool, const char *set, const char *counter);

/* A whole GPU: its driver says type "gpu", or is named gpu.… and says nothing of types. */
bool dra_is_gpu(const struct dra_slice *slice, const struct dra_device *device);
/* An attribute by its full name, as constraints name it; NULL = the device has none. */
const struct cel_attribute *dra_attribute(const struct dra_device *device, const char *domain,
					  const char *id);
