/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fabric/testing.h"

static void rates_are_read_in_bits_and_bytes(void **state)
{
	static const struct {
		const char *text;
		uint64_t mbps; /* 0 = refused */
	} cases[] = {
		{ "400Gb/s", 48000 },
		{ "100Gb/s", 12000 },
		{ "50GB/s", 50000 },
		{ "12.5GB/s", 12500 },
		{ "900MB/s", 900 },
		{ "1.8TB/s", 1800000 },
		{ "0.8Tb/s", 96000 },
		{ "1000Mb/s", 120 },
		{ "1MB/s", 1 },
		{ "1000TB/s", 1000000000 },
		{ "1000.001TB/s", 0 },
		{ "0.999MB/s", 0 },
		{ "9Mb/s", 1 },
		{ "8Mb/s", 0 },
		{ "", 0 },
		{ "GB/s", 0 },
		{ "50", 0 },
		{ "50 GB/s", 0 },
		{ "50gb/s", 0 },
		{ "1.2345GB/s", 0 },
		{ "1.GB/s", 0 },
		{ "-1GB/s", 0 },
		{ "50GB/s ", 0 },
		{ "99999999999999999999GB/s", 0 },
		{ "18446744073709551GB/s", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t mbps = 7;
		int r = fabric_parse_rate(cases[i].text, &mbps, NULL);

		if (cases[i].mbps ? r != 0 || mbps != cases[i].mbps
				  : r != -(int)ERR_INVALID || mbps != 7)
			fail_msg("%s: %llu", cases[i].text, (unsigned long long)mbps);
	}
}

static void groups_are_read_and_refused(void **state)
{
	uint32_t groups[FABRIC_GROUPS_MAX];
	static const char *const bad[] = {
		"0-8", "8", "3-1", "0-3 3", "a", "0,", ",0", "0-", "0 1 2 3 4 5 6 7 0", "0;1"
	};
	struct err err;

	(void)state;
	assert_int_equal(fabric_parse_groups("0-3 4-7", 8, groups, NULL), 0);
	assert_int_equal(groups[0], 0x0f);
	assert_int_equal(groups[1], 0xf0);
	assert_int_equal(groups[2], 0);
	assert_int_equal(fabric_parse_groups("0,2 1,4-6", 8, groups, NULL), 0);
	assert_int_equal(groups[0], 0x05);
	assert_int_equal(groups[1], 0x72);
	assert_int_equal(fabric_parse_groups("0-31", 32, groups, NULL), 0);
	assert_int_equal(groups[0], UINT32_MAX);
	assert_int_equal(fabric_parse_groups("all", 8, groups, NULL), 0);
	assert_int_equal(groups[0], 0);
	assert_int_equal(fabric_parse_groups("none", 16, groups, NULL), 0);
	assert_int_equal(groups[0], 1);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		groups[0] = 77;
		if (fabric_parse_groups(bad[i], 8, groups, &err) != -(int)ERR_INVALID ||
		    groups[0] != 77)
			fail_msg("%s", bad[i]);
		assert_non_null(strstr(err.text, bad[i]));
	}
}

static void a_model_is_known_by_the_longest_name_that_begins_it(void **state)
{
	struct fabric_host h;

	(void)state;
	assert_int_equal(fabric_host_default(&h, "A100-80GB"), 0);
	assert_int_equal(h.memory_mbps, 2039000);
	assert_int_equal(fabric_host_default(&h, "A100-40GB"), 0);
	assert_int_equal(h.memory_mbps, 1555000);
	assert_int_equal(fabric_host_default(&h, "H100-PCIE-80GB"), 0);
	assert_int_equal(h.nvlink_mbps, 0);
	assert_int_equal(fabric_host_default(&h, "L4"), 0);
	assert_int_equal(h.memory_mbps, 300000);
	assert_int_equal(fabric_host_default(&h, "L40S-48GB"), 0);
	assert_int_equal(h.memory_mbps, 864000);
	assert_int_equal(fabric_host_default(&h, "A1000"), FABRIC_UNKNOWN);
	assert_int_equal(fabric_host_default(&h, ""), FABRIC_UNKNOWN);
	assert_int_equal(h.pcie_mbps, 12000);
	assert_int_equal(h.nics, 0);
}

