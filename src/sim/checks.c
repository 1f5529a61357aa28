/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/model/roles.h"
#include "sim/checks_fit.h"
#include "sim/checks_shared.h"
#include "sim/checks_spot.h"

enum { MEMORY_CAP = 1 << 28 };

void checks_init(struct checks *checks, int64_t start_ms)
{
	*checks = (struct checks){ .start_ms = start_ms };
	arena_init(&checks->memory, MEMORY_CAP);
}

void checks_deinit(struct checks *checks)
{
	arena_deinit(&checks->memory);
	*checks = (struct checks){ 0 };
}

void checks_problem(struct checks *checks, const struct facts *facts, const char *format, ...)
{
	char text[512], when[DURATION_TEXT_MAX];
	va_list args;

	if (checks->problem_count++ >= CHECKS_TEXTS_MAX)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	format_duration(facts->now_ms > checks->start_ms ? facts->now_ms - checks->start_ms : 0,
			when);
	checks->problems[checks->problem_count - 1] =
		arena_printf(&checks->memory, "at %s: %s", when, text);
}

void *checks_room(struct checks *checks, void *array, uint32_t index, uint32_t *room, size_t bytes)
{
	uint32_t larger = *room ? *room : 16;
	void *grown;

	if (index < *room)
		return array;
	while (larger <= index)
		larger *= 2;
	grown = arena_array(&checks->memory, larger, bytes);
	if (*room)
		memcpy(grown, array, *room * bytes);
	*room = larger;
	return grown;
}

static const char *job_text(const struct facts *f, int64_t id)
{
	return id > 0 && id <= f->jobs.count
		       ? facts_name(f, job_get(f, (struct job_id){ (uint32_t)id })->name)
		       : "?";
}

static const struct attempt *attempt_find(const struct facts *f, int64_t id)
{
	return id > 0 && id <= f->attempts.count
		       ? attempt_get(f, (struct attempt_id){ (uint32_t)id })
		       : NULL;
}

static const char *attempt_job_text(const struct facts *f, int64_t id)
{
	const struct attempt *attempt = attempt_find(f, id);

	return attempt ? job_text(f, attempt->job.v) : "?";
}

/* The books. */

static void book_queue(struct checks *checks, const struct facts *f, struct queue_id id,
		       int64_t share)
{
	for (; id.v; id = queue_get(f, id)->parent) {
		checks->queues = checks_room(checks, checks->queues, id.v, &checks->queue_room,
					     sizeof(*checks->queues));
		checks->queues[id.v] += share;
	}
}

static void book_node(struct checks *checks, uint32_t node, int64_t cpu_milli, int64_t ram_mib)
{
	checks->nodes = checks_room(checks, checks->nodes, node, &checks->node_room,
				    sizeof(*checks->nodes));
	checks->nodes[node].cpu_milli += cpu_milli;
	checks->nodes[node].ram_mib += ram_mib;
}

/* Of one task, on that node. */
static int64_t task_share(const struct facts *f, const struct shape *shape, uint32_t rank,
			  uint32_t node)
{
	if (!shape_is_part(shape))
		return (int64_t)shape_wish(shape, rank).gpus * GPU_SHARE;
	return shape_part(shape, node_get(f, (struct node_id){ node })->gpu_memory_mib).share;
}

static void book_placed(struct checks *checks, const struct facts *f,
			const struct event_attempt_placed *e, const struct job *job)
{
	const struct shape *shape = shape_get(f, job->shape);

	for (uint32_t i = 0; i < e->nodes_count; i++) {
		book_node(checks, (uint32_t)e->nodes[i], shape_wish(shape, i).cpu_milli,
			  shape_wish(shape, i).memory_mib);
		book_queue(checks, f, job->queue, task_share(f, shape, i, (uint32_t)e->nodes[i]));
	}
	checks->live = checks_room(checks, checks->live, checks->live_count, &checks->live_room,
				   sizeof(*checks->live));
	checks->live[checks->live_count++] = (uint32_t)e->attempt;
}

