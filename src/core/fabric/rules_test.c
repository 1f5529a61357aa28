/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold for every cluster and every set, on random ones: a narrower set is never slower, names do not matter,
 * nothing is above what the hardware has, the imagined best is at least any real set.
 */
#include "core/fabric/testing.h"

enum { ROUNDS = 20000, SET_MAX = 24 };

/* Islands are whole hosts and NVLink is faster than any card: where a host's own paths are slower than its cards, two hosts
 * may rightly be faster than one (README). */
static void cluster_roll(struct dice *dice, struct fabric *f)
{
	static const char *const makes[] = { "8 ndr H100", "4 hdr A100",     "1 edr V100",
					     "8 xdr B200", "2 roce400 H200", "4 ndr GB200" };

	*f = (struct fabric){ .level_count = dice_below(dice, LEVELS_MAX + 1),
			      .host_count = 1 + dice_below(dice, 3) };
	for (uint32_t h = 0; h < f->host_count; h++)
		f->host[h] = make_of(makes[dice_below(dice, ARRAY_SIZE(makes))]);
	for (uint32_t l = 0; l <= f->level_count; l++) {
		struct fabric_level *v = &f->level[l];

		v->over_milli = dice_below(dice, 3) ? 0 : 1000 + dice_below(dice, 8000);
		v->host_mbps = dice_below(dice, 4) ? 0 : 1 + dice_below(dice, 400000);
		v->reduces = dice_below(dice, 4) == 0;
	}
	if (f->level_count)
		f->level[f->level_count].nvlink = dice_below(dice, 3) == 0;
	assert_int_equal(fabric_check(f, NULL), 0);
	fabric_settle(f);
}

static int parts_order(const void *a, const void *b)
{
	return memcmp(((const struct fabric_part *)a)->domain,
		      ((const struct fabric_part *)b)->domain,
		      sizeof(((const struct fabric_part *)a)->domain));
}

static uint32_t set_roll(struct dice *dice, const struct fabric *f, struct fabric_part *parts)
{
	uint32_t count = 1 + dice_below(dice, SET_MAX);

	for (uint32_t i = 0; i < count; i++) {
		parts[i] =
			(struct fabric_part){ .host = (uint16_t)dice_below(dice, f->host_count) };
		parts[i].gpu_mask = 1 + dice_below(dice, mask_of(f->host[parts[i].host].gpus));
		for (uint32_t l = 1; l <= f->level_count; l++)
			parts[i].domain[l] = 1 + dice_below(dice, 2);
	}
	qsort(parts, count, sizeof(*parts), parts_order);
	return count;
}

static uint64_t rate(const struct fabric *f, const struct fabric_part *parts, uint32_t count)
{
	struct fabric_estimate e;

	fabric_set(f, parts, count, &e);
	return e.mbps;
}

/* The same hosts with one level less between them. */
static void joining_domains_never_slows_a_set(void **state)
{
	struct dice dice = { 1 };

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		static struct fabric f;
		struct fabric_part parts[SET_MAX];
		uint32_t count, level;
		uint64_t before;

		cluster_roll(&dice, &f);
		if (f.level_count == 0)
			continue;
		count = set_roll(&dice, &f, parts);
		before = rate(&f, parts, count);
		/* from the widest down to a level all are in one domain */
		level = 1 + dice_below(&dice, f.level_count);
		for (uint32_t i = 0; i < count; i++)
			for (uint32_t l = 1; l <= level; l++)
				parts[i].domain[l] = 1;
		qsort(parts, count, sizeof(*parts), parts_order);
		if (rate(&f, parts, count) < before)
			fail_msg("round %u: %llu before", round, (unsigned long long)before);
	}
}

static void network_free(struct fabric *f)
{
	for (uint32_t l = 0; l <= f->level_count; l++)
		f->level[l] = (struct fabric_level){ .nvlink = f->level[l].nvlink };
	fabric_settle(f);
}

/*
 * Two hosts of one make, neighbours, whose GPUs fit into one. Not where hosts compete for the network: there two hosts
 * get two shares of it. Nor where GPUs share cards inside an NVLink domain: there two hosts bring more cards.
 */
