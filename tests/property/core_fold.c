/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_fold SEED STEPS: random events through the core, the state's hash after each.
 *
 * Every build must print the same: compilers and optimisation must not show in facts or decisions
 * (scripts/test-hashes). Reports come from no engine but from chance, so that the core also hears what
 * no engine would say. Now and then the facts are saved, loaded and indexed anew, and must decide
 * the same and ask to be woken at the same time.
 *
 * Each seed has a mood: which parts of the core it uses much (elastic jobs, parts of GPUs, limited arrays, calendars, money,
 * weights of terms, labels, guarantees by model, spot nodes, a policy that changes), on how many nodes, under how much load. Nodes are
 * also set anew with fewer GPUs than are held.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/core.h"
#include "core/model/job_change.h"
#include "sim/engine_sim.h"
#include "sim/rebuild.h"

enum {
	STEP_CAP = 1 << 29,
	NODES_MAX = 12,
	QUEUES = 5,
	JOBS_MAX = 4000,
	REBUILD_EVERY = 32,
	FITS_FROM = 1000,
	TIMES_FROM = 2000,
	SPEEDS_FROM = 3000,
	SPOT_FROM = 4000,
	SPOT_END = 5000,
	USERS_FROM = 7000,
	USERS_END = 8000,
	CHANGES_FROM = 8000,
	CHANGES_END = 9000,
	SPOT_TOO_FROM = 400000, /* as in stream.c */
	SPOT_TOO_END = 500000
};

/* What a seed has much of, and which parts of the policy it uses. */
struct mood {
	uint32_t nodes, submits; /* submits: percent of the events */
	uint32_t most_tasks;
	bool elastic, parts, arrays, depends, models, marks, calendars, money, terms, retells;
	bool fits; /* wishes about the place: seeds from FITS_FROM on, so that the others stay as they were */
	bool speeds; /* how fast GPUs talk to each other: likewise, from SPEEDS_FROM on */
	bool times; /* what is announced for a time: likewise, from TIMES_FROM on */
	bool spot; /* spot nodes, and jobs that may use them: seeds from SPOT_FROM to SPOT_END */
	bool users; /* limits of each user in queues: seeds from USERS_FROM to USERS_END */
	bool changes; /* jobs are changed after their submission: seeds from CHANGES_FROM to CHANGES_END */
};

struct fold {
	struct facts facts;
	struct view *view;
	struct arena step;
	struct sim_random random;
	uint64_t seq;
	int64_t now_ms;
	struct mood mood;
	uint32_t accepted, refused, decided, rebuilt, chosen;
};

static uint32_t below(struct fold *f, uint32_t limit)
{
	return sim_random_below(&f->random, limit);
}

static bool one_in(struct fold *f, uint32_t n)
{
	return below(f, n) == 0;
}

static const char *pick(struct fold *f, const char *const *words, uint32_t count)
{
	return words[below(f, count)];
}

static const char *const queue_names[QUEUES] = { "default", "a", "b", "b.left", "b.right" };

/* Commands. */

static struct event make_node(struct fold *f)
{
	static const char *const models[] = { "H100-80GB", "A100-80GB", "L4" };
	struct event e = event_make(EVENT_NODE_SET, 0, "test");
	uint32_t n = below(f, f->mood.nodes);

	e.node_set.name = arena_printf(&f->step, "n%u", n);
	e.node_set.gpus = 1 << below(f, 4);
	e.node_set.model = pick(f, models, 3);
	e.node_set.gpu_memory_mib = 81920;
	e.node_set.cpu_milli = 64000;
	e.node_set.ram_mib = 524288;
	e.node_set.domains = arena_printf(&f->step, "z%u,r%u", n / 6, n / 3);
	return e;
}

static struct event make_mark(struct fold *f)
{
	static const char *const labels[] = { "", "disk=fast", "disk=slow,use=lab" };
	static const char *const taints[] = { "", "", "", "loud", "team=b" };
	struct event e = event_make(EVENT_NODE_MARKED, 0, "test");

	e.node_marked.node = 1 + below(f, f->facts.nodes.count);
	e.node_marked.labels = pick(f, labels, 3);
	e.node_marked.taints = pick(f, taints, 5);
	if (f->mood.fits)
		e.node_marked.data = one_in(f, 2) ? "web" : "web,books";
	e.node_marked.class = one_in(f, 3) ? below(f, NODE_CLASS_INFERENCE + 1) : NODE_CLASS_ANY;
	if (f->mood.spot)
		e.node_marked.capacity = one_in(f, 4) ? below(f, 2) : CAPACITY_SPOT;
	return e;
}

