/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may be moved: work that makes checkpoints and is not critical, that runs with all its ranks and is not about to leave. Not
 * standard work younger than min_runtime, nor what was moved within the last hour, nor what could not start again now: held, to be
 * cancelled, outside its window.
 *
 * Work on slices of GPUs stays: into which slices a GPU is cut is planned from what waits (core/partitioning).
 * So does work that bears labels or keeps away from some (apart.h): where it may lie depends on who else moves.
 *
 * A job keeps its model of GPUs and goes to no worse place: on no more hosts, within no wider level.
 */
#include <string.h>

#include "core/rearranging/plan.h"

enum { ROOM_MODELS = 4 };

/* --- who ------------------------------------------------------------------------------------------------------- */

static void again_note(struct movers *movers, int64_t at_ms)
{
	if (!movers->again_ms || at_ms < movers->again_ms)
		movers->again_ms = at_ms;
}

/* When it was moved here, if it was; else 0. */
static int64_t moved_ms(const struct facts *facts, const struct attempt *attempt)
{
	const struct attempt *before;

	if (!attempt->previous)
		return 0;
	before = attempt_get(facts, (struct attempt_id){ attempt->previous });
	return before->state == ATTEMPT_OVER && before->why == STOP_MOVED ? before->ended_ms : 0;
}

/* Left alone for a time, because it is young or was moved. */
static bool has_rest(const struct pass *pass, struct movers *movers, const struct job_view *jv,
		     const struct attempt *attempt)
{
	int64_t now_ms = pass->facts->now_ms, moved = moved_ms(pass->facts, attempt),
		until_ms = jv->tier == TIER_BEST_EFFORT
				   ? 0
				   : jv->since_ms + pass->facts->policy.min_runtime_ms;

	if (moved && moved + MOVED_REST_MS > until_ms)
		until_ms = moved + MOVED_REST_MS;
	if (until_ms <= now_ms)
		return false;
	again_note(movers, until_ms);
	return true;
}

static bool job_may_move(struct pass *pass, const struct job *job, const struct attempt *attempt)
{
	if (!job->checkpoints || job->tier == TIER_CRITICAL || job->cancel_asked || job->held ||
	    job->promise)
		return false;
	if (attempt->state != ATTEMPT_ACTIVE || attempt->warned_ms || attempt->unreachable ||
	    attempt->exited || attempt->leaving || attempt->lacks_ms ||
	    attempt->started != attempt->tasks)
		return false;
	return standing_is_open(&pass->standings, job);
}

static const struct task *mover_task(const struct pass *pass, const struct mover *m, uint32_t i)
{
	return table_get(&pass->facts->tasks, m->attempt->first_task + i);
}

static uint32_t task_rank(const struct pass *pass, const struct mover *m, uint32_t i)
{
	return i ? (uint32_t)space_rank(&pass->view->space, mover_task(pass, m, i)->node.v)
		 : m->first;
}

/* The widest level in which all ranks are one place, from the narrowest on. */
static uint8_t ranks_level(const struct space *space, const uint32_t *ranks, uint32_t count)
{
	for (uint32_t level = space->level_count + 2; level-- > 0;) {
		bool same = true;

		for (uint32_t i = 1; i < count && same; i++)
			same = level > space->level_count
				       ? ranks[i] == ranks[0]
				       : space_at(space, ranks[i])->domain[level] ==
						 space_at(space, ranks[0])->domain[level];
		if (same)
			return level > space->level_count ? LEVEL_NODE : (uint8_t)level;
	}
	return 0;
}

static uint32_t ranks_hosts(const uint32_t *ranks, uint32_t count, uint64_t *seen)
{
	uint32_t hosts = 0;

	for (uint32_t i = 0; i < count; i++) {
		hosts += !(seen[ranks[i] / 64] >> ranks[i] % 64 & 1);
		seen[ranks[i] / 64] |= UINT64_C(1) << ranks[i] % 64;
	}
	for (uint32_t i = 0; i < count; i++)
		seen[ranks[i] / 64] = 0;
	return hosts;
}

