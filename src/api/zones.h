/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Time zones that calendars and windows name. The core knows a clock once it was told of it; where it was not, that is a command of
 * its own, before the one that needs it. The zone files are those of the daemon's machine.
 */
#include "api/call.h"

/* The event that tells of the calendar's clock; kind 0: none is needed. ERR_NOT_FOUND: no such zone, with one written nearly so. */
int zone_wanted(const struct call *call, const char *calendar, struct event *ret, struct err *err)
	MUST_CHECK;
