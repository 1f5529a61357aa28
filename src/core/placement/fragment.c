/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice among nodes, and shared GPUs, for one task: of the sixteen tightest places that have room the one with which the
 * expected fragment of its node grows least (demand.h); of equal ones the tightest, then the lowest rank.
 *
 * What a few jobs ask for says little of those that come next. Where fewer than a hundred tasks do, no free GPU is broken for a part
 * that has room on a shared one, and a whole task takes a node of those with the fewest free GPUs that do.
 *
 *	wish 0.3; 0.4 is open on n0/0, 0.6 on n1/0. Asked for as often: 0.3, and 0.6
 *	n0/0	before: 0.6 cannot use the 0.4: 0.4 / 2.  After, 0.1 is open and nobody can use it: 0.1.	it shrinks by 0.1
 *	n1/0	before: nothing is a fragment.  After, 0.3 is open, of which 0.6 has no use: 0.3 / 2.		it grows by 0.15
 *
 * A node is looked at once as it is and once for each place on it, over at most sixteen wishes: about a microsecond for all. Rejected:
 * to look at every node, which finds little more than the sixteen tightest and costs a walk over the cluster.
 */
#include "base/check.h"
#include "core/placement/search.h"

enum { PLACES = 16 };

/* What is open of a node. */
struct idle {
	int64_t cpu_free, ram_free;
	uint32_t free; /* whole GPUs */
	uint32_t shared; /* GPUs in `open` */
	uint32_t memory_mib; /* of one GPU */
	uint8_t class;
	uint32_t gpus[NODE_GPUS_MAX]; /* which they are */
	uint32_t open[NODE_GPUS_MAX]; /* shares */
	int64_t sum; /* of them */
};

static void idle_read(const struct space *space, uint32_t rank, struct idle *ret)
{
	const struct place_node *node = space_at(space, rank);

	ret->cpu_free = node->cpu_free;
	ret->ram_free = node->ram_free;
	ret->free = bits_count(place_node_free(node));
	ret->memory_mib = node_memory_mib(space, rank);
	ret->class = node->class;
	ret->shared = 0;
	ret->sum = 0;
	for (uint32_t gpus = node->shared; gpus; gpus &= gpus - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(gpus),
			 share = part_open(space, rank, gpu).share;

		ret->gpus[ret->shared] = gpu;
		ret->open[ret->shared++] = share;
		ret->sum += share;
	}
}

static uint32_t wish_share(const struct demand_wish *wish, uint32_t gpu_memory_mib)
{
	const struct shape shape = { .gpu_part = wish->part, .gpu_part_mib = wish->part_mib };

	return wish->part ? wish->part : shape_part(&shape, gpu_memory_mib).share;
}

/* What is open of the node and of no use to the wish. */
static int64_t wish_fragment(const struct idle *idle, const struct demand_wish *wish)
{
	int64_t all = (int64_t)idle->free * GPU_SHARE + idle->sum, small = 0;
	uint32_t share;

	if (!(wish->classes >> idle->class & 1) || idle->cpu_free < wish->cpu_milli ||
	    idle->ram_free < wish->ram_mib)
		return all;
	if (!wish->part && !wish->part_mib)
		return idle->free >= wish->gpus ? idle->sum : all;
	share = wish_share(wish, idle->memory_mib);
	if (!share)
		return all;
	for (uint32_t i = 0; i < idle->shared; i++)
		small += idle->open[i] < share ? idle->open[i] : 0;
	return small;
}

static int64_t idle_fragment(const struct demand *demand, const struct idle *idle)
{
	int64_t sum = 0;

	if (!idle->free && !idle->sum)
		return 0;
	for (uint32_t i = 0; i < demand->count; i++)
		sum += wish_fragment(idle, &demand->wishes[i]) * demand->wishes[i].weight;
	return sum;
}

int64_t demand_fragment(const struct space *space, uint32_t rank)
{
	struct idle idle;

	if (!space->demand.count || !space_at(space, rank)->ready)
		return 0;
	idle_read(space, rank, &idle);
	return idle_fragment(&space->demand, &idle) / DEMAND_WEIGHT;
}

