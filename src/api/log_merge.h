/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Both streams of a rank as one row of pieces, in the order in which the task wrote them (engine/task_order.h). Where the order is not
 * known, what stdout has comes first. Every byte of a stream comes once, in its own order.
 */
#include "api/log_feed.h"
#include "engine/task_order.h"

enum { MERGE_PIECE_BYTES = 32 << 10, MERGE_RECORDS = 512 };

struct log_cache {
	uint64_t start;
	size_t size;
	char data[MERGE_PIECE_BYTES];
};

struct log_merge {
	const char *folder; /* not owned */
	uint32_t job, attempt, rank;
	uint64_t next[2]; /* offset of the next byte of each stream */
	struct log_cache cache[2];
	uint64_t records[MERGE_RECORDS]; /* of the order, the current one first */
	size_t record_count;
	uint64_t order_at; /* offset in the order's log behind them */
};

struct log_piece {
	enum task_stream stream;
	uint64_t offset; /* of its first byte */
	const char *data; /* until the next call */
	size_t size;
	uint64_t dropped; /* bytes in front of offset that were not kept; then size is 0 */
};

/* From these offsets of the streams on. */
void log_merge_init(struct log_merge *merge, const char *logs_folder, const struct log_wish *wish,
		    const uint64_t from[2]);
/* 1 with a piece; 0: there is no more at present; negative: I/O. */
int log_merge_next(struct log_merge *merge, struct log_piece *ret, struct err *err) MUST_CHECK;
/*
 * Where the last `wish->lines` lines of both streams together begin: an offset of each. A line is one of its stream, and comes when it
 * ends; text behind the last line end counts as one. Reads from the end, in growing parts, each twice. Negative: I/O.
 */
int log_merge_tail(const char *logs_folder, const struct log_wish *wish, uint64_t ret[2],
		   struct err *err) MUST_CHECK;
