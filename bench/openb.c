/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation: tasks that arrive one by one on 1,213 nodes with 6,212 GPUs until these are filled, after Weng et al., "Beware of
 * Fragmentation" (USENIX ATC 2023). The lists are published as cluster-trace-gpu-v2023 of alibaba/clusterdata; they are not part
 * of this tree.
 *
 *	openb FOLDER [LIST [SEEDS [moves | choice]]]		default: default 10
 *
 * The pod list is shuffled, then drawn from at random with replacement, until its demand is 130 % of the GPUs. A task takes a part of one
 * GPU, or whole ones of one node, with its processors and memory; a list of models restricts it. A task that fits nowhere when it comes
 * is lost, and none ever leaves. Said is what is not allocated when as much as there is has been asked for (100 %), and at the end (130 %).
 *
 *	bestfit		a published rule, rewritten here: it shows that the set-up is the same. The node with the least free processors / 128
 *			and free GPUs / 8 together; the tightest GPU; the first of equal ones
 *	tightest	Fairlead without the measure of fragments
 *	fragments	Fairlead as it is. What is asked for is what has come so far and runs: the list is not known beforehand
 *
 * Then the cost of a placement with all of it, without the scheduler; and of the scheduler, with the same tasks waiting all at once.
 * With `moves` as the fourth argument the same goes through the scheduler with moves of running jobs: each task makes checkpoints, and for
 * one that finds no place others move (core/rearranging), whatever that loses; said is how many did.
 *
 * With `choice` there it is the third rule alone (bench/ablation.py).
 *
 * Beside them stands what no rule can pass (openb_bound.h), of the very tasks that have come, and the goal that follows from it.
 *
 * Nothing is asserted. The random numbers are this program's own, so single runs differ from the published ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/core.h"
#include "core/placement/find.h"
#include "core/scheduling/view/view.h"
#include "job.h"
#include "openb_bound.h"

enum { TASKS_ROOM = 60000, NODES_ROOM = 2000, LINE_ROOM = 1024, COLUMNS = 12 };

struct pod {
	uint32_t cpu_milli, memory_mib, gpus, milli; /* milli: of a GPU, 1000 = whole ones */
	char models[256]; /* with commas between; "" = any */
	uint32_t job; /* among the jobs of `facts`, one for each line of the list */
};

struct machine {
	char name[64], model[64];
	uint32_t cpu_milli, memory_mib, gpus;
};

struct state { /* of the reference rule */
	int64_t cpu_milli, memory_mib;
	uint32_t open[NODE_GPUS_MAX];
};

enum rule { BESTFIT, TIGHTEST, FRAGMENTS, RULES };
static const char *const rule_names[RULES] = { "bestfit", "tightest", "fragments" };

static struct pod pods[TASKS_ROOM];
static struct machine machines[NODES_ROOM];
static uint32_t order[TASKS_ROOM];
static uint32_t pod_count, machine_count, gpu_count;
static struct facts facts;
static struct arena step;
static uint64_t seq;
static int64_t now_ms = 1700000000000;

