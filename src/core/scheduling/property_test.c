/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random worlds: nodes, queues, jobs, people who change their minds, an engine that does what it is told when chance
 * says so. world_decide checks after every decision that no GPU is given twice, gangs are whole, no queue passes its
 * limit, no critical job is told to leave, and that the followed view equals one built anew. Here besides:
 *
 *	the view is the same after decide as before
 *	a view built anew decides the same, event for event
 *	the same world with its nodes added in another order decides the same, by name
 *	deciding comes to rest: no two jobs evict each other in turn
 *	best-effort work that was started is not stopped again before anything else has happened (world_decide)
 */
#include <string.h>

#include "base/buf.h"
#include "core/scheduling/testing.h"
#include "core/scheduling/view/view.h"

enum { WORLDS = 60, STEPS = 150, NODES = 6, PASSES_MAX = 200 };

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	random_state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = random_state;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % limit);
}

/* Two worlds that live through the same, one with its nodes in another order. */
struct twins {
	struct world w[2];
};

static const char *const pictures[2] = {
	"r0: n0:4 n1:4 | r1: n2:4 n3:2 | r2: n4:8 n5:1",
	"r2: n5:1 n4:8 | r0: n1:4 n0:4 | r1: n3:2 n2:4",
};

static void twins_init(struct twins *t)
{
	int64_t grace_ms = below(2) ? 0 : 5000, min_ms = below(2) ? 0 : 3000,
		defragment = 1 + below(DEFRAGMENT_OFF);

	for (int i = 0; i < 2; i++) {
		world_init(&t->w[i], pictures[i]);
		world_policy(&t->w[i], grace_ms, min_ms);
		world_defragment(&t->w[i], defragment);
		world_queue(&t->w[i], "a", "", 6, -1, 1);
		world_queue(&t->w[i], "b", "", 4, 9, 2);
		world_queue(&t->w[i], "a1", "a", 2, 5, 1);
		world_queue(&t->w[i], "a2", "a", 3, -1, 1);
	}
}

/* --- what decide says, as text with names ------------------------------------------------------------ */

static const char *node_name(const struct world *w, int64_t node)
{
	return facts_name(&w->facts, node_get(&w->facts, (struct node_id){ (uint32_t)node })->name);
}

static void places_text(const struct world *w, const int64_t *nodes, const int64_t *masks,
			uint32_t count, struct buf *out)
{
	for (uint32_t i = 0; i < count; i++)
		buf_addf(out, " %s/%llx", node_name(w, nodes[i]), (unsigned long long)masks[i]);
}

/* Node numbers differ between the twins, so they are written by name. */
static void decisions_text(const struct world *w, const struct decisions *d, struct buf *out)
{
	for (uint32_t i = 0; i < d->count; i++) {
		struct event e = d->events[i];

		if (e.kind == EVENT_ATTEMPT_PLACED) {
			places_text(w, e.attempt_placed.nodes, e.attempt_placed.masks,
				    e.attempt_placed.nodes_count, out);
			e.attempt_placed.nodes_count = 0;
		} else if (e.kind == EVENT_ATTEMPT_GROWN) {
			places_text(w, e.attempt_grown.nodes, e.attempt_grown.masks,
				    e.attempt_grown.nodes_count, out);
			e.attempt_grown.nodes_count = 0;
		} else if (e.kind == EVENT_PROMISE_MADE) {
			places_text(w, e.promise_made.nodes, e.promise_made.masks,
				    e.promise_made.nodes_count, out);
			e.promise_made.nodes_count = 0;
		} else if (e.kind == EVENT_RESERVATION_SET) {
			places_text(w, e.reservation_set.nodes, e.reservation_set.masks,
				    e.reservation_set.nodes_count, out);
			e.reservation_set.nodes_count = 0;
		} else if (e.kind == EVENT_NODE_STATE) {
			buf_addf(out, " %s", node_name(w, e.node_state.node));
			e.node_state.node = 0;
		} else if (e.kind == EVENT_GPU_STATE) {
			buf_addf(out, " %s", node_name(w, e.gpu_state.node));
			e.gpu_state.node = 0;
		} else if (e.kind == EVENT_ATTEMPT_ENDED) {
			e.attempt_ended.blamed_nodes_count = 0;
		}
		buf_addf(out, " %s ", event_info(e.kind)->name);
		event_encode(&e, out);
		buf_addc(out, '\n');
	}
	buf_addf(out, "more %d wake %lld\n", d->more, (long long)d->wake_ms);
}

static void ask(struct world *w, struct view *view, struct buf *out)
{
	struct arena arena;
	struct decisions d;

	arena_init(&arena, (size_t)1 << 28);
	decide(&w->facts, view, 1000000, &arena, &d);
	decisions_text(w, &d, out);
	arena_deinit(&arena);
}

static void compare(struct twins *t)
{
	AUTO_BUF here = BUF_INIT;
	AUTO_BUF again = BUF_INIT;
	AUTO_BUF fresh = BUF_INIT;
	AUTO_BUF twin = BUF_INIT;
	struct view *view = view_create(&t->w[0].facts);

	ask(&t->w[0], t->w[0].view, &here);
	ask(&t->w[0], t->w[0].view, &again);
	ask(&t->w[0], view, &fresh);
	ask(&t->w[1], t->w[1].view, &twin);
	assert_string_equal(buf_text(&here), buf_text(&again));
	assert_string_equal(buf_text(&here), buf_text(&fresh));
	assert_string_equal(buf_text(&here), buf_text(&twin));
	view_destroy(view);
}

/* --- what happens ------------------------------------------------------------------------------------------ */

