/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The output of a task on disk: one stream of bytes (stdout or stderr of one rank) under a cap.
 *
 * A byte's place in the stream is its offset, counted from 0 since the task began; it never
 * changes. The first quarter of the cap is kept for ever (how a run began is what one asks first),
 * and the newest rest:
 *
 *	LOGS/JOB/ATTEMPT/RANK.out                       the head: offsets 0 ..
 *	LOGS/JOB/ATTEMPT/RANK.out.00000000000016777216  a part: named by the offset of its first byte
 *	LOGS/JOB/ATTEMPT/RANK.out.00000000000025165824  ...
 *
 * and the same with `.err` and `.order`. Parts are removed oldest first, never changed. What lies between the
 * end of one file and the name of the next was dropped, which the reader sees by the offsets alone;
 * there is no index to keep in step. Nearly full disks: below a reserve (5 % of the file system, at
 * most 256 MiB) output is dropped, so a job's log can never take the space that the journal needs;
 * the stream goes on when there is space again. Until then an empty part stands where it would go on (one at most,
 * renamed as it moves): so the reader sees that something was dropped at the end too.
 *
 * Files are 0640 and folders 0750, owned by the daemon. Names are numbers only and each step is
 * opened without following symbolic links.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"

enum task_stream { TASK_STDOUT, TASK_STDERR, TASK_ORDER /* of the two: task_order.h */ };
enum { TASK_LOG_CAP_MIN = 64 * 1024, TASK_LOG_PARTS = 6, TASK_LOG_NAME_MAX = 48 };
#define TASK_LOG_CAP_DEFAULT ((int64_t)64 << 20)

/* Writing: one writer per stream, the shepherd. */
struct task_log_part {
	uint64_t offset;
	int64_t size;
};

struct task_log {
	int folder; /* not owned */
	char name[TASK_LOG_NAME_MAX]; /* "3.out" */
	int64_t head_bytes, part_bytes;
	uint64_t offset; /* of the next byte */
	uint64_t dropped; /* bytes not written for want of space */
	uint64_t mark; /* offset in the name of the empty part behind them */
	bool marked; /* there is one */
	int fd; /* file being written, -1 = none */
	bool in_head;
	int64_t room; /* left in the file being written */
	int64_t check_in; /* bytes until free space is looked at again */
	bool starved; /* below the reserve at the last look */
	struct task_log_part parts[TASK_LOG_PARTS]; /* oldest first, the last one being written */
	uint32_t part_count;
};

/* cap_bytes: all files of the stream together; 0 = default; less than the minimum counts as the
 * minimum. */
void task_log_init(struct task_log *log, int folder, uint32_t rank, enum task_stream stream,
		   int64_t cap_bytes);
void task_log_deinit(struct task_log *log);
/* Never fails: what can't be written is dropped and counted, the task must not notice. */
void task_log_write(struct task_log *log, const void *data, size_t size);

/* Reading: any process, at any time, also while it is written. */
struct task_log_piece {
	uint64_t
		offset; /* of the first byte returned; more than asked when bytes in between were dropped */
	size_t size; /* bytes returned; 0 = nothing at or after `offset` yet */
	uint64_t end; /* offset after the newest byte on disk */
};

/* logs_folder: the data folder's `logs`. 0 with the piece (size 0 when there is no such log yet);
 * negative: I/O. */
int task_log_read(const char *logs_folder, uint64_t job, uint64_t attempt, uint32_t rank,
		  enum task_stream stream, uint64_t offset, void *data, size_t room,
		  struct task_log_piece *ret, struct err *err) MUST_CHECK;
/* The offset from which about the last `bytes` can be read. */
int task_log_tail(const char *logs_folder, uint64_t job, uint64_t attempt, uint32_t rank,
		  enum task_stream stream, uint64_t bytes, uint64_t *ret_offset, struct err *err)
	MUST_CHECK;
/* Makes LOGS/JOB/ATTEMPT and opens it; the descriptor or negative. */
int task_log_folder(const char *logs_folder, uint64_t job, uint64_t attempt, struct err *err)
	MUST_CHECK;
