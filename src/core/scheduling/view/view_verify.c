/* SPDX-License-Identifier: Apache-2.0 */
/* Does the index say what one built anew from the facts says? Compared by content: which rows of the pool or
 * which bucket numbers are used depends on history and is seen by nobody. */
#include <string.h>

#include "base/check.h"
#include "core/scheduling/view/view.h"

static void sets_same(const struct view *a, uint32_t root_a, const struct view *b, uint32_t root_b)
{
	struct sorted_walk wa, wb;
	bool any_a = sorted_begin(&a->pool, root_a, &wa),
	     any_b = sorted_begin(&b->pool, root_b, &wb);

	for (; any_a && any_b;
	     any_a = sorted_next(&a->pool, &wa), any_b = sorted_next(&b->pool, &wb))
		CHECK(wa.key == wb.key && wa.id == wb.id);
	CHECK(any_a == any_b);
}

static void queue_same(const struct view *a, const struct view *b, uint32_t q)
{
	const struct queue_view *qa = &a->queues.at[q], *qb = &b->queues.at[q];

	sets_same(a, qa->running, b, qb->running);
	sets_same(a, qa->aging, b, qb->aging);
	sets_same(a, qa->elastic, b, qb->elastic);
	sets_same(a, qa->savers, b, qb->savers);
	CHECK(a->space_stale || memcmp(&qa->holds, &qb->holds, sizeof(qa->holds)) == 0);
	CHECK(line_same(&qa->line, &qb->line));
	CHECK(qa->waits_odd == qb->waits_odd && qa->widest >= qb->widest);
	CHECK(qa->waits_timed == qb->waits_timed && qa->bare == qb->bare);
	CHECK(qa->wait_beside.cpu_milli == qb->wait_beside.cpu_milli &&
	      qa->wait_beside.ram_mib == qb->wait_beside.ram_mib);
	for (uint32_t tier = 0; tier < TIERS; tier++) {
		CHECK(qa->wait[tier] == qb->wait[tier] && qa->waits[tier] == qb->waits[tier]);
		CHECK(qa->hold[tier] == qb->hold[tier]);
		CHECK(qa->leave[tier] == qb->leave[tier]);
		CHECK(qa->again[tier] == qb->again[tier]);
		CHECK(qa->promised[tier] == qb->promised[tier]);
	}
}

static void bucket_same(const struct view *a, uint32_t ia, const struct view *b, uint32_t ib)
{
	const struct bucket *ba, *bb;

	CHECK((ia == 0) == (ib == 0));
	if (!ia)
		return;
	ba = &a->buckets.at[ia];
	bb = &b->buckets.at[ib];
	CHECK(ba->rank == bb->rank && ba->queue == bb->queue && ba->shape == bb->shape &&
	      ba->run_class == bb->run_class && ba->declared == bb->declared &&
	      ba->booked == bb->booked && ba->user == bb->user &&
	      ba->work_class == bb->work_class && ba->pause_until_ms == bb->pause_until_ms &&
	      ba->due_ms == bb->due_ms);
	CHECK(sorted_size(&a->pool, ba->jobs) == sorted_size(&b->pool, bb->jobs));
}

static void turner_same(const struct view *a, const struct job_view *ja, const struct view *b,
			const struct job_view *jb)
{
	const struct turner_group *ga = &a->turner_groups.at[ja->turner_group],
				  *gb = &b->turner_groups.at[jb->turner_group];

	CHECK((ja->turner_group == 0) == (jb->turner_group == 0));
	if (!ja->turner_group)
		return;
	CHECK(ja->turner_key == jb->turner_key && ga->queue == gb->queue && ga->rank == gb->rank &&
	      ga->share == gb->share && ga->says == gb->says);
	CHECK(sorted_size(&a->pool, ga->members) == sorted_size(&b->pool, gb->members));
}

static void job_same(const struct view *a, const struct view *b, uint32_t id)
{
	const struct job_view *ja = job_view_get(a, id), *jb = job_view_get(b, id);

	bucket_same(a, ja->bucket, b, jb->bucket);
	turner_same(a, ja, b, jb);
	CHECK(ja->attempt == jb->attempt);
	CHECK(ja->array == jb->array && ja->array_holds == jb->array_holds);
	CHECK(ja->deadline_ms == jb->deadline_ms && ja->end_ms == jb->end_ms);
	CHECK(ja->chooses == jb->chooses);
	CHECK(ja->due == jb->due && ja->leaving == jb->leaving && ja->warned == jb->warned &&
	      ja->promised == jb->promised && ja->lacking == jb->lacking);
	CHECK(!ja->attempt ||
	      (ja->rank == jb->rank && ja->share == jb->share && ja->tier == jb->tier &&
	       ja->leave_share == jb->leave_share && ja->width == jb->width));
}

static uint32_t shape_jobs(const struct view *view, uint32_t shape)
{
	return shape < view->shape_jobs.buf.size / sizeof(uint32_t) ? view->shape_jobs.at[shape]
								    : 0;
}

void view_verify(const struct view *view, const struct facts *facts)
{
	struct view *fresh = view_create(facts);

	CHECK(view->job_count == fresh->job_count);
	CHECK(view->buckets_used == fresh->buckets_used);
	CHECK(view->waits == fresh->waits);
	CHECK(view->turner_groups_used == fresh->turner_groups_used);
	CHECK(view->promise_count == fresh->promise_count);
	CHECK(view->array_count == fresh->array_count);
	CHECK(view->draining == fresh->draining);
	for (uint32_t shape = 1; shape <= facts->shapes.count; shape++)
		CHECK(shape_jobs(view, shape) == shape_jobs(fresh, shape));
	for (uint32_t q = 1; q <= facts->queues.count; q++)
		queue_same(view, fresh, q);
	for (uint32_t id = 1; id <= view->job_count; id++) {
		job_same(view, fresh, id);
		CHECK(!job_state_is_final(job_get(facts, (struct job_id){ id })->state) ||
		      memcmp(job_view_get(view, id), table_zeroes, sizeof(struct job_view)) == 0);
	}
	sets_same(view, view->due, fresh, fresh->due);
	sets_same(view, view->deadlines, fresh, fresh->deadlines);
	sets_same(view, view->ends, fresh, fresh->ends);
	sets_same(view, view->declared, fresh, fresh->declared);
	sets_same(view, view->warned, fresh, fresh->warned);
	sets_same(view, view->leaving, fresh, fresh->leaving);
	sets_same(view, view->lacking, fresh, fresh->lacking);
	sets_same(view, view->narrow, fresh, fresh->narrow);
	sets_same(view, view->marked, fresh, fresh->marked);
	sets_same(view, view->shrinking, fresh, fresh->shrinking);
	sets_same(view, view->chooses, fresh, fresh->chooses);
	sets_same(view, view->nodes_due, fresh, fresh->nodes_due);
	if (!view->space_stale) {
		space_verify(&view->space);
		CHECK(space_same(&view->space, &fresh->space));
		CHECK(view->usable_gpus == fresh->usable_gpus);
		CHECK(view->holders.buf.size == fresh->holders.buf.size &&
		      memcmp(view->holders.at, fresh->holders.at, view->holders.buf.size) == 0);
	}
	view_destroy(fresh);
}
