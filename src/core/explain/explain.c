/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a job waits. The verdict is the decision's own: the pass runs on the view with a watch on the job, its
 * decisions are thrown away, and what it noted when the job's turn came is put into words. Only "could it ever run"
 * and "is it the promises" are asked here, of the same placement on a changed view.
 */
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/explain/words.h"
#include "core/scheduling/admit.h"

enum { LINES_MAX = 16, HOLDERS_MAX = 3 };

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
	};

	return (size_t)reason < ARRAY_SIZE(names) ? names[reason] : "unknown";
}

/* --- the verdict ---------------------------------------------------------------------------------------------- */

/* Does no node meet the shape in this respect, whatever else it has? */
static bool trait_alone_fails(const struct words *w, enum trait trait)
{
	for (uint32_t i = 0; i < w->view->space.traits_count; i++)
		if (traits_meet(&w->view->space.traits.at[i], w->shape, trait))
			return false;
	return true;
}

/* Is this wish of the shape, apart from all its others, one that no place meets? */
static bool wish_alone_fails(const struct words *w, const struct verdict *v)
{
	const enum reason code = (enum reason)v->code;
	struct shape alone = { .tasks_min = w->shape->tasks_min,
			       .tasks_max = w->shape->tasks_min,
			       .gpus = w->shape->gpus };
	struct place_request request = { .shape = &alone,
					 .tasks = alone.tasks_min,
					 .rank = RANK_NONE };

	if (code == REASON_CPU)
		alone.cpu_milli = w->shape->cpu_milli;
	else if (code == REASON_RAM)
		alone.memory_mib = w->shape->memory_mib;
	else if (code == REASON_MEMORY)
		alone.gpu_memory_mib = w->shape->gpu_memory_mib;
	else if (code == REASON_TOPOLOGY)
		alone.require = w->shape->require;
	else if (code == REASON_DRIVER || code == REASON_RESIDENCY || code == REASON_NODE_CLASS ||
		 code == REASON_MODEL)
		return trait_alone_fails(w, (enum trait)v->level);
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

/* On an idle cluster of all nodes that exist: NONE, or what forbids it for ever. */
static struct verdict ever_verdict(const struct words *w)
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
		v.have = w->shape->gpus ? v.have / w->shape->gpus : 0;
		v.need = w->shape->tasks_min;
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
					 .rank = RANK_NONE };
	struct space *space = &w->view->space;
	uint32_t mark = space_mark(space), holder = 0;

	for (uint32_t i = 0; i < w->view->promise_count && !holder; i++) {
		const struct promise_view *p = &w->view->promises.at[i];

		for (uint32_t t = 0; t < p->tasks; t++) {
			int32_t rank = space_rank(space, p->numbers.at[t]);

			if (rank != RANK_NONE)
				space_unpromise(space, (uint32_t)rank, p->numbers.at[p->tasks + t],
						p->cpu_milli, p->ram_mib);
		}
		if (place_find(space, &request, NULL, NULL, NULL) == 0)
			holder = p->job;
	}
	space_rollback(space, mark);
	return holder;
}

/* What the next pass finds when the job's turn comes. */
static bool watched_verdict(const struct words *w, struct verdict *ret)
{
	struct watch watch = { .job = w->job };
	uint32_t mark = space_mark(&w->view->space);
	struct pass pass;

	pass_begin(&pass, w->facts, w->view, UINT64_MAX, w->arena);
	pass.watch = &watch;
	pass.promises_gone = arena_new_array(w->arena, bool, w->view->promise_count + 1);
	standings_make(&pass.standings, w->facts, w->view, w->arena);
	promises_place(&pass);
	order_run(&pass);
	space_rollback(&w->view->space, mark);
	*ret = watch.verdict;
	return watch.seen;
}

static struct verdict waiting_verdict(struct words *w)
{
	struct verdict v, ever;
	uint32_t holder;

	if (!watched_verdict(w, &v))
		return (struct verdict){ 0 };
	if (v.code == REASON_QUOTA_LIMIT || v.code == REASON_GUARANTEE_ONLY ||
	    v.code == REASON_RESERVATION || v.code == REASON_WINDOW)
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

		if (job_get(w->facts, (struct job_id){ depend->job })->state != JOB_SUCCEEDED)
			return depend->job;
		row = depend->next;
	}
	return 0;
}

