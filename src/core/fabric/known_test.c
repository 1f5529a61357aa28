/* SPDX-License-Identifier: Apache-2.0 */
/* Whose word holds about a host: a file's, then the machine's, then that of the table of models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/fabric/describe.h"
#include "core/fabric/known.h"
#include "core/model/apply.h"

static struct facts facts;

static void put(struct event e)
{
	e.seq = facts.seq + 1;
	e.time_ms = 1;
	apply(&facts, &e);
}

static struct event node(void)
{
	struct event e = event_make(EVENT_NODE_SET, 1, "test");

	e.node_set.name = "n0";
	e.node_set.gpus = 4;
	e.node_set.model = "H100-80GB";
	return e;
}

/* 9 of 18 links, to switches; two switches of PCIe; two cards. */
static struct event found(void)
{
	static const int64_t switches[] = { 3, 12 };
	struct event e = event_make(EVENT_NODE_FOUND, 1, "test");

	e.node_found.node = 1;
	e.node_found.given = FOUND_ALL;
	e.node_found.switches = switches;
	e.node_found.switches_count = 2;
	e.node_found.nics = 2;
	e.node_found.nic_mbps = 24000;
	e.node_found.nvlink_mbps = 185400;
	e.node_found.reduces = 1;
	e.node_found.pcie_mbps = 12000;
	return e;
}

static const struct node *n0(void)
{
	return node_get(&facts, (struct node_id){ 1 });
}

static int start(void **state)
{
	(void)state;
	facts_init(&facts);
	put(node());
	return 0;
}

static int stop(void **state)
{
	(void)state;
	facts_deinit(&facts);
	return 0;
}

static void a_model_says_what_nobody_else_says(void **state)
{
	struct fabric_host host;

	(void)state;
	assert_false(fabric_host_is_told(n0()));
	fabric_host_begin(&facts, n0(), &host);
	assert_int_equal(host.nvlink_mbps, 370800);
	assert_int_equal(host.reduce_mbps, 274000);
	assert_int_equal(host.pcie_mbps, 48000);
	assert_int_equal(host.nics, 0);
	assert_int_equal(host.gpus, 4);
}

static void what_was_found_comes_before_the_model(void **state)
{
	struct fabric_host host;

	(void)state;
	put(found());
	assert_true(fabric_host_is_told(n0()));
	fabric_host_begin(&facts, n0(), &host);
	assert_int_equal(host.nvlink_mbps, 185400);
	assert_int_equal(host.reduce_mbps, 137000); /* half of the links, half of the adding up */
	assert_int_equal(host.pcie_mbps, 12000);
	assert_int_equal(host.numa_mbps, 12000); /* never faster than the slot */
	assert_int_equal(host.socket_mbps, 12000);
	assert_int_equal(host.nics, 2);
	assert_int_equal(host.nic_mbps, 24000);
	assert_int_equal(host.pcie_switch[1], 12);
	assert_int_equal(host.island[0], 0);
}

static void no_switch_adds_nothing_up(void **state)
{
	struct fabric_host host;
	struct event e = found();

	(void)state;
	e.node_found.reduces = 0;
	put(e);
	fabric_host_begin(&facts, n0(), &host);
	assert_int_equal(host.reduce_mbps, 0);
}

static void what_a_file_said_stays_when_the_machine_is_looked_at_again(void **state)
{
	static const int64_t nodes[] = { 1 }, makes[] = { 1 },
			     said[] = { 1 << FABRIC_KEY_NVLINK | 1 << FABRIC_KEY_NIC };
	struct event e = event_make(EVENT_FABRIC_SET, 1, "test");
	int64_t numbers[MAKE_FIELDS];
	struct fabric_host host;

	(void)state;
	fabric_host_begin(&facts, n0(), &host);
	host.nvlink_mbps = 100;
	host.reduce_mbps = 7;
	host.nic_mbps = 99;
	host.pcie_mbps = 13;
	fabric_make_numbers(&host, numbers);
	e.fabric_set.models = "H100-80GB";
	e.fabric_set.makes = numbers;
	e.fabric_set.makes_count = MAKE_FIELDS;
	e.fabric_set.nodes = nodes;
	e.fabric_set.node_makes = makes;
	e.fabric_set.node_said = said;
	e.fabric_set.nodes_count = e.fabric_set.node_makes_count = e.fabric_set.node_said_count = 1;
	put(e);
	assert_int_equal(n0()->said, said[0]);
	put(found());
	fabric_host_again(&facts, n0(), n0()->said, &host);
	assert_int_equal(host.nvlink_mbps, 100);
	assert_int_equal(host.reduce_mbps, 7);
	assert_int_equal(host.nic_mbps, 99);
	assert_int_equal(host.nics, 2); /* the file did not name it */
	assert_int_equal(host.pcie_mbps, 12000);
	/* a description without a word of who said what: nothing is known of that */
	e.fabric_set.node_said_count = 0;
	put(e);
	assert_int_equal(n0()->said, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_model_says_what_nobody_else_says, start, stop),
		cmocka_unit_test_setup_teardown(what_was_found_comes_before_the_model, start, stop),
		cmocka_unit_test_setup_teardown(no_switch_adds_nothing_up, start, stop),
		cmocka_unit_test_setup_teardown(
			what_a_file_said_stays_when_the_machine_is_looked_at_again, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
