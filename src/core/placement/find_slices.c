/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for slices of GPUs: instances that exist and that nobody holds. A task takes the GPU of which the least compute is
 * free, so that GPUs whose slices all lie idle stay so and can be cut anew.
 *
 *	n0/0 is cut into 3g + 3g, n0/1 into 3g + 4g, and one 3g of n0/1 is held: a task that wants a 3g has one place, n0/0.
 *	A second GPU with 3g + 3g, one of them held, would be taken first: 3 compute slices are free there, 6 on n0/0.
 */
#include "base/check.h"
#include "core/partitioning/geometry.h"
#include "core/placement/search.h"

/* What the wish is on GPUs of this node; 0 = they have no such slice. */
static const struct slice_profile *profile_at(const struct search *search, uint32_t rank)
{
	const struct space *space = search->space;

	return geometry_wished(
		geometry_get(space->traits.at[space_at(space, rank)->traits].geometry),
		search->slice);
}

uint32_t slice_tasks(const struct search *search, uint32_t rank, uint32_t gpus)
{
	const struct slice_profile *profile;
	uint32_t tasks = 0;

	gpus &= space_at(search->space, rank)->sliced;
	if (!gpus)
		return 0;
	profile = profile_at(search, rank);
	for (; profile && gpus; gpus &= gpus - 1)
		tasks += bits_count(slices_open(search->space, rank, (uint32_t)__builtin_ctz(gpus),
						profile->kind));
	return tasks < CAPACITY_MAX ? tasks : CAPACITY_MAX;
}

/* The GPU of the node for one task, of these; NODE_GPUS_MAX = none. *ret_free: how much compute is free there. */
static uint32_t gpu_find(const struct search *search, uint32_t rank, uint32_t kind, uint32_t gpus,
			 uint32_t *ret_free)
{
	uint32_t best = NODE_GPUS_MAX;

	*ret_free = UINT32_MAX;
	for (; gpus; gpus &= gpus - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(gpus), free;

		if (!slices_open(search->space, rank, gpu, kind))
			continue;
		free = slices_compute(search->space, rank, gpu);
		if (search->scatter)
			free = UINT32_MAX - 1 - free;
		if (free < *ret_free) {
			best = gpu;
			*ret_free = free;
		}
	}
	return best;
}

int32_t slice_node_find(const struct search *search, uint32_t first, uint32_t end)
{
	uint32_t best_free = UINT32_MAX;
	int32_t best = RANK_NONE;

	for (uint32_t rank = first; rank < end; rank++) {
		const struct place_node *node = space_at(search->space, rank);
		uint32_t free;

		if (!node->sliced || node_capacity(search, rank) < search->tasks)
			continue;
		(void)gpu_find(search, rank, profile_at(search, rank)->kind, node->sliced, &free);
		if (free < best_free) {
			best = (int32_t)rank;
			best_free = free;
		}
	}
	return best;
}

/* Each task takes the GPU with the least left, then the first such instance of it. */
void slice_node_fill(const struct search *search, uint32_t rank, uint32_t tasks,
		     struct placement *ret)
{
	const struct space *space = search->space;
	const struct slice_profile *profile = profile_at(search, rank);
	uint32_t taken[NODE_GPUS_MAX] = { 0 };

	CHECK(profile);
	while (tasks--) {
		uint32_t gpus = space_at(space, rank)->sliced, gpu, free, open, start;

		for (uint32_t rest = gpus; rest; rest &= rest - 1) {
			gpu = (uint32_t)__builtin_ctz(rest);
			if (!(slices_open(space, rank, gpu, profile->kind) & ~taken[gpu]))
				gpus &= ~(UINT32_C(1) << gpu);
		}
		gpu = gpu_find(search, rank, profile->kind, gpus, &free);
		CHECK(gpu < NODE_GPUS_MAX);
		open = slices_open(space, rank, gpu, profile->kind) & ~taken[gpu];
		start = (uint32_t)__builtin_ctz(open);
		taken[gpu] |= UINT32_C(1) << start;
		ret->ranks[ret->count] = rank;
		ret->masks[ret->count] = UINT32_C(1) << gpu;
		ret->parts[ret->count] = search->shape->gpu_part;
		ret->parts_mib[ret->count] = profile->memory_mib;
		ret->slices[ret->count++] = slice_at(profile->kind, start);
	}
}

uint64_t slice_bound(const struct search *search, uint32_t domain)
{
	const struct domain *d = &search->space->domains.at[domain];
	uint64_t tasks = 0;

	for (uint32_t rank = d->first; rank < d->end; rank++)
		if (space_at(search->space, rank)->sliced)
			tasks += slice_tasks(search, rank, UINT32_MAX);
	return tasks;
}
