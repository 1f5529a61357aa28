/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A calendar says when jobs of a queue may start, or when a job may run (window.h): windows that come back every week.
 *
 *	mon-fri 20:00-08:00, sat-sun, utc+1
 *
 *	mon-fri 20:00-08:00	on these days, up to the next morning; a window belongs to the day on which it opens
 *	sat-sun			whole days
 *	12:00-13:00		every day
 *	utc+1, utc-3:30		the clock it is read by, fixed (there is no summer time); without it UTC
 *	overrun			a job may still run when the window closes
 *
 * Windows that touch are one: the example's is open from Friday 20:00 to Monday 00:00. Without `overrun` a job starts only when
 * its expected end is before the window's. Whatever runs when a window closes goes on.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

enum {
	CALENDAR_WINDOWS_MAX = 64, /* of one week, before those that touch are joined */
	CALENDAR_TEXT_MAX = 251 /* bytes: as a reason in the facts */
};

struct calendar_window {
	int64_t start_ms,
		end_ms; /* since Monday 00:00 of its clock; the end may lie in the week after */
};

struct calendar {
	struct calendar_window window[CALENDAR_WINDOWS_MAX]; /* by start, none touches another */
	uint32_t count;
	int64_t ahead_ms; /* its clock's distance from UTC */
	bool overrun, always; /* always: one window without an end */
};

/* "" is always open. ERR_INVALID names the part that is wrong. */
int calendar_parse(const char *text, struct calendar *ret, struct err *err) MUST_CHECK;
bool calendar_is_open(const struct calendar *c, int64_t at_ms);
/* When the window that is open then closes: at_ms itself when none is, INT64_MAX = never. */
int64_t calendar_closes_ms(const struct calendar *c, int64_t at_ms);
/* The first time from `from_ms` on at which a job of this length may start; -1 = no window is long enough. */
int64_t calendar_start_ms(const struct calendar *c, int64_t from_ms, int64_t length_ms);
/* Length of the longest window; INT64_MAX when it is always open, or jobs may overrun. */
int64_t calendar_longest_ms(const struct calendar *c);
