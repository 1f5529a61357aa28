/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The last lines of a log on disk. */
#include "api/log_feed.h"

enum { LOG_LINES_MAX = 1000000 };

/*
 * The offset at which the last `lines` lines begin, 1 to LOG_LINES_MAX; text behind the last line end counts as a line. 0 where
 * there are fewer. Reads the log from its end, in growing parts, each twice. Negative: I/O.
 */
int log_tail_find(const char *logs_folder, const struct log_wish *wish, uint64_t *ret,
		  struct err *err) MUST_CHECK;
