/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pods are told a numeric address: their shepherds look up no names. */
#include "base/err.h"

enum { SHEPHERD_ADDRESS_MAX = 64 };

/* "fairlead-pods.fairlead.svc:7071" as "10.0.0.7:7071". */
int shepherd_address(const char *text, char out[SHEPHERD_ADDRESS_MAX], struct err *err) MUST_CHECK;
