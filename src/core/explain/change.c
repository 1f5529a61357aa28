/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest change that would let a job start. The changed world is a frozen copy of the facts to which the change is
 * applied, mostly as the events that would make it; the view follows the copy, the same pass as ever decides, and then the
 * view follows the facts themselves again. Nothing here reasons about places or shares: it tries, and asks.
 *
 *	1. why does it wait? Take that cause away, ask again; until nothing keeps it		-> all causes, in order
 *	2. leave out each part without which it starts all the same				-> the smallest change
 *
 * Example: job 7 is held, its queue is at its limit of 4, and all GPUs are taken by jobs 2 (of the same queue) and 3.
 *
 *	held		released
 *	quota_limit	released, limit 5
 *	capacity	released, limit 5, jobs 2 and 3 end	starts
 *	without the limit: starts, as job 2 gives it room. Without job 3: starts. Without job 2: it does not.
 *	So: releasing it and the end of job 2. Three causes, two parts.
 *
 * Few parts are searched by their number, so that not even a part of another set suffices; many by leaving out ever smaller
 * runs of them.
 */
#include "base/check.h"
#include "base/parse.h"
#include "core/explain/words.h"
#include "core/model/whatif.h"
#include "core/scheduling/admit.h"

enum {
	SUBSET_PARTS = 5, /* so many parts are searched by all their subsets */
	TRIES_LEAST = 6, /* on the largest clusters */
	TRIES_MOST = 600,
	TRIES_WORK = 400000, /* buckets and nodes looked at in all tries */
	WAITING_OF_BUCKET = 16,
	RUN_LIMIT_LEAST_MS = 60000
};
#define TRY_MEMORY ((size_t)1 << 30)

/* Facts and view with a change made. */
struct trial {
	const struct facts *facts;
	struct view *view;
	struct arena *arena; /* of the answer */
	struct arena *work; /* until it is found */
	struct arena scratch; /* of one try */
	uint32_t job;
	struct facts copy;
	struct event followed[2 * CHANGE_PARTS_MAX + 8];
	uint32_t followed_count;
	struct words words; /* about the copy */
	uint32_t tries, tries_most;
};

struct parts {
	struct change_part at[CHANGE_PARTS_MAX];
	uint32_t count;
};

/* --- making a change, and taking it back ------------------------------------------------------------------------------ */

static void trial_follow(struct trial *t, const struct event *e)
{
	CHECK(t->followed_count < ARRAY_SIZE(t->followed));
	view_follow(t->view, &t->copy, e);
	t->followed[t->followed_count++] = *e;
}

static struct event trial_event(const struct trial *t, enum event_kind kind)
{
	return event_make(kind, t->copy.now_ms, "fairlead");
}

static void trial_put(struct trial *t, struct event *e)
{
	e->seq = t->copy.seq + 1;
	apply(&t->copy, e);
	trial_follow(t, e);
}

static void put_job_ends(struct trial *t, uint32_t id)
{
	const struct job *job = job_get(&t->copy, (struct job_id){ id });
	struct event attempt = trial_event(t, EVENT_ATTEMPT_ENDED),
		     ended = trial_event(t, EVENT_JOB_ENDED);

	if (job_state_is_final(job->state))
		return;
	attempt.attempt_ended.attempt = job->attempt.v;
	if (job->attempt.v)
		trial_put(t, &attempt);
	ended.job_ended.job = id;
	ended.job_ended.state = JOB_SUCCEEDED;
	ended.job_ended.rank = -1;
	ended.job_ended.text = "";
	trial_put(t, &ended);
}

static void put_queue_limits(struct trial *t, const struct queue *queue, struct event_queue_set *e)
{
	int64_t *shares = arena_new_array(&t->scratch, int64_t, QUEUE_MODELS_MAX);

	for (uint32_t i = 0; i < QUEUE_MODELS_MAX && queue->limit_model[i].v; i++) {
		e->limit_models = arena_printf(&t->scratch, "%s%s%s", e->limit_models, i ? "," : "",
					       facts_name(&t->copy, queue->limit_model[i]));
		shares[i] = queue->limit_model_share[i];
		e->limit_model_shares_count = i + 1;
	}
	e->limit_model_shares = shares;
	e->limit_cpu_milli = queue->limit_cpu_milli;
	e->limit_ram_mib = queue->limit_ram_mib;
}

