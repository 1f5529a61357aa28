/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output gate. Batches come from the core in order; all that wait are written in one commit, and only when that is
 * on disk does anything leave: the frozen facts are published for readers, effects go to the engine, events to the stream,
 * replies to who asked - in this order, so that an acknowledged change is seen by the next read.
 *
 * A commit that fails is not tried again. Everything held is refused, and the core rebuilds (core.c). Only "the
 * disk is full" is milder: nothing was written, so the same batches go in again with the right to use the space kept
 * in reserve, and new work is refused from then on until there is room.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/state.h"
#include "engine/failpoint.h"
#include "store/io.h"

enum {
	COMMIT_BATCHES = 64,
	COMMIT_BYTES = 64 << 20, /* of records and bodies: no further batch is added beyond it */
	ROOM_LOOK_MS =
		5000 /* of a database whose disk was full: what it has free it does not tell */
};
#define ROOM_AGAIN_BYTES                                                                           \
	((int64_t)32 << 20) /* free beyond the reserve before new work is taken again */

static struct batch *batch_of(struct message *message)
{
	return (struct batch *)message;
}

/* --- publications -------------------------------------------------------------------------------------- */

struct publication *publication_get(struct daemon *d)
{
	pthread_mutex_lock(&d->publication_lock);
	struct publication *publication = d->published;
	__atomic_add_fetch(&publication->frozen.references, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&d->publication_lock);
	return publication;
}

