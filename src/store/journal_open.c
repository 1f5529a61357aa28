/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening, in this order: owner, lock, manifest, stray files, the open segment's end, its log copied in.
 *
 * What a failed sync of the last run left in the kernel's memory looks durable and is not. So the
 * write-ahead log is written over itself and synced before anything in it is believed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/journal_internal.h"
#include "store/snapshot.h"

void journal_file(const struct journal *journal, const char *name, char out[PATH_MAX])
{
	int size = snprintf(out, PATH_MAX, "%s/%s", journal->path, name);
	CHECK(size < PATH_MAX); /* the folder's length was checked */
}

void journal_segment_file(const struct journal *journal, uint32_t number, const char *suffix,
			  char out[PATH_MAX])
{
	int size =
		snprintf(out, PATH_MAX, "%s/%06" PRIu32 ".sqlite%s", journal->path, number, suffix);
	CHECK(size < PATH_MAX);
}

void journal_report(struct journal *journal, uint64_t seq, const char *format, ...)
{
	char text[ERR_TEXT_MAX];
	va_list args;
	journal->state.damaged = true;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!seq)
		losses_add(&journal->losses, 0, 0, text);
	if (journal->damaged_report)
		journal->damaged_report(journal->damaged_context, seq, text);
}

void journal_lost(struct journal *journal, uint64_t first, uint64_t last, const char *what)
{
	losses_add(&journal->losses, first, last, what);
	journal->state.set_aside += last - first + 1;
	if (first == last)
		journal_report(journal, first, "record %" PRIu64 ": %s", first, what);
	else
		journal_report(journal, first, "records %" PRIu64 " to %" PRIu64 ": %s", first,
			       last, what);
}

struct digest journal_prev_of(const struct journal *journal, uint32_t index)
{
	struct digest none = { 0 };
	return index == 0 ? none : journal->manifest.segments[index - 1].hash;
}

static int find_snapshot(void *context, const char *name)
{
	size_t length = strlen(name);
	bool *found = context;
	if (length > 5 && strcmp(name + length - 5, ".snap") == 0)
		*found = true;
	return 0;
}

/* A folder that was in use must have its journal: an empty one in its place would look like a fresh start. */
static int refuse_lost_journal(struct journal *journal, struct err *err)
{
	char path[PATH_MAX];
	bool found = false;
	if (snprintf(path, sizeof(path), "%s/snapshots", journal->folder) < (int)sizeof(path))
		(void)journal->io->list(journal->io, path, &found, find_snapshot);
	struct io_file *head;
	journal_file(journal, "head", path);
	if (journal->io->open(journal->io, path, O_RDONLY, 0, &head) == 0) {
		int64_t size = journal->io->size(journal->io, head);
		journal->io->close(journal->io, head);
		found = found || size > 0;
	}
	if (!found)
		return 0;
	return err_set(
		err, ERR_CORRUPT,
		"data folder \"%s\" was in use, and its journal is missing: %s/manifest is not there; put it back, restore a backup, choose an empty "
		"folder with --data, or start with --accept-loss, which goes on with the segments that are there, or with the newest snapshot alone",
		journal->folder, journal->path);
}

static int first_error(struct journal *journal, int error, const char *what, struct err *err)
{
	if (error == -ENOSPC || error == -EDQUOT)
		return err_set(
			err, ERR_UNAVAILABLE,
			"no space left to make a journal in \"%s\": free some, or choose another folder "
			"with --data",
			journal->folder);
	return err_errno(err, ERR_IO, -error, "cannot %s \"%s\"", what, journal->folder);
}

/*
 * A new journal: segment 1, synced with its folder, then the manifest that names it. Behind a snapshot whose journal is lost: segment 2,
 * and segment 1 stands for the records that are lost.
 */
static int journal_make(struct journal *journal, const struct snapshot_head *behind,
			struct err *err)
{
	char path[PATH_MAX];
	struct io *io = journal->io;
	struct segment_meta meta = { .number = 1, .first = 1 };
	manifest_deinit(&journal->manifest);
	randombytes_buf(journal->manifest.id, JOURNAL_ID_BYTES);
	if (behind) {
		struct manifest_segment *lost = manifest_add(&journal->manifest, 1, 1);
		lost->state = SEGMENT_DAMAGED;
		lost->last = behind->seq;
		lost->hash = behind->chain;
		meta.number = 2;
		meta.first = behind->seq + 1;
		meta.prev = behind->chain;
	}
	manifest_add(&journal->manifest, meta.number, meta.first);
	memcpy(meta.id, journal->manifest.id, JOURNAL_ID_BYTES);
	journal_segment_file(journal, meta.number, "", path);
	int result = segment_create(io, path, &meta, 2 * journal->wal_bytes, err);
	if (result == SEGMENT_FULL)
		return first_error(journal, -ENOSPC, "", err);
	if (result < 0)
		return result;
	int error = io->sync_folder(io, journal->path);
	if (error == 0) {
		journal_file(journal, "manifest", path);
		error = manifest_save(io, path, &journal->manifest);
	}
	return error < 0 ? first_error(journal, error, "make a journal in", err) : 0;
}

