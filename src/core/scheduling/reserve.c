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
 * Costs: one copy of the space for each pass that looks for reservations, then some 50 ns for each end that comes or is
 * taken back. Jobs that are much alike share the walk.
 *
 * Best-effort work is lent such places and stopped when they are needed, so it is not waited for: it is gone at the
 * beginning, unless the blocked job never evicts.
 *
 * What was found is a fact, and is kept as long as it holds (reserve_kept.c).
 *
 * Where nodes have maintenance announced (blocks.h), more is free after an end, but not always at a later time: whoever begins
 * later meets more of what is announced. Between two such times it is so, and each of these stretches is searched in turn:
 *
 *	4 GPUs, all held until 1 h; `wide` needs them for 2 h; maintenance from 2 h to 3 h.
 *	begin before 0 h: not in its way, but held		0 h to 3 h: in its way		from 3 h on: free
 */
#include <string.h>

#include "base/check.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/window.h"

/* --- what is kept in the space ----------------------------------------------------------------------- */

static void reservation_keep(struct pass *pass, struct reservation *r)
{
	struct space *space = &pass->view->space;

	for (struct kept *k = r->kept; k < r->kept + r->kept_count; k++) {
		k->promised = hold_unpromised(space, k->rank, k->hold);
		space_promise(space, k->rank, &k->promised);
	}
	r->is_kept = true;
	pass->applied++;
}

static void reservation_free(struct pass *pass, struct reservation *r)
{
	for (uint32_t i = 0; i < r->kept_count; i++)
		space_unpromise(&pass->view->space, r->kept[i].rank, &r->kept[i].promised);
	r->is_kept = false;
	pass->applied--;
}

static bool is_in_the_way(const struct reservation *r, int64_t end_ms, bool declared)
{
	if (!end_ms)
		return false;
	return r->collects || (r->claim && !declared) || r->start_ms < end_ms;
}

void reserve_layer(struct pass *pass, int64_t end_ms, bool declared)
{
	if (pass->layer_end_ms == end_ms && pass->layer_declared == declared)
		return;
	pass->layer_end_ms = end_ms;
	pass->layer_declared = declared;
	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		struct reservation *r = &pass->reservations[i];
		bool wanted = is_in_the_way(r, end_ms, declared);

		if (wanted == r->is_kept)
			continue;
		if (wanted)
			reservation_keep(pass, r);
		else
			reservation_free(pass, r);
	}
}

void reserve_want(struct pass *pass, int64_t end_ms, bool declared)
{
	pass->wanted_end_ms = end_ms;
	pass->wanted_declared = declared;
}

void reserve_keep(struct pass *pass)
{
	reserve_layer(pass, pass->wanted_end_ms, pass->wanted_declared);
}

bool reserve_is_in_way(const struct pass *pass)
{
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		if (is_in_the_way(&pass->reservations[i], pass->wanted_end_ms,
				  pass->wanted_declared))
			return true;
	return false;
}

struct verdict reserve_why(const struct pass *pass, int64_t end_ms, bool declared)
{
	struct verdict why = { .code = REASON_RESERVATION, .need = end_ms };

	for (uint32_t i = 0; i < pass->reservation_count && !why.holder.v; i++) {
		const struct reservation *r = &pass->reservations[i];

		if (!is_in_the_way(r, end_ms, declared))
			continue;
		why.holder.v = r->job;
		why.have = r->start_ms;
		why.level = r->collects             ? RESERVED_COLLECTS
			    : r->start_ms >= end_ms ? RESERVED_CLAIM
						    : 0;
	}
	return why;
}

/*
 * Nodes by free GPUs, of each class, as if nothing reserved were kept. Reservations come into the space and go; this stays, until
 * something starts or is promised.
 */
