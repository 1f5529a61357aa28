/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Jobs that keep away from other jobs. A job bears labels, and may say of which labels it keeps away, by node or by a wider level:
 *
 *	job 1	labels app=web				runs on n0
 *	job 2	apart_from app=web			not on n0
 *	job 3	apart_from app=web, by rack		not on a node of the rack of n0
 *	job 4	labels app=web				not where job 2 runs: both sides keep the distance
 *	job 5	apart_from app=web, as a wish		rather not on n0, but there before it waits
 *
 * Before a job is placed (blocks_for), the nodes that are kept from it so are shut in the space; what has started or was promised a
 * place in the same pass counts, and so does the place that is reserved for a job before it, unless it is expected to have left by then.
 * Nobody is evicted for it, and who is kept from a node so holds no reservation: when the others
 * leave is not reckoned with. A wish of others is no matter of the job at hand. Tasks of one job are not kept apart from one
 * another: that is `spread`.
 */
#include <stdbool.h>
#include <stdint.h>

struct job;
struct pass;
struct place_request;
struct verdict;

/* Somebody who bears labels or keeps away from some, on a node. */
struct apart_place {
	uint32_t job, node;
};

struct aparts {
	bool made;
	struct apart_place *at; /* jobs that run, have a place promised, or got one in this pass */
	uint32_t count, room;
	uint32_t seen; /* decisions of the pass that were looked at */
	uint64_t *on, *wanted; /* by rank: shut now; NULL = not yet made */
	bool any; /* some are shut */
	uint32_t holder, node; /* the first by name that keeps it from a node, and where */
};

/* From now on the nodes that are kept from the job are shut, and no others; `wish`: also those that it would rather keep away from. */
void aparts_for(struct pass *pass, const struct job *job, bool wish);
void aparts_none(struct pass *pass);
/* Is this rank shut now? */
bool aparts_shut(const struct pass *pass, uint32_t rank);
/* Would it fit if none were? Then *ret_why names who is in the way: `holder`, and `at` on which node. */
bool aparts_why(struct pass *pass, const struct place_request *request, struct verdict *ret_why);
