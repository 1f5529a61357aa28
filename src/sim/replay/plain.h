/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Plain policies, for reference: what others do, in their simplest published form. They know no queues, tiers or levels; they are
 * not the core's, and nothing of the product uses them.
 *
 *	fifo-strict	by submission; stops at the first job that does not fit
 *	fifo-skip	by submission; looks past 50 jobs that do not fit
 *	sjf-strict, sjf-skip	the shortest run first (known beforehand)
 *	ssf-skip	the smallest run time times GPUs first
 *	srtf, srsf	the shortest remaining run (times GPUs) first; at each arrival and end all is placed anew, and
 *			what runs on loses its restart cost
 *	las		the least attained service (GPU time so far) first, likewise, knows no run times
 *	best-fit, random, fgd	by submission, each job once at its arrival: which node is the question
 *	spot-greedy, uniform-progress	by submission; which nodes a job with a deadline uses is the question (plain_spot.h)
 *
 * Nodes may come and go. What goes takes its work along: a job begins again where it last saved, else at its beginning; one that "places anew"
 * stops also saves at each stop. Jobs use spot nodes as with the core: those that say so, and training with checkpoints that says nothing.
 */
#include "sim/replay/availability.h"
#include "sim/replay/outcome.h"
#include "sim/scenario.h"

/* NULL: there is none of that name. */
const struct plain_policy *plain_find(const char *name);
const char *plain_names(void); /* for messages: "fifo-strict, fifo-skip, ..." */
/* availability NULL: all nodes stay. Negative: one that comes and goes is not in the cluster. */
int plain_run(const struct plain_policy *policy, const struct scenario *cluster,
	      const struct workload *workload, const struct availability *availability,
	      uint64_t seed, struct outcome *ret, struct err *err) MUST_CHECK;
