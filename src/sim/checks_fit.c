/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checks_fit.h"

#include "core/model/roles.h"

/* By the names that the nodes have, which is not how the core goes about it. */
static bool nodes_meet(const struct facts *f, const struct shape *shape, uint32_t a, uint32_t b)
{
	const struct node *first = node_get(f, (struct node_id){ a }),
			  *second = node_get(f, (struct node_id){ b });

	if (shape->apart == LEVEL_NODE)
		return a == b;
	for (uint32_t i = 0; i < shape->apart; i++) /* there may be a rack 1 in every row */
		if (!name_same(first->domain[i], second->domain[i]))
			return false;
	return true;
}

void checks_apart(struct checks *checks, const struct facts *f, const char *name,
		  const struct shape *shape, const struct attempt *attempt,
		  const struct event_attempt_placed *e)
{
	bool meet = false;

	for (uint32_t i = 0; shape->apart && i < e->nodes_count; i++) {
		uint32_t node = (uint32_t)e->nodes[i];

		for (uint32_t k = 0; k < i; k++)
			meet = meet || nodes_meet(f, shape, node, (uint32_t)e->nodes[k]);
		for (uint32_t rank = 0; attempt && rank < attempt->tasks; rank++) {
			const struct task *task = task_get(f, attempt, rank);

			meet = meet ||
			       (task_holds(task) && nodes_meet(f, shape, node, task->node.v));
		}
	}
	if (meet)
		checks_problem(checks, f, "tasks of job %s that must lie apart lie together", name);
}

void checks_together(struct checks *checks, const struct facts *f, const char *name,
		     const struct shape *shape, const struct event_attempt_placed *e)
{
	const uint32_t row = facts_mask_find(f, shape->together);

	for (uint32_t i = 0; shape->together.v && i < e->nodes_count; i++)
		for (uint32_t k = 0; k < i; k++) {
			const uint32_t a = shape_role(shape, i), b = shape_role(shape, k);

			if (a != b && shape->role_mask[a].v && shape->role_mask[b].v &&
			    e->nodes[i] == e->nodes[k] &&
			    !(row &&
			      node_is_in(node_get(f, (struct node_id){ (uint32_t)e->nodes[i] }),
					 row)))
				checks_problem(
					checks, f,
					"two roles of job %s share a node that has not enough for both",
					name);
		}
}

static bool labels_meet(const struct name_id *a, const struct name_id *b)
{
	bool meet = false;

	for (uint32_t i = 0; i < JOB_LABELS_MAX; i++)
		for (uint32_t k = 0; k < JOB_LABELS_MAX; k++)
			meet = meet || (a[i].v && name_same(a[i], b[k]));
	return meet;
}

/* One side's distance: does it keep away from the other, and by what level? */
static bool keeps_away(const struct facts *f, const struct shape *from, const struct shape *other,
		       uint32_t a, uint32_t b)
{
	struct shape level = { .apart = from->apart_level ? from->apart_level : LEVEL_NODE };

	return !from->apart_wish && labels_meet(from->apart_from, other->own_label) &&
	       nodes_meet(f, &level, a, b);
}

void checks_away(struct checks *checks, const struct facts *f, const char *name,
		 const struct shape *shape, uint32_t job, const struct event_attempt_placed *e)
{
	for (uint32_t id = 1; shape_is_marked(shape) && id <= f->jobs.count; id++) {
		const struct job *other = job_get(f, (struct job_id){ id });
		const struct attempt *a;
		const struct shape *theirs;

		if (id == job || !other->attempt.v)
			continue;
		a = attempt_get(f, other->attempt);
		theirs = shape_get(f, other->shape);
		for (uint32_t i = 0; i < a->tasks; i++)
			for (uint32_t k = 0; k < e->nodes_count; k++) {
				const struct task *task = task_get(f, a, i);
				uint32_t node = (uint32_t)e->nodes[k];

				if (task_holds(task) &&
				    (keeps_away(f, shape, theirs, node, task->node.v) ||
				     keeps_away(f, theirs, shape, node, task->node.v)))
					checks_problem(
						checks, f,
						"job %s lies beside job %u, and they keep apart",
						name, id);
			}
	}
}

struct models_seen {
	bool any, several;
	struct name_id first;
};

