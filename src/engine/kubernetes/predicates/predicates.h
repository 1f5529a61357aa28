/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The nodes on which a pod may run: what Kubernetes' own scheduler calls filtering. Pure: it knows what it is told of nodes, pods,
 * namespaces, claims and volumes, and answers from that.
 *
 *	predicates_node_set(p, node); predicates_pod_set(p, running) ...	as the API server tells of them
 *	predicates_check(p, pod, ..., &feasible)				one reason for each node; PREDICATE_FITS
 *
 * Cost of a check: nodes times what the pod says of nodes; and only if it, or a pod on some node, says something of other pods, also
 * pods times that. Nothing is kept between checks, so nothing can be stale.
 *
 * What is asked, in this order (the first that fails is the reason): the enum. What kube-scheduler asks and this does not, and why:
 * docs/kubernetes-nodes.md.
 */
#include <uthash.h>

#include "base/arena.h"
#include "engine/kubernetes/predicates/placed.h"

enum predicate {
	PREDICATE_FITS,
	PREDICATE_NODE_NAME, /* the pod names another node */
	PREDICATE_CORDONED,
	PREDICATE_TAINT,
	PREDICATE_NODE_AFFINITY, /* nodeSelector too */
	PREDICATE_PORT,
	PREDICATE_PODS, /* the node takes no more pods */
	PREDICATE_RESOURCE,
	PREDICATE_VOLUME, /* is not there, not bound, used by another pod, or can't be had on this node */
	PREDICATE_SPREAD,
	PREDICATE_AFFINITY,
	PREDICATE_ANTI_AFFINITY, /* of the pod, or of one that runs */
	PREDICATE_DEVICES, /* its ResourceClaims: asked by masks, not here */
	PREDICATE_END
};
const char *predicate_name(enum predicate predicate); /* in words: "node affinity" */

enum { PREDICATE_MARKS = 256 };

struct known_pod;
struct known_node {
	UT_hash_handle hh;
	uint32_t index;
	char *name;
	struct placed_node *node; /* NULL = only pods name it */
	struct known_pod *pods;
	uint8_t verdict[PREDICATE_MARKS]; /* of whoever asks; starts as 0 */
	bool touched; /* something of it or of its pods has changed */
};
struct known_pod {
	UT_hash_handle hh;
	struct placed_pod *pod;
	struct known_node *node; /* NULL = not bound, or over */
	struct known_pod *next, *previous; /* of the same node */
	struct known_pod *next_keeper, *previous_keeper; /* that keep others away */
	char *assumed; /* node that it is on its way to; NULL = it is not */
};
/* Namespaces, claims ("namespace/name") and volumes. */
struct known_thing {
	UT_hash_handle hh;
	char *name;
	void *block;
	bool seen; /* since predicates_things_begin */
};
struct predicates {
	struct known_node *by_name, **nodes; /* nodes: by index */
	uint32_t count, room;
	uint32_t gpu_tainted; /* nodes with a taint by the name of the GPU's resource */
	struct known_pod *pods;
	struct known_pod *keepers; /* on nodes, with anti-affinity of their own */
	struct known_thing *namespaces, *claims, *volumes, *classes;
};

/* Starts zeroed. */
void predicates_deinit(struct predicates *p);
/* Takes the block over; one of the same name (of a pod: uid) is replaced. */
/* False, of node and pod: it is as it was. */
bool predicates_node_set(struct predicates *p, struct placed_node *node);
void predicates_node_remove(struct predicates *p, const char *name);
bool predicates_pod_set(struct predicates *p, struct placed_pod *pod);
void predicates_pod_remove(struct predicates *p, const char *uid);
/* A pod that is known counts on this node from now on, as if it were bound; NULL = not any more. What it is told to be bound to comes first. */
void predicates_pod_assume(struct predicates *p, const char *uid, const char *node);
const struct placed_pod *predicates_pod(const struct predicates *p, const char *uid); /* or NULL */
struct known_node *predicates_node(const struct predicates *p, const char *name); /* or NULL */
void predicates_namespace_set(struct predicates *p, struct placed_namespace *namespace);
void predicates_claim_set(struct predicates *p, struct placed_claim *claim);
void predicates_volume_set(struct predicates *p, struct placed_volume *volume);
void predicates_class_set(struct predicates *p, struct placed_class *class);
void predicates_class_remove(struct predicates *p, const char *name);
/* A list of all of them comes: what was not set when it has come is removed. */
void predicates_things_begin(struct known_thing *things);
void predicates_things_listed(struct known_thing **things);
void predicates_namespace_remove(struct predicates *p, const char *name);
void predicates_claim_remove(struct predicates *p, const char *namespace, const char *name);
void predicates_volume_remove(struct predicates *p, const char *name);

struct feasible {
	uint8_t *
		reason; /* enum predicate, by index of the node; PREDICATE_END = there is no such node */
	uint32_t nodes, fit;
	uint32_t failed[PREDICATE_END]; /* nodes, by reason */
	const char *problem; /* why it fits nowhere, whatever the node; NULL */
};
/* counted: resources that somebody else counts, NULL-terminated; NULL = none. A pod is not in its own way. */
void predicates_check(const struct predicates *p, const struct placed_pod *pod,
		      const char *const *counted, struct arena *arena, struct feasible *ret);
/* The same of one node, for `times` such pods at once as far as room goes. problem: as above. */
enum predicate predicates_check_one(const struct predicates *p, const struct placed_pod *pod,
				    const char *node, const char *const *counted, uint32_t times,
				    struct arena *arena, const char **problem);

/* fits.c: how much of the resource such a pod takes ("pods": 1), and is left on the node; INT64_MAX = somebody else counts it. */
int64_t predicates_need(const struct placed_pod *pod, const char *name);
int64_t predicates_left(const struct predicates *p, const char *node, const char *name,
			const char *const *counted);

/* lacks.c: what the pod asks for and no node has, pods or no pods, in words: a label of its nodeSelector, a resource. False: it is not that. */
bool predicates_lack(const struct predicates *p, const struct placed_pod *pod,
		     const char *const *counted, char *text, size_t room);
/* The resources that it asks for, but for those in `counted`: "rdma/hca or ephemeral-storage"; none: "". */
void predicates_wished(const struct placed_pod *pod, const char *const *counted, char *text,
		       size_t room);

/* --- relations.c, spread.c: what pods have to do with each other, wherever they are. */
enum pod_relation {
	POD_NEAR = 1, /* a required affinity of the first names the other */
	POD_APART = 2, /* an anti-affinity of the first names the other */
	POD_SPREAD = 4, /* the first is spread over domains, and the other counts there */
	POD_PORTS = 8, /* both want the same host port */
	POD_CLAIM = 16 /* both use a claim that is for one pod alone */
};
uint32_t predicates_relation(const struct predicates *p, const struct placed_pod *first,
			     const struct placed_pod *other);
/* Some pod on a node would keep this one away, somewhere. */
bool predicates_kept_away(const struct predicates *p, const struct placed_pod *pod);
/* Some node has a taint by the name of the GPU's resource that the pod does not tolerate. */
bool predicates_gpu_taint_keeps(const struct predicates *p, const struct placed_pod *pod);
/* The StorageClass of a claim that is not bound and is to be bound once the node is known; NULL = it is bound, or waits for something else. */
const struct placed_class *predicates_claim_waits(const struct predicates *p,
						  const struct placed_claim *claim);
const struct placed_claim *predicates_claim(const struct predicates *p, const char *namespace,
					    const char *name); /* or NULL */
