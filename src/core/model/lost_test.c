/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record of a history is lost, each in turn: everything else is as if it were there. And long gaps, numbers that must
 * not come again, and jobs that are forgotten.
 */
#include "base/testing.h"

#include "base/arena.h"
#include "core/model/facts.h"

enum { EVENTS_MAX = 128, JOBS = 6 };

struct told {
	struct event event;
	uint32_t job; /* it is about; 0 = none */
};

static struct told history[EVENTS_MAX];
static uint32_t count;
static const int64_t node_1[] = { 1, 1 }, node_2[] = { 2 }, mask_1[] = { 1, 2 }, mask_2[] = { 4 },
		     depends_on_1[] = { 1 };

static struct event *tell(enum event_kind kind, uint32_t job)
{
	struct told *told = &history[count++];

	assert_true(count <= EVENTS_MAX);
	told->event = kind == EVENT_POLICY_SET ? event_policy_make(0, "test")
					       : event_make(kind, 0, "test");
	told->event.time_ms = 1700000000000 + (int64_t)count * 1000;
	told->event.seq = count;
	told->job = job;
	return &told->event;
}

static void tell_submitted(uint32_t job, const char *queue, const char *require)
{
	struct event_job_submitted *e = &tell(EVENT_JOB_SUBMITTED, job)->job_submitted;

	e->job = job;
	e->name = "train";
	e->user = "ada";
	e->queue = queue;
	e->require = require;
	e->tasks_min = job == 1 ? 2 : 1;
	e->gpus = 1;
	e->tier = TIER_STANDARD;
	e->checkpoint = 1;
	e->retries = 2;
}

static void tell_placed(uint32_t job, uint32_t attempt, bool on_1, int64_t resume)
{
	struct event_attempt_placed *e = &tell(EVENT_ATTEMPT_PLACED, job)->attempt_placed;

	e->job = job;
	e->attempt = attempt;
	e->nodes = on_1 ? node_1 : node_2;
	e->masks = on_1 ? mask_1 : mask_2;
	e->nodes_count = e->masks_count = on_1 ? 2 : 1;
	e->resume_number = resume;
}

static void tell_begun(uint32_t job, uint32_t attempt, uint32_t ranks)
{
	for (uint32_t rank = 0; rank < ranks; rank++) {
		struct event_task_ready *e = &tell(EVENT_TASK_READY, job)->task_ready;

		e->attempt = attempt;
		e->rank = rank;
	}
	tell(EVENT_ATTEMPT_RELEASED, job)->attempt_released.attempt = attempt;
	for (uint32_t rank = 0; rank < ranks; rank++) {
		struct event_task_started *e = &tell(EVENT_TASK_STARTED, job)->task_started;

		e->attempt = attempt;
		e->rank = rank;
	}
}

static void tell_exited(uint32_t job, uint32_t attempt, uint32_t ranks)
{
	for (uint32_t rank = 0; rank < ranks; rank++) {
		struct event_task_exited *e = &tell(EVENT_TASK_EXITED, job)->task_exited;

		e->attempt = attempt;
		e->rank = rank;
	}
	tell(EVENT_ATTEMPT_ENDED, job)->attempt_ended.attempt = attempt;
}

static void tell_ended(uint32_t job)
{
	struct event_job_ended *e = &tell(EVENT_JOB_ENDED, job)->job_ended;

	e->job = job;
	e->state = JOB_SUCCEEDED;
	e->rank = -1;
}

static void tell_saved(uint32_t job, uint32_t attempt, int64_t number)
{
	struct event_checkpoint_saved *e = &tell(EVENT_CHECKPOINT_SAVED, job)->checkpoint_saved;

	e->job = job;
	e->attempt = attempt;
	e->number = number;
	e->path = "one";
}

static void tell_cluster(void)
{
	struct event_node_set *node;
	struct event_queue_set *queue;

	tell(EVENT_DAEMON_STARTED, 0);
	tell(EVENT_LEVELS_SET, 0)->levels_set.levels = "rack";
	for (int i = 0; i < 2; i++) {
		node = &tell(EVENT_NODE_SET, 0)->node_set;
		node->name = i ? "n2" : "n1";
		node->gpus = 4;
		node->domains = "r1";
		node->node = i + 1;
	}
	tell(EVENT_TEAM_SET, 0)->team_set.name = "vision";
	tell(EVENT_USER_SET, 0)->user_set.name = "ada";
	for (int i = 0; i < 2; i++) {
		queue = &tell(EVENT_QUEUE_SET, 0)->queue_set;
		queue->name = i ? "vision" : "default";
		queue->limit_share = -1;
		queue->weight = 1;
	}
	tell(EVENT_POLICY_SET, 0);
}

