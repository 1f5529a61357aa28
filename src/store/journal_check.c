/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a journal is lost, and whether a daemon may start with that.
 *
 * At each opening for writing every sealed segment is opened once: its header, its place in the journal, its first record, and
 * its last one, whose hash the manifest has. That takes about a millisecond a segment. The records between are
 * verified in the background (daemon/damage.c).
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

enum { REFUSED_SHOWN = 3 };

struct losses *journal_losses(struct journal *journal)
{
	return &journal->losses;
}

const struct losses *journal_accepted(const struct journal *journal)
{
	return &journal->accepted;
}

int journal_accept(struct journal *journal, const struct losses *all, struct err *err)
{
	return accepted_save(journal->io, journal->folder, &journal->accepted, all, err);
}

/* ---- refusing ---- */

static void name_losses(const struct losses *all, const struct losses *accepted, struct buf *out)
{
	unsigned shown = 0, more = 0;
	for (size_t i = 0; i < all->count; i++) {
		if (!all->items[i].first || losses_accepted(&all->items[i], accepted))
			continue;
		if (shown == REFUSED_SHOWN) {
			more++;
			continue;
		}
		if (shown++)
			buf_adds(out, "; ");
		loss_text(&all->items[i], out);
	}
	if (more)
		buf_addf(out, "; and %u more range%s", more, more == 1 ? "" : "s");
}

static uint64_t last_of(const struct losses *all)
{
	uint64_t last = 0;
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].last > last)
			last = all->items[i].last;
	return last;
}

int journal_judge(struct journal *journal, const struct losses *all, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	uint64_t lost = losses_records(all, &journal->accepted), total = last_of(all);
	if (journal->state.last_seq > total)
		total = journal->state.last_seq;
	if (journal->loss != JOURNAL_LOSS_LITTLE || lost <= JOURNAL_LOSS_FLOOR ||
	    lost <= total / 100)
		return 0;
	name_losses(all, &journal->accepted, &text);
	return err_set(
		err, ERR_CORRUPT,
		"%" PRIu64 " of %" PRIu64
		" records in %s are lost (%.500s): put the files back, restore the data folder from a "
		"backup, or start with --accept-loss, which goes on without these records",
		lost, total, journal->path, buf_text(&text));
}

/* ---- segments ---- */

bool segment_is(struct journal *journal, uint32_t index, struct segment *segment, char *what,
		size_t room)
{
	const struct manifest_segment *entry = &journal->manifest.segments[index];
	struct segment_meta meta;
	struct err err;
	if (segment_meta(segment, &meta, &err) != 0)
		snprintf(what, room, "%s", err.text);
	else if (memcmp(meta.id, journal->manifest.id, JOURNAL_ID_BYTES) != 0)
		snprintf(what, room, "%06" PRIu32 ".sqlite belongs to another journal",
			 entry->number);
	else if (meta.number != entry->number || meta.first != entry->first)
		snprintf(what, room,
			 "%06" PRIu32 ".sqlite holds segment %" PRIu32
			 ", which begins at record %" PRIu64,
			 entry->number, meta.number, meta.first);
	else
		return true;
	return false;
}

bool manifest_is_foreign(struct journal *journal)
{
	unsigned others = 0, ours = 0;
	uint8_t id[JOURNAL_ID_BYTES];
	for (uint32_t i = 0; i < journal->manifest.count; i++) {
		char path[PATH_MAX];
		struct segment *segment;
		struct segment_meta meta;
		struct err err;
		journal_segment_file(journal, journal->manifest.segments[i].number, "", path);
		if (segment_open(journal->io, path, SEGMENT_READ_ONLY, &segment, &err) != 0)
			continue;
		bool read = segment_meta(segment, &meta, &err) == 0;
		segment_drop(segment);
		if (!read)
			continue;
		if (memcmp(meta.id, journal->manifest.id, JOURNAL_ID_BYTES) == 0)
			return false;
		ours += others && memcmp(meta.id, id, JOURNAL_ID_BYTES) != 0;
		memcpy(id, meta.id, JOURNAL_ID_BYTES);
		others++;
	}
	return others > 0 && ours == 0;
}

static void name_file(const struct manifest_segment *entry, const char *why, char *out, size_t room)
{
	snprintf(out, room, "%06" PRIu32 ".sqlite: %.280s", entry->number, why);
}

