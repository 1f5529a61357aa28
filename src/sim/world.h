/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The production core in virtual time, with the simulated engine behind it and the checkers
 * beside it. Scenarios and random walks are two ways to feed the same world.
 *
 *	world_offer	a command or fact from outside: admit, apply, follow
 *	world_settle	everything that is due now: reports of the engine, decisions, and what they
 *			cause, until it is quiet
 *	world_next_ms	when something happens by itself
 *
 * In every turn (or every look_every-th) facts and index are verified, and the facts are saved,
 * loaded and indexed anew: they must give the same hash and decide the same.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/err.h"
#include "core/core.h"
#include "sim/checks.h"
#include "sim/engine_sim.h"

#define WORLD_EPOCH_MS INT64_C(1767225600000) /* 2026-01-01 00:00 UTC, the virtual time 0 */

struct world {
	struct facts facts;
	struct view *view;
	struct engine_sim engine;
	struct checks checks;
	struct arena step, request;
	uint64_t seq, turns,
		trail; /* trail: hash of all events, and of the states looked at, so far */
	int64_t now_ms, wake_ms; /* wake 0 = the core need not be woken */
	uint32_t look_every; /* at least 1 */
	uint64_t budget;
	void *context;
	/* Sees each event just after it was applied; NULL = nobody looks. */
	void (*observe)(void *context, const struct world *world, const struct event *event,
			bool decision);
};

void world_init(struct world *world, int64_t now_ms);
void world_deinit(struct world *world);
/* 0 applied, CORE_ALREADY, or refused with the reason in err. event->time_ms is set to now. */
int world_offer(struct world *world, struct event *event, uint32_t *ret_job, struct err *err)
	MUST_CHECK;
/* Applies an event that needs no admission, with the time it bears: history before the start. */
void world_apply(struct world *world, struct event *event, bool decision);
void world_settle(struct world *world);
int64_t world_next_ms(const struct world *world); /* SIM_FOREVER = never */
/* Moves the clock; the core learns of it only when it asked for that time. */
void world_advance(struct world *world, int64_t to_ms);
/* Nothing but regular checkpoints will happen by itself. */
bool world_is_quiet(const struct world *world);
/* Time goes on a little and the core is asked again: it must decide nothing. */
void world_check_still(struct world *world);
