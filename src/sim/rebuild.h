/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The promise that the index is derived: facts saved, loaded and indexed anew give the same hash
 * and decide the same. */
#include "core/core.h"

/* 0, or a failure that says what differed. `decided` is what the original decides from these
 * facts now. */
int rebuild_check(const struct facts *facts, const struct decisions *decided, uint64_t budget,
		  struct err *err) MUST_CHECK;
/* The decisions as text, for comparing and showing. */
void decisions_encode(const struct decisions *decisions, struct buf *out);
