/* SPDX-License-Identifier: Apache-2.0 */
/* What runs already at time 0: the GPUs that it holds, and a history of the events that the core would have made. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/digest.h"
#include "sim/runner.h"

static struct run_node *node_of(struct run *run, const char *name)
{
	for (uint32_t i = 0; i < run->scenario->node_count; i++)
		if (strcmp(run->nodes[i].from->name, name) == 0)
			return &run->nodes[i];
	UNREACHABLE(); /* the reader has checked the name */
}

static int no_room(struct run *run, const struct scenario_job *from, const struct run_node *node,
		   struct err *err)
{
	return err_at(
		err, ERR_INVALID, run->scenario->file, from->line, 1,
		"job \"%s\" can't be running on node \"%s\": its %u GPUs are in use by the jobs before it",
		from->name, node->from->name, node->from->gpus);
}

/* What a task of the job takes of a GPU there; share 0 = it asks for whole ones. */
static struct gpu_part part_there(const struct scenario_job *from, const struct run_node *node)
{
	const struct shape wish = { .gpu_part = from->gpu_part,
				    .gpu_part_mib = (uint32_t)from->gpu_part_mib };

	return shape_part(&wish, (uint32_t)node->from->gpu_memory_mib);
}

/* Takes GPU `gpu` of the node, or the job's part or slice of it (number `index`, -1 = any): into *mask, a slice above the GPUs.
 * False: too little of it is left. */
enum { SLICE_SHIFT = 32 };
static bool gpu_take(struct run_node *node, const struct scenario_job *from, uint32_t gpu,
		     int32_t index, int64_t *mask)
{
	struct gpu_part part = part_there(from, node);
	uint32_t bit = UINT32_C(1) << gpu,
		 slice = *from->slice ? run_slice_take(node, from, gpu, index) : 0;

	if (*from->slice || (gpu < node->from->layout_count && node->from->layouts[gpu])) {
		*mask |= slice ? (int64_t)bit | (int64_t)slice << SLICE_SHIFT : 0;
		return slice != 0;
	}
	if (!from->gpu_part && !from->gpu_part_mib) {
		if ((node->used_mask | node->shared_mask) & bit)
			return false;
		node->used_mask |= bit;
		*mask |= bit;
		return true;
	}
	if (node->used_mask & bit || !part.share || node->share[gpu] + part.share > GPU_SHARE ||
	    node->mib[gpu] + part.mib > node->from->gpu_memory_mib)
		return false;
	node->shared_mask |= bit;
	node->share[gpu] += part.share;
	node->mib[gpu] += part.mib;
	*mask |= bit;
	return true;
}

/* GPUs named by index come first, so that the others find what is left. */
static int take_named(struct run *run, const struct scenario_job *from, int64_t *masks,
		      struct err *err)
{
	for (uint32_t i = 0; i < from->running_count; i++) {
		struct run_node *node = node_of(run, from->running[i].node);
		int32_t gpu = from->running[i].gpu;

		if (gpu < 0)
			continue;
		if (gpu >= (int32_t)node->from->gpus ||
		    !gpu_take(node, from, (uint32_t)gpu, from->running[i].slice, &masks[i]))
			return no_room(run, from, node, err);
	}
	return 0;
}

static int take_first(struct run *run, const struct scenario_job *from, int64_t *masks,
		      struct err *err)
{
	for (uint32_t i = 0; i < from->running_count; i++) {
		struct run_node *node = node_of(run, from->running[i].node);
		uint32_t gpus = scenario_task_gpus(from, i);

		if (from->running[i].gpu >= 0)
			continue;
		for (uint32_t g = 0;
		     g < node->from->gpus && __builtin_popcount((uint32_t)masks[i]) < (int)gpus;
		     g++)
			(void)gpu_take(node, from, g, -1, &masks[i]);
		if (__builtin_popcount((uint32_t)masks[i]) < (int)gpus)
			return no_room(run, from, node, err);
	}
	return 0;
}

int64_t **run_masks_find(struct run *run, struct err *err)
{
	uint32_t count = run->scenario->job_count;
	int64_t **masks = arena_new_array(&run->memory, int64_t *, count + 1);
	int rc = 0;

	for (uint32_t i = 0; i < count && rc == 0; i++) {
		masks[i] = arena_new_array(&run->memory, int64_t,
					   run->jobs[i].from->running_count + 1);
		rc = take_named(run, run->jobs[i].from, masks[i], err);
	}
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = take_first(run, run->jobs[i].from, masks[i], err);
	return rc < 0 ? NULL : masks;
}

static void apply_rank(struct run *run, enum event_kind kind, int64_t at_ms, int64_t attempt,
		       uint32_t tasks)
{
	for (uint32_t rank = 0; rank < tasks; rank++) {
		struct event e = event_make(kind, at_ms, "engine");

		if (kind == EVENT_TASK_READY) {
			e.task_ready.attempt = attempt;
			e.task_ready.rank = rank;
		} else {
			e.task_started.attempt = attempt;
			e.task_started.rank = rank;
			e.task_started.at_ms = at_ms;
		}
		world_apply(&run->world, &e, false);
	}
}

