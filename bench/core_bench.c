/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost of the facts: apply by kind of event, freeze, the first changes after a freeze, hash, save, load, memory.
 *
 *	core_bench [JOBS] [NODES]	default 1000000 jobs, 12500 nodes of 8 GPUs, 200 queues, 200 shapes
 *
 * One thread, no disk. Events are made outside the measured time. The loop at the start (a dependent chain of
 * multiplications) tells how fast this machine was meanwhile. Nothing here is asserted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "core/model/facts.h"

enum { QUEUES = 200, SHAPES = 200, LIVE_MAX = 100000, BATCH = 1000 };

static struct facts f;
static uint64_t seq;
static volatile uint64_t sink;

static int64_t now_us(void)
{
	return clock_mono_ns() / 1000;
}

static void calibrate(void)
{
	int64_t start = now_us();
	uint64_t x = 1;

	for (int i = 0; i < 100000000; i++)
		x = x * 6364136223846793005 + 1442695040888963407;
	sink = x;
	printf("%-52s %10.3f ns\n", "calibration: one dependent multiply and add",
	       (double)(now_us() - start) / 100000.0);
}

static struct event make(enum event_kind kind)
{
	struct event event = event_make(kind, 1700000000000 + (int64_t)seq, "bench");

	event.seq = ++seq;
	return event;
}

static void set_up(uint32_t nodes)
{
	char name[32], domains[32];

	for (uint32_t i = 0; i < nodes; i++) {
		struct event event = make(EVENT_NODE_SET);

		snprintf(name, sizeof(name), "n%u", i);
		snprintf(domains, sizeof(domains), "z%u,r%u", i / 1000, i / 20);
		event.node_set.name = name;
		event.node_set.domains = domains;
		event.node_set.gpus = 8;
		event.node_set.model = "H100-80GB";
		apply(&f, &event);
	}
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct event event = make(EVENT_QUEUE_SET);

		snprintf(name, sizeof(name), "q%u", i);
		event.queue_set.name = name;
		event.queue_set.limit_share = -1;
		apply(&f, &event);
	}
}

/* Times the whole of what `fill` makes for 0 .. count - 1, in batches made before the clock starts. */
static void measure(const char *what, uint32_t count, void (*fill)(uint32_t i, struct event *ret))
{
	static struct event events[BATCH];
	int64_t spent = 0, worst = 0;

	for (uint32_t first = 0; first < count; first += BATCH) {
		uint32_t size = count - first < BATCH ? count - first : BATCH;
		int64_t start, took;

		for (uint32_t i = 0; i < size; i++)
			fill(first + i, &events[i]);
		start = now_us();
		for (uint32_t i = 0; i < size; i++)
			apply(&f, &events[i]);
		took = now_us() - start;
		spent += took;
		worst = took > worst ? took : worst;
	}
	printf("apply %-46s %10.1f ns   worst batch of %d: %.1f ns each, %u times\n", what,
	       (double)spent * 1000 / count, BATCH, (double)worst * 1000 / (double)BATCH, count);
}

static char texts[BATCH][4][72];

static void fill_submitted(uint32_t i, struct event *ret)
{
	char(*text)[72] = texts[i % BATCH];
	struct event_job_submitted *e;

	*ret = make(EVENT_JOB_SUBMITTED);
	e = &ret->job_submitted;
	snprintf(text[0], sizeof(text[0]), "train-%u", i % 5000);
	snprintf(text[1], sizeof(text[1]), "user-%u", i % 500);
	snprintf(text[2], sizeof(text[2]), "q%u", i % QUEUES);
	snprintf(text[3], sizeof(text[3]), "%064" PRIx64, (uint64_t)i * 0x9e3779b97f4a7c15);
	e->job = i + 1;
	e->name = text[0];
	e->user = text[1];
	e->queue = text[2];
	e->tasks_min = 1;
	e->gpus = 1 + i % SHAPES % 8;
	e->memory_mib = i % SHAPES;
	e->body = e->body_mac = e->client_key = text[3];
}

static uint32_t node_count;

static void fill_placed(uint32_t i, struct event *ret)
{
	static int64_t nodes[BATCH], masks[BATCH];

	*ret = make(EVENT_ATTEMPT_PLACED);
	nodes[i % BATCH] = 1 + i / 8 % node_count;
	masks[i % BATCH] = 1 << i % 8;
	ret->attempt_placed.job = i + 1;
	ret->attempt_placed.attempt = i + 1;
	ret->attempt_placed.nodes = &nodes[i % BATCH];
	ret->attempt_placed.masks = &masks[i % BATCH];
	ret->attempt_placed.nodes_count = ret->attempt_placed.masks_count = 1;
}

static void fill_ready(uint32_t i, struct event *ret)
{
	*ret = make(EVENT_TASK_READY);
	ret->task_ready.attempt = i + 1;
}

static void fill_released(uint32_t i, struct event *ret)
{
	*ret = make(EVENT_ATTEMPT_RELEASED);
	ret->attempt_released.attempt = i + 1;
}

