/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The space: the free side of the cluster. Which GPUs, processors and memory of which node nobody holds, and how
 * many of them lie together at each level of the topology.
 *
 * Nodes are put in order of (names of their domains, own name); the place in that order is the node's `rank`. So
 * a domain (a rack, a leaf, a zone) is a run of ranks, and ties go to the lower rank, whatever order nodes came
 * in. Nodes that a wish cannot tell apart (core/placement/traits.h: model, memory, versions, labels, ...) are one class.
 *
 *	domain 0, the cluster:  rank 0 ............................ 11
 *	rack:                   [0 1 2 3] [4 5 6 7] [8 9 10 11]
 *	counts of a domain:     how many ready nodes of a class have 0, 1, 2 ... GPUs free
 *	sets of ranks:          which nodes of a class have exactly f GPUs free
 *
 * "How many tasks of two GPUs fit in this rack" is a sum over at most 33 counts; "the fullest node where one more
 * fits" is the first member of a set. Only counts that exist are walked.
 *
 * What-ifs change the space and roll it back: every change is logged (space_mark, space_rollback). A GPU is free
 * when it is usable (node ready, not set aside), not busy (held by an attempt), not promised and not blocked. One of which a
 * part is held is busy; what is open of it stands in parts.h.
 *
 * Costs: take or give of one task 50 ns plus 10 ns per level; build O(n log n). Derived from the facts, may be thrown
 * away at any time. Limits: CLASSES_MAX classes exactly; nodes of further ones share the last and are
 * looked at one by one.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/fabric/fabric.h"
#include "core/model/roles.h"
#include "core/placement/array.h"
#include "core/placement/bits.h"
#include "core/placement/demand.h"
#include "core/placement/traits.h"

enum {
	CLASSES_MAX = 64,
	CLASS_MIXED = CLASSES_MAX - 1, /* holds every class beyond the others */
	SPACE_LEVELS = LEVELS_MAX + 1, /* the cluster and the levels above a node */
	RANK_NONE = -1
};

/* Stands for "not stated": a node without a figure for processors or memory does not limit them. */
#define SPACE_UNLIMITED (INT64_MAX / 4)

/* What it takes to bring a data set to a node, or all of a wish to a place. */
struct data_move {
	int64_t ms; /* -1 = nobody says */
	int64_t micro;
};
enum {
	STANDS_MAX = 255
}; /* places that data sets and transfers tell apart; of those beyond nobody says */

struct place_node {
	uint32_t node; /* node_id */
	uint32_t all; /* mask of the GPUs it has */
	uint32_t usable; /* not set aside; 0 when the node is not ready */
	uint32_t busy; /* held by attempts */
	uint32_t promised; /* kept for a job whose victims are leaving */
	uint32_t traits; /* index in the space's list */
	bool ready;
	uint8_t class; /* = traits, but CLASS_MIXED from there on */
	uint8_t island_count; /* 1 when all GPUs are in one */
	bool shut; /* it would be ready, but is kept from the wish at hand: space_block */
	uint32_t island[ISLANDS_MAX];
	uint32_t domain[SPACE_LEVELS]; /* by level; 0 of all is the cluster */
	int64_t cpu_free,
		ram_free; /* milli-CPUs, MiB; below 0 while a promise waits for its victims */
	int64_t cpu_all, ram_all;
	uint32_t shared; /* GPUs of which parts are held or promised */
	uint32_t open_share; /* that is open of these together */
	uint32_t slice_share; /* and in free slices of those that are cut */
	uint32_t lost_share; /* of GPUs that are cut and usable: what none of their instances has */
	uint32_t open_steps; /* steps in which one of them is found, a bit each */
	uint32_t blocked; /* kept from the wish at hand, whoever holds them: space_block */
	uint32_t make; /* row in the fabric's hosts; 0 when nothing is known of it */
	uint32_t
		sliced; /* GPUs that are cut into slices: busy for all else, whoever holds what of them */
};

