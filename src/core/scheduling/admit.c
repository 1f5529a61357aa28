/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may become a fact. A command is checked against the facts as they are; what passes is applied as it stands.
 * Facts from engines pass when they are about a live attempt; decisions never come from outside.
 */
#include "core/scheduling/admit.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/model/admins.h"
#include "core/model/apply.h"
#include "core/scheduling/standing.h"

/* --- parts of checks ------------------------------------------------------------------------------------ */

int admit_range(const struct admission *a, const char *what, int64_t value, int64_t min,
		int64_t max)
{
	if (value >= min && value <= max)
		return 0;
	return err_set(a->err, ERR_INVALID, "%s is %lld; it must be between %lld and %lld", what,
		       (long long)value, (long long)min, (long long)max);
}

int admit_name(const struct admission *a, const char *what, const char *text)
{
	return parse_name(text, what, a->err);
}

int admit_text(const struct admission *a, const char *what, const char *text)
{
	size_t size = strlen(text);

	if (size > EVENT_TEXT_MAX)
		return err_set(a->err, ERR_TOO_LARGE, "%s has %llu bytes; the limit is %d", what,
			       (unsigned long long)size, EVENT_TEXT_MAX);
	if (!text_is_utf8(text, size))
		return err_set(a->err, ERR_INVALID, "%s is not valid UTF-8", what);
	return 0;
}

int admit_names(const struct admission *a, const char *what, const char *list, int max,
		bool empty_allowed)
{
	int count = 0;

	if (strlen(list) > EVENT_TEXT_MAX)
		return err_set(a->err, ERR_TOO_LARGE, "the list of %s names has more than %d bytes",
			       what, EVENT_TEXT_MAX);
	while (*list) {
		const char *end = memchr(list, ',', strlen(list));
		size_t size = end ? (size_t)(end - list) : strlen(list);
		int rc = size == 0 && empty_allowed
				 ? 0
				 : admit_name(a, what, arena_strndup(a->arena, list, size));

		if (rc < 0)
			return rc;
		if (++count > max)
			return err_set(a->err, ERR_INVALID,
				       "%d %s names are given; the limit is %d", count, what, max);
		list += size + (end ? 1 : 0);
	}
	return count;
}

static bool label_is_good(const char *text, size_t size, bool valued)
{
	static const char marks[] = { '.', '_', '-', '/', '=' };
	const char *equals = memchr(text, '=', size);

	for (size_t i = 0; i < size; i++)
		if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
		      (text[i] >= '0' && text[i] <= '9') || memchr(marks, text[i], sizeof(marks))))
			return false;
	if (!equals)
		return !valued && size > 0;
	return equals > text && equals + 1 < text + size &&
	       !memchr(equals + 1, '=', (size_t)(text + size - equals - 1));
}

int admit_labels(const struct admission *a, const char *what, const char *list, int max,
		 bool valued)
{
	int count = 0, rc = admit_text(a, arena_printf(a->arena, "the list of %ss", what), list);

	for (const char *end; rc == 0 && *list; list = *end ? end + 1 : end) {
		const char *comma = memchr(list, ',', strlen(list));
		size_t size = comma ? (size_t)(comma - list) : strlen(list);

		end = list + size;
		if (size > NAME_MAX_BYTES)
			return err_set(a->err, ERR_INVALID,
				       "%s \"%.20s...\" has %llu bytes; the limit is %d", what,
				       list, (unsigned long long)size, NAME_MAX_BYTES);
		if (!label_is_good(list, size, valued))
			return err_set(
				a->err, ERR_INVALID,
				"%s \"%.*s\" must be %s, of letters, digits, dots, hyphens, underscores and slashes",
				what, (int)size, list, valued ? "KEY=VALUE" : "KEY or KEY=VALUE");
		if (++count > max)
			return err_set(a->err, ERR_INVALID, "more than %d %ss are given", max,
				       what);
	}
	return rc;
}

int admit_version(const struct admission *a, const char *what, const char *text)
{
	bool good = !*text || version_parse(text);

	for (const char *c = text; *c; c++)
		good = good && ((*c >= '0' && *c <= '9') || *c == '.');
	if (good)
		return 0;
	return err_set(a->err, ERR_INVALID,
		       "%s \"%.40s\" is not a version: numbers with dots between, such as %s", what,
		       text, strcmp(what, "min_cuda") == 0 ? "12.4" : "550.54.14");
}

struct queue_id admit_queue_find(const struct admission *a, const char *name)
{
	struct queue_id id = facts_queue_find(a->facts, name);
	const char **names, *hint;
	size_t count = 0;

