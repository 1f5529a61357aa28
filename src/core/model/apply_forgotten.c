/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that ended long ago leave the facts: the read models keep them for ever. Their rows become zero, and chunks of nothing but
 * zeroes are given back; ids are never given again. What is linked to them by rows is taken out of its lists.
 *
 *	job 7 ── last_attempt ─▶ attempt 9 ── previous ─▶ attempt 4	all three rows zero
 *	depends of job 7: out of the lists of those it waited for; dependents of job 7: out of the lists of their owners
 */
#include <string.h>

#include "core/model/apply.h"
#include "core/model/edit.h"

/* A job that waits for the whole array has to know how each of its jobs ended. */
static bool array_is_awaited(const struct facts *f, uint32_t first)
{
	for (uint32_t row = job_get(f, (struct job_id){ first })->dependents; row;) {
		const struct depend *depend = table_get(&f->depends, row);

		if (depend->whole &&
		    !job_state_is_final(job_get(f, (struct job_id){ depend->owner })->state))
			return true;
		row = depend->next_dependent;
	}
	return false;
}

/* It is over, and none that waits has to know how it ended. */
static bool job_is_done_with(const struct facts *f, const struct job *job)
{
	if (!job_state_is_final(job->state) || job->attempt.v)
		return false;
	for (uint32_t row = job->dependents; row && job->state != JOB_SUCCEEDED;) {
		const struct depend *depend = table_get(&f->depends, row);

		if (!job_state_is_final(job_get(f, (struct job_id){ depend->owner })->state))
			return false;
		row = depend->next_dependent;
	}
	return !job->array_first || !array_is_awaited(f, job->array_first);
}

bool job_may_be_forgotten(const struct facts *f, struct job_id id)
{
	const struct job *job = job_get(f, id);

	return job_is_done_with(f, job) && job->state_ms <= f->now_ms - f->policy.keep_ended_ms &&
	       job->submitted_ms <= f->now_ms - CLIENT_KEY_MS;
}

/* Takes a row out of the list of dependents of the job that it waits for. */
static void dependent_unlink(struct facts *f, uint32_t row, const struct depend *depend)
{
	uint32_t at = job_get(f, (struct job_id){ depend->job })->dependents, before = 0;

	while (at != row) {
		before = at;
		at = ((const struct depend *)table_get(&f->depends, at))->next_dependent;
	}
	if (before)
		((struct depend *)table_edit(&f->depends, before))->next_dependent =
			depend->next_dependent;
	else
		job_edit(f, (struct job_id){ depend->job })->dependents = depend->next_dependent;
}

/* Takes a row out of its owner's list. */
static void depend_unlink(struct facts *f, uint32_t row, const struct depend *depend)
{
	uint32_t at = job_get(f, (struct job_id){ depend->owner })->depends, before = 0;

	while (at != row) {
		before = at;
		at = ((const struct depend *)table_get(&f->depends, at))->next;
	}
	if (before)
		((struct depend *)table_edit(&f->depends, before))->next = depend->next;
	else
		job_edit(f, (struct job_id){ depend->owner })->depends = depend->next;
}

static void depends_drop(struct facts *f, struct job_id id)
{
	uint32_t row;

	while ((row = job_get(f, id)->depends)) {
		const struct depend depend = *(const struct depend *)table_get(&f->depends, row);

		dependent_unlink(f, row, &depend);
		job_edit(f, id)->depends = depend.next;
		facts_give_depend(f, row);
	}
	while ((row = job_get(f, id)->dependents)) {
		const struct depend depend = *(const struct depend *)table_get(&f->depends, row);

		depend_unlink(f, row, &depend);
		job_edit(f, id)->dependents = depend.next_dependent;
		facts_give_depend(f, row);
	}
}

static void attempts_drop(struct facts *f, struct attempt_id newest)
{
	tasks_drop(f, newest);
	for (uint32_t id = newest.v, previous; id; id = previous) {
		struct attempt *attempt = attempt_edit(f, (struct attempt_id){ id });

		previous = attempt->previous;
		facts_put_text(f, attempt->reason, "");
		memset(attempt, 0, sizeof(*attempt));
		table_trim(&f->attempts, id);
	}
}

static void body_leave(struct facts *f, uint32_t row, uint8_t state)
{
	struct body *body = table_edit(&f->bodies, row);

	if (state == JOB_SUCCEEDED)
		body->succeeded--;
	else
		body->failed--;
	if (--body->jobs)
		return;
	if (body->keyed)
		facts_unlink_body(f, row);
	memset(table_edit(&f->bodies, row), 0, sizeof(*body));
	table_trim(&f->bodies, row);
}

static void job_forget(struct facts *f, struct job_id id)
{
	depends_drop(f, id);
	attempts_drop(f, job_get(f, id)->last_attempt);
	if (job_get(f, id)->checkpoint)
		facts_give_checkpoints(f, job_get(f, id)->checkpoint);
	facts_put_text(f, job_get(f, id)->reason, "");
	body_leave(f, job_get(f, id)->body, job_get(f, id)->state);
	memset(job_edit(f, id), 0, sizeof(struct job));
	table_trim(&f->jobs, id.v);
}

/* Time and sequence begin anew, and what its events refer to may be gone as where records are lost. */
void facts_revive(const struct facts *from, struct facts *ret)
{
	facts_freeze(from, ret);
	ret->reviving = true;
	ret->lost = 1;
	ret->now_ms = 0;
}

/* A floor below which nothing breaks; when it is time is said by job_may_be_forgotten, before. */
void apply_jobs_forgotten(struct facts *f, const struct event_jobs_forgotten *e)
{
	for (uint32_t i = 0; i < e->jobs_count; i++) {
		struct job_id id = { (uint32_t)e->jobs[i] };

		if (job_is_there(f, e->jobs[i]) && job_is_done_with(f, job_get(f, id)))
			job_forget(f, id);
	}
}
