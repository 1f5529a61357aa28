/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who makes room. For a blocked job a set of running jobs is sought that lets it start when they are gone:
 *
 *	candidates	in order: places promised to lower ranks of its own queue; those that leave anyhow; best-effort;
 *			lower ranks of its own queue, equals whose turn is over and work of queues above their share, by
 *			cost (GPU-time lost since the last checkpoint, and the restart)
 *	units		where: single nodes for a job of one task, domains of the level it requires, else the cluster
 *	solve		in a unit, candidates are given back in order until the job fits (proved on the space itself), then
 *			each is taken back, the dearest first, and kept out of the set when the job fits all the same; and
 *			once more the other way: all are given back and the cheapest taken back first, which finds the one
 *			wide victim that is worth less than many small ones
 *	choose		the cheapest of the solutions of the first units that hold enough
 *
 * A search that finds nothing may look at all of the cluster, so a pass makes at most EVICT_SEARCHES_MAX of them, and none after
 * EVICT_STEPS_MAX candidates read, given back or asked for a place, but for a first one. It is cut
 * at the next one and says "more"; the jobs behind have their turn in the following passes. How many had theirs is a decision
 * like any other (SEARCHED, facts.searched), so that an index built anew goes on at the same job. Those who had their
 * turn are passed over until all had it; if something has happened meanwhile (facts.search_stale), another round begins then.
 * While nothing happens the order is the same in each pass, so everybody has exactly one turn. What happens may move some
 * past the mark: these have theirs in that other round. A pass that passes some over is woken when the first running job is
 * old enough to be evicted, as their searches would have asked.
 *
 * Critical jobs neither wait for the searches of others nor take theirs away: each of them searches in every pass, also behind the mark
 * and where the pass was cut before their turn (order.c), and is not counted. There are few, as they run inside guarantees alone; from the
 * 65th on that search in vain they are like the others.
 *
 * So every set is sufficient, and no part of it is (minimal). Worked example in README.md. Nothing is touched before
 * the set is proved. A set is refused when a victim's queue would be entitled to take the place back.
 */
#include "core/scheduling/evict/evict.h"

#include "core/scheduling/queues/window.h"

/* --- carrying it out --------------------------------------------------------------------------------------------------- */

static void promise_emit(struct hunt *hunt, const struct solution *solution)
{
	struct pass *pass = hunt->pass;
	struct place_lists lists = place_lists(pass, &solution->place);
	int64_t *victims = arena_new_array(pass->arena, int64_t, solution->count + 1);
	uint32_t count = 0;
	struct event_promise_made *e = &pass_emit(pass, EVENT_PROMISE_MADE)->promise_made;

	for (uint32_t i = 0; i < solution->count; i++)
		if (!candidate(hunt, solution->chosen[i])->promise &&
		    !candidate(hunt, solution->chosen[i])->leaver)
			victims[count++] =
				job_get(pass->facts,
					(struct job_id){
						candidate(hunt, solution->chosen[i])->job })
					->attempt.v;
	e->job = hunt->job;
	PLACE_WRITE(e, &lists);
	e->victims = victims;
	e->victims_count = count;
}

/* The lower job's promise goes; it waits again, and the next pass looks for another place for it. */
static void promise_take(struct hunt *hunt, const struct promise_view *p)
{
	struct pass *pass = hunt->pass;

	pass->promises_gone[p - pass->view->promises.at] = true;
	pass_emit(pass, EVENT_PROMISE_DROPPED)->promise_dropped.job = p->job;
	hunt_promise_move(hunt, p, true);
	coming_reopen(pass);
	standing_promise(&pass->standings, p->queue, p->tier, -p->share);
	beside_move(&pass->standings, p->queue, p->tier, beside_of_promise(pass->view, p), -1);
	bounds_promise(pass, p, -1);
	pledge_promise(pass, p, -1);
	spend_give(pass, job_get(pass->facts, (struct job_id){ p->job }));
	promise_hold(pass, p, false);
	pass->blocked = true;
	pass->more = true;
}

