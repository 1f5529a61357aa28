/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The run that power losses and failing calls are tried on: a journal, snapshots and the key on a test disk, driven
 * by a seed, with a note of what was acknowledged (the promise). And the check that a disk keeps the promise.
 *
 * Record n, and its body if n divides by 4, follow from n alone, so the promise is a few numbers.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/digest.h"
#include "store/testing/io_disk.h"

enum { WORKLOAD_SEQ_MAX = 40000, VIOLATION_MAX = 1024 };

/* The data folder, made by the first start. */
#define WORKLOAD_FOLDER "/d/data"

struct promise {
	bool opened; /* the journal was made: it must be there */
	bool keyed; /* the key was made, and a body sealed with it is record 4's */
	uint64_t last_seq; /* acknowledged */
	uint64_t
		trying_seq; /* last one of the group under way; either all of it is there or none */
	uint64_t snapshot_seq; /* of the newest acknowledged snapshot, 0 = none */
	uint64_t erasing; /* body being erased now: may be there or not */
	uint64_t last_erased;
	uint8_t erased[WORKLOAD_SEQ_MAX / 8 + 1];
	struct digest sealed_name;
	uint64_t version; /* counts changes of all above */
};

struct journal;
struct seal_key;

struct workload {
	struct io_disk *disk;
	struct journal *journal;
	struct seal_key *key;
	struct promise promise;
	uint64_t random;
	uint32_t reports; /* of damage when opening: there must be none */
	bool essential; /* appends are marked so */
	uint64_t full; /* appends that answered JOURNAL_FULL */
	char problem[VIOLATION_MAX]; /* text of the last failure */
};

/* On an empty or older disk; nothing is opened yet. */
void workload_init(struct workload *w, struct io_disk *disk, uint64_t seed);
void workload_deinit(struct workload *w);
/* Opens journal and key (made when they were not acknowledged before). Negative: failed, w->problem says why. */
int workload_open(struct workload *w);
void workload_close(struct workload *w);
/* One operation by chance: append a group, snapshot, seal, erase a body, close and open again. Negative: failed; the promise
 * says what was acknowledged until then. */
int workload_step(struct workload *w);
int workload_append(struct workload *w, unsigned group);
int workload_snapshot(struct workload *w);
int workload_seal(struct workload *w);

/* How much of the promise is looked at. The end: the last records and their bodies, as a start reads them. */
enum promise_part { PROMISE_END, PROMISE_END_AND_SNAPSHOT, PROMISE_ALL };
/* Opens the disk as a new start would and compares; 0 or -1 with the difference in problem. The disk is changed by it.
 * *ret_last: last sequence found. */
int promise_check(const struct promise *promise, struct io_disk *disk, enum promise_part part,
		  uint64_t *ret_last, char problem[VIOLATION_MAX]);
/* The same, then goes on: appends, crashes again with nothing kept that was not synced, and checks that too. */
int promise_check_on(const struct promise *promise, struct io_disk *disk, uint64_t seed,
		     char problem[VIOLATION_MAX]);

/* How much: 1 in the suite; FAIRLEAD_CAMPAIGN=N multiplies it. */
uint64_t campaign_factor(void);
