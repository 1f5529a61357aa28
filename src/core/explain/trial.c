/* SPDX-License-Identifier: Apache-2.0 */
/* Making a change to a frozen copy of the facts, mostly as the events that would make it, and taking it back. */
#include "core/explain/trial.h"

#include <string.h>

#include "base/check.h"
#include "core/model/whatif.h"

enum { TRIES_MOST = 600, TRIES_WORK = 40000 };

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
	int64_t *shares = arena_new_array(&t->scratch, int64_t, QUEUE_MODELS_MAX),
		*promised = arena_new_array(&t->scratch, int64_t, QUEUE_MODELS_MAX);

	for (uint32_t i = 0; i < QUEUE_MODELS_MAX && queue->limit_model[i].v; i++) {
		e->limit_models = arena_printf(&t->scratch, "%s%s%s", e->limit_models, i ? "," : "",
					       facts_name(&t->copy, queue->limit_model[i]));
		shares[i] = queue->limit_model_share[i];
		e->limit_model_shares_count = i + 1;
	}
	e->limit_model_shares = shares;
	for (uint32_t i = 0; i < QUEUE_MODELS_MAX && queue->guarantee_model[i].v; i++) {
		e->guarantee_models =
			arena_printf(&t->scratch, "%s%s%s", e->guarantee_models, i ? "," : "",
				     facts_name(&t->copy, queue->guarantee_model[i]));
		promised[i] = queue->guarantee_model_share[i];
		e->guarantee_model_shares_count = i + 1;
	}
	e->guarantee_model_shares = promised;
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
	e.queue_set.tiers = queue->tiers;
	e.queue_set.max_priority = queue->max_priority;
	e.queue_set.user_waiting = queue->user_waiting;
	e.queue_set.user_limit_share = kind == CHANGE_USERS ? 0 : queue->user_limit_share;
	e.queue_set.user_part = kind == CHANGE_USERS ? 0 : queue->user_part;
	trial_put(t, &e);
}

/* So much that it needs, or of a part so much that it takes. */
static void gpu_memory_set(struct shape *shape, uint32_t mib)
{
	shape->gpu_memory_mib = mib;
	if (shape->gpu_part_mib > mib)
		shape->gpu_part_mib = mib;
}

static void models_any(struct shape *shape)
{
	memset(shape->models, 0, sizeof(shape->models));
	memset(shape->throughput, 0, sizeof(shape->throughput));
}

static void apart_none(struct shape *shape)
{
	memset(shape->own_label, 0, sizeof(shape->own_label));
	memset(shape->apart_from, 0, sizeof(shape->apart_from));
	shape->apart_level = shape->apart_wish = 0;
}

static void window_none(struct shape *shape)
{
	shape->window = (struct name_id){ 0 };
	shape->window_end = WINDOW_STOPS;
}

static void put_wish(struct trial *t, const struct change_part *part)
{
	struct job_id id = { t->job };
	struct event sync = trial_event(t, EVENT_JOB_PRIORITY_SET);
	struct shape shape = *shape_get(&t->copy, job_get(&t->copy, id)->shape);

	if (part->kind == CHANGE_MODELS)
		models_any(&shape);
	else if (part->kind == CHANGE_GPU_MEMORY)
		gpu_memory_set(&shape, (uint32_t)part->value);
	else if (part->kind == CHANGE_LEVEL)
		shape.require = (uint8_t)part->value;
	else if (part->kind == CHANGE_ALIGN)
		shape.align = ALIGN_NONE;
	else if (part->kind == CHANGE_SPREAD)
		shape.apart = 0;
	else if (part->kind == CHANGE_WINDOW)
		window_none(&shape);
	else if (part->kind == CHANGE_APART)
		apart_none(&shape);
	else if (part->kind == CHANGE_SLOWDOWN)
		shape.max_slowdown = (uint32_t)part->value;
	else if (part->kind == CHANGE_CPU || part->kind == CHANGE_RAM ||
		 part->kind == CHANGE_GPUS || part->kind == CHANGE_TASKS)
		shape_number_set(&shape, part->kind, part->id, (uint32_t)part->value);
	whatif_shape(&t->copy, id, &shape);
	if (part->kind == CHANGE_STANDARD)
		whatif_tier(&t->copy, id, TIER_STANDARD);
	if (part->kind == CHANGE_RUN_LIMIT)
		whatif_limit(&t->copy, id, part->value);
	sync.job_priority_set.job = t->job;
	trial_follow(t, &sync);
}

