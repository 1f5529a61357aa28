/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The fabric as it stands in a file: what a cluster file, a scenario and a body of the API say in the same words.
 *
 *	fabric: {hosts: {nics: 8, nic: ndr}, levels: {spine: {oversubscription: 2}}}	of all nodes, of the levels
 *	nodes: [{name: n7, fabric: {nics: 2}}]						of a node: comes first
 *
 * Keys and values: src/core/fabric/README.md. Complaints name file, line and column.
 */
#include "base/conf.h"
#include "core/fabric/fabric.h"

struct arena;

/* What is collected for one event fabric-set. Begins zeroed. */
struct fabric_draft {
	struct fabric fabric; /* its levels; makes without islands, which stand with the node */
	const char *models[FABRIC_HOSTS_MAX]; /* of the makes */
};

/* `levels` of the map: figures of each level by its name, `cluster` for the whole. */
int fabric_file_levels(const char *file, const struct conf *fabric, const char *const *names,
		       uint32_t count, struct fabric_draft *draft, struct err *err) MUST_CHECK;
/* What a file says of a host: `hosts` of the fabric, then the node's own; NULL = nothing said. *host is what it is without that;
 * its islands, if any are named, are in it. *ret_said has a bit for each key (fabric_host_key); NULL = not asked. */
int fabric_file_host(const char *file, const struct conf *fabric, const struct conf *own,
		     struct arena *arena, struct fabric_host *host, uint32_t *ret_said,
		     struct err *err) MUST_CHECK;
/* The make of such hosts, from 1. ERR_INVALID: there are too many different ones. */
int fabric_draft_make(struct fabric_draft *draft, const struct fabric_host *host, const char *model,
		      uint32_t *ret, struct err *err) MUST_CHECK;
/* The event; nodes and their makes are the caller's. Lists live in the arena. */
void fabric_draft_event(const struct fabric_draft *draft, struct arena *arena,
			struct event_fabric_set *ret);
