/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who holds what, counted by one walk over the jobs of frozen facts: about 25 ns a job, so in a worker. */
#include "core/model/facts.h"

enum { JOB_STATES = JOB_TIMED_OUT + 1 };

struct tally_queue {
	uint32_t running, waiting;
	int64_t share; /* GPUs held, in 1/63000 */
};

/* One task's part of a GPU. */
struct tally_part {
	uint32_t job, share, mib, slice;
	uint32_t next; /* of the same GPU: place in `parts` + 1, 0 = the last */
};

struct tally {
	uint64_t jobs[JOB_STATES];
	struct tally_queue *queues; /* by queue id - 1 */
	/* by row of `gpus`: (node - 1) * NODE_GPUS_MAX + index; 0 = free. Of one that is shared, the first job. */
	uint32_t *gpu_job;
	/* Likewise: the first of its parts, plus 1; 0 = not shared. In the order of jobs and ranks. */
	uint32_t *gpu_part;
	struct tally_part *parts;
	uint32_t part_count, part_room;
	uint32_t node_count;
};

struct gpu_count {
	uint32_t total, allocated, free, unusable;
	uint32_t shared; /* of the allocated, those of which parts are held */
	uint32_t cut; /* into slices, none of which is held; neither free nor allocated */
	int64_t open_share; /* what is left of these */
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
/* The id of an attempt by its number among those of its job, from 1; 0 = it has none, or that one is not known any more. Walks back from the newest. */
uint32_t job_attempt_find(const struct facts *facts, const struct job *job, uint32_t number);
/* And the number of an id; 0 likewise. */
uint32_t job_attempt_number(const struct facts *facts, const struct job *job, uint32_t id);
/* What is left of the GPU, shared or free; 0 0 = it is held whole, or takes no work. */
struct gpu_part tally_open(const struct tally *tally, const struct facts *facts,
			   struct node_id node, uint32_t index);
/* GPU shares that the job holds. */
int64_t job_share_held(const struct facts *facts, const struct job *job);
bool attempt_simulated(const struct facts *facts, const struct attempt *attempt);
/* The GPUs there are do not exist: of the first node that is not gone, as nodes are all simulated or none is. */
bool cluster_simulated(const struct facts *facts);
/* Of its newest attempt; one that never had a place: of the cluster. */
bool job_simulated(const struct facts *facts, const struct job *job);
