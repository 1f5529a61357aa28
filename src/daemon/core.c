/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core thread: it alone owns the facts. A turn takes what has come, makes one batch of it and hands that to the
 * gate. Nothing of a turn is visible outside before its batch is durable:
 *
 *	commands, engine facts -> admit -> apply -> follow -> decide -> apply -> ... -> freeze -> batch -> gate
 *
 * When a commit has failed, memory is ahead of the disk. The gate has then refused everything it held; the core
 * throws its state away and reads it back from snapshot and journal, as after a crash.
 */
#include <unistd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/state.h"
#include "engine/failpoint.h"

enum { REBUILD_PAUSE_MS = 1000 };

static void append(struct daemon *d, struct batch *batch, struct event *event)
{
	event->seq = d->facts.seq + 1;
	if (event->time_ms < d->facts.now_ms)
		event->time_ms = d->facts.now_ms;
	batch_record(batch, event);
	apply(&d->facts, event);
	view_follow(d->view, &d->facts, event);
}

/* --- the brake ----------------------------------------------------------------------------------------- */

static void loop_say(struct daemon *d)
{
	pthread_mutex_lock(&d->problem_lock);
	snprintf(d->loop, sizeof(d->loop), "%s", d->brake.text);
	pthread_mutex_unlock(&d->problem_lock);
}

static void loop_released(struct daemon *d, bool was, const char *why)
{
	if (!was)
		return;
	loop_say(d);
	if (d->loop_said)
		log_line(LOG_WARN, "deciding goes on without pauses: %s", why);
	d->loop_said = false;
}

static void loop_note(struct daemon *d, const struct decisions *made)
{
	if (!brake_note(&d->brake, made->events, made->count, clock_boot_ms()))
		return;
	atomic_fetch_add(&d->loops_braked, 1);
	loop_say(d);
	d->loop_said = !d->loop_said_ms || clock_boot_ms() - d->loop_said_ms > BRAKE_WINDOW_MS;
	if (!d->loop_said)
		return;
	d->loop_said_ms = clock_boot_ms();
	log_line(LOG_ERROR, "%s", d->brake.text);
}

#ifdef FAIRLEAD_FAILPOINTS
/* A defect for tests: while there is one job, its reservation is given up again and again. */
static void loop_plant(struct daemon *d, struct decisions *made)
{
	d->loops = d->loops || (d->facts.jobs.count == 1 && FAILPOINT("core-loop"));
	if (!d->loops || made->count || d->facts.jobs.count != 1)
		return;
	made->events = arena_new(&d->step, struct event);
	made->events[0] = event_make(EVENT_RESERVATION_DROPPED, d->facts.now_ms, "fairlead");
	made->events[0].reservation_dropped.job = 1;
	made->count = 1;
}
#endif

/* What comes from outside. That time has passed, as the core asked to be told, is no news. */
void core_append(struct daemon *d, struct batch *batch, struct event *event)
{
	if (event->kind != EVENT_CLOCK_TICKED)
		loop_released(d, brake_happened(&d->brake), "something has happened");
	event->time_ms = event_clock_read(&d->clock, daemon_wall_ms(), clock_boot_ms());
	append(d, batch, event);
}

int core_admit_own(struct daemon *d, struct batch *batch, struct event *event, struct err *err)
{
	int result = core_admit(&d->facts, d->view, event, &batch->arena, NULL, err);
	if (result == 0)
		core_append(d, batch, event);
	return result < 0 ? result : 0;
}

/* Decisions follow a record that names the state they come from, and are applied in their order. They have the time of that
 * state: deadlines that they name count from it. */
static void append_decisions(struct daemon *d, struct batch *batch, const struct decisions *made)
{
	struct event decided = event_make(EVENT_DECIDED, d->facts.now_ms, "fairlead");
	decided.decided.after_seq = (int64_t)d->facts.seq;
	decided.decided.build = d->build;
	decided.decided.policy = core_policy_name;
	append(d, batch, &decided);
	for (uint32_t i = 0; i < made->count; i++)
		append(d, batch, &made->events[i]);
	batch->decisions += made->count;
	batch->essential = true;
}

