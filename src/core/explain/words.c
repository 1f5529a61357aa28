/* SPDX-License-Identifier: Apache-2.0 */
#include "core/explain/words.h"

#include <string.h>

#include "base/check.h"
#include "base/moment.h"
#include "base/parse.h"
#include "core/scheduling/admit/queue_rights.h"
#include "core/scheduling/queues/bounds.h"
#include "core/scheduling/queues/calendar.h"
#include "core/scheduling/queues/user_limit.h"

/* --- parts ------------------------------------------------------------------------------------------------ */

const char *words_job(const struct words *w, uint32_t job)
{
	return arena_printf(w->arena, "job %u \"%s\"", job,
			    facts_name(w->facts, job_get(w->facts, (struct job_id){ job })->name));
}

const char *words_share(const struct words *w, int64_t share)
{
	return arena_printf(w->arena, "%s GPU%s", share_text(w->arena, share),
			    share == GPU_SHARE ? "" : "s");
}

const char *words_gpus(const struct words *w, int64_t gpus)
{
	return arena_printf(w->arena, "%lld GPU%s", (long long)gpus, gpus == 1 ? "" : "s");
}

const char *words_level(const struct words *w, uint8_t level)
{
	if (level == LEVEL_NODE)
		return "node";
	if (level == LEVEL_ISLAND)
		return "NVLink island";
	if (level >= 1 && level <= w->facts->level_count)
		return arena_strdup(w->arena, facts_name(w->facts, w->facts->level[level - 1]));
	return "cluster";
}

const char *words_until(const struct words *w, int64_t end_ms)
{
	char moment[MOMENT_TEXT_MAX];

	if (end_ms <= w->facts->now_ms)
		return "any moment";
	return arena_printf(w->arena, "at %s", moment_format(end_ms, moment));
}

bool words_end_known(const struct words *w, uint32_t job)
{
	const struct job *j = job_get(w->facts, (struct job_id){ job });

	return j->limit_ms || j->estimate_ms || !j->attempt.v ||
	       attempt_is_leaving(attempt_get(w->facts, j->attempt));
}

const char *words_end(const struct words *w, uint32_t job, int64_t end_ms)
{
	if (!words_end_known(w, job))
		return "declares no limit or estimate";
	return arena_printf(w->arena, "is expected to end %s", words_until(w, end_ms));
}

static const char *queue_text(const struct words *w, uint32_t queue)
{
	return arena_strdup(
		w->arena,
		facts_name(w->facts, queue_get(w->facts, (struct queue_id){ queue })->name));
}

/* The domain (or node) that the verdict is about: `rack "r0"`, `node "n3"`. */
static const char *place_text(const struct words *w, const struct verdict *v)
{
	const struct space *space = &w->view->space;
	struct name_id name;

	if (v->level == LEVEL_NODE || v->level == LEVEL_ISLAND) {
		if (v->at >= space->node_count)
			return "node";
		name = node_get(w->facts, (struct node_id){ space_at(space, v->at)->node })->name;
		return arena_printf(w->arena, "node \"%s\"", facts_name(w->facts, name));
	}
	name = v->at < space->domain_count ? space->domains.at[v->at].name : (struct name_id){ 0 };
	if (!name.v)
		return words_level(w, v->level);
	return arena_printf(w->arena, "%s \"%s\"", words_level(w, v->level),
			    facts_name(w->facts, name));
}

static const char *size_text(const struct words *w, int64_t mib)
{
	char size[DURATION_TEXT_MAX];

	return arena_strdup(w->arena, format_size_mib(mib, size));
}

static const char *cpus_text(const struct words *w)
{
	uint32_t milli = w->shape->cpu_milli;

	if (milli % 1000 == 0)
		return arena_printf(w->arena, "%u", milli / 1000);
	return arena_printf(w->arena, "%u.%03u", milli / 1000, milli % 1000);
}

static const char *models_text(const struct words *w)
{
	const char *text = "";

	for (uint32_t i = 0; i < SHAPE_MODELS_MAX && w->shape->models[i].v; i++)
		text = arena_printf(w->arena, "%s%s%s", text, i ? " or " : "",
				    facts_name(w->facts, w->shape->models[i]));
	return text;
}

static const char *names_list(const struct words *w, const struct name_id *names, uint32_t room,
			      const char *between)
{
	const char *text = "";

	for (uint32_t i = 0; i < room && names[i].v; i++)
		text = arena_printf(w->arena, "%s%s%s", text, i ? between : "",
				    facts_name(w->facts, names[i]));
	return text;
}

