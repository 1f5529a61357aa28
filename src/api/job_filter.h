/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which jobs a request means: by the queries of GET /api/v1/jobs, which other routes have by the same names. */
#include "api/call.h"

struct job_filter {
	uint32_t states; /* bit per state */
	struct name_id user, team, name;
	struct queue_id queue;
	bool nothing; /* a name was asked for that nobody bears */
	bool open; /* only those that have not ended */
	uint32_t array; /* id of its first job; 0 = any job */
	int64_t ended_after_ms;
};

/* Of a route with the queries state, user, team, queue, name, mine and array; jobs that have ended, too. */
int job_filter_read(struct call *call, struct job_filter *ret, struct err *err) MUST_CHECK;
bool job_filter_takes(const struct job_filter *filter, const struct job *job);
