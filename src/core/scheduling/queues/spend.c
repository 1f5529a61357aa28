/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/queues/spend.h"

#include <string.h>

#include "core/scheduling/pass.h"

__extension__ typedef __int128 wide;

/* --- prices -------------------------------------------------------------------------------------------- */

/* Of what parts of GPUs, each in 1/63000, cost for so many ms at a price per hour; rounded down once, at the end. */
static wide cost_parts(int64_t share, int64_t micro_per_hour, int64_t ms)
{
	return (wide)share * micro_per_hour * (ms > 0 ? ms : 0);
}

static int64_t cost_whole(wide parts)
{
	wide cost = parts / SPEND_HOUR_MS / GPU_SHARE;

	return cost < INT64_MAX / 4 ? (int64_t)cost : INT64_MAX / 4;
}

int64_t spend_cost_micro(int64_t share, int64_t micro_per_hour, int64_t ms)
{
	return cost_whole(cost_parts(share, micro_per_hour, ms));
}

/* Of the models it accepts; of all that there are when it accepts any. */
static int64_t cheapest(const struct facts *facts, const struct view *view,
			const struct shape *shape)
{
	int64_t least = INT64_MAX;

	for (uint32_t i = 0; i < SHAPE_MODELS_MAX && shape->models[i].v; i++) {
		int64_t price = model_price(facts, shape->models[i]);

		least = price < least ? price : least;
	}
	for (uint32_t i = 0; !shape->models[0].v && i < view->space.traits_count; i++) {
		int64_t price = view->space.traits.at[i].price_micro;

		least = price < least ? price : least;
	}
	return least < INT64_MAX ? least : 0;
}

static int64_t width_cost(const struct facts *facts, const struct view *view, const struct job *job,
			  uint32_t tasks, int64_t ms)
{
	const struct shape *shape = shape_get(facts, job->shape);

	if (!facts->prices.count || !shape->gpus)
		return 0;
	return spend_cost_micro(shape_is_part(shape) ? shape_share(&view->space, shape, tasks)
						     : shape_gpus(shape, tasks) * GPU_SHARE,
				cheapest(facts, view, shape), ms);
}

int64_t job_hour_micro(const struct facts *facts, const struct view *view, const struct job *job)
{
	return width_cost(facts, view, job, shape_get(facts, job->shape)->tasks_min, SPEND_HOUR_MS);
}

int64_t job_cost_micro(const struct facts *facts, const struct view *view, const struct job *job)
{
	return width_cost(facts, view, job, shape_get(facts, job->shape)->tasks_min,
			  job_expected_ms(facts, job));
}

/* --- budgets ------------------------------------------------------------------------------------------- */

static bool queue_has_budget(const struct facts *facts, uint32_t queue)
{
	const struct queue *q = queue_get(facts, (struct queue_id){ queue });

	return q->budget_ms && !q->removed;
}

int64_t queue_left_micro(const struct queue *queue)
{
	return queue->budget_micro > queue->spent_micro ? queue->budget_micro - queue->spent_micro
							: 0;
}

int64_t budget_left_micro(const struct facts *facts, uint32_t queue)
{
	int64_t least = INT64_MAX;

	for (; queue; queue = queue_get(facts, (struct queue_id){ queue })->parent.v)
		if (queue_has_budget(facts, queue)) {
			int64_t left =
				queue_left_micro(queue_get(facts, (struct queue_id){ queue }));

			least = left < least ? left : least;
		}
	return least;
}

/* Both are 0 to INT64_MAX / 4; more than that is all alike. */
static int64_t cost_sum(int64_t a, int64_t b)
{
	return a + b < INT64_MAX / 4 ? a + b : INT64_MAX / 4;
}

/* What a rank costs from when it came, at the price of its node. */
static wide rank_parts(const struct facts *facts, const struct attempt *attempt, uint32_t rank,
		       int64_t since_ms, int64_t end_ms)
{
	const struct task *task = table_get(&facts->tasks, attempt->first_task + rank);
	int64_t share =
		task->gpu_part ? task->gpu_part : (int64_t)bits_count(task->gpu_mask) * GPU_SHARE;

	if (!task_holds(task) || !share)
		return 0;
	return cost_parts(share, node_price(facts, node_get(facts, task->node)),
			  end_ms - (task->from_ms > since_ms ? task->from_ms : since_ms));
}

