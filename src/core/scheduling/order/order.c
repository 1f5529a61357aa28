/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is. Across queues: the queue that uses least of its share, level by level down the tree; inside
 * a queue: rank (tier, priority), then who is due earlier (due.h), then the earlier submission. Standard and critical work of all queues goes
 * before best-effort work of any.
 *
 * A queue's buckets stand in line by rank, time and first job (line.h), and are walked so. Jobs of one bucket are decided alike: when
 * one does not fit, none does, and the bucket is done for this pass; when one starts, the bucket's next job has its turn among those
 * of its rank: such buckets form a heap. So a pass costs about one step per bucket and one per job that starts, however many wait.
 */
#include <string.h>

#include "base/check.h"
#include "core/scheduling/order/anew.h"
#include "core/scheduling/order/due.h"
#include "core/scheduling/reserve/estimate.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/order/terms.h"
#include "core/scheduling/life/pause.h"
#include "core/scheduling/queues/window.h"

/* Where the walk through a bucket stands. */
struct cursor {
	uint32_t bucket, job;
	int64_t score; /* of the job's terms; 0 where the policy has no weights */
	int64_t due_ms;
	struct sorted_walk *walk;
};

struct turn {
	struct line_walk line; /* of the queue: the next bucket of which no job had its turn */
	bool any; /* there is a next one */
	bool ranked; /* a rank is at hand: */
	uint64_t rank;
	bool open; /* may still have a job to try */
	uint32_t below; /* open queues in its subtree, itself included */
	bool at_front; /* the cursor at hand is the line's front, not the heap's */
	struct cursor front;
	struct cursor
		*heap; /* of the rank at hand: buckets that had a turn; where terms count, jobs */
	uint32_t count, room;
	struct user_holds users; /* where terms count */
};

struct order {
	struct pass *pass;
	struct turn *turns;
	bool spare;
	bool weighed; /* terms count: a cursor for each job, and none walks */
	bool cut_short; /* some bucket has more jobs than are weighed */
	uint64_t *done; /* buckets that are blocked in this pass, one bit each; where terms count */
};

enum try_result { TRY_STARTED, TRY_BLOCKED };

static const struct bucket *bucket_at(const struct order *order, uint32_t index)
{
	return &order->pass->view->buckets.at[index];
}

static bool cursor_before(const struct cursor *a, const struct cursor *b)
{
	if (a->score != b->score)
		return a->score > b->score;
	return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->job < b->job;
}

/* --- heap of one rank -------------------------------------------------------------------------------- */

static void heap_down(struct turn *turn, uint32_t at)
{
	for (;;) {
		uint32_t least = at;
		struct cursor moved = turn->heap[at];

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < turn->count;
		     child++)
			if (cursor_before(&turn->heap[child], &turn->heap[least]))
				least = child;
		if (least == at)
			return;
		turn->heap[at] = turn->heap[least];
		turn->heap[least] = moved;
		at = least;
	}
}

static void heap_push(struct order *order, struct turn *turn, struct cursor added)
{
	uint32_t at;

	if (turn->count == turn->room) {
		const struct cursor *old = turn->heap;

		turn->room = turn->room ? turn->room * 2 : 8;
		turn->heap = arena_new_array(order->pass->arena, struct cursor, turn->room);
		if (old)
			memcpy(turn->heap, old, turn->count * sizeof(*old));
	}
	for (at = turn->count++; at > 0 && cursor_before(&added, &turn->heap[(at - 1) / 2]);
	     at = (at - 1) / 2)
		turn->heap[at] = turn->heap[(at - 1) / 2];
	turn->heap[at] = added;
}

static void heap_pop(struct turn *turn)
{
	turn->heap[0] = turn->heap[--turn->count];
	heap_down(turn, 0);
}

/* --- a queue's next job --------------------------------------------------------------------------------- */

static bool next_is_due(const struct order *order, const struct turn *turn)
{
	uint8_t tier;

	if (!turn->any)
		return false;
	tier = (uint8_t)(turn->line.at->rank >> 32);
	return (tier == TIER_BEST_EFFORT) == order->spare;
}

static int64_t job_due_ms(const struct order *order, uint32_t bucket, uint32_t job)
{
	const struct facts *facts = order->pass->facts;

	return work_due_ms(facts, job_get(facts, (struct job_id){ job })->submitted_ms,
			   bucket_at(order, bucket)->work_class);
}

