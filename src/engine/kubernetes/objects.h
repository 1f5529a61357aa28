/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What Fairlead reads of pods and nodes. Names that are labels, annotations and finalizers of ours are formats: docs/decisions/0013.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "engine/kubernetes/topology.h"

#define KUBE_DOMAIN "fairlead.dev/"
#define KUBE_LABEL_INSTANCE KUBE_DOMAIN "instance"
#define KUBE_LABEL_JOB KUBE_DOMAIN "job"
#define KUBE_LABEL_ATTEMPT KUBE_DOMAIN "attempt"
#define KUBE_LABEL_RANK KUBE_DOMAIN "rank"
#define KUBE_LABEL_LAUNCH KUBE_DOMAIN "launch"
#define KUBE_NOTE_NODE KUBE_DOMAIN "node"
#define KUBE_NOTE_STOPPED KUBE_DOMAIN "stopped"
#define KUBE_NOTE_LEASE KUBE_DOMAIN "lease-ms"
#define KUBE_NOTE_RANKS KUBE_DOMAIN "ranks"
#define KUBE_RANKS_CHANGE "leave-and-come"
#define KUBE_LABEL_REMOVAL KUBE_DOMAIN "removed-node"
#define KUBE_LABEL_AUTHORITY KUBE_DOMAIN "authority"
#define KUBE_TAINT_OFF "node.kubernetes.io/out-of-service"
#define KUBE_FINALIZER KUBE_DOMAIN "end-recorded"
#define KUBE_SCHEDULER "fairlead"
#define KUBE_CONTAINER "main"
#define KUBE_GPU "nvidia.com/gpu"

enum {
	KUBE_NAME_MAX = 254, /* of a pod or a node, with NUL */
	KUBE_WORD_MAX = 64, /* namespace, uid, reason */
	KUBE_TEXT_MAX = 160,
	KUBE_NODE_NAME_MAX = 64, /* of nodes that Fairlead can use */
	KUBE_LABELS_MAX = 512 /* labels, taints in one text */
};

/* What a pod takes of its node. */
struct kube_use {
	int64_t gpus, cpu_milli, memory_mib;
};

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED };

struct kube_pod {
	char uid[KUBE_WORD_MAX], namespace[KUBE_WORD_MAX], name[KUBE_NAME_MAX];
	char node[KUBE_NAME_MAX]; /* "" = not bound */
	char meant_for[KUBE_NAME_MAX]; /* note of ours */
	char stopped[KUBE_WORD_MAX]; /* note of ours: why a person says that nothing of it runs */
	int64_t lease_ms; /* note of ours: its task runs by leases of so long; 0 = it does not */
	char instance[KUBE_WORD_MAX]; /* whose it is: label of ours, "" = nobody's */
	uint64_t job, attempt, rank; /* labels of ours */
	uint64_t launch; /* by its name, where it is ours: how often the rank was started anew */
	bool changes; /* note of ours: ranks of its attempt leave and come */
	char scheduler[KUBE_WORD_MAX];
	struct kube_use use;
	enum pod_phase phase;
	bool deleting, finalizer; /* ours is there */
	bool forced; /* it is being deleted, and nobody waits for its kubelet */
	bool gated;
	bool unclear; /* something of it besides its name can't be read */
	bool others_run; /* containers beside the following one */
	/* of the container `main`, else of the first */
	bool running, ended;
	bool ended_first; /* before its deletion was asked for */
	int64_t code;
	char ended_text[KUBE_TEXT_MAX]; /* what it left as its message */
	char ended_reason[KUBE_WORD_MAX], waiting_reason[KUBE_WORD_MAX],
		waiting_text[KUBE_TEXT_MAX];
	char reason[KUBE_WORD_MAX], text[KUBE_TEXT_MAX]; /* of its status */
	char disruption[KUBE_WORD_MAX]; /* reason of the condition DisruptionTarget; "" = none */
	char nominated[KUBE_NAME_MAX]; /* node of its status, where it is not bound; "" = none */
};

struct kube_node {
	char name[KUBE_NAME_MAX];
	struct kube_use room; /* allocatable */
	int64_t pods; /* that it takes */
	char product[KUBE_TEXT_MAX], driver[KUBE_WORD_MAX];
	char cuda[KUBE_WORD_MAX]; /* the newest that its driver knows */
	char compute[KUBE_WORD_MAX]; /* capability: "9.0" */
	int64_t gpu_memory_mib;
	bool ready, cordoned, deleting;
	bool parts; /* what it counts as nvidia.com/gpu are parts of GPUs, so none of them is a GPU here */
	bool spot; /* may be taken away at any time, as its provider's labels say */
	bool off; /* somebody said with the taint out-of-service that nothing runs there any more */
	bool goes; /* a taint says that it will be taken away (departure.h) */
	int64_t goes_in_s; /* in so long; 0 = nobody says when */
	char goes_why[KUBE_TEXT_MAX];
	bool unclear; /* something of it besides its name can't be read */
	int64_t removal_s; /* its removal means so long afterwards that nothing runs there; -1 = never, 0 = not said (label of ours) */
	char labels[KUBE_LABELS_MAX + 1], taints[KUBE_LABELS_MAX + 1]; /* "key=value,..." */
	struct places places;
	char authority
		[KUBE_WORD_MAX]; /* who places work with GPUs on it (label of ours); "" = it does not say */
	char pool[KUBE_WORD_MAX]; /* by a label of ours or of its provider; "" = none */
	char problem[KUBE_TEXT_MAX]; /* why it can't be used at all */
};

int pod_read(const char *json, size_t size, struct kube_pod *ret, struct err *err) MUST_CHECK;
/* places: labels that say where nodes stand, besides those of the table; NULL = none */
int node_read(const char *json, size_t size, const struct engine_level_labels *places,
	      struct kube_node *ret, struct err *err) MUST_CHECK;

/* Whether a label of nodes is one of those that Fairlead keeps, so that jobs can ask for it. */
bool node_label_is_kept(const char *key);

static inline bool pod_is_over(const struct kube_pod *pod)
{
	return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}