/* What the ranks that hold a place cost. */
static int64_t attempt_cost(const struct facts *facts, const struct attempt *attempt,
			    int64_t since_ms, int64_t end_ms)
{
	wide sum = 0;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		sum += rank_parts(facts, attempt, rank, since_ms, end_ms);
	return cost_whole(sum);
}

static int64_t ranks_cost(const struct facts *facts, const struct attempt *attempt,
			  const int64_t *ranks, uint32_t count, int64_t since_ms)
{
	wide sum = 0;

	if (!ranks)
		return attempt_cost(facts, attempt, since_ms, facts->now_ms);
	for (uint32_t i = 0; i < count; i++)
		sum += rank_parts(facts, attempt, (uint32_t)ranks[i], since_ms, facts->now_ms);
	return cost_whole(sum);
}

void spend_charge(struct pass *pass, const struct job *job, const int64_t *ranks, uint32_t count,
		  const struct charge *ret)
{
	const struct facts *facts = pass->facts;
	const struct attempt *attempt = attempt_get(facts, job->attempt);
	int64_t *queues = NULL, *micro = NULL;
	uint32_t charged = 0;

	if (!facts->prices.count || budget_left_micro(facts, job->queue.v) == INT64_MAX)
		return;
	queues = arena_new_array(pass->arena, int64_t, facts->queues.count);
	micro = arena_new_array(pass->arena, int64_t, facts->queues.count);
	for (uint32_t queue = job->queue.v; queue;
	     queue = queue_get(facts, (struct queue_id){ queue })->parent.v) {
		int64_t cost;

		if (!queue_has_budget(facts, queue))
			continue;
		cost = ranks_cost(facts, attempt, ranks, count,
				  queue_get(facts, (struct queue_id){ queue })->budget_ms);
		if (!cost)
			continue;
		queues[charged] = queue;
		micro[charged++] = cost;
	}
	*ret->queues = queues;
	*ret->micro = micro;
	*ret->queue_count = *ret->micro_count = charged;
}

/* What the queue's own running jobs cost since `since_ms`, until they are expected to end. Ranks that left are like jobs that
 * ended: what they cost came off when they left. */
static int64_t running_cost(const struct standings *s, uint32_t queue, int64_t since_ms)
{
	const struct facts *facts = s->facts;
	struct sorted_walk walk;
	int64_t sum = 0;

	for (bool any = sorted_begin(&s->view->pool, s->view->queues.at[queue].running, &walk); any;
	     any = sorted_next(&s->view->pool, &walk)) {
		const struct job *job = job_get(facts, (struct job_id){ walk.id });
		int64_t end_ms = job_view_get(s->view, walk.id)->end_ms;

		end_ms = end_ms > facts->now_ms ? end_ms : facts->now_ms;
		sum = cost_sum(sum, attempt_cost(facts, attempt_get(facts, job->attempt), since_ms,
						 end_ms));
	}
	return sum;
}

/* What jobs will cost to which a place is promised. Those that this pass has started stand here still: they are not among those
 * that run yet. */
static int64_t promised_cost(const struct standings *s, uint32_t queue)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < s->view->promise_count; i++) {
		const struct promise_view *p = &s->view->promises.at[i];

		if (job_get(s->facts, (struct job_id){ p->job })->attempt.v)
			continue; /* it moves, and is counted where it runs */
		if (queue_is_in(s->view, p->queue, queue))
			sum = cost_sum(
				sum, job_cost_micro(s->facts, s->view,
						    job_get(s->facts, (struct job_id){ p->job })));
	}
	return sum;
}

int64_t spend_committed_micro(const struct standings *s, uint32_t queue, int64_t since_ms)
{
	int64_t sum = promised_cost(s, queue);

	for (uint32_t q = 1; q <= s->facts->queues.count; q++)
		if (queue_is_in(s->view, q, queue))
			sum = cost_sum(sum, running_cost(s, q, since_ms));
	return sum;
}

/* Made when the first job of a queue with a budget waits: a step for each running job of the queues below it. */
static int64_t *standing_committed(struct standings *s, uint32_t queue, struct arena *arena)
{
	if (!s->committed) {
		s->committed = arena_new_array(arena, int64_t, s->count);
		memset(s->committed, -1, s->count * sizeof(int64_t));
	}
	if (s->committed[queue] < 0)
		s->committed[queue] = spend_committed_micro(
			s, queue, queue_get(s->facts, (struct queue_id){ queue })->budget_ms);
	return &s->committed[queue];
}