struct domain {
	uint32_t first, end; /* ranks */
	struct name_id name; /* 0 = the cluster, or nodes that name no domain of this level */
	uint8_t level; /* 0 = cluster, else 1 + index of the level */
};

/* What one task holds of a node, or is promised. */
struct hold {
	uint32_t mask; /* GPUs */
	uint32_t part, part_mib; /* of the one GPU in the mask, and whose; part 0 = whole GPUs */
	uint32_t sharer; /* shape_sharer */
	uint32_t aligned; /* 1 = the processors are those beside the GPUs, see numa.h */
	uint32_t slice; /* slice_at: the instance that the part is; 0 = none */
	int64_t cpu_milli, ram_mib;
};

/* The parts of one GPU that are held, or promised. */
struct part_sum {
	uint64_t sharers; /* sum of their marks: tells whether all are of one sharer */
	uint32_t mib;
	uint16_t share, count, serving; /* serving: those of inference */
	uint16_t slices; /* the memory slices where instances among them begin, a bit each */
};
struct gpu_parts {
	struct part_sum held, promised;
	uint32_t layout; /* slices.h; 0 = not cut */
	uint32_t
		lost; /* share of the GPU that none of its instances has, where only people cut it */
};
enum { PART_STEPS = 32 }; /* GPUs are found by what is open of them, in such steps */

struct space_undo {
	uint32_t rank, usable, busy, promised, blocked;
	int64_t cpu_free, ram_free;
	bool ready, shut;
	uint8_t parts, numa; /* so many entries of parts_log, of numa_log belong to it */
};
struct numa_room { /* of one NUMA node of a host; gpus 0 = there is none */
	uint32_t gpus, nics;
	int64_t cpu_all, cpu_free; /* free of aligned tasks */
};
struct numa_undo {
	uint32_t at;
	int64_t cpu_free;
};
struct parts_undo {
	uint32_t gpu; /* rank * gpus_max + index */
	struct gpu_parts before;
};

struct space {
	uint32_t node_count;
	uint32_t gpus_max; /* of one node */
	int64_t gpus; /* of all nodes, whether they can be used or not */
	uint32_t level_count; /* topology levels above the node */
	uint32_t class_count;
	uint32_t domain_count;
	bool islands; /* some node has more than one */
	bool several_models, priced; /* of GPUs, or of ways to pay for them; some have a price */
	bool spot; /* some nodes are spot nodes */
	uint32_t traits_count;
	uint32_t level_first[SPACE_LEVELS +
			     1]; /* domains of level l: level_first[l] .. level_first[l + 1] */
	ARRAY(struct place_node) nodes; /* by rank */
	ARRAY(int32_t) rank_of; /* by node_id; RANK_NONE = none */
	ARRAY(struct domain) domains; /* by level, then by first rank */
	ARRAY(struct traits) traits; /* different ones, by the first rank that has them */
	ARRAY(uint32_t) named; /* labels and taints that wishes name, see struct traits_named */
	ARRAY(uint32_t) data_names; /* data sets that wishes name, by number */
	ARRAY(uint64_t) data_ranks; /* [of these][bits]: nodes that keep it */
	ARRAY(uint8_t)
	stands; /* by rank: which place data come to; none where no wish names a data set of known size */
	ARRAY(struct data_move)
	moves; /* [these, from 1][data sets by number]; [0]: ms 1 = its size is known */
	ARRAY(uint32_t) counts; /* [domain][class][free GPUs] */
	uint32_t free_gpus[CLASSES_MAX]; /* of all nodes, by class: the sum of their counts */
	ARRAY(uint64_t) sets; /* [class][free GPUs][bits] */
	ARRAY(uint64_t) odd; /* [bits], see space_odd */
	uint32_t class_first[CLASSES_MAX]; /* the lowest rank of the class */
	ARRAY(struct fabric) fabric; /* one, when anything is known of it (speed.c) */
	ARRAY(struct space_undo) log;
	uint32_t log_count;
	uint32_t log_low; /* the least that it was since the last space_copy_next */
	bool parts; /* some wish asks for a part of a GPU, or one is cut; else there is nothing of the following */
	bool slices; /* some wish asks for a slice, or a GPU is cut */
	int64_t open_share, slice_share; /* of all GPUs that are shared; of free slices */
	ARRAY(struct gpu_parts) gpu_parts; /* [rank][index] */
	ARRAY(uint64_t)
	part_sets; /* [class][step][bits]: nodes with a shared GPU of which so much is open */
	ARRAY(struct parts_undo) parts_log;
	uint32_t parts_log_count;
	bool numa; /* some host names its NUMA nodes; else there is nothing of the following */
	ARRAY(struct numa_room) numa_rooms; /* [rank][NUMA_MAX] */
	ARRAY(struct numa_undo) numa_log;
	uint32_t numa_log_count;
	struct demand demand; /* set by whoever searches, before it does */
};