/* Where it runs; false: on GPUs of several models, on none, or on nodes that are not there. */
static bool mover_read(struct pass *pass, uint64_t *seen, struct mover *m)
{
	const struct space *space = &pass->view->space;
	uint32_t one, *ranks = m->attempt->tasks > 1
				       ? arena_new_array(pass->arena, uint32_t, m->attempt->tasks)
				       : &one;

	for (uint32_t i = 0; i < m->attempt->tasks; i++) {
		const struct task *task = mover_task(pass, m, i);
		int32_t rank = space_rank(space, task->node.v);
		struct name_id model;

		if (rank == RANK_NONE)
			return false;
		model = space->traits.at[space_at(space, (uint32_t)rank)->traits].model;
		if (i && !name_same(model, m->model))
			return false;
		m->model = model;
		ranks[i] = (uint32_t)rank;
	}
	m->first = ranks[0];
	m->hosts = m->attempt->tasks > 1 ? ranks_hosts(ranks, m->attempt->tasks, seen) : 1;
	m->level = ranks_level(space, ranks, m->attempt->tasks);
	return m->share > 0;
}

/* What the order of movers depends on, close together: all of them are sorted at each look. */
struct mover_key {
	int64_t cost, submitted_ms;
	uint32_t job, index;
};

static bool key_before(const struct pass *pass, const struct mover_key *a,
		       const struct mover_key *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	return a->submitted_ms != b->submitted_ms ? a->submitted_ms > b->submitted_ms
						  : job_is_earlier(pass->facts, b->job, a->job);
}

static void keys_sort(const struct pass *pass, struct mover_key *list, struct mover_key *room,
		      uint32_t count)
{
	uint32_t half = count / 2, i = 0, j = half, n = 0;

	if (count < 2)
		return;
	keys_sort(pass, list, room, half);
	keys_sort(pass, list + half, room, count - half);
	if (!key_before(pass, &list[half], &list[half - 1]))
		return; /* they are in order already */
	while (i < half && j < count)
		room[n++] = key_before(pass, &list[j], &list[i]) ? list[j++] : list[i++];
	while (i < half)
		room[n++] = list[i++];
	while (j < count)
		room[n++] = list[j++];
	memcpy(list, room, n * sizeof(*list));
}

/* Cheapest first; of equal cost the later submission. */
static void movers_sort(struct pass *pass, struct movers *movers)
{
	struct mover_key *keys = arena_new_array(pass->arena, struct mover_key, movers->count + 1);
	struct mover *sorted = arena_new_array(pass->arena, struct mover, movers->count + 1);

	for (uint32_t i = 0; i < movers->count; i++) {
		uint32_t id = movers->list[i].job;

		keys[i] = (struct mover_key){
			.cost = movers->list[i].cost,
			.submitted_ms = job_get(pass->facts, (struct job_id){ id })->submitted_ms,
			.job = id,
			.index = i
		};
	}
	keys_sort(pass, keys, arena_new_array(pass->arena, struct mover_key, movers->count + 1),
		  movers->count);
	for (uint32_t i = 0; i < movers->count; i++)
		sorted[i] = movers->list[keys[i].index];
	movers->list = sorted;
}

/* Whether a task of the shape has a place on free GPUs of a model, as far as that was asked: the last few models. */
struct room_memo {
	struct name_id model[ROOM_MODELS];
	bool has[ROOM_MODELS];
	uint32_t count;
};

/* Nothing is kept from it here, and a place that it would find later it finds now. A gang may keep some of its own places. */
static bool has_room(struct pass *pass, struct room_memo *memos, uint32_t shape_id,
		     const struct mover *m)
{
	struct room_memo *memo = &memos[shape_id];
	struct place_request request;
	uint32_t at = 0;

	if (m->attempt->tasks > 1 || (m->shape->throughput[0] && pass->view->space.several_models))
		return true; /* it may go to a faster model */
	while (at < memo->count && !name_same(memo->model[at], m->model))
		at++;
	if (at < memo->count)
		return memo->has[at];
	at = memo->count < ROOM_MODELS ? memo->count++ : ROOM_MODELS - 1;
	request = pass_request(pass, m->shape, 1);
	request.closed = 0;
	request.model = m->model;
	memo->model[at] = m->model;
	memo->has[at] = place_find(&pass->view->space, &request, NULL, NULL, NULL) == 0;
	pass->work++;
	return memo->has[at];
}

