/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the space that is made anew from what changed is the same as one of all of it. */
#include "core/placement/space.h"
#include "core/scheduling/testing.h"
#include "core/scheduling/view/view.h"

enum { NODES = 6, GPUS = 4, SEEDS = 40, STEPS = 400, HOLDS = 64 };

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	uint64_t x = ++random_state * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % limit);
}

struct held {
	uint32_t rank;
	struct hold hold;
	bool promised;
	uint32_t mark; /* of the log before */
};

/* The last ones stand last, so a rollback takes them from the end. */
struct all_held {
	struct held list[HOLDS];
	uint32_t count;
};

/* A GPU that is free, whole or half; or the other half of one. */
static void hold_random(struct space *space, struct all_held *all)
{
	struct held *h = &all->list[all->count];
	uint32_t gpu = below(GPUS);
	const struct place_node *node;

	*h = (struct held){ .rank = below(NODES), .promised = below(2), .mark = space_mark(space) };
	node = space_at(space, h->rank);
	h->hold = (struct hold){ .mask = UINT32_C(1) << gpu, .cpu_milli = below(100), .sharer = 4 };
	if (below(2)) {
		h->hold.part = GPU_SHARE / 2;
		h->hold.part_mib = 1024;
	}
	if (!(place_node_free(node) & h->hold.mask) || all->count == HOLDS - 1)
		return;
	if (h->promised)
		space_promise(space, h->rank, &h->hold);
	else
		space_take(space, h->rank, &h->hold);
	all->count++;
}

static void let_go(struct space *space, struct all_held *all)
{
	uint32_t at = all->count ? below(all->count) : 0;
	struct held h = all->list[at];

	if (!all->count)
		return;
	if (h.promised)
		space_unpromise(space, h.rank, &h.hold);
	else
		space_give(space, h.rank, &h.hold);
	all->list[at] = all->list[--all->count];
	for (uint32_t i = 0; i < all->count; i++)
		all->list[i].mark = UINT32_MAX; /* the log has more than these now */
}

static void roll_back(struct space *space, struct all_held *all)
{
	if (!all->count || all->list[all->count - 1].mark == UINT32_MAX)
		return;
	space_rollback(space, all->list[--all->count].mark);
}

static void copies_compare(struct world *w, uint64_t seed)
{
	struct space *space = &w->view->space, copy;
	uint64_t seen[1] = { 0 };
	struct all_held all = { .count = 0 };
	uint32_t since = 0;

	random_state = seed;
	space_init(&copy);
	for (int i = 0; i < STEPS; i++) {
		uint32_t drawn = below(8);

		if (drawn < 4)
			hold_random(space, &all);
		else if (drawn < 5)
			let_go(space, &all);
		else if (drawn < 6)
			roll_back(space, &all);
		else
			space_block(space, below(NODES), below(1 << GPUS), below(3) == 0);
		if (below(3))
			continue;
		space_copy_next(&copy, space, &since, seen);
		assert_true(space_same(&copy, space));
		assert_true(seen[0] == 0);
		space_verify(&copy);
	}
	space_deinit(&copy);
	space_rollback(space, 0);
}

static void a_copy_of_what_changed_is_a_copy_of_all(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "r0: n0:4 n1:4 | r1: n2:4 n3:4 n4:4 | r2: n5:4");
	(void)world_submit(&w, (struct wish){ .tasks = 1, .part = GPU_SHARE / 2, .held = true });
	world_decide(&w);
	assert_true(w.view->space.parts);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		copies_compare(&w, seed);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_of_what_changed_is_a_copy_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
