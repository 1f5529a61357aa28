/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that goes on faster elsewhere: free GPUs of a model that does a job's work faster, by the throughput that the job declares, than the
 * one on which it runs. Nobody who waits has a use for them, for all had their turn before, and what is reserved stays kept.
 *
 *	k80 a	v100 .		`a` does 0.2 on k80 of what it does on v100; 10 GPU-hours are expected of it still, at that rate
 *				10 * (1 - 0.2) = 8 GPU-hours are won; its grace of 2 min costs as many GPU-minutes: it moves
 *
 * It moves when what is won is worth FASTER_PAYS times what the move costs, for what is expected is a guess (due.h). Told in time it saves
 * within its grace, so that and the restart are the cost, as for turns among equals; without a grace it is the work that it would lose.
 * It is placed as if it began anew, so prices count as they do then. As each move goes to a faster model nobody goes to and fro, and
 * who has moved stays for an hour whatever comes free. Of all that may move that goes first which wins most beyond its cost.
 *
 * What a queue may use of a model binds here too; where queues have budgets, or are promised models, nobody moves for this.
 */
#include "core/placement/traits.h"
#include "core/rearranging/plan.h"
#include "core/scheduling/order/due.h"
#include "core/scheduling/queues/window.h"

enum { FASTER_PAYS = 2 };

static int64_t move_cost(const struct pass *pass, const struct mover *m, const struct job *job)
{
	int64_t grace_ms = job_grace_ms(pass->facts, job);

	return grace_ms ? share_gpu_ms(m->share, grace_ms + (int64_t)job->restart_cost_ms)
			: m->cost;
}

static bool queue_has_budget(const struct pass *pass, uint32_t queue)
{
	for (uint32_t up = queue; up; up = pass->view->queues.at[up].parent)
		if (queue_get(pass->facts, (struct queue_id){ up })->budget_ms)
			return true;
	return false;
}

static bool may_change_model(struct pass *pass, const struct mover *m, const struct job *job)
{
	struct verdict why;

	return m->shape->throughput[0] && !shape_is_part(m->shape) && !m->shape->role_count &&
	       m->attempt->tasks == m->shape->tasks_min && !pass->pledges &&
	       !queue_has_budget(pass, job->queue.v) &&
	       bounds_allow(pass, job->queue.v, job->tier, m->shape, m->attempt->tasks, &why);
}

/* Where it would lie were it placed now. The space is as before. */
static bool place_anew(struct pass *pass, const struct movers *movers, const struct mover *m,
		       const struct job *job, struct placement *ret)
{
	struct place_request request = pass_request(pass, m->shape, m->attempt->tasks);
	bool found;

	request.barred = movers->barred;
	pass->work++;
	blocks_for(pass, job, job_leaves_ms(pass->facts, job));
	mover_give(pass, m);
	found = place_find(&pass->view->space, &request, pass->arena, ret, NULL) == 0;
	mover_take(pass, m);
	blocks_none(pass);
	return found;
}

/* A gang runs at the speed of its slowest rank. */
static uint32_t speed_there(const struct pass *pass, const struct mover *m,
			    const struct placement *place)
{
	const struct space *space = &pass->view->space;
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < place->count; i++) {
		uint32_t speed = shape_speed(
			m->shape, space->traits.at[space_at(space, place->ranks[i])->traits].model);

		least = speed < least ? speed : least;
	}
	return least;
}

/* GPU-ms of what it has now that are won beyond the cost; 0 = it stays. */
static int64_t mover_wins(struct pass *pass, const struct movers *movers, const struct mover *m,
			  struct placement *to)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ m->job });
	int64_t cost = move_cost(pass, m, job), work, now = shape_speed(m->shape, m->model), then;

	if (!now || !may_change_model(pass, m, job) || !place_anew(pass, movers, m, job, to))
		return 0;
	then = speed_there(pass, m, to);
	if (then <= now)
		return 0;
	work = job_work_ms(pass->facts, job, pass->facts->now_ms - m->attempt->released_ms);
	work = work / then * (then - now);
	return work >= cost * FASTER_PAYS ? work - cost : 0;
}

bool faster_find(struct pass *pass, const struct movers *movers, struct plan *ret)
{
	int64_t best = 0;

	if (!pass->view->space.several_models)
		return false;
	for (uint32_t i = 0; i < movers->count; i++) {
		const struct mover *m = &movers->list[i];
		struct placement to;
		int64_t wins = mover_wins(pass, movers, m, &to);

		if (wins <= best)
			continue;
		best = wins;
		*ret = (struct plan){
			.moves = arena_new(pass->arena, uint32_t),
			.to = arena_new(pass->arena, struct placement),
			.count = 1,
			.cost = move_cost(pass, m, job_get(pass->facts, (struct job_id){ m->job })),
			.gained = m->share
		};
		ret->moves[0] = i;
		ret->to[0] = to;
	}
	pass->closed = 0;
	return best > 0;
}
