/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as arguments: 12, or of array 40 its number 40_3, or several of them as the list shows them: 40_[0-2,5]. */
#include <string.h>

#include "base/parse.h"
#include "cli/jobs/jobs.h"
#include "core/model/facts.h"

static int number_read(struct invocation *in, const char *word, const char *text, size_t size,
		       int64_t *ret, struct err *err)
{
	struct err why;

	if (parse_int(arena_strndup(in->arena, text, size), 0, ARRAY_MAX - 1, ret, &why) < 0)
		return err_set(err, ERR_INVALID,
			       "\"%.60s\": %s; jobs of array 40 are written 40_3 or 40_[0-2,5]",
			       word, why.text);
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
		for (; from <= to; from++) {
			if (ret->count == NAMED_JOBS_MAX)
				return err_set(err, ERR_INVALID,
					       "more than %d jobs are named; name fewer at once",
					       NAMED_JOBS_MAX);
			ret->jobs[ret->count++] = array + (uint32_t)from;
		}
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

static int member_read(struct invocation *in, struct client *client, const char *word,
		       const char *line, struct named_jobs *ret, struct err *err)
{
	const char *list = line + 1;
	size_t size = strlen(list);
	int64_t most = 0;
	uint32_t array;
	int rc = arg_job(arena_strndup(in->arena, word, (size_t)(line - word)), &array, err);

	if (rc < 0)
		return rc;
	if (size >= 2 && list[0] == '[' && list[size - 1] == ']') {
		list++;
		size -= 2;
	}
	rc = numbers_read(in, word, list, size, ret, array, &most, err);
	return rc < 0 ? rc : array_check(in, client, word, array, most, err);
}

int named_jobs(struct invocation *in, struct client *client, struct named_jobs *ret,
	       struct err *err)
{
	int rc = 0;

	ret->jobs = arena_new_array(in->arena, uint32_t, NAMED_JOBS_MAX + (size_t)in->arg_count);
	ret->count = 0;
	for (int i = 0; i < in->arg_count && rc >= 0; i++) {
		const char *word = in->args[i], *line = strchr(word, '_');

		if (line)
			rc = member_read(in, client, word, line, ret, err);
		else
			rc = arg_job(word, &ret->jobs[ret->count++], err);
	}
	return rc;
}

int named_job(struct invocation *in, struct client *client, const char *word, uint32_t *ret,
	      struct err *err)
{
	const char *line = strchr(word, '_');
	struct named_jobs one = { .jobs = arena_new_array(in->arena, uint32_t, NAMED_JOBS_MAX) };
	int rc;

	if (!line)
		return arg_job(word, ret, err);
	rc = member_read(in, client, word, line, &one, err);
	if (rc >= 0 && one.count != 1)
		return err_set(err, ERR_INVALID, "\"%.60s\" names %zu jobs; name one of them", word,
			       one.count);
	*ret = one.count ? one.jobs[0] : 0;
	return rc;
}
