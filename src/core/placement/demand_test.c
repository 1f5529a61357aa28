/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/placement/find.h"

#define TENTH (GPU_SHARE / 10)

enum { SHAPES_ROOM = 100 };

static struct facts f;
static struct space space;
static struct arena arena;
static uint32_t jobs[SHAPES_ROOM];

static void put(struct event *e)
{
	e->seq = f.seq + 1;
	apply(&f, e);
}

static int begin(void **state)
{
	struct event queue = event_make(EVENT_QUEUE_SET, 1, "test");

	queue.queue_set.name = "default";
	queue.queue_set.limit_share = -1;
	queue.queue_set.weight = 1;
	(void)state;
	facts_init(&f);
	space_init(&space);
	arena_init(&arena, 1 << 22);
	put(&queue);
	memset(jobs, 0, sizeof(jobs));
	return 0;
}

static int end(void **state)
{
	(void)state;
	space_deinit(&space);
	facts_deinit(&f);
	arena_deinit(&arena);
	return 0;
}

static void node_of(const char *name, const char *model, int64_t gpus, int64_t cpus)
{
	struct event e = event_make(EVENT_NODE_SET, 1, "test");

	e.node_set.name = name;
	e.node_set.gpus = gpus;
	e.node_set.model = model;
	e.node_set.gpu_memory_mib = 80000;
	e.node_set.cpu_milli = cpus * 1000;
	put(&e);
}

static void node(const char *name, int64_t gpus, int64_t cpus)
{
	node_of(name, "H100-80GB", gpus, cpus);
}

/* So many jobs ask for it; tenths 0 = whole GPUs. The shape. */
static struct shape_id wish(uint32_t count, int64_t gpus, int64_t tenths, int64_t cpu_milli)
{
	struct event e = event_make(EVENT_JOB_SUBMITTED, 1, "test");
	struct shape_id shape;

	e.job_submitted.job = (int64_t)f.jobs.count + 1;
	e.job_submitted.queue = "default";
	e.job_submitted.user = "ann";
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = 1;
	e.job_submitted.gpus = gpus;
	e.job_submitted.gpu_part = tenths * TENTH;
	e.job_submitted.cpu_milli = cpu_milli;
	put(&e);
	shape = job_get(&f, (struct job_id){ f.jobs.count })->shape;
	CHECK(shape.v < SHAPES_ROOM);
	jobs[shape.v] = count;
	return shape;
}

/* When all is described: so much of the GPU is held, in tenths. */
static void hold(uint32_t rank, uint32_t gpu, uint32_t tenths, int64_t cpus)
{
	space_take(&space, rank,
		   &(struct hold){ .mask = UINT32_C(1) << gpu,
				   .part = tenths < 10 ? tenths * TENTH : 0,
				   .sharer = 7,
				   .cpu_milli = cpus * 1000 });
	space_commit(&space);
}

static void demand(void)
{
	demand_set(&space, &f, jobs, f.shapes.count + 1, &arena);
}

/* "n1/4": its node and mask. */
static const char *place(struct shape_id shape)
{
	const struct place_request request = { .shape = shape_get(&f, shape),
					       .tasks = 1,
					       .rank = RANK_NONE };
	struct placement found;
	uint32_t number;

	CHECK(place_find(&space, &request, &arena, &found, NULL) == 0);
	number = space_at(&space, found.ranks[0])->node;
	return arena_printf(&arena, "%s/%x",
			    facts_name(&f, node_get(&f, (struct node_id){ number })->name),
			    found.masks[0]);
}

/* The example of demand.h. */
static void what_nobody_can_use_of_a_node_is_a_fragment(void **state)
{
	int64_t fragment;

	(void)state;
	node("n0", 2, 1);
	(void)wish(1, 1, 3, 1000);
	(void)wish(1, 1, 0, 1000);
	(void)wish(1, 1, 0, 8000);
	space_build(&space, &f);
	hold(0, 0, 6, 0);
	assert_int_equal(demand_fragment(&space, 0), 0); /* nothing is asked for yet */
	demand();
	fragment = demand_fragment(&space, 0);
	assert_in_range(fragment, 6 * TENTH - 20, 6 * TENTH);
}

/* The example of fragment.c. */
static void a_part_takes_the_gpu_of_which_it_leaves_least_in_vain(void **state)
{
	struct shape_id small;

	(void)state;
	node("n0", 1, 0);
	node("n1", 1, 0);
	small = wish(1, 1, 3, 0);
	(void)wish(1, 1, 6, 0);
	space_build(&space, &f);
	hold(0, 0, 6, 0);
	hold(1, 0, 4, 0);
	demand();
	assert_string_equal(place(small), "n0/1");
}

/* 0.4 and 0.7 are open. 0.3 in the 0.4 leaves a tenth that is of no use; in the 0.7 it leaves 0.4, which many ask for. */
static void the_tightest_gpu_is_left_alone_when_its_rest_would_be_of_no_use(void **state)
{
	struct shape_id small;

	(void)state;
	node("n0", 1, 0);
	node("n1", 1, 0);
	small = wish(1, 1, 3, 0);
	(void)wish(5, 1, 4, 0);
	space_build(&space, &f);
	hold(0, 0, 6, 0);
	hold(1, 0, 3, 0);
	assert_string_equal(place(small), "n0/1");
	demand();
	assert_string_equal(place(small), "n1/1");
}