/* Processor time, so that what else the machine does counts little. */
static int64_t processor_ns(void)
{
	struct timespec now;

	CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

static FILE *list_open(const char *folder, const char *name, char line[LINE_ROOM])
{
	char path[1024];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.csv", folder, name);
	file = fopen(path, "r");
	if (!file || !fgets(line, LINE_ROOM, file)) {
		fprintf(stderr, "openb: there is no list %s\n", path);
		exit(2);
	}
	return file;
}

static uint32_t line_split(char *line, char *columns[COLUMNS])
{
	uint32_t count = 0;

	line[strcspn(line, "\r\n")] = '\0';
	for (char *at = line; at && count < COLUMNS; count++) {
		char *comma = strchr(at, ',');

		columns[count] = at;
		if (comma)
			*comma++ = '\0';
		at = comma;
	}
	return count;
}

static uint32_t number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

static void machines_read(const char *folder)
{
	char line[LINE_ROOM], *columns[COLUMNS];
	FILE *file = list_open(folder, "openb_node_list_gpu_node", line);

	while (fgets(line, sizeof(line), file)) {
		struct machine *m = &machines[machine_count++];

		CHECK(machine_count < NODES_ROOM && line_split(line, columns) == 5);
		snprintf(m->name, sizeof(m->name), "%s", columns[0]);
		snprintf(m->model, sizeof(m->model), "%s", columns[4]);
		m->cpu_milli = number(columns[1]);
		m->memory_mib = number(columns[2]);
		m->gpus = number(columns[3]);
		CHECK(m->gpus <= NODE_GPUS_MAX);
		gpu_count += m->gpus;
	}
	fclose(file);
}

static void pods_read(const char *folder, const char *list)
{
	char line[LINE_ROOM], name[256], *columns[COLUMNS];
	FILE *file;
	bool has_models;

	snprintf(name, sizeof(name), "openb_pod_list_%s", list);
	file = list_open(folder, name, line);
	has_models = strstr(line, "gpu_spec");
	while (fgets(line, sizeof(line), file)) {
		struct pod *p = &pods[pod_count++];

		CHECK(pod_count < TASKS_ROOM && line_split(line, columns) > 4);
		p->cpu_milli = number(columns[1]);
		p->memory_mib = number(columns[2]);
		p->gpus = number(columns[3]);
		p->milli = p->gpus == 1 ? number(columns[4]) : 1000;
		if (has_models)
			snprintf(p->models, sizeof(p->models), "%s", columns[5]);
		for (char *bar = p->models; (bar = strchr(bar, '|'));)
			*bar = ',';
		p->job = pod_count;
	}
	fclose(file);
}

/* --- the arrivals -------------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t random_below(uint32_t end)
{
	uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % end);
}

static uint32_t pod_milli(const struct pod *pod)
{
	return pod->gpus * pod->milli;
}

static uint32_t arrivals_make(uint64_t seed)
{
	uint64_t wanted = 0, most = (uint64_t)gpu_count * 1300;
	uint32_t count = 0;

	random_state = seed;
	for (uint32_t i = 0; i < pod_count; i++)
		order[i] = i;
	for (uint32_t i = pod_count - 1; i > 0; i--) {
		uint32_t other = random_below(i + 1), own = order[i];

		order[i] = order[other];
		order[other] = own;
	}
	for (; wanted < most; count++) {
		CHECK(count < TASKS_ROOM);
		if (count >= pod_count)
			order[count] = random_below(pod_count);
		wanted += pod_milli(&pods[order[count]]);
	}
	return count;
}

/* --- the reference rule --------------------------------------------------------------------------------------------- */

static bool model_allowed(const struct pod *pod, const char *model)
{
	size_t size = strlen(model);

	for (const char *at = pod->models; *at;) {
		size_t length = strcspn(at, ",");

		if (length == size && strncmp(at, model, size) == 0)
			return true;
		at += length;
		at += *at == ',';
	}
	return !pod->models[0];
}

/* The tightest GPU, or as many free ones; false = there is no room. */
static bool gpus_choose(const struct state *s, uint32_t gpus, const struct pod *pod, uint32_t *ret)
{
	uint32_t found = 0, best = 1001;

	*ret = 0;
	for (uint32_t i = 0; i < gpus; i++) {
		if (s->open[i] < pod->milli || (pod->gpus == 1 && s->open[i] >= best))
			continue;
		if (pod->gpus == 1)
			*ret = 0;
		if (pod->gpus == 1 || found < pod->gpus)
			*ret |= UINT32_C(1) << i;
		best = s->open[i];
		found++;
	}
	return found >= pod->gpus;
}

static bool bestfit_place(struct state *states, const struct pod *pod)
{
	uint32_t best = machine_count, best_gpus = 0;
	int64_t best_score = INT64_MAX;

	for (uint32_t i = 0; i < machine_count; i++) {
		const struct state *s = &states[i];
		int64_t open = 0, score;
		uint32_t gpus;

		if (s->cpu_milli < pod->cpu_milli || s->memory_mib < pod->memory_mib ||
		    !model_allowed(pod, machines[i].model) ||
		    !gpus_choose(s, machines[i].gpus, pod, &gpus))
			continue;
		for (uint32_t k = 0; k < machines[i].gpus; k++)
			open += s->open[k];
		/* 128 cores are 128,000, 8 GPUs are 8,000 */
		score = (s->cpu_milli - pod->cpu_milli) + 16 * (open - pod_milli(pod));
		if (score >= best_score)
			continue;
		best = i;
		best_gpus = gpus;
		best_score = score;
	}
	if (best == machine_count)
		return false;
	states[best].cpu_milli -= pod->cpu_milli;
	states[best].memory_mib -= pod->memory_mib;
	for (; best_gpus; best_gpus &= best_gpus - 1)
		states[best].open[__builtin_ctz(best_gpus)] -= pod->milli;
	return true;
}

/* --- Fairlead ----------------------------------------------------------------------------------------------------- */

static void put(struct event *e)
{
	e->seq = ++seq;
	e->time_ms = now_ms;
	apply(&facts, e);
}

static void cluster_make(void)
{
	struct event e = event_policy_make(0, "bench");

	facts_init(&facts);
	e.policy_set.share_gpus = SHARE_GPUS_ANY;
	put(&e);
	e = event_make(EVENT_QUEUE_SET, 0, "bench");
	e.queue_set.name = "default";
	e.queue_set.limit_share = -1;
	e.queue_set.weight = 1;
	put(&e);
	for (uint32_t i = 0; i < machine_count; i++) {
		e = event_make(EVENT_NODE_SET, 0, "bench");
		e.node_set.name = machines[i].name;
		e.node_set.model = machines[i].model;
		e.node_set.gpus = machines[i].gpus;
		e.node_set.cpu_milli = machines[i].cpu_milli;
		e.node_set.ram_mib = machines[i].memory_mib;
		put(&e);
	}
}

static struct event pod_event(const struct pod *pod)
{
	struct event e = job_event(&facts, "default", 1, pod->gpus, pod->cpu_milli);

	e.job_submitted.memory_mib = pod->memory_mib;
	e.job_submitted.models = pod->models;
	e.job_submitted.preempts = 0;
	if (pod->milli < 1000)
		e.job_submitted.gpu_part = pod->milli * (GPU_SHARE / 1000);
	return e;
}

static const struct shape *pod_shape(const struct pod *pod)
{
	return shape_get(&facts, job_get(&facts, (struct job_id){ pod->job })->shape);
}

static bool pod_place(struct space *space, const struct pod *pod)
{
	const struct place_request request = {
		.shape = pod_shape(pod), .tasks = 1, .rank = RANK_NONE, .share_gpus = SHARE_GPUS_ANY
	};
	struct placement place;

	if (place_find(space, &request, &step, &place, NULL))
		return false;
	placement_take(space, &place, request.shape);
	space_commit(space);
	return true;
}

/* --- runs ----------------------------------------------------------------------------------------------------------- */

struct result {
	double at_100, at_130; /* percent that is not allocated */
	uint64_t placed;
	int64_t ns; /* for all arrivals */
};

static double unallocated(uint64_t allocated)
{
	return 100.0 - (double)allocated / (10.0 * gpu_count);
}

static struct state *states_make(void)
{
	struct state *states = calloc(machine_count, sizeof(*states));

	CHECK(states);
	for (uint32_t i = 0; i < machine_count; i++) {
		states[i].cpu_milli = machines[i].cpu_milli;
		states[i].memory_mib = machines[i].memory_mib;
		for (uint32_t k = 0; k < machines[i].gpus; k++)
			states[i].open[k] = 1000;
	}
	return states;
}

static struct result run(enum rule rule, uint32_t arrivals)
{
	struct result ret = { .at_100 = -1 };
	uint64_t wanted = 0, allocated = 0;
	uint32_t *jobs = calloc(facts.shapes.count + 1, sizeof(*jobs));
	struct state *states = states_make();
	struct space space;
	int64_t start;

	CHECK(jobs);
	space_init(&space);
	space_build(&space, &facts);
	start = processor_ns();
	for (uint32_t i = 0; i < arrivals; i++) {
		const struct pod *pod = &pods[order[i]];
		uint32_t shape = job_get(&facts, (struct job_id){ pod->job })->shape.v;
		bool placed;

		arena_reset(&step);
		jobs[shape]++;
		if (rule == FRAGMENTS)
			demand_set(&space, &facts, jobs, facts.shapes.count + 1, &step);
		placed = rule == BESTFIT ? bestfit_place(states, pod) : pod_place(&space, pod);
		jobs[shape] -= !placed;
		wanted += pod_milli(pod);
		allocated += placed ? pod_milli(pod) : 0;
		ret.placed += placed;
		if (ret.at_100 < 0 && wanted >= (uint64_t)gpu_count * 1000)
			ret.at_100 = unallocated(allocated);
	}
	ret.ns = processor_ns() - start;
	ret.at_130 = unallocated(allocated);
	space_deinit(&space);
	free(states);
	free(jobs);
	return ret;
}

static double per_second(uint64_t count, int64_t ns)
{
	return (double)count * 1e9 / (double)ns;
}

/* --- bounds -------------------------------------------------------------------------------------------------------- */

static uint32_t models_list(const char *ret[MODELS_MAX], uint32_t gpus[MODELS_MAX])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < machine_count; i++) {
		uint32_t m = 0;

		while (m < count && strcmp(ret[m], machines[i].model) != 0)
			m++;
		if (m == count) {
			CHECK(count < MODELS_MAX);
			ret[count] = machines[i].model;
			gpus[count++] = 0;
		}
		gpus[m] += machines[i].gpus;
	}
	return count;
}

