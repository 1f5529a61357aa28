/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tally.h"

#include <stdlib.h>
#include <string.h>
#include "base/check.h"

static void gpus_take(struct tally *tally, const struct facts *f, uint32_t id,
		      const struct attempt *attempt)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		if (!task || !task->node.v || !task_holds(task))
			continue;
		for (uint32_t mask = task->gpu_mask; mask; mask &= mask - 1)
			tally->gpu_job[(task->node.v - 1) * NODE_GPUS_MAX +
				       (uint32_t)__builtin_ctz(mask)] = id;
	}
}

void tally_init(struct tally *tally, const struct facts *f)
{
	memset(tally, 0, sizeof *tally);
	tally->node_count = f->nodes.count;
	tally->queues = calloc(f->queues.count + 1, sizeof *tally->queues);
	tally->gpu_job = calloc((size_t)f->nodes.count * NODE_GPUS_MAX + 1, sizeof *tally->gpu_job);
	CHECK(tally->queues && tally->gpu_job);
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });
		struct tally_queue *queue;

		if (!job->submitted_ms)
			continue;
		if (job->state < JOB_STATES)
			tally->jobs[job->state]++;
		if (!job->queue.v || job->queue.v > f->queues.count)
			continue;
		queue = &tally->queues[job->queue.v - 1];
		if (job_is_waiting(job))
			queue->waiting++;
		if (!job_is_live(job))
			continue;
		queue->running++;
		queue->gpus += job_gpus_held(f, job);
		gpus_take(tally, f, id, attempt_get(f, job->attempt));
	}
}

void tally_deinit(struct tally *tally)
{
	free(tally->queues);
	free(tally->gpu_job);
}

struct gpu_count tally_node(const struct tally *tally, const struct facts *f, struct node_id id)
{
	const struct node *node = node_get(f, id);
	struct gpu_count count = { .total = node->gpu_count };

	for (uint32_t i = 0; i < node->gpu_count; i++)
		if (tally->gpu_job[(id.v - 1) * NODE_GPUS_MAX + i])
			count.allocated++;
		else if (node->state != NODE_READY || (node->set_aside_mask >> i & 1))
			count.unusable++;
		else
			count.free++;
	return count;
}

struct gpu_count tally_all(const struct tally *tally, const struct facts *f)
{
	struct gpu_count all = { 0 };

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		struct gpu_count one;

		if (node_get(f, (struct node_id){ id })->state == NODE_GONE)
			continue;
		one = tally_node(tally, f, (struct node_id){ id });
		all.total += one.total;
		all.allocated += one.allocated;
		all.free += one.free;
		all.unusable += one.unusable;
	}
	return all;
}

const struct attempt *job_newest(const struct facts *f, const struct job *job,
				 struct attempt_id *ret)
{
	*ret = job_is_live(job) ? job->attempt : job->last_attempt;
	return ret->v ? attempt_get(f, *ret) : NULL;
}

uint32_t job_gpus_held(const struct facts *f, const struct job *job)
{
	return job_is_live(job)
		       ? attempt_get(f, job->attempt)->tasks * shape_get(f, job->shape)->gpus
		       : 0;
}

bool attempt_simulated(const struct facts *f, const struct attempt *attempt)
{
	const struct task *task = attempt && attempt->tasks ? task_get(f, attempt, 0) : NULL;

	return task && task->node.v && node_get(f, task->node)->simulated;
}

bool cluster_simulated(const struct facts *f)
{
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		if (node->name.v && node->state != NODE_GONE)
			return node->simulated;
	}
	return false;
}

bool job_simulated(const struct facts *f, const struct job *job)
{
	struct attempt_id newest;
	const struct attempt *attempt = job_newest(f, job, &newest);

	return attempt ? attempt_simulated(f, attempt) : cluster_simulated(f);
}
