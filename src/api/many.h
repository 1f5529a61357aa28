/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The same deed to many jobs, as one request: a command for each job, and one answer when the last one is durable. Commands go to the core by
 * the thousand, so they share a few commits, and ten thousand of them are never in memory together.
 *
 *	10,000 jobs: 10 times (1,000 commands, one or a few turns of the core, their replies), then the answer
 *
 * One that is refused does not keep the others from being done: the answer has their number and the first reason.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "api/call.h"

enum { MANY_TOGETHER = 1000, MANY_PROBLEMS = 20 };

struct many {
	struct call *call;
	const uint32_t *jobs; /* in the call's arena */
	uint32_t count;
	/* The event for jobs[index]. Facts are given back by then. */
	void (*make)(const struct many *many, uint32_t index, struct event *ret);
	void *context; /* for make */
	struct event
		before; /* goes first, alone; kind 0 = none. Where it is refused, the request is */
	uint32_t matched; /* jobs that were meant, those that the caller may not touch included */
	/* What came of it. */
	uint32_t done, already, failed;
	struct err problems[MANY_PROBLEMS]; /* of the first that failed */
	uint64_t seq; /* newest record */
	/* private */
	uint32_t next, pending;
	pthread_mutex_t lock;
};

/* In the call's arena. */
struct many *many_create(struct call *call, const uint32_t *jobs, uint32_t count);
/* Notes a job that is not among them, since the caller may not touch it or it can't be. */
void many_refused(struct many *many, const struct err *err);
/* Sends all, and answers (schema Acted). Where none was done and some failed, the answer is that failure. */
void many_send(struct many *many);
