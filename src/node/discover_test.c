/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "node/discover.h"

static struct arena arena;
static struct err err;

static int start(void **state)
{
	(void)state;
	arena_init(&arena, 64 << 20);
	unsetenv("FAKE_NVML_MIXED");
	unsetenv("FAKE_NVML_BROKEN");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	arena_deinit(&arena);
	return 0;
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
	static const char *const bad[] = { "sim:",           "sim:4",
					   "sim:4x8",        "sim:0x8xH100",
					   "sim:4x33xH100",  "sim:4097x1xH100",
					   "4x8xH100",       "sim:-1x8xH100",
					   "sim:1x1xH 100",  "sim:4000x1xA,4000x1xB",
					   "sim:1x4xH100/0", "sim:1x4xH100/5",
					   "sim:1x16xH100/9" };
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
	assert_true(found.nodes[0].cpu_milli >= 1000);
	assert_true(found.nodes[0].ram_mib > 0);
	assert_false(found.nodes[0].simulated);
	assert_string_equal(found.remark, "");
}

static void unlike_gpus_and_a_driver_that_fails_are_said(void **state)
{
	(void)state;
	setenv("FAIRLEAD_NVML", FAKE_NVML, 1);
	setenv("FAKE_NVML_MIXED", "1", 1);
	struct nodes_found found;
	assert_true(nodes_find(NULL, &arena, &found, &err) < 0);
	assert_non_null(strstr(err.text, "A100"));
	setenv("FAKE_NVML_BROKEN", "1", 1);
	assert_true(nodes_find(NULL, &arena, &found, &err) < 0);
	assert_non_null(strstr(err.text, "Driver Not Loaded"));
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
		cmocka_unit_test_setup_teardown(numa_nodes_of_this_machine_come_from_hwloc, start,
						stop),
		cmocka_unit_test_setup_teardown(
			a_bad_declaration_is_refused_with_the_form_it_should_have, start, stop),
		cmocka_unit_test_setup_teardown(gpus_of_this_machine_come_from_the_driver, start,
						stop),
		cmocka_unit_test_setup_teardown(unlike_gpus_and_a_driver_that_fails_are_said, start,
						stop),
		cmocka_unit_test_setup_teardown(
			a_machine_without_driver_has_no_gpus_and_says_what_to_do, start, stop),
	};

	no_pci();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
