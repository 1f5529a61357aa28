/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A workload as a cluster of people and programs would make it, from a seed (docs/workload-format.md, "Generated load", has all
 * distributions and where their shapes come from).
 *
 *	users		few submit most: the k-th has a weight of 1/k; each belongs to one queue, chosen alike
 *	programs	each user has one to four; a program has a width and a typical run time, its jobs differ by a little
 *	sessions	one to many jobs of a program at a time, when the hour and the day of the week have it
 *
 * Jobs are made until they hold the wanted part of the cluster. Integers only: the same words give the same bytes on any machine.
 */
#include <stdio.h>
#include "base/err.h"
#include "sim/scenario.h"

enum { GENERATE_DAYS_MAX = 3660, GENERATE_USERS_MAX = 10000, GENERATE_LOAD_MAX = 1000 };

struct generate_options {
	uint32_t days, users;
	uint32_t load; /* percent of the cluster's GPU time that the jobs take together */
	uint64_t seed;
};

/* Fails when the cluster has no GPUs, or when there would be more than WORKLOAD_JOBS_MAX jobs. */
int generate(const struct scenario *cluster, const struct generate_options *options, FILE *out,
	     struct err *err) MUST_CHECK;
