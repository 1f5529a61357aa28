/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time 0 of a scenario. What runs already gets a history: it was submitted and placed when its
 * age says, by the same events that the core would have made, and its checkpoints of the time
 * since are there. Then everything else of time 0 is submitted in the order written.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/digest.h"
#include "base/zone.h"
#include "core/scheduling/admit/admit.h"
#include "core/scheduling/queues/calendar.h"
#include "sim/data_file.h"
#include "sim/fabric_file.h"
#include "sim/runner.h"

int run_error(const struct run *run, int line, struct err *err)
{
	struct err why = *err;

	return err_at(err, why.code, run->scenario->file, line, 1, "%s", why.text);
}

static int offer(struct run *run, struct event *e, int line, struct err *err)
{
	int rc = world_offer(&run->world, e, NULL, err);

	return rc < 0 ? run_error(run, line, err) : 0;
}

/* The cluster. */

static int set_policy(struct run *run, struct err *err)
{
	const struct scenario_policy *p = &run->scenario->policy;
	struct event e = event_policy_make(0, "scenario");

	e.policy_set.min_runtime_ms = p->min_runtime_ms;
	e.policy_set.grace_ms = p->grace_ms;
	e.policy_set.rejoin_ms = p->rejoin_ms;
	e.policy_set.default_limit_ms = p->default_limit_ms;
	e.policy_set.packing = p->packing;
	e.policy_set.blackhole_failures = p->blackhole_failures;
	e.policy_set.blackhole_window_ms = p->blackhole_window_ms;
	e.policy_set.allow_critical_burst = p->allow_critical_burst;
	e.policy_set.backfill_depth = p->backfill_depth;
	e.policy_set.collect_after_ms = p->collect_after_ms;
	e.policy_set.order_deadline = p->order_deadline;
	e.policy_set.order_efficiency = p->order_efficiency;
	e.policy_set.order_age = p->order_age;
	e.policy_set.order_user = p->order_user;
	e.policy_set.order_budget = p->order_budget;
	e.policy_set.budget_warns = p->budget_warns;
	e.policy_set.half_life_ms = p->half_life_ms;
	e.policy_set.defragment = p->defragment;
	e.policy_set.defragment_moves = p->defragment_moves;
	e.policy_set.defragment_work_ms = p->defragment_work_ms;
	e.policy_set.share_gpus = p->share_gpus;
	e.policy_set.patience = p->patience;
	e.policy_set.take_turns = p->take_turns;
	e.policy_set.reserve_unsure_ms = p->reserve_unsure_ms;
	e.policy_set.spot_notice_ms = p->spot_notice_ms;
	e.policy_set.max_slowdown = p->max_slowdown;
	return offer(run, &e, run->scenario->line, err);
}

static int set_prices(struct run *run, struct err *err)
{
	const struct scenario_policy *p = &run->scenario->policy;
	int rc = 0;

	for (uint32_t i = 0; i < p->price_count && rc == 0; i++) {
		struct event e = event_make(EVENT_PRICE_SET, 0, "scenario");

		e.price_set.model = p->price_models[i];
		e.price_set.micro_per_hour = p->prices_micro[i];
		rc = offer(run, &e, run->scenario->line, err);
	}
	return rc;
}

static int set_data(struct run *run, struct err *err)
{
	const struct scenario *s = run->scenario;
	struct event *events;
	uint32_t count;
	int rc = data_file_read(s->file, s->data, s->transfers, &run->world.facts, &run->memory,
				&events, &count, err);

	for (uint32_t i = 0; i < count && rc == 0; i++) {
		events[i].actor = "scenario";
		rc = offer(run, &events[i], s->line, err);
	}
	return rc;
}

static int set_levels(struct run *run, struct err *err)
{
	struct event e = event_make(EVENT_LEVELS_SET, 0, "scenario");

	e.levels_set.levels = run->scenario->levels;
	return run->scenario->level_count ? offer(run, &e, run->scenario->line, err) : 0;
}

