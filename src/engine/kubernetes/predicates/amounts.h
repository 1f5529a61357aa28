/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sums of resources, as lists of placed_amount in one block; and what the containers of a pod come to. */
#include "engine/kubernetes/predicates/block.h"

void amounts_add(struct block *block, struct chain *to, at_t from);
/* Of each resource the larger. */
void amounts_most(struct block *block, struct chain *to, at_t from);
at_t amounts_copy(struct block *to, const struct block *from, at_t list);

struct container {
	at_t next, name, requests;
	at_t actuated, allocated; /* of its status */
	bool begins, stays, has_status;
};
/* What is said of a pod's resources, all in a block of its own. */
struct wishes {
	struct block block;
	struct chain containers,
		statuses; /* struct container; of a status name, actuated, allocated */
	at_t pod_requests, overhead;
	at_t pod_actuated, pod_allocated;
	bool has_pod_status;
	bool runs; /* bound: a resize under way counts as the larger of before and after */
	bool infeasible; /* the node has refused the resize */
};
at_t wishes_sum(struct wishes *wishes);
