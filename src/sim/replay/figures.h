/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an outcome comes to, in figures.
 *
 *	completion	from the submission to the end
 *	wait		from the submission to the first command
 *	delay		completion less the time that the job takes alone: all its waiting, and what had to be done again
 *	slowdown	completion over the time alone, which counts as 10 s at least
 *	fairness	completion over what it would have been had the job always had its even part of the cluster: its time alone, times
 *			how many clusters' worth of GPUs the jobs wanted meanwhile (at least 1). Over 1: worse than that.
 *
 * Over jobs that ended; a job that never did is counted apart. Quantile q of n values: the one at floor(q n), from 0, of those in order.
 */
#include "sim/replay/outcome.h"

struct spread {
	double mean, p50, p90, p99, most;
};

struct figures {
	uint32_t jobs, ended, refused, unfinished, evictions;
	uint32_t deadlines, deadlines_missed; /* jobs that had one; that ended later, or never */
	struct spread completion_s, wait_s, delay_s, slowdown, fairness;
	double makespan_s; /* from the first submission to the last end */
	double utilisation; /* part of all GPUs held from the first submission to the last */
	double utilisation_whole; /* ... to the last end */
	double unallocated_full; /* part of all GPUs open when as many had been wanted as there are; -1 = never */
	double used_gpu_h, lost_gpu_h;
	double network_gpu_h; /* of used, more than on the best places; -1 = nobody describes the fabric */
	double cost; /* in the unit of the policy's prices; 0 = nothing has a price */
};

/* Sorts the values; all 0 without any. */
struct spread spread_of(double *values, uint32_t count);
enum figure { FIGURE_COMPLETION, FIGURE_WAIT };
/* In seconds, of the jobs that ended, in order; ret has room for all jobs. How many. */
uint32_t figures_sorted(const struct outcome *outcome, enum figure which, double *ret);
void figures_make(const struct outcome *outcome, struct figures *ret);
