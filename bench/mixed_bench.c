/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost of decisions on the load of BENCHMARKS H: everything at once, with an easier and the hardest variant beside it.
 *
 *	mixed_bench [VARIANT...] [PART...] [QUEUED]	default: easy mixed hardest, all parts, 1000000
 *
 *	easy	one wish: one task of one GPU
 *	mixed	10,000 wishes: single GPUs, halves and memory of GPUs, gangs up to 128 tasks, tasks without GPUs; models, levels,
 *		drivers, labels, processors and memory; tiers, priorities, run-time limits
 *	hardest	the same, but no two jobs have the same wish
 *
 * The fill comes always; parts after it are `pass`, `events` and `explain`.
 *
 * 12,500 nodes of 8 GPUs of four models; 200 queues in three levels, weights after Zipf, guarantees; in all but `easy` limits, limits
 * and guarantees of models, calendars and budgets as well. 60,000 jobs are started or wait, then others wait until there are QUEUED.
 * Times are processor times of this thread, so that other work on the machine changes them little. The hash of the facts at
 * the end tells whether two builds decided the same. Nothing is asserted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/core.h"
#include "core/scheduling/view/view.h"
#include "job.h"

enum variant { EASY, MIXED, HARDEST, VARIANTS };
enum {
	NODES = 12500,
	FIRST_JOBS = 60000,
	WISHES = 10000,
	PASSES = 5,
	EVENTS = 40,
	ASKED = 10,
	PASSES_MAX = 12,
	EVENT_PASSES_MAX = 4
};

static const char *const variant_names[VARIANTS] = { "easy", "mixed", "hardest" };

enum part { PASS, ENDS, EXPLAIN, PARTS };
static const char *const part_names[PARTS] = { "pass", "events", "explain" };
static bool part_wanted[PARTS];

