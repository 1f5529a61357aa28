/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beside each other on one GPU: parts, and slices of those that are cut. */
#include "sim/checks_shared.h"

#include "core/partitioning/geometry.h"

static const struct attempt *live_get(const struct checks *checks, const struct facts *f,
				      uint32_t at)
{
	return checks->live[at] > f->attempts.count
		       ? NULL
		       : attempt_get(f, (struct attempt_id){ checks->live[at] });
}

/* Memory slices of the instance; of what is none, all. */
static uint32_t slice_memory_mask(uint32_t slice)
{
	return slice ? ((UINT32_C(1) << slice_memory(slice_at_kind(slice))) - 1)
			       << slice_at_start(slice)
		     : UINT32_MAX;
}

/* What lies on one GPU in parts, and whose it is. */
struct shared_gpu {
	const struct facts *f;
	const struct job *first; /* one of those it belongs to */
	int64_t share, mib;
	bool whole, mixed;
};

/* Work of one team, or without a team of one user. */
static bool may_share(const struct facts *f, const struct job *a, const struct job *b)
{
	if ((a->kind == KIND_INFERENCE) != (b->kind == KIND_INFERENCE))
		return false;
	if (f->policy.share_gpus == SHARE_GPUS_ANY)
		return true;
	if (f->policy.share_gpus == SHARE_GPUS_OFF)
		return a == b;
	return a->team.v || b->team.v ? name_same(a->team, b->team) : name_same(a->user, b->user);
}

static void shared_count(struct shared_gpu *gpu, const struct job *job, int64_t share, int64_t mib)
{
	gpu->whole |= share == 0;
	gpu->share += share;
	gpu->mib += mib;
	gpu->mixed |= gpu->first && !may_share(gpu->f, gpu->first, job);
	gpu->first = job;
}

/* Counted anew from all live attempts, this one included, which is not a fact yet. */
static struct shared_gpu shared_read(const struct checks *checks, const struct facts *f,
				     const struct event_attempt_placed *e, const struct job *job,
				     uint32_t rank)
{
	struct shared_gpu gpu = { .f = f };

	for (uint32_t i = 0; i + 1 < checks->live_count; i++) { /* the last is this one */
		const struct attempt *a = live_get(checks, f, i);

		for (uint32_t k = 0; a && k < a->tasks; k++) {
			const struct task *task = task_get(f, a, k);

			if (task_holds(task) && task->node.v == (uint32_t)e->nodes[rank] &&
			    task->gpu_mask & (uint32_t)e->masks[rank])
				shared_count(&gpu, job_get(f, a->job), task->gpu_part,
					     task->gpu_part_mib);
		}
	}
	for (uint32_t i = 0; i < e->nodes_count; i++)
		if (e->nodes[i] == e->nodes[rank] && e->masks[i] & e->masks[rank])
			shared_count(&gpu, job, e->parts_count ? e->parts[i] : 0,
				     e->parts_count ? e->parts_mib[i] : 0);
	return gpu;
}

/* Memory slices of the GPU that others than task `rank` of this placing hold, a bit each; of parts and whole GPUs all. */
static uint32_t memory_held(const struct checks *checks, const struct facts *f,
			    const struct event_attempt_placed *e, uint32_t rank, int64_t node,
			    int64_t mask)
{
	uint32_t held = 0;

	for (uint32_t i = 0; i < checks->live_count; i++) {
		const struct attempt *a = live_get(checks, f, i);

		for (uint32_t k = 0; a && k < a->tasks; k++) {
			const struct task *task = task_get(f, a, k);

			if (task_holds(task) && task->node.v == node && task->gpu_mask & mask)
				held |= slice_memory_mask(task->slice);
		}
	}
	for (uint32_t i = 0; e && i < e->nodes_count; i++)
		if (i != rank && e->nodes[i] == node && e->masks[i] & mask)
			held |= slice_memory_mask(e->slices_count ? (uint32_t)e->slices[i] : 0);
	return held;
}