/* Masks come, change and end; jobs that name one that has ended run nowhere. */
static struct event make_mask(struct fold *f)
{
	struct event e = event_make(EVENT_NODE_MASK, 0, "test");
	int64_t *nodes = arena_new_array(&f->step, int64_t, 4);

	for (uint32_t i = 0; i < 4; i++)
		nodes[i] = 1 + below(f, f->facts.nodes.count);
	e.node_mask.name = arena_printf(&f->step, "mask%u", below(f, 3));
	e.node_mask.in = nodes;
	e.node_mask.in_count = below(f, 4);
	e.node_mask.out = nodes + 3;
	e.node_mask.out_count = below(f, 2);
	e.node_mask.why = one_in(f, 2) ? "" : "node affinity leaves them";
	e.node_mask.ended = one_in(f, 10);
	return e;
}

static void make_queue_models(struct fold *f, struct event_queue_set *e)
{
	int64_t *shares = arena_new_array(&f->step, int64_t, 4);

	for (uint32_t i = 0; i < 4; i++)
		shares[i] = (int64_t)below(f, 8) * GPU_SHARE;
	if (one_in(f, 2)) {
		e->limit_models = "H100-80GB,any";
		e->limit_model_shares = shares;
		e->limit_model_shares_count = 2;
	}
	if (one_in(f, 2)) {
		e->guarantee_models = "H100-80GB,A100-80GB";
		e->guarantee_model_shares = shares + 2;
		e->guarantee_model_shares_count = 2;
	}
	e->limit_cpu_milli = one_in(f, 4) ? (int64_t)(1 + below(f, 20)) * 8000 : 0;
	e->limit_ram_mib = one_in(f, 4) ? (int64_t)(1 + below(f, 20)) * 32768 : 0;
}

static struct event make_queue(struct fold *f)
{
	struct event e = event_make(EVENT_QUEUE_SET, 0, "test");
	uint32_t q = below(f, QUEUES);

	e.queue_set.name = queue_names[q];
	e.queue_set.parent = q >= 3 ? "b" : "";
	e.queue_set.guarantee_share = (int64_t)below(f, 12) * GPU_SHARE;
	e.queue_set.limit_share = one_in(f, 2) ? -1 : (int64_t)(4 + below(f, 60)) * GPU_SHARE;
	e.queue_set.weight = 1 + below(f, 4);
	e.queue_set.reserved = one_in(f, 10);
	e.queue_set.default_limit_ms = one_in(f, 3) ? (int64_t)(1 + below(f, 600)) * 1000 : 0;
	if (f->mood.calendars && one_in(f, 2))
		e.queue_set.calendar = one_in(f, 2) ? "00:00-00:40,01:00-01:20,overrun"
						    : "00:20-01:30,02:00-03:00";
	if (f->mood.models)
		make_queue_models(f, &e.queue_set);
	if (f->mood.users && one_in(f, 2))
		e.queue_set.user_limit_share = (int64_t)(1 + below(f, 8)) * GPU_SHARE;
	if (f->mood.users && one_in(f, 3))
		e.queue_set.user_part = 1 + below(f, 100);
	return e;
}

static struct event make_money(struct fold *f)
{
	static const char *const models[] = { "any", "H100-80GB", "L4" };
	struct event e = event_make(one_in(f, 2) ? EVENT_PRICE_SET : EVENT_BUDGET_SET, 0, "test");

	if (e.kind == EVENT_PRICE_SET) {
		e.price_set.model =
			f->mood.spot && one_in(f, 2) ? "spot:H100-80GB" : pick(f, models, 3);
		e.price_set.micro_per_hour = (int64_t)below(f, 5) * 1000000 - 1;
	} else {
		e.budget_set.queue = queue_names[below(f, QUEUES)];
		e.budget_set.left_micro = (int64_t)below(f, 20) * 500000 - 1;
	}
	return e;
}

/* A clock that jumps soon, by tens of minutes either way; windows that name it are refused until it is told. */
static struct event make_zone(struct fold *f)
{
	static int64_t at_ms, then_ms;
	struct event e = event_make(EVENT_ZONE_SET, 0, "test");

