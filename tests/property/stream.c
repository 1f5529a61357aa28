/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_stream SEED STEPS: a random stream of commands and faults on 2 to 32 nodes, lived through by two worlds of the production
 * core in virtual time. The second world has every node, queue, rack and user renamed (in the same order), and was
 * given its nodes and queues in another order. The checkers of src/sim look after each event. Here besides:
 *
 *	renaming and order	both worlds decide the same, event for event, once the names are read back
 *	promised places		nobody else is placed on a GPU that is promised, until the promise is used up or dropped
 *	no ping-pong		while people and machines do nothing, no job evicts the one that evicted it
 *	replay			a third set of facts is fed with the journal's text alone: the same hash
 *	rebuilt index		every so many turns (world.look_every)
 *
 * The random numbers choose by index, so both worlds are asked for the same things under other names.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/parse.h"
#include "sim/world.h"
#include "unlike_tasks.h"

enum {
	NODES_MAX = 32,
	WAITING_MAX = 50,
	QUEUES = 6,
	PAIRS_MAX = 256,
	LOOK_EVERY = 53,
	FITS_FROM = 100000,
	TIMES_FROM = 200000,
	BARE_FROM = 300000,
	BARE_END = 400000,
	SPOT_FROM = 400000,
	SPOT_END = 500000
};

struct eviction {
	uint32_t victim, by;
};

struct life {
	struct world world;
	struct facts replay;
	struct arena text;
	bool other; /* renamed, and in another order */
	struct buf said; /* decisions since the last comparison */
	uint32_t promised_mask[NODES_MAX + 1], promised_job[NODES_MAX + 1][NODE_GPUS_MAX];
	struct eviction evictions[PAIRS_MAX]; /* since anybody did anything */
	uint32_t eviction_count, promises, placed, chosen, back; /* back: moves to spot nodes */
};

struct stream {
	struct life lives[2];
	struct sim_random random;
	uint32_t nodes;
	uint32_t order[NODES_MAX];
	int64_t gpus[NODES_MAX];
	const char *model[NODES_MAX];
	bool spot_node[NODES_MAX];
	bool fits; /* jobs have wishes about the place: seeds from FITS_FROM on */
	bool times; /* maintenance is announced: seeds from TIMES_FROM on */
	bool bare; /* half of the jobs and some nodes have no GPUs, and processors are scarce: seeds from BARE_FROM to BARE_END */
	bool spot; /* some nodes are spot nodes, and come and go: seeds from SPOT_FROM to SPOT_END */
};

static uint32_t below(struct stream *s, uint32_t limit)
{
	return sim_random_below(&s->random, limit);
}

static bool one_in(struct stream *s, uint32_t n)
{
	return below(s, n) == 0;
}

/* --- names ----------------------------------------------------------------------------------------------------- */

static const char *name_of(struct life *l, const char *plain, uint32_t number)
{
	return arena_printf(&l->text, "%s%s%02u", l->other ? "zz-" : "", plain, number);
}

static const char *queue_name(struct life *l, uint32_t q)
{
	return q == 0 ? "default" : name_of(l, "q", q);
}

/* Names of the second world read back. */
static void unrename(struct buf *text)
{
	char *to = text->data, *from = text->data;

	if (!text->data)
		return;
	while (*from) {
		if (strncmp(from, "zz-", 3) == 0) {
			from += 3;
			continue;
		}
		*to++ = *from++;
	}
	*to = '\0';
	text->size = (size_t)(to - text->data);
}

/* --- what is said ------------------------------------------------------------------------------------------------- */

static const char *node_name(const struct life *l, int64_t node)
{
	return facts_name(&l->world.facts,
			  node_get(&l->world.facts, (struct node_id){ (uint32_t)node })->name);
}

static void places_say(struct life *l, const int64_t *nodes, const int64_t *masks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		buf_addf(&l->said, " %s/%" PRIx64, node_name(l, nodes[i]), (uint64_t)masks[i]);
}

