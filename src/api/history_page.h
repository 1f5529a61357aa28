/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Events as they leave: a page of them, and what of each may be seen. */
#include "api/call.h"

/* Who reads: everybody sees who did what to which job; `full` adds paths of checkpoints; hashes and digests leave for nobody. */
enum event_view { EVENT_VIEW_PUBLIC, EVENT_VIEW_FULL };

/* Appends the event as one JSON object {"seq", "time_ms", "kind", "event"}; false (and nothing appended) when it is not for
 * that reader: tokens are for admins. */
bool event_add(struct buf *out, uint64_t seq, int64_t time_ms, uint32_t kind, const char *text,
	       size_t size, enum event_view view);
/* Answers with the page asked for by after and limit. */
void history_reply(struct call *call, uint32_t job, bool full);
