/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending, sealing, closing. The order that everything rests on:
 *
 *	1. hash each record onto the one before it
 *	2. one transaction with all records and bodies
 *	3. commit: SQLite writes the pages to its log and syncs it        <- durable here
 *	4. the head file (not synced here) tells a later start what must be there
 *	5. the caller may act on it
 *
 * A failure at 2 for want of space rolls back and is an outcome. Any other failure makes the journal failed:
 * what the kernel did with the pages is unknown, and asking again would only hide it.
 */
#include "store/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "store/guard.h"
#include "store/journal_internal.h"

int journal_fail(struct journal *journal, struct err *err)
{
	if (!journal->state.failed)
		snprintf(journal->failed_text, sizeof(journal->failed_text), "%s", err->text);
	journal->state.failed = true;
	return -(int)err->code;
}

int journal_month(int64_t time_ms)
{
	time_t seconds = (time_t)(time_ms / 1000);
	struct tm tm;
	return gmtime_r(&seconds, &tm) ? (tm.tm_year + 1900) * 12 + tm.tm_mon : 0;
}

/* Over its limit, or out of order: refused before anything is written. */
static int append_check(const struct journal *journal, const struct record *records, size_t count,
			const struct blob *blobs, size_t blob_count, struct err *err)
{
	if (journal->read_only)
		return err_set(err, ERR_UNSUPPORTED,
			       "the journal of \"%s\" was opened for reading only",
			       journal->folder);
	if (journal->state.following)
		return err_set(err, ERR_UNSUPPORTED,
			       "the journal of \"%s\" is written by another daemon",
			       journal->folder);
	if (journal->state.failed)
		return err_set(err, ERR_UNAVAILABLE,
			       "the journal of \"%s\" failed and must be opened again: %s",
			       journal->folder, journal->failed_text);
	for (size_t i = 0; i < count; i++) {
		uint64_t seq = journal->state.last_seq + 1 + i;
		if (records[i].size > RECORD_TEXT_MAX)
			return err_set(err, ERR_TOO_LARGE,
				       "a record of %zu bytes is over the limit of %d",
				       records[i].size, RECORD_TEXT_MAX);
		if (records[i].seq != 0 && records[i].seq != seq)
			return err_set(err, ERR_CONFLICT,
				       "record %llu cannot be appended: the next one is %llu",
				       (unsigned long long)records[i].seq, (unsigned long long)seq);
	}
	for (size_t i = 0; i < blob_count; i++)
		if (blobs[i].size > BLOB_MAX)
			return err_set(err, ERR_TOO_LARGE,
				       "a body of %zu bytes is over the limit of %d", blobs[i].size,
				       BLOB_MAX);
	return 0;
}

void journal_hash(struct journal *journal, struct record *records, size_t count)
{
	if (count > journal->hashes_room) {
		journal->hashes_room = count * 2;
		free(journal->hashes);
		journal->hashes =
			reallocarray(NULL, journal->hashes_room, sizeof(*journal->hashes));
		CHECK(journal->hashes);
	}
	const struct digest *prev = &journal->state.last_hash;
	for (size_t i = 0; i < count; i++) {
		records[i].seq = journal->state.last_seq + 1 + i;
		journal->hashes[i] = record_hash(prev, &records[i]);
		prev = &journal->hashes[i];
	}
}

/* What the commit changed, remembered. */
static void note_append(struct journal *journal, const struct record *records, size_t count,
			const struct blob *blobs, size_t blob_count)
{
	enum { ROW_BYTES = 64, BLOB_ROW_BYTES = 56 }; /* beside the text: about what SQLite adds */
	if (count) {
		journal->state.last_seq = records[count - 1].seq;
		journal->state.last_hash = journal->hashes[count - 1];
		journal->state.last_time_ms = records[count - 1].time_ms;
		if (journal->open_month < 0)
			journal->open_month = journal_month(records[0].time_ms);
	}
	for (size_t i = 0; i < count; i++)
		journal->open_bytes += (int64_t)records[i].size + ROW_BYTES;
	for (size_t i = 0; i < blob_count; i++)
		journal->open_bytes += (int64_t)blobs[i].size + BLOB_ROW_BYTES;
}

