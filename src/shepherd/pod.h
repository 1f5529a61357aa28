/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The shepherd inside a pod (docs/decisions/0022): where Fairlead made the pod and the job has checkpoints, it is the container's command, and
 * the task is what stands behind it. To the task all is as on one machine: report socket, signals, a checkpoint asked for by the clock.
 *
 * Where it goes on from a checkpoint, a third thread looks first whether that is as it was when it was reported: the daemon can't see the pod's
 * volumes. Where it is not the task does not start, the daemon hears of it, and the attempt counts as lost: the next one goes on from the one before.
 *
 * Two threads talk with the daemon, over HTTP:
 *
 *	lease	 "may it go on?" The answer is good for lease_ms from the moment when the question was *sent*, on this machine's boot clock.
 *		 The task starts with the first answer. Without another one in time it is stopped so that nothing of it is left when the
 *		 lease ends: SIGTERM pod_grace_ms before, SIGKILL pod_margin_ms before. So who gave the lease knows when it has stopped.
 *	reports	 what the task reported, again until the daemon says that it is in its journal.
 *
 * What the daemon asks for comes with the answer to the first and becomes a file in the task's place, as if the local engine had made it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct buf;
struct engine_fact;
struct shepherd;

/* Where it ends within a lease: shares of it, and at most so much. */
int64_t pod_grace_ms(int64_t lease_ms);
int64_t pod_margin_ms(int64_t lease_ms);

struct pod_options {
	const char *home; /* a folder that this container has for itself */
	const char *server; /* "10.0.0.7:7071", "[fd00::7]:7071" */
	const char *token;
	uint64_t attempt;
	uint32_t rank;
	uint32_t launch; /* how often this rank was started anew */
	/* Of the checkpoint that it goes on from: */
	const char *resume_path; /* NULL = none, or nothing is known of it */
	int64_t resume_number, resume_bytes;
};
/* "7:123", number and bytes. False: it is not that. */
bool pod_resume_parse(const char *text, int64_t *ret_number, int64_t *ret_bytes);
struct pod *pod_create(const struct pod_options *options);
/* Once the launcher is ready and signals are blocked: begins to ask. folder: of the task's place. */
void pod_start(struct pod *pod, int folder);
/* By the loop: stops the task when its lease ends or it may not go on. */
void pod_look(struct shepherd *s, int64_t now);
int64_t pod_left_ms(const struct shepherd *s, int64_t now); /* until that is due */
/* A report that was kept here. */
void pod_reported(struct pod *pod, const struct engine_fact *fact);
/* Nothing is left of the task, whose container ends with this code: waits until what it reported is with the daemon, for patience_ms at
 * most, and then says so. */
void pod_finish(struct pod *pod, int code, int64_t patience_ms);
/* Why it was stopped by this program; "" = it was not. */
const char *pod_lost(const struct pod *pod);

/* pod_world.c: who belongs to the attempt, as an answer says it. */
struct json_slice;
struct json_reader;
struct pod_world {
	int64_t generation, size;
	int64_t rank; /* this task's place in it; -1 = it is to leave, */
	int64_t leave_ms; /* within this time */
};
/* world: what the daemon says of it, which becomes the file HOME/world, and a notice for who listens. The other members are filled in before. */
int pod_world_put(const char *home, int folder, const struct json_slice *world,
		  struct pod_world *ret, struct err *err) MUST_CHECK;

/* A value as it stands there, read over. */
struct json_slice pod_value_skip(struct json_reader *r);

/* pod_http.c: one request on a connection of its own. The status, or negative: no answer came within timeout_ms. */
struct pod_post {
	const char *server, *path, *token;
	const char *body; /* NULL: it is a GET */
	int64_t timeout_ms;
	size_t most; /* bytes of the answer; 0 = 64 KiB */
};
int pod_http_post(const struct pod_post *post, struct buf *ret_body, struct err *err) MUST_CHECK;

/* pod_fetch.c: the snapshot of an attempt, from the daemon (docs/decisions/0027). Asks again until it has it or hears that it is not to get it. */
struct pod_fetch {
	const char *server, *token;
	const char *snapshot; /* its id */
	const char *into; /* a folder, in which it makes `code` */
	uint64_t attempt;
	uint32_t rank, launch;
	int64_t pause_ms; /* before it asks again, at first; 0 = the usual */
};
int pod_fetch(const struct pod_fetch *fetch, struct err *err) MUST_CHECK;

/* pod_main.c: a copy of this program at another place, for containers that have it from there. */
int pod_install(const char *path, struct err *err) MUST_CHECK;
