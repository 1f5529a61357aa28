/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole SEED [COUNT]: runs of the whole system from these seeds. A run that breaks a promise is told with its seed, and made
 * small: of the things that people do and that break, those are left out without which it breaks a promise all the same.
 *
 *	--hours N	of virtual time; 6
 *	--only A,B	these items of the plan alone
 *	--damage	before each start, copies of the disk with damaged records are read (damage.c)
 *	--trace		each record, answer and death on stderr
 *	--find		stop at the first seed that breaks a promise, which is then what was asked for
 *
 * Each run is a process of its own, so that one that aborts is a result like others.
 */
#include "whole.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "base/parse.h"

enum { CALM_HOURS = 24 * 14, RUN_SECONDS = 120, SHRINK_RUNS = 400 };
#define START_MS INT64_C(1767225600000) /* 2026-01-01 00:00 UTC */

struct whole *whole;

/* What a run leaves to the process that asked for it. */
struct outcome {
	char problem[PROBLEM_MAX];
	uint64_t steps, events, restarts, rebuilds, evictions, left, requests, refused, told,
		resyncs, chosen, learned;
	uint32_t items[ITEM_KINDS], plan_count;
	int64_t virtual_ms;
	double cpu_s;
	bool left_out[PLAN_MAX];
};

struct options {
	int64_t seed, count, hours;
	bool trace, find, all, damage;
	bool left_out[PLAN_MAX];
	struct outcome *outcome; /* shared */
};

/* --- what everybody uses -------------------------------------------------------------------------------------------- */

void whole_problem(struct whole *w, const char *format, ...)
{
	char text[PROBLEM_MAX - 64];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!w->problem[0])
		snprintf(w->problem, sizeof(w->problem), "at %" PRId64 " s: %s",
			 (w->now_ms - w->start_ms) / 1000, text);
	whole_trace(w, "PROBLEM %s", text);
}

