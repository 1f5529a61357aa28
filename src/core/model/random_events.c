/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/job_change.h"
#include "core/model/random_events.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"

/* splitmix64, Steele, Lea and Flood 2014. */
uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint32_t random_below(struct random *r, uint32_t below)
{
	return (uint32_t)(random_next(r) % below);
}

/* --- values ------------------------------------------------------------------------------------------ */

int64_t random_wild(struct random *r)
{
	static const int64_t edges[] = {
		0,         1,         -1,         2,           31,
		32,        33,        255,        256,         65535,
		65536,     INT32_MAX, INT32_MIN,  UINT32_MAX,  UINT32_MAX + INT64_C(1),
		INT64_MAX, INT64_MIN, 1000000007, -1000000007,
	};

	return edges[random_below(r, ARRAY_SIZE(edges))];
}

/* Now and then a value from the edge instead of the one that makes sense. */
int64_t random_mostly(struct random *r, int64_t value)
{
	return random_below(r, 50) ? value : random_wild(r);
}

int64_t random_upto(struct random *r, uint32_t most)
{
	return random_mostly(r, random_below(r, most + 1));
}

static int64_t between(struct random *r, int32_t low, int32_t high)
{
	return random_mostly(r, low + (int64_t)random_below(r, (uint32_t)(high - low) + 1));
}

static const char *named(struct random *r, struct arena *arena, const char *prefix, uint32_t count)
{
	return arena_printf(arena, "%s%u", prefix, random_below(r, count));
}

static const char *hex(struct random *r, struct arena *arena)
{
	/* Few different ones, so that keys come again. */
	struct random digits = { random_below(r, 200) };
	char *text = arena_alloc(arena, 65);

	for (int i = 0; i < 64; i++)
		text[i] = "0123456789abcdef"[random_below(&digits, 16)];
	if (!random_below(r, 10))
		text[random_below(r, 64)] = '\0';
	return text;
}

/* Something that exists, more often of late; sometimes the one behind the last. */
int64_t random_recent(struct random *r, uint32_t count)
{
	uint32_t window = random_below(r, 4) ? 12 : count + 1;

	if (window > count)
		window = count;
	if (!window || !random_below(r, 40))
		return random_upto(r, count + 2);
	return random_mostly(r, count - random_below(r, window));
}

/* A job with a live attempt, if one is met soon. */
static uint32_t live_job(struct random *r, const struct facts *f)
{
	int64_t id = 0;

	for (int i = 0; i < 12; i++) {
		id = random_recent(r, f->jobs.count);
		if (id >= 1 && id <= (int64_t)f->jobs.count &&
		    job_is_live(job_get(f, (struct job_id){ (uint32_t)id })))
			break;
	}
	return id >= 1 && id <= (int64_t)f->jobs.count ? (uint32_t)id : 0;
}

static int64_t live_attempt(struct random *r, const struct facts *f)
{
	uint32_t job = live_job(r, f);

	if (!job || !random_below(r, 30))
		return random_recent(r, f->attempts.count);
	return job_get(f, (struct job_id){ job })->last_attempt.v;
}

static int64_t *numbers(struct arena *arena, uint32_t count)
{
	return count ? arena_new_array(arena, int64_t, count) : NULL;
}

/* --- kinds -------------------------------------------------------------------------------------------- */

static void fill_node_set(struct random *r, struct arena *arena, struct event_node_set *e)
{
	int64_t *islands = numbers(arena, 2);
	uint32_t rack;

	e->name = named(r, arena, "n", 20);
	e->gpus = random_mostly(r, random_below(r, 3) * INT64_C(4));
	e->model = named(r, arena, "model-", 3);
	e->gpu_memory_mib = random_upto(r, 80000);
	e->cpu_milli = random_upto(r, 64000);
	e->ram_mib = random_upto(r, 500000);
	rack = random_below(r, 4);
	e->domains = arena_printf(arena, "z%u,r%u", rack % 2, rack);
	e->simulated = random_upto(r, 1);
	e->driver = "550.54";
	e->cuda = random_below(r, 2) ? "12.4" : "";
	e->capability = random_upto(r, 90);
	islands[0] = random_mostly(r, 15);
	islands[1] = random_mostly(r, 240);
	e->nvlink_islands = islands;
	e->nvlink_islands_count = random_below(r, 2) * 2;
}

/* Up to three groups of unlike tasks, now and then one too many, or too few figures. */
static void fill_roles(struct random *r, struct arena *arena, struct event_job_submitted *e)
{
	static const char *const names[] = { "server,worker", "server", "a,b,c", "a,a", "" };
	int64_t *list = numbers(arena, 3 * ROLE_NUMBERS);

	e->roles = names[random_below(r, ARRAY_SIZE(names))];
	for (int i = 0; i < 3; i++) {
		int64_t *role = list + (size_t)i * ROLE_NUMBERS;

		role[ROLE_TASKS_MIN] = random_mostly(r, 1 + random_below(r, 2));
		role[ROLE_TASKS_MAX] =
			random_below(r, 3) ? 0 : random_mostly(r, 2 + random_below(r, 2));
		role[ROLE_GPUS] = random_mostly(r, random_below(r, 3));
		role[ROLE_CPU_MILLI] = random_upto(r, 8000);
		role[ROLE_MEMORY_MIB] = random_upto(r, 1000);
		role[ROLE_ENDS] = random_below(r, 2);
	}
	if (random_below(r, 3) == 0) {
		e->role_masks = random_below(r, 2) ? "mask1,mask2" : ",mask3,,mask4";
		e->together = named(r, arena, "mask", 6);
	}
	e->role_numbers = list;
	e->role_numbers_count = random_below(r, 5) ? 3 * ROLE_NUMBERS : ROLE_NUMBERS;
	e->gpu_part = e->gpu_part_mib = 0;
}

