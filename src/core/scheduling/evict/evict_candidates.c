/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may have to go for a blocked job. Running work is listed once per pass: the best-effort work of all queues, and
 * the standard work of each queue, each sorted by cost. For a job the lists that may give are put together; jobs of one
 * queue and rank share them while nothing starts.
 */
#include <string.h>

#include "core/scheduling/evict/evict.h"

/*
 * What it costs besides to stop one that is shielded: as much as to lose 35 years of a GPU. So it goes where nothing cheaper serves, and no
 * shield holds back what is guaranteed to others for ever. Of millions of victims the sum still fits.
 */
static const int64_t SHIELD_GPU_MS = INT64_C(1) << 40;

/* What of its run is lost, and its restart. */
static int64_t victim_lost_ms(const struct facts *facts, const struct job *job,
			      const struct attempt *attempt)
{
	int64_t saved_ms = attempt_saved_ms(facts, job, attempt);
	int64_t since_ms = saved_ms > attempt->released_ms ? saved_ms : attempt->released_ms;
	int64_t lost_ms = attempt->released_ms ? facts->now_ms - since_ms : 0;

	return lost_ms + (int64_t)job->restart_cost_ms;
}

int64_t victim_cost(const struct facts *facts, const struct job *job, const struct attempt *attempt)
{
	return share_gpu_ms(attempt_share(facts, attempt), victim_lost_ms(facts, job, attempt)) +
	       (attempt->shielded ? SHIELD_GPU_MS : 0);
}

bool pass_job_leaves(const struct pass *pass, uint32_t job)
{
	return job_view_get(pass->view, job)->leaving ||
	       (pass->leaving && pass->leaving[job / 64] >> job % 64 & 1);
}

struct victim victim_of(const struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct job_view *jv = job_view_get(pass->view, id);
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);

	const struct shape *shape = shape_get(pass->facts, job->shape);
	int64_t told = attempt_told_share(pass->facts, attempt, shape),
		lost_ms = victim_lost_ms(pass->facts, job, attempt),
		shield = attempt->shielded ? SHIELD_GPU_MS : 0;

	return (struct victim){
		.job = id,
		.queue = jv->queue,
		.attempt = attempt,
		.shape = shape,
		.rank = jv->rank,
		.share = jv->share - told,
		.told = told,
		.tier = jv->tier,
		.cost = share_gpu_ms(jv->share, lost_ms) + (jv->share ? shield : 0),
		.bare_cost = jv->share ? 0 : bare_cost(pass, shape, attempt, lost_ms) + shield,
		.submitted_ms = job->submitted_ms
	};
}

static void victim_add(struct pass *pass, uint32_t list, const struct victim *victim)
{
	uint32_t count = pass->victim_counts[list];

	if (count == pass->victim_rooms[list]) {
		struct victim *old = pass->victims[list];

		pass->victim_rooms[list] = count ? count * 2 : 16;
		pass->victims[list] =
			arena_new_array(pass->arena, struct victim, pass->victim_rooms[list]);
		if (old)
			memcpy(pass->victims[list], old, count * sizeof(*old));
	}
	pass->victims[list][count] = *victim;
	pass->victim_counts[list]++;
}

/* By rank: how many of them lie on its node. */
static uint32_t *ranks_beside(struct pass *pass, const struct attempt *attempt)
{
	const struct facts *facts = pass->facts;
	uint32_t *beside = arena_new_array(pass->arena, uint32_t, attempt->tasks), *on;

	if (!pass->ranks_on)
		pass->ranks_on =
			arena_new_array(pass->arena, uint32_t, (size_t)facts->nodes.count + 1);
	on = pass->ranks_on;
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);

		on[task->node.v] += task_holds(task);
	}
	for (uint32_t i = 0; i < attempt->tasks; i++)
		beside[i] =
			on[((const struct task *)table_get(&facts->tasks, attempt->first_task + i))
				   ->node.v];
	for (uint32_t i = 0; i < attempt->tasks; i++)
		on[((const struct task *)table_get(&facts->tasks, attempt->first_task + i))
			   ->node.v] = 0;
	return beside;
}

