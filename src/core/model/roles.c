/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/roles.h"

#include <string.h>

uint32_t shape_role(const struct shape *shape, uint32_t rank)
{
	for (uint32_t i = 0; i < shape->role_count; i++) {
		if (rank < shape->role_min[i])
			return i;
		rank -= shape->role_min[i];
	}
	for (uint32_t i = 0; i < shape->role_count; i++) {
		uint32_t more = shape->role_max[i] - shape->role_min[i];

		if (rank < more)
			return i;
		rank -= more;
	}
	return shape->role_count ? shape->role_count - 1 : 0;
}

/* The first rank of the role: of its least, or of what it has beyond. */
static uint32_t role_first(const struct shape *shape, uint32_t role, bool beyond)
{
	uint32_t first = beyond ? shape->tasks_min : 0;

	for (uint32_t i = 0; i < role; i++)
		first += beyond ? shape->role_max[i] - shape->role_min[i] : shape->role_min[i];
	return first;
}

uint32_t shape_role_rank(const struct shape *shape, uint32_t rank)
{
	uint32_t role;

	if (!shape->role_count)
		return rank;
	role = shape_role(shape, rank);
	if (rank < shape->tasks_min)
		return rank - role_first(shape, role, false);
	return shape->role_min[role] + rank - role_first(shape, role, true);
}

uint32_t shape_rank_of(const struct shape *shape, uint32_t role, uint32_t at)
{
	if (!shape->role_count)
		return at;
	if (at < shape->role_min[role])
		return role_first(shape, role, false) + at;
	return role_first(shape, role, true) + at - shape->role_min[role];
}

struct task_wish role_wish(const struct shape *shape, uint32_t role)
{
	return (struct task_wish){ shape->role_gpus[role], shape->role_cpu_milli[role],
				   shape->role_memory_mib[role] };
}

uint32_t shape_role_tasks(const struct shape *shape, uint32_t tasks, uint32_t role)
{
	uint32_t count = 0;

	if (!shape->role_count)
		return tasks;
	for (int beyond = 0; beyond < 2; beyond++) {
		uint32_t first = role_first(shape, role, beyond),
			 span = beyond ? shape->role_max[role] - shape->role_min[role]
				       : shape->role_min[role];

		if (tasks > first)
			count += tasks - first < span ? tasks - first : span;
	}
	return count;
}

static int64_t sum_of(const struct shape *shape, const uint32_t *each, uint32_t tasks)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < shape->role_count; i++)
		sum += (int64_t)each[i] * shape_role_tasks(shape, tasks, i);
	return sum;
}

int64_t roles_gpus(const struct shape *shape, uint32_t tasks)
{
	return sum_of(shape, shape->role_gpus, tasks);
}

int64_t shape_cpu_milli(const struct shape *shape, uint32_t tasks)
{
	return shape->role_count ? sum_of(shape, shape->role_cpu_milli, tasks)
				 : (int64_t)shape->cpu_milli * tasks;
}

int64_t shape_memory_mib(const struct shape *shape, uint32_t tasks)
{
	return shape->role_count ? sum_of(shape, shape->role_memory_mib, tasks)
				 : (int64_t)shape->memory_mib * tasks;
}

int64_t ranks_gpus(const struct shape *shape, const int64_t *ranks, uint32_t count)
{
	int64_t sum = 0;

	if (!shape->role_count)
		return (int64_t)shape->gpus * count;
	for (uint32_t i = 0; i < count; i++)
		sum += shape_wish(shape, (uint32_t)ranks[i]).gpus;
	return sum;
}

uint32_t shape_tasks_within(const struct shape *shape,
			    int64_t (*sum)(const struct shape *shape, uint32_t tasks), int64_t have,
			    uint32_t most)
{
	uint32_t first = 0, end = most;

	while (first < end) {
		uint32_t middle = end - (end - first) / 2;

		if (sum(shape, middle) <= have)
			first = middle;
		else
			end = middle - 1;
	}
	return first;
}

