/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations in advance: what can be honoured is taken, and its GPUs are chosen here; anything else is refused, with who is in
 * the way.
 *
 *	4 GPUs from 20:00: n0 has 8, of which 2 are reserved for others at 21:00, n1 has 4 on which critical work runs that has no limit
 *	n0 gives 6, n1 none. Of the 6 those come first that are idle, or whose jobs declare a limit that ends before 20:00.
 *
 * Whole nodes come first, then those that give most, then by name. What else runs there makes room when the time comes: it is
 * warned, saves, and waits again.
 *
 * GPUs of it that fail later are replaced in the same way, by such as are ready (booking_mend); nodes that were named are not.
 */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/scheduling/admit/admit.h"
#include "core/scheduling/view/view.h"

/* What a node can give. */
struct offer {
	uint32_t node;
	uint32_t sure, other; /* free by then for certain; held by work that has to make room */
};

struct choice {
	const struct admission *a;
	struct event_booking_set *e;
	struct offer *offers; /* by node id */
	uint32_t *order; /* node ids, best first */
	uint32_t count;
	uint32_t critical; /* a job that keeps GPUs from it; 0 = none */
	const char *other; /* a reservation that does; NULL = none */
	const char *closed; /* a node with maintenance; NULL = none */
	bool ready; /* nodes that are ready alone */
};

static bool overlap(int64_t from_ms, int64_t to_ms, const struct event_booking_set *e)
{
	return from_ms < e->to_ms && to_ms > e->from_ms;
}

static uint32_t bits(uint32_t mask)
{
	return (uint32_t)__builtin_popcount(mask);
}

static uint32_t gpus_all(const struct node *node)
{
	return (uint32_t)((UINT64_C(1) << node->gpu_count) - 1);
}

static void offers_begin(struct choice *c)
{
	const struct facts *f = c->a->facts;
	struct name_id model = facts_name_find(f, c->e->model);

	c->offers = arena_new_array(c->a->arena, struct offer, f->nodes.count + 1);
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		c->offers[id].node = id;
		if (node->state == NODE_GONE || (c->ready && node->state != NODE_READY) ||
		    (*c->e->model && (!model.v || !name_same(model, node->model))))
			continue;
		if (node_has_window(node) &&
		    overlap(node->window_from_ms, node->window_to_ms, c->e)) {
			c->closed = c->closed ? c->closed : facts_name(f, node->name);
			continue;
		}
		c->offers[id].sure = gpus_all(node) & ~node->set_aside_mask;
	}
}

static void bookings_take(struct choice *c)
{
	const struct facts *f = c->a->facts;

	for (uint32_t row = 1; row <= f->bookings.count; row++) {
		const struct booking *b = booking_get(f, row);

		if (!b->name.v || strcmp(facts_name(f, b->name), c->e->name) == 0 ||
		    !overlap(b->from_ms, b->to_ms, c->e))
			continue;
		for (uint32_t i = 0; i < BOOKING_NODES_MAX && b->node[i]; i++) {
			struct offer *o = &c->offers[b->node[i]];
			uint32_t mask = b->gpus ? b->mask[i] : UINT32_MAX;

			if (o->sure & mask)
				c->other = c->other ? c->other : facts_name(f, b->name);
			o->sure &= ~mask;
		}
	}
}

/* Whom it would be for. */
static struct booking booking_asked(const struct facts *f, const struct event_booking_set *e)
{
	return (struct booking){ .queue = facts_queue_find(f, e->queue),
				 .user = facts_name_find(f, e->user),
				 .team = facts_name_find(f, e->team) };
}

