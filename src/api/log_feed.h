/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Log streams: one thread reads the files of all clients that read or follow logs, as fast as each takes them.
 */
#include "api/call.h"

enum { LOG_FEEDS_MAX = 1000 };

struct log_feed;

struct log_feed *log_feed_create(const struct api_backend *backend);
void log_feed_destroy(struct log_feed *feed); /* all streams must have ended; NULL is fine */

struct log_wish {
	uint32_t job, attempt, rank;
	bool errors; /* stderr */
	bool both; /* both streams in the order in which they were written */
	bool frames; /* of both: each piece behind a line that says what it is (docs/api.md, Logs) */
	bool follow;
	int64_t offset; /* negative: from the end */
	int64_t stderr_offset; /* of both: the same of stderr */
	int64_t lines; /* only the last so many; 0 = all from offset on */
};
/* Nothing more can come. */
bool log_rank_is_over(const struct facts *f, const struct log_wish *wish);
/* Makes the call's answer a stream of the log's bytes. Errors are answered too. */
void log_feed_begin(struct log_feed *feed, struct call *call, const struct log_wish *wish);
