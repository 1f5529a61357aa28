/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After which passes another one at the same instant decides nothing (view/rest.h). The pass came to its end, nothing was started,
 * promised, stopped or moved: free GPUs, plans and running work are for the next pass what they were for this one. It differs in these:
 *
 *	what is reserved	is a fact now, and holds: it was found on the same space
 *	the looks		were made now, so the next are due later: it is woken for them as this one was (reserve_reviewed, look_note)
 *	who lost a reservation	would be looked for again if it still waited: then the pass does not show it
 *	a look that was cut	would go on: neither
 *	searches for victims	in rounds over several passes go on behind a mark: neither
 *	claims			what they may take depends on what was reserved in their turn: neither
 */
#include "core/scheduling/pass.h"

/* The next pass looks at it as at one that never had any. */
static bool loses_while_it_waits(const struct pass *pass, const struct event *e)
{
	return e->kind == EVENT_RESERVATION_DROPPED &&
	       job_view_get(pass->view, (uint32_t)e->reservation_dropped.job)->bucket;
}

/* Whether a job is taken to be stuck hangs on which reservations happen to be kept in the space at its turn; not before the first is found. */
static bool stuck_is_sure(const struct pass *pass)
{
	return pass->stuck_count ? !pass->stuck[0].turn : !pass->stuck_unsure;
}

static bool is_shown(const struct pass *pass)
{
	const struct facts *f = pass->facts;

	return !pass->more && !pass->watch && !pass->claims_planned && stuck_is_sure(pass) &&
	       !f->searched && !f->moves.asked && !(f->pools.count && pass->view->chooses) &&
	       !ahead_is_spent(pass);
}

void rest_note(struct pass *pass)
{
	struct rest rest = { .left = pass->count,
			     .now_ms = pass->facts->now_ms,
			     .wake_ms = pass->wake_ms };
	bool reviewed = false;

	rest.known = !pass->count ? !pass->more : is_shown(pass);
	for (uint32_t i = 0; rest.known && i < pass->count; i++) {
		const struct event *e = &pass->events[i];
		uint64_t mark = rest_mark(e);

		rest.known = mark && !reviewed && !loses_while_it_waits(pass, e) &&
			     (!pass->waits || e->kind != EVENT_RESERVATION_SET);
		rest.awaited = rest_fold(rest.awaited, mark);
		reviewed = e->kind == EVENT_RESERVATIONS_REVIEWED;
	}
	pass->view->rest = rest;
}
