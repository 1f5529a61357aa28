/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that were moved so that GPUs came to lie together: how many in the hour at hand, and whether a new look for moves may find
 * more than the last one did.
 *
 *	an hour begins with the first move after the last one was over: moves at 10:00 and 10:40 count until 11:00
 */
#include "core/model/apply.h"
#include "core/model/edit.h"

enum { MOVES_HOUR_MS = 3600000 };

/* After these nothing can be moved that could not be before. */
static bool event_is_quiet(enum event_kind kind)
{
	return kind == EVENT_DECIDED || kind == EVENT_CLOCK_TICKED || kind == EVENT_SEARCHED ||
	       kind == EVENT_PROGRESS || kind == EVENT_RESERVATIONS_REVIEWED ||
	       kind == EVENT_RESERVATION_SET || kind == EVENT_RESERVATION_DROPPED ||
	       kind == EVENT_MOVES_PLANNED;
}

void moves_follow(struct facts *f, enum event_kind kind)
{
	if (f->moves.looked_ms && !f->moves.stale && !event_is_quiet(kind))
		f->moves.stale = true;
}

void apply_moves_planned(struct facts *f, const struct event_moves_planned *e)
{
	struct moves *m = &f->moves;

	m->looked_ms = f->now_ms > 0 ? f->now_ms : 1;
	m->again_ms = clamp_positive(e->again_ms);
	m->stale = false;
	if (!e->jobs_count) {
		m->asked = false;
		return;
	}
	if (!m->in_hour || m->hour_ms > f->now_ms || f->now_ms - m->hour_ms >= MOVES_HOUR_MS) {
		m->hour_ms = f->now_ms;
		m->in_hour = 0;
	}
	m->in_hour += e->jobs_count;
	m->jobs = add_saturating(m->jobs, e->jobs_count);
	m->lost_gpu_ms = add_saturating(m->lost_gpu_ms, clamp_positive(e->lost_gpu_ms));
}

void apply_defrag_asked(struct facts *f, const struct event_defrag_asked *e)
{
	(void)e;
	f->moves.asked = true;
}
