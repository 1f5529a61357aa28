/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_states FIRST COUNT: random states in which a job waits for one to three causes at once. For each state
 *
 *	every cause that was built in must be named
 *	the change that is named as the smallest is made to a world of its own, and there the job must start
 *	with any part of it left out (any proper part, when there are few) it must not
 *	a part that is printed as a command must work when that is typed after the submission
 *	every line must have a code, name only holders of GPUs that the job accepts, and tell no start beside the estimate
 *
 * The changed worlds are not the explainer's: the job is submitted anew with the smaller wishes, jobs end because their ranks
 * exit, limits and nodes are set by events, and decide runs until all is quiet.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/core.h"
#include "core/placement/traits.h"

enum cause {
	C_HOLD,
	C_DEPENDENCY,
	C_LIMIT,
	C_MODEL,
	C_MEMORY,
	C_CPU,
	C_RAM,
	C_LEVEL,
	C_SIZE,
	C_BUSY,
	C_FRAGMENTS,
	C_CORDON,
	C_ASIDE,
	C_GUARANTEE,
	C_RESERVATION,
	C_PROMISE,
	C_LINE,
	C_DRIVER,
	C_LABEL,
	C_REGION,
	C_TAINT,
	C_WINDOW,
	C_APART,
	C_COUNT
};

enum { MINUTE = 60000, QUIET_MAX = 400, ALL_SUBSETS = 6 };

/* What may stand beside what: these make each other untrue or the same. */
#define ROOM (1 << C_BUSY | 1 << C_FRAGMENTS | 1 << C_CORDON | 1 << C_ASIDE)
#define OWN_WORLD (1 << C_RESERVATION | 1 << C_PROMISE | 1 << C_LINE)

struct world {
	struct facts facts;
	struct view *view;
};

struct state {
	struct world base; /* without the job */
	struct event job; /* its submission */
	uint32_t behind; /* so many equal ones come after it */
	uint32_t causes; /* bits */
	uint64_t random;
	struct arena memory;
	uint32_t nodes, dependency;
	int64_t gpus[16];
};

static uint32_t failures;
static uint64_t changes, parts_told, causes_built, lines_told, commands_typed, limits_typed;

/* --- chance ------------------------------------------------------------------------------------------------------ */

static uint32_t below(struct state *s, uint32_t limit)
{
	uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % limit);
}

static bool has(const struct state *s, enum cause cause)
{
	return s->causes >> cause & 1;
}

/* --- a world and its engine ---------------------------------------------------------------------------------------- */

static void put(struct world *w, struct event *e)
{
	e->seq = w->facts.seq + 1;
	if (e->time_ms < w->facts.now_ms)
		e->time_ms = w->facts.now_ms;
	apply(&w->facts, e);
	view_follow(w->view, &w->facts, e);
}

static void exit_all(struct world *w, const struct attempt *a, uint32_t id, enum task_cause cause)
{
	for (uint32_t rank = 0, tasks = a->tasks; rank < tasks; rank++) {
		struct event e = event_make(EVENT_TASK_EXITED, 0, "test");

		e.task_exited.attempt = id;
		e.task_exited.rank = rank;
		e.task_exited.cause = cause;
		put(w, &e);
	}
}

/* The engine does at once what it is told. True when it did anything. */
static bool engine_run(struct world *w)
{
	bool any = false;

	for (uint32_t id = 1; id <= w->facts.attempts.count; id++) {
		const struct attempt *a = attempt_get(&w->facts, (struct attempt_id){ id });
		bool ready = a->state == ATTEMPT_PREPARING && a->ready < a->tasks;
		bool start = a->state == ATTEMPT_ACTIVE && a->started < a->tasks;

		for (uint32_t rank = 0, tasks = a->tasks; (ready || start) && rank < tasks;
		     rank++) {
			struct event e = event_make(ready ? EVENT_TASK_READY : EVENT_TASK_STARTED,
						    0, "test");

			e.task_ready.attempt = e.task_started.attempt = id;
			e.task_ready.rank = e.task_started.rank = rank;
			put(w, &e);
		}
		if (a->state == ATTEMPT_STOPPING && a->exited < a->tasks)
			exit_all(w, a, id, CAUSE_STOPPED);
		else if (!ready && !start)
			continue;
		any = true;
	}
	return any;
}

