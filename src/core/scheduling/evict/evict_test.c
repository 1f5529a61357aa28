/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes room for whom, how, and what becomes of promises meanwhile. */
#include "core/scheduling/testing.h"

#define MINUTE INT64_C(60000)

/* --- winding down ------------------------------------------------------------------------------------------- */

struct wind {
	struct world w;
	uint32_t low, high;
};

/* `low` runs on the one GPU, `high` wants it; grace of one minute. */
static void wind_init(struct wind *t, bool checkpoint)
{
	world_init(&t->w, "n0:1");
	world_policy(&t->w, MINUTE, 0);
	t->low = world_submit(&t->w, (struct wish){ .checkpoint = checkpoint });
	world_run(&t->w);
	world_at(&t->w, 1000 + 10 * MINUTE);
	t->high = world_submit(&t->w, (struct wish){ .priority = 1 });
	world_run(&t->w);
	assert_int_equal(world_state(&t->w, t->low), JOB_CHECKPOINTING);
	assert_int_equal(world_running(&t->w, t->high), 0);
	assert_int_equal(t->w.wake_ms, 1000 + 11 * MINUTE);
}

static void a_victim_stops_when_its_checkpoint_is_complete(void **state)
{
	struct wind t;

	(void)state;
	wind_init(&t, true);
	world_at(&t.w, 1000 + 10 * MINUTE + 5);
	world_saved(&t.w, t.low);
	world_run(&t.w);
	assert_int_equal(world_running(&t.w, t.high), 1);
	assert_int_equal(world_state(&t.w, t.low), JOB_PREEMPTED);
	assert_int_equal(job_get(&t.w.facts, (struct job_id){ t.low })->lost_gpu_ms, 0);
	world_exit(&t.w, t.high, 0);
	world_run(&t.w);
	assert_int_equal(
		attempt_get(&t.w.facts, job_get(&t.w.facts, (struct job_id){ t.low })->attempt)
			->resume_number,
		1);
	world_deinit(&t.w);
}

static void a_checkpoint_from_before_the_warning_does_not_stop_it(void **state)
{
	struct wind t;

	(void)state;
	world_init(&t.w, "n0:1");
	world_policy(&t.w, MINUTE, 0);
	t.low = world_submit(&t.w, (struct wish){ .checkpoint = true });
	world_run(&t.w);
	world_at(&t.w, 5000);
	world_saved(&t.w, t.low);
	world_at(&t.w, 6000);
	t.high = world_submit(&t.w, (struct wish){ .priority = 1 });
	world_run(&t.w);
	assert_int_equal(world_state(&t.w, t.low), JOB_CHECKPOINTING);
	world_deinit(&t.w);
}

static void a_victim_without_checkpoint_has_all_of_its_grace(void **state)
{
	struct wind t;

	(void)state;
	wind_init(&t, false);
	world_at(&t.w, 1000 + 11 * MINUTE - 1);
	world_run(&t.w);
	assert_int_equal(world_running(&t.w, t.low), 1);
	world_at(&t.w, 1000 + 11 * MINUTE);
	world_run(&t.w);
	assert_int_equal(world_running(&t.w, t.high), 1);
	assert_int_equal(job_get(&t.w.facts, (struct job_id){ t.low })->lost_gpu_ms, 11 * MINUTE);
	world_deinit(&t.w);
}

static void a_victim_is_spared_when_the_preemptor_is_cancelled(void **state)
{
	struct wind t;

	(void)state;
	wind_init(&t, true);
	world_cancel(&t.w, t.high);
	world_run(&t.w);
	assert_int_equal(world_state(&t.w, t.low), JOB_RUNNING);
	assert_int_equal(t.w.evictions, 0);
	world_deinit(&t.w);
}

static void a_victim_is_spared_when_another_place_is_free(void **state)
{
	struct wind t;
	struct event e;

	(void)state;
	wind_init(&t, true);
	e = world_event(&t.w, EVENT_NODE_SET);
	e.node_set.name = "n1";
	e.node_set.gpus = 1;
	world_apply(&t.w, &e);
	world_run(&t.w);
	assert_int_equal(world_state(&t.w, t.low), JOB_RUNNING);
	assert_string_equal(world_places(&t.w, t.high), "n1/1");
	world_deinit(&t.w);
}

