/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario file. What is refused names its place; what is read is inside its limits and is read the same twice. Small ones
 * are also run on the core, where no promise that holds for every scenario may be broken, whatever it expects.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/conf.h"
#include "sim/runner.h"
#include "sim/scenario.h"

/* A person would wait for it: few of everything, and an end within days. */
static bool is_small(const struct scenario *s)
{
	uint64_t tasks = 0;

	if (s->node_count > 12 || s->job_count > 24 || s->event_count > 24 || s->expect_count > 24)
		return false;
	for (uint32_t i = 0; i < s->job_count; i++) {
		const struct scenario_job *job = &s->jobs[i];

		tasks += (uint64_t)job->tasks_max * (job->array_count ? job->array_count : 1);
		if (job->retries > 8 ||
		    (job->checkpoint_every_ms && job->checkpoint_every_ms < 60000))
			return false;
	}
	return tasks <= 64;
}

static void run_it(const struct scenario *s, struct arena *arena)
{
	struct scenario_result result = { 0 };
	struct err err = { 0 };
	int rc = scenario_run(s, NULL, arena, &result, &err);

	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
		return;
	}
	for (uint32_t i = 0; i < result.problem_count; i++)
		CHECK(strstr(result.problems[i], "does not end within") != NULL);
}

static void check_limits(const struct scenario *s)
{
	CHECK(s->node_count <= SCENARIO_NODES_MAX && s->queue_count <= SCENARIO_QUEUES_MAX);
	CHECK(s->job_count <= SCENARIO_JOBS_MAX && s->event_count <= SCENARIO_EVENTS_MAX);
	for (uint32_t i = 0; i < s->node_count; i++)
		CHECK(*s->nodes[i].name && s->nodes[i].gpus <= 32);
	for (uint32_t i = 0; i < s->job_count; i++)
		CHECK(*s->jobs[i].name && s->jobs[i].tasks_min >= 1 &&
		      s->jobs[i].tasks_min <= s->jobs[i].tasks_max && s->jobs[i].at_ms >= 0);
	for (uint32_t i = 1; i < s->expect_count; i++)
		CHECK(s->expects[i - 1].at_ms <= s->expects[i].at_ms);
}

static void document(const struct conf *c, const char *text, size_t size, struct arena *arena)
{
	struct scenario first, second;
	struct err err = { 0 };
	int rc = scenario_read("s.yaml", c, false, arena, &first, &err);

	CHECK(*scenario_title(c, arena));
	if (rc < 0) {
		fuzz_check_place(rc, &err, text, size);
		fuzz_accepted = false;
		return;
	}
	CHECK(scenario_read("s.yaml", c, false, arena, &second, &err) == 0);
	CHECK(first.node_count == second.node_count && first.job_count == second.job_count &&
	      first.event_count == second.event_count);
	check_limits(&first);
	if (is_small(&first))
		run_it(&first, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct conf **documents;
	struct err err = { 0 };
	struct arena arena;
	size_t count = 0;
	int rc;

	if (size > 16384)
		return 0;
	arena_init(&arena, 1024 << 20);
	rc = conf_parse("s.yaml", text, size, &arena, &documents, &count, &err);
	fuzz_accepted = rc == 0 && count > 0;
	if (rc < 0)
		fuzz_check_place(rc, &err, text, size);
	for (size_t i = 0; rc == 0 && i < count && i < 4; i++)
		document(documents[i], text, size, &arena);
	arena_deinit(&arena);
	return 0;
}