static const char *version_of(const struct words *w, int64_t version)
{
	char text[VERSION_TEXT_MAX];

	return arena_strdup(w->arena, version_text((uint32_t)version, text));
}

static const char *capability_of(const struct words *w, int64_t tenths)
{
	return arena_printf(w->arena, "%lld.%lld", (long long)tenths / 10, (long long)tenths % 10);
}

/* Regions without the label's key. */
static const char *regions_text(const struct words *w)
{
	const char *text = "";

	for (uint32_t i = 0; i < SHAPE_REGIONS_MAX && w->shape->regions[i].v; i++)
		text = arena_printf(w->arena, "%s%s%s", text, i ? " or " : "",
				    facts_name(w->facts, w->shape->regions[i]) + strlen("region="));
	return text;
}

/* "may run on 3 of the 12 nodes alone (node affinity leaves 3), and these nodes are not among them". */
static const char *mask_summary(const struct words *w, const char *others)
{
	uint32_t row = facts_mask_find(w->facts, w->shape->mask), all = 0;
	const char *why;

	if (!row)
		return arena_printf(
			w->arena,
			"may run on the nodes of mask \"%s\" alone, and there is no such mask any more",
			facts_name(w->facts, w->shape->mask));
	why = facts_text(w->facts, mask_get(w->facts, row)->why);
	for (uint32_t id = 1; id <= w->facts->nodes.count; id++)
		all += node_get(w->facts, (struct node_id){ id })->state != NODE_GONE;
	if (!mask_nodes(w->facts, row))
		return arena_printf(w->arena, "may run on none of the %u nodes%s%s", all,
				    *why ? ": " : "", why);
	return arena_printf(
		w->arena, "may run on %u of the %u nodes alone%s%s%s, and %s are not among them",
		mask_nodes(w->facts, row), all, *why ? " (" : "", why, *why ? ")" : "", others);
}

/* What it needs that nodes lack: `others` are those nodes, "a node that suits it otherwise". */
static const char *version_summary(const struct words *w, const struct verdict *v,
				   const char *others)
{
	const char *what = v->level == TRAIT_CUDA ? "CUDA" : "driver";

	if (!v->have)
		return arena_printf(w->arena, "needs %s %s or newer; %s states none", what,
				    version_of(w, v->need), others);
	return arena_printf(w->arena, "needs %s %s or newer; the newest of %s is %s", what,
			    version_of(w, v->need), others, version_of(w, v->have));
}

static const char *trait_summary(const struct words *w, const struct verdict *v, const char *others)
{
	switch ((enum trait)v->level) {
	case TRAIT_DRIVER:
	case TRAIT_CUDA: return version_summary(w, v, others);
	case TRAIT_CAPABILITY:
		return arena_printf(w->arena,
				    "needs compute capability %s; the highest of %s is %s",
				    capability_of(w, v->need), others,
				    v->have ? capability_of(w, v->have) : "not known");
	case TRAIT_SPEED:
		return arena_printf(
			w->arena,
			"needs a throughput of %lld.%03lld; the highest of a model that %s have is %lld.%03lld",
			(long long)v->need / 1000, (long long)v->need % 1000, others,
			(long long)v->have / 1000, (long long)v->have % 1000);
	case TRAIT_REGION:
		return arena_printf(w->arena, "must run in region %s, and none of %s lies there",
				    regions_text(w), others);
	case TRAIT_CLASS:
		return arena_printf(w->arena, "is %sinference, and all of %s are of class %s",
				    w->shape->serves ? "" : "not ", others,
				    w->shape->serves ? "training" : "inference");
	case TRAIT_LABEL:
		return arena_printf(w->arena, "needs label %s, which none of %s has",
				    names_list(w, w->shape->labels, SHAPE_LABELS_MAX, " and "),
				    others);
	case TRAIT_MASK: return mask_summary(w, others);
	case TRAIT_TAINT:
		return arena_printf(w->arena,
				    "does not tolerate taint %s, and so on with all of %s",
				    facts_name(w->facts, (struct name_id){ v->at }), others);
	case TRAIT_MEMORY:
		return arena_printf(w->arena,
				    "needs %s of memory on each GPU; the largest of %s has %s",
				    size_text(w, v->need), others, size_text(w, v->have));
	case TRAIT_SLICES: return words_slice_trait(w, others);
	case TRAIT_CAPACITY:
		return w->shape->capacity
			       ? arena_printf(w->arena,
					      "waits for a spot node, and none of %s is one",
					      others)
			       : arena_printf(
					 w->arena,
					 "runs on no spot node, and all of %s may be taken away at any time",
					 others);
	case TRAIT_NONE:
	case TRAIT_MODEL:
	case TRAIT_END: break;
	}
	return arena_printf(w->arena, "needs a GPU of model %s", models_text(w));
}