	at_ms = f->now_ms + (int64_t)below(f, 600) * 1000;
	then_ms = ((int64_t)below(f, 9) - 4) * 600000;
	e.zone_set.name = "Test/Clock";
	e.zone_set.ahead_ms = ((int64_t)below(f, 9) - 4) * 600000;
	e.zone_set.at_ms = &at_ms;
	e.zone_set.then_ms = &then_ms;
	e.zone_set.at_ms_count = e.zone_set.then_ms_count = 1;
	return e;
}

/* Each field with a chance of its own; the others stay as they are. */
static struct event make_policy(struct fold *f)
{
	struct event e = event_policy_make(0, "test");
	struct event_policy_set *p = &e.policy_set;

	if (one_in(f, 4))
		p->min_runtime_ms = (int64_t)below(f, 4) * 20000;
	if (one_in(f, 4))
		p->grace_ms = (int64_t)below(f, 4) * 10000;
	if (one_in(f, 4))
		p->rejoin_ms = (int64_t)below(f, 3) * 30000;
	if (one_in(f, 4))
		p->packing = below(f, 2);
	if (one_in(f, 4))
		p->backfill_depth = below(f, 6);
	if (one_in(f, 4))
		p->collect_after_ms = (int64_t)below(f, 3) * 60000;
	if (one_in(f, 4))
		p->allow_critical_burst = below(f, 2);
	if (one_in(f, 4))
		p->default_limit_ms = (int64_t)(1 + below(f, 900)) * 1000;
	if (one_in(f, 4))
		p->max_slowdown = 1 + below(f, 100);
	if (one_in(f, 4))
		p->share_gpus = 1 + below(f, SHARE_GPUS_OFF);
	if (one_in(f, 4))
		p->blackhole_failures = below(f, 5);
	if (f->mood.money)
		p->budget_warns = below(f, 2);
	p->patience = below(f, 2) * 10;
	p->take_turns = below(f, 2);
	p->reserve_unsure_ms = (int64_t)below(f, 2) * 600000;
	if (f->mood.terms) {
		p->order_deadline = below(f, 3);
		p->order_efficiency = below(f, 3);
		p->order_age = below(f, 3);
		p->order_user = below(f, 3);
		p->order_budget = below(f, 3);
	}
	return e;
}

static void make_depends(struct fold *f, struct event_job_submitted *j)
{
	uint32_t jobs = f->facts.jobs.count;
	uint32_t id = jobs - below(f, jobs < 30 ? jobs : 30);
	int64_t *numbers = arena_new_array(&f->step, int64_t, 2);

	numbers[0] = id;
	numbers[1] = job_get(&f->facts, (struct job_id){ id })->array_first == id;
	j->depends = numbers;
	j->depends_whole = numbers + 1;
	j->depends_count = j->depends_whole_count = 1;
}

/* Wishes about the place. */
static void make_fit(struct fold *f, struct event_job_submitted *j)
{
	static const char *const levels[] = { "", "", "rack", "node", "zone" };

	static const int64_t speeds[] = { 450, 1000 };

	j->spread = pick(f, levels, 5);
	j->mixes = one_in(f, 3);
	if (one_in(f, 4)) {
		j->own_labels = one_in(f, 2) ? "app=web" : "app=db,tier=1";
		j->apart_from = one_in(f, 2) ? "" : one_in(f, 2) ? "app=web" : "app=db";
		j->apart_level = *j->apart_from ? pick(f, levels, 5) : "";
		j->apart_wish = *j->apart_from && one_in(f, 4);
	}
	if (f->facts.masks.count && one_in(f, 6))
		j->mask = arena_printf(&f->step, "mask%u", below(f, 3));
	j->align = j->gpus && !j->gpu_part && !j->gpu_part_mib ? below(f, 3) : 0;
	j->data = one_in(f, 2) ? "" : one_in(f, 2) ? "books" : "web,books";
	if (strchr(j->models, ',')) {
		j->throughput = speeds;
		j->throughput_count = one_in(f, 2) ? 2 : 0;
		j->min_throughput = j->throughput_count && one_in(f, 3) ? 500 : 0;
	}
}

/* Which nodes: those who say by when they must be done leave the choice, mostly. */
static void make_spot(struct fold *f, struct event_job_submitted *j)
{
	if (j->kind == KIND_INFERENCE || j->tier == TIER_CRITICAL)
		return;
	j->checkpoint = !one_in(f, 10);
	j->checkpoint_every_ms = (int64_t)below(f, 4) * 30000;
	j->capacity = one_in(f, 4) ? below(f, CAPACITY_ANY + 1) : CAPACITY_ANY;
	if (!one_in(f, 4))
		j->deadline_ms = f->now_ms + (int64_t)(60 + below(f, 7200)) * 1000;
}

