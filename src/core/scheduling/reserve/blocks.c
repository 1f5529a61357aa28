/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/reserve/blocks.h"

#include <string.h>

#include "base/check.h"
#include "core/scheduling/pass.h"

/* --- reading ------------------------------------------------------------------------------------------- */

static bool block_same(const struct block *a, const struct block *b)
{
	return a->from_ms == b->from_ms && a->to_ms == b->to_ms && !a->booking && !b->booking;
}

static bool block_before(const struct block *a, const struct block *b)
{
	return a->from_ms != b->from_ms ? a->from_ms < b->from_ms : a->to_ms < b->to_ms;
}

/* The block that is equal, or a new one in its place of the order; later ones move up, and what touches them is told. */
static uint32_t block_add(struct blocks *b, const struct block *added)
{
	uint32_t at;

	for (uint32_t i = 0; i < b->count; i++)
		if (block_same(&b->at[i], added))
			return i;
	for (at = b->count; at > 0 && block_before(added, &b->at[at - 1]); at--)
		b->at[at] = b->at[at - 1];
	b->at[at] = *added;
	b->count++;
	for (uint32_t i = 0; i < b->touch_count; i++)
		b->touches[i].block += b->touches[i].block >= at;
	return at;
}

static const struct node *node_at(const struct pass *pass, uint32_t rank)
{
	return node_get(pass->facts, (struct node_id){ space_at(&pass->view->space, rank)->node });
}

static uint32_t windows_count(const struct pass *pass)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; pass->view->draining && rank < pass->view->space.node_count; rank++)
		count += node_has_window(node_at(pass, rank));
	return count;
}

static void windows_read(struct pass *pass)
{
	struct blocks *b = &pass->blocks;

	for (uint32_t rank = 0; rank < pass->view->space.node_count; rank++) {
		const struct node *node = node_at(pass, rank);
		struct block block = { .from_ms = node->window_from_ms,
				       .to_ms = node->window_to_ms,
				       .node = space_at(&pass->view->space, rank)->node };

		if (!node_has_window(node))
			continue;
		block.from_ms = node->window_from_ms;
		b->touches[b->touch_count].block = block_add(b, &block);
		b->touches[b->touch_count].rank = rank;
		b->touches[b->touch_count].mask = UINT32_MAX;
		b->touches[b->touch_count].shut = true;
		b->touches[b->touch_count].begun = node->state == NODE_MAINTENANCE;
		b->touch_count++;
	}
}

static void bookings_read(struct pass *pass)
{
	struct blocks *b = &pass->blocks;

	for (uint32_t row = 1; row <= pass->facts->bookings.count; row++) {
		const struct booking *booking = booking_get(pass->facts, row);
		struct block block = { .from_ms = booking->from_ms,
				       .to_ms = booking->to_ms,
				       .booking = row };
		uint32_t at;

		if (!booking->name.v)
			continue;
		at = block_add(b, &block);
		for (uint32_t i = 0; i < BOOKING_NODES_MAX && booking->node[i]; i++) {
			int32_t rank = space_rank(&pass->view->space, booking->node[i]);

			if (rank == RANK_NONE)
				continue;
			b->touches[b->touch_count++] = (struct block_touch){
				.rank = (uint32_t)rank,
				.block = at,
				.mask = booking->gpus ? booking->mask[i] : UINT32_MAX,
				.shut = !booking->gpus,
			};
		}
	}
}

static uint32_t bookings_count(const struct pass *pass)
{
	uint32_t count = 0;

	for (uint32_t row = 1; row <= pass->facts->bookings.count; row++)
		count += booking_get(pass->facts, row)->name.v != 0;
	return count;
}

/* By rank: each has its place counted. */
static void touches_sort(struct pass *pass)
{
	struct blocks *b = &pass->blocks;
	uint32_t *at = arena_new_array(pass->arena, uint32_t, pass->view->space.node_count + 2);
	struct block_touch *sorted =
		arena_new_array(pass->arena, struct block_touch, b->touch_count + 1);

	for (uint32_t i = 0; i < b->touch_count; i++)
		at[b->touches[i].rank + 1]++;
	for (uint32_t rank = 0; rank < pass->view->space.node_count; rank++)
		at[rank + 1] += at[rank];
	for (uint32_t i = 0; i < b->touch_count; i++)
		sorted[at[b->touches[i].rank]++] = b->touches[i];
	b->touches = sorted;
}

