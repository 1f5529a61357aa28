/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "base/arena.h"

static bool is_zero(const unsigned char *memory, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i])
			return false;
	return true;
}

static void memory_is_zeroed_aligned_and_apart(void **state)
{
	unsigned char *given[500];
	size_t sizes[500];
	struct dice dice = { 1 };
	struct arena arena;

	(void)state;
	arena_init(&arena, 64 << 20);
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < 500; i++) {
			sizes[i] = dice_below(&dice, i % 50 ? 200 : 100000);
			given[i] = arena_alloc(&arena, sizes[i]);
			assert_int_equal((uintptr_t)given[i] % 16, 0);
			assert_true(is_zero(given[i], sizes[i]));
			memset(given[i], (int)(i % 255 + 1), sizes[i]);
		}
		for (size_t i = 0; i < 500; i++)
			for (size_t j = 0; j < sizes[i]; j++)
				assert_int_equal(given[i][j], i % 255 + 1);
		arena_reset(&arena);
		assert_int_equal(arena.used_bytes, 0);
	}
	arena_deinit(&arena);
}

static void a_reset_arena_needs_no_new_block(void **state)
{
	struct arena arena;
	void *first;

	(void)state;
	arena_init(&arena, 1 << 20);
	first = arena_alloc(&arena, 100);
	arena_reset(&arena);
	assert_ptr_equal(arena_alloc(&arena, 100), first);
	arena_deinit(&arena);
}

/* What a step needs again and again is fetched from the system once. */
static void a_reset_arena_serves_the_same_requests_from_the_block_that_it_kept(void **state)
{
	enum { SMALL = 50000, LARGE = 5 << 20 };
	struct arena arena;
	unsigned char *first, *large;

	(void)state;
	arena_init(&arena, 64 << 20);
	(void)arena_alloc(&arena, SMALL);
	(void)arena_alloc(&arena, LARGE);
	arena_reset(&arena);
	for (int round = 0; round < 3; round++) {
		first = arena_alloc(&arena, SMALL);
		large = arena_alloc(&arena, LARGE);
		assert_ptr_equal(large, first + SMALL);
		assert_true(is_zero(large, LARGE));
		memset(large, 7, LARGE);
		arena_reset(&arena);
	}
	arena_deinit(&arena);
}

static void a_very_large_block_is_not_kept(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 64 << 20);
	(void)arena_alloc(&arena, 20 << 20);
	arena_reset(&arena);
	assert_null(arena.blocks);
	assert_true(is_zero(arena_alloc(&arena, 100), 100));
	arena_deinit(&arena);
}

static void empty_requests_have_an_address_of_their_own(void **state)
{
	struct arena arena;
	void *a, *b;

	(void)state;
	arena_init(&arena, 1000);
	a = arena_alloc(&arena, 0);
	b = arena_array(&arena, 0, 8);
	assert_non_null(a);
	assert_ptr_not_equal(a, b);
	arena_deinit(&arena);
}

static void texts_are_copied_whole(void **state)
{
	char text[5000];
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	assert_string_equal(arena_strdup(&arena, "abc"), "abc");
	assert_string_equal(arena_strdup(&arena, ""), "");
	assert_string_equal(arena_strndup(&arena, "abcdef", 3), "abc");
	assert_string_equal(arena_strndup(&arena, NULL, 0), "");
	assert_string_equal(arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
	memset(text, 'a', sizeof(text));
	text[4999] = '\0';
	assert_string_equal(arena_printf(&arena, "%s", text), text);
	arena_deinit(&arena);
}

static void a_zeroed_arena_can_be_given_back(void **state)
{
	struct arena arena = { 0 };

	(void)state;
	arena_deinit(&arena);
	arena_reset(&arena);
	arena_init(&arena, 100);
	arena_deinit(&arena);
	arena_deinit(&arena);
}

static void take(void *data)
{
	struct arena arena;

	arena_init(&arena, 1024);
	arena_alloc(&arena, 512);
	arena_alloc(&arena, *(size_t *)data);
}

static void take_array(void *data)
{
	struct arena arena;

	arena_init(&arena, SIZE_MAX);
	arena_array(&arena, *(size_t *)data, 16);
}

static void passing_the_cap_aborts(void **state)
{
	size_t last = 512, one_more = 513, around = SIZE_MAX - 3;

	(void)state;
	assert_false(aborts(take, &last));
	assert_true(aborts(take, &one_more));
	assert_true(aborts(take, &around));
}

static void an_array_whose_size_overflows_aborts(void **state)
{
	size_t fits = 100, overflows = SIZE_MAX / 16 + 1;

	(void)state;
	assert_false(aborts(take_array, &fits));
	assert_true(aborts(take_array, &overflows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
		cmocka_unit_test(a_reset_arena_needs_no_new_block),
		cmocka_unit_test(
			a_reset_arena_serves_the_same_requests_from_the_block_that_it_kept),
		cmocka_unit_test(a_very_large_block_is_not_kept),
		cmocka_unit_test(empty_requests_have_an_address_of_their_own),
		cmocka_unit_test(texts_are_copied_whole),
		cmocka_unit_test(a_zeroed_arena_can_be_given_back),
		cmocka_unit_test(passing_the_cap_aborts),
		cmocka_unit_test(an_array_whose_size_overflows_aborts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
