/* SPDX-License-Identifier: Apache-2.0 */
/* The README's worked examples and the other figures that can be worked out by hand. Rates in MB/s. */
#include "core/fabric/testing.h"

/* spine, leaf; H100 hosts with 8 NDR cards, A100 hosts with 4 HDR cards; 4:1 between leaves, 2:1 between spines. */
static void cluster_init(struct fabric *f)
{
	*f = (struct fabric){ .level_count = 2, .host_count = 2 };
	f->host[0] = make_of("8 ndr H100-80GB");
	f->host[1] = make_of("4 hdr A100-40GB");
	f->level[1].over_milli = 4000;
	f->level[0].over_milli = 2000;
	f->level[0].latency_ns = 10000;
	assert_int_equal(fabric_check(f, NULL), 0);
	fabric_settle(f);
}

static const struct example {
	const char *set;
	uint64_t mbps;
	uint8_t bound, bound_level, level;
} examples[] = {
	/* inside: the ring, then the switch that adds up: 274,000 x 2 x 7/8 */
	{ "s/a:1", 3350000, FABRIC_BOUND_MEMORY, 0, LEVEL_ISLAND },
	{ "s/a:2", 370800, FABRIC_BOUND_NVLINK, 0, LEVEL_ISLAND },
	{ "s/a:8", 479500, FABRIC_BOUND_NVLINK, 0, LEVEL_ISLAND },
	/* two hosts: the cards would give 384,000 x 2 x 15/16 = 720,000, the switch inside gives less */
	{ "s/a:8*2", 479500, FABRIC_BOUND_NVLINK, 0, 2 },
	/* three: the ring inside 370,800; a tree would get 384,000 x 23/24 = 368,000; four: 384,000 x 31/32 */
	{ "s/a:8*3", 370800, FABRIC_BOUND_NVLINK, 0, 2 },
	{ "s/a:8*4", 372000, FABRIC_BOUND_NIC, 0, 2 },
	/* one GPU each: one card */
	{ "s/a:1*2", 48000, FABRIC_BOUND_NIC, 0, 2 },
	{ "s/a:1*3", 48000, FABRIC_BOUND_NIC, 0, 2 },
	/* the least filled host decides: 4 cards, not 12 */
	{ "s/a:8 s/a:4 s/a:8", 192000, FABRIC_BOUND_NIC, 0, 2 },
	/* eight and one: one card, halves: 48,000 x 2 x 8/9 */
	{ "s/a:8 s/a:1", 85333, FABRIC_BOUND_NIC, 0, 2 },
	/* three of eight GPUs have a share in two of four cards */
	{ "s/a:3@1*3", 48000, FABRIC_BOUND_NIC, 0, 2 },
	/* between leaves 4:1: two hosts together send 192,000, one alone 96,000 */
	{ "s/a:8*2 s/b:8*2", 192000, FABRIC_BOUND_LEVEL, 1, 1 },
	{ "s/a:8*3 s/b:8", 96000, FABRIC_BOUND_LEVEL, 1, 1 },
	{ "s/a:8*8 s/b:8*8", 381000, FABRIC_BOUND_NIC, 0, 1 },
	/* between spines 8:1 in all */
	{ "s/a:8*2 t/b:8*2", 96000, FABRIC_BOUND_LEVEL, 0, 0 },
	/* two hosts in two leaves: only half as much has to cross: 96,000 x 2 x 15/16 */
	{ "s/a:8 s/b:8", 180000, FABRIC_BOUND_LEVEL, 1, 1 },
	/* two makes: the slower in each respect */
	{ "s/a:8 s/a:8@1 s/a:8", 96000, FABRIC_BOUND_NIC, 0, 2 },
	/* A100: a tree gets at most 60,000 through the host, the ring 96,000 */
	{ "s/a:8@1*2", 96000, FABRIC_BOUND_NIC, 0, 2 },
	{ "s/a:8@1", 240000, FABRIC_BOUND_NVLINK, 0, LEVEL_ISLAND },
};

static void the_examples_of_the_readme_hold(void **state)
{
	static struct fabric f;

	(void)state;
	cluster_init(&f);
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		const struct example *x = &examples[i];
		struct fabric_estimate e = estimate_of(&f, x->set);

		if (e.mbps != x->mbps || e.bound != x->bound || e.bound_level != x->bound_level ||
		    e.level != x->level)
			fail_msg("%s: %llu by %s (%u) at %u", x->set, (unsigned long long)e.mbps,
				 fabric_bound_name(e.bound), e.bound_level, e.level);
	}
}

