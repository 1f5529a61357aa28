/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The manifest: which segments a journal has, in a text file that people can read.
 *
 *	fairlead-journal 1
 *	id 5f0c... (32 hex digits; every segment carries it too, so that a stray file shows)
 *	segment 1 1 5000 <hash of record 5000> sealed
 *	segment 2 5001 0 <64 zeroes> open
 *	check <SHA-256 of all above>
 *
 * A line is: number, first sequence, last sequence, hash of the last record, state. The last segment is
 * the only one that is open; its last sequence is found in it. The file is replaced as a whole, synced
 * with its folder: old or new, never a part.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"

struct io;

enum { JOURNAL_FORMAT = 1, JOURNAL_ID_BYTES = 16, MANIFEST_BYTES_MAX = 16 << 20 };

/* DAMAGED: sealed because something in it was wrong when opening; what can be read of it is read. */
enum segment_state { SEGMENT_SEALED, SEGMENT_DAMAGED, SEGMENT_OPEN };

struct manifest_segment {
	uint32_t number; /* from 1, no gaps; the file is NNNNNN.sqlite */
	uint64_t first, last; /* sequences; last is 0 while open */
	struct digest hash; /* of record `last`, zeroes while open */
	enum segment_state state;
};

struct manifest {
	uint8_t id[JOURNAL_ID_BYTES];
	struct manifest_segment *segments;
	uint32_t count;
};

void manifest_init(struct manifest *manifest);
void manifest_deinit(struct manifest *manifest);
/* Adds an open segment behind the last; returns it (valid until the next add). */
struct manifest_segment *manifest_add(struct manifest *manifest, uint32_t number, uint64_t first);
struct manifest_segment *manifest_last(struct manifest *manifest); /* NULL when it has none */

enum { MANIFEST_NONE = 1, MANIFEST_BAD = 2 };
/* 0, MANIFEST_NONE without a file, MANIFEST_BAD with the reason in err when its bytes are not what was written;
 * negative: it cannot be read, or another version wrote it. `ret` must be initialised. */
int manifest_load(struct io *io, const char *path, struct manifest *ret, struct err *err)
	MUST_CHECK;
/* 0 or -errno. */
int manifest_save(struct io *io, const char *path, const struct manifest *manifest) MUST_CHECK;
