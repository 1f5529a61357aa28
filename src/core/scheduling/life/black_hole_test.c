/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and GPUs that swallow one job after the other, and people who mistype. */
#include "core/scheduling/testing.h"

static void set_node(struct world *w, const char *name, enum node_state to)
{
	struct event e = world_event(w, EVENT_NODE_STATE);

	e.node_state.node = facts_node_find(&w->facts, name).v;
	e.node_state.state = to;
	world_apply(w, &e);
}

/* Jobs of two users in turn that fail at once, each on the first GPU of the first node. */
static void fail_jobs(struct world *w, uint32_t count, int64_t array)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t job = world_submit(
			w,
			(struct wish){ .user = i % 2 ? "ben" : "ann", .gpus = 1, .array = array });

		for (uint32_t k = 0; k < (array ? array : 1); k++) {
			world_run(w);
			world_exit(w, job + k, 1);
			world_run(w);
		}
	}
}

static void a_gpu_on_which_different_jobs_fail_early_is_set_aside(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	fail_jobs(&w, 2, 0);
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->set_aside_mask, 0);
	fail_jobs(&w, 1, 0);
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->set_aside_mask, 1);
	job = world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	assert_string_equal(world_places(&w, job), "n0/2");
	world_deinit(&w);
}

/* Jobs of one user that fail at once. */
static void fail_alone(struct world *w, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t job = world_submit(w, (struct wish){ .user = "ann", .gpus = 1 });

		world_run(w);
		world_exit(w, job, 1);
		world_run(w);
	}
}

static void the_mistakes_of_one_user_set_no_gpu_aside(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:2 n1:4");
	fail_alone(&w, 6);
	assert_int_equal(node_get(&w.facts, (struct node_id){ 1 })->set_aside_mask, 0);
	fail_jobs(&w, 2, 0); /* those before count when another user meets the same */
	assert_int_equal(node_get(&w.facts, (struct node_id){ 1 })->set_aside_mask, 1);
	world_deinit(&w);
}

static void the_jobs_of_one_array_do_not_make_a_black_hole(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:1 n1:1");
	fail_jobs(&w, 1, 8); /* four on each node */
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->state, NODE_READY);
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->set_aside_mask, 0);
	world_deinit(&w);
}

/* Jobs whose program is not there, on the first node. */
static void slip_jobs(struct world *w, const char *user, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t job = world_submit(w, (struct wish){ .user = user });

		world_run(w);
		world_exit(w, job, i % 2 ? 126 : 127);
		world_run(w);
	}
}

static void the_slips_of_one_user_set_nothing_aside(void **state)
{
	const struct node *node;
	struct world w;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	slip_jobs(&w, "ann", 6);
	node = node_get(&w.facts, facts_node_find(&w.facts, "n0"));
	assert_int_equal(node->state, NODE_READY);
	assert_int_equal(node->set_aside_mask, 0);
	world_deinit(&w);
}

static void programs_that_several_users_miss_set_the_node_aside_and_no_gpu(void **state)
{
	const struct node *node;
	struct world w;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	slip_jobs(&w, "ann", 2);
	assert_int_equal(node_get(&w.facts, (struct node_id){ 1 })->state, NODE_READY);
	slip_jobs(&w, "bob", 1);
	node = node_get(&w.facts, facts_node_find(&w.facts, "n0"));
	assert_int_equal(node->state, NODE_QUARANTINED);
	assert_int_equal(node->set_aside_mask, 0);
	world_deinit(&w);
}

static void a_slip_does_not_add_to_the_failures_of_a_gpu(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	fail_jobs(&w, 2, 0);
	slip_jobs(&w, "ann", 1);
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->set_aside_mask, 0);
	fail_jobs(&w, 1, 0);
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->set_aside_mask, 1);
	world_deinit(&w);
}

static void a_black_hole_is_quarantined_but_never_the_last_node(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:1 n1:1");
	fail_jobs(&w, 3, 0);
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->state,
			 NODE_QUARANTINED);
	fail_jobs(&w, 4, 0);
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n1"))->state, NODE_READY);
	world_deinit(&w);
}

static void the_only_ready_node_is_not_quarantined(void **state)
{
	struct world w;
	char name[3] = "n0";

	(void)state;
	world_init(&w, "n0:1 n1:1 n2:1 n3:1 n4:1 n5:1 n6:1 n7:1");
	for (int i = 1; i < 8; i++) {
		name[1] = (char)('0' + i);
		set_node(&w, name, NODE_CORDONED);
	}
	fail_jobs(&w, 4, 0);
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->state, NODE_READY);
	world_deinit(&w);
}

static void at_most_a_quarter_of_the_nodes_is_set_aside(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:1 n1:1 n2:1 n3:1");
	fail_jobs(&w, 12, 0); /* three on each of four nodes would be enough */
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->state,
			 NODE_QUARANTINED);
	for (uint32_t id = 2; id <= 4; id++)
		assert_int_equal(node_get(&w.facts, (struct node_id){ id })->state, NODE_READY);
	world_deinit(&w);
}

static void who_runs_out_of_memory_blames_no_gpu(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	for (int i = 0; i < 4; i++) {
		uint32_t job = world_submit(&w, (struct wish){ .gpus = 1 });

		world_run(&w);
		world_exit_rank(&w, job, 0, CAUSE_MEMORY, 0);
		world_run(&w);
	}
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->set_aside_mask, 0);
	world_deinit(&w);
}

static void who_fails_after_a_long_run_blames_no_gpu(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	for (int i = 0; i < 4; i++) {
		uint32_t job = world_submit(&w, (struct wish){ .gpus = 1 });

		world_run(&w);
		world_at(&w, w.now_ms + w.facts.policy.blackhole_window_ms + 1);
		world_exit(&w, job, 1);
		world_run(&w);
	}
	assert_int_equal(node_get(&w.facts, facts_node_find(&w.facts, "n0"))->set_aside_mask, 0);
	world_deinit(&w);
}

static void failures_that_a_new_policy_finds_too_many_set_the_gpu_aside(void **state)
{
	struct event policy;
	struct world w;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	fail_jobs(&w, 2, 0);
	assert_int_equal(node_get(&w.facts, (struct node_id){ 1 })->set_aside_mask, 0);
	policy = world_event(&w, EVENT_POLICY_SET);
	policy.policy_set = event_policy_make(0, "").policy_set;
	policy.policy_set.blackhole_failures = 2;
	world_apply(&w, &policy);
	world_decide(&w);
	assert_int_equal(node_get(&w.facts, (struct node_id){ 1 })->set_aside_mask, 1);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failures_that_a_new_policy_finds_too_many_set_the_gpu_aside),
		cmocka_unit_test(a_gpu_on_which_different_jobs_fail_early_is_set_aside),
		cmocka_unit_test(the_mistakes_of_one_user_set_no_gpu_aside),
		cmocka_unit_test(the_jobs_of_one_array_do_not_make_a_black_hole),
		cmocka_unit_test(the_slips_of_one_user_set_nothing_aside),
		cmocka_unit_test(programs_that_several_users_miss_set_the_node_aside_and_no_gpu),
		cmocka_unit_test(a_slip_does_not_add_to_the_failures_of_a_gpu),
		cmocka_unit_test(a_black_hole_is_quarantined_but_never_the_last_node),
		cmocka_unit_test(the_only_ready_node_is_not_quarantined),
		cmocka_unit_test(at_most_a_quarter_of_the_nodes_is_set_aside),
		cmocka_unit_test(who_runs_out_of_memory_blames_no_gpu),
		cmocka_unit_test(who_fails_after_a_long_run_blames_no_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