static void fill_job_submitted(struct random *r, const struct facts *f, struct arena *arena,
			       struct event_job_submitted *e)
{
	int64_t *depends = numbers(arena, 3), *whole = numbers(arena, 3), *speeds;
	uint32_t models;

	e->job = random_mostly(r, (int64_t)f->jobs.count + 1);
	e->name = named(r, arena, "job-", 30);
	e->user = named(r, arena, "u", 8);
	e->team = named(r, arena, "t", 3);
	e->queue = named(r, arena, "q", 6);
	e->project = named(r, arena, "p", 3);
	e->kind = random_upto(r, KIND_INTERACTIVE);
	e->tier = random_upto(r, TIER_CRITICAL);
	e->priority = between(r, -5, 5);
	e->tasks_min = random_mostly(r, 1 + random_below(r, 4));
	e->tasks_max = random_below(r, 3) ? 0 : random_mostly(r, 2 + random_below(r, 4));
	e->gpus = random_upto(r, 4);
	models = random_below(r, 18);
	e->models =
		models % 2 ? "" : arena_printf(arena, "model-%u,model-%u", models % 3, models / 6);
	e->min_driver = random_below(r, 6) ? "" : "535.129.03";
	e->min_cuda = random_below(r, 6) ? "" : "12.2";
	e->min_capability = random_below(r, 6) ? 0 : random_upto(r, 90);
	e->regions = random_below(r, 6) ? "" : "eu,de";
	e->labels = random_below(r, 4) ? "" : random_labels(r, arena, 3);
	e->tolerates = random_below(r, 4) ? "" : random_labels(r, arena, 3);
	e->require = random_below(r, 4) ? "" : random_below(r, 8) ? "rack" : "moon";
	e->prefer = random_below(r, 4) ? "" : "nvlink";
	e->limit_ms = random_upto(r, 1000000);
	e->estimate_ms = random_upto(r, 1000000);
	e->likely_ms = random_upto(r, 1000000);
	e->retries = random_upto(r, 3);
	e->preempts = random_upto(r, 1);
	e->checkpoint = random_upto(r, 1);
	e->grace_ms = between(r, -1, 999);
	e->restart_cost_ms = random_upto(r, 1000);
	for (int i = 0; i < 3; i++)
		depends[i] = random_recent(r, f->jobs.count);
	e->depends = depends;
	e->depends_count = random_below(r, 3) ? 0 : random_below(r, 4);
	e->held = !random_below(r, 6);
	e->array_count = random_below(r, 8) ? 0 : random_upto(r, 4);
	e->array_limit = random_below(r, 3) ? 0 : random_upto(r, 3);
	whole[0] = 1;
	whole[1] = whole[2] = random_below(r, 2);
	e->depends_whole = whole;
	e->depends_whole_count = random_below(r, 2) ? e->depends_count : 0;
	e->body = hex(r, arena);
	e->body_mac = hex(r, arena);
	e->client_key = random_below(r, 3) ? hex(r, arena) : "";
	e->uid = between(r, -1, 1999);
	e->gid = between(r, -1, 1999);
	e->gpu_part = random_below(r, 6) ? 0 : between(r, -1, GPU_SHARE);
	e->gpu_part_mib = random_below(r, 8) ? 0 : random_upto(r, 40000);
	e->slice = random_slice(r);
	speeds = numbers(arena, 2);
	speeds[0] = random_mostly(r, 1000);
	speeds[1] = random_mostly(r, 450);
	e->throughput = speeds;
	e->throughput_count = random_below(r, 4) ? 0 : 2;
	e->min_throughput = random_below(r, 6) ? 0 : random_upto(r, 1000);
	e->mixes = random_upto(r, 1);
	e->align = random_below(r, 4) ? 0 : random_upto(r, ALIGN_NIC);
	e->window = random_below(r, 6) ? "" : named(r, arena, "sat ", 4);
	e->window_end = random_upto(r, 1);
	e->own_labels = random_below(r, 4) ? "" : random_labels(r, arena, 3);
	e->apart_from = random_below(r, 4) ? "" : random_labels(r, arena, 3);
	e->apart_level = random_below(r, 4) ? "" : "rack";
	e->apart_wish = random_upto(r, 1);
	e->mask = random_below(r, 6) ? "" : named(r, arena, "mask", 6);
	e->data = random_below(r, 4) ? "" : random_labels(r, arena, 3);
	e->spread = random_below(r, 6) ? "" : random_below(r, 2) ? "rack" : "node";
	e->max_slowdown = random_below(r, 8) ? 0 : random_upto(r, 500);
	e->capacity = random_below(r, 2) ? 0 : random_upto(r, CAPACITY_ANY);
	e->program = random_below(r, 2) ? 0 : between(r, -1, 3);
	if (random_below(r, 5) == 0)
		fill_roles(r, arena, e);
}

