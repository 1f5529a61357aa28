/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done when a journal is not as it was left. Three rules: whatever can be read is read; nothing is
 * written into a file that is damaged, a new segment goes on behind it; the bytes are kept in quarantine/.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "store/guard.h"
#include "store/journal_internal.h"

enum { QUARANTINE_FILE_MAX = 256 << 20 };

/* The path of quarantine/NAME in the data folder, made on first use; false when the file is there already or there can be none. */
static bool quarantine_path(struct journal *journal, const char *name, char path[PATH_MAX])
{
	struct io *io = journal->io;
	struct io_file *file;
	if (journal->read_only ||
	    snprintf(path, PATH_MAX, "%s/quarantine", journal->folder) >= PATH_MAX)
		return false;
	if (io->mkdir(io, path, 0700) == 0)
		(void)io->sync_folder(io, journal->folder);
	if (snprintf(path, PATH_MAX, "%s/quarantine/%s", journal->folder, name) >= PATH_MAX)
		return false;
	if (io->open(io, path, O_RDONLY, 0, &file) < 0)
		return true;
	io->close(io, file);
	return false;
}

/* Durable before the caller goes on: a damaged manifest is replaced next, and then this is the only copy. Whole or not there: the
 * next start writes only what it doesn't find. */
static void quarantine_write(struct journal *journal, const char *name, const void *data,
			     size_t size)
{
	char path[PATH_MAX];
	if (!quarantine_path(journal, name, path))
		return;
	if (io_replace_file(journal->io, path, data, size, 0600) < 0) {
		/* best effort: what is damaged is reported in any case */
	}
}

void quarantine_row(struct journal *journal, const struct segment_row *row)
{
	AUTO_BUF text = BUF_INIT;
	char name[64], hex[DIGEST_HEX_MAX];
	const struct record *record = &row->record;
	snprintf(name, sizeof(name), "record-%020" PRIu64, record->seq);
	buf_addf(&text,
		 "seq %" PRIu64 "\ntime_ms %" PRId64 "\nkind %" PRIu32
		 "\nmust_understand %d\nhash %s\nwrong %s\nbytes %zu\n\n",
		 record->seq, record->time_ms, record->kind, record->must_understand,
		 digest_format(&row->hash, hex),
		 row->wrong ? row->wrong : "its hash does not follow from the record before it",
		 record->size);
	buf_add(&text, record->text, record->size);
	quarantine_write(journal, name, text.data, text.size);
}

void quarantine_file(struct journal *journal, const char *name)
{
	char path[PATH_MAX];
	char *data;
	size_t size;
	journal_file(journal, name, path);
	if (journal->read_only ||
	    io_read_file(journal->io, path, QUARANTINE_FILE_MAX, &data, &size) < 0)
		return;
	quarantine_write(journal, name, data, size);
	free(data);
}

/* ---- the manifest from the segments ---- */

struct numbers {
	uint32_t highest;
	uint32_t count;
};

/* The number of a segment file's name, 0 for any other name. */
static uint32_t segment_number(const char *name)
{
	uint32_t number = 0;
	for (int i = 0; i < 6; i++) {
		if (name[i] < '0' || name[i] > '9')
			return 0;
		number = number * 10 + (uint32_t)(name[i] - '0');
	}
	return strcmp(name + 6, ".sqlite") == 0 ? number : 0;
}

static int count_segment(void *context, const char *name)
{
	struct numbers *numbers = context;
	uint32_t number = segment_number(name);
	if (number == 0)
		return 0;
	numbers->count++;
	if (number > numbers->highest)
		numbers->highest = number;
	return 0;
}

static int segments_there(struct journal *journal, struct numbers *ret, struct err *err)
{
	*ret = (struct numbers){ 0 };
	int result = journal->io->list(journal->io, journal->path, ret, count_segment);
	if (result < 0)
		return err_errno(err, ERR_IO, -result, "cannot list %s", journal->path);
	return 0;
}

/* What one file says of itself. */
struct found {
	bool readable, has_meta;
	struct segment_meta meta;
	uint64_t last; /* 0: no records */
};

