/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of jobs, through the core: what is refused and why, what the record says, and what is decided afterwards. Who may is queue_rights_test.c. */
#include <string.h>

#include "core/model/job_change.h"
#include "core/scheduling/testing.h"

static int admit(struct world *w, struct event *e, struct err *err)
{
	int rc;

	*err = (struct err){ .code = ERR_NONE };
	rc = core_admit(&w->facts, w->view, e, &w->step, NULL, err);
	if (rc == 0)
		world_apply(w, e);
	return rc;
}

static struct event change(const struct world *w, uint32_t job, const char *what)
{
	struct event e = world_event(w, EVENT_JOB_CHANGED);

	e.job_changed.job = job;
	e.job_changed.what = what;
	return e;
}

static void refused(struct world *w, struct event e, enum err_code code, const char *text)
{
	const uint64_t seq = w->facts.seq;
	struct err err;

	assert_int_equal(admit(w, &e, &err), -(int)code);
	assert_string_equal(err.text, text);
	assert_int_equal(w->facts.seq, seq);
}

static void done(struct world *w, struct event e, const char *what)
{
	struct err err;

	if (admit(w, &e, &err) != 0)
		fail_msg("%s", err.text);
	assert_string_equal(e.job_changed.what, what);
}

static const struct shape *shape_at(const struct world *w, uint32_t id)
{
	return shape_get(&w->facts, job_get(&w->facts, (struct job_id){ id })->shape);
}

static void what_can_not_be_changed_is_refused_by_name(void **state)
{
	struct event e;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	(void)world_submit(&w,
			   (struct wish){ .name = "wait", .tasks = 1, .gpus = 8, .held = true });
	(void)world_submit(&w, (struct wish){ .name = "run", .tasks = 1, .gpus = 4 });
	(void)world_submit(&w, (struct wish){ .name = "arr", .tasks = 1, .gpus = 8, .array = 3 });
	world_run(&w);
	refused(&w, change(&w, 99, "limit"), ERR_NOT_FOUND, "job 99 does not exist");
	refused(&w, change(&w, 1, "command"), ERR_INVALID,
		"job 1 \"wait\": \"command\" names nothing that can be changed");
	refused(&w, change(&w, 1, "array.limit"), ERR_CONFLICT,
		"job 1 \"wait\" is no array: array.limit says nothing about it");
	refused(&w, change(&w, 2, "gpus,limit,queue"), ERR_CONFLICT,
		"job 2 \"run\" has started, and queue,gpus can't be changed of a job that has its place: only "
		"name, limit and deadline can; cancel it and submit it again");
	refused(&w, change(&w, 4, "limit,deadline"), ERR_CONFLICT,
		"job 4 \"arr\" is one of array 3, whose jobs have deadline together: change the array");
	e = change(&w, 1, "gpus");
	e.job_changed.gpus = 99;
	refused(&w, e, ERR_INVALID,
		"the number of GPUs per task is 99; it must be between 0 and 32");
	e = change(&w, 1, "queue");
	e.job_changed.queue = "nowhere";
	refused(&w, e, ERR_NOT_FOUND,
		"queue \"nowhere\" does not exist; `fairlead queues` lists those that do");
	e = change(&w, 1, "limit,estimate");
	e.job_changed.limit_ms = 60000;
	e.job_changed.estimate_ms = 120000;
	refused(&w, e, ERR_INVALID,
		"job 1 \"wait\": its estimate of 2m is more than the limit of 1m; then it would be stopped before its end");
	world_cancel(&w, 2);
	refused(&w, change(&w, 2, "name"), ERR_CONFLICT,
		"job 2 \"run\" is being cancelled and can't be changed any more");
	world_run(&w);
	refused(&w, change(&w, 2, "name"), ERR_CONFLICT,
		"job 2 \"run\" has ended as cancelled and can't be changed any more");
	world_deinit(&w);
}

static void nobody_stops_a_job_by_a_limit_that_is_over(void **state)
{
	struct event e;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	(void)world_submit(&w, (struct wish){ .name = "run", .tasks = 1, .gpus = 4 });
	world_run(&w);
	world_at(&w, w.now_ms + 600000);
	e = change(&w, 1, "limit");
	e.job_changed.limit_ms = 300000;
	refused(&w, e, ERR_CONFLICT,
		"job 1 \"run\" has run for 10m, and a limit of 5m would stop it at once: give a longer one, or cancel it");
	e.job_changed.limit_ms = 900000;
	done(&w, e, "limit");
	world_at(&w, w.now_ms + 300001);
	world_run(&w);
	assert_int_equal(world_state(&w, 1), JOB_TIMED_OUT);
	world_deinit(&w);
}

