/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry against what NVIDIA publishes, and against a slow count that knows nothing of layouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "core/model/facts.h"
#include "core/partitioning/geometry.h"

static const struct {
	const char *model;
	uint32_t gib;
	const char *profiles; /* name x instances, of the guide's tables */
	uint32_t
		full; /* layouts to which nothing can be added, media engines and doubled memory aside */
} published[] = {
	{ "A30", 24, "1g.6gb*4 1g.6gb+me*1 2g.12gb*2 2g.12gb+me*1 4g.24gb*1", 5 },
	{ "A100-40GB", 40, "1g.5gb*7 1g.5gb+me*1 1g.10gb*4 2g.10gb*3 3g.20gb*2 4g.20gb*1 7g.40gb*1",
	  19 },
	{ "A100-80GB", 80,
	  "1g.10gb*7 1g.10gb+me*1 1g.20gb*4 2g.20gb*3 3g.40gb*2 4g.40gb*1 7g.80gb*1", 19 },
	{ "H100-80GB", 80,
	  "1g.10gb*7 1g.10gb+me*1 1g.20gb*4 2g.20gb*3 3g.40gb*2 4g.40gb*1 7g.80gb*1", 19 },
	{ "H100-94GB", 94,
	  "1g.12gb*7 1g.12gb+me*1 1g.24gb*4 2g.24gb*3 3g.47gb*2 4g.47gb*1 7g.94gb*1", 19 },
	{ "GH200-96GB", 96,
	  "1g.12gb*7 1g.12gb+me*1 1g.24gb*4 2g.24gb*3 3g.48gb*2 4g.48gb*1 7g.96gb*1", 19 },
	{ "H200-141GB", 141,
	  "1g.18gb*7 1g.18gb+me*1 1g.35gb*4 2g.35gb*3 3g.71gb*2 4g.71gb*1 7g.141gb*1", 19 },
	{ "B200", 180, "1g.23gb*7 1g.23gb+me*1 1g.45gb*4 2g.45gb*3 3g.90gb*2 4g.90gb*1 7g.180gb*1",
	  19 },
};

/* Instances of the kind that exist at most on one GPU, found by putting them there. */
static uint32_t most_of(const struct geometry *g, uint32_t kind)
{
	uint32_t layout = 0, count = 0, room;

	while (room = layout_room(g, layout, kind), room) {
		layout = layout_with(layout, (uint32_t)__builtin_ctz(room), kind);
		count++;
	}
	return count;
}

static void profiles_and_their_number_are_as_published(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(published); i++) {
		const struct geometry *g = geometry_of(published[i].model, published[i].gib * 1024);
		char text[512] = "";
		size_t size = 0;

		assert_non_null(g);
		for (uint32_t p = 0; p < PROFILES_MAX && g->profiles[p].kind; p++) {
			const struct slice_profile *profile = &g->profiles[p];

			if (size)
				text[size++] = ' ';
			(void)slice_wish_text(profile_wish(profile), text + size);
			size += strlen(text + size);
			text[size++] = '*';
			text[size++] = (char)('0' + most_of(g, profile->kind));
			assert_int_equal(profile->most, most_of(g, profile->kind));
			assert_true(profile->memory_mib <= published[i].gib * 1024);
		}
		assert_string_equal(text, published[i].profiles);
		assert_ptr_equal(geometry_get(geometry_number(g)), g);
	}
}

static bool is_wide(uint32_t layout)
{
	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++)
		if (layout_kind(layout, start) == SLICE_1G_WIDE)
			return true;
	return false;
}

/* NVIDIA draws 19 for GPUs of seven slices (guide, figures of profiles), without doubled memory. */
static void full_layouts_are_as_many_as_published(void **state)
{
	static uint32_t all[LAYOUTS_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(published); i++) {
		const struct geometry *g = geometry_of(published[i].model, published[i].gib * 1024);
		uint32_t count = layouts_all(g, true, all), plain = 0;

		for (uint32_t k = 0; k < count; k++)
			plain += !is_wide(all[k]);
		assert_int_equal(plain, published[i].full);
	}
}

/* By trying every kind at every start with every number below 16^8 would take too long: instances are laid one after the other. */
static uint32_t count_slow(const struct geometry *g, uint32_t at)
{
	uint32_t count = 0;

	if (at >= g->memory)
		return 1;
	count = count_slow(g, at + 1);
	for (uint32_t p = 0; p < PROFILES_MAX && g->profiles[p].kind; p++) {
		const struct slice_profile *profile = &g->profiles[p];

		if (profile->kind != SLICE_1G_MEDIA && profile->kind != SLICE_2G_MEDIA &&
		    profile->starts >> at & 1 && at + slice_memory(profile->kind) <= g->memory)
			count += count_slow(g, at + slice_memory(profile->kind));
	}
	return count;
}