static void check_first(struct journal *journal, const struct manifest_segment *entry,
			struct segment *segment)
{
	struct segment_row row;
	struct err err;
	char what[LOSS_TEXT_MAX];
	int got = segment_get(segment, entry->first, &row, &err);
	if ((got == 0 && row.good) || got == SEGMENT_BUSY)
		return;
	name_file(entry,
		  got == 0             ? row.wrong
		  : got == SEGMENT_END ? "its first record is missing"
				       : "its first record cannot be read",
		  what, sizeof(what));
	journal_lost(journal, entry->first, entry->first, what);
}

static void check_last(struct journal *journal, const struct manifest_segment *entry,
		       struct segment *segment)
{
	struct segment_row row;
	struct err err;
	char what[LOSS_TEXT_MAX];
	uint64_t good = entry->first - 1, end;
	int got = segment_get(segment, entry->last, &row, &err);
	if (got == SEGMENT_BUSY)
		return;
	if (got == 0 && row.good && digest_equal(&row.hash, &entry->hash))
		return;
	if (got == 0 && row.good) {
		name_file(entry, "its last record is not the one that the manifest has the hash of",
			  what, sizeof(what));
		journal_lost(journal, entry->last, entry->last, what);
		return;
	}
	if (segment_end(segment, &good, &end, &err) != 0 || good < entry->first - 1 ||
	    good >= entry->last)
		good = entry->last - 1;
	name_file(entry, "its last records are missing or cannot be read", what, sizeof(what));
	journal_lost(journal, good + 1, entry->last, what);
}

static int64_t size_of(struct journal *journal, const char *path, uint8_t *head, size_t room)
{
	struct io_file *file;
	if (journal->io->open(journal->io, path, O_RDONLY, 0, &file) < 0)
		return -1;
	int64_t size = journal->io->size(journal->io, file);
	if (room && journal->io->read(journal->io, file, head, room, 0) != (int64_t)room)
		size = -1;
	journal->io->close(journal->io, file);
	return size;
}

/*
 * A file that lacks its end can still be opened, and what was there, such as the index of bodies, is read as zeroes. The header has the
 * number of pages, which holds once the log is copied in.
 */
static void check_size(struct journal *journal, const struct manifest_segment *entry)
{
	char path[PATH_MAX], what[LOSS_TEXT_MAX];
	uint8_t head[32] = { 0 };
	journal_segment_file(journal, entry->number, "-wal", path);
	if (size_of(journal, path, NULL, 0) > 0)
		return;
	journal_segment_file(journal, entry->number, "", path);
	int64_t size = size_of(journal, path, head, sizeof(head));
	int64_t page = head[16] * 256 + head[17],
		pages = (int64_t)(get_be64(head + 24) & UINT32_MAX);
	page = page == 1 ? 65536 : page;
	if (size < 0 || size >= page * pages)
		return;
	snprintf(what, sizeof(what),
		 "%06" PRIu32 ".sqlite has %" PRId64 " of the %" PRId64
		 " bytes that it was written with",
		 entry->number, size, page * pages);
	journal_report(journal, 0, "%s", what);
}

static void check_sealed(struct journal *journal, uint32_t index)
{
	const struct manifest_segment *entry = &journal->manifest.segments[index];
	char path[PATH_MAX], what[LOSS_TEXT_MAX], why[LOSS_TEXT_MAX];
	struct segment *segment;
	struct err err;
	journal_segment_file(journal, entry->number, "", path);
	int result = segment_open(journal->io, path, SEGMENT_READ_ONLY, &segment, &err);
	if (result < 0 && journal->read_only)
		result = segment_open(journal->io, path, SEGMENT_IMMUTABLE, &segment, &err);
	if (result < 0) {
		name_file(entry, err.text, what, sizeof(what));
		journal_lost(journal, entry->first, entry->last, what);
		return;
	}
	if (!segment_is(journal, index, segment, why, sizeof(why))) {
		journal_lost(journal, entry->first, entry->last, why);
	} else {
		if (entry->last > entry->first)
			check_first(journal, entry, segment);
		check_last(journal, entry, segment);
		check_size(journal, entry);
	}
	segment_drop(segment);
}

static bool is_there(struct journal *journal, uint32_t number, int *ret_error)
{
	char path[PATH_MAX];
	struct io_file *file;
	journal_segment_file(journal, number, "", path);
	*ret_error = journal->io->open(journal->io, path, O_RDONLY, 0, &file);
	if (*ret_error == 0)
		journal->io->close(journal->io, file);
	return *ret_error != -ENOENT;
}

