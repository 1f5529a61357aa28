/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_walk SEED STEPS [trace]: a random walk of the whole system in virtual time. Jobs come and
 * go, nodes fail, people change their minds, and what the engine reports is lost, repeated and
 * reordered. After each step the checkers of src/sim must have nothing to say. In the end all
 * faults stop, every report is repeated, and every job must come to an end. With `trace` every
 * event is printed to stderr.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "sim/world.h"
#include "unlike_tasks.h"

enum { NODES = 8, QUEUES = 4, WAITING_MAX = 60 };

struct walk {
	struct world world;
	struct sim_random random;
	uint32_t down, refused;
};

static const char *const queue_names[QUEUES] = { "default", "a", "b", "c" };

static uint32_t below(struct walk *k, uint32_t limit)
{
	return sim_random_below(&k->random, limit);
}

static bool one_in(struct walk *k, uint32_t n)
{
	return below(k, n) == 0;
}

static int offer(struct walk *k, struct event *e)
{
	struct err why;
	int rc = world_offer(&k->world, e, NULL, &why);

	k->refused += rc < 0;
	if (rc < 0 && why.code == ERR_INTERNAL)
		checks_problem(&k->world.checks, &k->world.facts, "%s", why.text);
	return rc;
}

static void set_node(struct walk *k, uint32_t n)
{
	struct event e = event_make(EVENT_NODE_SET, 0, "test");
	char name[16], domains[32];

	snprintf(name, sizeof(name), "n%u", n);
	snprintf(domains, sizeof(domains), "r%u", n / 3);
	e.node_set.name = name;
	e.node_set.gpus = n % 3 == 2 ? 8 : 4;
	e.node_set.model = n % 2 ? "A100-80GB" : "H100-80GB";
	e.node_set.gpu_memory_mib = 81920;
	e.node_set.cpu_milli = 64000;
	e.node_set.ram_mib = 524288;
	e.node_set.domains = domains;
	e.node_set.simulated = 1;
	offer(k, &e);
}

static void set_queue(struct walk *k, uint32_t q, bool anew)
{
	struct event e = event_make(EVENT_QUEUE_SET, 0, "test");

	e.queue_set.name = queue_names[q];
	e.queue_set.parent = "";
	e.queue_set.guarantee_share = q == 1 ? 8 * GPU_SHARE : q == 2 ? 4 * GPU_SHARE : 0;
	e.queue_set.limit_share =
		q == 3 || (anew && one_in(k, 4)) ? (int64_t)(10 + below(k, 10)) * GPU_SHARE : -1;
	e.queue_set.weight = 1 + q;
	offer(k, &e);
}

static void set_up(struct walk *k)
{
	struct event levels = event_make(EVENT_LEVELS_SET, 0, "test"),
		     policy = event_policy_make(0, "test");

	levels.levels_set.levels = "rack";
	policy.policy_set.min_runtime_ms = 10000;
	policy.policy_set.grace_ms = 30000;
	policy.policy_set.rejoin_ms = 0;
	policy.policy_set.packing = 1;
	offer(k, &levels);
	offer(k, &policy);
	for (uint32_t n = 0; n < NODES; n++)
		set_node(k, n);
	for (uint32_t q = 0; q < QUEUES; q++)
		set_queue(k, q, false);
	k->world.look_every = 37;
}

