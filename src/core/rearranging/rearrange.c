/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When moves are looked for, and how a plan is carried out. README.md has the rules.
 *
 * A look costs a microsecond and more for each job that it reads, so it reads MOVES_READ_MAX at most when some wait (movers.c), and there
 * is one every ten seconds at most, and none while nothing has happened since the last (facts.moves.stale); time alone makes one worth
 * while when a job that is left alone for a time may be moved again, or the hour in which moves are counted is over (again_ms). At most
 * one plan comes of a look.
 */
#include "core/rearranging/rearrange.h"

#include "core/rearranging/plan.h"
#include "core/scheduling/queues/window.h"

/* --- when ------------------------------------------------------------------------------------------------------ */

static void again_wake(struct pass *pass, int64_t again_ms, int64_t looked_ms)
{
	int64_t next_ms = looked_ms + MOVES_LOOK_MS;

	pass_wake(pass, again_ms > next_ms ? again_ms : next_ms);
}

static void look_wake(struct pass *pass)
{
	const struct moves *m = &pass->facts->moves;

	if (m->stale)
		pass_wake(pass, m->looked_ms + MOVES_LOOK_MS);
	else if (m->again_ms)
		again_wake(pass, m->again_ms, m->looked_ms);
}

/* How many jobs may still be moved in this hour. */
static uint32_t moves_left(const struct facts *f)
{
	const struct moves *m = &f->moves;
	int64_t left = f->policy.defragment_moves;

	if (m->asked)
		return UINT32_MAX;
	if (m->hour_ms <= f->now_ms && f->now_ms - m->hour_ms < MOVES_HOUR_MS)
		left -= m->in_hour;
	return left > 0 ? (uint32_t)left : 0;
}

/* --- what a waiting job is worth ---------------------------------------------------------------------------------- */

/* Until when it would wait without moves: the begin of its reservation. INT64_MAX = it has none, or others would be evicted for it. */
static int64_t waits_until_ms(const struct pass *pass, uint32_t job)
{
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		if (pass->reservations[i].job == job && !pass->reservations[i].evicts)
			return pass->reservations[i].start_ms;
	return INT64_MAX;
}

/*
 * What may be lost at most so that it fits, in GPU-ms: for each of its GPUs as much as the policy says, and never more than the time
 * that they would be of use earlier.
 */
static int64_t cost_most(const struct pass *pass, const struct job *job, uint32_t id)
{
	int64_t until_ms = waits_until_ms(pass, id),
		each_ms = pass->facts->policy.defragment_work_ms;
	const struct shape *shape = shape_get(pass->facts, job->shape);

	if (until_ms != INT64_MAX && until_ms - pass->facts->now_ms < each_ms)
		each_ms = until_ms - pass->facts->now_ms;
	return share_gpu_ms(shape_share(&pass->view->space, shape, shape->tasks_min), each_ms);
}

/* --- carrying it out --------------------------------------------------------------------------------------------- */

static struct event_promise_made *promise_emit(struct pass *pass, uint32_t job,
					       const struct placement *place)
{
	struct place_lists lists = place_lists(pass, place);
	struct event_promise_made *e = &pass_emit(pass, EVENT_PROMISE_MADE)->promise_made;

	e->job = job;
	PLACE_WRITE(e, &lists);
	return e;
}

/* The waiting job counts on those that move. One that moves for nobody in particular counts on itself. */
static void plan_carry_out(struct pass *pass, const struct movers *movers, const struct plan *plan)
{
	int64_t *jobs = arena_new_array(pass->arena, int64_t, plan->count),
		*attempts = arena_new_array(pass->arena, int64_t, plan->count);
	struct event_moves_planned *planned;

	for (uint32_t i = 0; i < plan->count; i++) {
		const struct mover *m = &movers->list[plan->moves[i]];

		jobs[i] = m->job;
		attempts[i] = job_get(pass->facts, (struct job_id){ m->job })->attempt.v;
	}
	if (plan->for_job) {
		struct event_promise_made *e = promise_emit(pass, plan->for_job, &plan->place);

		e->victims = attempts;
		e->victims_count = plan->count;
	}
	for (uint32_t i = 0; i < plan->count; i++) {
		struct event_promise_made *e = promise_emit(pass, (uint32_t)jobs[i], &plan->to[i]);
		uint32_t after = plan->after ? plan->after[i] : 0;

		e->victims = &attempts[i];
		e->victims_count = plan->for_job == 0;
		if (!after)
			continue;
		for (uint32_t k = 0; k < plan->count; k++)
			if (plan->moves[k] + 1 == after)
				e->victims = &attempts[k];
		e->victims_count = 1;
	}
	for (uint32_t i = 0; i < plan->count; i++)
		lifecycle_move(pass, (uint32_t)jobs[i],
			       plan->for_job ? plan->for_job : (uint32_t)jobs[i]);
	planned = &pass_emit(pass, EVENT_MOVES_PLANNED)->moves_planned;
	planned->for_job = plan->for_job;
	planned->jobs = jobs;
	planned->jobs_count = plan->count;
	planned->lost_gpu_ms = plan->cost;
	planned->gained_share = plan->gained;
	pass->changes++;
	pass->more = true;
}

