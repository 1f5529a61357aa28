/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Facts as text: what a shepherd leaves in the files `ready`, `started`, `exit` and in each line of
 * `reports`. One JSON object per fact. Unknown members are skipped, so a newer shepherd's files can
 * be read by an older daemon; numbers of the enums are never reused.
 */
#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"
#include "engine/engine.h"

enum { FACT_TEXT_MAX = 2048 };

/* One line with a newline at its end. */
void fact_format(struct buf *out, const struct engine_fact *fact);
int fact_parse(const char *text, size_t size, struct engine_fact *ret, struct err *err) MUST_CHECK;
