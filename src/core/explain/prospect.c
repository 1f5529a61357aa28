/* SPDX-License-Identifier: Apache-2.0 */
/* Before it is submitted: what may happen to the job, whether it can ever run, and what would be decided about it now. */
#include "base/parse.h"
#include "core/explain/inner.h"
#include "core/scheduling/admit/admit.h"
#include "core/scheduling/life/interval.h"
#include "core/scheduling/queues/bounds.h"
#include "core/scheduling/queues/user_limit.h"

/* --- what may happen -------------------------------------------------------------------------------------------------- */

static const char *duration_text(struct arena *arena, int64_t ms)
{
	char duration[DURATION_TEXT_MAX];

	return arena_strdup(arena, format_duration(ms, duration));
}

/* What an elastic job has above its least width costs nothing, and goes before anything is stopped. */
static const char *surplus_text(const struct event_job_submitted *e, struct arena *arena)
{
	if (e->tasks_max <= e->tasks_min || e->resize != RESIZE_FREE)
		return "";
	return arena_printf(
		arena,
		"; before that it gives up tasks above its least %lld while the others run on, and takes them again when nobody waits for the GPUs",
		(long long)e->tasks_min);
}

/* Whom it makes room for. */
static const char *makes_room_text(const struct facts *facts, const struct event_job_submitted *e)
{
	if (facts->policy.take_turns && e->checkpoint)
		return "for more important work of its queue, for a queue that takes back its share, or in its turn for work of its own priority that is expected to need less";
	return "for more important work of its queue or for a queue that takes back its share";
}

/* What stops any job, whatever its tier and age. */
static const char *anyway_text(const struct facts *facts, const struct event_job_submitted *e,
			       struct arena *arena)
{
	const bool moves = facts->policy.defragment == DEFRAGMENT_ALWAYS && e->checkpoint &&
			   e->tier != TIER_CRITICAL;

	return arena_printf(
		arena, "; its node's drain, maintenance or%s reservation in advance stops it too%s",
		e->capacity >= CAPACITY_SPOT ? " loss as a spot node, or a" : "",
		moves ? ", and so does a move that makes GPUs contiguous" : "");
}

static const char *standard_prospect(const struct facts *facts, const struct event_job_submitted *e,
				     struct arena *arena)
{
	int64_t grace_ms = e->grace_ms < 0 ? facts->policy.grace_ms : e->grace_ms;
	const char *when =
		facts->policy.min_runtime_ms
			? arena_printf(arena, " once it has run for %s,",
				       duration_text(arena, facts->policy.min_runtime_ms))
			: "";
	const char *what =
		e->checkpoint
			? arena_printf(
				  arena,
				  "it then has %s to write a checkpoint and goes on from its newest one",
				  duration_text(arena, grace_ms))
			: "it declares no checkpoints, so it then starts again from the beginning";

	/* No attempt lives long enough to become a victim: what would happen to it then need not be said. */
	if (e->limit_ms && e->limit_ms <= facts->policy.min_runtime_ms)
		return arena_printf(
			arena,
			"Standard job: it is not stopped for others, as that happens only to jobs that have run for %s",
			duration_text(arena, facts->policy.min_runtime_ms));

	return arena_printf(arena, "Standard job:%s it may be stopped %s; %s%s", when,
			    makes_room_text(facts, e), what, surplus_text(e, arena));
}

/* More than a limit above it allows, whoever else runs: the first queue on the way up. */
static struct verdict over_limit(const struct words *w)
{
	int64_t need = shape_share(&w->view->space, w->shape, w->shape->tasks_min);

	for (uint32_t id = w->j->queue.v; id;) {
		const struct queue *queue = queue_get(w->facts, (struct queue_id){ id });

		if (queue->limit_share >= 0 && need > queue->limit_share)
			return (struct verdict){ .code = REASON_QUOTA_LIMIT,
						 .at = id,
						 .have = queue->limit_share,
						 .need = need };
		if (need > user_limit_of(w->facts, w->view, (struct queue_id){ id }))
			return (struct verdict){ .code = REASON_QUOTA_LIMIT,
						 .level = BOUND_USER,
						 .at = id,
						 .have = user_limit_of(w->facts, w->view,
								       (struct queue_id){ id }),
						 .need = need };
		id = queue->parent.v;
	}
	return (struct verdict){ 0 };
}

