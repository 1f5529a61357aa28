/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/replay/network.h"
#include "sim/replay/plain_cluster.h"
#include "sim/replay/plain_spot.h"

enum { SKIP_MOST = 50, SKIP_ALL = INT32_MAX };

enum plain_order { BY_SUBMISSION, BY_RUN, BY_SIZE, BY_REST, BY_REST_SIZE, BY_SERVICE };

struct plain_policy {
	const char *name;
	enum plain_order order;
	enum plain_choice choice;
	int32_t skip; /* looks past so many that do not fit */
	bool anew; /* all is placed anew each time */
	enum plain_spot_rule spot;
};

static const struct plain_policy policies[] = {
	{ "fifo-strict", BY_SUBMISSION, CHOOSE_FIRST, 0, false, SPOT_RULE_NONE },
	{ "fifo-skip", BY_SUBMISSION, CHOOSE_FIRST, SKIP_MOST, false, SPOT_RULE_NONE },
	{ "fifo-fastest", BY_SUBMISSION, CHOOSE_FASTEST, 0, true, SPOT_RULE_NONE },
	{ "sjf-strict", BY_RUN, CHOOSE_FIRST, 0, false, SPOT_RULE_NONE },
	{ "sjf-skip", BY_RUN, CHOOSE_FIRST, SKIP_MOST, false, SPOT_RULE_NONE },
	{ "ssf-skip", BY_SIZE, CHOOSE_FIRST, SKIP_MOST, false, SPOT_RULE_NONE },
	{ "srtf", BY_REST, CHOOSE_FIRST, SKIP_ALL, true, SPOT_RULE_NONE },
	{ "srsf", BY_REST_SIZE, CHOOSE_FIRST, SKIP_ALL, true, SPOT_RULE_NONE },
	{ "las", BY_SERVICE, CHOOSE_FIRST, SKIP_ALL, true, SPOT_RULE_NONE },
	{ "best-fit", BY_SUBMISSION, CHOOSE_BEST_FIT, SKIP_ALL, false, SPOT_RULE_NONE },
	{ "random", BY_SUBMISSION, CHOOSE_RANDOM, SKIP_ALL, false, SPOT_RULE_NONE },
	{ "fgd", BY_SUBMISSION, CHOOSE_FGD, SKIP_ALL, false, SPOT_RULE_NONE },
	{ "spot-greedy", BY_SUBMISSION, CHOOSE_FIRST, SKIP_ALL, false, SPOT_RULE_GREEDY },
	{ "uniform-progress", BY_SUBMISSION, CHOOSE_FIRST, SKIP_ALL, false, SPOT_RULE_UNIFORM },
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
	int64_t pending_ms; /* of the restart that it began with */
	double price; /* of what it holds, in millionths for an hour */
	uint32_t speed; /* of its GPUs, in thousandths */
	uint32_t slowdown; /* by the network, in thousandths; 1000 = none */
	enum plain_at at; /* of those whose nodes the policy chooses */
	bool began; /* a start from now on is one from a checkpoint */
	struct plain_place *places; /* NULL = it waits */
};

struct plain_run {
	const struct plain_policy *policy;
	const struct workload *workload;
	struct plain_cluster cluster;
	struct network *network; /* NULL = nobody describes the fabric */
	struct outcome *outcome;
	struct plain_state *jobs;
	uint32_t *waiting; /* by turn */
	uint32_t waiting_count;
	uint32_t *running; /* heap: earliest end first; anew: in no order */
	uint32_t running_count, arrived;
	int64_t now_ms, wanted;
	bool freed; /* something came free since all that wait were looked at */
	const struct availability *availability; /* NULL = all nodes stay */
	uint32_t changed; /* of its changes */
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

/* The policy chooses its nodes: it has a deadline, and may use all of them. */
static bool is_chosen_for(const struct plain_run *r, const struct workload_job *from)
{
	return r->policy->spot && from->deadline_ms && from->checkpoints &&
	       from->capacity != CAPACITY_SPOT && plain_may_spot(from);
}

static int64_t ran_ms(const struct plain_run *r, const struct plain_state *state)
{
	return state->places ? r->now_ms - state->since_ms : 0;
}

static struct plain_spot_task spot_task(const struct plain_run *r, uint32_t job)
{
	const struct workload_job *from = &r->workload->jobs[job];
	const struct plain_state *state = &r->jobs[job];
	const int64_t ran = ran_ms(r, state), done = ran - state->pending_ms;

