/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Running work that may have to make room for its equals (evict_turns.c): standard work that can save and goes as a whole. It stands
 * in groups of one queue and rank, one width in GPUs, and one way of declaring how long it takes; in a group the order by the work that is
 * expected still is the same at all times, though the work itself changes with each millisecond:
 *
 *	nothing declared	as much again as it had: who began first has most. Key: when it began, its pauses left out
 *	a limit, an estimate	what is left of it: who ends last has most. Key: that end. From then on as much as it had
 *
 *	`a` began at 1:00, `b` at 2:00, both on 2 GPUs. At 4:00: 6 and 4 GPU-hours; at 8:00: 14 and 12.
 *
 * So who has enough is found at one end of the group, however many there are. A change costs a few steps of a sorted set.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/model/facts.h"

struct view;

enum turner_says { SAYS_NOTHING, SAYS_LIMIT, SAYS_ESTIMATE };

struct turner_group {
	uint64_t rank;
	int64_t share; /* GPU shares of their least width */
	uint32_t queue;
	uint32_t members; /* sorted set: key turner_key_of(time), id job */
	uint32_t by_begin; /* with an estimate: the same jobs by when they began */
	uint32_t next; /* chain of its look-up slot, or of the free ones */
	uint8_t says; /* enum turner_says */
};

/* A time as a key: times before the epoch come first too. */
static inline uint64_t turner_key_of(int64_t ms)
{
	return (uint64_t)ms ^ UINT64_C(1) << 63;
}
static inline int64_t turner_key_ms(uint64_t key)
{
	return (int64_t)(key ^ UINT64_C(1) << 63);
}

/* Brings the job's place in the groups in line with the facts. */
void turner_sync(struct view *view, const struct facts *facts, uint32_t job);
/* It runs no more. */
void turner_leave(struct view *view, const struct facts *facts, uint32_t job);

/* The groups of a queue and rank, in an order that says nothing; 0 = none, or no more. */
uint32_t turners_first(const struct view *view, uint32_t queue, uint64_t rank);
uint32_t turners_next(const struct view *view, uint32_t group);
