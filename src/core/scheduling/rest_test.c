/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/testing.h"

#include "core/scheduling/view/view.h"

static bool at_rest(const struct world *w)
{
	return rest_holds(&w->view->rest, &w->facts);
}

/* `wide` is blocked behind `long` and has its place reserved: the pass has looked, and that is all. */
static void world_blocked(struct world *w)
{
	uint32_t runs;

	world_init(w, "n0:4");
	runs = world_submit(w, (struct wish){ .gpus = 3, .limit_ms = 1860000 });
	world_run(w);
	assert_int_equal(world_running(w, runs), 1);
	(void)world_submit(w, (struct wish){ .gpus = 4, .limit_ms = 60000 });
}

static void decide_once(struct world *w, struct decisions *ret)
{
	arena_reset(&w->step);
	decide(&w->facts, w->view, 1000000, &w->step, ret);
}

static void a_pass_that_only_looked_shows_that_another_decides_nothing(void **state)
{
	struct world w;
	struct decisions d;
	int64_t wake_ms;

	(void)state;
	world_blocked(&w);
	decide_once(&w, &d);
	assert_int_equal(d.count, 2);
	assert_int_equal(d.events[0].kind, EVENT_RESERVATION_SET);
	assert_int_equal(d.events[1].kind, EVENT_RESERVATIONS_REVIEWED);
	assert_false(d.more);
	wake_ms = d.wake_ms;
	world_apply(&w, &d.events[0]);
	assert_false(at_rest(&w)); /* not all of it has happened yet */
	world_apply(&w, &d.events[1]);
	assert_true(at_rest(&w));
	decide_verify(&w.facts, w.view, &w.step);
	decide_once(&w, &d);
	assert_int_equal(d.count, 0);
	assert_int_equal(d.wake_ms, wake_ms);
	world_deinit(&w);
}

static void whatever_else_happens_ends_the_rest(void **state)
{
	struct world w;

	(void)state;
	world_blocked(&w);
	world_decide(&w);
	assert_true(at_rest(&w));
	(void)world_submit(&w, (struct wish){ .gpus = 8 }); /* that never has a place */
	assert_false(at_rest(&w));
	world_decide(&w);
	assert_true(at_rest(&w));
	world_at(&w, w.now_ms + 1000);
	assert_false(at_rest(&w));
	world_deinit(&w);
}

static void another_decision_than_the_one_of_the_pass_is_no_rest(void **state)
{
	struct world w;
	struct decisions d;
	struct event other;

	(void)state;
	world_blocked(&w);
	decide_once(&w, &d);
	other = d.events[0];
	other.reservation_set.job = 1;
	world_apply(&w, &other);
	world_apply(&w, &d.events[1]);
	assert_false(at_rest(&w));
	world_deinit(&w);
}

static void after_a_start_the_next_pass_is_run(void **state)
{
	struct world w;
	struct decisions d;

	(void)state;
	world_init(&w, "n0:4");
	(void)world_submit(&w, (struct wish){ .gpus = 1 });
	decide_once(&w, &d);
	assert_int_equal(d.count, 1);
	world_apply(&w, &d.events[0]);
	assert_false(at_rest(&w));
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pass_that_only_looked_shows_that_another_decides_nothing),
		cmocka_unit_test(whatever_else_happens_ends_the_rest),
		cmocka_unit_test(another_decision_than_the_one_of_the_pass_is_no_rest),
		cmocka_unit_test(after_a_start_the_next_pass_is_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
