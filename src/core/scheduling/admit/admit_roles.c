/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of a submission: checked, and completed so that the event says of each role what holds. */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/model/apply.h"
#include "core/model/roles.h"
#include "core/scheduling/admit/admit.h"

static const struct {
	const char *what;
	int64_t min, max;
} role_fields[ROLE_NUMBERS] = {
	[ROLE_TASKS_MIN] = { "the number of tasks", 1, TASKS_MAX },
	[ROLE_TASKS_MAX] = { "the greatest number of tasks", 1, TASKS_MAX },
	[ROLE_GPUS] = { "the number of GPUs per task", 0, NODE_GPUS_MAX },
	[ROLE_CPU_MILLI] = { "the processors of a task in thousandths", 0, INT32_MAX },
	[ROLE_MEMORY_MIB] = { "the memory of a task in MiB", 0, INT32_MAX },
	[ROLE_ENDS] = { "ends_job", 0, 1 },
};

static int role_check(const struct admission *a, const char *name, const int64_t *numbers)
{
	for (int i = 0; i < ROLE_NUMBERS; i++)
		if (admit_range(
			    a, arena_printf(a->arena, "role \"%s\": %s", name, role_fields[i].what),
			    numbers[i], role_fields[i].min, role_fields[i].max) < 0)
			return -(int)ERR_INVALID;
	if (numbers[ROLE_TASKS_MAX] < numbers[ROLE_TASKS_MIN])
		return err_set(
			a->err, ERR_INVALID,
			"role \"%s\": the greatest number of tasks %lld is less than the least %lld",
			name, (long long)numbers[ROLE_TASKS_MAX],
			(long long)numbers[ROLE_TASKS_MIN]);
	return 0;
}

/* All numbers of all roles, with those that follow where none is said. */
static int numbers_complete(const struct admission *a, struct event_job_submitted *e,
			    uint32_t roles)
{
	int64_t *list = arena_new_array(a->arena, int64_t, (size_t)roles *ROLE_NUMBERS);

	if (e->role_numbers_count > roles * ROLE_NUMBERS)
		return err_set(a->err, ERR_INVALID, "roles: %u numbers are given for %u roles",
			       e->role_numbers_count, roles);
	for (uint32_t i = 0; i < e->role_numbers_count; i++)
		list[i] = e->role_numbers[i];
	for (uint32_t i = 0; i < roles; i++) {
		int64_t *of = list + (size_t)i * ROLE_NUMBERS;

		of[ROLE_TASKS_MIN] = of[ROLE_TASKS_MIN] ? of[ROLE_TASKS_MIN] : 1;
		of[ROLE_TASKS_MAX] = of[ROLE_TASKS_MAX] ? of[ROLE_TASKS_MAX] : of[ROLE_TASKS_MIN];
	}
	e->role_numbers = list;
	e->role_numbers_count = roles * ROLE_NUMBERS;
	return 0;
}

/* A role's hosts are told to the tasks in a variable: its name in capitals, with _ for what is no letter or digit. */
static void variable_of(const char *role, char ret[NAME_MAX_BYTES + 1])
{
	size_t i = 0;

	for (; role[i]; i++) {
		char c = role[i];

		if (c >= 'a' && c <= 'z')
			c = (char)(c - 'a' + 'A');
		ret[i] = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
	}
	ret[i] = '\0';
}

static int names_compare(const struct admission *a, const char *one, const char *other)
{
	char variable[NAME_MAX_BYTES + 1], same[NAME_MAX_BYTES + 1];

	if (strcmp(one, other) == 0)
		return err_set(a->err, ERR_INVALID, "roles: two of them have the name \"%s\"", one);
	variable_of(one, variable);
	variable_of(other, same);
	if (strcmp(variable, same) != 0)
		return 0;
	return err_set(
		a->err, ERR_INVALID,
		"roles: the hosts of \"%s\" and of \"%s\" would both be FAIRLEAD_HOSTS_%s; call one of them otherwise",
		other, one, variable);
}

