/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/core_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/digest.h"
#include "core/placement/traits.h"
#include "core/scheduling/admit/admit.h"
#include "sim/play.h"
#include "sim/replay/foretold.h"
#include "sim/replay/network.h"
#include "sim/world.h"

enum {
	REQUEST_CAP = 64 << 20,
	PROGRESS_EVERY = 256,
	FORGET_JOBS = 256, /* of one event */
	FORGET_EVERY_MS = 10 * 60 * 1000
};

/* What of a job is done. An attempt that goes on from a checkpoint begins with `restart_ms` that are no progress. */
struct core_job {
	uint32_t index; /* in the workload */
	uint32_t starts;
	int64_t run_ms; /* of ended attempts, as the facts had it at the last start */
	int64_t done_ms;
	int64_t share; /* held now; 0 = it waits */
	int64_t since_ms; /* of that */
	double price; /* of what it holds, in millionths for an hour */
	uint32_t speed; /* of the GPUs that it has, or had last, in thousandths */
	uint32_t slowdown; /* by the network there, in thousandths; 1000 = none */
	bool resumed;
};

struct core_run {
	struct play play;
	const struct workload *workload;
	struct outcome *outcome;
	struct core_job *jobs; /* by job id */
	struct arena request;
	uint32_t running, waiting, ended;
	int64_t used, wanted;
	uint32_t foretell, waited; /* jobs that did not start at once */
	int64_t *started_ms; /* of all starts, rising */
	const struct availability *availability;
	uint32_t changed; /* of its changes */
	uint32_t started, day; /* those from `day` on are of the last 24 h */
	uint32_t *over; /* ids, in the order of their ends */
	uint32_t over_count, forgotten; /* of `over`, the first so many have left the facts */
	int64_t looked_ms;
};

/* --- how long it runs ---------------------------------------------------------------------------------------- */

static int64_t rest_ms(void *context, const struct facts *facts, uint32_t id, int64_t age_ms)
{
	const struct core_run *r = context;
	const struct core_job *job = &r->jobs[id];
	const struct workload_job *from = &r->workload->jobs[job->index];
	const int64_t rest =
		workload_ms_at(from->run_ms - job->done_ms, job->speed, job->slowdown) +
		(job->resumed ? from->restart_ms : 0) - age_ms;

	(void)facts;
	return rest > 0 ? rest : 1;
}

static uint32_t speed_of(const struct facts *facts, const struct job *job)
{
	const struct shape *shape = shape_get(facts, job->shape);
	const struct attempt *attempt = attempt_get(facts, job->attempt);
	uint32_t least = UINT32_MAX;

	for (uint32_t rank = 0; rank < attempt->tasks && shape->gpus; rank++) {
		const struct task *task = task_get(facts, attempt, rank);
		const uint32_t speed = shape_speed(shape, node_get(facts, task->node)->model);

		least = speed < least ? speed : least;
	}
	return least && least < UINT32_MAX ? least : SPEED_WHOLE;
}

/* 1000 where nobody describes the fabric, and of who does not talk. */
static uint32_t slowdown_of(const struct facts *facts, const struct job *job)
{
	const uint32_t slowdown = attempt_get(facts, job->attempt)->slowdown_permille;

	return slowdown > 1000 ? slowdown : 1000;
}

/* Its ranks stand in the order of the roles: the one with the rest is the last. */
static int64_t rank_share(const struct workload_job *from, uint32_t rank)
{
	if (from->gpu_part)
		return from->gpu_part;
	return (int64_t)(rank < from->tasks ? from->gpus : from->rest_gpus) * GPU_SHARE;
}

static double price_of(const struct facts *facts, const struct job *job,
		       const struct workload_job *from)
{
	const struct attempt *attempt = attempt_get(facts, job->attempt);
	double price = 0;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(facts, attempt, rank);

		price += (double)node_price(facts, node_get(facts, task->node)) *
			 (double)rank_share(from, rank) / (double)GPU_SHARE;
	}
	return price;
}

static int64_t saves_every_ms(void *context, const struct facts *facts, uint32_t id)
{
	const struct core_run *r = context;

	(void)facts;
	return r->workload->jobs[r->jobs[id].index].checkpoint_every_ms;
}

