/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost of decisions, in process, on one core.
 *
 *	decide_bench [PART...]		default: all of fill queue event moves reclaim explain critical
 *
 *	fill	5,000 nodes x 8 GPUs, 40,000 one-GPU jobs: decide alone, and with apply and follow
 *	queue	12,500 x 8 GPUs, all busy; 1,000,000 jobs wait in 200 queues (3 levels), 200 shapes, then 10,000 shapes
 *	event	12,500 x 8 GPUs, 100,000 running one-GPU jobs, 32 gangs with reservations: one job ends
 *	moves	the same with checkpoints: one job ends, and it is time to look who might move so that one of the gangs fits
 *	reclaim	4,000 GPUs are held by 4,000 jobs of a borrower; the owner's 4,000 jobs come
 *	explain	why a job waits, on the state of `queue`
 *	critical	2,500 x 8 GPUs, a critical job on each node; 2,000 unlike jobs search for a whole node in vain, and critical jobs come amid
 *
 * Times are processor times of this thread, so that other work on the machine changes them little. Events are made outside the measured time. A loop at the start tells how fast the machine was. Nothing is asserted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/core.h"
#include "job.h"

static struct facts f;
static struct view *view;
static struct arena step;
static uint64_t seq;
static int64_t now_ms = 1700000000000;
static volatile uint64_t sink;

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void report(const char *what, int64_t us)
{
	printf("%-66s %10.3f ms\n", what, (double)us / 1000.0);
	fflush(stdout);
}

static void calibrate(void)
{
	int64_t start = now_us();
	uint64_t x = 1;

	for (int i = 0; i < 100000000; i++)
		x = x * 6364136223846793005 + 1442695040888963407;
	sink = x;
	printf("%-66s %10.3f ns\n", "calibration: one dependent multiply and add",
	       (double)(now_us() - start) / 100000.0);
}

static void put(struct event *e)
{
	e->seq = ++seq;
	e->time_ms = now_ms;
	apply(&f, e);
	view_follow(view, &f, e);
}

static void world_begin(uint32_t nodes)
{
	char name[32], domains[64];
	struct event e = event_make(EVENT_LEVELS_SET, now_ms, "bench");

	facts_init(&f);
	view = view_create(&f);
	arena_init(&step, (size_t)2 << 30);
	e.levels_set.levels = "zone,leaf";
	put(&e);
	for (uint32_t i = 0; i < nodes; i++) {
		e = event_make(EVENT_NODE_SET, now_ms, "bench");
		snprintf(name, sizeof(name), "n%05u", i);
		snprintf(domains, sizeof(domains), "z%02u,l%03u", i / 512, i / 32);
		e.node_set.name = name;
		e.node_set.gpus = 8;
		e.node_set.model = "H100-80GB";
		e.node_set.gpu_memory_mib = 81920;
		e.node_set.domains = domains;
		put(&e);
	}
}

static void world_end(void)
{
	view_destroy(view);
	facts_deinit(&f);
	arena_deinit(&step);
}

static void queue_set(const char *name, const char *parent, int64_t guarantee)
{
	struct event e = event_make(EVENT_QUEUE_SET, now_ms, "bench");

	e.queue_set.name = name;
	e.queue_set.parent = parent;
	e.queue_set.guarantee_share = guarantee * GPU_SHARE;
	e.queue_set.limit_share = -1;
	e.queue_set.weight = 1;
	put(&e);
}

static void submit(const char *queue, int64_t tasks, int64_t gpus, int64_t cpu_milli)
{
	struct event e = job_event(&f, queue, tasks, gpus, cpu_milli);

	put(&e);
}

/* Decides until there is no more; *ret_decide_us is the part of decide. */
static uint64_t settle(int64_t *ret_decide_us)
{
	struct decisions d = { .more = true };
	uint64_t count = 0;

	*ret_decide_us = 0;
	while (d.more) {
		int64_t start = now_us();

		arena_reset(&step);
		decide(&f, view, 10000000, &step, &d);
		*ret_decide_us += now_us() - start;
		for (uint32_t i = 0; i < d.count; i++)
			put(&d.events[i]);
		count += d.count;
	}
	return count;
}