static void bare_make(struct pass *pass)
{
	const struct space *space = &pass->view->space;
	uint32_t width = space->gpus_max + 1;

	if (!pass->bare) {
		pass->bare =
			arena_new_array(pass->arena, uint32_t, (size_t)space->class_count *width);
		pass->bare_masks = arena_new_array(pass->arena, uint32_t, space->node_count + 1);
	}
	memcpy(pass->bare, space_counts(space, 0, 0),
	       (size_t)space->class_count * width * sizeof(*pass->bare));
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		for (uint32_t k = 0;
		     pass->reservations[i].is_kept && k < pass->reservations[i].kept_count; k++)
			pass->bare_masks[pass->reservations[i].kept[k].rank] |=
				pass->reservations[i].kept[k].promised.mask;
	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		const struct reservation *r = &pass->reservations[i];

		for (uint32_t k = 0; r->is_kept && k < r->kept_count; k++) {
			const struct place_node *node = space_at(space, r->kept[k].rank);
			uint32_t *mask = &pass->bare_masks[r->kept[k].rank],
				 *counts = pass->bare + (size_t)node->class * width;

			if (node->ready && *mask) {
				counts[bits_count(place_node_free(node))]--;
				counts[bits_count(node->usable & ~node->busy & ~node->blocked &
						  ~(node->promised & ~*mask))]++;
			}
			*mask = 0;
		}
	}
	pass->bare_changes = pass->changes + 1;
	pass->bare_set = pass->blocks.set;
}

bool reserve_bare_is_known(const struct pass *pass)
{
	return pass->bare_changes == pass->changes + 1 && pass->bare_set == pass->blocks.set &&
	       pass->blocks.set <= BLOCK_SETS_MAX;
}

static int64_t bare_gpus(const struct pass *pass, uint64_t classes)
{
	uint32_t width = pass->view->space.gpus_max + 1;
	int64_t gpus = 0;

	for (; classes; classes &= classes - 1) {
		const uint32_t *counts = pass->bare + (size_t)__builtin_ctzll(classes) * width;

		for (uint32_t free = 1; free < width; free++)
			gpus += (int64_t)counts[free] * free;
	}
	return gpus;
}

bool reserve_may_fit(struct pass *pass, const struct place_request *request)
{
	const struct shape *shape = request->shape;
	const struct space *space = &pass->view->space;
	uint64_t classes, tasks = 0;

	if (shape_is_part(shape) || !shape->gpus)
		return true;
	if (!reserve_bare_is_known(pass))
		bare_make(pass);
	space_classes_of(space, shape, &classes);
	if (shape->role_count)
		return bare_gpus(pass, classes & ~request->closed) >=
		       shape_gpus(shape, request->tasks);
	for (classes &= ~request->closed; classes; classes &= classes - 1) {
		const uint32_t *counts =
			pass->bare + (size_t)__builtin_ctzll(classes) * (space->gpus_max + 1);

		for (uint32_t free = shape->gpus; free <= space->gpus_max; free++)
			tasks += (uint64_t)counts[free] * (free / shape->gpus);
	}
	return tasks >= request->tasks;
}

/* --- what lies ahead ------------------------------------------------------------------------------------- */

/* An expected end: of a job that runs, or of one that this pass starts. */
struct end {
	uint32_t job;
	uint32_t start; /* 1 + index of its start in the decisions; 0 = it runs */
	uint32_t block; /* 1 + a block that is over then; 0 = it is of a job */
	int64_t ms;
};

/*
 * A second space in which the first `at` of the expected ends have come. All reservations are kept in it. The next blocked
 * job is often much like the one before, so the walk through the ends goes on from where it stands, to and fro.
 */
struct ahead {
	struct space *space;
	struct end *ends; /* those seen so far */
	uint32_t known, room, at;
	struct sorted_walk walk; /* the next one to be seen */
	bool any;
	struct end *starts; /* of this pass, a heap: the first end on top */
	uint32_t start_count;
	uint32_t *lifts, lift_at; /* blocks by their ends; the next one to be seen */
	uint64_t *blocks, *lifted; /* in the way of the job at hand; over where the walk stands */
	bool spares; /* best-effort work is gone: for jobs that may evict */
	uint32_t changes; /* of the pass when it was copied */
	uint32_t moves;
};

