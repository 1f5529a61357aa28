/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted sets against a plain array; shares against figures worked out by hand. */
#include "core/scheduling/testing.h"

#include <string.h>

#include "core/scheduling/view/sorted.h"
#include "core/scheduling/queues/standing.h"

/* --- sorted sets ------------------------------------------------------------------------------------- */

static uint64_t random_state = 11;

static uint32_t below(uint32_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(random_state >> 33) % limit;
}

enum { MEMBERS = 400 };

static void set_is(const struct sorted_pool *pool, uint32_t root, const bool in[MEMBERS])
{
	struct sorted_walk walk;
	uint32_t count = 0, next = 0;

	for (bool any = sorted_begin(pool, root, &walk); any;
	     any = sorted_next(pool, &walk), next++) {
		while (next < MEMBERS && !in[next])
			next++;
		assert_int_equal(walk.key, next / 10);
		assert_int_equal(walk.id, next);
		assert_int_equal(sorted_before(pool, root, walk.key, walk.id), count);
		count++;
	}
	while (next < MEMBERS)
		assert_false(in[next++]);
	assert_int_equal(sorted_size(pool, root), count);
}

static void a_sorted_set_is_what_was_added_and_not_removed(void **state)
{
	bool in[2][MEMBERS] = { { false } };
	uint32_t root[2] = { 0 };
	struct sorted_pool pool;

	(void)state;
	sorted_init(&pool);
	for (int i = 0; i < 20000; i++) {
		uint32_t set = below(2), member = below(MEMBERS);

		assert_int_equal(sorted_has(&pool, root[set], member / 10, member),
				 in[set][member]);
		if (in[set][member])
			sorted_remove(&pool, &root[set], member / 10, member);
		else
			sorted_add(&pool, &root[set], member / 10, member);
		in[set][member] = !in[set][member];
		if (i % 500 == 0)
			set_is(&pool, root[set], in[set]);
	}
	set_is(&pool, root[0], in[0]);
	set_is(&pool, root[1], in[1]);
	sorted_deinit(&pool);
}

/* --- shares ----------------------------------------------------------------------------------------------- */

static int64_t share_of(struct world *w, const char *queue)
{
	struct standings s;

	view_refresh(w->view, &w->facts);
	standings_make(&s, &w->facts, w->view, &w->step);
	return s.at[facts_queue_find(&w->facts, queue).v].share;
}

static void want(struct world *w, const char *queue, uint32_t gpus, enum tier tier)
{
	while (gpus--)
		(void)world_submit(w, (struct wish){ .queue = queue, .tier = tier });
}

static void guarantees_come_first_the_rest_by_weight_and_what_is_not_wanted_passes_on(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:12");
	world_queue(&w, "a", "", 6, -1, 1);
	world_queue(&w, "b", "", 0, -1, 1);
	world_queue(&w, "c", "", 0, -1, 3);
	want(&w, "a", 2, TIER_STANDARD);
	want(&w, "b", 9, TIER_STANDARD);
	want(&w, "c", 4, TIER_STANDARD);
	assert_int_equal(share_of(&w, "a"), 2 * GPU_SHARE);
	assert_int_equal(share_of(&w, "b"), 6 * GPU_SHARE);
	assert_int_equal(share_of(&w, "c"), 4 * GPU_SHARE);
	world_deinit(&w);
}

static void thirds_are_exact(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:32");
	world_queue(&w, "a", "", 0, -1, 1);
	world_queue(&w, "b", "", 0, -1, 1);
	world_queue(&w, "c", "", 0, -1, 1);
	want(&w, "a", 32, TIER_STANDARD);
	want(&w, "b", 32, TIER_STANDARD);
	want(&w, "c", 32, TIER_STANDARD);
	assert_int_equal(share_of(&w, "a") * 3, 32 * GPU_SHARE);
	assert_int_equal(share_of(&w, "b"), share_of(&w, "c"));
	world_deinit(&w);
}