/* The journal is lost, and that is accepted. */
static int journal_make_behind(struct journal *journal, struct err *err)
{
	struct snapshot_head head;
	int result = snapshot_load(journal->folder, journal->io, UINT64_MAX, &head, NULL, NULL,
				   NULL, err);
	if (result < 0)
		return result;
	journal_report(journal, 0, "the journal is missing, and a new one begins%s",
		       result == SNAPSHOT_NONE ? "" : " behind the newest snapshot");
	return journal_make(journal, result == SNAPSHOT_NONE ? NULL : &head, err);
}

/* No manifest: nothing was ever here, or the first start did not come to its end, or it is lost. */
static int without_manifest(struct journal *journal, bool create, struct err *err)
{
	char path[PATH_MAX];
	struct segment *segment;
	struct err why;
	uint64_t last = 0;
	int result = refuse_lost_journal(journal, err);
	const bool lost = result < 0;
	if (lost && !(create && journal->loss == JOURNAL_LOSS_ACCEPT))
		return result;
	journal_segment_file(journal, 1, "", path);
	if (segment_open(journal->io, path, SEGMENT_READ_ONLY, &segment, &why) == 0) {
		result = segment_last(segment, UINT64_MAX, &last, &why);
		segment_drop(segment);
		if (result != SEGMENT_END)
			return manifest_rebuild(journal, err);
	}
	if (lost)
		return journal_make_behind(journal, err);
	if (!create)
		return err_set(
			err, ERR_NOT_FOUND,
			"data folder \"%s\" has no journal: `fairlead up --data %s` makes one",
			journal->folder, journal->folder);
	return journal_make(journal, NULL, err);
}

static int load_manifest(struct journal *journal, bool create, struct err *err)
{
	char path[PATH_MAX];
	journal_file(journal, "manifest", path);
	int result = manifest_load(journal->io, path, &journal->manifest, err);
	if (result < 0)
		return result;
	if (result == MANIFEST_NONE)
		return without_manifest(journal, create, err);
	if (result == 0 && manifest_is_foreign(journal)) {
		result = MANIFEST_BAD;
		err_set(err, ERR_CORRUPT, "%s is the manifest of another journal", path);
	}
	if (result == MANIFEST_BAD) {
		journal_report(journal, 0, "%s", err->text);
		quarantine_file(journal, "manifest");
		return manifest_rebuild(journal, err);
	}
	return 0;
}

/* The write-ahead log over itself: what a failed sync left in memory only is on disk after this. */
static int rewrite_wal(struct journal *journal, struct err *err)
{
	enum { PART = 1 << 20 };
	char path[PATH_MAX];
	struct io *io = journal->io;
	struct io_file *file;
	journal_segment_file(journal, manifest_last(&journal->manifest)->number, "-wal", path);
	int error = io->open(io, path, O_RDWR, 0, &file);
	if (error == -ENOENT)
		return 0;
	if (error < 0)
		return err_errno(err, ERR_IO, -error, "cannot open %s", path);
	char *part = malloc(PART);
	CHECK(part);
	int64_t at = 0, got;
	while ((got = io->read(io, file, part, PART, at)) > 0) {
		error = io->write(io, file, part, (size_t)got, at);
		if (error < 0)
			break;
		at += got;
	}
	free(part);
	if (error == 0)
		error = got < 0 ? (int)got : io->sync(io, file);
	io->close(io, file);
	return error < 0 ? err_errno(err, ERR_IO, -error, "cannot write %s", path) : 0;
}

/* Goes on behind a damaged segment: that one is closed as it is, a new one begins. */
static int begin_behind(struct journal *journal, struct err *err)
{
	char name[64], path[PATH_MAX];
	struct manifest_segment *last = manifest_last(&journal->manifest);
	snprintf(name, sizeof(name), "%06" PRIu32 ".sqlite-wal", last->number);
	quarantine_file(journal, name);
	segment_drop(journal->open);
	journal->open = NULL;
	last->state = SEGMENT_DAMAGED;
	last->last = journal->state.last_seq;
	last->hash = journal->state.last_hash;
	struct segment_meta meta = { .number = last->number + 1,
				     .first = last->last + 1,
				     .prev = last->hash };
	memcpy(meta.id, journal->manifest.id, JOURNAL_ID_BYTES);
	journal_segment_file(journal, meta.number, "", path);
	int result = segment_create(journal->io, path, &meta, 2 * journal->wal_bytes, err);
	if (result == SEGMENT_FULL)
		return first_error(journal, -ENOSPC, "", err);
	if (result < 0)
		return result;
	int error = journal->io->sync_folder(journal->io, journal->path);
	if (error < 0)
		return first_error(journal, error, "sync", err);
	manifest_add(&journal->manifest, meta.number, meta.first);
	journal->open_month = -1;
	return segment_open(journal->io, path, SEGMENT_READ_WRITE, &journal->open, err);
}