static int names_read(const struct admission *a, const struct event_job_submitted *e,
		      char (*ret)[NAME_MAX_BYTES + 1])
{
	const char *list = e->roles;
	int roles = admit_names(a, "role", e->roles, ROLES_MAX, false);

	for (int i = 0; i < roles; i++) {
		(void)list_next(&list, ret[i]);
		for (int k = 0; k < i; k++)
			if (names_compare(a, ret[i], ret[k]) < 0)
				return -(int)ERR_INVALID;
	}
	return roles;
}

/* What makes no sense with roles, by name. */
static int combination_check(const struct admission *a, const struct event_job_submitted *e)
{
	if (e->gpu_part || e->gpu_part_mib)
		return err_set(
			a->err, ERR_INVALID,
			"roles: each role says how many whole GPUs a task takes; a part of a GPU is for jobs "
			"without roles");
	if (*e->spread)
		return err_set(
			a->err, ERR_INVALID,
			"roles: spread is for jobs whose tasks are all alike; leave one of both out");
	if (strcmp(e->require, "nvlink") == 0)
		return err_set(
			a->err, ERR_INVALID,
			"roles: unlike tasks can't be required on one NVLink island; require node, or a "
			"level above it");
	return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The fields for all tasks: as apply has them. */
static int sums_make(const struct admission *a, struct event_job_submitted *e)
{
	int64_t least = 0, most = 0;

	e->gpus = e->cpu_milli = e->memory_mib = 0;
	for (uint32_t i = 0; i < e->role_numbers_count; i += ROLE_NUMBERS) {
		const int64_t *of = e->role_numbers + i;

		least += of[ROLE_TASKS_MIN];
		most += of[ROLE_TASKS_MAX];
		e->gpus = larger(e->gpus, of[ROLE_GPUS]);
		e->cpu_milli = larger(e->cpu_milli, of[ROLE_CPU_MILLI]);
		e->memory_mib = larger(e->memory_mib, of[ROLE_MEMORY_MIB]);
	}
	e->tasks_min = least;
	e->tasks_max = most;
	return admit_range(a, "the number of tasks of all roles together", most, 1, TASKS_MAX);
}

/* It is that of the role with the most GPUs. */
static int slowdown_check(const struct admission *a, const struct event_job_submitted *e)
{
	int64_t most = 0;

	for (uint32_t i = 0; i < e->role_numbers_count; i += ROLE_NUMBERS)
		most = larger(most,
			      e->role_numbers[i + ROLE_TASKS_MAX] * e->role_numbers[i + ROLE_GPUS]);
	if (!e->max_slowdown || most > 1)
		return 0;
	return err_set(
		a->err, ERR_INVALID,
		"topology.max_slowdown is about the way between GPUs: no role of this job has two");
}

int admit_roles(const struct admission *a, struct event_job_submitted *e)
{
	char names[ROLES_MAX][NAME_MAX_BYTES + 1];
	int roles = names_read(a, e, names), rc;

	if (roles == 0 && (*e->role_masks || *e->together))
		return err_set(a->err, ERR_INVALID, "masks of roles are given, and no roles");
	if (roles <= 0) {
		e->role_numbers_count = 0;
		return roles;
	}
	rc = combination_check(a, e);
	if (rc == 0)
		rc = admit_names(a, "mask", e->role_masks, roles, true);
	if (rc < 0)
		return rc;
	rc = numbers_complete(a, e, (uint32_t)roles);
	for (int i = 0; rc == 0 && i < roles; i++)
		rc = role_check(a, names[i], e->role_numbers + (size_t)i * ROLE_NUMBERS);
	if (rc == 0)
		rc = slowdown_check(a, e);
	return rc == 0 ? sums_make(a, e) : rc;
}

int64_t submission_gpus(const struct event_job_submitted *e)
{
	int64_t gpus = 0;

	if (!*e->roles)
		return e->tasks_min * e->gpus;
	for (uint32_t i = 0; i < e->role_numbers_count; i += ROLE_NUMBERS)
		gpus += e->role_numbers[i + ROLE_TASKS_MIN] * e->role_numbers[i + ROLE_GPUS];
	return gpus;
}
