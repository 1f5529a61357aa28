/* SPDX-License-Identifier: Apache-2.0 */
/* Readers and allocator. What claims get in general is compared with kube-scheduler's own allocator (tests/kubernetes/test_devices.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "engine/kubernetes/devices/allocate.h"

static struct dra_inventory inventory;
static struct arena arena;
static struct dra_claim *claim;
static struct dra_answer answer;
static const char *taken = "";

#define GPU(i, root)                                                                               \
	"{\"name\":\"gpu-" #i "\",\"attributes\":{\"type\":{\"string\":\"gpu\"},"                  \
	"\"x.io/root\":{\"string\":\"" root "\"}}}"
#define SLICE(name, count, rest)                                                                   \
	"{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"driver\":\"gpu.x.io\",\"nodeName\":"    \
	"\"n\",\"pool\":{\"name\":\"n\",\"generation\":1,\"resourceSliceCount\":" count "}," rest  \
	"}}"
#define CLAIM(requests)                                                                            \
	"{\"metadata\":{\"name\":\"c\",\"namespace\":\"d\",\"uid\":\"u\",\"resourceVersion\":"     \
	"\"7\"},\"spec\":{\"devices\":{\"requests\":[" requests "]}}}"
#define EXACTLY(more) "{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"all\"" more "}}"

static enum dra_state state_of(void *context, const struct dra_slice *slice,
			       const struct dra_device *device)
{
	(void)context;
	(void)slice;
	return strstr(taken, device->name) ? DRA_TAKEN : DRA_FREE;
}

static void publish(const char *text)
{
	struct dra_slice *slice;
	struct err err = { 0 };

	assert_int_equal(dra_slice_read(text, strlen(text), &slice, &err), 0);
	dra_slice_set(&inventory, slice);
}

static enum dra_verdict ask(const char *text)
{
	struct err err = { 0 };

	dra_claim_free(claim);
	claim = NULL;
	assert_int_equal(dra_claim_read(text, strlen(text), &claim, &err), 0);
	arena_reset(&arena);
	return dra_allocate(
		&inventory,
		&(struct dra_question){ .node = "n",
					.claims = (const struct dra_claim *const[]){ claim },
					.claim_count = 1,
					.state = state_of },
		&arena, &answer);
}

static const char *given(uint32_t i)
{
	assert_true(i < answer.allocations[0].count);
	return answer.allocations[0].made[i].device->name;
}

static int setup(void **state)
{
	static const char class[] = "{\"metadata\":{\"name\":\"all\"},\"spec\":{}}";
	struct dra_class *read;

	(void)state;
	arena_init(&arena, 64 << 20);
	taken = "";
	assert_int_equal(dra_class_read(class, strlen(class), &read, NULL), 0);
	dra_class_set(&inventory, read);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dra_inventory_deinit(&inventory);
	arena_deinit(&arena);
	dra_claim_free(claim);
	claim = NULL;
	return 0;
}

static void the_first_that_are_free_are_given(void **state)
{
	(void)state;
	publish(SLICE("s", "1", "\"devices\":[" GPU(0, "a") "," GPU(1, "b") "," GPU(2, "a") "]"));
	taken = "gpu-0";
	assert_int_equal(ask(CLAIM(EXACTLY(",\"count\":2"))), DRA_FITS);
	assert_string_equal(given(0), "gpu-1");
	assert_string_equal(given(1), "gpu-2");
	assert_int_equal(ask(CLAIM(EXACTLY(",\"count\":3"))), DRA_NO_ROOM);
	assert_int_equal(ask(CLAIM(EXACTLY(",\"allocationMode\":\"All\""))), DRA_NO_ROOM);
	taken = "";
	assert_int_equal(ask(CLAIM(EXACTLY(",\"allocationMode\":\"All\""))), DRA_FITS);
	assert_int_equal(answer.allocations[0].count, 3);
}

static void a_constraint_makes_the_search_go_back(void **state)
{
	(void)state;
	publish(SLICE(
		"s", "1",
		"\"devices\":[" GPU(0, "a") "," GPU(1, "b") "," GPU(2, "c") "," GPU(3, "b") "]"));
	assert_int_equal(
		ask("{\"metadata\":{\"name\":\"c\"},\"spec\":{\"devices\":{\"requests\":[" EXACTLY(
			",\"count\":2") "],\"constraints\":[{\"matchAttribute\":\"x.io/root\"}]}}}"),
		DRA_FITS);
	assert_string_equal(given(0), "gpu-1");
	assert_string_equal(given(1), "gpu-3");
	assert_int_equal(
		ask("{\"metadata\":{\"name\":\"c\"},\"spec\":{\"devices\":{\"requests\":[" EXACTLY(
			",\"count\":4") "],\"constraints\":[{\"distinctAttribute\":\"x.io/root\"}]}}}"),
		DRA_NO_ROOM);
}

static void counters_keep_parts_of_a_gpu_apart(void **state)
{
#define PART(name, amount)                                                                         \
	"{\"name\":\"" name "\",\"consumesCounters\":[{\"counterSet\":\"g\",\"counters\":{"        \
	"\"m\":{\"value\":\"" amount "\"}}}]}"
	(void)state;
	publish(SLICE("devices", "2",
		      "\"devices\":[" PART("whole", "40Gi") "," PART("a", "20Gi") "," PART(
			      "b", "20Gi") "," PART("c", "10Gi") "]"));
	publish(SLICE(
		"sets", "2",
		"\"sharedCounters\":[{\"name\":\"g\",\"counters\":{\"m\":{\"value\":\"40Gi\"}}}]"));
	assert_int_equal(ask(CLAIM(EXACTLY(",\"count\":2"))), DRA_FITS);
	assert_string_equal(given(0), "a"); /* beside the whole nothing fits */
	assert_string_equal(given(1), "b");
	assert_int_equal(ask(CLAIM(EXACTLY(",\"count\":3"))), DRA_NO_ROOM);
	taken = "c";
	assert_int_equal(ask(CLAIM(EXACTLY(",\"count\":2"))), DRA_NO_ROOM);
}