static void names_add(const struct facts *facts, struct name_id *names, struct name_id added)
{
	uint32_t at = SHAPE_LABELS_MAX - 1;

	for (; at > 0 && (!names[at - 1].v ||
			  strcmp(facts_name(facts, names[at - 1]), facts_name(facts, added)) > 0);
	     at--)
		names[at] = names[at - 1];
	names[at] = added;
}

static void masks_clear(struct shape *shape)
{
	shape->mask = shape->together = (struct name_id){ 0 };
	memset(shape->role_mask, 0, sizeof(shape->role_mask));
}

static void put_trait(struct trial *t, const struct change_part *part)
{
	struct job_id id = { t->job };
	struct event sync = trial_event(t, EVENT_JOB_PRIORITY_SET),
		     space = trial_event(t, EVENT_LEVELS_SET);
	struct shape shape = *shape_get(&t->copy, job_get(&t->copy, id)->shape);

	if (part->kind == CHANGE_TOLERATE)
		names_add(&t->copy, shape.tolerates, (struct name_id){ part->id });
	else if (part->id == TRAIT_DRIVER)
		shape.min_driver = (uint32_t)part->value;
	else if (part->id == TRAIT_CUDA)
		shape.min_cuda = (uint32_t)part->value;
	else if (part->id == TRAIT_CAPABILITY)
		shape.min_capability = (uint32_t)part->value;
	else if (part->id == TRAIT_SPEED)
		shape.min_throughput = (uint32_t)part->value;
	else if (part->id == TRAIT_REGION)
		memset(shape.regions, 0, sizeof(shape.regions));
	else if (part->id == TRAIT_LABEL)
		memset(shape.labels, 0, sizeof(shape.labels));
	else if (part->id == TRAIT_MASK)
		masks_clear(&shape);
	else if (part->id == TRAIT_CLASS)
		shape.serves = !shape.serves;
	else if (part->id == TRAIT_CAPACITY)
		shape.capacity = CAPACITY_ANY;
	whatif_shape(&t->copy, id, &shape);
	sync.job_priority_set.job = t->job;
	trial_follow(t, &sync);
	if (part->kind == CHANGE_TOLERATE)
		trial_follow(t, &space); /* nodes are told apart by it from now on */
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

static void put_budget(struct trial *t, const struct change_part *part)
{
	const struct queue *queue = queue_get(&t->copy, (struct queue_id){ part->id });
	struct event e = trial_event(t, EVENT_BUDGET_SET);

	e.budget_set.queue = arena_strdup(&t->scratch, facts_name(&t->copy, queue->name));
	e.budget_set.currency = arena_strdup(&t->scratch, facts_name(&t->copy, queue->currency));
	e.budget_set.left_micro = part->value;
	trial_put(t, &e);
}

static void put_booking_ended(struct trial *t, uint32_t row)
{
	struct event e = trial_event(t, EVENT_BOOKING_ENDED);

	e.booking_ended.name =
		arena_strdup(&t->scratch, facts_name(&t->copy, booking_get(&t->copy, row)->name));
	trial_put(t, &e);
}

/* One that has begun ends with the node being ready. */
static void put_maintenance(struct trial *t, uint32_t node)
{
	struct event window = trial_event(t, EVENT_NODE_WINDOW),
		     state = trial_event(t, EVENT_NODE_STATE);

	window.node_window.node = state.node_state.node = node;
	window.node_window.reason = state.node_state.reason = "";
	state.node_state.state = NODE_READY;
	trial_put(t, &window);
	if (node_get(&t->copy, (struct node_id){ node })->state == NODE_MAINTENANCE)
		trial_put(t, &state);
}

static void put_slices(struct trial *t, const struct change_part *part)
{
	struct event e = trial_event(t, EVENT_LAYOUT_SET);
	int64_t *numbers = arena_new_array(&t->scratch, int64_t, 2);

	numbers[0] = cut_gpu(part->id);
	numbers[1] = part->value;
	e.layout_set.node = cut_node(part->id);
	e.layout_set.gpus = &numbers[0];
	e.layout_set.layouts = &numbers[1];
	e.layout_set.gpus_count = e.layout_set.layouts_count = 1;
	e.layout_set.reason = "";
	trial_put(t, &e);
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
	case CHANGE_USERS:
	case CHANGE_CALENDAR:
		queue = queue_get(&t->copy, (struct queue_id){ part->id });
		put_queue(t, part->id,
			  part->kind == CHANGE_LIMIT ? part->value : queue->limit_share,
			  part->kind != CHANGE_LEND && queue->reserved, part->kind);
		return;
	case CHANGE_BUDGET: put_budget(t, part); return;
	case CHANGE_BOOKING: put_booking_ended(t, part->id); return;
	case CHANGE_MAINTENANCE: put_maintenance(t, part->id); return;
	case CHANGE_SLICES: put_slices(t, part); return;
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
	case CHANGE_RUN_LIMIT:
	case CHANGE_SLOWDOWN:
	case CHANGE_ALIGN:
	case CHANGE_WINDOW:
	case CHANGE_APART:
	case CHANGE_SPREAD: put_wish(t, part); return;
	case CHANGE_TRAIT:
	case CHANGE_TOLERATE: put_trait(t, part); return;
	}
}

