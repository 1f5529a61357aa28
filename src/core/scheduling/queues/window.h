/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A job's own window: the hours in which it may run, written like a queue's calendar (calendar.h).
 *
 *	window: mon-fri 20:00-08:00, sat-sun		it is Thursday, 07:00
 *
 *	a job of 30 min					starts: it ends before the window does
 *	one of 30 h that makes checkpoints		starts, is warned so that its grace ends at 08:00, saves, and goes on at 20:00
 *	one of 30 h that makes none			starts on Friday at 20:00, when the window is long enough for all of it
 *	one of 3 h with `window_end: finish`		starts at 20:00: it is not stopped, so it must be expected to end in time
 *
 * What still runs when its window closes is stopped and waits again at its old place; this costs no retry. Whoever saves its work
 * starts when enough of the window is left to be worth it: its grace, and as long as the policy keeps young work from eviction.
 */
#include <stdint.h>
#include "core/model/facts.h"

/* The first time from `from_ms` on at which the job may start; -1 = no window is long enough for it. */
int64_t window_opens_ms(const struct facts *facts, const struct job *job, int64_t from_ms);
/* How long a window must be for it to start. */
int64_t window_needs_ms(const struct facts *facts, const struct job *job);
/* When a run that began then has to be over; INT64_MAX = never. */
int64_t window_closes_ms(const struct facts *facts, const struct job *job, int64_t from_ms);
/* When it is expected to be gone if it starts now. */
int64_t job_leaves_ms(const struct facts *facts, const struct job *job);
/* How long a run from then on is expected to last: to its end, or until it is stopped because its window closes. */
int64_t job_stays_ms(const struct facts *facts, const struct job *job, int64_t from_ms);