/* --- the look ---------------------------------------------------------------------------------------------------- */

/* The space is as it was when the job had its turn: what is kept from it, and reserved for those before it. */
static bool stuck_find(struct pass *pass, const struct movers *movers, const struct stuck *stuck,
		       struct plan *ret)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ stuck->job });
	const struct shape *shape = shape_get(pass->facts, job->shape);

	pass->closed = stuck->closed;
	reserve_layer_before(pass, stuck->turn);
	blocks_for(pass, job, job_leaves_ms(pass->facts, job));
	if (!clear_find(pass, movers, stuck, moves_left(pass->facts),
			cost_most(pass, job, stuck->job), ret))
		return false;
	ret->gained = shape_share(&pass->view->space, shape, shape->tasks_min);
	return true;
}

static int64_t stuck_cost_most(const struct pass *pass)
{
	int64_t most = 0;

	for (uint32_t i = 0; i < pass->stuck_count; i++) {
		const struct job *job = job_get(pass->facts, (struct job_id){ pass->stuck[i].job });
		int64_t cost = cost_most(pass, job, pass->stuck[i].job);

		most = cost > most ? cost : most;
	}
	return most;
}

/* Nothing came of the look: it is noted, with the time from which on another may find more. */
static void look_note(struct pass *pass, const struct movers *movers)
{
	const struct moves *m = &pass->facts->moves;
	int64_t again_ms = moves_left(pass->facts) ? movers->again_ms : m->hour_ms + MOVES_HOUR_MS;

	pass_emit(pass, EVENT_MOVES_PLANNED)->moves_planned.again_ms = again_ms;
	pass->more = pass->more || pass->look_awaited;
	if (again_ms > 0)
		again_wake(pass, again_ms, pass->facts->now_ms);
}

/* Also when nobody waits for it. */
static bool looks_always(const struct facts *f)
{
	return f->policy.defragment == DEFRAGMENT_ALWAYS || f->moves.asked;
}

static bool plan_find(struct pass *pass, const struct movers *movers, struct plan *ret)
{
	if (!movers->count)
		return false;
	for (uint32_t i = 0; i < pass->stuck_count; i++)
		if (stuck_find(pass, movers, &pass->stuck[i], ret))
			return true;
	if (!looks_always(pass->facts))
		return false;
	pass->closed = 0;
	reserve_layer_before(pass, UINT32_MAX);
	blocks_none(pass);
	if (!moves_left(pass->facts))
		return false;
	return together_find(pass, movers, moves_left(pass->facts), ret) ||
	       faster_find(pass, movers, ret);
}

static void look(struct pass *pass)
{
	int64_t most = stuck_cost_most(pass);
	struct movers movers;
	struct plan plan = { 0 };

	if (looks_always(pass->facts))
		most = INT64_MAX;
	movers_make(pass, most, &movers);
	if (plan_find(pass, &movers, &plan))
		plan_carry_out(pass, &movers, &plan);
	else
		look_note(pass, &movers);
}

void rearrange_run(struct pass *pass)
{
	const struct facts *f = pass->facts;

	if (pass->watch || (!pass->stuck_count && !looks_always(f)) ||
	    (f->policy.defragment == DEFRAGMENT_OFF && !f->moves.asked))
		return;
	if (!moves_are_due(f)) {
		look_wake(pass);
		return;
	}
	if (pass->changes || pass->more) /* when all has come to rest */
		pass->more = true;
	else
		look(pass);
	pass->more = pass->more || pass->spares_wait;
}
