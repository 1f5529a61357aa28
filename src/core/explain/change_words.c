/* SPDX-License-Identifier: Apache-2.0 */
/* A change in words. */
#include "base/parse.h"
#include "core/explain/trial.h"
#include "core/partitioning/geometry.h"
#include "core/scheduling/admit/admit.h"

static const char *duration_text(struct arena *arena, int64_t ms)
{
	char text[DURATION_TEXT_MAX];

	return arena_strdup(arena, format_duration(ms, text));
}

static const char *size_text(struct arena *arena, int64_t mib)
{
	char text[DURATION_TEXT_MAX];

	return arena_strdup(arena, format_size_mib(mib, text));
}

static const char *node_text(const struct words *w, uint32_t id)
{
	return facts_name(w->facts, node_get(w->facts, (struct node_id){ id })->name);
}

static const char *queue_text(const struct words *w, uint32_t id)
{
	return facts_name(w->facts, queue_get(w->facts, (struct queue_id){ id })->name);
}

static const char *job_ends_text(const struct words *w, uint32_t id)
{
	for (uint32_t row = w->j->depends; row;) {
		const struct depend *depend = table_get(&w->facts->depends, row);
		uint32_t jobs =
			depend->whole
				? job_get(w->facts, (struct job_id){ depend->job })->array_count
				: 1;

		if (id >= depend->job && id < depend->job + jobs)
			return arena_printf(w->arena, "the success of %s", words_job(w, id));
		row = depend->next;
	}
	return arena_printf(w->arena, "the end of %s", words_job(w, id));
}

static const char *trait_text(const struct words *w, const struct change_part *part)
{
	char version[VERSION_TEXT_MAX];
	uint32_t value = (uint32_t)part->value;

	if (part->id == TRAIT_DRIVER && value)
		return arena_printf(w->arena, "asking for driver %s", version_text(value, version));
	if (part->id == TRAIT_CUDA && value)
		return arena_printf(w->arena, "asking for CUDA %s", version_text(value, version));
	if (part->id == TRAIT_CAPABILITY && value)
		return arena_printf(w->arena, "asking for compute capability %u.%u", value / 10,
				    value % 10);
	if (part->id == TRAIT_SPEED && value)
		return arena_printf(w->arena, "a min_throughput of at most %u.%03u", value / 1000,
				    value % 1000);
	switch ((enum trait)part->id) {
	case TRAIT_DRIVER: return "asking for no driver version";
	case TRAIT_CUDA: return "asking for no CUDA version";
	case TRAIT_CAPABILITY: return "asking for no compute capability";
	case TRAIT_REGION: return "running in any region";
	case TRAIT_LABEL: return "asking for no labels";
	case TRAIT_MASK: return "running on any node (the pod asks for less)";
	case TRAIT_CLASS:
		return "nodes of class \"any\" (an admin: `fairlead nodes set NODE --class any`)";
	case TRAIT_SPEED: return "asking for no throughput";
	case TRAIT_CAPACITY: return "running on spot nodes and on others (capacity: any)";
	case TRAIT_NONE:
	case TRAIT_MODEL:
	case TRAIT_SLICES:
	case TRAIT_MEMORY:
	case TRAIT_TAINT:
	case TRAIT_END: break;
	}
	return "";
}

/* Of a part that is about one role. */
static const char *role_text(const struct words *w, const struct change_part *part)
{
	return part->id ? arena_printf(w->arena, "%s ", words_role(w, part->id - 1)) : "";
}

/* Where only an admin cuts GPUs, both ways; Fairlead then cuts what is asked for. */
static const char *cut_text(const struct words *w, const struct change_part *part)
{
	const struct node *node = node_get(w->facts, (struct node_id){ cut_node(part->id) });
	const char *name = facts_name(w->facts, node->name);
	const struct geometry *geometry =
		geometry_of(facts_name(w->facts, node->model), node->gpu_memory_mib);
	char slices[LAYOUT_TEXT_MAX];

	layout_text(geometry, (uint32_t)part->value, slices);
	return arena_printf(
		w->arena,
		"GPU %s/%u cut into %s (an admin: %s`fairlead nodes set %s --partitioning auto`)",
		name, cut_gpu(part->id), slices,
		node->partitioning == PARTITIONING_OFF
			? ""
			: arena_printf(
				  w->arena,
				  "`fairlead gpus cut %s/%u --slices %s`, or for this and later ones ",
				  name, cut_gpu(part->id), slices),
		name);
}

