/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running attempts whose ranks leave and come (core/model/apply_resize.c).
 *
 *	leave	a rank that was told to, or that was lost: when the others may go on without it, its place becomes free; of tasks that
 *		somebody else made, each that is over
 *	lack	a gang that has fewer ranks than its least width has the first claim on a place for the others, before
 *		anybody who waits; best-effort work makes room for them; after the policy's `rejoin` it is stopped whole
 *	grow	an elastic job whose ranks come and go freely takes GPUs that nobody waits for and nothing keeps
 *
 * A gang of 4 on 4 GPUs loses rank 1, and a job of one GPU waits: rank 1 leaves, and at the same instant it is given the
 * place again, before the job that waits. With its node gone and no other place, the three keep theirs for `rejoin`.
 */
#include "base/parse.h"
#include "core/scheduling/life/beside.h"
#include "core/scheduling/life/pause.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/queues/user_limit.h"

enum { SIGNAL_KILL = 9, GROW_LOOKS_MAX = 256, GROW_STEPS_MAX = 4096, GROW_ROUND_MS = 10000 };

/* --- leaving --------------------------------------------------------------------------------------------- */

/* Taken from it from outside: with its machine or shepherd, or killed; or the machine could not start one that came later. What
 * its program did itself ends the gang. */
static bool task_was_lost(const struct attempt *attempt, const struct task *task)
{
	if (attempt->generation && task->never_ran &&
	    (task->cause == CAUSE_START || task_lacked_something(task)))
		return true;
	return task->cause == CAUSE_LOST ||
	       (task->cause == CAUSE_SIGNAL && task->signal == SIGNAL_KILL);
}

/* One that was started anew and is lost again at once would go on so for ever. */
static bool task_is_lost_again(const struct pass *pass, const struct task *task)
{
	return task->launch && !(task->never_ran && task->cause == CAUSE_LOST) &&
	       pass->facts->now_ms - task->from_ms < pass->facts->policy.blackhole_window_ms;
}

/* Else nobody would go on: who was told to leave goes, and ranks that are coming begin where the attempt began, so that it ends and
 * goes on from its checkpoint. */
static bool any_rank_stays(const struct pass *pass, const struct attempt *attempt)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_at(pass, attempt, rank);

		if (task->state == TASK_RUNNING && !task->leaving)
			return true;
	}
	return false;
}

/* May the others go on without so many, of which some were lost again? */
static bool is_wide_without(const struct pass *pass, const struct attempt *attempt,
			    const struct shape *shape, uint32_t lost)
{
	uint32_t width[ROLES_MAX] = { 0 };

	if (!shape->role_count)
		return attempt_width(attempt) - attempt->leaving >= shape->tasks_min + lost;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_at(pass, attempt, rank);

		width[shape_role(shape, rank)] +=
			task_holds(task) && !task->leaving &&
			!(task->state == TASK_EXITED && task_has_failed(task));
	}
	for (uint32_t role = 0; role < shape->role_count; role++)
		if (width[role] < shape->role_min[role])
			return false;
	return true;
}

static bool may_lose(const struct pass *pass, const struct job *job, const struct attempt *attempt,
		     uint32_t lost, bool again)
{
	if (attempt->warned_ms || attempt->unreachable || !any_rank_stays(pass, attempt))
		return false;
	if (job_is_free(pass->facts, job) &&
	    is_wide_without(pass, attempt, shape_get(pass->facts, job->shape), lost))
		return true;
	return job->rejoins && !again;
}

/* Ranks to go on without, rising; 0 when there are none, or when the attempt has to end. */
static uint32_t ranks_gone(const struct pass *pass, const struct job *job,
			   const struct attempt *attempt, int64_t *ret, bool *ret_lost)
{
	uint32_t count = 0, lost = 0;
	bool again = false;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_at(pass, attempt, rank);

		if (task->state != TASK_EXITED || (!task->leaving && !task_has_failed(task)))
			continue;
		if (!task->leaving && !task_was_lost(attempt, task))
			return 0;
		lost += !task->leaving;
		again = again || (!task->leaving && task_is_lost_again(pass, task));
		ret[count++] = rank;
	}
	*ret_lost = lost > 0;
	return lost && !may_lose(pass, job, attempt, lost, again) ? 0 : count;
}

/* Tasks that somebody else made: each that has run and is over leaves, however it ended. One that could not begin ends the gang, for it was
 * to start whole. */
