/* SPDX-License-Identifier: Apache-2.0 */
/* Moves step by step: what is promised and told, and what becomes of it when something comes in between. Scenarios show who moves. */
#include <stdio.h>
#include <string.h>

#include "core/rearranging/rearrange.h"
#include "core/scheduling/testing.h"

/* Two nodes of two, a small job on each that saved a moment ago, and a pair that wants one node. */
struct pair {
	struct world w;
	uint32_t small[2], pair;
	uint32_t moving; /* which of the small ones moves */
};

static bool leaves(const struct world *w, uint32_t job)
{
	const struct attempt *a =
		attempt_get(&w->facts, job_get(&w->facts, (struct job_id){ job })->attempt);

	return attempt_is_leaving(a);
}

static bool is_promised(const struct world *w, uint32_t job)
{
	return job_get(&w->facts, (struct job_id){ job })->promise != 0;
}

static void pair_init(struct pair *p, int64_t grace_ms)
{
	static const char *const nodes[] = { "n0", "n1" };

	world_init(&p->w, "n0:2 n1:2");
	world_policy(&p->w, grace_ms, 0);
	for (uint32_t i = 0; i < 2; i++) {
		p->small[i] = world_submit(&p->w, (struct wish){ .tasks = 1, .checkpoint = true });
		world_place(&p->w, p->small[i], nodes[i]);
	}
	world_at(&p->w, 1000);
	p->pair = world_submit(&p->w, (struct wish){ .tasks = 1, .gpus = 2 });
	world_decide(&p->w);
	p->moving = leaves(&p->w, p->small[1]);
}

static void node_goes(struct world *w, const char *name)
{
	struct event e = world_event(w, EVENT_NODE_STATE);

	e.node_state.node = facts_node_find(&w->facts, name).v;
	e.node_state.state = NODE_CORDONED;
	world_apply(w, &e);
}

static void who_moves_is_warned_and_both_places_are_promised(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, 5000);
	assert_true(leaves(&p.w, p.small[p.moving]) && !leaves(&p.w, p.small[!p.moving]));
	assert_true(is_promised(&p.w, p.pair) && is_promised(&p.w, p.small[p.moving]));
	assert_int_equal(p.w.facts.moves.jobs, 1);
	world_saved(&p.w, p.small[p.moving]);
	world_run(&p.w);
	assert_int_equal(world_running(&p.w, p.pair), 1);
	assert_int_equal(world_running(&p.w, p.small[p.moving]), 1);
	assert_false(is_promised(&p.w, p.small[p.moving]));
	world_deinit(&p.w);
}

static void who_moves_stays_when_it_is_not_needed_any_more(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, 5000);
	world_cancel(&p.w, p.pair);
	world_decide(&p.w);
	assert_false(leaves(&p.w, p.small[p.moving]));
	assert_false(is_promised(&p.w, p.small[p.moving]));
	world_deinit(&p.w);
}

static void a_plan_is_off_when_the_place_to_go_to_is_lost(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, 5000);
	node_goes(&p.w, p.moving ? "n0" : "n1");
	world_decide(&p.w);
	assert_false(leaves(&p.w, p.small[p.moving]));
	assert_false(is_promised(&p.w, p.small[p.moving]));
	assert_false(is_promised(&p.w, p.pair));
	world_deinit(&p.w);
}

static void who_was_stopped_goes_on_where_it_was_to_go_also_when_it_is_not_needed(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, 0);
	world_cancel(&p.w, p.pair);
	world_decide(&p.w);
	assert_true(is_promised(&p.w, p.small[p.moving]));
	world_run(&p.w);
	assert_int_equal(world_running(&p.w, p.small[p.moving]), 1);
	assert_int_equal(world_running(&p.w, p.small[!p.moving]), 1);
	world_deinit(&p.w);
}

static void nothing_is_looked_for_again_while_nothing_happens(void **state)
{
	struct pair p;
	int64_t looked_ms;

	(void)state;
	world_init(&p.w, "n0:2 n1:2");
	p.small[0] = world_submit(&p.w, (struct wish){ .tasks = 1 });
	p.small[1] = world_submit(&p.w, (struct wish){ .tasks = 1 });
	world_place(&p.w, p.small[0], "n0");
	world_place(&p.w, p.small[1], "n1");
	p.pair = world_submit(&p.w, (struct wish){ .tasks = 1, .gpus = 2 });
	world_decide(&p.w);
	looked_ms = p.w.facts.moves.looked_ms;
	assert_true(looked_ms && !p.w.facts.moves.jobs);
	world_at(&p.w, p.w.now_ms + 60000);
	world_decide(&p.w);
	assert_int_equal(p.w.facts.moves.looked_ms, looked_ms);
	(void)world_submit(&p.w, (struct wish){ .tasks = 1, .gpus = 2 });
	world_decide(&p.w);
	assert_int_equal(p.w.facts.moves.looked_ms, p.w.now_ms);
	world_deinit(&p.w);
}