static int64_t file_bytes(struct journal *journal, const char *path)
{
	struct io_file *file;
	if (journal->io->open(journal->io, path, O_RDONLY, 0, &file) < 0)
		return 0;
	int64_t size = journal->io->size(journal->io, file);
	journal->io->close(journal->io, file);
	return size > 0 ? size : 0;
}

/* Sealed segments whose log was not folded in before the last run ended. */
static void finish_sealed_left(struct journal *journal)
{
	char path[PATH_MAX];
	for (uint32_t i = 0; i < journal->manifest.count; i++) {
		const struct manifest_segment *entry = &journal->manifest.segments[i];
		if (entry->state != SEGMENT_SEALED)
			continue;
		journal_segment_file(journal, entry->number, "-wal", path);
		if (file_bytes(journal, path) == 0)
			continue;
		struct segment *segment;
		struct err err;
		journal_segment_file(journal, entry->number, "", path);
		if (segment_open(journal->io, path, SEGMENT_READ_WRITE, &segment, &err) == 0)
			worker_hand_over(journal, segment);
	}
}

/* The open segment; ERR_CORRUPT: it is damaged or missing, or the file is another segment. */
static int open_last(struct journal *journal, struct err *err)
{
	char path[PATH_MAX], what[LOSS_TEXT_MAX];
	struct io_file *file;
	journal_segment_file(journal, manifest_last(&journal->manifest)->number, "", path);
	int error = journal->io->open(journal->io, path, O_RDONLY, 0, &file);
	if (error == -ENOENT)
		return err_set(err, ERR_CORRUPT, "%s is missing", path);
	if (error < 0)
		return err_errno(err, ERR_IO, -error, "cannot open %s", path);
	journal->io->close(journal->io, file);
	journal->open_bytes = file_bytes(journal, path);
	int result = segment_open(journal->io, path, SEGMENT_READ_WRITE, &journal->open, err);
	if (result < 0 ||
	    segment_is(journal, journal->manifest.count - 1, journal->open, what, sizeof(what)))
		return result;
	segment_drop(journal->open);
	journal->open = NULL;
	return err_set(err, ERR_CORRUPT, "%s", what);
}

static int open_writer(struct journal *journal, bool create, struct err *err)
{
	char path[PATH_MAX];
	bool damaged;
	int left;
	int result = load_manifest(journal, create, err);
	if (result == 0)
		result = journal_check_files(journal, err);
	if (result == 0)
		result = journal_adopt_strays(journal, err);
	if (result == 0)
		result = rewrite_wal(journal, err);
	if (result < 0)
		return result;
	journal_check(journal);
	result = open_last(journal, err);
	if (result < 0 && err->code != ERR_CORRUPT)
		return result;
	result = journal_inspect(journal, &damaged, err);
	if (result == 0)
		result = journal_judge(journal, &journal->losses, err);
	if (result == 0 && damaged)
		result = begin_behind(journal, err);
	else if (result == 0)
		result = segment_checkpoint(journal->open, &left, err);
	if (result < 0)
		return result;
	/* One whose folder could not be synced may be seen and not be on disk. It need not be written again:
	 * the first commit syncs that folder with its log, and until then nothing depends on it. */
	int error = 0;
	journal_file(journal, "manifest", path);
	if (journal->state.damaged)
		error = manifest_save(journal->io, path, &journal->manifest);
	if (error < 0)
		return first_error(journal, error, "write the manifest in", err);
	error = head_write(journal);
	if (error == 0)
		error = head_sync(journal);
	if (error < 0 && error != -ENOSPC && error != -EDQUOT)
		return first_error(journal, error, "write the head in", err);
	reserve_restore(journal);
	return journal->reserve_problem[0]
		       ? err_set(err, ERR_CONFLICT, "%s", journal->reserve_problem)
		       : 0;
}