/* --- the choice ------------------------------------------------------------------------------------------------ */

struct choice {
	const struct search *search;
	uint32_t seen; /* places */
	int32_t rank; /* the best of them; RANK_NONE = none yet */
	uint8_t gpu; /* as in struct search */
	int64_t growth;
};

/* The node's idle rest when the task has taken its place: the shared GPU `at`, or free ones when it is none of them. */
static void idle_take(const struct search *search, struct idle *idle, uint32_t at)
{
	const struct shape *shape = search->shape;
	uint32_t share;

	idle->cpu_free -= shape->cpu_milli;
	idle->ram_free -= shape->memory_mib;
	if (!search->part) {
		idle->free -= shape->gpus;
		return;
	}
	share = shape_part(shape, idle->memory_mib).share;
	if (at == idle->shared) {
		idle->free--;
		idle->open[idle->shared++] = GPU_SHARE;
		idle->sum += GPU_SHARE;
	}
	idle->open[at] -= share;
	idle->sum -= share;
}

static void place_weigh(struct choice *choice, uint32_t rank, const struct idle *idle,
			int64_t before, uint32_t at)
{
	struct idle after = *idle;
	int64_t growth;

	idle_take(choice->search, &after, at);
	growth = idle_fragment(&choice->search->space->demand, &after) - before;
	if (choice->rank == RANK_NONE || growth < choice->growth) {
		choice->rank = (int32_t)rank;
		choice->gpu = at < idle->shared ? (uint8_t)(idle->gpus[at] + 1) : GPU_BREAK;
		choice->growth = growth;
	}
	choice->seen++;
}

/* Shared GPUs of which so much is open, by rank. */
static void step_weigh(struct choice *choice, uint32_t first, uint32_t end, uint32_t step)
{
	const struct search *search = choice->search;

	for (uint32_t rank = part_step_find(search, step, first, end);
	     rank < end && choice->seen < PLACES;
	     rank = part_step_find(search, step, rank + 1, end)) {
		struct idle idle;
		int64_t before;

		idle_read(search->space, rank, &idle);
		before = idle_fragment(&search->space->demand, &idle);
		for (uint32_t i = 0; i < idle.shared; i++)
			if (part_step(idle.open[i]) == step &&
			    part_is_open(search, rank, idle.gpus[i]))
				place_weigh(choice, rank, &idle, before, i);
	}
}

/* Nodes with so many free GPUs, by rank. */
static void free_weigh(struct choice *choice, uint32_t first, uint32_t end, uint32_t free)
{
	const struct search *search = choice->search;

	for (uint32_t rank = one_node_lowest(search, first, end, free);
	     rank < end && choice->seen < PLACES;
	     rank = one_node_lowest(search, rank + 1, end, free)) {
		struct idle idle;

		idle_read(search->space, rank, &idle);
		place_weigh(choice, rank, &idle, idle_fragment(&search->space->demand, &idle),
			    idle.shared);
	}
}

bool fragment_counts(const struct search *search)
{
	return search->space->demand.count && search->tasks == 1 && search->shape->gpus &&
	       !search->slice && !search->scatter &&
	       !(search->space->islands && search->shape->gpus > 1);
}

int32_t fragment_find(struct search *search, uint32_t first, uint32_t end)
{
	struct choice choice = { .search = search, .rank = RANK_NONE };
	uint32_t max = search->space->gpus_max, steps = search->part ? PART_STEPS : 0;

	bool many = search->space->demand.many;

	for (uint32_t step = part_step(search->shape->gpu_part);
	     step < steps && choice.seen < PLACES; step++)
		step_weigh(&choice, first, end, step);
	for (uint32_t free = search->shape->gpus;
	     free <= max && choice.seen < PLACES && (many || !choice.seen); free++)
		free_weigh(&choice, first, end, free);
	search->gpu = choice.gpu;
	return choice.rank;
}