static void fill_started(uint32_t i, struct event *ret)
{
	*ret = make(EVENT_TASK_STARTED);
	ret->task_started.attempt = i + 1;
}

static void fill_progress(uint32_t i, struct event *ret)
{
	*ret = make(EVENT_PROGRESS);
	ret->progress.attempt = i + 1;
	ret->progress.number = 1;
	ret->progress.step = 10;
}

static void fill_exited(uint32_t i, struct event *ret)
{
	*ret = make(EVENT_TASK_EXITED);
	ret->task_exited.attempt = i + 1;
}

static void fill_ended(uint32_t i, struct event *ret)
{
	*ret = make(EVENT_ATTEMPT_ENDED);
	ret->attempt_ended.attempt = i + 1;
	ret->attempt_ended.used_gpu_ms = 1000;
}

static void fill_job_ended(uint32_t i, struct event *ret)
{
	*ret = make(EVENT_JOB_ENDED);
	ret->job_ended.job = i + 1;
	ret->job_ended.state = JOB_SUCCEEDED;
}

static uint32_t after_jobs;

static void fill_submitted_after(uint32_t i, struct event *ret)
{
	fill_submitted(after_jobs + i, ret);
}

static void measure_freeze(void)
{
	enum { TIMES = 100 };
	struct facts frozen;
	int64_t start = now_us(), spent;

	for (int i = 0; i < TIMES; i++) {
		facts_freeze(&f, &frozen);
		facts_deinit(&frozen);
	}
	printf("%-52s %10.1f us\n", "freeze and drop", (double)(now_us() - start) / (double)TIMES);
	start = now_us();
	facts_freeze(&f, &frozen);
	spent = now_us() - start;
	printf("%-52s %10.1f us\n", "freeze", (double)spent);
	after_jobs = f.jobs.count;
	measure("job-submitted right after a freeze", 10 * BATCH, fill_submitted_after);
	facts_deinit(&frozen);
}

static int write_record(void *context, uint32_t kind, const char *text, size_t size)
{
	struct buf *out = context;
	uint32_t head[2] = { kind, (uint32_t)size };

	buf_add(out, head, sizeof(head));
	buf_add(out, text, size);
	return 0;
}

static void load_all(const struct buf *in, struct facts *ret)
{
	struct err err;
	uint32_t head[2];

	facts_init(ret);
	for (size_t at = 0; at < in->size; at += head[1]) {
		memcpy(head, in->data + at, sizeof(head));
		at += sizeof(head);
		if (facts_load_record(ret, head[0], in->data + at, head[1], &err) < 0)
			check_failed(__FILE__, __LINE__, err.text);
	}
	if (facts_load_finish(ret, &err) < 0)
		check_failed(__FILE__, __LINE__, err.text);
}

static void measure_snapshot(void)
{
	AUTO_BUF out = BUF_INIT;
	struct facts back;
	uint64_t hash;
	int64_t start = now_us();

	hash = facts_hash(&f);
	printf("%-52s %10.1f ms\n", "hash", (double)(now_us() - start) / 1000);
	start = now_us();
	if (facts_save(&f, &out, write_record) < 0)
		abort();
	printf("%-52s %10.1f ms   %.1f MiB of records\n", "save", (double)(now_us() - start) / 1000,
	       (double)out.size / 1048576);
	start = now_us();
	load_all(&out, &back);
	printf("%-52s %10.1f ms\n", "load, checks included", (double)(now_us() - start) / 1000);
	CHECK(facts_hash(&back) == hash);
	facts_deinit(&back);
}

static void print_memory(void)
{
	const struct table *tables[] = { &f.names,    &f.nodes,       &f.gpus,       &f.queues,
					 &f.shapes,   &f.jobs,        &f.bodies,     &f.attempts,
					 &f.tasks,    &f.checkpoints, &f.name_slots, &f.shape_slots,
					 &f.key_slots };
	size_t bytes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		bytes += table_bytes(tables[i]);
	printf("%-52s %10.1f MiB\n", "memory of the facts", (double)bytes / 1048576);
}

int main(int argc, char **argv)
{
	uint32_t jobs = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000, live;

	node_count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 12500;
	live = jobs < LIVE_MAX ? jobs : LIVE_MAX;
	calibrate();
	facts_init(&f);
	set_up(node_count);
	printf("%u jobs, %u nodes, %u queues, %u shapes\n", jobs, node_count, (unsigned int)QUEUES,
	       (unsigned int)SHAPES);
	measure("job-submitted", jobs, fill_submitted);
	measure("attempt-placed", live, fill_placed);
	measure("task-ready", live, fill_ready);
	measure("attempt-released", live, fill_released);
	measure("task-started", live, fill_started);
	measure("progress", live, fill_progress);
	print_memory();
	measure_freeze();
	measure_snapshot();
	measure("task-exited", live, fill_exited);
	measure("attempt-ended", live, fill_ended);
	measure("job-ended", live, fill_job_ended);
	facts_deinit(&f);
	return 0;
}