static const char *part_text(const struct words *w, const struct change_part *part)
{
	struct arena *a = w->arena;
	long long value = (long long)part->value;

	switch (part->kind) {
	case CHANGE_RELEASE: return arena_printf(a, "its release (`fairlead release %u`)", w->job);
	case CHANGE_JOB_ENDS: return job_ends_text(w, part->id);
	case CHANGE_LIMIT:
		return arena_printf(a, "a limit of %s for queue \"%s\" (now %s)",
				    words_share(w, part->value), queue_text(w, part->id),
				    share_text(a, queue_get(w->facts, (struct queue_id){ part->id })
							  ->limit_share));
	case CHANGE_LEND:
		return arena_printf(a, "queue \"%s\" lending its reserved guarantee",
				    queue_text(w, part->id));
	case CHANGE_UNBOUND:
		return arena_printf(a,
				    "queue \"%s\" without limits of models, processors and memory",
				    queue_text(w, part->id));
	case CHANGE_USERS:
		return arena_printf(a, "queue \"%s\" without a limit per user",
				    queue_text(w, part->id));
	case CHANGE_CALENDAR:
		return arena_printf(a, "queue \"%s\" without its calendar",
				    queue_text(w, part->id));
	case CHANGE_STANDARD: return "tier standard instead of critical";
	case CHANGE_NODE_READY:
		return arena_printf(a, "node \"%s\" being ready", node_text(w, part->id));
	case CHANGE_GPUS_BACK:
		return arena_printf(a, "%s of node \"%s\" taken back into use",
				    words_gpus(w, __builtin_popcountll((uint64_t)part->value)),
				    node_text(w, part->id));
	case CHANGE_MODELS: return "accepting any model of GPU";
	case CHANGE_GPU_MEMORY:
		return part->value ? arena_printf(a, "asking for at most %s of GPU memory",
						  size_text(a, part->value))
				   : "asking for no GPU memory in particular";
	case CHANGE_CPU:
		return arena_printf(a, "%sasking for at most %lld.%03lld processors per task",
				    role_text(w, part), value / 1000, value % 1000);
	case CHANGE_RAM:
		return arena_printf(a, "%sasking for at most %s of memory per task",
				    role_text(w, part),
				    part->value ? size_text(a, part->value) : "0");
	case CHANGE_LEVEL:
		return part->value ? arena_printf(a, "requiring one %s only",
						  words_level(w, (uint8_t)part->value))
				   : "requiring no level of the topology";
	case CHANGE_TASKS:
		return arena_printf(a, "%sasking for %lld task%s", role_text(w, part), value,
				    value == 1 ? "" : "s");
	case CHANGE_GPUS:
		return arena_printf(a, "%sasking for %s per task", role_text(w, part),
				    words_gpus(w, value));
	case CHANGE_RUN_LIMIT:
		return arena_printf(
			a, "declaring a run-time limit of %s (`fairlead change %u --limit %s`)",
			duration_text(a, part->value), w->job, duration_text(a, part->value));
	case CHANGE_TRAIT: return trait_text(w, part);
	case CHANGE_TOLERATE:
		return arena_printf(a, "tolerating the taint %s",
				    facts_name(w->facts, (struct name_id){ part->id }));
	case CHANGE_BOOKING:
		return arena_printf(a, "no reservation \"%s\"",
				    facts_name(w->facts, booking_get(w->facts, part->id)->name));
	case CHANGE_MAINTENANCE:
		return arena_printf(a, "no maintenance of node \"%s\"", node_text(w, part->id));
	case CHANGE_SLOWDOWN:
		return arena_printf(a, "accepting a slowdown of %s", words_percent(a, part->value));
	case CHANGE_PRIORITY:
		return arena_printf(a, "priority %lld (`fairlead priority %u --to %lld`)", value,
				    w->job, value);
	case CHANGE_BUDGET:
		return arena_printf(a, "%s left in the budget of queue \"%s\"",
				    words_money(w, part->id, value), queue_text(w, part->id));
	case CHANGE_ALIGN: return "GPUs and processors on any NUMA node (no `align`)";
	case CHANGE_APART:
		return "keeping away from nobody, and nobody from it (no `apart_from`, no `labels`)";
	case CHANGE_WINDOW: return "running at any time (no `window`)";
	case CHANGE_SPREAD: return "tasks that may lie together (no `spread`)";
	case CHANGE_SLICES: return cut_text(w, part);
	}
	return "";
}

void change_tell(struct trial *t, const struct parts *parts, struct explain_change *ret)
{
	struct words w = words_make(t->facts, t->view, (struct job_id){ t->job }, t->arena);
	struct change_part *told = arena_array(t->arena, parts->count + 1, sizeof(*told));
	const char *text = "";

	for (uint32_t i = 0; i < parts->count; i++) {
		told[i] = parts->at[i];
		told[i].text = part_text(&w, &told[i]);
		text = arena_printf(t->arena, "%s%s%s", text,
				    i == 0                 ? ""
				    : i + 1 < parts->count ? ", "
							   : " and ",
				    told[i].text);
	}
	ret->parts = told;
	ret->part_count = parts->count;
	ret->text = text;
}
