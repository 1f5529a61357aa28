/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/testing.h"

#define MINUTE INT64_C(60000)

/* --- the plain way ------------------------------------------------------------------------------------- */

static void a_job_is_placed_released_and_ends(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:2");
	job = world_submit(&w, (struct wish){ .tasks = 2, .gpus = 1 });
	world_decide(&w);
	assert_int_equal(world_running(&w, job), 2);
	assert_int_equal(world_state(&w, job), JOB_STARTING);
	world_ready(&w, job);
	world_decide(&w);
	world_start(&w, job);
	assert_int_equal(world_state(&w, job), JOB_RUNNING);
	world_exit(&w, job, 0);
	world_decide(&w);
	assert_int_equal(world_state(&w, job), JOB_SUCCEEDED);
	world_deinit(&w);
}

static void nothing_is_released_before_every_rank_is_ready(void **state)
{
	struct event e;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:2");
	job = world_submit(&w, (struct wish){ .tasks = 2 });
	world_decide(&w);
	e = world_event(&w, EVENT_TASK_READY);
	e.task_ready.attempt = 1;
	world_apply(&w, &e);
	world_decide(&w);
	e.task_ready.rank = 1;
	world_apply(&w, &e);
	world_decide(&w);
	assert_int_equal(attempt_get(&w.facts, (struct attempt_id){ 1 })->state, ATTEMPT_ACTIVE);
	assert_int_equal(world_running(&w, job), 2);
	world_deinit(&w);
}

static void a_rank_that_cannot_start_ends_the_attempt_whole(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:2");
	job = world_submit(&w, (struct wish){ .tasks = 2 });
	world_decide(&w);
	world_exit_rank(&w, job, 1, CAUSE_START, 0);
	world_decide(&w);
	assert_int_equal(attempt_get(&w.facts, (struct attempt_id){ 1 })->state, ATTEMPT_STOPPING);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_FAILED);
	world_deinit(&w);
}

static void what_the_machine_lacks_costs_no_retry(enum task_cause cause)
{
	struct world w;
	uint32_t job;

	world_init(&w, "n0:2");
	job = world_submit(&w, (struct wish){ .tasks = 2, .retries = 1 });
	world_decide(&w);
	for (int i = 0; i < 5; i++) {
		world_exit_rank(&w, job, 1, cause, 0);
		world_run(&w);
		world_at(&w, w.now_ms + 10000); /* it is tried again after a pause (life/pause.h) */
		world_run(&w);
		assert_int_equal(world_state(&w, job), JOB_RUNNING);
		assert_int_equal(job_get(&w.facts, (struct job_id){ job })->retries_left, 1);
		assert_int_equal(node_get(&w.facts, (struct node_id){ 1 })->failed_job[0], 0);
	}
	world_deinit(&w);
}

static void what_the_machine_lacks_costs_no_retry_and_sets_nothing_aside(void **state)
{
	(void)state;
	what_the_machine_lacks_costs_no_retry(CAUSE_NO_SPACE);
	what_the_machine_lacks_costs_no_retry(CAUSE_MACHINE);
}

static void retries_are_used_up_then_the_job_fails(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:2");
	job = world_submit(&w, (struct wish){ .tasks = 2, .retries = 2 });
	for (int i = 0; i < 2; i++) {
		world_run(&w);
		world_exit_rank(&w, job, 0, CAUSE_EXIT, 3);
		world_run(&w);
		assert_int_equal(world_state(&w, job), JOB_RUNNING);
	}
	world_exit_rank(&w, job, 0, CAUSE_EXIT, 3);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_FAILED);
	assert_int_equal(job_get(&w.facts, (struct job_id){ job })->exit_code, 3);
	world_deinit(&w);
}

static void a_lost_rank_costs_no_retry_and_the_gang_comes_back_whole(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:2");
	job = world_submit(&w, (struct wish){ .tasks = 2 });
	world_run(&w);
	world_exit_rank(&w, job, 1, CAUSE_LOST, 0);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_RUNNING);
	assert_int_equal(job_get(&w.facts, (struct job_id){ job })->attempts, 2);
	world_deinit(&w);
}

