/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlead explain` of an array as one: how many of its jobs are in which state, and for each reason how many wait for it.
 *
 *	array 40 "sweep": 8 jobs, at most 3 at once: 2 succeeded, 3 running, 3 queued
 *	  1 waits (capacity: 40[5]): needs 1 task of 1 GPU; 0 GPUs are free for it
 *	  2 wait (array_limit: 40[6-7]): ...
 */
#include <string.h>

#include "cli/submission/follow.h"
#include "cli/jobs/array.h"
#include "cli/jobs/jobs.h"
#include "cli/output/prose.h"

enum { RANGES_MAX = 4 };

/* Which numbers of their array the rows from first to end have: 0-2,5; a range more than there is room for is "..". */
static void add_numbers(const json_t *rows, size_t first, size_t end, struct buf *out)
{
	int64_t array = get_int(json_array_get(rows, first), "array_first");
	size_t ranges = 0;

	for (size_t i = first, last; i < end; i = last + 1) {
		int64_t from = get_int(json_array_get(rows, i), "id");

		for (last = i; last + 1 < end && get_int(json_array_get(rows, last + 1), "id") ==
							 from + (int64_t)(last + 1 - i);)
			last++;
		if (ranges++ == RANGES_MAX) {
			buf_adds(out, ",..");
			return;
		}
		buf_addf(out, "%s%lld", i > first ? "," : "", (long long)(from - array));
		if (last > i)
			buf_addf(out, "-%lld", (long long)(from - array) + (long long)(last - i));
	}
}

static void count_one(json_t *counts, const char *name)
{
	json_object_set_new(counts, name, json_integer(get_int(counts, name) + 1));
}

/* The group of a reason, made with the first job that waits for it. */
static json_t *group_of(json_t *groups, const json_t *row)
{
	const char *code = get_text(row, "reason_code");
	json_t *group;
	size_t index;

	json_array_foreach(groups, index,
			   group) if (strcmp(get_text(group, "reason"), code) == 0) return group;
	group = json_pack("{s:s, s:I, s:s, s:[]}", "reason", code, "first",
			  (json_int_t)get_int(row, "id"), "summary", get_text(row, "reason"),
			  "rows");
	json_array_append_new(groups, group);
	return group;
}

/* {"array", "name", "count", "limit", "states": {"running": 3}, "waiting": [{"reason", "count", "numbers", "first", "summary"}]} */
static json_t *summed_up(const json_t *job, const json_t *rows)
{
	json_t *states = json_object(), *groups = json_array(), *row, *group;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)rows, index, row)
	{
		count_one(states, get_text(row, "state"));
		if (get_text(row, "reason_code")[0] && !state_is_final(get_text(row, "state")))
			json_array_append(json_object_get(group_of(groups, row), "rows"), row);
	}
	json_array_foreach(groups, index, group)
	{
		AUTO_BUF numbers = BUF_INIT;
		json_t *members = json_object_get(group, "rows");

		add_numbers(members, 0, json_array_size(members), &numbers);
		json_object_set_new(group, "count",
				    json_integer((json_int_t)json_array_size(members)));
		json_object_set_new(group, "numbers", json_string(buf_text(&numbers)));
		json_object_del(group, "rows");
	}
	return json_pack("{s:I, s:s, s:I, s:I, s:o, s:o, s:b}", "array",
			 (json_int_t)get_int(job, "id"), "name", get_text(job, "name"), "count",
			 (json_int_t)get_int(job, "array_count"), "limit",
			 (json_int_t)get_int(job, "array_limit"), "states", states, "waiting",
			 groups, "simulated", get_bool(job, "simulated"));
}

static void add_states(const json_t *answer, struct buf *out)
{
	int64_t left = get_int(answer, "count");
	const char *state, *between = ": ";
	json_t *jobs;

	json_object_foreach(json_object_get(answer, "states"), state, jobs)
	{
		buf_addf(out, "%s%lld %s", between, (long long)json_integer_value(jobs), state);
		left -= json_integer_value(jobs);
		between = ", ";
	}
	if (left > 0)
		buf_addf(out, "%s%lld ended long ago", between, (long long)left);
	buf_addc(out, '\n');
}

static void add_group(const json_t *answer, const json_t *group, struct buf *out)
{
	const int64_t count = get_int(group, "count");
	const char *numbers = get_text(group, "numbers");

	buf_addf(out, "  %lld wait%s (%s: %lld[%s]): ", (long long)count, count == 1 ? "s" : "",
		 get_text(group, "reason"), (long long)get_int(answer, "array"), numbers);
	say_sentence(out, get_text(group, "summary"));
	buf_addc(out, '\n');
}

static void add_text(const json_t *answer, struct buf *out)
{
	const json_t *groups = json_object_get(answer, "waiting"), *group;
	const int64_t array = get_int(answer, "array");
	size_t index;

	buf_addf(out, "array %lld \"", (long long)array);
	say_text(out, get_text(answer, "name"));
	buf_addf(out, "\": %lld jobs", (long long)get_int(answer, "count"));
	if (get_int(answer, "limit"))
		buf_addf(out, ", at most %lld at once", (long long)get_int(answer, "limit"));
	add_states(answer, out);
	json_array_foreach((json_t *)(uintptr_t)groups, index, group) add_group(answer, group, out);
	if (!index) {
		buf_adds(out, "None of them waits.\n");
		return;
	}
	buf_addf(
		out, "`fairlead explain %lld[%lld]` says what would let the first of them start.\n",
		(long long)array, (long long)(get_int(json_array_get(groups, 0), "first") - array));
}

int explain_array(struct invocation *in, struct client *client, const struct output *output,
		  const json_t *job, struct err *err)
{
	json_t *rows = NULL, *answer;
	AUTO_BUF out = BUF_INIT;
	int rc = array_fetch(client, in->arena, (uint32_t)get_int(job, "id"), false, &rows, err);

	if (rc < 0)
		return rc;
	answer = summed_up(job, rows);
	json_decref(rows);
	if (!output_value(output, answer, "array")) {
		add_text(answer, &out);
		prose_wrap(&out, output->width, 2);
		output_buf(&out);
		notice_simulated(output, get_bool(answer, "simulated"));
	}
	json_decref(answer);
	return 0;
}
