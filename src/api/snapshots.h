/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Snapshots of working folders that the daemon keeps. */
#include <stdbool.h>
#include <stdint.h>

struct api;

/* Whether the account has told this snapshot, whole; it counts as named now, and stays for a day. */
bool snapshot_is_there(const struct api *api, int64_t uid, const char *id);