static int mark_node(struct run *run, const struct scenario_node *node, struct err *err)
{
	struct event e = event_make(EVENT_NODE_MARKED, 0, "scenario");

	e.node_marked.node = facts_node_find(&run->world.facts, node->name).v;
	e.node_marked.labels = node->labels;
	e.node_marked.taints = node->taints;
	e.node_marked.data = node->data;
	e.node_marked.class = node->class;
	e.node_marked.partitioning = node->partitioning;
	e.node_marked.slices_only = node->slices_only;
	e.node_marked.capacity = node->capacity;
	return offer(run, &e, node->line, err);
}

static int cut_gpus(struct run *run, const struct scenario_node *node, struct err *err)
{
	struct event e = event_make(EVENT_LAYOUT_SET, 0, "scenario");
	int64_t gpus[NODE_GPUS_MAX];

	for (uint32_t i = 0; i < node->layout_count; i++)
		gpus[i] = i;
	e.layout_set.node = facts_node_find(&run->world.facts, node->name).v;
	e.layout_set.gpus = gpus;
	e.layout_set.layouts = node->layouts;
	e.layout_set.gpus_count = e.layout_set.layouts_count = node->layout_count;
	return offer(run, &e, node->line, err);
}

static int tell_numa(struct run *run, const struct scenario_node *node, struct err *err)
{
	struct event e = event_make(EVENT_NODE_NUMA, 0, "scenario");

	e.node_numa.node = facts_node_find(&run->world.facts, node->name).v;
	e.node_numa.gpus = node->numa_gpus;
	e.node_numa.cpu_milli = node->numa_cpu_milli;
	e.node_numa.nics = node->numa_nics;
	e.node_numa.gpus_count = e.node_numa.cpu_milli_count = e.node_numa.nics_count =
		node->numa_count;
	return offer(run, &e, node->line, err);
}

int run_set_node(struct run *run, const struct scenario_node *node, struct err *err)
{
	struct event e = event_make(EVENT_NODE_SET, 0, "scenario");
	int rc;

	e.node_set.name = node->name;
	e.node_set.gpus = node->gpus;
	e.node_set.model = node->model;
	e.node_set.gpu_memory_mib = node->gpu_memory_mib;
	e.node_set.cpu_milli = node->cpu_milli;
	e.node_set.ram_mib = node->ram_mib;
	e.node_set.domains = node->domains;
	e.node_set.simulated = 1;
	e.node_set.nvlink_islands = node->islands;
	e.node_set.nvlink_islands_count = node->island_count;
	e.node_set.driver = node->driver;
	e.node_set.cuda = node->cuda;
	e.node_set.capability = node->capability;
	rc = offer(run, &e, node->line, err);
	if (rc == 0 && (*node->labels || *node->taints || *node->data || node->class ||
			node->partitioning || node->slices_only || node->capacity))
		rc = mark_node(run, node, err);
	if (rc == 0 && node->layout_count)
		rc = cut_gpus(run, node, err);
	return rc == 0 && node->numa_count ? tell_numa(run, node, err) : rc;
}

/* The clock that a calendar names comes from this machine's zone files, once. */
static int set_zone(struct run *run, const char *calendar, int line, struct err *err)
{
	struct calendar c;
	struct zone_rules rules;
	struct event e;

	if (calendar_parse(calendar, &c, NULL) < 0 || !c.zone_name[0] ||
	    facts_zone_find(&run->world.facts, c.zone_name))
		return 0; /* what is wrong with it is said when it is offered */
	if (zone_read(c.zone_name, &rules, err) < 0)
		return run_error(run, line, err);
	e = event_zone_make(c.zone_name, &rules, 0, "scenario");
	return offer(run, &e, line, err);
}

