/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the network costs a job under a plain policy, which does not ask: the time of a step where it is against the best place of the
 * cluster, as the core expects it of the same place (core/placement/find.h, place_speed). Only where the cluster file has a `fabric`.
 *
 * Whose nodes they are (spot, taints, classes) does not count: plain policies do not ask that either. Of a gang with a rest the tasks that are alike count, as in the core the role with the most GPUs.
 */
#include "sim/replay/plain_cluster.h"

struct network;

/* Cluster and queues as facts, without jobs. The caller frees them: facts_deinit. Negative: they can't be so; the place is in err. */
int network_facts(const struct scenario *cluster, struct facts *ret, struct err *err) MUST_CHECK;
/* *ret NULL: nobody describes the fabric. Negative as above. */
int network_open(const struct scenario *cluster, struct network **ret, struct err *err) MUST_CHECK;
void network_close(struct network *network); /* takes NULL too */
/* In thousandths: 1000 = as fast as on the best place, and for who does not talk. */
uint32_t network_slowdown(struct network *network, const struct workload_job *job,
			  const struct plain_place *places);