/* Numbers of nodes differ between the worlds, so they are told by name. */
static void say(struct life *l, const struct event *event)
{
	struct event e = *event;

	buf_addf(&l->said, "%" PRId64 " %s", e.time_ms, event_info(e.kind)->name);
	if (e.kind == EVENT_ATTEMPT_PLACED) {
		places_say(l, e.attempt_placed.nodes, e.attempt_placed.masks,
			   e.attempt_placed.nodes_count);
		e.attempt_placed.nodes_count = 0;
	} else if (e.kind == EVENT_ATTEMPT_GROWN) {
		places_say(l, e.attempt_grown.nodes, e.attempt_grown.masks,
			   e.attempt_grown.nodes_count);
		e.attempt_grown.nodes_count = 0;
	} else if (e.kind == EVENT_PROMISE_MADE) {
		places_say(l, e.promise_made.nodes, e.promise_made.masks,
			   e.promise_made.nodes_count);
		e.promise_made.nodes_count = 0;
	} else if (e.kind == EVENT_RESERVATION_SET) {
		places_say(l, e.reservation_set.nodes, e.reservation_set.masks,
			   e.reservation_set.nodes_count);
		e.reservation_set.nodes_count = 0;
	} else if (e.kind == EVENT_ATTEMPT_ENDED) {
		places_say(l, e.attempt_ended.blamed_nodes, e.attempt_ended.blamed_masks,
			   e.attempt_ended.blamed_nodes_count);
		e.attempt_ended.blamed_nodes_count = 0;
	} else if (e.kind == EVENT_NODE_STATE) {
		buf_addf(&l->said, " %s", node_name(l, e.node_state.node));
		e.node_state.node = 0;
	} else if (e.kind == EVENT_NODE_WINDOW) {
		buf_addf(&l->said, " %s", node_name(l, e.node_window.node));
		e.node_window.node = 0;
	} else if (e.kind == EVENT_GPU_STATE) {
		buf_addf(&l->said, " %s", node_name(l, e.gpu_state.node));
		e.gpu_state.node = 0;
	}
	buf_addc(&l->said, ' ');
	event_encode(&e, &l->said);
	buf_addc(&l->said, '\n');
}

/* --- checks --------------------------------------------------------------------------------------------------------- */

static void problem(struct life *l, const char *what, uint32_t job, uint32_t other)
{
	checks_problem(&l->world.checks, &l->world.facts, "%s (jobs %u and %u)", what, job, other);
}

static void promise_forget(struct life *l, uint32_t job)
{
	for (uint32_t n = 1; n <= NODES_MAX; n++)
		for (uint32_t g = 0; g < NODE_GPUS_MAX; g++)
			if (l->promised_job[n][g] == job) {
				l->promised_job[n][g] = 0;
				l->promised_mask[n] &= ~(UINT32_C(1) << g);
			}
}

static void promise_note(struct life *l, const struct event_promise_made *e)
{
	uint32_t job = (uint32_t)e->job;

	promise_forget(l, job);
	l->promises++;
	l->back += e->victims_count == 1 &&
		   job_get(&l->world.facts, (struct job_id){ job })->attempt.v == e->victims[0];
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		uint32_t node = (uint32_t)e->nodes[i], mask = (uint32_t)e->masks[i];

		if (l->promised_mask[node] & mask)
			problem(l, "a GPU is promised twice", job, 0);
		for (uint32_t g = 0; g < NODE_GPUS_MAX; g++)
			if (mask >> g & 1)
				l->promised_job[node][g] = job;
		l->promised_mask[node] |= mask;
	}
}

static void grown_check(struct life *l, const struct event_attempt_grown *e)
{
	for (uint32_t i = 0; i < e->nodes_count; i++)
		if (l->promised_mask[e->nodes[i]] & (uint32_t)e->masks[i])
			problem(l, "a place that is promised to another is grown into",
				(uint32_t)e->attempt, 0);
}

static void placed_check(struct life *l, const struct event_attempt_placed *e)
{
	promise_forget(l, (uint32_t)e->job);
	l->placed++;
	for (uint32_t i = 0; i < e->nodes_count; i++)
		if (l->promised_mask[e->nodes[i]] & (uint32_t)e->masks[i])
			problem(l, "a place that is promised to another is given away",
				(uint32_t)e->job, 0);
}

static void eviction_check(struct life *l, int64_t attempt, int64_t for_job)
{
	uint32_t victim = attempt_get(&l->world.facts, (struct attempt_id){ (uint32_t)attempt })
				  ->job.v,
		 by = (uint32_t)for_job;

	for (uint32_t i = 0; i < l->eviction_count; i++)
		if (l->evictions[i].victim == by && l->evictions[i].by == victim)
			problem(l, "a job evicts the one that evicted it", by, victim);
	if (l->eviction_count < PAIRS_MAX)
		l->evictions[l->eviction_count++] = (struct eviction){ victim, by };
}

