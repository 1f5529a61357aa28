/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's part for roles: groups of unlike tasks in one job, `job/role` in what is expected. */
#include <string.h>

#include "base/check.h"
#include "base/conf.h"
#include "sim/reader.h"

static int role_names(struct reader *r, const struct conf *c, const char *name,
		      struct scenario_roles *roles)
{
	uint32_t at = roles->count;

	for (uint32_t i = 0; i < at; i++)
		if (strcmp(roles->name[i], name) == 0)
			return conf_error(r->err, r->file, c, "two roles are named \"%s\"", name);
	roles->name[at] = name;
	roles->names = arena_printf(r->arena, "%s%s%s", roles->names, at ? "," : "", name);
	return 0;
}

/* What is not said of a role is what is said of the job. */
static int role_numbers(struct reader *r, const struct conf *c, const struct scenario_job *job,
			struct scenario_roles *roles)
{
	uint32_t at = roles->count, tasks = 1, least = 0, gpus = job->gpus;
	int64_t cpus = job->cpu_milli / 1000, ram = job->ram_mib;
	bool ends = false;
	int rc = reader_u32(r, c, "tasks", 1, TASKS_MAX, &tasks);

	if (rc == 0)
		rc = reader_u32(r, c, "min", 1, TASKS_MAX, &least);
	if (rc == 0)
		rc = reader_u32(r, c, "gpus", 0, NODE_GPUS_MAX, &gpus);
	if (rc == 0)
		rc = reader_int(r, c, "cpus", 0, 100000, &cpus);
	if (rc == 0)
		rc = reader_size(r, c, "ram", &ram);
	if (rc == 0)
		rc = reader_bool(r, c, "ends_job", &ends);
	if (rc == 0)
		rc = reader_duration(r, c, "runtime", "forever", SCENARIO_FOREVER,
				     &roles->runtime_ms[at]);
	if (rc == 0 && least > tasks)
		return conf_error(r->err, r->file, c, "min %u is more than tasks %u", least, tasks);
	roles->numbers[at][ROLE_TASKS_MIN] = least ? least : tasks;
	roles->numbers[at][ROLE_TASKS_MAX] = tasks;
	roles->numbers[at][ROLE_GPUS] = gpus;
	roles->numbers[at][ROLE_CPU_MILLI] = cpus * 1000;
	roles->numbers[at][ROLE_MEMORY_MIB] = ram;
	roles->numbers[at][ROLE_ENDS] = ends;
	return rc;
}

/* Without it as the job's; `together` of the job is for roles that say one. */
static int role_mask(struct reader *r, const struct conf *c, struct scenario_roles *roles)
{
	const char *mask = "";
	int rc = reader_text(r, c, "mask", &mask);

	roles->masks =
		arena_printf(r->arena, "%s%s%s", roles->masks, roles->count ? "," : "", mask);
	return rc;
}

static int read_role(struct reader *r, const struct conf *c, const struct scenario_job *job,
		     struct scenario_roles *roles)
{
	static const char *const known[] = { "name", "tasks",   "min",      "gpus", "cpus",
					     "ram",  "runtime", "ends_job", "mask" };
	const char *name = NULL;
	int rc = reader_map(r, c, "role", known, ARRAY_SIZE(known));

	if (rc == 0)
		rc = reader_text(r, c, "name", &name);
	if (rc == 0 && !name)
		return conf_error(r->err, r->file, c, "a role needs a name");
	if (rc == 0)
		rc = role_names(r, c, name, roles);
	if (rc == 0)
		rc = role_mask(r, c, roles);
	if (rc == 0)
		rc = role_numbers(r, c, job, roles);
	roles->count++;
	return rc;
}

/* For the place of ranks that run already; names are of no use there. */
static void roles_shape(struct scenario_roles *roles)
{
	struct shape *shape = &roles->shape;

	shape->role_count = roles->count;
	for (uint32_t i = 0; i < roles->count; i++) {
		const int64_t *of = roles->numbers[i];

		shape->role_min[i] = (uint32_t)of[ROLE_TASKS_MIN];
		shape->role_max[i] = (uint32_t)of[ROLE_TASKS_MAX];
		shape->role_gpus[i] = (uint32_t)of[ROLE_GPUS];
		shape->role_cpu_milli[i] = (uint32_t)of[ROLE_CPU_MILLI];
		shape->role_memory_mib[i] = (uint32_t)of[ROLE_MEMORY_MIB];
	}
	shape_roles_sum(shape);
}

int scenario_read_roles(struct reader *r, const struct conf *item, struct scenario_job *job)
{
	const struct conf *c = conf_find(item, "roles");
	struct scenario_roles *roles;
	int rc;

	if (!c)
		return 0;
	rc = reader_list(r, c, "roles", ROLES_MAX);
	if (rc == 0 && c->count == 0)
		return conf_error(r->err, r->file, c,
				  "roles is empty; leave it out for tasks that are alike");
	if (rc == 0 && (conf_find(item, "tasks") || job->gpu_part || job->gpu_part_mib))
		return conf_error(r->err, r->file, c,
				  "roles stand instead of tasks, and take whole GPUs");
	roles = arena_new(r->arena, struct scenario_roles);
	roles->names = roles->masks = roles->together = "";
	if (rc == 0)
		rc = reader_text(r, item, "together", &roles->together);
	for (size_t i = 0; rc == 0 && i < c->count; i++)
		rc = read_role(r, c->items[i], job, roles);
	if (rc < 0)
		return rc;
	roles_shape(roles);
	if (roles->shape.tasks_max > TASKS_MAX)
		return conf_error(r->err, r->file, c, "the roles have %u tasks; the limit is %d",
				  roles->shape.tasks_max, TASKS_MAX);
	job->roles = roles;
	job->tasks_min = roles->shape.tasks_min;
	job->tasks_max = roles->shape.tasks_max;
	return 0;
}

uint32_t scenario_task_gpus(const struct scenario_job *job, uint32_t task)
{
	return job->roles ? shape_wish(&job->roles->shape, task).gpus : job->gpus;
}

uint32_t scenario_role_find(const struct scenario_job *job, const char *role)
{
	for (uint32_t i = 0; job->roles && i < job->roles->count; i++)
		if (strcmp(job->roles->name[i], role) == 0)
			return i;
	return ROLES_MAX;
}

int scenario_check_role(struct reader *r, const struct conf *c, const char *name, const char *role)
{
	const struct scenario_job *job = scenario_job_find(r->s, name);

	if (scenario_role_find(job, role) < ROLES_MAX)
		return 0;
	if (!job->roles)
		return conf_error(r->err, r->file, c, "job \"%s\" has no roles", name);
	return reader_unknown(r, c, "role", role, job->roles->name, job->roles->count);
}