/* --- who is ahead ------------------------------------------------------------------------------------------------- */

/* Keeps the list sorted by job id and at most as long as there is room. */
static void ahead_insert(struct explanation *ret, uint32_t from, uint32_t job)
{
	uint32_t at = ret->ahead_listed;

	while (at > from && ret->ahead[at - 1].v > job)
		at--;
	if (at == ARRAY_SIZE(ret->ahead))
		return;
	if (ret->ahead_listed < ARRAY_SIZE(ret->ahead))
		ret->ahead_listed++;
	memmove(&ret->ahead[at + 1], &ret->ahead[at],
		(ret->ahead_listed - at - 1) * sizeof(ret->ahead[0]));
	ret->ahead[at].v = job;
}

static void bucket_ahead(const struct words *w, const struct bucket *b, uint32_t limit,
			 uint32_t from, struct explanation *ret)
{
	struct sorted_walk walk;
	uint32_t taken = 0;

	for (bool any = sorted_begin(&w->view->pool, b->jobs, &walk);
	     any && walk.id < limit && taken < ARRAY_SIZE(ret->ahead);
	     any = sorted_next(&w->view->pool, &walk), taken++)
		ahead_insert(ret, from, walk.id);
	ret->ahead_count += sorted_before(&w->view->pool, b->jobs, limit, limit);
}

static void ahead_find(const struct words *w, struct explanation *ret)
{
	uint64_t rank = job_rank(w->j), group = UINT64_MAX;
	uint32_t from = 0;
	struct sorted_walk walk;

	for (bool any =
		     sorted_begin(&w->view->pool, w->view->queues.at[w->j->queue.v].buckets, &walk);
	     any; any = sorted_next(&w->view->pool, &walk)) {
		const struct bucket *b = &w->view->buckets.at[walk.id];

		if (b->rank < rank)
			break;
		if (b->rank != group)
			from = ret->ahead_listed;
		group = b->rank;
		bucket_ahead(w, b, b->rank == rank ? w->job : UINT32_MAX, from, ret);
	}
	ret->position = ret->ahead_count + 1;
}

/* --- the chain ------------------------------------------------------------------------------------------------------- */

struct chain {
	struct explain_line *lines;
	uint32_t count;
};

static void chain_add(struct chain *chain, enum reason code, const char *text)
{
	if (chain->count < LINES_MAX)
		chain->lines[chain->count++] =
			(struct explain_line){ .code = (uint16_t)code, .text = text };
}

/* A share covers what is wanted: with less than the guarantee wanted, the guarantee is what the queue may count on. */
static void queue_line(const struct words *w, struct chain *chain)
{
	const struct queue *queue = queue_get(w->facts, w->j->queue);
	const char *name = facts_name(w->facts, queue->name), *limit = "no limit";
	const struct standing *at;
	struct standings s;

	standings_make(&s, w->facts, w->view, w->arena);
	at = &s.at[w->j->queue.v];
	if (w->j->promise) { /* its share is as large as what it uses and is promised: of no interest */
		chain_add(
			chain, REASON_NONE,
			arena_printf(
				w->arena,
				"queue \"%s\" uses %s, counting what is promised to it and not what leaves (guarantee %s)",
				name, words_share(w, at->use),
				share_text(w->arena, at->guarantee)));
		return;
	}
	if (queue->limit_share >= 0)
		limit = arena_printf(w->arena, "limit %s",
				     share_text(w->arena, queue->limit_share));
	if (at->share > at->guarantee)
		chain_add(chain, REASON_NONE,
			  arena_printf(w->arena,
				       "queue \"%s\" uses %s of its share of %s (guarantee %s, %s)",
				       name, share_text(w->arena, at->use),
				       words_share(w, at->share),
				       share_text(w->arena, at->guarantee), limit));
	else if (at->guarantee)
		chain_add(chain, REASON_NONE,
			  arena_printf(w->arena, "queue \"%s\" uses %s of its guarantee of %s (%s)",
				       name, share_text(w->arena, at->use),
				       words_share(w, at->guarantee), limit));
	else
		chain_add(chain, REASON_NONE,
			  arena_printf(w->arena, "queue \"%s\" uses %s (no guarantee, %s)", name,
				       words_share(w, at->use), limit));
}