static void a_childs_share_comes_from_its_parents(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:12");
	world_queue(&w, "a", "", 8, -1, 1);
	world_queue(&w, "b", "", 4, -1, 1);
	world_queue(&w, "a1", "a", 2, -1, 1);
	world_queue(&w, "a2", "a", 0, 3, 1);
	want(&w, "a1", 20, TIER_STANDARD);
	want(&w, "a2", 20, TIER_STANDARD);
	want(&w, "b", 1, TIER_STANDARD);
	assert_int_equal(share_of(&w, "b"), 1 * GPU_SHARE);
	assert_int_equal(share_of(&w, "a"), 11 * GPU_SHARE);
	assert_int_equal(share_of(&w, "a2"), 3 * GPU_SHARE); /* its limit */
	assert_int_equal(share_of(&w, "a1"), 8 * GPU_SHARE);
	world_deinit(&w);
}

static void when_guarantees_do_not_fit_critical_work_comes_first(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	world_queue(&w, "a", "", 8, -1, 1);
	world_queue(&w, "b", "", 8, -1, 1);
	want(&w, "a", 6, TIER_CRITICAL);
	want(&w, "b", 8, TIER_STANDARD);
	assert_int_equal(share_of(&w, "a"), 6 * GPU_SHARE);
	assert_int_equal(share_of(&w, "b"), 2 * GPU_SHARE);
	world_deinit(&w);
}

static void best_effort_work_and_jobs_wider_than_the_cluster_want_no_share(void **state)
{
	struct standings s;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	world_queue(&w, "a", "", 0, -1, 1);
	world_queue(&w, "b", "", 0, -1, 1);
	(void)world_submit(&w, (struct wish){ .queue = "a", .best_effort = true, .tasks = 8 });
	(void)world_submit(&w, (struct wish){ .queue = "a", .tasks = 9 });
	world_run(&w); /* the best-effort job runs */
	standings_make(&s, &w.facts, w.view, &w.step);
	assert_int_equal(s.at[facts_queue_find(&w.facts, "a").v].use, 0);
	assert_int_equal(s.at[facts_queue_find(&w.facts, "a").v].hold, 8 * GPU_SHARE);
	want(&w, "b", 20, TIER_STANDARD);
	assert_int_equal(share_of(&w, "a"), 0);
	assert_int_equal(share_of(&w, "b"), 8 * GPU_SHARE);
	world_deinit(&w);
}