void core_decide(struct daemon *d, struct batch *batch, int64_t began_ns)
{
	if (brake_is_over(&d->brake, clock_boot_ms()))
		loop_released(d, brake_release(&d->brake), "nothing was decided for a minute");
	d->again = brake_left_ms(&d->brake, clock_boot_ms()) > 0;
	while (!d->again) {
		struct decisions made = { 0 };
		arena_reset(&d->step);
		decide(&d->facts, d->view, DECIDE_BUDGET, &d->step, &made);
#ifdef FAIRLEAD_FAILPOINTS
		loop_plant(d, &made);
#endif
		d->wake_ms = made.wake_ms;
		if (made.count > 0)
			append_decisions(d, batch, &made);
		if (made.count == 0 && !made.more) {
			loop_released(d, brake_rest(&d->brake), "something has happened");
			return;
		}
		loop_note(d, &made);
		if (brake_left_ms(&d->brake, clock_boot_ms()) > 0 ||
		    clock_mono_ns() - began_ns > (int64_t)DECIDE_UNTIL_US * 1000) {
			d->again = true;
			return;
		}
	}
}

struct publication *publication_create(struct daemon *d)
{
	struct publication *publication = calloc(1, sizeof(*publication));
	CHECK(publication);
	facts_freeze(&d->facts, &publication->frozen.facts);
	publication->frozen.references = 1;
	publication->seq = d->facts.seq;
	publication->clock = d->clock;
	return publication;
}

void core_publish_into(struct daemon *d, struct batch *batch)
{
	batch->publication = publication_create(d);
}

/* --- what came in ------------------------------------------------------------------------------------ */

/* What makes work end, keeps it from a torn checkpoint or from being started is taken on a full disk too. */
static bool is_essential(enum event_kind kind)
{
	return kind == EVENT_JOB_CANCEL_ASKED || kind == EVENT_CHECKPOINT_VOID ||
	       kind == EVENT_NODE_STATE;
}

static bool refused_by_state(struct daemon *d, enum event_kind kind, struct command_reply *reply)
{
	if (!atomic_load(&d->full) || is_essential(kind))
		return false;
	pthread_mutex_lock(&d->problem_lock);
	err_set(&reply->err, ERR_UNAVAILABLE, "%s", d->problem);
	pthread_mutex_unlock(&d->problem_lock);
	return true;
}

/* How many bytes of a body it brought. */
static size_t take_command(struct daemon *d, struct batch *batch, struct command_message *message)
{
	const size_t bytes = message->sealed.size;
	struct command *command = message->command;
	struct command_reply reply = { 0 };
	if (command->applies && !command->applies(command, &d->facts)) {
		reply.already = true;
	} else if (!refused_by_state(d, command->event.kind, &reply)) {
		struct err too_many = { 0 };
		struct masks_made made;
		const int masked =
			masks_for_submission(d, batch, &command->event, &made, &too_many);
		int result = core_admit(&d->facts, d->view, &command->event, command->arena,
					&reply.job, &reply.err);
		if (result != CORE_ALREADY && masked < 0) {
			reply.err = too_many;
			result = masked;
		}
		if (result == CORE_ALREADY) {
			reply.already = true;
		} else if (result == 0) {
			reply.err.code = ERR_NONE;
			core_append(d, batch, &command->event);
			batch->essential |= is_essential(command->event.kind);
			reply.seq = d->facts.seq;
			if (command->event.kind == EVENT_JOB_SUBMITTED)
				reply.job = (uint32_t)command->event.job_submitted.job;
			if (message->sealed.size > 0)
				batch_blob(batch, command, &message->blob, &message->sealed);
		}
		if (result != 0)
			masks_unmake(d, batch, &made);
	}
	buf_deinit(&message->sealed);
	batch_reply(batch, command, &reply);
	return bytes;
}

