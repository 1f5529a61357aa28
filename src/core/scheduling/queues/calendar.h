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
 *	Europe/Berlin		the clock it is read by: that of a time zone, with its summer time (base/zone.h)
 *	utc+1, utc-3:30		a clock without summer time; without either UTC
 *	overrun			a job may still run when the window closes
 *
 * Windows that touch are one: the example's is open from Friday 20:00 to Monday 00:00. Without `overrun` a job starts only when
 * its expected end is before the window's. Whatever runs when a window closes goes on.
 *
 * Where clocks change, a window opens and closes at the first moment at which the clock shows that time or a later one. In Berlin, in
 * the night to the 29th of March 2026 (from 2:00 to 3:00) and to the 25th of October (from 3:00 back to 2:00):
 *
 *	20:00-08:00		11 h long in March, 13 h in October
 *	02:15-02:45		not at all in March (it would open and close at 3:00); in October the first time only
 *	02:30-08:00		from 3:00 on in March; from the first 2:30 on in October: 6.5 h
 *
 * So windows that meet on the clock meet, and none overlap that don't there. What takes longer than a window has ever been starts
 * in none; a length as of the night in October counts only in the week before.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/zone.h"

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
	int64_t ahead_ms; /* its clock's distance from UTC, where it names no zone */
	char zone_name[ZONE_NAME_MAX + 1]; /* "" = none */
	const struct zone *zone; /* of the facts, by calendar_read; void after their next change */
	bool overrun, always; /* always: one window without an end */
};

struct facts;

/* "" is always open. ERR_INVALID names the part that is wrong. A zone is not looked for: that is for who needs its name alone. */
int calendar_parse(const char *text, struct calendar *ret, struct err *err) MUST_CHECK;
/* The same, with the clock of its zone. ERR_NOT_FOUND: the facts know none of that name. */
int calendar_read(const struct facts *facts, const char *text, struct calendar *ret,
		  struct err *err) MUST_CHECK;
bool calendar_is_open(const struct calendar *c, int64_t at_ms);
/* When the window that is open then closes: at_ms itself when none is, INT64_MAX = never. */
int64_t calendar_closes_ms(const struct calendar *c, int64_t at_ms);
/* The first time from `from_ms` on at which a job of this length may start; -1 = no window is long enough. */
int64_t calendar_start_ms(const struct calendar *c, int64_t from_ms, int64_t length_ms);
/* Length of the longest window; INT64_MAX when it is always open, or jobs may overrun. */
int64_t calendar_longest_ms(const struct calendar *c);