static void submit(struct walk *k)
{
	static const char *const levels[] = { "", "", "", "rack", "node" };
	struct event e = event_make(EVENT_JOB_SUBMITTED, 0, "test");
	struct event_job_submitted *j = &e.job_submitted;
	uint32_t id = k->world.facts.jobs.count + 1;
	struct sim_work work = { .fails_after_ms =
					 one_in(k, 8) ? (int64_t)below(k, 120000) : SIM_FOREVER,
				 .runtime_ms = 1000 + (int64_t)below(k, 300000),
				 .takes_ms = (int64_t)below(k, 20000),
				 .every_ms = one_in(k, 2) ? 30000 : 0,
				 .ready_ms = (int64_t)below(k, 3000),
				 .start_ms = (int64_t)below(k, 1000),
				 .stop_ms = (int64_t)below(k, 5000),
				 .checkpoints = one_in(k, 2) };
	int64_t numbers[2 * ROLE_NUMBERS] = { 0 };
	char name[16];

	snprintf(name, sizeof(name), "j%u", id);
	j->name = name;
	j->user = one_in(k, 3) ? "other" : "test";
	j->queue = queue_names[below(k, QUEUES)];
	j->kind = below(k, 3);
	j->tier = one_in(k, 8) ? TIER_CRITICAL : one_in(k, 3) ? TIER_BEST_EFFORT : TIER_STANDARD;
	j->priority = (int64_t)below(k, 5) - 2;
	j->tasks_min = 1 + below(k, 4);
	j->tasks_max = j->tasks_min;
	j->gpus = below(k, 3);
	if (j->gpus == 1 && one_in(k, 2))
		j->gpu_part = 6300 * (1 + (int64_t)below(k, 9));
	else if (j->gpus == 1 && one_in(k, 3))
		j->gpu_part_mib = 1000 * (1 + (int64_t)below(k, 40));
	j->models = one_in(k, 4) ? "H100-80GB" : "";
	j->cpu_milli = (int64_t)below(k, 4) * 4000;
	j->require = levels[below(k, 5)];
	j->prefer = one_in(k, 5) ? "rack" : "";
	j->limit_ms = one_in(k, 4) ? (int64_t)(1 + below(k, 300)) * 1000 : 0;
	j->retries = below(k, 3);
	j->preempts = !one_in(k, 5);
	j->checkpoint = work.checkpoints;
	j->checkpoint_every_ms = work.every_ms;
	j->grace_ms = one_in(k, 2) ? -1 : (int64_t)below(k, 60) * 1000;
	j->restart_cost_ms = (int64_t)below(k, 60) * 1000;
	unlike_tasks_add(&k->random, j, numbers, &work);
	j->body = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	j->body_mac = j->body;
	if (offer(k, &e) == 0)
		engine_sim_job(&k->world.engine, id, &work);
}

static void command_job(struct walk *k)
{
	static const enum event_kind kinds[] = { EVENT_JOB_CANCEL_ASKED, EVENT_JOB_HELD,
						 EVENT_JOB_RELEASED, EVENT_JOB_RELEASED };
	struct event e = event_make(kinds[below(k, 4)], 0, "test");
	uint32_t jobs = k->world.facts.jobs.count, job;

	if (!jobs)
		return;
	job = jobs - below(k, jobs < 50 ? jobs : 50);
	if (e.kind == EVENT_JOB_CANCEL_ASKED)
		e.job_cancel_asked.job = job;
	else if (e.kind == EVENT_JOB_HELD)
		e.job_held.job = job;
	else
		e.job_released.job = job;
	offer(k, &e);
}

static void set_node_state(struct walk *k, uint32_t node, enum node_state state)
{
	struct event e = event_make(EVENT_NODE_STATE, 0, "test");

	e.node_state.node = node;
	e.node_state.state = state;
	e.node_state.reason = "chance";
	if (state == NODE_DOWN)
		engine_sim_node_down(&k->world.engine, node);
	offer(k, &e);
}

/* Soon, or at once; now and then called off. */
static void announce(struct walk *k, uint32_t node)
{
	struct event e = event_make(EVENT_NODE_WINDOW, 0, "test");

	e.node_window.node = node;
	e.node_window.reason = "chance";
	if (!one_in(k, 4)) {
		e.node_window.from_ms = k->world.now_ms + (int64_t)below(k, 60) * 10000;
		e.node_window.to_ms = e.node_window.from_ms + 1 + (int64_t)below(k, 30) * 10000;
	}
	offer(k, &e);
}