static int open_reader(struct journal *journal, struct err *err)
{
	struct segment *segment;
	struct journal_head head;
	struct digest none = { 0 };
	int result = load_manifest(journal, false, err);
	if (result == 0)
		result = journal_check_files(journal, err);
	if (result < 0)
		return result;
	bool has_head = head_read(journal, &head) == 0;
	const struct manifest_segment *entry = manifest_last(&journal->manifest);
	journal->state.last_seq = entry->first - 1;
	journal->state.last_hash = journal->manifest.count > 1
					   ? journal_prev_of(journal, journal->manifest.count - 1)
					   : none;
	result = journal_segment(journal, entry->number, &segment, err);
	if (result < 0 && err->code != ERR_CORRUPT)
		return result;
	struct segment_row row;
	uint64_t last, end;
	if (result == 0 && segment_end(segment, &last, &end, err) == 0 &&
	    segment_get(segment, last, &row, err) == 0 && row.good) {
		journal->state.last_seq = last;
		journal->state.last_hash = row.hash;
		journal->state.last_time_ms = row.record.time_ms;
	}
	for (uint64_t seq = journal->state.last_seq + 1; has_head && seq <= head.seq; seq++) {
		journal_lost(journal, seq, seq, "it is missing");
	}
	return 0;
}

static int make_folder(struct journal *journal, const char *path, struct err *err)
{
	char above[PATH_MAX];
	int error = journal->io->mkdir(journal->io, path, 0700);
	/* One that is there may have come from a start whose sync failed. */
	if (error == 0 || error == -EEXIST) {
		io_folder_of(path, above, sizeof(above));
		error = journal->io->sync_folder(journal->io, above);
	}
	return error < 0 ? err_errno(err, ERR_IO, -error, "cannot make folder \"%s\"", path) : 0;
}

static int open_all(struct journal *journal, const struct journal_options *options, struct err *err)
{
	const bool create = options->create;
	char *address = NULL;
	int result = 0;
	if (create && !journal->read_only)
		result = make_folder(journal, journal->folder, err);
	if (result == 0)
		result = journal_owner_check(journal, err);
	if (result == 0 && create && !journal->read_only)
		result = make_folder(journal, journal->path, err);
	if (result < 0)
		return result;
	struct err why;
	int there = journal->io->list(journal->io, journal->path, &(bool){ false }, find_snapshot);
	if (there < 0) {
		err_errno(&why, ERR_NOT_FOUND, -there, "data folder \"%s\" has no journal",
			  journal->folder);
		return err_set(err, there == -ENOENT ? ERR_NOT_FOUND : ERR_IO,
			       "%s: `fairlead up --data %s` makes one", why.text, journal->folder);
	}
	result = journal_lock_take(journal, err);
	if (result == 0)
		result = accepted_load(journal->io, journal->folder, &journal->accepted, err);
	if (result == ACCEPTED_BAD) {
		journal_report(journal, 0, "%s", err->text);
		quarantine_file(journal, "accepted");
		result = 0;
	}
	if (result == 0)
		result = remote_address(journal, options, &address, err);
	if (result == 0 && address)
		result = remote_open(journal, options, address, err);
	else if (result == 0)
		result = journal->read_only ? open_reader(journal, err)
					    : open_writer(journal, create, err);
	free(address);
	return result;
}

int journal_open(const struct journal_options *options, struct journal **ret, struct err *err)
{
	struct err own;
	err = err ? err : &own;
	size_t length = strlen(options->folder);
	if (length == 0 || length > PATH_MAX - 128)
		return err_set(err, ERR_INVALID,
			       "the name of the data folder has %zu bytes; 1 to %d are possible",
			       length, PATH_MAX - 128);
	struct journal *journal = calloc(1, sizeof(*journal));
	CHECK(journal);
	journal->io = options->io ? options->io : io_real();
	journal->folder = strdup(options->folder);
	int size = asprintf(&journal->path, "%s/journal", options->folder);
	CHECK(journal->folder && size > 0);
	journal->segment_bytes =
		options->segment_bytes ? options->segment_bytes : JOURNAL_SEGMENT_BYTES;
	journal->reserve_bytes =
		options->reserve_bytes ? options->reserve_bytes : JOURNAL_RESERVE_BYTES;
	journal->wal_bytes = options->wal_bytes ? options->wal_bytes : JOURNAL_WAL_BYTES;
	journal->loss = options->loss;
	journal->read_only = options->read_only;
	journal->inline_checkpoint = options->inline_checkpoint || options->read_only;
	journal->damaged_context = options->damaged_context;
	journal->damaged_report = options->damaged;
	journal->lock_fd = -1;
	journal->open_month = -1;
	pthread_mutex_init(&journal->mutex, NULL);
	int result = open_all(journal, options, err);
	worker_start(journal);
	if (result < 0) {
		if (options->refused) {
			*options->refused = journal->losses;
			journal->losses = (struct losses){ 0 };
		}
		/* Nothing of a journal that did not open may be touched on the way out. */
		journal->state.failed = true;
		journal_close(journal);
		return result;
	}
	if (!journal->read_only && !journal->postgres) {
		pthread_mutex_lock(&journal->mutex);
		finish_sealed_left(journal);
		pthread_mutex_unlock(&journal->mutex);
	}
	*ret = journal;
	return 0;
}
