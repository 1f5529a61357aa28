/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the data folder is damaged: found when the state is read, and by the verification that follows each start.
 *
 *	start		segments' headers, ranges and last hashes; snapshots; records behind the newest snapshot; the key
 *	verification	every record against the hash chain, every body against its digest
 *
 * Each finding is one line of the log. /healthz is degraded while one of them is not accepted; `fairlead up --accept-loss` accepts all that
 * its run finds.
 */
#include <inttypes.h>
#include <linux/ioprio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/wait.h"
#include "daemon/state.h"
#include "store/snapshot.h"

enum {
	VERIFY_RECORDS = 256, /* read at once */
	VERIFY_SHARE = 9, /* so many times as long as it reads, the verification pauses */
	VERIFY_PAUSE_MS = 2, /* and at least so long */
	VERIFY_AGAIN_MS = 7 * 24 * 3600 * 1000,
	SHOWN = 2
};

/* --- what is known ------------------------------------------------------------------------------------------------ */

/* The lock is held. */
static void describe(struct daemon *d)
{
	struct damage_state *damage = &d->damage;
	AUTO_BUF text = BUF_INIT;
	uint64_t open = 0;

	for (size_t i = 0; i < damage->losses.count; i++) {
		const struct loss *loss = &damage->losses.items[i];

		if (losses_accepted(loss, &damage->accepted))
			continue;
		if (open && open < SHOWN)
			buf_adds(&text, "; ");
		if (open++ < SHOWN)
			loss_text(loss, &text);
	}
	if (open > SHOWN)
		buf_addf(&text, "; and %" PRIu64 " more, which are in daemon.log", open - SHOWN);
	snprintf(damage->text, sizeof(damage->text), "%s", buf_text(&text));
	damage->open = open;
}

/* The lock is held. */
static void say(const struct loss *loss, bool accepted)
{
	AUTO_BUF text = BUF_INIT;

	loss_text(loss, &text);
	log_line(accepted ? LOG_WARN : LOG_ERROR, "%s: %s",
		 accepted ? "lost, which was accepted" : "damage", buf_text(&text));
}

/* The lock is held. */
static void accept_all(struct daemon *d)
{
	struct damage_state *damage = &d->damage;
	struct err err = { 0 };

	if (!damage->accepts || !damage->open)
		return;
	if (accepted_save(daemon_io(d), d->folder, &damage->accepted, &damage->losses, &err) < 0)
		log_line(LOG_ERROR, "the loss can't be noted as accepted: %s", err.text);
	else
		log_line(LOG_WARN, "%" PRIu64 " finding%s accepted with --accept-loss",
			 damage->open, damage->open == 1 ? " is" : "s are");
	describe(d);
}

void damage_note(struct daemon *d, const struct losses *found)
{
	struct damage_state *damage = &d->damage;

	pthread_mutex_lock(&damage->lock);
	for (size_t i = 0; i < found->count; i++) {
		const struct loss *loss = &found->items[i];

		if (losses_accepted(loss, &damage->losses))
			continue; /* known, perhaps in other words */
		say(loss, losses_accepted(loss, &damage->accepted));
		losses_add(&damage->losses, loss->first, loss->last, loss->what);
	}
	describe(d);
	accept_all(d);
	pthread_mutex_unlock(&damage->lock);
}

void damage_accepts_no_more(struct daemon *d)
{
	pthread_mutex_lock(&d->damage.lock);
	d->damage.accepts = false;
	pthread_mutex_unlock(&d->damage.lock);
}

void damage_known(struct daemon *d, const struct losses *accepted)
{
	pthread_mutex_lock(&d->damage.lock);
	for (size_t i = 0; i < accepted->count; i++)
		losses_add(&d->damage.accepted, accepted->items[i].first, accepted->items[i].last,
			   accepted->items[i].what);
	pthread_mutex_unlock(&d->damage.lock);
}

void damage_status(struct daemon *d, struct api_status *ret)
{
	struct damage_state *damage = &d->damage;

	pthread_mutex_lock(&damage->lock);
	ret->degraded = damage->open > 0;
	snprintf(ret->damage, sizeof(ret->damage), "%s", damage->text);
	ret->verified_seq = damage->verified_seq;
	ret->verified_ms = damage->verified_ms;
	pthread_mutex_unlock(&damage->lock);
}

void damage_init(struct daemon *d)
{
	pthread_mutex_init(&d->damage.lock, NULL);
	cond_init(&d->damage.wake);
}

/* --- verification ------------------------------------------------------------------------------------------------- */

struct verification {
	struct daemon *d;
	struct journal *journal;
	struct losses found;
	uint64_t next;
	int64_t busy_ns; /* since the last pause */
};

static int see_record(void *context, const struct record *record, const struct digest *hash)
{
	struct verification *v = context;

	(void)hash;
	v->next = record->seq + 1;
	return 0;
}

