/* SPDX-License-Identifier: Apache-2.0 */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/arena.h"
#include "node/discover.h"

/* GPUs of testing/eight_gpus.xml. */
#define EIGHT_BUSES                                                                                        \
	"bus 0 00000000:03:00.0\nbus 1 00000000:04:00.0\nbus 2 00000000:13:00.0\nbus 3 00000000:14:00.0\n" \
	"bus 4 00000000:83:00.0\nbus 5 00000000:84:00.0\nbus 6 00000000:93:00.0\nbus 7 00000000:94:00.0\n"

static struct arena arena;
static struct err err;
static char work[64]; /* a folder of the test's own; the one of the build may be somebody else's */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int start(void **state)
{
	(void)state;
	arena_init(&arena, 64 << 20);
	snprintf(work, sizeof(work), "/tmp/fairlead-discover-XXXXXX");
	assert_non_null(mkdtemp(work));
	unsetenv("FAKE_NVML_STATE");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	arena_deinit(&arena);
	return nftw(work, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void driver_says(const char *text)
{
	static char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/state", work);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	setenv("FAKE_NVML_STATE", path, 1);
	setenv("FAIRLEAD_NVML", FAKE_NVML, 1);
}

static void simulated_nodes_are_declared_by_one_word(void **state)
{
	(void)state;
	struct nodes_found found;
	assert_int_equal(nodes_find("sim:4x8xH100-80GB,1x4xA100-40GB", &arena, &found, &err), 0);
	assert_int_equal(found.count, 5);
	assert_string_equal(found.nodes[3].name, "node3");
	assert_int_equal(found.nodes[3].gpu_count, 8);
	assert_int_equal(found.nodes[3].gpu_memory_mib, 80 * 1024);
	assert_string_equal(found.nodes[4].model, "A100-40GB");
	assert_int_equal(found.nodes[4].gpu_memory_mib, 40 * 1024);
	assert_true(found.nodes[4].simulated);
}

static void simulated_numa_nodes_share_gpus_and_processors_out(void **state)
{
	(void)state;
	struct nodes_found found;
	assert_int_equal(nodes_find("sim:1x4xH100-80GB/2,1x4xL4", &arena, &found, &err), 0);
	assert_int_equal(found.nodes[0].numa_count, 2);
	assert_int_equal(found.nodes[0].numa[0].gpus, 3);
	assert_int_equal(found.nodes[0].numa[1].gpus, 12);
	assert_int_equal(found.nodes[0].numa[1].cpu_milli, 16000);
	assert_int_equal(found.nodes[0].numa[1].nics, 1);
	assert_true(*found.nodes[0].numa[0].cpus && *found.nodes[0].numa[1].cpus);
	assert_string_equal(found.nodes[0].model, "H100-80GB");
	assert_int_equal(found.nodes[1].numa_count, 0);
}

static void simulated_nodes_stand_in_racks_and_have_islands(void **state)
{
	struct nodes_found found;

	(void)state;
	assert_int_equal(
		nodes_find("sim:5x8xH100-80GB/islands=2/rack=2/numa=2,1x4xL4,2x1xT4/rack=4", &arena,
			   &found, &err),
		0);
	assert_string_equal(found.levels, "rack");
	assert_false(found.levels_hold);
	assert_string_equal(found.nodes[1].domains, "r0");
	assert_string_equal(found.nodes[4].domains, "r2");
	assert_string_equal(found.nodes[5].domains, "");
	assert_string_equal(found.nodes[6].domains, "r3"); /* racks are counted through */
	assert_int_equal(found.nodes[0].found.given, FOUND_ISLANDS);
	assert_int_equal(found.nodes[0].found.island[0], 0x0f);
	assert_int_equal(found.nodes[0].found.island[1], 0xf0);
	assert_int_equal(found.nodes[0].numa_count, 2);
	assert_int_equal(found.nodes[5].found.given, 0);
	assert_int_equal(nodes_find("sim:1x8xH100", &arena, &found, &err), 0);
	assert_string_equal(found.levels, "");
}

/* libpciaccess, which hwloc loads to look at the real machine, keeps some bytes for ever. */
static void no_pci(void)
{
	setenv("HWLOC_COMPONENTS", "-pci", 1);
}

static void numa_nodes_of_this_machine_come_from_hwloc(void **state)
{
	(void)state;
	struct nodes_found found;
	setenv("FAIRLEAD_NVML", FAKE_NVML, 1);
	unsetenv("HWLOC_COMPONENTS");
	setenv("HWLOC_XMLFILE", TWO_NUMA, 1);
	assert_int_equal(nodes_find(NULL, &arena, &found, &err), 0);
	unsetenv("HWLOC_XMLFILE");
	no_pci();
	assert_int_equal(found.nodes[0].numa_count, 2);
	assert_int_equal(found.nodes[0].numa[0].gpus, 3);
	assert_int_equal(found.nodes[0].numa[1].gpus, 12);
	assert_string_equal(found.nodes[0].numa[0].cpus, "0-1");
	assert_string_equal(found.nodes[0].numa[1].cpus, "2-3");
	assert_int_equal(found.nodes[0].numa[0].cpu_milli, 2000);
	assert_int_equal(found.nodes[0].numa[0].nics, 0);
	assert_int_equal(found.nodes[0].numa[1].nics, 1);
}

static void a_bad_declaration_is_refused_with_the_form_it_should_have(void **state)
{
	(void)state;
	static const char *const bad[] = { "sim:",
					   "sim:4",
					   "sim:4x8",
					   "sim:0x8xH100",
					   "sim:4x33xH100",
					   "sim:4097x1xH100",
					   "4x8xH100",
					   "sim:-1x8xH100",
					   "sim:1x1xH 100",
					   "sim:4000x1xA,4000x1xB",
					   "sim:1x4xH100/0",
					   "sim:1x4xH100/5",
					   "sim:1x16xH100/9",
					   "sim:1x4xH100/2/numa=2",
					   "sim:1x4xH100/islands=5",
					   "sim:1x4xH100/rack=0",
					   "sim:1x4xH100/row=2" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct nodes_found found;
		err = (struct err){ 0 };
		assert_true(nodes_find(bad[i], &arena, &found, &err) < 0);
		assert_true(strlen(err.text) > 20);
	}
}

static void gpus_of_this_machine_come_from_the_driver(void **state)
{
	(void)state;
	setenv("FAIRLEAD_NVML", FAKE_NVML, 1);
	struct nodes_found found;
	assert_int_equal(nodes_find(NULL, &arena, &found, &err), 0);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.nodes[0].gpu_count, 4);
	assert_string_equal(found.nodes[0].model, "H100-80GB");
	assert_string_equal(found.nodes[0].driver, "550.54.14");
	assert_string_equal(found.nodes[0].cuda, "12.4");
	assert_true(found.nodes[0].found.given & FOUND_PROCESSES);
	assert_int_equal(found.nodes[0].capability, 90);
	assert_int_equal(found.nodes[0].gpu_memory_mib, 81559);
	assert_true(found.nodes[0].cpu_milli >= 1000);
	assert_true(found.nodes[0].ram_mib > 0);
	assert_false(found.nodes[0].simulated);
	assert_string_equal(found.remark, "");
}

static void unlike_gpus_and_a_driver_that_fails_are_said(void **state)
{
	(void)state;
	setenv("FAIRLEAD_NVML", FAKE_NVML, 1);
	struct nodes_found found;
	driver_says("odd 3 NVIDIA A100-SXM4-40GB\n");
	assert_true(nodes_find(NULL, &arena, &found, &err) < 0);
	assert_non_null(strstr(err.text, "A100"));
	driver_says("broken 9\n");
	assert_true(nodes_find(NULL, &arena, &found, &err) < 0);
	assert_non_null(strstr(err.text, "Driver Not Loaded"));
}

static const struct found *found_with(const char *text)
{
	static struct nodes_found found;

	driver_says(text);
	assert_int_equal(nodes_find(NULL, &arena, &found, &err), 0);
	return &found.nodes[0].found;
}

static void links_make_islands(void **state)
{
	static const struct {
		const char *says;
		uint32_t island[3], nvlink_mbps;
		bool reduces;
	} rows[] = {
		/* all reach each other through switches: one island, and none is named */
		{ "switched 18\n", { 0 }, 370800, true },
		{ "switched 12\ncapability 8 0\n", { 0 }, 240000, true },
		/* two pairs with a bridge each */
		{ "link 0 1 4\nlink 2 3 4\ncapability 8 6\n", { 3, 12 }, 48000, false },
		/* a ring: neighbours are joined, and so all are */
		{ "link 0 1 1\nlink 1 2 1\nlink 2 3 1\nlink 0 3 1\ncapability 7 0\n",
		  { 0 },
		  40000,
		  false },
		/* a pair and two without */
		{ "link 1 2 2\n", { 6, 1, 8 }, 41200, false },
		/* the switches are not set up yet */
		{ "switched 18\napart 0 1\napart 0 2\napart 0 3\n", { 14, 1 }, 370800, true },
		/* a virtual machine hides the other ends: the driver's word decides */
		{ "switched 18\nblind\n", { 0 }, 370800, false },
		/* no links at all */
		{ "gpus 2\n", { 1, 2 }, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct found *found = found_with(rows[i].says);

		assert_true(found->given & FOUND_ISLANDS);
		assert_true(found->given & FOUND_NVLINK);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(found->island[k], rows[i].island[k]);
		assert_int_equal(found->nvlink_mbps, rows[i].nvlink_mbps);
		assert_int_equal(found->reduces, rows[i].reduces);
	}
	/* a GPU of a generation that is not known: joined, but nobody says how fast */
	assert_int_equal(found_with("switched 4\ncapability 3 5\n")->given & FOUND_NVLINK, 0);
}

static void switches_and_slots_come_from_the_driver(void **state)
{
	const struct found *found;

	(void)state;
	found = found_with("near 0 1 20\nnear 2 3 10\npcie 5 16\n");
	assert_int_equal(found->given & (FOUND_SWITCHES | FOUND_PCIE), FOUND_SWITCHES | FOUND_PCIE);
	assert_int_equal(found->pcie_switch[0], 3);
	assert_int_equal(found->pcie_switch[1], 12);
	assert_int_equal(found->pcie_mbps, 48000);
	assert_int_equal(found_with("pcie 4 8\n")->pcie_mbps, 12000);
	assert_int_equal(found_with("pcie 9 16\n")->given & FOUND_PCIE, 0);
}

static void file_put(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Files of /sys below a folder of the test's own. */
static void card_put(const char *name, const char *state, const char *layer, const char *rate)
{
	static const char *const parts[] = { "", "/class", "/class/infiniband" };
	char path[512], folder[400];

	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/sys%s", work, parts[i]);
		(void)mkdir(path, 0755);
	}
	snprintf(folder, sizeof(folder), "%s/sys/class/infiniband/%s", work, name);
	(void)mkdir(folder, 0755);
	snprintf(path, sizeof(path), "%s/ports", folder);
	(void)mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/ports/1", folder);
	(void)mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/ports/1/state", folder);
	file_put(path, state);
	snprintf(path, sizeof(path), "%s/ports/1/link_layer", folder);
	file_put(path, layer);
	snprintf(path, sizeof(path), "%s/ports/1/rate", folder);
	file_put(path, rate);
	snprintf(path, sizeof(path), "%s/sys", work);
	setenv("FAIRLEAD_SYS", path, 1);
}

static void cards_come_from_the_bus_and_their_ports(void **state)
{
	const struct found *found;

	(void)state;
	unsetenv("HWLOC_COMPONENTS");
	setenv("HWLOC_XMLFILE", EIGHT_GPUS, 1);
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "mlx5_%d", i);
		card_put(name, "4: ACTIVE\n", "InfiniBand\n", "400 Gb/sec (4X NDR)\n");
	}
	found = found_with("gpus 8\n" EIGHT_BUSES);
	assert_true(found->given & FOUND_NICS);
	assert_int_equal(found->nics, 4);
	assert_int_equal(found->nic_mbps, 48000);
	/* one that is down is not counted, nor a slow one beside fast ones */
	card_put("mlx5_1", "1: DOWN\n", "InfiniBand\n", "400 Gb/sec (4X NDR)\n");
	card_put("mlx5_2", "4: ACTIVE\n", "InfiniBand\n", "100 Gb/sec (4X EDR)\n");
	found = found_with("gpus 8\n" EIGHT_BUSES);
	assert_int_equal(found->nics, 2);
	card_put("mlx5_0", "4: ACTIVE\n", "Ethernet\n", "100 Gb/sec (4X EDR)\n");
	card_put("mlx5_3", "4: ACTIVE\n", "Ethernet\n", "100 Gb/sec (4X EDR)\n");
	found = found_with("gpus 8\n" EIGHT_BUSES);
	assert_int_equal(found->nics, 1);
	assert_int_equal(found->nic_mbps, 12000); /* the InfiniBand one */
	setenv("FAIRLEAD_SYS", "/nowhere", 1);
	assert_int_equal(found_with("gpus 8\n" EIGHT_BUSES)->given & FOUND_NICS, 0);
	unsetenv("FAIRLEAD_SYS");
	unsetenv("HWLOC_XMLFILE");
	no_pci();
}

