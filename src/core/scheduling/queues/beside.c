/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/queues/beside.h"

#include "core/model/roles.h"
#include "core/scheduling/queues/dominant.h"

__extension__ typedef __int128 wide;

static int64_t part_of(int64_t amount, int64_t all, int64_t whole)
{
	return all > 0 ? (int64_t)((wide)amount * whole / all) : 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void beside_add(struct beside *to, struct beside amount, int sign)
{
	to->cpu_milli += sign * amount.cpu_milli;
	to->ram_mib += sign * amount.ram_mib;
}

int64_t beside_part(const struct standings *s, struct beside amount)
{
	const struct amounts *all = &s->view->capacity;
	int64_t whole = dominant_whole(s), cpu = part_of(amount.cpu_milli, all->cpu_milli, whole),
		ram = part_of(amount.ram_mib, all->ram_mib, whole);

	return cpu > ram ? cpu : ram;
}

/* --- what is used and wanted ----------------------------------------------------------------------------- */

struct beside beside_of_task(const struct view *view, uint32_t rank, const struct shape *shape,
			     uint32_t at)
{
	const struct place_node *node = space_at(&view->space, rank);
	struct task_wish wish = shape_wish(shape, at);

	return (struct beside){ node->cpu_all < SPACE_UNLIMITED ? wish.cpu_milli : 0,
				node->ram_all < SPACE_UNLIMITED ? wish.memory_mib : 0 };
}

struct beside shape_beside(const struct shape *shape)
{
	return (struct beside){ shape_cpu_milli(shape, shape->tasks_min),
				shape_memory_mib(shape, shape->tasks_min) };
}

struct beside beside_of_promise(const struct view *view, const struct promise_view *p)
{
	struct beside sum = { 0, 0 };

	for (uint32_t i = 0; i < p->tasks; i++) {
		int32_t rank = space_rank(&view->space, promise_node(p, i));
		struct hold hold = promise_task(p, i);
		const struct place_node *node;

		if (rank == RANK_NONE)
			continue;
		node = space_at(&view->space, (uint32_t)rank);
		sum.cpu_milli += node->cpu_all < SPACE_UNLIMITED ? hold.cpu_milli : 0;
		sum.ram_mib += node->ram_all < SPACE_UNLIMITED ? hold.ram_mib : 0;
	}
	return sum;
}

/* What leaves is used no longer; what will wait again is wanted. `all`: every rank leaves, not only those that were told. */
static void leaving_read(struct standings *s, uint32_t set, bool all)
{
	const struct facts *facts = s->facts;
	struct sorted_walk walk;

	for (bool any = sorted_begin(&s->view->pool, set, &walk); any;
	     any = sorted_next(&s->view->pool, &walk)) {
		const struct job *job = job_get(facts, (struct job_id){ walk.id });
		const struct shape *shape = shape_get(facts, job->shape);
		const struct attempt *attempt = attempt_get(facts, job->attempt);
		struct standing *at = &s->at[job->queue.v];

		if (job->tier == TIER_BEST_EFFORT || (!shape->cpu_milli && !shape->memory_mib))
			continue;
		for (uint32_t i = 0; i < attempt->tasks; i++) {
			const struct task *task = table_get(&facts->tasks, attempt->first_task + i);
			int32_t rank = space_rank(&s->view->space, task->node.v);

			if (rank != RANK_NONE && task_holds(task) && (all || task->leaving))
				beside_add(&at->own_beside,
					   beside_of_task(s->view, (uint32_t)rank, shape, i), -1);
		}
		if (all && job_waits_again(facts, job, attempt))
			beside_add(&at->own_beside_demand, shape_beside(shape), 1);
	}
}

static void promises_read(struct standings *s)
{
	for (uint32_t i = 0; i < s->view->promise_count; i++) {
		const struct promise_view *p = &s->view->promises.at[i];

		if (p->tier != TIER_BEST_EFFORT)
			beside_add(&s->at[p->queue].own_beside, beside_of_promise(s->view, p), 1);
	}
}

/* A queue wants no more than it may hold. */
static void demand_bound(const struct facts *facts, uint32_t id, struct beside *demand)
{
	const struct queue *queue = id ? queue_get(facts, (struct queue_id){ id }) : NULL;

	if (queue && !queue->removed && queue->limit_cpu_milli)
		demand->cpu_milli = least(demand->cpu_milli, queue->limit_cpu_milli);
	if (queue && !queue->removed && queue->limit_ram_mib)
		demand->ram_mib = least(demand->ram_mib, queue->limit_ram_mib);
}

static void sums_make(struct standings *s)
{
	for (uint32_t id = 0; id < s->count; id++) {
		const struct amounts *holds = &s->view->queues.at[id].holds;

		s->at[id].own_beside = (struct beside){ holds->cpu_milli, holds->ram_mib };
	}
	leaving_read(s, s->view->leaving, true);
	leaving_read(s, s->view->shrinking, false);
	promises_read(s);
	for (uint32_t i = s->count; i-- > 0;) {
		uint32_t id = s->view->queue_order.at[i], up = s->view->queues.at[id].parent;
		struct standing *at = &s->at[id];

		beside_add(&at->own_beside_demand, at->own_beside, 1);
		beside_add(&at->own_beside_demand, at->wait_beside, 1);
		beside_add(&at->beside, at->own_beside, 1);
		beside_add(&at->beside_demand, at->own_beside_demand, 1);
		demand_bound(s->facts, id, &at->own_beside_demand);
		demand_bound(s->facts, id, &at->beside_demand);
		at->beside_part = beside_part(s, at->beside);
		if (!id)
			continue;
		beside_add(&s->at[up].beside, at->beside, 1);
		beside_add(&s->at[up].beside_demand, at->beside_demand, 1);
	}
}

/* --- shares ------------------------------------------------------------------------------------------------ */

/* Where there are no GPUs a guarantee of some says nothing of processors. */
static int64_t guarantee_of(const struct standings *s, uint32_t queue)
{
	return s->capacity > 0 ? s->at[queue].guarantee : 0;
}

static void shares_make(struct standings *s, uint32_t parent, struct taker *takers)
{
	const struct queue_view *queues = s->view->queues.at;
	struct standing *own = &s->at[parent];
	uint32_t count = 0;

	for (uint32_t id = queues[parent].first_child; id; id = queues[id].next_sibling)
		takers[count++] = (struct taker){ .queue = id,
						  .demand = beside_part(s, s->at[id].beside_demand),
						  .guarantee = guarantee_of(s, id),
						  .weight = s->at[id].weight };
	own->own_beside_share = count ? 0 : own->beside_share;
	if (!count)
		return;
	takers[count++] =
		(struct taker){ .demand = beside_part(s, own->own_beside_demand), .weight = 1 };
	takers_divide(takers, count, own->beside_share);
	for (uint32_t i = 0; i < count; i++)
		if (takers[i].queue)
			s->at[takers[i].queue].beside_share = takers[i].share;
		else
			own->own_beside_share = takers[i].share;
}

void beside_make(struct standings *s, struct taker *takers)
{
	if (!s->view->capacity.cpu_milli && !s->view->capacity.ram_mib)
		return;
	sums_make(s);
	s->at[0].beside_share = dominant_whole(s);
	for (uint32_t i = 0; i < s->count; i++)
		shares_make(s, s->view->queue_order.at[i], takers);
}

void beside_move(struct standings *s, uint32_t queue, uint8_t tier, struct beside amount, int sign)
{
	if (tier == TIER_BEST_EFFORT || (!amount.cpu_milli && !amount.ram_mib))
		return;
	beside_add(&s->at[queue].own_beside, amount, sign);
	for (;; queue = s->view->queues.at[queue].parent) {
		beside_add(&s->at[queue].beside, amount, sign);
		s->at[queue].beside_part = beside_part(s, s->at[queue].beside);
		if (!queue)
			return;
	}
}

/* --- questions ----------------------------------------------------------------------------------------------- */

/* The part that is used when so much comes to it. */
static int64_t part_with(const struct standings *s, struct beside used, struct beside more)
{
	beside_add(&used, more, 1);
	return beside_part(s, used);
}

bool beside_within(const struct standings *s, uint32_t queue, uint32_t top, struct beside more)
{
	if (queue == top)
		return part_with(s, s->at[queue].own_beside, more) <= s->at[queue].own_beside_share;
	for (; queue != top; queue = s->view->queues.at[queue].parent)
		if (part_with(s, s->at[queue].beside, more) > s->at[queue].beside_share)
			return false;
	return true;
}

bool beside_above(const struct standings *s, uint32_t queue, uint32_t top)
{
	if (queue == top)
		return beside_part(s, s->at[queue].own_beside) > s->at[queue].own_beside_share;
	for (; queue != top; queue = s->view->queues.at[queue].parent)
		if (s->at[queue].beside_part <= s->at[queue].beside_share)
			return false;
	return true;
}

bool beside_claims(const struct standings *s, uint32_t queue, uint32_t top, struct beside more)
{
	if (queue == top)
		return false;
	for (; queue != top; queue = s->view->queues.at[queue].parent)
		if (part_with(s, s->at[queue].beside, more) > guarantee_of(s, queue))
			return false;
	return true;
}

bool beside_borrows(const struct standings *s, uint32_t queue, uint32_t top)
{
	if (queue == top)
		return false;
	for (; queue != top; queue = s->view->queues.at[queue].parent)
		if (s->at[queue].beside_part <= guarantee_of(s, queue))
			return false;
	return true;
}
