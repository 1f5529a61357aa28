/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs as arguments: 12; of array 40 the one with number 3, 40[3]; several of them as the list shows them, 40[0-2,5]; and 40 alone,
 * all of array 40. The form with a line, 40_3 and 40_[0-2,5], needs no quotes in any shell.
 */
#include <string.h>

#include "base/parse.h"
#include "cli/jobs/array.h"
#include "cli/jobs/jobs.h"
#include "core/model/facts.h"

static int number_read(struct invocation *in, const char *word, const char *text, size_t size,
		       int64_t *ret, struct err *err)
{
	struct err why;

	if (parse_int(arena_strndup(in->arena, text, size), 0, ARRAY_MAX - 1, ret, &why) < 0)
		return err_set(err, ERR_INVALID,
			       "\"%.60s\": %s; jobs of array 40 are written 40[3] or 40[0-2,5]",
			       word, why.text);
	return 0;
}

static int job_add(struct named_jobs *ret, uint32_t job, uint32_t array, struct err *err)
{
	if (ret->count == NAMED_JOBS_MAX)
		return err_set(err, ERR_INVALID, "more than %d jobs are named; name fewer at once",
			       NAMED_JOBS_MAX);
	ret->jobs[ret->count] = job;
	ret->arrays[ret->count++] = array;
	return 0;
}

/* "0-2,5" behind the array's number: adds these jobs. */
static int numbers_read(struct invocation *in, const char *word, const char *list, size_t size,
			struct named_jobs *ret, uint32_t array, int64_t *most, struct err *err)
{
	for (size_t at = 0, part; at <= size; at += part + 1) {
		const char *text = list + at, *dash;
		int64_t from, to;

		for (part = 0; at + part < size && text[part] != ',';)
			part++;
		dash = memchr(text, '-', part);
		if (number_read(in, word, text, dash ? (size_t)(dash - text) : part, &from, err) <
		    0)
			return -(int)err->code;
		to = from;
		if (dash &&
		    number_read(in, word, dash + 1, (size_t)(text + part - dash - 1), &to, err) < 0)
			return -(int)err->code;
		*most = to > *most ? to : *most;
		for (; from <= to; from++)
			if (job_add(ret, array + (uint32_t)from, array, err) < 0)
				return -(int)err->code;
	}
	return 0;
}

/* There must be such an array: else other jobs would be meant. */
static int array_check(struct invocation *in, struct client *client, const char *word,
		       uint32_t array, int64_t most, struct err *err)
{
	json_t *answer = NULL;
	int64_t first, count;
	int rc = client_get(client, client_path(in->arena, "/api/v1/jobs/%u", array), &answer, err);

	if (rc < 0)
		return rc;
	first = get_int(answer, "array_first");
	count = get_int(answer, "array_count");
	json_decref(answer);
	if (first != array)
		return err_set(err, ERR_NOT_FOUND, "\"%.60s\": job %u is not the first of an array",
			       word, array);
	return most < count ? 0
			    : err_set(err, ERR_NOT_FOUND,
				      "\"%.60s\": array %u has the numbers 0 to %lld", word, array,
				      (long long)(count - 1));
}

/* Behind the array's number: "_3", "_[0-2,5]", "[3]" or "[0-2,5]"; ret_list is what stands between brackets, or behind the line. */
static int brackets_read(const char *word, const char *at, const char **ret_list, size_t *ret_size,
			 struct err *err)
{
	const bool line = *at == '_';
	size_t size;

	at += line;
	size = strlen(at);
	*ret_list = at;
	*ret_size = size;
	if (line && *at != '[')
		return 0;
	if (size < 2 || at[size - 1] != ']')
		return err_set(
			err, ERR_INVALID,
			"\"%.60s\": there is no ] at the end; jobs of array 40 are written 40[3] or 40[0-2,5]",
			word);
	*ret_list = at + 1;
	*ret_size = size - 2;
	return 0;
}

