/* SPDX-License-Identifier: Apache-2.0 */
/* Which engine facts are news: told on facts made by events, as the daemon makes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/state.h"

static struct facts facts;

static void happen(struct event event)
{
	event.seq = facts.seq + 1;
	apply(&facts, &event);
}

static const int64_t places[2] = { 1, 1 }, masks[2] = { 1, 2 };

static int start(void **state)
{
	(void)state;
	facts_init(&facts);
	struct event queue = event_make(EVENT_QUEUE_SET, 1, "t");
	queue.queue_set.name = "default";
	queue.queue_set.limit_share = -1;
	happen(queue);
	struct event node = event_make(EVENT_NODE_SET, 1, "t");
	node.node_set.name = "n0";
	node.node_set.gpus = 4;
	happen(node);
	struct event job = event_make(EVENT_JOB_SUBMITTED, 1, "t");
	job.job_submitted.job = 1;
	job.job_submitted.name = "j";
	job.job_submitted.queue = "default";
	job.job_submitted.tasks_min = job.job_submitted.tasks_max = 2;
	job.job_submitted.gpus = 1;
	happen(job);
	struct event placed = event_make(EVENT_ATTEMPT_PLACED, 2, "fairlead");
	placed.attempt_placed.job = 1;
	placed.attempt_placed.attempt = 1;
	placed.attempt_placed.nodes = places;
	placed.attempt_placed.nodes_count = 2;
	placed.attempt_placed.masks = masks;
	placed.attempt_placed.masks_count = 2;
	happen(placed);
	assert_int_equal(facts.attempts.count, 1);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	facts_deinit(&facts);
	return 0;
}

static bool news(enum engine_fact_kind kind, uint32_t rank, uint64_t number, struct event *ret)
{
	static struct fact_message message; /* the event made of it points into it */
	message = (struct fact_message){
		.fact = { .kind = kind, .attempt = 1, .rank = rank, .number = number, .time_ms = 5 }
	};
	return fact_event(&facts, &message, ret);
}

static void a_fact_is_news_once(void **state)
{
	(void)state;
	struct event event;
	assert_true(news(ENGINE_READY, 0, 0, &event));
	assert_int_equal(event.kind, EVENT_TASK_READY);
	happen(event);
	assert_false(news(ENGINE_READY, 0, 0, &event));
	assert_true(news(ENGINE_READY, 1, 0, &event));
	happen(event);
	struct event released = event_make(EVENT_ATTEMPT_RELEASED, 3, "fairlead");
	released.attempt_released.attempt = 1;
	happen(released);
	assert_true(news(ENGINE_STARTED, 1, 0, &event));
	happen(event);
	assert_false(news(ENGINE_STARTED, 1, 0, &event));
	assert_true(news(ENGINE_REPORT, 1, 3, &event));
	assert_int_equal(event.kind, EVENT_PROGRESS);
	happen(event);
	assert_false(news(ENGINE_REPORT, 1, 3, &event));
	assert_false(news(ENGINE_REPORT, 1, 2, &event));
	assert_true(news(ENGINE_EXITED, 1, 0, &event));
	happen(event);
	assert_false(news(ENGINE_EXITED, 1, 0, &event));
	assert_false(news(ENGINE_GONE, 1, 0, &event));
}

static void nothing_is_heard_of_an_unknown_attempt_or_rank(void **state)
{
	(void)state;
	struct event event;
	struct fact_message message = { .fact = { .kind = ENGINE_EXITED, .attempt = 2 } };
	assert_false(fact_event(&facts, &message, &event));
	message.fact.attempt = 0;
	assert_false(fact_event(&facts, &message, &event));
	assert_false(news(ENGINE_EXITED, 2, 0, &event));
}

static void that_no_warning_is_heard_is_news_once(void **state)
{
	struct event event;

	(void)state;
	assert_true(news(ENGINE_DEAF, 0, 0, &event));
	assert_int_equal(event.kind, EVENT_ATTEMPT_DEAF);
	assert_int_equal(event.attempt_deaf.attempt, 1);
	happen(event);
	assert_false(news(ENGINE_DEAF, 0, 0, &event));
}

