/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jobs/array.h"

#include <string.h>

#include "api/jobfile/jobfile.h"
#include "cli/output/problem.h"
#include "cli/output/prose.h"

enum { ROWS_SHOWN = 50 };

const char *array_numbers_find(const char *word)
{
	return strpbrk(word, "_[");
}

bool job_is_array(const json_t *job)
{
	return get_int(job, "array_count") > 1 && get_int(job, "array_first") == get_int(job, "id");
}

int array_fetch(struct client *client, struct arena *arena, uint32_t array, bool open_only,
		json_t **ret, struct err *err)
{
	return fetch_jobs(client, arena,
			  arena_printf(arena, "/api/v1/jobs?array=%u&active=0%s", array,
				       open_only ? "&ended=0" : ""),
			  INT32_MAX, ret, NULL, err);
}

/* The axes of the answer's `sweep` as the job file's reader has them. */
static void sweep_read(const json_t *sweep, struct arena *arena, struct job_body *ret)
{
	struct sweep_axis *axes =
		arena_new_array(arena, struct sweep_axis, json_object_size(sweep) + 1);
	const char *name;
	json_t *values, *value;
	size_t index;

	json_object_foreach((json_t *)(uintptr_t)sweep, name, values)
	{
		struct sweep_axis *axis = &axes[ret->sweep_count];
		const char **list =
			arena_new_array(arena, const char *, json_array_size(values) + 1);

		json_array_foreach(values, index, value) list[index] =
			json_string_value(value) ? json_string_value(value) : "";
		axis->name = name;
		axis->values = list;
		axis->count = (uint32_t)json_array_size(values);
		ret->sweep_count += axis->count > 0;
	}
	ret->sweep = axes;
}

const char *const *array_values(const json_t *spec, uint32_t number, struct arena *arena)
{
	static const char *const none[] = { NULL };
	struct job_body body = { .env = none };

	sweep_read(json_object_get(spec, "sweep"), arena, &body);
	return job_body_env(&body, number, arena);
}

/* The rows get what belongs to them: `sweep`, as texts NAME=value. */
static void rows_add_values(struct invocation *in, json_t *rows, const json_t *spec)
{
	json_t *row;
	size_t index;

	if (!json_object_get(spec, "sweep"))
		return;
	json_array_foreach(rows, index, row)
	{
		const char *const *values = array_values(
			spec, (uint32_t)(get_int(row, "id") - get_int(row, "array_first")),
			in->arena);
		json_t *list = json_array();

		for (; *values; values++)
			json_array_append_new(list, json_string(*values));
		json_object_set_new(row, "sweep", list);
	}
}

/* LR=0.1,SIZE=32 */
static void cell_values(const json_t *row, struct buf *out)
{
	const json_t *text;
	size_t index;

	json_array_foreach(json_object_get(row, "sweep"), index, text)
	{
		if (index)
			buf_addc(out, ',');
		cell_text(out, json_string_value(text));
	}
}

static void cell_exit(const json_t *row, struct buf *out)
{
	if (get_int(row, "exit_code"))
		buf_addi(out, get_int(row, "exit_code"));
}

#define COLUMNS(...)                                                                               \
	{                                                                                          \
		{ "JOB", .cell = job_cell_id },                                                    \
		{ "STATE", "state", CELL_TEXT },                                                   \
		__VA_ARGS__{ "IN-STATE", "state_ms", CELL_AGE, .narrow = 1 },                      \
		{ "ATTEMPTS", "attempt_count", CELL_INT, .narrow = 2 },                            \
		{ "EXIT", .cell = cell_exit },                                                     \
		{ "REASON", .cell = job_cell_reason, .cut = true },                                \
		{ 0 },                                                                             \
	}

/* Those who may not see the values, and arrays without a sweep, have no column for them. */
static const struct column *columns_of(const json_t *rows)
{
	static const struct column with_values[] = COLUMNS({ "VALUES", .cell = cell_values }, ),
				   plain[] = COLUMNS();

	return json_object_get(json_array_get(rows, 0), "sweep") ? with_values : plain;
}

/* How many of its jobs are in which state, and who asked for what. */
static void add_head(const json_t *job, const json_t *states, struct buf *out)
{
	int64_t left = get_int(job, "array_count");
	const char *state, *between = "";
	json_t *count;

	buf_addf(out, "array %lld  ", (long long)get_int(job, "id"));
	say_text(out, get_text(job, "name"));
	buf_adds(out, "\nstate         ");
	json_object_foreach((json_t *)(uintptr_t)states, state, count)
	{
		buf_addf(out, "%s%lld %s", between, (long long)json_integer_value(count), state);
		between = ", ";
		left -= json_integer_value(count);
	}
	if (left > 0)
		buf_addf(out, "%s%lld ended long ago", between, (long long)left);
	buf_addf(out, "\narray         %lld jobs", (long long)get_int(job, "array_count"));
	if (get_int(job, "array_limit"))
		buf_addf(out, ", at most %lld at once", (long long)get_int(job, "array_limit"));
	buf_addc(out, '\n');
}