/* The ranks of one job that are to leave, told at once. Those told before (with the whole of it, say) are passed over. */
static void leavers_tell(struct hunt *hunt, const struct solution *solution, const struct victim *v)
{
	struct pass *pass = hunt->pass;
	uint32_t count = 0;
	int64_t *ranks;
	bool *goes;

	if (!v->leaver || v->surplus->told[v->leaver - 1])
		return;
	goes = arena_new_array(pass->arena, bool, v->attempt->tasks);
	ranks = arena_new_array(pass->arena, int64_t, v->attempt->tasks);
	for (uint32_t i = 0; i < solution->count; i++) {
		const struct victim *other = candidate(hunt, solution->chosen[i]);

		if (other->leaver && other->job == v->job)
			goes[other->leaver - 1] = true;
	}
	for (uint32_t rank = 0; rank < v->attempt->tasks; rank++) {
		goes[rank] = goes[rank] && !v->surplus->told[rank];
		if (!goes[rank])
			continue;
		v->surplus->told[rank] = true;
		ranks[count++] = rank;
	}
	lifecycle_shrink(pass, v->job, ranks, count, hunt->job);
	standing_leave(&pass->standings, v->queue, v->tier,
		       ranks_gpus(v->shape, ranks, count) * GPU_SHARE);
	beside_move(&pass->standings, v->queue, v->tier, victim_ranks_beside(pass, v, goes), -1);
	spend_leave(pass, v->job, ranks_gpus(v->shape, ranks, count) * GPU_SHARE);
	for (uint32_t i = 0; i < solution->count; i++) {
		const struct victim *other = candidate(hunt, solution->chosen[i]);

		if (other->leaver && other->job == v->job)
			pledge_attempt(pass, other, -1);
	}
}

/* With the rest of an elastic job its surplus goes too. */
static void surplus_goes(struct pass *pass, const struct victim *v)
{
	bool *goes = v->surplus ? arena_new_array(pass->arena, bool, v->attempt->tasks) : NULL;
	int64_t gpus = 0;

	if (!goes)
		return;
	for (uint32_t rank = 0; rank < v->attempt->tasks; rank++) {
		goes[rank] = v->surplus->is[rank] && !v->surplus->told[rank];
		gpus += goes[rank] ? shape_wish(v->shape, rank).gpus : 0;
		v->surplus->told[rank] = true;
	}
	beside_move(&pass->standings, v->queue, v->tier, victim_ranks_beside(pass, v, goes), -1);
	standing_leave(&pass->standings, v->queue, v->tier, gpus * GPU_SHARE);
	spend_leave(pass, v->job, gpus * GPU_SHARE);
}

static void place_beside(struct hunt *hunt, const struct placement *place)
{
	struct pass *pass = hunt->pass;

	for (uint32_t i = 0; i < place->count; i++)
		beside_move(&pass->standings, hunt->j->queue.v, hunt->j->tier,
			    beside_of_task(pass->view, place->ranks[i], hunt->shape,
					   place->which ? (uint32_t)place->which[i] : i),
			    1);
}

static void hunt_carry_out(struct hunt *hunt, const struct solution *solution)
{
	struct pass *pass = hunt->pass;

	for (uint32_t i = 0; i < solution->count; i++)
		if (candidate(hunt, solution->chosen[i])->promise)
			promise_take(hunt, candidate(hunt, solution->chosen[i])->promise);
	promise_emit(hunt, solution);
	pass->changes++;
	placement_promise(&pass->view->space, &solution->place, hunt->shape);
	standing_promise(&pass->standings, hunt->j->queue.v, hunt->j->tier,
			 placement_share(&solution->place, hunt->shape));
	place_beside(hunt, &solution->place);
	bounds_take(pass, hunt->j->queue.v, hunt->j->tier, hunt->shape, &solution->place);
	pledge_take(pass, hunt->j->queue.v, hunt->j->tier, hunt->shape, &solution->place);
	spend_take(pass, hunt->j, hunt->shape->tasks_min);
	for (uint32_t i = 0; i < solution->count; i++) {
		const struct victim *v = candidate(hunt, solution->chosen[i]);
		struct victim added;

		if (v->coming)
			coming_hold(pass, v->job, true);
		if (v->promise || v->coming || v->leaver)
			continue;
		surplus_goes(pass, v);
		lifecycle_evict(pass, v->job, hunt->job);
		victim_counts(pass, v, true);
		pass->leaving[v->job / 64] |= UINT64_C(1) << v->job % 64;
		added = *v;
		if (coming_has_surplus(pass, &added))
			coming_add(pass, added.job);
	}
	for (uint32_t i = 0; i < solution->count; i++)
		leavers_tell(hunt, solution, candidate(hunt, solution->chosen[i]));
}