/* What a look shares while it reads who may be moved. */
struct reading {
	struct pass *pass;
	int64_t most;
	uint64_t *seen;
	struct room_memo *memos;
	struct movers *movers;
};

static void job_read(struct reading *r, uint32_t id)
{
	struct pass *pass = r->pass;
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct job_view *jv = job_view_get(pass->view, id);
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);
	struct mover m = { .job = id,
			   .attempt = attempt,
			   .shape = shape_get(pass->facts, job->shape),
			   .share = jv->share };

	pass->looked++;
	if (m.shape->slice || shape_is_marked(m.shape) || !job_may_move(pass, job, attempt))
		return;
	m.cost = victim_cost(pass->facts, job, attempt);
	if (m.cost > r->most || has_rest(pass, r->movers, jv, attempt) ||
	    !mover_read(pass, r->seen, &m))
		return;
	m.boxed = !has_room(pass, r->memos, job->shape.v, &m);
	r->movers->list[r->movers->count++] = m;
}

static void queue_read(struct reading *r, uint32_t queue)
{
	const struct view *view = r->pass->view;
	struct sorted_walk walk;

	for (bool any = sorted_begin(&view->pool, view->queues.at[queue].savers, &walk); any;
	     any = sorted_next(&view->pool, &walk))
		job_read(r, walk.id);
}

/* Ranks of the nodes on which a job that waits might be cleared room, those with most free GPUs first; in the arena. */
static uint32_t *nodes_by_free(struct pass *pass, uint32_t *ret_count)
{
	const struct space *space = &pass->view->space;
	uint32_t *ranks = arena_new_array(pass->arena, uint32_t, space->node_count + 1),
		 *next = arena_new_array(pass->arena, uint32_t, NODE_GPUS_MAX + 2), sum = 0;
	uint64_t classes = 0, suits;

	for (uint32_t i = 0; i < pass->stuck_count; i++) {
		const struct job *job = job_get(pass->facts, (struct job_id){ pass->stuck[i].job });

		space_classes_of(space, shape_get(pass->facts, job->shape), &suits);
		classes |= suits & ~pass->stuck[i].closed;
	}
	for (uint32_t rank = 0; rank < space->node_count; rank++)
		next[bits_count(place_node_free(space_at(space, rank)))]++;
	for (uint32_t free = NODE_GPUS_MAX + 1; free-- > 0;) {
		uint32_t count = next[free];

		next[free] = sum;
		sum += count;
	}
	for (uint32_t rank = 0; rank < space->node_count; rank++)
		ranks[next[bits_count(place_node_free(space_at(space, rank)))]++] = rank;
	*ret_count = 0;
	for (uint32_t i = 0; i < space->node_count; i++) {
		const struct place_node *node = space_at(space, ranks[i]);

		if (node->ready && (node->busy & node->all) && classes >> node->class & 1)
			ranks[(*ret_count)++] = ranks[i];
	}
	return ranks;
}

/*
 * Where very many save, a look reads those on the nodes with most free GPUs: there room comes cheapest. Who has its ranks on several
 * nodes is read once. Work on parts of GPUs is not in the index by node; it stays where it is.
 */
static void nodes_read(struct reading *r)
{
	struct pass *pass = r->pass;
	const struct view *view = pass->view;
	uint64_t *read = arena_new_array(pass->arena, uint64_t, pass->facts->jobs.count / 64 + 1);
	uint32_t count;
	const uint32_t *ranks = nodes_by_free(pass, &count);

	for (uint32_t i = 0; i < count && pass->looked < MOVES_READ_MAX; i++) {
		for (uint32_t gpu = 0; gpu < view->space.gpus_max; gpu++) {
			uint32_t job = view_holder(view, ranks[i], gpu);

			if (!job || read[job / 64] >> job % 64 & 1)
				continue;
			read[job / 64] |= UINT64_C(1) << job % 64;
			job_read(r, job);
		}
	}
}

