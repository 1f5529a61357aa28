/* SPDX-License-Identifier: Apache-2.0 */
#include "api/planner.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/check.h"
#include "base/clock.h"

enum { FRESH_COSTS = 10, FRESH_MOST_MS = 5000 };

struct planner {
	const struct api_backend *backend;
	pthread_mutex_t lock;
	struct facts facts; /* a frozen copy of our own */
	struct view *view; /* NULL = none */
	int64_t made_ms, cost_ms;
};

struct planner *planner_create(const struct api_backend *backend)
{
	struct planner *planner = calloc(1, sizeof *planner);

	CHECK(planner);
	planner->backend = backend;
	pthread_mutex_init(&planner->lock, NULL);
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
	pthread_mutex_destroy(&planner->lock);
	free(planner);
}

/* What is kept may be as old as ten times what it cost, so that a worker spends a tenth of its time on it; but not for a job that has
 * changed since. Where it costs nothing, who asks sees what was acknowledged just before. */
static int64_t fresh_ms(const struct planner *planner)
{
	int64_t ms = FRESH_COSTS * planner->cost_ms;

	return ms < FRESH_MOST_MS ? ms : FRESH_MOST_MS;
}

static bool is_fresh(const struct planner *planner, const struct facts *now, uint32_t job)
{
	if (!planner->view)
		return false;
	if (planner->facts.seq == now->seq)
		return true;
	if (!job || planner->facts.seq > now->seq ||
	    clock_boot_ms() - planner->made_ms > fresh_ms(planner) ||
	    job > planner->facts.jobs.count)
		return false;
	return !memcmp(job_get(&planner->facts, (struct job_id){ job }),
		       job_get(now, (struct job_id){ job }), sizeof(struct job));
}

int64_t request_ms(const struct facts *facts)
{
	const int64_t now_ms = clock_wall_ms();

	return now_ms > facts->now_ms ? now_ms : facts->now_ms;
}

struct view *planner_enter(struct planner *planner, struct frozen *frozen, uint32_t job,
			   const struct facts **ret_facts)
{
	pthread_mutex_lock(&planner->lock);
	if (!is_fresh(planner, &frozen->facts, job)) {
		int64_t began_ms = clock_boot_ms();

		forget(planner);
		facts_freeze(&frozen->facts, &planner->facts);
		planner->view = view_create(&planner->facts);
		planner->made_ms = clock_boot_ms();
		planner->cost_ms = planner->made_ms - began_ms;
	}
	planner->facts.now_ms = request_ms(&planner->facts);
	*ret_facts = &planner->facts;
	return planner->view;
}

void planner_leave(struct planner *planner)
{
	pthread_mutex_unlock(&planner->lock);
}