/* Work that runs: critical work without a limit stays, what ends in time or is lent does not count, the rest has to make room. */
static void job_take(struct choice *c, uint32_t id)
{
	const struct facts *f = c->a->facts;
	const struct job *job = job_get(f, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(f, job->attempt);
	int64_t end_ms = job_limit_end_ms(f, job);
	bool stays = job->tier == TIER_CRITICAL && (!end_ms || end_ms > c->e->from_ms);
	struct booking asked = booking_asked(f, c->e);

	if (job->tier == TIER_BEST_EFFORT || (end_ms && end_ms <= c->e->from_ms) ||
	    booking_is_for(f, &asked, job))
		return;
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&f->tasks, attempt->first_task + i);
		struct offer *o = &c->offers[task->node.v];
		uint32_t mask = task->gpu_mask & o->sure;

		if (!task_holds(task) || !mask)
			continue;
		o->sure &= ~mask;
		o->other |= stays ? 0 : mask;
		if (stays && !c->critical)
			c->critical = id;
	}
}

/* The same of the jobs that run by the index. */
static void running_take(struct choice *c, const struct view *view)
{
	struct sorted_walk walk;

	for (uint32_t q = 1; q <= c->a->facts->queues.count; q++)
		for (bool any = sorted_begin(&view->pool, view->queues.at[q].running, &walk); any;
		     any = sorted_next(&view->pool, &walk))
			job_take(c, walk.id);
}

static void jobs_take(struct choice *c)
{
	for (uint32_t id = 1; id <= c->a->facts->jobs.count; id++)
		if (job_get(c->a->facts, (struct job_id){ id })->attempt.v)
			job_take(c, id);
}

/* Whole ones for certain, then those that give most, then by name. */
static bool offer_before(const struct choice *c, uint32_t a, uint32_t b)
{
	const struct facts *f = c->a->facts;
	const struct offer *oa = &c->offers[a], *ob = &c->offers[b];

	if (bits(oa->sure) != bits(ob->sure))
		return bits(oa->sure) > bits(ob->sure);
	if (bits(oa->other) != bits(ob->other))
		return bits(oa->other) > bits(ob->other);
	return strcmp(facts_name(f, node_get(f, (struct node_id){ a })->name),
		      facts_name(f, node_get(f, (struct node_id){ b })->name)) < 0;
}

/* Merge sort of ids into themselves. */
static void offers_sort(const struct choice *c, uint32_t *ids, uint32_t *room, uint32_t count)
{
	uint32_t half = count / 2, i = 0, j = half, n = 0;

	if (count < 2)
		return;
	offers_sort(c, ids, room, half);
	offers_sort(c, ids + half, room, count - half);
	while (i < half && j < count)
		room[n++] = offer_before(c, ids[j], ids[i]) ? ids[j++] : ids[i++];
	while (i < half)
		room[n++] = ids[i++];
	while (j < count)
		room[n++] = ids[j++];
	memcpy(ids, room, n * sizeof(*ids));
}

static void offers_order(struct choice *c)
{
	uint32_t *room = arena_new_array(c->a->arena, uint32_t, c->a->facts->nodes.count + 1);

	c->order = arena_new_array(c->a->arena, uint32_t, c->a->facts->nodes.count + 1);
	for (uint32_t id = 1; id <= c->a->facts->nodes.count; id++)
		if (c->offers[id].sure || c->offers[id].other)
			c->order[c->count++] = id;
	offers_sort(c, c->order, room, c->count);
}

static int too_few(const struct choice *c, uint32_t have)
{
	const char *why = "";

	if (c->other)
		why = arena_printf(c->a->arena, "; reservation \"%s\" holds some of the others",
				   c->other);
	else if (c->critical)
		why = arena_printf(
			c->a->arena,
			"; job %u is critical, declares no run-time limit that ends before, and holds some of the others",
			c->critical);
	else if (c->closed)
		why = arena_printf(c->a->arena, "; node \"%s\" has maintenance then", c->closed);
	return err_set(c->a->err, ERR_QUOTA,
		       "reservation \"%s\": only %u of %lld GPUs can be had for all of that time%s",
		       c->e->name, have, (long long)c->e->gpus, why);
}

static uint32_t lowest(uint32_t mask, uint32_t count)
{
	uint32_t taken = 0;

	for (; mask && count; count--, mask &= mask - 1)
		taken |= mask & -mask;
	return taken;
}