/* --- by node --------------------------------------------------------------------------------------------------- */

/* Each node of the mover once: calls for its first task there. *ret_share: what it holds of the node. */
static bool is_first_there(const struct pass *pass, const struct mover *m, uint32_t task,
			   uint64_t *seen, uint32_t *ret_rank)
{
	uint32_t rank = task_rank(pass, m, task);

	*ret_rank = rank;
	if (seen[rank / 64] >> rank % 64 & 1)
		return false;
	seen[rank / 64] |= UINT64_C(1) << rank % 64;
	return true;
}

static int64_t task_share(const struct pass *pass, const struct mover *m, uint32_t i)
{
	const struct task *task = mover_task(pass, m, i);

	return task->gpu_part ? task->gpu_part : (int64_t)bits_count(task->gpu_mask) * GPU_SHARE;
}

static void seen_clear(const struct pass *pass, const struct mover *m, uint64_t *seen)
{
	for (uint32_t i = 0; i < m->attempt->tasks; i++)
		seen[task_rank(pass, m, i) / 64] = 0;
}

static void nodes_fill(const struct pass *pass, struct movers *ret, uint32_t index, uint32_t *next,
		       uint64_t *seen)
{
	const struct mover *m = &ret->list[index];
	uint32_t rank;

	for (uint32_t i = 0; i < m->attempt->tasks; i++) {
		if (is_first_there(pass, m, i, seen, &rank))
			ret->at[next[rank]++] =
				(struct node_mover){ .mover = index, .cost = m->cost };
		ret->at[next[rank] - 1].share += task_share(pass, m, i);
		ret->at[next[rank] - 1].cpu_milli += shape_wish(m->shape, i).cpu_milli;
		ret->at[next[rank] - 1].ram_mib += shape_wish(m->shape, i).memory_mib;
		ret->at[next[rank] - 1].mask |= mover_task(pass, m, i)->gpu_mask;
	}
	seen_clear(pass, m, seen);
}

static void nodes_make(struct pass *pass, uint64_t *seen, struct movers *ret)
{
	uint32_t nodes = pass->view->space.node_count, rank, sum = 0;
	uint32_t *next = arena_new_array(pass->arena, uint32_t, nodes + 1);

	ret->first = arena_new_array(pass->arena, uint32_t, nodes + 1);
	ret->ranks = arena_new_array(pass->arena, uint32_t, nodes + 1);
	for (uint32_t k = 0; k < ret->count; k++) {
		for (uint32_t i = 0; i < ret->list[k].attempt->tasks; i++)
			next[task_rank(pass, &ret->list[k], i)] +=
				is_first_there(pass, &ret->list[k], i, seen, &rank);
		seen_clear(pass, &ret->list[k], seen);
	}
	for (rank = 0; rank < nodes; rank++) {
		ret->first[rank] = sum;
		if (next[rank])
			ret->ranks[ret->rank_count++] = rank;
		sum += next[rank];
		next[rank] = ret->first[rank];
	}
	ret->first[nodes] = sum;
	ret->at = arena_new_array(pass->arena, struct node_mover, sum + 1);
	for (uint32_t k = 0; k < ret->count; k++)
		nodes_fill(pass, ret, k, next, seen);
}

static void barred_make(struct pass *pass, struct movers *ret)
{
	const struct space *space = &pass->view->space;

	if (!pass->view->draining)
		return;
	ret->barred = arena_new_array(pass->arena, uint64_t, bits_row(space->node_count) + 1);
	for (uint32_t rank = 0; rank < space->node_count; rank++)
		if (node_has_window(
			    node_get(pass->facts, (struct node_id){ space_at(space, rank)->node })))
			ret->barred[rank / 64] |= UINT64_C(1) << rank % 64;
	for (uint32_t row = 1; row <= pass->facts->bookings.count; row++) {
		const struct booking *b = booking_get(pass->facts, row);

		for (uint32_t i = 0; b->name.v && i < BOOKING_NODES_MAX && b->node[i]; i++) {
			int32_t rank = space_rank(space, b->node[i]);

			if (rank != RANK_NONE)
				ret->barred[rank / 64] |= UINT64_C(1) << rank % 64;
		}
	}
}

