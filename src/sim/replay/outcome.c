/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/outcome.h"

#include <stdlib.h>

#include "base/check.h"
#include "core/model/facts.h"

void outcome_init(struct outcome *o, const char *policy, const struct workload *workload)
{
	*o = (struct outcome){ .policy = policy, .workload = workload };
	o->jobs = calloc(workload->count, sizeof *o->jobs);
	CHECK(o->jobs);
	for (uint32_t i = 0; i < workload->count; i++)
		o->jobs[i].start_ms = o->jobs[i].end_ms = -1;
}

void outcome_deinit(struct outcome *o)
{
	free(o->jobs);
	free(o->moments);
	free(o->foretold);
	*o = (struct outcome){ 0 };
}

int64_t outcome_slowed_ms(int64_t share, int64_t held_ms, uint32_t slowdown)
{
	const double gpus = (double)share / (double)GPU_SHARE;

	return (int64_t)(gpus * (double)held_ms * (slowdown - 1000.0) / slowdown);
}

void outcome_note(struct outcome *o, const struct moment *moment)
{
	if (o->moment_count && o->moments[o->moment_count - 1].at_ms == moment->at_ms)
		o->moment_count--;
	if (o->moment_count == o->moment_room) {
		o->moment_room = o->moment_room ? o->moment_room * 2 : 1024;
		o->moments = reallocarray(o->moments, o->moment_room, sizeof *o->moments);
		CHECK(o->moments);
	}
	o->moments[o->moment_count++] = *moment;
}