static struct facts f;
static struct view *view;
static struct arena step;
static uint64_t seq;
static int64_t now_ms;
static uint64_t random_state;
static uint32_t passes; /* of the last settling; */
static int64_t longest_ns; /* its longest one */
static bool at_rest; /* nothing was left to decide */

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t mixed(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static void passes_report(void)
{
	printf("  %u passes%s, the longest %.1f ms\n", passes, at_rest ? "" : " and no rest yet",
	       (double)longest_ns / 1e6);
}

static uint32_t below(uint32_t limit)
{
	return (uint32_t)(mixed(++random_state) % limit);
}

static void report(const char *what, int64_t ns)
{
	printf("  %-64s %10.3f ms\n", what, (double)ns / 1e6);
	fflush(stdout);
}

static void put(struct event *e)
{
	e->seq = ++seq;
	e->time_ms = now_ms;
	apply(&f, e);
	view_follow(view, &f, e);
}

/* --- the cluster and its queues ------------------------------------------------------------------- */

static const char *node_model(uint32_t i)
{
	static const char *const models[10] = { "H100-80GB", "H100-80GB", "H100-80GB", "H100-80GB",
						"A100-80GB", "A100-80GB", "A100-80GB", "L40S-48GB",
						"L40S-48GB", "L4-24GB" };

	return models[i / 32 % 10];
}

static int64_t model_memory_mib(const char *model)
{
	return strstr(model, "80GB") ? 81920 : strstr(model, "48GB") ? 49152 : 24576;
}

static void node_make(uint32_t i, bool plain)
{
	char name[32], domains[64];
	struct event e = event_make(EVENT_NODE_SET, now_ms, "bench"),
		     mark = event_make(EVENT_NODE_MARKED, now_ms, "bench");

	snprintf(name, sizeof(name), "n%05u", i);
	snprintf(domains, sizeof(domains), "z%02u,l%03u", i / 512, i / 32);
	e.node_set.name = name;
	e.node_set.gpus = 8;
	e.node_set.model = plain ? "H100-80GB" : node_model(i);
	e.node_set.gpu_memory_mib = model_memory_mib(e.node_set.model);
	e.node_set.cpu_milli = plain ? 0 : 128000;
	e.node_set.ram_mib = plain ? 0 : 1 << 20;
	e.node_set.driver = i % 4 ? "550.54.15" : "535.104.5";
	e.node_set.domains = domains;
	put(&e);
	mark.node_marked.node = (int64_t)f.nodes.count;
	mark.node_marked.labels = i % 16 ? "disk=plain" : "disk=fast";
	if (!plain)
		put(&mark);
}

static struct event queue_event(const char *name, const char *parent, int64_t guarantee,
				int64_t weight)
{
	struct event e = event_make(EVENT_QUEUE_SET, now_ms, "bench");

	e.queue_set.name = name;
	e.queue_set.parent = parent;
	e.queue_set.guarantee_share = guarantee * GPU_SHARE;
	e.queue_set.limit_share = -1;
	e.queue_set.weight = weight;
	return e;
}

/* Leaf number n of 144, with what makes its jobs harder to decide. */
static void leaf_make(const char *name, const char *parent, uint32_t n, bool plain)
{
	static const int64_t limit[] = { 900 * GPU_SHARE };
	struct event e = queue_event(name, parent, 500, 1000 / (n + 1) + 1);
	struct event budget = event_make(EVENT_BUDGET_SET, now_ms, "bench");

	if (!plain && n % 5 == 1)
		e.queue_set.limit_share = 2000 * GPU_SHARE;
	if (!plain && n % 12 == 2) {
		e.queue_set.limit_models = "H100-80GB";
		e.queue_set.limit_model_shares = limit;
		e.queue_set.limit_model_shares_count = 1;
	}
	if (!plain && n % 20 == 3)
		e.queue_set.calendar = "mon-fri 20:00-08:00, sat-sun, utc+1";
	put(&e);
	budget.budget_set.queue = name;
	budget.budget_set.left_micro = INT64_C(200000000000);
	if (!plain && n % 24 == 4)
		put(&budget);
}

static void queues_make(bool plain)
{
	char name[32], parent[32];
	struct event e, price = event_make(EVENT_PRICE_SET, now_ms, "bench");

	price.price_set.model = "any";
	price.price_set.micro_per_hour = 2000000;
	put(&price);
	for (int a = 0; a < 8; a++) {
		snprintf(name, sizeof(name), "a%d", a);
		e = queue_event(name, "", 12500, 100 / (a + 1));
		put(&e);
		for (int b = 0; b < 6; b++) {
			snprintf(parent, sizeof(parent), "a%d", a);
			snprintf(name, sizeof(name), "a%d.%d", a, b);
			e = queue_event(name, parent, 2000, 100 / (b + 1));
			put(&e);
			for (int c = 0; c < 3; c++) {
				snprintf(parent, sizeof(parent), "a%d.%d", a, b);
				snprintf(name, sizeof(name), "a%d.%d.%d", a, b, c);
				leaf_make(name, parent, (uint32_t)(a + 8 * b + 48 * c), plain);
			}
		}
	}
}

/* --- jobs -------------------------------------------------------------------------------------------- */

/* A queue in four is drawn evenly, the others after Zipf by halving: the first has a quarter of all jobs. */
static const char *queue_draw(char out[32])
{
	uint32_t n = below(144);

	while (n && below(4))
		n /= 2;
	snprintf(out, 32, "a%u.%u.%u", n % 8, n / 8 % 6, n / 48 % 3);
	return out;
}

static void wish_gang(struct event_job_submitted *e, uint64_t x)
{
	static const int64_t gpus[] = { 1, 2, 4, 8 };

	e->gpus = gpus[x % 4];
	e->tasks_min = e->tasks_max = x / 4 % 5 ? 2 + (int64_t)(x / 32 % 31) : 16 << (x / 32 % 4);
	if (e->tasks_min > 32)
		e->gpus = 8;
	if (x / 1024 % 8 == 0)
		e->require = "leaf";
	else if (x / 1024 % 8 == 1 && e->tasks_min * e->gpus <= 8)
		e->require = "node";
	if (x / 8192 % 8 == 0)
		e->tasks_max = 2 * e->tasks_min;
}

/* Wish number n. */
static void wish_make(struct event_job_submitted *e, uint64_t n, bool each_differs)
{
	static const char *const models[] = {
		"", "", "H100-80GB", "A100-80GB", "H100-80GB,A100-80GB", "A100-80GB,L40S-48GB"
	};
	uint64_t x = mixed(n), kind = x % 100;

	x /= 100;
	e->cpu_milli = each_differs ? 1000 + (int64_t)(n % 4000) : 1000 + 500 * (int64_t)(x % 8);
	e->memory_mib = each_differs ? 1024 + (int64_t)(n / 4000) : 0;
	x /= 8;
	if (kind < 5) {
		e->gpus = 0;
		return;
	}
	e->models = models[x % 6];
	x /= 6;
	if (x % 10 == 0)
		e->min_driver = "550";
	if (x / 10 % 20 == 0)
		e->labels = "disk=fast";
	x /= 200;
	if (kind < 15)
		e->gpu_part = GPU_SHARE / 2;
	else if (kind < 20)
		e->gpu_part_mib = 8192 + 1024 * (int64_t)(x % 8);
	else if (kind > 60)
		wish_gang(e, x);
}

static void submit(enum variant variant, uint32_t i)
{
	char queue[32];
	struct event e = job_event(&f, queue_draw(queue), 1, 1, 0);
	struct event_job_submitted *j = &e.job_submitted;
	uint32_t drawn = below(100);

	if (variant != EASY) {
		wish_make(j, variant == HARDEST ? WISHES + i : below(WISHES), variant == HARDEST);
		j->tier = drawn < 15   ? TIER_BEST_EFFORT
			  : drawn < 18 ? TIER_CRITICAL
				       : TIER_STANDARD;
		j->priority = below(4);
		j->limit_ms = drawn % 3 ? (1 + (int64_t)below(48)) * 1800000 : 0;
		j->kind = j->tasks_min > 1 ? KIND_TRAINING : KIND_BATCH;
		j->checkpoint = drawn % 2;
	}
	put(&e);
}

/* --- measuring ------------------------------------------------------------------------------------------ */

/* Decides until there is no more, or so many passes were made: searches for victims go on for very many where each wish is
 * another one. Processor time of decide. */
static int64_t settle(uint32_t most)
{
	struct decisions d = { .more = true };
	int64_t ns = 0;

	for (passes = 0, longest_ns = 0; d.more && passes < most; passes++) {
		int64_t start = cpu_ns(), pass_ns;

		arena_reset(&step);
		decide(&f, view, 10000000, &step, &d);
		pass_ns = cpu_ns() - start;
		ns += pass_ns;
		longest_ns = pass_ns > longest_ns ? pass_ns : longest_ns;
		for (uint32_t i = 0; i < d.count; i++)
			put(&d.events[i]);
	}
	at_rest = !d.more;
	return ns;
}

static void run_all(void)
{
	for (uint32_t id = 1; id <= f.attempts.count; id++) {
		const struct attempt *a = attempt_get(&f, (struct attempt_id){ id });

		for (uint32_t rank = 0; a->state == ATTEMPT_PREPARING && rank < a->tasks; rank++) {
			struct event e = event_make(EVENT_TASK_READY, now_ms, "bench");

			e.task_ready.attempt = id;
			e.task_ready.rank = rank;
			put(&e);
		}
	}
	(void)settle(PASSES_MAX);
}

static void bench_fill(enum variant variant)
{
	int64_t ns;

	for (uint32_t i = 0; i < FIRST_JOBS; i++)
		submit(variant, i);
	ns = settle(PASSES_MAX);
	report("60,000 jobs come to an idle cluster: decide", ns);
	passes_report();
	printf("  %u start, %.0f placed tasks per second\n", f.attempts.count,
	       (double)f.tasks.count / ((double)ns / 1e9));
	run_all();
}

static void bench_pass(void)
{
	int64_t start = cpu_ns();
	struct decisions d;

	for (int i = 0; i < PASSES; i++) {
		arena_reset(&step);
		decide(&f, view, 10000000, &step, &d);
	}
	report("full pass", (cpu_ns() - start) / PASSES);
	printf("  %u buckets, %u decisions, %zu KiB of step memory\n", view->buckets_used, d.count,
	       step.used_bytes / 1024);
}

static int compare_ns(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A job ends whole; one that waits may start in its place. */
static void bench_events(void)
{
	static int64_t ns[EVENTS];
	int64_t sum = 0;
	uint32_t done = 0;

	for (uint32_t id = 1; id <= f.attempts.count && done < EVENTS; id += 7) {
		uint32_t tasks = attempt_get(&f, (struct attempt_id){ id })->tasks;

		if (attempt_get(&f, (struct attempt_id){ id })->state != ATTEMPT_ACTIVE)
			continue;
		now_ms += 100;
		for (uint32_t rank = 0; rank < tasks; rank++) {
			struct event e = event_make(EVENT_TASK_EXITED, now_ms, "bench");

			e.task_exited.attempt = id;
			e.task_exited.rank = rank;
			put(&e);
		}
		ns[done] = settle(EVENT_PASSES_MAX);
		sum += ns[done++];
	}
	if (!done)
		return;
	qsort(ns, done, sizeof(ns[0]), compare_ns);
	report("a job ends: decide, mean", sum / done);
	report("  median", ns[done / 2]);
	report("  P99", ns[done * 99 / 100]);
	report("  worst", ns[done - 1]);
	passes_report();
}

static uint32_t waiting_job(void)
{
	for (;;) {
		uint32_t id = 1 + below((uint32_t)f.jobs.count);
		const struct job *job = job_get(&f, (struct job_id){ id });

		if (!job_state_is_final(job->state) && !job_is_live(job) && !job->promise)
			return id;
	}
}

static void bench_explain(void)
{
	struct explain_change change = { 0 };
	struct explanation why = { 0 };
	int64_t whys = 0, changes = 0, worst = 0;
	uint32_t told = 0;

	for (uint32_t i = 0; i < ASKED && view->waits; i++) {
		struct job_id id = { waiting_job() };
		int64_t start = cpu_ns();

		arena_reset(&step);
		explain_job(&f, view, id, &step, &why);
		whys += cpu_ns() - start;
		arena_reset(&step);
		start = cpu_ns();
		explain_change(&f, view, id, &step, &change);
		changes += cpu_ns() - start;
		worst = cpu_ns() - start > worst ? cpu_ns() - start : worst;
		told += change.part_count > 0;
	}
	report("explain a waiting job: the reason, mean of 10", whys / ASKED);
	report("  the smallest change, mean of 10", changes / ASKED);
	report("  ... worst", worst);
	printf("  a change is named for %u of %u\n", told, ASKED);
}

static void variant_run(enum variant variant, uint32_t queued)
{
	struct event e = event_make(EVENT_LEVELS_SET, 0, "bench");

	seq = 0;
	random_state = 5;
	now_ms = 1700000000000;
	printf("%s, %u queued:\n", variant_names[variant], queued);
	facts_init(&f);
	view = view_create(&f);
	arena_init(&step, (size_t)4 << 30);
	e.levels_set.levels = "zone,leaf";
	put(&e);
	for (uint32_t i = 0; i < NODES; i++)
		node_make(i, variant == EASY);
	queues_make(variant == EASY);
	bench_fill(variant);
	for (uint32_t i = FIRST_JOBS; f.jobs.count < queued; i++)
		submit(variant, i);
	report("the jobs that come then: decide", settle(PASSES_MAX));
	passes_report();
	run_all();
	if (part_wanted[PASS])
		bench_pass();
	if (part_wanted[ENDS])
		bench_events();
	if (part_wanted[EXPLAIN])
		bench_explain();
	printf("  facts %016" PRIx64 "\n", facts_hash(&f));
	view_destroy(view);
	facts_deinit(&f);
	arena_deinit(&step);
}

/* One of the names is wanted. */
static bool word_read(const char *word, const char *const *names, uint32_t count, bool *wanted)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(word, names[i]) == 0)
			return wanted[i] = true;
	return false;
}

/* Where none was named, all are wanted. */
static void none_is_all(bool *wanted, uint32_t count)
{
	bool any = false;

	for (uint32_t i = 0; i < count; i++)
		any |= wanted[i];
	for (uint32_t i = 0; i < count; i++)
		wanted[i] |= !any;
}

int main(int argc, char **argv)
{
	bool wanted[VARIANTS] = { false };
	int64_t queued = 1000000;
	struct err why;

	for (int i = 1; i < argc; i++) {
		if (!word_read(argv[i], variant_names, VARIANTS, wanted) &&
		    !word_read(argv[i], part_names, PARTS, part_wanted) &&
		    parse_int(argv[i], FIRST_JOBS, 10000000, &queued, &why) < 0) {
			fprintf(stderr,
				"usage: mixed_bench [easy] [mixed] [hardest] [pass] [events] "
				"[explain] [QUEUED]\n");
			return 2;
		}
	}
	none_is_all(wanted, VARIANTS);
	none_is_all(part_wanted, PARTS);
	for (uint32_t v = 0; v < VARIANTS; v++)
		if (wanted[v])
			variant_run((enum variant)v, (uint32_t)queued);
	return 0;
}