/* A task without GPUs in a job where others have some has no model. */
static void model_see(const struct facts *f, const struct shape *shape, uint32_t node,
		      uint32_t mask, struct models_seen *seen)
{
	struct name_id model = node_get(f, (struct node_id){ node })->model;

	if (shape->role_count && !mask)
		return;
	seen->several |= seen->any && !name_same(seen->first, model);
	seen->first = model;
	seen->any = true;
}

void checks_models(struct checks *checks, const struct facts *f, const char *name,
		   const struct shape *shape, const struct attempt *attempt,
		   const struct event_attempt_placed *e)
{
	struct models_seen seen = { .any = false };

	for (uint32_t i = 0; i < e->nodes_count; i++)
		model_see(f, shape, (uint32_t)e->nodes[i], (uint32_t)e->masks[i], &seen);
	for (uint32_t rank = 0; attempt && rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		if (task_holds(task))
			model_see(f, shape, task->node.v, task->gpu_mask, &seen);
	}
	if (seen.several && shape->gpus && !shape->mixes)
		checks_problem(checks, f, "tasks of job %s get GPUs of several models", name);
}

/* Processors that aligned tasks of live attempts hold beside these GPUs. */
static int64_t aligned_cpus(const struct facts *f, uint32_t node, uint32_t gpus)
{
	int64_t cpus = 0;

	for (uint32_t id = 1; id <= f->attempts.count; id++) {
		const struct attempt *a = attempt_get(f, (struct attempt_id){ id });
		const struct shape *shape;

		if (a->state == ATTEMPT_FREE || a->state == ATTEMPT_OVER)
			continue;
		shape = shape_get(f, job_get(f, a->job)->shape);
		for (uint32_t rank = 0; shape->align && rank < a->tasks; rank++) {
			const struct task *task = task_get(f, a, rank);

			if (task && task_holds(task) && task->node.v == node &&
			    task->gpu_mask & gpus)
				cpus += shape->cpu_milli;
		}
	}
	return cpus;
}

/* The NUMA node in which all these GPUs are; NUMA_MAX = there is none. */
static uint32_t numa_of(const struct node *node, uint32_t gpus)
{
	uint32_t i = 0;

	while (i < NUMA_MAX && (!node->numa_gpus[i] || gpus & ~node->numa_gpus[i]))
		i++;
	return i;
}

void checks_capacity(struct checks *checks, const struct facts *f, const char *name,
		     const struct shape *shape, const struct event_attempt_placed *e)
{
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		const struct node *node = node_get(f, (struct node_id){ (uint32_t)e->nodes[i] });
		bool spot = node->capacity == CAPACITY_SPOT;

		if (spot ? !shape->capacity : shape->capacity == CAPACITY_SPOT)
			checks_problem(checks, f, "job %s is placed on %s, which is %s spot node",
				       name, facts_name(f, node->name), spot ? "a" : "no");
	}
}

void checks_aligned(struct checks *checks, const struct facts *f, const char *name,
		    const struct shape *shape, const struct event_attempt_placed *e)
{
	for (uint32_t i = 0; shape->align && i < e->nodes_count; i++) {
		const struct node *node = node_get(f, (struct node_id){ (uint32_t)e->nodes[i] });
		uint32_t at = numa_of(node, (uint32_t)e->masks[i]);
		int64_t cpus;

		if (at == NUMA_MAX || (shape->align == ALIGN_NIC && !node->numa_nics[at])) {
			checks_problem(checks, f, "a task of job %s is not aligned on %s", name,
				       facts_name(f, node->name));
			continue;
		}
		cpus = aligned_cpus(f, (uint32_t)e->nodes[i], node->numa_gpus[at]);
		for (uint32_t k = 0; k < e->nodes_count; k++)
			if (e->nodes[k] == e->nodes[i] && e->masks[k] & node->numa_gpus[at])
				cpus += shape->cpu_milli;
		if (node->numa_cpu_milli[at] && cpus > node->numa_cpu_milli[at])
			checks_problem(checks, f,
				       "job %s takes NUMA node %u of %s to %lld milli-CPUs of %u",
				       name, at, facts_name(f, node->name), (long long)cpus,
				       node->numa_cpu_milli[at]);
	}
}
