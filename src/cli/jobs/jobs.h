/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Jobs as the API answers them, and how they are shown: what run, submit, jobs, job, logs and
 * follow share.
 */
#include "cli/client.h"
#include "cli/output/output.h"

uint32_t submitted_job(const json_t *answer); /* number of the (first) job */
void say_submitted(const json_t *answer); /* on stderr: number, queue, what may happen */
void show_submitted(const struct output *output, const json_t *answer);
/* "Estimated start: about ..." from the answer's `estimate`; nothing where there is none. */
void say_estimate(const json_t *answer, struct buf *out);
void say_price(const json_t *answer, struct buf *out);
void say_transfer(const json_t *transfer, struct buf *out); /* "about 2m 30s, 13.50 EUR" */
int show_dry_run(const struct output *output, const json_t *answer); /* exit status */
/* What it was made from: commit, branch, changes, remote. */
void job_git_say(const json_t *git, struct buf *out);
/* Why the job ended, in full where the job itself has only the beginning. In the arena or the job. */
const char *job_whole_reason(struct client *client, struct arena *arena, const json_t *job);
/* "job 12 failed: rank 0 exited with 3" */
void job_end_sentence(const json_t *job, const char *reason, struct buf *out);
/* The newest attempt with its tasks, NULL = none yet. */
const json_t *job_newest_attempt(const json_t *job);
int64_t attempt_number(const json_t *attempt);
/* "n0, n1 (simulated GPUs)" */
void job_places(const json_t *attempt, struct buf *out);
/* All pages of a list of jobs. query: path with what is asked for. */
int fetch_jobs(struct client *client, struct arena *arena, const char *path, int64_t limit,
	       json_t **ret, struct err *err) MUST_CHECK;
/* Runs show once, or every two seconds with --watch until Ctrl-C. */
int watch(struct invocation *in,
	  int (*show)(struct invocation *in, struct client *client, const struct output *output,
		      struct err *err),
	  struct err *err) MUST_CHECK;
/* On stderr, below a screen that shows GPUs which do not exist. */
void notice_simulated(const struct output *output, bool simulated);
/* One event as a line for people. */
void event_line(const json_t *event, struct buf *out);
/* GET a list {"NAME": [...]} or [...]; *ret is the array (json_decref). */
int fetch_list(struct client *client, const char *path, const char *name, json_t **ret,
	       struct err *err) MUST_CHECK;

/* GPUs of all tasks that a row of the list has, or wants at least. */
/* Tasks that it has or wants at least. */
int64_t job_row_tasks(const json_t *row);
/* The GPUs of so many of its tasks: "8", or of parts "0.5", "4x0.5". */
void job_row_gpus_say(const json_t *row, int64_t tasks, struct buf *out);
/* The rows with one line for each array, for tables; the caller's to give back. */
json_t *jobs_fold(const json_t *rows);
/* Which numbers of their array the rows from first to end have: 0-2,5. */
void jobs_add_numbers(const json_t *rows, size_t first, size_t end, struct buf *out);
/* Explains all jobs of an array together; `job` is the first of them, as GET /api/v1/jobs/{id} answers. */
int explain_array(struct invocation *in, struct client *client, const struct output *output,
		  const json_t *job, struct err *err) MUST_CHECK;

/* The jobs that the arguments name: 12, 40_3, 40_[0-2,5]. Asks for arrays, so that no other job is meant. */
enum { NAMED_JOBS_MAX = 20000 };
struct named_jobs {
	uint32_t *jobs;
	size_t count;
};
int named_jobs(struct invocation *in, struct client *client, struct named_jobs *ret,
	       struct err *err) MUST_CHECK;
/* One job: 12, or of array 40 its number 40_3. */
int named_job(struct invocation *in, struct client *client, const char *word, uint32_t *ret,
	      struct err *err) MUST_CHECK;
