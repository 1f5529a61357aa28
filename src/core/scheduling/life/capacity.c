/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/life/capacity.h"

#include <string.h>

#include "core/scheduling/life/spot.h"

enum {
	LOOK_MS = 60000, /* how much too late a look may come: the rule keeps so much more */
	LOOK_MOST_MS = 600000, /* from one look to the next, as the pool learns */
	RESTART_MS = 60000, /* of a job that does not say what a restart costs */
	LOSE_MS = 1800000 /* and how often it saves */
};

/* --- what the rule asks ------------------------------------------------------------------------------------ */

static bool accepts(const struct shape *shape, struct name_id model)
{
	for (uint32_t i = 0; i < SHAPE_MODELS_MAX && shape->models[i].v; i++)
		if (name_same(shape->models[i], model))
			return true;
	return !shape->models[0].v;
}

static struct spot_pool known_of(const struct pool *pool)
{
	return (struct spot_pool){ pool->there_ms, pool->away_ms, pool->there, pool->away };
}

/* Thousandths of the time in which it is there. */
static int64_t there_part(const struct pool *pool)
{
	const struct spot_pool known = known_of(pool);
	int64_t there_ms = spot_pool_mean(&known, true);

	return 1000 * there_ms / (there_ms + spot_pool_mean(&known, false));
}

static int names_compare(const struct facts *facts, struct name_id a, struct name_id b)
{
	return strcmp(facts_name(facts, a), facts_name(facts, b));
}

/* Which is there longer; among equals names say it, and not which of them was seen first. */
static bool pool_is_better(const struct facts *facts, const struct pool *a, const struct pool *b)
{
	int64_t part_a = there_part(a), part_b = there_part(b);
	int order = names_compare(facts, a->model, b->model);

	if (part_a != part_b)
		return part_a > part_b;
	return (order ? order : names_compare(facts, a->place, b->place)) < 0;
}

static const struct pool *pool_for(const struct facts *facts, const struct shape *shape)
{
	const struct pool *best = NULL;

	for (uint32_t row = 1; row <= facts->pools.count; row++) {
		const struct pool *pool = table_get(&facts->pools, row);

		if (accepts(shape, pool->model) && (!best || pool_is_better(facts, pool, best)))
			best = pool;
	}
	return best;
}

/* Where nobody says what nodes cost, spot is taken to cost a third. */
static void prices_read(const struct facts *facts, const struct pool *pool, struct spot_task *t)
{
	t->demand_micro = model_price(facts, pool->model);
	t->spot_micro = spot_price(facts, pool->model);
	if (!t->demand_micro)
		t->demand_micro = 3;
	if (!t->spot_micro)
		t->spot_micro = t->demand_micro / 3;
}

/* Each attempt but the first began with a restart, which counts as run time and is no work; a limit counts it too. */
static int64_t restarts_ms(const struct job *job, uint32_t attempts, int64_t restart_ms)
{
	return job->limit_ms || attempts < 2 ? 0 : (int64_t)(attempts - 1) * restart_ms;
}

static void task_read(const struct facts *facts, const struct job *job, const struct pool *pool,
		      struct spot_task *ret)
{
	const struct body *body = table_get(&facts->bodies, job->body);

	*ret = (struct spot_task){
		.at = SPOT_WAITS,
		.there = pool->nodes_there > 0,
		.left_ms = body->deadline_ms - facts->now_ms,
		.work_ms = job_expected_ms(facts, job),
		.restart_ms = job->restart_cost_ms ? job->restart_cost_ms : RESTART_MS,
		.lose_ms = job->checkpoint_every_ms ? job->checkpoint_every_ms : LOSE_MS,
		.look_ms = LOOK_MS
	};
	ret->work_ms += restarts_ms(job, job->attempts, ret->restart_ms);
	ret->since_ms = ret->there ? facts->now_ms - pool->turned_ms : 0;
	prices_read(facts, pool, ret);
}

/* --- who waits --------------------------------------------------------------------------------------------- */