/* Parts for some of the places, now and then too few of them. */
static void fill_parts(struct random *r, struct arena *arena, uint32_t count,
		       const int64_t **ret_parts, uint32_t *ret_parts_count,
		       const int64_t **ret_mib, uint32_t *ret_mib_count)
{
	int64_t *parts = numbers(arena, count), *mib = numbers(arena, count);

	*ret_parts = parts;
	*ret_mib = mib;
	*ret_parts_count = *ret_mib_count = 0;
	if (random_below(r, 4))
		return;
	for (uint32_t i = 0; i < count; i++) {
		parts[i] = random_mostly(r, 1 + random_below(r, GPU_SHARE));
		mib[i] = random_upto(r, 40000);
	}
	*ret_parts_count = count;
	*ret_mib_count = random_below(r, 20) ? count : count - 1;
}

static void fill_places(struct random *r, const struct facts *f, int64_t *nodes, int64_t *masks,
			uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		nodes[i] = random_recent(r, f->nodes.count);
		masks[i] = random_mostly(r, 1 + random_below(r, 15));
	}
}

static void fill_attempt_placed(struct random *r, const struct facts *f, struct arena *arena,
				struct event_attempt_placed *e)
{
	uint32_t count = 1 + random_below(r, 6);
	int64_t *nodes = numbers(arena, count), *masks = numbers(arena, count);

	fill_places(r, f, nodes, masks, count);
	e->job = random_recent(r, f->jobs.count);
	e->attempt = random_mostly(r, (int64_t)f->attempts.count + 1);
	e->nodes = nodes;
	e->masks = masks;
	e->nodes_count = count;
	e->masks_count = random_below(r, 50) ? count : count - 1;
	e->resume_number = random_upto(r, 3);
	e->likely_ms = random_upto(r, 60000);
	e->safe_ms = random_upto(r, 90000);
	e->near_data = random_below(r, 4) ? 0 : random_upto(r, 3);
	e->near_home = random_below(r, 4) ? 0 : random_upto(r, 3);
	e->transfer_ms = random_below(r, 4) ? 0 : random_mostly(r, 100);
	e->transfer_micro = random_below(r, 4) ? 0 : random_mostly(r, 100);
	e->bandwidth_mbps = random_upto(r, 400000);
	fill_parts(r, arena, count, &e->parts, &e->parts_count, &e->parts_mib, &e->parts_mib_count);
	e->slices = random_slices(r, arena, count, &e->slices_count);
}

static void fill_attempt_ended(struct random *r, const struct facts *f, struct arena *arena,
			       struct event_attempt_ended *e)
{
	uint32_t count = random_below(r, 3);
	int64_t *nodes = numbers(arena, count), *masks = numbers(arena, count);

	fill_places(r, f, nodes, masks, count);
	e->attempt = live_attempt(r, f);
	e->why = random_upto(r, STOP_MOVED);
	e->used_gpu_ms = random_upto(r, 100000);
	e->lost_gpu_ms = random_upto(r, 1000);
	e->run_ms = random_upto(r, 100000);
	e->lost_ms = random_upto(r, 1000);
	e->blamed_nodes = nodes;
	e->blamed_masks = masks;
	e->blamed_nodes_count = e->blamed_masks_count = count;
}

/* Mostly the newest start of the rank: else its words would be refused. */
static int64_t launch_of(struct random *r, const struct facts *f, int64_t attempt, int64_t rank)
{
	const struct attempt *a;

	if (!attempt_is_there(f, attempt))
		return 0;
	a = attempt_get(f, (struct attempt_id){ (uint32_t)attempt });
	if (!a->first_task || rank < 0 || rank >= (int64_t)a->tasks)
		return 0;
	return random_mostly(r, task_get(f, a, (uint32_t)rank)->launch);
}

static void fill_task_exited(struct random *r, const struct facts *f, struct arena *arena,
			     struct event_task_exited *e)
{
	e->attempt = live_attempt(r, f);
	e->rank = random_upto(r, 5);
	e->launch = launch_of(r, f, e->attempt, e->rank);
	e->cause = random_upto(r, CAUSE_MACHINE);
	e->code = random_upto(r, 2);
	e->signal = random_upto(r, 15);
	e->never_ran = !random_below(r, 5);
	e->peak_memory_mib = random_upto(r, 10000);
	e->memory_enforced = random_upto(r, 1);
	e->at_ms = random_upto(r, 1000);
	e->text = named(r, arena, "why ", 5);
}

static void fill_checkpoint_saved(struct random *r, const struct facts *f, struct arena *arena,
				  struct event_checkpoint_saved *e)
{
	uint32_t id = live_job(r, f);
	const struct job *job = id ? job_get(f, (struct job_id){ id }) : NULL;

	e->job = random_mostly(r, id);
	e->attempt = random_mostly(r, job ? job->last_attempt.v : 1);
	e->rank = random_upto(r, 4);
	e->launch = launch_of(r, f, e->attempt, e->rank);
	e->report = random_upto(r, 6);
	e->number = random_mostly(r, job ? (int64_t)job->checkpoints_made + 1 : 1);
	e->step = between(r, -1, 999);
	e->at_ms = random_upto(r, 100000);
	e->path = named(r, arena, "/ckpt/\xc3\xa4 \"", 1000);
}

