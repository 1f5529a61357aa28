/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares, top down. A parent's share is divided among its children (and the jobs that sit in the parent itself):
 * first guarantees, as far as they are wanted; then the rest by weight among those that want more, again and
 * again until nobody wants more or nothing is left.
 *
 *	12 GPUs; a: guarantee 6, wants 2; b: weight 1, wants 9; c: weight 3, wants 4
 *	guarantees: a 2 of its 6, the other 4 are lent. Rest 10: b 2.5, c 7.5, but c wants only 4; so c 4, b 6.
 */
#include "core/scheduling/queues/standing.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/scheduling/life/pause.h"
#include "core/scheduling/queues/beside.h"
#include "core/scheduling/queues/dominant.h"
#include "core/scheduling/queues/spend.h"
#include "core/scheduling/queues/window.h"

__extension__ typedef __int128 wide;

/* Calendars of a queue and of those above it may open by turns; after so many the times when all are open are none. */
enum { OPENS_ROUNDS_MAX = 64 };

/* a * b / c, exact in between; c > 0. */
static int64_t part_of(int64_t a, int64_t b, int64_t c)
{
	return (int64_t)((wide)a * b / c);
}

/* --- guarantees -------------------------------------------------------------------------------------- */

static int64_t gpus_that_exist(const struct facts *facts)
{
	int64_t gpus = 0;

	for (uint32_t id = 1; id <= facts->nodes.count; id++) {
		const struct node *node = node_get(facts, (struct node_id){ id });

		gpus += node->state == NODE_GONE ? 0 : node->gpu_count;
	}
	return gpus * GPU_SHARE;
}

static bool queue_is_default(const struct facts *facts, const struct queue *queue)
{
	return queue->parent.v == 0 && queue->guarantee_share == 0 &&
	       strcmp(facts_name(facts, queue->name), "default") == 0;
}

/* What is guaranteed to nobody is the default queue's. */
static int64_t rest_guarantee(const struct facts *facts, int64_t rest)
{
	for (uint32_t other = 1; other <= facts->queues.count; other++) {
		const struct queue *q = queue_get(facts, (struct queue_id){ other });

		if (!q->removed && q->parent.v == 0)
			rest -= q->guarantee_share;
	}
	return rest > 0 ? rest : 0;
}

int64_t queue_guarantee(const struct facts *facts, struct queue_id id)
{
	const struct queue *queue = queue_get(facts, id);

	return queue_is_default(facts, queue) ? rest_guarantee(facts, gpus_that_exist(facts))
					      : queue->guarantee_share;
}

/* --- sums ---------------------------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What is in the facts was checked when it came; a text that is none of ours closes nothing. */
static const struct calendar *queue_calendar(const struct facts *facts, const struct queue *queue,
					     struct arena *arena)
{
	struct calendar *calendar;

	if (!queue->calendar.v || queue->removed)
		return NULL;
	calendar = arena_new(arena, struct calendar);
	if (calendar_read(facts, facts_text(facts, queue->calendar), calendar, NULL) < 0)
		return NULL;
	return calendar;
}

/* As queue_guarantee says, without a look at each node. */
static int64_t standing_guarantee(const struct standings *s, const struct queue *queue)
{
	if (queue->removed)
		return 0;
	return queue_is_default(s->facts, queue)
		       ? rest_guarantee(s->facts, s->view->space.gpus * GPU_SHARE)
		       : queue->guarantee_share;
}

static void standing_read(struct standings *s, uint32_t id, struct arena *arena)
{
	const struct queue_view *qv = &s->view->queues.at[id];
	struct standing *at = &s->at[id];

	at->limit = INT64_MAX;
	at->weight = 1;
	if (id) {
		const struct queue *queue = queue_get(s->facts, (struct queue_id){ id });

		at->guarantee = standing_guarantee(s, queue);
		at->limit = queue->limit_share < 0 ? INT64_MAX : queue->limit_share;
		at->weight = queue->weight > 0 ? queue->weight : 1;
		at->reserved = queue->reserved && !queue->removed;
		at->calendar = queue_calendar(s->facts, queue, arena);
		at->past = queue_past_gpu_ms(s->facts, (struct queue_id){ id }, s->facts->now_ms);
	}
	for (uint32_t tier = 0; tier < TIERS; tier++) {
		int64_t plan = qv->hold[tier] - qv->leave[tier] + qv->promised[tier];

		at->hold += qv->hold[tier];
		at->plan += plan;
		at->use += tier == TIER_BEST_EFFORT ? 0 : plan;
	}
	at->own_use = at->use;
	at->critical =
		qv->hold[TIER_CRITICAL] - qv->leave[TIER_CRITICAL] + qv->promised[TIER_CRITICAL];
}