const char *words_shut_out(const struct words *w, const struct verdict *v)
{
	return trait_summary(w, v, "these nodes");
}

static const char *wish_text(const struct words *w);

/* Why no node at all will do. */
static const char *lack_summary(const struct words *w, const struct verdict *v)
{
	if (v->level != TRAIT_MODEL)
		return trait_summary(w, v, "the nodes that suit it otherwise");
	if (!w->view->space.traits_count)
		return arena_printf(w->arena, "needs %s; this cluster has no nodes", wish_text(w));
	return arena_printf(w->arena, "needs a GPU of model %s; this cluster has none",
			    models_text(w));
}

/* Models that nodes of this cluster have, each once. */
static const char *cluster_models(const struct words *w)
{
	const struct space *space = &w->view->space;
	const char *text = "";

	for (uint32_t i = 0; i < space->traits_count; i++) {
		bool seen = !space->traits.at[i].model.v;

		for (uint32_t k = 0; k < i; k++)
			seen |= name_same(space->traits.at[k].model, space->traits.at[i].model);
		if (!seen)
			text = arena_printf(w->arena, "%s%s%s", text, *text ? ", " : "",
					    facts_name(w->facts, space->traits.at[i].model));
	}
	return *text ? text : "none";
}

static const char *trait_remedy(const struct words *w, const struct verdict *v)
{
	switch ((enum trait)v->level) {
	case TRAIT_DRIVER:
		return v->have ? arena_printf(
					 w->arena,
					 "asking for driver %s, or a newer driver on the nodes",
					 version_of(w, v->have))
			       : "leaving min_driver out, or nodes that state their driver";
	case TRAIT_CUDA:
		return v->have ? arena_printf(w->arena,
					      "asking for CUDA %s, or a newer driver on the nodes",
					      version_of(w, v->have))
			       : "leaving min_cuda out, or nodes that state their CUDA version";
	case TRAIT_SPEED: return "a smaller min_throughput, or nodes with faster GPUs";
	case TRAIT_CAPABILITY: return "asking for less, or nodes with newer GPUs";
	case TRAIT_REGION:
		return "another region, or an admin who labels nodes that lie there: fairlead nodes set NODE --labels region=NAME";
	case TRAIT_CLASS:
		return "an admin who changes a node's class: fairlead nodes set NODE --class any";
	case TRAIT_LABEL:
		return "asking for fewer labels, or an admin who labels a node: fairlead nodes set NODE --labels KEY=VALUE";
	case TRAIT_MASK:
		return "mending that, or asking less of the nodes: volumes, resources, affinity, spread, tolerations, host ports";
	case TRAIT_TAINT:
		return arena_printf(w->arena, "tolerating it: tolerates: [%s]",
				    facts_name(w->facts, (struct name_id){ v->at }));
	case TRAIT_SLICES: return words_slice_remedy(w, v);
	case TRAIT_CAPACITY:
		return w->shape->capacity ? "capacity: any, or spot nodes that come"
					  : "capacity: any, of a job that makes checkpoints";
	case TRAIT_NONE:
	case TRAIT_MODEL:
	case TRAIT_MEMORY:
	case TRAIT_END: break;
	}
	if (!w->view->space.traits_count)
		return "nodes that join the cluster";
	return arena_printf(w->arena, "accepting one of the models of this cluster: %s",
			    cluster_models(w));
}

/* "12.50 EUR", the unit that the queue's budget is said in. */
const char *words_money(const struct words *w, uint32_t queue, int64_t micro)
{
	const char *currency = facts_currency(w->facts, (struct queue_id){ queue });
	char amount[MONEY_TEXT_MAX];

	return arena_printf(w->arena, "%s%s%s", format_money(micro, amount), *currency ? " " : "",
			    currency);
}

/* "4 tasks of 2 GPUs", "3 GPUs". */
static const char *wish_text(const struct words *w)
{
	if (w->shape->role_count)
		return words_roles(w);
	if (w->shape->tasks_min == 1)
		return words_task(w);
	return arena_printf(w->arena, "%u tasks of %s", w->shape->tasks_min, words_task(w));
}

