/* SPDX-License-Identifier: Apache-2.0 */
#include "core/placement/parts.h"

#include <string.h>

#include "base/check.h"
#include "core/partitioning/geometry.h"

/* --- whose ---------------------------------------------------------------------------------------------- */

/* Spread over 64 bits, so that a sum of marks equals a multiple of one mark only when all are the same. */
static uint64_t sharer_mark(uint32_t sharer)
{
	uint64_t x = sharer + UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static bool sum_admits(const struct part_sum *sum, const struct part_wish *wish)
{
	bool serves = wish->sharer & 1;

	if (!sum->count || !wish->share_gpus)
		return true;
	if (wish->share_gpus == SHARE_GPUS_OFF)
		return false;
	if (sum->serving != (serves ? sum->count : 0))
		return false;
	return wish->share_gpus == SHARE_GPUS_ANY ||
	       sum->sharers == sum->count * sharer_mark(wish->sharer);
}

bool part_may_join(const struct gpu_parts *parts, const struct part_wish *wish)
{
	return sum_admits(&parts->held, wish) && sum_admits(&parts->promised, wish);
}

/* --- what is open ---------------------------------------------------------------------------------------- */

static uint32_t less(uint32_t all, uint64_t used)
{
	return used < all ? all - (uint32_t)used : 0;
}

struct gpu_part part_open(const struct space *space, uint32_t rank, uint32_t gpu)
{
	const struct place_node *n = space_at(space, rank);
	uint32_t memory = node_memory_mib(space, rank);
	const struct gpu_parts *parts;

	if (!(n->usable & ~n->blocked & UINT32_C(1) << gpu))
		return (struct gpu_part){ 0, 0 };
	if (!(n->shared >> gpu & 1))
		return place_node_free(n) >> gpu & 1 ? (struct gpu_part){ GPU_SHARE, memory }
						     : (struct gpu_part){ 0, 0 };
	parts = parts_of(space, rank, gpu);
	if ((n->busy >> gpu & 1 && !parts->held.count) ||
	    (n->promised >> gpu & 1 && !parts->promised.count))
		return (struct gpu_part){ 0, 0 };
	return (struct gpu_part){ less(GPU_SHARE,
				       (uint64_t)parts->held.share + parts->promised.share),
				  less(memory, (uint64_t)parts->held.mib + parts->promised.mib) };
}

bool part_fits_held(const struct space *space, uint32_t rank, const struct hold *hold,
		    uint8_t share_gpus)
{
	uint32_t gpu = (uint32_t)__builtin_ctz(hold->mask);
	const struct gpu_parts *parts = parts_of(space, rank, gpu);
	const struct part_wish wish = { .sharer = hold->sharer, .share_gpus = share_gpus };

	if (hold->slice)
		return layout_kind(parts->layout, slice_at_start(hold->slice)) ==
			       slice_at_kind(hold->slice) &&
		       !(parts->held.slices >> slice_at_start(hold->slice) & 1);
	if (space_at(space, rank)->busy & hold->mask && !parts->held.count)
		return false;
	return parts->held.share + hold->part <= GPU_SHARE &&
	       (uint64_t)parts->held.mib + hold->part_mib <= node_memory_mib(space, rank) &&
	       sum_admits(&parts->held, &wish);
}

struct hold hold_unpromised(const struct space *space, uint32_t rank, struct hold hold)
{
	const struct place_node *n = space_at(space, rank);
	const struct gpu_parts *parts;
	uint32_t left;

	if (!hold.part) {
		hold.mask &= ~n->promised;
		return hold;
	}
	parts = parts_of(space, rank, (uint32_t)__builtin_ctz(hold.mask));
	if (hold.slice) {
		if (parts->promised.slices >> slice_at_start(hold.slice) & 1)
			hold.part = hold.mask = hold.part_mib = 0;
		return hold;
	}
	left = n->promised & hold.mask && !parts->promised.count
		       ? 0
		       : less(GPU_SHARE, parts->promised.share);
	hold.part = hold.part < left ? hold.part : left;
	if (!hold.part)
		hold.mask = hold.part_mib = 0;
	return hold;
}

/* --- slices ------------------------------------------------------------------------------------------------- */

static uint32_t slice_bit(const struct hold *hold)
{
	return hold->slice ? UINT32_C(1) << slice_at_start(hold->slice) : 0;
}

uint32_t slices_open(const struct space *space, uint32_t rank, uint32_t gpu, uint32_t kind)
{
	const struct place_node *n = space_at(space, rank);
	const struct gpu_parts *parts = parts_of(space, rank, gpu);
	uint32_t open = 0;

	if (!(n->usable & ~n->blocked & UINT32_C(1) << gpu))
		return 0;
	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++) {
		uint32_t here = layout_kind(parts->layout, start);

		if (here && (kind == SLICE_NONE || here == kind))
			open |= UINT32_C(1) << start;
	}
	return open & ~(uint32_t)parts->held.slices & ~(uint32_t)parts->promised.slices;
}

