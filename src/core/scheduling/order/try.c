/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/order/try.h"

#include "core/scheduling/life/pause.h"
#include "core/scheduling/order/anew.h"
#include "core/scheduling/queues/user_limit.h"
#include "core/scheduling/queues/window.h"

static void watch_note(struct pass *pass, uint32_t bucket, uint32_t job, const struct verdict *why)
{
	struct watch *watch = pass->watch;

	if (!watch || watch->seen || watch->started)
		return;
	if (job != watch->job && job_view_get(pass->view, watch->job)->bucket != bucket)
		return;
	watch->seen = true;
	watch->verdict = *why;
}

static bool watches(const struct pass *pass)
{
	return pass->watch && !pass->watch->seen && !pass->watch->started;
}

void try_started(struct pass *pass, uint32_t job)
{
	if (pass->watch && pass->watch->job == job)
		pass->watch->started = true;
}

/* `closed_why`: why classes of nodes are closed to the job; that is it when it would fit there. */
static void place_why(struct pass *pass, const struct shape *shape,
		      const struct verdict *closed_why, struct verdict *ret)
{
	struct place_request request = pass_request(pass, shape, shape->tasks_min);

	reserve_keep(pass);
	if (place_find(&pass->view->space, &request, NULL, NULL, ret) == 0)
		ret->code = REASON_NONE;
	if (ret->code != REASON_NONE && aparts_why(pass, &request, ret))
		return;
	if (ret->code != REASON_NONE && blocks_why(pass, &request, ret))
		return;
	request.closed = 0;
	if (pass->closed && place_find(&pass->view->space, &request, NULL, NULL, NULL) == 0)
		*ret = *closed_why;
}

/* What a pass knows of a shape is not true of a queue to which some nodes are closed, nor under other blocks. */
static struct shape_memo *memo_of(struct pass *pass, const struct job *job)
{
	return pass->closed ? arena_new(pass->arena, struct shape_memo)
			    : blocks_memo(pass, job->shape.v, &pass->memos[job->shape.v]);
}

/* Does it fit now, if nothing reserved stood in its way? */
static bool fits_without_reservations(struct pass *pass, const struct shape *shape,
				      struct shape_memo *memo)
{
	struct place_request request = pass_request(pass, shape, shape->tasks_min);

	if (memo->never || !reserve_is_in_way(pass))
		return false;
	if (memo->fits_at == pass->changes + 1)
		return true;
	memo->never = !reserve_may_fit(pass, &request) || !reserve_fits_bare(pass, &request);
	if (!memo->never)
		memo->fits_at = pass->changes + 1;
	return !memo->never;
}

/* ahead_guesses, mostly without a look at the job: ids rise with the time of submission, so none behind one that came lately has waited long. */
static bool job_guesses(struct pass *pass, uint32_t id)
{
	const struct job *job;

	if (pass->late_from && id >= pass->late_from)
		return false;
	job = job_get(pass->facts, (struct job_id){ id });
	if (pass->facts->now_ms - job->submitted_ms < pass->facts->policy.reserve_unsure_ms)
		pass->late_from = id;
	return ahead_guesses(pass, job);
}

bool try_reserves_none(struct pass *pass, const struct shape_memo *memo, uint32_t queue,
		       bool critical, uint32_t id)
{
	if (memo->no_guess || !memo->no_reservation || critical)
		return memo->no_guess;
	return !(ahead_others_hold(pass, queue) &&
		 standing_has(&pass->standings, queue, memo->need, false)) &&
	       !job_guesses(pass, id);
}

static void reservation_try(struct pass *pass, struct shape_memo *memo, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });

	if (pass->out_of_turn ||
	    try_reserves_none(pass, memo, job->queue.v, job->tier == TIER_CRITICAL, id) ||
	    reserve_for(pass, id))
		return;
	memo->no_reservation = true;
	memo->no_guess = ahead_guesses(pass, job);
}

/* Others make room, and the place is promised to the job: to its user. */
static bool room_is_made(struct pass *pass, uint32_t id, const struct shape *shape,
			 enum evict_lack lack)
{
	if (evict_for(pass, id, lack) != 0)
		return false;
	user_take(pass, job_get(pass->facts, (struct job_id){ id }),
		  shape_share(&pass->view->space, shape, shape->tasks_min));
	return true;
}

