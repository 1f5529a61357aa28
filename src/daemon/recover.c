/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From disk to facts: the newest snapshot that verifies, then every record behind it, with the hash chain
 * checked on the way. Records of kinds this release does not know are passed over when their writer said
 * that they may be; else the daemon does not start, and says which release wrote them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "daemon/state.h"
#include "engine/failpoint.h"
#include "store/snapshot.h"

/* A record of our own in a snapshot, beside those of the facts (core/model/records.h). */
enum { SNAPSHOT_CLOCK = 2000 };

struct replay {
	struct facts *facts;
	struct view *view; /* follows them; NULL = there is none yet */
	struct api *api; /* its stream hears the records; NULL = there is none yet */
	struct arena arena;
	struct journal *journal;
	uint64_t records, damaged;
	struct losses losses;
	struct known_clock known;
	int64_t level;
	struct err err;
};

static int load_clock(struct replay *replay, const char *text, size_t size)
{
	struct json_reader reader;
	struct json_slice key, boot = { 0 }, print = { 0 };
	pull_init(&reader, text, size);
	pull_object(&reader);
	while (pull_member(&reader, &key)) {
		if (pull_key_is(&key, "boot_id")) {
			pull_string(&reader, &boot);
			pull_copy(&reader, &boot, replay->known.boot_id,
				  sizeof(replay->known.boot_id));
		} else if (pull_key_is(&key, "event_ms")) {
			pull_int(&reader, &replay->known.event_ms);
		} else if (pull_key_is(&key, "boot_ms")) {
			pull_int(&reader, &replay->known.boot_ms);
		} else if (pull_key_is(&key, "key")) {
			pull_string(&reader, &print);
			pull_copy(&reader, &print, replay->known.key, sizeof(replay->known.key));
		} else if (pull_key_is(&key, "level")) {
			pull_int(&reader, &replay->level);
		} else {
			pull_skip(&reader);
		}
	}
	return pull_finish(&reader, &replay->err);
}

static int save_clock(const struct daemon *d, const struct publication *publication,
		      struct snapshot_writer *writer, struct err *err)
{
	char text[256];
	int size = snprintf(
		text, sizeof(text),
		"{\"boot_id\":\"%s\",\"event_ms\":%lld,\"boot_ms\":%lld,\"level\":%d,\"key\":\"%s\"}",
		d->boot_id, (long long)publication->clock.event_ms,
		(long long)publication->clock.boot_ms, JOURNAL_LEVEL, d->key_print);
	return snapshot_write(writer, SNAPSHOT_CLOCK, text, (size_t)size, err);
}

static int load_record(void *context, uint32_t kind, const char *text, size_t size)
{
	struct replay *replay = context;
	if (kind == SNAPSHOT_CLOCK)
		return load_clock(replay, text, size);
	return facts_load_record(replay->facts, kind, text, size, &replay->err);
}

static void note_passed_over(void *context, const char *name, const char *why)
{
	struct replay *replay = context;
	struct journal_state state;
	const uint64_t seq = strtoull(name, NULL, 10);

	journal_state(replay->journal, &state);
	if (seq > state.last_seq)
		losses_add(&replay->losses, state.last_seq + 1, seq,
			   "the journal ends before a snapshot that was made of these records");
	losses_add_snapshot(&replay->losses, name, why);
	log_line(LOG_WARN,
		 "snapshot %s is not used: %s; the one before it is, or the journal from its start",
		 name, why);
}

static int replay_record(void *context, const struct record *record, const struct digest *hash)
{
	struct replay *replay = context;
	(void)hash;
	struct event event;
	arena_reset(&replay->arena);
	if (!event_info(record->kind)) {
		if (!record->must_understand) {
			facts_pass_over(replay->facts, record->seq - 1);
			replay->facts->seq = record->seq;
			return 0;
		}
		return err_set(
			&replay->err, ERR_UNSUPPORTED,
			"record %lu is of kind %u, which this release does not know and may not pass over: start the newer release that wrote it",
			(unsigned long)record->seq, record->kind);
	}
	struct err err = { 0 };
	if (event_decode(record->kind, record->seq, record->time_ms, record->text, record->size,
			 &replay->arena, &event, &err) < 0) {
		losses_add(&replay->losses, record->seq, record->seq, err.text);
		replay->damaged++;
		facts_pass_over(replay->facts, record->seq);
		return 0;
	}
	apply(replay->facts, &event);
	if (replay->view)
		view_follow(replay->view, replay->facts, &event);
	if (replay->api)
		event_hub_publish(api_hub(replay->api), &event, record->text, record->size);
	replay->records++;
	if (event.kind == EVENT_DAEMON_STARTED) {
		replay->known.event_ms = event.time_ms;
		replay->known.boot_ms = event.daemon_started.boot_ms;
		snprintf(replay->known.boot_id, sizeof(replay->known.boot_id), "%s",
			 event.daemon_started.boot_id);
		replay->level = event.daemon_started.level;
		if (*event.daemon_started.key) /* a release before it names none */
			snprintf(replay->known.key, sizeof(replay->known.key), "%s",
				 event.daemon_started.key);
	}
	return 0;
}

