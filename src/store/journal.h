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
 * Threads: one writer (held by a lock file); readers open read-only handles of their own, one per thread,
 * in this process or another one. journal_state may be called from any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/digest.h"
#include "base/err.h"

struct journal;
struct losses;
struct io; /* store/io.h: the file layer, replaced in tests */

struct record {
	uint64_t seq; /* given by journal_append when 0 */
	int64_t time_ms;
	uint32_t kind;
	bool must_understand;
	const char *text; /* JSON, UTF-8, not NUL-terminated */
	size_t size; /* RECORD_TEXT_MAX at most */
};

struct blob {
	struct digest
		digest; /* of the sealed bytes (seal_close_bytes gives it); checked when read */
	const void *data; /* sealed bytes */
	size_t size; /* BLOB_MAX at most */
};

enum { RECORD_TEXT_MAX = 1 << 20, BLOB_MAX = 4 << 20 };
#define JOURNAL_SEGMENT_BYTES ((int64_t)2 << 30)
#define JOURNAL_RESERVE_BYTES ((int64_t)64 << 20)
#define JOURNAL_WAL_BYTES ((int64_t)4 << 20)
enum { JOURNAL_FULL = 1 }; /* outcome of journal_append */

/*
 * What a writer does when records are lost. ANY: it opens, and reports. LITTLE: it refuses to open when a segment is missing, or when more
 * than 1 % of the records are lost and more than JOURNAL_LOSS_FLOOR. ACCEPT: it opens, also without segments or the whole journal.
 */
enum journal_loss { JOURNAL_LOSS_ANY, JOURNAL_LOSS_LITTLE, JOURNAL_LOSS_ACCEPT };
enum { JOURNAL_LOSS_FLOOR = 10 };

struct journal_options {
	const char *folder; /* the data folder; journal/ is made in it */
	struct io *io; /* NULL: the real files */
	int64_t segment_bytes; /* 0: JOURNAL_SEGMENT_BYTES */
	int64_t reserve_bytes; /* 0: JOURNAL_RESERVE_BYTES; -1: none */
	/* Keep the records in this PostgreSQL database (postgresql://..., or words as libpq takes them); remembered in the folder.
	 * NULL: where the folder keeps them, which is in files until one says otherwise. */
	const char *address;
	/* Of a writer that opens a database again (journal_state): ERR_CONFLICT when another one came meanwhile. 0: whoever wrote. */
	int64_t epoch;
	/* Of a database: opened to follow what another daemon writes. Nothing of its records is written, and nobody is taken over from, until
	 * journal_promote. With files it has no meaning. */
	bool follow;
	bool join; /* a folder that is new takes up the journal that another one began: for engines whose tasks are elsewhere */
	bool create; /* make an empty one when the folder has none; else a missing one is an error */
	bool read_only; /* no lock, nothing is written; sees what the writer has committed */
	bool inline_checkpoint; /* no thread: append itself checkpoints when it is due (tests) */
	int64_t wal_bytes; /* checkpoint from this size on; 0: JOURNAL_WAL_BYTES */
	/* Hears what was found wrong when opening (may be NULL); seq 0: not about one record. */
	void *damaged_context;
	void (*damaged)(void *context, uint64_t seq, const char *what);
	enum journal_loss loss;
	struct losses *refused; /* gets what was found when opening is refused; NULL: nobody asks */
};

struct journal_state {
	uint64_t last_seq;
	struct digest last_hash;
	int64_t last_time_ms;
	uint64_t set_aside; /* records quarantined or missing, found when opening */
	int64_t epoch; /* of the writer, in a database */
	uint8_t id[16]; /* drawn when it was made; the same for all who read and write it */
	uint32_t segments; /* 0: the records are in a database */
	bool following; /* another daemon writes: what is known of it is what was followed */
	bool failed;
	bool taken_over; /* by another daemon, on the same database: opening it again would take it back */
	bool damaged; /* something was wrong when opening; what can be kept of it is in quarantine/ */
	bool full; /* the reserve is in use: ordinary appends answer JOURNAL_FULL until there is space */
};

int journal_open(const struct journal_options *options, struct journal **ret, struct err *err)
	MUST_CHECK;
void journal_close(struct journal *journal); /* NULL is fine */
/* All records and blobs in one commit, in order. Fills seq of each. 0, JOURNAL_FULL (nothing written; a text in err says what it is if not
 * the disk), or negative: then the
 * journal is failed and whether the records are on disk shows only after reopening. What is over its limit is refused
 * with ERR_TOO_LARGE before anything is written, and the journal goes on. */