static void placed(void *context, const struct facts *facts, uint32_t id, int64_t at_ms)
{
	struct core_run *r = context;
	struct core_job *job = &r->jobs[id];
	const struct job *now = job_get(facts, (struct job_id){ id });
	const struct workload_job *from = &r->workload->jobs[job->index];
	struct outcome_job *out = &r->outcome->jobs[job->index];
	const int64_t more_ms = now->run_ms - job->run_ms,
		      restart_ms = job->resumed ? from->restart_ms : 0;

	if (more_ms > restart_ms)
		job->done_ms += workload_done_ms(more_ms - restart_ms, job->speed, job->slowdown);
	job->slowdown = slowdown_of(facts, now);
	job->speed = speed_of(facts, now);
	job->run_ms = now->run_ms;
	job->resumed = job->done_ms > 0;
	out->evictions = job->starts++;
	if (out->start_ms < 0) {
		out->start_ms = at_ms - WORLD_EPOCH_MS;
		r->started_ms[r->started++] = at_ms;
	}
	job->share = attempt_share(facts, attempt_get(facts, now->attempt));
	job->price = price_of(facts, now, from);
	job->since_ms = at_ms;
	r->used += job->share;
	r->running++;
	r->waiting--;
}

static void left(void *context, const struct facts *facts, uint32_t id)
{
	struct core_run *r = context;
	struct core_job *job = &r->jobs[id];
	struct outcome_job *out = &r->outcome->jobs[job->index];
	const int64_t held_ms = r->play.now_ms - job->since_ms;

	(void)facts;
	out->cost += job->price / 1e6 * (double)held_ms / 3600000;
	out->network_ms += outcome_slowed_ms(job->share, held_ms, job->slowdown);
	r->used -= job->share;
	job->share = 0;
	r->running--;
	r->waiting++;
}

static void ended(void *context, const struct facts *facts, uint32_t id, int64_t at_ms)
{
	struct core_run *r = context;
	const struct job *now = job_get(facts, (struct job_id){ id });
	struct core_job *job = &r->jobs[id];
	struct outcome_job *out = &r->outcome->jobs[job->index];

	out->end_ms = at_ms - WORLD_EPOCH_MS;
	out->used_ms = now->used_gpu_ms;
	out->lost_ms = now->lost_gpu_ms;
	r->wanted -= workload_share(&r->workload->jobs[job->index]);
	r->waiting--;
	r->ended++;
	r->over[r->over_count++] = id;
}

/* --- arrivals -------------------------------------------------------------------------------------------------- */

enum { NAME_TOLD_MAX = 24 };

/*
 * To the core, jobs whose names differ in digits alone are runs of one program. Where a name is nothing but a number, as in most public
 * traces, it says nothing of the kind: then jobs are alike that are as wide, which the name tells in letters ("gpus-bc": 12).
 */
static const char *name_told(const struct workload_job *from, char ret[NAME_TOLD_MAX])
{
	char digits[12];

	for (const char *c = from->name; *c; c++)
		if (*c < '0' || *c > '9')
			return from->name;
	snprintf(digits, sizeof digits, "%u",
		 (uint32_t)((workload_share(from) + (int64_t)GPU_SHARE - 1) / (int64_t)GPU_SHARE));
	for (char *c = digits; *c; c++)
		*c = (char)(*c - '0' + 'a');
	snprintf(ret, NAME_TOLD_MAX, "gpus-%s", digits);
	return ret;
}

/* What of an event lies elsewhere. */
struct lists {
	char name[NAME_TOLD_MAX];
	char key[DIGEST_HEX_MAX];
	int64_t speeds[WORKLOAD_MODELS_MAX];
	int64_t roles[2 * ROLE_NUMBERS];
};

/* Tasks that are alike, and one with the rest. */
static void roles_write(const struct workload_job *from, struct event_job_submitted *j,
			int64_t *room)
{
	const int64_t cpu = from->cpu_milli, memory = from->memory_mib;

	if (!from->rest_gpus)
		return;
	for (uint32_t role = 0; role < 2; role++) {
		int64_t *of = room + (size_t)role * ROLE_NUMBERS;

		of[ROLE_TASKS_MIN] = of[ROLE_TASKS_MAX] = role ? 1 : from->tasks;
		of[ROLE_GPUS] = role ? from->rest_gpus : from->gpus;
		of[ROLE_CPU_MILLI] = cpu;
		of[ROLE_MEMORY_MIB] = memory;
		of[ROLE_ENDS] = 0;
	}
	j->roles = "whole,rest";
	j->role_numbers = room;
	j->role_numbers_count = 2 * ROLE_NUMBERS;
	j->tasks_min = j->tasks_max = workload_tasks(from);
}

static void wishes_write(const struct workload_job *from, struct event_job_submitted *j)
{
	const struct workload_wishes *w = from->wishes;

	j->gpu_part_mib = from->gpu_part_mib;
	if (from->gpu_part_mib)
		j->gpu_part = 0;
	if (!w)
		return;
	j->slice = w->slice;
	if (*w->slice && strcmp(w->slice, SLICE_FIT) != 0)
		j->gpu_part = 0;
	j->require = w->require;
	j->prefer = w->prefer;
	j->spread = w->spread;
	j->regions = w->regions;
	j->labels = w->labels;
	j->tolerates = w->tolerates;
	j->min_driver = w->min_driver;
	j->min_cuda = w->min_cuda;
	j->window = w->window;
}