/* GPUs of the reservation in advance that could be used. */
static int64_t booked_share(const struct facts *facts, const struct booking *b)
{
	int64_t gpus = 0;

	for (uint32_t i = 0; i < BOOKING_NODES_MAX && b->node[i]; i++) {
		const struct node *node = node_get(facts, (struct node_id){ b->node[i] });

		if (node->state == NODE_READY)
			gpus += __builtin_popcount(b->mask[i] & ~node->set_aside_mask);
	}
	return gpus * GPU_SHARE;
}

/* What is reserved in advance and lasts is its queue's as if it were guaranteed and not lent; what is for people of any queue is in
 * nobody's share. */
static void booked_read(struct standings *s)
{
	for (uint32_t row = 1; row <= s->facts->bookings.count; row++) {
		const struct booking *b = booking_get(s->facts, row);

		if (!b->name.v || b->from_ms > s->facts->now_ms || b->to_ms <= s->facts->now_ms)
			continue;
		for (uint32_t id = b->queue.v; id; id = s->view->queues.at[id].parent)
			s->at[id].booked += booked_share(s->facts, b);
		if (!b->queue.v)
			s->at[0].booked += booked_share(s->facts, b);
	}
}

static int64_t opens_ms(const struct standings *s, const struct job *job, int64_t at_ms)
{
	int64_t length_ms = job_expected_ms(s->facts, job), before_ms;
	uint32_t rounds = 0;

	do {
		before_ms = at_ms;
		at_ms = window_opens_ms(s->facts, job, at_ms);
		for (uint32_t id = job->queue.v; id && at_ms >= 0;
		     id = s->view->queues.at[id].parent)
			if (s->at[id].calendar)
				at_ms = calendar_start_ms(s->at[id].calendar, at_ms, length_ms);
	} while (at_ms > before_ms && ++rounds < OPENS_ROUNDS_MAX);
	return at_ms == before_ms ? at_ms : -1;
}

int64_t standing_opens_ms(const struct standings *s, const struct job *job, int64_t from_ms)
{
	int64_t pause_ms = job_pause_until_ms(s->facts, job);

	return opens_ms(s, job, pause_ms > from_ms ? pause_ms : from_ms);
}

bool standing_would_be_open(const struct standings *s, const struct job *job)
{
	return opens_ms(s, job, s->facts->now_ms) == s->facts->now_ms;
}

bool standing_is_open(const struct standings *s, const struct job *job)
{
	return standing_opens_ms(s, job, s->facts->now_ms) == s->facts->now_ms;
}

/* The jobs of a bucket are alike: the calendar is asked for its first one. */
static bool bucket_may_start(const struct standings *s, const struct line_entry *b)
{
	return standing_is_open(s, job_get(s->facts, (struct job_id){ b->job }));
}

/* Shares of more than this are all alike: no guarantee, no limit and no amount that is divided reaches beyond. */
static int64_t demand_enough(const struct standings *s)
{
	int64_t enough = s->capacity ? s->capacity : GPU_SHARE;

	for (uint32_t id = 0; id < s->count; id++) {
		const struct standing *at = &s->at[id];

		enough = at->guarantee > enough ? at->guarantee : enough;
		enough = at->limit != INT64_MAX && at->limit > enough ? at->limit : enough;
	}
	return enough;
}

static bool has_calendar(const struct standings *s, uint32_t id)
{
	while (id && !s->at[id].calendar)
		id = s->view->queues.at[id].parent;
	return id;
}

static bool has_budget(const struct standings *s, uint32_t id)
{
	return budget_left_micro(s->facts, id) != INT64_MAX;
}

/* Of the bucket's jobs, for so many its queue's budgets have enough left. Each bucket is looked at alone, so that their order says
 * nothing. */
static int64_t bucket_paid(const struct standings *s, const struct line_entry *b,
			   int64_t left_micro)
{
	int64_t size = sorted_size(&s->view->pool, s->view->buckets.at[b->bucket].jobs), cost;

	if (left_micro == INT64_MAX)
		return size;
	cost = job_cost_micro(s->facts, s->view, job_get(s->facts, (struct job_id){ b->job }));
	return cost > 0 && left_micro / cost < size ? left_micro / cost : size;
}