static void order_line(const struct words *w, struct chain *chain, const struct explanation *e)
{
	if (!e->position)
		return;
	if (!e->ahead_count) {
		chain_add(chain, REASON_NONE, "it is the first that waits in its queue");
		return;
	}
	chain_add(chain, REASON_PRIORITY,
		  arena_printf(w->arena, "%u job%s ahead of it in its queue, the first is %s",
			       e->ahead_count, e->ahead_count == 1 ? " is" : "s are",
			       words_job(w, e->ahead[0].v)));
}

/* The jobs that hold most GPUs of suitable nodes, largest first, then by id. */
static void holder_lines(const struct words *w, struct chain *chain)
{
	uint32_t top[HOLDERS_MAX] = { 0 };
	int64_t held[HOLDERS_MAX] = { 0 };
	struct sorted_walk walk;

	for (uint32_t q = 1; q <= w->facts->queues.count; q++) {
		for (bool any = sorted_begin(&w->view->pool, w->view->queues.at[q].running, &walk);
		     any; any = sorted_next(&w->view->pool, &walk)) {
			int64_t gpus = w->view->jobs.at[walk.id].share / GPU_SHARE;
			uint32_t at = HOLDERS_MAX, job = walk.id;

			while (at > 0 && (gpus > held[at - 1] ||
					  (gpus == held[at - 1] && gpus && job < top[at - 1])))
				at--;
			for (uint32_t i = HOLDERS_MAX; i-- > at + 1;) {
				top[i] = top[i - 1];
				held[i] = held[i - 1];
			}
			if (at < HOLDERS_MAX) {
				top[at] = job;
				held[at] = gpus;
			}
		}
	}
	for (uint32_t i = 0; i < HOLDERS_MAX && held[i]; i++) {
		const struct job *job = job_get(w->facts, (struct job_id){ top[i] });

		chain_add(chain, REASON_NONE,
			  arena_printf(w->arena, "%s of queue \"%s\" holds %s, and %s",
				       words_job(w, top[i]),
				       facts_name(w->facts, queue_get(w->facts, job->queue)->name),
				       words_gpus(w, held[i]),
				       words_end(w, top[i], w->view->jobs.at[top[i]].end_ms)));
	}
}

/* Nodes that can't be used now, when there are any. */
static void nodes_line(const struct words *w, struct chain *chain)
{
	uint32_t count = 0, first = 0;
	const struct node *node;
	const char *reason;

	for (uint32_t rank = 0; rank < w->view->space.node_count; rank++) {
		if (space_at(&w->view->space, rank)->ready)
			continue;
		first = count++ ? first : space_at(&w->view->space, rank)->node;
	}
	if (!count)
		return;
	node = node_get(w->facts, (struct node_id){ first });
	reason = facts_text(w->facts, node->reason);
	chain_add(chain, REASON_NONE,
		  arena_printf(w->arena,
			       "%u node%s can't be used now, such as \"%s\", which is %s%s%s",
			       count, count == 1 ? "" : "s", facts_name(w->facts, node->name),
			       node_state_name(node->state), *reason ? ": " : "", reason));
}

/* GPUs of usable nodes that are set aside: they look idle, and no job gets them. */
static void aside_line(const struct words *w, struct chain *chain)
{
	uint32_t count = 0, first = 0;

	for (uint32_t rank = 0; rank < w->view->space.node_count; rank++) {
		const struct place_node *at = space_at(&w->view->space, rank);
		uint32_t mask = node_get(w->facts, (struct node_id){ at->node })->set_aside_mask;

		if (!at->ready || !mask)
			continue;
		first = count ? first : at->node;
		count += (uint32_t)__builtin_popcount(mask);
	}
	if (count)
		chain_add(
			chain, REASON_NONE,
			arena_printf(
				w->arena,
				"%s %s set aside, the first on node \"%s\"; `fairlead gpus` says why, and "
				"`fairlead gpus back NODE/INDEX` takes one back into use",
				words_gpus(w, count), count == 1 ? "is" : "are",
				facts_name(w->facts,
					   node_get(w->facts, (struct node_id){ first })->name)));
}