/* Node 0: nothing is held of it. */
static void node_move(struct space *space, uint32_t node, const struct hold *hold, bool give)
{
	int32_t rank = node ? space_rank(space, node) : RANK_NONE;

	if (rank == RANK_NONE)
		return;
	if (give)
		space_give(space, (uint32_t)rank, hold);
	else
		space_take(space, (uint32_t)rank, hold);
}

static void attempt_move(struct pass *pass, const struct attempt *attempt,
			 const struct shape *shape, bool give)
{
	struct ahead *ahead = pass->ahead;

	struct hold hold, more;
	uint32_t node = 0;

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&pass->facts->tasks, attempt->first_task + i);

		if (!task_holds(task))
			continue;
		more = task_hold(task, shape, i);
		if (node == task->node.v && hold_join(&hold, &more))
			continue;
		node_move(ahead->space, node, &hold, give);
		node = task->node.v;
		hold = more;
	}
	node_move(ahead->space, node, &hold, give);
	space_commit(ahead->space);
	ahead->moves++;
}

static void start_move(struct pass *pass, const struct event_attempt_placed *e,
		       const struct shape *shape, bool give)
{
	struct space *space = pass->ahead->space;
	struct hold hold;
	uint32_t node = 0;

	for (uint32_t i = 0; i < e->nodes_count; i++) {
		struct task_wish wish = shape_wish(shape, i);
		struct hold more = { .mask = (uint32_t)e->masks[i],
				     .part = e->parts_count ? (uint32_t)e->parts[i] : 0,
				     .part_mib = e->parts_count ? (uint32_t)e->parts_mib[i] : 0,
				     .sharer = shape_sharer(shape),
				     .aligned = shape->align != 0,
				     .cpu_milli = wish.cpu_milli,
				     .ram_mib = wish.memory_mib };

		if (node == (uint32_t)e->nodes[i] && hold_join(&hold, &more))
			continue;
		node_move(space, node, &hold, give);
		node = (uint32_t)e->nodes[i];
		hold = more;
	}
	node_move(space, node, &hold, give);
	space_commit(space);
	pass->ahead->moves++;
}

static void blocks_here(struct pass *pass)
{
	blocks_put(pass, pass->ahead->space, pass->ahead->blocks, pass->ahead->lifted);
	space_commit(pass->ahead->space);
	pass->ahead->moves++;
}

static void end_move(struct pass *pass, const struct end *end, bool come)
{
	const struct job *job;

	if (end->block) {
		uint64_t bit = UINT64_C(1) << (end->block - 1) % 64;
		uint64_t *lifted = &pass->ahead->lifted[(end->block - 1) / 64];

		*lifted = come ? *lifted | bit : *lifted & ~bit;
		blocks_here(pass);
		return;
	}
	job = job_get(pass->facts, (struct job_id){ end->job });
	if (end->start) {
		start_move(pass, &pass->events[end->start - 1].attempt_placed,
			   shape_get(pass->facts, job->shape), come);
		return;
	}
	attempt_move(pass, attempt_get(pass->facts, job->attempt),
		     shape_get(pass->facts, job->shape), come);
}

/* Best-effort work that evict_spares lists is not waited for; what it lists too much of is waited for never. */
static bool end_is_passed_over(const struct pass *pass, uint32_t id)
{
	const struct job_view *jv = job_view_get(pass->view, id);

	return pass->ahead->spares && jv->tier == TIER_BEST_EFFORT && !jv->leaving &&
	       attempt_may_be_evicted(attempt_get(pass->facts, (struct attempt_id){ jv->attempt }));
}

static bool end_is_before(const struct end *a, const struct end *b)
{
	return a->ms != b->ms ? a->ms < b->ms : a->job < b->job;
}

