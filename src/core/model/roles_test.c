/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <string.h>

#include "core/model/roles.h"
#include "core/model/apply_testing.h"

/* server: 1 task, 16 processors; worker: 2 to 4 tasks of 2 GPUs; ps: 1 to 2 tasks of 1 GPU. */
static struct shape example(void)
{
	struct shape shape = { .role_count = 3,
			       .role = { { 1 }, { 2 }, { 3 } },
			       .role_min = { 1, 2, 1 },
			       .role_max = { 1, 4, 2 },
			       .role_gpus = { 0, 2, 1 },
			       .role_cpu_milli = { 16000, 4000, 0 },
			       .role_memory_mib = { 0, 100, 300 } };

	shape_roles_sum(&shape);
	return shape;
}

static void the_least_of_each_role_comes_first_then_what_is_beyond_it(void **state)
{
	static const uint32_t roles[] = { 0, 1, 1, 2, 1, 1, 2 }, at[] = { 0, 0, 1, 0, 2, 3, 1 };
	const struct shape shape = example();

	(void)state;
	assert_int_equal(shape.tasks_min, 4);
	assert_int_equal(shape.tasks_max, 7);
	for (uint32_t rank = 0; rank < 7; rank++) {
		assert_int_equal(shape_role(&shape, rank), roles[rank]);
		assert_int_equal(shape_role_rank(&shape, rank), at[rank]);
		assert_int_equal(shape_rank_of(&shape, roles[rank], at[rank]), rank);
	}
	assert_int_equal(shape_role(&shape, 99), 2);
}

static void sums_are_those_of_the_ranks(void **state)
{
	const struct shape shape = example();
	int64_t gpus = 0, cpu = 0, memory = 0, ranks[7];
	uint32_t of_role[3] = { 0 };

	(void)state;
	for (uint32_t tasks = 0; tasks <= 7; tasks++) {
		assert_int_equal(shape_gpus(&shape, tasks), gpus);
		assert_int_equal(shape_cpu_milli(&shape, tasks), cpu);
		assert_int_equal(shape_memory_mib(&shape, tasks), memory);
		assert_int_equal(ranks_gpus(&shape, ranks, tasks), gpus);
		for (uint32_t role = 0; role < 3; role++)
			assert_int_equal(shape_role_tasks(&shape, tasks, role), of_role[role]);
		if (tasks == 7)
			break;
		gpus += shape_wish(&shape, tasks).gpus;
		cpu += shape_wish(&shape, tasks).cpu_milli;
		memory += shape_wish(&shape, tasks).memory_mib;
		of_role[shape_role(&shape, tasks)]++;
		ranks[tasks] = tasks;
	}
	assert_int_equal(gpus, 10);
	assert_int_equal(shape_tasks_within(&shape, roles_gpus, 9, 7), 6);
	assert_int_equal(shape_tasks_within(&shape, roles_gpus, 10, 7), 7);
	assert_int_equal(shape_tasks_within(&shape, roles_gpus, 1, 7), 1);
}

static void tasks_that_are_alike_are_one_role(void **state)
{
	const struct shape shape = { .tasks_min = 2, .tasks_max = 4, .gpus = 3, .cpu_milli = 5 };

	(void)state;
	assert_int_equal(shape_role(&shape, 3), 0);
	assert_int_equal(shape_role_rank(&shape, 3), 3);
	assert_int_equal(shape_rank_of(&shape, 0, 3), 3);
	assert_int_equal(shape_wish(&shape, 3).gpus, 3);
	assert_int_equal(shape_gpus(&shape, 4), 12);
	assert_int_equal(shape_cpu_milli(&shape, 4), 20);
	assert_int_equal(shape_role_tasks(&shape, 3, 0), 3);
	assert_true(shape_roles_are_right(&shape));
}

static void what_is_said_of_gpus_does_not_concern_a_role_without_any(void **state)
{
	struct shape shape = example(), server, worker;

	(void)state;
	shape.models[0].v = 9;
	shape.gpu_memory_mib = 80000;
	shape.regions[0].v = 8;
	shape_of_role(&shape, 0, &server);
	shape_of_role(&shape, 1, &worker);
	assert_int_equal(server.models[0].v, 0);
	assert_int_equal(server.gpu_memory_mib, 0);
	assert_int_equal(server.regions[0].v, 8);
	assert_int_equal(server.cpu_milli, 16000);
	assert_int_equal(worker.models[0].v, 9);
	assert_int_equal(worker.gpus, 2);
	assert_int_equal(worker.tasks_max, 4);
	assert_int_equal(worker.role_count, 0);
}

static void roles_that_contradict_their_sums_are_found(void **state)
{
	struct shape shape = example();

	(void)state;
	assert_true(shape_roles_are_right(&shape));
	shape.tasks_max = 8;
	assert_false(shape_roles_are_right(&shape));
	shape = example();
	shape.role[2] = shape.role[0];
	assert_false(shape_roles_are_right(&shape));
	shape = example();
	shape.role_ends = 8;
	assert_false(shape_roles_are_right(&shape));
	shape = example();
	shape.role_min[1] = 5;
	assert_false(shape_roles_are_right(&shape));
}