/* Until nothing more happens by itself within the grace of a victim. */
static void settle(struct world *w)
{
	struct decisions d;
	struct arena step;
	int64_t until_ms = w->facts.now_ms + 30 * MINUTE;
	bool more = true;

	arena_init(&step, (size_t)1 << 28);
	for (int i = 0; more; i++) {
		CHECK(i < QUIET_MAX);
		arena_reset(&step);
		decide(&w->facts, w->view, UINT64_C(1) << 40, &step, &d);
		for (uint32_t k = 0; k < d.count; k++)
			put(w, &d.events[k]);
		more = engine_run(w) || d.count || d.more;
		if (!more && d.wake_ms && d.wake_ms <= until_ms) {
			struct event e = event_make(EVENT_CLOCK_TICKED, d.wake_ms, "test");

			put(w, &e);
			more = true;
		}
	}
	arena_deinit(&step);
}

static struct event submission(const struct world *w, const char *name, const char *queue)
{
	struct event e = event_make(EVENT_JOB_SUBMITTED, 0, "test");

	e.job_submitted.job = (int64_t)w->facts.jobs.count + 1;
	e.job_submitted.name = name;
	e.job_submitted.user = "ann";
	e.job_submitted.queue = queue;
	e.job_submitted.kind = KIND_BATCH;
	e.job_submitted.tier = TIER_STANDARD;
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = 1;
	e.job_submitted.gpus = 1;
	e.job_submitted.preempts = 1;
	e.job_submitted.grace_ms = -1;
	return e;
}

static void queue_set(struct world *w, const char *name, int64_t guarantee, int64_t limit)
{
	struct event e = event_make(EVENT_QUEUE_SET, 0, "test");

	e.queue_set.name = name;
	e.queue_set.parent = "";
	e.queue_set.team = "";
	e.queue_set.guarantee_share = guarantee * GPU_SHARE;
	e.queue_set.limit_share = limit < 0 ? -1 : limit * GPU_SHARE;
	e.queue_set.weight = 1;
	put(w, &e);
}

static void node_add(struct state *s, const char *model, int64_t gpus)
{
	struct event e = event_make(EVENT_NODE_SET, 1000, "test");

	e.node_set.name = arena_printf(&s->memory, "n%u", s->nodes);
	e.node_set.gpus = s->gpus[s->nodes] = gpus;
	e.node_set.model = model;
	e.node_set.gpu_memory_mib = 81920;
	e.node_set.cpu_milli = 64000;
	e.node_set.ram_mib = 262144;
	e.node_set.driver = "550.54";
	e.node_set.domains = arena_printf(&s->memory, "r%u", s->nodes / 2);
	s->nodes++;
	put(&s->base, &e);
}

static void world_begin(struct state *s)
{
	struct event levels = event_make(EVENT_LEVELS_SET, 1000, "test"),
		     policy = event_policy_make(1000, "test");

	facts_init(&s->base.facts);
	s->base.view = view_create(&s->base.facts);
	levels.levels_set.levels = "rack";
	put(&s->base, &levels);
	policy.policy_set.min_runtime_ms = 0;
	policy.policy_set.grace_ms = 10 * MINUTE;
	put(&s->base, &policy);
	queue_set(&s->base, "default", 0, -1);
}

/* --- states ----------------------------------------------------------------------------------------------------------- */

static void causes_choose(struct state *s)
{
	uint32_t count = 1 + below(s, 3);

	while ((uint32_t)__builtin_popcount(s->causes) < count) {
		enum cause cause = (enum cause)below(s, C_COUNT);
		uint32_t bit = UINT32_C(1) << cause;

		if ((bit | s->causes) & OWN_WORLD &&
		    (s->causes | bit) & ~(bit & OWN_WORLD) & ~(s->causes & OWN_WORLD) &
			    ~(UINT32_C(1) << C_HOLD | UINT32_C(1) << C_DEPENDENCY))
			continue; /* these have worlds of their own */
		if ((bit & OWN_WORLD && s->causes & OWN_WORLD) || (bit & ROOM && s->causes & ROOM))
			continue;
		if ((bit | s->causes) >> C_SIZE & 1 && (bit | s->causes) >> C_LEVEL & 1)
			continue;
		if ((bit | s->causes) >> C_FRAGMENTS & 1 &&
		    (bit | s->causes) & (1 << C_LEVEL | 1 << C_SIZE))
			continue; /* wide enough, it is short of GPUs in all */
		if ((bit | s->causes) >> C_FRAGMENTS & 1 && (bit | s->causes) >> C_APART & 1)
			continue; /* no node is open to it */
		s->causes |= bit;
	}
}

/* The dependency needs no GPU, so that its end gives nobody room. */
static void dependency_add(struct state *s)
{
	struct event e = submission(&s->base, "before", "default");

	if (!has(s, C_DEPENDENCY))
		return;
	s->dependency = (uint32_t)e.job_submitted.job;
	e.job_submitted.gpus = 0;
	put(&s->base, &e);
}