/* Eight GPUs, no NVLink, two PCIe switches below each of two NUMA nodes. */
static void without_nvlink_each_step_outwards_counts(void **state)
{
	static struct fabric f = { .host_count = 1 };
	struct fabric_host *h = &f.host[0];

	(void)state;
	*h = make_of("1 hdr L40S");
	assert_int_equal(fabric_host_put(h, "switches", "0,1 2,3 4,5 6,7", NULL), 0);
	assert_int_equal(fabric_host_put(h, "numa", "0-3 4-7", NULL), 0);
	assert_int_equal(fabric_host_put(h, "between_switches", "20GB/s", NULL), 0);
	fabric_settle(&f);
	assert_int_equal(estimate_of(&f, "-:2").mbps, 24000);
	assert_int_equal(estimate_of(&f, "-:2").bound, FABRIC_BOUND_PCIE);
	assert_int_equal(estimate_of(&f, "-:4").mbps, 20000);
	assert_int_equal(estimate_of(&f, "-:4").bound, FABRIC_BOUND_NUMA);
	h->numa_mbps = 24000;
	assert_int_equal(estimate_of(&f, "-:8").mbps, 22000);
	assert_int_equal(estimate_of(&f, "-:8").bound, FABRIC_BOUND_SOCKET);
	assert_int_equal(estimate_of(&f, "-:8").level, LEVEL_NODE);
	/* NVLink only in pairs: a pair has it, three GPUs do not */
	assert_int_equal(fabric_host_put(h, "nvlink", "100GB/s", NULL), 0);
	assert_int_equal(fabric_host_put(h, "islands", "0,1 2,3 4,5 6,7", NULL), 0);
	assert_int_equal(estimate_of(&f, "-:2").mbps, 100000);
	assert_int_equal(estimate_of(&f, "-:2").level, LEVEL_ISLAND);
	assert_int_equal(estimate_of(&f, "-:3").mbps, 24000);
}

/* GB200: racks of 18 trays with 4 GPUs and 4 cards each are one NVLink domain. */
static void an_nvlink_domain_is_one_large_host(void **state)
{
	static struct fabric f = { .level_count = 2, .host_count = 2 };
	struct shape eight = shape_of(8, 1);
	struct fabric_estimate e;

	(void)state;
	f.host[0] = make_of("4 ndr GB200");
	f.host[1] = make_of("2 hdr L40S");
	f.host[0].gpus = 4;
	f.level[2].nvlink = true;
	fabric_settle(&f);
	e = estimate_of(&f, "s/r:4*18");
	assert_int_equal(e.mbps, 429000 * 142 / 72); /* its switches add up */
	assert_int_equal(e.units, 1);
	assert_int_equal(e.level, 2);
	/* one GPU per tray is still NVLink */
	assert_int_equal(estimate_of(&f, "s/r:1*2").mbps, 721800);
	/* three racks of two trays: 8 cards each; a ring */
	e = estimate_of(&f, "s/r:4*2 s/q:4*2 s/p:4*2");
	assert_int_equal(e.units, 3);
	assert_int_equal(e.mbps, 384000);
	assert_int_equal(e.bound, FABRIC_BOUND_NIC);
	assert_int_equal(e.level, 1);
	/* trays that name no domain are joined by the network only */
	e = estimate_of(&f, "s/-:4*3");
	assert_int_equal(e.mbps, 192000);
	assert_int_equal(e.level, 1);
	/* nor is a host without NVLink joined, whatever rack it stands in */
	e = estimate_of(&f, "s/r:8@1*2");
	assert_int_equal(e.units, 2);
	assert_int_equal(e.mbps, 24000);
	assert_int_equal(e.level, 1);
	assert_int_equal(estimate_of(&f, "s/r:4 s/r:8@1").units, 2);
	assert_int_equal(estimate_of(&f, "s/r:8@1 s/r:4").units, 2);
	/* a shape of two trays: in one rack by the switch, else half a tray's worth crosses: 192,000 x 2 x 7/8 */
	assert_int_equal(fabric_level_mbps(&f, 2, &eight), 750750);
	assert_int_equal(fabric_level_mbps(&f, 1, &eight), 336000);
	f.most[0][2] = 18;
	assert_int_equal(fabric_level_mbps(&f, 2, &eight), 750750);
	assert_int_equal(fabric_level_mbps(&f, 1, &eight), 336000);
	/* three trays where a rack has two: the lone tray's cards, 192,000 x 2 x 11/12 */
	f.most[0][2] = 2;
	eight.tasks_min = 12;
	assert_int_equal(fabric_host_put(&f.host[0], "islands", "0-3", NULL), 0);
	assert_int_equal(fabric_level_mbps(&f, 1, &eight), 352000);
	/* the same rack name below another spine is another rack */
	assert_int_equal(estimate_of(&f, "s/r:4 t/r:4").units, 2);
}