bool blocks_exist(struct pass *pass)
{
	struct blocks *b = &pass->blocks;
	uint32_t windows, bookings;

	if (b->made)
		return b->count > 0;
	b->made = true;
	windows = windows_count(pass);
	bookings = bookings_count(pass);
	if (!windows && !bookings)
		return false;
	b->at = arena_new_array(pass->arena, struct block, (size_t)windows + bookings);
	b->touches = arena_new_array(pass->arena, struct block_touch,
				     (size_t)windows + (size_t)bookings * BOOKING_NODES_MAX);
	windows_read(pass);
	bookings_read(pass);
	touches_sort(pass);
	b->words = (b->count + 63) / 64;
	b->on = arena_new_array(pass->arena, uint64_t, b->words);
	b->wanted = arena_new_array(pass->arena, uint64_t, b->words);
	return true;
}

/* --- sets ---------------------------------------------------------------------------------------------- */

static bool set_has(const uint64_t *set, uint32_t block)
{
	return set[block / 64] >> block % 64 & 1;
}

static bool set_is_empty(const struct blocks *b, const uint64_t *set)
{
	for (uint32_t i = 0; i < b->words; i++)
		if (set[i])
			return false;
	return true;
}

/* Its number, given when it is seen first. */
static uint32_t set_number(struct pass *pass, const uint64_t *set)
{
	struct blocks *b = &pass->blocks;
	size_t bytes = b->words * sizeof(*set);

	if (set_is_empty(b, set))
		return 0;
	for (uint32_t i = 0; i < b->set_count; i++)
		if (memcmp(b->sets[i], set, bytes) == 0)
			return i + 1;
	if (b->set_count == BLOCK_SETS_MAX)
		return BLOCK_SETS_MAX + 1;
	b->sets[b->set_count] = arena_new_array(pass->arena, uint64_t, b->words);
	memcpy(b->sets[b->set_count], set, bytes);
	b->memos[b->set_count] = arena_new_array(pass->arena, struct shape_memo,
						 (size_t)pass->facts->shapes.count + 1);
	return ++b->set_count;
}

void blocks_put(const struct pass *pass, struct space *space, const uint64_t *on,
		const uint64_t *lifted)
{
	const struct blocks *b = &pass->blocks;

	for (uint32_t i = 0; i < b->touch_count;) {
		uint32_t rank = b->touches[i].rank, mask = 0;
		bool shut = false;

		for (; i < b->touch_count && b->touches[i].rank == rank; i++) {
			const struct block_touch *t = &b->touches[i];

			if (!set_has(on, t->block) || (lifted && set_has(lifted, t->block)))
				continue;
			mask |= t->mask;
			shut = shut || t->shut;
		}
		if (space == &pass->view->space)
			shut = shut || aparts_shut(pass, rank);
		space_block(space, rank, mask, shut);
	}
}

static void blocks_turn(struct pass *pass)
{
	struct blocks *b = &pass->blocks;

	if (memcmp(b->on, b->wanted, b->words * sizeof(*b->on)) == 0)
		return;
	memcpy(b->on, b->wanted, b->words * sizeof(*b->on));
	b->set = set_number(pass, b->on);
	blocks_put(pass, &pass->view->space, b->on, NULL);
}

void blocks_again(struct pass *pass)
{
	if (pass->blocks.count)
		blocks_put(pass, &pass->view->space, pass->blocks.on, NULL);
}

/* --- for whom ------------------------------------------------------------------------------------------ */

/* Is the block in the way of a run from..to? *ret_ever: of some run of the job. */
static bool block_is_in_way(const struct pass *pass, const struct block *block,
			    const struct job *job, int64_t from_ms, int64_t to_ms, bool *ret_ever)
{
	const struct booking *booking;

	*ret_ever = true;
	if (block->booking) {
		booking = booking_get(pass->facts, block->booking);
		*ret_ever = !booking_is_for(pass->facts, booking, job) &&
			    (booking->keep || job->tier != TIER_BEST_EFFORT);
		if (job->tier == TIER_CRITICAL && !job->limit_ms)
			to_ms = INT64_MAX;
	}
	return *ret_ever && block->from_ms < to_ms && block->to_ms > from_ms;
}

