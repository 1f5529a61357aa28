/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The production core in virtual time from any facts on, as quickly as it goes: no faults, no checkers, no trace. Somebody says how
 * long each attempt runs; everything else follows.
 *
 *	play_init	a copy of the facts; running attempts go on, waiting jobs wait
 *	play_offer	something from outside, at the time of the play
 *	play_settle	all that is decided now
 *	play_next_ms	when the next thing happens by itself; PLAY_NEVER = no more
 *	play_go		to that time
 *	play_node	one goes, with all that runs there, or is back
 *
 * Taken as simple: places are ready and commands start at once; a warned attempt that makes checkpoints has saved in the middle of
 * its grace, one that saves regularly has saved at once; a stopped one is gone at once; what is unreachable stays so; a run ends well.
 *
 * The facts given are only read, and may be freed after play_init.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "core/core.h"

#define PLAY_NEVER INT64_MAX

struct play_item {
	int64_t at_ms;
	uint32_t attempt;
	uint8_t what; /* enum play_what */
};

/* Of equal times in this order. */
enum play_what {
	PLAY_SAVES, /* it was warned, and has saved */
	PLAY_SAVES_REGULARLY,
	PLAY_ENDS
};

struct play {
	struct facts facts;
	struct view *view;
	struct arena step;
	struct play_item *items; /* heap: earliest first, then the lower attempt */
	uint32_t item_count, item_room;
	int64_t now_ms, wake_ms; /* wake 0 = the core need not be woken */
	uint64_t seq, turns;
	uint64_t turns_max; /* play_settle gives up behind so many turns of the core; 0 = never */
	void *context;
	/* How long the job's attempt runs from now on; age_ms: since its release. */
	int64_t (*rest_ms)(void *context, const struct facts *facts, uint32_t job, int64_t age_ms);
	/* The job saves so often by itself; 0, and NULL: it does not. */
	int64_t (*saves_every_ms)(void *context, const struct facts *facts, uint32_t job);
	void (*placed)(void *context, const struct facts *facts, uint32_t job,
		       int64_t at_ms); /* NULL = nobody looks */
	void (*left)(void *context, const struct facts *facts,
		     uint32_t job); /* its attempt has come to its end; NULL = nobody looks */
	void (*ended)(void *context, const struct facts *facts, uint32_t job, int64_t at_ms);
};

/* The callbacks and turns_max of `play` are set before; now_ms: not before the facts' own time. */
void play_init(struct play *play, const struct facts *facts, int64_t now_ms);
void play_deinit(struct play *play);
/* Applied as it is, at the time of the play. */
void play_offer(struct play *play, struct event *event);
bool play_settle(struct play *play); /* false: turns_max is reached */
int64_t play_next_ms(const struct play *play);
void play_go(struct play *play, int64_t to_ms); /* not beyond play_next_ms */
/* At the time of the play: the node is down and its ranks are lost at once, or it is ready again. */
void play_node(struct play *play, uint32_t node, bool there);
