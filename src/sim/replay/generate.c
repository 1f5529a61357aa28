/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every draw is one number of 32 bits, looked up in a table of weights or of quantiles. A program stands at some place of the
 * distribution of run times of its width, and its jobs within a tenth around it; beyond an end the place is folded back, so all
 * jobs together have the distribution of the table whatever the programs are.
 */
#include "sim/replay/generate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/engine_sim.h"
#include "sim/replay/workload.h"

enum { PROGRAMS_MAX = 4, SESSION_MAX = 64, NODE_TASK_MAX = 8, WIDTHS = 10, PLACES = 1 << 20 };
enum { HOUR_S = 3600, DAY_S = 86400, WEEK_H = 168, LIMIT_STEP_S = 600 };
enum { RANK_WEIGHT = 100000 };

struct program {
	uint32_t part; /* percent of one GPU; 0 = whole ones */
	uint32_t gpus, tasks;
	uint32_t place; /* in the distribution of run times, of PLACES */
	uint32_t restart_s;
	bool checkpoints, spare, interactive;
};

struct person {
	uint32_t queue, program_count;
	bool declares; /* limits */
	struct program programs[PROGRAMS_MAX];
};

struct made {
	int64_t submit_s;
	uint32_t run_s, user, program;
};

struct generator {
	const struct scenario *cluster;
	const struct generate_options *options;
	struct sim_random random;
	struct person *users;
	uint32_t *user_weights; /* of all up to each */
	const char **queues; /* those that are no other's parent */
	uint32_t queue_count, node_gpus; /* of the largest node */
	int64_t gpus;
	struct made *jobs;
	uint32_t count, room;
};

/* --- draws ---------------------------------------------------------------------------------------------------- */

static uint32_t below(struct generator *g, uint32_t limit)
{
	return sim_random_below(&g->random, limit);
}

static bool chance(struct generator *g, uint32_t percent)
{
	return below(g, 100) < percent;
}

static uint32_t by_weight(struct generator *g, const uint32_t *weights, uint32_t count)
{
	uint32_t sum = 0, at, i = 0;

	for (uint32_t n = 0; n < count; n++)
		sum += weights[n];
	at = below(g, sum);
	while (at >= weights[i])
		at -= weights[i++];
	return i;
}

/* The k-th of `count` has a weight of 1/k. */
static uint32_t by_rank(struct generator *g, uint32_t count)
{
	uint32_t sum = 0, at, k = 1;

	for (uint32_t n = 1; n <= count; n++)
		sum += RANK_WEIGHT / n;
	at = below(g, sum);
	while (at >= RANK_WEIGHT / k)
		at -= RANK_WEIGHT / k++;
	return k - 1;
}