static void put_queue(struct trial *t, uint32_t id, int64_t limit_share, bool reserved,
		      enum change_kind kind)
{
	const struct queue *queue = queue_get(&t->copy, (struct queue_id){ id });
	struct event e = trial_event(t, EVENT_QUEUE_SET);

	e.queue_set.name = arena_strdup(&t->scratch, facts_name(&t->copy, queue->name));
	e.queue_set.parent =
		queue->parent.v ? arena_strdup(&t->scratch,
					       facts_name(&t->copy,
							  queue_get(&t->copy, queue->parent)->name))
				: "";
	e.queue_set.team = arena_strdup(&t->scratch, facts_name(&t->copy, queue->team));
	e.queue_set.guarantee_share = queue->guarantee_share;
	e.queue_set.limit_share = limit_share;
	e.queue_set.weight = queue->weight;
	e.queue_set.reserved = reserved;
	e.queue_set.default_limit_ms = queue->default_limit_ms;
	e.queue_set.used_gpu_ms = queue->used_gpu_ms;
	if (kind != CHANGE_CALENDAR)
		e.queue_set.calendar =
			arena_strdup(&t->scratch, facts_text(&t->copy, queue->calendar));
	if (kind != CHANGE_UNBOUND)
		put_queue_limits(t, queue, &e.queue_set);
	trial_put(t, &e);
}

static void put_wish(struct trial *t, const struct change_part *part)
{
	struct job_id id = { t->job };
	struct event sync = trial_event(t, EVENT_JOB_PRIORITY_SET);
	struct shape shape = *shape_get(&t->copy, job_get(&t->copy, id)->shape);

	if (part->kind == CHANGE_MODELS)
		memset(shape.models, 0, sizeof(shape.models));
	else if (part->kind == CHANGE_GPU_MEMORY)
		shape.gpu_memory_mib = (uint32_t)part->value;
	else if (part->kind == CHANGE_CPU)
		shape.cpu_milli = (uint32_t)part->value;
	else if (part->kind == CHANGE_RAM)
		shape.memory_mib = (uint32_t)part->value;
	else if (part->kind == CHANGE_LEVEL)
		shape.require = (uint8_t)part->value;
	else if (part->kind == CHANGE_GPUS)
		shape.gpus = (uint32_t)part->value;
	else if (part->kind == CHANGE_TASKS)
		shape.tasks_min = shape.tasks_max = (uint32_t)part->value;
	whatif_shape(&t->copy, id, &shape);
	if (part->kind == CHANGE_STANDARD)
		whatif_tier(&t->copy, id, TIER_STANDARD);
	if (part->kind == CHANGE_RUN_LIMIT)
		whatif_limit(&t->copy, id, part->value);
	sync.job_priority_set.job = t->job;
	trial_follow(t, &sync);
}

static void put_node(struct trial *t, const struct change_part *part)
{
	struct event state = trial_event(t, EVENT_NODE_STATE),
		     gpus = trial_event(t, EVENT_GPU_STATE);

	state.node_state.node = gpus.gpu_state.node = part->id;
	state.node_state.state = NODE_READY;
	state.node_state.reason = gpus.gpu_state.reason = "";
	gpus.gpu_state.mask = part->value;
	trial_put(t, part->kind == CHANGE_NODE_READY ? &state : &gpus);
}

