/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A workload: jobs with the time of their submission and what they would take alone. Text, one job a line, columns by name:
 *
 *	#fairlead-workload 1
 *	job,submit_s,run_s,gpus,user
 *	train-7,0,3600,8,ann
 *	eval-1,12.5,60,0.5,bob
 *
 * docs/workload-format.md has all columns. Fields hold no comma and no quote. A column that is not known is refused by name.
 *
 * A workload and its texts live in memory of their own: workload_deinit.
 */
#include <stdint.h>
#include "base/err.h"

enum { WORKLOAD_JOBS_MAX = 20000000, WORKLOAD_TASKS_MAX = 100000, WORKLOAD_MODELS_MAX = 8 };
#define WORKLOAD_TIME_MAX_MS (INT64_C(20) * 366 * 86400 * 1000)

/* What a job says of the places that it takes; "" = nothing. Lists are comma separated. Plain policies do not look at it. */
struct workload_wishes {
	const char *slice; /* of a GPU (MIG), by its name, or "fit" */
	const char *require, *prefer, *spread; /* topology levels */
	const char *regions, *labels, *tolerates;
	const char *min_driver, *min_cuda;
	const char *window; /* a calendar (core/scheduling/queues/calendar.h) */
};

struct workload_job {
	const char *name, *queue, *user,
		*models; /* models: accepted ones, comma separated; "" = any */
	int64_t submit_ms; /* since the workload's start */
	int64_t run_ms; /* alone, from its first command to its last, at least 1 */
	int64_t limit_ms, estimate_ms,
		deadline_ms; /* 0 = not said; the deadline counts from the submission */
	int64_t gpu_memory_mib, cpu_milli, memory_mib; /* of a task; 0 = none asked */
	uint32_t tasks, gpus; /* whole GPUs of a task, 1 for a part */
	uint32_t gpu_part; /* in 1/63000; 0 = whole ones */
	uint32_t rest_gpus; /* of one task more; 0 = there is none */
	uint32_t restart_ms; /* what a start from a checkpoint costs */
	int64_t checkpoint_every_ms; /* of its running; 0 = it saves when it is told to go, and else not */
	uint16_t speeds
		[WORKLOAD_MODELS_MAX]; /* by model, in thousandths of what run_ms says; [0] 0 = all alike */
	int32_t priority;
	int64_t gpu_part_mib; /* its part is so much memory of a GPU; gpu_part says what share that is taken for. 0 = not said */
	struct workload_wishes *wishes; /* NULL = none */
	uint8_t capacity; /* which nodes it may use; 0 = not said */
	uint8_t kind, tier; /* enums of core/model/facts.h */
	uint8_t checkpoints; /* it can be stopped and goes on where it was */
	uint32_t line;
};

struct workload {
	const char *path;
	char *text;
	struct workload_job *jobs; /* by submission, equal ones by line */
	uint32_t count;
};

int workload_read(const char *path, struct workload *ret, struct err *err) MUST_CHECK;
/* The same from a text, which is changed and must live as long; `path` for messages. */
int workload_parse(const char *path, char *text, struct workload *ret, struct err *err) MUST_CHECK;
void workload_deinit(struct workload *workload); /* takes a zeroed one too */
extern const struct workload_wishes workload_wishes_none;
/* Those of the job, "" each if it has none yet; workload_deinit frees them. */
struct workload_wishes *workload_wishes_of(struct workload_job *job);
/* GPUs of all its tasks, in 1/63000. */
int64_t workload_share(const struct workload_job *job);
/* With that of the rest. */
static inline uint32_t workload_tasks(const struct workload_job *job)
{
	return job->tasks + (job->rest_gpus > 0);
}
/* What takes so long alone: on GPUs that do so many thousandths, where the network makes it longer by such a slowdown (thousandths, at
 * least 1000); and what of it is done in `ms` there. Times of up to WORKLOAD_TIME_MAX_MS. */
static inline int64_t workload_ms_at(int64_t ms, uint32_t speed, uint32_t slowdown)
{
	return ms * slowdown / speed;
}
static inline int64_t workload_done_ms(int64_t ms, uint32_t speed, uint32_t slowdown)
{
	return ms * speed / slowdown;
}
