/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The jobs of an array together. Its number is that of its first job and means all of them; one is written 40[3], several
 * 40[0-2,5]. The older form with a line, 40_3 and 40_[0-2,5], is read too.
 */
#include "cli/jobs/jobs.h"

/* Where the numbers begin in "40[3]" or "40_3": at the bracket or the line; NULL = the word names no job of an array. */
const char *array_numbers_find(const char *word);
/* Its jobs that the daemon still lists, as the rows of GET /api/v1/jobs. open_only: those that have not ended. */
int array_fetch(struct client *client, struct arena *arena, uint32_t array, bool open_only,
		json_t **ret, struct err *err) MUST_CHECK;
/* Whether `job`, as GET /api/v1/jobs/{id} answers it, is the first of an array. */
bool job_is_array(const json_t *job);
/* The values that the job of this number has by its sweep: "LR=0.1", ..., NULL-terminated; empty = none. spec: answer of
 * GET /api/v1/jobs/{id}/spec, NULL = not known. */
const char *const *array_values(const json_t *spec, uint32_t number, struct arena *arena);
/* `fairlead job 40`: the array as one page, or in the form asked for. */
int show_array(struct invocation *in, struct client *client, const struct output *output,
	       const json_t *job, struct err *err) MUST_CHECK;
