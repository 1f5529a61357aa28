/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a job's data are. A job names data sets, and nodes keep some; one that goes on from a checkpoint has run somewhere
 * before, and its files may still be there. Both are preferences: they choose among places that are as good in the topology, and never
 * keep a job waiting.
 *
 *	level and hosts of the best place anywhere		say two hosts in one rack
 *	the same search only where it ran before		taken if no wider and no more hosts
 *	only where all its data sets are, all but one ...	likewise, the most first
 *	else the place anywhere, of equally tight nodes those that have something first
 *
 *	n0 keeps imagenet and has 8 GPUs free, n1 has 2 free; one task of 2 GPUs that names imagenet	n0: one host is one host
 *	r0: n0 keeps it, 2 free; n1 2 free | r1: n2, n3 keep it, 1 free each; two tasks of 1 GPU	n0: one host beats two with data
 *
 * Rejected: to weigh data against levels. Loading is paid once, communication in every step.
 */
#include "core/placement/speed.h"

static uint32_t hosts_of(const struct placement *place)
{
	uint32_t hosts = 0;

	for (uint32_t i = 0; i < place->count; i++)
		hosts += i == 0 || place->ranks[i] != place->ranks[i - 1];
	return hosts;
}

/* By how fast the GPUs talk to each other; loading is paid once, that in every step. */
static bool slower(const struct search *search, struct arena *arena, const struct placement *near,
		   const struct placement *best)
{
	struct fabric_estimate of_near, of_best;

	speed_estimate(search->space, near, arena, &of_near);
	speed_estimate(search->space, best, arena, &of_best);
	return speed_step(of_near.mbps) < speed_step(of_best.mbps);
}

/* Replaces the place by one on these ranks alone, when there is one as good. */
static bool near_try(const struct search *search, const struct place_request *request,
		     const uint64_t *only, struct arena *arena, struct placement *ret)
{
	bool scattered = search->shape->spread || shape_is_apart(search->shape, search->tasks);
	struct search some = *search;
	struct placement place;

	some.only = only;
	some.exact = true;
	if (search_anywhere(&some, request, arena, &place, NULL) != 0 || place.level < ret->level ||
	    (!scattered && hosts_of(&place) > hosts_of(ret)))
		return false;
	if (search->talks && slower(search, arena, &place, ret))
		return false;
	*ret = place;
	return true;
}

static uint32_t data_count(const struct shape *shape)
{
	uint32_t count = 0;

	while (count < SHAPE_DATA_MAX && shape->data[count].v)
		count++;
	return count;
}

uint32_t space_data_at(const struct space *space, const struct shape *shape, uint32_t rank)
{
	uint32_t have = 0, wanted = data_count(shape);

	for (uint32_t i = 0; i < wanted; i++) {
		const uint64_t *bits = space_data(space, shape->data[i]);

		have += bits && bits[rank / 64] >> rank % 64 & 1;
	}
	return have;
}

/* Ranks that have at least so many of the data sets; false: there is none. */
static bool data_ranks(const struct search *search, uint32_t least, uint64_t *ret)
{
	const struct space *space = search->space;
	bool any = false;

	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		bool has = space_data_at(space, search->shape, rank) >= least;

		if (has)
			ret[rank / 64] |= UINT64_C(1) << rank % 64;
		any = any || has;
	}
	return any;
}

/* Of equally tight nodes these first. */
static void like(const struct search *search, const struct place_request *request,
		 const uint64_t *liked, struct arena *arena, struct placement *ret)
{
	struct search some = *search;
	struct placement place;

	some.liked = liked;
	if (search_anywhere(&some, request, arena, &place, NULL) == 0 &&
	    !(search->talks && slower(search, arena, &place, ret)))
		*ret = place;
}

static void near_find(const struct search *search, const struct place_request *request,
		      struct arena *arena, struct placement *ret)
{
	const uint64_t *liked = request->home;

	if (request->home && near_try(search, request, request->home, arena, ret))
		return;
	for (uint32_t least = data_count(search->shape); least > 0; least--) {
		uint64_t *ranks =
			arena_new_array(arena, uint64_t, bits_row(search->space->node_count));

		if (!data_ranks(search, least, ranks))
			continue;
		if (near_try(search, request, ranks, arena, ret))
			return;
		liked = liked ? liked : ranks;
	}
	if (liked)
		like(search, request, liked, arena, ret);
}

int search_place(const struct search *search, const struct place_request *request,
		 struct arena *arena, struct placement *ret, struct verdict *ret_why)
{
	int rc = search_anywhere(search, request, arena, ret, ret_why);

	if (rc == 0 && ret && (request->home || search->shape->data[0].v))
		near_find(search, request, arena, ret);
	return rc;
}