static struct event make_job(struct fold *f)
{
	static const char *const models[] = { "", "", "", "H100-80GB", "A100-80GB,H100-80GB" };
	static const char *const levels[] = { "", "", "", "rack", "zone", "node" };
	struct event e = event_make(EVENT_JOB_SUBMITTED, 0, "test");
	struct event_job_submitted *j = &e.job_submitted;

	j->name = arena_printf(&f->step, "job%u", f->facts.jobs.count);
	j->user = one_in(f, 3) ? "other" : "test";
	j->queue = pick(f, queue_names, QUEUES);
	j->kind = below(f, 3);
	j->tier = one_in(f, 8) ? TIER_CRITICAL : one_in(f, 3) ? TIER_BEST_EFFORT : TIER_STANDARD;
	j->priority = (int64_t)below(f, 5) - 2;
	j->tasks_min = 1 + below(f, f->mood.most_tasks);
	j->tasks_max = j->tasks_min + (f->mood.elastic && one_in(f, 2) ? below(f, 4) : 0);
	j->resize = f->mood.elastic && one_in(f, 3) ? RESIZE_RESTART : RESIZE_FREE;
	j->rejoins = f->mood.elastic && one_in(f, 2);
	j->gpus = below(f, 3);
	if (f->mood.parts && j->gpus == 1 && one_in(f, 2))
		j->gpu_part = 1 + below(f, GPU_SHARE - 1);
	else if (f->mood.parts && j->gpus == 1 && one_in(f, 3))
		j->gpu_part_mib = 1 + below(f, 40000);
	j->models = pick(f, models, 5);
	j->cpu_milli = (int64_t)below(f, 4) * 4000;
	j->memory_mib = (int64_t)below(f, 4) * 16384;
	j->require = pick(f, levels, 6);
	j->prefer = pick(f, levels, 6);
	j->limit_ms = one_in(f, 3) ? (int64_t)(1 + below(f, 600)) * 1000 : 0;
	j->retries = below(f, 3);
	j->preempts = !one_in(f, 5);
	j->checkpoint = one_in(f, 2);
	j->grace_ms = one_in(f, 2) ? -1 : (int64_t)below(f, 60) * 1000;
	j->restart_cost_ms = (int64_t)below(f, 60) * 1000;
	j->held = one_in(f, 20);
	j->array_count = one_in(f, f->mood.arrays ? 3 : 20) ? 2 + below(f, 5) : 0;
	j->array_limit = j->array_count && f->mood.arrays ? below(f, 4) : 0;
	j->estimate_ms = one_in(f, 4) ? (int64_t)(1 + below(f, 600)) * 1000 : 0;
	if (f->mood.terms) {
		j->deadline_ms = one_in(f, 2) ? (int64_t)(1 + below(f, 900)) * 1000 : 0;
		j->efficiency = below(f, 101);
	}
	if (f->mood.calendars && one_in(f, 2)) {
		j->window = one_in(f, 2)   ? "00:00-00:35,00:40-00:50,01:00-02:00"
			    : one_in(f, 2) ? "00:20-00:25,00:27-00:40,utc+14"
					   : "00:05-00:25,00:30-00:55,Test/Clock";
		j->window_end = one_in(f, 3);
	}
	if (f->mood.marks && one_in(f, 4))
		j->labels = one_in(f, 2) ? "disk=fast" : "use=lab";
	if (f->mood.marks && one_in(f, 3))
		j->tolerates = one_in(f, 2) ? "loud" : "team=b,loud";
	if (f->mood.fits)
		make_fit(f, j);
	if (f->mood.speeds && one_in(f, 2)) {
		j->tasks_min += one_in(f, 2) ? 2 : 0;
		j->tasks_max = j->tasks_max > j->tasks_min ? j->tasks_max : j->tasks_min;
		j->max_slowdown = one_in(f, 2) ? 1 + below(f, 900) : 0;
	}
	if (f->mood.spot && !one_in(f, 4))
		make_spot(f, j);
	if (f->mood.depends && f->facts.jobs.count && one_in(f, 3))
		make_depends(f, j);
	j->body = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	j->body_mac = j->body;
	return e;
}

