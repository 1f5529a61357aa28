/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice among nodes, and shared GPUs, for one task: of the 32 tightest places that have room the one with which the
 * expected fragment of its node grows least (demand.h); of equal ones the tightest, then the lowest rank.
 *
 * What a few jobs ask for says little of those that come next. Where fewer than a hundred tasks do, no free GPU is broken for a part
 * that has room on a shared one, and a whole task takes a node of those with the fewest free GPUs that do.
 *
 *	wish 0.3; 0.4 is open on n0/0, 0.6 on n1/0. Asked for as often: 0.3, and 0.6
 *	n0/0	before: 0.6 cannot use the 0.4: 0.4 / 2.  After, 0.1 is open and nobody can use it: 0.1.	it shrinks by 0.1
 *	n1/0	before: nothing is a fragment.  After, 0.3 is open, of which 0.6 has no use: 0.3 / 2.		it grows by 0.15
 *
 * Where a hundred or more do, growth counts in sixteenths of a GPU, and of equal places the lowest rank is taken: finer differences
 * say more of who happens to ask now than of who asks next, and work that follows them is strewn over all nodes. On the default list of openb
 * 4.63 % of the GPUs stay open so in the mean of ten seeds; 5.42 % did before this rule and the longer list of wishes (docs/benchmarks.md).
 *
 * Classes of nodes that tasks with narrower wishes are expected to need (scarce.c) come second: a task that accepts others goes there
 * only when no other class has room for it.
 *
 * A node is looked at once as it is and once for each place on it, over 64 wishes side by side: some 0.1 us each. Nodes that are alike
 * count as one. Rejected: to look at every node, which finds little more and costs a walk over the cluster; to look a task further ahead.
 */
#include "base/check.h"
#include "core/placement/search.h"

enum { PLACES = 32, GROWTH_STEPS = 16 };

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

/* Wishes that the node has processors, memory and whole GPUs for weigh so much; in `small`, by shared GPU, those that it is too small for. */
struct fits {
	int32_t weight, whole;
	int32_t small[NODE_GPUS_MAX];
};

static int32_t room_of(int64_t amount)
{
	return amount < 0 ? -1 : amount < INT32_MAX ? (int32_t)amount : INT32_MAX;
}

/* Sums without a branch over a fixed number of wishes, which the compiler does several at a time. */
static void fits_count(const struct demand *demand, const struct demand_row *row,
		       const struct idle *idle, struct fits *ret)
{
	int32_t cpu = room_of(idle->cpu_free), ram = room_of(idle->ram_free),
		free = (int32_t)idle->free, can[DEMAND_WISHES], weight = 0, whole = 0;

	for (uint32_t i = 0; i < DEMAND_WISHES; i++) {
		can[i] = row->runs[i] & -((demand->cpu_milli[i] <= cpu) &
					  (demand->ram_mib[i] <= ram) & (demand->gpus[i] <= free));
		whole += demand->whole[i] & can[i];
		can[i] &= demand->weight[i];
		weight += can[i];
	}
	ret->weight = weight;
	ret->whole = whole;
	for (uint32_t g = 0; g < idle->shared; g++) {
		int32_t open = (int32_t)idle->open[g], small = 0;

		for (uint32_t i = 0; i < DEMAND_WISHES; i++)
			small += can[i] & -(open < row->share[i]);
		ret->small[g] = small;
	}
}

/*
 * What is open of the node and of no use, times the weight of the wishes that have no use for it. To one that does not run there nothing is
 * of use; to one for whole GPUs all but these.
 */
