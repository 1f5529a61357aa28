/* SPDX-License-Identifier: Apache-2.0 */
#include "api/own_masks.h"

#include "api/jobfile/jobfile.h"
#include "base/testing.h"

/* Each mask once; of the one for several roles all their pods. */
static void masks_of_a_body_are_made_from_its_roles(void **state)
{
	static const struct job_role roles[] = { { .overlay = "{a}" },
						 { .overlay = NULL },
						 { .overlay = "{c}" },
						 { .overlay = "{a}" } };
	const struct job_body body = { .overlays = { "{}" }, .roles = roles, .role_count = 4 };
	struct own_wish wish = {
		.mask = "",
		.together = "m3",
		.tasks = 6,
		.role_count = 4,
		.roles = { { "m1", 2, 0 }, { "", 1, 1 }, { "m2", 3, 8 }, { "m1", 2, 0 } }
	};
	struct engine_own_mask masks[ENGINE_OWN_MASKS];

	(void)state;
	assert_int_equal(job_body_masks(&body, &wish, masks), 3);
	assert_string_equal(masks[0].name, "m1");
	assert_int_equal(masks[0].pod_count, 1);
	assert_int_equal(masks[0].pods[0].tasks, 2);
	assert_string_equal(masks[0].pods[0].overlays[0], "{}");
	assert_string_equal(masks[1].name, "m2");
	assert_int_equal(masks[1].pods[0].gpus, 8);
	assert_string_equal(masks[1].pods[0].overlays[1], "{c}");
	assert_string_equal(masks[2].name, "m3");
	assert_int_equal(masks[2].pod_count, 3);
	assert_int_equal(masks[2].pods[1].tasks, 3);
	wish.mask = "m0"; /* of claims, which all its pods have */
	assert_int_equal(job_body_masks(&body, &wish, masks), 4);
	assert_string_equal(masks[0].name, "m0");
	assert_int_equal(masks[0].pods[0].tasks, 6);
	assert_null(masks[0].pods[0].overlays[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks_of_a_body_are_made_from_its_roles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
