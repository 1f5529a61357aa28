/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places, on clusters drawn in one line: "r0: n0:8 n1:8/5 | r1: n2:4" is two racks; n1 has 8 GPUs of which 5 are busy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "core/placement/find.h"

struct board {
	struct facts facts;
	struct space space;
	struct arena arena;
};

static void put(struct board *b, struct event *e)
{
	e->seq = b->facts.seq + 1;
	apply(&b->facts, e);
}

static uint32_t number(const char **text)
{
	uint32_t n = 0;

	while (**text >= '0' && **text <= '9')
		n = n * 10 + (uint32_t)(*(*text)++ - '0');
	return n;
}

/* The GPU's model is A for nodes whose name begins with an a, else H. Nodes named i.. have two islands. */
static void take(struct space *space, uint32_t rank, uint32_t mask)
{
	space_take(space, rank, &(struct hold){ .mask = mask });
}

static void node_put(struct board *b, const char *name, const char *rack, uint32_t gpus)
{
	struct event e = event_make(EVENT_NODE_SET, 1, "test");
	int64_t islands[2] = { (1 << gpus / 2) - 1, ((1 << gpus) - 1) & ~((1 << gpus / 2) - 1) };

	e.node_set.name = name;
	e.node_set.domains = rack;
	e.node_set.gpus = gpus;
	e.node_set.model = *name == 'a' ? "A" : "H";
	e.node_set.gpu_memory_mib = *name == 'a' ? 40960 : 81920;
	e.node_set.cpu_milli = 32000;
	e.node_set.ram_mib = 256 * 1024;
	if (*name == 'i') {
		e.node_set.nvlink_islands = islands;
		e.node_set.nvlink_islands_count = 2;
	}
	put(b, &e);
}

static void board_init(struct board *b, const char *picture)
{
	struct event levels = event_make(EVENT_LEVELS_SET, 1, "test");
	char name[16], rack[16] = "";
	uint32_t busy[32] = { 0 }, nodes = 0;

	facts_init(&b->facts);
	space_init(&b->space);
	arena_init(&b->arena, 1 << 24);
	levels.levels_set.levels = "rack";
	put(b, &levels);
	while (*picture) {
		size_t size = strcspn(picture, ": |");

		if (size == 0) {
			picture++;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)size, picture);
		picture += size + 1;
		if (*picture < '0' || *picture > '9') {
			memcpy(rack, name, sizeof(rack));
			continue;
		}
		node_put(b, name, rack, number(&picture));
		if (*picture == '/') {
			picture++;
			busy[nodes] = number(&picture);
		}
		nodes++;
	}
	space_build(&b->space, &b->facts);
	for (uint32_t n = 0; n < nodes; n++)
		take(&b->space, (uint32_t)space_rank(&b->space, n + 1), (1U << busy[n]) - 1);
	space_commit(&b->space);
}

static void board_deinit(struct board *b)
{
	space_deinit(&b->space);
	facts_deinit(&b->facts);
	arena_deinit(&b->arena);
}

static const char *node_text(const struct board *b, uint32_t rank)
{
	return facts_name(
		&b->facts,
		node_get(&b->facts, (struct node_id){ space_at(&b->space, rank)->node })->name);
}

/* "n0/3 n1/c": nodes with masks by rank; or the reason and figures: "topology 2 of 4". */
static const char *answer(struct board *b, const struct place_request *r)
{
	struct placement place;
	struct verdict why = { 0 };
	const char *text = "";

	if (place_find(&b->space, r, &b->arena, &place, &why))
		return arena_printf(&b->arena, "%s %lld of %lld",
				    reason_name((enum reason)why.code), (long long)why.have,
				    (long long)why.need);
	for (uint32_t i = 0; i < place.count; i++)
		text = arena_printf(&b->arena, "%s%s%s/%x", text, i ? " " : "",
				    node_text(b, place.ranks[i]), place.masks[i]);
	return text;
}

struct question {
	const char *picture;
	struct shape shape;
	bool scatter;
	const char *want;
};

