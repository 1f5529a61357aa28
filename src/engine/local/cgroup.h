/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Control groups of one task: the kernel's own list of what belongs to it, and its limits.
 *
 * A task may have up to three folders: `tree` owns its processes (version 2 with cgroup.kill where
 * there is one, else any version 1 hierarchy), `memory` and `pids` limit it. On a machine with
 * version 2 alone all three are one folder; on a hybrid one they lie in different hierarchies. Each
 * may be empty: then that service is not to be had here (no root, no delegation), and shepherd and
 * engine fall back to watching the process tree themselves.
 *
 * The engine looks once for parents it may use (cgroup_find), and names the folders of each task in
 * its spec, so whoever has to clean up after a killed shepherd knows where to look. Names hold the
 * attempt's number and are never reused.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "engine/local/pids.h"

enum { CGROUP_PATH_MAX = 512, CGROUP_FOLDERS_MAX = 3 };

struct cgroup_set {
	char name[CGROUP_PATH_MAX]; /* last step of the folders; empty for a set of parents */
	char tree[CGROUP_PATH_MAX];
	char memory[CGROUP_PATH_MAX];
	char pids[CGROUP_PATH_MAX];
	bool tree_v2, memory_v2;
};

/* The parents this process may make groups in, proved by making and removing one. Never fails:
 * empty = none. On version 2 it may move this process into a child of its own group, which is what
 * the kernel asks of a delegated group. */
void cgroup_find(struct cgroup_set *ret_parents);
/* The same from the texts of /proc/self/cgroup and /proc/self/mountinfo, without touching anything. */
void cgroup_parents_read(const char *cgroup_text, const char *mountinfo_text,
			 struct cgroup_set *ret_parents);
/* The folders of one task. */
void cgroup_set_name(const struct cgroup_set *parents, const char *name, struct cgroup_set *ret);
bool cgroup_set_is_empty(const struct cgroup_set *set);

/* Makes the folders and sets the limits; ret_enforced: memory_mib > 0 and the kernel holds the task
 * to it. */
int cgroup_make(const struct cgroup_set *set, int64_t memory_mib, bool *ret_enforced,
		struct err *err) MUST_CHECK;
/* Opens the cgroup.procs files; writing "0" into each moves the writer. The number of descriptors,
 * or negative. */
int cgroup_open(const struct cgroup_set *set, int fds[CGROUP_FOLDERS_MAX], struct err *err)
	MUST_CHECK;
/* Adds the processes in the groups, those in groups that the task made below included. */
void cgroup_members(const struct cgroup_set *set, struct pid_list *list);
/* Kills all members at once where the kernel can; false where it can't. */
bool cgroup_kill(const struct cgroup_set *set);
/* Processes killed for memory so far, and the peak in MiB; 0 where not known. */
void cgroup_memory(const struct cgroup_set *set, int64_t *ret_oom_kills, int64_t *ret_peak_mib);
/* Removes the folders. 0 = gone, which proves them empty; 1 = something still lives in one. */
int cgroup_remove(const struct cgroup_set *set) MUST_CHECK;
/* Whether /proc/PID/cgroup names the set. */
bool cgroup_owns(const struct cgroup_set *set, pid_t pid);
