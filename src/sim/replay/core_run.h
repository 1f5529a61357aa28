/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A workload on the production core in virtual time (sim/play.h): what the scheduler itself would have done.
 *
 * The cluster, its queues and the policy are those of a scenario without jobs. A job that says neither limit nor estimate is one
 * of which the core knows nothing but what it learns from jobs like it.
 */
#include <stdio.h>
#include "sim/replay/availability.h"
#include "sim/replay/outcome.h"
#include "sim/scenario.h"

/* Called now and then with how many of the jobs have ended. */
typedef void (*core_run_progress)(void *context, uint32_t ended, uint32_t all);

struct core_run_options {
	uint32_t
		foretell; /* each so many-th job that waits is asked about (foretold.h); 0 = none */
	const struct availability *availability; /* nodes that come and go; NULL = all stay */
	core_run_progress progress; /* NULL = nobody looks */
	void *context;
};

/* options NULL: none of it.
 * Negative: the cluster, a queue or the policy can't be so, or a node that comes and goes is not there; the place is in err. */
int core_run(const char *name, const struct scenario *cluster, const struct workload *workload,
	     const struct core_run_options *options, struct outcome *ret, struct err *err)
	MUST_CHECK;
