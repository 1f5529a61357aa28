/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a claim may take, and when. A claim is a job that waits though it fits in its queue's share (DESIGN 5.5). Work that borrows holds
 * its GPUs no longer than it is entitled to: it may be warned when it has run for min_runtime, and has left when its grace is over. So
 * these GPUs count as free then, or at the expected end if that comes first, whatever the borrower declares.
 *
 *	8 GPUs; min_runtime 10 min, grace 2 min. Eight borrowers have run for 0, 1, 2 ... 7 min; none declares anything.
 *	A claim of 8 GPUs is planned in 12 min, one of 6 GPUs in 10 min.
 *
 * Of each queue as much counts as it holds above its share, those that may go first before the others; the rest it may keep, so its
 * expected end counts. Who never evicts (`preempts: false`) takes nothing.
 */
#include <string.h>

#include "core/scheduling/evict/evict.h"

static int64_t job_need(const struct pass *pass, const struct job *job)
{
	const struct shape *shape = shape_get(pass->facts, job->shape);

	return shape_share(&pass->view->space, shape, shape->tasks_min);
}

static bool claims(const struct pass *pass, const struct job *job, bool guaranteed)
{
	const struct standings *s = &pass->standings;
	int64_t need = job_need(pass, job);

	if (job->tier == TIER_BEST_EFFORT || !need)
		return false;
	/* With the critical work that runs, and what is reserved for claims before it. */
	return (job->tier == TIER_CRITICAL &&
		standing_claims(s, job->queue.v, 0, need + s->at[job->queue.v].claimed)) ||
	       standing_has(s, job->queue.v, need, guaranteed);
}

bool job_claims_guarantee(const struct pass *pass, const struct job *job)
{
	return claims(pass, job, true);
}

bool job_claims(const struct pass *pass, const struct job *job)
{
	return claims(pass, job, false);
}

/* What is asked of candidates: the job, its rank and what it needs. Equals do not count: whose turn it is changes. */
static struct hunt claim_hunt(struct pass *pass, const struct job *job)
{
	const struct shape *shape = shape_get(pass->facts, job->shape);
	int64_t need = job_need(pass, job);

	return (struct hunt){ .pass = pass,
			      .j = job,
			      .shape = shape,
			      .rank = job_rank(job),
			      .need = need,
			      .beside = shape_beside(shape),
			      .cost = -1,
			      .claims = job->tier == TIER_STANDARD &&
					standing_guaranteed(&pass->standings, job->queue.v, 0,
							    need) };
}

static struct takeable taken_of(const struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	int64_t warn_ms =
		job_view_get(pass->view, id)->since_ms + pass->facts->policy.min_runtime_ms;

	if (warn_ms < pass->facts->now_ms)
		warn_ms = pass->facts->now_ms;
	return (struct takeable){ .job = id,
				  .warn_ms = warn_ms,
				  .gone_ms = warn_ms + job_grace_ms(pass->facts, job) };
}

/* It runs, is no best-effort work (reserve.c has a rule of its own for that), and is asked to leave by nobody else. */
static bool may_be_asked(const struct pass *pass, uint32_t id)
{
	const struct job_view *jv = job_view_get(pass->view, id);

	return jv->attempt && jv->share && jv->tier == TIER_STANDARD &&
	       !pass_job_leaves(pass, id) &&
	       attempt_may_be_evicted(attempt_get(pass->facts, (struct attempt_id){ jv->attempt }));
}

/* --- one after the other ------------------------------------------------------------------------------ */

void claim_begin(struct claim_asked *asked, struct pass *pass, const struct job *job)
{
	*asked = (struct claim_asked){ .pass = pass, .job = job };
}

static void asked_note(struct claim_asked *asked, uint32_t id)
{
	const uint32_t *old = asked->jobs;

	if (asked->count == asked->room) {
		asked->room = asked->room ? asked->room * 2 : 16;
		asked->jobs = arena_new_array(asked->pass->arena, uint32_t, asked->room);
		if (old)
			memcpy(asked->jobs, old, asked->count * sizeof(*old));
	}
	asked->jobs[asked->count++] = id;
}

static bool was_asked(const struct claim_asked *asked, uint32_t id)
{
	for (uint32_t i = asked->count; i-- > 0;)
		if (asked->jobs[i] == id)
			return true;
	return false;
}

static void leave_count(struct claim_asked *asked, uint32_t id, int64_t sign)
{
	const struct job_view *jv = job_view_get(asked->pass->view, id);

	standing_leave(&asked->pass->standings, jv->queue, jv->tier, sign * jv->share);
}

static bool asked_may_take(struct claim_asked *asked, const struct hunt *hunt, uint32_t id)
{
	const struct job_view *jv = job_view_get(asked->pass->view, id);
	struct victim v = { .job = id,
			    .queue = jv->queue,
			    .rank = jv->rank,
			    .share = jv->share,
			    .tier = jv->tier };

	if (!may_be_asked(asked->pass, id))
		return false;
	v.attempt = attempt_get(asked->pass->facts, (struct attempt_id){ jv->attempt });
	v.shape = shape_get(asked->pass->facts,
			    job_get(asked->pass->facts, (struct job_id){ id })->shape);
	if (!candidate_may_go(hunt, &v))
		return false;
	leave_count(asked, id, 1);
	return true;
}

bool claim_may_take(struct claim_asked *asked, uint32_t holder, struct takeable *ret)
{
	struct hunt hunt = claim_hunt(asked->pass, asked->job);

	*ret = taken_of(asked->pass, holder);
	if (!asked->job->preempts)
		return false;
	if (was_asked(asked, holder))
		return true;
	if (!asked_may_take(asked, &hunt, holder))
		return false;
	asked_note(asked, holder);
	return true;
}

