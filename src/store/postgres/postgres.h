/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The journal's records and bodies in a PostgreSQL database (docs/decisions/0012-journal-in-postgresql.md has the tables).
 *
 * One row, `head`, says who may write and behind what:
 *
 *	epoch		raised by each writer that opens the journal: the one before can write no more
 *	last_seq, last_hash	the newest record
 *
 * An append is one statement that moves the head from the epoch, number and hash that the writer knows to the new ones and adds the
 * rows, or does nothing. So two writers collide, and the one whose epoch is older learns it. When the connection breaks while a
 * statement is under way nobody says what became of it: the head does, by its hash.
 *
 * A handle belongs to one thread at a time. Results: 0, a positive outcome, or negative with err. No message holds a password.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "store/journal.h"
#include "store/manifest.h"
#include "store/segment.h"

struct postgres;

struct postgres_head {
	uint8_t id[JOURNAL_ID_BYTES]; /* of the journal */
	int64_t epoch;
	uint64_t last_seq;
	int64_t last_time_ms;
	struct digest last_hash;
};

enum { POSTGRES_FOLLOWS = -1 };
enum postgres_mode { POSTGRES_READ, POSTGRES_WRITE, POSTGRES_CREATE };

/*
 * `address`: postgresql://..., or words as libpq takes them. POSTGRES_WRITE takes over from whoever wrote before. POSTGRES_CREATE makes
 * the tables where there are none. `after`: the epoch of a writer that opens again; ERR_CONFLICT when another one came meanwhile. 0: whoever wrote.
 * POSTGRES_FOLLOWS: nobody is taken over from, until postgres_take_over.
 * ERR_NOT_FOUND: there is no journal. ERR_UNAVAILABLE: the server does not answer.
 */
int postgres_open(const char *address, enum postgres_mode mode, int64_t after,
		  struct postgres **ret, struct postgres_head *ret_head, struct err *err)
	MUST_CHECK;
/* Can it be read as an address? Without asking anybody. */
int postgres_address_check(const char *address, struct err *err) MUST_CHECK;
void postgres_close(struct postgres *postgres); /* NULL is fine */
/* Database and server, for messages. */
const char *postgres_name(const struct postgres *postgres);
const char *postgres_address(const struct postgres *postgres);
/* Of one that was opened with POSTGRES_FOLLOWS: behind this nobody who wrote before can write. */
int postgres_take_over(struct postgres *postgres, struct postgres_head *ret, struct err *err)
	MUST_CHECK;
/* As it is now. */
int postgres_head(struct postgres *postgres, struct postgres_head *ret, struct err *err) MUST_CHECK;

enum { POSTGRES_FULL = 1 };
enum {
	POSTGRES_PATIENCE_MS = 60000
}; /* so long a server that is away is asked again, then the append fails */
/*
 * All in one commit, behind `before`; hashes[i] is the chain hash of records[i]. On 0 *before is the new head. POSTGRES_FULL: the server has no
 * space, nothing is written. ERR_CONFLICT: somebody else writes. ERR_UNAVAILABLE: what became of it is not known.
 */
int postgres_append(struct postgres *postgres, struct postgres_head *before,
		    const struct record *records, const struct digest *hashes, size_t count,
		    const struct blob *blobs, size_t blob_count, struct err *err) MUST_CHECK;

/* Rows with seq in [from, to], at most `most`, in order; good and wrong as in struct segment_row. A nonzero answer stops and is returned. */
int postgres_rows(struct postgres *postgres, uint64_t from, uint64_t to, uint32_t most,
		  int (*take)(void *context, const struct segment_row *row), void *context,
		  struct err *err) MUST_CHECK;
/* *ret_data is malloc'd. SEGMENT_END: there is none. */
int postgres_blob(struct postgres *postgres, const struct digest *digest, void **ret_data,
		  size_t *ret_size, struct err *err) MUST_CHECK;
/* SEGMENT_END: there is none. The server overwrites the bytes when it cleans up (VACUUM). */
int postgres_erase(struct postgres *postgres, int64_t epoch, const struct digest *digest,
		   struct err *err) MUST_CHECK;
