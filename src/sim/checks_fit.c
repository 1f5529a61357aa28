/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checks_fit.h"

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
