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
/* Of a job that failed, on stdout: what its rank that failed first printed last, 10 lines and 4 KiB of each stream at most. Nothing where the caller may not read it. */
void show_last_lines(struct client *client, struct arena *arena, const json_t *job);
int64_t attempt_number(const json_t *attempt); /* among those of its job, from 1 */
int64_t attempt_id(const json_t *attempt); /* among those of all jobs */
/* "n0, n1 (simulated GPUs)" */
void job_places(const json_t *attempt, struct buf *out);
/* GET. While the answer says that an estimate is being made, asks again, for two seconds at most: *ret is the last answer (json_decref). */
int get_estimated(struct client *client, const char *path, json_t **ret, struct err *err)
	MUST_CHECK;
/* "The start can't be estimated yet: ...", where the answer has no estimate though one was waited for. */
void say_estimate_missing(const json_t *answer, struct buf *out);
/* All pages of a list of jobs, `limit` rows at most. path: with what is asked for; estimates in it are waited for as get_estimated does. ret_total: the answer's `total`, 0 = not asked; may be NULL. */
int fetch_jobs(struct client *client, struct arena *arena, const char *path, int64_t limit,
	       json_t **ret, int64_t *ret_total, struct err *err) MUST_CHECK;
/* Runs show once, or every two seconds with --watch until Ctrl-C: on a terminal as one screen that fits it. */
typedef int watch_show(struct invocation *in, struct client *client, const struct output *output,
		       struct err *err);
int watch(struct invocation *in, watch_show *show, struct err *err) MUST_CHECK;
/* On stderr, below a table that shows GPUs which do not exist; once a day on each terminal. */
void notice_simulated(const struct output *output, bool simulated);
/*
 * Adds events of an answer to a list: all, or without the scheduler's own notes; `derive`: behind each one that changes the state of its job an event "job-state",
 * with "derived": true.
 */
void events_take(json_t *into, const json_t *events, bool all, bool derive);
/* One event as a line for people. */
void event_line(const json_t *event, struct buf *out);
/* GET a list {"NAME": [...]} or [...]; *ret is the array (json_decref). */
int fetch_list(struct client *client, const char *path, const char *name, json_t **ret,
	       struct err *err) MUST_CHECK;

/* Cells of rows of the list: "12" or "40[0-7]"; the code of the reason, or the reason. */
void job_cell_id(const json_t *row, struct buf *out);
void job_cell_reason(const json_t *row, struct buf *out);
/* The form `name`: a line with what other commands take for each row. An array's number alone would be the whole of it. */
void job_names_print(const json_t *rows);
/* It is held and runs: a hold keeps it from starting again, and stops nothing. */
bool job_hold_is_late(const json_t *job);
/* "user ...", "queue ...", "wants ...": lines of the page of a job. */
void job_asks_say(const json_t *job, struct buf *out);
/* Tasks that it has or wants at least. */
int64_t job_row_tasks(const json_t *row);
/* The GPUs of so many of its tasks: "8", or of parts "0.5", "4x0.5". */
void job_row_gpus_say(const json_t *row, int64_t tasks, struct buf *out);
/* Explains all jobs of an array together; `job` is the first of them, as GET /api/v1/jobs/{id} answers. */
int explain_array(struct invocation *in, struct client *client, const struct output *output,
		  const json_t *job, struct err *err) MUST_CHECK;

/* The jobs that the arguments name: 12, 40[3], 40[0-2,5], and all of array 40 that have not ended. Asks for arrays, so that no other
 * job is meant. */
enum { NAMED_JOBS_MAX = 20000 };
struct named_jobs {
	uint32_t *jobs;
	uint32_t *
		arrays; /* of each the first job of its array, where it was named by that; 0 = by its own number. May be NULL */
	size_t count;
};
/* "job 12" or "job 40[3]" */
void named_job_say(const struct named_jobs *named, size_t index, struct buf *out);
int named_jobs(struct invocation *in, struct client *client, struct named_jobs *ret,
	       struct err *err) MUST_CHECK;
/* Of one argument that names jobs of an array: 40[0-2,5]. */
int named_jobs_of(struct invocation *in, struct client *client, const char *word,
		  struct named_jobs *ret, struct err *err) MUST_CHECK;
/* One job: 12, or of array 40 its number 40[3]. */
int named_job(struct invocation *in, struct client *client, const char *word, uint32_t *ret,
	      struct err *err) MUST_CHECK;
