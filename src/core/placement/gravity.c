/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data have weight: where a job's data sets are known by size, and what it takes to bring them elsewhere is known too, a place is
 * weighed by all that the job costs there.
 *
 *	money	GPUs for the run and for the time that they wait for the data, at the price of their model, and the transfers
 *	time	the run, as fast as the model and the network of the place are, and the longest transfer of a host
 *
 *	a job of 10 h on one GPU names imagenet (13.50 to bring to us, 150 s). eu: H100 for 4.00; us: H100 for 2.00
 *	eu: 40.00; us: 20.00 + 0.08 + 13.50 = 33.58, so us. A job of 2 h: eu 8.00, us 17.58, so eu.
 *
 * The best place anywhere is compared with the best one among the nodes to which it takes least, among these and the next, ...: at most
 * GRAVITY_STEPS different amounts. Known before unknown; then, for tasks that communicate over a network of which nobody knows the
 * speed, the narrower level; then less money; then less time. Of equals it is the place that it would be without all this.
 *
 * Each host loads its data itself, one set after the other; all hosts at once. It is a preference: it keeps no job waiting.
 */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/placement/search.h"

__extension__ typedef __int128 wide;

enum { GRAVITY_STEPS = 8 };
#define HOUR_MS INT64_C(3600000)

/* What a place comes to. */
struct weight {
	bool known, placed_by_speed;
	uint8_t level;
	wide micro, ms;
};

static bool move_is_less(struct data_move a, struct data_move b)
{
	if ((a.ms < 0) != (b.ms < 0))
		return b.ms < 0;
	return a.micro != b.micro ? a.micro < b.micro : a.ms < b.ms;
}

bool place_moves(const struct space *space, const struct shape *shape,
		 const struct placement *place, struct data_move *ret)
{
	*ret = (struct data_move){ 0 };
	if (!space_data_weighs(space, shape))
		return false;
	for (uint32_t i = 0; i < place->count; i++) {
		struct data_move move;

		if (i && place->ranks[i] == place->ranks[i - 1])
			continue;
		move = space_data_move(space, shape, place->ranks[i]);
		if (move.ms < 0 || ret->ms < 0) {
			ret->ms = -1;
			ret->micro = 0;
			return true;
		}
		ret->ms = move.ms > ret->ms ? move.ms : ret->ms;
		if (__builtin_add_overflow(ret->micro, move.micro, &ret->micro))
			ret->micro = INT64_MAX;
	}
	return true;
}

/* An hour of its GPUs, and how fast the slowest of its models is. */
static wide hour_micro(const struct space *space, const struct shape *shape,
		       const struct placement *place, uint32_t *ret_speed)
{
	wide sum = 0;

	*ret_speed = 0;
	for (uint32_t i = 0; i < place->count; i++) {
		const struct traits *traits =
			&space->traits.at[space_at(space, place->ranks[i])->traits];
		uint32_t which = place->which ? (uint32_t)place->which[i] : i,
			 speed = shape_speed(shape, traits->model);

		sum += (wide)rank_share_on(shape, which, traits->gpu_memory_mib) *
		       traits->price_micro / GPU_SHARE;
		*ret_speed = !i || speed < *ret_speed ? speed : *ret_speed;
	}
	return sum;
}

static void weigh(const struct space *space, const struct place_request *request,
		  const struct placement *place, struct arena *arena, struct weight *ret)
{
	struct place_speed fast;
	struct data_move move;
	uint32_t speed;
	wide hour = hour_micro(space, request->shape, place, &speed), ms = request->work_ms;

	(void)place_moves(space, request->shape, place, &move);
	*ret = (struct weight){ .known = move.ms >= 0, .level = place->level };
	ret->placed_by_speed =
		place->count < 2 ||
		(space_fabric(space) &&
		 place_speed(space, request->shape, request->kind, place, arena, &fast));
	if (speed)
		ms = ms * SPEED_WHOLE / speed;
	if (place->count > 1 && ret->placed_by_speed)
		ms = ms * fast.slowdown_permille / 1000;
	ret->ms = ms + (ret->known ? move.ms : 0);
	ret->micro = hour * ret->ms / HOUR_MS + move.micro;
}

static bool weighs_less(const struct weight *a, const struct weight *b)
{
	if (a->known != b->known)
		return a->known;
	if (!(a->placed_by_speed && b->placed_by_speed) && a->level != b->level)
		return a->level > b->level;
	return a->micro != b->micro ? a->micro < b->micro : a->ms < b->ms;
}

/* The least amounts that it takes to bring the data to a node that it could use, rising; so many there are. */
static uint32_t steps_list(const struct space *space, const struct place_request *request,
			   struct data_move ret[GRAVITY_STEPS])
{
	uint64_t classes;
	uint32_t count = 0;

	if (!space_classes_of(space, request->shape, &classes))
		return 0;
	classes &= ~request->closed;
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct place_node *n = space_at(space, rank);
		struct data_move move;
		uint32_t at = 0;

		if (!n->ready || !(classes >> n->class & 1))
			continue;
		move = space_data_move(space, request->shape, rank);
		while (at < count && move_is_less(ret[at], move))
			at++;
		if (at == GRAVITY_STEPS || (at < count && !move_is_less(move, ret[at])))
			continue;
		count = count < GRAVITY_STEPS ? count + 1 : count;
		memmove(ret + at + 1, ret + at, (count - at - 1) * sizeof(*ret));
		ret[at] = move;
	}
	return count;
}

/* All other nodes are barred. */
static uint64_t *step_bars(const struct space *space, const struct place_request *request,
			   struct data_move most, struct arena *arena)
{
	uint64_t *barred = arena_new_array(arena, uint64_t, bits_row(space->node_count));

	for (uint32_t rank = 0; rank < space->node_count; rank++)
		if ((request->barred && request->barred[rank / 64] >> rank % 64 & 1) ||
		    move_is_less(most, space_data_move(space, request->shape, rank)))
			barred[rank / 64] |= UINT64_C(1) << rank % 64;
	return barred;
}

void gravity_find(struct space *space, const struct place_request *request, struct arena *arena,
		  struct placement *ret)
{
	struct data_move steps[GRAVITY_STEPS];
	uint32_t count = steps_list(space, request, steps);
	struct weight best, weight;

	weigh(space, request, ret, arena, &best);
	for (uint32_t i = 0; i < count; i++) {
		struct place_request near = *request;
		struct placement place;

		near.barred = step_bars(space, request, steps[i], arena);
		if (place_anywhere(space, &near, arena, &place, NULL) != 0)
			continue;
		weigh(space, request, &place, arena, &weight);
		if (!weighs_less(&weight, &best))
			continue;
		best = weight;
		*ret = place;
	}
}
