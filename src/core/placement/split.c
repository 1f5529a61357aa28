/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gang that no single domain of the next narrower level holds: into which of them, and how much into each.
 *
 * A ring leaves each of these domains once, through the cards of those of its hosts that are in it. So few domains are better
 * than many, and a domain with a single host is the worst: behind a network of 4:1 it has a quarter of what it could send.
 *
 *	fewest	as many domains as the largest ones need
 *	least	what the smallest of them gets: the most that all can have, but no more than brings speed
 *	which	as many next to each other in the order of size, the smallest ones that do: large ones stay whole
 *	rest	fills the smallest first, so that what is left over lies together
 *
 *	example: H100 hosts of 8 cards of 48,000, 4:1 between leaves that have 4, 3, 3 and 2 whole hosts free; 4 hosts are wanted.
 *	Two leaves are the fewest. Each could have two: 2 x 384,000 / 4 = 192,000, where 3 + 1 would get 96,000.
 *	The smallest two with two each are those of 2 and 3. At 1:1 one host is enough on either side, and 3 + 1 is taken.
 */
#include "core/placement/speed.h"

#include "base/check.h"

/* A domain below, and how many of the tasks its hosts hold. */
struct child {
	uint32_t domain, room, tasks;
};

static void child_histogram(const struct search *search, uint32_t domain, uint32_t top,
			    struct histogram *ret)
{
	histogram_make(search, domain, ret);
	for (uint32_t c = top + 1; c <= CAPACITY_MAX; c++)
		ret->hosts[c] = 0;
}

/* The domains of the next level in this one: *ret_first, and how many. */
static uint32_t children_of(const struct space *space, uint32_t domain, uint32_t *ret_first)
{
	const struct domain *d = &space->domains.at[domain];
	uint32_t level = d->level + 1u, first;

	first = space_at(space, d->first)->domain[level];
	*ret_first = first;
	return space_at(space, d->end - 1)->domain[level] - first + 1;
}

static bool has_children(const struct search *search, uint32_t domain)
{
	const struct domain *d = &search->space->domains.at[domain];

	return d->level < search->space->level_count && d->end > d->first;
}

enum { UNITS_MAX = 255 }; /* more hosts in a domain count as so many when domains are compared */

void split_measure(const struct search *search, uint32_t domain, uint32_t top, struct split *ret)
{
	uint32_t sizes[UNITS_MAX + 1] = { 0 }, first, count, left, units, smallest = 0;

	*ret = (struct split){ 0 };
	if (!has_children(search, domain))
		return;
	count = children_of(search->space, domain, &first);
	for (uint32_t i = 0; i < count; i++) {
		struct histogram histogram;
		uint64_t room;

		child_histogram(search, first + i, top, &histogram);
		room = histogram_tasks(&histogram) / top;
		sizes[room < UNITS_MAX ? room : UNITS_MAX]++;
	}
	left = units = (search->tasks + top - 1) / top;
	for (uint32_t size = UNITS_MAX; size > 0 && left; size--)
		for (uint32_t i = 0; i < sizes[size] && left; i++) {
			left -= left < size ? left : size;
			smallest = size;
			ret->count++;
		}
	if (left || ret->count < 2) {
		ret->count = 0; /* parts of hosts must help, or one domain holds it */
		return;
	}
	ret->least = units / ret->count < smallest ? units / ret->count : smallest;
}

uint64_t split_mbps(const struct search *search, uint32_t domain, uint32_t top,
		    const struct split *split)
{
	const struct fabric *fabric = search->space->fabric.at;
	uint8_t level = search->space->domains.at[domain].level;
	uint64_t out = speed_out_mbps(search, top * search->shape->gpus), parts, linked;

	if (!split->least)
		return out;
	parts = fabric_level_share_mbps(fabric, level, out) * split->least;
	if (!fabric->domains || level + 1u != fabric->level_count)
		return parts < out ? parts : out;
	linked = speed_linked_mbps(search); /* all cards of an NVLink domain */
	return parts < linked ? parts : linked;
}

/* --- drawing -------------------------------------------------------------------------------------------------- */

