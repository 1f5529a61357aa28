/* SPDX-License-Identifier: Apache-2.0 */
#include "unlike_tasks.h"

void unlike_tasks_add(struct sim_random *random, struct event_job_submitted *job, int64_t *numbers,
		      struct sim_work *work)
{
	static const int64_t runtimes_ms[ROLES_MAX] = { 0, 40000 };
	int64_t *servers = numbers, *workers = numbers + ROLE_NUMBERS;

	if (sim_random_below(random, 5) != 0 || job->gpu_part || job->gpu_part_mib)
		return;
	job->roles = "server,worker";
	servers[ROLE_TASKS_MIN] = 1 + sim_random_below(random, 2);
	servers[ROLE_TASKS_MAX] = servers[ROLE_TASKS_MIN] + sim_random_below(random, 2);
	servers[ROLE_GPUS] = sim_random_below(random, 2);
	servers[ROLE_CPU_MILLI] = (int64_t)sim_random_below(random, 3) * 8000;
	workers[ROLE_TASKS_MIN] = 1 + sim_random_below(random, 3);
	workers[ROLE_TASKS_MAX] = workers[ROLE_TASKS_MIN] + sim_random_below(random, 3);
	workers[ROLE_GPUS] = 1 + sim_random_below(random, 2);
	workers[ROLE_CPU_MILLI] = job->cpu_milli;
	workers[ROLE_ENDS] = sim_random_below(random, 2) == 0;
	job->role_numbers = numbers;
	job->role_numbers_count = 2 * ROLE_NUMBERS;
	job->spread = "";
	job->align = 0;
	job->max_slowdown = 0;
	work->role_runtime_ms = sim_random_below(random, 2) == 0 ? runtimes_ms : NULL;
}
