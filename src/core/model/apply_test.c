/* SPDX-License-Identifier: Apache-2.0 */
/* What each event of jobs and attempts does, told as small stories. */
#include "core/model/apply_testing.h"

/* --- the way of a job ---------------------------------------------------------------------------------- */

static void a_job_goes_from_queued_to_succeeded(void **state)
{
	(void)state;
	submit(50, 1);
	is(1, JOB_QUEUED);
	assert_true(job_is_waiting(job(1)) && !job_is_live(job(1)));
	fits(placed(60, 1, 1, 0));
	is(1, JOB_STARTING);
	assert_true(job_is_live(job(1)) && job(1)->attempts == 1 && job(1)->state_ms == 60);
	ready(70, 1, 0);
	ready(70, 1, 1);
	assert_int_equal(attempt(1)->ready, 2);
	fits(EVENT_OF(ATTEMPT_RELEASED, attempt_released, 80, .attempt = 1));
	is(1, JOB_STARTING);
	started(90, 1, 1);
	is(1, JOB_STARTING);
	started(100, 1, 0);
	is(1, JOB_RUNNING);
	assert_true(job(1)->state_ms == 100 && attempt(1)->released_ms == 80);
	exited(500, 1, 0, CAUSE_EXIT, 0);
	exited(510, 1, 1, CAUSE_EXIT, 0);
	assert_true(attempt(1)->exited == 2 && attempt(1)->first_failed_rank == -1);
	fits(EVENT_OF(ATTEMPT_ENDED, attempt_ended, 520, .attempt = 1, .used_gpu_ms = 880,
		      .run_ms = 440));
	is(1, JOB_RUNNING);
	assert_false(job_is_live(job(1)));
	fits(EVENT_OF(JOB_ENDED, job_ended, 520, .job = 1, .state = JOB_SUCCEEDED, .rank = -1));
	is(1, JOB_SUCCEEDED);
	assert_true(job_state_is_final(job(1)->state) && job(1)->used_gpu_ms == 880 &&
		    job(1)->run_ms == 440);
	assert_true(queue_get(&f, job(1)->queue)->used_gpu_ms == 880);
}

static void no_command_is_taken_as_started_before_the_release(void **state)
{
	(void)state;
	submit(50, 1);
	fits(placed(60, 1, 1, 0));
	ready(70, 1, 0);
	does_not_fit(EVENT_OF(TASK_STARTED, task_started, 75, .attempt = 1, .rank = 0));
	assert_int_equal(attempt(1)->started, 0);
}

static void what_is_told_twice_counts_once(void **state)
{
	(void)state;
	run_job();
	does_not_fit(EVENT_OF(TASK_READY, task_ready, 110, .attempt = 1, .rank = 0));
	does_not_fit(EVENT_OF(TASK_STARTED, task_started, 110, .attempt = 1, .rank = 0));
	does_not_fit(EVENT_OF(ATTEMPT_RELEASED, attempt_released, 110, .attempt = 1));
	exited(120, 1, 0, CAUSE_SIGNAL, 0);
	does_not_fit(EVENT_OF(TASK_EXITED, task_exited, 130, .attempt = 1, .rank = 0,
			      .cause = CAUSE_EXIT));
	does_not_fit(EVENT_OF(TASK_STARTED, task_started, 130, .attempt = 1, .rank = 0));
	assert_int_equal(task_get(&f, attempt(1), 0)->cause, CAUSE_SIGNAL);
}

