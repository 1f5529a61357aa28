/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/life/interval.h"

#include <string.h>

#include "core/scheduling/life/spot.h"

enum { MINUTE_MS = 60000 };
#define DAY_MS (INT64_C(86400) * 1000)
#define PRIOR_MS (200 * DAY_MS)
#define MEAN_MOST_MS (INT64_C(40000) * DAY_MS) /* products stay below 2^63 */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The largest number whose square is not more. */
static int64_t root_of(int64_t square)
{
	int64_t root = 0;

	for (int64_t bit = INT64_C(1) << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= square)
			root += bit;
	return root;
}

static bool machine_broke(const struct attempt *a)
{
	return a->why == STOP_LOST || (a->why == STOP_NODE && a->unreachable);
}

/* Time from the warning to the complete checkpoint; 0 = it was not warned, or made none then. */
static int64_t checkpoint_took_ms(const struct attempt *a)
{
	return a->warned_ms && a->checkpoint_ms > a->warned_ms ? a->checkpoint_ms - a->warned_ms
							       : 0;
}

/* How long the newest attempts ran. */
struct exposed {
	int64_t ranks_ms; /* of all ranks */
	int64_t spare_ms; /* of best-effort attempts, as a whole */
};

/* What the newest attempts tell: run time and breaks of all ranks, stops of best-effort work, cost of checkpoints of the job's likes. */
static void history_read(const struct facts *f, const struct event_job_submitted *e,
			 struct exposed *exposed, struct interval *ret)
{
	struct name_id name = facts_name_find(f, e->name), user = facts_name_find(f, e->user);
	uint32_t first =
		f->attempts.count > INTERVAL_HISTORY ? f->attempts.count - INTERVAL_HISTORY : 0;
	int64_t took_ms = 0;

	for (uint32_t id = f->attempts.count; id > first; id--) {
		const struct attempt *a = attempt_get(f, (struct attempt_id){ id });
		const struct job *job;
		int64_t end_ms = a->ended_ms ? a->ended_ms : f->now_ms;

		if (!a->job.v || !a->released_ms)
			continue;
		exposed->ranks_ms += (end_ms - a->released_ms) * a->tasks;
		ret->failures += machine_broke(a);
		job = job_get(f, a->job);
		if (job->tier == TIER_BEST_EFFORT) {
			exposed->spare_ms += end_ms - a->released_ms;
			ret->stops += a->why == STOP_EVICTED;
		}
		if (ret->measured < INTERVAL_LIKE && checkpoint_took_ms(a) && name.v && user.v &&
		    job->name.v == name.v && job->user.v == user.v) {
			took_ms += checkpoint_took_ms(a);
			ret->measured++;
		}
	}
	if (ret->measured)
		ret->cost_ms = took_ms / ret->measured;
}

/* As admission will have it (capacity_check). */
static bool may_use_spot(const struct event_job_submitted *e)
{
	return e->capacity == CAPACITY_SPOT || e->capacity == CAPACITY_ANY ||
	       (!e->capacity && e->checkpoint && e->kind == KIND_TRAINING &&
		e->tier != TIER_CRITICAL);
}

/* Of spot nodes that are known: GPUs of the widest; 0 = there are none. */
static int64_t spot_width(const struct facts *f)
{
	int64_t widest = 0;

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		if (node->state != NODE_GONE && node->capacity == CAPACITY_SPOT &&
		    node->gpu_count > widest)
			widest = node->gpu_count;
	}
	return widest;
}

/* How long spot nodes stay, in the pool where that is shortest; what they stay now counts. */
static int64_t spot_stays_ms(const struct facts *f)
{
	int64_t least_ms = INT64_MAX;

	for (uint32_t row = 1; row <= f->pools.count; row++) {
		const struct pool *pool = table_get(&f->pools, row);
		const struct spot_pool known = {
			.there_ms = pool->there_ms +
				    (pool->nodes_there ? f->now_ms - pool->turned_ms : 0),
			.there = pool->there,
		};
		int64_t mean_ms = spot_pool_mean(&known, true);

		least_ms = mean_ms < least_ms ? mean_ms : least_ms;
	}
	return least_ms;
}

/* Other breaks come beside: 1 / (1 / a + 1 / b). The product of seconds stays below 2^63. */
static void breaks_add(struct interval *ret, int64_t mean_ms)
{
	mean_ms = mean_ms > 1000 ? least(mean_ms, 1000 * DAY_MS) : 1000;
	ret->mean_ms = (ret->mean_ms / 1000) * (mean_ms / 1000) /
		       (ret->mean_ms / 1000 + mean_ms / 1000) * 1000;
}

/* Spot nodes that are taken away at shorter notice than a checkpoint takes are breaks, too. */
static void reclaims_count(const struct facts *f, const struct event_job_submitted *e,
			   int64_t ranks, struct interval *ret)
{
	int64_t grace_ms = e->grace_ms < 0 ? f->policy.grace_ms : e->grace_ms;
	int64_t time_ms = least(grace_ms, f->policy.spot_notice_ms), width, on_each;

	if (!may_use_spot(e) || time_ms >= ret->cost_ms)
		return;
	width = spot_width(f);
	if (!width || !f->pools.count)
		return;
	ret->tight = true;
	ret->notice_ms = time_ms;
	on_each = e->gpus > 0 && e->gpus < width ? width / e->gpus : 1;
	breaks_add(ret, spot_stays_ms(f) / ((ranks + on_each - 1) / on_each));
}

void interval_choose(const struct facts *f, const struct event_job_submitted *e,
		     struct interval *ret)
{
	int64_t ranks = e->tasks_min > 0 ? e->tasks_min : 1;
	struct exposed exposed = { 0, 0 };

	*ret = (struct interval){ .cost_ms = MINUTE_MS };
	history_read(f, e, &exposed, ret);
	if (e->checkpoint_cost_ms > 0) {
		ret->cost_ms = e->checkpoint_cost_ms;
		ret->measured = 0;
	}
	ret->cost_ms = ret->cost_ms < DAY_MS ? ret->cost_ms : DAY_MS;
	ret->mean_ms = (PRIOR_MS + exposed.ranks_ms) / (1 + (int64_t)ret->failures) / ranks;
	ret->mean_ms = ret->mean_ms < MEAN_MOST_MS ? ret->mean_ms : MEAN_MOST_MS;
	reclaims_count(f, e, ranks, ret);
	ret->goes_first = e->tier == TIER_BEST_EFFORT;
	if (ret->goes_first)
		breaks_add(ret, (DAY_MS + exposed.spare_ms) / (1 + (int64_t)ret->stops));
	ret->every_ms = root_of(2 * ret->cost_ms * ret->mean_ms) / 1000 * 1000;
	if (ret->every_ms < MINUTE_MS)
		ret->every_ms = MINUTE_MS;
	if (ret->every_ms > DAY_MS)
		ret->every_ms = DAY_MS;
}
