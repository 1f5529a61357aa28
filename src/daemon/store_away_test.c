/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of jobs while their bodies can't be read from the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/model/edit.h"
#include "daemon/state.h"

static struct daemon d;
static struct arena home;
static int body_ms;
static int body_code, body_calls, sent, told, started;
static char reason[128]; /* of the last checkpoint that was said to be void */
static char folder[64]; /* of the checkpoint */
static char engine; /* stands for one: nobody looks into it */

static int body_of(void *context, const struct facts *facts, struct job_id job, struct buf *ret,
		   struct err *err)
{
	(void)context;
	(void)facts;
	(void)job;
	body_calls++;
	if (body_ms) /* it is silent for so long */
		nanosleep(&(struct timespec){ .tv_sec = body_ms / 1000,
					      .tv_nsec = body_ms % 1000 * 1000000L },
			  NULL);
	if (body_code)
		return err_set(err, (enum err_code)body_code, "the store is away");
	buf_adds(ret,
		 "{\"env\":{},\"secrets\":{},\"argv\":[\"x\"],\"pod\":\"{}\",\"checkpoint_path\":");
	buf_add_json(ret, folder, strlen(folder));
	buf_addc(ret, '}');
	return 0;
}

static void send_of(void *context, struct command *command)
{
	(void)context;
	sent++;
	if (command->event.kind == EVENT_CHECKPOINT_VOID)
		snprintf(reason, sizeof(reason), "%s", command->event.checkpoint_void.reason);
	command_destroy(command);
}

static void own_of(struct engine *to, const struct engine_own *own)
{
	(void)to;
	(void)own;
	told++;
}

static int start_of(struct engine *to, const struct engine_start *start, struct err *err)
{
	(void)to;
	(void)start;
	(void)err;
	started++;
	return 0;
}

static const struct engine_pod_ops pod_ops = { .own = own_of };
static const struct engine_ops ops = { .pods = &pod_ops, .start = start_of };

static void happen(struct event event)
{
	event.seq = d.facts.seq + 1;
	apply(&d.facts, &event);
}

static void submit(int64_t id, const char *mask)
{
	struct event job = event_make(EVENT_JOB_SUBMITTED, 1, "t");

	job.job_submitted.job = id;
	job.job_submitted.name = "j";
	job.job_submitted.queue = "default";
	job.job_submitted.tasks_min = job.job_submitted.tasks_max = 1;
	job.job_submitted.gpus = 1;
	job.job_submitted.mask = mask;
	job.job_submitted.checkpoint = 1;
	happen(job);
}

static const char *step_path(void)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/step-1", folder);
	return path;
}

static int begin(void **state)
{
	struct event queue = event_make(EVENT_QUEUE_SET, 1, "t"),
		     node = event_make(EVENT_NODE_SET, 1, "t");

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/fairlead-store-XXXXXX");
	assert_non_null(mkdtemp(folder));
	daemon_init(&d, "/none/either");
	facts_init(&d.facts);
	arena_init(&home, 1 << 20);
	queue.queue_set.name = "default";
	queue.queue_set.limit_share = -1;
	happen(queue);
	node.node_set.name = "n0";
	node.node_set.gpus = 4;
	happen(node);
	d.backend.body = body_of;
	d.backend.send = send_of;
	d.engine_ops = &ops;
	d.engine = (struct engine *)&engine;
	body_code = body_calls = body_ms = sent = told = started = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	facts_deinit(&d.facts);
	arena_deinit(&home);
	(void)unlink(step_path());
	return rmdir(folder);
}

