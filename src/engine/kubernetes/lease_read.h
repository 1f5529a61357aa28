/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A Lease as the API server gives it. What is too long for its place is cut: such a holder is nobody of ours. */
#include <stddef.h>
#include "base/err.h"
#include "engine/kubernetes/lease_rule.h"

int lease_read(const char *text, size_t size, struct lease_seen *ret, struct err *err) MUST_CHECK;