static bool rank_may_leave(const struct pass *pass, const struct attempt *attempt, uint32_t rank)
{
	const struct task *task = table_get(&pass->facts->tasks, attempt->first_task + rank);

	return task->state == TASK_RUNNING && !task->leaving;
}

/* The least number above `above` of those beside a rank that may leave; 0 = there is none. */
static uint32_t beside_next(const struct pass *pass, const struct attempt *attempt,
			    const uint32_t *beside, uint32_t above)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < attempt->tasks; i++)
		if (beside[i] > above && beside[i] < least && rank_may_leave(pass, attempt, i))
			least = beside[i];
	return least < UINT32_MAX ? least : 0;
}

/* One that runs stays: those that are coming have nothing of what was done, so with the last that runs it would be lost. */
static uint32_t surplus_most(const struct pass *pass, const struct attempt *attempt, uint32_t most)
{
	uint32_t runs = 0;

	for (uint32_t rank = 0; rank < attempt->tasks && runs <= most; rank++)
		runs += rank_may_leave(pass, attempt, rank);
	return runs > most ? most : runs ? runs - 1 : 0;
}

/* Which ranks it can do without: from nodes where it has the fewest, and of these the highest, so that the rest stays together. */
static uint32_t surplus_pick(struct pass *pass, const struct attempt *attempt,
			     const struct shape *shape, uint32_t most, struct surplus *ret)
{
	const uint32_t *beside = ranks_beside(pass, attempt);
	uint32_t found = 0, spare[ROLES_MAX];

	most = surplus_most(pass, attempt, most);
	spare[0] = most;
	for (uint32_t role = 0; role < shape->role_count; role++) {
		uint32_t width = attempt_role_width(pass->facts, attempt, shape, role);

		spare[role] = width > shape->role_min[role] ? width - shape->role_min[role] : 0;
	}
	for (uint32_t at = beside_next(pass, attempt, beside, 0); at && found < most;
	     at = beside_next(pass, attempt, beside, at))
		for (uint32_t i = attempt->tasks; i-- > 0 && found < most;)
			if (beside[i] == at && rank_may_leave(pass, attempt, i) &&
			    spare[shape_role(shape, i)]) {
				ret->is[i] = true;
				spare[shape_role(shape, i)]--;
				found++;
			}
	return found;
}

/* One for all lists of the pass: who is told to leave is told once. */
static struct surplus *surplus_get(struct pass *pass, const struct victim *v, uint32_t most)
{
	struct surplus **slot, *found;

	if (!pass->surpluses)
		pass->surpluses = arena_new_array(pass->arena, struct surplus *, SURPLUS_SLOTS);
	slot = &pass->surpluses[v->job % SURPLUS_SLOTS];
	for (found = *slot; found; found = found->next)
		if (found->job == v->job)
			return found;
	found = arena_new(pass->arena, struct surplus);
	found->job = v->job;
	found->is = arena_new_array(pass->arena, bool, v->attempt->tasks);
	found->told = arena_new_array(pass->arena, bool, v->attempt->tasks);
	(void)surplus_pick(pass, v->attempt, v->shape, most, found);
	found->next = *slot;
	return *slot = found;
}

/* An elastic job that resizes freely: each rank above its least width, which costs nothing, and the rest. */
static void victims_split(struct pass *pass, uint32_t list, struct victim *rest)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ rest->job });
	const struct attempt *attempt = rest->attempt;
	uint32_t stay = rest->shape->tasks_min + attempt->leaving;
	int64_t shares = 0;

	if (!attempt_has_surplus(pass->facts, job, attempt))
		return;
	rest->surplus = surplus_get(pass, rest, attempt_width(attempt) - stay);
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		struct victim leaver = *rest;

		if (!rest->surplus->is[i])
			continue;
		leaver.leaver = i + 1;
		leaver.told = 0;
		leaver.cost = leaver.bare_cost = 0;
		leaver.share = (int64_t)shape_wish(rest->shape, i).gpus * GPU_SHARE;
		shares += leaver.share;
		victim_add(pass, list, &leaver);
	}
	rest->share -= shares;
}

