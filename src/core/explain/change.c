/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest change that would let a job start. The changed world is a frozen copy of the facts to which the change is
 * applied, mostly as the events that would make it; the view follows the copy, the same pass as ever decides, and then the
 * view follows the facts themselves again. Nothing here reasons about places or shares: it tries, and asks.
 *
 *	1. why does it wait? Take that cause away, ask again; until nothing keeps it		-> all causes, in order
 *	2. leave out each part without which it starts all the same				-> the smallest change
 *
 * Example: job 7 is held, its queue is at its limit of 4, and all GPUs are taken by jobs 2 (of the same queue) and 3.
 *
 *	held		released
 *	quota_limit	released, limit 5
 *	capacity	released, limit 5, jobs 2 and 3 end	starts
 *	without the limit: starts, as job 2 gives it room. Without job 3: starts. Without job 2: it does not.
 *	So: releasing it and the end of job 2. Three causes, two parts.
 *
 * Few parts are searched by their number, so that not even a part of another set suffices; many by leaving out ever smaller
 * runs of them.
 */
#include "core/explain/trial.h"

enum { SUBSET_PARTS = 5 }; /* so many parts are searched by all their subsets */
#define TRY_MEMORY ((size_t)1 << 30)

/* --- the smallest --------------------------------------------------------------------------------------------------------- */

static void parts_keep(struct parts *parts, uint64_t which)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < parts->count; i++)
		if (i >= 64 || which >> i & 1)
			parts->at[kept++] = parts->at[i];
	parts->count = kept;
}

/* All subsets, by their number of parts. */
static void subsets_search(struct trial *t, struct parts *parts)
{
	for (int size = 1; size < (int)parts->count; size++) {
		for (uint64_t which = 1; which < UINT64_C(1) << parts->count; which++) {
			if (__builtin_popcountll(which) == size && starts_with(t, parts, which)) {
				parts_keep(parts, which);
				return;
			}
		}
	}
}

/* Leaves out runs of `run` parts, the last ones first. True when any was left out. */
static bool runs_leave_out(struct trial *t, struct parts *parts, uint32_t run)
{
	struct parts *without = arena_new(t->work_memory, struct parts);
	bool any = false;

	for (uint32_t end = parts->count; end > 0; end -= end < run ? end : run) {
		uint32_t first = end < run ? 0 : end - run;

		*without = *parts;
		memmove(&without->at[first], &without->at[end],
			(parts->count - end) * sizeof(without->at[0]));
		without->count -= end - first;
		if (without->count && starts_with(t, without, UINT64_MAX)) {
			*parts = *without;
			any = true;
		}
	}
	return any;
}

static void parts_minimise(struct trial *t, struct parts *parts)
{
	for (uint32_t run = parts->count / 2; parts->count > SUBSET_PARTS && run > 0;)
		if (!runs_leave_out(t, parts, run))
			run = run == 1 ? 0 : (run + 1) / 2;
	if (parts->count <= SUBSET_PARTS)
		subsets_search(t, parts);
}

/* --- entrance ----------------------------------------------------------------------------------------------------------------- */

static bool reason_is_of_room(uint16_t code)
{
	return code == REASON_CAPACITY || code == REASON_FRAGMENTATION || code == REASON_TOPOLOGY ||
	       code == REASON_SHARING || code == REASON_CPU || code == REASON_RAM ||
	       code == REASON_RESERVATION || code == REASON_PARTITION;
}

static void cause_note(struct trial *t, const struct verdict *v, struct explain_change *ret)
{
	const char *text = words_summary(&t->words, v);

	/* What is still lacking of a place is the same cause once more. */
	for (uint32_t i = 0; i < ret->cause_count; i++)
		if (ret->causes[i].code == v->code &&
		    (reason_is_of_room(v->code) || strcmp(ret->causes[i].text, text) == 0))
			return;
	ret->causes[ret->cause_count++] =
		(struct explain_line){ .code = v->code, .text = arena_strdup(t->arena, text) };
}

/* True when the parts let it start. */
static bool causes_find(struct trial *t, struct parts *parts, struct explain_change *ret)
{
	for (uint32_t round = 0; round < CAUSES_MAX && !trial_is_spent(t); round++) {
		struct verdict v;

		trial_begin(t, parts, UINT64_MAX);
		if (!trial_reason(t, &v)) {
			trial_end(t);
			return true;
		}
		cause_note(t, &v, ret);
		if (!cause_answer(t, &v, parts))
			return false;
	}
	return false;
}

void explain_change(const struct facts *facts, struct view *view, struct job_id id,
		    struct arena *arena, struct explain_change *ret)
{
	const struct job *job = job_get(facts, id);
	struct arena work;
	struct trial *t;
	struct parts *parts;

	*ret = (struct explain_change){ .text = "" };
	if (job_state_is_final(job->state) || job_is_live(job) || job->promise)
		return;
	view_refresh(view, facts);
	arena_init(&work, TRY_MEMORY);
	t = arena_new(&work, struct trial);
	parts = arena_new(&work, struct parts);
	t->facts = facts;
	t->view = view;
	t->arena = arena;
	t->work_memory = &work;
	t->job = id.v;
	standings_make(&t->before, facts, view, &work);
	arena_init(&t->scratch, TRY_MEMORY);
	if (causes_find(t, parts, ret) && ret->cause_count) {
		t->undecided = false;
		parts_minimise(t, parts);
		ret->smallest = !trial_is_spent(t) && !t->undecided;
		change_tell(t, parts, ret);
	}
	arena_deinit(&t->scratch);
	arena_deinit(&work);
}