static void a_pool_counts_when_it_is_whole_and_newest(void **state)
{
	(void)state;
	publish(SLICE("s", "2", "\"devices\":[" GPU(0, "a") "]"));
	assert_int_equal(ask(CLAIM(EXACTLY(""))), DRA_NO_ROOM);
	assert_int_equal(ask(CLAIM(EXACTLY(",\"allocationMode\":\"All\""))), DRA_BAD);
	publish(SLICE("t", "2", "\"devices\":[" GPU(1, "a") "]"));
	assert_int_equal(ask(CLAIM(EXACTLY(""))), DRA_FITS);
	dra_slice_remove(&inventory, "t");
	assert_int_equal(ask(CLAIM(EXACTLY(""))), DRA_NO_ROOM);
}

static void what_is_not_built_is_named(void **state)
{
	static const struct {
		const char *request, *why;
	} cases[] = {
		{ EXACTLY(",\"adminAccess\":true"), "adminAccess" },
		{ EXACTLY(",\"allocationMode\":\"Some\""), "allocationMode Some" },
		{ EXACTLY(",\"capacity\":{\"requests\":{}}"), "a part of a device's capacity" },
		{ EXACTLY(",\"count\":33"), "33 devices; the most is 32" },
		{ "{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"no\"}}",
		  "there is no DeviceClass no" },
		{ "{\"name\":\"r\",\"exactly\":{}}", "a request without a device class" },
		{ "{\"name\":\"r\",\"newKind\":{}}", "a request without a device class" },
		{ EXACTLY(",\"selectors\":[{\"cel\":{\"expression\":\"1.5 < 2.0\"}}]"),
		  "expression \"1.5 < 2.0\"" },
		{ EXACTLY(",\"selectors\":[{}]"), "a selector that is no CEL expression" },
	};

	(void)state;
	publish(SLICE("s", "1", "\"devices\":[" GPU(0, "a") "]"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_BUF text = BUF_INIT;

		buf_addf(
			&text,
			"{\"metadata\":{\"name\":\"c\"},\"spec\":{\"devices\":{\"requests\":[%s]}}}",
			cases[i].request);
		assert_int_equal(ask(buf_text(&text)), DRA_BAD);
		if (!strstr(answer.why, cases[i].why))
			fail_msg("%s: %s", cases[i].request, answer.why);
	}
	/* Devices that would be given other than Kubernetes does are never given. */
	publish(SLICE("s", "1",
		      "\"devices\":[{\"name\":\"a\",\"allowMultipleAllocations\":true},"
		      "{\"name\":\"c\",\"attributes\":{\"l\":{\"ints\":[1]}}}]"));
	assert_int_equal(ask(CLAIM(EXACTLY(""))), DRA_NO_ROOM);
}

static void binding_conditions_are_waited_for_until_they_hold_or_one_says_failed(void **state)
{
	static const struct {
		const char *conditions;
		enum dra_binding found;
		const char *device, *text;
	} cases[] = {
		{ "", DRA_BIND_WAIT, "b", "Ready" },
		{ "{\"type\":\"Ready\",\"status\":\"True\"}", DRA_BIND_WAIT, "b", "Cooled" },
		{ "{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Cooled\",\"status\":\"False\"}",
		  DRA_BIND_WAIT, "b", "Cooled" },
		{ "{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Cooled\",\"status\":\"True\"},"
		  "{\"type\":\"Lost\",\"status\":\"False\"}",
		  DRA_BIND_NOW, "", "" },
		{ "{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Cooled\",\"status\":\"True\"},"
		  "{\"type\":\"Lost\",\"status\":\"True\",\"message\":\"no cable\"}",
		  DRA_BIND_FAILED, "b", "no cable" },
	};
	struct err err = { 0 };
	const char *device, *text;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_BUF json = BUF_INIT;

		buf_addf(
			&json,
			"{\"metadata\":{\"name\":\"c\"},\"spec\":{},\"status\":{\"allocation\":{\"devices\":{\"results\":["
			"{\"driver\":\"d\",\"pool\":\"p\",\"device\":\"a\"},"
			"{\"driver\":\"d\",\"pool\":\"p\",\"device\":\"b\",\"bindingConditions\":[\"Ready\",\"Cooled\"],"
			"\"bindingFailureConditions\":[\"Lost\"]}]}},\"devices\":["
			"{\"driver\":\"d\",\"pool\":\"q\",\"device\":\"b\",\"conditions\":[{\"type\":\"Lost\",\"status\":\"True\"}]},"
			"{\"driver\":\"d\",\"pool\":\"p\",\"device\":\"b\",\"conditions\":[%s]}]}}",
			cases[i].conditions);
		dra_claim_free(claim);
		claim = NULL;
		assert_int_equal(dra_claim_read(buf_text(&json), json.size, &claim, &err), 0);
		assert_int_equal(dra_claim_binding(claim, &device, &text), cases[i].found);
		assert_string_equal(device, cases[i].device);
		assert_string_equal(text, cases[i].text);
	}
}