/* What the whole cluster, idle, says to the wish; "" when it could run. The wish is made a job in a copy of the facts. */
static const char *impossible_text(const struct facts *facts, struct view *view,
				   const struct event *submitted, struct arena *arena)
{
	struct event event = *submitted;
	struct facts copy;
	struct verdict v = { 0 };
	struct view *anew = NULL;
	const char *text = "";

	facts_freeze(facts, &copy);
	event.job_submitted.job = (int64_t)facts->jobs.count + 1;
	event.job_submitted.array_count = 0;
	apply(&copy, &event);
	if (copy.jobs.count == facts->jobs.count + 1) {
		struct words w = words_make(&copy, view, (struct job_id){ copy.jobs.count }, arena);

		if (!space_knows(&view->space, w.shape))
			w.view = anew = view_create(&copy);
		v = over_limit(&w);
		w.never = !v.code;
		if (!v.code)
			v = ever_verdict(&w);
		if (v.code)
			text = arena_printf(
				arena,
				w.never ? ". On this cluster as it is it can't start: %s%s. What would let it start: %s"
					: ". As it is it can't start: %s%s. What would let it start: %s",
				v.role ? "" : "it ", words_summary(&w, &v), words_remedy(&w, &v));
	}
	view_destroy(anew);
	facts_deinit(&copy);
	return text;
}

/* A deadline that can't be met even by a start at once. */
static const char *deadline_text(const struct facts *facts, const struct event_job_submitted *e,
				 struct arena *arena)
{
	int64_t run_ms = e->limit_ms ? e->limit_ms : e->estimate_ms, left_ms = e->deadline_ms;

	if (!left_ms || !run_ms)
		return "";
	if (left_ms >= ADMIT_DURATION_MAX_MS)
		left_ms -= facts->now_ms;
	if (run_ms <= left_ms)
		return "";
	return arena_printf(
		arena,
		"; its deadline can't be met: it is in %s, and the job declares a run time of %s",
		duration_text(arena, left_ms > 0 ? left_ms : 0), duration_text(arena, run_ms));
}

/* Spot nodes that are taken away before it could save: what it may lose there. */
static const char *notice_text(const struct facts *facts, const struct event_job_submitted *e,
			       struct arena *arena)
{
	struct interval interval;
	int64_t every_ms = e->checkpoint_every_ms;

	interval_choose(facts, e, &interval);
	if (!interval.tight)
		return "";
	every_ms = every_ms == CHECKPOINT_AUTO ? interval.every_ms : every_ms;
	return arena_printf(
		arena,
		"; on a spot node that is taken back it has %s to save, and a checkpoint takes %s: work since its newest checkpoint may be lost there%s%s",
		duration_text(arena, interval.notice_ms), duration_text(arena, interval.cost_ms),
		every_ms > 0 ? ", at most that of " : "",
		every_ms > 0 ? duration_text(arena, every_ms + interval.cost_ms) : "");
}

/* What is expected to break it off. */
static const char *broken_by(const struct interval *interval)
{
	if (interval->goes_first)
		return interval->tight ? "a machine, the loss of a spot node or other work"
				       : "a machine or other work";
	return interval->tight ? "a machine or the loss of a spot node" : "a machine";
}

/* The interval between checkpoints that was left to Fairlead, and what it rests on. */
static const char *interval_text(const struct facts *facts, const struct event_job_submitted *e,
				 struct arena *arena)
{
	struct interval interval;

	if (e->checkpoint_every_ms != CHECKPOINT_AUTO)
		return "";
	interval_choose(facts, e, &interval);
	return arena_printf(
		arena,
		"; it is asked for a checkpoint every %s, as one takes %s (%s) and %s is expected to break it off once in %s",
		duration_text(arena, interval.every_ms), duration_text(arena, interval.cost_ms),
		e->checkpoint_cost_ms ? "declared"
		: interval.measured   ? "measured"
				      : "assumed",
		broken_by(&interval), duration_text(arena, interval.mean_ms / 60000 * 60000));
}

