/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pods as people name them who look at them with kubectl. */
#include "cli/client.h"

/* NAMESPACE/NAME: the daemon's answer on which job it is. */
int pod_find(const struct invocation *in, struct client *client, const char *word, json_t **ret,
	     struct err *err) MUST_CHECK;
