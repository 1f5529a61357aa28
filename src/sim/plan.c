/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By hand: one GPU, runs of jobs like these took 10, 20, 30, 40, 50 min. Job 1 runs since now, job 2 waits. Of the 19 cells the
 * middle one (500 of 1,000) gives 30 min for job 1: job 2 starts at even odds then; the 18th of the 19 starts is what 9 of 10 do not
 * exceed.
 */
#include "sim/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/model/roles.h"
#include "core/scheduling/reserve/estimate.h"
#include "sim/arrivals.h"
#include "sim/lifetimes.h"

#define HOUR_MS INT64_C(3600000)
enum { ROWS_FIRST = 256, STOP_EVERY = 32, EVEN = PLAN_RUNS / 2 + 1, SAFE = PLAN_RUNS * 95 / 100 };

struct planning {
	struct plan *plan;
	const struct facts *facts; /* what is known of run times does not grow while it is played */
	const struct plan_limits *limits;
	struct arrivals arrivals;
	struct lifetimes lifetimes;
	uint32_t run, starts, rows_room;
	uint32_t open; /* jobs to be planned that have not ended in this run */
};

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/*
 * Jobs that one user submitted in the same hour, with one name but for digits, and as wide: they are of one campaign, and what makes one of
 * them long makes the others long. Were each taken apart, twenty that run would in each run of the plan be as long in sum as they are
 * in the mean, and the plan too sure. Those of other hours are apart: taken as one, they make a plan that fears everything.
 */
static uint64_t campaign_of(const struct facts *facts, const struct job *job)
{
	const struct shape *shape = shape_get(facts, job->shape);
	uint64_t hash = mixed((uint64_t)shape_gpus(shape, shape->tasks_min) << 32 | job->user.v) ^
			mixed((uint64_t)(job->submitted_ms / HOUR_MS));
	char last = '\0';

	for (const char *c = facts_name(facts, job->name); *c; c++) {
		const char sign = *c >= '0' && *c <= '9' ? '#' : *c;

		if (sign != '#' || last != '#')
			hash = mixed(hash + (unsigned char)sign);
		last = sign;
	}
	return hash;
}

/* A prime number of runs makes run * a + b a permutation for each a from 1 on. The middle of the cell. */
static uint32_t cell_per_mille(uint64_t campaign, uint32_t run)
{
	uint64_t hash = mixed(campaign);
	uint32_t a = (uint32_t)(hash % (PLAN_RUNS - 1)) + 1, b = (uint32_t)(hash >> 32) % PLAN_RUNS;

	return ((run * a + b) % PLAN_RUNS * 2000 + 1000) / (2 * PLAN_RUNS);
}

static int64_t run_rest_ms(void *context, const struct facts *facts, uint32_t job, int64_t age_ms)
{
	const struct planning *planning = context;

	const struct job *of = job_get(facts, (struct job_id){ job });
	const uint32_t per_mille = cell_per_mille(campaign_of(facts, of), planning->run);
	const struct like_wish wish = like_wish_of(facts, of);
	struct like_runs remembered;
	int64_t rest_ms;

	likes_find(planning->facts, &wish, &remembered);
	if (lifetimes_rest_ms(&planning->lifetimes, &wish, remembered.level, of->run_ms + age_ms,
			      per_mille, &rest_ms))
		return estimate_in_limit_ms(of, of->run_ms + age_ms, rest_ms);
	return estimate_rest_ms(facts, planning->facts, of, age_ms, per_mille);
}

static struct plan_job *row_of(struct planning *planning, uint32_t job)
{
	struct plan *plan = planning->plan;
	struct plan_job *row;

	if (plan->rows[job])
		return &plan->jobs[plan->rows[job] - 1];
	if (plan->count == planning->rows_room) {
		planning->rows_room = planning->rows_room ? planning->rows_room * 2 : ROWS_FIRST;
		plan->jobs = reallocarray(plan->jobs, planning->rows_room, sizeof(*plan->jobs));
		CHECK(plan->jobs);
	}
	row = &plan->jobs[plan->count++];
	plan->rows[job] = plan->count;
	memset(row, 0, sizeof(*row));
	row->job = job;
	for (uint32_t run = 0; run < PLAN_RUNS; run++)
		row->start_ms[run] = row->end_ms[run] = PLAY_NEVER;
	return row;
}

/* What waits now, or the target alone. */
static bool is_planned(const struct planning *planning, uint32_t job)
{
	const struct job *before;

	if (job >= planning->plan->row_count)
		return false;
	if (planning->limits->target)
		return job == planning->limits->target;
	before = job_get(planning->facts, (struct job_id){ job });
	return !before->attempt.v && !job_state_is_final(before->state);
}

/* Only what is planned, and its next start: one that is evicted meanwhile started all the same. */
static void note_placed(void *context, const struct facts *facts, uint32_t job, int64_t at_ms)
{
	struct planning *planning = context;
	const struct attempt *attempt;
	struct plan_job *row;

	planning->starts++;
	if (!is_planned(planning, job))
		return;
	row = row_of(planning, job);
	if (row->start_ms[planning->run] != PLAY_NEVER)
		return;
	attempt = attempt_get(facts, job_get(facts, (struct job_id){ job })->attempt);
	row->start_ms[planning->run] = at_ms;
	row->node[planning->run] = task_get(facts, attempt, 0)->node.v;
}

