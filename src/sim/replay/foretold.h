/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How well starts are foretold: of each so many-th job of a replay that does not start at once the plan (sim/plan.h) is asked when it
 * will, from the facts of that moment alone, as the daemon asks it. Its true start is seen later; jobs that come meanwhile are in it.
 *
 * By hand: said are 10 min at even odds and 30 min in 9 of 10 cases, it starts after 20 min. Loss at even odds (20 - 10) / 2 = 5 min, of 9 in
 * 10 (30 - 20) / 10 = 1 min: 6 in all. Width (30 - 10) / 20 = 1.
 */
#include "sim/play.h"
#include "sim/replay/outcome.h"

struct foretold_figures {
	uint32_t asked, started; /* asked: those of which something could be said */
	double by_even, by_safe; /* parts of those that started */
	double width; /* half of them have more: (90 % - half) over the wait */
	double loss_s, plain_loss_s; /* pinball, in mean; of "position over service rate" */
};

/* Asks about the job, `id` in the facts of the play; ahead: jobs that wait before it, a_day: starts in the last 24 h. */
void foretold_ask(struct outcome *outcome, const struct play *play, uint32_t index, uint32_t id,
		  uint32_t ahead, uint32_t a_day);
void foretold_figures_make(const struct outcome *outcome, struct foretold_figures *ret);
