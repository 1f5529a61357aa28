/* SPDX-License-Identifier: Apache-2.0 */
/* What is let in is a function of the facts: the first of those that wait, by falling rank, then by number. */
#include "core/scheduling/order/arrays.h"

#include <string.h>

#include "base/check.h"

static uint64_t falling(uint64_t rank)
{
	return UINT64_MAX - rank;
}

/* Where the submission's array is, or belongs. */
static uint32_t array_at(const struct view *view, uint32_t body)
{
	uint32_t first = 0, end = view->array_count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (view->arrays.at[middle].body < body)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

static struct array_view *array_find(const struct view *view, uint32_t body)
{
	uint32_t at = array_at(view, body);

	return at < view->array_count && view->arrays.at[at].body == body ? &view->arrays.at[at]
									  : NULL;
}

/* Arrays come in the order of their submissions, so a new one is the last but for a rare one that was empty. */
static struct array_view *array_make(struct view *view, uint32_t body)
{
	uint32_t at = array_at(view, body);
	struct array_view *a;

	if (view->arrays.buf.size <= view->array_count * sizeof(*a))
		array_resize(&view->arrays.buf, (size_t)view->array_count * 2 + 16, sizeof(*a));
	a = &view->arrays.at[at];
	memmove(a + 1, a, (view->array_count++ - at) * sizeof(*a));
	*a = (struct array_view){ .body = body };
	return a;
}

static void array_drop(struct view *view, struct array_view *a)
{
	uint32_t at = (uint32_t)(a - view->arrays.at);

	memmove(a, a + 1, (--view->array_count - at) * sizeof(*a));
}

static uint32_t limit_of(const struct facts *facts, const struct job *job)
{
	return job->body ? ((const struct body *)table_get(&facts->bodies, job->body))->array_limit
			 : 0;
}

static uint32_t *root_of(struct array_view *a, uint8_t place)
{
	return place == ARRAY_OPEN ? &a->open : &a->back;
}

static void member_move(struct view *view, const struct facts *facts, struct array_view *a,
			uint32_t id, uint8_t to)
{
	struct job_view *jv = job_view_edit(view, id);

	sorted_remove(&view->pool, root_of(a, jv->array), falling(jv->rank), id);
	sorted_add(&view->pool, root_of(a, to), falling(jv->rank), id);
	jv->array = to;
	view_wait_sync(view, facts, id);
}

/* The first, or last, of those in a set. */
static uint32_t member_at(const struct view *view, uint32_t root, bool last)
{
	const struct sorted_node *nodes = view->pool.nodes.at;

	while (last ? nodes[root].right : nodes[root].left)
		root = last ? nodes[root].right : nodes[root].left;
	return nodes[root].id;
}

static bool member_is_before(const struct view *view, uint32_t a, uint32_t b)
{
	uint64_t rank_a = job_view_get(view, a)->rank, rank_b = job_view_get(view, b)->rank;

	return rank_a != rank_b ? rank_a > rank_b : a < b;
}

/* Lets in as many as there is room for, and the first ones. */
static void array_level(struct view *view, const struct facts *facts, struct array_view *a,
			uint32_t limit)
{
	uint32_t room = limit > a->held ? limit - a->held : 0;

	while (sorted_size(&view->pool, a->open) > room)
		member_move(view, facts, a, member_at(view, a->open, true), ARRAY_BACK);
	while (sorted_size(&view->pool, a->open) < room && a->back)
		member_move(view, facts, a, member_at(view, a->back, false), ARRAY_OPEN);
	while (a->open && a->back) {
		uint32_t last = member_at(view, a->open, true),
			 first = member_at(view, a->back, false);

		if (member_is_before(view, last, first))
			return;
		member_move(view, facts, a, last, ARRAY_BACK);
		member_move(view, facts, a, first, ARRAY_OPEN);
	}
}

void array_leave(struct view *view, const struct facts *facts, uint32_t id)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	struct job_view *jv = job_view_edit(view, id);

	if (!jv->array || (job_may_start(job) && jv->rank == job_rank(job) && limit_of(facts, job)))
		return;
	sorted_remove(&view->pool, root_of(array_find(view, job->body), jv->array),
		      falling(jv->rank), id);
	jv->array = ARRAY_NONE;
}

/* Its array has no limit any more. */
static void array_unlimited(struct view *view, const struct job *job, uint32_t id)
{
	struct job_view *jv = job_view_edit(view, id);
	struct array_view *a = array_find(view, job->body);

	if (!a)
		return;
	a->held -= jv->array_holds;
	jv->array_holds = false;
	if (!a->held && !a->open && !a->back)
		array_drop(view, a);
}

void array_enter(struct view *view, const struct facts *facts, uint32_t id)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	struct job_view *jv = job_view_edit(view, id);
	bool holds = job->attempt.v || job->promise, waits = job_may_start(job);
	uint32_t limit = limit_of(facts, job);
	struct array_view *a;

	if (!limit) {
		array_unlimited(view, job, id);
		return;
	}
	a = array_find(view, job->body);
	if (!a && !holds && !waits)
		return;
	a = a ? a : array_make(view, job->body);
	a->held += holds;
	a->held -= jv->array_holds;
	jv->array_holds = holds;
	if (waits && !jv->array) {
		jv->rank = job_rank(job);
		jv->array = ARRAY_BACK;
		sorted_add(&view->pool, &a->back, falling(jv->rank), id);
	}
	array_level(view, facts, a, limit);
	if (!a->held && !a->open && !a->back)
		array_drop(view, a);
}

struct verdict array_verdict(const struct facts *facts, const struct view *view, uint32_t id)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	const struct array_view *a = array_find(view, job->body);
	struct verdict v = { .code = REASON_ARRAY_LIMIT, .need = limit_of(facts, job) };
	int64_t end_ms = 0;

	CHECK(a); /* one of its jobs is kept back */
	v.have = a->held;
	for (uint32_t other = job->array_first; other < job->array_first + job->array_count;
	     other++) {
		const struct job_view *jv = job_view_get(view, other);

		if (!jv->array_holds && jv->array != ARRAY_OPEN)
			continue;
		if (v.holder.v && (!jv->end_ms || (end_ms && jv->end_ms >= end_ms)))
			continue;
		v.holder.v = other;
		end_ms = jv->end_ms;
	}
	return v;
}
