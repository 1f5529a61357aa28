/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * At rest: what a pass has shown of the next one. Where all that it decided is that it has looked (places reserved or given up, looks for
 * reservations and moves), another pass at the same instant finds nothing to decide, and asks to be woken at the same time. So it need not
 * be run: `decide` answers at once.
 *
 *	decide		sets s1, sets s2, reviewed; wakes at 5 min		known, three to follow
 *	view_follow	these three						nothing to follow: at rest
 *	decide		nothing; wakes at 5 min					no pass
 *	view_follow	anything else						not known
 *
 * It is no more than a memory of the view: one built anew has none, runs the pass, and gives the same answer. scheduling/rest.c says which
 * passes show it.
 */
#include <stdbool.h>
#include <stdint.h>

struct event;
struct facts;

struct rest {
	bool known;
	uint32_t left; /* decisions of that pass that have not been followed yet */
	uint64_t awaited, followed; /* folds of what was decided, and of what came of it */
	int64_t now_ms, wake_ms;
};

/* What tells such a decision from others of its kind; 0 = after a decision of this kind another pass may decide more. */
uint64_t rest_mark(const struct event *event);
uint64_t rest_fold(uint64_t fold, uint64_t mark);
void rest_follow(struct rest *rest, const struct event *event);
bool rest_holds(const struct rest *rest, const struct facts *facts);