static void reserve(struct walk *k)
{
	static const char *const names[] = { "x", "y", "z" };
	struct event e =
		event_make(one_in(k, 4) ? EVENT_BOOKING_ENDED : EVENT_BOOKING_SET, 0, "test");
	int64_t node = 1 + below(k, NODES);

	if (e.kind == EVENT_BOOKING_ENDED) {
		e.booking_ended.name = names[below(k, 3)];
		offer(k, &e);
		return;
	}
	e.booking_set.name = names[below(k, 3)];
	e.booking_set.queue =
		facts_name(&k->world.facts,
			   queue_get(&k->world.facts,
				     (struct queue_id){ 1 + below(k, k->world.facts.queues.count) })
				   ->name);
	e.booking_set.from_ms = k->world.now_ms + (int64_t)below(k, 60) * 10000;
	e.booking_set.to_ms = e.booking_set.from_ms + 1 + (int64_t)below(k, 30) * 10000;
	e.booking_set.keep = one_in(k, 2);
	if (one_in(k, 2)) {
		e.booking_set.gpus = 1 + below(k, 12);
	} else {
		e.booking_set.nodes = &node;
		e.booking_set.nodes_count = 1;
	}
	offer(k, &e);
}

static void disturb_node(struct walk *k)
{
	static const enum node_state states[] = { NODE_DOWN,  NODE_DRAINING, NODE_CORDONED,
						  NODE_READY, NODE_READY,    NODE_READY,
						  NODE_READY };
	struct event e = event_make(EVENT_GPU_STATE, 0, "test");

	if (one_in(k, 3)) {
		if (one_in(k, 2))
			announce(k, 1 + below(k, NODES));
		else
			reserve(k);
		return;
	}
	if (one_in(k, 3)) {
		e.gpu_state.node = 1 + below(k, NODES);
		e.gpu_state.mask = 1 << below(k, 4);
		e.gpu_state.set_aside = one_in(k, 2);
		offer(k, &e);
		return;
	}
	set_node_state(k, 1 + below(k, NODES), states[below(k, 7)]);
}

/* Something happens to a random one of the newest attempts. */
static void disturb_attempt(struct walk *k)
{
	uint32_t count = k->world.facts.attempts.count, id;
	const struct sim_attempt *a;

	if (!count)
		return;
	id = count - below(k, count < 40 ? count : 40);
	a = engine_sim_attempt(&k->world.engine, id);
	if (!a || !a->live || a->started_ms < 0)
		return;
	if (one_in(k, 3))
		engine_sim_finish(&k->world.engine, id);
	else if (one_in(k, 3)) /* one rank alone has done its part */
		engine_sim_end_rank(&k->world.engine, id, below(k, a->task_count), CAUSE_EXIT, 0);
	else
		engine_sim_end_rank(&k->world.engine, id, below(k, a->task_count),
				    one_in(k, 2) ? CAUSE_LOST : CAUSE_SIGNAL, 0);
}

static void step_once(struct walk *k)
{
	uint32_t dice = below(k, 100);
	int64_t next_ms = world_next_ms(&k->world),
		most_ms = k->world.now_ms + (int64_t)below(k, 10000);

	world_advance(&k->world, next_ms < most_ms ? next_ms : most_ms);
	if (dice < 35)
		submit(k);
	else if (dice < 40)
		command_job(k);
	else if (dice < 45)
		disturb_node(k);
	else if (dice < 50)
		disturb_attempt(k);
	else if (dice < 52)
		engine_sim_repeat(&k->world.engine);
	else if (dice < 53)
		set_queue(k, below(k, QUEUES), true);
	world_settle(&k->world);
}