static struct event submission(const struct workload_job *from, struct lists *lists)
{
	struct event e = event_make(EVENT_JOB_SUBMITTED, 0, "replay");
	struct event_job_submitted *j = &e.job_submitted;

	j->name = name_told(from, lists->name);
	j->user = *from->user ? from->user : "user";
	j->queue = *from->queue ? from->queue : "default";
	j->kind = from->kind;
	j->tier = from->tier;
	j->priority = from->priority;
	j->tasks_min = j->tasks_max = from->tasks;
	j->gpus = from->gpus;
	j->gpu_part = from->gpu_part;
	j->models = from->models;
	j->gpu_memory_mib = from->gpu_memory_mib;
	j->cpu_milli = from->cpu_milli;
	j->memory_mib = from->memory_mib;
	j->limit_ms = from->limit_ms;
	j->estimate_ms = from->estimate_ms;
	j->deadline_ms = from->deadline_ms;
	j->preempts = 1;
	j->checkpoint = from->checkpoints;
	j->capacity = from->capacity;
	j->grace_ms = -1;
	j->restart_cost_ms = from->restart_ms;
	j->checkpoint_every_ms = from->checkpoint_every_ms;
	while (j->throughput_count < WORKLOAD_MODELS_MAX && from->speeds[j->throughput_count]) {
		lists->speeds[j->throughput_count] = from->speeds[j->throughput_count];
		j->throughput_count++;
	}
	j->throughput = lists->speeds;
	roles_write(from, j, lists->roles);
	wishes_write(from, j);
	j->body = j->body_mac = lists->key; /* nobody submits twice, so there is no client key */
	return e;
}

/* It is said of the best place: nobody is cut off for a slow one. */
static void limit_as_estimate(struct event_job_submitted *j)
{
	if (!j->estimate_ms)
		j->estimate_ms = j->limit_ms;
	j->limit_ms = 0;
}

