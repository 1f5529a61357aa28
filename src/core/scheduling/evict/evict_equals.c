/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which running equals need much more work than the job for which room is made (evict_turns.c says who of them goes). All that runs in
 * a queue may be its equals, so they are not asked one by one: in each group of turners.h those who have enough stand at one end, and
 * the one behind them tells when the core has to look again. Jobs that can do without some ranks are few, and are listed apart
 * (evict_candidates.c).
 */
#include <string.h>

#include "core/scheduling/order/due.h"
#include "core/scheduling/evict/evict.h"

/* Class from which on its work is more than enough for the hunt. */
static uint32_t class_wanted(const struct hunt *hunt, uint8_t says)
{
	return hunt->work + (says == SAYS_NOTHING ? WORK_GAIN : WORK_GAIN_DECLARED);
}

/* It is left alone until it is old enough; the core is woken then for the queue as a whole. */
static bool is_young(const struct pass *pass, uint32_t id)
{
	int64_t mature_ms = 0;

	return victim_is_young(pass, job_view_get(pass->view, id), &mature_ms);
}

/* Who ran for long before has longer turns: for so long it stays whatever work it has. */
static int64_t stays_ms(const struct pass *pass, const struct job *job,
			const struct attempt *attempt)
{
	int64_t stays = job->run_ms / TURN_PART - turn_ran_ms(pass, attempt);

	return stays > 0 ? stays : 0;
}

static void turn_add(struct turns *turns, const struct victim *v)
{
	if (turns->count == turns->room) {
		const struct victim *old = turns->list;

		turns->room = old ? turns->room * 2 : 16;
		turns->list = arena_new_array(turns->hunt->pass->arena, struct victim, turns->room);
		if (old)
			memcpy(turns->list, old, turns->count * sizeof(*old));
	}
	turns->list[turns->count++] = *v;
}

/* Its work is enough: is its turn over? */
static void turn_end(struct turns *turns, struct turn_asked *asked)
{
	struct pass *pass = turns->hunt->pass;
	struct victim v;

	if (!pass_job_leaves(pass, asked->job) && !is_young(pass, asked->job) &&
	    turn_may_end(turns->hunt, asked, &v))
		turn_add(turns, &v);
}

/* --- who has enough work ------------------------------------------------------------------------------------------ */

static bool work_is_enough(const struct hunt *hunt, const struct turner_group *group,
			   struct turn_asked *asked)
{
	const struct facts *facts = hunt->pass->facts;
	const struct job *job = job_get(facts, (struct job_id){ asked->job });

	asked->ran_ms = turn_ran_ms(hunt->pass, attempt_get(facts, job->attempt));
	asked->class = job_work_class(facts, job, asked->ran_ms);
	return asked->class >= class_wanted(hunt, group->says);
}

/* When it has enough, if it runs on, and may go; INT64_MAX = never, or it has enough. *ret_enough_ms: when it has enough. */
static int64_t goes_ms(const struct hunt *hunt, const struct turner_group *group, uint32_t id,
		       int64_t *ret_enough_ms)
{
	const struct pass *pass = hunt->pass;
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);
	int64_t wait_ms = job_work_reaches_ms(pass->facts, job, turn_ran_ms(pass, attempt),
					      class_wanted(hunt, group->says)),
		stays = stays_ms(pass, job, attempt);

	*ret_enough_ms = wait_ms ? pass->facts->now_ms + wait_ms : INT64_MAX;
	if (!wait_ms || is_young(pass, id) || pass_job_leaves(pass, id))
		return INT64_MAX;
	return pass->facts->now_ms + (stays > wait_ms ? stays : wait_ms);
}

static void wake_at(const struct hunt *hunt, int64_t at_ms)
{
	if (at_ms != INT64_MAX)
		pass_wake(hunt->pass, at_ms);
}

/* The core is woken when the first of them may go: of those from number `first` on each has enough later than the one before. */
static void unsaid_wake(const struct hunt *hunt, const struct turner_group *group, uint32_t first)
{
	const struct sorted_pool *pool = &hunt->pass->view->pool;
	int64_t next_ms = INT64_MAX, enough_ms = 0;

	for (; first < sorted_size(pool, group->members) && enough_ms < next_ms; first++) {
		int64_t at_ms =
			goes_ms(hunt, group, sorted_at(pool, group->members, first), &enough_ms);

		next_ms = at_ms < next_ms ? at_ms : next_ms;
	}
	wake_at(hunt, next_ms);
}

/*
 * The same of those whose estimate is not over. Each has enough when that is over, or later: when it ran for so long that as much again is
 * enough. So they are looked at from both ends at once: by when their estimates end, from number `over` on, and by when they began, until
 * none of those left can be earlier.
 */