/* The same by a person's word, whatever the policy says; a report of it changes nothing. */
static void what_a_person_asks_for_is_done_once(void **state)
{
	struct pair p;
	struct event asked;
	struct defrag_report report;
	struct arena arena;
	uint64_t hash;

	(void)state;
	world_init(&p.w, "n0:2 n1:2");
	world_policy(&p.w, 0, 0);
	world_defragment(&p.w, DEFRAGMENT_OFF);
	for (uint32_t i = 0; i < 2; i++) {
		p.small[i] = world_submit(&p.w, (struct wish){ .tasks = 1, .checkpoint = true });
		world_place(&p.w, p.small[i], i ? "n1" : "n0");
	}
	p.pair = world_submit(&p.w, (struct wish){ .tasks = 1, .gpus = 2 });
	world_decide(&p.w);
	assert_int_equal(p.w.facts.moves.jobs, 0);
	arena_init(&arena, (size_t)1 << 26);
	hash = facts_hash(&p.w.facts);
	core_defrag(&p.w.facts, &arena, &report);
	assert_true(facts_hash(&p.w.facts) == hash);
	assert_true(report.stuck_count == 1 && report.stuck[0] == p.pair);
	assert_true(report.plan_count == 1 && report.plans[0].for_job == p.pair &&
		    report.plans[0].count == 1 && report.plans[0].gained_share == 2 * GPU_SHARE);
	assert_true(report.plans[0].moves[0].from[0] != report.plans[0].moves[0].to[0]);
	asked = world_event(&p.w, EVENT_DEFRAG_ASKED);
	world_apply(&p.w, &asked);
	world_run(&p.w);
	assert_int_equal(world_running(&p.w, p.pair), 1);
	assert_int_equal(p.w.facts.moves.jobs, 1);
	assert_false(p.w.facts.moves.asked);
	arena_deinit(&arena);
	world_deinit(&p.w);
}

/* --- random worlds ------------------------------------------------------------------------------------------------ */

enum { WORLDS = 30, STEPS = 60, NODES = 5, NODE_GPUS = 4 };

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	random_state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = random_state;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % limit);
}

static const struct job *job_of(const struct world *w, uint32_t id)
{
	return job_get(&w->facts, (struct job_id){ id });
}

/* Free GPUs by node, counted from the tasks that run. */
static void free_count(const struct world *w, uint32_t free[NODES + 1])
{
	for (uint32_t node = 1; node <= NODES; node++)
		free[node] = NODE_GPUS;
	for (uint32_t id = 1; id <= w->facts.jobs.count; id++) {
		struct attempt_id attempt = job_of(w, id)->attempt;

		for (uint32_t i = 0; attempt.v && i < attempt_get(&w->facts, attempt)->tasks; i++) {
			const struct task *task =
				task_get(&w->facts, attempt_get(&w->facts, attempt), i);

			free[task->node.v] -= (uint32_t)__builtin_popcount(task->gpu_mask);
		}
	}
}

/* It never saves here: it loses all since its start, and the other one would wait until its reservation. */
static bool is_worth_it(const struct world *w, const struct attempt *attempt, uint32_t gpus,
			uint32_t waits, uint32_t want)
{
	const struct reservation_fact *r = facts_reservation(&w->facts, (struct job_id){ waits });
	int64_t loses_ms = w->now_ms - attempt->released_ms;

	return !r || loses_ms * gpus < (r->start_ms - w->facts.moves.looked_ms) * want;
}

/* Would the job of one task fit if this one, of one task as well, moved? */
static bool one_move_would_do(const struct world *w, uint32_t waits, uint32_t mover)
{
	const struct job *job = job_of(w, mover);
	const struct attempt *attempt = attempt_get(&w->facts, job->attempt);
	uint32_t want = shape_get(&w->facts, job_of(w, waits)->shape)->gpus, free[NODES + 1], from,
		 gpus;

	if (!job->checkpoints || job->tier != TIER_STANDARD || attempt->tasks != 1 ||
	    attempt->previous)
		return false;
	free_count(w, free);
	from = task_get(&w->facts, attempt, 0)->node.v;
	gpus = shape_get(&w->facts, job->shape)->gpus;
	if (free[from] + gpus < want || !is_worth_it(w, attempt, gpus, waits, want))
		return false;
	free[from] -= want - gpus;
	for (uint32_t node = 1; node <= NODES; node++)
		if (node != from && free[node] >= gpus)
			return true;
	return false;
}