uint32_t slices_compute(const struct space *space, uint32_t rank, uint32_t gpu)
{
	uint32_t compute = 0, layout = parts_of(space, rank, gpu)->layout;

	for (uint32_t open = slices_open(space, rank, gpu, SLICE_NONE); open; open &= open - 1)
		compute += slice_compute(layout_kind(layout, (uint32_t)__builtin_ctz(open)));
	return compute;
}

/* What the free instances of the node come to. */
static uint32_t node_slices(const struct space *space, uint32_t rank)
{
	const struct place_node *n = space_at(space, rank);
	const struct geometry *geometry = geometry_get(space->traits.at[n->traits].geometry);
	uint32_t compute = 0;

	for (uint32_t gpus = n->sliced; gpus; gpus &= gpus - 1)
		compute += slices_compute(space, rank, (uint32_t)__builtin_ctz(gpus));
	return geometry ? compute * (GPU_SHARE / geometry->compute) : 0;
}

/* Of each usable GPU that is cut, what none of its instances has. */
static uint32_t node_lost(const struct space *space, uint32_t rank)
{
	const struct place_node *n = space_at(space, rank);
	uint32_t lost = 0;

	for (uint32_t gpus = n->sliced & n->usable; gpus; gpus &= gpus - 1)
		lost += parts_of(space, rank, (uint32_t)__builtin_ctz(gpus))->lost;
	return lost;
}

static uint32_t layout_lost(const struct space *space, uint32_t rank, const struct node *node,
			    uint32_t layout)
{
	const struct geometry *geometry =
		geometry_get(space->traits.at[space_at(space, rank)->traits].geometry);

	if (!layout || !geometry || node->partitioning == PARTITIONING_AUTO)
		return 0;
	return GPU_SHARE - layout_compute(layout) * (GPU_SHARE / geometry->compute);
}

/* Cut GPUs are busy, whether their slices are held or not. */
void slices_read(struct space *space, uint32_t rank, const struct node *node)
{
	struct place_node *n = &space->nodes.at[rank];
	uint32_t sliced = 0;

	for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++) {
		struct gpu_parts *parts =
			&space->gpu_parts.at[(size_t)rank * space->gpus_max + gpu];

		parts->layout = node->layout[gpu];
		parts->lost = layout_lost(space, rank, node, node->layout[gpu]);
		if (node->layout[gpu])
			sliced |= UINT32_C(1) << gpu;
		else if (n->sliced >> gpu & 1 && !parts->held.count)
			n->busy &= ~(UINT32_C(1) << gpu);
	}
	n->busy |= sliced;
	n->sliced = sliced;
}

/* --- changes ----------------------------------------------------------------------------------------------- */

static void gpu_log(struct space *space, uint32_t gpu)
{
	size_t room = space->parts_log.buf.size / sizeof(struct parts_undo);

	if (space->parts_log_count == room)
		array_resize(&space->parts_log.buf, room ? room * 2 : 64,
			     sizeof(struct parts_undo));
	space->parts_log.at[space->parts_log_count++] =
		(struct parts_undo){ gpu, space->gpu_parts.at[gpu] };
}

