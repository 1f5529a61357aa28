/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that asks for something else. What it asks for is read as the submission that would ask for the same (job_change.h), the words of the
 * record are put into it, and the job is filled from it as by that submission. So a changed waiting job is the one that was submitted so:
 *
 *	submitted: 2 tasks, limit 1h	job-changed what=tasks tasks 4	is: 4 tasks, limit 1h
 *
 * Number, time of submission, what it waits for, who owns it and what it runs stay. A place that was kept for the old wish is given up.
 */
#include "core/model/apply.h"
#include "core/model/edit.h"
#include "core/model/job_change.h"

/* What may be changed of the job now; all that the event names must be of it. */
static bool change_fits(const struct job *job, const struct event_job_changed *e, uint64_t set)
{
	if (!set || job->external)
		return false;
	if (!job_state_waits(job->state) && set & ~job_changes_with(JOB_CHANGE_RUNS))
		return false;
	return !job->array_first || e->whole || !(set & job_changes_with(JOB_CHANGE_WHOLE));
}

static void body_change(struct facts *f, uint32_t row, const struct event_job_submitted *wish)
{
	struct body *body = table_edit(&f->bodies, row);

	body->deadline_ms = clamp_positive(wish->deadline_ms);
	body->efficiency = clamp_u8(wish->efficiency, 100);
	body->array_limit = wish->array_count > 1 ? clamp_u16(wish->array_limit) : 0;
	body->capacity = clamp_u8(wish->capacity, CAPACITY_ANY);
}

/* Of a job that runs only what says nothing of its place. */
static void running_change(struct facts *f, struct job_id id,
			   const struct event_job_submitted *wish)
{
	const struct name_id name = facts_intern(f, wish->name);
	struct job *job = job_edit(f, id);

	job->name = name;
	job->limit_ms = clamp_positive(wish->limit_ms);
}

/* False when it can't be so: an unknown queue, a shape that none can have. */
static bool waiting_change(struct facts *f, struct job_id id,
			   const struct event_job_submitted *wish)
{
	const struct queue_id queue = facts_queue_find(f, wish->queue);
	struct name_id name, project;
	struct shape_id shape_id;
	struct shape shape;
	struct job *job;

	if (!queue.v || !submission_shape(f, wish, &shape))
		return false;
	shape_id = facts_intern_shape(f, &shape);
	name = facts_intern(f, wish->name);
	project = facts_intern(f, wish->project);
	facts_count_waiting(f, job_get(f, id), -1);
	job = job_edit(f, id);
	submission_fill(wish, job);
	job->name = name;
	job->project = project;
	job->queue = queue;
	job->shape = shape_id;
	facts_count_waiting(f, job, 1);
	return true;
}

void apply_job_changed(struct facts *f, const struct event_job_changed *e)
{
	struct job_id id = { job_is_there(f, e->job) ? (uint32_t)e->job : 0 };
	struct event_job_submitted wish;
	struct job_wish_room room;
	const struct job *job;
	uint64_t set;

	(void)job_changes_parse(e->what, &set);
	if (!id.v || job_state_is_final(job_get(f, id)->state) ||
	    !change_fits(job_get(f, id), e, set))
		return;
	job = job_get(f, id);
	job_wish(f, job, &room, &wish);
	job_changes_put(set, e, &wish);
	if (!job_state_waits(job->state))
		running_change(f, id, &wish);
	else if (!waiting_change(f, id, &wish))
		return;
	if (set & job_changes_with(JOB_CHANGE_WHOLE) && job_get(f, id)->body)
		body_change(f, job_get(f, id)->body, &wish);
	if (job_state_waits(job_get(f, id)->state) && set & ~job_changes_with(JOB_CHANGE_PLAIN)) {
		promise_drop(f, id);
		reservation_drop(f, id);
	}
}