static void all_layouts_are_legal_and_none_is_missing(void **state)
{
	static uint32_t all[LAYOUTS_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(published); i++) {
		const struct geometry *g = geometry_of(published[i].model, published[i].gib * 1024);
		uint32_t count = layouts_all(g, false, all);

		assert_int_equal(count + 1, count_slow(g, 0));
		for (uint32_t k = 0; k < count; k++) {
			char text[LAYOUT_TEXT_MAX];
			uint32_t again;

			assert_true(k == 0 || all[k - 1] != all[k]);
			assert_true(layout_is_sound(all[k]) && layout_is_legal(g, all[k]));
			assert_true(layout_compute(all[k]) <= g->compute);
			/* The text names the instances; what is read from it has the same ones. */
			assert_int_equal(
				layout_parse(g, layout_text(g, all[k], text), &again, NULL), 0);
			assert_true(layout_is_legal(g, again));
			assert_int_equal(layout_compute(again), layout_compute(all[k]));
		}
	}
}

static void an_overlap_is_not_legal(void **state)
{
	const struct geometry *g = geometry_of("H100-80GB", 81920);

	(void)state;
	assert_true(layout_is_legal(g, layout_with(SLICE_3G, 4, SLICE_3G)));
	assert_false(layout_is_legal(g, layout_with(SLICE_3G, 2, SLICE_2G)));
	assert_false(layout_is_sound(layout_with(SLICE_3G, 2, SLICE_2G)));
	assert_false(layout_is_legal(g, layout_with(0, 6, SLICE_2G))); /* begins at 0, 2, 4 */
	assert_false(layout_is_legal(g, layout_with(0, 4, SLICE_4G)));
	assert_false(layout_is_legal(g, layout_with(SLICE_1G_MEDIA, 1, SLICE_1G_MEDIA)));
	assert_false(layout_is_legal(g, SLICE_2G_MEDIA)); /* of an A30 */
	assert_false(layout_is_sound(15));
	assert_false(layout_is_sound(layout_with(0, 7, SLICE_2G)));
	/* Two of three slices and the memory is used up, though one compute slice is left. */
	assert_true(layout_is_full(g, layout_with(SLICE_3G, 4, SLICE_3G)));
}

static void a_profile_follows_from_what_is_needed(void **state)
{
	static const struct {
		const char *model;
		uint32_t gib, share, mib;
		const char *profile;
	} cases[] = {
		{ "H100-80GB", 80, 0, 9000, "1g.10gb" },
		{ "H100-80GB", 80, 0, 10240, "1g.20gb" },
		{ "H100-80GB", 80, GPU_SHARE / 5, 9000, "2g.20gb" },
		{ "H100-80GB", 80, GPU_SHARE / 7 * 2, 20000, "2g.20gb" },
		{ "H100-80GB", 80, 0, 40000, "3g.40gb" },
		{ "H100-80GB", 80, GPU_SHARE / 2, 1000, "4g.40gb" },
		{ "H100-80GB", 80, 0, 80000, "7g.80gb" },
		{ "H100-80GB", 80, 0, 81920, NULL },
		{ "A100-40GB", 40, 0, 9000, "1g.10gb" },
		{ "A30", 24, GPU_SHARE / 2, 0, "2g.12gb" },
		{ "H200", 141, 0, 20000, "1g.35gb" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct slice_profile *p =
			geometry_need(geometry_of(cases[i].model, cases[i].gib * 1024),
				      cases[i].share, cases[i].mib);
		char text[SLICE_TEXT_MAX];

		assert_int_equal(p == NULL, cases[i].profile == NULL);
		if (p)
			assert_string_equal(slice_wish_text(profile_wish(p), text),
					    cases[i].profile);
	}
}

static void names_are_read_and_written_alike(void **state)
{
	static const char *const bad[] = { "",          "1g",         "1g.10",    "g.10gb",
					   "0g.10gb",   "8g.10gb",    "1g.10GB",  "1g.gb",
					   "1g.0gb",    "1c.3g.20gb", "1g.10gb ", "1g.10gb+",
					   "12345g.1gb" };
	static const char *const good[] = { "1g.5gb", "1g.10gb+me", "7g.141gb" };
	char text[SLICE_TEXT_MAX];
	uint32_t wish;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(slice_wish_parse(bad[i], &wish));
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(slice_wish_parse(good[i], &wish));
		assert_string_equal(slice_wish_text(wish, text), good[i]);
	}
	assert_true(slice_wish_parse("2g.20gb", &wish));
	assert_int_equal(slice_share(wish), 2 * GPU_SHARE / 7);
	assert_true(slice_wish_parse("2g.12gb", &wish));
	assert_int_equal(slice_share(wish), GPU_SHARE / 2);
	assert_true(slice_wish_parse("5g.50gb", &wish));
	assert_int_equal(slice_share(wish), 0);
}