static void part_put(struct trial *t, const struct change_part *part)
{
	const struct queue *queue;

	struct event released = trial_event(t, EVENT_JOB_RELEASED),
		     priority = trial_event(t, EVENT_JOB_PRIORITY_SET);

	switch (part->kind) {
	case CHANGE_RELEASE:
		released.job_released.job = t->job;
		trial_put(t, &released);
		return;
	case CHANGE_PRIORITY:
		priority.job_priority_set.job = t->job;
		priority.job_priority_set.priority = part->value;
		trial_put(t, &priority);
		return;
	case CHANGE_JOB_ENDS: put_job_ends(t, part->id); return;
	case CHANGE_LIMIT:
	case CHANGE_LEND:
	case CHANGE_UNBOUND:
	case CHANGE_CALENDAR:
		queue = queue_get(&t->copy, (struct queue_id){ part->id });
		put_queue(t, part->id,
			  part->kind == CHANGE_LIMIT ? part->value : queue->limit_share,
			  part->kind != CHANGE_LEND && queue->reserved, part->kind);
		return;
	case CHANGE_NODE_READY:
	case CHANGE_GPUS_BACK: put_node(t, part); return;
	case CHANGE_STANDARD:
	case CHANGE_MODELS:
	case CHANGE_GPU_MEMORY:
	case CHANGE_CPU:
	case CHANGE_RAM:
	case CHANGE_LEVEL:
	case CHANGE_TASKS:
	case CHANGE_GPUS:
	case CHANGE_RUN_LIMIT: put_wish(t, part); return;
	}
}

/* With the parts whose bit is set in `which` (those beyond 64 always). */
static void trial_begin(struct trial *t, const struct parts *parts, uint64_t which)
{
	arena_reset(&t->scratch);
	facts_freeze(t->facts, &t->copy);
	t->followed_count = 0;
	t->tries++;
	for (uint32_t i = 0; i < parts->count; i++)
		if (i >= 64 || which >> i & 1)
			part_put(t, &parts->at[i]);
	view_refresh(t->view, &t->copy);
	t->words = words_make(&t->copy, t->view, (struct job_id){ t->job }, &t->scratch);
}

/* The same events, last one first: each brings what it is about in line with the facts as they are. */
static void trial_end(struct trial *t)
{
	while (t->followed_count)
		view_follow(t->view, t->facts, &t->followed[--t->followed_count]);
	view_refresh(t->view, t->facts);
	facts_deinit(&t->copy);
}

static bool trial_is_spent(const struct trial *t)
{
	return t->tries >= t->tries_most;
}

static bool starts_with(struct trial *t, const struct parts *parts, uint64_t which)
{
	struct verdict v;
	bool starts;

	if (trial_is_spent(t))
		return false;
	trial_begin(t, parts, which);
	starts = !words_reason(&t->words, &v);
	trial_end(t);
	return starts;
}

/* --- what takes a cause away --------------------------------------------------------------------------------------------- */

/* One part of a kind about one thing: a later figure replaces the earlier. False: it was there already. */
static bool part_add(struct parts *parts, enum change_kind kind, uint32_t id, int64_t value)
{
	uint32_t at = 0;
	bool same;

	while (at < parts->count && (parts->at[at].kind != kind || parts->at[at].id != id))
		at++;
	if (at == CHANGE_PARTS_MAX)
		return false;
	same = at < parts->count && parts->at[at].value == value;
	parts->at[at] = (struct change_part){ .kind = kind, .id = id, .value = value };
	parts->count += at == parts->count;
	return !same;
}

static bool answer_limit(struct trial *t, const struct verdict *v, struct parts *parts)
{
	bool any = false;

	if (v->level)
		return part_add(parts, CHANGE_UNBOUND, v->at, 0);
	if (v->at)
		return part_add(parts, CHANGE_LIMIT, v->at,
				queue_get(&t->copy, (struct queue_id){ v->at })->limit_share +
					v->need - v->have);
	for (uint32_t q = 1; q <= t->copy.queues.count; q++) {
		const struct queue *queue = queue_get(&t->copy, (struct queue_id){ q });

		if (queue->reserved && !queue->removed)
			any |= part_add(parts, CHANGE_LEND, q, 0);
	}
	return any;
}

