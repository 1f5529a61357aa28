/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the object by which pods belong together says of how many start at once: of a PodGroup its least number, of a Job what is still to
 * run at once, of Jobs that belong together what is still to run of all, of Kubeflow's jobs all replicas, of a RayCluster its head and all workers, of a LeaderWorkerSet one group.
 */
#include "engine/kubernetes/gangs/pod_wish.h"

/* -1 = it does not say. */
struct owner_numbers {
	int64_t least, parallelism, completions, succeeded, replicas;
	int64_t failed; /* indexes of a Job that failed for good: nobody comes for them */
	int64_t elastic; /* its program goes on with so many; of a RayCluster, workers */
	bool goes; /* it is being deleted */
	bool single; /* its policy says that they have nothing to do with each other */
	char together[KUBE_WORD_MAX]; /* label of nodes; "" = any */
	bool more; /* and it says more than one of them */
};

/* False: it can't be read. More than ENGINE_TASKS_MAX may come out, which nobody places. */
bool owner_read(const char *json, size_t size, struct owner_numbers *ret);
/* Of a list of Jobs, `times` when all are made: what is still to run at once of all of them, as parallelism. Those that end leave the others. */
bool owner_read_jobs(const char *json, size_t size, int64_t times, struct owner_numbers *ret);
/* -1 = it does not say. */
int64_t owner_gang_size(enum gang_kind kind, const struct owner_numbers *numbers);
/* So many of these have to go on where nodes are taken away. */
int64_t owner_gang_stay(enum gang_kind kind, const struct owner_numbers *numbers);
