/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * apply, written to be obvious, for the test that compares the two: arrays that never shrink, states moved by hand at
 * each event, everything about jobs, attempts, tasks, checkpoints and promises kept for ever. One model at a time; set
 * it to zero to begin anew. It reads the facts only for what it does not model: which nodes and shapes exist.
 */
#include "core/model/facts.h"

enum { JOBS = 8000, ATTEMPTS = 8000, RANKS = 8, PROMISED = 8, KEPT_MAX = 200, USERS = 8 };

struct model_task {
	int64_t node, mask, reports, step, launch;
	int state, code;
	bool leaving, bad;
};

struct model_attempt {
	bool parts; /* of GPUs: keeps its width */
	bool gone;
	uint32_t job, ranks;
	bool released, warned, stopping, over, unreachable, shielded, deaf, forgiven;
	int64_t deadline, checkpoint_ms, resume;
	uint32_t for_job, least;
	int why, first_failed;
	uint32_t changes; /* of who belongs to it */
	bool was_ready[RANKS], was_started[RANKS];
	struct model_task task[RANKS];
};

struct model_checkpoint {
	bool is_void;
	const char *why; /* as the event said it; NULL = not void */
	int64_t step;
};

struct model_job {
	int state;
	int64_t since, submitted, run, used, lost, priority, retries;
	bool held, evicted, cancel;
	uint32_t attempt, last, attempts;
	uint32_t depends[3], depend_count;
	bool whole[3]; /* depends[i] stands for its array */
	uint32_t array_first, array_count;
	uint32_t made;
	struct model_checkpoint checkpoint[KEPT_MAX];
	uint32_t promised, victims;
	int64_t promise_node[PROMISED], promise_mask[PROMISED], victim[PROMISED];
	uint32_t reserved;
	uint32_t user;
	int64_t reserved_ms, waits_for, reserved_node[PROMISED], reserved_mask[PROMISED];
};

/* The user who has the name now, or had it last. */
struct model_user {
	bool there, removed;
	uint32_t first_job;
};

struct model {
	uint32_t jobs, attempts;
	uint32_t left, again; /* how often ranks left, and were started anew */
	int64_t now;
	struct model_user user[USERS]; /* u0, u1 ... */
	struct model_job job[JOBS + 1];
	struct model_attempt attempt[ATTEMPTS + 1];
};

extern struct model model;

/* The event in the model; f are the facts after apply took the same event. */
void model_apply(const struct event *event, const struct facts *f);
/* How many ranks of the attempt hold a place. */
uint32_t model_holding(const struct model_attempt *attempt);
