/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Blocks: what is kept from jobs for a time, because nodes have maintenance announced or GPUs are reserved in advance for others.
 *
 *	it is 18:00, and n0 has maintenance from 20:00 to 22:00
 *	a job that is expected to end at 19:30		may start on n0
 *	a job that is expected to end at 21:00		runs elsewhere, or waits until 22:00
 *
 * A reservation is no block for jobs of its queue, nor, if it lends what is idle, for best-effort work, which goes when it is
 * needed. Critical work never goes, so without a declared limit it keeps away from all that is reserved for others.
 *
 * A block is such a time and the GPUs it is about. Before a job is placed, the space is told which blocks its run would
 * touch (blocks_for): they are kept from it like GPUs that others hold. What runs already is no matter of blocks: it is warned in
 * time and leaves (attempt_drain_ms).
 *
 * Blocks that begin and end together are one, so a rack's maintenance costs as much as a node's. What a pass knows of a
 * shape is known for a set of blocks; jobs of a queue mostly have the same set.
 */
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct job;
struct pass;
struct place_request;
struct shape_memo;
struct space;
struct verdict;

enum { BLOCK_SETS_MAX = 8 }; /* of which a pass remembers what it knows of shapes */

struct block {
	int64_t from_ms, to_ms;
	uint32_t node; /* the first node of a maintenance, by name */
	uint32_t booking; /* row of a reservation in advance; 0 = maintenance */
};

/* What a block keeps of one node. */
struct block_touch {
	uint32_t rank, block, mask;
	bool shut; /* the node as a whole, also from work without GPUs */
	bool begun; /* the node is not ready while it lasts */
};

struct blocks {
	bool made;
	uint32_t count, words; /* words: of a set of blocks, one bit each */
	struct block *at; /* by from_ms; equal ones by to_ms */
	struct block_touch *touches; /* by rank */
	uint32_t touch_count;
	uint64_t *on, *wanted; /* in effect in the space; scratch */
	uint32_t set; /* number of the set that is on: 0 = none, BLOCK_SETS_MAX = not remembered */
	uint32_t set_count;
	uint64_t *sets[BLOCK_SETS_MAX];
	struct shape_memo *memos[BLOCK_SETS_MAX]; /* by shape */
};

/* Is there any block at all? Reads them from the facts when the pass asks first. */
bool blocks_exist(struct pass *pass);
/* From now on the space is as it is for a job that runs until `until_ms`. */
void blocks_for(struct pass *pass, const struct job *job, int64_t until_ms);
/* Likewise for one that runs already, until it is expected to end. */
void blocks_for_running(struct pass *pass, uint32_t job);
void blocks_none(struct pass *pass);
/* What is on is put into the space once more: something else about its nodes changed (apart.h). */
void blocks_again(struct pass *pass);
/* What the pass knows of the shape under the blocks that are on; `none` serves where none is. */
struct shape_memo *blocks_memo(struct pass *pass, uint32_t shape, struct shape_memo *none);
/* Would it fit if there were no blocks, and no node were closed by one? Then *ret_why names the block that is in the way: `at` its
 * first node, or the row of the reservation, `have` and `need` from when to when. */
bool blocks_why(struct pass *pass, const struct place_request *request, struct verdict *ret_why);

/* --- for reservations, which look ahead ---------------------------------------------------------------- */

/* A start at `at_ms` of a run of `length_ms`: the blocks in its way, whether they are over by then or not, into `ret` (of
 * blocks.words). Returns the time from which on more of them are, INT64_MAX = never. */
int64_t blocks_in_way(const struct pass *pass, const struct job *job, int64_t at_ms,
		      int64_t length_ms, uint64_t *ret);
/* Exactly these blocks, but those that are over (`lifted`), are on in the space. */
void blocks_put(const struct pass *pass, struct space *space, const uint64_t *on,
		const uint64_t *lifted);
/* Nodes that are closed by a block are ready in this space, as if it alone kept them. */
void blocks_open(const struct pass *pass, struct space *space);
/* GPUs of the node that a run of the job from..to may not use, UINT32_MAX when it is shut; *ret_opens: the node is not ready now,
 * but will be. */
uint32_t blocks_of_node(const struct pass *pass, const struct job *job, uint32_t rank,
			int64_t from_ms, int64_t to_ms, bool *ret_opens);