/* The commit, with the reserve where the facts are essential. The mutex is held. */
static int append_commit(struct journal *journal, struct record *records, size_t count,
			 const struct blob *blobs, size_t blob_count, bool essential,
			 struct err *err)
{
	int64_t first_blob = 0;
	int frames = 0;
	journal_hash(journal, records, count);
	int result = segment_append(journal->open, records, journal->hashes, count, blobs,
				    blob_count, &first_blob, &frames, err);
	if (result == SEGMENT_FULL && essential && reserve_release(journal))
		result = segment_append(journal->open, records, journal->hashes, count, blobs,
					blob_count, &first_blob, &frames, err);
	if (result == SEGMENT_FULL)
		return JOURNAL_FULL;
	if (result < 0)
		return journal_fail(journal, err);
	note_append(journal, records, count, blobs, blob_count);
	names_note(journal, first_blob, blobs, blob_count);
	result = head_write(journal);
	if (result < 0) {
		err_errno(err, ERR_IO, -result, "cannot write the head of the journal of \"%s\"",
			  journal->folder);
		return journal_fail(journal, err);
	}
	worker_wake(journal, frames);
	return 0;
}

static int seal_locked(struct journal *journal, struct err *err);

static int append_locked(struct journal *journal, struct record *records, size_t count,
			 const struct blob *blobs, size_t blob_count, bool essential,
			 struct err *err)
{
	int result = append_check(journal, records, count, blobs, blob_count, err);
	if (result < 0 || count + blob_count == 0)
		return result;
	if (journal->postgres)
		return remote_append(journal, records, count, blobs, blob_count, err);
	if (!journal->reserve_whole)
		reserve_restore(journal);
	if (!journal->reserve_whole && !essential) {
		if (journal->reserve_problem[0])
			(void)err_set(err, ERR_UNAVAILABLE, "%s", journal->reserve_problem);
		return JOURNAL_FULL;
	}
	bool due = journal->open_bytes >= journal->segment_bytes;
	if (count && journal->open_month >= 0 &&
	    journal_month(records[0].time_ms) != journal->open_month)
		due = true;
	if (due) {
		/* Without the space for a new segment the old one just grows on. */
		result = seal_locked(journal, err);
		if (result < 0)
			return result;
	}
	return append_commit(journal, records, count, blobs, blob_count, essential, err);
}

int journal_append(struct journal *journal, struct record *records, size_t count,
		   const struct blob *blobs, size_t blob_count, bool essential, struct err *err)
{
	struct err own;
	pthread_mutex_lock(&journal->mutex);
	int result = append_locked(journal, records, count, blobs, blob_count, essential,
				   err ? err : &own);
	pthread_mutex_unlock(&journal->mutex);
	return result;
}

bool journal_has_room(struct journal *journal)
{
	pthread_mutex_lock(&journal->mutex);
	if (!journal->reserve_whole && !journal->postgres)
		reserve_restore(journal);
	const bool room = journal->reserve_whole || journal->postgres;
	pthread_mutex_unlock(&journal->mutex);
	return room;
}

void journal_state(const struct journal *journal, struct journal_state *ret)
{
	/* The lock is the object's, its state is not changed. */
	pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&journal->mutex;
	pthread_mutex_lock(mutex);
	*ret = journal->state;
	ret->segments = journal->manifest.count;
	memcpy(ret->id, journal->postgres ? journal->head_row.id : journal->manifest.id,
	       sizeof(ret->id));
	ret->full = !journal->read_only && !journal->reserve_whole && !journal->postgres;
	pthread_mutex_unlock(mutex);
}