static bool is_of_people(enum event_kind kind)
{
	return kind == EVENT_NODE_SET || kind == EVENT_NODE_NUMA || kind == EVENT_NODE_STATE ||
	       kind == EVENT_GPU_STATE || kind == EVENT_NODE_WINDOW || kind == EVENT_QUEUE_SET ||
	       kind == EVENT_JOB_SUBMITTED || kind == EVENT_JOB_HELD ||
	       kind == EVENT_JOB_RELEASED || kind == EVENT_JOB_CANCEL_ASKED ||
	       kind == EVENT_JOB_PRIORITY_SET || kind == EVENT_JOB_CHANGED ||
	       kind == EVENT_TASK_EXITED;
}

static void replay_follow(struct life *l, const struct event *e)
{
	AUTO_BUF text = BUF_INIT;
	struct event again;
	struct err why;

	event_encode(e, &text);
	arena_reset(&l->text);
	CHECK(event_decode((uint32_t)e->kind, e->seq, e->time_ms, buf_text(&text), text.size,
			   &l->text, &again, &why) >= 0);
	apply(&l->replay, &again);
}

static void observe(void *context, const struct world *world, const struct event *e, bool decision)
{
	struct life *l = context;

	(void)world;
	replay_follow(l, e);
	if (!decision && is_of_people(e->kind))
		l->eviction_count = 0;
	if (!decision)
		return;
	say(l, e);
	l->chosen += e->kind == EVENT_CAPACITY_CHOSEN;
	if (e->kind == EVENT_PROMISE_MADE)
		promise_note(l, &e->promise_made);
	else if (e->kind == EVENT_PROMISE_DROPPED)
		promise_forget(l, (uint32_t)e->promise_dropped.job);
	else if (e->kind == EVENT_JOB_ENDED)
		promise_forget(l, (uint32_t)e->job_ended.job);
	else if (e->kind == EVENT_ATTEMPT_PLACED)
		placed_check(l, &e->attempt_placed);
	else if (e->kind == EVENT_ATTEMPT_GROWN)
		grown_check(l, &e->attempt_grown);
	else if (e->kind == EVENT_ATTEMPT_WARNED && e->attempt_warned.for_job)
		eviction_check(l, e->attempt_warned.attempt, e->attempt_warned.for_job);
}

/* --- the stream ------------------------------------------------------------------------------------------------------- */

static int offer(struct life *l, struct event *e)
{
	struct err why;
	int rc = world_offer(&l->world, e, NULL, &why);

	if (rc < 0 && why.code == ERR_INTERNAL)
		checks_problem(&l->world.checks, &l->world.facts, "%s", why.text);
	arena_reset(&l->text);
	return rc;
}

/* Two NUMA nodes for hosts of four GPUs and more; a network card in the second. */
static void numa_set(const struct stream *s, struct life *l, uint32_t n)
{
	struct event e = event_make(EVENT_NODE_NUMA, 0, "test");
	int64_t half = s->gpus[n] / 2, gpus[2] = { (INT64_C(1) << half) - 1, 0 };
	static const int64_t cpus[2] = { 32000, 24000 }, nics[2] = { 0, 1 };

	gpus[1] = ((INT64_C(1) << s->gpus[n]) - 1) & ~gpus[0];
	e.node_numa.node = facts_node_find(&l->world.facts, name_of(l, "n", n)).v;
	e.node_numa.gpus = gpus;
	e.node_numa.cpu_milli = cpus;
	e.node_numa.nics = nics;
	e.node_numa.gpus_count = e.node_numa.cpu_milli_count = e.node_numa.nics_count =
		half > 1 ? 2 : 0;
	(void)offer(l, &e);
}

static void spot_set(struct life *l, uint32_t n)
{
	struct event e = event_make(EVENT_NODE_MARKED, 0, "test");

	e.node_marked.node = facts_node_find(&l->world.facts, name_of(l, "n", n)).v;
	e.node_marked.capacity = CAPACITY_SPOT;
	(void)offer(l, &e);
}