void journal_check(struct journal *journal)
{
	int error;
	if (journal->postgres)
		return;
	for (uint32_t i = 0; i < journal->manifest.count; i++) {
		const struct manifest_segment *entry = &journal->manifest.segments[i];
		if (entry->state != SEGMENT_OPEN && entry->last >= entry->first &&
		    is_there(journal, entry->number, &error))
			check_sealed(journal, i);
	}
}

int journal_check_files(struct journal *journal, struct err *err)
{
	for (uint32_t i = 0; i < journal->manifest.count; i++) {
		const struct manifest_segment *entry = &journal->manifest.segments[i];
		char path[PATH_MAX];
		int error;
		if (is_there(journal, entry->number, &error)) {
			if (error < 0)
				return err_errno(err, ERR_IO, -error,
						 "cannot open segment %06" PRIu32 " of %s",
						 entry->number, journal->path);
			continue;
		}
		const struct loss range = { .first = entry->first, .last = entry->last };
		const bool known = entry->state != SEGMENT_OPEN && entry->last >= entry->first &&
				   losses_accepted(&range, &journal->accepted);
		if (!known && journal->loss != JOURNAL_LOSS_ACCEPT) {
			journal_segment_file(journal, entry->number, "", path);
			return err_set(
				err, ERR_CORRUPT,
				"%s is missing, and the manifest says that it holds records: put it back, restore the data folder "
				"from a backup, or start with --accept-loss, which goes on without these records",
				path);
		}
		if (entry->state != SEGMENT_OPEN && entry->last >= entry->first) {
			char what[LOSS_TEXT_MAX];
			name_file(entry, "the file is missing", what, sizeof(what));
			journal_lost(journal, entry->first, entry->last, what);
		}
	}
	return 0;
}

/* ---- bodies ---- */

struct bodies {
	struct body_name {
		int64_t id;
		struct digest digest;
	} *names;
	size_t count, room;
};

static void take_name(void *context, int64_t id, const struct digest *digest)
{
	struct bodies *bodies = context;
	if (bodies->count == bodies->room) {
		bodies->room = bodies->room ? 2 * bodies->room : 256;
		bodies->names = reallocarray(bodies->names, bodies->room, sizeof(*bodies->names));
		CHECK(bodies->names);
	}
	bodies->names[bodies->count++] = (struct body_name){ .id = id, .digest = *digest };
}

static void check_body(const struct manifest_segment *entry, struct segment *segment,
		       const struct body_name *name, struct losses *ret)
{
	char hex[DIGEST_HEX_MAX], what[LOSS_TEXT_MAX];
	void *data = NULL;
	size_t size = 0;
	struct err err;
	int got = segment_blob(segment, name->id, &data, &size, &err);
	if (got == SEGMENT_END || got == SEGMENT_BUSY)
		return; /* erased; or in use, and the next check sees it */
	struct digest is = got == 0 ? digest_of(data, size) : name->digest;
	if (got != 0 || !digest_equal(&is, &name->digest)) {
		snprintf(what, sizeof(what), "%06" PRIu32 ".sqlite: body %.16s %s", entry->number,
			 digest_format(&name->digest, hex),
			 got != 0 ? "cannot be read" : "is not the one that was written");
		losses_add(ret, 0, 0, what);
	}
	free(data);
}

void journal_check_bodies(struct journal *journal, uint32_t number, struct losses *ret,
			  int (*pause)(void *context), void *context)
{
	const struct manifest_segment entry = journal->manifest.segments[number - 1];
	struct bodies bodies = { 0 };
	struct segment *segment;
	struct err err;
	char what[LOSS_TEXT_MAX];
	if (journal_segment(journal, number, &segment, &err) < 0)
		return; /* its records are reported */
	int result = segment_names(segment, 0, &bodies, take_name, &err);
	if (result < 0) {
		name_file(&entry, "its list of bodies cannot be read", what, sizeof(what));
		losses_add(ret, 0, 0, what);
	}
	for (size_t i = 0; i < bodies.count; i++) {
		if (pause(context) != 0 || journal_segment(journal, number, &segment, &err) < 0)
			break;
		check_body(&entry, segment, &bodies.names[i], ret);
	}
	free(bodies.names);
}