static uint32_t ranks_gone_external(const struct pass *pass, const struct attempt *attempt,
				    int64_t *ret, bool *ret_lost)
{
	uint32_t count = 0;

	*ret_lost = false;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_at(pass, attempt, rank);

		if (task->state != TASK_EXITED)
			continue;
		if (task_has_failed(task) && task->never_ran)
			return 0;
		*ret_lost = *ret_lost || task_has_failed(task);
		ret[count++] = rank;
	}
	return count;
}

bool resize_left(struct pass *pass, const struct job *job, const struct attempt *attempt)
{
	const struct shape *shape = shape_get(pass->facts, job->shape);
	int64_t *ranks;
	struct event_ranks_left *e;
	uint32_t count;
	bool lost;

	if (attempt->state != ATTEMPT_ACTIVE || attempt->parts_share)
		return false;
	ranks = arena_new_array(pass->arena, int64_t, attempt->tasks);
	count = job->external ? ranks_gone_external(pass, attempt, ranks, &lost)
			      : ranks_gone(pass, job, attempt, ranks, &lost);
	if (!count)
		return false;
	e = &pass_emit(pass, EVENT_RANKS_LEFT)->ranks_left;
	e->attempt = job->attempt.v;
	e->ranks = ranks;
	e->ranks_count = count;
	for (uint32_t i = 0; i < count; i++)
		e->used_gpu_ms +=
			shape_wish(shape, (uint32_t)ranks[i]).gpus *
			(pass->facts->now_ms - task_at(pass, attempt, (uint32_t)ranks[i])->from_ms);
	e->text = lost ? failure_text(pass, attempt) : "";
	spend_charge(pass, job, ranks, count,
		     &(struct charge){ &e->charged, &e->charged_count, &e->charged_micro,
				       &e->charged_micro_count });
	return true;
}

bool ranks_leave_alone(struct pass *pass, const struct job *job, const struct attempt *attempt)
{
	const struct facts *facts = pass->facts;
	uint32_t count = 0, stay = 0;
	int64_t *ranks;

	if (!job->external || !attempt->least || attempt->state != ATTEMPT_ACTIVE ||
	    attempt->started < attempt->tasks || attempt->parts_share ||
	    attempt_leave_why(pass, attempt) == STOP_WINDOW)
		return false;
	ranks = arena_new_array(pass->arena, int64_t, attempt->tasks);
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_at(pass, attempt, rank);
		int64_t tell_ms = task_drain_ms(facts, job, attempt, task);

		if (tell_ms && tell_ms <= facts->now_ms)
			ranks[count++] = rank;
		else
			stay += task->state < TASK_EXITED && !task->leaving;
	}
	if (!count || stay < attempt->least)
		return false;
	lifecycle_shrink(pass, attempt->job.v, ranks, count, 0);
	return true;
}

/* --- coming ------------------------------------------------------------------------------------------------ */

static void grow(struct pass *pass, const struct job *job, const int64_t *ranks,
		 const struct placement *place)
{
	int64_t *nodes = arena_new_array(pass->arena, int64_t, place->count),
		*masks = arena_new_array(pass->arena, int64_t, place->count);
	struct event_attempt_grown *e = &pass_emit(pass, EVENT_ATTEMPT_GROWN)->attempt_grown;

	for (uint32_t i = 0; i < place->count; i++) {
		nodes[i] = space_at(&pass->view->space, place->ranks[i])->node;
		masks[i] = place->masks[i];
	}
	e->attempt = job->attempt.v;
	e->ranks = ranks;
	e->nodes = nodes;
	e->masks = masks;
	e->ranks_count = e->nodes_count = e->masks_count = place->count;
}

/* Numbers for so many ranks: those that left, from the lowest on, then new ones. */
static int64_t *ranks_for(struct pass *pass, const struct attempt *attempt, uint32_t count)
{
	int64_t *ranks = arena_new_array(pass->arena, int64_t, count);
	uint32_t found = 0;

	for (uint32_t rank = 0; rank < attempt->tasks && found < count; rank++)
		if (!task_holds(task_at(pass, attempt, rank)))
			ranks[found++] = rank;
	for (uint32_t rank = attempt->tasks; found < count; rank++)
		ranks[found++] = rank;
	return ranks;
}