	if (id.v)
		return id;
	names = arena_array(a->arena, (size_t)a->facts->queues.count + 1, sizeof(*names));
	for (uint32_t q = 1; q <= a->facts->queues.count; q++)
		if (!queue_get(a->facts, (struct queue_id){ q })->removed)
			names[count++] = facts_name(
				a->facts, queue_get(a->facts, (struct queue_id){ q })->name);
	hint = spelling_hint(name, names, count);
	if (hint)
		err_set(a->err, ERR_NOT_FOUND, "queue \"%s\" does not exist; did you mean \"%s\"?",
			name, hint);
	else
		err_set(a->err, ERR_NOT_FOUND,
			"queue \"%s\" does not exist; `fairlead queues` lists those that do", name);
	return id;
}

const char *share_text(struct arena *arena, int64_t share)
{
	int64_t milli = (share % GPU_SHARE * 1000 + GPU_SHARE / 2) / GPU_SHARE;
	char *text;

	if (milli == 0 || milli == 1000)
		return arena_printf(arena, "%lld", (long long)(share / GPU_SHARE + milli / 1000));
	text = arena_printf(arena, "%lld.%03lld", (long long)(share / GPU_SHARE), (long long)milli);
	for (size_t end = strlen(text); text[end - 1] == '0'; end--)
		text[end - 1] = '\0';
	return text;
}

/* --- cluster ------------------------------------------------------------------------------------------------ */

static int admit_policy_set(const struct admission *a, const struct event_policy_set *e)
{
	const struct {
		const char *what;
		int64_t value, max;
	} fields[] = {
		{ "min_runtime", e->min_runtime_ms, ADMIT_DURATION_MAX_MS },
		{ "grace", e->grace_ms, ADMIT_DURATION_MAX_MS },
		{ "rejoin", e->rejoin_ms, ADMIT_DURATION_MAX_MS },
		{ "default_limit", e->default_limit_ms, ADMIT_DURATION_MAX_MS },
		{ "packing", e->packing, 1 },
		{ "blackhole_failures", e->blackhole_failures, FAILED_JOBS_KEPT },
		{ "blackhole_window", e->blackhole_window_ms, ADMIT_DURATION_MAX_MS },
		{ "allow_critical_burst", e->allow_critical_burst, 1 },
		{ "backfill depth", e->backfill_depth, 1024 },
		{ "collect_after", e->collect_after_ms, ADMIT_DURATION_MAX_MS },
		{ "half_life", e->half_life_ms, ADMIT_DURATION_MAX_MS },
		{ "defragment", e->defragment, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].value != -1 &&
		    admit_range(a, fields[i].what, fields[i].value, 0, fields[i].max) < 0)
			return -(int)ERR_INVALID;
	return 0;
}

static bool levels_are(const struct facts *f, const char *levels)
{
	char part[NAME_MAX_BYTES + 1];
	uint32_t count = 0;

	while (list_next(&levels, part)) {
		if (count >= f->level_count || strcmp(facts_name(f, f->level[count]), part) != 0)
			return false;
		count++;
	}
	return count == f->level_count;
}

static int admit_levels_set(const struct admission *a, const struct event_levels_set *e)
{
	const char *list = e->levels, *rest;
	char part[NAME_MAX_BYTES + 1], other[NAME_MAX_BYTES + 1];
	int count = admit_names(a, "level", e->levels, LEVELS_MAX, false);

	if (count < 0)
		return count;
	if (levels_are(a->facts, e->levels))
		return CORE_ALREADY;
	while (list_next(&list, part)) {
		if (strcmp(part, "node") == 0 || strcmp(part, "nvlink") == 0)
			return err_set(
				a->err, ERR_INVALID,
				"level \"%s\" exists below every other one and can't be declared",
				part);
		for (rest = list; rest && list_next(&rest, other);)
			if (strcmp(part, other) == 0)
				return err_set(a->err, ERR_INVALID, "level \"%s\" is named twice",
					       part);
	}
	for (uint32_t id = 1; id <= a->facts->jobs.count; id++) {
		const struct job *job = job_get(a->facts, (struct job_id){ id });
		const struct shape *shape;

		if (job_state_is_final(job->state))
			continue;
		shape = shape_get(a->facts, job->shape);
		if (((shape->require && shape->require <= LEVELS_MAX) ||
		     (shape->prefer && shape->prefer <= LEVELS_MAX)))
			return err_set(
				a->err, ERR_CONFLICT,
				"job %u names a topology level; levels can change when no such job waits or runs",
				id);
	}
	return 0;
}