static void masks_of_roles_that_are_not_there_are_found(void **state)
{
	struct shape shape = example(), plain = { .tasks_min = 1, .tasks_max = 1 };

	(void)state;
	shape.role_mask[1].v = shape.role_mask[2].v = 6;
	shape.together.v = 7;
	assert_true(shape_roles_are_right(&shape));
	shape.role_mask[2].v = 0; /* of one there is none for several */
	assert_false(shape_roles_are_right(&shape));
	shape.together.v = 0;
	assert_true(shape_roles_are_right(&shape));
	shape.role_mask[shape.role_count].v = 6;
	assert_false(shape_roles_are_right(&shape));
	plain.role_mask[0].v = 6;
	assert_false(shape_roles_are_right(&plain));
}

/* --- in the facts ---------------------------------------------------------------------------------------- */

/* server: one task; worker: one to `most` tasks of a GPU, which end the job. */
static struct event submitted(const char *roles, int64_t most)
{
	const int64_t numbers[] = { 1, 1, 0, 0, 0, 0, 1, most, 1, 0, 0, 1 };

	return EVENT_OF(JOB_SUBMITTED, job_submitted, 50, .job = 1, .name = "train", .user = "ann",
			.queue = "default", .tier = TIER_STANDARD, .roles = roles,
			.role_numbers = numbers, .role_numbers_count = 2 * ROLE_NUMBERS);
}

static void a_submission_with_roles_is_a_wish_with_their_sums(void **state)
{
	const struct shape *shape;

	(void)state;
	fits(submitted("server,worker", 3));
	shape = shape_get(&f, job(1)->shape);
	assert_int_equal(shape->role_count, 2);
	assert_int_equal(shape->tasks_min, 2);
	assert_int_equal(shape->tasks_max, 4);
	assert_int_equal(shape->gpus, 1);
	assert_int_equal(shape->role_ends, 2);
	assert_string_equal(facts_name(&f, shape->role[1]), "worker");
}

static void roles_that_make_no_sense_are_no_submission(void **state)
{
	(void)state;
	does_not_fit(submitted("worker,worker", 3));
	does_not_fit(submitted("server,worker", -1));
	does_not_fit(submitted("server,worker", 16384)); /* 16,385 in all */
	does_not_fit(submitted("a,b,c,d,e,f,g,h,i", 3));
	fits(submitted("server,worker", 0)); /* not said: as many as the least */
	assert_int_equal(shape_get(&f, job(1)->shape)->tasks_max, 2);
}

static struct event placed_on_three(void)
{
	static const int64_t nodes[] = { 1, 1, 2 }, masks[] = { 0, 1, 1 };

	return EVENT_OF(ATTEMPT_PLACED, attempt_placed, 60, .job = 1, .attempt = 1, .nodes = nodes,
			.nodes_count = 3, .masks = masks, .masks_count = 3);
}

/* Server and two workers run from time 100 on. */
static void run_roles(void)
{
	fits(submitted("server,worker", 3));
	fits(placed_on_three());
	for (uint32_t rank = 0; rank < 3; rank++)
		ready(70, 1, rank);
	fits(EVENT_OF(ATTEMPT_RELEASED, attempt_released, 80, .attempt = 1));
	for (uint32_t rank = 0; rank < 3; rank++)
		started(100, 1, rank);
}

static struct event rank_left(int64_t rank)
{
	const int64_t ranks[] = { rank };

	return EVENT_OF(RANKS_LEFT, ranks_left, 220, .attempt = 1, .ranks = ranks,
			.ranks_count = 1);
}

static void an_attempt_holds_the_gpus_of_the_roles_of_its_ranks(void **state)
{
	(void)state;
	run_roles();
	assert_int_equal(attempt_share(&f, attempt(1)), 2 * GPU_SHARE);
	exited(210, 1, 0, CAUSE_LOST, 0);
	fits(rank_left(0));
	assert_int_equal(attempt_share(&f, attempt(1)), 2 * GPU_SHARE);
	exited(215, 1, 2, CAUSE_LOST, 0);
	fits(rank_left(2));
	assert_int_equal(attempt_share(&f, attempt(1)), GPU_SHARE);
	assert_int_equal(queue_get(&f, job(1)->queue)->past_rate_share, GPU_SHARE);
}

static void a_gang_lacks_a_rank_when_one_of_its_roles_does(void **state)
{
	(void)state;
	run_roles();
	exited(210, 1, 2, CAUSE_LOST, 0);
	fits(rank_left(2));
	assert_int_equal(attempt(1)->lacks_ms, 0); /* one worker is enough */
	exited(215, 1, 0, CAUSE_LOST, 0);
	fits(rank_left(0));
	assert_int_equal(attempt(1)->lacks_ms, 220); /* without the server nothing goes */
}

