/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The fabric as the facts have it. Levels and makes stand there as numbers (event fabric-set); what a node's make does not
 * say, its islands, stands with the node.
 */
#include "core/fabric/fabric.h"

/* Nothing is known of a cluster of which nobody described any make. */
static inline bool fabric_is_known(const struct facts *facts)
{
	return facts->fabric.make_count > 0;
}
/* Levels and what is between their parts; no makes. */
void fabric_of_facts(const struct facts *facts, struct fabric *ret);
/* How the node is built. One of no known make has the figures of its GPU model, and no cards. */
void fabric_host_of(const struct facts *facts, const struct node *node, struct fabric_host *ret);

/* What a node of that model is without a word from anybody (figures of the model, no cards where it is not known), then what was found
 * out on the machine. Its NUMA nodes count as found. */
void fabric_host_begin(const struct facts *facts, const struct node *node, struct fabric_host *ret);
/* The same, and then what people said of it (bits SAID_KEY + a key), which stays as it is: a node after its machine was looked at again. */
void fabric_host_again(const struct facts *facts, const struct node *node, uint32_t said,
		       struct fabric_host *ret);
/* Whether anything is known of how it is built but by its model. */
static inline bool fabric_host_is_told(const struct node *node)
{
	return node->make || (node->found.given & ~(uint32_t)FOUND_PROCESSES);
}

/* The numbers of an event fabric-set. */
void fabric_make_numbers(const struct fabric_host *host, int64_t ret[MAKE_FIELDS]);
void fabric_level_numbers(const struct fabric_level *level, int64_t ret[FABRIC_LEVEL_FIELDS]);
