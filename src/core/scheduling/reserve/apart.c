/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/reserve/apart.h"

#include <string.h>

#include "core/scheduling/pass.h"
#include "core/scheduling/queues/window.h"

/* --- who is where -------------------------------------------------------------------------------------- */

static const struct shape *shape_of(const struct pass *pass, uint32_t job)
{
	return shape_get(pass->facts, job_get(pass->facts, (struct job_id){ job })->shape);
}

static void place_add(struct pass *pass, uint32_t job, uint32_t node)
{
	struct aparts *a = &pass->aparts;

	if (a->count == a->room) {
		const struct apart_place *old = a->at;

		a->room = a->room ? a->room * 2 : 32;
		a->at = arena_new_array(pass->arena, struct apart_place, a->room);
		if (old)
			memcpy(a->at, old, a->count * sizeof(*old));
	}
	a->at[a->count++] = (struct apart_place){ job, node };
}

static void running_read(struct pass *pass)
{
	struct sorted_walk walk;

	for (bool any = sorted_begin(&pass->view->pool, pass->view->marked, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(pass->facts, (struct job_id){ walk.id });
		const struct attempt *attempt = attempt_get(pass->facts, job->attempt);

		for (uint32_t i = 0; i < attempt->tasks; i++) {
			const struct task *task =
				table_get(&pass->facts->tasks, attempt->first_task + i);

			if (task_holds(task))
				place_add(pass, walk.id, task->node.v);
		}
	}
	for (uint32_t i = 0; i < pass->view->promise_count; i++) {
		const struct promise_view *p = &pass->view->promises.at[i];

		for (uint32_t task = 0; shape_is_marked(shape_of(pass, p->job)) && task < p->tasks;
		     task++)
			place_add(pass, p->job, promise_node(p, task));
	}
}

static void nodes_add(struct pass *pass, int64_t job, const int64_t *nodes, uint32_t count)
{
	if (shape_is_marked(shape_of(pass, (uint32_t)job)))
		for (uint32_t i = 0; i < count; i++)
			place_add(pass, (uint32_t)job, (uint32_t)nodes[i]);
}

/* What the pass has decided since it was asked last. */
static void decisions_read(struct pass *pass)
{
	struct aparts *a = &pass->aparts;

	for (; a->seen < pass->count; a->seen++) {
		const struct event *e = &pass->events[a->seen];

		if (e->kind == EVENT_ATTEMPT_PLACED)
			nodes_add(pass, e->attempt_placed.job, e->attempt_placed.nodes,
				  e->attempt_placed.nodes_count);
		else if (e->kind == EVENT_PROMISE_MADE)
			nodes_add(pass, e->promise_made.job, e->promise_made.nodes,
				  e->promise_made.nodes_count);
		else if (e->kind == EVENT_ATTEMPT_GROWN)
			nodes_add(pass,
				  attempt_get(
					  pass->facts,
					  (struct attempt_id){ (uint32_t)e->attempt_grown.attempt })
					  ->job.v,
				  e->attempt_grown.nodes, e->attempt_grown.nodes_count);
	}
}

static void aparts_make(struct pass *pass)
{
	struct aparts *a = &pass->aparts;
	size_t words = pass->view->space.node_count / 64 + 1;

	if (!a->made) {
		a->made = true;
		a->on = arena_new_array(pass->arena, uint64_t, words);
		a->wanted = arena_new_array(pass->arena, uint64_t, words);
		running_read(pass);
	}
	decisions_read(pass);
}

/* --- from whom ----------------------------------------------------------------------------------------- */

static bool names_meet(const struct name_id *a, const struct name_id *b)
{
	for (uint32_t i = 0; i < JOB_LABELS_MAX && a[i].v; i++)
		for (uint32_t k = 0; k < JOB_LABELS_MAX && b[k].v; k++)
			if (name_same(a[i], b[k]))
				return true;
	return false;
}

/* Are both in one place of the level? There may be a rack 1 in every row. */
static bool nodes_meet(const struct facts *facts, uint32_t level, uint32_t a, uint32_t b)
{
	const struct node *first = node_get(facts, (struct node_id){ a }),
			  *second = node_get(facts, (struct node_id){ b });

	if (a == b || !level || level == LEVEL_NODE)
		return a == b;
	for (uint32_t i = 0; i < level; i++)
		if (!name_same(first->domain[i], second->domain[i]))
			return false;
	return true;
}

static void rank_shut(struct pass *pass, uint32_t rank, const struct apart_place *by)
{
	struct aparts *a = &pass->aparts;

	if (!a->any || job_is_earlier(pass->facts, by->job, a->holder)) {
		a->holder = by->job;
		a->node = by->node;
	}
	a->any = true;
	a->wanted[rank / 64] |= UINT64_C(1) << rank % 64;
}

static void place_shut(struct pass *pass, const struct apart_place *by, uint32_t level)
{
	const struct space *space = &pass->view->space;
	int32_t at = space_rank(space, by->node);

	if (!level || level == LEVEL_NODE) {
		if (at != RANK_NONE)
			rank_shut(pass, (uint32_t)at, by);
		return;
	}
	for (uint32_t rank = 0; rank < space->node_count; rank++)
		if (nodes_meet(pass->facts, level, space_at(space, rank)->node, by->node))
			rank_shut(pass, rank, by);
}

static void keep_away(struct pass *pass, const struct shape *shape, bool wish,
		      const struct apart_place *by)
{
	const struct shape *other = shape_of(pass, by->job);

	if ((wish || !shape->apart_wish) && names_meet(shape->apart_from, other->own_label))
		place_shut(pass, by, shape->apart_level);
	if (!other->apart_wish && names_meet(other->apart_from, shape->own_label))
		place_shut(pass, by, other->apart_level);
}

/* A reserved place is taken from its start on: who is there longer would keep its job from it, for nobody is evicted to keep a distance. */
static void reserved_make(struct pass *pass, const struct job *job, const struct shape *shape,
			  bool wish)
{
	int64_t end_ms = job_leaves_ms(pass->facts, job);

	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		const struct reservation *r = &pass->reservations[i];

		if (r->start_ms >= end_ms || !shape_is_marked(shape_of(pass, r->job)) ||
		    job_get(pass->facts, (struct job_id){ r->job }) == job)
			continue;
		for (uint32_t task = 0; task < r->place.count; task++) {
			const struct apart_place by = {
				r->job, space_at(&pass->view->space, r->place.ranks[task])->node
			};

			keep_away(pass, shape, wish, &by);
		}
	}
}

