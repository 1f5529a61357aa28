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
#include "core/scheduling/order/due.h"
#include "core/scheduling/order/terms.h"
#include "core/scheduling/order/try.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/queues/user_limit.h"

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
	uint32_t reserved; /* jobs of the queue that are blocked and have a reservation */
};

struct order {
	struct pass *pass;
	struct turn *turns;
	uint32_t queues; /* that had jobs to try when the round began */
	bool spare;
	bool weighed; /* terms count: a cursor for each job, and none walks */
	bool cut_short; /* some bucket has more jobs than are weighed */
	uint64_t *done; /* buckets that are blocked in this pass, one bit each; where terms count */
	uint64_t *
		behind; /* buckets of which a job is blocked, with a reservation: those behind it may have one too. NULL = none */
};

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

/* --- behind a job with a reservation ---------------------------------------------------------------------------- */

static bool bucket_is_behind(const struct order *order, uint32_t bucket)
{
	return order->behind && order->behind[bucket / 64] >> bucket % 64 & 1;
}

/* The job at hand is blocked and has a reservation. The next one of its bucket does not start either, but has its turn for a
 * reservation, among all others. */
static void turn_reserved(struct order *order, struct turn *turn, uint32_t bucket)
{
	if (!order->behind)
		order->behind = arena_new_array(order->pass->arena, uint64_t,
						(size_t)order->pass->view->bucket_count / 64 + 1);
	order->behind[bucket / 64] |= UINT64_C(1) << bucket % 64;
	if (order->weighed)
		heap_pop(turn);
	else
		turn_advance(order, turn);
}

static enum try_result cursor_try(struct order *order, const struct cursor *c)
{
	return bucket_is_behind(order, c->bucket) ? job_try_behind(order->pass, c->bucket, c->job)
						  : job_try(order->pass, c->bucket, c->job);
}

/* Jobs of one bucket have no more of the depth than the part of their queue: else a queue's alike jobs would leave nothing to other queues. */
static bool queue_has_depth(const struct order *order, const struct turn *turn)
{
	return reserve_has_room(order->pass) &&
	       (int64_t)turn->reserved * order->queues < order->pass->facts->policy.backfill_depth;
}

/* On from a job that is blocked. */
static void turn_pass(struct order *order, struct turn *turn, uint32_t bucket, uint32_t job)
{
	bool reserved = order->pass->reserved_for == job;

	turn->reserved += reserved;
	if (reserved && queue_has_depth(order, turn))
		turn_reserved(order, turn, bucket);
	else
		turn_block(order, turn);
}

/* --- buckets of which nothing can start ------------------------------------------------------------------------ */

