/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promised places. While victims wind down, the place they leave is kept for the job they leave it for. At each
 * decision the plan is looked at again:
 *
 *	the job was cancelled or held, a node of the place is not usable any more, or will not be in time, or
 *	a limit was lowered below what it needs, or
 *	its queue's window is over							-> dropped, victims spared
 *	it fits somewhere, and is paid for, without those victims
 *	that are not stopped yet							-> it starts there, they are spared
 *	it fits without some of them							-> promised anew, these are spared
 *	every GPU of the place is free							-> the job starts there
 *
 * A running job that moves has a promise of its own, which waits for the end of its attempt; where two swap places, also for the other one, and
 * alone that keeps neither of them from staying. When it stays after all the promise goes, and when it could not go there any more, what it
 * moves for is off as well.
 *
 * A victim that was told to stop can't be spared. A victim that another promise counts on is not spared.
 */
#include <string.h>

#include "base/check.h"
#include "core/placement/numa.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/queues/kept.h"
#include "core/scheduling/queues/window.h"

/* The victim's job when its attempt still lives, else 0. */
static uint32_t victim_live(const struct pass *pass, uint32_t attempt)
{
	struct job_id job = attempt_get(pass->facts, (struct attempt_id){ attempt })->job;

	return job.v && job_get(pass->facts, job)->attempt.v == attempt ? job.v : 0;
}

static bool victim_is_stopped(const struct pass *pass, uint32_t attempt)
{
	return !victim_live(pass, attempt) ||
	       attempt_get(pass->facts, (struct attempt_id){ attempt })->state == ATTEMPT_STOPPING;
}

static bool place_is_usable(const struct pass *pass, const struct promise_view *p)
{
	for (uint32_t i = 0; i < p->tasks; i++) {
		int32_t rank = space_rank(&pass->view->space, promise_node(p, i));

		if (rank == RANK_NONE)
			return false;
		if (promise_task(p, i).mask &
		    (~space_at(&pass->view->space, (uint32_t)rank)->usable |
		     space_at(&pass->view->space, (uint32_t)rank)->blocked))
			return false;
		if (!space_at(&pass->view->space, (uint32_t)rank)->ready)
			return false;
	}
	return true;
}

/* Every live victim still leaves; else the promise could never be kept. */
static bool victims_leave(const struct pass *pass, const struct promise_view *p)
{
	for (uint32_t i = 0; i < p->victims; i++)
		if (victim_live(pass, promise_victim(p, i)) &&
		    !attempt_is_leaving(
			    attempt_get(pass->facts, (struct attempt_id){ promise_victim(p, i) })))
			return false;
	return true;
}

static void promise_space_move(struct pass *pass, const struct promise_view *p, bool make)
{
	struct space *space = &pass->view->space;

	for (uint32_t i = 0; i < p->tasks; i++) {
		int32_t rank = space_rank(space, promise_node(p, i));
		struct hold hold = promise_task(p, i);

		if (rank == RANK_NONE)
			continue;
		if (make)
			space_promise(space, (uint32_t)rank, &hold);
		else
			space_unpromise(space, (uint32_t)rank, &hold);
	}
}

static void attempt_give(struct pass *pass, uint32_t attempt, const struct shape *shape)
{
	const struct attempt *a = attempt_get(pass->facts, (struct attempt_id){ attempt });

	for (uint32_t i = 0; i < a->tasks; i++) {
		const struct task *task = table_get(&pass->facts->tasks, a->first_task + i);
		int32_t rank = space_rank(&pass->view->space, task->node.v);
		struct hold hold = task_hold(task, shape, i);

		if (rank != RANK_NONE && task_holds(task))
			space_give(&pass->view->space, (uint32_t)rank, &hold);
	}
}

static const struct shape *attempt_shape(const struct pass *pass, uint32_t attempt)
{
	struct job_id job = attempt_get(pass->facts, (struct attempt_id){ attempt })->job;

	return shape_get(pass->facts, job_get(pass->facts, job)->shape);
}