static int64_t entry_share(const struct standings *s, const struct line_entry *b)
{
	const struct shape *shape;
	int64_t share = s->view->buckets.at[b->bucket].share;

	if (share >= 0)
		return share;
	shape = shape_get(s->facts, (struct shape_id){ b->shape });
	return shape_share(&s->view->space, shape, shape->tasks_min);
}

/* Where every job wants what it asks for, the sums that the index keeps are what they want together. */
static bool wait_sum(struct standings *s, uint32_t id)
{
	const struct queue_view *qv = &s->view->queues.at[id];
	struct standing *at = &s->at[id];

	if (qv->waits_odd || qv->waits_timed || qv->widest > s->capacity || has_calendar(s, id) ||
	    has_budget(s, id))
		return false;
	at->wants = qv->waits[TIER_STANDARD] || qv->waits[TIER_CRITICAL];
	at->wait_critical = qv->wait[TIER_CRITICAL];
	at->wait = at->wait_critical + qv->wait[TIER_STANDARD];
	at->wait_beside = qv->wait_beside;
	return true;
}

/* What the waiting jobs of a queue want, best-effort aside; a job that is wider than the cluster, outside its
 * queue's calendar, or beyond what its queue may spend wants nothing, neither GPUs nor what lies beside them. It is counted until it is
 * more than enough, as a queue may have very many buckets. */
static void wait_read(struct standings *s, uint32_t id, struct arena *arena)
{
	int64_t left_micro = -1, paid;
	bool closed = has_calendar(s, id) || s->view->queues.at[id].waits_timed;
	struct standing *at = &s->at[id];
	struct line_walk walk;

	for (bool any = line_begin(&s->view->queues.at[id].line, &walk); any;
	     any = line_next(&walk)) {
		const struct line_entry *b = walk.at;
		struct beside beside = s->view->buckets.at[b->bucket].beside;
		uint8_t tier = (uint8_t)(b->rank >> 32);
		int64_t one = entry_share(s, b), all;

		/* Ranks fall: critical work has been counted first, best-effort comes last. */
		if (tier == TIER_BEST_EFFORT)
			return;
		if (at->wait_critical >= 2 * s->enough ||
		    (tier != TIER_CRITICAL && at->wait >= 2 * s->enough)) {
			at->wait_beside = s->view->queues.at[id].wait_beside;
			return;
		}
		if (one > s->capacity || (closed && !bucket_may_start(s, b)))
			continue;
		left_micro = left_micro < 0 ? spend_left_micro(s, id, arena) : left_micro;
		paid = bucket_paid(s, b, left_micro);
		if (!paid)
			continue;
		at->wants = true;
		all = one * paid;
		at->wait += all;
		at->wait_beside.cpu_milli += beside.cpu_milli * paid;
		at->wait_beside.ram_mib += beside.ram_mib * paid;
		if (tier == TIER_CRITICAL)
			at->wait_critical += all;
	}
}

static void demands_make(struct standings *s, const struct standings *before, struct arena *arena)
{
	for (uint32_t id = 0; id < s->count; id++) {
		struct standing *at = &s->at[id];
		const struct standing *was = before && id < before->count ? &before->at[id] : NULL;
		const struct queue_view *qv = &s->view->queues.at[id];

		/* Twice, so that the few jobs by which the facts differ make no difference. */
		if (was && was->wait >= 2 * s->enough && !has_calendar(s, id) &&
		    !s->view->queues.at[id].waits_timed && !has_budget(s, id)) {
			at->wants = true;
			at->wait = was->wait;
			at->wait_critical = was->wait_critical;
			at->wait_beside = qv->wait_beside;
		} else if (!wait_sum(s, id)) {
			wait_read(s, id, arena);
		}
		at->wait = least(at->wait, 2 * s->enough);
		at->wait_critical = least(at->wait_critical, 2 * s->enough);
		at->demand =
			at->use + at->wait + qv->again[TIER_STANDARD] + qv->again[TIER_CRITICAL];
		at->demand_critical = at->critical + at->wait_critical + qv->again[TIER_CRITICAL];
		at->own_demand = least(at->demand, at->limit);
		at->own_demand_critical = least(at->demand_critical, at->own_demand);
	}
}

static void sums_up(struct standings *s)
{
	for (uint32_t i = s->count; i-- > 1;) {
		uint32_t id = s->view->queue_order.at[i];
		struct standing *at = &s->at[id], *up = &s->at[s->view->queues.at[id].parent];

		at->demand = least(at->demand, at->limit);
		at->demand_critical = least(at->demand_critical, at->demand);
		up->hold += at->hold;
		up->plan += at->plan;
		up->use += at->use;
		up->critical += at->critical;
		up->demand += at->demand;
		up->demand_critical += at->demand_critical;
		up->past += at->past;
		up->wants |= at->wants;
	}
}