/* Those that a gang below its least width lacks: of each role the lowest that left. */
static int64_t *ranks_lacking(struct pass *pass, const struct attempt *attempt,
			      const struct shape *shape, uint32_t *ret_count)
{
	int64_t *ranks = arena_new_array(pass->arena, int64_t, attempt->tasks);
	uint32_t lacks[ROLES_MAX] = { 0 }, count = 0;

	if (!shape->role_count) {
		*ret_count = shape->tasks_min - attempt_width(attempt);
		return ranks_for(pass, attempt, *ret_count);
	}
	for (uint32_t role = 0; role < shape->role_count; role++)
		lacks[role] = shape->role_min[role];
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		uint32_t *own = &lacks[shape_role(shape, rank)];

		*own -= *own && task_holds(task_at(pass, attempt, rank));
	}
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		uint32_t *own = &lacks[shape_role(shape, rank)];

		if (*own && !task_holds(task_at(pass, attempt, rank))) {
			ranks[count++] = rank;
			--*own;
		}
	}
	*ret_count = count;
	return ranks;
}

/* --- lacking ------------------------------------------------------------------------------------------------ */

/* A queue that lends nothing away yet has work that waits, while this one is above what it is guaranteed itself. */
static bool others_are_owed(const struct pass *pass, uint32_t queue)
{
	const struct standings *s = &pass->standings;

	if (s->at[queue].use <= s->at[queue].guarantee)
		return false;
	for (uint32_t q = 1; q < s->count; q++)
		if (!queue_is_in(pass->view, queue, q) && !queue_is_in(pass->view, q, queue) &&
		    s->at[q].use < s->at[q].guarantee && s->at[q].demand > s->at[q].use)
			return true;
	return false;
}

/* So many more tasks: within the bounds of its queues, and of critical work also within what they are promised? */
static bool models_allow(struct pass *pass, const struct job *job, const struct shape *shape,
			 uint32_t tasks)
{
	struct verdict why;

	return bounds_allow(pass, job->queue.v, job->tier, shape, tasks, &why) &&
	       (job->tier != TIER_CRITICAL || pledge_bind(pass, job->queue.v, shape, tasks, &why));
}

/* The same of these ranks, each with what its role takes. */
static bool ranks_allowed(struct pass *pass, const struct job *job, const struct shape *shape,
			  const int64_t *ranks, uint32_t count)
{
	struct shape alone;

	if (!shape->role_count)
		return models_allow(pass, job, shape, count);
	shape_of_ranks(shape, ranks, count, &alone);
	return models_allow(pass, job, &alone, count);
}

/* Is a class of nodes open on which ranks beside those that run may lie? */
static bool model_is_open(const struct pass *pass, const struct shape *shape,
			  const struct attempt *attempt)
{
	struct name_id model = ranks_model(pass, shape, attempt);
	uint64_t classes;

	space_classes_of(&pass->view->space, shape, &classes);
	for (classes &= ~pass->closed; classes; classes &= classes - 1)
		if (!model.v ||
		    name_same(pass->view->space.traits.at[__builtin_ctzll(classes)].model, model))
			return true;
	return false;
}

/* How many of the ranks, from the first on, have room in the bounds of its queues; pass->closed is for so many. More ranks never
 * need less. */
static uint32_t ranks_within(struct pass *pass, const struct job *job,
			     const struct attempt *attempt, const int64_t *ranks, uint32_t most)
{
	const struct shape *shape = shape_get(pass->facts, job->shape);
	uint32_t first = 0, end = most;

	while (first < end) {
		uint32_t middle = end - (end - first) / 2;

		if (ranks_allowed(pass, job, shape, ranks, middle) &&
		    model_is_open(pass, shape, attempt))
			first = middle;
		else
			end = middle - 1;
	}
	return first && ranks_allowed(pass, job, shape, ranks, first) ? first : 0;
}

static bool lacking_find(struct pass *pass, const struct job *job, const struct attempt *attempt,
			 const int64_t *ranks, uint32_t count, struct placement *ret)
{
	const struct shape *shape = shape_get(pass->facts, job->shape);
	bool found;

	if (place_again(pass, shape, attempt, ranks, count, ret))
		return true;
	if (others_are_owed(pass, job->queue.v) || !ranks_allowed(pass, job, shape, ranks, count))
		return false;
	found = place_beside(pass, job, attempt, ranks, count, count, ret) == count;
	pass->closed = 0;
	return found;
}