/* Everything works again; whatever can end must end. */
static void calm_down(struct walk *k)
{
	struct world *w = &k->world;

	w->engine.faults = (struct sim_faults){ 0 };
	for (uint32_t n = 1; n <= NODES; n++) {
		struct event gpus = event_make(EVENT_GPU_STATE, 0, "test");

		gpus.gpu_state.node = n;
		gpus.gpu_state.mask = 255;
		offer(k, &gpus);
		set_node_state(k, n, NODE_READY);
	}
	for (uint32_t id = 1; id <= w->facts.jobs.count; id++) {
		struct event e = event_make(EVENT_JOB_RELEASED, 0, "test");

		e.job_released.job = id;
		if (job_get(&w->facts, (struct job_id){ id })->held)
			offer(k, &e);
	}
	engine_sim_repeat(&w->engine);
	for (uint32_t i = 0; i < 1000000 && !w->checks.problem_count; i++) {
		world_settle(w);
		if (world_is_quiet(w))
			break;
		world_advance(w, world_next_ms(w));
	}
}

static void check_over(struct walk *k)
{
	struct world *w = &k->world;

	checks_end(&w->checks, &w->facts);
	for (uint32_t id = 1; id <= w->facts.jobs.count; id++) {
		const struct job *job = job_get(&w->facts, (struct job_id){ id });

		if (job_is_live(job))
			checks_problem(
				&w->checks, &w->facts, "job %s never came to an end, it is %s",
				facts_name(&w->facts, job->name), job_state_name(job->state));
	}
	for (uint32_t n = 1; n <= NODES; n++)
		for (uint32_t g = 0; g < NODE_GPUS_MAX; g++)
			if (engine_sim_holder(&w->engine, n, g))
				checks_problem(&w->checks, &w->facts,
					       "GPU %u of node %u is held when all is over", g, n);
}

static void show(void *context, const struct world *world, const struct event *e, bool decision)
{
	AUTO_BUF text = BUF_INIT;

	(void)context;
	event_encode(e, &text);
	fprintf(stderr, "%8" PRId64 " %c %s %s\n", world->facts.now_ms - WORLD_EPOCH_MS,
		decision ? '>' : ' ', event_info(e->kind)->name, buf_text(&text));
}

static void summary(const struct walk *k, int64_t seed)
{
	const struct facts *f = &k->world.facts;
	uint32_t counts[JOB_TIMED_OUT + 1] = { 0 };

	for (uint32_t id = 1; id <= f->jobs.count; id++)
		counts[job_get(f, (struct job_id){ id })->state]++;
	printf("seed %" PRId64 ": %u jobs, %u attempts, %u evictions, %" PRIu64 " events, %" PRIu64
	       " turns, %u refused;",
	       seed, f->jobs.count, f->attempts.count, k->world.checks.eviction_count, k->world.seq,
	       k->world.turns, k->refused);
	for (uint8_t s = 0; s <= JOB_TIMED_OUT; s++)
		if (counts[s])
			printf(" %s %u", job_state_name(s), counts[s]);
	printf("; trail %016" PRIx64 "\n", k->world.trail);
}

int main(int argc, char **argv)
{
	struct walk k = { 0 };
	int64_t seed, steps;
	struct err why;
	bool bad;

	if (argc < 3 || argc > 4 || parse_int(argv[1], 0, INT64_MAX, &seed, &why) < 0 ||
	    parse_int(argv[2], 1, 100000000, &steps, &why) < 0)
		return fprintf(stderr, "usage: sim_walk SEED STEPS [trace]\n"), 2;
	k.random.state = (uint64_t)seed;
	world_init(&k.world, WORLD_EPOCH_MS);
	if (argc == 4)
		k.world.observe = show;
	set_up(&k);
	k.world.engine.faults = (struct sim_faults){ .lose = 20,
						     .repeat = 50,
						     .delay = 100,
						     .delay_max_ms = 15000,
						     .random = { (uint64_t)seed ^ 0x5eed } };
	for (int64_t step = 0; step < steps && !k.world.checks.problem_count; step++)
		step_once(&k);
	calm_down(&k);
	check_over(&k);
	summary(&k, seed);
	for (uint32_t i = 0; i < k.world.checks.problem_count && i < CHECKS_TEXTS_MAX; i++)
		printf("  %s\n", k.world.checks.problems[i]);
	bad = k.world.checks.problem_count > 0;
	world_deinit(&k.world);
	return bad;
}