/* The victims that are spared go on holding what they hold, but for ranks that were told to leave before. */
static void victims_stay(struct pass *pass, const struct promise_view *p, const bool *keep,
			 bool stay)
{
	for (uint32_t i = 0; i < p->victims; i++) {
		uint32_t attempt = promise_victim(p, i), job = victim_live(pass, attempt);
		const struct job_view *jv = job_view_get(pass->view, job);
		int64_t share;

		if (!job || keep[i])
			continue;
		share = jv->share -
			attempt_told_share(pass->facts,
					   attempt_get(pass->facts, (struct attempt_id){ attempt }),
					   attempt_shape(pass, attempt));
		standing_leave(&pass->standings, jv->queue, jv->tier, stay ? -share : share);
		spend_leave(pass, job, stay ? -share : share);
	}
}

/* Is there still room in its queues' limits once all that leave are gone? A limit may have been lowered meanwhile. */
static bool promise_has_room(struct pass *pass, const struct promise_view *p)
{
	bool has;

	standing_promise(&pass->standings, p->queue, p->tier, -p->share);
	has = quota_room(&pass->standings, p->queue, p->tier, true, p->share, NULL) >= p->share;
	standing_promise(&pass->standings, p->queue, p->tier, p->share);
	return has;
}

bool promises_have_room(struct pass *pass, const struct promise_view *except)
{
	for (uint32_t i = 0; i < pass->view->promise_count; i++) {
		const struct promise_view *p = &pass->view->promises.at[i];

		if (p != except && !pass->promises_gone[i] && !promise_has_room(pass, p))
			return false;
	}
	return true;
}

/* Another promise may count on the room in a limit that the victims leave. */
static bool others_keep_room(struct pass *pass, const struct promise_view *p, const bool *keep)
{
	bool had = promises_have_room(pass, p), keeps;

	victims_stay(pass, p, keep, true);
	keeps = promises_have_room(pass, p);
	victims_stay(pass, p, keep, false);
	return keeps || !had;
}

/* Is there room for it in the bounds of its queues? Leaves in pass->closed where the job may not go. */
static bool promise_is_bounded(struct pass *pass, const struct promise_view *p)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ p->job });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct verdict why;
	bool allowed = bounds_allow(pass, p->queue, p->tier, shape, p->tasks, &why);

	if (kept_any(pass))
		kept_count(pass);
	if (!pass->bounds && !pass->kept_models)
		return allowed;
	bounds_promise(pass, p, -1);
	allowed = bounds_allow(pass, p->queue, p->tier, shape, p->tasks, &why);
	bounds_promise(pass, p, 1);
	return allowed;
}

/* GPUs of the place that are reserved for a claim within a guarantee, other than those of the promise itself, stay with that. */
static bool takes_from_claim(struct pass *pass, const struct promise_view *p,
			     const struct placement *place)
{
	const struct facts *f = pass->facts;

	for (uint32_t row = 1; row <= f->reservation_count; row++) {
		const struct reservation_fact *r = reservation_get(f, row);

		if (!r->job || r->job == p->job ||
		    !job_claims_guarantee(pass, job_get(f, (struct job_id){ r->job })))
			continue;
		for (uint32_t at = r->first; at;) {
			const struct promise *kept = table_get(&f->promises, at);

			for (uint32_t i = 0; i < place->count; i++)
				if (space_at(&pass->view->space, place->ranks[i])->node ==
					    kept->node &&
				    place->masks[i] & kept->gpu_mask)
					return true;
			at = kept->next;
		}
	}
	return false;
}

/* Does the job fit, on the ground and in its queue's limits, when of its victims only those marked in `keep` go? */
static bool fits_with(struct pass *pass, const struct promise_view *p, const bool *keep,
		      struct placement *ret)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ p->job });
	struct place_request request;
	uint32_t mark = space_mark(&pass->view->space);
	bool fits, was_paid = spend_is_paid(pass, p->queue);

	victims_stay(pass, p, keep, true);
	fits = promise_has_room(pass, p) && (!was_paid || spend_is_paid(pass, p->queue));
	victims_stay(pass, p, keep, false);
	if (!fits || !promise_is_bounded(pass, p))
		return false;
	request = pass_request(pass, shape_get(pass->facts, job->shape), p->tasks);
	request.home = pass_home(pass, p->job);
	pass->closed = 0;
	promise_space_move(pass, p, false);
	for (uint32_t i = 0; i < p->victims; i++)
		if (keep[i] && victim_live(pass, promise_victim(p, i)))
			attempt_give(pass, promise_victim(p, i),
				     attempt_shape(pass, promise_victim(p, i)));
	fits = place_find(&pass->view->space, &request, pass->arena, ret, NULL) == 0 &&
	       !takes_from_claim(pass, p, ret);
	space_rollback(&pass->view->space, mark);
	pass->work++;
	return fits && others_keep_room(pass, p, keep);
}

