/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 through OpenSSL (the algorithm is fetched once: fetching per call doubles its cost). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_BYTES = 32, DIGEST_HEX_MAX = 65 };

struct digest {
	uint8_t bytes[DIGEST_BYTES];
};

struct digest digest_of(const void *data, size_t size);
struct digest digest_of_two(const void *a, size_t a_size, const void *b,
			    size_t b_size); /* of a then b */
const char *digest_format(const struct digest *d, char out[DIGEST_HEX_MAX]);
bool digest_parse(const char *hex, struct digest *ret);
bool digest_equal(const struct digest *a, const struct digest *b); /* constant time */
