/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Now and then, for a job of a random walk, unlike tasks: servers that may do without GPUs, and workers that may end the job. */
#include "core/model/event.h"
#include "core/model/roles.h"
#include "sim/engine_sim.h"

/* numbers: room for 2 * ROLE_NUMBERS, for as long as the job's event. */
void unlike_tasks_add(struct sim_random *random, struct event_job_submitted *job, int64_t *numbers,
		      struct sim_work *work);