/* The largest figure from `least` up to `most` with which the shape fits on the idle cluster; -1 = none does. */
static int64_t most_that_fits(const struct words *w, struct shape *shape, uint32_t *field,
			      int64_t least, int64_t most)
{
	int64_t best = -1;

	while (least <= most) {
		int64_t middle = least + (most - least) / 2;

		*field = (uint32_t)middle;
		if (words_fits_idle(w, shape, shape->tasks_min)) {
			best = middle;
			least = middle + 1;
		} else {
			most = middle - 1;
		}
	}
	return best;
}

static uint8_t level_wider(const struct facts *f, uint8_t level)
{
	if (level == LEVEL_ISLAND)
		return LEVEL_NODE;
	return level == LEVEL_NODE ? (uint8_t)f->level_count : (uint8_t)(level - 1);
}

static bool answer_level(struct trial *t, struct parts *parts)
{
	struct shape shape = *t->words.shape;

	do
		shape.require = level_wider(&t->copy, shape.require);
	while (shape.require && !words_fits_idle(&t->words, &shape, shape.tasks_min));
	return part_add(parts, CHANGE_LEVEL, 0, shape.require);
}

/* Only its size, and the models: other wishes have their turn. */
static struct shape shape_bare(const struct shape *shape)
{
	struct shape bare = *shape;

	bare.gpu_memory_mib = bare.cpu_milli = bare.memory_mib = 0;
	bare.require = 0;
	return bare;
}

/* Nothing that alone is too much: fewer tasks, else fewer GPUs per task, else less of everything. */
static bool answer_size(struct trial *t, struct parts *parts)
{
	static const enum change_kind all[] = { CHANGE_MODELS, CHANGE_GPU_MEMORY, CHANGE_CPU,
						CHANGE_RAM, CHANGE_LEVEL };
	const struct words *w = &t->words;
	struct shape shape = *w->shape, bare = shape_bare(&shape);
	uint32_t tasks = shape.tasks_min;
	int64_t most = -1;
	bool any = false;

	if (!words_fits_idle(w, &bare, tasks))
		shape = bare;
	most = most_that_fits(w, &shape, &shape.tasks_min, 1, (int64_t)tasks - 1);
	if (most > 0)
		return part_add(parts, CHANGE_TASKS, 0, most);
	shape.tasks_min = tasks;
	most = most_that_fits(w, &shape, &shape.gpus, 1, (int64_t)shape.gpus - 1);
	if (most > 0)
		return part_add(parts, CHANGE_GPUS, 0, most);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		any = part_add(parts, all[i], 0, 0) || any;
	return any;
}

/* The same, less than it is now; where another wish is too much as well, without that one: it has its turn later. */
static int64_t most_of_one(struct trial *t, struct shape *shape, uint32_t *field)
{
	int64_t now = *field, most = most_that_fits(&t->words, shape, field, 0, now - 1);

	if (most < 0) {
		shape->require = 0;
		most = most_that_fits(&t->words, shape, field, 0, now - 1);
	}
	if (most < 0) {
		uint32_t tasks = shape->tasks_min, gpus = shape->gpus, cpu = shape->cpu_milli,
			 ram = shape->memory_mib;
		bool is_cpu = field == &shape->cpu_milli;

		*shape = (struct shape){ .tasks_min = tasks, .tasks_max = tasks, .gpus = gpus };
		shape->cpu_milli = is_cpu ? cpu : 0;
		shape->memory_mib = is_cpu ? 0 : ram;
		most = most_that_fits(&t->words, shape, field, 0, now - 1);
	}
	return most > 0 ? most : 0;
}

