/* SPDX-License-Identifier: Apache-2.0 */
/* What the index costs: rows of jobs that are over are given back, also in one built anew from the facts. */
#include "core/scheduling/testing.h"
#include "core/scheduling/view/view.h"

enum { LIVES = 600 };

static void the_rows_of_jobs_that_are_over_take_no_memory(void **state)
{
	uint32_t stays, rows;
	struct view *fresh;
	struct world w;

	(void)state;
	world_init(&w, "n0:2");
	rows = w.view->jobs.per_chunk;
	assert_true(LIVES > 2 * rows);
	stays = world_submit(&w, (struct wish){ .tasks = 1, .gpus = 1 });
	world_decide(&w);
	world_run(&w);
	for (uint32_t i = 0; i < LIVES; i++) {
		uint32_t job = world_submit(&w, (struct wish){ .tasks = 1, .gpus = 1 });

		world_decide(&w);
		world_run(&w);
		world_exit(&w, job, 0);
		world_decide(&w);
		assert_int_equal(world_state(&w, job), JOB_SUCCEEDED);
	}
	assert_int_equal(w.view->jobs.count, LIVES + 1);
	assert_int_equal(job_view_get(w.view, stays)->share, GPU_SHARE);
	assert_int_equal(table_bytes(&w.view->jobs), TABLE_CHUNK_BYTES);
	fresh = view_create(&w.facts);
	assert_int_equal(table_bytes(&fresh->jobs), TABLE_CHUNK_BYTES);
	view_destroy(fresh);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rows_of_jobs_that_are_over_take_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
