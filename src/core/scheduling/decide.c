/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn:
 *
 *	0. nodes whose maintenance begins or is over				(maintenance.c)
 *	1. what must follow from what happened: release, stop, end, requeue	(lifecycle.c)
 *	2. promises looked at again: dropped, made smaller, victims spared	(promise.c)
 *	3. warned victims that saved, or whose time is over, are stopped	(lifecycle.c)
 *	   jobs with a deadline that may use spot nodes choose			(capacity.c)
 *	4. promised places that are free now are taken				(promise.c)
 *	   gangs that lack a rank have the first claim on a place		(resize.c)
 *	5. who is next, where, at whose expense, else from when on		(order.c, evict.c, reserve.c)
 *	6. which running jobs could move, so that free GPUs lie together	(core/rearranging)
 *	   who runs on demand and would be cheaper off on spot nodes		(capacity.c)
 *	7. who could be wider, when all of that decided nothing			(resize.c)
 *
 * When 0, 1, 2 or 3 decide anything the pass ends there and asks to be called again: the rest then sees the facts as they
 * are with those decisions, and needs no second bookkeeping of its own.
 */
#include "base/check.h"
#include "core/scheduling/life/capacity.h"
#include "core/scheduling/pass.h"

const char *const core_policy_name = "default/1";

void pass_begin(struct pass *pass, const struct facts *facts, struct view *view, uint64_t budget,
		struct arena *arena)
{
	*pass = (struct pass){ .facts = facts, .view = view, .arena = arena, .budget = budget };
	view_demand(view, facts, arena);
	pass->memos = arena_new_array(arena, struct shape_memo, (size_t)facts->shapes.count + 1);
}

void pass_expect(struct pass *pass, uint32_t count)
{
	const struct event *old = pass->events;

	count = count < DECISIONS_MAX ? count : DECISIONS_MAX;
	if (count <= pass->room - pass->count)
		return;
	pass->room = pass->count + count;
	pass->events = arena_new_array(pass->arena, struct event, pass->room);
	if (old)
		memcpy(pass->events, old, pass->count * sizeof(*old));
}

struct event *pass_emit(struct pass *pass, enum event_kind kind)
{
	struct event *event;

	if (pass->count == pass->room)
		pass_expect(pass, pass->count ? pass->count : 16);
	event = &pass->events[pass->count++];
	event_begin(event, kind, pass->facts->now_ms, "fairlead");
	return event;
}

void pass_wake(struct pass *pass, int64_t at_ms)
{
	if (at_ms > pass->facts->now_ms && (!pass->wake_ms || at_ms < pass->wake_ms))
		pass->wake_ms = at_ms;
}

/* Without a decision there is nothing to come back for: such a pass is finished whatever it costs. */
bool pass_is_spent(const struct pass *pass)
{
	return pass->count >= DECISIONS_MAX || (pass->count > 0 && pass->work >= pass->budget);
}

const struct shape *pass_shape(struct pass *pass, struct shape_id id)
{
	const struct shape *shape = shape_get(pass->facts, id);
	struct view *view = pass->view;

	if (pass->suits_of == shape)
		return shape;
	array_ensure(&view->suits.buf, (size_t)pass->facts->shapes.count + 1, sizeof(uint64_t));
	if (!view->suits.at[id.v])
		space_classes_of(&view->space, shape, &view->suits.at[id.v]);
	pass->suits_of = shape;
	pass->suits = view->suits.at[id.v];
	return shape;
}

struct place_request pass_request(struct pass *pass, const struct shape *shape, uint32_t tasks)
{
	if (pass->suits_of != shape) {
		pass->suits_of = shape;
		space_classes_of(&pass->view->space, shape, &pass->suits);
	}
	return (struct place_request){ .shape = shape,
				       .tasks = tasks,
				       .rank = RANK_NONE,
				       .closed = pass->closed,
				       .suits = pass->suits,
				       .scatter = pass->facts->policy.packing == 0,
				       .share_gpus = (uint8_t)pass->facts->policy.share_gpus };
}

const uint64_t *pass_home(struct pass *pass, uint32_t id)
{
	const struct space *space = &pass->view->space;
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct attempt *attempt;

	if (!job->last_attempt.v || !job->checkpoint || !job_checkpoint(pass->facts, job, 0))
		return NULL;
	if (pass->home_of == id)
		return pass->home;
	attempt = attempt_get(pass->facts, job->last_attempt);
	pass->home_of = id;
	pass->home = arena_new_array(pass->arena, uint64_t, bits_row(space->node_count) + 1);
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = task_get(pass->facts, attempt, i);
		int32_t rank = task ? space_rank(space, task->node.v) : RANK_NONE;

		if (rank != RANK_NONE)
			pass->home[rank / 64] |= UINT64_C(1) << rank % 64;
	}
	return pass->home;
}

struct place_lists place_lists(const struct pass *pass, const struct placement *place)
{
	uint32_t rows = place->parts ? 5 : 2;
	int64_t *numbers = arena_new_array(pass->arena, int64_t, (size_t)rows * place->count);
	struct place_lists lists = { .nodes = numbers,
				     .masks = numbers + place->count,
				     .count = place->count,
				     .part_count = place->parts ? place->count : 0,
				     .slice_count =
					     place->parts && place->slices ? place->count : 0 };

	for (uint32_t i = 0; i < place->count; i++) {
		lists.nodes[i] = space_at(&pass->view->space, place->ranks[i])->node;
		lists.masks[i] = place->masks[i];
	}
	if (!place->parts)
		return lists;
	lists.parts = numbers + (size_t)2 * place->count;
	lists.parts_mib = numbers + (size_t)3 * place->count;
	for (uint32_t i = 0; i < place->count; i++) {
		lists.parts[i] = place->parts[i];
		lists.parts_mib[i] = place->parts_mib[i];
	}
	if (place->slices)
		lists.slices = numbers + (size_t)4 * place->count;
	for (uint32_t i = 0; place->slices && i < place->count; i++)
		lists.slices[i] = place->slices[i];
	return lists;
}

int64_t placement_share(const struct placement *place, const struct shape *shape)
{
	int64_t share = 0;

	if (!place->parts)
		return (place->which ? ranks_gpus(shape, place->which, place->count)
				     : shape_gpus(shape, place->count)) *
		       GPU_SHARE;
	for (uint32_t i = 0; i < place->count; i++)
		share += place->parts[i];
	return share;
}

void pass_run(struct pass *pass)
{
	maintenance_due(pass);
	if (!pass->count)
		lifecycle_due(pass);
	if (!pass->count)
		lifecycle_nodes(pass);
	if (!pass->count) {
		standings_make(&pass->standings, pass->facts, pass->view, pass->arena);
		pledges_make(pass);
		resize_lacking(pass);
	}
	if (!pass->count)
		promises_review(pass);
	if (!pass->count)
		lifecycle_warned(pass);
	if (!pass->count)
		capacity_due(pass);
	if (pass->count) {
		pass->more = true;
		return;
	}
	promises_place(pass);
	order_run(pass);
}

void pass_grow(struct pass *pass)
{
	if (!pass->changes && !pass->more)
		resize_grow(pass);
}
