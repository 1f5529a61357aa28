/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who is calling: over the Unix socket the kernel's word (SO_PEERCRED) and the users' list; over TCP a token.
 *
 * A token is "fl_" and 64 hexadecimal digits: 32 random bytes. Only its SHA-256 is kept. It acts for one account, with
 * that account's role at the moment of each request; it ends by expiry, revocation, or with its user.
 */
#include <stdint.h>
#include "api/http/http.h"
#include "core/model/facts.h"

enum { TOKEN_TEXT_MAX = 3 + 64 + 1, TOKEN_HASH_MAX = 65 };

struct caller {
	char user[NAME_MAX_BYTES + 1], team[NAME_MAX_BYTES + 1];
	char token[NAME_MAX_BYTES + 1]; /* id; "" = came over the Unix socket */
	uint8_t role; /* enum role, never ROLE_NONE */
	uint32_t id; /* row of the user: a name may have been another person's before */
	uint32_t team_first_job; /* jobs with lower ids are of an earlier team of this name */
	int32_t uid, gid;
	char expired[NAME_MAX_BYTES +
		     1]; /* id of the token that was refused because it expired; "" = no such */
};

/* Whether the peer's account on this machine is a user's. */
bool identity_is_known(const struct facts *facts, const struct http_peer *peer);
/* ERR_UNAUTHENTICATED with the remedy, or 0. now_ms: for expiry; the time of the facts counts where it is later. authorization: the header, NULL = none. */
int identity_find(const struct facts *facts, const struct http_peer *peer,
		  const char *authorization, int64_t now_ms, struct caller *ret, struct err *err)
	MUST_CHECK;
/* A new token and its hash (hexadecimal). */
void token_make(char ret_token[TOKEN_TEXT_MAX], char ret_hash[TOKEN_HASH_MAX]);