static void a_cancelled_job_ends_wherever_it_is(void **state)
{
	struct world w;
	uint32_t running, waiting;

	(void)state;
	world_init(&w, "n0:1");
	running = world_submit(&w, (struct wish){ .gpus = 1 });
	waiting = world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	world_cancel(&w, running);
	world_cancel(&w, waiting);
	world_run(&w);
	assert_int_equal(world_state(&w, running), JOB_CANCELLED);
	assert_int_equal(world_state(&w, waiting), JOB_CANCELLED);
	world_deinit(&w);
}

static void a_job_that_depends_on_a_failed_one_is_cancelled(void **state)
{
	struct world w;
	uint32_t first, second, third;

	(void)state;
	world_init(&w, "n0:2");
	first = world_submit(&w, (struct wish){ .gpus = 1 });
	second = world_submit(&w, (struct wish){ .gpus = 1, .depends = first });
	third = world_submit(&w, (struct wish){ .gpus = 1, .depends = second });
	world_run(&w);
	assert_int_equal(world_state(&w, second), JOB_BLOCKED);
	world_exit(&w, first, 1);
	world_run(&w);
	assert_int_equal(world_state(&w, second), JOB_CANCELLED);
	assert_int_equal(world_state(&w, third), JOB_CANCELLED);
	world_deinit(&w);
}

/* --- time ------------------------------------------------------------------------------------------------ */

static void a_run_time_limit_counts_earlier_attempts_without_what_was_lost(void **state)
{
	struct world w;
	uint32_t job, high;

	(void)state;
	world_init(&w, "n0:1");
	job = world_submit(&w, (struct wish){ .checkpoint = true, .limit_ms = 10 * MINUTE });
	world_run(&w);
	world_at(&w, 1000 + 4 * MINUTE);
	world_saved(&w, job);
	world_at(&w, 1000 + 6 * MINUTE); /* two minutes are lost */
	high = world_submit(&w, (struct wish){ .priority = 1 });
	world_run(&w);
	assert_int_equal(world_running(&w, high), 1);
	assert_int_equal(job_get(&w.facts, (struct job_id){ job })->lost_gpu_ms, 2 * MINUTE);
	assert_int_equal(job_get(&w.facts, (struct job_id){ job })->run_ms, 4 * MINUTE);
	world_exit(&w, high, 0);
	world_run(&w);
	assert_int_equal(world_running(&w, job), 1);
	assert_int_equal(w.wake_ms, 1000 + 12 * MINUTE); /* six minutes are left */
	world_at(&w, 1000 + 12 * MINUTE - 1);
	world_run(&w);
	assert_int_equal(world_running(&w, job), 1);
	world_at(&w, 1000 + 12 * MINUTE);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_TIMED_OUT);
	world_deinit(&w);
}

static void a_job_that_ends_just_in_time_runs_before_a_reserved_one(void **state)
{
	(void)state;
	for (int64_t late_ms = 0; late_ms < 2; late_ms++) {
		struct world w;
		uint32_t job;

		world_init(&w, "n0:2 n1:1");
		(void)world_submit(&w, (struct wish){ .gpus = 2, .limit_ms = 10 * MINUTE });
		world_run(&w);
		(void)world_submit(&w, (struct wish){ .tasks = 3, .limit_ms = MINUTE });
		job = world_submit(&w, (struct wish){ .limit_ms = 10 * MINUTE + late_ms });
		world_run(&w);
		assert_int_equal(world_running(&w, job), 1 - late_ms);
		world_deinit(&w);
	}
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

static void set_node(struct world *w, const char *name, enum node_state to)
{
	struct event e = world_event(w, EVENT_NODE_STATE);

	e.node_state.node = facts_node_find(&w->facts, name).v;
	e.node_state.state = to;
	world_apply(w, &e);
}

static void a_drained_node_is_left_after_a_checkpoint(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1 n1:1");
	world_policy(&w, MINUTE, 0);
	job = world_submit(&w, (struct wish){ .checkpoint = true });
	world_run(&w);
	assert_string_equal(world_places(&w, job), "n0/1");
	set_node(&w, "n0", NODE_DRAINING);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_CHECKPOINTING);
	world_at(&w, 5000);
	world_saved(&w, job);
	world_run(&w);
	assert_string_equal(world_places(&w, job), "n1/1");
	world_deinit(&w);
}

