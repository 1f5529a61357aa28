/* SPDX-License-Identifier: Apache-2.0 */
/* What is announced for a time: nothing is placed where it would be in the way. */
#include "core/scheduling/view.h"
#include "sim/checks.h"

void checks_times(struct checks *checks, const struct facts *f, const struct job *job,
		  uint32_t node, uint32_t mask)
{
	const struct node *n = node_get(f, (struct node_id){ node });
	int64_t end_ms = f->now_ms + job_expected_ms(f, job);

	(void)mask;
	if (node_has_window(n) && n->window_from_ms < end_ms && n->window_to_ms > f->now_ms)
		checks_problem(checks, f,
			       "job %s is placed on node %s, and could run into its maintenance",
			       facts_name(f, job->name), facts_name(f, n->name));
}