/* Of 0.7 that is open 0.6 would leave 0.1 in vain, of the free GPU it leaves 0.4: if many ask for that. */
static void a_free_gpu_is_broken_when_that_leaves_less_in_vain_to_many(void **state)
{
	struct shape_id large, medium;

	(void)state;
	node("n0", 2, 0);
	large = wish(10, 1, 6, 0);
	medium = wish(89, 1, 4, 0);
	space_build(&space, &f);
	hold(0, 0, 3, 0);
	demand();
	assert_string_equal(place(large), "n0/1");
	jobs[medium.v] = 90;
	demand();
	assert_string_equal(place(large), "n0/2");
}

/* One more GPU is free on n1, beside which no processor is left. */
static void a_node_with_more_free_gpus_is_taken_when_many_ask_for_the_others(void **state)
{
	struct shape_id bare, wide;

	(void)state;
	node("n0", 2, 8);
	node("n1", 3, 8);
	bare = wish(1, 1, 0, 0);
	wide = wish(98, 1, 0, 4000);
	space_build(&space, &f);
	hold(0, 0, 10, 0);
	hold(1, 0, 10, 8);
	demand();
	assert_string_equal(place(bare), "n0/2");
	jobs[wide.v] = 99;
	demand();
	assert_string_equal(place(bare), "n1/2");
}

static void whole_gpus_go_where_processors_are_spent(void **state)
{
	struct shape_id bare;

	(void)state;
	node("n0", 2, 8);
	node("n1", 2, 8);
	bare = wish(1, 1, 0, 0);
	(void)wish(2, 1, 0, 4000);
	space_build(&space, &f);
	hold(0, 0, 10, 2);
	hold(1, 0, 10, 8);
	assert_string_equal(place(bare), "n0/2");
	demand();
	assert_string_equal(place(bare), "n1/2");
}

/* The task takes the last processor but seven of n0, so that a GPU there is of no use to one in `every`. Has it gone to n1 for that? */
static bool goes_to_the_other_node(uint32_t tasks, uint32_t every)
{
	struct shape_id part;

	node("n0", 2, 8);
	node("n1", 2, 9);
	part = wish(tasks, 1, 3, 1000);
	(void)wish(tasks / every, 1, 0, 8000);
	space_build(&space, &f);
	hold(0, 0, 7, 0);
	hold(1, 0, 7, 0);
	demand();
	return strcmp(place(part), "n1/1") == 0;
}

static void a_little_more_in_vain_counts_where_few_ask(void **state)
{
	(void)state;
	assert_true(goes_to_the_other_node(50, 25));
}

static void less_than_a_sixteenth_is_chance_where_many_ask(void **state)
{
	(void)state;
	assert_false(goes_to_the_other_node(500, 25));
}

static void more_than_a_sixteenth_is_none(void **state)
{
	(void)state;
	assert_true(goes_to_the_other_node(500, 2));
}

/* Whoever asked before keeps his slot, and what is said of him stays true: the same in any order. */
static void wishes_come_and_go_and_leave_nothing_behind(void **state)
{
	int64_t both, other;
	struct shape_id small;

	(void)state;
	node("n0", 2, 8);
	small = wish(3, 1, 3, 1000);
	(void)wish(3, 1, 0, 8000);
	(void)wish(3, 1, 9, 1000);
	space_build(&space, &f);
	hold(0, 0, 4, 4);
	demand();
	both = demand_fragment(&space, 0);
	jobs[small.v] = 0;
	demand();
	other = demand_fragment(&space, 0);
	assert_true(other > both);
	jobs[small.v] = 3;
	demand();
	assert_int_equal(demand_fragment(&space, 0), both);
	space_build(&space, &f);
	hold(0, 0, 4, 4);
	demand();
	assert_int_equal(demand_fragment(&space, 0), both);
}

static void where_all_want_whole_gpus_or_the_same_nothing_is_measured(void **state)
{
	(void)state;
	node("n0", 8, 0);
	(void)wish(3, 1, 0, 0);
	(void)wish(3, 8, 0, 0);
	space_build(&space, &f);
	demand();
	assert_int_equal(space.demand.count, 0);
	(void)wish(1, 1, 5, 0);
	space_build(&space, &f);
	demand();
	assert_int_equal(space.demand.count, 3);
	memset(jobs, 0, sizeof(jobs));
	(void)wish(4, 1, 2, 0);
	demand();
	assert_int_equal(space.demand.count, 0);
}