static void ask(const struct question *q)
{
	struct place_request r = { .shape = &q->shape,
				   .tasks = q->shape.tasks_min,
				   .rank = RANK_NONE,
				   .scatter = q->scatter };
	struct board b;

	board_init(&b, q->picture);
	assert_string_equal(answer(&b, &r), q->want);
	assert_true((place_find(&b.space, &r, NULL, NULL, NULL) == 0) ==
		    (strchr(q->want, '/') != NULL));
	space_verify(&b.space);
	board_deinit(&b);
}

#define TASKS(n, g) .tasks_min = (n), .tasks_max = (n), .gpus = (g)
enum { RACK = 1 };

static void a_single_task_takes_the_tightest_node(void **state)
{
	static const struct question questions[] = {
		{ "r: n0:8 n1:8/5 n2:8/7", { TASKS(1, 1) }, false, "n2/80" },
		{ "r: n0:8 n1:8/5 n2:8/7", { TASKS(1, 2) }, false, "n1/60" },
		{ "r: n0:8 n1:8/5 n2:8/7", { TASKS(1, 4) }, false, "n0/f" },
		{ "r: n1:8 n0:8", { TASKS(1, 8) }, false, "n0/ff" },
		{ "r: n0:8 n1:8/5", { TASKS(1, 1) }, true, "n0/1" },
		{ "r: n0:8/8", { TASKS(1, 1) }, false, "capacity 0 of 1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		ask(&questions[i]);
}

static void a_gang_takes_the_narrowest_level_then_the_fewest_hosts(void **state)
{
	static const struct question questions[] = {
		/* one node holds it whole */
		{ "r0: n0:2 n1:2 | r1: n2:4", { TASKS(4, 1) }, false, "n2/1 n2/2 n2/4 n2/8" },
		/* no node does, but one rack: though two nodes of two racks would be fewer than three */
		{ "r0: n0:2 n1:2 n2:2 | r1: n3:4 | r2: n4:4",
		  { TASKS(5, 1) },
		  false,
		  "n0/1 n0/2 n1/1 n1/2 n2/1" },
		/* two racks hold it: the one with fewer hosts; with as many, the one with less free */
		{ "r0: n0:2 n1:2 n2:2 | r1: n3:3 n4:3",
		  { TASKS(6, 1) },
		  false,
		  "n3/1 n3/2 n3/4 n4/1 n4/2 n4/4" },
		{ "r0: n0:4 n1:4 n2:4 | r1: n3:4 n4:4",
		  { TASKS(5, 1) },
		  false,
		  "n3/1 n3/2 n3/4 n3/8 n4/1" },
		/* across racks: the largest hosts first, the last one the tightest that holds the rest */
		{ "r0: n0:4 n1:1 | r1: n2:4 n3:2",
		  { TASKS(9, 1) },
		  false,
		  "n0/1 n0/2 n0/4 n0/8 n1/1 n2/1 n2/2 n2/4 n2/8" },
		/* two hosts are enough; whole ones stay whole */
		{ "r0: n0:8 n1:8 n2:5 n3:4 n4:3",
		  { TASKS(9, 1) },
		  false,
		  "n2/1 n2/2 n2/4 n2/8 n2/10 n3/1 n3/2 n3/4 n3/8" },
		/* as little is left over on 8 + 1; the whole host stays whole */
		{ "r0: n0:8 n1:5 n2:4 n3:1",
		  { TASKS(9, 1) },
		  false,
		  "n1/1 n1/2 n1/4 n1/8 n1/10 n2/1 n2/2 n2/4 n2/8" },
		/* less is left over on a whole one and a small one */
		{ "r0: n0:8 n1:6 n2:5 n3:2", { TASKS(5, 2) }, false, "n0/3 n0/c n0/30 n0/c0 n3/3" },
		/* of two racks the one on whose hosts less is left over, though less is free in the other */
		{ "r0: n0:4 n1:4 | r1: n2:4 n3:4 n4:2",
		  { TASKS(6, 1) },
		  false,
		  "n2/1 n2/2 n2/4 n2/8 n4/1 n4/2" },
		/* tasks of two: odd GPUs stay over */
		{ "r0: n0:3 n1:3 n2:2", { TASKS(3, 2) }, false, "n0/3 n1/3 n2/3" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		ask(&questions[i]);
}

static void a_required_level_is_kept(void **state)
{
	static const struct question questions[] = {
		{ "r0: n0:2 n1:2 | r1: n2:2",
		  { TASKS(6, 1), .require = RACK },
		  false,
		  "topology 4 of 6" },
		{ "r0: n0:2 n1:2 | r1: n2:2",
		  { TASKS(4, 1), .require = LEVEL_NODE },
		  false,
		  "topology 2 of 4" },
		{ "r0: i0:8",
		  { TASKS(4, 1), .require = LEVEL_ISLAND },
		  false,
		  "i0/1 i0/2 i0/4 i0/8" },
		{ "r0: i0:8", { TASKS(5, 1), .require = LEVEL_ISLAND }, false, "topology 4 of 5" },
		{ "r0: n0:2 n1:2/2 | r1: n2:2",
		  { TASKS(4, 1), .require = RACK },
		  false,
		  "topology 2 of 4" },
		{ "r0: n0:2 n1:2/2 | r1: n2:2/1",
		  { TASKS(4, 1), .require = RACK },
		  false,
		  "capacity 3 of 4" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		ask(&questions[i]);
}

static void islands_stay_whole(void **state)
{
	static const struct question questions[] = {
		/* two GPUs from the island that has been broken into already */
		{ "r: i0:8/1", { TASKS(1, 2) }, false, "i0/6" },
		/* the fuller node would split the task over its islands; the other one holds it in one */
		{ "r: i0:8/6 i1:8/4", { TASKS(1, 2) }, false, "i0/c0" },
		{ "r: i0:8/1 i1:8", { TASKS(1, 4) }, false, "i0/f0" },
		{ "r: i0:8/2", { TASKS(1, 5) }, false, "i0/f4" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		ask(&questions[i]);
}

static void what_is_missing_is_said(void **state)
{
	struct question q = { "r: n0:2/1 n1:2/1", { TASKS(1, 2) }, false, "fragmentation 0 of 1" };
	struct board b;
	struct shape shape = { TASKS(1, 1), .gpu_memory_mib = 90000 };
	struct place_request r = { .shape = &shape, .tasks = 1, .rank = RANK_NONE };

	(void)state;
	ask(&q);
	q = (struct question){
		"r: n0:8", { TASKS(3, 1), .cpu_milli = 12000 }, false, "cpu 2 of 3"
	};
	ask(&q);
	q = (struct question){
		"r: n0:8", { TASKS(3, 1), .memory_mib = 100 * 1024 }, false, "ram 2 of 3"
	};
	ask(&q);
	board_init(&b, "r: n0:8 a0:8");
	assert_string_equal(answer(&b, &r), "memory 81920 of 90000");
	shape.gpu_memory_mib = 0;
	shape.models[0] = facts_name_find(&b.facts, "A");
	assert_string_equal(answer(&b, &r), "a0/1");
	shape.gpu_memory_mib = 50000;
	assert_string_equal(answer(&b, &r), "memory 40960 of 50000");
	shape.models[0] = facts_name_find(&b.facts, "rack");
	assert_string_equal(answer(&b, &r), "model 0 of 1");
	board_deinit(&b);
}

/* Another class on every node, so that most share the mixed one. */
static void nodes_beyond_the_classes_are_told_apart_all_the_same(void **state)
{
	struct event e = event_make(EVENT_NODE_SET, 1, "test");
	struct shape shape = { TASKS(1, 1) };
	struct place_request r = { .shape = &shape, .tasks = 1, .rank = RANK_NONE };
	struct board b;
	char name[16], driver[16];

	(void)state;
	board_init(&b, "");
	for (uint32_t n = 1; n <= CLASSES_MAX + 20; n++) {
		snprintf(name, sizeof(name), "n%03u", n);
		snprintf(driver, sizeof(driver), "%u.5", n);
		e.node_set.name = name;
		e.node_set.driver = driver;
		e.node_set.gpus = 2;
		put(&b, &e);
	}
	space_build(&b.space, &b.facts);
	assert_int_equal(b.space.class_count, CLASSES_MAX);
	shape.min_driver = version_parse("80.5");
	assert_string_equal(answer(&b, &r), "n080/1");
	r.tasks = 11;
	assert_string_equal(answer(&b, &r), "fragmentation 10 of 11");
	shape.min_driver = version_parse("84.5");
	r.tasks = 2;
	assert_string_equal(answer(&b, &r), "n084/1 n084/2");
	shape.min_driver = version_parse("84.6");
	assert_true(place_find(&b.space, &r, &b.arena, NULL, NULL) == PLACE_NO);
	space_verify(&b.space);
	board_deinit(&b);
}

/* README.md has the same list. */
static void traits_are_sought_in_their_order(void **state)
{
	static const struct {
		const char *what, *min_driver, *region;
		uint32_t capability;
		bool inference;
		const char *want;
	} cases[] = {
		{ "nothing asked", "", "", 0, false, "n0/1" },
		{ "an older driver", "535.100", "", 0, false, "n0/1" },
		{ "a newer driver", "550.1", "", 0, false, "driver 561120258 of 576717824" },
		{ "its region", "", "region=eu", 0, false, "n0/1" },
		{ "another region", "550.1", "region=us", 0, false, "residency 0 of 1" },
		{ "an unknown capability", "550.1", "region=us", 90, false, "model 0 of 90" },
		{ "another class", "550.1", "", 0, true, "node_class 0 of 1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct shape shape = { TASKS(1, 1), .serves = cases[i].inference,
				       .min_capability = cases[i].capability,
				       .min_driver = version_parse(cases[i].min_driver) };
		struct place_request r = { .shape = &shape, .tasks = 1, .rank = RANK_NONE };
		struct event job = event_make(EVENT_JOB_SUBMITTED, 1, "test"),
			     e = event_make(EVENT_NODE_SET, 1, "test"),
			     mark = event_make(EVENT_NODE_MARKED, 1, "test"),
			     queue = event_make(EVENT_QUEUE_SET, 1, "test");
		struct board b;

		board_init(&b, "");
		e.node_set.name = "n0";
		e.node_set.gpus = 2;
		e.node_set.driver = "535.129.2";
		put(&b, &e);
		mark.node_marked.node = 1;
		mark.node_marked.labels = "region=eu,rack=9";
		mark.node_marked.class = NODE_CLASS_TRAINING;
		put(&b, &mark);
		queue.queue_set.name = "q";
		put(&b, &queue);
		job.job_submitted.job = 1;
		job.job_submitted.queue = "q";
		job.job_submitted.regions = "eu,us";
		put(&b, &job);
		space_build(&b.space, &b.facts);
		shape.regions[0] = facts_name_find(&b.facts, cases[i].region);
		assert_string_equal(answer(&b, &r), cases[i].want);
		board_deinit(&b);
	}
	assert_int_equal(model_capability("H100-80GB"), 90);
	assert_int_equal(model_capability("H1000"), 0);
}

static void replicas_spread_over_hosts(void **state)
{
	static const struct question questions[] = {
		{ "r: n0:8 n1:8 n2:8/6 n3:8",
		  { TASKS(4, 1), .spread = 1 },
		  false,
		  "n0/1 n1/1 n2/40 n3/1" },
		{ "r: n0:2 n1:1", { TASKS(3, 1), .spread = 1 }, false, "n0/1 n0/2 n1/1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		ask(&questions[i]);
}

static void tasks_that_must_lie_apart_do(void **state)
{
	static const char picture[] = "r0: n0:4/3 n1:4 | r1: n2:4 n3:4/2 | r2: n4:4 n5:4";
	static const struct question questions[] = {
		{ picture, { TASKS(3, 2), .apart = RACK }, false, "n1/3 n3/c n4/3" },
		{ picture, { TASKS(3, 2), .apart = RACK }, true, "n1/3 n2/3 n4/3" },
		{ picture, { TASKS(4, 2), .apart = RACK }, false, "spread 3 of 4" },
		{ picture, { TASKS(2, 2), .apart = LEVEL_NODE }, false, "n2/3 n3/c" },
		{ picture,
		  { TASKS(5, 2), .apart = LEVEL_NODE },
		  false,
		  "n1/3 n2/3 n3/c n4/3 n5/3" },
		{ picture, { TASKS(6, 2), .apart = LEVEL_NODE }, false, "spread 5 of 6" },
		{ picture,
		  { TASKS(3, 2), .apart = LEVEL_NODE, .require = RACK },
		  false,
		  "topology 2 of 3" },
		{ picture, { TASKS(1, 4), .apart = RACK }, false, "n1/f" },
		{ "r: n0:4 n1:4/3",
		  { TASKS(2, 3), .apart = LEVEL_NODE },
		  false,
		  "capacity 5 of 6" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		ask(&questions[i]);
}

static void nodes_in_another_order_give_the_same_place(void **state)
{
	struct shape shape = { TASKS(5, 1) };
	struct place_request r = { .shape = &shape, .tasks = 5, .rank = RANK_NONE };
	struct board a, b;

	(void)state;
	board_init(&a, "r0: n0:2 n1:3 | r1: n2:3 n3:2");
	board_init(&b, "r1: n3:2 n2:3 | r0: n1:3 n0:2");
	assert_string_equal(answer(&a, &r), "n0/1 n0/2 n1/1 n1/2 n1/4");
	assert_string_equal(answer(&b, &r), "n0/1 n0/2 n1/1 n1/2 n1/4");
	board_deinit(&a);
	board_deinit(&b);
}

static void what_ifs_roll_back(void **state)
{
	struct space copy;
	struct board b;
	uint32_t mark;

	(void)state;
	board_init(&b, "r0: n0:8/3 n1:8 | r1: n2:4/4");
	space_init(&copy);
	space_build(&copy, &b.facts);
	take(&copy, 0, 7);
	take(&copy, 2, 15);
	assert_true(space_same(&b.space, &copy));
	mark = space_mark(&b.space);
	space_take(&b.space, 1, &(struct hold){ .mask = 0xf0, .cpu_milli = 1000, .ram_mib = 5 });
	space_promise(&b.space, 0, &(struct hold){ .mask = 0x10 });
	assert_false(space_same(&b.space, &copy));
	space_give(&b.space, 0, &(struct hold){ .mask = 3 });
	space_clear(&b.space);
	space_rollback(&b.space, mark);
	assert_true(space_same(&b.space, &copy));
	space_verify(&b.space);
	space_deinit(&copy);
	board_deinit(&b);
}

static uint64_t random_state = 7;

static uint32_t below(uint32_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(random_state >> 33) % limit;
}

/* The most tasks that fit: asked node by node, without counts. */
static uint32_t naive_width(const struct space *space, const struct shape *shape)
{
	uint32_t best = 0, sum = 0, rack = 0;

	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct place_node *n = space_at(space, rank);
		uint32_t tasks = (uint32_t)__builtin_popcount(n->all & ~n->busy) / shape->gpus;

		if (shape->cpu_milli && n->cpu_free / shape->cpu_milli < tasks)
			tasks = (uint32_t)(n->cpu_free / shape->cpu_milli);
		if (shape->require == LEVEL_NODE ||
		    (shape->require == RACK && rank && n->domain[1] != rack))
			sum = 0;
		rack = n->domain[1];
		sum += tasks;
		best = sum > best ? sum : best;
	}
	return best;
}

static void a_place_is_found_exactly_when_there_is_one(void **state)
{
	static const uint8_t levels[] = { 0, RACK, LEVEL_NODE };

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct shape shape = { TASKS(1 + below(8), 1 + below(4)),
				       .require = levels[below(3)], .cpu_milli = below(2) * 6000 };
		struct place_request r = { .shape = &shape,
					   .tasks = shape.tasks_min,
					   .rank = RANK_NONE };
		char picture[128];
		struct placement place;
		struct board b;
		uint32_t width;

		snprintf(picture, sizeof(picture),
			 "r0: n0:8/%u n1:8/%u n2:4/%u | r1: n3:4/%u n4:8/%u", below(9), below(9),
			 below(5), below(5), below(9));
		board_init(&b, picture);
		width = naive_width(&b.space, &shape);
		assert_int_equal(place_find(&b.space, &r, &b.arena, &place, NULL) == 0,
				 width >= r.tasks);
		assert_int_equal(place_width(&b.space, &r), width < r.tasks ? width : r.tasks);
		if (width >= r.tasks)
			placement_take(&b.space, &place, &shape); /* aborts when a GPU is busy */
		space_verify(&b.space);
		board_deinit(&b);
	}
}

/* GPUs left over on the hosts of the set, 0 = they do not hold the tasks; hosts without room for one do not count. */
static bool set_left(const uint32_t *free, uint32_t set, uint32_t tasks, uint32_t gpus,
		     uint32_t *ret)
{
	uint32_t room = 0, sum = 0;

	for (uint32_t n = 0; set >> n; n++) {
		if (!(set >> n & 1))
			continue;
		room += free[n] / gpus;
		sum += free[n];
	}
	*ret = sum - tasks * gpus;
	return room >= tasks;
}

/* One domain of hosts, all sets of them tried: the fewest hosts, of these the least left over. */
static void the_hosts_are_the_fewest_with_the_least_left_over(void **state)
{
	enum { HOSTS = 9 };

	(void)state;
	for (int round = 0; round < 3000; round++) {
		struct shape shape = { TASKS(2 + below(30), 1 + below(3)) };
		struct place_request r = { .shape = &shape,
					   .tasks = shape.tasks_min,
					   .rank = RANK_NONE };
		uint32_t free[HOSTS], best_hosts = UINT32_MAX, best_left = 0, used = 0, left;
		char picture[256] = "r0:";
		struct placement place;
		struct board b;

		if (below(2))
			shape.cpu_milli = 1; /* each node is looked at, with the same outcome */
		for (uint32_t n = 0; n < HOSTS; n++) {
			size_t length = strlen(picture);

			free[n] = below(17);
			snprintf(picture + length, sizeof(picture) - length, " n%u:16/%u", n,
				 16 - free[n]);
		}
		for (uint32_t set = 1; set < 1U << HOSTS; set++) {
			uint32_t hosts = bits_count(set);

			if (set_left(free, set, r.tasks, shape.gpus, &left) &&
			    (hosts < best_hosts || (hosts == best_hosts && left < best_left))) {
				best_hosts = hosts;
				best_left = left;
			}
		}
		board_init(&b, picture);
		assert_int_equal(place_find(&b.space, &r, &b.arena, &place, NULL) == 0,
				 best_hosts < UINT32_MAX);
		for (uint32_t i = 0; best_hosts < UINT32_MAX && i < place.count; i++)
			used |= UINT32_C(1) << place.ranks[i];
		if (best_hosts < UINT32_MAX) {
			assert_int_equal(bits_count(used), best_hosts);
			(void)set_left(free, used, r.tasks, shape.gpus, &left);
			assert_int_equal(left, best_left);
		}
		board_deinit(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_single_task_takes_the_tightest_node),
		cmocka_unit_test(a_gang_takes_the_narrowest_level_then_the_fewest_hosts),
		cmocka_unit_test(a_required_level_is_kept),
		cmocka_unit_test(islands_stay_whole),
		cmocka_unit_test(what_is_missing_is_said),
		cmocka_unit_test(nodes_beyond_the_classes_are_told_apart_all_the_same),
		cmocka_unit_test(traits_are_sought_in_their_order),
		cmocka_unit_test(replicas_spread_over_hosts),
		cmocka_unit_test(tasks_that_must_lie_apart_do),
		cmocka_unit_test(nodes_in_another_order_give_the_same_place),
		cmocka_unit_test(what_ifs_roll_back),
		cmocka_unit_test(a_place_is_found_exactly_when_there_is_one),
		cmocka_unit_test(the_hosts_are_the_fewest_with_the_least_left_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
