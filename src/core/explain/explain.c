/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a job waits. The verdict is the decision's own: the pass runs on the view with a watch on the job, its
 * decisions are thrown away, and what it noted when the job's turn came is put into words. Only "could it ever run"
 * and "is it the promises" are asked here, of the same placement on a changed view.
 */
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/explain/inner.h"
#include "core/scheduling/order/arrays.h"

const char *reason_name(enum reason reason)
{
	static const char *const names[] = {
		[REASON_NONE] = "none",
		[REASON_QUOTA_LIMIT] = "quota_limit",
		[REASON_GUARANTEE_ONLY] = "guarantee_only",
		[REASON_BUDGET] = "budget",
		[REASON_PRIORITY] = "priority",
		[REASON_RESERVATION] = "reservation",
		[REASON_CAPACITY] = "capacity",
		[REASON_TOPOLOGY] = "topology",
		[REASON_FRAGMENTATION] = "fragmentation",
		[REASON_MODEL] = "model",
		[REASON_MEMORY] = "memory",
		[REASON_CPU] = "cpu",
		[REASON_RAM] = "ram",
		[REASON_DRIVER] = "driver",
		[REASON_PARTITION] = "partition",
		[REASON_SHARING] = "sharing",
		[REASON_NODE_CLASS] = "node_class",
		[REASON_RESIDENCY] = "residency",
		[REASON_DEPENDENCY] = "dependency",
		[REASON_WINDOW] = "window",
		[REASON_HOLD] = "hold",
		[REASON_IMPOSSIBLE] = "impossible",
		[REASON_ARRAY_LIMIT] = "array_limit",
		[REASON_SPREAD] = "spread",
		[REASON_MAINTENANCE] = "maintenance",
		[REASON_SLOWDOWN] = "slowdown",
		[REASON_ALIGNMENT] = "alignment",
		[REASON_RESERVED] = "reserved",
		[REASON_APART] = "apart",
		[REASON_SPOT] = "spot",
		[REASON_PAUSE] = "pause",
	};

	return (size_t)reason < ARRAY_SIZE(names) ? names[reason] : "unknown";
}

/* Tries of a pass before the job's turn comes: some 15 ms. */
enum { WORK_OF_PASS = 40000 };

/* --- the verdict ---------------------------------------------------------------------------------------------- */

/* Does no node meet the shape in this respect, whatever else it has? */
static bool trait_alone_fails(const struct words *w, enum trait trait)
{
	for (uint32_t i = 0; i < w->view->space.traits_count; i++)
		if (traits_meet(&w->view->space.traits.at[i], w->shape, trait))
			return false;
	return true;
}

/* The processors belong to this wish: it is about where they are. */
static struct shape aligned_alone(const struct shape *shape, struct shape alone)
{
	alone.align = shape->align;
	alone.cpu_milli = shape->cpu_milli;
	return alone;
}

/* Is this wish of the shape, apart from all its others, one that no place meets? */
static bool wish_alone_fails(const struct words *w, const struct verdict *v)
{
	const enum reason code = (enum reason)v->code;
	struct shape alone = shape_sizes(w->shape);
	struct place_request request = { .shape = &alone,
					 .tasks = alone.tasks_min,
					 .rank = RANK_NONE };
	struct shape room;
	const struct words of_role = v->role ? words_of_role(w, (uint32_t)v->role - 1, &room) : *w;

	if (code == REASON_CPU)
		shape_cpus_copy(&alone, w->shape);
	else if (code == REASON_RAM)
		shape_memory_copy(&alone, w->shape);
	else if (code == REASON_MEMORY)
		alone.gpu_memory_mib = w->shape->gpu_memory_mib;
	else if (code == REASON_TOPOLOGY)
		alone.require = w->shape->require;
	else if (code == REASON_SPREAD)
		alone.apart = w->shape->apart;
	else if (code == REASON_ALIGNMENT)
		alone = aligned_alone(w->shape, alone);
	else if (code == REASON_DRIVER || code == REASON_RESIDENCY || code == REASON_NODE_CLASS ||
		 code == REASON_MODEL || code == REASON_SPOT)
		return trait_alone_fails(&of_role, (enum trait)v->level);
	else
		return true;
	return place_find(&w->view->space, &request, NULL, NULL, NULL) != 0;
}

