/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the journal share. Nobody outside src/store includes it. */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/io.h"
#include "store/journal.h"
#include "store/losses.h"
#include "store/manifest.h"
#include "store/postgres/postgres.h"
#include "store/segment.h"

/* The last acknowledged record, written beside each commit and synced with each checkpoint only: after a kill it says
 * what must be there, after a power loss what must be there at least. */
struct journal_head {
	uint64_t seq;
	int64_t time_ms;
	struct digest hash;
};

/* Names of bodies of the open segment: first 8 bytes of the digest to id, open addressing, id 0 = free. */
struct name_map {
	struct name_slot {
		uint64_t key;
		int64_t id;
	} *slots;
	size_t room, count; /* room is a power of two */
	int64_t last_id; /* highest id taken in */
	uint32_t segment; /* which one it is of; 0: none yet */
};

/* The thread that checkpoints and finishes sealed segments. */
struct journal_worker {
	pthread_t thread;
	pthread_cond_t wake, done;
	bool running, stop, due, busy;
	int last_frames,
		due_frames; /* of the write-ahead log: at the last commit; when to copy next */
	struct segment **sealed; /* handed over by journal_seal */
	size_t sealed_count;
	struct segment *checker; /* its own connection to the open segment */
	uint32_t checker_number;
};

enum { SEALED_CACHE = 64 };

struct reading;

struct journal {
	struct io *io;
	char *folder, *path; /* the data folder; its journal/ */
	int64_t segment_bytes, reserve_bytes, wal_bytes;
	bool read_only, inline_checkpoint;
	enum journal_loss loss;
	struct losses losses, accepted;
	void *damaged_context;
	void (*damaged_report)(void *context, uint64_t seq, const char *what);

	int lock_fd; /* -1: none */
	pthread_mutex_t
		mutex; /* one append, seal or checkpoint's end at a time; guards all below */
	struct manifest manifest;
	struct segment *open; /* of the writer; a reader's connection is in the cache */
	struct io_file *head;
	struct journal_state state;
	char failed_text[ERR_TEXT_MAX];
	int64_t open_bytes; /* about, of the open segment */
	int open_month; /* year * 12 + month of its first record; -1: none yet */
	bool reserve_whole;
	char reserve_problem[ERR_TEXT_MAX]; /* why not, if it is not for want of space */
	struct digest *hashes; /* scratch of append */
	size_t hashes_room;
	struct name_map names;
	struct cached_segment {
		uint32_t number;
		struct segment *segment;
		uint64_t used;
	} cache[SEALED_CACHE];
	uint64_t cache_clock;
	struct journal_worker worker;
	struct postgres *
		postgres; /* NULL: the records are in files, and what is said of files above holds */
	struct postgres_head head_row; /* of postgres, as the writer knows it */
};

/* ---- journal_open.c: names and opening ---- */
void journal_file(const struct journal *journal, const char *name, char out[PATH_MAX]);
void journal_segment_file(const struct journal *journal, uint32_t number, const char *suffix,
			  char out[PATH_MAX]);
/* Tells the owner and remembers it. */
void journal_report(struct journal *journal, uint64_t seq, const char *format, ...)
	PRINTF_LIKE(3, 4);
/* The same for records that are lost; counts them too. */
void journal_lost(struct journal *journal, uint64_t first, uint64_t last, const char *what);
int journal_month(int64_t time_ms);
/* The hash before the first record of segment `index` of the manifest. */
struct digest journal_prev_of(const struct journal *journal, uint32_t index);

/* ---- journal_head.c ---- */
enum {
	HEAD_NONE = 1,
	HEAD_BAD = 2
}; /* BAD: there is one, and its bytes are not those that were written */
int head_read(const struct journal *journal, struct journal_head *ret); /* 0, HEAD_NONE, HEAD_BAD */
int head_write(struct journal *journal); /* of journal->state; 0 or -errno */
int head_sync(struct journal *journal); /* 0 or -errno */
void head_close(struct journal *journal);

/* ---- journal_lock.c ---- */
/* Checks the folder's owner (real files only). */
int journal_owner_check(const struct journal *journal, struct err *err) MUST_CHECK;
/* Takes the lock of the writer, or says which process has it. */
int journal_lock_take(struct journal *journal, struct err *err) MUST_CHECK;
void journal_lock_release(struct journal *journal);

