/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations. A blocked job gets the place that will be free for it first, when every running job ends at its
 * expected time: the expected ends are gone through in order, each job's GPUs given back, until the blocked job
 * fits. From then on the place is its own: work that would still run at that time does not start on it. Work
 * that ends before may (backfill).
 *
 *	4 GPUs: `long` holds 3 for 31 min. `wide` needs 4: reserved from 31 min on, all four.
 *	`short` (11 min) may start on the fourth GPU now, `late` (51 min) may not.
 *
 * The walk through the ends is in ahead.c.
 *
 * Best-effort work is lent such places and stopped when they are needed, so it is not waited for: it is gone at the
 * beginning, unless the blocked job never evicts.
 *
 * An end that nobody declared is a guess, and waiting for it may be waiting for ever while a place stands empty. So for a job that has
 * waited for less than the policy's `reserve_unsure` only declared ends come: where these don't suffice it has no reservation.
 *
 * Where turns are taken (evict_turns.c), what is reserved for a job that is not due yet is lent to its equals that can save, whatever
 * their end: they have their turn behind it, and make room when it has its own. From when it is due on nothing is lent.
 *
 * What was found is a fact, and is kept as long as it holds (reserve_kept.c).
 */
#include <string.h>

#include "base/check.h"
#include "core/scheduling/order/due.h"
#include "core/scheduling/pass.h"

/* --- what is kept in the space ----------------------------------------------------------------------- */

static void reservation_keep(struct pass *pass, struct reservation *r)
{
	struct space *space = &pass->view->space;

	for (struct kept *k = r->kept; k < r->kept + r->kept_count; k++) {
		k->promised = hold_unpromised(space, k->rank, k->hold);
		space_promise(space, k->rank, &k->promised);
	}
	r->is_kept = true;
	pass->applied++;
}

static void reservation_free(struct pass *pass, struct reservation *r)
{
	for (uint32_t i = 0; i < r->kept_count; i++)
		space_unpromise(&pass->view->space, r->kept[i].rank, &r->kept[i].promised);
	r->is_kept = false;
	pass->applied--;
}

/* queue, rank: of a job that makes room for its equals in its turn; 0 = of any other. */
static bool is_in_the_way(const struct reservation *r, int64_t end_ms, bool declared,
			  uint32_t queue, uint64_t rank)
{
	if (!end_ms || (r->lent && r->queue == queue && r->rank == rank))
		return false;
	return r->collects || (r->claim && !declared) || r->start_ms < end_ms;
}

static bool is_in_wanted_way(const struct pass *pass, const struct reservation *r)
{
	return is_in_the_way(r, pass->wanted_end_ms, pass->wanted_declared, pass->wanted_queue,
			     pass->wanted_rank);
}

static void moves_count(struct pass *pass, uint32_t count)
{
	if (pass->moves_at != pass->changes)
		pass->moves = 0;
	pass->moves_at = pass->changes;
	pass->moves += count;
}

static void layer_make(struct pass *pass, int64_t end_ms, bool declared, uint32_t queue,
		       uint64_t rank)
{
	if (pass->layer_end_ms == end_ms && pass->layer_declared == declared &&
	    pass->layer_queue == queue && pass->layer_rank == rank)
		return;
	pass->layer_end_ms = end_ms;
	pass->layer_declared = declared;
	pass->layer_queue = queue;
	pass->layer_rank = rank;
	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		struct reservation *r = &pass->reservations[i];
		bool wanted = is_in_the_way(r, end_ms, declared, queue, rank);

		if (wanted == r->is_kept)
			continue;
		moves_count(pass, r->kept_count);
		if (wanted)
			reservation_keep(pass, r);
		else
			reservation_free(pass, r);
	}
}

void reserve_layer(struct pass *pass, int64_t end_ms, bool declared)
{
	layer_make(pass, end_ms, declared, 0, 0);
}

static bool takes_turns(const struct pass *pass, const struct job *job)
{
	return pass->facts->policy.take_turns && job->tier == TIER_STANDARD;
}

void reserve_want(struct pass *pass, const struct job *job, int64_t end_ms)
{
	bool goes = takes_turns(pass, job) && job->checkpoints;

	pass->wanted_end_ms = end_ms;
	pass->wanted_declared = job->limit_ms > 0;
	pass->wanted_queue = goes ? job->queue.v : 0;
	pass->wanted_rank = goes ? job_rank(job) : 0;
}