static void take_fact(struct daemon *d, struct batch *batch, struct fact_message *message)
{
	struct event event;
	if (fact_event(&d->facts, message, &event)) {
		core_append(d, batch, &event);
		batch->essential = true;
	}
	free(message);
}

static void take_adopted(struct daemon *d, struct message *message)
{
	CHECK(d->adopting);
	d->adopting--;
	free(message);
}

/* Takes from the list for as long as a turn may, at least one. True when asked to stop. */
static bool take_messages(struct daemon *d, struct batch *batch, struct message **messages,
			  int64_t began_ns)
{
	bool stop = false;
	size_t bytes = 0;
	for (uint32_t taken = 0; *messages; taken++) {
		struct message *message = *messages;
		if (taken > 0 &&
		    (clock_mono_ns() - began_ns > (int64_t)TAKE_US * 1000 || bytes > TURN_BYTES))
			break;
		*messages = message->next;
		switch ((enum core_message)message->kind) {
		case CORE_COMMAND:
			bytes += take_command(d, batch, (struct command_message *)message);
			break;
		case CORE_FACT: take_fact(d, batch, (struct fact_message *)message); break;
		case CORE_NODE: take_node(d, batch, (struct node_message *)message); break;
		case CORE_NODES: take_nodes(d, batch, (struct nodes_message *)message); break;
		case CORE_MASK: take_mask(d, batch, (struct mask_message *)message); break;
		case CORE_MASKS: take_masks(d, batch, (struct mask_message *)message); break;
		case CORE_ADOPTED: take_adopted(d, message); break;
		case CORE_STOP: stop = true; break;
		}
	}
	return stop;
}

/* --- the turn ------------------------------------------------------------------------------------------- */

static void tick(struct daemon *d, struct batch *batch)
{
	int64_t now = event_clock_read(&d->clock, daemon_wall_ms(), clock_boot_ms());
	if (d->wake_ms == 0 || now < d->wake_ms || d->adopting)
		return;
	struct event ticked = event_make(EVENT_CLOCK_TICKED, now, "fairlead");
	core_append(d, batch, &ticked);
	batch->essential = true;
}

static void hand_over(struct daemon *d, struct batch *batch)
{
	if (batch->record_count == 0 && batch->reply_count == 0) {
		batch_destroy(batch);
		return;
	}
	if (batch->record_count > 0)
		core_publish_into(d, batch);
	d->batches_sent++;
	mailbox_send(&d->journal_box, &batch->message);
}

static void note_turn(struct daemon *d, int64_t began_ns, uint32_t decisions)
{
	int64_t took_us = (clock_mono_ns() - began_ns) / 1000;
	atomic_fetch_add(&d->turns, 1);
	atomic_fetch_add(&d->decisions, decisions);
	if (took_us > atomic_load(&d->longest_turn_us))
		atomic_store(&d->longest_turn_us, took_us);
	atomic_store(&d->event_now_ms, d->facts.now_ms);
}

/* When the journal was read back after a failed commit, records were found damaged. They gave numbers to jobs that somebody
 * was told of, and to runs that the engine may still hold: none of them is given again. What a start of the daemon
 * would make anew is made anew, before anybody sees a state without it: it may be the account of whoever asks. */
static int mend_lost(struct daemon *d, struct err *err)
{
	struct batch *batch;
	int result;

	if (!d->facts.lost_jobs && !d->facts.lost_attempts)
		return 0;
	batch = batch_create();
	batch->essential = true;
	result = start_state(d, batch, err);
	if (result >= 0)
		result = gate_write(d, batch, err);
	batch_destroy(batch);
	return result;
}

static void forget_state(struct daemon *d)
{
	view_destroy(d->view);
	d->view = NULL;
	facts_deinit(&d->facts);
	journal_close(d->journal);
	d->journal = NULL;
}

/*
 * From nothing: a connection that another thread keeps would keep what the failed one believed of the files, locks and the index
 * of the log. So those who read the journal in files let go of it, and wait.
 */
