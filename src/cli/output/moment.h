/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Times on the command line: "2h" from now; "2026-12-01 20:00" or "20:00" (the next one) by the clock of who types; with a zone,
 * "2026-12-01T20:00Z". The daemon is sent the first as it is, the others in UTC.
 */
#include <jansson.h>
#include "cli/table/args.h"

/*
 * The flag's value as a time in the past, in ms since 1970: "7d" is so long ago, "20:00" the last time that the clock showed it.
 * 0 where the flag is not given.
 */
int moment_since(const struct invocation *in, const char *flag, int64_t *ret_ms, struct err *err)
	MUST_CHECK;
/* The flag's value into the body under the same name; nothing when it was not given. */
int moment_put(const struct invocation *in, const char *flag, json_t *body, struct err *err)
	MUST_CHECK;