void run_start_running(struct run *run, const struct run_job *job, const int64_t *masks,
		       int64_t at_ms)
{
	struct event placed = event_make(EVENT_ATTEMPT_PLACED, at_ms, "fairlead");
	struct event released = event_make(EVENT_ATTEMPT_RELEASED, at_ms, "fairlead");
	uint32_t count = job->from->running_count, attempt = run->world.facts.attempts.count + 1;
	int64_t *nodes = arena_new_array(&run->memory, int64_t, (size_t)5 * count);
	bool sliced = *job->from->slice != '\0';

	for (uint32_t i = 0; i < count; i++) {
		const struct run_node *node = node_of(run, job->from->running[i].node);
		uint32_t slice = (uint32_t)(masks[i] >> SLICE_SHIFT);
		struct gpu_part part =
			slice ? run_slice_part(node, slice) : part_there(job->from, node);

		nodes[3 * count + i] = slice;
		nodes[4 * count + i] = (uint32_t)masks[i];
		nodes[i] = facts_node_find(&run->world.facts, job->from->running[i].node).v;
		nodes[count + i] = part.share;
		nodes[2 * count + i] = part.mib;
	}
	if (sliced) {
		placed.attempt_placed.slices = nodes + (size_t)3 * count;
		placed.attempt_placed.slices_count = count;
	}
	if (sliced || job->from->gpu_part || job->from->gpu_part_mib) {
		placed.attempt_placed.parts = nodes + count;
		placed.attempt_placed.parts_mib = nodes + (size_t)2 * count;
		placed.attempt_placed.parts_count = placed.attempt_placed.parts_mib_count = count;
	}
	placed.attempt_placed.job = job->id;
	placed.attempt_placed.attempt = attempt;
	placed.attempt_placed.nodes = nodes;
	placed.attempt_placed.nodes_count = count;
	placed.attempt_placed.masks = nodes + (size_t)4 * count;
	placed.attempt_placed.masks_count = count;
	released.attempt_released.attempt = attempt;
	world_apply(&run->world, &placed, true);
	apply_rank(run, EVENT_TASK_READY, at_ms, attempt, count);
	world_apply(&run->world, &released, true);
	apply_rank(run, EVENT_TASK_STARTED, at_ms, attempt, count);
}

/* A checkpoint that was saved before time 0. */
struct old_checkpoint {
	int64_t at_ms;
	uint32_t job, attempt, number;
};

static int compare_checkpoints(const void *a, const void *b)
{
	const struct old_checkpoint *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	return x->attempt != y->attempt ? (x->attempt < y->attempt ? -1 : 1)
					: (int)x->number - (int)y->number;
}

static void apply_checkpoint(struct run *run, const struct old_checkpoint *old)
{
	struct event e = event_make(EVENT_CHECKPOINT_SAVED, old->at_ms, "engine");

	e.checkpoint_saved.job = old->job;
	e.checkpoint_saved.attempt = old->attempt;
	e.checkpoint_saved.number = old->number;
	e.checkpoint_saved.at_ms = old->at_ms;
	e.checkpoint_saved.path = arena_printf(&run->memory, "job-%u/%u", old->job, old->number);
	world_apply(&run->world, &e, false);
}

/* The newest checkpoints that a job of this age has. */
static uint32_t old_checkpoints(const struct run_job *job, int64_t start_ms, uint32_t attempt,
				struct old_checkpoint *ret)
{
	const struct scenario_job *from = job->from;
	struct sim_work work = { .every_ms = from->checkpoint_every_ms,
				 .takes_ms = from->checkpoint_takes_ms,
				 .checkpoints = from->checkpoints };
	int64_t all = sim_work_saved(&work, from->age_ms),
		kept = all < CHECKPOINTS_KEPT ? all : CHECKPOINTS_KEPT;

	for (int64_t n = 0; n < kept; n++)
		ret[n] = (struct old_checkpoint){
			.at_ms = start_ms + (all - kept + n + 1) * work.every_ms + work.takes_ms,
			.job = job->id,
			.attempt = attempt,
			.number = (uint32_t)n + 1
		};
	return (uint32_t)kept;
}

/* Starts those that ran before time 0, oldest first, with their checkpoints in between. */
void run_start_old(struct run *run, int64_t *const *masks, struct run_job **old, uint32_t count,
		   int64_t zero_ms)
{
	struct old_checkpoint *saved =
		arena_new_array(&run->memory, struct old_checkpoint, count * CHECKPOINTS_KEPT + 1);
	uint32_t saved_count = 0, next = 0;

	for (uint32_t i = 0; i < count; i++)
		saved_count += old_checkpoints(old[i], zero_ms - old[i]->from->age_ms, i + 1,
					       saved + saved_count);
	qsort(saved, saved_count, sizeof(*saved), compare_checkpoints);
	for (uint32_t i = 0; i < count; i++) {
		int64_t at_ms = zero_ms - old[i]->from->age_ms;

		for (; next < saved_count && saved[next].at_ms < at_ms; next++)
			apply_checkpoint(run, &saved[next]);
		run_start_running(run, old[i], masks[old[i] - run->jobs], at_ms);
	}
	for (; next < saved_count; next++)
		apply_checkpoint(run, &saved[next]);
}