static void an_exit_alone_says_that_the_command_ran(void **state)
{
	(void)state;
	submit(50, 1);
	fits(placed(60, 1, 1, 0));
	ready(70, 1, 0);
	ready(70, 1, 1);
	fits(EVENT_OF(ATTEMPT_RELEASED, attempt_released, 80, .attempt = 1));
	exited(90, 1, 0, CAUSE_EXIT, 0);
	assert_true(attempt(1)->started == 1 && attempt(1)->exited == 1);
	is(1, JOB_STARTING);
	fits(EVENT_OF(TASK_EXITED, task_exited, 90, .attempt = 1, .rank = 1, .cause = CAUSE_START,
		      .never_ran = 1, .text = "no such program"));
	assert_int_equal(attempt(1)->started, 1);
	assert_int_equal(attempt(1)->first_failed_rank, 1);
	assert_string_equal(facts_text(&f, attempt(1)->reason), "no such program");
}

static void the_first_failure_is_remembered_and_what_stopping_does_is_none(void **state)
{
	(void)state;
	run_job();
	exited(200, 1, 1, CAUSE_EXIT, 3);
	fits(EVENT_OF(ATTEMPT_STOPPED, attempt_stopped, 210, .attempt = 1, .why = STOP_FAILED,
		      .grace_ms = 30));
	assert_true(attempt(1)->deadline_ms == 240 && attempt(1)->stopped_ms == 210);
	exited(220, 1, 0, CAUSE_SIGNAL, 0);
	assert_int_equal(attempt(1)->first_failed_rank, 1);
	is(1, JOB_RUNNING);
}

static void a_second_stop_can_only_be_quicker(void **state)
{
	(void)state;
	run_job();
	fits(EVENT_OF(ATTEMPT_STOPPED, attempt_stopped, 200, .attempt = 1, .why = STOP_EVICTED,
		      .grace_ms = 100));
	does_not_fit(EVENT_OF(ATTEMPT_STOPPED, attempt_stopped, 210, .attempt = 1,
			      .why = STOP_CANCELLED, .grace_ms = 100));
	fits(EVENT_OF(ATTEMPT_STOPPED, attempt_stopped, 220, .attempt = 1, .why = STOP_CANCELLED,
		      .grace_ms = 10));
	assert_true(attempt(1)->deadline_ms == 230 && attempt(1)->why == STOP_EVICTED &&
		    attempt(1)->stopped_ms == 200);
	does_not_fit(EVENT_OF(ATTEMPT_WARNED, attempt_warned, 220, .attempt = 1, .for_job = 1,
			      .deadline_ms = 400));
	does_not_fit(EVENT_OF(ATTEMPT_SPARED, attempt_spared, 220, .attempt = 1));
}

static void a_warned_job_checkpoints_and_a_spared_one_runs_on(void **state)
{
	(void)state;
	run_job();
	submit(110, 2);
	fits(EVENT_OF(ATTEMPT_WARNED, attempt_warned, 120, .attempt = 1, .for_job = 2,
		      .deadline_ms = 300));
	is(1, JOB_CHECKPOINTING);
	assert_true(attempt(1)->for_job == 2 && attempt(1)->warned_ms == 120 &&
		    attempt(1)->deadline_ms == 300);
	fits(EVENT_OF(ATTEMPT_WARNED, attempt_warned, 130, .attempt = 1, .for_job = 2,
		      .deadline_ms = 200));
	assert_true(attempt(1)->warned_ms == 120 && attempt(1)->deadline_ms == 200);
	fits(EVENT_OF(ATTEMPT_SPARED, attempt_spared, 140, .attempt = 1));
	is(1, JOB_RUNNING);
	assert_true(attempt(1)->for_job == 0 && attempt(1)->warned_ms == 0 &&
		    job(1)->state_ms == 140);
	does_not_fit(EVENT_OF(ATTEMPT_SPARED, attempt_spared, 150, .attempt = 1));
}