/* A minute is left at 0:00, and 55 s when it is said that nothing hears: then it is asked to end, and has these. */
static void who_hears_no_warning_is_stopped_with_the_time_that_is_left(void **state)
{
	const struct attempt *attempt;
	struct world w;
	struct event e;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1 n1:1");
	world_policy(&w, MINUTE, 0);
	job = world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	set_node(&w, "n0", NODE_DRAINING);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_CHECKPOINTING);
	world_at(&w, 5000);
	e = world_event(&w, EVENT_ATTEMPT_DEAF);
	e.attempt_deaf.attempt = 1;
	world_apply(&w, &e);
	world_run(&w);
	assert_string_equal(world_places(&w, job), "n1/1");
	attempt = attempt_get(&w.facts, (struct attempt_id){ 1 });
	assert_int_equal(attempt->why, STOP_NODE);
	assert_int_equal(attempt->deadline_ms, attempt->warned_ms + MINUTE);
	world_deinit(&w);
}

/* The node goes at 5:00 and the policy's grace is a minute: they are asked to end at 4:00. Of a notice that is shorter, at once. */
static void tasks_of_others_end_a_grace_before_their_node_goes(void **state)
{
	struct world w;
	struct event e;
	uint32_t job, late;

	(void)state;
	world_init(&w, "n0:1 n1:1");
	world_policy(&w, MINUTE, 0);
	job = world_submit(&w, (struct wish){ .external = true });
	late = world_submit(&w, (struct wish){ .external = true });
	world_run(&w);
	e = world_event(&w, EVENT_NODE_STATE);
	e.node_state.node = 1;
	e.node_state.state = NODE_DRAINING;
	e.node_state.within_ms = 5 * MINUTE - w.now_ms;
	world_apply(&w, &e);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_RUNNING);
	assert_int_equal(w.wake_ms, 4 * MINUTE);
	world_at(&w, 4 * MINUTE);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_CANCELLED);
	assert_int_equal(attempt_get(&w.facts, (struct attempt_id){ 1 })->why, STOP_NODE);
	e = world_event(&w, EVENT_NODE_STATE);
	e.node_state.node = 2;
	e.node_state.state = NODE_DRAINING;
	e.node_state.within_ms = MINUTE / 2;
	world_apply(&w, &e);
	world_run(&w);
	assert_int_equal(world_state(&w, late), JOB_CANCELLED);
	world_deinit(&w);
}

static void set_least(struct world *w, int64_t attempt, int64_t least)
{
	struct event e = world_event(w, EVENT_ATTEMPT_SHIELDED);

	e.attempt_shielded.attempt = attempt;
	e.attempt_shielded.least = least;
	world_apply(w, &e);
}

/* Three ranks, of which two have to go on: n0 goes and its rank leaves alone; with n1 too few would be left, so all go. */
static void tasks_of_others_leave_alone_as_long_as_enough_go_on(void **state)
{
	const struct attempt *attempt;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1 n1:1 n2:1");
	world_policy(&w, MINUTE, 0);
	job = world_submit(&w, (struct wish){ .external = true, .tasks = 3, .gpus = 1 });
	world_run(&w);
	set_least(&w, 1, 2);
	set_node(&w, "n0", NODE_DRAINING);
	world_decide(&w);
	attempt = attempt_get(&w.facts, (struct attempt_id){ 1 });
	assert_int_equal(attempt->leaving, 1);
	assert_true(task_get(&w.facts, attempt, 0)->leaving);
	assert_int_equal(world_state(&w, job), JOB_RUNNING);
	set_node(&w, "n0", NODE_READY); /* who was asked to leave does so */
	set_node(&w, "n0", NODE_DRAINING);
	world_decide(&w);
	world_exit_rank(&w, job, 0, CAUSE_LOST, 0);
	world_run(&w);
	assert_int_equal(world_running(&w, job), 2);
	assert_int_equal(world_state(&w, job), JOB_RUNNING);
	set_node(&w, "n1", NODE_DRAINING);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_CANCELLED);
	assert_int_equal(attempt_get(&w.facts, (struct attempt_id){ 1 })->why, STOP_NODE);
	world_deinit(&w);
}

