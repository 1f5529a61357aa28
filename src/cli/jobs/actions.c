/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jobs/actions.h"

#include <stdlib.h>
#include <string.h>

#include "cli/jobs/array.h"
#include "cli/output/output.h"
#include "cli/output/problem.h"

int actions_array_query(struct invocation *in, struct client *client, const char **ret,
			struct err *err)
{
	json_t *job = NULL;
	struct err unknown;
	uint32_t id;

	*ret = NULL;
	if (in->arg_count != 1 || array_numbers_find(in->args[0]))
		return 0;
	if (arg_job(in->args[0], &id, err) < 0)
		return -(int)err->code;
	/* What is wrong with the job is said when it is changed. */
	if (client_get(client, client_path(in->arena, "/api/v1/jobs/%u", id), &job, &unknown) >=
		    0 &&
	    job_is_array(job))
		*ret = arena_printf(in->arena, "array=%u", id);
	json_decref(job);
	return 0;
}

static int meant(struct invocation *in, struct client *client, const char *query,
		 const json_t *action, int64_t *ret, struct err *err)
{
	json_t *answer = NULL;
	int rc = client_send(client, "POST",
			     arena_printf(in->arena, "/api/v1/job-actions?%s&dry_run=1", query),
			     action, &answer, err);

	if (rc >= 0)
		*ret = get_int(answer, "matched");
	json_decref(answer);
	return rc;
}

int actions_settle(struct invocation *in, struct client *client, const char **query, json_t *action,
		   int64_t *ret_count, struct err *err)
{
	int rc = *query ? meant(in, client, *query, action, ret_count, err) : 0;

	if (rc >= 0 && *ret_count <= ACTIONS_FEW)
		*query = NULL;
	json_decref(action);
	return rc;
}

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* "12,40-47": rising, each once. */
static void ranges_say(struct invocation *in, const struct named_jobs *named, struct buf *out)
{
	uint32_t *jobs = arena_new_array(in->arena, uint32_t, named->count);

	memcpy(jobs, named->jobs, named->count * sizeof(*jobs));
	qsort(jobs, named->count, sizeof(*jobs), compare);
	for (size_t i = 0, end; i < named->count; i = end) {
		for (end = i + 1; end < named->count && jobs[end] <= jobs[end - 1] + 1; end++)
			;
		buf_addf(out, "%s%u", i ? "," : "", jobs[i]);
		if (jobs[end - 1] > jobs[i])
			buf_addf(out, "-%u", jobs[end - 1]);
	}
}

static int sums_say(const json_t *answer, const char *many)
{
	const int64_t already = get_int(answer, "already"), failed = get_int(answer, "failed");
	AUTO_BUF out = BUF_INIT;
	const json_t *problem;
	struct err err;
	size_t index;

	buf_addf(&out, "%lld jobs %s", (long long)get_int(answer, "done"), many);
	if (already)
		buf_addf(&out, ", %lld were so already", (long long)already);
	if (failed)
		buf_addf(&out, ", %lld can't be", (long long)failed);
	buf_addc(&out, '\n');
	output_buf(&out);
	if (!failed)
		return 0;
	json_array_foreach(json_object_get(answer, "problems"), index, problem)
	{
		err_set(&err, err_code_find(get_text(answer, "problem_code")), "%s",
			json_string_value(problem));
		problem_show(&err);
	}
	return err_code_exit(err_code_find(get_text(answer, "problem_code")));
}

int actions_do(struct invocation *in, struct client *client, const char *query,
	       const struct named_jobs *named, json_t *action, const char *many, struct err *err)
{
	json_t *answer = NULL;
	AUTO_BUF ranges = BUF_INIT;
	int rc;

	if (!query) {
		ranges_say(in, named, &ranges);
		json_object_set_new(action, "jobs", json_string(buf_text(&ranges)));
	}
	rc = client_send(client, "POST",
			 arena_printf(in->arena, "/api/v1/job-actions%s%s", query ? "?" : "",
				      query ? query : ""),
			 action, &answer, err);
	if (rc >= 0)
		rc = sums_say(answer, many);
	json_decref(answer);
	return rc;
}