static void node_set(struct stream *s, struct life *l, uint32_t n)
{
	struct event e = event_make(EVENT_NODE_SET, 0, "test");

	e.node_set.name = name_of(l, "n", n);
	e.node_set.gpus = s->gpus[n];
	e.node_set.model = s->gpus[n] ? s->model[n] : "";
	e.node_set.gpu_memory_mib = 81920;
	e.node_set.cpu_milli = 64000;
	e.node_set.ram_mib = 524288;
	e.node_set.domains =
		arena_printf(&l->text, "%s,%s", name_of(l, "row", n / 8), name_of(l, "r", n / 3));
	e.node_set.simulated = 1;
	(void)offer(l, &e);
	if (s->fits && s->gpus[n])
		numa_set(s, l, n);
	if (s->spot_node[n])
		spot_set(l, n);
}

static void queue_set(struct life *l, uint32_t q, int64_t guarantee, int64_t limit, int64_t weight)
{
	struct event e = event_make(EVENT_QUEUE_SET, 0, "test");

	e.queue_set.name = queue_name(l, q);
	e.queue_set.parent = q >= 4 ? queue_name(l, 3) : "";
	e.queue_set.guarantee_share = q ? guarantee * GPU_SHARE : 0;
	e.queue_set.limit_share = limit < 0 ? -1 : limit * GPU_SHARE;
	e.queue_set.weight = weight;
	(void)offer(l, &e);
}

static void life_begin(struct stream *s, struct life *l, bool other)
{
	struct event levels = event_make(EVENT_LEVELS_SET, 0, "test"),
		     policy = event_policy_make(0, "test");

	l->other = other;
	world_init(&l->world, WORLD_EPOCH_MS);
	facts_init(&l->replay);
	arena_init(&l->text, (size_t)1 << 26);
	l->world.look_every = LOOK_EVERY;
	l->world.context = l;
	l->world.observe = observe;
	levels.levels_set.levels = "row,rack";
	policy.policy_set.min_runtime_ms = 10000;
	policy.policy_set.grace_ms = 30000;
	policy.policy_set.rejoin_ms = 0;
	(void)offer(l, &levels);
	(void)offer(l, &policy);
	for (uint32_t i = 0; i < s->nodes; i++)
		node_set(s, l, other ? s->order[i] : i);
	queue_set(l, 0, 0, -1, 1);
	queue_set(l, 3, 0, -1, 1);
	for (uint32_t i = 1; i < QUEUES; i++) {
		uint32_t q = other ? QUEUES - i : i;

		queue_set(l, q, q * 2 % 5, q == 2 ? 12 : -1, 1 + q % 3);
	}
}

static void set_up(struct stream *s)
{
	static const char *const models[] = { "A100-80GB", "H100-80GB", "H100-80GB" };

	s->nodes = 2 + below(s, NODES_MAX - 1);
	for (uint32_t n = 0; n < s->nodes; n++) {
		uint32_t at = below(s, n + 1);

		s->order[n] = s->order[at];
		s->order[at] = n;
		s->gpus[n] = INT64_C(1) << (1 + below(s, 3));
		s->model[n] = models[below(s, 3)];
		if (s->bare && one_in(s, 6))
			s->gpus[n] = 0;
		s->spot_node[n] = s->spot && one_in(s, 2);
	}
	life_begin(s, &s->lives[0], false);
	life_begin(s, &s->lives[1], true);
}

/* So many that one pass can look for everybody's victims: beyond that a search goes on where the last pass ended, which
 * is remembered beside the facts (core.h), and a rebuilt index begins anew. */
static bool many_wait(const struct stream *s)
{
	const struct facts *f = &s->lives[0].world.facts;
	uint32_t waiting = 0;

	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });

		waiting += !job_state_is_final(job->state) && !job->attempt.v;
	}
	return waiting >= WAITING_MAX;
}

