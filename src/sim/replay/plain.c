/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/replay/plain_cluster.h"

enum { SKIP_MOST = 50, SKIP_ALL = INT32_MAX };

enum plain_order { BY_SUBMISSION, BY_RUN, BY_SIZE, BY_REST, BY_REST_SIZE, BY_SERVICE };

struct plain_policy {
	const char *name;
	enum plain_order order;
	enum plain_choice choice;
	int32_t skip; /* looks past so many that do not fit */
	bool anew; /* all is placed anew each time */
};

static const struct plain_policy policies[] = {
	{ "fifo-strict", BY_SUBMISSION, CHOOSE_FIRST, 0, false },
	{ "fifo-skip", BY_SUBMISSION, CHOOSE_FIRST, SKIP_MOST, false },
	{ "fifo-fastest", BY_SUBMISSION, CHOOSE_FASTEST, 0, true },
	{ "sjf-strict", BY_RUN, CHOOSE_FIRST, 0, false },
	{ "sjf-skip", BY_RUN, CHOOSE_FIRST, SKIP_MOST, false },
	{ "ssf-skip", BY_SIZE, CHOOSE_FIRST, SKIP_MOST, false },
	{ "srtf", BY_REST, CHOOSE_FIRST, SKIP_ALL, true },
	{ "srsf", BY_REST_SIZE, CHOOSE_FIRST, SKIP_ALL, true },
	{ "las", BY_SERVICE, CHOOSE_FIRST, SKIP_ALL, true },
	{ "best-fit", BY_SUBMISSION, CHOOSE_BEST_FIT, SKIP_ALL, false },
	{ "random", BY_SUBMISSION, CHOOSE_RANDOM, SKIP_ALL, false },
	{ "fgd", BY_SUBMISSION, CHOOSE_FGD, SKIP_ALL, false },
};

const struct plain_policy *plain_find(const char *name)
{
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
		if (strcmp(policies[i].name, name) == 0)
			return &policies[i];
	return NULL;
}

const char *plain_names(void)
{
	static char names[256];
	size_t size = 0;

	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
		size += (size_t)snprintf(names + size, sizeof names - size, "%s%s", i ? ", " : "",
					 policies[i].name);
	CHECK(size < sizeof names);
	return names;
}

struct plain_state {
	int64_t rest_ms,
		attained_ms; /* attained: GPU time; anew: brought up to date at each event */
	int64_t end_ms, since_ms;
	uint32_t speed; /* where it runs, in thousandths */
	struct plain_place *places; /* NULL = it waits */
};

struct plain_run {
	const struct plain_policy *policy;
	const struct workload *workload;
	struct plain_cluster cluster;
	struct outcome *outcome;
	struct plain_state *jobs;
	uint32_t *waiting; /* by turn */
	uint32_t waiting_count;
	uint32_t *running; /* heap: earliest end first; anew: in no order */
	uint32_t running_count, arrived;
	int64_t now_ms, wanted;
	bool freed; /* something came free since all that wait were looked at */
};

/* --- whose turn ----------------------------------------------------------------------------------------------- */

static int64_t key(const struct plain_run *r, uint32_t job)
{
	const struct workload_job *from = &r->workload->jobs[job];

	switch (r->policy->order) {
	case BY_SUBMISSION: return job;
	case BY_RUN: return from->run_ms;
	case BY_SIZE: return from->run_ms / 1000 * workload_share(from);
	case BY_REST: return r->jobs[job].rest_ms;
	case BY_REST_SIZE: return r->jobs[job].rest_ms / 1000 * workload_share(from);
	case BY_SERVICE: return r->jobs[job].attained_ms;
	}
	UNREACHABLE();
}

static bool turn_before(const struct plain_run *r, uint32_t a, uint32_t b)
{
	const int64_t x = key(r, a), y = key(r, b);

	return x != y ? x < y : a < b;
}

