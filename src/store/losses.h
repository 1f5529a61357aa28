/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a data folder has lost: ranges of records, and files of which no record depends.
 *
 *	add 5..9 "the file is damaged", add 10..10 with the same words	-> one range, 5..10
 *	accepted 1..20						-> 0 records of it count
 *
 * A person accepts losses with `--accept-loss`; the file journal/accepted keeps which:
 *
 *	fairlead-accepted 1
 *	records 5 10
 *	file 000001.sqlite: body 5f0c... cannot be read
 *	check <SHA-256 of all above>
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;
struct io;

enum { LOSS_TEXT_MAX = 320, LOSSES_MAX = 10000 };

struct loss {
	uint64_t first, last; /* sequences; both 0: no records, `what` names a file */
	char what[LOSS_TEXT_MAX];
};

/* Zero is empty. Beyond LOSSES_MAX entries the last one grows, so no record is left out. */
struct losses {
	struct loss *items;
	size_t count;
};

void losses_deinit(struct losses *losses);
/* Continues the last range when `first` follows it and the words are equal; else a new entry. A file is added once. */
void losses_add(struct losses *losses, uint64_t first, uint64_t last, const char *what);
/* Adds the file of a snapshot that can't be used, with the reason. */
void losses_add_snapshot(struct losses *losses, const char *name, const char *why);
/* Number of records in any range of `losses` and in none of `accepted` (may be NULL). */
uint64_t losses_records(const struct losses *losses, const struct losses *accepted);
/* Whether all of an entry is accepted: its records, or a file in the same words. */
bool losses_accepted(const struct loss *loss, const struct losses *accepted);
/* "records 5 to 10: the file is damaged" */
void loss_text(const struct loss *loss, struct buf *out);

enum { ACCEPTED_BAD = 1 };
/* Reads journal/accepted of the folder; nothing when there is none. ACCEPTED_BAD: the file is damaged, and nothing of it counts. */
int accepted_load(struct io *io, const char *folder, struct losses *ret, struct err *err)
	MUST_CHECK;
/* Adds the ranges of `losses` to those of `accepted`, and writes the file. */
int accepted_save(struct io *io, const char *folder, struct losses *accepted,
		  const struct losses *losses, struct err *err) MUST_CHECK;
