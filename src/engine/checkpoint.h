/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Looking at a checkpoint: whether it is there, and how many bytes its files have together (fewer of them later mean that it
 * is torn).
 *
 * The path is the job's own word, so it is looked at with the rights of the job's user: what root sees would tell him of
 * files that are not his. These rights are taken by the calling thread alone and given back (the user and groups that
 * count for files, as file servers do it): other threads do not notice, and no user may signal the process meanwhile.
 *
 * Costs one stat per file. A file server that does not answer holds the caller up: call it where that does no harm.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"

enum {
	CHECKPOINT_ENTRIES_MAX = 100000,
	CHECKPOINT_DEPTH_MAX = 8,
	CHECKPOINT_AWAY_MS =
		120000 /* so long who resumes from one looks again where that is not known */
};

struct checkpoint_ask {
	const char *path; /* absolute; a file or a folder */
	uid_t uid; /* whose rights; without root always the process's own */
	gid_t gid;
	int64_t patience_ms; /* no further file is looked at after so long */
	bool above; /* where it gives errors, the folder in which it lies is looked at, too */
};

/* So long is, at the beginning of its path, that of the folder in which it lies; 0 = it has none. */
size_t checkpoint_above(const char *path);

/* 0 = all of it was looked at; 1 = it is there, but too large for the limits above, and *ret_bytes is 0; negative: it is not
 * there or can't be read, with a text for whoever reported it (ERR_INTERNAL: the user's rights could not be had; ERR_UNAVAILABLE: its
 * file server or this machine could not say it at this moment; ERR_UNREACHABLE, with `above`: nor of the folder in which it lies; ERR_FORBIDDEN: that account may not read it). Links in a folder are not
 * followed. */
int checkpoint_look(const struct checkpoint_ask *ask, int64_t *ret_bytes, struct err *err)
	MUST_CHECK;

/* Whether such a result says nothing of the checkpoint yet: who resumes from it looks again for CHECKPOINT_AWAY_MS. Rights are
 * among it: a file server takes them away while a ticket is renewed or an export is changed, and a person gives them back. */
static inline bool checkpoint_may_come_back(int result)
{
	return result == -(int)ERR_UNAVAILABLE || result == -(int)ERR_UNREACHABLE ||
	       result == -(int)ERR_FORBIDDEN;
}
