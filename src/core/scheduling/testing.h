/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small world for the core's tests: facts, view, and an engine that does what it is told when the test says so.
 *
 *	world_init(&w, "r0: n0:8 n1:8 | r1: n2:4");	one level `rack`; without "name:" parts in front there is none
 *	job = world_submit(&w, (struct wish){ .tasks = 4, .gpus = 1, .queue = "a" });
 *	world_decide(&w);				decides until there is no more; applies and follows
 *	world_run(&w);					ranks become ready and start as they are told
 *
 * Every event goes through apply and view_follow; world_decide checks the invariants of DESIGN 5 after each decision.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/core.h"

struct world {
	struct facts facts;
	struct view *view;
	struct arena step;
	uint64_t seq;
	int64_t now_ms;
	int64_t wake_ms;
	uint32_t decisions; /* of the last world_decide */
	uint32_t evictions; /* attempts told to leave for another job, since the beginning */
	uint32_t moves; /* jobs moved so that free GPUs lie together, since the beginning */
	bool quiet; /* does not run the checks after each decision (benchmarks) */
};

struct wish {
	const char *name, *queue, *user, *models, *require, *prefer;
	int64_t kind, tasks, tasks_max, gpus, priority, limit_ms, cpu_milli, memory_mib,
		gpu_memory_mib, retries, depends, array, restart_cost_ms, estimate_ms, max_slowdown;
	enum tier tier;
	int64_t grace_ms; /* 0 = the policy's; gpus: 0 = one, -1 = none */
	bool best_effort, polite, checkpoint, held, rejoins;
	bool external; /* of somebody else's tasks, whose grace is their own */
	int64_t part, part_mib; /* of one GPU, in 1/63000 or of its memory */
	const char *slice; /* "1g.10gb"; NULL = none */
};

void world_init(struct world *w, const char *picture);
void world_deinit(struct world *w);
void world_apply(struct world *w, const struct event *event);
struct event world_event(const struct world *w, enum event_kind kind);
void world_queue(struct world *w, const char *name, const char *parent, int64_t guarantee,
		 int64_t limit, int64_t weight);
void world_policy(struct world *w, int64_t grace_ms, int64_t min_runtime_ms);
void world_defragment(struct world *w, int64_t defragment); /* enum defragment */
void world_at(struct world *w, int64_t now_ms); /* time goes on; decides nothing */
uint32_t world_submit(struct world *w, struct wish wish); /* the (first) job's id */
void world_place(struct world *w, uint32_t job,
		 const char *nodes); /* "n0 n0 n1": started there by hand */
void world_decide(struct world *w);
void world_ready(struct world *w, uint32_t job);
void world_start(struct world *w, uint32_t job);
void world_exit(struct world *w, uint32_t job, int code); /* every rank */
void world_exit_rank(struct world *w, uint32_t job, uint32_t rank, enum task_cause cause, int code);
void world_saved(struct world *w, uint32_t job); /* a checkpoint is complete */
void world_cancel(struct world *w, uint32_t job);
/* Decides, and the engine does all it is told (ready, start, stop) until nothing is left to do now. */
void world_run(struct world *w);
uint32_t world_running(const struct world *w, uint32_t job); /* tasks that hold a place */
uint8_t world_state(const struct world *w, uint32_t job);
const char *
world_places(struct world *w,
	     uint32_t job); /* "n0/3 n1/1": nodes and masks by rank; in the step arena */
void world_check(const struct world *w); /* invariants; aborts */
/* A sentence of an explanation as somebody reads it who asks now; in the step arena. */
const char *world_reads(struct world *w, const char *sentence);
