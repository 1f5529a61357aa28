/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Clocks, for everything but the core (whose time comes with its events). */
#include <stdint.h>

int64_t clock_wall_ms(void); /* since 1970, UTC */
int64_t
clock_boot_ms(void); /* since the machine started, sleeping included: limits and leases run on it */
int64_t clock_mono_ns(void); /* for measuring */
/* This boot's id (uuid text, 36 characters and NUL); empty where the system has none. */
enum { BOOT_ID_MAX = 40 };
void clock_boot_id(char out[BOOT_ID_MAX]);
/* Local date and time for people: "2026-03-01 14:02:11". */
enum { LOCAL_TIME_MAX = 40 };
const char *clock_format_local(int64_t wall_ms, char out[LOCAL_TIME_MAX]);