/* Four ranks, of which two have to go on: who leaves already is not counted. */
static void who_leaves_already_does_not_go_on(void **state)
{
	const struct attempt *attempt;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1 n1:1 n2:1 n3:1");
	world_policy(&w, MINUTE, 0);
	job = world_submit(&w, (struct wish){ .external = true, .tasks = 4, .gpus = 1 });
	world_run(&w);
	set_least(&w, 1, 2);
	set_node(&w, "n0", NODE_DRAINING);
	world_decide(&w);
	set_node(&w, "n1", NODE_DRAINING);
	world_decide(&w);
	attempt = attempt_get(&w.facts, (struct attempt_id){ 1 });
	assert_int_equal(attempt->leaving, 2);
	assert_int_equal(world_state(&w, job), JOB_RUNNING);
	set_node(&w, "n2", NODE_DRAINING);
	world_decide(&w);
	attempt = attempt_get(&w.facts, (struct attempt_id){ 1 });
	assert_int_equal(attempt->leaving, 2);
	assert_int_equal(attempt->state, ATTEMPT_STOPPING);
	world_deinit(&w);
}

/* n0 goes and its rank leaves; before it has, too few stand beside the gang any more, for their nodes go as well: so all go. */
static void tasks_of_others_go_whole_when_too_few_are_left_while_some_leave(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	for (int64_t least = 0; least <= 3; least++) {
		world_init(&w, "n0:1 n1:1 n2:1");
		job = world_submit(&w, (struct wish){ .external = true, .tasks = 3, .gpus = 1 });
		world_run(&w);
		set_least(&w, 1, 2);
		set_node(&w, "n0", NODE_DRAINING);
		world_decide(&w);
		assert_int_equal(attempt_get(&w.facts, (struct attempt_id){ 1 })->leaving, 1);
		set_least(&w, 1, least); /* 0 = all three */
		world_decide(&w);
		assert_int_equal(attempt_get(&w.facts, (struct attempt_id){ 1 })->state,
				 least == 1 || least == 2 ? ATTEMPT_ACTIVE : ATTEMPT_STOPPING);
		world_exit_rank(&w, job, 0, CAUSE_LOST, 0);
		world_run(&w);
		assert_int_equal(world_state(&w, job),
				 least == 1 || least == 2 ? JOB_RUNNING : JOB_CANCELLED);
		set_least(&w, 1, 3); /* once they have left, nobody is stopped for that */
		world_run(&w);
		assert_int_equal(world_state(&w, job),
				 least == 1 || least == 2 ? JOB_RUNNING : JOB_CANCELLED);
		world_deinit(&w);
	}
}

/* One of them has not begun: it goes whole, and waits on. */
static void tasks_of_others_that_have_not_all_begun_leave_together(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1 n1:1 n2:1");
	job = world_submit(&w, (struct wish){ .external = true, .tasks = 2, .gpus = 1 });
	world_decide(&w);
	set_least(&w, 1, 1);
	world_ready(&w, job);
	world_decide(&w);
	set_node(&w, "n0", NODE_DRAINING);
	world_decide(&w);
	assert_int_equal(attempt_get(&w.facts, (struct attempt_id){ 1 })->leaving, 0);
	assert_int_equal(attempt_get(&w.facts, (struct attempt_id){ 1 })->state, ATTEMPT_STOPPING);
	world_deinit(&w);
}

static void a_drain_that_is_called_off_spares(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:1 n1:1");
	world_policy(&w, MINUTE, 0);
	job = world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	set_node(&w, "n0", NODE_DRAINING);
	world_run(&w);
	set_node(&w, "n0", NODE_READY);
	world_run(&w);
	assert_int_equal(world_state(&w, job), JOB_RUNNING);
	assert_int_equal(job_get(&w.facts, (struct job_id){ job })->attempts, 1);
	world_deinit(&w);
}

/* --- order --------------------------------------------------------------------------------------------------------- */

static void a_job_that_does_not_fit_holds_up_nobody(void **state)
{
	struct world w;
	uint32_t wide, small;

	(void)state;
	world_init(&w, "n0:2");
	wide = world_submit(&w, (struct wish){ .gpus = 1, .tasks = 3 });
	small = world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	assert_int_equal(world_running(&w, wide), 0);
	assert_int_equal(world_running(&w, small), 1);
	world_deinit(&w);
}

