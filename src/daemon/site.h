/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The simulator's cluster file (docs/workload-format.md) as the nodes of a daemon: `fairlead up --cluster FILE`. Its nodes are simulated.
 * Its queues and policy are not taken: those belong to people who change them while the daemon runs.
 */
#include "node/discover.h"
#include "sim/scenario.h"

/* ret_site: the file, for what is no part of a node found: labels, slices, the fabric; its nodes side by side with *ret's. All in the arena. */
int site_find(const char *path, struct arena *arena, struct nodes_found *ret,
	      const struct scenario **ret_site, struct err *err) MUST_CHECK;