void claim_end(struct claim_asked *asked)
{
	while (asked->count)
		leave_count(asked, asked->jobs[--asked->count], -1);
}

/* --- all of them ------------------------------------------------------------------------------------------ */

struct takes {
	struct takeable *list;
	uint32_t count, room;
};

static void takes_add(struct pass *pass, struct takes *takes, uint32_t id)
{
	const struct takeable *old = takes->list;
	struct takeable taken = taken_of(pass, id);
	int64_t end_ms = job_view_get(pass->view, id)->end_ms;

	if (!may_be_asked(pass, id))
		return;
	if (end_ms < pass->facts->now_ms)
		end_ms = pass->facts->now_ms;
	if (end_ms < taken.gone_ms)
		taken.gone_ms = end_ms;
	if (takes->count == takes->room) {
		takes->room = takes->room ? takes->room * 2 : 64;
		takes->list = arena_new_array(pass->arena, struct takeable, takes->room);
		if (old)
			memcpy(takes->list, old, takes->count * sizeof(*old));
	}
	takes->list[takes->count++] = taken;
}

/* Those of another queue that began first: the first RESERVE_ENDS_MAX of each. */
static void takes_read(struct pass *pass, struct takes *takes, uint32_t queue)
{
	struct sorted_walk walk;
	uint32_t read = 0;

	for (bool any = sorted_begin(&pass->view->pool, pass->view->queues.at[queue].aging, &walk);
	     any && read < RESERVE_ENDS_MAX; any = sorted_next(&pass->view->pool, &walk), read++)
		takes_add(pass, takes, walk.id);
}

/* Of its own queue those of lower rank. */
static void takes_read_own(struct pass *pass, struct takes *takes, const struct job *job)
{
	struct sorted_walk walk;
	uint32_t read = 0;

	for (bool any = sorted_begin(&pass->view->pool, pass->view->queues.at[job->queue.v].running,
				     &walk);
	     any && walk.key < job_rank(job) && read < RESERVE_ENDS_MAX;
	     any = sorted_next(&pass->view->pool, &walk), read++)
		takes_add(pass, takes, walk.id);
}

static bool taken_before(const struct takeable *a, const struct takeable *b)
{
	return a->gone_ms != b->gone_ms ? a->gone_ms < b->gone_ms : a->job < b->job;
}

static void takes_sift(struct takeable *list, uint32_t count, uint32_t at)
{
	struct takeable moved = list[at];

	for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && taken_before(&list[child], &list[child + 1]))
			child++;
		if (!taken_before(&moved, &list[child]))
			break;
		list[at] = list[child];
	}
	list[at] = moved;
}

static void takes_sort(struct takes *takes)
{
	struct takeable *list = takes->list;

	for (uint32_t at = takes->count / 2; at-- > 0;)
		takes_sift(list, takes->count, at);
	for (uint32_t left = takes->count; left > 1;) {
		struct takeable last = list[--left];

		list[left] = list[0];
		list[0] = last;
		takes_sift(list, left, 0);
	}
}

/* May any standard work of the queue go, as the queues stand? */
static bool queue_gives(const struct hunt *hunt, uint32_t queue)
{
	const struct victim v = { .queue = queue, .tier = TIER_STANDARD, .share = 1 };

	return candidate_may_go(hunt, &v);
}

const struct takeable *claim_takes(struct pass *pass, const struct job *job, uint32_t *ret_count)
{
	struct hunt hunt = claim_hunt(pass, job);
	struct takes takes = { .count = 0 };
	struct claim_asked asked;
	uint32_t count = 0;

	for (uint32_t q = 1; job->preempts && q < pass->standings.count; q++)
		if (q != job->queue.v && pass->view->queues.at[q].running && queue_gives(&hunt, q))
			takes_read(pass, &takes, q);
	if (job->preempts)
		takes_read_own(pass, &takes, job);
	takes_sort(&takes);
	claim_begin(&asked, pass, job);
	for (uint32_t i = 0; i < takes.count; i++)
		if (asked_may_take(&asked, &hunt, takes.list[i].job))
			takes.list[count++] = takes.list[i];
	for (uint32_t i = 0; i < count; i++)
		leave_count(&asked, takes.list[i].job, -1);
	*ret_count = count;
	return takes.list;
}

/* --- places promised to borrowers ------------------------------------------------------------------------- */

static bool promise_may_go(const struct hunt *hunt, uint32_t i)
{
	const struct pass *pass = hunt->pass;
	const struct promise_view *p = &pass->view->promises.at[i];
	struct victim v = { .queue = p->queue, .tier = p->tier, .share = p->share };

	return p->queue != hunt->j->queue.v && p->tier == TIER_STANDARD && p->share &&
	       !pass->promises_gone[i] &&
	       !job_get(pass->facts, (struct job_id){ p->job })->attempt.v &&
	       candidate_may_go(hunt, &v);
}

uint32_t claim_promises(struct pass *pass, const struct job *job, bool drop)
{
	struct hunt hunt = claim_hunt(pass, job);
	uint32_t count = 0;

	for (uint32_t i = 0; i < pass->view->promise_count; i++) {
		const struct promise_view *p = &pass->view->promises.at[i];

		if (!promise_may_go(&hunt, i))
			continue;
		count++;
		if (!drop) {
			hunt_promise_move(&hunt, p, true);
			continue;
		}
		pass->promises_gone[i] = true;
		pass_emit(pass, EVENT_PROMISE_DROPPED)->promise_dropped.job = p->job;
	}
	return count;
}