static void readers_stop(struct daemon *d)
{
	pthread_mutex_lock(&d->feed_lock);
	pthread_mutex_lock(&d->reader_lock);
	journal_close(d->feed_journal);
	journal_close(d->reader);
	d->feed_journal = d->reader = NULL;
}

static void readers_go_on(struct daemon *d)
{
	pthread_mutex_unlock(&d->reader_lock);
	pthread_mutex_unlock(&d->feed_lock);
}

static int recover_anew(struct daemon *d, struct err *err)
{
	int result;

	if (d->in_database)
		return recover(d, false, err);
	readers_stop(d);
	result = recover(d, false, err);
	readers_go_on(d);
	return result;
}

static int read_back(struct daemon *d, struct err *err)
{
	if (recover_anew(d, err) < 0)
		return -1;
	if (mend_lost(d, err) < 0) {
		forget_state(d);
		return -1;
	}
	return 0;
}

static bool is_taken_over(const struct daemon *d)
{
	struct journal_state state = { 0 };

	if (d->journal)
		journal_state(d->journal, &state);
	return state.taken_over;
}

/* Opening the journal again would take it back, and the two would go on so: the one that was there first goes. */
static void leave(struct daemon *d, const char *why)
{
	if (d->leaves)
		return;
	d->leaves = true;
	log_line(LOG_ERROR, "this daemon stops, running jobs go on: %s", why);
	if (d->lease)
		_exit(EXIT_FAILURE); /* one of several: it is started again, and stands by */
	(void)kill(getpid(), SIGTERM);
}

/* After a failed commit: the gate has emptied itself; state is read back as after a crash. */
static void rebuild(struct daemon *d)
{
	struct err err = { 0 };
	d->rebuild_ms = clock_boot_ms();
	if (d->leaves || is_taken_over(d)) {
		pthread_mutex_lock(&d->problem_lock);
		snprintf(err.text, sizeof(err.text), "%s", d->problem);
		pthread_mutex_unlock(&d->problem_lock);
		leave(d, err.text);
		return;
	}
	if (!d->unreadable)
		log_line(LOG_ERROR, "a commit failed; state is being read back from the journal");
	forget_state(d);
	if (read_back(d, &err) < 0) {
		if (err.code == ERR_CONFLICT && d->epoch)
			leave(d, err.text);
		if (!d->unreadable)
			log_line(
				LOG_ERROR,
				"the journal can't be read back, which is tried again each second: %s",
				err.text);
		d->unreadable = true;
		daemon_problem(d, err.text);
		facts_init(&d->facts);
		d->view = view_create(&d->facts);
		return;
	}
	d->unreadable = false;
	daemon_problem(d, "");
	atomic_store(&d->full, false); /* the next commit says so again */
	gate_publish_rebuilt(d);
	d->rebuilt_seq = d->facts.seq;
	atomic_store(&d->faulted, false);
	effects_adopt_anew(d);
}

/* The first time at once. Where that was in vain, because the disk has no room for a single record, say, after a pause. */
int64_t core_rebuild_wait_ms(struct daemon *d)
{
	if (!d->unreadable && d->durable_seq > d->rebuilt_seq)
		return 0;
	int64_t left = d->rebuild_ms + REBUILD_PAUSE_MS - clock_boot_ms();
	return left > 0 ? left : 0;
}

static void refuse_all(struct daemon *d, struct message *messages)
{
	while (messages) {
		struct message *message = messages;
		messages = message->next;
		if (message->kind == CORE_COMMAND) {
			struct command_message *command = (struct command_message *)message;
			struct command_reply reply = { 0 };
			err_set(&reply.err, ERR_UNAVAILABLE,
				"the journal can't be written at present: nothing new is taken; running work goes on");
			buf_deinit(&command->sealed);
			command->command->done(command->command->context, &reply);
			command_destroy(command->command);
		} else if (message->kind == CORE_FACT || message->kind == CORE_NODE) {
			free(message); /* a new engine tells it again */
		} else if (message->kind == CORE_NODES) {
			nodes_message_destroy((struct nodes_message *)message);
		} else if (message->kind == CORE_MASK || message->kind == CORE_MASKS) {
			mask_message_destroy((struct mask_message *)message);
		} else if (message->kind == CORE_ADOPTED) {
			take_adopted(d, message);
		}
	}
}