static void a_shield_is_news_once_and_so_is_its_end(void **state)
{
	struct event event;

	(void)state;
	assert_false(news(ENGINE_UNSHIELDED, 0, 0, &event));
	assert_true(news(ENGINE_SHIELDED, 0, 0, &event));
	assert_int_equal(event.kind, EVENT_ATTEMPT_SHIELDED);
	assert_int_equal(event.attempt_shielded.shielded, 1);
	happen(event);
	assert_false(news(ENGINE_SHIELDED, 0, 0, &event));
	assert_true(news(ENGINE_UNSHIELDED, 0, 0, &event));
	happen(event);
	assert_false(news(ENGINE_UNSHIELDED, 0, 0, &event));
}

/* It leaves a shield as it is, and a shield leaves it. */
static void how_many_have_to_go_on_is_news_once(void **state)
{
	struct fact_message message = {
		.fact = { .kind = ENGINE_LEAST, .attempt = 1, .least = 2, .time_ms = 5 }
	};
	struct event event;

	(void)state;
	assert_true(news(ENGINE_SHIELDED, 0, 0, &event));
	happen(event);
	assert_true(fact_event(&facts, &message, &event));
	assert_int_equal(event.kind, EVENT_ATTEMPT_SHIELDED);
	assert_int_equal(event.attempt_shielded.shielded, 1);
	assert_int_equal(event.attempt_shielded.least, 2);
	happen(event);
	assert_false(fact_event(&facts, &message, &event));
	assert_true(news(ENGINE_UNSHIELDED, 0, 0, &event));
	assert_int_equal(event.attempt_shielded.least, 2);
}

static void silence_is_news_once_and_so_is_its_end(void **state)
{
	struct event event;

	(void)state;
	assert_false(news(ENGINE_REACHABLE, 0, 0, &event));
	assert_true(news(ENGINE_UNREACHABLE, 0, 0, &event));
	assert_int_equal(event.kind, EVENT_ATTEMPT_UNREACHABLE);
	assert_int_equal(event.attempt_unreachable.unreachable, 1);
	happen(event);
	assert_false(news(ENGINE_UNREACHABLE, 1, 0, &event));
	assert_true(news(ENGINE_REACHABLE, 1, 0, &event));
	happen(event);
	assert_false(news(ENGINE_REACHABLE, 0, 0, &event));
}

static void
a_place_that_was_never_released_is_not_lost_when_the_engine_has_no_trace_of_it(void **state)
{
	(void)state;
	struct event event;
	assert_false(news(ENGINE_GONE, 0, 0, &event));
	struct event released = event_make(EVENT_ATTEMPT_RELEASED, 3, "fairlead");
	released.attempt_released.attempt = 1;
	for (uint32_t rank = 0; rank < 2; rank++) {
		assert_true(news(ENGINE_READY, rank, 0, &event));
		happen(event);
	}
	happen(released);
	assert_true(news(ENGINE_GONE, 0, 0, &event));
	assert_int_equal(event.kind, EVENT_TASK_EXITED);
	assert_int_equal(event.task_exited.cause, ENGINE_CAUSE_LOST);
}

static void checkpoints_are_numbered_per_job(void **state)
{
	(void)state;
	struct event event;
	struct fact_message message = { .fact = { .kind = ENGINE_REPORT,
						  .attempt = 1,
						  .number = 1,
						  .checkpoint = true,
						  .step = 7,
						  .bytes = 12,
						  .path = "a" } };
	assert_true(fact_event(&facts, &message, &event));
	assert_int_equal(event.kind, EVENT_CHECKPOINT_SAVED);
	assert_int_equal(event.checkpoint_saved.number, 1);
	assert_int_equal(event.checkpoint_saved.bytes, 12);
	happen(event);
	assert_false(fact_event(&facts, &message, &event));
	message.fact.number = 2;
	assert_true(fact_event(&facts, &message, &event));
	assert_int_equal(event.checkpoint_saved.number, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_fact_is_news_once, start, stop),
		cmocka_unit_test_setup_teardown(silence_is_news_once_and_so_is_its_end, start,
						stop),
		cmocka_unit_test_setup_teardown(that_no_warning_is_heard_is_news_once, start, stop),
		cmocka_unit_test_setup_teardown(a_shield_is_news_once_and_so_is_its_end, start,
						stop),
		cmocka_unit_test_setup_teardown(how_many_have_to_go_on_is_news_once, start, stop),
		cmocka_unit_test_setup_teardown(nothing_is_heard_of_an_unknown_attempt_or_rank,
						start, stop),
		cmocka_unit_test_setup_teardown(
			a_place_that_was_never_released_is_not_lost_when_the_engine_has_no_trace_of_it,
			start, stop),
		cmocka_unit_test_setup_teardown(checkpoints_are_numbered_per_job, start, stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