/* Where a job stands, or would stand, among those that wait. */
static uint32_t turn_of(const struct plain_run *r, uint32_t job)
{
	uint32_t low = 0, high = r->waiting_count;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (turn_before(r, r->waiting[middle], job))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t waiting_add(struct plain_run *r, uint32_t job)
{
	const uint32_t at = turn_of(r, job);

	memmove(r->waiting + at + 1, r->waiting + at, (r->waiting_count - at) * sizeof *r->waiting);
	r->waiting[at] = job;
	r->waiting_count++;
	return at;
}

/* --- what runs -------------------------------------------------------------------------------------------------- */

static bool ends_before(const struct plain_run *r, uint32_t a, uint32_t b)
{
	const int64_t x = r->jobs[a].end_ms, y = r->jobs[b].end_ms;

	return x != y ? x < y : a < b;
}

static void running_add(struct plain_run *r, uint32_t job)
{
	uint32_t at = r->running_count++;

	for (; at && ends_before(r, job, r->running[(at - 1) / 2]); at = (at - 1) / 2)
		r->running[at] = r->running[(at - 1) / 2];
	r->running[at] = job;
}

static uint32_t running_first(struct plain_run *r)
{
	const uint32_t first = r->running[0], last = r->running[--r->running_count];
	uint32_t at = 0, child;

	for (; (child = 2 * at + 1) < r->running_count; at = child) {
		if (child + 1 < r->running_count &&
		    ends_before(r, r->running[child + 1], r->running[child]))
			child++;
		if (!ends_before(r, r->running[child], last))
			break;
		r->running[at] = r->running[child];
	}
	r->running[at] = last;
	return first;
}

static bool start(struct plain_run *r, uint32_t job)
{
	const struct workload_job *from = &r->workload->jobs[job];
	struct plain_state *state = &r->jobs[job];
	struct plain_place *places = malloc(workload_tasks(from) * sizeof *places);

	CHECK(places);
	if (!plain_take(&r->cluster, from, places)) {
		free(places);
		return false;
	}
	state->places = places;
	state->since_ms = r->now_ms;
	state->speed = plain_speed(&r->cluster, from, places);
	state->end_ms = r->now_ms + workload_ms_at(state->rest_ms, state->speed);
	if (r->outcome->jobs[job].start_ms < 0)
		r->outcome->jobs[job].start_ms = r->now_ms;
	running_add(r, job);
	return true;
}

static void leave(struct plain_run *r, uint32_t job)
{
	plain_give(&r->cluster, &r->workload->jobs[job], r->jobs[job].places);
	free(r->jobs[job].places);
	r->jobs[job].places = NULL;
	r->freed = true;
}

static int64_t gpu_ms(const struct workload_job *from, int64_t ms)
{
	return ms / 1000 * workload_share(from) / GPU_SHARE * 1000;
}

static void end(struct plain_run *r, uint32_t job)
{
	const struct workload_job *from = &r->workload->jobs[job];
	struct outcome_job *out = &r->outcome->jobs[job];

	leave(r, job);
	out->end_ms = r->now_ms;
	out->used_ms += gpu_ms(from, r->now_ms - r->jobs[job].since_ms);
	r->wanted -= workload_share(from);
}

/* --- turns --------------------------------------------------------------------------------------------------------- */

/* From `at` on, after `misfits` that are known not to fit. */
static void place_from(struct plain_run *r, uint32_t at, int32_t misfits)
{
	uint32_t kept = at;

	for (; at < r->waiting_count && misfits <= r->policy->skip; at++) {
		if (start(r, r->waiting[at]))
			continue;
		r->waiting[kept++] = r->waiting[at];
		misfits++;
	}
	memmove(r->waiting + kept, r->waiting + at, (r->waiting_count - at) * sizeof *r->waiting);
	r->waiting_count -= at - kept;
}

/* As long as nothing came free, those that did not fit still do not. */
static void arrive(struct plain_run *r, uint32_t job)
{
	const uint32_t at = waiting_add(r, job);

	r->wanted += workload_share(&r->workload->jobs[job]);
	if (r->policy->anew || r->freed || at > (uint32_t)r->policy->skip)
		return;
	if (start(r, job)) {
		r->waiting_count--;
		memmove(r->waiting + at, r->waiting + at + 1,
			(r->waiting_count - at) * sizeof *r->waiting);
	}
}

/* What ran since the last event has progressed, less what beginning again costs it. */
static void interrupt_all(struct plain_run *r)
{
	for (uint32_t i = 0; i < r->running_count; i++) {
		const uint32_t job = r->running[i];
		const struct workload_job *from = &r->workload->jobs[job];
		struct plain_state *state = &r->jobs[job];
		const int64_t ran_ms = r->now_ms - state->since_ms;
		const int64_t kept_ms = ran_ms > from->restart_ms ? ran_ms - from->restart_ms : 0;

		state->rest_ms -= kept_ms * state->speed / 1000;
		state->attained_ms += gpu_ms(from, ran_ms);
		r->outcome->jobs[job].used_ms += gpu_ms(from, ran_ms);
		r->outcome->jobs[job].lost_ms += gpu_ms(from, ran_ms - kept_ms);
		leave(r, job);
	}
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void place_anew(struct plain_run *r)
{
	uint32_t *ran = malloc((r->running_count + 1) * sizeof *ran), count = r->running_count;

	CHECK(ran);
	memcpy(ran, r->running, count * sizeof *ran);
	interrupt_all(r);
	r->running_count = 0;
	for (uint32_t i = 0; i < count; i++)
		waiting_add(r, ran[i]);
	place_from(r, 0, 0);
	qsort(ran, count, sizeof *ran, by_number);
	for (uint32_t i = 0; i < count; i++)
		r->outcome->jobs[ran[i]].evictions += !r->jobs[ran[i]].places;
	free(ran);
}

static void note(struct plain_run *r)
{
	outcome_note(r->outcome, &(struct moment){ .at_ms = r->now_ms,
						   .used = r->cluster.used,
						   .wanted = r->wanted,
						   .running = r->running_count,
						   .waiting = r->waiting_count });
}

static void step(struct plain_run *r)
{
	const struct workload *w = r->workload;
	const int64_t end_ms = r->running_count ? r->jobs[r->running[0]].end_ms : INT64_MAX;
	const int64_t come_ms = r->arrived < w->count ? w->jobs[r->arrived].submit_ms : INT64_MAX;

	r->now_ms = end_ms < come_ms ? end_ms : come_ms;
	while (r->running_count && r->jobs[r->running[0]].end_ms <= r->now_ms)
		end(r, running_first(r));
	while (r->arrived < w->count && w->jobs[r->arrived].submit_ms <= r->now_ms)
		arrive(r, r->arrived++);
	if (r->policy->anew) {
		place_anew(r);
	} else if (r->freed) {
		r->freed = false;
		place_from(r, 0, 0);
	}
	r->outcome->turns++;
	note(r);
}

void plain_run(const struct plain_policy *policy, const struct scenario *cluster,
	       const struct workload *w, uint64_t seed, struct outcome *ret)
{
	struct plain_run r = { .policy = policy, .workload = w, .outcome = ret };

	outcome_init(ret, policy->name, w);
	plain_cluster_init(&r.cluster, cluster, policy->choice, w, seed);
	ret->capacity = r.cluster.capacity;
	r.jobs = calloc(w->count, sizeof *r.jobs);
	r.waiting = calloc((size_t)w->count + 1, sizeof *r.waiting);
	r.running = calloc((size_t)w->count + 1, sizeof *r.running);
	CHECK(r.jobs && r.waiting && r.running);
	for (uint32_t i = 0; i < w->count; i++)
		r.jobs[i].rest_ms = w->jobs[i].run_ms;
	while (r.arrived < w->count || r.running_count)
		step(&r);
	for (uint32_t i = 0; i < w->count; i++)
		free(r.jobs[i].places);
	free(r.jobs);
	free(r.waiting);
	free(r.running);
	plain_cluster_deinit(&r.cluster);
}