static int64_t job_score(const struct order *order, const struct turn *turn, uint32_t job)
{
	const struct facts *facts = order->pass->facts;
	struct terms terms;

	terms_of(facts, order->pass->view, &turn->users, job_get(facts, (struct job_id){ job }),
		 &terms);
	return terms.sum;
}

/* Every job of the bucket has a cursor of its own. */
static void bucket_weigh(struct order *order, struct turn *turn, uint32_t bucket)
{
	struct sorted_walk walk;
	uint32_t taken = 0;

	for (bool any =
		     sorted_begin(&order->pass->view->pool, bucket_at(order, bucket)->jobs, &walk);
	     any; any = sorted_next(&order->pass->view->pool, &walk)) {
		if (taken++ == TERMS_JOBS_MAX) {
			order->cut_short = true;
			return;
		}
		order->pass->work++;
		heap_push(order, turn,
			  (struct cursor){ .bucket = bucket,
					   .job = walk.id,
					   .due_ms = job_due_ms(order, bucket, walk.id),
					   .score = job_score(order, turn, walk.id) });
	}
}

static bool line_is_at_hand(const struct turn *turn)
{
	return turn->any && turn->ranked && turn->line.at->rank == turn->rank;
}

/* The next rank is at hand; where terms count, all of it is in the heap. */
static bool rank_open(struct order *order, struct turn *turn)
{
	turn->ranked = next_is_due(order, turn);
	if (!turn->ranked)
		return false;
	turn->rank = turn->line.at->rank;
	while (order->weighed && line_is_at_hand(turn)) {
		bucket_weigh(order, turn, turn->line.at->bucket);
		turn->any = line_next(&turn->line);
	}
	return true;
}

static bool bucket_is_done(const struct order *order, uint32_t bucket)
{
	return order->weighed && order->done[bucket / 64] >> bucket % 64 & 1;
}

/* What its user's jobs that started in this pass hold makes a job's sum smaller; it goes where it belongs. */
static bool score_is_old(struct order *order, struct turn *turn)
{
	int64_t score = order->weighed ? job_score(order, turn, turn->heap[0].job) : 0;

	if (score >= turn->heap[0].score)
		return false;
	turn->heap[0].score = score;
	heap_down(turn, 0);
	return true;
}

static struct cursor *turn_next(struct order *order, struct turn *turn)
{
	for (;;) {
		turn->at_front = line_is_at_hand(turn);
		if (turn->at_front) {
			turn->front = (struct cursor){ .bucket = turn->line.at->bucket,
						       .due_ms = turn->line.at->due_ms,
						       .job = turn->line.at->job };
			if (!turn->count || cursor_before(&turn->front, &turn->heap[0]))
				return &turn->front;
			turn->at_front = false;
		}
		if (!turn->count) {
			if (!rank_open(order, turn))
				return NULL;
		} else if (bucket_is_done(order, turn->heap[0].bucket)) {
			heap_pop(turn);
		} else if (!score_is_old(order, turn)) {
			return &turn->heap[0];
		}
	}
}

static void turn_block(struct order *order, struct turn *turn)
{
	uint32_t bucket;

	if (turn->at_front) {
		turn->any = line_next(&turn->line);
		return;
	}
	bucket = turn->heap[0].bucket;
	if (order->weighed)
		order->done[bucket / 64] |= UINT64_C(1) << bucket % 64;
	heap_pop(turn);
}

/* The first job of a bucket was started or promised: the next one, if any, goes into the heap. */
static void front_advance(struct order *order, struct turn *turn)
{
	const struct sorted_pool *pool = &order->pass->view->pool;
	struct cursor c = turn->front;

	turn->any = line_next(&turn->line);
	c.walk = arena_new(order->pass->arena, struct sorted_walk);
	(void)sorted_begin(pool, bucket_at(order, c.bucket)->jobs, c.walk);
	if (!sorted_next(pool, c.walk))
		return;
	c.job = c.walk->id;
	c.due_ms = job_due_ms(order, c.bucket, c.job);
	heap_push(order, turn, c);
}

/* The job at hand was started or promised: on to the next one of its bucket. */
static void turn_advance(struct order *order, struct turn *turn)
{
	struct cursor *c = &turn->heap[0];
	const struct sorted_pool *pool = &order->pass->view->pool;

	if (turn->at_front) {
		front_advance(order, turn);
		return;
	}

	if (order->weighed) {
		const struct job *job = job_get(order->pass->facts, (struct job_id){ c->job });

		user_holds_add(&turn->users, job->user,
			       shape_share(&order->pass->view->space,
					   shape_get(order->pass->facts, job->shape),
					   shape_get(order->pass->facts, job->shape)->tasks_min),
			       order->pass->arena);
		heap_pop(turn);
		return;
	}
	if (!sorted_next(pool, c->walk)) {
		heap_pop(turn);
		return;
	}
	c->job = c->walk->id;
	c->due_ms = job_due_ms(order, c->bucket, c->job);
	heap_down(turn, 0);
}