/* Whose place would be room for its ranks: a search of its own, for ranks lie beside those that it has. */
struct making_room {
	struct pass *pass;
	const struct job *job;
	const struct attempt *attempt;
	const int64_t *ranks; /* that lack */
	uint32_t count;
	const struct victim *list; /* best-effort work, cheapest first */
	uint32_t *chosen, chosen_count;
	struct placement place;
};

static void attempt_move(struct pass *pass, const struct attempt *attempt,
			 const struct shape *shape, bool give)
{
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = task_at(pass, attempt, i);
		int32_t rank = space_rank(&pass->view->space, task->node.v);
		struct hold hold = task_hold(task, shape, i);

		if (rank == RANK_NONE || !task_holds(task))
			continue;
		if (give)
			space_give(&pass->view->space, (uint32_t)rank, &hold);
		else
			space_take(&pass->view->space, (uint32_t)rank, &hold);
	}
}

static bool ranks_fit(struct making_room *m)
{
	m->pass->work++;
	return place_beside(m->pass, m->job, m->attempt, m->ranks, m->count, m->count, &m->place) ==
	       m->count;
}

/* Who leaves anyhow is gone: for others, or told to leave for this one before. */
static void leaving_give(struct pass *pass)
{
	struct sorted_walk walk;

	for (bool any = sorted_begin(&pass->view->pool, pass->view->leaving, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(pass->facts, (struct job_id){ walk.id });
		const struct attempt *attempt = attempt_get(pass->facts, job->attempt);

		if (!attempt->unreachable)
			attempt_move(pass, attempt, shape_get(pass->facts, job->shape), true);
	}
}

static bool victim_is_on(const struct making_room *m, const struct victim *v)
{
	for (uint32_t i = 0; i < v->attempt->tasks; i++) {
		const struct task *task = task_at(m->pass, v->attempt, i);
		int32_t rank = space_rank(&m->pass->view->space, task->node.v);

		for (uint32_t k = 0; k < m->place.count && task_holds(task); k++)
			if (rank != RANK_NONE && m->place.ranks[k] == (uint32_t)rank)
				return true;
	}
	return false;
}

/* Gives best-effort work back, the cheapest first, ever more at once, until the ranks fit. */
static bool spares_give(struct making_room *m)
{
	uint32_t count, next = 1;

	m->list = evict_spares(m->pass, &count);
	m->chosen = arena_new_array(m->pass->arena, uint32_t, count + 1);
	for (uint32_t i = 0; i < count; i++) {
		if (m->list[i].leaver)
			continue;
		attempt_move(m->pass, m->list[i].attempt, m->list[i].shape, true);
		m->chosen[m->chosen_count++] = i;
		if (m->chosen_count < next)
			continue;
		if (ranks_fit(m))
			return true;
		next *= 2;
	}
	return m->chosen_count && ranks_fit(m);
}

/* Only those that are on the nodes of the place; and of these, the dearest first, none that is not needed. */
static void spares_take_back(struct making_room *m)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < m->chosen_count; i++) {
		const struct victim *v = &m->list[m->chosen[i]];

		if (victim_is_on(m, v))
			m->chosen[kept++] = m->chosen[i];
		else
			attempt_move(m->pass, v->attempt, v->shape, false);
	}
	m->chosen_count = kept;
	kept = 0;
	for (uint32_t i = m->chosen_count; i-- > 0;) {
		const struct victim *v = &m->list[m->chosen[i]];

		attempt_move(m->pass, v->attempt, v->shape, false);
		if (ranks_fit(m))
			continue;
		attempt_move(m->pass, v->attempt, v->shape, true);
		m->chosen[m->chosen_count - ++kept] = m->chosen[i];
	}
	m->chosen += m->chosen_count - kept;
	m->chosen_count = kept;
}

/* It is told for whom, though it is stopped in the same breath: best-effort work has no grace. */
static void spare_evict(struct pass *pass, const struct victim *v, uint32_t id)
{
	struct event_attempt_warned *e = &pass_emit(pass, EVENT_ATTEMPT_WARNED)->attempt_warned;

	e->attempt = job_get(pass->facts, (struct job_id){ v->job })->attempt.v;
	e->for_job = id;
	e->deadline_ms = pass->facts->now_ms;
	lifecycle_evict(pass, v->job, id);
}

/*
 * There is no place for the ranks: best-effort work makes room for them, as for any standard work. Where those that leave already are
 * enough, what is free of their place is kept until the others are gone.
 */