/* The end at `at` down to where it belongs. */
static void starts_sift(struct ahead *ahead, uint32_t at)
{
	struct end moved = ahead->starts[at];

	for (uint32_t child; (child = 2 * at + 1) < ahead->start_count; at = child) {
		if (child + 1 < ahead->start_count &&
		    end_is_before(&ahead->starts[child + 1], &ahead->starts[child]))
			child++;
		if (!end_is_before(&ahead->starts[child], &moved))
			break;
		ahead->starts[at] = ahead->starts[child];
	}
	ahead->starts[at] = moved;
}

static void starts_read(struct pass *pass)
{
	struct ahead *ahead = pass->ahead;

	if (pass->starts)
		ahead->starts = arena_new_array(pass->arena, struct end, pass->starts);
	for (uint32_t i = 0; i < pass->count; i++) {
		const struct event *e = &pass->events[i];

		if (e->kind != EVENT_ATTEMPT_PLACED)
			continue;
		ahead->starts[ahead->start_count++] = (struct end){
			.job = (uint32_t)e->attempt_placed.job,
			.start = i + 1,
			.ms = pass->facts->now_ms +
			      job_stays_ms(
				      pass->facts,
				      job_get(pass->facts,
					      (struct job_id){ (uint32_t)e->attempt_placed.job }),
				      pass->facts->now_ms),
		};
	}
	for (uint32_t at = ahead->start_count / 2; at-- > 0;)
		starts_sift(ahead, at);
}

/* The next block that is over, when that is not after `before`. */
static bool lift_next(struct pass *pass, const struct end *before, struct end *ret)
{
	struct ahead *ahead = pass->ahead;
	uint32_t block;

	if (ahead->lift_at == pass->blocks.count)
		return false;
	block = ahead->lifts[ahead->lift_at];
	if (before && before->ms < pass->blocks.at[block].to_ms)
		return false;
	ahead->lift_at++;
	*ret = (struct end){ .block = 1 + block, .ms = pass->blocks.at[block].to_ms };
	return true;
}

/* The next one: of those that run, or of those that this pass starts; or of a block. */
static bool end_next(struct pass *pass, struct end *ret)
{
	struct ahead *ahead = pass->ahead;
	bool starts;

	while (ahead->any && end_is_passed_over(pass, ahead->walk.id))
		ahead->any = sorted_next(&pass->view->pool, &ahead->walk);
	*ret = (struct end){ .job = ahead->walk.id, .ms = (int64_t)ahead->walk.key };
	starts = ahead->start_count && (!ahead->any || end_is_before(&ahead->starts[0], ret));
	if (lift_next(pass, starts ? &ahead->starts[0] : ahead->any ? ret : NULL, ret))
		return true;
	if (starts) {
		*ret = ahead->starts[0];
		ahead->starts[0] = ahead->starts[--ahead->start_count];
		if (ahead->start_count)
			starts_sift(ahead, 0);
		return true;
	}
	if (!ahead->any)
		return false;
	ahead->any = sorted_next(&pass->view->pool, &ahead->walk);
	return true;
}

/* One more end is known. False: there is none, or enough have been seen. */
static bool end_read(struct pass *pass)
{
	struct ahead *ahead = pass->ahead;
	struct end end;

	if (ahead->known == RESERVE_ENDS_MAX || !end_next(pass, &end))
		return false;
	if (ahead->known == ahead->room) {
		struct end *old = ahead->ends;

		ahead->room = ahead->room ? ahead->room * 2 : 256;
		ahead->ends = arena_new_array(pass->arena, struct end, ahead->room);
		if (old)
			memcpy(ahead->ends, old, ahead->known * sizeof(*old));
	}
	ahead->ends[ahead->known++] = end;
	return true;
}