bool victim_is_young(const struct pass *pass, const struct job_view *jv, int64_t *ret_ms)
{
	int64_t mature_ms = jv->since_ms + pass->facts->policy.min_runtime_ms;

	if (jv->tier == TIER_BEST_EFFORT || mature_ms <= pass->facts->now_ms)
		return false;
	if (!*ret_ms || mature_ms < *ret_ms)
		*ret_ms = mature_ms;
	return true;
}

static void victims_read(struct pass *pass, uint32_t list, uint32_t jobs, bool spare)
{
	struct sorted_walk walk;

	for (bool any = sorted_begin(&pass->view->pool, jobs, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		const struct job_view *jv = job_view_get(pass->view, walk.id);
		const struct attempt *attempt;

		if (jv->tier == TIER_CRITICAL || (jv->tier != TIER_BEST_EFFORT && spare))
			return; /* ranks rise: no more that may go */
		if ((jv->tier == TIER_BEST_EFFORT) != spare || pass_job_leaves(pass, walk.id) ||
		    victim_is_young(pass, jv, &pass->victims_mature_ms[list]))
			continue;
		attempt = attempt_get(pass->facts, (struct attempt_id){ jv->attempt });
		if (attempt_may_be_evicted(attempt)) {
			struct victim v = victim_of(pass, walk.id);

			victims_split(pass, list, &v);
			victim_add(pass, list, &v);
		}
	}
}

/* List 0: best-effort work of all queues. List q: standard work of queue q; q + the queues: of that what can do without some ranks. Made once per
 * pass. */
static void victims_make(struct pass *pass, uint32_t list)
{
	const struct queue_view *queue = pass->view->queues.at;
	uint32_t queues = pass->standings.count, lists = 2 * queues;

	if (!pass->victims) {
		pass->victims = arena_new_array(pass->arena, struct victim *, lists);
		pass->victim_counts = arena_new_array(pass->arena, uint32_t, lists);
		pass->victim_rooms = arena_new_array(pass->arena, uint32_t, lists);
		pass->victims_made = arena_new_array(pass->arena, bool, lists);
		pass->victims_mature_ms = arena_new_array(pass->arena, int64_t, lists);
	}
	if (pass->victims_made[list])
		return;
	pass->victims_made[list] = true;
	for (uint32_t q = 1; q < queues && !list; q++)
		victims_read(pass, list, queue[q].running, true);
	if (list)
		victims_read(pass, list,
			     list < queues ? queue[list].running : queue[list - queues].elastic,
			     false);
	if (list < queues) /* those that take turns are sorted by turn */
		pass->victims[list] =
			victims_sort(pass, pass->victims[list], pass->victim_counts[list]);
}

int64_t queue_mature_ms(const struct pass *pass, uint32_t queue)
{
	const struct sorted_pool *pool = &pass->view->pool;
	uint32_t aging = pass->view->queues.at[queue].aging, old;
	int64_t before_ms = pass->facts->now_ms - pass->facts->policy.min_runtime_ms;

	/* younger than min_runtime: since then, or later */
	old = before_ms < 0 ? 0 : sorted_before(pool, aging, (uint64_t)before_ms + 1, 0);
	if (old == sorted_size(pool, aging))
		return 0;
	return job_view_get(pass->view, sorted_at(pool, aging, old))->since_ms +
	       pass->facts->policy.min_runtime_ms;
}

/* Its search might have found nobody but those who are too young: the core is woken as if it had looked. */
void victims_passed_over(struct pass *pass)
{
	if (pass->passed_over)
		return;
	pass->passed_over = true;
	for (uint32_t q = 1; q < pass->standings.count; q++)
		pass_wake(pass, queue_mature_ms(pass, q));
}

const struct victim *evict_spares(struct pass *pass, uint32_t *ret_count)
{
	victims_make(pass, 0);
	*ret_count = pass->victim_counts[0];
	return pass->victims[0];
}

static void coming_grow(struct pass *pass)
{
	const struct victim *old = pass->coming;
	const uint32_t *jobs = pass->coming_jobs, *open = pass->coming_open;

	pass->coming_room = pass->coming_room
				    ? pass->coming_room * 2
				    : sorted_size(&pass->view->pool, pass->view->leaving) + 16;
	pass->coming = arena_new_array(pass->arena, struct victim, pass->coming_room);
	pass->coming_jobs = arena_new_array(pass->arena, uint32_t, pass->coming_room);
	pass->coming_open = arena_new_array(pass->arena, uint32_t, pass->coming_room);
	if (!old)
		return;
	memcpy(pass->coming, old, pass->coming_count * sizeof(*old));
	memcpy(pass->coming_jobs, jobs, pass->coming_count * sizeof(*jobs));
	memcpy(pass->coming_open, open, pass->coming_open_count * sizeof(*open));
}

void coming_add(struct pass *pass, uint32_t id)
{
	struct victim v = victim_of(pass, id);

	v.coming = true;
	v.cost = 0;
	v.holds = v.attempt->state == ATTEMPT_STOPPING || !v.attempt->for_job;
	if (pass->coming_count == pass->coming_room)
		coming_grow(pass);
	pass->coming_open[pass->coming_open_count++] = pass->coming_count;
	pass->coming_jobs[pass->coming_count] = id;
	pass->coming[pass->coming_count++] = v;
}

bool coming_has_surplus(const struct pass *pass, const struct victim *v)
{
	for (uint32_t i = 0; i < v->attempt->tasks; i++) {
		const struct task *task =
			table_get(&pass->facts->tasks, v->attempt->first_task + i);
		int32_t rank = space_rank(&pass->view->space, task->node.v);
		const struct place_node *node;

		if (rank == RANK_NONE || !task_holds(task))
			continue;
		node = space_at(&pass->view->space, (uint32_t)rank);
		if (!task->gpu_mask || (task->gpu_mask & ~(node->promised & ~node->shared)))
			return true;
	}
	return false;
}

static struct victim *coming_find(struct pass *pass, uint32_t job)
{
	uint32_t first = 0, left = pass->coming_sorted;

	for (uint32_t half = left / 2; left > 1; half = left / 2) {
		first += pass->coming_jobs[first + half - 1] < job ? half : 0; /* no jump */
		left -= half;
	}
	first += left && pass->coming_jobs[first] < job;
	if (first == pass->coming_sorted || pass->coming_jobs[first] != job)
		for (first = pass->coming_sorted;
		     first < pass->coming_count && pass->coming_jobs[first] != job; first++)
			;
	return first < pass->coming_count ? &pass->coming[first] : NULL;
}

/*
 * Of who leaves for a job all is promised to that job, and a search need not ask him what he leaves over. What is promised stays so
 * during the pass, unless a search takes a promise over; what is reserved comes and goes, so it must not be in the space here.
 */
static void coming_open_make(struct pass *pass)
{
	uint32_t open = 0;

	for (uint32_t i = 0; i < pass->coming_count; i++)
		if (pass->applied || coming_has_surplus(pass, &pass->coming[i]))
			pass->coming_open[open++] = i;
	pass->coming_open_count = open;
}

void coming_reopen(struct pass *pass)
{
	for (uint32_t i = 0; i < pass->coming_count; i++)
		pass->coming_open[i] = i;
	pass->coming_open_count = pass->coming_count;
}

static uint32_t promise_victim_job(const struct pass *pass, const struct promise_view *p,
				   uint32_t i)
{
	return attempt_get(pass->facts, (struct attempt_id){ promise_victim(p, i) })->job.v;
}

void coming_hold(struct pass *pass, uint32_t job, bool more)
{
	struct victim *v = coming_find(pass, job);

	if (!v || (!more && !v->holds))
		return;
	v->holds += more ? 1 : UINT32_MAX;
	if (v->holds != more)
		return;
	victim_counts(pass, v, more);
}

void promise_hold(struct pass *pass, const struct promise_view *p, bool more)
{
	for (uint32_t i = 0; i < p->victims; i++)
		coming_hold(pass, promise_victim_job(pass, p, i), more);
}

/* At the beginning: the queues' plans know already that they leave. */
static void holds_count(struct pass *pass, const struct promise_view *p)
{
	for (uint32_t i = 0; i < p->victims; i++) {
		struct victim *v = coming_find(pass, promise_victim_job(pass, p, i));

		if (v)
			v->holds++;
	}
}

static void coming_make(struct pass *pass)
{
	struct sorted_walk walk;

	if (pass->leaving)
		return;
	pass->leaving = arena_new_array(pass->arena, uint64_t, pass->facts->jobs.count / 64 + 1);
	for (bool any = sorted_begin(&pass->view->pool, pass->view->leaving, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk))
		if (!attempt_get(pass->facts,
				 job_get(pass->facts, (struct job_id){ walk.id })->attempt)
			     ->unreachable)
			coming_add(pass, walk.id);
	pass->coming_sorted = pass->coming_count;
	for (uint32_t i = 0; i < pass->view->promise_count; i++)
		if (!pass->promises_gone[i])
			holds_count(pass, &pass->view->promises.at[i]);
	coming_open_make(pass);
}

void evict_begin(struct pass *pass)
{
	if (pass->view->leaving)
		coming_make(pass);
}

/*
 * A queue within its share gives way all the same to work that is within its guarantee, as far as it has borrowed: what is guaranteed is a
 * place, and enough single GPUs here and there are none. Nobody takes that back: critical work never goes, and a queue within its guarantee
 * is not above its share.
 *
 * Standard work takes what lies outside of the other guarantee as a whole. A wider victim would leave its queue with less than is guaranteed to
 * that one, and may claim as well: it goes only when the job has waited for min_runtime, so that nobody else is too young.
 */
static bool borrower_may_go(const struct hunt *hunt, const struct victim *v, uint32_t top)
{
	const struct standings *s = &hunt->pass->standings;

	if (!standing_borrows(s, v->queue, top, 1))
		return false;
	if (!hunt->claims)
		return hunt->j->tier == TIER_CRITICAL &&
		       standing_claims(s, hunt->j->queue.v, top, hunt->need);
	if (!standing_guaranteed(s, hunt->j->queue.v, top, hunt->need))
		return false;
	if (hunt->patient_ms <= hunt->pass->facts->now_ms ||
	    standing_borrows(s, v->queue, top, v->share))
		return true;
	pass_wake(hunt->pass, hunt->patient_ms);
	return false;
}

/* Somebody counts on it, or it was stopped already. Else it is spared, unless it may go for this job as well. */
static bool coming_is_sure(struct pass *pass, const struct victim *v)
{
	return coming_find(pass, v->job)->holds > 0;
}

/*
 * The job was evicted for this one, and lost all that it had done. Were it to take the place back at once, the other one would lose its work
 * too, and where shares move with what is free the two could go on like that for ever. So the other one runs for as long as the job had run
 * before it makes room in return: each turn is longer than the one before. Guarantees do not wait for that.
 */
static bool victim_keeps_place(const struct hunt *hunt, const struct victim *v)
{
	const struct job *j = hunt->j;
	const struct attempt *last;
	int64_t until_ms;

	if (j->checkpoints || hunt->claims || j->tier == TIER_CRITICAL || !j->last_attempt.v ||
	    !v->job)
		return false;
	last = attempt_get(hunt->pass->facts, j->last_attempt);
	if (last->why != STOP_EVICTED || last->for_job != v->job || !last->released_ms)
		return false;
	until_ms = v->attempt->released_ms + last->ended_ms - last->released_ms;
	if (v->attempt->released_ms && until_ms <= hunt->pass->facts->now_ms)
		return false;
	if (v->attempt->released_ms)
		pass_wake(hunt->pass, until_ms);
	return true;
}

bool candidate_may_go(const struct hunt *hunt, const struct victim *v)
{
	const struct standings *s = &hunt->pass->standings;
	uint32_t top;

	if (v->promise || (v->coming && coming_is_sure(hunt->pass, v)))
		return true;
	if (!v->coming && v->job && pass_job_leaves(hunt->pass, v->job))
		return false;
	if (v->leaver && v->surplus->told[v->leaver - 1])
		return false;
	if (v->tier == TIER_BEST_EFFORT)
		return true;
	if (victim_keeps_place(hunt, v))
		return false;
	if (v->queue == hunt->j->queue.v)
		return v->rank < hunt->rank || (v->turn && turn_is_before(hunt, v));
	top = queue_meet(hunt->pass->view, hunt->j->queue.v, v->queue);
	if (hunt_is_bare(hunt) || victim_is_bare(v))
		return bare_may_go(hunt, v, top);
	if (hunt->pledged)
		return pledge_takes(hunt->pass, hunt->j->queue.v, hunt->need, v, top);
	return pledge_lets_go(hunt->pass, v, top) &&
	       ((standing_within(s, hunt->j->queue.v, top, hunt->need) &&
		 standing_above(s, v->queue, top)) ||
		borrower_may_go(hunt, v, top));
}

/* Standard work of a queue under a rank. */
static bool queue_has_lower(const struct pass *pass, uint32_t queue, uint64_t rank)
{
	uint32_t running = pass->view->queues.at[queue].running;

	return sorted_before(&pass->view->pool, running, rank, 0) >
	       sorted_before(&pass->view->pool, running, (uint64_t)TIER_STANDARD << 32, 0);
}

/* The queue's work of that rank that can do without some ranks: those go for an equal. */
static bool queue_has_elastic(const struct hunt *hunt)
{
	const struct sorted_pool *pool = &hunt->pass->view->pool;
	uint32_t elastic = hunt->pass->view->queues.at[hunt->j->queue.v].elastic;

	return hunt->work && sorted_before(pool, elastic, hunt->rank + 1, 0) >
				     sorted_before(pool, elastic, hunt->rank, 0);
}

/* Of another queue: its work that holds GPUs, or that which holds none. */
enum gives { GIVES_GPUS = 1, GIVES_BARE = 2 };

/* May standard work of the queue go that holds so much? */
static bool queue_lets_go(const struct hunt *hunt, uint32_t queue, int64_t share)
{
	const struct victim v = { .queue = queue, .tier = TIER_STANDARD, .share = share };

	return candidate_may_go(hunt, &v);
}

/* Quickly no: a queue not above its share gives nothing, but to those below it (standing_above). */
static bool queue_gives_gpus(const struct hunt *hunt, uint32_t queue)
{
	const struct standing *at = &hunt->pass->standings.at[queue];

	if (hunt->pledged)
		return true;
	if (hunt->j->tier != TIER_CRITICAL && !hunt->claims &&
	    (hunt_is_bare(hunt) ? at->beside_part <= at->beside_share : at->use <= at->share) &&
	    !queue_is_in(hunt->pass->view, hunt->j->queue.v, queue))
		return false;
	return queue_lets_go(hunt, queue, 1);
}

/* What it may give: enum gives. */
static unsigned queue_may_give(const struct hunt *hunt, uint32_t queue)
{
	const struct queue_view *qv = &hunt->pass->view->queues.at[queue];
	unsigned gives;

	if (queue == hunt->j->queue.v)
		return queue_has_lower(hunt->pass, queue, hunt->rank) ? GIVES_GPUS | GIVES_BARE : 0;
	if (!qv->running)
		return 0;
	gives = queue_gives_gpus(hunt, queue) ? GIVES_GPUS : 0;
	return qv->bare && queue_lets_go(hunt, queue, 0) ? gives | GIVES_BARE : gives;
}

/* Promises to lower ranks of the same queue (the place goes to the higher one), and those that leave anyhow. */
static void fresh_make(struct hunt *hunt)
{
	struct pass *pass = hunt->pass;
	uint32_t promises, room = pass->view->promise_count + pass->coming_count + 1;

	if (pass->fresh_room < room) {
		pass->fresh_room = room + room / 2;
		pass->fresh = arena_new_array(pass->arena, struct victim, pass->fresh_room);
	}
	hunt->fresh = pass->fresh;
	pass->steps += pass->coming_open_count;
	for (uint32_t i = 0; i < pass->view->promise_count; i++) {
		const struct promise_view *p = &pass->view->promises.at[i];
		uint64_t rank = job_rank(job_get(pass->facts, (struct job_id){ p->job }));

		if (p->queue != hunt->j->queue.v || rank >= hunt->rank || pass->promises_gone[i] ||
		    job_get(pass->facts, (struct job_id){ p->job })->attempt.v)
			continue;
		hunt->fresh[hunt->fresh_count++] = (struct victim){ .job = p->job,
								    .queue = p->queue,
								    .promise = p,
								    .rank = rank,
								    .share = p->share,
								    .tier = p->tier };
		hunt->shares += p->share;
	}
	promises = hunt->fresh_count;
	for (uint32_t i = 0; i < (promises ? pass->coming_count : pass->coming_open_count); i++) {
		const struct victim *v = &pass->coming[promises ? i : pass->coming_open[i]];

		if (!promises && !coming_has_surplus(pass, v))
			continue;
		hunt->fresh[hunt->fresh_count++] = *v;
		hunt->shares += v->share + v->told;
	}
}

/* When the first who is too young to be in it no longer is. */
static void list_wakes(struct pass *pass, uint32_t list)
{
	if (pass->victims_mature_ms[list])
		pass_wake(pass, pass->victims_mature_ms[list]);
}

/* Does each of the list's jobs come into question as it is? */
static bool list_is_whole(const struct hunt *hunt, uint32_t list)
{
	const struct pass *pass = hunt->pass;

	for (uint32_t i = 0; i < pass->victim_counts[list]; i++) {
		const struct victim *v = &pass->victims[list][i];

		if (pass_job_leaves(pass, v->job) ||
		    (v->queue == hunt->j->queue.v && v->tier != TIER_BEST_EFFORT &&
		     v->rank >= hunt->rank))
			return false;
	}
	return true;
}

/* The only list that gives is taken as it is, where that can be: such lists are long. */
static bool list_serve(struct hunt *hunt, uint32_t list)
{
	struct pass *pass = hunt->pass;
	struct candidates *kept = hunt_kept(hunt);

	if (list >= pass->standings.count || !list_is_whole(hunt, list))
		return false;
	list_wakes(pass, list);
	kept->list = pass->victims[list];
	kept->count = pass->victim_counts[list];
	for (uint32_t i = 0; i < kept->count; i++)
		kept->shares += kept->list[i].share + kept->list[i].told;
	return true;
}

/* From a queue's own lists lower ranks go; its equals come from the list of those that can do without some ranks, and from turns_find. */
static void list_add(struct hunt *hunt, uint32_t list, unsigned gives)
{
	struct pass *pass = hunt->pass;
	struct candidates *kept = hunt_kept(hunt);
	uint32_t queues = pass->standings.count;

	victims_make(pass, list);
	list_wakes(pass, list);
	for (uint32_t i = 0; i < pass->victim_counts[list]; i++) {
		const struct victim *v = &pass->victims[list][i];

		if (pass_job_leaves(pass, v->job) || (v->rank < hunt->rank && list >= queues) ||
		    !(gives & (victim_is_bare(v) ? GIVES_BARE : GIVES_GPUS)))
			continue;
		if (v->queue != hunt->j->queue.v || v->tier == TIER_BEST_EFFORT ||
		    v->rank < hunt->rank)
			kept->list[kept->count] = *v;
		else if (v->rank > hunt->rank || list < queues ||
			 !turn_may_end_of(hunt, v, &kept->list[kept->count]))
			continue;
		kept->turns = kept->turns || kept->list[kept->count].turn;
		kept->count++;
		kept->shares += v->share + v->told;
	}
}

static uint32_t list_room(struct hunt *hunt, uint32_t list)
{
	victims_make(hunt->pass, list);
	return hunt->pass->victim_counts[list];
}

/* Its list is empty, and the core is woken in time for those who are too young: it gives nothing, whoever asks. */
static bool list_is_void(const struct pass *pass, uint32_t list)
{
	int64_t mature_ms;

	if (!pass->victims_made[list] || pass->victim_counts[list])
		return false;
	mature_ms = pass->victims_mature_ms[list];
	return !mature_ms || (pass->wake_ms && pass->wake_ms <= mature_ms);
}

/* Best-effort work, lower ranks of the queue, and queues above their share, in order. */
static void kept_make(struct hunt *hunt)
{
	struct pass *pass = hunt->pass;
	struct candidates *kept = hunt_kept(hunt);
	uint32_t room = list_room(hunt, 0), lists = 0, queues = pass->standings.count, giving = 0;
	uint32_t *give = arena_new_array(pass->arena, uint32_t, queues + 1);
	uint8_t *gives = arena_new_array(pass->arena, uint8_t, queues + 1);
	struct hunt little = *hunt; /* the lists serve others that need less of these */
	struct turns turns = { .hunt = hunt };
	bool alone = true, surplus = false, spares;

	little.beside = (struct beside){ 0, 0 };
	for (uint32_t q = 1; q < queues; q++) {
		alone = alone && (q == hunt->j->queue.v || !pass->view->queues.at[q].running);
		gives[giving] = list_is_void(pass, q) ? 0 : (uint8_t)queue_may_give(&little, q);
		if (!gives[giving])
			continue;
		give[giving++] = q;
		room += list_room(hunt, q);
	}
	if (queue_has_elastic(hunt)) {
		gives[giving] = GIVES_GPUS | GIVES_BARE;
		give[giving++] = queues + hunt->j->queue.v;
		room += list_room(hunt, queues + hunt->j->queue.v);
	}
	turns_find(&turns);
	room += turns.count;
	*kept = (struct candidates){ .queue = hunt->j->queue.v,
				     .rank = hunt->rank,
				     .work = hunt->work,
				     .due_ms = hunt->due_ms,
				     .starts = pass->starts,
				     .need = alone ? 0 : hunt->need,
				     .pledged = hunt->pledged,
				     .claims = hunt->claims };
	pass->steps += room;
	if (giving == 1 && !turns.count && !pass->victim_counts[0] && (gives[0] & GIVES_GPUS) &&
	    pass->victim_counts[give[0]] && list_serve(hunt, give[0])) {
		if (pass->victims_mature_ms[0])
			pass_wake(pass, pass->victims_mature_ms[0]);
		return;
	}
	kept->list = arena_new_array(pass->arena, struct victim, room + 1);
	list_add(hunt, 0, GIVES_GPUS | GIVES_BARE);
	spares = kept->count > 0;
	lists = spares;
	for (uint32_t i = 0; i < giving; i++) {
		uint32_t before = kept->count;

		list_add(hunt, give[i], gives[i]);
		lists += kept->count > before;
		surplus = surplus || (kept->count > before && kept->list[before].leaver);
	}
	for (uint32_t i = 0; i < turns.count; i++) {
		kept->list[kept->count++] = turns.list[i];
		kept->shares += turns.list[i].share + turns.list[i].told;
	}
	/* Best-effort work precedes one list of standard work, unless that list begins with surplus. */
	if (lists > 2 || (lists == 2 && (surplus || !spares)) || kept->turns || turns.count)
		kept->list = victims_sort(pass, kept->list, kept->count);
}

void hunt_scratch_make(struct hunt *hunt)
{
	struct candidates *kept = hunt_kept(hunt);

	if (kept->scratch_room < hunt->count) {
		kept->scratch_room = hunt->count + hunt->count / 2 + 16;
		kept->scratch = arena_new_array(hunt->pass->arena, uint32_t, kept->scratch_room);
	}
	hunt->scratch = kept->scratch;
}

static bool kept_serves(const struct hunt *hunt)
{
	const struct candidates *kept = hunt_kept(hunt);

	return kept->list && kept->pledged == hunt->pledged && kept->claims == hunt->claims &&
	       kept->queue == hunt->j->queue.v && kept->rank == hunt->rank &&
	       kept->work == hunt->work && kept->due_ms <= hunt->due_ms &&
	       kept->starts == hunt->pass->starts && kept->need <= hunt->need;
}

bool hunt_candidates(struct hunt *hunt)
{
	struct pass *pass = hunt->pass;
	struct candidates *kept = hunt_kept(hunt);

	coming_make(pass);
	fresh_make(hunt);
	if (!kept_serves(hunt))
		kept_make(hunt);
	for (; kept->first < kept->count && pass_job_leaves(pass, kept->list[kept->first].job);
	     kept->first++)
		kept->shares -= kept->list[kept->first].share + kept->list[kept->first].told;
	hunt->count = hunt->fresh_count + kept->count - kept->first;
	hunt->shares += kept->shares;
	(void)pass_shape(pass, hunt->j->shape);
	hunt->shares += space_free_share(&pass->view->space, 0, pass->suits);
	return hunt->count && hunt->shares >= hunt->least;
}