void whole_trace(struct whole *w, const char *format, ...)
{
	va_list args;

	if (!w->trace)
		return;
	fprintf(stderr, "%9.3f ", (double)(w->now_ms - w->start_ms) / 1000);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

uint32_t below(struct sim_random *random, uint32_t limit)
{
	return sim_random_below(random, limit);
}

bool one_in(struct sim_random *random, uint32_t n)
{
	return below(random, n) == 0;
}

uint64_t whole_hash(const struct whole *w, const char *text, uint64_t number)
{
	struct sim_random random = { w->seed ^ number };

	for (; *text; text++)
		random.state = sim_random_next(&random) ^ (uint8_t)*text;
	return sim_random_next(&random);
}

/* --- faults of the machine ------------------------------------------------------------------------------------------- */

/* Soon: between two passes, or in the middle of one, when the disk is just being changed. */
static void die(struct whole *w, const struct item *item, struct sim_random *random)
{
	bool power = item->kind == FAULT_POWER;
	enum io_crash how = (enum io_crash)below(random, IO_CRASHES);
	uint32_t dice = below(random, 8);

	if (dice == 0 && power)
		life_kill(w, true, how, item->seed);
	else if (dice == 0)
		life_stop(w, item->seed);
	else if (dice < 4)
		life_kill_at(w, 1 + below(random, 60), power, how);
	else
		w->die_passes = 1 + below(random, 60);
	w->die_of_power = power;
	w->die_how = how;
}

static void fail_call(struct whole *w, struct sim_random *random)
{
	static const enum io_call calls[] = { IO_WRITE,    IO_SYNC,   IO_SYNC,
					      IO_TRUNCATE, IO_RENAME, IO_SYNC_FOLDER };

	io_disk_fail(w->disk, calls[below(random, 6)], 1 + below(random, 20),
		     one_in(random, 3) ? ENOSPC : EIO);
}

static void fill_disk(struct whole *w, struct sim_random *random)
{
	w->full_until_ms = w->now_ms + 30000 + below(random, 900000);
	io_disk_capacity(w->disk, io_disk_used(w->disk) + below(random, 1 << 17));
}

static void set_clock(struct whole *w, struct sim_random *random)
{
	w->wall_off_ms += (int64_t)below(random, 48 * 3600) * 2000 - 48 * 3600000;
}

static void do_item(struct whole *w, const struct item *item)
{
	struct sim_random random = { item->seed ^ 1 };

	whole_trace(w, "item %td: %s", item - w->plan, item_names[item->kind]);
	w->items[item->kind]++;
	if (item->kind < FIRST_FAULT)
		people_do(w, item);
	else if (item->kind == FAULT_KILL || item->kind == FAULT_POWER)
		die(w, item, &random);
	else if (item->kind == FAULT_CALL)
		fail_call(w, &random);
	else if (item->kind == FAULT_FULL)
		fill_disk(w, &random);
	else if (item->kind == FAULT_CLOCK)
		set_clock(w, &random);
	else if (item->kind == FAULT_STALL)
		w->stalled_ms[below(&random, ACTORS)] = w->now_ms + below(&random, 30000);
	else
		cluster_fault(w->cluster, item);
}

/* --- a run -------------------------------------------------------------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t next_ms(struct whole *w)
{
	int64_t next = earlier(cluster_next_ms(w->cluster), people_next_ms(w));

	next = earlier(next, life_next_ms(w));
	next = earlier(next, listeners_next_ms(w));
	if (w->plan_next < w->plan_count)
		next = earlier(next, w->start_ms + w->plan[w->plan_next].at_ms);
	if (w->full_until_ms)
		next = earlier(next, w->full_until_ms);
	return next > w->now_ms ? next : w->now_ms + 1;
}

static void items_due(struct whole *w)
{
	while (w->plan_next < w->plan_count &&
	       w->start_ms + w->plan[w->plan_next].at_ms <= w->now_ms) {
		if (!w->left_out[w->plan_next])
			do_item(w, &w->plan[w->plan_next]);
		w->plan_next++;
	}
}

/* All that happens at this instant. */
static void instant(struct whole *w)
{
	bool at_rest;

	w->turns_at_once = 0;
	if (w->full_until_ms && w->full_until_ms <= w->now_ms) {
		w->full_until_ms = 0;
		io_disk_capacity(w->disk, -1);
	}
	if (!w->daemon && w->up_ms <= w->now_ms)
		life_start(w);
	items_due(w);
	cluster_run(w->cluster);
	people_run(w);
	listeners_run(w);
	at_rest = life_settle(w);
	cluster_run(w->cluster); /* what was started takes no time at all */
	at_rest = life_settle(w) && at_rest;
	if (!w->problem[0])
		promises_step(w, at_rest);
}

/* Everything works again: whatever can end must end. */
static void calm_down(struct whole *w)
{
	int64_t end_ms = w->now_ms + CALM_HOURS * HOUR_MS, again_ms = 0;

	w->calm = true;
	w->full_until_ms = w->now_ms;
	w->die_at = w->die_passes = 0;
	memset(w->stalled_ms, 0, sizeof(w->stalled_ms));
	io_disk_fail(w->disk, IO_WRITE, 0, 0);
	cluster_calm(w->cluster);
	while (!w->problem[0] && w->now_ms < end_ms) {
		if (w->daemon && w->now_ms >= again_ms) {
			people_calm(w);
			again_ms = w->now_ms + HOUR_MS;
		}
		instant(w);
		if (w->daemon && people_end(w, promises_facts(w)))
			return;
		w->now_ms = next_ms(w);
	}
	for (uint32_t id = 1; !w->problem[0] && id <= promises_facts(w)->jobs.count; id++) {
		const struct job *job = job_get(promises_facts(w), (struct job_id){ id });

		if (!job_state_is_final(job->state) && w->trace && w->daemon)
			people_ask_why(w, id);
		if (!job_state_is_final(job->state))
			whole_problem(w, "job %s never comes to an end: it is %s",
				      facts_name(promises_facts(w), job->name),
				      job_state_name(job->state));
	}
	whole_problem(w, "somebody never gets an answer");
}

static void run(struct whole *w, int64_t hours)
{
	stand_ins_begin(w->seed);
	w->start_ms = w->now_ms = START_MS;
	w->random.state = w->seed ^ 0xac7;
	script_make(w, hours * HOUR_MS);
	w->end_ms = w->start_ms + hours * HOUR_MS;
	w->cluster = cluster_create(w);
	w->people = people_create(w);
	w->promises = promises_create(w);
	w->listeners = listeners_create(w);
	life_begin(w);
	people_begin(w);
	while (!w->problem[0] && (w->now_ms < w->end_ms || w->plan_next < w->plan_count)) {
		instant(w);
		w->now_ms = next_ms(w);
	}
	calm_down(w);
	promises_end(w);
	listeners_end(w);
	if (!w->problem[0] && w->daemon) { /* and once more from its disk */
		life_kill(w, false, 0, 0);
		life_start(w);
	}
	life_end(w);
	cluster_destroy(w->cluster);
	people_destroy(w->people);
	promises_destroy(w->promises);
	listeners_destroy(w->listeners);
}

static void outcome_fill(const struct whole *w, struct outcome *o)
{
	struct rusage used;

	snprintf(o->problem, sizeof(o->problem), "%s", w->problem);
	o->steps = w->steps;
	o->events = w->events;
	o->restarts = w->restarts;
	o->rebuilds = w->rebuilds;
	o->evictions = w->evictions;
	o->left = w->left;
	o->requests = w->requests;
	o->refused = w->refused;
	o->told = w->told;
	o->resyncs = w->resyncs;
	o->chosen = w->chosen;
	o->learned = w->learned;
	o->plan_count = w->plan_count;
	memcpy(o->items, w->items, sizeof(o->items));
	o->virtual_ms = w->now_ms - w->start_ms;
	getrusage(RUSAGE_SELF, &used);
	o->cpu_s = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6 +
		   (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec / 1e6;
}

/* By its processor time: on a busy machine a run may wait for minutes. One that waits for something that never comes ends later. */
static void run_bound(void)
{
	const struct rlimit bound = { .rlim_cur = RUN_SECONDS, .rlim_max = RUN_SECONDS + 1 };

	CHECK(setrlimit(RLIMIT_CPU, &bound) == 0);
	alarm(10 * RUN_SECONDS);
}

/* In a process of its own. True: all promises were kept. */
static bool try(const struct options *options, uint64_t seed, const bool *left_out)
{
	struct outcome *o = options->outcome;
	int status = 0;
	pid_t child;

	memset(o, 0, sizeof(*o));
	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		run_bound();
		whole = calloc(1, sizeof(*whole));
		CHECK(whole);
		whole->seed = seed;
		whole->trace = options->trace;
		whole->damage = options->damage;
		memcpy(whole->left_out, left_out, sizeof(whole->left_out));
		run(whole, options->hours);
		outcome_fill(whole, o);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	if (status != 0)
		snprintf(o->problem, sizeof(o->problem), "the program died of %s %d",
			 WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return o->problem[0] == '\0';
}

/* --- making a failing run small ------------------------------------------------------------------------------------------ */

/* Leaves out what it can, in pieces that become smaller and smaller. Any broken promise counts. */
static uint32_t shrink(const struct options *options, uint64_t seed, bool *left_out, uint32_t count)
{
	struct options quiet = *options;
	uint32_t runs = 0;

	quiet.trace = false;
	for (uint32_t piece = count / 2; piece && runs < SHRINK_RUNS; piece /= 2) {
		for (uint32_t at = 0; at < count && runs < SHRINK_RUNS; at += piece) {
			bool less[PLAN_MAX];
			bool changed = false;

			memcpy(less, left_out, sizeof(less));
			for (uint32_t i = at; i < at + piece && i < count; i++) {
				changed = changed || !less[i];
				less[i] = true;
			}
			if (!changed)
				continue;
			runs++;
			if (!try(&quiet, seed, less))
				memcpy(left_out, less, sizeof(less));
		}
	}
	return runs;
}

static void tell_small(const struct options *options, uint64_t seed, const bool *left_out,
		       uint32_t count)
{
	struct whole *w = calloc(1, sizeof(*w));
	const char *comma = "";

	CHECK(w);
	w->seed = seed;
	script_make(w, options->hours * HOUR_MS);
	for (uint32_t i = 0; i < count; i++)
		if (!left_out[i])
			printf("    %6" PRId64 " s  item %u: %s\n", w->plan[i].at_ms / 1000, i,
			       item_names[w->plan[i].kind]);
	printf("  again: whole --hours %" PRId64 "%s --trace --only ", options->hours,
	       options->damage ? " --damage" : "");
	for (uint32_t i = 0; i < count; i++)
		if (!left_out[i]) {
			printf("%s%u", comma, i);
			comma = ",";
		}
	printf(" %" PRIu64 "\n", seed);
	free(w);
}

static void tell_failure(const struct options *options, uint64_t seed)
{
	bool left_out[PLAN_MAX];
	uint32_t count = options->outcome->plan_count ? options->outcome->plan_count : PLAN_MAX,
		 runs;

	printf("seed %" PRIu64 ": %s\n", seed, options->outcome->problem);
	memcpy(left_out, options->left_out, sizeof(left_out));
	if (!options->all)
		return;
	if (!options->outcome->plan_count) { /* it died: its plan is made here */
		struct whole *w = calloc(1, sizeof(*w));

		CHECK(w);
		w->seed = seed;
		script_make(w, options->hours * HOUR_MS);
		count = w->plan_count;
		free(w);
	}
	runs = shrink(options, seed, left_out, count);
	(void)try(&(struct options){ .hours = options->hours,
				     .outcome = options->outcome,
				     .damage = options->damage },
		  seed, left_out);
	printf("  made small in %u runs: %s\n", runs, options->outcome->problem);
	tell_small(options, seed, left_out, count);
}

/* --- the command ------------------------------------------------------------------------------------------------------------ */

struct sums {
	uint64_t seeds, failed, events, steps, restarts, rebuilds, evictions, left, told, resyncs,
		chosen, learned, faults, least_events, least_faults;
	double cpu_s, hours;
};

static void sums_add(struct sums *s, const struct outcome *o)
{
	uint64_t faults = 0;

	for (int kind = FIRST_FAULT; kind < ITEM_KINDS; kind++)
		faults += o->items[kind];
	s->events += o->events;
	s->steps += o->steps;
	s->restarts += o->restarts;
	s->rebuilds += o->rebuilds;
	s->evictions += o->evictions;
	s->left += o->left;
	s->told += o->told;
	s->resyncs += o->resyncs;
	s->chosen += o->chosen;
	s->learned += o->learned;
	s->faults += faults;
	s->cpu_s += o->cpu_s;
	s->hours += (double)o->virtual_ms / (double)HOUR_MS;
	if (s->seeds == 1 || o->events < s->least_events)
		s->least_events = o->events;
	if (s->seeds == 1 || faults < s->least_faults)
		s->least_faults = faults;
}

static void sums_tell(const struct sums *s)
{
	printf("%" PRIu64 " seeds, %" PRIu64 " failed: %.0f h of virtual time, %" PRIu64
	       " events (%" PRIu64 " at least), %" PRIu64 " faults (%" PRIu64 " at least), %" PRIu64
	       " starts, %" PRIu64 " rebuilds, %" PRIu64 " evictions, %" PRIu64
	       " ranks that left, %" PRIu64 " events told to listeners (%" PRIu64
	       " times anew), %" PRIu64 " choices of nodes for jobs with a deadline, %" PRIu64
	       " times of spot nodes learned, %" PRIu64
	       " passes; %.1f s of processor, %.0f times as fast as the clock\n",
	       s->seeds, s->failed, s->hours, s->events, s->least_events, s->faults,
	       s->least_faults, s->restarts, s->rebuilds, s->evictions, s->left, s->told,
	       s->resyncs, s->chosen, s->learned, s->steps, s->cpu_s,
	       s->cpu_s > 0 ? s->hours * 3600 / s->cpu_s : 0);
}

static int run_seeds(const struct options *options)
{
	struct sums sums = { 0 };

	for (int64_t i = 0; i < options->count; i++) {
		uint64_t seed = (uint64_t)(options->seed + i);

		sums.seeds++;
		if (!try(options, seed, options->left_out)) {
			sums.failed++;
			if (options->find) {
				printf("found by seed %" PRIu64 ", the %" PRIu64
				       "th, after %" PRIu64 " passes of it: %s\n",
				       seed, sums.seeds, options->outcome->steps,
				       options->outcome->problem);
				return 0;
			}
			tell_failure(options, seed);
		} else {
			sums_add(&sums, options->outcome);
		}
	}
	sums_tell(&sums);
	return options->find || sums.failed ? 1 : 0;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: whole [--hours N] [--only A,B] [--damage] [--trace] [--find] [--as-is] SEED [COUNT]\n");
	return 2;
}

static int read_only(struct options *options, const char *list)
{
	memset(options->left_out, true, sizeof(options->left_out));
	while (*list) {
		char *end;
		unsigned long item = strtoul(list, &end, 10);

		if (end == list || item >= PLAN_MAX)
			return -1;
		options->left_out[item] = false;
		list = *end == ',' ? end + 1 : end;
	}
	return 0;
}

static int read_arguments(int argc, char **argv, struct options *options)
{
	int at = 1;

	for (; at < argc && argv[at][0] == '-'; at++) {
		if (strcmp(argv[at], "--damage") == 0)
			options->damage = true;
		else if (strcmp(argv[at], "--trace") == 0)
			options->trace = true;
		else if (strcmp(argv[at], "--find") == 0)
			options->find = true;
		else if (strcmp(argv[at], "--as-is") == 0)
			options->all = false;
		else if (strcmp(argv[at], "--only") == 0 && at + 1 < argc &&
			 read_only(options, argv[++at]) == 0)
			options->all = false;
		else if (strcmp(argv[at], "--hours") == 0 && at + 1 < argc &&
			 parse_int(argv[++at], 1, 1000, &options->hours, NULL) >= 0)
			continue;
		else
			return -1;
	}
	if (at >= argc || parse_int(argv[at++], 0, INT64_MAX / 2, &options->seed, NULL) < 0)
		return -1;
	return at < argc ? parse_int(argv[at], 1, 100000000, &options->count, NULL) : 0;
}

int main(int argc, char **argv)
{
	struct options options = { .count = 1, .hours = 6, .all = true };

	if (read_arguments(argc, argv, &options) < 0)
		return usage();
	options.outcome = mmap(NULL, sizeof(*options.outcome), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(options.outcome != MAP_FAILED);
	return run_seeds(&options);
}