static void a_network_that_adds_up_halves_the_traffic(void **state)
{
	static struct fabric f = { .level_count = 2, .host_count = 1 };

	(void)state;
	f.host[0] = make_of("4 hdr H100");
	f.level[2].reduces = true;
	fabric_settle(&f);
	/* 96,000 x 2 x 31/32 */
	assert_int_equal(estimate_of(&f, "s/a:8*4").mbps, 186000);
	/* not between leaves */
	assert_int_equal(estimate_of(&f, "s/a:8*2 s/b:8*2").mbps, 96000);
	/* a wider level adds up only if the narrower do */
	f.level[2].reduces = false;
	f.level[1].reduces = true;
	fabric_settle(&f);
	assert_int_equal(estimate_of(&f, "s/a:8*2 s/b:8*2").mbps, 96000);
}

static void a_limit_per_host_holds_whatever_its_cards(void **state)
{
	static struct fabric f;

	(void)state;
	cluster_init(&f);
	f.level[1].host_mbps = 10000;
	fabric_settle(&f);
	assert_int_equal(estimate_of(&f, "s/a:8*2 s/b:8*2").mbps, 20000);
	/* and for all wider levels */
	assert_int_equal(estimate_of(&f, "s/a:8*2 t/b:8*2").mbps, 20000);
}

static void a_card_is_no_faster_than_its_slot(void **state)
{
	static struct fabric f = { .host_count = 1 };

	(void)state;
	f.host[0] = make_of("8 xdr H100");
	fabric_settle(&f);
	assert_int_equal(estimate_of(&f, "-:1*2").mbps, 48000);
}

static void no_cards_is_no_path(void **state)
{
	static struct fabric f = { .level_count = 1, .host_count = 1 };
	struct fabric_estimate e;

	(void)state;
	f.host[0] = make_of("0 - H100");
	fabric_settle(&f);
	e = estimate_of(&f, "a:8*2");
	assert_int_equal(e.mbps, 0);
	assert_int_equal(e.bound, FABRIC_BOUND_NONE);
	assert_true(fabric_time_ns(&e, 1) == UINT64_MAX);
	fabric_set(&f, NULL, 0, &e);
	assert_int_equal(e.mbps, 0);
	assert_int_equal(e.gpus, 0);
}

static void a_shape_is_worth_less_at_wider_levels(void **state)
{
	static struct fabric f;
	struct shape nine = shape_of(9, 1), wide = shape_of(16, 8), pair = shape_of(2, 4);

	(void)state;
	cluster_init(&f);
	/* nine tasks: two hosts, 5 and 4; four cards, halves: 192,000 x 2 x 8/9 */
	assert_int_equal(fabric_level_mbps(&f, LEVEL_NODE, &nine), 0);
	assert_int_equal(fabric_level_mbps(&f, 2, &nine), 341333);
	assert_int_equal(estimate_of(&f, "s/a:5 s/a:4").mbps, 341333);
	assert_int_equal(fabric_level_mbps(&f, 1, &nine), 85333);
	assert_int_equal(fabric_level_mbps(&f, 0, &nine), 42666);
	assert_int_equal(fabric_level_mbps(&f, LEVEL_ISLAND, &pair), 479500);
	/* 16 hosts: two leaves of eight are enough to fill the ring */
	assert_int_equal(fabric_level_mbps(&f, 2, &wide), 381000);
	assert_int_equal(fabric_level_mbps(&f, 1, &wide), 381000);
	f.most[0][2] = f.most[1][2] = 15;
	assert_int_equal(fabric_level_mbps(&f, 2, &wide), 0);
	assert_int_equal(fabric_level_mbps(&f, 1, &wide), 381000);
	assert_int_equal(fabric_level_mbps(&f, 3, &wide), 0);
}