static void a_mask_is_not_made_for_a_job_whose_end_was_heard_meanwhile(void **state)
{
	struct effect came = { .attempt = 1 };
	struct event ended = event_make(EVENT_JOB_ENDED, 2, "t");

	(void)state;
	submit(1, "own:1");
	body_code = ERR_UNAVAILABLE;
	assert_true(own_came(&d, &d.facts, &came));
	came.given_again = true;
	body_code = 0;
	assert_false(own_came(&d, &d.facts, &came));
	assert_int_equal(told, 1);
	ended.job_ended.job = 1;
	ended.job_ended.state = JOB_CANCELLED;
	ended.job_ended.rank = -1;
	happen(ended);
	assert_false(own_came(&d, &d.facts, &came));
	assert_int_equal(told, 1);
}

static void an_end_waits_for_no_store(void **state)
{
	(void)state;
	submit(1, "own:1");
	submit(2, "own:2");
	submit(3, "own:3");
	body_code = ERR_UNAVAILABLE; /* each such answer may take ten seconds */
	atomic_store(&d.ending, true);
	pods_adopt(&d, &d.facts);
	assert_true(body_calls <= 1);
}

static void place_with_a_checkpoint(void)
{
	static const int64_t nodes[] = { 1 }, masks[] = { 1 };
	struct event placed = event_make(EVENT_ATTEMPT_PLACED, 2, "t"),
		     saved = event_make(EVENT_CHECKPOINT_SAVED, 3, "t");

	submit(1, "");
	placed.attempt_placed.job = placed.attempt_placed.attempt = 1;
	placed.attempt_placed.nodes = nodes;
	placed.attempt_placed.masks = masks;
	placed.attempt_placed.nodes_count = placed.attempt_placed.masks_count = 1;
	happen(placed);
	saved.checkpoint_saved.job = saved.checkpoint_saved.attempt = 1;
	saved.checkpoint_saved.report = saved.checkpoint_saved.number = 1;
	saved.checkpoint_saved.path = "step-1"; /* in the folder that the body names */
	saved.checkpoint_saved.bytes = 1;
	happen(saved);
	attempt_edit(&d.facts, (struct attempt_id){ 1 })->resume_number =
		1; /* as its next one would */
	d.published = publication_create(&d);
}

static void place_another(void)
{
	static const int64_t nodes[] = { 1 }, masks[] = { 2 };
	struct event placed = event_make(EVENT_ATTEMPT_PLACED, 3, "t");

	submit(2, "");
	placed.attempt_placed.job = placed.attempt_placed.attempt = 2;
	placed.attempt_placed.nodes = nodes;
	placed.attempt_placed.masks = masks;
	placed.attempt_placed.nodes_count = placed.attempt_placed.masks_count = 1;
	happen(placed);
	publication_release(d.published);
	d.published = publication_create(&d);
}

/* One try of a silent store takes long, and starts wait; a second one does not make it longer, nor do those that are given again. */
static void of_many_starts_one_at_a_time_waits_for_a_silent_store(void **state)
{
	const struct resume_from beginning = { 0 };
	struct effects_hand again = { 0 };

	(void)state;
	place_with_a_checkpoint();
	place_another();
	body_code = ERR_UNAVAILABLE;
	body_ms = 1500;
	for (int i = 0; i < 20; i++)
		effects_start_from(&d, 1 + (uint64_t)i % 2, &beginning);
	while (mailbox_size(&d.engine_box))
		assert_true(effects_pass(&d, &again, false));
	assert_int_equal(body_calls, 1);
	assert_int_equal(started, 0);
	/* It answers: all of them are given again. */
	body_code = body_ms = 0;
	while (started < 20)
		assert_true(effects_pass(&d, &again, true));
	assert_null(again.first);
	publication_release(d.published);
}

#ifdef FAIRLEAD_FAILPOINTS
/* Of which attempt it is. */
static uint64_t message_drop(struct mailbox *box)
{
	struct effect *effect = (struct effect *)mailbox_take(box, 1, 0);
	uint64_t attempt;

	assert_non_null(effect);
	attempt = effect->attempt;
	free(effect->path);
	free(effect);
	return attempt;
}
#endif

