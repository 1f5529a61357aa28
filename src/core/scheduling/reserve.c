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
 * Best-effort work is lent such places and stopped when they are needed, so it is not waited for: it is gone at the
 * beginning, unless the blocked job never evicts.
 *
 * A reservation is not remembered: each pass finds it again. Nobody else can push it back, so it only ever comes
 * earlier, unless jobs run longer than expected.
 */
#include <string.h>

#include "base/check.h"
#include "core/scheduling/pass.h"

/* --- what is kept in the space ----------------------------------------------------------------------- */

static void reservation_keep(struct pass *pass, struct reservation *r)
{
	struct space *space = &pass->view->space;

	r->kept = arena_new_array(pass->arena, uint32_t, r->place.count);
	for (uint32_t i = 0; i < r->place.count; i++) {
		r->kept[i] = r->place.masks[i] & ~space_at(space, r->place.ranks[i])->promised;
		space_promise(space, r->place.ranks[i], r->kept[i], r->shape->cpu_milli,
			      r->shape->memory_mib);
	}
}

static void reservation_free(struct pass *pass, struct reservation *r)
{
	for (uint32_t i = 0; i < r->place.count; i++)
		space_unpromise(&pass->view->space, r->place.ranks[i], r->kept[i],
				r->shape->cpu_milli, r->shape->memory_mib);
	r->kept = NULL;
}

void reserve_layer(struct pass *pass, int64_t end_ms)
{
	while (pass->applied && pass->reservations[pass->applied - 1].start_ms >= end_ms)
		reservation_free(pass, &pass->reservations[--pass->applied]);
	while (pass->applied < pass->reservation_count &&
	       pass->reservations[pass->applied].start_ms < end_ms)
		reservation_keep(pass, &pass->reservations[pass->applied++]);
}

uint32_t reserve_holder(const struct pass *pass, int64_t end_ms)
{
	return pass->reservation_count && pass->reservations[0].start_ms < end_ms
		       ? pass->reservations[0].job
		       : 0;
}

/* --- finding one ---------------------------------------------------------------------------------------- */

enum { STRIDE_MAX = 64 };

/* One sweep over the expected ends. */
struct sweep {
	struct pass *pass;
	const struct place_request *request;
	bool spares; /* best-effort work has been given back: it ends when it is told to */
	uint32_t stride, count;
	uint32_t jobs[STRIDE_MAX]; /* given back since it was last found not to fit */
	int64_t ends_ms[STRIDE_MAX];
	uint32_t marks[STRIDE_MAX]; /* of the space, after each */
};

static void attempt_give(struct pass *pass, const struct attempt *attempt,
			 const struct shape *shape)
{
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&pass->facts->tasks, attempt->first_task + i);
		int32_t rank = space_rank(&pass->view->space, task->node.v);

		if (rank != RANK_NONE)
			space_give(&pass->view->space, (uint32_t)rank, task->gpu_mask,
				   shape->cpu_milli, shape->memory_mib);
	}
}

static void job_give(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });

	attempt_give(pass, attempt_get(pass->facts, job->attempt),
		     shape_get(pass->facts, job->shape));
}

static bool sweep_fits(const struct sweep *sweep)
{
	const struct space *space = &sweep->pass->view->space;

	return place_bound(space, sweep->request, NULL) == 0 &&
	       place_find(space, sweep->request, NULL, NULL, NULL) == 0;
}

/* Best-effort work makes room at once for whoever may evict. */
static void spares_give(struct sweep *sweep)
{
	uint32_t count;
	const struct victim *spares = evict_spares(sweep->pass, &count);

	sweep->spares = true;
	for (uint32_t i = 0; i < count && i < RESERVE_SPARES_MAX; i++)
		attempt_give(sweep->pass, spares[i].attempt, spares[i].shape);
}

/* Best-effort work that evict_spares lists is not waited for; that it lists too much to give back is waited for never. */
static bool sweep_passes_over(const struct sweep *sweep, uint32_t id)
{
	const struct job_view *jv = &sweep->pass->view->jobs.at[id];

	return sweep->spares && jv->tier == TIER_BEST_EFFORT && !jv->leaving &&
	       attempt_may_be_evicted(
		       attempt_get(sweep->pass->facts, (struct attempt_id){ jv->attempt }));
}