/* --- one job ------------------------------------------------------------------------------------------------ */

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

/* It has a place, or one is promised to it: what its bucket meets later says nothing of it. */
static void watch_started(struct pass *pass, uint32_t job)
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

/* Another job of its shape found none in this pass. Of who has waited for longer than that one it says nothing. */
static bool reservation_is_none(struct pass *pass, const struct shape_memo *memo, uint32_t id)
{
	return memo->no_guess || (memo->no_reservation && !job_guesses(pass, id));
}

static void reservation_try(struct pass *pass, struct shape_memo *memo, uint32_t id)
{
	if (pass->out_of_turn || reservation_is_none(pass, memo, id) || reserve_for(pass, id))
		return;
	memo->no_reservation = true;
	memo->no_guess = ahead_guesses(pass, job_get(pass->facts, (struct job_id){ id }));
}

static enum try_result job_blocked(struct pass *pass, uint32_t bucket, uint32_t id,
				   const struct shape *shape, struct shape_memo *memo,
				   const struct verdict *closed_why, int64_t end_ms)
{
	struct verdict why = { 0 };
	bool reserved = end_ms && fits_without_reservations(pass, shape, memo);

	if (!reserved && evict_for(pass, id, LACKS_PLACE) == 0)
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
	if (end_ms)
		reservation_try(pass, memo, id);
	return TRY_BLOCKED;
}

static bool queue_is_plain(const struct pass *pass, uint32_t queue)
{
	return pass->plain && pass->plain[queue];
}

static void plain_make(struct pass *pass)
{
	const struct view *view = pass->view;

	pass->plain = arena_new_array(pass->arena, bool, pass->standings.count);
	for (uint32_t i = 1; i < pass->standings.count; i++) {
		uint32_t id = view->queue_order.at[i], up = view->queues.at[id].parent;

		pass->plain[id] =
			(!up || pass->plain[up]) && !pass->standings.at[id].calendar &&
			!queue_is_bounded(queue_get(pass->facts, (struct queue_id){ id }));
	}
}

/* Explain wants to hear why its jobs do not start. */
static bool bucket_is_watched(const struct pass *pass, uint32_t bucket)
{
	return pass->watch && job_view_get(pass->view, pass->watch->job)->bucket == bucket;
}

/*
 * What the pass knows already says that its jobs do not start: their wish has no place, reserved ones included, there is no
 * reservation for it, or none is looked for now, and nobody can make room. Many buckets end here, so of the job is read, last,
 * only since when it waits.
 */
