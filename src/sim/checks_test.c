/* SPDX-License-Identifier: Apache-2.0 */
/* Each promise is broken once, and the checkers must see it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "sim/checks.h"

static struct facts facts;
static struct engine_sim engine;
static struct checks checks;
static uint64_t seq;

static void take(struct event e)
{
	e.seq = ++seq;
	if (!e.time_ms)
		e.time_ms = facts.now_ms;
	checks_event(&checks, &facts, &engine, &e);
	apply(&facts, &e);
	engine_sim_take(&engine, &facts, &e);
}

static struct event make(enum event_kind kind)
{
	return event_make(kind, 0, "test");
}

static void assert_clean(void)
{
	if (checks.problem_count)
		fail_msg("%s", checks.problems[0]);
}

static void assert_problem(const char *words)
{
	for (uint32_t i = 0; i < checks.problem_count && i < CHECKS_TEXTS_MAX; i++)
		if (strstr(checks.problems[i], words))
			return;
	fail_msg("nobody says \"%s\"; first of %u: %s", words, checks.problem_count,
		 checks.problem_count ? checks.problems[0] : "none");
}

static void add_node(const char *name, const char *rack)
{
	struct event e = make(EVENT_NODE_SET);

	e.node_set.name = name;
	e.node_set.gpus = 4;
	e.node_set.model = "A";
	e.node_set.gpu_memory_mib = 1000;
	e.node_set.cpu_milli = 8000;
	e.node_set.ram_mib = 8000;
	e.node_set.domains = rack;
	take(e);
}

static void add_queue(const char *name, const char *parent, int64_t limit)
{
	struct event e = make(EVENT_QUEUE_SET);

	e.queue_set.name = name;
	e.queue_set.parent = parent;
	e.queue_set.limit_share = limit < 0 ? -1 : limit * GPU_SHARE;
	take(e);
}

static const struct event_job_submitted plain = { .name = "job",
						  .user = "test",
						  .team = "",
						  .queue = "q",
						  .project = "",
						  .tier = TIER_STANDARD,
						  .tasks_min = 1,
						  .tasks_max = 1,
						  .gpus = 1,
						  .models = "",
						  .slice = "",
						  .require = "",
						  .prefer = "",
						  .spread = "",
						  .window = "",
						  .apart_level = "",
						  .apart_from = "",
						  .own_labels = "",
						  .mask = "",
						  .body = "",
						  .body_mac = "",
						  .client_key = "" };

/* The next job, with its id as its only surprise. */
static uint32_t submit(struct event_job_submitted job)
{
	struct event e = make(EVENT_JOB_SUBMITTED);

	e.job_submitted = job;
	e.job_submitted.job = facts.jobs.count + 1;
	take(e);
	return facts.jobs.count;
}

/* Places two tasks at most; node2 0 = one task. Returns the attempt. */
static uint32_t place(uint32_t job, int64_t node1, int64_t mask1, int64_t node2, int64_t mask2)
{
	struct event e = make(EVENT_ATTEMPT_PLACED);
	int64_t nodes[] = { node1, node2 }, masks[] = { mask1, mask2 };

	e.attempt_placed.job = job;
	e.attempt_placed.attempt = facts.attempts.count + 1;
	e.attempt_placed.nodes = nodes;
	e.attempt_placed.masks = masks;
	e.attempt_placed.nodes_count = e.attempt_placed.masks_count = node2 ? 2 : 1;
	take(e);
	return facts.attempts.count;
}

static void tell(enum event_kind kind, uint32_t attempt, uint32_t rank)
{
	struct event e = make(kind);

	if (kind == EVENT_TASK_READY) {
		e.task_ready.attempt = attempt;
		e.task_ready.rank = rank;
	} else {
		e.task_started.attempt = attempt;
		e.task_started.rank = rank;
	}
	take(e);
}

static void release(uint32_t attempt)
{
	struct event e = make(EVENT_ATTEMPT_RELEASED);

	e.attempt_released.attempt = attempt;
	take(e);
}

/* Runs an attempt of `tasks` ranks; the engine's own reports are taken from it. */
static void run(uint32_t attempt, uint32_t tasks)
{
	struct event e;

	while (engine_sim_pop(&engine, &facts, facts.now_ms, &e))
		;
	for (uint32_t rank = 0; rank < tasks; rank++)
		tell(EVENT_TASK_READY, attempt, rank);
	release(attempt);
	for (uint32_t rank = 0; rank < tasks; rank++)
		tell(EVENT_TASK_STARTED, attempt, rank);
}

static void evict(uint32_t attempt)
{
	struct event e = make(EVENT_ATTEMPT_STOPPED);

	e.attempt_stopped.attempt = attempt;
	e.attempt_stopped.why = STOP_EVICTED;
	take(e);
}