/* Everything placed becomes ready, is released and started. */
static void run_all(void)
{
	int64_t us;

	for (uint32_t id = 1; id <= f.attempts.count; id++) {
		const struct attempt *a = attempt_get(&f, (struct attempt_id){ id });

		for (uint32_t rank = 0; a->state == ATTEMPT_PREPARING && rank < a->tasks; rank++) {
			struct event e = event_make(EVENT_TASK_READY, now_ms, "bench");

			e.task_ready.attempt = id;
			e.task_ready.rank = rank;
			put(&e);
		}
	}
	(void)settle(&us);
}

static void bench_fill(void)
{
	int64_t us, start;

	world_begin(5000);
	queue_set("default", "", 0);
	for (int i = 0; i < 40000; i++)
		submit("default", 1, 1, 0);
	start = now_us();
	(void)settle(&us);
	report("fill 5,000 x 8 with 40,000 one-GPU jobs: with apply and follow", now_us() - start);
	report("  decide alone", us);
	CHECK(f.attempts.count == 40000);
	start = now_us();
	run_all();
	report("  40,000 ready, released (all of it)", now_us() - start);
	world_end();
}

static void queues_make(void)
{
	char name[32], parent[32];

	for (int a = 0; a < 8; a++) {
		snprintf(name, sizeof(name), "a%d", a);
		queue_set(name, "", 12500);
		for (int b = 0; b < 6; b++) {
			snprintf(parent, sizeof(parent), "a%d", a);
			snprintf(name, sizeof(name), "a%d.%d", a, b);
			queue_set(name, parent, 2000);
			for (int c = 0; c < 3; c++) {
				snprintf(parent, sizeof(parent), "a%d.%d", a, b);
				snprintf(name, sizeof(name), "a%d.%d.%d", a, b, c);
				queue_set(name, parent, 500);
			}
		}
	}
}

static const char *queue_name(uint32_t i, char out[32])
{
	snprintf(out, 32, "a%u.%u.%u", i % 8, i / 8 % 6, i / 48 % 3);
	return out;
}

static void pass_report(const char *what)
{
	int64_t start = now_us();
	struct decisions d;

	for (int i = 0; i < 10; i++) {
		arena_reset(&step);
		decide(&f, view, 10000000, &step, &d);
	}
	report(what, (now_us() - start) / 10);
	printf("  (%u decisions, step arena %zu KiB)\n", d.count, step.used_bytes / 1024);
}

static void queue_fill(uint32_t shapes)
{
	char name[32];
	int64_t us;

	world_begin(12500);
	queues_make();
	for (uint32_t i = 0; i < 100000; i++)
		submit(queue_name(i, name), 1, 1, 0);
	(void)settle(&us);
	run_all();
	for (uint32_t i = 0; i < 1000000; i++)
		submit(queue_name(i / 7, name), 1 + i % shapes % 20, 1 + i % shapes / 20 % 8,
		       i % shapes / 160 * 100);
}

static void bench_queue(void)
{
	int64_t start = now_us();

	queue_fill(200);
	report("submit and index 1,000,000 jobs (with set-up)", now_us() - start);
	pass_report("full pass, 1,000,000 queued, 200 shapes, cluster full");
	world_end();
	queue_fill(10000);
	pass_report("full pass, 1,000,000 queued, 10,000 shapes, cluster full");
	world_end();
}