static void book_ended(struct checks *checks, const struct facts *f, uint32_t id)
{
	const struct attempt *attempt = attempt_find(f, id);
	const struct job *job;
	const struct shape *shape;
	uint32_t at = 0;

	while (at < checks->live_count && checks->live[at] != id)
		at++;
	if (!attempt || at == checks->live_count)
		return;
	checks->live[at] = checks->live[--checks->live_count];
	job = job_get(f, attempt->job);
	shape = shape_get(f, job->shape);
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);
		struct task_wish wish = shape_wish(shape, rank);
		int64_t share = task->gpu_part ? task->gpu_part : (int64_t)wish.gpus * GPU_SHARE;

		if (!task_holds(task))
			continue;
		book_node(checks, task->node.v, -(int64_t)wish.cpu_milli,
			  -(int64_t)wish.memory_mib);
		book_queue(checks, f, job->queue, -share);
	}
}

/* Placing. */

static bool model_fits(const struct shape *shape, const struct node *node)
{
	if (!shape->models[0].v)
		return true;
	for (int i = 0; i < SHAPE_MODELS_MAX; i++)
		if (shape->models[i].v && name_same(shape->models[i], node->model))
			return true;
	return false;
}

/* "key=value" or "key", as the texts say: told apart from numbers, which the core goes by. */
static bool tolerated(const struct facts *f, const struct shape *shape, const char *taint)
{
	for (uint32_t i = 0; i < SHAPE_LABELS_MAX && shape->tolerates[i].v; i++) {
		const char *text = facts_name(f, shape->tolerates[i]);
		size_t size = strlen(text);

		if (strcmp(text, taint) == 0 ||
		    (strncmp(text, taint, size) == 0 && taint[size] == '='))
			return true;
	}
	return false;
}

static bool node_has(const struct node *node, struct name_id label)
{
	for (uint32_t i = 0; i < LABELS_MAX; i++)
		if (name_same(node->label[i], label))
			return true;
	return false;
}

/* What is wrong with the node for this wish; NULL = nothing. */
static const char *node_lacks(const struct facts *f, const struct shape *shape,
			      const struct node *node)
{
	bool there = !shape->regions[0].v;

	if (version_parse(facts_name(f, node->driver)) < shape->min_driver ||
	    version_parse(facts_name(f, node->cuda)) < shape->min_cuda)
		return "whose driver is too old for it";
	for (uint32_t i = 0; i < TAINTS_MAX && node->taint[i].v; i++)
		if (!tolerated(f, shape, facts_name(f, node->taint[i])))
			return "whose taint it does not tolerate";
	for (uint32_t i = 0; i < SHAPE_LABELS_MAX && shape->labels[i].v; i++)
		if (!node_has(node, shape->labels[i]))
			return "which lacks a label it needs";
	if (shape->mask.v && (!facts_mask_find(f, shape->mask) ||
			      !node_is_in(node, facts_mask_find(f, shape->mask))))
		return "which is not in its mask";
	for (uint32_t i = 0; i < SHAPE_REGIONS_MAX && shape->regions[i].v; i++)
		there = there || node_has(node, shape->regions[i]);
	if (!there)
		return "which lies in no region it may run in";
	if (node->class != NODE_CLASS_ANY &&
	    (node->class == NODE_CLASS_INFERENCE) != (shape->serves != 0))
		return "whose class takes no work of its kind";
	return NULL;
}