static bool answer_never(struct trial *t, const struct verdict *v, struct parts *parts)
{
	struct shape shape = *t->words.shape;

	if (v->code == REASON_MODEL)
		return part_add(parts, CHANGE_MODELS, 0, 0);
	if (v->code == REASON_MEMORY)
		return part_add(parts, CHANGE_GPU_MEMORY, 0, v->have);
	if (v->code == REASON_CPU)
		return part_add(parts, CHANGE_CPU, 0, most_of_one(t, &shape, &shape.cpu_milli));
	if (v->code == REASON_RAM)
		return part_add(parts, CHANGE_RAM, 0, most_of_one(t, &shape, &shape.memory_mib));
	if (v->code == REASON_TOPOLOGY)
		return answer_level(t, parts);
	return answer_size(t, parts);
}

/* The first that wait in each bucket: they may take what comes free. */
static void waiting_list(const struct trial *t, struct parts *ret)
{
	const struct view *view = t->view;
	struct sorted_walk buckets, jobs;

	for (uint32_t q = 1; q <= t->copy.queues.count; q++)
		for (bool any = sorted_begin(&view->pool, view->queues.at[q].buckets, &buckets);
		     any; any = sorted_next(&view->pool, &buckets)) {
			uint32_t listed = 0;

			for (bool job = sorted_begin(&view->pool, view->buckets.at[buckets.id].jobs,
						     &jobs);
			     job && listed++ < WAITING_OF_BUCKET &&
			     ret->count < CHANGE_PARTS_MAX - CAUSES_MAX;
			     job = sorted_next(&view->pool, &jobs))
				if (jobs.id != t->job)
					(void)part_add(ret, CHANGE_JOB_ENDS, jobs.id, 0);
		}
}

/* All that could come free, in the order in which it is expected: running jobs, then nodes and GPUs not in use; then those
 * who would take it. */
static void frees_list(const struct trial *t, struct parts *ret)
{
	const struct view *view = t->view;
	struct sorted_walk walk;

	ret->count = 0;
	for (bool any = sorted_begin(&view->pool, view->ends, &walk);
	     any && ret->count < CHANGE_PARTS_MAX / 2; any = sorted_next(&view->pool, &walk))
		(void)part_add(ret, CHANGE_JOB_ENDS, walk.id, 0);
	for (uint32_t rank = 0; rank < view->space.node_count; rank++) {
		uint32_t id = space_at(&view->space, rank)->node;
		const struct node *node = node_get(&t->copy, (struct node_id){ id });

		if (node->state != NODE_READY && node->state != NODE_GONE)
			(void)part_add(ret, CHANGE_NODE_READY, id, 0);
		if (node->set_aside_mask && node->state == NODE_READY)
			(void)part_add(ret, CHANGE_GPUS_BACK, id, node->set_aside_mask);
	}
	waiting_list(t, ret);
}

/* The first 1, 2, 4 ... of them, until they are enough. */
static bool answer_place(struct trial *t, struct parts *parts)
{
	struct parts *frees = arena_new(t->work, struct parts),
		     *tried = arena_new(t->work, struct parts);
	uint32_t step = 1;

	frees_list(t, frees);
	trial_end(t);
	for (uint32_t count = step;; count = step) {
		count = count < frees->count ? count : frees->count;
		*tried = *parts;
		for (uint32_t i = 0; i < count; i++)
			(void)part_add(tried, frees->at[i].kind, frees->at[i].id,
				       frees->at[i].value);
		if (starts_with(t, tried, UINT64_MAX))
			break;
		if (count == frees->count || trial_is_spent(t))
			return false;
		step *= 2;
	}
	*parts = *tried;
	return true;
}

/* The longest run-time limit with which it may start, to the minute; 0 = none. */
static int64_t run_limit_search(struct trial *t, const struct parts *parts)
{
	int64_t least = 1, best = 0,
		most = job_expected_ms(&t->copy, t->words.j) / RUN_LIMIT_LEAST_MS;

	trial_end(t);
	while (least <= most) {
		int64_t middle = least + (most - least) / 2;
		struct parts tried = *parts;

		(void)part_add(&tried, CHANGE_RUN_LIMIT, 0, middle * RUN_LIMIT_LEAST_MS);
		if (starts_with(t, &tried, UINT64_MAX)) {
			best = middle;
			least = middle + 1;
		} else {
			most = middle - 1;
		}
	}
	return best * RUN_LIMIT_LEAST_MS;
}