/* Some of what another submission would ask for. */
static void make_change(struct fold *f, uint32_t job, struct event_job_changed *e)
{
	const struct event other = make_job(f);
	char *words = arena_alloc(&f->step, EVENT_TEXT_MAX + 1);
	uint64_t set = 0;

	for (uint32_t count = 1 + below(f, 4); count-- > 0;)
		set |= UINT64_C(1) << below(f, JOB_CHANGES);
	if (one_in(f, 3))
		set = JOB_CHANGE_BIT(LIMIT);
	job_changes_take(set, &other.job_submitted, e);
	e->job = job;
	e->whole = one_in(f, 2);
	e->what = job_changes_text(set, words);
}

static struct event make_job_command(struct fold *f)
{
	static const enum event_kind kinds[] = { EVENT_JOB_CANCEL_ASKED, EVENT_JOB_HELD,
						 EVENT_JOB_RELEASED, EVENT_JOB_RELEASED,
						 EVENT_JOB_PRIORITY_SET };
	const bool changes = f->mood.changes && !one_in(f, 4);
	struct event e = event_make(changes ? EVENT_JOB_CHANGED : kinds[below(f, 5)], 0, "test");
	uint32_t job = 1 + below(f, f->facts.jobs.count);

	if (e.kind == EVENT_JOB_CANCEL_ASKED)
		e.job_cancel_asked.job = job;
	else if (e.kind == EVENT_JOB_HELD)
		e.job_held.job = job;
	else if (e.kind == EVENT_JOB_RELEASED)
		e.job_released.job = job;
	else if (e.kind == EVENT_JOB_CHANGED)
		make_change(f, job, &e.job_changed);
	else {
		e.job_priority_set.job = job;
		e.job_priority_set.priority = (int64_t)below(f, 7) - 3;
	}
	return e;
}

/* Two makes of hosts with cards or without, levels more or less narrow; sometimes nothing at all. */
static struct event make_fabric(struct fold *f)
{
	struct event e = event_make(EVENT_FABRIC_SET, 0, "test");
	uint32_t count = one_in(f, 6) ? 0 : 2, nodes = f->facts.nodes.count;
	int64_t *makes = arena_new_array(&f->step, int64_t, 2 * MAKE_FIELDS),
		*levels = arena_new_array(&f->step, int64_t, 3 * FABRIC_LEVEL_FIELDS),
		*lists = arena_new_array(&f->step, int64_t, (size_t)2 * nodes + 1);

	for (uint32_t i = 0; i < count; i++) {
		int64_t *make = makes + (size_t)i * MAKE_FIELDS;

		make[0] = 8;
		make[1] = below(f, 5);
		for (uint32_t r = 0; r < MAKE_RATES; r++)
			make[2 + r] = 1000 + below(f, 400000);
	}
	for (uint32_t l = 0; l < 3; l++)
		levels[l * FABRIC_LEVEL_FIELDS + 1] = one_in(f, 2) ? 0 : 1000 + below(f, 8000);
	levels[2 * FABRIC_LEVEL_FIELDS] = one_in(f, 4) ? FABRIC_FLAG_NVLINK : 0;
	for (uint32_t i = 0; i < nodes; i++) {
		lists[i] = i + 1;
		lists[nodes + i] = 1 + below(f, 2);
	}
	e.fabric_set.makes = makes;
	e.fabric_set.makes_count = count * MAKE_FIELDS;
	e.fabric_set.levels = levels;
	e.fabric_set.levels_count = 3 * FABRIC_LEVEL_FIELDS;
	e.fabric_set.nodes = lists;
	e.fabric_set.node_makes = lists + nodes;
	e.fabric_set.nodes_count = e.fabric_set.node_makes_count = count ? nodes : 0;
	return e;
}

static struct event make_booking(struct fold *f)
{
	static const char *const names[] = { "x", "y", "z", "w" };
	struct event e =
		event_make(one_in(f, 4) ? EVENT_BOOKING_ENDED : EVENT_BOOKING_SET, 0, "test");
	int64_t *node;