static json_t *value_make(const json_t *job, json_t *states, json_t *rows)
{
	return json_pack("{s:I, s:s, s:s, s:s, s:s, s:I, s:I, s:O, s:O}", "array",
			 (json_int_t)get_int(job, "id"), "name", get_text(job, "name"), "user",
			 get_text(job, "user"), "team", get_text(job, "team"), "queue",
			 get_text(job, "queue"), "count", (json_int_t)get_int(job, "array_count"),
			 "limit", (json_int_t)get_int(job, "array_limit"), "states", states, "jobs",
			 rows);
}

static void show_page(struct invocation *in, const struct output *output, const json_t *job,
		      const json_t *states, const json_t *rows)
{
	const int64_t left = get_int(job, "array_count") - (int64_t)json_array_size(rows);
	AUTO_BUF out = BUF_INIT;

	add_head(job, states, &out);
	prose_wrap(&out, output->width, 14);
	job_asks_say(job, &out);
	buf_addc(&out, '\n');
	output_table(output, columns_of(rows), rows, &out);
	output_buf(&out);
	if (left > 0)
		notice("and %lld more; `fairlead job %s -o wide` shows all", (long long)left,
		       in->args[0]);
	notice("`fairlead job '%lld[0]'` shows one of them", (long long)get_int(job, "id"));
	notice_simulated(output, get_bool(json_array_get(rows, 0), "simulated"));
}

static void add_to_state(json_t *states, const char *state)
{
	json_object_set_new(states, state, json_integer(get_int(states, state) + 1));
}

static bool row_is(const json_t *row, uint32_t id)
{
	return row && get_int(row, "id") == id;
}

/*
 * All numbers in order, `limit` at most: what the list no longer has, because it ended long ago, is asked for by itself. ret_states
 * counts those too.
 */
static int rows_complete(struct invocation *in, struct client *client, const json_t *job,
			 const json_t *listed, size_t limit, json_t *ret_states, json_t **ret,
			 struct err *err)
{
	const uint32_t first = (uint32_t)get_int(job, "id"),
		       end = first + (uint32_t)get_int(job, "array_count");
	json_t *all = json_array(), *row;
	size_t at = 0;

	for (uint32_t id = first; id < end && json_array_size(all) < limit; id++) {
		if (row_is(json_array_get(listed, at), id)) {
			json_array_append(all, json_array_get(listed, at++));
			continue;
		}
		if (client_get(client, client_path(in->arena, "/api/v1/jobs/%u", id), &row, err) <
		    0) {
			if (err->code == ERR_NOT_FOUND)
				continue; /* its records are lost */
			json_decref(all);
			return -(int)err->code;
		}
		add_to_state(ret_states, get_text(row, "state"));
		json_array_append_new(all, row);
	}
	*ret = all;
	return 0;
}

/* What is known of its jobs: those that the list has, and how many are in each state. */
static int array_ask(struct invocation *in, struct client *client, const json_t *job, int64_t limit,
		     json_t **ret_rows, json_t **ret_states, struct err *err)
{
	const char *path = arena_printf(in->arena, "/api/v1/jobs?array=%lld&active=0",
					(long long)get_int(job, "id"));
	json_t *listed = NULL, *sums = NULL, *states;
	int rc = fetch_jobs(client, in->arena, path, limit, &listed, NULL, err);

	if (rc >= 0)
		rc = fetch_jobs(client, in->arena, arena_printf(in->arena, "%s&fold=1", path), 1,
				&sums, NULL, err);
	if (rc < 0) {
		json_decref(listed);
		return rc;
	}
	states = json_object_get(json_array_get(sums, 0), "array_states");
	*ret_states = states ? json_incref(states) : json_object();
	json_decref(sums);
	rc = rows_complete(in, client, job, listed, (size_t)limit, *ret_states, ret_rows, err);
	json_decref(listed);
	if (rc < 0)
		json_decref(*ret_states);
	return rc;
}

int show_array(struct invocation *in, struct client *client, const struct output *output,
	       const json_t *job, struct err *err)
{
	const uint32_t id = (uint32_t)get_int(job, "id");
	json_t *rows = NULL, *spec = NULL, *states = NULL, *value;
	struct err unseen;
	int rc = array_ask(in, client, job, output->form == OUTPUT_TABLE ? ROWS_SHOWN : INT32_MAX,
			   &rows, &states, err);

	if (rc < 0)
		return rc;
	/* only for its owner */
	if (client_get(client, client_path(in->arena, "/api/v1/jobs/%u/spec", id), &spec, &unseen) <
	    0)
		spec = NULL;
	rows_add_values(in, rows, spec);
	value = value_make(job, states, rows);
	if (output->form == OUTPUT_NAME)
		job_names_print(rows);
	else if (!output_value(output, value, "array"))
		show_page(in, output, job, states, rows);
	json_decref(value);
	json_decref(spec);
	json_decref(states);
	json_decref(rows);
	return 0;
}
