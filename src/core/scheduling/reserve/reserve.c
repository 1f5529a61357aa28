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
 * The place is its own until it is expected to have ended (time_slots.h): the next blocked job may have the same GPUs after that.
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

static void reservation_turn(struct pass *pass, struct reservation *r, bool keep)
{
	slot_turn(pass, r, SLOT_NOW, keep);
	r->is_kept = keep;
	pass->applied = keep ? pass->applied + 1 : pass->applied - 1;
}

/* queue, rank: of a job that makes room for its equals in its turn; 0 = of any other. */
static bool is_in_the_way(const struct reservation *r, int64_t end_ms, bool declared,
			  uint32_t queue, uint64_t rank, bool evicts)
{
	if (!end_ms || (r->lent && r->queue == queue && r->rank == rank))
		return false;
	return r->collects || (evicts && r->firm) || (r->claim && !declared) || r->lend_ms < end_ms;
}

static bool is_in_wanted_way(const struct pass *pass, const struct reservation *r)
{
	return is_in_the_way(r, pass->wanted_end_ms, pass->wanted_declared, pass->wanted_queue,
			     pass->wanted_rank, false);
}

static void moves_count(struct pass *pass, uint32_t count)
{
	if (pass->moves_at != pass->changes)
		pass->moves = 0;
	pass->moves_at = pass->changes;
	pass->moves += count;
}

static void layer_make(struct pass *pass, int64_t end_ms, bool declared, uint32_t queue,
		       uint64_t rank, bool evicts)
{
	bool turned = false;

	if (pass->layer_end_ms == end_ms && pass->layer_declared == declared &&
	    pass->layer_queue == queue && pass->layer_rank == rank && pass->layer_evicts == evicts)
		return;
	pass->layer_evicts = evicts;
	pass->layer_end_ms = end_ms;
	pass->layer_declared = declared;
	pass->layer_queue = queue;
	pass->layer_rank = rank;
	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		struct reservation *r = &pass->reservations[i];
		bool wanted = is_in_the_way(r, end_ms, declared, queue, rank, evicts);

		if (wanted == r->is_kept)
			continue;
		moves_count(pass, r->kept_count);
		reservation_turn(pass, r, wanted);
		turned = true;
	}
	if (turned)
		slots_settle(pass, SLOT_NOW);
}

void reserve_layer(struct pass *pass, int64_t end_ms, bool declared)
{
	layer_make(pass, end_ms, declared, 0, 0, false);
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
		   pass->wanted_rank, false);
}

