/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/event_clock.h"

enum { SLEW = 200 };

void event_clock_start(struct event_clock *clock, int64_t wall_ms, int64_t boot_ms,
		       int64_t started_event_ms, int64_t started_boot_ms, int64_t last_event_ms,
		       int same_boot)
{
	int64_t now = wall_ms;
	if (same_boot && started_event_ms > 0)
		now = started_event_ms + (boot_ms - started_boot_ms);
	if (now < last_event_ms)
		now = last_event_ms;
	*clock = (struct event_clock){ .event_ms = now, .boot_ms = boot_ms };
}

int64_t event_clock_read(struct event_clock *clock, int64_t wall_ms, int64_t boot_ms)
{
	int64_t passed = boot_ms - clock->boot_ms;
	if (passed <= 0)
		return clock->event_ms;
	int64_t straight = clock->event_ms + passed;
	int64_t most = (passed + clock->carry_ms) / SLEW;
	clock->carry_ms = (passed + clock->carry_ms) % SLEW;
	int64_t off = wall_ms - straight;
	if (off > most)
		off = most;
	if (off < -most)
		off = -most;
	clock->event_ms = straight + off;
	clock->boot_ms = boot_ms;
	return clock->event_ms;
}