static void an_evicted_job_is_preempted_then_resumes(void **state)
{
	(void)state;
	run_job();
	fits(EVENT_OF(CHECKPOINT_SAVED, checkpoint_saved, 150, .job = 1, .attempt = 1, .rank = 0,
		      .report = 1, .number = 1, .step = 40, .path = "/c/1", .bytes = 7));
	assert_true(attempt(1)->checkpoint_ms == 150);
	fits(EVENT_OF(ATTEMPT_STOPPED, attempt_stopped, 200, .attempt = 1, .why = STOP_EVICTED));
	exited(210, 1, 0, CAUSE_STOPPED, 0);
	exited(210, 1, 1, CAUSE_STOPPED, 0);
	fits(EVENT_OF(ATTEMPT_ENDED, attempt_ended, 210, .attempt = 1, .why = STOP_EVICTED,
		      .used_gpu_ms = 260, .lost_gpu_ms = 120, .run_ms = 130, .lost_ms = 60));
	assert_true(job(1)->run_ms == 70 && job(1)->lost_gpu_ms == 120);
	fits(EVENT_OF(JOB_REQUEUED, job_requeued, 210, .job = 1, .attempt = 1,
		      .why = REQUEUE_EVICTED, .retries_left = 2, .text = "makes room for job 2"));
	is(1, JOB_PREEMPTED);
	assert_true(job_is_waiting(job(1)) && job(1)->retries_left == 2 &&
		    job(1)->submitted_ms == 50);
	assert_string_equal(facts_text(&f, job(1)->reason), "makes room for job 2");
	fits(placed(300, 1, 2, 1));
	is(1, JOB_RESUMING);
	assert_true(attempt(2)->resume_number == 1 && job(1)->attempts == 2);
	assert_null(task_get(&f, attempt(1), 0));
	assert_non_null(task_get(&f, attempt(2), 1));
}

static void what_an_attempt_cost_comes_off_the_budgets_that_it_names(void **state)
{
	static const int64_t queues[] = { 1, 2, 77 }, micro[] = { 300, 200, 9 };

	(void)state;
	fits(EVENT_OF(QUEUE_SET, queue_set, 20, .name = "plain"));
	fits(EVENT_OF(BUDGET_SET, budget_set, 30, .queue = "default", .left_micro = 1000));
	run_job();
	exited(210, 1, 0, CAUSE_EXIT, 0);
	exited(210, 1, 1, CAUSE_EXIT, 0);
	fits(EVENT_OF(ATTEMPT_ENDED, attempt_ended, 210, .attempt = 1, .used_gpu_ms = 260,
		      .charged = queues, .charged_count = 3, .charged_micro = micro,
		      .charged_micro_count = 3));
	assert_true(queue_get(&f, (struct queue_id){ 1 })->spent_micro == 300);
	assert_true(queue_get(&f, (struct queue_id){ 1 })->budget_micro == 1000);
	assert_true(queue_get(&f, (struct queue_id){ 2 })->spent_micro == 0); /* has none */
	fits(EVENT_OF(BUDGET_SET, budget_set, 300, .queue = "default", .left_micro = 600));
	assert_true(queue_get(&f, (struct queue_id){ 1 })->spent_micro == 0);
}

static void a_requeued_job_that_was_not_evicted_is_queued(void **state)
{
	(void)state;
	run_job();
	does_not_fit(EVENT_OF(JOB_REQUEUED, job_requeued, 200, .job = 1, .why = REQUEUE_FAILED));
	fits(EVENT_OF(ATTEMPT_ENDED, attempt_ended, 210, .attempt = 1, .why = STOP_FAILED));
	does_not_fit(placed(215, 1, 2, 0));
	fits(EVENT_OF(JOB_REQUEUED, job_requeued, 220, .job = 1, .why = REQUEUE_FAILED));
	is(1, JOB_QUEUED);
	does_not_fit(EVENT_OF(JOB_REQUEUED, job_requeued, 230, .job = 1, .why = REQUEUE_EVICTED));
}