int run_set_queue(struct run *run, const struct scenario_queue *queue, struct err *err)
{
	struct event e = event_make(EVENT_QUEUE_SET, 0, "scenario");
	int rc;

	e.queue_set.name = queue->name;
	e.queue_set.parent = queue->parent;
	e.queue_set.guarantee_share = queue->guarantee_share;
	e.queue_set.limit_share = queue->limit_share;
	e.queue_set.weight = queue->weight;
	e.queue_set.reserved = queue->reserved;
	e.queue_set.used_gpu_ms = queue->used_gpu_hours * 3600000;
	e.queue_set.calendar = queue->calendar;
	e.queue_set.limit_models = queue->limit_models;
	e.queue_set.limit_model_shares = queue->limit_model_shares;
	e.queue_set.limit_model_shares_count = queue->limit_model_count;
	e.queue_set.guarantee_models = queue->guarantee_models;
	e.queue_set.guarantee_model_shares = queue->guarantee_model_shares;
	e.queue_set.guarantee_model_shares_count = queue->guarantee_model_count;
	e.queue_set.limit_cpu_milli = queue->limit_cpus * 1000;
	e.queue_set.limit_ram_mib = queue->limit_ram_mib;
	e.queue_set.user_limit_share = queue->user_limit_share;
	e.queue_set.user_part = queue->user_part;
	rc = set_zone(run, queue->calendar, queue->line, err);
	if (rc == 0)
		rc = offer(run, &e, queue->line, err);
	if (rc < 0 || !queue->budget_said)
		return rc;
	e = event_make(EVENT_BUDGET_SET, 0, "scenario");
	e.budget_set.queue = queue->name;
	e.budget_set.left_micro = queue->budget_micro;
	return offer(run, &e, queue->line, err);
}

static uint32_t queue_depth(const struct run *run, const struct scenario_queue *queue)
{
	for (uint32_t i = 0; *queue->parent && i < run->scenario->queue_count; i++)
		if (strcmp(run->scenario->queues[i].name, queue->parent) == 0)
			return queue_depth(run, &run->scenario->queues[i]) + 1;
	return 0;
}

/* Parents before children; permuted: brothers in the other order. */
static int set_queues(struct run *run, struct err *err)
{
	uint32_t left = run->scenario->queue_count;
	int rc = 0;

	run->queues = arena_new_array(&run->memory, struct scenario_queue, left + 1);
	memcpy(run->queues, run->scenario->queues, left * sizeof(*run->queues));
	for (uint32_t depth = 0; left && rc == 0; depth++)
		for (uint32_t n = 0; n < run->scenario->queue_count && rc == 0; n++) {
			uint32_t at = run->permuted ? run->scenario->queue_count - 1 - n : n;

			if (queue_depth(run, &run->queues[at]) != depth)
				continue;
			rc = run_set_queue(run, &run->queues[at], err);
			left--;
		}
	return rc;
}

static int set_nodes(struct run *run, struct err *err)
{
	uint32_t count = run->scenario->node_count;
	int rc = 0;

	run->nodes = arena_new_array(&run->memory, struct run_node, count + 1);
	for (uint32_t n = 0; n < count; n++)
		run->nodes[n].from = &run->scenario->nodes[n];
	for (uint32_t n = 0; n < count && rc == 0; n++)
		rc = run_set_node(run, &run->scenario->nodes[run->permuted ? count - 1 - n : n],
				  err);
	return rc;
}

/* Nodes that come later are built like the others of their model. */
static int set_fabric(struct run *run, struct err *err)
{
	const struct scenario *s = run->scenario;
	struct event e = event_make(EVENT_FABRIC_SET, 0, "scenario");
	int64_t *nodes;

	if (!s->draft)
		return 0;
	nodes = arena_new_array(&run->memory, int64_t, (size_t)2 * s->node_count + 1);
	for (uint32_t n = 0; n < s->node_count; n++) {
		nodes[n] = facts_node_find(&run->world.facts, s->nodes[n].name).v;
		nodes[s->node_count + n] = s->nodes[n].make;
	}
	fabric_draft_event(s->draft, &run->memory, &e.fabric_set);
	e.fabric_set.nodes = nodes;
	e.fabric_set.node_makes = nodes + s->node_count;
	e.fabric_set.nodes_count = e.fabric_set.node_makes_count = s->node_count;
	return offer(run, &e, s->line, err);
}

/* Submitting. */

/* Numbers of jobs, then for each whether it stands for its whole array. */
static int64_t *depend_ids(struct run *run, const struct scenario_job *from, uint32_t *ret_count,
			   struct err *err)
{
	uint32_t count = 0, room = 1;
	int64_t *ids;