bool parts_change(struct space *space, uint32_t rank, const struct hold *hold, bool promise,
		  bool more)
{
	uint32_t gpu = rank * space->gpus_max + (uint32_t)__builtin_ctz(hold->mask);
	struct part_sum *sum =
		promise ? &space->gpu_parts.at[gpu].promised : &space->gpu_parts.at[gpu].held;
	uint64_t mark = sharer_mark(hold->sharer);

	CHECK(space->parts && bits_count(hold->mask) == 1);
	gpu_log(space, gpu);
	if (more) {
		CHECK(sum->share + hold->part <= GPU_SHARE && !(sum->slices & slice_bit(hold)));
		sum->share = (uint16_t)(sum->share + hold->part);
		sum->slices = (uint16_t)(sum->slices | slice_bit(hold));
		sum->mib += hold->part_mib;
		sum->count++;
		sum->serving = (uint16_t)(sum->serving + (hold->sharer & 1));
		sum->sharers += mark;
	} else {
		CHECK(sum->count && sum->share >= hold->part && sum->mib >= hold->part_mib);
		sum->share = (uint16_t)(sum->share - hold->part);
		sum->slices = (uint16_t)(sum->slices & ~slice_bit(hold));
		sum->mib -= hold->part_mib;
		sum->count--;
		sum->serving = (uint16_t)(sum->serving - (hold->sharer & 1));
		sum->sharers -= mark;
	}
	return sum->count > 0;
}

uint8_t parts_clear(struct space *space, uint32_t rank)
{
	uint8_t entries = 0;

	for (uint32_t shared = space_at(space, rank)->shared | space_at(space, rank)->sliced;
	     shared; shared &= shared - 1) {
		uint32_t gpu = rank * space->gpus_max + (uint32_t)__builtin_ctz(shared);

		gpu_log(space, gpu);
		space->gpu_parts.at[gpu] =
			(struct gpu_parts){ .layout = space->gpu_parts.at[gpu].layout,
					    .lost = space->gpu_parts.at[gpu].lost };
		entries++;
	}
	return entries;
}

void parts_rollback(struct space *space, uint32_t entries)
{
	for (; entries; entries--) {
		const struct parts_undo *undo = &space->parts_log.at[--space->parts_log_count];

		space->gpu_parts.at[undo->gpu] = undo->before;
	}
}

/* --- the sets ------------------------------------------------------------------------------------------------ */

static uint64_t *set_at(const struct space *space, uint32_t class, uint32_t step)
{
	return space->part_sets.at +
	       ((size_t)class * PART_STEPS + step) * bits_words(space->node_count);
}

const uint64_t *parts_set(const struct space *space, uint32_t class, uint32_t step)
{
	return set_at(space, class, step);
}

/* Of a node that has fewer GPUs than it had, some may be held that are not there: nobody shares those. */
static uint32_t node_shared(const struct space *space, uint32_t rank)
{
	const struct place_node *n = space_at(space, rank);
	uint32_t shared = 0;

	for (uint32_t gpus = (n->busy | n->promised) & n->all & ~n->sliced; gpus;
	     gpus &= gpus - 1) {
		const struct gpu_parts *parts =
			parts_of(space, rank, (uint32_t)__builtin_ctz(gpus));

		if (parts->held.count || parts->promised.count)
			shared |= gpus & -gpus;
	}
	return shared;
}

static uint32_t node_open(const struct space *space, uint32_t rank, uint32_t shared,
			  uint32_t *ret_steps)
{
	uint32_t open = 0;

	*ret_steps = 0;
	for (; shared; shared &= shared - 1) {
		uint32_t share = part_open(space, rank, (uint32_t)__builtin_ctz(shared)).share;

		open += share;
		if (share)
			*ret_steps |= UINT32_C(1) << part_step(share);
	}
	return open;
}

