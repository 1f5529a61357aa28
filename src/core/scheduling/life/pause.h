/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Work that is lost again as soon as it has started is tried again after a pause: a node gone mad, or a disk that is full, would else take
 * it many times a second for ever, for what is lost costs no retry.
 *
 *	attempts 4 to 7 of a job			lived	ended		the next one may start
 *	4	ran for a day, lost			24 h	12:00:00	at once: it lived long
 *	5	lost					3 s	12:00:03	at once: once is chance
 *	6	lost					4 s	12:00:07	12:00:08	1 s
 *	7	could not be started: disk full		0 s	12:00:08	12:00:10	2 s, then 4 s ... 5 min
 *
 * A short loss is an attempt that was lost, or could not be started, within the policy's window of early failures (black_hole) of its
 * start. Any other end (evicted, drained, failed by itself) begins the count anew, and so does a person who releases the job. A long pause is for where it was lost
 * last: on other nodes it is tried again after half a minute at most, on what is free there. Ranks that are started anew in a running gang pause by
 * the same steps.
 *
 * Functions of the facts alone: attempts of a job are remembered as long as the job.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/model/facts.h"

enum {
	PAUSE_FIRST_MS = 1000,
	PAUSE_MOST_MS = 300000,
	PAUSE_ELSEWHERE_MOST_MS = 30000, /* on other nodes than the one of the newest loss */
	PAUSE_RANKS_MOST_MS = 60000, /* of ranks: the others hold their places meanwhile */
	PAUSE_COUNT_MAX = 16 /* short losses counted; the pause no longer grows before */
};

/* After so many short losses in a row; 0 = none. */
int64_t pause_after_ms(uint32_t losses);

struct pause {
	uint32_t losses; /* short ones in a row, up to the newest attempt */
	int64_t longest_ms; /* how long the longest-lived of these lived */
	int64_t until_ms; /* no attempt before; 0 = at any time */
	int64_t elsewhere_ms; /* on other nodes than `node`: no attempt before; no later than until_ms */
	struct node_id node; /* of the newest loss; 0 = nobody knows where */
};
/* Of a job that waits; all 0 of any other. */
struct pause job_pause(const struct facts *facts, const struct job *job);
static inline int64_t job_pause_until_ms(const struct facts *facts, const struct job *job)
{
	return job->last_attempt.v ? job_pause(facts, job).until_ms : 0;
}
/* Where it was lost or could not be started soon after its start; 0 = it was not, or nobody knows where. */
struct node_id attempt_short_loss_node(const struct facts *facts, const struct attempt *attempt);
/* From when on ranks that a gang lost may be started anew; 0 = at any time. */
int64_t ranks_pause_until_ms(const struct facts *facts, const struct attempt *attempt);