/* "3 H100-80GB", "1.5 processors", "64GiB of memory": an amount of what the bound counts. */
static const char *bound_amount(const struct words *w, const struct verdict *v, int64_t amount)
{
	const struct queue *queue = queue_get(w->facts, (struct queue_id){ v->at });
	const char *model;

	if (v->level == BOUND_CPU)
		return arena_printf(w->arena, "%lld.%03lld processors", (long long)amount / 1000,
				    (long long)amount % 1000);
	if (v->level == BOUND_RAM)
		return arena_printf(w->arena, "%s of memory", size_text(w, amount));
	model = facts_name(w->facts, (v->code == REASON_GUARANTEE_ONLY
					      ? queue->guarantee_model
					      : queue->limit_model)[v->level - BOUND_MODEL]);
	return arena_printf(w->arena, "%s GPUs of %s%s", share_text(w->arena, amount),
			    strcmp(model, "any") == 0 ? "other models" : "model ",
			    strcmp(model, "any") == 0 ? "" : model);
}

static const char *bound_text(const struct words *w, const struct verdict *v)
{
	int64_t limit = bounds_limit(queue_get(w->facts, (struct queue_id){ v->at }), v->level);

	return arena_printf(w->arena,
			    "needs %s, but queue \"%s\" may use %s more (its limit is %s)",
			    bound_amount(w, v, v->need), queue_text(w, v->at),
			    bound_amount(w, v, v->have), bound_amount(w, v, limit));
}

static const char *bound_remedy(const struct words *w, const struct verdict *v)
{
	int64_t limit = bounds_limit(queue_get(w->facts, (struct queue_id){ v->at }), v->level);

	return arena_printf(
		w->arena,
		"jobs of queue \"%s\" that give back %s, or an admin who raises its limit to %s",
		queue_text(w, v->at), bound_amount(w, v, v->need - v->have),
		bound_amount(w, v, limit + v->need - v->have));
}

static const char *user_limit_text(const struct words *w, const struct verdict *v)
{
	const int64_t limit = user_limit_of(w->facts, w->view, (struct queue_id){ v->at });

	return arena_printf(
		w->arena,
		"needs %s, but the jobs of user \"%s\" may hold %s more in queue \"%s\" (its limit per user is %s)",
		words_share(w, v->need), facts_name(w->facts, w->j->user),
		share_text(w->arena, v->have), queue_text(w, v->at), share_text(w->arena, limit));
}

static const char *user_limit_remedy(const struct words *w, const struct verdict *v)
{
	const int64_t limit = user_limit_of(w->facts, w->view, (struct queue_id){ v->at });

	if (v->need > limit)
		return arena_printf(
			w->arena, "asking for at most %s, or %s, who can raise the limit per user",
			words_share(w, limit),
			rights_who(w->facts, (struct queue_id){ v->at }, w->arena));
	return arena_printf(
		w->arena,
		"jobs of user \"%s\" that give back %s, or %s, who can raise the limit per user",
		facts_name(w->facts, w->j->user), words_share(w, v->need - v->have),
		rights_who(w->facts, (struct queue_id){ v->at }, w->arena));
}

static const char *limit_text(const struct words *w, const struct verdict *v)
{
	const struct queue *queue;

	if (!v->at)
		return arena_printf(
			w->arena,
			"needs %s, but of those not kept for queues with a reserved guarantee only %s %s left",
			words_share(w, v->need), share_text(w->arena, v->have),
			v->have == GPU_SHARE ? "is" : "are");
	queue = queue_get(w->facts, (struct queue_id){ v->at });
	if (v->need > queue->limit_share)
		return arena_printf(w->arena, "needs %s, and the limit of queue \"%s\" is %s",
				    words_share(w, v->need), queue_text(w, v->at),
				    share_text(w->arena, queue->limit_share));
	return arena_printf(
		w->arena, "needs %s, but queue \"%s\" may use %s more (its limit is %s)",
		words_share(w, v->need), queue_text(w, v->at), share_text(w->arena, v->have),
		share_text(w->arena, queue->limit_share));
}

const char *words_duration(const struct words *w, int64_t ms)
{
	char text[DURATION_TEXT_MAX];

	return arena_strdup(w->arena, format_duration_short(ms, text));
}

/* The nearest queue above (or itself) that has a calendar; 0 = none. */
static uint32_t calendar_queue(const struct words *w, uint32_t queue)
{
	while (queue && !queue_get(w->facts, (struct queue_id){ queue })->calendar.v)
		queue = queue_get(w->facts, (struct queue_id){ queue })->parent.v;
	return queue;
}

