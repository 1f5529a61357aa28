/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a rank printed, where it runs as a pod. */
#include "api/log_feed.h"

/* Answers the call, at once or when the node has answered. */
void pod_log_begin(struct call *call, const struct log_wish *wish);
