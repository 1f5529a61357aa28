/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations as facts. One that was found stays until a cause takes it away:
 *
 *	its job starts, ends, or is blocked no longer			dropped
 *	a GPU of it is held by a job that is expected to stay longer,
 *	is promised, reserved by a job with its turn before, or
 *	not usable any more						looked for anew
 *	RESERVE_REVIEW_MS after all were looked for			looked for anew: it may come earlier
 *
 * A job with none that was looked at waits for that review too. One that a limit, a budget, a calendar or its array may have kept from
 * its turn then waits RESERVE_SEEK_MS at most; those that hold are kept.
 *
 *	4 GPUs: `long` holds 3 until 31 min, `wide` has all four reserved from then on. At 5 min `long` ends: `wide` starts.
 *	At 31 min `long` has not ended: nothing changes, it is expected to end any moment.
 *
 * A reservation of parts of GPUs is none of these: each pass looks for it anew. One of whole GPUs is looked for anew as well
 * while others hold parts of a GPU of it.
 *
 * To see whether one still holds is a look at who holds each of its GPUs, some 10 ns each. To find one is a walk through
 * all that will end. So an event costs the first, and a walk comes every ten seconds at most and when a plan has failed.
 * What is known of the ends is better for each event; but a gang that is told a new place every second is told nothing.
 */
#include <string.h>

#include "base/check.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/queues/window.h"

enum {
	LATE_TRIES = 4, /* reservations that are late one after the other, on one place */
	LATE_MS = 60000 /* by less a new start is no news */
};

void reserve_begin(struct pass *pass)
{
	const struct facts *f = pass->facts;

	pass->review = !f->reviewed_ms || f->now_ms - f->reviewed_ms >= RESERVE_REVIEW_MS;
	pass->seek = f->now_ms - f->sought_ms >= RESERVE_SEEK_MS;
	if (!pass->watch)
		pass->reserved_seen = arena_new_array(pass->arena, bool, f->reservation_count + 1);
}

/* --- does it hold? ----------------------------------------------------------------------------------- */

/* Best-effort work goes when it is in the way of a job that may evict. */
static bool holder_goes(const struct pass *pass, const struct job_view *jv)
{
	return jv->tier == TIER_BEST_EFFORT && !jv->leaving &&
	       attempt_may_be_evicted(attempt_get(pass->facts, (struct attempt_id){ jv->attempt }));
}

/* Each GPU that is busy is held by somebody who has left by then; `asked`: for a claim, or may be warned by then. */
static bool gpus_come_free(const struct pass *pass, uint32_t rank, uint32_t busy, int64_t start_ms,
			   bool spares, struct claim_asked *asked)
{
	for (; busy; busy &= busy - 1) {
		uint32_t holder = view_holder(pass->view, rank, (uint32_t)__builtin_ctz(busy));
		const struct job_view *jv = job_view_get(pass->view, holder);
		struct takeable taken;

		if (!holder || !jv->attempt)
			return false;
		if (jv->end_ms <= start_ms || (spares && holder_goes(pass, jv)))
			continue;
		if (!asked || !claim_may_take(asked, holder, &taken) || taken.warn_ms > start_ms)
			return false;
	}
	return true;
}

/* Of unlike tasks each is looked at. */
static void holder_gives(const struct pass *pass, uint32_t id, uint32_t node, int64_t *cpu_milli,
			 int64_t *ram_mib)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&pass->facts->tasks, attempt->first_task + i);
		struct hold hold = task_hold(task, shape, i);

		if (!task_holds(task) || task->node.v != node)
			continue;
		*cpu_milli += hold.cpu_milli;
		*ram_mib += hold.ram_mib;
	}
}

/* What the jobs with GPUs of the node give back by then. */
static void node_gives(const struct pass *pass, uint32_t rank, int64_t start_ms, int64_t *cpu_milli,
		       int64_t *ram_mib)
{
	const struct place_node *node = space_at(&pass->view->space, rank);
	uint32_t busy =
		node->busy & node->all; /* who holds GPUs that it has no more is not listed */

	while (busy) {
		uint32_t holder = view_holder(pass->view, rank, (uint32_t)__builtin_ctz(busy)),
			 held = 0;
		const struct shape *shape;

		for (uint32_t rest = busy; rest; rest &= rest - 1)
			if (view_holder(pass->view, rank, (uint32_t)__builtin_ctz(rest)) == holder)
				held |= rest & -rest;
		busy &= ~held;
		if (!holder || job_view_get(pass->view, holder)->end_ms > start_ms)
			continue;
		shape = shape_get(pass->facts,
				  job_get(pass->facts, (struct job_id){ holder })->shape);
		if (shape->role_count) {
			holder_gives(pass, holder, node->node, cpu_milli, ram_mib);
			continue;
		}
		*cpu_milli += (int64_t)(bits_count(held) / shape->gpus) * shape->cpu_milli;
		*ram_mib += (int64_t)(bits_count(held) / shape->gpus) * shape->memory_mib;
	}
}

