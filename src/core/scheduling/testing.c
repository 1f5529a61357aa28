/* SPDX-License-Identifier: Apache-2.0 */
#include "core/partitioning/geometry.h"
#include "core/scheduling/testing.h"

#include "base/moment.h"

#include <string.h>

#include "core/model/roles.h"

enum { PICTURE_WORD = 64, PASSES_MAX = 10000 };

/* --- making a world ------------------------------------------------------------------------------------ */

struct event world_event(const struct world *w, enum event_kind kind)
{
	return event_make(kind, w->now_ms, "test");
}

void world_apply(struct world *w, const struct event *event)
{
	struct event e = *event;

	e.seq = ++w->seq;
	apply(&w->facts, &e);
	view_follow(w->view, &w->facts, &e);
}

static void node_add(struct world *w, const char *name, const char *rack, int64_t gpus)
{
	struct event e = world_event(w, EVENT_NODE_SET);

	e.node_set.name = name;
	e.node_set.gpus = gpus;
	e.node_set.model = "H100-80GB";
	e.node_set.gpu_memory_mib = 80 * 1024;
	e.node_set.domains = rack;
	world_apply(w, &e);
}

/* One word of the picture: "r0:" opens a rack, "n0:8" is a node with 8 GPUs, "|" is only for the eye. */
static void picture_word(struct world *w, const char *word, char rack[PICTURE_WORD], bool *levels)
{
	char *colon = strchr(word, ':');
	struct event e = world_event(w, EVENT_LEVELS_SET);
	int64_t gpus = 0;

	if (!colon)
		return;
	*colon = '\0';
	if (!colon[1]) {
		snprintf(rack, PICTURE_WORD, "%s", word);
		e.levels_set.levels = "rack";
		if (!*levels)
			world_apply(w, &e);
		*levels = true;
		return;
	}
	for (const char *digit = colon + 1; *digit; digit++)
		gpus = gpus * 10 + (*digit - '0');
	node_add(w, word, rack, gpus);
}

static void queue_set(struct world *w, const char *name, const char *parent, int64_t guarantee,
		      int64_t limit, int64_t weight)
{
	struct event e = world_event(w, EVENT_QUEUE_SET);

	e.queue_set.name = name;
	e.queue_set.parent = parent;
	e.queue_set.guarantee_share = guarantee * GPU_SHARE;
	e.queue_set.limit_share = limit < 0 ? -1 : limit * GPU_SHARE;
	e.queue_set.weight = weight;
	world_apply(w, &e);
}

void world_queue(struct world *w, const char *name, const char *parent, int64_t guarantee,
		 int64_t limit, int64_t weight)
{
	queue_set(w, name, parent, guarantee, limit, weight);
}

void world_policy(struct world *w, int64_t grace_ms, int64_t min_runtime_ms)
{
	struct event e = world_event(w, EVENT_POLICY_SET);

	e.policy_set = event_policy_make(0, "").policy_set;
	e.policy_set.min_runtime_ms = min_runtime_ms;
	e.policy_set.grace_ms = grace_ms;
	world_apply(w, &e);
}

void world_init(struct world *w, const char *picture)
{
	char word[PICTURE_WORD], rack[PICTURE_WORD] = "";
	bool levels = false;
	size_t size = 0;

	memset(w, 0, sizeof(*w));
	w->now_ms = 1000;
	facts_init(&w->facts);
	w->view = view_create(&w->facts);
	arena_init(&w->step, (size_t)1 << 30);
	for (;; picture++) {
		if (*picture && *picture != ' ') {
			CHECK(size < sizeof(word) - 1);
			word[size++] = *picture;
			continue;
		}
		word[size] = '\0';
		picture_word(w, word, rack, &levels);
		size = 0;
		if (!*picture)
			break;
	}
	queue_set(w, "default", "", 0, -1, 1);
	world_policy(w, 0, 0);
}

void world_deinit(struct world *w)
{
	view_destroy(w->view);
	facts_deinit(&w->facts);
	arena_deinit(&w->step);
}

void world_at(struct world *w, int64_t now_ms)
{
	struct event e;

	w->now_ms = now_ms;
	e = world_event(w, EVENT_CLOCK_TICKED);
	world_apply(w, &e);
}

/* --- jobs -------------------------------------------------------------------------------------------------- */

