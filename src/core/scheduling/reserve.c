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

static void job_give(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);
	const struct shape *shape = shape_get(pass->facts, job->shape);

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&pass->facts->tasks, attempt->first_task + i);
		int32_t rank = space_rank(&pass->view->space, task->node.v);

		if (rank != RANK_NONE)
			space_give(&pass->view->space, (uint32_t)rank, task->gpu_mask,
				   shape->cpu_milli, shape->memory_mib);
	}
}

/* Goes through the expected ends; true when the request fits at *ret_ms. Rolled back in any case. */
static bool sweep(struct pass *pass, const struct place_request *request, int64_t *ret_ms,
		  struct placement *ret)
{
	struct space *space = &pass->view->space;
	uint32_t mark = space_mark(space);
	struct sorted_walk walk;
	bool found = false;

	for (bool any = sorted_begin(&pass->view->pool, pass->view->ends, &walk); any && !found;
	     any = sorted_next(&pass->view->pool, &walk)) {
		if (pass->releases++ >= RESERVE_RELEASES_MAX)
			break;
		job_give(pass, walk.id);
		if (place_bound(space, request, NULL) ||
		    place_find(space, request, NULL, NULL, NULL))
			continue;
		found = place_find(space, request, pass->arena, ret, NULL) == 0;
		*ret_ms = (int64_t)walk.key > pass->facts->now_ms ? (int64_t)walk.key
								  : pass->facts->now_ms;
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
	if (!sweep(pass, &request, &r.start_ms, &r.place)) {
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
