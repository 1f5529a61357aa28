/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A brake for a core that decides the same again and again. Between two events from outside it may be called thousands of times, for a
 * million jobs that wait are started some thousand at a time; but each of these calls decides something new. A defect of the policy that
 * takes back what it decided, and decides it again, would fill the journal within the hour. So calls are counted in which nothing is new:
 *
 *	outside		job 7 is submitted, and the core had come to rest		counts begin anew
 *	decide		place promised to 7					new
 *	decide		the promise to 7 dropped				new
 *	...		both, BRAKE_SEEN times each				new still
 *	decide		place promised to 7, for the 65th time			nothing new: 1, 2, 3 ...
 *	...		BRAKE_CALLS of them within BRAKE_WINDOW_MS		the brake: a pause before the next call
 *
 * The pause doubles with each further call, up to BRAKE_PAUSE_MOST_MS. An event from outside ends the pause at hand at once. The brake is off
 * when something has happened and the core has come to rest, which is a call that decides nothing, or when it decided nothing for a window.
 * Of the first BRAKE_FREE calls after that nothing is remembered, and mostly there are no more. For a window after the brake was on it takes
 * less to be on again.
 *
 * An event alone does not begin the counts anew: where one comes each 100 ms, a circle would never be seen, for it has time for a hundred calls
 * between. Nor does rest alone: a circle may wait for the clock. A core that answers what happens comes to rest after each event.
 *
 * The caller's memory; one thread. Times are those of a clock that never goes back.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/model/event.h"

enum {
	BRAKE_FREE = 256,
	BRAKE_SEEN = 64,
	BRAKE_CALLS = 1000,
	BRAKE_SEEN_SOON = 8, /* when it was on within the last window */
	BRAKE_CALLS_SOON = 100,
	BRAKE_WINDOW_MS = 60000,
	BRAKE_PAUSE_FIRST_MS = 10,
	BRAKE_PAUSE_MOST_MS = 1000,
	BRAKE_SLOTS = 65536, /* decisions that are told apart; beyond them all are forgotten */
	BRAKE_TEXT_MAX = 256
};

struct brake_slot {
	uint64_t key;
	uint32_t age, count; /* of another age than the brake's: free */
};

struct brake {
	struct brake_slot *slots; /* NULL = not needed yet */
	uint32_t age, used;
	bool happened,
		rested; /* something since the counts began; the core, since it decided something */
	uint32_t calls; /* that decided something since the counts began */
	uint32_t stale; /* of those in the window at hand: in which nothing was new */
	int64_t window_ms; /* its begin */
	int64_t pause_ms, until_ms; /* 0 = none */
	int64_t last_ms; /* when the last call decided something */
	int64_t on_ms; /* when the brake was on last; 0 = never */
	char text[BRAKE_TEXT_MAX]; /* what is decided again and again; "" = the brake is off */
};

void brake_deinit(struct brake *brake);
/* The counts begin anew. True when the brake was on: it is off now. */
bool brake_release(struct brake *brake);
/* Something has happened: the next call need not wait. True when the brake was on and is off now. */
bool brake_happened(struct brake *brake);
/* A call of decide decided nothing. True when the brake was on and is off now. */
bool brake_rest(struct brake *brake);
/* A call of decide made these decisions. True when the brake is on from now on. */
bool brake_note(struct brake *brake, const struct event *events, uint32_t count, int64_t now_ms);
/* Until the next call may be; 0 = now. */
int64_t brake_left_ms(const struct brake *brake, int64_t now_ms);
/* The brake is on, and nothing was decided for a window: the caller releases it. */
bool brake_is_over(const struct brake *brake, int64_t now_ms);
