/* SPDX-License-Identifier: Apache-2.0 */
/* What shepherds say of the checkpoints from which their tasks are to go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/state.h"

static struct daemon d;

static void happen(struct event event)
{
	event.seq = d.facts.seq + 1;
	apply(&d.facts, &event);
}

static void place(int64_t attempt, int64_t resume)
{
	static const int64_t nodes[] = { 1, 1 }, masks[] = { 1, 2 };
	struct event placed = event_make(EVENT_ATTEMPT_PLACED, 2, "t");

	placed.attempt_placed.job = 1;
	placed.attempt_placed.attempt = attempt;
	placed.attempt_placed.nodes = nodes;
	placed.attempt_placed.masks = masks;
	placed.attempt_placed.nodes_count = placed.attempt_placed.masks_count = 2;
	placed.attempt_placed.resume_number = resume;
	happen(placed);
}

static void save(int64_t attempt, int64_t number)
{
	struct event saved = event_make(EVENT_CHECKPOINT_SAVED, 3, "t");

	saved.checkpoint_saved.job = 1;
	saved.checkpoint_saved.attempt = attempt;
	saved.checkpoint_saved.number = number;
	saved.checkpoint_saved.path = "/c/step";
	saved.checkpoint_saved.bytes = 100;
	happen(saved);
	assert_int_equal(job_get(&d.facts, (struct job_id){ 1 })->checkpoints_made, number);
}

/* Job 1 has saved one checkpoint; its second attempt, a gang of two ranks, goes on from it. */
static int begin(void **state)
{
	struct event queue = event_make(EVENT_QUEUE_SET, 1, "t"),
		     node = event_make(EVENT_NODE_SET, 1, "t"),
		     job = event_make(EVENT_JOB_SUBMITTED, 1, "t"),
		     stopped = event_make(EVENT_ATTEMPT_STOPPED, 4, "t"),
		     ended = event_make(EVENT_ATTEMPT_ENDED, 4, "t"),
		     again = event_make(EVENT_JOB_REQUEUED, 4, "t");

	(void)state;
	daemon_init(&d, "/none/either");
	facts_init(&d.facts);
	queue.queue_set.name = "default";
	queue.queue_set.limit_share = -1;
	happen(queue);
	node.node_set.name = "n0";
	node.node_set.gpus = 4;
	happen(node);
	job.job_submitted.job = 1;
	job.job_submitted.name = "j";
	job.job_submitted.queue = "default";
	job.job_submitted.tasks_min = job.job_submitted.tasks_max = 2;
	job.job_submitted.gpus = 1;
	job.job_submitted.checkpoint = 1;
	happen(job);
	place(1, 0);
	save(1, 1);
	stopped.attempt_stopped.attempt = ended.attempt_ended.attempt = 1;
	happen(stopped);
	for (int64_t rank = 0; rank < 2; rank++) {
		struct event exited = event_make(EVENT_TASK_EXITED, 4, "t");

		exited.task_exited.attempt = 1;
		exited.task_exited.rank = rank;
		exited.task_exited.cause = CAUSE_STOPPED;
		happen(exited);
	}
	happen(ended);
	again.job_requeued.job = 1;
	again.job_requeued.why = REQUEUE_EVICTED;
	happen(again);
	place(2, 1);
	assert_int_equal(attempt_get(&d.facts, (struct attempt_id){ 2 })->resume_number, 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	facts_deinit(&d.facts);
	return 0;
}

static void what_is_said_is_held_against_the_report(void **state)
{
	bool missing = false;
	struct err err;

	(void)state;
	assert_true(torn_hear(&d, &d.facts, 2, 2, -1, &err) < 0);
	assert_true(torn_hear(&d, &d.facts, 2, 1, 100, &err) < 0);
	assert_false(torn_take(&d, 1, 1, &missing));
	assert_int_equal(torn_hear(&d, &d.facts, 2, 1, 99, &err), 0);
	assert_true(torn_take(&d, 1, 1, &missing));
	assert_false(missing);
	assert_false(torn_take(&d, 1, 1, &missing)); /* once */
	assert_int_equal(torn_hear(&d, &d.facts, 2, 1, -1, &err), 0);
	assert_true(torn_take(&d, 1, 1, &missing));
	assert_true(missing);
}

/* Rank 0 has saved a newer one, and removed what rank 1 looks for. */
static void a_late_rank_voids_nothing_that_others_have_left_behind(void **state)
{
	bool missing = false;
	struct err err;

	(void)state;
	save(2, 2);
	assert_int_equal(torn_hear(&d, &d.facts, 2, 1, -1, &err), 0);
	assert_false(torn_take(&d, 1, 1, &missing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_said_is_held_against_the_report, begin,
						end),
		cmocka_unit_test_setup_teardown(
			a_late_rank_voids_nothing_that_others_have_left_behind, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