/* The only job that waits, if it is one of one task; 0 = there is none, or several wait. */
static uint32_t only_waiting(const struct world *w)
{
	uint32_t found = 0, count = 0;

	for (uint32_t id = 1; id <= w->facts.jobs.count; id++)
		if (job_is_waiting(job_of(w, id))) {
			found = id;
			count++;
		}
	return count == 1 && shape_get(&w->facts, job_of(w, found)->shape)->tasks_min == 1 ? found
											   : 0;
}

/* So that the bounds on cost and number refuse nothing. */
static void bounds_widen(struct world *w, int64_t defragment)
{
	struct event e = event_policy_make(w->now_ms, "test");

	e.policy_set.defragment = defragment;
	e.policy_set.defragment_moves = 10000;
	e.policy_set.defragment_work_ms = INT64_C(24) * 3600000;
	world_apply(w, &e);
}

static void random_step(struct world *w)
{
	uint32_t waits;

	world_at(w, w->now_ms + MOVES_LOOK_MS + below(60000));
	for (uint32_t id = 1; id <= w->facts.jobs.count; id++)
		if (job_of(w, id)->attempt.v ? below(6) == 0
					     : job_is_waiting(job_of(w, id)) && below(2))
			world_cancel(w, id);
	(void)world_submit(w, (struct wish){ .tasks = 1 + (below(4) == 0),
					     .gpus = 1 + below(NODE_GPUS),
					     .checkpoint = below(4) != 0 });
	world_run(w);
	world_at(w, w->now_ms + MOVES_LOOK_MS); /* what ended meanwhile is seen at the next look */
	world_run(w);
	waits = only_waiting(w);
	for (uint32_t other = 1; waits && other <= w->facts.jobs.count; other++)
		if (job_of(w, other)->attempt.v)
			assert_false(one_move_would_do(w, waits, other));
}

/* And whoever moved runs again: world_run does all that is told, so nobody is left between two places. */
static void where_one_move_would_do_no_job_waits(void **state)
{
	uint32_t moves = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		struct world w;

		random_state = seed;
		world_init(&w, "n0:4 n1:4 n2:4 n3:4 n4:4");
		world_policy(&w, 0, 0);
		bounds_widen(&w, 1 + (int64_t)below(2));
		for (int i = 0; i < STEPS; i++) {
			random_step(&w);
			for (uint32_t id = 1; id <= w.facts.jobs.count; id++)
				assert_true(!job_of(&w, id)->evicted);
		}
		moves += w.moves;
		world_deinit(&w);
	}
	print_message("%u moves\n", moves);
	assert_true(moves > WORLDS); /* else this shows nothing */
}

/* --- on paper and in the space -------------------------------------------------------------------------------------- */

static void processors_set(struct world *w)
{
	for (uint32_t node = 1; node <= NODES; node++) {
		struct event e = world_event(w, EVENT_NODE_SET);

		e.node_set.name =
			facts_name(&w->facts, node_get(&w->facts, (struct node_id){ node })->name);
		e.node_set.gpus = NODE_GPUS;
		e.node_set.model = "H100-80GB";
		e.node_set.gpu_memory_mib = 80 * 1024;
		e.node_set.cpu_milli = 8000;
		world_apply(w, &e);
	}
}

static uint64_t places_mark(const struct world *w, uint64_t sum)
{
	for (uint32_t id = 1; id <= w->facts.jobs.count; id++) {
		const struct attempt *a = job_of(w, id)->attempt.v
						  ? attempt_get(&w->facts, job_of(w, id)->attempt)
						  : NULL;

		for (uint32_t i = 0; a && i < a->tasks; i++)
			sum = (sum ^ id ^ (uint64_t)task_get(&w->facts, a, i)->node.v << 20 ^
			       (uint64_t)task_get(&w->facts, a, i)->gpu_mask << 32) *
			      UINT64_C(0x9e3779b97f4a7c15);
	}
	return sum ^ w->moves;
}

