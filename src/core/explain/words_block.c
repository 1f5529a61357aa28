/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept from a job for a time, and what would help. */
#include "core/explain/words.h"

static const char *node_name(const struct words *w, uint32_t node)
{
	return arena_strdup(
		w->arena, facts_name(w->facts, node_get(w->facts, (struct node_id){ node })->name));
}

const char *words_maintenance(const struct words *w, const struct verdict *v)
{
	const struct node *node = node_get(w->facts, (struct node_id){ v->at });
	const char *reason = facts_text(w->facts, node->window_reason);

	if (v->have <= w->facts->now_ms)
		return arena_printf(
			w->arena, "would fit, but node \"%s\" has maintenance, which ends %s%s%s",
			node_name(w, v->at), words_until(w, v->need), *reason ? ": " : "", reason);
	return arena_printf(
		w->arena,
		"may run for %s, and maintenance of node \"%s\" begins %s and ends %s%s%s",
		words_duration(w, job_expected_ms(w->facts, w->j)), node_name(w, v->at),
		words_until(w, v->have), words_until(w, v->need), *reason ? ": " : "", reason);
}

const char *words_maintenance_remedy(const struct words *w, const struct verdict *v)
{
	if (v->have <= w->facts->now_ms)
		return arena_printf(
			w->arena,
			"waiting until then; an admin ends it sooner with `fairlead nodes ready %s`",
			node_name(w, v->at));
	return "declaring a run-time limit short enough to end before it begins, or waiting until it is over";
}