static void look_into(struct journal *journal, uint32_t number, struct found *ret)
{
	char path[PATH_MAX];
	struct segment *segment;
	struct err err;
	*ret = (struct found){ 0 };
	journal_segment_file(journal, number, "", path);
	if (segment_open(journal->io, path, SEGMENT_READ_ONLY, &segment, &err) < 0)
		return;
	ret->has_meta = segment_meta(segment, &ret->meta, &err) == 0;
	int result = segment_last(segment, UINT64_MAX, &ret->last, &err);
	ret->readable = result == 0 || result == SEGMENT_END;
	segment_drop(segment);
}

/* Closes the entry before a segment that says where it begins. */
static void seal_before(struct journal *journal, const struct segment_meta *next)
{
	struct manifest_segment *before = manifest_last(&journal->manifest);
	if (!before)
		return;
	before->last = next->first - 1;
	before->hash = next->prev;
	if (before->state == SEGMENT_OPEN)
		before->state = SEGMENT_SEALED;
}

int manifest_rebuild(struct journal *journal, struct err *err)
{
	struct manifest *manifest = &journal->manifest;
	struct numbers there;
	if (segments_there(journal, &there, err) < 0)
		return -(int)err->code;
	if (there.count == 0 || there.count != there.highest)
		return err_set(
			err, ERR_CORRUPT,
			"%s has no usable manifest, and its %u segment files are not a row from 1 to %u: restore the data folder "
			"from a backup",
			journal->path, there.count, there.highest);
	manifest_deinit(manifest);
	uint64_t reached = 0;
	for (uint32_t number = 1; number <= there.highest; number++) {
		struct found found;
		look_into(journal, number, &found);
		if (!found.has_meta || found.meta.number != number) {
			struct manifest_segment *before = manifest_last(manifest);
			if (before && before->state == SEGMENT_OPEN)
				return err_set(
					err, ERR_CORRUPT,
					"%s has no usable manifest, and %06u.sqlite cannot be read: restore the data folder from a "
					"backup",
					journal->path, number);
			manifest_add(manifest, number, reached + 1)->state = SEGMENT_DAMAGED;
			continue;
		}
		if (manifest->count == 0 || number == there.highest)
			memcpy(manifest->id, found.meta.id, JOURNAL_ID_BYTES);
		seal_before(journal, &found.meta);
		manifest_add(manifest, number, found.meta.first);
		reached = found.last;
	}
	if (manifest_last(manifest)->state != SEGMENT_OPEN)
		return err_set(
			err, ERR_CORRUPT,
			"%s has no usable manifest, and its last segment cannot be read: restore the data "
			"folder from a backup",
			journal->path);
	journal_report(journal, 0, "the manifest was rebuilt from the segments");
	return 0;
}

int journal_adopt_strays(struct journal *journal, struct err *err)
{
	struct manifest *manifest = &journal->manifest;
	struct numbers there;
	if (segments_there(journal, &there, err) < 0)
		return -(int)err->code;
	for (uint32_t number = manifest->count + 1; number <= there.highest; number++) {
		struct found found;
		look_into(journal, number, &found);
		bool ours = found.has_meta &&
			    memcmp(found.meta.id, manifest->id, JOURNAL_ID_BYTES) == 0;
		if (found.last && ours && found.meta.number == number &&
		    number == manifest->count + 1) {
			seal_before(journal, &found.meta);
			manifest_add(manifest, number, found.meta.first);
			journal_report(
				journal, 0,
				"segment %06u.sqlite was not in the manifest and is taken in",
				number);
		} else if (found.last) {
			return err_set(
				err, ERR_CORRUPT,
				"%s/%06u.sqlite is not in the manifest, holds records and does not follow the last segment: move it "
				"elsewhere, or restore the data folder from a backup",
				journal->path, number);
		} else if (!journal->read_only) {
			char path[PATH_MAX];
			journal_segment_file(journal, number, "-wal", path);
			(void)journal->io->unlink(journal->io, path);
			journal_segment_file(journal, number, "", path);
			(void)journal->io->unlink(journal->io, path);
		}
	}
	return 0;
}

/* ---- the open segment ---- */

struct tail {
	uint64_t last; /* 0: none could be found */
	struct digest hash;
	int64_t time_ms;
	bool damaged;
};

static void tail_bad(struct journal *journal, struct tail *tail, uint64_t seq, const char *what)
{
	tail->damaged = true;
	journal_lost(journal, seq, seq, what);
}

