/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The journal: the one place where what happened is kept.
 *
 * A record has a sequence number (from 1, no gaps), the time of its event, the number of its kind,
 * `must_understand`, and a JSON text. Its hash covers the hash before it and all of these, so that any
 * change, loss or reorder of records shows:
 *
 *	hash(n) = SHA-256( hash(n-1) | seq | time_ms | kind | must_understand | text )
 *
 * (integers as 8 bytes big-endian; hash(0) is 32 zero bytes). Records are opaque here: what they mean
 * is core/model/event.h's matter.
 *
 * On disk (docs/decisions/0002-journal.md): the data folder holds `journal/` with a manifest and
 * segments, each a SQLite file in WAL mode with synchronous=FULL. The last segment is open; it is sealed
 * by size (JOURNAL_SEGMENT_BYTES) or month, and the manifest keeps each segment's first and last
 * sequence and last hash. Checkpointing of the WAL runs in a thread of the store's own. Bodies that can
 * hold secrets or personal data are sealed blobs in the same file, written in the same commit as the
 * record that names their digest, and can be erased while the chain stays valid.
 *
 * Durability: journal_append returns 0 only when all records are on disk (power loss included). A failed
 * commit or fsync is never retried: the journal becomes failed, every later append is refused, and
 * the owner closes, reopens and rebuilds from snapshot and journal. Space is kept in reserve (ballast
 * file, JOURNAL_RESERVE_BYTES): when the disk is full, ordinary appends answer JOURNAL_FULL (positive)
 * with nothing written, and appends marked `essential` (facts of running work) may use the reserve.
 *
 * A record that cannot be read (bad hash, bad row) is set aside in `quarantine/` with its bytes and
 * reported; reading goes on where it can. Never silently empty: a data folder with a manifest whose
 * segments are missing refuses to open.
 *
 * Threads: one writer; readers open handles of their own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/digest.h"
#include "base/err.h"

struct journal;
struct io;	/* store/io.h: the file layer, replaced in tests */

struct record {
	uint64_t seq;		/* given by journal_append when 0 */
	int64_t time_ms;
	uint32_t kind;
	bool must_understand;
	const char *text;	/* JSON, UTF-8, not NUL-terminated */
	size_t size;		/* RECORD_TEXT_MAX at most */
};

struct blob {
	struct digest digest;	/* of the plain bytes and a random salt kept in the blob: see blob_seal */
	const void *data;	/* sealed bytes */
	size_t size;		/* BLOB_MAX at most */
};

enum { RECORD_TEXT_MAX = 1 << 20, BLOB_MAX = 4 << 20 };
#define JOURNAL_SEGMENT_BYTES ((int64_t)2 << 30)
#define JOURNAL_RESERVE_BYTES ((int64_t)64 << 20)
enum { JOURNAL_FULL = 1 };	/* outcome of journal_append */

struct journal_options {
	const char *folder;		/* the data folder; journal/ is made in it */
	struct io *io;			/* NULL: the real files */
	int64_t segment_bytes;		/* 0: JOURNAL_SEGMENT_BYTES */
	int64_t reserve_bytes;		/* 0: JOURNAL_RESERVE_BYTES; -1: none */
	bool create;			/* make an empty one when the folder has none; else a missing one is an error */
	bool read_only;
};

struct journal_state {
	uint64_t last_seq;
	struct digest last_hash;
	int64_t last_time_ms;
	uint64_t set_aside;		/* records quarantined when opening */
	uint32_t segments;
	bool failed;
};

int journal_open(const struct journal_options *options, struct journal **ret, struct err *err) MUST_CHECK;
void journal_close(struct journal *journal);	/* NULL is fine */
/* All records and blobs in one commit, in order. Fills seq of each. 0, JOURNAL_FULL, or negative (then failed). */
int journal_append(struct journal *journal, struct record *records, size_t count,
		   const struct blob *blobs, size_t blob_count, bool essential, struct err *err) MUST_CHECK;
void journal_state(const struct journal *journal, struct journal_state *ret);

/* Reads records with seq >= from in order; each is handed to `take` (text valid only during the call). A
 * nonzero answer of take stops and is returned. `verify` checks the hash chain on the way. Damaged records
 * are reported through `damaged` (may be NULL) with seq and what is wrong, and reading goes on. */
struct journal_reader {
	void *context;
	int (*take)(void *context, const struct record *record, const struct digest *hash);
	void (*damaged)(void *context, uint64_t seq, const char *what);
};
int journal_read(struct journal *journal, uint64_t from, uint64_t limit, bool verify,
		 const struct journal_reader *reader, struct err *err) MUST_CHECK;

/* Sealed blob by digest; *ret_data is malloc'd. ERR_NOT_FOUND when there is none or it was erased. */
int journal_blob(struct journal *journal, const struct digest *digest, void **ret_data, size_t *ret_size,
		 struct err *err) MUST_CHECK;
/* Erases a blob for good (secure_delete); the chain stays valid. */
int journal_blob_erase(struct journal *journal, const struct digest *digest, struct err *err) MUST_CHECK;
/* Seals the open segment and starts the next one. Done by append itself when size or month asks for it. */
int journal_seal(struct journal *journal, struct err *err) MUST_CHECK;
