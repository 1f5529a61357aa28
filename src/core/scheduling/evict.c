/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who makes room. For a blocked job a set of running jobs is sought that lets it start when they are gone:
 *
 *	candidates	in order: places promised to lower ranks of its own queue; those that leave anyhow; best-effort;
 *			lower ranks of its own queue and work of queues above their share, by cost (GPU-time lost since
 *			the last checkpoint, and the restart)
 *	units		where: single nodes for a job of one task, domains of the level it requires, else the cluster
 *	solve		in a unit, candidates are given back in order until the job fits (proved on the space itself), then
 *			each is taken back, the dearest first, and kept out of the set when the job fits all the same; and
 *			once more the other way: all are given back and the cheapest taken back first, which finds the one
 *			wide victim that is worth less than many small ones
 *	choose		the cheapest of the solutions of the first units that hold enough
 *
 * So every set is sufficient, and no part of it is (minimal). Worked example in README.md. Nothing is touched before
 * the set is proved. A set is refused when a victim's queue would be entitled to take the place back.
 */
#include <string.h>

#include "base/check.h"
#include "core/scheduling/pass.h"

enum { SOLUTIONS_MAX = 8, TRIES_MAX = 64, OTHER_WAY_MAX = 128 };

struct solution {
	uint32_t *chosen; /* indices of candidates */
	uint32_t count;
	int64_t cost; /* of standard work */
	int64_t spare_cost; /* of best-effort work */
	struct placement place;
};

struct hunt {
	struct pass *pass;
	uint32_t job;
	const struct job *j;
	const struct shape *shape;
	uint64_t rank;
	int64_t need; /* share of its least width */
	bool room_short;
	struct victim *fresh; /* promises and those that come; then follow the kept ones */
	uint32_t fresh_count, count;
	uint32_t *scratch; /* indices of candidates while a unit is solved */
	int64_t gpus; /* that all candidates hold */
};

static const struct victim *candidate(const struct hunt *hunt, uint32_t i)
{
	const struct candidates *kept = &hunt->pass->kept;

	return i < hunt->fresh_count ? &hunt->fresh[i]
				     : &kept->list[kept->first + i - hunt->fresh_count];
}

/* --- candidates -------------------------------------------------------------------------------------------- */

int64_t victim_cost(const struct facts *facts, const struct job *job, const struct attempt *attempt)
{
	int64_t gpus = (int64_t)shape_get(facts, job->shape)->gpus * attempt->tasks;
	int64_t saved_ms = attempt_saved_ms(facts, job, attempt);
	int64_t since_ms = saved_ms > attempt->released_ms ? saved_ms : attempt->released_ms;
	int64_t lost_ms = attempt->released_ms ? facts->now_ms - since_ms : 0;

	return gpus * (lost_ms + (int64_t)job->restart_cost_ms);
}

bool pass_job_leaves(const struct pass *pass, uint32_t job)
{
	return pass->view->jobs.at[job].leaving ||
	       (pass->leaving && pass->leaving[job / 64] >> job % 64 & 1);
}

static struct victim victim_of(const struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct job_view *jv = &pass->view->jobs.at[id];
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);

	return (struct victim){ .job = id,
				.queue = jv->queue,
				.attempt = attempt,
				.shape = shape_get(pass->facts, job->shape),
				.rank = jv->rank,
				.share = jv->share,
				.tier = jv->tier,
				.cost = victim_cost(pass->facts, job, attempt) };
}

/* Cheaper first; among equals the later submission. */
static bool victim_before(const struct victim *a, const struct victim *b)
{
	if ((a->promise != NULL) != (b->promise != NULL))
		return a->promise != NULL;
	if (a->coming != b->coming)
		return a->coming;
	if ((a->tier == TIER_BEST_EFFORT) != (b->tier == TIER_BEST_EFFORT))
		return a->tier == TIER_BEST_EFFORT;
	if (a->cost != b->cost)
		return a->cost < b->cost;
	return a->job > b->job;
}

