/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "sim/rebuild.h"

enum { STEP_CAP = 1 << 30, ROUNDS_MAX = 3000 };
#define BUDGET_WHOLE (UINT64_C(1) << 40)

void world_init(struct world *w, int64_t now_ms)
{
	*w = (struct world){ .now_ms = now_ms, .look_every = 1, .budget = BUDGET_WHOLE };
	facts_init(&w->facts);
	w->view = view_create(&w->facts);
	engine_sim_init(&w->engine, now_ms);
	checks_init(&w->checks, now_ms);
	arena_init(&w->step, STEP_CAP);
	arena_init(&w->request, STEP_CAP);
}

void world_deinit(struct world *w)
{
	view_destroy(w->view);
	facts_deinit(&w->facts);
	engine_sim_deinit(&w->engine);
	checks_deinit(&w->checks);
	arena_deinit(&w->step);
	arena_deinit(&w->request);
	*w = (struct world){ 0 };
}

static uint64_t mix(uint64_t trail, uint64_t value)
{
	struct sim_random random = { trail ^ value };

	return sim_random_next(&random);
}

static void follow_trail(struct world *w, const struct event *e)
{
	AUTO_BUF text = BUF_INIT;

	event_encode(e, &text);
	w->trail = mix(w->trail, (uint64_t)e->time_ms ^ (uint64_t)e->kind << 56);
	for (size_t i = 0; i < text.size; i += 8) {
		uint64_t word = 0;

		memcpy(&word, text.data + i, text.size - i < 8 ? text.size - i : 8);
		w->trail = mix(w->trail, word);
	}
}

void world_apply(struct world *w, struct event *e, bool decision)
{
	e->seq = ++w->seq;
	checks_event(&w->checks, &w->facts, &w->engine, e);
	apply(&w->facts, e);
	view_follow(w->view, &w->facts, e);
	follow_trail(w, e);
	if (w->observe)
		w->observe(w->context, w, e, decision);
}

int world_offer(struct world *w, struct event *e, uint32_t *ret_job, struct err *err)
{
	uint32_t job = 0;
	int rc;

	arena_reset(&w->request);
	e->time_ms = w->now_ms;
	rc = core_admit(&w->facts, w->view, e, &w->request, &job, err);
	if (ret_job)
		*ret_job = job;
	if (rc != 0)
		return rc;
	world_apply(w, e, false);
	return 0;
}

/* Everything that costs as much as the whole state: facts and index are sound, and the index is
 * derived. */
static void look(struct world *w, const struct decisions *decided)
{
	struct err why = { 0 };

	facts_verify(&w->facts);
	view_verify(w->view, &w->facts);
	if (rebuild_check(&w->facts, decided, w->budget, &why) < 0)
		checks_problem(&w->checks, &w->facts, "%s", why.text);
	w->trail = mix(w->trail, facts_hash(&w->facts));
}

/* One turn of the core; how many decisions it made. */
static uint32_t turn(struct world *w)
{
	struct decisions decided;

	arena_reset(&w->step);
	decide_verify(&w->facts, w->view, &w->step);
	decide(&w->facts, w->view, w->budget, &w->step, &decided);
	if (++w->turns % w->look_every == 0)
		look(w, &decided);
	for (uint32_t i = 0; i < decided.count; i++) {
		world_apply(w, &decided.events[i], true);
		engine_sim_take(&w->engine, &w->facts, &decided.events[i]);
	}
	w->wake_ms = decided.wake_ms;
	return decided.count + decided.more;
}

static uint32_t take_reports(struct world *w)
{
	struct event e;
	struct err why;
	uint32_t count = 0;

	while (engine_sim_pop(&w->engine, &w->facts, w->now_ms, &e)) {
		count++;
		if (world_offer(w, &e, NULL, &why) < 0 && why.code == ERR_INTERNAL)
			checks_problem(&w->checks, &w->facts,
				       "a report of the engine is refused: %s", why.text);
	}
	return count;
}

/* The core is told what time it is: it asked to be woken. */
static void world_tick(struct world *w)
{
	struct event tick = event_make(EVENT_CLOCK_TICKED, w->now_ms, "fairlead");

	w->wake_ms = 0;
	world_apply(w, &tick, false);
}

void world_settle(struct world *w)
{
	for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
		uint32_t reports = take_reports(w), decisions = turn(w);

		if (reports || decisions)
			continue;
		/* The last thing that happened is older: work that runs since before the beginning, say. */
		if (w->wake_ms && w->wake_ms <= w->now_ms && w->facts.now_ms < w->now_ms) {
			world_tick(w);
			continue;
		}
		if (w->wake_ms && w->wake_ms <= w->now_ms) {
			checks_problem(&w->checks, &w->facts,
				       "the core asks to be woken at a time that has passed");
			w->wake_ms = 0;
		}
		checks_settled(&w->checks, &w->facts);
		return;
	}
	checks_problem(&w->checks, &w->facts,
		       "the core never comes to rest: %d turns at one instant", ROUNDS_MAX);
}

int64_t world_next_ms(const struct world *w)
{
	int64_t next_ms = engine_sim_next_ms(&w->engine);

	return w->wake_ms && w->wake_ms < next_ms ? w->wake_ms : next_ms;
}

bool world_is_quiet(const struct world *w)
{
	return !w->wake_ms && !engine_sim_is_busy(&w->engine);
}

void world_advance(struct world *w, int64_t to_ms)
{
	CHECK(to_ms >= w->now_ms);
	w->now_ms = to_ms;
	if (w->wake_ms && w->wake_ms <= to_ms)
		world_tick(w);
}

void world_check_still(struct world *w)
{
	struct event tick = event_make(EVENT_CLOCK_TICKED, w->now_ms + 1000, "fairlead");
	struct decisions decided;

	world_apply(w, &tick, false);
	arena_reset(&w->step);
	decide(&w->facts, w->view, w->budget, &w->step, &decided);
	for (uint32_t i = 0; i < decided.count; i++)
		if (decided.events[i].kind !=
		    EVENT_RESERVATIONS_REVIEWED) /* a look, not a change */
			checks_problem(&w->checks, &w->facts,
				       "at the end, one more step decides %s",
				       event_info(decided.events[i].kind)->name);
}