/* The same for users, who may be many. */
static uint32_t user_draw(struct generator *g)
{
	uint32_t low = 0, high = g->options->users - 1;
	const uint32_t at = below(g, g->user_weights[high]);

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (g->user_weights[middle] <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* --- distributions ---------------------------------------------------------------------------------------------- */

/* Jobs in an hour, Monday first: all hours of a day, then the days. */
static const uint32_t hours[24] = { 60,  50,  45,  45,  50,  65,  85,  100, 105, 115, 120, 120,
				    120, 125, 120, 125, 125, 105, 105, 105, 115, 110, 100, 80 };
static const uint32_t days[7] = { 110, 112, 112, 110, 105, 75, 76 };

static const struct width {
	uint32_t part, gpus, weight;
} widths[WIDTHS] = {
	{ 25, 1, 4 }, { 50, 1, 4 }, { 0, 1, 66 }, { 0, 2, 4 },  { 0, 4, 5 },
	{ 0, 8, 12 }, { 0, 16, 2 }, { 0, 32, 1 }, { 0, 64, 1 }, { 0, 128, 1 },
};

enum { QUANTILES = 8 };
static const uint32_t quantile_at[QUANTILES] = { 0, 10, 25, 50, 75, 90, 99, 100 };
static const uint32_t run_s[3][QUANTILES] = {
	{ 5, 30, 90, 420, 2400, 10800, 130000, 604800 }, /* one GPU or a part */
	{ 5, 30, 100, 480, 3600, 36000, 250000, 1209600 }, /* several */
	{ 15, 60, 180, 900, 9000, 50000, 350000, 1209600 }, /* a node or more */
};

static uint32_t run_of(const struct program *p, uint32_t place)
{
	const uint32_t *times = run_s[p->gpus * p->tasks >= NODE_TASK_MAX ? 2
				      : p->gpus > 1                       ? 1
									  : 0];
	const uint64_t at = (uint64_t)place * 100;
	uint32_t i = 1;
	uint64_t from, to;

	while (at >= (uint64_t)quantile_at[i] * PLACES)
		i++;
	from = (uint64_t)quantile_at[i - 1] * PLACES;
	to = (uint64_t)quantile_at[i] * PLACES;
	return times[i - 1] + (uint32_t)((times[i] - times[i - 1]) * (at - from) / (to - from));
}

static uint32_t place_near(struct generator *g, uint32_t place)
{
	int64_t at = (int64_t)place - PLACES / 10 + below(g, PLACES / 5);

	if (at < 0)
		at = -at;
	if (at >= PLACES)
		at = 2 * PLACES - 1 - at;
	return (uint32_t)at;
}

/* --- people ------------------------------------------------------------------------------------------------------- */

/* No job is wider than half of the cluster. */
static void program_width(struct generator *g, struct program *p)
{
	uint32_t weights[WIDTHS], each = 1, chosen;

	for (uint32_t i = 0; i < WIDTHS; i++)
		weights[i] = i < 3 || widths[i].gpus * INT64_C(2) <= g->gpus ? widths[i].weight : 0;
	chosen = by_weight(g, weights, WIDTHS);
	while (each < NODE_TASK_MAX && each * 2 <= g->node_gpus)
		each *= 2;
	p->part = widths[chosen].part;
	p->gpus = widths[chosen].gpus < each ? widths[chosen].gpus : each;
	p->tasks = widths[chosen].gpus / p->gpus;
}

static void program_make(struct generator *g, struct program *p)
{
	program_width(g, p);
	p->place = below(g, PLACES);
	p->checkpoints = chance(g, p->gpus > 1 ? 75 : 35);
	p->restart_s = 15 + below(g, 12) * 15;
	p->spare = chance(g, 10);
	p->interactive = p->gpus == 1 && chance(g, 15);
}

static void users_make(struct generator *g)
{
	g->users = calloc(g->options->users, sizeof *g->users);
	g->user_weights = calloc(g->options->users, sizeof *g->user_weights);
	CHECK(g->users && g->user_weights);
	for (uint32_t i = 0; i < g->options->users; i++) {
		struct person *u = &g->users[i];

		g->user_weights[i] = (i ? g->user_weights[i - 1] : 0) + RANK_WEIGHT / (i + 1);
		u->queue = g->queue_count ? by_rank(g, g->queue_count) : 0;
		u->declares = chance(g, 50);
		u->program_count = 1 + below(g, PROGRAMS_MAX);
		for (uint32_t p = 0; p < u->program_count; p++)
			program_make(g, &u->programs[p]);
	}
}

/* --- jobs --------------------------------------------------------------------------------------------------------- */

static int64_t session_time(struct generator *g)
{
	uint32_t of_days[7] = { 0 };
	const uint32_t last = g->options->days % 7, weeks = g->options->days / 7;
	uint32_t day, week;

	for (uint32_t i = 0; i < 7; i++)
		of_days[i] = days[i] * (weeks + (i < last));
	day = by_weight(g, of_days, 7);
	week = below(g, weeks + (day < last));
	return ((int64_t)week * WEEK_H + (int64_t)day * 24 + by_weight(g, hours, 24)) * HOUR_S +
	       below(g, HOUR_S);
}

static void job_make(struct generator *g, int64_t submit_s, uint32_t user, uint32_t program)
{
	const struct program *p = &g->users[user].programs[program];

	if (g->count == g->room) {
		g->room = g->room ? g->room * 2 : 1024;
		g->jobs = reallocarray(g->jobs, g->room, sizeof *g->jobs);
		CHECK(g->jobs);
	}
	g->jobs[g->count++] = (struct made){
		.submit_s = submit_s,
		.run_s = run_of(p, place_near(g, p->place)),
		.user = user,
		.program = program,
	};
}

/* GPU-seconds in hundredths. */
static int64_t work_of(const struct generator *g, const struct made *job)
{
	const struct program *p = &g->users[job->user].programs[job->program];

	return (int64_t)job->run_s * p->gpus * p->tasks * (p->part ? p->part : 100);
}

/* One program's jobs of one moment, half of the time only one; what runs for long is not submitted by the dozen. What is left to
 * be made. */
static int64_t session_make(struct generator *g, int64_t left)
{
	const uint32_t user = user_draw(g);
	const uint32_t program = by_rank(g, g->users[user].program_count);
	int64_t at = session_time(g);
	uint32_t jobs = 1, together_s = 0;

	while (jobs < SESSION_MAX && chance(g, 50))
		jobs *= 2;
	for (; jobs && left > 0 && together_s < DAY_S; jobs--) {
		job_make(g, at, user, program);
		together_s += g->jobs[g->count - 1].run_s;
		left -= work_of(g, &g->jobs[g->count - 1]);
		at += below(g, 60);
	}
	return left;
}

static int by_time(const void *a, const void *b)
{
	const struct made *x = a, *y = b;

	if (x->submit_s != y->submit_s)
		return x->submit_s < y->submit_s ? -1 : 1;
	if (x->user != y->user)
		return x->user < y->user ? -1 : 1;
	if (x->program != y->program)
		return x->program < y->program ? -1 : 1;
	return x->run_s != y->run_s ? (x->run_s < y->run_s ? -1 : 1) : 0;
}

static int jobs_make(struct generator *g, struct err *err)
{
	int64_t left = g->gpus * g->options->days * DAY_S * g->options->load;

	while (left > 0) {
		left = session_make(g, left);
		if (g->count > WORKLOAD_JOBS_MAX)
			return err_set(
				err, ERR_TOO_LARGE,
				"%u days of %" PRId64
				" GPUs are more than the limit of %d jobs; make several of fewer days",
				g->options->days, g->gpus, WORKLOAD_JOBS_MAX);
	}
	qsort(g->jobs, g->count, sizeof *g->jobs, by_time);
	return 0;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void job_write(const struct generator *g, uint32_t number, FILE *out)
{
	const struct made *job = &g->jobs[number];
	const struct person *u = &g->users[job->user];
	const struct program *p = &u->programs[job->program];
	const int64_t longest =
		run_of(p, p->place + PLACES / 10 < PLACES ? p->place + PLACES / 10 : PLACES - 1);

	fprintf(out, "u%u-%c-%u,%" PRId64 ",%u,%u,", job->user + 1, 'a' + (int)job->program,
		number + 1, job->submit_s, job->run_s, p->tasks);
	if (p->part)
		fprintf(out, "0.%02u", p->part);
	else
		fprintf(out, "%u", p->gpus);
	fprintf(out, ",%s,u%u,%s,%s,", g->queue_count ? g->queues[u->queue] : "", job->user + 1,
		p->interactive            ? "interactive"
		: p->gpus * p->tasks >= 8 ? "training"
					  : "batch",
		p->spare && !p->interactive ? "best-effort" : "");
	if (u->declares)
		fprintf(out, "%" PRId64, (longest + LIMIT_STEP_S) / LIMIT_STEP_S * LIMIT_STEP_S);
	fprintf(out, ",%s,%u\n", p->checkpoints ? "yes" : "", p->checkpoints ? p->restart_s : 0);
}

static void queues_find(struct generator *g)
{
	const struct scenario *c = g->cluster;

	g->queues = calloc(c->queue_count + 1, sizeof *g->queues);
	CHECK(g->queues);
	for (uint32_t i = 0; i < c->queue_count; i++) {
		uint32_t child = 0;

		while (child < c->queue_count &&
		       strcmp(c->queues[child].parent, c->queues[i].name) != 0)
			child++;
		if (child == c->queue_count)
			g->queues[g->queue_count++] = c->queues[i].name;
	}
}

int generate(const struct scenario *cluster, const struct generate_options *options, FILE *out,
	     struct err *err)
{
	struct generator g = { .cluster = cluster,
			       .options = options,
			       .random = { options->seed } };
	int rc;

	for (uint32_t i = 0; i < cluster->node_count; i++) {
		g.gpus += cluster->nodes[i].gpus;
		if (cluster->nodes[i].gpus > g.node_gpus)
			g.node_gpus = cluster->nodes[i].gpus;
	}
	if (!g.gpus)
		return err_set(err, ERR_INVALID,
			       "the cluster has no GPUs: how much load is made follows from them");
	queues_find(&g);
	users_make(&g);
	rc = jobs_make(&g, err);
	if (rc == 0)
		fprintf(out,
			"#fairlead-workload 1\n"
			"job,submit_s,run_s,tasks,gpus,queue,user,kind,tier,limit_s,checkpoints,restart_s\n"
			"# %u days from a Monday on, %u %% of %" PRId64
			" GPUs, %u users, seed %" PRIu64 "\n",
			options->days, options->load, g.gpus, options->users, options->seed);
	for (uint32_t i = 0; rc == 0 && i < g.count; i++)
		job_write(&g, i, out);
	free(g.jobs);
	free(g.users);
	free(g.user_weights);
	free(g.queues);
	return rc;
}