static void check_task(struct checks *checks, const struct facts *f,
		       const struct engine_sim *engine, const char *name,
		       const struct shape *of_job, uint32_t rank, uint32_t id, uint32_t mask)
{
	struct shape own = *of_job;
	const struct shape *shape = &own;
	const struct node *node = node_get(f, (struct node_id){ id });
	const char *at = facts_name(f, node->name);

	if (of_job->role_count)
		shape_of_role(of_job, shape_role(of_job, rank), &own);
	if (node->state != NODE_READY)
		checks_problem(checks, f, "job %s is placed on node %s, which is %s", name, at,
			       node_state_name(node->state));
	if ((uint32_t)__builtin_popcount(mask) != shape->gpus)
		checks_problem(checks, f, "a task of job %s gets %d GPUs on %s, it wants %u", name,
			       __builtin_popcount(mask), at, shape->gpus);
	if (node->gpu_count < 32 && mask >> node->gpu_count)
		checks_problem(checks, f, "job %s is placed on GPUs that node %s does not have",
			       name, at);
	if (mask & node->set_aside_mask)
		checks_problem(checks, f, "job %s is placed on a GPU of %s that is set aside", name,
			       at);
	if (shape->gpus && !model_fits(shape, node))
		checks_problem(checks, f,
			       "job %s is placed on node %s, whose model it does not accept", name,
			       at);
	if (shape->gpus && !shape->slice &&
	    shape->gpu_memory_mib > (shape_is_part(shape)
					     ? shape_part(shape, node->gpu_memory_mib).mib
					     : node->gpu_memory_mib))
		checks_problem(checks, f,
			       "job %s is placed on node %s, whose GPUs have too little memory",
			       name, at);
	if (node_lacks(f, shape, node))
		checks_problem(checks, f, "job %s is placed on node %s, %s", name, at,
			       node_lacks(f, shape, node));
	for (uint32_t g = 0; g < NODE_GPUS_MAX; g++) {
		uint32_t holder = mask >> g & 1 ? engine_sim_holder(engine, id, g) : 0;

		if (holder)
			checks_problem(checks, f,
				       "GPU %s/%u is given to job %s while job %s holds it", at, g,
				       name, attempt_job_text(f, holder));
	}
}

static void check_nodes_room(struct checks *checks, const struct facts *f, const char *name,
			     const struct event_attempt_placed *e)
{
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		const struct node *node = node_get(f, (struct node_id){ (uint32_t)e->nodes[i] });
		const struct checks_node *used = &checks->nodes[e->nodes[i]];

		if (used->cpu_milli > node->cpu_milli)
			checks_problem(checks, f, "job %s takes node %s to %lld milli-CPUs of %u",
				       name, facts_name(f, node->name), (long long)used->cpu_milli,
				       node->cpu_milli);
		if (used->ram_mib > node->ram_mib)
			checks_problem(checks, f, "job %s takes node %s to %lld MiB of %u", name,
				       facts_name(f, node->name), (long long)used->ram_mib,
				       node->ram_mib);
		for (uint32_t k = 0; k < i; k++)
			if (e->nodes[k] == e->nodes[i] && e->masks[k] & e->masks[i] &&
			    !e->parts_count)
				checks_problem(checks, f, "two tasks of job %s get the same GPU",
					       name);
	}
}

static bool in_one_island(const struct node *node, uint32_t mask)
{
	bool islands = false;

	for (int i = 0; i < ISLANDS_MAX; i++) {
		islands = islands || node->island_mask[i];
		if (node->island_mask[i] && (mask & ~node->island_mask[i]) == 0)
			return true;
	}
	return !islands;
}

static void check_level(struct checks *checks, const struct facts *f, const char *name,
			const struct shape *shape, const struct event_attempt_placed *e)
{
	const struct node *first = node_get(f, (struct node_id){ (uint32_t)e->nodes[0] });
	uint32_t mask = 0;
	bool apart = false;

	for (uint32_t i = 0; shape->require && i < e->nodes_count; i++) {
		const struct node *node = node_get(f, (struct node_id){ (uint32_t)e->nodes[i] });

		mask |= (uint32_t)e->masks[i];
		if (shape->require >= LEVEL_NODE)
			apart = apart || e->nodes[i] != e->nodes[0];
		else
			apart = apart || !node->domain[shape->require - 1].v ||
				!name_same(node->domain[shape->require - 1],
					   first->domain[shape->require - 1]);
	}
	if (shape->require == LEVEL_ISLAND && !in_one_island(first, mask))
		apart = true;
	if (apart)
		checks_problem(checks, f,
			       "job %s is placed across the topology level that it requires", name);
}

