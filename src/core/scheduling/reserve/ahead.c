/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies ahead: a second space, in which the expected ends come and go. reserve.c has the idea. It stands at a *moment*: all that
 * ends by then has ended. Moment 0 is now, each further one the next time at which anything ends. A job fits from some moment on, and
 * before it does not: the walk goes on or back to that one.
 *
 *	2 GPUs end at 10 min, 1 at 20 min, 1000 at 30 min; `wide` needs 8.	moments: 0 min, 10, 20, 30: it has its place at 30 min
 *	the next job needs 4. Moment 2 has 3 at most, as was counted on the way: it has its place at 30 min too, and no step is made
 *
 * Costs: one copy of the space for each pass that looks for reservations, then some 50 ns for each end that comes or is taken back. Jobs
 * that are much alike share the walk; where it was, counts of free GPUs say later whether it is worth while to go back, and for a wish that
 * had its turn the moment is known before which it does not fit. So thousands of ends at one time are gone through once.
 *
 * An end that nobody declared is a guess, and waiting for it may be waiting for ever while a place stands empty. So for a job that has
 * waited for less than the policy's `reserve_unsure` only declared ends come: where these don't suffice it has no reservation. For a claim all
 * come, and what it may take comes when it can have left (evict_takes.c), if that is before its end.
 *
 * Where nodes have maintenance announced (blocks.h), more is free after an end, but not always at a later time: whoever begins
 * later meets more of what is announced. Between two such times it is so, and each of these stretches is searched in turn:
 *
 *	4 GPUs, all held until 1 h; `wide` needs them for 2 h; maintenance from 2 h to 3 h.
 *	begin before 0 h: not in its way, but held		0 h to 3 h: in its way		from 3 h on: free
 *
 * Reservations that end (time_slots.h) make such stretches too: in each of them the same reservations are in the way of a run that begins there,
 * and those alone are promised in the space. Counts that were taken with some reservations in the way stay true while these are in it.
 */
#include <string.h>

#include "base/check.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/queues/window.h"

/* --- what lies ahead ------------------------------------------------------------------------------------- */

/* An expected end: of a job that runs, or of one that this pass starts. */
struct end {
	uint32_t job;
	uint32_t start; /* 1 + index of its start in the decisions; 0 = it runs */
	uint32_t block; /* 1 + a block that is over then; 0 = it is of a job */
	int64_t ms;
};

/* A time at which anything ends; the first is now. */
struct moment {
	int64_t ms;
	uint32_t came; /* ends until then */
	uint32_t first; /* of the jobs that end then, the earliest submission; 0 = none does */
	/* What was free when jobs were tried here: [0] with fewest reservations in the way, [1] with others, the last time. */
	struct moment_counts {
		uint32_t *nodes; /* by class and free GPUs; NULL = none was tried */
		int64_t open_share; /* of shared GPUs, and of those that are cut */
		uint64_t set; /* reservations in the way then */
	} counts[2];
};

/* A wish that was walked for past reservations: jobs with that key have no place before ms. */
struct stretch {
	uint32_t shape;
	int64_t key, ms;
};
enum { STRETCHES = 32, SET_BITS = 63 };
#define SET_MORE (UINT64_C(1) << SET_BITS)

/*
 * A second space in which all that ends until the moment `at` has ended. All reservations are kept in it. The next blocked
 * job is often much like the one before, so the walk through the ends goes on from where it stands, to and fro.
 */