/* What comes to lie where. No fabric is described, so no place is too slow for whoever says max_slowdown. */
static uint64_t places_of(uint64_t seed, int64_t max_slowdown, uint32_t *moves)
{
	uint64_t sum = 0;
	struct world w;

	random_state = seed;
	world_init(&w, "n0:4 n1:4 n2:4 n3:4 n4:4");
	processors_set(&w);
	world_policy(&w, 0, 0);
	bounds_widen(&w, 0);
	for (int i = 0; i < STEPS; i++) {
		struct wish wish = { .tasks = 1 + (below(3) == 0) * below(3),
				     .checkpoint = below(4) != 0 };

		world_at(&w, w.now_ms + MOVES_LOOK_MS + below(60000));
		for (uint32_t id = 1; id <= w.facts.jobs.count; id++)
			if (job_of(&w, id)->attempt.v ? below(6) == 0
						      : job_is_waiting(job_of(&w, id)) && below(2))
				world_cancel(&w, id);
		wish.gpus = 1 + below(NODE_GPUS);
		wish.cpu_milli = 1000 * (int64_t)below(8);
		wish.require = below(4) ? "" : "node";
		wish.part = below(8) ? 0 : GPU_SHARE / 2;
		wish.max_slowdown = max_slowdown;
		if (wish.part)
			wish.gpus = wish.tasks = 1;
		(void)world_submit(&w, wish);
		world_run(&w);
		world_at(&w, w.now_ms + MOVES_LOOK_MS);
		world_run(&w);
		sum = places_mark(&w, sum);
	}
	*moves += w.moves;
	world_deinit(&w);
	return sum;
}

/* Most wishes are tried on the node's own numbers, one with max_slowdown in the space: both must say the same. */
static void tried_on_paper_and_in_the_space_the_same_jobs_move(void **state)
{
	uint32_t moves = 0, others = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		uint64_t on_paper = places_of(seed, 0, &moves);

		assert_true(on_paper == places_of(seed, 1, &others));
	}
	print_message("%u moves\n", moves);
	assert_int_equal(moves, others);
	assert_true(moves > WORLDS);
}

/* --- a look is bounded ------------------------------------------------------------------------------------------- */

enum { MANY_NODES = MOVES_READ_MAX / 8 + 44, HOLE_A = 7, HOLE_B = 200 };

/* Work that saves on all GPUs, but for one on each of two nodes. */
static void savers_fill(struct world *w)
{
	char picture[MANY_NODES * 8], node[16];
	uint32_t length = 0;

	for (int i = 0; i < MANY_NODES; i++)
		length += (uint32_t)snprintf(picture + length, sizeof(picture) - length, "%sn%d:8",
					     i ? " " : "", i);
	world_init(w, picture);
	w->quiet = true;
	for (int i = 0; i < MANY_NODES; i++) {
		snprintf(node, sizeof(node), "n%d", i);
		for (int gpu = i == HOLE_A || i == HOLE_B; gpu < 8; gpu++)
			world_place(
				w, world_submit(w, (struct wish){ .tasks = 1, .checkpoint = true }),
				node);
	}
}

/* How many running jobs a look of the next pass reads. */
static uint32_t look_reads(struct world *w)
{
	struct pass pass;
	uint32_t mark;

	arena_reset(&w->step);
	view_refresh(w->view, &w->facts);
	pass_begin(&pass, &w->facts, w->view, UINT64_MAX, &w->step);
	mark = space_mark(&w->view->space);
	pass_run(&pass);
	rearrange_run(&pass);
	space_rollback(&w->view->space, mark);
	return pass.looked;
}

static void of_very_many_that_save_a_look_reads_those_beside_free_gpus(void **state)
{
	struct world w;
	uint32_t reads;

	(void)state;
	savers_fill(&w);
	world_at(&w, w.now_ms + 1000);
	(void)world_submit(&w, (struct wish){ .tasks = 1, .gpus = 2 });
	reads = look_reads(&w);
	assert_in_range(reads, 14, MOVES_READ_MAX + NODE_GPUS_MAX);
	world_decide(&w);
	assert_int_equal(w.facts.moves.jobs, 1);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_moves_is_warned_and_both_places_are_promised),
		cmocka_unit_test(who_moves_stays_when_it_is_not_needed_any_more),
		cmocka_unit_test(a_plan_is_off_when_the_place_to_go_to_is_lost),
		cmocka_unit_test(
			who_was_stopped_goes_on_where_it_was_to_go_also_when_it_is_not_needed),
		cmocka_unit_test(nothing_is_looked_for_again_while_nothing_happens),
		cmocka_unit_test(what_a_person_asks_for_is_done_once),
		cmocka_unit_test(where_one_move_would_do_no_job_waits),
		cmocka_unit_test(tried_on_paper_and_in_the_space_the_same_jobs_move),
		cmocka_unit_test(of_very_many_that_save_a_look_reads_those_beside_free_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