/* A job of higher priority waits for all GPUs until another ends; the job would fit, but may run too long. */
static void reservation_world(struct state *s)
{
	struct event runs = submission(&s->base, "runs", "default"), wide;
	int64_t gpus = 0;

	node_add(s, "H100-80GB", 4 + below(s, 4));
	node_add(s, "H100-80GB", 4);
	gpus = s->gpus[0] + s->gpus[1];
	runs.job_submitted.tasks_min = runs.job_submitted.tasks_max = 1 + below(s, 3);
	runs.job_submitted.limit_ms = (60 + (int64_t)below(s, 600)) * MINUTE;
	runs.job_submitted.priority = 60;
	put(&s->base, &runs);
	dependency_add(s);
	settle(&s->base);
	wide = submission(&s->base, "wide", "default");
	wide.job_submitted.tasks_min = wide.job_submitted.tasks_max = gpus;
	wide.job_submitted.models = "H100-80GB";
	wide.job_submitted.priority = 50;
	put(&s->base, &wide);
	settle(&s->base);
	s->job = submission(&s->base, "target", "default");
	s->job.job_submitted.models = "H100-80GB";
}

/* What is free of a node is promised, with what a victim holds of it, to a job of higher priority. */
static void promise_world(struct state *s)
{
	struct event victim = submission(&s->base, "victim", "default"), high;

	node_add(s, "H100-80GB", 2 + below(s, 6));
	victim.job_submitted.tasks_min = victim.job_submitted.tasks_max =
		1 + below(s, (uint32_t)s->gpus[0] - 1);
	victim.job_submitted.checkpoint = 1;
	victim.job_submitted.priority = -50;
	put(&s->base, &victim);
	dependency_add(s);
	settle(&s->base);
	high = submission(&s->base, "high", "default");
	high.job_submitted.tasks_min = high.job_submitted.tasks_max = s->gpus[0];
	high.job_submitted.models = "H100-80GB";
	high.job_submitted.priority = 1 + below(s, 9);
	put(&s->base, &high);
	{
		struct decisions d;
		struct arena step;

		arena_init(&step, (size_t)1 << 28); /* one turn only: the victim winds down */
		decide(&s->base.facts, s->base.view, UINT64_C(1) << 40, &step, &d);
		for (uint32_t k = 0; k < d.count; k++)
			put(&s->base, &d.events[k]);
		arena_deinit(&step);
	}
	s->job = submission(&s->base, "target", "default");
	s->job.job_submitted.models = "H100-80GB";
	s->job.job_submitted.preempts = below(s, 2);
}

/* One turn of the core, and of the engine what it has done of that by now: nothing, or all but the start. */
static void turn_half(struct state *s)
{
	uint32_t done = below(s, 3);
	struct decisions d;
	struct arena step;

	arena_init(&step, (size_t)1 << 28);
	decide(&s->base.facts, s->base.view, UINT64_C(1) << 40, &step, &d);
	for (uint32_t k = 0; k < d.count; k++)
		put(&s->base, &d.events[k]);
	arena_deinit(&step);
	if (done == 1)
		(void)engine_run(&s->base);
	else if (done == 2)
		settle(&s->base);
}

/* A job that holds a node of another model, with more GPUs than anybody else. */
static void foreign_add(struct state *s)
{
	struct event e = submission(&s->base, "foreign", "default");

	node_add(s, "L4", 16);
	e.job_submitted.gpus = 16;
	e.job_submitted.models = "L4";
	put(&s->base, &e);
}

/* One job holds all GPUs: placed, preparing or running. The target waits in a line of equal ones, some before, many behind. */
static void line_world(struct state *s)
{
	struct event holder = submission(&s->base, "holder", "default");
	uint32_t before = below(s, 2) * below(s, 4);

	node_add(s, "H100-80GB", 2 + below(s, 7));
	if (below(s, 2))
		foreign_add(s);
	dependency_add(s);
	settle(&s->base);
	holder = submission(&s->base, "holder", "default");
	holder.job_submitted.gpus = below(s, 2) ? s->gpus[0] : 1;
	holder.job_submitted.tasks_min = holder.job_submitted.tasks_max =
		s->gpus[0] / holder.job_submitted.gpus;
	holder.job_submitted.limit_ms = below(s, 2) * 600 * MINUTE;
	put(&s->base, &holder);
	turn_half(s);
	s->job = submission(&s->base, "target", "default");
	s->job.job_submitted.models = "H100-80GB";
	for (uint32_t i = 0; i < before; i++) {
		struct event e = s->job;

		e.job_submitted.job = (int64_t)s->base.facts.jobs.count + 1;
		e.job_submitted.name = "before";
		put(&s->base, &e);
	}
	s->behind = below(s, 40);
}