/* The job's own window keeps it from starting. */
static const char *own_window_text(const struct words *w, const struct verdict *v)
{
	const char *hours = facts_name(w->facts, w->shape->window),
		   *needs = words_duration(w, v->need);

	if (v->have < 0)
		return arena_printf(w->arena,
				    "may run for %s, and its window (%s) is never so long", needs,
				    hours);
	return arena_printf(w->arena,
			    "runs only in its window (%s); the next one of %s or more opens %s",
			    hours, needs, words_until(w, v->have));
}

static const char *window_text(const struct words *w, const struct verdict *v)
{
	uint32_t queue = calendar_queue(w, v->at);
	const char *calendar =
		queue ? facts_text(w->facts,
				   queue_get(w->facts, (struct queue_id){ queue })->calendar)
		      : "";
	const char *head = arena_printf(
		w->arena, "may run for %s, and jobs of queue \"%s\" start only in its windows (%s)",
		words_duration(w, v->need), queue_text(w, queue ? queue : v->at), calendar);

	if (v->have < 0)
		return arena_printf(w->arena, "%s, of which none is so long", head);
	return arena_printf(w->arena, "%s; the next one that is long enough opens %s", head,
			    words_until(w, v->have));
}

static const char *window_remedy(const struct words *w, const struct verdict *v)
{
	uint32_t queue = calendar_queue(w, v->at);
	struct calendar c;

	if (!queue ||
	    calendar_read(
		    w->facts,
		    facts_text(w->facts, queue_get(w->facts, (struct queue_id){ queue })->calendar),
		    &c, NULL) < 0)
		return "";
	if (v->have >= 0)
		return calendar_is_open(&c, w->facts->now_ms)
			       ? "a run-time limit short enough to end before the window closes, or waiting for the next one"
			       : "waiting until then, or another queue";
	return arena_printf(
		w->arena,
		"a run-time limit of at most %s, another queue, or an admin who adds \"overrun\" "
		"to the calendar of queue \"%s\"",
		words_duration(w, calendar_longest_ms(&c)), queue_text(w, queue));
}

static const char *own_window_remedy(const struct words *w, const struct verdict *v)
{
	struct calendar c;

	if (v->have >= 0 ||
	    calendar_read(w->facts, facts_name(w->facts, w->shape->window), &c, NULL) < 0)
		return "waiting until then, or no `window`";
	return arena_printf(
		w->arena,
		"a run-time limit of at most %s, checkpoints, so that it can go on in the next window, or a longer window",
		words_duration(w, calendar_longest_ms(&c)));
}

/* --- what is wrong ---------------------------------------------------------------------------------------------- */

/* Always with the number of tasks. */
static const char *wishes_text(const struct words *w)
{
	if (w->shape->role_count)
		return words_roles(w);
	return arena_printf(w->arena, "%u tasks of %s", w->shape->tasks_min, words_task(w));
}

static const char *placing_summary(const struct words *w, const struct verdict *v)
{
	if (v->code == REASON_TOPOLOGY && w->never)
		return arena_printf(
			w->arena,
			"needs %s in one %s; the best, %s, has place for %lld of %lld even when idle",
			wishes_text(w), words_level(w, v->level), place_text(w, v),
			(long long)v->have, (long long)v->need);
	if (v->code == REASON_TOPOLOGY)
		return arena_printf(
			w->arena,
			"needs %u tasks in one %s; the best, %s, has room for %lld of %lld",
			w->shape->tasks_min, words_level(w, v->level), place_text(w, v),
			(long long)v->have, (long long)v->need);
	if (v->code == REASON_FRAGMENTATION && v->level == PLACE_ONE_MODEL)
		return words_fit_summary(w, v);
	if (v->code == REASON_FRAGMENTATION && v->level == PLACE_ROLES_SHARE)
		return words_share_summary(w, v);
	if (v->code == REASON_FRAGMENTATION)
		return arena_printf(
			w->arena,
			"needs %s; enough GPUs are free, but spread so that only %lld of %lld tasks fit",
			wish_text(w), (long long)v->have, (long long)v->need);
	if (v->code == REASON_CPU && w->never)
		return arena_printf(
			w->arena,
			"needs %s processors per task, which no node here has beside enough GPUs",
			cpus_text(w));
	if (v->code == REASON_RAM && w->never)
		return arena_printf(
			w->arena,
			"needs %s of memory per task, which no node here has beside enough GPUs",
			size_text(w, w->shape->memory_mib));
	if (v->code == REASON_CPU)
		return arena_printf(
			w->arena,
			"needs %s processors per task; beside the free GPUs they are enough for %lld of %lld tasks",
			cpus_text(w), (long long)v->have, (long long)v->need);
	if (v->code == REASON_RAM)
		return arena_printf(
			w->arena,
			"needs %s of memory per task; beside the free GPUs it is enough for %lld of %lld tasks",
			size_text(w, w->shape->memory_mib), (long long)v->have, (long long)v->need);
	if (v->code == REASON_MEMORY)
		return arena_printf(w->arena,
				    "needs %s of memory on each GPU; the largest here has %s",
				    size_text(w, v->need), size_text(w, v->have));
	return arena_printf(w->arena, "needs %s; %s %s free for it", wish_text(w),
			    words_gpus(w, v->have), v->have == 1 ? "is" : "are");
}