static void joining_hosts_never_slows_a_set(void **state)
{
	struct dice dice = { 2 };
	uint32_t joined = 0;

	(void)state;
	for (uint32_t round = 0; round < ROUNDS * 4; round++) {
		static struct fabric f;
		struct fabric_part parts[SET_MAX];
		uint32_t count, at;
		uint64_t before;

		cluster_roll(&dice, &f);
		network_free(&f);
		if (f.domains)
			for (uint32_t h = 0; h < f.host_count; h++)
				f.host[h].nics = f.host[h].gpus;
		count = set_roll(&dice, &f, parts);
		if (count < 2)
			continue;
		at = dice_below(&dice, count - 1);
		if (parts[at].host != parts[at + 1].host ||
		    parts[at].gpu_mask & parts[at + 1].gpu_mask)
			continue;
		/* side by side first: what is joined is only the hosts */
		memcpy(parts[at + 1].domain, parts[at].domain, sizeof(parts[at].domain));
		before = rate(&f, parts, count);
		parts[at].gpu_mask |= parts[at + 1].gpu_mask;
		memmove(&parts[at + 1], &parts[at + 2], (count - at - 2) * sizeof(*parts));
		if (rate(&f, parts, count - 1) < before)
			fail_msg("round %u: %llu before", round, (unsigned long long)before);
		joined++;
	}
	assert_true(joined > 500);
}

static void names_and_numbers_do_not_matter(void **state)
{
	struct dice dice = { 3 };

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		static struct fabric f, g;
		struct fabric_part parts[SET_MAX], other[SET_MAX];
		struct fabric_estimate a, b;
		uint32_t count, turn;

		cluster_roll(&dice, &f);
		count = set_roll(&dice, &f, parts);
		turn = dice_below(&dice, f.host_count);
		g = f;
		for (uint32_t h = 0; h < f.host_count; h++)
			g.host[(h + turn) % f.host_count] = f.host[h];
		/* domains renamed so that their order turns round, GPUs renumbered, makes in other rows */
		for (uint32_t i = 0; i < count; i++) {
			struct fabric_part *p = &other[count - 1 - i];
			uint32_t gpus = f.host[parts[i].host].gpus, mask = parts[i].gpu_mask;

			*p = parts[i];
			p->host = (uint16_t)((parts[i].host + turn) % f.host_count);
			p->gpu_mask = (mask >> 1 | mask << (gpus - 1)) & mask_of(gpus);
			for (uint32_t l = 1; l <= f.level_count; l++)
				p->domain[l] = 1000 - parts[i].domain[l];
		}
		fabric_set(&f, parts, count, &a);
		fabric_set(&g, other, count, &b);
		assert_int_equal(a.mbps, b.mbps);
		assert_int_equal(a.ring_ns, b.ring_ns);
		assert_int_equal(a.tree_ns, b.tree_ns);
		assert_int_equal(a.level, b.level);
		assert_int_equal(a.bound, b.bound);
		assert_int_equal(a.units, b.units);
	}
}

/* Never above what the worst host has inside, nor twice what it can send. */
static void nothing_is_faster_than_the_hardware(void **state)
{
	struct dice dice = { 4 };

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		static struct fabric f;
		struct fabric_part parts[SET_MAX];
		struct fabric_estimate e;
		uint32_t count;

		cluster_roll(&dice, &f);
		count = set_roll(&dice, &f, parts);
		fabric_set(&f, parts, count, &e);
		for (uint32_t i = 0; i < count; i++) {
			const struct fabric_host *h = &f.host[parts[i].host];
			uint64_t inside = h->nvlink_mbps > 2 * h->reduce_mbps ? h->nvlink_mbps
									      : 2 * h->reduce_mbps;

			assert_true(e.mbps <= (e.gpus == 1 || count > 1 ? h->memory_mbps : inside));
			if (e.units > 1 && e.units == count)
				assert_true(e.mbps <= 2 * h->nics * h->nic_mbps);
		}
		assert_true(e.mbps >= e.ring_mbps && e.mbps >= e.tree_mbps);
	}
}

/* Oversubscription and limits off, one card per GPU: there the imagined packing has every advantage a real one can have. */
static void no_set_beats_the_best(void **state)
{
	struct dice dice = { 5 };

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		static struct fabric f;
		struct fabric_part parts[SET_MAX];
		struct fabric_estimate best, here;
		struct shape shape;
		uint32_t count;

		cluster_roll(&dice, &f);
		f.host_count = 1;
		f.host[0].nics = f.host[0].gpus;
		network_free(&f);
		count = set_roll(&dice, &f, parts);
		fabric_set(&f, parts, count, &here);
		shape = shape_of((uint32_t)here.gpus, 1);
		fabric_best(&f, &shape, &best);
		if (here.mbps > best.mbps)
			fail_msg("round %u: %u GPUs on %u hosts: %llu, best %llu", round,
				 shape.tasks_min, count, (unsigned long long)here.mbps,
				 (unsigned long long)best.mbps);
	}
}

