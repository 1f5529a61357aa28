/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimates SEED DAYS ASKED_EVERY: how good are the estimates of starts on generated days, whose truth is known?
 *
 * A cluster of 64 GPUs lives through DAYS days in virtual time (play.h). Twelve people submit jobs of three programs each; a program
 * has its own width and its own run time, which varies from job to job (log-normal). Half of the jobs declare a limit, two to six times
 * what they need; a tenth have a higher priority; the load follows the day and comes to about nine tenths of the cluster, so
 * queues grow by day and shrink by night. After the first day, each ASKED_EVERY-th job that does not start at once is asked
 * about: a plan is made from the facts of that moment alone. Its true start is seen later; it depends on jobs that come
 * meanwhile, of which the plan knows nothing.
 *
 * Printed beside it: "position over service rate" (jobs that wait before it, over starts per hour in the 24 hours before), as it
 * is, and tuned by the ratios that it had of late, which gives it a spread.
 *
 * Exit status 1 when the plan is not better than both, or when its 9 of 10 is far off (below 75 or above 99 in 100).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/engine_sim.h"
#include "sim/plan.h"

enum { NODES = 8, USERS = 12, PROGRAMS = 3, JOBS_MAX = 1 << 17, RATIOS = 64 };
#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define EPOCH_MS INT64_C(1767225600000)

struct program {
	double median_ms, sigma;
	int64_t tasks, gpus;
	uint32_t made;
};

struct question {
	uint32_t job;
	int64_t asked_ms, even_ms, safe_ms; /* as waits */
	double plain_ms; /* position over service rate */
	double tuned_even_ms, tuned_safe_ms;
};

struct days {
	struct play play;
	struct sim_random random;
	struct program programs[USERS][PROGRAMS];
	int64_t true_ms[JOBS_MAX], start_ms[JOBS_MAX];
	struct question questions[JOBS_MAX];
	uint32_t question_count, starts[1 << 14]; /* starts by hour since the beginning */
	double ratios[RATIOS]; /* newest ones of true wait to position over service rate */
	uint32_t ratio_count, question_done;
};

