/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * In which order a task wrote to stdout and stderr: a third log beside those of the two (task_log.h), RANK.order.
 *
 * Records of 8 bytes in the byte order of the machine. A record means: from here on this stream was written, from this offset of it.
 *
 *	offset << 1 | stream		stream 0 = stdout, 1 = stderr
 *
 * A record stands at each change of the stream, before the bytes that it speaks of. The run of a record ends at the next record of the
 * same stream. Records may be missing (the cap, a full disk, a task of an earlier release): then the order is not known there, but
 * no byte of a stream is lost by it.
 *
 * Example: "a" and "b" to stdout, "x" to stderr, "c" to stdout make the records 0 (stdout from 0), 1 (stderr from 0), 4 (stdout from 2).
 */
#include "engine/task_log.h"

enum { TASK_ORDER_RECORD = 8, TASK_ORDER_CAP = 2 << 20 };

struct task_order {
	struct task_log log;
	int last; /* stream that the newest record names; -1 = none */
};

/* `end`: bytes that the file has from an earlier start of the rank. The folder is not owned. */
void task_order_init(struct task_order *order, int folder, uint32_t rank, uint64_t end);
void task_order_deinit(struct task_order *order);
/* Bytes of this stream are written next, from this offset of it. Never fails, as task_log_write. */
void task_order_note(struct task_order *order, enum task_stream stream, uint64_t offset);

static inline enum task_stream task_order_stream(uint64_t record)
{
	return record & 1 ? TASK_STDERR : TASK_STDOUT;
}
static inline uint64_t task_order_offset(uint64_t record)
{
	return record >> 1;
}