static void victims_sort(struct victim *list, struct victim *room, uint32_t count)
{
	uint32_t half = count / 2, i = 0, j = half, n = 0;

	if (count < 2)
		return;
	victims_sort(list, room, half);
	victims_sort(list + half, room, count - half);
	while (i < half && j < count)
		room[n++] = victim_before(&list[j], &list[i]) ? list[j++] : list[i++];
	while (i < half)
		room[n++] = list[i++];
	while (j < count)
		room[n++] = list[j++];
	memcpy(list, room, n * sizeof(*list));
}

static void victim_add(struct pass *pass, uint32_t list, uint32_t id)
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
	pass->victims[list][count] = victim_of(pass, id);
	pass->victim_counts[list]++;
}

/* Standard work younger than min_runtime is safe; *ret_ms becomes the time when the first of it no longer is. */
static bool is_young(const struct pass *pass, const struct job_view *jv, int64_t *ret_ms)
{
	int64_t mature_ms = jv->since_ms + pass->facts->policy.min_runtime_ms;

	if (jv->tier == TIER_BEST_EFFORT || mature_ms <= pass->facts->now_ms)
		return false;
	if (!*ret_ms || mature_ms < *ret_ms)
		*ret_ms = mature_ms;
	return true;
}

static void victims_read(struct pass *pass, uint32_t list, uint32_t queue, bool spare)
{
	struct sorted_walk walk;

	for (bool any =
		     sorted_begin(&pass->view->pool, pass->view->queues.at[queue].running, &walk);
	     any; any = sorted_next(&pass->view->pool, &walk)) {
		const struct job_view *jv = &pass->view->jobs.at[walk.id];
		const struct attempt *attempt;

		if (jv->tier == TIER_CRITICAL || (jv->tier != TIER_BEST_EFFORT && spare))
			return; /* ranks rise: no more that may go */
		if ((jv->tier == TIER_BEST_EFFORT) != spare || pass_job_leaves(pass, walk.id) ||
		    is_young(pass, jv, &pass->victims_mature_ms[list]))
			continue;
		attempt = attempt_get(pass->facts, (struct attempt_id){ jv->attempt });
		if (!attempt->unreachable && !attempt->exited)
			victim_add(pass, list, walk.id);
	}
}

/* List 0: best-effort work of all queues. List q: standard work of queue q. Made once per pass. */
static void victims_make(struct pass *pass, uint32_t list)
{
	uint32_t queues = pass->standings.count;

	if (!pass->victims) {
		pass->victims = arena_new_array(pass->arena, struct victim *, queues);
		pass->victim_counts = arena_new_array(pass->arena, uint32_t, queues);
		pass->victim_rooms = arena_new_array(pass->arena, uint32_t, queues);
		pass->victims_made = arena_new_array(pass->arena, bool, queues);
		pass->victims_mature_ms = arena_new_array(pass->arena, int64_t, queues);
	}
	if (pass->victims_made[list])
		return;
	pass->victims_made[list] = true;
	for (uint32_t q = list ? list : 1; q < queues && (!list || q == list); q++)
		victims_read(pass, list, q, list == 0);
	if (pass->victim_counts[list] > 1)
		victims_sort(pass->victims[list],
			     arena_new_array(pass->arena, struct victim, pass->victim_counts[list]),
			     pass->victim_counts[list]);
}

static void coming_add(struct pass *pass, uint32_t id)
{
	struct victim v = victim_of(pass, id);

	v.coming = true;
	v.cost = 0;
	if (pass->coming_count == pass->coming_room) {
		struct victim *old = pass->coming;

		pass->coming_room = pass->coming_room ? pass->coming_room * 2 : 16;
		pass->coming = arena_new_array(pass->arena, struct victim, pass->coming_room);
		if (old)
			memcpy(pass->coming, old, pass->coming_count * sizeof(*old));
	}
	pass->coming[pass->coming_count++] = v;
}

/* Some GPU it leaves is promised to nobody (or it holds none: then its processors may matter). */
static bool coming_has_surplus(const struct pass *pass, const struct victim *v)
{
	for (uint32_t i = 0; i < v->attempt->tasks; i++) {
		const struct task *task =
			table_get(&pass->facts->tasks, v->attempt->first_task + i);
		int32_t rank = space_rank(&pass->view->space, task->node.v);

		if (rank != RANK_NONE &&
		    (!task->gpu_mask ||
		     (task->gpu_mask & ~space_at(&pass->view->space, (uint32_t)rank)->promised)))
			return true;
	}
	return false;
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
}