int64_t spend_left_micro(struct standings *s, uint32_t queue, struct arena *arena)
{
	int64_t least = INT64_MAX;

	if (s->facts->policy.budget_warns || !s->facts->prices.count)
		return INT64_MAX;
	for (; queue; queue = s->view->queues.at[queue].parent)
		if (queue_has_budget(s->facts, queue)) {
			int64_t left =
				queue_left_micro(queue_get(s->facts, (struct queue_id){ queue })) -
				*standing_committed(s, queue, arena);

			left = left > 0 ? left : 0;
			least = left < least ? left : least;
		}
	return least;
}

static int64_t *committed(struct pass *pass, uint32_t queue)
{
	return standing_committed(&pass->standings, queue, pass->arena);
}

/* No wider than is left for. */
static void widest_narrow(struct pass *pass, int64_t left, int64_t each)
{
	if (each > 0 && left / each < pass->widest)
		pass->widest = left > 0 ? (uint32_t)(left / each) : 0;
}

/* A new job: unlike tasks cost unlike sums. */
static void widest_afford(struct pass *pass, const struct job *job, int64_t left)
{
	const struct shape *shape = shape_get(pass->facts, job->shape);
	int64_t expected_ms = job_expected_ms(pass->facts, job);

	if (!shape->role_count)
		widest_narrow(pass, left, width_cost(pass->facts, pass->view, job, 1, expected_ms));
	while (shape->role_count && pass->widest > shape->tasks_min &&
	       width_cost(pass->facts, pass->view, job, pass->widest, expected_ms) > left)
		pass->widest--;
}

bool spend_allows(struct pass *pass, const struct job *job, struct verdict *ret_why)
{
	int64_t cost = -1;

	if (pass->facts->policy.budget_warns)
		return true;
	for (uint32_t queue = job->queue.v; queue; queue = pass->view->queues.at[queue].parent) {
		int64_t left;

		if (!queue_has_budget(pass->facts, queue))
			continue;
		if (cost < 0)
			cost = job_cost_micro(pass->facts, pass->view, job);
		left = queue_left_micro(queue_get(pass->facts, (struct queue_id){ queue })) -
		       *committed(pass, queue);
		if (cost <= left || !cost) {
			widest_afford(pass, job, left);
			continue;
		}
		*ret_why = (struct verdict){ .code = REASON_BUDGET,
					     .at = queue,
					     .have = left > 0 ? left : 0,
					     .need = cost };
		return false;
	}
	return true;
}

static void spend_add(struct pass *pass, uint32_t queue, int64_t cost)
{
	for (; cost && pass->standings.committed && queue;
	     queue = pass->view->queues.at[queue].parent)
		if (pass->standings.committed[queue] >= 0)
			pass->standings.committed[queue] =
				cost_sum(pass->standings.committed[queue], cost);
}

void spend_take(struct pass *pass, const struct job *job, uint32_t tasks)
{
	spend_add(
		pass, job->queue.v,
		width_cost(pass->facts, pass->view, job, tasks, job_expected_ms(pass->facts, job)));
}

void spend_give(struct pass *pass, const struct job *job)
{
	int64_t cost = pass->standings.committed ? job_cost_micro(pass->facts, pass->view, job) : 0;

	for (uint32_t queue = job->queue.v; cost && queue;
	     queue = pass->view->queues.at[queue].parent)
		if (pass->standings.committed[queue] >= 0)
			pass->standings.committed[queue] -=
				cost < pass->standings.committed[queue]
					? cost
					: pass->standings.committed[queue];
}

/* --- growing --------------------------------------------------------------------------------------------- */

/* One rank more, of the model that it has, until its expected end. */
static int64_t rank_cost(const struct pass *pass, uint32_t id)
{
	const struct facts *facts = pass->facts;
	const struct job *job = job_get(facts, (struct job_id){ id });
	const struct task *task = attempt_gpu_task(facts, attempt_get(facts, job->attempt));

	return spend_cost_micro(task->gpu_part
					? task->gpu_part
					: (int64_t)shape_get(facts, job->shape)->gpus * GPU_SHARE,
				node_price(facts, node_get(facts, task->node)),
				job_view_get(pass->view, id)->end_ms - facts->now_ms);
}