/* Those in line behind the target, as the target was submitted. */
static void behind_put(struct world *w, const struct state *s)
{
	for (uint32_t i = 0; i < s->behind; i++) {
		struct event e = s->job;

		e.job_submitted.job = (int64_t)w->facts.jobs.count + 1;
		e.job_submitted.name = "behind";
		e.job_submitted.held = 0;
		e.job_submitted.depends_count = 0;
		put(w, &e);
	}
}

/* Single GPUs are taken by jobs that may not be evicted for the target; `spare` stay free on each node. */
static void fill(struct state *s, int64_t spare)
{
	int64_t count = 0;

	for (uint32_t n = 0; n < s->nodes; n++)
		count += s->gpus[n] > spare ? s->gpus[n] - spare : 0;
	for (int64_t i = 0; i < count; i++) {
		struct event e = submission(&s->base, "filler", "q");

		e.job_submitted.priority = 70;
		e.job_submitted.tolerates = "kept";
		e.job_submitted.limit_ms = (60 + (int64_t)below(s, 1000)) * MINUTE;
		put(&s->base, &e);
	}
	settle(&s->base);
}

/* Packing would fill nodes one by one, so that each keeps one free GPU the fillers are put there by hand. */
static void fill_fragments(struct state *s)
{
	for (uint32_t n = 0; n < s->nodes; n++) {
		for (int64_t g = 1; g < s->gpus[n]; g++) {
			struct event e = submission(&s->base, "filler", "q"),
				     placed = event_make(EVENT_ATTEMPT_PLACED, 0, "test");
			int64_t node = facts_node_find(&s->base.facts,
						       arena_printf(&s->memory, "n%u", n))
					       .v,
				mask = INT64_C(1) << g;

			e.job_submitted.priority = 70;
			e.job_submitted.tolerates = "kept";
			e.job_submitted.limit_ms = (60 + (int64_t)below(s, 1000)) * MINUTE;
			put(&s->base, &e);
			placed.attempt_placed.job = e.job_submitted.job;
			placed.attempt_placed.attempt = (int64_t)s->base.facts.attempts.count + 1;
			placed.attempt_placed.nodes = &node;
			placed.attempt_placed.masks = &mask;
			placed.attempt_placed.nodes_count = placed.attempt_placed.masks_count = 1;
			put(&s->base, &placed);
		}
	}
	settle(&s->base);
}

static void nodes_close(struct state *s)
{
	for (uint32_t n = 1; n <= s->base.facts.nodes.count; n++) {
		struct event state = event_make(EVENT_NODE_STATE, 0, "test"),
			     aside = event_make(EVENT_GPU_STATE, 0, "test");
		const struct node *node = node_get(&s->base.facts, (struct node_id){ n });

		state.node_state.node = aside.gpu_state.node = n;
		state.node_state.state = NODE_CORDONED;
		aside.gpu_state.mask = (INT64_C(1) << node->gpu_count) - 1;
		aside.gpu_state.set_aside = 1;
		if (has(s, C_CORDON))
			put(&s->base, &state);
		else if (has(s, C_ASIDE))
			put(&s->base, &aside);
	}
}

static void wishes_add(struct state *s)
{
	struct event_job_submitted *j = &s->job.job_submitted;
	int64_t all = 0, widest = 0;

	for (uint32_t n = 0; n < s->nodes; n++) {
		int64_t rack = s->gpus[n] + (n % 2 == 0 && n + 1 < s->nodes ? s->gpus[n + 1] : 0);

		all += s->gpus[n];
		widest = n % 2 == 0 && rack > widest ? rack : widest;
	}
	if (has(s, C_MODEL))
		j->models = "B200";
	if (has(s, C_MEMORY))
		j->gpu_memory_mib = 81921 + below(s, 100000);
	if (has(s, C_CPU))
		j->cpu_milli = 64001 + below(s, 100000);
	if (has(s, C_RAM))
		j->memory_mib = 262145 + below(s, 100000);
	if (has(s, C_DRIVER))
		j->min_driver = below(s, 2) ? "550.55" : "999";
	if (has(s, C_LABEL))
		j->labels = "disk=fast,site=here";
	if (has(s, C_REGION))
		j->regions = "eu";
	if (has(s, C_WINDOW))
		j->window = "sat 10:00-18:00"; /* it is Thursday */
	if (has(s, C_APART))
		j->apart_from = "app=web,app=db";
	if (has(s, C_FRAGMENTS)) {
		j->gpus = 2;
		j->tasks_min = j->tasks_max = 1;
	}
	if (has(s, C_LEVEL)) {
		j->require = "rack";
		j->gpus = 1;
		j->tasks_min = j->tasks_max = widest + 1 + below(s, (uint32_t)(all - widest));
	}
	if (has(s, C_SIZE)) {
		j->gpus = 1;
		j->tasks_min = j->tasks_max = all + 1 + below(s, 8);
	}
}