static int islands_check(const struct admission *a, const struct event_node_set *e)
{
	int64_t all = (INT64_C(1) << e->gpus) - 1, seen = 0;

	if (e->nvlink_islands_count > ISLANDS_MAX)
		return err_set(a->err, ERR_INVALID,
			       "node \"%s\" has %u NVLink islands; the limit is %d", e->name,
			       e->nvlink_islands_count, ISLANDS_MAX);
	for (uint32_t i = 0; i < e->nvlink_islands_count; i++) {
		if (e->nvlink_islands[i] <= 0 || (e->nvlink_islands[i] & ~all))
			return err_set(
				a->err, ERR_INVALID,
				"node \"%s\": NVLink island %u names GPUs that the node does not have",
				e->name, i);
		if (e->nvlink_islands[i] & seen)
			return err_set(a->err, ERR_INVALID,
				       "node \"%s\": a GPU is in two NVLink islands", e->name);
		seen |= e->nvlink_islands[i];
	}
	return 0;
}

static bool node_is(const struct facts *f, const struct node *n, const struct event_node_set *e)
{
	const char *list = e->domains;
	char part[NAME_MAX_BYTES + 1];
	struct name_id domain[LEVELS_MAX] = { { 0 } };

	for (int i = 0; i < LEVELS_MAX && list_next(&list, part); i++)
		domain[i] = facts_name_find(f, part);
	for (uint32_t i = 0; i < ISLANDS_MAX; i++)
		if (n->island_mask[i] !=
		    (i < e->nvlink_islands_count ? (uint32_t)e->nvlink_islands[i] : 0))
			return false;
	return n->state != NODE_GONE && n->gpu_count == e->gpus &&
	       n->gpu_memory_mib == e->gpu_memory_mib && n->cpu_milli == e->cpu_milli &&
	       n->ram_mib == e->ram_mib && n->simulated == (e->simulated != 0) &&
	       strcmp(facts_name(f, n->model), e->model) == 0 &&
	       strcmp(facts_name(f, n->driver), e->driver) == 0 &&
	       strcmp(facts_name(f, n->cuda), e->cuda) == 0 && n->capability == e->capability &&
	       memcmp(domain, n->domain, sizeof(domain)) == 0;
}

static int admit_node_set(const struct admission *a, struct event_node_set *e)
{
	struct node_id id;
	int rc = admit_name(a, "node", e->name);

	if (rc == 0)
		rc = admit_range(a, "the number of GPUs of a node", e->gpus, 0, NODE_GPUS_MAX);
	if (rc == 0)
		rc = admit_range(a, "the memory of a GPU in MiB", e->gpu_memory_mib, 0, INT32_MAX);
	if (rc == 0)
		rc = admit_range(a, "the processors of a node in thousandths", e->cpu_milli, 0,
				 INT32_MAX);
	if (rc == 0)
		rc = admit_range(a, "the memory of a node in MiB", e->ram_mib, 0, INT32_MAX);
	if (rc == 0)
		rc = admit_range(a, "the compute capability in tenths", e->capability, 0, 1000);
	if (rc == 0)
		rc = admit_text(a, "the GPU model", e->model);
	if (rc == 0)
		rc = islands_check(a, e);
	if (rc == 0)
		rc = admit_names(a, "domain", e->domains, (int)a->facts->level_count, true);
	if (rc < 0)
		return rc;
	id = facts_node_find(a->facts, e->name);
	e->node = facts_node_next(a->facts, e->name).v;
	return id.v && node_is(a->facts, node_get(a->facts, id), e) ? CORE_ALREADY : 0;
}

static const struct node *node_known(const struct admission *a, int64_t node)
{
	if (node >= 1 && node <= (int64_t)a->facts->nodes.count)
		return node_get(a->facts, (struct node_id){ (uint32_t)node });
	err_set(a->err, ERR_NOT_FOUND, "there is no node with number %lld", (long long)node);
	return NULL;
}

static int admit_node_state(const struct admission *a, const struct event_node_state *e)
{
	const struct node *node = node_known(a, e->node);
	int rc = node ? admit_text(a, "the reason", e->reason) : -(int)ERR_NOT_FOUND;

	if (rc == 0)
		rc = admit_range(a, "the state of a node", e->state, NODE_READY, NODE_GONE);
	if (rc == 0)
		rc = admit_range(a, "the time to drain a node in ms", e->within_ms, 0,
				 ADMIT_DURATION_MAX_MS);
	if (rc == 0 && e->within_ms && e->state != NODE_DRAINING)
		return err_set(a->err, ERR_INVALID, "a deadline is for a node that is drained");
	if (rc < 0)
		return rc;
	if (node->state == NODE_GONE && e->state != NODE_GONE)
		return err_set(a->err, ERR_CONFLICT,
			       "node \"%s\" is gone; it comes back when it is declared again",
			       facts_name(a->facts, node->name));
	/* Ready once more is a person's word that the failures seen there are dealt with. */
	if (node->state == NODE_DRAINING && (node->drain_ms || e->within_ms))
		return 0; /* another deadline */
	return node->state == e->state && e->state != NODE_READY ? CORE_ALREADY : 0;
}

