/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More blocked jobs than a pass may search victims for. Each node has a GPU of work that nobody may evict, so that the crowd,
 * all unlike and each wanting two GPUs of a node, searches in vain; jobs of one GPU among them may evict. Random events
 * come also in the middle of a round. After each:
 *
 *	an index built anew from the saved facts decides the same, event for event
 *	when it comes to rest, a round from the first job on would decide nothing either: nobody was passed over for good
 */
#include <string.h>

#include "base/buf.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/testing.h"

enum { WORLDS = 12, STEPS = 40, CROWD = 3 * EVICT_SEARCHES_MAX, PASSES_MAX = 400 };

static uint64_t random_state;
static uint32_t cut_passes;

static uint32_t below(uint32_t limit)
{
	random_state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = random_state;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % limit);
}

static void encode(const struct decisions *d, struct buf *out)
{
	for (uint32_t i = 0; i < d->count; i++) {
		buf_addf(out, "%s ", event_info(d->events[i].kind)->name);
		event_encode(&d->events[i], out);
		buf_addc(out, '\n');
	}
	buf_addf(out, "more %d wake %lld\n", d->more, (long long)d->wake_ms);
}

static int load(void *facts, uint32_t kind, const char *text, size_t size)
{
	return facts_load_record(facts, kind, text, size, NULL) < 0 ? -1 : 0;
}

static void assert_same_from_saved(const struct world *w, const struct decisions *made)
{
	AUTO_BUF was = BUF_INIT, is = BUF_INIT;
	struct decisions again;
	struct facts loaded;
	struct arena step;
	struct view *view;

	facts_init(&loaded);
	arena_init(&step, (size_t)1 << 30);
	assert_int_equal(facts_save(&w->facts, &loaded, load), 0);
	assert_int_equal(facts_load_finish(&loaded, NULL), 0);
	assert_true(facts_hash(&loaded) == facts_hash(&w->facts));
	view = view_create(&loaded);
	decide(&loaded, view, 1000000, &step, &again);
	encode(made, &was);
	encode(&again, &is);
	assert_string_equal(buf_text(&is), buf_text(&was));
	view_destroy(view);
	arena_deinit(&step);
	facts_deinit(&loaded);
}

/* Whether there is more to decide. */
static bool pass_step(struct world *w)
{
	struct decisions d;

	arena_reset(&w->step);
	decide(&w->facts, w->view, 1000000, &w->step, &d);
	if (below(4) == 0)
		assert_same_from_saved(w, &d);
	for (uint32_t i = 0; i < d.count; i++) {
		cut_passes += d.events[i].kind == EVENT_SEARCHED && d.events[i].searched.count;
		world_apply(w, &d.events[i]);
	}
	return d.count || d.more;
}

static void assert_nobody_passed_over(const struct world *w)
{
	struct decisions d = { .more = true };
	struct arena step;
	struct facts copy;
	struct view *view;

	facts_freeze(&w->facts, &copy);
	copy.searched = 0;
	copy.search_stale = false;
	view = view_create(&copy);
	arena_init(&step, (size_t)1 << 30);
	while (d.more) {
		arena_reset(&step);
		decide(&copy, view, 1000000, &step, &d);
		for (uint32_t i = 0; i < d.count; i++) {
			assert_int_equal(d.events[i].kind, EVENT_SEARCHED);
			apply(&copy, &d.events[i]);
		}
	}
	arena_deinit(&step);
	view_destroy(view);
	facts_deinit(&copy);
}

static uint32_t submit_hopeless(struct world *w)
{
	return world_submit(w, (struct wish){ .queue = below(2) ? "a" : "b",
					      .gpus = 2,
					      .priority = (int64_t)below(3) - 1,
					      .cpu_milli = 1 + below(100000) });
}

static void something_happens(struct world *w)
{
	uint32_t job = 1 + below(w->facts.jobs.count);

	if (below(2))
		(void)submit_hopeless(w);
	else if (!below(8))
		(void)world_submit(w, (struct wish){ .queue = "c", .tier = TIER_CRITICAL });
	else if (below(2))
		(void)world_submit(w, (struct wish){ .queue = below(2) ? "a" : "b",
						     .priority = (int64_t)below(5) - 2 });
	else if (job > 4 && !job_state_is_final(world_state(w, job)))
		world_cancel(w, job);
}