/* Job 1 is evicted for job 3 and goes on; 2 waits; 4 depends on 1; 5 is cancelled; 6 runs. */
static void history_make(void)
{
	count = 0;
	tell_cluster();
	tell_submitted(1, "vision", "rack");
	tell(EVENT_DECIDED, 0);
	tell_placed(1, 1, true, 0);
	tell_begun(1, 1, 2);
	tell_submitted(2, "default", "");
	tell_saved(1, 1, 1);
	tell_saved(1, 1, 2);
	tell_submitted(3, "default", "");
	tell(EVENT_ATTEMPT_WARNED, 1)->attempt_warned.attempt = 1;
	tell(EVENT_PROMISE_MADE, 3)->promise_made = (struct event_promise_made){
		.job = 3, .nodes = node_2, .nodes_count = 1, .masks = mask_2, .masks_count = 1
	};
	tell(EVENT_ATTEMPT_STOPPED, 1)->attempt_stopped.attempt = 1;
	tell_exited(1, 1, 2);
	tell(EVENT_JOB_REQUEUED, 1)->job_requeued =
		(struct event_job_requeued){ .job = 1, .why = REQUEUE_EVICTED, .text = "" };
	tell_placed(3, 2, false, 0);
	tell_begun(3, 2, 1);
	tell_submitted(4, "default", "");
	history[count - 1].event.job_submitted.depends = depends_on_1;
	history[count - 1].event.job_submitted.depends_count = 1;
	tell_placed(1, 3, true, 2);
	tell(EVENT_CHECKPOINT_VOID, 1)->checkpoint_void =
		(struct event_checkpoint_void){ .job = 1, .number = 2, .reason = "" };
	tell_begun(1, 3, 2);
	tell_exited(3, 2, 1);
	tell_ended(3);
	tell_submitted(5, "vision", "");
	tell(EVENT_JOB_CANCEL_ASKED, 5)->job_cancel_asked =
		(struct event_job_cancel_asked){ .job = 5, .reason = "" };
	tell(EVENT_JOB_ENDED, 5)->job_ended = (struct event_job_ended){
		.job = 5, .state = JOB_CANCELLED, .rank = -1, .text = ""
	};
	tell_exited(1, 3, 2);
	tell_ended(1);
	tell_placed(4, 4, false, 0);
	tell_begun(4, 4, 1);
	tell_submitted(6, "vision", "rack");
	tell_exited(4, 4, 1);
	tell_ended(4);
	tell_placed(6, 5, true, 0);
	history[count - 1].event.attempt_placed.nodes_count = 1;
	history[count - 1].event.attempt_placed.masks_count = 1;
	tell_begun(6, 5, 1);
	tell(EVENT_CLOCK_TICKED, 0);
}

/* The history without records first to end - 1. */
static void replay(struct facts *f, uint32_t first, uint32_t end)
{
	facts_init(f);
	for (uint32_t i = 0; i < count; i++)
		if (i < first || i >= end)
			apply(f, &history[i].event);
	facts_pass_over(f, count);
}

#define SAME(field)                                                                                \
	if (job->field != want->field)                                                             \
	fail_msg("without record %u (%s): job %u: " #field " is %lld, not %lld", lost + 1,         \
		 event_info(history[lost].event.kind)->name, id, (long long)job->field,            \
		 (long long)want->field)

static void expect_same_job(const struct facts *f, const struct facts *whole, uint32_t id,
			    uint32_t lost)
{
	const struct job *job = job_get(f, (struct job_id){ id }),
			 *want = job_get(whole, (struct job_id){ id });

	SAME(state);
	SAME(submitted_ms);
	SAME(attempt.v);
	SAME(last_attempt.v);
	SAME(attempts);
	SAME(checkpoints_made);
	SAME(exit_code);
	SAME(run_ms);
	SAME(cancel_asked);
	SAME(evicted);
	assert_string_equal(facts_name(f, queue_get(f, job->queue)->name),
			    facts_name(whole, queue_get(whole, want->queue)->name));
	if (want->last_attempt.v) {
		assert_int_equal(attempt_get(f, job->last_attempt)->tasks,
				 attempt_get(whole, want->last_attempt)->tasks);
		assert_int_equal(
			task_get(f, attempt_get(f, job->last_attempt), 0)->node.v,
			task_get(whole, attempt_get(whole, want->last_attempt), 0)->node.v);
	}
}

