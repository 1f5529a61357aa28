/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places by speed, on two levels of leaves and spines with H100 hosts of 8 GPUs; the worked examples of README.md and split.c. A
 * cluster is drawn as "s0/l0:3 s0/l1:1*2": three free hosts under leaf l0, one host with two cards under l1.
 */
#include "base/testing.h"
#include "base/check.h"
#include "core/fabric/describe.h"
#include "core/fabric/known.h"
#include "core/placement/speed.h"

struct board {
	struct facts facts;
	struct space space;
	struct arena arena;
	int64_t makes[2 * MAKE_FIELDS], nodes[256], node_makes[256];
	uint32_t count;
};

static void put(struct board *b, struct event e)
{
	e.seq = b->facts.seq + 1;
	e.time_ms = 1;
	apply(&b->facts, &e);
}

static void node_put(struct board *b, const char *domains, bool few)
{
	struct event e = event_make(EVENT_NODE_SET, 1, "test");
	char name[16];

	snprintf(name, sizeof(name), "n%03u", b->count);
	e.node_set.name = name;
	e.node_set.gpus = 8;
	e.node_set.model = "H100-80GB";
	e.node_set.gpu_memory_mib = 81920;
	e.node_set.domains = domains;
	put(b, e);
	b->nodes[b->count] = b->count + 1;
	b->node_makes[b->count++] = few ? 2 : 1;
}

static void makes_put(struct board *b)
{
	for (int i = 0; i < 2; i++) {
		struct fabric_host host;

		assert_int_equal(fabric_host_default(&host, "H100-80GB"), 0);
		host.nics = i ? 2 : 8;
		host.nic_mbps = 48000;
		fabric_make_numbers(&host, b->makes + i * MAKE_FIELDS);
	}
}

/* over: between the leaves of a spine, in thousandths; -1 = nobody has described anything. */
static void fabric_put(struct board *b, int64_t over)
{
	int64_t levels[3 * FABRIC_LEVEL_FIELDS] = { 0 };
	struct event e = event_make(EVENT_FABRIC_SET, 1, "test");

	levels[FABRIC_LEVEL_FIELDS + 1] = over;
	e.fabric_set.levels = levels;
	e.fabric_set.levels_count = 3 * FABRIC_LEVEL_FIELDS;
	e.fabric_set.makes = b->makes;
	e.fabric_set.makes_count = over < 0 ? 0 : 2 * MAKE_FIELDS;
	e.fabric_set.nodes = b->nodes;
	e.fabric_set.node_makes = b->node_makes;
	e.fabric_set.nodes_count = e.fabric_set.node_makes_count = b->count;
	put(b, e);
}

static void board_init(struct board *b, const char *picture, int64_t over)
{
	struct event e = event_make(EVENT_LEVELS_SET, 1, "test");

	memset(b, 0, sizeof(*b));
	facts_init(&b->facts);
	space_init(&b->space);
	arena_init(&b->arena, 1 << 26);
	e.levels_set.levels = "spine,leaf";
	put(b, e);
	while (*picture) {
		char domains[16];
		size_t size = strcspn(picture, ":");
		unsigned long hosts;
		char *end;

		snprintf(domains, sizeof(domains), "%.*s", (int)size, picture);
		domains[strcspn(domains, "/")] = ',';
		hosts = strtoul(picture + size + 1, &end, 10);
		for (; hosts; hosts--)
			node_put(b, domains, end[0] == '*');
		picture = end + strcspn(end, " ");
		picture += *picture == ' ';
	}
	makes_put(b);
	fabric_put(b, over);
	space_build(&b->space, &b->facts);
}

static void board_deinit(struct board *b)
{
	space_verify(&b->space);
	space_deinit(&b->space);
	facts_deinit(&b->facts);
	arena_deinit(&b->arena);
}

static struct shape gang(uint32_t tasks, uint32_t gpus, uint32_t max_slowdown)
{
	return (struct shape){ .tasks_min = tasks,
			       .tasks_max = tasks,
			       .gpus = gpus,
			       .max_slowdown = max_slowdown,
			       .talks = max_slowdown ? 1 + KIND_TRAINING : 0 };
}

static int find(struct board *b, const struct shape *shape, struct placement *ret,
		struct verdict *why)
{
	struct place_request request = { .shape = shape,
					 .tasks = shape->tasks_min,
					 .rank = RANK_NONE };