/* One request for each pair of devices that are not there: all ways are tried, and there are too many. */
static void the_work_is_bounded(void **state)
{
	AUTO_BUF devices = BUF_INIT, text = BUF_INIT;

	(void)state;
	for (int i = 0; i < 64; i++)
		buf_addf(&devices,
			 "%s{\"name\":\"d%d\",\"attributes\":{\"x.io/root\":{\"int\":%d}}}",
			 i ? "," : "", i, i % 31);
	buf_addf(&text, SLICE("s", "1", "\"devices\":[%s]"), buf_text(&devices));
	publish(buf_text(&text));
	assert_int_equal(
		ask("{\"metadata\":{\"name\":\"c\"},\"spec\":{\"devices\":{\"requests\":[" EXACTLY(
			",\"count\":32") "],\"constraints\":[{\"distinctAttribute\":\"x.io/root\"}]}}}"),
		DRA_BAD);
	assert_non_null(strstr(answer.why, "more steps"));
	assert_true(answer.steps <= DRA_STEPS_MAX + 1);
}

static void lists_that_are_too_long_are_refused(void **state)
{
	AUTO_BUF text = BUF_INIT;
	struct dra_slice *slice;
	struct dra_claim *other;
	struct err err = { 0 };

	(void)state;
	buf_adds(&text, "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"devices\":[");
	for (int i = 0; i <= DRA_DEVICES_MAX; i++)
		buf_addf(&text, "%s{\"name\":\"d%d\"}", i ? "," : "", i);
	buf_adds(&text, "]}}");
	assert_true(dra_slice_read(buf_text(&text), text.size, &slice, &err) < 0);
	buf_clear(&text);
	buf_adds(&text, "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"devices\":{\"requests\":[");
	for (int i = 0; i <= DRA_REQUESTS_MAX; i++)
		buf_addf(&text, "%s{\"name\":\"r%d\"}", i ? "," : "", i);
	buf_adds(&text, "]}}}");
	assert_true(dra_claim_read(buf_text(&text), text.size, &other, &err) < 0);
	assert_true(dra_claim_read("{}", 2, &other, &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_that_are_free_are_given, setup, teardown),
		cmocka_unit_test_setup_teardown(a_constraint_makes_the_search_go_back, setup,
						teardown),
		cmocka_unit_test_setup_teardown(counters_keep_parts_of_a_gpu_apart, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_pool_counts_when_it_is_whole_and_newest, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_not_built_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(
			binding_conditions_are_waited_for_until_they_hold_or_one_says_failed, setup,
			teardown),
		cmocka_unit_test_setup_teardown(the_work_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_that_are_too_long_are_refused, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
