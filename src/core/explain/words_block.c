/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept from a job for a time, and what would help. */
#include "core/explain/words.h"

#include "core/scheduling/life/pause.h"

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

/* "queue "a"", "user "vera" in queue "a"", "team "b"" */
static const char *whom(const struct words *w, const struct booking *b)
{
	const char *person = "", *queue = "";

	if (b->user.v)
		person = arena_printf(w->arena, "user \"%s\"", facts_name(w->facts, b->user));
	if (b->team.v)
		person = arena_printf(w->arena, "%s%steam \"%s\"", person, *person ? " of " : "",
				      facts_name(w->facts, b->team));
	if (b->queue.v)
		queue = arena_printf(w->arena, "%squeue \"%s\"", *person ? " in " : "",
				     facts_name(w->facts, queue_get(w->facts, b->queue)->name));
	return arena_printf(w->arena, "%s%s", person, queue);
}

const char *words_reserved(const struct words *w, const struct verdict *v)
{
	const struct booking *b = booking_get(w->facts, v->at);
	const char *name = facts_name(w->facts, b->name), *reason = facts_text(w->facts, b->reason),
		   *queue = whom(w, b);

	if (v->have <= w->facts->now_ms)
		return arena_printf(
			w->arena,
			"would fit, but the GPUs are reserved for %s (reservation \"%s\"), which ends %s%s%s",
			queue, name, words_until(w, v->need), *reason ? ": " : "", reason);
	if (w->j->tier == TIER_CRITICAL && !w->j->limit_ms)
		return arena_printf(
			w->arena,
			"critical work is never stopped and this declares no run-time limit, and the GPUs are reserved for "
			"%s (reservation \"%s\"), which begins %s",
			queue, name, words_until(w, v->have));
	return arena_printf(
		w->arena,
		"may run for %s, and the GPUs are reserved for %s (reservation \"%s\"), which begins %s and ends %s%s%s",
		words_duration(w, job_expected_ms(w->facts, w->j)), queue, name,
		words_until(w, v->have), words_until(w, v->need), *reason ? ": " : "", reason);
}

const char *words_reserved_remedy(const struct words *w, const struct verdict *v)
{
	if (v->have <= w->facts->now_ms)
		return arena_printf(
			w->arena,
			"waiting until then, or an admin who gives it up: `fairlead reservations delete %s`",
			facts_name(w->facts, booking_get(w->facts, v->at)->name));
	return "declaring a run-time limit short enough to end before it begins, or waiting until it is over";
}

const char *words_apart(const struct words *w, const struct verdict *v)
{
	const struct job *other = job_get(w->facts, v->holder);
	bool own = w->shape->apart_from[0].v && !w->shape->apart_wish;
	const struct shape *by = own ? w->shape : shape_get(w->facts, other->shape);
	char names[EVENT_TEXT_MAX + 1];
	const char *level = by->apart_level && by->apart_level < LEVEL_NODE
				    ? facts_name(w->facts, w->facts->level[by->apart_level - 1])
				    : "node";

	return arena_printf(
		w->arena, "would fit, but %s with %s, by %s: job %u \"%s\" %s node \"%s\"",
		own ? "keeps away from jobs" : "others keep away from jobs",
		names_text(w->facts, by->apart_from, JOB_LABELS_MAX, names), level, v->holder.v,
		facts_name(w->facts, other->name),
		other->attempt.v ? "is on" : "will have a place on", node_name(w, v->at));
}

static const char *words_elsewhere(const struct words *w, int64_t at_ms)
{
	return at_ms > w->facts->now_ms ? arena_printf(w->arena, " %s", words_until(w, at_ms))
					: " as soon as there is a place";
}

/* It was lost again and again: how often, how soon, why the last time, and when it is tried again. */
const char *words_pause(const struct words *w, const struct verdict *v)
{
	struct pause pause = job_pause(w->facts, w->j);
	bool elsewhere = pause.elsewhere_ms < pause.until_ms;
	const char *reason = facts_text(w->facts, w->j->reason);

	return arena_printf(
		w->arena,
		"was lost or could not be started %u times in a row%s, each time "
		"within %s of its start%s%s%s; it is tried again %s%s%s%s, or now by `fairlead release %u`",
		pause.losses, pause.losses == PAUSE_COUNT_MAX ? " or more" : "",
		words_duration(w, pause.longest_ms > 1000 ? pause.longest_ms : 1000),
		*reason ? " (the last time: " : "", reason, *reason ? ")" : "",
		words_until(w, v->have), elsewhere ? ", on a node other than " : "",
		elsewhere ? node_name(w, pause.node.v) : "",
		elsewhere ? words_elsewhere(w, pause.elsewhere_ms) : "", w->job);
}
