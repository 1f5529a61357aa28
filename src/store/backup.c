/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a data folder in use, as one tar archive (ustar).
 *
 * The order makes it consistent: snapshots first, then the manifest, then the segments, each copied in one read
 * transaction. So no snapshot is newer than the journal beside it, and the open segment of the manifest is a
 * prefix of what the daemon has. The head file and the lock belong to the running daemon and are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "store/io.h"
#include "store/journal.h"
#include "store/manifest.h"
#include "store/segment.h"

enum { TAR_BLOCK = 512, PART = 1 << 20 };

struct backup {
	struct io *io;
	const char *folder, *file;
	char temporary[PATH_MAX],
		copy[PATH_MAX]; /* the archive until it is whole; a segment on its way into it */
	struct io_file *archive;
	int64_t offset;
	struct manifest manifest;
	char *part;
	struct err *err;
};

static int write_failed(struct backup *b, int error)
{
	return err_errno(b->err, ERR_IO, -error, "cannot write the backup %s", b->file);
}

static int archive_write(struct backup *b, const void *data, size_t size)
{
	int error = b->io->write(b->io, b->archive, data, size, b->offset);
	b->offset += (int64_t)size;
	return error < 0 ? write_failed(b, error) : 0;
}

static void put_octal(char *out, size_t digits, uint64_t value)
{
	out[digits] = '\0';
	while (digits--) {
		out[digits] = (char)('0' + (value & 7));
		value >>= 3;
	}
}

/* One header: a folder when the name ends in '/', else a file of `size` bytes. */
static int archive_header(struct backup *b, const char *name, int64_t size)
{
	char block[TAR_BLOCK] = { 0 };
	size_t length = strlen(name);
	bool folder = name[length - 1] == '/';
	if (size >= (int64_t)8 << 30)
		return err_set(b->err, ERR_TOO_LARGE,
			       "%s/%s is over 8 GiB and cannot be part of a backup archive",
			       b->folder, name);
	CHECK(length < 100);
	memcpy(block, name, length);
	put_octal(block + 100, 7, folder ? 0700 : 0600);
	put_octal(block + 108, 7, 0);
	put_octal(block + 116, 7, 0);
	put_octal(block + 124, 11, (uint64_t)size);
	put_octal(block + 136, 11, (uint64_t)(clock_wall_ms() / 1000));
	memset(block + 148, ' ', 8);
	block[156] = folder ? '5' : '0';
	memcpy(block + 257, "ustar", 6);
	memcpy(block + 263, "00", 2);
	unsigned sum = 0;
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)block[i];
	put_octal(block + 148, 6, sum);
	return archive_write(b, block, TAR_BLOCK);
}

static int archive_pad(struct backup *b)
{
	static const char zeroes[TAR_BLOCK];
	size_t over = (size_t)(b->offset % TAR_BLOCK);
	return over ? archive_write(b, zeroes, TAR_BLOCK - over) : 0;
}

/* The file `path` under `name`; *ret_missing when there is none. */
static int archive_file(struct backup *b, const char *path, const char *name, bool *ret_missing)
{
	struct io_file *file;
	int error = b->io->open(b->io, path, O_RDONLY, 0, &file);
	*ret_missing = error == -ENOENT;
	if (error < 0)
		return *ret_missing ? 0
				    : err_errno(b->err, ERR_IO, -error,
						"cannot read %s for the backup", path);
	int64_t size = b->io->size(b->io, file), done = 0;
	int result = size < 0 ? err_errno(b->err, ERR_IO, (int)-size,
					  "cannot read %s for the backup", path)
			      : archive_header(b, name, size);
	while (result == 0 && done < size) {
		size_t want = size - done < PART ? (size_t)(size - done) : PART;
		int64_t got = b->io->read(b->io, file, b->part, want, done);
		if (got != (int64_t)want) {
			result = err_errno(b->err, ERR_IO, got < 0 ? (int)-got : EIO,
					   "cannot read %s for the backup", path);
			break;
		}
		result = archive_write(b, b->part, want);
		done += got;
	}
	b->io->close(b->io, file);
	return result == 0 ? archive_pad(b) : result;
}

static int take_snapshot(void *context, const char *name)
{
	struct backup *b = context;
	size_t length = strlen(name);
	char path[PATH_MAX], inside[100];
	bool missing;
	if (length < 6 || length > 80 || strcmp(name + length - 5, ".snap") != 0)
		return 0;
	snprintf(inside, sizeof(inside), "snapshots/%s", name);
	if (snprintf(path, sizeof(path), "%s/%s", b->folder, inside) >= (int)sizeof(path))
		return 0;
	/* One that was dropped meanwhile was older than those that are left. */
	return archive_file(b, path, inside, &missing);
}

static int add_key_and_snapshots(struct backup *b)
{
	char path[PATH_MAX];
	bool missing;
	int result = archive_header(b, "keys/", 0);
	if (snprintf(path, sizeof(path), "%s/keys/body.key", b->folder) >= (int)sizeof(path))
		return err_set(b->err, ERR_INVALID, "the name of the data folder is too long");
	if (result == 0)
		result = archive_file(b, path, "keys/body.key", &missing);
	if (result == 0)
		result = archive_header(b, "snapshots/", 0);
	snprintf(path, sizeof(path), "%s/snapshots", b->folder);
	if (result == 0) {
		int listed = b->io->list(b->io, path, b, take_snapshot);
		/* A failure of take_snapshot has its text; other negatives are those of the listing. */
		if (listed < 0 && listed != -ENOENT)
			result = b->err->code ? -(int)b->err->code
					      : err_errno(b->err, ERR_IO, -listed, "cannot list %s",
							  path);
	}
	return result;
}