static bool bucket_is_hopeless(struct pass *pass, const struct cursor *c, uint32_t queue,
			       uint64_t rank, uint32_t shape, uint32_t work)
{
	const struct shape_memo *memo = &pass->memos[shape];

	if (!memo->never || rank < rank_of(TIER_STANDARD, INT32_MIN) ||
	    bucket_is_watched(pass, c->bucket) || pass->pledges || !queue_is_plain(pass, queue) ||
	    !evict_is_barren(
		    pass, queue, rank,
		    (struct turn_wish){ pass->facts->policy.take_turns ? work : 0, c->due_ms },
		    memo->need, memo->least))
		return false;
	if (memo->no_reservation && reservation_is_none(pass, memo, c->job))
		return true;
	if (!reserve_waits(pass, c->job))
		return false;
	stuck_note(pass, c->job);
	return true;
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
		leaves_ms = job_leaves_ms(pass->facts, job), room;
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

static enum try_result job_try(struct pass *pass, uint32_t bucket, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = pass_shape(pass, job->shape);
	int64_t need = shape_share(&pass->view->space, shape, shape->tasks_min), leaves_ms, end_ms,
		room;
	struct verdict why = { 0 }, closed_why = { 0 };
	struct placement place;
	struct shape_memo *memo;

	pass->work++;
	pass->unpaid_micro = 0;
	if (job_is_paused(pass, job))
		return paused_try(pass, bucket, id, job);
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
	if (!spend_allows(pass, job, &closed_why)) {
		if (queue_has_lower_work(pass, job) && evict_for(pass, id, LACKS_MONEY) == 0)
			return TRY_STARTED;
		watch_note(pass, bucket, id, &closed_why);
		pass->unpaid_micro = closed_why.need;
		return TRY_BLOCKED;
	}
	room = quota_room(&pass->standings, job->queue.v, job->tier, false, need, &why);
	if (room < need) {
		if (evict_for(pass, id, LACKS_ROOM) == 0)
			return TRY_STARTED;
		watch_note(pass, bucket, id, &why);
		return TRY_BLOCKED;
	}
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
	return job_blocked(pass, bucket, id, shape, memo, &closed_why, end_ms);
}

/* --- whose turn ------------------------------------------------------------------------------------------------ */

/* Down the tree: a queue's own jobs first, then the child that comes first; equal ones by name. */
static uint32_t turn_pick(const struct order *order)
{
	const struct queue_view *queues = order->pass->view->queues.at;
	const struct standing *at = order->pass->standings.at;
	uint32_t queue = 0;

	while (!order->turns[queue].open) {
		uint32_t best = 0;

		for (uint32_t id = queues[queue].first_child; id; id = queues[id].next_sibling)
			if (order->turns[id].below &&
			    (!best || standing_compare(&at[id], &at[best]) < 0))
				best = id;
		CHECK(best != 0);
		queue = best;
	}
	return queue;
}

static void turn_close(struct order *order, uint32_t queue)
{
	order->turns[queue].open = false;
	for (;;) {
		order->turns[queue].below--;
		if (!queue)
			return;
		queue = order->pass->view->queues.at[queue].parent;
	}
}

static void turns_open(struct order *order)
{
	const struct view *view = order->pass->view;

	for (uint32_t queue = 1; queue < order->pass->standings.count; queue++) {
		struct turn *turn = &order->turns[queue];

		turn->open = turn->count || next_is_due(order, turn);
		for (uint32_t up = queue; turn->open; up = view->queues.at[up].parent) {
			order->turns[up].below++;
			if (!up)
				break;
		}
	}
}

/* Explain has what it wants, or the job's turn is too far off. */
static bool watch_is_over(const struct pass *pass)
{
	const struct watch *watch = pass->watch;

	return watch->seen || watch->started || (watch->work_most && pass->work > watch->work_most);
}

/* At the front of the line its entry has all that is asked. */
static bool cursor_is_hopeless(const struct order *order, const struct turn *turn, uint32_t queue,
			       const struct cursor *c)
{
	const struct bucket *b;

	if (turn->at_front)
		return bucket_is_hopeless(order->pass, c, queue, turn->rank, turn->line.at->shape,
					  turn->line.at->work);
	b = bucket_at(order, c->bucket);
	return bucket_is_hopeless(order->pass, c, queue, b->rank, b->shape, b->work_class);
}

/* The rank at hand. */
static bool is_critical(const struct turn *turn)
{
	return (uint8_t)(turn->rank >> 32) == TIER_CRITICAL;
}

/* Tries the queue's jobs until one starts or none is left. */
static void turn_take(struct order *order, uint32_t queue)
{
	struct turn *turn = &order->turns[queue];

	for (;;) {
		struct cursor *c = turn_next(order, turn);
		bool cheaper;

		if (!c) {
			turn_close(order, queue);
			return;
		}
		order->pass->unpaid_micro = 0;
		if (cursor_is_hopeless(order, turn, queue, c)) {
			order->pass->work++;
			order->pass->asked += !evict_is_urgent(order->pass, is_critical(turn));
		} else if (job_try(order->pass, c->bucket, c->job) == TRY_STARTED) {
			watch_started(order->pass, c->job);
			turn_advance(order, turn);
			return;
		}
		if (order->pass->cut)
			return;
		if (order->pass->watch && watch_is_over(order->pass))
			return;
		order->pass->blocked = true;
		cheaper = order->pass->unpaid_micro &&
			  spend_try_cheaper(order->pass, c->bucket, c->job);
		turn_block(order, turn);
		if (cheaper || order->pass->cut)
			return;
	}
}

/* Takes turns until nobody is left. False when the pass ends before that. */
static bool round_run(struct order *order)
{
	struct pass *pass = order->pass;

	turns_open(order);
	while (order->turns[0].below) {
		if (pass_is_spent(pass) || pass->cut) {
			pass->more = true;
			return false;
		}
		if (pass->watch && watch_is_over(pass))
			return false;
		turn_take(order, turn_pick(order));
	}
	return true;
}

static void turn_close_others(struct order *order, uint32_t queue)
{
	struct turn *turn = &order->turns[queue];

	if (turn->open && (!turn_next(order, turn) || !is_critical(turn)))
		turn_close(order, queue);
}

/*
 * For the others the pass ends here, and goes on in the next one. A critical job is decided now, on the state as it is: it waits neither
 * for the searches nor for the many starts of others. So many of them as search in a pass; the next ones go with the others. No place is
 * reserved here: who is reserved a place depends on who comes before, and a pass that has all in their turn would drop it again.
 */
static void urgent_run(struct order *order)
{
	struct pass *pass = order->pass;

	pass->out_of_turn = true;
	for (uint32_t queue = 1; queue < pass->standings.count; queue++)
		turn_close_others(order, queue);
	while (order->turns[0].below && pass->urgent < EVICT_SEARCHES_MAX &&
	       pass->count < DECISIONS_MAX) {
		uint32_t queue = turn_pick(order);
		struct turn *turn = &order->turns[queue];
		struct cursor *c = turn_next(order, turn);

		if (job_try(pass, c->bucket, c->job) == TRY_STARTED)
			turn_advance(order, turn);
		else
			turn_block(order, turn);
		turn_close_others(order, queue);
	}
}

/*
 * What was started or promised may entitle a job that had its turn before to room that it could not have then. It would take
 * best-effort work first; so that comes only when standard work has come to rest on the facts as they are.
 */
static bool spare_may_start(const struct pass *pass)
{
	return (!pass->changes || !pass->blocked || pass->watch) && !pass_looks_first(pass);
}

/* Where the policy has weights, the jobs of a rank are ordered by their terms. */
static void order_weigh(struct order *order)
{
	struct pass *pass = order->pass;

	order->weighed = terms_count(&pass->facts->policy);
	if (!order->weighed)
		return;
	order->done = arena_new_array(pass->arena, uint64_t, pass->view->bucket_count / 64 + 1);
	for (uint32_t queue = 1; queue < pass->standings.count; queue++)
		if (order->turns[queue].any)
			user_holds_make(pass->facts, pass->view, queue, pass->arena,
					&order->turns[queue].users);
}

/* Where the next pass goes on with the searches for victims; 0: all had their turn, and as things have happened since the first
 * of them had it, another round begins. */
static void searched_note(struct pass *pass, uint32_t count)
{
	bool stale = pass->count > 0;
	struct event_searched *e = &pass_emit(pass, EVENT_SEARCHED)->searched;

	*e = (struct event_searched){ .count = count, .stale = count && stale };
	pass->more = true;
}

/* At most one for each job that waits, mostly no more than there are free GPUs. */
static void starts_expect(struct pass *pass)
{
	int64_t starts = space_free_gpus(&pass->view->space, 0, UINT64_MAX);

	starts = starts < pass->view->waits ? starts : pass->view->waits;
	pass_expect(pass, (uint32_t)starts);
}

void order_run(struct pass *pass)
{
	struct order order = { .pass = pass };

	order.turns = arena_new_array(pass->arena, struct turn, pass->standings.count);
	for (uint32_t queue = 1; queue < pass->standings.count; queue++)
		order.turns[queue].any =
			line_begin(&pass->view->queues.at[queue].line, &order.turns[queue].line);
	order_weigh(&order);
	evict_begin(pass);
	reserve_begin(pass);
	plain_make(pass);
	starts_expect(pass);
	if (!round_run(&order)) {
		uint32_t searched = pass->cut ? pass->asked - 1 : 0;

		pass->cut = false;
		if (!pass->watch)
			urgent_run(&order);
		if (searched)
			searched_note(pass, searched);
		return;
	}
	reserve_end(pass);
	pass->more = pass->more || (order.cut_short && pass->starts);
	order.spare = true;
	if (spare_may_start(pass)) {
		(void)round_run(&order);
	} else {
		turns_open(&order);
		pass->spares_wait = order.turns[0].below > 0;
		pass->more = pass->more || (pass->spares_wait && pass->changes);
	}
	if (pass->facts->searched && pass->facts->search_stale && !pass->watch)
		searched_note(pass, 0);
	reserve_reviewed(pass);
}

bool order_try(struct pass *pass, uint32_t job)
{
	uint32_t bucket = job_view_get(pass->view, job)->bucket;

	if (job_try(pass, bucket, job) != TRY_STARTED)
		return false;
	watch_started(pass, job);
	return true;
}