static void switches_come_from_the_bus_where_the_driver_does_not_tell(void **state)
{
	const struct found *found;

	(void)state;
	unsetenv("HWLOC_COMPONENTS");
	setenv("HWLOC_XMLFILE", EIGHT_GPUS, 1);
	found = found_with("gpus 8\nsilent\n" EIGHT_BUSES);
	unsetenv("HWLOC_XMLFILE");
	no_pci();
	assert_true(found->given & FOUND_SWITCHES);
	assert_int_equal(found->pcie_switch[0], 0x03);
	assert_int_equal(found->pcie_switch[1], 0x0c);
	assert_int_equal(found->pcie_switch[2], 0x30);
	assert_int_equal(found->pcie_switch[3], 0xc0);
}

static void a_machine_without_driver_has_no_gpus_and_says_what_to_do(void **state)
{
	(void)state;
	setenv("FAIRLEAD_NVML", "/nowhere/libnvidia-ml.so.1", 1);
	struct nodes_found found;
	assert_int_equal(nodes_find(NULL, &arena, &found, &err), 0);
	assert_int_equal(found.nodes[0].gpu_count, 0);
	assert_non_null(strstr(found.remark, "--nodes sim:"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(simulated_nodes_are_declared_by_one_word, start,
						stop),
		cmocka_unit_test_setup_teardown(simulated_numa_nodes_share_gpus_and_processors_out,
						start, stop),
		cmocka_unit_test_setup_teardown(simulated_nodes_stand_in_racks_and_have_islands,
						start, stop),
		cmocka_unit_test_setup_teardown(numa_nodes_of_this_machine_come_from_hwloc, start,
						stop),
		cmocka_unit_test_setup_teardown(
			a_bad_declaration_is_refused_with_the_form_it_should_have, start, stop),
		cmocka_unit_test_setup_teardown(gpus_of_this_machine_come_from_the_driver, start,
						stop),
		cmocka_unit_test_setup_teardown(unlike_gpus_and_a_driver_that_fails_are_said, start,
						stop),
		cmocka_unit_test_setup_teardown(links_make_islands, start, stop),
		cmocka_unit_test_setup_teardown(switches_and_slots_come_from_the_driver, start,
						stop),
		cmocka_unit_test_setup_teardown(cards_come_from_the_bus_and_their_ports, start,
						stop),
		cmocka_unit_test_setup_teardown(
			switches_come_from_the_bus_where_the_driver_does_not_tell, start, stop),
		cmocka_unit_test_setup_teardown(
			a_machine_without_driver_has_no_gpus_and_says_what_to_do, start, stop),
	};

	no_pci();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
