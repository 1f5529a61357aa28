/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "engine/kubernetes/quantity.h"

#include "base/check.h"

static void amounts_are_read_as_kubernetes_writes_them(void **state)
{
	static const struct {
		const char *text;
		int64_t milli;
	} cases[] = {
		{ "0", 0 },
		{ "2", 2000 },
		{ "500m", 500 },
		{ "1.5", 1500 },
		{ ".5", 500 },
		{ "0.1m", 1 }, /* parts of the smallest are rounded up */
		{ "100u", 1 },
		{ "1n", 1 },
		{ "1500u", 2 },
		{ "1k", 1000000 },
		{ "12e3", 12000000 },
		{ "12E3", 12000000 },
		{ "1E", INT64_MAX },
		{ "1Ki", 1024000 },
		{ "1.5Gi", INT64_C(1610612736000) },
		{ "64Gi", INT64_C(68719476736000) },
		{ "0.0000001Gi", 107375 },
		{ "9223372036854775807", INT64_MAX },
		{ "16Ei", INT64_MAX },
		{ "-1", -1000 },
		{ "+1", 1000 },
		{ "000000000000000000000000001", 1000 },
		{ "1.000000000000000000000000", 1000 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t milli = -7;

		assert_int_equal(quantity_parse(cases[i].text, &milli), 0);
		if (milli != cases[i].milli)
			fail_msg("%s: %lld, not %lld", cases[i].text, (long long)milli,
				 (long long)cases[i].milli);
	}
}

static void what_is_no_amount_is_refused(void **state)
{
	static const char *const cases[] = { "",    "x", "1x", "1 ",    "m",     "1mi", "1KI",
					     "--1", ".", "1e", "1.2.3", "1e5Ki", "0x10" };
	int64_t milli;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (quantity_parse(cases[i], &milli) >= 0)
			fail_msg("\"%s\" was taken", cases[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts_are_read_as_kubernetes_writes_them),
		cmocka_unit_test(what_is_no_amount_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
