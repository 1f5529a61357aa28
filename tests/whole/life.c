/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's life: it is started as daemon_run does, its threads' passes are called in an order that the seed gives, and it
 * dies between two of them or in the middle of one. Then its memory is thrown away, and the next one finds the disk as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/code.h"
#include "store/io.h"
#include "whole.h"

enum {
	RESERVE_BYTES = 1 << 20,
	WAL_BYTES = 64 << 10,
	SEGMENT_BYTES = 4 << 20,
	SNAPSHOT_RECORDS = 400,
	AT_ONCE_MAX = 20000, /* passes while the clock stands */
	START_AGAIN_MS = 5000
};

/* --- the disk -------------------------------------------------------------------------------------------------------------- */

/* Before each change of the disk. A process that dies here has done all that was before, and nothing that comes. */
static void before_change(void *context, enum io_call call, const char *path)
{
	struct whole *w = context;

	(void)path;
	(void)call;
	if (!w->die_at || --w->die_at)
		return;
	w->dead = true;
	w->image = w->die_of_power ? io_disk_crash(w->disk, w->die_how, w->steps)
				   : io_disk_copy(w->disk);
}

static void disk_take(struct whole *w, struct io_disk *disk)
{
	if (w->disk) {
		io_sqlite_vfs_drop(io_disk_io(w->disk));
		io_disk_destroy(w->disk);
	}
	w->disk = disk;
	io_disk_watch(disk, w, before_change);
	if (w->full_until_ms)
		io_disk_capacity(disk, io_disk_used(disk) + 4096);
}

/* --- the end of a process ------------------------------------------------------------------------------------------------ */

static void commands_drop(struct message *messages)
{
	while (messages) {
		struct message *message = messages;

		messages = message->next;
		if (message->kind == CORE_COMMAND) {
			struct command_message *command = (struct command_message *)message;

			buf_deinit(&command->sealed);
			command_destroy(command->command);
		} else {
			free(message);
		}
	}
}

static void batches_drop(struct daemon *d)
{
	struct message *messages = mailbox_take(&d->journal_box, SIZE_MAX, 0);

	while (messages) {
		struct batch *batch = (struct batch *)messages;

		messages = messages->next;
		for (uint32_t i = 0; i < batch->reply_count; i++)
			command_destroy(batch->replies[i].command);
		publication_release(batch->publication);
		batch_destroy(batch);
	}
}

static void effects_drop(struct whole *w)
{
	struct daemon *d = w->daemon;

	atomic_store(&d->ending, true);
	while (mailbox_size(&d->engine_box))
		(void)effects_pass(d, &w->effects, false);
	w->effects.at_ms = 0;
	while (w->effects.first)
		(void)effects_pass(d, &w->effects, false);
	while (d->resume && resume_waiting(d))
		(void)resume_pass(d, 0);
	free(d->resume);
}

static bool work_waits(struct daemon *d)
{
	return mailbox_size(&d->work_box[WORK_QUICK]) || mailbox_size(&d->work_box[WORK_SLOW]);
}

static void work_once(struct daemon *d)
{
	(void)work_pass(d, mailbox_size(&d->work_box[WORK_QUICK]) ? WORK_QUICK : WORK_SLOW, 0);
}

static void memory_drop(struct whole *w)
{
	struct daemon *d = w->daemon;

	do { /* as when its sockets close; who is led through the history hears of it */
		transport_close();
		while (work_waits(d))
			work_once(d);
		transport_close();
	} while (work_waits(d));
	commands_drop(w->core.messages);
	commands_drop(mailbox_take(&d->core_box, SIZE_MAX, 0));
	batches_drop(d);
	effects_drop(w);
	commands_drop(mailbox_take(&d->core_box, SIZE_MAX, 0));
	publication_release(d->published);
	if (d->view) { /* else its facts were never read */
		view_destroy(d->view);
		facts_deinit(&d->facts);
	}
	api_destroy(d->api);
	code_store_destroy(d->backend.code);
	if (d->engine)
		d->engine_ops->close(d->engine);
	journal_close(d->reader);
	journal_close(d->journal);
	seal_key_close(d->key);
	arena_deinit(&d->step);
	brake_deinit(&d->brake);
}