/* Enough processors and memory. Work without GPUs is not counted on, nor is what is lent. */
static bool node_has(const struct pass *pass, const struct slot_asker *asker, uint32_t rank,
		     int64_t cpu_milli, int64_t ram_mib, int64_t start_ms)
{
	int64_t cpu = space_at(&pass->view->space, rank)->cpu_free,
		ram = space_at(&pass->view->space, rank)->ram_free;

	slots_free(pass, asker, rank, start_ms, &cpu, &ram);
	node_gives(pass, rank, start_ms, &cpu, &ram);
	return cpu >= cpu_milli && ram >= ram_mib;
}

/* Unlike tasks of one node need not stand together in the list: they are summed up by node. */
static bool roles_have(const struct pass *pass, const struct slot_asker *asker,
		       const struct reservation *r)
{
	const struct placement *place = &r->place;
	struct hold *sums = arena_new_array(pass->arena, struct hold, pass->view->space.node_count);

	for (uint32_t i = 0; i < place->count; i++) {
		struct hold hold = placement_hold(place, i, r->shape);

		sums[place->ranks[i]].cpu_milli += hold.cpu_milli;
		sums[place->ranks[i]].ram_mib += hold.ram_mib;
	}
	for (uint32_t i = 0; i < place->count; i++)
		if (!node_has(pass, asker, place->ranks[i], sums[place->ranks[i]].cpu_milli,
			      sums[place->ranks[i]].ram_mib, r->start_ms))
			return false;
	return true;
}

static bool place_has(const struct pass *pass, const struct slot_asker *asker,
		      const struct reservation *r)
{
	const struct placement *place = &r->place;

	if (!r->shape->cpu_milli && !r->shape->memory_mib)
		return true;
	if (r->shape->role_count)
		return roles_have(pass, asker, r);
	for (uint32_t first = 0, end; first < place->count; first = end) {
		for (end = first + 1;
		     end < place->count && place->ranks[end] == place->ranks[first]; end++)
			;
		if (!node_has(pass, asker, place->ranks[first],
			      (int64_t)r->shape->cpu_milli * (end - first),
			      (int64_t)r->shape->memory_mib * (end - first), r->start_ms))
			return false;
	}
	return true;
}

/* Is the node ready then, and nothing of it kept from the job? */
static bool node_is_open(const struct pass *pass, const struct job *job, const struct promise *at,
			 uint32_t rank, int64_t start_ms)
{
	const struct place_node *node = space_at(&pass->view->space, rank);
	uint32_t usable = node->usable, blocked;
	bool ready = node->ready || node->shut, opens;

	blocked = blocks_of_node(pass, job, rank, start_ms,
				 start_ms + job_stays_ms(pass->facts, job, start_ms), &opens);
	if (opens) {
		ready = true;
		usable = node->all &
			 ~node_get(pass->facts, (struct node_id){ node->node })->set_aside_mask;
	}
	return ready && blocked != UINT32_MAX && !(at->gpu_mask & (~usable | blocked));
}

static bool task_has(const struct pass *pass, const struct job *job, const struct slot_asker *asker,
		     const struct promise *at, int64_t start_ms, struct claim_asked *asked,
		     uint32_t *ret_rank, int64_t *ret_late_ms)
{
	int32_t rank = space_rank(&pass->view->space, at->node);
	const struct place_node *node;

	if (rank == RANK_NONE)
		return false;
	*ret_rank = (uint32_t)rank;
	node = space_at(&pass->view->space, *ret_rank);
	if (!node_is_open(pass, job, at, *ret_rank, start_ms) ||
	    at->gpu_mask & ((node->promised & ~slots_promised(pass, *ret_rank)) | node->shared) ||
	    pass->closed >> node->class & 1)
		return false;
	if (!slots_allow(pass, asker, *ret_rank, at->gpu_mask, start_ms, ret_late_ms))
		return false;
	return gpus_come_free(pass, *ret_rank, at->gpu_mask & node->busy, start_ms, job->preempts,
			      asked);
}

