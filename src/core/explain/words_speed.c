/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of places that are slower than a job accepts. */
#include "core/explain/words.h"
#include "core/fabric/fabric.h"

const char *words_percent(struct arena *arena, int64_t permille)
{
	if (permille % 10 == 0)
		return arena_printf(arena, "%lld %%", (long long)(permille / 10));
	return arena_printf(arena, "%lld.%lld %%", (long long)(permille / 10),
			    (long long)(permille % 10));
}

/* There is no way at all: hosts without cards, as far as is known. */
static bool no_way(const struct verdict *v)
{
	return v->have >= FABRIC_SLOWDOWN_MAX - 1000;
}

const char *words_speed_summary(const struct words *w, const struct verdict *v)
{
	if (no_way(v))
		return arena_printf(
			w->arena,
			"would fit, but between those nodes no network is described; it accepts steps that take %s longer than on the best place",
			words_percent(w->arena, v->need));
	return arena_printf(
		w->arena,
		"would fit, but its steps would take %s longer there than on the best place, and it accepts %s",
		words_percent(w->arena, v->have), words_percent(w->arena, v->need));
}

const char *words_speed_remedy(const struct words *w, const struct verdict *v)
{
	if (no_way(v))
		return "cards of the nodes in `fairlead fabric set`, or topology.max_slowdown 99900%, with which it starts anywhere";
	return arena_printf(
		w->arena,
		"accepting a slowdown of %s (topology.max_slowdown), or GPUs that come free closer together%s",
		words_percent(w->arena, v->have), words_next_end(w));
}