	if (e.kind == EVENT_BOOKING_ENDED) {
		e.booking_ended.name = pick(f, names, 4);
		return e;
	}
	e.booking_set.name = pick(f, names, 4);
	e.booking_set.queue = queue_names[below(f, QUEUES)];
	if (one_in(f, 3)) {
		e.booking_set.user = one_in(f, 2) ? "other" : "test";
		e.booking_set.queue = one_in(f, 2) ? "" : e.booking_set.queue;
	}
	e.booking_set.from_ms = f->now_ms + (int64_t)below(f, 60) * 20000;
	e.booking_set.to_ms = e.booking_set.from_ms + 1 + (int64_t)below(f, 40) * 20000;
	e.booking_set.keep = one_in(f, 2);
	if (one_in(f, 2)) {
		e.booking_set.gpus = 1 + below(f, 12);
		return e;
	}
	node = arena_new(&f->step, int64_t);
	*node = 1 + below(f, f->facts.nodes.count);
	e.booking_set.nodes = node;
	e.booking_set.nodes_count = 1;
	return e;
}

static struct event make_node_command(struct fold *f)
{
	struct event e = event_make(one_in(f, 3) ? EVENT_GPU_STATE : EVENT_NODE_STATE, 0, "test");
	uint32_t node = 1 + below(f, f->facts.nodes.count);

	if (f->mood.speeds && one_in(f, 3))
		return make_fabric(f);
	if (f->mood.times && one_in(f, 3))
		return make_booking(f);
	if (f->mood.times && one_in(f, 2)) {
		e = event_make(EVENT_NODE_WINDOW, 0, "test");
		e.node_window.node = node;
		e.node_window.reason = "chance";
		if (!one_in(f, 4)) {
			e.node_window.from_ms = f->now_ms + (int64_t)below(f, 60) * 20000;
			e.node_window.to_ms =
				e.node_window.from_ms + 1 + (int64_t)below(f, 40) * 20000;
		}
		return e;
	}
	if (e.kind == EVENT_GPU_STATE) {
		e.gpu_state.node = node;
		e.gpu_state.mask = 1 << below(f, 8);
		e.gpu_state.set_aside = one_in(f, 3);
	} else {
		e.node_state.node = node;
		e.node_state.state = one_in(f, 3) ? NODE_READY + below(f, NODE_GONE) : NODE_READY;
		e.node_state.reason = "chance";
	}
	return e;
}

/* A node goes, or is there again. */
static struct event make_coming(struct fold *f)
{
	struct event e = event_make(EVENT_NODE_STATE, 0, "test");

	e.node_state.node = 1 + below(f, f->facts.nodes.count);
	e.node_state.state =
		node_get(&f->facts, (struct node_id){ (uint32_t)e.node_state.node })->state ==
				NODE_READY
			? NODE_DOWN
			: NODE_READY;
	e.node_state.reason = "chance";
	return e;
}

/* Reports. */

static struct event make_exit(struct fold *f, uint32_t attempt, uint32_t rank)
{
	struct event e = event_make(EVENT_TASK_EXITED, 0, "engine");

	e.task_exited.attempt = attempt;
	e.task_exited.rank = rank;
	e.task_exited.cause = one_in(f, 3) ? (int64_t)below(f, CAUSE_LOG_LIMIT) : CAUSE_EXIT;
	e.task_exited.code = one_in(f, 4);
	e.task_exited.at_ms = f->now_ms;
	return e;
}

/* About a random rank of an attempt, mostly what could come next. */
static struct event make_report(struct fold *f)
{
	uint32_t id = 1 + below(f, f->facts.attempts.count), tries = 8;
	const struct attempt *attempt = attempt_get(&f->facts, (struct attempt_id){ id });
	struct event e = event_make(EVENT_TASK_READY, 0, "engine");
	uint32_t rank;

	while (attempt->state == ATTEMPT_OVER && --tries) {
		id = f->facts.attempts.count -
		     below(f, f->facts.attempts.count < 40 ? f->facts.attempts.count : 40);
		attempt = attempt_get(&f->facts, (struct attempt_id){ id });
	}
	rank = below(f, attempt->tasks + one_in(f, 50));
	if (attempt->state == ATTEMPT_STOPPING || one_in(f, 6))
		return make_exit(f, id, rank);
	if (attempt->ready < attempt->tasks) {
		e.task_ready.attempt = id;
		e.task_ready.rank = rank;
		return e;
	}
	if (one_in(f, 4) && attempt->started == attempt->tasks) {
		e = event_make(EVENT_CHECKPOINT_SAVED, 0, "engine");
		e.checkpoint_saved.job = attempt->job.v;
		e.checkpoint_saved.attempt = id;
		e.checkpoint_saved.number = job_get(&f->facts, attempt->job)->checkpoints_made + 1;
		e.checkpoint_saved.at_ms = f->now_ms;
		e.checkpoint_saved.path = "x";
		return e;
	}
	if (one_in(f, 20)) {
		e = event_make(EVENT_ATTEMPT_UNREACHABLE, 0, "engine");
		e.attempt_unreachable.attempt = id;
		e.attempt_unreachable.unreachable = below(f, 2);
		return e;
	}
	if (one_in(f, 60)) {
		e = event_make(EVENT_ATTEMPT_DEAF, 0, "engine");
		e.attempt_deaf.attempt = id;
		return e;
	}
	if (one_in(f, 20)) {
		e = event_make(EVENT_ATTEMPT_SHIELDED, 0, "engine");
		e.attempt_shielded.attempt = id;
		e.attempt_shielded.shielded = below(f, 2);
		return e;
	}
	e = event_make(EVENT_TASK_STARTED, 0, "engine");
	e.task_started.attempt = id;
	e.task_started.rank = rank;
	e.task_started.at_ms = f->now_ms;
	return e;
}