int journal_append(struct journal *journal, struct record *records, size_t count,
		   const struct blob *blobs, size_t blob_count, bool essential, struct err *err)
	MUST_CHECK;
/* After JOURNAL_FULL: tries to put the reserve back. Are ordinary appends taken again, as far as that goes? */
bool journal_has_room(struct journal *journal);
void journal_state(const struct journal *journal, struct journal_state *ret);

/* What was found lost when opening or checking, and what of it a person accepted (store/losses.h). Of the journal. */
struct losses *journal_losses(struct journal *journal);
const struct losses *journal_accepted(const struct journal *journal);
/* Whether more of `all` is lost than options.loss lets pass: then the error names what, where, and what to do. */
int journal_judge(struct journal *journal, const struct losses *all, struct err *err) MUST_CHECK;
/* Adds `all` to what is accepted. */
int journal_accept(struct journal *journal, const struct losses *all, struct err *err) MUST_CHECK;
/* Checks of each sealed segment its header, its range and the hash of its last record; adds what it finds to the losses. A writer has
 * done so when opening. */
void journal_check(struct journal *journal);
/* Compares each body of the segment (from 1 on) with its digest; `pause` is called now and then. Nonzero of it stops. */
void journal_check_bodies(struct journal *journal, uint32_t segment, struct losses *ret,
			  int (*pause)(void *context), void *context);

/* Reads at most `limit` records (0: all) with seq >= from in order; each is handed to `take` (text valid only during the call). A
 * nonzero answer of take stops and is returned. `verify` checks the hash chain on the way. Damaged records
 * are reported through `damaged` (may be NULL) with seq and what is wrong, and reading goes on. */
struct journal_reader {
	void *context;
	int (*take)(void *context, const struct record *record, const struct digest *hash);
	void (*damaged)(void *context, uint64_t seq, const char *what);
};
int journal_read(struct journal *journal, uint64_t from, uint64_t limit, bool verify,
		 const struct journal_reader *reader, struct err *err) MUST_CHECK;

/* Of a journal that was opened with `follow`: hands over what has come since it was opened or followed last, with the chain checked, and
 * moves the state on. ERR_CONFLICT: the database does not have what was read from it before (it was restored, or fell back). ERR_UNAVAILABLE: it
 * does not answer; ask again. */
int journal_follow(struct journal *journal, const struct journal_reader *reader, struct err *err)
	MUST_CHECK;
/* Takes the journal over, so that nobody who wrote before can write, and then follows to its end. From then on it is one's own.
 * A journal that does not follow is left as it is. */
int journal_promote(struct journal *journal, const struct journal_reader *reader, struct err *err)
	MUST_CHECK;
/* Which journal it is: 16 bytes, drawn when it was made. */
enum { JOURNAL_NAME_MAX = 33 };
void journal_name(const struct journal *journal, char out[JOURNAL_NAME_MAX]); /* 32 hex digits */

/* Sealed blob by digest; *ret_data is malloc'd. ERR_NOT_FOUND when there is none or it was erased, ERR_CORRUPT
 * when its bytes are not those that were written. */
int journal_blob(struct journal *journal, const struct digest *digest, void **ret_data,
		 size_t *ret_size, struct err *err) MUST_CHECK;
/* Erases a blob for good (secure_delete); the chain stays valid. */
int journal_blob_erase(struct journal *journal, const struct digest *digest, struct err *err)
	MUST_CHECK;
/* Where the records are, when that is a database: its name and server. NULL: in files. Valid while the journal is open. */
const char *journal_database(const struct journal *journal);
/* ... and how it is reached, with what passwords are in it: for others of this program that keep something there. */
const char *journal_address(const struct journal *journal);
/* Seals the open segment and starts the next one; nothing when it has no records. Done by append itself when size
 * or month asks for it. 0, JOURNAL_FULL (it stays open), or negative (then failed). */
int journal_seal(struct journal *journal, struct err *err) MUST_CHECK;

/* A consistent copy of a data folder, also of one in use: journal, snapshots and the key for sealed bodies, in
 * one tar archive of mode 0600. Restore it with `tar -xf FILE -C FOLDER` into an empty folder. The file
 * appears whole and durable under its name, or not at all; an existing one is replaced. */
int journal_backup(const char *folder, const char *file, struct err *err) MUST_CHECK;
/* The same on other files than the system's, for tests. */
int journal_backup_io(struct io *io, const char *folder, const char *file, struct err *err)
	MUST_CHECK;
