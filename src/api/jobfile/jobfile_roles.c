/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles in a job file: groups of unlike tasks. Each is a small job file of its own; its fields have the readers of the job's
 * fields, which meanwhile fill a submission and a body of the role's. What a role does not say is what the job says, wherever in
 * the file that stands, so roles are read when all other fields have been.
 */
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"
#include "core/model/facts.h"

int read_roles(struct reading *r, const struct conf *c, const char *what)
{
	if (c->type != CONF_LIST || !c->count)
		return conf_error(
			r->err, r->file, c,
			"%s must be a list such as [{name: server}, {name: worker, tasks: 4}]",
			what);
	if (c->count > ROLES_MAX)
		return conf_error(r->err, r->file, c, "%s has %zu entries; the limit is %d", what,
				  c->count, ROLES_MAX);
	r->roles = c;
	return 0;
}

int read_roles_name(struct reading *r, const struct conf *c, const char *what)
{
	return jobfile_name(r, c, what, &r->job->name);
}

int read_roles_min(struct reading *r, const struct conf *c, const char *what)
{
	return conf_int(r->err, r->file, c, what, 1, TASKS_MAX, &r->role_min);
}

int read_roles_ends_job(struct reading *r, const struct conf *c, const char *what)
{
	return conf_bool(r->err, r->file, c, what, &r->role_ends);
}

/* A `min` beside `tasks`: at least so many of them. */
static int tasks_finish(struct reading *r, const struct conf *c)
{
	if (!r->role_min)
		return 0;
	if (r->job->tasks_min != r->job->tasks_max)
		return conf_error(
			r->err, r->file, c,
			"a role whose tasks are a range has its least number there; leave min out");
	if (r->role_min > r->job->tasks_max)
		return conf_error(r->err, r->file, c, "min %lld is more than tasks %lld",
				  (long long)r->role_min, (long long)r->job->tasks_max);
	r->job->tasks_min = r->role_min;
	return 0;
}

static int role_finish(struct reading *r, const struct conf *c)
{
	if (!*r->job->name)
		return conf_error(r->err, r->file, c, "a role needs a name");
	if (r->job->gpu_part || r->job->gpu_part_mib)
		return conf_error(
			r->err, r->file, c,
			"role \"%s\": a role takes whole GPUs; parts of GPUs are for jobs without roles",
			r->job->name);
	if (r->body.command && r->body.script)
		return conf_error(r->err, r->file, c,
				  "role \"%s\" has a command or a script, not both", r->job->name);
	return tasks_finish(r, c);
}

/* With what the job says in place of what is not said. */
static int role_read(struct reading *r, const struct conf *c, struct event_job_submitted *ret,
		     struct body_source *ret_body)
{
	struct reading own = *r;
	int rc;

	*ret = (struct event_job_submitted){ .name = "",
					     .slice = "",
					     .tasks_min = 1,
					     .tasks_max = 1,
					     .gpus = r->job->gpus,
					     .cpu_milli = r->job->cpu_milli,
					     .memory_mib = r->job->memory_mib,
					     .gpu_part = r->job->gpu_part,
					     .gpu_part_mib = r->job->gpu_part_mib };
	own.job = ret;
	own.body = (struct body_source){ 0 };
	own.role_min = 0;
	own.role_ends = false;
	if (c->type != CONF_MAP)
		return conf_error(r->err, r->file, c,
				  "a role is a map such as {name: worker, tasks: 4}");
	rc = jobfile_read_fields(&own, c, "roles.");
	if (rc >= 0)
		rc = role_finish(&own, c);
	*ret_body = own.body;
	if (!r->body.pod_field)
		r->body.pod_field = own.body.pod_field;
	r->role_ends = own.role_ends;
	return rc;
}

