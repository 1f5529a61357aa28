/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a pod that others made asks of its scheduler: read from its object once, when it is seen. Labels and annotations of ours are formats:
 * docs/decisions/0015.
 *
 * What can't be honoured yet is not guessed: `problem` names it, and such a pod is not placed. What the core does not know of (`wants`) becomes a
 * mask of nodes: masks/masks.h.
 */
#include "base/digest.h"
#include "engine/engine.h"
#include "engine/kubernetes/objects.h"

#define WISH_QUEUE KUBE_DOMAIN "queue"
#define WISH_TIER KUBE_DOMAIN "tier"
#define WISH_PRIORITY KUBE_DOMAIN "priority"
#define WISH_GANG KUBE_DOMAIN "gang"
#define WISH_GANG_SIZE KUBE_DOMAIN "gang-size"
#define WISH_REQUIRE KUBE_DOMAIN "topology-require"
#define WISH_PREFER KUBE_DOMAIN "topology-prefer"

/* By whose word pods belong together; the first of these that a pod has counts. */
enum gang_kind {
	GANG_ALONE,
	GANG_OWN, /* fairlead.dev/gang, with gang-size */
	GANG_NATIVE, /* PodGroup of Kubernetes itself (scheduling.k8s.io), which the pod's schedulingGroup names */
	GANG_SIGS, /* PodGroup of scheduler-plugins */
	GANG_VOLCANO, /* PodGroup of Volcano */
	GANG_KUEUE, /* Kueue's pod group, with its total count */
	GANG_JOB, /* owner Job of batch/v1: as many as run at once */
	GANG_KUBEFLOW, /* owner of kubeflow.org: all replicas */
	GANG_RAY, /* owner RayCluster: its head and all its workers */
	GANG_OTHER, /* owner that Fairlead knows nothing of: each pod alone, with a warning */
	GANG_JOBSET, /* owner Job, one of several alike of a JobSet: as many as run at once of all of these */
	GANG_LWS /* LeaderWorkerSet: a leader and its workers */
};

/* What decides where it may run besides what the core looks at. */
enum wish_kind {
	WANTS_NODES = 1, /* affinity, or labels that the core does not keep */
	WANTS_PODS = 2, /* affinity or anti-affinity to pods */
	WANTS_SPREAD = 4,
	WANTS_CLAIMS = 8,
	WANTS_PORTS = 16,
	WANTS_RESOURCES = 32, /* that the core does not count */
	WANTS_NAMESPACES = 64, /* labels of namespaces decide */
	WANTS_DEVICES =
		128 /* claims that not every node with GPUs can meet; set by devices/kinds.c */
};

enum { WISH_CREATED_MAX = 32, WISH_CLAIMS_MAX = 8, WISH_CLAIMS_BYTES = 640 };

struct pod_wish {
	struct kube_use use;
	char created[WISH_CREATED_MAX]; /* as Kubernetes writes it: in the order of time */
	char queue[KUBE_WORD_MAX], tier[KUBE_WORD_MAX];
	int64_t priority;
	bool preempts;
	enum gang_kind kind;
	char gang[KUBE_NAME_MAX]; /* its name */
	char asked
		[KUBE_WORD_MAX]; /* name of the object that says how many, where it is another one; "" = the gang's */
	char part
		[KUBE_WORD_MAX]; /* of a JobSet: whose Jobs are `times` many; "" = it is not of one */
	int64_t times;
	int64_t size; /* as the pod itself says; 0 = it doesn't */
	char owner_api[KUBE_NAME_MAX], owner_kind[KUBE_WORD_MAX]; /* controller; "" = none */
	char require[KUBE_WORD_MAX], prefer[KUBE_WORD_MAX];
	char labels[KUBE_LABELS_MAX + 1], tolerates[KUBE_LABELS_MAX + 1];
	char claims[WISH_CLAIMS_BYTES]; /* names of its ResourceClaims, one a line */
	uint64_t claims_likeness; /* what they ask for; 0 = nothing */
	bool claims_missing; /* one from a template is not made yet */
	bool claims_together; /* of one that pods of its gang share */
	bool claims_exact; /* the core's counts don't say whether a node has what they ask for */
	int64_t own_gpus; /* those of `use` that it asks for as a resource; the others are of its claims */
	uint32_t wants; /* of wish_kind */
	char rules[DIGEST_HEX_MAX]; /* digest of what it says of nodes and other pods */
	char problem[KUBE_TEXT_MAX]; /* "" = it can be placed */
};

int pod_wish_read(const char *json, size_t size, const struct kube_pod *pod, struct pod_wish *ret,
		  struct err *err) MUST_CHECK;