static void two_preemptors_do_not_count_on_the_same_gpus(void **state)
{
	uint32_t low[2], high[2];
	struct world w;

	(void)state;
	world_init(&w, "n0:2");
	world_policy(&w, MINUTE, 0);
	for (int i = 0; i < 2; i++)
		low[i] = world_submit(&w, (struct wish){ .checkpoint = true });
	world_run(&w);
	for (int i = 0; i < 2; i++)
		high[i] = world_submit(&w, (struct wish){ .priority = 1 });
	world_run(&w);
	assert_int_equal(world_state(&w, low[0]), JOB_CHECKPOINTING);
	assert_int_equal(world_state(&w, low[1]), JOB_CHECKPOINTING);
	world_saved(&w, low[0]);
	world_run(&w);
	assert_int_equal(world_running(&w, high[0]) + world_running(&w, high[1]), 1);
	world_deinit(&w);
}

static void what_one_victim_leaves_over_serves_the_next(void **state)
{
	uint32_t wide, first, second;
	struct world w;

	(void)state;
	world_init(&w, "n0:4");
	world_policy(&w, MINUTE, 0);
	wide = world_submit(&w, (struct wish){ .gpus = 4 });
	world_run(&w);
	first = world_submit(&w, (struct wish){ .gpus = 2, .priority = 1 });
	second = world_submit(&w, (struct wish){ .gpus = 2, .priority = 1 });
	world_at(&w, 2000);
	world_run(&w);
	world_at(&w, 2000 + MINUTE);
	world_run(&w);
	assert_int_equal(world_running(&w, first), 1);
	assert_int_equal(world_running(&w, second), 1);
	assert_int_equal(world_running(&w, wide), 0);
	assert_int_equal(w.evictions, 1);
	world_deinit(&w);
}

static void best_effort_work_is_stopped_at_once(void **state)
{
	uint32_t spare, normal;
	struct world w;

	(void)state;
	world_init(&w, "n0:1");
	world_policy(&w, MINUTE, MINUTE);
	spare = world_submit(&w, (struct wish){ .best_effort = true, .checkpoint = true });
	world_run(&w);
	normal = world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	assert_int_equal(world_running(&w, normal), 1);
	assert_int_equal(world_state(&w, spare), JOB_PREEMPTED);
	world_deinit(&w);
}

static void shield(struct world *w, uint32_t job, bool shielded)
{
	struct event e = world_event(w, EVENT_ATTEMPT_SHIELDED);

	e.attempt_shielded.attempt = job_get(&w->facts, (struct job_id){ job })->attempt.v;
	e.attempt_shielded.shielded = shielded;
	world_apply(w, &e);
}

/* Of two jobs that are alike the later one goes, but for a shield; and where only shielded ones are, one of them goes all the same. */
static void what_is_shielded_goes_last(void **state)
{
	uint32_t first, second, high;
	struct world w;

	(void)state;
	for (int both = 0; both < 2; both++) {
		world_init(&w, "n0:2");
		world_policy(&w, 0, MINUTE);
		first = world_submit(&w, (struct wish){ .gpus = 1 });
		world_run(&w);
		second = world_submit(&w, (struct wish){ .gpus = 1 });
		world_run(&w);
		world_at(&w, 1000 + 60 * MINUTE);
		shield(&w, second, true);
		shield(&w, first, both);
		high = world_submit(&w, (struct wish){ .gpus = 1, .priority = 1 });
		world_run(&w);
		assert_int_equal(world_running(&w, high), 1);
		assert_int_equal(world_running(&w, first), both);
		assert_int_equal(world_running(&w, second), !both);
		world_deinit(&w);
	}
}

static void a_young_job_is_safe_until_it_is_mature(void **state)
{
	uint32_t high;
	struct world w;

	(void)state;
	world_init(&w, "n0:1");
	world_policy(&w, 0, MINUTE);
	(void)world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	high = world_submit(&w, (struct wish){ .priority = 1 });
	world_run(&w);
	assert_int_equal(world_running(&w, high), 0);
	assert_int_equal(w.wake_ms, 1000 + MINUTE);
	world_at(&w, 1000 + MINUTE);
	world_run(&w);
	assert_int_equal(world_running(&w, high), 1);
	world_deinit(&w);
}

