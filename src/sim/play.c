/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/play.h"

#include <stdlib.h>

#include "base/check.h"

enum { STEP_CAP = 1 << 30, HEAP_FIRST = 64 };
#define BUDGET_WHOLE (UINT64_C(1) << 40)

/* --- what is to come -------------------------------------------------------------------------------------- */

static bool item_before(const struct play_item *a, const struct play_item *b)
{
	if (a->at_ms != b->at_ms)
		return a->at_ms < b->at_ms;
	return a->attempt != b->attempt ? a->attempt < b->attempt : a->what < b->what;
}

static void heap_push(struct play *p, struct play_item item)
{
	uint32_t at = p->item_count++;

	if (p->item_count > p->item_room) {
		p->item_room = p->item_room ? p->item_room * 2 : HEAP_FIRST;
		p->items = reallocarray(p->items, p->item_room, sizeof(*p->items));
		CHECK(p->items);
	}
	for (; at && item_before(&item, &p->items[(at - 1) / 2]); at = (at - 1) / 2)
		p->items[at] = p->items[(at - 1) / 2];
	p->items[at] = item;
}

static struct play_item heap_pop(struct play *p)
{
	struct play_item first = p->items[0], last = p->items[--p->item_count];
	uint32_t at = 0, child;

	for (; (child = 2 * at + 1) < p->item_count; at = child) {
		if (child + 1 < p->item_count &&
		    item_before(&p->items[child + 1], &p->items[child]))
			child++;
		if (!item_before(&p->items[child], &last))
			break;
		p->items[at] = p->items[child];
	}
	p->items[at] = last;
	return first;
}

/* --- events ------------------------------------------------------------------------------------------------- */

static void put(struct play *p, struct event *e)
{
	e->seq = ++p->seq;
	apply(&p->facts, e);
	view_follow(p->view, &p->facts, e);
}

void play_offer(struct play *p, struct event *e)
{
	e->time_ms = p->now_ms;
	put(p, e);
}

static struct event event_now(const struct play *p, enum event_kind kind)
{
	return event_make(kind, p->now_ms, "plan");
}

static void tick(struct play *p)
{
	struct event e = event_now(p, EVENT_CLOCK_TICKED);

	put(p, &e);
}

/* The live attempt of its job, else NULL: it may have ended meanwhile, and its job may be forgotten. */
static const struct attempt *live_get(const struct play *p, uint32_t id)
{
	const struct attempt *attempt = attempt_get(&p->facts, (struct attempt_id){ id });

	return attempt->job.v && job_get(&p->facts, attempt->job)->attempt.v == id ? attempt : NULL;
}

static void ranks_exit(struct play *p, uint32_t id, enum task_cause cause)
{
	const struct attempt *attempt = live_get(p, id);

	if (attempt && p->left)
		p->left(p->context, &p->facts, attempt->job.v);
	for (uint32_t rank = 0; attempt && rank < attempt->tasks; rank++) {
		struct event e = event_now(p, EVENT_TASK_EXITED);

		e.task_exited.attempt = id;
		e.task_exited.rank = rank;
		e.task_exited.launch = task_get(&p->facts, attempt, rank)->launch;
		e.task_exited.cause = cause;
		e.task_exited.at_ms = p->now_ms;
		e.task_exited.text = "";
		put(p, &e);
		attempt = live_get(p, id);
	}
}

static void rank_moves(struct play *p, uint32_t id, enum event_kind kind)
{
	const uint32_t tasks = attempt_get(&p->facts, (struct attempt_id){ id })->tasks;

	for (uint32_t rank = 0; rank < tasks; rank++) {
		struct event e = event_now(p, kind);

		if (kind == EVENT_TASK_READY) {
			e.task_ready.attempt = id;
			e.task_ready.rank = rank;
		} else {
			e.task_started.attempt = id;
			e.task_started.rank = rank;
			e.task_started.at_ms = p->now_ms;
		}
		put(p, &e);
	}
}

static void saves_next(struct play *p, uint32_t job, uint32_t id)
{
	const int64_t every_ms =
		p->saves_every_ms ? p->saves_every_ms(p->context, &p->facts, job) : 0;

	if (every_ms)
		heap_push(p, (struct play_item){ p->now_ms + every_ms, id, PLAY_SAVES_REGULARLY });
}