static void plain_make(struct pass *pass)
{
	const struct view *view = pass->view;

	pass->plain = arena_new_array(pass->arena, bool, pass->standings.count);
	for (uint32_t i = 1; i < pass->standings.count; i++) {
		uint32_t id = view->queue_order.at[i], up = view->queues.at[id].parent;

		pass->plain[id] =
			(!up || pass->plain[up]) && !pass->standings.at[id].calendar &&
			!queue_is_bounded(queue_get(pass->facts, (struct queue_id){ id })) &&
			!queue_limits_users(queue_get(pass->facts, (struct queue_id){ id }));
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
	if (memo->no_reservation &&
	    try_reserves_none(pass, memo, queue, rank >= rank_of(TIER_CRITICAL, INT32_MIN), c->job))
		return true;
	if (!reserve_waits(pass, c->job))
		return false;
	pass->closed = 0; /* as bounds_allow leaves it for a job that nothing bounds or pledges */
	stuck_note(pass, c->job);
	return true;
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
		order->queues += turn->open;
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
		if (!bucket_is_behind(order, c->bucket) &&
		    cursor_is_hopeless(order, turn, queue, c)) {
			order->pass->work++;
			order->pass->asked += !evict_is_urgent(order->pass, is_critical(turn));
		} else if (cursor_try(order, c) == TRY_STARTED) {
			try_started(order->pass, c->job);
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
		turn_pass(order, turn, c->bucket, c->job);
		if (cheaper || order->pass->cut)
			return;
	}
}

/* --- claims within guarantees ----------------------------------------------------------------------------------- */

/* A queue whose next job is a claim within its guarantee. */
struct claimant {
	uint32_t queue, job;
	int64_t start_ms; /* the place that is reserved for it serves from then on; INT64_MAX = it has none, or not that one any more */
	int64_t submitted_ms;
};

/* The queue's next job, when it is a claim within the guarantee: it may start, or have its place, before work that is beyond any. */
static struct cursor *claim_next(struct order *order, uint32_t queue)
{
	struct turn *turn = &order->turns[queue];
	struct cursor *c = turn->open ? turn_next(order, turn) : NULL;

	if (!c || !job_claims_guarantee(order->pass,
					job_get(order->pass->facts, (struct job_id){ c->job })))
		return NULL;
	return c;
}

/* By the starts that are planned; those that look for a place come behind, by submission, and leave those alone. */
static bool claimant_before(const struct claimant *a, const struct claimant *b)
{
	if (a->start_ms != b->start_ms)
		return a->start_ms < b->start_ms;
	if (a->submitted_ms != b->submitted_ms)
		return a->submitted_ms < b->submitted_ms;
	return a->job < b->job;
}

static uint32_t claimants_list(struct order *order, struct claimant *ret)
{
	const struct facts *facts = order->pass->facts;
	uint32_t count = 0;

	for (uint32_t queue = 1; queue < order->pass->standings.count; queue++) {
		const struct cursor *c = claim_next(order, queue);
		struct claimant claimant;
		uint32_t at;

		if (!c)
			continue;
		claimant = (struct claimant){
			.queue = queue,
			.job = c->job,
			.start_ms = reserve_stays_ms(order->pass, c->job),
			.submitted_ms = job_get(facts, (struct job_id){ c->job })->submitted_ms
		};
		for (at = count++; at > 0 && claimant_before(&claimant, &ret[at - 1]); at--)
			ret[at] = ret[at - 1];
		ret[at] = claimant;
	}
	return count;
}

/*
 * What is guaranteed to a queue is decided before what no guarantee covers: else who is within his weighted part would take, turn by turn,
 * what a claim has collected. Among claims a place that is reserved stays with its job.
 */
static void claims_run(struct order *order)
{
	struct pass *pass = order->pass;
	struct claimant *list =
		arena_new_array(pass->arena, struct claimant, pass->standings.count);
	uint32_t count = claimants_list(order, list);

	for (uint32_t i = 0; i < count; i++) {
		struct turn *turn = &order->turns[list[i].queue];
		struct cursor *c;

		while (!pass->cut && !pass_is_spent(pass) &&
		       !(pass->watch && watch_is_over(pass)) &&
		       (c = claim_next(order, list[i].queue)) != NULL) {
			if (cursor_try(order, c) == TRY_STARTED) {
				try_started(pass, c->job);
				turn_advance(order, turn);
			} else if (!pass->cut) {
				pass->blocked = true;
				turn_pass(order, turn, c->bucket, c->job);
			}
		}
		if (turn->open && !turn_next(order, turn))
			turn_close(order, list[i].queue);
	}
}

/* Takes turns until nobody is left. False when the pass ends before that. */
static bool round_run(struct order *order)
{
	struct pass *pass = order->pass;

	order->queues = 0;
	turns_open(order);
	if (!order->spare)
		claims_run(order);
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

		if (!bucket_is_behind(order, c->bucket) &&
		    job_try(pass, c->bucket, c->job) == TRY_STARTED)
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
	return (!pass->changes || !pass->blocked || pass->watch) && !pass->takes_promises &&
	       !pass_looks_first(pass);
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
	try_started(pass, job);
	return true;
}