/* --- victims ---------------------------------------------------------------------------------------------------- */

static void the_cheapest_node_is_cleared(void **state)
{
	uint32_t jobs[5], high;
	struct world w;

	(void)state;
	world_init(&w, "n0:2 n1:2");
	jobs[0] = world_submit(&w, (struct wish){ .gpus = 1 });
	jobs[1] = world_submit(&w, (struct wish){ .gpus = 1 });
	jobs[2] = world_submit(&w, (struct wish){ .gpus = 1, .checkpoint = true });
	jobs[3] = world_submit(&w, (struct wish){ .gpus = 1, .checkpoint = true });
	world_place(&w, jobs[0], "n0");
	world_place(&w, jobs[1], "n1");
	world_place(&w, jobs[2], "n0");
	world_place(&w, jobs[3], "n1");
	world_at(&w, 1000 + 50 * MINUTE);
	world_saved(&w, jobs[2]);
	world_at(&w, 1000 + 60 * MINUTE);
	high = world_submit(&w, (struct wish){ .gpus = 2, .priority = 1 });
	world_run(&w);
	/* n0: 60 + 10 minutes are lost; n1: 60 + 60 */
	assert_string_equal(world_places(&w, high), "n0/3");
	assert_int_equal(world_running(&w, jobs[1]) + world_running(&w, jobs[3]), 2);
	world_deinit(&w);
}

static void one_wide_victim_goes_before_many_small_ones_that_cost_more(void **state)
{
	uint32_t small[4], big, high;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	for (int i = 0; i < 4; i++) {
		small[i] = world_submit(&w, (struct wish){ .gpus = 1 });
		world_place(&w, small[i], "n0");
	}
	world_at(&w, 1000 + 10 * MINUTE);
	big = world_submit(&w, (struct wish){ .gpus = 4 });
	world_place(&w, big, "n0");
	world_at(&w, 1000 + 20 * MINUTE);
	high = world_submit(&w, (struct wish){ .gpus = 4, .priority = 1 });
	world_run(&w);
	/* each small one costs 20 and comes first in order, but the big one alone costs 40, and four small ones 80 */
	assert_int_equal(world_running(&w, high), 1);
	assert_int_equal(w.evictions, 1);
	assert_int_equal(world_running(&w, big), 0);
	assert_int_equal(world_running(&w, small[0]), 1);
	world_deinit(&w);
}

static void the_queues_limit_is_made_room_in_by_its_own_lower_work(void **state)
{
	uint32_t low[2], high, wide;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	world_queue(&w, "q", "", 0, 2, 1);
	for (int i = 0; i < 2; i++)
		low[i] = world_submit(&w, (struct wish){ .queue = "q" });
	world_run(&w);
	wide = world_submit(&w, (struct wish){ .queue = "q", .gpus = 3, .priority = 2 });
	world_run(&w);
	assert_int_equal(w.evictions, 0);
	assert_int_equal(world_running(&w, wide), 0);
	high = world_submit(&w, (struct wish){ .queue = "q", .priority = 1 });
	world_run(&w);
	assert_int_equal(world_running(&w, high), 1);
	assert_int_equal(world_running(&w, low[0]), 1);
	assert_int_equal(world_running(&w, low[1]), 0);
	world_deinit(&w);
}

/* On each node a GPU of the higher work stays, so that no job of two GPUs finds room: a hundred of them, all unlike. */
static void the_job_behind_a_hundred_fruitless_searches_has_its_turn(void **state)
{
	struct world w;
	uint32_t last;

	(void)state;
	world_init(&w, "n0:2 n1:2");
	for (int i = 0; i < 2; i++)
		world_place(&w, world_submit(&w, (struct wish){ .priority = 9 }), i ? "n1" : "n0");
	for (int i = 0; i < 2; i++)
		world_place(&w, world_submit(&w, (struct wish){ .priority = -9 }), i ? "n1" : "n0");
	for (int i = 1; i <= 100; i++)
		(void)world_submit(&w, (struct wish){ .gpus = 2, .cpu_milli = i });
	last = world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	assert_int_equal(world_running(&w, last), 1);
	assert_int_equal(w.evictions, 1);
	world_deinit(&w);
}

