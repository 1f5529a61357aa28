/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process tree of one task: finding every process of it, and ending them all.
 *
 * Four marks say that a process belongs to a task; each survives what the others do not:
 *
 *	group	   it is in the task's control groups. The kernel's own word; only root can leave.
 *	descent	   it descends from the shepherd, which is a subreaper: orphans of double forks
 *		   and sessions of their own come back to it. Exact while the shepherd lives: no
 *		   child left (ECHILD) proves an empty tree.
 *	brand	   its hard limit RLIMIT_RTTIME is the task's number, some 10^5 years in
 *		   microseconds. Limits pass through fork, exec, setsid and a cleared
 *		   environment, cannot be raised without privilege, and /proc shows them to
 *		   everybody. It finds the tree after a shepherd was killed.
 *	marker	   its environment names the task's report socket; for machines where the brand
 *		   could not be set.
 *
 * Signals go through pidfds, after the marks were looked at again: a pid that was reused meanwhile
 * is never hit.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "engine/local/cgroup.h"
#include "engine/local/pids.h"

struct proctree {
	pid_t root; /* the shepherd's own pid while it lives; 0 = descent says nothing */
	uint64_t brand; /* 0 = none */
	char marker[160]; /* "FAIRLEAD_REPORT_SOCKET=..."; empty = none */
	const struct cgroup_set *cgroups;
};

/* A number that no other task on this machine has at this time, usable as a brand. tag: of the data
 * folder. */
uint64_t proctree_brand(uint64_t tag, uint64_t attempt, uint32_t rank, uint32_t launch);
/* Puts the brand on the calling process; false when a lower hard limit is there already. */
bool proctree_put_brand(uint64_t brand);
/* Members by group and descent; by brand and marker too when `all_marks` (reads every process of
 * the machine). */
void proctree_members(const struct proctree *tree, bool all_marks, struct pid_list *list);
bool proctree_owns(const struct proctree *tree, pid_t pid);
/* Sends a signal to one member; false when it is none (any more). */
bool proctree_signal_one(const struct proctree *tree, pid_t pid, int sig);
/* Sends a signal to all members; how many took it. SIGKILL uses the kernel's own kill of a group
 * where there is one. */
size_t proctree_signal(const struct proctree *tree, bool all_marks, int sig);
/* Sends the job's checkpoint signal where it is wanted: to the top process of each branch that
 * catches or blocks it, and to none below; a process that does neither would die of it. How many
 * took it. */
size_t proctree_notify(const struct proctree *tree, int sig);
/* Resident memory of the tree in MiB: the sum over its processes, counting shared pages once when
 * `exact`. */
int64_t proctree_memory_mib(const struct proctree *tree, bool exact);