bool words_fits_idle(const struct words *w, const struct shape *shape, uint32_t tasks)
{
	struct place_request request = { .shape = shape, .tasks = tasks, .rank = RANK_NONE };
	uint32_t mark = space_mark(&w->view->space);
	bool fits;

	space_clear(&w->view->space);
	fits = place_find(&w->view->space, &request, NULL, NULL, NULL) == 0;
	space_rollback(&w->view->space, mark);
	return fits;
}

/* A verdict in GPUs, in tasks. */
static struct verdict tasks_instead(const struct words *w, const struct verdict *v)
{
	const struct shape *shape = w->shape;
	struct verdict ret = *v;

	if (v->role) {
		uint32_t gpus = shape->role_gpus[v->role - 1];

		ret.have = gpus ? v->have / gpus : 0;
		ret.need = shape->role_min[v->role - 1];
	} else if (shape->role_count) {
		ret.have = shape_tasks_within(shape, roles_gpus, v->have, shape->tasks_min);
		ret.need = shape->tasks_min;
	} else {
		ret.have = shape->gpus ? v->have / shape->gpus : 0;
		ret.need = shape->tasks_min;
	}
	return ret;
}

/* On an idle cluster of all nodes that exist: NONE, or what forbids it for ever. */
struct verdict ever_verdict(const struct words *w)
{
	struct place_request request = { .shape = w->shape,
					 .tasks = w->shape->tasks_min,
					 .rank = RANK_NONE };
	uint32_t mark = space_mark(&w->view->space);
	struct verdict v = { 0 };

	space_clear(&w->view->space);
	if (place_find(&w->view->space, &request, NULL, NULL, &v) == 0)
		v = (struct verdict){ 0 };
	else if (!wish_alone_fails(w, &v))
		v = (struct verdict){ .code = REASON_IMPOSSIBLE, .need = w->shape->tasks_min };
	space_rollback(&w->view->space, mark);
	if (v.code == REASON_CAPACITY) { /* in GPUs; said in tasks */
		v = tasks_instead(w, &v);
	}
	if (v.code == REASON_CAPACITY || v.code == REASON_FRAGMENTATION)
		v.code = REASON_IMPOSSIBLE;
	return v;
}

/* It would fit on what is promised to others: the first of those, by job id. */
static uint32_t promise_in_the_way(const struct words *w)
{
	struct place_request request = { .shape = w->shape,
					 .tasks = w->shape->tasks_min,
					 .rank = RANK_NONE,
					 .share_gpus = (uint8_t)w->facts->policy.share_gpus };
	struct space *space = &w->view->space;
	uint32_t mark = space_mark(space), holder = 0;

	for (uint32_t i = 0; i < w->view->promise_count && !holder; i++) {
		const struct promise_view *p = &w->view->promises.at[i];

		for (uint32_t t = 0; t < p->tasks; t++) {
			int32_t rank = space_rank(space, promise_node(p, t));
			struct hold hold = promise_task(p, t);

			if (rank != RANK_NONE)
				space_unpromise(space, (uint32_t)rank, &hold);
		}
		if (place_find(space, &request, NULL, NULL, NULL) == 0)
			holder = p->job;
	}
	space_rollback(space, mark);
	return holder;
}

/* A pass with a watch on the job: the job alone, or all up to its turn. */
static void pass_watch(const struct words *w, struct watched *ret, bool alone)
{
	uint32_t mark = space_mark(&w->view->space);
	struct pass pass;

	ret->watch = (struct watch){ .job = w->job, .work_most = w->work_most };
	pass_begin(&pass, w->facts, w->view, UINT64_MAX, w->arena);
	pass.watch = &ret->watch;
	pass.promises_gone = arena_new_array(w->arena, bool, w->view->promise_count + 1);
	if (w->before && w->before->facts == w->facts)
		standings_copy(&pass.standings, w->before, w->arena);
	else
		standings_make_like(&pass.standings, w->facts, w->view, w->before, w->arena);
	pledges_make(&pass);
	promises_place(&pass);
	if (alone)
		(void)order_try(&pass, w->job);
	else
		order_run(&pass);
	space_rollback(&w->view->space, mark);
	ret->work += pass.work;
	ret->events = pass.events;
	ret->event_count = pass.count;
}