/* Is the candidate one for this job as the queues stand now (some candidates may be given back already)? */
static bool candidate_may_go(const struct hunt *hunt, const struct victim *v)
{
	const struct standings *s = &hunt->pass->standings;
	uint32_t top;

	if (v->promise || v->coming)
		return true;
	if (v->job && pass_job_leaves(hunt->pass, v->job))
		return false;
	if (v->tier == TIER_BEST_EFFORT)
		return true;
	if (v->queue == hunt->j->queue.v)
		return v->rank < hunt->rank;
	top = queue_meet(hunt->pass->view, hunt->j->queue.v, v->queue);
	return standing_within(s, hunt->j->queue.v, top, hunt->need) &&
	       standing_above(s, v->queue, top);
}

static bool queue_may_give(const struct hunt *hunt, uint32_t queue)
{
	struct victim v = { .queue = queue, .tier = TIER_STANDARD };
	uint32_t running = hunt->pass->view->queues.at[queue].running;

	if (queue == hunt->j->queue.v) /* standard work of a lower rank */
		return sorted_before(&hunt->pass->view->pool, running, hunt->rank, 0) >
		       sorted_before(&hunt->pass->view->pool, running,
				     (uint64_t)TIER_STANDARD << 32, 0);
	return hunt->pass->view->queues.at[queue].running && candidate_may_go(hunt, &v);
}

/* Promises to lower ranks of the same queue (the place goes to the higher one), and those that leave anyhow. */
static void fresh_make(struct hunt *hunt)
{
	struct pass *pass = hunt->pass;
	uint32_t promises;

	hunt->fresh = arena_new_array(pass->arena, struct victim,
				      (size_t)pass->view->promise_count + pass->coming_count + 1);
	for (uint32_t i = 0; i < pass->view->promise_count; i++) {
		const struct promise_view *p = &pass->view->promises.at[i];
		uint64_t rank = job_rank(job_get(pass->facts, (struct job_id){ p->job }));

		if (p->queue != hunt->j->queue.v || rank >= hunt->rank || pass->promises_gone[i])
			continue;
		hunt->fresh[hunt->fresh_count++] = (struct victim){ .job = p->job,
								    .queue = p->queue,
								    .promise = p,
								    .rank = rank,
								    .share = p->share,
								    .tier = p->tier };
		hunt->gpus += p->share / GPU_SHARE;
	}
	promises = hunt->fresh_count;
	for (uint32_t i = 0; i < pass->coming_count; i++) {
		if (!promises && !coming_has_surplus(pass, &pass->coming[i]))
			continue;
		hunt->fresh[hunt->fresh_count++] = pass->coming[i];
		hunt->gpus += pass->coming[i].share / GPU_SHARE;
	}
}

static void list_add(struct hunt *hunt, uint32_t list)
{
	struct pass *pass = hunt->pass;
	struct candidates *kept = &pass->kept;

	victims_make(pass, list);
	if (pass->victims_mature_ms[list])
		pass_wake(pass, pass->victims_mature_ms[list]);
	for (uint32_t i = 0; i < pass->victim_counts[list]; i++) {
		const struct victim *v = &pass->victims[list][i];

		if (pass_job_leaves(pass, v->job) ||
		    (v->queue == hunt->j->queue.v && v->tier != TIER_BEST_EFFORT &&
		     v->rank >= hunt->rank))
			continue;
		kept->list[kept->count++] = *v;
		kept->gpus += v->share / GPU_SHARE;
	}
}

static uint32_t list_room(struct hunt *hunt, uint32_t list)
{
	victims_make(hunt->pass, list);
	return hunt->pass->victim_counts[list];
}