static const char *hold_text(const struct words *w)
{
	const char *reason = facts_text(w->facts, w->j->reason);

	return arena_printf(w->arena, "is held until somebody releases it%s%s", *reason ? ": " : "",
			    reason);
}

/* About one role: as of a job that has no other tasks. */
static const char *role_summary(const struct words *w, const struct verdict *v)
{
	struct verdict alone = *v;
	struct shape room;
	struct words own = words_of_role(w, (uint32_t)v->role - 1, &room);

	alone.role = 0;
	return arena_printf(w->arena, "%s %s", words_role(w, (uint32_t)v->role - 1),
			    words_summary(&own, &alone));
}

static const char *role_remedy(const struct words *w, const struct verdict *v)
{
	struct verdict alone = *v;
	struct shape room;
	struct words own = words_of_role(w, (uint32_t)v->role - 1, &room);

	alone.role = 0;
	return words_remedy(&own, &alone);
}

static const char *cost_by_text(const struct words *w)
{
	static const char *const texts[] = {
		[PRICE_BY_LIMIT] = " at its limit",
		[PRICE_BY_ESTIMATE] = " by its estimate",
		[PRICE_BY_LIKES] = " as most jobs like it",
		[PRICE_BY_DEFAULT] = " by the run time that is assumed without a limit",
	};

	return texts[price_by(w->j)];
}

const char *words_summary(const struct words *w, const struct verdict *v)
{
	if (v->role)
		return role_summary(w, v);
	switch ((enum reason)v->code) {
	case REASON_NONE: return "can start with the next decision";
	case REASON_HOLD: return hold_text(w);
	case REASON_DEPENDENCY:
		return arena_printf(w->arena, "waits for %s to succeed", words_job(w, v->holder.v));
	case REASON_QUOTA_LIMIT:
		return v->level == BOUND_USER ? user_limit_text(w, v)
		       : v->level             ? bound_text(w, v)
					      : limit_text(w, v);
	case REASON_WINDOW: return v->at ? window_text(w, v) : own_window_text(w, v);
	case REASON_MAINTENANCE: return words_maintenance(w, v);
	case REASON_RESERVED: return words_reserved(w, v);
	case REASON_APART: return words_apart(w, v);
	case REASON_PAUSE: return words_pause(w, v);
	case REASON_GUARANTEE_ONLY:
		return arena_printf(
			w->arena,
			"needs %s of the guarantee of queue \"%s\", of which critical work has left %s",
			v->level ? bound_amount(w, v, v->need) : words_share(w, v->need),
			queue_text(w, v->at), share_text(w->arena, v->have));
	case REASON_IMPOSSIBLE:
		if (v->level == PLACE_ROLES_SHARE)
			return words_share_summary(w, v);
		if (v->need == 1)
			return arena_printf(
				w->arena,
				"needs %s on one node, with all else it asks for; no node of this cluster has that, even idle",
				wish_text(w));
		return arena_printf(
			w->arena,
			"needs %s; the whole cluster, if it were idle, has place for %lld of %lld",
			wish_text(w), (long long)v->have, (long long)v->need);
	case REASON_PRIORITY:
		if (!v->holder.v)
			return "would fit, but many jobs that come before it have their turn first";
		return arena_printf(w->arena,
				    "would fit, but the place is promised to %s, which comes first",
				    words_job(w, v->holder.v));
	case REASON_RESERVATION:
		if (v->level)
			return arena_printf(
				w->arena,
				v->level == RESERVED_CLAIM
					? "would fit now, but declares no run-time limit, and the place is claimed by %s; the reservation begins %s"
					: "would fit now, but the place is collected for %s, which has waited long; the reservation begins %s",
				words_job(w, v->holder.v), words_until(w, v->have));
		return arena_printf(
			w->arena,
			"would fit now, but might run too long: the place is reserved for %s, which comes first, and the reservation begins %s",
			words_job(w, v->holder.v), words_until(w, v->have));
	case REASON_MODEL:
	case REASON_DRIVER:
	case REASON_NODE_CLASS:
	case REASON_SPOT:
	case REASON_RESIDENCY: return lack_summary(w, v);
	case REASON_CAPACITY:
	case REASON_FRAGMENTATION:
		return shape_is_part(w->shape) ? words_part_summary(w, v) : placing_summary(w, v);
	case REASON_SHARING: return words_part_summary(w, v);
	case REASON_TOPOLOGY:
	case REASON_MEMORY:
	case REASON_CPU:
	case REASON_RAM: return placing_summary(w, v);
	case REASON_ALIGNMENT:
	case REASON_SPREAD: return words_fit_summary(w, v);
	case REASON_ARRAY_LIMIT:
		return arena_printf(
			w->arena,
			"its array has %lld job%s that run or start, and its limit is %lld at once%s",
			(long long)v->have, v->have == 1 ? "" : "s", (long long)v->need,
			v->have < v->need ? "; others of it have their turn before" : "");
	case REASON_BUDGET:
		return arena_printf(
			w->arena,
			"may cost %s%s, but of the budget of queue \"%s\" %s is left that is not spoken for",
			words_money(w, v->at, v->need), cost_by_text(w), queue_text(w, v->at),
			words_money(w, v->at, v->have));
	case REASON_SLOWDOWN: return words_speed_summary(w, v);
	case REASON_PARTITION: return words_slice_summary(w, v);
	case REASON_END: break;
	}
	return reason_name((enum reason)v->code);
}