void space_init(struct space *space);
void space_deinit(struct space *space); /* takes a zeroed one too */
/* Builds it from the cluster's description; nothing is busy or promised. */
void space_build(struct space *space, const struct facts *facts);
/* The node's state or set-aside GPUs changed; the node must be known (its description is as at the build). */
void space_node_refresh(struct space *space, const struct facts *facts, struct node_id node);
/* GPUs of the node were cut, or made whole. False: the space must be built anew. */
bool space_layout_refresh(struct space *space, const struct facts *facts, struct node_id node);

/* Makes `to` equal to `from`, with an empty log; `to` keeps its memory for the next copy. About 0.1 ms for 12,500 nodes. */
void space_copy(struct space *to, const struct space *from);

/*
 * The same for a copy that is made anew from time to time: when `to` was made from it before, and nothing of the log that was there then was
 * rolled back since, only nodes that the log names are copied. *since: how long the log was then, plus 1; 0 = `to` is no copy of it. Whoever
 * changes `to`, or builds either anew, sets it to 0. There is one such copy of a space. `seen`: a bit for each rank, all 0; so they are afterwards.
 */
void space_copy_next(struct space *to, struct space *from, uint32_t *since, uint64_t *seen);

/* Whose work it is, for sharing a GPU: of a team, or of a user without one; and whether it is inference. */
static inline uint32_t shape_sharer(const struct shape *shape)
{
	return (shape->team.v ? shape->team.v * 4 : shape->user.v * 4 + 2) | (shape->serves != 0);
}
static inline struct hold task_hold(const struct task *task, const struct shape *shape,
				    uint32_t rank)
{
	struct task_wish wish = shape_wish(shape, rank);

	return (struct hold){ task->gpu_mask,      task->gpu_part,    task->gpu_part_mib,
			      shape_sharer(shape), shape->align != 0, task->slice,
			      wish.cpu_milli,      wish.memory_mib };
}

/* Questions */
static inline uint32_t place_node_free(const struct place_node *n)
{
	return n->usable & ~n->busy & ~n->promised & ~n->blocked;
}
static inline const struct place_node *space_at(const struct space *s, uint32_t rank)
{
	return &s->nodes.at[rank];
}
/* How fast GPUs talk to each other; NULL when nobody has described it. */
static inline const struct fabric *space_fabric(const struct space *s)
{
	return s->fabric.buf.size ? s->fabric.at : NULL;
}
int32_t space_rank(const struct space *space, uint32_t node); /* RANK_NONE: not in the space */
const uint32_t *space_counts(const struct space *space, uint32_t domain,
			     uint32_t class); /* [gpus_max + 1] */
const uint64_t *space_set(const struct space *space, uint32_t class, uint32_t free);
/* Nodes that are not as idle ones of their class are: some share a GPU, or other processors or memory are free of them. Of those that are
 * not odd, all with as many free GPUs are alike; but for CLASS_MIXED. */
const uint64_t *space_odd(const struct space *space);
uint32_t space_classes_of(const struct space *space, const struct shape *shape,
			  uint64_t *ret_mask); /* how many; bit mask */