static void submit(struct stream *s)
{
	static const char *const levels[] = { "", "", "", "rack", "row", "node" };
	struct event_job_submitted wish = event_make(EVENT_JOB_SUBMITTED, 0, "").job_submitted;
	struct sim_work work = { .fails_after_ms =
					 one_in(s, 8) ? (int64_t)below(s, 120000) : SIM_FOREVER,
				 .runtime_ms = 1000 + (int64_t)below(s, 300000),
				 .takes_ms = (int64_t)below(s, 20000),
				 .every_ms = one_in(s, 2) ? 30000 : 0,
				 .ready_ms = (int64_t)below(s, 3000),
				 .start_ms = (int64_t)below(s, 1000),
				 .stop_ms = (int64_t)below(s, 5000),
				 .checkpoints = one_in(s, 2) };
	uint32_t queue = below(s, QUEUES), user = below(s, 4);
	int64_t numbers[2 * ROLE_NUMBERS] = { 0 };

	wish.kind = below(s, 3);
	wish.tasks_min = 1 + below(s, 4);
	wish.gpus = 1 + below(s, 3) % 3;
	wish.priority = (int64_t)below(s, 5) - 2;
	wish.tier = one_in(s, 8) ? TIER_CRITICAL : one_in(s, 3) ? TIER_BEST_EFFORT : TIER_STANDARD;
	wish.tasks_max = wish.tasks_min + (one_in(s, 4) ? below(s, 4) : 0);
	wish.models = one_in(s, 4) ? "H100-80GB" : "";
	wish.cpu_milli = (int64_t)below(s, 4) * 4000;
	if (s->bare) {
		wish.gpus = one_in(s, 2) ? 0 : wish.gpus;
		wish.models = wish.gpus ? wish.models : "";
		wish.cpu_milli = (int64_t)below(s, wish.gpus ? 5 : 9) * 8000;
		wish.memory_mib = one_in(s, 3) ? (int64_t)below(s, 5) * 65536 : 0;
	}
	wish.require = levels[below(s, 6)];
	wish.limit_ms = one_in(s, 4) ? (int64_t)(1 + below(s, 300)) * 1000 : 0;
	wish.retries = below(s, 3);
	wish.preempts = !one_in(s, 5);
	wish.checkpoint = work.checkpoints;
	wish.checkpoint_every_ms = work.every_ms;
	wish.grace_ms = one_in(s, 2) ? -1 : (int64_t)below(s, 60) * 1000;
	wish.restart_cost_ms = (int64_t)below(s, 60) * 1000;
	wish.array_count = one_in(s, 20) ? 2 + below(s, 5) : 0;
	wish.array_limit = wish.array_count && one_in(s, 2) ? 1 + below(s, 3) : 0;
	if (s->fits) {
		wish.spread = levels[below(s, 6)];
		wish.mixes = one_in(s, 2);
		wish.data = one_in(s, 2) ? "" : "web";
		wish.align = wish.gpus ? below(s, 3) : 0;
		wish.window = one_in(s, 3) ? "00:00-00:10,00:13-00:20" : "";
		wish.window_end = *wish.window && one_in(s, 3);
		wish.own_labels = one_in(s, 4) ? "app=web" : "";
		wish.apart_from = one_in(s, 5) ? "app=web" : "";
		wish.apart_wish = *wish.apart_from && one_in(s, 4);
	}
	if (s->spot && wish.kind != KIND_INFERENCE && wish.tier != TIER_CRITICAL && !one_in(s, 4)) {
		wish.checkpoint = work.checkpoints = true;
		wish.capacity = one_in(s, 4) ? CAPACITY_SPOT : CAPACITY_ANY;
		wish.deadline_ms = one_in(s, 4) ? 0
						: s->lives[0].world.now_ms +
							  (int64_t)(60 + below(s, 5400)) * 1000;
	}
	unlike_tasks_add(&s->random, &wish, numbers, &work);
	wish.body = wish.body_mac =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	for (int i = 0; i < 2; i++) {
		struct life *l = &s->lives[i];
		struct event e = event_make(EVENT_JOB_SUBMITTED, 0, "test");
		uint32_t first = l->world.facts.jobs.count + 1;

		e.job_submitted = wish;
		e.job_submitted.name = name_of(l, "job", first % 100);
		e.job_submitted.user = name_of(l, "user", user);
		e.job_submitted.queue = queue_name(l, queue);
		if (offer(l, &e) == 0)
			for (uint32_t id = first; id <= l->world.facts.jobs.count; id++)
				engine_sim_job(&l->world.engine, id, &work);
	}
}

