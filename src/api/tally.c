/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tally.h"

#include <stdlib.h>
#include <string.h>
#include "base/check.h"

/* At the end of its GPU's chain. */
static void part_take(struct tally *tally, uint32_t row, uint32_t id, const struct task *task)
{
	uint32_t *link = &tally->gpu_part[row];

	if (tally->part_count == tally->part_room) {
		tally->part_room = tally->part_room ? 2 * tally->part_room : 64;
		tally->parts = realloc(tally->parts, tally->part_room * sizeof *tally->parts);
		CHECK(tally->parts);
	}
	while (*link)
		link = &tally->parts[*link - 1].next;
	tally->parts[tally->part_count++] = (struct tally_part){
		.job = id, .share = task->gpu_part, .mib = task->gpu_part_mib, .slice = task->slice
	};
	*link = tally->part_count;
}

static void gpus_take(struct tally *tally, const struct facts *f, uint32_t id,
		      const struct attempt *attempt)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		if (!task || !task->node.v || !task_holds(task))
			continue;
		for (uint32_t mask = task->gpu_mask; mask; mask &= mask - 1) {
			const uint32_t row =
				(task->node.v - 1) * NODE_GPUS_MAX + (uint32_t)__builtin_ctz(mask);

			if (!tally->gpu_job[row])
				tally->gpu_job[row] = id;
			if (task->gpu_part)
				part_take(tally, row, id, task);
		}
	}
}

void tally_init(struct tally *tally, const struct facts *f)
{
	memset(tally, 0, sizeof *tally);
	tally->node_count = f->nodes.count;
	tally->queues = calloc(f->queues.count + 1, sizeof *tally->queues);
	tally->gpu_job = calloc((size_t)f->nodes.count * NODE_GPUS_MAX + 1, sizeof *tally->gpu_job);
	tally->gpu_part =
		calloc((size_t)f->nodes.count * NODE_GPUS_MAX + 1, sizeof *tally->gpu_part);
	CHECK(tally->queues && tally->gpu_job && tally->gpu_part);
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
		queue->share += job_share_held(f, job);
		gpus_take(tally, f, id, attempt_get(f, job->attempt));
	}
}

void tally_deinit(struct tally *tally)
{
	free(tally->queues);
	free(tally->gpu_job);
	free(tally->gpu_part);
	free(tally->parts);
}

struct gpu_part tally_open(const struct tally *tally, const struct facts *f, struct node_id id,
			   uint32_t index)
{
	const struct node *node = node_get(f, id);
	const uint32_t row = (id.v - 1) * NODE_GPUS_MAX + index;
	uint64_t share = 0, mib = 0;

	if (node->state != NODE_READY || node->set_aside_mask >> index & 1)
		return (struct gpu_part){ 0, 0 };
	if ((tally->gpu_job[row] && !tally->gpu_part[row]) || node->layout[index])
		return (struct gpu_part){ 0, 0 };
	for (uint32_t at = tally->gpu_part[row]; at; at = tally->parts[at - 1].next) {
		share += tally->parts[at - 1].share;
		mib += tally->parts[at - 1].mib;
	}
	return (struct gpu_part){ share < GPU_SHARE ? (uint32_t)(GPU_SHARE - share) : 0,
				  mib < node->gpu_memory_mib
					  ? (uint32_t)(node->gpu_memory_mib - mib)
					  : 0 };
}

struct gpu_count tally_node(const struct tally *tally, const struct facts *f, struct node_id id)
{
	const struct node *node = node_get(f, id);
	struct gpu_count count = { .total = node->gpu_count };

	for (uint32_t i = 0; i < node->gpu_count; i++) {
		const uint32_t row = (id.v - 1) * NODE_GPUS_MAX + i;

		if (tally->gpu_part[row]) {
			count.shared++;
			count.open_share += tally_open(tally, f, id, i).share;
		}
		if (tally->gpu_job[row])
			count.allocated++;
		else if (node->state != NODE_READY || (node->set_aside_mask >> i & 1))
			count.unusable++;
		else if (node->layout[i])
			count.cut++;
		else
			count.free++;
	}
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
		all.shared += one.shared;
		all.cut += one.cut;
		all.open_share += one.open_share;
	}
	return all;
}

const struct attempt *job_newest(const struct facts *f, const struct job *job,
				 struct attempt_id *ret)
{
	*ret = job_is_live(job) ? job->attempt : job->last_attempt;
	return ret->v ? attempt_get(f, *ret) : NULL;
}

/* From the newest back to the attempt of this number, or of this id. Both are set to what was found, or 0. */
static void attempt_walk(const struct facts *f, const struct job *job, uint32_t *number,
			 uint32_t *id)
{
	struct attempt_id newest;
	const struct attempt *first = job_newest(f, job, &newest);
	uint32_t at = job->attempts;

	for (uint32_t i = newest.v; first && i && at; i--) {
		if (attempt_get(f, (struct attempt_id){ i })->job.v != first->job.v)
			continue;
		if (at == *number || i == *id) {
			*number = at;
			*id = i;
			return;
		}
		at--;
	}
	*number = *id = 0;
}

uint32_t job_attempt_find(const struct facts *f, const struct job *job, uint32_t number)
{
	uint32_t id = 0;

	attempt_walk(f, job, &number, &id);
	return id;
}

uint32_t job_attempt_number(const struct facts *f, const struct job *job, uint32_t id)
{
	uint32_t number = 0;

	attempt_walk(f, job, &number, &id);
	return number;
}

int64_t job_share_held(const struct facts *f, const struct job *job)
{
	return job_is_live(job) ? attempt_share(f, attempt_get(f, job->attempt)) : 0;
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
