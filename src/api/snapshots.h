/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Snapshots of working folders that the daemon keeps. */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct call;

/* Whose they are, in store/code.h. pods: jobs run as such, and the uid says nothing. */
enum { SNAPSHOT_ACCOUNT_MAX = 65 };
void snapshot_account(bool pods, int64_t uid, const char *user, char ret[SNAPSHOT_ACCOUNT_MAX]);
/* Whether the caller may have snapshots here at all. */
int snapshots_permit(const struct call *call, struct err *err) MUST_CHECK;
/* Whether the caller has told this snapshot, whole; it counts as named now, and stays for a day. ERR_NOT_FOUND: he has not. */
int snapshot_find(const struct call *call, const char *id, struct err *err) MUST_CHECK;