uint32_t world_submit(struct world *w, struct wish wish)
{
	struct event e = world_event(w, EVENT_JOB_SUBMITTED);
	struct event_job_submitted *s = &e.job_submitted;

	s->job = (int64_t)w->facts.jobs.count + 1;
	s->name = wish.name ? wish.name : "job";
	s->user = wish.user ? wish.user : "ann";
	s->queue = wish.queue ? wish.queue : "default";
	s->kind = wish.kind;
	s->tier = wish.best_effort ? TIER_BEST_EFFORT : wish.tier ? wish.tier : TIER_STANDARD;
	s->priority = wish.priority;
	s->tasks_min = wish.tasks ? wish.tasks : 1;
	s->tasks_max = wish.tasks_max ? wish.tasks_max : s->tasks_min;
	s->gpus = wish.gpus < 0 ? 0 : wish.gpus ? wish.gpus : 1;
	s->models = wish.models ? wish.models : "";
	s->require = wish.require ? wish.require : "";
	s->prefer = wish.prefer ? wish.prefer : "";
	s->limit_ms = wish.limit_ms;
	s->estimate_ms = wish.estimate_ms;
	s->cpu_milli = wish.cpu_milli;
	s->memory_mib = wish.memory_mib;
	s->gpu_memory_mib = wish.gpu_memory_mib;
	s->retries = wish.retries;
	s->preempts = !wish.polite;
	s->checkpoint = wish.checkpoint;
	s->restart_cost_ms = wish.restart_cost_ms;
	s->max_slowdown = wish.max_slowdown;
	s->external = wish.external;
	s->grace_ms = wish.external ? 0 : wish.grace_ms ? wish.grace_ms : -1;
	s->held = wish.held;
	s->rejoins = wish.rejoins;
	s->array_count = wish.array;
	s->gpu_part = wish.part;
	s->gpu_part_mib = wish.part_mib;
	s->slice = wish.slice ? wish.slice : "";
	if (wish.slice) {
		uint32_t number;

		CHECK(slice_wish_parse(wish.slice, &number));
		s->gpu_part = slice_share(number);
	}
	if (wish.depends) {
		s->depends = &wish.depends;
		s->depends_count = 1;
	}
	world_apply(w, &e);
	CHECK(w->facts.jobs.count >= (uint32_t)s->job);
	return (uint32_t)s->job;
}

static const struct attempt *attempt_of(const struct world *w, uint32_t job)
{
	struct attempt_id id = job_get(&w->facts, (struct job_id){ job })->attempt;

	return id.v ? attempt_get(&w->facts, id) : NULL;
}

static const struct attempt *attempt_live(const struct world *w, uint32_t job)
{
	const struct attempt *a = attempt_of(w, job);

	CHECK(a != NULL);
	return a;
}

static int64_t attempt_id_of(const struct world *w, uint32_t job)
{
	return job_get(&w->facts, (struct job_id){ job })->attempt.v;
}

/* GPUs of the node that no attempt holds, lowest first; enough of them. */
static uint32_t free_mask(const struct world *w, uint32_t node, uint32_t gpus, const int64_t *nodes,
			  const int64_t *masks, uint32_t so_far)
{
	uint32_t busy = 0, mask = 0;

	for (uint32_t job = 1; job <= w->facts.jobs.count; job++) {
		const struct attempt *a = attempt_of(w, job);

		for (uint32_t i = 0; a && i < a->tasks; i++)
			if (task_get(&w->facts, a, i)->node.v == node)
				busy |= task_get(&w->facts, a, i)->gpu_mask;
	}
	for (uint32_t i = 0; i < so_far; i++)
		busy |= nodes[i] == node ? (uint32_t)masks[i] : 0;
	for (uint32_t gpu = 0; gpus; gpu++) {
		CHECK(gpu < node_get(&w->facts, (struct node_id){ node })->gpu_count);
		if (busy >> gpu & 1)
			continue;
		mask |= UINT32_C(1) << gpu;
		gpus--;
	}
	return mask;
}

