/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in a job file: how many jobs, how many at once, and jobs that are waited for. */
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/model/facts.h"

static int number_read(struct reading *r, const struct conf *c, const char *what, const char *text,
		       size_t size, int64_t *ret)
{
	struct err why;

	if (parse_int(arena_strndup(r->arena, text, size), 1, ARRAY_MAX, ret, &why) < 0)
		return conf_error(r->err, r->file, c, "%s: %s; an array is written 20, or 20%%4",
				  what, why.text);
	return 0;
}

/* 20 or 20%4: twenty jobs, at most four of them at once. */
static int array_text(struct reading *r, const struct conf *c, const char *what)
{
	const char *percent = strchr(c->text, '%');
	int rc;

	if (!percent)
		return conf_int(r->err, r->file, c, what, 1, ARRAY_MAX, &r->job->array_count);
	rc = number_read(r, c, what, c->text, (size_t)(percent - c->text), &r->job->array_count);
	return rc < 0 ? rc
		      : number_read(r, c, what, percent + 1, strlen(percent + 1),
				    &r->job->array_limit);
}

int read_array(struct reading *r, const struct conf *c, const char *what)
{
	r->array = c;
	r->has_count = c->type != CONF_MAP || conf_find(c, "count");
	if (c->type == CONF_SCALAR)
		return array_text(r, c, what);
	if (c->type != CONF_MAP)
		return conf_error(r->err, r->file, c,
				  "%s must be a number of jobs, or {count: 20, limit: 4}", what);
	if (!c->count)
		return conf_error(r->err, r->file, c, "%s is empty; write {count: 20, limit: 4}",
				  what);
	return jobfile_read_fields(r, c, "array.");
}

int read_array_count(struct reading *r, const struct conf *c, const char *what)
{
	return conf_int(r->err, r->file, c, what, 1, ARRAY_MAX, &r->job->array_count);
}

int read_array_limit(struct reading *r, const struct conf *c, const char *what)
{
	return conf_int(r->err, r->file, c, what, 1, ARRAY_MAX, &r->job->array_limit);
}

/* 17: job 17, or the whole array that it is the number of. 17[3], or 17_3: number 3 of array 17. */
static int depend_read(struct reading *r, const struct conf *c, const char *what, int64_t *ret_job,
		       int64_t *ret_array)
{
	const char *line = c->type == CONF_SCALAR ? strpbrk(c->text, "_[") : NULL;
	size_t size = line ? strlen(line + 1) : 0;
	int64_t array = 0, index = 0;
	struct err why;

	*ret_array = 0;
	if (!line)
		return conf_int(r->err, r->file, c, what, 1, UINT32_MAX, ret_job);
	if (*line == '[' && (!size || line[size] != ']'))
		return conf_error(
			r->err, r->file, c,
			"%s: there is no ] at the end; number 3 of array 17 is written 17[3]",
			what);
	size -= *line == '[';
	if (parse_int(arena_strndup(r->arena, c->text, (size_t)(line - c->text)), 1, UINT32_MAX,
		      &array, &why) < 0 ||
	    parse_int(arena_strndup(r->arena, line + 1, size), 0, ARRAY_MAX - 1, &index, &why) < 0)
		return conf_error(r->err, r->file, c,
				  "%s: %s; number 3 of array 17 is written 17[3]", what, why.text);
	*ret_array = array;
	*ret_job = array + index;
	return 0;
}

int read_depends_on(struct reading *r, const struct conf *c, const char *what)
{
	size_t count = c->type == CONF_LIST ? c->count : 1;
	int64_t *jobs, *arrays;

	if (count > DEPENDS_MAX)
		return conf_error(r->err, r->file, c, "%s names %zu jobs; the limit is %d", what,
				  count, DEPENDS_MAX);
	jobs = arena_new_array(r->arena, int64_t, count + 1);
	arrays = arena_new_array(r->arena, int64_t, count + 1);
	for (size_t i = 0; i < count; i++) {
		const struct conf *item = c->type == CONF_LIST ? c->items[i] : c;
		int rc = depend_read(r, item, what, &jobs[i], &arrays[i]);

		if (rc < 0)
			return rc;
		for (size_t k = 0; k < i; k++)
			if (jobs[k] == jobs[i])
				return conf_error(r->err, r->file, item, "%s names job %lld twice",
						  what, (long long)jobs[i]);
	}
	r->job->depends = jobs;
	r->job->depends_count = (uint32_t)count;
	r->depend_arrays = arrays;
	return 0;
}
