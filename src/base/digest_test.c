/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <pthread.h>

#include "base/digest.h"

/* The examples of FIPS 180-4. */
static const char abc_hex[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char empty_hex[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static void known_digests_come_out(void **state)
{
	struct digest digest;
	char hex[DIGEST_HEX_MAX];

	(void)state;
	digest = digest_of("abc", 3);
	assert_string_equal(digest_format(&digest, hex), abc_hex);
	digest = digest_of(NULL, 0);
	assert_string_equal(digest_format(&digest, hex), empty_hex);
}

static void two_parts_are_as_one(void **state)
{
	struct digest whole = digest_of("abc", 3), parts;

	(void)state;
	parts = digest_of_two("a", 1, "bc", 2);
	assert_true(digest_equal(&whole, &parts));
	parts = digest_of_two("abc", 3, NULL, 0);
	assert_true(digest_equal(&whole, &parts));
	parts = digest_of_two(NULL, 0, "abc", 3);
	assert_true(digest_equal(&whole, &parts));
	parts = digest_of_two("a", 1, "bd", 2);
	assert_false(digest_equal(&whole, &parts));
}

static void only_the_one_text_form_is_read(void **state)
{
	char hex[DIGEST_HEX_MAX + 1];
	struct digest digest = { { 42 } }, untouched = { { 42 } }, abc = digest_of("abc", 3);

	(void)state;
	assert_false(digest_parse("", &digest));
	snprintf(hex, sizeof(hex), "%s0", abc_hex);
	assert_false(digest_parse(hex, &digest));
	hex[63] = '\0';
	assert_false(digest_parse(hex, &digest));
	snprintf(hex, sizeof(hex), "%s", abc_hex);
	hex[10] = 'A';
	assert_false(digest_parse(hex, &digest));
	hex[10] = 'g';
	assert_false(digest_parse(hex, &digest));
	assert_memory_equal(&digest, &untouched, sizeof(digest));
	assert_true(digest_parse(abc_hex, &digest));
	assert_true(digest_equal(&digest, &abc));
}

static void *digest_often(void *data)
{
	(void)data;
	for (int i = 0; i < 200; i++) {
		struct digest digest = digest_of("abc", 3);
		char hex[DIGEST_HEX_MAX];

		if (strcmp(digest_format(&digest, hex), abc_hex) != 0)
			return NULL;
	}
	return (void *)1;
}

static void threads_may_start_at_once(void **state)
{
	pthread_t threads[4];
	void *right;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, digest_often, NULL), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &right), 0);
		assert_non_null(right);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			threads_may_start_at_once), /* first: the algorithm is fetched once */
		cmocka_unit_test(known_digests_come_out),
		cmocka_unit_test(two_parts_are_as_one),
		cmocka_unit_test(only_the_one_text_form_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