static int compare_us(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void started_all(void)
{
	for (uint32_t id = 1; id <= f.attempts.count; id++) {
		struct event e = event_make(EVENT_TASK_STARTED, now_ms, "bench");

		e.task_started.attempt = id;
		put(&e);
	}
}

/* How the running jobs of `event` are: each of these is another path through the search for victims. */
struct event_case {
	const char *what;
	int64_t age_ms; /* they run for so long */
	bool saves; /* they make checkpoints, and have saved five minutes ago */
	int64_t limit_ms; /* they declare a limit: so much, and up to as much again; 0 = none */
};

static void event_fill(const struct event_case *c)
{
	int64_t us;
	char name[32];

	world_begin(12500);
	queues_make();
	for (uint32_t i = 0; i < 100000; i++) {
		struct event e = job_event(&f, queue_name(i, name), 1, 1, 0);

		e.job_submitted.checkpoint = c->saves;
		e.job_submitted.limit_ms = c->limit_ms + c->limit_ms / 1000 * (i % 1000);
		put(&e);
	}
	(void)settle(&us);
	run_all();
	started_all();
	now_ms += c->age_ms;
	for (uint32_t i = 1; c->saves && i <= 100000; i++) {
		struct event e = event_make(EVENT_CHECKPOINT_SAVED, now_ms, "bench");

		e.checkpoint_saved.job = i;
		e.checkpoint_saved.attempt = job_get(&f, (struct job_id){ i })->attempt.v;
		e.checkpoint_saved.number = 1;
		e.checkpoint_saved.at_ms = now_ms - 300000;
		put(&e);
	}
	for (uint32_t i = 0; i < 32; i++) {
		struct event e = job_event(&f, queue_name(i, name), 8 + i, 8, 0);

		e.job_submitted.limit_ms = c->limit_ms;
		put(&e);
	}
	(void)settle(&us);
	now_ms += 11000; /* and their reservations have been reviewed */
	(void)settle(&us);
}

static void event_report(const struct event_case *c)
{
	static int64_t all[1000];
	int64_t us, sum = 0, follow = 0;

	event_fill(c);
	for (uint32_t i = 1; i <= 1000; i++) {
		struct event e = event_make(EVENT_TASK_EXITED, now_ms, "bench");
		int64_t start;

		e.task_exited.attempt = i * 97;
		now_ms += 10;
		start = now_us();
		put(&e);
		follow += now_us() - start;
		(void)settle(&us);
		all[i - 1] = us;
		sum += us;
	}
	qsort(all, ARRAY_SIZE(all), sizeof(all[0]), compare_us);
	printf("one job ends, 100,000 running (%s), 32 gangs blocked, %u reservations\n", c->what,
	       f.reservation_count);
	report("  decide, mean", sum / 1000);
	report("  decide, P99 of 1,000", all[989]);
	report("  decide, worst", all[999]);
	report("  apply and follow of its exit, mean", follow / 1000);
	world_end();
}

static void bench_event(void)
{
	const struct event_case cases[] = {
		{ "just started", 0, false, 0 },
		{ "for an hour", 3600000, false, 0 },
		{ "for an hour, with checkpoints", 3600000, true, 0 },
		{ "for an hour, with checkpoints and limits", 3600000, true, 8 * 3600000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		event_report(&cases[i]);
}

static void bench_moves(void)
{
	const struct event_case c = { "", 3600000, true, 0 };
	int64_t us, sum = 0, most = 0;

	event_fill(&c);
	for (uint32_t i = 1; i <= 10; i++) {
		for (uint32_t k = 0; k < 100; k++) {
			struct event e = event_make(EVENT_TASK_EXITED, now_ms, "bench");

			e.task_exited.attempt = (i * 100 + k) * 89;
			put(&e);
		}
		now_ms += 11000;
		(void)settle(&us);
		sum += us;
		most = us > most ? us : most;
	}
	report("100 jobs end, and a look for moves, 100,000 running: decide, mean", sum / 10);
	report("  decide, worst", most);
	world_end();
}

static void bench_reclaim(void)
{
	int64_t us, start;
	struct event e = event_policy_make(now_ms, "bench");

	world_begin(500);
	queue_set("owner", "", 4000);
	queue_set("borrower", "", 0);
	e.policy_set.min_runtime_ms = 0;
	e.policy_set.grace_ms = 60000;
	put(&e);
	for (int i = 0; i < 4000; i++)
		submit("borrower", 1, 1, 0);
	(void)settle(&us);
	run_all();
	now_ms += 3600000;
	for (int i = 0; i < 4000; i++)
		submit("owner", 1, 1, 0);
	start = now_us();
	(void)settle(&us);
	report("reclaim 4,000 GPUs held by 4,000 jobs, for 4,000 jobs: all", now_us() - start);
	report("  decide alone", us);
	world_end();
}

static void bench_reclaim_gang(void)
{
	int64_t us;

	world_begin(500);
	queue_set("owner", "", 4000);
	queue_set("borrower", "", 0);
	for (int i = 0; i < 4000; i++)
		submit("borrower", 1, 1, 0);
	(void)settle(&us);
	run_all();
	now_ms += 3600000;
	submit("owner", 500, 8, 0);
	(void)settle(&us);
	report("  for one gang of 500 x 8: decide alone", us);
	world_end();
}

static void explain_report(uint32_t shapes)
{
	struct explain_change change = { 0 };
	struct explanation why = { 0 };
	int64_t start, jobs_us, changes_us = 0, worst = 0;
	uint32_t told = 0;

	queue_fill(shapes);
	start = now_us();
	for (uint32_t i = 0; i < 10; i++) {
		arena_reset(&step);
		explain_job(&f, view, (struct job_id){ 200000 + i * 77777 }, &step, &why);
	}
	jobs_us = (now_us() - start) / 10;
	printf("  \"%s\"; %u ahead\n", why.summary, why.ahead_count);
	for (uint32_t i = 0; i < 10; i++) {
		arena_reset(&step);
		start = now_us();
		explain_change(&f, view, (struct job_id){ 200000 + i * 77777 }, &step, &change);
		changes_us += now_us() - start;
		worst = now_us() - start > worst ? now_us() - start : worst;
		told += change.part_count > 0;
	}
	report("explain one of 1,000,000 waiting jobs: the reason", jobs_us);
	report("  the smallest change, mean of 10", changes_us / 10);
	report("  ... worst", worst);
	printf("  %u shapes; a change is named for %u of 10, the last: %s\n", shapes, told,
	       change.text);
	world_end();
}

static void bench_explain(void)
{
	explain_report(200);
	explain_report(10000);
}

/* One call of decide as the daemon makes it; whether it starts the job or promises a place to it. */
static bool decide_once(uint32_t job, bool *ret_more, int64_t *ret_us)
{
	struct decisions d;
	bool found = false;
	int64_t start = now_us();

	arena_reset(&step);
	decide(&f, view, 5000, &step, &d);
	*ret_us = now_us() - start;
	*ret_more = d.count || d.more;
	for (uint32_t i = 0; i < d.count; i++) {
		const struct event *e = &d.events[i];

		found = found || (e->kind == EVENT_PROMISE_MADE && e->promise_made.job == job) ||
			(e->kind == EVENT_ATTEMPT_PLACED && e->attempt_placed.job == job);
		put(&d.events[i]);
	}
	return found;
}

static void critical_submit(int64_t gpus)
{
	struct event e = job_event(&f, "serve", 1, gpus, 0);

	e.job_submitted.tier = TIER_CRITICAL;
	e.job_submitted.kind = KIND_INFERENCE;
	put(&e);
}

static void critical_world(void)
{
	struct event e = event_policy_make(now_ms, "bench");
	int64_t us;

	world_begin(2500);
	queue_set("train", "", 8000);
	queue_set("serve", "", 4000);
	queue_set("borrower", "", 0);
	e.policy_set.min_runtime_ms = 0;
	e.policy_set.grace_ms = 60000;
	put(&e);
	for (int i = 0; i < 2500; i++)
		critical_submit(1);
	(void)settle(&us);
	for (int i = 0; i < 17500; i++)
		submit("borrower", 1, 1, 0);
	(void)settle(&us);
	run_all();
	now_ms += 3600000;
	for (int i = 0; i < 2000; i++)
		submit("train", 1, 8, 1 + i);
}

/* How long a critical job waits for its decision that comes when so many calls of a round are over. */
static void bench_critical(void)
{
	enum { ARRIVALS = 6 };
	int64_t us, longest = 0, wait, worst = 0, sum = 0;
	uint32_t calls = 0, most = 0;
	bool more = true;

	critical_world();
	while (more && calls < 10000) {
		(void)decide_once(0, &more, &us);
		longest = us > longest ? us : longest;
		calls++;
	}
	printf("2,000 jobs search for a whole node in vain: a round has %u calls\n", calls);
	report("  the longest call", longest);
	for (uint32_t i = 0; i < ARRIVALS; i++) {
		uint32_t job, turns = 0;
		bool found;

		submit("train", 1, 8, 5000 + (int64_t)i); /* a round begins */
		now_ms += 1000;
		for (uint32_t k = 0; k < 3 * i; k++)
			(void)decide_once(0, &more, &us);
		critical_submit(1);
		job = f.jobs.count;
		wait = 0;
		do {
			found = decide_once(job, &more, &us);
			wait += us;
			turns++;
		} while (!found && more);
		most = turns > most ? turns : most;
		worst = wait > worst ? wait : worst;
		sum += wait;
	}
	printf("a critical job comes amid: decided in %u calls at most\n", most);
	report("  mean", sum / ARRIVALS);
	report("  worst", worst);
	world_end();
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{ "fill", bench_fill },       { "queue", bench_queue },
		{ "event", bench_event },     { "moves", bench_moves },
		{ "reclaim", bench_reclaim }, { "reclaim", bench_reclaim_gang },
		{ "explain", bench_explain }, { "critical", bench_critical },
	};

	calibrate();
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		bool wanted = argc == 1;

		for (int k = 1; k < argc; k++)
			wanted |= strcmp(argv[k], parts[i].name) == 0;
		if (wanted)
			parts[i].run();
	}
	return 0;
}
