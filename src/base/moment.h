/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Moments as people write them: "2030-01-31T08:00Z". A blank may stand for the T, seconds may follow. The zone is Z, or a distance
 * from UTC ("+02:00"); without one it is the reader's own clock.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

enum { MOMENT_OWN_CLOCK = 1 };
/* Into ms since 1970. 0; MOMENT_OWN_CLOCK: no zone was given, and *ret_ms is as if it were UTC; negative: it is none. */
int moment_parse(const char *text, int64_t *ret_ms) MUST_CHECK;
/* Days from 1970-01-01 to this one; month 1 to 12. Of any year. */
int64_t moment_days(int64_t year, int64_t month, int64_t day);
/* The date of that day. */
void moment_date(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day);