/* Free GPUs on nodes that do not suit the job, by what is in the way. */
static void shut_out_lines(const struct words *w, struct chain *chain)
{
	for (enum trait trait = TRAIT_MODEL; trait < TRAIT_END; trait++) {
		struct verdict v;
		uint32_t gpus = place_shut_out(&w->view->space, w->shape, trait, &v);

		if (gpus)
			chain_add(chain, (enum reason)v.code,
				  arena_printf(w->arena, "%s %s free on nodes it can't use: it %s",
					       words_gpus(w, gpus), gpus == 1 ? "is" : "are",
					       words_shut_out(w, &v)));
	}
}

static bool reason_is_of_place(enum reason reason)
{
	return reason == REASON_CAPACITY || reason == REASON_TOPOLOGY ||
	       reason == REASON_FRAGMENTATION || reason == REASON_CPU || reason == REASON_RAM ||
	       reason == REASON_RESERVATION || reason == REASON_PRIORITY;
}

static void chain_make(const struct words *w, struct explanation *ret)
{
	struct chain chain = { .lines = arena_new_array(w->arena, struct explain_line, LINES_MAX) };

	chain_add(&chain, ret->reason, ret->summary);
	queue_line(w, &chain);
	order_line(w, &chain, ret);
	if (reason_is_of_place(ret->reason) && !w->never) {
		shut_out_lines(w, &chain);
		holder_lines(w, &chain);
		nodes_line(w, &chain);
		aside_line(w, &chain);
	}
	ret->lines = chain.lines;
	ret->line_count = chain.count;
}

/* --- protection by age --------------------------------------------------------------------------------------------- */

enum { YOUNG_PASSES_MAX = 8 };

/* The youngest of the jobs that the promise would make leave; 0 = none that is protected now. */
static uint32_t youngest_victim(const struct words *w, const struct event_promise_made *promise)
{
	int64_t min_ms = w->facts->policy.min_runtime_ms, since_ms = w->facts->now_ms - min_ms;
	uint32_t youngest = 0;

	for (uint32_t i = 0; i < promise->victims_count; i++) {
		struct attempt_id id = { (uint32_t)promise->victims[i] };
		uint32_t job = attempt_get(w->facts, id)->job.v;
		const struct job_view *jv = &w->view->jobs.at[job];

		if (jv->tier == TIER_BEST_EFFORT || jv->since_ms <= since_ms)
			continue;
		youngest = job;
		since_ms = jv->since_ms;
	}
	return youngest;
}

static bool any_is_young(const struct words *w)
{
	for (uint32_t q = 1; q <= w->facts->queues.count; q++) {
		struct sorted_walk walk;

		for (bool any = sorted_begin(&w->view->pool, w->view->queues.at[q].running, &walk);
		     any; any = sorted_next(&w->view->pool, &walk)) {
			const struct job_view *jv = &w->view->jobs.at[walk.id];

			if (jv->tier != TIER_BEST_EFFORT &&
			    jv->since_ms + w->facts->policy.min_runtime_ms > w->facts->now_ms)
				return true;
		}
	}
	return false;
}

/* The running job that is safe from this one only because it is young, 0 = none: what is decided if the policy protected nobody. */
static uint32_t protected_by_age(const struct words *w)
{
	struct decisions d = { .more = true };
	struct facts copy;
	struct view *view;
	uint32_t victim = 0;

	if (!any_is_young(w))
		return 0;
	facts_freeze(w->facts, &copy);
	copy.policy.min_runtime_ms = 0;
	view = view_create(&copy);
	for (int pass = 0; pass < YOUNG_PASSES_MAX && d.more && !victim; pass++) {
		decide(&copy, view, UINT64_MAX, w->arena, &d);
		for (uint32_t i = 0; i < d.count; i++) {
			const struct event *e = &d.events[i];

			if (e->kind == EVENT_PROMISE_MADE && e->promise_made.job == w->job)
				victim = youngest_victim(w, &e->promise_made);
			apply(&copy, e);
			view_follow(view, &copy, e);
		}
	}
	view_destroy(view);
	facts_deinit(&copy);
	return victim;
}