/* The manifest with the open segment sealed and a new one behind it, on disk. */
static int seal_manifest(struct journal *journal, struct err *err)
{
	char path[PATH_MAX];
	struct manifest_segment *last = manifest_last(&journal->manifest), old = *last;
	last->last = journal->state.last_seq;
	last->hash = journal->state.last_hash;
	last->state = SEGMENT_SEALED;
	manifest_add(&journal->manifest, old.number + 1, journal->state.last_seq + 1);
	journal_file(journal, "manifest", path);
	int result = manifest_save(journal->io, path, &journal->manifest);
	if (result == 0)
		return 0;
	journal->manifest.count--;
	*manifest_last(&journal->manifest) = old;
	if (result == -ENOSPC || result == -EDQUOT)
		return JOURNAL_FULL;
	return err_errno(err, ERR_IO, -result, "cannot write %s", path);
}

static int seal_locked(struct journal *journal, struct err *err)
{
	const struct manifest_segment *last = manifest_last(&journal->manifest);
	if (journal->state.last_seq < last->first)
		return 0;
	struct segment_meta meta = { .number = last->number + 1,
				     .first = journal->state.last_seq + 1,
				     .prev = journal->state.last_hash };
	memcpy(meta.id, journal->manifest.id, JOURNAL_ID_BYTES);
	char path[PATH_MAX];
	journal_segment_file(journal, meta.number, "", path);
	int result = segment_create(journal->io, path, &meta, 2 * journal->wal_bytes, err);
	if (result == SEGMENT_FULL)
		return JOURNAL_FULL;
	struct segment *next = NULL;
	/* Its name must be on disk before the manifest says so. */
	int error = result == 0 ? journal->io->sync_folder(journal->io, journal->path) : 0;
	if (error < 0)
		result = err_errno(err, ERR_IO, -error, "cannot sync %s", journal->path);
	if (result == 0)
		result = segment_open(journal->io, path, SEGMENT_READ_WRITE, &next, err);
	if (result == 0)
		result = seal_manifest(journal, err);
	if (result == JOURNAL_FULL) {
		segment_close(next, false);
		(void)journal->io->unlink(journal->io, path);
		return JOURNAL_FULL;
	}
	if (result < 0) {
		segment_drop(next);
		return journal_fail(journal, err);
	}
	struct segment *sealed = journal->open;
	journal->open = next;
	journal->open_bytes = 0;
	journal->open_month = -1;
	worker_hand_over(journal, sealed);
	return 0;
}

const char *journal_database(const struct journal *journal)
{
	return journal->postgres ? postgres_name(journal->postgres) : NULL;
}

const char *journal_address(const struct journal *journal)
{
	return journal->postgres ? postgres_address(journal->postgres) : NULL;
}

int journal_follow(struct journal *journal, const struct journal_reader *reader, struct err *err)
{
	return journal->state.following ? remote_follow(journal, reader, err) : 0;
}

int journal_promote(struct journal *journal, const struct journal_reader *reader, struct err *err)
{
	return journal->state.following ? remote_promote(journal, reader, err) : 0;
}

void journal_name(const struct journal *journal, char out[JOURNAL_NAME_MAX])
{
	for (size_t i = 0; i < JOURNAL_ID_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", journal->manifest.id[i]);
}

int journal_seal(struct journal *journal, struct err *err)
{
	struct err own;
	err = err ? err : &own;
	pthread_mutex_lock(&journal->mutex);
	int result = append_check(journal, NULL, 0, NULL, 0, err);
	if (result == 0 && !journal->postgres)
		result = seal_locked(journal, err);
	pthread_mutex_unlock(&journal->mutex);
	return result;
}

void journal_close(struct journal *journal)
{
	if (!journal)
		return;
	worker_stop(journal);
	journal_cache_drop(journal, 0);
	if (journal->state.failed) {
		segment_drop(journal->open);
	} else if (!journal->postgres) {
		/* Closing copies the log in: the head goes with it. A failure here is one of the next start. */
		(void)head_sync(journal);
		segment_close(journal->open, true);
	}
	head_close(journal);
	postgres_close(journal->postgres);
	journal_lock_release(journal);
	manifest_deinit(&journal->manifest);
	names_deinit(&journal->names);
	losses_deinit(&journal->losses);
	losses_deinit(&journal->accepted);
	pthread_mutex_destroy(&journal->mutex);
	free(journal->hashes);
	free(journal->folder);
	free(journal->path);
	free(journal);
}