static enum try_result job_blocked(struct pass *pass, uint32_t bucket, uint32_t id,
				   const struct shape *shape, struct shape_memo *memo,
				   const struct verdict *closed_why, int64_t end_ms)
{
	struct verdict why = { 0 };
	bool reserved = end_ms && fits_without_reservations(pass, shape, memo);

	if (!reserved && room_is_made(pass, id, shape, LACKS_PLACE))
		return TRY_STARTED;
	if (pass->cut)
		return TRY_BLOCKED;
	if (watches(pass)) {
		if (reserved)
			why = reserve_why(pass);
		else
			place_why(pass, shape, closed_why, &why);
		watch_note(pass, bucket, id, &why);
	}
	if (end_ms && !reserve_takes_promises(pass, id))
		reservation_try(pass, memo, id);
	return TRY_BLOCKED;
}

/* It was lost again and again as soon as it had started, and the core is woken when it may start. */
static bool job_is_paused(struct pass *pass, const struct job *job)
{
	int64_t until_ms = job_pause_until_ms(pass->facts, job);

	if (until_ms <= pass->facts->now_ms)
		return false;
	pass_wake(pass, until_ms);
	return true;
}

/* Outside its own window, or its queue's calendar, a job waits, and the core is woken when it may start. */
static bool job_is_outside(struct pass *pass, uint32_t bucket, uint32_t id, const struct job *job)
{
	int64_t opens_ms;
	struct verdict why;
	bool own = shape_get(pass->facts, job->shape)->window.v;

	if (!own && queue_is_plain(pass, job->queue.v))
		return false;
	opens_ms = standing_opens_ms(&pass->standings, job, pass->facts->now_ms);
	if (opens_ms == pass->facts->now_ms)
		return false;
	own = own && window_opens_ms(pass->facts, job, pass->facts->now_ms) != pass->facts->now_ms;
	why = (struct verdict){ .code = REASON_WINDOW,
				.at = own ? 0 : job->queue.v,
				.have = opens_ms,
				.need = own ? window_needs_ms(pass->facts, job)
					    : job_expected_ms(pass->facts, job) };
	if (opens_ms > 0)
		pass_wake(pass, opens_ms);
	watch_note(pass, bucket, id, &why);
	return true;
}

/* Running work of its own queue may go for it: its money then is the job's. */
static bool queue_has_lower_work(const struct pass *pass, const struct job *job)
{
	return sorted_before(&pass->view->pool, pass->view->queues.at[job->queue.v].running,
			     job_rank(job), 0) > 0;
}

/* What the pass knows of the wish says no for a job that may run until end_ms; where it can't say that the job is looked for. */
static bool memo_says_no(struct pass *pass, const struct shape *shape, struct shape_memo *memo,
			 int64_t end_ms, bool declared)
{
	struct place_request request;

	if (memo->never)
		return true;
	if (!pass->wanted_queue && memo->no_end_ms[declared] &&
	    end_ms >= memo->no_end_ms[declared] - 1)
		return true; /* from who makes room less is kept */
	if (!reserve_bare_is_known(pass) || anew_may_help(pass))
		return false;
	request = pass_request(pass, shape, shape->tasks_min);
	memo->never = !reserve_may_fit(pass, &request);
	if (memo->never || !reserve_copy_is_known(pass) || !reserve_is_in_way(pass))
		return memo->never;
	return !fits_without_reservations(pass, shape, memo);
}

/*
 * A job that pauses long starts meanwhile on what is free of other nodes than the one where it was lost last. It asks for nothing, so nobody makes
 * room for it.
 */
static enum try_result paused_try(struct pass *pass, uint32_t bucket, uint32_t id,
				  const struct job *job)
{
	const struct shape *shape = pass_shape(pass, job->shape);
	int64_t need = shape_share(&pass->view->space, shape, shape->tasks_min),
		leaves_ms = job_leaves_ms(pass->facts, job), room, user_left;
	struct pause pause = job_pause(pass->facts, job);
	struct verdict why = { 0 };
	struct placement place;

	if (pause.elsewhere_ms > pass->facts->now_ms)
		pass_wake(pass, pause.elsewhere_ms);
	reserve_want(pass, job, job->tier == TIER_BEST_EFFORT ? 0 : leaves_ms);
	blocks_for(pass, job, leaves_ms);
	if (pause.elsewhere_ms <= pass->facts->now_ms &&
	    standing_would_be_open(&pass->standings, job) &&
	    bounds_allow(pass, job->queue.v, job->tier, shape, shape->tasks_min, &why) &&
	    (job->tier != TIER_CRITICAL ||
	     pledge_bind(pass, job->queue.v, shape, shape->tasks_min, &why)) &&
	    spend_allows(pass, job, &why)) {
		room = quota_room(&pass->standings, job->queue.v, job->tier, false, need, &why);
		user_left = user_room(pass, job, need, &why);
		room = user_left < room ? user_left : room;
		if (room >= need) {
			reserve_keep(pass);
			if (pass_place_beside(pass, id, shape, room, pause.node, &place)) {
				pass_start(pass, id, &place, false);
				return TRY_STARTED;
			}
		}
	}
	watch_note(pass, bucket, id,
		   &(struct verdict){
			   .code = REASON_PAUSE, .have = pause.until_ms, .need = pause.losses });
	return TRY_BLOCKED;
}