static void note_ended(void *context, const struct facts *facts, uint32_t job, int64_t at_ms)
{
	struct planning *planning = context;
	struct plan_job *row;

	(void)facts;
	if (!is_planned(planning, job))
		return;
	planning->open--;
	if (!planning->plan->rows[job])
		return;
	row = row_of(planning, job);
	row->end_ms[planning->run] = at_ms;
}

/* Until all that is planned has ended or nothing more happens; false: a limit cuts it. */
static bool run_through(struct planning *planning, struct play *play)
{
	const struct plan_limits *limits = planning->limits;
	uint32_t starts_max = limits->starts_max ? limits->starts_max : PLAN_STARTS;

	for (uint32_t step = 0;; step++) {
		int64_t next_ms, come_ms;

		if (!play_settle(play))
			return false;
		next_ms = play_next_ms(play);
		come_ms = arrivals_next_ms(&planning->arrivals);
		if (!planning->open || (next_ms == PLAY_NEVER && come_ms == PLAY_NEVER))
			return true;
		next_ms = come_ms < next_ms ? come_ms : next_ms;
		if (planning->starts >= starts_max ||
		    next_ms - planning->plan->now_ms > PLAN_HORIZON_MS)
			return false;
		if (step % STOP_EVERY == 0 && limits->stop && limits->stop(limits->context))
			return false;
		play_go(play, next_ms);
		while (arrivals_next_ms(&planning->arrivals) <= next_ms)
			arrivals_take(&planning->arrivals, play);
	}
}

static uint32_t planned_count(const struct planning *planning)
{
	uint32_t count = 0;

	for (uint32_t job = 1; job < planning->plan->row_count; job++)
		count += is_planned(planning, job);
	return count;
}

static void run_play(struct planning *planning)
{
	struct plan *plan = planning->plan;
	struct play play = { .turns_max = planning->limits->turns_max ? planning->limits->turns_max
								      : PLAN_TURNS,
			     .context = planning,
			     .rest_ms = run_rest_ms,
			     .placed = note_placed,
			     .ended = note_ended };

	planning->starts = 0;
	planning->open = planned_count(planning);
	arrivals_begin(&planning->arrivals, planning->run);
	play_init(&play, planning->facts, plan->now_ms);
	if (!run_through(planning, &play) && play.now_ms < plan->until_ms)
		plan->until_ms = play.now_ms;
	play_deinit(&play);
}

static int compare_times(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void plan_make(const struct facts *facts, int64_t now_ms, const struct plan_limits *limits,
	       struct plan *ret)
{
	struct planning planning = { .plan = ret, .facts = facts, .limits = limits };

	*ret = (struct plan){ .seq = facts->seq,
			      .now_ms = now_ms > facts->now_ms ? now_ms : facts->now_ms,
			      .until_ms = PLAY_NEVER,
			      .row_count = facts->jobs.count + 1 };
	ret->rows = calloc(ret->row_count, sizeof(*ret->rows));
	CHECK(ret->rows);
	arrivals_init(&planning.arrivals, facts, ret->now_ms);
	lifetimes_make(facts, ret->now_ms, &planning.lifetimes);
	for (; planning.run < PLAN_RUNS; planning.run++, ret->runs++) {
		if (planning.run && limits->stop && limits->stop(limits->context))
			break;
		run_play(&planning);
	}
	arrivals_deinit(&planning.arrivals);
	lifetimes_deinit(&planning.lifetimes);
	for (uint32_t i = 0; i < ret->count; i++) {
		qsort(ret->jobs[i].start_ms, ret->runs, sizeof(int64_t), compare_times);
		qsort(ret->jobs[i].end_ms, ret->runs, sizeof(int64_t), compare_times);
	}
}

void plan_deinit(struct plan *plan)
{
	free(plan->jobs);
	free(plan->rows);
	*plan = (struct plan){ 0 };
}

/* The time that `rank` of PLAN_RUNS do not exceed, of the runs there are. */
static int64_t time_at(const struct plan *plan, const int64_t *times, uint32_t rank)
{
	uint32_t at = (plan->runs * rank + PLAN_RUNS - 1) / PLAN_RUNS;

	return times[at ? at - 1 : 0];
}

static void node_most(const struct plan *plan, const struct plan_job *row, struct plan_answer *ret)
{
	for (uint32_t run = 0; run < plan->runs; run++) {
		uint32_t cases = 0;

		for (uint32_t other = 0; other < plan->runs; other++)
			cases += row->node[other] == row->node[run];
		if (!row->node[run] || cases < ret->node_cases ||
		    (cases == ret->node_cases && ret->node && ret->node <= row->node[run]))
			continue;
		ret->node = row->node[run];
		ret->node_cases = cases;
	}
}

bool plan_ask(const struct plan *plan, uint32_t job, struct plan_answer *ret)
{
	const struct plan_job *row;

	*ret = (struct plan_answer){ PLAY_NEVER, PLAY_NEVER, PLAY_NEVER, PLAY_NEVER, 0, 0 };
	if (job >= plan->row_count || !plan->rows[job])
		return false;
	row = &plan->jobs[plan->rows[job] - 1];
	ret->start_ms = time_at(plan, row->start_ms, EVEN);
	ret->start_by_ms = time_at(plan, row->start_ms, SAFE);
	ret->end_ms = time_at(plan, row->end_ms, EVEN);
	ret->end_by_ms = time_at(plan, row->end_ms, SAFE);
	node_most(plan, row, ret);
	return true;
}