static const char *window_text(const struct event_job_submitted *e, struct arena *arena)
{
	if (!*e->window)
		return "";
	if (e->window_end)
		return arena_printf(
			arena,
			"; it starts only in its window (%s), where it is expected to end in time",
			e->window);
	return arena_printf(arena,
			    "; it runs only in its window (%s): when that closes it is stopped, %s",
			    e->window,
			    e->checkpoint ? "saves its work, and goes on in the next one"
					  : "and starts again from the beginning in the next one");
}

const char *explain_prospect(const struct facts *facts, struct view *view,
			     const struct event *job_submitted, struct arena *arena)
{
	const struct event_job_submitted *e = &job_submitted->job_submitted;
	const char *text, *limit = "";

	view_refresh(view, facts);
	if (e->limit_ms)
		limit = arena_printf(arena, "; its run-time limit is %s",
				     duration_text(arena, e->limit_ms));
	if (e->tier == TIER_CRITICAL)
		text = "Critical job: it is never stopped for other work, and runs only inside the guarantee of its queue";
	else if (e->tier == TIER_BEST_EFFORT)
		text = arena_printf(
			arena,
			"Best-effort job: it runs on spare GPUs only, and is stopped at once, without warning, when other work needs "
			"them; it then %s",
			!e->checkpoint ? "starts again from the beginning"
			: e->checkpoint_every_ms || e->external
				? "goes on later from its newest checkpoint"
				: "goes on later from the newest checkpoint that it made by itself; with `checkpoint: {every: auto}` it is asked for them");
	else
		text = standard_prospect(facts, e, arena);
	return arena_printf(arena, "%s%s%s%s%s%s%s%s", text, limit, window_text(e, arena),
			    deadline_text(facts, e, arena), interval_text(facts, e, arena),
			    notice_text(facts, e, arena), anyway_text(facts, e, arena),
			    impossible_text(facts, view, job_submitted, arena));
}

/* --- dry run ------------------------------------------------------------------------------------------------------------- */

enum { DRY_PASSES_MAX = 64 };

/* Looks through decisions for the job's place. */
static bool dry_found(const struct decisions *d, int64_t job, struct dry_run *ret)
{
	for (uint32_t i = 0; i < d->count; i++) {
		const struct event *e = &d->events[i];

		if (e->kind == EVENT_ATTEMPT_PLACED && e->attempt_placed.job == job) {
			ret->starts_now = true;
			ret->placed = e;
			return true;
		}
		if (e->kind == EVENT_PROMISE_MADE && e->promise_made.job == job) {
			ret->victims = e->promise_made.victims_count;
			ret->placed = e;
			return true;
		}
	}
	return false;
}

void core_dry_run(const struct facts *facts, const struct event *job_submitted, struct arena *arena,
		  struct dry_run *ret)
{
	struct facts copy;
	struct view *view;
	struct decisions d = { .more = true };
	bool found = false;

	*ret = (struct dry_run){ .why = { .summary = "", .remedy = "" } };
	facts_freeze(facts, &copy);
	apply(&copy, job_submitted);
	copy.searched = 0;
	view = view_create(&copy);
	for (int i = 0; i < DRY_PASSES_MAX && d.more && !found; i++) {
		decide(&copy, view, UINT64_MAX, arena, &d);
		found = dry_found(&d, job_submitted->job_submitted.job, ret);
		for (uint32_t k = 0; k < d.count; k++) {
			apply(&copy, &d.events[k]);
			view_follow(view, &copy, &d.events[k]);
		}
	}
	if (!ret->starts_now && copy.jobs.count >= job_submitted->job_submitted.job)
		explain_job(&copy, view,
			    (struct job_id){ (uint32_t)job_submitted->job_submitted.job }, arena,
			    &ret->why);
	if (copy.jobs.count >= job_submitted->job_submitted.job)
		core_price(&copy, view,
			   (struct job_id){ (uint32_t)job_submitted->job_submitted.job },
			   ret->placed, &ret->price);
	view_destroy(view);
	facts_deinit(&copy);
}

bool explain_is_impossible(const struct facts *facts, struct view *view,
			   const struct event *job_submitted, struct arena *arena)
{
	view_refresh(view, facts);
	return *impossible_text(facts, view, job_submitted, arena) != '\0';
}