void watch_run(const struct words *w, struct watched *ret)
{
	*ret = (struct watched){ .work = 0 };
	pass_watch(w, ret, true);
	if (!ret->watch.started)
		return;
	pass_watch(w, ret, false);
	ret->undecided = !ret->watch.seen && !ret->watch.started;
	ret->outrun = ret->watch.seen && ret->watch.verdict.code != REASON_RESERVATION;
}

static struct verdict waiting_verdict(struct words *w)
{
	struct verdict v, ever;
	struct watched got;
	uint32_t holder;

	watch_run(w, &got);
	v = got.watch.verdict;
	w->outrun = got.outrun || got.undecided;
	w->undecided = got.undecided;
	w->latest_ms = got.watch.latest_ms;
	w->work += got.work;
	if (got.undecided)
		return (struct verdict){ .code = REASON_PRIORITY };
	if (!got.watch.seen)
		return (struct verdict){ 0 };
	if (v.code == REASON_QUOTA_LIMIT || v.code == REASON_GUARANTEE_ONLY ||
	    v.code == REASON_BUDGET || v.code == REASON_RESERVATION || v.code == REASON_WINDOW ||
	    v.code == REASON_MAINTENANCE || v.code == REASON_RESERVED || v.code == REASON_APART ||
	    v.code == REASON_PAUSE || (w->starts_only && v.code != REASON_NONE))
		return v;
	ever = ever_verdict(w);
	w->never = ever.code != REASON_NONE;
	if (w->never)
		return ever;
	holder = promise_in_the_way(w);
	if (holder)
		return (struct verdict){ .code = REASON_PRIORITY, .holder = { holder } };
	return v;
}

static uint32_t open_dependency(const struct words *w)
{
	for (uint32_t row = w->j->depends; row;) {
		const struct depend *depend = table_get(&w->facts->depends, row);

		uint32_t open = depend_open(w->facts, depend);

		if (open)
			return open;
		row = depend->next;
	}
	return 0;
}

/* --- protection by age --------------------------------------------------------------------------------------------- */

/* Tries of the pass in which nobody is protected: it may evict for each, so it goes not far. */
enum { PROTECTED_AHEAD_MAX = 16, PROTECTED_TRIES_MAX = 256 };

/* The youngest of the jobs that the promise would make leave; 0 = none that is protected now. */
static uint32_t youngest_victim(const struct words *w, const struct event_promise_made *promise)
{
	int64_t min_ms = w->facts->policy.min_runtime_ms, since_ms = w->facts->now_ms - min_ms;
	uint32_t youngest = 0;

	for (uint32_t i = 0; i < promise->victims_count; i++) {
		struct attempt_id id = { (uint32_t)promise->victims[i] };
		uint32_t job = attempt_get(w->facts, id)->job.v;
		const struct job_view *jv = job_view_get(w->view, job);

		if (jv->tier == TIER_BEST_EFFORT || jv->since_ms <= since_ms)
			continue;
		youngest = job;
		since_ms = jv->since_ms;
	}
	return youngest;
}

static const struct event_promise_made *promise_of(const struct watched *got, uint32_t job)
{
	for (uint32_t i = 0; i < got->event_count; i++)
		if (got->events[i].kind == EVENT_PROMISE_MADE &&
		    got->events[i].promise_made.job == job)
			return &got->events[i].promise_made;
	return NULL;
}

static bool any_is_young(const struct words *w)
{
	for (uint32_t q = 1; q <= w->facts->queues.count; q++) {
		struct sorted_walk walk;

		for (bool any = sorted_begin(&w->view->pool, w->view->queues.at[q].running, &walk);
		     any; any = sorted_next(&w->view->pool, &walk)) {
			const struct job_view *jv = job_view_get(w->view, walk.id);

			if (jv->tier != TIER_BEST_EFFORT &&
			    jv->since_ms + w->facts->policy.min_runtime_ms > w->facts->now_ms)
				return true;
		}
	}
	return false;
}

/* The running job that is safe from this one only because it is young, 0 = none: what is decided if the policy protected
 * nobody. The index knows nothing of that rule, so it serves these facts as well. */
