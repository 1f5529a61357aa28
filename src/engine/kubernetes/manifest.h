/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What Fairlead writes to the API server, as JSON. The forms are kept in docs/decisions/0013 and tests/golden/kubernetes.
 *
 * The job's own variables and its script are no part of the pod: anybody who may look at pods would see them. They lie in a Secret of the
 * attempt, which belongs to the pod of rank 0 and goes with it. So does the Service that gives the pods of a gang their host names. Where ranks
 * leave and come no pod lives as long as the attempt: both belong to nobody, and are deleted before its last pods are let go (parting.c).
 */
#include <stdbool.h>
#include "engine/engine.h"
#include "engine/kubernetes/objects.h"

struct arena;
struct buf;

enum { MANIFEST_PORT = 29500, MANIFEST_NAME_MAX = 64, MANIFEST_HOST_MAX = 96 };

struct manifest_site {
	const char *instance, *namespace;
	const char *image; /* of jobs that name none; NULL = they are refused */
	const char *shepherd_server, *shepherd_image; /* NULL = no pod has a shepherd */
	int64_t lease_ms; /* that it lives by */
};

/* Whether a pod of that name is of a job of its own. */
bool manifest_named(const struct manifest_site *site, const char *namespace, const char *name,
		    uint64_t *ret_job, uint64_t *ret_attempt, uint64_t *ret_rank,
		    uint64_t *ret_launch);
/* launch: how often the rank was started anew; each start is a pod of another name. */
void manifest_pod_name(const struct manifest_site *site, uint64_t job, uint64_t attempt,
		       uint64_t rank, uint32_t launch, char out[MANIFEST_NAME_MAX]);
/* The name by which others of the attempt reach it. */
void manifest_host(const struct manifest_site *site, uint64_t job, uint64_t attempt, uint32_t rank,
		   uint32_t launch, char out[MANIFEST_HOST_MAX]);
/* Of the attempt's Secret and Service. */
void manifest_attempt_name(const struct manifest_site *site, uint64_t job, uint64_t attempt,
			   char out[MANIFEST_NAME_MAX]);
/* Which rank a pod of this site is. By what nobody can change in a pod: its name and its scheduler; labels anybody may. False: it is not ours. */
bool manifest_owns(const struct manifest_site *site, struct kube_pod *pod);
/* Its pods have a shepherd: docs/decisions/0022. */
bool manifest_has_shepherd(const struct manifest_site *site, const struct engine_start *start);
/* Its task begins in a copy of the job's snapshot: docs/decisions/0027. */
bool manifest_has_code(const struct manifest_site *site, const struct engine_start *start);
bool manifest_needs_secret(const struct manifest_site *site, const struct engine_start *start);
/* claim: its GPUs come by the ResourceClaim of its name, else from a device plugin. */
void manifest_pod(const struct manifest_site *site, const struct engine_start *start, uint32_t rank,
		  bool claim, struct arena *arena, struct buf *out);
/* That claim, belonging to the pod: so many GPUs of a DeviceClass. */
void manifest_claim(const struct manifest_site *site, uint64_t job, uint64_t attempt, uint64_t rank,
		    uint32_t launch, const char *pod_uid, const char *class, uint32_t gpus,
		    struct buf *out);
/* owner: uid of the pod of rank 0, put in later by manifest_owned. */
void manifest_secret(const struct manifest_site *site, const struct engine_start *start,
		     struct buf *out);
void manifest_service(const struct manifest_site *site, const struct engine_start *start,
		      struct buf *out);
/* The Secret or Service, belonging to this pod; as it is where ranks leave and come. */
void manifest_owned(const char *body, const char *pod, const char *uid, struct buf *out);
void manifest_binding(const char *namespace, const char *pod, const char *uid, const char *node,
		      struct buf *out);
/* Of a pod that others made: with the binding it is noted which task of which job it is. */
void manifest_gang_binding(const char *namespace, const char *pod, const char *uid,
			   const char *node, uint64_t job, uint64_t attempt, uint64_t rank,
			   struct buf *out);
/* grace_s below 0: as the pod itself says. */
/* The same asked of the API server's eviction, which refuses while a budget allows no disruption. */
void manifest_evict(const char *namespace, const char *name, const char *uid, struct buf *out);
void manifest_delete(const char *uid, int64_t grace_s, struct buf *out);
/* A strategic merge patch that takes our finalizer away. */
void manifest_let_go(const char *uid, struct buf *out);