/*
 * n0 has one GPU free; `pair` needs both of a node and may not take from b, which is not above its share before `small`
 * starts. Then it may. Best-effort work that started in the same pass would be gone with the next.
 */
static void best_effort_work_is_not_started_to_be_evicted_at_once(void **state)
{
	struct world w;
	uint32_t spare, pair;

	(void)state;
	world_init(&w, "n0:2 n1:2");
	world_queue(&w, "a", "", 2, -1, 1);
	world_queue(&w, "b", "", 1, -1, 1);
	world_place(&w, world_submit(&w, (struct wish){ .queue = "b" }), "n0");
	world_place(&w, world_submit(&w, (struct wish){ .queue = "b" }), "n1");
	pair = world_submit(&w, (struct wish){ .queue = "a", .gpus = 2 });
	(void)world_submit(&w, (struct wish){ .queue = "b" });
	spare = world_submit(&w, (struct wish){ .queue = "b", .best_effort = true });
	world_run(&w);
	assert_int_equal(world_running(&w, pair), 1);
	assert_true(job_get(&w.facts, (struct job_id){ spare })->attempts <=
		    world_running(&w, spare));
	world_deinit(&w);
}

static void a_rack_is_cleared_for_a_gang_that_needs_one(void **state)
{
	uint32_t job, gang, dear;
	struct world w;

	(void)state;
	world_init(&w, "r0: n0:2 n1:2 | r1: n2:2 n3:2");
	dear = world_submit(&w, (struct wish){ .gpus = 1 });
	world_place(&w, dear, "n0");
	world_at(&w, 1000 + 60 * MINUTE);
	for (int i = 0; i < 4; i++) {
		char node[3] = { 'n', (char)('0' + i), 0 };

		job = world_submit(&w, (struct wish){ .gpus = 1 });
		world_place(&w, job, node);
	}
	world_at(&w, 1000 + 61 * MINUTE);
	gang = world_submit(&w, (struct wish){ .tasks = 4, .require = "rack", .priority = 1 });
	world_run(&w);
	assert_string_equal(world_places(&w, gang), "n2/1 n2/2 n3/1 n3/2");
	assert_int_equal(w.evictions, 2);
	world_deinit(&w);
}

static void equal_priority_and_polite_jobs_evict_nobody(void **state)
{
	uint32_t equal, polite;
	struct world w;

	(void)state;
	world_init(&w, "n0:1");
	(void)world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	equal = world_submit(&w, (struct wish){ .gpus = 1 });
	polite = world_submit(&w, (struct wish){ .priority = 9, .polite = true });
	world_run(&w);
	assert_int_equal(world_running(&w, equal) + world_running(&w, polite), 0);
	assert_int_equal(w.evictions, 0);
	world_deinit(&w);
}

static void critical_work_is_never_evicted_not_even_for_its_owner(void **state)
{
	uint32_t loan, claim;
	struct world w;

	(void)state;
	world_init(&w, "n0:2");
	world_queue(&w, "owner", "", 2, -1, 1);
	world_queue(&w, "borrower", "", 0, -1, 1);
	loan = world_submit(&w, (struct wish){ .queue = "borrower", .tier = TIER_CRITICAL });
	world_place(&w, loan, "n0"); /* it would not be placed by the core: there is no guarantee */
	claim = world_submit(&w, (struct wish){ .queue = "owner", .gpus = 2 });
	world_run(&w);
	assert_int_equal(world_running(&w, loan), 1);
	assert_int_equal(world_running(&w, claim), 0);
	world_deinit(&w);
}

static void only_queues_above_their_share_give_back(void **state)
{
	uint32_t own, loan, claim;
	struct world w;

	(void)state;
	world_init(&w, "n0:2 n1:2");
	world_queue(&w, "a", "", 2, -1, 1);
	world_queue(&w, "b", "", 2, -1, 1);
	world_queue(&w, "c", "", 0, -1, 1);
	loan = world_submit(&w, (struct wish){ .queue = "c", .tasks = 2 });
	world_place(&w, loan, "n1 n1");
	world_at(&w, 1000 + 60 * MINUTE);
	own = world_submit(&w, (struct wish){ .queue = "b", .tasks = 2 }); /* the cheaper victim */
	world_place(&w, own, "n0 n0");
	claim = world_submit(&w, (struct wish){ .queue = "a", .tasks = 2 });
	world_run(&w);
	assert_int_equal(world_running(&w, own), 2);
	assert_int_equal(world_running(&w, claim), 2);
	assert_int_equal(world_running(&w, loan), 0);
	world_deinit(&w);
}

