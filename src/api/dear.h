/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Expensive reads (EXPENSIVE in routes.def): at most DEAR_OF_USER of one user are worked on at a time, by workers of their own.
 * Others of his wait here, in their order, and neither other users nor cheap reads wait behind them.
 *
 *	40 plans of ann at once		two are worked on, 38 wait
 *	... status			is answered meanwhile
 *	... one of ben			is worked on meanwhile
 *	the 103rd plan of ann		is refused: 429, with Retry-After
 *	a plan whose client has left	is left out when its turn comes
 *
 * What may become a stream is not refused: it is bounded by the connections that a user may have.
 * Safe for any thread. Locks: nothing is called under the lock.
 */
#include "api/call.h"

enum {
	DEAR_OF_USER = 2,
	DEAR_WAITING = 100, /* of a user: no more than a client waits for (120 s at 2 s for each) */
	DEAR_RETRY_S = 5
};

/* Runs fn(call) on a worker in its user's turn, or answers that it can't be. */
void dear_run(struct call *call, void (*fn)(void *call));
struct dear *dear_create(void);
void dear_destroy(struct dear *dear); /* nothing is waiting or worked on; NULL is fine */