/* On each node a job from which the target keeps away. */
static void fill_apart(struct state *s)
{
	for (uint32_t n = 0; has(s, C_APART) && n < s->nodes; n++) {
		struct event e = submission(&s->base, "web", "default"),
			     placed = event_make(EVENT_ATTEMPT_PLACED, 0, "test");
		int64_t node = facts_node_find(&s->base.facts, arena_printf(&s->memory, "n%u", n))
				       .v,
			mask = 0;

		e.job_submitted.gpus = 0;
		e.job_submitted.own_labels = "app=web";
		e.job_submitted.tolerates = "kept";
		put(&s->base, &e);
		placed.attempt_placed.job = e.job_submitted.job;
		placed.attempt_placed.attempt = (int64_t)s->base.facts.attempts.count + 1;
		placed.attempt_placed.nodes = &node;
		placed.attempt_placed.masks = &mask;
		placed.attempt_placed.nodes_count = placed.attempt_placed.masks_count = 1;
		put(&s->base, &placed);
	}
	settle(&s->base);
}

/* Whoever fills the nodes tolerates what the target does not. */
static void nodes_taint(struct state *s)
{
	for (uint32_t n = 1; has(s, C_TAINT) && n <= s->base.facts.nodes.count; n++) {
		struct event e = event_make(EVENT_NODE_MARKED, 0, "test");

		e.node_marked.node = n;
		e.node_marked.labels = "";
		e.node_marked.taints = "kept=late";
		put(&s->base, &e);
	}
}

static void general_world(struct state *s)
{
	uint32_t nodes = 3 + below(s, 4);
	int64_t need, held = 0;

	for (uint32_t n = 0; n < nodes; n++)
		node_add(s, below(s, 4) ? "H100-80GB" : "A100-80GB", INT64_C(2) << below(s, 3));
	queue_set(&s->base, "q", 0, -1);
	dependency_add(s);
	settle(&s->base);
	s->job = submission(&s->base, "target", "q");
	s->job.job_submitted.tasks_min = s->job.job_submitted.tasks_max = 1 + below(s, 3);
	s->job.job_submitted.gpus = 1 + below(s, 2);
	s->job.job_submitted.cpu_milli = below(s, 2) * 4000;
	wishes_add(s);
	need = s->job.job_submitted.tasks_min * s->job.job_submitted.gpus;
	if (has(s, C_GUARANTEE)) {
		struct event e = submission(&s->base, "critical", "q");

		queue_set(&s->base, "q", need, -1);
		e.job_submitted.tier = s->job.job_submitted.tier = TIER_CRITICAL;
		e.job_submitted.tolerates = "kept";
		put(&s->base, &e);
		settle(&s->base);
	}
	nodes_taint(s);
	if (has(s, C_BUSY))
		fill(s, 0);
	if (has(s, C_FRAGMENTS))
		fill_fragments(s);
	fill_apart(s);
	for (uint32_t id = 1; id <= s->base.facts.jobs.count; id++) {
		const struct job *job = job_get(&s->base.facts, (struct job_id){ id });

		if (job->queue.v == facts_queue_find(&s->base.facts, "q").v && job->attempt.v)
			held += shape_get(&s->base.facts, job->shape)->gpus;
	}
	if (has(s, C_LIMIT))
		queue_set(&s->base, "q", has(s, C_GUARANTEE) ? need : 0, held + need - 1);
}

static void state_make(struct state *s, uint64_t seed)
{
	*s = (struct state){ .random = seed * UINT64_C(0x2545f4914f6cdd1d) };
	arena_init(&s->memory, (size_t)1 << 24);
	causes_choose(s);
	world_begin(s);
	if (has(s, C_RESERVATION))
		reservation_world(s);
	else if (has(s, C_PROMISE))
		promise_world(s);
	else if (has(s, C_LINE))
		line_world(s);
	else
		general_world(s);
	s->job.job_submitted.held = has(s, C_HOLD);
	if (has(s, C_DEPENDENCY)) {
		int64_t *before = arena_new(&s->memory, int64_t);

		*before = s->dependency;
		s->job.job_submitted.depends = before;
		s->job.job_submitted.depends_count = 1;
	}
	nodes_close(s);
	s->job.job_submitted.job = (int64_t)s->base.facts.jobs.count + 1;
}

static void state_free(struct state *s)
{
	view_destroy(s->base.view);
	facts_deinit(&s->base.facts);
	arena_deinit(&s->memory);
}

/* --- changed worlds ------------------------------------------------------------------------------------------------------ */