static void promise_drop(struct pass *pass, uint32_t job)
{
	pass_emit(pass, EVENT_PROMISE_DROPPED)->promise_dropped.job = job;
}

static void promise_renew(struct pass *pass, const struct promise_view *p, const bool *keep,
			  const struct placement *place)
{
	int64_t *victims = arena_new_array(pass->arena, int64_t, p->victims + 1);
	struct event_promise_made *e = &pass_emit(pass, EVENT_PROMISE_MADE)->promise_made;
	struct place_lists lists = place_lists(pass, place);

	e->job = p->job;
	PLACE_WRITE(e, &lists);
	e->victims = victims;
	for (uint32_t i = 0; i < p->victims; i++)
		if (keep[i] && victim_live(pass, promise_victim(p, i)))
			victims[e->victims_count++] = promise_victim(p, i);
}

static bool quota_allows(const struct pass *pass, const struct promise_view *p)
{
	const struct standing *at;

	for (uint32_t id = p->queue; id; id = pass->view->queues.at[id].parent) {
		at = &pass->standings.at[id];
		if (p->share && at->limit != INT64_MAX && at->hold + p->share > at->limit)
			return false;
	}
	return true;
}

/* The job starts, at its promised place or at another one that is free. */
static void promise_keep(struct pass *pass, const struct promise_view *p,
			 const struct placement *place)
{
	promise_space_move(pass, p, false);
	beside_move(&pass->standings, p->queue, p->tier, beside_of_promise(pass->view, p), -1);
	pass->promises_gone[p - pass->view->promises.at] = true;
	pass_start(pass, p->job, place, true);
}

/* Tries to do without each victim that may still be spared, the dearest first. */
static bool promise_shrink(struct pass *pass, const struct promise_view *p)
{
	bool *keep = arena_new_array(pass->arena, bool, p->victims + 1), needs = false,
	     shrunk = false;
	struct placement place = { .count = 0 }, smaller;

	for (uint32_t i = 0; i < p->victims; i++)
		keep[i] = true;
	for (uint32_t i = p->victims; i-- > 0;) {
		if (victim_is_stopped(pass, promise_victim(p, i)))
			continue;
		keep[i] = false;
		if (fits_with(pass, p, keep, &smaller)) {
			place = smaller;
			shrunk = true;
		} else {
			keep[i] = true;
		}
	}
	if (!shrunk)
		return false;
	for (uint32_t i = 0; i < p->victims; i++)
		needs = needs || (keep[i] && victim_live(pass, promise_victim(p, i)));
	if (needs || !quota_allows(pass, p))
		promise_renew(pass, p, keep, &place);
	else
		promise_keep(pass, p, &place);
	return true;
}

/* Only GPUs beyond those of the promise itself can make a victim needless. */
static bool others_are_free(const struct pass *pass, const struct promise_view *p)
{
	const struct shape *shape =
		shape_get(pass->facts, job_get(pass->facts, (struct job_id){ p->job })->shape);
	uint64_t classes;

	space_classes_of(&pass->view->space, shape, &classes);
	if (!shape->gpus || shape_is_part(shape))
		return true;
	for (uint32_t i = 0; i < p->victims; i++)
		if (!victim_is_stopped(pass, promise_victim(p, i)))
			return space_free_gpus(&pass->view->space, 0, classes) > 0;
	return false;
}

static bool promise_is_outside(const struct pass *pass, const struct job *job)
{
	return !standing_is_open(&pass->standings, job);
}

/* The place of a job that moves, while it still runs. */
static void move_review(struct pass *pass, const struct promise_view *p, const struct job *job)
{
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);
	uint32_t other = attempt->for_job;

	if (!attempt_is_leaving(attempt)) {
		promise_drop(pass, p->job);
	} else if (!place_is_usable(pass, p)) {
		promise_drop(pass, p->job);
		if (attempt->state != ATTEMPT_STOPPING && other && other != p->job &&
		    view_promise(pass->view, other))
			promise_drop(pass, other);
	}
}

