/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What became of a workload under one policy: of every job, and of the cluster from moment to moment.
 *
 * Times count from the workload's start, in ms. Shares are in 1/63000 GPU.
 */
#include <stdbool.h>
#include <stdint.h>
#include "sim/replay/workload.h"

struct outcome_job {
	int64_t start_ms, end_ms; /* first command, last one; -1 = never */
	int64_t used_ms,
		lost_ms; /* GPU time (1/63000 counts as a part): all of it, and what had to be done again */
	int64_t network_ms; /* GPU time that it would not have taken on the best places, where its tasks talk faster */
	double cost; /* of the GPUs that it held, by the policy's prices; outcome.priced */
	uint32_t evictions; /* and nodes lost: how often it began again */
	uint8_t refused; /* never accepted: it can't run on this cluster */
};

struct moment {
	int64_t at_ms;
	int64_t used, wanted; /* shares: held by what runs; of all jobs that run or wait */
	uint32_t running, waiting; /* jobs */
};

/* What was said when it was submitted; waits. */
struct foretold {
	uint32_t job; /* in the workload */
	int64_t even_ms, safe_ms; /* at even odds; in 9 of 10 cases */
	int64_t plain_ms; /* jobs before it over starts in a day */
};

struct outcome {
	const char *policy;
	const struct workload *workload;
	struct outcome_job *jobs; /* as in the workload */
	struct moment *moments; /* rising times, each after all that happened then */
	uint32_t moment_count, moment_room;
	int64_t capacity; /* shares */
	bool priced; /* whether `cost` was reckoned */
	bool networked; /* whether somebody describes the fabric */
	uint64_t turns; /* how often the policy was asked */
	uint32_t forgotten; /* jobs that ended long ago, which the core no longer held at the end */
	struct foretold *foretold; /* of those that were asked about; foretold.h */
	uint32_t foretold_count;
};

void outcome_init(struct outcome *outcome, const char *policy, const struct workload *workload);
void outcome_deinit(struct outcome *outcome); /* takes a zeroed one too */
/* What of such a share, held so long, a job would not have needed without this slowdown (thousandths, at least 1000), in GPU-ms. */
int64_t outcome_slowed_ms(int64_t share, int64_t held_ms, uint32_t slowdown);
/* One at a time that was noted before takes its place. */
void outcome_note(struct outcome *outcome, const struct moment *moment);
