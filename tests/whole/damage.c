/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged records. Before a daemon starts, copies of its disk are read as it would: one as it is, one with a record that can't be read any more,
 * one with a bit turned over somewhere in the journal. The promise: what can't be read takes only itself along, and is named. The run goes on
 * with the disk as it was, so that one run serves for as many damages as it has starts.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/io.h"
#include "whole.h"

enum { RECORDS = 400, PATH_ROOM = 256, WAL_BYTES = 64 << 10, SEGMENT_BYTES = 4 << 20 };
#define JOURNAL FOLDER "/journal"
#define SNAPSHOTS FOLDER "/snapshots"

/* --- a reading ------------------------------------------------------------------------------------------------------------- */

/* Of the facts; NULL: err says why not. */
static struct daemon *reading_open(struct io_disk *disk, struct err *err)
{
	struct daemon *d = calloc(1, sizeof(*d));

	CHECK(d);
	daemon_init(d, FOLDER);
	d->root = true;
	d->store = (struct journal_options){ .io = io_disk_io(disk),
					     .segment_bytes = SEGMENT_BYTES,
					     .reserve_bytes = -1,
					     .wal_bytes = WAL_BYTES,
					     .inline_checkpoint = true };
	if (recover(d, true, err) == 0)
		return d;
	arena_deinit(&d->step);
	free(d);
	return NULL;
}

static void reading_close(struct daemon *d)
{
	view_destroy(d->view);
	facts_deinit(&d->facts);
	journal_close(d->reader);
	journal_close(d->journal);
	arena_deinit(&d->step);
	free(d);
}

static void disk_drop(struct io_disk *disk)
{
	io_sqlite_vfs_drop(io_disk_io(disk));
	io_disk_destroy(disk);
}

/* --- damage ---------------------------------------------------------------------------------------------------------------- */

struct names {
	char last[PATH_ROOM]; /* of the segments */
	char snapshot[8][PATH_ROOM];
	uint32_t snapshots;
};

static int segment_name(void *context, const char *name)
{
	struct names *names = context;
	const size_t size = strlen(name);

	if (size > 7 && strcmp(name + size - 7, ".sqlite") == 0)
		snprintf(names->last, sizeof names->last, "%s/%.100s", JOURNAL, name);
	return 0;
}

static int snapshot_name(void *context, const char *name)
{
	struct names *names = context;

	if (names->snapshots < 8)
		snprintf(names->snapshot[names->snapshots++], PATH_ROOM, "%s/%.100s", SNAPSHOTS,
			 name);
	return 0;
}

static void snapshots_remove(struct io_disk *disk, const struct names *names)
{
	struct io *io = io_disk_io(disk);

	for (uint32_t i = 0; i < names->snapshots; i++)
		(void)io->unlink(io, names->snapshot[i]);
}

/* What was done to a record: which, and of whom it tells. */
struct damage {
	uint64_t seq;
	char kind[64];
	int64_t job, attempt, array;
};

static int64_t number_in(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

/* One of the newest records, by chance. False: there is none. */
static bool record_damage(struct io_disk *disk, const char *path, struct sim_random *random,
			  struct damage *ret)
{
	sqlite3_stmt *find = NULL, *change = NULL;
	sqlite3 *db = NULL;
	bool found;

	*ret = (struct damage){ 0 };
	CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, io_sqlite_vfs(io_disk_io(disk))) ==
	      SQLITE_OK);
	CHECK(sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK);
	CHECK(sqlite3_prepare_v2(
		      db, "SELECT seq, kind, text FROM record ORDER BY seq DESC LIMIT 1 OFFSET ?",
		      -1, &find, NULL) == SQLITE_OK);
	sqlite3_bind_int(find, 1, (int)below(random, RECORDS));
	found = sqlite3_step(find) == SQLITE_ROW;
	if (found) {
		const char *text = (const char *)sqlite3_column_text(find, 2);

		ret->seq = (uint64_t)sqlite3_column_int64(find, 0);
		snprintf(ret->kind, sizeof ret->kind, "%s",
			 event_info((enum event_kind)sqlite3_column_int(find, 1))->name);
		ret->job = number_in(text, "\"job\":");
		ret->attempt = number_in(text, "\"attempt\":");
		ret->array = number_in(text, "\"array_count\":");
	}
	sqlite3_finalize(find);
	if (found) {
		CHECK(sqlite3_prepare_v2(
			      db, "UPDATE record SET text = replace(text, '\"', '!') WHERE seq = ?",
			      -1, &change, NULL) == SQLITE_OK);
		sqlite3_bind_int64(change, 1, (int64_t)ret->seq);
		CHECK(sqlite3_step(change) == SQLITE_DONE);
		sqlite3_finalize(change);
	}
	CHECK(sqlite3_close(db) == SQLITE_OK);
	return found;
}

/* --- what must hold ---------------------------------------------------------------------------------------------------------- */

static bool is_about(const struct damage *damage, const struct facts *whole_facts, uint32_t job)
{
	int64_t first = damage->job, many = damage->array > 1 ? damage->array : 1;

	if (!first && attempt_is_there(whole_facts, damage->attempt))
		first = attempt_get(whole_facts, (struct attempt_id){ (uint32_t)damage->attempt })
				->job.v;
	return first && job >= first && job < first + many;
}