	room += from->depend_count;
	ids = arena_new_array(&run->memory, int64_t, (size_t)2 * room);
	for (uint32_t i = 0; i < from->depend_count; i++) {
		const struct run_job *before = run_job_find(run, from->depends[i]);

		if (!before->id) {
			err_set(err, ERR_INVALID,
				"job \"%s\" depends on \"%s\", which was not submitted before it",
				from->name, from->depends[i]);
			run_error(run, from->line, err);
			return NULL;
		}
		ids[count] = before->id;
		ids[from->depend_count + count++] = before->count > 1;
	}
	*ret_count = count;
	return ids;
}

static void submission_roles(struct event_job_submitted *j, const struct scenario_roles *roles)
{
	j->roles = roles->names;
	j->role_numbers = roles->numbers[0];
	j->role_numbers_count = roles->count * ROLE_NUMBERS;
	j->role_masks = roles->masks;
	j->together = roles->together;
}

static struct event submission(struct run *run, const struct scenario_job *from)
{
	struct event e = event_make(EVENT_JOB_SUBMITTED, 0, "scenario");
	struct event_job_submitted *j = &e.job_submitted;
	struct digest key = digest_of(from->name, strlen(from->name));
	char *hex = arena_alloc(&run->memory, DIGEST_HEX_MAX);

	digest_format(&key, hex);
	j->name = from->name;
	j->user = from->user;
	j->team = from->team;
	j->queue = from->queue;
	j->kind = from->kind;
	j->tier = from->tier;
	j->priority = from->priority;
	j->tasks_min = from->tasks_min;
	j->tasks_max = from->tasks_max;
	j->gpus = from->gpus;
	j->models = from->models;
	j->gpu_memory_mib = from->vram_mib;
	j->cpu_milli = from->cpu_milli;
	j->memory_mib = from->ram_mib;
	j->require = from->require;
	j->prefer = from->prefer;
	j->spread = from->spread;
	j->data = from->data;
	j->align = from->align;
	j->window = from->window;
	j->own_labels = from->own_labels;
	j->apart_from = from->apart_from;
	j->apart_level = from->apart_level;
	j->apart_wish = from->apart_wish;
	j->mask = from->mask;
	j->window_end = from->window_end;
	j->throughput = from->throughput;
	j->throughput_count = from->throughput_count;
	j->min_throughput = from->min_throughput;
	j->mixes = from->mixes;
	j->limit_ms = from->limit_ms;
	j->estimate_ms = from->estimate_ms;
	j->retries = from->retries;
	j->preempts = from->preempts;
	j->checkpoint = from->checkpoints;
	j->checkpoint_every_ms = from->checkpoint_every_ms;
	j->grace_ms = from->grace_ms;
	j->restart_cost_ms = from->restart_cost_ms;
	j->held = from->held;
	j->array_count = from->array_count;
	j->array_limit = from->array_limit;
	j->resize = from->resize;
	j->rejoins = from->rejoins;
	j->external = from->external;
	j->min_driver = from->min_driver;
	j->min_cuda = from->min_cuda;
	j->min_capability = from->min_capability;
	j->regions = from->regions;
	j->labels = from->labels;
	j->tolerates = from->tolerates;
	j->deadline_ms = from->deadline_ms;
	j->capacity = from->capacity;
	j->efficiency = from->efficiency;
	j->max_slowdown = from->max_slowdown;
	j->gpu_part = from->gpu_part;
	j->gpu_part_mib = from->gpu_part_mib;
	j->slice = from->slice;
	if (from->roles)
		submission_roles(j, from->roles);
	j->body = hex;
	j->body_mac = hex;
	j->client_key = hex;
	return e;
}

/* A refusal as a reason code: what the job would wait for if it could be submitted. */
static enum reason refusal_reason(const struct event_job_submitted *e, const struct err *why)
{
	if (why->code == ERR_QUOTA)
		return e->tier == TIER_CRITICAL ? REASON_GUARANTEE_ONLY : REASON_QUOTA_LIMIT;
	return submission_exceeds_part(e) ? REASON_MEMORY : REASON_IMPOSSIBLE;
}

