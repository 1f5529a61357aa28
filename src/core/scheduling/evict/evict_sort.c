/* SPDX-License-Identifier: Apache-2.0 */
/* The order of those who may have to go: what leaves anyhow first, then the cheapest, and among equals who came last. */
#include <string.h>

#include "core/scheduling/evict/evict.h"

static const char *queue_name_of(const struct facts *facts, uint32_t queue)
{
	return facts_name(facts, queue_get(facts, (struct queue_id){ queue })->name);
}

bool job_is_earlier(const struct facts *facts, uint32_t a, uint32_t b)
{
	const struct job *ja = job_get(facts, (struct job_id){ a }),
			 *jb = job_get(facts, (struct job_id){ b });

	if (ja->submitted_ms != jb->submitted_ms)
		return ja->submitted_ms < jb->submitted_ms;
	if (ja->queue.v != jb->queue.v)
		return strcmp(queue_name_of(facts, ja->queue.v),
			      queue_name_of(facts, jb->queue.v)) < 0;
	return a < b;
}

/* Later submissions first. Of those that came at once, in different queues, the order in which they came says nothing. */
static bool victim_is_later(const struct pass *pass, const struct victim *a, const struct victim *b)
{
	if (a->submitted_ms != b->submitted_ms)
		return a->submitted_ms > b->submitted_ms;
	return a->queue == b->queue ? a->job > b->job
				    : strcmp(queue_name_of(pass->facts, a->queue),
					     queue_name_of(pass->facts, b->queue)) < 0;
}

/* What is sorted, for a victim itself is long: by group, then cost, then the rest of it. */
struct victim_key {
	int64_t cost;
	uint32_t at;
	uint32_t group; /* promises, those that leave, surplus, best-effort work, the rest */
};

struct victim_order {
	const struct pass *pass;
	const struct victim *list;
};

static struct victim_key victim_key(const struct victim *v, uint32_t at)
{
	return (struct victim_key){ .cost = v->cost,
				    .at = at,
				    .group = (v->promise ? 0 : 8U) + (v->coming ? 0 : 4U) +
					     (v->leaver ? 0 : 2U) +
					     (v->tier == TIER_BEST_EFFORT ? 0 : 1U) };
}

/* Cheaper first; among equals the later submission. */
static bool key_before(const struct victim_order *order, const struct victim_key *ka,
		       const struct victim_key *kb)
{
	const struct victim *a = &order->list[ka->at], *b = &order->list[kb->at];

	if (ka->group != kb->group)
		return ka->group < kb->group;
	if (ka->cost != kb->cost)
		return ka->cost < kb->cost;
	if (victim_is_bare(a) != victim_is_bare(b))
		return victim_is_bare(a);
	if (a->bare_cost != b->bare_cost)
		return a->bare_cost < b->bare_cost;
	if (a->turn != b->turn)
		return a->turn > b->turn;
	return a->job != b->job ? victim_is_later(order->pass, a, b) : a->leaver > b->leaver;
}

/* Both halves are in order: mostly one lies all before the other, as jobs that started at once stand by their numbers. */
static void keys_merge(const struct victim_order *order, struct victim_key *list,
		       struct victim_key *room, uint32_t half, uint32_t count)
{
	uint32_t i = 0, j = half, n = 0;

	if (!key_before(order, &list[half], &list[half - 1]))
		return;
	if (key_before(order, &list[count - 1], &list[0])) {
		memcpy(room, list, half * sizeof(*list));
		memmove(list, list + half, (count - half) * sizeof(*list));
		memcpy(list + count - half, room, half * sizeof(*list));
		return;
	}
	while (i < half && j < count)
		room[n++] = key_before(order, &list[j], &list[i]) ? list[j++] : list[i++];
	while (i < half)
		room[n++] = list[i++];
	memcpy(list, room, n * sizeof(*list)); /* what is left of the other half lies there */
}

static void keys_sort(const struct victim_order *order, struct victim_key *list,
		      struct victim_key *room, uint32_t count)
{
	uint32_t half = count / 2;

	if (count < 2)
		return;
	keys_sort(order, list, room, half);
	keys_sort(order, list + half, room, count - half);
	keys_merge(order, list, room, half, count);
}

struct victim *victims_sort(struct pass *pass, struct victim *list, uint32_t count)
{
	struct victim_order order = { pass, list };
	struct victim_key *keys;
	struct victim *sorted;

	if (count < 2)
		return list;
	keys = arena_new_array(pass->arena, struct victim_key, (size_t)2 * count);
	for (uint32_t i = 0; i < count; i++)
		keys[i] = victim_key(&list[i], i);
	keys_sort(&order, keys, keys + count, count);
	sorted = arena_new_array(pass->arena, struct victim, count);
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = list[keys[i].at];
	return sorted;
}
