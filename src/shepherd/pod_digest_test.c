/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/digest.h"

static void expect(const void *data, size_t size, const char *hex)
{
	const struct digest digest = digest_of(data, size);
	char is[DIGEST_HEX_MAX];

	assert_string_equal(digest_format(&digest, is), hex);
}

static void the_standards_own_examples_come_out(void **state)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	char *million = malloc(1000000);

	(void)state;
	assert_non_null(million);
	memset(million, 'a', 1000000);
	expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect(two, strlen(two),
	       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	expect(million, 1000000,
	       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(million);
}

/* Each length around the ends of blocks: the digest of all their digests, as another implementation gives it. */
static void every_length_of_the_last_block_comes_out(void **state)
{
	uint8_t data[300], all[300 * DIGEST_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < 300; i++) {
		const struct digest digest = digest_of(data, i);

		memcpy(all + i * DIGEST_BYTES, digest.bytes, DIGEST_BYTES);
	}
	expect(all, sizeof(all),
	       "5ebbf7b17a4f2bbb50cae3f26da221c90542499a6b4cbc177190a5e8cf00710d");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_standards_own_examples_come_out),
		cmocka_unit_test(every_length_of_the_last_block_comes_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
