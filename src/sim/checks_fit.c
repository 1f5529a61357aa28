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

void checks_models(struct checks *checks, const struct facts *f, const char *name,
		   const struct shape *shape, const struct attempt *attempt,
		   const struct event_attempt_placed *e)
{
	const struct node *first = node_get(f, (struct node_id){ (uint32_t)e->nodes[0] });
	bool several = false;

	for (uint32_t i = 1; i < e->nodes_count; i++)
		several = several ||
			  !name_same(node_get(f, (struct node_id){ (uint32_t)e->nodes[i] })->model,
				     first->model);
	for (uint32_t rank = 0; attempt && rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		several = several || (task_holds(task) &&
				      !name_same(node_get(f, task->node)->model, first->model));
	}
	if (several && shape->gpus && !shape->mixes)
		checks_problem(checks, f, "tasks of job %s get GPUs of several models", name);
}
