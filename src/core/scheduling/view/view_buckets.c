/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting jobs of one queue, rank, shape and class of run time stand in one bucket: a pass asks of a place once for all. */
#include "core/scheduling/view/view.h"

#include <string.h>

#include "base/check.h"
#include "core/model/roles.h"
#include "core/scheduling/life/pause.h"
#include "core/scheduling/order/arrays.h"
#include "core/scheduling/order/due.h"
#include "core/scheduling/queues/user_limit.h"

_Static_assert(BOOKINGS_MAX <= 64, "a bit for each");

/* Class of a run time: eighths of octaves, so that jobs of one bucket differ by an eighth at most. 0 = not declared. */
static uint8_t run_class_of(const struct job *job)
{
	int64_t ms = job->limit_ms ? job->limit_ms : job->estimate_ms;
	uint32_t octave;

	if (!ms)
		ms = (int64_t)job->likely_s * 1000;
	if (ms <= 0)
		return 0;
	octave = 63 - (uint32_t)__builtin_clzll((uint64_t)ms | 8);
	octave = octave > 33 ? 33 : octave; /* 2^33 ms are 99 days */
	return (uint8_t)((octave - 3) * UINT64_C(8) + (((uint64_t)ms >> (octave - 3)) & 7) + 1);
}

static int64_t least_share(const struct shape *shape)
{
	if (!shape_is_part(shape))
		return shape_gpus(shape, shape->tasks_min) * GPU_SHARE;
	return shape->gpu_part ? (int64_t)shape->gpu_part * shape->tasks_min : -1;
}

/* Reservations for people make jobs of one queue unlike. */
static uint64_t bookings_of(const struct facts *facts, const struct job *job)
{
	uint64_t rows = 0;

	for (uint32_t row = 1; row <= facts->bookings.count; row++) {
		const struct booking *b = booking_get(facts, row);

		if (booking_is_personal(b) && booking_is_for_person(b, job))
			rows |= UINT64_C(1) << (row - 1);
	}
	return rows;
}

static uint32_t bucket_hash(const struct bucket *b)
{
	uint64_t x = (b->rank ^ (uint64_t)b->queue << 40) * UINT64_C(0x9e3779b97f4a7c15) ^
		     ((uint64_t)b->work_class << 48 | (uint64_t)b->declared << 40 |
		      (uint64_t)b->shape << 8 | b->run_class);

	x ^= (b->booked ^ (uint64_t)b->pause_until_ms ^ (uint64_t)b->user << 32) *
	     UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(x ^ x >> 32);
}

static uint32_t *bucket_slot(struct view *view, const struct bucket *b)
{
	uint32_t slots = (uint32_t)(view->bucket_slots.buf.size / sizeof(uint32_t));

	return &view->bucket_slots.at[bucket_hash(b) & (slots - 1)];
}

static void bucket_slots_grow(struct view *view)
{
	uint32_t slots = (uint32_t)(view->bucket_slots.buf.size / sizeof(uint32_t));
	struct line_walk walk;

	if (view->buckets_used < slots)
		return;
	slots = slots ? slots * 2 : 64;
	array_resize(&view->bucket_slots.buf, slots, sizeof(uint32_t));
	memset(view->bucket_slots.at, 0, slots * sizeof(uint32_t));
	for (uint32_t q = 0; q < view->queues.buf.size / sizeof(struct queue_view); q++) {
		for (bool any = line_begin(&view->queues.at[q].line, &walk); any;
		     any = line_next(&walk)) {
			struct bucket *b = &view->buckets.at[walk.at->bucket];
			uint32_t *slot = bucket_slot(view, b);

			b->next = *slot;
			*slot = walk.at->bucket;
		}
	}
}

static struct line_entry bucket_entry(const struct bucket *b, uint32_t index)
{
	return (struct line_entry){ .rank = b->rank,
				    .due_ms = b->due_ms,
				    .job = b->first,
				    .bucket = index,
				    .shape = b->shape,
				    .work = b->work_class };
}

/* The bucket stands in its queue's line by its first job, and when that one is due; 0 = not in it. */
static void bucket_move(struct view *view, const struct facts *facts, uint32_t index,
			uint32_t first)
{
	struct bucket *b = &view->buckets.at[index];
	struct line *line = &view->queues.at[b->queue].line;
	struct line_entry entry = bucket_entry(b, index);
	int64_t due_ms =
		first ? work_due_ms(facts, job_get(facts, (struct job_id){ first })->submitted_ms,
				    b->work_class)
		      : 0;

	if (b->first == first && b->due_ms == due_ms)
		return;
	if (b->first)
		line_remove(line, &entry);
	b->first = first;
	b->due_ms = due_ms;
	entry = bucket_entry(b, index);
	if (first)
		line_add(line, &entry);
}

