/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "core/model/facts.h"
#include "core/model/gpu_wish.h"

static void whole_gpus_and_parts_are_read_exactly(void **state)
{
	static const struct {
		const char *text;
		uint32_t gpus, part;
		const char *said; /* NULL = as written */
	} cases[] = {
		{ "0", 0, 0, NULL },         { "1", 1, 0, NULL },          { "32", 32, 0, NULL },
		{ "0.5", 1, 31500, NULL },   { "0.1", 1, 6300, NULL },     { "0.001", 1, 63, NULL },
		{ "0.999", 1, 62937, NULL }, { "0.50", 1, 31500, "0.5" },  { "1/7", 1, 9000, NULL },
		{ "3/7", 1, 27000, NULL },   { "1/2", 1, 31500, "0.5" },   { "1/9", 1, 7000, NULL },
		{ "1/3", 1, 21000, NULL },   { "1/11", 1, 5727, "0.090" },
	};
	struct gpu_wish wish;
	char text[GPU_WISH_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(gpu_wish_parse(cases[i].text, &wish, NULL), 0);
		assert_int_equal(wish.gpus, cases[i].gpus);
		assert_int_equal(wish.part, cases[i].part);
		if (strcmp(cases[i].text, "1/11") != 0)
			assert_string_equal(gpu_wish_text(&wish, text),
					    cases[i].said ? cases[i].said : cases[i].text);
	}
}

static void other_numbers_are_refused_with_what_to_write(void **state)
{
	static const char *const wrong[] = { "",     "33",  "1.5",    "0.0",   "0.0001", "1/1",
					     "7/7",  "8/7", "0/7",    "1/0",   "/7",     "1/",
					     "0.",   ".5",  "-1",     "0.5.5", "half",   "1g",
					     "1/7x", " 1",  "123456", "0.5/2", "1/99999" };
	struct gpu_wish wish;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(gpu_wish_parse(wrong[i], &wish, &err), -ERR_INVALID);
		assert_non_null(strstr(err.text, "0.5 or 1/7"));
	}
}

static void the_memory_of_a_part_follows_from_its_share_and_the_other_way(void **state)
{
	static const struct {
		uint32_t part, part_mib, memory_mib, share, mib;
	} cases[] = {
		{ 31500, 0, 81920, 31500, 40960 }, /* half of 80 GiB */
		{ 9000, 0, 46068, 9000, 6581 }, /* a seventh, rounded down */
		{ 0, 2000, 46068, 2735, 2000 }, /* 23 of these fit, 24 do not */
		{ 0, 46068, 46068, 63000, 46068 }, /* all of it */
		{ 0, 46069, 46068, 0, 46069 }, /* too small */
		{ 0, 1, 81920, 1, 1 }, /* never nothing */
		{ 31500, 0, 0, 31500, 0 }, /* not known */
		{ 0, 2000, 0, 0, 2000 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct shape shape = { .gpu_part = cases[i].part,
					     .gpu_part_mib = cases[i].part_mib };
		struct gpu_part part = shape_part(&shape, cases[i].memory_mib);

		assert_int_equal(part.share, cases[i].share);
		assert_int_equal(part.mib, cases[i].mib);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_gpus_and_parts_are_read_exactly),
		cmocka_unit_test(other_numbers_are_refused_with_what_to_write),
		cmocka_unit_test(the_memory_of_a_part_follows_from_its_share_and_the_other_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
