/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who holds what, counted by one walk over the jobs of frozen facts: about 25 ns a job, so in a worker. */
#include "core/model/facts.h"

enum { JOB_STATES = JOB_TIMED_OUT + 1 };

struct tally_queue {
	uint32_t running, waiting;
	uint64_t gpus;
};

struct tally {
	uint64_t jobs[JOB_STATES];
	struct tally_queue *queues; /* by queue id - 1 */
	/* by row of `gpus`: (node - 1) * NODE_GPUS_MAX + index; 0 = free */
	uint32_t *gpu_job;
	uint32_t node_count;
};

struct gpu_count {
	uint32_t total, allocated, free, unusable;
};

void tally_init(struct tally *tally, const struct facts *facts);
void tally_deinit(struct tally *tally);
struct gpu_count tally_node(const struct tally *tally, const struct facts *facts,
			    struct node_id node);
/* nodes that are not gone */
struct gpu_count tally_all(const struct tally *tally, const struct facts *facts);
/* The job's attempt to look at: live, else the newest; NULL = none yet. */
const struct attempt *job_newest(const struct facts *facts, const struct job *job,
				 struct attempt_id *ret);
uint32_t job_gpus_held(const struct facts *facts, const struct job *job);
bool attempt_simulated(const struct facts *facts, const struct attempt *attempt);
/* The GPUs there are do not exist: of the first node that is not gone, as nodes are all simulated or none is. */
bool cluster_simulated(const struct facts *facts);
/* Of its newest attempt; one that never had a place: of the cluster. */
bool job_simulated(const struct facts *facts, const struct job *job);
