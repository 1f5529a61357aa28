/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for parts of GPUs. One task goes to the shared GPU with the least open share that is enough, to a step of 1/32
 * of a GPU, and there to the lowest rank; only when no shared GPU has room does it break a free one, on the node with the
 * fewest free GPUs.
 *
 *	wish 0.25; open on shared GPUs: n0 0.2, n1 0.5 and 0.3, n2 0.3		-> n1's second: 0.3 is enough, rank 1 is first
 *	wish 0.6; the same							-> a free GPU
 *
 * Several tasks of a gang go by the capacities of nodes, as whole GPUs do; on the node each task takes the tightest
 * GPU, among those that the gang has begun too.
 */
#include "base/check.h"
#include "core/placement/search.h"

static struct gpu_part part_need(const struct search *search, uint32_t rank)
{
	return shape_part(search->shape, node_memory_mib(search->space, rank));
}

static bool part_is_enough(struct gpu_part open, struct gpu_part need)
{
	return need.share && open.share >= need.share && open.mib >= need.mib;
}

/* What is open of the GPU for this wish. */
static struct gpu_part open_to(const struct search *search, uint32_t rank, uint32_t gpu)
{
	if (space_at(search->space, rank)->shared >> gpu & 1 &&
	    !part_may_join(parts_of(search->space, rank, gpu), &search->wish))
		return (struct gpu_part){ 0, 0 };
	return part_open(search->space, rank, gpu);
}

bool part_is_open(const struct search *search, uint32_t rank, uint32_t gpu)
{
	return part_is_enough(open_to(search, rank, gpu), part_need(search, rank));
}

uint32_t part_tasks(const struct search *search, uint32_t rank, uint32_t gpus, uint32_t most)
{
	struct gpu_part need = part_need(search, rank);
	const struct place_node *node = space_at(search->space, rank);
	uint32_t tasks = 0;

	if (search->slice)
		return slice_tasks(search, rank, gpus);
	for (gpus &= place_node_free(node) | node->shared; gpus && tasks < most; gpus &= gpus - 1) {
		struct gpu_part open = open_to(search, rank, (uint32_t)__builtin_ctz(gpus));
		uint32_t fit;

		if (!part_is_enough(open, need))
			continue;
		fit = open.share / need.share;
		if (need.mib && open.mib / need.mib < fit)
			fit = open.mib / need.mib;
		tasks += fit;
	}
	return tasks < CAPACITY_MAX ? tasks : CAPACITY_MAX;
}

/* Is the part to be had of a shared GPU of the node, one of this step? */
static bool node_has_open(const struct search *search, uint32_t rank, uint32_t step)
{
	struct gpu_part need = part_need(search, rank);

	for (uint32_t gpus = space_at(search->space, rank)->shared; gpus; gpus &= gpus - 1) {
		struct gpu_part open = open_to(search, rank, (uint32_t)__builtin_ctz(gpus));

		if (part_is_enough(open, need) && part_step(open.share) == step)
			return true;
	}
	return false;
}

uint32_t part_step_next(const struct search *search, uint32_t class, uint32_t step, uint32_t first,
			uint32_t end)
{
	const struct space *space = search->space;
	const uint64_t *set = parts_set(space, class, step);
	uint32_t rank = bits_next(set, space->node_count, first, end);

	while (rank < end && !(node_has_open(search, rank, step) && node_holds(search, rank)))
		rank = bits_next(set, space->node_count, rank + 1, end);
	return rank;
}

static uint32_t part_step_find(const struct search *search, uint32_t step, uint32_t first,
			       uint32_t end)
{
	for (uint64_t classes = search->classes; classes; classes &= classes - 1)
		end = part_step_next(search, (uint32_t)__builtin_ctzll(classes), step, first, end);
	return end;
}

int32_t part_node_find(const struct search *search, uint32_t first, uint32_t end)
{
	uint32_t least = search->shape->gpu_part ? part_step(search->shape->gpu_part) : 0;

	if (!search->space->parts)
		return RANK_NONE;
	if (search->slice)
		return slice_node_find(search, first, end);
	for (uint32_t i = least; i < PART_STEPS; i++) {
		uint32_t step = search->scatter ? PART_STEPS - 1 - (i - least) : i;
		uint32_t rank = part_step_find(search, step, first, end);

		if (rank < end)
			return (int32_t)rank;
	}
	return RANK_NONE;
}

int32_t part_nodes_find(const struct search *search, uint32_t first, uint32_t end)
{
	uint32_t best_free = UINT32_MAX, best_open = UINT32_MAX;
	int32_t best = RANK_NONE;

	for (uint32_t rank = first; rank < end; rank++) {
		const struct place_node *node = space_at(search->space, rank);
		uint32_t free = bits_count(place_node_free(node)), open = node->open_share;

		if (!node_holds(search, rank))
			continue;
		if (search->scatter) {
			free = NODE_GPUS_MAX - free;
			open = UINT32_MAX - 1 - open;
		}
		if (free < best_free || (free == best_free && open < best_open)) {
			best = (int32_t)rank;
			best_free = free;
			best_open = open;
		}
	}
	return best;
}

