/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Named time zones: how far ahead of UTC the clocks of a place are, and when that changes, from the machine's own zone files
 * (TZif, RFC 8536) in $TZDIR, else /usr/share/zoneinfo.
 *
 *	Europe/Berlin	1 h ahead; from 2026-03-29 01:00 UTC 2 h; from 2026-10-25 01:00 UTC 1 h; ...
 *
 * What comes out are plain changes from the beginning of the year 2000 to the end of 2099: a zone's rule for the years to come is
 * written out. Before the first change and after the last the clocks stay as they are.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum {
	ZONE_NAME_MAX = 40, /* bytes */
	ZONE_CHANGES_MAX = 256 /* Morocco, which changes four times in some years, has 190 */
};
#define ZONE_AHEAD_MAX_MS (INT64_C(26) * 3600000) /* either way, as RFC 8536 has it */
#define ZONE_APART_MS (INT64_C(2) * 86400000) /* changes are further apart than this */

struct zone_rules {
	int64_t before_ms; /* ahead of UTC before the first change */
	uint32_t count;
	int64_t at_ms[ZONE_CHANGES_MAX]; /* rising */
	int64_t ahead_ms[ZONE_CHANGES_MAX]; /* from then on */
};

/* "Europe/Berlin", "CET", "Etc/GMT+5": begins with a capital letter, as no other part of a calendar does. */
bool zone_name_is_sound(const char *name);
/* Whether the changes are such as a clock can make: rising, far enough apart, not too large. */
bool zone_is_sound(int64_t before_ms, const int64_t *at_ms, const int64_t *ahead_ms,
		   uint32_t count);
/* The contents of a zone file. ERR_INVALID says what is wrong with it. */
int zone_parse(const void *data, size_t size, struct zone_rules *ret, struct err *err) MUST_CHECK;
/* By name. ERR_NOT_FOUND names one that is written nearly so, or says that there are no zone files here. */
int zone_read(const char *name, struct zone_rules *ret, struct err *err) MUST_CHECK;
