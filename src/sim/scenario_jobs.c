/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's part for jobs. */
#include "sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/model/facts.h"
#include "core/model/gpu_wish.h"
#include "core/fabric/describe.h"
#include "sim/reader.h"

static const struct scenario_job job_default = {
	.queue = "default",
	.user = "scenario",
	.team = "",
	.models = "",
	.require = "",
	.prefer = "",
	.spread = "",
	.window = "",
	.apart_level = "",
	.apart_from = "",
	.own_labels = "",
	.mask = "",
	.data = "",
	.slice = "",
	.min_driver = "",
	.min_cuda = "",
	.regions = "",
	.labels = "",
	.tolerates = "",
	.tasks_min = 1,
	.tasks_max = 1,
	.gpus = 1,
	.kind = KIND_BATCH,
	.tier = TIER_STANDARD,
	.resize = RESIZE_FREE,
	.preempts = true,
	.rejoins = true,
	.runtime_ms = SCENARIO_FOREVER,
	.grace_ms = -1,
	.fails_after_ms = SCENARIO_FOREVER,
	.exit_code = 1,
};

static int read_tasks(struct reader *r, const struct conf *c, struct scenario_job *job)
{
	static const char *const known[] = { "min", "max" };
	int64_t count = 1;
	int rc;

	if (!c)
		return 0;
	if (c->type != CONF_MAP) {
		rc = conf_int(r->err, r->file, c, "tasks", 1, TASKS_MAX, &count);
		if (rc == 0)
			job->tasks_min = job->tasks_max = (uint32_t)count;
		return rc;
	}
	rc = reader_map(r, c, "tasks", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = reader_u32(r, c, "min", 1, TASKS_MAX, &job->tasks_min);
	job->tasks_max = job->tasks_min;
	if (rc == 0)
		rc = reader_u32(r, c, "max", 1, TASKS_MAX, &job->tasks_max);
	if (rc == 0 && job->tasks_max < job->tasks_min)
		return conf_error(r->err, r->file, c, "max %u is less than min %u", job->tasks_max,
				  job->tasks_min);
	return rc;
}

static int read_models(struct reader *r, const struct conf *c, struct scenario_job *job)
{
	struct names names;
	int rc;

	if (!c)
		return 0;
	rc = reader_ranges(r, c, "model", &names);
	if (rc < 0)
		return rc;
	if (names.count > SHAPE_MODELS_MAX)
		return conf_error(r->err, r->file, c, "there are %zu models; the limit is %d",
				  names.count, SHAPE_MODELS_MAX);
	for (size_t i = 0; i < names.count; i++)
		job->models =
			arena_printf(r->arena, "%s%s%s", job->models, i ? "," : "", names.at[i]);
	return 0;
}

static int check_level(struct reader *r, const struct conf *topology, const char *key)
{
	const char *known[LEVELS_MAX + 2] = { "node", "nvlink" };
	const struct conf *c = conf_find(topology, key);
	size_t count = 2;

	if (!c)
		return 0;
	for (uint32_t l = 0; l < r->s->level_count; l++)
		known[count++] = r->s->level[l];
	for (size_t i = 0; i < count; i++)
		if (strcmp(known[i], c->text) == 0)
			return 0;
	return reader_unknown(r, c, "topology level", c->text, known, count);
}

static int read_topology(struct reader *r, const struct conf *c, struct scenario_job *job)
{
	static const char *const known[] = { "require", "prefer", "max_slowdown" };
	const char *slowdown = NULL;
	struct err why = { 0 };
	int rc;

	if (!c)
		return 0;
	rc = reader_map(r, c, "topology", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = reader_text(r, c, "require", &job->require);
	if (rc == 0)
		rc = reader_text(r, c, "prefer", &job->prefer);
	if (rc == 0)
		rc = check_level(r, c, "require");
	if (rc == 0)
		rc = check_level(r, c, "prefer");
	if (rc == 0)
		rc = reader_text(r, c, "max_slowdown", &slowdown);
	if (rc == 0 && slowdown && slowdown_parse(slowdown, &job->max_slowdown, &why) < 0)
		return conf_error(r->err, r->file, conf_find(c, "max_slowdown"), "%s", why.text);
	return rc;
}

static int read_checkpoint(struct reader *r, const struct conf *c, struct scenario_job *job)
{
	static const char *const known[] = { "every", "takes" };
	int rc;

	if (!c || (c->type == CONF_SCALAR && strcmp(c->text, "none") == 0))
		return 0;
	rc = reader_map(r, c, "checkpoint", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = reader_duration(r, c, "every", NULL, 0, &job->checkpoint_every_ms);
	if (rc == 0)
		rc = reader_duration(r, c, "takes", NULL, 0, &job->checkpoint_takes_ms);
	job->checkpoints = true;
	return rc;
}

static int read_words(struct reader *r, const struct conf *item, struct scenario_job *job)
{
	static const char *const kinds[] = { "training", "batch", "inference", "interactive" };
	static const char *const tiers[] = { "critical", "standard", "best-effort" };
	static const char *const resizes[] = { "free", "restart" };
	const char *kind = NULL, *tier = NULL, *resize = NULL;
	int rc;

	rc = reader_text(r, item, "kind", &kind);
	if (rc == 0)
		rc = reader_text(r, item, "tier", &tier);
	if (rc == 0)
		rc = reader_text(r, item, "resize", &resize);
	if (rc < 0)
		return rc;
	if (kind && !kind_find(kind, &job->kind))
		return reader_unknown(r, conf_find(item, "kind"), "kind", kind, kinds,
				      ARRAY_SIZE(kinds));
	if (tier && !tier_find(tier, &job->tier))
		return reader_unknown(r, conf_find(item, "tier"), "tier", tier, tiers,
				      ARRAY_SIZE(tiers));
	if (resize && strcmp(resize, "free") != 0 && strcmp(resize, "restart") != 0)
		return reader_unknown(r, conf_find(item, "resize"), "way to resize", resize,
				      resizes, ARRAY_SIZE(resizes));
	if (resize)
		job->resize = strcmp(resize, "free") == 0 ? RESIZE_FREE : RESIZE_RESTART;
	return 0;
}

static int read_times(struct reader *r, const struct conf *item, struct scenario_job *job)
{
	const struct {
		const char *key, *word;
		int64_t value, *ret;
	} times[] = {
		{ "at", NULL, 0, &job->at_ms },
		{ "runtime", "forever", SCENARIO_FOREVER, &job->runtime_ms },
		{ "limit", "none", 0, &job->limit_ms },
		{ "estimate", "none", 0, &job->estimate_ms },
		{ "deadline", "none", 0, &job->deadline_ms },
		{ "restart_cost", NULL, 0, &job->restart_cost_ms },
		{ "age", NULL, 0, &job->age_ms },
		{ "grace", NULL, 0, &job->grace_ms },
		{ "fails_after", "never", SCENARIO_FOREVER, &job->fails_after_ms },
		{ "starts_in", NULL, 0, &job->ready_ms },
		{ "stops_in", NULL, 0, &job->stop_ms },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(times); i++)
		rc = reader_duration(r, item, times[i].key, times[i].word, times[i].value,
				     times[i].ret);
	return rc;
}

/* A number of jobs, or a map that also says how many of them may run at once. */
static int read_array(struct reader *r, const struct conf *item, struct scenario_job *job)
{
	static const char *const known[] = { "count", "limit" };
	const struct conf *c = conf_find(item, "array");
	int rc;

	if (!c || c->type != CONF_MAP)
		return reader_u32(r, item, "array", 2, ARRAY_MAX, &job->array_count);
	rc = reader_map(r, c, "array", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = reader_u32(r, c, "count", 2, ARRAY_MAX, &job->array_count);
	if (rc == 0)
		rc = reader_u32(r, c, "limit", 1, ARRAY_MAX, &job->array_limit);
	if (rc == 0 && !job->array_count)
		return conf_error(r->err, r->file, c,
				  "array: say how many, as in {count: 8, limit: 2}");
	return rc;
}

/* 2, 0.5, 1/7, 1g.10gb, {memory: 2000MiB}, {slice: 1g.10gb} or {slice: fit}. */
static int read_gpus(struct reader *r, const struct conf *c, struct scenario_job *job)
{
	static const char *const known[] = { "memory", "slice" };
	struct gpu_wish wish;
	struct err why;
	uint32_t slice;
	int rc;

	if (!c)
		return 0;
	if (c->type == CONF_MAP) {
		rc = reader_map(r, c, "part of a GPU", known, ARRAY_SIZE(known));
		if (rc == 0)
			rc = reader_size(r, c, "memory", &job->gpu_part_mib);
		if (rc == 0)
			rc = reader_text(r, c, "slice", &job->slice);
		if (rc == 0 && *job->slice && job->gpu_part_mib)
			rc = conf_error(r->err, r->file, c,
					"gpus: memory of a GPU or a slice of it, not both");
		if (rc == 0 && !*job->slice && job->gpu_part_mib < 1)
			rc = conf_error(r->err, r->file, c,
					"gpus: write for example {memory: 2000MiB}");
		return rc;
	}
	if (c->type == CONF_SCALAR && slice_wish_parse(c->text, &slice)) {
		job->slice = c->text;
		return 0;
	}
	if (c->type != CONF_SCALAR || gpu_wish_parse(c->text, &wish, &why) < 0)
		return conf_error(r->err, r->file, c, "gpus: %s",
				  c->type == CONF_SCALAR ? why.text : "a number is expected");
	job->gpus = wish.gpus;
	job->gpu_part = wish.part;
	return 0;
}

static int read_numbers(struct reader *r, const struct conf *item, struct scenario_job *job)
{
	int64_t priority = 0, cpus = 0;
	int rc;

	rc = reader_int(r, item, "priority", -1000000, 1000000, &priority);
	if (rc == 0)
		rc = reader_int(r, item, "cpus", 0, 100000, &cpus);
	if (rc == 0)
		rc = read_gpus(r, conf_find(item, "gpus"), job);
	if (rc == 0)
		rc = reader_u32(r, item, "retries", 0, 1000, &job->retries);
	if (rc == 0)
		rc = read_array(r, item, job);
	if (rc == 0)
		rc = reader_u32(r, item, "exit_code", 1, 255, &job->exit_code);
	if (rc == 0)
		rc = reader_int(r, item, "efficiency", 0, 100, &job->efficiency);
	if (rc == 0)
		rc = reader_bool(r, item, "preempts", &job->preempts);
	if (rc == 0)
		rc = reader_bool(r, item, "rejoin", &job->rejoins);
	if (rc == 0)
		rc = reader_bool(r, item, "external", &job->external);
	if (rc == 0)
		rc = reader_bool(r, item, "held", &job->held);
	if (rc == 0)
		rc = reader_size(r, item, "vram", &job->vram_mib);
	if (rc == 0)
		rc = reader_size(r, item, "ram", &job->ram_mib);
	job->priority = (int32_t)priority;
	job->cpu_milli = cpus * 1000;
	return rc;
}

/* Who runs already. */

/* One entry of `running`: "n0", "n[0-1]", "n0/3", "n0/3/1"; the text is cut at the slash. */
static int read_place(struct reader *r, const struct conf *at, const char *text,
		      struct names *ret_nodes, struct scenario_place *ret)
{
	const char *slash = strchr(text, '/'), *end = slash ? strchr(slash + 1, '/') : NULL,
		   *number = slash ? slash + 1 : "";
	int64_t gpu = -1, slice = -1;
	struct err why;

	if (end)
		number = arena_strndup(r->arena, number, (size_t)(end - number));
	if (slash && parse_int(number, 0, NODE_GPUS_MAX - 1, &gpu, &why) < 0)
		return conf_error(r->err, r->file, at, "GPU index in \"%.60s\": %s", text,
				  why.text);
	if (end && parse_int(end + 1, 0, LAYOUT_SLOTS - 1, &slice, &why) < 0)
		return conf_error(r->err, r->file, at, "slice index in \"%.60s\": %s", text,
				  why.text);
	*ret = (struct scenario_place){ .gpu = (int32_t)gpu, .slice = (int32_t)slice };
	if (slash)
		text = arena_strndup(r->arena, text, (size_t)(slash - text));
	if (parse_name_range(text, r->arena, SCENARIO_RANGE_MAX, &ret_nodes->at, &ret_nodes->count,
			     &why) < 0)
		return conf_error(r->err, r->file, at, "running: %s", why.text);
	for (size_t i = 0; i < ret_nodes->count; i++)
		if (scenario_check_node(r, at, ret_nodes->at[i]) < 0)
			return -(int)ERR_INVALID;
	return 0;
}

/* Gives one entry's tasks to the jobs that the name expanded to. */
static int give_places(struct reader *r, const struct conf *at, const struct names *nodes,
		       struct scenario_place place, uint32_t tasks, struct scenario_job *jobs,
		       size_t count)
{
	bool beside = nodes->count > 1 && count > 1;

	if (beside && nodes->count != count)
		return conf_error(r->err, r->file, at,
				  "running names %zu nodes side by side with %zu jobs",
				  nodes->count, count);
	for (size_t i = 0; i < count; i++) {
		struct scenario_place *places =
			arena_new_array(r->arena, struct scenario_place,
					jobs[i].running_count + tasks * nodes->count);

		if (jobs[i].running_count)
			memcpy(places, jobs[i].running, jobs[i].running_count * sizeof(*places));
		for (size_t n = 0; n < (beside ? 1 : nodes->count); n++)
			for (uint32_t t = 0; t < tasks; t++)
				places[jobs[i].running_count++] =
					(struct scenario_place){ .node = nodes->at[beside ? i : n],
								 .gpu = place.gpu,
								 .slice = place.slice };
		jobs[i].running = places;
	}
	return 0;
}

static int read_running(struct reader *r, const struct conf *c, struct scenario_job *jobs,
			size_t count)
{
	struct names nodes = { 0 };
	struct scenario_place place = { .gpu = -1, .slice = -1 };
	int64_t tasks = 1;
	int rc = 0;

	if (c->type != CONF_LIST && c->type != CONF_MAP)
		return conf_error(
			r->err, r->file, c,
			"running must be a list of nodes, one per task, or a map {n0: 2}");
	if (c->count == 0)
		return conf_error(r->err, r->file, c,
				  "running is empty; leave it out for a job that waits");
	for (size_t i = 0; rc == 0 && i < c->count; i++) {
		const struct conf *item = c->items[i];

		if (c->type == CONF_MAP)
			rc = conf_int(r->err, r->file, item, "number of tasks", 1, TASKS_MAX,
				      &tasks);
		else if (item->type != CONF_SCALAR)
			return conf_error(r->err, r->file, item,
					  "running: a node's name is expected");
		if (rc == 0)
			rc = read_place(r, item, c->type == CONF_MAP ? item->key : item->text,
					&nodes, &place);
		if (rc == 0 && place.gpu >= 0 &&
		    (tasks != 1 || scenario_task_gpus(&jobs[0], jobs[0].running_count) != 1))
			return conf_error(r->err, r->file, item,
					  "a GPU can be named only for a task of one GPU");
		if (rc == 0)
			rc = give_places(r, item, &nodes, place, (uint32_t)tasks, jobs, count);
	}
	for (size_t i = 0; rc == 0 && i < count; i++)
		if (jobs[i].running_count < jobs[i].tasks_min ||
		    jobs[i].running_count > jobs[i].tasks_max)
			return conf_error(
				r->err, r->file, c,
				"running places %u tasks of job \"%s\", which has %u to %u",
				jobs[i].running_count, jobs[i].name, jobs[i].tasks_min,
				jobs[i].tasks_max);
	return rc;
}

/* The list of jobs. */

static int check_queue(struct reader *r, const struct conf *item, const struct scenario_job *job)
{
	const struct conf *c = conf_find(item, "queue");
	const char **names = arena_new_array(r->arena, const char *, r->s->queue_count);

	for (uint32_t i = 0; i < r->s->queue_count; i++) {
		if (strcmp(r->s->queues[i].name, job->queue) == 0)
			return 0;
		names[i] = r->s->queues[i].name;
	}
	return reader_unknown(r, c ? c : item, "queue", job->queue, names, r->s->queue_count);
}

static int check_job(struct reader *r, const struct conf *item, const struct scenario_job *job)
{
	if (job->running_count && job->at_ms)
		return conf_error(
			r->err, r->file, item,
			"job \"%s\" is running already; `at` is for those that come later",
			job->name);
	if (job->running_count && job->held)
		return conf_error(r->err, r->file, item,
				  "job \"%s\" can't be both running and held", job->name);
	if (job->running_count && job->array_count)
		return conf_error(
			r->err, r->file, item,
			"job \"%s\": an array can't be running already; name the jobs \"%s[0-%u]\"",
			job->name, job->name, job->array_count - 1);
	if (job->age_ms && !job->running_count)
		return conf_error(r->err, r->file, item, "job \"%s\" has an age but is not running",
				  job->name);
	return check_queue(r, item, job);
}

static int read_job(struct reader *r, const struct conf *item, struct scenario_job *jobs,
		    uint32_t *count)
{
	static const char *const known[] = { "name",        "queue",          "kind",
					     "tier",        "priority",       "tasks",
					     "gpus",        "model",          "vram",
					     "topology",    "preempts",       "at",
					     "runtime",     "limit",          "restart_cost",
					     "resize",      "checkpoint",     "running",
					     "age",         "cpus",           "ram",
					     "depends",     "retries",        "held",
					     "array",       "estimate",       "grace",
					     "fails_after", "starts_in",      "stops_in",
					     "user",        "exit_code",      "min_driver",
					     "min_cuda",    "min_capability", "region",
					     "selector",    "tolerates",      "rejoin",
					     "deadline",    "efficiency",     "spread",
					     "throughput",  "min_throughput", "mix_models",
					     "data",        "roles",          "align",
					     "window",      "window_end",     "team",
					     "mask",        "labels",         "apart_from",
					     "apart_level", "apart_prefer",   "external",
					     "capacity",    "together" };
	const struct conf *running = conf_find(item, "running"),
			  *depends = conf_find(item, "depends");
	struct scenario_job job = job_default;
	struct names names = { 0 }, before = { 0 };
	int rc = reader_map(r, item, "job", known, ARRAY_SIZE(known));

	if (rc == 0 && !conf_find(item, "name"))
		return conf_error(r->err, r->file, item, "a job needs a name");
	if (rc == 0)
		rc = reader_range(r, conf_find(item, "name"), "name of a job", &names);
	if (rc == 0)
		rc = reader_text(r, item, "queue", &job.queue);
	if (rc == 0)
		rc = reader_text(r, item, "user", &job.user);
	if (rc == 0)
		rc = reader_text(r, item, "team", &job.team);
	if (rc == 0)
		rc = read_words(r, item, &job);
	if (rc == 0)
		rc = read_times(r, item, &job);
	if (rc == 0)
		rc = read_numbers(r, item, &job);
	if (rc == 0)
		rc = read_tasks(r, conf_find(item, "tasks"), &job);
	if (rc == 0)
		rc = scenario_read_roles(r, item, &job);
	if (rc == 0)
		rc = read_models(r, conf_find(item, "model"), &job);
	if (rc == 0)
		rc = read_topology(r, conf_find(item, "topology"), &job);
	if (rc == 0)
		rc = reader_text(r, item, "spread", &job.spread);
	if (rc == 0)
		rc = check_level(r, item, "spread");
	if (rc == 0)
		rc = check_level(r, item, "apart_level");
	if (rc == 0)
		rc = read_checkpoint(r, conf_find(item, "checkpoint"), &job);
	if (rc == 0)
		rc = scenario_read_job_names(r, item, &job);
	if (rc == 0 && depends)
		rc = reader_ranges(r, depends, "depends", &before);
	if (rc < 0)
		return rc;
	job.line = item->line;
	job.depends = before.at;
	job.depend_count = (uint32_t)before.count;
	for (size_t i = 0; i < names.count; i++) {
		jobs[*count + i] = job;
		jobs[*count + i].name = names.at[i];
	}
	if (running)
		rc = read_running(r, running, jobs + *count, names.count);
	for (size_t i = 0; rc == 0 && i < names.count; i++)
		rc = check_job(r, item, &jobs[*count + i]);
	*count += (uint32_t)names.count;
	return rc;
}

static int check_depends(struct reader *r, const struct conf *list)
{
	for (uint32_t i = 0; i < r->s->job_count; i++)
		for (uint32_t k = 0; k < r->s->jobs[i].depend_count; k++)
			if (scenario_check_job(r, list, r->s->jobs[i].depends[k]) < 0)
				return -(int)ERR_INVALID;
	return 0;
}

int scenario_read_jobs(struct reader *r, const struct conf *list)
{
	const char **names, *twice;
	struct scenario_job *jobs;
	size_t total = 0;
	uint32_t count = 0;
	int rc = reader_count(r, list, "jobs", SCENARIO_JOBS_MAX, &total);

	if (rc < 0)
		return rc;
	jobs = arena_new_array(r->arena, struct scenario_job, total + 1);
	for (size_t i = 0; rc == 0 && i < list->count; i++)
		rc = read_job(r, list->items[i], jobs, &count);
	if (rc < 0)
		return rc;
	r->s->jobs = jobs;
	r->s->job_count = count;
	names = arena_new_array(r->arena, const char *, count + 1);
	for (uint32_t i = 0; i < count; i++)
		names[i] = jobs[i].name;
	twice = reader_twice(r, names, count);
	if (twice)
		return conf_error(r->err, r->file, list, "two jobs are named \"%s\"", twice);
	return check_depends(r, list);
}

const struct scenario_job *scenario_job_find(const struct scenario *scenario, const char *name)
{
	for (uint32_t i = 0; i < scenario->job_count; i++)
		if (strcmp(scenario->jobs[i].name, name) == 0)
			return &scenario->jobs[i];
	return NULL;
}

int scenario_check_job(struct reader *r, const struct conf *c, const char *name)
{
	const char **names;

	if (scenario_job_find(r->s, name))
		return 0;
	names = arena_new_array(r->arena, const char *, r->s->job_count + 1);
	for (uint32_t i = 0; i < r->s->job_count; i++)
		names[i] = r->s->jobs[i].name;
	return reader_unknown(r, c, "job", name, names, r->s->job_count);
}