/* Nothing of it is left but what the disk keeps. */
static void process_end(struct whole *w, struct io_disk *image)
{
	w->dead = true;
	w->die_at = 0;
	w->die_passes = 0;
	if (w->daemon) {
		memory_drop(w);
		free(w->daemon);
		transport_drop(w);
	}
	if (w->daemon && !w->died_ms)
		w->died_ms = w->now_ms;
	w->daemon = NULL;
	w->core = (struct core_hand){ 0 };
	w->effects = (struct effects_hand){ 0 };
	memset(w->stalled_ms, 0, sizeof(w->stalled_ms));
	disk_take(w, image);
	w->dead = false;
	w->image = NULL;
}

static void machine_off(struct whole *w)
{
	w->boots++;
	cluster_power(w->cluster);
}

static void finish_death(struct whole *w)
{
	bool power = w->die_of_power;

	whole_trace(w, "the daemon dies in the middle of its work%s", power ? ": power" : "");
	process_end(w, w->image);
	w->up_ms = w->now_ms + 200 + below(&w->random, one_in(&w->random, 4) ? 300000 : 5000);
	if (power)
		machine_off(w);
}

void life_kill(struct whole *w, bool power, uint32_t how, uint64_t seed)
{
	if (!w->daemon)
		return;
	whole_trace(w, "the daemon dies%s", power ? ": power" : "");
	process_end(w, power ? io_disk_crash(w->disk, (enum io_crash)how, seed)
			     : io_disk_copy(w->disk));
	w->up_ms = w->now_ms + 200 + below(&w->random, one_in(&w->random, 4) ? 300000 : 5000);
	if (power)
		machine_off(w);
}

/* Asked to end: what has come is done, and the state is written down. */
void life_stop(struct whole *w, uint64_t seed)
{
	memset(w->stalled_ms, 0, sizeof(w->stalled_ms));
	(void)life_settle(w);
	if (w->daemon && !atomic_load(&w->daemon->faulted))
		snapshot_take(w->daemon);
	life_kill(w, false, 0, seed);
}

void life_kill_at(struct whole *w, uint64_t k, bool power, enum io_crash how)
{
	w->die_at = k;
	w->die_of_power = power;
	w->die_how = how;
}

/* --- the beginning ---------------------------------------------------------------------------------------------------------- */

/* In the order of daemon_run. */
static int start(struct whole *w, struct err *err)
{
	struct daemon *d = w->daemon;

	if (recover(d, true, err) < 0 ||
	    seal_key_open_io(FOLDER, w->disk ? io_disk_io(w->disk) : NULL, d->facts.seq == 0,
			     &d->key, err) < 0 ||
	    start_events(d, err) < 0)
		return -1;
	serve_open(d);
	d->backend.history = listeners_history;
	d->backend.one_thread = true;
	d->engine_ops = &cluster_engine;
	if (effects_open_engine(d, err) < 0)
		return -1;
	d->api = api_create(&d->backend);
	resume_open(d);
	effects_adopt(d);
	return 0;
}

void life_start(struct whole *w)
{
	struct err err = { 0 };
	struct daemon *d = calloc(1, sizeof(*d));

	CHECK(d);
	if (w->damage)
		damage_try(w);
	w->daemon = d;
	daemon_init(d, FOLDER);
	d->root = true;
	d->found = cluster_nodes();
	d->snapshot_every = SNAPSHOT_RECORDS;
	d->store = (struct journal_options){ .io = io_disk_io(w->disk),
					     .segment_bytes = SEGMENT_BYTES,
					     .reserve_bytes = RESERVE_BYTES,
					     .wal_bytes = WAL_BYTES,
					     .inline_checkpoint = true };
	if (start(w, &err) < 0 && !w->dead) {
		whole_trace(w, "the daemon does not start: %s", err.text);
		if (err.code == ERR_CORRUPT)
			whole_problem(w, "the daemon does not start: %s", err.text);
		process_end(w, io_disk_copy(w->disk));
		w->up_ms = w->now_ms + START_AGAIN_MS;
		return;
	}
	if (w->dead) {
		finish_death(w);
		return;
	}
	w->restarts++;
	w->boots_up = w->boots;
	whole_trace(w, "the daemon is up at record %lu", (unsigned long)d->facts.seq);
	if (d->damage.open)
		whole_problem(w, "after a restart %lu records can't be read",
			      (unsigned long)d->damage.open);
	promises_started(w);
}

void life_begin(struct whole *w)
{
	disk_take(w, io_disk_create());
	life_start(w);
}

void life_end(struct whole *w)
{
	process_end(w, io_disk_copy(w->disk));
	io_sqlite_vfs_drop(io_disk_io(w->disk));
	io_disk_destroy(w->disk);
	w->disk = NULL;
}