/* Best-effort work, lower ranks of the queue, and queues above their share, in order. */
static void kept_make(struct hunt *hunt)
{
	struct pass *pass = hunt->pass;
	struct candidates *kept = &pass->kept;
	uint32_t room = list_room(hunt, 0), lists = 0, queues = pass->standings.count;

	for (uint32_t q = 1; q < queues; q++)
		room += queue_may_give(hunt, q) ? list_room(hunt, q) : 0;
	*kept = (struct candidates){ .queue = hunt->j->queue.v,
				     .rank = hunt->rank,
				     .starts = pass->starts,
				     .need = hunt->need };
	kept->list = arena_new_array(pass->arena, struct victim, room + 1);
	list_add(hunt, 0);
	for (uint32_t q = 1; q < queues; q++) {
		uint32_t before = kept->count;

		if (queue_may_give(hunt, q))
			list_add(hunt, q);
		lists += kept->count > before;
	}
	if (lists > 1)
		victims_sort(kept->list, arena_new_array(pass->arena, struct victim, room + 1),
			     kept->count);
}

/* Room for the indices of all candidates. */
static void scratch_make(struct hunt *hunt)
{
	struct candidates *kept = &hunt->pass->kept;

	if (kept->scratch_room < hunt->count) {
		kept->scratch_room = hunt->count + hunt->count / 2 + 16;
		kept->scratch = arena_new_array(hunt->pass->arena, uint32_t, kept->scratch_room);
	}
	hunt->scratch = kept->scratch;
}

static bool kept_serves(const struct hunt *hunt)
{
	const struct candidates *kept = &hunt->pass->kept;

	return kept->list && kept->queue == hunt->j->queue.v && kept->rank == hunt->rank &&
	       kept->starts == hunt->pass->starts && kept->need <= hunt->need;
}

/* All candidates. False when they can't be enough, whatever is chosen. */
static bool candidates_make(struct hunt *hunt)
{
	struct pass *pass = hunt->pass;
	struct candidates *kept = &pass->kept;
	uint64_t classes;

	coming_make(pass);
	fresh_make(hunt);
	if (!kept_serves(hunt))
		kept_make(hunt);
	while (kept->first < kept->count && pass_job_leaves(pass, kept->list[kept->first].job))
		kept->gpus -= kept->list[kept->first++].share / GPU_SHARE;
	hunt->count = hunt->fresh_count + kept->count - kept->first;
	hunt->gpus += kept->gpus;
	space_classes_of(&pass->view->space, hunt->shape, &classes);
	hunt->gpus += space_free_gpus(&pass->view->space, 0, classes);
	return hunt->count && hunt->gpus >= hunt->need / GPU_SHARE;
}

/* Known from another job of the queue: lower ranks and larger needs find no more candidates. */
static bool is_barren(const struct hunt *hunt)
{
	const struct barren *b = hunt->pass->barren ? &hunt->pass->barren[hunt->j->queue.v] : NULL;

	return b && b->known && b->changes == hunt->pass->changes && hunt->rank <= b->rank &&
	       hunt->need >= b->need && b->gpus < hunt->need / GPU_SHARE;
}

static void barren_note(struct hunt *hunt)
{
	struct pass *pass = hunt->pass;
	int64_t gpus = hunt->count ? hunt->gpus : -1;

	if (!pass->barren)
		pass->barren = arena_new_array(pass->arena, struct barren, pass->standings.count);
	pass->barren[hunt->j->queue.v] = (struct barren){ .rank = hunt->rank,
							  .need = hunt->need,
							  .gpus = gpus,
							  .changes = pass->changes,
							  .known = true };
}

/* --- giving and taking back -------------------------------------------------------------------------------- */

static void tasks_move(struct hunt *hunt, const struct victim *v, bool give)
{
	struct space *space = &hunt->pass->view->space;

	for (uint32_t i = 0; i < v->attempt->tasks; i++) {
		const struct task *task =
			table_get(&hunt->pass->facts->tasks, v->attempt->first_task + i);
		int32_t rank = space_rank(space, task->node.v);

		if (rank == RANK_NONE)
			continue;
		if (give)
			space_give(space, (uint32_t)rank, task->gpu_mask, v->shape->cpu_milli,
				   v->shape->memory_mib);
		else
			space_take(space, (uint32_t)rank, task->gpu_mask, v->shape->cpu_milli,
				   v->shape->memory_mib);
	}
}