static uint32_t bucket_get(struct view *view, const struct bucket *wanted)
{
	uint32_t index, *slot;

	bucket_slots_grow(view);
	slot = bucket_slot(view, wanted);
	for (index = *slot; index; index = view->buckets.at[index].next) {
		const struct bucket *b = &view->buckets.at[index];

		if (b->queue == wanted->queue && b->rank == wanted->rank &&
		    b->shape == wanted->shape && b->run_class == wanted->run_class &&
		    b->declared == wanted->declared && b->booked == wanted->booked &&
		    b->user == wanted->user && b->work_class == wanted->work_class &&
		    b->pause_until_ms == wanted->pause_until_ms)
			return index;
	}
	index = view->bucket_free;
	if (index)
		view->bucket_free = view->buckets.at[index].next;
	else
		index = ++view->bucket_count;
	if (view->buckets.buf.size <= index * sizeof(struct bucket))
		array_resize(&view->buckets.buf, (size_t)index * 2 + 64, sizeof(struct bucket));
	view->buckets.at[index] = *wanted;
	view->buckets.at[index].next = *slot;
	*slot = index;
	view->buckets_used++;
	return index;
}

void view_shape_count(struct view *view, uint32_t shape, bool more)
{
	array_ensure(&view->shape_jobs.buf, (size_t)shape + 1, sizeof(uint32_t));
	CHECK(more || view->shape_jobs.at[shape]);
	view->shape_jobs.at[shape] += more ? 1 : UINT32_MAX;
}

/* One job more waits in the bucket, or one less. */
static void bucket_count(struct view *view, const struct bucket *b, int32_t more)
{
	struct queue_view *queue = &view->queues.at[b->queue];
	uint8_t tier = (uint8_t)(b->rank >> 32);
	uint32_t others = 0;

	view_shape_count(view, b->shape, more > 0);
	view->waits += (uint32_t)more;
	queue->waits[tier] += (uint32_t)more;
	queue->waits_timed += b->timed ? (uint32_t)more : 0;
	if (b->share < 0)
		queue->waits_odd += (uint32_t)more;
	else
		queue->wait[tier] += more * b->share;
	if (tier != TIER_BEST_EFFORT) {
		queue->wait_beside.cpu_milli += more * b->beside.cpu_milli;
		queue->wait_beside.ram_mib += more * b->beside.ram_mib;
	}
	for (uint32_t i = 0; i < TIERS; i++)
		others += queue->waits[i];
	if (!others)
		queue->widest = 0;
	else if (more > 0 && b->share > queue->widest)
		queue->widest = b->share;
}

static void bucket_enter(struct view *view, const struct facts *facts, uint32_t index, uint32_t job)
{
	struct bucket *b = &view->buckets.at[index];

	sorted_add(&view->pool, &b->jobs, job, job);
	bucket_count(view, b, 1);
	if (!b->first || job < b->first)
		bucket_move(view, facts, index, job);
}

static void bucket_leave(struct view *view, const struct facts *facts, uint32_t index, uint32_t job)
{
	struct bucket *b = &view->buckets.at[index];
	uint32_t *link, first = 0;

	sorted_remove(&view->pool, &b->jobs, job, job);
	bucket_count(view, b, -1);
	if (job == b->first) {
		(void)sorted_first(&view->pool, b->jobs, NULL, &first);
		bucket_move(view, facts, index, first);
	}
	if (b->jobs)
		return;
	for (link = bucket_slot(view, b); *link != index; link = &view->buckets.at[*link].next)
		CHECK(*link != 0);
	*link = b->next;
	b->next = view->bucket_free;
	view->bucket_free = index;
	view->buckets_used--;
}

void view_demand(struct view *view, const struct facts *facts, struct arena *arena)
{
	demand_set(&view->space, facts, view->shape_jobs.at,
		   (uint32_t)(view->shape_jobs.buf.size / sizeof(uint32_t)), arena);
}

static uint16_t work_class_of(const struct facts *facts, const struct job *job)
{
	return facts->policy.patience || facts->policy.take_turns
		       ? (uint16_t)job_work_class(facts, job, 0)
		       : 0;
}

void view_order_sync(struct view *view, const struct facts *facts)
{
	for (uint32_t id = 1; id <= view->job_count; id++)
		if (job_view_get(view, id)->bucket)
			view_wait_sync(view, facts, id);
	for (uint32_t i = 1; i <= view->bucket_count; i++)
		if (view->buckets.at[i].first)
			bucket_move(view, facts, i, view->buckets.at[i].first);
}

void view_wait_sync(struct view *view, const struct facts *facts, uint32_t id)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	struct job_view *jv = job_view_edit(view, id);
	const struct shape *shape = shape_get(facts, job->shape);
	struct bucket wanted = { .rank = job_rank(job),
				 .share = least_share(shape),
				 .beside = { shape_cpu_milli(shape, shape->tasks_min),
					     shape_memory_mib(shape, shape->tasks_min) },
				 .queue = job->queue.v,
				 .shape = job->shape.v,
				 .run_class = run_class_of(job),
				 .work_class = work_class_of(facts, job),
				 .declared = job->limit_ms > 0,
				 .pause_until_ms = job_pause_until_ms(facts, job),
				 .booked = bookings_of(facts, job),
				 .user = view->user_limits && path_limits_users(facts, job->queue)
						 ? job->user.v
						 : 0 };
	bool waits = job_may_start(job) && jv->array != ARRAY_BACK;
	uint32_t bucket = 0;

	wanted.timed = shape->window.v || wanted.pause_until_ms;
	if (waits)
		bucket = bucket_get(view, &wanted);
	if (bucket == jv->bucket)
		return;
	if (jv->bucket) /* first: the job must not stand in a line twice */
		bucket_leave(view, facts, jv->bucket, id);
	if (bucket)
		bucket_enter(view, facts, bucket, id);
	jv->bucket = bucket;
}