/* The imagined packing, laid out for real, gets what was promised. */
static void the_best_can_be_had(void **state)
{
	struct dice dice = { 6 };

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		static struct fabric f;
		struct fabric_part parts[2 * SET_MAX] = { 0 };
		uint32_t tasks = 2 + dice_below(&dice, 100), gpus = 1 + dice_below(&dice, 4), hosts,
			 level;
		struct shape shape = shape_of(tasks, gpus);
		uint64_t promised;

		cluster_roll(&dice, &f);
		f.host_count = 1;
		if (f.level_count)
			f.level[f.level_count].nvlink = false;
		fabric_settle(&f);
		level = dice_below(&dice, f.level_count + 1);
		hosts = (tasks + 8 / gpus - 1) / (8 / gpus);
		hosts = hosts < 2 ? 2 : hosts;
		if (hosts > 2 * SET_MAX)
			continue;
		promised = fabric_level_mbps(&f, (uint8_t)level, &shape);
		for (uint32_t i = 0; i < hosts; i++) {
			parts[i].gpu_mask = mask_of((tasks / hosts + (i < tasks % hosts)) * gpus);
			for (uint32_t l = level + 1; l <= f.level_count; l++)
				parts[i].domain[l] = 2 * i >= hosts ? 1 : 2;
		}
		/* the fullest hosts may bring more: never less than promised */
		assert_true(rate(&f, parts, hosts) >= promised);
		if (tasks % hosts == 0 && hosts % 2 == 0)
			assert_int_equal(rate(&f, parts, hosts), promised);
	}
}

static void wider_levels_are_never_better_for_a_shape(void **state)
{
	struct dice dice = { 7 };

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		static struct fabric f;
		struct shape shape =
			shape_of(2 + dice_below(&dice, 4000), 1 + dice_below(&dice, 8));
		uint64_t before = UINT64_MAX, now;

		cluster_roll(&dice, &f);
		for (uint32_t l = f.level_count + 1; l-- > 0;) {
			now = fabric_level_mbps(&f, (uint8_t)l, &shape);
			if (now > before)
				fail_msg("round %u, level %u of %u: %llu after %llu", round, l,
					 f.level_count, (unsigned long long)now,
					 (unsigned long long)before);
			before = now;
		}
	}
}

static void slowdown_is_bounded_and_monotone(void **state)
{
	struct dice dice = { 8 };

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct fabric_estimate best = { .mbps = 1 + dice_below(&dice, 900000), .gpus = 16 };
		struct fabric_estimate good = best, bad;
		struct fabric_load load = { .share_milli = (uint16_t)dice_below(&dice, 1001) };
		uint8_t kind = (uint8_t)dice_below(&dice, 4);

		best.ring_mbps = best.tree_mbps = best.mbps;
		good.mbps = good.ring_mbps = good.tree_mbps =
			1 + dice_below(&dice, (uint32_t)best.mbps);
		bad = good;
		bad.mbps = bad.ring_mbps = bad.tree_mbps =
			1 + dice_below(&dice, (uint32_t)good.mbps);
		if (dice_below(&dice, 2)) {
			load.bytes = dice_roll(&dice) >> dice_below(&dice, 64);
			load.step_ns = dice_roll(&dice) >> dice_below(&dice, 64);
		}
		assert_in_range(fabric_slowdown_milli(&best, &good, &load, kind), 1000,
				FABRIC_SLOWDOWN_MAX);
		assert_true(fabric_slowdown_milli(&best, &bad, &load, kind) >=
			    fabric_slowdown_milli(&best, &good, &load, kind));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joining_domains_never_slows_a_set),
		cmocka_unit_test(joining_hosts_never_slows_a_set),
		cmocka_unit_test(names_and_numbers_do_not_matter),
		cmocka_unit_test(nothing_is_faster_than_the_hardware),
		cmocka_unit_test(no_set_beats_the_best),
		cmocka_unit_test(the_best_can_be_had),
		cmocka_unit_test(wider_levels_are_never_better_for_a_shape),
		cmocka_unit_test(slowdown_is_bounded_and_monotone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