static void promise_move(struct hunt *hunt, const struct promise_view *p, bool give)
{
	struct space *space = &hunt->pass->view->space;

	for (uint32_t i = 0; i < p->tasks; i++) {
		int32_t rank = space_rank(space, p->numbers.at[i]);

		if (rank == RANK_NONE)
			continue;
		if (give)
			space_unpromise(space, (uint32_t)rank, p->numbers.at[p->tasks + i],
					p->cpu_milli, p->ram_mib);
		else
			space_promise(space, (uint32_t)rank, p->numbers.at[p->tasks + i],
				      p->cpu_milli, p->ram_mib);
	}
}

static void victim_move(struct hunt *hunt, const struct victim *v, bool give)
{
	if (v->promise) {
		promise_move(hunt, v->promise, give);
		standing_promise(&hunt->pass->standings, v->queue, v->tier,
				 give ? -v->share : v->share);
		return;
	}
	tasks_move(hunt, v, give);
	if (!v->coming)
		standing_leave(&hunt->pass->standings, v->queue, v->tier,
			       give ? v->share : -v->share);
}

static bool room_is_enough(const struct hunt *hunt)
{
	return quota_room(&hunt->pass->standings, hunt->j->queue.v, hunt->j->tier, true, hunt->need,
			  NULL) >= hunt->need;
}

/* In a unit: 0 is the whole cluster, else 1 + rank of a node, or 1 + index of a domain. */
static struct place_request unit_request(const struct hunt *hunt, uint32_t unit, bool nodes)
{
	struct place_request request =
		pass_request(hunt->pass, hunt->shape, hunt->shape->tasks_min);

	if (unit && nodes)
		request.rank = (int32_t)unit - 1;
	else if (unit)
		request.domain = unit - 1;
	return request;
}

static bool fits(struct hunt *hunt, const struct place_request *request)
{
	hunt->pass->work++;
	return room_is_enough(hunt) && place_bound(&hunt->pass->view->space, request, NULL) == 0 &&
	       place_find(&hunt->pass->view->space, request, NULL, NULL, NULL) == 0;
}

static bool victim_touches(const struct hunt *hunt, const struct victim *v,
			   const struct place_request *request)
{
	const struct space *space = &hunt->pass->view->space;
	const struct domain *d = &space->domains.at[request->domain];

	if (v->promise || (request->domain == 0 && request->rank == RANK_NONE))
		return true;
	for (uint32_t i = 0; i < v->attempt->tasks; i++) {
		const struct task *task =
			table_get(&hunt->pass->facts->tasks, v->attempt->first_task + i);
		int32_t rank = space_rank(space, task->node.v);

		if (rank != RANK_NONE &&
		    (request->rank == RANK_NONE
			     ? (uint32_t)rank >= d->first && (uint32_t)rank < d->end
			     : rank == request->rank))
			return true;
	}
	return false;
}

/* --- solving a unit -------------------------------------------------------------------------------------------- */

/* Nobody in the set may be entitled to come back at once at the job's expense. */
static bool set_is_final(const struct hunt *hunt, const uint32_t *chosen, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct victim *v = candidate(hunt, chosen[i]);

		if (v->promise || v->coming || v->tier == TIER_BEST_EFFORT ||
		    v->queue == hunt->j->queue.v)
			continue;
		if (standing_within(&hunt->pass->standings, v->queue,
				    queue_meet(hunt->pass->view, hunt->j->queue.v, v->queue),
				    v->share))
			return false;
	}
	return true;
}

/* Gives candidates back in order until the job fits (or all); the stride grows so that large sets need few trials. */
static bool give_until_fit(struct hunt *hunt, const struct place_request *request, uint32_t end,
			   bool all, uint32_t *chosen, uint32_t *count)
{
	uint32_t stride = 1, since = 0;

	for (uint32_t i = 0; i < end; i++) {
		const struct victim *v = candidate(hunt, i);

		if (!victim_touches(hunt, v, request) || !candidate_may_go(hunt, v))
			continue;
		victim_move(hunt, v, true);
		chosen[(*count)++] = i;
		if (++since < stride || all)
			continue;
		if (fits(hunt, request))
			return true;
		if (*count >= 64)
			stride = *count / 16;
		since = 0;
	}
	return since && fits(hunt, request);
}