static int role_check(struct reading *r, const struct conf *c, const struct body_source *body,
		      size_t *env, size_t *bytes)
{
	if (!body->command && !body->script && !r->body.command && !r->body.script)
		return conf_error(
			r->err, r->file, c,
			"this role has no command, and the job has none; give one of them");
	*env += body->env ? body->env->count : 0;
	for (size_t i = 0; body->env && i < body->env->count; i++) {
		const struct conf *item = body->env->items[i];

		if (r->body.secrets && conf_find(r->body.secrets, item->key))
			return jobfile_key_error(
				r, item, "%.60s stands in secrets of the job; leave it out here",
				item->key);
		*bytes += strlen(item->key) + strlen(item->text) + 2;
	}
	if (*env > JOBFILE_ENV_MAX || *bytes > JOBFILE_TOTAL_MAX)
		return conf_error(
			r->err, r->file, c,
			"env of the roles has %zu variables and %zu bytes; the limits are %d and %d",
			*env, *bytes, JOBFILE_ENV_MAX, JOBFILE_TOTAL_MAX);
	return 0;
}

static void numbers_put(const struct event_job_submitted *role, bool ends, int64_t *numbers)
{
	numbers[ROLE_TASKS_MIN] = role->tasks_min;
	numbers[ROLE_TASKS_MAX] = role->tasks_max;
	numbers[ROLE_GPUS] = role->gpus;
	numbers[ROLE_CPU_MILLI] = role->cpu_milli;
	numbers[ROLE_MEMORY_MIB] = role->memory_mib;
	numbers[ROLE_ENDS] = ends;
}

int jobfile_roles_finish(struct reading *r)
{
	struct body_source *bodies = arena_new_array(r->arena, struct body_source, ROLES_MAX);
	int64_t *numbers = arena_new_array(r->arena, int64_t, (size_t)ROLES_MAX *ROLE_NUMBERS),
		least = 0, most = 0;
	const char *names[ROLES_MAX], *list = "";
	size_t env = 0, bytes = 0;

	if (!r->roles)
		return 0;
	if (r->tasks)
		return conf_error(r->err, r->file, r->tasks,
				  "tasks are said by each role of the job; leave them out here");
	for (size_t i = 0; i < r->roles->count; i++) {
		const struct conf *c = r->roles->items[i];
		struct event_job_submitted role;
		int rc = role_read(r, c, &role, &bodies[i]);

		if (rc >= 0)
			rc = role_check(r, c, &bodies[i], &env, &bytes);
		if (rc < 0)
			return rc;
		for (size_t k = 0; k < i; k++)
			if (strcmp(names[k], role.name) == 0)
				return conf_error(r->err, r->file, c, "two roles are named \"%s\"",
						  role.name);
		names[i] = role.name;
		list = arena_printf(r->arena, "%s%s%s", list, i ? "," : "", role.name);
		numbers_put(&role, r->role_ends, numbers + i * ROLE_NUMBERS);
		least += role.tasks_min;
		most += role.tasks_max;
	}
	r->job->roles = list;
	r->job->role_numbers = numbers;
	r->job->role_numbers_count = (uint32_t)r->roles->count * ROLE_NUMBERS;
	r->job->tasks_min = least;
	r->job->tasks_max = most;
	r->body.roles = r->role_bodies = bodies;
	r->body.role_count = (uint32_t)r->roles->count;
	return 0;
}

/* Env of the job, and what its role says instead and besides. NULL-terminated. */
const char *const *job_body_role_env(const char *const *env, const struct job_role *role,
				     struct arena *arena)
{
	size_t count = 0, own = 0;
	const char **ret;

	while (env[count])
		count++;
	while (role->env[own])
		own++;
	ret = arena_new_array(arena, const char *, count + own + 1);
	memcpy(ret, env, count * sizeof(*ret));
	for (size_t i = 0; i < own; i++) {
		size_t length = (size_t)(strchr(role->env[i], '=') - role->env[i]) + 1, at = 0;

		while (at < count && strncmp(ret[at], role->env[i], length) != 0)
			at++;
		ret[at] = role->env[i];
		count += at == count;
	}
	return ret;
}