void reserve_keep_from_eviction(struct pass *pass)
{
	layer_make(pass, pass->wanted_end_ms, pass->wanted_declared, pass->wanted_queue,
		   pass->wanted_rank, true);
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
		reservation_turn(pass, r, r->turn < turn);
	}
	slots_settle(pass, SLOT_NOW);
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
		why.level = r->collects            ? RESERVED_COLLECTS
			    : r->lend_ms >= end_ms ? RESERVED_CLAIM
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
				slots_promised(pass, pass->reservations[i].kept[k].rank);
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
static void reservation_add(struct pass *pass, struct reservation *r)
{
	uint32_t at;

	if (!pass->reservations)
		pass->reservations = arena_new_array(pass->arena, struct reservation,
						     (size_t)pass->facts->policy.backfill_depth);
	slots_add(pass, r);
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

/* What is known of the place of a claim. */
struct claim_times {
	int64_t ready_ms; /* all borrowers there may be warned or have left, and whoever else is there is expected to have left */
	int64_t free_ms; /* those have left as well, when all are warned at ready_ms */
	bool evicts; /* some borrow */
	int64_t sure_ms; /* free_ms, when nobody ends before he has to; INT64_MAX = one of them need not end */
};

/* A holder of the place: when it can be asked to leave, or leaves; and how long that takes. */
struct claim_holder {
	int64_t ready_ms, end_ms, sure_ms, grace_ms;
	bool borrows;
};

static void claim_holder_read(struct claim_asked *asked, uint32_t id, struct claim_holder *ret)
{
	const struct pass *pass = asked->pass;
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct job_view *jv = job_view_get(pass->view, id);
	struct takeable taken;

	if (jv->tier == TIER_BEST_EFFORT && asked->job->preempts)
		return;
	ret->ready_ms = ret->end_ms = jv->end_ms;
	ret->sure_ms = job->limit_ms || pass_job_leaves(pass, id) ? jv->end_ms : INT64_MAX;
	if (!claim_may_take(asked, id, &taken))
		return;
	ret->borrows = true;
	ret->grace_ms = taken.gone_ms - taken.warn_ms;
	ret->ready_ms = ret->ready_ms < taken.warn_ms ? ret->ready_ms : taken.warn_ms;
	ret->sure_ms = ret->sure_ms < taken.warn_ms ? ret->sure_ms : taken.warn_ms;
}

/* Each holder of the place, one after the other; `ret` as far as it is known. A first walk finds when all are ready. */
static void holders_walk(struct pass *pass, const struct job *job, const struct reservation *r,
			 bool first, struct claim_times *ret)
{
	struct claim_asked asked;

	claim_begin(&asked, pass, job);
	for (uint32_t i = 0; i < r->place.count; i++) {
		uint32_t rank = r->place.ranks[i];
		uint32_t busy = r->place.masks[i] & space_at(&pass->view->space, rank)->busy;

		for (; busy; busy &= busy - 1) {
			uint32_t id = view_holder(pass->view, rank, (uint32_t)__builtin_ctz(busy));
			struct claim_holder h = { 0 };
			int64_t gone_ms;

			if (id)
				claim_holder_read(&asked, id, &h);
			gone_ms = ret->ready_ms + h.grace_ms;

			if (first && h.ready_ms > ret->ready_ms)
				ret->ready_ms = h.ready_ms;
			if (first && h.sure_ms > ret->sure_ms)
				ret->sure_ms = h.sure_ms;
			gone_ms = h.end_ms < gone_ms ? h.end_ms : gone_ms;
			if (!first && gone_ms > ret->free_ms)
				ret->free_ms = gone_ms;
			if (!first && h.grace_ms > ret->sure_ms)
				ret->sure_ms = h.grace_ms;
			ret->evicts = ret->evicts || h.borrows;
		}
	}
	claim_end(&asked);
}

static struct claim_times claim_times(struct pass *pass, const struct job *job,
				      const struct reservation *r)
{
	int64_t now_ms = pass->facts->now_ms;
	struct claim_times times = { .ready_ms = now_ms, .free_ms = now_ms, .sure_ms = now_ms },
			   graces;

	holders_walk(pass, job, r, true, &times);
	graces = times;
	graces.sure_ms = 0;
	holders_walk(pass, job, r, false, &graces);
	times.evicts = graces.evicts;
	times.free_ms = graces.free_ms > times.ready_ms ? graces.free_ms : times.ready_ms;
	if (times.sure_ms != INT64_MAX)
		times.sure_ms += graces.sure_ms;
	return times;
}

/*
 * A claim starts when the last one of its place has left: those who borrow are warned together, when the last of them may be, and have
 * their graces then. What is lent of the place has ended when they are warned, else they would be warned later.
 */
static void claim_plan(struct pass *pass, const struct job *job, struct reservation *r)
{
	struct claim_times times = claim_times(pass, job, r);

	if (!r->place.parts) {
		r->start_ms = times.free_ms;
		r->lend_ms = times.ready_ms;
		r->sure_ms = times.sure_ms;
		r->evicts = times.evicts;
	}
	if (pass->watch && pass->watch->job == r->job && times.sure_ms != INT64_MAX &&
	    job_claims_guarantee(pass, job))
		pass->watch->latest_ms = times.sure_ms;
}

/* Whether its place is lent, and to whom. */
static void reservation_lend(struct pass *pass, const struct job *job, struct reservation *r)
{
	r->lend_ms = r->start_ms;
	r->claim = job_claims(pass, job);
	r->follows = reservation_follows(pass, r);
	pass->claims_planned = pass->claims_planned || r->claim;
	if (r->claim && job->preempts && !blocks_exist(pass) &&
	    ahead_others_hold(pass, job->queue.v)) {
		if (!r->follows)
			claim_plan(pass, job, r);
		else
			r->sure_ms = INT64_MAX; /* the job before it need not end */
	}
	/* Behind another reservation there is nothing to collect: its job comes first. */
	r->collects = !r->follows && pass->facts->policy.collect_after_ms > 0 &&
		      pass->facts->now_ms - job->state_ms >= pass->facts->policy.collect_after_ms;
	r->firm = job_claims_guarantee(pass, job);
	r->lent = is_lent(pass, job) && !r->firm;
	r->queue = job->queue.v;
	r->rank = job_rank(job);
	reservation_set_end(pass, job, r);
}

/*
 * Of two places for a claim the one that it has stays, unless the other is earlier, and not later when all borrowers there stay as long as
 * they can: else it would go from borrower to borrower, each of which is expected to end soon.
 */
static bool claim_is_better(const struct reservation *r, const struct reservation *had)
{
	if (had->sure_ms == INT64_MAX && r->sure_ms != INT64_MAX)
		return true;
	return r->start_ms < had->start_ms && r->sure_ms <= had->sure_ms;
}

/*
 * Any other job keeps its place unless it can start earlier: those behind it planned around that place. Where work there is overdue nobody
 * knows when it ends, so the place that was found is taken.
 */
static bool is_better(const struct pass *pass, const struct reservation *r,
		      const struct reservation *had)
{
	if (had->claim)
		return claim_is_better(r, had);
	return r->start_ms < had->start_ms || (had->late && had->start_ms <= pass->facts->now_ms);
}

/* A place is looked for again at a review; that of a claim also at once when somebody there may stay for ever (his queue is not above its share any
 * more): what has come free meanwhile may serve instead. */
static bool is_looked_for(struct pass *pass, const struct job *job, const struct reservation *had)
{
	if (!had->claim || pass->review)
		return pass->review;
	/* One of them in a pass, the first in the order: a walk through what lies ahead costs as much as all else. */
	if (had->sure_ms != INT64_MAX || pass->looked_again || !job->preempts || !had->firm ||
	    !ahead_others_hold(pass, job->queue.v))
		return false;
	return pass->looked_again = true;
}

/* A place for it: the one that it has, or one that is looked for. */
static bool reservation_find(struct pass *pass, const struct job *job,
			     const struct place_request *request, struct reservation *ret)
{
	struct reservation had = *ret;
	bool claims, spent, has = reserve_holds(pass, ret->job, request, &had);

	if (has) {
		reservation_split(pass, &had);
		reservation_lend(pass, job, &had);
	}
	if (has && !is_looked_for(pass, job, &had)) {
		*ret = had;
		return true;
	}
	claims = ahead_others_hold(pass, job->queue.v) && job_claims(pass, job);
	pass->claims_planned = pass->claims_planned || claims;
	spent = ahead_is_spent(pass);
	if (spent || (claims && pass->claims_failed >= CLAIMS_FAIL_MAX) ||
	    !ahead_reserve(pass, job, request, ret)) {
		pass->claims_failed += claims;
		*ret = had;
		return has && (spent || had.claim);
	}
	reservation_lend(pass, job, ret);
	if (has && !is_better(pass, ret, &had))
		*ret = had;
	return true;
}

bool reserve_has_room(const struct pass *pass)
{
	return (int64_t)pass->reservation_count < pass->facts->policy.backfill_depth;
}

static void reservation_put(struct pass *pass, struct reservation *r)
{
	if (r->claim)
		standing_reserve(&pass->standings, r->queue,
				 shape_share(&pass->view->space, r->shape, r->shape->tasks_min));
	reserve_note(pass, r);
	reservation_add(pass, r);
	pass->reserved_for = r->job;
}

/*
 * Else the borrower would start at the place promised to it, and be too young to go. It stays promised until the end of the pass, so
 * nobody else starts there; in the next one it is the claim's, and whoever was to leave for the borrower is spared.
 */
bool reserve_takes_promises(struct pass *pass, uint32_t id)
{
	const struct job *job;
	const struct shape *shape;
	struct place_request request;
	struct reservation r = { .job = id };
	uint32_t mark;
	bool fits;

	if (!pass->view->promise_count || pass->aparts.any || !reserve_has_room(pass))
		return false; /* most passes: nothing is read of the job */
	job = job_get(pass->facts, (struct job_id){ id });
	shape = r.shape = shape_get(pass->facts, job->shape);
	/* Once when it comes, then once in each review: whose promise goes may get another one in the next pass, and so on for ever. */
	if (!pass->review && job->state_ms <= pass->facts->reviewed_ms)
		return false;
	if (!job->preempts || shape_is_part(shape) ||
	    facts_reservation(pass->facts, (struct job_id){ id }) ||
	    !job_claims_guarantee(pass, job) || reserve_was_looked_for(pass, id))
		return false;
	request = pass_request(pass, shape, shape->tasks_min);
	reserve_layer(pass, 0, false);
	blocks_none(pass);
	mark = space_mark(&pass->view->space);
	ahead_forget(pass);
	fits = claim_promises(pass, job, false) && ahead_takes(pass, job, &request, &r);
	space_rollback(&pass->view->space, mark);
	ahead_forget(pass);
	if (!fits)
		return false;
	(void)claim_promises(pass, job, true);
	(void)pass_emit(pass, EVENT_RESERVATIONS_REVIEWED); /* it had its try */
	reservation_split(pass, &r);
	reservation_lend(pass, job, &r);
	reservation_put(pass, &r);
	pass->blocked = pass->more = pass->takes_promises = true;
	return true;
}

bool reserve_for(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct place_request request = pass_request(pass, shape, shape->tasks_min);
	struct reservation r = { .job = id, .shape = shape };

	if (pass->aparts.any || !reserve_has_room(pass))
		return false;
	if (reserve_was_looked_for(pass, id)) {
		pass->unreviewed = true;
		return true;
	}
	if (!reservation_find(pass, job, &request, &r))
		return false;
	reservation_put(pass, &r);
	return true;
}
