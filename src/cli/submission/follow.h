/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Following a job: its output as it comes, through stops and resumptions, until it ends or Ctrl-C,
 * which ends only the following. Output goes to stdout and stderr as the job wrote it, with the
 * rank in front when there are several tasks; what happens to the job is said on stderr.
 */
#include "cli/client.h"

enum { FOLLOW_RANKS_MAX = 16 }; /* of wider jobs the first so many are shown */
enum { FOLLOW_DETACHED = 1 }; /* outcome: Ctrl-C */

struct follow_options {
	uint32_t job;
	bool quiet; /* no output of the job */
};

/* 0: it ended, *ret_job is its last answer (json_decref); FOLLOW_DETACHED; negative. */
int follow_job(struct client *client, struct arena *arena, const struct follow_options *options,
	       json_t **ret_job, struct err *err) MUST_CHECK;
/* Exit status of a job that ended: its own (`own`), else 0 or 1. */
int follow_exit_status(const json_t *job, bool own);
bool state_is_final(const char *state);

/* Job output on its way to a terminal: colours, tabs, carriage returns pass, what could do more is shown, not obeyed. To a
 * file or pipe everything passes. Keeps what is incomplete until the next call. */
struct log_writer {
	int fd;
	bool raw; /* not a terminal, or --raw */
	bool mid_line;
	bool any; /* something came */
	char prefix[24]; /* in front of each line; "" = none */
	struct buf waiting; /* of an escape sequence or character */
};
void log_write(struct log_writer *writer, const char *data, size_t size);
void log_writer_end(
	struct log_writer
		*writer); /* ends a line that is not ended when there is a prefix; frees */

/* Whether jobs of this daemon run as pods: both streams of those are one. False too where it does not answer. */
bool pods_run_jobs(struct client *client);

/*
 * Both streams of a rank on their way to where they belong, as the daemon sends them with ?stream=both&frames=1 (docs/api.md, Logs): in the order in which
 * they were written. `plain`: what comes is stdout alone, without frames.
 */
struct both_writer {
	struct log_writer writers[2]; /* of stdout, stderr */
	int64_t next[2]; /* offsets of what has not come yet */
	bool plain;
	bool any; /* something came */
	char head[64]; /* the line in front of a piece, as far as it has come */
	size_t head_size;
	uint64_t left; /* bytes of the piece that have not come */
	int stream; /* its stream */
};
void both_write(struct both_writer *both, const char *data, size_t size);
void both_writer_end(struct both_writer *both);