static void fill_promise_made(struct random *r, const struct facts *f, struct arena *arena,
			      struct event_promise_made *e)
{
	uint32_t count = 1 + random_below(r, 4);
	int64_t *nodes = numbers(arena, count), *masks = numbers(arena, count),
		*victims = numbers(arena, 2);

	fill_places(r, f, nodes, masks, count);
	victims[0] = live_attempt(r, f);
	victims[1] = live_attempt(r, f);
	e->job = random_recent(r, f->jobs.count);
	e->nodes = nodes;
	e->masks = masks;
	e->nodes_count = e->masks_count = count;
	e->victims = victims;
	e->victims_count = random_below(r, 3);
	fill_parts(r, arena, count, &e->parts, &e->parts_count, &e->parts_mib, &e->parts_mib_count);
	e->slices = random_slices(r, arena, count, &e->slices_count);
}

static void fill_reservation_set(struct random *r, const struct facts *f, struct arena *arena,
				 struct event_reservation_set *e)
{
	uint32_t count = 1 + random_below(r, 4);
	int64_t *nodes = numbers(arena, count), *masks = numbers(arena, count);

	fill_places(r, f, nodes, masks, count);
	e->job = random_recent(r, f->jobs.count);
	e->start_ms = between(r, -1, 100000);
	e->nodes = nodes;
	e->masks = masks;
	e->nodes_count = e->masks_count = count;
	e->waits_for = random_recent(r, f->jobs.count);
}

/* How often each kind comes. */
static const struct {
	enum event_kind kind;
	uint32_t weight;
} weights[] = {
	{ EVENT_DAEMON_STARTED, 1 },
	{ EVENT_DECIDED, 1 },
	{ EVENT_CLOCK_TICKED, 1 },
	{ EVENT_POLICY_SET, 1 },
	{ EVENT_LEVELS_SET, 1 },
	{ EVENT_NODE_SET, 5 },
	{ EVENT_NODE_STATE, 3 },
	{ EVENT_GPU_STATE, 3 },
	{ EVENT_NODE_MARKED, 2 },
	{ EVENT_NODE_MASK, 2 },
	{ EVENT_NODE_WINDOW, 2 },
	{ EVENT_NODE_NUMA, 2 },
	{ EVENT_NODE_FOUND, 1 },
	{ EVENT_LAYOUT_SET, 3 },
	{ EVENT_QUEUE_SET, 4 },
	{ EVENT_QUEUE_REMOVED, 1 },
	{ EVENT_PRICE_SET, 1 },
	{ EVENT_ZONE_SET, 1 }, /* random_cluster.c */
	{ EVENT_DATA_SET, 1 },
	{ EVENT_TRANSFER_SET, 1 },
	{ EVENT_FABRIC_SET, 1 }, /* random_cluster.c */
	{ EVENT_BUDGET_SET, 1 },
	{ EVENT_TEAM_SET, 1 },
	{ EVENT_TEAM_REMOVED, 1 },
	{ EVENT_USER_SET, 1 },
	{ EVENT_USER_REMOVED, 1 },
	{ EVENT_TOKEN_CREATED, 1 },
	{ EVENT_TOKEN_REVOKED, 1 },
	{ EVENT_JOB_SUBMITTED, 25 },
	{ EVENT_JOB_HELD, 3 },
	{ EVENT_JOB_RELEASED, 4 },
	{ EVENT_JOB_CANCEL_ASKED, 2 },
	{ EVENT_JOB_PRIORITY_SET, 2 },
	{ EVENT_JOB_CHANGED, 6 },
	{ EVENT_CAPACITY_CHOSEN, 2 },
	{ EVENT_JOB_REQUEUED, 8 },
	{ EVENT_JOB_ENDED, 6 },
	{ EVENT_ATTEMPT_PLACED, 24 },
	{ EVENT_ATTEMPT_RELEASED, 10 },
	{ EVENT_ATTEMPT_WARNED, 5 },
	{ EVENT_ATTEMPT_SPARED, 4 },
	{ EVENT_ATTEMPT_STOPPED, 5 },
	{ EVENT_ATTEMPT_ENDED, 8 },
	{ EVENT_ATTEMPT_UNREACHABLE, 3 },
	{ EVENT_TASK_READY, 20 },
	{ EVENT_TASK_STARTED, 20 },
	{ EVENT_TASK_EXITED, 14 },
	{ EVENT_PROGRESS, 8 },
	{ EVENT_CHECKPOINT_SAVED, 12 },
	{ EVENT_CHECKPOINT_VOID, 3 },
	{ EVENT_ATTEMPT_SHRUNK, 6 },
	{ EVENT_ATTEMPT_GROWN, 8 },
	{ EVENT_RANKS_LEFT, 8 },
	{ EVENT_PROMISE_MADE, 4 },
	{ EVENT_PROMISE_DROPPED, 2 },
	{ EVENT_RESERVATIONS_REVIEWED, 1 },
	{ EVENT_BOOKING_SET, 2 },
	{ EVENT_BOOKING_ENDED, 1 },
	{ EVENT_RESERVATION_SET, 4 },
	{ EVENT_RESERVATION_DROPPED, 1 },
	{ EVENT_JOBS_FORGOTTEN, 2 },
	{ EVENT_RECORDS_LOST, 1 },
	{ EVENT_ENGINE_CLAIMED, 1 },
	{ EVENT_SEARCHED, 1 },
	{ EVENT_MOVES_PLANNED, 2 },
	{ EVENT_DEFRAG_ASKED, 1 },
	{ EVENT_ATTEMPT_SHIELDED, 2 },
	{ EVENT_ATTEMPT_DEAF, 2 },
};

