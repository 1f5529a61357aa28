/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps tasks from a place though each of them would fit somewhere: that they must lie apart, or have one model. And what a place was chosen for. */
#include "base/arena.h"
#include "core/explain/words.h"

static const char *one_model_summary(const struct words *w, const struct verdict *v)
{
	return arena_printf(
		w->arena,
		"needs %u tasks of %s, all on one model of GPU; of no model are more than "
		"%lld of %lld free",
		w->shape->tasks_min, words_task(w), (long long)v->have, (long long)v->need);
}

static const char *cpus_text(const struct words *w)
{
	uint32_t milli = w->shape->cpu_milli;

	return milli ? arena_printf(w->arena, " and %u.%03u processors", milli / 1000, milli % 1000)
		     : "";
}

static const char *alignment_summary(const struct words *w, const struct verdict *v)
{
	return arena_printf(
		w->arena,
		"needs %s%s%s on one NUMA node for each task%s; %lld of %lld tasks fit so",
		words_task(w), cpus_text(w),
		w->shape->align == ALIGN_NIC ? " and a network card" : "",
		w->never ? ", which this cluster has too few of even when idle" : "",
		(long long)v->have, (long long)v->need);
}

static const char *alignment_remedy(const struct words *w, const struct verdict *v)
{
	long long lacks = (long long)(v->need - v->have);

	if (w->never)
		return "fewer GPUs or processors per task, tasks that need no alignment, or nodes that say what their NUMA nodes have";
	return arena_printf(w->arena, "room on one NUMA node for each of %lld more task%s%s", lacks,
			    lacks == 1 ? "" : "s", words_next_end(w));
}

const char *words_fit_summary(const struct words *w, const struct verdict *v)
{
	const char *level = words_level(w, v->level);

	if (v->code == REASON_ALIGNMENT)
		return alignment_summary(w, v);
	if (v->code == REASON_FRAGMENTATION)
		return one_model_summary(w, v);
	return arena_printf(
		w->arena,
		w->never ? "needs %u tasks of %s, each in a %s of its own; even when all is "
			   "idle, %lld of %lld find one"
			 : "needs %u tasks of %s, each in a %s of its own; %lld of %lld find one",
		w->shape->tasks_min, words_task(w), level, (long long)v->have, (long long)v->need);
}

const char *words_fit_remedy(const struct words *w, const struct verdict *v)
{
	long long lacks = (long long)(v->need - v->have);

	if (v->code == REASON_ALIGNMENT)
		return alignment_remedy(w, v);
	if (v->code == REASON_FRAGMENTATION)
		return arena_printf(
			w->arena,
			"%s of one model free for each of %lld more task%s, or a gang that "
			"may mix models (mix_models)%s",
			words_gpus(w, w->shape->gpus), lacks, lacks == 1 ? "" : "s",
			words_next_end(w));
	if (w->never)
		return arena_printf(w->arena, "at most %lld tasks, or tasks that may lie together",
				    (long long)v->have);
	return arena_printf(w->arena, "room for a task in %lld more %s%s%s", lacks,
			    words_level(w, v->level), lacks == 1 ? "" : "s", words_next_end(w));
}

/* In the currency of the queue's budget, or of the first one above that has one. */
static const char *transfer_price(const struct words *w, int64_t micro)
{
	uint32_t queue = w->j->queue.v;

	if (!micro)
		return "";
	while (queue && !queue_get(w->facts, (struct queue_id){ queue })->currency.v &&
	       queue_get(w->facts, (struct queue_id){ queue })->parent.v)
		queue = queue_get(w->facts, (struct queue_id){ queue })->parent.v;
	return arena_printf(w->arena, " and costs %s", words_money(w, queue, micro));
}

const char *words_near(const struct words *w)
{
	const struct attempt *attempt = attempt_get(w->facts, w->j->last_attempt);
	char list[EVENT_TEXT_MAX + 1];
	const char *text = "";

	if (w->shape->data[0].v)
		text = arena_printf(w->arena,
				    "; %u of its %u tasks were placed where its data sets are (%s)",
				    attempt->near_data, attempt->tasks,
				    names_text(w->facts, w->shape->data, SHAPE_DATA_MAX, list));
	if (attempt->transfer_ms < 0)
		text = arena_printf(w->arena,
				    "%s; what it takes to bring them to its place is not known",
				    text);
	else if (attempt->transfer_ms || attempt->transfer_micro)
		text = arena_printf(w->arena, "%s; bringing them to its place takes about %s%s",
				    text, words_duration(w, attempt->transfer_ms),
				    transfer_price(w, attempt->transfer_micro));
	if (attempt->near_home)
		text = arena_printf(w->arena,
				    "%s; %u of %u were placed on nodes where it had run before",
				    text, attempt->near_home, attempt->tasks);
	return text;
}