/* ---- journal_reserve.c ---- */
void reserve_restore(struct journal *journal); /* sets reserve_whole when the reserve is on disk */
bool reserve_release(struct journal *journal); /* gives its space back; false when there was none */

/* ---- journal_damage.c ---- */
enum { TAIL_CHECKED = 64 };
/* Makes the manifest from what the segments say; reports each one that it needs to guess about. */
int manifest_rebuild(struct journal *journal, struct err *err) MUST_CHECK;
/* Deals with segment files behind the manifest's last: empty remains go, ones with records are taken in. */
int journal_adopt_strays(struct journal *journal, struct err *err) MUST_CHECK;
/* Looks at the open segment's end and at what the head says; fills state and *ret_damaged. */
int journal_inspect(struct journal *journal, bool *ret_damaged, struct err *err) MUST_CHECK;
void quarantine_row(struct journal *journal, const struct segment_row *row);
void quarantine_file(struct journal *journal, const char *name); /* copies journal/NAME */

/* ---- journal_check.c ---- */
/* Whether a segment is the one that the manifest has under this index; `what` says what it is else. */
bool segment_is(struct journal *journal, uint32_t index, struct segment *segment, char *what,
		size_t room);
/* Whether every segment of the manifest that can be read belongs to another journal. */
bool manifest_is_foreign(struct journal *journal);
/* Segments that are missing: refused, or a loss (enum journal_loss). */
int journal_check_files(struct journal *journal, struct err *err) MUST_CHECK;

/* ---- journal_checkpoint.c ---- */
void worker_start(struct journal *journal);
void worker_stop(struct journal *journal);
/* After a commit, with the mutex held: wakes the thread, or does the work at once when inline. */
void worker_wake(struct journal *journal, int wal_frames);
void worker_hand_over(struct journal *journal, struct segment *sealed);

/* ---- journal_remote.c: the records are in a database ---- */
/* Does the folder say so, or is it asked for? *ret_address is malloc'd; NULL: no. */
int remote_address(struct journal *journal, const struct journal_options *options,
		   char **ret_address, struct err *err) MUST_CHECK;
int remote_open(struct journal *journal, const struct journal_options *options, const char *address,
		struct err *err) MUST_CHECK;
int remote_append(struct journal *journal, struct record *records, size_t count,
		  const struct blob *blobs, size_t blob_count, struct err *err) MUST_CHECK;
int remote_read(struct reading *reading, struct err *err) MUST_CHECK;
int remote_follow(struct journal *journal, const struct journal_reader *reader, struct err *err)
	MUST_CHECK;
int remote_promote(struct journal *journal, const struct journal_reader *reader, struct err *err)
	MUST_CHECK;
int remote_blob(struct journal *journal, const struct digest *digest, void **ret_data,
		size_t *ret_size, struct err *err) MUST_CHECK;
int remote_erase(struct journal *journal, const struct digest *digest, struct err *err) MUST_CHECK;

/* ---- journal.c ---- */
/* Fills seq and journal->hashes. */
void journal_hash(struct journal *journal, struct record *records, size_t count);
/* Marks it failed with the reason in err; returns -(int)code. The mutex is held. */
int journal_fail(struct journal *journal, struct err *err);

/* ---- journal_blob.c ---- */
void names_note(struct journal *journal, int64_t first_id, const struct blob *blobs, size_t count);
void names_deinit(struct name_map *map);

/* ---- journal_read.c ---- */
struct reading {
	struct journal *journal;
	const struct journal_reader *reader;
	uint64_t next; /* sequence that comes next */
	uint64_t left; /* records to hand over still */
	bool verify;
	unsigned candidates; /* 0 to 2 possible hashes of record next - 1 */
	struct digest candidate[2];
};
/* Hands one row over or reports it. Nonzero: stop with that. */
int reading_row(struct reading *r, const struct segment_row *row);
/* The next one, which is not there. */
void reading_missing(struct reading *r, const char *what);
/* A connection for reading a segment; kept by the journal, valid until the next call. */
int journal_segment(struct journal *journal, uint32_t number, struct segment **ret, struct err *err)
	MUST_CHECK;
void journal_cache_drop(struct journal *journal, uint32_t number); /* 0: all */
/* A reader's look at manifest and head as they are now. */
int journal_refresh(struct journal *journal, struct journal_head *ret_head, bool *ret_has_head,
		    struct err *err) MUST_CHECK;