static void whichever_record_is_lost_the_other_jobs_are_as_they_were(void **state)
{
	struct facts whole, f;

	(void)state;
	history_make();
	replay(&whole, 0, 0);
	assert_int_equal(whole.lost, 0);
	assert_int_equal(job_get(&whole, (struct job_id){ 1 })->state, JOB_SUCCEEDED);
	assert_int_equal(job_get(&whole, (struct job_id){ 6 })->state, JOB_RUNNING);
	for (uint32_t lost = 0; lost < count; lost++) {
		struct event passed;

		replay(&f, lost, lost + 1);
		assert_int_equal(f.lost, 1);
		assert_int_equal(f.lost_first[0], lost + 1);
		facts_verify(&f);
		/* Behind the last submission none tells how far the numbers go. */
		assert_true(f.jobs.count == JOBS || history[lost].job == JOBS);
		for (uint32_t id = 1; id <= JOBS; id++)
			if (id != history[lost].job)
				expect_same_job(&f, &whole, id, lost);
		if (facts_lost_numbers(&f, &passed))
			apply(&f, &passed);
		assert_true(f.jobs.count >= whole.jobs.count &&
			    f.attempts.count >= whole.attempts.count);
		facts_verify(&f);
		facts_deinit(&f);
	}
	facts_deinit(&whole);
}

static void numbers_of_lost_records_are_not_given_again(void **state)
{
	struct event passed;
	struct facts f;

	(void)state;
	history_make();
	replay(&f, 0, 0);
	assert_false(facts_lost_numbers(&f, &passed));
	facts_pass_over(&f, count + 3);
	assert_true(facts_lost_numbers(&f, &passed));
	assert_int_equal(passed.records_lost.jobs, JOBS + 3 * ARRAY_MAX);
	assert_int_equal(passed.records_lost.attempts, 5 + 3);
	passed.seq = count + 4;
	apply(&f, &passed);
	assert_int_equal(f.jobs.count, JOBS + 3 * ARRAY_MAX);
	assert_int_equal(f.attempts.count, 5 + 3);
	assert_false(facts_lost_numbers(&f, &passed));
	assert_false(job_is_there(&f, JOBS + 1));
	facts_verify(&f);
	facts_deinit(&f);
}

static void a_gap_is_no_wider_than_the_missing_records_can_have_made_it(void **state)
{
	struct event late;
	struct facts f;

	(void)state;
	history_make();
	replay(&f, 0, 0);
	late = history[9].event;
	assert_int_equal(late.kind, EVENT_JOB_SUBMITTED);
	late.seq = count + 1;
	late.job_submitted.job = 1000;
	apply(&f, &late);
	assert_int_equal(f.jobs.count, JOBS); /* nothing is lost: it does not fit */
	late.seq = count + 3; /* one is lost */
	late.job_submitted.job = JOBS + ARRAY_MAX + 2;
	apply(&f, &late);
	assert_int_equal(f.jobs.count, JOBS);
	late.seq = count + 4;
	late.job_submitted.job = JOBS + ARRAY_MAX + 1;
	apply(&f, &late);
	assert_int_equal(f.jobs.count, JOBS + ARRAY_MAX + 1);
	late.seq = UINT32_MAX; /* four thousand million are lost */
	late.job_submitted.job = UINT32_MAX - 10;
	apply(&f, &late);
	assert_int_equal(f.jobs.count, JOBS + ARRAY_MAX + 1);
	facts_verify(&f);
	facts_deinit(&f);
}

/* Rank 1 of a gang of two has left, with its exit told or lost as well; its GPU is another job's now. */
static void leave_unseen(struct facts *f, bool exit_told)
{
	static const int64_t there = 1, gpu = 2;
	struct event *e;

	count = 0;
	tell_cluster();
	tell_submitted(1, "default", "");
	tell_placed(1, 1, true, 0);
	tell_begun(1, 1, 2);
	if (exit_told) {
		e = tell(EVENT_TASK_EXITED, 1);
		e->task_exited.attempt = 1;
		e->task_exited.rank = 1;
		e->task_exited.cause = CAUSE_LOST;
	}
	tell(EVENT_DAEMON_STARTED, 0); /* in place of what is lost */
	tell_submitted(2, "default", "");
	e = tell(EVENT_ATTEMPT_PLACED, 2);
	e->attempt_placed.job = e->attempt_placed.attempt = 2;
	e->attempt_placed.nodes = &there;
	e->attempt_placed.masks = &gpu;
	e->attempt_placed.nodes_count = e->attempt_placed.masks_count = 1;
	replay(f, count - 3, count - 2);
}