static void queues_take_turns_by_their_use_of_their_share(void **state)
{
	uint32_t a[6], b[6], in_a = 0, in_b = 0;
	struct world w;

	(void)state;
	world_init(&w, "n0:6");
	world_queue(&w, "a", "", 0, -1, 1);
	world_queue(&w, "b", "", 0, -1, 2);
	for (int i = 0; i < 6; i++)
		a[i] = world_submit(&w, (struct wish){ .queue = "a" });
	for (int i = 0; i < 6; i++)
		b[i] = world_submit(&w, (struct wish){ .queue = "b" });
	world_run(&w);
	for (int i = 0; i < 6; i++) {
		in_a += world_running(&w, a[i]);
		in_b += world_running(&w, b[i]);
	}
	assert_int_equal(in_a, 2);
	assert_int_equal(in_b, 4);
	assert_int_equal(w.evictions, 0);
	world_deinit(&w);
}

static void standard_work_of_any_queue_goes_before_best_effort(void **state)
{
	struct world w;
	uint32_t spare, normal;

	(void)state;
	world_init(&w, "n0:1");
	world_queue(&w, "a", "", 0, -1, 100);
	world_queue(&w, "b", "", 0, -1, 1);
	spare = world_submit(&w, (struct wish){ .queue = "a", .best_effort = true });
	normal = world_submit(&w, (struct wish){ .queue = "b" });
	world_decide(&w);
	assert_int_equal(world_running(&w, normal), 1);
	assert_int_equal(world_running(&w, spare), 0);
	world_deinit(&w);
}

static void a_reserved_guarantee_is_not_lent(void **state)
{
	struct event e;
	struct world w;
	uint32_t one, two;

	(void)state;
	world_init(&w, "n0:3");
	world_queue(&w, "other", "", 0, -1, 1);
	e = world_event(&w, EVENT_QUEUE_SET);
	e.queue_set.name = "keeper";
	e.queue_set.guarantee_share = 2 * GPU_SHARE;
	e.queue_set.limit_share = -1;
	e.queue_set.weight = 1;
	e.queue_set.reserved = 1;
	world_apply(&w, &e);
	one = world_submit(&w, (struct wish){ .queue = "other" });
	two = world_submit(&w, (struct wish){ .queue = "other" });
	world_run(&w);
	assert_int_equal(world_running(&w, one), 1);
	assert_int_equal(world_running(&w, two), 0);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_placed_released_and_ends),
		cmocka_unit_test(nothing_is_released_before_every_rank_is_ready),
		cmocka_unit_test(a_rank_that_cannot_start_ends_the_attempt_whole),
		cmocka_unit_test(what_the_machine_lacks_costs_no_retry_and_sets_nothing_aside),
		cmocka_unit_test(retries_are_used_up_then_the_job_fails),
		cmocka_unit_test(a_lost_rank_costs_no_retry_and_the_gang_comes_back_whole),
		cmocka_unit_test(a_cancelled_job_ends_wherever_it_is),
		cmocka_unit_test(a_job_that_depends_on_a_failed_one_is_cancelled),
		cmocka_unit_test(a_run_time_limit_counts_earlier_attempts_without_what_was_lost),
		cmocka_unit_test(a_job_that_ends_just_in_time_runs_before_a_reserved_one),
		cmocka_unit_test(a_drained_node_is_left_after_a_checkpoint),
		cmocka_unit_test(who_hears_no_warning_is_stopped_with_the_time_that_is_left),
		cmocka_unit_test(tasks_of_others_end_a_grace_before_their_node_goes),
		cmocka_unit_test(tasks_of_others_leave_alone_as_long_as_enough_go_on),
		cmocka_unit_test(who_leaves_already_does_not_go_on),
		cmocka_unit_test(tasks_of_others_go_whole_when_too_few_are_left_while_some_leave),
		cmocka_unit_test(tasks_of_others_that_have_not_all_begun_leave_together),
		cmocka_unit_test(a_drain_that_is_called_off_spares),
		cmocka_unit_test(a_job_that_does_not_fit_holds_up_nobody),
		cmocka_unit_test(queues_take_turns_by_their_use_of_their_share),
		cmocka_unit_test(standard_work_of_any_queue_goes_before_best_effort),
		cmocka_unit_test(a_reserved_guarantee_is_not_lent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