struct ahead {
	struct space *space;
	struct end *ends; /* those seen so far */
	uint32_t known, room, came;
	struct moment *moments;
	uint32_t moments_known, moments_room, at;
	uint32_t number; /* of the copies of this pass */
	struct sorted_walk walk; /* the next one to be seen */
	bool any;
	struct end *
		soon; /* a heap, the first end on top: of starts of this pass, and of what a claim may take */
	uint32_t soon_count;
	uint32_t *lifts, lift_at; /* blocks by their ends; the next one to be seen */
	uint64_t *blocks, *lifted; /* in the way of the job at hand; over where the walk stands */
	bool spares; /* best-effort work is gone: for jobs that may evict */
	bool guesses; /* ends that nobody declared come too */
	uint32_t claim_queue; /* for claims of this queue, ... */
	uint64_t claim_rank; /* ... and rank; 0 = for jobs that claim nothing */
	bool only_takes; /* of all that runs only what these may take comes */
	uint64_t *taken; /* jobs that these may take, a bit each: their ends are not waited for */
	bool same; /* nothing will ever be free that is not free now: there is no copy */
	uint32_t changes; /* of the pass when it was copied */
	uint32_t moves;
	uint64_t
		set; /* reservations that are promised in the space: by turn, a bit each; SET_MORE = those beyond */
	struct stretch stretches[STRETCHES]; /* by shape; the last of those that share an entry */
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
				     .slice = e->slices_count ? (uint32_t)e->slices[i] : 0,
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

/* Declared, and not overdue: what overruns its estimate may run for ever. What was told to go goes. */
static bool end_is_guess(const struct pass *pass, const struct end *end)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ end->job });

	return !job->limit_ms && (!job->estimate_ms || end->ms <= pass->facts->now_ms) &&
	       !pass_job_leaves(pass, end->job);
}

/* A claim has taken its GPUs before. */
static bool end_is_taken(const struct pass *pass, uint32_t id)
{
	const uint64_t *taken = pass->ahead->taken;

	return taken && taken[id / 64] >> id % 64 & 1;
}

/* The end does not come for the job at hand. */
static bool end_is_out(const struct pass *pass, const struct end *end)
{
	return end_is_passed_over(pass, end->job) || end_is_taken(pass, end->job) ||
	       (!pass->ahead->guesses && end_is_guess(pass, end));
}

static bool end_is_before(const struct end *a, const struct end *b)
{
	return a->ms != b->ms ? a->ms < b->ms : a->job < b->job;
}

/* The end at `at` down to where it belongs. */
static void soon_sift(struct ahead *ahead, uint32_t at)
{
	struct end moved = ahead->soon[at];

	for (uint32_t child; (child = 2 * at + 1) < ahead->soon_count; at = child) {
		if (child + 1 < ahead->soon_count &&
		    end_is_before(&ahead->soon[child + 1], &ahead->soon[child]))
			child++;
		if (!end_is_before(&ahead->soon[child], &moved))
			break;
		ahead->soon[at] = ahead->soon[child];
	}
	ahead->soon[at] = moved;
}

static void starts_read(struct pass *pass)
{
	struct ahead *ahead = pass->ahead;

	for (uint32_t i = 0; i < pass->count; i++) {
		const struct event *e = &pass->events[i];
		struct end end;

		if (e->kind != EVENT_ATTEMPT_PLACED)
			continue;
		end = (struct end){
			.job = (uint32_t)e->attempt_placed.job,
			.start = i + 1,
			.ms = pass->facts->now_ms +
			      job_stays_ms(
				      pass->facts,
				      job_get(pass->facts,
					      (struct job_id){ (uint32_t)e->attempt_placed.job }),
				      pass->facts->now_ms),
		};
		if (ahead->guesses || !end_is_guess(pass, &end))
			ahead->soon[ahead->soon_count++] = end;
	}
}

/* What a claim may take is free by then. */
static void takes_note(struct pass *pass, const struct takeable *takes, uint32_t count)
{
	struct ahead *ahead = pass->ahead;

	if (count)
		ahead->taken =
			arena_new_array(pass->arena, uint64_t, pass->facts->jobs.count / 64 + 1);
	for (uint32_t i = 0; i < count; i++) {
		ahead->taken[takes[i].job / 64] |= UINT64_C(1) << takes[i].job % 64;
		ahead->soon[ahead->soon_count++] =
			(struct end){ .job = takes[i].job, .ms = takes[i].gone_ms };
	}
}