/* Takes the victim at `i` of the chosen back for good when the job fits without it. */
static void take_back_one(struct hunt *hunt, const struct place_request *request, uint32_t *chosen,
			  uint32_t i)
{
	victim_move(hunt, candidate(hunt, chosen[i]), false);
	if (fits(hunt, request))
		chosen[i] = UINT32_MAX;
	else
		victim_move(hunt, candidate(hunt, chosen[i]), true);
}

/* Each in turn, from the dearest or from the cheapest: none that is left can be missed. */
static uint32_t take_back(struct hunt *hunt, const struct place_request *request, bool cheap_first,
			  uint32_t *chosen, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		take_back_one(hunt, request, chosen, cheap_first ? i : count - 1 - i);
	for (uint32_t i = 0; i < count; i++)
		if (chosen[i] != UINT32_MAX)
			chosen[kept++] = chosen[i];
	return kept;
}

static bool unit_solve(struct hunt *hunt, uint32_t unit, bool nodes, uint32_t end, bool cheap_first,
		       struct solution *ret)
{
	struct pass *pass = hunt->pass;
	struct place_request request = unit_request(hunt, unit, nodes);
	uint32_t mark = space_mark(&pass->view->space), count = 0;
	bool good;

	*ret = (struct solution){ .chosen = hunt->scratch };
	good = give_until_fit(hunt, &request, end, cheap_first, ret->chosen, &count) &&
	       (!cheap_first || count <= OTHER_WAY_MAX);
	if (good) {
		ret->count = count = take_back(hunt, &request, cheap_first, ret->chosen, count);
		good = set_is_final(hunt, ret->chosen, count) &&
		       place_find(&pass->view->space, &request, pass->arena, &ret->place, NULL) ==
			       0;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct victim *v = candidate(hunt, ret->chosen[i]);

		if (v->tier == TIER_BEST_EFFORT)
			ret->spare_cost += v->cost;
		else
			ret->cost += v->cost;
		if (v->promise)
			standing_promise(&pass->standings, v->queue, v->tier, v->share);
		else if (!v->coming)
			standing_leave(&pass->standings, v->queue, v->tier, -v->share);
	}
	space_rollback(&pass->view->space, mark);
	return good;
}

static bool solution_better(const struct solution *a, const struct solution *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	if (a->spare_cost != b->spare_cost)
		return a->spare_cost < b->spare_cost;
	return a->count < b->count;
}

/* --- units ---------------------------------------------------------------------------------------------------------- */

static bool units_are_nodes(const struct shape *shape)
{
	return shape->tasks_min == 1 || shape->require == LEVEL_NODE ||
	       shape->require == LEVEL_ISLAND;
}

static uint32_t unit_of(const struct hunt *hunt, uint32_t rank, bool nodes)
{
	return 1 + (nodes ? rank
			  : space_at(&hunt->pass->view->space, rank)->domain[hunt->shape->require]);
}

static uint32_t unit_free(const struct hunt *hunt, uint32_t unit, bool nodes)
{
	const struct space *space = &hunt->pass->view->space;
	uint64_t classes;

	if (nodes)
		return (uint32_t)__builtin_popcount(place_node_free(space_at(space, unit - 1)));
	space_classes_of(space, hunt->shape, &classes);
	return (uint32_t)space_free_gpus(space, unit - 1, classes);
}

/* GPUs that would be free in the unit when the candidates seen so far were gone. */
static uint32_t *unit_tally(struct hunt *hunt, uint32_t unit, bool nodes)
{
	struct pass *pass = hunt->pass;
	uint32_t units = pass->view->space.node_count + pass->view->space.domain_count + 1;

	if (!pass->tally) {
		pass->tally = arena_new_array(pass->arena, uint32_t, units);
		pass->tally_stamp = arena_new_array(pass->arena, uint32_t, units);
	}
	if (pass->tally_stamp[unit] != pass->stamp) {
		pass->tally_stamp[unit] = pass->stamp;
		pass->tally[unit] = unit_free(hunt, unit, nodes);
	}
	return &pass->tally[unit];
}

struct choice {
	struct solution best;
	uint32_t solved, tries;
	bool any;
};

