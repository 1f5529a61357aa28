/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One segment of the journal: a SQLite file, and one connection to it.
 *
 *	record     seq, time_ms, kind, must_understand, text, hash, guard
 *	blob       id, data                  bodies in the order written
 *	blob_name  id, digest                their names; indexed when the segment is sealed
 *	segment    number, first, prev, id   one row: what the manifest says of it, for rebuilding that
 *
 * The guard is a checksum of the row by itself, so that a row can be trusted or refused without its
 * neighbours. Names and bodies stand apart and in order, so that a commit writes few pages: an index of
 * random digests would add a page for each body.
 *
 * A connection belongs to one thread at a time. Results: 0, a positive outcome, or negative with err.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "store/journal.h"
#include "store/manifest.h"

struct io;
struct segment;

struct segment_meta {
	uint32_t number;
	uint64_t first; /* sequence its first record has or will have */
	struct digest prev; /* hash of the record before it */
	uint8_t id[JOURNAL_ID_BYTES]; /* of the journal */
};

enum { SEGMENT_FULL = 1, SEGMENT_BUSY = 2 };

/* Makes the file, its write-ahead log with wal_bytes of zeroes (0: none) and syncs both, not the folder.
 * A file of that name is replaced. SEGMENT_FULL leaves nothing behind. */
int segment_create(struct io *io, const char *path, const struct segment_meta *meta,
		   int64_t wal_bytes, struct err *err) MUST_CHECK;
/* SEGMENT_READ_ONLY: never writes. SEGMENT_IMMUTABLE: also no locks, for a folder that cannot be written. */
enum segment_mode { SEGMENT_READ_WRITE, SEGMENT_READ_ONLY, SEGMENT_IMMUTABLE };
int segment_open(struct io *io, const char *path, enum segment_mode mode, struct segment **ret,
		 struct err *err) MUST_CHECK;
/* keep_wal: leaves the write-ahead log for the next start; else the last connection folds it in and removes it. */
void segment_close(struct segment *segment, bool keep_wal);
/* Closes without touching the files any more: what is there stays as evidence, or after a failure. */
void segment_drop(struct segment *segment);

int segment_meta(struct segment *segment, struct segment_meta *ret, struct err *err) MUST_CHECK;
const char *segment_path(const struct segment *segment);

/* All in one commit; hashes[i] is the chain hash of records[i]. On SEGMENT_FULL nothing is written. *ret_blob_id is the id of
 * the first blob, the others follow. *ret_wal_frames: pages in the write-ahead log afterwards. */
int segment_append(struct segment *segment, const struct record *records,
		   const struct digest *hashes, size_t count, const struct blob *blobs,
		   size_t blob_count, int64_t *ret_blob_id, int *ret_wal_frames, struct err *err)
	MUST_CHECK;

/* A row as it was read. `good`: its guard holds and its values are in range; text is valid until the next call. */
struct segment_row {
	struct record record;
	struct digest hash;
	bool good;
	const char *wrong; /* what, when not good; static */
};

enum { SEGMENT_END = 3 };
/* Starts reading rows with seq in [from, to] in order; then segment_next until SEGMENT_END. */
int segment_scan(struct segment *segment, uint64_t from, uint64_t to, struct err *err) MUST_CHECK;
int segment_next(struct segment *segment, struct segment_row *ret, struct err *err) MUST_CHECK;
void segment_scan_end(struct segment *segment);
/* One row; SEGMENT_END when there is none. */
int segment_get(struct segment *segment, uint64_t seq, struct segment_row *ret, struct err *err)
	MUST_CHECK;
/* Largest sequence up to `limit`; SEGMENT_END without one. */
int segment_last(struct segment *segment, uint64_t limit, uint64_t *ret, struct err *err)
	MUST_CHECK;
/* Where the records end, whatever the last rows look like: *ret_good is the largest sequence of a good row, or the one
 * before the first row when none is good (SEGMENT_END: no rows),
 * *ret_end the last one that must be expected, which is larger when bad rows stand behind. */
int segment_end(struct segment *segment, uint64_t *ret_good, uint64_t *ret_end, struct err *err)
	MUST_CHECK;

/* Names of blobs with id > after, in order of id. */
int segment_names(struct segment *segment, int64_t after, void *context,
		  void (*take)(void *context, int64_t id, const struct digest *digest),
		  struct err *err) MUST_CHECK;
/* Finds a name's newest id in a sealed segment (through the index; slowly without it). SEGMENT_END: none. */
int segment_find_name(struct segment *segment, const struct digest *digest, int64_t *ret_id,
		      struct err *err) MUST_CHECK;
/* SEGMENT_END: erased. *ret_data is malloc'd. */
int segment_blob(struct segment *segment, int64_t id, void **ret_data, size_t *ret_size,
		 struct err *err) MUST_CHECK;
/* Erases the bytes for good: overwritten in the file, and the write-ahead log folded in and emptied. */
int segment_erase(struct segment *segment, int64_t id, struct err *err) MUST_CHECK;

/* Copies the write-ahead log into the file, as far as readers let it. *ret_left: pages not copied yet. */
int segment_checkpoint(struct segment *segment, int *ret_left, struct err *err) MUST_CHECK;
/* What sealing leaves for later: the index of names, and the write-ahead log emptied. */
int segment_finish(struct segment *segment, struct err *err) MUST_CHECK;
/* A consistent copy of the whole segment, of one moment, into a new file of real names. */
int segment_copy(struct io *io, struct segment *segment, const char *to, struct err *err)
	MUST_CHECK;
