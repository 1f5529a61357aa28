/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * That there is always somebody who may do everything. An admin counts who can come in: by an account of the machine (a
 * uid), or by a token that has no end; a token that ends is a way in that closes by itself. Each question walks all users,
 * and all tokens for those without a uid; changes of people are rare.
 */
#include <stdbool.h>
#include <stdint.h>

#include "core/model/facts.h"

/* Whether Fairlead would be without an admin who can come in, once user `id` (0 = a new one) is as `after` says, of which
 * role and uid count; NULL = removed. False where the change takes nothing away that there was. */
bool admins_end_with_user(const struct facts *f, uint32_t id, const struct user *after);
/* The same, once the token of this row is revoked. */
bool admins_end_with_token(const struct facts *f, uint32_t token);