/* Percent that stays open whatever the rule, of what comes until as much as there is has been asked for. */
static double bound_at_100(uint32_t arrivals)
{
	static uint64_t sizes[SIZES_MAX + 1], sets[1 << MODELS_MAX];
	uint32_t gpus[MODELS_MAX], count;
	const char *models[MODELS_MAX];
	uint64_t wanted = 0, most;
	double packed;

	memset(sizes, 0, sizeof(sizes));
	memset(sets, 0, sizeof(sets));
	count = models_list(models, gpus);
	for (uint32_t i = 0; i < arrivals && wanted < (uint64_t)gpu_count * 1000; i++) {
		const struct pod *pod = &pods[order[i]];
		uint32_t set = 0;

		for (uint32_t m = 0; m < count; m++)
			set |= model_allowed(pod, models[m]) ? UINT32_C(1) << m : 0;
		sizes[pod->gpus == 1 ? pod->milli : 1000] += pod_milli(pod);
		sets[set] += pod_milli(pod);
		wanted += pod_milli(pod);
	}
	most = bound_by_models(gpus, count, sets);
	packed = bound_by_packing(sizes, gpu_count);
	return 100.0 - (packed < (double)most ? packed : (double)most) / (10.0 * gpu_count);
}

/* What the published rule FGD leaves open when as much as there is has come; below 0 = the folder does not say. */
static double published_fgd(const char *folder, const char *list)
{
	char line[LINE_ROOM], name[256], *columns[COLUMNS];
	FILE *file = list_open(folder, "published_alloc_pct", line);
	double ret = -1;

	snprintf(name, sizeof(name), "openb_pod_list_%s", list);
	while (fgets(line, sizeof(line), file))
		if (line_split(line, columns) > 3 && strcmp(columns[0], name) == 0 &&
		    strcmp(columns[1], "FGD") == 0 && strcmp(columns[2], "100") == 0)
			ret = 100 - strtod(columns[3], NULL);
	fclose(file);
	return ret;
}

