/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/order/terms.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/scheduling/queues/spend.h"

__extension__ typedef __int128 wide;

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)

int64_t terms_weight(const struct policy *policy, enum order_term term)
{
	switch (term) {
	case TERM_DEADLINE: return policy->order_deadline;
	case TERM_EFFICIENCY: return policy->order_efficiency;
	case TERM_AGE: return policy->order_age;
	case TERM_USER: return policy->order_user;
	case TERM_BUDGET: return policy->order_budget;
	case TERM_COUNT: break;
	}
	UNREACHABLE();
}

const char *terms_name(enum order_term term)
{
	static const char *const names[] = { "deadline", "efficiency", "age", "user", "budget" };

	_Static_assert(ARRAY_SIZE(names) == TERM_COUNT, "a name for each");
	return names[term];
}

bool terms_count(const struct policy *policy)
{
	for (int term = 0; term < TERM_COUNT; term++)
		if (terms_weight(policy, (enum order_term)term))
			return true;
	return false;
}

/* --- what users hold --------------------------------------------------------------------------------------- */

static uint32_t holds_place(const struct user_holds *holds, uint32_t user)
{
	uint32_t first = 0, end = holds->count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (holds->at[middle].user < user)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

void user_holds_add(struct user_holds *holds, struct name_id user, int64_t share,
		    struct arena *arena)
{
	uint32_t at = holds_place(holds, user.v);

	if (at < holds->count && holds->at[at].user == user.v) {
		holds->at[at].share += share;
		return;
	}
	if (holds->count == holds->room) {
		struct user_hold *old = holds->at;

		holds->room = holds->room ? holds->room * 2 : 16;
		holds->at = arena_new_array(arena, struct user_hold, holds->room);
		if (old)
			memcpy(holds->at, old, holds->count * sizeof(*old));
	}
	memmove(holds->at + at + 1, holds->at + at, (holds->count - at) * sizeof(*holds->at));
	holds->at[at] = (struct user_hold){ user.v, share };
	holds->count++;
}

int64_t user_holds_get(const struct user_holds *holds, struct name_id user)
{
	uint32_t at = holds_place(holds, user.v);

	return at < holds->count && holds->at[at].user == user.v ? holds->at[at].share : 0;
}

void user_holds_make(const struct facts *facts, const struct view *view, uint32_t queue,
		     struct arena *arena, struct user_holds *ret)
{
	struct sorted_walk walk;

	*ret = (struct user_holds){ 0 };
	for (bool any = sorted_begin(&view->pool, view->queues.at[queue].running, &walk); any;
	     any = sorted_next(&view->pool, &walk))
		user_holds_add(ret, job_get(facts, (struct job_id){ walk.id })->user,
			       job_view_get(view, walk.id)->share, arena);
}

/* --- the terms --------------------------------------------------------------------------------------------- */

int64_t job_slack_ms(const struct facts *facts, const struct job *job)
{
	const struct body *body = table_get(&facts->bodies, job->body);

	if (!job->body || !body->deadline_ms)
		return INT64_MAX;
	return body->deadline_ms - facts->now_ms - job_expected_ms(facts, job);
}

static int64_t deadline_term(const struct facts *facts, const struct job *job)
{
	int64_t slack_ms = job_slack_ms(facts, job);

	if (slack_ms == INT64_MAX)
		return 0;
	return slack_ms <= 0 ? TERM_MOST : TERM_MOST * HOUR_MS / (HOUR_MS + slack_ms);
}

/* What it declares is believed as far as its earlier attempts bear it out. */
static int64_t efficiency_term(const struct facts *facts, const struct job *job)
{
	const struct body *body = table_get(&facts->bodies, job->body);
	int64_t declared = job->body ? INT64_C(10) * body->efficiency : 0, kept;

	if (job->used_gpu_ms <= 0)
		return declared;
	kept = job->used_gpu_ms - job->lost_gpu_ms;
	kept = kept > 0 ? kept / ((job->used_gpu_ms + TERM_MOST - 1) / TERM_MOST) : 0;
	return declared && declared < kept ? declared : kept;
}

static int64_t age_term(const struct facts *facts, const struct job *job)
{
	int64_t waited_ms = facts->now_ms - job->submitted_ms;

	waited_ms = waited_ms > 0 ? waited_ms : 0;
	return TERM_MOST * (waited_ms / 1000) / (waited_ms / 1000 + DAY_MS / 1000);
}

/* Past use as the GPUs that would come to as much in one half-life, of a day where nothing fades; in shares. */
static wide past_share(const struct facts *facts, const struct job *job)
{
	int64_t over_ms = facts->policy.half_life_ms ? facts->policy.half_life_ms : DAY_MS;

	if (!facts->policy.order_user)
		return 0;
	return (wide)user_past_gpu_ms(facts, job->queue, job->user, facts->now_ms) * GPU_SHARE /
	       over_ms;
}

static int64_t user_term(const struct facts *facts, const struct user_holds *holds,
			 const struct job *job)
{
	int64_t share = user_holds_get(holds, job->user);

	return (int64_t)((wide)TERM_MOST * GPU_SHARE /
			 (GPU_SHARE + share + past_share(facts, job)));
}

static int64_t budget_term(const struct facts *facts, const struct view *view,
			   const struct job *job)
{
	int64_t left = budget_left_micro(facts, job->queue.v),
		cost = job_cost_micro(facts, view, job);

	if (left == INT64_MAX || !cost)
		return TERM_MOST;
	return (int64_t)((wide)left * TERM_MOST / ((wide)left + cost));
}

void terms_of(const struct facts *facts, const struct view *view, const struct user_holds *holds,
	      const struct job *job, struct terms *ret)
{
	*ret = (struct terms){ .value = { [TERM_DEADLINE] = deadline_term(facts, job),
					  [TERM_EFFICIENCY] = efficiency_term(facts, job),
					  [TERM_AGE] = age_term(facts, job),
					  [TERM_USER] = user_term(facts, holds, job) } };
	if (facts->policy.order_budget)
		ret->value[TERM_BUDGET] = budget_term(facts, view, job);
	for (int term = 0; term < TERM_COUNT; term++)
		ret->sum += ret->value[term] * terms_weight(&facts->policy, (enum order_term)term);
}