/* Nodes that are paid for by the hour whatever happens, and would do otherwise. */
static bool has_on_demand(const struct pass *pass, const struct shape *shape)
{
	const struct space *space = &pass->view->space;
	struct shape lasting = *shape;

	lasting.capacity = 0;
	for (uint32_t i = 0; i < space->traits_count; i++)
		if (traits_suit(&space->traits.at[i], &lasting))
			return true;
	return false;
}

/* Sets what the job uses until then (0 = until something happens: time alone changes nothing), and the time that it can still lose. */
static enum capacity waiting_choice(struct pass *pass, const struct job *job,
				    const struct shape *shape, const struct pool *pool,
				    int64_t *ret_until_ms, int64_t *ret_spare_ms)
{
	const struct spot_pool known = known_of(pool);
	struct spot_task t;
	int64_t next_ms;
	enum capacity chosen = CAPACITY_ANY;

	task_read(pass->facts, job, pool, &t);
	*ret_spare_ms = spot_spare(&t);
	t.there = false;
	next_ms = *ret_spare_ms - spot_reserve(&t, &known);
	if (!has_on_demand(pass, shape) || t.left_ms < t.work_ms ||
	    t.spot_micro >= t.demand_micro) { /* nothing else there, or nothing to lose any more */
		*ret_until_ms = 0;
		return chosen;
	}
	if (spot_choose(&t, &known) == SPOT_WAITS) {
		chosen = CAPACITY_SPOT;
	} else {
		t.there = true;
		next_ms = *ret_spare_ms - t.restart_ms;
		if (spot_choose(&t, &known) != SPOT_ON_SPOT)
			chosen = CAPACITY_ON_DEMAND;
	}
	next_ms = next_ms < LOOK_MS ? LOOK_MS : next_ms;
	*ret_until_ms = pass->facts->now_ms + (next_ms < LOOK_MOST_MS ? next_ms : LOOK_MOST_MS);
	return chosen;
}

static void waiting_look(struct pass *pass, uint32_t id, const struct job *job)
{
	const struct shape *shape = shape_get(pass->facts, job->shape);
	const struct pool *pool = pool_for(pass->facts, shape);
	enum capacity chosen = CAPACITY_ANY;
	int64_t until_ms = 0, spare_ms = 0;
	struct event_capacity_chosen *e;

	if (pool)
		chosen = waiting_choice(pass, job, shape, pool, &until_ms, &spare_ms);
	pass_wake(pass, until_ms);
	if (shape->capacity == (chosen == CAPACITY_ON_DEMAND ? 0 : (uint32_t)chosen))
		return;
	if (facts_reservation(pass->facts, (struct job_id){ id })) /* it may be on the other kind */
		pass_emit(pass, EVENT_RESERVATION_DROPPED)->reservation_dropped.job = id;
	e = &pass_emit(pass, EVENT_CAPACITY_CHOSEN)->capacity_chosen;
	e->job = id;
	e->capacity = chosen;
	e->until_ms = until_ms;
	e->spare_ms = spare_ms;
}

void capacity_due(struct pass *pass)
{
	struct sorted_walk walk;

	if (!pass->facts->pools.count || pass->watch)
		return;
	for (bool any = sorted_begin(&pass->view->pool, pass->view->chooses, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(pass->facts, (struct job_id){ walk.id });

		if (pass_is_spent(pass))
			return;
		if (!job_is_waiting(job) || job->promise)
			continue;
		waiting_look(pass, walk.id, job);
		pass->work++;
	}
}

int64_t capacity_waits_until_ms(const struct facts *facts, const struct job *job)
{
	const struct shape *shape = shape_get(facts, job->shape);
	const struct pool *pool = pool_for(facts, shape);
	struct spot_pool known;
	struct spot_task t;
	int64_t more_ms;

	if (!pool || shape->capacity != CAPACITY_SPOT || !job_is_waiting(job) ||
	    !job_chooses_capacity(facts, job))
		return 0;
	known = known_of(pool);
	task_read(facts, job, pool, &t);
	more_ms = spot_spare(&t) - spot_reserve(&t, &known);
	return facts->now_ms + (more_ms > 0 ? more_ms : 1);
}

/* --- who runs on demand ------------------------------------------------------------------------------------- */

static bool runs_on_demand(const struct facts *facts, const struct attempt *attempt)
{
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);

		if (task_holds(task) && node_get(facts, task->node)->capacity == CAPACITY_SPOT)
			return false;
	}
	return true;
}