static void a_gpu_that_two_hold_is_the_newer_ones(void **state)
{
	struct event passed;
	struct facts f, read;

	(void)state;
	for (int told = 0; told < 2; told++) {
		leave_unseen(&f, told);
		leave_unseen(&read, told);
		assert_true(facts_settle(&f));
		assert_false(facts_settle(&f));
		assert_int_equal(job_get(&f, (struct job_id){ 1 })->state, JOB_RUNNING);
		assert_int_equal(attempt_get(&f, (struct attempt_id){ 1 })->left, 1);
		assert_int_equal(job_get(&f, (struct job_id){ 2 })->attempt.v, 2);
		facts_verify(&f);
		/* Who reads the record that the daemon writes then comes to the same. */
		(void)facts_lost_numbers(&f, &passed);
		passed.seq = count + 1;
		apply(&f, &passed);
		apply(&read, &passed);
		assert_true(facts_hash(&f) == facts_hash(&read));
		facts_deinit(&f);
		facts_deinit(&read);
	}
}

/* Both its ranks were given to another: nothing of it goes on. */
static void an_attempt_whose_gpus_are_another_ones_has_ended(void **state)
{
	static const int64_t there[] = { 1, 1 }, gpus[] = { 1, 2 };
	struct facts f;

	(void)state;
	leave_unseen(&f, false);
	facts_deinit(&f);
	history[count - 1].event.attempt_placed.nodes = there;
	history[count - 1].event.attempt_placed.masks = gpus;
	history[count - 1].event.attempt_placed.nodes_count = 2;
	history[count - 1].event.attempt_placed.masks_count = 2;
	history[count - 2].event.job_submitted.tasks_min = 2;
	replay(&f, count - 3, count - 2);
	assert_true(facts_settle(&f));
	assert_int_equal(job_get(&f, (struct job_id){ 1 })->state, JOB_QUEUED);
	assert_int_equal(job_get(&f, (struct job_id){ 1 })->attempt.v, 0);
	assert_int_equal(job_get(&f, (struct job_id){ 2 })->attempt.v, 2);
	facts_verify(&f);
	facts_deinit(&f);
}

static void a_run_of_lost_records_is_told_in_ranges(void **state)
{
	char text[LOST_TEXT_MAX];
	struct facts f;

	(void)state;
	history_make();
	replay(&f, 20, 24);
	facts_lost_text(&f, text);
	assert_string_equal(
		text, "4 records of the journal could not be read and were set aside: 21 to 24");
	facts_deinit(&f);
	replay(&f, 16, 17);
	facts_lost_text(&f, text);
	assert_string_equal(text,
			    "1 record of the journal could not be read and was set aside: 17");
	facts_deinit(&f);
}

static void a_waiting_job_whose_dependency_is_lost_is_held(void **state)
{
	struct facts f;

	(void)state;
	history_make();
	facts_init(&f);
	for (uint32_t i = 0; i < count && history[i].event.kind != EVENT_JOB_ENDED; i++)
		if (i != 9)
			apply(&f, &history[i].event);
	assert_int_equal(job_get(&f, (struct job_id){ 1 })->state, JOB_NONE);
	assert_int_equal(job_get(&f, (struct job_id){ 4 })->state, JOB_HELD);
	facts_verify(&f);
	facts_deinit(&f);
}

/* --- reasons ------------------------------------------------------------------------------------------------ */

static void a_reason_is_kept_whole_and_its_row_is_used_again(void **state)
{
	struct event held = event_make(EVENT_JOB_HELD, 1, "ada");
	char reason[400] = "";
	struct facts f;

	(void)state;
	history_make();
	replay(&f, 0, 0);
	memset(reason, 'a', 200);
	held.seq = f.seq + 1;
	held.job_held = (struct event_job_held){ .job = 2, .reason = reason };
	apply(&f, &held);
	assert_string_equal(facts_text(&f, job_get(&f, (struct job_id){ 2 })->reason), reason);
	memset(reason, 'b', 399);
	memcpy(reason + REASON_MAX_BYTES - 1, "\xc3\xa4", 2); /* a character across the border */
	for (int i = 0; i < 1000; i++, held.seq++)
		apply(&f, &held);
	assert_int_equal(strlen(facts_text(&f, job_get(&f, (struct job_id){ 2 })->reason)),
			 REASON_MAX_BYTES - 1);
	assert_in_range(f.texts.count, 1, 4);
	facts_verify(&f);
	facts_deinit(&f);
}

/* --- forgetting ------------------------------------------------------------------------------------------ */