static void goal_print(const char *folder, const char *list, uint32_t seeds)
{
	double fgd = published_fgd(folder, list), bound = 0;

	for (uint32_t seed = 42; seed < 42 + seeds; seed++)
		bound += bound_at_100(arrivals_make(seed)) / seeds;
	printf("bound      unallocated %6.2f %% at 100 %%, by packing and by models", bound);
	if (fgd >= 0)
		printf("; FGD as published %.2f %%; goal, a fifth of the way from it to the bound: %.2f %%",
		       fgd, fgd - (fgd - bound) / 5);
	printf("\n");
}

static void rules_compare(uint32_t seeds, enum rule first)
{
	for (enum rule rule = first; rule < RULES; rule++) {
		double at_100 = 0, at_130 = 0;
		uint64_t placed = 0;
		int64_t ns = 0;

		for (uint32_t seed = 42; seed < 42 + seeds; seed++) {
			struct result r = run(rule, arrivals_make(seed));

			at_100 += r.at_100 / seeds;
			at_130 += r.at_130 / seeds;
			placed += r.placed;
			ns += r.ns;
		}
		printf("%-10s unallocated %6.2f %% at 100 %%, %6.2f %% at 130 %% asked for; %9.0f placed per second\n",
		       rule_names[rule], at_100, at_130, per_second(placed, ns));
		fflush(stdout);
	}
}