/* For nodes and GPUs to be whole though nobody waits (`most` INT64_MAX) all are read. */
void movers_make(struct pass *pass, int64_t most, struct movers *ret)
{
	const struct space *space = &pass->view->space;
	uint64_t *seen = arena_new_array(pass->arena, uint64_t, bits_row(space->node_count) + 1);
	struct room_memo *memos = arena_new_array(pass->arena, struct room_memo,
						  (size_t)pass->facts->shapes.count + 1);
	struct reading r = {
		.pass = pass, .most = most, .seen = seen, .memos = memos, .movers = ret
	};
	uint32_t savers = 0;
	bool few;

	reserve_layer(pass, 0, false);
	blocks_none(pass);
	for (uint32_t q = 1; q < pass->standings.count; q++)
		savers += sorted_size(&pass->view->pool, pass->view->queues.at[q].savers);
	few = most == INT64_MAX || savers <= MOVES_READ_MAX;
	if (!few)
		savers = MOVES_READ_MAX + NODE_GPUS_MAX;
	*ret = (struct movers){ .list = arena_new_array(pass->arena, struct mover, savers + 1) };
	for (uint32_t q = 1; few && q < pass->standings.count; q++)
		queue_read(&r, q);
	if (!few)
		nodes_read(&r);
	movers_sort(pass, ret);
	nodes_make(pass, seen, ret);
	barred_make(pass, ret);
}

/* --- in the space ---------------------------------------------------------------------------------------------- */

static void mover_shift(struct pass *pass, const struct mover *m, bool give)
{
	for (uint32_t i = 0; i < m->attempt->tasks; i++) {
		struct hold hold = task_hold(mover_task(pass, m, i), m->shape, i);

		if (give)
			space_give(&pass->view->space, task_rank(pass, m, i), &hold);
		else
			space_take(&pass->view->space, task_rank(pass, m, i), &hold);
	}
}

void mover_give(struct pass *pass, const struct mover *m)
{
	mover_shift(pass, m, true);
}

void mover_take(struct pass *pass, const struct mover *m)
{
	mover_shift(pass, m, false);
}

void place_keep(struct pass *pass, const struct placement *to, const struct shape *shape)
{
	placement_promise(&pass->view->space, to, shape);
}

void place_free(struct pass *pass, const struct placement *to, const struct shape *shape)
{
	for (uint32_t i = 0; i < to->count; i++) {
		struct hold hold = placement_hold(to, i, shape);

		space_unpromise(&pass->view->space, to->ranks[i], &hold);
	}
}

/* On no more hosts, within no wider level. */
static bool place_is_as_good(const struct pass *pass, const struct mover *m,
			     const struct placement *to)
{
	uint64_t *seen =
		arena_new_array(pass->arena, uint64_t, bits_row(pass->view->space.node_count) + 1);

	return ranks_level(&pass->view->space, to->ranks, to->count) >= m->level &&
	       ranks_hosts(to->ranks, to->count, seen) <= m->hosts;
}

static bool find_for(struct pass *pass, struct place_request request, const struct mover *m,
		     struct placement *ret)
{
	bool found;

	request.closed = 0;
	request.model = m->model;
	pass->work++;
	mover_give(pass, m);
	found = place_find(&pass->view->space, &request, pass->arena, ret, NULL) == 0;
	mover_take(pass, m);
	return found && place_is_as_good(pass, m, ret);
}

bool mover_find(struct pass *pass, const uint64_t *barred, const struct mover *m,
		struct placement *ret)
{
	struct place_request request = pass_request(pass, m->shape, m->attempt->tasks);

	request.barred = barred;
	return find_for(pass, request, m, ret);
}

bool mover_find_on(struct pass *pass, uint32_t rank, const struct mover *m, struct placement *ret)
{
	struct place_request request = pass_request(pass, m->shape, m->attempt->tasks);

	request.domain = 0;
	request.rank = (int32_t)rank;
	return find_for(pass, request, m, ret);
}