static void an_unreachable_attempt_comes_back_to_what_it_was(void **state)
{
	(void)state;
	run_job();
	fits(EVENT_OF(ATTEMPT_WARNED, attempt_warned, 120, .attempt = 1, .deadline_ms = 300));
	fits(EVENT_OF(ATTEMPT_UNREACHABLE, attempt_unreachable, 130, .attempt = 1, .unreachable = 1,
		      .text = "no word from n0"));
	is(1, JOB_UNREACHABLE);
	fits(EVENT_OF(ATTEMPT_SPARED, attempt_spared, 140, .attempt = 1));
	is(1, JOB_UNREACHABLE);
	fits(EVENT_OF(ATTEMPT_UNREACHABLE, attempt_unreachable, 150, .attempt = 1));
	is(1, JOB_RUNNING);
}

static void a_shield_is_the_attempts_and_ends_with_it(void **state)
{
	(void)state;
	run_job();
	fits(EVENT_OF(ATTEMPT_SHIELDED, attempt_shielded, 120, .attempt = 1, .shielded = 1,
		      .least = 2));
	is(1, JOB_RUNNING);
	assert_true(attempt_get(&f, (struct attempt_id){ 1 })->shielded);
	assert_int_equal(attempt_get(&f, (struct attempt_id){ 1 })->least, 2);
	fits(EVENT_OF(ATTEMPT_SHIELDED, attempt_shielded, 130, .attempt = 1));
	assert_false(attempt_get(&f, (struct attempt_id){ 1 })->shielded);
	assert_int_equal(attempt_get(&f, (struct attempt_id){ 1 })->least, 0);
	does_not_fit(
		EVENT_OF(ATTEMPT_SHIELDED, attempt_shielded, 140, .attempt = 7, .shielded = 1));
}

static void who_hears_no_warning_stays_so(void **state)
{
	(void)state;
	run_job();
	fits(EVENT_OF(ATTEMPT_DEAF, attempt_deaf, 120, .attempt = 1));
	is(1, JOB_RUNNING);
	assert_true(attempt_get(&f, (struct attempt_id){ 1 })->deaf);
	does_not_fit(EVENT_OF(ATTEMPT_DEAF, attempt_deaf, 140, .attempt = 7));
}

static void a_final_state_never_changes(void **state)
{
	(void)state;
	submit(50, 1);
	does_not_fit(EVENT_OF(JOB_ENDED, job_ended, 60, .job = 1, .state = JOB_RUNNING));
	does_not_fit(EVENT_OF(JOB_ENDED, job_ended, 60, .job = 1, .state = JOB_TIMED_OUT + 1));
	fits(EVENT_OF(JOB_ENDED, job_ended, 60, .job = 1, .state = JOB_CANCELLED, .rank = -1,
		      .text = "by ann"));
	does_not_fit(EVENT_OF(JOB_ENDED, job_ended, 70, .job = 1, .state = JOB_SUCCEEDED));
	does_not_fit(EVENT_OF(JOB_HELD, job_held, 70, .job = 1));
	does_not_fit(EVENT_OF(JOB_RELEASED, job_released, 70, .job = 1));
	does_not_fit(EVENT_OF(JOB_CANCEL_ASKED, job_cancel_asked, 70, .job = 1));
	does_not_fit(EVENT_OF(JOB_PRIORITY_SET, job_priority_set, 70, .job = 1, .priority = 3));
	does_not_fit(EVENT_OF(JOB_REQUEUED, job_requeued, 70, .job = 1));
	does_not_fit(placed(70, 1, 1, 0));
	is(1, JOB_CANCELLED);
}

static void a_job_with_a_live_attempt_does_not_end(void **state)
{
	(void)state;
	run_job();
	does_not_fit(EVENT_OF(JOB_ENDED, job_ended, 200, .job = 1, .state = JOB_SUCCEEDED));
	does_not_fit(placed(200, 1, 2, 0));
}

/* --- fencing -------------------------------------------------------------------------------------------------- */