/* To where exactly `count` ends have come, or all that there are. */
static void ahead_go(struct pass *pass, uint32_t count)
{
	struct ahead *ahead = pass->ahead;

	while (ahead->at > count)
		end_move(pass, &ahead->ends[--ahead->at], false);
	while (ahead->at < count && (ahead->at < ahead->known || end_read(pass)))
		end_move(pass, &ahead->ends[ahead->at++], true);
}

static void kept_make(struct pass *pass, struct reservation *r)
{
	r->kept = arena_new_array(pass->arena, struct kept, r->place.count);
	for (uint32_t i = 0, end; i < r->place.count; i = end) {
		struct kept *kept = &r->kept[r->kept_count++];

		kept->rank = r->place.ranks[i];
		end = placement_holds(&r->place, r->shape, i, &kept->hold);
	}
}

static void ahead_keep(struct pass *pass, const struct reservation *r)
{
	struct space *space = pass->ahead->space;

	for (uint32_t i = 0; i < r->kept_count; i++) {
		struct hold hold = hold_unpromised(space, r->kept[i].rank, r->kept[i].hold);

		space_promise(space, r->kept[i].rank, &hold);
	}
	space_commit(space);
}

static void lifts_sort(const struct pass *pass, uint32_t *lifts)
{
	const struct block *at = pass->blocks.at;

	for (uint32_t i = 0; i < pass->blocks.count; i++) {
		uint32_t to = i;

		for (; to > 0 && at[lifts[to - 1]].to_ms > at[i].to_ms; to--)
			lifts[to] = lifts[to - 1];
		lifts[to] = i;
	}
}

/* Nodes that are closed now are ready at the end of what closes them. */
static void ahead_blocks_make(struct pass *pass)
{
	struct ahead *ahead = pass->ahead;

	if (!blocks_exist(pass))
		return;
	ahead->lifts = arena_new_array(pass->arena, uint32_t, pass->blocks.count);
	lifts_sort(pass, ahead->lifts);
	ahead->blocks = arena_new_array(pass->arena, uint64_t, pass->blocks.words);
	ahead->lifted = arena_new_array(pass->arena, uint64_t, pass->blocks.words);
	blocks_open(pass, ahead->space);
	for (uint32_t i = 0; i < pass->blocks.words; i++)
		ahead->blocks[i] = UINT64_MAX;
	blocks_here(pass);
}

/* As things are now, nothing kept in the space but promises. */
static void ahead_make(struct pass *pass, bool spares)
{
	struct ahead *ahead = pass->ahead;
	uint32_t count, moves = ahead ? ahead->moves : 0;
	const struct victim *list;

	if (!ahead)
		ahead = pass->ahead = arena_new(pass->arena, struct ahead);
	*ahead = (struct ahead){ .space = &pass->view->ahead,
				 .spares = spares,
				 .changes = pass->changes,
				 .moves = moves + pass->view->space.node_count / 16 +
					  pass->count / 16 };
	reserve_layer(pass, 0, false);
	blocks_none(pass);
	space_copy(ahead->space, &pass->view->space);
	ahead->any = sorted_begin(&pass->view->pool, pass->view->ends, &ahead->walk);
	starts_read(pass);
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		ahead_keep(pass, &pass->reservations[i]);
	ahead_blocks_make(pass);
	list = spares ? evict_spares(pass, &count) : NULL;
	for (uint32_t i = 0; list && i < count && i < RESERVE_SPARES_MAX; i++)
		if (!list[i].leaver)
			attempt_move(pass, list[i].attempt, list[i].shape, true);
}

/* --- finding one ---------------------------------------------------------------------------------------- */

enum { STRIDE_MAX = 64 };

static bool ahead_is_enough(const struct pass *pass, const struct place_request *request)
{
	return place_bound(pass->ahead->space, request, NULL) == 0;
}

static bool ahead_fits(const struct pass *pass, const struct place_request *request)
{
	return ahead_is_enough(pass, request) &&
	       place_find(pass->ahead->space, request, NULL, NULL, NULL) == 0;
}