static void a_shape_sees_only_the_models_it_accepts(void **state)
{
	static struct fabric f;
	struct shape s = shape_of(2, 8);

	(void)state;
	cluster_init(&f);
	f.host[0].model.v = 7;
	f.host[1].model.v = 8;
	assert_int_equal(fabric_level_mbps(&f, 2, &s), 479500);
	s.models[0].v = 8;
	assert_int_equal(fabric_level_mbps(&f, 2, &s), 96000);
	s.models[0].v = 9;
	assert_int_equal(fabric_level_mbps(&f, 2, &s), 0);
	s.models[1].v = 7;
	assert_int_equal(fabric_level_mbps(&f, 2, &s), 479500);
}

static void slowdown_follows_from_share_or_from_bytes(void **state)
{
	static struct fabric f;
	struct fabric_load load = { .share_milli = 250 };
	struct fabric_estimate best, here;
	struct shape s = shape_of(4, 8);

	(void)state;
	cluster_init(&f);
	fabric_best(&f, &s, &best);
	assert_int_equal(best.mbps, 372000); /* one leaf: 384,000 x 31/32 */
	here = estimate_of(&f, "s/a:8*3 s/b:8"); /* 96,000 */
	/* 750 + 250 x 372/96 = 1718.75, rounded up */
	assert_int_equal(fabric_slowdown_milli(&best, &here, &load, KIND_TRAINING), 1719);
	load.share_milli = 2000; /* more than all is all: 372/96 */
	assert_int_equal(fabric_slowdown_milli(&best, &here, &load, KIND_TRAINING), 3875);
	load.share_milli = 0;
	assert_int_equal(fabric_slowdown_milli(&best, &here, &load, KIND_TRAINING), 1719);
	assert_int_equal(fabric_slowdown_milli(&best, &here, &load, KIND_BATCH), 1144);
	assert_int_equal(fabric_slowdown_milli(&best, &best, &load, KIND_TRAINING), 1000);
	assert_int_equal(fabric_slowdown_milli(&here, &best, &load, KIND_TRAINING), 1000);
	/* 10 GB per step: about 52 ms of 1 s on the best place, 202 ms here */
	load.bytes = UINT64_C(10000000000);
	load.step_ns = 1000000000;
	assert_in_range(fabric_slowdown_milli(&best, &here, &load, KIND_TRAINING), 1149, 1152);
	here.mbps = 0;
	assert_int_equal(fabric_slowdown_milli(&best, &here, &load, KIND_TRAINING),
			 FABRIC_SLOWDOWN_MAX);
	here.gpus = 1;
	assert_int_equal(fabric_slowdown_milli(&best, &here, &load, KIND_TRAINING), 1000);
}

/* Small messages go by tree, large ones by the better bandwidth, as NCCL's table chooses. */
static void time_is_latency_and_bandwidth(void **state)
{
	static struct fabric f;
	struct fabric_estimate e;

	(void)state;
	cluster_init(&f);
	e = estimate_of(&f, "s/a:8@1*4");
	assert_int_equal(e.ring_ns, 4000 + 2 * (28 * 600 + 3 * 5000));
	assert_int_equal(e.tree_ns, 4000 + 2 * (7 * 600 + 2 * 5000));
	assert_int_equal(fabric_time_ns(&e, 0), e.tree_ns);
	assert_true(e.ring_mbps > e.tree_mbps);
	/* 96 MB x 2 x 31/32 over 96,000 MB/s = 1,937,500 ns */
	assert_int_equal(fabric_time_ns(&e, 96000000), e.ring_ns + 1937500);
	assert_int_equal(estimate_of(&f, "s/a:1").ring_ns, 0);
	/* where the NVLink switch adds up there is no chain inside */
	assert_int_equal(estimate_of(&f, "s/a:8*2").tree_ns, 4000 + 2 * (600 + 5000));
}

static void largest_figures_do_not_overflow(void **state)
{
	static struct fabric f = { .level_count = 1, .host_count = 1 };
	struct fabric_load load = { .bytes = UINT64_MAX, .step_ns = UINT64_MAX };
	struct fabric_estimate e;

	(void)state;
	f.host[0] = make_of("32 xdr H100");
	f.host[0].nic_mbps = f.host[0].pcie_mbps = f.host[0].nvlink_mbps = FABRIC_MBPS_MAX;
	f.host[0].reduce_mbps = f.host[0].memory_mbps = FABRIC_MBPS_MAX;
	f.level[1].latency_ns = FABRIC_LATENCY_MAX;
	assert_int_equal(fabric_check(&f, NULL), 0);
	fabric_settle(&f);
	e = estimate_of(&f, "a:8*12500"); /* 100,000 GPUs */
	assert_int_equal(e.gpus, 100000);
	assert_int_equal(e.mbps, FABRIC_MBPS_MAX * 2 * 7 / 8);
	assert_int_equal(e.ring_ns,
			 4000 + UINT64_C(2) * (87500 * 600 + UINT64_C(12499) * 1000000000));
	assert_true(fabric_time_ns(&e, UINT64_MAX) > UINT64_MAX / 1000000);
	assert_in_range(fabric_slowdown_milli(&e, &e, &load, KIND_TRAINING), 1000, 1001);
	f.host[0].nic_mbps = 1;
	f.host[0].nics = 1;
	f.level[0].over_milli = FABRIC_OVER_MAX;
	fabric_settle(&f);
	e = estimate_of(&f, "a:8 b:8");
	assert_int_equal(e.mbps, 0); /* less than 1 MB/s is no path */
}