static double uniform(struct days *d)
{
	return ((double)(sim_random_next(&d->random) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct days *d)
{
	return sqrt(-2 * log(uniform(d))) * cos(6.283185307179586 * uniform(d));
}

/* --- the world ---------------------------------------------------------------------------------------------- */

static int64_t true_rest_ms(void *context, const struct facts *facts, uint32_t job, int64_t age_ms)
{
	const struct days *d = context;
	int64_t rest_ms = d->true_ms[job] - age_ms - job_get(facts, (struct job_id){ job })->run_ms;

	return rest_ms > 0 ? rest_ms : 1;
}

static void see_start(void *context, const struct facts *facts, uint32_t job, int64_t at_ms)
{
	struct days *d = context;

	(void)facts;
	d->starts[(at_ms - EPOCH_MS) / HOUR_MS]++;
	if (!d->start_ms[job])
		d->start_ms[job] = at_ms;
}

static void world_make(struct days *d)
{
	struct facts empty;
	struct event e;
	char name[32];

	facts_init(&empty);
	d->play.context = d;
	d->play.rest_ms = true_rest_ms;
	d->play.placed = see_start;
	play_init(&d->play, &empty, EPOCH_MS);
	facts_deinit(&empty);
	for (uint32_t i = 0; i < NODES; i++) {
		e = event_make(EVENT_NODE_SET, EPOCH_MS, "days");
		snprintf(name, sizeof(name), "n%u", i);
		e.node_set.name = name;
		e.node_set.gpus = 8;
		e.node_set.model = "H100-80GB";
		e.node_set.gpu_memory_mib = 81920;
		e.node_set.cpu_milli = 256000;
		e.node_set.ram_mib = 1 << 21;
		play_offer(&d->play, &e);
	}
	for (uint32_t i = 0; i < 3; i++) {
		e = event_make(EVENT_QUEUE_SET, EPOCH_MS, "days");
		snprintf(name, sizeof(name), "q%u", i);
		e.queue_set.name = name;
		e.queue_set.limit_share = -1;
		e.queue_set.weight = 1 + i;
		play_offer(&d->play, &e);
	}
	for (uint32_t u = 0; u < USERS; u++)
		for (uint32_t p = 0; p < PROGRAMS; p++) {
			static const int64_t widths[] = { 1, 1, 1, 2, 2, 4, 8, 8 };

			d->programs[u][p] = (struct program){
				.median_ms = exp(log(20 * 60000.0) + 1.1 * normal(d)),
				.sigma = 0.2 + 0.6 * uniform(d),
				.tasks = u % 6 == 0 && p == 0 ? 2 : 1,
				.gpus = widths[sim_random_below(&d->random, 8)],
			};
		}
}

static uint32_t job_submit(struct days *d)
{
	uint32_t u = sim_random_below(&d->random, USERS),
		 p = sim_random_below(&d->random, PROGRAMS), id = 0;
	struct program *program = &d->programs[u][p];
	struct event e = event_make(EVENT_JOB_SUBMITTED, d->play.now_ms, "days");
	double run_ms = program->median_ms * exp(program->sigma * normal(d));
	char name[32], user[32], queue[32];
	struct arena arena;
	struct err err;

	arena_init(&arena, 1 << 20);
	snprintf(name, sizeof(name), "p%c-%u", 'a' + (int)p, ++program->made);
	snprintf(user, sizeof(user), "user%c", 'a' + (int)u);
	snprintf(queue, sizeof(queue), "q%u", u % 3);
	e.job_submitted.name = name;
	e.job_submitted.user = user;
	e.job_submitted.queue = queue;
	e.job_submitted.kind = KIND_TRAINING;
	e.job_submitted.tier = TIER_STANDARD;
	e.job_submitted.priority = uniform(d) < 0.1 ? 10 : 0;
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = program->tasks;
	e.job_submitted.gpus = program->gpus;
	e.job_submitted.grace_ms = -1;
	if (uniform(d) < 0.5)
		e.job_submitted.limit_ms = (int64_t)(run_ms * (2 + 4 * uniform(d)));
	CHECK(core_admit(&d->play.facts, d->play.view, &e, &arena, &id, &err) == 0 &&
	      id < JOBS_MAX);
	d->true_ms[id] = (int64_t)run_ms + 1000;
	play_offer(&d->play, &e);
	arena_deinit(&arena);
	return id;
}

/* GPU-milliseconds of a job on average, so that the load is known. */
static double mean_work(const struct days *d)
{
	double sum = 0;

	for (uint32_t u = 0; u < USERS; u++)
		for (uint32_t p = 0; p < PROGRAMS; p++) {
			const struct program *m = &d->programs[u][p];

			sum += m->median_ms * exp(m->sigma * m->sigma / 2) *
			       (double)(m->tasks * m->gpus);
		}
	return sum / (USERS * PROGRAMS);
}

/* --- questions ------------------------------------------------------------------------------------------------ */

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Ratios of questions whose truth is known by now. */
static void ratios_learn(struct days *d)
{
	for (; d->question_done < d->question_count; d->question_done++) {
		const struct question *q = &d->questions[d->question_done];

		if (!d->start_ms[q->job])
			return;
		d->ratios[d->ratio_count++ % RATIOS] =
			(double)(d->start_ms[q->job] - q->asked_ms) / q->plain_ms;
	}
}

static void plain_ask(struct days *d, struct question *q)
{
	const struct facts *f = &d->play.facts;
	double ratios[RATIOS] = { 1 };
	uint32_t ahead = 0, rate = 0, count;
	int64_t hour = (d->play.now_ms - EPOCH_MS) / HOUR_MS;

	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });

		ahead += job_is_waiting(job) && id <= q->job;
	}
	for (int64_t h = hour > 24 ? hour - 24 : 0; h < hour; h++)
		rate += d->starts[h];
	q->plain_ms = (double)ahead * 24 * (double)HOUR_MS / (rate ? rate : 1);
	ratios_learn(d);
	count = d->ratio_count < RATIOS ? d->ratio_count : RATIOS;
	memcpy(ratios, d->ratios, count * sizeof(*ratios));
	count = count ? count : 1;
	qsort(ratios, count, sizeof(*ratios), compare_doubles);
	q->tuned_even_ms = q->plain_ms * ratios[count / 2];
	q->tuned_safe_ms = q->plain_ms * ratios[count * 9 / 10];
}

static void question_ask(struct days *d, uint32_t job)
{
	struct question *q = &d->questions[d->question_count];
	struct plan_limits limits = { .target = job };
	struct plan_answer answer;
	struct plan plan;

	q->job = job;
	q->asked_ms = d->play.now_ms;
	plan_make(&d->play.facts, d->play.now_ms, &limits, &plan);
	if (plan_ask(&plan, job, &answer) && answer.start_by_ms != PLAY_NEVER) {
		q->even_ms = answer.start_ms - q->asked_ms;
		q->safe_ms = answer.start_by_ms - q->asked_ms;
		plain_ask(d, q);
		d->question_count++;
	}
	plan_deinit(&plan);
}

