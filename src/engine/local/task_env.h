/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The environment of a task (docs/task-environment.md): the variables of the shell that the job was submitted from, those of the job, then
 * Fairlead's; the later win. What comes from the user's account (HOME, PATH ...) is added by the shepherd, where
 * the job does not set it. Nothing of the daemon's own environment gets in.
 */
#include "engine/engine.h"

struct arena;

/* The attempt's nodes in order of their first rank. */
struct task_env_nodes {
	uint32_t *index; /* of each rank's node */
	/* What a launcher may start on each node: a process per GPU, one where a task has none. */
	uint32_t *slots;
	uint32_t count;
	const char **names;
	const char *hosts; /* comma separated, one entry per node */
};

void task_env_nodes(const struct engine_start *start, struct arena *arena,
		    struct task_env_nodes *ret);

struct task_env_place {
	const char *
		mps; /* folder of MPS's pipes, where it is to keep a part of a GPU; NULL = it does not */
	const struct task_env_nodes *nodes;
	const char *report_socket; /* path */
	const char *hostfile; /* path */
	const char *world_file; /* who belongs to the attempt now; NULL = not set */
	uint16_t port; /* rendezvous */
};

/* NULL-terminated, in the arena. */
const char **task_env_build(const struct engine_start *start, uint32_t rank,
			    const struct task_env_place *place, struct arena *arena);
/* Adds the account's variables where env has none of that name. */
const char **task_env_add_account(const char *const *env, const char *user, const char *home,
				  const char *shell, bool is_root, struct arena *arena);
/* "host slots=N", each host once: that is one line here, with the slots of all nodes. */
struct buf;
void task_env_hostfile(struct buf *out, const struct task_env_nodes *nodes);
/* The value of a variable, NULL when not set. */
const char *task_env_find(const char *const *env, const char *name);