static void figures_that_cannot_be_are_refused_by_name(void **state)
{
	static struct fabric f;
	static const struct {
		size_t at;
		uint64_t value;
		const char *text;
	} rates[] = {
		{ offsetof(struct fabric_host, memory_mbps), 0,
		  "the GPU memory's rate is missing" },
		{ offsetof(struct fabric_host, pcie_mbps), 0, "the PCIe rate is missing" },
		{ offsetof(struct fabric_host, nic_mbps), 0, "the network cards' rate is missing" },
		{ offsetof(struct fabric_host, nvlink_mbps), 0, "the NVLink rate is missing" },
		{ offsetof(struct fabric_host, nic_mbps), FABRIC_MBPS_MAX + 1,
		  "at most 1000000000" },
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		cluster_init(&f);
		memcpy((char *)&f.host[0] + rates[i].at, &rates[i].value, sizeof(uint64_t));
		assert_int_equal(fabric_check(&f, &err), -(int)ERR_INVALID);
		if (!strstr(err.text, rates[i].text))
			fail_msg("%s", err.text);
	}
	cluster_init(&f);
	f.host[1].island[0] = 0x103;
	assert_true(fabric_check(&f, &err) < 0);
	assert_string_equal(err.text,
			    "fabric: host make 1: NVLink islands name GPU 8, which it has not");
	f.host[1].island[0] = f.host[1].island[1] = 4;
	assert_true(fabric_check(&f, &err) < 0);
	assert_string_equal(err.text, "fabric: host make 1: GPU 2 is in two NVLink islands");
	cluster_init(&f);
	f.level[1].nvlink = true;
	assert_true(fabric_check(&f, &err) < 0);
	assert_non_null(strstr(err.text, "only the narrowest can"));
	f.level[1].nvlink = false;
	f.level[1].over_milli = 999;
	assert_true(fabric_check(&f, &err) < 0);
	assert_non_null(strstr(err.text, "999/1000"));
}

static void equal_makes_share_a_row(void **state)
{
	static struct fabric f;
	struct fabric_host h = make_of("8 ndr H100");
	uint16_t row;

	(void)state;
	for (uint8_t i = 1; i <= FABRIC_HOSTS_MAX; i++) {
		h.nics = i;
		assert_int_equal(fabric_host_add(&f, &h, &row), 0);
		assert_int_equal(row, i - 1);
		assert_int_equal(fabric_host_add(&f, &h, &row), 0);
		assert_int_equal(row, i - 1);
	}
	h.island[0] = 3;
	assert_int_equal(fabric_host_add(&f, &h, &row), FABRIC_FULL);
	assert_int_equal(row, FABRIC_HOSTS_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_the_readme_hold),
		cmocka_unit_test(without_nvlink_each_step_outwards_counts),
		cmocka_unit_test(an_nvlink_domain_is_one_large_host),
		cmocka_unit_test(a_network_that_adds_up_halves_the_traffic),
		cmocka_unit_test(a_limit_per_host_holds_whatever_its_cards),
		cmocka_unit_test(a_card_is_no_faster_than_its_slot),
		cmocka_unit_test(no_cards_is_no_path),
		cmocka_unit_test(a_shape_is_worth_less_at_wider_levels),
		cmocka_unit_test(a_shape_sees_only_the_models_it_accepts),
		cmocka_unit_test(slowdown_follows_from_share_or_from_bytes),
		cmocka_unit_test(time_is_latency_and_bandwidth),
		cmocka_unit_test(largest_figures_do_not_overflow),
		cmocka_unit_test(figures_that_cannot_be_are_refused_by_name),
		cmocka_unit_test(equal_makes_share_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
