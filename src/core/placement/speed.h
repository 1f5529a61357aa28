/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Placement asks the fabric: how fast do the GPUs of a place talk to each other, and which of several places is the fastest?
 *
 * Three things of a place decide it, and each is chosen in one step of the search:
 *
 *	level	the narrowest (find.c); the fabric never widens it
 *	makes	at that level first only the hosts that are built best; then with them the next best, and so on (speed_groups)
 *	parts	a gang over several domains goes into the fewest, and so that none sends out with too few hosts (split.c)
 *
 * Rates are compared in steps of an eighth of a doubling: what differs by less is as fast, and there packing decides. Nothing
 * of this is done, and nothing of it costs anything, while nobody has described the fabric, or for a wish whose tasks
 * do not talk: a single GPU, parts of GPUs, replicas of an endpoint. Of a gang with roles the
 * figures are those of its role with the most GPUs: the all-reduce among its tasks. Each role is placed as a gang of its own, and
 * domains are compared by that role.
 */
#include "core/placement/search.h"

/* --- for space.c --- */
void speed_begin(struct space *space, const struct facts *facts);
uint32_t speed_make(struct space *space, const struct facts *facts, const struct node *node);
void speed_settle(struct space *space); /* domains are known */

/* --- for the search --- */
enum { SPEED_GROUPS_MAX = 8 };
/* A rate as a number of steps; 0 for 0. */
uint32_t speed_step(uint64_t mbps);
/* The fabric, when it matters for the wish; else NULL. */
const struct fabric *speed_fabric(const struct search *search);
/* The search's classes as sets that grow: the hosts that give the wish most at this level, these and the next best, ... all. */
uint32_t speed_groups(const struct search *search, uint8_t level, uint64_t ret[SPEED_GROUPS_MAX]);
/* What the least host of these classes sends out with so many GPUs, and an NVLink domain of them has inside. */
uint64_t speed_out_mbps(const struct search *search, uint32_t gpus);
uint64_t speed_linked_mbps(const struct search *search);

void speed_estimate(const struct space *space, const struct placement *placement,
		    struct arena *arena, struct fabric_estimate *ret);
/* The most that so many tasks of the wish could get, were the cluster idle. */
void speed_best(const struct space *space, const struct shape *shape, uint32_t tasks,
		struct fabric_estimate *ret);
/* Is the place fast enough for the wish? The least slowdown met so far goes into search->slowdown. */
bool speed_suffices(struct search *search, const struct placement *placement, struct arena *arena);

/* The role with the most GPUs of all its tasks, the first of equal ones: its tasks are those that talk most. */
uint32_t speed_widest_role(const struct shape *shape, uint32_t tasks);

/* --- split.c: a gang over several domains of the next narrower level --- */
struct split {
	uint32_t count; /* of domains it must be in */
	uint32_t least; /* full hosts in the one that has fewest; 0 = it need not be split */
};
/* How evenly the domain could take the tasks, on hosts with at most `top` of them. */
void split_measure(const struct search *search, uint32_t domain, uint32_t top, struct split *ret);
/* Of an all-reduce over such parts: what the smallest lets through. */
uint64_t split_mbps(const struct search *search, uint32_t domain, uint32_t top,
		    const struct split *split);
void split_fill(struct search *search, uint32_t domain, uint32_t top, struct arena *arena,
		struct placement *ret);