static void a_checkpoint_whose_folder_can_not_be_read_is_not_void(void **state)
{
	struct effects_hand again = { 0 };
	struct message *message;

	(void)state;
	place_with_a_checkpoint();
	resume_open(&d);
	body_code = ERR_IO;
	resume_find(&d, 1);
	assert_true(resume_pass(&d, 0));
	assert_int_equal(sent, 0);
	/* It can be read again: it is looked for anew, and the job does not begin anew. */
	body_code = 0;
	assert_true(effects_pass(&d, &again, false));
	assert_int_equal(started, 0);
	assert_int_equal(resume_waiting(&d), 1);
	assert_true(resume_pass(&d, 0));
	assert_int_equal(sent, 1); /* now it is known to be missing */
	assert_true(effects_pass(&d, &again, false));
	assert_int_equal(started, 1);
	/* It never can: the job is held, and the attempt ends with the reason. */
	body_code = ERR_CORRUPT;
	resume_find(&d, 1);
	assert_true(resume_pass(&d, 0));
	assert_true(effects_pass(&d, &again, false));
	assert_int_equal(sent, 2);
	assert_int_equal(started, 1);
	message = mailbox_take(&d.core_box, 1, 0);
	assert_non_null(message);
	assert_non_null(strstr(((struct fact_message *)message)->fact.text, "the store is away"));
	free(message);
	publication_release(d.published);
	free(d.resume);
}