/* `gpus` of them: first those that are free for certain, node by node, then the others. */
static int gpus_choose(struct choice *c)
{
	int64_t *nodes = arena_new_array(c->a->arena, int64_t, BOOKING_NODES_MAX),
		*masks = arena_new_array(c->a->arena, int64_t, BOOKING_NODES_MAX);
	uint32_t have = 0, count = 0, need = (uint32_t)c->e->gpus;
	uint32_t *taken = arena_new_array(c->a->arena, uint32_t, c->a->facts->nodes.count + 1);

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < c->count && have < need; i++) {
			const struct offer *o = &c->offers[c->order[i]];
			uint32_t mask = lowest(pass ? o->other : o->sure, need - have);

			have += bits(mask);
			taken[o->node] |= mask;
		}
	for (uint32_t i = 0; i < c->count; i++) {
		if (!taken[c->order[i]])
			continue;
		if (count == BOOKING_NODES_MAX)
			return err_set(
				c->a->err, ERR_TOO_LARGE,
				"reservation \"%s\": it would take more than %d nodes; make several smaller ones",
				c->e->name, BOOKING_NODES_MAX);
		nodes[count] = c->order[i];
		masks[count++] = taken[c->order[i]];
	}
	if (have < need)
		return too_few(c, have);
	c->e->nodes = nodes;
	c->e->masks = masks;
	c->e->nodes_count = c->e->masks_count = count;
	return 0;
}

/* The nodes that are named must be had whole. */
static int nodes_check(struct choice *c)
{
	int64_t *masks = arena_new_array(c->a->arena, int64_t, c->e->nodes_count + 1);
	const struct facts *f = c->a->facts;

	for (uint32_t i = 0; i < c->e->nodes_count; i++) {
		const struct node *node = node_get(f, (struct node_id){ (uint32_t)c->e->nodes[i] });
		const struct offer *o = &c->offers[c->e->nodes[i]];
		uint32_t all = gpus_all(node);

		if (node->state == NODE_GONE ||
		    ((o->sure | o->other) & all) != (all & ~node->set_aside_mask)) {
			const char *by = "";

			if (c->other)
				by = arena_printf(c->a->arena, ": reservation \"%s\" is there",
						  c->other);
			else if (c->critical)
				by = arena_printf(
					c->a->arena,
					": job %u is critical and declares no run-time limit that ends before",
					c->critical);
			else if (c->closed)
				by = ": it has maintenance then";
			return err_set(
				c->a->err, ERR_QUOTA,
				"reservation \"%s\": node \"%s\" can't be had for all of that time%s",
				c->e->name, facts_name(f, node->name), by);
		}
		masks[i] = all;
	}
	c->e->masks = masks;
	c->e->masks_count = c->e->nodes_count;
	return 0;
}

/* A reservation is a place, not a share: its queue's limits hold, so more than they allow would only stand idle. */
static int limits_check(const struct admission *a, const struct event_booking_set *e)
{
	struct queue_id id = facts_queue_find(a->facts, e->queue);
	int64_t gpus = e->gpus;

	for (uint32_t i = 0; !e->gpus && i < e->nodes_count; i++)
		gpus += node_get(a->facts, (struct node_id){ (uint32_t)e->nodes[i] })->gpu_count;
	for (; id.v; id = queue_get(a->facts, id)->parent) {
		const struct queue *queue = queue_get(a->facts, id);

		if (queue->limit_share >= 0 && gpus > queue->limit_share / GPU_SHARE)
			return err_set(
				a->err, ERR_QUOTA,
				"reservation \"%s\": %lld GPUs are more than the limit of queue \"%s\", %s",
				e->name, (long long)gpus, facts_name(a->facts, queue->name),
				share_text(a->arena, queue->limit_share));
	}
	return 0;
}