static void every_default_passes_the_check(void **state)
{
	static struct fabric f = { .host_count = 1 };
	struct err err;

	(void)state;
	for (const struct fabric_gpu_row *r = fabric_gpu_table; r->name; r++) {
		assert_int_equal(fabric_host_default(&f.host[0], r->name), 0);
		if (fabric_check(&f, &err))
			fail_msg("%s: %s", r->name, err.text);
		assert_true(strlen(r->source) > 0);
	}
	assert_int_equal(fabric_host_default(&f.host[0], "unheard of"), FABRIC_UNKNOWN);
	assert_int_equal(fabric_check(&f, NULL), 0);
}

static void every_key_of_a_host_is_set(void **state)
{
	static const char *const puts_[] = {
		"gpus",
		"4",
		"nics",
		"2",
		"nic",
		"hdr",
		"islands",
		"0,1 2,3",
		"switches",
		"0 1 2 3",
		"numa",
		"0-1 2-3",
		"nvlink",
		"nvlink3",
		"reduce",
		"100GB/s",
		"tree",
		"60GB/s",
		"pcie",
		"gen4",
		"between_switches",
		"23GB/s",
		"between_numa",
		"22GB/s",
	};
	struct fabric_host h = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(puts_); i += 2)
		if (fabric_host_put(&h, puts_[i], puts_[i + 1], NULL))
			fail_msg("%s", puts_[i]);
	assert_int_equal(h.gpus, 4);
	assert_int_equal(h.nics, 2);
	assert_int_equal(h.nic_mbps, 24000);
	assert_int_equal(h.island[1], 12);
	assert_int_equal(h.pcie_switch[3], 8);
	assert_int_equal(h.numa[0], 3);
	assert_int_equal(h.nvlink_mbps, 240000);
	assert_int_equal(h.reduce_mbps, 100000);
	assert_int_equal(h.tree_mbps, 60000);
	assert_int_equal(h.pcie_mbps, 24000);
	assert_int_equal(h.numa_mbps, 23000);
	assert_int_equal(h.socket_mbps, 22000);
	assert_int_equal(fabric_host_put(&h, "nvlink", "none", NULL), 0);
	assert_int_equal(h.nvlink_mbps + h.reduce_mbps, 0);
	assert_int_equal(fabric_host_put(&h, "nic", "200Gb/s", NULL), 0);
	assert_int_equal(h.nic_mbps, 24000);
}

static void every_key_of_a_level_is_set(void **state)
{
	struct fabric_level v = { 0 };
	static const struct {
		const char *text;
		uint32_t milli, ns; /* 0 = refused */
	} cases[] = {
		{ "2:1", 2000, 0 },
		{ "2", 2000, 0 },
		{ "1.5:1", 1500, 0 },
		{ "1000:1", 1000000, 0 },
		{ "0.5:1", 0, 0 },
		{ "1000.001", 0, 0 },
		{ "2:2", 0, 0 },
		{ "5us", 0, 5000 },
		{ "0.4us", 0, 400 },
		{ "3ms", 0, 3000000 },
		{ "1000ms", 0, 1000000000 },
		{ "1000.001ms", 0, 0 },
		{ "250ns", 0, 250 },
		{ "0us", 0, 0 },
		{ "5s", 0, 0 },
	};

	(void)state;
	assert_int_equal(fabric_level_put(&v, "nvlink", "true", NULL), 0);
	assert_int_equal(fabric_level_put(&v, "reduces", "true", NULL), 0);
	assert_int_equal(fabric_level_put(&v, "host", "100Gb/s", NULL), 0);
	assert_true(v.nvlink && v.reduces);
	assert_int_equal(v.host_mbps, 12000);
	assert_int_equal(fabric_level_put(&v, "host", "none", NULL), 0);
	assert_int_equal(fabric_level_put(&v, "nvlink", "false", NULL), 0);
	assert_true(!v.nvlink && v.host_mbps == 0);
	assert_true(fabric_level_put(&v, "nvlink", "yes", NULL) < 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		v.over_milli = v.latency_ns = 0;
		assert_int_equal(fabric_level_put(&v, "oversubscription", cases[i].text, NULL) == 0,
				 cases[i].milli != 0);
		assert_int_equal(fabric_level_put(&v, "latency", cases[i].text, NULL) == 0,
				 cases[i].ns != 0);
		assert_int_equal(v.over_milli, cases[i].milli);
		assert_int_equal(v.latency_ns, cases[i].ns);
	}
}

