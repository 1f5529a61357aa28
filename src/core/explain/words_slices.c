/* SPDX-License-Identifier: Apache-2.0 */
/* What a job that wants a slice lacks, and what would help; why one that wants none may not have a GPU that is there for slices. */
#include "base/arena.h"
#include "core/explain/words.h"
#include "core/partitioning/geometry.h"

const char *words_slice(const struct words *w)
{
	char text[SLICE_TEXT_MAX];

	return arena_printf(w->arena, "a slice %s", slice_wish_text(w->shape->slice, text));
}

static const char *slices_text(const struct words *w)
{
	char text[SLICE_TEXT_MAX];

	if (w->shape->tasks_min == 1)
		return words_slice(w);
	return arena_printf(w->arena, "%u slices %s", w->shape->tasks_min,
			    slice_wish_text(w->shape->slice, text));
}

const char *words_slice_summary(const struct words *w, const struct verdict *v)
{
	if (v->level == TRAIT_SLICES)
		return words_slice_trait(w, "the nodes that suit it otherwise");
	if (v->need == 1)
		return arena_printf(w->arena, "needs %s; none is free", slices_text(w));
	return arena_printf(w->arena, "needs %s; %lld %s free", slices_text(w), (long long)v->have,
			    v->have == 1 ? "is" : "are");
}

const char *words_slice_trait(const struct words *w, const char *others)
{
	if (!w->shape->slice)
		return arena_printf(
			w->arena,
			"wants GPUs as a whole or in parts, and %s are there for slices alone",
			others);
	return arena_printf(w->arena, "needs %s, into which none of %s can be cut", words_slice(w),
			    others);
}

const char *words_slice_remedy(const struct words *w, const struct verdict *v)
{
	char text[SLICE_TEXT_MAX];

	if (v->level == TRAIT_SLICES && !w->shape->slice)
		return "asking for a slice, or an admin: fairlead nodes set NODE --slices-only no";
	if (v->level == TRAIT_SLICES)
		return "a slice that GPUs of this cluster have (`fairlead gpus -o wide`), or a whole GPU";
	return arena_printf(
		w->arena,
		"%lld more free slice%s %s: cut from an idle GPU by an admin (`fairlead gpus cut NODE/INDEX --slices ...`), or by Fairlead where "
		"`fairlead nodes set NODE --partitioning auto` allows it%s",
		(long long)(v->need - v->have), v->need - v->have == 1 ? "" : "s",
		slice_wish_text(w->shape->slice, text), words_next_end(w));
}