static void estimated_wake(const struct hunt *hunt, const struct turner_group *group, uint32_t over)
{
	const struct facts *facts = hunt->pass->facts;
	const struct sorted_pool *pool = &hunt->pass->view->pool;
	int64_t run_ms = work_class_run_ms(group->share, class_wanted(hunt, group->says)),
		next_ms = INT64_MAX, enough_ms;
	uint32_t count = sorted_size(pool, group->members);

	for (uint32_t begun = 0; over < count; over++, begun++) {
		uint32_t ends = sorted_at(pool, group->members, over),
			 began = sorted_at(pool, group->by_begin, begun);
		const struct job *job = job_get(facts, (struct job_id){ began });
		int64_t end_ms = turner_key_ms(job_view_get(hunt->pass->view, ends)->turner_key),
			began_ms =
				turner_key_ms(job_view_get(hunt->pass->view, began)->turner_key) -
				job->estimate_ms,
			at_ms;

		if (next_ms <= end_ms || next_ms - run_ms <= began_ms)
			break;
		at_ms = goes_ms(hunt, group, ends, &enough_ms);
		next_ms = at_ms < next_ms ? at_ms : next_ms;
		at_ms = goes_ms(hunt, group, began, &enough_ms);
		next_ms = at_ms < next_ms ? at_ms : next_ms;
	}
	wake_at(hunt, next_ms);
}

/*
 * Nothing declared: the first ones have most. From one to the next the class of the work only falls, and who comes to the next one
 * first is the first of each class; so both are worked out once for all of a class.
 */
static void unsaid_find(struct turns *turns, const struct turner_group *group)
{
	const struct pass *pass = turns->hunt->pass;
	int64_t enough_ms =
			work_class_from_ms(group->share, class_wanted(turns->hunt, group->says)),
		from_ms = INT64_MAX;
	struct turn_asked asked = { 0 };
	struct sorted_walk walk;
	uint32_t enough = 0;
	bool told;

	asked.told = &told;
	for (bool any = sorted_begin(&pass->view->pool, group->members, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		int64_t ran_ms = pass->facts->now_ms - turner_key_ms(walk.key);

		if (ran_ms < enough_ms)
			break;
		if (ran_ms < from_ms) {
			asked.class = work_class_of_run(group->share, ran_ms);
			from_ms = work_class_from_ms(group->share, asked.class);
			told = false;
		}
		asked.job = walk.id;
		asked.ran_ms = ran_ms - job_get(pass->facts, (struct job_id){ walk.id })->run_ms;
		turn_end(turns, &asked);
		enough++;
	}
	unsaid_wake(turns->hunt, group, enough);
}

/* Its time is over: it counts like one that declared nothing. */
static bool is_over(const struct pass *pass, const struct sorted_walk *walk)
{
	return walk->key <= turner_key_of(pass->facts->now_ms);
}

/* Declared: the last ones have most; and those whose time is over, the first ones, one by one. */
static void said_find(struct turns *turns, const struct turner_group *group)
{
	struct pass *pass = turns->hunt->pass;
	const struct sorted_pool *pool = &pass->view->pool;
	uint32_t over = 0, end = sorted_size(pool, group->members);
	struct turn_asked asked = { 0 };
	struct sorted_walk walk;
	int64_t enough_ms;

	for (bool any = sorted_begin(pool, group->members, &walk); any && is_over(pass, &walk);
	     any = sorted_next(pool, &walk), over++) {
		asked.job = walk.id;
		if (work_is_enough(turns->hunt, group, &asked))
			turn_end(turns, &asked);
		else
			wake_at(turns->hunt, goes_ms(turns->hunt, group, walk.id, &enough_ms));
	}
	for (; end > over; end--) {
		asked.job = sorted_at(pool, group->members, end - 1);
		if (!work_is_enough(turns->hunt, group, &asked))
			break;
		turn_end(turns, &asked);
	}
	if (end > over && group->says == SAYS_ESTIMATE)
		estimated_wake(turns->hunt, group, over);
}

void turns_find(struct turns *turns)
{
	const struct hunt *hunt = turns->hunt;
	const struct view *view = hunt->pass->view;
	uint32_t queue = hunt->j->queue.v, first;

	first = hunt->work ? turners_first(view, queue, hunt->rank) : 0;
	if (!first)
		return;
	pass_wake(hunt->pass, queue_mature_ms(hunt->pass, queue));
	for (uint32_t i = first; i; i = turners_next(view, i)) {
		const struct turner_group *group = &view->turner_groups.at[i];

		if (group->says == SAYS_NOTHING)
			unsaid_find(turns, group);
		else
			said_find(turns, group);
	}
}
