/* SPDX-License-Identifier: Apache-2.0 */
/* What a job that wants parts of GPUs wants, lacks, and what would help. */
#include "base/arena.h"
#include "core/explain/words.h"
#include "core/model/gpu_wish.h"

const char *words_task(const struct words *w)
{
	const struct shape *shape = w->shape;
	const struct gpu_wish wish = { 1, shape->gpu_part };
	char text[GPU_WISH_TEXT_MAX];

	if (shape->slice)
		return words_slice(w);
	if (shape->gpu_part_mib)
		return arena_printf(w->arena, "%u MiB of a GPU", shape->gpu_part_mib);
	if (shape->gpu_part)
		return arena_printf(w->arena, "%s of a GPU", gpu_wish_text(&wish, text));
	return words_gpus(w, shape->gpus);
}

static const char *tasks_text(const struct words *w)
{
	if (w->shape->tasks_min == 1)
		return words_task(w);
	return arena_printf(w->arena, "%u tasks of %s", w->shape->tasks_min, words_task(w));
}

/* "", "; of 4 tasks 2 fit": nothing for a single one. */
static const char *fitting_text(const struct words *w, const struct verdict *v)
{
	if (v->need == 1)
		return "";
	return arena_printf(w->arena, ": %lld of %lld tasks fit", (long long)v->have,
			    (long long)v->need);
}

const char *words_part_summary(const struct words *w, const struct verdict *v)
{
	if (v->code == REASON_CAPACITY)
		return arena_printf(w->arena, "needs %s; so much of one is not free%s",
				    tasks_text(w), fitting_text(w, v));
	if (v->code == REASON_FRAGMENTATION)
		return arena_printf(
			w->arena,
			"needs %s; so much is free in all, but spread over GPUs that have too little each%s",
			tasks_text(w), fitting_text(w, v));
	return arena_printf(
		w->arena,
		"needs %s; where that is free, the GPU is shared by work of others, beside which it may not run%s",
		tasks_text(w), fitting_text(w, v));
}

const char *words_part_remedy(const struct words *w, const struct verdict *v)
{
	if (v->code != REASON_SHARING)
		return arena_printf(w->arena, "%s free for each of %lld more task%s%s",
				    words_task(w), (long long)(v->need - v->have),
				    v->need - v->have == 1 ? "" : "s", words_next_end(w));
	return arena_printf(
		w->arena,
		"a GPU that is free or shared by work of its own team, or policy share_gpus (now \"%s\")%s",
		share_gpus_name(w->facts->policy.share_gpus), words_next_end(w));
}
