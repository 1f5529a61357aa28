/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that teach; tests/kubernetes/test_cel.py compares a hundred thousand with the reference. */
#include "base/testing.h"
#include "engine/kubernetes/cel/cel.h"

#include "base/arena.h"
#include "base/check.h"

static const struct cel_attribute attributes[] = {
	{ .id = "type", .kind = CEL_STRING, .text = "gpu" },
	{ .id = "productName", .kind = CEL_STRING, .text = "NVIDIA H100 80GB HBM3" },
	{ .id = "index", .kind = CEL_INT, .number = 3 },
	{ .id = "virtual", .kind = CEL_BOOL, .truth = false },
	{ .id = "driverVersion", .kind = CEL_VERSION, .text = "560.35.3" },
	{ .domain = "resource.kubernetes.io",
	  .id = "pcieRoot",
	  .kind = CEL_STRING,
	  .text = "pci0000:01" },
};
static const struct cel_capacity capacities[] = { { .id = "memory", .quantity = "81920Mi" } };
static const struct cel_device device = { .driver = "gpu.nvidia.com",
					  .attributes = attributes,
					  .attribute_count = ARRAY_SIZE(attributes),
					  .capacities = capacities,
					  .capacity_count = ARRAY_SIZE(capacities) };

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, (size_t)64 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_deinit(&arena);
	return 0;
}

static enum cel_answer ask(const char *text)
{
	const struct cel_program *program;
	struct err err = { 0 };

	if (cel_compile(&arena, text, strlen(text), &program, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return cel_ask(program, &device, &arena, NULL);
}

static void selectors_choose_devices(void **state)
{
	static const struct {
		const char *text;
		enum cel_answer answer;
	} cases[] = {
		{ "device.driver == 'gpu.nvidia.com'", CEL_YES },
		{ "device.attributes['gpu.nvidia.com'].type == \"mig\"", CEL_NO },
		{ "device.attributes['resource.kubernetes.io'].pcieRoot.endsWith(':01')", CEL_YES },
		{ "device.capacity[device.driver].memory == quantity('80Gi')", CEL_YES },
		{ "device.capacity['gpu.nvidia.com'].memory.isLessThan(quantity('80G'))", CEL_NO },
		{ "device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('560.35.2'))",
		  CEL_YES },
		{ "device.attributes['gpu.nvidia.com'].productName.matches('H(1|2)00 [0-9]{2}GB')",
		  CEL_YES },
		/* what is not there has no answer; a domain that is not there is empty */
		{ "device.attributes['gpu.nvidia.com'].colour == 'red'", CEL_FAILED },
		{ "'colour' in device.attributes['gpu.nvidia.com']", CEL_NO },
		{ "has(device.attributes['elsewhere'].colour)", CEL_NO },
		{ "device.attributes['elsewhere'].?colour.orValue('red') == 'red'", CEL_YES },
		/* an answer that hangs on nothing unknown is one */
		{ "device.attributes['gpu.nvidia.com'].colour == 'red' || true", CEL_YES },
		{ "false && device.attributes['gpu.nvidia.com'].colour == 'red'", CEL_NO },
		/* values of unlike types are not equal, but have no order */
		{ "device.attributes['gpu.nvidia.com'].index == 'three'", CEL_NO },
		{ "device.attributes['gpu.nvidia.com'].index < 'three'", CEL_FAILED },
		{ "device.attributes['gpu.nvidia.com'].exists(name, name.startsWith('prod'))",
		  CEL_YES },
		{ "cel.bind(d, device.attributes['gpu.nvidia.com'], d.index * 2 == 6 && !d.virtual)",
		  CEL_YES },
		{ "device.attributes['gpu.nvidia.com'].virtual", CEL_NO },
		{ "device.attributes['gpu.nvidia.com'].type", CEL_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (ask(cases[i].text) != cases[i].answer)
			fail_msg("%s", cases[i].text);
}

static void what_is_no_selector_is_told_with_its_place(void **state)
{
	static const struct {
		const char *text;
		enum err_code code;
		int column;
		const char *says;
	} cases[] = {
		{ "device.driver == 1", ERR_INVALID, 15, "unlike types" },
		{ "device.colour == 'red'", ERR_INVALID, 8, "a device has" },
		{ "node.name == 'a'", ERR_INVALID, 1, "there is no \"node\"" },
		{ "device.driver", ERR_INVALID, 1, "a string" },
		{ "true &&", ERR_INVALID, 8, "missing" },
		{ "(true", ERR_INVALID, 6, "\")\"" },
		{ "'open", ERR_INVALID, 6, "not closed" },
		{ "true true", ERR_INVALID, 6, "nothing more" },
		{ "device.driver.reverse() == ''", ERR_UNSUPPORTED, 15, "reverse" },
		{ "1.5 > 1.0", ERR_UNSUPPORTED, 1, "point" },
		{ "", ERR_INVALID, 1, "missing" },
		{ "9223372036854775808 > 0", ERR_INVALID, 1, "64 bits" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct cel_program *program;
		struct err err = { 0 };

		if (cel_compile(&arena, cases[i].text, strlen(cases[i].text), &program, &err) !=
			    -(int)cases[i].code ||
		    err.column != cases[i].column || !strstr(err.text, cases[i].says))
			fail_msg("%s: column %d: %s", cases[i].text, err.column, err.text);
	}
}

/* So many of one sign, and a word behind them; and one sign too many. */
static void put(char text[CEL_TEXT_MAX + 2], char sign, const char *word)
{
	memset(text, sign, CEL_TEXT_MAX + 1);
	for (size_t i = 0; word[i]; i++)
		text[CEL_TEXT_MAX - strlen(word) + i] = word[i];
}

/* Sizes from outside: one below the limit and one beyond. */
static void limits_hold(void **state)
{
	static char text[CEL_TEXT_MAX + 2];
	const struct cel_program *program;
	struct err err = { 0 };

	(void)state;
	put(text, ' ', "true");
	assert_int_equal(cel_compile(&arena, text, CEL_TEXT_MAX, &program, &err), 0);
	assert_int_equal(cel_compile(&arena, text, CEL_TEXT_MAX + 1, &program, &err),
			 -(int)ERR_INVALID);
	put(text, '!', "true");
	assert_int_equal(cel_compile(&arena, text, CEL_TEXT_MAX, &program, &err), 0);
	put(text, '(', "true");
	assert_int_equal(cel_compile(&arena, text, CEL_TEXT_MAX, &program, &err),
			 -(int)ERR_UNSUPPORTED);
	for (size_t i = 0; i < CEL_TEXT_MAX; i++)
		text[i] = i % 2 ? '+' : '1';
	assert_int_equal(cel_compile(&arena, text, CEL_TEXT_MAX, &program, &err),
			 -(int)ERR_UNSUPPORTED);
}

static void work_without_end_is_refused(void **state)
{
	(void)state;
#define TEN "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
	assert_int_equal(ask(TEN ".all(a, " TEN ".all(b, " TEN ".all(c, a + b + c > 0)))"),
			 CEL_YES);
	assert_int_equal(ask(TEN ".all(a, " TEN ".all(b, " TEN ".all(c, " TEN ".all(d, " TEN
				 ".all(e, " TEN ".all(f, true))))))"),
			 CEL_REFUSED);
	/* a pattern for which those that go back take for ever */
	assert_int_equal(ask("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.matches('^(a*)*$')"),
			 CEL_NO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(selectors_choose_devices, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_selector_is_told_with_its_place, setup,
						teardown),
		cmocka_unit_test_setup_teardown(limits_hold, setup, teardown),
		cmocka_unit_test_setup_teardown(work_without_end_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