static void a_role_is_done_when_all_its_ranks_ended_well(void **state)
{
	(void)state;
	run_roles();
	assert_int_equal(attempt_role_width(&f, attempt(1), shape_get(&f, job(1)->shape), 1), 2);
	assert_int_equal(attempt_done_role(&f, attempt(1), shape_get(&f, job(1)->shape)),
			 ROLES_MAX);
	exited(300, 1, 0, CAUSE_EXIT, 0); /* the server does not end the job */
	assert_int_equal(attempt_done_role(&f, attempt(1), shape_get(&f, job(1)->shape)),
			 ROLES_MAX);
	exited(300, 1, 1, CAUSE_EXIT, 0);
	assert_int_equal(attempt_done_role(&f, attempt(1), shape_get(&f, job(1)->shape)),
			 ROLES_MAX);
}

static void the_last_worker_ends_the_job(void **state)
{
	(void)state;
	run_roles();
	exited(300, 1, 1, CAUSE_EXIT, 0);
	exited(310, 1, 2, CAUSE_EXIT, 0);
	assert_int_equal(attempt_done_role(&f, attempt(1), shape_get(&f, job(1)->shape)), 1);
	fits(EVENT_OF(ATTEMPT_STOPPED, attempt_stopped, 320, .attempt = 1, .why = STOP_DONE));
	assert_int_equal(attempt(1)->why, STOP_DONE);
}

static void a_wish_for_some_ranks_takes_what_their_roles_take(void **state)
{
	static const int64_t ranks[] = { 0, 3, 6 }, none[] = { 0 };
	struct shape shape = example(), some, plain = { .gpus = 2, .tasks_min = 1, .tasks_max = 9 };

	(void)state;
	shape_of_ranks(&shape, ranks, 3, &some); /* the server, both of ps */
	assert_int_equal(some.role_count, 2);
	assert_int_equal(some.tasks_min, 3);
	assert_int_equal(some.tasks_max, 3);
	assert_int_equal(some.gpus, 1);
	assert_int_equal(shape_gpus(&some, 3), 2);
	assert_int_equal(shape_cpu_milli(&some, 3), 16000);
	assert_int_equal(shape_memory_mib(&some, 3), 600);
	shape_of_ranks(&shape, none, 1, &some);
	assert_int_equal(some.gpus, 0);
	shape_of_ranks(&plain, ranks, 3, &some);
	assert_int_equal(shape_gpus(&some, some.tasks_min), 6);
	assert_int_equal(some.tasks_max, 3);
}

static void a_role_runs_on_the_nodes_of_its_mask_or_of_the_jobs(void **state)
{
	static const int64_t ranks[] = { 1, 2 }; /* of the second role and the third */
	struct shape shape = example(), one, some, plain = { .mask = { 5 } };
	uint32_t at = 0;

	(void)state;
	assert_false(shape_is_masked(&shape));
	shape.mask.v = 5;
	shape.role_mask[1].v = shape.role_mask[2].v = 6;
	shape.together.v = 7;
	assert_true(shape_is_masked(&shape));
	shape_of_role(&shape, 0, &one);
	assert_int_equal(one.mask.v, 5);
	shape_of_role(&shape, 1, &one);
	assert_int_equal(one.mask.v, 6);
	shape_of_ranks(&shape, ranks, 2, &some);
	assert_int_equal(some.role_mask[0].v, 6);
	assert_int_equal(some.role_mask[some.role_count].v, 0);
	assert_int_equal(some.together.v, 7);
	assert_int_equal(shape_mask_next(&shape, &at).v, 5); /* each once */
	assert_int_equal(shape_mask_next(&shape, &at).v, 6);
	assert_int_equal(shape_mask_next(&shape, &at).v, 7);
	assert_int_equal(shape_mask_next(&shape, &at).v, 0);
	at = 0;
	assert_int_equal(shape_mask_next(&plain, &at).v, 5);
	assert_int_equal(shape_mask_next(&plain, &at).v, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_of_each_role_comes_first_then_what_is_beyond_it),
		cmocka_unit_test(sums_are_those_of_the_ranks),
		cmocka_unit_test(tasks_that_are_alike_are_one_role),
		cmocka_unit_test(a_wish_for_some_ranks_takes_what_their_roles_take),
		cmocka_unit_test(a_role_runs_on_the_nodes_of_its_mask_or_of_the_jobs),
		cmocka_unit_test(what_is_said_of_gpus_does_not_concern_a_role_without_any),
		cmocka_unit_test(roles_that_contradict_their_sums_are_found),
		cmocka_unit_test(masks_of_roles_that_are_not_there_are_found),
		STORY(a_submission_with_roles_is_a_wish_with_their_sums),
		STORY(roles_that_make_no_sense_are_no_submission),
		STORY(an_attempt_holds_the_gpus_of_the_roles_of_its_ranks),
		STORY(a_gang_lacks_a_rank_when_one_of_its_roles_does),
		STORY(a_role_is_done_when_all_its_ranks_ended_well),
		STORY(the_last_worker_ends_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
