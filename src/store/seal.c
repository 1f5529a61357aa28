/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seal.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "store/io.h"

_Static_assert(SEAL_OVERHEAD == crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES,
	       "what secretbox adds");

struct seal_key {
	uint8_t bytes[crypto_secretbox_KEYBYTES];
};

static pthread_once_t sodium_once = PTHREAD_ONCE_INIT;

static void sodium_start(void)
{
	int result = sodium_init();
	CHECK(result >= 0);
}

/* A new key under a name that is complete and durable before the key is used. */
static int key_make(struct io *io, const char *folder, const char *path, const uint8_t *bytes,
		    struct err *err)
{
	char keys[PATH_MAX];
	io_folder_of(path, keys, sizeof(keys));
	int error = io->mkdir(io, keys, 0700);
	if (error == 0 || error == -EEXIST)
		error = io->sync_folder(io, folder);
	if (error == 0)
		error = io_replace_file(io, path, bytes, crypto_secretbox_KEYBYTES, 0600);
	if (error == 0)
		return 0;
	/* What may not be on disk must not look like a key to the next start. */
	(void)io->unlink(io, path);
	return err_errno(err, ERR_IO, -error, "cannot make the key %s", path);
}

/* Who may read it besides the owner. */
static int key_check_mode(struct io *io, const char *path, struct err *err)
{
	struct stat st;
	if (!io->real_paths || lstat(path, &st) < 0 || (st.st_mode & 077) == 0)
		return 0;
	return err_set(err, ERR_FORBIDDEN,
		       "the key %s can be read by other users (mode %03o): chmod 600 it", path,
		       (unsigned)st.st_mode & 0777);
}

int seal_key_open_io(const char *folder, struct io *io, bool create, struct seal_key **ret,
		     struct err *err)
{
	char path[PATH_MAX];
	char *data = NULL;
	size_t size = 0;
	io = io ? io : io_real();
	pthread_once(&sodium_once, sodium_start);
	if (snprintf(path, sizeof(path), "%s/keys/body.key", folder) >= (int)sizeof(path))
		return err_set(err, ERR_INVALID, "the name of the data folder is too long");
	struct seal_key *key = sodium_malloc(sizeof(*key));
	CHECK(key);
	int error = io_read_file(io, path, 4096, &data, &size), result = 0;
	if (error == -ENOENT && create) {
		randombytes_buf(key->bytes, sizeof(key->bytes));
		result = key_make(io, folder, path, key->bytes, err);
	} else if (error == -ENOENT) {
		result = err_set(
			err, ERR_NOT_FOUND,
			"the key %s is missing: without it sealed bodies cannot be read; restore it from a "
			"backup",
			path);
	} else if (error < 0) {
		result = err_errno(err, ERR_IO, -error, "cannot read the key %s", path);
	} else if (size != sizeof(key->bytes)) {
		result =
			err_set(err, ERR_CORRUPT,
				"the key %s has %zu bytes instead of %zu: restore it from a backup",
				path, size, sizeof(key->bytes));
	} else {
		memcpy(key->bytes, data, sizeof(key->bytes));
		result = key_check_mode(io, path, err);
	}
	if (data)
		sodium_memzero(data, size);
	free(data);
	if (result < 0) {
		sodium_free(key);
		return result;
	}
	*ret = key;
	return 0;
}

int seal_key_open(const char *folder, bool create, struct seal_key **ret, struct err *err)
{
	return seal_key_open_io(folder, NULL, create, ret, err);
}

void seal_key_close(struct seal_key *key)
{
	sodium_free(key); /* wipes it; NULL is fine */
}

/*
 * Random bytes for nonces, fetched for many at a time: to ask the kernel for each costs as much as a fifth of the sealing. None is
 * used twice, and no process forks once it has sealed something, so no other one has the same. They are no secrets.
 */
enum { NONCES_AHEAD = 64 };

static void nonce_take(uint8_t ret[crypto_secretbox_NONCEBYTES])
{
	static _Thread_local uint8_t ahead[NONCES_AHEAD][crypto_secretbox_NONCEBYTES];
	static _Thread_local int left;
	if (left == 0) {
		randombytes_buf(ahead, sizeof(ahead));
		left = NONCES_AHEAD;
	}
	memcpy(ret, ahead[--left], crypto_secretbox_NONCEBYTES);
}

void seal_close_bytes(const struct seal_key *key, const void *plain, size_t size,
		      struct buf *ret_sealed, struct digest *ret_name)
{
	uint8_t nonce[crypto_secretbox_NONCEBYTES];
	nonce_take(nonce);
	buf_clear(ret_sealed);
	buf_reserve(ret_sealed, SEAL_OVERHEAD + size);
	buf_add(ret_sealed, nonce, sizeof(nonce));
	uint8_t *out = (uint8_t *)ret_sealed->data + sizeof(nonce);
	int result = crypto_secretbox_easy(out, size ? plain : nonce, size, nonce, key->bytes);
	CHECK(result == 0);
	ret_sealed->size = SEAL_OVERHEAD + size;
	ret_sealed->data[ret_sealed->size] = '\0';
	*ret_name = digest_of(ret_sealed->data, ret_sealed->size);
}

int seal_open_bytes(const struct seal_key *key, const void *sealed, size_t size,
		    struct buf *ret_plain, struct err *err)
{
	const uint8_t *bytes = sealed;
	buf_clear(ret_plain);
	if (size < SEAL_OVERHEAD)
		return err_set(err, ERR_CORRUPT,
			       "a sealed body of %zu bytes is too short to be one", size);
	buf_reserve(ret_plain, size);
	if (crypto_secretbox_open_easy((uint8_t *)ret_plain->data,
				       bytes + crypto_secretbox_NONCEBYTES,
				       size - crypto_secretbox_NONCEBYTES, bytes, key->bytes) != 0)
		return err_set(err, ERR_CORRUPT,
			       "a sealed body was changed, or was sealed with another key");
	ret_plain->size = size - SEAL_OVERHEAD;
	ret_plain->data[ret_plain->size] = '\0';
	return 0;
}

void seal_mac(const struct seal_key *key, const void *plain, size_t size, struct digest *ret)
{
	static const unsigned char purpose[crypto_generichash_blake2b_PERSONALBYTES] =
		"fairlead-bodymac";
	int result = crypto_generichash_blake2b_salt_personal(ret->bytes, sizeof(ret->bytes), plain,
							      size, key->bytes, sizeof(key->bytes),
							      NULL, purpose);
	CHECK(result == 0);
}

void seal_key_print(const struct seal_key *key, char out[SEAL_PRINT_MAX])
{
	static const unsigned char purpose[crypto_generichash_blake2b_PERSONALBYTES] =
		"fairlead-keyname";
	uint8_t bytes[(SEAL_PRINT_MAX - 1) / 2];
	int result = crypto_generichash_blake2b_salt_personal(
		bytes, sizeof(bytes), NULL, 0, key->bytes, sizeof(key->bytes), NULL, purpose);
	CHECK(result == 0);
	sodium_bin2hex(out, SEAL_PRINT_MAX, bytes, sizeof(bytes));
}
