/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/queues/dominant.h"

#include <string.h>

#include "core/placement/find.h"
#include "core/placement/parts.h"
#include "core/scheduling/queues/beside.h"
#include "core/scheduling/queues/standing.h"

__extension__ typedef __int128 wide;

/* --- the view -------------------------------------------------------------------------------------------- */

/* Different models by name; those beyond the last that has room count as GPUs alone. */
static uint32_t models_list(const struct view *view, const struct facts *facts,
			    struct name_id ret[VIEW_MODELS])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < view->space.traits_count; i++) {
		struct name_id model = view->space.traits.at[i].model;
		const char *text = facts_name(facts, model);
		uint32_t at = 0;

		while (at < count && strcmp(facts_name(facts, ret[at]), text) < 0)
			at++;
		if (at == VIEW_MODELS || (at < count && name_same(ret[at], model)))
			continue;
		count = count < VIEW_MODELS ? count + 1 : count;
		memmove(ret + at + 1, ret + at, (count - at - 1) * sizeof(*ret));
		ret[at] = model;
	}
	return count;
}

void dominant_models_read(struct view *view, const struct facts *facts)
{
	struct name_id models[VIEW_MODELS] = { { 0 } };

	view->model_count = models_list(view, facts, models);
	array_resize(&view->models.buf, view->space.traits_count + (size_t)1, sizeof(uint8_t));
	for (uint32_t i = 0; i < view->space.traits_count; i++) {
		uint8_t at = 0;

		while (at < view->model_count &&
		       !name_same(models[at], view->space.traits.at[i].model))
			at++;
		view->models.at[i] = at < view->model_count ? at : VIEW_MODELS;
	}
	for (uint32_t queue = 0; queue <= facts->queues.count; queue++)
		view->queues.at[queue].holds = (struct amounts){ 0 };
	dominant_capacity_read(view);
}

void dominant_capacity_read(struct view *view)
{
	struct amounts *all = &view->capacity;

	*all = (struct amounts){ 0 };
	view->usable_gpus = 0;
	for (uint32_t rank = 0; rank < view->space.node_count; rank++) {
		const struct place_node *node = space_at(&view->space, rank);
		uint8_t model = view->models.at[node->traits];

		view->usable_gpus += bits_count(node->usable);
		if (!node->ready)
			continue;
		all->cpu_milli += node->cpu_all < SPACE_UNLIMITED ? node->cpu_all : 0;
		all->ram_mib += node->ram_all < SPACE_UNLIMITED ? node->ram_all : 0;
		if (model < VIEW_MODELS)
			all->gpus[model] += space_rank_share(&view->space, rank);
	}
}

static void task_add(const struct view *view, struct amounts *to, uint32_t rank,
		     const struct shape *shape, uint32_t at, int sign)
{
	const struct place_node *node = space_at(&view->space, rank);
	struct task_wish wish = shape_wish(shape, at);
	uint8_t model = view->models.at[node->traits];

	if (node->cpu_all < SPACE_UNLIMITED)
		to->cpu_milli += sign * (int64_t)wish.cpu_milli;
	if (node->ram_all < SPACE_UNLIMITED)
		to->ram_mib += sign * (int64_t)wish.memory_mib;
	if (model < VIEW_MODELS)
		to->gpus[model] +=
			sign * rank_share_on(shape, at, node_memory_mib(&view->space, rank));
}

void dominant_hold(struct view *view, const struct facts *facts, uint32_t queue,
		   const struct attempt *attempt, const struct shape *shape, int sign)
{
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);
		int32_t rank = space_rank(&view->space, task->node.v);

		if (rank != RANK_NONE && task_holds(task))
			task_add(view, &view->queues.at[queue].holds, (uint32_t)rank, shape, i,
				 sign);
	}
}

void dominant_hold_task(struct view *view, uint32_t queue, uint32_t rank, const struct shape *shape,
			uint32_t at, int sign)
{
	task_add(view, &view->queues.at[queue].holds, rank, shape, at, sign);
}

/* --- a pass ------------------------------------------------------------------------------------------------ */

static int64_t part_of(int64_t amount, int64_t all, int64_t capacity)
{
	return all > 0 ? (int64_t)((wide)amount * capacity / all) : 0;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t dominant_whole(const struct standings *s)
{
	return s->capacity > 0 ? s->capacity : INT64_C(1000) * GPU_SHARE;
}

/* Of processors and memory; GPUs are passed over where all are of one model: then `use` says it. */
static void standing_measure(const struct standings *s, struct standing *at, bool gpus)
{
	const struct amounts *all = &s->view->capacity;
	int64_t whole = dominant_whole(s);

	if (at->holds.cpu_milli)
		at->dominant =
			most(at->dominant, part_of(at->holds.cpu_milli, all->cpu_milli, whole));
	if (at->holds.ram_mib)
		at->dominant = most(at->dominant, part_of(at->holds.ram_mib, all->ram_mib, whole));
	for (uint32_t i = 0; gpus && s->view->model_count > 1 && i < s->view->model_count; i++)
		if (at->holds.gpus[i])
			at->dominant =
				most(at->dominant, part_of(at->holds.gpus[i], all->gpus[i], whole));
}

static void amounts_add(struct amounts *to, const struct amounts *from)
{
	to->cpu_milli += from->cpu_milli;
	to->ram_mib += from->ram_mib;
	for (int i = 0; i < VIEW_MODELS; i++)
		to->gpus[i] += from->gpus[i];
}

void dominant_make(struct standings *s)
{
	for (uint32_t i = s->count; i-- > 1;) {
		uint32_t id = s->view->queue_order.at[i];
		struct standing *at = &s->at[id];

		amounts_add(&at->holds, &s->view->queues.at[id].holds);
		amounts_add(&s->at[s->view->queues.at[id].parent].holds, &at->holds);
		standing_measure(s, at, true);
	}
}

void dominant_take(struct standings *s, uint32_t queue, uint8_t tier, const struct shape *shape,
		   const struct placement *place, int sign)
{
	bool models = s->view->model_count > 1 && shape->gpus;
	struct amounts added = { 0 };

	if (tier == TIER_BEST_EFFORT || (!models && !shape->cpu_milli && !shape->memory_mib))
		return;
	for (uint32_t i = 0; i < place->count; i++)
		task_add(s->view, &added, place->ranks[i], shape,
			 place->which ? (uint32_t)place->which[i] : i, sign);
	beside_move(s, queue, tier, (struct beside){ added.cpu_milli, added.ram_mib }, 1);
	for (; queue; queue = s->view->queues.at[queue].parent) {
		amounts_add(&s->at[queue].holds, &added);
		if (sign < 0)
			s->at[queue].dominant = 0;
		standing_measure(s, &s->at[queue], models || sign < 0);
	}
}
