/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

#include "base/check.h"

static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256; /* for the life of the program */

static void sha256_fetch(void)
{
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	CHECK(sha256 != NULL);
}

struct digest digest_of(const void *data, size_t size)
{
	return digest_of_two(data, size, NULL, 0);
}

struct digest digest_of_two(const void *a, size_t a_size, const void *b, size_t b_size)
{
	struct digest digest;
	EVP_MD_CTX *context;

	pthread_once(&sha256_once, sha256_fetch);
	context = EVP_MD_CTX_new();
	CHECK(context != NULL);
	CHECK(EVP_DigestInit_ex2(context, sha256, NULL) == 1);
	CHECK(EVP_DigestUpdate(context, a, a_size) == 1);
	CHECK(EVP_DigestUpdate(context, b, b_size) == 1);
	CHECK(EVP_DigestFinal_ex(context, digest.bytes, NULL) == 1);
	EVP_MD_CTX_free(context);
	return digest;
}

static const char hex_digits[] = "0123456789abcdef";

const char *digest_format(const struct digest *d, char out[DIGEST_HEX_MAX])
{
	for (size_t i = 0; i < DIGEST_BYTES; i++) {
		out[2 * i] = hex_digits[d->bytes[i] >> 4];
		out[2 * i + 1] = hex_digits[d->bytes[i] & 15];
	}
	out[DIGEST_HEX_MAX - 1] = '\0';
	return out;
}

bool digest_parse(const char *hex, struct digest *ret)
{
	struct digest digest = { 0 };

	for (size_t i = 0; i < DIGEST_HEX_MAX - 1; i++) {
		const char *found = hex[i] ? strchr(hex_digits, hex[i]) : NULL;

		if (!found)
			return false;
		digest.bytes[i / 2] = (uint8_t)(digest.bytes[i / 2] << 4 | (found - hex_digits));
	}
	if (hex[DIGEST_HEX_MAX - 1])
		return false;
	*ret = digest;
	return true;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
	return CRYPTO_memcmp(a->bytes, b->bytes, DIGEST_BYTES) == 0;
}
