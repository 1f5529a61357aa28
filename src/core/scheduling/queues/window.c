/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/queues/window.h"

#include "core/scheduling/queues/calendar.h"
#include "core/scheduling/view/view.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What is in the facts was checked when it came; a text that is none of ours closes nothing. */
static bool window_read(const struct facts *facts, const struct shape *shape, struct calendar *ret)
{
	return shape->window.v &&
	       calendar_read(facts, facts_name(facts, shape->window), ret, NULL) == 0;
}

static int64_t needs_ms(const struct facts *facts, const struct job *job, const struct shape *shape,
			const struct calendar *c)
{
	int64_t expected_ms = job_expected_ms(facts, job), useful_ms;

	if (shape->window_end != WINDOW_SAVES)
		return expected_ms;
	useful_ms = facts->policy.min_runtime_ms + job_grace_ms(facts, job);
	return least(least(expected_ms, useful_ms), calendar_longest_ms(c));
}

int64_t window_needs_ms(const struct facts *facts, const struct job *job)
{
	const struct shape *shape = shape_get(facts, job->shape);
	struct calendar c;

	return window_read(facts, shape, &c) ? needs_ms(facts, job, shape, &c) : 0;
}

int64_t window_opens_ms(const struct facts *facts, const struct job *job, int64_t from_ms)
{
	const struct shape *shape = shape_get(facts, job->shape);
	struct calendar c;

	if (!window_read(facts, shape, &c))
		return from_ms;
	return calendar_start_ms(&c, from_ms, needs_ms(facts, job, shape, &c));
}

int64_t window_closes_ms(const struct facts *facts, const struct job *job, int64_t from_ms)
{
	const struct shape *shape = shape_get(facts, job->shape);
	struct calendar c;

	if (shape->window_end == WINDOW_FINISHES || !window_read(facts, shape, &c))
		return INT64_MAX;
	return calendar_closes_ms(&c, from_ms);
}

int64_t job_stays_ms(const struct facts *facts, const struct job *job, int64_t from_ms)
{
	int64_t expected_ms = job_expected_ms(facts, job),
		closes_ms = window_closes_ms(facts, job, from_ms);

	return closes_ms - from_ms > 0 ? least(expected_ms, closes_ms - from_ms) : expected_ms;
}

int64_t job_leaves_ms(const struct facts *facts, const struct job *job)
{
	return facts->now_ms + job_stays_ms(facts, job, facts->now_ms);
}
