/* SPDX-License-Identifier: Apache-2.0 */
/* Promised places in the index: a list by job, each kept in the space. */
#include "core/scheduling/view/view.h"

#include <string.h>

#include "base/check.h"

static uint32_t promise_at(const struct view *view, uint32_t job)
{
	uint32_t first = 0, end = view->promise_count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (view->promises.at[middle].job < job)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

const struct promise_view *view_promise(const struct view *view, uint32_t job)
{
	uint32_t at = promise_at(view, job);

	return at < view->promise_count && view->promises.at[at].job == job ? &view->promises.at[at]
									    : NULL;
}

void view_promise_move(struct view *view, const struct promise_view *p, bool make)
{
	if (view->space_stale)
		return;
	for (uint32_t i = 0; i < p->tasks; i++) {
		int32_t rank = space_rank(&view->space, promise_node(p, i));
		struct hold hold = promise_task(p, i);

		if (rank == RANK_NONE)
			continue;
		if (make)
			space_promise(&view->space, (uint32_t)rank, &hold);
		else
			space_unpromise(&view->space, (uint32_t)rank, &hold);
	}
	space_commit(&view->space);
}

static void promise_leave(struct view *view, uint32_t job)
{
	uint32_t at = promise_at(view, job);
	struct promise_view *p = &view->promises.at[at];

	CHECK(at < view->promise_count && p->job == job);
	view_promise_move(view, p, false);
	view->queues.at[p->queue].promised[p->tier] -= p->share;
	buf_deinit(&p->numbers.buf);
	memmove(p, p + 1, (view->promise_count - at - 1) * sizeof(*p));
	view->promise_count--;
	memset(&view->promises.at[view->promise_count], 0, sizeof(*p));
}

static void promise_read(const struct facts *facts, uint32_t first, const struct shape *shape,
			 struct promise_view *p)
{
	uint32_t at = 0;

	for (uint32_t row = first; row;) {
		const struct promise *promise = table_get(&facts->promises, row);

		p->tasks += promise->node != 0;
		p->victims += promise->node == 0;
		row = promise->next;
	}
	array_resize(&p->numbers.buf, (size_t)PROMISE_COLUMNS * p->tasks + p->victims,
		     sizeof(uint32_t));
	for (uint32_t row = first; row; at++) {
		const struct promise *promise = table_get(&facts->promises, row);

		if (promise->node) {
			p->numbers.at[at] = promise->node;
			p->numbers.at[p->tasks + at] = promise->gpu_mask;
			p->numbers.at[2 * p->tasks + at] = promise->gpu_part;
			p->numbers.at[3 * p->tasks + at] = promise->gpu_part_mib;
			p->numbers.at[4 * p->tasks + at] = promise->slice;
			p->numbers.at[5 * p->tasks + at] = shape_wish(shape, at).cpu_milli;
			p->numbers.at[6 * p->tasks + at] = shape_wish(shape, at).memory_mib;
			p->share += promise->gpu_part;
		} else {
			p->numbers.at[PROMISE_COLUMNS * p->tasks + at - p->tasks] = promise->victim;
		}
		row = promise->next;
	}
}

static void promise_enter(struct view *view, const struct facts *facts, uint32_t id,
			  const struct job *job)
{
	const struct shape *shape = shape_get(facts, job->shape);
	uint32_t at = promise_at(view, id);
	struct promise_view *p;

	array_ensure(&view->promises.buf, (size_t)view->promise_count + 1, sizeof(*p));
	p = &view->promises.at[at];
	memmove(p + 1, p, (view->promise_count - at) * sizeof(*p));
	view->promise_count++;
	memset(p, 0, sizeof(*p));
	p->job = id;
	p->queue = job->queue.v;
	p->tier = job->tier;
	promise_read(facts, job->promise, shape, p);
	p->sharer = shape_sharer(shape);
	p->aligned = shape->align != 0;
	if (!p->share)
		p->share = shape_gpus(shape, p->tasks) * GPU_SHARE;
	view->queues.at[p->queue].promised[p->tier] += p->share;
	view_promise_move(view, p, true);
}

/* `again`: the promise is another one than before. */
void view_promise_sync(struct view *view, const struct facts *facts, uint32_t id, bool again)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	struct job_view *jv = job_view_edit(view, id);

	if (jv->promised && (!job->promise || again)) {
		promise_leave(view, id);
		jv->promised = false;
	}
	if (job->promise && !jv->promised) {
		promise_enter(view, facts, id, job);
		jv->promised = true;
	}
}
