/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When nodes of a cluster are there: text, one change a line, in order of time.
 *
 *	#fairlead-availability 1
 *	at_s,node,there
 *	0,spot-1,0
 *	390,spot-1,1
 *
 * Times count from the workload's start. A node that is not named, and one before its first line, is there. A node that goes takes its work
 * along without notice. docs/workload-format.md, "Nodes that come and go".
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

enum { AVAILABILITY_MAX = 10000000 };

struct availability_change {
	int64_t at_ms;
	const char *node;
	uint32_t line;
	bool there;
};

struct availability {
	const char *path;
	char *text;
	struct availability_change *changes; /* by time, then by line */
	uint32_t count;
};

int availability_read(const char *path, struct availability *ret, struct err *err) MUST_CHECK;
/* The same from a text, which is changed and must live as long; `path` for messages. */
int availability_parse(const char *path, char *text, struct availability *ret, struct err *err)
	MUST_CHECK;
/* Says that the cluster has no node of the name in a change. */
int availability_no_node(const struct availability *availability, uint32_t change, struct err *err)
	MUST_CHECK;
void availability_deinit(struct availability *availability); /* takes a zeroed one too */
