/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What must hold in every run, whatever was expected of it. The checkers keep books of their own
 * from the events and ask the engine what is so; they trust nothing the core has derived.
 *
 *	each event	no GPU twice, no more CPUs or memory than a node has, only nodes and
 *			GPUs that may be used, models, levels, queue limits; gangs start whole,
 *			between their minimum and maximum; no command before all ranks are ready;
 *			nothing critical is evicted; final states are final
 *	settled		no gang runs on without a member (unless it may rejoin); everybody
 *			evicted had somebody to make room for; nobody waits for spot
 *			nodes who would miss a deadline by it
 *	the end		everybody for whom somebody was evicted started, unless what happened
 *			meanwhile forbade it
 *
 * A problem is a sentence. The first CHECKS_TEXTS_MAX are kept, all are counted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "core/model/facts.h"
#include "sim/engine_sim.h"

enum { CHECKS_TEXTS_MAX = 20 };

/* What is in use on a node. */
struct checks_node {
	int64_t cpu_milli, ram_mib;
};

struct checks_eviction {
	uint32_t attempt, for_job; /* 0 = not known yet */
	int64_t at_ms;
	bool settled; /* it started, or had a good excuse */
};

struct checks {
	struct arena memory;
	int64_t start_ms; /* times in messages count from here */
	const char *problems[CHECKS_TEXTS_MAX];
	uint32_t problem_count;
	struct checks_node *nodes; /* by id */
	int64_t *queues; /* share in use, by id; with what is below */
	uint32_t *for_job; /* by attempt: for whom it was to go */
	uint32_t *live; /* attempts placed and not ended, any order */
	uint32_t *for_spot; /* jobs that were told to wait for spot nodes alone; some do no more */
	struct checks_eviction *evictions;
	uint32_t node_room, queue_room, for_room, live_room, live_count, eviction_room,
		eviction_count, for_spot_room, for_spot_count;
};

void checks_init(struct checks *checks, int64_t start_ms);
void checks_deinit(struct checks *checks);
/* An array of the checkers into which index fits; new records are zero. */
void *checks_room(struct checks *checks, void *array, uint32_t index, uint32_t *room, size_t bytes);
/* An event that is about to be applied; the engine has not heard of it. */
void checks_event(struct checks *checks, const struct facts *facts, const struct engine_sim *engine,
		  const struct event *event);
void checks_settled(struct checks *checks, const struct facts *facts);
/* A task of the job is about to be placed there. */
void checks_times(struct checks *checks, const struct facts *facts, const struct job *job,
		  uint32_t node, uint32_t mask);
void checks_end(struct checks *checks, const struct facts *facts);
void checks_problem(struct checks *checks, const struct facts *facts, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