/* It fits after `end` ends, and after fewer than `first` it does not. More that is free never makes it fit less. */
static void ahead_bisect(struct pass *pass, const struct place_request *request, uint32_t first,
			 uint32_t end)
{
	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		ahead_go(pass, middle);
		if (ahead_fits(pass, request))
			end = middle;
		else
			first = middle + 1;
	}
	ahead_go(pass, end);
}

/* It fits where the walk stands: back to the first end after which it does. */
static void ahead_go_back(struct pass *pass, const struct place_request *request)
{
	uint32_t fits = pass->ahead->at;

	for (uint32_t stride = 1; fits > 0; stride *= 2) {
		uint32_t to = fits > stride ? fits - stride : 0;

		ahead_go(pass, to);
		if (!ahead_fits(pass, request)) {
			ahead_bisect(pass, request, to + 1, fits);
			return;
		}
		fits = to;
	}
}

/* It does not fit where the walk stands: on to the first end after which it does. Sums tell how far at least. */
static bool ahead_go_on(struct pass *pass, const struct place_request *request)
{
	struct ahead *ahead = pass->ahead;
	uint32_t lacks = ahead->at, stride = 1;

	while (!ahead_is_enough(pass, request)) {
		lacks = ahead->at;
		ahead_go(pass, ahead->at + 1);
		if (ahead->at == lacks)
			return false;
	}
	while (!ahead_fits(pass, request)) {
		lacks = ahead->at;
		if (ahead->moves >= RESERVE_MOVES_MAX)
			return false;
		ahead_go(pass, ahead->at + stride);
		if (ahead->at == lacks)
			return false;
		stride = stride < STRIDE_MAX ? stride * 2 : STRIDE_MAX;
	}
	ahead_bisect(pass, request, lacks + 1, ahead->at);
	return true;
}

/* To where all that ends by then has ended. */
static void ahead_go_to(struct pass *pass, int64_t until_ms)
{
	struct ahead *ahead = pass->ahead;

	while (ahead->at && ahead->ends[ahead->at - 1].ms > until_ms)
		ahead_go(pass, ahead->at - 1);
	while ((ahead->at < ahead->known || end_read(pass)) &&
	       ahead->ends[ahead->at].ms <= until_ms)
		ahead_go(pass, ahead->at + 1);
}

/* Stretch by stretch: in each of them the same blocks are in the way of who begins there. *ret_ms: not before that time. */
static bool ahead_go_by_blocks(struct pass *pass, const struct job *job,
			       const struct place_request *request, int64_t *ret_ms)
{
	struct ahead *ahead = pass->ahead;
	int64_t length_ms = job_expected_ms(pass->facts, job),
		more_ms; /* at most: a window may cut it short */

	*ret_ms = pass->facts->now_ms;
	for (;;) {
		uint32_t first;

		more_ms = blocks_in_way(pass, job, *ret_ms, length_ms, ahead->blocks);
		ahead_go_to(pass, *ret_ms);
		blocks_here(pass);
		if (ahead_fits(pass, request))
			return true;
		if (more_ms == INT64_MAX)
			return ahead_go_on(pass, request);
		first = ahead->at;
		ahead_go_to(pass, more_ms - 1);
		if (ahead_fits(pass, request)) {
			ahead_bisect(pass, request, first + 1, ahead->at);
			return true;
		}
		if (ahead->moves >= RESERVE_MOVES_MAX)
			return false;
		*ret_ms = more_ms;
	}
}

/* Ends of the same time come together: which of them comes first says nothing. Who is waited for is the earliest submission among them,
 * and of these the first by its queue's name. */
