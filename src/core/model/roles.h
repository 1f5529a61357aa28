/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Roles: unlike tasks in one gang. A wish has up to ROLES_MAX of them, each with its own least and greatest number of tasks and
 * its own GPUs, processors and memory per task; a wish without roles is one of tasks that are all alike.
 *
 * Which role a rank has follows from the wish alone, however wide the job is. First the least of each role, in their order,
 * then what each has beyond it:
 *
 *	server: tasks 1			rank	0	1 2	3
 *	worker: tasks 2..3		role	server	worker	worker
 *				of role	0	0 1	2
 *
 * So a job that runs as narrow as it may has ranks 0 .. tasks_min - 1, and one that grows gets ranks behind them. What is
 * beyond the least goes to the first role until it has its greatest number, then to the next.
 *
 * All functions are pure; what is asked about every task costs one more comparison where there are no roles.
 */
#include "core/model/facts.h"

/* What one task takes of a node. */
struct task_wish {
	uint32_t gpus, cpu_milli, memory_mib;
};

/* The role of the rank, from 0; 0 without roles, the last one beyond tasks_max. */
uint32_t shape_role(const struct shape *shape, uint32_t rank);
/* Number of the rank among those of its role, from 0. */
uint32_t shape_role_rank(const struct shape *shape, uint32_t rank);
/* The other way: the rank of number `at` of the role. */
uint32_t shape_rank_of(const struct shape *shape, uint32_t role, uint32_t at);
struct task_wish role_wish(const struct shape *shape, uint32_t role);
static inline struct task_wish shape_wish(const struct shape *shape, uint32_t rank)
{
	if (__builtin_expect(shape->role_count != 0, 0))
		return role_wish(shape, shape_role(shape, rank));
	return (struct task_wish){ shape->gpus, shape->cpu_milli, shape->memory_mib };
}
/* GPUs, milli-CPUs, MiB of the first `tasks` ranks together. */
int64_t roles_gpus(const struct shape *shape, uint32_t tasks);
int64_t shape_cpu_milli(const struct shape *shape, uint32_t tasks);
int64_t shape_memory_mib(const struct shape *shape, uint32_t tasks);
static inline int64_t shape_gpus(const struct shape *shape, uint32_t tasks)
{
	if (__builtin_expect(shape->role_count != 0, 0))
		return roles_gpus(shape, tasks);
	return (int64_t)shape->gpus * tasks;
}
/* GPUs of these ranks. */
int64_t ranks_gpus(const struct shape *shape, const int64_t *ranks, uint32_t count);
/* How many of the first `tasks` ranks have the role. */
uint32_t shape_role_tasks(const struct shape *shape, uint32_t tasks, uint32_t role);
/* The most of the first `most` ranks that take no more than `have` together; `sum` is one of the three above. */
uint32_t shape_tasks_within(const struct shape *shape,
			    int64_t (*sum)(const struct shape *shape, uint32_t tasks), int64_t have,
			    uint32_t most);
/* The same wish for tasks of one role alone: what is said of the job as a whole stays. What it says of GPUs (model, memory, driver ...)
 * does not concern a role without any. */
void shape_of_role(const struct shape *shape, uint32_t role, struct shape *ret);
/* The same wish for these ranks alone: of each role as many as are among them. */
void shape_of_ranks(const struct shape *shape, const int64_t *ranks, uint32_t count,
		    struct shape *ret);

/* Its tasks run on the nodes of a mask alone, or those of some role do. */
bool shape_is_masked(const struct shape *shape);
/* The next of the masks that it names, each once, those of roles behind its own, the one for several roles last; from *at 0 on. 0 = no further. */
struct name_id shape_mask_next(const struct shape *shape, uint32_t *at);

/* Fills what follows from the roles: sums and largest. */
void shape_roles_sum(struct shape *shape);
bool shape_roles_are_right(const struct shape *shape);

/* Of an attempt whose tasks can be read. GPUs that it holds; of an older one: that its first ranks would hold. */
int64_t roles_held(const struct facts *f, const struct attempt *attempt, const struct shape *shape);
static inline int64_t attempt_gpus(const struct facts *f, const struct attempt *attempt,
				   const struct shape *shape)
{
	if (__builtin_expect(shape->role_count != 0, 0))
		return roles_held(f, attempt, shape);
	return (int64_t)shape->gpus * attempt_width(attempt);
}
/* The first of its tasks that has GPUs; without any, the first. */
const struct task *attempt_gpu_task(const struct facts *f, const struct attempt *attempt);
/* How many ranks of the role hold a place and were not told to leave. */
uint32_t attempt_role_width(const struct facts *f, const struct attempt *attempt,
			    const struct shape *shape, uint32_t role);
/* It has fewer ranks that hold a place than the least; with roles: of some role. */
bool attempt_lacks(const struct facts *f, const struct attempt *attempt, const struct shape *shape);
/* The role that ends the job, when all of its ranks ended well by themselves; ROLES_MAX = none. */
uint32_t roles_done(const struct facts *f, const struct attempt *attempt,
		    const struct shape *shape);
static inline uint32_t attempt_done_role(const struct facts *f, const struct attempt *attempt,
					 const struct shape *shape)
{
	return attempt->exited != attempt->left && shape->role_ends ? roles_done(f, attempt, shape)
								    : ROLES_MAX;
}