static bool node_is_marked(const struct facts *f, const struct node *n,
			   const struct event_node_marked *e)
{
	char list[EVENT_TEXT_MAX + 1];

	return n->class == e->class &&
	       strcmp(names_text(f, n->label, LABELS_MAX, list), e->labels) == 0 &&
	       strcmp(names_text(f, n->taint, TAINTS_MAX, list), e->taints) == 0;
}

static int admit_node_marked(const struct admission *a, const struct event_node_marked *e)
{
	const struct node *node = node_known(a, e->node);
	int rc = node ? admit_labels(a, "label", e->labels, LABELS_MAX, true) : -(int)ERR_NOT_FOUND;

	if (rc == 0)
		rc = admit_labels(a, "taint", e->taints, TAINTS_MAX, false);
	if (rc == 0)
		rc = admit_range(a, "the class of a node", e->class, NODE_CLASS_ANY,
				 NODE_CLASS_INFERENCE);
	if (rc < 0)
		return rc;
	return node_is_marked(a->facts, node, e) ? CORE_ALREADY : 0;
}

static int admit_gpu_state(const struct admission *a, const struct event_gpu_state *e)
{
	const struct node *node = node_known(a, e->node);
	int rc = node ? admit_text(a, "the reason", e->reason) : -(int)ERR_NOT_FOUND;

	if (rc < 0)
		return rc;
	if (e->mask <= 0 || e->mask >> node->gpu_count)
		return err_set(a->err, ERR_INVALID,
			       "node \"%s\" has GPUs 0 to %d; another one is named",
			       facts_name(a->facts, node->name), (int)node->gpu_count - 1);
	if (e->set_aside ? (node->set_aside_mask & e->mask) == e->mask
			 : (node->set_aside_mask & e->mask) == 0)
		return CORE_ALREADY;
	return 0;
}

/* --- queues ------------------------------------------------------------------------------------------------------ */

static bool queue_is_below(const struct facts *f, struct queue_id queue, struct queue_id top)
{
	for (; queue.v; queue = queue_get(f, queue)->parent)
		if (queue.v == top.v)
			return true;
	return false;
}

/* Guarantees of the queues below `parent`, `except` left out. */
static int64_t children_guarantee(const struct facts *f, struct queue_id parent,
				  struct queue_id except)
{
	int64_t sum = 0;

	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *q = queue_get(f, (struct queue_id){ id });

		if (id != except.v && !q->removed && q->parent.v == parent.v)
			sum += q->guarantee_share;
	}
	return sum;
}

static int guarantee_check(const struct admission *a, const struct event_queue_set *e,
			   struct queue_id id, struct queue_id parent)
{
	const struct facts *f = a->facts;
	int64_t taken, below;

	if (e->limit_share >= 0 && e->guarantee_share > e->limit_share)
		return err_set(a->err, ERR_INVALID,
			       "queue \"%s\": guarantee %s is more than its limit %s", e->name,
			       share_text(a->arena, e->guarantee_share),
			       share_text(a->arena, e->limit_share));
	below = id.v ? children_guarantee(f, id, (struct queue_id){ 0 }) : 0;
	if (below > e->guarantee_share)
		return err_set(
			a->err, ERR_CONFLICT,
			"queue \"%s\": guarantee %s is less than the %s GPUs promised to the queues below it",
			e->name, share_text(a->arena, e->guarantee_share),
			share_text(a->arena, below));
	if (!parent.v || !e->guarantee_share)
		return 0;
	taken = children_guarantee(f, parent, id);
	if (taken + e->guarantee_share <= queue_get(f, parent)->guarantee_share)
		return 0;
	return err_set(
		a->err, ERR_INVALID,
		"queue \"%s\": guarantee %s is more than the %s GPUs left of its parent \"%s\"'s guarantee of %s",
		e->name, share_text(a->arena, e->guarantee_share),
		share_text(a->arena, queue_get(f, parent)->guarantee_share - taken),
		facts_name(f, queue_get(f, parent)->name),
		share_text(a->arena, queue_get(f, parent)->guarantee_share));
}