static int64_t wait_for(struct daemon *d)
{
	if (d->adopting)
		return -1; /* a message ends it */
	if (d->again)
		return brake_left_ms(&d->brake, clock_boot_ms());
	if (d->wake_ms == 0)
		return -1;
	int64_t left = d->wake_ms - event_clock_read(&d->clock, daemon_wall_ms(), clock_boot_ms());
	return left < 0 ? 0 : left > 3600000 ? 3600000 : left;
}

static bool holds_stop(const struct message *messages)
{
	for (const struct message *m = messages; m; m = m->next)
		if (m->kind == CORE_STOP)
			return true;
	return false;
}

/* One turn over as much of the list as its time allows. True when asked to stop. */
static bool turn(struct daemon *d, struct message **messages)
{
	int64_t began = clock_mono_ns();
	struct batch *batch = batch_create();
	bool stop = take_messages(d, batch, messages, began);
	tick(d, batch);
	(void)FAILPOINT("core-before-decide");
	if (d->adopting)
		d->again = true; /* as soon as the engine has told what it found */
	else if (batch->record_count > 0 || d->again)
		core_decide(d, batch, began);
	uint32_t decisions = batch->decisions;
	hand_over(d, batch);
	note_turn(d, began, decisions);
	return stop;
}

int64_t core_wait_ms(struct daemon *d)
{
	if (!atomic_load(&d->faulted))
		return wait_for(d);
	int64_t left = core_rebuild_wait_ms(d);
	return left > 0 ? left
			: REBUILD_PAUSE_MS; /* or the gate's word that it has emptied itself */
}

/* Many turns in a row, each with a commit of its own, cost more than the waiting of a few messages: until when those that can wait do. */
static int64_t quiet_until_ns(const struct core_hand *hand)
{
	int64_t last_ns = hand->began_ns[(hand->next + WAVE_TURNS - 1) % WAVE_TURNS],
		oldest_ns = hand->began_ns[hand->next];

	if (!oldest_ns || last_ns - oldest_ns > WAVE_LOAD_MS * INT64_C(1000000))
		return 0;
	return last_ns + WAVE_MS * INT64_C(1000000);
}

static void hand_note(struct core_hand *hand, int64_t began_ns)
{
	hand->began_ns[hand->next] = began_ns;
	hand->next = (hand->next + 1) % WAVE_TURNS;
}

bool core_pass(struct daemon *d, struct core_hand *hand, int64_t wait_ms)
{
	if (!hand->messages)
		hand->messages =
			mailbox_gather(&d->core_box, TURN_MESSAGES, wait_ms, quiet_until_ns(hand));
	if (!atomic_load(&d->faulted)) {
		if (hand->messages)
			hand_note(hand, clock_mono_ns());
		hand->stop |= turn(d, &hand->messages);
		return !hand->stop || hand->messages;
	}
	hand->stop |= holds_stop(hand->messages);
	refuse_all(d, hand->messages);
	hand->messages = NULL;
	if (!hand->stop && atomic_load(&d->batches_done) == d->batches_sent &&
	    core_rebuild_wait_ms(d) == 0)
		rebuild(d);
	return !hand->stop;
}

static void *core_main(void *argument)
{
	struct daemon *d = argument;
	struct core_hand hand = { 0 };
	while (core_pass(d, &hand, core_wait_ms(d)))
		continue;
	return NULL;
}

void core_start(struct daemon *d)
{
	thread_start(&d->core_thread, core_main, d);
}

void core_join(struct daemon *d)
{
	struct message stop = { .kind = CORE_STOP };
	mailbox_send(&d->core_box, &stop);
	pthread_join(d->core_thread, NULL);
}