	return place_find(&b->space, &request, &b->arena, ret, why);
}

/* Ranks of the hosts of a gang of whole hosts: "0 1 4". */
static const char *hosts_of(struct board *b, uint32_t hosts)
{
	const struct shape shape = gang(hosts, 8, 0);
	struct placement place;
	const char *text = "";

	if (find(b, &shape, &place, NULL))
		return "nowhere";
	for (uint32_t i = 0; i < place.count; i++)
		text = arena_printf(&b->arena, "%s%s%u", text, i ? " " : "", place.ranks[i]);
	return text;
}

static void the_examples_of_the_readme(void **state)
{
	static const struct {
		const char *cluster;
		int64_t over;
		uint32_t hosts;
		const char *ranks;
	} cases[] = {
		/* makes: those with 8 cards, whatever their names */
		{ "s0/l0:2* s0/l0:2", 1000, 2, "2 3" },
		{ "s0/l0:2* s0/l0:2", -1, 2, "0 1" },
		/* parts: 2 + 2 through 4:1, 3 + 1 where the spine is as fast */
		{ "s0/l0:3 s0/l1:3", 4000, 4, "0 1 3 4" },
		{ "s0/l0:3 s0/l1:3", 1000, 4, "0 1 2 3" },
		{ "s0/l0:4 s0/l1:3 s0/l2:3 s0/l3:2", 4000, 5, "4 5 6 10 11" },
		{ "s0/l0:1 s0/l1:3 s0/l2:2", 4000, 4, "1 2 4 5" },
		/* domains: the spine whose leaves let it be split */
		{ "s0/l0:3 s0/l1:1 s1/l2:2 s1/l3:2", 4000, 4, "4 5 6 7" },
		{ "s0/l0:3 s0/l1:1 s1/l2:2 s1/l3:2", -1, 4, "0 1 2 3" },
		/* the narrowest level all the same */
		{ "s0/l0:3* s0/l1:2 s0/l2:2", 1000, 3, "0 1 2" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct board b;

		board_init(&b, cases[i].cluster, cases[i].over);
		assert_string_equal(hosts_of(&b, cases[i].hosts), cases[i].ranks);
		board_deinit(&b);
	}
}

static void a_gang_that_limits_its_slowdown_gets_a_place_within_it_or_none(void **state)
{
	struct shape shape = gang(4, 8, 200);
	struct placement place;
	struct verdict why;
	struct place_speed speed;
	struct board b;

	(void)state;
	board_init(&b, "s0/l0:4 s0/l1:4", 4000);
	assert_int_equal(find(&b, &shape, &place, NULL), 0);
	assert_true(place_speed(&b.space, &shape, KIND_TRAINING, &place, &b.arena, &speed));
	assert_int_equal(speed.bandwidth_mbps, 372000);
	assert_int_equal(speed.slowdown_permille, 1000);
	for (uint32_t rank = 3; rank < 8; rank += rank == 3 ? 2 : 1)
		space_close(&b.space, rank); /* 3 free in l0, one in l1 */
	assert_int_equal(find(&b, &shape, &place, &why), PLACE_NO);
	assert_int_equal(why.code, REASON_SLOWDOWN);
	assert_int_equal(why.have, 719); /* 0.75 + 0.25 x 372 / 96, rounded up */
	assert_int_equal(why.need, 200);
	assert_int_equal(find(&b, &shape, NULL, NULL), PLACE_NO);
	shape.max_slowdown = 719;
	assert_int_equal(find(&b, &shape, NULL, NULL), 0);
	shape.max_slowdown = 718;
	assert_int_equal(find(&b, &shape, NULL, NULL), PLACE_NO);
	space_rollback(&b.space, 0);
	board_deinit(&b);
}

static uint32_t below(uint64_t *state, uint32_t limit)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*state >> 33) % limit;
}

