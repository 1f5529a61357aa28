/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A view of frozen facts, kept between requests: explanations and dry runs need one, and building it costs a walk over
 * everything. One user at a time; workers only.
 */
#include "api/backend.h"

struct planner;

struct planner *planner_create(const struct api_backend *backend);
void planner_destroy(struct planner *planner); /* NULL is fine */
/* The moment of a request, in ms since 1970: the facts know only that of their last event. Never before that one. */
int64_t request_ms(const struct facts *facts);
/* The facts of `frozen` (or, when a view of hardly older ones that say the same of this job is at hand, those) with their
 * view, as of this moment: what a decision now would find. Give back with planner_leave. job 0: no particular one. */
struct view *planner_enter(struct planner *planner, struct frozen *frozen, uint32_t job,
			   const struct facts **ret_facts);
void planner_leave(struct planner *planner);