/* --- shares ----------------------------------------------------------------------------------------------- */

/* The rest by weight among those who want more; what one cannot use passes on. */
static void rest_fill(struct taker *takers, uint32_t count, int64_t rest)
{
	bool passed_on = true;

	while (rest > 0 && passed_on) {
		int64_t weights = 0, given = 0;

		passed_on = false;
		for (uint32_t i = 0; i < count; i++)
			weights += takers[i].share < takers[i].demand ? takers[i].weight : 0;
		if (!weights)
			return;
		for (uint32_t i = 0; i < count; i++) {
			struct taker *t = &takers[i];
			int64_t lacks = t->demand - t->share;

			if (lacks > 0 && lacks <= part_of(rest, t->weight, weights)) {
				t->share += lacks;
				given += lacks;
				passed_on = true;
			}
		}
		rest -= given;
		if (passed_on)
			continue;
		for (uint32_t i = 0; i < count; i++)
			if (takers[i].share < takers[i].demand)
				takers[i].share += part_of(rest, takers[i].weight, weights);
	}
}

/* Guarantees do not fit: critical work first, the rest in proportion. */
static void guarantees_cut(struct taker *takers, uint32_t count, int64_t amount, int64_t wanted)
{
	int64_t critical = 0, rest;

	for (uint32_t i = 0; i < count; i++)
		critical += least(takers[i].share, takers[i].critical);
	rest = critical < amount ? amount - critical : 0;
	for (uint32_t i = 0; i < count; i++) {
		int64_t first = least(takers[i].share, takers[i].critical),
			more = takers[i].share - first;

		if (critical > amount)
			first = part_of(first, amount, critical);
		takers[i].share =
			first + (wanted > critical ? part_of(more, rest, wanted - critical) : 0);
	}
}

void takers_divide(struct taker *takers, uint32_t count, int64_t amount)
{
	int64_t wanted = 0, withheld = 0;

	for (uint32_t i = 0; i < count; i++) {
		takers[i].share = least(takers[i].guarantee, takers[i].demand);
		wanted += takers[i].share;
		withheld += takers[i].kept > takers[i].share ? takers[i].kept - takers[i].share : 0;
	}
	if (wanted > amount)
		guarantees_cut(takers, count, amount, wanted);
	else
		rest_fill(takers, count, amount - wanted - withheld);
}

static void shares_divide(struct standings *s, uint32_t parent, struct taker *takers)
{
	const struct queue_view *queues = s->view->queues.at;
	const struct standing *own = &s->at[parent];
	uint32_t count = 0;

	for (uint32_t id = queues[parent].first_child; id; id = queues[id].next_sibling) {
		const struct standing *at = &s->at[id];

		takers[count++] = (struct taker){ .queue = id,
						  .demand = at->demand,
						  .critical = at->demand_critical,
						  .guarantee = at->guarantee + at->booked,
						  .kept = at->reserved ? at->guarantee + at->booked
								       : at->booked,
						  .weight = at->weight };
	}
	s->at[parent].own_share = count ? 0 : s->at[parent].share;
	if (!count)
		return;
	if (own->own_demand > 0)
		takers[count++] = (struct taker){ .demand = own->own_demand,
						  .critical = own->own_demand_critical,
						  .weight = 1 };
	takers_divide(takers, count, s->at[parent].share);
	for (uint32_t i = 0; i < count; i++)
		if (takers[i].queue)
			s->at[takers[i].queue].share = takers[i].share;
		else
			s->at[parent].own_share = takers[i].share;
}

static void reserved_list(struct standings *s, struct arena *arena)
{
	s->reserved = arena_new_array(arena, uint32_t, s->count);
	for (uint32_t i = 1; i < s->count; i++) {
		uint32_t id = s->view->queue_order.at[i];
		bool below = false;

		for (uint32_t up = s->view->queues.at[id].parent; up;
		     up = s->view->queues.at[up].parent)
			below |= s->at[up].reserved;
		if (s->at[id].reserved && !below)
			s->reserved[s->reserved_count++] = id;
	}
}

/*
 * Work without GPUs wants no share. Its queue's turn comes by what it would have of its parent by weight, among those that want or
 * hold anything.
 */
