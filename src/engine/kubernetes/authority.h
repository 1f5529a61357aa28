/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who places work on which nodes: pods that hold GPUs, by node, with the scheduler that each names; and what nodes declare.
 *
 * A node's label fairlead.dev/authority names who places work with GPUs on it: `fairlead`, or a word for somebody else. Without it Fairlead
 * does. All nodes of a pool have one. Two in one pool are in conflict: nodes that declare different ones; a pod with GPUs of another scheduler where
 * Fairlead is declared, or where it has work itself; Fairlead's work where another is declared.
 */
#include "engine/kubernetes/cluster.h"

/* What the pod asks for, kept while it is there. */
void scheduler_keep(struct pod_entry *entry, const char *name);
void scheduler_drop(struct pod_entry *entry);
/* The pod holds GPUs of its node, or does so no more. Under the lock, whenever it was told. */
void holder_follow(struct engine *engine, struct pod_entry *entry, const struct kube_pod *pod);
void holder_leave(struct pod_entry *entry);
/* GPUs that pods on the node hold, whoever's they are. */
int64_t holders_gpus(const struct node_entry *node);
/* Pods on the node that are not Fairlead's work and hold GPUs: "pods a/b (default-scheduler) and c/d (volcano)"; "" = none. */
enum { HOLDERS_TEXT_MAX = 200 };
void holders_say(const struct node_entry *node, char out[HOLDERS_TEXT_MAX]);
/* Of devices that drivers publish, reckoned when the node is told (devices/claimants.c): nobody has any; a pod has some. */
void claimants_clear(struct node_entry *node);
void claimant_add(struct node_entry *node, const char *scheduler, const char *name);
/* A pool with two authorities. */
enum { CONFLICT_TEXT_MAX = 512, CONFLICT_NODES = 2 };
struct conflict {
	const char *pool;
	bool own; /* it is a node by itself */
	const struct node_entry
		*nodes[CONFLICT_NODES]; /* that the text names; the second may be NULL */
	char text[CONFLICT_TEXT_MAX];
};
/* In no order. Under the lock. */
void conflicts_each(struct engine *engine,
		    void (*see)(void *context, const struct conflict *conflict), void *context);
/* How many pools have two authorities, and what is to be said of the first by name, pools before nodes; "" = none. Under the lock. */
uint32_t authority_conflicts(struct engine *engine, char out[CONFLICT_TEXT_MAX]);

/* authority_tell.c: Events on the nodes of such pools. Under the lock. */
void authority_changed(struct engine *engine); /* nodes, or who has GPUs there */
void authority_look(struct engine *engine, int64_t in_ms);
void authority_deinit(struct engine *engine);