static bool queue_limits_are(const struct facts *f, const struct queue *q,
			     const struct event_queue_set *e)
{
	const char *list = e->limit_models;
	char part[NAME_MAX_BYTES + 1];
	uint32_t count = 0;

	for (; list_next(&list, part); count++)
		if (count == QUEUE_MODELS_MAX || count == e->limit_model_shares_count ||
		    strcmp(facts_name(f, q->limit_model[count]), part) != 0 ||
		    q->limit_model_share[count] != e->limit_model_shares[count])
			return false;
	return (count == QUEUE_MODELS_MAX || !q->limit_model[count].v) &&
	       q->limit_cpu_milli == e->limit_cpu_milli && q->limit_ram_mib == e->limit_ram_mib;
}

static int admit_limits(const struct admission *a, const struct event_queue_set *e)
{
	const char *list = e->limit_models, *rest;
	char part[NAME_MAX_BYTES + 1], other[NAME_MAX_BYTES + 1];
	int count = admit_names(a, "limited model", e->limit_models, QUEUE_MODELS_MAX, false);

	if (count < 0)
		return count;
	if ((uint32_t)count != e->limit_model_shares_count)
		return err_set(a->err, ERR_INVALID,
			       "queue \"%s\": %d models are named and %u limits given", e->name,
			       count, e->limit_model_shares_count);
	for (uint32_t i = 0; list_next(&list, part); i++) {
		if (admit_range(a, "a queue's limit of a model in shares", e->limit_model_shares[i],
				0, INT64_C(1000000) * GPU_SHARE) < 0)
			return -(int)ERR_INVALID;
		for (rest = list; list_next(&rest, other);)
			if (strcmp(part, other) == 0)
				return err_set(a->err, ERR_INVALID,
					       "queue \"%s\": model \"%s\" has two limits", e->name,
					       part);
	}
	if (admit_range(a, "a queue's limit of processors in thousandths", e->limit_cpu_milli, 0,
			INT64_C(1000000000000)) < 0)
		return -(int)ERR_INVALID;
	return admit_range(a, "a queue's limit of memory in MiB", e->limit_ram_mib, 0,
			   INT64_C(1000000000000));
}

static bool queue_is(const struct facts *f, const struct queue *q, const struct event_queue_set *e,
		     struct queue_id parent)
{
	return !q->removed && q->parent.v == parent.v && q->guarantee_share == e->guarantee_share &&
	       q->limit_share == e->limit_share && q->weight == e->weight &&
	       q->reserved == (e->reserved != 0) && q->default_limit_ms == e->default_limit_ms &&
	       strcmp(facts_name(f, q->team), e->team) == 0 &&
	       strcmp(facts_text(f, q->calendar), e->calendar) == 0 && queue_limits_are(f, q, e);
}

static int admit_calendar(const struct admission *a, const struct event_queue_set *e)
{
	struct calendar calendar;
	struct err why;

	if (calendar_parse(e->calendar, &calendar, &why) == 0)
		return 0;
	return err_set(a->err, why.code, "queue \"%s\": %s", e->name, why.text);
}

static int admit_queue_set(const struct admission *a, struct event_queue_set *e)
{
	const struct facts *f = a->facts;
	struct queue_id id = facts_queue_find(f, e->name), parent = { 0 };
	int rc = admit_name(a, "queue", e->name);

	if (rc < 0)
		return rc;
	if (strcmp(e->name, "root") == 0)
		return err_set(
			a->err, ERR_INVALID,
			"queue \"root\" stands above all others and can't be made or changed");
	if (*e->parent && strcmp(e->parent, "root") != 0) {
		parent = admit_queue_find(a, e->parent);
		if (!parent.v)
			return -(int)ERR_NOT_FOUND;
	}
	if (id.v && queue_is_below(f, parent, id))
		return err_set(a->err, ERR_INVALID,
			       "queue \"%s\" can't lie below \"%s\", which lies below it", e->name,
			       e->parent);
	if (*e->team && !facts_team_find(f, e->team))
		return err_set(a->err, ERR_NOT_FOUND, "queue \"%s\": team \"%s\" does not exist",
			       e->name, e->team);
	if (e->weight == 0)
		e->weight = 1;
	rc = admit_range(a, "a queue's weight", e->weight, 1, 1000000);
	if (rc == 0)
		rc = admit_range(a, "a queue's guarantee in shares", e->guarantee_share, 0,
				 INT64_C(1000000) * GPU_SHARE);
	if (rc == 0)
		rc = admit_range(a, "a queue's limit in shares", e->limit_share, -1,
				 INT64_C(1000000) * GPU_SHARE);
	if (rc == 0)
		rc = admit_range(a, "a queue's default run-time limit in ms", e->default_limit_ms,
				 0, ADMIT_DURATION_MAX_MS);
	if (rc == 0)
		rc = admit_calendar(a, e);
	if (rc == 0)
		rc = admit_limits(a, e);
	if (rc == 0)
		rc = guarantee_check(a, e, id, parent);
	if (rc < 0)
		return rc;
	return id.v && queue_is(f, queue_get(f, id), e, parent) ? CORE_ALREADY : 0;
}