static void promise(uint32_t job, uint32_t victim)
{
	struct event e = make(EVENT_PROMISE_MADE);
	int64_t node = 1, mask = 1, victims = victim;

	e.promise_made.job = job;
	e.promise_made.nodes = &node;
	e.promise_made.masks = &mask;
	e.promise_made.victims = &victims;
	e.promise_made.nodes_count = e.promise_made.masks_count = e.promise_made.victims_count = 1;
	take(e);
}

static void a_good_run_has_no_problem(void **state)
{
	struct event_job_submitted two = plain;
	uint32_t attempt;

	(void)state;
	two.tasks_min = two.tasks_max = 2;
	attempt = place(submit(two), 1, 1, 1, 2);
	run(attempt, 2);
	run(place(submit(plain), 2, 8, 0, 0), 1);
	checks_settled(&checks, &facts);
	checks_end(&checks, &facts);
	assert_clean();
}

static void a_gpu_given_twice_is_seen(void **state)
{
	(void)state;
	place(submit(plain), 1, 1, 0, 0);
	assert_clean();
	place(submit(plain), 1, 1, 0, 0);
	assert_problem("GPU n1/0 is given to job job while job job holds it");
}

static void a_gpu_twice_in_one_gang_is_seen(void **state)
{
	struct event_job_submitted two = plain;

	(void)state;
	two.tasks_min = two.tasks_max = 2;
	place(submit(two), 1, 1, 1, 1);
	assert_problem("two tasks of job job get the same GPU");
}

static void a_node_that_is_not_ready_is_seen(void **state)
{
	struct event e = make(EVENT_NODE_STATE);

	(void)state;
	e.node_state.node = 1;
	e.node_state.state = NODE_DRAINING;
	take(e);
	place(submit(plain), 1, 1, 0, 0);
	assert_problem("node n1, which is draining");
}

static void a_gpu_set_aside_is_seen(void **state)
{
	struct event e = make(EVENT_GPU_STATE);

	(void)state;
	e.gpu_state.node = 1;
	e.gpu_state.mask = 2;
	e.gpu_state.set_aside = 1;
	take(e);
	place(submit(plain), 1, 2, 0, 0);
	assert_problem("set aside");
}

static void gpus_that_do_not_exist_are_seen(void **state)
{
	(void)state;
	place(submit(plain), 1, 16, 0, 0);
	assert_problem("does not have");
}

static void a_wrong_number_of_gpus_is_seen(void **state)
{
	(void)state;
	place(submit(plain), 1, 3, 0, 0);
	assert_problem("gets 2 GPUs on n1, it wants 1");
}

static void a_wrong_model_is_seen(void **state)
{
	struct event_job_submitted job = plain;

	(void)state;
	job.models = "B";
	place(submit(job), 1, 1, 0, 0);
	assert_problem("whose model it does not accept");
}

static void too_little_gpu_memory_is_seen(void **state)
{
	struct event_job_submitted job = plain;

	(void)state;
	job.gpu_memory_mib = 2000;
	place(submit(job), 1, 1, 0, 0);
	assert_problem("too little memory");
}

static void too_many_cpus_are_seen(void **state)
{
	struct event_job_submitted job = plain;

	(void)state;
	job.cpu_milli = 5000;
	place(submit(job), 1, 1, 0, 0);
	assert_clean();
	place(submit(job), 1, 2, 0, 0);
	assert_problem("10000 milli-CPUs of 8000");
}

static void too_much_memory_is_seen(void **state)
{
	struct event_job_submitted job = plain;

	(void)state;
	job.memory_mib = 5000;
	place(submit(job), 1, 1, 0, 0);
	place(submit(job), 1, 2, 0, 0);
	assert_problem("10000 MiB of 8000");
}

static void a_queue_above_its_limit_is_seen_also_further_up(void **state)
{
	struct event_job_submitted job = plain;

	(void)state;
	job.queue = "left";
	job.gpus = 2;
	place(submit(job), 1, 3, 0, 0);
	assert_clean();
	job.queue = "right";
	place(submit(job), 2, 3, 0, 0);
	assert_problem("takes queue top");
}

static void room_comes_back_when_an_attempt_ends(void **state)
{
	struct event_job_submitted job = plain;
	struct event e = make(EVENT_ATTEMPT_ENDED);

	(void)state;
	job.cpu_milli = 5000;
	e.attempt_ended.attempt = place(submit(job), 1, 1, 0, 0);
	take(e);
	place(submit(job), 1, 2, 0, 0);
	assert_clean();
}

static void a_gang_below_its_minimum_is_seen(void **state)
{
	struct event_job_submitted two = plain;

	(void)state;
	two.tasks_min = two.tasks_max = 2;
	place(submit(two), 1, 1, 0, 0);
	assert_problem("placed with 1 tasks, it has 2 to 2");
}