static int times_check(const struct admission *a, const struct event_booking_set *e)
{
	if (e->from_ms < 0 || e->to_ms <= e->from_ms)
		return err_set(a->err, ERR_INVALID,
			       "reservation \"%s\": it must end after it begins", e->name);
	if (e->to_ms <= a->now_ms)
		return err_set(a->err, ERR_INVALID, "reservation \"%s\": its end is in the past",
			       e->name);
	if (e->to_ms - a->now_ms > ADMIT_DURATION_MAX_MS)
		return err_set(a->err, ERR_INVALID,
			       "reservation \"%s\": its end is too far in the future", e->name);
	return 0;
}

static int size_check(const struct admission *a, const struct event_booking_set *e)
{
	if ((e->gpus > 0) == (e->nodes_count > 0))
		return err_set(
			a->err, ERR_INVALID,
			"reservation \"%s\": it needs either a number of GPUs, or nodes to be had as a whole",
			e->name);
	if (e->nodes_count > BOOKING_NODES_MAX)
		return err_set(a->err, ERR_TOO_LARGE, "reservation \"%s\": more than %d nodes",
			       e->name, BOOKING_NODES_MAX);
	for (uint32_t i = 0; i < e->nodes_count; i++)
		if (e->nodes[i] < 1 || e->nodes[i] > (int64_t)a->facts->nodes.count)
			return err_set(a->err, ERR_NOT_FOUND,
				       "reservation \"%s\": there is no node with number %lld",
				       e->name, (long long)e->nodes[i]);
	return admit_range(a, "the GPUs of a reservation", e->gpus, 0,
			   BOOKING_NODES_MAX * NODE_GPUS_MAX);
}

static int whom_check(const struct admission *a, const struct event_booking_set *e)
{
	if (*e->user && !facts_user_find(a->facts, e->user))
		return err_set(a->err, ERR_NOT_FOUND,
			       "there is no user \"%s\"; `fairlead users` lists those there are",
			       e->user);
	if (*e->team && !facts_team_find(a->facts, e->team))
		return err_set(a->err, ERR_NOT_FOUND,
			       "there is no team \"%s\"; `fairlead teams` lists those there are",
			       e->team);
	if (*e->queue)
		return admit_queue_find(a, e->queue).v ? 0 : -(int)ERR_NOT_FOUND;
	if (!*e->user && !*e->team)
		return err_set(a->err, ERR_INVALID,
			       "reservation \"%s\": say for whom: a queue, a user or a team",
			       e->name);
	return 0;
}

static uint32_t bookings_live(const struct facts *f)
{
	uint32_t count = 0;

	for (uint32_t row = 1; row <= f->bookings.count; row++)
		count += booking_get(f, row)->name.v != 0;
	return count;
}

int admit_booking_set(const struct admission *a, struct event_booking_set *e)
{
	struct choice c = { .a = a, .e = e };
	int rc = admit_name(a, "reservation", e->name);

	if (rc == 0)
		rc = whom_check(a, e);
	if (rc == 0)
		rc = times_check(a, e);
	if (rc == 0)
		rc = size_check(a, e);
	if (rc == 0)
		rc = admit_text(a, "the reason", e->reason);
	if (rc == 0)
		rc = admit_text(a, "the GPU model", e->model);
	if (rc == 0)
		rc = limits_check(a, e);
	if (rc == 0 && !facts_booking_find(a->facts, e->name) &&
	    bookings_live(a->facts) == BOOKINGS_MAX)
		rc = err_set(a->err, ERR_TOO_LARGE,
			     "there are %d reservations already; delete one first", BOOKINGS_MAX);
	if (rc < 0)
		return rc;
	offers_begin(&c);
	bookings_take(&c);
	jobs_take(&c);
	if (!e->gpus)
		return nodes_check(&c);
	offers_order(&c);
	return gpus_choose(&c);
}

int admit_booking_ended(const struct admission *a, const struct event_booking_ended *e)
{
	if (facts_booking_find(a->facts, e->name))
		return 0;
	return err_set(
		a->err, ERR_NOT_FOUND,
		"there is no reservation \"%s\"; `fairlead reservations` lists those there are",
		e->name);
}