/* It is out of the way in time; else the holder must go. */
static bool answer_reservation(struct trial *t, const struct verdict *v, struct parts *parts)
{
	int64_t limit_ms = run_limit_search(t, parts);

	if (limit_ms)
		return part_add(parts, CHANGE_RUN_LIMIT, 0, limit_ms);
	return v->holder.v && part_add(parts, CHANGE_JOB_ENDS, v->holder.v, 0);
}

/* It ends before the window does; where that is closed, no calendar of its queue or of those above it stands. */
static bool answer_window(struct trial *t, const struct verdict *v, struct parts *parts)
{
	int64_t limit_ms = run_limit_search(t, parts);
	bool done = false;

	if (limit_ms)
		return part_add(parts, CHANGE_RUN_LIMIT, 0, limit_ms);
	for (uint32_t id = v->at; id; id = queue_get(t->facts, (struct queue_id){ id })->parent.v)
		if (queue_get(t->facts, (struct queue_id){ id })->calendar.v)
			done = part_add(parts, CHANGE_CALENDAR, id, 0) || done;
	return done;
}

static bool answer_priority(struct trial *t, const struct verdict *v, struct parts *parts)
{
	const struct job *holder = job_get(&t->copy, v->holder), *job = t->words.j;

	if (holder->queue.v == job->queue.v && holder->tier == job->tier &&
	    holder->priority < INT32_MAX &&
	    part_add(parts, CHANGE_PRIORITY, 0, holder->priority + 1))
		return true;
	return part_add(parts, CHANGE_JOB_ENDS, v->holder.v, 0);
}

/* Adds what takes the cause away; the trial is over then. False: nothing is known that would. */
static bool cause_answer(struct trial *t, const struct verdict *v, struct parts *parts)
{
	bool done, never = t->words.never;

	if (v->code == REASON_RESERVATION)
		return answer_reservation(t, v, parts);
	if (v->code == REASON_WINDOW)
		return answer_window(t, v, parts);
	if (!never &&
	    (v->code == REASON_CAPACITY || v->code == REASON_FRAGMENTATION ||
	     v->code == REASON_TOPOLOGY || v->code == REASON_CPU || v->code == REASON_RAM))
		return answer_place(t, parts);
	if (v->code == REASON_HOLD)
		done = part_add(parts, CHANGE_RELEASE, 0, 0);
	else if (v->code == REASON_DEPENDENCY)
		done = part_add(parts, CHANGE_JOB_ENDS, v->holder.v, 0);
	else if (v->code == REASON_QUOTA_LIMIT)
		done = answer_limit(t, v, parts);
	else if (v->code == REASON_GUARANTEE_ONLY)
		done = part_add(parts, CHANGE_STANDARD, 0, 0);
	else if (v->code == REASON_PRIORITY)
		done = answer_priority(t, v, parts);
	else
		done = never && answer_never(t, v, parts);
	trial_end(t);
	return done;
}

/* --- the smallest --------------------------------------------------------------------------------------------------------- */

static void parts_keep(struct parts *parts, uint64_t which)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < parts->count; i++)
		if (i >= 64 || which >> i & 1)
			parts->at[kept++] = parts->at[i];
	parts->count = kept;
}

/* All subsets, by their number of parts. */
static void subsets_search(struct trial *t, struct parts *parts)
{
	for (int size = 1; size < (int)parts->count; size++) {
		for (uint64_t which = 1; which < UINT64_C(1) << parts->count; which++) {
			if (__builtin_popcountll(which) == size && starts_with(t, parts, which)) {
				parts_keep(parts, which);
				return;
			}
		}
	}
}