/* When a young job stands in the way, that and its end are what there is to wait for. */
static void explain_protection(const struct words *w, struct explanation *ret)
{
	uint32_t victim;
	char duration[DURATION_TEXT_MAX];

	if (w->never || !reason_is_of_place(ret->reason) || !(victim = protected_by_age(w)))
		return;
	ret->remedy = arena_printf(
		w->arena,
		"%s may be stopped for it %s; until then it is protected, as it has not yet run for %s (the policy's min_runtime)",
		words_job(w, victim),
		words_until(w, w->view->jobs.at[victim].since_ms + w->facts->policy.min_runtime_ms),
		format_duration(w->facts->policy.min_runtime_ms, duration));
}

/* --- entrances ------------------------------------------------------------------------------------------------------------ */

static void explain_done(const struct words *w, struct explanation *ret)
{
	const char *state = job_state_name(w->j->state);

	if (job_state_is_final(w->j->state))
		ret->summary =
			arena_printf(w->arena, "it has ended (%s) and waits for nothing", state);
	else
		ret->summary =
			arena_printf(w->arena, "it has its place and does not wait (%s)", state);
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
		struct attempt_id id = { p->numbers.at[2 * p->tasks + i] };
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
			       .shape = shape_get(facts, job->shape) };
}

bool words_reason(struct words *w, struct verdict *ret)
{
	*ret = (struct verdict){ 0 };
	w->never = false;
	if (w->j->held)
		ret->code = REASON_HOLD;
	else if (open_dependency(w))
		*ret = (struct verdict){ .code = REASON_DEPENDENCY,
					 .holder = { open_dependency(w) } };
	else if (!w->j->promise && w->view->jobs.at[w->job].bucket)
		*ret = waiting_verdict(w);
	return ret->code != REASON_NONE;
}

void explain_job(const struct facts *facts, struct view *view, struct job_id id,
		 struct arena *arena, struct explanation *ret)
{
	struct words w = words_make(facts, view, id, arena);
	struct verdict v = { 0 };

	*ret = (struct explanation){ .summary = "", .remedy = "" };
	view_refresh(view, facts);
	if (job_state_is_final(w.j->state) || job_is_live(w.j)) {
		explain_done(&w, ret);
		return;
	}
	if (w.j->held) {
		v.code = REASON_HOLD;
		explain_verdict(&w, &v, ret);
	} else if (open_dependency(&w)) {
		v = (struct verdict){ .code = REASON_DEPENDENCY,
				      .holder = { open_dependency(&w) } };
		explain_verdict(&w, &v, ret);
	} else if (w.j->promise) {
		explain_promise(&w, ret);
	} else if (view->jobs.at[id.v].bucket) {
		v = waiting_verdict(&w);
		ahead_find(&w, ret);
		explain_verdict(&w, &v, ret);
		explain_protection(&w, ret);
	} else {
		ret->summary = "what follows for it is about to be decided";
	}
	chain_make(&w, ret);
}

/* --- what may happen -------------------------------------------------------------------------------------------------- */

static const char *duration_text(struct arena *arena, int64_t ms)
{
	char duration[DURATION_TEXT_MAX];

	return arena_strdup(arena, format_duration(ms, duration));
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

	return arena_printf(
		arena,
		"Standard job:%s it may be stopped for more important work of its queue or for a queue that takes back its share; %s",
		when, what);
}

/* More than a limit above it allows, whoever else runs: the first queue on the way up. */
static struct verdict over_limit(const struct words *w)
{
	int64_t need = shape_share(w->shape, w->shape->tasks_min);

	for (uint32_t id = w->j->queue.v; id;) {
		const struct queue *queue = queue_get(w->facts, (struct queue_id){ id });

		if (queue->limit_share >= 0 && need > queue->limit_share)
			return (struct verdict){ .code = REASON_QUOTA_LIMIT,
						 .at = id,
						 .have = queue->limit_share,
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
				w.never ? ". On this cluster as it is it can't start: it %s. What would let it start: %s"
					: ". As it is it can't start: it %s. What would let it start: %s",
				words_summary(&w, &v), words_remedy(&w, &v));
	}
	view_destroy(anew);
	facts_deinit(&copy);
	return text;
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
			e->checkpoint ? "goes on later from its newest checkpoint"
				      : "starts again from the beginning");
	else
		text = standard_prospect(facts, e, arena);
	return arena_printf(arena, "%s%s%s", text, limit,
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
	view_destroy(view);
	facts_deinit(&copy);
}
