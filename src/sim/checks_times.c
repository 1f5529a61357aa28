/* SPDX-License-Identifier: Apache-2.0 */
/* What is announced for a time: nothing is placed where it would be in the way. */
#include "core/scheduling/view/view.h"
#include "core/scheduling/queues/window.h"
#include "sim/checks.h"

void checks_times(struct checks *checks, const struct facts *f, const struct job *job,
		  uint32_t node, uint32_t mask)
{
	const struct node *n = node_get(f, (struct node_id){ node });
	int64_t end_ms = job_leaves_ms(f, job);

	if (node_has_window(n) && n->window_from_ms < end_ms && n->window_to_ms > f->now_ms)
		checks_problem(checks, f,
			       "job %s is placed on node %s, and could run into its maintenance",
			       facts_name(f, job->name), facts_name(f, n->name));
	for (uint32_t row = 1; row <= f->bookings.count; row++) {
		const struct booking *b = booking_get(f, row);

		if (!b->name.v || b->from_ms >= end_ms || b->to_ms <= f->now_ms ||
		    booking_is_for(f, b, job) || (!b->keep && job->tier == TIER_BEST_EFFORT))
			continue;
		for (uint32_t i = 0; i < BOOKING_NODES_MAX && b->node[i]; i++)
			if (b->node[i] == node && (!b->gpus || b->mask[i] & mask))
				checks_problem(checks, f,
					       "job %s is placed on %s, which is reserved: %s",
					       facts_name(f, job->name), facts_name(f, n->name),
					       facts_name(f, b->name));
	}
}
