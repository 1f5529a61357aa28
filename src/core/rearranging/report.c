/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `fairlead defrag` would do: the real thing on a frozen copy, as in core_dry_run. Its plans are those that the decisions name,
 * and each is made when those before it are under way.
 */
#include "core/rearranging/rearrange.h"

enum { REPORT_PASSES_MAX = 64 };

/* Jobs that find no place although enough is free. */
static void stuck_read(const struct facts *facts, struct view *view, struct arena *arena,
		       struct defrag_report *ret)
{
	struct pass pass;
	uint32_t mark;

	view_refresh(view, facts);
	pass_begin(&pass, facts, view, UINT64_MAX, arena);
	mark = space_mark(&view->space);
	pass_run(&pass);
	space_rollback(&view->space, mark);
	for (uint32_t i = 0; i < pass.stuck_count; i++)
		ret->stuck[ret->stuck_count++] = pass.stuck[i].job;
}

static const struct event_promise_made *promise_of(const struct decisions *d, int64_t job)
{
	for (uint32_t i = 0; i < d->count; i++)
		if (d->events[i].kind == EVENT_PROMISE_MADE && d->events[i].promise_made.job == job)
			return &d->events[i].promise_made;
	return NULL;
}

static struct defrag_move move_read(const struct facts *facts, const struct decisions *d,
				    int64_t job, struct arena *arena)
{
	const struct job *j = job_get(facts, (struct job_id){ (uint32_t)job });
	const struct attempt *attempt = attempt_get(facts, j->attempt);
	const struct event_promise_made *to = promise_of(d, job);
	uint32_t *nodes = arena_new_array(arena, uint32_t, (size_t)2 * attempt->tasks);
	struct defrag_move move = { .job = (uint32_t)job,
				    .tasks = attempt->tasks,
				    .from = nodes,
				    .to = nodes + attempt->tasks };

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		nodes[i] = task_get(facts, attempt, i)->node.v;
		nodes[attempt->tasks + i] = to ? (uint32_t)to->nodes[i] : 0;
	}
	return move;
}

static void plan_read(const struct facts *facts, const struct decisions *d,
		      const struct event_moves_planned *e, struct arena *arena,
		      struct defrag_report *ret)
{
	struct defrag_plan *plan = &ret->plans[ret->plan_count++];
	struct defrag_move *moves = arena_new_array(arena, struct defrag_move, e->jobs_count);

	for (uint32_t i = 0; i < e->jobs_count; i++)
		moves[i] = move_read(facts, d, e->jobs[i], arena);
	*plan = (struct defrag_plan){ .for_job = (uint32_t)e->for_job,
				      .lost_gpu_ms = e->lost_gpu_ms,
				      .gained_share = e->gained_share,
				      .moves = moves,
				      .count = e->jobs_count };
}

static void decisions_read(const struct facts *facts, const struct decisions *d,
			   struct arena *arena, struct defrag_report *ret)
{
	for (uint32_t i = 0; i < d->count && ret->plan_count < DEFRAG_PLANS_MAX; i++)
		if (d->events[i].kind == EVENT_MOVES_PLANNED &&
		    d->events[i].moves_planned.jobs_count)
			plan_read(facts, d, &d->events[i].moves_planned, arena, ret);
}

void core_defrag(const struct facts *facts, struct arena *arena, struct defrag_report *ret)
{
	struct decisions d = { .more = true };
	struct facts copy;
	struct view *view;

	*ret = (struct defrag_report){ .stuck_count = 0 };
	facts_freeze(facts, &copy);
	copy.moves.asked = true;
	copy.searched = 0;
	view = view_create(&copy);
	stuck_read(&copy, view, arena, ret);
	for (int i = 0; i < REPORT_PASSES_MAX && d.more && copy.moves.asked; i++) {
		decide(&copy, view, UINT64_MAX, arena, &d);
		decisions_read(&copy, &d, arena, ret);
		for (uint32_t k = 0; k < d.count; k++) {
			apply(&copy, &d.events[k]);
			view_follow(view, &copy, &d.events[k]);
		}
	}
	view_destroy(view);
	facts_deinit(&copy);
}
