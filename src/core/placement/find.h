/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where: a place for the tasks of one wish, in a space. Knows nodes, levels and shapes; never queues, tiers or
 * prices of victims.
 *
 * A gang takes the narrowest level it fits in; there the fewest hosts; among equals the tightest fit, so that whole
 * hosts and islands stay whole. README.md has worked examples.
 *
 * place_bound answers from counts only, in a microsecond: a "no" is certain, a "yes" is not when processors,
 * memory or islands are asked for. place_find is exact but for unlike tasks (find_roles.c); with ret NULL it only answers, and
 * needs no arena. Both leave the space as it was.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "core/core.h"
#include "core/placement/space.h"

enum { PLACE_NO = 1 };
/* `level` of a REASON_FRAGMENTATION: they would fit on GPUs of several models. */
enum { PLACE_ONE_MODEL = 102 };
/* Likewise: they would fit on nodes where tasks of another role lie, which have not enough for both of what masks speak of. */
enum { PLACE_ROLES_SHARE = 103 };

struct place_request {
	const struct shape *shape;
	uint32_t tasks; /* exactly so many */
	const int64_t *
		which; /* ranks of the job that they are, rising; NULL = from 0 on. Of use where it has roles */
	uint32_t domain; /* only inside this domain; 0 = the whole cluster */
	int32_t rank; /* only on the node of this rank; RANK_NONE = any */
	uint64_t closed; /* classes of nodes that are not to be used */
	uint64_t
		suits; /* classes that suit the shape, as space_classes_of says; 0 = not asked yet */
	bool scatter; /* policy `packing: false`: the emptiest nodes first */
	const uint64_t
		*barred; /* ranks of nodes that are not to be used, one bit each; NULL = none */
	const uint64_t *home; /* ranks where it would rather be, one bit each; NULL = anywhere */
	struct name_id model; /* only GPUs of this one, 0 = any: that of ranks which run already */
	int64_t work_ms; /* how long it is expected to run on GPUs of speed 1; 0 = not known. For data sets of known size */
	uint8_t kind; /* of the job, likewise */
	uint8_t share_gpus; /* policy of that name, for parts of GPUs; 0 = anybody's may lie together */
};

struct placement {
	uint32_t count; /* tasks */
	const int64_t *which; /* as in the request */
	uint32_t *ranks; /* of nodes in the space, one per task */
	uint32_t *masks; /* GPUs there */
	uint32_t *parts, *parts_mib; /* of the one GPU in the mask; NULL = whole GPUs */
	uint32_t *slices; /* which instance of it, slice_at; NULL = none are asked for */
	uint32_t domain; /* the narrowest domain that holds all */
	uint8_t level; /* its level: 0 cluster .. , LEVEL_NODE */
};

int place_bound(const struct space *space, const struct place_request *request,
		struct verdict *ret_why);
int place_find(struct space *space, const struct place_request *request, struct arena *arena,
	       struct placement *ret, struct verdict *ret_why);
/* The most tasks, up to request->tasks, for which place_find would find a place; 0 = none. */
uint32_t place_width(struct space *space, const struct place_request *request);

/*
 * What is expected of the place: the bandwidth of an all-reduce in MB/s, and the time of a job's step against the best place in
 * the cluster, were it idle (1000 = as fast). False: not known, or its tasks do not talk.
 */
struct place_speed {
	uint64_t bandwidth_mbps;
	uint32_t slowdown_permille;
};
bool place_speed(const struct space *space, const struct shape *shape, uint8_t kind,
		 const struct placement *placement, struct arena *arena, struct place_speed *ret);

/* What it takes to bring the data sets there: the longest time of a host, the money of all. False: nobody says how large one is. */
bool place_moves(const struct space *space, const struct shape *shape,
		 const struct placement *place, struct data_move *ret);

/* Free GPUs of nodes for which this is the first trait that the wish does not find; *ret_why as place_find would say it. */
uint32_t place_shut_out(const struct space *space, const struct shape *shape, enum trait trait,
			struct verdict *ret_why);

/* Is there a GPU in place `a` of a model that costs the wish more, or is slower, than all of `b`? */
bool place_is_dearer(const struct space *space, const struct shape *shape,
		     const struct placement *a, const struct placement *b);

/* Must so many tasks of this wish lie apart from one another? */
static inline bool shape_is_apart(const struct shape *shape, uint32_t tasks)
{
	return shape->apart && tasks > 1;
}
/* Adds the ranks on which no task may lie that must be apart, at this level, from one on `rank`. */
void spread_bar(const struct space *space, uint32_t apart, uint32_t rank, uint64_t *barred);

/* What a task of the placement holds. */
struct hold placement_hold(const struct placement *placement, uint32_t task,
			   const struct shape *shape);
/* The same of the tasks from `first` on that lie on one node, as far as they can be one hold; the next task. */
uint32_t placement_holds(const struct placement *placement, const struct shape *shape,
			 uint32_t first, struct hold *ret);
void placement_take(struct space *space, const struct placement *placement,
		    const struct shape *shape);
void placement_give(struct space *space, const struct placement *placement,
		    const struct shape *shape);
void placement_promise(struct space *space, const struct placement *placement,
		       const struct shape *shape);