static void a_gang_across_its_level_is_seen(void **state)
{
	struct event_job_submitted two = plain;

	(void)state;
	two.tasks_min = two.tasks_max = 2;
	two.require = "rack";
	place(submit(two), 1, 1, 2, 1);
	assert_clean();
	place(submit(two), 1, 2, 3, 1);
	assert_problem("across the topology level");
}

static void a_release_before_all_are_ready_is_seen(void **state)
{
	uint32_t attempt;

	(void)state;
	attempt = place(submit(plain), 1, 1, 0, 0);
	release(attempt);
	assert_problem("released before rank 0 is ready");
}

static void a_job_placed_while_it_is_held_is_seen(void **state)
{
	struct event_job_submitted job = plain;

	(void)state;
	job.held = 1;
	place(submit(job), 1, 1, 0, 0);
	assert_problem("although it is held");
}

static void a_gang_that_runs_on_without_a_member_is_seen(void **state)
{
	struct event_job_submitted two = plain;
	struct event e = make(EVENT_TASK_EXITED);

	(void)state;
	two.tasks_min = two.tasks_max = 2;
	e.task_exited.attempt = place(submit(two), 1, 1, 1, 2);
	run((uint32_t)e.task_exited.attempt, 2);
	e.task_exited.cause = CAUSE_LOST;
	take(e);
	checks_settled(&checks, &facts);
	assert_problem("runs on with 1 of 2 tasks");
}

static void a_critical_job_that_is_evicted_is_seen(void **state)
{
	struct event_job_submitted job = plain;
	uint32_t attempt;

	(void)state;
	job.tier = TIER_CRITICAL;
	attempt = place(submit(job), 1, 1, 0, 0);
	run(attempt, 1);
	evict(attempt);
	assert_problem("critical job job is evicted");
}

static void an_eviction_for_nobody_is_seen(void **state)
{
	uint32_t attempt;

	(void)state;
	attempt = place(submit(plain), 1, 1, 0, 0);
	run(attempt, 1);
	evict(attempt);
	checks_settled(&checks, &facts);
	assert_problem("evicted for nobody");
}

static void an_eviction_for_one_that_does_not_start_is_seen(void **state)
{
	uint32_t attempt;

	(void)state;
	attempt = place(submit(plain), 1, 1, 0, 0);
	run(attempt, 1);
	promise(submit(plain), attempt);
	evict(attempt);
	checks_settled(&checks, &facts);
	assert_clean();
	checks_end(&checks, &facts);
	assert_problem("which then did not start");
}

static void an_eviction_for_one_that_starts_is_good(void **state)
{
	uint32_t attempt, job;

	(void)state;
	attempt = place(submit(plain), 1, 1, 0, 0);
	run(attempt, 1);
	job = submit(plain);
	promise(job, attempt);
	evict(attempt);
	checks_settled(&checks, &facts);
	place(job, 2, 1, 0, 0);
	checks_end(&checks, &facts);
	assert_clean();
}

static void an_eviction_for_one_that_was_cancelled_is_excused(void **state)
{
	struct event e = make(EVENT_JOB_CANCEL_ASKED);
	uint32_t attempt;

	(void)state;
	attempt = place(submit(plain), 1, 1, 0, 0);
	run(attempt, 1);
	e.job_cancel_asked.job = submit(plain);
	promise((uint32_t)e.job_cancel_asked.job, attempt);
	evict(attempt);
	checks_settled(&checks, &facts);
	take(e);
	checks_end(&checks, &facts);
	assert_clean();
}

static void a_second_end_is_seen(void **state)
{
	struct event e = make(EVENT_JOB_ENDED);

	(void)state;
	e.job_ended.job = submit(plain);
	e.job_ended.state = JOB_CANCELLED;
	take(e);
	assert_clean();
	take(e);
	assert_problem("ends a second time");
}

static void time_that_runs_backwards_is_seen(void **state)
{
	struct event e = event_make(EVENT_CLOCK_TICKED, 5000, "test");

	(void)state;
	take(e);
	e.time_ms = 4000;
	take(e);
	assert_problem("backwards");
}

static void choose(uint32_t job, enum capacity capacity)
{
	struct event e = make(EVENT_CAPACITY_CHOSEN);

	e.capacity_chosen.job = job;
	e.capacity_chosen.capacity = capacity;
	take(e);
}

static void add_spot_node(void)
{
	struct event e = make(EVENT_NODE_MARKED);

	add_node("n4", "r1");
	e.node_marked.node = 4;
	e.node_marked.capacity = CAPACITY_SPOT;
	take(e);
}