/* Own may hold 4 H100, and 4 are left beside the reserve of q: its promise uses up both, and is not in its own way. */
static void a_promise_is_not_in_its_own_way_beside_a_reserve(void **state)
{
	static const int64_t four[] = { 4 * GPU_SHARE };
	struct world w;
	struct event keeps, tick;
	uint32_t spare, other, own;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	world_queue(&w, "s", "", 0, -1, 1);
	keeps = world_event(&w, EVENT_QUEUE_SET);
	keeps.queue_set = (struct event_queue_set){ .name = "q",
						    .parent = "",
						    .team = "",
						    .calendar = "",
						    .limit_models = "",
						    .limit_share = -1,
						    .weight = 1,
						    .guarantee_share = 4 * GPU_SHARE,
						    .reserved = 1,
						    .guarantee_models = "H100-80GB",
						    .guarantee_model_shares = four,
						    .guarantee_model_shares_count = 1 };
	world_apply(&w, &keeps);
	keeps.queue_set.name = "p";
	keeps.queue_set.reserved = keeps.queue_set.guarantee_share = 0;
	keeps.queue_set.guarantee_model_shares_count = 0;
	keeps.queue_set.guarantee_models = "";
	keeps.queue_set.limit_models = "H100-80GB";
	keeps.queue_set.limit_model_shares = four;
	keeps.queue_set.limit_model_shares_count = 1;
	world_apply(&w, &keeps);
	spare = world_submit(&w, (struct wish){ .gpus = 2, .queue = "s", .best_effort = true });
	other = world_submit(&w, (struct wish){ .gpus = 2, .queue = "s", .best_effort = true });
	world_place(&w, spare, "n0");
	world_place(&w, other, "n1");
	own = world_submit(&w, (struct wish){ .gpus = 4, .queue = "p" });
	world_decide(&w);
	assert_true(job_get(&w.facts, (struct job_id){ own })->promise);
	tick = world_event(&w, EVENT_CLOCK_TICKED);
	world_apply(&w, &tick);
	world_decide(&w);
	assert_int_equal(w.decisions, 0);
	assert_true(job_get(&w.facts, (struct job_id){ own })->promise);
	world_run(&w);
	assert_int_equal(world_running(&w, own), 1);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_victim_stops_when_its_checkpoint_is_complete),
		cmocka_unit_test(a_checkpoint_from_before_the_warning_does_not_stop_it),
		cmocka_unit_test(a_victim_without_checkpoint_has_all_of_its_grace),
		cmocka_unit_test(a_victim_is_spared_when_the_preemptor_is_cancelled),
		cmocka_unit_test(a_victim_is_spared_when_another_place_is_free),
		cmocka_unit_test(two_preemptors_do_not_count_on_the_same_gpus),
		cmocka_unit_test(what_one_victim_leaves_over_serves_the_next),
		cmocka_unit_test(best_effort_work_is_stopped_at_once),
		cmocka_unit_test(what_is_shielded_goes_last),
		cmocka_unit_test(a_promise_is_not_in_its_own_way_beside_a_reserve),
		cmocka_unit_test(a_young_job_is_safe_until_it_is_mature),
		cmocka_unit_test(the_cheapest_node_is_cleared),
		cmocka_unit_test(one_wide_victim_goes_before_many_small_ones_that_cost_more),
		cmocka_unit_test(the_queues_limit_is_made_room_in_by_its_own_lower_work),
		cmocka_unit_test(the_job_behind_a_hundred_fruitless_searches_has_its_turn),
		cmocka_unit_test(best_effort_work_is_not_started_to_be_evicted_at_once),
		cmocka_unit_test(a_rack_is_cleared_for_a_gang_that_needs_one),
		cmocka_unit_test(equal_priority_and_polite_jobs_evict_nobody),
		cmocka_unit_test(critical_work_is_never_evicted_not_even_for_its_owner),
		cmocka_unit_test(only_queues_above_their_share_give_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