static enum event_kind random_kind(struct random *r)
{
	uint32_t sum = 0, at;

	for (size_t i = 0; i < ARRAY_SIZE(weights); i++)
		sum += weights[i].weight;
	at = random_below(r, sum);
	for (size_t i = 0; i < ARRAY_SIZE(weights); i++) {
		if (at < weights[i].weight)
			return weights[i].kind;
		at -= weights[i].weight;
	}
	UNREACHABLE();
}

static void fill_cluster(struct random *r, const struct facts *f, struct arena *arena,
			 struct event *e)
{
	if (e->kind == EVENT_POLICY_SET) {
		e->policy_set = event_policy_make(0, "").policy_set;
		e->policy_set.grace_ms = between(r, -1, 999);
		e->policy_set.backfill_depth = between(r, -1, 63);
		e->policy_set.keep_ended_ms = between(r, -1, 1000);
		e->policy_set.order_age = between(r, -1, 9);
		e->policy_set.share_gpus = between(r, -1, SHARE_GPUS_OFF);
		e->policy_set.defragment = between(r, -1, DEFRAGMENT_OFF);
		e->policy_set.defragment_moves = between(r, -1, 30);
		e->policy_set.defragment_work_ms = between(r, -1, 1000);
		e->policy_set.patience = between(r, -1, 20);
		e->policy_set.spot_notice_ms = between(r, -1, 1000);
		e->policy_set.max_slowdown = between(r, -1, 200);
	} else if (e->kind == EVENT_SEARCHED) {
		e->searched.count = random_mostly(r, 0);
		e->searched.stale = random_upto(r, 1);
	} else if (e->kind == EVENT_RECORDS_LOST) {
		e->records_lost.jobs = random_recent(r, f->jobs.count);
		e->records_lost.attempts = random_recent(r, f->attempts.count);
	} else if (e->kind == EVENT_ENGINE_CLAIMED) {
		e->engine_claimed.engine = named(r, arena, "engine", 3);
		e->engine_claimed.cluster = named(r, arena, "cluster", 3);
		e->engine_claimed.namespace = named(r, arena, "space", 3);
		e->engine_claimed.instance = named(r, arena, "instance", 3);
	} else if (e->kind == EVENT_LEVELS_SET) {
		e->levels_set.levels = "zone,rack";
	} else if (e->kind == EVENT_NODE_SET) {
		fill_node_set(r, arena, &e->node_set);
	} else if (e->kind == EVENT_NODE_STATE) {
		e->node_state.node = random_recent(r, f->nodes.count);
		e->node_state.state = random_upto(r, NODE_MAINTENANCE);
		e->node_state.within_ms = random_below(r, 2) ? 0 : random_upto(r, 5000);
		e->node_state.reason = named(r, arena, "reason ", 4);
	} else if (e->kind == EVENT_NODE_MASK) {
		random_node_mask(r, f, arena, &e->node_mask);
	} else if (e->kind == EVENT_NODE_MARKED) {
		random_node_marked(r, f, arena, &e->node_marked);
	} else if (e->kind == EVENT_NODE_WINDOW) {
		e->node_window.node = random_recent(r, f->nodes.count);
		e->node_window.from_ms = random_below(r, 4) ? random_upto(r, 500000) : 0;
		e->node_window.to_ms = random_below(r, 4) ? random_upto(r, 900000) : 0;
		e->node_window.reason = named(r, arena, "reason ", 4);
	} else if (e->kind == EVENT_NODE_FOUND) {
		random_node_found(r, f, arena, &e->node_found);
	} else if (e->kind == EVENT_NODE_NUMA) {
		random_node_numa(r, f, arena, &e->node_numa);
	} else if (e->kind == EVENT_LAYOUT_SET) {
		random_layouts(r, f, arena, &e->layout_set);
	} else if (e->kind == EVENT_GPU_STATE) {
		e->gpu_state.node = random_recent(r, f->nodes.count);
		e->gpu_state.mask = random_upto(r, 15);
		e->gpu_state.set_aside = random_upto(r, 1);
		e->gpu_state.reason = named(r, arena, "reason ", 4);
	} else if (e->kind == EVENT_QUEUE_SET) {
		e->queue_set.name = named(r, arena, "q", 6);
		e->queue_set.parent = random_below(r, 2) ? "" : named(r, arena, "q", 7);
		e->queue_set.guarantee_share =
			random_mostly(r, (int64_t)random_below(r, 9) * GPU_SHARE);
		e->queue_set.limit_share = between(r, -1, 7);
		e->queue_set.weight = random_upto(r, 5);
		e->queue_set.reserved = random_upto(r, 1);
		e->queue_set.default_limit_ms = random_upto(r, 1000);
		e->queue_set.team = named(r, arena, "t", 3);
		e->queue_set.used_gpu_ms = random_upto(r, 1000);
		e->queue_set.limit_cpu_milli = random_mostly(r, 0);
		e->queue_set.limit_ram_mib = random_upto(r, 100);
		if (random_below(r, 3) == 0) {
			static const int64_t promised[] = { GPU_SHARE };

			e->queue_set.guarantee_models = named(r, arena, "model", 3);
			e->queue_set.guarantee_model_shares = promised;
			e->queue_set.guarantee_model_shares_count = 1;
		}
		e->queue_set.calendar = random_below(r, 4) ? "" : named(r, arena, "sat ", 4);
		e->queue_set.tiers = random_mostly(r, 0);
		e->queue_set.max_priority = random_mostly(r, 0);
		e->queue_set.user_limit_share = random_mostly(r, 0);
		e->queue_set.user_part = random_mostly(r, 0);
		e->queue_set.user_waiting = random_mostly(r, 0);
	} else if (e->kind == EVENT_BOOKING_SET) {
		random_booking(r, f, arena, &e->booking_set);
	} else if (e->kind == EVENT_BOOKING_ENDED) {
		e->booking_ended.name = named(r, arena, "book", 6);
	} else if (e->kind == EVENT_PRICE_SET || e->kind == EVENT_BUDGET_SET) {
		random_money(r, arena, e);
	} else if (e->kind == EVENT_QUEUE_REMOVED) {
		e->queue_removed.name = named(r, arena, "q", 6);
	} else if (e->kind == EVENT_DATA_SET || e->kind == EVENT_TRANSFER_SET) {
		random_data(r, arena, e);
	} else if (e->kind == EVENT_ZONE_SET) {
		random_zone(r, f->now_ms, arena, &e->zone_set);
	} else if (e->kind == EVENT_FABRIC_SET) {
		random_fabric(r, f, arena, &e->fabric_set);
	}
}