void parts_follow(struct space *space, uint32_t rank)
{
	struct place_node *n = &space->nodes.at[rank];
	uint32_t steps, open, changed;

	n->shared = (n->busy | n->promised) ? node_shared(space, rank) : 0;
	open = node_open(space, rank, n->shared, &steps);
	space->open_share += (int64_t)open - n->open_share;
	n->open_share = open;
	space->slice_share -= n->slice_share;
	n->slice_share = n->sliced ? node_slices(space, rank) : 0;
	space->slice_share += n->slice_share;
	n->lost_share = n->sliced ? node_lost(space, rank) : 0;
	for (changed = steps ^ n->open_steps; changed; changed &= changed - 1) {
		uint32_t step = (uint32_t)__builtin_ctz(changed);

		if (steps >> step & 1)
			bits_add(set_at(space, n->class, step), space->node_count, rank);
		else
			bits_remove(set_at(space, n->class, step), space->node_count, rank);
	}
	n->open_steps = steps;
}

void parts_copy(struct space *to, const struct space *from, uint32_t rank)
{
	const struct place_node *n = space_at(from, rank);

	for (uint32_t changed = n->open_steps ^ space_at(to, rank)->open_steps; changed;
	     changed &= changed - 1) {
		uint32_t step = (uint32_t)__builtin_ctz(changed);

		if (n->open_steps >> step & 1)
			bits_add(set_at(to, n->class, step), to->node_count, rank);
		else
			bits_remove(set_at(to, n->class, step), to->node_count, rank);
	}
}

void parts_build(struct space *space, const struct facts *facts)
{
	for (uint32_t id = 1; id <= facts->shapes.count && !space->slices; id++) {
		const struct shape *shape = shape_get(facts, (struct shape_id){ id });

		space->parts = space->parts || shape_is_part(shape);
		space->slices = shape->slice != 0;
	}
	for (uint32_t rank = 0; rank < space->node_count && !space->slices; rank++)
		space->slices = node_is_cut(
			node_get(facts, (struct node_id){ space_at(space, rank)->node }));
	space->parts = space->parts || space->slices;
	if (!space->parts)
		return;
	array_resize(&space->gpu_parts.buf, (size_t)space->node_count * space->gpus_max,
		     sizeof(struct gpu_parts));
	array_resize(&space->part_sets.buf,
		     (size_t)space->class_count * PART_STEPS * bits_words(space->node_count),
		     sizeof(uint64_t));
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		slices_read(space, rank,
			    node_get(facts, (struct node_id){ space_at(space, rank)->node }));
		parts_follow(space, rank);
	}
}

/* --- checks ---------------------------------------------------------------------------------------------------- */

void parts_verify(const struct space *space)
{
	int64_t all = 0, slices = 0;

	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct place_node *n = space_at(space, rank);
		uint32_t steps;

		CHECK(n->shared == node_shared(space, rank));
		CHECK((n->shared & ~(n->busy | n->promised)) == 0);
		CHECK(n->open_share == node_open(space, rank, n->shared, &steps));
		CHECK(n->open_steps == steps);
		all += n->open_share;
		CHECK(n->slice_share == node_slices(space, rank));
		slices += n->slice_share;
		CHECK(n->lost_share == node_lost(space, rank));
		for (uint32_t step = 0; step < PART_STEPS; step++)
			CHECK((bits_next(set_at(space, n->class, step), space->node_count, rank,
					 rank + 1) == rank) == (steps >> step & 1));
	}
	CHECK(all == space->open_share && slices == space->slice_share);
}

static bool bytes_same(const struct buf *a, const struct buf *b)
{
	return a->size == b->size && (!a->size || memcmp(a->data, b->data, a->size) == 0);
}

bool parts_same(const struct space *a, const struct space *b)
{
	return a->parts == b->parts && a->slices == b->slices && a->open_share == b->open_share &&
	       a->slice_share == b->slice_share &&
	       bytes_same(&a->gpu_parts.buf, &b->gpu_parts.buf) &&
	       bytes_same(&a->part_sets.buf, &b->part_sets.buf);
}
