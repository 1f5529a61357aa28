/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The cluster as the plain policies see it: nodes with GPUs of which so much is open, processors and memory, no levels.
 * Which node takes a task is one of a few published rules.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/model/facts.h"
#include "sim/replay/workload.h"
#include "sim/scenario.h"

enum plain_choice {
	CHOOSE_TIGHT, /* the fewest free GPUs that are enough, the least open part that is enough; then as written */
	CHOOSE_FIRST, /* as written */
	CHOOSE_FASTEST, /* all tasks on the model that does the work fastest; there as written */
	CHOOSE_RANDOM, /* any node that fits, any GPU of it */
	CHOOSE_BEST_FIT, /* least (free processors / 128 + free GPUs / 8) afterwards, the smallest sufficient GPU */
	CHOOSE_FGD /* where the expected fragment over the workload's typical tasks grows least */
};

struct plain_node {
	uint16_t open[NODE_GPUS_MAX]; /* of each GPU, in 1/63000 */
	int64_t cpu_milli, ram_mib, gpu_memory_mib; /* open; of each GPU */
	const char *model, *name;
	uint32_t gpus, free; /* free: wholly open */
	uint32_t open_sum; /* of all GPUs together */
	int64_t price_micro; /* of a GPU for an hour */
	bool spot, there;
};

struct plain_place {
	uint32_t node, gpu_mask;
};

/* A frequent shape of the workload. */
struct plain_typical {
	const struct workload_job *like;
	double weight; /* part of all jobs */
};

struct plain_cluster {
	struct plain_node *nodes;
	uint32_t count;
	int64_t capacity, used; /* shares */
	enum plain_choice choice;
	uint64_t random;
	struct plain_typical *typical;
	uint32_t typical_count;
};

void plain_cluster_init(struct plain_cluster *cluster, const struct scenario *from,
			enum plain_choice choice, const struct workload *workload, uint64_t seed);
void plain_cluster_deinit(struct plain_cluster *cluster);
/* All tasks or none; ret has room for all of them. */
bool plain_take(struct plain_cluster *cluster, const struct workload_job *job,
		struct plain_place *ret);
/* By its name; -1 = there is none. */
int32_t plain_node_find(const struct plain_cluster *cluster, const char *name);
/* Whether a job that does not say which nodes it may use may go on spot nodes, and one that does: as with the core. */
bool plain_may_spot(const struct workload_job *job);
/* What its GPUs cost for an hour, in millionths. */
double plain_price(const struct plain_cluster *cluster, const struct workload_job *job,
		   const struct plain_place *places);
/* In thousandths: that of its slowest task. */
uint32_t plain_speed(const struct plain_cluster *cluster, const struct workload_job *job,
		     const struct plain_place *places);
void plain_give(struct plain_cluster *cluster, const struct workload_job *job,
		const struct plain_place *places);