/* By room, then by place. */
static void children_sort(struct child *list, uint32_t count)
{
	for (uint32_t gap = count / 2; gap > 0; gap /= 2) {
		for (uint32_t i = gap; i < count; i++) {
			struct child child = list[i];
			uint32_t j = i;

			for (; j >= gap && (list[j - gap].room > child.room ||
					    (list[j - gap].room == child.room &&
					     list[j - gap].domain > child.domain));
			     j -= gap)
				list[j] = list[j - gap];
			list[j] = child;
		}
	}
}

/* The most tasks that each of `count` domains, the largest ones, could have at least: whole hosts, no more than bring speed. */
static uint32_t least_of(const struct search *search, uint32_t domain, uint32_t top, uint32_t tasks,
			 uint32_t count, uint32_t smallest)
{
	struct split split = { .count = count, .least = tasks / count / top };
	uint64_t best;

	if (split.least > smallest / top)
		split.least = smallest / top;
	best = split_mbps(search, domain, top, &split);
	while (split.least > 1) {
		split.least--;
		if (split_mbps(search, domain, top, &split) < best) {
			split.least++;
			break;
		}
	}
	return split.least * top;
}

/* Gives the tasks to `count` of the children that lie side by side in the order of room; the first of them. */
static uint32_t children_choose(const struct child *list, uint32_t all, uint32_t count,
				uint32_t tasks, uint32_t least)
{
	for (uint32_t first = 0; first + count < all; first++) {
		uint64_t room = 0;

		for (uint32_t i = 0; i < count; i++)
			room += list[first + i].room;
		if (room >= tasks && list[first].room >= least)
			return first;
	}
	return all - count;
}

static void children_give(const struct search *search, uint32_t domain, uint32_t top,
			  uint32_t tasks, struct child *list, uint32_t all)
{
	uint32_t count = 0, least, first, rest = tasks;
	uint64_t room = 0;

	while (room < tasks) {
		CHECK(count < all);
		room += list[all - ++count].room;
	}
	least = count > 1 ? least_of(search, domain, top, tasks, count, list[all - count].room) : 0;
	first = children_choose(list, all, count, tasks, least);
	for (uint32_t i = first; i < first + count; i++) {
		list[i].tasks = least < list[i].room ? least : list[i].room;
		rest -= list[i].tasks;
	}
	for (uint32_t i = first; i < first + count && rest; i++) {
		uint32_t more = list[i].room - list[i].tasks;

		more = more < rest ? more : rest;
		list[i].tasks += more;
		rest -= more;
	}
	CHECK(rest == 0);
}

static void split_draw(struct search *search, uint32_t domain, uint32_t top, uint32_t tasks,
		       struct arena *arena, struct draw *draw)
{
	const struct domain *d = &search->space->domains.at[domain];
	uint32_t first, count, all = 0;
	struct histogram histogram;
	struct child *list;
	struct fit fit;

	if (!has_children(search, domain)) {
		child_histogram(search, domain, top, &histogram);
		CHECK(histogram_fit(&histogram, tasks, &fit));
		draw->rest = tasks;
		draw_domain(search, draw, d, fit.top);
		return;
	}
	count = children_of(search->space, domain, &first);
	list = arena_new_array(arena, struct child, count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t room;

		child_histogram(search, first + i, top, &histogram);
		room = histogram_tasks(&histogram);
		if (room)
			list[all++] = (struct child){ first + i,
						      room < tasks ? (uint32_t)room : tasks, 0 };
	}
	children_sort(list, all);
	children_give(search, domain, top, tasks, list, all);
	for (uint32_t i = 0; i < all; i++)
		if (list[i].tasks)
			split_draw(search, list[i].domain, top, list[i].tasks, arena, draw);
}

void split_fill(struct search *search, uint32_t domain, uint32_t top, struct arena *arena,
		struct placement *ret)
{
	struct draw draw;

	draw_begin(search, domain, arena, &draw);
	split_draw(search, domain, top, search->tasks, arena, &draw);
	draw_place(search, domain, &draw, arena, ret);
}