/* --- what it comes to -------------------------------------------------------------------------------------------- */

static double pinball(double said, double was, double chance)
{
	return was > said ? chance * (was - said) : (1 - chance) * (said - was);
}

static bool report(struct days *d)
{
	double even[3] = { 0 }, safe[3] = { 0 }, *widths, coverage, wait = 0;
	uint32_t under = 0, under_even = 0, count = 0;

	widths = calloc(d->question_count + 1, sizeof(*widths));
	CHECK(widths);
	for (uint32_t i = 0; i < d->question_count; i++) {
		const struct question *q = &d->questions[i];
		double was = (double)(d->start_ms[q->job] - q->asked_ms);

		if (!d->start_ms[q->job])
			continue;
		under += was <= (double)q->safe_ms;
		under_even += was <= (double)q->even_ms;
		wait += was;
		widths[count++] = (double)(q->safe_ms - q->even_ms) / was;
		even[0] += pinball((double)q->even_ms, was, 0.5);
		safe[0] += pinball((double)q->safe_ms, was, 0.9);
		even[1] += pinball(q->plain_ms, was, 0.5);
		safe[1] += pinball(q->plain_ms, was, 0.9);
		even[2] += pinball(q->tuned_even_ms, was, 0.5);
		safe[2] += pinball(q->tuned_safe_ms, was, 0.9);
	}
	if (!count) {
		free(widths);
		puts("no job waited");
		return false;
	}
	qsort(widths, count, sizeof(*widths), compare_doubles);
	coverage = 100.0 * under / count;
	printf("questions %u, mean wait %.1f min\n", count, wait / count / 60000);
	printf("started before P90            %5.1f %% (P50: %.1f %%)\n", coverage,
	       100.0 * under_even / count);
	printf("median of (P90 - P50) / wait  %5.2f\n", widths[count / 2]);
	printf("pinball loss, minutes            P50     P90     both\n");
	for (int i = 0; i < 3; i++)
		printf("  %-29s %6.2f  %6.2f  %6.2f\n",
		       i == 0   ? "plan"
		       : i == 1 ? "position over service rate"
				: "the same, tuned",
		       even[i] / count / 60000, safe[i] / count / 60000,
		       (even[i] + safe[i]) / count / 60000);
	printf("plan below position over rate: %.0f %%, tuned: %.0f %%\n",
	       100 * (1 - (even[0] + safe[0]) / (even[1] + safe[1])),
	       100 * (1 - (even[0] + safe[0]) / (even[2] + safe[2])));
	free(widths);
	return coverage >= 75 && coverage <= 99 && even[0] + safe[0] < even[1] + safe[1] &&
	       even[0] + safe[0] < even[2] + safe[2];
}

int main(int argc, char **argv)
{
	struct days *d = calloc(1, sizeof(*d));
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	int64_t days = argc > 2 ? strtoll(argv[2], NULL, 10) : 3,
		every = argc > 3 ? strtoll(argv[3], NULL, 10) : 10;
	int64_t next_ms = EPOCH_MS;
	uint32_t waited = 0;
	double mean_ms;
	bool good;

	CHECK(d);
	d->random.state = seed;
	world_make(d);
	mean_ms = mean_work(d) / (0.92 * (double)NODES * 8);
	while (next_ms < EPOCH_MS + days * DAY_MS) {
		double wave = 1 + 0.6 * sin(6.283185307179586 * (double)(next_ms - EPOCH_MS) /
					    (double)DAY_MS);
		int64_t at_ms = play_next_ms(&d->play);

		if (at_ms < next_ms) {
			play_go(&d->play, at_ms);
			CHECK(play_settle(&d->play));
			continue;
		}
		play_go(&d->play, next_ms);
		{
			uint32_t job = job_submit(d);

			CHECK(play_settle(&d->play));
			if (!d->start_ms[job] && next_ms > EPOCH_MS + DAY_MS &&
			    waited++ % (uint32_t)every == 0)
				question_ask(d, job);
		}
		next_ms += (int64_t)(-log(uniform(d)) * mean_ms / wave) + 1;
	}
	for (int64_t at_ms; (at_ms = play_next_ms(&d->play)) != PLAY_NEVER;) {
		play_go(&d->play, at_ms);
		CHECK(play_settle(&d->play));
	}
	printf("seed %" PRIu64 ", %u jobs in %" PRId64 " days\n", seed, d->play.facts.jobs.count,
	       days);
	good = report(d);
	play_deinit(&d->play);
	free(d);
	return good ? 0 : 1;
}
