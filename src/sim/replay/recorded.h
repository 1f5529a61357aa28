/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a cluster lived through, from the events of its journal: the cluster as it is at the end, the jobs as a workload, and what became of them.
 *
 *	recorded_init
 *	recorded_take		each event, in order
 *	recorded_close		once, behind the last
 *	recorded_cluster	a cluster file (docs/workload-format.md)
 *	recorded_workload	a workload file
 *	recorded_outcome	the same jobs, as they really went
 *
 * A job's run time is what it really ran, without what it lost. Left out, and counted: jobs that never ran; groups of unlike tasks.
 * Taken, and counted: jobs that still run, with their run time so far; elastic ones at their least width; those
 * that waited for other jobs, as if they had not; those with wishes that a workload has no column for, as if without.
 */
#include <stdio.h>
#include "core/core.h"
#include "sim/replay/outcome.h"

struct recorded_job {
	struct workload_job
		as; /* times since 1970 until recorded_close; texts are the facts' names, or copies */
	struct outcome_job went;
	int64_t share; /* held now; 0 = it does not run */
	int64_t released_ms;
	uint8_t leave_out, depends, elastic, wishes, ended;
};

struct recorded {
	struct facts facts;
	struct recorded_job *jobs; /* by job id */
	uint32_t job_room, job_count; /* ids up to this one */
	uint32_t *kept; /* ids of those that are in the workload, in its order */
	uint32_t kept_count;
	int64_t start_ms,
		end_ms; /* first submission, or the beginning of a week before it where hours matter; last event; since 1970 */
	int64_t used, wanted;
	uint32_t running, waiting;
	struct outcome outcome; /* its moments, from the first event on */
	uint32_t never_ran, unlike, still, elastic, depends, wishes, nodes_gone;
};

void recorded_init(struct recorded *recorded);
void recorded_deinit(struct recorded *recorded);
void recorded_take(struct recorded *recorded, const struct event *event);
/* ERR_NOT_FOUND: no job ever ran, or there is no node. */
int recorded_close(struct recorded *recorded, struct err *err) MUST_CHECK;
void recorded_cluster(const struct recorded *recorded, FILE *out);
void recorded_workload(const struct recorded *recorded, FILE *out);
/* `workload` is what was read from recorded_workload. */
void recorded_outcome(const struct recorded *recorded, const struct workload *workload,
		      struct outcome *ret);
/* What was left out or taken as simple, a line for each, with `before` in front; nothing: no lines. */
void recorded_remarks(const struct recorded *recorded, const char *before, FILE *out);
/* Of these, what a cluster file can't say. */
void recorded_cluster_remarks(const struct recorded *recorded, const char *before, FILE *out);
void recorded_remark(FILE *out, const char *before, uint32_t count, const char *what,
		     const char *taken); /* 0: no line */