static void check_limits(struct checks *checks, const struct facts *f, const char *name,
			 struct queue_id id)
{
	for (; id.v; id = queue_get(f, id)->parent) {
		const struct queue *queue = queue_get(f, id);

		if (queue->limit_share >= 0 && checks->queues[id.v] > queue->limit_share)
			checks_problem(
				checks, f,
				"job %s takes queue %s to %lld/63000 GPUs, its limit is %lld/63000",
				name, facts_name(f, queue->name), (long long)checks->queues[id.v],
				(long long)queue->limit_share);
	}
}

/* What attempts of the queue hold of models, processors and memory, counted anew. */
struct bound_sums {
	int64_t cpu_milli, ram_mib, model[QUEUE_MODELS_MAX];
};

static void bound_count(const struct facts *f, const struct queue *queue, const struct shape *shape,
			uint32_t rank, uint32_t node, struct bound_sums *sums)
{
	struct name_id model = node_get(f, (struct node_id){ node })->model;
	int found = -1;

	for (int i = 0; i < QUEUE_MODELS_MAX && queue->limit_model[i].v; i++)
		if (queue->limit_model[i].v == model.v ||
		    (found < 0 && strcmp(facts_name(f, queue->limit_model[i]), "any") == 0))
			found = i;
	sums->cpu_milli += shape_wish(shape, rank).cpu_milli;
	sums->ram_mib += shape_wish(shape, rank).memory_mib;
	if (found >= 0)
		sums->model[found] += task_share(f, shape, rank, node);
}

static bool queue_holds(const struct facts *f, struct queue_id above, struct queue_id id)
{
	for (; id.v; id = queue_get(f, id)->parent)
		if (id.v == above.v)
			return true;
	return false;
}

static void check_bounds(struct checks *checks, const struct facts *f, const char *name,
			 const struct event_attempt_placed *e, const struct job *job)
{
	for (struct queue_id id = job->queue; id.v; id = queue_get(f, id)->parent) {
		const struct queue *queue = queue_get(f, id);
		const struct shape *shape = shape_get(f, job->shape);
		struct bound_sums sums = { 0 };
		bool passed;

		for (uint32_t i = 0; i < e->nodes_count; i++)
			bound_count(f, queue, shape, i, (uint32_t)e->nodes[i], &sums);
		for (uint32_t i = 0; i + 1 < checks->live_count; i++) { /* the last is this one */
			const struct attempt *a = attempt_find(f, checks->live[i]);
			const struct job *other = a ? job_get(f, a->job) : NULL;

			for (uint32_t rank = 0;
			     other && queue_holds(f, id, other->queue) && rank < a->tasks; rank++)
				if (task_holds(task_get(f, a, rank)))
					bound_count(f, queue, shape_get(f, other->shape), rank,
						    task_get(f, a, rank)->node.v, &sums);
		}
		passed = (queue->limit_cpu_milli && shape->cpu_milli &&
			  sums.cpu_milli > queue->limit_cpu_milli) ||
			 (queue->limit_ram_mib && shape->memory_mib &&
			  sums.ram_mib > queue->limit_ram_mib);
		for (int i = 0; i < QUEUE_MODELS_MAX && queue->limit_model[i].v; i++)
			passed |= shape->gpus && sums.model[i] > queue->limit_model_share[i];
		if (passed)
			checks_problem(
				checks, f,
				"job %s takes queue %s past a limit of models, processors or memory",
				name, facts_name(f, queue->name));
	}
}