static void command_job(struct stream *s)
{
	uint32_t jobs = s->lives[0].world.facts.jobs.count, job, what = below(s, 5);
	int64_t priority = (int64_t)below(s, 5) - 2;

	if (!jobs)
		return;
	job = jobs - below(s, jobs < 50 ? jobs : 50);
	for (int i = 0; i < 2; i++) {
		struct event cancel = event_make(EVENT_JOB_CANCEL_ASKED, 0, "test"),
			     hold = event_make(EVENT_JOB_HELD, 0, "test"),
			     release = event_make(EVENT_JOB_RELEASED, 0, "test"),
			     set = event_make(EVENT_JOB_PRIORITY_SET, 0, "test");

		cancel.job_cancel_asked.job = hold.job_held.job = release.job_released.job =
			set.job_priority_set.job = job;
		set.job_priority_set.priority = priority;
		(void)offer(&s->lives[i], what == 0   ? &cancel
					  : what == 1 ? &hold
					  : what == 2 ? &set
						      : &release);
	}
}

static void node_state_set(struct life *l, uint32_t n, enum node_state state)
{
	struct event e = event_make(EVENT_NODE_STATE, 0, "test");

	e.node_state.node = facts_node_find(&l->world.facts, name_of(l, "n", n)).v;
	e.node_state.state = state;
	e.node_state.reason = "chance";
	if (state == NODE_DOWN)
		engine_sim_node_down(&l->world.engine, (uint32_t)e.node_state.node);
	(void)offer(l, &e);
}

static void announce(struct stream *s, uint32_t n)
{
	int64_t from_ms = (int64_t)below(s, 60) * 10000, for_ms = 1 + (int64_t)below(s, 30) * 10000;
	bool off = one_in(s, 4);

	for (int i = 0; i < 2; i++) {
		struct life *l = &s->lives[i];
		struct event e = event_make(EVENT_NODE_WINDOW, 0, "test");

		e.node_window.node = facts_node_find(&l->world.facts, name_of(l, "n", n)).v;
		e.node_window.reason = "chance";
		if (!off) {
			e.node_window.from_ms = l->world.now_ms + from_ms;
			e.node_window.to_ms = e.node_window.from_ms + for_ms;
		}
		(void)offer(l, &e);
	}
}

static void disturb_node(struct stream *s)
{
	static const enum node_state states[] = { NODE_DOWN,  NODE_DRAINING, NODE_CORDONED,
						  NODE_READY, NODE_READY,    NODE_READY };
	uint32_t n = below(s, s->nodes), state = below(s, 6);
	bool gpu = one_in(s, 3), aside = one_in(s, 2);

	if (s->times && one_in(s, 4)) {
		announce(s, n);
		return;
	}
	if (s->spot_node[n]) { /* it goes, or is there again */
		gpu = false;
		state = one_in(s, 2) ? 0 : 3;
	}
	for (int i = 0; i < 2; i++) {
		struct life *l = &s->lives[i];
		struct event e = event_make(EVENT_GPU_STATE, 0, "test");

		if (!gpu) {
			node_state_set(l, n, states[state]);
			continue;
		}
		e.gpu_state.node = facts_node_find(&l->world.facts, name_of(l, "n", n)).v;
		e.gpu_state.mask = 1 << state % 2;
		e.gpu_state.set_aside = aside;
		(void)offer(l, &e);
	}
}

static void disturb_attempt(struct stream *s)
{
	uint32_t count = s->lives[0].world.facts.attempts.count, what = below(s, 4),
		 rank = below(s, 4), id;

	if (!count)
		return;
	id = count - below(s, count < 40 ? count : 40);
	for (int i = 0; i < 2; i++) {
		struct engine_sim *engine = &s->lives[i].world.engine;
		const struct sim_attempt *a = engine_sim_attempt(engine, id);

		if (!a || !a->live || a->started_ms < 0)
			continue;
		if (what == 0)
			engine_sim_finish(engine, id);
		else if (what == 3) /* one rank alone has done its part */
			engine_sim_end_rank(engine, id, rank % a->task_count, CAUSE_EXIT, 0);
		else
			engine_sim_end_rank(engine, id, rank % a->task_count,
					    what == 1 ? CAUSE_LOST : CAUSE_SIGNAL, 0);
	}
}

