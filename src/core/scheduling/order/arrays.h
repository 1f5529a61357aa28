/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Arrays of which only so many jobs run at once. Those that run or have a place promised count; of those that wait,
 * as many as may still start stand in the view's buckets, the first by rank and number, and the others are kept back:
 *
 *	limit 3, jobs 10 to 17: 10, 11 run; 12 waits in a bucket; 13 to 17 are kept back
 *	11 ends: 13 is let in.  16 gets a higher priority: it takes the place of 12, which is kept back
 *
 * So a pass never sees a job that its array keeps back, it costs nothing there, and the queue wants no share for it.
 * About 1 us for each event of such a job.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/core.h"
#include "core/scheduling/view/view.h"

enum array_place { ARRAY_NONE, ARRAY_OPEN, ARRAY_BACK };

/* It waits for nothing but its turn. */
static inline bool job_may_start(const struct job *job)
{
	return job_is_waiting(job) && !job->cancel_asked && !job->promise;
}
/* A changed job: out of where it waited, before what it runs as is brought in line; then in, and others in or out for it. */
void array_leave(struct view *view, const struct facts *facts, uint32_t job);
void array_enter(struct view *view, const struct facts *facts, uint32_t job);

static inline bool array_keeps_back(const struct view *view, uint32_t job)
{
	return job_view_get(view, job)->array == ARRAY_BACK;
}
/* Why it is kept back: have of need run, the holder is the one that is expected to end first. */
struct verdict array_verdict(const struct facts *facts, const struct view *view, uint32_t job);