static bool may_move(const struct facts *facts, const struct job *job)
{
	const struct attempt *attempt;

	if (!job->attempt.v || job->promise || job->cancel_asked || job->held ||
	    shape_get(facts, job->shape)->capacity != CAPACITY_ANY)
		return false;
	attempt = attempt_get(facts, job->attempt);
	return attempt->state == ATTEMPT_ACTIVE && !attempt->warned_ms && !attempt->unreachable &&
	       !attempt->exited && !attempt->leaving && !attempt->lacks_ms &&
	       attempt->started == attempt->tasks && runs_on_demand(facts, attempt);
}

/* Does the rule want it on spot nodes? What it did since its newest checkpoint counts as not done. */
static bool wants_spot(struct pass *pass, const struct job *job)
{
	const struct facts *facts = pass->facts;
	const struct attempt *attempt = attempt_get(facts, job->attempt);
	const struct pool *pool = pool_for(facts, shape_get(facts, job->shape));
	int64_t saved_ms = attempt_saved_ms(facts, job, attempt),
		ran_ms = facts->now_ms - attempt->released_ms;
	struct spot_pool known;
	struct spot_task t;

	if (!pool || !pool->nodes_there)
		return false;
	known = known_of(pool);
	task_read(facts, job, pool, &t);
	t.at = SPOT_ON_DEMAND;
	t.pending_ms = ran_ms < t.restart_ms ? t.restart_ms - ran_ms : 0;
	if (saved_ms > attempt->released_ms)
		t.work_ms -= saved_ms - attempt->released_ms;
	else /* its restart is in pending_ms, or comes again */
		t.work_ms += restarts_ms(job, job->attempts - 1, t.restart_ms) -
			     restarts_ms(job, job->attempts, t.restart_ms);
	pass_wake(pass, facts->now_ms + LOOK_MOST_MS);
	return spot_choose(&t, &known) == SPOT_ON_SPOT;
}

static bool spot_place(struct pass *pass, uint32_t id, const struct job *job, struct placement *ret)
{
	struct shape *shape = arena_new(pass->arena, struct shape);
	struct place_request request;

	*shape = *shape_get(pass->facts, job->shape);
	shape->capacity = CAPACITY_SPOT;
	request = pass_request(pass, shape, attempt_width(attempt_get(pass->facts, job->attempt)));
	request.home = pass_home(pass, id);
	return place_find(&pass->view->space, &request, pass->arena, ret, NULL) == 0;
}

static void spot_move(struct pass *pass, uint32_t id, const struct job *job,
		      const struct placement *place)
{
	struct place_lists lists = place_lists(pass, place);
	struct event_promise_made *e = &pass_emit(pass, EVENT_PROMISE_MADE)->promise_made;
	int64_t *victim = arena_new(pass->arena, int64_t);

	*victim = job->attempt.v;
	e->job = id;
	PLACE_WRITE(e, &lists);
	e->victims = victim;
	e->victims_count = 1;
	lifecycle_move(pass, id, id);
	pass->changes++;
	pass->more = true;
}

void capacity_return(struct pass *pass)
{
	struct sorted_walk walk;
	bool kept = false;

	if (!pass->facts->pools.count || pass->watch || pass->changes || pass->more)
		return;
	for (bool any = sorted_begin(&pass->view->pool, pass->view->chooses, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(pass->facts, (struct job_id){ walk.id });
		struct placement place;

		if (!may_move(pass->facts, job) || !wants_spot(pass, job))
			continue;
		if (!kept) { /* what is reserved stays free */
			pass->closed = 0;
			reserve_layer_before(pass, UINT32_MAX);
			blocks_none(pass);
			kept = true;
		}
		if (!spot_place(pass, walk.id, job, &place))
			continue;
		spot_move(pass, walk.id, job, &place);
		return;
	}
}
