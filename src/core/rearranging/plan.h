/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of this folder share.
 *
 *	movers.c	who may be moved, what that costs, where it may go
 *	clear.c		which of them make room for a waiting job
 *	swap.c		two jobs of which each moves to where the other runs
 *	together.c	which of them move though nobody waits, so that nodes and GPUs are whole again
 *	faster.c	which of them moves to a faster model of GPUs though nobody waits
 *	rearrange.c	when it is looked for, and how it is carried out
 *	turn.c		decide: scheduling first, then this
 *
 * All memory is the pass's arena.
 */
#include "core/rearranging/rearrange.h"

/* A running job that may be moved. */
struct mover {
	uint32_t job;
	const struct attempt *attempt;
	const struct shape *shape;
	int64_t share; /* GPU shares that it holds */
	int64_t cost; /* GPU-ms that its move loses */
	struct name_id model; /* of its GPUs: it keeps it */
	uint32_t first; /* rank of the node of its first task */
	uint32_t hosts; /* on how many it runs, */
	uint8_t level; /* and within which level: no worse when it has moved */
	bool boxed; /* no GPUs that it could use are free anywhere: it can only swap places */
};

/* What a mover holds of one node. */
struct node_mover {
	uint32_t mover; /* index */
	int64_t cost; /* the mover's */
	int64_t share, cpu_milli, ram_mib;
	uint32_t mask; /* GPUs, those of which it has a part too */
};

/* All who may be moved, cheapest first; of equal cost the later submission. */
struct movers {
	struct mover *list;
	uint32_t count;
	uint32_t *first; /* by rank of nodes, and one behind: where its movers begin in `at` */
	uint32_t *ranks, rank_count; /* nodes that have any, rising */
	struct node_mover *at; /* of each node the cheapest first */
	uint64_t *
		barred; /* ranks to which nobody is moved: maintenance is announced, or GPUs are reserved in advance; NULL = none */
	int64_t again_ms; /* when the first of those that are left alone for a time may be moved; 0 = there are none */
};

struct plan {
	uint32_t for_job;
	struct placement place; /* its own */
	uint32_t *moves; /* indices of movers, rising */
	struct placement *to; /* where each goes */
	uint32_t *
		after; /* 1 + index of the mover whose place it gets, 0 = its place is free; NULL = all are free */
	uint32_t count;
	int64_t cost; /* GPU-ms lost */
	int64_t gained; /* GPU shares */
};

/* Those whose move costs no more than `most`, in GPU-ms. */
void movers_make(struct pass *pass, int64_t most, struct movers *ret);
/* In the space: it leaves its place, or is there again; the place where it goes is kept for it, or no longer. */
void mover_give(struct pass *pass, const struct mover *m);
void mover_take(struct pass *pass, const struct mover *m);
void place_keep(struct pass *pass, const struct placement *to, const struct shape *shape);
void place_free(struct pass *pass, const struct placement *to, const struct shape *shape);
/* Another place for it, as good as its own, on what is free and its own GPUs. `barred`: ranks where it does not go, NULL = none. The
 * space is as before. */
bool mover_find(struct pass *pass, const uint64_t *barred, const struct mover *m,
		struct placement *ret);
/* The same on one node. */
bool mover_find_on(struct pass *pass, uint32_t rank, const struct mover *m, struct placement *ret);

/* Where two jobs go that swap places. */
struct swap {
	struct placement to, other_to;
	bool other_waits; /* the other one also needs what the first leaves */
};

/* A place for `m` on the node of `other`, and one for `other` on what is free then. Both are kept in the space when true is returned,
 * else the space is as before. */
bool swap_find(struct pass *pass, const uint64_t *barred, const struct mover *m,
	       const struct mover *other, struct swap *ret);

/* The cheapest plan that is found for the job: at most so many moves, at most so much lost. */
bool clear_find(struct pass *pass, const struct movers *movers, const struct stuck *stuck,
		uint32_t moves_most, int64_t cost_most, struct plan *ret);
/* The plan that loses least for what it gains, of those that are worth it: a node, or a shared GPU, is emptied. */
bool together_find(struct pass *pass, const struct movers *movers, uint32_t moves_most,
		   struct plan *ret);
/* The move of one job to a faster model of GPUs that wins most beyond what it costs. */
bool faster_find(struct pass *pass, const struct movers *movers, struct plan *ret);