/* From the placing to running commands in no time: the release that decide would say is said here. */
static void attempt_starts(struct play *p, uint32_t id)
{
	struct event released = event_now(p, EVENT_ATTEMPT_RELEASED);
	uint32_t job = attempt_get(&p->facts, (struct attempt_id){ id })->job.v;

	rank_moves(p, id, EVENT_TASK_READY);
	released.attempt_released.attempt = id;
	put(p, &released);
	rank_moves(p, id, EVENT_TASK_STARTED);
	heap_push(p, (struct play_item){ p->now_ms + p->rest_ms(p->context, &p->facts, job, 0), id,
					 PLAY_ENDS });
	saves_next(p, job, id);
}

static void attempt_warned(struct play *p, uint32_t id)
{
	const struct attempt *attempt = live_get(p, id);
	int64_t half_ms;

	if (!attempt || !job_get(&p->facts, attempt->job)->checkpoints)
		return;
	half_ms = (attempt->deadline_ms - p->now_ms) / 2;
	heap_push(p, (struct play_item){ p->now_ms + (half_ms > 0 ? half_ms : 0), id, PLAY_SAVES });
}

static void attempt_saves(struct play *p, uint32_t id, bool regularly)
{
	const struct attempt *attempt = live_get(p, id);
	struct event e = event_now(p, EVENT_CHECKPOINT_SAVED);

	if (!attempt || attempt->state != ATTEMPT_ACTIVE || (!regularly && !attempt->warned_ms))
		return;
	if (regularly)
		saves_next(p, attempt->job.v, id);
	e.checkpoint_saved.job = attempt->job.v;
	e.checkpoint_saved.attempt = id;
	e.checkpoint_saved.number = job_get(&p->facts, attempt->job)->checkpoints_made + 1;
	e.checkpoint_saved.at_ms = p->now_ms;
	e.checkpoint_saved.path = "plan";
	put(p, &e);
}

/* --- the core's turn ------------------------------------------------------------------------------------------ */

static void follow(struct play *p, const struct event *e)
{
	if (e->kind == EVENT_ATTEMPT_PLACED) {
		if (p->placed)
			p->placed(p->context, &p->facts, (uint32_t)e->attempt_placed.job,
				  p->now_ms);
		attempt_starts(p, (uint32_t)e->attempt_placed.attempt);
	} else if (e->kind == EVENT_ATTEMPT_WARNED) {
		attempt_warned(p, (uint32_t)e->attempt_warned.attempt);
	} else if (e->kind == EVENT_ATTEMPT_STOPPED) {
		ranks_exit(p, (uint32_t)e->attempt_stopped.attempt, CAUSE_STOPPED);
	} else if (e->kind == EVENT_JOB_ENDED && p->ended) {
		p->ended(p->context, &p->facts, (uint32_t)e->job_ended.job, p->now_ms);
	}
}

/* All decisions of a turn are applied before the engine moves: the later ones may speak of the earlier ones. */
static bool turn(struct play *p)
{
	struct decisions decided;

	arena_reset(&p->step);
	decide(&p->facts, p->view, BUDGET_WHOLE, &p->step, &decided);
	p->turns++;
	p->wake_ms = decided.wake_ms;
	for (uint32_t i = 0; i < decided.count; i++)
		put(p, &decided.events[i]);
	for (uint32_t i = 0; i < decided.count; i++)
		follow(p, &decided.events[i]);
	return decided.count || decided.more;
}

bool play_settle(struct play *p)
{
	while (turn(p))
		if (p->turns_max && p->turns >= p->turns_max)
			return false;
	return true;
}

int64_t play_next_ms(const struct play *p)
{
	int64_t next_ms = p->item_count ? p->items[0].at_ms : PLAY_NEVER;

	if (p->wake_ms && p->wake_ms < next_ms)
		next_ms = p->wake_ms;
	/* The end of an attempt that was stopped before is no event: the core was asked by an older clock, and what it waits for may be over. */
	return next_ms > p->now_ms ? next_ms : p->now_ms;
}