/* Leaves out runs of `run` parts, the last ones first. True when any was left out. */
static bool runs_leave_out(struct trial *t, struct parts *parts, uint32_t run)
{
	struct parts *without = arena_new(t->work, struct parts);
	bool any = false;

	for (uint32_t end = parts->count; end > 0; end -= end < run ? end : run) {
		uint32_t first = end < run ? 0 : end - run;

		*without = *parts;
		memmove(&without->at[first], &without->at[end],
			(parts->count - end) * sizeof(without->at[0]));
		without->count -= end - first;
		if (without->count && starts_with(t, without, UINT64_MAX)) {
			*parts = *without;
			any = true;
		}
	}
	return any;
}

static void parts_minimise(struct trial *t, struct parts *parts)
{
	for (uint32_t run = parts->count / 2; parts->count > SUBSET_PARTS && run > 0;)
		if (!runs_leave_out(t, parts, run))
			run = run == 1 ? 0 : (run + 1) / 2;
	if (parts->count <= SUBSET_PARTS)
		subsets_search(t, parts);
}

/* --- in words ---------------------------------------------------------------------------------------------------------------- */

static const char *duration_text(struct arena *arena, int64_t ms)
{
	char text[DURATION_TEXT_MAX];

	return arena_strdup(arena, format_duration(ms, text));
}

static const char *size_text(struct arena *arena, int64_t mib)
{
	char text[DURATION_TEXT_MAX];

	return arena_strdup(arena, format_size_mib(mib, text));
}

static const char *node_text(const struct words *w, uint32_t id)
{
	return facts_name(w->facts, node_get(w->facts, (struct node_id){ id })->name);
}

static const char *queue_text(const struct words *w, uint32_t id)
{
	return facts_name(w->facts, queue_get(w->facts, (struct queue_id){ id })->name);
}

static const char *job_ends_text(const struct words *w, uint32_t id)
{
	for (uint32_t row = w->j->depends; row;) {
		const struct depend *depend = table_get(&w->facts->depends, row);

		if (depend->job == id)
			return arena_printf(w->arena, "the success of %s", words_job(w, id));
		row = depend->next;
	}
	return arena_printf(w->arena, "the end of %s", words_job(w, id));
}

static const char *part_text(const struct words *w, const struct change_part *part)
{
	struct arena *a = w->arena;
	long long value = (long long)part->value;

	switch (part->kind) {
	case CHANGE_RELEASE: return arena_printf(a, "its release (`fairlead release %u`)", w->job);
	case CHANGE_JOB_ENDS: return job_ends_text(w, part->id);
	case CHANGE_LIMIT:
		return arena_printf(a, "a limit of %s for queue \"%s\"",
				    words_share(w, part->value), queue_text(w, part->id));
	case CHANGE_LEND:
		return arena_printf(a, "queue \"%s\" lending its reserved guarantee",
				    queue_text(w, part->id));
	case CHANGE_UNBOUND:
		return arena_printf(a,
				    "queue \"%s\" without limits of models, processors and memory",
				    queue_text(w, part->id));
	case CHANGE_CALENDAR:
		return arena_printf(a, "queue \"%s\" without its calendar",
				    queue_text(w, part->id));
	case CHANGE_STANDARD: return "tier standard instead of critical";
	case CHANGE_NODE_READY:
		return arena_printf(a, "node \"%s\" being ready", node_text(w, part->id));
	case CHANGE_GPUS_BACK:
		return arena_printf(a, "%s of node \"%s\" taken back into use",
				    words_gpus(w, __builtin_popcountll((uint64_t)part->value)),
				    node_text(w, part->id));
	case CHANGE_MODELS: return "accepting any model of GPU";
	case CHANGE_GPU_MEMORY:
		return part->value ? arena_printf(a, "asking for at most %s of GPU memory",
						  size_text(a, part->value))
				   : "asking for no GPU memory in particular";
	case CHANGE_CPU:
		return arena_printf(a, "asking for at most %lld.%03lld processors per task",
				    value / 1000, value % 1000);
	case CHANGE_RAM:
		return arena_printf(a, "asking for at most %s of memory per task",
				    part->value ? size_text(a, part->value) : "0");
	case CHANGE_LEVEL:
		return part->value ? arena_printf(a, "requiring one %s only",
						  words_level(w, (uint8_t)part->value))
				   : "requiring no level of the topology";
	case CHANGE_TASKS:
		return arena_printf(a, "asking for %lld task%s", value, value == 1 ? "" : "s");
	case CHANGE_GPUS: return arena_printf(a, "asking for %s per task", words_gpus(w, value));
	case CHANGE_RUN_LIMIT:
		return arena_printf(a, "declaring a run-time limit of %s",
				    duration_text(a, part->value));
	case CHANGE_PRIORITY: return arena_printf(a, "priority %lld", value);
	}
	return "";
}