/* --- its threads ----------------------------------------------------------------------------------------------------------- */

static bool engine_has_work(const struct whole *w)
{
	struct daemon *d = w->daemon;

	if (mailbox_size(&d->engine_box) ||
	    (w->effects.first && w->effects.at_ms <= clock_boot_ms()))
		return true;
	return atomic_load(&d->faults.fault) && d->faults.look_ms <= clock_boot_ms();
}

static bool core_has_work(const struct whole *w)
{
	struct daemon *d = w->daemon;

	if (w->core.messages || mailbox_size(&d->core_box))
		return true;
	/* Reads its state back when the gate is empty; where that was in vain, after a pause. */
	if (atomic_load(&d->faulted))
		return atomic_load(&d->batches_done) == d->batches_sent &&
		       core_rebuild_wait_ms(d) == 0;
	return core_wait_ms(d) == 0;
}

static bool has_work(const struct whole *w, enum actor actor)
{
	struct daemon *d = w->daemon;

	switch (actor) {
	case ACTOR_CORE: return core_has_work(w);
	case ACTOR_GATE:
		return mailbox_size(&d->journal_box) ||
		       (atomic_load(&d->full) && !w->full_until_ms &&
			!atomic_load(
				&d->faulted)); /* looks for space when the state is read back */
	case ACTOR_ENGINE: return engine_has_work(w);
	case ACTOR_RESUME: return resume_waiting(d) > 0;
	case ACTOR_WORK: return work_waits(d);
	case ACTORS: break;
	}
	UNREACHABLE();
}

static void pass(struct whole *w, enum actor actor)
{
	struct daemon *d = w->daemon;
	bool faulted = atomic_load(&d->faulted);

	w->steps++;
	switch (actor) {
	case ACTOR_CORE: (void)core_pass(d, &w->core, 0); break;
	case ACTOR_GATE: (void)gate_pass(d, 0); break;
	case ACTOR_ENGINE: (void)effects_pass(d, &w->effects, false); break;
	case ACTOR_RESUME: (void)resume_pass(d, 0); break;
	case ACTOR_WORK: work_once(d); break;
	case ACTORS: break;
	}
	if (faulted && !atomic_load(&d->faulted) && !w->dead) {
		w->rebuilds++;
		promises_started(w);
	}
}

/* One pass of a thread that has something to do, by chance. False: none has. *ret_waits: one would, but stands still. */
static bool pass_any(struct whole *w, bool *ret_waits)
{
	enum actor ready[ACTORS];
	uint32_t count = 0;

	*ret_waits = false;
	for (uint32_t a = 0; a < ACTORS; a++) {
		if (!has_work(w, (enum actor)a))
			continue;
		if (w->stalled_ms[a] > w->now_ms)
			*ret_waits = true;
		else
			ready[count++] = (enum actor)a;
	}
	if (!count)
		return false;
	pass(w, ready[below(&w->random, count)]);
	return true;
}

bool life_settle(struct whole *w)
{
	bool waits = false;

	transport_run(w);
	while (w->daemon && !w->problem[0] && pass_any(w, &waits)) {
		if (w->dead) {
			finish_death(w);
			return false;
		}
		transport_run(w);
		promises_step(w, false);
		if (w->die_passes && !--w->die_passes) {
			life_kill(w, w->die_of_power, w->die_how, w->steps);
			return false;
		}
		if (++w->turns_at_once > AT_ONCE_MAX)
			whole_problem(w, "the daemon never comes to rest: %d passes at one instant",
				      AT_ONCE_MAX);
	}
	return w->daemon && !waits && !atomic_load(&w->daemon->faulted);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t life_next_ms(struct whole *w)
{
	struct daemon *d = w->daemon;
	int64_t next = NEVER, wait_ms, boot_off = w->now_ms - clock_boot_ms();

	if (!d)
		return w->up_ms;
	wait_ms = core_wait_ms(d);
	if (wait_ms >= 0)
		next = w->now_ms + (wait_ms > 0 ? wait_ms : 1);
	if (w->effects.first)
		next = earlier(next, w->effects.at_ms + boot_off);
	if (atomic_load(&d->faults.fault) && d->faults.look_ms)
		next = earlier(next, d->faults.look_ms + boot_off);
	for (int a = 0; a < ACTORS; a++)
		if (w->stalled_ms[a] > w->now_ms)
			next = earlier(next, w->stalled_ms[a]);
	return next;
}
