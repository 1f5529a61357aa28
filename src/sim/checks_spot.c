/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checks_spot.h"

#include "core/scheduling/view/view.h"

static const struct body *body_of(const struct facts *f, const struct job *job)
{
	return job->body ? table_get(&f->bodies, job->body) : NULL;
}

/* Less time is left than it would run: waiting costs the deadline, if that can be kept at all. */
static bool has_no_time(const struct facts *f, const struct job *job)
{
	const struct body *body = body_of(f, job);

	return body && body->deadline_ms - f->now_ms < job_expected_ms(f, job);
}

/* Where there are on-demand nodes that it could use: what its kind of GPU is, and how many, is the core's to know. */
static bool has_other_nodes(const struct facts *f, const struct shape *shape)
{
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });
		bool accepts = !shape->models[0].v;

		for (uint32_t i = 0; i < SHAPE_MODELS_MAX && shape->models[i].v; i++)
			accepts = accepts || name_same(shape->models[i], node->model);
		if (accepts && node->capacity != CAPACITY_SPOT && node->state == NODE_READY &&
		    node->gpu_count >= shape->gpus)
			return true;
	}
	return false;
}

void checks_chosen(struct checks *checks, const struct facts *f,
		   const struct event_capacity_chosen *e)
{
	const struct job *job = job_get(f, (struct job_id){ (uint32_t)e->job });
	const struct body *body = body_of(f, job);
	const char *name = facts_name(f, job->name);

	if (!body || !body->deadline_ms || body->capacity != CAPACITY_ANY || !job->checkpoints) {
		checks_problem(checks, f, "nodes are chosen for job %s, which leaves no choice",
			       name);
		return;
	}
	if (job->attempt.v || job->promise)
		checks_problem(checks, f, "nodes are chosen for job %s, which has its place", name);
	if (!f->pools.count)
		checks_problem(checks, f, "nodes are chosen for job %s where none is a spot node",
			       name);
	if (e->capacity != CAPACITY_SPOT)
		return;
	if (has_no_time(f, job))
		checks_problem(checks, f, "job %s is to wait for spot nodes, and has no time",
			       name);
	checks->for_spot = checks_room(checks, checks->for_spot, checks->for_spot_count,
				       &checks->for_spot_room, sizeof(*checks->for_spot));
	checks->for_spot[checks->for_spot_count++] = (uint32_t)e->job;
}

void checks_for_spot(struct checks *checks, const struct facts *f)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < checks->for_spot_count; i++) {
		uint32_t id = checks->for_spot[i];
		const struct job *job = job_get(f, (struct job_id){ id });
		const struct shape *shape = shape_get(f, job->shape);

		if (job_state_is_final(job->state) || shape->capacity != CAPACITY_SPOT)
			continue;
		checks->for_spot[kept++] = id;
		if (job_is_waiting(job) && !job->promise && !job->cancel_asked &&
		    has_no_time(f, job) && has_other_nodes(f, shape))
			checks_problem(checks, f, "job %s waits for spot nodes, and has no time",
				       facts_name(f, job->name));
	}
	checks->for_spot_count = kept;
}