static void forget(struct facts *f, int64_t job)
{
	struct event event = event_make(EVENT_JOBS_FORGOTTEN, f->now_ms, "test");

	event.seq = f->seq + 1;
	event.jobs_forgotten.jobs = &job;
	event.jobs_forgotten.jobs_count = 1;
	apply(f, &event);
}

static void a_forgotten_job_leaves_nothing_and_its_number_is_not_given_again(void **state)
{
	struct facts f;

	(void)state;
	history_make();
	replay(&f, 0, 0);
	forget(&f, 6); /* runs */
	assert_true(job_is_there(&f, 6));
	forget(&f, 1);
	assert_false(job_is_there(&f, 1) || attempt_is_there(&f, 1) || attempt_is_there(&f, 3));
	assert_int_equal(job_get(&f, (struct job_id){ 4 })->depends, 0);
	assert_int_equal(f.jobs.count, JOBS);
	facts_verify(&f);
	forget(&f, 4);
	facts_verify(&f);
	facts_deinit(&f);
}

static void a_job_may_be_forgotten_when_its_time_is_over_and_its_key_is_void(void **state)
{
	struct facts f;
	int64_t week = CLIENT_KEY_MS;

	(void)state;
	history_make();
	replay(&f, 0, 0);
	f.now_ms = job_get(&f, (struct job_id){ 3 })->submitted_ms + week - 1;
	f.policy.keep_ended_ms = 1;
	assert_false(job_may_be_forgotten(&f, (struct job_id){ 3 }));
	f.now_ms++;
	assert_true(job_may_be_forgotten(&f, (struct job_id){ 3 }));
	f.policy.keep_ended_ms = week;
	assert_false(job_may_be_forgotten(&f, (struct job_id){ 3 }));
	f.now_ms = job_get(&f, (struct job_id){ 3 })->state_ms + week;
	assert_true(job_may_be_forgotten(&f, (struct job_id){ 3 }));
	assert_false(job_may_be_forgotten(&f, (struct job_id){ 6 }));
	facts_deinit(&f);
}

static size_t facts_bytes(const struct facts *f)
{
	return table_bytes(&f->jobs) + table_bytes(&f->bodies) + table_bytes(&f->attempts) +
	       table_bytes(&f->key_links) + table_bytes(&f->checkpoints) + table_bytes(&f->tasks) +
	       table_bytes(&f->depends);
}

/* Job after job comes, ends and is forgotten a hundred jobs later. */
static void memory_follows_the_jobs_that_are_remembered(void **state)
{
	struct facts f;
	size_t after_1000 = 0;
	char key[65];

	(void)state;
	history_make();
	replay(&f, 0, 0);
	count = 0;
	for (uint32_t job = JOBS + 1; job <= 20000; job++) {
		uint32_t first = count, attempt = f.attempts.count + 1;

		snprintf(key, sizeof(key), "%064x", job);
		tell_submitted(job, "default", "");
		history[count - 1].event.job_submitted.client_key = key;
		tell_placed(job, attempt, false, 0);
		tell_begun(job, attempt, 1);
		tell_saved(job, attempt, 1);
		tell_exited(job, attempt, 1);
		tell_ended(job);
		for (uint32_t i = first; i < count; i++) {
			history[i].event.seq = f.seq + 1;
			apply(&f, &history[i].event);
		}
		count = 0;
		if (job > 100)
			forget(&f, job - 100);
		if (job == 1000)
			after_1000 = facts_bytes(&f);
	}
	facts_verify(&f);
	assert_true(after_1000 > 0);
	assert_in_range(facts_bytes(&f), 1, after_1000 + 8 * TABLE_CHUNK_BYTES);
	facts_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whichever_record_is_lost_the_other_jobs_are_as_they_were),
		cmocka_unit_test(numbers_of_lost_records_are_not_given_again),
		cmocka_unit_test(a_gap_is_no_wider_than_the_missing_records_can_have_made_it),
		cmocka_unit_test(a_gpu_that_two_hold_is_the_newer_ones),
		cmocka_unit_test(an_attempt_whose_gpus_are_another_ones_has_ended),
		cmocka_unit_test(a_run_of_lost_records_is_told_in_ranges),
		cmocka_unit_test(a_waiting_job_whose_dependency_is_lost_is_held),
		cmocka_unit_test(a_reason_is_kept_whole_and_its_row_is_used_again),
		cmocka_unit_test(a_forgotten_job_leaves_nothing_and_its_number_is_not_given_again),
		cmocka_unit_test(a_job_may_be_forgotten_when_its_time_is_over_and_its_key_is_void),
		cmocka_unit_test(memory_follows_the_jobs_that_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