static void nothing_from_an_older_attempt_is_taken(void **state)
{
	(void)state;
	run_job();
	fits(EVENT_OF(ATTEMPT_ENDED, attempt_ended, 200, .attempt = 1, .why = STOP_LOST));
	does_not_fit(EVENT_OF(TASK_EXITED, task_exited, 205, .attempt = 1, .rank = 0));
	fits(EVENT_OF(JOB_REQUEUED, job_requeued, 210, .job = 1, .why = REQUEUE_LOST));
	fits(placed(220, 1, 2, 0));
	does_not_fit(EVENT_OF(TASK_READY, task_ready, 230, .attempt = 1, .rank = 0));
	does_not_fit(EVENT_OF(TASK_EXITED, task_exited, 230, .attempt = 1, .rank = 0, .code = 1));
	does_not_fit(
		EVENT_OF(PROGRESS, progress, 230, .attempt = 1, .rank = 0, .number = 9, .step = 9));
	does_not_fit(EVENT_OF(CHECKPOINT_SAVED, checkpoint_saved, 230, .job = 1, .attempt = 1,
			      .number = 1, .report = 1));
	does_not_fit(EVENT_OF(ATTEMPT_ENDED, attempt_ended, 230, .attempt = 1, .used_gpu_ms = 5));
	does_not_fit(EVENT_OF(ATTEMPT_UNREACHABLE, attempt_unreachable, 230, .attempt = 1,
			      .unreachable = 1));
	does_not_fit(EVENT_OF(ATTEMPT_STOPPED, attempt_stopped, 230, .attempt = 1));
}

static void ids_are_given_in_order_and_never_again(void **state)
{
	(void)state;
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 50, .job = 2, .queue = "default"));
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 50, .job = 0, .queue = "default"));
	submit(50, 1);
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 50, .job = 1, .queue = "default"));
	does_not_fit(placed(60, 1, 2, 0));
	does_not_fit(placed(60, 2, 1, 0));
	fits(placed(60, 1, 1, 0));
}

static void reports_are_taken_once_and_in_order(void **state)
{
	(void)state;
	run_job();
	fits(EVENT_OF(PROGRESS, progress, 110, .attempt = 1, .rank = 0, .number = 2, .step = 20));
	does_not_fit(EVENT_OF(PROGRESS, progress, 120, .attempt = 1, .rank = 0, .number = 2,
			      .step = 21));
	does_not_fit(EVENT_OF(PROGRESS, progress, 120, .attempt = 1, .rank = 0, .number = 1,
			      .step = 10));
	does_not_fit(EVENT_OF(PROGRESS, progress, 120, .attempt = 1, .rank = 2, .number = 3));
	does_not_fit(EVENT_OF(PROGRESS, progress, 120, .attempt = 1, .rank = -1, .number = 3));
	fits(EVENT_OF(PROGRESS, progress, 130, .attempt = 1, .rank = 0, .number = 3, .step = -1));
	assert_true(task_get(&f, attempt(1), 0)->step == 20 &&
		    task_get(&f, attempt(1), 0)->reports == 3);
	assert_true(task_get(&f, attempt(1), 1)->step == -1);
}

/* --- checkpoints ------------------------------------------------------------------------------------------------ */

static struct event saved(int64_t time_ms, uint32_t number)
{
	static char path[8][8];

	snprintf(path[number % 8], sizeof(path[0]), "/c/%u", number);
	return EVENT_OF(CHECKPOINT_SAVED, checkpoint_saved, time_ms, .job = 1, .attempt = 1,
			.rank = 0, .report = number, .number = number, .step = 10 * number,
			.at_ms = time_ms - 1, .path = path[number % 8]);
}

