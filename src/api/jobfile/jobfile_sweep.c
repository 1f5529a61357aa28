/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps: an array whose jobs get each combination of some values in their environment.
 *
 *	sweep: {LR: [0.1, 0.01], SIZE: [32, 64, 128]}		6 jobs
 *	number 0: LR=0.1 SIZE=32	1: LR=0.1 SIZE=64	...	5: LR=0.01 SIZE=128
 *
 * The last name changes fastest. In the body, a member "sweep": {"LR": ["0.1", "0.01"], ...}.
 */
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/json.h"
#include "core/model/facts.h"

static int values_check(struct reading *r, const struct conf *axis, size_t *total)
{
	if (axis->type != CONF_LIST || !axis->count)
		return conf_error(r->err, r->file, axis,
				  "sweep: %.60s must be a list of values such as [0.1, 0.01]",
				  axis->key);
	for (size_t i = 0; i < axis->count; i++) {
		const char *text;
		int rc;

		if (axis->items[i]->type != CONF_SCALAR)
			return conf_error(
				r->err, r->file, axis->items[i],
				"sweep: a value of %.60s must be a text, a number, true or false",
				axis->key);
		rc = conf_text(r->err, r->file, axis->items[i], "the value of a variable",
			       JOBFILE_COMMAND_MAX - strlen(axis->key) - 1, &text);
		if (rc < 0)
			return rc;
		*total += strlen(text) + 1;
	}
	return 0;
}

int read_sweep(struct reading *r, const struct conf *c, const char *what)
{
	size_t total = 0;
	int64_t jobs = 1;

	if (c->type != CONF_MAP || !c->count || c->count > SWEEP_NAMES_MAX)
		return conf_error(r->err, r->file, c,
				  "%s must be a map of 1 to %d names such as {LR: [0.1, 0.01]}",
				  what, SWEEP_NAMES_MAX);
	for (size_t i = 0; i < c->count; i++) {
		int rc = jobfile_env_name(r, c->items[i], what);

		if (rc >= 0)
			rc = values_check(r, c->items[i], &total);
		if (rc < 0)
			return rc;
		if (c->items[i]->count > (size_t)(ARRAY_MAX / jobs))
			return conf_error(r->err, r->file, c,
					  "%s makes more than %d jobs; the limit is %d", what,
					  ARRAY_MAX, ARRAY_MAX);
		jobs *= (int64_t)c->items[i]->count;
	}
	if (total > JOBFILE_TOTAL_MAX)
		return conf_error(r->err, r->file, c, "%s has values of %zu bytes; the limit is %d",
				  what, total, JOBFILE_TOTAL_MAX);
	r->body.sweep = c;
	r->sweep_jobs = jobs;
	return 0;
}

int jobfile_sweep_finish(struct reading *r)
{
	const struct conf *sweep = r->body.sweep;

	if (!sweep && r->array && r->job->array_limit && !r->has_count)
		return conf_error(
			r->err, r->file, r->array,
			"array: count is missing; write {count: 20, limit: 4}, or give a sweep");
	if (!sweep)
		return 0;
	if (r->has_count && r->job->array_count != r->sweep_jobs)
		return conf_error(
			r->err, r->file, r->array,
			"array is %lld, but the sweep makes %lld jobs; leave the count out, as in {limit: 4}",
			(long long)r->job->array_count, (long long)r->sweep_jobs);
	for (size_t i = 0; i < sweep->count; i++) {
		const char *name = sweep->items[i]->key;

		if ((r->body.env && conf_find(r->body.env, name)) ||
		    (r->body.secrets && conf_find(r->body.secrets, name)))
			return jobfile_key_error(
				r, sweep->items[i],
				"%.60s stands in sweep and in env or secrets; leave one of them out",
				name);
	}
	r->job->array_count = r->sweep_jobs;
	return 0;
}

/* --- in the body ------------------------------------------------------------------------------------- */

void jobfile_sweep_write(const struct conf *sweep, struct buf *out)
{
	buf_adds(out, ",\"sweep\":{");
	for (size_t i = 0; i < sweep->count; i++) {
		const struct conf *axis = sweep->items[i];

		if (i)
			buf_addc(out, ',');
		buf_add_json(out, axis->key, strlen(axis->key));
		for (size_t k = 0; k < axis->count; k++) {
			buf_adds(out, k ? "," : ":[");
			buf_add_json(out, axis->items[k]->text, strlen(axis->items[k]->text));
		}
		buf_addc(out, ']');
	}
	buf_addc(out, '}');
}

static void axis_read(struct json_reader *json, struct arena *arena, struct sweep_axis *axis)
{
	const char **values = arena_new_array(arena, const char *, ARRAY_MAX);
	struct json_slice slice;

	pull_array(json);
	while (pull_element(json)) {
		if (axis->count == ARRAY_MAX) {
			pull_fail(json, "the body's sweep has too many values");
			return;
		}
		slice = (struct json_slice){ 0 };
		pull_string(json, &slice);
		values[axis->count++] = pull_text(json, &slice, arena);
	}
	axis->values = values;
	if (!axis->count)
		pull_fail(json, "the body's sweep has a name without values");
}

void jobfile_sweep_read(struct json_reader *json, struct arena *arena, struct job_body *body)
{
	struct sweep_axis *axes = arena_new_array(arena, struct sweep_axis, SWEEP_NAMES_MAX);
	struct json_slice key;

	pull_object(json);
	while (pull_member(json, &key)) {
		if (body->sweep_count == SWEEP_NAMES_MAX) {
			pull_fail(json, "the body's sweep has too many names");
			return;
		}
		axes[body->sweep_count].name = pull_text(json, &key, arena);
		axis_read(json, arena, &axes[body->sweep_count++]);
	}
	body->sweep = axes;
}

const char *const *job_body_env(const struct job_body *body, uint32_t index, struct arena *arena)
{
	const char **env;
	size_t count = 0;

	if (!body->sweep_count)
		return body->env;
	while (body->env[count])
		count++;
	env = arena_new_array(arena, const char *, count + body->sweep_count + 1);
	memcpy(env, body->env, count * sizeof(*env));
	for (uint32_t i = body->sweep_count; i-- > 0;) {
		const struct sweep_axis *axis = &body->sweep[i];

		env[count + i] =
			arena_printf(arena, "%s=%s", axis->name, axis->values[index % axis->count]);
		index /= axis->count;
	}
	return env;
}