/* Limits above the cluster, a guarantee above it, and far more waiting than there is room for: each job more changes nothing. */
static void demands_beyond_what_can_be_had_are_all_alike(void **state)
{
	static const char *const names[] = { "a", "a1", "a2", "b", "c" };
	struct standings once, again;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	world_queue(&w, "a", "", 12, -1, 2);
	world_queue(&w, "a1", "a", 0, 30, 1);
	world_queue(&w, "a2", "a", 0, -1, 3);
	world_queue(&w, "b", "", 0, 20, 1);
	world_queue(&w, "c", "", 0, -1, 1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (int k = 0; k < 90; k++)
			(void)world_submit(&w,
					   (struct wish){ .queue = names[i], .tasks = 1 + k % 3 });
	standings_make(&once, &w.facts, w.view, &w.step);
	assert_true(once.enough >= 30 * GPU_SHARE);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (int k = 0; k < 300; k++)
			(void)world_submit(&w, (struct wish){ .queue = names[i], .tasks = 1 });
	standings_make(&again, &w.facts, w.view, &w.step);
	for (uint32_t id = 0; id < once.count; id++)
		assert_int_equal(once.at[id].share, again.at[id].share);
	standings_make_like(&again, &w.facts, w.view, &once, &w.step);
	for (uint32_t id = 0; id < once.count; id++)
		assert_int_equal(once.at[id].share, again.at[id].share);
	world_deinit(&w);
}

static int64_t default_guarantee(struct world *w)
{
	struct queue_id queue = facts_queue_find(&w->facts, "default");
	struct standings s;

	view_refresh(w->view, &w->facts);
	standings_make(&s, &w->facts, w->view, &w->step);
	assert_int_equal(s.at[queue.v].guarantee, queue_guarantee(&w->facts, queue));
	return s.at[queue.v].guarantee / GPU_SHARE;
}

static void node_becomes(struct world *w, int64_t node, enum node_state to)
{
	struct event e = world_event(w, EVENT_NODE_STATE);

	e.node_state.node = node;
	e.node_state.state = to;
	world_apply(w, &e);
}

/* Without a look at each node: the GPUs that exist are counted with the space, those too that can't be used now. */
static void node_is_set(struct world *w, const char *name, int64_t gpus)
{
	struct event e = world_event(w, EVENT_NODE_SET);

	e.node_set.name = name;
	e.node_set.gpus = gpus;
	world_apply(w, &e);
}

static void the_default_queue_owns_what_exists_however_nodes_come_and_go(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:12 n1:4");
	world_queue(&w, "a", "", 8, -1, 1);
	assert_int_equal(default_guarantee(&w), 8);
	node_becomes(&w, 2, NODE_CORDONED);
	assert_int_equal(default_guarantee(&w), 8);
	node_is_set(&w, "n2", 2); /* the space is built anew, n1 is in it and can't be used */
	assert_int_equal(default_guarantee(&w), 10);
	node_becomes(&w, 2, NODE_GONE);
	assert_int_equal(default_guarantee(&w), 6);
	node_becomes(&w, 1, NODE_GONE);
	assert_int_equal(default_guarantee(&w), 0);
	node_is_set(&w, "n1", 16);
	assert_int_equal(default_guarantee(&w), 10);
	world_deinit(&w);
}

static void the_default_queue_owns_what_nobody_else_is_promised(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:12");
	world_queue(&w, "a", "", 8, -1, 1);
	assert_int_equal(queue_guarantee(&w.facts, facts_queue_find(&w.facts, "default")),
			 4 * GPU_SHARE);
	world_queue(&w, "b", "", 8, -1, 1);
	assert_int_equal(queue_guarantee(&w.facts, facts_queue_find(&w.facts, "default")), 0);
	world_deinit(&w);
}

/* Sums that the index keeps, or each bucket looked at: the same. A job wider than the cluster makes the second necessary. */
static void what_a_queue_wants_is_the_same_summed_up_and_counted(void **state)
{
	struct world w;
	struct standings sums, counted;
	uint32_t a;

	(void)state;
	world_init(&w, "n0:12 n1:12");
	world_queue(&w, "a", "", 0, -1, 1);
	world_queue(&w, "b", "", 9, -1, 1);
	for (uint32_t i = 0; i < 3; i++)
		(void)world_submit(
			&w, (struct wish){ .queue = "a", .tasks = 1 + i % 2, .gpus = 1 + i });
	(void)world_submit(&w, (struct wish){ .queue = "a", .best_effort = true });
	want(&w, "b", 2, TIER_CRITICAL);
	want(&w, "b", 4, TIER_STANDARD);
	a = facts_queue_find(&w.facts, "a").v;
	view_refresh(w.view, &w.facts);
	standings_make(&sums, &w.facts, w.view, &w.step);
	assert_int_equal(sums.at[a].wait, (1 + 4 + 3) * GPU_SHARE);
	assert_int_equal(sums.at[a].wait_critical, 0);
	assert_int_equal(sums.at[a + 1].wait, 6 * GPU_SHARE);
	assert_int_equal(sums.at[a + 1].wait_critical, 2 * GPU_SHARE);
	(void)world_submit(&w, (struct wish){ .queue = "a", .tasks = 5, .gpus = 8 });
	(void)world_submit(&w, (struct wish){ .queue = "b", .tasks = 5, .gpus = 8 });
	standings_make(&counted, &w.facts, w.view, &w.step);
	for (uint32_t id = 0; id < sums.count; id++) {
		assert_int_equal(sums.at[id].wait, counted.at[id].wait);
		assert_int_equal(sums.at[id].wait_critical, counted.at[id].wait_critical);
		assert_int_equal(sums.at[id].wants, counted.at[id].wants);
		assert_int_equal(sums.at[id].share, counted.at[id].share);
	}
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sorted_set_is_what_was_added_and_not_removed),
		cmocka_unit_test(
			guarantees_come_first_the_rest_by_weight_and_what_is_not_wanted_passes_on),
		cmocka_unit_test(thirds_are_exact),
		cmocka_unit_test(a_childs_share_comes_from_its_parents),
		cmocka_unit_test(when_guarantees_do_not_fit_critical_work_comes_first),
		cmocka_unit_test(best_effort_work_and_jobs_wider_than_the_cluster_want_no_share),
		cmocka_unit_test(demands_beyond_what_can_be_had_are_all_alike),
		cmocka_unit_test(what_a_queue_wants_is_the_same_summed_up_and_counted),
		cmocka_unit_test(the_default_queue_owns_what_nobody_else_is_promised),
		cmocka_unit_test(the_default_queue_owns_what_exists_however_nodes_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