static void change_queue(struct stream *s)
{
	uint32_t q = below(s, QUEUES), guarantee = below(s, 6), limit = below(s, 30),
		 weight = 1 + below(s, 4);

	for (int i = 0; i < 2; i++)
		queue_set(&s->lives[i], q, guarantee, limit < 8 ? -1 : (int64_t)limit, weight);
}

static void compare(struct stream *s)
{
	struct life *a = &s->lives[0], *b = &s->lives[1];
	size_t at = 0;

	unrename(&b->said);
	if (a->said.size != b->said.size ||
	    (a->said.size && memcmp(a->said.data, b->said.data, a->said.size) != 0)) {
		while (at < a->said.size && at < b->said.size &&
		       a->said.data[at] == b->said.data[at])
			at++;
		while (at && a->said.data[at - 1] != '\n')
			at--;
		checks_problem(
			&a->world.checks, &a->world.facts,
			"renamed and in another order the core decides \"%.*s\" instead of \"%.*s\"",
			(int)strcspn(buf_text(&b->said) + at, "\n"), buf_text(&b->said) + at,
			(int)strcspn(buf_text(&a->said) + at, "\n"), buf_text(&a->said) + at);
	}
	buf_clear(&a->said);
	buf_clear(&b->said);
}

static bool problems(const struct stream *s)
{
	return s->lives[0].world.checks.problem_count || s->lives[1].world.checks.problem_count;
}

static void step_once(struct stream *s)
{
	uint32_t dice = below(s, 100), pause = below(s, 10000);

	for (int i = 0; i < 2; i++) {
		struct world *w = &s->lives[i].world;
		int64_t next_ms = world_next_ms(w), most_ms = w->now_ms + (int64_t)pause;

		world_advance(w, next_ms < most_ms ? next_ms : most_ms);
	}
	if (dice < 30 && !many_wait(s))
		submit(s);
	else if (dice < 36)
		command_job(s);
	else if (dice < 41)
		disturb_node(s);
	else if (dice < 46)
		disturb_attempt(s);
	else if (dice < 48)
		change_queue(s);
	for (int i = 0; i < 2; i++)
		world_settle(&s->lives[i].world);
	compare(s);
}

static void life_over(struct life *l)
{
	if (facts_hash(&l->world.facts) != facts_hash(&l->replay))
		problem(l, "the journal's text alone gives other facts", 0, 0);
}

int main(int argc, char **argv)
{
	static struct stream s;
	int64_t seed, steps;
	struct err why;
	bool bad;

	if (argc != 3 || parse_int(argv[1], 0, INT64_MAX, &seed, &why) < 0 ||
	    parse_int(argv[2], 1, 1000000000, &steps, &why) < 0)
		return fprintf(stderr, "usage: core_stream SEED STEPS\n"), 2;
	s.random.state = (uint64_t)seed;
	s.bare = seed >= BARE_FROM && seed < BARE_END;
	s.fits = s.bare ? seed % 3 == 0 : seed >= FITS_FROM;
	s.times = s.bare ? seed % 6 == 0 : seed >= TIMES_FROM;
	s.spot = seed >= SPOT_FROM && seed < SPOT_END;
	set_up(&s);
	for (int64_t step = 0; step < steps && !problems(&s); step++)
		step_once(&s);
	for (int i = 0; i < 2; i++)
		life_over(&s.lives[i]);
	printf("seed %" PRId64
	       ": %u nodes, %u jobs, %u attempts, %u promises, %u evictions, %u choices of spot or on-demand nodes, %u moves to spot nodes, %" PRIu64
	       " events\n",
	       seed, s.nodes, s.lives[0].world.facts.jobs.count,
	       s.lives[0].world.facts.attempts.count, s.lives[0].promises,
	       s.lives[0].world.checks.eviction_count, s.lives[0].chosen, s.lives[0].back,
	       s.lives[0].world.seq);
	bad = problems(&s);
	for (int i = 0; i < 2; i++) {
		const struct checks *c = &s.lives[i].world.checks;

		for (uint32_t k = 0; k < c->problem_count && k < CHECKS_TEXTS_MAX; k++)
			printf("  %s\n", c->problems[k]);
		world_deinit(&s.lives[i].world);
		facts_deinit(&s.lives[i].replay);
		arena_deinit(&s.lives[i].text);
		buf_deinit(&s.lives[i].said);
	}
	return bad;
}
