/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the scenario format knows and this release does not act on. A key that nothing acts on
 * would make a scenario pass for the wrong reason, so it is refused by name: "needs a later
 * release: key `mig`".
 *
 * The whole list is one table in later.c. A release that brings a capability removes its entries,
 * and nothing else.
 */
#include "base/conf.h"
#include "base/err.h"

/* 0, or ERR_UNSUPPORTED for the first key of the map (which describes a `what`: "node", "job"
 * ...) that must wait. */
int later_check(const char *file, const struct conf *map, const char *what, struct err *err)
	MUST_CHECK;