/* At least one, so that it is a bound. */
static uint64_t work_left(const struct trial *t)
{
	return t->work < TRIES_WORK ? TRIES_WORK - t->work : 1;
}

/* With the parts whose bit is set in `which` (those beyond 64 always). */
void trial_begin(struct trial *t, const struct parts *parts, uint64_t which)
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
	t->words.before = &t->before;
	if (t->words.work_most > work_left(t))
		t->words.work_most = work_left(t);
}

/* The same events, last one first: each brings what it is about in line with the facts as they are. */
void trial_end(struct trial *t)
{
	while (t->followed_count)
		view_follow(t->view, t->facts, &t->followed[--t->followed_count]);
	view_refresh(t->view, t->facts);
	facts_deinit(&t->copy);
}

bool trial_is_spent(const struct trial *t)
{
	return t->tries >= TRIES_MOST || t->work >= TRIES_WORK;
}

/* The view is in line with the facts of the trial: what does the decision say? */
bool trial_reason(struct trial *t, struct verdict *ret)
{
	bool waits = words_reason(&t->words, ret);

	t->work += t->words.work + t->view->space.node_count / 64 + t->copy.queues.count / 8;
	t->undecided = t->undecided || t->words.undecided;
	return waits;
}

static bool trial_starts(struct trial *t, const struct parts *parts, uint64_t which, bool alone)
{
	struct verdict v;
	bool starts;

	if (trial_is_spent(t))
		return false;
	trial_begin(t, parts, which);
	t->words.starts_only = true;
	starts = !trial_reason(t, &v) || (alone && t->words.outrun);
	trial_end(t);
	return starts;
}

bool starts_with(struct trial *t, const struct parts *parts, uint64_t which)
{
	return trial_starts(t, parts, which, false);
}

bool starts_alone_with(struct trial *t, const struct parts *parts)
{
	return trial_starts(t, parts, UINT64_MAX, true);
}
