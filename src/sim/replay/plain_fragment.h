/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fragmentation gradient descent as published: the typical tasks are the most frequent shapes of the workload, taken ten at a time
 * until they cover 95 % of it; a node's fragment for one of them is all that is open of its GPUs when the task can't run there,
 * else what is open of GPUs too small for it. The node and GPU where the expected fragment grows least, as a whole number from 0 to 100
 * (a sigmoid of the growth over 1000 thousandths of a GPU); ties go to the smaller name.
 */
#include "sim/replay/plain_cluster.h"

void plain_fragment_learn(struct plain_cluster *cluster, const struct workload *workload);
double plain_fragment_cost(const struct plain_cluster *cluster, const struct plain_node *node,
			   const struct workload_job *job);
uint32_t plain_fragment_gpu(const struct plain_cluster *cluster, const struct plain_node *node,
			    const struct workload_job *job);

/* Of plain_cluster.c. */
bool plain_fits(const struct plain_node *node, const struct workload_job *job);
bool plain_model_is_accepted(const char *models, const char *model);
uint32_t plain_dice(struct plain_cluster *cluster, uint32_t sides);
