/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the cost of decisions grows: growth NODES GPUS-PER-NODE RUNNING QUEUED SHAPES prints one line of JSON with the median of
 * several runs, in microseconds:
 *
 *	pass	a full pass in which nothing can start
 *	event	one running job ends: apply, follow, decide until rest (one that waits starts in its place)
 *	explain	why one of the waiting jobs waits
 *	rebuild	the index built from the facts
 *
 * RUNNING one-GPU jobs run; QUEUED jobs of SHAPES shapes wait in 20 queues. Jobs wait because the GPUs that are left are
 * set aside, so nodes, running and waiting jobs vary each by itself. bench/growth.py draws the curves.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/parse.h"
#include "core/core.h"
#include "job.h"

enum { QUEUES = 20, RUNS = 15 };

static struct facts f;
static struct view *view;
static struct arena step;
static uint64_t seq;
static int64_t now_ms = 1700000000000;

static void put(struct event *e)
{
	e->seq = ++seq;
	e->time_ms = now_ms;
	apply(&f, e);
	view_follow(view, &f, e);
}

static void settle(void)
{
	struct decisions d = { .more = true };

	while (d.more) {
		arena_reset(&step);
		decide(&f, view, UINT64_C(1) << 40, &step, &d);
		for (uint32_t i = 0; i < d.count; i++)
			put(&d.events[i]);
	}
}

static void nodes_make(int64_t nodes, int64_t gpus)
{
	char name[32], domains[64];
	struct event e = event_make(EVENT_LEVELS_SET, now_ms, "bench");

	e.levels_set.levels = "zone,leaf";
	put(&e);
	for (int64_t i = 0; i < nodes; i++) {
		e = event_make(EVENT_NODE_SET, now_ms, "bench");
		snprintf(name, sizeof(name), "n%06" PRId64, i);
		snprintf(domains, sizeof(domains), "z%03" PRId64 ",l%05" PRId64, i / 512, i / 32);
		e.node_set.name = name;
		e.node_set.gpus = gpus;
		e.node_set.model = "H100-80GB";
		e.node_set.gpu_memory_mib = 81920;
		e.node_set.domains = domains;
		put(&e);
	}
}

static void queues_make(void)
{
	char name[32];

	for (int q = 0; q < QUEUES; q++) {
		struct event e = event_make(EVENT_QUEUE_SET, now_ms, "bench");

		snprintf(name, sizeof(name), "q%02d", q);
		e.queue_set.name = name;
		e.queue_set.parent = "";
		e.queue_set.limit_share = -1;
		e.queue_set.weight = 1;
		put(&e);
	}
}

static void submit(int64_t i, int64_t tasks, int64_t gpus, int64_t cpu_milli)
{
	char queue[32];
	struct event e;

	snprintf(queue, sizeof(queue), "q%02" PRId64, i % QUEUES);
	e = job_event(&f, queue, tasks, gpus, cpu_milli);
	put(&e);
}

static void ready_all(void)
{
	for (uint32_t id = 1; id <= f.attempts.count; id++) {
		struct event e = event_make(EVENT_TASK_READY, now_ms, "bench");

		e.task_ready.attempt = id;
		if (attempt_get(&f, (struct attempt_id){ id })->state == ATTEMPT_PREPARING)
			put(&e);
	}
	settle();
}

/* No GPU is left over: those that nobody holds are set aside. */
static void rest_close(int64_t gpus)
{
	uint32_t *held = calloc((size_t)f.nodes.count + 1, sizeof(*held));

	CHECK(held != NULL);
	for (uint32_t id = 1; id <= f.attempts.count; id++) {
		const struct task *task =
			task_get(&f, attempt_get(&f, (struct attempt_id){ id }), 0);

		held[task->node.v] |= task->gpu_mask;
	}
	for (uint32_t n = 1; n <= f.nodes.count; n++) {
		struct event e = event_make(EVENT_GPU_STATE, now_ms, "bench");

		e.gpu_state.node = n;
		e.gpu_state.mask = ((INT64_C(1) << gpus) - 1) & ~(int64_t)held[n];
		e.gpu_state.set_aside = 1;
		if (e.gpu_state.mask)
			put(&e);
	}
	free(held);
}

static int compare_us(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median_us(int64_t *ns, size_t count)
{
	qsort(ns, count, sizeof(*ns), compare_us);
	return (double)ns[count / 2] / 1000.0;
}

static double time_pass(void)
{
	int64_t ns[RUNS];
	struct decisions d;

	for (int i = 0; i < RUNS; i++) {
		int64_t start = clock_mono_ns();

		arena_reset(&step);
		decide(&f, view, UINT64_C(1) << 40, &step, &d);
		ns[i] = clock_mono_ns() - start;
	}
	return median_us(ns, RUNS);
}

static double time_event(void)
{
	int64_t ns[RUNS];

	for (uint32_t i = 0; i < RUNS; i++) {
		struct event e = event_make(EVENT_TASK_EXITED, now_ms, "bench");
		int64_t start;

		e.task_exited.attempt = 1 + i * 7;
		start = clock_mono_ns();
		put(&e);
		settle();
		ns[i] = clock_mono_ns() - start;
	}
	return median_us(ns, RUNS);
}

static double time_explain(uint32_t first, uint32_t queued)
{
	int64_t ns[RUNS];
	struct explanation why;

	for (uint32_t i = 0; i < RUNS; i++) {
		int64_t start = clock_mono_ns();

		arena_reset(&step);
		explain_job(&f, view, (struct job_id){ first + queued / 2 + i * 13 }, &step, &why);
		ns[i] = clock_mono_ns() - start;
	}
	return median_us(ns, RUNS);
}

static double time_rebuild(void)
{
	int64_t ns[3];

	for (int i = 0; i < 3; i++) {
		int64_t start = clock_mono_ns();
		struct view *fresh = view_create(&f);

		ns[i] = clock_mono_ns() - start;
		view_destroy(fresh);
	}
	return median_us(ns, 3);
}

int main(int argc, char **argv)
{
	int64_t n[5];
	struct err why;
	double pass, explain, rebuild;

	for (int i = 0; i < 5; i++)
		if (argc != 6 || parse_int(argv[i + 1], 1, 10000000, &n[i], &why) < 0)
			return fprintf(stderr,
				       "usage: growth NODES GPUS-PER-NODE RUNNING QUEUED SHAPES\n"),
			       2;
	facts_init(&f);
	view = view_create(&f);
	arena_init(&step, (size_t)4 << 30);
	nodes_make(n[0], n[1]);
	queues_make();
	for (int64_t i = 0; i < n[2]; i++)
		submit(i, 1, 1, 0);
	settle();
	CHECK(f.attempts.count == n[2]);
	ready_all();
	rest_close(n[1]);
	for (int64_t i = 0; i < n[3]; i++)
		submit(i / 3, 1 + i % n[4] % 10, 1 + i % n[4] / 10 % (n[1] < 4 ? n[1] : 4),
		       i % n[4] / 40 * 100);
	settle();
	pass = time_pass();
	explain = time_explain((uint32_t)n[2] + 1, (uint32_t)n[3]);
	rebuild = time_rebuild();
	printf("{\"pass\": %.1f, \"event\": %.1f, \"explain\": %.1f, \"rebuild\": %.1f}\n", pass,
	       time_event(), explain, rebuild);
	view_destroy(view);
	facts_deinit(&f);
	arena_deinit(&step);
	return 0;
}
