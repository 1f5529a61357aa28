/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One of the verbs of jobs for many of them in one request (POST /api/v1/job-actions). Few are told of one by one instead. */
#include "cli/client.h"
#include "cli/jobs/jobs.h"

enum { ACTIONS_FEW = 20 }; /* lines that can be read at a glance */

/* The query that means the jobs of the arguments: one array by its number alone; NULL: they are few, or other jobs are named. */
int actions_array_query(struct invocation *in, struct client *client, const char **ret,
			struct err *err) MUST_CHECK;
/* Counts the jobs that the query means. Sets it to NULL where they are few: those are listed and told of one by one. Uses up `action`; *ret_count is 0 before. */
int actions_settle(struct invocation *in, struct client *client, const char **query, json_t *action,
		   int64_t *ret_count, struct err *err) MUST_CHECK;
/* Does it to what the query means, or without one (NULL) to these jobs, and prints the sums: "9990 jobs MANY, 10 can't be". Answers the exit status of
 * the first that failed, 0 = none did. action: as its schema has it, without jobs. */
int actions_do(struct invocation *in, struct client *client, const char *query,
	       const struct named_jobs *named, json_t *action, const char *many, struct err *err)
	MUST_CHECK;