bool space_node_suits(const struct space *space, uint32_t rank, const struct shape *shape);
/* Whether it tells apart what this wish names; else it must be built anew (from facts that have the wish). */
bool space_knows(const struct space *space, const struct shape *shape);
/* Ranks of nodes that keep the data set, a bit each; NULL = no wish names it. How many of its data sets the wish finds at a rank. */
const uint64_t *space_data(const struct space *space, struct name_id name);
uint32_t space_data_at(const struct space *space, const struct shape *shape, uint32_t rank);
/* Does it take anything to bring data sets of the wish to a node? Then what it takes to bring them to that rank. */
bool space_data_weighs(const struct space *space, const struct shape *shape);
struct data_move space_data_move(const struct space *space, const struct shape *shape,
				 uint32_t rank);
/* Free GPUs of these classes (a bit mask; UINT64_MAX = all that there are). */
int64_t space_free_gpus(const struct space *space, uint32_t domain, uint64_t classes);
/* The same in shares, with all that is open of the cluster's shared GPUs: at least what can be had. */
int64_t space_free_share(const struct space *space, uint32_t domain, uint64_t classes);
/* Shares of usable GPUs of a node, busy or not. One that is cut by people counts as what its instances come to: the rest nobody can have. Where
 * Fairlead may cut it anew it counts whole. */
int64_t space_rank_share(const struct space *space, uint32_t rank);
/* GPU shares that one task of this wish holds on such GPUs; that so many hold at most, on the smallest that are large enough. */
static inline int64_t shape_share_on(const struct shape *shape, uint32_t gpu_memory_mib)
{
	return shape_is_part(shape) ? shape_part(shape, gpu_memory_mib).share
				    : (int64_t)shape->gpus * GPU_SHARE;
}
/* The same of the task of that rank. */
static inline int64_t rank_share_on(const struct shape *shape, uint32_t rank,
				    uint32_t gpu_memory_mib)
{
	return shape_is_part(shape) ? shape_part(shape, gpu_memory_mib).share
				    : (int64_t)shape_wish(shape, rank).gpus * GPU_SHARE;
}
int64_t shape_share(const struct space *space, const struct shape *shape, uint32_t tasks);
/* The most of the first `most` tasks that hold no more than `room` shares. */
uint32_t share_tasks(const struct space *space, const struct shape *shape, int64_t room,
		     uint32_t most);

/* Changes. GPUs, or parts of them, must be free (take, promise) or held (give, unpromise). */
void space_take(struct space *space, uint32_t rank, const struct hold *hold);
void space_give(struct space *space, uint32_t rank, const struct hold *hold);
/* Two tasks of one node as one hold: half the work. False: parts of GPUs, and tasks beside whose GPUs their processors lie, stay apart. */
bool hold_join(struct hold *sum, const struct hold *more);
void space_promise(struct space *space, uint32_t rank, const struct hold *hold);
void space_unpromise(struct space *space, uint32_t rank, const struct hold *hold);
/* From now on exactly these GPUs are kept from whoever asks, whether they are held or not; `shut`: the node as a whole, from work
 * without GPUs too. For the length of a pass. */
void space_block(struct space *space, uint32_t rank, uint32_t mask, bool shut);
/* As if the node were ready, with these of its GPUs in use. For what-ifs only. */
void space_open(struct space *space, uint32_t rank, uint32_t usable);
/* As if the node were not ready. For what-ifs only. */
void space_close(struct space *space, uint32_t rank);
/* As if everything were idle, ready and back in use: "could it ever run here". For what-ifs only. */
void space_clear(struct space *space);
/* As if everything were idle, on the nodes that are ready now. */
void space_idle(struct space *space);

uint32_t space_mark(const struct space *space);
void space_rollback(struct space *space, uint32_t mark);
void space_commit(struct space *space); /* forgets the log: what was changed stays */
void space_verify(
	const struct space *space); /* counts and sets equal what the nodes say, else aborts */
bool space_same(const struct space *a, const struct space *b);