static void trait_drop(struct event_job_submitted *j, enum trait trait)
{
	if (trait == TRAIT_DRIVER)
		j->min_driver = "";
	else if (trait == TRAIT_LABEL)
		j->labels = "";
	else if (trait == TRAIT_REGION)
		j->regions = "";
}

static void wish_change(const struct state *s, struct event_job_submitted *j,
			const struct change_part *part)
{
	if (part->kind == CHANGE_RELEASE)
		j->held = 0;
	else if (part->kind == CHANGE_MODELS)
		j->models = "";
	else if (part->kind == CHANGE_GPU_MEMORY)
		j->gpu_memory_mib = part->value;
	else if (part->kind == CHANGE_CPU)
		j->cpu_milli = part->value;
	else if (part->kind == CHANGE_RAM)
		j->memory_mib = part->value;
	else if (part->kind == CHANGE_LEVEL)
		j->require = part->value == LEVEL_NODE ? "node"
			     : part->value             ? facts_name(&s->base.facts,
								    s->base.facts.level[part->value - 1])
						       : "";
	else if (part->kind == CHANGE_TASKS)
		j->tasks_min = j->tasks_max = part->value;
	else if (part->kind == CHANGE_GPUS)
		j->gpus = part->value;
	else if (part->kind == CHANGE_RUN_LIMIT)
		j->limit_ms = part->value;
	else if (part->kind == CHANGE_PRIORITY)
		j->priority = part->value;
	else if (part->kind == CHANGE_STANDARD)
		j->tier = TIER_STANDARD;
	else if (part->kind == CHANGE_WINDOW)
		j->window = "";
	else if (part->kind == CHANGE_APART)
		j->apart_from = j->own_labels = "";
	else if (part->kind == CHANGE_TOLERATE)
		j->tolerates = "kept=late";
	else if (part->kind == CHANGE_TRAIT && part->value)
		j->min_driver = "550.54"; /* the newest there is */
	else if (part->kind == CHANGE_TRAIT)
		trait_drop(j, (enum trait)part->id);
}

static void job_ends(struct world *w, uint32_t id)
{
	const struct job *job = job_get(&w->facts, (struct job_id){ id });
	struct event e = event_make(EVENT_JOB_CANCEL_ASKED, 0, "test");

	e.job_cancel_asked.job = id;
	if (job->attempt.v && attempt_get(&w->facts, job->attempt)->state != ATTEMPT_PREPARING)
		exit_all(w, attempt_get(&w->facts, job->attempt), job->attempt.v, CAUSE_EXIT);
	else
		put(w, &e);
}

static void world_change(struct world *w, const struct change_part *part)
{
	struct event state = event_make(EVENT_NODE_STATE, 0, "test"),
		     gpus = event_make(EVENT_GPU_STATE, 0, "test");
	const struct queue *queue;

	state.node_state.node = gpus.gpu_state.node = part->id;
	gpus.gpu_state.mask = part->value;
	if (part->kind == CHANGE_JOB_ENDS)
		job_ends(w, part->id);
	else if (part->kind == CHANGE_NODE_READY)
		put(w, &state);
	else if (part->kind == CHANGE_GPUS_BACK)
		put(w, &gpus);
	else if (part->kind == CHANGE_LIMIT) {
		queue = queue_get(&w->facts, (struct queue_id){ part->id });
		queue_set(w, "q", queue->guarantee_share / GPU_SHARE, part->value / GPU_SHARE);
	}
}

/* Does the job start in a world with these parts of the change? */
static bool starts_with(const struct state *s, const struct explain_change *c, uint64_t which)
{
	struct world w;
	struct event job = s->job;
	uint32_t id = (uint32_t)job.job_submitted.job;
	bool starts;

	facts_freeze(&s->base.facts, &w.facts);
	w.view = view_create(&w.facts);
	for (uint32_t i = 0; i < c->part_count; i++)
		if (i >= 64 || which >> i & 1)
			wish_change(s, &job.job_submitted, &c->parts[i]);
	put(&w, &job);
	CHECK(w.facts.jobs.count == id);
	behind_put(&w, s);
	for (uint32_t i = 0; i < c->part_count; i++)
		if (i >= 64 || which >> i & 1)
			world_change(&w, &c->parts[i]);
	settle(&w);
	starts = job_is_live(job_get(&w.facts, (struct job_id){ id }));
	view_destroy(w.view);
	facts_deinit(&w.facts);
	return starts;
}

/* --- checks ----------------------------------------------------------------------------------------------------------------- */

