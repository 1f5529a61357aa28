/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The job that the benches of decisions submit: a batch job of ann's in the standard tier, which may have others
 * evicted; each of its tasks asks for that many GPUs and thousandths of a processor. The texts are the caller's. */
#include "core/core.h"

static inline struct event job_event(const struct facts *facts, const char *queue, int64_t tasks,
				     int64_t gpus, int64_t cpu_milli)
{
	struct event e = event_make(EVENT_JOB_SUBMITTED, 0, "bench");

	e.job_submitted.job = (int64_t)facts->jobs.count + 1;
	e.job_submitted.name = "job";
	e.job_submitted.user = "ann";
	e.job_submitted.queue = queue;
	e.job_submitted.kind = KIND_BATCH;
	e.job_submitted.tier = TIER_STANDARD;
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = tasks;
	e.job_submitted.gpus = gpus;
	e.job_submitted.cpu_milli = cpu_milli;
	e.job_submitted.preempts = 1;
	e.job_submitted.grace_ms = -1;
	return e;
}