/* --- what is known ------------------------------------------------------------------------------------------------------ */

static bool barren_holds(const struct pass *pass, const struct barren *b, uint64_t rank,
			 struct turn_wish turn, int64_t need, int64_t least)
{
	return b->known && b->changes == pass->changes && rank <= b->rank && need >= b->need &&
	       (!turn.work || (b->work && turn.work >= b->work && turn.due_ms >= b->due_ms)) &&
	       b->shares < least;
}

/* With so much more, is the queue within its guarantee, and are those above it? Its standard work then gets its GPUs together. */
static bool evict_may_claim(const struct pass *pass, uint32_t queue, int64_t need)
{
	return standing_guaranteed(&pass->standings, queue, 0, need);
}

/* Known from another job of the queue: lower ranks, larger needs, more work and who is due later find no more candidates. */
bool evict_is_barren(const struct pass *pass, uint32_t queue, uint64_t rank, struct turn_wish turn,
		     int64_t need, int64_t least)
{
	const struct barren *rows = pass->barren;

	if (!rows)
		return false;
	if (need && evict_may_claim(pass, queue, need) &&
	    !barren_holds(pass, &rows[BARREN_CLAIMS * pass->standings.count + queue], rank, turn,
			  need, least))
		return false;
	return barren_holds(
		pass, &rows[(need ? BARREN_ALL : BARREN_BARE) * pass->standings.count + queue],
		rank, turn, need, least);
}

bool hunt_is_barren(const struct hunt *hunt)
{
	const struct pass *pass = hunt->pass;

	return pass->barren && barren_holds(pass, &pass->barren[hunt_barren_at(hunt)], hunt->rank,
					    (struct turn_wish){ hunt->work, hunt->due_ms },
					    hunt->need, hunt->least);
}

void hunt_barren_note(struct hunt *hunt)
{
	struct pass *pass = hunt->pass;
	int64_t shares = hunt->count ? hunt->shares : -1;

	if (pass->blocks.set || pass->aparts.any)
		return; /* from others less may be kept */
	if (!pass->barren)
		pass->barren = arena_new_array(pass->arena, struct barren,
					       (size_t)BARREN_ROWS * pass->standings.count);
	pass->barren[hunt_barren_at(hunt)] = (struct barren){ .rank = hunt->rank,
							      .work = hunt->work,
							      .due_ms = hunt->due_ms,
							      .need = hunt->need,
							      .shares = shares,
							      .changes = pass->changes,
							      .known = true };
}

/* --- in time ---------------------------------------------------------------------------------------------------------------- */

/* When the last of them has left its place, at the latest. */
static int64_t solution_leaves_ms(const struct hunt *hunt, const struct solution *solution)
{
	const struct pass *pass = hunt->pass;
	int64_t last_ms = pass->facts->now_ms;

	for (uint32_t i = 0; i < solution->count; i++) {
		const struct victim *v = candidate(hunt, solution->chosen[i]);
		int64_t at_ms;

		if (v->promise)
			continue;
		at_ms = lifecycle_leaves_ms(pass, v->job);
		last_ms = at_ms > last_ms ? at_ms : last_ms;
	}
	return last_ms;
}

