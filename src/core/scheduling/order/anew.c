/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing anew. Jobs of one pass are placed one after the other, each as well as the free GPUs allow; none knows what the next will
 * need. When one then finds no place though enough GPUs are free, those that this pass started are placed once more, with the blocked
 * job first. No start has left the pass yet, so nothing is moved that runs.
 *
 *	n0 has 2 A100, n1 has 2 H100. `first` takes any GPU: n0, by name. `second` needs two A100.
 *	anew: `second` on n0, `first` on n1
 *
 * It is adopted only when each of them has a place again, as wide as before; else all is as it was. A job that finds none is put in
 * front and all is tried once more, so the pickiest come first in the end:
 *
 *	blocked w; started a, b, c.	w a b: b finds none.	b w a c: all have a place
 *
 * Where no order helps, because each lies as tightly as it can and so takes what the other needs, one of those before the job that found
 * none leaves out a node on which it lay, each in turn:
 *
 *	free: n0 6, n1 6, n2 7. a wants 2 x 4, w 3 x 3. a on n0, n1: w finds 2 places. w on n0, n1: a finds one.
 *	a without n0: n1 and n2, and w lies on n0 and n2
 *
 * What a job has gained by its place it keeps: it goes to no model that costs it more, and where the fabric is described to no wider
 * level. Where queues have limits or guarantees by model, it keeps its model, so that every count stays as it was. As near as before to
 * where it ran and to its data it lies where that can be had: first so, and only when not all find a place, without. These are
 * preferences, and nobody waits for one.
 *
 * Costs: at most ANEW_STEPS searches for a place for each start of the pass, ANEW_STEPS_MAX in all, and only the last ANEW_JOBS starts
 * are moved. Rejected: to keep the places free that waiting jobs might want, which leaves GPUs idle for jobs that never come.
 */
#include "core/scheduling/order/anew.h"

#include <string.h>

#include "base/check.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/queues/window.h"

enum { ANEW_JOBS = 32, ANEW_STEPS = 8, ANEW_STEPS_MAX = 256, ANEW_TRIES = 8 };

struct started {
	uint32_t job;
	uint32_t event; /* index in the decisions */
	struct placement place;
};

struct starts {
	struct started last[ANEW_JOBS]; /* a ring */
	uint32_t count; /* that were ever noted */
	uint32_t steps; /* searches so far */
};

/* A job that gets a place: the blocked one, or one that was started. */
struct mover {
	uint32_t job, tasks;
	const struct shape *shape;
	struct started *started; /* NULL = it is the blocked one */
	struct name_id model; /* that it keeps; 0 = any */
	uint64_t closed; /* classes of nodes that its queue may not use */
	uint32_t left_out; /* 1 + rank of a node; 0 = none */
	struct placement place; /* new */
};

struct anew {
	struct pass *pass;
	struct mover movers[ANEW_JOBS + 1]; /* in the order in which they are tried */
	uint32_t count;
	bool near; /* whoever lies near its data, or where it ran, goes on doing so */
};

void anew_note(struct pass *pass, uint32_t job, const struct placement *place)
{
	struct starts *starts = pass->anew;

	if (!starts)
		starts = pass->anew = arena_new(pass->arena, struct starts);
	starts->last[starts->count++ % ANEW_JOBS] =
		(struct started){ .job = job, .event = pass->count - 1, .place = *place };
}

/* --- who may be moved ------------------------------------------------------------------------------------ */

static bool is_waited_for(const struct pass *pass, uint32_t job)
{
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		if (pass->reservations[i].waits_for == job)
			return true;
	return false;
}

/* The model of all its GPUs; 0 = of several. */
static struct name_id place_model(const struct pass *pass, const struct placement *place)
{
	struct name_id model = { 0 };

	for (uint32_t i = 0; i < place->count; i++) {
		const struct place_node *node = space_at(&pass->view->space, place->ranks[i]);
		struct name_id here = pass->view->space.traits.at[node->traits].model;

		if (i && !name_same(here, model))
			return (struct name_id){ 0 };
		model = here;
	}
	return model;
}