static void fill_people(struct random *r, struct arena *arena, struct event *e)
{
	if (e->kind == EVENT_TEAM_SET) {
		e->team_set.name = named(r, arena, "t", 4);
		e->team_set.team = random_upto(r, 1);
		e->team_set.title =
			"a team with a title longer than a name can be, which is cut after character \xc3\xa4\xc3\xa4\xc3\xa4";
	} else if (e->kind == EVENT_TEAM_REMOVED) {
		e->team_removed.name = named(r, arena, "t", 4);
	} else if (e->kind == EVENT_USER_SET) {
		e->user_set.name = named(r, arena, "u", 8);
		e->user_set.team = named(r, arena, "t", 4);
		e->user_set.role = random_upto(r, ROLE_ADMIN);
		e->user_set.uid = between(r, -1, 1999);
		e->user_set.gid = between(r, -1, 1999);
		e->user_set.user = random_upto(r, 1);
		e->user_set.queue = random_below(r, 4) ? "" : named(r, arena, "q", 6);
	} else if (e->kind == EVENT_USER_REMOVED) {
		e->user_removed.name = named(r, arena, "u", 8);
		e->user_removed.user = random_upto(r, 1);
	} else if (e->kind == EVENT_TOKEN_CREATED) {
		e->token_created.id = named(r, arena, "token-", 50);
		e->token_created.user = named(r, arena, "u", 8);
		e->token_created.hash = hex(r, arena);
		e->token_created.expires_ms = random_upto(r, 1000);
		e->token_created.note = "laptop";
		e->token_created.owner = random_upto(r, 1);
	} else if (e->kind == EVENT_TOKEN_REVOKED) {
		e->token_revoked.id = named(r, arena, "token-", 50);
	}
}

/* Most of them are not over, and stay. */
static void fill_jobs_forgotten(struct random *r, const struct facts *f, struct arena *arena,
				struct event_jobs_forgotten *e)
{
	int64_t *jobs = numbers(arena, 6);

	e->jobs_count = random_below(r, 7);
	for (uint32_t i = 0; i < 6; i++)
		jobs[i] = random_below(r, 3) ? 1 + (int64_t)random_below(r, f->jobs.count + 1)
					     : random_recent(r, f->jobs.count);
	e->jobs = jobs;
}

/* Mostly success, so that what depends on it goes on. */
static const uint8_t ended_states[] = {
	JOB_SUCCEEDED, JOB_SUCCEEDED, JOB_SUCCEEDED, JOB_SUCCEEDED,
	JOB_SUCCEEDED, JOB_FAILED,    JOB_CANCELLED, JOB_TIMED_OUT,
};

/* A word or some, with what another submission would say; now and then words that nobody knows. */
static void fill_job_changed(struct random *r, const struct facts *f, struct arena *arena,
			     int64_t job, struct event_job_changed *e)
{
	struct event other = event_make(EVENT_JOB_SUBMITTED, 0, "");
	char words[EVENT_TEXT_MAX + 1];
	uint64_t set = 0;

	fill_job_submitted(r, f, arena, &other.job_submitted);
	for (uint32_t count = 1 + random_below(r, 4); count-- > 0;)
		set |= UINT64_C(1) << random_below(r, JOB_CHANGES);
	if (random_below(r, 4) == 0)
		set = JOB_CHANGE_BIT(NAME) | JOB_CHANGE_BIT(LIMIT);
	job_changes_take(set, &other.job_submitted, e);
	e->job = job;
	e->whole = random_upto(r, 1);
	e->what = random_below(r, 20) ? arena_strdup(arena, job_changes_text(set, words)) : "hat";
}

