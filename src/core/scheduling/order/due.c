/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/order/due.h"

#include "core/model/roles.h"

__extension__ typedef __int128 wide;

enum { STEPS = 8 /* of an octave */ };
#define WORK_MOST_MS (INT64_C(1) << 50)

static uint32_t class_of(int64_t work_ms)
{
	uint64_t ms = (uint64_t)(work_ms < WORK_MOST_MS ? work_ms : WORK_MOST_MS) | STEPS;
	uint32_t octave = 63 - (uint32_t)__builtin_clzll(ms);

	return octave * STEPS + ((uint32_t)(ms >> (octave - 3)) & (STEPS - 1));
}

int64_t work_class_floor_ms(uint32_t class)
{
	uint32_t octave = class / STEPS;

	return (int64_t)(STEPS + class % STEPS) << octave >> 3;
}

int64_t job_work_share(const struct facts *facts, const struct job *job)
{
	const struct shape *shape = shape_get(facts, job->shape);
	int64_t share = shape_is_part(shape)
				? (int64_t)shape->gpu_part * shape->tasks_min
				: (int64_t)shape_gpus(shape, shape->tasks_min) * GPU_SHARE;

	return share ? share : GPU_SHARE;
}

static int64_t work_of(int64_t share, int64_t ms)
{
	wide work;

	if (share % GPU_SHARE == 0 && ms < WORK_MOST_MS / (share / GPU_SHARE))
		return ms * (share / GPU_SHARE); /* whole GPUs, mostly: without 128 bits */
	work = (wide)ms * share / GPU_SHARE;
	return work < WORK_MOST_MS ? (int64_t)work : WORK_MOST_MS;
}

bool job_declares_work(const struct job *job)
{
	return job->estimate_ms || job->limit_ms;
}

static int64_t said_rest_ms(const struct job *job, int64_t ran_ms)
{
	return (job->estimate_ms ? job->estimate_ms : job->limit_ms) - job->run_ms - ran_ms;
}

static int64_t unsaid_work_ms(int64_t share, int64_t run_ms)
{
	int64_t work_ms = work_of(share, run_ms);

	return work_ms > WORK_FIRST_MS ? work_ms : WORK_FIRST_MS;
}

int64_t job_work_ms(const struct facts *facts, const struct job *job, int64_t ran_ms)
{
	int64_t rest_ms = said_rest_ms(job, ran_ms), share = job_work_share(facts, job);

	return rest_ms > 0 ? work_of(share, rest_ms) : unsaid_work_ms(share, job->run_ms + ran_ms);
}

uint32_t job_work_class(const struct facts *facts, const struct job *job, int64_t ran_ms)
{
	uint32_t class = class_of(job_work_ms(facts, job, ran_ms));

	return said_rest_ms(job, ran_ms) > 0 ? class : class / STEPS * STEPS;
}

uint32_t work_class_of_run(int64_t share, int64_t run_ms)
{
	return class_of(unsaid_work_ms(share, run_ms)) / STEPS * STEPS;
}

int64_t work_class_from_ms(int64_t share, uint32_t class)
{
	int64_t floor_ms;
	wide run;

	class = (class + STEPS - 1) / STEPS * STEPS;
	if (class <= class_of(WORK_FIRST_MS))
		return INT64_MIN;
	if (class > class_of(WORK_MOST_MS))
		return INT64_MAX;
	floor_ms = work_class_floor_ms(class);
	run = ((wide)floor_ms * GPU_SHARE + share - 1) / share;
	return run < INT64_MAX ? (int64_t)run : INT64_MAX;
}

int64_t work_class_run_ms(int64_t share, uint32_t class)
{
	wide run;

	class = (class + STEPS - 1) / STEPS * STEPS; /* what is not declared is in whole octaves */
	run = (wide)work_class_floor_ms(class) * GPU_SHARE / share + 1;
	return run < INT64_MAX ? (int64_t)run : INT64_MAX;
}

int64_t job_work_reaches_ms(const struct facts *facts, const struct job *job, int64_t ran_ms,
			    uint32_t class)
{
	int64_t rest_ms = said_rest_ms(job, ran_ms);
	wide needed;

	if (job_work_class(facts, job, ran_ms) >= class || (rest_ms > 0 && !job->estimate_ms))
		return 0;
	needed = (wide)work_class_run_ms(job_work_share(facts, job), class) - job->run_ms - ran_ms;
	if (needed < rest_ms) /* until its estimate is over it needs less and less */
		needed = rest_ms;
	return needed < 1 ? 1 : needed < WORK_MOST_MS ? (int64_t)needed : 0;
}

int64_t work_due_ms(const struct facts *facts, int64_t submitted_ms, uint32_t class)
{
	wide due = (wide)submitted_ms + (wide)work_class_floor_ms(class) * facts->policy.patience;

	if (!facts->policy.patience)
		return 0;
	return due < INT64_MAX ? (int64_t)due : INT64_MAX;
}
