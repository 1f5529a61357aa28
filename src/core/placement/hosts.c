/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts of a domain a gang takes: the fewest that hold it, of these the ones on which the fewest GPUs are left over, and of
 * equal sets the one without large hosts, so that whole hosts stay whole.
 *
 *	ten tasks; hosts with 8, 8, 6, 5 and 2 GPUs free.  Two are the fewest (8 + 8 leave 6 over).
 *	6 + 5 leave one over, 8 + 2 nothing: 8 + 2.
 *
 * The largest hosts, as many as are needed, hold `slack` tasks more than there are. Every other set gives some of that up, host by host
 * in order of size, and never gets it back. So few sets are left to look at: a table by (hosts still to choose, slack given up), gone
 * through once for each capacity. Without slack there is nothing to choose: gangs of whole hosts cost no more than before.
 *
 *	slack 6; one host of 8 is taken, one is still to choose: 8 gives nothing up, 6 gives 2, 5 gives 3, 2 gives all 6.
 *
 * Who has left out more hosts than there is slack gives one up with each that follows, so only few may follow; who has left out fewer may
 * still have many to choose. Both kinds together have a place for each of 2 * (slack + 1) numbers of hosts still to choose.
 *
 * Rejected: the smallest "largest host" that still makes so few hosts enough, alone. It takes 6 + 5 here; and of a rack with 8, 8 and 4
 * free and one with 8 and 8 it takes the second for a gang of ten, as the fuller one, though 8 + 4 would do in the first.
 *
 * Costs at most some SLACK_MAX^3 steps for each capacity, usually some ten. A gang with more slack takes the largest hosts.
 */
#include <string.h>

#include "base/check.h"
#include "core/placement/search.h"

enum { SLACK_MAX = 15, PLACES = 2 * (SLACK_MAX + 1) };

#define COST_NONE UINT64_MAX
/* Of one GPU left over. Below it stand the squares of the sizes, of which a few large hosts have more than many small ones. */
#define COST_GPU (UINT64_C(1) << 32)

/* How many hosts hold so many tasks with so many GPUs free. */
struct rooms {
	uint32_t hosts[CAPACITY_MAX + 1][NODE_GPUS_MAX + 1];
	uint32_t all[CAPACITY_MAX + 1];
	uint32_t most; /* the largest capacity */
};

/* The cheapest way to have so many hosts still to choose (see place_of), with so much slack given up. */
struct ways {
	uint64_t cost[PLACES][SLACK_MAX + 1];
};

struct choosing {
	const struct rooms *rooms;
	uint32_t hosts, slack;
	struct ways ways[2], *now, *next;
	uint32_t taken[CAPACITY_MAX + 1][PLACES]
		      [SLACK_MAX + 1]; /* of this capacity, to get there */
};

static void rooms_make(const struct search *search, uint32_t domain, struct rooms *ret)
{
	uint32_t gpus = search->shape->gpus, most = search->space->gpus_max;
	struct hosts_walk walk;

	memset(ret, 0, sizeof(*ret));
	hosts_walk_begin(search, domain, &walk);
	while (search->exact && hosts_walk_next(search, &walk))
		ret->hosts[node_capacity(search, walk.rank)][walk.free]++;
	for (uint64_t classes = search->exact ? 0 : search->classes; classes;
	     classes &= classes - 1) {
		const uint32_t *counts =
			space_counts(search->space, domain, (uint32_t)__builtin_ctzll(classes));

		for (uint32_t free = gpus; free <= most; free++)
			ret->hosts[free / gpus][free] += counts[free];
	}
	for (uint32_t c = 1; c <= most / gpus; c++) {
		for (uint32_t free = c * gpus; free <= most; free++)
			ret->all[c] += ret->hosts[c][free];
		ret->most = ret->all[c] ? c : ret->most;
	}
}

/* GPUs free on the `count` tightest hosts of the capacity. */
static uint64_t tightest_free(const struct rooms *rooms, uint32_t capacity, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t free = capacity; count; free++) {
		uint32_t some = rooms->hosts[capacity][free];

		some = some < count ? some : count;
		sum += (uint64_t)some * free;
		count -= some;
	}
	return sum;
}

static uint64_t hosts_cost(const struct rooms *rooms, uint32_t capacity, uint32_t count)
{
	return tightest_free(rooms, capacity, count) * COST_GPU +
	       (uint64_t)count * capacity * capacity;
}

/* The largest hosts, and the tasks that they hold. */
static uint32_t largest_take(const struct rooms *rooms, uint32_t hosts, uint32_t *ret)
{
	uint32_t held = 0;

	for (uint32_t capacity = rooms->most; capacity > 0; capacity--) {
		uint32_t some = rooms->all[capacity] < hosts ? rooms->all[capacity] : hosts;

		if (ret)
			ret[capacity] = some;
		hosts -= some;
		held += some * capacity;
	}
	CHECK(!hosts);
	return held;
}