static void refuse(struct run *run, struct run_job *job, const struct event_job_submitted *e,
		   const struct err *why)
{
	job->refused = true;
	job->refusal = refusal_reason(e, why);
	job->refusal_text = arena_strdup(&run->memory, why->text);
	if (run->trace)
		fprintf(run->trace, "#   refused          %s: %s\n", job->from->name, why->text);
}

static void name_job(struct run *run, uint32_t index, uint32_t id)
{
	if (id >= run->job_room) {
		uint32_t room = id * 2 + 64;
		uint32_t *grown = arena_new_array(&run->memory, uint32_t, room);

		if (run->job_room)
			memcpy(grown, run->job_at, run->job_room * sizeof(*grown));
		run->job_at = grown;
		run->job_room = room;
	}
	run->job_at[id] = index + 1;
}

static void tell_engine(struct run *run, const struct run_job *job)
{
	const struct scenario_job *from = job->from;
	struct sim_work work = { .runtime_ms = from->runtime_ms,
				 .fails_after_ms = from->fails_after_ms,
				 .exit_code = (int32_t)from->exit_code,
				 .every_ms = from->checkpoint_every_ms,
				 .takes_ms = from->checkpoint_takes_ms,
				 .restart_ms = from->restart_cost_ms,
				 .ready_ms = from->ready_ms,
				 .stop_ms = from->stop_ms,
				 .checkpoints = from->checkpoints,
				 .role_runtime_ms = from->roles ? from->roles->runtime_ms : NULL };

	for (uint32_t i = 0; i < job->count; i++)
		engine_sim_job(&run->world.engine, job->id + i, &work);
}

int run_team(struct run *run, const char *team, int line, struct err *err)
{
	struct event e = event_make(EVENT_TEAM_SET, 0, "scenario");

	e.team_set.name = team;
	if (!*team || facts_team_find(&run->world.facts, team))
		return 0;
	return world_offer(&run->world, &e, NULL, err) < 0 ? run_error(run, line, err) : 0;
}

int run_submit(struct run *run, uint32_t index, struct err *err)
{
	struct run_job *job = &run->jobs[index];
	struct event e = submission(run, job->from);
	uint32_t id = run->world.facts.jobs.count + 1, depend_count;
	int64_t *depends = depend_ids(run, job->from, &depend_count, err);
	int rc;

	if (!depends || run_team(run, job->from->team, job->from->line, err) < 0 ||
	    set_zone(run, job->from->window, job->from->line, err) < 0)
		return -(int)err->code;
	e.job_submitted.depends = depends;
	e.job_submitted.depends_whole = depends + depend_count;
	e.job_submitted.depends_count = e.job_submitted.depends_whole_count = depend_count;
	job->id = id;
	job->count = job->from->array_count ? job->from->array_count : 1;
	for (uint32_t i = 0; i < job->count; i++)
		name_job(run, index, id + i);
	rc = world_offer(&run->world, &e, NULL, err);
	if (rc == 0) {
		CHECK(run->world.facts.jobs.count == id + job->count - 1);
		tell_engine(run, job);
		return 0;
	}
	for (uint32_t i = 0; i < job->count; i++)
		run->job_at[id + i] = 0;
	job->id = job->count = 0;
	if (rc > 0)
		return err_at(err, ERR_INVALID, run->scenario->file, job->from->line, 1,
			      "job \"%s\" is submitted twice", job->from->name);
	if (err->code == ERR_UNSUPPORTED || job->from->running_count)
		return run_error(run, job->from->line, err);
	refuse(run, job, &e.job_submitted, err);
	return 0;
}

/* The order of submission. Permuted: queue after queue, that of the last job first; inside a
 * queue as written. */
