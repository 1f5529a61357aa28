/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A line: the buckets of one queue in the order in which they have their turns: falling rank, then when they are due, then rising first job. A pass
 * goes through all of it, however long it is, so it lies in memory as it is walked: runs of up to LINE_RUN_MAX entries,
 * and the runs in a list.
 *
 *	rank 7: job 3 (bucket 1), job 9 (bucket 4)     rank 5: job 2 (bucket 3)
 *
 * Each entry has what a pass asks first of its bucket, so that those without hope cost one look here and none elsewhere.
 *
 * To add or remove one moves at most a run, and now and then the list of runs: 0.1 us with a million entries. A zeroed line is
 * empty. The owner is the view.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/placement/array.h"

enum { LINE_RUN_MAX = 128 };

struct line_entry {
	uint64_t rank;
	int64_t due_ms; /* when the first of the bucket is due, due.h */
	uint32_t job; /* that one */
	uint32_t bucket, shape;
	uint32_t work; /* class of the work of its jobs, due.h; 0 = of no matter */
};

struct line_run {
	ARRAY(struct line_entry) entries;
};

struct line {
	ARRAY(struct line_run) runs; /* none is empty */
	uint32_t run_count, count;
};

struct line_walk {
	const struct line *line;
	const struct line_entry *at; /* the one at hand */
	const struct line_entry *end; /* of its run */
	uint32_t run;
};

void line_deinit(struct line *line);
void line_add(struct line *line, const struct line_entry *entry); /* must not be in it */
void line_remove(struct line *line,
		 const struct line_entry *entry); /* rank, time and job; must be in it */
bool line_same(const struct line *a, const struct line *b); /* but for the numbers of buckets */
/* Walks in order. False: there is none. The line must not change meanwhile. */
bool line_begin(const struct line *line, struct line_walk *walk);
bool line_next_run(struct line_walk *walk);
static inline bool line_next(struct line_walk *walk)
{
	return ++walk->at < walk->end || line_next_run(walk);
}