/* `behind`: a job of its bucket is blocked, so nobody makes room for this one either. */
static enum try_result try_at_turn(struct pass *pass, uint32_t bucket, uint32_t id, bool behind)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = pass_shape(pass, job->shape);
	int64_t need = shape_share(&pass->view->space, shape, shape->tasks_min), leaves_ms, end_ms,
		room, user_left;
	struct verdict why = { 0 }, closed_why = { 0 };
	struct placement place;
	struct shape_memo *memo;

	pass->work++;
	pass->unpaid_micro = 0;
	if (job_is_paused(pass, job))
		return behind ? TRY_BLOCKED : paused_try(pass, bucket, id, job);
	if (job_is_outside(pass, bucket, id, job))
		return TRY_BLOCKED;
	leaves_ms = job_leaves_ms(pass->facts, job);
	end_ms = job->tier == TIER_BEST_EFFORT ? 0 : leaves_ms;
	reserve_want(pass, job, end_ms);
	blocks_for(pass, job, leaves_ms);
	if (!bounds_allow(pass, job->queue.v, job->tier, shape, shape->tasks_min, &closed_why) ||
	    (job->tier == TIER_CRITICAL &&
	     !pledge_bind(pass, job->queue.v, shape, shape->tasks_min, &closed_why))) {
		watch_note(pass, bucket, id, &closed_why);
		return TRY_BLOCKED;
	}
	user_left = user_room(pass, job, need, &closed_why);
	if (user_left < need) {
		watch_note(pass, bucket, id, &closed_why);
		return TRY_BLOCKED;
	}
	if (!spend_allows(pass, job, &closed_why)) {
		if (!behind && queue_has_lower_work(pass, job) &&
		    room_is_made(pass, id, shape, LACKS_MONEY))
			return TRY_STARTED;
		watch_note(pass, bucket, id, &closed_why);
		pass->unpaid_micro = closed_why.need;
		return TRY_BLOCKED;
	}
	room = quota_room(&pass->standings, job->queue.v, job->tier, false, need, &why);
	if (room < need) {
		if (!behind && room_is_made(pass, id, shape, LACKS_ROOM))
			return TRY_STARTED;
		watch_note(pass, bucket, id, &why);
		return TRY_BLOCKED;
	}
	room = user_left < room ? user_left : room;
	memo = memo_of(pass, job);
	memo->need = need;
	memo->least = shape->gpu_part_mib ? shape->tasks_min : need;
	if (!memo_says_no(pass, shape, memo, end_ms, job->limit_ms > 0)) {
		reserve_keep(pass);
		if (pass_place(pass, id, shape, room, &place)) {
			pass_start(pass, id, &place, false);
			return TRY_STARTED;
		}
		if (anew_place(pass, id, shape, memo->least, &place)) {
			pass_start(pass, id, &place, false);
			return TRY_STARTED;
		}
		if (!pass->wanted_queue)
			memo->no_end_ms[job->limit_ms > 0] = end_ms + 1;
		memo->never = !pass->applied;
	}
	if (!behind)
		return job_blocked(pass, bucket, id, shape, memo, &closed_why, end_ms);
	reservation_try(pass, memo, id);
	return TRY_BLOCKED;
}

enum try_result job_try(struct pass *pass, uint32_t bucket, uint32_t id)
{
	return try_at_turn(pass, bucket, id, false);
}

enum try_result job_try_behind(struct pass *pass, uint32_t bucket, uint32_t id)
{
	return reserve_waits(pass, id) ? TRY_BLOCKED : try_at_turn(pass, bucket, id, true);
}
