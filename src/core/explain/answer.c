/* SPDX-License-Identifier: Apache-2.0 */
/* What takes a cause away: for each reason the part of a change that it calls for. */
#include "core/explain/trial.h"
#include "core/placement/parts.h"
#include "core/rearranging/layouts.h"
#include "core/scheduling/queues/bounds.h"
#include "core/scheduling/queues/spend.h"

enum {
	WAITING_OF_BUCKET = 16,
	RUN_LIMIT_LEAST_MS = 60000,
	PRIORITY_MOST = 1000000,
	MONEY_STEP_MICRO = 10000
};

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

static void part_remove(struct parts *parts, enum change_kind kind)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < parts->count; i++)
		if (parts->at[i].kind != kind)
			parts->at[kept++] = parts->at[i];
	parts->count = kept;
}

static bool answer_limit(struct trial *t, const struct verdict *v, struct parts *parts)
{
	bool any = false;

	if (v->level == BOUND_USER)
		return part_add(parts, CHANGE_USERS, v->at, 0);
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
static int64_t most_that_fits(const struct words *w, struct shape *shape, enum change_kind kind,
			      uint32_t role, int64_t least, int64_t most)
{
	int64_t best = -1;

	while (least <= most) {
		int64_t middle = least + (most - least) / 2;

		shape_number_set(shape, kind, role, (uint32_t)middle);
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

	bare.gpu_memory_mib = 0;
	shape_number_set(&bare, CHANGE_CPU, 0, 0);
	shape_number_set(&bare, CHANGE_RAM, 0, 0);
	bare.require = 0;
	bare.apart = 0;
	bare.align = ALIGN_NONE;
	return bare;
}

/* Fewer tasks, else fewer GPUs per task: of this role (from 1 on), or of all tasks. */
static bool answer_fewer(struct trial *t, const struct shape *shape, uint32_t role,
			 struct parts *parts)
{
	static const enum change_kind kinds[] = { CHANGE_TASKS, CHANGE_GPUS };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct shape tried = *shape;
		int64_t now = *shape_number(&tried, kinds[i], role),
			most = most_that_fits(&t->words, &tried, kinds[i], role, 1, now - 1);

		if (most > 0)
			return part_add(parts, kinds[i], role, most);
	}
	return false;
}

/* Nothing that alone is too much: fewer tasks, else fewer GPUs per task, else less of everything. */
static bool answer_size(struct trial *t, uint32_t role, struct parts *parts)
{
	static const enum change_kind all[] = { CHANGE_MODELS, CHANGE_GPU_MEMORY, CHANGE_CPU,
						CHANGE_RAM, CHANGE_LEVEL };
	const struct words *w = &t->words;
	struct shape shape = *w->shape, bare = shape_bare(&shape);
	bool any = false;

	if (!words_fits_idle(w, &bare, shape.tasks_min))
		shape = bare;
	if ((role || !shape.role_count) && answer_fewer(t, &shape, role, parts))
		return true;
	for (uint32_t i = shape.role_count; i > 0; i--)
		if (answer_fewer(t, &shape, i, parts))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		any = part_add(parts, all[i], 0, 0) || any;
	return any;
}

/* The same, less than it is now; where another wish is too much as well, without that one: it has its turn later. */
static int64_t most_of_one(struct trial *t, enum change_kind kind, uint32_t role)
{
	struct shape shape = *t->words.shape, alone = shape_sizes(&shape);
	int64_t now = *shape_number(&shape, kind, role),
		most = most_that_fits(&t->words, &shape, kind, role, 0, now - 1);

	if (most < 0) {
		shape.require = 0;
		most = most_that_fits(&t->words, &shape, kind, role, 0, now - 1);
	}
	if (most < 0) {
		if (kind == CHANGE_CPU)
			shape_cpus_copy(&alone, t->words.shape);
		else
			shape_memory_copy(&alone, t->words.shape);
		most = most_that_fits(&t->words, &alone, kind, role, 0, now - 1);
	}
	return most > 0 ? most : 0;
}

/* A newest driver or a highest capability there is will do; other traits are asked for or not. */
static bool answer_trait(struct trial *t, const struct verdict *v, struct parts *parts)
{
	bool figure = v->level == TRAIT_DRIVER || v->level == TRAIT_CUDA ||
		      v->level == TRAIT_CAPABILITY || v->level == TRAIT_SPEED;

	if (v->level == TRAIT_TAINT)
		return v->at && !t->words.shape->tolerates[SHAPE_LABELS_MAX - 1].v &&
		       part_add(parts, CHANGE_TOLERATE, v->at, 0);
	return part_add(parts, CHANGE_TRAIT, v->level, figure ? v->have : 0);
}

static bool answer_never(struct trial *t, const struct verdict *v, struct parts *parts)
{
	if (v->code == REASON_DRIVER || v->code == REASON_RESIDENCY ||
	    v->code == REASON_NODE_CLASS || v->code == REASON_SPOT ||
	    (v->code == REASON_MODEL && v->level > TRAIT_MODEL))
		return answer_trait(t, v, parts);
	if (v->code == REASON_MODEL)
		return part_add(parts, CHANGE_MODELS, 0, 0);
	if (v->code == REASON_MEMORY)
		return part_add(parts, CHANGE_GPU_MEMORY, 0, v->have);
	if (v->code == REASON_CPU)
		return part_add(parts, CHANGE_CPU, v->role, most_of_one(t, CHANGE_CPU, v->role));
	if (v->code == REASON_RAM)
		return part_add(parts, CHANGE_RAM, v->role, most_of_one(t, CHANGE_RAM, v->role));
	if (v->code == REASON_TOPOLOGY)
		return answer_level(t, parts);
	if (v->code == REASON_ALIGNMENT)
		return part_add(parts, CHANGE_ALIGN, 0, 0);
	if (v->code == REASON_SPREAD)
		return part_add(parts, CHANGE_SPREAD, 0, 0);
	return answer_size(t, v->role, parts);
}

/* All that could come free, in the order in which it is expected: running jobs, then nodes and GPUs not in use. */
static void frees_list(const struct trial *t, struct parts *ret)
{
	const struct view *view = t->view;
	struct sorted_walk walk;

	ret->count = 0;
	for (uint32_t row = 1; row <= t->facts->bookings.count; row++)
		if (booking_get(t->facts, row)->name.v)
			(void)part_add(ret, CHANGE_BOOKING, row, 0);
	for (bool any = sorted_begin(&view->pool, view->ends, &walk);
	     any && ret->count < CHANGE_PARTS_MAX / 2; any = sorted_next(&view->pool, &walk))
		(void)part_add(ret, CHANGE_JOB_ENDS, walk.id, 0);
	for (uint32_t rank = 0; rank < view->space.node_count; rank++) {
		uint32_t id = space_at(&view->space, rank)->node;
		const struct node *node = node_get(&t->copy, (struct node_id){ id });

		if (ret->count >= CHANGE_PARTS_MAX - CAUSES_MAX)
			return;
		if (node->state != NODE_READY && node->state != NODE_GONE)
			(void)part_add(ret, CHANGE_NODE_READY, id, 0);
		else if (node_has_window(node))
			(void)part_add(ret, CHANGE_MAINTENANCE, id, 0);
		if (node->set_aside_mask && node->state == NODE_READY)
			(void)part_add(ret, CHANGE_GPUS_BACK, id, node->set_aside_mask);
	}
}

/* Jobs of other ranks and queues that wait, the first ones of each bucket: they may take what comes free. */
static void waiting_list(const struct trial *t, struct parts *ret)
{
	const struct view *view = t->view;
	struct line_walk buckets;
	struct sorted_walk jobs;

	ret->count = 0;
	for (uint32_t q = 1; q <= t->copy.queues.count; q++)
		for (bool any = line_begin(&view->queues.at[q].line, &buckets); any;
		     any = line_next(&buckets)) {
			const struct bucket *b = &view->buckets.at[buckets.at->bucket];
			uint32_t listed = 0;

			for (bool job = sorted_begin(&view->pool, b->jobs, &jobs);
			     job && listed++ < WAITING_OF_BUCKET;
			     job = sorted_next(&view->pool, &jobs)) {
				if (ret->count >= CHANGE_PARTS_MAX - 2 * CAUSES_MAX)
					return;
				if (jobs.id != t->job)
					(void)part_add(ret, CHANGE_JOB_ENDS, jobs.id, 0);
			}
		}
}

/* The first 1, 2, 4 ... of the list, until they are enough. */
static bool answer_list(struct trial *t, struct parts *parts, const struct parts *list, bool alone)
{
	struct parts *tried = arena_new(t->work_memory, struct parts);

	for (uint32_t step = 1;; step *= 2) {
		uint32_t count = step < list->count ? step : list->count;

		*tried = *parts;
		for (uint32_t i = 0; i < count; i++)
			(void)part_add(tried, list->at[i].kind, list->at[i].id, list->at[i].value);
		if (alone ? starts_alone_with(t, tried) : starts_with(t, tried, UINT64_MAX))
			break;
		if (count == list->count || trial_is_spent(t))
			return false;
	}
	*parts = *tried;
	return true;
}

/* Ends of jobs from the part `first` on, each without which it starts all the same. */
static void ends_leave_out(struct trial *t, struct parts *parts, uint32_t first)
{
	struct parts *without = arena_new(t->work_memory, struct parts);

	for (uint32_t at = parts->count; at-- > first && !trial_is_spent(t);) {
		if (parts->at[at].kind != CHANGE_JOB_ENDS)
			continue;
		*without = *parts;
		memmove(&without->at[at], &without->at[at + 1],
			(parts->count - at - 1) * sizeof(without->at[0]));
		without->count--;
		if (starts_alone_with(t, without))
			*parts = *without;
	}
}

/* Enough room for it alone; who comes before it and would take that is a cause of its own. */
static bool answer_place(struct trial *t, struct parts *parts)
{
	struct parts *frees = arena_new(t->work_memory, struct parts),
		     *lifted = arena_new(t->work_memory, struct parts);
	bool marked = shape_is_marked(t->words.shape);

	frees_list(t, frees);
	trial_end(t);
	if (!marked)
		return answer_list(t, parts, frees, true);
	/* From whom it keeps away, and who from it, is another such cause. */
	*lifted = *parts;
	marked = part_add(lifted, CHANGE_APART, 0, 0);
	if (!answer_list(t, lifted, frees, true))
		return false;
	if (marked) {
		ends_leave_out(t, lifted, parts->count);
		part_remove(lifted, CHANGE_APART);
	}
	*parts = *lifted;
	return true;
}

/* Nothing of the GPU is held or promised, whether it is cut or whole. */
static bool gpu_is_idle(const struct space *space, uint32_t rank, uint32_t gpu)
{
	const struct place_node *node = space_at(space, rank);
	const struct gpu_parts *parts;

	if (node->usable & ~node->blocked & node->sliced & UINT32_C(1) << gpu) {
		parts = parts_of(space, rank, gpu);
		return !parts->held.count && !parts->promised.count;
	}
	return place_node_free(node) >> gpu & 1;
}

/* GPUs of a node that only people cut, for so many slices of the wish; how many are lacking still. */
static int64_t node_cut(const struct trial *t, uint32_t rank, int64_t lacks, struct parts *parts)
{
	const struct space *space = &t->view->space;
	const struct place_node *at = space_at(space, rank);
	const struct node *node = node_get(&t->copy, (struct node_id){ at->node });
	const struct geometry *geometry =
		geometry_of(facts_name(&t->copy, node->model), node->gpu_memory_mib);

	if (!at->ready || !node->simulated || node->partitioning == PARTITIONING_AUTO ||
	    !geometry || !space_node_suits(space, rank, t->words.shape))
		return lacks;
	for (uint32_t gpu = 0; gpu < node->gpu_count && lacks > 0; gpu++) {
		struct slice_demand demand = { .wish = t->words.shape->slice,
					       .tasks = (uint64_t)lacks };
		uint32_t layout =
			gpu_is_idle(space, rank, gpu) ? layout_choose(geometry, &demand, 1) : 0;

		if (!layout || layout == node->layout[gpu])
			continue;
		if (parts->count >= CHANGE_PARTS_MAX - CAUSES_MAX)
			return lacks;
		(void)part_add(parts, CHANGE_SLICES, cut_at(at->node, gpu), layout);
		lacks -= (int64_t)layout_serves(geometry, layout, &demand);
	}
	return lacks;
}

/* Idle GPUs are cut, where people do that; else jobs end that have such slices. */
static bool answer_slices(struct trial *t, const struct verdict *v, struct parts *parts)
{
	int64_t lacks = v->need - v->have;
	uint32_t before = parts->count;

	for (uint32_t rank = 0; rank < t->view->space.node_count && lacks > 0; rank++)
		lacks = node_cut(t, rank, lacks, parts);
	if (lacks > 0) {
		parts->count = before;
		return answer_place(t, parts);
	}
	trial_end(t);
	return parts->count > before;
}

/* One above all that wait in its queue with its tier; its own where none is as high. */
static int64_t priority_above(const struct trial *t)
{
	const struct job *job = t->words.j;
	struct line_walk walk;

	for (bool any = line_begin(&t->view->queues.at[job->queue.v].line, &walk); any;
	     any = line_next(&walk)) {
		const struct bucket *b = &t->view->buckets.at[walk.at->bucket];
		int64_t priority = (int32_t)((uint32_t)b->rank ^ UINT32_C(0x80000000));

		if (b->rank >> 32 != job->tier || b->rank < job_rank(job))
			continue;
		if (priority == job->priority && sorted_size(&t->view->pool, b->jobs) == 1 &&
		    job_view_get(t->view, t->job)->bucket == walk.at->bucket)
			continue; /* itself */
		return priority < PRIORITY_MOST ? priority + 1 : priority;
	}
	return job->priority;
}

/* Others would take its place: it comes before those of its queue; if that is not enough, the others leave the queue. */
static bool answer_outrun(struct trial *t, struct parts *parts)
{
	struct parts *waiting = arena_new(t->work_memory, struct parts);
	int64_t above = priority_above(t);
	bool higher = above > t->words.j->priority;

	waiting_list(t, waiting);
	trial_end(t);
	if (higher)
		return part_add(parts, CHANGE_PRIORITY, 0, above);
	return answer_list(t, parts, waiting, false);
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

/* It ends before the maintenance, or the reservation, begins; else that is called off, of all its nodes. */
static bool answer_maintenance(struct trial *t, const struct verdict *v, struct parts *parts)
{
	int64_t limit_ms = run_limit_search(t, parts);
	bool done = false;

	if (limit_ms)
		return part_add(parts, CHANGE_RUN_LIMIT, 0, limit_ms);
	if (v->code == REASON_RESERVED)
		return part_add(parts, CHANGE_BOOKING, v->at, 0);
	for (uint32_t rank = 0; rank < t->view->space.node_count; rank++) {
		uint32_t id = space_at(&t->view->space, rank)->node;
		const struct node *node = node_get(t->facts, (struct node_id){ id });

		if (parts->count >= CHANGE_PARTS_MAX - CAUSES_MAX)
			break;
		if (node->window_from_ms == v->have && node->window_to_ms == v->need)
			done = part_add(parts, CHANGE_MAINTENANCE, id, 0) || done;
	}
	return done;
}

/* It ends before the window does; where that is closed, its own, or no calendar of its queue or of those above it, stands. */
static bool answer_window(struct trial *t, const struct verdict *v, struct parts *parts)
{
	int64_t limit_ms = run_limit_search(t, parts);
	bool done = false;

	if (limit_ms)
		return part_add(parts, CHANGE_RUN_LIMIT, 0, limit_ms);
	if (!v->at)
		return part_add(parts, CHANGE_WINDOW, 0, 0);
	for (uint32_t id = v->at; id; id = queue_get(t->facts, (struct queue_id){ id })->parent.v)
		if (queue_get(t->facts, (struct queue_id){ id })->calendar.v)
			done = part_add(parts, CHANGE_CALENDAR, id, 0) || done;
	return done;
}

/* So much left that it can be paid for, to the hundredth. */
static bool answer_budget(struct trial *t, const struct verdict *v, struct parts *parts)
{
	struct standings s;
	int64_t left;

	standings_make(&s, &t->copy, t->view, &t->scratch);
	left = v->need + spend_committed_micro(&s, v->at, t->copy.now_ms);
	left += MONEY_STEP_MICRO - 1;
	return part_add(parts, CHANGE_BUDGET, v->at, left - left % MONEY_STEP_MICRO);
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
bool cause_answer(struct trial *t, const struct verdict *v, struct parts *parts)
{
	bool done, never = t->words.never;

	if (t->words.outrun)
		return answer_outrun(t, parts);
	if (v->code == REASON_RESERVATION)
		return answer_reservation(t, v, parts);
	if (v->code == REASON_WINDOW)
		return answer_window(t, v, parts);
	if (v->code == REASON_PARTITION && v->level != TRAIT_SLICES)
		return answer_slices(t, v, parts);
	if (v->code == REASON_MAINTENANCE || v->code == REASON_RESERVED)
		return answer_maintenance(t, v, parts);
	if (!never &&
	    (v->code == REASON_CAPACITY || v->code == REASON_FRAGMENTATION ||
	     v->code == REASON_SHARING || v->code == REASON_TOPOLOGY || v->code == REASON_SPREAD ||
	     v->code == REASON_ALIGNMENT || v->code == REASON_CPU || v->code == REASON_RAM))
		return answer_place(t, parts);
	if (v->code == REASON_APART)
		done = part_add(parts, CHANGE_APART, 0, 0);
	else if (v->code == REASON_SLOWDOWN)
		done = part_add(parts, CHANGE_SLOWDOWN, 0, v->have);
	else if (v->code == REASON_HOLD)
		done = part_add(parts, CHANGE_RELEASE, 0, 0);
	else if (v->code == REASON_DEPENDENCY || v->code == REASON_ARRAY_LIMIT)
		done = part_add(parts, CHANGE_JOB_ENDS, v->holder.v, 0);
	else if (v->code == REASON_QUOTA_LIMIT)
		done = answer_limit(t, v, parts);
	else if (v->code == REASON_BUDGET)
		done = answer_budget(t, v, parts);
	else if (v->code == REASON_GUARANTEE_ONLY)
		done = part_add(parts, CHANGE_STANDARD, 0, 0);
	else if (v->code == REASON_PRIORITY)
		done = answer_priority(t, v, parts);
	else
		done = never && answer_never(t, v, parts);
	trial_end(t);
	return done;
}
