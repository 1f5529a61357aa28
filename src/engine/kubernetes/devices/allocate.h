/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which devices of a node meet claims: the first that fit, in the order of kube-scheduler's own allocator (driver, pool, slice, device), with
 * going back where a later request does not find what it needs. Claims are met together, or none of them.
 *
 * The work is bounded: after DRA_STEPS_MAX looks at a device the answer is that it was too much, and nothing is allocated.
 *
 * tests/kubernetes/test_devices.py lays the answers beside those of k8s.io/dynamic-resource-allocation. Other than there a device that may be
 * allocated many times over is never chosen; and distinctAttribute holds for all devices of a request.
 */
#include "engine/kubernetes/devices/inventory.h"

enum { DRA_STEPS_MAX = 200000, DRA_CLAIMS_MAX = 256 };

enum dra_state {
	DRA_FREE,
	DRA_TAKEN, /* allocated, with the counters that it uses */
	DRA_CLOSED, /* not for this question; its counters are free */
	DRA_FIRST /* free, and before others; not where a request takes all devices */
};

struct dra_question {
	const char *node;
	const struct placed_node *placed; /* its labels; NULL = not known */
	const struct dra_claim *const *claims; /* one may come more than once */
	uint32_t claim_count;
	/* What became of a device; of all devices of the pools, on other nodes too. */
	enum dra_state (*state)(void *context, const struct dra_slice *slice,
				const struct dra_device *device);
	void *context;
};

struct dra_choice_made {
	uint32_t request, choice; /* of the claim */
	const struct dra_slice *slice;
	const struct dra_device *device;
};
struct dra_allocation {
	uint32_t count;
	struct dra_choice_made made[DRA_RESULTS_MAX];
};

enum dra_verdict {
	DRA_FITS,
	DRA_NO_ROOM, /* not with what is free now, or not on this node */
	DRA_BAD /* it can't be answered, or is asked for wrongly: `why` */
};
struct dra_answer {
	struct dra_allocation *allocations; /* by claim; of DRA_FITS */
	const char *why; /* in words, where there are any; else "" */
	uint32_t steps;
};
/* What is returned is in the arena, whose cap should be 64 MiB or more. */
enum dra_verdict dra_allocate(struct dra_inventory *inventory, const struct dra_question *question,
			      struct arena *arena, struct dra_answer *ret);

/* For each device of the pool, slice by slice: whether it can be had by what is taken, itself and its counters. */
bool *dra_pool_free(const struct dra_pool *pool,
		    enum dra_state (*state)(void *context, const struct dra_slice *slice,
					    const struct dra_device *device),
		    void *context, struct arena *arena);
