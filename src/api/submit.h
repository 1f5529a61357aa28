/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What submissions share with changes of jobs. */
#include "api/call.h"

/* Whether the caller may have jobs in the queue: its team's members may, or everybody when it has none. A queue that does not exist is open:
 * the core says so, with the names that there are, and nothing is granted by it. */
int queue_open_to(const struct call *call, const char *queue, struct err *err) MUST_CHECK;