static const enum reason codes[C_COUNT] = {
	[C_HOLD] = REASON_HOLD,
	[C_DEPENDENCY] = REASON_DEPENDENCY,
	[C_LIMIT] = REASON_QUOTA_LIMIT,
	[C_MODEL] = REASON_MODEL,
	[C_MEMORY] = REASON_MEMORY,
	[C_CPU] = REASON_CPU,
	[C_RAM] = REASON_RAM,
	[C_LEVEL] = REASON_TOPOLOGY,
	[C_SIZE] = REASON_IMPOSSIBLE,
	[C_BUSY] = REASON_CAPACITY,
	[C_FRAGMENTS] = REASON_FRAGMENTATION,
	[C_CORDON] = REASON_CAPACITY,
	[C_ASIDE] = REASON_CAPACITY,
	[C_GUARANTEE] = REASON_GUARANTEE_ONLY,
	[C_RESERVATION] = REASON_RESERVATION,
	[C_PROMISE] = REASON_PRIORITY,
	[C_LINE] = REASON_CAPACITY,
	[C_DRIVER] = REASON_DRIVER,
	[C_LABEL] = REASON_NODE_CLASS,
	[C_REGION] = REASON_RESIDENCY,
	[C_TAINT] = REASON_NODE_CLASS,
	[C_WINDOW] = REASON_WINDOW,
	[C_APART] = REASON_APART,
};

static void complain(uint64_t seed, const struct state *s, const struct explain_change *c,
		     const char *what, const char *which)
{
	failures++;
	printf("state %" PRIu64 ": %s%s; built in:", seed, what, which);
	for (int i = 0; i < C_COUNT; i++)
		if (has(s, (enum cause)i))
			printf(" %s", reason_name(codes[i]));
	printf("; named:");
	for (uint32_t i = 0; i < c->cause_count; i++)
		printf(" %s", reason_name((enum reason)c->causes[i].code));
	printf("; change: %s\n", c->text);
}

static void causes_check(uint64_t seed, const struct state *s, const struct explain_change *c)
{
	for (int i = 0; i < C_COUNT; i++) {
		bool named = false;

		for (uint32_t k = 0; k < c->cause_count; k++)
			named |= c->causes[k].code == codes[i];
		if (has(s, (enum cause)i) && !named)
			complain(seed, s, c, "not named: ", reason_name(codes[i]));
		causes_built += has(s, (enum cause)i);
	}
}

static void change_check(uint64_t seed, const struct state *s, const struct explain_change *c)
{
	uint64_t all = c->part_count >= 64 ? UINT64_MAX : (UINT64_C(1) << c->part_count) - 1;

	if (!c->part_count) {
		complain(seed, s, c, "no change is named", "");
		return;
	}
	changes++;
	parts_told += c->part_count;
	if (!starts_with(s, c, all))
		complain(seed, s, c, "it does not start with the change", "");
	if (c->part_count <= ALL_SUBSETS) {
		for (uint64_t which = 0; which < all; which++)
			if (starts_with(s, c, which)) {
				complain(seed, s, c, "a part of the change is enough", "");
				return;
			}
		return;
	}
	for (uint32_t i = 0; i < c->part_count && i < 64; i++)
		if (starts_with(s, c, all & ~(UINT64_C(1) << i))) {
			complain(seed, s, c, "it starts without ", c->parts[i].text);
			return;
		}
}

/* --- the answer ------------------------------------------------------------------------------------------------------- */

/* Types the command: `fairlead release 3`, `fairlead priority 3 --to 8`, `fairlead change 3 --limit 26m`. False: there is no such one. */
static bool command_type(struct world *w, const char *command)
{
	struct event e = event_make(EVENT_JOB_RELEASED, 0, "test");
	char limit[DURATION_TEXT_MAX];
	long long job, to;

	if (sscanf(command, "`fairlead release %lld`", &job) == 1) {
		e.job_released.job = job;
	} else if (sscanf(command, "`fairlead priority %lld --to %lld`", &job, &to) == 2) {
		e = event_make(EVENT_JOB_PRIORITY_SET, 0, "test");
		e.job_priority_set.job = job;
		e.job_priority_set.priority = to;
	} else if (sscanf(command, "`fairlead change %lld --limit %23[^`]", &job, limit) == 2) {
		e = event_make(EVENT_JOB_CHANGED, 0, "test");
		e.job_changed.job = job;
		e.job_changed.what = "limit";
		CHECK(parse_duration(limit, &e.job_changed.limit_ms, NULL) == 0);
		limits_typed++;
	} else {
		return false;
	}
	put(w, &e);
	commands_typed++;
	return true;
}

static bool is_command(const struct change_part *part)
{
	return strchr(part->text, '`') && strstr(part->text, "`fairlead ");
}

