/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which jobs a command is about: the flags of SHARES_SELECTION, and the query of GET /api/v1/jobs that they are. Without
 * --user, --team and --queue the caller's own are meant.
 */
#include "base/buf.h"
#include "cli/table/args.h"

extern const struct flag selection_flags[];
bool selection_is_given(const struct invocation *in);
/* ERR_INVALID for flags that contradict each other. */
int selection_check(const struct invocation *in, struct err *err) MUST_CHECK;
/* Appends to the path. everybody: jobs of any user are meant where no flag says whose. */
void selection_add(const struct invocation *in, bool everybody, struct buf *path);