/* The last records, each by itself and each against the one before. */
static void check_tail(struct journal *journal, uint64_t first, uint64_t last, struct tail *tail)
{
	bool known = last - first < TAIL_CHECKED;
	struct digest prev = journal_prev_of(journal, journal->manifest.count - 1);
	uint64_t from = known ? first : last - TAIL_CHECKED + 1;
	for (uint64_t seq = from; seq <= last; seq++) {
		struct segment_row row;
		struct err err;
		int got = segment_get(journal->open, seq, &row, &err);
		if (got != 0) {
			tail_bad(journal, tail, seq,
				 got == SEGMENT_END ? "it is missing" : "it cannot be read");
			known = false;
			continue;
		}
		struct digest expected = record_hash(&prev, &row.record);
		if (!row.good || (known && !digest_equal(&expected, &row.hash))) {
			quarantine_row(journal, &row);
			tail_bad(journal, tail, seq,
				 row.good ? "its hash does not follow from the record before it"
					  : row.wrong);
		}
		prev = row.hash;
		known = row.good;
		tail->hash = row.hash;
		tail->time_ms = row.record.time_ms;
	}
}

static int month_of_first(struct journal *journal, uint64_t first)
{
	struct segment_row row;
	struct err err;
	if (segment_get(journal->open, first, &row, &err) == 0 && row.good)
		return journal_month(row.record.time_ms);
	return -1;
}

/* The time of the last record before the open segment. */
static int64_t time_before(struct journal *journal, uint64_t seq)
{
	struct segment *segment;
	struct segment_row row;
	struct err err;
	uint32_t count = journal->manifest.count;
	if (count < 2 || journal_segment(journal, journal->manifest.segments[count - 2].number,
					 &segment, &err) < 0)
		return 0;
	int64_t time_ms =
		segment_get(segment, seq, &row, &err) == 0 && row.good ? row.record.time_ms : 0;
	return time_ms;
}

int journal_inspect(struct journal *journal, bool *ret_damaged, struct err *err)
{
	const struct manifest_segment *entry = manifest_last(&journal->manifest);
	struct tail tail = { .last = entry->first - 1,
			     .hash = journal_prev_of(journal, journal->manifest.count - 1) };
	struct journal_head head;
	const int head_is = head_read(journal, &head);
	bool has_head = head_is == 0;
	uint64_t good = 0, end = 0;
	if (head_is == HEAD_BAD)
		journal_report(journal, 0, "journal/head is damaged, and is written again");
	int result = journal->open ? segment_end(journal->open, &good, &end, err) : -1;
	if (result == SEGMENT_BUSY)
		return err_set(err, ERR_UNAVAILABLE, "%s is locked by another program: try again",
			       segment_path(journal->open));
	if (result < 0) {
		tail.damaged = true;
		journal_report(journal, 0, "the open segment cannot be read: %s", err->text);
	} else if (result == 0 && good >= entry->first) {
		tail.last = good;
		check_tail(journal, entry->first, good, &tail);
		journal->open_month = month_of_first(journal, entry->first);
	} else {
		tail.time_ms = time_before(journal, tail.last);
	}
	/* Bad rows at the end: the head knows better how many there were, when it is not older. */
	bool head_leads = has_head && head.seq >= tail.last;
	for (uint64_t seq = tail.last + 1; result == 0 && !head_leads && seq <= end; seq++)
		tail_bad(journal, &tail, seq, "it cannot be read");
	if (result == 0 && end > tail.last) {
		tail.damaged = true;
		if (!head_leads)
			tail.last = end;
	}
	if (has_head && head.seq == tail.last && !digest_equal(&head.hash, &tail.hash) &&
	    !tail.damaged)
		tail_bad(journal, &tail, head.seq, "it is not the one that was acknowledged");
	for (uint64_t seq = tail.last + 1; has_head && seq <= head.seq; seq++)
		tail_bad(journal, &tail, seq, "it is missing");
	if (has_head && head.seq >= tail.last) {
		tail.last = head.seq;
		tail.hash = head.hash;
		tail.time_ms = head.time_ms;
	}
	journal->state.last_seq = tail.last;
	journal->state.last_hash = tail.hash;
	journal->state.last_time_ms = tail.time_ms;
	*ret_damaged = tail.damaged;
	return 0;
}
