/* SPDX-License-Identifier: Apache-2.0 */
/* What a run remembers of each job beyond the facts: who was evicted, who was touched, who
 * started when. */
#include <stdlib.h>
#include <string.h>

#include "sim/runner.h"

struct run_job *run_job_find(struct run *run, const char *name)
{
	for (uint32_t i = 0; i < run->scenario->job_count; i++)
		if (strcmp(run->jobs[i].from->name, name) == 0)
			return &run->jobs[i];
	return NULL;
}

struct run_job *run_job_by_id(const struct run *run, int64_t id)
{
	if (id <= 0 || id >= run->job_room || !run->job_at[id])
		return NULL;
	return &run->jobs[run->job_at[id] - 1];
}

static struct run_job *job_of_attempt(const struct run *run, int64_t attempt)
{
	const struct facts *f = &run->world.facts;

	if (attempt <= 0 || attempt > f->attempts.count)
		return NULL;
	return run_job_by_id(run, attempt_get(f, (struct attempt_id){ (uint32_t)attempt })->job.v);
}

static void track_stopped(struct run *run, int64_t attempt, int64_t why)
{
	struct run_job *job = job_of_attempt(run, attempt);

	if (!job)
		return;
	job->touched = job->touched || why != STOP_NONE;
	job->evicted = job->evicted || why == STOP_EVICTED || why == STOP_MOVED;
}

static void track_touched(struct run *run, int64_t attempt)
{
	struct run_job *job = job_of_attempt(run, attempt);

	if (job)
		job->touched = true;
}

static void track_started(struct run *run, const struct event_task_started *e, int64_t at_ms)
{
	struct run_job *job = job_of_attempt(run, e->attempt);
	const struct attempt *attempt;

	if (!job || job->started_ms >= 0)
		return;
	attempt = attempt_get(&run->world.facts, (struct attempt_id){ (uint32_t)e->attempt });
	if (attempt->started == attempt->tasks)
		job->started_ms = at_ms > WORLD_EPOCH_MS ? at_ms - WORLD_EPOCH_MS : 0;
}

void run_observe(void *context, const struct world *world, const struct event *e, bool decision)
{
	struct run *run = context;

	(void)world;
	if (e->kind == EVENT_ATTEMPT_STOPPED)
		track_stopped(run, e->attempt_stopped.attempt, e->attempt_stopped.why);
	if (e->kind == EVENT_ATTEMPT_ENDED)
		track_stopped(run, e->attempt_ended.attempt, e->attempt_ended.why);
	if (e->kind == EVENT_TASK_STARTED)
		track_started(run, &e->task_started, e->time_ms);
	if (e->kind == EVENT_ATTEMPT_SHRUNK)
		track_stopped(run, e->attempt_shrunk.attempt, STOP_EVICTED);
	if (e->kind == EVENT_RANKS_LEFT)
		track_touched(run, e->ranks_left.attempt);
	if (run->trace)
		run_trace_event(run, e, decision);
}

uint32_t run_tasks_running(const struct run *run, uint32_t job_id)
{
	const struct facts *f = &run->world.facts;
	const struct job *job = job_get(f, (struct job_id){ job_id });
	const struct attempt *attempt;
	uint32_t running = 0;

	if (!job->attempt.v)
		return 0;
	attempt = attempt_get(f, job->attempt);
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		running += task_get(f, attempt, rank)->state == TASK_RUNNING;
	return running;
}

static int compare_texts(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Where the tasks of a job are: sorted, for ranks are alike. */
static void add_places(struct run *run, uint32_t id)
{
	const struct facts *f = &run->world.facts;
	const struct job *job = job_get(f, (struct job_id){ id });
	const struct attempt *attempt;
	const char **places;
	uint32_t count = 0;

	if (!job->attempt.v)
		return;
	attempt = attempt_get(f, job->attempt);
	places = arena_new_array(&run->memory, const char *, attempt->tasks);
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		if (!task_holds(task))
			continue;
		places[count++] =
			arena_printf(&run->memory, " %s/%x",
				     facts_name(f, node_get(f, task->node)->name), task->gpu_mask);
	}
	qsort(places, count, sizeof(*places), compare_texts);
	for (uint32_t i = 0; i < count; i++)
		buf_adds(&run->outcome, places[i]);
}

/* What became of every job, in names and times alone: equal for runs that differ only in order. */
void run_outcome(struct run *run)
{
	const struct facts *f = &run->world.facts;

	for (uint32_t i = 0; i < run->scenario->job_count; i++) {
		const struct run_job *job = &run->jobs[i];

		buf_addf(&run->outcome, "%s%s%s started %lld", job->from->name,
			 job->refused ? " refused" : "", job->evicted ? " evicted" : "",
			 (long long)job->started_ms);
		for (uint32_t k = 0; k < job->count; k++) {
			const struct job *record = job_get(f, (struct job_id){ job->id + k });

			buf_addf(&run->outcome, " %s since %lld, attempts %u, lost %lld",
				 job_state_name(record->state),
				 (long long)(record->state_ms - WORLD_EPOCH_MS), record->attempts,
				 (long long)record->lost_gpu_ms);
			add_places(run, job->id + k);
		}
		buf_addc(&run->outcome, '\n');
	}
}