void world_place(struct world *w, uint32_t job, const char *nodes)
{
	struct event e = world_event(w, EVENT_ATTEMPT_PLACED);
	int64_t ids[64], masks[64];
	uint32_t count = 0,
		 gpus = shape_get(&w->facts, job_get(&w->facts, (struct job_id){ job })->shape)
				->gpus;
	char name[PICTURE_WORD];

	while (*nodes) {
		size_t size = strcspn(nodes, " ");

		snprintf(name, sizeof(name), "%.*s", (int)size, nodes);
		ids[count] = facts_node_find(&w->facts, name).v;
		CHECK(ids[count] != 0);
		masks[count] = free_mask(w, (uint32_t)ids[count], gpus, ids, masks, count);
		count++;
		nodes += size;
		nodes += *nodes == ' ';
	}
	e.attempt_placed =
		(struct event_attempt_placed){ .job = job,
					       .attempt = (int64_t)w->facts.attempts.count + 1,
					       .nodes = ids,
					       .nodes_count = count,
					       .masks = masks,
					       .masks_count = count };
	world_apply(w, &e);
	world_ready(w, job);
	e = world_event(w, EVENT_ATTEMPT_RELEASED);
	e.attempt_released.attempt = attempt_id_of(w, job);
	world_apply(w, &e);
	world_start(w, job);
}

static uint32_t world_launch(const struct world *w, uint32_t job, uint32_t rank)
{
	return task_get(&w->facts, attempt_live(w, job), rank)->launch;
}

void world_ready(struct world *w, uint32_t job)
{
	struct event e = world_event(w, EVENT_TASK_READY);

	for (uint32_t i = 0; i < attempt_live(w, job)->tasks; i++) {
		e.task_ready.attempt = attempt_id_of(w, job);
		e.task_ready.rank = i;
		e.task_ready.launch = world_launch(w, job, i);
		world_apply(w, &e);
	}
}

void world_start(struct world *w, uint32_t job)
{
	struct event e = world_event(w, EVENT_TASK_STARTED);

	for (uint32_t i = 0; i < attempt_live(w, job)->tasks; i++) {
		e.task_started.attempt = attempt_id_of(w, job);
		e.task_started.rank = i;
		e.task_started.launch = world_launch(w, job, i);
		world_apply(w, &e);
	}
}

void world_exit_rank(struct world *w, uint32_t job, uint32_t rank, enum task_cause cause, int code)
{
	struct event e = world_event(w, EVENT_TASK_EXITED);

	e.task_exited.attempt = attempt_id_of(w, job);
	e.task_exited.rank = rank;
	e.task_exited.launch = world_launch(w, job, rank);
	e.task_exited.cause = cause;
	e.task_exited.code = code;
	world_apply(w, &e);
}

void world_exit(struct world *w, uint32_t job, int code)
{
	for (uint32_t i = 0, tasks = attempt_live(w, job)->tasks; i < tasks; i++)
		world_exit_rank(w, job, i, CAUSE_EXIT, code);
}

void world_saved(struct world *w, uint32_t job)
{
	struct event e = world_event(w, EVENT_CHECKPOINT_SAVED);

	e.checkpoint_saved.job = job;
	e.checkpoint_saved.attempt = attempt_id_of(w, job);
	e.checkpoint_saved.number =
		job_get(&w->facts, (struct job_id){ job })->checkpoints_made + 1;
	e.checkpoint_saved.at_ms = w->now_ms;
	e.checkpoint_saved.path = "/c";
	world_apply(w, &e);
}

void world_cancel(struct world *w, uint32_t job)
{
	struct event e = world_event(w, EVENT_JOB_CANCEL_ASKED);

	e.job_cancel_asked.job = job;
	world_apply(w, &e);
}

void world_defragment(struct world *w, int64_t defragment)
{
	struct event e = event_policy_make(w->now_ms, "test");

	e.policy_set.defragment = defragment;
	world_apply(w, &e);
}

/* --- deciding ---------------------------------------------------------------------------------------------- */

/* The job whose attempt is told to make room, or NULL. */
static const struct job *job_evicted(const struct world *w, const struct event *e,
				     uint32_t *ret_attempt)
{
	if (e->kind == EVENT_ATTEMPT_WARNED && e->attempt_warned.for_job)
		*ret_attempt = (uint32_t)e->attempt_warned.attempt;
	else if (e->kind == EVENT_ATTEMPT_STOPPED &&
		 (e->attempt_stopped.why == STOP_EVICTED || e->attempt_stopped.why == STOP_MOVED))
		*ret_attempt = (uint32_t)e->attempt_stopped.attempt;
	else
		return NULL;
	return job_get(&w->facts, attempt_get(&w->facts, (struct attempt_id){ *ret_attempt })->job);
}