static void the_newest_whole_checkpoints_are_kept(void **state)
{
	(void)state;
	run_job();
	assert_null(job_checkpoint(&f, job(1), 0));
	does_not_fit(saved(110, 2));
	for (uint32_t number = 1; number <= 6; number++)
		fits(saved(200 + number, number));
	does_not_fit(saved(210, 6));
	assert_string_equal(job_checkpoint(&f, job(1), 0)->path, "/c/6");
	assert_true(job_checkpoint(&f, job(1), 0)->at_ms == 205 &&
		    job_checkpoint(&f, job(1), 0)->step == 60);
	assert_int_equal(job_checkpoint(&f, job(1), 4)->number, 4);
	assert_null(job_checkpoint(&f, job(1), 2));
	fits(EVENT_OF(CHECKPOINT_VOID, checkpoint_void, 220, .job = 1, .number = 6,
		      .reason = "it is torn"));
	assert_int_equal(job_checkpoint(&f, job(1), 0)->number, 5);
	assert_true(job_checkpoint_kept(&f, job(1), 6)->is_void);
	assert_string_equal(facts_text(&f, job_checkpoint_kept(&f, job(1), 6)->why), "it is torn");
	assert_null(job_checkpoint_kept(&f, job(1), 2));
	assert_null(job_checkpoint_kept(&f, job(1), 7));
	does_not_fit(EVENT_OF(CHECKPOINT_VOID, checkpoint_void, 220, .job = 1, .number = 6));
	does_not_fit(EVENT_OF(CHECKPOINT_VOID, checkpoint_void, 220, .job = 1, .number = 2));
	does_not_fit(EVENT_OF(CHECKPOINT_VOID, checkpoint_void, 220, .job = 1, .number = 7));
	for (uint32_t number = 3; number <= 5; number++)
		fits(EVENT_OF(CHECKPOINT_VOID, checkpoint_void, 230, .job = 1, .number = number,
			      .reason = "it is missing"));
	assert_null(job_checkpoint(&f, job(1), 0));
	assert_int_equal(f.checkpoints.count, CHECKPOINTS_KEPT);
	/* The row of one that is void is taken, and its reason given back. */
	assert_int_equal(f.texts.count, 4);
	fits(saved(240, 7));
	assert_false(job_checkpoint_kept(&f, job(1), 7)->is_void);
	assert_string_equal(facts_text(&f, job_checkpoint_kept(&f, job(1), 7)->why), "");
	assert_null(job_checkpoint_kept(&f, job(1), 3));
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static void a_hold_on_a_running_job_works_when_it_waits_again(void **state)
{
	(void)state;
	run_job();
	fits(EVENT_OF(JOB_HELD, job_held, 150, .job = 1, .reason = "not tonight"));
	is(1, JOB_RUNNING);
	fits(EVENT_OF(ATTEMPT_ENDED, attempt_ended, 200, .attempt = 1, .why = STOP_EVICTED));
	fits(EVENT_OF(JOB_REQUEUED, job_requeued, 200, .job = 1, .why = REQUEUE_EVICTED));
	is(1, JOB_HELD);
	fits(EVENT_OF(JOB_RELEASED, job_released, 210, .job = 1));
	is(1, JOB_PREEMPTED);
	does_not_fit(EVENT_OF(JOB_RELEASED, job_released, 220, .job = 1));
}

static void a_job_waits_for_all_it_depends_on(void **state)
{
	static const int64_t two[] = { 1, 2 }, later[] = { 3 };

	(void)state;
	submit(50, 1);
	submit(50, 2);
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 3, .queue = "default",
			      .depends = later, .depends_count = 1));
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 3, .queue = "default",
		      .depends = two, .depends_count = 2, .held = 1));
	is(3, JOB_HELD);
	fits(EVENT_OF(JOB_RELEASED, job_released, 65, .job = 3));
	is(3, JOB_BLOCKED);
	fits(EVENT_OF(JOB_ENDED, job_ended, 70, .job = 2, .state = JOB_SUCCEEDED));
	is(3, JOB_BLOCKED);
	fits(EVENT_OF(JOB_ENDED, job_ended, 80, .job = 1, .state = JOB_SUCCEEDED));
	is(3, JOB_QUEUED);
	assert_true(job(3)->state_ms == 80);
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 90, .job = 4, .queue = "default",
		      .depends = two, .depends_count = 2));
	is(4, JOB_QUEUED);
}