/* One share for one name, whatever the model: a quota cannot ask on which model it will run. */
static void a_name_means_the_same_share_on_all_models(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= GEOMETRIES_MAX; n++) {
		const struct geometry *g;

		if (n > ARRAY_SIZE(published) + 1)
			break;
		g = geometry_get(n);
		for (uint32_t p = 0; p < PROFILES_MAX && g->profiles[p].kind; p++)
			assert_int_equal(slice_share(profile_wish(&g->profiles[p])),
					 slice_compute(g->profiles[p].kind) * GPU_SHARE /
						 g->compute);
	}
}

static void layouts_are_read_from_names(void **state)
{
	const struct geometry *g = geometry_of("H100-80GB", 81920);
	char text[LAYOUT_TEXT_MAX];
	struct err err;
	uint32_t layout;

	(void)state;
	assert_int_equal(layout_parse(g, "2g.20gb,2g.20gb,3g.40gb", &layout, &err), 0);
	assert_string_equal(layout_text(g, layout, text), "2g.20gb,2g.20gb,3g.40gb");
	/* Not in this order, but there is a place for all three. */
	assert_int_equal(layout_parse(g, "3g.40gb,2g.20gb,2g.20gb", &layout, &err), 0);
	assert_string_equal(layout_text(g, layout, text), "2g.20gb,2g.20gb,3g.40gb");
	assert_int_equal(layout_parse(g, "", &layout, &err), 0);
	assert_int_equal(layout, 0);
	assert_true(layout_parse(g, "4g.40gb,4g.40gb", &layout, &err) < 0);
	assert_non_null(strstr(err.text, "cannot exist together"));
	assert_true(layout_parse(g, "1g.5gb", &layout, &err) < 0);
	assert_non_null(strstr(err.text, "1g.10gb, 1g.10gb+me, 1g.20gb"));
	assert_true(layout_parse(g, "1g.10gb,", &layout, &err) == 0);
	assert_true(layout_parse(g, ",1g.10gb", &layout, &err) < 0);
	assert_null(geometry_of("T4", 16384));
	assert_null(geometry_of("A10", 24576));
}

/* Guide, "Compute Instances" of the 3g and 7g profiles. */
static void compute_instances_are_parts_of_a_gpu_instance(void **state)
{
	const struct geometry *a = geometry_of("A100-40GB", 40960),
			      *a30 = geometry_of("A30", 24576);

	(void)state;
	assert_int_equal(compute_instances(a, SLICE_3G, 1), 3);
	assert_int_equal(compute_instances(a, SLICE_3G, 2), 1);
	assert_int_equal(compute_instances(a, SLICE_3G, 3), 1);
	assert_int_equal(compute_instances(a, SLICE_3G, 4), 0);
	assert_int_equal(compute_instances(a, SLICE_7G, 1), 7);
	assert_int_equal(compute_instances(a, SLICE_7G, 2), 3);
	assert_int_equal(compute_instances(a, SLICE_7G, 3), 2);
	assert_int_equal(compute_instances(a, SLICE_7G, 4), 1);
	assert_int_equal(compute_instances(a, SLICE_7G, 5), 0);
	assert_int_equal(compute_instances(a30, SLICE_4G, 2), 2);
	assert_int_equal(compute_instances(a30, SLICE_3G, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_and_their_number_are_as_published),
		cmocka_unit_test(full_layouts_are_as_many_as_published),
		cmocka_unit_test(all_layouts_are_legal_and_none_is_missing),
		cmocka_unit_test(an_overlap_is_not_legal),
		cmocka_unit_test(a_profile_follows_from_what_is_needed),
		cmocka_unit_test(names_are_read_and_written_alike),
		cmocka_unit_test(a_name_means_the_same_share_on_all_models),
		cmocka_unit_test(layouts_are_read_from_names),
		cmocka_unit_test(compute_instances_are_parts_of_a_gpu_instance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