void play_go(struct play *p, int64_t to_ms)
{
	CHECK(to_ms >= p->now_ms);
	p->now_ms = to_ms;
	if (p->wake_ms && p->wake_ms <= to_ms)
		tick(p);
	while (p->item_count && p->items[0].at_ms <= to_ms) {
		struct play_item item = heap_pop(p);

		if (item.what == PLAY_ENDS)
			ranks_exit(p, item.attempt, CAUSE_EXIT);
		else
			attempt_saves(p, item.attempt, item.what == PLAY_SAVES_REGULARLY);
	}
}

/* --- nodes ------------------------------------------------------------------------------------------------------ */

static void rank_lost(struct play *p, uint32_t id, const struct task *task, uint32_t rank)
{
	struct event e = event_now(p, EVENT_TASK_EXITED);

	e.task_exited.attempt = id;
	e.task_exited.rank = rank;
	e.task_exited.launch = task->launch;
	e.task_exited.cause = CAUSE_LOST;
	e.task_exited.at_ms = p->now_ms;
	e.task_exited.text = "";
	put(p, &e);
}

/* Of what has lost all its ranks the core says no more that it stops it. */
static void attempt_loses(struct play *p, uint32_t id, uint32_t node)
{
	const struct attempt *attempt = live_get(p, id);
	uint32_t there = 0;

	if (!attempt)
		return;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		there += task_get(&p->facts, attempt, rank)->node.v == node;
	if (there == attempt->tasks && p->left)
		p->left(p->context, &p->facts, attempt->job.v);
	for (uint32_t rank = 0; there && attempt && rank < attempt->tasks; rank++) {
		const struct task *task = task_get(&p->facts, attempt, rank);

		if (task->node.v == node)
			rank_lost(p, id, task, rank);
		attempt = live_get(p, id);
	}
}

void play_node(struct play *p, uint32_t node, bool there)
{
	struct event e = event_now(p, EVENT_NODE_STATE);

	e.node_state.node = node;
	e.node_state.state = there ? NODE_READY : NODE_DOWN;
	e.node_state.reason = there ? "" : "taken away";
	put(p, &e);
	for (uint32_t i = 0; !there && i < p->item_count; i++)
		if (p->items[i].what == PLAY_ENDS)
			attempt_loses(p, p->items[i].attempt, node);
}

/* --- the beginning ---------------------------------------------------------------------------------------------- */

static void attempt_goes_on(struct play *p, uint32_t job, uint32_t id)
{
	const struct attempt *attempt = attempt_get(&p->facts, (struct attempt_id){ id });
	int64_t age_ms = p->now_ms - attempt->released_ms;

	if (attempt->unreachable)
		return;
	if (attempt->state == ATTEMPT_STOPPING) {
		int64_t end_ms = attempt->deadline_ms;

		heap_push(p, (struct play_item){ end_ms > p->now_ms ? end_ms : p->now_ms, id,
						 PLAY_ENDS });
	} else if (attempt->state == ATTEMPT_PREPARING) {
		attempt_starts(p, id);
	} else if (attempt->state == ATTEMPT_ACTIVE) {
		heap_push(p, (struct play_item){
				     p->now_ms + p->rest_ms(p->context, &p->facts, job, age_ms), id,
				     PLAY_ENDS });
		if (attempt->warned_ms)
			attempt_warned(p, id);
	}
}

void play_init(struct play *p, const struct facts *facts, int64_t now_ms)
{
	facts_freeze(facts, &p->facts);
	p->view = view_create(&p->facts);
	arena_init(&p->step, STEP_CAP);
	p->items = NULL;
	p->item_count = p->item_room = 0;
	p->now_ms = now_ms > facts->now_ms ? now_ms : facts->now_ms;
	p->wake_ms = 0;
	p->turns = 0;
	p->seq = facts->seq;
	tick(p);
	for (uint32_t job = 1; job <= p->facts.jobs.count; job++) {
		uint32_t id = job_get(&p->facts, (struct job_id){ job })->attempt.v;

		if (id)
			attempt_goes_on(p, job, id);
	}
}

void play_deinit(struct play *p)
{
	view_destroy(p->view);
	facts_deinit(&p->facts);
	arena_deinit(&p->step);
	free(p->items);
}