static void complaints_name_the_value_and_what_would_do(void **state)
{
	static const struct {
		const char *key, *value, *text;
	} cases[] = {
		{ "nik", "ndr", "a fabric's host has no \"nik\"; did you mean \"nic\"" },
		{ "nic", "ndrr",
		  "network card \"ndrr\" is not known; did you mean \"ndr\"; a rate such as 50GB/s will do too" },
		{ "nic", "50GiB/s", "rate \"50GiB/s\": expected a number and MB/s" },
		{ "pcie", "zen4", "PCIe \"zen4\" is not known" },
		{ "gpus", "33", "gpus: " },
		{ "islands", "0-9", "groups \"0-9\": expected GPU numbers below 8" },
	};
	struct fabric_level v = { 0 };
	struct fabric_host h;
	struct err err;

	(void)state;
	assert_int_equal(fabric_host_default(&h, "H100"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(fabric_host_put(&h, cases[i].key, cases[i].value, &err),
				 -(int)ERR_INVALID);
		if (strncmp(err.text, cases[i].text, strlen(cases[i].text)) != 0)
			fail_msg("%s", err.text);
	}
	assert_true(fabric_level_put(&v, "latenzy", "1us", &err) < 0);
	assert_string_equal(err.text,
			    "a fabric's level has no \"latenzy\"; did you mean \"latency\"");
	assert_true(fabric_level_put(&v, "oversubscription", "1:2", &err) < 0);
	assert_string_equal(err.text,
			    "oversubscription \"1:2\": expected 1:1 to 1000:1, such as 2:1");
}

/* Any text: refused and nothing changed, or taken and within the limits. */
static void no_text_leaves_figures_that_cannot_be(void **state)
{
	static const char letters[] = "0123456789.:,- GTMmnusbB/lonewa\377";
	static const char *const keys[] = { "gpus",   "nics",   "nic",  "islands",     "numa",
					    "nvlink", "reduce", "pcie", "between_numa" };
	static struct fabric f = { .host_count = 1 };
	struct dice dice = { 9 };
	uint32_t taken = 0;

	(void)state;
	assert_int_equal(fabric_host_default(&f.host[0], "H100"), 0);
	for (uint32_t round = 0; round < 200000; round++) {
		struct fabric_host before = f.host[0];
		char text[12] = { 0 };
		uint32_t size = dice_below(&dice, sizeof(text));

		for (uint32_t i = 0; i < size; i++)
			text[i] = letters[dice_below(&dice, sizeof(letters) - 1)];
		if (fabric_host_put(&f.host[0], keys[dice_below(&dice, ARRAY_SIZE(keys))], text,
				    NULL))
			assert_memory_equal(&before, &f.host[0], sizeof(before));
		else
			taken++;
		if (fabric_check(
			    &f,
			    NULL)) /* fewer GPUs than the groups name, or no rate where one is needed */
			assert_int_equal(fabric_host_default(&f.host[0], "H100"), 0);
		if (fabric_level_put(&f.level[0], round % 2 ? "latency" : "oversubscription", text,
				     NULL) == 0)
			taken++;
		assert_int_equal(fabric_check(&f, NULL), 0);
	}
	assert_true(taken > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_read_in_bits_and_bytes),
		cmocka_unit_test(groups_are_read_and_refused),
		cmocka_unit_test(a_model_is_known_by_the_longest_name_that_begins_it),
		cmocka_unit_test(every_default_passes_the_check),
		cmocka_unit_test(every_key_of_a_host_is_set),
		cmocka_unit_test(every_key_of_a_level_is_set),
		cmocka_unit_test(no_text_leaves_figures_that_cannot_be),
		cmocka_unit_test(complaints_name_the_value_and_what_would_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