/* Maintenance or a reservation of others begins on a node of the place before a run that starts then is over. */
static bool solution_is_late(const struct hunt *hunt, const struct solution *solution,
			     int64_t from_ms)
{
	const struct pass *pass = hunt->pass;
	const struct placement *place = &solution->place;
	int64_t to_ms = from_ms + job_stays_ms(pass->facts, hunt->j, from_ms);
	uint32_t mask = 0;

	for (uint32_t i = 0; i < place->count; i++) {
		bool opens;

		if (!i || place->ranks[i] != place->ranks[i - 1])
			mask = blocks_of_node(pass, hunt->j, place->ranks[i], from_ms, to_ms,
					      &opens);
		if (mask == UINT32_MAX || mask & place->masks[i])
			return true;
	}
	return false;
}

/*
 * The place must serve when the victims have left it, not now: a node that is free of maintenance for the next hour serves no job of 55 minutes whose
 * victim has a grace of ten. Where the first solution comes too late for its place another one is sought, among the places that serve
 * from then on.
 */
static bool hunt_solve_in_time(struct hunt *hunt, struct solution *ret)
{
	struct pass *pass = hunt->pass;
	int64_t from_ms;
	bool solved;

	if (!hunt_solve(hunt, ret))
		return false;
	if (!blocks_exist(pass))
		return true;
	from_ms = solution_leaves_ms(hunt, ret);
	if (!solution_is_late(hunt, ret, from_ms))
		return true;
	blocks_for(pass, hunt->j, from_ms + job_stays_ms(pass->facts, hunt->j, from_ms));
	solved = hunt_solve(hunt, ret) &&
		 !solution_is_late(hunt, ret, solution_leaves_ms(hunt, ret));
	blocks_for(pass, hunt->j, job_leaves_ms(pass->facts, hunt->j));
	return solved;
}

/* --- the search --------------------------------------------------------------------------------------------------------- */

/* May the pass search once more? Else it is cut; one that only explains goes on without. */
static bool search_allowed(const struct hunt *hunt)
{
	struct pass *pass = hunt->pass;

	if (hunt->urgent ||
	    (pass->searches < EVICT_SEARCHES_MAX &&
	     (pass->steps < EVICT_STEPS_MAX || (!pass->searches && !pass->changes))))
		return true;
	pass->cut = !pass->watch;
	return false;
}

/* Another search for the same job, which finds its candidates itself. */
static struct hunt hunt_like(const struct hunt *first)
{
	return (struct hunt){ .pass = first->pass,
			      .job = first->job,
			      .j = first->j,
			      .shape = first->shape,
			      .rank = first->rank,
			      .work = first->work,
			      .due_ms = first->due_ms,
			      .need = first->need,
			      .least = first->least,
			      .beside = first->beside,
			      .cost = -1,
			      .urgent = first->urgent };
}

/* Once more, on the models that the job's queue is promised, from those who are not. */
static int pledged_for(struct pass *pass, const struct hunt *first)
{
	uint64_t classes, closed = pass->closed, open;
	struct solution solution;
	struct hunt hunt;
	int rc = EVICT_NO;

	open = first->room_short || pass->cut
		       ? 0
		       : pledge_open(pass, first->j->queue.v, first->shape, first->need) & ~closed;
	if (!open)
		return EVICT_NO;
	hunt = hunt_like(first);
	hunt.pledged = true;
	space_classes_of(&pass->view->space, first->shape, &classes);
	pass->closed |= classes & ~open;
	reserve_keep_from_eviction(pass);
	if (hunt_candidates(&hunt) && search_allowed(&hunt)) {
		hunt_scratch_make(&hunt);
		if (hunt_solve_in_time(&hunt, &solution)) {
			hunt_carry_out(&hunt, &solution);
			rc = 0;
		} else {
			pass->searches += !hunt.urgent;
		}
	}
	pass->closed = closed;
	return rc;
}

static int hunt_by_rights(struct hunt *hunt)
{
	struct pass *pass = hunt->pass;
	struct solution solution;

	if (hunt_is_barren(hunt) || !search_allowed(hunt))
		return EVICT_NO;
	reserve_keep_from_eviction(pass);
	if (!hunt_candidates(hunt)) {
		hunt_barren_note(hunt);
		return EVICT_NO;
	}
	hunt_scratch_make(hunt);
	if (!hunt_solve_in_time(hunt, &solution)) {
		pass->searches += !hunt->urgent;
		return EVICT_NO;
	}
	hunt_carry_out(hunt, &solution);
	return 0;
}

