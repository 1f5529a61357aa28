/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of one check share. */
#include "engine/kubernetes/predicates/predicates.h"

/* The domains of one topology key: nodes whose label has the same value. */
struct topology {
	struct topology *next;
	const char *key;
	uint32_t *domain; /* by index of the node; 0 = the node has no such label */
	uint32_t count; /* domains are 1 .. count */
};
struct check {
	const struct predicates *p;
	const struct placed_pod *pod;
	const char *const *counted;
	uint32_t times; /* so many such pods need room */
	struct arena *arena;
	struct topology *topologies;
	struct meeting *meeting; /* other pods, relations.c */
	struct spreading *spreading; /* spread.c */
};
const struct topology *check_topology(struct check *check, const char *key);
/* The pods on the node, without the one that is looked at: known = first, then next of the one before. */
const struct known_pod *check_pods(const struct check *check, const struct known_pod *from);
#define CHECK_PODS(check, name, node)                                                              \
	for (const struct known_pod *name = check_pods(check, (node)->pods); name;                 \
	     name = check_pods(check, (name)->next))

/* relations.c: affinity to pods */
void relations_begin(struct check *check);
enum predicate relations_meet(const struct check *check, const struct known_node *node);
/* spread.c */
bool spread_counts(const struct placed_pod *pod, const struct placed_pod *other);
void spread_begin(struct check *check);
bool spread_meets(const struct check *check, const struct known_node *node);
/* fits.c */
bool pods_share_port(const struct placed_pod *a, const struct placed_pod *b);
bool ports_free(const struct check *check, const struct known_node *node);
/* counted: names of those that somebody else looks at. */
bool resource_is_looked_at(const char *const *counted, const char *name);
enum predicate resources_free(const struct check *check, const struct known_node *node);
/* What the best node has of it, even without any pods; of resources that are counted here. */
enum amount_lack { AMOUNT_THERE, AMOUNT_LESS, AMOUNT_NONE };
enum amount_lack amount_lacks(const struct check *check, const struct placed_amount *wish);
/* volumes.c */
const char *volumes_problem(const struct check *check);
bool volumes_meet(const struct check *check, const struct placed_node *node);
