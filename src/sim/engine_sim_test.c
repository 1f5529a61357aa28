/* SPDX-License-Identifier: Apache-2.0 */
/* The engine alone: the test says what the core would decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "sim/engine_sim.h"

static struct facts facts;
static struct engine_sim engine;
static uint64_t seq;

static void take(struct event e)
{
	e.seq = ++seq;
	apply(&facts, &e);
	engine_sim_take(&engine, &facts, &e);
}

static struct event at(enum event_kind kind, int64_t time_ms)
{
	return event_make(kind, time_ms, "test");
}

/* Submits a job of two tasks that behaves so, and places it as attempt 1. */
static void place(struct sim_work work)
{
	static const int64_t nodes[] = { 1, 1 }, masks[] = { 1, 2 };
	struct event e = at(EVENT_JOB_SUBMITTED, 0);

	e.job_submitted.job = 1;
	e.job_submitted.name = "job";
	e.job_submitted.queue = "default";
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = 2;
	e.job_submitted.gpus = 1;
	e.job_submitted.checkpoint = work.checkpoints;
	take(e);
	engine_sim_job(&engine, 1, &work);
	e = at(EVENT_ATTEMPT_PLACED, 0);
	e.attempt_placed.job = e.attempt_placed.attempt = 1;
	e.attempt_placed.nodes = nodes;
	e.attempt_placed.masks = masks;
	e.attempt_placed.nodes_count = e.attempt_placed.masks_count = 2;
	take(e);
}

/* The next report, which must be due exactly then and of that kind. */
static struct event next(int64_t at_ms, enum event_kind kind)
{
	struct event e;

	assert_true(engine_sim_pop(&engine, &facts, at_ms, &e));
	assert_int_equal(e.time_ms, at_ms);
	assert_int_equal(e.kind, kind);
	e.seq = ++seq;
	apply(&facts, &e);
	return e;
}

static void silent_until(int64_t at_ms)
{
	struct event e;

	assert_false(engine_sim_pop(&engine, &facts, at_ms, &e));
}

static void start(struct sim_work work, int64_t at_ms)
{
	struct event e = at(EVENT_ATTEMPT_RELEASED, at_ms);

	place(work);
	next(work.ready_ms, EVENT_TASK_READY);
	next(work.ready_ms, EVENT_TASK_READY);
	silent_until(at_ms);
	e.attempt_released.attempt = 1;
	take(e);
	next(at_ms + work.start_ms, EVENT_TASK_STARTED);
	next(at_ms + work.start_ms, EVENT_TASK_STARTED);
}

static void stop(int64_t at_ms, int64_t grace_ms, enum stop_why why)
{
	struct event e = at(EVENT_ATTEMPT_STOPPED, at_ms);

	e.attempt_stopped.attempt = 1;
	e.attempt_stopped.grace_ms = grace_ms;
	e.attempt_stopped.why = why;
	take(e);
}

static void nothing_runs_before_the_release(void **state)
{
	(void)state;
	place((struct sim_work){ .runtime_ms = 100, .fails_after_ms = SIM_FOREVER, .ready_ms = 5 });
	next(5, EVENT_TASK_READY);
	next(5, EVENT_TASK_READY);
	silent_until(1000000);
	assert_false(engine_sim_is_busy(&engine));
	assert_int_equal(engine_sim_holder(&engine, 1, 0), 1);
	assert_int_equal(engine_sim_holder(&engine, 1, 2), 0);
}

static void a_job_ends_when_its_work_is_done(void **state)
{
	(void)state;
	start((struct sim_work){ .runtime_ms = 100, .fails_after_ms = SIM_FOREVER, .start_ms = 3 },
	      10);
	silent_until(112);
	assert_int_equal(next(113, EVENT_TASK_EXITED).task_exited.cause, CAUSE_EXIT);
	next(113, EVENT_TASK_EXITED);
	assert_int_equal(engine_sim_holder(&engine, 1, 0), 0);
	silent_until(1000000);
}

static void a_job_that_fails_does_so_in_its_first_rank(void **state)
{
	struct event e;

	(void)state;
	start((struct sim_work){ .runtime_ms = SIM_FOREVER, .fails_after_ms = 50 }, 0);
	e = next(50, EVENT_TASK_EXITED);
	assert_int_equal(e.task_exited.rank, 0);
	assert_int_equal(e.task_exited.code, 1);
	assert_int_equal(engine_sim_attempt(&engine, 1)->live, 1);
}

static void checkpoints_come_at_their_interval_and_do_not_keep_it_busy(void **state)
{
	(void)state;
	start((struct sim_work){ .runtime_ms = SIM_FOREVER,
				 .fails_after_ms = SIM_FOREVER,
				 .checkpoints = true,
				 .every_ms = 100,
				 .takes_ms = 7 },
	      0);
	assert_false(engine_sim_is_busy(&engine));
	assert_int_equal(next(107, EVENT_CHECKPOINT_SAVED).checkpoint_saved.number, 1);
	assert_int_equal(next(207, EVENT_CHECKPOINT_SAVED).checkpoint_saved.number, 2);
}

