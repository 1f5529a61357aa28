/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gangs SEED COUNT: clusters full of gangs that never save and never end. After the last of them was submitted nothing happens from
 * outside, so what runs must come to rest, and no two gangs evict each other in turn: that would lose all work of both, for ever.
 *
 * Queues, guarantees, tiers, priorities, widths and levels are drawn from the seed; two of three clusters have the daemon's own policy. The seed of
 * a cluster that fails is printed; `gangs THAT-SEED 1 trace` prints its events.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/parse.h"
#include "sim/world.h"

enum { QUEUES = 4, JOBS_MOST = 14, NODES_MOST = 6, AFTER_MS = 2 * 86400000 };

struct cluster {
	struct world world;
	struct sim_random random;
	uint32_t nodes, jobs;
	int64_t last_ms; /* when the last gang was submitted */
};

static const char *const queue_names[QUEUES] = { "default", "a", "b", "c" };

static uint32_t below(struct cluster *c, uint32_t limit)
{
	return sim_random_below(&c->random, limit);
}

static bool one_in(struct cluster *c, uint32_t n)
{
	return below(c, n) == 0;
}

/* What is refused (a guarantee above what there is, critical work without one) is left out. */
static bool offer(struct cluster *c, struct event *e)
{
	struct err why;

	return world_offer(&c->world, e, NULL, &why) == 0;
}

static void node_add(struct cluster *c, uint32_t n)
{
	struct event e = event_make(EVENT_NODE_SET, 0, "test");
	char name[16], domains[16];

	snprintf(name, sizeof(name), "n%u", n);
	snprintf(domains, sizeof(domains), "r%u", n / 2);
	e.node_set.name = name;
	e.node_set.gpus = 8;
	e.node_set.model = n % 3 == 2 ? "A100-80GB" : "H100-80GB";
	e.node_set.gpu_memory_mib = 81920;
	e.node_set.cpu_milli = 64000;
	e.node_set.ram_mib = 524288;
	e.node_set.domains = domains;
	e.node_set.simulated = 1;
	CHECK(offer(c, &e));
}

static void queue_add(struct cluster *c, uint32_t q)
{
	struct event e = event_make(EVENT_QUEUE_SET, 0, "test");

	e.queue_set.name = queue_names[q];
	e.queue_set.parent = "";
	e.queue_set.guarantee_share = q ? (int64_t)below(c, 4) * 4 * GPU_SHARE : 0;
	e.queue_set.limit_share = one_in(c, 4) ? (int64_t)(8 + below(c, 16)) * GPU_SHARE : -1;
	e.queue_set.weight = 1 + below(c, 3);
	(void)offer(c, &e);
}

static void set_up(struct cluster *c)
{
	struct event levels = event_make(EVENT_LEVELS_SET, 0, "test"),
		     policy = event_policy_make(0, "test");

	levels.levels_set.levels = "rack";
	CHECK(offer(c, &levels));
	if (one_in(c, 3)) {
		policy.policy_set.min_runtime_ms = one_in(c, 2) ? 0 : 60000;
		policy.policy_set.grace_ms = one_in(c, 2) ? 0 : 30000;
		policy.policy_set.take_turns = below(c, 2);
		CHECK(offer(c, &policy));
	}
	c->nodes = 2 + below(c, NODES_MOST - 1);
	for (uint32_t n = 0; n < c->nodes; n++)
		node_add(c, n);
	for (uint32_t q = 0; q < 1 + below(c, QUEUES); q++)
		queue_add(c, q);
	c->world.look_every = 1000;
}

static void gang_submit(struct cluster *c)
{
	static const char *const levels[] = { "", "", "rack", "node" };
	static const uint8_t gpus[] = { 1, 2, 4, 8 };
	const struct sim_work work = { .fails_after_ms = SIM_FOREVER, .runtime_ms = SIM_FOREVER };
	struct event e = event_make(EVENT_JOB_SUBMITTED, 0, "test");
	struct event_job_submitted *j = &e.job_submitted;
	uint32_t id = c->world.facts.jobs.count + 1, dice = below(c, 10);
	char name[16];

	snprintf(name, sizeof(name), "j%u", id);
	j->name = name;
	j->user = one_in(c, 3) ? "other" : "test";
	j->queue =
		facts_name(&c->world.facts,
			   queue_get(&c->world.facts,
				     (struct queue_id){ 1 + below(c, c->world.facts.queues.count) })
				   ->name);
	j->kind = KIND_TRAINING;
	j->tier = dice == 0 ? TIER_CRITICAL : dice < 3 ? TIER_BEST_EFFORT : TIER_STANDARD;
	j->priority = one_in(c, 2) ? 0 : (int64_t)below(c, 5) - 2;
	j->tasks_min = 1 + below(c, 4);
	j->tasks_max = j->tasks_min;
	j->gpus = gpus[below(c, 4)];
	j->models = one_in(c, 4) ? "H100-80GB" : "";
	j->require = levels[below(c, 4)];
	j->preempts = 1;
	j->grace_ms = -1;
	j->restart_cost_ms = one_in(c, 3) ? 60000 : 0;
	j->body = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	j->body_mac = j->body;
	if (!offer(c, &e))
		return;
	engine_sim_job(&c->world.engine, id, &work);
	c->jobs++;
	c->last_ms = c->world.now_ms;
}