static uint32_t ahead_round_off(struct pass *pass)
{
	struct ahead *ahead = pass->ahead;
	uint32_t waits_for = 0;

	while (ahead->at && (ahead->at < ahead->known || end_read(pass)) &&
	       ahead->ends[ahead->at].ms == ahead->ends[ahead->at - 1].ms)
		ahead_go(pass, ahead->at + 1);
	for (uint32_t i = ahead->at; i && ahead->ends[i - 1].ms == ahead->ends[ahead->at - 1].ms;
	     i--)
		if (!waits_for || job_is_earlier(pass->facts, ahead->ends[i - 1].job, waits_for))
			waits_for = ahead->ends[i - 1].job;
	return waits_for;
}

/* When and where it fits first. */
static bool ahead_find(struct pass *pass, const struct job *job,
		       const struct place_request *request, struct reservation *r)
{
	struct ahead *ahead = pass->ahead;
	bool spares = job->preempts;
	int64_t least_ms = 0;
	uint32_t waits_for;

	if (!ahead || ahead->changes != pass->changes || ahead->spares != spares)
		ahead_make(pass, spares);
	ahead = pass->ahead;
	if (blocks_exist(pass)) {
		if (!ahead_go_by_blocks(pass, job, request, &least_ms))
			return false;
	} else if (ahead_fits(pass, request)) {
		ahead_go_back(pass, request);
	} else if (!ahead_go_on(pass, request)) {
		return false;
	}
	waits_for = blocks_exist(pass) ? 0 : ahead_round_off(pass);
	CHECK(place_find(ahead->space, request, pass->arena, &r->place, NULL) == 0);
	r->start_ms = ahead->at ? ahead->ends[ahead->at - 1].ms : 0;
	r->waits_for = waits_for || !ahead->at ? waits_for : ahead->ends[ahead->at - 1].job;
	if (r->start_ms < least_ms)
		r->start_ms = least_ms;
	if (r->start_ms < pass->facts->now_ms)
		r->start_ms = pass->facts->now_ms;
	if (standing_opens_ms(&pass->standings, job, r->start_ms) != r->start_ms)
		return false; /* it could not start then: a place is looked for when its window is open */
	kept_make(pass, r);
	ahead_keep(pass, r);
	return true;
}

/* Into the list; those that start later move up. */
static void reservation_add(struct pass *pass, const struct reservation *r)
{
	uint32_t at;

	if (!pass->reserved)
		pass->reserved =
			arena_new_array(pass->arena, uint32_t, pass->view->space.node_count + 1);
	for (uint32_t i = 0; i < r->place.count; i++)
		pass->reserved[r->place.ranks[i]] |= r->place.masks[i];
	pass->layer_end_ms = -1;
	for (at = pass->reservation_count;
	     at > 0 && pass->reservations[at - 1].start_ms > r->start_ms; at--)
		pass->reservations[at] = pass->reservations[at - 1];
	pass->reservations[at] = *r;
	pass->reservation_count++;
}

bool reserve_for(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct place_request request = pass_request(pass, shape, shape->tasks_min);
	struct reservation r = { .job = id, .shape = shape };

	if ((int64_t)pass->reservation_count >= pass->facts->policy.backfill_depth)
		return false;
	if (!pass->reservations)
		pass->reservations = arena_new_array(pass->arena, struct reservation,
						     (size_t)pass->facts->policy.backfill_depth);
	if (reserve_holds(pass, id, &request, &r)) {
		kept_make(pass, &r);
		if (pass->ahead)
			ahead_keep(pass, &r);
	} else {
		if (reserve_was_looked_for(pass, id)) {
			pass->unreviewed = true;
			return true;
		}
		if (pass->ahead && pass->ahead->moves >= RESERVE_MOVES_MAX)
			return false;
		if (!ahead_find(pass, job, &request, &r))
			return false;
	}
	r.collects = pass->facts->policy.collect_after_ms > 0 &&
		     pass->facts->now_ms - job->state_ms >= pass->facts->policy.collect_after_ms;
	r.claim = standing_within(&pass->standings, job->queue.v, 0,
				  shape_share(&pass->view->space, shape, shape->tasks_min));
	reserve_note(pass, &r);
	reservation_add(pass, &r);
	return true;
}