static void turn_shares_make(struct standings *s)
{
	const struct queue_view *queues = s->view->queues.at;

	s->at[0].turn_share = dominant_whole(s);
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t parent = s->view->queue_order.at[i];
		int64_t weights = 0;

		for (uint32_t id = queues[parent].first_child; id; id = queues[id].next_sibling)
			if (s->at[id].demand || s->at[id].wants || s->at[id].dominant)
				weights += s->at[id].weight;
		for (uint32_t id = queues[parent].first_child; id; id = queues[id].next_sibling) {
			struct standing *at = &s->at[id];

			at->turn_share = at->share;
			if (!at->demand && weights && (at->wants || at->dominant))
				at->turn_share =
					part_of(s->at[parent].turn_share, at->weight, weights);
		}
	}
}

void standings_make(struct standings *ret, const struct facts *facts, const struct view *view,
		    struct arena *arena)
{
	standings_make_like(ret, facts, view, NULL, arena);
}

void standings_make_like(struct standings *ret, const struct facts *facts, const struct view *view,
			 const struct standings *before, struct arena *arena)
{
	struct taker *takers;

	*ret = (struct standings){ .facts = facts, .view = view, .count = facts->queues.count + 1 };
	ret->capacity = view->usable_gpus * GPU_SHARE;
	ret->at = arena_new_array(arena, struct standing, ret->count);
	takers = arena_new_array(arena, struct taker, ret->count + 1);
	for (uint32_t id = 0; id < ret->count; id++)
		standing_read(ret, id, arena);
	ret->enough = demand_enough(ret);
	demands_make(ret, before, arena);
	sums_up(ret);
	booked_read(ret);
	ret->at[0].share = ret->capacity - least(ret->at[0].booked, ret->capacity);
	for (uint32_t i = 0; i < ret->count; i++)
		shares_divide(ret, view->queue_order.at[i], takers);
	dominant_make(ret);
	beside_make(ret, takers);
	turn_shares_make(ret);
	reserved_list(ret, arena);
}

void standings_copy(struct standings *ret, const struct standings *from, struct arena *arena)
{
	*ret = *from;
	ret->at = arena_new_array(arena, struct standing, from->count);
	memcpy(ret->at, from->at, from->count * sizeof(*from->at));
	ret->committed = NULL; /* made anew when it is asked for */
}

/* --- changes -------------------------------------------------------------------------------------------------- */

static void path_add(struct standings *s, uint32_t queue, uint8_t tier, int64_t hold, int64_t plan)
{
	s->at[queue].own_use += tier == TIER_BEST_EFFORT ? 0 : plan;
	for (;;) {
		struct standing *at = &s->at[queue];

		at->hold += hold;
		at->plan += plan;
		at->use += tier == TIER_BEST_EFFORT ? 0 : plan;
		at->critical += tier == TIER_CRITICAL ? plan : 0;
		if (!queue)
			return;
		queue = s->view->queues.at[queue].parent;
	}
}

void standing_start(struct standings *s, uint32_t queue, uint8_t tier, int64_t share)
{
	path_add(s, queue, tier, share, share);
}

void standing_promise(struct standings *s, uint32_t queue, uint8_t tier, int64_t share)
{
	path_add(s, queue, tier, 0, share);
}

void standing_leave(struct standings *s, uint32_t queue, uint8_t tier, int64_t share)
{
	path_add(s, queue, tier, 0, -share);
}

/* --- questions -------------------------------------------------------------------------------------------------- */

static int64_t amount_of(const struct standing *at, bool in_plan)
{
	return in_plan || at->plan > at->hold ? at->plan : at->hold;
}

bool queue_is_in(const struct view *view, uint32_t queue, uint32_t top)
{
	for (; queue; queue = view->queues.at[queue].parent)
		if (queue == top)
			return true;
	return false;
}

/* What other queues keep for themselves. */
static int64_t withheld_from(const struct standings *s, uint32_t queue, bool in_plan)
{
	int64_t withheld = 0;

	for (uint32_t i = 0; i < s->reserved_count; i++) {
		const struct standing *at = &s->at[s->reserved[i]];
		int64_t idle = at->guarantee - amount_of(at, in_plan);

		if (idle > 0 && !queue_is_in(s->view, queue, s->reserved[i]))
			withheld += idle;
	}
	return withheld;
}

static int64_t room_narrow(int64_t room, int64_t bound, enum reason code, uint32_t at, int64_t need,
			   struct verdict *ret_why)
{
	bound = bound > 0 ? bound : 0;
	if (bound < room && bound < need && ret_why)
		*ret_why = (struct verdict){
			.code = (uint16_t)code, .at = at, .have = bound, .need = need
		};
	return least(room, bound);
}