static void a_job_stays_blocked_when_what_it_depends_on_fails(void **state)
{
	static const int64_t one[] = { 1 };

	(void)state;
	submit(50, 1);
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
		      .depends = one, .depends_count = 1));
	fits(EVENT_OF(JOB_ENDED, job_ended, 70, .job = 1, .state = JOB_FAILED));
	is(2, JOB_BLOCKED);
}

static void an_array_is_many_jobs_with_one_body(void **state)
{
	static const int64_t one[] = { 1 };
	char key[65];
	uint8_t bytes[32];

	(void)state;
	submit(50, 1);
	memset(key, 'a', 64);
	key[64] = '\0';
	memset(bytes, 0xaa, sizeof(bytes));
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
		      .array_count = 3, .client_key = key, .depends = one, .depends_count = 1));
	assert_int_equal(f.jobs.count, 4);
	for (uint32_t id = 2; id <= 4; id++) {
		is(id, JOB_BLOCKED);
		assert_true(job(id)->array_first == 2 && job(id)->array_count == 3 &&
			    job(id)->body == job(2)->body);
	}
	assert_int_equal(facts_key_find(&f, bytes).v, 2);
	fits(EVENT_OF(JOB_ENDED, job_ended, 70, .job = 1, .state = JOB_SUCCEEDED));
	for (uint32_t id = 2; id <= 4; id++)
		is(id, JOB_QUEUED);
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 80, .job = 5, .queue = "default",
			      .array_count = ARRAY_MAX + 1));
}

static void a_client_key_finds_the_newest_submission(void **state)
{
	char key[65];
	uint8_t bytes[32];

	(void)state;
	memset(key, '1', 64);
	key[64] = '\0';
	memset(bytes, 0x11, sizeof(bytes));
	assert_int_equal(facts_key_find(&f, bytes).v, 0);
	for (uint32_t id = 1; id <= 20; id++) {
		fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 50, .job = id, .queue = "default",
			      .client_key = id % 2 ? key : ""));
		assert_int_equal(facts_key_find(&f, bytes).v, id % 2 ? id : id - 1);
	}
}

static void a_submission_that_makes_no_sense_is_not_taken(void **state)
{
	int64_t many[DEPENDS_MAX + 1];

	(void)state;
	submit(50, 1);
	for (uint32_t i = 0; i <= DEPENDS_MAX; i++)
		many[i] = 1;
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "nowhere"));
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2));
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
			      .tasks_min = -1));
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
			      .tasks_min = 3, .tasks_max = 2));
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
			      .tasks_max = TASKS_MAX + 1));
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
			      .gpus = NODE_GPUS_MAX + 1));
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
			      .require = "moon"));
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
			      .depends = many, .depends_count = DEPENDS_MAX + 1));
	does_not_fit(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
			      .models = "a,b,c,d,e,f,g,h,i"));
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
		      .models = "a,b,c,d,e,f,g,h,a", .depends = many, .depends_count = DEPENDS_MAX,
		      .tasks_max = TASKS_MAX, .gpus = NODE_GPUS_MAX));
}

static void equal_wishes_are_one_shape(void **state)
{
	(void)state;
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 1, .queue = "default",
		      .tasks_min = 4, .gpus = 2, .models = "b,a", .require = "rack",
		      .priority = 3));
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 2, .queue = "default",
		      .tasks_min = 4, .gpus = 2, .models = "a,b,a", .require = "rack",
		      .limit_ms = 9));
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 60, .job = 3, .queue = "default",
		      .tasks_min = 4, .gpus = 2, .models = "a", .require = "rack"));
	assert_int_equal(job(1)->shape.v, job(2)->shape.v);
	assert_int_not_equal(job(1)->shape.v, job(3)->shape.v);
	assert_string_equal(facts_name(&f, shape_get(&f, job(1)->shape)->models[0]), "a");
	assert_int_equal(shape_get(&f, job(1)->shape)->require, 2);
	assert_int_equal(f.shapes.count, 2);
}