static bool unit_try_one(struct hunt *hunt, uint32_t unit, bool nodes, uint32_t end,
			 bool cheap_first, struct choice *choice)
{
	struct solution solution;
	uint32_t *chosen;

	if (!unit_solve(hunt, unit, nodes, end, cheap_first, &solution))
		return false;
	if (!choice->any || solution_better(&solution, &choice->best)) {
		chosen = arena_new_array(hunt->pass->arena, uint32_t, solution.count + 1);
		memcpy(chosen, solution.chosen, solution.count * sizeof(*chosen));
		choice->best = solution;
		choice->best.chosen = chosen;
	}
	choice->any = true;
	return true;
}

/* Both ways; the other way can only be better when the first found more than one victim. */
static void unit_try(struct hunt *hunt, uint32_t unit, bool nodes, uint32_t end,
		     struct choice *choice)
{
	choice->tries++;
	if (!unit_try_one(hunt, unit, nodes, end, false, choice))
		return;
	choice->solved++;
	if (choice->best.count > 1)
		(void)unit_try_one(hunt, unit, nodes, end, true, choice);
}

/* The victim's next task lies in the same unit: the tally is not complete before that one. */
static bool same_unit_follows(const struct hunt *hunt, const struct victim *v, uint32_t task,
			      uint32_t unit, bool nodes)
{
	const struct task *next;
	int32_t rank;

	if (task + 1 >= v->attempt->tasks)
		return false;
	next = table_get(&hunt->pass->facts->tasks, v->attempt->first_task + task + 1);
	rank = space_rank(&hunt->pass->view->space, next->node.v);
	return rank != RANK_NONE && unit_of(hunt, (uint32_t)rank, nodes) == unit;
}

/* Promised GPUs that are free, or will be when their holders are gone. */
static void promise_tally(struct hunt *hunt, const struct promise_view *p, bool nodes)
{
	for (uint32_t i = 0; i < p->tasks; i++) {
		int32_t rank = space_rank(&hunt->pass->view->space, p->numbers.at[i]);

		if (rank != RANK_NONE)
			*unit_tally(hunt, unit_of(hunt, (uint32_t)rank, nodes), nodes) +=
				(uint32_t)__builtin_popcount(p->numbers.at[p->tasks + i]);
	}
}

/* Adds one candidate to the tallies of the units it touches, and tries those that may hold enough now. */
static void candidate_tally(struct hunt *hunt, uint32_t index, bool nodes, struct choice *choice)
{
	const struct victim *v = candidate(hunt, index);
	int64_t need = hunt->need / GPU_SHARE;

	if (v->promise) {
		promise_tally(hunt, v->promise, nodes);
		return;
	}
	for (uint32_t i = 0;
	     i < v->attempt->tasks && choice->solved < SOLUTIONS_MAX && choice->tries < TRIES_MAX;
	     i++) {
		const struct task *task =
			table_get(&hunt->pass->facts->tasks, v->attempt->first_task + i);
		int32_t rank = space_rank(&hunt->pass->view->space, task->node.v);
		const struct place_node *node;
		uint32_t unit, *tally;

		if (rank == RANK_NONE)
			continue;
		node = space_at(&hunt->pass->view->space, (uint32_t)rank);
		unit = unit_of(hunt, (uint32_t)rank, nodes);
		tally = unit_tally(hunt, unit, nodes);
		*tally += (uint32_t)__builtin_popcount(task->gpu_mask & node->usable &
						       ~node->promised);
		if ((int64_t)*tally >= need && !same_unit_follows(hunt, v, i, unit, nodes))
			unit_try(hunt, unit, nodes, index + 1, choice);
	}
}

/* Any further solution costs at least what its last candidate costs. */
static bool search_is_over(const struct hunt *hunt, uint32_t index, const struct choice *choice)
{
	const struct victim *v = candidate(hunt, index);

	if (choice->solved >= SOLUTIONS_MAX || choice->tries >= TRIES_MAX)
		return true;
	if (!choice->any || v->promise || v->coming)
		return false;
	if (v->tier == TIER_BEST_EFFORT)
		return choice->best.cost == 0 && v->cost >= choice->best.spare_cost;
	return v->cost >= choice->best.cost;
}