static void wanted_make(struct pass *pass, const struct job *job, const struct shape *shape,
			bool wish)
{
	struct aparts *a = &pass->aparts;

	for (uint32_t i = 0; i < a->count; i++)
		if (job_get(pass->facts, (struct job_id){ a->at[i].job }) != job)
			keep_away(pass, shape, wish, &a->at[i]);
	if (!job->attempt.v)
		reserved_make(pass, job, shape, wish);
}

/* The space follows; where blocks touch a node as well, they say the rest. */
static void aparts_turn(struct pass *pass)
{
	struct aparts *a = &pass->aparts;
	struct space *space = &pass->view->space;
	uint32_t words = space->node_count / 64 + 1;
	bool changed = false;

	for (uint32_t i = 0; i < words; i++) {
		uint64_t differ = a->on[i] ^ a->wanted[i];

		a->on[i] = a->wanted[i];
		for (; differ; differ &= differ - 1) {
			uint32_t rank = i * 64 + (uint32_t)__builtin_ctzll(differ);

			space_block(space, rank, 0, aparts_shut(pass, rank));
			changed = true;
		}
	}
	if (changed)
		blocks_again(pass);
}

void aparts_for(struct pass *pass, const struct job *job, bool wish)
{
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct aparts *a = &pass->aparts;

	if (!shape_is_marked(shape)) {
		aparts_none(pass);
		return;
	}
	aparts_make(pass);
	memset(a->wanted, 0, (pass->view->space.node_count / 64 + 1) * sizeof(*a->wanted));
	a->any = false;
	wanted_make(pass, job, shape, wish);
	aparts_turn(pass);
}

void aparts_none(struct pass *pass)
{
	struct aparts *a = &pass->aparts;

	if (!a->any)
		return;
	a->any = false;
	memset(a->wanted, 0, (pass->view->space.node_count / 64 + 1) * sizeof(*a->wanted));
	aparts_turn(pass);
}

bool aparts_shut(const struct pass *pass, uint32_t rank)
{
	const struct aparts *a = &pass->aparts;

	return a->any && a->on[rank / 64] >> rank % 64 & 1;
}

bool aparts_why(struct pass *pass, const struct place_request *request, struct verdict *ret_why)
{
	struct space *space = &pass->view->space;
	uint32_t mark = space_mark(space);
	struct aparts *a = &pass->aparts;
	bool fits;

	if (!a->any)
		return false;
	a->any = false; /* none is shut, as blocks see it */
	for (uint32_t rank = 0; rank < space->node_count; rank++)
		if (a->on[rank / 64] >> rank % 64 & 1)
			space_block(space, rank, 0, false);
	blocks_again(pass);
	fits = place_find(space, request, NULL, NULL, NULL) == 0;
	space_rollback(space, mark);
	a->any = true;
	if (fits)
		*ret_why = (struct verdict){ .code = REASON_APART,
					     .at = a->node,
					     .holder = { a->holder } };
	return fits;
}