static uint32_t protected_by_age(const struct words *w)
{
	struct words other = *w;
	struct facts copy;
	struct watched got;
	const struct event_promise_made *promise;
	uint32_t victim = 0;

	if (!any_is_young(w))
		return 0;
	facts_freeze(w->facts, &copy);
	copy.policy.min_runtime_ms = 0;
	other.facts = &copy;
	other.work_most = PROTECTED_TRIES_MAX;
	watch_run(&other, &got);
	promise = got.watch.started ? promise_of(&got, w->job) : NULL;
	if (promise)
		victim = youngest_victim(w, promise);
	facts_deinit(&copy);
	return victim;
}

/* When a young job stands in the way, that and its end are what there is to wait for. */
static void explain_protection(const struct words *w, struct explanation *ret)
{
	uint32_t victim;
	char duration[DURATION_TEXT_MAX];

	if (w->never || !reason_is_of_place(ret->reason) || ret->ahead_count > PROTECTED_AHEAD_MAX)
		return; /* those before it would come first */
	victim = protected_by_age(w);
	if (!victim)
		return;
	ret->holder_protected = true;
	ret->remedy = arena_printf(
		w->arena,
		"%s may be stopped for it %s; until then it is protected, as it has not yet run for %s (the policy's min_runtime)",
		words_job(w, victim),
		words_until(w, job_view_get(w->view, victim)->since_ms +
				       w->facts->policy.min_runtime_ms),
		format_duration(w->facts->policy.min_runtime_ms, duration));
}

/* --- entrances ------------------------------------------------------------------------------------------------------------ */

/* An elastic job may be narrower than it could be: "; it has 2 of the 4 tasks ..." */
static const char *width_text(const struct words *w)
{
	const struct attempt *attempt;
	uint32_t width;

	if (!job_is_live(w->j) || !job_is_free(w->facts, w->j))
		return "";
	attempt = attempt_get(w->facts, w->j->attempt);
	width = attempt_width(attempt);
	if (attempt->leaving)
		return arena_printf(w->arena, "; %u of its %u tasks leave%s to make room",
				    attempt->leaving, width, attempt->leaving == 1 ? "s" : "");
	if (width >= w->shape->tasks_max)
		return "";
	return arena_printf(
		w->arena,
		"; it has %u of the %u tasks that it could use, and grows into GPUs that nobody waits for",
		width, w->shape->tasks_max);
}

enum { NODES_SHOWN = 3 };

/* " on n0, n1, n2 and others": where its ranks have their places. */
static const char *where_text(const struct words *w)
{
	const struct attempt *attempt = attempt_get(w->facts, w->j->last_attempt);
	uint32_t shown[NODES_SHOWN], count = 0, seen;
	const char *text = "";

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(w->facts, attempt, rank);
		const uint32_t node = task ? task->node.v : 0;

		for (seen = 0; seen < count && seen < NODES_SHOWN && shown[seen] != node;)
			seen++;
		if (!node || seen < count)
			continue;
		if (count == NODES_SHOWN)
			return arena_printf(w->arena, "%s and others", text);
		shown[count] = node;
		text = arena_printf(
			w->arena, "%s%s%s", text, count++ ? ", " : " on ",
			facts_name(w->facts, node_get(w->facts, (struct node_id){ node })->name));
	}
	return text;
}

/* It runs still, and leaves. */
static const char *leaving_text(const struct words *w)
{
	const struct attempt *attempt = attempt_get(w->facts, w->j->attempt);
	const char *why = facts_text(w->facts, attempt->reason), *whom = "";

	if (attempt->for_job && job_is_there(w->facts, attempt->for_job))
		whom = arena_printf(w->arena, " for %s", words_job(w, attempt->for_job));
	return arena_printf(
		w->arena,
		"it makes room%s%s%s: it saves its work%s, is stopped %s at the latest, and then waits for its turn",
		whom, !*whom && *why ? ": " : "", !*whom ? why : "", where_text(w),
		words_until(w, attempt->deadline_ms));
}

static void explain_done(const struct words *w, struct explanation *ret)
{
	const char *state = job_state_name(w->j->state), *why = facts_text(w->facts, w->j->reason);
	const bool unreachable = w->j->state == JOB_UNREACHABLE && why[0];

	if (job_state_is_final(w->j->state))
		ret->summary = arena_printf(w->arena, "it has ended (%s) and waits for nothing%s%s",
					    state, why[0] ? ": " : "", why);
	else if (w->j->state == JOB_CHECKPOINTING)
		ret->summary = leaving_text(w);
	else
		ret->summary =
			arena_printf(w->arena, "it has its place%s and does not wait (%s)%s%s%s%s",
				     where_text(w), state, width_text(w), words_near(w),
				     unreachable ? ": " : "", unreachable ? why : "");
	ret->remedy = "";
}