static void a_warned_job_saves_at_once(void **state)
{
	struct event e = at(EVENT_ATTEMPT_WARNED, 50);

	(void)state;
	start((struct sim_work){ .runtime_ms = SIM_FOREVER,
				 .fails_after_ms = SIM_FOREVER,
				 .checkpoints = true,
				 .takes_ms = 7 },
	      0);
	silent_until(50);
	e.attempt_warned.attempt = 1;
	e.attempt_warned.deadline_ms = 1000;
	take(e);
	assert_true(engine_sim_is_busy(&engine));
	next(57, EVENT_CHECKPOINT_SAVED);
	stop(57, 0, STOP_EVICTED);
	assert_int_equal(next(57, EVENT_TASK_EXITED).task_exited.cause, CAUSE_STOPPED);
}

static void stopping_takes_no_longer_than_the_grace(void **state)
{
	(void)state;
	start((struct sim_work){ .runtime_ms = SIM_FOREVER,
				 .fails_after_ms = SIM_FOREVER,
				 .stop_ms = 500 },
	      0);
	silent_until(20);
	stop(20, 100, STOP_CANCELLED);
	silent_until(119);
	next(120, EVENT_TASK_EXITED);
	next(120, EVENT_TASK_EXITED);
}

static void a_rank_stopped_before_the_release_never_ran(void **state)
{
	(void)state;
	place((struct sim_work){ .runtime_ms = 100, .fails_after_ms = SIM_FOREVER });
	next(0, EVENT_TASK_READY);
	next(0, EVENT_TASK_READY);
	stop(0, 0, STOP_CANCELLED);
	assert_true(next(0, EVENT_TASK_EXITED).task_exited.never_ran);
}

static void a_node_that_goes_down_takes_its_ranks(void **state)
{
	struct event e;

	(void)state;
	start((struct sim_work){ .runtime_ms = 100, .fails_after_ms = SIM_FOREVER }, 0);
	silent_until(30);
	engine_sim_node_down(&engine, 1);
	e = next(30, EVENT_TASK_EXITED);
	assert_int_equal(e.task_exited.cause, CAUSE_LOST);
	next(30, EVENT_TASK_EXITED);
	silent_until(1000000);
}

static void a_lost_report_comes_when_the_engine_repeats(void **state)
{
	(void)state;
	engine.faults = (struct sim_faults){ .lose = 1000 };
	place((struct sim_work){ .runtime_ms = 100, .fails_after_ms = SIM_FOREVER });
	silent_until(10);
	engine.faults = (struct sim_faults){ 0 };
	engine_sim_repeat(&engine);
	next(10, EVENT_TASK_READY);
	next(10, EVENT_TASK_READY);
}

static void the_same_seed_gives_the_same_chances(void **state)
{
	struct sim_random a = { 7 }, b = { 7 }, c = { 8 };
	bool differs = false;

	(void)state;
	for (int i = 0; i < 100; i++) {
		uint64_t value = sim_random_next(&a);

		assert_int_equal(value, sim_random_next(&b));
		differs = differs || value != sim_random_next(&c);
	}
	assert_true(differs);
	assert_int_equal(sim_random_below(&a, 0), 0);
}

static void work_saved_counts_complete_checkpoints(void **state)
{
	struct sim_work work = { .checkpoints = true, .every_ms = 10, .takes_ms = 3 };

	(void)state;
	assert_int_equal(sim_work_saved(&work, 2), 0);
	assert_int_equal(sim_work_saved(&work, 12), 0);
	assert_int_equal(sim_work_saved(&work, 13), 1);
	assert_int_equal(sim_work_saved(&work, 33), 3);
	work.checkpoints = false;
	assert_int_equal(sim_work_saved(&work, 33), 0);
}

static int set_up(void **state)
{
	struct event e = at(EVENT_NODE_SET, 0);

	(void)state;
	seq = 0;
	facts_init(&facts);
	engine_sim_init(&engine, 0);
	e.node_set.name = "n0";
	e.node_set.gpus = 4;
	take(e);
	e = at(EVENT_QUEUE_SET, 0);
	e.queue_set.name = "default";
	e.queue_set.limit_share = -1;
	take(e);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	engine_sim_deinit(&engine);
	facts_deinit(&facts);
	return 0;
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(nothing_runs_before_the_release),
		TEST(a_job_ends_when_its_work_is_done),
		TEST(a_job_that_fails_does_so_in_its_first_rank),
		TEST(checkpoints_come_at_their_interval_and_do_not_keep_it_busy),
		TEST(a_warned_job_saves_at_once),
		TEST(stopping_takes_no_longer_than_the_grace),
		TEST(a_rank_stopped_before_the_release_never_ran),
		TEST(a_node_that_goes_down_takes_its_ranks),
		TEST(a_lost_report_comes_when_the_engine_repeats),
		TEST(the_same_seed_gives_the_same_chances),
		TEST(work_saved_counts_complete_checkpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