/* Lets virtual time pass, up to `to_ms`. */
static void run_until(struct cluster *c, int64_t to_ms)
{
	struct world *w = &c->world;

	world_settle(w);
	for (int64_t next_ms = world_next_ms(w);
	     next_ms < to_ms && !w->checks.problem_count && w->seq < 200000;
	     next_ms = world_next_ms(w)) {
		world_advance(w, next_ms);
		world_settle(w);
	}
	world_advance(w, to_ms);
	world_settle(w);
}

static uint32_t evicted_job(const struct cluster *c, const struct checks_eviction *e)
{
	return attempt_get(&c->world.facts, (struct attempt_id){ e->attempt })->job.v;
}

/* Two evictions after the last submission that nothing from outside explains. */
static void pair_check(struct cluster *c, const struct checks_eviction *a,
		       const struct checks_eviction *b)
{
	uint32_t one = evicted_job(c, a), two = evicted_job(c, b);

	if (one == b->for_job && two == a->for_job)
		checks_problem(&c->world.checks, &c->world.facts,
			       "gangs %u and %u evict each other in turn", one, two);
}

static uint32_t rest_check(struct cluster *c)
{
	const struct checks *k = &c->world.checks;
	uint32_t late = 0;

	for (uint32_t i = 0; i < k->eviction_count; i++) {
		if (k->evictions[i].at_ms <= c->last_ms)
			continue;
		late++;
		for (uint32_t n = 0; n < i; n++)
			if (k->evictions[n].at_ms > c->last_ms)
				pair_check(c, &k->evictions[n], &k->evictions[i]);
	}
	if (c->world.seq >= 200000)
		checks_problem(&c->world.checks, &c->world.facts,
			       "200,000 events, and no end of them");
	return late;
}

static void show(void *context, const struct world *world, const struct event *e, bool decision)
{
	AUTO_BUF text = BUF_INIT;

	(void)context;
	event_encode(e, &text);
	fprintf(stderr, "%8" PRId64 " %c %s %s\n", world->facts.now_ms - WORLD_EPOCH_MS,
		decision ? '>' : ' ', event_info(e->kind)->name, buf_text(&text));
}

/* Returns the evictions; *ret_bad becomes true when a promise is broken. */
static uint32_t cluster_run(uint64_t seed, bool trace, uint32_t *ret_late, bool *ret_bad)
{
	struct cluster c = { .random = { seed } };
	uint32_t jobs, evictions;

	world_init(&c.world, WORLD_EPOCH_MS);
	if (trace)
		c.world.observe = show;
	set_up(&c);
	jobs = 4 + below(&c, JOBS_MOST - 3);
	while (jobs--) {
		gang_submit(&c);
		run_until(&c,
			  c.world.now_ms + (one_in(&c, 2) ? 1000 : (int64_t)below(&c, 1800000)));
	}
	run_until(&c, c.world.now_ms + AFTER_MS);
	*ret_late += rest_check(&c);
	evictions = c.world.checks.eviction_count;
	for (uint32_t i = 0; i < c.world.checks.problem_count && i < CHECKS_TEXTS_MAX; i++)
		printf("seed %" PRIu64 ": %s\n", seed, c.world.checks.problems[i]);
	*ret_bad = *ret_bad || c.world.checks.problem_count;
	world_deinit(&c.world);
	return evictions;
}

int main(int argc, char **argv)
{
	int64_t seed, count;
	uint32_t evictions = 0, late = 0;
	struct err why;
	bool bad = false;

	if (argc < 3 || argc > 4 || parse_int(argv[1], 0, INT64_MAX / 2, &seed, &why) < 0 ||
	    parse_int(argv[2], 1, 100000000, &count, &why) < 0)
		return fprintf(stderr, "usage: gangs SEED COUNT [trace]\n"), 2;
	for (int64_t i = 0; i < count; i++)
		evictions += cluster_run((uint64_t)(seed + i), argc == 4, &late, &bad);
	printf("%" PRId64
	       " clusters of gangs: %u evictions, %u of them after the last submission\n",
	       count, evictions, late);
	return bad;
}