/* --- what failed ------------------------------------------------------------------------------------------ */

/* GPUs of it that can't be used any more: their node failed, or they were set aside. */
static uint32_t mask_lost(const struct facts *f, const struct booking *b, uint32_t i)
{
	const struct node *node = node_get(f, (struct node_id){ b->node[i] });

	if (node->state == NODE_DOWN || node->state == NODE_QUARANTINED || node->state == NODE_GONE)
		return b->mask[i];
	return b->mask[i] & node->set_aside_mask;
}

/* What it still has is its own: no offer. Returns how many GPUs it lost. */
static uint32_t kept_take(struct choice *c, const struct booking *b)
{
	uint32_t lost = 0;

	for (uint32_t i = 0; i < BOOKING_NODES_MAX && b->node[i]; i++) {
		lost += bits(mask_lost(c->a->facts, b, i));
		c->offers[b->node[i]].sure &= ~b->mask[i];
	}
	return lost;
}

static uint32_t offers_sum(const struct choice *c)
{
	uint32_t sum = 0;

	for (uint32_t id = 1; id <= c->a->facts->nodes.count; id++)
		sum += bits(c->offers[id].sure);
	return sum;
}

/* What it kept and what was chosen, node by node. */
static bool places_join(struct choice *c, const struct booking *b)
{
	int64_t *nodes = arena_new_array(c->a->arena, int64_t, (size_t)2 * BOOKING_NODES_MAX),
		*masks = arena_new_array(c->a->arena, int64_t, (size_t)2 * BOOKING_NODES_MAX);
	uint32_t count = 0;

	for (uint32_t i = 0; i < BOOKING_NODES_MAX && b->node[i]; i++) {
		masks[count] = b->mask[i] & ~mask_lost(c->a->facts, b, i);
		nodes[count] = b->node[i];
		count += masks[count] != 0;
	}
	for (uint32_t i = 0; i < c->e->nodes_count; i++) {
		uint32_t at = 0;

		while (at < count && nodes[at] != c->e->nodes[i])
			at++;
		nodes[at] = c->e->nodes[i];
		masks[at] |= c->e->masks[i];
		count += at == count;
	}
	c->e->nodes = nodes;
	c->e->masks = masks;
	c->e->nodes_count = c->e->masks_count = count;
	return count <= BOOKING_NODES_MAX;
}

bool booking_mend(const struct admission *a, const struct view *view, uint32_t row,
		  struct event_booking_set *ret)
{
	const struct facts *f = a->facts;
	const struct booking *b = booking_get(f, row);
	struct choice c = { .a = a, .e = ret, .ready = true };
	uint32_t lost;

	*ret = (struct event_booking_set){
		.name = facts_name(f, b->name),
		.queue = b->queue.v ? facts_name(f, queue_get(f, b->queue)->name) : "",
		.user = facts_name(f, b->user),
		.team = facts_name(f, b->team),
		.from_ms = b->from_ms > a->now_ms ? b->from_ms : a->now_ms,
		.to_ms = b->to_ms,
		.keep = b->keep,
		.model = facts_name(f, b->model),
		.reason = facts_text(f, b->reason),
	};
	offers_begin(&c);
	bookings_take(&c);
	lost = kept_take(&c, b);
	if (!lost || offers_sum(&c) < lost)
		return false;
	running_take(&c, view);
	offers_order(&c);
	ret->gpus = lost;
	if (gpus_choose(&c) != 0 || !places_join(&c, b))
		return false;
	ret->gpus = b->gpus;
	ret->from_ms = b->from_ms;
	return true;
}

bool booking_has_lost(const struct facts *f, uint32_t row)
{
	const struct booking *b = booking_get(f, row);

	for (uint32_t i = 0; b->gpus && i < BOOKING_NODES_MAX && b->node[i]; i++)
		if (mask_lost(f, b, i))
			return true;
	return false;
}
