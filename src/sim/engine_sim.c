/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine_sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/model/roles.h"

enum item_kind {
	ITEM_READY,
	ITEM_STARTED,
	ITEM_FINISH,
	ITEM_DONE, /* of one rank */
	ITEM_FAIL,
	ITEM_CHECKPOINT_BEGIN,
	ITEM_CHECKPOINT_DONE,
	ITEM_EXIT,
	ITEM_LEAVE, /* a rank that was told to leave does */
	ITEM_REPORT /* an event that is on its way */
};

struct sim_item {
	int64_t at_ms;
	uint64_t order;
	enum item_kind kind;
	bool regular; /* checkpoint by interval: alone it keeps no scenario going */
	uint32_t attempt, rank, launch;
	int64_t work_ms; /* CHECKPOINT_DONE: what it holds */
	const struct event *report;
};

enum { MEMORY_CAP = 1 << 30, HEAP_FIRST = 64 };

/* SplitMix64 (Steele, Lea, Flood 2014): one multiplication chain, every seed is good. */
uint64_t sim_random_next(struct sim_random *random)
{
	uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t sim_random_below(struct sim_random *random, uint32_t limit)
{
	return limit ? (uint32_t)(sim_random_next(random) >> 32) % limit : 0;
}

/* The heap: earliest first, then in the order of planning. */

static bool item_before(const struct sim_item *a, const struct sim_item *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void heap_push(struct engine_sim *engine, struct sim_item item)
{
	size_t at = engine->item_count++;

	if (engine->item_count > engine->item_room) {
		engine->item_room = engine->item_room ? engine->item_room * 2 : HEAP_FIRST;
		engine->items =
			reallocarray(engine->items, engine->item_room, sizeof(*engine->items));
		CHECK(engine->items);
	}
	item.order = engine->order++;
	engine->pressing += !item.regular;
	while (at && item_before(&item, &engine->items[(at - 1) / 2])) {
		engine->items[at] = engine->items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	engine->items[at] = item;
}

static struct sim_item heap_pop(struct engine_sim *engine)
{
	struct sim_item first = engine->items[0], last = engine->items[--engine->item_count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < engine->item_count) {
		if (child + 1 < engine->item_count &&
		    item_before(&engine->items[child + 1], &engine->items[child]))
			child++;
		if (!item_before(&engine->items[child], &last))
			break;
		engine->items[at] = engine->items[child];
		at = child;
	}
	engine->items[at] = last;
	engine->pressing -= !first.regular;
	return first;
}

static int64_t later(int64_t from_ms, int64_t by_ms)
{
	int64_t sum;

	return __builtin_add_overflow(from_ms, by_ms, &sum) ? SIM_FOREVER : sum;
}

/* Plans something; what never happens is not planned. */
static void plan(struct engine_sim *engine, int64_t at_ms, enum item_kind kind,
		 const struct sim_attempt *a, uint32_t rank)
{
	if (at_ms != SIM_FOREVER)
		heap_push(engine, (struct sim_item){ .at_ms = at_ms,
						     .kind = kind,
						     .attempt = a->id,
						     .rank = rank,
						     .launch = a->tasks[rank].launch });
}

/* Records. */

void engine_sim_init(struct engine_sim *engine, int64_t now_ms)
{
	*engine = (struct engine_sim){ .now_ms = now_ms };
	arena_init(&engine->memory, MEMORY_CAP);
}

void engine_sim_deinit(struct engine_sim *engine)
{
	arena_deinit(&engine->memory);
	free(engine->items);
	*engine = (struct engine_sim){ 0 };
}

/* An array that index fits into; new records are zero. */
static void *room_for(struct engine_sim *engine, void *array, uint32_t index, uint32_t *room,
		      size_t bytes)
{
	uint32_t larger = *room ? *room : 16;
	void *grown;

	if (index < *room)
		return array;
	while (larger <= index)
		larger *= 2;
	grown = arena_array(&engine->memory, larger, bytes);
	if (*room)
		memcpy(grown, array, *room * bytes);
	*room = larger;
	return grown;
}

static struct sim_job *job_edit(struct engine_sim *engine, uint32_t job)
{
	engine->jobs =
		room_for(engine, engine->jobs, job, &engine->job_room, sizeof(*engine->jobs));
	return &engine->jobs[job];
}

static struct sim_attempt *attempt_edit(struct engine_sim *engine, uint32_t attempt)
{
	if (attempt >= engine->attempt_room || !engine->attempts[attempt].tasks)
		return NULL;
	return &engine->attempts[attempt];
}

const struct sim_attempt *engine_sim_attempt(const struct engine_sim *engine, uint32_t attempt)
{
	if (attempt >= engine->attempt_room || !engine->attempts[attempt].tasks)
		return NULL;
	return &engine->attempts[attempt];
}

void engine_sim_job(struct engine_sim *engine, uint32_t job, const struct sim_work *work)
{
	job_edit(engine, job)->work = *work;
}

uint32_t engine_sim_holder(const struct engine_sim *engine, uint32_t node, uint32_t gpu)
{
	uint32_t index = (node - 1) * NODE_GPUS_MAX + gpu;

	return index < engine->holder_room ? engine->holders[index] : 0;
}

static void hold(struct engine_sim *engine, uint32_t node, uint32_t mask, uint32_t from,
		 uint32_t to)
{
	uint32_t first = (node - 1) * NODE_GPUS_MAX;

	engine->holders = room_for(engine, engine->holders, first + NODE_GPUS_MAX,
				   &engine->holder_room, sizeof(*engine->holders));
	for (uint32_t g = 0; g < NODE_GPUS_MAX; g++)
		if (mask >> g & 1 && engine->holders[first + g] == from)
			engine->holders[first + g] = to;
}

/* Work done by the attempt at that time. */
static int64_t work_at(const struct sim_attempt *a, const struct sim_job *job, int64_t at_ms)
{
	int64_t done = a->started_ms < 0
			       ? 0
			       : at_ms - a->started_ms - (a->resumed ? job->work.restart_ms : 0);

	return a->base_ms + (done > 0 ? done : 0);
}

static int64_t saved_work(const struct sim_job *job, uint32_t number)
{
	for (uint32_t i = job->saved_count; i-- > 0;)
		if (job->saved[i].number == number)
			return job->saved[i].work_ms;
	return 0;
}

static void remember_saved(struct engine_sim *engine, struct sim_job *job, uint32_t number,
			   int64_t work_ms)
{
	job->saved = room_for(engine, job->saved, job->saved_count, &job->saved_room,
			      sizeof(*job->saved));
	job->saved[job->saved_count++] = (struct sim_saved){ .number = number, .work_ms = work_ms };
}

/* Some rank is gone that it does not go on without. */
static bool is_short(const struct sim_attempt *a)
{
	return a->live + a->left < a->task_count;
}

/* The commands. */

static struct sim_attempt *attempt_add(struct engine_sim *engine, const struct facts *facts,
				       uint32_t id)
{
	const struct attempt *record = attempt_get(facts, (struct attempt_id){ id });
	const struct shape *shape = shape_get(facts, job_get(facts, record->job)->shape);
	struct sim_job *job = job_edit(engine, record->job.v);
	struct sim_attempt *a;

	engine->attempts = room_for(engine, engine->attempts, id, &engine->attempt_room,
				    sizeof(*engine->attempts));
	a = &engine->attempts[id];
	*a = (struct sim_attempt){ .id = id,
				   .job = record->job.v,
				   .task_count = record->tasks,
				   .live = record->tasks,
				   .started_ms = -1,
				   .saved_ms = -1,
				   .resumed = job->attempts > 0 };
	a->tasks = arena_new_array(&engine->memory, struct sim_task, record->tasks);
	a->base_ms = record->resume_number ? saved_work(job, record->resume_number) : 0;
	job->attempts++;
	for (uint32_t rank = 0; rank < record->tasks; rank++) {
		const struct task *task = task_get(facts, record, rank);

		a->tasks[rank] = (struct sim_task){ .node = task->node.v,
						    .gpu_mask = task->gpu_mask,
						    .part = task->gpu_part != 0,
						    .role = (uint8_t)shape_role(shape, rank) };
		if (!task->gpu_part)
			hold(engine, task->node.v, task->gpu_mask, 0, id);
	}
	return a;
}

static void take_placed(struct engine_sim *engine, const struct facts *facts, const struct event *e)
{
	struct sim_attempt *a = attempt_add(engine, facts, (uint32_t)e->attempt_placed.attempt);

	for (uint32_t rank = 0; rank < a->task_count; rank++)
		plan(engine, later(e->time_ms, engine->jobs[a->job].work.ready_ms), ITEM_READY, a,
		     rank);
}

static void take_released(struct engine_sim *engine, struct sim_attempt *a, int64_t now_ms)
{
	if (a->released || a->stopping)
		return;
	a->released = true;
	for (uint32_t rank = 0; rank < a->task_count; rank++)
		plan(engine, later(now_ms, engine->jobs[a->job].work.start_ms), ITEM_STARTED, a,
		     rank);
}

/* A checkpoint begins now; regular ones are those by interval. */
static void begin_checkpoint(struct engine_sim *engine, struct sim_attempt *a, int64_t now_ms,
			     bool regular)
{
	const struct sim_job *job = &engine->jobs[a->job];
	struct sim_item item = { .at_ms = later(now_ms, job->work.takes_ms),
				 .kind = ITEM_CHECKPOINT_DONE,
				 .regular = regular,
				 .attempt = a->id,
				 .work_ms = work_at(a, job, now_ms) };

	if (a->saving || a->started_ms < 0 || is_short(a) || item.at_ms == SIM_FOREVER)
		return;
	a->saving = true;
	heap_push(engine, item);
}

static void take_warned(struct engine_sim *engine, struct sim_attempt *a, int64_t now_ms)
{
	a->warned = true;
	if (engine->jobs[a->job].work.checkpoints)
		begin_checkpoint(engine, a, now_ms, false);
}

/*
 * How long a rank takes to go: its own stop time, and not more than the grace. A job that was not
 * warned before uses the grace to save, if it can; one that is evicted and has no checkpoints is
 * given all of it.
 */
static void take_stopped(struct engine_sim *engine, struct sim_attempt *a, const struct event *e)
{
	const struct sim_work *work = &engine->jobs[a->job].work;
	int64_t takes_ms = work->stop_ms,
		grace_ms = e->attempt_stopped.grace_ms > 0 ? e->attempt_stopped.grace_ms : 0;
	bool unwarned = !a->warned && a->started_ms >= 0;

	a->stopping = true;
	if (unwarned && work->checkpoints && work->takes_ms <= grace_ms &&
	    a->saved_ms != e->time_ms) {
		begin_checkpoint(engine, a, e->time_ms, false);
		if (takes_ms < work->takes_ms)
			takes_ms = work->takes_ms;
	} else if (unwarned && !work->checkpoints && e->attempt_stopped.why == STOP_EVICTED) {
		takes_ms = grace_ms;
	}
	if (takes_ms > grace_ms)
		takes_ms = grace_ms;
	for (uint32_t rank = 0; rank < a->task_count; rank++)
		plan(engine, later(e->time_ms, takes_ms), ITEM_EXIT, a, rank);
}

/* These ranks are told to leave: the others go on. */
static void take_shrunk(struct engine_sim *engine, struct sim_attempt *a,
			const struct event_attempt_shrunk *e, int64_t now_ms)
{
	int64_t takes_ms = engine->jobs[a->job].work.stop_ms;

	if (takes_ms > e->grace_ms)
		takes_ms = e->grace_ms > 0 ? e->grace_ms : 0;
	for (uint32_t i = 0; i < e->ranks_count; i++) {
		a->left++;
		plan(engine, later(now_ms, takes_ms), ITEM_LEAVE, a, (uint32_t)e->ranks[i]);
	}
}

/* Those that were lost, and not told to leave: it goes on without them from now on. */
static void take_left(struct engine_sim *engine, const struct facts *facts, struct sim_attempt *a)
{
	const struct attempt *record = attempt_get(facts, (struct attempt_id){ a->id });

	(void)engine;
	a->left = record->left + record->leaving;
}

static void take_grown(struct engine_sim *engine, const struct facts *facts, struct sim_attempt *a,
		       int64_t now_ms)
{
	const struct attempt *record = attempt_get(facts, (struct attempt_id){ a->id });
	struct sim_task *tasks = arena_new_array(&engine->memory, struct sim_task, record->tasks);
	const struct shape *shape = shape_get(facts, job_get(facts, record->job)->shape);

	memcpy(tasks, a->tasks, a->task_count * sizeof(*tasks));
	for (uint32_t rank = 0; rank < record->tasks; rank++) {
		const struct task *task = task_get(facts, record, rank);

		if (rank < a->task_count && tasks[rank].launch == task->launch)
			continue;
		tasks[rank] = (struct sim_task){ .node = task->node.v,
						 .gpu_mask = task->gpu_mask,
						 .launch = task->launch,
						 .role = (uint8_t)shape_role(shape, rank) };
		a->live++;
		hold(engine, task->node.v, task->gpu_mask, 0, a->id);
	}
	a->left = record->left + record->leaving;
	for (uint32_t rank = 0; rank < record->tasks; rank++) {
		bool is_new = rank >= a->task_count || tasks[rank].launch != a->tasks[rank].launch;

		if (!is_new)
			continue;
		heap_push(engine,
			  (struct sim_item){
				  .at_ms = later(now_ms, engine->jobs[a->job].work.ready_ms),
				  .kind = ITEM_READY,
				  .attempt = a->id,
				  .rank = rank,
				  .launch = tasks[rank].launch });
	}
	a->tasks = tasks;
	a->task_count = record->tasks;
}

static void take_resized(struct engine_sim *engine, const struct facts *facts,
			 const struct event *e)
{
	struct sim_attempt *a;

	if (e->kind == EVENT_ATTEMPT_SHRUNK &&
	    (a = attempt_edit(engine, (uint32_t)e->attempt_shrunk.attempt)))
		take_shrunk(engine, a, &e->attempt_shrunk, e->time_ms);
	if (e->kind == EVENT_RANKS_LEFT &&
	    (a = attempt_edit(engine, (uint32_t)e->ranks_left.attempt)))
		take_left(engine, facts, a);
	if (e->kind == EVENT_ATTEMPT_GROWN &&
	    (a = attempt_edit(engine, (uint32_t)e->attempt_grown.attempt)))
		take_grown(engine, facts, a, e->time_ms);
}

void engine_sim_take(struct engine_sim *engine, const struct facts *facts, const struct event *e)
{
	struct sim_attempt *a;

	take_resized(engine, facts, e);

	if (e->kind == EVENT_ATTEMPT_PLACED)
		take_placed(engine, facts, e);
	if (e->kind == EVENT_ATTEMPT_RELEASED &&
	    (a = attempt_edit(engine, (uint32_t)e->attempt_released.attempt)))
		take_released(engine, a, e->time_ms);
	if (e->kind == EVENT_ATTEMPT_WARNED &&
	    (a = attempt_edit(engine, (uint32_t)e->attempt_warned.attempt)))
		take_warned(engine, a, e->time_ms);
	if (e->kind == EVENT_ATTEMPT_SPARED &&
	    (a = attempt_edit(engine, (uint32_t)e->attempt_spared.attempt)))
		a->warned = false;
	if (e->kind == EVENT_ATTEMPT_STOPPED &&
	    (a = attempt_edit(engine, (uint32_t)e->attempt_stopped.attempt)))
		take_stopped(engine, a, e);
}

/* Ranks of some roles end before the others. */
static void roles_run(struct engine_sim *engine, const struct sim_attempt *a, int64_t from_ms)
{
	const struct sim_job *job = &engine->jobs[a->job];

	for (uint32_t rank = 0; job->work.role_runtime_ms && rank < a->task_count; rank++) {
		int64_t all_ms = job->work.role_runtime_ms[a->tasks[rank].role],
			takes_ms = all_ms - a->base_ms;

		if (all_ms && all_ms != SIM_FOREVER)
			plan(engine, later(from_ms, takes_ms > 0 ? takes_ms : 0), ITEM_DONE, a,
			     rank);
	}
}

/* All ranks run: from here on work is done. */
static void attempt_runs(struct engine_sim *engine, struct sim_attempt *a, int64_t now_ms)
{
	const struct sim_job *job = &engine->jobs[a->job];
	int64_t extra_ms = a->resumed ? job->work.restart_ms : 0, left_ms;

	a->started_ms = now_ms;
	left_ms = job->work.runtime_ms == SIM_FOREVER ? SIM_FOREVER
						      : job->work.runtime_ms - a->base_ms;
	plan(engine, later(now_ms, later(extra_ms, left_ms > 0 ? left_ms : 0)), ITEM_FINISH, a, 0);
	roles_run(engine, a, later(now_ms, extra_ms));
	plan(engine, later(now_ms, job->work.fails_after_ms), ITEM_FAIL, a, 0);
	if (job->work.checkpoints &&
	    job->work.every_ms > 0) /* those complete before the engine's time are history */
		heap_push(engine,
			  (struct sim_item){
				  .at_ms = later(now_ms, (sim_work_saved(&job->work,
									 engine->now_ms - now_ms) +
							  1) * job->work.every_ms),
				  .kind = ITEM_CHECKPOINT_BEGIN,
				  .regular = true,
				  .attempt = a->id });
	if (a->warned && job->work.checkpoints)
		begin_checkpoint(engine, a, now_ms, false);
}

int64_t sim_work_saved(const struct sim_work *work, int64_t age_ms)
{
	if (!work->checkpoints || work->every_ms <= 0 || age_ms < work->takes_ms)
		return 0;
	return (age_ms - work->takes_ms) / work->every_ms;
}

void engine_sim_adopt(struct engine_sim *engine, const struct facts *facts, uint32_t attempt,
		      int64_t started_ms)
{
	struct sim_attempt *a = attempt_add(engine, facts, attempt);
	struct sim_job *job = &engine->jobs[a->job];
	const struct job *record = job_get(facts, (struct job_id){ a->job });
	int64_t saved = sim_work_saved(&job->work, engine->now_ms - started_ms);

	a->released = true;
	for (uint32_t rank = 0; rank < a->task_count; rank++)
		a->tasks[rank].state = SIM_TASK_RUNNING;
	attempt_runs(engine, a, started_ms);
	for (uint32_t n = 1; n <= record->checkpoints_made; n++) {
		int64_t work_ms =
			(saved - (int64_t)(record->checkpoints_made - n)) * job->work.every_ms;

		remember_saved(engine, job, n, work_ms);
		a->saved_ms = started_ms + work_ms + job->work.takes_ms;
	}
}

/* What happens, and its report. */

static struct event report_exit(const struct sim_attempt *a, uint32_t rank, int64_t at_ms)
{
	struct event e = event_make(EVENT_TASK_EXITED, at_ms, "engine");
	const struct sim_task *task = &a->tasks[rank];

	e.task_exited.attempt = a->id;
	e.task_exited.rank = rank;
	e.task_exited.cause = task->cause;
	e.task_exited.code = task->code;
	e.task_exited.never_ran = task->never_ran;
	e.task_exited.at_ms = at_ms;
	e.task_exited.launch = task->launch;
	return e;
}

static struct event report_rank(enum event_kind kind, const struct sim_attempt *a, uint32_t rank,
				int64_t at_ms)
{
	struct event e = event_make(kind, at_ms, "engine");

	if (kind == EVENT_TASK_READY) {
		e.task_ready.attempt = a->id;
		e.task_ready.rank = rank;
		e.task_ready.launch = a->tasks[rank].launch;
	} else {
		e.task_started.attempt = a->id;
		e.task_started.rank = rank;
		e.task_started.pid = 1000 + rank;
		e.task_started.at_ms = at_ms;
		e.task_started.launch = a->tasks[rank].launch;
	}
	return e;
}

static void send(struct engine_sim *engine, const struct event *report, int64_t at_ms)
{
	struct event *copy = arena_new(&engine->memory, struct event);

	*copy = *report;
	heap_push(engine, (struct sim_item){ .at_ms = at_ms, .kind = ITEM_REPORT, .report = copy });
}

static bool chance(struct sim_faults *faults, uint32_t per_mille)
{
	return per_mille && sim_random_below(&faults->random, 1000) < per_mille;
}

/* Puts a report on its way: at once, or as the faults have it. */
static void report(struct engine_sim *engine, struct event e)
{
	struct sim_faults *faults = &engine->faults;
	int64_t at_ms = engine->now_ms;

	if (chance(faults, faults->lose))
		return;
	if (chance(faults, faults->delay))
		at_ms += sim_random_below(&faults->random, (uint32_t)faults->delay_max_ms + 1);
	send(engine, &e, at_ms);
	if (chance(faults, faults->repeat))
		send(engine, &e,
		     at_ms + sim_random_below(&faults->random, (uint32_t)faults->delay_max_ms + 1));
}

static void rank_ends(struct engine_sim *engine, struct sim_attempt *a, uint32_t rank,
		      enum task_cause cause, int32_t code)
{
	struct sim_task *task = &a->tasks[rank];

	if (task->state == SIM_TASK_GONE)
		return;
	task->never_ran = task->state != SIM_TASK_RUNNING;
	task->state = SIM_TASK_GONE;
	task->cause = cause;
	task->code = code;
	a->live--;
	if (!task->part)
		hold(engine, task->node, task->gpu_mask, a->id, 0);
	report(engine, report_exit(a, rank, engine->now_ms));
}

static uint32_t rank_live(const struct sim_attempt *a)
{
	uint32_t rank = 0;

	while (rank + 1 < a->task_count && a->tasks[rank].state == SIM_TASK_GONE)
		rank++;
	return rank;
}

static void checkpoint_done(struct engine_sim *engine, const struct facts *facts,
			    struct sim_attempt *a, int64_t work_ms)
{
	const struct job *job = job_get(facts, (struct job_id){ a->job });
	struct event e = event_make(EVENT_CHECKPOINT_SAVED, engine->now_ms, "engine");

	a->saving = false;
	if (is_short(a) || job->attempt.v != a->id)
		return;
	e.checkpoint_saved.job = a->job;
	e.checkpoint_saved.attempt = a->id;
	e.checkpoint_saved.rank = rank_live(a);
	e.checkpoint_saved.launch = a->tasks[e.checkpoint_saved.rank].launch;
	e.checkpoint_saved.number = job->checkpoints_made + 1;
	e.checkpoint_saved.step = work_ms;
	e.checkpoint_saved.at_ms = engine->now_ms;
	e.checkpoint_saved.path = arena_printf(&engine->memory, "job-%u/%lld", a->job,
					       (long long)e.checkpoint_saved.number);
	a->saved_ms = engine->now_ms;
	remember_saved(engine, &engine->jobs[a->job], (uint32_t)e.checkpoint_saved.number, work_ms);
	send(engine, &e, engine->now_ms);
}

static void checkpoint_begins(struct engine_sim *engine, struct sim_attempt *a)
{
	if (!a->live || a->stopping)
		return;
	begin_checkpoint(engine, a, engine->now_ms, true);
	heap_push(engine, (struct sim_item){ .at_ms = later(engine->now_ms,
							    engine->jobs[a->job].work.every_ms),
					     .kind = ITEM_CHECKPOINT_BEGIN,
					     .regular = true,
					     .attempt = a->id });
}

static void rank_starts(struct engine_sim *engine, struct sim_attempt *a, uint32_t rank)
{
	uint32_t running = 0;

	if (a->tasks[rank].state != SIM_TASK_READY || a->stopping)
		return;
	a->tasks[rank].state = SIM_TASK_RUNNING;
	report(engine, report_rank(EVENT_TASK_STARTED, a, rank, engine->now_ms));
	for (uint32_t i = 0; i < a->task_count; i++)
		running += a->tasks[i].state == SIM_TASK_RUNNING;
	if (running == a->task_count - a->left && a->started_ms < 0)
		attempt_runs(engine, a, engine->now_ms);
}

/* The ranks of a running attempt that come later are started when they are ready. */
static void rank_is_ready(struct engine_sim *engine, struct sim_attempt *a, uint32_t rank)
{
	if (a->tasks[rank].state != SIM_TASK_PREPARING || a->stopping)
		return;
	a->tasks[rank].state = SIM_TASK_READY;
	report(engine, report_rank(EVENT_TASK_READY, a, rank, engine->now_ms));
	if (a->released)
		plan(engine, later(engine->now_ms, engine->jobs[a->job].work.start_ms),
		     ITEM_STARTED, a, rank);
}

static bool is_of_rank(enum item_kind kind)
{
	return kind == ITEM_READY || kind == ITEM_STARTED || kind == ITEM_EXIT ||
	       kind == ITEM_DONE || kind == ITEM_LEAVE;
}

/* Makes one planned thing happen. */
static void happen(struct engine_sim *engine, const struct facts *facts,
		   const struct sim_item *item)
{
	struct sim_attempt *a = attempt_edit(engine, item->attempt);

	CHECK(a);
	if (is_of_rank(item->kind) && item->launch != a->tasks[item->rank].launch)
		return; /* of an earlier start of it */
	switch (item->kind) {
	case ITEM_READY: rank_is_ready(engine, a, item->rank); return;
	case ITEM_STARTED: rank_starts(engine, a, item->rank); return;
	case ITEM_FINISH: engine_sim_finish(engine, a->id); return;
	case ITEM_DONE: rank_ends(engine, a, item->rank, CAUSE_EXIT, 0); return;
	case ITEM_FAIL: {
		int32_t code = engine->jobs[a->job].work.exit_code;

		rank_ends(engine, a, item->rank, CAUSE_EXIT, code ? code : 1);
		return;
	}
	case ITEM_CHECKPOINT_BEGIN: checkpoint_begins(engine, a); return;
	case ITEM_CHECKPOINT_DONE: checkpoint_done(engine, facts, a, item->work_ms); return;
	case ITEM_EXIT:
	case ITEM_LEAVE: rank_ends(engine, a, item->rank, CAUSE_STOPPED, 0); return;
	case ITEM_REPORT: break;
	}
	UNREACHABLE();
}

int64_t engine_sim_next_ms(const struct engine_sim *engine)
{
	return engine->item_count ? engine->items[0].at_ms : SIM_FOREVER;
}

bool engine_sim_is_busy(const struct engine_sim *engine)
{
	return engine->pressing > 0;
}

bool engine_sim_pop(struct engine_sim *engine, const struct facts *facts, int64_t now_ms,
		    struct event *ret)
{
	while (engine->item_count && engine->items[0].at_ms <= now_ms) {
		struct sim_item item = heap_pop(engine);

		if (engine->now_ms < item.at_ms)
			engine->now_ms = item.at_ms;
		if (item.kind != ITEM_REPORT) {
			happen(engine, facts, &item);
			continue;
		}
		*ret = *item.report;
		ret->time_ms = engine->now_ms;
		return true;
	}
	if (engine->now_ms < now_ms)
		engine->now_ms = now_ms;
	return false;
}

/* From outside. */

void engine_sim_finish(struct engine_sim *engine, uint32_t attempt)
{
	struct sim_attempt *a = attempt_edit(engine, attempt);

	for (uint32_t rank = 0; a && rank < a->task_count; rank++) {
		/* One that has just come had nothing left to do. */
		if (a->started_ms >= 0 && a->tasks[rank].state != SIM_TASK_GONE)
			a->tasks[rank].state = SIM_TASK_RUNNING;
		rank_ends(engine, a, rank, CAUSE_EXIT, 0);
	}
}

void engine_sim_end_rank(struct engine_sim *engine, uint32_t attempt, uint32_t rank,
			 enum task_cause cause, int32_t code)
{
	struct sim_attempt *a = attempt_edit(engine, attempt);

	if (a && rank < a->task_count)
		rank_ends(engine, a, rank, cause, code);
}

void engine_sim_node_down(struct engine_sim *engine, uint32_t node)
{
	for (uint32_t id = 1; id < engine->attempt_room; id++) {
		struct sim_attempt *a = attempt_edit(engine, id);

		for (uint32_t rank = 0; a && rank < a->task_count; rank++)
			if (a->tasks[rank].node == node)
				rank_ends(engine, a, rank, CAUSE_LOST, 0);
	}
}

void engine_sim_repeat(struct engine_sim *engine)
{
	for (uint32_t id = 1; id < engine->attempt_room; id++) {
		const struct sim_attempt *a = engine_sim_attempt(engine, id);

		for (uint32_t rank = 0; a && rank < a->task_count; rank++) {
			struct event e;

			if (a->tasks[rank].state == SIM_TASK_PREPARING)
				continue;
			if (a->tasks[rank].state == SIM_TASK_GONE)
				e = report_exit(a, rank, engine->now_ms);
			else
				e = report_rank(a->tasks[rank].state == SIM_TASK_READY
							? EVENT_TASK_READY
							: EVENT_TASK_STARTED,
						a, rank, engine->now_ms);
			send(engine, &e, engine->now_ms);
		}
	}
}