static uint32_t *submit_order(struct run *run)
{
	const struct scenario *s = run->scenario;
	uint32_t *order = arena_new_array(&run->memory, uint32_t, s->job_count + 1), count = 0;
	bool *done = arena_new_array(&run->memory, bool, s->job_count + 1);

	for (uint32_t n = 0; n < s->job_count; n++) {
		uint32_t lead = run->permuted ? s->job_count - 1 - n : n;

		for (uint32_t i = run->permuted ? 0 : lead; i <= lead; i++)
			if (!done[i] &&
			    (i == lead || strcmp(s->jobs[i].queue, s->jobs[lead].queue) == 0)) {
				order[count++] = i;
				done[i] = true;
			}
	}
	return order;
}

/* Jobs of the past when `old`, else those of time 0 itself. */
static int submit_now(struct run *run, const uint32_t *order, bool old, struct err *err)
{
	int rc = 0;

	for (uint32_t n = 0; n < run->scenario->job_count && rc == 0; n++) {
		const struct scenario_job *from = run->jobs[order[n]].from;

		if (from->at_ms == 0 && (from->age_ms > 0) == old)
			rc = run_submit(run, order[n], err);
	}
	return rc;
}

static int compare_ages(const void *a, const void *b)
{
	const struct run_job *const *x = a, *const *y = b;

	if ((*x)->from->age_ms != (*y)->from->age_ms)
		return (*x)->from->age_ms > (*y)->from->age_ms ? -1 : 1;
	return (*x)->id<(*y)->id ? -1 : (*x)->id>(*y)->id;
}

static uint32_t list_running(struct run *run, struct run_job **ret)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < run->scenario->job_count; i++)
		if (run->jobs[i].from->running_count)
			ret[count++] = &run->jobs[i];
	qsort(ret, count, sizeof(struct run_job *), compare_ages);
	return count;
}

/* History: jobs of the past and of now are submitted, those that run are started. */
static int set_jobs(struct run *run, const uint32_t *order, struct err *err)
{
	struct run_job **running =
		arena_new_array(&run->memory, struct run_job *, run->scenario->job_count + 1);
	int64_t **masks = run_masks_find(run, err), zero_ms = run->world.checks.start_ms;
	uint32_t count, old = 0;
	int rc;

	if (!masks)
		return -(int)err->code;
	rc = submit_now(run, order, true, err);
	if (rc < 0)
		return rc;
	count = list_running(run, running);
	while (old < count && running[old]->from->age_ms > 0)
		old++;
	run_start_old(run, masks, running, old, zero_ms);
	run->world.now_ms = zero_ms;
	rc = submit_now(run, order, false, err);
	if (rc < 0)
		return rc;
	count = list_running(run, running);
	for (uint32_t i = old; i < count; i++)
		run_start_running(run, running[i], masks[running[i] - run->jobs], zero_ms);
	for (uint32_t i = 0; i < count; i++)
		engine_sim_adopt(&run->world.engine, &run->world.facts, i + 1,
				 zero_ms - running[i]->from->age_ms);
	return 0;
}

int run_setup(struct run *run, struct err *err)
{
	const struct scenario *s = run->scenario;
	int64_t oldest_ms = 0;
	int rc;

	run->jobs = arena_new_array(&run->memory, struct run_job, s->job_count + 1);
	for (uint32_t i = 0; i < s->job_count; i++) {
		run->jobs[i] = (struct run_job){ .from = &s->jobs[i], .started_ms = -1 };
		if (s->jobs[i].age_ms > oldest_ms)
			oldest_ms = s->jobs[i].age_ms;
	}
	world_init(&run->world, WORLD_EPOCH_MS - oldest_ms);
	run->world.checks.start_ms = WORLD_EPOCH_MS;
	run->world.engine.now_ms = WORLD_EPOCH_MS;
	run->world.context = run;
	run->world.observe = run_observe;
	rc = set_policy(run, err);
	if (rc == 0)
		rc = set_prices(run, err);
	if (rc == 0)
		rc = set_data(run, err);
	if (rc == 0)
		rc = set_levels(run, err);
	if (rc == 0)
		rc = set_nodes(run, err);
	if (rc == 0)
		rc = set_fabric(run, err);
	if (rc == 0)
		rc = set_queues(run, err);
	return rc == 0 ? set_jobs(run, submit_order(run), err) : rc;
}
