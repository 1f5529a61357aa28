/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/foretold.h"

#include <stdlib.h>

#include "base/check.h"
#include "sim/plan.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

void foretold_ask(struct outcome *o, const struct play *play, uint32_t index, uint32_t id,
		  uint32_t ahead, uint32_t a_day)
{
	struct plan_limits limits = { .target = id };
	struct plan_answer answer;
	struct plan plan;

	plan_make(&play->facts, play->now_ms, &limits, &plan);
	if (plan_ask(&plan, id, &answer) && answer.start_by_ms != PLAY_NEVER) {
		o->foretold = reallocarray(o->foretold, o->foretold_count + 1, sizeof *o->foretold);
		CHECK(o->foretold);
		o->foretold[o->foretold_count++] = (struct foretold){
			.job = index,
			.even_ms = answer.start_ms - play->now_ms,
			.safe_ms = answer.start_by_ms - play->now_ms,
			.plain_ms = (int64_t)(ahead + 1) * DAY_MS / (a_day ? a_day : 1),
		};
	}
	plan_deinit(&plan);
}

static double loss(int64_t said_ms, int64_t was_ms, double chance)
{
	const double by_s = (double)(was_ms - said_ms) / 1000;

	return by_s > 0 ? chance * by_s : (chance - 1) * by_s;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void foretold_figures_make(const struct outcome *o, struct foretold_figures *f)
{
	double *widths = calloc(o->foretold_count + 1, sizeof *widths);

	CHECK(widths);
	*f = (struct foretold_figures){ .asked = o->foretold_count };
	for (uint32_t i = 0; i < o->foretold_count; i++) {
		const struct foretold *said = &o->foretold[i];
		const struct outcome_job *job = &o->jobs[said->job];
		const int64_t was_ms = job->start_ms - o->workload->jobs[said->job].submit_ms;

		if (job->start_ms < 0 || was_ms <= 0)
			continue;
		f->by_even += was_ms <= said->even_ms;
		f->by_safe += was_ms <= said->safe_ms;
		f->loss_s += loss(said->even_ms, was_ms, 0.5) + loss(said->safe_ms, was_ms, 0.9);
		f->plain_loss_s +=
			loss(said->plain_ms, was_ms, 0.5) + loss(said->plain_ms, was_ms, 0.9);
		widths[f->started++] = (double)(said->safe_ms - said->even_ms) / (double)was_ms;
	}
	if (f->started) {
		f->by_even /= f->started;
		f->by_safe /= f->started;
		f->loss_s /= f->started;
		f->plain_loss_s /= f->started;
		qsort(widths, f->started, sizeof *widths, by_value);
		f->width = widths[f->started / 2];
	}
	free(widths);
}
