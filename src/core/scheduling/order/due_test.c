/* SPDX-License-Identifier: Apache-2.0 */
/* When jobs are due, by hand. */
#include "core/scheduling/order/due.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/scheduling/testing.h"

enum { MINUTE_MS = 60000, HOUR_MS = 60 * MINUTE_MS };

/* Minutes after the submission. */
static int64_t due_min(struct world *w, struct wish wish)
{
	const struct job *job = job_get(&w->facts, (struct job_id){ world_submit(w, wish) });

	return (work_due_ms(&w->facts, job->submitted_ms, job_work_class(&w->facts, job, 0)) -
		job->submitted_ms) /
	       MINUTE_MS;
}

static void a_job_is_due_patience_times_its_work_after_its_submission(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	assert_int_equal(due_min(&w, (struct wish){ .gpus = 8, .limit_ms = HOUR_MS }),
			 75 * 60 + 43);
	assert_int_equal(due_min(&w, (struct wish){ .limit_ms = HOUR_MS }), 9 * 60 + 27);
	assert_true(due_min(&w, (struct wish){ .gpus = 8 }) ==
		    due_min(&w, (struct wish){ .gpus = 1 }));
	world_deinit(&w);
}

static void each_class_begins_where_it_says(void **state)
{
	(void)state;
	for (uint32_t class = 24; class < 400; class ++)
		assert_true(work_class_floor_ms(class) < work_class_floor_ms(class + 1));
	assert_int_equal(work_class_floor_ms(20 * 8), INT64_C(1) << 20);
	assert_int_equal(work_class_floor_ms(20 * 8 + 4), INT64_C(3) << 19);
}

static void what_ran_long_without_a_word_is_expected_to_go_on_as_long(void **state)
{
	struct world w;
	const struct job *job;

	(void)state;
	world_init(&w, "n0:8");
	job = job_get(&w.facts, (struct job_id){ world_submit(&w, (struct wish){ .gpus = 2 }) });
	assert_int_equal(job_work_ms(&w.facts, job, 0), HOUR_MS);
	assert_int_equal(job_work_ms(&w.facts, job, 20 * MINUTE_MS), HOUR_MS);
	assert_int_equal(job_work_ms(&w.facts, job, 3 * HOUR_MS), 6 * HOUR_MS);
	/* 2 GPUs come to the class of 4 GPU-hours, which begins at 2^23 ms, after half of that. */
	assert_int_equal(job_work_reaches_ms(&w.facts, job, HOUR_MS, 23 * 8),
			 (INT64_C(1) << 22) + 1 - HOUR_MS);
	assert_int_equal(job_work_reaches_ms(&w.facts, job, 3 * HOUR_MS, 23 * 8), 0);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_due_patience_times_its_work_after_its_submission),
		cmocka_unit_test(each_class_begins_where_it_says),
		cmocka_unit_test(what_ran_long_without_a_word_is_expected_to_go_on_as_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
