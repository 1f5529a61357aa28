/* SPDX-License-Identifier: Apache-2.0 */
/* What pods of several roles may ask of a node at once. */
#include "base/testing.h"
#include "engine/kubernetes/masks/masks.h"

static void gpus_bound_what_is_asked_for(void **state)
{
	struct own_part without[] = { { 1, 1, 8 }, { 1, 0, 1 } },
			with[] = { { 1, 1, 7 }, { 1, 1, 1 } },
			many[] = { { 1, 1, 8 }, { 1, 1, 8 } },
			dear[] = { { 1, 1, 8 }, { 4, 2, 2 } }, huge[] = { { INT64_MAX / 2, 1, 3 } };

	(void)state;
	assert_int_equal(own_most_asked(without, 2, 8), 9);
	assert_int_equal(own_most_asked(with, 2, 8), 8);
	assert_int_equal(own_most_asked(many, 2, 8), 8);
	assert_int_equal(own_most_asked(dear, 2, 8), 2 * 4 + 4);
	assert_int_equal(own_most_asked(huge, 1, 8), INT64_MAX);
}

/* The most of all ways to fill up the GPUs. */
static int64_t really(const struct own_part *parts, uint32_t count, int64_t gpus)
{
	int64_t most = 0;

	if (!count)
		return 0;
	for (int64_t tasks = 0; tasks <= parts->tasks && tasks * parts->gpus <= gpus; tasks++) {
		const int64_t sum = tasks * parts->need +
				    really(parts + 1, count - 1, gpus - tasks * parts->gpus);

		most = sum > most ? sum : most;
	}
	return most;
}

static void it_is_never_too_little(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct own_part parts[4] = { 0 };
		uint32_t count = 1 + (uint32_t)i % 4;
		int64_t gpus = i / 4 % 9, most, exact;

		for (uint32_t k = 0; k < count; k++) {
			int64_t *const of[] = { &parts[k].need, &parts[k].gpus, &parts[k].tasks };

			for (int j = 0; j < 3; j++) {
				random = random * 6364136223846793005u + 1442695040888963407u;
				*of[j] = (int64_t)(random >> 33) % (j == 0 ? 9 : 5);
			}
		}
		exact = really(parts, count, gpus);
		most = own_most_asked(parts, count, gpus);
		if (most < exact)
			fail_msg("try %d: %lld, but %lld can be asked for", i, (long long)most,
				 (long long)exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_bound_what_is_asked_for),
		cmocka_unit_test(it_is_never_too_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