static void engine_does(struct world *w)
{
	for (uint32_t job = 5; job <= w->facts.jobs.count; job++) {
		const struct job *j = job_get(&w->facts, (struct job_id){ job });
		const struct attempt *a;

		if (!j->attempt.v)
			continue;
		a = attempt_get(&w->facts, j->attempt);
		if (a->state == ATTEMPT_PREPARING && a->ready < a->tasks)
			world_ready(w, job);
		else if (a->state == ATTEMPT_ACTIVE && a->started < a->tasks)
			world_start(w, job);
		else if (a->state == ATTEMPT_STOPPING && a->exited < a->tasks)
			world_exit_rank(w, job, 0, CAUSE_STOPPED, 0);
	}
}

static void world_make(struct world *w)
{
	static const char *const nodes[] = { "n0", "n1", "n2", "n3" };

	world_init(w, "n0:2 n1:2 n2:2 n3:2");
	world_queue(w, "a", "", 0, -1, 1);
	world_queue(w, "b", "", 0, -1, 1);
	world_queue(w, "c", "", 2, -1, 1);
	for (int i = 0; i < 4; i++)
		world_place(
			w,
			world_submit(w, (struct wish){ .queue = i % 2 ? "a" : "b", .priority = 9 }),
			nodes[i]);
	for (int i = 0; i < 4; i++)
		world_place(w,
			    world_submit(
				    w, (struct wish){ .queue = i % 2 ? "a" : "b", .priority = -9 }),
			    nodes[i]);
	for (int i = 0; i < CROWD; i++)
		(void)submit_hopeless(w);
}

static void it_goes_on_where_it_stood_with_an_index_built_anew(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= WORLDS; seed++) {
		struct world w;
		uint32_t passes = 0;

		random_state = seed;
		world_make(&w);
		for (int step = 0; step < STEPS; step++) {
			something_happens(&w);
			/* Other things come in between, as in a daemon whose turn is over. */
			while (pass_step(&w) && below(6))
				assert_true(++passes < PASSES_MAX * STEPS);
			engine_does(&w);
		}
		for (passes = 0; pass_step(&w); passes++) {
			engine_does(&w);
			assert_true(passes < PASSES_MAX);
		}
		assert_nobody_passed_over(&w);
		world_deinit(&w);
	}
	assert_true(cut_passes > 100);
}

/* The first one in the order waits for a job that is too young yet; behind it a crowd of another queue searches in vain. */
static void who_is_passed_over_is_still_woken_for_when_a_victim_is_old_enough(void **state)
{
	static const char *const nodes[] = { "n0", "n1", "n2", "n3" };
	struct world w;
	struct event policy;

	(void)state;
	world_init(&w, "n0:2 n1:2 n2:2 n3:2");
	world_queue(&w, "a", "", 0, -1, 1);
	world_queue(&w, "b", "", 0, -1, 1);
	world_policy(&w, 0, 60000);
	policy = world_event(&w, EVENT_POLICY_SET);
	policy.policy_set = event_policy_make(0, "").policy_set;
	policy.policy_set.backfill_depth = 0; /* no reviews: they wake the core as well */
	world_apply(&w, &policy);
	for (int i = 0; i < 4; i++)
		world_place(&w,
			    world_submit(
				    &w, (struct wish){ .queue = i % 2 ? "a" : "b", .priority = 9 }),
			    nodes[i]);
	for (int i = 0; i < 2; i++)
		world_place(&w, world_submit(&w, (struct wish){ .queue = "b", .priority = -9 }),
			    nodes[i]);
	world_at(&w, w.now_ms + 70000);
	for (int i = 2; i < 4; i++)
		world_place(&w, world_submit(&w, (struct wish){ .queue = "a", .priority = -9 }),
			    nodes[i]);
	(void)world_submit(&w, (struct wish){ .queue = "a" });
	for (int i = 0; i < CROWD; i++)
		(void)world_submit(&w,
				   (struct wish){ .queue = "b", .gpus = 2, .cpu_milli = 1 + i });
	world_decide(&w);
	assert_true(w.facts.searched > 0);
	assert_int_equal(w.wake_ms, w.now_ms + 60000);
	world_deinit(&w);
}