/* It runs for ten minutes at most. */
static uint32_t submit_due(int64_t in_ms)
{
	struct event_job_submitted job = plain;

	job.checkpoint = 1;
	job.capacity = CAPACITY_ANY;
	job.deadline_ms = facts.now_ms + in_ms;
	job.limit_ms = 600000;
	return submit(job);
}

static void a_choice_for_one_that_leaves_none_is_seen(void **state)
{
	(void)state;
	add_spot_node();
	choose(submit(plain), CAPACITY_ANY);
	assert_problem("which leaves no choice");
}

static void a_choice_for_one_that_runs_is_seen(void **state)
{
	uint32_t job;

	(void)state;
	add_spot_node();
	job = submit_due(3600000);
	place(job, 1, 1, 0, 0);
	choose(job, CAPACITY_ON_DEMAND);
	assert_problem("which has its place");
}

static void a_choice_where_no_node_is_a_spot_node_is_seen(void **state)
{
	(void)state;
	choose(submit_due(3600000), CAPACITY_ANY);
	assert_problem("where none is a spot node");
}

static void a_wait_without_time_for_it_is_seen(void **state)
{
	(void)state;
	add_spot_node();
	choose(submit_due(3600000), CAPACITY_SPOT);
	assert_clean();
	choose(submit_due(500000), CAPACITY_SPOT);
	assert_problem("is to wait for spot nodes, and has no time");
}

static void a_wait_that_goes_on_too_long_is_seen(void **state)
{
	struct event e = event_make(EVENT_CLOCK_TICKED, 3000000, "test");

	(void)state;
	add_spot_node();
	choose(submit_due(3600000), CAPACITY_SPOT);
	take(e);
	checks_settled(&checks, &facts);
	assert_clean();
	e.time_ms = 3000001;
	take(e);
	checks_settled(&checks, &facts);
	assert_problem("waits for spot nodes, and has no time");
}

static void a_job_on_a_spot_node_that_did_not_allow_for_it_is_seen(void **state)
{
	(void)state;
	add_spot_node();
	place(submit(plain), 4, 1, 0, 0);
	assert_problem("which is a spot node");
}

static int set_up(void **state)
{
	struct event e = make(EVENT_LEVELS_SET);

	(void)state;
	seq = 0;
	facts_init(&facts);
	engine_sim_init(&engine, 0);
	checks_init(&checks, 0);
	e.levels_set.levels = "rack";
	take(e);
	e = make(EVENT_POLICY_SET); /* all off: nobody may rejoin */
	take(e);
	add_node("n1", "r0");
	add_node("n2", "r0");
	add_node("n3", "r1");
	add_queue("q", "", -1);
	add_queue("top", "", 3);
	add_queue("left", "top", -1);
	add_queue("right", "top", -1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	checks_deinit(&checks);
	engine_sim_deinit(&engine);
	facts_deinit(&facts);
	return 0;
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_good_run_has_no_problem),
		TEST(a_gpu_given_twice_is_seen),
		TEST(a_gpu_twice_in_one_gang_is_seen),
		TEST(a_node_that_is_not_ready_is_seen),
		TEST(a_gpu_set_aside_is_seen),
		TEST(gpus_that_do_not_exist_are_seen),
		TEST(a_wrong_number_of_gpus_is_seen),
		TEST(a_wrong_model_is_seen),
		TEST(too_little_gpu_memory_is_seen),
		TEST(too_many_cpus_are_seen),
		TEST(too_much_memory_is_seen),
		TEST(a_queue_above_its_limit_is_seen_also_further_up),
		TEST(room_comes_back_when_an_attempt_ends),
		TEST(a_gang_below_its_minimum_is_seen),
		TEST(a_gang_across_its_level_is_seen),
		TEST(a_release_before_all_are_ready_is_seen),
		TEST(a_job_placed_while_it_is_held_is_seen),
		TEST(a_gang_that_runs_on_without_a_member_is_seen),
		TEST(a_critical_job_that_is_evicted_is_seen),
		TEST(an_eviction_for_nobody_is_seen),
		TEST(an_eviction_for_one_that_does_not_start_is_seen),
		TEST(an_eviction_for_one_that_starts_is_good),
		TEST(an_eviction_for_one_that_was_cancelled_is_excused),
		TEST(a_second_end_is_seen),
		TEST(time_that_runs_backwards_is_seen),
		TEST(a_choice_for_one_that_leaves_none_is_seen),
		TEST(a_choice_for_one_that_runs_is_seen),
		TEST(a_choice_where_no_node_is_a_spot_node_is_seen),
		TEST(a_wait_without_time_for_it_is_seen),
		TEST(a_wait_that_goes_on_too_long_is_seen),
		TEST(a_job_on_a_spot_node_that_did_not_allow_for_it_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