static int64_t waits_since_ms(const struct facts *f, const struct job *job)
{
	int64_t ended_ms = job->last_attempt.v ? attempt_get(f, job->last_attempt)->ended_ms : 0;

	return ended_ms > job->submitted_ms ? ended_ms : job->submitted_ms;
}

/*
 * Once more for standard work within its queue's guarantee, whose GPUs do not lie together: from work that runs beyond the guarantees of its
 * queues. Who can move does so first.
 */
static int claimed_for(struct pass *pass, const struct hunt *first)
{
	struct hunt hunt = hunt_like(first);

	if (first->room_short || pass->cut || first->j->tier != TIER_STANDARD || !first->need ||
	    !evict_may_claim(pass, first->j->queue.v, first->need))
		return EVICT_NO;
	(void)pass_shape(pass, first->j->shape);
	if (stuck_awaits_look(pass, first->j, pass->suits)) {
		pass->look_awaited = true;
		return EVICT_NO;
	}
	hunt.claims = true;
	hunt.patient_ms =
		waits_since_ms(pass->facts, first->j) + pass->facts->policy.min_runtime_ms;
	return hunt_by_rights(&hunt);
}

static int hunt_for(struct hunt *hunt)
{
	if (hunt_by_rights(hunt) == 0 || pledged_for(hunt->pass, hunt) == 0)
		return 0;
	return claimed_for(hunt->pass, hunt);
}

bool evict_is_urgent(struct pass *pass, bool critical)
{
	return critical && pass->urgent++ < EVICT_SEARCHES_MAX;
}

static int hunt_begin(struct hunt *hunt, enum evict_lack lack)
{
	struct pass *pass = hunt->pass;
	const struct job *j = hunt->j;

	if (j->tier == TIER_BEST_EFFORT)
		return EVICT_NO;
	/* Those that never evict are counted too: order.c counts buckets without looking at their jobs. */
	hunt->urgent = evict_is_urgent(pass, j->tier == TIER_CRITICAL);
	if (!hunt->urgent && pass->asked++ < pass->facts->searched && !pass->watch) {
		victims_passed_over(pass);
		return EVICT_NO;
	}
	if (!j->preempts)
		return EVICT_NO;
	hunt->need = shape_share(&pass->view->space, hunt->shape, hunt->shape->tasks_min);
	hunt->least = hunt->shape->gpu_part_mib ? hunt->shape->tasks_min : hunt->need;
	hunt->beside = shape_beside(hunt->shape);
	if (lack == LACKS_MONEY) {
		hunt->cost = job_cost_micro(pass->facts, pass->view, j);
		if (spend_covers(pass, j->queue.v, hunt->cost))
			return EVICT_NO; /* those that leave anyhow leave enough: it waits for that */
	}
	if (hunt_for(hunt) == EVICT_NO)
		return EVICT_NO;
	/* It does not wait any more. */
	if (hunt->urgent)
		pass->urgent--;
	else
		pass->asked--;
	return 0;
}

int evict_for(struct pass *pass, uint32_t job, enum evict_lack lack)
{
	const struct job *j = job_get(pass->facts, (struct job_id){ job });
	uint32_t work = turn_class(pass, j);
	struct hunt hunt = { .pass = pass,
			     .job = job,
			     .j = j,
			     .shape = shape_get(pass->facts, j->shape),
			     .rank = job_rank(j),
			     .work = work,
			     .due_ms = turn_due_ms(pass, j, work),
			     .room_short = lack != LACKS_PLACE,
			     .cost = -1 };
	int rc = hunt_begin(&hunt, lack);

	if (rc == EVICT_NO && lack == LACKS_PLACE && !pass->cut && j->tier != TIER_BEST_EFFORT)
		stuck_note(pass, job);
	return rc;
}