static void explain_verdict(const struct words *w, const struct verdict *v, struct explanation *ret)
{
	ret->verdict = *v;
	ret->reason = (enum reason)v->code;
	ret->summary = words_summary(w, v);
	ret->remedy = words_remedy(w, v);
}

/* Its place is promised: it waits for victims to leave. */
static void explain_promise(const struct words *w, struct explanation *ret)
{
	const struct promise_view *p = view_promise(w->view, w->job);
	int64_t last_ms = w->facts->now_ms;
	uint32_t leaving = 0;

	for (uint32_t i = 0; i < p->victims; i++) {
		struct attempt_id id = { promise_victim(p, i) };
		const struct attempt *attempt = attempt_get(w->facts, id);

		if (attempt->state == ATTEMPT_OVER || attempt->state == ATTEMPT_FREE)
			continue;
		leaving++;
		last_ms = attempt->deadline_ms > last_ms ? attempt->deadline_ms : last_ms;
	}
	ret->verdict = (struct verdict){ .code = REASON_CAPACITY, .have = 0, .need = leaving };
	ret->reason = REASON_CAPACITY;
	if (leaving)
		ret->summary = arena_printf(
			w->arena,
			"its place is kept for it until %u job%s made room, at the latest %s",
			leaving, leaving == 1 ? " has" : "s have", words_until(w, last_ms));
	else
		ret->summary =
			"its place is kept for it and is free: it starts with the next decision";
	ret->remedy = "";
}

struct words words_make(const struct facts *facts, struct view *view, struct job_id id,
			struct arena *arena)
{
	const struct job *job = job_get(facts, id);

	return (struct words){ .facts = facts,
			       .view = view,
			       .arena = arena,
			       .job = id.v,
			       .j = job,
			       .shape = shape_get(facts, job->shape),
			       .work_most = WORK_OF_PASS };
}

bool words_reason(struct words *w, struct verdict *ret)
{
	*ret = (struct verdict){ 0 };
	w->never = w->outrun = w->undecided = false;
	if (w->j->held)
		ret->code = REASON_HOLD;
	else if (open_dependency(w))
		*ret = (struct verdict){ .code = REASON_DEPENDENCY,
					 .holder = { open_dependency(w) } };
	else if (array_keeps_back(w->view, w->job))
		*ret = array_verdict(w->facts, w->view, w->job);
	else if (!w->j->promise && job_view_get(w->view, w->job)->bucket)
		*ret = waiting_verdict(w);
	return ret->code != REASON_NONE;
}

void explain_job(const struct facts *facts, struct view *view, struct job_id id,
		 struct arena *arena, struct explanation *ret)
{
	struct words w = words_make(facts, view, id, arena);
	struct standings standings;
	struct verdict v = { 0 };

	*ret = (struct explanation){ .summary = "", .remedy = "" };
	if (job_state_is_final(w.j->state) || job_is_live(w.j)) {
		explain_done(&w, ret);
		return;
	}
	view_refresh(view, facts);
	standings_make(&standings, facts, view, arena);
	w.before = &standings;
	if (w.j->held) {
		v.code = REASON_HOLD;
		explain_verdict(&w, &v, ret);
	} else if (open_dependency(&w)) {
		v = (struct verdict){ .code = REASON_DEPENDENCY,
				      .holder = { open_dependency(&w) } };
		explain_verdict(&w, &v, ret);
	} else if (array_keeps_back(view, id.v)) {
		v = array_verdict(facts, view, id.v);
		explain_verdict(&w, &v, ret);
	} else if (w.j->promise) {
		explain_promise(&w, ret);
	} else if (job_view_get(view, id.v)->bucket) {
		v = waiting_verdict(&w);
		ret->latest_ms = w.latest_ms;
		ahead_find(&w, ret);
		explain_verdict(&w, &v, ret);
		explain_protection(&w, ret);
	} else {
		ret->summary = "what follows for it is about to be decided";
	}
	chain_make(&w, ret);
}