/* --- what would help --------------------------------------------------------------------------------------------- */

bool words_node_suits(const struct words *w, uint32_t node)
{
	const int32_t rank = node ? space_rank(&w->view->space, node) : RANK_NONE;

	return rank != RANK_NONE && space_node_suits(&w->view->space, (uint32_t)rank, w->shape);
}

/* Of its tasks one is where the job that waits could be. */
static bool holder_suits(const struct words *w, uint32_t id)
{
	const struct job *job = job_get(w->facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(w->facts, job->attempt);

	for (uint32_t rank = 0; attempt->first_task && rank < attempt->tasks; rank++) {
		const struct task *task = task_get(w->facts, attempt, rank);

		if (task_holds(task) && words_node_suits(w, task->node.v))
			return true;
	}
	return false;
}

/* The next running job to end, as far as is known, of those that hold GPUs when GPUs are wanted. */
const char *words_next_end(const struct words *w)
{
	struct sorted_walk walk;

	for (bool any = sorted_begin(&w->view->pool, w->view->ends, &walk); any;
	     any = sorted_next(&w->view->pool, &walk))
		if (!w->shape->gpus ||
		    (job_view_get(w->view, walk.id)->share && holder_suits(w, walk.id)))
			return arena_printf(
				w->arena, "; %s %s", words_job(w, walk.id),
				words_end(w, walk.id, job_view_get(w->view, walk.id)->end_ms));
	return "";
}

static const char *limit_remedy(const struct words *w, const struct verdict *v)
{
	const struct queue *queue;

	if (!v->at)
		return "a queue with a guarantee, or an admin who finds that the guarantee need not be reserved";
	queue = queue_get(w->facts, (struct queue_id){ v->at });
	if (v->need > queue->limit_share)
		return arena_printf(
			w->arena,
			"asking for at most %s, another queue, or an admin who raises the limit of queue \"%s\"",
			words_share(w, queue->limit_share), queue_text(w, v->at));
	return arena_printf(
		w->arena,
		"jobs of queue \"%s\" that give back %s, or an admin who raises its limit to %s",
		queue_text(w, v->at), words_share(w, v->need - v->have),
		share_text(w->arena, queue->limit_share + v->need - v->have));
}

/* Where nobody is moved by itself a person may want it. */
static const char *moves_text(const struct words *w)
{
	return w->facts->policy.defragment == DEFRAGMENT_OFF
		       ? "; or running jobs that move: `fairlead defrag --dry-run` says which, as the policy has defragment off"
		       : "";
}

static const char *placing_remedy(const struct words *w, const struct verdict *v)
{
	long long lacks = (long long)(v->need - v->have);

	if (v->code == REASON_TOPOLOGY && w->never)
		return arena_printf(
			w->arena,
			"asking for at most %lld tasks, for fewer GPUs, or for places further apart than one %s",
			(long long)v->have, words_level(w, v->level));
	if (v->code == REASON_TOPOLOGY)
		return arena_printf(w->arena, "room for %lld more task%s in one %s%s", lacks,
				    lacks == 1 ? "" : "s", words_level(w, v->level),
				    words_next_end(w));
	if (v->code == REASON_FRAGMENTATION && v->level == PLACE_ROLES_SHARE)
		return words_share_remedy(w);
	if (v->code == REASON_FRAGMENTATION && v->level == PLACE_ONE_MODEL)
		return words_fit_remedy(w, v);
	if (v->code == REASON_FRAGMENTATION)
		return arena_printf(w->arena, "%s free together for each of %lld more task%s%s%s",
				    words_gpus(w, w->shape->gpus), lacks, lacks == 1 ? "" : "s",
				    words_next_end(w), moves_text(w));
	if (v->code == REASON_MEMORY)
		return arena_printf(w->arena, "asking for at most %s of GPU memory",
				    size_text(w, v->have));
	if (v->code == REASON_CPU)
		return w->never ? "asking for fewer processors per task"
				: "fewer processors per task, or jobs that end";
	if (v->code == REASON_RAM)
		return w->never ? "asking for less memory per task"
				: "less memory per task, or jobs that end";
	return arena_printf(w->arena, "%lld more free GPU%s%s", lacks, lacks == 1 ? "" : "s",
			    words_next_end(w));
}

const char *words_remedy(const struct words *w, const struct verdict *v)
{
	if (v->role)
		return role_remedy(w, v);
	switch ((enum reason)v->code) {
	case REASON_NONE: return "";
	case REASON_HOLD: return arena_printf(w->arena, "fairlead release %u", w->job);
	case REASON_DEPENDENCY: return "";
	case REASON_QUOTA_LIMIT:
		return v->level == BOUND_USER ? user_limit_remedy(w, v)
		       : v->level             ? bound_remedy(w, v)
					      : limit_remedy(w, v);
	case REASON_WINDOW: return v->at ? window_remedy(w, v) : own_window_remedy(w, v);
	case REASON_MAINTENANCE: return words_maintenance_remedy(w, v);
	case REASON_RESERVED: return words_reserved_remedy(w, v);
	case REASON_APART:
		return "waiting until they have ended, `apart_prefer`, or no `apart_from` on either side";
	case REASON_GUARANTEE_ONLY:
		return arena_printf(
			w->arena,
			"critical jobs of queue \"%s\" that give back %s, an admin who raises the guarantee, or "
			"submitting it with tier standard",
			queue_text(w, v->at),
			v->level ? bound_amount(w, v, v->need - v->have)
				 : words_share(w, v->need - v->have));
	case REASON_IMPOSSIBLE:
		if (v->level == PLACE_ROLES_SHARE)
			return words_share_remedy(w);
		return "asking for less (tasks, GPUs, or wishes that no node meets all at once), or more nodes";
	case REASON_PRIORITY:
		return "its turn; a higher priority than the other job's would change the order";
	case REASON_RESERVATION:
		return "declaring a run-time limit short enough to end before that time, or waiting";
	case REASON_MODEL:
	case REASON_DRIVER:
	case REASON_NODE_CLASS:
	case REASON_SPOT:
	case REASON_RESIDENCY: return trait_remedy(w, v);
	case REASON_CAPACITY:
	case REASON_FRAGMENTATION:
		return shape_is_part(w->shape) ? words_part_remedy(w, v) : placing_remedy(w, v);
	case REASON_SHARING: return words_part_remedy(w, v);
	case REASON_TOPOLOGY:
	case REASON_MEMORY:
	case REASON_CPU:
	case REASON_RAM: return placing_remedy(w, v);
	case REASON_ALIGNMENT:
	case REASON_SPREAD: return words_fit_remedy(w, v);
	case REASON_ARRAY_LIMIT:
		return arena_printf(w->arena, "the end of %s, or of another job of its array",
				    words_job(w, v->holder.v));
	case REASON_BUDGET:
		return arena_printf(
			w->arena,
			"a shorter run-time limit, fewer GPUs or a cheaper model, or a budget of queue \"%s\" with %s more",
			queue_text(w, v->at), words_money(w, v->at, v->need - v->have));
	case REASON_SLOWDOWN: return words_speed_remedy(w, v);
	case REASON_PARTITION: return words_slice_remedy(w, v);
	case REASON_PAUSE:
		return "waiting until then; `fairlead job --history` tells how each attempt ended";
	case REASON_END: break;
	}
	return "";
}