static void arrive(struct core_run *r, uint32_t index)
{
	const struct workload_job *from = &r->workload->jobs[index];
	struct lists lists;
	struct digest digest = digest_of(&index, sizeof index);
	struct event e;
	struct err why = { 0 };
	uint32_t id = 0;

	digest_format(&digest, lists.key);
	e = submission(from, &lists);
	if (r->outcome->networked)
		limit_as_estimate(&e.job_submitted);
	e.time_ms = r->play.now_ms;
	arena_reset(&r->request);
	if (core_admit(&r->play.facts, r->play.view, &e, &r->request, &id, &why) != 0) {
		r->outcome->jobs[index].refused = 1;
		r->ended++;
		return;
	}
	play_offer(&r->play, &e);
	r->jobs[r->play.facts.jobs.count] = (struct core_job){ .index = index };
	r->wanted += workload_share(from);
	r->waiting++;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

/* Of those that came last: from job `first` on. */
static void ask(struct core_run *r, uint32_t first)
{
	const int64_t day_ms = r->play.now_ms - INT64_C(24) * 3600 * 1000;

	while (r->day < r->started && r->started_ms[r->day] < day_ms)
		r->day++;
	for (uint32_t id = first; r->foretell && id <= r->play.facts.jobs.count; id++)
		if (!r->jobs[id].starts && ++r->waited % r->foretell == 0)
			foretold_ask(r->outcome, &r->play, r->jobs[id].index, id, r->waiting - 1,
				     r->started - r->day);
}

static int64_t change_ms(const struct core_run *r)
{
	return r->availability && r->changed < r->availability->count
		       ? r->availability->changes[r->changed].at_ms + WORLD_EPOCH_MS
		       : PLAY_NEVER;
}

static void nodes_change(struct core_run *r, int64_t at_ms)
{
	while (change_ms(r) <= at_ms) {
		const struct availability_change *c = &r->availability->changes[r->changed++];
		const struct node_id id = facts_node_find(&r->play.facts, c->node);
		const bool is = node_get(&r->play.facts, id)->state != NODE_DOWN;

		if (is != c->there)
			play_node(&r->play, id.v, c->there);
	}
}

static int nodes_known(const struct facts *facts, const struct availability *a, struct err *err)
{
	for (uint32_t i = 0; a && i < a->count; i++)
		if (!facts_node_find(facts, a->changes[i].node).v)
			return availability_no_node(a, i, err);
	return 0;
}

/*
 * As a daemon does (daemon/feeder.c): what ended long ago leaves the facts, which grow with what runs and not with time. The last to end
 * of each event comes first, so that a page of rows is looked through once.
 */
static void forget(struct core_run *r)
{
	int64_t ids[FORGET_JOBS];
	struct event e = event_make(EVENT_JOBS_FORGOTTEN, 0, "replay");
	uint32_t count;

	if (r->play.now_ms - r->looked_ms < FORGET_EVERY_MS)
		return;
	r->looked_ms = r->play.now_ms;
	do {
		for (count = 0;
		     count < FORGET_JOBS && r->forgotten < r->over_count &&
		     job_may_be_forgotten(&r->play.facts, (struct job_id){ r->over[r->forgotten] });
		     r->forgotten++)
			ids[FORGET_JOBS - ++count] = r->over[r->forgotten];
		e.jobs_forgotten.jobs = ids + FORGET_JOBS - count;
		e.jobs_forgotten.jobs_count = count;
		if (count)
			play_offer(&r->play, &e);
	} while (count == FORGET_JOBS);
}

static void step(struct core_run *r, uint32_t *arrived)
{
	const struct workload *w = r->workload;
	const uint32_t first = r->play.facts.jobs.count + 1;
	const int64_t next_ms = play_next_ms(&r->play), comes_ms = change_ms(r);
	int64_t at_ms =
		*arrived < w->count ? w->jobs[*arrived].submit_ms + WORLD_EPOCH_MS : PLAY_NEVER;

	if (next_ms < at_ms)
		at_ms = next_ms;
	if (comes_ms < at_ms)
		at_ms = comes_ms;
	play_go(&r->play, at_ms);
	nodes_change(r, at_ms);
	while (*arrived < w->count && w->jobs[*arrived].submit_ms + WORLD_EPOCH_MS <= at_ms)
		arrive(r, (*arrived)++);
	(void)play_settle(&r->play);
	ask(r, first);
	forget(r);
	outcome_note(r->outcome, &(struct moment){ .at_ms = at_ms - WORLD_EPOCH_MS,
						   .used = r->used,
						   .wanted = r->wanted,
						   .running = r->running,
						   .waiting = r->waiting });
}

/* Nodes may still come while jobs wait; a cluster that is empty needs no more of them. */
static bool goes_on(const struct core_run *r, uint32_t arrived)
{
	return arrived < r->workload->count || play_next_ms(&r->play) != PLAY_NEVER ||
	       (r->ended < r->workload->count && change_ms(r) != PLAY_NEVER);
}

int core_run(const char *name, const struct scenario *cluster, const struct workload *w,
	     const struct core_run_options *options, struct outcome *ret, struct err *err)
{
	const struct core_run_options o = options ? *options : (struct core_run_options){ 0 };
	struct core_run r = { .workload = w,
			      .outcome = ret,
			      .foretell = o.foretell,
			      .availability = o.availability };
	struct facts facts;
	uint32_t arrived = 0, steps = 0;
	int rc = network_facts(cluster, &facts, err);

	if (rc < 0)
		return rc;
	rc = nodes_known(&facts, o.availability, err);
	if (rc < 0) {
		facts_deinit(&facts);
		return rc;
	}
	outcome_init(ret, name, w);
	ret->networked = cluster->draft != NULL;
	for (uint32_t i = 0; i < cluster->node_count; i++)
		ret->capacity += (int64_t)cluster->nodes[i].gpus * GPU_SHARE;
	r.jobs = calloc((size_t)w->count + 1, sizeof *r.jobs);
	r.started_ms = calloc((size_t)w->count + 1, sizeof *r.started_ms);
	r.over = calloc((size_t)w->count + 1, sizeof *r.over);
	CHECK(r.jobs && r.started_ms && r.over);
	arena_init(&r.request, REQUEST_CAP);
	r.play.context = &r;
	r.play.rest_ms = rest_ms;
	r.play.saves_every_ms = saves_every_ms;
	r.play.placed = placed;
	r.play.left = left;
	r.play.ended = ended;
	play_init(&r.play, &facts, WORLD_EPOCH_MS);
	while (goes_on(&r, arrived)) {
		step(&r, &arrived);
		if (o.progress && ++steps % PROGRESS_EVERY == 0)
			o.progress(o.context, r.ended, w->count);
	}
	ret->turns = r.play.turns;
	ret->forgotten = r.forgotten;
	ret->priced = true;
	play_deinit(&r.play);
	facts_deinit(&facts);
	arena_deinit(&r.request);
	free(r.jobs);
	free(r.started_ms);
	free(r.over);
	return 0;
}
