/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Event time: what the wall clock says, except that it never runs backwards and never jumps while the machine is
 * up. It advances with the boot clock; where the two differ (someone set the clock), it moves towards the wall
 * clock by at most one part in 200. So a step of the wall clock ends no job's time limit early or late.
 * A new start continues from the journal: in the same boot by the boot clock, else at the wall clock.
 */
#include <stdint.h>

struct event_clock {
	int64_t event_ms, boot_ms; /* of the last reading */
	int64_t carry_ms; /* passed time not yet counted towards moving */
};

/* last_event_ms, last_boot_ms: of the newest DAEMON_STARTED record and what followed (0 = none); same_boot: its boot id is ours. */
void event_clock_start(struct event_clock *clock, int64_t wall_ms, int64_t boot_ms,
		       int64_t started_event_ms, int64_t started_boot_ms, int64_t last_event_ms,
		       int same_boot);
int64_t event_clock_read(struct event_clock *clock, int64_t wall_ms, int64_t boot_ms);
