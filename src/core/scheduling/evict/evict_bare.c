/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work without GPUs, as the one that goes and as the one that comes. Between queues it is taken back by processors and memory:
 *
 *	the victim holds none		its queue is above its share of them, and the job's queue stays within its own with the job; a job that
 *					wants GPUs too stays within its share of those as well
 *	the job wants none, the		only for what is guaranteed: the job's queue stays within its guarantee of processors and memory,
 *	victim holds some		and the victim's is above its share of them and above its guarantee of GPUs
 *
 * So GPUs never stand still for processors that nobody was promised, and nobody without GPUs goes who could come back.
 *
 *	8 GPUs, 64 processors on one node. a is guaranteed 2 GPUs: 16 processors of 64. b runs two jobs without GPUs on 16 processors
 *	each, c one on 4 GPUs and 32 processors. a asks for 8 processors: one of b's goes. Were there only c's job, it would go: a is
 *	within its guarantee. Were a not guaranteed anything, it would wait.
 */
#include "core/scheduling/evict/evict.h"

static void amount_add(struct beside *to, struct beside more)
{
	to->cpu_milli += more.cpu_milli;
	to->ram_mib += more.ram_mib;
}

static struct beside attempt_beside(const struct pass *pass, const struct victim *v,
				    const bool *ranks)
{
	struct beside sum = { 0, 0 };

	if (!v->shape->cpu_milli && !v->shape->memory_mib)
		return sum;
	for (uint32_t i = ranks ? 0 : victim_first(v);
	     i < (ranks ? v->attempt->tasks : victim_end(v)); i++) {
		const struct task *task =
			table_get(&pass->facts->tasks, v->attempt->first_task + i);
		int32_t rank = space_rank(&pass->view->space, task->node.v);

		if (rank != RANK_NONE && !task->leaving &&
		    (ranks ? task_holds(task) && ranks[i] : victim_has(v, i, task)))
			amount_add(&sum, beside_of_task(pass->view, (uint32_t)rank, v->shape, i));
	}
	return sum;
}

struct beside victim_beside(const struct pass *pass, const struct victim *v)
{
	return v->promise ? beside_of_promise(pass->view, v->promise)
			  : attempt_beside(pass, v, NULL);
}

struct beside victim_ranks_beside(const struct pass *pass, const struct victim *v,
				  const bool *ranks)
{
	return attempt_beside(pass, v, ranks);
}

int64_t bare_cost(const struct pass *pass, const struct shape *shape, const struct attempt *attempt,
		  int64_t lost_ms)
{
	struct beside all = { shape_cpu_milli(shape, attempt->tasks),
			      shape_memory_mib(shape, attempt->tasks) };

	return share_gpu_ms(beside_part(&pass->standings, all), lost_ms);
}

void victim_counts(struct pass *pass, const struct victim *v, bool leaves)
{
	standing_leave(&pass->standings, v->queue, v->tier, leaves ? v->share : -v->share);
	beside_move(&pass->standings, v->queue, v->tier, victim_beside(pass, v), leaves ? -1 : 1);
	spend_leave(pass, v->job, leaves ? v->share : -v->share);
	pledge_attempt(pass, v, leaves ? -1 : 1);
}

/* What the job wants of GPUs is its queue's right. */
static bool gpus_are_due(const struct hunt *hunt, uint32_t top)
{
	const struct standings *s = &hunt->pass->standings;

	return hunt->pledged || standing_within(s, hunt->j->queue.v, top, hunt->need) ||
	       (hunt->j->tier == TIER_CRITICAL &&
		standing_claims(s, hunt->j->queue.v, top, hunt->need));
}

bool bare_may_go(const struct hunt *hunt, const struct victim *v, uint32_t top)
{
	const struct standings *s = &hunt->pass->standings;
	uint32_t queue = hunt->j->queue.v;
	bool above = beside_above(s, v->queue, top),
	     lent = hunt->j->tier == TIER_CRITICAL && beside_borrows(s, v->queue, top);

	if (!above && !lent)
		return false;
	if (victim_is_bare(v))
		return gpus_are_due(hunt, top) &&
		       ((above && beside_within(s, queue, top, hunt->beside)) ||
			(lent && beside_claims(s, queue, top, hunt->beside)));
	return standing_borrows(s, v->queue, top, 1) &&
	       beside_claims(s, queue, top, hunt->beside) && pledge_lets_go(hunt->pass, v, top);
}

bool bare_comes_back(const struct hunt *hunt, const struct victim *v, uint32_t top)
{
	return hunt->j->tier != TIER_CRITICAL &&
	       beside_within(&hunt->pass->standings, v->queue, top, victim_beside(hunt->pass, v));
}

bool bare_own_is_enough(const struct hunt *hunt)
{
	const struct beside *own = &hunt->own_beside;

	return (!own->cpu_milli && !own->ram_mib) ||
	       (hunt->beside.cpu_milli <= own->cpu_milli && hunt->beside.ram_mib <= own->ram_mib) ||
	       beside_within(&hunt->pass->standings, hunt->j->queue.v, 0, hunt->beside);
}
