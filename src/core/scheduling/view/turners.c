/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/view/turners.h"

#include <string.h>

#include "base/check.h"
#include "core/scheduling/order/due.h"
#include "core/scheduling/view/view.h"

static uint32_t slots_of(const struct view *view)
{
	return (uint32_t)(view->turner_slots.buf.size / sizeof(uint32_t));
}

/* By queue and rank alone: whoever asks wants all groups of both. */
static uint32_t slot_of(const struct view *view, uint32_t queue, uint64_t rank)
{
	uint64_t x = (rank ^ (uint64_t)queue << 40) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(x ^ x >> 32) & (slots_of(view) - 1);
}

static void slots_grow(struct view *view)
{
	uint32_t slots = slots_of(view);

	if (view->turner_groups_used < slots)
		return;
	slots = slots ? slots * 2 : 16;
	array_resize(&view->turner_slots.buf, slots, sizeof(uint32_t));
	memset(view->turner_slots.at, 0, slots * sizeof(uint32_t));
	for (uint32_t i = 1; i <= view->turner_group_count; i++) {
		struct turner_group *group = &view->turner_groups.at[i];
		uint32_t *slot;

		if (!group->members)
			continue;
		slot = &view->turner_slots.at[slot_of(view, group->queue, group->rank)];
		group->next = *slot;
		*slot = i;
	}
}

/* The group number `at` of a chain, or the next one behind it of that queue and rank. */
static uint32_t chain_find(const struct view *view, uint32_t at, uint32_t queue, uint64_t rank)
{
	while (at && (view->turner_groups.at[at].queue != queue ||
		      view->turner_groups.at[at].rank != rank))
		at = view->turner_groups.at[at].next;
	return at;
}

uint32_t turners_first(const struct view *view, uint32_t queue, uint64_t rank)
{
	if (!slots_of(view))
		return 0;
	return chain_find(view, view->turner_slots.at[slot_of(view, queue, rank)], queue, rank);
}

uint32_t turners_next(const struct view *view, uint32_t group)
{
	const struct turner_group *at = &view->turner_groups.at[group];

	return chain_find(view, at->next, at->queue, at->rank);
}

static uint32_t group_add(struct view *view, const struct turner_group *wanted)
{
	uint32_t index, *slot;

	slots_grow(view);
	index = view->turner_group_free;
	if (index)
		view->turner_group_free = view->turner_groups.at[index].next;
	else
		index = ++view->turner_group_count;
	array_ensure(&view->turner_groups.buf, (size_t)index + 1, sizeof(*wanted));
	slot = &view->turner_slots.at[slot_of(view, wanted->queue, wanted->rank)];
	view->turner_groups.at[index] = *wanted;
	view->turner_groups.at[index].next = *slot;
	*slot = index;
	view->turner_groups_used++;
	return index;
}

static uint32_t group_get(struct view *view, const struct turner_group *wanted)
{
	for (uint32_t i = turners_first(view, wanted->queue, wanted->rank); i;
	     i = turners_next(view, i))
		if (view->turner_groups.at[i].share == wanted->share &&
		    view->turner_groups.at[i].says == wanted->says)
			return i;
	return group_add(view, wanted);
}

static void group_drop(struct view *view, uint32_t index)
{
	struct turner_group *group = &view->turner_groups.at[index];
	uint32_t *link = &view->turner_slots.at[slot_of(view, group->queue, group->rank)];

	for (; *link != index; link = &view->turner_groups.at[*link].next)
		CHECK(*link != 0);
	*link = group->next;
	group->next = view->turner_group_free;
	view->turner_group_free = index;
	view->turner_groups_used--;
}

/* --- who ------------------------------------------------------------------------------------------------------ */

static bool job_is_turner(const struct facts *facts, const struct job *job,
			  const struct attempt *attempt)
{
	return job->tier == TIER_STANDARD && job->checkpoints && attempt->state == ATTEMPT_ACTIVE &&
	       !attempt->exited && !attempt_is_leaving(attempt) &&
	       attempt_may_be_evicted(attempt) && !attempt_has_surplus(facts, job, attempt);
}

static uint8_t says_of(const struct job *job)
{
	return job->estimate_ms ? SAYS_ESTIMATE : job->limit_ms ? SAYS_LIMIT : SAYS_NOTHING;
}

static uint64_t key_of(const struct job *job, const struct attempt *attempt)
{
	int64_t said_ms = job->estimate_ms ? job->estimate_ms : job->limit_ms;

	return turner_key_of(attempt->released_ms - job->run_ms + said_ms);
}

static uint64_t begin_key(const struct facts *facts, const struct job_view *jv, uint32_t id)
{
	return jv->turner_key - (uint64_t)job_get(facts, (struct job_id){ id })->estimate_ms;
}

void turner_leave(struct view *view, const struct facts *facts, uint32_t id)
{
	struct job_view *jv = job_view_edit(view, id);
	struct turner_group *group = &view->turner_groups.at[jv->turner_group];

	if (!jv->turner_group)
		return;
	sorted_remove(&view->pool, &group->members, jv->turner_key, id);
	if (group->says == SAYS_ESTIMATE)
		sorted_remove(&view->pool, &group->by_begin, begin_key(facts, jv, id), id);
	if (!group->members)
		group_drop(view, jv->turner_group);
	jv->turner_group = 0;
	jv->turner_key = 0;
}

void turner_sync(struct view *view, const struct facts *facts, uint32_t id)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(facts, job->attempt);
	struct job_view *jv = job_view_edit(view, id);
	struct turner_group wanted = { .rank = jv->rank, .queue = jv->queue };
	struct turner_group *group = &view->turner_groups.at[jv->turner_group];
	uint64_t key;

	if (!job_is_turner(facts, job, attempt)) {
		turner_leave(view, facts, id);
		return;
	}
	wanted.share = job_work_share(facts, job);
	wanted.says = says_of(job);
	key = key_of(job, attempt);
	if (jv->turner_group && jv->turner_key == key && group->rank == wanted.rank &&
	    group->queue == wanted.queue && group->share == wanted.share &&
	    group->says == wanted.says)
		return;
	turner_leave(view, facts, id);
	jv->turner_group = group_get(view, &wanted);
	jv->turner_key = key;
	group = &view->turner_groups.at[jv->turner_group];
	sorted_add(&view->pool, &group->members, key, id);
	if (group->says == SAYS_ESTIMATE)
		sorted_add(&view->pool, &group->by_begin, begin_key(facts, jv, id), id);
}
