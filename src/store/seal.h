/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sealing of bodies (environment, command, specification) with a key kept outside the journal:
 * `keys/body.key` in the data folder, mode 0600, made at the first start. libsodium's secretbox
 * (XSalsa20-Poly1305) with a random nonce in front. A blob is named by the digest of its sealed bytes, so
 * that equal bodies do not show as equal and the name tells nothing of the content.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"

struct io;
struct seal_key;

enum { SEAL_OVERHEAD = 24 + 16 }; /* bytes that sealing adds: nonce and authenticator */

/* create: makes the key when the folder has none, durably; else a missing key is ERR_NOT_FOUND. A key that others
 * can read, or of the wrong size, is refused. */
int seal_key_open(const char *folder, bool create, struct seal_key **ret, struct err *err)
	MUST_CHECK;
/* The same on the files of io (NULL: the real ones). */
int seal_key_open_io(const char *folder, struct io *io, bool create, struct seal_key **ret,
		     struct err *err) MUST_CHECK;
void seal_key_close(struct seal_key *key); /* wipes it; NULL is fine */
/* ret_sealed is cleared first. */
void seal_close_bytes(const struct seal_key *key, const void *plain, size_t size,
		      struct buf *ret_sealed, struct digest *ret_name);
/* ERR_CORRUPT when the bytes were not sealed with this key or were changed; ret_plain is then empty. */
int seal_open_bytes(const struct seal_key *key, const void *sealed, size_t size,
		    struct buf *ret_plain, struct err *err) MUST_CHECK;
/* The key's fingerprint, 32 hex digits: tells keys apart, and nothing of the key. */
enum { SEAL_PRINT_MAX = 33 };
void seal_key_print(const struct seal_key *key, char out[SEAL_PRINT_MAX]);
/* A keyed digest of plain bytes: equal bodies can be told without keeping anything that a guess could be checked against.
 * (BLAKE2b with the sealing key and a personalisation of its own.) */
void seal_mac(const struct seal_key *key, const void *plain, size_t size, struct digest *ret);
