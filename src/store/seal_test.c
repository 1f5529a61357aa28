/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/testing/store_test.h"

static struct seal_key *key_of(const char *folder, bool create)
{
	struct seal_key *key;
	struct err err;
	if (seal_key_open(folder, create, &key, &err) < 0)
		fail_msg("%s", err.text);
	return key;
}

static void what_is_sealed_comes_back_and_is_named_by_its_digest(void **state)
{
	struct store_test_folder *folder = *state;
	struct seal_key *key = key_of(folder->path, true);
	AUTO_BUF sealed = BUF_INIT;
	AUTO_BUF again = BUF_INIT;
	AUTO_BUF plain = BUF_INIT;
	struct digest name, other;
	struct err err;
	static const char text[] = "SECRET=hunter2";
	seal_close_bytes(key, text, sizeof(text), &sealed, &name);
	assert_int_equal(sealed.size, sizeof(text) + SEAL_OVERHEAD);
	assert_null(memmem(sealed.data, sealed.size, "hunter2", 7));
	struct digest expected = digest_of(sealed.data, sealed.size);
	assert_true(digest_equal(&name, &expected));
	/* Equal bodies do not show as equal. */
	seal_close_bytes(key, text, sizeof(text), &again, &other);
	assert_false(digest_equal(&name, &other));
	assert_int_equal(seal_open_bytes(key, sealed.data, sealed.size, &plain, &err), 0);
	assert_int_equal(plain.size, sizeof(text));
	assert_memory_equal(plain.data, text, sizeof(text));
	seal_key_close(key);
	/* A later start has the same key. */
	key = key_of(folder->path, false);
	assert_int_equal(seal_open_bytes(key, again.data, again.size, &plain, &err), 0);
	assert_memory_equal(plain.data, text, sizeof(text));
	seal_close_bytes(key, "", 0, &sealed, &name);
	assert_int_equal(seal_open_bytes(key, sealed.data, sealed.size, &plain, &err), 0);
	assert_int_equal(plain.size, 0);
	seal_key_close(key);
	seal_key_close(NULL);
}

static void a_changed_byte_anywhere_is_refused(void **state)
{
	struct store_test_folder *folder = *state;
	struct seal_key *key = key_of(folder->path, true);
	AUTO_BUF sealed = BUF_INIT;
	AUTO_BUF plain = BUF_INIT;
	struct digest name;
	struct err err;
	seal_close_bytes(key, "body", 4, &sealed, &name);
	for (size_t i = 0; i < sealed.size; i++) {
		sealed.data[i] = (char)(sealed.data[i] ^ 1);
		assert_true(seal_open_bytes(key, sealed.data, sealed.size, &plain, &err) < 0);
		assert_int_equal(err.code, ERR_CORRUPT);
		assert_int_equal(plain.size, 0);
		sealed.data[i] = (char)(sealed.data[i] ^ 1);
	}
	for (size_t size = 0; size < sealed.size; size++)
		assert_true(seal_open_bytes(key, sealed.data, size, &plain, &err) < 0);
	assert_int_equal(seal_open_bytes(key, sealed.data, sealed.size, &plain, &err), 0);
	seal_key_close(key);
}

static void the_key_is_private_and_a_bad_one_is_refused(void **state)
{
	struct store_test_folder *folder = *state;
	struct seal_key *key;
	struct err err;
	struct stat st;
	char path[128];
	snprintf(path, sizeof(path), "%s/keys/body.key", folder->path);
	assert_true(seal_key_open(folder->path, false, &key, &err) < 0);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	seal_key_close(key_of(folder->path, true));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(chmod(path, 0640), 0);
	assert_true(seal_key_open(folder->path, true, &key, &err) < 0);
	assert_int_equal(err.code, ERR_FORBIDDEN);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(truncate(path, 31), 0);
	assert_true(seal_key_open(folder->path, true, &key, &err) < 0);
	assert_int_equal(err.code, ERR_CORRUPT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, store_test_setup, store_test_teardown)
	const struct CMUnitTest tests[] = {
		CASE(what_is_sealed_comes_back_and_is_named_by_its_digest),
		CASE(a_changed_byte_anywhere_is_refused),
		CASE(the_key_is_private_and_a_bad_one_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