static int admit_queue_removed(const struct admission *a, const struct event_queue_removed *e)
{
	const struct facts *f = a->facts;
	struct queue_id id = admit_queue_find(a, e->name);
	uint32_t jobs = 0, first = 0;

	if (!id.v)
		return -(int)ERR_NOT_FOUND;
	if (strcmp(e->name, "default") == 0)
		return err_set(
			a->err, ERR_CONFLICT,
			"queue \"default\" can't be removed: jobs that name no queue go there");
	for (uint32_t q = 1; q <= f->queues.count; q++)
		if (queue_get(f, (struct queue_id){ q })->parent.v == id.v &&
		    !queue_get(f, (struct queue_id){ q })->removed)
			return err_set(
				a->err, ERR_CONFLICT,
				"queue \"%s\" has queue \"%s\" below it; remove that one first",
				e->name, facts_name(f, queue_get(f, (struct queue_id){ q })->name));
	for (uint32_t job = 1; job <= f->jobs.count; job++) {
		if (job_get(f, (struct job_id){ job })->queue.v != id.v ||
		    job_state_is_final(job_get(f, (struct job_id){ job })->state))
			continue;
		first = first ? first : job;
		jobs++;
	}
	if (jobs)
		return err_set(
			a->err, ERR_CONFLICT,
			"queue \"%s\" has %u jobs that are not over (job %u is the first); cancel them or wait",
			e->name, jobs, first);
	return 0;
}

/* --- people ---------------------------------------------------------------------------------------------------------- */

static int admit_team_set(const struct admission *a, const struct event_team_set *e)
{
	int rc = admit_name(a, "team", e->name);

	return rc < 0 ? rc : admit_text(a, "the title of a team", e->title);
}

static int admit_team_removed(const struct admission *a, const struct event_team_removed *e)
{
	const struct facts *f = a->facts;
	struct name_id name = facts_name_find(f, e->name);

	if (!facts_team_find(f, e->name))
		return err_set(a->err, ERR_NOT_FOUND, "team \"%s\" does not exist", e->name);
	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);

		if (!user->removed && name_same(user->team, name))
			return err_set(a->err, ERR_CONFLICT, "team \"%s\" still has user \"%s\"",
				       e->name, facts_name(f, user->name));
	}
	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *queue = queue_get(f, (struct queue_id){ id });

		if (!queue->removed && name_same(queue->team, name))
			return err_set(a->err, ERR_CONFLICT, "team \"%s\" still has queue \"%s\"",
				       e->name, facts_name(f, queue->name));
	}
	return 0;
}

static int admins_refuse(const struct admission *a, const char *what, const char *name)
{
	return err_set(a->err, ERR_CONFLICT,
		       "%s \"%s\": no admin who can come in would be left; "
		       "make another one first, with a uid or a token that does not expire",
		       what, name);
}

static int admit_user_set(const struct admission *a, const struct event_user_set *e)
{
	const struct facts *f = a->facts;
	uint32_t id = facts_user_find(f, e->name);
	int rc = admit_name(a, "user", e->name);

	if (rc == 0)
		rc = admit_range(a, "the role of a user", e->role, ROLE_VIEWER, ROLE_ADMIN);
	if (rc == 0)
		rc = admit_range(a, "the uid of a user", e->uid, -1, INT32_MAX);
	if (rc < 0)
		return rc;
	if (*e->team && !facts_team_find(f, e->team))
		return err_set(a->err, ERR_NOT_FOUND, "user \"%s\": team \"%s\" does not exist",
			       e->name, e->team);
	if (admins_end_with_user(
		    f, id, &(struct user){ .role = (uint8_t)e->role, .uid = (int32_t)e->uid }))
		return admins_refuse(a, "user", e->name);
	return 0;
}

static int admit_user_removed(const struct admission *a, const struct event_user_removed *e)
{
	uint32_t id = facts_user_find(a->facts, e->name);

	if (!id)
		return err_set(a->err, ERR_NOT_FOUND, "user \"%s\" does not exist", e->name);
	if (admins_end_with_user(a->facts, id, NULL))
		return admins_refuse(a, "user", e->name);
	return 0;
}