void shape_of_role(const struct shape *shape, uint32_t role, struct shape *ret)
{
	struct task_wish wish = role_wish(shape, role);

	*ret = *shape;
	ret->tasks_min = shape->role_min[role];
	ret->tasks_max = shape->role_max[role];
	ret->gpus = wish.gpus;
	ret->cpu_milli = wish.cpu_milli;
	ret->memory_mib = wish.memory_mib;
	ret->role_count = 0;
	ret->mask = shape->role_mask[role].v ? shape->role_mask[role] : shape->mask;
	if (wish.gpus)
		return;
	memset(ret->models, 0, sizeof(ret->models));
	memset(ret->throughput, 0, sizeof(ret->throughput));
	ret->gpu_memory_mib = ret->min_driver = ret->min_cuda = ret->min_capability =
		ret->min_throughput = 0;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

void shape_of_ranks(const struct shape *shape, const int64_t *ranks, uint32_t count,
		    struct shape *ret)
{
	struct name_id masks[ROLES_MAX] = { { 0 } };

	*ret = *shape;
	if (!shape->role_count) {
		ret->tasks_min = ret->tasks_max = count;
		return;
	}
	ret->role_count = 0;
	for (uint32_t role = 0; role < shape->role_count; role++) {
		uint32_t tasks = 0, at = ret->role_count;

		for (uint32_t i = 0; i < count; i++)
			tasks += shape_role(shape, (uint32_t)ranks[i]) == role;
		if (!tasks)
			continue;
		ret->role[at] = shape->role[role];
		ret->role_min[at] = ret->role_max[at] = tasks;
		ret->role_gpus[at] = shape->role_gpus[role];
		ret->role_cpu_milli[at] = shape->role_cpu_milli[role];
		ret->role_memory_mib[at] = shape->role_memory_mib[role];
		masks[at] = shape->role_mask[role];
		ret->role_count++;
	}
	memcpy(ret->role_mask, masks, sizeof(masks));
	ret->role_ends = 0;
	shape_roles_sum(ret);
}

static struct name_id mask_at(const struct shape *shape, uint32_t at)
{
	return at == 0 ? shape->mask : at <= ROLES_MAX ? shape->role_mask[at - 1] : shape->together;
}

struct name_id shape_mask_next(const struct shape *shape, uint32_t *at)
{
	while (*at < ROLES_MAX + 2) {
		const struct name_id mask = mask_at(shape, (*at)++);
		uint32_t before = 0;

		while (before + 1 < *at && !name_same(mask_at(shape, before), mask))
			before++;
		if (mask.v && before + 1 == *at)
			return mask;
	}
	return (struct name_id){ 0 };
}

bool shape_is_masked(const struct shape *shape)
{
	uint32_t at = 0;

	return shape_mask_next(shape, &at).v != 0;
}

void shape_roles_sum(struct shape *shape)
{
	shape->tasks_min = shape->tasks_max = shape->gpus = shape->cpu_milli = shape->memory_mib =
		0;
	for (uint32_t i = 0; i < shape->role_count; i++) {
		shape->tasks_min += shape->role_min[i];
		shape->tasks_max += shape->role_max[i];
		shape->gpus = larger(shape->gpus, shape->role_gpus[i]);
		shape->cpu_milli = larger(shape->cpu_milli, shape->role_cpu_milli[i]);
		shape->memory_mib = larger(shape->memory_mib, shape->role_memory_mib[i]);
	}
}

/* One for some of the roles that there are, one for several of these. */
static bool masks_are_right(const struct shape *shape)
{
	uint32_t masked = 0;

	for (uint32_t i = 0; i < ROLES_MAX; i++) {
		if (shape->role_mask[i].v && i >= shape->role_count)
			return false;
		masked += shape->role_mask[i].v != 0;
	}
	return masked > 1 || !shape->together.v;
}

bool shape_roles_are_right(const struct shape *shape)
{
	struct shape sums = *shape;

	if (!masks_are_right(shape))
		return false;
	if (!shape->role_count)
		return true;
	if (shape->role_count > ROLES_MAX || shape_is_part(shape) || shape->apart ||
	    shape->role_ends >> shape->role_count)
		return false;
	for (uint32_t i = 0; i < shape->role_count; i++) {
		if (!shape->role[i].v || !shape->role_min[i] ||
		    shape->role_max[i] < shape->role_min[i] || shape->role_max[i] > TASKS_MAX ||
		    shape->role_gpus[i] > NODE_GPUS_MAX)
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (name_same(shape->role[i], shape->role[k]))
				return false;
	}
	shape_roles_sum(&sums);
	return sums.tasks_min == shape->tasks_min && sums.tasks_max == shape->tasks_max &&
	       sums.gpus == shape->gpus && sums.cpu_milli == shape->cpu_milli &&
	       sums.memory_mib == shape->memory_mib;
}

/* --- attempts ------------------------------------------------------------------------------------------ */

static const struct task *task_at(const struct facts *f, const struct attempt *attempt,
				  uint32_t rank)
{
	return table_get(&f->tasks, attempt->first_task + rank);
}

int64_t roles_held(const struct facts *f, const struct attempt *attempt, const struct shape *shape)
{
	int64_t sum = 0;

	if (!attempt->first_task)
		return shape_gpus(shape, attempt_width(attempt));
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		if (task_holds(task_at(f, attempt, rank)))
			sum += shape_wish(shape, rank).gpus;
	return sum;
}

const struct task *attempt_gpu_task(const struct facts *f, const struct attempt *attempt)
{
	uint32_t rank = 0;

	while (rank + 1 < attempt->tasks && !task_at(f, attempt, rank)->gpu_mask)
		rank++;
	return task_at(f, attempt, task_at(f, attempt, rank)->gpu_mask ? rank : 0);
}

uint32_t attempt_role_width(const struct facts *f, const struct attempt *attempt,
			    const struct shape *shape, uint32_t role)
{
	uint32_t width = 0;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_at(f, attempt, rank);

		width += task_holds(task) && !task->leaving && shape_role(shape, rank) == role;
	}
	return width;
}

bool attempt_lacks(const struct facts *f, const struct attempt *attempt, const struct shape *shape)
{
	uint32_t width[ROLES_MAX] = { 0 };

	if (job_get(f, attempt->job)->external) /* what is missing is made anew by others */
		return false;
	if (!shape->role_count)
		return attempt_width(attempt) < shape->tasks_min;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		width[shape_role(shape, rank)] += task_holds(task_at(f, attempt, rank));
	for (uint32_t i = 0; i < shape->role_count; i++)
		if (width[i] < shape->role_min[i])
			return true;
	return false;
}

uint32_t roles_done(const struct facts *f, const struct attempt *attempt, const struct shape *shape)
{
	uint32_t done = shape->role_ends, width[ROLES_MAX] = { 0 };

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_at(f, attempt, rank);
		uint32_t role = shape_role(shape, rank);

		if (!task_holds(task) || task->leaving)
			continue;
		width[role]++;
		if (task->state != TASK_EXITED || task->cause != CAUSE_EXIT || task->code ||
		    task->never_ran)
			done &= ~(UINT32_C(1) << role);
	}
	for (uint32_t i = 0; i < shape->role_count; i++)
		if (done >> i & 1 && width[i] >= shape->role_min[i])
			return i;
	return ROLES_MAX;
}