#ifdef FAIRLEAD_FAILPOINTS
/* The file server gives two errors and then no rights, and has it after that. Meanwhile nobody waits with it. */
static void a_checkpoint_that_a_file_server_can_not_show_now_is_looked_at_again(void **state)
{
	int file = open(step_path(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	uint32_t looks = 0;

	(void)state;
	assert_int_equal(write(file, "x", 1), 1);
	close(file);
	place_with_a_checkpoint();
	resume_open(&d);
	resume_find(&d, 1);
	assert_true(resume_pass(&d, 0));
	assert_int_equal(mailbox_size(&d.engine_box), 0);
	assert_true(resume_pass(&d, 0)); /* it is not due yet */
	for (; !mailbox_size(&d.engine_box) && looks < 1000; looks++)
		assert_true(resume_pass(&d, -1));
	assert_int_equal(mailbox_size(&d.engine_box), 1);
	assert_int_equal(sent, 0);
	message_drop(&d.engine_box);
	publication_release(d.published);
	free(d.resume);
}

/* The start of attempt 2, which has nothing to look at, does not wait; attempt 1 has ended by the time of its second look. */
static void whose_checkpoint_can_not_be_read_lies_aside_while_others_start(void **state)
{
	struct event stopped = event_make(EVENT_ATTEMPT_STOPPED, 4, "t");
	char text[AWAY_TEXT_MAX];

	(void)state;
	place_with_a_checkpoint();
	resume_open(&d);
	resume_find(&d, 1);
	assert_true(resume_pass(&d, 0));
	assert_int_equal(mailbox_size(&d.engine_box), 0);
	assert_true(away_say(&d.away, 1, true, text));
	assert_string_equal(
		text,
		"checkpoint 1 can't be read now (the job's account may not read it): it is looked at each second for 2 minutes; then it is void, and the one before is taken");
	assert_false(away_say(&d.away, 1, false, text));
	place_another();
	resume_find(&d, 2);
	assert_true(resume_pass(&d, 0));
	assert_int_equal(message_drop(&d.engine_box), 2);
	stopped.attempt_stopped.attempt = 1;
	happen(stopped);
	publication_release(d.published);
	d.published = publication_create(&d);
	while (!mailbox_size(&d.engine_box))
		assert_true(resume_pass(&d, -1));
	assert_int_equal(message_drop(&d.engine_box), 1);
	assert_int_equal(sent, 0); /* it was not looked at: there is no such file */
	publication_release(d.published);
	free(d.resume);
}

static void what_the_account_may_not_read_in_all_that_time_is_void(void **state)
{
	struct effects_hand again = { 0 };

	(void)state;
	place_with_a_checkpoint();
	resume_open(&d);
	resume_find(&d, 1);
	assert_true(resume_pass(&d, 0));
	assert_int_equal(sent, 1);
	assert_string_equal(reason, "the job's account may not read it");
	assert_true(effects_pass(&d, &again, false));
	assert_int_equal(started, 1); /* from the beginning */
	publication_release(d.published);
	free(d.resume);
}

static void fact_of_a_loss(void)
{
	struct message *message = mailbox_take(&d.core_box, 1, 0);
	const struct engine_fact *fact = &((struct fact_message *)message)->fact;

	assert_non_null(message);
	assert_int_equal(fact->kind, ENGINE_EXITED);
	assert_int_equal(fact->cause, ENGINE_CAUSE_LOST);
	assert_true(fact->never_ran);
	assert_non_null(strstr(fact->text, "checkpoint 1 can't be read"));
	free(message);
}

/* The folder in which it lies gives errors, too: the place is given back, the next one at once, and nothing is void. */
static void while_its_file_server_is_away_a_checkpoint_is_kept(void **state)
{
	struct effects_hand again = { 0 };
	char text[AWAY_TEXT_MAX];
	int file = open(step_path(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(write(file, "x", 1), 1);
	close(file);
	place_with_a_checkpoint();
	resume_open(&d);
	assert_false(away_say(&d.away, 1, true, text));
	for (int place = 0; place < 2; place++) {
		resume_find(&d, 1);
		assert_true(resume_pass(&d, 0));
		assert_true(away_say(&d.away, 1, true, text));
		assert_non_null(
			strstr(text, "checkpoint 1 can't be read now (the folder in which"));
		assert_true(effects_pass(&d, &again, false));
		fact_of_a_loss();
		assert_true(away_say(&d.away, 1, false, text));
		assert_non_null(strstr(text, "it is kept, and tried again"));
	}
	resume_find(&d, 1);
	assert_true(resume_pass(&d, 0));
	assert_true(effects_pass(&d, &again, false));
	assert_int_equal(started, 1);
	assert_int_equal(sent, 0);
	assert_false(away_say(&d.away, 1, true, text));
	publication_release(d.published);
	free(d.resume);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_mask_is_not_made_for_a_job_whose_end_was_heard_meanwhile, begin, end),
		cmocka_unit_test_setup_teardown(an_end_waits_for_no_store, begin, end),
		cmocka_unit_test_setup_teardown(
			a_checkpoint_whose_folder_can_not_be_read_is_not_void, begin, end),
		cmocka_unit_test_setup_teardown(
			of_many_starts_one_at_a_time_waits_for_a_silent_store, begin, end),
#ifdef FAIRLEAD_FAILPOINTS
		cmocka_unit_test_setup_teardown(
			a_checkpoint_that_a_file_server_can_not_show_now_is_looked_at_again, begin,
			end),
		cmocka_unit_test_setup_teardown(
			whose_checkpoint_can_not_be_read_lies_aside_while_others_start, begin, end),
		cmocka_unit_test_setup_teardown(
			what_the_account_may_not_read_in_all_that_time_is_void, begin, end),
		cmocka_unit_test_setup_teardown(while_its_file_server_is_away_a_checkpoint_is_kept,
						begin, end),
#endif
	};

	/* Its first look is that of the test before. */
	if (setenv("FAIRLEAD_FAILPOINT",
		   "checkpoint-look:error:2,checkpoint-look:error:3,checkpoint-forbidden:error:2,"
		   "checkpoint-forbidden:error:4,checkpoint-forbidden:error:5,resume-away-over:error:5,"
		   "checkpoint-look:error:8,checkpoint-look:error:9,checkpoint-above:error:3,checkpoint-above:error:4,"
		   "resume-away-over:error:6",
		   1) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