/* Only idle GPUs are cut, only as their model allows and where the core may. */
static void layout_check(const struct world *w, const struct event_layout_set *e)
{
	const struct node *node = node_get(&w->facts, (struct node_id){ (uint32_t)e->node });
	const struct geometry *geometry =
		geometry_of(facts_name(&w->facts, node->model), node->gpu_memory_mib);

	CHECK(node->partitioning == PARTITIONING_AUTO && node->simulated && geometry);
	for (uint32_t i = 0; i < e->gpus_count; i++) {
		CHECK(e->gpus[i] < node->gpu_count &&
		      node->layout[e->gpus[i]] != (uint32_t)e->layouts[i]);
		CHECK(layout_is_legal(geometry, (uint32_t)e->layouts[i]));
		for (uint32_t job = 1; job <= w->facts.jobs.count; job++) {
			const struct attempt *a = attempt_of(w, job);

			for (uint32_t k = 0; a && k < a->tasks; k++) {
				const struct task *task = task_get(&w->facts, a, k);

				CHECK(!task_holds(task) || task->node.v != e->node ||
				      !(task->gpu_mask >> e->gpus[i] & 1));
			}
		}
	}
}

/* `known`: attempts that there were before deciding began: best-effort work placed since is not told to leave again. */
static void decision_check(const struct world *w, const struct event *e, uint32_t known)
{
	uint32_t attempt;
	const struct job *job = job_evicted(w, e, &attempt);

	if (e->kind == EVENT_ATTEMPT_PLACED)
		CHECK(e->attempt_placed.attempt == (int64_t)w->facts.attempts.count + 1);
	if (e->kind == EVENT_LAYOUT_SET)
		layout_check(w, &e->layout_set);
	if (!job)
		return;
	CHECK(job->tier != TIER_CRITICAL);
	CHECK(attempt <= known || job->tier != TIER_BEST_EFFORT);
}

void world_decide(struct world *w)
{
	struct decisions d;
	uint32_t passes = 0, known = w->facts.attempts.count;

	w->decisions = 0;
	do {
		arena_reset(&w->step);
		decide(&w->facts, w->view, 1000000, &w->step, &d);
		if (!w->quiet)
			view_verify(w->view, &w->facts);
		for (uint32_t i = 0; i < d.count; i++) {
			decision_check(w, &d.events[i], known);
			w->evictions += d.events[i].kind == EVENT_ATTEMPT_STOPPED &&
					d.events[i].attempt_stopped.why == STOP_EVICTED;
			if (d.events[i].kind == EVENT_MOVES_PLANNED)
				w->moves += d.events[i].moves_planned.jobs_count;
			world_apply(w, &d.events[i]);
		}
		w->decisions += d.count;
		CHECK(++passes < PASSES_MAX);
		if (!w->quiet)
			world_check(w);
		if (!w->quiet)
			decide_verify(&w->facts, w->view, &w->step);
	} while (d.more);
	w->wake_ms = d.wake_ms;
}

/* What the engine would do with the attempt as it stands; false = nothing. */
static bool engine_step(struct world *w, uint32_t job)
{
	const struct attempt *a = attempt_of(w, job);
	uint32_t tasks;

	if (!a)
		return false;
	tasks = a->tasks;
	if (a->state == ATTEMPT_PREPARING && a->ready < tasks) {
		world_ready(w, job);
		return true;
	}
	if (a->state == ATTEMPT_ACTIVE && a->started < tasks) {
		world_start(w, job);
		return true;
	}
	if (a->state != ATTEMPT_STOPPING || a->exited == tasks)
		return false;
	for (uint32_t i = 0; i < tasks; i++)
		if (task_get(&w->facts, a, i)->state < TASK_EXITED)
			world_exit_rank(w, job, i, CAUSE_STOPPED, 0);
	return true;
}

void world_run(struct world *w)
{
	bool again = true;

	while (again) {
		again = false;
		world_decide(w);
		for (uint32_t job = 1; job <= w->facts.jobs.count; job++)
			again |= engine_step(w, job);
	}
}

/* --- questions ------------------------------------------------------------------------------------------------ */

uint32_t world_running(const struct world *w, uint32_t job)
{
	const struct attempt *a = attempt_of(w, job);

	return a ? a->tasks - a->exited : 0;
}

uint8_t world_state(const struct world *w, uint32_t job)
{
	return job_get(&w->facts, (struct job_id){ job })->state;
}

