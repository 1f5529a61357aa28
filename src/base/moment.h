/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Moments as people write them: "2030-01-31T08:00Z". A blank may stand for the T, seconds may follow. The zone is Z, or a distance
 * from UTC ("+02:00"); without one it is the reader's own clock.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

enum { MOMENT_OWN_CLOCK = 1 };
/* Into ms since 1970. 0; MOMENT_OWN_CLOCK: no zone was given, and *ret_ms is as if it were UTC; negative: it is none. */
int moment_parse(const char *text, int64_t *ret_ms) MUST_CHECK;
/* Days from 1970-01-01 to this one; month 1 to 12. Of any year. */
int64_t moment_days(int64_t year, int64_t month, int64_t day);
/* The date of that day. */
void moment_date(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day);

enum { MOMENT_TEXT_MAX = 32 };
/* "2026-11-27T18:20:05Z": seconds are rounded up, and years end with 9999. ms: since 1970, 0 or more. Answers ret. */
const char *moment_format(int64_t ms, char ret[MOMENT_TEXT_MAX]);
/* Appends a sentence in which each "at 2026-11-27T18:20:05Z" becomes the time until then: "in 9m 28s", or "any moment" from then on. */
void moment_count_down(struct buf *out, const char *sentence, int64_t now_ms);