/* All tasks of a run wait at once; the scheduler places what has room, with all that it does for that. */
static void scheduler_fill(void)
{
	uint32_t arrivals = arrivals_make(42), first = facts.jobs.count, placed = 0;
	struct decisions d = { .more = true };
	struct view *view;
	int64_t ns = 0;

	for (uint32_t id = 1; id <= first; id++) {
		struct event e = event_make(EVENT_JOB_HELD, 0, "bench");

		e.job_held.job = id;
		put(&e);
	}
	for (uint32_t i = 0; i < arrivals; i++) {
		struct event e = pod_event(&pods[order[i]]);

		put(&e);
	}
	view = view_create(&facts);
	while (d.more) {
		int64_t start = processor_ns();

		arena_reset(&step);
		decide(&facts, view, 10000000, &step, &d);
		for (uint32_t i = 0; i < d.count; i++) {
			placed += d.events[i].kind == EVENT_ATTEMPT_PLACED;
			put(&d.events[i]);
			view_follow(view, &facts, &d.events[i]);
		}
		ns += processor_ns() - start;
	}
	printf("the scheduler, %u tasks waiting at once: %u placed, %9.0f per second with apply and follow\n",
	       arrivals, placed, per_second(placed, ns));
	view_destroy(view);
}

/* --- with moves ------------------------------------------------------------------------------------------------------ */

enum { ARRIVAL_MS = 10000, ROUNDS_MAX = 100 };

static void happens(struct view *view, struct event *e)
{
	put(e);
	view_follow(view, &facts, e);
}

/* What the engine answers to a decision: ranks are ready, start, and go at once. */
static bool engine_answers(struct view *view, const struct event *d)
{
	struct event e;

	if (d->kind == EVENT_ATTEMPT_PLACED) {
		e = event_make(EVENT_TASK_READY, now_ms, "engine");
		e.task_ready.attempt = d->attempt_placed.attempt;
	} else if (d->kind == EVENT_ATTEMPT_RELEASED) {
		e = event_make(EVENT_TASK_STARTED, now_ms, "engine");
		e.task_started.attempt = d->attempt_released.attempt;
	} else if (d->kind == EVENT_ATTEMPT_STOPPED) {
		e = event_make(EVENT_TASK_EXITED, now_ms, "engine");
		e.task_exited.attempt = d->attempt_stopped.attempt;
		e.task_exited.cause = CAUSE_STOPPED;
	} else {
		return false;
	}
	happens(view, &e);
	return true;
}

/* Until nothing is left to do. */
static void settle(struct view *view)
{
	struct decisions d = { .more = true };
	bool answered = true;

	for (int i = 0; (d.more || answered) && i < ROUNDS_MAX; i++) {
		answered = false;
		arena_reset(&step);
		decide(&facts, view, 10000000, &step, &d);
		for (uint32_t k = 0; k < d.count; k++)
			happens(view, &d.events[k]);
		for (uint32_t k = 0; k < d.count; k++)
			answered = engine_answers(view, &d.events[k]) || answered;
	}
}