static int admit_token_created(const struct admission *a, const struct event_token_created *e)
{
	uint8_t hash[32];
	int rc = admit_name(a, "token", e->id);

	if (rc == 0)
		rc = admit_text(a, "the note of a token", e->note);
	if (rc < 0)
		return rc;
	if (facts_token_find(a->facts, e->id))
		return err_set(a->err, ERR_CONFLICT, "token \"%s\" exists already", e->id);
	if (!facts_user_find(a->facts, e->user))
		return err_set(a->err, ERR_NOT_FOUND, "user \"%s\" does not exist", e->user);
	if (!hex_parse(e->hash, hash))
		return err_set(a->err, ERR_INVALID,
			       "the hash of token \"%s\" is not 64 hexadecimal digits", e->id);
	if (e->expires_ms && e->expires_ms <= a->facts->now_ms)
		return err_set(a->err, ERR_INVALID, "token \"%s\" would have expired already",
			       e->id);
	return 0;
}

static int admit_token_revoked(const struct admission *a, const struct event_token_revoked *e)
{
	uint32_t id = facts_token_find(a->facts, e->id);

	if (!id)
		return err_set(a->err, ERR_NOT_FOUND, "token \"%s\" does not exist", e->id);
	if (((const struct token *)table_get(&a->facts->tokens, id))->revoked)
		return CORE_ALREADY;
	if (admins_end_with_token(a->facts, id))
		return admins_refuse(a, "token", e->id);
	return 0;
}

/* --- jobs --------------------------------------------------------------------------------------------------------------- */

/* The job when it is not over, else NULL and the error. `what` is what can't be done: "held". */
static const struct job *job_open(const struct admission *a, int64_t id, const char *what)
{
	const struct job *job;

	if (id < 1 || id > (int64_t)a->facts->jobs.count) {
		err_set(a->err, ERR_NOT_FOUND, "job %lld does not exist", (long long)id);
		return NULL;
	}
	if (!job_is_there(a->facts, id)) {
		err_set(a->err, ERR_CONFLICT,
			"job %lld ended long ago, or its record was lost: it can't be %s any more",
			(long long)id, what);
		return NULL;
	}
	job = job_get(a->facts, (struct job_id){ (uint32_t)id });
	if (!job_state_is_final(job->state))
		return job;
	err_set(a->err, ERR_CONFLICT, "job %lld \"%s\" has ended as %s and can't be %s any more",
		(long long)id, facts_name(a->facts, job->name), job_state_name(job->state), what);
	return NULL;
}

static int job_failure(const struct admission *a)
{
	return a->err && a->err->code != ERR_NONE ? -(int)a->err->code : -(int)ERR_CONFLICT;
}

static int admit_job_held(const struct admission *a, const struct event_job_held *e)
{
	const struct job *job = job_open(a, e->job, "held");

	if (!job)
		return job_failure(a);
	return job->held ? CORE_ALREADY : admit_text(a, "the reason", e->reason);
}

static int admit_job_released(const struct admission *a, const struct event_job_released *e)
{
	const struct job *job = job_open(a, e->job, "released");

	if (!job)
		return job_failure(a);
	return job->held ? 0 : CORE_ALREADY;
}

static int admit_job_cancel_asked(const struct admission *a, const struct event_job_cancel_asked *e)
{
	const struct job *job = job_open(a, e->job, "cancelled");

	if (!job)
		return job_failure(a);
	return job->cancel_asked ? CORE_ALREADY : admit_text(a, "the reason", e->reason);
}

static int admit_job_priority_set(const struct admission *a, const struct event_job_priority_set *e)
{
	const struct job *job = job_open(a, e->job, "given another priority");
	int rc =
		job ? admit_range(a, "a priority", e->priority, -1000000, 1000000) : job_failure(a);

	if (rc < 0)
		return rc;
	return job->priority == e->priority ? CORE_ALREADY : 0;
}

/* --- reports ------------------------------------------------------------------------------------------------------------- */

/* What is said of an attempt that is over, or not its job's, is known or too late: nothing to apply. */
static int admit_report(const struct admission *a, int64_t attempt)
{
	struct attempt_id id = { (uint32_t)attempt };

	if (!attempt_is_there(a->facts, attempt))
		return err_set(a->err, ERR_NOT_FOUND, "attempt %lld does not exist",
			       (long long)attempt);
	return job_get(a->facts, attempt_get(a->facts, id)->job)->attempt.v == id.v ? 0
										    : CORE_ALREADY;
}