/* One replica of several GPUs talks inside itself. */
static void a_replica_that_limits_its_slowdown_gets_a_fast_host_or_none(void **state)
{
	struct shape shape = gang(1, 4, 100);
	struct fabric_host slow;
	struct verdict why;
	struct board b;

	(void)state;
	shape.spread = 1;
	board_init(&b, "s0/l0:1 s0/l1:1*", 1000);
	assert_int_equal(fabric_host_default(&slow, "H100-80GB"), 0);
	slow.nvlink_mbps = slow.reduce_mbps = 0;
	fabric_make_numbers(&slow, b.makes + MAKE_FIELDS);
	fabric_put(&b, 1000);
	space_build(&b.space, &b.facts);
	assert_int_equal(find(&b, &shape, NULL, NULL), 0);
	space_close(&b.space, 0);
	assert_int_equal(find(&b, &shape, NULL, &why), PLACE_NO);
	assert_int_equal(why.code, REASON_SLOWDOWN);
	space_rollback(&b.space, 0);
	board_deinit(&b);
}

/* The same holes in a cluster that is described and in one that is not: the place of the first is never slower, of one level. */
static void the_choice_is_hardly_ever_slower_than_packing_alone(void **state)
{
	uint32_t tried = 0, slower = 0, faster = 0;
	uint64_t random = 7;

	(void)state;
	for (uint32_t round = 0; round < 300; round++) {
		const char *picture = "s0/l0:4 s0/l1:4* s0/l2:4 s1/l3:4 s1/l4:4 s1/l5:4*";
		struct shape shape = gang(2 + below(&random, 9), below(&random, 2) ? 8 : 4, 0);
		struct board with, without;
		struct placement a, b;
		struct fabric_estimate of_a, of_b;

		board_init(&with, picture, 1000 + 1000 * below(&random, 8));
		board_init(&without, picture, -1);
		for (uint32_t rank = 0; rank < with.space.node_count; rank++) {
			const struct hold hold = { .mask = below(&random, 3)   ? 0
							   : below(&random, 2) ? 0xff
									       : 0x0f };

			space_take(&with.space, rank, &hold);
			space_take(&without.space, rank, &hold);
		}
		assert_int_equal(find(&with, &shape, &a, NULL), find(&without, &shape, &b, NULL));
		if (find(&with, &shape, &a, NULL) == 0) {
			assert_int_equal(a.level, b.level);
			speed_estimate(&with.space, &a, &with.arena, &of_a);
			speed_estimate(&with.space, &b, &with.arena, &of_b);
			tried++;
			slower += speed_step(of_a.mbps) < speed_step(of_b.mbps);
			faster += speed_step(of_a.mbps) > speed_step(of_b.mbps);
		}
		board_deinit(&with);
		board_deinit(&without);
	}
	print_message("%u places: %u faster, %u slower\n", tried, faster, slower);
	assert_true(tried > 100);
	assert_true(faster > 10 * slower);
	assert_true(slower * 50 <= tried);
}

static void what_does_not_talk_is_placed_as_before(void **state)
{
	struct shape one = gang(1, 1, 0), replicas = gang(3, 1, 0);
	struct place_speed speed;
	struct placement place;
	struct board b;

	(void)state;
	replicas.spread = 1;
	board_init(&b, "s0/l0:2* s0/l1:2", 4000);
	assert_int_equal(find(&b, &one, &place, NULL), 0);
	assert_int_equal(place.ranks[0], 0);
	assert_false(place_speed(&b.space, &one, KIND_TRAINING, &place, &b.arena, &speed));
	assert_int_equal(find(&b, &replicas, &place, NULL), 0);
	assert_false(place_speed(&b.space, &replicas, KIND_INFERENCE, &place, &b.arena, &speed));
	board_deinit(&b);
}

static void steps_are_an_eighth_of_a_doubling_and_never_fall(void **state)
{
	uint32_t last = 0;

	(void)state;
	assert_int_equal(speed_step(0), 0);
	assert_int_equal(speed_step(370800), speed_step(372000));
	assert_int_equal(speed_step(2048) - speed_step(1024), 8);
	for (uint64_t mbps = 0; mbps < 100000; mbps++) {
		assert_true(speed_step(mbps) >= last);
		last = speed_step(mbps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_the_readme),
		cmocka_unit_test(a_gang_that_limits_its_slowdown_gets_a_place_within_it_or_none),
		cmocka_unit_test(a_replica_that_limits_its_slowdown_gets_a_fast_host_or_none),
		cmocka_unit_test(the_choice_is_hardly_ever_slower_than_packing_alone),
		cmocka_unit_test(what_does_not_talk_is_placed_as_before),
		cmocka_unit_test(steps_are_an_eighth_of_a_doubling_and_never_fall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