/* What is given up when `taken` of this capacity come next, with `rest` still to choose before. */
static uint32_t given_up(const struct choosing *c, uint32_t rest, uint32_t taken, uint32_t capacity)
{
	uint32_t before = c->hosts - rest;

	return largest_take(c->rooms, before + taken, NULL) - largest_take(c->rooms, before, NULL) -
	       taken * capacity;
}

/* Where what it costs stands to have `rest` hosts still to choose, when `whole` would be without one left out; PLACES = nowhere. */
static uint32_t place_of(const struct choosing *c, int64_t rest, int64_t whole)
{
	if (rest <= c->slack)
		return (uint32_t)rest;
	return rest - whole <= c->slack ? (uint32_t)(c->slack + 1 + rest - whole) : PLACES;
}

/* Turned round: how many are still to choose; -1 = the same stands elsewhere. */
static int64_t place_rest(const struct choosing *c, uint32_t place, int64_t whole)
{
	int64_t rest = place <= c->slack ? (int64_t)place : whole + place - c->slack - 1;

	return place > c->slack && rest <= c->slack ? -1 : rest;
}

/* On from one way: takes so many of the capacity that what it gives up stays within the slack. */
static void way_step(struct choosing *c, uint32_t capacity, uint32_t rest, int64_t whole,
		     uint32_t up, uint64_t cost)
{
	uint32_t all = c->rooms->all[capacity], least, most = all < rest ? all : rest;
	int64_t last = (int64_t)rest - c->slack, skips = rest - whole + all - c->slack;

	last = last < skips ? last : skips;
	least = last > 0 ? (uint32_t)last : 0;
	for (uint32_t taken = least; taken <= most; taken++) {
		uint32_t place = place_of(c, rest - taken, whole - all);
		uint32_t gone = up + given_up(c, rest, taken, capacity);
		uint64_t sum = cost + hosts_cost(c->rooms, capacity, taken);

		if (gone > c->slack || sum >= c->next->cost[place][gone])
			continue;
		c->next->cost[place][gone] = sum;
		c->taken[capacity][place][gone] = taken;
	}
}

static void ways_clear(const struct choosing *c, struct ways *ret)
{
	for (uint32_t place = 0; place < 2 * (c->slack + 1); place++)
		for (uint32_t up = 0; up <= c->slack; up++)
			ret->cost[place][up] = COST_NONE;
}

/* Back from the cheapest end, capacity by capacity. */
static void pick_read(const struct choosing *c, int64_t whole, struct pick *ret)
{
	uint32_t rest = 0, up = 0;

	for (uint32_t i = 1; i <= c->slack; i++)
		if (c->now->cost[0][i] < c->now->cost[0][up])
			up = i;
	for (uint32_t capacity = 1; capacity <= c->rooms->most; capacity++) {
		uint32_t taken = c->taken[capacity][place_of(c, rest, whole)][up];

		ret->hosts[capacity] = taken;
		rest += taken;
		whole += c->rooms->all[capacity];
		up -= given_up(c, rest, taken, capacity);
	}
	CHECK(rest == c->hosts && up == 0);
}

static void hosts_choose(struct choosing *c, struct pick *ret)
{
	int64_t whole = c->hosts;
	struct ways *turn;

	c->now = &c->ways[0];
	c->next = &c->ways[1];
	ways_clear(c, c->now);
	c->now->cost[place_of(c, whole, whole)][0] = 0;
	for (uint32_t capacity = c->rooms->most; capacity > 0; capacity--) {
		ways_clear(c, c->next);
		for (uint32_t place = 0; place < 2 * (c->slack + 1); place++) {
			int64_t rest = place_rest(c, place, whole);

			for (uint32_t up = 0; rest >= 0 && up <= c->slack; up++)
				if (c->now->cost[place][up] != COST_NONE)
					way_step(c, capacity, (uint32_t)rest, whole, up,
						 c->now->cost[place][up]);
		}
		whole -= c->rooms->all[capacity];
		turn = c->now;
		c->now = c->next;
		c->next = turn;
	}
	pick_read(c, whole, ret);
}

bool hosts_matter(const struct search *search)
{
	return !search->part && search->shape->gpus && !search->shape->spread && !search->scatter;
}

void hosts_pick(const struct search *search, uint32_t domain, uint32_t hosts, struct pick *ret)
{
	struct choosing choosing;
	struct rooms rooms;
	uint64_t free = 0;

	rooms_make(search, domain, &rooms);
	memset(ret, 0, sizeof(*ret));
	choosing.rooms = &rooms;
	choosing.hosts = hosts;
	choosing.slack = largest_take(&rooms, hosts, ret->hosts) - search->tasks;
	if (choosing.slack && choosing.slack <= SLACK_MAX)
		hosts_choose(&choosing, ret);
	for (uint32_t c = 1; c <= rooms.most; c++)
		free += tightest_free(&rooms, c, ret->hosts[c]);
	ret->left = (int64_t)free - (int64_t)search->tasks * search->shape->gpus;
}