void publication_release(struct publication *publication)
{
	if (!publication ||
	    __atomic_sub_fetch(&publication->frozen.references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	facts_deinit(&publication->frozen.facts);
	free(publication);
}

/* Answers the one that was there before, for the caller to release: that takes time, and others wait. */
static struct publication *publish(struct daemon *d, struct publication *publication)
{
	struct journal_state state;
	journal_state(d->journal, &state);
	publication->chain = state.last_hash;
	pthread_mutex_lock(&d->publication_lock);
	struct publication *old = d->published;
	d->published = publication;
	d->durable_seq = publication->seq;
	pthread_mutex_unlock(&d->publication_lock);
	return old;
}

/* The history thread learns of it after those who wait for an answer, and only when it has waited for that record. */
static void published(struct daemon *d, struct publication *old)
{
	pthread_mutex_lock(&d->publication_lock);
	const bool awaited = d->durable_seq >= d->history_due;
	pthread_mutex_unlock(&d->publication_lock);
	if (awaited)
		pthread_cond_broadcast(&d->durable_cond);
	publication_release(old);
}

/* --- commit ---------------------------------------------------------------------------------------------- */

struct commit {
	struct record *records;
	size_t record_count;
	struct blob *blobs;
	size_t blob_count;
	bool essential;
};

static struct commit commit_gather(struct message *batches)
{
	struct commit c = { 0 };
	size_t records = 0, blobs = 0;
	for (struct message *m = batches; m; m = m->next) {
		records += batch_of(m)->record_count;
		blobs += batch_of(m)->blob_count;
		c.essential |= batch_of(m)->essential;
	}
	c.records = calloc(records + 1, sizeof(*c.records));
	c.blobs = calloc(blobs + 1, sizeof(*c.blobs));
	CHECK(c.records && c.blobs);
	for (struct message *m = batches; m; m = m->next) {
		const struct batch *batch = batch_of(m);
		for (uint32_t i = 0; i < batch->record_count; i++) {
			const struct batch_record *r = &batch->records[i];
			c.records[c.record_count++] = (struct record){
				.seq = r->seq,
				.time_ms = r->time_ms,
				.kind = r->kind,
				.must_understand = r->must,
				.text = batch->texts.data + r->at,
				.size = r->size,
			};
		}
		for (uint32_t i = 0; i < batch->blob_count; i++)
			c.blobs[c.blob_count++] = (struct blob){
				.digest = batch->blobs[i].name,
				.data = batch->blobs[i].sealed.data,
				.size = batch->blobs[i].sealed.size,
			};
	}
	return c;
}

static void note_room(struct daemon *d)
{
	const char *database = journal_database(d->journal);

	d->full_said = false;
	daemon_problem(d, "");
	log_line(LOG_INFO, "the disk of %s has room again: new work is taken",
		 database ? database : d->folder);
}

/* `why`: what keeps it from taking more, if that is not the disk; "" otherwise. */
static void note_full(struct daemon *d, const char *why)
{
	const char *database = journal_database(d->journal);
	char text[sizeof d->problem];

	if (*why)
		snprintf(text, sizeof text, "nothing new is taken, running work goes on: %.180s",
			 why);
	else
		snprintf(
			text, sizeof text,
			"the disk of %s is full: nothing new is taken until space is free; running work goes on",
			database ? database : "the data folder");
	if (!d->full_said && *why)
		log_line(LOG_ERROR, "new work is refused, running work goes on: %s", why);
	else if (!d->full_said)
		log_line(LOG_ERROR,
			 "the disk of %s is full: new work is refused, running work goes on",
			 database ? database : d->folder);
	d->full_said = true;
	d->full_look_ms = clock_boot_ms() + ROOM_LOOK_MS;
	daemon_problem(d, text);
	atomic_store(&d->full, true);
}

static int commit_write(struct daemon *d, const struct commit *c, struct err *err)
{
	if (c->record_count == 0)
		return 0;
	bool was_full = atomic_load(&d->full);
	int64_t began = clock_mono_ns();
	bool tries = d->full_said && !was_full; /* what was full may not be any more */
	struct err why = { 0 };
	int result = journal_append(d->journal, c->records, c->record_count, c->blobs,
				    c->blob_count, was_full, &why);
	if (result < 0)
		*err = why;
	if (result == JOURNAL_FULL && !was_full) {
		note_full(d, d->in_database ? "" : why.text);
		result = journal_append(d->journal, c->records, c->record_count, c->blobs,
					c->blob_count, true, err);
	}
	if (result > 0)
		result = err_set(err, ERR_IO,
				 journal_database(d->journal)
					 ? "the disk of the database is full"
					 : "the disk is full, and so is the space kept in reserve");
	else if (result == 0 && tries && !atomic_load(&d->full))
		note_room(d);
	int64_t took_us = (clock_mono_ns() - began) / 1000;
	atomic_fetch_add(&d->commits, 1);
	if (took_us > atomic_load(&d->longest_commit_us))
		atomic_store(&d->longest_commit_us, took_us);
	return result;
}

static void commit_free(struct commit *c)
{
	free(c->records);
	free(c->blobs);
}

/* --- what leaves ------------------------------------------------------------------------------------------- */

/* In builds for tests every record is read back: encoder and decoder must agree on all kinds. */
#ifdef FAIRLEAD_FAILPOINTS
enum { DECODE_ALL = 1 };
#else
enum { DECODE_ALL = 0 };
#endif

/* Only records that the engine acts on are decoded; the stream takes their text as it is. */
static void release_event(struct daemon *d, struct batch *batch, const struct batch_record *r)
{
	const char *text = batch->texts.data + r->at;
	const bool follow = effects_follow(r->kind) || own_follow(d, r->kind, text, r->size);
	struct event event = { .seq = r->seq, .time_ms = r->time_ms };
	struct err err = { 0 };
	event.kind = r->kind;
	/* what we wrote ourselves reads back: anything else is a defect */
	if (follow || DECODE_ALL)
		CHECK(event_decode(r->kind, r->seq, r->time_ms, text, r->size, &batch->arena,
				   &event, &err) == 0);
	if (follow)
		effects_of_event(d, &event);
	event_hub_publish(api_hub(d->api), &event, text, r->size);
}

static void release_events(struct daemon *d, struct batch *batch)
{
	for (uint32_t i = 0; i < batch->record_count; i++)
		release_event(d, batch, &batch->records[i]);
}

static void release_replies(struct batch *batch, const struct err *refusal)
{
	for (uint32_t i = 0; i < batch->reply_count; i++) {
		struct batch_reply *r = &batch->replies[i];
		if (refusal)
			r->reply = (struct command_reply){ .err = *refusal };
		r->command->done(r->command->context, &r->reply);
		command_destroy(r->command);
	}
}

static void refuse_batches(struct daemon *d, struct message *batches)
{
	struct err refusal = { 0 };
	err_set(&refusal, ERR_UNAVAILABLE,
		"the journal could not be written; whether this was taken is not known: send it again with the same client key when the daemon is back");
	while (batches) {
		struct batch *batch = batch_of(batches);
		batches = batches->next;
		release_replies(batch, &refusal);
		publication_release(batch->publication);
		batch_destroy(batch);
		atomic_fetch_add(&d->batches_done, 1);
	}
}

static void release_batches(struct daemon *d, struct message *batches)
{
	struct publication *newest = NULL, *old = NULL;
	for (struct message *m = batches; m; m = m->next) {
		struct batch *batch = batch_of(m);
		if (!batch->publication)
			continue;
		publication_release(newest);
		newest = batch->publication;
	}
	if (newest)
		old = publish(d, newest);
	http_answers_hold();
	while (batches) {
		struct batch *batch = batch_of(batches);
		batches = batches->next;
		release_events(d, batch);
		(void)FAILPOINT("gate-before-replies");
		release_replies(batch, NULL);
		batch_destroy(batch);
		atomic_fetch_add(&d->batches_done, 1);
	}
	http_answers_release();
	if (newest)
		published(d, old);
}

int gate_write(struct daemon *d, struct batch *batch, struct err *err)
{
	struct commit commit = commit_gather(&batch->message);
	int result = commit_write(d, &commit, err);
	commit_free(&commit);
	return result;
}

int gate_commit_now(struct daemon *d, struct batch *batch, struct err *err)
{
	core_publish_into(d, batch);
	int result = gate_write(d, batch, err);
	if (result < 0)
		return result;
	published(d, publish(d, batch->publication));
	batch_destroy(batch);
	return 0;
}

/* --- after a rebuild ---------------------------------------------------------------------------------------- */

/* A commit that failed may be on disk all the same, or in part of it: who listens must not miss those records. */
static int stream_record(void *context, const struct record *record, const struct digest *hash)
{
	struct daemon *d = context;
	struct arena arena;
	struct event event;
	struct err err = { 0 };
	(void)hash;
	arena_init(&arena, 64 << 20);
	if (event_decode(record->kind, record->seq, record->time_ms, record->text, record->size,
			 &arena, &event, &err) == 0)
		event_hub_publish(api_hub(d->api), &event, record->text, record->size);
	arena_deinit(&arena);
	return 0;
}

void gate_publish_rebuilt(struct daemon *d)
{
	const struct journal_reader reader = { .context = d, .take = stream_record };
	struct err err = { 0 };
	uint64_t seen =
		d->durable_seq; /* only the gate, which is idle, and this thread ever write it */
	struct publication *publication = publication_create(d);
	published(d, publish(d, publication));
	if (publication->seq > seen &&
	    journal_read(d->journal, seen + 1, 0, false, &reader, &err) != 0)
		log_line(LOG_ERROR, "the event stream lacks records behind %lu: %s",
			 (unsigned long)seen, err.text);
}

/* --- snapshots, space -------------------------------------------------------------------------------------- */

static void snapshot_work(void *argument)
{
	struct daemon *d = argument;
	snapshot_take(d);
	atomic_store(&d->snapshot_running, false);
}

static void maybe_snapshot(struct daemon *d)
{
	if (d->durable_seq - d->snapshot_seq < d->snapshot_every ||
	    atomic_exchange(&d->snapshot_running, true))
		return;
	d->snapshot_seq = d->durable_seq;
	d->backend.work(d, WORK_SLOW, snapshot_work, d);
}

/* Of a database only the next commit tells: new work is let in to try. */
static void look_for_space(struct daemon *d)
{
	struct io *io = daemon_io(d);
	/* While the state is read back the journal is the core's, and may be closed. */
	if (!atomic_load(&d->full) || atomic_load(&d->faulted))
		return;
	if (journal_database(d->journal)) {
		if (clock_boot_ms() >= d->full_look_ms)
			atomic_store(&d->full, false);
		return;
	}
	if (io->free_bytes(io, d->folder) < JOURNAL_RESERVE_BYTES + ROOM_AGAIN_BYTES ||
	    !journal_has_room(d->journal))
		return;
	atomic_store(&d->full, false);
	note_room(d);
}

static size_t batch_bytes(const struct batch *batch)
{
	size_t bytes = batch->texts.size;
	for (uint32_t i = 0; i < batch->blob_count; i++)
		bytes += batch->blobs[i].sealed.size;
	return bytes;
}

/* Those at the front that go into one commit, at least one; answers the rest. */
static struct message *cut(struct message *batches)
{
	size_t bytes = batch_bytes(batch_of(batches));
	while (batches->next) {
		bytes += batch_bytes(batch_of(batches->next));
		if (bytes > COMMIT_BYTES)
			break;
		batches = batches->next;
	}
	struct message *rest = batches->next;
	batches->next = NULL;
	return rest;
}

void gate_publish(struct daemon *d)
{
	published(d, publish(d, publication_create(d)));
}

void gate_snapshot(struct daemon *d)
{
	maybe_snapshot(d);
}

static void commit_batches(struct daemon *d, struct message *batches)
{
	struct err err = { 0 };
	if (atomic_load(&d->faulted)) {
		refuse_batches(d, batches);
		return;
	}
	(void)FAILPOINT("gate-before-commit");
	struct commit commit = commit_gather(batches);
	int result = commit_write(d, &commit, &err);
	(void)FAILPOINT("gate-after-commit");
	if (result == 0 && FAILPOINT("gate-commit"))
		result = err_set(&err, ERR_IO, "a commit was made to fail by a test");
	commit_free(&commit);
	if (result < 0) {
		log_line(LOG_ERROR, "journal: %s", err.text);
		daemon_problem(d, err.text);
		atomic_store(&d->faulted, true);
		refuse_batches(d, batches);
		mailbox_poke(&d->core_box);
		return;
	}
	release_batches(d, batches);
	maybe_snapshot(d);
}

bool gate_pass(struct daemon *d, int64_t wait_ms)
{
	struct message *batches = mailbox_take(&d->journal_box, COMMIT_BATCHES, wait_ms);
	look_for_space(d);
	struct message **link = &batches;
	while (*link && (*link)->kind == 0)
		link = &(*link)->next;
	bool stop = *link != NULL; /* the quit message is the last ever sent */
	*link = NULL;
	while (batches) {
		struct message *rest = cut(batches);
		commit_batches(d, batches);
		batches = rest;
	}
	return !stop;
}

static void *gate_main(void *argument)
{
	struct daemon *d = argument;
	while (gate_pass(d, atomic_load(&d->full) ? 500 : -1))
		continue;
	return NULL;
}

void gate_start(struct daemon *d)
{
	thread_start(&d->journal_thread, gate_main, d);
}

void gate_join(struct daemon *d)
{
	struct message stop = { .kind = 1 };
	mailbox_send(&d->journal_box, &stop);
	pthread_join(d->journal_thread, NULL);
}