static void change_tell(struct trial *t, const struct parts *parts, struct explain_change *ret)
{
	struct words w = words_make(t->facts, t->view, (struct job_id){ t->job }, t->arena);
	struct change_part *told = arena_array(t->arena, parts->count + 1, sizeof(*told));
	const char *text = "";

	for (uint32_t i = 0; i < parts->count; i++) {
		told[i] = parts->at[i];
		told[i].text = part_text(&w, &told[i]);
		text = arena_printf(t->arena, "%s%s%s", text,
				    i == 0                 ? ""
				    : i + 1 < parts->count ? ", "
							   : " and ",
				    told[i].text);
	}
	ret->parts = told;
	ret->part_count = parts->count;
	ret->text = text;
}

/* --- entrance ----------------------------------------------------------------------------------------------------------------- */

static bool reason_is_of_room(uint16_t code)
{
	return code == REASON_CAPACITY || code == REASON_FRAGMENTATION || code == REASON_TOPOLOGY ||
	       code == REASON_CPU || code == REASON_RAM || code == REASON_RESERVATION;
}

static void cause_note(struct trial *t, const struct verdict *v, struct explain_change *ret)
{
	/* What is still lacking of a place is the same cause once more. */
	for (uint32_t i = 0; i < ret->cause_count; i++)
		if (ret->causes[i].code == v->code && reason_is_of_room(v->code))
			return;
	ret->causes[ret->cause_count++] = (struct explain_line){
		.code = v->code, .text = arena_strdup(t->arena, words_summary(&t->words, v))
	};
}

/* True when the parts let it start. */
static bool causes_find(struct trial *t, struct parts *parts, struct explain_change *ret)
{
	for (uint32_t round = 0; round < CAUSES_MAX && !trial_is_spent(t); round++) {
		struct verdict v;

		trial_begin(t, parts, UINT64_MAX);
		if (!words_reason(&t->words, &v)) {
			trial_end(t);
			return true;
		}
		cause_note(t, &v, ret);
		if (!cause_answer(t, &v, parts))
			return false;
	}
	return false;
}

void explain_change(const struct facts *facts, struct view *view, struct job_id id,
		    struct arena *arena, struct explain_change *ret)
{
	const struct job *job = job_get(facts, id);
	struct arena work;
	struct trial *t;
	struct parts *parts;
	uint32_t size = view->buckets_used + view->space.node_count / 8 + 1;

	*ret = (struct explain_change){ .text = "" };
	if (job_state_is_final(job->state) || job_is_live(job) || job->promise)
		return;
	view_refresh(view, facts);
	arena_init(&work, TRY_MEMORY);
	t = arena_new(&work, struct trial);
	parts = arena_new(&work, struct parts);
	t->facts = facts;
	t->view = view;
	t->arena = arena;
	t->work = &work;
	t->job = id.v;
	t->tries_most = TRIES_WORK / size < TRIES_LEAST  ? TRIES_LEAST
			: TRIES_WORK / size > TRIES_MOST ? TRIES_MOST
							 : TRIES_WORK / size;
	arena_init(&t->scratch, TRY_MEMORY);
	if (causes_find(t, parts, ret) && ret->cause_count) {
		parts_minimise(t, parts);
		if (!trial_is_spent(t))
			change_tell(t, parts, ret);
	}
	arena_deinit(&t->scratch);
	arena_deinit(&work);
}