static int member_read(struct invocation *in, struct client *client, const char *word,
		       const char *numbers, struct named_jobs *ret, struct err *err)
{
	const char *list;
	int64_t most = 0;
	uint32_t array;
	size_t size;
	int rc = arg_job(arena_strndup(in->arena, word, (size_t)(numbers - word)), &array, err);

	if (rc >= 0)
		rc = brackets_read(word, numbers, &list, &size, err);
	if (rc >= 0)
		rc = numbers_read(in, word, list, size, ret, array, &most, err);
	return rc < 0 ? rc : array_check(in, client, word, array, most, err);
}

/* All of an array that have not ended. */
static int array_add(struct invocation *in, struct client *client, const json_t *job,
		     struct named_jobs *ret, struct err *err)
{
	const uint32_t array = (uint32_t)get_int(job, "id");
	json_t *rows = NULL, *row;
	size_t index;
	int rc = array_fetch(client, in->arena, array, true, &rows, err);

	if (rc < 0)
		return rc;
	json_array_foreach(rows, index, row) if (rc >= 0) rc =
		job_add(ret, (uint32_t)get_int(row, "id"), array, err);
	if (rc >= 0 && !index)
		rc = err_set(err, ERR_CONFLICT, "array %u: all of its %lld jobs have ended", array,
			     (long long)get_int(job, "array_count"));
	json_decref(rows);
	return rc;
}

/* A number alone: one job, or a whole array. What is wrong with a job is said when it is changed, beside the others. */
static int whole_read(struct invocation *in, struct client *client, const char *word,
		      struct named_jobs *ret, struct err *err)
{
	json_t *job = NULL;
	struct err unknown;
	uint32_t id;
	int rc = arg_job(word, &id, err);

	if (rc < 0)
		return rc;
	rc = client_get(client, client_path(in->arena, "/api/v1/jobs/%u", id), &job, &unknown);
	rc = rc >= 0 && job_is_array(job) ? array_add(in, client, job, ret, err)
					  : job_add(ret, id, 0, err);
	json_decref(job);
	return rc;
}

static void named_begin(struct invocation *in, struct named_jobs *ret)
{
	ret->jobs = arena_new_array(in->arena, uint32_t, NAMED_JOBS_MAX);
	ret->arrays = arena_new_array(in->arena, uint32_t, NAMED_JOBS_MAX);
	ret->count = 0;
}

int named_jobs_of(struct invocation *in, struct client *client, const char *word,
		  struct named_jobs *ret, struct err *err)
{
	named_begin(in, ret);
	return member_read(in, client, word, array_numbers_find(word), ret, err);
}

int named_jobs(struct invocation *in, struct client *client, struct named_jobs *ret,
	       struct err *err)
{
	int rc = 0;

	named_begin(in, ret);
	for (int i = 0; i < in->arg_count && rc >= 0; i++) {
		const char *word = in->args[i], *numbers = array_numbers_find(word);

		rc = numbers ? member_read(in, client, word, numbers, ret, err)
			     : whole_read(in, client, word, ret, err);
	}
	return rc;
}

int named_job(struct invocation *in, struct client *client, const char *word, uint32_t *ret,
	      struct err *err)
{
	const char *numbers = array_numbers_find(word);
	struct named_jobs one = { 0 };
	int rc;

	if (!numbers)
		return arg_job(word, ret, err);
	one.jobs = arena_new_array(in->arena, uint32_t, NAMED_JOBS_MAX);
	one.arrays = arena_new_array(in->arena, uint32_t, NAMED_JOBS_MAX);
	rc = member_read(in, client, word, numbers, &one, err);
	if (rc >= 0 && one.count != 1)
		return err_set(err, ERR_INVALID, "\"%.60s\" names %zu jobs; name one of them", word,
			       one.count);
	*ret = one.count ? one.jobs[0] : 0;
	return rc;
}

void named_job_say(const struct named_jobs *named, size_t index, struct buf *out)
{
	const uint32_t array = named->arrays ? named->arrays[index] : 0;

	if (array)
		buf_addf(out, "job %u[%u]", array, named->jobs[index] - array);
	else
		buf_addf(out, "job %u", named->jobs[index]);
}