static bool hunt_run(struct hunt *hunt, struct solution *ret)
{
	bool nodes = units_are_nodes(hunt->shape);
	struct choice choice = { .any = false };

	if (hunt->room_short || (!nodes && !hunt->shape->require) || hunt->shape->gpus == 0) {
		unit_try(hunt, 0, false, hunt->count, &choice);
	} else {
		hunt->pass->stamp++;
		for (uint32_t i = 0; i < hunt->count && !search_is_over(hunt, i, &choice); i++)
			candidate_tally(hunt, i, nodes, &choice);
	}
	*ret = choice.best;
	return choice.any;
}

/* --- carrying it out --------------------------------------------------------------------------------------------------- */

static void promise_emit(struct hunt *hunt, const struct solution *solution)
{
	struct pass *pass = hunt->pass;
	uint32_t tasks = solution->place.count;
	int64_t *nodes = arena_new_array(pass->arena, int64_t, tasks),
		*masks = arena_new_array(pass->arena, int64_t, tasks);
	int64_t *victims = arena_new_array(pass->arena, int64_t, solution->count + 1);
	uint32_t count = 0;
	struct event_promise_made *e = &pass_emit(pass, EVENT_PROMISE_MADE)->promise_made;

	for (uint32_t i = 0; i < tasks; i++) {
		nodes[i] = space_at(&pass->view->space, solution->place.ranks[i])->node;
		masks[i] = solution->place.masks[i];
	}
	for (uint32_t i = 0; i < solution->count; i++)
		if (!candidate(hunt, solution->chosen[i])->promise)
			victims[count++] =
				job_get(pass->facts,
					(struct job_id){
						candidate(hunt, solution->chosen[i])->job })
					->attempt.v;
	*e = (struct event_promise_made){ .job = hunt->job,
					  .nodes = nodes,
					  .nodes_count = tasks,
					  .masks = masks,
					  .masks_count = tasks,
					  .victims = victims,
					  .victims_count = count };
}

/* The lower job's promise goes; it waits again, and the next pass looks for another place for it. */
static void promise_take(struct hunt *hunt, const struct promise_view *p)
{
	struct pass *pass = hunt->pass;

	pass->promises_gone[p - pass->view->promises.at] = true;
	pass_emit(pass, EVENT_PROMISE_DROPPED)->promise_dropped.job = p->job;
	promise_move(hunt, p, true);
	standing_promise(&pass->standings, p->queue, p->tier, -p->share);
	pass->more = true;
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
	standing_promise(&pass->standings, hunt->j->queue.v, hunt->j->tier, hunt->need);
	for (uint32_t i = 0; i < solution->count; i++) {
		const struct victim *v = candidate(hunt, solution->chosen[i]);
		struct victim added;

		if (v->promise || v->coming)
			continue;
		lifecycle_evict(pass, v->job, hunt->job);
		standing_leave(&pass->standings, v->queue, v->tier, v->share);
		pass->leaving[v->job / 64] |= UINT64_C(1) << v->job % 64;
		added = *v;
		if (coming_has_surplus(pass, &added))
			coming_add(pass, added.job);
	}
}

int evict_for(struct pass *pass, uint32_t job, bool room_short)
{
	const struct job *j = job_get(pass->facts, (struct job_id){ job });
	struct hunt hunt = { .pass = pass,
			     .job = job,
			     .j = j,
			     .shape = shape_get(pass->facts, j->shape),
			     .rank = job_rank(j),
			     .room_short = room_short };
	struct solution solution;

	if (!j->preempts || j->tier == TIER_BEST_EFFORT || pass->searches >= EVICT_SEARCHES_MAX)
		return EVICT_NO;
	hunt.need = shape_share(hunt.shape, hunt.shape->tasks_min);
	if (is_barren(&hunt))
		return EVICT_NO;
	if (!candidates_make(&hunt)) {
		barren_note(&hunt);
		return EVICT_NO;
	}
	scratch_make(&hunt);
	if (!hunt_run(&hunt, &solution)) {
		pass->searches++;
		return EVICT_NO;
	}
	hunt_carry_out(&hunt, &solution);
	return 0;
}