/* Adds a start when it may be moved. */
static void mover_add(struct anew *anew, struct started *started)
{
	struct pass *pass = anew->pass;
	const struct job *job = job_get(pass->facts, (struct job_id){ started->job });
	struct mover *mover = &anew->movers[anew->count];

	if (is_waited_for(pass, started->job) || pass_avoids(pass, job) ||
	    shape_is_marked(shape_get(pass->facts, job->shape)))
		return;
	*mover = (struct mover){ .job = started->job,
				 .tasks = started->place.count,
				 .shape = shape_get(pass->facts, job->shape),
				 .started = started };
	if (pass->pledges || !pass->plain[job->queue.v]) {
		mover->model = place_model(pass, &started->place);
		if (!mover->model.v && mover->shape->gpus)
			return;
	}
	anew->count++;
}

/* Are there enough GPUs, were all that may be moved elsewhere? */
static bool is_worth_it(const struct anew *anew, int64_t need)
{
	const struct mover *blocked = &anew->movers[0];
	const struct space *space = &anew->pass->view->space;
	uint64_t classes;
	int64_t open;

	if (anew->count == 1 || space_free_share(space, 0, UINT64_MAX) < need)
		return false;
	space_classes_of(space, blocked->shape, &classes);
	classes &= ~blocked->closed;
	open = space_free_share(space, 0, classes);
	for (uint32_t i = 1; i < anew->count && open < need; i++) {
		const struct placement *place = &anew->movers[i].started->place;

		for (uint32_t k = 0; k < place->count; k++)
			if (classes >> space_at(space, place->ranks[k])->class & 1)
				open += place->parts
						? place->parts[k]
						: (int64_t)bits_count(place->masks[k]) * GPU_SHARE;
	}
	return open >= need;
}

/* --- placing them ------------------------------------------------------------------------------------------ */

/* The space as it is for the job: what is reserved or announced after its end is not in its way. */
static void space_for(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	int64_t end_ms = job_leaves_ms(pass->facts, job);

	reserve_layer(pass, job->tier == TIER_BEST_EFFORT ? 0 : end_ms, job->limit_ms > 0);
	blocks_for(pass, job, end_ms);
}

static bool keeps_its_gain(const struct pass *pass, const struct mover *mover)
{
	const struct space *space = &pass->view->space;
	const struct placement *was = &mover->started->place, *now = &mover->place;

	return placement_share(now, mover->shape) == placement_share(was, mover->shape) &&
	       (!space_fabric(space) || now->level >= was->level) &&
	       !place_is_dearer(space, mover->shape, now, was);
}

static bool keeps_near(struct pass *pass, const struct mover *mover)
{
	struct nearness was = pass_near(pass, mover->job, mover->shape, &mover->started->place),
			now = pass_near(pass, mover->job, mover->shape, &mover->place);

	return now.home >= was.home && now.data >= was.data;
}

static const uint64_t *left_out(const struct pass *pass, const struct mover *mover)
{
	uint64_t *bits;

	if (!mover->left_out)
		return NULL;
	bits = arena_new_array(pass->arena, uint64_t, bits_row(pass->view->space.node_count));
	bits[(mover->left_out - 1) / 64] = UINT64_C(1) << (mover->left_out - 1) % 64;
	return bits;
}

static bool mover_place(struct anew *anew, struct mover *mover)
{
	struct pass *pass = anew->pass;
	struct place_request request = pass_request(pass, mover->shape, mover->tasks);

	space_for(pass, mover->job);
	pass->anew->steps++;
	pass->work++;
	request.closed = mover->closed;
	request.model = mover->model;
	request.barred = left_out(pass, mover);
	request.home = pass_home(pass, mover->job);
	if (place_find(&pass->view->space, &request, pass->arena, &mover->place, NULL) != 0 ||
	    (mover->started && !keeps_its_gain(pass, mover)) ||
	    (mover->started && anew->near && !keeps_near(pass, mover)))
		return false;
	placement_take(&pass->view->space, &mover->place, mover->shape);
	return true;
}

/* All in their order; else none, and which of them found no place. */
static uint32_t movers_place(struct anew *anew)
{
	for (uint32_t i = 0; i < anew->count; i++) {
		if (mover_place(anew, &anew->movers[i]))
			continue;
		for (uint32_t k = i; k-- > 0;)
			placement_give(&anew->pass->view->space, &anew->movers[k].place,
				       anew->movers[k].shape);
		return i;
	}
	return anew->count;
}

static void mover_to_front(struct anew *anew, uint32_t at)
{
	struct mover first = anew->movers[at];

	memmove(&anew->movers[1], &anew->movers[0], at * sizeof(first));
	anew->movers[0] = first;
}