static void promise_review(struct pass *pass, const struct promise_view *p)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ p->job });

	if (job->attempt.v) {
		move_review(pass, p, job);
		return;
	}
	blocks_for(pass, job, job_leaves_ms(pass->facts, job));
	if (!job_is_waiting(job) || job->cancel_asked || !place_is_usable(pass, p) ||
	    !victims_leave(pass, p) || !promise_has_room(pass, p) ||
	    promise_is_outside(pass, job) || !promise_is_bounded(pass, p))
		promise_drop(pass, p->job);
	else if (others_are_free(pass, p))
		(void)promise_shrink(pass, p);
}

/* --- sparing -------------------------------------------------------------------------------------------- */

/* A warned attempt, the job it was told to go for, and for which it goes now: that one where its promise still counts on it, else the
 * first one that does; 0 = none. */
struct goer {
	uint32_t attempt, told, goes_for;
};

/* Those that were warned for another job, in the order of their jobs. Slots find one by its attempt: open addressing, at most half full. */
struct goers {
	struct goer *list; /* from 1 on; [0] is none of them */
	uint32_t count;
	uint32_t *slots; /* index in the list, 0 = free */
	uint32_t mask;
};

/* The attempt's slot, or the free one where it would stand. */
static uint32_t *goer_slot(const struct goers *goers, uint32_t attempt)
{
	uint32_t at = attempt * UINT32_C(2654435761) & goers->mask;

	while (goers->slots[at] && goers->list[goers->slots[at]].attempt != attempt)
		at = (at + 1) & goers->mask;
	return &goers->slots[at];
}

/* The attempt of a warned job that goes for another; NULL = it goes for no job. */
static const struct attempt *goer_attempt(const struct pass *pass, uint32_t id, uint32_t *ret_id)
{
	const struct attempt *attempt;

	*ret_id = job_get(pass->facts, (struct job_id){ id })->attempt.v;
	attempt = attempt_get(pass->facts, (struct attempt_id){ *ret_id });
	return attempt->for_job ? attempt : NULL;
}