void reserve_keep(struct pass *pass)
{
	layer_make(pass, pass->wanted_end_ms, pass->wanted_declared, pass->wanted_queue,
		   pass->wanted_rank);
}

bool reserve_is_in_way(const struct pass *pass)
{
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		if (is_in_wanted_way(pass, &pass->reservations[i]))
			return true;
	return false;
}

bool reserve_keeps(const struct pass *pass, int64_t share)
{
	for (uint32_t i = 0; share > 0 && i < pass->reservation_count; i++) {
		const struct reservation *r = &pass->reservations[i];

		if (r->is_kept)
			share -= r->place.parts ? share : placement_share(&r->place, r->shape);
	}
	return share <= 0;
}

void reserve_layer_before(struct pass *pass, uint32_t turn)
{
	pass->layer_end_ms = -1;
	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		struct reservation *r = &pass->reservations[i];

		if ((r->turn < turn) == r->is_kept)
			continue;
		if (r->turn < turn)
			reservation_keep(pass, r);
		else
			reservation_free(pass, r);
	}
}

struct verdict reserve_why(const struct pass *pass)
{
	int64_t end_ms = pass->wanted_end_ms;
	struct verdict why = { .code = REASON_RESERVATION, .need = end_ms };

	for (uint32_t i = 0; i < pass->reservation_count && !why.holder.v; i++) {
		const struct reservation *r = &pass->reservations[i];

		if (!is_in_wanted_way(pass, r))
			continue;
		why.holder.v = r->job;
		why.have = r->start_ms;
		why.level = r->collects             ? RESERVED_COLLECTS
			    : r->start_ms >= end_ms ? RESERVED_CLAIM
						    : 0;
	}
	return why;
}

/*
 * Nodes by free GPUs, of each class, as if nothing reserved were kept. Reservations come into the space and go; this stays, until
 * something starts or is promised.
 */
static void bare_make(struct pass *pass)
{
	const struct space *space = &pass->view->space;
	uint32_t width = space->gpus_max + 1;

	if (!pass->bare) {
		pass->bare =
			arena_new_array(pass->arena, uint32_t, (size_t)space->class_count *width);
		pass->bare_masks = arena_new_array(pass->arena, uint32_t, space->node_count + 1);
	}
	memcpy(pass->bare, space_counts(space, 0, 0),
	       (size_t)space->class_count * width * sizeof(*pass->bare));
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		for (uint32_t k = 0;
		     pass->reservations[i].is_kept && k < pass->reservations[i].kept_count; k++)
			pass->bare_masks[pass->reservations[i].kept[k].rank] |=
				pass->reservations[i].kept[k].promised.mask;
	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		const struct reservation *r = &pass->reservations[i];

		for (uint32_t k = 0; r->is_kept && k < r->kept_count; k++) {
			const struct place_node *node = space_at(space, r->kept[k].rank);
			uint32_t *mask = &pass->bare_masks[r->kept[k].rank],
				 *counts = pass->bare + (size_t)node->class * width;

			if (node->ready && *mask) {
				counts[bits_count(place_node_free(node))]--;
				counts[bits_count(node->usable & ~node->busy & ~node->blocked &
						  ~(node->promised & ~*mask))]++;
			}
			*mask = 0;
		}
	}
	pass->bare_changes = pass->changes + 1;
	pass->bare_set = pass->blocks.set;
}

bool reserve_bare_is_known(const struct pass *pass)
{
	return !pass->reservation_count ||
	       (pass->bare_changes == pass->changes + 1 && pass->bare_set == pass->blocks.set &&
		pass->blocks.set <= BLOCK_SETS_MAX);
}

/* Before anything is reserved the space is bare. */
static const uint32_t *bare_counts(const struct pass *pass, uint32_t class)
{
	return pass->reservation_count
		       ? pass->bare + (size_t)class * (pass->view->space.gpus_max + 1)
		       : space_counts(&pass->view->space, 0, class);
}

static int64_t bare_gpus(const struct pass *pass, uint64_t classes)
{
	uint32_t width = pass->view->space.gpus_max + 1;
	int64_t gpus = 0;

	for (; classes; classes &= classes - 1) {
		const uint32_t *counts = bare_counts(pass, (uint32_t)__builtin_ctzll(classes));

		for (uint32_t free = 1; free < width; free++)
			gpus += (int64_t)counts[free] * free;
	}
	return gpus;
}

