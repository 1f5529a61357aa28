/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Of accounts of this machine: asked of the C library, which may load parts of itself for that. So what runs in somebody else's image brings
 * answers of its own (shepherd/pod_account.c).
 */
#include <sys/types.h>

enum { ACCOUNT_GROUPS_MAX = 4096 };

/* How many groups the account has, gid among them; gid alone where it is not known. */
int account_groups(uid_t uid, gid_t gid, gid_t groups[ACCOUNT_GROUPS_MAX]);