/* Each task of it has its GPUs then; *ret_late_ms: but for reservations that are late, the last of which ends then. */
static bool tasks_have(struct pass *pass, const struct job *job, const struct slot_asker *asker,
		       const struct reservation_fact *fact, struct reservation *r,
		       int64_t *ret_late_ms)
{
	struct claim_asked asked;
	bool claims = job_claims(pass, job), have = true;
	uint32_t row = fact->first;

	claim_begin(&asked, pass, job);
	for (uint32_t i = 0; i < fact->tasks && have; i++) {
		const struct promise *at = table_get(&pass->facts->promises, row);

		have = task_has(pass, job, asker, at, r->start_ms, claims ? &asked : NULL,
				&r->place.ranks[i], ret_late_ms);
		r->place.masks[i] = at->gpu_mask;
		row = at->next;
	}
	claim_end(&asked);
	return have;
}

/* One that waits for late ones starts later itself, and may then meet others that are late. */
static bool tasks_have_in_the_end(struct pass *pass, const struct job *job,
				  const struct slot_asker *asker,
				  const struct reservation_fact *fact, struct reservation *r)
{
	for (uint32_t tries = 0; tries < LATE_TRIES; tries++) {
		int64_t late_ms = 0;

		if (!tasks_have(pass, job, asker, fact, r, &late_ms))
			return false;
		if (!late_ms)
			return true;
		r->start_ms = late_ms;
	}
	return false;
}

bool reserve_holds(struct pass *pass, uint32_t id, const struct place_request *request,
		   struct reservation *ret)
{
	const struct reservation_fact *fact = facts_reservation(pass->facts, (struct job_id){ id });
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	struct reservation r = { .job = id, .shape = request->shape };
	struct slot_asker asker;

	if (!fact || shape_is_part(request->shape) || fact->tasks != request->tasks)
		return false;
	asker = slot_asker_make(pass, job);
	reserve_keep(pass);
	r.waits_for = fact->waits_for;
	r.start_ms = fact->start_ms > pass->facts->now_ms ? fact->start_ms : pass->facts->now_ms;
	r.place.count = fact->tasks;
	r.place.ranks = arena_new_array(pass->arena, uint32_t, fact->tasks);
	r.place.masks = arena_new_array(pass->arena, uint32_t, fact->tasks);
	if (!tasks_have_in_the_end(pass, job, &asker, fact, &r) || !place_has(pass, &asker, &r))
		return false;
	r.late = r.start_ms > fact->start_ms;
	*ret = r;
	pass->unreviewed = true;
	return true;
}

int64_t reserve_stays_ms(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct place_request request;
	struct reservation r = { 0 };

	if (!facts_reservation(pass->facts, (struct job_id){ id }))
		return INT64_MAX;
	request = pass_request(pass, shape, shape->tasks_min);
	return reserve_holds(pass, id, &request, &r) ? r.start_ms : INT64_MAX;
}

enum { QUEUE_UNKNOWN, QUEUE_NEVER_KEEPS, QUEUE_MAY_KEEP };

static uint8_t queue_keeps(const struct pass *pass, uint32_t id)
{
	for (uint32_t up = id; up; up = pass->view->queues.at[up].parent) {
		const struct queue *queue = queue_get(pass->facts, (struct queue_id){ up });

		if (queue->budget_ms || queue->limit_share >= 0 ||
		    pass->standings.at[up].calendar || queue_is_bounded(queue))
			return QUEUE_MAY_KEEP;
	}
	return QUEUE_NEVER_KEEPS;
}

/* Something else than places may have kept it from its turn at the last review: a limit, a budget, a calendar, a guarantee, its array. Of
 * each queue it is found out once in a pass. */
static bool job_may_have_been_kept(struct pass *pass, uint32_t id, const struct job *job)
{
	uint8_t *known;

	if (job->tier == TIER_CRITICAL || pass->standings.reserved_count ||
	    job_view_get(pass->view, id)->array || shape_get(pass->facts, job->shape)->window.v)
		return true;
	if (!pass->queues_keep)
		pass->queues_keep = arena_new_array(pass->arena, uint8_t, pass->standings.count);
	known = &pass->queues_keep[job->queue.v];
	if (*known == QUEUE_UNKNOWN)
		*known = queue_keeps(pass, job->queue.v);
	return *known == QUEUE_MAY_KEEP;
}