/* One task comes; lost when it has no place then. */
static bool arrival_placed(struct view *view, const struct pod *pod)
{
	struct event e = pod_event(pod);
	uint32_t id = (uint32_t)e.job_submitted.job;

	now_ms += ARRIVAL_MS;
	e.job_submitted.preempts = 1;
	e.job_submitted.checkpoint = 1;
	happens(view, &e);
	settle(view);
	if (job_get(&facts, (struct job_id){ id })->attempt.v)
		return true;
	e = event_make(EVENT_JOB_CANCEL_ASKED, now_ms, "bench");
	e.job_cancel_asked.job = id;
	happens(view, &e);
	settle(view);
	return false;
}

static struct result run_with_moves(uint32_t arrivals)
{
	struct result ret = { .at_100 = -1 };
	struct event e = event_policy_make(0, "bench");
	uint64_t wanted = 0, allocated = 0;
	int64_t start = processor_ns();
	struct view *view;

	cluster_make();
	e.policy_set.min_runtime_ms = e.policy_set.grace_ms = e.policy_set.backfill_depth = 0;
	e.policy_set.defragment_moves = 1000000;
	e.policy_set.defragment_work_ms = INT64_C(1) << 40;
	put(&e);
	view = view_create(&facts);
	for (uint32_t i = 0; i < arrivals; i++) {
		const struct pod *pod = &pods[order[i]];
		bool placed = arrival_placed(view, pod);

		wanted += pod_milli(pod);
		allocated += placed ? pod_milli(pod) : 0;
		ret.placed += placed;
		if (ret.at_100 < 0 && wanted >= (uint64_t)gpu_count * 1000)
			ret.at_100 = unallocated(allocated);
	}
	ret.at_130 = unallocated(allocated);
	ret.ns = processor_ns() - start;
	view_destroy(view);
	return ret;
}

static void moves_measure(uint32_t seeds)
{
	double at_100 = 0, at_130 = 0;
	int64_t moves = 0, ns = 0;

	for (uint32_t seed = 42; seed < 42 + seeds; seed++) {
		struct result r = run_with_moves(arrivals_make(seed));

		at_100 += r.at_100 / seeds;
		at_130 += r.at_130 / seeds;
		moves += facts.moves.jobs;
		ns += r.ns;
		facts_deinit(&facts);
	}
	printf("%-10s unallocated %6.2f %% at 100 %%, %6.2f %% at 130 %% asked for; %.0f moves, %.1f s of processor time a run\n",
	       "moves", at_100, at_130, (double)moves / seeds, (double)ns / 1e9 / seeds);
}

int main(int argc, char **argv)
{
	const char *list = argc > 2 ? argv[2] : "default";
	uint32_t seeds = argc > 3 ? number(argv[3]) : 10;

	if (argc < 2 || !seeds) {
		fprintf(stderr, "usage: openb FOLDER [LIST [SEEDS [moves | choice]]]\n");
		return 2;
	}
	machines_read(argv[1]);
	pods_read(argv[1], list);
	arena_init(&step, (size_t)2 << 30);
	cluster_make();
	for (uint32_t i = 0; i < pod_count; i++) {
		struct event e = pod_event(&pods[i]);

		put(&e);
	}
	printf("%s: %u nodes, %u GPUs, %u tasks, %u shapes, %u seeds\n", list, machine_count,
	       gpu_count, pod_count, facts.shapes.count, seeds);
	if (argc > 4 && strcmp(argv[4], "moves") == 0) {
		facts_deinit(&facts);
		moves_measure(seeds);
		arena_deinit(&step);
		return 0;
	}
	if (argc > 4 && strcmp(argv[4], "choice") == 0) {
		rules_compare(seeds, FRAGMENTS);
		facts_deinit(&facts);
		arena_deinit(&step);
		return 0;
	}
	goal_print(argv[1], list, seeds);
	rules_compare(seeds, BESTFIT);
	scheduler_fill();
	facts_deinit(&facts);
	arena_deinit(&step);
	return 0;
}
