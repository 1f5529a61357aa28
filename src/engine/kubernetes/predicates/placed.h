/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What decides on which nodes a pod may run, as the API server has it.
 *
 * A cluster has tens of thousands of these, so each object is one block of memory: the struct at its beginning, and behind it texts and
 * the links of lists, named by their distance from the beginning (0 = there is none). A link's first member is the next link.
 *
 *	block   [struct placed_pod | "uid\0" "default\0" ... | label {next, key, value} | ...]
 *
 * Blocks are made by the readers below, freed with free(), and never changed. One larger than PLACED_MAX is refused: an object that large
 * was not made for scheduling.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum { PLACED_MAX = 256 * 1024 };

typedef uint32_t at_t; /* distance from the beginning of the block */

struct placed_label {
	at_t next, key, value;
};
struct placed_word {
	at_t next, text;
};
enum placed_op { OP_NONE, OP_IN, OP_NOT_IN, OP_EXISTS, OP_NOT_EXISTS, OP_GT, OP_LT, OP_EQUAL };
struct placed_requirement {
	at_t next, key, values; /* placed_word */
	uint32_t op;
};
/* matchLabels and matchExpressions. Not given selects nothing, empty selects everything. */
struct placed_selector {
	uint32_t given;
	at_t requirements;
};
struct placed_node_term {
	at_t next, labels, fields; /* placed_requirement; a term without any selects nothing */
};
struct placed_pod_term {
	at_t next, topology_key, namespaces; /* placed_word */
	struct placed_selector pods, where; /* where: namespaces, by their labels */
};
struct placed_spread {
	at_t next, topology_key, label_keys; /* placed_word */
	int32_t max_skew, min_domains;
	struct placed_selector pods;
	bool any_affinity, honours_taints; /* which nodes count */
};
struct placed_toleration {
	at_t next, key, value, effect;
	uint32_t op;
};
struct placed_port {
	at_t next, protocol, ip; /* 0 = TCP, 0.0.0.0 */
	int32_t port;
};
struct placed_amount {
	at_t next, name;
	int64_t milli; /* thousandths of one, of a byte */
};
struct placed_taint {
	at_t next, key, value, effect;
};

struct placed_pod {
	at_t uid, namespace, name, node; /* node 0 = not bound */
	at_t labels, node_selector; /* placed_label */
	at_t node_terms, near, apart, spreads, tolerations, ports;
	at_t requests; /* placed_amount; what it takes of its node, by the rules of the API */
	at_t claims; /* placed_word: PersistentVolumeClaims */
	uint32_t size; /* of the block, in bytes */
	bool has_node_terms; /* else the list says nothing */
	bool deleting, over;
};
struct placed_node {
	at_t name, labels, taints, allocatable;
	uint32_t size; /* of the block, in bytes */
	bool cordoned, deleting;
	bool ready; /* by its condition */
};
/* Labels are all that is looked at of a namespace. */
struct placed_namespace {
	at_t name, labels;
};
struct placed_claim {
	at_t namespace, name, volume, class; /* volume 0 = not bound */
	at_t selected; /* node that a volume is made for; 0 = none was chosen */
	bool bound; /* the binding is complete */
	bool lost, deleting, alone; /* alone: ReadWriteOncePod */
};
/* Of a StorageClass: whether a claim of it is bound only when a pod's node is known, and on which nodes its volumes can be. */
struct placed_class {
	at_t name, provisioner;
	at_t topologies; /* placed_node_term; nodes of any of them */
	bool waits; /* WaitForFirstConsumer */
	bool has_topologies;
};
struct placed_volume {
	at_t name, labels, node_terms;
	bool has_node_terms;
};
/* Of a PodDisruptionBudget: whose pods, and how many more of them may be disrupted now. */
struct placed_budget {
	at_t namespace, name;
	struct placed_selector pods;
	int32_t allowed;
};

static inline const char *placed_text(const void *block, at_t at)
{
	return at ? (const char *)block + at : "";
}
/* The link at this distance, NULL for 0. */
#define PLACED(block, type, at)                                                                    \
	((at) ? (const struct type *)(const void *)((const char *)(block) + (at)) : NULL)
#define PLACED_EACH(block, type, name, first)                                                      \
	for (const struct type *name = PLACED(block, type, first); name;                           \
	     name = PLACED(block, type, name->next))

int placed_pod_read(const char *json, size_t size, struct placed_pod **ret, struct err *err)
	MUST_CHECK;
int placed_node_read(const char *json, size_t size, struct placed_node **ret, struct err *err)
	MUST_CHECK;
int placed_namespace_read(const char *json, size_t size, struct placed_namespace **ret,
			  struct err *err) MUST_CHECK;
int placed_claim_read(const char *json, size_t size, struct placed_claim **ret, struct err *err)
	MUST_CHECK;
int placed_class_read(const char *json, size_t size, struct placed_class **ret, struct err *err)
	MUST_CHECK;
int placed_volume_read(const char *json, size_t size, struct placed_volume **ret, struct err *err)
	MUST_CHECK;
int placed_budget_read(const char *json, size_t size, struct placed_budget **ret, struct err *err)
	MUST_CHECK;
/* The value of a label, NULL where there is none. */
const char *placed_label_find(const void *block, at_t labels, const char *key);