void spend_bind(struct pass *pass, uint32_t id)
{
	uint32_t queue = job_get(pass->facts, (struct job_id){ id })->queue.v;

	if (pass->facts->policy.budget_warns || !pass->facts->prices.count)
		return;
	for (; queue; queue = pass->view->queues.at[queue].parent)
		if (queue_has_budget(pass->facts, queue))
			widest_narrow(pass,
				      queue_left_micro(
					      queue_get(pass->facts, (struct queue_id){ queue })) -
					      *committed(pass, queue),
				      rank_cost(pass, id));
}

void spend_widen(struct pass *pass, uint32_t id, uint32_t ranks)
{
	int64_t each = pass->standings.committed ? rank_cost(pass, id) : 0, cost = 0;

	for (uint32_t i = 0; i < ranks; i++)
		cost = cost_sum(cost, each);
	spend_add(pass, job_get(pass->facts, (struct job_id){ id })->queue.v, cost);
}

/* --- what leaves ----------------------------------------------------------------------------------------- */

/* Of the job's GPUs from when it has left until its expected end. */
static int64_t cost_ahead(const struct pass *pass, uint32_t id, int64_t share)
{
	const struct facts *facts = pass->facts;
	const struct job *job = job_get(facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(facts, job->attempt);
	const struct task *task = attempt_gpu_task(facts, attempt);
	int64_t since_ms = attempt->released_ms ? attempt->released_ms : attempt->placed_ms,
		gone_ms = attempt_is_leaving(attempt) ? attempt->deadline_ms
						      : facts->now_ms + job_grace_ms(facts, job);

	gone_ms = gone_ms > facts->now_ms ? gone_ms : facts->now_ms;
	return spend_cost_micro(share, node_price(facts, node_get(facts, task->node)),
				since_ms + job_expected_ms(facts, job) - gone_ms);
}

static void freed_add(struct pass *pass, uint32_t queue, int64_t cost)
{
	for (; cost && queue; queue = pass->view->queues.at[queue].parent)
		pass->freed[queue] += cost;
}

void spend_leave(struct pass *pass, uint32_t id, int64_t share)
{
	uint32_t queue = job_get(pass->facts, (struct job_id){ id })->queue.v;

	if (pass->freed)
		freed_add(pass, queue,
			  share < 0 ? -cost_ahead(pass, id, -share) : cost_ahead(pass, id, share));
}

void spend_promise(struct pass *pass, const struct promise_view *p, int sign)
{
	if (pass->freed)
		freed_add(pass, p->queue,
			  -sign * job_cost_micro(pass->facts, pass->view,
						 job_get(pass->facts, (struct job_id){ p->job })));
}

bool spend_covers(struct pass *pass, uint32_t queue, int64_t cost)
{
	if (!pass->freed)
		pass->freed = arena_new_array(pass->arena, int64_t, pass->standings.count);
	for (; queue; queue = pass->view->queues.at[queue].parent)
		if (queue_has_budget(pass->facts, queue) &&
		    *committed(pass, queue) - pass->freed[queue] + cost >
			    queue_left_micro(queue_get(pass->facts, (struct queue_id){ queue })))
			return false;
	return true;
}

bool spend_is_paid(struct pass *pass, uint32_t queue)
{
	return pass->facts->policy.budget_warns || !pass->facts->prices.count ||
	       spend_covers(pass, queue, 0);
}

/* --- the cheaper ones of a bucket -------------------------------------------------------------------------------------------- */

enum { CHEAPER_LOOKS_MAX = 16 };

bool spend_try_cheaper(struct pass *pass, uint32_t bucket, uint32_t first)
{
	int64_t first_micro = pass->unpaid_micro;
	struct sorted_walk walk;
	uint32_t looks = 0;

	if (pass->cut || pass->watch)
		return false;
	for (bool any = sorted_begin(&pass->view->pool, pass->view->buckets.at[bucket].jobs, &walk);
	     any && looks < CHEAPER_LOOKS_MAX; any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(pass->facts, (struct job_id){ walk.id });
		struct verdict why;

		if (walk.id <= first)
			continue;
		looks++;
		pass->work++;
		if (job_cost_micro(pass->facts, pass->view, job) >= first_micro ||
		    !spend_allows(pass, job, &why) || !order_try(pass, walk.id))
			continue;
		pass->more = true;
		return true;
	}
	return false;
}