static void stride_give(struct sweep *sweep, uint32_t i)
{
	job_give(sweep->pass, sweep->jobs[i]);
	sweep->marks[i] = space_mark(&sweep->pass->view->space);
}

/* As if only the first `count` of the stride had been given back; `given` are now. */
static void stride_go(struct sweep *sweep, uint32_t *given, uint32_t count)
{
	if (count < *given)
		space_rollback(&sweep->pass->view->space, sweep->marks[count - 1]);
	for (uint32_t i = *given; i < count; i++)
		stride_give(sweep, i);
	*given = count;
}

/* It fits after the whole stride: after how many of it first? More that is free never makes it fit less. */
static uint32_t stride_search(struct sweep *sweep)
{
	uint32_t first = 1, end = sweep->count, given = end;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		stride_go(sweep, &given, middle);
		if (sweep_fits(sweep))
			end = middle;
		else
			first = middle + 1;
	}
	stride_go(sweep, &given, first);
	return first;
}

/* Looks after each stride of ends; strides grow, so that far ends cost few looks. True when it fits at *ret_ms. */
static bool ends_walk(struct sweep *sweep, int64_t *ret_ms)
{
	const struct pass *pass = sweep->pass;
	struct sorted_walk walk;
	bool any = sorted_begin(&pass->view->pool, pass->view->ends, &walk);

	sweep->stride = 1;
	for (;; sweep->stride = sweep->stride < STRIDE_MAX ? sweep->stride * 2 : STRIDE_MAX) {
		sweep->count = 0;
		for (; any && sweep->count < sweep->stride &&
		       sweep->pass->releases < RESERVE_RELEASES_MAX;
		     any = sorted_next(&pass->view->pool, &walk)) {
			if (sweep_passes_over(sweep, walk.id))
				continue;
			sweep->pass->releases++;
			sweep->jobs[sweep->count] = walk.id;
			sweep->ends_ms[sweep->count] = (int64_t)walk.key;
			stride_give(sweep, sweep->count++);
		}
		if (!sweep->count)
			return false;
		if (!sweep_fits(sweep))
			continue;
		*ret_ms = sweep->ends_ms[stride_search(sweep) - 1];
		return true;
	}
}

/* When and where it fits first. Rolled back in any case. */
static bool sweep_run(struct pass *pass, const struct place_request *request, bool preempts,
		      int64_t *ret_ms, struct placement *ret)
{
	struct space *space = &pass->view->space;
	uint32_t mark = space_mark(space);
	struct sweep sweep = { .pass = pass, .request = request };
	bool found;

	if (preempts)
		spares_give(&sweep);
	*ret_ms = pass->facts->now_ms;
	found = sweep_fits(&sweep) || ends_walk(&sweep, ret_ms);
	if (found) {
		CHECK(place_find(space, request, pass->arena, ret, NULL) == 0);
		if (*ret_ms < pass->facts->now_ms)
			*ret_ms = pass->facts->now_ms;
	}
	space_rollback(space, mark);
	return found;
}

bool reserve_for(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct place_request request = pass_request(pass, shape, shape->tasks_min);
	struct reservation r = { .job = id, .shape = shape };
	uint32_t at;

	if ((int64_t)pass->reservation_count >= pass->facts->policy.backfill_depth ||
	    pass->releases >= RESERVE_RELEASES_MAX)
		return false;
	if (!pass->reservations)
		pass->reservations = arena_new_array(pass->arena, struct reservation,
						     (size_t)pass->facts->policy.backfill_depth);
	reserve_layer(pass, INT64_MAX); /* those before it keep their places */
	if (!sweep_run(pass, &request, job->preempts, &r.start_ms, &r.place)) {
		reserve_layer(pass, 0);
		return false;
	}
	reserve_layer(pass, 0);
	for (at = pass->reservation_count;
	     at > 0 && pass->reservations[at - 1].start_ms > r.start_ms; at--)
		pass->reservations[at] = pass->reservations[at - 1];
	pass->reservations[at] = r;
	pass->reservation_count++;
	return true;
}