static void check_placed(struct checks *checks, const struct facts *f,
			 const struct engine_sim *engine, const struct event_attempt_placed *e)
{
	const struct job *job;
	const struct shape *shape;
	const char *name = job_text(f, e->job);

	if (e->job < 1 || e->job > f->jobs.count || e->attempt != (int64_t)f->attempts.count + 1 ||
	    e->nodes_count != e->masks_count || e->nodes_count == 0) {
		checks_problem(checks, f, "a placement of job %s makes no sense", name);
		return;
	}
	job = job_get(f, (struct job_id){ (uint32_t)e->job });
	shape = shape_get(f, job->shape);
	if (!job_is_waiting(job))
		checks_problem(checks, f, "job %s is placed although it is %s", name,
			       job_state_name(job->state));
	for (uint32_t i = 0; i < shape->role_count; i++)
		if (shape_role_tasks(shape, e->nodes_count, i) < shape->role_min[i])
			checks_problem(checks, f, "job %s is placed without some role", name);
	if (e->nodes_count < shape->tasks_min || e->nodes_count > shape->tasks_max)
		checks_problem(checks, f, "job %s is placed with %u tasks, it has %u to %u", name,
			       e->nodes_count, shape->tasks_min, shape->tasks_max);
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		check_task(checks, f, engine, name, shape, i, (uint32_t)e->nodes[i],
			   (uint32_t)e->masks[i]);
		checks_times(checks, f, job, (uint32_t)e->nodes[i], (uint32_t)e->masks[i]);
	}
	book_placed(checks, f, e, job);
	check_nodes_room(checks, f, name, e);
	checks_shared(checks, f, name, e, job);
	check_level(checks, f, name, shape, e);
	checks_apart(checks, f, name, shape, NULL, e);
	checks_together(checks, f, name, shape, e);
	checks_away(checks, f, name, shape, (uint32_t)e->job, e);
	checks_models(checks, f, name, shape, NULL, e);
	checks_aligned(checks, f, name, shape, e);
	checks_capacity(checks, f, name, shape, e);
	if (shape->gpus) /* one without GPUs takes nothing of a limit that was lowered meanwhile */
		check_limits(checks, f, name, job->queue);
	check_bounds(checks, f, name, e, job);
	for (uint32_t i = 0; i < checks->eviction_count; i++)
		if (checks->evictions[i].for_job == (uint32_t)e->job)
			checks->evictions[i].settled = true;
}

/* Running attempts that become narrower or wider. */

static void book_left(struct checks *checks, const struct facts *f,
		      const struct event_ranks_left *e)
{
	const struct attempt *attempt = attempt_find(f, e->attempt);
	const struct job *job = attempt ? job_get(f, attempt->job) : NULL;
	const struct shape *shape = job ? shape_get(f, job->shape) : NULL;

	for (uint32_t i = 0; shape && i < e->ranks_count; i++) {
		const struct task *task = task_get(f, attempt, (uint32_t)e->ranks[i]);

		if (task->state != TASK_EXITED)
			checks_problem(checks, f, "rank %lld of job %s leaves before it has ended",
				       (long long)e->ranks[i], job_text(f, attempt->job.v));
		book_node(checks, task->node.v,
			  -(int64_t)shape_wish(shape, (uint32_t)e->ranks[i]).cpu_milli,
			  -(int64_t)shape_wish(shape, (uint32_t)e->ranks[i]).memory_mib);
	}
	if (shape)
		book_queue(checks, f, job->queue,
			   -ranks_gpus(shape, e->ranks, e->ranks_count) * GPU_SHARE);
}

