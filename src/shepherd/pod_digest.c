/* SPDX-License-Identifier: Apache-2.0 */
/* What base/digest.h promises, for the program that runs in other people's images: by libsodium, which can be linked in whole, without OpenSSL. */
#include <sodium/crypto_hash_sha256.h>
#include <sodium/utils.h>

#include "base/digest.h"

struct digest digest_of(const void *data, size_t size)
{
	struct digest ret;

	(void)crypto_hash_sha256(ret.bytes, data, size);
	return ret;
}

const char *digest_format(const struct digest *d, char out[DIGEST_HEX_MAX])
{
	return sodium_bin2hex(out, DIGEST_HEX_MAX, d->bytes, DIGEST_BYTES);
}