static void goers_make(struct pass *pass, struct goers *ret)
{
	uint32_t size = 4, count = sorted_size(&pass->view->pool, pass->view->warned), id;
	struct sorted_walk walk;

	while (size < 2 * count)
		size *= 2;
	*ret = (struct goers){ .list = arena_new_array(pass->arena, struct goer, (size_t)count + 1),
			       .slots = arena_new_array(pass->arena, uint32_t, size),
			       .mask = size - 1 };
	for (bool any = sorted_begin(&pass->view->pool, pass->view->warned, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		const struct attempt *attempt = goer_attempt(pass, walk.id, &id);

		if (!attempt)
			continue;
		ret->list[++ret->count] = (struct goer){ id, attempt->for_job, 0 };
		*goer_slot(ret, id) = ret->count;
	}
	for (uint32_t i = 0; i < pass->view->promise_count; i++) {
		const struct promise_view *p = &pass->view->promises.at[i];
		uint32_t own = job_get(pass->facts, (struct job_id){ p->job })->attempt.v;

		for (uint32_t v = 0; v < p->victims; v++) {
			struct goer *goer = &ret->list[*goer_slot(ret, promise_victim(p, v))];

			if (own && promise_victim(p, v) != own)
				continue; /* it swaps places, and may stay as well */
			if (!goer->goes_for || goer->told == p->job)
				goer->goes_for = goer->attempt ? p->job : 0;
		}
	}
}

/* Victims nobody counts on any more are spared; those that go for another job now are told so, with the time they have. */
static void warned_review(struct pass *pass)
{
	struct goers goers;

	if (!pass->view->warned)
		return;
	goers_make(pass, &goers);
	for (uint32_t i = 1; i <= goers.count; i++) {
		const struct goer *goer = &goers.list[i];

		if (!goer->goes_for) {
			pass_emit(pass, EVENT_ATTEMPT_SPARED)->attempt_spared.attempt =
				goer->attempt;
		} else if (goer->goes_for != goer->told) {
			struct event_attempt_warned *e =
				&pass_emit(pass, EVENT_ATTEMPT_WARNED)->attempt_warned;

			e->attempt = goer->attempt;
			e->for_job = goer->goes_for;
			e->deadline_ms =
				attempt_get(pass->facts, (struct attempt_id){ goer->attempt })
					->deadline_ms;
		}
	}
}

/*
 * Who is needed no longer is spared first: until then the queues' plans count it as leaving, and a promise would be made
 * smaller on room that is not there. A promise that goes ends the review: what follows is decided on the facts without it.
 */
void promises_review(struct pass *pass)
{
	uint32_t count = pass->count;

	pass->promises_gone = arena_new_array(pass->arena, bool, pass->view->promise_count + 1);
	warned_review(pass);
	for (uint32_t i = 0; i < pass->view->promise_count && pass->count == count; i++)
		promise_review(pass, &pass->view->promises.at[i]);
}

/* --- keeping the promise ----------------------------------------------------------------------------------- */

/* It would be paid for only when its victims are gone: once it has started, they would be spared. */
static bool waits_for_money(struct pass *pass, const struct promise_view *p)
{
	bool any = false, paid;
	const bool *none;

	for (uint32_t i = 0; i < p->victims; i++)
		any = any || victim_live(pass, promise_victim(p, i));
	if (!any || !spend_is_paid(pass, p->queue))
		return false;
	none = arena_new_array(pass->arena, bool, p->victims);
	victims_stay(pass, p, none, true);
	paid = spend_is_paid(pass, p->queue);
	victims_stay(pass, p, none, false);
	return !paid;
}

/* Parts of one GPU may be promised to several tasks: each is taken before the next is asked for. */
static bool task_is_free(struct pass *pass, const struct promise_view *p, uint32_t task)
{
	struct space *space = &pass->view->space;
	int32_t rank = space_rank(space, promise_node(p, task));
	struct hold hold = promise_task(p, task);
	const struct place_node *node;

	if (rank == RANK_NONE)
		return false;
	node = space_at(space, (uint32_t)rank);
	if ((hold.cpu_milli && node->cpu_free < 0) || (hold.ram_mib && node->ram_free < 0))
		return false;
	if (hold.aligned && numa_is_short(space, (uint32_t)rank, hold.mask))
		return false;
	if (!hold.part)
		return (node->busy & hold.mask) == 0;
	hold.cpu_milli = hold.ram_mib = 0;
	if (!part_fits_held(space, (uint32_t)rank, &hold, (uint8_t)pass->facts->policy.share_gpus))
		return false;
	space_take(space, (uint32_t)rank, &hold);
	return true;
}

static bool place_is_free(struct pass *pass, const struct promise_view *p)
{
	uint32_t mark = space_mark(&pass->view->space), task = 0;

	while (task < p->tasks && task_is_free(pass, p, task))
		task++;
	space_rollback(&pass->view->space, mark);
	return task == p->tasks;
}

static struct placement promise_place(const struct pass *pass, const struct promise_view *p)
{
	struct placement place = { .count = p->tasks };
	uint32_t *numbers = arena_new_array(pass->arena, uint32_t, (size_t)5 * p->tasks);

	memcpy(numbers, p->numbers.at, (size_t)5 * p->tasks * sizeof(*numbers));
	for (uint32_t t = 0; t < p->tasks; t++)
		numbers[t] = (uint32_t)space_rank(&pass->view->space, promise_node(p, t));
	place.ranks = numbers;
	place.masks = numbers + p->tasks;
	if (promise_task(p, 0).part) {
		place.parts = numbers + (size_t)2 * p->tasks;
		place.parts_mib = numbers + (size_t)3 * p->tasks;
		if (promise_task(p, 0).slice)
			place.slices = numbers + (size_t)4 * p->tasks;
	}
	return place;
}

void promises_place(struct pass *pass)
{
	for (uint32_t i = 0; i < pass->view->promise_count; i++) {
		const struct promise_view *p = &pass->view->promises.at[i];
		struct placement place;

		if (job_get(pass->facts, (struct job_id){ p->job })->attempt.v)
			continue; /* it moves, and has not left yet */
		if (!place_is_free(pass, p) || !quota_allows(pass, p) || waits_for_money(pass, p) ||
		    !promise_is_bounded(pass, p))
			continue;
		place = promise_place(pass, p);
		promise_keep(pass, p, &place);
	}
}