static void the_record_says_what_is_different_in_the_end(void **state)
{
	struct event e;
	struct err err;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	(void)world_submit(&w, (struct wish){ .name = "wait",
					      .tasks = 2,
					      .tasks_max = 4,
					      .gpus = 1,
					      .limit_ms = 60000,
					      .held = true });
	e = change(&w, 1, "limit,tasks");
	e.job_changed.limit_ms = 60000;
	e.job_changed.tasks_min = 2;
	e.job_changed.tasks_max = 4;
	assert_int_equal(admit(&w, &e, &err), CORE_ALREADY);
	e = change(&w, 1, "limit,tasks,name");
	e.job_changed.limit_ms = 60000;
	e.job_changed.tasks_min = e.job_changed.tasks_max = 3;
	e.job_changed.name = "other";
	done(&w, e, "name,tasks");
	/* A deadline that is a duration counts from now. */
	e = change(&w, 1, "deadline");
	e.job_changed.deadline_ms = 3600000;
	done(&w, e, "deadline");
	assert_int_equal(((const struct body *)table_get(
				  &w.facts.bodies, job_get(&w.facts, (struct job_id){ 1 })->body))
				 ->deadline_ms,
			 w.now_ms + 3600000);
	world_deinit(&w);
}

/* It finds a place by what it asks for then. */
static void a_changed_job_is_decided_on_as_one_submitted_so(void **state)
{
	struct event e;
	struct world w;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	world_queue(&w, "small", "", 0, 2, 1);
	(void)world_submit(&w, (struct wish){ .tasks = 1, .gpus = 3 });
	(void)world_submit(&w, (struct wish){ .tasks = 1, .gpus = 3 });
	(void)world_submit(&w, (struct wish){ .tasks = 1, .gpus = 4 });
	world_run(&w);
	assert_int_equal(world_state(&w, 3), JOB_QUEUED);
	e = change(&w, 3, "gpus,tasks");
	e.job_changed.gpus = 1;
	e.job_changed.tasks_min = e.job_changed.tasks_max = 2;
	done(&w, e, "tasks,gpus");
	world_run(&w);
	assert_int_equal(world_state(&w, 3), JOB_RUNNING);
	assert_int_equal(shape_at(&w, 3)->tasks_min, 2);
	/* The limit of a queue holds for what comes into it. */
	(void)world_submit(&w, (struct wish){ .tasks = 1, .gpus = 3, .held = true });
	e = change(&w, 4, "queue");
	e.job_changed.queue = "small";
	done(&w, e, "queue");
	e = world_event(&w, EVENT_JOB_RELEASED);
	e.job_released.job = 4;
	world_apply(&w, &e);
	for (uint32_t id = 1; id < 4; id++)
		world_cancel(&w, id);
	world_run(&w);
	assert_int_equal(world_state(&w, 4), JOB_QUEUED);
	e = change(&w, 4, "gpus");
	e.job_changed.gpus = 2;
	done(&w, e, "gpus");
	world_run(&w);
	assert_int_equal(world_state(&w, 4), JOB_RUNNING);
	world_deinit(&w);
}

static void an_array_changes_as_a_whole_or_one_by_one(void **state)
{
	struct event e;
	struct world w;

	(void)state;
	world_init(&w, "n0:4");
	(void)world_submit(&w, (struct wish){ .tasks = 1, .gpus = 4, .array = 3 });
	world_run(&w);
	assert_int_equal(world_state(&w, 1), JOB_RUNNING);
	e = change(&w, 3, "gpus");
	e.job_changed.gpus = 2;
	done(&w, e, "gpus");
	assert_int_equal(shape_at(&w, 2)->gpus, 4);
	assert_int_equal(shape_at(&w, 3)->gpus, 2);
	e = change(&w, 2, "array.limit");
	e.job_changed.array_limit = 1;
	e.job_changed.whole = 1;
	done(&w, e, "array.limit");
	world_exit(&w, 1, 0);
	world_run(&w);
	assert_int_equal(world_state(&w, 2), JOB_RUNNING);
	assert_int_equal(world_state(&w, 3), JOB_QUEUED);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_can_not_be_changed_is_refused_by_name),
		cmocka_unit_test(nobody_stops_a_job_by_a_limit_that_is_over),
		cmocka_unit_test(the_record_says_what_is_different_in_the_end),
		cmocka_unit_test(a_changed_job_is_decided_on_as_one_submitted_so),
		cmocka_unit_test(an_array_changes_as_a_whole_or_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