/* Those that the facts can't do without yet are left out. */
static int admit_jobs_forgotten(const struct admission *a, struct event_jobs_forgotten *e)
{
	int64_t *jobs = arena_new_array(a->arena, int64_t, e->jobs_count + 1);
	uint32_t count = 0;

	for (uint32_t i = 0; i < e->jobs_count; i++)
		if (job_is_there(a->facts, e->jobs[i]) &&
		    job_may_be_forgotten(a->facts, (struct job_id){ (uint32_t)e->jobs[i] }))
			jobs[count++] = e->jobs[i];
	e->jobs = jobs;
	e->jobs_count = count;
	return count ? 0 : CORE_ALREADY;
}

static int refuse_decision(const struct admission *a, const struct event *event)
{
	const struct event_info *info = event_info(event->kind);

	return err_set(a->err, ERR_INVALID, "\"%s\" is decided by the core and can't be asked for",
		       info ? info->name : "an unknown kind");
}

int core_admit(const struct facts *facts, const struct view *view, struct event *event,
	       struct arena *arena, uint32_t *ret_job, struct err *err)
{
	struct admission a = { .facts = facts, .arena = arena, .ret_job = ret_job, .err = err };

	(void)view;
	switch (event->kind) {
	case EVENT_DAEMON_STARTED:
	case EVENT_DECIDED:
	case EVENT_RECORDS_LOST:
	case EVENT_CLOCK_TICKED: return 0;
	case EVENT_POLICY_SET: return admit_policy_set(&a, &event->policy_set);
	case EVENT_LEVELS_SET: return admit_levels_set(&a, &event->levels_set);
	case EVENT_NODE_SET: return admit_node_set(&a, &event->node_set);
	case EVENT_NODE_STATE: return admit_node_state(&a, &event->node_state);
	case EVENT_NODE_MARKED: return admit_node_marked(&a, &event->node_marked);
	case EVENT_GPU_STATE: return admit_gpu_state(&a, &event->gpu_state);
	case EVENT_QUEUE_SET: return admit_queue_set(&a, &event->queue_set);
	case EVENT_QUEUE_REMOVED: return admit_queue_removed(&a, &event->queue_removed);
	case EVENT_TEAM_SET: return admit_team_set(&a, &event->team_set);
	case EVENT_TEAM_REMOVED: return admit_team_removed(&a, &event->team_removed);
	case EVENT_USER_SET: return admit_user_set(&a, &event->user_set);
	case EVENT_USER_REMOVED: return admit_user_removed(&a, &event->user_removed);
	case EVENT_TOKEN_CREATED: return admit_token_created(&a, &event->token_created);
	case EVENT_TOKEN_REVOKED: return admit_token_revoked(&a, &event->token_revoked);
	case EVENT_JOB_SUBMITTED: return admit_job_submitted(&a, &event->job_submitted);
	case EVENT_JOB_HELD: return admit_job_held(&a, &event->job_held);
	case EVENT_JOB_RELEASED: return admit_job_released(&a, &event->job_released);
	case EVENT_JOB_CANCEL_ASKED: return admit_job_cancel_asked(&a, &event->job_cancel_asked);
	case EVENT_JOB_PRIORITY_SET: return admit_job_priority_set(&a, &event->job_priority_set);
	case EVENT_ATTEMPT_UNREACHABLE: return admit_report(&a, event->attempt_unreachable.attempt);
	case EVENT_TASK_READY: return admit_report(&a, event->task_ready.attempt);
	case EVENT_TASK_STARTED: return admit_report(&a, event->task_started.attempt);
	case EVENT_TASK_EXITED: return admit_report(&a, event->task_exited.attempt);
	case EVENT_PROGRESS: return admit_report(&a, event->progress.attempt);
	case EVENT_CHECKPOINT_SAVED: return admit_report(&a, event->checkpoint_saved.attempt);
	case EVENT_CHECKPOINT_VOID: return admit_checkpoint_void(&a, &event->checkpoint_void);
	case EVENT_JOBS_FORGOTTEN: return admit_jobs_forgotten(&a, &event->jobs_forgotten);
	case EVENT_NONE:
	case EVENT_JOB_REQUEUED:
	case EVENT_JOB_ENDED:
	case EVENT_ATTEMPT_PLACED:
	case EVENT_ATTEMPT_RELEASED:
	case EVENT_ATTEMPT_WARNED:
	case EVENT_ATTEMPT_SPARED:
	case EVENT_ATTEMPT_STOPPED:
	case EVENT_ATTEMPT_ENDED:
	case EVENT_PROMISE_MADE:
	case EVENT_PROMISE_DROPPED:
	case EVENT_KIND_LIMIT: break;
	}
	return refuse_decision(&a, event);
}