static void check_grown(struct checks *checks, const struct facts *f,
			const struct engine_sim *engine, const struct event_attempt_grown *e)
{
	const struct attempt *attempt = attempt_find(f, e->attempt);
	const struct job *job = attempt ? job_get(f, attempt->job) : NULL;
	const struct shape *shape = job ? shape_get(f, job->shape) : NULL;
	const struct event_attempt_placed place = { .nodes = e->nodes,
						    .nodes_count = e->nodes_count,
						    .masks = e->masks,
						    .masks_count = e->masks_count };
	const char *name = job ? facts_name(f, job->name) : "?";

	if (!shape || attempt->state != ATTEMPT_ACTIVE || e->nodes_count != e->ranks_count) {
		checks_problem(checks, f, "a job grows that does not run");
		return;
	}
	if (attempt_width(attempt) + e->ranks_count > shape->tasks_max)
		checks_problem(checks, f, "job %s grows to %u tasks, it has at most %u", name,
			       attempt_width(attempt) + e->ranks_count, shape->tasks_max);
	for (uint32_t i = 0; i < e->ranks_count; i++) {
		struct task_wish wish = shape_wish(shape, (uint32_t)e->ranks[i]);

		check_task(checks, f, engine, name, shape, (uint32_t)e->ranks[i],
			   (uint32_t)e->nodes[i], (uint32_t)e->masks[i]);
		book_node(checks, (uint32_t)e->nodes[i], wish.cpu_milli, wish.memory_mib);
	}
	book_queue(checks, f, job->queue, ranks_gpus(shape, e->ranks, e->ranks_count) * GPU_SHARE);
	check_nodes_room(checks, f, name, &place);
	check_level(checks, f, name, shape, &place);
	checks_apart(checks, f, name, shape, attempt, &place);
	checks_models(checks, f, name, shape, attempt, &place);
	checks_aligned(checks, f, name, shape, &place);
	checks_capacity(checks, f, name, shape, &place);
	if (ranks_gpus(shape, e->ranks, e->ranks_count)) /* as where a job starts */
		check_limits(checks, f, name, job->queue);
	for (uint32_t i = 0; i < checks->eviction_count; i++)
		if (checks->evictions[i].for_job == attempt->job.v)
			checks->evictions[i].settled = true;
}

/* Starting. */

static void check_released(struct checks *checks, const struct facts *f,
			   const struct engine_sim *engine, int64_t id)
{
	const struct sim_attempt *a = engine_sim_attempt(engine, (uint32_t)id);

	for (uint32_t rank = 0; a && rank < a->task_count; rank++)
		if (a->tasks[rank].state == SIM_TASK_PREPARING)
			checks_problem(checks, f, "job %s is released before rank %u is ready",
				       attempt_job_text(f, id), rank);
}

/* Evicting. */

static void note_for(struct checks *checks, int64_t attempt, int64_t job)
{
	if (attempt <= 0 || attempt > UINT32_MAX || job <= 0)
		return;
	checks->for_job = checks_room(checks, checks->for_job, (uint32_t)attempt, &checks->for_room,
				      sizeof(*checks->for_job));
	checks->for_job[attempt] = (uint32_t)job;
}

static void check_critical(struct checks *checks, const struct facts *f, int64_t id,
			   const char *what)
{
	const struct attempt *attempt = attempt_find(f, id);

	if (attempt && job_get(f, attempt->job)->tier == TIER_CRITICAL)
		checks_problem(checks, f, "critical job %s is %s", job_text(f, attempt->job.v),
			       what);
}

static void note_eviction(struct checks *checks, const struct facts *f, int64_t attempt,
			  uint32_t for_job)
{
	checks->evictions = checks_room(checks, checks->evictions, checks->eviction_count,
					&checks->eviction_room, sizeof(*checks->evictions));
	checks->evictions[checks->eviction_count++] = (struct checks_eviction){
		.attempt = (uint32_t)attempt,
		.for_job = for_job,
		.at_ms = f->now_ms,
	};
}

/* Of each role that it is narrowed in, counted by hand: another one may lack ranks that were lost and are to come again. */
static bool is_narrowed_too_far(const struct facts *f, const struct attempt *attempt,
				const struct shape *shape, const struct event_attempt_shrunk *e)
{
	uint32_t stay[ROLES_MAX] = { 0 };
	bool goes[ROLES_MAX] = { false };

	if (attempt->least) /* who made its tasks says so */
		return attempt_width(attempt) < attempt->least + attempt->leaving + e->ranks_count;
	if (!shape->role_count)
		return attempt_width(attempt) <
		       shape->tasks_min + attempt->leaving + e->ranks_count;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		if (task_holds(task_get(f, attempt, rank)) && !task_get(f, attempt, rank)->leaving)
			stay[shape_role(shape, rank)]++;
	for (uint32_t i = 0; i < e->ranks_count; i++) {
		uint32_t role = shape_role(shape, (uint32_t)e->ranks[i]);

		goes[role] = true;
		stay[role]--;
	}
	for (uint32_t i = 0; i < shape->role_count; i++)
		if (goes[i] && (stay[i] < shape->role_min[i] || stay[i] > shape->role_max[i]))
			return true;
	return false;
}