/* --- promises ---------------------------------------------------------------------------------------------------------- */

static struct event promised(int64_t time_ms, uint32_t job_id)
{
	static const int64_t victims[] = { 1 };

	return EVENT_OF(PROMISE_MADE, promise_made, time_ms, .job = job_id, .nodes = both_nodes,
			.nodes_count = 2, .masks = first_gpus, .masks_count = 2, .victims = victims,
			.victims_count = 1);
}

static void a_promise_lasts_until_it_is_kept_dropped_or_void(void **state)
{
	const struct promise *promise;

	(void)state;
	run_job();
	submit(110, 2);
	fits(promised(120, 2));
	promise = table_get(&f.promises, job(2)->promise);
	assert_true(promise->node == 1 && promise->gpu_mask == 1 && !promise->victim);
	promise = table_get(&f.promises, promise->next);
	assert_true(promise->node == 2);
	promise = table_get(&f.promises, promise->next);
	assert_true(promise->victim == 1 && !promise->next);
	fits(EVENT_OF(PROMISE_DROPPED, promise_dropped, 130, .job = 2));
	assert_int_equal(job(2)->promise, 0);
	does_not_fit(EVENT_OF(PROMISE_DROPPED, promise_dropped, 130, .job = 2));
	fits(promised(140, 2));
	fits(placed(150, 2, 2, 0));
	assert_int_equal(job(2)->promise, 0);
	fits(promised(160, 2)); /* while it runs: it moves */
	fits(EVENT_OF(PROMISE_DROPPED, promise_dropped, 165, .job = 2));
	submit(170, 3);
	fits(promised(180, 3));
	fits(EVENT_OF(JOB_ENDED, job_ended, 190, .job = 3, .state = JOB_CANCELLED));
	assert_int_equal(job(3)->promise, 0);
	assert_int_equal(f.promises.count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_job_goes_from_queued_to_succeeded),
		STORY(no_command_is_taken_as_started_before_the_release),
		STORY(what_is_told_twice_counts_once),
		STORY(an_exit_alone_says_that_the_command_ran),
		STORY(the_first_failure_is_remembered_and_what_stopping_does_is_none),
		STORY(a_second_stop_can_only_be_quicker),
		STORY(a_warned_job_checkpoints_and_a_spared_one_runs_on),
		STORY(an_evicted_job_is_preempted_then_resumes),
		STORY(what_an_attempt_cost_comes_off_the_budgets_that_it_names),
		STORY(a_requeued_job_that_was_not_evicted_is_queued),
		STORY(an_unreachable_attempt_comes_back_to_what_it_was),
		STORY(a_shield_is_the_attempts_and_ends_with_it),
		STORY(who_hears_no_warning_stays_so),
		STORY(a_final_state_never_changes),
		STORY(a_job_with_a_live_attempt_does_not_end),
		STORY(nothing_from_an_older_attempt_is_taken),
		STORY(ids_are_given_in_order_and_never_again),
		STORY(reports_are_taken_once_and_in_order),
		STORY(the_newest_whole_checkpoints_are_kept),
		STORY(a_hold_on_a_running_job_works_when_it_waits_again),
		STORY(a_job_waits_for_all_it_depends_on),
		STORY(a_job_stays_blocked_when_what_it_depends_on_fails),
		STORY(an_array_is_many_jobs_with_one_body),
		STORY(a_client_key_finds_the_newest_submission),
		STORY(a_submission_that_makes_no_sense_is_not_taken),
		STORY(equal_wishes_are_one_shape),
		STORY(a_promise_lasts_until_it_is_kept_dropped_or_void),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
