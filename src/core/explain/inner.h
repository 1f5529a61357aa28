/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder share. explain.c: the verdict; chain.c: what stands around it; prospect.c: before submission. */
#include "core/explain/words.h"

/* What the next decision finds about the job. */
struct watched {
	struct watch watch;
	bool outrun; /* blocked only because of those before it, which take what it could have */
	bool undecided; /* too many come before it to tell */
	uint64_t work;
	const struct event *events; /* decided up to its turn */
	uint32_t event_count;
};
/* The job alone first: what blocks it there blocks it for certain, and costs one try. Only if it could have its place are those
 * before it decided, in a pass up to its turn. */
void watch_run(const struct words *w, struct watched *ret);

/* On an idle cluster of all nodes that exist: NONE, or what forbids it for ever. */
struct verdict ever_verdict(const struct words *w);
/* Is it room that lacks, rather than a rule or a wish? */
bool reason_is_of_place(enum reason reason);
/* Jobs before it in its queue, and its position. */
void ahead_find(const struct words *w, struct explanation *ret);
/* The lines: the reason, queue, order, holders, nodes. `ret` has all else. */
void chain_make(const struct words *w, struct explanation *ret);
