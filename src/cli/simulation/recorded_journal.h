/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A journal as a recording (sim/replay/recorded.h), for `fairlead sim convert --from journal` and `fairlead plan what-if`. */
#include "sim/replay/recorded.h"

/* From the data folder; nothing is changed there, and a daemon may be running. recorded_close is done; recorded_deinit by the caller, also after a
 * failure. */
int recorded_journal_read(const char *folder, struct recorded *ret, struct err *err) MUST_CHECK;