int64_t blocks_in_way(const struct pass *pass, const struct job *job, int64_t at_ms,
		      int64_t length_ms, uint64_t *ret)
{
	const struct blocks *b = &pass->blocks;
	int64_t end_ms = at_ms + length_ms, more_ms = INT64_MAX;

	memset(ret, 0, b->words * sizeof(*ret));
	for (uint32_t i = 0; i < b->count; i++) {
		bool ever;

		/* Those that are over by then are lifted by who looks ahead. */
		if (block_is_in_way(pass, &b->at[i], job, pass->facts->now_ms, end_ms, &ever))
			ret[i / 64] |= UINT64_C(1) << i % 64;
		else if (ever && b->at[i].from_ms - length_ms + 1 < more_ms)
			more_ms = b->at[i].from_ms - length_ms + 1;
	}
	return more_ms;
}

void blocks_for(struct pass *pass, const struct job *job, int64_t until_ms)
{
	aparts_for(pass, job, false);
	if (!blocks_exist(pass))
		return;
	(void)blocks_in_way(pass, job, pass->facts->now_ms, until_ms - pass->facts->now_ms,
			    pass->blocks.wanted);
	blocks_turn(pass);
}

void blocks_for_running(struct pass *pass, uint32_t job)
{
	int64_t end_ms = job_view_get(pass->view, job)->end_ms, now_ms = pass->facts->now_ms;

	blocks_for(pass, job_get(pass->facts, (struct job_id){ job }),
		   end_ms > now_ms ? end_ms : now_ms + 1);
}

void blocks_none(struct pass *pass)
{
	aparts_none(pass);
	if (!pass->blocks.count)
		return;
	memset(pass->blocks.wanted, 0, pass->blocks.words * sizeof(uint64_t));
	blocks_turn(pass);
}

struct shape_memo *blocks_memo(struct pass *pass, uint32_t shape, struct shape_memo *none)
{
	const struct blocks *b = &pass->blocks;

	if (pass->aparts.any)
		return arena_new(pass->arena, struct shape_memo);
	if (!b->set)
		return none;
	if (b->set > BLOCK_SETS_MAX)
		return arena_new(pass->arena, struct shape_memo);
	return &b->memos[b->set - 1][shape];
}

/* --- why ------------------------------------------------------------------------------------------------ */

void blocks_open(const struct pass *pass, struct space *space)
{
	const struct blocks *b = &pass->blocks;

	for (uint32_t i = 0; i < b->touch_count; i++)
		if (b->touches[i].begun)
			space_open(space, b->touches[i].rank,
				   ~node_at(pass, b->touches[i].rank)->set_aside_mask);
}

bool blocks_why(struct pass *pass, const struct place_request *request, struct verdict *ret_why)
{
	struct space *space = &pass->view->space;
	uint32_t mark = space_mark(space);
	struct blocks *b = &pass->blocks;
	uint64_t *left;
	bool fits = false;

	if (!blocks_exist(pass))
		return false;
	left = arena_new_array(pass->arena, uint64_t, b->words);
	memset(left, 0xff, b->words * sizeof(*left));
	blocks_open(pass, space);
	for (uint32_t i = 0; i < b->count && !fits; i++) {
		if (!set_has(b->on, i))
			continue;
		left[i / 64] &= ~(UINT64_C(1) << i % 64);
		for (uint32_t k = 0; k < b->words; k++)
			b->wanted[k] = b->on[k] & left[k];
		blocks_put(pass, space, b->wanted, NULL);
		fits = place_find(space, request, NULL, NULL, NULL) == 0;
		if (fits)
			*ret_why = (struct verdict){
				.code = b->at[i].booking ? REASON_RESERVED : REASON_MAINTENANCE,
				.at = b->at[i].booking ? b->at[i].booking : b->at[i].node,
				.have = b->at[i].from_ms,
				.need = b->at[i].to_ms
			};
	}
	space_rollback(space, mark);
	return fits;
}

uint32_t blocks_of_node(const struct pass *pass, const struct job *job, uint32_t rank,
			int64_t from_ms, int64_t to_ms, bool *ret_opens)
{
	const struct blocks *b = &pass->blocks;
	uint32_t mask = 0;

	*ret_opens = false;
	for (uint32_t i = 0; i < b->touch_count; i++) {
		const struct block_touch *t = &b->touches[i];
		bool ever;

		if (t->rank != rank)
			continue;
		*ret_opens = *ret_opens || t->begun;
		if (block_is_in_way(pass, &b->at[t->block], job, from_ms, to_ms, &ever))
			mask |= t->mask;
	}
	return mask;
}
