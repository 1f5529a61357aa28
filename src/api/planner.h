/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A view of frozen facts, kept between requests: explanations and dry runs need one, and building it costs a walk over
 * everything. One user at a time; workers only.
 */
#include "api/backend.h"
#include "sim/plan.h"

struct planner;

struct estimate {
	struct plan_answer answer;
	int64_t at_ms; /* the time that it is true for */
};

struct planner *planner_create(const struct api_backend *backend);
void planner_destroy(struct planner *planner); /* NULL is fine */
/* The facts of `frozen` (or, when a view of hardly older ones that say the same of this job is at hand, those) with their
 * view. Give back with planner_leave. job 0: no particular one. */
struct view *planner_enter(struct planner *planner, struct frozen *frozen, uint32_t job,
			   const struct facts **ret_facts);
void planner_leave(struct planner *planner);

/*
 * When the job will start, from a plan of the whole queue (sim/plan.h) that is kept: it is made anew when it is older than five
 * seconds, or than ten times what it cost, and the facts went on, or when it does not know the job. It takes two seconds at most, then
 * it is cut. false: it starts in no run of the plan.
 */
bool planner_ask(struct planner *planner, struct frozen *frozen, uint32_t job,
		 struct estimate *ret);
/* The same of a job that is not submitted, in its admitted form. */
bool planner_ask_new(const struct facts *facts, const struct event *job_submitted,
		     struct estimate *ret);
