/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The specification of one task: all that its shepherd needs, in the file `spec` of its place
 * (JSON, mode 0600: it holds the environment). Written by the engine before the shepherd is
 * spawned, never changed.
 *
 * `version` is the protocol between engine and shepherd: a shepherd outlives an upgrade of the
 * daemon, so each side understands the version before its own. Unknown members are skipped.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/err.h"
#include "engine/local/cgroup.h"

struct arena;

enum { SPEC_VERSION = 1, SPEC_BYTES_MAX = 8 << 20, SPEC_WORDS_MAX = 8192, SPEC_BOOT_MAX = 40 };

struct task_spec {
	int64_t version;
	uint64_t job, attempt;
	uint32_t rank, count; /* this task, of so many */
	uint32_t
		launch; /* how often the rank was started anew: its output goes on behind what is there */
	char boot[SPEC_BOOT_MAX]; /* boot id of the machine when it was written */
	const char *user;
	uid_t uid;
	gid_t gid;
	const char **argv; /* NULL-terminated; empty when there is a script */
	const char *script; /* NULL when there is an argv */
	const char **env; /* "NAME=value", complete but for what comes from the account */
	const char *workdir; /* NULL = home */
	const char *checkpoint_dir; /* NULL = none */
	int checkpoint_signal; /* 0 = none */
	int64_t checkpoint_every_ms; /* 0 = none is asked for by the clock */
	int64_t memory_mib; /* 0 = no limit */
	const char *cpus; /* processors it is bound to, "0-15,32-47"; NULL = any */
	int64_t log_cap_bytes;
	const char *logs; /* the data folder's logs */
	const char *run; /* folder that the task can reach: report socket, script, hosts */
	uint16_t port; /* rendezvous, the same for all ranks */
	uint64_t brand; /* see proctree.h */
	bool in_pod; /* limits, groups and priorities are the container's; not in the file */
	struct cgroup_set cgroups; /* to be made for this task; empty where there are none */
};

void spec_format(struct buf *out, const struct task_spec *spec);
/* Texts live in the arena. */
int spec_parse(const char *text, size_t size, struct arena *arena, struct task_spec *ret,
	       struct err *err) MUST_CHECK;
