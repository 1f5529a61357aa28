/* SPDX-License-Identifier: Apache-2.0 */
/* What a job is expected to cost: told before it is submitted and while it waits. Budgets count by spend.h. */
#include "core/scheduling/reserve/estimate.h"
#include "core/scheduling/pass.h"

struct places {
	const int64_t *nodes, *masks, *parts;
	uint32_t count, masks_count, parts_count;
};

static struct places places_of(const struct event *placed)
{
	const struct event_attempt_placed *a = &placed->attempt_placed;
	const struct event_promise_made *p = &placed->promise_made;

	if (placed->kind == EVENT_PROMISE_MADE)
		return (struct places){ p->nodes,       p->masks,       p->parts,
					p->nodes_count, p->masks_count, p->parts_count };
	return (struct places){ a->nodes,       a->masks,       a->parts,
				a->nodes_count, a->masks_count, a->parts_count };
}

/* An hour at that place. */
static int64_t places_hour_micro(const struct facts *facts, const struct places *p)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->count; i++) {
		struct node_id node = { (uint32_t)p->nodes[i] };
		int64_t share = i < p->parts_count && p->parts[i] ? p->parts[i]
				: i < p->masks_count
					? (int64_t)bits_count((uint32_t)p->masks[i]) * GPU_SHARE
					: 0;

		sum += spend_cost_micro(share, node_price(facts, node_get(facts, node)),
					SPEND_HOUR_MS);
	}
	return sum;
}

static int64_t attempt_hour_micro(const struct facts *facts, const struct attempt *attempt)
{
	int64_t sum = 0;

	for (uint32_t rank = 0; attempt->first_task && rank < attempt->tasks; rank++) {
		const struct task *task = task_get(facts, attempt, rank);

		if (task_holds(task))
			sum += spend_cost_micro(
				task->gpu_part ? task->gpu_part
					       : (int64_t)bits_count(task->gpu_mask) * GPU_SHARE,
				node_price(facts, node_get(facts, task->node)), SPEND_HOUR_MS);
	}
	return sum;
}

static int64_t over(int64_t per_hour_micro, int64_t ms)
{
	return spend_cost_micro(GPU_SHARE, per_hour_micro, ms);
}

const char *facts_currency(const struct facts *facts, struct queue_id queue)
{
	for (; queue.v; queue = queue_get(facts, queue)->parent)
		if (queue_get(facts, queue)->currency.v)
			return facts_name(facts, queue_get(facts, queue)->currency);
	for (uint32_t id = 1; id <= facts->queues.count; id++) {
		const struct queue *other = queue_get(facts, (struct queue_id){ id });

		if (other->currency.v && !other->removed)
			return facts_name(facts, other->currency);
	}
	return "";
}

enum price_by price_by(const struct job *job)
{
	return job->limit_ms      ? PRICE_BY_LIMIT
	       : job->estimate_ms ? PRICE_BY_ESTIMATE
	       : job->likely_s    ? PRICE_BY_LIKES
				  : PRICE_BY_DEFAULT;
}

void core_price(const struct facts *facts, struct view *view, struct job_id id,
		const struct event *placed, struct price_range *ret)
{
	const struct job *job = job_get(facts, id);
	const struct attempt *attempt = job->attempt.v ? attempt_get(facts, job->attempt) : NULL;
	int64_t age_ms = 0, most_ms;

	*ret = (struct price_range){ .known = facts->prices.count > 0 };
	if (!ret->known)
		return;
	view_refresh(view, facts);
	ret->placed = placed || attempt;
	if (placed) {
		struct places p = places_of(placed);

		ret->per_hour_micro = places_hour_micro(facts, &p);
	} else if (attempt) {
		ret->per_hour_micro = attempt_hour_micro(facts, attempt);
		age_ms = attempt->released_ms ? facts->now_ms - attempt->released_ms : 0;
	} else {
		ret->per_hour_micro = job_hour_micro(facts, view, job);
	}
	ret->likely_micro =
		over(ret->per_hour_micro, estimate_rest_ms(facts, facts, job, age_ms, 500));
	ret->safe_micro =
		over(ret->per_hour_micro, estimate_rest_ms(facts, facts, job, age_ms, 900));
	ret->by = price_by(job);
	most_ms = job_expected_ms(facts, job) - age_ms;
	ret->most_micro = over(ret->per_hour_micro, most_ms > 0 ? most_ms : 0);
	if (ret->likely_micro > ret->most_micro)
		ret->likely_micro = ret->most_micro;
}