static struct event make_numa(struct fold *f)
{
	struct event e = event_make(EVENT_NODE_NUMA, 0, "test");
	const struct node *node;
	int64_t *lists = arena_new_array(&f->step, int64_t, 4);

	e.node_numa.node = 1 + below(f, f->facts.nodes.count);
	node = node_get(&f->facts, (struct node_id){ (uint32_t)e.node_numa.node });
	if (node->gpu_count < 2)
		return e;
	lists[0] = (INT64_C(1) << node->gpu_count / 2) - 1;
	lists[1] = ((INT64_C(1) << node->gpu_count) - 1) & ~lists[0];
	lists[2] = (int64_t)below(f, 3) * 16000;
	lists[3] = below(f, 2);
	e.node_numa.gpus = lists;
	e.node_numa.gpus_count = one_in(f, 4) ? 0 : 2;
	e.node_numa.cpu_milli = lists + 2;
	e.node_numa.cpu_milli_count = e.node_numa.gpus_count ? 1 : 0;
	e.node_numa.nics = lists + 3;
	e.node_numa.nics_count = e.node_numa.cpu_milli_count;
	return e;
}

static struct event make_event(struct fold *f)
{
	uint32_t dice = below(f, 100);

	if (below(f, 100) < f->mood.submits && f->facts.jobs.count < JOBS_MAX)
		return make_job(f);
	if (dice < 3 && f->facts.jobs.count)
		return make_job_command(f);
	if (dice < 4)
		return make_node(f);
	if (dice < 5)
		return make_queue(f);
	if (dice < 7 && f->facts.nodes.count)
		return make_node_command(f);
	if (dice < 8 && f->mood.money)
		return make_money(f);
	if (dice < 9 && f->mood.fits && f->facts.nodes.count && one_in(f, 2))
		return make_numa(f);
	if (dice < 9 && f->mood.spot && f->facts.nodes.count && one_in(f, 2))
		return make_coming(f);
	if (dice < 9 && f->mood.marks && f->facts.nodes.count)
		return one_in(f, 3) ? make_mask(f) : make_mark(f);
	if (dice < 9 && f->mood.calendars)
		return make_zone(f);
	if (dice < 10 && f->mood.retells && one_in(f, 3))
		return make_policy(f);
	if (dice < 95 && f->facts.attempts.count)
		return make_report(f);
	return event_make(EVENT_CLOCK_TICKED, 0, "fairlead");
}

/* The fold. */

static void take(struct fold *f, struct event *e)
{
	e->seq = ++f->seq;
	apply(&f->facts, e);
	view_follow(f->view, &f->facts, e);
}

static int offer(struct fold *f, struct event *e)
{
	struct err why;
	uint32_t job;
	int rc;

	e->time_ms = f->now_ms;
	rc = core_admit(&f->facts, f->view, e, &f->step, &job, &why);
	if (rc == 0)
		take(f, e);
	f->accepted += rc == 0;
	f->refused += rc < 0;
	return rc;
}

