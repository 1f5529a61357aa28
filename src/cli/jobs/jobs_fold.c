/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line for each array: the jobs that the list has of it, how many are in each state, all their GPUs, and the reason of the
 * first that waits.
 *
 *	40_[0-2,5]   running:1,queued:3
 */
#include <string.h>

#include "cli/jobs/jobs.h"

enum { STATES_MAX = 16, RANGES_MAX = 4 };

/* 0-2,5; a range more than there is room for is "..". */
void jobs_add_numbers(const json_t *rows, size_t first, size_t end, struct buf *out)
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

/* In the order in which the states are met. */
static void add_states(const json_t *rows, size_t first, size_t end, struct buf *out)
{
	const char *state[STATES_MAX];
	size_t jobs[STATES_MAX], count = 0, at;

	for (size_t i = first; i < end; i++) {
		const char *text = get_text(json_array_get(rows, i), "state");

		for (at = 0; at < count && strcmp(state[at], text) != 0;)
			at++;
		if (at == STATES_MAX)
			continue;
		if (at == count) {
			state[count] = text;
			jobs[count++] = 0;
		}
		jobs[at]++;
	}
	for (at = 0; at < count; at++)
		buf_addf(out, "%s%s:%zu", at ? "," : "", state[at], jobs[at]);
}

static json_t *fold(const json_t *rows, size_t first, size_t end)
{
	json_t *line = json_copy(json_array_get(rows, first));
	AUTO_BUF label = BUF_INIT, states = BUF_INIT;
	int64_t tasks = 0;

	buf_addf(&label, "%lld_[", (long long)get_int(line, "array_first"));
	jobs_add_numbers(rows, first, end, &label);
	buf_addc(&label, ']');
	add_states(rows, first, end, &states);
	for (size_t i = end; i-- > first;) {
		const json_t *row = json_array_get(rows, i);

		tasks += job_row_tasks(row);
		if (*get_text(row, "reason_code")) {
			json_object_set(line, "reason", json_object_get(row, "reason"));
			json_object_set(line, "reason_code", json_object_get(row, "reason_code"));
		}
	}
	json_object_set_new(line, "label", json_string(buf_text(&label)));
	json_object_set_new(line, "state", json_string(buf_text(&states)));
	json_object_set_new(line, "all_tasks", json_integer(tasks));
	return line;
}

json_t *jobs_fold(const json_t *rows)
{
	size_t count = json_array_size(rows);
	json_t *lines = json_array();

	for (size_t i = 0, end; i < count; i = end) {
		int64_t array = get_int(json_array_get(rows, i), "array_first");

		for (end = i + 1; array && end < count &&
				  get_int(json_array_get(rows, end), "array_first") == array;)
			end++;
		if (end == i + 1)
			json_array_append(lines, json_array_get(rows, i));
		else
			json_array_append_new(lines, fold(rows, i, end));
	}
	return lines;
}