static bool any_is_near(const struct anew *anew)
{
	for (uint32_t i = 0; i < anew->count; i++) {
		const struct mover *mover = &anew->movers[i];
		struct nearness was;

		if (!mover->started)
			continue;
		was = pass_near(anew->pass, mover->job, mover->shape, &mover->started->place);
		if (was.home || was.data)
			return true;
	}
	return false;
}

/* One of those before the job that found none leaves out a node on which it lay: each of them, each of its nodes. */
static bool movers_leave_out(struct anew *anew, uint32_t failed, uint32_t most)
{
	for (uint32_t k = 0; k < failed; k++) {
		struct mover *mover = &anew->movers[k];
		struct placement lay = mover->place;
		bool found = false;

		for (uint32_t i = 0; i < lay.count && !found; i++) {
			if (lay.count < 2 || (i && lay.ranks[i] == lay.ranks[i - 1]))
				continue;
			if (anew->pass->anew->steps + anew->count > most)
				return false;
			mover->left_out = lay.ranks[i] + 1;
			found = movers_place(anew) == anew->count;
			mover->left_out = 0;
		}
		if (found)
			return true;
		mover->place = lay;
	}
	return false;
}

/* Two that go before each other by turns: the next order would be the one before. */
static bool is_a_circle(uint32_t failed, uint32_t before)
{
	return failed == 1 && before == 1;
}

static bool movers_find(struct anew *anew, uint32_t most)
{
	uint32_t before = 0;

	for (uint32_t tries = 0; tries < ANEW_TRIES; tries++) {
		uint32_t failed;

		if (anew->pass->anew->steps + anew->count > most)
			return false;
		failed = movers_place(anew);
		if (failed == anew->count)
			return true;
		if (!failed) /* not even alone */
			return false;
		if (is_a_circle(failed, before) || tries + 1 == ANEW_TRIES)
			return movers_leave_out(anew, failed, most);
		before = failed;
		mover_to_front(anew, failed);
	}
	return false;
}

/* --- the whole --------------------------------------------------------------------------------------------- */

static void movers_adopt(struct anew *anew, struct placement *ret)
{
	for (uint32_t i = 0; i < anew->count; i++) {
		struct mover *mover = &anew->movers[i];

		if (!mover->started) {
			*ret = mover->place;
			placement_give(&anew->pass->view->space, &mover->place, mover->shape);
			continue;
		}
		pass_start_move(anew->pass, mover->started->event, &mover->started->place,
				&mover->place);
		mover->started->place = mover->place;
	}
}

/* The first place that fits need not be the old one, so each goes back to its own. */
static void movers_put_back(struct anew *anew)
{
	for (uint32_t i = 0; i < anew->count; i++)
		if (anew->movers[i].started)
			placement_take(&anew->pass->view->space, &anew->movers[i].started->place,
				       anew->movers[i].shape);
}

static uint32_t steps_most(const struct starts *starts)
{
	return starts->count < ANEW_STEPS_MAX / ANEW_STEPS ? starts->count * ANEW_STEPS
							   : ANEW_STEPS_MAX;
}

bool anew_may_help(const struct pass *pass)
{
	return pass->anew && pass->anew->steps < steps_most(pass->anew);
}

bool anew_place(struct pass *pass, uint32_t job, const struct shape *shape, int64_t need,
		struct placement *ret)
{
	struct starts *starts = pass->anew;
	struct anew anew;
	uint32_t first;
	bool found = false;

	if (!anew_may_help(pass) || shape_is_marked(shape) || (!shape->gpus && !shape->role_count))
		return false;
	anew.pass = pass;
	anew.movers[0] = (struct mover){
		.job = job, .tasks = shape->tasks_min, .shape = shape, .closed = pass->closed
	};
	anew.count = 1;
	first = starts->count > ANEW_JOBS ? starts->count - ANEW_JOBS : 0;
	for (uint32_t i = first; i < starts->count; i++)
		mover_add(&anew, &starts->last[i % ANEW_JOBS]);
	if (!is_worth_it(&anew, need))
		return false;
	for (uint32_t i = 1; i < anew.count; i++)
		placement_give(&pass->view->space, &anew.movers[i].started->place,
			       anew.movers[i].shape);
	anew.near = any_is_near(&anew);
	if (anew.near) /* half of the steps are left for the case that it can't be had */
		found = movers_find(&anew, (starts->steps + steps_most(starts)) / 2);
	anew.near = false;
	found = found || movers_find(&anew, steps_most(starts));
	if (found)
		movers_adopt(&anew, ret);
	else
		movers_put_back(&anew);
	space_for(pass, job);
	return found;
}