static void fill_job(struct random *r, const struct facts *f, struct arena *arena, struct event *e)
{
	static const char *const reasons[] = { "", "it is torn", "it is missing" };
	int64_t job = random_recent(r, f->jobs.count);

	if (e->kind == EVENT_JOB_SUBMITTED) {
		fill_job_submitted(r, f, arena, &e->job_submitted);
	} else if (e->kind == EVENT_JOB_HELD) {
		e->job_held.job = job;
		e->job_held.reason = named(r, arena, "hold ", 3);
	} else if (e->kind == EVENT_JOB_RELEASED) {
		e->job_released.job = job;
	} else if (e->kind == EVENT_JOB_CANCEL_ASKED) {
		e->job_cancel_asked.job = job;
		e->job_cancel_asked.reason = named(r, arena, "cancel ", 3);
	} else if (e->kind == EVENT_JOB_PRIORITY_SET) {
		e->job_priority_set.job = job;
		e->job_priority_set.priority = between(r, -50, 50);
	} else if (e->kind == EVENT_JOB_CHANGED) {
		fill_job_changed(r, f, arena, job, &e->job_changed);
	} else if (e->kind == EVENT_CAPACITY_CHOSEN) {
		e->capacity_chosen.job = job;
		e->capacity_chosen.capacity = random_upto(r, CAPACITY_ANY);
	} else if (e->kind == EVENT_JOB_REQUEUED) {
		e->job_requeued.job = job;
		e->job_requeued.why = random_upto(r, REQUEUE_MOVED);
		e->job_requeued.retries_left = random_upto(r, 3);
		e->job_requeued.text = named(r, arena, "again ", 3);
	} else if (e->kind == EVENT_JOB_ENDED) {
		e->job_ended.job = job;
		e->job_ended.state =
			random_mostly(r, ended_states[random_below(r, ARRAY_SIZE(ended_states))]);
		e->job_ended.code = random_upto(r, 3);
		e->job_ended.rank = between(r, -1, 3);
		e->job_ended.text = named(r, arena, "end ", 3);
	} else if (e->kind == EVENT_JOBS_FORGOTTEN) {
		fill_jobs_forgotten(r, f, arena, &e->jobs_forgotten);
	} else if (e->kind == EVENT_PROMISE_MADE) {
		fill_promise_made(r, f, arena, &e->promise_made);
	} else if (e->kind == EVENT_PROMISE_DROPPED) {
		e->promise_dropped.job = job;
	} else if (e->kind == EVENT_RESERVATION_SET) {
		fill_reservation_set(r, f, arena, &e->reservation_set);
	} else if (e->kind == EVENT_RESERVATIONS_REVIEWED) {
		e->reservations_reviewed.kept = random_upto(r, 1);
	} else if (e->kind == EVENT_RESERVATION_DROPPED) {
		e->reservation_dropped.job = job;
	} else if (e->kind == EVENT_MOVES_PLANNED) {
		random_moves(r, f, arena, &e->moves_planned);
	} else if (e->kind == EVENT_CHECKPOINT_SAVED) {
		fill_checkpoint_saved(r, f, arena, &e->checkpoint_saved);
	} else if (e->kind == EVENT_CHECKPOINT_VOID) {
		e->checkpoint_void.job = job;
		e->checkpoint_void.number = random_upto(r, 6);
		e->checkpoint_void.reason = reasons[(uint64_t)e->checkpoint_void.number % 3];
		e->checkpoint_void.lost_gpu_ms = random_upto(r, 1000);
		e->checkpoint_void.lost_ms = random_upto(r, 1000);
	}
}

/* Ranks of the attempt that are in this state or that one, at most `most`; new ones behind the last when `widen`. */
static uint32_t pick_ranks(struct random *r, const struct facts *f, int64_t attempt, int64_t *ret,
			   uint32_t most, uint8_t first, uint8_t last, bool widen)
{
	enum { WIDEST = 8 };
	const struct attempt *a;
	uint32_t count = 0;

	if (!attempt_is_there(f, attempt))
		return 0;
	a = attempt_get(f, (struct attempt_id){ (uint32_t)attempt });
	for (uint32_t rank = 0; a->first_task && rank < a->tasks && count < most; rank++) {
		uint8_t state = task_get(f, a, rank)->state;

		if ((state >= first && state <= last) ? random_below(r, 3) : !random_below(r, 40))
			ret[count++] = rank;
	}
	for (uint32_t rank = a->tasks; widen && rank < WIDEST && count < most; rank++)
		ret[count++] = rank;
	return count;
}

static void fill_resize(struct random *r, const struct facts *f, struct arena *arena,
			struct event *e)
{
	enum { MOST = 3 };
	int64_t attempt = live_attempt(r, f), *ranks = numbers(arena, MOST),
		*nodes = numbers(arena, MOST), *masks = numbers(arena, MOST);
	uint32_t count;

