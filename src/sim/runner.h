/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs a scenario: builds its cluster, lets happen what happens, and compares with what is
 * expected.
 *
 * scenario_run does it three times: as written, once more (the same input must give the same
 * events and states, bit for bit), and with nodes, queues and jobs of different queues in another
 * order (the same must become of every job).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "sim/scenario.h"
#include "sim/world.h"

/* One thing that was expected and is not so. */
struct mismatch {
	const char *when, *what, *expected, *actual;
	const char *why; /* the core's own explanation where it helps, else "" */
	int line;
};

struct run_job {
	const struct scenario_job *from;
	uint32_t id, count; /* job ids id..id+count-1; 0 = not submitted (yet), or refused */
	bool refused, evicted, touched;
	enum reason refusal; /* why, as a reason code */
	const char *refusal_text;
	/* all its ranks ran for the first time; -1 = never. Of an array: its first element */
	int64_t started_ms;
};

struct run_node {
	const struct scenario_node *from;
	uint32_t used_mask, shared_mask;
	uint32_t share[NODE_GPUS_MAX]; /* taken of each, in 1/63000 */
	int64_t mib[NODE_GPUS_MAX];
	uint32_t slices
		[NODE_GPUS_MAX]; /* held of each, a bit for the memory slice where it begins */
}; /* used, shared: by what runs at the start */

struct run {
	const struct scenario *scenario;
	struct world world;
	struct arena memory;
	struct run_job *jobs; /* as in the scenario */
	uint32_t *job_at; /* index + 1 by job id */
	uint32_t job_room;
	struct scenario_queue *queues; /* as they are now */
	struct run_node *nodes;
	struct mismatch *mismatches;
	uint32_t mismatch_count, mismatch_room;
	bool permuted;
	FILE *trace; /* NULL = silent */
	struct buf waits; /* trace: who waited and why, to tell only what is new */
	struct buf outcome; /* what became of every job, for comparing runs */
};

/* What came of a scenario. */
struct scenario_result {
	struct mismatch *mismatches; /* in the arena given to scenario_run */
	uint32_t mismatch_count;
	const char **problems; /* broken promises that hold for every scenario */
	uint32_t problem_count;
	uint64_t events, turns, trail; /* trail: hash of all its events and states */
	int64_t end_ms; /* virtual time at the end */
};

/* 0: it ran, *ret says how; negative: the scenario can't be run (a queue's guarantee is not
 * possible, a job is placed where there is no room ...), with its place in err. */
int scenario_run(const struct scenario *scenario, FILE *trace, struct arena *arena,
		 struct scenario_result *ret, struct err *err) MUST_CHECK;

/* Between the files of the runner. */
int run_setup(struct run *run, struct err *err) MUST_CHECK; /* setup.c: everything of time 0 */
int run_team(struct run *run, const char *team, int line, struct err *err)
	MUST_CHECK; /* is there from now on; "" = none */
int run_submit(struct run *run, uint32_t job, struct err *err) MUST_CHECK;
int run_happen(struct run *run, const struct scenario_event *event, struct err *err)
	MUST_CHECK; /* happen.c */
/* scenario_slices.c: slice number `index` of the GPU (-1 = the first free one of the job's profile), as slice_at; 0 = there is none.
 * What a task with it holds. */
uint32_t run_slice_take(struct run_node *node, const struct scenario_job *job, uint32_t gpu,
			int32_t index);
struct gpu_part run_slice_part(const struct run_node *node, uint32_t slice);
/* setup_running.c: the GPUs of what runs at time 0, by job; its history. */
int64_t **run_masks_find(struct run *run, struct err *err);
void run_start_running(struct run *run, const struct run_job *job, const int64_t *masks,
		       int64_t at_ms);
void run_start_old(struct run *run, int64_t *const *masks, struct run_job **old, uint32_t count,
		   int64_t zero_ms);
int run_set_node(struct run *run, const struct scenario_node *node, struct err *err) MUST_CHECK;
int run_set_queue(struct run *run, const struct scenario_queue *queue, struct err *err) MUST_CHECK;
int run_error(const struct run *run, int line,
	      struct err *err); /* puts the scenario's file and line to err */
void run_expect(struct run *run, const struct expectation *expectation); /* expect.c */
void run_mismatch(struct run *run, struct mismatch mismatch);
void run_observe(void *context, const struct world *world, const struct event *event,
		 bool decision); /* track.c */
void run_trace_event(struct run *run, const struct event *event, bool decision); /* trace.c */
void run_trace_waits(struct run *run);
void run_outcome(struct run *run); /* track.c */
struct run_job *run_job_find(struct run *run, const char *name);
struct run_job *run_job_by_id(const struct run *run, int64_t id); /* NULL: none */
uint32_t run_tasks_running(const struct run *run, uint32_t job_id);
