/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Snapshots: a file of typed records that gives the state at one sequence, so that start-up reads the
 * newest good one and only the journal behind it. `snapshots/SEQ.snap` in the data folder: a header line
 * (format, seq, chain hash, state hash, build), then records "KIND TEXT\n" in zstd frames, then a
 * trailer with count and SHA-256 of all before it. Written to a temporary name, fsynced, renamed, folder
 * fsynced; the newest two are kept. One that does not verify is passed over (reported), the one before is
 * taken, at last the journal from its start.
 */
#include <stdint.h>
#include "base/digest.h"
#include "base/err.h"

struct io;
struct snapshot_writer;
struct snapshot_head {
	uint64_t seq;
	int64_t time_ms;
	struct digest chain;
	uint64_t state_hash;
	char build[64];
};

int snapshot_create(const char *folder, struct io *io, const struct snapshot_head *head,
		    struct snapshot_writer **ret, struct err *err) MUST_CHECK;
int snapshot_write(struct snapshot_writer *w, uint32_t kind, const char *text, size_t size,
		   struct err *err) MUST_CHECK;
/* Makes it durable under its name, drops older ones beyond two. Frees w in every case. */
int snapshot_commit(struct snapshot_writer *w, struct err *err) MUST_CHECK;
void snapshot_abandon(struct snapshot_writer *w); /* NULL is fine */

enum { SNAPSHOT_NONE = 1 };
/* Loads the newest snapshot that verifies and is not newer than max_seq: head first, then every record to `take`
 * (nonzero stops). All of it is verified before the first record is handed over. `passed_over` (may be NULL) hears of bad ones. */
int snapshot_load(const char *folder, struct io *io, uint64_t max_seq,
		  struct snapshot_head *ret_head, void *context,
		  int (*take)(void *context, uint32_t kind, const char *text, size_t size),
		  void (*passed_over)(void *context, const char *name, const char *why),
		  struct err *err) MUST_CHECK;
/* Reads every snapshot and reports those that are damaged. Writes nothing. */
void snapshot_check(const char *folder, struct io *io, void *context,
		    void (*damaged)(void *context, const char *name, const char *why));