static int add_segment(struct backup *b, uint32_t number)
{
	char path[PATH_MAX], inside[64];
	struct segment *segment;
	bool missing;
	snprintf(inside, sizeof(inside), "journal/%06" PRIu32 ".sqlite", number);
	if (snprintf(path, sizeof(path), "%s/%s", b->folder, inside) >= (int)sizeof(path))
		return err_set(b->err, ERR_INVALID, "the name of the data folder is too long");
	(void)b->io->unlink(b->io, b->copy);
	int result = segment_open(b->io, path, SEGMENT_READ_ONLY, &segment, b->err);
	if (result < 0 && b->err->code == ERR_CORRUPT) {
		/* A damaged one goes in as it is. */
		result = archive_file(b, path, inside, &missing);
	} else if (result == 0) {
		result = segment_copy(b->io, segment, b->copy, b->err);
		segment_drop(segment);
		if (result == 0)
			result = archive_file(b, b->copy, inside, &missing);
	}
	(void)b->io->unlink(b->io, b->copy);
	return result;
}

static int add_journal(struct backup *b)
{
	char path[PATH_MAX];
	bool missing;
	if (snprintf(path, sizeof(path), "%s/journal/manifest", b->folder) >= (int)sizeof(path))
		return err_set(b->err, ERR_INVALID, "the name of the data folder is too long");
	int result = manifest_load(b->io, path, &b->manifest, b->err);
	if (result == MANIFEST_NONE)
		return err_set(b->err, ERR_NOT_FOUND,
			       "data folder \"%s\" has no journal to back up", b->folder);
	if (result == MANIFEST_BAD)
		return -(int)ERR_CORRUPT;
	if (result == 0)
		result = archive_header(b, "journal/", 0);
	/* The manifest of this moment, through a file of its own: the daemon may replace it at any time. */
	if (result == 0) {
		char temporary[PATH_MAX]; /* manifest_save's */
		if (snprintf(temporary, sizeof(temporary), "%s.tmp", b->copy) <
		    (int)sizeof(temporary))
			(void)b->io->unlink(b->io, temporary);
		int error = manifest_save(b->io, b->copy, &b->manifest);
		result = error < 0 ? write_failed(b, error)
				   : archive_file(b, b->copy, "journal/manifest", &missing);
	}
	for (uint32_t i = 0; i < b->manifest.count && result == 0; i++)
		result = add_segment(b, b->manifest.segments[i].number);
	return result;
}

static int backup_finish(struct backup *b)
{
	static const char end[2 * TAR_BLOCK];
	char above[PATH_MAX];
	int result = archive_write(b, end, sizeof(end));
	if (result < 0)
		return result;
	io_folder_of(b->file, above, sizeof(above));
	int error = b->io->sync(b->io, b->archive);
	if (error == 0)
		error = b->io->rename(b->io, b->temporary, b->file);
	if (error == 0)
		error = b->io->sync_folder(b->io, above);
	return error < 0 ? write_failed(b, error) : 0;
}

int journal_backup(const char *folder, const char *file, struct err *err)
{
	return journal_backup_io(io_real(), folder, file, err);
}

static bool in_database(const struct backup *b)
{
	char path[PATH_MAX];
	struct io_file *file;

	if (snprintf(path, sizeof(path), "%s/journal/store", b->folder) >= (int)sizeof(path) ||
	    b->io->open(b->io, path, O_RDONLY, 0, &file) < 0)
		return false;
	b->io->close(b->io, file);
	return true;
}

int journal_backup_io(struct io *io, const char *folder, const char *file, struct err *err)
{
	struct err own;
	struct backup b = { .io = io, .folder = folder, .file = file, .err = err ? err : &own };
	*b.err = (struct err){ 0 };
	if (snprintf(b.temporary, sizeof(b.temporary), "%s.tmp", file) >=
		    (int)sizeof(b.temporary) ||
	    snprintf(b.copy, sizeof(b.copy), "%s.part", file) >= (int)sizeof(b.copy))
		return err_set(b.err, ERR_INVALID, "the name of the backup file is too long");
	if (in_database(&b))
		return err_set(
			b.err, ERR_UNSUPPORTED,
			"data folder \"%s\" keeps its journal in PostgreSQL: copy that with pg_dump, and keep a copy of %s/keys/body.key beside it",
			folder, folder);
	/* Never into a file that is there: its owner could read the key. */
	(void)b.io->unlink(b.io, b.temporary);
	int error = b.io->open(b.io, b.temporary, O_RDWR | O_CREAT | O_EXCL, 0600, &b.archive);
	if (error < 0)
		return write_failed(&b, error);
	b.part = malloc(PART);
	CHECK(b.part);
	manifest_init(&b.manifest);
	int result = add_key_and_snapshots(&b);
	if (result == 0)
		result = add_journal(&b);
	if (result == 0)
		result = backup_finish(&b);
	b.io->close(b.io, b.archive);
	if (result < 0)
		(void)b.io->unlink(b.io, b.temporary);
	(void)b.io->unlink(b.io, b.copy);
	manifest_deinit(&b.manifest);
	free(b.part);
	return result;
}