/* The job is submitted with what only a submission can change; what a command does is typed afterwards. */
static void commands_check(uint64_t seed, const struct state *s, const struct explain_change *c)
{
	struct event job = s->job;
	bool starts, any = false;
	struct world w;

	for (uint32_t i = 0; i < c->part_count; i++)
		any = any || is_command(&c->parts[i]);
	if (!any)
		return;
	facts_freeze(&s->base.facts, &w.facts);
	w.view = view_create(&w.facts);
	for (uint32_t i = 0; i < c->part_count; i++)
		if (!is_command(&c->parts[i]))
			wish_change(s, &job.job_submitted, &c->parts[i]);
	put(&w, &job);
	behind_put(&w, s);
	for (uint32_t i = 0; i < c->part_count; i++)
		if (!is_command(&c->parts[i]))
			world_change(&w, &c->parts[i]);
		else if (!command_type(&w, strstr(c->parts[i].text, "`fairlead ")))
			complain(seed, s, c, "no such command: ", c->parts[i].text);
	settle(&w);
	starts = job_is_live(job_get(&w.facts, (struct job_id){ (uint32_t)job.job_submitted.job }));
	if (!starts)
		complain(seed, s, c, "it does not start when the commands are typed", "");
	view_destroy(w.view);
	facts_deinit(&w.facts);
}

/* The job holds a GPU of a model that the target accepts. */
static bool holder_is_of_use(const struct state *s, uint32_t id)
{
	const struct facts *f = &s->base.facts;
	const struct attempt *attempt = attempt_get(f, job_get(f, (struct job_id){ id })->attempt);
	const char *models = s->job.job_submitted.models;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);
		const struct node *node = node_get(f, task->node);

		if (task_holds(task) && task->gpu_mask &&
		    (!models || !*models || strstr(models, facts_name(f, node->model))))
			return true;
	}
	return false;
}

/* One figure: the time of the start is left to the estimate, but for a bound, which is one sentence at most. */
static void answer_check(uint64_t seed, const struct state *s, const struct explanation *e)
{
	static const struct explain_change none = { .text = "" };
	uint32_t bounds = 0, job;

	for (uint32_t i = 0; i < e->line_count; i++) {
		const struct explain_line *line = &e->lines[i];

		lines_told++;
		if (strcmp(explain_line_code(line), "none") == 0)
			complain(seed, s, &none, "a line without a code: ", line->text);
		if (strstr(line->text, "expected to start"))
			complain(seed, s, &none, "another estimate: ", line->text);
		bounds += strstr(line->text, "starts at the latest") != NULL;
		if (line->about == ABOUT_HOLDER &&
		    (sscanf(line->text, "job %u ", &job) != 1 || !holder_is_of_use(s, job)))
			complain(seed, s, &none, "it holds nothing of use: ", line->text);
	}
	if (bounds > 1 || (bounds != 0) != (e->latest_ms != 0))
		complain(seed, s, &none, "the latest start is told otherwise", "");
}

static void state_check(uint64_t seed)
{
	struct explanation why;
	struct explain_change change;
	struct arena answer;
	struct state s;
	uint64_t hash;

	state_make(&s, seed);
	put(&s.base, &s.job);
	behind_put(&s.base, &s);
	arena_init(&answer, (size_t)1 << 28);
	hash = facts_hash(&s.base.facts);
	explain_change(&s.base.facts, s.base.view,
		       (struct job_id){ (uint32_t)s.job.job_submitted.job }, &answer, &change);
	explain_job(&s.base.facts, s.base.view,
		    (struct job_id){ (uint32_t)s.job.job_submitted.job }, &answer, &why);
	answer_check(seed, &s, &why);
	view_verify(s.base.view, &s.base.facts);
	CHECK(facts_hash(&s.base.facts) == hash);
	state_free(&s);
	state_make(&s, seed); /* without the job again: it comes with other wishes */
	causes_check(seed, &s, &change);
	change_check(seed, &s, &change);
	commands_check(seed, &s, &change);
	state_free(&s);
	arena_deinit(&answer);
}

int main(int argc, char **argv)
{
	int64_t first, count;
	struct err why;

	if (argc != 3 || parse_int(argv[1], 0, INT64_MAX, &first, &why) < 0 ||
	    parse_int(argv[2], 1, 100000000, &count, &why) < 0)
		return fprintf(stderr, "usage: explain_states FIRST COUNT\n"), 2;
	for (int64_t seed = first; seed < first + count && failures < 20; seed++)
		state_check((uint64_t)seed);
	printf("%" PRId64 " states, %" PRIu64 " causes built in, %" PRIu64
	       " changes of %.2f parts on average, %" PRIu64 " lines, %" PRIu64
	       " commands typed, %u failures\n",
	       count, causes_built, changes, changes ? (double)parts_told / (double)changes : 0.0,
	       lines_told, commands_typed, failures);
	CHECK(count < 1000 ||
	      (lines_told && commands_typed && limits_typed)); /* the checks see something */
	return failures > 0;
}