static bool lacking_make_room(struct pass *pass, uint32_t id, const int64_t *ranks, uint32_t count)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct making_room m = { .pass = pass,
				 .job = job,
				 .attempt = attempt_get(pass->facts, job->attempt),
				 .ranks = ranks,
				 .count = count };
	uint32_t mark = space_mark(&pass->view->space);
	bool waits, found;

	if (job->tier == TIER_BEST_EFFORT || !job->preempts ||
	    others_are_owed(pass, job->queue.v) || !ranks_allowed(pass, job, shape, ranks, count))
		return false;
	leaving_give(pass);
	waits = ranks_fit(&m);
	found = !waits && spares_give(&m);
	if (found)
		spares_take_back(&m);
	space_rollback(&pass->view->space, mark);
	pass->closed = 0;
	if (waits)
		placement_promise(&pass->view->space, &m.place, shape);
	for (uint32_t i = 0; found && i < m.chosen_count; i++)
		spare_evict(pass, &m.list[m.chosen[i]], id);
	return found;
}

/* True when somebody makes room. */
static bool lacking_try(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);
	const struct shape *shape = shape_get(pass->facts, job->shape);
	uint32_t count;
	const int64_t *ranks = ranks_lacking(pass, attempt, shape, &count);
	int64_t until_ms = attempt->lacks_ms + pass->facts->policy.rejoin_ms,
		pause_ms = ranks_pause_until_ms(pass->facts, attempt),
		need = ranks_gpus(shape, ranks, count) * GPU_SHARE;
	char duration[DURATION_TEXT_MAX];
	struct placement place;
	bool may_come;

	pass->work++;
	blocks_for_running(pass, id);
	may_come =
		!attempt->warned_ms && !attempt->unreachable && pause_ms <= pass->facts->now_ms &&
		quota_room(&pass->standings, job->queue.v, job->tier, false, need, NULL) >= need &&
		user_room(pass, job, need, NULL) >= need;
	if (may_come && lacking_find(pass, job, attempt, ranks, count, &place)) {
		grow(pass, job, ranks, &place);
		placement_take(&pass->view->space, &place, shape);
		standing_start(&pass->standings, job->queue.v, job->tier, need);
		user_take(pass, job, need);
	} else if (pass->facts->now_ms >= until_ms) {
		attempt_stop(
			pass, job, STOP_LOST, short_grace_ms(pass->facts, job, attempt),
			arena_printf(pass->arena, "%s; there was no place for it within %s",
				     *facts_text(pass->facts, attempt->reason)
					     ? facts_text(pass->facts, attempt->reason)
					     : "it lost a rank",
				     format_duration(pass->facts->policy.rejoin_ms, duration)));
	} else {
		pass_wake(pass, until_ms);
		pass_wake(pass, pause_ms);
		return may_come && lacking_make_room(pass, id, ranks, count);
	}
	return false;
}

void resize_lacking(struct pass *pass)
{
	struct sorted_walk walk;

	for (bool any = sorted_begin(&pass->view->pool, pass->view->lacking, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		if (pass_is_spent(pass) || lacking_try(pass, walk.id))
			return; /* the others count on what the facts say then */
	}
}

/* --- growing -------------------------------------------------------------------------------------------------- */

static bool grow_try(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);
	const struct shape *shape = shape_get(pass->facts, job->shape);
	uint32_t most = shape->tasks_max - attempt_width(attempt);
	const int64_t *ranks = shape->role_count ? ranks_for(pass, attempt, most) : NULL;
	struct placement place;
	uint32_t count = 0;
	int64_t room, user_left;

	pass->work++;
	blocks_for_running(pass, id);
	room = quota_room(&pass->standings, job->queue.v, job->tier, false, 0, NULL);
	user_left = user_room(pass, job, 0, NULL);
	room = user_left < room ? user_left : room;
	while (ranks && most && ranks_gpus(shape, ranks, most) * GPU_SHARE > room)
		most--;
	if (ranks)
		most = ranks_within(pass, job, attempt, ranks, most);
	else
		most = share_tasks(&pass->view->space, shape, room, most);
	if (most && (ranks || models_allow(pass, job, shape, 1))) {
		spend_bind(pass, id);
		most = most < pass->widest ? most : pass->widest;
		count = most ? place_beside(pass, job, attempt, ranks, most, 1, &place) : 0;
	}
	pass->closed = 0;
	if (!count)
		return false;
	if (!ranks)
		ranks = ranks_for(pass, attempt, count);
	grow(pass, job, ranks, &place);
	placement_take(&pass->view->space, &place, shape);
	bounds_take(pass, job->queue.v, job->tier, shape, &place);
	standing_start(&pass->standings, job->queue.v, job->tier,
		       ranks_gpus(shape, ranks, count) * GPU_SHARE);
	user_take(pass, job, ranks_gpus(shape, ranks, count) * GPU_SHARE);
	pass->more = true;
	return true;
}

