/* SPDX-License-Identifier: Apache-2.0 */
#include "api/planner.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/check.h"
#include "base/clock.h"

enum { FRESH_MS = 500, PLAN_FRESH_MS = 5000, PLAN_FRESH_COSTS = 10, PLAN_COST_MS = 2000 };

struct planner {
	const struct api_backend *backend;
	pthread_mutex_t lock;
	struct facts facts; /* a frozen copy of our own */
	struct view *view; /* NULL = none */
	int64_t made_ms;
	pthread_mutex_t plan_lock;
	struct plan plan; /* rows NULL = none */
	int64_t plan_made_ms, plan_cost_ms;
};

struct planner *planner_create(const struct api_backend *backend)
{
	struct planner *planner = calloc(1, sizeof *planner);

	CHECK(planner);
	planner->backend = backend;
	pthread_mutex_init(&planner->lock, NULL);
	pthread_mutex_init(&planner->plan_lock, NULL);
	return planner;
}

static void forget(struct planner *planner)
{
	if (!planner->view)
		return;
	view_destroy(planner->view);
	facts_deinit(&planner->facts);
	planner->view = NULL;
}

void planner_destroy(struct planner *planner)
{
	if (!planner)
		return;
	forget(planner);
	plan_deinit(&planner->plan);
	pthread_mutex_destroy(&planner->plan_lock);
	pthread_mutex_destroy(&planner->lock);
	free(planner);
}

/* What is kept may be half a second old, but not for a job that has changed since. */
static bool is_fresh(const struct planner *planner, const struct facts *now, uint32_t job)
{
	if (!planner->view)
		return false;
	if (planner->facts.seq == now->seq)
		return true;
	if (!job || planner->facts.seq > now->seq ||
	    clock_boot_ms() - planner->made_ms > FRESH_MS || job > planner->facts.jobs.count)
		return false;
	return !memcmp(job_get(&planner->facts, (struct job_id){ job }),
		       job_get(now, (struct job_id){ job }), sizeof(struct job));
}

struct view *planner_enter(struct planner *planner, struct frozen *frozen, uint32_t job,
			   const struct facts **ret_facts)
{
	pthread_mutex_lock(&planner->lock);
	if (!is_fresh(planner, &frozen->facts, job)) {
		forget(planner);
		facts_freeze(&frozen->facts, &planner->facts);
		planner->view = view_create(&planner->facts);
		planner->made_ms = clock_boot_ms();
	}
	*ret_facts = &planner->facts;
	return planner->view;
}

void planner_leave(struct planner *planner)
{
	pthread_mutex_unlock(&planner->lock);
}

/* --- when --------------------------------------------------------------------------------------------------------------- */

static bool time_is_over(void *context)
{
	const int64_t *end_ms = context;

	return clock_boot_ms() >= *end_ms;
}

static void plan_now(const struct facts *facts, uint32_t target, struct plan *ret)
{
	int64_t end_ms = clock_boot_ms() + PLAN_COST_MS;
	const struct plan_limits limits = { .target = target,
					    .context = &end_ms,
					    .stop = time_is_over };

	plan_make(facts, clock_wall_ms(), &limits, ret);
}

static bool plan_is_fresh(const struct planner *planner, const struct facts *now, uint32_t job)
{
	int64_t age_ms = clock_boot_ms() - planner->plan_made_ms;

	if (!planner->plan.rows || job >= planner->plan.row_count)
		return false;
	return age_ms <= PLAN_FRESH_MS || age_ms <= PLAN_FRESH_COSTS * planner->plan_cost_ms ||
	       planner->plan.seq > now->seq;
}

bool planner_ask(struct planner *planner, struct frozen *frozen, uint32_t job, struct estimate *ret)
{
	bool known;

	pthread_mutex_lock(&planner->plan_lock);
	if (!plan_is_fresh(planner, &frozen->facts, job)) {
		int64_t began_ms = clock_boot_ms();

		plan_deinit(&planner->plan);
		plan_now(&frozen->facts, 0, &planner->plan);
		planner->plan_made_ms = clock_boot_ms();
		planner->plan_cost_ms = planner->plan_made_ms - began_ms;
	}
	known = plan_ask(&planner->plan, job, &ret->answer);
	ret->at_ms = planner->plan.now_ms;
	pthread_mutex_unlock(&planner->plan_lock);
	return known;
}

bool planner_ask_new(const struct facts *facts, const struct event *job_submitted,
		     struct estimate *ret)
{
	struct facts copy;
	struct plan plan;
	bool known;

	facts_freeze(facts, &copy);
	apply(&copy, job_submitted);
	plan_now(&copy, (uint32_t)job_submitted->job_submitted.job, &plan);
	known = plan_ask(&plan, (uint32_t)job_submitted->job_submitted.job, &ret->answer);
	ret->at_ms = plan.now_ms;
	plan_deinit(&plan);
	facts_deinit(&copy);
	return known;
}