/* The tightest of the GPUs in use that is enough; else a free one, by islands; NODE_GPUS_MAX = neither. */
static uint32_t gpu_choose(const struct search *search, const struct place_node *node,
			   const struct gpu_part *open, uint32_t begun, uint32_t free,
			   struct gpu_part need)
{
	uint32_t best = NODE_GPUS_MAX;

	for (uint32_t gpus = begun; gpus; gpus &= gpus - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(gpus);

		if (!part_is_enough(open[gpu], need))
			continue;
		if (best == NODE_GPUS_MAX || (search->scatter ? open[gpu].share > open[best].share
							      : open[gpu].share < open[best].share))
			best = gpu;
	}
	if (free && (best == NODE_GPUS_MAX || search->scatter))
		best = (uint32_t)__builtin_ctz(gpus_pick(node, free, 1));
	return best;
}

/* GPUs that tasks which must lie in one island may take: those of the first island that holds all. */
static uint32_t gpus_allowed(const struct search *search, uint32_t rank, uint32_t tasks)
{
	const struct place_node *node = space_at(search->space, rank);

	for (uint32_t i = 0; search->shape->require == LEVEL_ISLAND && i < node->island_count; i++)
		if (part_tasks(search, rank, node->island[i], tasks) >= tasks)
			return node->island[i];
	return node->all;
}

void part_node_fill(const struct search *search, uint32_t rank, uint32_t tasks,
		    struct placement *ret)
{
	const struct place_node *node = space_at(search->space, rank);
	struct gpu_part need = part_need(search, rank), open[NODE_GPUS_MAX] = { 0 };
	uint32_t allowed = gpus_allowed(search, rank, tasks), begun = node->shared & allowed,
		 free = place_node_free(node) & allowed;

	if (search->slice) {
		slice_node_fill(search, rank, tasks, ret);
		return;
	}
	for (uint32_t gpus = begun | free; gpus; gpus &= gpus - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(gpus);

		open[gpu] = open_to(search, rank, gpu);
	}
	if (search->gpu == GPU_BREAK)
		begun = 0;
	while (tasks--) {
		uint32_t gpu = search->gpu && search->gpu != GPU_BREAK
				       ? search->gpu - 1U
				       : gpu_choose(search, node, open, begun, free, need);

		CHECK(gpu < NODE_GPUS_MAX);
		open[gpu].share -= need.share;
		open[gpu].mib -= need.mib;
		begun |= UINT32_C(1) << gpu;
		free &= ~(UINT32_C(1) << gpu);
		ret->ranks[ret->count] = rank;
		ret->masks[ret->count] = UINT32_C(1) << gpu;
		ret->parts[ret->count] = need.share;
		ret->parts_mib[ret->count++] = need.mib;
	}
}

/* --- sums -------------------------------------------------------------------------------------------------- */

/* The least share that a task takes on any GPU it may have. */
static uint32_t part_least(const struct search *search)
{
	const struct space *space = search->space;
	uint32_t least = GPU_SHARE;

	if (search->shape->gpu_part)
		return search->shape->gpu_part;
	for (uint32_t i = 0; i < space->traits_count; i++) {
		uint32_t share =
			shape_part(search->shape, space->traits.at[i].gpu_memory_mib).share;

		if (share && share < least)
			least = share;
	}
	return least;
}

uint64_t part_bound(const struct search *search, uint32_t domain)
{
	uint32_t least = part_least(search);
	uint64_t free = (uint64_t)space_free_gpus(search->space, domain, search->classes);

	if (search->slice)
		return slice_bound(search, domain);
	return free * (GPU_SHARE / least) + (uint64_t)search->space->open_share / least;
}

/*
 * Whoever may share with whom: too little is open in all, or no single GPU has enough of it; in tasks. Else the others on the
 * GPUs are in the way.
 */
bool part_verdict(const struct search *search, const struct place_request *request,
		  struct verdict *ret)
{
	struct search anybody = *search;
	struct shape bare = *search->shape;
	uint64_t fit,
		share = (uint64_t)space_free_gpus(search->space, 0, search->classes) * GPU_SHARE +
			(uint64_t)search->space->open_share;

	bare.cpu_milli = bare.memory_mib = 0;
	bare.require = 0;
	if (search->slice) {
		fit = tasks_anywhere(search, &bare, request);
		if (fit < search->tasks)
			verdict_set(ret, REASON_PARTITION, 0, 0, (int64_t)fit, search->tasks);
		return fit < search->tasks;
	}
	anybody.wish.share_gpus = 0;
	fit = tasks_anywhere(&anybody, &bare, request);
	if (fit < search->tasks)
		verdict_set(ret,
			    share < (uint64_t)part_least(search) * search->tasks
				    ? REASON_CAPACITY
				    : REASON_FRAGMENTATION,
			    0, 0, (int64_t)fit, search->tasks);
	else if (fit = tasks_anywhere(search, &bare, request), fit < search->tasks)
		verdict_set(ret, REASON_SHARING, 0, 0, (int64_t)fit, search->tasks);
	else
		return false;
	return true;
}