const char *world_places(struct world *w, uint32_t job)
{
	const struct attempt *a = attempt_of(w, job);
	const char *text = "";

	for (uint32_t i = 0; a && i < a->tasks; i++) {
		const struct task *task = task_get(&w->facts, a, i);

		text = arena_printf(&w->step, "%s%s%s/%x", text, i ? " " : "",
				    facts_name(&w->facts, node_get(&w->facts, task->node)->name),
				    task->gpu_mask);
	}
	return text;
}

struct node_parts {
	uint32_t share[NODE_GPUS_MAX], mib[NODE_GPUS_MAX];
	uint32_t slices[NODE_GPUS_MAX]; /* memory slices held */
};

/* A slice exists and is held once; nothing else lies on a GPU that is cut. */
static void slice_check(const struct world *w, const struct task *task, struct node_parts *parts)
{
	uint32_t gpu = (uint32_t)__builtin_ctz(task->gpu_mask),
		 layout = node_get(&w->facts, task->node)->layout[gpu],
		 kind = slice_at_kind(task->slice), start = slice_at_start(task->slice),
		 mask = ((UINT32_C(1) << slice_memory(kind)) - 1) << start;

	CHECK((layout != 0) == (task->slice != 0));
	if (!task->slice)
		return;
	CHECK(layout_kind(layout, start) == kind && !(parts->slices[gpu] & mask));
	parts->slices[gpu] |= mask;
}

static void part_check(const struct world *w, const struct task *task, struct node_parts *parts,
		       uint32_t *shared)
{
	int gpu = __builtin_ctz(task->gpu_mask);

	CHECK(task->gpu_part > 0);
	parts->share[gpu] += task->gpu_part;
	parts->mib[gpu] += task->gpu_part_mib;
	CHECK(parts->share[gpu] <= GPU_SHARE);
	CHECK(parts->mib[gpu] <= node_get(&w->facts, task->node)->gpu_memory_mib);
	*shared |= task->gpu_mask;
}

/* No GPU twice and no more of it than it has, none that does not exist; gangs between their bounds; no queue above its limit. */
void world_check(const struct world *w)
{
	uint32_t busy[256] = { 0 }, shared[256] = { 0 };
	struct node_parts parts[256] = { 0 };
	int64_t hold[64] = { 0 };

	CHECK(w->facts.nodes.count < ARRAY_SIZE(busy) && w->facts.queues.count < ARRAY_SIZE(hold));
	for (uint32_t job = 1; job <= w->facts.jobs.count; job++) {
		const struct job *j = job_get(&w->facts, (struct job_id){ job });
		const struct shape *shape = shape_get(&w->facts, j->shape);
		const struct attempt *a = attempt_of(w, job);

		if (!a)
			continue;
		CHECK(!attempt_lacks(&w->facts, a, shape) || a->lacks_ms);
		CHECK(attempt_width(a) <= shape->tasks_max);
		for (uint32_t i = 0; i < a->tasks; i++) {
			const struct task *task = task_get(&w->facts, a, i);

			if (!task_holds(task))
				continue;
			CHECK((uint32_t)__builtin_popcount(task->gpu_mask) ==
			      shape_wish(shape, i).gpus);
			CHECK(((busy[task->node.v] | shared[task->node.v]) & task->gpu_mask) == 0 ||
			      (shape_is_part(shape) && !(busy[task->node.v] & task->gpu_mask)));
			CHECK(node_get(&w->facts, task->node)->gpu_count >= 32 ||
			      task->gpu_mask >> node_get(&w->facts, task->node)->gpu_count == 0);
			if (task->gpu_mask)
				slice_check(w, task, &parts[task->node.v]);
			if (shape_is_part(shape))
				part_check(w, task, &parts[task->node.v], &shared[task->node.v]);
			else
				busy[task->node.v] |= task->gpu_mask;
		}
		for (uint32_t q = j->queue.v; q;
		     q = queue_get(&w->facts, (struct queue_id){ q })->parent.v)
			hold[q] += attempt_share(&w->facts, a);
	}
	for (uint32_t q = 1; q <= w->facts.queues.count; q++) {
		int64_t limit = queue_get(&w->facts, (struct queue_id){ q })->limit_share;

		CHECK(limit < 0 || hold[q] <= limit);
	}
}

const char *world_reads(struct world *w, const char *sentence)
{
	AUTO_BUF out = BUF_INIT;

	moment_count_down(&out, sentence, w->facts.now_ms);
	return arena_strdup(&w->step, buf_text(&out));
}