static void submit(struct twins *t)
{
	static const char *const queues[] = { "default", "a", "b", "a1", "a2" };
	struct wish wish = { .queue = queues[below(5)],
			     .tasks = 1 + below(4),
			     .gpus = below(5),
			     .priority = (int64_t)below(3) - 1 };

	wish.tasks_max = wish.tasks + (below(4) == 0 ? below(4) : 0);
	wish.require = below(4) ? "" : below(2) ? "rack" : "node";
	wish.best_effort = below(4) == 0;
	wish.tier = below(5) == 0 ? TIER_CRITICAL : TIER_STANDARD;
	wish.checkpoint = below(2);
	wish.polite = below(6) == 0;
	wish.kind = below(6) == 0 ? KIND_INFERENCE : KIND_BATCH;
	wish.limit_ms = below(3) ? 0 : 1000 + below(20000);
	wish.retries = below(2);
	if (wish.gpus == 0)
		wish.gpus = 1;
	if (wish.gpus == 1 && below(2))
		wish.part = 6300 * (1 + below(9));
	wish.user = below(3) ? "ann" : "ben";
	for (int i = 0; i < 2; i++)
		(void)world_submit(&t->w[i], wish);
}

static const struct attempt *attempt_of(const struct world *w, uint32_t job)
{
	struct attempt_id id = job_get(&w->facts, (struct job_id){ job })->attempt;

	return id.v ? attempt_get(&w->facts, id) : NULL;
}

/* The engine does the next thing for this job. */
static void engine_step(struct twins *t, uint32_t job)
{
	uint32_t what = below(10);

	for (int i = 0; i < 2; i++) {
		struct world *w = &t->w[i];
		const struct attempt *a = attempt_of(w, job);

		if (!a || a->exited == a->tasks)
			continue;
		if (a->state == ATTEMPT_STOPPING) {
			for (uint32_t rank = 0, tasks = a->tasks; rank < tasks; rank++)
				world_exit_rank(w, job, rank, CAUSE_STOPPED, 0);
		} else if (a->state == ATTEMPT_PREPARING && a->ready < a->tasks) {
			if (what == 0)
				world_exit_rank(w, job, 0, CAUSE_START, 0);
			else
				world_ready(w, job);
		} else if (a->state == ATTEMPT_ACTIVE && a->started < a->tasks) {
			world_start(w, job);
		} else if (what < 4) {
			world_exit(w, job, what == 0);
		} else if (what == 4) {
			world_exit_rank(w, job, 0, CAUSE_LOST, 0);
		} else if (job_get(&w->facts, (struct job_id){ job })->checkpoints) {
			world_saved(w, job);
		}
	}
}

static void node_change(struct twins *t)
{
	uint32_t node = below(NODES), state = below(3) == 0 ? NODE_READY
					      : below(2)    ? NODE_DRAINING
							    : NODE_CORDONED;
	char name[16];

	snprintf(name, sizeof(name), "n%u", node);
	for (int i = 0; i < 2; i++) {
		struct event e = world_event(&t->w[i], EVENT_NODE_STATE);

		e.node_state.node = facts_node_find(&t->w[i].facts, name).v;
		e.node_state.state = state;
		world_apply(&t->w[i], &e);
	}
}

static void person_acts(struct twins *t, uint32_t job, uint32_t what)
{
	for (int i = 0; i < 2; i++) {
		struct event held = world_event(&t->w[i], EVENT_JOB_HELD),
			     released = world_event(&t->w[i], EVENT_JOB_RELEASED);
		struct event priority = world_event(&t->w[i], EVENT_JOB_PRIORITY_SET);

		held.job_held.job = released.job_released.job = priority.job_priority_set.job = job;
		priority.job_priority_set.priority = (int64_t)what - 2;
		if (what == 0)
			world_cancel(&t->w[i], job);
		else if (what == 1)
			world_apply(&t->w[i], &held);
		else
			world_apply(&t->w[i], what == 2 ? &released : &priority);
	}
}

static void settle(struct twins *t)
{
	compare(t);
	for (int i = 0; i < 2; i++)
		world_decide(&t->w[i]);
	compare(t);
}

static void step(struct twins *t)
{
	uint32_t jobs = t->w[0].facts.jobs.count, what = below(20);
	int64_t later_ms = t->w[0].now_ms + below(below(3) ? 3000 : 20000);

	if (what < 6 || !jobs)
		submit(t);
	else if (what < 14)
		engine_step(t, 1 + below(jobs));
	else if (what < 15)
		node_change(t);
	else if (what < 17)
		person_acts(t, 1 + below(jobs), below(6));
	else
		for (int i = 0; i < 2; i++)
			world_at(&t->w[i], later_ms);
	settle(t);
}

/* All nodes are back, the engine does everything at once: it must come to rest. */
static void calm(struct twins *t)
{
	for (uint32_t n = 1; n <= NODES; n++) {
		for (int i = 0; i < 2; i++) {
			struct event e = world_event(&t->w[i], EVENT_NODE_STATE);

			e.node_state.node = n;
			e.node_state.state = NODE_READY;
			world_apply(&t->w[i], &e);
		}
	}
	for (int i = 0; i < 2; i++) {
		world_at(&t->w[i], t->w[i].now_ms + 100000);
		world_run(&t->w[i]);
		t->w[i].decisions = 0;
		world_decide(&t->w[i]);
		assert_int_equal(t->w[i].decisions, 0);
	}
	compare(t);
}

static void random_worlds_keep_their_promises(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		struct twins t;

		random_state = seed;
		print_message("seed %llu\n", (unsigned long long)seed);
		twins_init(&t);
		for (int i = 0; i < STEPS; i++)
			step(&t);
		calm(&t);
		for (int i = 0; i < 2; i++)
			world_deinit(&t.w[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_worlds_keep_their_promises) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