bool reserve_was_looked_for(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });

	if (pass->review || shape_is_part(shape_get(pass->facts, job->shape)) ||
	    facts_reservation(pass->facts, (struct job_id){ id }) ||
	    job->state_ms >= pass->facts->reviewed_ms)
		return false;
	if (!job_may_have_been_kept(pass, id, job))
		return true;
	pass->sought = pass->sought || pass->seek;
	pass->unsought = !pass->seek;
	return !pass->seek;
}

bool reserve_waits(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });

	if (pass->review || pass->aparts.any || job->state_ms >= pass->facts->reviewed_ms ||
	    (int64_t)pass->reservation_count >= pass->facts->policy.backfill_depth ||
	    shape_is_part(shape_get(pass->facts, job->shape)) ||
	    facts_reservation(pass->facts, (struct job_id){ id }) ||
	    job_may_have_been_kept(pass, id, job))
		return false;
	pass->unreviewed = true;
	return true;
}

/* --- into the decisions ------------------------------------------------------------------------------ */

/* What is late is expected now, whenever it should have been; and what waits for one that is late, somewhat later than it was. */
static bool start_is_known(const struct pass *pass, const struct reservation_fact *fact,
			   const struct reservation *r)
{
	int64_t now_ms = pass->facts->now_ms;

	return fact->start_ms == r->start_ms ||
	       (fact->start_ms <= now_ms && r->start_ms <= now_ms) ||
	       (r->late && r->start_ms - fact->start_ms < LATE_MS);
}

/* The same place, and the same time. */
static bool reservation_is_known(const struct pass *pass, const struct reservation_fact *fact,
				 const struct reservation *r)
{
	uint32_t row = fact->first;

	if (fact->tasks != r->place.count || !start_is_known(pass, fact, r))
		return false;
	for (uint32_t i = 0; i < fact->tasks; i++) {
		const struct promise *at = table_get(&pass->facts->promises, row);

		if (at->node != space_at(&pass->view->space, r->place.ranks[i])->node ||
		    at->gpu_mask != r->place.masks[i])
			return false;
		row = at->next;
	}
	return true;
}

void reserve_note(struct pass *pass, const struct reservation *r)
{
	uint32_t row = facts_reservation_row(pass->facts, (struct job_id){ r->job });
	const struct reservation_fact *fact = row ? reservation_get(pass->facts, row) : NULL;
	struct event_reservation_set *e;
	int64_t *nodes, *masks;

	if (!pass->reserved_seen || r->place.parts)
		return; /* explain asks; or each pass finds it anew */
	if (fact)
		pass->reserved_seen[row] = true;
	if (fact && reservation_is_known(pass, fact, r))
		return;
	nodes = arena_new_array(pass->arena, int64_t, r->place.count);
	masks = arena_new_array(pass->arena, int64_t, r->place.count);
	for (uint32_t i = 0; i < r->place.count; i++) {
		nodes[i] = space_at(&pass->view->space, r->place.ranks[i])->node;
		masks[i] = r->place.masks[i];
	}
	e = &pass_emit(pass, EVENT_RESERVATION_SET)->reservation_set;
	e->job = r->job;
	e->start_ms = r->start_ms;
	e->waits_for = r->waits_for;
	e->nodes = nodes;
	e->masks = masks;
	e->nodes_count = e->masks_count = r->place.count;
}

void reserve_end(struct pass *pass)
{
	if (!pass->reserved_seen)
		return;
	for (uint32_t row = 1; row <= pass->facts->reservation_count; row++)
		if (!pass->reserved_seen[row])
			pass_emit(pass, EVENT_RESERVATION_DROPPED)->reservation_dropped.job =
				reservation_get(pass->facts, row)->job;
}

void reserve_reviewed(struct pass *pass)
{
	pass->waits = !(pass->review && pass->ahead);
	if (pass->watch)
		return;
	if (!pass->waits)
		(void)pass_emit(pass, EVENT_RESERVATIONS_REVIEWED);
	else if (pass->sought)
		pass_emit(pass, EVENT_RESERVATIONS_REVIEWED)->reservations_reviewed.kept = 1;
}

/* What the pass decided is something that happened: so the next one would be woken as well. */
void reserve_wake(struct pass *pass)
{
	const struct facts *f = pass->facts;

	if (!pass->waits)
		return;
	if (pass->unsought && (pass->count || f->seq > f->sought_seq))
		pass_wake(pass, f->sought_ms + RESERVE_SEEK_MS);
	if ((pass->unreviewed || pass->sought) && (pass->count || f->seq > f->reviewed_seq))
		pass_wake(pass, f->reviewed_ms + RESERVE_REVIEW_MS);
}