/* A slice exists, is what the job asks for, and nobody else has any of it; nothing else runs on a GPU that is cut. */
static void check_slice(struct checks *checks, const struct facts *f, const char *name,
			const struct event_attempt_placed *e, const struct shape *shape,
			uint32_t rank)
{
	const struct node *node = node_get(f, (struct node_id){ (uint32_t)e->nodes[rank] });
	uint32_t slice = e->slices_count ? (uint32_t)e->slices[rank] : 0, layout, mask;
	const struct slice_profile *profile = geometry_wished(
		geometry_of(facts_name(f, node->model), node->gpu_memory_mib), shape->slice);

	if (!shape->slice) {
		for (uint32_t gpu = 0; gpu < NODE_GPUS_MAX; gpu++)
			if (e->masks[rank] >> gpu & 1 && (node->layout[gpu] || node->slices_only))
				checks_problem(
					checks, f,
					"job %s, which wants no slice, gets GPU %u of %s, which is there for slices",
					name, gpu, facts_name(f, node->name));
		return;
	}
	layout = e->masks[rank] ? node->layout[__builtin_ctzll((uint64_t)e->masks[rank])] : 0;
	mask = slice_memory_mask(slice);
	if (!slice || layout_kind(layout, slice_at_start(slice)) != slice_at_kind(slice))
		checks_problem(checks, f, "job %s gets a slice of %s that does not exist", name,
			       facts_name(f, node->name));
	if (!profile || profile->kind != slice_at_kind(slice) ||
	    shape->gpu_memory_mib > profile->memory_mib ||
	    e->parts[rank] * slice_compute(SLICE_7G) <
		    (int64_t)slice_compute(slice_at_kind(slice)) * GPU_SHARE)
		checks_problem(checks, f, "job %s gets another slice of %s than it wants", name,
			       facts_name(f, node->name));
	if (memory_held(checks, f, e, rank, e->nodes[rank], e->masks[rank]) & mask)
		checks_problem(checks, f, "job %s gets a slice of %s that is held", name,
			       facts_name(f, node->name));
}

void checks_layout(struct checks *checks, const struct facts *f, const struct event_layout_set *e)
{
	const struct node *node = node_get(f, (struct node_id){ (uint32_t)e->node });
	const struct geometry *geometry =
		geometry_of(facts_name(f, node->model), node->gpu_memory_mib);

	for (uint32_t i = 0; i < e->gpus_count; i++) {
		if (memory_held(checks, f, NULL, 0, e->node, INT64_C(1) << e->gpus[i]))
			checks_problem(checks, f, "GPU %lld of %s is cut while it is in use",
				       (long long)e->gpus[i], facts_name(f, node->name));
		if (e->layouts[i] &&
		    (!geometry || !layout_is_legal(geometry, (uint32_t)e->layouts[i])))
			checks_problem(checks, f, "GPU %lld of %s gets an impossible layout",
				       (long long)e->gpus[i], facts_name(f, node->name));
		if (node->partitioning == PARTITIONING_OFF)
			checks_problem(checks, f, "GPU %lld of %s is cut where nobody may",
				       (long long)e->gpus[i], facts_name(f, node->name));
	}
}

/* No GPU is given away twice, in parts or whole, and only those share one who may. */
void checks_shared(struct checks *checks, const struct facts *f, const char *name,
		   const struct event_attempt_placed *e, const struct job *job)
{
	const struct shape *shape = shape_get(f, job->shape);

	if (shape_is_part(shape) != (e->parts_count == e->nodes_count))
		checks_problem(checks, f,
			       "job %s gets parts of GPUs, or whole ones, unlike its wish", name);
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		const struct node *node = node_get(f, (struct node_id){ (uint32_t)e->nodes[i] });
		struct shared_gpu gpu = shared_read(checks, f, e, job, i);

		check_slice(checks, f, name, e, shape, i);

		if (gpu.whole && gpu.share)
			checks_problem(checks, f,
				       "a GPU of %s is given to job %s whole and in parts",
				       facts_name(f, node->name), name);
		if (gpu.share > GPU_SHARE || gpu.mib > node->gpu_memory_mib)
			checks_problem(checks, f,
				       "job %s takes a GPU of %s to %lld/63000 and %lld MiB of %u",
				       name, facts_name(f, node->name), (long long)gpu.share,
				       (long long)gpu.mib, node->gpu_memory_mib);
		if (gpu.share && gpu.mixed && !shape->slice)
			checks_problem(checks, f, "job %s shares a GPU of %s with work it may not",
				       name, facts_name(f, node->name));
	}
}
