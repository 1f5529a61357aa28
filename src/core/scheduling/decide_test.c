/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/testing.h"

static void a_job_is_placed_released_and_ends(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:2");
	job = world_submit(&w, (struct wish){ .tasks = 2, .gpus = 1 });
	world_decide(&w);
	assert_int_equal(world_running(&w, job), 2);
	assert_int_equal(job_get(&w.facts, (struct job_id){ job })->state, JOB_STARTING);
	world_ready(&w, job);
	world_decide(&w);
	world_start(&w, job);
	assert_int_equal(job_get(&w.facts, (struct job_id){ job })->state, JOB_RUNNING);
	world_exit(&w, job, 0);
	world_decide(&w);
	assert_int_equal(job_get(&w.facts, (struct job_id){ job })->state, JOB_SUCCEEDED);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_placed_released_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
