/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For the tests of apply: small stories on one cluster, node n0 and n1 with 4 GPUs, queue `default`. Each test begins with
 * these facts `f` (STORY) and tells them what happens by fits and does_not_fit.
 */
#include "base/testing.h"

#include "base/arena.h"
#include "core/model/facts.h"

static struct facts f;
static uint64_t seq;

/* Applies an event that must fit: something besides seq and time changes. */
static inline void fits(struct event event)
{
	struct facts before;
	uint64_t hash;

	facts_freeze(&f, &before);
	before.seq = event.seq;
	if (event.time_ms > before.now_ms)
		before.now_ms = event.time_ms;
	hash = facts_hash(&before);
	facts_deinit(&before);
	apply(&f, &event);
	facts_verify(&f);
	assert_true(facts_hash(&f) != hash);
}

/* One that must not: nothing else changes. */
static inline void does_not_fit(struct event event)
{
	struct facts before;

	facts_freeze(&f, &before);
	before.seq = event.seq;
	if (event.time_ms > before.now_ms)
		before.now_ms = event.time_ms;
	apply(&f, &event);
	facts_verify(&f);
	assert_true(facts_hash(&f) == facts_hash(&before));
	facts_deinit(&before);
}

/* Texts that are not given are "", not NULL: encoded and decoded, missing fields read as empty. */
static struct arena scratch;

static inline struct event event_of(enum event_kind kind, int64_t time_ms,
				    const struct event *given)
{
	struct event event = *given;
	AUTO_BUF text = BUF_INIT;
	struct err err;

	event.kind = kind;
	event_encode(&event, &text);
	assert_int_equal(
		event_decode(kind, ++seq, time_ms, text.data, text.size, &scratch, &event, &err),
		0);
	return event;
}

#define EVENT_OF(NAME, name, time_ms, ...)                                                         \
	event_of(EVENT_##NAME, time_ms, &(const struct event){ .name = { __VA_ARGS__ } })

static inline int set_up(void **state)
{
	(void)state;
	seq = 0;
	arena_init(&scratch, 1 << 20);
	facts_init(&f);
	fits(EVENT_OF(LEVELS_SET, levels_set, 10, .levels = "zone,rack"));
	fits(EVENT_OF(NODE_SET, node_set, 10, .name = "n0", .gpus = 4, .model = "H100-80GB",
		      .domains = "z0,r0"));
	fits(EVENT_OF(NODE_SET, node_set, 10, .name = "n1", .gpus = 4, .model = "H100-80GB",
		      .domains = "z0,r1"));
	fits(EVENT_OF(QUEUE_SET, queue_set, 10, .name = "default", .limit_share = -1, .weight = 1));
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	facts_deinit(&f);
	arena_deinit(&scratch);
	return 0;
}

static inline const struct job *job(uint32_t id)
{
	return job_get(&f, (struct job_id){ id });
}

static inline const struct attempt *attempt(uint32_t id)
{
	return attempt_get(&f, (struct attempt_id){ id });
}

static inline void is(uint32_t id, enum job_state state)
{
	assert_string_equal(job_state_name(job(id)->state), job_state_name((uint8_t)state));
}

static inline void submit(int64_t time_ms, uint32_t id)
{
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, time_ms, .job = id, .name = "train",
		      .user = "ann", .queue = "default", .tasks_min = 2, .gpus = 1,
		      .checkpoint = 1));
}

static const int64_t both_nodes[] = { 1, 2 }, first_gpus[] = { 1, 1 };

static inline struct event placed(int64_t time_ms, uint32_t job_id, uint32_t attempt_id,
				  uint32_t resume)
{
	return EVENT_OF(ATTEMPT_PLACED, attempt_placed, time_ms, .job = job_id,
			.attempt = attempt_id, .nodes = both_nodes, .nodes_count = 2,
			.masks = first_gpus, .masks_count = 2, .resume_number = resume);
}

static inline void ready(int64_t time_ms, uint32_t id, uint32_t rank)
{
	fits(EVENT_OF(TASK_READY, task_ready, time_ms, .attempt = id, .rank = rank));
}

static inline void started(int64_t time_ms, uint32_t id, uint32_t rank)
{
	fits(EVENT_OF(TASK_STARTED, task_started, time_ms, .attempt = id, .rank = rank,
		      .pid = 100));
}

static inline void exited(int64_t time_ms, uint32_t id, uint32_t rank, enum task_cause cause,
			  int code)
{
	fits(EVENT_OF(TASK_EXITED, task_exited, time_ms, .attempt = id, .rank = rank,
		      .cause = cause, .code = code));
}

/* Job 1 runs in attempt 1 from time 100 on. */
static inline void run_job(void)
{
	submit(50, 1);
	fits(placed(60, 1, 1, 0));
	ready(70, 1, 0);
	ready(70, 1, 1);
	fits(EVENT_OF(ATTEMPT_RELEASED, attempt_released, 80, .attempt = 1));
	started(90, 1, 0);
	started(100, 1, 1);
	is(1, JOB_RUNNING);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