	return (struct plain_spot_task){
		.now_ms = r->now_ms,
		.submit_ms = from->submit_ms,
		.deadline_ms = from->deadline_ms,
		.work_ms = from->run_ms,
		.rest_ms = state->rest_ms -
			   (state->places && done > 0
				    ? workload_done_ms(done, state->speed, state->slowdown)
				    : 0),
		.restart_ms = from->restart_ms,
		.pending_ms = state->places && done < 0 ? -done : 0,
		.every_ms = from->checkpoint_every_ms,
		.unsaved_ms = ran,
		.at = state->places ? state->at : AT_NOWHERE,
	};
}

static bool take_at(struct plain_run *r, uint32_t job, enum plain_at at, struct plain_place *ret)
{
	struct workload_job there = r->workload->jobs[job];

	there.capacity = at == AT_SPOT ? CAPACITY_SPOT : CAPACITY_ON_DEMAND;
	r->jobs[job].at = at;
	return plain_take(&r->cluster, &there, ret);
}

/* On spot nodes if the policy would have them and they are there; else what it says then. Where nothing is left on demand spot is better than
 * nothing. */
static bool take_chosen(struct plain_run *r, uint32_t job, struct plain_place *ret)
{
	const struct plain_spot_task task = spot_task(r, job);
	enum plain_at at = plain_spot_choose(r->policy->spot, &task, true);

	if (at == AT_SPOT) {
		if (take_at(r, job, AT_SPOT, ret))
			return true;
		at = plain_spot_choose(r->policy->spot, &task, false);
	}
	return at == AT_DEMAND &&
	       (take_at(r, job, AT_DEMAND, ret) || take_at(r, job, AT_SPOT, ret));
}

static bool start(struct plain_run *r, uint32_t job)
{
	const struct workload_job *from = &r->workload->jobs[job];
	struct plain_state *state = &r->jobs[job];
	struct plain_place *places = malloc(workload_tasks(from) * sizeof *places);

	CHECK(places);
	if (is_chosen_for(r, from) ? !take_chosen(r, job, places)
				   : !plain_take(&r->cluster, from, places)) {
		free(places);
		return false;
	}
	state->places = places;
	state->since_ms = r->now_ms;
	state->price = plain_price(&r->cluster, from, places);
	state->slowdown = network_slowdown(r->network, from, places);
	state->speed = plain_speed(&r->cluster, from, places);
	state->pending_ms = state->began && !r->policy->anew ? from->restart_ms : 0;
	state->end_ms = r->now_ms + state->pending_ms +
			workload_ms_at(state->rest_ms, state->speed, state->slowdown);
	if (r->outcome->jobs[job].start_ms < 0)
		r->outcome->jobs[job].start_ms = r->now_ms;
	running_add(r, job);
	return true;
}

static void leave(struct plain_run *r, uint32_t job)
{
	const struct workload_job *from = &r->workload->jobs[job];
	struct outcome_job *out = &r->outcome->jobs[job];
	const int64_t ran = ran_ms(r, &r->jobs[job]);

	plain_give(&r->cluster, from, r->jobs[job].places);
	out->cost += r->jobs[job].price / 1e6 * (double)ran / 3600000;
	out->network_ms += outcome_slowed_ms(workload_share(from), ran, r->jobs[job].slowdown);
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

/* What ran since it began has progressed, less its restart. When a node is lost only what was saved counts. */
static void interrupt(struct plain_run *r, uint32_t job, bool lost)
{
	const struct workload_job *from = &r->workload->jobs[job];
	struct plain_state *state = &r->jobs[job];
	const int64_t ran = ran_ms(r, state),
		      restart_ms = r->policy->anew ? from->restart_ms : state->pending_ms;
	int64_t saved_ms = ran, kept_ms;

	if (lost)
		saved_ms = from->checkpoint_every_ms ? ran - ran % from->checkpoint_every_ms : 0;
	kept_ms = saved_ms > restart_ms ? saved_ms - restart_ms : 0;
	state->rest_ms -= workload_done_ms(kept_ms, state->speed, state->slowdown);
	state->began = state->rest_ms < from->run_ms;
	state->attained_ms += gpu_ms(from, ran);
	r->outcome->jobs[job].used_ms += gpu_ms(from, ran);
	r->outcome->jobs[job].lost_ms += gpu_ms(from, ran - (r->policy->anew ? kept_ms : saved_ms));
	leave(r, job);
}

static void interrupt_all(struct plain_run *r)
{
	for (uint32_t i = 0; i < r->running_count; i++)
		interrupt(r, r->running[i], false);
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

/* --- nodes ------------------------------------------------------------------------------------------------------- */

static bool has_lost(const struct plain_run *r, uint32_t job)
{
	for (uint32_t t = 0; t < workload_tasks(&r->workload->jobs[job]); t++)
		if (!r->cluster.nodes[r->jobs[job].places[t].node].there)
			return true;
	return false;
}

static bool demand_is_open(struct plain_run *r, uint32_t job)
{
	struct workload_job there = r->workload->jobs[job];
	struct plain_place *places = malloc(workload_tasks(&there) * sizeof *places);
	bool open;

	CHECK(places);
	there.capacity = CAPACITY_ON_DEMAND;
	open = plain_take(&r->cluster, &there, places);
	if (open)
		plain_give(&r->cluster, &there, places);
	free(places);
	return open;
}

/* It leaves spot nodes for others only when these are open. */
static bool leaves(struct plain_run *r, uint32_t job)
{
	const struct plain_spot_task task = spot_task(r, job);

	return is_chosen_for(r, &r->workload->jobs[job]) &&
	       plain_spot_leaves(r->policy->spot, &task) &&
	       (task.at != AT_SPOT || demand_is_open(r, job));
}

/* Those that have lost a node, or else those that the policy takes away from theirs. */
static void stop_some(struct plain_run *r, bool lost)
{
	const uint32_t count = r->running_count;
	uint32_t *ran = malloc((count + 1) * sizeof *ran);

	CHECK(ran);
	memcpy(ran, r->running, count * sizeof *ran);
	r->running_count = 0;
	for (uint32_t i = 0; i < count; i++)
		if (lost ? has_lost(r, ran[i]) : leaves(r, ran[i])) {
			interrupt(r, ran[i], lost);
			r->outcome->jobs[ran[i]].evictions++;
			waiting_add(r, ran[i]);
		} else {
			running_add(r, ran[i]);
		}
	free(ran);
}

static int64_t change_ms(const struct plain_run *r)
{
	return r->availability && r->changed < r->availability->count
		       ? r->availability->changes[r->changed].at_ms
		       : INT64_MAX;
}

static void nodes_change(struct plain_run *r)
{
	while (change_ms(r) <= r->now_ms) {
		const struct availability_change *c = &r->availability->changes[r->changed++];

		r->cluster.nodes[plain_node_find(&r->cluster, c->node)].there = c->there;
		r->freed = true;
		if (!c->there)
			stop_some(r, true);
	}
}

/* When the policy changes its mind about a job though nothing comes or goes. */
static int64_t look_ms(const struct plain_run *r)
{
	int64_t look = INT64_MAX;

	for (uint32_t i = 0; r->policy->spot && i < r->running_count + r->waiting_count; i++) {
		const uint32_t job =
			i < r->running_count ? r->running[i] : r->waiting[i - r->running_count];
		const struct plain_spot_task task = spot_task(r, job);
		const int64_t at_ms = is_chosen_for(r, &r->workload->jobs[job])
					      ? plain_spot_look_ms(r->policy->spot, &task)
					      : INT64_MAX;

		look = at_ms < look ? at_ms : look;
	}
	return look;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* INT64_MAX: nothing comes any more that could change anything. */
static int64_t next_ms(const struct plain_run *r)
{
	const struct workload *w = r->workload;
	const int64_t end_ms = r->running_count ? r->jobs[r->running[0]].end_ms : INT64_MAX;
	const int64_t come_ms = r->arrived < w->count ? w->jobs[r->arrived].submit_ms : INT64_MAX;
	const bool any = r->arrived < w->count || r->running_count || r->waiting_count;

	return sooner(sooner(end_ms, come_ms), sooner(any ? change_ms(r) : INT64_MAX, look_ms(r)));
}

static void step(struct plain_run *r, int64_t at_ms)
{
	const struct workload *w = r->workload;

	r->now_ms = at_ms;
	while (r->running_count && r->jobs[r->running[0]].end_ms <= r->now_ms)
		end(r, running_first(r));
	nodes_change(r);
	if (r->policy->spot) {
		stop_some(r, false);
		r->freed = true;
	}
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

static int nodes_known(const struct plain_cluster *c, const struct availability *a, struct err *err)
{
	for (uint32_t i = 0; a && i < a->count; i++)
		if (plain_node_find(c, a->changes[i].node) < 0)
			return availability_no_node(a, i, err);
	return 0;
}

static void jobs_play(struct plain_run *r)
{
	const struct workload *w = r->workload;
	int64_t at_ms;

	r->jobs = calloc(w->count, sizeof *r->jobs);
	r->waiting = calloc((size_t)w->count + 1, sizeof *r->waiting);
	r->running = calloc((size_t)w->count + 1, sizeof *r->running);
	CHECK(r->jobs && r->waiting && r->running);
	for (uint32_t i = 0; i < w->count; i++)
		r->jobs[i].rest_ms = w->jobs[i].run_ms;
	while ((at_ms = next_ms(r)) != INT64_MAX)
		step(r, at_ms);
	for (uint32_t i = 0; i < w->count; i++)
		free(r->jobs[i].places);
	free(r->jobs);
	free(r->waiting);
	free(r->running);
}

int plain_run(const struct plain_policy *policy, const struct scenario *cluster,
	      const struct workload *w, const struct availability *availability, uint64_t seed,
	      struct outcome *ret, struct err *err)
{
	struct plain_run r = {
		.policy = policy, .workload = w, .outcome = ret, .availability = availability
	};
	int rc;

	plain_cluster_init(&r.cluster, cluster, policy->choice, w, seed);
	rc = nodes_known(&r.cluster, availability, err);
	if (rc == 0)
		rc = network_open(cluster, &r.network, err);
	if (rc == 0) {
		outcome_init(ret, policy->name, w);
		ret->capacity = r.cluster.capacity;
		ret->priced = true;
		ret->networked = r.network != NULL;
		jobs_play(&r);
	}
	network_close(r.network);
	plain_cluster_deinit(&r.cluster);
	return rc;
}