/* Who leaves anyhow has left by then. Without what else runs these are not met on the way. */
static void leavers_read(struct pass *pass)
{
	struct ahead *ahead = pass->ahead;
	struct sorted_walk walk;

	for (bool any = sorted_begin(&pass->view->pool, pass->view->leaving, &walk);
	     any && ahead->only_takes; any = sorted_next(&pass->view->pool, &walk)) {
		const struct job_view *jv = job_view_get(pass->view, walk.id);

		if (jv->attempt && jv->end_ms && !end_is_taken(pass, walk.id))
			ahead->soon[ahead->soon_count++] =
				(struct end){ .job = walk.id, .ms = jv->end_ms };
	}
}

/* `claim`: the job that looks, when it is one; else NULL. */
static void soon_make(struct pass *pass, const struct job *claim)
{
	struct ahead *ahead = pass->ahead;
	uint32_t count = 0, leavers = ahead->only_takes
					      ? sorted_size(&pass->view->pool, pass->view->leaving)
					      : 0;
	const struct takeable *takes = claim ? claim_takes(pass, claim, &count) : NULL;

	if (!pass->starts && !count && !leavers)
		return;
	ahead->soon =
		arena_new_array(pass->arena, struct end, (size_t)pass->starts + count + leavers);
	starts_read(pass);
	takes_note(pass, takes, count);
	leavers_read(pass);
	for (uint32_t at = ahead->soon_count / 2; at-- > 0;)
		soon_sift(ahead, at);
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
	bool soon;

	for (; ahead->any; ahead->any = sorted_next(&pass->view->pool, &ahead->walk)) {
		*ret = (struct end){ .job = ahead->walk.id, .ms = (int64_t)ahead->walk.key };
		if (!end_is_out(pass, ret))
			break;
	}
	soon = ahead->soon_count && (!ahead->any || end_is_before(&ahead->soon[0], ret));
	if (lift_next(pass, soon ? &ahead->soon[0] : ahead->any ? ret : NULL, ret))
		return true;
	if (soon) {
		*ret = ahead->soon[0];
		ahead->soon[0] = ahead->soon[--ahead->soon_count];
		if (ahead->soon_count)
			soon_sift(ahead, 0);
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

static struct moment *moment_add(struct pass *pass)
{
	struct ahead *ahead = pass->ahead;
	struct moment *old = ahead->moments;

	if (ahead->moments_known == ahead->moments_room) {
		ahead->moments_room = old ? ahead->moments_room * 2 : 64;
		ahead->moments = arena_new_array(pass->arena, struct moment, ahead->moments_room);
		if (old)
			memcpy(ahead->moments, old, ahead->moments_known * sizeof(*old));
	}
	return &ahead->moments[ahead->moments_known++];
}

/* One more moment is known. Ends of the same time come together: which of them comes first says nothing. Who is waited for is the earliest
 * submission among them, and of these the first by its queue's name. */
static bool moment_read(struct pass *pass)
{
	struct ahead *ahead = pass->ahead;
	uint32_t end = ahead->moments[ahead->moments_known - 1].came, first = 0;
	struct moment *moment;
	int64_t ms;

	if (end == ahead->known && !end_read(pass))
		return false;
	ms = ahead->ends[end].ms;
	for (; (end < ahead->known || end_read(pass)) && ahead->ends[end].ms == ms; end++) {
		uint32_t job = ahead->ends[end].job;

		if (job && (!first || job_is_earlier(pass->facts, job, first)))
			first = job;
	}
	moment = moment_add(pass);
	*moment = (struct moment){ .ms = ms, .came = end, .first = first };
	return true;
}

/* What is free where the walk stands. */
static void moment_count(struct pass *pass)
{
	struct moment *moment = &pass->ahead->moments[pass->ahead->at];
	const struct space *space = pass->ahead->space;
	size_t numbers = (size_t)space->class_count * (space->gpus_max + 1);
	bool fewest = !moment->counts[0].nodes || !(pass->ahead->set & ~moment->counts[0].set);
	struct moment_counts *counts = &moment->counts[fewest ? 0 : 1];

	if (!counts->nodes)
		counts->nodes = arena_new_array(pass->arena, uint32_t, numbers);
	if (numbers)
		memcpy(counts->nodes, space_counts(space, 0, 0), numbers * sizeof(*counts->nodes));
	counts->open_share = space->open_share + space->slice_share;
	counts->set = pass->ahead->set;
}

/* To a moment that is known. */
static void ahead_go(struct pass *pass, uint32_t moment)
{
	struct ahead *ahead = pass->ahead;
	uint32_t came = ahead->moments[moment].came;

	while (ahead->came > came)
		end_move(pass, &ahead->ends[--ahead->came], false);
	while (ahead->came < came)
		end_move(pass, &ahead->ends[ahead->came++], true);
	ahead->at = moment;
}

/* So many moments on, or as many as there are before that time; false: there is none. */
static bool ahead_step(struct pass *pass, uint32_t count, int64_t before_ms)
{
	struct ahead *ahead = pass->ahead;
	uint32_t to = ahead->at + count;

	while (to >= ahead->moments_known && moment_read(pass))
		;
	if (to >= ahead->moments_known)
		to = ahead->moments_known - 1;
	while (to > ahead->at && ahead->moments[to].ms >= before_ms)
		to--;
	if (to == ahead->at)
		return false;
	ahead_go(pass, to);
	return true;
}

void reservation_split(struct pass *pass, struct reservation *r)
{
	r->kept = arena_new_array(pass->arena, struct kept, r->place.count);
	for (uint32_t i = 0, end; i < r->place.count; i = end) {
		struct kept *kept = &r->kept[r->kept_count++];

		kept->rank = r->place.ranks[i];
		end = placement_holds(&r->place, r->shape, i, &kept->hold);
	}
}

/* When other reservations than at `at_ms` are in the way of a run that begins then; INT64_MAX = never. */
static int64_t slots_turn_ms(const struct pass *pass, const struct slot_asker *asker, int64_t at_ms)
{
	int64_t turns_ms = INT64_MAX;

	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		int64_t next_ms = slot_turns_ms(asker, pass->reservations[i].slot, at_ms);

		turns_ms = next_ms < turns_ms ? next_ms : turns_ms;
	}
	return turns_ms;
}

static uint64_t slot_bit(const struct reservation *r)
{
	return r->turn < SET_BITS ? UINT64_C(1) << r->turn : SET_MORE;
}

static uint64_t slots_set(const struct pass *pass, const struct slot_asker *asker, int64_t at_ms)
{
	uint64_t set = 0;

	for (uint32_t i = 0; i < pass->reservation_count; i++)
		if (slot_is_in_way(asker, pass->reservations[i].slot, at_ms))
			set |= slot_bit(&pass->reservations[i]);
	return set;
}

/* What is reserved is promised in the space ahead while it is in the way of a run that begins at `at_ms`. */
static void slots_go(struct pass *pass, const struct slot_asker *asker, int64_t at_ms)
{
	struct ahead *ahead = pass->ahead;

	ahead->set = 0;
	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		struct reservation *r = &pass->reservations[i];
		bool on = slot_is_in_way(asker, r->slot, at_ms);

		if (on)
			ahead->set |= slot_bit(r);
		if (on == r->slot->on[SLOT_AHEAD])
			continue;
		slot_turn(pass, r, SLOT_AHEAD, on);
		ahead->moves += 1 + r->kept_count / 8;
	}
	slots_settle(pass, SLOT_AHEAD);
	space_commit(ahead->space);
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

/* Is anything that is reserved free again at a known time? */
static bool slots_end(const struct pass *pass)
{
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		if (pass->reservations[i].end_ms != INT64_MAX)
			return true;
	return false;
}

/* As things are now, nothing kept in the space but promises. */
static void ahead_make(struct pass *pass, const struct job *job, bool guesses, bool claims,
		       bool only_takes)
{
	struct ahead *ahead = pass->ahead;
	uint32_t count = 0, moves = ahead ? ahead->moves : 0,
		 number = ahead ? ahead->number + 1 : 1;
	bool spares = job->preempts;
	const struct victim *list;

	if (!ahead)
		ahead = pass->ahead = arena_new(pass->arena, struct ahead);
	*ahead = (struct ahead){ .space = &pass->view->ahead,
				 .spares = spares,
				 .guesses = guesses,
				 .claim_queue = claims ? job->queue.v : 0,
				 .claim_rank = claims ? job_rank(job) : 0,
				 .only_takes = only_takes,
				 .changes = pass->changes,
				 .number = number,
				 .moves = moves };
	reserve_layer(pass, 0, false);
	blocks_none(pass);
	ahead->any = !only_takes &&
		     sorted_begin(&pass->view->pool,
				  guesses ? pass->view->ends : pass->view->declared, &ahead->walk);
	soon_make(pass, claims ? job : NULL);
	list = spares ? evict_spares(pass, &count) : NULL;
	ahead->same = !ahead->any && !ahead->soon_count && !count && !blocks_exist(pass) &&
		      !slots_end(pass);
	if (ahead->same)
		return;
	ahead->moves += pass->view->space.node_count / 16 + pass->count / 16;
	(void)moment_add(pass);
	space_copy(ahead->space, &pass->view->space);
	slots_forget_ahead(pass);
	ahead_blocks_make(pass);
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

static bool ahead_fits(struct pass *pass, const struct place_request *request)
{
	moment_count(pass);
	return ahead_is_enough(pass, request) &&
	       place_find(pass->ahead->space, request, NULL, NULL, NULL) == 0;
}

static bool counts_may_do(const struct pass *pass, const struct moment_counts *counts,
			  const struct place_request *request)
{
	const struct shape *shape = request->shape;
	uint32_t width = pass->ahead->space->gpus_max + 1, each = shape->gpus ? shape->gpus : 1;
	int64_t gpus = 0, tasks = 0;

	for (uint64_t classes = request->suits & ~request->closed; classes;
	     classes &= classes - 1) {
		const uint32_t *nodes = counts->nodes + (size_t)__builtin_ctzll(classes) * width;

		for (uint32_t free = 1; free < width; free++) {
			gpus += (int64_t)nodes[free] * free;
			tasks += (int64_t)nodes[free] * (free / each);
		}
	}
	if (shape_is_part(shape))
		return gpus * GPU_SHARE + counts->open_share >=
		       (int64_t)request->tasks * (shape->gpu_part ? shape->gpu_part : 1);
	if (shape->role_count || !shape->gpus)
		return gpus >= shape_gpus(shape, request->tasks);
	return tasks >= request->tasks;
}

/* By what was free when the walk was there: without going there. It is never more later, as long as what was in the way then is in the way
 * now (`set`). What is announced is in the way of one job and not of another. */
static bool moment_may_do(struct pass *pass, uint32_t at, const struct place_request *request,
			  uint64_t set)
{
	const struct moment *moment = &pass->ahead->moments[at];

	if (!request->suits || request->shape->slice || blocks_exist(pass))
		return true;
	for (int i = 0; i < 2; i++) {
		const struct moment_counts *counts = &moment->counts[i];

		if (counts->nodes && !(counts->set & (~set | SET_MORE)) &&
		    !counts_may_do(pass, counts, request))
			return false;
	}
	return true;
}

static bool ahead_fits_at(struct pass *pass, const struct place_request *request, uint32_t moment)
{
	if (!moment_may_do(pass, moment, request, pass->ahead->set))
		return false;
	ahead_go(pass, moment);
	return ahead_fits(pass, request);
}

/* It fits at the moment `end`, and before `first` it does not. More that is free never makes it fit less. */
static void ahead_bisect(struct pass *pass, const struct place_request *request, uint32_t first,
			 uint32_t end)
{
	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (ahead_fits_at(pass, request, middle))
			end = middle;
		else
			first = middle + 1;
	}
	ahead_go(pass, end);
}

/* It fits where the walk stands: back to the first moment at which it does, which is not before `least`. */
static void ahead_go_back(struct pass *pass, const struct place_request *request, uint32_t least)
{
	uint32_t fits = pass->ahead->at;

	for (uint32_t stride = 1; fits > least; stride *= 2) {
		uint32_t to = fits - least > stride ? fits - stride : least;

		if (!ahead_fits_at(pass, request, to)) {
			ahead_bisect(pass, request, to + 1, fits);
			return;
		}
		fits = to;
	}
}

/* It does not fit where the walk stands: on to the first moment before that time at which it does. Sums tell how far at least. */
static bool ahead_go_on(struct pass *pass, const struct place_request *request, int64_t before_ms)
{
	struct ahead *ahead = pass->ahead;
	uint32_t lacks = ahead->at, stride = 1;

	while (!ahead_is_enough(pass, request)) {
		lacks = ahead->at;
		if (!ahead_step(pass, 1, before_ms))
			return false;
	}
	while (!ahead_fits(pass, request)) {
		lacks = ahead->at;
		if (ahead->moves >= RESERVE_MOVES_MAX || !ahead_step(pass, stride, before_ms))
			return false;
		stride = stride < STRIDE_MAX ? stride * 2 : STRIDE_MAX;
	}
	ahead_bisect(pass, request, lacks + 1, ahead->at);
	return true;
}

/* The last moment that is not after that time. */
static uint32_t moment_at(struct pass *pass, int64_t ms)
{
	struct ahead *ahead = pass->ahead;
	uint32_t first = 0, end;

	while (ahead->moments[ahead->moments_known - 1].ms <= ms && moment_read(pass))
		;
	for (end = ahead->moments_known; end - first > 1;) {
		uint32_t middle = first + (end - first) / 2;

		if (ahead->moments[middle].ms <= ms)
			first = middle;
		else
			end = middle;
	}
	return first;
}

/* To the first moment of the stretch at which it fits, from where the walk stands: the job before was mostly much like it. */
static bool ahead_seek_in(struct pass *pass, const struct place_request *request, int64_t from_ms,
			  int64_t before_ms)
{
	struct ahead *ahead = pass->ahead;
	uint32_t least = moment_at(pass, from_ms);

	if (ahead->at < least)
		ahead_go(pass, least);
	else if (ahead->at > least && ahead->moments[ahead->at].ms >= before_ms)
		ahead_go(pass, moment_at(pass, before_ms - 1));
	if (blocks_exist(pass))
		blocks_here(pass);
	if (!ahead_fits(pass, request))
		return ahead_go_on(pass, request, before_ms);
	ahead_go_back(pass, request, least);
	return true;
}

/* Jobs of one wish for which the same reservations are in the way. */
static int64_t asker_key(const struct slot_asker *asker)
{
	return asker->length_ms * 4 + (int64_t)asker->declared * 2 + asker->before;
}

static struct stretch *stretch_of(struct pass *pass, const struct job *job)
{
	return &pass->ahead->stretches[job->shape.v % STRETCHES];
}

/* Before which time does no such job have a place? What is reserved since only made it later. */
static int64_t stretch_least_ms(struct pass *pass, const struct job *job,
				const struct slot_asker *asker)
{
	const struct shape_memo *memo = &pass->memos[job->shape.v];
	const struct stretch *known = stretch_of(pass, job);
	int64_t least_ms = pass->facts->now_ms;

	if (pass->closed || blocks_exist(pass))
		return least_ms;
	if (known->shape == job->shape.v && known->key == asker_key(asker))
		least_ms = known->ms;
	else if (memo->ahead == pass->ahead->number)
		least_ms = pass->ahead->moments[memo->moment].ms;
	return least_ms > pass->facts->now_ms ? least_ms : pass->facts->now_ms;
}

static void stretch_note(struct pass *pass, const struct job *job, const struct slot_asker *asker,
			 int64_t least_ms)
{
	int64_t found_ms = pass->ahead->moments[pass->ahead->at].ms;

	if (pass->closed || blocks_exist(pass))
		return;
	*stretch_of(pass, job) =
		(struct stretch){ .shape = job->shape.v,
				  .key = asker_key(asker),
				  .ms = found_ms > least_ms ? found_ms : least_ms };
}

/* By what was free at the end of the stretch when the walk was there. */
static bool stretch_may_do(struct pass *pass, const struct place_request *request,
			   const struct slot_asker *asker, int64_t from_ms, int64_t before_ms)
{
	const struct ahead *ahead = pass->ahead;

	return ahead->moments[ahead->moments_known - 1].ms < before_ms ||
	       moment_may_do(pass, moment_at(pass, before_ms - 1), request,
			     slots_set(pass, asker, from_ms));
}

/* Stretch by stretch: in each of them the same blocks and reservations are in the way of a job that begins there. *ret_ms: not before that time. */
static bool ahead_go_by_stretches(struct pass *pass, const struct job *job,
				  const struct place_request *request,
				  const struct slot_asker *asker, int64_t *ret_ms)
{
	struct ahead *ahead = pass->ahead;

	for (*ret_ms = stretch_least_ms(pass, job, asker);;) {
		int64_t more_ms = slots_turn_ms(pass, asker, *ret_ms), blocks_ms = INT64_MAX;

		if (blocks_exist(pass)) /* at most that long: a window may cut it short */
			blocks_ms =
				blocks_in_way(pass, job, *ret_ms, asker->length_ms, ahead->blocks);
		more_ms = blocks_ms < more_ms ? blocks_ms : more_ms;
		if (stretch_may_do(pass, request, asker, *ret_ms, more_ms)) {
			slots_go(pass, asker, *ret_ms);
			if (ahead_seek_in(pass, request, *ret_ms, more_ms))
				return true;
		}
		if (more_ms == INT64_MAX)
			return false;
		if (ahead->moves >= RESERVE_MOVES_MAX)
			return false;
		*ret_ms = more_ms;
	}
}

/* Before which moment does no job of its wish have a place? What is reserved since only made it later. */
static uint32_t *moment_least(struct pass *pass, const struct job *job)
{
	struct shape_memo *memo = &pass->memos[job->shape.v];

	if (pass->closed || blocks_exist(pass))
		return NULL;
	if (memo->ahead != pass->ahead->number) {
		memo->ahead = pass->ahead->number;
		memo->moment = 0;
	}
	return &memo->moment;
}

/* To the first moment at which it fits. */
static bool ahead_seek(struct pass *pass, const struct job *job,
		       const struct place_request *request)
{
	uint32_t *least = moment_least(pass, job);

	if (least && *least > pass->ahead->at)
		ahead_go(pass, *least);
	if (ahead_fits(pass, request))
		ahead_go_back(pass, request, least ? *least : 0);
	else if (!ahead_go_on(pass, request, INT64_MAX))
		return false;
	if (least)
		*least = pass->ahead->at;
	return true;
}

/* Since it began to wait; of one that ran before, all but the time it ran: who makes room does not begin anew. */
static int64_t job_waited_ms(const struct pass *pass, const struct job *job)
{
	return job->run_ms ? pass->facts->now_ms - job->submitted_ms - job->run_ms
			   : pass->facts->now_ms - job->state_ms;
}

/* Others hold GPUs too. Where its own queue alone runs there is nobody from whom it could claim: it waits for its equals. */
bool ahead_others_hold(const struct pass *pass, uint32_t queue)
{
	return pass->standings.at[0].use > pass->standings.at[queue].use;
}

static bool claims_from_others(const struct pass *pass, const struct job *job)
{
	return ahead_others_hold(pass, job->queue.v) && job_claims(pass, job);
}

bool ahead_guesses(const struct pass *pass, const struct job *job)
{
	return claims_from_others(pass, job) ||
	       job_waited_ms(pass, job) >= pass->facts->policy.reserve_unsure_ms;
}

/* What lies ahead as this job is to see it. False: nothing comes. */
static bool ahead_for(struct pass *pass, const struct job *job, bool only_takes)
{
	const struct ahead *ahead = pass->ahead;
	bool claims = claims_from_others(pass, job), guesses = ahead_guesses(pass, job);

	/* Nothing ends: but what was reserved since may. */
	if (!ahead || (ahead->same && slots_end(pass)) || ahead->changes != pass->changes ||
	    ahead->spares != job->preempts || ahead->guesses != guesses ||
	    ahead->only_takes != only_takes || ahead->claim_queue != (claims ? job->queue.v : 0) ||
	    ahead->claim_rank != (claims ? job_rank(job) : 0))
		ahead_make(pass, job, guesses, claims, only_takes);
	return !pass->ahead->same; /* else it does not fit now, and never will */
}

/* The reservation behind which the place is free at that time, when nothing else ends then; 0 = none. */
static uint32_t slot_waited_for(const struct pass *pass, int64_t start_ms)
{
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		if (pass->reservations[i].end_ms == start_ms)
			return pass->reservations[i].job;
	return 0;
}

/* What it is to find, and when: with all that is reserved in the way where the job, or the search, knows no ends of it. */
static bool ahead_walk(struct pass *pass, const struct job *job,
		       const struct place_request *request, bool only_takes, int64_t *ret_least_ms)
{
	struct slot_asker asker = slot_asker_make(pass, job);

	asker.endless = asker.endless || only_takes;
	if (!blocks_exist(pass) && (asker.endless || !pass->reservation_count)) {
		slots_go(pass, &asker, pass->facts->now_ms);
		return ahead_seek(pass, job, request);
	}
	if (!ahead_go_by_stretches(pass, job, request, &asker, ret_least_ms))
		return false;
	stretch_note(pass, job, &asker, *ret_least_ms);
	return true;
}

static bool ahead_find(struct pass *pass, const struct job *job,
		       const struct place_request *request, bool only_takes, struct reservation *r)
{
	const struct ahead *ahead;
	int64_t least_ms = 0;

	if (!ahead_for(pass, job, only_takes) ||
	    !ahead_walk(pass, job, request, only_takes, &least_ms))
		return false;
	ahead = pass->ahead;
	CHECK(place_find(ahead->space, request, pass->arena, &r->place, NULL) == 0);
	r->start_ms = ahead->moments[ahead->at].ms;
	r->waits_for = ahead->moments[ahead->at].first;
	if (r->start_ms < least_ms) {
		r->start_ms = least_ms;
		if (slot_waited_for(pass, least_ms))
			r->waits_for = slot_waited_for(pass, least_ms);
	}
	if (r->start_ms < pass->facts->now_ms)
		r->start_ms = pass->facts->now_ms;
	return true;
}

bool ahead_takes(struct pass *pass, const struct job *job, const struct place_request *request,
		 struct reservation *r)
{
	return job->preempts && claims_from_others(pass, job) &&
	       ahead_find(pass, job, request, true, r);
}

/* When and where it fits first. A claim that may evict looks first at what it may take; for the rest it has to wait. */
bool ahead_reserve(struct pass *pass, const struct job *job, const struct place_request *request,
		   struct reservation *r)
{
	if (!ahead_takes(pass, job, request, r) && !ahead_find(pass, job, request, false, r))
		return false;
	if (standing_opens_ms(&pass->standings, job, r->start_ms) != r->start_ms)
		return false; /* it could not start then: a place is looked for when its window is open */
	reservation_split(pass, r);
	return true;
}

void ahead_forget(struct pass *pass)
{
	if (pass->ahead)
		pass->ahead->changes = UINT32_MAX;
}

bool ahead_is_spent(const struct pass *pass)
{
	return ahead_moves(pass) >= RESERVE_MOVES_MAX;
}

uint32_t ahead_moves(const struct pass *pass)
{
	return pass->ahead ? pass->ahead->moves : 0;
}