static void see_damage(void *context, uint64_t seq, const char *what)
{
	struct verification *v = context;

	losses_add(&v->found, seq, seq, what);
	if (seq >= v->next)
		v->next = seq + 1;
}

/* True when the daemon ends. */
static bool wait_ms(struct daemon *d, int64_t ms)
{
	const struct timespec until = wait_until(ms);
	bool ends;
	int late = 0;

	pthread_mutex_lock(&d->damage.lock);
	while (ms > 0 && !d->damage.ends && late == 0)
		late = pthread_cond_timedwait(&d->damage.wake, &d->damage.lock, &until);
	ends = d->damage.ends;
	pthread_mutex_unlock(&d->damage.lock);
	return ends;
}

static bool rest(struct verification *v, int64_t began_ns)
{
	int64_t ms = (clock_mono_ns() - began_ns) / 1000000 * VERIFY_SHARE;

	return wait_ms(v->d, ms > VERIFY_PAUSE_MS ? ms : VERIFY_PAUSE_MS);
}

static int between_bodies(void *context)
{
	struct verification *v = context;

	if (clock_mono_ns() - v->busy_ns < 5000000)
		return 0;
	bool ends = rest(v, v->busy_ns);
	v->busy_ns = clock_mono_ns();
	return ends;
}

static void verified(struct verification *v, bool whole)
{
	struct damage_state *damage = &v->d->damage;

	damage_note(v->d, &v->found);
	losses_deinit(&v->found);
	pthread_mutex_lock(&damage->lock);
	damage->verified_seq = v->next - 1;
	if (whole) {
		damage->verified_ms = clock_wall_ms();
		damage->accepts = false;
	}
	pthread_mutex_unlock(&damage->lock);
}

/* 0: to its end; 1: the daemon ends. */
static int verify_records(struct verification *v, uint64_t last, struct err *err)
{
	const struct journal_reader reader = { .context = v,
					       .take = see_record,
					       .damaged = see_damage };

	for (v->next = 1; v->next <= last;) {
		uint64_t from = v->next;
		int64_t began_ns = clock_mono_ns();
		int result = journal_read(v->journal, from, VERIFY_RECORDS, true, &reader, err);

		if (result < 0)
			return result;
		if (v->next == from)
			break;
		verified(v, false);
		if (rest(v, began_ns))
			return 1;
	}
	return 0;
}

static void see_snapshot(void *context, const char *name, const char *why)
{
	losses_add_snapshot(&((struct verification *)context)->found, name, why);
}

static int verify(struct verification *v, struct err *err)
{
	struct journal_options options = v->d->store;
	struct journal_state state;
	int result;

	options.folder = v->d->folder;
	options.read_only = true;
	options.loss = JOURNAL_LOSS_ACCEPT; /* what is missing is reported */
	if (journal_open(&options, &v->journal, err) < 0)
		return -1;
	pthread_mutex_lock(&v->d->publication_lock);
	uint64_t last = v->d->durable_seq;
	pthread_mutex_unlock(&v->d->publication_lock);
	journal_state(v->journal, &state);
	result = verify_records(v, last, err);
	v->busy_ns = clock_mono_ns();
	for (uint32_t i = 1; result == 0 && i <= state.segments; i++) {
		journal_check_bodies(v->journal, i, &v->found, between_bodies, v);
		result = wait_ms(v->d, 0);
	}
	journal_close(v->journal);
	v->journal = NULL;
	if (result == 0)
		snapshot_check(v->d->folder, daemon_io(v->d), v, see_snapshot);
	if (result == 0)
		verified(v, true);
	losses_deinit(&v->found);
	return result;
}

/*
 * Nine tenths of its time it waits. Beyond that it is a little less urgent than the rest, and not idle: a thread that is never run while it
 * holds a lock of the log would hold up the writer.
 */
static void be_modest(void)
{
	pid_t thread = gettid();

	(void)setpriority(PRIO_PROCESS, (id_t)thread, 5);
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, thread,
		      IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
}

static void *verify_main(void *argument)
{
	struct daemon *d = argument;

	be_modest();
	for (;;) {
		struct verification v = { .d = d };
		struct err err = { 0 };
		int result = verify(&v, &err);

		if (result > 0)
			break;
		if (result < 0)
			log_line(
				LOG_WARN,
				"the journal can't be verified, which is tried again in a minute: %s",
				err.text);
		if (wait_ms(d, result < 0 ? 60000 : VERIFY_AGAIN_MS))
			break;
	}
	return NULL;
}

void damage_start(struct daemon *d)
{
	thread_start(&d->damage.thread, verify_main, d);
	d->damage.runs = true;
}

void damage_join(struct daemon *d)
{
	if (!d->damage.runs)
		return;
	pthread_mutex_lock(&d->damage.lock);
	d->damage.ends = true;
	pthread_cond_signal(&d->damage.wake);
	pthread_mutex_unlock(&d->damage.lock);
	pthread_join(d->damage.thread, NULL);
	d->damage.runs = false;
}
