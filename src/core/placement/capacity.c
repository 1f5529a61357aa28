/* SPDX-License-Identifier: Apache-2.0 */
/* What one node and one domain hold of a wish: capacities, and histograms of them. */
#include <string.h>

#include "core/placement/numa.h"
#include "core/placement/search.h"

/* --- capacity of a node ----------------------------------------------------------------------------- */

/* The mixed class holds unlike nodes: each is asked itself. */
static bool node_suits(const struct search *search, uint32_t rank)
{
	const struct place_node *node = space_at(search->space, rank);

	return node->ready && search->classes >> node->class & 1 &&
	       (node->class != CLASS_MIXED ||
		(space_node_suits(search->space, rank, search->shape) &&
		 model_is_open(search, rank)));
}

static uint32_t gpus_tasks(const struct search *search, uint32_t rank, uint32_t gpus, uint32_t most)
{
	if (search->part)
		return part_tasks(search, rank, gpus, most);
	if (search->shape->align)
		return numa_tasks(search, rank, gpus);
	return bits_count(place_node_free(space_at(search->space, rank)) & gpus) /
	       search->shape->gpus;
}

static uint32_t node_gpu_tasks(const struct search *search, uint32_t rank, uint32_t most)
{
	const struct place_node *node = space_at(search->space, rank);
	uint32_t best = 0;

	if (search->shape->gpus == 0)
		return CAPACITY_MAX;
	if (search->shape->require != LEVEL_ISLAND)
		return gpus_tasks(search, rank, node->all, most);
	for (uint32_t i = 0; i < node->island_count; i++) {
		uint32_t tasks = gpus_tasks(search, rank, node->island[i], most);

		best = tasks > best ? tasks : best;
	}
	return best;
}

/* So many tasks, as far as `most`: of those beyond nobody asks. */
static uint32_t node_tasks(const struct search *search, uint32_t rank, uint32_t most)
{
	const struct place_node *node = space_at(search->space, rank);
	const struct shape *shape = search->shape;
	int64_t tasks;

	if (!node_suits(search, rank) ||
	    (search->barred && search->barred[rank / 64] >> rank % 64 & 1) ||
	    (search->only && !(search->only[rank / 64] >> rank % 64 & 1)))
		return 0;
	tasks = node_gpu_tasks(search, rank, most);
	if (shape->cpu_milli && node->cpu_free / shape->cpu_milli < tasks)
		tasks = node->cpu_free / shape->cpu_milli;
	if (shape->memory_mib && node->ram_free / shape->memory_mib < tasks)
		tasks = node->ram_free / shape->memory_mib;
	return tasks > 0 ? (uint32_t)tasks : 0;
}

uint32_t node_capacity(const struct search *search, uint32_t rank)
{
	return node_tasks(search, rank, CAPACITY_MAX);
}

bool node_holds(const struct search *search, uint32_t rank)
{
	return node_tasks(search, rank, search->tasks) >= search->tasks;
}

/* --- what a domain holds ------------------------------------------------------------------------------ */

static void histogram_fast(const struct search *search, uint32_t domain, struct histogram *ret)
{
	uint32_t gpus = search->shape->gpus;

	for (uint64_t classes = search->classes; classes; classes &= classes - 1) {
		const uint32_t *counts =
			space_counts(search->space, domain, (uint32_t)__builtin_ctzll(classes));

		for (uint32_t free = gpus; free <= search->space->gpus_max; free++)
			ret->hosts[free / gpus] += counts[free];
	}
}

/* Only nodes with GPUs enough for one task are looked at; of parts, and of wishes without GPUs, all. */
static void histogram_exact(const struct search *search, uint32_t domain, struct histogram *ret)
{
	const struct domain *d = &search->space->domains.at[domain];
	struct hosts_walk walk;

	if (search->part || search->shape->gpus == 0) {
		for (uint32_t rank = d->first; rank < d->end; rank++)
			ret->hosts[node_capacity(search, rank)]++;
	} else {
		hosts_walk_begin(search, domain, &walk);
		while (hosts_walk_next(search, &walk))
			ret->hosts[node_capacity(search, walk.rank)]++;
	}
	ret->hosts[0] = 0;
}

void hosts_walk_begin(const struct search *search, uint32_t domain, struct hosts_walk *ret)
{
	const struct domain *d = &search->space->domains.at[domain];

	*ret = (struct hosts_walk){ .domain = domain,
				    .classes = search->classes,
				    .free = search->shape->gpus,
				    .next = d->first,
				    .end = d->end };
}

bool hosts_walk_next(const struct search *search, struct hosts_walk *walk)
{
	const struct space *space = search->space;

	for (; walk->classes; walk->classes &= walk->classes - 1) {
		uint32_t class = (uint32_t)__builtin_ctzll(walk->classes);
		const uint32_t *counts = space_counts(space, walk->domain, class);

		for (; walk->free <= space->gpus_max; walk->free++) {
			walk->rank = counts[walk->free]
					     ? bits_next(space_set(space, class, walk->free),
							 space->node_count, walk->next, walk->end)
					     : walk->end;
			walk->next = walk->rank + 1;
			if (walk->rank < walk->end)
				return true;
			walk->next = space->domains.at[walk->domain].first;
		}
		walk->free = search->shape->gpus;
	}
	return false;
}

void histogram_make(const struct search *search, uint32_t domain, struct histogram *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (search->exact)
		histogram_exact(search, domain, ret);
	else
		histogram_fast(search, domain, ret);
}

uint64_t histogram_tasks(const struct histogram *histogram)
{
	uint64_t tasks = 0;

	for (uint32_t c = 1; c <= CAPACITY_MAX; c++)
		tasks += (uint64_t)histogram->hosts[c] * c;
	return tasks;
}

/* Fewest hosts of capacity at most `top`; 0 = they do not hold all. */
static uint32_t histogram_hosts(const struct histogram *histogram, uint32_t top, uint32_t tasks)
{
	uint32_t hosts = 0;

	for (uint32_t c = top; c > 0; c--) {
		uint64_t holds = (uint64_t)histogram->hosts[c] * c;

		if (holds >= tasks)
			return hosts + (tasks + c - 1) / c;
		tasks -= (uint32_t)holds;
		hosts += histogram->hosts[c];
	}
	return 0;
}

bool histogram_fit(const struct histogram *histogram, uint32_t tasks, struct fit *ret)
{
	uint32_t top = CAPACITY_MAX;

	while (top > 1 && !histogram->hosts[top])
		top--;
	ret->hosts = histogram_hosts(histogram, top, tasks);
	if (!ret->hosts)
		return false;
	while (top > 1 && histogram_hosts(histogram, top - 1, tasks) == ret->hosts)
		top--;
	ret->top = top;
	return true;
}