int64_t quota_room(const struct standings *s, uint32_t queue, uint8_t tier, bool in_plan,
		   int64_t need, struct verdict *ret_why)
{
	int64_t room = INT64_MAX, withheld;

	for (uint32_t id = queue; id; id = s->view->queues.at[id].parent) {
		const struct standing *at = &s->at[id];

		if (at->limit != INT64_MAX)
			room = room_narrow(room, at->limit - amount_of(at, in_plan),
					   REASON_QUOTA_LIMIT, id, need, ret_why);
	}
	/* All the way up: what a queue's critical work holds is a part of its parent's guarantee too. */
	for (uint32_t id = queue;
	     id && tier == TIER_CRITICAL && !s->facts->policy.allow_critical_burst;
	     id = s->view->queues.at[id].parent)
		room = room_narrow(room, s->at[id].guarantee - s->at[id].critical,
				   REASON_GUARANTEE_ONLY, id, need, ret_why);
	withheld = s->reserved_count ? withheld_from(s, queue, in_plan) : 0;
	if (withheld)
		room = room_narrow(room, s->capacity - amount_of(&s->at[0], in_plan) - withheld,
				   REASON_QUOTA_LIMIT, 0, need, ret_why);
	return room;
}

bool standing_within(const struct standings *s, uint32_t queue, uint32_t top, int64_t share)
{
	if (queue == top)
		return s->at[queue].own_use + share <= s->at[queue].own_share;
	for (; queue != top; queue = s->view->queues.at[queue].parent)
		if (s->at[queue].use + share > s->at[queue].share)
			return false;
	return true;
}

bool standing_above(const struct standings *s, uint32_t queue, uint32_t top)
{
	if (queue == top)
		return s->at[queue].own_use > s->at[queue].own_share;
	for (; queue != top; queue = s->view->queues.at[queue].parent)
		if (s->at[queue].use <= s->at[queue].share)
			return false;
	return true;
}

bool standing_claims(const struct standings *s, uint32_t queue, uint32_t top, int64_t share)
{
	for (; queue != top; queue = s->view->queues.at[queue].parent)
		if (s->at[queue].critical + share > s->at[queue].guarantee)
			return false;
	return true;
}

/* Is so much within the queue's guarantee, or what is left of it where the guarantees of all do not fit? */
static bool is_guaranteed(const struct standing *at, int64_t use)
{
	return use <= least(at->guarantee + at->booked, at->share);
}

bool standing_has(const struct standings *s, uint32_t queue, int64_t share, bool guaranteed)
{
	for (; queue; queue = s->view->queues.at[queue].parent) {
		const struct standing *at = &s->at[queue];
		int64_t use = at->use + at->claimed + share;

		if (use > at->share || (guaranteed && !is_guaranteed(at, use)))
			return false;
	}
	return true;
}

void standing_reserve(struct standings *s, uint32_t queue, int64_t share)
{
	for (; queue; queue = s->view->queues.at[queue].parent)
		s->at[queue].claimed += share;
}

bool standing_guaranteed(const struct standings *s, uint32_t queue, uint32_t top, int64_t share)
{
	for (; queue != top; queue = s->view->queues.at[queue].parent)
		if (!is_guaranteed(&s->at[queue], s->at[queue].use + share))
			return false;
	return true;
}

bool standing_borrows(const struct standings *s, uint32_t queue, uint32_t top, int64_t share)
{
	if (queue == top)
		return false;
	for (; queue != top; queue = s->view->queues.at[queue].parent)
		if (s->at[queue].use - share < s->at[queue].guarantee + s->at[queue].booked)
			return false;
	return true;
}

uint32_t queue_meet(const struct view *view, uint32_t a, uint32_t b)
{
	for (; a; a = view->queues.at[a].parent)
		if (queue_is_in(view, b, a))
			return a;
	return 0;
}

int standing_compare(const struct standing *a, const struct standing *b)
{
	wide left = (wide)standing_counts(a) * b->turn_share,
	     right = (wide)standing_counts(b) * a->turn_share;

	if ((a->turn_share > 0) != (b->turn_share > 0))
		return a->turn_share > 0 ? -1 : 1;
	if (left != right)
		return left < right ? -1 : 1;
	left = (wide)a->past * b->weight;
	right = (wide)b->past * a->weight;
	return left == right ? 0 : left < right ? -1 : 1;
}