/* A turn, sometimes with so small a budget that it must be continued. */
static int turn(struct fold *f)
{
	uint64_t budget = one_in(f, 10) ? 1 + below(f, 50) : UINT64_C(1) << 40;
	struct decisions decided = { .more = true };
	struct err why;

	for (int round = 0; decided.more; round++) {
		if (round > 1000)
			return fprintf(stderr, "decide says \"more\" for ever\n"), -1;
		arena_reset(&f->step);
		decide_verify(&f->facts, f->view, &f->step);
		decide(&f->facts, f->view, budget, &f->step, &decided);
		if (one_in(f, REBUILD_EVERY)) {
			f->rebuilt++;
			view_verify(f->view, &f->facts);
			facts_verify(&f->facts);
			if (rebuild_check(&f->facts, &decided, budget, &why) < 0)
				return fprintf(stderr, "%s\n", why.text), -1;
		}
		for (uint32_t i = 0; i < decided.count; i++) {
			f->chosen += decided.events[i].kind == EVENT_CAPACITY_CHOSEN;
			take(f, &decided.events[i]);
		}
		f->decided += decided.count;
	}
	decide_verify(&f->facts, f->view, &f->step);
	return 0;
}

static void mood_make(struct fold *f)
{
	f->mood = (struct mood){ .nodes = 1 + below(f, NODES_MAX),
				 .submits = one_in(f, 3) ? 20 : 4,
				 .most_tasks = one_in(f, 4) ? 12 : 4,
				 .elastic = one_in(f, 2),
				 .parts = one_in(f, 2),
				 .arrays = one_in(f, 3),
				 .depends = one_in(f, 3),
				 .models = one_in(f, 3),
				 .marks = one_in(f, 3),
				 .calendars = one_in(f, 4),
				 .money = one_in(f, 4),
				 .terms = one_in(f, 4),
				 .retells = one_in(f, 2) };
}

static void set_up(struct fold *f)
{
	struct event levels = event_make(EVENT_LEVELS_SET, 0, "test"),
		     policy = event_policy_make(0, "test");

	levels.levels_set.levels = "zone,rack";
	policy.policy_set.min_runtime_ms = 20000;
	policy.policy_set.grace_ms = 30000;
	policy.policy_set.rejoin_ms = 0;
	policy.policy_set.packing = 1;
	if (f->mood.terms)
		policy.policy_set.order_age = policy.policy_set.order_user = 1;
	CHECK(offer(f, &levels) == 0);
	CHECK(offer(f, &policy) == 0);
}

int main(int argc, char **argv)
{
	struct fold f = { .now_ms = 1000000 };
	int64_t seed, steps;
	struct err why;
	int rc = 0;

	if (argc != 3 || parse_int(argv[1], 0, INT64_MAX, &seed, &why) < 0 ||
	    parse_int(argv[2], 1, 100000000, &steps, &why) < 0)
		return fprintf(stderr, "usage: core_fold SEED STEPS\n"), 2;
	f.random.state = (uint64_t)seed;
	facts_init(&f.facts);
	f.view = view_create(&f.facts);
	arena_init(&f.step, STEP_CAP);
	fprintf(stderr, "seed %" PRId64 "\n", seed); /* a check that fails ends the program */
	mood_make(&f);
	f.mood.fits = seed >= FITS_FROM;
	f.mood.marks |= f.mood.fits;
	f.mood.times = seed >= TIMES_FROM;
	f.mood.speeds = seed >= SPEEDS_FROM;
	f.mood.users = seed >= USERS_FROM && seed < USERS_END;
	f.mood.changes = seed >= CHANGES_FROM && seed < CHANGES_END;
	f.mood.spot = (seed >= SPOT_FROM && seed < SPOT_END) ||
		      (seed >= SPOT_TOO_FROM && seed < SPOT_TOO_END);
	f.mood.money |= f.mood.spot && one_in(&f, 2);
	f.mood.submits = f.mood.spot ? 20 : f.mood.submits;
	set_up(&f);
	for (int64_t step = 0; step < steps && rc == 0; step++) {
		struct event e;

		arena_reset(&f.step);
		f.now_ms += below(&f, 2000);
		e = make_event(&f);
		(void)(offer(&f, &e) == 0);
		rc = turn(&f);
		printf("%" PRId64 " %016" PRIx64 "\n", step, facts_hash(&f.facts));
	}
	fprintf(stderr,
		"seed %" PRId64
		": %u events accepted, %u refused, %u decisions, %u jobs, %u attempts, %u choices of spot or on-demand nodes, rebuilt %u times\n",
		seed, f.accepted, f.refused, f.decided, f.facts.jobs.count, f.facts.attempts.count,
		f.chosen, f.rebuilt);
	view_destroy(f.view);
	facts_deinit(&f.facts);
	arena_deinit(&f.step);
	return rc < 0;
}