/* Those that may grow from the same time on, in the order of their submissions. The walk stands behind them then. */
static uint32_t narrow_read(struct pass *pass, struct sorted_walk *walk, bool *any, uint32_t *ret)
{
	uint64_t key = walk->key;
	uint32_t count = 0;

	for (; *any && walk->key == key && count < GROW_STEPS_MAX;
	     *any = sorted_next(&pass->view->pool, walk)) {
		uint32_t at = count++;

		for (; at > 0 && job_is_earlier(pass->facts, walk->id, ret[at - 1]); at--)
			ret[at] = ret[at - 1];
		ret[at] = walk->id;
	}
	return count;
}

/* Not one rank more of the job's wish has a place anywhere, as a pass has found: no look is needed. */
static bool growth_is_hopeless(const struct pass *pass, uint32_t id)
{
	return pass->memos[job_get(pass->facts, (struct job_id){ id })->shape.v].no_growth;
}

static void growth_note(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	struct place_request request = pass_request(pass, shape_get(pass->facts, job->shape), 1);

	blocks_none(pass);
	if (place_bound(&pass->view->space, &request, NULL) != 0)
		pass->memos[job->shape.v].no_growth = true;
}

/* In the space as it is for nobody in particular: who was tried last may have had nodes closed to it. */
static bool any_is_free(struct pass *pass)
{
	blocks_none(pass);
	return space_free_gpus(&pass->view->space, 0, UINT64_MAX) > 0;
}

/* From the `from`-th on, so many looks. */
static void grow_some(struct pass *pass, uint32_t *ids, uint32_t from, uint32_t looks_most)
{
	uint32_t looks = 0, steps = 0, count;
	struct sorted_walk walk;
	bool any = sorted_begin(&pass->view->pool, pass->view->narrow, &walk);

	while (any && from-- > 0)
		any = sorted_next(&pass->view->pool, &walk);
	while (any) {
		if ((int64_t)walk.key > pass->facts->now_ms) {
			pass_wake(pass, (int64_t)walk.key);
			return;
		}
		count = narrow_read(pass, &walk, &any, ids);
		for (uint32_t i = 0; i < count; i++) {
			if (steps++ == GROW_STEPS_MAX || looks == looks_most || !any_is_free(pass))
				return;
			if (growth_is_hopeless(pass, ids[i]))
				continue;
			looks++;
			if (!grow_try(pass, ids[i]))
				growth_note(pass, ids[i]);
		}
	}
}

/*
 * Reserved places are kept for those who wait, so that nobody grows into what a blocked job will have. The next pass sees what
 * was taken. Of more than GROW_LOOKS_MAX that may grow half of the looks go to the first ones, and half to those at a place that moves on
 * with the time: so each of n is looked at every n / 128 rounds of 10 s, whoever finds nothing before it.
 */
void resize_grow(struct pass *pass)
{
	uint32_t narrow, half = GROW_LOOKS_MAX / 2;
	int64_t now_ms = pass->facts->now_ms;
	uint64_t first_ms;
	uint32_t *ids, first;

	if (pass->watch || !sorted_first(&pass->view->pool, pass->view->narrow, &first_ms, &first))
		return;
	if ((int64_t)first_ms > now_ms) {
		pass_wake(pass, (int64_t)first_ms);
		return;
	}
	narrow = sorted_before(&pass->view->pool, pass->view->narrow, (uint64_t)now_ms + 1, 0);
	reserve_layer(pass, INT64_MAX, true);
	ids = arena_new_array(pass->arena, uint32_t, GROW_STEPS_MAX);
	grow_some(pass, ids, 0, narrow > GROW_LOOKS_MAX ? half : GROW_LOOKS_MAX);
	if (narrow <= GROW_LOOKS_MAX || !any_is_free(pass))
		return;
	grow_some(pass, ids, (uint32_t)(now_ms / GROW_ROUND_MS * half % narrow), half);
	pass_wake(pass, (now_ms / GROW_ROUND_MS + 1) * GROW_ROUND_MS);
}