static int64_t idle_fragment(const struct demand *demand, const struct idle *idle)
{
	int64_t all = (int64_t)idle->free * GPU_SHARE + idle->sum, sum;
	const struct demand_row *row = &demand->rows[idle->class];
	struct demand_row mixed;
	struct fits fits;

	if (!all)
		return 0;
	if (idle->class == CLASS_MIXED) {
		demand_row_make(demand, CLASS_MIXED, idle->memory_mib, &mixed);
		row = &mixed;
	}
	fits_count(demand, row, idle, &fits);
	sum = all * (demand->all - fits.weight) + idle->sum * fits.whole;
	for (uint32_t g = 0; g < idle->shared; g++)
		sum += (int64_t)idle->open[g] * fits.small[g];
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
	uint32_t seen; /* places that differ */
	int32_t rank; /* the best of them; RANK_NONE = none yet */
	uint8_t gpu; /* as in struct search */
	int64_t growth, steps; /* exactly, and in steps */
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

/* Growth in sixteenths of a GPU, rounded; less is chance where many ask. */
static int64_t growth_steps(const struct choice *choice, int64_t growth)
{
	const int64_t step = (int64_t)GPU_SHARE * DEMAND_WEIGHT / GROWTH_STEPS,
		      most = (int64_t)NODE_GPUS_MAX * GROWTH_STEPS;

	return choice->search->space->demand.many ? (growth + step / 2 + most * step) / step : 0;
}

static bool place_is_less(const struct choice *choice, uint32_t rank, int64_t growth, int64_t steps)
{
	if (choice->rank == RANK_NONE || steps != choice->steps)
		return choice->rank == RANK_NONE || steps < choice->steps;
	if (choice->search->space->demand.many && (int32_t)rank != choice->rank)
		return (int32_t)rank < choice->rank;
	return growth < choice->growth;
}

static void place_weigh(struct choice *choice, uint32_t rank, const struct idle *idle,
			int64_t before, uint32_t at)
{
	struct idle after = *idle;
	int64_t growth, steps;

	idle_take(choice->search, &after, at);
	growth = idle_fragment(&choice->search->space->demand, &after) - before;
	steps = growth_steps(choice, growth);
	choice->seen++;
	if (!place_is_less(choice, rank, growth, steps))
		return;
	choice->rank = (int32_t)rank;
	choice->gpu = at < idle->shared ? (uint8_t)(idle->gpus[at] + 1) : GPU_BREAK;
	choice->growth = growth;
	choice->steps = steps;
}

/* Nodes with room, by rank: with shared GPUs of one step, or with so many free GPUs. Each class has its own next one. */
struct walk {
	const struct search *search;
	uint32_t end, number; /* the step, or how many are free */
	bool parts;
	uint32_t rank, from; /* the last one that was found, and its class */
	uint32_t alike; /* 1 + the class of which only odd nodes are found (space_odd); 0 = none */
	uint32_t next[CLASSES_MAX];
};

static uint32_t walk_class(const struct walk *walk, uint32_t class, uint32_t first)
{
	const uint64_t *among = class + 1 == walk->alike ? space_odd(walk->search->space) : NULL;

	return walk->parts
		       ? part_step_next(walk->search, class, walk->number, first, walk->end)
		       : one_node_next(walk->search, class, first, walk->end, walk->number, among);
}

static void walk_begin(struct walk *walk, const struct search *search, bool parts, uint32_t number,
		       uint32_t first, uint32_t end)
{
	walk->search = search;
	walk->end = end;
	walk->number = number;
	walk->parts = parts;
	walk->rank = end;
	walk->alike = 0;
	for (uint64_t classes = search->classes; classes; classes &= classes - 1) {
		uint32_t class = (uint32_t)__builtin_ctzll(classes);

		walk->next[class] = walk_class(walk, class, first);
	}
}

/* walk->end = there is no other. */
static uint32_t walk_next(struct walk *walk)
{
	uint32_t rank = walk->end, from = 0;

	if (walk->rank < walk->end)
		walk->next[walk->from] = walk_class(walk, walk->from, walk->rank + 1);
	for (uint64_t classes = walk->search->classes; classes; classes &= classes - 1) {
		uint32_t class = (uint32_t)__builtin_ctzll(classes);

		if (walk->next[class] < rank) {
			rank = walk->next[class];
			from = class;
		}
	}
	walk->rank = rank;
	walk->from = from;
	return rank;
}

/* Nodes alike to the one that was found last are passed over from here on, and no others. */
static void walk_pass_alike(struct walk *walk)
{
	uint32_t before = walk->alike, at = walk->rank;
	bool odd = space_odd(walk->search->space)[at / 64] >> at % 64 & 1;

	walk->alike = odd || walk->from == CLASS_MIXED ? 0 : walk->from + 1;
	if (before && before - 1 != walk->from)
		walk->next[before - 1] = walk_class(walk, before - 1, at + 1);
}

/* Shared GPUs of which so much is open, by rank. */
static void step_weigh(struct choice *choice, uint32_t first, uint32_t end, uint32_t step)
{
	const struct search *search = choice->search;
	struct walk walk;

	walk_begin(&walk, search, true, step, first, end);
	for (uint32_t rank; choice->seen < PLACES && (rank = walk_next(&walk)) < end;) {
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

/* Of as many free GPUs. */
static bool node_is_like(const struct place_node *node, const struct idle *idle)
{
	return node->class == idle->class && node->class != CLASS_MIXED && node->shared == 0 &&
	       idle->shared == 0 && node->cpu_free == idle->cpu_free &&
	       node->ram_free == idle->ram_free;
}

/*
 * Nodes with so many free GPUs, by rank. Of nodes in a row that are alike the first says it for all. A cluster has many that are not odd: they
 * are passed over as a set.
 */
static void free_weigh(struct choice *choice, uint32_t first, uint32_t end, uint32_t free)
{
	const struct search *search = choice->search;
	struct idle idle = { .shared = 1 }; /* of the last one weighed */
	struct walk walk;

	walk_begin(&walk, search, false, free, first, end);
	for (uint32_t rank; choice->seen < PLACES && (rank = walk_next(&walk)) < end;) {
		if (node_is_like(space_at(search->space, rank), &idle))
			continue;
		idle_read(search->space, rank, &idle);
		place_weigh(choice, rank, &idle, idle_fragment(&search->space->demand, &idle),
			    idle.shared);
		walk_pass_alike(&walk);
	}
}

bool fragment_counts(const struct search *search)
{
	return search->space->demand.count && search->tasks == 1 && search->shape->gpus &&
	       !search->slice && !search->scatter &&
	       !(search->space->islands && search->shape->gpus > 1);
}

static int32_t fragment_find_in(struct search *search, uint32_t first, uint32_t end)
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

int32_t fragment_find(struct search *search, uint32_t first, uint32_t end)
{
	uint64_t all = search->classes, scarce = scarce_classes(search);
	int32_t rank = RANK_NONE;

	if (scarce && scarce != all) {
		search->classes = all & ~scarce;
		rank = fragment_find_in(search, first, end);
		search->classes = scarce; /* the others have no room */
	}
	if (rank == RANK_NONE)
		rank = fragment_find_in(search, first, end);
	search->classes = all;
	return rank;
}