/* One pass; whether it starts the job or promises a place to it. */
static bool decided_in_one_pass(struct world *w, uint32_t job)
{
	struct decisions d;
	bool found = false;

	arena_reset(&w->step);
	decide(&w->facts, w->view, 1000000, &w->step, &d);
	for (uint32_t i = 0; i < d.count; i++) {
		found = found ||
			(d.events[i].kind == EVENT_PROMISE_MADE &&
			 d.events[i].promise_made.job == job) ||
			(d.events[i].kind == EVENT_ATTEMPT_PLACED &&
			 d.events[i].attempt_placed.job == job);
		world_apply(w, &d.events[i]);
	}
	return found;
}

/*
 * Each node has a GPU of critical work and one of a borrower. A crowd that is promised GPUs and has none goes first, and searches
 * for two GPUs of a node in vain. `serve` uses 4 of the 6 GPUs that it is promised, and so comes after it.
 */
static void a_critical_job_waits_for_the_searches_of_nobody(void **state)
{
	static const char *const nodes[] = { "n0", "n1", "n2", "n3" };
	struct world w;
	uint32_t before, amid;

	(void)state;
	world_init(&w, "n0:2 n1:2 n2:2 n3:2");
	world_queue(&w, "crowd", "", 2, -1, 1);
	world_queue(&w, "serve", "", 6, -1, 1);
	world_queue(&w, "borrower", "", 0, -1, 1);
	world_policy(&w, 0, 0);
	for (int i = 0; i < 4; i++)
		world_place(
			&w,
			world_submit(&w, (struct wish){ .queue = "serve", .tier = TIER_CRITICAL }),
			nodes[i]);
	for (int i = 0; i < 4; i++)
		world_place(&w, world_submit(&w, (struct wish){ .queue = "borrower" }), nodes[i]);
	for (int i = 0; i < CROWD; i++)
		(void)world_submit(
			&w, (struct wish){ .queue = "crowd", .gpus = 2, .cpu_milli = 1 + i });
	before = world_submit(&w, (struct wish){ .queue = "serve", .tier = TIER_CRITICAL });
	assert_true(decided_in_one_pass(&w, before));
	assert_true(w.facts.searched > 0); /* the crowd was not done */
	amid = world_submit(&w, (struct wish){ .queue = "serve", .tier = TIER_CRITICAL });
	for (int i = 0; i < 3; i++)
		if (decided_in_one_pass(&w, amid))
			amid = 0; /* what the first promise decides comes first */
	assert_int_equal(amid, 0);
	assert_true(w.facts.searched > 0 && w.facts.searched < CROWD);
	world_deinit(&w);
}

/* One pass that has used up its steps before its first search. */
static bool spent_pass(struct world *w, uint32_t *ret_searches)
{
	struct pass pass;
	uint32_t mark;

	arena_reset(&w->step);
	view_refresh(w->view, &w->facts);
	pass_begin(&pass, &w->facts, w->view, UINT64_MAX, &w->step);
	pass.steps = EVICT_STEPS_MAX;
	mark = space_mark(&w->view->space);
	pass_run(&pass);
	space_rollback(&w->view->space, mark);
	for (uint32_t i = 0; i < pass.count; i++)
		world_apply(w, &pass.events[i]);
	*ret_searches = pass.searches;
	return pass.count || pass.more;
}

static void a_pass_out_of_steps_makes_one_search_and_the_next_goes_on_behind_it(void **state)
{
	struct world w;
	uint32_t searches, sum = 0;

	(void)state;
	random_state = 1;
	world_make(&w);
	for (uint32_t passes = 0; spent_pass(&w, &searches); passes++) {
		assert_true(searches <= 1);
		assert_true(passes < PASSES_MAX);
		sum += searches;
	}
	assert_true(sum >= CROWD);
	assert_nobody_passed_over(&w);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_goes_on_where_it_stood_with_an_index_built_anew),
		cmocka_unit_test(a_critical_job_waits_for_the_searches_of_nobody),
		cmocka_unit_test(
			a_pass_out_of_steps_makes_one_search_and_the_next_goes_on_behind_it),
		cmocka_unit_test(who_is_passed_over_is_still_woken_for_when_a_victim_is_old_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