/* Surplus that goes for another job: that one must start, and the least width stays. */
static void check_shrunk(struct checks *checks, const struct facts *f,
			 const struct event_attempt_shrunk *e)
{
	const struct attempt *attempt = attempt_find(f, e->attempt);
	const struct shape *shape = attempt ? shape_get(f, job_get(f, attempt->job)->shape) : NULL;

	if (!shape || is_narrowed_too_far(f, attempt, shape, e))
		checks_problem(checks, f, "job %s is narrowed below its least width",
			       attempt_job_text(f, e->attempt));
	check_critical(checks, f, e->attempt, "narrowed to make room");
	note_eviction(checks, f, e->attempt, (uint32_t)e->for_job);
}

/* Whoever is moved saves checkpoints, and must run again too. */
static void check_moved(struct checks *checks, const struct facts *f,
			const struct event_attempt_stopped *e)
{
	const struct attempt *attempt = attempt_find(f, e->attempt);

	if (!attempt)
		return;
	if (!job_get(f, attempt->job)->checkpoints)
		checks_problem(checks, f, "job %s is moved, but makes no checkpoints",
			       job_text(f, attempt->job.v));
	note_eviction(checks, f, e->attempt, attempt->job.v);
}

static void check_stopped(struct checks *checks, const struct facts *f,
			  const struct event_attempt_stopped *e)
{
	uint32_t for_job = e->attempt < checks->for_room ? checks->for_job[e->attempt] : 0;

	if (e->why == STOP_MOVED)
		check_moved(checks, f, e);
	if (e->why != STOP_EVICTED && e->why != STOP_MOVED)
		return;
	/* Warned for one job, and counted on by a later promise as well: it goes for the first. */
	if (attempt_find(f, e->attempt) && attempt_find(f, e->attempt)->for_job)
		for_job = attempt_find(f, e->attempt)->for_job;
	check_critical(checks, f, e->attempt, "evicted");
	note_eviction(checks, f, e->attempt, for_job);
}

/* What may keep a job from the place that was made for it: its owner's word (job), or a change of
 * the cluster or of what a job asks for (job 0). */
static void excuse(struct checks *checks, int64_t job)
{
	for (uint32_t i = 0; i < checks->eviction_count; i++)
		if (!job || checks->evictions[i].for_job == (uint32_t)job)
			checks->evictions[i].settled = true;
}

static void check_final(struct checks *checks, const struct facts *f,
			const struct event_job_ended *e)
{
	if (e->job > 0 && e->job <= f->jobs.count &&
	    job_state_is_final(job_get(f, (struct job_id){ (uint32_t)e->job })->state))
		checks_problem(checks, f, "job %s ends a second time", job_text(f, e->job));
	excuse(checks, e->job);
}

static void check_promise(struct checks *checks, const struct event_promise_made *e)
{
	for (uint32_t i = 0; i < e->victims_count; i++)
		note_for(checks, e->victims[i], e->job);
}