static void the_most_frequent_wishes_count_and_equally_frequent_ones_together(void **state)
{
	(void)state;
	node("n0", 8, 64);
	for (uint32_t i = 1; i <= DEMAND_WISHES; i++)
		(void)wish(2, 1, 0, 1000 * i);
	space_build(&space, &f);
	demand();
	assert_int_equal(space.demand.count, DEMAND_WISHES);
	(void)wish(1, 1, 1, 0); /* a rarer one has no room */
	space_build(&space, &f);
	demand();
	assert_int_equal(space.demand.count, DEMAND_WISHES);
	(void)wish(2, 1, 2,
		   0); /* of one more than have room none is more typical than the others */
	demand();
	assert_int_equal(space.demand.count, 0);
	(void)wish(3, 1, 3, 0);
	(void)wish(3, 1, 4, 0);
	demand();
	assert_int_equal(space.demand.count, 2);
	assert_int_equal(space.demand.wishes[0].weight, DEMAND_WEIGHT / 2);
}

/* Both wait; n1 is too small for one of them. */
static void readers_are_told_of_all_nodes_from_the_facts_alone(void **state)
{
	int64_t fragments[2];

	(void)state;
	node("n0", 1, 8);
	node("n1", 1, 1);
	(void)wish(1, 1, 0, 1000);
	(void)wish(1, 1, 0, 8000);
	demand_fragments(&f, &arena, fragments);
	assert_int_equal(fragments[0], 0);
	assert_int_equal(fragments[1], GPU_SHARE / 2);
}

/* A number below `end`; the same ones in each run. */
static uint32_t draw(uint64_t *state, uint32_t end)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33) % end;
}

/* A cluster of 90 nodes of two classes, of which one in `plain` is as an idle one but for GPUs that are held whole. */
static void cluster_draw(uint64_t *state, uint32_t plain)
{
	char name[16];

	for (uint32_t i = 0; i < 90; i++) {
		snprintf(name, sizeof(name), "n%02u", i);
		node_of(name, draw(state, 4) ? "H100-80GB" : "A100-80GB", 8, 64);
	}
	space_build(&space, &f);
	for (uint32_t rank = 0; rank < 90; rank++) {
		uint32_t held = draw(state, 5);

		for (uint32_t gpu = 0; gpu < held && gpu < 4; gpu++)
			hold(rank, gpu, draw(state, plain) ? 10 : 1 + draw(state, 9),
			     draw(state, plain) ? 0 : draw(state, 3));
	}
}

/* Nodes that are alike are passed over as a set; where all are taken to be odd, one by one. */
static void the_same_place_is_found_when_nodes_are_passed_over_one_by_one(void **state)
{
	uint64_t random = 1;
	uint32_t places = 0;

	for (uint32_t round = 0; round < 60; round++) {
		struct shape_id shapes[6];
		const char *found[6];

		(void)end(state);
		(void)begin(state);
		for (uint32_t i = 0; i < 6; i++)
			shapes[i] = wish(1 + draw(&random, round % 2 ? 100 : 10), i < 3 ? 1 : i - 1,
					 i < 3 ? 1 + 3 * i : 0, draw(&random, 3) * 1000);
		cluster_draw(&random, 1 + round % 6);
		demand();
		for (uint32_t i = 0; i < 6; i++)
			found[i] = place(shapes[i]);
		for (uint32_t rank = 0; rank < space.node_count; rank++)
			bits_add(space.odd.at, space.node_count, rank);
		for (uint32_t i = 0; i < 6; i++) {
			assert_string_equal(place(shapes[i]), found[i]);
			places++;
		}
	}
	assert_int_equal(places, 360);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_nobody_can_use_of_a_node_is_a_fragment, begin,
						end),
		cmocka_unit_test_setup_teardown(
			a_part_takes_the_gpu_of_which_it_leaves_least_in_vain, begin, end),
		cmocka_unit_test_setup_teardown(
			the_tightest_gpu_is_left_alone_when_its_rest_would_be_of_no_use, begin,
			end),
		cmocka_unit_test_setup_teardown(
			a_free_gpu_is_broken_when_that_leaves_less_in_vain_to_many, begin, end),
		cmocka_unit_test_setup_teardown(
			a_node_with_more_free_gpus_is_taken_when_many_ask_for_the_others, begin,
			end),
		cmocka_unit_test_setup_teardown(readers_are_told_of_all_nodes_from_the_facts_alone,
						begin, end),
		cmocka_unit_test_setup_teardown(whole_gpus_go_where_processors_are_spent, begin,
						end),
		cmocka_unit_test_setup_teardown(
			where_all_want_whole_gpus_or_the_same_nothing_is_measured, begin, end),
		cmocka_unit_test_setup_teardown(a_little_more_in_vain_counts_where_few_ask, begin,
						end),
		cmocka_unit_test_setup_teardown(less_than_a_sixteenth_is_chance_where_many_ask,
						begin, end),
		cmocka_unit_test_setup_teardown(more_than_a_sixteenth_is_none, begin, end),
		cmocka_unit_test_setup_teardown(wishes_come_and_go_and_leave_nothing_behind, begin,
						end),
		cmocka_unit_test_setup_teardown(
			the_most_frequent_wishes_count_and_equally_frequent_ones_together, begin,
			end),
		cmocka_unit_test_setup_teardown(
			the_same_place_is_found_when_nodes_are_passed_over_one_by_one, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
