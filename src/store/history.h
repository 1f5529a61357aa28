/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The read models: `history.sqlite`, a second database filled behind the journal by its own worker and
 * rebuilt at will (`fairlead doctor --rebuild` deletes and refills it). Synchronous=NORMAL: losing its tail costs
 * only a refill from its cursor `applied_seq`. It answers what live facts cannot: every change of a job with
 * time, actor and reason, kept for ever; finished jobs that have left memory; the event list.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct history;
struct journal;

struct history_row {
	uint64_t seq;
	int64_t time_ms;
	uint32_t kind; /* of the record */
	uint64_t job, attempt; /* 0 = not about one */
	const char *text; /* the record's JSON */
	size_t size;
};

int history_open(const char *folder, struct history **ret, struct err *err) MUST_CHECK;
void history_close(struct history *history);
uint64_t history_applied(const struct history *history); /* the cursor; readable from any thread */
/* Rows in order of seq, all behind the cursor, in one transaction; the cursor moves to the last seq given, and to
 * `upto` when that is larger (records not kept here still move it). Rows already there are ignored. */
int history_add(struct history *history, const struct history_row *rows, size_t count,
		uint64_t upto, struct err *err) MUST_CHECK;
/* Rows of one job (job 0: all), seq > after, at most limit, in order; text valid during the call. Any thread: one handle each. */
int history_list(struct history *history, uint64_t job, uint64_t after, size_t limit, void *context,
		 int (*take)(void *context, const struct history_row *row), struct err *err)
	MUST_CHECK;
/* The newest row of `kind` among jobs 1 to `job`: the submission that an array's job came with. Nothing taken: there is none. */
int history_before(struct history *history, uint64_t job, uint32_t kind, void *context,
		   int (*take)(void *context, const struct history_row *row), struct err *err)
	MUST_CHECK;
int history_clear(struct history *history, struct err *err) MUST_CHECK;