void checks_event(struct checks *checks, const struct facts *f, const struct engine_sim *engine,
		  const struct event *e)
{
	if (e->time_ms < f->now_ms)
		checks_problem(checks, f, "event time runs backwards");
	if (e->kind == EVENT_ATTEMPT_PLACED)
		check_placed(checks, f, engine, &e->attempt_placed);
	if (e->kind == EVENT_LAYOUT_SET)
		checks_layout(checks, f, &e->layout_set);
	if (e->kind == EVENT_ATTEMPT_RELEASED)
		check_released(checks, f, engine, e->attempt_released.attempt);
	if (e->kind == EVENT_ATTEMPT_ENDED)
		book_ended(checks, f, (uint32_t)e->attempt_ended.attempt);
	if (e->kind == EVENT_ATTEMPT_SHRUNK)
		check_shrunk(checks, f, &e->attempt_shrunk);
	if (e->kind == EVENT_ATTEMPT_GROWN)
		check_grown(checks, f, engine, &e->attempt_grown);
	if (e->kind == EVENT_RANKS_LEFT)
		book_left(checks, f, &e->ranks_left);
	if (e->kind == EVENT_CAPACITY_CHOSEN)
		checks_chosen(checks, f, &e->capacity_chosen);
	if (e->kind == EVENT_PROMISE_MADE)
		check_promise(checks, &e->promise_made);
	if (e->kind == EVENT_ATTEMPT_WARNED) {
		note_for(checks, e->attempt_warned.attempt, e->attempt_warned.for_job);
		if (e->attempt_warned.for_job)
			check_critical(checks, f, e->attempt_warned.attempt, "warned to make room");
	}
	if (e->kind == EVENT_ATTEMPT_STOPPED)
		check_stopped(checks, f, &e->attempt_stopped);
	if (e->kind == EVENT_JOB_ENDED)
		check_final(checks, f, &e->job_ended);
	if (e->kind == EVENT_JOB_CANCEL_ASKED)
		excuse(checks, e->job_cancel_asked.job);
	if (e->kind == EVENT_JOB_HELD)
		excuse(checks, e->job_held.job);
	if (e->kind == EVENT_JOB_CHANGED || e->kind == EVENT_NODE_SET ||
	    e->kind == EVENT_NODE_STATE || e->kind == EVENT_NODE_WINDOW ||
	    e->kind == EVENT_BOOKING_SET || e->kind == EVENT_BOOKING_ENDED ||
	    e->kind == EVENT_GPU_STATE || e->kind == EVENT_QUEUE_SET || e->kind == EVENT_POLICY_SET)
		excuse(checks, 0);
}

/* After a turn. */

static void check_whole(struct checks *checks, const struct facts *f, uint32_t id)
{
	const struct attempt *attempt = attempt_get(f, (struct attempt_id){ id });
	const struct shape *shape = shape_get(f, job_get(f, attempt->job)->shape);
	uint32_t lost = attempt->left;

	if (attempt->state != ATTEMPT_ACTIVE || attempt->exited == 0 ||
	    job_get(f, attempt->job)->external)
		return;
	if (attempt->lacks_ms && f->now_ms < attempt->lacks_ms + f->policy.rejoin_ms)
		return;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		lost += task->state == TASK_EXITED &&
			(task->cause != CAUSE_EXIT || task->code != 0);
	}
	if (lost && attempt->tasks - lost < shape->tasks_min)
		checks_problem(checks, f, "job %s runs on with %u of %u tasks; its minimum is %u",
			       job_text(f, attempt->job.v), attempt->tasks - lost, attempt->tasks,
			       shape->tasks_min);
}

void checks_settled(struct checks *checks, const struct facts *f)
{
	for (uint32_t i = 0; i < checks->live_count; i++)
		check_whole(checks, f, checks->live[i]);
	checks_for_spot(checks, f);
	for (uint32_t i = 0; i < checks->eviction_count; i++) {
		struct checks_eviction *eviction = &checks->evictions[i];

		if (eviction->for_job || eviction->settled)
			continue;
		eviction->for_job = eviction->attempt < checks->for_room
					    ? checks->for_job[eviction->attempt]
					    : 0;
		eviction->settled = !eviction->for_job;
		if (!eviction->for_job)
			checks_problem(checks, f, "job %s is evicted for nobody",
				       attempt_job_text(f, eviction->attempt));
	}
}

void checks_end(struct checks *checks, const struct facts *f)
{
	for (uint32_t i = 0; i < checks->eviction_count; i++) {
		struct checks_eviction *eviction = &checks->evictions[i];

		if (!eviction->settled)
			checks_problem(checks, f,
				       "job %s was evicted for job %s, which then did not start",
				       attempt_job_text(f, eviction->attempt),
				       job_text(f, eviction->for_job));
		eviction->settled = true;
	}
}
