/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/testing.h"

#define MINUTE INT64_C(60000)

static void rejoin_set(struct world *w, int64_t rejoin_ms)
{
	struct event e = event_policy_make(w->now_ms, "test");

	e.policy_set.rejoin_ms = rejoin_ms;
	world_apply(w, &e);
}

static void node_lost(struct world *w, const char *name)
{
	struct event e = world_event(w, EVENT_NODE_STATE);

	e.node_state.node = facts_node_find(&w->facts, name).v;
	e.node_state.state = NODE_DOWN;
	e.node_state.reason = "test";
	world_apply(w, &e);
}

static uint8_t attempt_state(const struct world *w, uint32_t job)
{
	return attempt_get(&w->facts, job_get(&w->facts, (struct job_id){ job })->attempt)->state;
}

/* Best-effort work stops one after the other; what is free first is not the place of somebody who waits. */
static void what_comes_free_for_lost_ranks_is_kept_for_them(void **state)
{
	uint32_t gang, spare[2], single;
	struct world w;

	(void)state;
	world_init(&w, "n0:2 n1:2 n2:1 n3:1");
	rejoin_set(&w, 10 * MINUTE);
	gang = world_submit(&w, (struct wish){ .name = "gang", .tasks = 4, .rejoins = true });
	world_place(&w, gang, "n0 n0 n1 n1");
	for (int i = 0; i < 2; i++) {
		spare[i] = world_submit(&w, (struct wish){ .name = "spare", .best_effort = true });
		world_place(&w, spare[i], i ? "n3" : "n2");
	}
	single = world_submit(&w, (struct wish){ .name = "single", .polite = true });
	world_at(&w, 2 * MINUTE);
	node_lost(&w, "n1");
	world_exit_rank(&w, gang, 2, CAUSE_LOST, 0);
	world_exit_rank(&w, gang, 3, CAUSE_LOST, 0);
	world_decide(&w);
	assert_int_equal(attempt_state(&w, spare[0]), ATTEMPT_STOPPING);
	assert_int_equal(attempt_state(&w, spare[1]), ATTEMPT_STOPPING);
	assert_int_equal(w.evictions, 2);

	world_exit_rank(&w, spare[0], 0, CAUSE_STOPPED, 0);
	world_decide(&w);
	assert_int_equal(world_running(&w, single), 0);
	assert_int_equal(w.evictions, 2);
	world_exit_rank(&w, spare[1], 0, CAUSE_STOPPED, 0);
	world_decide(&w);
	assert_string_equal(world_places(&w, gang), "n0/1 n0/2 n2/1 n3/1");
	assert_int_equal(world_running(&w, single), 0);
	world_deinit(&w);
}

/* A policy that gives lost ranks no time evicts nobody for them: the gang is stopped in the same turn. */
static void without_time_to_come_back_nobody_goes_for_a_rank(void **state)
{
	uint32_t gang, spare;
	struct world w;

	(void)state;
	world_init(&w, "n0:1 n1:1 n2:1");
	rejoin_set(&w, 0);
	gang = world_submit(&w, (struct wish){ .name = "gang", .tasks = 2, .rejoins = true });
	world_place(&w, gang, "n0 n1");
	spare = world_submit(&w, (struct wish){ .name = "spare", .best_effort = true });
	world_place(&w, spare, "n2");
	world_at(&w, 2 * MINUTE);
	node_lost(&w, "n1");
	world_exit_rank(&w, gang, 1, CAUSE_LOST, 0);
	world_decide(&w);
	assert_int_equal(attempt_state(&w, gang), ATTEMPT_STOPPING);
	assert_int_equal(attempt_state(&w, spare), ATTEMPT_ACTIVE);
	world_deinit(&w);
}

/* What rank 0 has done is nowhere else: the one that comes beside it has not begun. */
static void the_only_rank_that_runs_is_not_told_to_leave_for_one_that_comes(void **state)
{
	const struct attempt *attempt;
	uint32_t elastic, other, late;
	struct world w;

	(void)state;
	world_init(&w, "n0:1 n1:1");
	world_policy(&w, MINUTE, 0);
	elastic = world_submit(
		&w, (struct wish){
			    .name = "elastic", .tasks = 1, .tasks_max = 2, .best_effort = true });
	other = world_submit(&w, (struct wish){ .name = "other" });
	world_run(&w);
	assert_int_equal(world_running(&w, elastic), 1);
	world_at(&w, 60 * MINUTE);
	world_exit(&w, other, 0);
	for (int i = 0; i < 3; i++)
		world_decide(&w); /* it grows; its second rank's place is prepared */
	assert_int_equal(world_running(&w, elastic), 2);
	late = world_submit(&w, (struct wish){ .name = "late" });
	world_decide(&w);
	attempt = attempt_get(&w.facts, job_get(&w.facts, (struct job_id){ elastic })->attempt);
	assert_false(task_get(&w.facts, attempt, 0)->leaving);
	world_run(&w);
	assert_int_equal(world_running(&w, late), 1);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_free_for_lost_ranks_is_kept_for_them),
		cmocka_unit_test(without_time_to_come_back_nobody_goes_for_a_rank),
		cmocka_unit_test(the_only_rank_that_runs_is_not_told_to_leave_for_one_that_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