static void others_check(struct whole *w, const struct daemon *clean, const struct daemon *d,
			 const struct damage *damage)
{
	for (uint32_t id = 1; id <= clean->facts.jobs.count; id++) {
		const struct job *a = job_get(&clean->facts, (struct job_id){ id }), *b;

		if (is_about(damage, &clean->facts, id))
			continue;
		b = id <= d->facts.jobs.count ? job_get(&d->facts, (struct job_id){ id }) : NULL;
		if (!b || a->state != b->state || a->attempt.v != b->attempt.v ||
		    a->attempts != b->attempts) {
			whole_problem(
				w,
				"record %" PRIu64
				" (%s) can't be read, and job %u is %s, attempt %u, after that; it was %s, attempt %u",
				damage->seq, damage->kind, id,
				b ? job_state_name(b->state) : "not there", b ? b->attempt.v : 0,
				job_state_name(a->state), a->attempt.v);
			return;
		}
	}
}

/* It is named when it was read; behind a snapshot nothing is lost. The last one, of which nobody was told yet, may be missing without
 * a word, as below. */
static void named_check(struct whole *w, const struct daemon *clean, const struct daemon *d,
			const struct damage *damage)
{
	char lost[LOST_TEXT_MAX], number[32];

	facts_lost_text(&d->facts, lost);
	snprintf(number, sizeof number, " %" PRIu64, damage->seq);
	if (damage->seq <= d->snapshot_seq) {
		if (facts_hash(&d->facts) != facts_hash(&clean->facts))
			whole_problem(w,
				      "record %" PRIu64
				      " behind a snapshot is damaged, and the state is another one",
				      damage->seq);
	} else if (damage->seq == clean->facts.seq && damage->seq > promises_facts(w)->seq &&
		   d->facts.seq == damage->seq - 1) {
		return;
	} else if (d->damage.open != 1 || d->facts.lost != clean->facts.lost + 1 ||
		   !strstr(lost, number)) {
		whole_problem(w, "record %" PRIu64 " (%s) can't be read, and it is said: \"%s\"",
			      damage->seq, damage->kind, lost);
	}
}

static void record_try(struct whole *w, const struct daemon *clean, struct io_disk *disk,
		       const struct names *names, struct sim_random *random)
{
	struct damage damage;
	struct err err = { 0 };
	struct daemon *d;

	if (!record_damage(disk, names->last, random, &damage))
		return;
	whole_trace(w, "a copy of its disk: record %" PRIu64 " (%s) can't be read", damage.seq,
		    damage.kind);
	d = reading_open(disk, &err);
	if (!d) {
		whole_problem(w,
			      "record %" PRIu64
			      " (%s) can't be read, and the daemon does not start: %s",
			      damage.seq, damage.kind, err.text);
		return;
	}
	named_check(w, clean, d, &damage);
	others_check(w, clean, d, &damage);
	w->damages++;
	reading_close(d);
}

/* A bit anywhere in the newest segment or its log: it changes nothing, or it is said that something is lost. The end of what nobody was told of yet may be
 * missing without a word, a process that dies leaves such ends too; and after a power loss the end of the log, for then nothing else tells how long it was
 * (src/store/journal_head.c). */
static void bit_try(struct whole *w, const struct daemon *clean, struct io_disk *disk,
		    const struct names *names, struct sim_random *random)
{
	struct io *io = io_disk_io(disk);
	char path[PATH_ROOM + 8];
	struct err err = { 0 };
	struct io_file *file;
	struct daemon *d;
	int64_t size, bit;
	bool is_same, is_said;

	snprintf(path, sizeof path, "%s%s", names->last, one_in(random, 2) ? "-wal" : "");
	if (io->open(io, path, 0, 0, &file) < 0)
		return;
	size = io->size(io, file);
	io->close(io, file);
	if (size <= 0)
		return;
	bit = (int64_t)(sim_random_next(random) % (uint64_t)(size * 8));
	CHECK(io_disk_flip(disk, path, bit) == 0);
	whole_trace(w, "a copy of its disk: bit %" PRId64 " of %s is turned over", bit, path);
	d = reading_open(disk, &err);
	if (!d) {
		whole_problem(w,
			      "bit %" PRId64
			      " of %s is turned over, and the daemon does not start: %s",
			      bit, path, err.text);
		return;
	}
	is_same = facts_hash(&d->facts) == facts_hash(&clean->facts);
	is_said = d->damage.open && d->facts.lost > clean->facts.lost;
	if (!is_same && !is_said && w->boots == w->boots_up &&
	    (d->facts.seq < promises_facts(w)->seq || d->facts.seq == clean->facts.seq))
		whole_problem(
			w,
			"bit %" PRId64
			" of %s is turned over: the state is another one, at record %lu of %lu, of which %lu were shown, and nobody says so",
			bit, path, (unsigned long)d->facts.seq, (unsigned long)clean->facts.seq,
			(unsigned long)promises_facts(w)->seq);
	w->damages++;
	reading_close(d);
}

void damage_try(struct whole *w)
{
	struct sim_random random = { whole_hash(w, "damage", w->steps) };
	struct io_disk *clean_disk = io_disk_copy(w->disk), *disk;
	struct names names = { 0 };
	struct io *io = io_disk_io(clean_disk);
	struct err err = { 0 };
	struct daemon *clean;

	io_disk_capacity(clean_disk, -1);
	(void)io->list(io, JOURNAL, &names, segment_name);
	(void)io->list(io, SNAPSHOTS, &names, snapshot_name);
	if (one_in(&random, 2))
		names.snapshots = 0;
	snapshots_remove(clean_disk, &names);
	clean = *names.last ? reading_open(clean_disk, &err) : NULL;
	for (int kind = 0; clean && kind < 2; kind++) {
		disk = io_disk_copy(w->disk);
		io_disk_capacity(disk, -1);
		snapshots_remove(disk, &names);
		if (kind)
			bit_try(w, clean, disk, &names, &random);
		else
			record_try(w, clean, disk, &names, &random);
		disk_drop(disk);
	}
	if (clean)
		reading_close(clean);
	disk_drop(clean_disk);
}