static void note_damaged(void *context, uint64_t seq, const char *what)
{
	struct replay *replay = context;
	replay->damaged++;
	losses_add(&replay->losses, seq, seq, what);
}

/* Behind the reading: `result` is what that answered. */
static int replay_end(struct daemon *d, struct replay *replay, int result, struct err *err)
{
	if (result != 0 && replay->err.code != ERR_NONE && err)
		*err = replay->err;
	if (result != 0)
		return -1;
	if (replay->level > JOURNAL_LEVEL)
		return err_set(
			err, ERR_UNSUPPORTED,
			"the journal of \"%s\" is of level %ld and this release reads up to level %d: start the newer release that wrote it",
			d->folder, (long)replay->level, JOURNAL_LEVEL);
	/* Where the last records were set aside, their numbers are not given again. */
	struct journal_state state;
	journal_state(d->journal, &state);
	facts_pass_over(replay->facts, state.last_seq);
	return 0;
}

static int replay_journal(struct daemon *d, struct replay *replay, struct err *err)
{
	const struct journal_reader reader = { .context = replay,
					       .take = replay_record,
					       .damaged = note_damaged };
	return replay_end(
		d, replay,
		journal_read(d->journal, replay->facts->seq + 1, UINT64_MAX, true, &reader, err),
		err);
}

struct link {
	const struct snapshot_head *head;
	bool found, follows;
};

static int compare_link(void *context, const struct record *record, const struct digest *hash)
{
	struct link *link = context;
	link->found = record->seq == link->head->seq;
	link->follows = digest_equal(hash, &link->head->chain);
	return 1;
}

/* Whether a snapshot is of this journal and not of one that stood here before. A record set aside can't contradict it. */
static bool snapshot_belongs(struct daemon *d, const struct snapshot_head *head)
{
	struct link link = { .head = head };
	const struct journal_reader reader = { .context = &link, .take = compare_link };
	struct err err = { 0 };
	if (journal_read(d->journal, head->seq, 1, false, &reader, &err) < 0)
		return true; /* the replay meets the same trouble, and tells it */
	return !link.found || link.follows;
}

/* A snapshot that verifies as a file but does not load (a defect, or facts of a newer release) gives way to the journal. */
static void load_snapshot(struct daemon *d, struct replay *replay)
{
	struct snapshot_head head = { 0 };
	struct journal_state state;
	struct err err = { 0 };
	journal_state(d->journal, &state);
	int result = snapshot_load(d->folder, d->store.io, state.last_seq, &head, replay,
				   load_record, note_passed_over, &err);
	if (result == SNAPSHOT_NONE)
		return;
	if (result == 0)
		result = facts_load_finish(replay->facts, &err);
	if (result == 0 && facts_hash(replay->facts) != head.state_hash)
		result = err_set(&err, ERR_CORRUPT, "its facts do not have the hash it names");
	if (result == 0 && !snapshot_belongs(d, &head))
		result = err_set(&err, ERR_CONFLICT,
				 "it is of another journal than the one in this folder");
	if (result == 0) {
		d->snapshot_seq = head.seq;
		return;
	}
	const char *why = err.text[0] ? err.text : replay->err.text;
	char name[32];
	snprintf(name, sizeof(name), "%020lu.snap", (unsigned long)head.seq);
	losses_add_snapshot(&replay->losses, name, why);
	log_line(LOG_WARN, "snapshot of sequence %lu is not used: %s", (unsigned long)head.seq,
		 why);
	facts_deinit(replay->facts);
	facts_init(replay->facts);
	replay->err = (struct err){ 0 };
	replay->known = (struct known_clock){ 0 };
	replay->level = 0;
}

static int open_journal(struct daemon *d, bool create, struct err *err)
{
	struct journal_options options = d->store;
	options.folder = d->folder;
	options.create = create;
	options.epoch = d->epoch;
	options.follow =
		create; /* at the start: taken over only when all that could refuse it was looked at */
	struct losses refused = { 0 };
	options.refused = &refused;
	int result = journal_open(&options, &d->journal, err);
	damage_note(d, &refused);
	losses_deinit(&refused);
	if (result == 0) {
		struct journal_state state;
		journal_state(d->journal, &state);
		d->epoch = state.epoch;
		d->in_database = journal_database(d->journal) != NULL;
	}
	return result;
}

