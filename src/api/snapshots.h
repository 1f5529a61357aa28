/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Snapshots of working folders that the daemon keeps. */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct api;
struct buf;
struct call;

/* Whose they are, as a name of files. pods: jobs run as such, and the uid says nothing. */
enum { SNAPSHOT_ACCOUNT_MAX = 65 };
void snapshot_account(bool pods, int64_t uid, const char *user, char ret[SNAPSHOT_ACCOUNT_MAX]);
/* Whether the caller has told this snapshot, whole; it counts as named now, and stays for a day. */
bool snapshot_is_there(const struct call *call, const char *id);
/* Adds a list (tree) or a file of an account. ERR_NOT_FOUND: it is not there. Blocks on disks. */
int snapshot_read(const struct api *api, const char *account, bool tree, const char *name,
		  struct buf *out, struct err *err) MUST_CHECK;