bool reserve_may_fit(struct pass *pass, const struct place_request *request)
{
	const struct shape *shape = request->shape;
	const struct space *space = &pass->view->space;
	uint64_t classes = request->suits & ~request->closed, tasks = 0;

	if (shape_is_part(shape) || !shape->gpus)
		return true;
	if (!reserve_bare_is_known(pass))
		bare_make(pass);
	if (shape->role_count)
		return bare_gpus(pass, classes) >= shape_gpus(shape, request->tasks);
	for (; classes; classes &= classes - 1) {
		const uint32_t *counts = bare_counts(pass, (uint32_t)__builtin_ctzll(classes));

		for (uint32_t free = shape->gpus; free <= space->gpus_max; free++)
			tasks += (uint64_t)counts[free] * (free / shape->gpus);
	}
	return tasks >= request->tasks;
}

bool reserve_copy_is_known(const struct pass *pass)
{
	return pass->copy_changes == pass->changes + 1 && pass->copy_set == pass->blocks.set &&
	       pass->blocks.set <= BLOCK_SETS_MAX;
}

/* A copy is worth while when as much was moved to and fro since anything started. */
bool reserve_fits_bare(struct pass *pass, const struct place_request *request)
{
	struct view *view = pass->view;

	if (reserve_copy_is_known(pass))
		return place_find(&view->bare, request, NULL, NULL, NULL) == 0;
	reserve_layer(pass, 0, false);
	if (pass->moves_at == pass->changes && pass->moves > view->space.node_count / 4) {
		if (!pass->copy_seen)
			pass->copy_seen = arena_new_array(pass->arena, uint64_t,
							  bits_row(view->space.node_count) + 1);
		space_copy_next(&view->bare, &view->space, &pass->copy_since, pass->copy_seen);
		pass->copy_changes = pass->changes + 1;
		pass->copy_set = pass->blocks.set;
	}
	return place_find(&view->space, request, NULL, NULL, NULL) == 0;
}

/* --- making one ----------------------------------------------------------------------------------------- */

/* Into the list; those that start later move up. */
static void reservation_add(struct pass *pass, const struct reservation *r)
{
	uint32_t at;

	if (!pass->reservations) {
		pass->reservations = arena_new_array(pass->arena, struct reservation,
						     (size_t)pass->facts->policy.backfill_depth);
		pass->reserved =
			arena_new_array(pass->arena, uint32_t, pass->view->space.node_count + 1);
	}
	for (uint32_t i = 0; i < r->place.count; i++)
		pass->reserved[r->place.ranks[i]] |= r->place.masks[i];
	pass->layer_end_ms = -1;
	for (at = pass->reservation_count;
	     at > 0 && pass->reservations[at - 1].start_ms > r->start_ms; at--)
		pass->reservations[at] = pass->reservations[at - 1];
	pass->reservations[at] = *r;
	pass->reservations[at].turn = pass->reservation_count++;
}

/* Until then its equals go by the order alone: whoever is due later makes room for it when it has its turn. */
static bool is_lent(const struct pass *pass, const struct job *job)
{
	return takes_turns(pass, job) &&
	       work_due_ms(pass->facts, job->submitted_ms, job_work_class(pass->facts, job, 0)) >
		       pass->facts->now_ms;
}

bool reserve_for(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct place_request request = pass_request(pass, shape, shape->tasks_min);
	struct reservation r = { .job = id, .shape = shape };

	if (pass->aparts.any ||
	    (int64_t)pass->reservation_count >= pass->facts->policy.backfill_depth)
		return false;
	if (reserve_holds(pass, id, &request, &r)) {
		reservation_split(pass, &r);
		if (pass->ahead)
			ahead_keep(pass, &r);
	} else {
		if (reserve_was_looked_for(pass, id)) {
			pass->unreviewed = true;
			return true;
		}
		if (ahead_is_spent(pass))
			return false;
		if (!ahead_reserve(pass, job, &request, &r))
			return false;
	}
	r.collects = pass->facts->policy.collect_after_ms > 0 &&
		     pass->facts->now_ms - job->state_ms >= pass->facts->policy.collect_after_ms;
	r.claim = standing_within(&pass->standings, job->queue.v, 0,
				  shape_share(&pass->view->space, shape, shape->tasks_min));
	r.lent = is_lent(pass, job);
	r.queue = job->queue.v;
	r.rank = job_rank(job);
	reserve_note(pass, &r);
	reservation_add(pass, &r);
	return true;
}