/* From what was read, or followed. */
static void clock_start(struct daemon *d)
{
	const bool same_boot = strcmp(d->known.boot_id, d->boot_id) == 0 && d->boot_id[0];

	event_clock_start(&d->clock, daemon_wall_ms(), clock_boot_ms(), d->known.event_ms,
			  d->known.boot_ms, d->facts.now_ms, same_boot);
}

int recover_follow(struct daemon *d, bool promote, struct err *err)
{
	struct replay replay = {
		.facts = &d->facts, .view = d->view, .api = d->api, .known = d->known
	};
	const struct journal_reader reader = { .context = &replay,
					       .take = replay_record,
					       .damaged = note_damaged };
	struct journal_state state;
	int result;

	arena_init(&replay.arena, 64 << 20);
	result = promote ? journal_promote(d->journal, &reader, err)
			 : journal_follow(d->journal, &reader, err);
	d->known = replay.known;
	result = replay_end(d, &replay, result, err);
	arena_deinit(&replay.arena);
	damage_note(d, &replay.losses);
	losses_deinit(&replay.losses);
	if (replay.damaged) { /* it was not told of what was passed over */
		d->settled |= facts_settle(&d->facts);
		view_destroy(d->view);
		d->view = view_create(&d->facts);
	}
	if (result < 0)
		return result;
	journal_state(d->journal, &state);
	d->epoch = state.epoch;
	if (promote)
		clock_start(d);
	return 0;
}

/* All that was found, in one list: too much of it ends the start. */
static int note_losses(struct daemon *d, struct replay *replay, struct err *err)
{
	const struct losses *found = journal_losses(d->journal);

	for (size_t i = 0; i < found->count; i++)
		losses_add(&replay->losses, found->items[i].first, found->items[i].last,
			   found->items[i].what);
	damage_known(d, journal_accepted(d->journal));
	damage_note(d, &replay->losses);
	return journal_judge(d->journal, &replay->losses, err);
}

int recover(struct daemon *d, bool create, struct err *err)
{
	if (!create)
		damage_accepts_no_more(d); /* nobody saw this when the flag was given */
	if (open_journal(d, create, err) < 0)
		return -1;
	int64_t began = clock_mono_ns();
	struct replay replay = { .facts = &d->facts, .journal = d->journal };
	arena_init(&replay.arena, 64 << 20);
	facts_init(&d->facts);
	d->snapshot_seq = 0;
	load_snapshot(d, &replay);
	(void)FAILPOINT("recover-after-snapshot");
	int result = replay_journal(d, &replay, err);
	if (result == 0)
		result = note_losses(d, &replay, err);
	losses_deinit(&replay.losses);
	arena_deinit(&replay.arena);
	if (result < 0) {
		facts_deinit(&d->facts);
		journal_close(d->journal);
		d->journal = NULL;
		return -1;
	}
	d->known = replay.known;
	clock_start(d);
	char lost[LOST_TEXT_MAX];
	facts_lost_text(&d->facts, lost);
	if (replay.damaged)
		log_line(LOG_ERROR, "%s; what they told is missing, all else is there", lost);
	d->settled = facts_settle(&d->facts);
	d->view = view_create(&d->facts);
	d->wake_ms = 0;
	d->again = true;
	log_line(LOG_INFO,
		 "state read: snapshot at %lu, %lu records behind it, %lu damaged, %ld ms",
		 (unsigned long)d->snapshot_seq, (unsigned long)replay.records,
		 (unsigned long)replay.damaged, (long)((clock_mono_ns() - began) / 1000000));
	return 0;
}

/* --- snapshots -------------------------------------------------------------------------------------------- */

struct saving {
	struct snapshot_writer *writer;
	struct err err;
};

static int save_record(void *context, uint32_t kind, const char *text, size_t size)
{
	struct saving *saving = context;
	return snapshot_write(saving->writer, kind, text, size, &saving->err);
}

void snapshot_take(struct daemon *d)
{
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	struct snapshot_head head = {
		.seq = publication->seq,
		.time_ms = facts->now_ms,
		.chain = publication->chain,
		.state_hash = facts_hash(facts),
	};
	snprintf(head.build, sizeof(head.build), "%s", d->build);
	struct saving saving = { 0 };
	int result = snapshot_create(d->folder, d->store.io, &head, &saving.writer, &saving.err);
	if (result == 0) {
		result = facts_save(facts, &saving, save_record);
		if (result == 0)
			result = save_clock(d, publication, saving.writer, &saving.err);
		if (result == 0)
			result = snapshot_commit(saving.writer, &saving.err);
		else
			snapshot_abandon(saving.writer);
	}
	publication_release(publication);
	if (result != 0)
		log_line(LOG_WARN, "no snapshot could be written, the one before stays: %s",
			 saving.err.text);
}