	if (e->kind == EVENT_ATTEMPT_SHRUNK) {
		count = pick_ranks(r, f, attempt, ranks, 1 + random_below(r, MOST), TASK_PREPARING,
				   TASK_RUNNING, false);
		e->attempt_shrunk.attempt = attempt;
		e->attempt_shrunk.for_job = random_recent(r, f->jobs.count);
		e->attempt_shrunk.grace_ms = random_upto(r, 1000);
		e->attempt_shrunk.ranks = ranks;
		e->attempt_shrunk.ranks_count = count;
	} else if (e->kind == EVENT_RANKS_LEFT) {
		count = pick_ranks(r, f, attempt, ranks, 1 + random_below(r, MOST), TASK_EXITED,
				   TASK_EXITED, false);
		e->ranks_left.attempt = attempt;
		e->ranks_left.ranks = ranks;
		e->ranks_left.ranks_count = count;
		e->ranks_left.used_gpu_ms = random_upto(r, 1000);
		e->ranks_left.lost_gpu_ms = random_upto(r, 100);
		e->ranks_left.text = named(r, arena, "gone ", 3);
	} else if (e->kind == EVENT_ATTEMPT_GROWN) {
		bool widen = random_below(r, 2);

		count = pick_ranks(r, f, attempt, ranks, 1 + random_below(r, MOST), TASK_LEFT,
				   TASK_LEFT, widen);
		fill_places(r, f, nodes, masks, count);
		e->attempt_grown.attempt = attempt;
		e->attempt_grown.ranks = ranks;
		e->attempt_grown.nodes = nodes;
		e->attempt_grown.masks = masks;
		e->attempt_grown.ranks_count = e->attempt_grown.nodes_count =
			e->attempt_grown.masks_count = count;
	}
}

static void fill_attempt(struct random *r, const struct facts *f, struct arena *arena,
			 struct event *e)
{
	int64_t attempt = live_attempt(r, f);

	if (e->kind == EVENT_ATTEMPT_PLACED) {
		fill_attempt_placed(r, f, arena, &e->attempt_placed);
	} else if (e->kind == EVENT_ATTEMPT_RELEASED) {
		e->attempt_released.attempt = attempt;
	} else if (e->kind == EVENT_ATTEMPT_WARNED) {
		e->attempt_warned.attempt = attempt;
		e->attempt_warned.for_job = random_recent(r, f->jobs.count);
		e->attempt_warned.deadline_ms = f->now_ms + random_below(r, 1000);
		if (!random_below(r, 10))
			e->attempt_warned.deadline_ms = random_wild(r);
	} else if (e->kind == EVENT_ATTEMPT_SPARED) {
		e->attempt_spared.attempt = attempt;
	} else if (e->kind == EVENT_ATTEMPT_STOPPED) {
		e->attempt_stopped.attempt = attempt;
		e->attempt_stopped.why = random_upto(r, STOP_MOVED);
		e->attempt_stopped.grace_ms = random_upto(r, 1000);
	} else if (e->kind == EVENT_ATTEMPT_ENDED) {
		fill_attempt_ended(r, f, arena, &e->attempt_ended);
	} else if (e->kind == EVENT_ATTEMPT_UNREACHABLE) {
		e->attempt_unreachable.attempt = attempt;
		e->attempt_unreachable.unreachable = random_upto(r, 1);
	} else if (e->kind == EVENT_ATTEMPT_SHIELDED) {
		e->attempt_shielded.attempt = attempt;
		e->attempt_shielded.shielded = random_upto(r, 1);
		e->attempt_shielded.least = between(r, -1, 4);
	} else if (e->kind == EVENT_ATTEMPT_DEAF) {
		e->attempt_deaf.attempt = attempt;
	} else if (e->kind == EVENT_TASK_READY) {
		e->task_ready.attempt = attempt;
		e->task_ready.rank = random_upto(r, 5);
		e->task_ready.launch = launch_of(r, f, attempt, e->task_ready.rank);
	} else if (e->kind == EVENT_TASK_STARTED) {
		e->task_started.attempt = attempt;
		e->task_started.rank = random_upto(r, 5);
		e->task_started.launch = launch_of(r, f, attempt, e->task_started.rank);
	} else if (e->kind == EVENT_TASK_EXITED) {
		fill_task_exited(r, f, arena, &e->task_exited);
	} else if (e->kind == EVENT_PROGRESS) {
		e->progress.attempt = attempt;
		e->progress.rank = random_upto(r, 3);
		e->progress.launch = launch_of(r, f, attempt, e->progress.rank);
		e->progress.number = random_upto(r, 8);
		e->progress.step = between(r, -1, 999);
	}
}

struct event random_event(struct random *r, const struct facts *f, struct arena *arena)
{
	int64_t time_ms = f->now_ms + random_below(r, 100);
	enum event_kind kind;
	struct event e;

	if (!random_below(r, 20))
		time_ms -= 150;
	if (!f->now_ms)
		time_ms = 1700000000000;
	kind = random_kind(r); /* one call a statement: compilers order arguments as they like */
	e = event_make(kind, time_ms, named(r, arena, "u", 8));
	e.seq = f->seq + 1;
	fill_cluster(r, f, arena, &e);
	fill_people(r, arena, &e);
	fill_job(r, f, arena, &e);
	fill_attempt(r, f, arena, &e);
	fill_resize(r, f, arena, &e);
	return e;
}
